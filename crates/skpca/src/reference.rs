//! The yardstick: what exact kernel PCA captures on the same data and kernel.
//!
//! ```text
//! fidelity = captured variance of the model / Σ_{k ≤ q} λ_k(K̃)
//! ```
//!
//! Both on all rows where there are a few thousand at most, or where feature space has few dimensions: then it is exact.
//! Otherwise both on the same uniform sample of rows, an estimate: measured errors are up to 0.004, below the truth near 1
//! (exact KPCA fits the sample) and either way for coarse models (docs/decisions/0004).

use std::sync::Arc;

use faer::Mat;

use crate::dense;
use crate::eigen::{Accuracy, KernelOperator, top, top_of_kernel};
use crate::error::Result;
use crate::factor::{Factor, Stop, diagonal};
use crate::gram::{Basis, Precision};
use crate::kernel::Kernel;
use crate::points::Points;
use crate::random::Random;
use crate::spectrum::Expansion;
use crate::watch::Watch;

/// Rows on which fidelity is measured.
pub(crate) const ROWS: usize = 4000;

/// Feature spaces of no more dimensions than this are looked at with all rows.
const SMALL: usize = 200;

/// Exact kernel PCA on the rows where fidelity is measured.
pub(crate) struct Reference {
    /// The rows, increasing; all of them if there are few. Landmarks are drawn among them.
    pub rows: Vec<usize>,
    /// Sum of the leading eigenvalues.
    pub captured: f64,
    /// The components themselves, unless only what they capture was found.
    pub leading: Option<Leading>,
    /// `‖φ̄‖²` of all rows, where it was a by-product.
    pub mean_norm: Option<f64>,
    center: bool,
    whole: bool,
}

/// The leading components `v_k` of exact kernel PCA.
pub(crate) struct Leading {
    /// Variance sums along them.
    pub values: Vec<f64>,
    /// `φ(x_i)·v_k` of the reference's rows, not centred.
    pub along: Mat<f64>,
}

impl Reference {
    pub(crate) fn new(
        kernel: &Arc<dyn Kernel>,
        points: &Points,
        q: usize,
        center: bool,
        seed: u64,
        watch: &dyn Watch,
    ) -> Result<Reference> {
        let dimension = kernel.rank(points.d());
        if points.n() > ROWS && dimension <= SMALL {
            let factor = Factor::pivoted(kernel, points, Stop { rank: dimension, residual: 0.0 }, seed, watch)?;
            let (t, _) = factor.scatter(center);
            let accuracy = Accuracy { trace: factor.trace, ..Accuracy::default() };
            let pairs = top(&t, q, accuracy, seed, watch)?;
            let mut reference = Reference::known(points.n(), pairs.values.iter().sum(), center, seed);
            let along = dense::product(factor.rows_of(&reference.rows).as_ref(), pairs.vectors.as_ref());
            reference.leading = Some(Leading { values: pairs.values, along });
            return Ok(reference);
        }
        let rows = Random::new(seed, 5).sample(points.n(), ROWS);
        let sample = points.select(&rows);
        let operator = KernelOperator::new(kernel, &sample, center);
        let whole = rows.len() == points.n();
        // Eigenvalues converge twice as fast as eigenvectors: 1e-5 here is 1e-10 of the sum. A sample errs by 1e-3.
        let tolerance = if whole { 1e-5 } else { 1e-3 };
        let trace = diagonal(kernel, &sample)?.iter().sum();
        let accuracy = Accuracy { tolerance, trace, ..Accuracy::default() };
        let pairs = top_of_kernel(&operator, q, accuracy, seed, watch)?;
        let means = operator.means();
        let mean_norm = (whole && center).then(|| means.iter().sum::<f64>() / means.len() as f64);
        let captured = pairs.values.iter().sum();
        let leading = Leading::new(pairs.values, &pairs.vectors, &means);
        Ok(Reference { rows, captured, leading: Some(leading), mean_norm, center, whole })
    }

    /// Where somebody has found what exact kernel PCA captures on all rows.
    pub(crate) fn known(n: usize, captured: f64, center: bool, seed: u64) -> Reference {
        let rows = Random::new(seed, 5).sample(n, ROWS);
        Reference { rows, captured, leading: None, mean_norm: None, center, whole: true }
    }

    /// Rows that `captured` is a sum over.
    pub(crate) fn rows_seen(&self, n: usize) -> usize {
        if self.whole { n } else { self.rows.len() }
    }

    /// The fidelity of components over the points `support`.
    pub(crate) fn fidelity(
        &self,
        kernel: &Arc<dyn Kernel>,
        points: &Points,
        support: &Points<'static>,
        expansion: &Expansion,
    ) -> f64 {
        if self.captured <= 0.0 {
            return 1.0;
        }
        if self.whole {
            return expansion.captured / self.captured;
        }
        let basis = Basis::new(kernel.clone(), support.select(&expansion.kept));
        let orthonormal = match &expansion.frame {
            Some(frame) => dense::product(expansion.coefficients.as_ref(), frame.as_ref()),
            None => expansion.coefficients.clone(),
        };
        let q = orthonormal.ncols();
        let weights = basis.weights(orthonormal);
        let projected = basis.product(&points.select(&self.rows), &weights, Precision::Double);
        let captured: f64 = (0..q).map(|k| self.scatter(projected.iter().skip(k).step_by(q).copied())).sum();
        captured / self.captured
    }

    /// `Σ (y − ȳ)²`, or `Σ y²` if not centred.
    fn scatter(&self, values: impl Iterator<Item = f64> + Clone) -> f64 {
        let mean = match self.center {
            true => values.clone().sum::<f64>() / self.rows.len() as f64,
            false => 0.0,
        };
        values.map(|y| (y - mean) * (y - mean)).sum()
    }
}

impl Leading {
    /// From eigenvectors u of the kernel matrix and the means `μ = K 1 / n` (zero if not centred): `v_k = Σ_j u_jk φ(x_j) / √λ_k`,
    /// so that `φ(x_i)·v_k = √λ_k u_ik + Σ_j u_jk μ_j / √λ_k`.
    fn new(values: Vec<f64>, u: &Mat<f64>, means: &[f64]) -> Leading {
        let offset = |k: usize| u.col(k).iter().zip(means).map(|(u, mean)| u * mean).sum::<f64>() / values[k].sqrt();
        let offsets: Vec<f64> = (0..values.len()).map(offset).collect();
        let along = Mat::from_fn(u.nrows(), values.len(), |i, k| values[k].sqrt() * u[(i, k)] + offsets[k]);
        Leading { values, along }
    }
}
