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
    /// Nothing holds the fidelity: the highest.
    Highest,
    /// The fewest points with a quality within one standard error of the best.
    Quality,
}

/// The candidates, best first, and why.
///
/// With a label the smallest within one standard error of the best quality; without, the smallest that holds the fidelity. A
/// fidelity that the user `asked` for is held in any case, if anything holds it. Of equal size the better goes first, of equals the
/// last.
pub fn ranked(candidates: &[Candidate], fidelity: f64, asked: bool) -> (Vec<usize>, Reason) {
    let holding: Vec<usize> = (0..candidates.len()).filter(|&i| candidates[i].fidelity >= fidelity).collect();
    let all: Vec<usize> = (0..candidates.len()).collect();
    let allowed = if asked && !holding.is_empty() { &holding } else { &all };
    let quality = |i: usize| candidates[i].quality;
    let best = allowed.iter().filter_map(|&i| quality(i)).max_by(|a, b| a.0.total_cmp(&b.0));
    if let Some((best, error)) = best {
        let good = |&i: &usize| quality(i).is_some_and(|(value, _)| value >= best - error);
        let value = |i: usize| quality(i).map_or(f64::NEG_INFINITY, |q| q.0);
        return (order(allowed, good, |i| candidates[i].points, value), Reason::Quality);
    }
    let (good, reason): (&[usize], _) =
        if holding.is_empty() { (&[], Reason::Highest) } else { (&holding, Reason::Fidelity) };
    (order(&all, |i| good.contains(i), |i| candidates[i].points, |i| candidates[i].fidelity), reason)
}

/// Those that are `good` by size, then by value; after them the others by value.
fn order(
    among: &[usize],
    good: impl Fn(&usize) -> bool,
    points: impl Fn(usize) -> usize,
    value: impl Fn(usize) -> f64,
) -> Vec<usize> {
    let (mut first, mut rest): (Vec<usize>, Vec<usize>) = among.iter().partition(|i| good(i));
    let by_value = |a: &usize, b: &usize| value(*b).total_cmp(&value(*a)).then(b.cmp(a));
    first.sort_by(|a, b| points(*a).cmp(&points(*b)).then_with(|| by_value(a, b)));
    rest.sort_by(by_value);
    first.append(&mut rest);
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(points: usize, fidelity: f64, quality: Option<(f64, f64)>) -> Candidate {
        Candidate { points, fidelity, quality }
    }

    #[test]
    fn the_smallest_that_holds_the_fidelity() {
        let all = [
            candidate(50, 0.99, None),
            candidate(12, 0.951, None),
            candidate(10, 0.93, None),
            candidate(12, 0.96, None),
        ];
        assert_eq!(ranked(&all, 0.95, false), (vec![3, 1, 0, 2], Reason::Fidelity));
        assert_eq!(ranked(&all, 0.999, false), (vec![0, 3, 1, 2], Reason::Highest));
        assert_eq!(ranked(&[all[0], all[0]], 0.9, false).0, [1, 0], "exact comes first in the table");
    }

    #[test]
    fn with_a_label_the_smallest_that_is_about_as_good_as_the_best() {
        let good = |points, fidelity, value| candidate(points, fidelity, Some((value, 0.01)));
        let all = [good(100, 0.99, 0.95), good(20, 0.9, 0.945), good(10, 0.8, 0.93)];
        assert_eq!(ranked(&all, 0.95, false), (vec![1, 0, 2], Reason::Quality));
        assert_eq!(ranked(&all, 0.95, true), (vec![0], Reason::Quality), "a fidelity asked for is held");
    }
}
