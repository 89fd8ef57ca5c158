//! Runs as many fits as the budget allows, and recommends one of them.

use std::time::{Duration, Instant};

use skpca::method::{self, METHODS};
use skpca::{Error, Fit, Labels, Model, Points, Spec, Study, Target, format};

use super::budget::{Budget, Deadline};
use super::choice::{self, Candidate, Reason};
use super::judges::{Judges, Measure};
use super::{Case, Cell, Data, Plan, Recommended, Skipped, keeps_all_rows, report};
use crate::failure::Failure;
use crate::memory;
use crate::progress::Bar;

/// Exact kernel PCA of more rows than this is tried only if the user names it.
const EXACT_ROWS: usize = 20_000;
/// How the reason starts if a fit was stopped.
const STOPPED: &str = "stopped after";

/// What is fitted, and how it is judged.
pub struct Setting<'a> {
    pub plan: &'a Plan,
    pub study: &'a Study<'a>,
    /// The rows to fit.
    pub points: &'a Points<'a>,
    pub judges: &'a Judges<'a>,
    pub budget: &'a Budget,
    pub bar: &'a Bar,
}

/// The results so far.
pub struct Trials<'a> {
    setting: Setting<'a>,
    cells: Vec<Cell>,
    skipped: Vec<Skipped>,
}

/// A model and the time of its fit, or the reason for skipping it.
type Outcome = Result<(Model, Duration), String>;

