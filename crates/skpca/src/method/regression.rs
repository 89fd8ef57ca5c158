//! `l1`, `l21` and `elastic-net` are one method with different ridge and penalty: factor, alternate, refit.
//!
//! ```text
//! F by randomly pivoted Cholesky  →  min Obj(A, P)  →  rows that A uses  →  the best components in their span, or A itself
//! ```
//!
//! A target is met by a search for the penalty: it decreases from the largest useful value, known in closed form, until
//! the target is passed; then bisection narrows the bracket.

use faer::Mat;
use serde_json::Value;

use super::alternation::{Alternation, Minimum, Ridge, Scheme, Shape};
use super::parameters::BY_TARGET;
use super::search::{Found, TRIALS, search};
use super::space::{FactorSpace, KernelSpace, Space, Vectors};
use super::twins::Twins;
use super::{METHODS, Method, Size, Solution, Support, Target, Task, entry, usual_rank};
use crate::dense;
use crate::error::{Error, Result};
use crate::factor::sums;
use crate::parameter::{Domain, Parameter, Range};
use crate::random::{Random, Stream};
use crate::report::Report;
use crate::spec::{Fields, Spec};
use crate::spectrum::Expansion;

/// Default ridge, as a share of the largest eigenvalue (times the mean `k(x, x)` for a ridge on coefficients).
const RIDGE_SHARE: f64 = 1e-3;
/// Default tolerance of the relative duality gap.
const GAP: f64 = 1e-6;
/// Default maximum number of P-steps.
const ROUNDS: usize = 500;
/// Relative width of the bracket of penalties at which a search ends.
const TIGHT: f64 = 1e-3;
/// The search for a number of points starts at half this multiple of the largest useful penalty.
const BEGIN: f64 = 1.6;
/// A support larger or smaller than requested by this factor is far from the target, so that a rough minimum suffices.
const FAR: f64 = 1.5;
/// P hardly moves between two penalties whose ratio is below this.
const CLOSE: f64 = 1.5;
/// Factor from a penalty that just misses a target to the next one.
const NUDGE: f64 = 0.95;
/// Maximum number of such steps, after which there is no penalty.
const NUDGES: usize = 20;

const STOPPED: &str =
    "the search for a penalty reached its work limit: fewer components or alternations make it shorter";

/// Maximum number of starts of P, all of which are in memory at once.
const MAX_STARTS: usize = 1000;
/// Fidelity above which no penalty is tried.
const FULL: f64 = 1.0 - 1e-9;

pub(super) const RIDGE: Parameter = Parameter::optional(
    "ridge",
    Domain::Number(Range::From(0.0)),
    "1e-3 times the largest eigenvalue",
    "λ: the objective includes λ/2 times the squared norm in feature space",
);

pub(super) const PENALTY: Parameter = Parameter::optional(
    "penalty",
    Domain::Numbers,
    BY_TARGET,
    "weight of the sparsity penalty; several as 0.1:0.2, one per component",
)
.fixing_size();

pub(super) const FRACTION: Parameter = Parameter::optional(
    "fraction",
    Domain::Number(Range::From(0.0)),
    BY_TARGET,
    "the penalty as a share of the largest useful one",
)
.fixing_size();

pub(super) const ALTERNATIONS: Parameter =
    Parameter::count("alternations", 0, ROUNDS, "maximum number of P-steps; 0 keeps P at the leading eigenvectors")
        .as_sklearn("max_iter");

pub(super) const STARTS: Parameter = Parameter::count(
    "starts",
    1,
    1,
    "starts of P: the leading eigenvectors, and random rotations of them; the lowest minimum is kept",
);

pub(super) const TOLERANCE: Parameter =
    Parameter::number("tolerance", Range::Above(0.0), GAP, "relative duality gap at which to stop").as_sklearn("tol");

/// Which of the three methods it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    L1,
    L21,
    ElasticNet,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::L1, Kind::L21, Kind::ElasticNet];

    fn name(self) -> &'static str {
        match self {
            Kind::L1 => "l1",
            Kind::L21 => "l21",
            Kind::ElasticNet => "elastic-net",
        }
    }
}

/// The penalty, if the user gives it.
#[derive(Clone, Debug, PartialEq)]
enum Penalty {
    /// One number, or one per component.
    Given(Vec<f64>),
    /// As a share of the largest useful one.
    Fraction(f64),
}

