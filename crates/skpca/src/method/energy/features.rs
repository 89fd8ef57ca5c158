//! The operations in feature space that the energy rule needs, by a factor, or for the linear kernel by the table
//! itself, of which only mean and scatter are needed. Both give the same results up to rounding.

use std::sync::Arc;

use faer::{Mat, MatRef};

use super::super::Task;
use super::super::shared::Scattered;
use crate::blocks;
use crate::dense;
use crate::eigen::{Accuracy, top};
use crate::error::Result;
use crate::factor::{FLOOR, captured_by_range};
use crate::kernel_matrix::diagonal;
use crate::points::Points;
use crate::random::{Random, Stream};
use crate::reference::Reference;
use crate::scatter::Scatter;
use crate::skeleton::{SPANNING, Skeleton};
use crate::spectrum::Expansion;
use crate::table_moments::{TableMoments, scatter_about};
use crate::watch::Watch;

/// Rows `f_i` with `f_i · f_j = k(x_i, x_j)`, their mean and their scatter.
pub(super) enum Features<'a> {
    /// A factor of any kernel.
    Factor(Arc<Scattered>),
    /// The linear kernel: `f_i = x_i`.
    Table(&'a Points<'a>, TableMoments),
}

impl<'a> Features<'a> {
    /// Computes features in at most `rank` dimensions.
    pub(super) fn new(task: &Task<'a>, rank: usize) -> Result<Features<'a>> {
        if task.kernel.is_linear() && task.d() <= rank {
            let moments = TableMoments::new(task.kernel, task.rows, task.center, task.watch)?;
            return Ok(Features::Table(task.rows.whole()?, moments));
        }
        Ok(Features::Factor(task.scattered(rank)?))
    }

    /// Returns the number of dimensions.
    pub(super) fn rank(&self) -> usize {
        match self {
            Features::Factor(scattered) => scattered.factor.rank(),
            Features::Table(points, _) => points.d(),
        }
    }

    /// `Σ k(x_i, x_i)`
    pub(super) fn trace(&self) -> f64 {
        match self {
            Features::Factor(scattered) => scattered.factor.trace,
            Features::Table(_, moments) => moments.trace,
        }
    }

    /// Computes `e_i = k(x_i, x_i) − 2 f_i·f̄ + ‖f̄‖²`; only the terms with f̄ are approximated by the factor.
    pub(super) fn energies(&self, task: &Task) -> Result<Vec<f64>> {
        let Scattered { factor, mean, .. } = match self {
            Features::Table(points, moments) => return Ok(moments.distances(points)),
            Features::Factor(scattered) => &**scattered,
        };
        let norm = dense::dot(mean, mean);
        let products = factor.product(MatRef::from_column_major_slice(mean, mean.len(), 1));
        let diagonal = diagonal(task.kernel, task.rows.whole()?)?;
        let energy = |(k, product): (&f64, &f64)| (k - 2.0 * product + norm).max(0.0);
        Ok(diagonal.iter().zip(products.col(0).iter()).map(energy).collect())
    }

    /// Computes `Σ (f_i − f̄)(f_i − f̄)ᵀ` over some rows, in increasing order.
    pub(super) fn scatter_of(&self, rows: &[usize], watch: &dyn Watch) -> Result<Mat<f64>> {
        let Scattered { factor, mean, .. } = match self {
            Features::Table(points, moments) => return moments.scatter_of(points, rows, watch),
            Features::Factor(scattered) => &**scattered,
        };
        let factor = &**factor;
        let sum = blocks::watched_sum(
            rows.len(),
            (watch, "energy"),
            || Scatter::<f64>::new(mean.len(), factor.instructions()),
            |sum, part| {
                let mut f = factor.rows_of(&rows[part]);
                mean.iter().enumerate().for_each(|(k, mean)| f.col_mut(k).iter_mut().for_each(|v| *v -= mean));
                sum.add_rows(f.as_ref());
                Ok(())
            },
            |sum, other| sum.merge(&other),
        )?;
        Ok(sum.into_parts().0)
    }

    /// Computes the leading eigenvalues of the scatter of all rows, and the reference if exact kernel PCA has the same
    /// eigenvalues.
    pub(super) fn leading(&self, task: &Task) -> Result<(Vec<f64>, Option<Reference>)> {
        let (scatter, trace) = match self {
            Features::Factor(scattered) => (&scattered.t, scattered.factor.trace),
            Features::Table(_, moments) => (&moments.scatter, moments.trace),
        };
        let accuracy = Accuracy { trace, ..Accuracy::default() };
        let values = top(scatter, task.q, accuracy, task.seed, task.watch)?.values;
        let reference = match self {
            Features::Factor(scattered) => task.exact(&scattered.factor, &values)?,
            Features::Table(..) => Some(task.captured(&values)?),
        };
        Ok((values, reference))
    }

    /// Returns the variance captured by the best q components in the span of `rows`.
    pub(super) fn captured(&self, task: &Task, rows: &[usize]) -> Result<f64> {
        match self {
            Features::Factor(scattered) => scattered.factor.captured(&scattered.t, rows, None, task.q),
            Features::Table(points, moments) => {
                let squares = scatter_about(points, rows, &vec![0.0; points.d()], task.watch)?;
                captured_by_range(&moments.scatter, squares.as_ref(), task.q)
            }
        }
    }

    /// Computes the best components in the span of `rows`, which must be increasing.
    pub(super) fn expansion(&self, task: &Task, rows: &[usize]) -> Result<Expansion> {
        match self {
            Features::Factor(_) => task.expansion(rows, None),
            Features::Table(points, moments) => {
                let (spanning, skeleton) = spanning(task, points, rows)?;
                let mut expansion = skeleton.linear_span(moments).best(task.q, task.watch)?;
                expansion.kept.iter_mut().for_each(|kept| *kept = spanning[*kept]);
                Ok(expansion)
            }
        }
    }
}

/// Finds rows of a table that span all of them, and the skeleton of that span: first a sample, then rows outside its
/// span. No copy of the rows is made.
fn spanning(task: &Task, points: &Points, rows: &[usize]) -> Result<(Vec<usize>, Skeleton)> {
    let d = points.d();
    let mut chosen = Random::new(0, Stream::SpanningRows).sample(rows.len(), SPANNING.max(10 * d));
    let mut rank = 0;
    loop {
        let support: Vec<usize> = chosen.iter().map(|&i| rows[i]).collect();
        let skeleton = Skeleton::new(task.kernel, &points.select(&support), task.watch)?;
        let axes = skeleton.axes();
        // If the rank does not grow, the rows still outside the span are due to rounding.
        if axes.nrows() == d.min(rows.len()) || chosen.len() == rows.len() || axes.nrows() == rank {
            return Ok((chosen, skeleton));
        }
        rank = axes.nrows();
        let left = outside(points, rows, axes.as_ref());
        if left.is_empty() {
            return Ok((chosen, skeleton));
        }
        chosen.extend(left);
        chosen.sort_unstable();
        chosen.dedup();
    }
}

/// Returns, for each block of rows, the row with the largest share outside the span of `axes`, if that is more than
/// rounding.
fn outside(points: &Points, rows: &[usize], axes: MatRef<f64>) -> Vec<usize> {
    let farthest = |part: std::ops::Range<usize>| {
        let first = part.start;
        let block = points.select(&rows[part]);
        let x = MatRef::from_row_major_slice(block.values(), block.n(), block.d());
        let mut rest = x.to_owned();
        dense::subtract_product(rest.as_mut(), dense::product(x, axes.transpose()).as_ref(), axes);
        let share = |i: usize| rest.row(i).squared_norm_l2() / x.row(i).squared_norm_l2().max(f64::MIN_POSITIVE);
        let shares = (0..block.n()).map(|i| (share(i), first + i));
        shares.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(share, _)| *share > FLOOR).map(|(_, i)| i)
    };
    blocks::map(rows.len(), farthest).into_iter().flatten().collect()
}
