//! The P-step: the orthonormal matrix nearest to a given one.

use faer::{Mat, MatRef, Scale};

use crate::dense;
use crate::error::Result;

/// The orthonormal P that maximises `tr Pᵀb` among those orthogonal to `before`, and the maximum, the nuclear norm of b
/// there. Directions that b leaves open stay as near to `old` as they can.
pub(super) fn polar(mut b: Mat<f64>, old: MatRef<f64>, before: MatRef<f64>) -> Result<(Mat<f64>, f64)> {
    project_out(&mut b, before);
    let (squares, e) = dense::eigen(dense::product(b.transpose(), b.as_ref()).as_ref())?;
    let count = squares.iter().take_while(|s| **s > 1e-14 * squares[0] && **s > 0.0).count();
    let nuclear = squares[..count].iter().map(|s| s.sqrt()).sum();
    let scaled = Mat::from_fn(e.nrows(), count, |i, j| e[(i, j)] / squares[j].sqrt());
    let left = dense::product(b.as_ref(), scaled.as_ref());
    let open = dense::product(old, e.as_ref().subcols(count, e.ncols() - count));
    let all = orthonormal(&dense::beside(left.as_ref(), open.as_ref()), before);
    Ok((dense::product(all.as_ref(), e.transpose()), nuclear))
}

/// Gram–Schmidt, twice, orthogonal to `before` as well; a column that adds nothing is replaced by a coordinate direction.
fn orthonormal(columns: &Mat<f64>, before: MatRef<f64>) -> Mat<f64> {
    let (r, q) = (columns.nrows(), columns.ncols());
    let mut out = before.to_owned();
    let mut next = 0;
    for k in 0..q {
        let mut candidate = columns.as_ref().subcols(k, 1).to_owned();
        loop {
            let norm = candidate.norm_l2();
            for _ in 0..2 {
                project_out(&mut candidate, out.as_ref());
            }
            let left = candidate.norm_l2();
            if left > 1e-6 * norm {
                out = dense::beside(out.as_ref(), (candidate * Scale(1.0 / left)).as_ref());
                break;
            }
            if next == r {
                // No room for another direction, which would take more columns than rows.
                out = dense::beside(out.as_ref(), Mat::zeros(r, 1).as_ref());
                break;
            }
            candidate = Mat::from_fn(r, 1, |i, _| if i == next { 1.0 } else { 0.0 });
            next += 1;
        }
    }
    out.as_ref().subcols(before.ncols(), q).to_owned()
}

fn project_out(b: &mut Mat<f64>, before: MatRef<f64>) {
    if before.ncols() > 0 {
        let overlap = dense::product(before.transpose(), b.as_ref());
        dense::subtract_product(b.as_mut(), before, overlap.as_ref());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polar_keeps_open_directions_and_stays_orthogonal_to_those_before() {
        let old = Mat::from_fn(5, 2, |i, j| if i == j + 1 { 1.0 } else { 0.0 });
        let before = Mat::from_fn(5, 1, |i, _| if i == 0 { 1.0 } else { 0.0 });
        let b = Mat::from_fn(5, 2, |i, j| if j == 0 && i < 2 { 3.0 } else { 0.0 });
        let (p, nuclear) = polar(b, old.as_ref(), before.as_ref()).unwrap();
        assert!((nuclear - 3.0).abs() < 1e-12, "{nuclear}");
        assert!((&p - &old).norm_max() < 1e-12, "{p:?}");
        let (p, nuclear) = polar(Mat::zeros(5, 2), old.as_ref(), before.as_ref()).unwrap();
        assert!(nuclear == 0.0 && (&p - &old).norm_max() < 1e-12);
    }
}