#[derive(Debug)]
pub(super) struct Regression {
    kind: Kind,
    ridge: Option<f64>,
    penalty: Option<Penalty>,
    rounds: usize,
    sequential: bool,
    starts: usize,
    refit: bool,
    gap: f64,
    rank: Option<usize>,
}

impl Regression {
    pub(super) fn build(kind: Kind, fields: &mut Fields) -> Result<Box<dyn Method>> {
        Ok(Box::new(Regression::new(kind, fields)?))
    }

    fn new(kind: Kind, fields: &mut Fields) -> Result<Regression> {
        let mut ridge = fields.optional_number("ridge")?;
        let mut penalty = fields.optional_numbers("penalty")?.map(Penalty::Given);
        if let Some(share) = fields.optional_number("fraction")? {
            reject_both("fraction", share, penalty.is_some())?;
            penalty = Some(Penalty::Fraction(share));
        }
        if kind == Kind::ElasticNet
            && let Some(ratio) = fields.optional_number("l1_ratio")?
        {
            reject_both("l1_ratio", ratio, penalty.is_some() || ridge.is_some())?;
            // Das et al.: λ₁ = ρ, λ = (1 − ρ)/2 with the loss ‖K(α − β)‖², which is twice ours.
            (ridge, penalty) = (Some((1.0 - ratio) / 2.0), Some(Penalty::Given(vec![ratio])));
        }
        let sequential = kind == Kind::L1 && fields.boolean("sequential")?;
        let rounds = fields.count("alternations")?;
        // A penalty on rows of A leaves P little freedom: l21 has one start.
        let starts = if kind == Kind::L21 { 1 } else { fields.count("starts")? };
        if starts > MAX_STARTS {
            return Err(Error::parameter("starts", starts, &format!("at most {MAX_STARTS}")));
        }
        Ok(Regression {
            kind,
            ridge,
            penalty,
            sequential,
            starts,
            rounds,
            refit: fields.boolean("refit")?,
            gap: fields.number("tolerance")?,
            rank: fields.optional_count("rank")?,
        })
    }
}

fn reject_both(name: &'static str, value: f64, other: bool) -> Result<()> {
    if other {
        Err(Error::parameter(name, value, "this or the other parameters of the penalty, not both"))
    } else {
        Ok(())
    }
}

impl Method for Regression {
    fn fit(&self, task: &Task) -> Result<Solution> {
        if self.penalty.is_some() {
            task.refuse_target("a penalty")?;
        }
        self.along(task, |path| path.run())
    }

    fn memory(&self, size: &Size) -> usize {
        let rank = usual_rank(self.rank, size.n, size.support.map(Target::Support)).min(size.dimension);
        let working = 4 * size.points(10 * size.q);
        size.beside_factor(size.n * (rank + size.q + 2) + sums(size.n) * rank * rank + 3 * working * (working + rank))
    }
}

impl Regression {
    /// Calls `job` with the path of penalties of a task.
    fn along<R>(&self, task: &Task, job: impl FnOnce(&mut PenaltyPath) -> Result<R>) -> Result<R> {
        let rank = usual_rank(self.rank, task.n(), task.target);
        if let Some(space) = KernelSpace::of(task, rank)? {
            let (values, vectors) = space.leading(task)?;
            return job(&mut self.path(task, &space, values, vectors)?);
        }
        let scattered = task.scattered(rank)?;
        let space = FactorSpace { factor: &scattered.factor, t: &scattered.t };
        let pairs = task.leading(space.factor, space.t)?;
        let vectors = space.vectors(pairs.vectors);
        job(&mut self.path(task, &space, pairs.values, vectors)?)
    }

    /// Creates the path of penalties, which starts from the leading eigenpairs.
    fn path<'a>(
        &'a self,
        task: &'a Task,
        space: &'a dyn Space,
        values: Vec<f64>,
        vectors: Vectors,
    ) -> Result<PenaltyPath<'a>> {
        let ridge = self.ridge.unwrap_or_else(|| match self.kind {
            Kind::ElasticNet => RIDGE_SHARE * values[0] * space.trace() / space.n() as f64,
            _ => RIDGE_SHARE * values[0],
        });
        let (shape, ridge_of): (Shape, fn(f64) -> Ridge) = match self.kind {
            Kind::L1 => (Shape::Entries, Ridge::Features),
            Kind::L21 => (Shape::Rows, Ridge::Features),
            Kind::ElasticNet => (Shape::Entries, Ridge::Coefficients),
        };
        let Regression { gap, rounds, sequential, .. } = *self;
        let scheme = Scheme { shape, ridge: ridge_of(ridge), gap, rounds, sequential };
        let twins = (self.kind == Kind::ElasticNet).then(|| task.rows.whole().map(Twins::of)).transpose()?;
        let alternation = Alternation::new(space, scheme, twins, task.watch);
        let captured = values.iter().sum();
        let q = vectors.count();
        let others = (1..self.starts).map(|turn| Ok(vectors.times(random_rotation(q, task.seed, turn)?.as_ref())));
        let others = others.collect::<Result<Vec<_>>>()?;
        Ok(PenaltyPath {
            method: self,
            task,
            space,
            start: vectors,
            others,
            captured,
            ridge,
            alternation,
            stopped: false,
        })
    }

    /// Returns our penalty divided by the user's: ½ for the elastic net, because the objective of Das et al. is twice
    /// ours.
    fn unit(&self) -> f64 {
        if self.kind == Kind::ElasticNet { 0.5 } else { 1.0 }
    }
}

