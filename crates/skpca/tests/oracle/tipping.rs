//! Tipping's own iterations: updates (13) and (14) of all weights at once, as printed as far as that is stable.

use faer::linalg::solvers::DenseSolveCore;
use faer::{Mat, Side};

/// The model of the paper with a weight for every point.
pub struct Oracle {
    k: Mat<f64>,
    squared: Mat<f64>,
    noise: f64,
    weights: Vec<f64>,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Update {
    /// (13), expectation–maximisation.
    Expectation,
    /// (14), the fixed point, in a form without cancellation.
    FixedPoint,
}

impl Oracle {
    pub fn new(k: Mat<f64>, noise: f64) -> Oracle {
        let (n, squared) = (k.nrows(), &k * &k);
        Oracle { k, squared, noise, weights: vec![1.0 / n as f64; n] }
    }

    /// `B = I + √W K √W / σ²`
    fn b(&self) -> Mat<f64> {
        let n = self.k.nrows();
        Mat::from_fn(n, n, |i, j| {
            let one = if i == j { 1.0 } else { 0.0 };
            one + (self.weights[i] * self.weights[j]).sqrt() * self.k[(i, j)] / self.noise
        })
    }

    /// `Σ = (W⁻¹ + K/σ²)⁻¹ = √W B⁻¹ √W`
    fn posterior(&self, inverse: &Mat<f64>) -> Mat<f64> {
        let n = self.k.nrows();
        Mat::from_fn(n, n, |i, j| (self.weights[i] * self.weights[j]).sqrt() * inverse[(i, j)])
    }

    pub fn step(&mut self, update: Update) {
        let b = self.b();
        let inverse = b.llt(Side::Lower).unwrap().inverse();
        let posterior = self.posterior(&inverse);
        let moved = &posterior * &self.squared;
        let count = self.weights.len();
        let n = count as f64;
        for i in 0..count {
            // Σ_n μ_ni²
            let means: f64 = (0..count).map(|j| moved[(i, j)] * posterior[(j, i)]).sum::<f64>();
            let means = means.max(0.0) / (self.noise * self.noise);
            self.weights[i] = match update {
                Update::Expectation => posterior[(i, i)] + means / n,
                // w Q/(nS) with w S = [B⁻¹(B − I)]_ii
                Update::FixedPoint => {
                    let less = |j: usize| b[(j, i)] - if i == j { 1.0 } else { 0.0 };
                    let share: f64 = (0..count).map(|j| inverse[(i, j)] * less(j)).sum::<f64>();
                    if share > 0.0 { means / (n * share) } else { 0.0 }
                }
            };
        }
    }

    /// `−½ [n log|C/σ²| + Σ f_jᵀC⁻¹f_j]`
    pub fn likelihood(&self) -> f64 {
        let b = self.b();
        let l = b.llt(Side::Lower).unwrap();
        let n = b.nrows();
        let determinant: f64 = 2.0 * (0..n).map(|i| l.L()[(i, i)].ln()).sum::<f64>();
        let explained = &self.posterior(&l.inverse()) * &self.squared;
        let trace = |a: &Mat<f64>| (0..n).map(|i| a[(i, i)]).sum::<f64>();
        -0.5 * (n as f64 * determinant + (trace(&self.k) - trace(&explained) / self.noise) / self.noise)
    }
}
