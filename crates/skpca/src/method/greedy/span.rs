//! The part of every row inside a span, and the rest.

use faer::{Mat, MatRef};

use super::SPANNED;
use super::selection::{Selection, gathered};
use crate::dense;
use crate::eigen::{Accuracy, top};
use crate::error::Result;
use crate::method::Task;
use crate::sample_weight;

/// Number of columns of a piece of `u`, which grows while points are picked.
const PIECE: usize = 32;

/// The part of every row outside a span, g.
pub(super) struct Rest {
    /// `‖g_i‖²`
    pub(super) lengths: Vec<f64>,
    /// Coordinates of g along the relevant directions.
    pub(super) g: Mat<f64>,
}

impl Rest {
    /// Adds orthonormal vectors to the span: `u` are the rows along them, `basis` their own coordinates, one row each.
    pub(super) fn without(mut self, u: MatRef<f64>, basis: MatRef<f64>) -> Rest {
        for column in u.col_iter() {
            self.lengths.iter_mut().zip(column.iter()).for_each(|(left, u)| *left -= u * u);
        }
        dense::subtract_product(self.g.as_mut(), u, basis);
        self
    }
}

/// A span that grows.
pub(super) struct Held {
    /// Rows along an orthonormal basis of the span, in pieces of some columns each.
    pub(super) u: Vec<Mat<f64>>,
    /// That basis along the relevant directions, one column each.
    pub(super) basis: Mat<f64>,
    pub(super) rest: Rest,
}

impl Held {
    /// Adds a column to the last piece, which grows until it is wide enough for an efficient product.
    pub(super) fn join(&mut self, u: Mat<f64>) {
        match self.u.last_mut() {
            Some(last) if last.ncols() < PIECE => *last = dense::beside(last.as_ref(), u.as_ref()),
            _ => self.u.push(u),
        }
    }
}

/// The span of chosen rows.
pub(super) struct ChosenSpan {
    /// Inner products of all rows with the chosen ones.
    pub(super) k: Mat<f64>,
    /// The Cholesky factor of their Gram matrix.
    pub(super) l: Mat<f64>,
    /// Their relevant coordinates, m × c.
    pub(super) points: Mat<f64>,
    pub(super) rest: Rest,
    /// `gᵀTg` of each row.
    pub(super) sums: Vec<f64>,
}

impl ChosenSpan {
    /// Returns the span, or `None` if the rows are linearly dependent or nearly so: gains would be rounding errors.
    pub(super) fn new(choice: &Selection, chosen: &[usize], k: Mat<f64>) -> Option<ChosenSpan> {
        let points = gathered(&choice.along, chosen);
        let l = dense::cholesky(gathered(&k, chosen).as_ref())?;
        if (0..chosen.len()).any(|i| l[(i, i)] * l[(i, i)] <= SPANNED * choice.lengths[chosen[i]]) {
            return None;
        }
        let mut span = ChosenSpan { k, l, points, rest: choice.all(), sums: Vec::new() };
        let (u, basis) = (span.u(), span.basis());
        span.rest = span.rest.without(u.as_ref(), basis.as_ref());
        span.sums = choice.sums(&span.rest);
        Some(span)
    }

    /// Returns the rows along the orthonormal basis.
    pub(super) fn u(&self) -> Mat<f64> {
        let mut u = self.k.clone();
        dense::divide_by_transposed(u.as_mut(), self.l.as_ref());
        u
    }

    /// Returns the orthonormal basis along the relevant directions, one row each.
    pub(super) fn basis(&self) -> Mat<f64> {
        let mut basis = self.points.clone();
        dense::solve_lower(self.l.as_ref(), basis.as_mut());
        basis
    }

    /// Returns the variance of the rows that the best components in the span capture.
    pub(super) fn captured(&self, task: &Task, counts: Option<&[f64]>) -> Result<f64> {
        let u = self.u();
        let count = |i: usize| counts.map_or(1.0, |counts| counts[i]);
        let counted = Mat::from_fn(u.nrows(), u.ncols(), |i, k| count(i) * u[(i, k)]);
        let mut c = dense::product(u.transpose(), counted.as_ref());
        if task.center {
            let sums = Mat::from_fn(u.ncols(), 1, |i, _| counted.col(i).sum());
            let total = sample_weight::total(counts, u.nrows());
            let share = Mat::from_fn(1, u.ncols(), |_, i| sums[(i, 0)] / total);
            dense::subtract_product(c.as_mut(), sums.as_ref(), share.as_ref());
        }
        let accuracy = Accuracy { trace: dense::trace(&c), ..Accuracy::default() };
        Ok(top(&c, task.q, accuracy, task.seed, task.watch)?.values.iter().sum())
    }

    pub(super) fn held(self) -> Held {
        Held { u: vec![self.u()], basis: self.basis().transpose().to_owned(), rest: self.rest }
    }

    /// Returns an orthonormal basis, r × m − 1, of the part of the span orthogonal to its unit vector `h`; all
    /// coordinates must be relevant.
    pub(super) fn without(&self, h: &[f64]) -> Mat<f64> {
        let basis = self.basis();
        let along = dense::product(basis.as_ref(), MatRef::from_column_major_slice(h, h.len(), 1));
        // The reflection that maps the coordinates of h to the last axis maps the other axes to a basis of the rest.
        let m = along.nrows();
        let sign = if along[(m - 1, 0)] < 0.0 { -1.0 } else { 1.0 };
        let mut w = along;
        w[(m - 1, 0)] += sign;
        let norm = w.squared_norm_l2();
        let axes = Mat::from_fn(m, m - 1, |i, k| f64::from(i == k) - 2.0 * w[(i, 0)] * w[(k, 0)] / norm);
        dense::product(basis.transpose(), axes.as_ref())
    }

    /// Returns the unit vector of the span that is orthogonal to all points but one: the rows along it, and its
    /// relevant coordinates.
    pub(super) fn only(&self, at: usize) -> (Vec<f64>, Vec<f64>) {
        let mut x = Mat::from_fn(self.l.nrows(), 1, |i, _| if i == at { 1.0 } else { 0.0 });
        dense::solve_lower(self.l.as_ref(), x.as_mut());
        dense::solve_lower_transposed(self.l.as_ref(), x.as_mut());
        // Its squared length is xᵀK_zz x = x_at.
        let root = x[(at, 0)].sqrt();
        x.col_mut(0).iter_mut().for_each(|x| *x /= root);
        let a = dense::product(self.k.as_ref(), x.as_ref());
        let h = dense::product(self.points.transpose(), x.as_ref());
        (a.col_as_slice(0).to_vec(), h.col_as_slice(0).to_vec())
    }
}
