//! Paths over many penalties, or over numbers of points.

use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use skpca::{Error, Fit, Points};

use crate::arrays::{Table, Vector};
use crate::{progress, spec, value_error};

/// Builds a fit without a target from the arguments of [`path`] and [`sizes`].
fn fit_of(given: &Bound<'_, PyDict>) -> PyResult<Fit> {
    let item = |name: &str| given.get_item(name)?.ok_or_else(|| value_error(format!("{name} is missing")));
    Ok(Fit {
        method: spec(&item("method")?.extract::<String>()?)?,
        kernel: spec(&item("kernel")?.extract::<String>()?)?,
        components: item("components")?.extract()?,
        center: item("center")?.extract()?,
        scaling: item("scaling")?.extract::<String>()?.parse().map_err(|e: Error| value_error(e))?,
        seed: item("seed")?.extract()?,
        ..Fit::default()
    })
}

/// Returns, for each of `shares` of the largest useful penalty: penalty, rows in use, fidelity, objective, gap,
/// iterations, converged.
#[pyfunction]
#[pyo3(signature = (x, shares, **given))]
pub fn path<'py>(
    py: Python<'py>,
    x: Table<'py>,
    shares: Vector<'py>,
    given: Option<&Bound<'py, PyDict>>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let fit = fit_of(given.unwrap_or(&PyDict::new(py)))?;
    let (columns, values, shares) = (x.columns(), x.values(), shares.values());
    let steps = progress::watched(py, None, |watch| fit.path(&Points::new(columns, values)?, shares, watch))?;
    let step = |step: skpca::Step| {
        let out = PyDict::new(py);
        out.set_item("penalty", step.penalty)?;
        out.set_item("support", step.rows.iter().map(|&row| row as i64).collect::<Vec<_>>().into_pyarray(py))?;
        out.set_item("fidelity", step.fidelity)?;
        out.set_item("objective", step.report.objective)?;
        out.set_item("gap", step.report.gap)?;
        out.set_item("n_iter", step.report.rounds)?;
        out.set_item("converged", step.report.converged)?;
        Ok(out)
    };
    steps.into_iter().map(step).collect()
}

/// Returns the numbers of points up to `most`, each with its fidelity.
#[pyfunction]
#[pyo3(signature = (x, most, **given))]
pub fn sizes<'py>(
    py: Python<'py>,
    x: Table<'py>,
    most: usize,
    given: Option<&Bound<'py, PyDict>>,
) -> PyResult<Vec<(usize, f64)>> {
    let fit = fit_of(given.unwrap_or(&PyDict::new(py)))?;
    let (columns, values) = (x.columns(), x.values());
    progress::watched(py, None, |watch| fit.fidelities(&Points::new(columns, values)?, most, watch))
}
