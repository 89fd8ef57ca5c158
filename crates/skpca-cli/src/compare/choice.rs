//! Which model to recommend: the simplest that is good enough.

use super::evidence::{Evidence, difference, quality};

/// Two qualities differ significantly if they differ by more than this many standard errors of their difference.
pub const SIGNIFICANT: f64 = 2.0;
/// Sizes up to this multiple of the smallest count as equal, since another seed might order them otherwise.
const ALIKE: f64 = 1.5;
/// Largest standard error of the quality with which the number of rows counts as sufficient.
const FINE: f64 = 0.01;

/// The properties of a model that the choice depends on.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    pub points: usize,
    /// Rank of its method: among models of about equal size, the first is the simplest.
    pub place: usize,
    pub fidelity: f64,
    /// Evidence from held-out rows; empty without a label.
    pub evidence: &'a [Evidence],
}

/// Why a model was chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reason {
    /// The fewest points that reach the fidelity.
    Fidelity,
    /// It comes nearest to the fidelity.
    Nearest,
    /// The simplest whose quality is not significantly below the best of those that reach the fidelity.
    Quality,
    /// The simplest of those that reach the fidelity, none of which is significantly below the best.
    Same,
    /// As `Same`, but there are too few rows to tell the models apart.
    TooFewRows,
    /// It does not reach the fidelity, but is significantly better than all that do.
    Better,
    /// The next best quality.
    Next,
}

/// Ranks the candidates, best first, each with the reason for taking it if those before it cannot be taken.
///
/// Without a label, the smallest candidate that reaches the fidelity comes first. With a label, it is the simplest of
/// those that reach the fidelity and are not significantly worse than the best of them. The exception: if one of the
/// others is significantly better and the user did not ask for the fidelity (`fidelity_given`), it is the simplest of
/// all that are not significantly worse than that one. The simplest is the first method among about equal sizes, and
/// otherwise the smallest; ties are broken by the higher fidelity, then by the later position.
pub fn ranked(candidates: &[Candidate], fidelity: f64, fidelity_given: bool) -> Vec<(usize, Reason)> {
    let all: Vec<usize> = (0..candidates.len()).collect();
    let (judged, mute): (Vec<usize>, Vec<usize>) =
        all.iter().partition(|&&i| quality(candidates[i].evidence).is_some());
    let (holding, below): (Vec<usize>, Vec<usize>) = judged.iter().partition(|&&i| candidates[i].fidelity >= fidelity);
    let Some(best) = best_of(candidates, &judged) else {
        return without_labels(candidates, &all, fidelity);
    };
    let within = |best: usize, among: &[usize]| -> Vec<usize> {
        among.iter().copied().filter(|&i| !is_better(candidates, best, i)).collect()
    };
    let mut order = Vec::new();
    let mut add = |mut some: Vec<usize>, reason: Reason, simplest: bool| {
        some.retain(|i| order.iter().all(|(other, _)| other != i));
        let value = |i: usize| quality(candidates[i].evidence).map_or(0.0, |quality| quality.value);
        if simplest {
            simplest_first(candidates, &mut some);
        } else {
            some.sort_by(|a, b| value(*b).total_cmp(&value(*a)).then(b.cmp(a)));
        }
        order.extend(some.into_iter().map(|i| (i, reason)));
    };
    match best_of(candidates, &holding) {
        Some(first) if fidelity_given || !is_better(candidates, best, first) => {
            let good = within(first, &holding);
            let reason = reason_of(candidates, first, good.len() == holding.len() && holding.len() > 1);
            add(good, reason, true);
            add(holding, Reason::Next, false);
            if !fidelity_given {
                add(below, Reason::Next, false);
            }
        }
        Some(_) => add(within(best, &judged), Reason::Better, true),
        None => add(within(best, &judged), Reason::Quality, true),
    }
    add(judged, Reason::Next, false);
    add(mute, Reason::Next, true);
    order
}

fn reason_of(candidates: &[Candidate], best: usize, all_alike: bool) -> Reason {
    let error = quality(candidates[best].evidence).map_or(0.0, |quality| quality.error);
    match (all_alike, error > FINE) {
        (false, _) => Reason::Quality,
        (true, false) => Reason::Same,
        (true, true) => Reason::TooFewRows,
    }
}

/// The candidate with the best quality.
fn best_of(candidates: &[Candidate], among: &[usize]) -> Option<usize> {
    let value = |i: &usize| quality(candidates[*i].evidence).map_or(f64::NEG_INFINITY, |quality| quality.value);
    among.iter().copied().max_by(|a, b| value(a).total_cmp(&value(b)))
}

/// Whether a is better than b by more than chance, and by more than the standard error of its own quality: a paired
/// comparison finds differences that other rows would not confirm (the one-standard-error rule of Breiman, Friedman,
/// Olshen & Stone 1984).
fn is_better(candidates: &[Candidate], a: usize, b: usize) -> bool {
    let (one, other) = (candidates[a].evidence, candidates[b].evidence);
    let error = quality(one).map_or(f64::INFINITY, |quality| quality.error);
    difference(one, other).is_some_and(|by| by.value > (SIGNIFICANT * by.error).max(error))
}

fn simplest_first(candidates: &[Candidate], some: &mut [usize]) {
    let fewest = some.iter().map(|&i| candidates[i].points).min().unwrap_or(0);
    let key = |i: usize| {
        let alike = candidates[i].points as f64 <= ALIKE * fewest as f64;
        (!alike, if alike { candidates[i].place } else { 0 })
    };
    some.sort_by(|a, b| key(*a).cmp(&key(*b)).then(smaller(candidates, *a, *b)));
}

