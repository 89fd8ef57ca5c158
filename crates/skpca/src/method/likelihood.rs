//! Tipping's sparse kernel PCA (2001): a Gaussian in feature space whose covariance is noise plus a few weighted
//! points.
//!
//! ```text
//! C = σ²I + Σ w_i φ(x_i)φ(x_i)ᵀ     w by maximum likelihood, most of them zero                       (weights.rs)
//! P = √W Ũ Λ̃^−½,  √W K √W = Ũ Λ̃ Ũᵀ   principal axes of C over the points with a weight: features Pᵀk_z(x),
//!                                     reconstruction error k(x,x) − ‖Pᵀk_z(x)‖², the novelty score
//! ```
//!
//! σ² determines how many points are kept: none above `max_i (K²)_ii / (n k_ii)`, and usually, though not always, more
//! as it falls, so that a target is met by a search. Features are not centred by default, as in the paper; if they are,
//! the mean is subtracted from the data and not from the points, so that the model stays sparse.
//!
//! Feature space may have any number of dimensions, and each would add `−½ log 2πσ²` to the log-likelihood of a row.
//! The number D is taken to be the rank of the kernel matrix, so that different σ² can be compared on the same data.

use faer::Mat;

use super::active::root;
use super::parameters::{BY_TARGET, RANK, REFIT};
use super::search::{Found, search, until_reached};
use super::shared::Principal;
use super::weights::{self, NEAREST, Over, WeightState};
use super::{Capabilities, Entry, Method, Size, Solution, Support, Target, Task, usual_rank};
use crate::dense;
use crate::density::Density;
use crate::error::{Error, Result};
use crate::factor::{Factor, sums};
use crate::kernel_matrix::gram;
use crate::parameter::{Domain, Parameter, Range};
use crate::report::Report;
use crate::spec::Spec;
use crate::spectrum::Expansion;

/// Default tolerance: the largest violation of the conditions of a maximum.
const TOLERANCE: f64 = 1e-6;
/// Relative width of the bracket of σ² at which the search for a number of points ends.
const TIGHT: f64 = 1e-6;
/// The same for a fidelity.
const TIGHT_FIDELITY: f64 = 1e-3;
/// Share of the largest useful noise at which the first search starts; it selects hardly any points.
const LARGE: f64 = 0.5;
/// Number of points at which a search for a fidelity ends: a larger model is not sparse.
const MAX_POINTS: usize = 1000;
/// Factor from a σ² that just misses a fidelity over all rows to the next one.
const NUDGE: f64 = 0.95;
/// Maximum number of such steps.
const NUDGES: usize = 20;

pub(super) const ENTRY: Entry = Entry {
    name: "likelihood",
    summary: "maximum likelihood of a Gaussian with covariance noise plus few weighted points; uncentred by default",
    source: "Tipping 2001",
    parameters: &[NOISE, FRACTION, REFIT, STOP, RANK],
    capabilities: Capabilities { uncentred: true, density: true, ..Capabilities::NONE },
    build: |fields| {
        let mut noise = fields.optional_number("noise")?.map(Noise::Given);
        if let Some(share) = fields.optional_number("fraction")? {
            if noise.is_some() {
                return Err(Error::parameter("fraction", share, "this or noise, not both"));
            }
            noise = Some(Noise::Fraction(share));
        }
        Ok(Box::new(Likelihood {
            noise,
            refit: fields.boolean("refit")?,
            tolerance: fields.number("tolerance")?,
            rank: fields.optional_count("rank")?,
        }))
    },
};

const NOISE: Parameter =
    Parameter::optional("noise", Domain::Number(Range::Above(0.0)), BY_TARGET, "σ²; the smaller, the more points")
        .fixing_size();

const FRACTION: Parameter = Parameter::optional(
    "fraction",
    Domain::Number(Range::Above(0.0)),
    BY_TARGET,
    "the noise as a share of the largest useful one",
)
.fixing_size();

const STOP: Parameter =
    Parameter::number("tolerance", Range::Above(0.0), TOLERANCE, "largest |ρ − 1| at which to stop").as_sklearn("tol");

#[derive(Clone, Copy, Debug, PartialEq)]
enum Noise {
    /// σ²
    Given(f64),
    /// As a share of the largest useful one.
    Fraction(f64),
}

#[derive(Debug)]
struct Likelihood {
    noise: Option<Noise>,
    refit: bool,
    tolerance: f64,
    rank: Option<usize>,
}

impl Method for Likelihood {
    fn fit(&self, task: &Task) -> Result<Solution> {
        if self.noise.is_some() {
            task.refuse_target("noise (or fraction)")?;
        }
        let principal = task.principal(usual_rank(self.rank, task.n(), task.target))?;
        let Principal { factor, values } = &*principal;
        let captured = values.iter().take(task.q).sum();
        let t = dense::diagonal(values);
        let problem = weights::WeightProblem::new(factor, values, task.watch);
        NoisePath { method: self, task, factor, t, captured, problem }.run()
    }

