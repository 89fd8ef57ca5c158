//! From a table to a model: scale, build the kernel, let the method choose, assemble, score the training rows.

use std::sync::Arc;

use crate::columns::Columns;
use crate::dense;
use crate::error::{Error, Result};
use crate::fit::Fit;
use crate::gram::{Basis, Precision, Symmetric};
use crate::kernel::Kernel;
use crate::kernel_matrix::{gram, trace};
use crate::labels::Labels;
use crate::method::{self, COMPONENTS, DEPENDENT, Shared, Solution, Step, Support, Target, Task};
use crate::model::{Model, Parts, Scores, orient};
use crate::plan::{Plan, Prepared, TableKernel};
use crate::points::Points;
use crate::random::{Random, Stream};
use crate::report::ABOVE_ONE;
use crate::request::Request;
use crate::rows::Rows;
use crate::spectrum::Expansion;
use crate::watch::Watch;

/// Training rows that are scored for threshold and p-values: all up to this many, fewer (but a thousand) where that
/// would take more multiply-adds than this.
const SCORED: usize = 20_000;
const SCORED_WORK: usize = 3_000_000_000;

/// Up to this many rows `‖φ̄‖²` is computed exactly; above, its loss is bounded.
const EXACT_MEAN: usize = 5000;

/// Points that leave less than this share of the trace span all there is.
const SPANNED: f64 = 1e-9;
/// Sums of squares of kernel values are right to this share of the trace.
const ROUNDING: f64 = 1e-11;

impl Fit {
    /// Fits a model to `points`.
    pub fn run(&self, points: &Points, names: Option<Vec<String>>, watch: &dyn Watch) -> Result<Model> {
        let (plan, table) = Plan::with_table(self, points, None, names)?;
        plan.run(&table, None, watch)
    }

    /// Fits a model to `points` of known classes. Labels matter to the method `discriminant` and the kernel `conformal`.
    pub fn run_labelled(
        &self,
        points: &Points,
        labels: &Labels,
        names: Option<Vec<String>>,
        watch: &dyn Watch,
    ) -> Result<Model> {
        let (plan, table) = Plan::with_table(self, points, Some(labels), names)?;
        plan.run(&table, None, watch)
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
        let (plan, table) = Plan::with_table(self, points, None, None)?;
        method::steps(&self.method, &plan.task(table.base_kernel(), &table, None, watch), shares)
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
        let (plan, table) = Plan::with_table(self, points, None, None)?;
        let task = plan.task(table.base_kernel(), &table, None, watch);
        task.refuse_target("a path")?;
        let path = plan.method.fidelities(&task, most.min(points.n()))?;
        path.ok_or_else(|| {
            Error::parameter("method", &self.method.name, "expansion or greedy: others have no such path")
        })
    }
}

impl Plan {
    /// Fits a model to a table, with what others have made of it.
    pub(crate) fn run(&self, table: &Prepared, shared: Option<&Shared>, watch: &dyn Watch) -> Result<Model> {
        let columns = || table.rows.columns().clone();
        let task = self.task(table.base_kernel(), table, shared, watch);
        let solution = self.solve(&task)?;
        let (TableKernel::Learned(learner), Some(labels)) = (&table.kernel, table.labels) else {
            return self.assemble(&task, columns(), solution);
        };
        // f has its bumps where the method puts its support under the kernel that f multiplies.
        let bumps = solution.support.points(&table.rows)?;
        let (kernel, note) = learner.learn(&table.rows, labels, &bumps, self.fit.seed, watch)?;
        let task = self.task(&kernel, table, None, watch);
        let mut solution = self.solve(&task)?;
        solution.report.notes.push(note);
        self.assemble(&task, columns(), solution)
    }

    /// What the method finds, under a kernel that is an inner product on these rows.
    fn solve(&self, task: &Task) -> Result<Solution> {
        check_definite(task)?;
        self.method.fit(task)
    }

