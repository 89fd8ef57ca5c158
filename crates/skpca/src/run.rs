//! From a table to a model: scale the columns, build the kernel, run the method, assemble the model, score the training
//! rows.

use std::sync::Arc;

use faer::MatRef;

use crate::agreement;
use crate::calibration::calibrate;
use crate::columns::{Columns, Table};
use crate::concentration;
use crate::dense;
use crate::error::{Error, Result};
use crate::fit::{Fit, Statistic};
use crate::gram::{Basis, Precision, Symmetric};
use crate::kernel::Kernel;
use crate::kernel_matrix::{gram, trace};
use crate::labels::Labels;
use crate::method::{self, DEPENDENT, Shared, Solution, Step, Support, Target, Task};
use crate::model::{self, Model, Parts, Scores, orient};
use crate::plan::{Data, Plan, Prepared, TableKernel};
use crate::points::Points;
use crate::random::{Random, Stream};
use crate::report::{ABOVE_ONE, Agreement};
use crate::request::Request;
use crate::rows::{Part, Rows, Weighted};
use crate::sample_weight;
use crate::source::{Raw, Source};
use crate::spectrum::Expansion;
use crate::watch::Watch;

/// Maximum number of training rows scored for threshold and p-values.
const MAX_SCORED_ROWS: usize = 20_000;
/// Maximum number of multiply-adds for these scores; at least a thousand rows are scored in any case.
const MAX_SCORED_WORK: usize = 3_000_000_000;

/// Bytes that a fit of rows on other machines may use on this one.
const REMOTE_MEMORY: usize = 1_000_000_000;

/// Maximum number of rows for which `‖φ̄‖²` is computed exactly; for more rows its loss is bounded.
const EXACT_MEAN_ROWS: usize = 5000;

/// Support points with a residual below this share of the trace span all rows.
const SPANNED: f64 = 1e-9;
/// Relative accuracy of sums of squares of kernel values, as a share of the trace.
const ROUNDING: f64 = 1e-11;

impl Fit {
    /// Fits a model to `points`.
    pub fn run(&self, points: &Points, names: Option<Vec<String>>, watch: &dyn Watch) -> Result<Model> {
        self.run_data(points.into(), names, watch)
    }

    /// Fits a model to `points` with class labels, which the method `discriminant` and the kernel `conformal` use.
    pub fn run_labelled(
        &self,
        points: &Points,
        labels: &Labels,
        names: Option<Vec<String>>,
        watch: &dyn Watch,
    ) -> Result<Model> {
        self.run_data(Data { labels: Some(labels), ..points.into() }, names, watch)
    }

    /// Fits a model to rows in memory, with labels or weights. Rows of weight 0 are ignored.
    pub(crate) fn run_data(&self, data: Data, names: Option<Vec<String>>, watch: &dyn Watch) -> Result<Model> {
        if let Some(rows) = counting(data)? {
            return self.run_some(data, &rows, names, watch);
        }
        if self.robust {
            return self.run_robust(data, names, watch);
        }
        if let Some(asked) = self.score_fidelity {
            let (fit, agreement) = self.agreeing(asked, data, watch)?;
            let mut model = fit.run_data(data, names, watch)?;
            model.agrees(asked, agreement);
            return Ok(model);
        }
        let (plan, table) = Plan::with_table(self, data, names, watch)?;
        plan.run(&table, None, watch)
    }

    /// Fits a model to rows that are read when they are needed, using at most `memory` bytes. Methods that work on
    /// samples give bit for bit the model of [`Fit::run`]; methods that keep something per row choose their points on a
    /// sample, and a note in the report says so. `discriminant`, `conformal` and robust fits need the rows in memory,
    /// and `exact` keeps them all.
    pub fn run_streamed(
        &self,
        source: &dyn Source,
        names: Option<Vec<String>>,
        memory: usize,
        watch: &dyn Watch,
    ) -> Result<Model> {
        self.run_elsewhere(source.into(), names, memory, watch)
    }

    /// Fits a model to rows on other machines, to which passes are sent ([`Source::remote`]); labels are on this one.
    /// The result does not depend on the memory available here.
    pub fn run_remote(
        &self,
        source: &dyn Source,
        labels: Option<&Labels>,
        names: Option<Vec<String>>,
        watch: &dyn Watch,
    ) -> Result<Model> {
        self.run_elsewhere(Data { labels, ..source.into() }, names, REMOTE_MEMORY, watch)
    }

