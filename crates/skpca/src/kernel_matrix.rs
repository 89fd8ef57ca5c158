//! The kernel matrix of a few points, and the diagonal of that of all rows.

use std::sync::Arc;

use faer::{Mat, MatMut};
use rayon::prelude::*;

use crate::blocks;
use crate::error::{Error, Result};
use crate::gram::{Basis, stretches};
use crate::kernel::Kernel;
use crate::points::Points;

/// Kernel values whose squares, summed, neither vanish nor overflow.
const MAGNITUDES: std::ops::Range<f64> = 1e-140..1e140;

/// `k(x_i, x_i)`, refused where it overflows, is negative, or is so small or large that its square is no number.
pub(crate) fn diagonal(kernel: &Arc<dyn Kernel>, points: &Points) -> Result<Vec<f64>> {
    // A conformal kernel's f is that of the blocks to the last bit: where its terms cancel, another rounding would show.
    let (base, f) = match kernel.conformal() {
        Some(conformal) => (&conformal.base, Some(stretches(conformal, points))),
        None => (kernel, None),
    };
    let value = |i: usize| base.eval(points.row(i), points.row(i)) * f.as_ref().map_or(1.0, |f| f[i] * f[i]);
    let values: Vec<f64> = (0..points.n()).into_par_iter().map(value).collect();
    if let Some(row) = values.iter().position(|v| !v.is_finite()) {
        return Err(Error::Overflow { kernel: kernel.spec().name, row });
    }
    let lowest = values.iter().copied().fold(0.0, f64::min);
    if lowest < 0.0 {
        return Err(Error::NotPositive { kernel: kernel.spec().name, value: lowest });
    }
    let largest = values.iter().copied().fold(0.0, f64::max);
    if !MAGNITUDES.contains(&largest) && points.values().iter().any(|v| *v != 0.0) {
        let why =
            format!("values of the {} kernel up to {largest:e} leave no room for their squares", kernel.spec().name);
        return Err(Error::Numerical { why });
    }
    Ok(values)
}

/// What [`diagonal`] refuses, looked for only where the `trace` leaves room for it.
pub(crate) fn check_magnitude(kernel: &Arc<dyn Kernel>, points: &Points, trace: f64) -> Result<()> {
    // The largest of n values is between trace / n and trace.
    let sound = trace < MAGNITUDES.end && trace / points.n() as f64 >= MAGNITUDES.start;
    if sound { Ok(()) } else { diagonal(kernel, points).map(drop) }
}

/// The kernel matrix of a few points.
pub(crate) fn gram(kernel: &Arc<dyn Kernel>, points: &Points<'static>) -> Mat<f64> {
    let mut k = Mat::zeros(points.n(), points.n());
    gram_rows(&Basis::new(kernel.clone(), points.clone()), points, k.as_mut());
    k
}

/// Blocks of rows of the kernel matrix, in parallel if there are several.
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
