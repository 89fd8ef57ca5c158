//! Python bindings: arrays in, arrays out, no mathematics. The interpreter lock is released during computations.

#![forbid(unsafe_code)]

mod arrays;
mod loadings;
mod moments;
mod online;
mod paths;
mod progress;
mod remote;
mod sparse;
mod streams;
mod threads;

use std::path::PathBuf;

use numpy::ndarray::{Array2, Dimension, Ix1, Ix2};
use numpy::{Element, IntoPyArray, PyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict};
use skpca::{Basis, Error, Fit, Given, Labels, Points, Precision, Spec, Target, UncheckedRows, Watch, format};

use crate::arrays::{Classes, Queries, Table, Vector, output};
use crate::moments::Moments;
use crate::online::Online;
use crate::sparse::SparseRows;
use crate::streams::{Spool, Stream, Training};

fn value_error(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Runs `work` on the thread pool, without the interpreter lock.
fn compute<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T, Error> + Send) -> PyResult<T> {
    threads::install(py, work)?.map_err(value_error)
}

/// Runs `work` on the rows of x, on the thread pool.
fn compute_of<T: Send>(py: Python<'_>, x: &Table, work: impl FnOnce(Points) -> Result<T, Error> + Send) -> PyResult<T> {
    let (columns, values) = (x.columns(), x.values());
    compute(py, move || work(Points::new(columns, values)?))
}

/// Parses a name, a command-line spec or a JSON object.
fn spec(text: &str) -> PyResult<Spec> {
    if !text.starts_with('{') {
        return text.parse().map_err(value_error);
    }
    let object = serde_json::from_str(text).map_err(value_error)?;
    Spec::from_json(&object).map_err(value_error)
}

fn precision(single: bool) -> Precision {
    if single { Precision::Single } else { Precision::Double }
}

fn rows<'py>(py: Python<'py>, values: Vec<f64>, columns: usize) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let shape = (values.len() / columns.max(1), columns);
    Ok(Array2::from_shape_vec(shape, values).map_err(value_error)?.into_pyarray(py))
}

/// Numbers of rows, of values and of multiply-adds up to which the core uses no threads, with a margin.
const FEW_ROWS: usize = 256;
const FEW_VALUES: usize = 1 << 16;
const LITTLE_WORK: usize = 1 << 19;

/// A fitted model.
#[pyclass(frozen, module = "skpca")]
struct Model(skpca::Model);

impl Model {
    /// Writes to `out` what `work` computes for the rows of x by a product of kernel values with `columns` columns.
    /// A few rows are computed on this thread: switching threads would take ten times as long.
    ///
    /// numpy allocates the memory, with huge pages: the system provides small pages more slowly than they are filled.
    fn pass<'py, T: Element, D: Dimension>(
        &self,
        x: &Queries<'py>,
        columns: usize,
        out: Bound<'py, PyArray<T, D>>,
        work: impl FnOnce(UncheckedRows, &mut [T]) -> Result<(), Error> + Send,
    ) -> PyResult<Bound<'py, PyArray<T, D>>> {
        let ((rows, width), values) = (x.shape(), x.values());
        let mut room = out.try_readwrite()?;
        let to = room.as_slice_mut()?;
        let work = || work(UncheckedRows::new(width, values)?, to);
        let cost = rows * width.max(columns).saturating_mul(2 * self.0.m());
        if rows > FEW_ROWS || rows * width > FEW_VALUES || cost > LITTLE_WORK {
            compute(out.py(), work)?;
        } else {
            out.py().detach(work).map_err(value_error)?;
        }
        drop(room);
        Ok(out)
    }
}

