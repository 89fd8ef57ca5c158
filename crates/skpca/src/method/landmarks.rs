//! Landmarks: Nyström with randomly pivoted Cholesky (Chen, Epperly, Tropp & Webber 2023), then Rayleigh–Ritz.
//!
//! ```text
//! m pivots drawn in proportion to what the earlier ones leave unexplained;  C b = λ K_zz b over all rows
//! ```
//!
//! `sampling` says how landmarks are drawn: `auto` takes pivots or a uniform draw, whichever captures more; `leverage`
//! draws in proportion to ridge leverage scores (Alaoui & Mahoney 2015), `ℓ_i = (K (K + λ)⁻¹)_ii` with λ such that the
//! sum is m; `kmeans` takes k-means centres (Zhang, Tsang & Kwok 2008), which are synthetic points and mostly capture
//! more than drawn rows (docs/decisions/0036).
//!
//! `steps` moves the landmarks by this many steps of `expansion`'s optimiser: ten steps bring points of any origin
//! close to the result of that method, and make them synthetic (docs/decisions/0077).
//!
//! Pivots are drawn among all rows up to a few thousand, and among a uniform sample above that: residuals of the sample
//! represent those of all rows, and a fit then needs no n × m matrix at all. If a uniform draw of as many points
//! captures more, it is used instead.

use std::sync::Arc;

use faer::Mat;

use super::search;
use super::{Capabilities, Entry, Method, NO_VARIANCE, Size, Solution, Support, Target, Task};
use super::{expansion, kmeans};
use crate::blocks;
use crate::dense;
use crate::eigen::{Accuracy, top};
use crate::error::{Error, Result};
use crate::factor::{Factor, Stop};
use crate::kernel::Kernel;
use crate::parameter::Parameter;
use crate::points::Points;
use crate::random::{Random, Stream};
use crate::reference::{Question, Reference};
use crate::report::Report;
use crate::rows::{Part, Rows, Weighted};
use crate::sample_weight::Copies;
use crate::skeleton::{SINGLE_ROWS, Skeleton};
use crate::spec::Spec;
use crate::spectrum::{Expansion, roughly_captured};
use crate::watch::{Watch, check};

/// Minimum number of candidate rows that pivots are drawn from.
const CANDIDATES: usize = 5000;
/// Minimum number of candidate rows per pivot.
const CANDIDATES_PER_PIVOT: usize = 10;
/// Minimum number of rows on which pivots and a uniform draw are compared. They are not the rows of the reference: the
/// reported fidelity would otherwise be that of the luckier of two draws.
const COMPARED_ROWS: usize = 2000;
/// Minimum number of these rows per landmark.
const COMPARED_ROWS_PER_POINT: usize = 4;
/// A uniform draw is better if it captures more by more than this share, so that rounding decides nothing if both
/// capture everything.
const TIE: f64 = 1e-9;
/// Columns per landmark of the factor from which leverage scores are computed.
const LEVERAGE_RANK: usize = 4;
/// Maximum number of dependent landmarks listed in a note.
const NAMED: usize = 20;

pub(super) const ENTRY: Entry = Entry {
    name: "landmarks",
    summary: "randomly pivoted Nyström points and the best components in their span",
    source: "Chen, Epperly, Tropp & Webber 2023",
    parameters: &[SAMPLING, STEPS],
    capabilities: Capabilities { weights: true, ..Capabilities::NONE },
    build: |fields| Ok(Box::new(Landmarks { sampling: fields.choice("sampling")?, steps: fields.count("steps")? })),
};

const SAMPLING: Parameter = Parameter::choice(
    "sampling",
    &["auto", "pivoted", "uniform", "leverage", "kmeans"],
    "auto: the better of pivoted and uniform; leverage: by ridge leverage scores; kmeans: k-means centres (synthetic)",
);

const STEPS: Parameter = Parameter::count(
    "steps",
    0,
    0,
    "optimiser steps, as in expansion, that move the landmarks off the rows; ten bring most of the gain",
);

#[derive(Debug)]
struct Landmarks {
    sampling: &'static str,
    steps: usize,
}

