//! Sparse loadings of a table or a covariance matrix.

use numpy::IntoPyArray;
use numpy::ndarray::Array2;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use skpca::{Error, Fit, Points, Scaling, Watch};

use crate::arrays::Table;
use crate::{components_argument, progress, spec, target, value_error};

/// Computes sparse loadings of the rows of x, or of the covariance matrix x: a dict of arrays, and the report.
#[pyfunction]
#[pyo3(signature = (x, *, method, components = None, support = None, fidelity = None, center = true,
                    scaling = "none", covariance = false, progress = None))]
#[allow(clippy::too_many_arguments)]
pub fn loadings<'py>(
    py: Python<'py>,
    x: Table<'py>,
    method: &str,
    #[pyo3(from_py_with = components_argument)] components: Option<usize>,
    support: Option<usize>,
    fidelity: Option<f64>,
    center: bool,
    scaling: &str,
    covariance: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let method = spec(method)?;
    let fit = Fit {
        kernel: skpca::method::entry(&method).map_err(value_error)?.kernel(),
        method,
        components,
        target: target(support, fidelity)?,
        center: Some(center),
        scaling: if covariance { Scaling::None } else { scaling.parse().map_err(|e: Error| value_error(e))? },
        ..Fit::default()
    };
    let (columns, values) = (x.columns(), x.values());
    let run = |watch: &dyn Watch| {
        let points = Points::new(columns, values)?;
        if covariance { fit.loadings_of_covariance(&points, watch) } else { fit.loadings(&points, watch) }
    };
    let found = progress::watched(py, progress, run)?;
    let answer = PyDict::new(py);
    let (d, q) = (found.vectors.nrows(), found.vectors.ncols());
    let components = Array2::from_shape_fn((q, d), |(k, j)| found.vectors[(j, k)]);
    answer.set_item("components", components.into_pyarray(py))?;
    let vectors = [
        ("variances", found.variances),
        ("adjusted", found.adjusted),
        ("penalties", found.penalties),
        ("mean", found.mean),
    ];
    for (name, values) in vectors {
        answer.set_item(name, values.into_pyarray(py))?;
    }
    let numbers =
        [("total", found.total), ("captured", found.captured), ("fidelity", found.fidelity), ("ridge", found.ridge)];
    for (name, value) in numbers {
        answer.set_item(name, value)?;
    }
    let report = PyDict::new(py);
    report.set_item("objective", found.report.objective)?;
    report.set_item("gap", found.report.gap)?;
    report.set_item("rounds", found.report.rounds)?;
    report.set_item("converged", found.report.converged)?;
    report.set_item("notes", found.report.notes)?;
    answer.set_item("report", report)?;
    Ok(answer)
}
