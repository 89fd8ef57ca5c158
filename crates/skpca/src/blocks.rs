//! Passes over the data: map fixed blocks of rows, and sum the small results in a fixed order.
//!
//! ```text
//! rows 0…n  →  leaves of whole blocks  →  step(sum, block) in order  →  add(left, right) up a fixed tree
//! ```
//!
//! The tree depends on `n` only, never on the number of threads, so results are the same bit for bit on any number of
//! threads. Passes over rows that may not be in memory are folds (`rows.rs`), along the same tree.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use crate::error::Result;
use crate::watch::{Watch, check};

/// Rows per block, twice a chunk of the tiles: a block of kernel values against some hundred points fits in cache.
pub(crate) const ROWS: usize = 480;

/// Maximum number of leaves of a sum, and thus of partial sums.
const LEAVES: usize = 64;

/// Iterates over the blocks of `rows`.
pub(crate) fn blocks(rows: Range<usize>) -> impl DoubleEndedIterator<Item = Range<usize>> {
    let end = rows.end;
    rows.step_by(ROWS).map(move |start| start..(start + ROWS).min(end))
}

/// Returns one result per block, in order.
pub(crate) fn map<T: Send>(n: usize, each: impl Fn(Range<usize>) -> T + Sync + Send) -> Vec<T> {
    let blocks: Vec<Range<usize>> = blocks(0..n).collect();
    blocks.into_par_iter().map(each).collect()
}

/// Sums the blocks of `0..n`, starting with `zero`, in the fixed order above.
pub(crate) fn sum<T: Send>(
    n: usize,
    zero: impl Fn() -> T + Sync,
    step: impl Fn(&mut T, Range<usize>) + Sync,
    add: impl Fn(&mut T, T) + Sync,
) -> T {
    let leaf = n.div_ceil(LEAVES).next_multiple_of(ROWS).max(ROWS);
    tree(0..n, leaf, &zero, &step, &add)
}

/// Like [`sum`], for passes that take long or may fail: they report their progress to `watch`, which may stop them.
pub(crate) fn watched_sum<T: Send>(
    n: usize,
    (watch, stage): (&dyn Watch, &str),
    zero: impl Fn() -> T + Sync,
    step: impl Fn(&mut T, Range<usize>) -> Result<()> + Sync,
    add: impl Fn(&mut T, T) + Sync,
) -> Result<T> {
    check(watch, stage, 0.0)?;
    let (done, failed) = (AtomicUsize::new(0), OnceLock::new());
    let step = |sum: &mut T, rows: Range<usize>| {
        if failed.get().is_some() {
            return;
        }
        let count = rows.len();
        let taken = step(sum, rows).and_then(|()| {
            let done = done.fetch_add(count, Ordering::Relaxed) + count;
            check(watch, stage, done as f64 / n as f64)
        });
        if let Err(error) = taken {
            let _ = failed.set(error);
        }
    };
    let total = sum(n, zero, step, add);
    failed.into_inner().map_or(Ok(total), Err)
}

fn tree<T: Send>(
    rows: Range<usize>,
    leaf: usize,
    zero: &(impl Fn() -> T + Sync),
    step: &(impl Fn(&mut T, Range<usize>) + Sync),
    add: &(impl Fn(&mut T, T) + Sync),
) -> T {
    if rows.len() <= leaf {
        let mut total = zero();
        blocks(rows).for_each(|block| step(&mut total, block));
        return total;
    }
    let half = rows.start + (rows.len() / 2).next_multiple_of(leaf);
    let (mut left, right) =
        rayon::join(|| tree(rows.start..half, leaf, zero, step, add), || tree(half..rows.end, leaf, zero, step, add));
    add(&mut left, right);
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn every_row_is_summed_once_and_bits_do_not_depend_on_threads() {
        for n in [1, ROWS, ROWS + 1, 100 * ROWS + 7] {
            let total = || {
                sum(
                    n,
                    || (0usize, 0.0f64),
                    |t, rows| rows.for_each(|i| *t = (t.0 + i, t.1 + 1.0 / (1.0 + i as f64))),
                    |a, b| *a = (a.0 + b.0, a.1 + b.1),
                )
            };
            let on = |threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(total)
            };
            assert_eq!(on(1).0, n * (n - 1) / 2);
            assert_eq!(on(1).1.to_bits(), on(3).1.to_bits());
            assert_eq!(map(n, |rows| rows.len()).iter().sum::<usize>(), n);
        }
    }

    /// Stops at the third report.
    struct Third(AtomicUsize);

    impl Watch for Third {
        fn at(&self, _: &str, _: f64) -> bool {
            self.0.fetch_add(1, Ordering::Relaxed) < 2
        }
    }

    #[test]
    fn a_watched_sum_can_be_stopped() {
        let n = 100 * ROWS;
        let count = |watch: &dyn Watch| {
            let count = |sum: &mut usize, rows: Range<usize>| {
                *sum += rows.len();
                Ok(())
            };
            watched_sum(n, (watch, "counting"), || 0, count, |a, b| *a += b)
        };
        assert_eq!(count(&()), Ok(n));
        let third = Third(AtomicUsize::new(0));
        assert_eq!(count(&third), Err(Error::Interrupted));
        let looks = third.0.into_inner();
        assert!(looks < 10, "{looks} looks after the first that said stop");
    }
}