impl Method for Landmarks {
    fn fit(&self, task: &Task) -> Result<Solution> {
        let (support, expansion) = match (self.sampling, task.aim()) {
            ("auto", Target::Support(m)) if self.steps == 0 => {
                let (support, skeleton) = better(task, m)?;
                let span = skeleton.span(task.rows, task.center, SINGLE_ROWS, task.watch)?;
                (Support::Rows(support), span.best(task.q, task.watch)?)
            }
            ("auto" | "pivoted", Target::Fidelity(fidelity)) if self.steps == 0 => {
                let (support, expansion) = smallest(task, fidelity)?;
                (Support::Rows(support), expansion)
            }
            (_, Target::Support(m)) => self.with_points(task, m)?,
            (_, Target::Fidelity(fidelity)) => self.fewest(task, fidelity)?,
        };
        let report = Report { rounds: 1, converged: true, ..Report::default() };
        let method = Spec::new("landmarks").with("sampling", self.sampling).with("steps", self.steps);
        Ok(Solution::new(method, support, expansion, report))
    }

    fn holds_rows(&self, _: &Size) -> bool {
        false
    }

    fn memory(&self, size: &Size) -> usize {
        let m = size.points(10 * size.q);
        let candidates = size.n.min(CANDIDATES.max(CANDIDATES_PER_PIVOT * m));
        let moved = if self.steps > 0 { candidates * (2 * size.d + 3 * m) + 30 * m * size.d } else { 0 };
        8 * (size.reference() + candidates * m + 16 * m * m + 2 * blocks::ROWS * m + moved)
    }
}

impl Landmarks {
    /// Chooses `m` landmarks and computes the best components in their span.
    fn with_points(&self, task: &Task, m: usize) -> Result<(Support, Expansion)> {
        let Task { kernel, rows, seed, watch, .. } = *task;
        let n = task.n();
        let support = match self.sampling {
            _ if m >= n => Support::Rows((0..n).collect()),
            "auto" => Support::Rows(better(task, m)?.0),
            "pivoted" => Support::Rows(pivots(kernel, rows, m, seed, watch)?),
            "uniform" => Support::Rows(uniform(rows, m, seed)),
            "leverage" => Support::Rows(by_leverage(task, m)?),
            _ => Support::Points(centres(task, m)?),
        };
        let points = support.points(rows)?;
        let still = task.expansion_of(&points)?;
        if self.steps == 0 || m >= n {
            return Ok((support, still));
        }
        let points = expansion::polished(task, points, self.steps)?;
        let moved = task.expansion_of(&points)?;
        // The points were moved for a sample of the rows; over all rows they may capture less than before.
        let better = moved.captured > still.captured;
        Ok(if better { (Support::Points(points), moved) } else { (support, still) })
    }

    /// Finds the fewest landmarks that reach the fidelity, by doubling and bisection.
    fn fewest(&self, task: &Task, fidelity: f64) -> Result<(Support, Expansion)> {
        let n = task.n();
        let held = |count: usize| -> Result<Option<(Support, Expansion)>> {
            let (support, expansion) = self.with_points(task, count)?;
            let all = count >= n;
            let share = if all { 1.0 } else { task.fidelity_of(&support.points(task.rows)?, &expansion)? };
            Ok((share >= fidelity).then_some((support, expansion)))
        };
        let (mut low, mut high) = (0, task.q.min(n));
        loop {
            match held(high)? {
                Some(found) => return Ok(search::smallest(low, high, found, held)?.1),
                None => (low, high) = (high, (2 * high).min(n)),
            }
        }
    }
}

/// Computes components over landmarks chosen by the user; dependent ones are left out and named in a note.
pub(crate) fn given(task: &Task, support: Support) -> Result<Solution> {
    let expansion = task.expansion_of(&support.points(task.rows)?)?;
    let mut report = Report { rounds: 1, converged: true, ..Report::default() };
    let dropped: Vec<usize> = (0..support.len()).filter(|i| !expansion.kept.contains(i)).collect();
    if !dropped.is_empty() {
        let (what, numbers): (_, Vec<usize>) = match &support {
            Support::Rows(rows) => ("rows", dropped.iter().map(|&i| rows[i]).collect()),
            Support::Points(_) => ("landmarks", dropped),
        };
        let shown: Vec<String> = numbers.iter().take(NAMED).map(usize::to_string).collect();
        let more = if numbers.len() > NAMED { format!(" and {} more", numbers.len() - NAMED) } else { String::new() };
        let list = shown.join(", ");
        report.notes.push(format!("{what} {list}{more} (from 0) depend on the others and are left out"));
    }
    Ok(Solution::new(Spec::new("landmarks"), support, expansion, report))
}

