//! A low-rank factor that provides the start and the preconditioner of the iteration.

use faer::{Mat, MatRef};

use super::kernel::KernelOperator;
use super::{RANK, ROUNDING};
use crate::dense;
use crate::error::Result;
use crate::factor::{Factor, Stop};
use crate::watch::Watch;

/// Share of the trace left by the factor up to which a guide is good.
const GUIDE_RESIDUAL: f64 = 0.3;

/// A low-rank factor of a kernel matrix, `K̃ ≈ M = F̃F̃ᵀ = U Λ Uᵀ`, as start and as the preconditioner of Davidson's
/// method:
///
/// ```text
/// (M − θ)⁻¹ r = U ((Λ − θ)⁻¹ + θ⁻¹) Uᵀ r − r / θ,        U = F̃ W Λ^−½,   F̃ᵀF̃ = W Λ Wᵀ
/// ```
pub(super) struct Guide {
    factor: Factor,
    /// f̄, or zero if not centred.
    mean: Vec<f64>,
    values: Vec<f64>,
    /// `W Λ^−½`
    map: Mat<f64>,
}

impl Guide {
    pub(super) fn new(operator: &KernelOperator, seed: u64, watch: &dyn Watch) -> Result<Guide> {
        let (kernel, points) = (operator.kernel(), operator.points);
        let stop = Stop { rank: guide_rank(points.n()), residual: 1e-9 };
        let factor = Factor::pivoted(kernel, points, stop, seed, watch)?;
        let (t, mean) = factor.scatter(operator.center, watch)?;
        let (mut values, w) = dense::eigen(t.as_ref())?;
        let floor = (1e-9 * values.first().copied().unwrap_or(0.0)).max(ROUNDING * factor.trace);
        let count = values.iter().take_while(|v| **v > floor).count();
        values.truncate(count);
        let map = Mat::from_fn(w.nrows(), count, |i, j| w[(i, j)] / values[j].sqrt());
        Ok(Guide { factor, mean, values, map })
    }

    /// Returns whether the guide has no directions, because the rows do not vary.
    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the number of pairs whose residuals are worth correcting. With a good guide each pair converges by
    /// itself; if it leaves much of the trace, additional pairs speed up the others, as in any block Krylov iteration.
    pub(super) fn wanted(&self, q: usize) -> usize {
        if self.factor.residual_trace <= GUIDE_RESIDUAL * self.factor.trace { q } else { usize::MAX }
    }

    /// Returns the leading eigenvectors of the factor.
    pub(super) fn start(&self, count: usize) -> Mat<f64> {
        self.expand(self.map.as_ref().subcols(0, count.min(self.map.ncols())))
    }

    /// Solves with `M − θ` for the residuals of those of the first `wanted` pairs that have not converged; the
    /// denominator is kept away from zero near the poles.
    pub(super) fn correct(
        &self,
        residuals: &Mat<f64>,
        values: &[f64],
        wanted: usize,
        norms: &[f64],
        tolerance: f64,
    ) -> Mat<f64> {
        let open: Vec<usize> = (0..wanted.min(norms.len())).filter(|&j| norms[j] > tolerance).collect();
        let r = Mat::from_fn(residuals.nrows(), open.len(), |i, j| residuals[(i, open[j])]);
        let c = dense::product(self.map.transpose(), self.factor.transposed_product(&r).as_ref());
        let solved = Mat::from_fn(c.nrows(), c.ncols(), |k, j| {
            let theta = values[open[j]];
            let gap = self.values[k] - theta;
            c[(k, j)] * (1.0 / gap.abs().max(0.02 * theta).copysign(gap) + 1.0 / theta)
        });
        let mut out = self.expand(dense::product(self.map.as_ref(), solved.as_ref()).as_ref());
        for (j, &of) in open.iter().enumerate() {
            if values[of] > RANK * values[0] {
                out.col_mut(j).iter_mut().zip(r.col(j).iter()).for_each(|(o, r)| *o -= r / values[of])
            } else {
                out.col_mut(j).copy_from(r.col(j))
            }
        }
        out
    }

    /// `F̃ y`
    fn expand(&self, y: MatRef<f64>) -> Mat<f64> {
        let mut out = self.factor.product(y);
        for j in 0..y.ncols() {
            let offset: f64 = self.mean.iter().enumerate().map(|(k, m)| m * y[(k, j)]).sum();
            out.col_mut(j).iter_mut().for_each(|v| *v -= offset);
        }
        out
    }
}

/// Returns the rank of a guide, such that it costs about as much as the products that it saves, which grow like n².
pub(crate) fn guide_rank(n: usize) -> usize {
    (3 * n.isqrt()).min(500)
}
