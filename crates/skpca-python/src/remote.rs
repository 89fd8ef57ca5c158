//! Rows held by Python, mostly on other machines: the core requests rows by index and sums over all rows.

use std::ops::Range;
use std::sync::Mutex;

use numpy::ndarray::Ix2;
use numpy::{IntoPyArray, PyReadonlyArray};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use skpca::passes::{self, Part};
use skpca::{Error, Level, Points, Remote, Source};

use crate::arrays::{Classes, Table};
use crate::{compute, value_error};

/// An object with `shape`, `gather(numbers)` and `fold(stage, pass)`.
pub struct Elsewhere {
    n: usize,
    d: usize,
    rows: Py<PyAny>,
    raised: Mutex<Option<PyErr>>,
}

impl Elsewhere {
    pub fn new(rows: &Bound<'_, PyAny>) -> PyResult<Elsewhere> {
        let (n, d) = rows.getattr("shape")?.extract()?;
        Ok(Elsewhere { n, d, rows: rows.clone().unbind(), raised: Mutex::new(None) })
    }

    /// The exception that ended a fit, if Python raised one.
    pub fn raised(&self) -> Option<PyErr> {
        self.raised.lock().ok()?.take()
    }

    /// Calls Python; stores its first exception for the caller.
    fn ask<T>(&self, question: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<T>) -> Result<T, Error> {
        let answer = Python::attach(|py| question(py, self.rows.bind(py)));
        answer.map_err(|error| {
            if let Ok(mut raised) = self.raised.lock() {
                raised.get_or_insert(error);
            }
            Error::Interrupted
        })
    }
}

impl Source for Elsewhere {
    fn n(&self) -> usize {
        self.n
    }

    fn d(&self) -> usize {
        self.d
    }

    fn read(&self, rows: Range<usize>, room: &mut Vec<f64>) -> Result<(), Error> {
        *room = self.gather(&rows.collect::<Vec<_>>())?;
        Ok(())
    }

    fn gather(&self, rows: &[usize]) -> Result<Vec<f64>, Error> {
        self.ask(|py, object| {
            let numbers = rows.iter().map(|&row| row as i64).collect::<Vec<i64>>().into_pyarray(py);
            let found: PyReadonlyArray<'_, f64, Ix2> = object.call_method1("gather", (numbers,))?.extract()?;
            Ok(found.as_slice()?.to_vec())
        })
    }

    fn remote(&self) -> Option<&dyn Remote> {
        Some(self)
    }
}

impl Remote for Elsewhere {
    fn fold(&self, stage: &str, pass: &[u8]) -> Result<Vec<u8>, Error> {
        self.ask(|py, object| object.call_method1("fold", (stage, PyBytes::new(py, pass)))?.extract())
    }
}

/// Computes the sum of a pass over some rows, of which the first has the index `first`; `labels` are their class
/// indices.
#[pyfunction]
#[pyo3(signature = (sent, x, first, labels = None))]
pub fn run_pass<'py>(
    py: Python<'py>,
    sent: &[u8],
    x: Table<'py>,
    first: usize,
    labels: Option<Classes<'py>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let classes = |labels: &Classes| labels.values().iter().map(|&class| class as usize).collect::<Vec<_>>();
    let (columns, values, labels) = (x.columns(), x.values(), labels.as_ref().map(classes));
    let sum = compute(py, || {
        let rows = Points::new(columns, values)?;
        passes::run(sent, Part { rows: &rows, first, labels: labels.as_deref() })
    })?;
    Ok(PyBytes::new(py, &sum))
}

/// Merges the sums of a pass over several parts of the rows, in order.
#[pyfunction]
pub fn merge_sums<'py>(py: Python<'py>, sent: &[u8], sums: Vec<Vec<u8>>) -> PyResult<Bound<'py, PyBytes>> {
    let merged = compute(py, || passes::merge(sent, &sums.iter().map(Vec::as_slice).collect::<Vec<_>>()))?;
    Ok(PyBytes::new(py, &merged))
}

/// Whether a pass needs the classes of the rows.
#[pyfunction]
pub fn asks_for_labels(sent: &[u8]) -> PyResult<bool> {
    passes::asks_for_labels(sent).map_err(value_error)
}

/// Returns the instruction sets of the machines that computed a sum.
#[pyfunction]
pub fn levels(sum: &[u8]) -> PyResult<Vec<String>> {
    passes::levels(sum).map_err(value_error)
}

/// Returns the instruction set that this machine uses.
#[pyfunction]
pub fn level() -> &'static str {
    Level::Auto.instructions().map_or("auto", |found| found.level().name())
}
