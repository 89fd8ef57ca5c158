//! Which rows are fitted, and which judge.

use crate::random::{Stream, random};

/// Judges at most: enough for a standard error of half a percent.
const MOST: usize = 10_000;

/// Numbers of rows, both increasing.
pub struct Split {
    pub fitted: Vec<usize>,
    pub held_out: Vec<usize>,
}

/// Holds out a share of the rows, the same share of each class; a class keeps one row at least on the side that is fitted, and a fit two.
pub fn split(n: usize, share: f64, classes: Option<&[usize]>, seed: u64) -> Split {
    let share = share.min(MOST as f64 / n as f64);
    let mut groups = vec![Vec::new(); classes.map_or(1, |classes| classes.iter().max().map_or(0, |most| most + 1))];
    (0..n).for_each(|row| groups[classes.map_or(0, |classes| classes[row])].push(row));
    let mut random = random(seed, Stream::Split);
    let mut judges = vec![false; n];
    for group in &groups {
        let count = (share * group.len() as f64).round() as usize;
        let chosen = random.sample(group.len(), count.min(group.len().saturating_sub(1)));
        chosen.iter().for_each(|&i| judges[group[i]] = true);
    }
    let (held_out, fitted): (Vec<usize>, Vec<usize>) = (0..n).partition(|&row| judges[row]);
    if fitted.len() < 2 { Split { fitted: (0..n).collect(), held_out: Vec::new() } } else { Split { fitted, held_out } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_on_one_side_and_classes_keep_their_shares() {
        let classes: Vec<usize> = (0..1000).map(|i| usize::from(i % 50 == 0)).collect();
        let Split { fitted, held_out } = split(1000, 0.25, Some(&classes), 3);
        let mut all = [fitted.clone(), held_out.clone()].concat();
        all.sort_unstable();
        assert_eq!(all, (0..1000).collect::<Vec<_>>());
        assert_eq!(held_out.iter().filter(|&&row| classes[row] == 1).count(), 5);
        assert_eq!(held_out.len(), 250);
        assert_ne!(held_out, split(1000, 0.25, Some(&classes), 4).held_out, "the seed decides");
    }

    #[test]
    fn rare_classes_stay_and_judges_are_few_enough() {
        assert_eq!(split(3, 0.9, Some(&[0, 0, 1]), 0).fitted.len(), 2);
        assert_eq!(split(100_000, 0.25, None, 0).held_out.len(), 10_000);
        assert!(split(10, 0.0, None, 0).held_out.is_empty() && split(2, 0.5, None, 0).held_out.is_empty());
    }
}
