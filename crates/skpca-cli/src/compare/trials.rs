//! Which fits are tried in the time there is, and which of them is recommended.

use std::time::{Duration, Instant};

use skpca::method::{self, METHODS};
use skpca::{Error, Fit, Labels, Model, Points, Spec, Study, Target};

use super::budget::{Budget, Deadline};
use super::choice::{self, Candidate, Reason};
use super::judges::Judges;
use super::{Case, Cell, Data, Plan, Recommended, Skipped, keeps_all_rows, report};
use crate::failure::Failure;
use crate::memory;
use crate::progress::Bar;

/// Exact kernel PCA of more rows is tried only where it is asked for by name.
const EXACT_ROWS: usize = 20_000;
/// How the reason of a fit that was stopped begins.
const STOPPED: &str = "stopped after";

/// Fits, as far as they have come.
pub struct Trials<'a> {
    plan: &'a Plan,
    study: &'a Study<'a>,
    /// The rows that are fitted.
    points: &'a Points<'a>,
    judges: &'a Judges<'a>,
    budget: &'a Budget,
    bar: &'a Bar,
    cells: Vec<Cell>,
    skipped: Vec<Skipped>,
}

/// A model and the time of its fit, or why there is none.
type Outcome = Result<(Model, Duration), String>;

impl<'a> Trials<'a> {
    pub fn new(
        plan: &'a Plan,
        study: &'a Study<'a>,
        points: &'a Points<'a>,
        judges: &'a Judges<'a>,
        budget: &'a Budget,
        bar: &'a Bar,
    ) -> Trials<'a> {
        Trials { plan, study, points, judges, budget, bar, cells: Vec::new(), skipped: Vec::new() }
    }

    /// Models and what is missing, in the order of the registry.
    pub fn into_parts(mut self) -> (Vec<Cell>, Vec<Skipped>) {
        self.skipped.sort_by_key(|skipped| place(&skipped.case));
        (self.cells, self.skipped)
    }

    /// Tries every case. The next is always of the method that has taken least time so far, so that slow ones do not keep others
    /// from theirs; methods that have one size come last, exact kernel PCA, the slowest with many rows, last of all.
    pub fn run(&mut self) -> Result<(), Failure> {
        let own = |method: &&Spec| method::entry(method).is_ok_and(|entry| entry.fixes_size(method));
        let (mut single, sparse): (Vec<&Spec>, Vec<&Spec>) = self.plan.methods.iter().partition(own);
        single.sort_by_key(|method| keeps_all_rows(method));
        let targets = self.plan.targets(self.points.n());
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

    /// Tries a case; returns the seconds it took.
    fn attempt(&mut self, case: Case) -> Result<f64, Failure> {
        let number = self.cells.len() + self.skipped.len() + 1;
        self.bar.of(format!("fit {number}: {}, {}: ", case.method, case.asked()));
        let start = Instant::now();
        match self.fitted(&case)? {
            Ok((mut model, time)) => {
                model.ignore(self.plan.ignored.clone());
                self.cells.push(self.judges.cell(case, model, time)?);
            }
            Err(why) => self.skipped.push(Skipped { case, why }),
        }
        Ok(start.elapsed().as_secs_f64())
    }

    /// An error only where no case could do better.
    fn fitted(&self, case: &Case) -> Result<Outcome, Failure> {
        let (n, d) = (self.points.n(), self.points.d());
        if case.keeps_all_rows() && n > EXACT_ROWS && !self.plan.named {
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
        let Some(at) = self.budget.of_one(self.cells.is_empty()) else {
            return Ok(Err("no time left: raise --budget".into()));
        };
        let start = Instant::now();
        match self.study.fit(&case.method, case.target, &Deadline { bar: self.bar, at }) {
            Ok(fitted) => Ok(Ok(fitted)),
            Err(Error::Interrupted) => {
                let (took, share) = (start.elapsed().as_secs_f64(), at.duration_since(start).as_secs_f64());
                Ok(Err(format!("{STOPPED} {took:.1} s; its share of the budget was {share:.1} s")))
            }
            Err(error) => of_one(error).map(Err),
        }
    }

    fn fit(&self, case: &Case) -> Fit {
        Fit { method: case.method.clone(), target: case.target, ..self.plan.base.clone() }
    }

    /// The best cell whose fit to all rows ends in time and holds what it is recommended for; `whole` if all rows were fitted.
    pub fn recommend(&self, data: &Data, whole: bool) -> Result<Option<Recommended>, Failure> {
        self.bar.of("the model recommended: ".into());
        let candidate = |cell: &Cell| Candidate {
            points: cell.model.m(),
            fidelity: cell.model.parts().fidelity,
            quality: cell.judged.as_ref().and_then(|judged| self.judges.quality(judged)),
        };
        let candidates: Vec<Candidate> = self.cells.iter().map(candidate).collect();
        let best = candidates.iter().filter_map(|c| c.quality).map(|q| q.0).fold(f64::NEG_INFINITY, f64::max);
        let mut late = 0;
        for (i, reason) in choice::ranked(&candidates, self.plan.fidelity, self.plan.asked) {
            let cell = &self.cells[i];
            let case = cell.case.clone();
            let (fit, start) = (self.fit(&case), Instant::now());
            let model = match whole {
                true => Model::new(cell.model.parts().clone())?,
                false => match self.again(&fit, data, cell.seconds)? {
                    Some(model) => model,
                    None => {
                        late += 1;
                        continue;
                    }
                },
            };
            if reason == Reason::Fidelity && model.parts().fidelity < self.plan.fidelity {
                continue;
            }
            let seconds = if whole { cell.seconds } else { start.elapsed().as_secs_f64() };
            let mut because = report::because(cell, reason, self.judges.measure(), self.plan.fidelity, best);
            if late > 0 {
                because.push_str(&format!("; {late} that came before it could not be fitted to all rows in time"));
            }
            return Ok(Some(Recommended { case, fit, model, seconds, reason: because }));
        }
        Ok(None)
    }

    /// A fit to all rows, in half of the time that is left; nothing if that is not enough.
    fn again(&self, fit: &Fit, data: &Data, seconds: f64) -> Result<Option<Model>, Failure> {
        let now = Instant::now();
        let left = self.budget.end().saturating_duration_since(now);
        // Some fits take time that grows with the square of the rows, most less: those that may end are tried.
        if seconds > left.as_secs_f64() {
            return Ok(None);
        }
        let deadline = Deadline { bar: self.bar, at: now + left / 2 };
        let fitted = match data.classes.as_ref().filter(|_| fit.labelled().unwrap_or(false)) {
            Some(classes) => fit.run_labelled(&data.points, &Labels::new(&classes.of)?, data.names.clone(), &deadline),
            None => fit.run(&data.points, data.names.clone(), &deadline),
        };
        match fitted {
            Ok(mut model) => {
                model.ignore(self.plan.ignored.clone());
                Ok(Some(model))
            }
            Err(Error::Interrupted) => Ok(None),
            Err(error) => of_one(error).map(|_| None),
        }
    }
}

/// What one method cannot do, others can; what is wrong with the data, all would say.
fn of_one(error: Error) -> Result<String, Failure> {
    match error {
        Error::Parameter { .. } | Error::NoVariance { .. } | Error::Numerical { .. } => Ok(error.to_string()),
        _ => Err(error.into()),
    }
}

/// Where a case stands in tables.
fn place(case: &Case) -> (Option<usize>, String) {
    (METHODS.iter().position(|entry| entry.name == case.method.name), case.method.to_string())
}
