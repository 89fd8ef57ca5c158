//! Kernel component analysis with an ε-insensitive robust loss (Alzate & Suykens 2008).
//!
//! ```text
//! max Σ_j L(e_jk),   e_jk = ⟨v_k, φ̃(x_j)⟩,  ‖v_k‖ = 1, orthogonal to those before        L(e) = e²/2: kernel PCA
//!
//! L'(e) = 0  where |e| ≤ ε s_k,     sign(e)(|e| − ε s_k) beyond,     no more than c s_k        s_k² = λ_k / n
//! v_k = Σ_j α_j φ̃(x_j),  α_j ∝ L'(e_j): rows within ε have no influence
//! ```
//!
//! L is convex, so that v ← Σ_j L'(e_j) φ̃(x_j), scaled to length 1, never decreases the sum. ε (`epsilon`) is in
//! standard deviations of each component and is found for the target, while the paper reads it off a plot; c (`clip`)
//! is the Huber part, which limits the influence of a row. The v_k are replaced by the best components in the span of
//! the rows with influence, because their own expansion is over centred features, and so over all rows.
//!
//! Strength: with a small `clip`, single outliers do not rotate the components. Weakness: the selected rows are those
//! far out along a component, many of them similar, so that many more are needed than by `greedy`.

use faer::{Mat, MatRef};

use super::parameters::{BY_TARGET, RANK};
use super::shared::Scattered;
use super::{Capabilities, Entry, Method, Size, Solution, Support, Target, Task, usual_rank};
use crate::dense;
use crate::eigen::Pairs;
use crate::error::{Error, Result};
use crate::factor::sums;
use crate::parameter::{Domain, Parameter, Range};
use crate::report::Report;
use crate::spec::Spec;
use crate::spectrum::Expansion;
use crate::watch::check;

/// Maximum number of iterations per component.
const ROUNDS: usize = 200;
/// Change of a component at which its iterations end.
const TOLERANCE: f64 = 1e-7;
/// Relative width of the bracket of ε at which a search ends.
const TIGHT: f64 = 1e-3;
/// The first ε tried by a search.
const FIRST: f64 = 0.25;
/// Maximum number of values tried by a search.
const TRIALS: usize = 40;
/// Factor from an ε that just misses a fidelity over all rows to the next one.
const NUDGE: f64 = 0.95;
/// Maximum number of such steps.
const NUDGES: usize = 20;

pub(super) const ENTRY: Entry = Entry {
    name: "robust",
    summary: "rows far out along components that are robust to outliers",
    source: "Alzate & Suykens 2008",
    parameters: &[EPSILON, CLIP, RANK],
    capabilities: Capabilities::NONE,
    build: |fields| {
        let (epsilon, clip) = (fields.optional_number("epsilon")?, fields.number("clip")?);
        Ok(Box::new(Robust { epsilon, clip, rank: fields.optional_count("rank")? }))
    },
};

const EPSILON: Parameter = Parameter::optional(
    "epsilon",
    Domain::Number(Range::From(0.0)),
    BY_TARGET,
    "rows closer to zero along a component than this many standard deviations have no influence on it",
)
.fixing_size();

const CLIP: Parameter =
    Parameter::number("clip", Range::Above(0.0), 1.0, "limit of a row's influence, in standard deviations");

#[derive(Debug)]
struct Robust {
    epsilon: Option<f64>,
    clip: f64,
    rank: Option<usize>,
}

impl Method for Robust {
    fn fit(&self, task: &Task) -> Result<Solution> {
        if self.epsilon.is_some() {
            task.refuse_target("epsilon")?;
        }
        let n = task.n();
        let scattered = task.scattered(usual_rank(self.rank, n, task.target))?;
        let pairs = task.leading(&scattered.factor, &scattered.t)?;
        let problem = Problem { method: self, task, scattered: &scattered, pairs: &pairs };
        let (state, expansion) = match (self.epsilon, task.aim()) {
            (Some(epsilon), _) => problem.expanded(problem.at(epsilon, &pairs.vectors)?)?,
            (None, Target::Support(m)) => problem.with_support(m)?,
            (None, Target::Fidelity(fidelity)) => problem.with_fidelity(fidelity)?,
        };
        let report = Report {
            objective: Some(state.objective / n as f64),
            rounds: state.rounds,
            converged: state.converged,
            ..Report::default()
        };
        let method = Spec::new("robust").with("epsilon", state.epsilon).with("clip", self.clip);
        let solution =
            Solution::new(method.with("rank", scattered.factor.rank()), Support::Rows(state.rows), expansion, report);
        Ok(Solution { fewer: "no epsilon keeps as many", ..solution })
    }

