//! From a table to a model: scale, build the kernel, let the method choose, assemble, score the training rows.

use std::cell::OnceCell;
use std::sync::Arc;

use crate::columns::{Columns, Scaling};
use crate::conformal::Learner;
use crate::dense;
use crate::error::{Error, Result};
use crate::factor::{diagonal, gram};
use crate::gram::{Precision, Symmetric};
use crate::kernel::{self, Bandwidth, Kernel, conformal};
use crate::labels::Labels;
use crate::method::{self, COMPONENTS, DEPENDENT, Shared, Size, Solution, Step, Support, Target, Task};
use crate::model::{ABOVE_ONE, Model, Parts, Scores};
use crate::points::Points;
use crate::random::{Random, Stream};
use crate::request::Request;
use crate::simd::Level;
use crate::spec::Spec;
use crate::spectrum::Expansion;
use crate::study::{Ground, Inner};
use crate::watch::Watch;

/// Training rows that are scored for threshold and p-values: all up to this many, fewer (but a thousand) where that
/// would take more multiply-adds than this.
const SCORED: usize = 20_000;
const SCORED_WORK: usize = 3_000_000_000;

/// Up to this many rows `‖φ̄‖²` is computed exactly; above, its loss is bounded.
const EXACT_MEAN: usize = 5000;

/// Bytes that any fit takes: what threads work in.
const ROOM: usize = 10_000_000;

/// Points that leave less than this share of the trace span all there is.
const SPANNED: f64 = 1e-9;
/// Sums of squares of kernel values are right to this share of the trace.
const ROUNDING: f64 = 1e-11;

/// What to fit.
///
/// ```
/// use skpca::{Fit, Points, Precision, Target};
///
/// let circle = (0..200).flat_map(|i| [(i as f64).cos(), (i as f64).sin()]).collect::<Vec<_>>();
/// let points = Points::new(2, circle)?;
/// let model = Fit { target: Some(Target::Support(20)), ..Fit::default() }.run(&points, None, &())?;
/// let scores = model.score(&Points::new(2, vec![1.0, 0.0, 3.0, 3.0])?, Precision::Double)?;
/// assert!(scores[0] < model.parts().scores.threshold && scores[1] > model.parts().scores.threshold);
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// How the support is chosen.
    pub method: Spec,
    /// Inner products in feature space.
    pub kernel: Spec,
    /// Number of components; 10 (or the rank, if that is lower) where nothing is said.
    pub components: Option<usize>,
    /// How small, or how good; a fidelity of 0.95 where nothing is said.
    pub target: Option<Target>,
    /// Whether features are centred; what the method's paper does where nothing is said.
    pub center: Option<bool>,
    /// How columns are scaled.
    pub scaling: Scaling,
    /// Share of the training rows below the novelty threshold.
    pub quantile: f64,
    /// Everything random depends on it and on nothing else.
    pub seed: u64,
    /// Which instructions kernel values are computed with.
    pub level: Level,
}

impl Default for Fit {
    fn default() -> Fit {
        Fit {
            method: Spec::new("expansion"),
            kernel: Spec::new("rbf"),
            components: None,
            target: None,
            center: None,
            scaling: Scaling::Standard,
            quantile: 0.95,
            seed: 0,
            level: Level::Auto,
        }
    }
}

impl Fit {
    /// Refuses what cannot be meant.
    pub fn check(&self) -> Result<()> {
        method::build(&self.method)?;
        self.any_kernel()?;
        self.level.instructions()?;
        if self.components == Some(0) {
            return Err(Error::parameter("components", 0, "a whole number from 1"));
        }
        match self.target {
            Some(Target::Support(0)) => return Err(Error::parameter("support", 0, "a whole number from 1")),
            Some(Target::Fidelity(f)) if !(f > 0.0 && f <= 1.0) => {
                return Err(Error::parameter("fidelity", f, "a number above 0 and up to 1"));
            }
            _ => {}
        }
        match self.quantile > 0.0 && self.quantile < 1.0 {
            true => Ok(()),
            false => Err(Error::parameter("quantile", self.quantile, "a number between 0 and 1")),
        }
    }

    /// The kernel over any two points: they will do to see whether its name and parameters are known.
    fn any_kernel(&self) -> Result<Arc<dyn Kernel>> {
        let points = Points::new(1, vec![0.0, 1.0])?;
        let bandwidth = Bandwidth { points: Some(&points), seed: 0 };
        match Learner::new(&self.kernel, &bandwidth)? {
            Some(learner) => Ok(learner.base().clone()),
            None => kernel::build_with(&self.kernel, &bandwidth),
        }
    }

