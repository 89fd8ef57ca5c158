//! Which rows may be chosen, and what are their inner products?

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

/// Columns of the kernel matrix that are made together, …
const TOGETHER: usize = 16;
/// … and how many are kept before all are forgotten.
const KEPT: usize = 1000;

/// The rows to choose among.
pub(in crate::method) struct Selection<'a> {
    pub(super) task: &'a Task<'a>,
    /// Numbers of the rows, increasing.
    pub(super) candidates: Vec<usize>,
    pub(super) source: InnerProducts<'a>,
    /// Each row along the eigenvectors of T that count …
    pub(super) along: Mat<f64>,
    /// … and T along them.
    pub(super) weights: Vec<f64>,
    /// `‖φ(x_i)‖²`
    pub(super) lengths: Vec<f64>,
    /// How much each row counts; one each by default.
    pub(super) counts: Option<Vec<f64>>,
    pub(super) passes: usize,
    /// How many components count, where it is not T that says so.
    pub(super) top: Option<usize>,
}

/// Where inner products of rows come from.
pub(super) enum InnerProducts<'a> {
    /// Rows of a factor, in coordinates where T is `values`.
    Factor { atoms: Mat<f64>, factor: &'a Factor, values: &'a [f64] },
    /// The kernel; columns of its matrix that were needed are kept.
    Kernel { anchors: Box<Anchors>, columns: RefCell<BTreeMap<usize, Vec<f64>>> },
}

impl<'a> Selection<'a> {
    /// Among the rows on which fidelity is measured.
    pub(in crate::method) fn leading(task: &'a Task<'a>, passes: usize) -> Result<Selection<'a>> {
        let candidates = task.reference()?.rows.clone();
        let part = Part::of(task.rows, &candidates)?;
        let fresh;
        let Leading { values, along } = match &task.reference()?.leading {
            Some(leading) => leading,
            // Found without these rows, or in a feature space of few dimensions.
            None => {
                fresh = Reference::new(task.kernel, &part, task.question(), task.watch)?;
                fresh.leading.as_ref().expect("so few rows are looked at themselves")
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

    /// Among the rows of a factor (a sample where there are many); T counts along its first `counting` coordinates.
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

    /// Numbers of rows that span all there is, if they are no more than `m`.
    pub(in crate::method) fn spanning(&self, m: usize) -> Option<Vec<usize>> {
        match &self.source {
            InnerProducts::Factor { factor, .. } => (m >= factor.rank()).then(|| sorted(factor.pivots.clone())),
            InnerProducts::Kernel { .. } => (m >= self.task.n()).then(|| self.candidates.clone()),
        }
    }

    /// Numbers of rows, increasing, of places among the candidates.
    pub(in crate::method) fn rows(&self, chosen: &[usize]) -> Vec<usize> {
        sorted(chosen.iter().map(|&i| self.candidates[i]).collect())
    }

    /// The rows themselves.
    pub(in crate::method) fn points(&self, chosen: &[usize]) -> Result<Points<'static>> {
        self.task.rows.gather(&self.rows(chosen))
    }

    /// `φ(x_i)·φ(x_p)` of all candidates i and those chosen.
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

    /// The column of one row. Where it must be made, those of the rows that gain most are made with it: a tile has as
    /// many lanes, and some of them come next.
    pub(super) fn column(&self, row: usize, gains: &Gains) -> Mat<f64> {
        if let InnerProducts::Kernel { columns, .. } = &self.source {
            if columns.borrow().len() > KEPT {
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

/// Some rows of a matrix.
pub(super) fn gathered(a: &Mat<f64>, rows: &[usize]) -> Mat<f64> {
    Mat::from_fn(rows.len(), a.ncols(), |i, k| a[(rows[i], k)])
}
