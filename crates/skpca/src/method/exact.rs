//! Exact kernel PCA (Schölkopf, Smola & Müller 1998): the reference. Every point is kept.
//!
//! ```text
//! K̃ u = λ u,   a = u / √λ,   1ᵀa = 0     so  Σ a_i φ(x_i) is the same with centred and uncentred atoms
//! ```

use super::{Capabilities, DEPENDENT, Entry, Method, Report, Size, Solution, Support, Target, Task};
use crate::eigen::{Accuracy, KernelOperator, kernel_memory, top_of_kernel};
use crate::error::{Error, Result};
use crate::factor::diagonal;
use crate::spec::Spec;
use crate::spectrum::Expansion;

pub(super) const ENTRY: Entry = Entry {
    name: "exact",
    summary: "kernel PCA with every point kept: the reference",
    source: "Schölkopf, Smola & Müller 1998",
    parameters: &[],
    capabilities: Capabilities { keeps_all_rows: true, ..Capabilities::NONE },
    build: |_| Ok(Box::new(Exact)),
};

#[derive(Debug)]
struct Exact;

impl Method for Exact {
    fn fit(&self, task: &mut Task) -> Result<Solution> {
        let task = &*task;
        let n = task.points.n();
        if let Some(Target::Support(m)) = task.target.filter(|t| *t != Target::Support(n)) {
            return Err(Error::parameter("support", m, "no target, or all rows: exact keeps every point"));
        }
        let trace = diagonal(task.kernel, task.points)?.iter().sum::<f64>();
        let operator = KernelOperator::new(task.kernel, task.points, task.center);
        let pairs = top_of_kernel(&operator, task.q, Accuracy { trace, ..Accuracy::default() }, task.seed, task.watch)?;
        let mut coefficients = pairs.vectors;
        for (j, value) in pairs.values.iter().enumerate() {
            // 1ᵀa = 0 is lost to rounding where λ is near the eigenvalue 0 that 1 has, and K is not small along 1.
            let mean = if task.center { coefficients.col(j).iter().sum::<f64>() / n as f64 } else { 0.0 };
            coefficients.col_mut(j).iter_mut().for_each(|a| *a = (*a - mean) / value.sqrt());
        }
        let share = if task.center { 1.0 / n as f64 } else { 0.0 };
        let report =
            Report { gap: Some(pairs.residual), rounds: pairs.rounds, converged: pairs.converged, ..Report::default() };
        let expansion = Expansion {
            kept: (0..n).collect(),
            coefficients,
            frame: None,
            captured: pairs.values.iter().sum(),
            values: pairs.values,
            means: operator.means(),
            mean: vec![share; n],
            residual_trace: 0.0,
            trace,
        };
        Ok(Solution {
            method: Spec::new("exact"),
            support: Support::Rows((0..n).collect()),
            expansion,
            density: None,
            fidelity: None,
            fewer: DEPENDENT,
            report,
        })
    }

    fn memory(&self, size: &Size) -> usize {
        let packed = 4 * size.n * size.d;
        8 * (packed + kernel_memory(size.n, size.d, size.q))
    }
}
