//! Streams of random numbers, one for each use.

use skpca::Random;

/// A use of random numbers. Each has its own stream, distinct from those of the library.
#[derive(Clone, Copy)]
pub enum Stream {
    /// Choosing held-out rows.
    Split = 1,
    /// Choosing reference and query rows of the nearest-neighbour classifier.
    Neighbours = 2,
    /// Choosing rows to plot.
    Plots = 3,
    /// Choosing the rows of `--sample`.
    SampledRows = 4,
}

/// Returns the stream of `seed` for one use.
pub fn random(seed: u64, stream: Stream) -> Random {
    Random::numbered(seed, stream as u32)
}