    fn run_elsewhere(&self, data: Data, names: Option<Vec<String>>, memory: usize, watch: &dyn Watch) -> Result<Model> {
        let (n, d) = (data.source.n(), data.source.d());
        if Table::is_small(n, d) && n > 0 {
            let points = Raw::new(data.source).collect()?;
            return self.run_data(Data { source: &points, ..data }, names, watch);
        }
        if data.source.points().is_none() {
            self.check_elsewhere()?;
        }
        if self.robust {
            return self.run_robust(data, names, watch);
        }
        if let Some(asked) = self.score_fidelity {
            let (fit, agreement) = self.agreeing(asked, data, watch)?;
            let mut model = fit.run_elsewhere(data, names, memory, watch)?;
            model.agrees(asked, agreement);
            return Ok(model);
        }
        let sample = self.sample_within(n, d, memory)?;
        let (plan, table) = Plan::with_table(self, data, names, watch)?;
        Plan { sample, ..plan }.run(&table, None, watch)
    }

    /// Rejects fits that need all rows in memory.
    fn check_elsewhere(&self) -> Result<()> {
        if method::entry(&self.method)?.capabilities.keeps_all_rows {
            let expected = "a method that keeps few rows, where they do not all fit in memory";
            return Err(Error::parameter("method", &self.method.name, expected));
        }
        if self.robust {
            return Err(Error::parameter("robust", true, "rows in memory, such as a sample of them"));
        }
        Ok(())
    }

    /// Returns the same fit with as many points as its scores need to agree with exact ones as well as `asked`.
    fn agreeing(&self, asked: f64, data: Data, watch: &dyn Watch) -> Result<(Fit, Agreement)> {
        let (m, agreement) = agreement::points_for(self, asked, data, watch)?;
        Ok((Fit { target: Some(Target::Support(m)), score_fidelity: None, ..self.clone() }, agreement))
    }

    /// Fits a model to the rows that belong together; the others are listed in its report.
    fn run_robust(&self, data: Data, names: Option<Vec<String>>, watch: &dyn Watch) -> Result<Model> {
        let plain = Fit { robust: false, ..self.clone() };
        let (kept, aside) = concentration::split(&plain, data, watch)?;
        let target = self.target.map(|target| target.at_most(kept.len()));
        let mut model = Fit { target, ..plain }.run_some(data, &kept, names, watch)?;
        model.set_aside(aside);
        Ok(model)
    }

    /// Fits a model to some of the rows; its support is numbered by all of them.
    fn run_some(&self, data: Data, rows: &[usize], names: Option<Vec<String>>, watch: &dyn Watch) -> Result<Model> {
        let labels = data.labels.map(|labels| labels.select(rows));
        let weights = sample_weight::select(data.weights, rows);
        let points = data.gather(rows)?;
        let part = Data { source: &points, labels: labels.as_ref(), weights: weights.as_deref() };
        let mut model = self.run_data(part, names, watch)?;
        model.renumber(rows, data.source.n());
        Ok(model)
    }

    /// Returns the regularisation path of `l1`, `l21` or `elastic-net`: the rows selected at each of `shares` of the
    /// largest useful penalty, in the order given. Each step is warm-started at the solution of the previous one,
    /// including its P, so the whole path costs little more than its last step. A fit with `fraction` starts at the
    /// leading eigenvectors instead, and may end in another local minimum.
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
        let (plan, table) = Plan::with_table(self, points, None, watch)?;
        method::steps(&self.method, &plan.task(table.base_kernel(), &table, None, watch), shares)
    }

    /// Returns the fidelity at each number of points up to `most`, along the path of `expansion` (starting with as many
    /// points as components) or `greedy` (starting with one). Each model is warm-started at the previous one, so the
    /// whole path costs little more than its last model. A separate fit with the same number of points is at least
    /// about as good, because it continues to optimise where the path moves on.
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
            return Err(Error::parameter("most", most, "an integer ≥ 1"));
        }
        let (plan, table) = Plan::with_table(self, points, None, watch)?;
        let task = plan.task(table.base_kernel(), &table, None, watch);
        task.refuse_target("a path")?;
        let path = plan.method.fidelities(&task, most.min(points.n()))?;
        path.ok_or_else(|| {
            Error::parameter("method", &self.method.name, "expansion or greedy: others have no such path")
        })
    }
}