/// A path of penalties on one factor, each with a warm start.
struct PenaltyPath<'a> {
    method: &'a Regression,
    task: &'a Task<'a>,
    space: &'a dyn Space,
    /// The leading eigenvectors of T.
    start: Vectors,
    /// Random rotations of them, if P has several starts.
    others: Vec<Vectors>,
    /// The sum of their eigenvalues.
    captured: f64,
    ridge: f64,
    alternation: Alternation<'a>,
    /// Whether the search for a penalty reached its work limit.
    stopped: bool,
}

/// The solution for one penalty.
struct Candidate {
    /// Selected rows, increasing.
    rows: Vec<usize>,
    /// Coefficients of the components that are not empty.
    a: Mat<f64>,
    penalties: Vec<f64>,
    report: Report,
}

/// One penalty of a [path](crate::Fit::path) and the rows that it selects.
///
/// ```
/// use skpca::{Fit, toys};
///
/// let fit = Fit { method: "l21".parse()?, components: Some(3), ..Fit::default() };
/// let steps = fit.path(&toys::clusters(0), &[0.9, 0.5, 0.1], &())?;
/// assert!(steps[0].rows.len() <= steps[2].rows.len() && steps[0].penalty > steps[2].penalty);
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The penalty, as in the method's parameter `penalty`.
    pub penalty: f64,
    /// The penalty as a share of the largest useful one.
    pub share: f64,
    /// Selected rows, increasing.
    pub rows: Vec<usize>,
    /// Fidelity of the best components over these rows.
    pub fidelity: f64,
    /// Objective, duality gap, number of rounds and whether the method converged.
    pub report: Report,
}

/// Returns `count` shares in geometric progression from 1 down to `least`: the penalties of a
/// [path](crate::Fit::path).
pub fn shares(count: usize, least: f64) -> Vec<f64> {
    (0..count).map(|i| least.powf(i as f64 / count.saturating_sub(1).max(1) as f64)).collect()
}

/// Solves at `shares` of the largest useful penalty, each with the previous solution as a warm start.
pub(crate) fn steps(spec: &Spec, task: &Task, shares: &[f64]) -> Result<Vec<Step>> {
    let kind = Kind::ALL.into_iter().find(|kind| kind.name() == spec.name);
    let kind = kind.ok_or_else(|| {
        let able = METHODS.iter().filter(|entry| entry.capabilities.path).map(|entry| entry.name);
        let expected = format!("a method with a path: {}", able.collect::<Vec<_>>().join(", "));
        Error::parameter("method", &spec.name, &expected)
    })?;
    task.refuse_target("a path")?;
    let method = Regression::new(kind, &mut Fields::new(spec, entry(spec)?.parameters))?;
    if method.penalty.is_some() {
        return Err(Error::parameter("method", spec, "no penalty of its own: a path has several"));
    }
    method.along(task, |path| {
        let most = path.alternation.largest_penalty(&path.start);
        if let Some(share) = shares.iter().find(|share| !(**share * most).is_finite() || **share * most <= 0.0) {
            return Err(Error::parameter(
                "shares",
                format!("{share:?}"),
                "numbers above 0 that leave a penalty finite",
            ));
        }
        let mut last: Option<Minimum> = None;
        let step = |&share: &f64| {
            let penalties = vec![share * most; path.groups()];
            let start = last.as_ref().map_or(&path.start, |state| &state.p);
            let state = path.alternation.solve(start, &penalties, last.as_ref())?;
            let Candidate { rows, mut report, .. } = path.candidate(&state, penalties);
            report.chosen = rows.len();
            last = Some(state);
            let fidelity = path.fidelity(&rows)?;
            Ok(Step { penalty: share * most / path.method.unit(), share, rows, fidelity, report })
        };
        shares.iter().map(step).collect()
    })
}

