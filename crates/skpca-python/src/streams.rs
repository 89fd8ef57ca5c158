//! Rows that arrive in blocks, or are in a file: a fit reads them in passes.

use std::path::PathBuf;

use numpy::PyArray2;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use skpca::{Points, Random, Source, Watch};
use skpca_files::{Element, FileRows};

use crate::arrays::Table;
use crate::remote::Elsewhere;
use crate::sparse::SparseRows;
use crate::{rows, value_error};

/// Number of the random stream that the bindings draw from.
const KEPT_ROWS: u32 = 100;

/// Rows in a private temporary file, or in a file of the user.
#[pyclass(frozen, module = "skpca")]
pub struct Stream(pub FileRows);

#[pymethods]
impl Stream {
    /// Opens an array in a file: n rows of `columns` numbers from byte `start` on, in 32 or 64 bits.
    #[staticmethod]
    fn open(path: PathBuf, start: u64, n: usize, columns: usize, single: bool) -> PyResult<Stream> {
        let element = if single { Element::Single } else { Element::Double };
        let named = |error: std::io::Error| std::io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        Ok(Stream(FileRows::open(&path, start, (n, columns), element).map_err(named)?))
    }

    /// Number of rows and columns.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.0.n(), self.0.d())
    }

    /// Draws `count` rows at random, in order.
    fn sample<'py>(&self, py: Python<'py>, count: usize, seed: u64) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let numbers = Random::numbered(seed, KEPT_ROWS).sample(self.0.n(), count);
        rows(py, py.detach(|| self.0.gather(&numbers)).map_err(value_error)?, self.0.d())
    }
}

impl Stream {
    /// Runs `fit` on these rows, with `memory` bytes, or by default a share of the free memory.
    pub fn fit(
        &self,
        fit: &skpca::Fit,
        names: Option<Vec<String>>,
        memory: Option<usize>,
        watch: &dyn Watch,
    ) -> Result<skpca::Model, skpca::Error> {
        let memory = memory.unwrap_or_else(skpca_files::memory::share);
        self.0.unless_changed(fit.run_streamed(&self.0, names, memory, watch))
    }
}

/// Writes blocks of rows to a temporary file.
#[pyclass(module = "skpca")]
pub struct Spool(Option<skpca_files::Spool>);

#[pymethods]
impl Spool {
    /// Creates a file for rows of `columns` columns, in a directory.
    #[new]
    fn new(directory: PathBuf, columns: usize) -> PyResult<Spool> {
        let named = |error: std::io::Error| {
            std::io::Error::new(
                error.kind(),
                format!("{}: no temporary file for the rows: {error}", directory.display()),
            )
        };
        Ok(Spool(Some(skpca_files::Spool::begin(&directory, columns).map_err(named)?)))
    }

    /// Adds rows, which must be finite.
    fn add(&mut self, py: Python<'_>, x: Table<'_>) -> PyResult<()> {
        let spool = self.0.as_mut().ok_or_else(|| value_error("the rows are complete"))?;
        let (values, columns) = (x.values(), x.columns());
        if x.rows() == 0 {
            return Ok(());
        }
        let first = spool.rows();
        py.detach(|| {
            Points::new(columns, values).map_err(|error| match error {
                skpca::Error::NotFinite { row, column, value } => {
                    value_error(skpca::Error::NotFinite { row: first + row, column, value })
                }
                other => value_error(other),
            })?;
            Ok(spool.add(values)?)
        })
    }

    /// Finishes the file; returns all rows, which can be read repeatedly.
    fn finish(&mut self) -> PyResult<Stream> {
        let spool = self.0.take().ok_or_else(|| value_error("the rows are complete"))?;
        if spool.rows() == 0 {
            return Err(PyValueError::new_err("X: expected at least one row, found blocks without any"));
        }
        Ok(Stream(spool.finish()?))
    }
}

/// Training rows: in memory, dense or sparse, a stream, or rows that Python gathers.
pub enum Training<'py> {
    Table(Table<'py>),
    Sparse(Bound<'py, SparseRows>),
    Stream(Py<Stream>),
    Elsewhere(Elsewhere),
}

impl<'py> FromPyObject<'_, 'py> for Training<'py> {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Training<'py>> {
        if let Ok(stream) = given.cast::<Stream>() {
            return Ok(Training::Stream(stream.to_owned().unbind()));
        }
        if let Ok(rows) = given.cast::<SparseRows>() {
            return Ok(Training::Sparse(rows.to_owned()));
        }
        if given.hasattr("fold")? && given.hasattr("gather")? {
            return Elsewhere::new(&given).map(Training::Elsewhere);
        }
        given.extract().map(Training::Table)
    }
}

/// Whether an array and a copy of it fit in `memory` bytes, or by default in a share of the free memory.
#[pyfunction]
#[pyo3(signature = (n, columns, memory = None))]
pub fn fits_memory(n: usize, columns: usize, memory: Option<usize>) -> bool {
    n.saturating_mul(columns).saturating_mul(2 * size_of::<f64>()) <= memory.unwrap_or_else(skpca_files::memory::share)
}
