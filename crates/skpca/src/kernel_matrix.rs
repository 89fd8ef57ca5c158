//! The kernel matrix of a few points, and the diagonal of the kernel matrix of all rows.

use std::sync::Arc;

use faer::{Mat, MatMut};

use crate::blocks;
use crate::dense;
use crate::error::{Error, Result};
use crate::gram::{Basis, stretches};
use crate::kernel::{Conformal, Kernel, kernel_of, with_kernel};
use crate::parcel::Parcel;
use crate::points::Points;
use crate::rows::{Errand, Pass, Rows, Weighted, fold};
use crate::sample_weight;
use crate::watch::Watch;

/// Range of kernel values whose sums of squares neither underflow nor overflow.
const MAGNITUDES: std::ops::Range<f64> = 1e-140..1e140;

/// Computes `k(x_i, x_i)`; values that overflow, are negative, or cannot be squared are an error.
pub(crate) fn diagonal(kernel: &Arc<dyn Kernel>, points: &Points) -> Result<Vec<f64>> {
    let blocks = blocks::map(points.n(), |rows| {
        let (first, mut seen) = (rows.start, Summary::empty());
        let values = own_values(kernel, &points.slice(rows.clone()));
        seen.add(&values, None, &points.slice(rows), first);
        (values, seen)
    });
    let mut all = Summary::empty();
    blocks.iter().for_each(|(_, seen)| all.merge(seen));
    all.check(kernel)?;
    Ok(blocks.into_iter().flat_map(|(values, _)| values).collect())
}

/// Computes `Σ w_i k(x_i, x_i)` over all rows, with the same errors as [`diagonal`].
pub(crate) fn trace(kernel: &Arc<dyn Kernel>, rows: Weighted, watch: &dyn Watch) -> Result<f64> {
    let Weighted { rows, weights } = rows;
    if kernel.unit_diagonal() {
        // All values are 1, so that no pass over the rows is needed.
        return Ok(sample_weight::total(weights, rows.n()));
    }
    let seen = fold(rows, &Trace { kernel: kernel.clone(), weights }, (watch, "trace"))?;
    seen.check(kernel)?;
    Ok(seen.sum)
}

/// Returns the errors of [`trace`]; makes a pass over the rows only if the known trace does not rule them out.
pub(crate) fn check_magnitude(kernel: &Arc<dyn Kernel>, rows: &dyn Rows, known: f64) -> Result<()> {
    // The largest of n values is between trace / n and trace.
    let sound = known < MAGNITUDES.end && known / rows.weight() >= MAGNITUDES.start;
    if sound { Ok(()) } else { trace(kernel, Weighted::of(rows), &()).map(drop) }
}

/// Computes `k(x, x)` of each row. The f of a conformal kernel is computed as for blocks, to the last bit: if its terms
/// cancel, a different rounding would be visible.
fn own_values(kernel: &Arc<dyn Kernel>, x: &Points) -> Vec<f64> {
    match Conformal::of(kernel.as_ref()) {
        None => x.rows().map(|x| kernel.eval(x, x)).collect(),
        Some(conformal) => {
            let f = stretches(conformal, x);
            x.rows().zip(f).map(|(x, f)| conformal.base.eval(x, x) * (f * f)).collect()
        }
    }
}

/// Name of the pass in parcels.
pub(crate) const TRACE: &str = "trace";

/// Recreates the pass on another machine.
pub(crate) fn trace_of_others(parcel: Parcel) -> Result<Box<dyn Errand>> {
    Ok(Box::new(Trace { kernel: kernel_of(&parcel)?, weights: None }))
}

struct Trace<'a> {
    kernel: Arc<dyn Kernel>,
    weights: Option<&'a [f64]>,
}