    fn task<'a>(
        &self,
        kernel: &'a Arc<dyn Kernel>,
        table: &'a Prepared,
        shared: Option<&'a Shared<'a>>,
        watch: &'a dyn Watch,
    ) -> Task<'a> {
        let q = self.fit.components.unwrap_or(COMPONENTS).min(table.rows.n());
        let mut task = Task::new(kernel, &table.rows, q, watch);
        (task.labels, task.shared) = (table.labels, shared);
        (task.asked, task.target) = (self.fit.components.is_some(), self.fit.target);
        (task.center, task.seed) = (self.center, self.fit.seed);
        task
    }

    /// The model of what the method found.
    fn assemble(&self, task: &Task, columns: Columns, mut solution: Solution) -> Result<Model> {
        let informed = solution.reference.take().map(|reference| task.with_reference(reference));
        let task = informed.as_ref().unwrap_or(task);
        check_variance(&solution.expansion)?;
        self.note_what_is_missing(task, &mut solution)?;
        let fidelity = self.fidelity(task, &mut solution)?;
        let Solution { method, support: chosen, expansion, density, mut report, .. } = solution;
        let n = task.n();
        report.chosen = chosen.len();
        report.residual_trace = share(expansion.residual_trace, expansion.trace);
        let projected = dense::dot(&expansion.mu, &expansion.beta);
        let (rows, support) = match chosen {
            Support::Rows(chosen) => {
                let rows: Vec<usize> = expansion.kept.iter().map(|&i| chosen[i]).collect();
                let support = task.rows.gather(&rows)?;
                (Some(rows), support)
            }
            Support::Points(points) => (None, points.select(&expansion.kept)),
        };
        let every_row = rows.as_ref().is_some_and(|rows| rows.len() == n);
        let mean_lost =
            if task.center && !every_row { mean_lost(task, projected, expansion.residual_trace)? } else { 0.0 };
        let basis = Basis::centred(task.kernel.clone(), support.clone(), expansion.mu.clone());
        let (mut coefficients, mut frame) = (expansion.coefficients, expansion.frame);
        let sample = task.rows.gather(&self.scored_rows(task, &support))?;
        let scores = orient(&basis, &mut coefficients, &mut frame, (&expansion.mu, &expansion.beta), &sample)?;
        let parts = Parts {
            method,
            kernel: task.kernel.spec(),
            columns,
            support,
            rows,
            coefficients,
            frame,
            density,
            captured: expansion.captured / n as f64,
            mu: expansion.mu,
            beta: expansion.beta,
            variances: expansion.values.iter().map(|v| v / n as f64).collect(),
            center: task.center,
            n,
            // Where the mean is much longer than the deviations from it, the difference may be rounding alone.
            total_variance: (expansion.trace / n as f64 - projected).max(expansion.captured / n as f64),
            mean_lost,
            fidelity,
            seed: self.fit.seed,
            scores: Scores::new(scores, self.fit.quantile),
            report,
            request: Some(Request { fit: self.fit.clone(), words: serde_json::Map::new() }),
        };
        parts.check()?;
        Ok(Model::packed(basis, parts))
    }

    /// Notes what was asked for and not found.
    fn note_what_is_missing(&self, task: &Task, solution: &mut Solution) -> Result<()> {
        let Solution { method, support, expansion, fewer, report, .. } = solution;
        let (m, found) = (expansion.kept.len(), expansion.values.len());
        if let Some(asked) = self.fit.components.filter(|asked| *asked > found) {
            let labelled = method::entry(method)?.capabilities.labelled;
            let why = match task.labels.filter(|labels| labelled && labels.classes() == found + 1) {
                Some(_) => "one fewer than classes",
                None if m == found && !is_spanned(expansion) => "as many as points are kept",
                None => "to working precision, the data have no higher rank",
            };
            report.notes.push(format!("{asked} components asked for, {found} found: {why}"));
        }
        if let Some(Target::Support(asked)) = self.fit.target.filter(|t| *t != Target::Support(m)) {
            let why = if m < support.len() { DEPENDENT } else { fewer };
            report.notes.push(format!("{asked} support points asked for, {m} kept: {why}"));
        }
        Ok(())
    }

    /// The fidelity, its interval where it is an estimate, and a note where it is not what was asked for.
    fn fidelity(&self, task: &Task, solution: &mut Solution) -> Result<f64> {
        let Solution { support, expansion, fidelity: stated, report, .. } = solution;
        let every_row = expansion.kept.len() == task.n();
        if stated.is_none() && (!every_row || expansion.frame.is_some()) {
            let points = || support.points(task.rows);
            report.fidelity_interval = task.reference()?.interval(task.kernel, task.rows, points, expansion)?;
        }
        let fidelity = match (*stated, &*support) {
            (Some(stated), _) => stated,
            (None, Support::Rows(rows)) => task.fidelity(rows, expansion)?,
            (None, Support::Points(points)) => task.fidelity_of(points, expansion)?,
        };
        let fidelity = not_above_one(fidelity, task, expansion)?;
        if let Some(Target::Fidelity(asked)) = self.fit.target
            && fidelity < asked - ROUNDING
        {
            report.notes.push(format!("fidelity {asked} asked for, {fidelity:.6} reached"));
        }
        Ok(fidelity)
    }

    /// Numbers of the training rows that threshold and p-values come from.
    fn scored_rows(&self, task: &Task, support: &Points) -> Vec<usize> {
        let scored = SCORED.min(SCORED_WORK / (support.n() * (support.d() + 20))).max(1000);
        Random::new(self.fit.seed, Stream::Scored).sample(task.n(), scored)
    }
}