/// Returns the numbers of the rows with positive weight, if some rows have weight 0.
fn counting(Data { source, weights, .. }: Data) -> Result<Option<Vec<usize>>> {
    let Some(weights) = weights else { return Ok(None) };
    sample_weight::check(weights, source.n())?;
    let rows: Vec<usize> = (0..weights.len()).filter(|&row| weights[row] > 0.0).collect();
    if rows.is_empty() {
        return Err(Error::parameter("sample_weight", "0 everywhere", "at least two rows that count"));
    }
    Ok((rows.len() < weights.len()).then_some(rows))
}

impl Plan {
    /// Fits a model to a table, reusing the results that other fits share.
    pub(crate) fn run(&self, table: &Prepared, shared: Option<&Shared>, watch: &dyn Watch) -> Result<Model> {
        let mut model = self.judged(table, shared, watch)?;
        if let Some(rate) = self.fit.false_alarms {
            calibrate((self, table), &mut model, rate, watch)?;
        }
        Ok(model)
    }

    /// Like [`Plan::run`], with an in-sample threshold.
    fn judged(&self, table: &Prepared, shared: Option<&Shared>, watch: &dyn Watch) -> Result<Model> {
        let columns = || table.rows.columns().clone();
        let task = self.task(table.base_kernel(), table, shared, watch);
        let solution = self.solve(&task)?;
        let (TableKernel::Learned(learner), Some(labels)) = (&table.kernel, table.labels) else {
            return self.assemble(&task, columns(), solution);
        };
        // The centres of f are the support that the method chooses under the base kernel.
        let bumps = solution.support.points(&table.rows)?;
        let (kernel, note) = learner.learn(&table.rows, labels, &bumps, self.fit.seed, watch)?;
        let task = self.task(&kernel, table, None, watch);
        let mut solution = self.solve(&task)?;
        solution.report.notes.push(note);
        self.assemble(&task, columns(), solution)
    }

    /// Fits a model for scores and features only, without measuring its fidelity.
    pub(crate) fn run_unjudged(&self, table: &Prepared, watch: &dyn Watch) -> Result<Model> {
        let TableKernel::Known(kernel) = &table.kernel else { return self.judged(table, None, watch) };
        let mut task = self.task(kernel, table, None, watch);
        task.judged = false;
        let solution = self.solve(&task)?;
        check_variance(&solution.expansion)?;
        self.model(&task, table.rows.columns().clone(), solution, Judgement::default())
    }

    /// Runs the method, after a check that the kernel is positive semi-definite on these rows.
    fn solve(&self, task: &Task) -> Result<Solution> {
        check_definite(task)?;
        if task.rows.in_memory() || !self.fit.holds_rows(task.n(), task.d())? {
            return self.method.fit(task);
        }
        self.solve_on_sample(task, self.sample.min(task.n()))
    }

