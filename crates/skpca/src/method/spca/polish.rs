//! Loadings on given columns whose span captures most.
//!
//! ```text
//! captured = tr QᵀSQ + vᵀMv / vᵀNv,   N = I − QQᵀ,  M = N S N,   Q an orthonormal basis of all loadings but v
//! ```
//!
//! Each loading in turn is replaced by the leading vector of this quotient over its own columns, so that every step
//! increases the captured variance. The columns are those that the elastic nets selected; their shrinkage is undone.

use faer::Mat;

use crate::dense;
use crate::eigen::{Accuracy, top};
use crate::error::Result;
use crate::watch::{Watch, check};

/// Relative increase of the captured variance in a sweep over all loadings below which the iteration ends.
const TOLERANCE: f64 = 1e-5;
/// Maximum number of sweeps.
const SWEEPS: usize = 50;
/// A column with less than this squared length outside the span of the others would add only rounding errors.
const OUTSIDE: f64 = 1e-10;

/// Returns polished loadings of unit length on the same columns, and the number of sweeps.
pub(super) fn polished(
    s: &Mat<f64>,
    mut loadings: Mat<f64>,
    seed: u64,
    watch: &dyn Watch,
) -> Result<(Mat<f64>, usize)> {
    let mut before = 0.0;
    for sweep in 1..=SWEEPS {
        check(watch, "polishing", sweep as f64 / (SWEEPS + 1) as f64)?;
        let mut captured = before;
        for k in 0..loadings.ncols() {
            if let Some((share, v)) = best(s, &loadings, k, seed, watch)? {
                loadings.col_mut(k).copy_from(v.col(0));
                captured = share;
            }
        }
        if captured <= before * (1.0 + TOLERANCE) {
            return Ok((loadings, sweep));
        }
        before = captured;
    }
    Ok((loadings, SWEEPS))
}

/// Returns the best loading on the columns of loading `k`, and the variance that all loadings capture with it; `None`
/// if all of these columns lie in the span of the other loadings.
fn best(s: &Mat<f64>, loadings: &Mat<f64>, k: usize, seed: u64, watch: &dyn Watch) -> Result<Option<(f64, Mat<f64>)>> {
    let (d, q) = (loadings.nrows(), loadings.ncols());
    let own: Vec<usize> = (0..d).filter(|&j| loadings[(j, k)] != 0.0).collect();
    let others = dense::columns(loadings, &(0..q).filter(|&l| l != k).collect::<Vec<_>>());
    let basis = match q {
        1 => Mat::zeros(d, 0),
        _ => dense::product(others.as_ref(), dense::frame(others.as_ref(), OUTSIDE)?.as_ref()),
    };
    // The part of each column outside the span of the others. The frame leaves out combinations that lie inside.
    let theirs = Mat::from_fn(basis.ncols(), own.len(), |i, j| basis[(own[j], i)]);
    let theirs = dense::product(basis.as_ref(), theirs.as_ref());
    let left = Mat::from_fn(d, own.len(), |i, j| f64::from(i == own[j]) - theirs[(i, j)]);
    if left.norm_l2().powi(2) <= OUTSIDE {
        return Ok(None);
    }
    let frame = dense::frame(left.as_ref(), OUTSIDE)?;
    let axes = dense::product(left.as_ref(), frame.as_ref());
    let m = dense::product(axes.transpose(), dense::product(s.as_ref(), axes.as_ref()).as_ref());
    let pairs = top(&m, 1, Accuracy { trace: dense::trace(s), ..Accuracy::default() }, seed, watch)?;
    let Some(&value) = pairs.values.first() else { return Ok(None) };
    let v = dense::product(frame.as_ref(), pairs.vectors.as_ref().subcols(0, 1));
    let length = v.norm_l2();
    let mut whole = Mat::zeros(d, 1);
    own.iter().enumerate().for_each(|(i, &j)| whole[(j, 0)] = v[(i, 0)] / length);
    let held = dense::product(basis.transpose(), dense::product(s.as_ref(), basis.as_ref()).as_ref());
    Ok(Some((dense::trace(&held) + value, whole)))
}
