//! Rows, wherever they are: how many there are, how wide, some of them by number, and a fold over all of them in blocks.
//!
//! ```text
//! rows 0…n  →  leaves of whole blocks  →  pass.add(sum, block) in order  →  pass.merge(left, right) up a fixed tree
//! ```
//!
//! A [`Pass`] is a value that knows nothing of where the rows are, and its sums are small. Leaves are runs of whole blocks
//! counted from row 0, so that rows in memory and rows elsewhere give the same bits.

use std::ops::Range;

use crate::blocks;
use crate::error::Result;
use crate::points::Points;
use crate::watch::Watch;

/// A table of finite rows, as the kernel sees them.
pub(crate) trait Rows: Sync {
    /// Number of rows.
    fn n(&self) -> usize;

    /// Number of columns.
    fn d(&self) -> usize;

    /// The rows with these numbers, in the order given.
    fn gather(&self, rows: &[usize]) -> Result<Points<'static>>;

    /// A run of rows: where they lie, or in `room`.
    fn block<'a>(&'a self, rows: Range<usize>, room: &'a mut Vec<f64>) -> Result<Points<'a>>;

    /// All rows, in memory: for methods that keep something of every row anyway.
    fn whole(&self) -> Result<&Points<'_>>;
}

impl Rows for Points<'_> {
    fn n(&self) -> usize {
        Points::n(self)
    }

    fn d(&self) -> usize {
        Points::d(self)
    }

    fn gather(&self, rows: &[usize]) -> Result<Points<'static>> {
        Ok(self.select(rows))
    }

    fn block<'a>(&'a self, rows: Range<usize>, _: &'a mut Vec<f64>) -> Result<Points<'a>> {
        Ok(self.slice(rows))
    }

    fn whole(&self) -> Result<&Points<'_>> {
        Ok(self)
    }
}

/// What is summed over all rows.
pub(crate) trait Pass: Sync {
    /// Small, and the same size however many rows it is over.
    type Sum: Send;

    /// The sum over no rows.
    fn zero(&self) -> Self::Sum;

    /// Adds a block of rows, of which the first has the number `first`.
    fn add(&self, sum: &mut Self::Sum, block: &Points, first: usize);

    /// Adds the sum over rows that come after those of `left`.
    fn merge(&self, left: &mut Self::Sum, right: Self::Sum);
}

/// The sum of a pass over all rows, in the fixed order above; `watch` sees how far it is, and may end it.
pub(crate) fn fold<P: Pass>(rows: &dyn Rows, pass: &P, watch: (&dyn Watch, &str)) -> Result<P::Sum> {
    let (sum, _) = blocks::watched_sum(
        rows.n(),
        watch,
        || (pass.zero(), Vec::new()),
        |(sum, room), range| {
            let first = range.start;
            pass.add(sum, &rows.block(range, room)?, first);
            Ok(())
        },
        |(left, _), (right, _)| pass.merge(left, right),
    )?;
    Ok(sum)
}
