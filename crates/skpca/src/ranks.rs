//! Ranks of numbers and rank correlation.

use crate::dense;

/// Returns centred ranks; equal numbers have equal ranks.
pub(crate) fn ranks(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let below = |value: f64| sorted.partition_point(|other| *other < value);
    let up_to = |value: f64| sorted.partition_point(|other| *other <= value);
    values.iter().map(|&value| 0.5 * ((below(value) + up_to(value)) as f64 - values.len() as f64)).collect()
}

/// Returns Spearman's rank correlation; 1 if both lists are constant, 0 if only one is.
pub(crate) fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let (a, b) = (ranks(a), ranks(b));
    let (a_length, b_length) = (dense::dot(&a, &a), dense::dot(&b, &b));
    if a_length * b_length > 0.0 {
        dense::dot(&a, &b) / (a_length * b_length).sqrt()
    } else {
        f64::from(u8::from(a_length == b_length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rankings_by_hand() {
        assert_eq!(ranks(&[3.0, 1.0, 1.0, 9.0]), [0.5, -1.0, -1.0, 1.5]);
        assert_eq!(correlation(&[1.0, 2.0, 3.0], &[10.0, 20.0, 1e9]), 1.0);
        assert_eq!(correlation(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]), -1.0);
        assert_eq!(correlation(&[1.0, 2.0, 3.0], &[1.0, 3.0, 2.0]), 0.5);
        assert_eq!((correlation(&[1.0; 3], &[2.0; 3]), correlation(&[1.0; 3], &[1.0, 2.0, 3.0])), (1.0, 0.0));
    }
}
