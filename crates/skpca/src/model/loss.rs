//! The precision that a model would lose in 32-bit arithmetic.

use crate::dense;
use crate::gram::Precision;
use crate::kernel::{Form, Kernel, Outer};
use crate::points::Points;

use super::Parts;

/// Maximum error in 32 bits: of features as a share of their standard deviation, of scores as a share of the mean
/// training score. If it would be exceeded, 64 bits are used.
pub(super) const SINGLE_ERROR: f64 = 1e-4;

/// Returns the requested precision if its loss is small enough, otherwise 64 bits.
pub(super) fn enough(asked: Precision, loss: f64) -> Precision {
    if loss <= SINGLE_ERROR { asked } else { Precision::Double }
}

/// The errors caused by 32-bit kernel values.
///
/// ```text
/// error of a value      δ = 2⁻²⁴ κ (2 + spread)        κ = max k(z, z);  values are rounded, and so is what goes into them
/// of a feature          3 δ ‖a‖₂                       independent rounding errors: three standard deviations of the sum
/// of a score            2 · 3 δ (‖β‖₂ + 3 √Σ_k λ_k ‖a_k‖²)     features of up to three standard deviations
/// ```
///
/// Coefficients are large if points are nearly dependent, and variances are small if the kernel hardly varies. Then the
/// leading digits that values have in common cancel, and little remains of 32 bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loss {
    /// As a share of their standard deviation.
    pub(super) features: f64,
    /// As a share of the mean training score.
    pub(super) scores: f64,
}

impl Loss {
    pub(super) fn of_32_bits(kernel: &dyn Kernel, parts: &Parts) -> Loss {
        let largest = parts.support.rows().map(|z| kernel.eval(z, z)).fold(0.0, f64::max);
        if !(1e-30..1e30).contains(&largest) {
            return Loss { features: f64::INFINITY, scores: f64::INFINITY };
        }
        let value = f64::from(f32::EPSILON) / 2.0 * largest * (2.0 + spread(kernel, &parts.support));
        let a = match &parts.frame {
            Some(frame) => dense::product(parts.coefficients.as_ref(), frame.as_ref()),
            None => parts.coefficients.clone(),
        };
        let variances = || parts.variances.iter().map(|v| v.max(f64::MIN_POSITIVE));
        let own = parts.coefficients.col_iter().zip(variances());
        let features = own.map(|(a, variance)| a.norm_l2() / variance.sqrt()).fold(0.0, f64::max);
        let along: f64 = a.col_iter().zip(variances()).map(|(a, variance)| variance * a.squared_norm_l2()).sum();
        let beta: f64 = parts.beta.iter().map(|b| b * b).sum();
        let mean_score = (parts.total_variance - parts.captured).max(f64::MIN_POSITIVE);
        let scores = 2.0 * (beta.sqrt() + 3.0 * along.sqrt()) / mean_score;
        Loss { features: 3.0 * value * features, scores: 3.0 * value * scores }
    }
}

/// Returns how much larger than a kernel value the terms are that cancel in it: for a kernel of a distance, the squared
/// norms of packed rows, which are shifted by the mean of the support. Rows outside the support have larger terms, but
/// smaller values.
fn spread(kernel: &dyn Kernel, support: &Points) -> f64 {
    use std::f64::consts::LOG2_E;
    let mean = support.mean();
    let farthest = |length: fn(f64) -> f64| {
        let length = |z: &[f64]| z.iter().zip(&mean).map(|(z, m)| length(z - m)).sum::<f64>();
        support.rows().map(length).fold(0.0, f64::max)
    };
    match kernel.form() {
        Form::Gaussian { gamma } => ((2.0 * gamma * LOG2_E * farthest(|v| v * v)).sqrt() + 1.0).powi(2),
        Form::Manhattan { gamma } => 2.0 * (gamma * LOG2_E * farthest(f64::abs) + 1.0),
        Form::Dot { outer: Outer::Power(power), .. } => f64::from(power),
        Form::Dot { .. } | Form::Cosine | Form::Pairs => 1.0,
    }
}
