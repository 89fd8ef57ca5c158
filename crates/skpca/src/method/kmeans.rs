//! k-means: its centres are landmarks, or starts of expansion vectors.
//!
//! Seeds by k-means++ (each with a probability proportional to its squared distance from the previous ones), then
//! Lloyd's iterations.

use rayon::prelude::*;

use crate::points::Points;
use crate::random::Random;
use crate::sample_weight::Copies;

/// Maximum number of Lloyd's iterations; the centres need not be a minimum.
const ROUNDS: usize = 20;

/// Rows and their weights, 1 by default.
type Counted<'a> = (&'a Points<'a>, Option<&'a [f64]>);

/// Computes `k` centres, or fewer if there are fewer distinct rows.
pub(super) fn centres(rows: Counted, k: usize, random: &mut Random) -> Points<'static> {
    let points = rows.0;
    let mut centres = seeds(rows, k, random);
    let mut nearest = Vec::new();
    for _ in 0..ROUNDS {
        let now: Vec<usize> = (0..points.n()).into_par_iter().map(|i| closest(points.row(i), &centres).0).collect();
        if now == nearest {
            break;
        }
        centres = means(rows, &now, &centres);
        nearest = now;
    }
    centres
}

fn seeds((points, weights): Counted, k: usize, random: &mut Random) -> Points<'static> {
    let count = |i: usize| weights.map_or(1.0, |weights| weights[i]);
    let mut chosen = vec![match weights {
        None => random.below(points.n()),
        Some(weights) => {
            let copies = Copies::new(weights);
            copies.row(random.below(copies.count()))
        }
    }];
    let distance = |i: usize, to: usize| count(i) * squared(points.row(i), points.row(to));
    let mut distances: Vec<f64> = (0..points.n()).map(|i| distance(i, chosen[0])).collect();
    while chosen.len() < k {
        let total: f64 = distances.iter().sum();
        let mut left = random.uniform() * total;
        let next = distances.iter().position(|d| {
            left -= d;
            left < 0.0 && *d > 0.0
        });
        // Rounding may exhaust the rows before the sum; if all distances are 0, every distinct row is a centre.
        let Some(next) = next.or_else(|| distances.iter().position(|d| *d > 0.0)) else { break };
        chosen.push(next);
        distances = distances.iter().enumerate().map(|(i, now)| now.min(distance(i, next))).collect();
    }
    points.select(&chosen)
}

/// Moves each centre to the mean of its rows; a centre without rows stays.
fn means((points, weights): Counted, nearest: &[usize], centres: &Points) -> Points<'static> {
    let d = points.d();
    let mut values = centres.values().to_vec();
    let mut counts = vec![0.0; centres.n()];
    for (i, (row, &at)) in points.rows().zip(nearest).enumerate() {
        let count = weights.map_or(1.0, |weights| weights[i]);
        let first = counts[at] == 0.0;
        counts[at] += count;
        let part = counts[at] / count;
        // A running mean, which is exact if all values are equal.
        for (mean, value) in values[at * d..][..d].iter_mut().zip(row) {
            // Not (value − mean) / count: the difference of two huge values may overflow.
            *mean = if first { *value } else { *mean + (value / part - *mean / part) };
        }
    }
    Points::new(d, values).expect("means of finite values")
}

fn closest(row: &[f64], centres: &Points) -> (usize, f64) {
    let distances = centres.rows().map(|centre| squared(row, centre)).enumerate();
    distances.fold((0, f64::INFINITY), |best, at| if at.1 < best.1 { at } else { best })
}

fn squared(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;
    use crate::toys;

    #[test]
    fn three_clusters_have_three_centres() {
        let points = toys::clusters(0);
        let found = |seed: u64| {
            let centres = centres((&points, None), 3, &mut Random::new(seed, Stream::Tests));
            let mean = |class: usize| points.slice(30 * class..30 * (class + 1)).mean();
            (0..3).all(|class| closest(&mean(class), &centres).1 < 1e-20)
        };
        // Two seeds in the same cluster may stay there; k-means++ makes that rare.
        let times = (0..20).filter(|&seed| found(seed)).count();
        assert!((17..=20).contains(&times), "{times}");
    }

    #[test]
    fn there_are_no_more_centres_than_distinct_rows() {
        let points = Points::new(2, vec![0.1, 0.3, 0.1, 0.3, 0.1, 0.5, 0.1, 0.5]).unwrap();
        let centres = centres((&points, None), 3, &mut Random::new(0, Stream::Tests));
        assert_eq!(centres.n(), 2);
        // The first column is constant and stays so, bit for bit.
        assert!(centres.rows().all(|row| row[0] == 0.1));
    }
}