impl<'a> Trials<'a> {
    pub fn new(setting: Setting<'a>) -> Trials<'a> {
        Trials { setting, cells: Vec::new(), skipped: Vec::new() }
    }

    /// Returns the models and the skipped cases, in the order of the registry.
    pub fn into_parts(mut self) -> (Vec<Cell>, Vec<Skipped>) {
        self.skipped.sort_by_key(|skipped| place(&skipped.case));
        (self.cells, self.skipped)
    }

    /// Tries every case. The next case is always one of the method that has taken the least time so far, so that slow
    /// methods do not starve the others. The default method starts; methods with a fixed size come last, and exact
    /// kernel PCA, the slowest with many rows, last of all.
    pub fn run(&mut self) -> Result<(), Failure> {
        let own = |method: &&Spec| method::entry(method).is_ok_and(|entry| entry.fixes_size(method));
        let (mut single, mut sparse): (Vec<&Spec>, Vec<&Spec>) = self.setting.plan.methods.iter().partition(own);
        sparse.sort_by_key(|method| method.name != Fit::default().method.name);
        single.sort_by_key(|method| keeps_all_rows(method));
        let targets = self.setting.plan.targets(self.setting.points.n());
        let mut queues: Vec<(f64, &Spec, std::vec::IntoIter<Target>)> =
            sparse.into_iter().map(|method| (0.0, method, targets.clone().into_iter())).collect();
        while let Some(least) = (0..queues.len()).min_by(|&a, &b| queues[a].0.total_cmp(&queues[b].0)) {
            let (seconds, method, left) = &mut queues[least];
            match left.next() {
                Some(target) => *seconds += self.attempt(Case { method: (*method).clone(), target: Some(target) })?,
                None => drop(queues.remove(least)),
            }
        }
        for method in single {
            self.attempt(Case { method: method.clone(), target: None })?;
        }
        self.cells.sort_by_key(|cell| (place(&cell.case), cell.model.m()));
        Ok(())
    }

    /// Tries a case and returns the seconds that it took.
    fn attempt(&mut self, case: Case) -> Result<f64, Failure> {
        let number = self.cells.len() + self.skipped.len() + 1;
        self.setting.bar.of(format!("fit {number}: {}, {}: ", case.method, case.target_text()));
        let start = Instant::now();
        match self.fitted(&case)? {
            Ok((mut model, time)) => {
                self.setting.plan.keep_columns(&mut model)?;
                self.cells.push(self.cell(case, model, time)?);
            }
            Err(why) => self.skipped.push(Skipped { case, why }),
        }
        Ok(start.elapsed().as_secs_f64())
    }

    fn cell(&self, case: Case, model: Model, time: Duration) -> Result<Cell, Failure> {
        let mut bytes = Vec::new();
        format::write(&model, &mut bytes)?;
        let judges = self.setting.judges;
        let (query, judged) = (judges.query(&model)?, judges.judged(&model)?);
        Ok(Cell { case, seconds: time.as_secs_f64(), query, bytes: bytes.len(), judged, model })
    }

    /// Repeats the fits on another split, the fastest first, as long as there is time. Returns the number of repeated
    /// fits.
    pub fn repeat(&mut self, study: &Study, judges: &Judges) -> Result<usize, Failure> {
        let mut order: Vec<usize> = (0..self.cells.len()).collect();
        order.sort_by(|&a, &b| self.cells[a].seconds.total_cmp(&self.cells[b].seconds));
        let mut done = 0;
        for i in order {
            let Case { method, target } = self.cells[i].case.clone();
            let Some(at) = self.setting.budget.for_repeat() else { break };
            self.setting.bar.of(format!("other rows held out: {method}, {}: ", self.cells[i].case.target_text()));
            let model = match study.fit(&method, target, &Deadline { bar: self.setting.bar, at }) {
                Ok((model, _)) => model,
                Err(Error::Interrupted) => continue,
                // A fit that fails on these rows has succeeded on those of the first split.
                Err(error) => {
                    reason_to_skip(error)?;
                    continue;
                }
            };
            if let (Some(judged), Some(more)) = (&mut self.cells[i].judged, judges.judged(&model)?) {
                judged.add(more);
                done += 1;
            }
        }
        Ok(done)
    }

    /// Fits a case, or says why it is skipped. Returns an error only if it concerns all cases.
    fn fitted(&self, case: &Case) -> Result<Outcome, Failure> {
        let (n, d) = (self.setting.points.n(), self.setting.points.d());
        if case.keeps_all_rows() && n > EXACT_ROWS && !self.setting.plan.methods_given {
            let method = &case.method;
            return Ok(Err(format!("it keeps every row: above {EXACT_ROWS} rows only with --methods {method}")));
        }
        let needed = self.fit(case).memory(n, d).unwrap_or(0);
        if memory::available().is_some_and(|free| needed > free) {
            return Ok(Err(format!("it needs about {} of memory, more than is free", memory::text(needed))));
        }
        let smaller = |s: &Skipped| match (s.case.target, case.target) {
            (Some(Target::Support(less)), Some(Target::Support(m))) => less < m && s.case.method == case.method,
            _ => false,
        };
        if self.skipped.iter().any(|s| smaller(s) && s.why.starts_with(STOPPED)) {
            return Ok(Err("a smaller one took too long".into()));
        }
        let Some(at) = self.setting.budget.for_fit(self.cells.is_empty()) else {
            return Ok(Err("no time left: raise --budget".into()));
        };
        let start = Instant::now();
        match self.setting.study.fit(&case.method, case.target, &Deadline { bar: self.setting.bar, at }) {
            Ok(fitted) => Ok(Ok(fitted)),
            Err(Error::Interrupted) => {
                let (took, share) = (start.elapsed().as_secs_f64(), at.duration_since(start).as_secs_f64());
                Ok(Err(format!("{STOPPED} {took:.1} s; its share of the budget was {share:.1} s")))
            }
            Err(error) => reason_to_skip(error).map(Err),
        }
    }

    fn fit(&self, case: &Case) -> Fit {
        Fit { method: case.method.clone(), target: case.target, ..self.setting.plan.base.clone() }
    }

    /// Returns the best cell that, fitted to all rows, finishes in time and still reaches the fidelity that it is
    /// recommended for; `whole` if the cells were fitted to all rows already.
    pub fn recommend(&self, data: &Data, whole: bool) -> Result<Option<Recommended>, Failure> {
        let Setting { plan, judges, bar, .. } = &self.setting;
        bar.of("the recommended model: ".into());
        let measure = judges.measure();
        let candidates: Vec<Candidate> = self.cells.iter().map(|cell| candidate(cell, measure)).collect();
        let mut late = 0;
        for (i, reason) in choice::ranked(&candidates, plan.fidelity, plan.fidelity_given) {
            let cell = &self.cells[i];
            let case = cell.case.clone();
            let (fit, start) = (self.fit(&case), Instant::now());
            let model = if whole {
                Model::new(cell.model.parts().clone())?
            } else if let Some(model) = self.again(&fit, data, cell.seconds)? {
                model
            } else {
                late += 1;
                continue;
            };
            let promised = matches!(reason, Reason::Fidelity | Reason::Quality | Reason::Same | Reason::TooFewRows)
                && cell.model.parts().fidelity >= plan.fidelity;
            if promised && model.parts().fidelity < plan.fidelity {
                continue;
            }
            let seconds = if whole { cell.seconds } else { start.elapsed().as_secs_f64() };
            let mut because = report::because(&self.cells, i, reason, measure, plan.fidelity);
            if late > 0 {
                because.push_str(&format!("; {late} ranked before it could not be fitted to all rows in time"));
            }
            return Ok(Some(Recommended { case, fit, model, seconds, reason: because, measure }));
        }
        Ok(None)
    }

    /// Fits to all rows, in at most half of the remaining time; `None` if that is not enough.
    fn again(&self, fit: &Fit, data: &Data, seconds: f64) -> Result<Option<Model>, Failure> {
        let now = Instant::now();
        let left = self.setting.budget.end().saturating_duration_since(now);
        // How the time of a fit grows with the rows depends on the method (at most quadratically for some, less for
        // most), so the fit is tried unless the time is too short even for the rows of the split.
        if seconds > left.as_secs_f64() {
            return Ok(None);
        }
        let deadline = Deadline { bar: self.setting.bar, at: now + left / 2 };
        let normal = data.normal_rows();
        let points = normal.as_deref().map(|rows| data.points.select(rows));
        let points = points.as_ref().unwrap_or(&data.points);
        let fitted = match data.classes.as_ref().filter(|_| fit.labelled().unwrap_or(false)) {
            Some(classes) => fit.run_labelled(points, &Labels::new(&classes.of)?, data.names.clone(), &deadline),
            None => fit.run(points, data.names.clone(), &deadline),
        };
        match fitted {
            Ok(mut model) => {
                self.setting.plan.keep_columns(&mut model)?;
                Ok(Some(model))
            }
            Err(Error::Interrupted) => Ok(None),
            Err(error) => reason_to_skip(error).map(|_| None),
        }
    }
}

fn candidate(cell: &Cell, measure: Measure) -> Candidate<'_> {
    Candidate {
        points: cell.model.m(),
        place: simplicity(&cell.case.method),
        fidelity: cell.model.parts().fidelity,
        evidence: cell.judged.as_ref().map_or(&[], |judged| judged.evidence(measure)),
    }
}

/// Rank of a method for simplicity: the default first, others in the order of the registry.
fn simplicity(method: &Spec) -> usize {
    let place = METHODS.iter().position(|entry| entry.name == method.name);
    if method.name == Fit::default().method.name { 0 } else { place.map_or(METHODS.len() + 1, |place| place + 1) }
}

/// Returns the reason for skipping one method, or the error if it would stop every method.
fn reason_to_skip(error: Error) -> Result<String, Failure> {
    match error {
        Error::Parameter { .. } | Error::NoVariance { .. } | Error::Numerical { .. } => Ok(error.to_string()),
        _ => Err(error.into()),
    }
}

/// Sorting key of a case in tables.
fn place(case: &Case) -> (Option<usize>, String) {
    (METHODS.iter().position(|entry| entry.name == case.method.name), case.method.to_string())
}
