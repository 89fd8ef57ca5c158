//! The few dense operations we need, sequential or cut by size alone, so that their bits never depend on threads.

use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place};
use faer::{Accum, Mat, MatMut, MatRef, Par, Side};

use crate::error::{Error, Result};

/// Products of more multiply-adds than this are made of bands of rows, and solutions of columns, on all threads.
const LARGE: usize = 4_000_000;
/// Rows of a band.
const BAND: usize = 192;
/// Columns that are read at a time.
const STREAMS: usize = 32;
/// Columns that are solved together.
const COLUMNS: usize = 128;

/// `aᵀb`
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// `A B`
pub(crate) fn product(a: MatRef<f64>, b: MatRef<f64>) -> Mat<f64> {
    let mut out = Mat::zeros(a.nrows(), b.ncols());
    let large = a.nrows() * a.ncols() * b.ncols() > LARGE;
    bands(out.as_mut(), a, b, if large { BAND } else { a.nrows() });
    out
}

fn bands(out: MatMut<f64>, a: MatRef<f64>, b: MatRef<f64>, band: usize) {
    if a.nrows() <= band {
        return matmul(out, Accum::Replace, a, b, 1.0, Par::Seq);
    }
    let half = (a.nrows() / 2).next_multiple_of(band);
    let ((upper, lower), (above, below)) = (out.split_at_row_mut(half), a.split_at_row(half));
    rayon::join(|| bands(upper, above, b, band), || bands(lower, below, b, band));
}

/// `A B` for an A that comes from memory, sequentially. A column is a stream of its own there, and processors fetch ahead in
/// few of them: a run of columns at a time takes half the time of all at once.
pub(crate) fn streamed_product(a: MatRef<f64>, b: MatRef<f64>) -> Mat<f64> {
    let mut out = Mat::zeros(a.nrows(), b.ncols());
    for k in (0..a.ncols()).step_by(STREAMS) {
        let count = STREAMS.min(a.ncols() - k);
        matmul(out.as_mut(), Accum::Add, a.subcols(k, count), b.subrows(k, count), 1.0, Par::Seq);
    }
    out
}

/// `out − A B` in place.
pub(crate) fn subtract_product(out: MatMut<f64>, a: MatRef<f64>, b: MatRef<f64>) {
    matmul(out, Accum::Add, a, b, -1.0, Par::Seq);
}

/// Copies the lower triangle to the upper.
pub(crate) fn mirror(a: &mut Mat<f64>) {
    for j in 0..a.ncols() {
        for i in 0..j {
            a[(i, j)] = a[(j, i)];
        }
    }
}

/// `L⁻¹ B` in place.
pub(crate) fn solve_lower(l: MatRef<f64>, b: MatMut<f64>) {
    by_columns(b, l.nrows(), &|b| solve_lower_triangular_in_place(l, b, Par::Seq));
}

/// `L⁻ᵀ B` in place.
pub(crate) fn solve_lower_transposed(l: MatRef<f64>, b: MatMut<f64>) {
    by_columns(b, l.nrows(), &|b| solve_upper_triangular_in_place(l.transpose(), b, Par::Seq));
}

/// Some columns at a time, in parallel, where `rows` multiply-adds a number are much work.
fn by_columns(b: MatMut<f64>, rows: usize, solve: &(impl Fn(MatMut<f64>) + Sync)) {
    if b.ncols() <= COLUMNS || rows * b.nrows() * b.ncols() <= LARGE {
        return solve(b);
    }
    let half = (b.ncols() / 2).next_multiple_of(COLUMNS);
    let (left, right) = b.split_at_col_mut(half);
    rayon::join(|| by_columns(left, rows, solve), || by_columns(right, rows, solve));
}

/// `B L⁻ᵀ` in place.
pub(crate) fn divide_by_transposed(b: MatMut<f64>, l: MatRef<f64>) {
    by_columns(b.transpose_mut(), l.nrows(), &|b| solve_lower_triangular_in_place(l, b, Par::Seq));
}

