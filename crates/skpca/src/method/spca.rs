//! Sparse loadings (Zou, Hastie & Tibshirani 2006): linear components of few columns each.
//!
//! ```text
//! min over B, P   (1/n) Σ_j ‖x_j − P Bᵀ x_j‖² + λ‖B‖² + Σ_k λ₁ₖ‖b_k‖₁,   PᵀP = I        ridge = λ, penalty = λ₁
//!
//! B-step: ½ bᵀ(S + λ)b − bᵀS p_k + ½ λ₁ₖ‖b‖₁, an elastic net for each component     P-step: P = polar(S B)
//! ```
//!
//! Only the covariance S, d × d, is needed, which takes one pass over the rows. Each loading `b / ‖b‖` is a synthetic
//! point of the model with a coefficient of 1, so that features are `(x − x̄)ᵀb`. Components of sparse PCA are neither
//! orthogonal nor uncorrelated. Captured variance is that of their span, and the report lists the *adjusted* variances
//! of the paper, each without the variance explained by earlier components.
//!
//! Strength: interpretable components that capture within a few per cent as much as PCA with a fraction of the columns.
//! Weaknesses: a penalty shared by all components empties the last ones first, so that it is better to set the numbers
//! of non-zero loadings (`nonzero`); and the alternation ends in a local minimum near PCA.
//!
//! `polish` replaces the loadings by those on the same columns whose span captures most. This gives up the certificate,
//! and components are more correlated: adjusted variances fall.
//!
//! `sequential` finds one component after the other, P orthogonal to those before it (Sjöstrand, Clemmensen, Larsen &
//! Ersbøll 2018).

mod polish;

use faer::{Mat, MatRef};
use rayon::prelude::*;
use serde_json::Value;

use super::homotopy::{Gram, Homotopy, Sparsity};
use super::parameters::{BY_TARGET, SEQUENTIAL};
use super::polar::polar;
use super::regression::ALTERNATIONS;
use super::search;
use super::space::Vectors;
use super::{Capabilities, Entry, Method, NO_VARIANCE, Size, Solution, Support, Target, Task};
use crate::dense;
use crate::eigen::{Accuracy, Pairs, top};
use crate::error::{Error, Result};
use crate::factor::sums;
use crate::lasso;
use crate::parameter::{Domain, Parameter, Range};
use crate::points::Points;
use crate::report::Report;
use crate::skeleton::Skeleton;
use crate::spec::{Fields, Spec};
use crate::table_moments::TableMoments;
use crate::watch::{Watch, check};

/// Default ridge, as a share of the largest eigenvalue.
const RIDGE_SHARE: f64 = 1e-2;
/// Relative width of the bracket of penalties at which a search ends.
const TIGHT: f64 = 1e-3;
/// Fidelity above which no penalty is tried.
const FULL: f64 = 1.0 - 1e-9;
/// The search for a number of columns starts at half this multiple of the largest useful penalty.
const BEGIN: f64 = 1.6;

pub(super) const ENTRY: Entry = Entry {
    name: "spca",
    summary: "linear components of few columns each (--kernel linear); a support of m means m columns in all",
    source: "Zou, Hastie & Tibshirani 2006",
    parameters: &[NONZERO, PENALTY, RIDGE, SEQUENTIAL, POLISH, ALTERNATIONS, TOLERANCE],
    capabilities: Capabilities { synthetic_points: true, linear: true, ..Capabilities::NONE },
    build: |fields| Ok(Box::new(Spca::new(fields)?)),
};

const NONZERO: Parameter = Parameter::optional(
    "nonzero",
    Domain::Counts,
    BY_TARGET,
    "non-zero loadings of each component; several as 7:4:4, one per component",
)
.fixing_size();

const PENALTY: Parameter = Parameter::optional(
    "penalty",
    Domain::Numbers,
    BY_TARGET,
    "weight of the l1 penalty, in units of the covariance; several as 0.1:0.2, one per component",
)
.fixing_size();