#[pymethods]
impl Model {
    /// Features of the rows of x, in float32 if x is float32 and `single` is set. They are written to `out` if it is
    /// given: an array of that type, n_rows × n_components, in C order.
    #[pyo3(signature = (x, single = false, out = None))]
    fn transform<'py>(
        &self,
        py: Python<'py>,
        x: Queries<'py>,
        single: bool,
        out: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (q, precision) = (self.0.q(), precision(single));
        let shape = Ix2(x.shape().0, q);
        if single && matches!(x, Queries::Single(_)) {
            let out = output(py, out, shape)?;
            let out = self.pass(&x, q, out, |rows, out| self.0.transform_into_single(rows, precision, out))?;
            return Ok(out.into_any());
        }
        let out = output(py, out, shape)?;
        Ok(self.pass(&x, q, out, |rows, out| self.0.transform_into(rows, precision, out))?.into_any())
    }

    /// Novelty scores of the rows of x, higher is more novel; written to `out` if it is given, an array of float64, one
    /// per row.
    #[pyo3(signature = (x, single = false, out = None))]
    fn score<'py>(
        &self,
        py: Python<'py>,
        x: Queries<'py>,
        single: bool,
        out: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let out = output(py, out, Ix1(x.shape().0))?;
        self.pass(&x, self.0.q() + 1, out, |rows, out| self.0.score_into(rows, precision(single), out))
    }

    /// Features of sparse rows.
    fn transform_sparse<'py>(&self, py: Python<'py>, x: &SparseRows) -> PyResult<Bound<'py, PyArray2<f64>>> {
        sparse::transform(py, self, x)
    }

    /// Novelty scores of sparse rows.
    fn score_sparse<'py>(&self, py: Python<'py>, x: &SparseRows) -> PyResult<Bound<'py, PyArray1<f64>>> {
        sparse::score(py, self, x)
    }

    /// Log-likelihood of the rows of x, for models with a density only.
    #[pyo3(signature = (x, single = false))]
    fn log_likelihood<'py>(
        &self,
        py: Python<'py>,
        x: Queries<'py>,
        single: bool,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let out = PyArray1::zeros(py, x.shape().0, false);
        self.pass(&x, self.0.m() + 1, out, |rows, out| {
            out.copy_from_slice(&self.0.log_likelihood(rows, precision(single))?);
            Ok(())
        })
    }

    /// Derivatives of the score of each row of x with respect to its inputs.
    fn score_gradient<'py>(&self, py: Python<'py>, x: Table<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let out = compute_of(py, &x, |points| self.0.score_gradient(&points))?;
        rows(py, out, x.columns())
    }

    /// The share of each input in the squared gradients of the components.
    fn importance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(compute(py, || self.0.importance())?.into_pyarray(py))
    }

    /// The contribution of each input to the score of each row of x, and the values that the model expects.
    #[allow(clippy::type_complexity)]
    fn contributions<'py>(
        &self,
        py: Python<'py>,
        x: Table<'py>,
    ) -> PyResult<(Bound<'py, PyArray2<f64>>, Bound<'py, PyArray2<f64>>)> {
        let found = compute_of(py, &x, |points| self.0.contributions(&points))?;
        let array =
            |a: &faer::Mat<f64>| Array2::from_shape_fn((a.nrows(), a.ncols()), |(i, k)| a[(i, k)]).into_pyarray(py);
        Ok((array(&found.contributions), array(&found.expected)))
    }

    /// SPE and T² of each row of x.
    #[allow(clippy::type_complexity)]
    fn statistics<'py>(
        &self,
        py: Python<'py>,
        x: Table<'py>,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>)> {
        let found = compute_of(py, &x, |points| self.0.statistics(&points))?;
        let (spe, t2): (Vec<f64>, Vec<f64>) = found.iter().map(|found| (found.spe, found.t2)).unzip();
        Ok((spe.into_pyarray(py), t2.into_pyarray(py)))
    }

    /// The share of training rows that score at least as high as each of these scores.
    fn p_values<'py>(&self, py: Python<'py>, scores: Vector<'py>) -> Bound<'py, PyArray1<f64>> {
        let known = &self.0.parts().scores;
        scores.values().iter().map(|score| known.p_value(*score)).collect::<Vec<f64>>().into_pyarray(py)
    }

    /// The model as arrays: support (m × d, scaled), coefficients (m × q), mu, beta, variances, shift, scale, and, if
    /// the model has them, rows, frame (q × q′) and the weights of a density's points.
    #[pyo3(signature = (support = true))]
    fn arrays<'py>(&self, py: Python<'py>, support: bool) -> PyResult<Bound<'py, PyDict>> {
        let parts = self.0.parts();
        let matrix =
            |a: &faer::Mat<f64>| Array2::from_shape_fn((a.nrows(), a.ncols()), |(i, k)| a[(i, k)]).into_pyarray(py);
        let arrays = PyDict::new(py);
        if support {
            arrays.set_item("support", rows(py, parts.support.values().to_vec(), parts.support.d())?)?;
        }
        arrays.set_item("coefficients", matrix(&parts.coefficients))?;
        let vectors = [
            ("mu", &parts.mu),
            ("beta", &parts.beta),
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
        if let Some(weights) = parts.density.as_ref().and_then(|density| density.weights.as_ref()) {
            arrays.set_item("weights", weights.clone().into_pyarray(py))?;
        }
        Ok(arrays)
    }

    /// Description of the model, as JSON.
    fn describe(&self) -> String {
        serde_json::Value::Object(format::describe(&self.0)).to_string()
    }

    /// The requested parameters as JSON, with those given by the caller; None for files of older versions.
    fn request(&self) -> Option<String> {
        self.0.parts().request.as_ref().map(|request| request.to_json().to_string())
    }

    /// A message if most rows of x are far outside the range of the training rows.
    fn far_outside(&self, x: Queries<'_>) -> Option<String> {
        let rows = UncheckedRows::new(x.shape().1, x.values()).ok()?;
        self.0.far_outside(rows).map(|far| far.to_string())
    }

    /// The same model for unscaled rows, including a scaler, x ↦ (x − shift) / scale, that was applied before it.
    /// `rule` is "standard" or "minmax" if the scaler is one of these, `names` are those of its columns.
    #[pyo3(signature = (shift, scale, rule = None, names = None, words = None))]
    fn with_scaler(
        &self,
        py: Python<'_>,
        shift: Vector<'_>,
        scale: Vector<'_>,
        rule: Option<&str>,
        names: Option<Vec<String>>,
        words: Option<&str>,
    ) -> PyResult<Model> {
        let rule = rule.map(|rule| rule.parse().map_err(|e: Error| value_error(e))).transpose()?;
        let words = words.map(serde_json::from_str).transpose().map_err(value_error)?;
        let (shift, scale) = (shift.values(), scale.values());
        compute(py, || {
            let mut model = skpca::Model::new(self.0.parts().clone())?.with_scaler(shift, scale, rule, names)?;
            words.into_iter().for_each(|words| model.request_in(words));
            Ok(Model(model))
        })
    }

    /// The bytes of a model file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = Vec::new();
        format::write(&self.0, &mut bytes).map_err(value_error)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Writes a model file, completely or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let written = py.detach(|| skpca_files::write(&path, |to| format::write(&self.0, to)));
        Ok(written.map_err(|error| std::io::Error::new(error.kind(), format!("{}: {error}", path.display())))?)
    }

    /// Empty moments over the support, to which rows can be added.
    fn moments(&self, py: Python<'_>) -> PyResult<Moments> {
        moments::none(py, self)
    }

    /// The model whose components are the best over the support for the rows in `moments`.
    fn refit(&self, py: Python<'_>, moments: &Moments) -> PyResult<Model> {
        moments::refit(py, self, moments)
    }

    /// The bytes of an export: `kind` is the file extension, "onnx", "h" or "sql".
    #[pyo3(signature = (kind, double = false, name = "skpca", keep = Vec::new()))]
    fn export<'py>(
        &self,
        py: Python<'py>,
        kind: &str,
        double: bool,
        name: &str,
        keep: Vec<String>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let format = skpca_export::Format::named(kind).map_err(value_error)?;
        let options = skpca_export::Options { double, name: name.into(), keep };
        Ok(PyBytes::new(py, &skpca_export::export(&self.0, format, &options).map_err(value_error)?))
    }

    /// Pickles and copies are model files.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((py.get_type::<Model>().getattr("from_bytes")?, (self.to_bytes(py)?,)))
    }

    /// Reads the bytes of a model file.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Model> {
        compute(py, || format::read(bytes)).map(Model)
    }
}