    /// Bytes that [`Fit::run`] will need for n rows of d columns beside the caller's own copy.
    pub fn memory(&self, n: usize, d: usize) -> Result<usize> {
        let support = match self.target {
            Some(Target::Support(m)) => Some(m),
            _ => None,
        };
        let kernel = self.any_kernel()?;
        let linear = kernel.is_linear() && !conformal::is_unlearned(&self.kernel);
        let dimension = kernel.rank(d);
        let size = Size { n, d, q: self.components.unwrap_or(COMPONENTS).min(n), support, dimension, linear };
        let method = method::build(&self.method)?.memory(&size);
        Ok(method.saturating_add(n.saturating_mul(8 * (d + 2))).saturating_add(ROOM))
    }

    /// Whether a fit looks at labels: it is refused without them.
    pub fn labelled(&self) -> Result<bool> {
        Ok(self.needs_labels()?.is_some())
    }

    /// Whether features are centred: what the method's paper does where nothing is said.
    pub fn centered(&self) -> Result<bool> {
        Ok(self.center.unwrap_or(!method::entry(&self.method)?.capabilities.uncentred))
    }

    /// What of a fit looks at labels, method or kernel, and its name.
    fn needs_labels(&self) -> Result<Option<(&'static str, &str)>> {
        Ok(match method::entry(&self.method)?.capabilities.labelled {
            true => Some(("method", &self.method.name)),
            false => conformal::is_unlearned(&self.kernel).then_some(("kernel", &self.kernel.name)),
        })
    }

    /// Fits a model to `points`.
    pub fn run(&self, points: &Points, names: Option<Vec<String>>, watch: &dyn Watch) -> Result<Model> {
        self.run_on(&Ground::new(self, points, None, names)?, None, watch)
    }

    /// Fits a model to `points` of known classes. Labels matter to the method `discriminant` and the kernel `conformal`.
    pub fn run_labelled(
        &self,
        points: &Points,
        labels: &Labels,
        names: Option<Vec<String>>,
        watch: &dyn Watch,
    ) -> Result<Model> {
        self.run_on(&Ground::new(self, points, Some(labels), names)?, None, watch)
    }

    /// Refuses what a table of n rows, with labels or without, cannot give.
    pub(crate) fn fits(&self, n: usize, labelled: bool) -> Result<()> {
        if let Some(Target::Support(m)) = self.target.filter(|t| matches!(t, Target::Support(m) if *m > n)) {
            return Err(Error::parameter("support", m, &format!("at most the {n} rows there are")));
        }
        match self.needs_labels()?.filter(|_| !labelled) {
            Some((what, name)) => Err(Error::parameter(what, name, "labels with it: the class of each row")),
            None => Ok(()),
        }
    }

    /// Fits a model to a table, with what others have made of it.
    pub(crate) fn run_on(&self, table: &Ground, shared: Option<&Shared>, watch: &dyn Watch) -> Result<Model> {
        match (&table.kernel, table.labels) {
            (Inner::Learned(learner), Some(labels)) => {
                // f has its bumps where the method puts its support under the kernel that f multiplies.
                let (_, first) = self.solve(learner.base(), table, shared, watch)?;
                let bumps = first.support.points(&table.points);
                let (kernel, note) = learner.learn(&table.points, labels, &bumps, self.seed, watch)?;
                let (task, mut solution) = self.solve(&kernel, table, None, watch)?;
                solution.report.notes.push(note);
                self.assemble(&task, table.columns.clone(), solution)
            }
            (Inner::Learned(learner), None) => unreachable!("{:?} without labels is refused", learner.base()),
            (Inner::Known(kernel), _) => {
                let (task, solution) = self.solve(kernel, table, shared, watch)?;
                self.assemble(&task, table.columns.clone(), solution)
            }
        }
    }

