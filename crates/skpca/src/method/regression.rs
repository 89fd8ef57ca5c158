//! `l1`, `l21` and `elastic-net` are one method with different ridge and penalty: factor, alternate, refit.
//!
//! ```text
//! F by randomly pivoted Cholesky  →  min Obj(A, P)  →  rows that A uses  →  the best components in their span, or A itself
//! ```
//!
//! A target is met by moving the penalty: from the largest useful one, known in closed form, down until the target is
//! passed, then by bisection between the last two.

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
/// Relative duality gap.
const GAP: f64 = 1e-6;
/// P-steps at most.
const ROUNDS: usize = 500;
/// Two penalties with a target between them are near enough when they differ by this share.
const TIGHT: f64 = 1e-3;
/// The search for a number of points begins at half of so many times the largest useful penalty.
const BEGIN: f64 = 1.6;
/// A support this many times as large or small as asked for is far from it.
const FAR: f64 = 1.5;
/// From one penalty to another that is less than so many times as large P hardly moves.
const CLOSE: f64 = 1.5;
/// From a penalty that just misses a target to the next.
const NUDGE: f64 = 0.95;
/// So many of them; then nothing is penalised.
const NUDGES: usize = 20;

const STOPPED: &str =
    "the search for a penalty stopped at its limit of work: fewer components or alternations make it shorter";

/// Starts of P: all are there at once.
const STARTS_AT_MOST: usize = 1000;
/// A fidelity above this leaves no room for a penalty.
const ALL: f64 = 1.0 - 1e-9;

pub(super) const RIDGE: Parameter = Parameter::optional(
    "ridge",
    Domain::Number(Range::From(0.0)),
    "1e-3 times the largest eigenvalue",
    "λ/2 times the squared norm in feature space is added",
);

pub(super) const PENALTY: Parameter = Parameter::optional(
    "penalty",
    Domain::Numbers,
    BY_TARGET,
    "what a coefficient costs; several as 0.1:0.2, one per component",
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
    Parameter::count("alternations", 0, ROUNDS, "P-steps at most; 0 keeps P at the leading eigenvectors")
        .as_sklearn("max_iter");

pub(super) const STARTS: Parameter = Parameter::count(
    "starts",
    1,
    1,
    "starts of P: the leading eigenvectors, and others turned at random; the lowest minimum is kept",
);

pub(super) const TOLERANCE: Parameter =
    Parameter::number("tolerance", Range::Above(0.0), GAP, "when to stop: a relative duality gap").as_sklearn("tol");

/// Which of the three it is.
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

/// The papers' own parameters.
#[derive(Clone, Debug, PartialEq)]
enum Penalty {
    /// One number, or one a component.
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
            refuse_both("fraction", share, penalty.is_some())?;
            penalty = Some(Penalty::Fraction(share));
        }
        if kind == Kind::ElasticNet
            && let Some(ratio) = fields.optional_number("l1_ratio")?
        {
            refuse_both("l1_ratio", ratio, penalty.is_some() || ridge.is_some())?;
            // Das: λ₁ = ρ, λ = (1 − ρ)/2 with the loss ‖K(α − β)‖², which is twice ours.
            (ridge, penalty) = (Some((1.0 - ratio) / 2.0), Some(Penalty::Given(vec![ratio])));
        }
        let sequential = kind == Kind::L1 && fields.boolean("sequential")?;
        let rounds = fields.count("alternations")?;
        // Rows of A leave P little choice: l21 has one start.
        let starts = if kind == Kind::L21 { 1 } else { fields.count("starts")? };
        if starts > STARTS_AT_MOST {
            return Err(Error::parameter("starts", starts, &format!("at most {STARTS_AT_MOST}")));
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

fn refuse_both(name: &'static str, value: f64, other: bool) -> Result<()> {
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
    /// What `job` makes of the penalties of a task.
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

    /// From the leading eigenpairs.
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
        let others = (1..self.starts).map(|turn| Ok(vectors.times(turned(q, task.seed, turn)?.as_ref())));
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

    /// What the user calls the penalty is twice ours for the elastic net: Das's objective is twice ours.
    fn unit(&self) -> f64 {
        if self.kind == Kind::ElasticNet { 0.5 } else { 1.0 }
    }
}

/// Penalties tried on one factor, each starting from what the others found.
struct PenaltyPath<'a> {
    method: &'a Regression,
    task: &'a Task<'a>,
    space: &'a dyn Space,
    /// The leading eigenvectors of T …
    start: Vectors,
    /// … the same turned among themselves, where P has several starts …
    others: Vec<Vectors>,
    /// … and the sum of their eigenvalues.
    captured: f64,
    ridge: f64,
    alternation: Alternation<'a>,
    /// Whether the search for a penalty ended because it had taken as much work as it may.
    stopped: bool,
}

/// A model on the way.
struct Candidate {
    /// Rows of the data, increasing …
    rows: Vec<usize>,
    /// … and the coefficients of the components that are not empty.
    a: Mat<f64>,
    penalties: Vec<f64>,
    report: Report,
}

/// One penalty of a [path](crate::Fit::path), and what it selects.
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
    /// As the method's parameter `penalty`.
    pub penalty: f64,
    /// The same as a share of the largest useful penalty.
    pub share: f64,
    /// Rows of the data in use, increasing.
    pub rows: Vec<usize>,
    /// Of the best components over these rows: the share of what exact kernel PCA captures.
    pub fidelity: f64,
    /// Objective, gap, rounds and whether it converged.
    pub report: Report,
}

