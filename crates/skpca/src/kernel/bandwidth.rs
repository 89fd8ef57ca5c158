//! Bandwidth rules: γ computed from the rows.
//!
//! ```text
//! median   γ = 1 / median ‖x − y‖²           over pairs of rows
//! mean     γ = 1 / 2σ²,  σ² = mean ‖x − y‖²   (Das, Golatkar & Awate 2018)
//! scale    γ = 1 / (d · var X)                (scikit-learn's support vector machines)
//! auto     γ = 1 / d                          (scikit-learn's KernelPCA)
//! ```
//!
//! For kernels of the city-block distance the distance replaces the squared distance.

use rayon::prelude::*;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::exact::ExactSum;
use crate::parcel::Parcel;
use crate::points::Points;
use crate::random::{Random, Stream};
use crate::rows::{Errand, Pass, Rows, fold};
use crate::spec::Fields;

/// Maximum number of pairs; if there are more, a seeded sample of this many is used.
const MAX_PAIRS: usize = 100_000;
/// Number of pairs processed together.
const BATCH: usize = 4096;
/// Number of values requested from other machines at a time.
const REMOTE_BATCH: usize = 8_000_000;

/// Computes bandwidths by rules from rows.
pub struct Bandwidth<'a> {
    pub(crate) rows: Option<&'a dyn Rows>,
    pub(crate) seed: u64,
}

/// The distance between two rows that a rule uses.
#[derive(Clone, Copy, PartialEq)]
pub enum Distance {
    /// `‖x − z‖²`
    Squared,
    /// `‖x − z‖₁`
    Manhattan,
}

impl Bandwidth<'_> {
    /// Reads a bandwidth from the fields: a positive number, or a rule, which is evaluated.
    pub fn of(&self, name: &str, fields: &mut Fields, distance: Distance) -> Result<f64> {
        let value = fields.value(name)?.unwrap_or_default();
        let gamma = match &value {
            Value::String(rule) => {
                let rows = self
                    .rows
                    .ok_or_else(|| Error::parameter(name, rule, "a number where there are no points to look at"))?;
                let gamma = self.rule(rows, rule, distance)?;
                if !(gamma.is_finite() && gamma > 0.0) {
                    let expected = "rows whose distances fit a floating-point number; scale the columns first";
                    return Err(Error::parameter(name, rule, expected));
                }
                gamma
            }
            number => number.as_f64().unwrap_or(f64::NAN),
        };
        if gamma.is_finite() && gamma > 0.0 {
            Ok(gamma)
        } else {
            Err(Error::parameter(name, gamma, "a positive number"))
        }
    }

    fn rule(&self, rows: &dyn Rows, rule: &str, distance: Distance) -> Result<f64> {
        if rule == "auto" {
            return Ok(1.0 / rows.d() as f64);
        }
        if rule == "scale" {
            check_varied(rows)?;
            return Ok(1.0 / (rows.d() as f64 * variance(rows)?));
        }
        let mut distances = self.distances(rows, distance)?;
        distances.retain(|(v, _)| *v > 0.0);
        if distances.is_empty() {
            check_varied(rows)?;
            // The rows differ by so little that squares underflow, or all sampled pairs are equal.
            return Ok(f64::INFINITY);
        }
        let total: f64 = distances.iter().map(|(_, count)| count).sum();
        let mean = distances.iter().map(|(v, count)| v * count / total).sum::<f64>();
        match (rule, distance) {
            ("median", _) => Ok(1.0 / median(&mut distances, total)),
            (_, Distance::Squared) => Ok(0.5 / mean),
            (_, Distance::Manhattan) => Ok(1.0 / mean),
        }
    }

    /// Returns the distances of pairs of rows with their weights. The caller drops pairs of equal rows, which would
    /// make the bandwidth of a table with many duplicates zero.
    fn distances(&self, rows: &dyn Rows, distance: Distance) -> Result<Vec<(f64, f64)>> {
        let n = rows.n();
        let count = |i: usize, j: usize| rows.weights().map_or(1.0, |weights| weights[i] * weights[j]);
        if n * n.saturating_sub(1) / 2 <= MAX_PAIRS {
            let all = rows.gather(&(0..n).collect::<Vec<_>>())?;
            let pairs: Vec<(usize, usize)> = (0..n).flat_map(|i| (0..i).map(move |j| (i, j))).collect();
            let pair = |(i, j)| (distance.between(all.row(i), all.row(j)), count(i, j));
            return Ok(pairs.into_par_iter().map(pair).collect());
        }
        let mut random = Random::new(self.seed, Stream::Bandwidth);
        let mut pair = || {
            let (i, j) = (random.below(n), random.below(n - 1));
            [i, if j < i { j } else { j + 1 }]
        };
        let drawn: Vec<usize> = (0..MAX_PAIRS).flat_map(|_| pair()).collect();
        let mut distances = Vec::with_capacity(MAX_PAIRS);
        // Every request makes the other machines search all their rows.
        let at_once = if rows.remote().is_some() { REMOTE_BATCH / (2 * rows.d()) } else { 0 };
        for some in drawn.chunks(2 * at_once.max(BATCH)) {
            let ends = rows.gather(some)?;
            let pairs = ends.values().par_chunks_exact(2 * rows.d()).zip(some.par_chunks_exact(2));
            distances.par_extend(pairs.map(|(pair, ends)| {
                let (x, y) = pair.split_at(rows.d());
                (distance.between(x, y), count(ends[0], ends[1]))
            }));
        }
        Ok(distances)
    }
}

