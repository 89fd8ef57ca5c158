//! Python bindings: arrays in, arrays out, no mathematics. The interpreter's lock is released while we compute.

mod arrays;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use skpca::{Basis, Error, Fit, Labels, Points, Precision, Spec, Target, Watch, format};

use crate::arrays::{Classes, Table, Vector};

fn value_error(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn points<'a>(x: &'a Table) -> PyResult<Points<'a>> {
    Points::new(x.columns(), x.values()).map_err(value_error)
}

/// A name, a command-line spelling or a JSON object.
fn spec(text: &str) -> PyResult<Spec> {
    match text.starts_with('{') {
        true => serde_json::from_str(text).map_err(value_error).and_then(|v| Spec::from_json(&v).map_err(value_error)),
        false => text.parse().map_err(value_error),
    }
}

fn precision(single: bool) -> Precision {
    if single { Precision::Single } else { Precision::Double }
}

fn rows<'py>(py: Python<'py>, values: Vec<f64>, columns: usize) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let shape = (values.len() / columns.max(1), columns);
    Ok(Array2::from_shape_vec(shape, values).map_err(value_error)?.into_pyarray(py))
}

/// One number a row of x, computed without the lock.
fn one_a_row<'py>(
    py: Python<'py>,
    x: &Table,
    each: impl Fn(&Points) -> Result<Vec<f64>, Error> + Send + Sync,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let points = points(x)?;
    Ok(py.detach(|| each(&points)).map_err(value_error)?.into_pyarray(py))
}

/// A fitted model.
#[pyclass(frozen, module = "skpca")]
struct Model(skpca::Model);

#[pymethods]
impl Model {
    /// Features of the rows of x.
    #[pyo3(signature = (x, single = false))]
    fn transform<'py>(&self, py: Python<'py>, x: Table<'py>, single: bool) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let points = points(&x)?;
        let out = py.detach(|| self.0.transform(&points, precision(single))).map_err(value_error)?;
        rows(py, out, self.0.q())
    }

    /// Novelty scores of the rows of x, higher is more novel.
    #[pyo3(signature = (x, single = false))]
    fn score<'py>(&self, py: Python<'py>, x: Table<'py>, single: bool) -> PyResult<Bound<'py, PyArray1<f64>>> {
        one_a_row(py, &x, |points| self.0.score(points, precision(single)))
    }

    /// Log-likelihood of the rows of x; models of the method likelihood only.
    #[pyo3(signature = (x, single = false))]
    fn log_likelihood<'py>(&self, py: Python<'py>, x: Table<'py>, single: bool) -> PyResult<Bound<'py, PyArray1<f64>>> {
        one_a_row(py, &x, |points| self.0.log_likelihood(points, precision(single)))
    }

    /// How the score of each row of x changes with each of its inputs.
    fn score_gradient<'py>(&self, py: Python<'py>, x: Table<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let points = points(&x)?;
        let out = py.detach(|| self.0.score_gradient(&points)).map_err(value_error)?;
        rows(py, out, points.d())
    }

    /// The share of training rows that score at least as high as each of these scores.
    fn p_values<'py>(&self, py: Python<'py>, scores: Vector<'py>) -> Bound<'py, PyArray1<f64>> {
        let known = &self.0.parts().scores;
        scores.values().iter().map(|score| known.p_value(*score)).collect::<Vec<f64>>().into_pyarray(py)
    }

    /// What is stored, as arrays: support (m × d, scaled), coefficients (m × q), means, mean, variances, shift, scale, and
    /// where they are there rows and frame (q × q′).
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let parts = self.0.parts();
        let matrix =
            |a: &faer::Mat<f64>| Array2::from_shape_fn((a.nrows(), a.ncols()), |(i, k)| a[(i, k)]).into_pyarray(py);
        let arrays = PyDict::new(py);
        arrays.set_item("support", rows(py, parts.support.values().to_vec(), parts.support.d())?)?;
        arrays.set_item("coefficients", matrix(&parts.coefficients))?;
        let vectors = [
            ("means", &parts.means),
            ("mean", &parts.mean),
            ("variances", &parts.variances),
            ("shift", &parts.columns.shift),
            ("scale", &parts.columns.scale),
        ];
        for (name, values) in vectors {
            arrays.set_item(name, values.clone().into_pyarray(py))?;
        }
        if let Some(rows) = &parts.rows {
            arrays.set_item("rows", rows.iter().map(|&row| row as i64).collect::<Vec<i64>>().into_pyarray(py))?;
        }
        if let Some(frame) = &parts.frame {
            arrays.set_item("frame", matrix(frame))?;
        }
        Ok(arrays)
    }

    /// What the model is, as JSON.
    fn describe(&self) -> String {
        serde_json::Value::Object(format::describe(&self.0)).to_string()
    }

    /// The bytes of a model file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = Vec::new();
        format::write(&self.0, &mut bytes).map_err(value_error)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Reads the bytes of a model file.
    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Model> {
        format::read(bytes).map(Model).map_err(value_error)
    }
}