    /// What the method finds under a kernel, and the task as it left it.
    fn solve<'a>(
        &self,
        kernel: &'a Arc<dyn Kernel>,
        table: &'a Ground,
        shared: Option<&'a Shared<'a>>,
        watch: &'a dyn Watch,
    ) -> Result<(Task<'a>, Solution)> {
        check_definite(kernel, &table.points, self.seed)?;
        let method = method::build(&self.method)?;
        let mut task = self.task(kernel, table, shared, watch)?;
        let solution = method.fit(&mut task)?;
        Ok((task, solution))
    }

    fn task<'a>(
        &self,
        kernel: &'a Arc<dyn Kernel>,
        table: &'a Ground,
        shared: Option<&'a Shared<'a>>,
        watch: &'a dyn Watch,
    ) -> Result<Task<'a>> {
        Ok(Task {
            kernel,
            points: &table.points,
            labels: table.labels,
            q: self.components.unwrap_or(COMPONENTS).min(table.points.n()),
            asked: self.components.is_some(),
            target: self.target,
            center: self.centered()?,
            seed: self.seed,
            watch,
            reference: OnceCell::new(),
            shared,
        })
    }

    /// The path of `l1`, `l21` or `elastic-net`: what they select at each of `shares` of the largest useful penalty, in the
    /// order given. Each starts where the one before ended, its P included, so that all of them cost little more than the
    /// last. A fit with `fraction` starts at the leading eigenvectors, and may end in another local minimum.
    ///
    /// ```
    /// use skpca::{Fit, Spec, toys};
    ///
    /// let fit = Fit { method: Spec::new("l21"), components: Some(3), ..Fit::default() };
    /// let path = fit.path(&toys::parabola(0), &[0.9, 0.3, 0.1], &())?;
    /// assert!(path.windows(2).all(|pair| pair[0].rows.len() < pair[1].rows.len()));
    /// # Ok::<(), skpca::Error>(())
    /// ```
    pub fn path(&self, points: &Points, shares: &[f64], watch: &dyn Watch) -> Result<Vec<Step>> {
        let table = Ground::new(self, points, None, None)?;
        match &table.kernel {
            Inner::Known(kernel) => method::steps(&self.method, &self.task(kernel, &table, None, watch)?, shares),
            Inner::Learned(_) => unreachable!("a kernel that learns from labels is refused without them"),
        }
    }

    /// Size against fidelity, for up to `most` points: the path of `expansion` (from as many points as components) or `greedy` (from one),
    /// each model from the one before, so that all of them cost little more than the last. A fit with so many points does at least
    /// about as well: it goes on where the path passes by.
    ///
    /// ```
    /// use skpca::{Fit, toys};
    ///
    /// let fit = Fit { components: Some(3), ..Fit::default() };
    /// let path = fit.fidelities(&toys::parabola(0), 8, &())?;
    /// assert_eq!(path.iter().map(|(m, _)| *m).collect::<Vec<_>>(), [3, 4, 5, 6, 7, 8]);
    /// assert!(path.windows(2).all(|pair| pair[0].1 < pair[1].1) && path[5].1 > 0.97);
    /// # Ok::<(), skpca::Error>(())
    /// ```
    pub fn fidelities(&self, points: &Points, most: usize, watch: &dyn Watch) -> Result<Vec<(usize, f64)>> {
        if most == 0 {
            return Err(Error::parameter("most", most, "a whole number from 1"));
        }
        let table = Ground::new(self, points, None, None)?;
        match &table.kernel {
            Inner::Known(kernel) => {
                let task = self.task(kernel, &table, None, watch)?;
                task.refuse_target("a path")?;
                let path = method::build(&self.method)?.fidelities(&task, most.min(points.n()))?;
                let none =
                    || Error::parameter("method", &self.method.name, "expansion or greedy: others have no such path");
                path.ok_or_else(none)
            }
            Inner::Learned(_) => unreachable!("a kernel that learns from labels is refused without them"),
        }
    }

    fn assemble(&self, task: &Task, columns: Columns, solution: Solution) -> Result<Model> {
        let Solution { method, support: chosen, expansion, density, fidelity: stated, fewer, mut report } = solution;
        let n = task.points.n();
        let (count, m) = (chosen.len(), expansion.kept.len());
        let found = expansion.values.len();
        if found == 0 {
            let all = expansion.residual_trace <= SPANNED * expansion.trace;
            let why = if all { method::NO_VARIANCE } else { "the points kept hold none of the variance; keep more" };
            return Err(Error::NoVariance { why: why.into() });
        }
        if let Some(asked) = self.components.filter(|asked| *asked > found) {
            let labelled = method::entry(&method)?.capabilities.labelled;
            let spanned = expansion.residual_trace <= SPANNED * expansion.trace;
            let why = match task.labels.filter(|labels| labelled && labels.classes() == found + 1) {
                Some(_) => "one fewer than classes",
                None if m == found && !spanned => "as many as points are kept",
                None => "the data have no higher rank",
            };
            report.notes.push(format!("{asked} components asked for, {found} found: {why}"));
        }
        if let Some(Target::Support(asked)) = self.target.filter(|t| *t != Target::Support(m)) {
            let why = if m < count { DEPENDENT } else { fewer };
            report.notes.push(format!("{asked} support points asked for, {m} kept: {why}"));
        }
        if stated.is_none() && (m < n || expansion.frame.is_some()) {
            let points = || chosen.points(task.points);
            report.fidelity_interval = task.reference()?.interval(task.kernel, task.points, points, &expansion);
        }
        let (rows, support, fidelity) = match chosen {
            Support::Rows(chosen) => {
                let fidelity = stated.map_or_else(|| task.fidelity(&chosen, &expansion), Ok)?;
                let rows: Vec<usize> = expansion.kept.iter().map(|&i| chosen[i]).collect();
                let support = task.points.select(&rows);
                (Some(rows), support, fidelity)
            }
            Support::Points(points) => {
                let fidelity = stated.map_or_else(|| task.fidelity_of(&points, &expansion), Ok)?;
                (None, points.select(&expansion.kept), fidelity)
            }
        };
        let fidelity = not_above_one(fidelity, task, &expansion)?;
        if let Some(Target::Fidelity(asked)) =
            self.target.filter(|t| matches!(t, Target::Fidelity(f) if fidelity < *f - ROUNDING))
        {
            report.notes.push(format!("fidelity {asked} asked for, {fidelity:.6} reached"));
        }
        report.chosen = count;
        report.residual_trace = share(expansion.residual_trace, expansion.trace);
        let projected: f64 = expansion.means.iter().zip(&expansion.mean).map(|(a, b)| a * b).sum();
        let mean_lost = match task.center && (m < n || rows.is_none()) {
            true => mean_lost(task, projected, expansion.residual_trace),
            false => 0.0,
        };
        let parts = Parts {
            method,
            kernel: task.kernel.spec(),
            columns,
            support,
            rows,
            coefficients: expansion.coefficients,
            frame: expansion.frame,
            density,
            captured: expansion.captured / n as f64,
            means: expansion.means,
            mean: expansion.mean,
            variances: expansion.values.iter().map(|v| v / n as f64).collect(),
            center: task.center,
            n,
            // Where the mean is much longer than the deviations from it, the difference may be rounding alone.
            total_variance: (expansion.trace / n as f64 - projected).max(expansion.captured / n as f64),
            mean_lost,
            fidelity,
            seed: self.seed,
            scores: Scores::new(vec![0.0], self.quantile),
            report,
            request: Some(Request { fit: self.clone(), words: serde_json::Map::new() }),
        };
        let scored = SCORED.min(SCORED_WORK / (parts.support.n() * (parts.support.d() + 20))).max(1000);
        let sample = Random::new(self.seed, Stream::Scored).sample(n, scored);
        Model::with(parts, task.kernel.instructions())?.settled(&task.points.select(&sample), self.quantile)
    }
}

