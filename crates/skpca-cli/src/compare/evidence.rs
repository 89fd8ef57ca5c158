//! The quality of a model on held-out rows, kept row by row so that two models can be compared on the same rows.
//!
//! ```text
//! accuracy   mean over held-out rows of 1 (right) or 0 (wrong)
//! AUROC      mean over novel rows of the share of other rows that score lower, ties counted half
//!            = mean over the others of the share of novel rows that score higher
//! error²     Σ over groups of rows  var(values) / count        (DeLong, DeLong & Clarke-Pearson 1988 for the AUROC)
//! paired     the same for the row-by-row differences of two models
//! ```

/// The quality of a model on the held-out rows of one split.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// Number of the split.
    pub split: usize,
    /// One value per row, in groups: the mean of the first group is the quality, and the variance of each adds to its
    /// error.
    pub groups: Vec<Vec<f64>>,
}

/// A number and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub value: f64,
    pub error: f64,
}

impl Evidence {
    /// Evidence from whether each row was classified correctly.
    pub fn of_classes(split: usize, right: Vec<bool>) -> Evidence {
        Evidence { split, groups: vec![right.into_iter().map(|right| f64::from(u8::from(right))).collect()] }
    }

    /// Evidence from how well scores separate novel rows; `None` if all rows are of one kind.
    pub fn of_scores(split: usize, scores: &[f64], novel: &[bool]) -> Option<Evidence> {
        let of = |kind: bool| -> Vec<f64> {
            let mut scores: Vec<f64> = scores.iter().zip(novel).filter(|(_, n)| **n == kind).map(|(s, _)| *s).collect();
            scores.sort_by(f64::total_cmp);
            scores
        };
        let (odd, usual) = (of(true), of(false));
        if odd.is_empty() || usual.is_empty() {
            return None;
        }
        let below = |sorted: &[f64], score: f64| {
            let (less, not_more) = (sorted.partition_point(|s| *s < score), sorted.partition_point(|s| *s <= score));
            (less + not_more) as f64 / (2 * sorted.len()) as f64
        };
        // In row order, for paired differences with another model.
        let mut groups = vec![Vec::with_capacity(odd.len()), Vec::with_capacity(usual.len())];
        for (&score, &novel) in scores.iter().zip(novel) {
            if novel {
                groups[0].push(below(&usual, score));
            } else {
                groups[1].push(1.0 - below(&odd, score));
            }
        }
        Some(Evidence { split, groups })
    }
}

/// The quality over all splits. Its error is at least that of half a row, since a few rows that all agree prove little.
pub fn quality(evidence: &[Evidence]) -> Option<Estimate> {
    let all: Vec<&[Vec<f64>]> = evidence.iter().map(|evidence| &evidence.groups[..]).collect();
    let mut estimate = estimate(&all)?;
    let rows = |g: usize| all.iter().map(|groups| groups[g].len()).sum::<usize>();
    let fewest = (0..all[0].len()).map(rows).min().unwrap_or(1);
    estimate.error = estimate.error.max(0.5 / fewest as f64);
    Some(estimate)
}

/// By how much `a` is better than `b` on the rows that judged both.
pub fn difference(a: &[Evidence], b: &[Evidence]) -> Option<Estimate> {
    let paired = |a: &Evidence| {
        let b = b.iter().find(|b| b.split == a.split)?;
        let pair = |(a, b): (&Vec<f64>, &Vec<f64>)| a.iter().zip(b).map(|(a, b)| a - b).collect();
        Some(a.groups.iter().zip(&b.groups).map(pair).collect::<Vec<Vec<f64>>>())
    };
    let differences: Vec<Vec<Vec<f64>>> = a.iter().filter_map(paired).collect();
    estimate(&differences.iter().map(|groups| &groups[..]).collect::<Vec<_>>())
}

fn estimate(splits: &[&[Vec<f64>]]) -> Option<Estimate> {
    let groups = splits.first()?.len();
    let moments = |g: usize| {
        let values: Vec<f64> = splits.iter().flat_map(|split| split[g].iter().copied()).collect();
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let square = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0).max(1.0);
        (mean, square / n)
    };
    let all: Vec<(f64, f64)> = (0..groups).map(moments).collect();
    let value = all[0].0;
    value.is_finite().then(|| Estimate { value, error: all.iter().map(|(_, square)| square).sum::<f64>().sqrt() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auroc(scores: &[f64], novel: &[bool]) -> f64 {
        quality(&[Evidence::of_scores(0, scores, novel).unwrap()]).unwrap().value
    }

    #[test]
    fn auroc_counts_pairs_and_halves_ties() {
        let novel = [false, false, true, true];
        assert_eq!(auroc(&[1.0, 2.0, 3.0, 4.0], &novel), 1.0);
        assert_eq!(auroc(&[4.0, 3.0, 2.0, 1.0], &novel), 0.0);
        assert_eq!(auroc(&[1.0, 3.0, 2.0, 4.0], &novel), 0.75);
        assert_eq!(auroc(&[1.0, 1.0, 1.0, 1.0], &novel), 0.5);
        assert!(Evidence::of_scores(0, &[1.0, 2.0], &[true, true]).is_none(), "there is nothing to tell");
    }

    #[test]
    fn both_groups_have_the_same_mean_and_add_to_the_error() {
        let novel = [true, false, true, false, false];
        let evidence = Evidence::of_scores(0, &[3.0, 1.0, 2.0, 2.0, 0.0], &novel).unwrap();
        assert_eq!(evidence.groups, [vec![1.0, 2.5 / 3.0], vec![1.0, 0.75, 1.0]]);
        let found = quality(&[evidence]).unwrap();
        let (first, second) = (1.0_f64 / 72.0 / 2.0, 0.0625 / 3.0 / 3.0);
        assert!((found.value - 5.5 / 6.0).abs() < 1e-15 && (found.error - 0.25).abs() < 1e-15, "half a row: {found:?}");
        let many = Evidence { split: 0, groups: vec![vec![1.0, 2.5 / 3.0], vec![1.0, 0.75, 1.0]] };
        let paired = difference(&[many], &[Evidence { split: 0, groups: vec![vec![0.0; 2], vec![0.0; 3]] }]).unwrap();
        assert!((paired.error - (first + second).sqrt()).abs() < 1e-12, "{paired:?}");
    }

    #[test]
    fn few_rows_that_agree_prove_little() {
        let all = quality(&[Evidence::of_classes(0, vec![true; 10])]).unwrap();
        assert_eq!(all, Estimate { value: 1.0, error: 0.05 });
    }

    #[test]
    fn models_are_compared_on_the_rows_that_judged_both() {
        let of = |split: usize, wrong: usize| Evidence::of_classes(split, (0..100).map(|i| i >= wrong).collect());
        // The same rows are right: nothing is uncertain, though each accuracy is.
        let (a, b) = (vec![of(0, 10), of(1, 20)], vec![of(0, 10), of(1, 20)]);
        assert_eq!(difference(&a, &b), Some(Estimate { value: 0.0, error: 0.0 }));
        assert!(quality(&a).unwrap().error > 0.02);
        // Splits with only one of the models do not count.
        let short = vec![of(1, 25)];
        let found = difference(&a, &short).unwrap();
        assert!((found.value - 0.05).abs() < 1e-12 && found.error > 0.0, "{found:?}");
        assert_eq!(difference(&a, &[of(7, 0)]), None);
    }
}