fn smaller(candidates: &[Candidate], a: usize, b: usize) -> std::cmp::Ordering {
    let (one, other) = (candidates[a], candidates[b]);
    one.points.cmp(&other.points).then(other.fidelity.total_cmp(&one.fidelity)).then(b.cmp(&a))
}

fn without_labels(candidates: &[Candidate], all: &[usize], fidelity: f64) -> Vec<(usize, Reason)> {
    let (mut first, mut rest): (Vec<usize>, Vec<usize>) =
        all.iter().partition(|&&i| candidates[i].fidelity >= fidelity);
    first.sort_by(|a, b| smaller(candidates, *a, *b));
    rest.sort_by(|a, b| candidates[*b].fidelity.total_cmp(&candidates[*a].fidelity).then(b.cmp(a)));
    let with = |reason: Reason| move |i: usize| (i, reason);
    first.into_iter().map(with(Reason::Fidelity)).chain(rest.into_iter().map(with(Reason::Nearest))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_labels_the_smallest_that_reaches_the_fidelity_wins() {
        use Reason::{Fidelity, Nearest};
        let all = [(50, 0.99), (12, 0.951), (10, 0.93), (12, 0.96)].map(|(points, fidelity)| Candidate {
            points,
            place: 0,
            fidelity,
            evidence: &[],
        });
        assert_eq!(ranked(&all, 0.95, false), [(3, Fidelity), (1, Fidelity), (0, Fidelity), (2, Nearest)]);
        assert_eq!(ranked(&all, 0.999, false), [0, 3, 1, 2].map(|i| (i, Nearest)));
        assert_eq!(ranked(&[all[0], all[0]], 0.9, false)[0].0, 1, "exact comes first in the table");
    }

    /// Evidence of a model that is wrong on the rows `wrong` of n.
    fn evidence(n: usize, wrong: std::ops::Range<usize>) -> [Evidence; 1] {
        [Evidence::of_classes(0, (0..n).map(|i| !wrong.contains(&i)).collect())]
    }

    fn rank(all: &[(usize, f64, [Evidence; 1])], fidelity_given: bool) -> Vec<(usize, Reason)> {
        let candidates: Vec<Candidate> = all
            .iter()
            .map(|(points, fidelity, evidence)| Candidate { points: *points, place: 0, fidelity: *fidelity, evidence })
            .collect();
        ranked(&candidates, 0.95, fidelity_given)
    }

    #[test]
    fn with_labels_the_smallest_not_significantly_below_the_best_wins() {
        let all = [
            (100, 0.99, evidence(1000, 0..50)),
            (20, 0.96, evidence(1000, 0..52)),
            (12, 0.95, evidence(1000, 0..90)),
            (5, 0.6, evidence(1000, 0..51)),
        ];
        let order = rank(&all, false);
        assert_eq!(order[..2], [(1, Reason::Quality), (0, Reason::Quality)], "a model below the fidelity is excluded");
        assert_eq!(order[2], (2, Reason::Next));
        assert_eq!(order.len(), 4);
    }

    #[test]
    fn a_difference_within_the_error_of_the_best_is_a_tie() {
        // The larger model is right on the same rows and on six more: twice the paired error, half of its own.
        let all = |more: usize| [(100, 0.99, evidence(1000, 0..200)), (10, 0.96, evidence(1000, 0..200 + more))];
        assert_eq!(rank(&all(6), false)[0].0, 1);
        assert_eq!(rank(&all(20), false)[0].0, 0);
    }

    #[test]
    fn among_models_of_about_equal_size_the_first_method_is_the_simplest() {
        let evidence = evidence(1000, 0..50);
        let order = |sizes: [usize; 3]| -> Vec<usize> {
            let candidate =
                |place: usize| Candidate { points: sizes[place], place, fidelity: 0.96, evidence: &evidence };
            let order = ranked(&[candidate(2), candidate(1), candidate(0)], 0.95, false);
            order.into_iter().map(|(i, _)| 2 - i).collect()
        };
        assert_eq!(order([12, 11, 10]), [0, 1, 2], "whichever is smaller by a few points with this seed");
        assert_eq!(order([16, 11, 10]), [1, 2, 0], "a model that is larger by more than half is not as simple");
    }

    #[test]
    fn if_labels_do_not_decide_size_does_and_the_reason_says_so() {
        let alike =
            |n: usize| [(100, 0.99, evidence(n, 0..3)), (12, 0.96, evidence(n, 1..5)), (20, 0.97, evidence(n, 0..4))];
        assert_eq!(rank(&alike(40), false)[0], (1, Reason::TooFewRows));
        assert_eq!(rank(&alike(4000), false)[0], (1, Reason::Same));
    }

    #[test]
    fn a_model_below_the_fidelity_is_taken_only_if_it_is_better_by_more_than_chance() {
        let all = |wrong: usize| {
            [
                (100, 0.99, evidence(1000, 0..200)),
                (9, 0.4, evidence(1000, 0..wrong)),
                (30, 0.4, evidence(1000, 0..wrong)),
            ]
        };
        assert_eq!(rank(&all(100), false)[0], (1, Reason::Better));
        assert_eq!(rank(&all(100), true)[0].0, 0, "a requested fidelity is kept");
        assert_eq!(rank(&all(198), false)[0].0, 0);
        let none = [(9, 0.4, evidence(1000, 0..10)), (30, 0.5, evidence(1000, 0..9))];
        assert_eq!(rank(&none, true)[0], (0, Reason::Quality), "unless no model reaches it");
    }
}
