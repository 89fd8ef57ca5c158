//! Exact kernel PCA (Schölkopf, Smola & Müller 1998), the reference: every row is kept.
//!
//! ```text
//! K̃ u = λ u,   a = u / √λ,   1ᵀa = 0     so  Σ a_i φ(x_i) is the same with centred and uncentred atoms
//! ```

use faer::{Mat, MatRef};

use super::{Capabilities, Entry, Method, Size, Solution, Support, Target, Task};
use crate::dense;
use crate::eigen::{Accuracy, KernelOperator, Operator, WeightedKernel, kernel_memory, top_of_kernel, top_of_weighted};
use crate::error::{Error, Result};
use crate::kernel_matrix::diagonal;
use crate::points::Points;
use crate::report::Report;
use crate::spec::Spec;
use crate::spectrum::{Expansion, resolved};

pub(super) const ENTRY: Entry = Entry {
    name: "exact",
    summary: "kernel PCA with every point kept: the reference",
    source: "Schölkopf, Smola & Müller 1998",
    parameters: &[],
    capabilities: Capabilities { keeps_all_rows: true, weights: true, ..Capabilities::NONE },
    build: |_| Ok(Box::new(Exact)),
};

#[derive(Debug)]
struct Exact;

impl Method for Exact {
    fn fit(&self, task: &Task) -> Result<Solution> {
        let n = task.n();
        if let Some(Target::Support(m)) = task.target.filter(|t| *t != Target::Support(n)) {
            return Err(Error::parameter("support", m, "no target, or all rows: exact keeps every point"));
        }
        let points = task.rows.whole()?;
        let squares = diagonal(task.kernel, points)?;
        if let Some(weights) = task.rows.weights() {
            return weighted(task, points, weights, &squares);
        }
        let trace = squares.iter().sum::<f64>();
        let operator = KernelOperator::new(task.kernel, points, task.center);
        let pairs = top_of_kernel(&operator, task.q, Accuracy { trace, ..Accuracy::default() }, task.seed, task.watch)?;
        let mut coefficients = pairs.vectors;
        for (j, value) in pairs.values.iter().enumerate() {
            // Restore 1ᵀa = 0. Rounding destroys it where λ is near 0, the eigenvalue of 1, and K is not small along 1.
            let mean = if task.center { coefficients.col(j).iter().sum::<f64>() / n as f64 } else { 0.0 };
            coefficients.col_mut(j).iter_mut().for_each(|a| *a = (*a - mean) / value.sqrt());
        }
        let (coefficients, values) = orthonormal(|a| operator.apply(a), coefficients, pairs.values, &squares);
        let share = if task.center { 1.0 / n as f64 } else { 0.0 };
        let report =
            Report { gap: Some(pairs.residual), rounds: pairs.rounds, converged: pairs.converged, ..Report::default() };
        let expansion = Expansion {
            kept: (0..n).collect(),
            coefficients,
            frame: None,
            captured: values.iter().sum(),
            values,
            mu: operator.means(),
            beta: vec![share; n],
            residual_trace: 0.0,
            trace,
        };
        Ok(Solution::new(Spec::new("exact"), Support::Rows((0..n).collect()), expansion, report))
    }

    fn memory(&self, size: &Size) -> usize {
        let packed = 4 * size.n * size.d;
        8 * (packed + kernel_memory(size.n, size.d, size.q))
    }
}

/// Exact kernel PCA of weighted rows: `D^½ K̃ D^½ u = λ u,  a = D^½ u / √λ`; everything else is as if rows were
/// repeated.
fn weighted(task: &Task, points: &Points, weights: &[f64], squares: &[f64]) -> Result<Solution> {
    let n = task.n();
    let trace = dense::dot(squares, weights);
    let operator = WeightedKernel::new(task.kernel, points, weights, task.center);
    let accuracy = Accuracy { trace, ..Accuracy::default() };
    let pairs = top_of_weighted(&operator, task.q, accuracy, task.seed, task.watch)?;
    let coefficients = operator.coefficients(&pairs.vectors, &pairs.values);
    // If features are centred, coefficients sum to zero, and K gives the same products as K̃.
    let (coefficients, values) = orthonormal(|a| operator.plain(a), coefficients, pairs.values, squares);
    let report =
        Report { gap: Some(pairs.residual), rounds: pairs.rounds, converged: pairs.converged, ..Report::default() };
    let expansion = Expansion {
        kept: (0..n).collect(),
        coefficients,
        frame: None,
        captured: values.iter().sum(),
        values,
        mu: operator.means().to_vec(),
        beta: operator.mean(),
        residual_trace: 0.0,
        trace,
    };
    Ok(Solution::new(Spec::new("exact"), Support::Rows((0..n).collect()), expansion, report))
}

/// Relative rounding error of a component's norm above which components are orthonormalised again.
const UNEVEN: f64 = 1e-9;

/// Drops components that consist of rounding errors and makes the others orthonormal again. The error of an eigenvector
/// is that of rounding the largest eigenvalue λ₁; that of its component, divided by √λ, is `ε λ₁/λ`.
fn orthonormal(
    product: impl Fn(MatRef<f64>) -> Mat<f64>,
    coefficients: Mat<f64>,
    values: Vec<f64>,
    squares: &[f64],
) -> (Mat<f64>, Vec<f64>) {
    let resolved = resolved(coefficients.as_ref(), squares);
    let mut a = dense::columns(&coefficients, &resolved);
    let values: Vec<f64> = resolved.iter().map(|&j| values[j]).collect();
    let (Some(first), Some(last)) = (values.first(), values.last()) else { return (a, values) };
    if f64::EPSILON * first > UNEVEN * last
        && let Some(l) = dense::cholesky(dense::product(a.transpose(), product(a.as_ref()).as_ref()).as_ref())
    {
        dense::divide_by_transposed(a.as_mut(), l.as_ref());
    }
    (a, values)
}
