//! How good features and scores are on rows that no fit saw.

use faer::Mat;
use faer::Side;
use faer::linalg::solvers::{Llt, Solve};

/// Rows of features, each with its class.
pub struct Sample<'a> {
    /// Row after row.
    pub features: &'a [f64],
    pub columns: usize,
    pub classes: &'a [usize],
}

impl Sample<'_> {
    fn rows(&self) -> impl Iterator<Item = (&[f64], usize)> {
        self.features.chunks_exact(self.columns).zip(self.classes.iter().copied())
    }
}

/// The chance that a novel row scores higher than another, ties counted half: the area under the ROC curve.
pub fn auroc(scores: &[f64], novel: &[bool]) -> f64 {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[a].total_cmp(&scores[b]));
    let (mut below, mut pairs) = (0.0, 0.0);
    for equal in order.chunk_by(|&a, &b| scores[a] == scores[b]) {
        let positive = equal.iter().filter(|&&i| novel[i]).count() as f64;
        let negative = equal.len() as f64 - positive;
        pairs += positive * (below + negative / 2.0);
        below += negative;
    }
    pairs / (below * (scores.len() as f64 - below))
}

/// Its standard error (Hanley & McNeil 1982); of an area of 1 that of half a novel row missed, for none of few is no proof.
pub fn auroc_error(area: f64, novel: usize, others: usize) -> f64 {
    let (p, n) = (novel.max(1) as f64, others.max(1) as f64);
    let area = area.min(1.0 - 0.5 / p / n.min(p));
    let (q1, q2) = (area / (2.0 - area), 2.0 * area * area / (1.0 + area));
    let square = area * (1.0 - area) + (p - 1.0) * (q1 - area * area) + (n - 1.0) * (q2 - area * area);
    (square.max(0.0) / (p * n)).sqrt()
}

/// The standard error of a share of `count`, after Agresti & Coull (1998): not zero for a share of 1.
pub fn share_error(share: f64, count: usize) -> f64 {
    let n = count as f64 + 4.0;
    let share = (share * count as f64 + 2.0) / n;
    (share * (1.0 - share) / n).sqrt()
}

/// The share of `test` whose nearest row of `train` is of their class; of rows equally near the first counts.
pub fn nearest(train: &Sample, test: &Sample) -> f64 {
    let right = test.rows().filter(|(row, class)| {
        let mut best = (f64::INFINITY, usize::MAX);
        for (known, class) in train.rows() {
            let distance: f64 = known.iter().zip(*row).map(|(a, b)| (a - b) * (a - b)).sum();
            if distance < best.0 {
                best = (distance, class);
            }
        }
        best.1 == *class
    });
    right.count() as f64 / test.classes.len() as f64
}

/// Added to the diagonal of the normal equations, a share of the number of rows.
const RIDGE: f64 = 1e-6;

/// The share of `test` that a linear classifier gets right: least squares of the classes' indicators on standardised features.
pub fn linear(train: &Sample, test: &Sample, classes: usize) -> f64 {
    let (n, q) = (train.classes.len(), train.columns);
    let mean = |k: usize| train.rows().map(|(row, _)| row[k]).sum::<f64>() / n as f64;
    let means: Vec<f64> = (0..q).map(mean).collect();
    let deviation = |k: usize| {
        let square = train.rows().map(|(row, _)| (row[k] - means[k]).powi(2)).sum::<f64>() / n as f64;
        if square > 0.0 { square.sqrt() } else { 1.0 }
    };
    let deviations: Vec<f64> = (0..q).map(deviation).collect();
    let design = |row: &[f64], k: usize| if k == q { 1.0 } else { (row[k] - means[k]) / deviations[k] };
    let x = Mat::from_fn(n, q + 1, |i, k| design(&train.features[i * q..(i + 1) * q], k));
    let y = Mat::from_fn(n, classes, |i, c| f64::from(u8::from(train.classes[i] == c)));
    let mut normal = x.transpose() * &x;
    (0..=q).for_each(|k| normal[(k, k)] += RIDGE * n as f64);
    let Ok(cholesky) = Llt::new(normal.as_ref(), Side::Lower) else { return f64::NAN };
    let weights = cholesky.solve(x.transpose() * &y);
    let right = test.rows().filter(|(row, class)| {
        let vote = |c: usize| (0..=q).map(|k| weights[(k, c)] * design(row, k)).sum::<f64>();
        let votes: Vec<f64> = (0..classes).map(vote).collect();
        (0..classes).max_by(|&a, &b| votes[a].total_cmp(&votes[b]).then(b.cmp(&a))) == Some(*class)
    });
    right.count() as f64 / test.classes.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auroc_counts_pairs_and_halves_ties() {
        let novel = [false, false, true, true];
        assert_eq!(auroc(&[1.0, 2.0, 3.0, 4.0], &novel), 1.0);
        assert_eq!(auroc(&[4.0, 3.0, 2.0, 1.0], &novel), 0.0);
        assert_eq!(auroc(&[1.0, 3.0, 2.0, 4.0], &novel), 0.75);
        assert_eq!(auroc(&[1.0, 1.0, 1.0, 1.0], &novel), 0.5);
        assert!(auroc_error(1.0, 10, 90) > 0.0 && share_error(1.0, 50) > 0.0, "few rows prove little");
        // Their example of 51 abnormal and 58 normal cases, worked by hand.
        assert!((auroc_error(0.893, 51, 58) - 0.03251).abs() < 1e-5);
    }

    #[test]
    fn classifiers_see_what_is_there() {
        // Class 1 lies within class 0: nearest rows tell it, no line does.
        let train = Sample { features: &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], columns: 1, classes: &[0, 0, 1, 1, 0, 0] };
        let test = Sample { features: &[0.1, 2.1, 2.9, 4.9], columns: 1, classes: &[0, 1, 1, 0] };
        assert_eq!(nearest(&train, &test), 1.0);
        assert_eq!(linear(&train, &test, 2), 0.5);
        // Three classes in a triangle, a constant column beside.
        let features = [0.0, 0.0, 7.0, 0.1, 0.0, 7.0, 5.0, 0.0, 7.0, 5.1, 0.0, 7.0, 2.0, 5.0, 7.0, 2.1, 5.0, 7.0];
        let three = Sample { features: &features, columns: 3, classes: &[0, 0, 1, 1, 2, 2] };
        assert_eq!(linear(&three, &three, 3), 1.0);
    }
}
