//! Finds equal rows.

use std::cmp::Ordering;

use rayon::prelude::*;

use crate::points::Points;

/// Equal rows. Under a ridge penalty on coefficients, c equal rows share a coefficient: together they act as one row
/// with the ridge λ/c.
pub(super) struct Twins {
    /// For each row, the number of rows equal to it, itself included.
    pub counts: Vec<f64>,
    /// All rows that equal an earlier one.
    pub others: Vec<usize>,
}

impl Twins {
    pub(super) fn of(points: &Points) -> Twins {
        let mut order: Vec<usize> = (0..points.n()).collect();
        let compare = |i: usize, j: usize| points.row(i).partial_cmp(points.row(j)).unwrap_or(Ordering::Equal);
        order.par_sort_by(|&i, &j| compare(i, j).then(i.cmp(&j)));
        let (mut counts, mut others) = (vec![1.0; points.n()], Vec::new());
        for equal in order.chunk_by(|&i, &j| points.row(i) == points.row(j)) {
            equal.iter().for_each(|&i| counts[i] = equal.len() as f64);
            others.extend(&equal[1..]);
        }
        Twins { counts, others }
    }
}