/// Nothing captures more than exact kernel PCA, but by rounding, unless the kernel is no inner product at the support.
fn not_above_one(fidelity: f64, task: &Task, expansion: &Expansion) -> Result<f64> {
    let excess = (fidelity - 1.0) * expansion.captured;
    let rounding = ABOVE_ONE * expansion.captured + ROUNDING * expansion.trace;
    match excess > rounding && !task.kernel.positive_semidefinite() {
        true => Err(Error::NotPositive { kernel: task.kernel.spec().name, value: -excess }),
        false => Ok(fidelity.min(1.0)),
    }
}

/// Rows of which the kernel matrix is looked at, if the kernel may be indefinite.
const DEFINITE_ROWS: usize = 1000;
/// An eigenvalue this far below zero, as a share of the largest, is not rounding.
const NEGATIVE: f64 = 1e-8;

/// Refuses a kernel that has a negative eigenvalue on these rows, or on a sample of them. Methods see the rows that they
/// choose, and might not notice.
fn check_definite(kernel: &Arc<dyn Kernel>, points: &Points, seed: u64) -> Result<()> {
    if kernel.positive_semidefinite() {
        return Ok(());
    }
    let diagonal = diagonal(kernel, points)?;
    let sample = points.select(&Random::new(seed, Stream::Definite).sample(points.n(), DEFINITE_ROWS));
    let values = dense::eigen(gram(kernel, &sample).as_ref())?.0;
    let (largest, lowest) = (values[0], values[values.len() - 1]);
    match lowest < -(NEGATIVE * largest).max(ROUNDING * diagonal.iter().sum::<f64>()) {
        true => Err(Error::NotPositive { kernel: kernel.spec().name, value: lowest }),
        false => Ok(()),
    }
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// `‖φ̄‖² − μᵀβ` exactly for few rows; otherwise its bound, the mean squared distance of the rows to the span.
fn mean_lost(task: &Task, projected: f64, residual_trace: f64) -> f64 {
    let n = task.points.n();
    if n > EXACT_MEAN {
        return residual_trace / n as f64;
    }
    let known = task.reference.get().and_then(|reference| reference.mean_norm);
    (known.unwrap_or_else(|| mean_norm(task.kernel, task.points)) - projected).max(0.0)
}

/// `‖φ̄‖² = (1/n²) Σ_ij k(x_i, x_j)`
fn mean_norm(kernel: &Arc<dyn Kernel>, points: &Points) -> f64 {
    let n = points.n();
    let shares = faer::Mat::from_fn(n, 1, |_, _| 1.0 / n as f64);
    Symmetric::new(kernel, points, false).product(shares.as_ref(), Precision::Double).sum() / n as f64
}
