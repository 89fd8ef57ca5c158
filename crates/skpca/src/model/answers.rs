//! What callers ask most often of a model, without looking into its [parts](Model::parts).

use super::Model;
use crate::points::Points;

impl Model {
    /// Rows that score higher are novel.
    pub fn threshold(&self) -> f64 {
        self.parts.scores.threshold
    }

    /// Whether a row with this score is novel.
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

    /// How rare a score as high as this one is among training rows: `(1 + their number) / (1 + number of all)`.
    pub fn p_value(&self, score: f64) -> f64 {
        self.parts.scores.p_value(score)
    }

    /// Captured variance as a share of what exact kernel PCA captures.
    pub fn fidelity(&self) -> f64 {
        self.parts.fidelity
    }

    /// Variance along each component, per row, largest first where components are uncorrelated.
    pub fn variances(&self) -> &[f64] {
        &self.parts.variances
    }

    /// The support as the caller's columns have it, before scaling.
    pub fn support(&self) -> Points<'static> {
        let (support, columns) = (&self.parts.support, &self.parts.columns);
        let of_row = |row: &[f64]| -> Vec<f64> {
            row.iter().zip(columns.shift.iter().zip(&columns.scale)).map(|(v, (a, b))| v * b + a).collect()
        };
        Points::finite(support.d(), support.rows().flat_map(of_row).collect::<Vec<f64>>())
    }

    /// The training rows that are the support; none where its points are synthetic.
    pub fn support_rows(&self) -> Option<&[usize]> {
        self.parts.rows.as_deref()
    }

    /// Whether the method reached its tolerance.
    pub fn converged(&self) -> bool {
        self.parts.report.converged
    }
}

#[cfg(test)]
mod tests {
    use crate::{Fit, Precision, Scaling, Spec, Target, toys};

    #[test]
    fn answers_are_those_of_the_parts() {
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