    fn memory(&self, size: &Size) -> usize {
        let rank = usual_rank(self.rank, size.n, size.support.map(Target::Support)).min(size.dimension);
        size.beside_factor(size.n * (rank + 4) + sums(size.n) * rank * rank)
    }
}

struct Problem<'a> {
    method: &'a Robust,
    task: &'a Task<'a>,
    scattered: &'a Scattered,
    pairs: &'a Pairs,
}

/// Components for one value of ε.
#[derive(Clone)]
struct State {
    epsilon: f64,
    /// The components, one column each; zero if no direction is left.
    vectors: Mat<f64>,
    /// Rows with influence on a component, increasing.
    rows: Vec<usize>,
    objective: f64,
    rounds: usize,
    converged: bool,
}

impl Problem<'_> {
    /// Computes the components for a value of ε, one after the other, starting from those for another value.
    fn at(&self, epsilon: f64, start: &Mat<f64>) -> Result<State> {
        let (n, q) = (self.task.n(), self.pairs.values.len());
        let mut influences = vec![false; n];
        let vectors = Mat::zeros(self.scattered.factor.rank(), 0);
        let mut state = State { epsilon, vectors, rows: Vec::new(), objective: 0.0, rounds: 0, converged: true };
        for k in 0..q {
            check(self.task.watch, "components", k as f64 / q as f64)?;
            let scale = (self.pairs.values[k] / n as f64).sqrt();
            let pull = |e: f64| ((e.abs() - epsilon * scale).clamp(0.0, self.method.clip * scale)).copysign(e);
            let mut v = start.subcols(k, 1).to_owned();
            if !unit(&mut v, &state.vectors) {
                v.fill(0.0);
            }
            let (along, rounds, settled) = self.settle(&mut v, &state.vectors, &pull)?;
            state.rounds = state.rounds.max(rounds);
            state.converged &= settled;
            for (e, influences) in along.iter().zip(&mut influences) {
                *influences |= pull(*e) != 0.0;
                state.objective += self.loss(e.abs() - epsilon * scale, self.method.clip * scale);
            }
            state.vectors = dense::beside(state.vectors.as_ref(), v.as_ref());
        }
        state.rows = (0..n).filter(|&i| influences[i]).collect();
        Ok(state)
    }

    /// Iterates v to a fixed point; without influential rows it stays. Returns the coordinates of the rows along it,
    /// the number of iterations, and whether it converged.
    fn settle(
        &self,
        v: &mut Mat<f64>,
        before: &Mat<f64>,
        pull: &dyn Fn(f64) -> f64,
    ) -> Result<(Vec<f64>, usize, bool)> {
        let mut along = self.along(v.as_ref());
        for round in 0..ROUNDS {
            check(self.task.watch, "components", round as f64 / ROUNDS as f64)?;
            let mut next = self.combined(along.iter().map(|e| pull(*e)).collect());
            if !unit(&mut next, before) {
                return Ok((along, round, true));
            }
            let moved = (&next - &*v).norm_l2();
            *v = next;
            along = self.along(v.as_ref());
            if moved <= TOLERANCE {
                return Ok((along, round + 1, true));
            }
        }
        Ok((along, ROUNDS, false))
    }

    /// The loss beyond ε: 0 below 0, `e²/2` up to c, linear beyond.
    fn loss(&self, e: f64, c: f64) -> f64 {
        let near = e.clamp(0.0, c);
        0.5 * near * near + c * (e - c).max(0.0)
    }

    /// `⟨v, φ̃(x_j)⟩` of every row.
    fn along(&self, v: MatRef<f64>) -> Vec<f64> {
        let mean: f64 = self.scattered.mean.iter().zip(v.col(0).iter()).map(|(m, v)| m * v).sum();
        self.scattered.factor.product(v).col_as_slice(0).iter().map(|e| e - mean).collect()
    }

    /// `Σ_j a_j φ̃(x_j)`
    fn combined(&self, a: Vec<f64>) -> Mat<f64> {
        let total: f64 = a.iter().sum();
        let mut v = self.scattered.factor.transposed_product(&Mat::from_fn(a.len(), 1, |j, _| a[j]));
        v.col_as_slice_mut(0).iter_mut().zip(&self.scattered.mean).for_each(|(v, mean)| *v -= total * mean);
        v
    }

    /// Returns the ε above which no row influences any component of kernel PCA.
    fn largest_epsilon(&self) -> f64 {
        let n = self.task.n() as f64;
        let each = |k: usize| {
            let along = self.along(self.pairs.vectors.as_ref().subcols(k, 1));
            along.iter().fold(0.0_f64, |most, e| most.max(e.abs())) / (self.pairs.values[k] / n).sqrt()
        };
        (0..self.pairs.values.len()).map(each).fold(0.0, f64::max)
    }

    fn expanded(&self, state: State) -> Result<(State, Expansion)> {
        if state.rows.is_empty() {
            let why = format!("no row has influence: epsilon has to be below {:.6}", self.largest_epsilon());
            return Err(Error::NoVariance { why });
        }
        let expansion = self.task.expansion(&state.rows, None)?;
        Ok((state, expansion))
    }

    /// Returns the solution with all rows.
    fn all(&self) -> Result<(State, Expansion)> {
        let rows: Vec<usize> = (0..self.task.n()).collect();
        let state = State { rows, ..self.at(0.0, &self.pairs.vectors)? };
        self.expanded(state)
    }

    /// Returns the states on both sides of a target: for the smallest ε at which `sparse` holds, and for the largest at
    /// which it does not. Each starts from the components of the next smaller ε: as rows drop out, a component turns
    /// towards the remaining ones, and from the components of kernel PCA it would jump from many rows to none.
    fn search(
        &self,
        sparse: impl Fn(&State) -> Result<bool>,
        done: impl Fn(&State) -> bool,
    ) -> Result<[Option<State>; 2]> {
        let mut dense = self.at(0.0, &self.pairs.vectors)?;
        let mut found: Option<State> = None;
        let mut wide = f64::INFINITY;
        for _ in 0..TRIALS {
            let epsilon =
                if wide.is_finite() { 0.5 * (dense.epsilon + wide) } else { (2.0 * dense.epsilon).max(FIRST) };
            let state = self.at(epsilon, &dense.vectors)?;
            if sparse(&state)? {
                wide = epsilon;
                let last = done(&state);
                if !state.rows.is_empty() || found.is_none() {
                    found = Some(state);
                }
                if last {
                    break;
                }
            } else {
                dense = state;
            }
            if wide / dense.epsilon < 1.0 + TIGHT {
                break;
            }
        }
        Ok([found.filter(|state| !state.rows.is_empty()), Some(dense)])
    }

    /// Finds the smallest ε at which at most `m` rows have influence.
    fn with_support(&self, m: usize) -> Result<(State, Expansion)> {
        if m >= self.task.n() {
            return self.all();
        }
        let [sparse, _] = self.search(|state| Ok(state.rows.len() <= m), |state| state.rows.len() == m)?;
        match sparse {
            Some(state) => self.expanded(state),
            None => Err(Error::parameter("support", m, "more points: every epsilon keeps more than that, or none")),
        }
    }

    /// Finds the largest ε that reaches the fidelity, on the factor first, then on the data.
    fn with_fidelity(&self, fidelity: f64) -> Result<(State, Expansion)> {
        let all: f64 = self.pairs.values.iter().sum();
        let Scattered { factor, t, .. } = self.scattered;
        let short = |state: &State| {
            let captured = || factor.captured(t, &state.rows, None, self.pairs.values.len());
            Ok(state.rows.is_empty() || captured()? < fidelity * all)
        };
        let [_, mut dense] = self.search(short, |_| false)?;
        for _ in 0..NUDGES {
            let Some(state) = dense.filter(|state| state.epsilon > 0.0) else { break };
            let (state, expansion) = self.expanded(state)?;
            if self.task.fidelity(&state.rows, &expansion)? >= fidelity {
                return Ok((state, expansion));
            }
            dense = Some(self.at(NUDGE * state.epsilon, &state.vectors)?);
        }
        self.all()
    }
}

/// Makes v orthogonal to the columns of `before` and of length 1; returns false if nothing is left.
fn unit(v: &mut Mat<f64>, before: &Mat<f64>) -> bool {
    let whole = v.norm_l2();
    for _ in 0..2 {
        let along = dense::product(before.transpose(), v.as_ref());
        dense::subtract_product(v.as_mut(), before.as_ref(), along.as_ref());
    }
    let left = v.norm_l2();
    if left <= 1e-10 * whole || left == 0.0 {
        return false;
    }
    v.col_as_slice_mut(0).iter_mut().for_each(|v| *v /= left);
    true
}
