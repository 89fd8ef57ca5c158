//! Searches for the value of one parameter, or the number of points, that meets a target.

use super::Task;
use crate::error::{Error, Result};
use crate::spectrum::Expansion;

/// Ratio of one value to the previous one until the target is bracketed.
const STEP: f64 = 0.5;
/// Maximum number of values tried.
pub(super) const TRIALS: usize = 40;
/// Smallest value tried, as a share of the largest.
const SMALLEST: f64 = 1e-7;

/// The nearest values tried on both sides of a target, and the solutions at them.
pub(super) struct Found<S> {
    pub sparse: Option<(f64, S)>,
    pub dense: Option<(f64, S)>,
}

/// Decreases a value from `most`, where nothing is selected, until the measure that `solve` returns, which grows on the
/// way, reaches `wanted`. Then narrows the bracket by interpolation and bisection, until its ends differ by the share
/// `tight`, the measure is `done`, or `solve` returns `None` because its budget is used up. Each solution is a warm
/// start of later ones.
pub(super) fn search<S>(
    most: f64,
    wanted: f64,
    tight: f64,
    mut solve: impl FnMut(f64, Option<&S>) -> Result<Option<(S, f64)>>,
    done: impl Fn(f64) -> bool,
) -> Result<Found<S>> {
    let mut found = Found { sparse: None, dense: None };
    // Value and measure on the sparse side, and on the dense side once there is one.
    let (mut sparse, mut dense): ((f64, f64), Option<(f64, f64)>) = ((most, 0.0), None);
    let (mut halve, mut before) = (false, f64::INFINITY);
    for _ in 0..TRIALS {
        let value = match dense {
            None => STEP * sparse.0,
            // Supports change in jumps: if interpolation has not narrowed the bracket much, halve it.
            Some(dense) => {
                let straight = ((wanted - sparse.1) / (dense.1 - sparse.1)).clamp(0.1, 0.9);
                let wide = (sparse.0 / dense.0).ln();
                let share = if halve { 0.5 } else { straight };
                halve = wide > 0.5 * before;
                before = wide;
                sparse.0.powf(1.0 - share) * dense.0.powf(share)
            }
        };
        if value < SMALLEST * most {
            break;
        }
        let warm = found.sparse.as_ref().or(found.dense.as_ref()).map(|(_, state): &(f64, S)| state);
        let solved = match solve(value, warm) {
            // The value is too small for the arithmetic: the path ends here.
            Err(Error::Numerical { .. }) if found.sparse.is_some() => break,
            solved => solved?,
        };
        let Some((state, measured)) = solved else { break };
        if measured < wanted {
            (sparse, found.sparse) = ((value, measured), Some((value, state)))
        } else {
            (dense, found.dense) = (Some((value, measured)), Some((value, state)))
        }
        if done(measured) || dense.is_some_and(|dense| sparse.0 / dense.0 < 1.0 + tight) {
            break;
        }
    }
    Ok(found)
}

/// Returns the smallest number in `(low, high]` for which `tried` returns `Some`, and that result; `best` is the result
/// for `high`. If a number succeeds, all larger ones must too.
pub(super) fn smallest<T>(
    mut low: usize,
    mut high: usize,
    mut best: T,
    mut tried: impl FnMut(usize) -> Result<Option<T>>,
) -> Result<(usize, T)> {
    while low + 1 < high {
        let middle = low.midpoint(high);
        match tried(middle)? {
            Some(better) => (high, best) = (middle, better),
            None => low = middle,
        }
    }
    Ok((high, best))
}

/// Selected rows and components over them.
pub(super) trait Chosen {
    fn rows(&self) -> &[usize];
    fn expansion(&self) -> &Expansion;
}

impl Chosen for (Vec<usize>, Expansion) {
    fn rows(&self) -> &[usize] {
        &self.0
    }

    fn expansion(&self) -> &Expansion {
        &self.1
    }
}

/// A selection made on a factor or a sample of the rows is a little worse over all rows. Starting from `first`, tries
/// the ever larger selections of `next` and returns the first that, once `solved`, reaches the fidelity over all rows,
/// or the last one.
pub(super) fn until_reached<C, S: Chosen>(
    task: &Task,
    fidelity: f64,
    first: C,
    mut solved: impl FnMut(&C) -> Result<S>,
    mut next: impl FnMut(C) -> Result<Option<C>>,
) -> Result<S> {
    let mut choice = first;
    loop {
        let found = solved(&choice)?;
        if task.fidelity(found.rows(), found.expansion())? >= fidelity {
            return Ok(found);
        }
        match next(choice)? {
            Some(larger) => choice = larger,
            None => return Ok(found),
        }
    }
}

/// Returns a slightly larger number of points than `count`, at most `most`; `None` if `count` has reached it.
pub(super) fn a_few_more(count: usize, most: usize) -> Option<usize> {
    (count < most).then(|| (count + 1 + count / 20).min(most))
}
