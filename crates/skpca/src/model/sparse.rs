//! Features and scores of sparse rows.

use rayon::prelude::*;

use super::{Model, distance, with_beta};
use crate::columns::Scaling;
use crate::dense::dot;
use crate::error::{Error, Result};
use crate::sparse::{SparseBasis, SparseRows};

impl Model {
    /// Like [`Model::transform`], for sparse rows, whose zeros cost nothing. The kernel must depend on inner products
    /// and norms only, and the columns must not be scaled.
    pub fn transform_sparse(&self, rows: &SparseRows) -> Result<Vec<f64>> {
        let (q, a) = (self.q(), &self.parts.coefficients);
        let mut out = vec![0.0; rows.n() * q];
        self.each_sparse_row(rows, &mut out, q, |_, _, centred, out| {
            out.iter_mut()
                .zip(a.col_iter())
                .for_each(|(out, a)| *out = a.iter().zip(centred).map(|(a, k)| a * k).sum());
        })?;
        Ok(out)
    }

    /// Like [`Model::score`], for sparse rows; the conditions of [`Model::transform_sparse`] apply.
    pub fn score_sparse(&self, rows: &SparseRows) -> Result<Vec<f64>> {
        let weights = with_beta(&self.parts.shrunk(), &self.parts.beta);
        let centre = self.far.as_ref().map(|far| (far, dot(&far.centre, &far.centre)));
        let mut out = vec![0.0; rows.n()];
        self.each_sparse_row(rows, &mut out, 1, |row, own, centred, out| {
            let product = |a: faer::ColRef<f64>| a.iter().zip(centred).map(|(a, k)| a * k).sum();
            let products: Vec<f64> = weights.col_iter().map(product).collect();
            let far = centre.map(|(far, squared)| far.weight * rows.squared_distance(row, &far.centre, squared));
            out[0] = distance(own, &products, self.mean_norm, self.parts.frame.as_ref()) + far.unwrap_or(0.0);
        })?;
        Ok(out)
    }

    /// Calls `each` with the number of every row, `k(x, x)`, `k_z(x) − μ` and the row's `width` numbers of `out`.
    fn each_sparse_row(
        &self,
        rows: &SparseRows,
        out: &mut [f64],
        width: usize,
        each: impl Fn(usize, f64, &[f64], &mut [f64]) + Sync,
    ) -> Result<()> {
        let basis = self.sparse_basis()?;
        basis.check_width(rows)?;
        out.par_chunks_mut(width).enumerate().for_each_init(
            || vec![0.0; basis.m()],
            |centred, (row, out)| {
                let own = basis.row(rows, row, centred);
                centred.iter_mut().zip(&self.parts.mu).for_each(|(k, mu)| *k -= mu);
                each(row, own, centred, out);
            },
        );
        self.finite(out, width)
    }

    /// Returns the support prepared for sparse rows, built by the first call.
    fn sparse_basis(&self) -> Result<&SparseBasis> {
        let scaling = self.parts.columns.scaling;
        if scaling != Scaling::None {
            let expected = "none: sparse rows that are centred are dense; scale them without centring beforehand";
            return Err(Error::parameter("scaling", scaling.name(), expected));
        }
        if self.sparse.get().is_none() {
            let basis = SparseBasis::new(self.kernel().as_ref(), &self.parts.support)?;
            let _ = self.sparse.set(basis);
        }
        Ok(self.sparse.get().expect("it was just made"))
    }
}
