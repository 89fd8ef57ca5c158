//! Sums over rows of vectors y, from which mean and scatter follow; sums over different rows can be added.
//!
//! ```text
//! Σ w,  s = Σ w y,  S = Σ w y yᵀ,  t = Σ w k(x, x)            y′ = A y + b:  s′ = A s + b Σ w,  S′ = A S Aᵀ + A s bᵀ + b s′ᵀ
//! ```

use faer::{Mat, MatRef};

use crate::dense;
use crate::error::Result;

/// Largest number of rows: a 64-bit float represents all integers up to it.
pub(crate) const MOST_ROWS: usize = 1 << 53;

/// Sums over some rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sums {
    /// Number of rows.
    pub rows: usize,
    /// `Σ w`
    pub weight: f64,
    /// `Σ w y`
    pub sums: Vec<f64>,
    /// `Σ w y yᵀ`, symmetric.
    pub squares: Mat<f64>,
    /// `Σ w k(x, x)`
    pub trace: f64,
}

impl Sums {
    /// Returns the sums over no rows, for vectors of m numbers.
    pub(crate) fn none(m: usize) -> Sums {
        Sums { rows: 0, weight: 0.0, sums: vec![0.0; m], squares: Mat::zeros(m, m), trace: 0.0 }
    }

    /// Adds `factor` times the sums over other rows; −1 removes these rows.
    pub(crate) fn add(&mut self, other: &Sums, factor: f64) {
        self.rows = if factor < 0.0 {
            self.rows.saturating_sub(other.rows)
        } else {
            self.rows.saturating_add(other.rows).min(MOST_ROWS)
        };
        self.weight += factor * other.weight;
        self.trace += factor * other.trace;
        self.sums.iter_mut().zip(&other.sums).for_each(|(a, b)| *a += factor * b);
        self.squares.col_iter_mut().zip(other.squares.col_iter()).for_each(|(a, b)| {
            a.iter_mut().zip(b.iter()).for_each(|(a, b)| *a += factor * b);
        });
    }

    /// Multiplies every weight by `factor`.
    pub(crate) fn scale(&mut self, factor: f64) {
        self.weight *= factor;
        self.trace *= factor;
        self.sums.iter_mut().for_each(|s| *s *= factor);
        self.squares.col_iter_mut().for_each(|column| column.iter_mut().for_each(|s| *s *= factor));
    }

    /// Adds `factor` times the difference of two sums over the same rows; the number of rows stays.
    pub(crate) fn add_difference(&mut self, more: &Sums, less: &Sums, factor: f64) {
        let rows = self.rows;
        self.add(more, factor);
        self.add(less, -factor);
        self.rows = rows;
    }

    /// Replaces `Σ w (y − ȳ)(y − ȳ)ᵀ` by the nearest positive semi-definite matrix, in the coordinates `L⁻¹ y` or in
    /// those of y.
    pub(crate) fn make_scatter_positive(&mut self, l: Option<MatRef<f64>>) -> Result<()> {
        let m = self.sums.len();
        let outer = |i: usize, j: usize| self.sums[i] * self.sums[j] / self.weight;
        let outer = Mat::from_fn(m, m, outer);
        let mut scatter = &self.squares - &outer;
        if let Some(l) = l {
            dense::whiten(l, &mut scatter);
        }
        let (values, vectors) = dense::eigen(scatter.as_ref())?;
        if values.last().is_none_or(|value| *value >= 0.0) {
            return Ok(());
        }
        let kept = Mat::from_fn(m, m, |i, k| vectors[(i, k)] * values[k].max(0.0).sqrt());
        let kept = l.map_or_else(|| kept.clone(), |l| dense::product(l, kept.as_ref()));
        self.squares = dense::product(kept.as_ref(), kept.transpose()) + outer;
        dense::mirror(&mut self.squares);
        Ok(())
    }

    /// Returns the sums of `A y + b`.
    pub(crate) fn mapped(&self, a: MatRef<f64>, b: &[f64]) -> Sums {
        let sums = dense::product(a, MatRef::from_column_major_slice(&self.sums, self.sums.len(), 1));
        let squares = dense::product(a, dense::product(self.squares.as_ref(), a.transpose()).as_ref());
        let term = |i: usize, j: usize| sums[(i, 0)] * b[j] + b[i] * sums[(j, 0)] + self.weight * b[i] * b[j];
        let mut squares = Mat::from_fn(b.len(), b.len(), |i, j| squares[(i, j)] + term(i, j));
        dense::mirror(&mut squares);
        let sums = (0..b.len()).map(|i| sums[(i, 0)] + self.weight * b[i]).collect();
        Sums { sums, squares, ..*self }
    }
}