const RIDGE: Parameter = Parameter::optional(
    "ridge",
    Domain::Number(Range::From(0.0)),
    "1e-2 times the largest eigenvalue",
    "λ: the objective includes λ times the squared length of the loadings",
);

const POLISH: Parameter = Parameter::boolean(
    "polish",
    false,
    "true: the loadings on the selected columns whose span captures most; false: those of the elastic nets",
);

const TOLERANCE: Parameter =
    Parameter::number("tolerance", Range::Above(0.0), 1e-6, "relative change of the components of P at which to stop")
        .as_sklearn("tol");

/// The sparsity, if the user gives it.
#[derive(Clone, Debug, PartialEq)]
enum Sizes {
    Counts(Vec<f64>),
    Penalties(Vec<f64>),
}

/// Sparse loadings of a covariance matrix.
#[derive(Debug)]
pub(crate) struct Spca {
    sizes: Option<Sizes>,
    ridge: Option<f64>,
    sequential: bool,
    polish: bool,
    rounds: usize,
    tolerance: f64,
}

/// A covariance matrix and the requested components.
pub(crate) struct Question<'a> {
    pub covariance: &'a Mat<f64>,
    /// Trace of the uncentred second moment of the rows, to which rounding errors are relative.
    pub trace: f64,
    pub q: usize,
    pub aim: Target,
    pub seed: u64,
    pub watch: &'a dyn Watch,
}

/// The solution.
pub(crate) struct Found {
    /// Loadings of unit length, d × q.
    pub loadings: Mat<f64>,
    /// λ₁ of each component.
    pub penalties: Vec<f64>,
    /// λ
    pub ridge: f64,
    /// Variance captured by the span of the loadings.
    pub captured: f64,
    /// Variance captured by PCA with the requested number of components.
    pub exact: f64,
    pub report: Report,
}

impl Spca {
    fn new(fields: &mut Fields) -> Result<Spca> {
        let counts = fields.optional_numbers("nonzero")?.map(Sizes::Counts);
        let penalties = fields.optional_numbers("penalty")?;
        if let (Some(_), Some(penalties)) = (&counts, &penalties) {
            let expected = "no penalty where nonzero says how many loadings there are";
            return Err(Error::parameter("penalty", format!("{penalties:?}"), expected));
        }
        Ok(Spca {
            sizes: counts.or(penalties.map(Sizes::Penalties)),
            ridge: fields.optional_number("ridge")?,
            sequential: fields.boolean("sequential")?,
            polish: fields.boolean("polish")?,
            rounds: fields.count("alternations")?,
            tolerance: fields.number("tolerance")?,
        })
    }

    /// Creates the method that a spec describes.
    pub(crate) fn of(spec: &Spec) -> Result<Spca> {
        Spca::new(&mut Fields::new(spec, ENTRY.parameters))
    }

    /// Rejects a target if the method's own parameters set the sparsity.
    pub(crate) fn refuse_target(&self, target: Option<Target>) -> Result<()> {
        match (&self.sizes, target) {
            (Some(_), Some(target)) => Err(target.refused("nonzero or penalty")),
            _ => Ok(()),
        }
    }

    /// Computes sparse loadings of a covariance matrix.
    pub(crate) fn loadings(&self, question: &Question) -> Result<Found> {
        let Question { covariance: s, trace, q, seed, watch, .. } = *question;
        let pairs = top(s, q, Accuracy { trace, ..Accuracy::default() }, seed, watch)?;
        if pairs.values.is_empty() {
            return Err(Error::NoVariance { why: NO_VARIANCE.into() });
        }
        let ridge = self.ridge.unwrap_or(RIDGE_SHARE * pairs.values[0]);
        let start = Vectors::plain(pairs.vectors.clone());
        let problem = Problem { method: self, gram: Gram { s, ridge }, start, seed, watch };
        let state = match (&self.sizes, question.aim) {
            (Some(sizes), _) => Some(problem.at(sizes)?),
            (None, Target::Support(m)) => problem.with_columns(m)?,
            (None, Target::Fidelity(fidelity)) => problem.with_fidelity(fidelity, &pairs)?,
        };
        problem.found(state, &pairs)
    }
}

