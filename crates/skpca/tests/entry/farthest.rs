//! Farthest-first traversal (Gonzalez 1985): each row is the one farthest in feature space from all previous ones.
//!
//! ```text
//! ‖φ(x) − φ(z)‖² = k(x, x) − 2 k(x, z) + k(z, z)
//! ```

use super::{Capabilities, Entry, Method, Size, Solution, Support, Target, Task};
use crate::error::Result;
use crate::parameter::Parameter;
use crate::points::Points;
use crate::report::Report;
use crate::spec::Spec;
use crate::watch::check;

pub(super) const ENTRY: Entry = Entry {
    name: "farthest",
    summary: "rows that are each the farthest from all previous ones",
    source: "Gonzalez 1985",
    parameters: &[START],
    capabilities: Capabilities::NONE,
    build: |fields| Ok(Box::new(Farthest { start: fields.choice("start")? })),
};

const START: Parameter = Parameter::choice(
    "start",
    &["nearest", "farthest"],
    "the first row: nearest to the mean of the rows, or farthest from it",
);

#[derive(Debug)]
struct Farthest {
    start: &'static str,
}

impl Method for Farthest {
    fn fit(&self, task: &Task) -> Result<Solution> {
        let (points, n) = (task.rows.whole()?, task.n());
        let mut count = match task.aim() {
            Target::Support(m) => m,
            Target::Fidelity(_) => task.q.min(n),
        };
        let mut rows = vec![self.first(task, points)];
        let mut gaps = vec![f64::INFINITY; n];
        let expansion = loop {
            while rows.len() < count {
                check(task.watch, "choosing points", rows.len() as f64 / count as f64)?;
                rows.push(farthest(task, points, rows[rows.len() - 1], &mut gaps));
            }
            let chosen = increasing(&rows);
            let expansion = task.expansion(&chosen, None)?;
            match task.aim() {
                Target::Fidelity(asked) if count < n && task.fidelity(&chosen, &expansion)? < asked => {
                    count = (count + 1 + count / 8).min(n);
                }
                _ => break expansion,
            }
        };
        let method = Spec::new("farthest").with("start", self.start);
        let report = Report { rounds: 1, converged: true, ..Report::default() };
        Ok(Solution::new(method, Support::Rows(increasing(&rows)), expansion, report))
    }

    fn memory(&self, size: &Size) -> usize {
        let m = size.points(10 * size.q);
        8 * (size.reference() + 2 * size.n + 20 * m * m)
    }
}

impl Farthest {
    /// Returns the first row of the traversal, by `‖φ(x) − φ̄‖² = k(x, x) − 2 mean k(x, ·) + const`.
    fn first(&self, task: &Task, points: &Points) -> usize {
        let kernel = task.kernel;
        let mean = |x: &[f64]| points.rows().map(|z| kernel.eval(x, z)).sum::<f64>() / points.n() as f64;
        let distances = points.rows().map(|x| kernel.eval(x, x) - 2.0 * mean(x)).enumerate();
        let found = match self.start {
            "nearest" => distances.min_by(|a, b| a.1.total_cmp(&b.1)),
            _ => distances.max_by(|a, b| a.1.total_cmp(&b.1)),
        };
        found.expect("a table has rows").0
    }
}

/// Returns the row farthest from those chosen, the last of which is `last`. `gaps` are the squared distances of all
/// rows from the chosen ones.
fn farthest(task: &Task, points: &Points, last: usize, gaps: &mut [f64]) -> usize {
    let z = points.row(last);
    let length = task.kernel.eval(z, z);
    for (gap, x) in gaps.iter_mut().zip(points.rows()) {
        *gap = gap.min(task.kernel.eval(x, x) - 2.0 * task.kernel.eval(x, z) + length);
    }
    // A row must not be chosen again because of rounding.
    gaps[last] = f64::NEG_INFINITY;
    let best = gaps.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    best.expect("a table has rows").0
}

fn increasing(rows: &[usize]) -> Vec<usize> {
    let mut rows = rows.to_vec();
    rows.sort_unstable();
    rows
}
