//! What the program draws random numbers for.

use skpca::Random;

/// Each use has a stream of its own; none of them is one of the library's.
#[derive(Clone, Copy)]
pub enum Stream {
    /// Rows that are held out.
    Split = 1,
    /// Rows that a nearest neighbour is looked for among, and rows that look for one.
    Neighbours = 2,
    /// Rows that are drawn.
    Plots = 3,
    /// Rows that are fitted, of a table of more.
    SampledRows = 4,
}

/// The stream of `seed` for one use.
pub fn random(seed: u64, stream: Stream) -> Random {
    Random::numbered(seed, stream as u32)
}
