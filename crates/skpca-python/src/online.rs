//! Online models: they learn from batches of rows.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use skpca::{Learning, Points, format};

use crate::arrays::{Table, Vector};
use crate::{Model, compute, value_error};

/// A model that learns from batches of rows.
///
/// `Online(model, x)` continues from a model that was just fitted to `x`; `update` scores rows, then learns from them;
/// `model()` is the current model. `stored()` is the same with the state needed to continue, which its file keeps.
#[pyclass(module = "skpca")]
pub struct Online(skpca::Online);

fn copy_of(model: &Model) -> skpca::Result<skpca::Model> {
    skpca::Model::new(model.0.parts().clone())
}

/// Overrides the default learning options by the given ones.
fn learning(usual: Learning, forget: f64, alarms: Option<bool>, most: Option<usize>) -> Learning {
    Learning { forget, alarms: alarms.unwrap_or(usual.alarms), most, ..usual }
}

#[pymethods]
impl Online {
    #[new]
    #[pyo3(signature = (model, x, sample_weight = None, *, forget = 1.0, alarms = None, reservoir = None, most = None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        model: &Model,
        x: Table<'_>,
        sample_weight: Option<Vector<'_>>,
        forget: f64,
        alarms: Option<bool>,
        reservoir: Option<usize>,
        most: Option<usize>,
    ) -> PyResult<Online> {
        let (columns, values) = (x.columns(), x.values());
        let weights = sample_weight.as_ref().map(|weights| weights.values());
        let usual = Learning::of(&model.0);
        let learning =
            Learning { reservoir: reservoir.unwrap_or(usual.reservoir), ..learning(usual, forget, alarms, most) };
        let begin = || {
            let rows = Points::new(columns, values)?;
            skpca::Online::new(copy_of(model)?, &rows, weights, learning, &())
        };
        compute(py, begin).map(Online)
    }

    /// Continues from a stored model; None if it has no state to continue from.
    #[staticmethod]
    fn resume(py: Python<'_>, model: &Model) -> PyResult<Option<Online>> {
        let known = model.0.parts().learned.as_ref().is_some_and(|learned| learned.state.is_some());
        if !known {
            return Ok(None);
        }
        compute(py, || skpca::Online::resume(copy_of(model)?)).map(Online).map(Some)
    }

    /// Scores rows, then learns from them; returns the numbers of rows, alarms and learned rows, how often the points
    /// moved, and how many joined and left.
    #[pyo3(signature = (x, sample_weight = None))]
    fn update<'py>(
        &mut self,
        py: Python<'py>,
        x: Table<'py>,
        sample_weight: Option<Vector<'py>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (columns, values) = (x.columns(), x.values());
        let weights = sample_weight.as_ref().map(|weights| weights.values());
        let online = &mut self.0;
        let update = compute(py, move || online.update(&Points::new(columns, values)?, weights, &()))?;
        let about = PyDict::new(py);
        about.set_item("rows", update.rows)?;
        about.set_item("alarms", update.alarms)?;
        about.set_item("learned", update.learned)?;
        about.set_item("moved", update.moved)?;
        about.set_item("joined", update.joined)?;
        about.set_item("left", update.left)?;
        Ok(about)
    }

    /// Changes the learning options from now on.
    #[pyo3(signature = (*, forget = 1.0, alarms = None, most = None))]
    fn learn_by(&mut self, forget: f64, alarms: Option<bool>, most: Option<usize>) -> PyResult<()> {
        self.0.learn_by(learning(self.0.learning(), forget, alarms, most)).map_err(value_error)
    }

    /// The current model.
    fn model(&self, py: Python<'_>) -> PyResult<Model> {
        compute(py, || skpca::Model::new(self.0.model().parts().clone())).map(Model)
    }

    /// The current model with the state needed to continue: sums, recent scores and the rows of the reservoir.
    fn stored(&self, py: Python<'_>) -> PyResult<Model> {
        compute(py, || self.0.stored()).map(Model)
    }

    /// Number of rows scored so far, learned or not.
    #[getter]
    fn n_samples_seen(&self) -> usize {
        self.0.seen()
    }

    /// Pickles and copies use the bytes of a model file.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let mut bytes = Vec::new();
        format::write(&self.stored(py)?.0, &mut bytes).map_err(value_error)?;
        Ok((py.get_type::<Online>().getattr("from_bytes")?, (PyBytes::new(py, &bytes),)))
    }

    /// Reads the bytes of a stored model; used by pickle.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Online> {
        compute(py, || skpca::Online::resume(format::read(bytes)?)).map(Online)
    }
}
