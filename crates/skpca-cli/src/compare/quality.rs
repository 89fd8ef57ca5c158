//! Classifiers that judge features on held-out rows.

use faer::Mat;
use faer::Side;
use faer::linalg::solvers::{Llt, Solve};

/// Rows of features with their classes.
pub struct Sample<'a> {
    /// Row by row.
    pub features: &'a [f64],
    pub columns: usize,
    pub classes: &'a [usize],
}

impl Sample<'_> {
    fn rows(&self) -> impl Iterator<Item = (&[f64], usize)> {
        self.features.chunks_exact(self.columns).zip(self.classes.iter().copied())
    }
}

/// For each row of `test`, whether the nearest row of `train` is of the same class; of equally near rows the first
/// counts.
pub fn nearest(train: &Sample, test: &Sample) -> Vec<bool> {
    let right = test.rows().map(|(row, class)| {
        let mut best = (f64::INFINITY, usize::MAX);
        for (known, class) in train.rows() {
            let distance: f64 = known.iter().zip(row).map(|(a, b)| (a - b) * (a - b)).sum();
            if distance < best.0 {
                best = (distance, class);
            }
        }
        best.1 == class
    });
    right.collect()
}

/// Ridge added to the diagonal of the normal equations, as a multiple of the number of rows.
const RIDGE: f64 = 1e-6;

/// For each row of `test`, whether a linear classifier is right: least squares of class indicators on standardised
/// features.
pub fn linear(train: &Sample, test: &Sample, classes: usize) -> Option<Vec<bool>> {
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
    let cholesky = Llt::new(normal.as_ref(), Side::Lower).ok()?;
    let weights = cholesky.solve(x.transpose() * &y);
    let right = test.rows().map(|(row, class)| {
        let vote = |c: usize| (0..=q).map(|k| weights[(k, c)] * design(row, k)).sum::<f64>();
        let votes: Vec<f64> = (0..classes).map(vote).collect();
        (0..classes).max_by(|&a, &b| votes[a].total_cmp(&votes[b]).then(b.cmp(&a))) == Some(class)
    });
    Some(right.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classifiers_find_the_classes_they_can_separate() {
        // Class 1 lies within class 0: a nearest-neighbour classifier separates them, a linear one cannot.
        let train = Sample { features: &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], columns: 1, classes: &[0, 0, 1, 1, 0, 0] };
        let test = Sample { features: &[0.1, 2.1, 2.9, 4.9], columns: 1, classes: &[0, 1, 1, 0] };
        assert_eq!(nearest(&train, &test), [true; 4]);
        assert_eq!(linear(&train, &test, 2).unwrap().iter().filter(|right| **right).count(), 2);
        // Three classes in a triangle, and a constant column.
        let features = [0.0, 0.0, 7.0, 0.1, 0.0, 7.0, 5.0, 0.0, 7.0, 5.1, 0.0, 7.0, 2.0, 5.0, 7.0, 2.1, 5.0, 7.0];
        let three = Sample { features: &features, columns: 3, classes: &[0, 0, 1, 1, 2, 2] };
        assert_eq!(linear(&three, &three, 3).unwrap(), [true; 6]);
    }
}