/// Looks for Ctrl-C now and then, and tells `progress` where the fit is.
struct Listener {
    progress: Option<Py<PyAny>>,
    last: Mutex<Instant>,
    /// What stopped the fit.
    raised: Mutex<Option<PyErr>>,
}

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(100);

impl Watch for Listener {
    fn at(&self, stage: &str, fraction: f64) -> bool {
        // Whoever finds it locked need not look too.
        let Ok(mut last) = self.last.try_lock() else { return true };
        if last.elapsed() < PAUSE {
            return true;
        }
        *last = Instant::now();
        let told = Python::attach(|py| {
            py.check_signals()?;
            self.progress.as_ref().map(|progress| progress.call1(py, (stage, fraction))).transpose()
        });
        told.map_err(|error| *self.raised.lock().expect("nobody panics here") = Some(error)).is_ok()
    }
}

/// Fits a model to the rows of x; labels are the classes of the rows, names those of the columns, progress is called with a stage and the share of it
/// that is done.
#[pyfunction]
#[pyo3(signature = (x, *, method = "expansion", kernel = "rbf", components = None, support = None, fidelity = None,
                    center = None, scaling = "standard", quantile = 0.95, seed = 0, labels = None,
                    names = None, progress = None))]
#[allow(clippy::too_many_arguments)]
fn fit(
    py: Python<'_>,
    x: Table<'_>,
    method: &str,
    kernel: &str,
    components: Option<usize>,
    support: Option<usize>,
    fidelity: Option<f64>,
    center: Option<bool>,
    scaling: &str,
    quantile: f64,
    seed: u64,
    labels: Option<Classes<'_>>,
    names: Option<Vec<String>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Model> {
    let target = match (support, fidelity) {
        (Some(_), Some(_)) => return Err(value_error("give support or fidelity, not both")),
        (Some(m), None) => Some(Target::Support(m)),
        (None, fidelity) => fidelity.map(Target::Fidelity),
    };
    let fit = Fit {
        method: spec(method)?,
        kernel: spec(kernel)?,
        components,
        target,
        center,
        scaling: scaling.parse().map_err(|e: Error| value_error(e))?,
        quantile,
        seed,
    };
    let points = points(&x)?;
    let labels = labels.as_ref().map(|labels| Labels::new(labels.values())).transpose().map_err(value_error)?;
    let listener = Listener { progress, last: Mutex::new(Instant::now()), raised: Mutex::new(None) };
    let run = || match &labels {
        Some(labels) => fit.run_labelled(&points, labels, names.clone(), &listener),
        None => fit.run(&points, names.clone(), &listener),
    };
    let fitted = py.detach(run);
    match listener.raised.into_inner().expect("nobody panics here") {
        Some(error) => Err(error),
        None => fitted.map(Model).map_err(value_error),
    }
}

/// K(X, Z).
#[pyfunction]
fn kernel<'py>(py: Python<'py>, spec_text: &str, x: Table<'py>, z: Table<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let identity = faer::Mat::identity(z.rows(), z.rows());
    multiply(py, spec_text, &x, &z, identity, false)
}

/// K(X, Z) A, without writing K.
#[pyfunction]
#[pyo3(signature = (spec_text, x, z, a, single = false))]
fn product<'py>(
    py: Python<'py>,
    spec_text: &str,
    x: Table<'py>,
    z: Table<'py>,
    a: Table<'py>,
    single: bool,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    if a.rows() != z.rows() {
        return Err(value_error(format!("a has {} rows, expected one per row of z: {}", a.rows(), z.rows())));
    }
    let weights = faer::Mat::from_fn(a.rows(), a.columns(), |i, j| a.values()[i * a.columns() + j]);
    multiply(py, spec_text, &x, &z, weights, single)
}

/// Does `rounds` rounds of multiply-adds on every thread; returns how many they were.
#[pyfunction]
fn multiply_adds(py: Python<'_>, single: bool, rounds: usize) -> u64 {
    py.detach(|| skpca::multiply_adds(precision(single), rounds))
}

fn multiply<'py>(
    py: Python<'py>,
    spec_text: &str,
    x: &Table,
    z: &Table,
    a: faer::Mat<f64>,
    single: bool,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let (queries, basis) = (points(x)?, points(z)?);
    if queries.d() != basis.d() {
        return Err(value_error(Error::Width { found: queries.d(), expected: basis.d() }));
    }
    let kernel: Arc<dyn skpca::kernel::Kernel> =
        skpca::kernel::build(&spec(spec_text)?, &basis, 0).map_err(value_error)?;
    let columns = a.ncols();
    let out = py.detach(|| {
        let basis = Basis::new(kernel, basis.into_owned());
        let weights = basis.weights(a);
        basis.product(&queries, &weights, precision(single))
    });
    rows(py, out, columns)
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Model>()?;
    module.add_function(wrap_pyfunction!(fit, module)?)?;
    module.add_function(wrap_pyfunction!(kernel, module)?)?;
    module.add_function(wrap_pyfunction!(multiply_adds, module)?)?;
    module.add_function(wrap_pyfunction!(product, module)?)
}