impl Distance {
    fn between(self, x: &[f64], y: &[f64]) -> f64 {
        let differences = x.iter().zip(y).map(|(a, b)| a - b);
        match self {
            Distance::Squared => differences.map(|v| v * v).sum(),
            Distance::Manhattan => differences.map(f64::abs).sum(),
        }
    }
}

/// Rejects a table whose rows are all the same.
fn check_varied(rows: &dyn Rows) -> Result<()> {
    let first = rows.gather(&[0])?;
    if fold(rows, &Differing(first.row(0).into()), (&(), "bandwidth"))? {
        return Ok(());
    }
    Err(Error::NoVariance { why: "all rows are the same".into() })
}

/// The name of the pass [`Differing`] when it is sent to another machine.
pub(crate) const DIFFERING: &str = "differing";
/// The name of the pass [`Power`] when it is sent to another machine.
pub(crate) const POWER: &str = "power";

/// The pass that checks whether any row differs from this one.
struct Differing(Vec<f64>);

impl Pass for Differing {
    type Sum = bool;

    fn zero(&self) -> bool {
        false
    }

    fn add(&self, sum: &mut bool, block: &Points, _: usize) {
        *sum = *sum || block.rows().any(|row| row != self.0);
    }

    fn merge(&self, left: &mut bool, right: bool) {
        *left |= right;
    }

    fn parcel(&self) -> Parcel {
        Parcel::new(DIFFERING, self.0.clone())
    }

    fn numbers(&self, sum: bool) -> Vec<f64> {
        vec![f64::from(u8::from(sum))]
    }

    fn sum(&self, numbers: Vec<f64>) -> bool {
        numbers[0] != 0.0
    }
}

/// The sum `Σ w (v − shift)^power / count` over all values. Weights are only used for rows in memory and never sent.
struct Power<'a> {
    shift: f64,
    power: i32,
    count: f64,
    weights: Option<&'a [f64]>,
}

impl Pass for Power<'_> {
    type Sum = ExactSum;

    fn zero(&self) -> ExactSum {
        ExactSum::default()
    }

    fn add(&self, sum: &mut ExactSum, block: &Points, first: usize) {
        let power = |v: &f64| (v - self.shift).powi(self.power) / self.count;
        match self.weights {
            None => block.values().iter().map(power).for_each(|term| sum.add(term)),
            Some(weights) => {
                let rows = block.rows().zip(&weights[first..]);
                rows.for_each(|(row, weight)| row.iter().for_each(|v| sum.add(weight * power(v))));
            }
        }
    }

    fn merge(&self, left: &mut ExactSum, right: ExactSum) {
        left.merge(&right);
    }

    fn parcel(&self) -> Parcel {
        Parcel::new(POWER, vec![self.shift, self.count]).with("power", self.power)
    }

    fn numbers(&self, sum: ExactSum) -> Vec<f64> {
        sum.numbers()
    }

    fn sum(&self, numbers: Vec<f64>) -> ExactSum {
        ExactSum::of(&numbers)
    }
}

/// Restores the pass [`Differing`] on another machine.
pub(crate) fn differing(parcel: Parcel) -> Result<Box<dyn Errand>> {
    Ok(Box::new(Differing(parcel.numbers)))
}