impl Pass for Trace<'_> {
    type Sum = Summary;

    fn zero(&self) -> Summary {
        Summary::empty()
    }

    fn add(&self, sum: &mut Summary, block: &Points, first: usize) {
        let weights = self.weights.map(|weights| &weights[first..first + block.n()]);
        sum.add(&own_values(&self.kernel, block), weights, block, first);
    }

    fn merge(&self, left: &mut Summary, right: Summary) {
        left.merge(&right);
    }

    fn parcel(&self) -> Parcel {
        with_kernel(Parcel::new(TRACE, Vec::new()), &self.kernel)
    }

    fn numbers(&self, sum: Summary) -> Vec<f64> {
        let Summary { sum, lowest, largest, overflows, varied } = sum;
        vec![sum, lowest, largest, overflows.map_or(-1.0, |row| row as f64), f64::from(u8::from(varied))]
    }

    fn sum(&self, numbers: Vec<f64>) -> Summary {
        let overflows = (numbers[3] >= 0.0).then_some(numbers[3] as usize);
        Summary { sum: numbers[0], lowest: numbers[1], largest: numbers[2], overflows, varied: numbers[4] != 0.0 }
    }
}

/// Summary of `k(x, x)` over some rows.
#[derive(Clone, Copy)]
struct Summary {
    sum: f64,
    lowest: f64,
    largest: f64,
    /// The first row whose value is not finite.
    overflows: Option<usize>,
    /// Whether any row is not zero.
    varied: bool,
}

impl Summary {
    fn empty() -> Summary {
        Summary { sum: 0.0, lowest: 0.0, largest: 0.0, overflows: None, varied: false }
    }

    fn add(&mut self, values: &[f64], weights: Option<&[f64]>, block: &Points, first: usize) {
        let overflows = values.iter().position(|v| !v.is_finite()).map(|at| first + at);
        let (low, high) = values.iter().fold((0.0, 0.0), |(low, high): (f64, f64), v| (low.min(*v), high.max(*v)));
        let varied = !self.varied && block.values().iter().any(|v| *v != 0.0);
        let sum = weights.map_or_else(|| values.iter().sum(), |weights| dense::dot(values, weights));
        self.merge(&Summary { sum, lowest: low, largest: high, overflows, varied });
    }

    fn merge(&mut self, other: &Summary) {
        self.sum += other.sum;
        self.lowest = self.lowest.min(other.lowest);
        self.largest = self.largest.max(other.largest);
        self.overflows = self.overflows.or(other.overflows);
        self.varied |= other.varied;
    }

    fn check(&self, kernel: &Arc<dyn Kernel>) -> Result<()> {
        let name = || kernel.spec().name;
        if let Some(row) = self.overflows {
            return Err(Error::Overflow { kernel: name(), row });
        }
        if self.lowest < 0.0 {
            return Err(Error::NotPositive { kernel: name(), value: self.lowest });
        }
        if !MAGNITUDES.contains(&self.largest) && self.varied {
            let (name, largest) = (name(), self.largest);
            let why = format!("values of the {name} kernel up to {largest:e} are too large or too small to be squared");
            return Err(Error::Numerical { why });
        }
        Ok(())
    }
}

/// Computes the kernel matrix of a few points.
pub(crate) fn gram(kernel: &Arc<dyn Kernel>, points: &Points<'static>) -> Mat<f64> {
    let mut k = Mat::zeros(points.n(), points.n());
    gram_rows(&Basis::new(kernel.clone(), points.clone()), points, k.as_mut());
    k
}

/// Computes blocks of rows of the kernel matrix, in parallel if there are several.
fn gram_rows(basis: &Basis, points: &Points, k: MatMut<f64>) {
    if points.n() <= blocks::ROWS {
        return basis.block(points, k);
    }
    let half = (points.n() / 2).next_multiple_of(blocks::ROWS);
    let (above, below) = k.split_at_row_mut(half);
    rayon::join(
        || gram_rows(basis, &points.slice(0..half), above),
        || gram_rows(basis, &points.slice(half..points.n()), below),
    );
}
