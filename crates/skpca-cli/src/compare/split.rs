//! Splits of the rows: which are fitted, and which are held out to judge.

use crate::random::{Stream, random};

/// Maximum number of held-out rows: enough for a standard error of half a percent.
const MAX_HELD_OUT: usize = 10_000;
/// Maximum number of splits.
const SPLITS: usize = 4;

/// Row numbers, both in increasing order.
pub struct Split {
    pub fitted: Vec<usize>,
    pub held_out: Vec<usize>,
}

/// Holds out a share of the rows, the same share of each class, and other rows in each split. At least one row of each
/// class and two rows in total stay on the fitted side. With a `normal` class, only its rows are fitted.
pub fn splits(n: usize, share: f64, classes: Option<&[usize]>, normal: Option<usize>, seed: u64) -> Vec<Split> {
    let share = share.min(MAX_HELD_OUT as f64 / n as f64);
    let mut groups = vec![Vec::new(); classes.map_or(1, |classes| classes.iter().max().map_or(0, |most| most + 1))];
    (0..n).for_each(|row| groups[classes.map_or(0, |classes| classes[row])].push(row));
    let mut left = groups.clone();
    let mut random = random(seed, Stream::Split);
    let is_fitted = |row: usize| normal.is_none_or(|normal| classes.is_none_or(|classes| classes[row] == normal));
    let count = if share > 0.0 { ((1.0 / share) as usize).clamp(1, SPLITS) } else { 1 };
    let mut split = || {
        let mut judges = vec![false; n];
        for (group, left) in groups.iter().zip(&mut left) {
            let count = (share * group.len() as f64).round() as usize;
            let most = if normal.is_some() && !is_fitted(group.first().copied().unwrap_or(0)) { 0 } else { 1 };
            let chosen = random.sample(left.len(), count.min(group.len().saturating_sub(most)));
            chosen.iter().for_each(|&i| judges[left[i]] = true);
            left.retain(|&row| !judges[row]);
        }
        let (held_out, fitted): (Vec<usize>, Vec<usize>) = (0..n).partition(|&row| judges[row]);
        Split { fitted: fitted.into_iter().filter(|&row| is_fitted(row)).collect(), held_out }
    };
    let splits: Vec<Split> = (0..count).map(|_| split()).filter(|split| !split.held_out.is_empty()).collect();
    if splits.is_empty() || splits.iter().any(|split| split.fitted.len() < 2) {
        return vec![Split { fitted: (0..n).filter(|&row| is_fitted(row)).collect(), held_out: Vec::new() }];
    }
    splits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_on_one_side_and_classes_keep_their_shares() {
        let classes: Vec<usize> = (0..1000).map(|i| usize::from(i % 50 == 0)).collect();
        let all = splits(1000, 0.25, Some(&classes), None, 3);
        assert_eq!(all.len(), 4);
        for Split { fitted, held_out } in &all {
            let mut both = [fitted.clone(), held_out.clone()].concat();
            both.sort_unstable();
            assert_eq!(both, (0..1000).collect::<Vec<_>>());
            assert_eq!(held_out.iter().filter(|&&row| classes[row] == 1).count(), 5);
            assert_eq!(held_out.len(), 250);
        }
        let mut judged: Vec<usize> = all.iter().flat_map(|split| split.held_out.clone()).collect();
        judged.sort_unstable();
        assert_eq!(judged, (0..1000).collect::<Vec<_>>(), "every row judges once");
        assert_ne!(all[0].held_out, splits(1000, 0.25, Some(&classes), None, 4)[0].held_out, "the seed decides");
    }

    #[test]
    fn only_normal_rows_are_fitted_and_all_kinds_judge() {
        let classes: Vec<usize> = (0..100).map(|i| i % 3).collect();
        for split in splits(100, 0.25, Some(&classes), Some(1), 0) {
            assert!(split.fitted.iter().all(|&row| classes[row] == 1) && split.fitted.len() >= 24);
            assert!((0..3).all(|class| split.held_out.iter().any(|&row| classes[row] == class)));
        }
        let all = splits(100, 0.0, Some(&classes), Some(1), 0);
        assert!(all.len() == 1 && all[0].held_out.is_empty() && all[0].fitted.len() == 33);
    }

    #[test]
    fn rare_classes_stay_and_judges_are_few_enough() {
        assert_eq!(splits(3, 0.9, Some(&[0, 0, 1]), None, 0)[0].fitted.len(), 2);
        let large = splits(100_000, 0.25, None, None, 0);
        assert!(large.len() == 4 && large.iter().all(|split| split.held_out.len() == 10_000));
        assert!(splits(10, 0.0, None, None, 0)[0].held_out.is_empty());
        assert!(splits(2, 0.5, None, None, 0)[0].held_out.is_empty());
    }
}