/// Refuses a solution without components.
fn check_variance(expansion: &Expansion) -> Result<()> {
    if !expansion.values.is_empty() {
        return Ok(());
    }
    let nothing = "the points kept hold none of the variance; keep more";
    let why = if is_spanned(expansion) { method::NO_VARIANCE } else { nothing };
    Err(Error::NoVariance { why: why.into() })
}

/// Whether the points kept span all there is.
fn is_spanned(expansion: &Expansion) -> bool {
    expansion.residual_trace <= SPANNED * expansion.trace
}

/// Nothing captures more than exact kernel PCA, but by rounding, unless the kernel is no inner product at the support.
fn not_above_one(fidelity: f64, task: &Task, expansion: &Expansion) -> Result<f64> {
    let excess = (fidelity - 1.0) * expansion.captured;
    let rounding = ABOVE_ONE * expansion.captured + ROUNDING * expansion.trace;
    if excess > rounding && !task.kernel.positive_semidefinite() {
        Err(Error::NotPositive { kernel: task.kernel.spec().name, value: -excess })
    } else {
        Ok(fidelity.min(1.0))
    }
}

/// Rows of which the kernel matrix is looked at, if the kernel may be indefinite.
const DEFINITE_ROWS: usize = 1000;
/// An eigenvalue this far below zero, as a share of the largest, is not rounding.
const NEGATIVE: f64 = 1e-8;

