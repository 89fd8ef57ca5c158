//! Landmarks: Nyström with randomly pivoted Cholesky (Chen, Epperly, Tropp & Webber 2023), then Rayleigh–Ritz.
//!
//! ```text
//! m pivots drawn in proportion to what the earlier ones leave unexplained;  C b = λ K_zz b over all rows
//! ```
//!
//! Pivots are drawn among all rows up to a few thousand, and among a uniform sample above that: the sample's
//! residuals stand for everybody's, and a fit then needs no n × m matrix at all. Where a uniform draw of as many
//! points captures more, it is taken instead.

use std::sync::Arc;

use faer::Mat;

use super::search;
use super::{Capabilities, Entry, Method, Size, Solution, Support, Target, Task};
use crate::blocks;
use crate::eigen::{Accuracy, top};
use crate::error::Result;
use crate::factor::{Factor, Stop};
use crate::kernel::Kernel;
use crate::random::{Random, Stream};
use crate::reference::Reference;
use crate::report::Report;
use crate::rows::Rows;
use crate::spec::Spec;
use crate::spectrum::{Expansion, SINGLE_ROWS, Skeleton, roughly_captured};
use crate::watch::Watch;

/// Pivots are drawn among at least this many rows, or as many a pivot, if there are so many.
const CANDIDATES: usize = 5000;
const CANDIDATES_PER_PIVOT: usize = 10;
/// Rows on which pivots and a uniform draw are compared, or as many a point; other rows than those of the reference, so
/// that the fidelity reported is not of the luckier of two draws.
const JUDGES: usize = 2000;
const JUDGES_PER_POINT: usize = 4;

pub(super) const ENTRY: Entry = Entry {
    name: "landmarks",
    summary: "randomly pivoted Nyström points and the best components in their span",
    source: "Chen, Epperly, Tropp & Webber 2023",
    parameters: &[],
    capabilities: Capabilities::NONE,
    build: |_| Ok(Box::new(Landmarks)),
};

#[derive(Debug)]
struct Landmarks;

impl Method for Landmarks {
    fn fit(&self, task: &Task) -> Result<Solution> {
        let (support, expansion) = match task.aim() {
            Target::Support(m) => {
                let (support, skeleton) = better(task, m)?;
                let span = skeleton.span(task.rows, task.center, SINGLE_ROWS, task.watch)?;
                (support, span.best(task.q, task.watch)?)
            }
            Target::Fidelity(fidelity) => smallest(task, fidelity)?,
        };
        let report = Report { rounds: 1, converged: true, ..Report::default() };
        Ok(Solution::new(Spec::new("landmarks"), Support::Rows(support), expansion, report))
    }

    fn holds_rows(&self, _: &Size) -> bool {
        false
    }

    fn memory(&self, size: &Size) -> usize {
        let m = size.points(10 * size.q);
        let candidates = size.n.min(CANDIDATES.max(CANDIDATES_PER_PIVOT * m));
        8 * (size.reference() + candidates * m + 16 * m * m + 2 * blocks::ROWS * m)
    }
}

/// `m` pivots (fewer if the rank is lower), increasing.
fn pivots(kernel: &Arc<dyn Kernel>, rows: &dyn Rows, m: usize, seed: u64, watch: &dyn Watch) -> Result<Vec<usize>> {
    let candidates =
        Random::new(seed, Stream::LandmarkCandidates).sample(rows.n(), CANDIDATES.max(CANDIDATES_PER_PIVOT * m));
    let stop = Stop { rank: m, residual: 0.0 };
    let factor = Factor::pivoted(kernel, &rows.gather(&candidates)?, stop, seed, watch)?;
    let mut pivots: Vec<usize> = factor.pivots.iter().map(|&i| candidates[i]).collect();
    pivots.sort_unstable();
    Ok(pivots)
}

/// The pivots, or as many rows drawn uniformly, whichever captures more on a sample of rows: pivots win on most
/// tables, a uniform draw where variance is spread evenly and the pivots run after outliers.
fn better(task: &Task, m: usize) -> Result<(Vec<usize>, Skeleton)> {
    let Task { kernel, rows: table, q, center, seed, watch, .. } = *task;
    let n = table.n();
    // The reference is needed later, unless it is there. Made beside the pivots it costs less: both leave threads idle at times.
    let wanted = m < n && task.shared.is_none();
    let (pivots, reference) = rayon::join(
        || pivots(kernel, table, m, seed, watch),
        || wanted.then(|| Reference::new(kernel, table, q, center, seed, watch)).transpose(),
    );
    let (pivots, reference) = (pivots?, reference?);
    task.note(reference);
    let skeleton = |rows: &[usize]| Skeleton::new(kernel, &table.gather(rows)?, watch);
    if pivots.len() == n {
        let all = skeleton(&pivots)?;
        return Ok((pivots, all));
    }
    let uniform = Random::new(seed, Stream::UniformLandmarks).sample(n, pivots.len());
    let sample =
        table.gather(&Random::new(seed, Stream::LandmarkJudges).sample(n, JUDGES.max(JUDGES_PER_POINT * m)))?;
    let judged = |rows: Vec<usize>| -> Result<(f64, (Vec<usize>, Skeleton))> {
        let skeleton = skeleton(&rows)?;
        Ok((roughly_captured(&skeleton, &sample, q, center, watch)?, (rows, skeleton)))
    };
    let (by_pivots, by_uniform) = rayon::join(|| judged(pivots), || judged(uniform));
    let (by_pivots, by_uniform) = (by_pivots?, by_uniform?);
    Ok(if by_pivots.0 >= by_uniform.0 { by_pivots.1 } else { by_uniform.1 })
}

/// The fewest pivots, in the order they are drawn, whose span holds the fidelity.
fn smallest(task: &Task, fidelity: f64) -> Result<(Vec<usize>, Expansion)> {
    let reference = task.reference()?;
    let sample = task.rows.gather(&reference.rows)?;
    let mut rank = 8 * task.q;
    let (factor, t) = loop {
        let stop = Stop { rank, residual: 0.0 };
        let factor = Factor::pivoted(task.kernel, &sample, stop, task.seed, task.watch)?;
        let (t, _) = factor.scatter(task.center, task.watch)?;
        if factor.rank() < rank || share(&t, factor.rank(), task, reference)? >= fidelity {
            break (factor, t);
        }
        rank *= 2;
    };
    // The captured share grows with the prefix: bisection.
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
    search::until_held(task, fidelity, enough, solved, |count| Ok(search::a_few_more(count, factor.rank())))
}

/// Fidelity of the first `m` pivots on the reference rows.
fn share(t: &Mat<f64>, m: usize, task: &Task, reference: &Reference) -> Result<f64> {
    let lead = t.as_ref().submatrix(0, 0, m, m).to_owned();
    let accuracy = Accuracy { tolerance: 1e-6, ..Accuracy::default() };
    let pairs = top(&lead, task.q, accuracy, task.seed, task.watch)?;
    Ok(pairs.values.iter().sum::<f64>() / reference.captured)
}