    pub(crate) fn task<'a>(
        &self,
        kernel: &'a Arc<dyn Kernel>,
        table: &'a Prepared,
        shared: Option<&'a Shared<'a>>,
        watch: &'a dyn Watch,
    ) -> Task<'a> {
        let n = table.rows.n();
        let mut task = Task::new(kernel, &table.rows, self.fit.wanted(n), watch);
        (task.labels, task.shared) = (table.labels, shared);
        (task.asked, task.target) = (self.fit.components.is_some(), self.target(n));
        task.judged = self.fit.statistic == Statistic::Distance;
        (task.center, task.seed) = (self.center, self.fit.seed);
        task
    }

    /// Measures the fidelity of a solution and makes it a model.
    pub(crate) fn assemble(&self, task: &Task, columns: Columns, mut solution: Solution) -> Result<Model> {
        let informed = solution.reference.take().map(|reference| task.with_reference(reference));
        let task = informed.as_ref().unwrap_or(task);
        check_variance(&solution.expansion)?;
        self.note_what_is_missing(task, &mut solution)?;
        let fidelity = self.fidelity(task, &mut solution)?;
        let expansion = &solution.expansion;
        let every_row = matches!(solution.support, Support::Rows(_)) && expansion.kept.len() == task.n();
        let projected = dense::dot(&expansion.mu, &expansion.beta);
        let mean_lost =
            if task.center && !every_row { mean_lost(task, projected, expansion.residual_trace)? } else { 0.0 };
        self.model(task, columns, solution, Judgement { fidelity, mean_lost })
    }

    /// Makes the model of a solution whose fidelity is known.
    fn model(&self, task: &Task, columns: Columns, solution: Solution, judgement: Judgement) -> Result<Model> {
        let Judgement { fidelity, mean_lost } = judgement;
        let Solution { method, support: chosen, expansion, density, mut report, .. } = solution;
        let weight = task.rows.weight();
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
        let basis = Basis::centred(task.kernel.clone(), support.clone(), expansion.mu.clone());
        let (mut coefficients, mut frame) = (expansion.coefficients, expansion.frame);
        let Part { points: sample, weights } = Part::of(task.rows, &self.scored_rows(task, &support))?;
        let scores = orient(&basis, &mut coefficients, &mut frame, (&expansion.mu, &expansion.beta), &sample)?;
        // If the mean is much longer than the deviations from it, the difference may be mere rounding.
        let total_variance = (expansion.trace / weight - projected).max(expansion.captured / weight);
        let noise = self.noise(task, frame.is_none(), total_variance)?;
        let quantile = self.fit.false_alarms.map_or(self.fit.quantile, |rate| 1.0 - rate);
        let parts = Parts {
            method,
            noise,
            kernel: task.kernel.spec(),
            columns,
            support,
            rows,
            coefficients,
            frame,
            density,
            captured: expansion.captured / weight,
            mu: expansion.mu,
            beta: expansion.beta,
            variances: expansion.values.iter().map(|v| v / weight).collect(),
            center: task.center,
            n: task.n(),
            total_variance,
            mean_lost,
            fidelity,
            seed: self.fit.seed,
            scores: Scores::weighted(scores, weights.as_deref(), quantile),
            report,
            request: Some(Request { fit: self.fit.clone(), words: serde_json::Map::new() }),
            learned: None,
        };
        parts.check()?;
        let mut model = Model::packed(basis, parts);
        if noise > 0.0 {
            let scores = model.finite_scores_of_scaled(&sample)?;
            model.calibrated(Scores::weighted(scores, weights.as_deref(), quantile));
        }
        Ok(model)
    }

    /// Adds notes if fewer components or points were found than requested.
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
            report.notes.push(format!("{asked} components requested, {found} found: {why}"));
        }
        if let Some(Target::Support(asked)) = self.fit.target.filter(|t| *t != Target::Support(m)) {
            let why = if m < support.len() { DEPENDENT } else { fewer };
            report.notes.push(format!("{asked} support points requested, {m} kept: {why}"));
        }
        Ok(())
    }

    /// Returns the noise ε of the score.
    fn noise(&self, task: &Task, uncorrelated: bool, total: f64) -> Result<f64> {
        match (self.fit.statistic, uncorrelated) {
            (Statistic::Distance, _) => Ok(0.0),
            (Statistic::Mahalanobis, true) => Ok(model::noise(task.kernel.as_ref()) * total),
            (Statistic::Mahalanobis, false) => {
                Err(Error::parameter("statistic", "mahalanobis", "uncorrelated components: refit=true"))
            }
        }
    }

    /// Returns the fidelity. Reports its interval if it is an estimate, and adds a note if it is below the target.
    fn fidelity(&self, task: &Task, solution: &mut Solution) -> Result<f64> {
        let Solution { support, expansion, fidelity: stated, report, .. } = solution;
        let every_row = expansion.kept.len() == task.n();
        if !task.judged && stated.is_none() {
            // Exact kernel PCA captures at most the total variance.
            let total = expansion.trace - task.rows.weight() * dense::dot(&expansion.mu, &expansion.beta);
            let least = share(expansion.captured, total.max(expansion.captured));
            report.fidelity_interval = Some([least, 1.0]);
            return Ok(least);
        }
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
            report.notes.push(format!("fidelity {asked} requested, {fidelity:.6} reached"));
        }
        Ok(fidelity)
    }

    /// Returns the numbers of the training rows that threshold and p-values are computed from.
    fn scored_rows(&self, task: &Task, support: &Points) -> Vec<usize> {
        let scored = MAX_SCORED_ROWS.min(MAX_SCORED_WORK / (support.n() * (support.d() + 20))).max(1000);
        Random::new(self.fit.seed, Stream::Scored).sample(task.n(), scored)
    }
}

/// How close a model is to exact kernel PCA; the fields are those of [`Parts`].
#[derive(Default)]
struct Judgement {
    fidelity: f64,
    mean_lost: f64,
}

/// Rejects a solution without components.
fn check_variance(expansion: &Expansion) -> Result<()> {
    if !expansion.values.is_empty() {
        return Ok(());
    }
    let nothing = "the points kept hold none of the variance; keep more";
    let why = if is_spanned(expansion) { method::NO_VARIANCE } else { nothing };
    Err(Error::NoVariance { why: why.into() })
}

