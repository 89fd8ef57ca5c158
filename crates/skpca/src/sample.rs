//! Fits by methods that keep something per row, if not all rows fit in memory: points are chosen on a sample, and
//! components are those of all rows.
//!
//! ```text
//! rows ── seeded sample ──► method ──► points ── one pass over all rows ──► components, fidelity
//!                             ▲                                                │
//!                             └───────────── higher target, if too low ────────┘
//! ```

use crate::error::{Error, Result};
use crate::fit::Fit;
use crate::kernel_matrix::gram;
use crate::method::{self, FIDELITY, Solution, Support, Target, Task};
use crate::plan::Plan;
use crate::points::Points;
use crate::random::{Random, Stream};

/// Maximum number of rows in a sample: more would hardly give better points.
const MAX_ROWS: usize = 100_000;
/// Minimum number of rows in a sample.
const MIN_ROWS: usize = 1000;
/// Number of further fits to the sample, with a higher target, if the fidelity on all rows is too low.
const RETRIES: usize = 2;
/// Increase of the target per retry, as a multiple of the fidelity that was missing.
const RETRY_INCREASE: f64 = 1.5;

impl Fit {
    /// Returns the size of the sample for this many bytes of memory. It is halved until the fit fits in memory, so that
    /// slightly more or less memory does not change the model.
    pub(crate) fn sample_within(&self, n: usize, d: usize, bytes: usize) -> Result<usize> {
        let mut rows = MAX_ROWS.min(n);
        while rows / 2 >= MIN_ROWS && self.sampled_memory(rows, d)? > bytes {
            rows /= 2;
        }
        Ok(rows)
    }

    /// Returns the bytes that a fit to this many rows needs, including the rows.
    pub(crate) fn sampled_memory(&self, rows: usize, d: usize) -> Result<usize> {
        Ok(self.memory(rows, d)?.saturating_add(rows.saturating_mul(8 * d)))
    }
}

impl Plan {
    /// Runs the method on a sample of `size` rows, and computes the components of all rows over its points.
    pub(crate) fn solve_on_sample(&self, task: &Task, size: usize) -> Result<Solution> {
        let n = task.n();
        if let Some(Target::Support(m)) = task.target.filter(|t| matches!(t, Target::Support(m) if *m > size)) {
            return Err(Error::parameter("support", m, &format!("at most the {size} rows that fit in memory at once")));
        }
        let numbers = Random::new(task.seed, Stream::SampledRows).sample(n, size);
        let points = task.rows.gather(&numbers)?;
        let sample = Sample { numbers, points };
        let asked = self.fidelity_asked(task)?;
        let mut aim = task.target;
        let mut solution = sample.solve(self, task, aim)?;
        for _ in 0..RETRIES {
            let missing = match asked {
                Some(asked) if solution.fidelity.is_none() => asked - solution.reached(task)?,
                _ => break,
            };
            if missing <= 0.0 {
                break;
            }
            let last = if let Some(Target::Fidelity(last)) = aim { last } else { FIDELITY };
            aim = Some(Target::Fidelity((last + RETRY_INCREASE * missing).min(1.0)));
            solution = sample.solve(self, task, aim)?;
        }
        solution.report.notes.push(format!(
            "{} holds something of every row, and {n} rows do not fit in memory: its points were chosen on a sample of {size} \
             rows; components and fidelity are those of all",
            solution.method.name
        ));
        Ok(solution)
    }

    /// Returns the target fidelity, if the method has one.
    fn fidelity_asked(&self, task: &Task) -> Result<Option<f64>> {
        Ok(match task.target {
            Some(Target::Fidelity(asked)) => Some(asked),
            Some(Target::Support(_)) => None,
            None => (!method::entry(&self.fit.method)?.fixes_size(&self.fit.method)).then_some(FIDELITY),
        })
    }
}

/// Some rows with their numbers.
struct Sample {
    numbers: Vec<usize>,
    points: Points<'static>,
}

impl Sample {
    fn solve(&self, plan: &Plan, task: &Task, aim: Option<Target>) -> Result<Solution> {
        let mut on_sample = task.on(&self.points);
        let labels = task.labels.map(|labels| labels.select(&self.numbers));
        (on_sample.target, on_sample.labels) = (aim, labels.as_ref());
        let found = plan.method.fit(&on_sample)?;
        self.over_all_rows(task, found)
    }

    /// Returns the same points with the components of all rows; a method's own components stay the same.
    fn over_all_rows(&self, task: &Task, found: Solution) -> Result<Solution> {
        let q = found.expansion.values.len();
        if q == 0 {
            return Ok(found);
        }
        let kept = &found.expansion.kept;
        let (support, points) = match &found.support {
            Support::Rows(chosen) => {
                let chosen: Vec<usize> = kept.iter().map(|&i| chosen[i]).collect();
                let rows = chosen.iter().map(|&row| self.numbers[row]).collect();
                (Support::Rows(rows), self.points.select(&chosen))
            }
            Support::Points(points) => (Support::Points(points.select(kept)), points.select(kept)),
        };
        let task = task.with_components(q);
        let span = task.span(&points)?;
        let expansion = if found.expansion.frame.is_some() {
            span.given(found.expansion.coefficients.as_ref(), || gram(task.kernel, &points))?
        } else {
            span.best(q, task.watch)?
        };
        let reference = found.reference.is_some().then(|| task.reference().cloned()).transpose()?;
        Ok(Solution { support, expansion, reference, ..found })
    }
}

impl Solution {
    /// Returns the fidelity of the components.
    fn reached(&self, task: &Task) -> Result<f64> {
        match &self.support {
            Support::Rows(rows) => task.fidelity(rows, &self.expansion),
            Support::Points(points) => task.fidelity_of(points, &self.expansion),
        }
    }
}
