//! Seeded random numbers that never change: SplitMix64 (Steele, Lea & Flood 2014). The generator is our own, twenty
//! lines, because a model must not change when a dependency changes its default generator.

/// The uses of random numbers in the library. Each use has its own stream: two uses of one stream would draw the same
/// rows, so that models would be evaluated on the rows they were chosen by. The numbers of streams never change,
/// because models depend on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stream {
    /// Test data of the library.
    #[cfg(test)]
    Tests = 0,
    /// Pairs of rows whose distances determine the bandwidth.
    Bandwidth = 1,
    /// Pivots of the factor.
    Pivots = 2,
    /// The first block of the eigensolver.
    EigenStart = 3,
    /// Candidates for landmarks.
    LandmarkCandidates = 4,
    /// The sample of rows on which exact kernel PCA is estimated.
    Reference = 5,
    /// Training rows that are scored.
    Scored = 6,
    /// [`crate::toys::clusters`]
    Clusters = 7,
    /// [`crate::toys::parabola`]
    Parabola = 8,
    /// The first vector of inverse iteration.
    Condition = 9,
    /// Landmarks drawn uniformly.
    UniformLandmarks = 10,
    /// Rows on which landmarks are compared.
    LandmarkJudges = 11,
    /// [`crate::toys::normal`]
    Normal = 12,
    /// Candidates for support points that span all others.
    SpanningSupport = 13,
    /// Rows on which the likelihood is first maximised.
    NearRows = 14,
    /// Rows that greedy selection chooses among.
    GreedyCandidates = 15,
    /// Labelled rows that a conformal kernel is learned from.
    ConformalRows = 17,
    /// Support points that are the centres of a conformal kernel's factor.
    ConformalVectors = 18,
    /// Rows on which the points of `expansion` are optimised.
    ExpansionRows = 19,
    /// Initial cluster centres of `expansion`.
    ExpansionCentres = 20,
    /// Rows on which a kernel must be positive semi-definite.
    Definite = 21,
    /// Rows on which the estimate of exact kernel PCA is evaluated.
    ReferenceJudges = 22,
    /// The sketch of the rows that finds the plane in which points move.
    Plane = 23,
    /// Rows on which products in 32 bits are compared with those in 64.
    RoughProducts = 24,
    /// Candidates for rows that span all others.
    SpanningRows = 25,
    /// Rows that methods choose on if not all fit in memory.
    SampledRows = 30,
    /// Random rotations of the leading eigenvectors for several starts of P.
    Starts = 31,
    /// Held-out rows and their assignment to folds.
    HeldOutRows = 40,
    /// Rows that the models of folds are fitted to.
    FittedRows = 41,
    /// Rows of the concentration steps, and their order.
    Concentration = 42,
    /// Rows on which sparse scores are compared with exact ones.
    AgreementRows = 43,
    /// Rows that matching pursuit chooses among.
    PursuitCandidates = 50,
    /// Landmarks that are cluster centres.
    LandmarkCentres = 51,
    /// Landmarks drawn by leverage scores.
    LeverageLandmarks = 52,
    /// The reservoir of online learning.
    Reservoir = 53,
    /// Sparse rows on which points are chosen.
    SparseSample = 54,
}

/// The first stream number for callers.
const CALLERS: u64 = 1000;

/// The increment of the state per number.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A stream of pseudo-random numbers.
///
/// ```
/// use skpca::Random;
///
/// let mut random = Random::numbered(7, 0);
/// let dice: Vec<usize> = (0..100).map(|_| random.below(6)).collect();
/// assert!(dice.iter().all(|eyes| *eyes < 6));
/// assert_eq!(Random::numbered(7, 0).sample(10, 3), Random::numbered(7, 0).sample(10, 3));
/// ```
pub struct Random(u64);

impl Random {
    /// Returns stream `number` of `seed` for the caller's own use; the library uses none of these.
    pub fn numbered(seed: u64, number: u32) -> Random {
        Random::start(seed, CALLERS + u64::from(number))
    }

    /// Returns the stream of `seed` for one use.
    pub(crate) fn new(seed: u64, stream: Stream) -> Random {
        Random::start(seed, stream as u64)
    }

    /// Returns the same stream after `draws` numbers.
    pub(crate) fn at(seed: u64, stream: Stream, draws: u64) -> Random {
        let Random(state) = Random::new(seed, stream);
        Random(state.wrapping_add(draws.wrapping_mul(STEP)))
    }

    fn start(seed: u64, number: u64) -> Random {
        let mut random = Random(seed ^ number.wrapping_mul(0xd134_2543_de82_ef95));
        random.next();
        random
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Draws a number uniformly from [0, 1).
    pub(crate) fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Draws an integer uniformly from 0..bound.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    /// Draws a standard normal number (Box–Muller, one of the pair).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Shuffles `values`.
    pub(crate) fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            values.swap(last, self.below(last + 1));
        }
    }

    /// Draws `count` distinct integers from 0..n, in increasing order; returns all of them if `count ≥ n`.
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
        let mut random = Random::new(7, Stream::Bandwidth);
        assert_eq!([random.next(), random.next()], [5034285472447030919, 4863513099156352951]);
        assert_eq!(Random::at(7, Stream::Bandwidth, 1).next(), 4863513099156352951);
    }

    #[test]
    fn samples_are_distinct_sorted_and_uniform() {
        let mut random = Random::new(0, Stream::Tests);
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
        let mut random = Random::new(1, Stream::Tests);
        let values: Vec<f64> = (0..100_000).map(|_| random.normal()).collect();
        let mean = values.iter().sum::<f64>() / 1e5;
        let variance = values.iter().map(|v| v * v).sum::<f64>() / 1e5;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03, "{mean} {variance}");
    }
}
