//! Accessors for the most used [parts](Model::parts) of a model.

use super::Model;
use crate::points::Points;

impl Model {
    /// Returns the threshold; rows that score higher are novel.
    pub fn threshold(&self) -> f64 {
        self.parts.scores.threshold
    }

    /// Returns whether a row with this score is novel.
    ///
    /// ```
    /// use skpca::{Fit, Points, Precision, toys};
    ///
    /// let model = Fit::default().train(&toys::clusters(0))?;
    /// let scores = model.score(&Points::new(2, vec![0.0, 0.0, 9.0, 9.0])?, Precision::Double)?;
    /// assert!(model.is_novel(scores[1]) && model.p_value(scores[1]) < 0.02);
    /// assert!(model.support().n() == model.m() && model.fidelity() >= 0.95);
    /// # Ok::<(), skpca::Error>(())
    /// ```
    pub fn is_novel(&self, score: f64) -> bool {
        score > self.threshold()
    }

    /// Returns the p-value of a score: `(1 + number of training scores at least as high) / (1 + number of all)`.
    pub fn p_value(&self, score: f64) -> f64 {
        self.parts.scores.p_value(score)
    }

    /// Returns captured variance divided by that of exact kernel PCA.
    pub fn fidelity(&self) -> f64 {
        self.parts.fidelity
    }

    /// Returns the variance along each component, per row; largest first if components are uncorrelated.
    pub fn variances(&self) -> &[f64] {
        &self.parts.variances
    }

    /// Returns the support points in the units of the caller's columns, before scaling.
    pub fn support(&self) -> Points<'static> {
        let (support, columns) = (&self.parts.support, &self.parts.columns);
        let of_row = |row: &[f64]| -> Vec<f64> {
            row.iter().zip(columns.shift.iter().zip(&columns.scale)).map(|(v, (a, b))| v * b + a).collect()
        };
        Points::finite(support.d(), support.rows().flat_map(of_row).collect::<Vec<f64>>())
    }

    /// Returns the numbers of the training rows that are the support; `None` if its points are synthetic.
    pub fn support_rows(&self) -> Option<&[usize]> {
        self.parts.rows.as_deref()
    }

    /// Returns whether the method reached its tolerance.
    pub fn converged(&self) -> bool {
        self.parts.report.converged
    }
}

#[cfg(test)]
mod tests {
    use crate::{Fit, Precision, Scaling, Spec, Target, toys};

    #[test]
    fn accessors_agree_with_the_parts() {
        let points = toys::clusters(0);
        let fit = Fit { method: Spec::new("greedy"), target: Some(Target::Support(7)), ..Fit::default() };
        for scaling in [Scaling::Standard, Scaling::None] {
            let model = Fit { scaling, ..fit.clone() }.train(&points).unwrap();
            let rows = model.support_rows().unwrap().to_vec();
            let (support, expected) = (model.support(), points.select(&rows));
            assert!(support.values().iter().zip(expected.values()).all(|(a, b)| (a - b).abs() < 1e-12), "{scaling:?}");
            let scores = model.score(&points, Precision::Double).unwrap();
            let novel = scores.iter().filter(|score| model.is_novel(**score)).count();
            assert_eq!(novel, scores.iter().filter(|score| **score > model.parts().scores.threshold).count());
            assert!(novel > 0 && model.p_value(f64::INFINITY) < model.p_value(model.threshold()));
        }
    }
}