/// `L⁻¹ A L⁻ᵀ` in place.
pub(crate) fn whiten(l: MatRef<f64>, a: &mut Mat<f64>) {
    solve_lower(l, a.as_mut());
    divide_by_transposed(a.as_mut(), l);
}

/// The sum of the diagonal.
pub(crate) fn trace(a: &Mat<f64>) -> f64 {
    (0..a.nrows()).map(|i| a[(i, i)]).sum()
}

/// The lower Cholesky factor, or nothing where the matrix is not positive definite.
pub(crate) fn cholesky(a: MatRef<f64>) -> Option<Mat<f64>> {
    Some(a.llt(Side::Lower).ok()?.L().to_owned())
}

/// All eigenpairs of a symmetric matrix (its lower triangle is read), largest first.
pub(crate) fn eigen(a: MatRef<f64>) -> Result<(Vec<f64>, Mat<f64>)> {
    let failed = || Error::Numerical { why: "an eigenvalue problem did not converge".into() };
    let n = a.nrows();
    let pairs = a.self_adjoint_eigen(Side::Lower).map_err(|_| failed())?;
    let values: Vec<f64> = (0..n).rev().map(|i| pairs.S().column_vector()[i]).collect();
    if values.iter().any(|v| !v.is_finite()) {
        return Err(failed());
    }
    Ok((values, Mat::from_fn(n, n, |i, j| pairs.U()[(i, n - 1 - j)])))
}

/// E such that the columns of `Y E` are orthonormal and span those of Y, whose squared singular values below `floor`
/// times the largest are taken as rounding.
pub(crate) fn frame(y: MatRef<f64>, floor: f64) -> Result<Mat<f64>> {
    let (squares, e) = eigen(product(y.transpose(), y).as_ref())?;
    let count = squares.iter().take_while(|v| **v > floor * squares[0]).count();
    Ok(Mat::from_fn(y.ncols(), count, |i, j| e[(i, j)] / squares[j].sqrt()))
}

/// The matrix with these values on its diagonal.
pub(crate) fn diagonal(values: &[f64]) -> Mat<f64> {
    Mat::from_fn(values.len(), values.len(), |i, j| if i == j { values[i] } else { 0.0 })
}

/// Columns `[A B]`.
pub(crate) fn beside(a: MatRef<f64>, b: MatRef<f64>) -> Mat<f64> {
    let mut out = Mat::zeros(a.nrows(), a.ncols() + b.ncols());
    let (mut left, mut right) = out.as_mut().split_at_col_mut(a.ncols());
    left.copy_from(a);
    right.copy_from(b);
    out
}

/// The symmetric `[A B; Bᵀ C]`.
pub(crate) fn bordered(a: MatRef<f64>, b: MatRef<f64>, c: MatRef<f64>) -> Mat<f64> {
    let (old, all) = (a.nrows(), a.nrows() + c.nrows());
    let mut out = Mat::zeros(all, all);
    let (mut upper, mut lower) = out.as_mut().split_at_row_mut(old);
    upper.as_mut().subcols_mut(0, old).copy_from(a);
    upper.as_mut().subcols_mut(old, all - old).copy_from(b);
    lower.as_mut().subcols_mut(0, old).copy_from(b.transpose());
    lower.as_mut().subcols_mut(old, all - old).copy_from(c);
    out
}

/// Matrices of equal width, one above the other.
pub(crate) fn stack(parts: &[Mat<f64>]) -> Mat<f64> {
    let rows = parts.iter().map(Mat::nrows).sum();
    let mut out = Mat::zeros(rows, parts.first().map_or(0, Mat::ncols));
    let mut start = 0;
    for part in parts {
        out.as_mut().subrows_mut(start, part.nrows()).copy_from(part);
        start += part.nrows();
    }
    out
}

/// `out + AᵀB` in place.
pub(crate) fn add_transposed_product(out: &mut Mat<f64>, a: MatRef<f64>, b: MatRef<f64>) {
    matmul(out, Accum::Add, a.transpose(), b, 1.0, Par::Seq);
}