/// Refuses a kernel that has a negative eigenvalue on these rows, or on a sample of them. Methods see the rows that they
/// choose, and might not notice.
fn check_definite(task: &Task) -> Result<()> {
    let Task { kernel, rows, seed, watch, .. } = *task;
    if kernel.positive_semidefinite() {
        return Ok(());
    }
    let trace = trace(kernel, rows, watch)?;
    let sample = rows.gather(&Random::new(seed, Stream::Definite).sample(rows.n(), DEFINITE_ROWS))?;
    let values = dense::eigen(gram(kernel, &sample).as_ref())?.0;
    let (largest, lowest) = (values[0], values[values.len() - 1]);
    if lowest < -(NEGATIVE * largest).max(ROUNDING * trace) {
        Err(Error::NotPositive { kernel: kernel.spec().name, value: lowest })
    } else {
        Ok(())
    }
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// `‖φ̄‖² − μᵀβ` exactly for few rows; otherwise its bound, the mean squared distance of the rows to the span.
fn mean_lost(task: &Task, projected: f64, residual_trace: f64) -> Result<f64> {
    let n = task.n();
    if n > EXACT_MEAN {
        return Ok(residual_trace / n as f64);
    }
    let mean_norm = match task.known_mean_norm() {
        Some(known) => known,
        None => mean_norm(task.kernel, &task.rows.gather(&(0..n).collect::<Vec<_>>())?),
    };
    Ok((mean_norm - projected).max(0.0))
}

/// `‖φ̄‖² = (1/n²) Σ_ij k(x_i, x_j)`
fn mean_norm(kernel: &Arc<dyn Kernel>, points: &Points) -> f64 {
    let n = points.n();
    let shares = faer::Mat::from_fn(n, 1, |_, _| 1.0 / n as f64);
    Symmetric::new(kernel, points, false).product(shares.as_ref(), Precision::Double).sum() / n as f64
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::columns::Scaling;
    use crate::counters::{Counts, counted};
    use crate::kernel;
    use crate::spec::Spec;
    use crate::toys;

    #[test]
    fn a_fit_builds_once_and_looks_at_its_numbers_once() {
        let points = toys::clusters(0);
        let looked_at = |points: &Points| points.n() * points.d();
        for entry in method::METHODS.iter().filter(|entry| !entry.capabilities.labelled) {
            for scaling in [Scaling::Standard, Scaling::None] {
                let fit = Fit { method: Spec::new(entry.name), components: Some(2), scaling, ..Fit::default() };
                let (_, counts) = counted(|| {
                    let table = Points::new(points.d(), points.values()).unwrap();
                    fit.run(&table, None, &()).unwrap()
                });
                let Counts { methods, kernels, numbers } = counts;
                assert_eq!((methods, kernels), (1, 1), "{}", entry.name);
                // Scores and points that were moved are looked at too; the table is not, a second time.
                let others = numbers - looked_at(&points);
                assert!(others <= looked_at(&points), "{} {scaling:?}: {others} beside the table", entry.name);
            }
        }
    }

    /// Rows that are not in this machine's memory, as far as anybody can tell.
    struct Elsewhere(Points<'static>);

    impl Rows for Elsewhere {
        fn n(&self) -> usize {
            self.0.n()
        }

        fn d(&self) -> usize {
            self.0.d()
        }

        fn gather(&self, rows: &[usize]) -> Result<Points<'static>> {
            Ok(self.0.select(rows))
        }

        fn block<'a>(&'a self, rows: Range<usize>, room: &'a mut Vec<f64>) -> Result<Points<'a>> {
            room.clear();
            room.extend_from_slice(self.0.slice(rows).values());
            Ok(Points::finite(self.0.d(), &room[..]))
        }

        fn whole(&self) -> Result<&Points<'_>> {
            Err(Error::Numerical { why: "these rows are elsewhere".into() })
        }
    }

    #[test]
    fn rows_may_be_elsewhere_and_give_the_same_bits() {
        let points = toys::normal(6000, 3, 0);
        let kernel = kernel::build(&Spec::new("rbf"), &points, 0).unwrap();
        let elsewhere = Elsewhere(points.clone());
        for name in ["landmarks", "greedy", "expansion"] {
            for target in [Target::Support(12), Target::Fidelity(0.8)] {
                let solve = |rows: &dyn Rows| {
                    let mut task = Task::new(&kernel, rows, 3, &());
                    task.target = Some(target);
                    let solution = method::build(&Spec::new(name)).unwrap().fit(&task).unwrap();
                    let support = solution.support.points(rows).unwrap();
                    (support, solution.expansion.coefficients, solution.expansion.values)
                };
                assert!(solve(&points) == solve(&elsewhere), "{name} {target:?}");
            }
        }
    }

    #[test]
    fn tasks_are_shared_between_threads() {
        fn shared<T: Sync>(_: &T) {}
        let points = toys::clusters(0);
        let kernel = kernel::build(&Spec::new("rbf"), &points, 0).unwrap();
        shared(&Task::new(&kernel, &points, 2, &()));
    }
}