/// Restores the pass [`Power`] on another machine.
pub(crate) fn power(mut parcel: Parcel) -> Result<Box<dyn Errand>> {
    let (power, numbers) = (parcel.count("power")?, parcel.take(2)?);
    Ok(Box::new(Power { shift: numbers[0], power: power as i32, count: numbers[1], weights: None }))
}

/// Returns the weighted median; between two values, their mean.
fn median(values: &mut [(f64, f64)], total: f64) -> f64 {
    let lower = |a: &(f64, f64), b: &(f64, f64)| a.0.total_cmp(&b.0);
    if values.iter().all(|(_, count)| *count == 1.0) {
        let (even, middle) = (values.len().is_multiple_of(2), values.len() / 2);
        let (below, &mut (upper, _), _) = values.select_nth_unstable_by(middle, lower);
        return if even { 0.5 * (upper + below.iter().map(|(v, _)| *v).fold(f64::MIN, f64::max)) } else { upper };
    }
    values.sort_unstable_by(lower);
    let mut below = 0.0;
    for (k, (value, count)) in values.iter().enumerate() {
        below += count;
        let left = below - 0.5 * total;
        // Sums of weights such as 0.1 may miss the middle by rounding.
        if left.abs() <= MIDDLE * total {
            return values.get(k + 1).map_or(*value, |(next, _)| 0.5 * (value + next));
        }
        if left > 0.0 {
            return *value;
        }
    }
    values[values.len() - 1].0
}

/// Relative tolerance for rounding in a sum of weights.
const MIDDLE: f64 = 1e-12;

/// Returns the variance of all values, like numpy's `X.var()`.
fn variance(rows: &dyn Rows) -> Result<f64> {
    let (count, weights) = (rows.weight() * rows.d() as f64, rows.weights());
    let mean = fold(rows, &Power { shift: 0.0, power: 1, count, weights }, (&(), "bandwidth"))?.value();
    Ok(fold(rows, &Power { shift: mean, power: 2, count, weights }, (&(), "bandwidth"))?.value())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gamma(values: Vec<f64>, rule: &str, distance: Distance) -> Result<f64> {
        let points = Points::new(1, values).unwrap();
        Bandwidth { rows: Some(&points), seed: 3 }.rule(&points, rule, distance)
    }

    #[test]
    fn rules_by_hand() {
        // Distances of 0, 1, 3: 1, 2, 3; squares 1, 4, 9.
        let points = || vec![0.0, 1.0, 3.0];
        assert_eq!(gamma(points(), "median", Distance::Squared), Ok(1.0 / 4.0));
        assert_eq!(gamma(points(), "median", Distance::Manhattan), Ok(1.0 / 2.0));
        let mean = gamma(points(), "mean", Distance::Squared).unwrap();
        assert!((mean - 0.5 / (14.0 / 3.0)).abs() < 1e-15);
        let wide = Points::new(4, vec![0.0; 8]).unwrap();
        assert_eq!(Bandwidth { rows: Some(&wide), seed: 3 }.rule(&wide, "auto", Distance::Squared), Ok(0.25));
        let scale = gamma(points(), "scale", Distance::Squared).unwrap();
        assert!((scale - 9.0 / 14.0).abs() < 1e-15);
        // 0, 1: the one pair; 0, 1, 1, 3 with the equal pair left out: 1 1 4 4 9.
        assert_eq!(gamma(vec![0.0, 1.0], "median", Distance::Squared), Ok(1.0));
        assert_eq!(gamma(vec![0.0, 1.0, 1.0, 3.0], "median", Distance::Squared), Ok(1.0 / 4.0));
        // An even count takes the mean of the middle two: 1 4 9 16 36 49.
        assert_eq!(gamma(vec![0.0, 1.0, 3.0, 7.0], "median", Distance::Squared), Ok(1.0 / 12.5));
    }

    #[test]
    fn a_sample_of_pairs_approximates_all_pairs() {
        let mut random = Random::new(5, Stream::Tests);
        let values: Vec<f64> = (0..3000).map(|_| random.normal()).collect();
        let sampled = gamma(values, "median", Distance::Squared).unwrap();
        // Median of 2χ²₁ is 0.9099.
        assert!((1.0 / sampled - 0.9099).abs() < 0.03, "{sampled}");
    }

    #[test]
    fn equal_rows_have_no_bandwidth() {
        for rule in ["median", "mean", "scale"] {
            assert!(matches!(gamma(vec![2.0; 4], rule, Distance::Squared), Err(Error::NoVariance { .. })), "{rule}");
        }
    }
}