/// So many shares, from 1 down to `least`, each the same fraction of the one before: the penalties of a
/// [path](crate::Fit::path).
pub fn shares(count: usize, least: f64) -> Vec<f64> {
    (0..count).map(|i| least.powf(i as f64 / count.saturating_sub(1).max(1) as f64)).collect()
}

/// The solutions at `shares` of the largest useful penalty, each from the one before.
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
    /// Of the best components over these rows.
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

    /// One penalty a group of columns.
    fn spread(&self, numbers: &[f64]) -> Result<Vec<f64>> {
        let groups = self.groups();
        match numbers.len() {
            1 => Ok(vec![numbers[0]; groups]),
            // Fewer components than asked for may have been found.
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

    /// Without a penalty A is any expansion of exact kernel PCA's directions.
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

    /// The largest support of at most `m` points that a penalty selects.
    fn with_support(&mut self, m: usize, most: f64) -> Result<Candidate> {
        if m >= self.space.rank() {
            return self.unpenalised();
        }
        let count = |path: &Self, state: &Minimum| Ok(path.alternation.used(&state.a).len() as f64);
        let done = |count: f64| count == m as f64;
        let far = |count: f64| count < m as f64 / FAR || count > m as f64 * FAR;
        // Supports may jump at the largest penalty: the first is just below it.
        let above = BEGIN * most;
        let mut found = self.search(above, m as f64 + 0.5, count, far, done)?;
        if found.sparse.as_ref().is_some_and(|(_, state)| !state.finished) {
            // Supports jump from few points to many: rough minima do not tell where.
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

    /// Where the support jumps over `m` from one local minimum to another, the denser one is followed to larger
    /// penalties until it has `m` points or fewer; nothing if it ends with no more than `least`.
    fn thinned(&mut self, dense: (f64, Minimum), least: usize, m: usize) -> Result<Option<(f64, Minimum)>> {
        let (mut penalty, mut state) = dense;
        // Steps grow while they change nothing; one that leaves too little is taken back, and then they shrink.
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

    /// The smallest support that holds the fidelity, on the factor first, then on the data.
    fn with_fidelity(&mut self, fidelity: f64, most: f64) -> Result<(Candidate, Expansion)> {
        if fidelity > ALL {
            return self.expanded(self.unpenalised()?);
        }
        let rank = self.space.rank();
        let measure = |path: &Self, state: &Minimum| {
            let share = path.share(state)?;
            // As many points as without a penalty, and still too little: smaller penalties select no fewer.
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
            // The factor is a little kinder than the data.
            let penalty = NUDGE * penalty;
            let state = self.alternation.solve(&self.start, &vec![penalty; self.groups()], Some(&state))?;
            found = Some((penalty, state));
        }
        self.expanded(self.unpenalised()?)
    }

    /// Fidelity as the factor sees it.
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

    /// The penalties next to the one where `measure` reaches `wanted`, the same for all groups of columns. Where it is
    /// `far` from that, rough minima will do.
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

    /// The method with the parameters that made this model.
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

/// The lowest of the rough minima from a start and from the others. Which local minimum an alternation ends in may hang
/// on the last bit of its start; which of several is lowest does so less.
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

/// A random orthonormal matrix.
fn turned(q: usize, seed: u64, turn: usize) -> Result<Mat<f64>> {
    let mut random = Random::at(seed, Stream::Starts, (turn as u64) << 32);
    let normal = Mat::from_fn(q, q, |_, _| random.normal());
    Ok(dense::product(normal.as_ref(), dense::frame(normal.as_ref(), 0.0)?.as_ref()))
}