impl PenaltyPath<'_> {
    /// Returns the fidelity of the best components over these rows.
    fn fidelity(&self, rows: &[usize]) -> Result<f64> {
        if rows.is_empty() { Ok(0.0) } else { self.task.fidelity(rows, &self.task.expansion(rows, None)?) }
    }

    fn run(&mut self) -> Result<Solution> {
        let most = self.alternation.largest_penalty(&self.start);
        if !most.is_finite() {
            return Err(Error::Numerical { why: "squares of the kernel's values overflow".into() });
        }
        let (mut candidate, expansion) = match (&self.method.penalty, self.task.aim()) {
            (Some(Penalty::Given(numbers)), _) => {
                let penalties = self.spread(numbers)?.iter().map(|p| self.method.unit() * p).collect();
                let candidate = self.at_given(penalties, most)?;
                self.expanded(candidate)?
            }
            (Some(Penalty::Fraction(share)), _) => {
                let candidate = self.at_given(self.spread(&[share * most])?, most)?;
                self.expanded(candidate)?
            }
            (None, Target::Support(m)) => {
                let candidate = self.with_support(m, most)?;
                self.expanded(candidate)?
            }
            (None, Target::Fidelity(f)) => self.with_fidelity(f, most)?,
        };
        if self.stopped {
            candidate.report.converged = false;
            candidate.report.notes.push(STOPPED.into());
        }
        let method = self.spec(&candidate);
        let solution = Solution::new(method, Support::Rows(candidate.rows), expansion, candidate.report);
        Ok(Solution { fewer: "no penalty selects as many", ..solution })
    }

    /// Returns one penalty per group of columns.
    fn spread(&self, numbers: &[f64]) -> Result<Vec<f64>> {
        let groups = self.groups();
        match numbers.len() {
            1 => Ok(vec![numbers[0]; groups]),
            // There may be fewer components than requested.
            count if self.method.kind != Kind::L21 && count >= groups => Ok(numbers[..groups].to_vec()),
            count => {
                let expected = if groups == 1 { "one number".into() } else { format!("one number or {groups}") };
                Err(Error::parameter("penalty", format!("{count} numbers"), &expected))
            }
        }
    }

    fn at_given(&mut self, penalties: Vec<f64>, most: f64) -> Result<Candidate> {
        if penalties.iter().all(|p| *p == 0.0) {
            return self.unpenalised();
        }
        if let Some(zero) = penalties.iter().find(|p| **p <= 0.0) {
            return Err(Error::parameter("penalty", zero, "positive numbers, or a single 0 for none"));
        }
        let rough = lowest(&mut self.alternation, (&self.start, &self.others), &penalties, None)?;
        let state = self.alternation.finish(rough, &penalties)?;
        if self.alternation.used(&state.a).is_empty() {
            let penalty = penalties.iter().copied().fold(f64::INFINITY, f64::min) / self.method.unit();
            let why = format!(
                "a penalty of {penalty:.6e} selects no point: it has to be below {:.6e}",
                most / self.method.unit()
            );
            return Err(Error::NoVariance { why });
        }
        Ok(self.candidate(&state, penalties))
    }

    fn groups(&self) -> usize {
        self.alternation.groups(self.start.count()).len()
    }

    /// Without a penalty, A is any expansion of the directions of exact kernel PCA.
    fn unpenalised(&self) -> Result<Candidate> {
        let (rows, a) = self.space.expansion(&self.start);
        let report = Report { gap: Some(0.0), rounds: 0, converged: true, ..Report::default() };
        Ok(Candidate { rows, a, penalties: vec![0.0], report })
    }

    fn candidate(&self, state: &Minimum, penalties: Vec<f64>) -> Candidate {
        let mut used = self.alternation.used(&state.a);
        used.sort_by_key(|&w| self.alternation.atoms.rows[w]);
        let alive: Vec<usize> = (0..state.a.ncols()).filter(|&k| state.a.col(k).iter().any(|v| *v != 0.0)).collect();
        let mut report = Report {
            objective: Some(state.objective / self.method.unit()),
            gap: Some(state.gap),
            rounds: state.rounds,
            converged: state.converged,
            ..Report::default()
        };
        if !self.method.refit && alive.len() < state.a.ncols() {
            let (empty, all) = (state.a.ncols() - alive.len(), state.a.ncols());
            report.notes.push(format!("{empty} of {all} components are empty at this penalty"));
        }
        Candidate {
            rows: used.iter().map(|&w| self.alternation.atoms.rows[w]).collect(),
            a: Mat::from_fn(used.len(), alive.len(), |i, k| state.a[(used[i], alive[k])]),
            penalties,
            report,
        }
    }

    /// Finds the penalty that selects the largest support of at most `m` points.
    fn with_support(&mut self, m: usize, most: f64) -> Result<Candidate> {
        if m >= self.space.rank() {
            return self.unpenalised();
        }
        let count = |path: &Self, state: &Minimum| Ok(path.alternation.used(&state.a).len() as f64);
        let done = |count: f64| count == m as f64;
        let far = |count: f64| count < m as f64 / FAR || count > m as f64 * FAR;
        // Supports may jump just below the largest penalty: the search starts there.
        let above = BEGIN * most;
        let mut found = self.search(above, m as f64 + 0.5, count, far, done)?;
        if found.sparse.as_ref().is_some_and(|(_, state)| !state.finished) {
            // Supports jump from few points to many, and rough minima do not show where.
            found = self.search(above, m as f64 + 0.5, count, |_| false, done)?;
        }
        let sparse = found.sparse.filter(|(_, state)| !self.alternation.used(&state.a).is_empty());
        let least = sparse.as_ref().map_or(0, |(_, state)| self.alternation.used(&state.a).len());
        let other = match found.dense.filter(|_| least < m) {
            Some(dense) => self.thinned(dense, least, m)?,
            None => None,
        };
        match other.or(sparse) {
            Some((penalty, state)) => Ok(self.candidate(&state, vec![penalty; self.groups()])),
            None => Err(Error::parameter("support", m, "more points: every penalty selects more than that, or none")),
        }
    }

    /// If the support jumps over `m` from one local minimum to another, follows the denser one to larger penalties
    /// until it has at most `m` points; `None` if it then has no more than `least`.
    fn thinned(&mut self, dense: (f64, Minimum), least: usize, m: usize) -> Result<Option<(f64, Minimum)>> {
        let (mut penalty, mut state) = dense;
        // Steps grow while they change nothing. A step that leaves too few points is undone; from then on steps shrink.
        let (mut nudges, mut shrinking) = (1.0, false);
        for _ in 0..TRIALS {
            if self.alternation.exhausted() {
                self.stopped = true;
                break;
            }
            let larger = penalty / f64::powf(NUDGE, nudges);
            let next = self.alternation.solve(&state.p, &vec![larger; self.groups()], Some(&state))?;
            let (before, count) = (self.alternation.used(&state.a).len(), self.alternation.used(&next.a).len());
            if count > least && count <= m {
                return Ok(Some((larger, next)));
            }
            if count <= least {
                shrinking = true;
                nudges /= 2.0;
                if nudges < 1.0 {
                    break;
                }
                continue;
            }
            nudges = if shrinking || count < before { nudges } else { 2.0 * nudges };
            (penalty, state) = (larger, next);
        }
        Ok(None)
    }

    /// Finds the smallest support that reaches the fidelity, on the factor first, then on the data.
    fn with_fidelity(&mut self, fidelity: f64, most: f64) -> Result<(Candidate, Expansion)> {
        if fidelity > FULL {
            return self.expanded(self.unpenalised()?);
        }
        let rank = self.space.rank();
        let measure = |path: &Self, state: &Minimum| {
            let share = path.share(state)?;
            // Too little is captured with as many points as without a penalty: the search can end.
            let end = share < fidelity && path.alternation.used(&state.a).len() >= rank;
            Ok(if end { f64::INFINITY } else { share })
        };
        let mut found = self.search(most, fidelity, measure, |_| false, |share| share == f64::INFINITY)?.dense;
        for _ in 0..NUDGES {
            found = found.filter(|(_, state)| self.alternation.used(&state.a).len() < rank);
            let Some((penalty, state)) = found else { break };
            let candidate = self.candidate(&state, vec![penalty; self.groups()]);
            let (candidate, expansion) = self.expanded(candidate)?;
            if self.task.fidelity(&candidate.rows, &expansion)? >= fidelity {
                return Ok((candidate, expansion));
            }
            if self.alternation.exhausted() {
                self.stopped = true;
                break;
            }
            // The fidelity on the factor is slightly optimistic.
            let penalty = NUDGE * penalty;
            let state = self.alternation.solve(&self.start, &vec![penalty; self.groups()], Some(&state))?;
            found = Some((penalty, state));
        }
        self.expanded(self.unpenalised()?)
    }

    /// Returns the fidelity on the factor.
    fn share(&self, state: &Minimum) -> Result<f64> {
        let used = self.alternation.used(&state.a);
        if used.is_empty() {
            return Ok(0.0);
        }
        let rows: Vec<usize> = used.iter().map(|&w| self.alternation.atoms.rows[w]).collect();
        let own = Mat::from_fn(used.len(), state.a.ncols(), |i, k| state.a[(used[i], k)]);
        let own = (!self.method.refit).then_some(own.as_ref());
        Ok(self.space.captured(&rows, own, self.start.count())? / self.captured)
    }

    /// Brackets the penalty, the same for all groups of columns, at which `measure` reaches `wanted`. Minima whose
    /// measure is `far` from that are not refined.
    fn search(
        &mut self,
        most: f64,
        wanted: f64,
        measure: impl Fn(&Self, &Minimum) -> Result<f64>,
        far: impl Fn(f64) -> bool,
        done: impl Fn(f64) -> bool,
    ) -> Result<Found<Minimum>> {
        let groups = self.groups();
        self.alternation.limit(self.method.starts);
        let mut stopped = false;
        let solve = |penalty: f64, warm: Option<&Minimum>| {
            if self.alternation.exhausted() {
                stopped = true;
                return Ok(None);
            }
            let penalties = vec![penalty; groups];
            let close = |state: &&Minimum| (state.penalty / penalty).max(penalty / state.penalty) < CLOSE;
            let start = warm.filter(close).map_or(&self.start, |state| &state.p);
            let rough = lowest(&mut self.alternation, (start, &self.others), &penalties, warm)?;
            if far(measure(self, &rough)?) {
                let measured = measure(self, &rough)?;
                return Ok(Some((rough, measured)));
            }
            let state = self.alternation.finish(rough, &penalties)?;
            let measured = measure(self, &state)?;
            Ok(Some((state, measured)))
        };
        let found = search(most, wanted, TIGHT, solve, done)?;
        self.stopped |= stopped;
        Ok(found)
    }

    fn expanded(&self, candidate: Candidate) -> Result<(Candidate, Expansion)> {
        let own = (!self.method.refit).then_some(candidate.a.as_ref());
        let expansion = self.task.expansion(&candidate.rows, own)?;
        Ok((candidate, expansion))
    }

    /// Returns the method with the parameters of this model.
    fn spec(&self, candidate: &Candidate) -> Spec {
        let penalties: Vec<f64> = candidate.penalties.iter().map(|p| p / self.method.unit()).collect();
        let equal = penalties.iter().all(|p| *p == penalties[0]);
        let penalty = if equal { Value::from(penalties[0]) } else { Value::from(penalties) };
        let mut spec = Spec::new(self.method.kind.name())
            .with("ridge", self.ridge)
            .with("penalty", penalty)
            .with("alternations", self.method.rounds)
            .with("refit", self.method.refit)
            .with("tolerance", self.method.gap)
            .with("rank", self.space.rank());
        if self.method.kind != Kind::L21 {
            spec = spec.with("starts", self.method.starts);
        }
        if self.method.kind == Kind::L1 {
            spec = spec.with("sequential", self.method.sequential);
        }
        spec
    }
}

/// Returns the lowest of the rough minima reached from `start` and from the others. The local minimum in which an
/// alternation ends may depend on the last bit of its start; which of several is lowest depends less on it.
fn lowest(
    alternation: &mut Alternation,
    (start, others): (&Vectors, &[Vectors]),
    penalties: &[f64],
    warm: Option<&Minimum>,
) -> Result<Minimum> {
    let mut best = alternation.rough(start, penalties, warm)?;
    for other in others {
        let tried = alternation.rough(other, penalties, Some(&best))?;
        if tried.objective < best.objective {
            best = tried;
        }
    }
    Ok(best)
}

/// Returns a random orthonormal matrix.
fn random_rotation(q: usize, seed: u64, turn: usize) -> Result<Mat<f64>> {
    let mut random = Random::at(seed, Stream::Starts, (turn as u64) << 32);
    let normal = Mat::from_fn(q, q, |_, _| random.normal());
    Ok(dense::product(normal.as_ref(), dense::frame(normal.as_ref(), 0.0)?.as_ref()))
}
