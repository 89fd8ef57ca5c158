//! How much each row counts: as often as it would have to be repeated.
//!
//! ```text
//! whole weights:   row i stands for w_i equal rows, Σ w in all
//! others:          n rows, evenly spaced along the cumulative weights
//! ```
//!
//! Sums take weights as they are. What counts rows, such as a quantile or a draw, goes by these copies: with whole
//! weights it finds what it would find among repeated rows.

use crate::error::{Error, Result};

/// Σ w over n rows.
pub(crate) fn total(weights: Option<&[f64]>, n: usize) -> f64 {
    weights.map_or(n as f64, |weights| weights.iter().sum())
}

/// The weights of some rows.
pub(crate) fn select(weights: Option<&[f64]>, rows: &[usize]) -> Option<Vec<f64>> {
    weights.map(|weights| rows.iter().map(|&row| weights[row]).collect())
}

/// Rejects weights that are not one finite number ≥ 0 for each of n rows.
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

/// How many independent rows these are worth: `(Σ w)² / Σ w²` (Kish 1965).
pub(crate) fn effective(weights: &[f64]) -> f64 {
    let sum: f64 = weights.iter().sum();
    sum * sum / weights.iter().map(|w| w * w).sum::<f64>()
}

/// Equal copies that weighted rows stand for.
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
        let whole = weights.iter().all(|weight| weight.fract() == 0.0) && sum < MOST;
        let count = if whole { sum as usize } else { weights.len() };
        Copies { cumulative, count }
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The row that copy k belongs to.
    pub(crate) fn row(&self, k: usize) -> usize {
        let last = self.cumulative.len() - 1;
        let at = (k as f64 + 0.5) / self.count as f64 * self.cumulative[last];
        self.cumulative.partition_point(|sum| *sum <= at).min(last)
    }
}

/// More copies than this are never counted one by one.
const MOST: f64 = 1e7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_weights_are_copies_and_others_keep_their_shares() {
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