/// Extracts an integer within bounds; rejects booleans, which are integers in Python.
fn whole<T: TryFrom<u64>>(name: &str, value: &Bound<'_, PyAny>, least: u64) -> PyResult<T> {
    let message = || format!("{name} = {value}: expected an integer from {least} to 2**64 - 1");
    if value.is_instance_of::<PyBool>() {
        return Err(PyTypeError::new_err(message()));
    }
    match value.extract::<u64>() {
        Ok(number) if number >= least => T::try_from(number).map_err(|_| PyValueError::new_err(message())),
        Err(error) if error.is_instance_of::<PyTypeError>(value.py()) => Err(PyTypeError::new_err(message())),
        _ => Err(PyValueError::new_err(message())),
    }
}

fn components_argument(value: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    if value.is_none() { Ok(None) } else { whole("components", value, 1).map(Some) }
}

fn support_argument(value: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    if value.is_none() { Ok(None) } else { whole("support", value, 1).map(Some) }
}

fn seed_argument(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    whole("seed", value, 0)
}

fn rounds_argument(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    whole("rounds", value, 0)
}

fn target(support: Option<usize>, fidelity: Option<f64>) -> PyResult<Option<Target>> {
    match (support, fidelity) {
        (Some(_), Some(_)) => Err(value_error("give support or fidelity, not both")),
        (Some(m), None) => Ok(Some(Target::Support(m))),
        (None, fidelity) => Ok(fidelity.map(Target::Fidelity)),
    }
}

