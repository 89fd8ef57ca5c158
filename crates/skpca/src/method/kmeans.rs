//! k-means: centres that points are near to, a place where expansion vectors may start.
//!
//! Seeds by k-means++ (each next one with a chance in proportion to its squared distance to those there are), then Lloyd's rounds.

use rayon::prelude::*;

use crate::points::Points;
use crate::random::Random;

/// Lloyd's rounds at most: a start need not be a minimum.
const ROUNDS: usize = 20;

/// `k` centres, or fewer if there are not as many distinct rows.
pub(super) fn centres(points: &Points, k: usize, random: &mut Random) -> Points<'static> {
    let mut centres = seeds(points, k, random);
    let mut nearest = Vec::new();
    for _ in 0..ROUNDS {
        let now: Vec<usize> = (0..points.n()).into_par_iter().map(|i| closest(points.row(i), &centres).0).collect();
        if now == nearest {
            break;
        }
        centres = means(points, &now, &centres);
        nearest = now;
    }
    centres
}

fn seeds(points: &Points, k: usize, random: &mut Random) -> Points<'static> {
    let mut chosen = vec![random.below(points.n())];
    let mut distances: Vec<f64> = points.rows().map(|row| squared(row, points.row(chosen[0]))).collect();
    while chosen.len() < k {
        let total: f64 = distances.iter().sum();
        let mut left = random.uniform() * total;
        let next = distances.iter().position(|d| {
            left -= d;
            left < 0.0 && *d > 0.0
        });
        // Rounding may leave a little; without any distance left every row is a centre.
        let Some(next) = next.or_else(|| distances.iter().position(|d| *d > 0.0)) else { break };
        chosen.push(next);
        let of = |(distance, row): (&f64, &[f64])| distance.min(squared(row, points.row(next)));
        distances = distances.iter().zip(points.rows()).map(of).collect();
    }
    points.select(&chosen)
}

/// The mean of the rows of each centre; one without rows stays.
fn means(points: &Points, nearest: &[usize], centres: &Points) -> Points<'static> {
    let d = points.d();
    let mut values = centres.values().to_vec();
    let mut counts = vec![0.0; centres.n()];
    for (row, &at) in points.rows().zip(nearest) {
        counts[at] += 1.0;
        // A running mean: where all values are the same, it is that value to the last bit.
        for (mean, value) in values[at * d..][..d].iter_mut().zip(row) {
            // Not (value − mean) / count: the difference of two huge values may overflow.
            *mean = if counts[at] == 1.0 { *value } else { *mean + (value / counts[at] - *mean / counts[at]) };
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
            let centres = centres(&points, 3, &mut Random::new(seed, Stream::Tests));
            let mean = |class: usize| points.slice(30 * class..30 * (class + 1)).mean();
            (0..3).all(|class| closest(&mean(class), &centres).1 < 1e-20)
        };
        // Two seeds in one cluster may stay there; k-means++ makes that rare.
        let times = (0..20).filter(|&seed| found(seed)).count();
        assert!((17..=20).contains(&times), "{times}");
    }

    #[test]
    fn there_are_no_more_centres_than_distinct_rows() {
        let points = Points::new(2, vec![0.1, 0.3, 0.1, 0.3, 0.1, 0.5, 0.1, 0.5]).unwrap();
        let centres = centres(&points, 3, &mut Random::new(0, Stream::Tests));
        assert_eq!(centres.n(), 2);
        // The first column is the same everywhere and stays so, bit for bit.
        assert!(centres.rows().all(|row| row[0] == 0.1));
    }
}
