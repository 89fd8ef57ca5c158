//! The kernel matrix of weighted rows as an operator.
//!
//! ```text
//! D^½ H K Hᵀ D^½,   D = diag(w),  H = I − 1 ωᵀ,  ω = w / Σ w            equivalent to K̃ of rows repeated w times
//! ```

use std::sync::Arc;

use faer::{Mat, MatRef};

use super::Operator;
use super::kernel::stores;
use crate::dense;
use crate::gram::{Precision, Symmetric};
use crate::kernel::Kernel;
use crate::points::Points;

/// Rows with weights above 0, centred or not.
pub(crate) struct WeightedKernel {
    matrix: Symmetric,
    center: bool,
    /// `√w`
    roots: Vec<f64>,
    /// `ω`
    shares: Vec<f64>,
    /// `μ = K ω`; zero if not centred.
    means: Vec<f64>,
}

impl WeightedKernel {
    pub(crate) fn new(kernel: &Arc<dyn Kernel>, points: &Points, weights: &[f64], center: bool) -> WeightedKernel {
        let total: f64 = weights.iter().sum();
        let shares: Vec<f64> = weights.iter().map(|w| w / total).collect();
        let matrix = Symmetric::new(kernel, points, stores(points.n(), points.d()));
        let means = if center { product(&matrix, &shares) } else { vec![0.0; shares.len()] };
        WeightedKernel { matrix, center, roots: weights.iter().map(|w| w.sqrt()).collect(), shares, means }
    }

    pub(super) fn kernel(&self) -> &Arc<dyn Kernel> {
        self.matrix.kernel()
    }

    /// `K v`
    pub(crate) fn plain(&self, v: MatRef<f64>) -> Mat<f64> {
        self.matrix.product(v, Precision::Double)
    }

    pub(crate) fn means(&self) -> &[f64] {
        &self.means
    }

    /// Returns `‖φ̄‖²` if centred.
    pub(crate) fn mean_norm(&self) -> Option<f64> {
        self.center.then(|| dense::dot(&self.means, &self.shares))
    }

    /// Returns the coefficients of the components `v_k = Σ_j a_jk φ(x_j)` for eigenvectors u: `a = √w u / √λ`, less ω
    /// times its sum if centred.
    pub(crate) fn coefficients(&self, u: &Mat<f64>, values: &[f64]) -> Mat<f64> {
        let mut a = Mat::from_fn(u.nrows(), u.ncols(), |i, k| self.roots[i] * u[(i, k)] / values[k].sqrt());
        if self.center {
            self.subtract_mean(&mut a);
        }
        a
    }

    /// `Hᵀ V`
    fn subtract_mean(&self, v: &mut Mat<f64>) {
        for k in 0..v.ncols() {
            let column = v.col_as_slice_mut(k);
            let sum: f64 = column.iter().sum();
            column.iter_mut().zip(&self.shares).for_each(|(v, share)| *v -= share * sum);
        }
    }

    /// Returns the coefficients of the mean over the rows: ω, or zero if not centred.
    pub(crate) fn mean(&self) -> Vec<f64> {
        if self.center { self.shares.clone() } else { vec![0.0; self.shares.len()] }
    }
}

/// `K v`
fn product(matrix: &Symmetric, v: &[f64]) -> Vec<f64> {
    let product = matrix.product(MatRef::from_column_major_slice(v, v.len(), 1), Precision::Double);
    product.col(0).iter().copied().collect()
}

impl Operator for WeightedKernel {
    fn dim(&self) -> usize {
        self.roots.len()
    }

    fn apply(&self, v: MatRef<f64>) -> Mat<f64> {
        let mut v = Mat::from_fn(v.nrows(), v.ncols(), |i, k| self.roots[i] * v[(i, k)]);
        if self.center {
            self.subtract_mean(&mut v);
        }
        let mut out = self.plain(v.as_ref());
        for k in 0..out.ncols() {
            let column = out.col_as_slice_mut(k);
            let mean = if self.center { dense::dot(column, &self.shares) } else { 0.0 };
            column.iter_mut().zip(&self.roots).for_each(|(v, root)| *v = root * (*v - mean));
        }
        out
    }
}