/// Fits a model to the rows of x, dense or sparse. `landmarks` are points to keep, or `landmark_rows` row indices.
/// `labels` are the classes of the rows, `weights` their weights, `names` the names of the columns; `progress` is
/// called with a stage and the share of it that is done; `words`, a JSON object, is stored with the model unchanged;
/// `level` pins the instruction set of kernel evaluations. Rows of a [`Stream`] are read in passes, using `memory`
/// bytes.
#[pyfunction]
#[pyo3(signature = (x, *, method = "expansion", kernel = "rbf", components = None, support = None, fidelity = None,
                    center = None, scaling = "standard", quantile = 0.95, false_alarms = None, statistic = "distance", row_order = "auto",
                    score_fidelity = None, robust = false, seed = 0, level = "auto", labels = None, weights = None,
                    names = None, progress = None, words = None, landmarks = None, landmark_rows = None, memory = None))]
#[allow(clippy::too_many_arguments)]
fn fit(
    py: Python<'_>,
    x: Training<'_>,
    method: &str,
    kernel: &str,
    #[pyo3(from_py_with = components_argument)] components: Option<usize>,
    #[pyo3(from_py_with = support_argument)] support: Option<usize>,
    fidelity: Option<f64>,
    center: Option<bool>,
    scaling: &str,
    quantile: f64,
    false_alarms: Option<f64>,
    statistic: &str,
    row_order: &str,
    score_fidelity: Option<f64>,
    robust: bool,
    #[pyo3(from_py_with = seed_argument)] seed: u64,
    level: &str,
    labels: Option<Classes<'_>>,
    weights: Option<Vector<'_>>,
    names: Option<Vec<String>>,
    progress: Option<Py<PyAny>>,
    words: Option<&str>,
    landmarks: Option<Table<'_>>,
    landmark_rows: Option<Vec<usize>>,
    memory: Option<usize>,
) -> PyResult<Model> {
    let fit = Fit {
        method: spec(method)?,
        kernel: spec(kernel)?,
        components,
        target: target(support, fidelity)?,
        center,
        scaling: scaling.parse().map_err(|e: Error| value_error(e))?,
        quantile,
        false_alarms,
        statistic: statistic.parse().map_err(|e: Error| value_error(e))?,
        row_order: row_order.parse().map_err(|e: Error| value_error(e))?,
        score_fidelity,
        robust,
        seed,
        level: level.parse().map_err(|e| value_error(Error::from(e)))?,
    };
    let labels = labels.as_ref().map(|labels| Labels::new(labels.values())).transpose().map_err(value_error)?;
    let given = match (&landmarks, landmark_rows) {
        (Some(table), _) => {
            let points = Points::new(table.columns(), table.values()).map_err(value_error)?;
            Some(Given::Points(points.into_owned()))
        }
        (None, rows) => rows.map(Given::Rows),
    };
    let words = words.map(serde_json::from_str).transpose().map_err(value_error)?;
    let (labels, weights) = (labels.as_ref(), weights.as_ref().map(Vector::values));
    if given.is_some() && weights.is_some() {
        return Err(value_error("give landmarks or sample_weight, not both"));
    }
    if weights.is_some() && !matches!(x, Training::Table(_)) {
        return Err(value_error(
            "sample_weight: sparse rows and rows read in passes cannot have weights; give dense rows in memory",
        ));
    }
    let mut model = match &x {
        Training::Stream(stream) => {
            let rows = stream.get();
            progress::watched(py, progress, |watch: &dyn Watch| match given {
                Some(given) => fit.run_with_landmarks(&rows.0, given, names, watch),
                None => rows.fit(&fit, names, memory, watch),
            })?
        }
        Training::Sparse(x) => {
            if given.is_some() || labels.is_some() {
                return Err(value_error("sparse rows take no landmarks or labels: give dense rows"));
            }
            let borrowed = x.get().borrowed(py)?;
            let arrays = borrowed.parts()?;
            progress::watched(py, progress, |watch: &dyn Watch| fit.run_sparse(&arrays.rows()?, names, watch))?
        }
        Training::Elsewhere(rows) => {
            let fitted = progress::watched(py, progress, |watch: &dyn Watch| match given {
                Some(given) => fit.run_with_landmarks(rows, given, names, watch),
                None => fit.run_remote(rows, labels, names, watch),
            });
            fitted.map_err(|error| rows.raised().unwrap_or(error))?
        }
        Training::Table(x) => {
            let (columns, values) = (x.columns(), x.values());
            progress::watched(py, progress, |watch: &dyn Watch| {
                let points = Points::new(columns, values)?;
                match given {
                    Some(given) => fit.run_with_landmarks(&points, given, names, watch),
                    None => fit.train(skpca::Training { points: &points, labels, weights, names, watch }),
                }
            })?
        }
    };
    words.into_iter().for_each(|words| model.request_in(words));
    Ok(Model(model))
}

