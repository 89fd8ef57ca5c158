//! Sparse rows: borrowed CSR arrays.

use numpy::{Ix1, PyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray};
use pyo3::prelude::*;
use skpca::Error;

use crate::{Model, compute, rows, value_error};

/// Sparse rows, as the arrays of scipy's `csr_array` with ascending indices in each row.
#[pyclass(frozen, module = "skpca")]
pub struct SparseRows {
    indptr: Py<PyArray1<i64>>,
    indices: Py<PyArray1<i32>>,
    data: Py<PyArray1<f64>>,
    columns: usize,
}

/// The arrays of sparse rows, borrowed for reading.
pub struct Borrowed<'py> {
    indptr: PyReadonlyArray<'py, i64, Ix1>,
    indices: PyReadonlyArray<'py, i32, Ix1>,
    data: PyReadonlyArray<'py, f64, Ix1>,
    columns: usize,
}

#[pymethods]
impl SparseRows {
    #[new]
    fn new(
        indptr: Bound<'_, PyArray1<i64>>,
        indices: Bound<'_, PyArray1<i32>>,
        data: Bound<'_, PyArray1<f64>>,
        columns: usize,
    ) -> PyResult<SparseRows> {
        let rows = SparseRows { indptr: indptr.unbind(), indices: indices.unbind(), data: data.unbind(), columns };
        Ok(rows)
    }
}

impl SparseRows {
    pub fn borrowed<'py>(&self, py: Python<'py>) -> PyResult<Borrowed<'py>> {
        Ok(Borrowed {
            indptr: self.indptr.bind(py).try_readonly()?,
            indices: self.indices.bind(py).try_readonly()?,
            data: self.data.bind(py).try_readonly()?,
            columns: self.columns,
        })
    }
}

impl Borrowed<'_> {
    /// Returns the arrays as slices.
    pub fn parts(&self) -> PyResult<Arrays<'_>> {
        Ok(Arrays {
            indptr: self.indptr.as_slice()?,
            indices: self.indices.as_slice()?,
            data: self.data.as_slice()?,
            columns: self.columns,
        })
    }
}

/// Slices of those arrays.
#[derive(Clone, Copy)]
pub struct Arrays<'a> {
    indptr: &'a [i64],
    indices: &'a [i32],
    data: &'a [f64],
    columns: usize,
}

impl<'a> Arrays<'a> {
    pub fn rows(&self) -> Result<skpca::SparseRows<'a>, Error> {
        skpca::SparseRows::new(self.columns, self.indptr, self.indices, self.data)
    }
}

/// Computes features of sparse rows.
pub fn transform<'py>(py: Python<'py>, model: &Model, x: &SparseRows) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let borrowed = x.borrowed(py)?;
    let arrays = borrowed.parts()?;
    let found = compute(py, || model.0.transform_sparse(&arrays.rows()?))?;
    rows(py, found, model.0.q())
}

/// Computes scores of sparse rows.
pub fn score<'py>(py: Python<'py>, model: &Model, x: &SparseRows) -> PyResult<Bound<'py, PyArray<f64, Ix1>>> {
    let borrowed = x.borrowed(py)?;
    let arrays = borrowed.parts()?;
    Ok(PyArray1::from_vec(py, compute(py, || model.0.score_sparse(&arrays.rows()?))?))
}

/// Checks that models with a kernel take sparse rows; the error says why not.
#[pyfunction]
pub fn check_sparse(kernel: &str) -> PyResult<()> {
    skpca::check_sparse(&crate::spec(kernel)?).map_err(value_error)
}
