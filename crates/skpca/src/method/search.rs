//! Moving one parameter, or one number of points, until a target is met.

use super::Task;
use crate::error::{Error, Result};
use crate::spectrum::Expansion;

/// From one value to the next …
const STEP: f64 = 0.5;
/// … as many as this at most …
pub(super) const TRIALS: usize = 40;
/// … down to this share of the largest.
const SMALLEST: f64 = 1e-7;

/// The two sides of a target: the nearest values tried, and what they gave.
pub(super) struct Found<S> {
    pub sparse: Option<(f64, S)>,
    pub dense: Option<(f64, S)>,
}

/// Goes down from `most`, where nothing is selected, until what `solve` measures, which grows on the way, reaches
/// `wanted`; then narrows the bracket by interpolation and bisection, until its sides differ by the share `tight` or
/// the measure is `done`, or `solve` gives nothing because it has used up its work. Each solution starts from an
/// earlier one.
pub(super) fn search<S>(
    most: f64,
    wanted: f64,
    tight: f64,
    mut solve: impl FnMut(f64, Option<&S>) -> Result<Option<(S, f64)>>,
    done: impl Fn(f64) -> bool,
) -> Result<Found<S>> {
    let mut found = Found { sparse: None, dense: None };
    // Value and measure on the sparse side, and on the dense one once it is known.
    let (mut sparse, mut dense): ((f64, f64), Option<(f64, f64)>) = ((most, 0.0), None);
    let (mut halve, mut before) = (false, f64::INFINITY);
    for _ in 0..TRIALS {
        let value = match dense {
            None => STEP * sparse.0,
            // Supports change in jumps: where a straight line does not narrow the bracket, it is halved.
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
            // Too small a value for the arithmetic: what was found so far is the end of the path.
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

/// The smallest number above `low` and up to `high` for which `tried` gives something, and that; `best` is what `high`
/// gives. What one number gives, larger ones give too.
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

/// Rows that were chosen, and components over them.
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

/// What was chosen on a factor or on a sample of the rows is a little worse on all of them. From `first` on, where
/// `next` gives ever larger choices: the first that holds the fidelity over all rows once it is `solved`, or the last
/// there is.
pub(super) fn until_held<C, S: Chosen>(
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

/// A few points more than `count`, up to `most`, where there are more.
pub(super) fn a_few_more(count: usize, most: usize) -> Option<usize> {
    (count < most).then(|| (count + 1 + count / 20).min(most))
}