impl Method for Spca {
    fn fit(&self, task: &Task) -> Result<Solution> {
        self.refuse_target(task.target)?;
        let moments = TableMoments::new(task.kernel, task.rows, task.center, task.watch)?;
        let (n, d) = (task.n() as f64, task.d());
        let covariance = Mat::from_fn(d, d, |i, j| moments.scatter[(i, j)] / n);
        let found = self.loadings(&Question {
            covariance: &covariance,
            trace: moments.trace / n,
            q: task.q,
            aim: task.aim(),
            seed: task.seed,
            watch: task.watch,
        })?;
        task.note(Some(task.captured(&[n * found.exact])?));
        let q = found.loadings.ncols();
        let values: Vec<f64> = (0..q).flat_map(|k| found.loadings.col_as_slice(k).iter().copied()).collect();
        let support = Points::new(d, values)?;
        let span = Skeleton::new(task.kernel, &support, task.watch)?.linear_span(&moments);
        let products = || dense::product(found.loadings.transpose(), found.loadings.as_ref());
        let expansion = span.given(Mat::identity(q, q).as_ref(), products)?;
        let method = self.spec(&found);
        let solution = Solution::new(method, Support::Points(support), expansion, found.report);
        Ok(Solution { fewer: "spca keeps one point per component, over at most this many columns", ..solution })
    }

    fn memory(&self, size: &Size) -> usize {
        8 * (sums(size.n) + 4) * size.d * size.d
    }

    fn holds_rows(&self, _: &Size) -> bool {
        false
    }
}

impl Spca {
    /// Returns the method with the parameters of these loadings.
    fn spec(&self, found: &Found) -> Spec {
        let list = |numbers: &[f64]| match numbers {
            [one, others @ ..] if others.iter().all(|v| v == one) => Value::from(*one),
            several => Value::from(several.to_vec()),
        };
        let spec = Spec::new("spca")
            .with("ridge", found.ridge)
            .with("sequential", self.sequential)
            .with("polish", self.polish)
            .with("alternations", self.rounds)
            .with("tolerance", self.tolerance);
        match &self.sizes {
            Some(Sizes::Counts(counts)) => spec.with("nonzero", list(counts)),
            _ => spec.with("penalty", list(&found.penalties)),
        }
    }
}

/// The optimisation problem for one matrix.
struct Problem<'a> {
    method: &'a Spca,
    gram: Gram<'a>,
    /// The leading eigenvectors.
    start: Vectors,
    seed: u64,
    watch: &'a dyn Watch,
}

/// The result of an alternation.
struct State {
    p: Vectors,
    paths: Vec<Homotopy>,
    rounds: usize,
    converged: bool,
}

impl State {
    /// Returns the number of columns in use.
    fn columns(&self) -> usize {
        let used = self.paths.iter().flat_map(|path| path.active.iter().zip(&path.values));
        let mut used: Vec<usize> = used.filter(|(_, b)| **b != 0.0).map(|(j, _)| *j).collect();
        used.sort_unstable();
        used.dedup();
        used.len()
    }

    /// B
    fn coefficients(&self, d: usize) -> Mat<f64> {
        let mut b = Mat::zeros(d, self.paths.len());
        for (k, path) in self.paths.iter().enumerate() {
            path.active.iter().zip(&path.values).for_each(|(&j, value)| b[(j, k)] = *value);
        }
        b
    }
}

