//! Contributions of the inputs to a row's novelty: the decrease of the score if one of them had the value that the
//! model expects.
//!
//! ```text
//! gain_j = score(x) − min_v score(x with x_j = v)        share_j = gain_j / Σ gain
//! ```
//!
//! These are reconstruction-based contributions (Alcala & Qin 2009): if a single faulty input moved a row away, at any
//! distance, only that input can bring it back. Gradients do not show this, because those of a bounded kernel vanish
//! far away. The minimum over v is searched among the values of the support points, then between the neighbours of the
//! best.

use faer::Mat;
use rayon::prelude::*;

use super::Model;
use crate::error::Result;
use crate::gram::Precision;
use crate::points::Points;

/// Number of values of an input tried first.
const FIRST_VALUES: usize = 17;
/// Number of intervals between the neighbours of the best value in each round of refinement.
const INTERVALS: usize = 6;
/// Number of rounds of refinement.
const ROUNDS: usize = 3;
/// Maximum number of values in the altered rows that are scored together.
const BATCH: usize = 1 << 18;

/// Contributions of the inputs to the novelty of rows.
///
/// ```
/// use skpca::{Fit, Points, toys};
///
/// let model = Fit::default().train(&toys::parabola(0))?;
/// let found = model.contributions(&Points::new(2, vec![0.0, 3.0])?)?;
/// assert!(found.contributions[(0, 1)] > found.contributions[(0, 0)], "the second number is too large");
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Contributions {
    /// n × d: the contribution of each input to the score. Those of a row sum up to its score minus the usual one, and
    /// are ≥ 0 if that is positive.
    pub contributions: Mat<f64>,
    /// n × d: the value of each input that minimises the score, with the others unchanged, in the units of the table.
    pub expected: Mat<f64>,
    /// The median score of training rows.
    pub usual: f64,
}

impl Model {
    /// Computes the contribution of each input to the novelty of each row.
    ///
    /// ```
    /// use skpca::{Fit, toys};
    ///
    /// let model = Fit::default().run(&toys::normal(300, 4, 0), None, &())?;
    /// let mut row = toys::normal(1, 4, 1).values().to_vec();
    /// row[2] = 1000.0;
    /// let found = model.contributions(&skpca::Points::new(4, row)?)?;
    /// let total = found.contributions.row(0).sum();
    /// assert!(found.contributions[(0, 2)] > 0.9 * total && found.expected[(0, 2)].abs() < 4.0);
    /// # Ok::<(), skpca::Error>(())
    /// ```
    pub fn contributions(&self, points: &Points) -> Result<Contributions> {
        let x = self.parts.columns.apply(points)?;
        let (n, d) = (x.n(), x.d());
        let tried: Vec<Vec<f64>> = (0..d).into_par_iter().map(|j| self.values_of(j)).collect();
        let usual = self.parts.scores.median();
        let rows: Vec<(Vec<f64>, Vec<f64>)> = (0..n).into_par_iter().map(|i| self.gains(x.row(i), &tried)).collect();
        let score = self.score(points, Precision::Double)?;
        let excess = |i: usize, gains: &[f64]| {
            let total: f64 = gains.iter().sum();
            let even = (score[i] - usual) / d as f64;
            gains.iter().map(|gain| if total > 0.0 { gain / total * (score[i] - usual) } else { even }).collect()
        };
        let shares: Vec<Vec<f64>> = rows.iter().enumerate().map(|(i, (gains, _))| excess(i, gains)).collect();
        let (shift, scale) = (&self.parts.columns.shift, &self.parts.columns.scale);
        Ok(Contributions {
            contributions: Mat::from_fn(n, d, |i, j| shares[i][j]),
            expected: Mat::from_fn(n, d, |i, j| rows[i].1[j] * scale[j] + shift[j]),
            usual,
        })
    }

    /// Returns the values of the support in column j, increasing and distinct: all of them, or quantiles.
    fn values_of(&self, j: usize) -> Vec<f64> {
        let mut values: Vec<f64> = self.parts.support.rows().map(|z| z[j]).collect();
        values.sort_unstable_by(f64::total_cmp);
        let last = values.len() - 1;
        let count = FIRST_VALUES.min(values.len());
        let mut values: Vec<f64> = (0..count).map(|k| values[k * last / (count - 1).max(1)]).collect();
        values.dedup();
        values
    }

    /// Returns how much each input could lower the score of a row, and the value that does.
    fn gains(&self, x: &[f64], tried: &[Vec<f64>]) -> (Vec<f64>, Vec<f64>) {
        let d = x.len();
        let score = self.score_of_scaled(&Points::finite(d, x))[0];
        let mut best: Vec<(f64, f64)> = x.iter().map(|&value| (score, value)).collect();
        let mut candidates = tried.to_vec();
        let mut steps: Vec<f64> = tried.iter().map(|values| values[values.len() - 1] - values[0]).collect();
        steps.iter_mut().for_each(|step| *step /= (FIRST_VALUES - 1) as f64);
        for round in 0..=ROUNDS {
            if round > 0 {
                candidates = best.iter().zip(&steps).map(|((_, value), step)| around(*value, *step)).collect();
                steps.iter_mut().for_each(|step| *step *= 2.0 / INTERVALS as f64);
            }
            self.improve(x, &candidates, &mut best);
        }
        let gains = best.iter().map(|(lowest, _)| (score - lowest).max(0.0)).collect();
        (gains, best.into_iter().map(|(_, value)| value).collect())
    }

    /// Tries the candidates of every input, one input at a time.
    fn improve(&self, x: &[f64], candidates: &[Vec<f64>], best: &mut [(f64, f64)]) {
        let d = x.len();
        let all: Vec<(usize, f64)> =
            candidates.iter().enumerate().flat_map(|(j, values)| values.iter().map(move |value| (j, *value))).collect();
        for some in all.chunks((BATCH / d).max(1)) {
            let mut altered = x.repeat(some.len());
            some.iter().enumerate().for_each(|(row, (j, value))| altered[row * d + j] = *value);
            let scores = self.score_of_scaled(&Points::finite(d, altered));
            for ((j, value), score) in some.iter().zip(scores) {
                if score < best[*j].0 {
                    best[*j] = (score, *value);
                }
            }
        }
    }
}

/// Returns values within one step of `value`.
fn around(value: f64, step: f64) -> Vec<f64> {
    (0..=INTERVALS).map(|k| value + step * (2.0 * k as f64 / INTERVALS as f64 - 1.0)).collect()
}