/// Converts a spec to JSON: `l21,penalty=0.1` becomes `{"name": "l21", "penalty": 0.1}`.
#[pyfunction]
fn parse_spec(text: &str) -> PyResult<String> {
    Ok(spec(text)?.to_json().to_string())
}

/// The registry of methods, as a JSON list.
#[pyfunction]
fn methods() -> String {
    let all: Vec<serde_json::Value> = skpca::method::METHODS.iter().map(|entry| entry.to_json()).collect();
    serde_json::Value::from(all).to_string()
}

/// The registry of kernels, as a JSON list.
#[pyfunction]
fn kernels() -> String {
    let all: Vec<serde_json::Value> = skpca::kernel::KERNELS.iter().map(|entry| entry.to_json()).collect();
    serde_json::Value::from(all).to_string()
}

/// The kernel matrix K(X, Z).
#[pyfunction]
fn kernel<'py>(py: Python<'py>, spec_text: &str, x: Table<'py>, z: Table<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let identity = faer::Mat::identity(z.rows(), z.rows());
    multiply(py, spec_text, &x, &z, identity, false)
}

/// The product K(X, Z) A, without storing K.
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

/// Runs `rounds` rounds of multiply-adds on every thread; returns the number of multiply-adds.
#[pyfunction]
#[pyo3(signature = (single, rounds, level = "auto"))]
fn multiply_adds(
    py: Python<'_>,
    single: bool,
    #[pyo3(from_py_with = rounds_argument)] rounds: usize,
    level: &str,
) -> PyResult<u64> {
    compute(py, || skpca::multiply_adds(precision(single), level.parse()?, rounds))
}

