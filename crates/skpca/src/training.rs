//! A training table with its labels, weights and column names.

use crate::error::Result;
use crate::fit::Fit;
use crate::labels::Labels;
use crate::model::Model;
use crate::plan::Data;
use crate::points::Points;
use crate::watch::Watch;

/// A training table with optional labels, weights, column names and progress callback.
///
/// ```
/// use skpca::{Fit, Training, toys};
///
/// let rows = toys::parabola(0);
/// let model = Fit::default().train(&rows)?;
/// let names = Some(vec!["x".to_string(), "y".to_string()]);
/// let named = Fit::default().train(Training { names, ..Training::of(&rows) })?;
/// assert!(model.m() == named.m() && named.parts().columns.names.is_some());
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone)]
pub struct Training<'a> {
    /// The rows.
    pub points: &'a Points<'a>,
    /// The class of each row, for methods and kernels that need labels.
    pub labels: Option<&'a Labels>,
    /// The weight of each row, equivalent to repeating it that many times; rows of weight 0 are ignored. Default: 1.
    pub weights: Option<&'a [f64]>,
    /// The column names.
    pub names: Option<Vec<String>>,
    /// Receives the progress of the fit, and may stop it.
    pub watch: &'a dyn Watch,
}

impl<'a> Training<'a> {
    /// Creates a training table of rows alone.
    pub fn of(points: &'a Points<'a>) -> Training<'a> {
        Training { points, labels: None, weights: None, names: None, watch: &() }
    }
}

impl<'a> From<&'a Points<'a>> for Training<'a> {
    fn from(points: &'a Points<'a>) -> Training<'a> {
        Training::of(points)
    }
}

impl Fit {
    /// Fits a model to a table: `fit.train(&points)`, or with labels, weights or names, [`Training`].
    pub fn train<'a>(&self, table: impl Into<Training<'a>>) -> Result<Model> {
        let Training { points, labels, weights, names, watch } = table.into();
        self.run_data(Data { source: points, labels, weights }, names, watch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Spec, toys};

    #[test]
    fn train_equals_run() {
        let points = toys::clusters(0);
        let fit = Fit { components: Some(2), ..Fit::default() };
        assert_eq!(fit.train(&points).unwrap().parts(), fit.run(&points, None, &()).unwrap().parts());
        let labels = Labels::new((0..points.n()).map(|i| i % 2)).unwrap();
        let discriminant = Fit { method: Spec::new("discriminant"), ..Fit::default() };
        assert!(discriminant.train(&points).is_err());
        let with = Training { labels: Some(&labels), ..Training::of(&points) };
        let expected = discriminant.run_labelled(&points, &labels, None, &()).unwrap();
        assert_eq!(discriminant.train(with).unwrap().parts(), expected.parts());
    }
}
