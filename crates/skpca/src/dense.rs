//! The few dense matrix operations we need. They are sequential or split by size alone, so that results are the same
//! bit for bit on any number of threads.

use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place};
use faer::{Accum, Mat, MatMut, MatRef, Par, Side};

use crate::error::{Error, Result};

/// Operations of more multiply-adds than this are split over all threads: products into bands of rows, triangular
/// solves into groups of columns.
const LARGE: usize = 4_000_000;
/// Rows per band.
const BAND: usize = 192;
/// Columns read at a time.
const STREAMS: usize = 32;
/// Columns solved together.
const COLUMNS: usize = 128;
/// Columns solved between two progress reports.
const REPORTED_COLUMNS: usize = 1024;
/// Columns per panel of the blocked Cholesky factorisation.
const PANEL: usize = 256;

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

/// `A B` for an A that does not fit in cache, sequentially. Every column is a separate stream, and processors prefetch
/// only a few of them: reading some columns at a time takes half the time of all at once.
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

/// Copies the lower triangle to the upper one.
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

/// Solves groups of columns in parallel if that is enough work, at `rows` multiply-adds per number.
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

/// `L⁻¹ A L⁻ᵀ` in place, for matrices that may be large; `report` gets the share that is done and may stop it.
pub(crate) fn large_whiten(l: MatRef<f64>, a: &mut Mat<f64>, report: impl Fn(f64) -> Result<()>) -> Result<()> {
    let n = a.ncols();
    for (half, transposed) in [false, true].into_iter().enumerate() {
        for start in (0..n).step_by(REPORTED_COLUMNS) {
            report((half as f64 + start as f64 / n as f64) / 2.0)?;
            let count = REPORTED_COLUMNS.min(n - start);
            let a = if transposed { a.as_mut().transpose_mut() } else { a.as_mut() };
            solve_lower(l, a.subcols_mut(start, count));
        }
    }
    Ok(())
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

/// Returns the lower Cholesky factor, or `None` if the matrix is not positive definite.
pub(crate) fn cholesky(a: MatRef<f64>) -> Option<Mat<f64>> {
    Some(a.llt(Side::Lower).ok()?.L().to_owned())
}

/// Returns the lower Cholesky factor of a matrix that may be large, on all threads; `report` gets the share that is
/// done and may stop it.
pub(crate) fn large_cholesky(mut a: Mat<f64>, report: impl Fn(f64) -> Result<()>) -> Result<Option<Mat<f64>>> {
    let n = a.nrows();
    for start in (0..n).step_by(PANEL) {
        report(start as f64 / n as f64)?;
        let end = (start + PANEL).min(n);
        let Some(l) = cholesky(a.as_ref().submatrix(start, start, end - start, end - start)) else { return Ok(None) };
        a.as_mut().submatrix_mut(start, start, end - start, end - start).copy_from(&l);
        let (left, right) = a.as_mut().split_at_col_mut(end);
        let mut below = left.submatrix_mut(end, start, n - end, end - start);
        divide_by_transposed(below.as_mut(), l.as_ref());
        subtract_square(right.subrows_mut(end, n - end), below.as_ref());
    }
    for j in 1..n {
        a.col_mut(j).subrows_mut(0, j).fill(0.0);
    }
    Ok(Some(a))
}

/// The lower triangle of `A − P Pᵀ` in place, band by band of columns.
fn subtract_square(a: MatMut<f64>, p: MatRef<f64>) {
    let n = a.ncols();
    if n <= BAND {
        return subtract_product(a, p, p.subrows(0, n).transpose());
    }
    let half = (n / 2).next_multiple_of(BAND);
    let (left, right) = a.split_at_col_mut(half);
    rayon::join(
        || subtract_square(left, p),
        || subtract_square(right.subrows_mut(half, p.nrows() - half), p.subrows(half, p.nrows() - half)),
    );
}

/// Returns all eigenpairs of a symmetric matrix (only its lower triangle is read), largest first.
///
/// The divide-and-conquer solver of faer (0.24) uses absolute thresholds: for 250 rows with entries of 1e-5 it loses
/// four digits, with entries of 1e-15 all of them. So the matrix is scaled to a largest entry of about 1, by a power of
/// two, which is exact.
pub(crate) fn eigen(a: MatRef<f64>) -> Result<(Vec<f64>, Mat<f64>)> {
    let largest = (0..a.ncols()).flat_map(|j| (j..a.nrows()).map(move |i| a[(i, j)].abs())).fold(0.0, f64::max);
    let exponent = if largest > 0.0 && largest.is_finite() { largest.log2() as i32 } else { 0 };
    // In two steps, because the power itself may be out of range.
    let (first, second) = (2.0_f64.powi(exponent / 2), 2.0_f64.powi(exponent - exponent / 2));
    let scaled = Mat::from_fn(a.nrows(), a.ncols(), |i, j| a[(i, j)] / first / second);
    let failed = || Error::Numerical { why: "an eigenvalue problem did not converge".into() };
    let n = a.nrows();
    let pairs = scaled.self_adjoint_eigen(Side::Lower).map_err(|_| failed())?;
    let values: Vec<f64> = (0..n).rev().map(|i| pairs.S().column_vector()[i] * first * second).collect();
    if values.iter().any(|v| !v.is_finite()) {
        return Err(failed());
    }
    Ok((values, Mat::from_fn(n, n, |i, j| pairs.U()[(i, n - 1 - j)])))
}

/// Returns E such that the columns of `Y E` are an orthonormal basis of the span of those of Y. Squared singular values
/// below `floor` times the largest are taken for rounding.
pub(crate) fn frame(y: MatRef<f64>, floor: f64) -> Result<Mat<f64>> {
    let (squares, e) = eigen(product(y.transpose(), y).as_ref())?;
    let count = squares.iter().take_while(|v| **v > floor * squares[0]).count();
    let mut frame = Mat::from_fn(y.ncols(), count, |i, j| e[(i, j)] / squares[j].sqrt());
    // The squares are only accurate relative to the largest one; a second step gives the singular values that accuracy.
    let columns = product(y, frame.as_ref());
    if let Some(l) = cholesky(product(columns.transpose(), columns.as_ref()).as_ref()) {
        divide_by_transposed(frame.as_mut(), l.as_ref());
    }
    Ok(frame)
}

/// Returns the matrix with these values on its diagonal.
pub(crate) fn diagonal(values: &[f64]) -> Mat<f64> {
    Mat::from_fn(values.len(), values.len(), |i, j| if i == j { values[i] } else { 0.0 })
}

/// Selects rows of A of which each has more than a `share` of its squared norm outside the span of the previous ones,
/// always taking the row with the largest share next (column-pivoted QR of the transpose). Returns their numbers and an
/// orthonormal basis of their span, row by row in the same order.
pub(crate) fn independent_rows(a: MatRef<f64>, share: f64) -> (Vec<usize>, Mat<f64>) {
    let lengths: Vec<f64> = a.row_iter().map(|row| row.norm_l2()).collect();
    let unit = Mat::from_fn(a.ncols(), a.nrows(), |i, j| a[(j, i)] / lengths[j]);
    let qr = unit.col_piv_qr();
    let outside = |k: usize| qr.thin_R()[(k, k)].powi(2);
    let count = (0..a.nrows().min(a.ncols())).take_while(|&k| outside(k) > share).count();
    let (order, _) = qr.P().arrays();
    (order[..count].to_vec(), qr.compute_thin_Q().subcols(0, count).transpose().to_owned())
}

/// Returns some of the columns of A.
pub(crate) fn columns(a: &Mat<f64>, which: &[usize]) -> Mat<f64> {
    Mat::from_fn(a.nrows(), which.len(), |i, j| a[(i, which[j])])
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

/// The lower triangle of `out + AᵀA` in place.
pub(crate) fn add_squares(out: &mut Mat<f64>, a: MatRef<f64>) {
    let (lower, whole) = (BlockStructure::TriangularLower, BlockStructure::Rectangular);
    triangular::matmul(out.as_mut(), lower, Accum::Add, a.transpose(), whole, a, whole, 1.0, Par::Seq);
}

/// The lower triangle of a square matrix, column after column.
pub(crate) fn lower_triangle(a: &Mat<f64>) -> Vec<f64> {
    (0..a.ncols()).flat_map(|j| (j..a.nrows()).map(move |i| a[(i, j)])).collect()
}

/// Returns the matrix with that lower triangle, and zeros above.
pub(crate) fn from_lower_triangle(m: usize, triangle: &[f64]) -> Mat<f64> {
    let mut values = triangle.iter();
    let mut a = Mat::zeros(m, m);
    (0..m).for_each(|j| (j..m).zip(&mut values).for_each(|(i, value)| a[(i, j)] = *value));
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Random, Stream};

    #[test]
    fn blocked_factors_and_solutions_equal_the_direct_ones() {
        let mut random = Random::new(0, Stream::Tests);
        let n = 2 * PANEL + BAND + 17;
        let r = Mat::from_fn(n, n, |_, _| random.normal());
        let a = product(r.as_ref(), r.transpose());
        let (small, large) = (cholesky(a.as_ref()).unwrap(), large_cholesky(a.clone(), |_| Ok(())).unwrap().unwrap());
        assert!((&small - &large).norm_max() < 1e-9 * small.norm_max());
        let (mut b, mut c) = (a.clone(), a.clone());
        whiten(large.as_ref(), &mut b);
        large_whiten(large.as_ref(), &mut c, |_| Ok(())).unwrap();
        assert_eq!(b, c);
        assert!((&b - Mat::<f64>::identity(n, n)).norm_max() < 1e-6);
        let mut indefinite = a;
        indefinite[(n - 1, n - 1)] = -1.0;
        assert!(large_cholesky(indefinite, |_| Ok(())).unwrap().is_none());
    }

    #[test]
    fn blocked_operations_can_be_stopped() {
        let n = 2 * PANEL;
        let stop = |done: f64| if done < 0.4 { Ok(()) } else { Err(Error::Interrupted) };
        assert_eq!(large_cholesky(Mat::identity(n, n), stop).err(), Some(Error::Interrupted));
        assert_eq!(large_whiten(Mat::identity(n, n).as_ref(), &mut Mat::identity(n, n), stop), Err(Error::Interrupted));
    }
}
