//! Moments of rows over the support of a model, which can be sent and added.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use skpca::Points;

use crate::arrays::{Table, Vector};
use crate::{Model, compute, value_error};

/// Sums over any number of rows from which a model can be computed; they are small and additive.
///
/// `model.moments()` returns empty moments; `add` adds rows, in the units of the user's table, `merge` and `+` add the
/// moments of other rows, and `model.refit(moments)` is the model of all these rows. They can be pickled and converted
/// to bytes, so that workers can each add their own rows.
#[pyclass(module = "skpca")]
#[derive(Clone)]
pub struct Moments(skpca::Moments);

#[pymethods]
impl Moments {
    /// Adds rows, with the weights `sample_weight`, 1 by default.
    #[pyo3(signature = (x, sample_weight = None))]
    fn add(&mut self, py: Python<'_>, x: Table<'_>, sample_weight: Option<Vector<'_>>) -> PyResult<()> {
        let (columns, values) = (x.columns(), x.values());
        let weights = sample_weight.as_ref().map(|weights| weights.values());
        let moments = &mut self.0;
        compute(py, move || moments.add(&Points::new(columns, values)?, weights, &()))
    }

    /// Adds the moments of other rows over the same model.
    fn merge(&mut self, other: &Moments) -> PyResult<()> {
        self.0.merge(&other.0).map_err(value_error)
    }

    /// Subtracts the moments of rows that were added, such as a fold.
    fn subtract(&mut self, other: &Moments) -> PyResult<()> {
        self.0.subtract(&other.0).map_err(value_error)
    }

    /// Multiplies all weights; with a factor below 1, rows so far count less than later rows.
    fn scale(&mut self, factor: f64) -> PyResult<()> {
        self.0.scale(factor).map_err(value_error)
    }

    /// The sum of both moments.
    fn __add__(&self, other: &Moments) -> PyResult<Moments> {
        let mut sum = self.clone();
        sum.merge(other)?;
        Ok(sum)
    }

    /// An independent copy.
    fn copy(&self) -> Moments {
        self.clone()
    }

    /// Number of rows that were added.
    #[getter]
    fn n_samples(&self) -> usize {
        self.0.rows()
    }

    /// The sum of their weights.
    #[getter]
    fn weight(&self) -> f64 {
        self.0.weight()
    }

    /// Bound on the error of the square root of a captured variance, due to points that joined after rows were added.
    #[getter]
    fn error(&self) -> f64 {
        self.0.error()
    }

    /// The moments as bytes; the same moments give the same bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    /// Reads moments written by `to_bytes`.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Moments> {
        compute(py, || skpca::Moments::from_bytes(bytes)).map(Moments)
    }

    /// Pickles and copies use the bytes.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((py.get_type::<Moments>().getattr("from_bytes")?, (self.to_bytes(py),)))
    }

    fn __repr__(&self) -> String {
        format!("Moments(n_samples={}, weight={}, n_support={})", self.0.rows(), self.0.weight(), self.0.m())
    }
}

/// Returns empty moments over the support of a model.
pub fn none(py: Python<'_>, model: &Model) -> PyResult<Moments> {
    compute(py, || model.0.moments(&())).map(Moments)
}

/// Returns the model of the rows in `moments`.
pub fn refit(py: Python<'_>, model: &Model, moments: &Moments) -> PyResult<Model> {
    compute(py, || model.0.refit(&moments.0, &())).map(Model)
}
