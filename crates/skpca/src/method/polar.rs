//! The P-step: the orthonormal vectors nearest to given ones.

use faer::Mat;

use super::space::Vectors;
use crate::dense;
use crate::error::Result;

/// Distance of PᵀP from the identity below which one correction suffices.
const NEARLY: f64 = 1e-7;
/// Number of columns that are orthogonalised against the previous ones at a time.
const BLOCK: usize = 32;

/// Returns the orthonormal P that maximises `Σ ⟨p_k, b_k⟩` among those orthogonal to `before`, and the maximum, which
/// is the nuclear norm of b there. Directions that b does not determine stay as close to `old` as possible, or are the
/// first of `directions` that are independent.
pub(super) fn polar(
    b: &Vectors,
    old: &Vectors,
    before: &Vectors,
    directions: &dyn Fn(usize) -> Option<Vectors>,
) -> Result<(Vectors, f64)> {
    let b = without(b.clone(), before);
    let (squares, e) = dense::eigen(b.products(&b).as_ref())?;
    let count = squares.iter().take_while(|s| **s > 1e-14 * squares[0] && **s > 0.0).count();
    let nuclear = squares[..count].iter().map(|s| s.sqrt()).sum();
    let scaled = Mat::from_fn(e.nrows(), count, |i, j| e[(i, j)] / squares[j].sqrt());
    if count == e.ncols() {
        // P is orthonormal up to rounding; multiplying by `(3I − PᵀP)/2` removes the first order of the error.
        let near = b.times(dense::product(scaled.as_ref(), e.transpose()).as_ref());
        let products = near.products(&near);
        let off = |i: usize, j: usize| products[(i, j)] - if i == j { 1.0 } else { 0.0 };
        if (0..count).all(|j| (0..count).all(|i| off(i, j).abs() < NEARLY)) && before.count() == 0 {
            let half = |i: usize, j: usize| if i == j { 1.0 } else { 0.0 } - 0.25 * (off(i, j) + off(j, i));
            return Ok((near.times(Mat::from_fn(count, count, half).as_ref()), nuclear));
        }
    }
    let open = old.times(e.as_ref().subcols(count, e.ncols() - count));
    let all = orthonormal(&b.times(scaled.as_ref()).beside(&open), before, directions);
    Ok((all.times(e.transpose()), nuclear))
}

/// Orthonormalises `columns` against `before` and each other by Gram–Schmidt, twice; a dependent column is replaced by
/// one of `directions`. Blocks of columns are orthogonalised against all previous ones at once, by matrix products.
fn orthonormal(columns: &Vectors, before: &Vectors, directions: &dyn Fn(usize) -> Option<Vectors>) -> Vectors {
    let (first, q) = (before.count(), columns.count());
    let mut out = before.clone();
    let mut others = (0..).map_while(directions);
    for start in (0..q).step_by(BLOCK) {
        let given = columns.columns(start..q.min(start + BLOCK));
        let mut block = given.columns(0..0);
        let left = without(without(given.clone(), &out), &out);
        for k in 0..given.count() {
            let (mut norm, mut candidate) = (given.columns(k..k + 1).norm(), left.columns(k..k + 1));
            let unit = loop {
                candidate = without(without(candidate, &block), &block);
                let mut remains = candidate.norm();
                if remains < 0.1 * norm {
                    // The rounding error of what was subtracted is not small compared with what is left.
                    candidate = without(without(candidate, &out), &block);
                    remains = candidate.norm();
                }
                if remains > 1e-6 * norm {
                    break candidate.times(Mat::from_fn(1, 1, |_, _| 1.0 / remains).as_ref());
                }
                let Some(other) = others.next() else {
                    // No direction is left, which means that there are more columns than dimensions.
                    break candidate.times(Mat::zeros(1, 1).as_ref());
                };
                norm = other.norm();
                candidate = without(without(other, &out), &out);
            };
            block = block.beside(&unit);
        }
        out = out.beside(&block);
    }
    out.columns(first..first + q)
}

/// Projects b onto the orthogonal complement of the vectors `before`.
fn without(b: Vectors, before: &Vectors) -> Vectors {
    match before.count() {
        0 => b,
        _ => b.plus(-1.0, &before.times(before.products(&b).as_ref())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::factor::{Factor, Stop};
    use crate::kernel;
    use crate::method::space::FactorSpace;
    use crate::toys;

    #[test]
    fn polar_keeps_open_directions_and_stays_orthogonal_to_those_before() {
        let points = toys::clusters(0);
        let kernel = kernel::build(&"rbf".parse().unwrap(), &points, 0).unwrap();
        let factor = Factor::pivoted(&kernel, &points, Stop { rank: 5, residual: 0.0 }, 0, &()).unwrap();
        let t = Mat::identity(5, 5);
        let space = FactorSpace { factor: &factor, t: &t };
        let old = space.vectors(Mat::from_fn(5, 2, |i, j| if i == j + 1 { 1.0 } else { 0.0 }));
        let before = space.vectors(Mat::from_fn(5, 1, |i, _| if i == 0 { 1.0 } else { 0.0 }));
        let b = space.vectors(Mat::from_fn(5, 2, |i, j| if j == 0 && i < 2 { 3.0 } else { 0.0 }));
        let none = |_| None;
        let (p, nuclear) = polar(&b, &old, &before, &none).unwrap();
        assert!((nuclear - 3.0).abs() < 1e-12, "{nuclear}");
        assert!(p.plus(-1.0, &old).norm() < 1e-12);
        let (p, nuclear) = polar(&space.vectors(Mat::zeros(5, 2)), &old, &before, &none).unwrap();
        assert!(nuclear == 0.0 && p.plus(-1.0, &old).norm() < 1e-12);
    }
}
