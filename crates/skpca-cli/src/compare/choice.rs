//! Which model to recommend: the smallest that is good enough.

/// What counts of a model.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    pub points: usize,
    pub fidelity: f64,
    /// On rows held out, with its standard error, where there is a label.
    pub quality: Option<(f64, f64)>,
}

/// Why a model was chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reason {
    /// The fewest points that hold the fidelity.
    Fidelity,
    /// It comes nearest to the fidelity.
    Nearest,
    /// The fewest points with a quality within one standard error of the best.
    Quality,
    /// The next best quality.
    Next,
}

/// The candidates, best first, each with why it would be taken if those before it are not.
///
/// With a label the smallest within one standard error of the best quality; without, the smallest that holds the fidelity. A
/// fidelity that the user `asked` for is held in any case, if anything holds it. Of equal size the better goes first, of equals the
/// last.
pub fn ranked(candidates: &[Candidate], fidelity: f64, asked: bool) -> Vec<(usize, Reason)> {
    let holds = |i: &usize| candidates[*i].fidelity >= fidelity;
    let all: Vec<usize> = (0..candidates.len()).collect();
    let some_hold = all.iter().any(holds);
    let allowed: Vec<usize> = all.iter().copied().filter(|i| !asked || !some_hold || holds(i)).collect();
    let quality = |i: usize| candidates[i].quality;
    let best = allowed.iter().filter_map(|&i| quality(i)).max_by(|a, b| a.0.total_cmp(&b.0));
    let points = |i: usize| candidates[i].points;
    if let Some((best, error)) = best {
        let good = |i: &usize| quality(*i).is_some_and(|(value, _)| value >= best - error);
        let value = |i: usize| quality(i).map_or(f64::NEG_INFINITY, |q| q.0);
        return order(&allowed, good, points, value, [Reason::Quality, Reason::Next]);
    }
    order(&all, holds, points, |i| candidates[i].fidelity, [Reason::Fidelity, Reason::Nearest])
}

/// Those that are `good` by size, then by value; after them the others by value.
fn order(
    among: &[usize],
    good: impl Fn(&usize) -> bool,
    points: impl Fn(usize) -> usize,
    value: impl Fn(usize) -> f64,
    reasons: [Reason; 2],
) -> Vec<(usize, Reason)> {
    let (mut first, mut rest): (Vec<usize>, Vec<usize>) = among.iter().partition(|i| good(i));
    let by_value = |a: &usize, b: &usize| value(*b).total_cmp(&value(*a)).then(b.cmp(a));
    first.sort_by(|a, b| points(*a).cmp(&points(*b)).then_with(|| by_value(a, b)));
    rest.sort_by(by_value);
    let with = |reason: Reason| move |i: usize| (i, reason);
    first.into_iter().map(with(reasons[0])).chain(rest.into_iter().map(with(reasons[1]))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(points: usize, fidelity: f64, quality: Option<(f64, f64)>) -> Candidate {
        Candidate { points, fidelity, quality }
    }

    #[test]
    fn the_smallest_that_holds_the_fidelity() {
        use Reason::{Fidelity, Nearest};
        let all = [(50, 0.99), (12, 0.951), (10, 0.93), (12, 0.96)]
            .map(|(points, fidelity)| candidate(points, fidelity, None));
        assert_eq!(ranked(&all, 0.95, false), [(3, Fidelity), (1, Fidelity), (0, Fidelity), (2, Nearest)]);
        assert_eq!(ranked(&all, 0.999, false), [0, 3, 1, 2].map(|i| (i, Nearest)));
        assert_eq!(ranked(&[all[0], all[0]], 0.9, false)[0].0, 1, "exact comes first in the table");
    }

    #[test]
    fn with_a_label_the_smallest_that_is_about_as_good_as_the_best() {
        use Reason::{Next, Quality};
        let good = |points, fidelity, value| candidate(points, fidelity, Some((value, 0.01)));
        let all = [good(100, 0.99, 0.95), good(20, 0.9, 0.945), good(10, 0.8, 0.93)];
        assert_eq!(ranked(&all, 0.95, false), [(1, Quality), (0, Quality), (2, Next)]);
        assert_eq!(ranked(&all, 0.95, true), [(0, Quality)], "a fidelity asked for is held");
    }
}