impl Problem<'_> {
    fn d(&self) -> usize {
        self.gram.s.nrows()
    }

    fn q(&self) -> usize {
        self.start.count()
    }

    /// Solves with given numbers of loadings or penalties: one for all components, or one for each.
    fn at(&self, sizes: &Sizes) -> Result<State> {
        let (name, list) = match sizes {
            Sizes::Counts(list) => ("nonzero", list),
            Sizes::Penalties(list) => ("penalty", list),
        };
        if list.len() != 1 && list.len() < self.q() {
            let expected = format!("one number or {}", self.q());
            return Err(Error::parameter(name, format!("{} numbers", list.len()), &expected));
        }
        if let (Sizes::Counts(_), Some(most)) = (sizes, list.iter().find(|count| **count > self.d() as f64)) {
            return Err(Error::parameter(name, most, &format!("at most the {} columns there are", self.d())));
        }
        let each = |k: usize| match sizes {
            Sizes::Counts(list) => Sparsity::Count(list[k % list.len()] as usize),
            Sizes::Penalties(list) => Sparsity::Penalty(0.5 * list[k % list.len()]),
        };
        self.solve(&(0..self.q()).map(each).collect::<Vec<_>>())
    }

    /// Solves with one penalty for all components.
    fn with_penalty(&self, penalty: f64) -> Result<State> {
        self.solve(&vec![Sparsity::Penalty(0.5 * penalty); self.q()])
    }

    /// Finds the penalty that keeps the most columns, at most `m`; `None` if all may stay.
    fn with_columns(&self, m: usize) -> Result<Option<State>> {
        if m >= self.d() {
            return Ok(None);
        }
        let solve = |penalty: f64, _: Option<&State>| {
            let state = self.with_penalty(penalty)?;
            let columns = state.columns() as f64;
            Ok(Some((state, columns)))
        };
        let above = BEGIN * self.largest_penalty();
        let found = search::search(above, m as f64 + 0.5, TIGHT, solve, |columns| columns == m as f64)?;
        match found.sparse.filter(|(_, state)| state.columns() > 0) {
            Some((_, state)) => Ok(Some(state)),
            None => Err(Error::parameter("support", m, "more columns: every penalty leaves more than that, or none")),
        }
    }

    /// Finds the largest penalty whose loadings reach the fidelity; `None` if no penalty does.
    fn with_fidelity(&self, fidelity: f64, pairs: &Pairs) -> Result<Option<State>> {
        if fidelity > FULL {
            return Ok(None);
        }
        let all: f64 = pairs.values.iter().sum();
        let solve = |penalty: f64, _: Option<&State>| {
            let state = self.with_penalty(penalty)?;
            let share = captured(self.gram.s, &state.coefficients(self.d()))? / all;
            Ok(Some((state, share)))
        };
        let wanted = fidelity * (1.0 + 1e-12);
        let found = search::search(self.largest_penalty(), wanted, TIGHT, solve, |_| false)?;
        Ok(found.dense.map(|(_, state)| state))
    }

    /// Returns the λ₁ above which nothing is selected at the leading eigenvectors.
    fn largest_penalty(&self) -> f64 {
        2.0 * self.correlations(&self.start).norm_max()
    }

    /// `S P`
    fn correlations(&self, p: &Vectors) -> Mat<f64> {
        dense::product(self.gram.s.as_ref(), p.pair().0)
    }

    fn solve(&self, sizes: &[Sparsity]) -> Result<State> {
        let none = self.start.columns(0..0);
        if !self.method.sequential {
            return self.alternate(&self.start, &none, sizes);
        }
        let mut all = State { p: none, paths: Vec::new(), rounds: 0, converged: true };
        for (k, size) in sizes.iter().enumerate() {
            let column = self.start.columns(k..k + 1);
            let own = polar(&column, &column, &all.p, &|i| self.axis(i))?.0;
            let one = self.alternate(&own, &all.p, std::slice::from_ref(size))?;
            all.p = all.p.beside(&one.p);
            all.paths.extend(one.paths);
            all.rounds = all.rounds.max(one.rounds);
            all.converged &= one.converged;
        }
        Ok(all)
    }

    /// Returns the i-th unit vector, or `None` if there is none.
    fn axis(&self, i: usize) -> Option<Vectors> {
        let d = self.d();
        (i < d).then(|| Vectors::plain(Mat::from_fn(d, 1, |j, _| if i == j { 1.0 } else { 0.0 })))
    }

    /// Alternates B-steps and P-steps, ending with a B-step. With given numbers of loadings, penalties change from
    /// round to round, possibly without end; therefore they are fixed after half of the rounds.
    fn alternate(&self, start: &Vectors, before: &Vectors, sizes: &[Sparsity]) -> Result<State> {
        let rounds = self.method.rounds;
        let (mut p, mut paths) = (start.clone(), vec![Homotopy::default(); sizes.len()]);
        let (mut taken, mut converged) = (0, rounds == 0);
        loop {
            check(self.watch, "alternation", taken as f64 / (rounds + 1) as f64)?;
            let c = self.correlations(&p);
            let last = converged || taken == rounds;
            paths.par_iter_mut().zip(sizes).enumerate().for_each(|(k, (path, size))| {
                let settled = 2 * taken > rounds && !last;
                let size = if settled { Sparsity::Penalty(path.penalty) } else { *size };
                path.solve(self.gram, c.col_as_slice(k), size);
            });
            let state = State { p, paths, rounds: taken, converged };
            if last {
                return Ok(state);
            }
            taken += 1;
            let image = dense::product(self.gram.s.as_ref(), state.coefficients(self.d()).as_ref());
            (p, paths) = (state.p, state.paths);
            let next = polar(&Vectors::plain(image), &p, before, &|i| self.axis(i))?.0;
            let moved = next.plus(-1.0, &p);
            let farthest = (0..p.count()).map(|k| moved.columns(k..k + 1).norm()).fold(0.0, f64::max);
            converged = farthest <= self.method.tolerance;
            p = next;
        }
    }

    /// Returns unit loadings with their certificate, or those of PCA if there is no state.
    fn found(&self, state: Option<State>, pairs: &Pairs) -> Result<Found> {
        let (s, ridge) = (self.gram.s, self.gram.ridge);
        let exact = pairs.values.iter().sum();
        let Some(state) = state else {
            let report = Report { gap: Some(0.0), converged: true, ..Report::default() };
            let (loadings, penalties) = (pairs.vectors.clone(), vec![0.0]);
            return Ok(Found { loadings, penalties, ridge, captured: exact, exact, report });
        };
        let b = state.coefficients(self.d());
        let alive: Vec<usize> = (0..b.ncols()).filter(|&k| b.col(k).norm_max() > 0.0).collect();
        if alive.is_empty() {
            let most = self.largest_penalty();
            return Err(Error::NoVariance {
                why: format!("every loading is zero: the penalty has to be below {most:e}"),
            });
        }
        let norms: Vec<f64> = alive.iter().map(|&k| b.col(k).norm_l2()).collect();
        let mut loadings = upright(Mat::from_fn(b.nrows(), alive.len(), |i, k| b[(i, alive[k])] / norms[k]));
        let (objective, gap) = self.certificate(&state, &b);
        let mut report = Report {
            objective: Some(objective),
            gap: Some(gap),
            rounds: state.rounds,
            converged: state.converged,
            ..Report::default()
        };
        if alive.len() < b.ncols() {
            let (empty, all) = (b.ncols() - alive.len(), b.ncols());
            report.notes.push(format!("{empty} of {all} components are empty at this penalty"));
        }
        let mut held = captured(s, &loadings)?;
        if self.method.polish {
            let (polished, sweeps) = polish::polished(s, loadings, self.seed, self.watch)?;
            loadings = upright(polished);
            let before = std::mem::replace(&mut held, captured(s, &loadings)?);
            let share = |v: f64| 100.0 * v / dense::trace(s);
            report.notes.push(format!(
                "polished from {:.2}% captured to {:.2}% in {sweeps} sweeps",
                share(before),
                share(held)
            ));
            (report.objective, report.gap) = (Some(held), None);
        }
        let shares: Vec<String> =
            adjusted(s, loadings.as_ref()).iter().map(|v| format!("{:.2}%", 100.0 * v / dense::trace(s))).collect();
        let counts: Vec<String> = alive.iter().map(|&k| nonzero(b.as_ref(), k).to_string()).collect();
        report.notes.push(format!("non-zero loadings {}; adjusted variances {}", counts.join(", "), shares.join(" ")));
        let penalties = state.paths.iter().map(|path| 2.0 * path.penalty).collect();
        Ok(Found { captured: held, loadings, penalties, ridge, exact, report })
    }

    /// Computes the objective and the relative duality gap of the B-step from the coefficients themselves.
    fn certificate(&self, state: &State, b: &Mat<f64>) -> (f64, f64) {
        let Gram { s, ridge } = self.gram;
        let (p, c) = (state.p.pair().0, self.correlations(&state.p));
        let image = dense::product(s.as_ref(), b.as_ref());
        let (mut primal, mut dual, mut unexplained) = (0.0, 0.0, dense::trace(s));
        for (k, path) in state.paths.iter().enumerate() {
            let inner = |x: MatRef<f64>, y: MatRef<f64>| x.col(k).transpose() * y.col(k);
            let (whole, along) = (inner(p, c.as_ref()), inner(b.as_ref(), c.as_ref()));
            let held = inner(b.as_ref(), image.as_ref()) + ridge * inner(b.as_ref(), b.as_ref());
            let cost = path.penalty * b.col(k).norm_l1();
            let gradient = |i: usize| (c[(i, k)] - image[(i, k)] - ridge * b[(i, k)]).abs();
            let largest = (0..b.nrows()).map(gradient).fold(0.0, f64::max);
            let ratio = if path.penalty > 0.0 { largest / path.penalty } else { 1.0 };
            let bounds = lasso::bounds(whole - 2.0 * along + held, whole - along, cost, ratio);
            (primal, dual) = (primal + bounds.0, dual + bounds.1);
            unexplained += held - 2.0 * along + 2.0 * cost;
        }
        (unexplained, lasso::gap(primal, dual))
    }
}