/// Computes a factor of `rank` columns; returns the residual trace as a share of the trace.
#[pyfunction]
fn factorise(py: Python<'_>, spec_text: &str, x: Table<'_>, rank: usize) -> PyResult<f64> {
    let (spec, width, values) = (spec(spec_text)?, x.columns(), x.values());
    compute(py, || {
        let points = Points::new(width, values)?;
        let kernel = skpca::kernel::build(&spec, &points, 0)?;
        let stop = skpca::Stop { rank, residual: 0.0 };
        let factor = skpca::Factor::pivoted(&kernel, &points, stop, 0, &())?;
        Ok(factor.residual_trace / factor.trace)
    })
}

fn multiply<'py>(
    py: Python<'py>,
    spec_text: &str,
    x: &Table,
    z: &Table,
    a: faer::Mat<f64>,
    single: bool,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let (width, values) = (z.columns(), z.values());
    let (kernel, columns) = (spec(spec_text)?, a.ncols());
    let out = compute_of(py, x, |queries| {
        let points = Points::new(width, values)?;
        if queries.d() != points.d() {
            return Err(Error::Width { found: queries.d(), expected: points.d() });
        }
        let basis = Basis::new(skpca::kernel::build(&kernel, &points, 0)?, points.into_owned());
        Ok(basis.product(&queries, &basis.weights(a), precision(single)))
    })?;
    rows(py, out, columns)
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<Model>()?;
    module.add_class::<Moments>()?;
    module.add_class::<Spool>()?;
    module.add_class::<Stream>()?;
    module.add_class::<SparseRows>()?;
    module.add_class::<Online>()?;
    module.add_function(wrap_pyfunction!(factorise, module)?)?;
    module.add_function(wrap_pyfunction!(sparse::check_sparse, module)?)?;
    module.add_function(wrap_pyfunction!(fit, module)?)?;
    module.add_function(wrap_pyfunction!(streams::fits_memory, module)?)?;
    module.add_function(wrap_pyfunction!(kernel, module)?)?;
    module.add_function(wrap_pyfunction!(kernels, module)?)?;
    module.add_function(wrap_pyfunction!(loadings::loadings, module)?)?;
    module.add_function(wrap_pyfunction!(methods, module)?)?;
    module.add_function(wrap_pyfunction!(multiply_adds, module)?)?;
    module.add_function(wrap_pyfunction!(parse_spec, module)?)?;
    module.add_function(wrap_pyfunction!(paths::path, module)?)?;
    module.add_function(wrap_pyfunction!(product, module)?)?;
    module.add_function(wrap_pyfunction!(remote::asks_for_labels, module)?)?;
    module.add_function(wrap_pyfunction!(remote::level, module)?)?;
    module.add_function(wrap_pyfunction!(remote::levels, module)?)?;
    module.add_function(wrap_pyfunction!(remote::merge_sums, module)?)?;
    module.add_function(wrap_pyfunction!(remote::run_pass, module)?)?;
    module.add_function(wrap_pyfunction!(paths::sizes, module)?)?;
    module.add_function(wrap_pyfunction!(threads::use_threads, module)?)
}