/// Returns whether the points kept span all rows.
fn is_spanned(expansion: &Expansion) -> bool {
    expansion.residual_trace <= SPANNED * expansion.trace
}

/// Caps the fidelity at 1, as nothing captures more than exact kernel PCA. An excess beyond rounding is an error: the
/// kernel is not positive semi-definite at the support.
fn not_above_one(fidelity: f64, task: &Task, expansion: &Expansion) -> Result<f64> {
    let excess = (fidelity - 1.0) * expansion.captured;
    let rounding = ABOVE_ONE * expansion.captured + ROUNDING * expansion.trace;
    if excess > rounding && !task.kernel.positive_semidefinite() {
        Err(Error::NotPositive { kernel: task.kernel.spec().name, value: -excess })
    } else {
        Ok(fidelity.min(1.0))
    }
}

/// Maximum number of rows whose kernel matrix is checked if the kernel may be indefinite.
const DEFINITE_ROWS: usize = 1000;
/// A negative eigenvalue larger than this share of the largest one is not due to rounding.
const NEGATIVE: f64 = 1e-8;

/// Rejects a kernel that has a negative eigenvalue on these rows or a sample of them. Methods only look at the rows
/// they choose and might not notice.
fn check_definite(task: &Task) -> Result<()> {
    let Task { kernel, rows, seed, watch, .. } = *task;
    if kernel.positive_semidefinite() {
        return Ok(());
    }
    let trace = trace(kernel, Weighted::of(rows), watch)?;
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

/// Returns `‖φ̄‖² − μᵀβ`, exactly for few rows, otherwise its bound: the mean squared distance of the rows to the span.
fn mean_lost(task: &Task, projected: f64, residual_trace: f64) -> Result<f64> {
    let n = task.n();
    if n > EXACT_MEAN_ROWS {
        return Ok(residual_trace / task.rows.weight());
    }
    let mean_norm = match task.known_mean_norm() {
        Some(known) => known,
        None => mean_norm(task.kernel, &Part::of(task.rows, &(0..n).collect::<Vec<_>>())?),
    };
    Ok((mean_norm - projected).max(0.0))
}

/// Returns `‖φ̄‖² = Σ_ij ω_i ω_j k(x_i, x_j)`, with ω = 1/n, or w / Σ w for weighted rows.
fn mean_norm(kernel: &Arc<dyn Kernel>, Part { points, weights }: &Part) -> f64 {
    let total = sample_weight::total(weights.as_deref(), points.n());
    let share = |i: usize| weights.as_ref().map_or(1.0, |weights| weights[i]) / total;
    let shares: Vec<f64> = (0..points.n()).map(share).collect();
    let column = MatRef::from_column_major_slice(&shares, shares.len(), 1);
    let means = Symmetric::new(kernel, points, false).product(column, Precision::Double);
    match weights {
        None => means.sum() / total,
        Some(_) => means.col(0).iter().zip(&shares).map(|(mean, share)| mean * share).sum(),
    }
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
    fn a_fit_builds_method_and_kernel_once_and_checks_the_table_once() {
        let points = toys::clusters(0);
        let classes = Labels::new((0..points.n()).map(|i| i / 30)).unwrap();
        let looked_at = |points: &Points| points.n() * points.d();
        for entry in method::METHODS {
            let labels = entry.capabilities.labelled.then_some(&classes);
            for scaling in [Scaling::Standard, Scaling::None] {
                let (method, kernel) = (Spec::new(entry.name), entry.kernel());
                let fit = Fit { method, kernel, components: Some(2), scaling, ..Fit::default() };
                let (_, counts) = counted(|| {
                    let table = Points::new(points.d(), points.values()).unwrap();
                    match labels {
                        Some(labels) => fit.run_labelled(&table, labels, None, &()).unwrap(),
                        None => fit.run(&table, None, &()).unwrap(),
                    }
                });
                let Counts { methods, kernels, numbers } = counts;
                assert_eq!((methods, kernels), (1, 1), "{}", entry.name);
                // Scores and moved points are checked too, but the table is not checked twice.
                let others = numbers - looked_at(&points);
                assert!(others <= looked_at(&points), "{} {scaling:?}: {others} beside the table", entry.name);
            }
        }
    }

    /// Rows that behave as if they were not in memory.
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
    fn rows_that_are_not_in_memory_give_the_same_bits() {
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
