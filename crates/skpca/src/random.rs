//! Seeded numbers that stay the same for ever: SplitMix64 (Steele, Lea & Flood 2014). A generator of our own,
//! twenty lines, because a model must not change when a dependency changes its default generator.

/// A stream of pseudo-random numbers.
pub struct Random(u64);

impl Random {
    /// The stream of `seed` for one purpose; other purposes get unrelated streams.
    pub fn new(seed: u64, purpose: u64) -> Random {
        let mut random = Random(seed ^ purpose.wrapping_mul(0xd134_2543_de82_ef95));
        random.next();
        random
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    pub(crate) fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in 0..bound.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    /// Standard normal (Box–Muller, one of the pair).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// `count` distinct numbers of 0..n in increasing order; all of them if there are no more.
    pub fn sample(&mut self, n: usize, count: usize) -> Vec<usize> {
        if count >= n {
            return (0..n).collect();
        }
        // Floyd's algorithm: O(count) draws and memory.
        let mut chosen = std::collections::HashSet::with_capacity(count);
        for top in n - count..n {
            let candidate = self.below(top + 1);
            if !chosen.insert(candidate) {
                chosen.insert(top);
            }
        }
        let mut chosen: Vec<usize> = chosen.into_iter().collect();
        chosen.sort_unstable();
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_never_changes() {
        let mut random = Random::new(7, 1);
        assert_eq!([random.next(), random.next()], [5034285472447030919, 4863513099156352951]);
    }

    #[test]
    fn samples_are_distinct_sorted_and_uniform() {
        let mut random = Random::new(0, 0);
        let mut hits = [0usize; 10];
        for _ in 0..10_000 {
            let sample = random.sample(10, 3);
            assert!(sample.windows(2).all(|w| w[0] < w[1]) && sample.len() == 3);
            sample.iter().for_each(|&i| hits[i] += 1);
        }
        // 3000 expected each, standard deviation 46.
        assert!(hits.iter().all(|&h| h.abs_diff(3000) < 250), "{hits:?}");
        assert_eq!(random.sample(4, 9), [0, 1, 2, 3]);
    }

    #[test]
    fn normal_has_mean_zero_and_variance_one() {
        let mut random = Random::new(1, 0);
        let values: Vec<f64> = (0..100_000).map(|_| random.normal()).collect();
        let mean = values.iter().sum::<f64>() / 1e5;
        let variance = values.iter().map(|v| v * v).sum::<f64>() / 1e5;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03, "{mean} {variance}");
    }
}
