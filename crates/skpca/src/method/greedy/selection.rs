//! The candidate rows and their inner products.

use std::cell::RefCell;
use std::collections::BTreeMap;

use faer::Mat;

use super::gains::Gains;
use super::{CANDIDATES, CANDIDATES_PER_POINT};
use crate::dense;
use crate::error::{Error, Result};
use crate::factor::Factor;
use crate::gradient::Anchors;
use crate::kernel_matrix::diagonal;
use crate::method::{NO_VARIANCE, Task};
use crate::points::Points;
use crate::random::{Random, Stream};
use crate::reference::{Leading, Reference};
use crate::rows::Part;
use crate::sample_weight;

/// Number of columns of the kernel matrix that are computed together.
const TOGETHER: usize = 16;
/// Number of cached columns above which the cache is cleared.
const CACHED: usize = 1000;

/// The candidate rows.
pub(in crate::method) struct Selection<'a> {
    pub(super) task: &'a Task<'a>,
    /// Numbers of the rows, increasing.
    pub(super) candidates: Vec<usize>,
    pub(super) source: InnerProducts<'a>,
    /// Coordinates of each row along the relevant eigenvectors of T.
    pub(super) along: Mat<f64>,
    /// The corresponding eigenvalues.
    pub(super) weights: Vec<f64>,
    /// `‖φ(x_i)‖²`
    pub(super) lengths: Vec<f64>,
    /// Weights of the rows, 1 by default.
    pub(super) counts: Option<Vec<f64>>,
    pub(super) passes: usize,
    /// Number of components of `gain=top`.
    pub(super) top: Option<usize>,
}

/// The source of inner products of rows.
pub(super) enum InnerProducts<'a> {
    /// A factor, in coordinates where T is diagonal, `values`.
    Factor { atoms: Mat<f64>, factor: &'a Factor, values: &'a [f64] },
    /// The kernel, with a cache of columns of its matrix.
    Kernel { anchors: Box<Anchors>, columns: RefCell<BTreeMap<usize, Vec<f64>>> },
}

impl<'a> Selection<'a> {
    /// Selects among the rows on which fidelity is measured.
    pub(in crate::method) fn leading(task: &'a Task<'a>, passes: usize) -> Result<Selection<'a>> {
        let candidates = task.reference()?.rows.clone();
        let part = Part::of(task.rows, &candidates)?;
        let fresh;
        let Leading { values, along } = match &task.reference()?.leading {
            Some(leading) => leading,
            // The reference has no components if it was computed otherwise, or in a feature space of few dimensions.
            None => {
                fresh = Reference::new(task.kernel, &part, task.question(), task.watch)?;
                fresh.leading.as_ref().expect("a reference over few rows has components")
            }
        };
        if values.is_empty() {
            return Err(Error::NoVariance { why: NO_VARIANCE.into() });
        }
        let Part { points, weights: counts } = part;
        let lengths = diagonal(task.kernel, &points)?;
        let (weights, along) = (values.clone(), along.clone());
        let anchors = Box::new(Anchors::new(task.kernel, points));
        let source = InnerProducts::Kernel { anchors, columns: RefCell::default() };
        Ok(Selection { task, candidates, source, along, weights, lengths, counts, passes, top: None })
    }

    /// Selects among the rows of a factor (a sample if there are many); T is restricted to its first `counting`
    /// coordinates.
    pub(super) fn of_factor(
        task: &'a Task<'a>,
        factor: &'a Factor,
        values: &'a [f64],
        counting: usize,
        passes: usize,
    ) -> Selection<'a> {
        let most = CANDIDATES.max(CANDIDATES_PER_POINT * task.support());
        let candidates = Random::new(task.seed, Stream::GreedyCandidates).sample(factor.n(), most);
        let atoms = factor.rows_of(&candidates);
        let lengths = (0..atoms.nrows()).map(|i| atoms.row(i).squared_norm_l2()).collect();
        let (along, weights) = (atoms.as_ref().subcols(0, counting).to_owned(), values[..counting].to_vec());
        let counts = sample_weight::select(task.rows.weights(), &candidates);
        let source = InnerProducts::Factor { atoms, factor, values };
        Selection { task, candidates, source, along, weights, lengths, counts, passes, top: None }
    }

    pub(super) fn rank(&self) -> Option<usize> {
        match &self.source {
            InnerProducts::Factor { factor, .. } => Some(factor.rank()),
            InnerProducts::Kernel { .. } => None,
        }
    }

    /// Returns the numbers of rows that span everything, if there are at most `m` of them.
    pub(in crate::method) fn spanning(&self, m: usize) -> Option<Vec<usize>> {
        match &self.source {
            InnerProducts::Factor { factor, .. } => (m >= factor.rank()).then(|| sorted(factor.pivots.clone())),
            InnerProducts::Kernel { .. } => (m >= self.task.n()).then(|| self.candidates.clone()),
        }
    }

    /// Converts positions among the candidates to row numbers, in increasing order.
    pub(in crate::method) fn rows(&self, chosen: &[usize]) -> Vec<usize> {
        sorted(chosen.iter().map(|&i| self.candidates[i]).collect())
    }

    /// Returns the rows at positions among the candidates.
    pub(in crate::method) fn points(&self, chosen: &[usize]) -> Result<Points<'static>> {
        self.task.rows.gather(&self.rows(chosen))
    }

    /// Computes `φ(x_i)·φ(x_p)` for all candidates i and the chosen ones p.
    pub(super) fn inner(&self, chosen: &[usize]) -> Mat<f64> {
        match &self.source {
            InnerProducts::Factor { atoms, .. } => dense::product(atoms.as_ref(), gathered(atoms, chosen).transpose()),
            InnerProducts::Kernel { anchors, columns } => {
                let mut columns = columns.borrow_mut();
                let missing: Vec<usize> = chosen.iter().copied().filter(|p| !columns.contains_key(p)).collect();
                if !missing.is_empty() {
                    let k = anchors.between(&missing);
                    columns.extend(missing.iter().enumerate().map(|(at, p)| (*p, k.col_as_slice(at).to_vec())));
                }
                let mut out = Mat::zeros(self.lengths.len(), chosen.len());
                (0..chosen.len()).for_each(|at| out.col_as_slice_mut(at).copy_from_slice(&columns[&chosen[at]]));
                out
            }
        }
    }

    /// Returns the column of one row. If it is not cached, it is computed together with those of the rows of largest
    /// gain, which fill the lanes of a register tile; some of them will be needed next.
    pub(super) fn column(&self, row: usize, gains: &Gains) -> Mat<f64> {
        if let InnerProducts::Kernel { columns, .. } = &self.source {
            if columns.borrow().len() > CACHED {
                columns.borrow_mut().clear();
            }
            if !columns.borrow().contains_key(&row) {
                let mut next: Vec<usize> = (0..gains.traces.len()).filter(|&i| i != row).collect();
                let count = (TOGETHER - 1).min(next.len());
                let larger = |i: &usize, j: &usize| gains.traces[*j].total_cmp(&gains.traces[*i]).then(i.cmp(j));
                if count < next.len() {
                    next.select_nth_unstable_by(count, larger);
                    next.truncate(count);
                }
                next.push(row);
                self.inner(&next);
            }
        }
        self.inner(&[row])
    }
}

fn sorted(mut rows: Vec<usize>) -> Vec<usize> {
    rows.sort_unstable();
    rows
}

/// Returns some rows of a matrix.
pub(super) fn gathered(a: &Mat<f64>, rows: &[usize]) -> Mat<f64> {
    Mat::from_fn(rows.len(), a.ncols(), |i, k| a[(rows[i], k)])
}