    fn memory(&self, size: &Size) -> usize {
        let rank = usual_rank(self.rank, size.n, size.support.map(Target::Support)).min(size.dimension);
        // In few dimensions a covariance is a sum of at most this many outer products.
        let most = size.dimension.saturating_mul(size.dimension.saturating_add(1)) / 2;
        let active = if rank == size.dimension { most } else { 2 * size.points(10 * size.q) }.min(size.n);
        let near = if size.n > 2 * NEAREST { 2 * NEAREST } else { 0 };
        size.beside_factor(size.n * (rank + 4) + sums(size.n) * rank * rank + near * rank + 12 * active * active)
    }
}

/// A path of values of σ² on one factor, each with a warm start.
struct NoisePath<'a> {
    method: &'a Likelihood,
    task: &'a Task<'a>,
    factor: &'a Factor,
    t: Mat<f64>,
    /// Variance that exact kernel PCA captures, on the factor.
    captured: f64,
    problem: weights::WeightProblem<'a>,
}

impl NoisePath<'_> {
    fn run(&self) -> Result<Solution> {
        let most = self.problem.largest_noise();
        match (self.method.noise, self.task.aim()) {
            (Some(Noise::Given(noise)), _) => self.with_noise(noise, most),
            (Some(Noise::Fraction(share)), _) => self.with_noise(share * most, most),
            (None, Target::Support(m)) => self.with_support(m, most),
            (None, Target::Fidelity(fidelity)) => self.with_fidelity(fidelity, most),
        }
    }

    fn with_noise(&self, noise: f64, most: f64) -> Result<Solution> {
        let state = self.problem.maximise(noise, None)?;
        if state.rows.is_empty() {
            let why = format!("a noise of {noise:.6e} selects no point: it has to be below {most:.6e}");
            return Err(Error::NoVariance { why });
        }
        self.solution(noise, state)
    }

    /// Finds the largest support of at most `m` points.
    fn with_support(&self, m: usize, most: f64) -> Result<Solution> {
        if self.problem.large() {
            // Search on the wide candidate set first, then check the result on all points.
            let found = self.counted(Over::Wide, m, LARGE * most)?;
            if let Some((noise, state)) = found.sparse.filter(|(_, state)| state.rows.len() == m) {
                let state = self.problem.maximise(noise, Some(&state))?;
                if state.rows.len() == m {
                    return self.solution(noise, state);
                }
            }
        }
        let found = self.counted(Over::All, m, most)?;
        let expected = "a larger number: every noise that was tried selects more points, or none";
        match found.sparse.filter(|(_, state)| !state.rows.is_empty()) {
            Some((noise, state)) => self.solution(noise, state),
            None => Err(Error::parameter("support", m, expected)),
        }
    }

    /// Brackets the value of σ² that selects `m` points.
    fn counted(&self, over: Over, m: usize, most: f64) -> Result<Found<WeightState>> {
        let mut before = WeightState::default();
        let solve = |noise: f64, warm: Option<&WeightState>| {
            let mut start = warm.cloned().unwrap_or_default();
            start.share_wide(&before);
            let state = self.problem.maximise_over(over, noise, Some(&start))?;
            before.share_wide(&state);
            let count = state.rows.len() as f64;
            Ok(Some((state, count)))
        };
        search(most, m as f64 + 0.5, TIGHT, solve, |count| count == m as f64)
    }

    /// Finds the smallest support that reaches the fidelity, on the factor first, then on the data.
    fn with_fidelity(&self, fidelity: f64, most: f64) -> Result<Solution> {
        let solve = |noise: f64, warm: Option<&WeightState>| {
            let state = self.problem.maximise(noise, warm)?;
            let share = if state.rows.len() > MAX_POINTS { f64::INFINITY } else { self.share(&state)? };
            Ok(Some((state, share)))
        };
        let found = search(most, fidelity, TIGHT_FIDELITY, solve, |share| share == f64::INFINITY)?;
        let first = match (found.dense, found.sparse) {
            (Some(dense), _) if dense.1.rows.len() <= MAX_POINTS => dense,
            // The largest support found misses the fidelity; a note will say by how much.
            (_, Some(sparse)) => return self.solution(sparse.0, sparse.1),
            (Some(dense), None) => dense,
            (None, None) => unreachable!("a search tries at least one value"),
        };
        let mut nudges = 0..NUDGES;
        let next = |(noise, state): (f64, WeightState)| {
            let nudged = |_| Ok((NUDGE * noise, self.problem.maximise(NUDGE * noise, Some(&state))?));
            nudges.next().map(nudged).transpose()
        };
        let solved = |(noise, state): &(f64, WeightState)| self.solution(*noise, state.clone());
        until_reached(self.task, fidelity, first, solved, next)
    }

    /// Returns the fidelity on the factor.
    fn share(&self, state: &WeightState) -> Result<f64> {
        if state.rows.is_empty() {
            return Ok(0.0);
        }
        let own = self.own(&self.kernel_values(state)?, state)?;
        let own = own.as_ref().map(Mat::as_ref);
        Ok(self.factor.captured(&self.t, &state.rows, own, self.task.q)? / self.captured)
    }

    fn kernel_values(&self, state: &WeightState) -> Result<Mat<f64>> {
        Ok(gram(self.task.kernel, &self.task.rows.gather(&state.rows)?))
    }

    /// Returns P, the leading principal axes of C, unless components are refitted.
    fn own(&self, k: &Mat<f64>, state: &WeightState) -> Result<Option<Mat<f64>>> {
        if self.method.refit {
            return Ok(None);
        }
        let roots: Vec<f64> = state.weights.iter().map(|w| w.sqrt()).collect();
        let m = roots.len();
        let (values, vectors) = dense::eigen(Mat::from_fn(m, m, |i, j| roots[i] * k[(i, j)] * roots[j]).as_ref())?;
        let count = values.iter().take(self.task.q).take_while(|v| **v > 1e-13 * values[0]).count();
        Ok(Some(Mat::from_fn(m, count, |i, j| roots[i] * vectors[(i, j)] / values[j].sqrt())))
    }

    fn solution(&self, noise: f64, state: WeightState) -> Result<Solution> {
        let task = self.task;
        let k = self.kernel_values(&state)?;
        let own = self.own(&k, &state)?;
        let expansion = task.expansion(&state.rows, own.as_ref().map(Mat::as_ref))?;
        let dimension = self.factor.rank();
        let constant = dimension as f64 * (std::f64::consts::TAU * noise).ln();
        let outside = self.factor.residual_trace / noise;
        let report = Report {
            objective: Some((state.likelihood - 0.5 * outside) / task.n() as f64 - 0.5 * constant),
            gap: Some(state.violation),
            rounds: state.rounds,
            converged: state.violation <= self.method.tolerance,
            ..Report::default()
        };
        let density = density(&k, &state, noise, dimension, &expansion)?;
        let method = Spec::new("likelihood").with("noise", noise).with("refit", self.method.refit);
        let method = method.with("tolerance", self.method.tolerance).with("rank", dimension);
        let solution = Solution::new(method, Support::Rows(state.rows), expansion, report);
        Ok(Solution { density: Some(density), fewer: "no noise selects as many", ..solution })
    }
}

