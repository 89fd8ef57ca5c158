//! Sample weights: a row of weight w counts like w copies of it.
//!
//! ```text
//! integer weights:   row i stands for w_i equal rows, Σ w in all
//! others:            n rows, evenly spaced along the cumulative weights
//! ```
//!
//! Sums use the weights directly. Whatever counts rows, such as a quantile or a random draw, uses these copies: with
//! integer weights the result is the same as with repeated rows.

use crate::error::{Error, Result};

/// Returns Σ w over n rows.
pub(crate) fn total(weights: Option<&[f64]>, n: usize) -> f64 {
    weights.map_or(n as f64, |weights| weights.iter().sum())
}

/// Returns the weights of some rows.
pub(crate) fn select(weights: Option<&[f64]>, rows: &[usize]) -> Option<Vec<f64>> {
    weights.map(|weights| rows.iter().map(|&row| weights[row]).collect())
}

/// Rejects weights that are not n finite numbers ≥ 0.
pub(crate) fn check(weights: &[f64], n: usize) -> Result<()> {
    if weights.len() != n {
        let expected = format!("one for each of the {n} rows");
        return Err(Error::parameter("sample_weight", format!("{} weights", weights.len()), &expected));
    }
    match weights.iter().position(|w| !(w.is_finite() && *w >= 0.0)) {
        Some(row) => {
            let value = format!("{} (row {row}, from 0)", weights[row]);
            Err(Error::parameter("sample_weight", value, "finite numbers ≥ 0"))
        }
        None => Ok(()),
    }
}

/// Returns the effective sample size `(Σ w)² / Σ w²` (Kish 1965).
pub(crate) fn effective(weights: &[f64]) -> f64 {
    let sum: f64 = weights.iter().sum();
    sum * sum / weights.iter().map(|w| w * w).sum::<f64>()
}

/// The copies that weighted rows stand for.
pub(crate) struct Copies {
    cumulative: Vec<f64>,
    count: usize,
}

impl Copies {
    pub(crate) fn new(weights: &[f64]) -> Copies {
        let mut sum = 0.0;
        let mut add = |weight: &f64| {
            sum += weight;
            sum
        };
        let cumulative: Vec<f64> = weights.iter().map(&mut add).collect();
        let whole = weights.iter().all(|weight| weight.fract() == 0.0) && sum < MAX_COPIES;
        let count = if whole { sum as usize } else { weights.len() };
        Copies { cumulative, count }
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Returns the row of copy k.
    pub(crate) fn row(&self, k: usize) -> usize {
        let last = self.cumulative.len() - 1;
        let at = (k as f64 + 0.5) / self.count as f64 * self.cumulative[last];
        self.cumulative.partition_point(|sum| *sum <= at).min(last)
    }
}

/// Maximum number of copies; with more, weights are treated as fractional.
const MAX_COPIES: f64 = 1e7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integer_weights_are_copies_and_others_keep_their_shares() {
        let rows = |weights: &[f64]| {
            let copies = Copies::new(weights);
            (0..copies.count()).map(|k| copies.row(k)).collect::<Vec<_>>()
        };
        assert_eq!(rows(&[2.0, 1.0, 0.0, 3.0]), [0, 0, 1, 3, 3, 3]);
        assert_eq!(rows(&[1.0; 4]), [0, 1, 2, 3]);
        assert_eq!(rows(&[0.7, 0.9, 0.4, 2.0]), [0, 1, 3, 3], "four rows, evenly spaced");
        assert_eq!((effective(&[2.0; 5]), effective(&[1.0, 0.0])), (5.0, 1.0));
    }

    #[test]
    fn weights_are_checked_by_name() {
        assert!(check(&[0.0, 2.5], 2).is_ok());
        let message = |weights: &[f64]| check(weights, 2).unwrap_err().to_string();
        assert_eq!(message(&[1.0]), "sample_weight = 1 weights: expected one for each of the 2 rows");
        assert_eq!(message(&[1.0, -1.0]), "sample_weight = -1 (row 1, from 0): expected finite numbers ≥ 0");
        assert_eq!(message(&[f64::NAN, 1.0]), "sample_weight = NaN (row 0, from 0): expected finite numbers ≥ 0");
    }
}