/// Draws `m` rows uniformly. Weighted rows are drawn among their copies, so that fewer distinct rows may result.
fn uniform(rows: &dyn Rows, m: usize, seed: u64) -> Vec<usize> {
    let mut random = Random::new(seed, Stream::UniformLandmarks);
    let Some(weights) = rows.weights() else { return random.sample(rows.n(), m) };
    let copies = Copies::new(weights);
    let mut drawn: Vec<usize> = random.sample(copies.count(), m).into_iter().map(|k| copies.row(k)).collect();
    drawn.dedup();
    drawn
}

/// Returns the candidate rows: all, or a sample if there are many.
fn candidates(task: &Task, m: usize) -> Result<(Vec<usize>, Part)> {
    let count = CANDIDATES.max(CANDIDATES_PER_PIVOT * m);
    let rows = Random::new(task.seed, Stream::LandmarkCandidates).sample(task.n(), count);
    let part = Part::of(task.rows, &rows)?;
    Ok((rows, part))
}

/// Computes `m` k-means centres of the rows, or fewer if there are fewer distinct rows.
fn centres(task: &Task, m: usize) -> Result<Points<'static>> {
    check(task.watch, "centres", 0.0)?;
    let Part { points, weights } = candidates(task, m)?.1;
    Ok(kmeans::centres((&points, weights.as_deref()), m, &mut Random::new(task.seed, Stream::LandmarkCentres)))
}

/// Draws `m` rows one after the other, with probabilities proportional to `f_iᵀ(FᵀF + λ)⁻¹f_i`.
fn by_leverage(task: &Task, m: usize) -> Result<Vec<usize>> {
    let (rows, part) = candidates(task, m)?;
    let stop = Stop { rank: (LEVERAGE_RANK * m).min(part.n()), residual: 0.0 };
    let factor = Factor::weighted(task.kernel, Weighted::of(&part), stop, task.seed, task.watch)?;
    let (t, _) = factor.scatter(false, task.watch)?;
    let (values, vectors) = dense::eigen(t.as_ref())?;
    if values.is_empty() {
        return Err(Error::NoVariance { why: NO_VARIANCE.into() });
    }
    let ridge = ridge_of(&values, m as f64);
    let scale = |k: usize| 1.0 / (values[k].max(0.0) + ridge).sqrt();
    let axes = Mat::from_fn(vectors.nrows(), vectors.ncols(), |i, k| vectors[(i, k)] * scale(k));
    let scaled = factor.product(axes.as_ref());
    let mut random = Random::new(task.seed, Stream::LeverageLandmarks);
    // The m largest keys u^(1/ℓ) are a weighted draw without replacement (Efraimidis & Spirakis 2006).
    let count = |i: usize| part.weights().map_or(1.0, |weights| weights[i]);
    let leverage = |i: usize| (count(i) * scaled.row(i).squared_norm_l2()).max(1e-300);
    let key = |i: usize, u: f64| (u.max(f64::MIN_POSITIVE).ln() / leverage(i), i);
    let mut keys: Vec<(f64, usize)> = (0..rows.len()).map(|i| key(i, random.uniform())).collect();
    keys.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut chosen: Vec<usize> = keys[..m.min(keys.len())].iter().map(|(_, i)| rows[*i]).collect();
    chosen.sort_unstable();
    Ok(chosen)
}

/// Finds λ such that `Σ σ/(σ + λ)` is `wanted`, or half the number of values if that is less.
fn ridge_of(values: &[f64], wanted: f64) -> f64 {
    let wanted = wanted.min(0.5 * values.len() as f64);
    let sum = |ridge: f64| values.iter().map(|v| v.max(0.0) / (v.max(0.0) + ridge)).sum::<f64>();
    let (mut low, mut high) = (1e-15 * values[0], values[0] * values.len() as f64);
    for _ in 0..100 {
        let middle = (low * high).sqrt();
        if sum(middle) > wanted { low = middle } else { high = middle }
    }
    high
}