/// Flips signs so that the largest loading of each component is positive.
fn upright(loadings: Mat<f64>) -> Mat<f64> {
    let signs: Vec<f64> = (0..loadings.ncols()).map(|k| largest(loadings.col_as_slice(k)).signum()).collect();
    Mat::from_fn(loadings.nrows(), loadings.ncols(), |i, k| loadings[(i, k)] * signs[k])
}

/// Returns the value of largest magnitude, the first of ties.
fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, |most: f64, v| if v.abs() > most.abs() { v } else { most })
}

fn nonzero(b: MatRef<f64>, k: usize) -> usize {
    b.col(k).iter().filter(|v| **v != 0.0).count()
}

/// Computes `tr Qᵀ S Q`, Q an orthonormal basis of the loadings that are not zero.
fn captured(s: &Mat<f64>, loadings: &Mat<f64>) -> Result<f64> {
    let alive: Vec<usize> = (0..loadings.ncols()).filter(|&k| loadings.col(k).norm_max() > 0.0).collect();
    if alive.is_empty() {
        return Ok(0.0);
    }
    let norms: Vec<f64> = alive.iter().map(|&k| loadings.col(k).norm_l2()).collect();
    let unit = Mat::from_fn(loadings.nrows(), alive.len(), |i, k| loadings[(i, alive[k])] / norms[k]);
    let basis = dense::product(unit.as_ref(), dense::frame(unit.as_ref(), 1e-10)?.as_ref());
    let image = dense::product(s.as_ref(), basis.as_ref());
    Ok((0..basis.ncols()).map(|k| basis.col(k).transpose() * image.col(k)).sum())
}

/// Computes the adjusted variances of Zou et al.: the part of each component that is uncorrelated with the previous
/// ones, which is the squared diagonal of R in `X V = Q R`.
pub(crate) fn adjusted(s: &Mat<f64>, loadings: MatRef<f64>) -> Vec<f64> {
    let image = dense::product(s.as_ref(), loadings);
    let mut left = dense::product(loadings.transpose(), image.as_ref());
    let q = left.nrows();
    let mut variances = Vec::with_capacity(q);
    for k in 0..q {
        let variance = left[(k, k)].max(0.0);
        variances.push(variance);
        if variance > 0.0 {
            let column: Vec<f64> = (0..q).map(|i| left[(i, k)]).collect();
            (0..q).for_each(|j| (0..q).for_each(|i| left[(i, j)] -= column[i] * column[j] / variance));
        }
    }
    variances
}
