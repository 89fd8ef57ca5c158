//! Landmarks chosen by the user: row numbers, or any points in the units of the table.

use crate::error::{Error, Result};
use crate::fit::Fit;
use crate::method::{Support, landmarks};
use crate::model::Model;
use crate::plan::Plan;
use crate::points::Points;
use crate::source::Source;
use crate::spec::Spec;
use crate::watch::Watch;

/// Landmarks chosen by the user.
///
/// ```
/// use skpca::{Fit, Given, Points, toys};
///
/// let points = Given::Points(Points::new(2, vec![0.0, 0.0, 0.5, 0.25, 1.0, 1.0])?);
/// let model = Fit::default().run_with_landmarks(&toys::parabola(0), points, None, &())?;
/// assert_eq!(model.m(), 3);
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    /// Row numbers, from 0; duplicates are ignored.
    Rows(Vec<usize>),
    /// Points with the columns of the table, unscaled.
    Points(Points<'static>),
}

impl Fit {
    /// Fits a model with exactly these landmarks and the best components in their span. Landmarks that depend linearly
    /// on others are left out, and a note lists them.
    ///
    /// ```
    /// use skpca::{Fit, Given, toys};
    ///
    /// let points = toys::parabola(0);
    /// let fit = Fit { components: Some(2), ..Fit::default() };
    /// let model = fit.run_with_landmarks(&points, Given::Rows(vec![7, 1, 250]), None, &())?;
    /// assert_eq!(model.parts().rows, Some(vec![1, 7, 250]));
    /// # Ok::<(), skpca::Error>(())
    /// ```
    pub fn run_with_landmarks(
        &self,
        points: &dyn Source,
        landmarks: Given,
        names: Option<Vec<String>>,
        watch: &dyn Watch,
    ) -> Result<Model> {
        let ours = Spec::new("landmarks");
        if self.method != ours && self.method != Fit::default().method {
            return Err(Error::parameter("method", &self.method, "landmarks, because landmarks are given"));
        }
        if self.target.is_some() {
            let value = match &landmarks {
                Given::Rows(rows) => rows.len(),
                Given::Points(points) => points.n(),
            };
            return Err(Error::parameter("landmarks", value, "landmarks or a size, not both"));
        }
        if self.robust {
            return Err(Error::parameter("robust", true, "landmarks or a robust fit, not both"));
        }
        let fit = Fit { method: ours, ..self.clone() };
        let (plan, table) = Plan::with_table(&fit, points, names, watch)?;
        let support = match landmarks {
            Given::Rows(rows) => Support::Rows(sorted(rows, points.n())?),
            Given::Points(given) => {
                if given.d() != points.d() {
                    return Err(Error::Width { found: given.d(), expected: points.d() });
                }
                Support::Points(table.rows.columns().apply(&given)?.into_owned())
            }
        };
        let task = plan.task(table.base_kernel(), &table, None, watch);
        let solution = landmarks::given(&task, support)?;
        plan.assemble(&task, table.rows.columns().clone(), solution)
    }
}

/// Sorts the row numbers and removes duplicates; numbers beyond the table are an error.
fn sorted(mut rows: Vec<usize>, n: usize) -> Result<Vec<usize>> {
    if let Some(row) = rows.iter().find(|row| **row >= n) {
        return Err(Error::parameter("landmarks", row, &format!("numbers of rows, from 0 to {}", n - 1)));
    }
    if rows.is_empty() {
        return Err(Error::parameter("landmarks", "[]", "at least one row"));
    }
    rows.sort_unstable();
    rows.dedup();
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::Scaling;
    use crate::model::Model;
    use crate::toys;

    fn fitted(fit: &Fit, given: Given) -> Result<Model> {
        fit.run_with_landmarks(&toys::parabola(0), given, None, &())
    }

    #[test]
    fn given_points_are_kept_and_dependent_ones_are_noted() {
        let points = toys::parabola(0);
        let fit = Fit { components: Some(2), ..Fit::default() };
        let rows = vec![3, 99, 17, 400];
        let model = fitted(&fit, Given::Rows(rows.clone())).unwrap();
        assert_eq!(model.parts().rows, Some(vec![3, 17, 99, 400]));
        // The same rows as points, in the units of the table, in any order.
        for scaling in [Scaling::Standard, Scaling::Minmax, Scaling::None] {
            let fit = Fit { scaling, ..fit.clone() };
            let by_rows = fitted(&fit, Given::Rows(rows.clone())).unwrap();
            let by_points = fitted(&fit, Given::Points(points.select(&rows))).unwrap();
            assert_eq!(by_points.parts().rows, None);
            assert_eq!(by_points.m(), 4);
            assert!((by_points.captured() / by_rows.captured() - 1.0).abs() < 1e-9);
        }
        let twice = fitted(&fit, Given::Points(points.select(&[3, 17, 3, 99]))).unwrap();
        let notes = &twice.parts().report.notes;
        assert_eq!(twice.m(), 3);
        assert!(
            notes.iter().any(|note| note == "landmarks 2 (from 0) depend on the others and are left out")
                || notes.iter().any(|note| note == "landmarks 0 (from 0) depend on the others and are left out"),
            "{notes:?}"
        );
    }

    #[test]
    fn invalid_landmarks_are_rejected() {
        let message = |fit: Fit, given: Given| fitted(&fit, given).err().unwrap().to_string();
        let base = Fit::default;
        assert_eq!(message(base(), Given::Rows(vec![500])), "landmarks = 500: expected numbers of rows, from 0 to 499");
        assert_eq!(message(base(), Given::Rows(vec![])), "landmarks = []: expected at least one row");
        let narrow = Points::new(1, vec![0.0, 1.0]).unwrap();
        assert!(message(base(), Given::Points(narrow)).contains("column"));
        let other = Fit { method: Spec::new("greedy"), ..base() };
        let expected = "method = greedy: expected landmarks, because landmarks are given";
        assert_eq!(message(other, Given::Rows(vec![1])), expected);
        let sized = Fit { target: Some(crate::method::Target::Support(3)), ..base() };
        assert_eq!(message(sized, Given::Rows(vec![1, 2])), "landmarks = 2: expected landmarks or a size, not both");
    }
}