/// Draws `m` pivots (fewer if the rank is lower) and returns them in increasing order.
fn pivots(kernel: &Arc<dyn Kernel>, rows: &dyn Rows, m: usize, seed: u64, watch: &dyn Watch) -> Result<Vec<usize>> {
    let candidates =
        Random::new(seed, Stream::LandmarkCandidates).sample(rows.n(), CANDIDATES.max(CANDIDATES_PER_PIVOT * m));
    let stop = Stop { rank: m, residual: 0.0 };
    let factor = Factor::weighted(kernel, Weighted::of(&Part::of(rows, &candidates)?), stop, seed, watch)?;
    let mut pivots: Vec<usize> = factor.pivots.iter().map(|&i| candidates[i]).collect();
    pivots.sort_unstable();
    Ok(pivots)
}

/// Returns the pivots or as many rows drawn uniformly, whichever captures more on a sample of the rows. Pivots win on
/// most tables; a uniform draw wins where variance is spread evenly and pivots go to outliers.
fn better(task: &Task, m: usize) -> Result<(Vec<usize>, Skeleton)> {
    let Task { kernel, rows: table, q, center, seed, watch, .. } = *task;
    let n = table.n();
    // The reference will be needed later. Computing it in parallel with the pivots costs less, because both leave
    // threads idle at times.
    let wanted = m < n && task.shared.is_none() && task.judged;
    let (pivots, reference) = rayon::join(
        || pivots(kernel, table, m, seed, watch),
        || wanted.then(|| Reference::new(kernel, table, Question { q, center, seed }, watch)).transpose(),
    );
    let (pivots, reference) = (pivots?, reference?);
    task.note(reference);
    let skeleton = |rows: &[usize]| Skeleton::new(kernel, &table.gather(rows)?, watch);
    if pivots.len() == n {
        let all = skeleton(&pivots)?;
        return Ok((pivots, all));
    }
    let uniform = uniform(table, pivots.len(), seed);
    let count = COMPARED_ROWS.max(COMPARED_ROWS_PER_POINT * m);
    let sample = Random::new(seed, Stream::LandmarkJudges).sample(n, count);
    let sample = Part::of(table, &sample)?;
    let judged = |rows: Vec<usize>| -> Result<(f64, (Vec<usize>, Skeleton))> {
        let skeleton = skeleton(&rows)?;
        Ok((roughly_captured(&skeleton, &sample, q, center, watch)?, (rows, skeleton)))
    };
    let (by_pivots, by_uniform) = rayon::join(|| judged(pivots), || judged(uniform));
    let (by_pivots, by_uniform) = (by_pivots?, by_uniform?);
    Ok(if by_pivots.0 >= (1.0 - TIE) * by_uniform.0 { by_pivots.1 } else { by_uniform.1 })
}

/// Finds the fewest pivots, in the order they are drawn, whose span reaches the fidelity.
fn smallest(task: &Task, fidelity: f64) -> Result<(Vec<usize>, Expansion)> {
    let reference = task.reference()?;
    let sample = Part::of(task.rows, &reference.rows)?;
    let mut rank = 8 * task.q;
    let (factor, t) = loop {
        let stop = Stop { rank, residual: 0.0 };
        let factor = Factor::weighted(task.kernel, Weighted::of(&sample), stop, task.seed, task.watch)?;
        let (t, _) = factor.scatter(task.center, task.watch)?;
        if factor.rank() < rank || share(&t, factor.rank(), task, reference)? >= fidelity {
            break (factor, t);
        }
        rank *= 2;
    };
    // The captured share grows with the number of pivots, which allows bisection.
    let low = task.q.min(factor.rank()) - 1;
    let (enough, _) = search::smallest(low, factor.rank(), (), |count| {
        Ok((share(&t, count, task, reference)? >= fidelity).then_some(()))
    })?;
    let solved = |count: &usize| {
        let mut rows: Vec<usize> = factor.pivots[..*count].iter().map(|&i| reference.rows[i]).collect();
        rows.sort_unstable();
        let expansion = task.expansion(&rows, None)?;
        Ok((rows, expansion))
    };
    search::until_reached(task, fidelity, enough, solved, |count| Ok(search::a_few_more(count, factor.rank())))
}

/// Returns the fidelity of the first `m` pivots on the rows of the reference.
fn share(t: &Mat<f64>, m: usize, task: &Task, reference: &Reference) -> Result<f64> {
    let lead = t.as_ref().submatrix(0, 0, m, m).to_owned();
    let accuracy = Accuracy { tolerance: 1e-6, ..Accuracy::default() };
    let pairs = top(&lead, task.q, accuracy, task.seed, task.watch)?;
    Ok(pairs.values.iter().sum::<f64>() / reference.captured)
}