/// Computes the density: `C⁻¹ = (I − Σ_j φ_j φ_jᵀ)/σ²`, with φ_j expanded over the kept points, and `log|C/σ²|`.
///
/// The weights are those of the factor while kernel values are exact: with a factor of low rank they differ a little.
fn density(k: &Mat<f64>, state: &WeightState, noise: f64, dimension: usize, expansion: &Expansion) -> Result<Density> {
    let failed = || Error::Numerical { why: "the covariance of the model is not positive definite".into() };
    let m = state.rows.len();
    let roots: Vec<f64> = state.weights.iter().map(|w| w.sqrt()).collect();
    let root = root(k, &roots, noise).ok_or_else(failed)?;
    // Columns √W L⁻ᵀ / σ, with B = L Lᵀ.
    let mut axes = Mat::identity(m, m);
    dense::solve_lower_transposed(root.as_ref(), axes.as_mut());
    for j in 0..m {
        axes.col_mut(j).iter_mut().zip(&roots).for_each(|(a, root)| *a *= root / noise.sqrt());
    }
    let kept = &expansion.kept;
    if kept.len() < m {
        let inner = Mat::from_fn(kept.len(), kept.len(), |i, j| k[(kept[i], kept[j])]);
        let l = dense::cholesky(inner.as_ref()).ok_or_else(failed)?;
        axes = dense::product(Mat::from_fn(kept.len(), m, |i, j| k[(kept[i], j)]).as_ref(), axes.as_ref());
        dense::solve_lower(l.as_ref(), axes.as_mut());
        dense::solve_lower_transposed(l.as_ref(), axes.as_mut());
    }
    let log_determinant = 2.0 * (0..m).map(|i| root[(i, i)].ln()).sum::<f64>();
    let weights = kept.iter().map(|&i| state.weights[i]).collect();
    Ok(Density { noise, dimension, log_determinant, axes, weights: Some(weights) })
}
