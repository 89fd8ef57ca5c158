//! Reservoir sampling by weight and age: a sample of all rows so far, without knowing their final number.
//!
//! ```text
//! row i:  key = ln w_i + Σ_(j ≤ i) ln(1 / λ_j) − ln(−ln u_i),      the rows with the largest keys stay
//! ```
//!
//! This is the method of Efraimidis & Spirakis (2006) in logarithms, so that old rows fade without overflow; equal
//! weights and λ = 1 give a uniform sample. u_i depends on the seed and i only, so the sample does not depend on
//! batches.

use crate::points::Points;
use crate::random::{Random, Stream};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reservoir {
    seed: u64,
    size: usize,
    d: usize,
    /// Number of rows offered so far.
    offered: u64,
    /// `Σ ln(1 / λ)`
    clock: f64,
    numbers: Vec<u64>,
    keys: Vec<f64>,
    values: Vec<f64>,
    /// Index of the smallest key, once the reservoir is full.
    lowest: usize,
    /// Number of rows added since the last review.
    changed: usize,
}

/// The stored contents of a reservoir.
pub(super) struct Kept {
    pub offered: u64,
    pub clock: f64,
    pub changed: usize,
    pub numbers: Vec<u64>,
    pub keys: Vec<f64>,
    pub values: Vec<f64>,
}

impl Reservoir {
    pub(super) fn new(seed: u64, size: usize, d: usize) -> Reservoir {
        let none = Kept { offered: 0, clock: 0.0, changed: 0, numbers: vec![], keys: vec![], values: vec![] };
        Reservoir::with(seed, (size, d), none)
    }

    pub(super) fn with(seed: u64, (size, d): (usize, usize), kept: Kept) -> Reservoir {
        let Kept { offered, clock, changed, numbers, keys, values } = kept;
        let mut reservoir = Reservoir { seed, size, d, offered, clock, numbers, keys, values, lowest: 0, changed };
        reservoir.find_lowest();
        reservoir
    }

    pub(super) fn kept(&self) -> Kept {
        let Reservoir { offered, clock, changed, ref numbers, ref keys, ref values, .. } = *self;
        Kept { offered, clock, changed, numbers: numbers.clone(), keys: keys.clone(), values: values.clone() }
    }

    /// Returns the maximum number of rows.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Returns the current number of rows.
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    pub(super) fn numbers(&self) -> &[u64] {
        &self.numbers
    }

    pub(super) fn points(&self) -> Points<'static> {
        Points::finite(self.d, self.values.clone())
    }

    /// Returns the number of rows offered so far, kept or not.
    pub(super) fn offered(&self) -> u64 {
        self.offered
    }

    /// Returns the rows with numbers below `number`.
    pub(super) fn points_before(&self, number: u64) -> Points<'static> {
        let old: Vec<usize> = (0..self.len()).filter(|&i| self.numbers[i] < number).collect();
        self.points().select(&old)
    }

    /// Returns the number of rows added since the last review.
    pub(super) fn changed(&self) -> usize {
        self.changed
    }

    /// Returns the positions of the latest rows, as many as were added since the last review, the latest first.
    pub(super) fn newest(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_unstable_by_key(|&i| std::cmp::Reverse(self.numbers[i]));
        order.truncate(self.changed);
        order
    }

    pub(super) fn looked_at(&mut self) {
        self.changed = 0;
    }

    /// Offers the next row, after the weights of all earlier ones were multiplied by `forget`.
    pub(super) fn offer(&mut self, row: &[f64], weight: f64, forget: f64) {
        let number = self.offered;
        self.offered += 1;
        self.clock -= forget.ln();
        let uniform = Random::at(self.seed, Stream::Reservoir, number).uniform();
        let key = weight.ln() + self.clock - (-uniform.ln()).ln();
        // A row of weight 0, or the one draw in 2⁵³ that is 0.
        if key == f64::NEG_INFINITY || self.size == 0 {
            return;
        }
        if self.numbers.len() < self.size {
            self.numbers.push(number);
            self.keys.push(key);
            self.values.extend(row);
        } else if key > self.keys[self.lowest] {
            let at = self.lowest;
            (self.numbers[at], self.keys[at]) = (number, key);
            self.values[at * self.d..(at + 1) * self.d].copy_from_slice(row);
        } else {
            return;
        }
        self.changed += 1;
        if self.numbers.len() == self.size {
            self.find_lowest();
        }
    }

    fn find_lowest(&mut self) {
        let lowest = (0..self.keys.len()).min_by(|a, b| self.keys[*a].total_cmp(&self.keys[*b]));
        self.lowest = lowest.unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(size: usize, rows: u64, seed: u64, forget: f64, weight: impl Fn(u64) -> f64) -> Vec<u64> {
        let mut reservoir = Reservoir::new(seed, size, 1);
        (0..rows).for_each(|i| reservoir.offer(&[i as f64], weight(i), forget));
        let points = reservoir.points();
        assert!(points.rows().zip(reservoir.numbers()).all(|(row, number)| row[0] == *number as f64));
        reservoir.numbers().to_vec()
    }

    #[test]
    fn the_sample_is_uniform_and_a_function_of_the_seed() {
        let mut hits = [0_usize; 10];
        for seed in 0..2000 {
            let found = sample(5, 50, seed, 1.0, |_| 1.0);
            assert!(found.len() == 5 && found == sample(5, 50, seed, 1.0, |_| 1.0));
            found.iter().for_each(|number| hits[*number as usize / 5] += 1);
        }
        // 1000 expected each, standard deviation 29.
        assert!(hits.iter().all(|hits| hits.abs_diff(1000) < 150), "{hits:?}");
    }

    #[test]
    fn weights_and_age_decide_which_rows_stay() {
        let share = |forget: f64, weight: &dyn Fn(u64) -> f64| {
            let late = |seed| sample(5, 50, seed, forget, weight).iter().filter(|number| **number >= 25).count();
            (0..500).map(late).sum::<usize>() as f64 / 2500.0
        };
        assert!((share(1.0, &|_| 1.0) - 0.5).abs() < 0.05);
        assert!(share(1.0, &|i| if i < 25 { 0.0 } else { 1.0 }) == 1.0);
        // Each is three times as likely to be drawn, which without replacement gives a little below 3/4.
        assert!((share(1.0, &|i| if i < 25 { 1.0 } else { 3.0 }) - 0.73).abs() < 0.05);
        assert!(share(0.8, &|_| 1.0) > 0.99);
        // Nothing overflows after a million rows.
        assert!(sample(3, 1_000_000, 0, 0.5, |_| 1.0).iter().all(|number| *number > 999_900));
    }
}
