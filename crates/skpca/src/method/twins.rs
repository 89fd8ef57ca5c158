//! Which rows are equal?

use std::cmp::Ordering;

use rayon::prelude::*;

use crate::points::Points;

/// Rows that are equal. Under a ridge on coefficients they share what one would pay for alone: together they are one
/// row whose ridge is λ over their number.
pub(super) struct Twins {
    /// How many each row is, itself included.
    pub counts: Vec<f64>,
    /// All but the first of each.
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
