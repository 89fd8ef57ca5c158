//! Runs the 21 kinds of spectra of LAPACK's test program `dchkst` through all our matrix decompositions.
//!
//! ```text
//! cargo test --release -p skpca --lib spectra -- --nocapture        prints the worst ratio of each kind
//! ratio = error / (n ε · magnitude of the rounded quantity) < 30, as in dchkst
//! ```
//!
//! Where a matrix must be positive semi-definite, as kernel matrices are, the absolute values of the eigenvalues are
//! used.

use std::sync::Arc;

use faer::{Mat, MatRef};

use crate::dense;
use crate::eigen::{Accuracy, orthonormal, top};
use crate::gram::{Basis, Precision};
use crate::kernel::{self, Kernel};
use crate::kernel_matrix::gram;
use crate::points::Points;
use crate::random::{Random, Stream};
use crate::skeleton::Skeleton;
use crate::spec::Spec;
use crate::spectrum::{Expansion, Span};

/// The largest ratio that dchkst allows.
const ALLOWED: f64 = 30.0;
/// Two sizes with a full decomposition, and one with an iterative solver.
const SIZES: [usize; 3] = [10, 60, 250];
const KINDS: usize = 21;

/// The distribution of eigenvalues; the largest is 1.
#[derive(Clone, Copy, Debug)]
enum Values {
    Zero,
    One,
    Arithmetic,
    Geometric,
    Clustered,
    /// Entries are uniform in (−1, 1).
    Random,
    /// Tridiagonal, with a dominant diagonal that falls geometrically.
    Dominant,
}

/// Returns a kind of dchkst by its number: the distribution of eigenvalues, whether the eigenvectors are random,
/// whether all eigenvalues are positive, and a scale factor.
fn kind(number: usize, n: usize) -> (Values, bool, bool, f64) {
    use Values::{Arithmetic, Clustered, Dominant, Geometric, One, Random, Zero};
    let over = f64::MAX.sqrt() * f64::EPSILON / n as f64;
    let under = f64::MIN_POSITIVE.sqrt() * n as f64 / f64::EPSILON;
    match number {
        1 => (Zero, false, false, 1.0),
        2 => (One, false, true, 1.0),
        3 => (Arithmetic, false, false, 1.0),
        4 => (Geometric, false, false, 1.0),
        5 => (Clustered, false, false, 1.0),
        6 => (Geometric, false, false, over),
        7 => (Geometric, false, false, under),
        8 => (Arithmetic, true, false, 1.0),
        9 => (Geometric, true, false, 1.0),
        10 => (Clustered, true, false, 1.0),
        11 => (Geometric, true, false, over),
        12 => (Geometric, true, false, under),
        13 => (Random, true, false, 1.0),
        14 => (Random, true, false, over),
        15 => (Random, true, false, under),
        16 => (Arithmetic, true, true, 1.0),
        17 => (Geometric, true, true, 1.0),
        18 => (Clustered, true, true, 1.0),
        19 => (Arithmetic, true, true, over),
        20 => (Arithmetic, true, true, under),
        _ => (Dominant, false, true, 1.0),
    }
}

fn frame(n: usize, random: &mut Random) -> Mat<f64> {
    orthonormal(Mat::from_fn(n, n, |_, _| random.normal()), None)
}

/// Returns the eigenvalues of a kind, with signs; `None` if the kind is defined by its entries.
fn eigenvalues(number: usize, n: usize) -> Option<Vec<f64>> {
    let (values, _, positive, scale) = kind(number, n);
    let last = (n - 1) as f64;
    let value = |i: usize| match values {
        Values::Zero => Some(0.0),
        Values::One => Some(1.0),
        Values::Arithmetic => Some(1.0 - i as f64 / last * (1.0 - f64::EPSILON)),
        Values::Geometric => Some(f64::EPSILON.powf(i as f64 / last)),
        Values::Clustered => Some(if i == 0 { 1.0 } else { f64::EPSILON }),
        Values::Random | Values::Dominant => None,
    };
    let sign = |i: usize| if positive || i.is_multiple_of(2) { scale } else { -scale };
    (0..n).map(|i| Some(value(i)? * sign(i))).collect()
}

/// Returns the symmetric matrix of a kind.
fn matrix(number: usize, n: usize) -> Mat<f64> {
    let mut random = Random::new(number as u64, Stream::Tests);
    let (values, turned, _, scale) = kind(number, n);
    let mut a = match (eigenvalues(number, n), values) {
        (Some(values), _) if turned => turn(&frame(n, &mut random), &values),
        (Some(values), _) => dense::diagonal(&values),
        (None, Values::Random) => Mat::from_fn(n, n, |_, _| scale * (2.0 * random.uniform() - 1.0)),
        (None, _) => {
            let diagonal = |i: usize| f64::EPSILON.powf(i as f64 / (n - 1) as f64);
            Mat::from_fn(n, n, |i, j| match i.abs_diff(j) {
                0 => diagonal(i),
                1 => 0.4 * (diagonal(i) * diagonal(j)).sqrt() * random.uniform(),
                _ => 0.0,
            })
        }
    };
    dense::mirror(&mut a);
    a
}

/// `U diag(values) Uᵀ`
fn turn(u: &Mat<f64>, values: &[f64]) -> Mat<f64> {
    let scaled = Mat::from_fn(u.nrows(), values.len(), |i, j| u[(i, j)] * values[j]);
    dense::product(scaled.as_ref(), u.transpose())
}

/// Returns rows whose inner products are the matrix of this kind with absolute eigenvalues; kinds defined by their
/// entries are the rows themselves.
fn rows(number: usize, n: usize) -> Points<'static> {
    let mut random = Random::new(number as u64, Stream::Tests);
    let (_, turned, _, scale) = kind(number, n);
    let x = match eigenvalues(number, n) {
        Some(values) => {
            let u = if turned { frame(n, &mut random) } else { Mat::identity(n, n) };
            Mat::from_fn(n, n, |i, j| u[(i, j)] * values[j].abs().sqrt())
        }
        None => {
            let a = matrix(number, n);
            Mat::from_fn(n, n, |i, j| a[(i, j)] / scale.sqrt())
        }
    };
    Points::new(n, x.row_iter().flat_map(|row| row.iter().copied().collect::<Vec<_>>()).collect::<Vec<_>>()).unwrap()
}

/// Returns the largest value; NaN counts as larger than all numbers.
fn largest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, |most, value| if value > most || value.is_nan() { value } else { most })
}

/// Returns the 1-norm: the largest sum of a column's absolute values.
fn norm(a: &Mat<f64>) -> f64 {
    largest(a.col_iter().map(|column| column.iter().map(|v| v.abs()).sum()))
}

/// Returns the error in units of n ε times the magnitude of the rounded quantity; 0 if both are 0.
fn ratio(error: f64, n: usize, rounded: f64) -> f64 {
    // NaN counts as above the limit.
    if error == 0.0 { 0.0 } else { error / (n as f64 * f64::EPSILON * rounded) }
}

fn skew(u: MatRef<f64>) -> f64 {
    norm(&(dense::product(u.transpose(), u) - Mat::<f64>::identity(u.ncols(), u.ncols())))
}

/// `A = U Λ Uᵀ`, `UᵀU = I`.
fn all_pairs(a: &Mat<f64>) -> [f64; 2] {
    let n = a.nrows();
    let Ok((values, u)) = dense::eigen(a.as_ref()) else { return [f64::NAN; 2] };
    assert!(values.is_sorted_by(|a, b| a >= b));
    [ratio(norm(&(a - turn(&u, &values))), n, norm(a)), ratio(skew(u.as_ref()), n, 1.0)]
}

/// Leading pairs: accurate to rounding for small matrices, to the tolerance if they are computed iteratively.
fn leading_pairs(a: &Mat<f64>) -> [f64; 2] {
    let n = a.nrows();
    let Some(pairs) = top(a, 6, Accuracy::default(), 0, &()).ok().filter(|pairs| pairs.converged) else {
        return [f64::NAN; 2];
    };
    let u = &pairs.vectors;
    let uv = Mat::from_fn(n, u.ncols(), |i, j| u[(i, j)] * pairs.values[j]);
    let error = norm(&(dense::product(a.as_ref(), u.as_ref()) - uv));
    // The iteration controls the 2-norm; the 1-norm is at most √n times that.
    let tolerance = (n as f64).sqrt() * Accuracy::default().tolerance / (n as f64 * f64::EPSILON);
    let allowed = if pairs.rounds > 1 { tolerance.max(1.0) } else { 1.0 };
    [ratio(error, n, norm(a)) / allowed, ratio(skew(u.as_ref()), n, 1.0)]
}

fn linear() -> Arc<dyn Kernel> {
    kernel::build(&Spec::new("linear"), &Points::new(1, vec![0.0, 1.0]).unwrap(), 0).unwrap()
}

/// Cholesky with dependent points dropped: `K = L Lᵀ` for those kept, and a zero residual for the others.
fn cholesky(z: &Points<'static>) -> [f64; 2] {
    let n = z.n();
    let Ok(skeleton) = Skeleton::new(&linear(), z, &()) else { return without_variance(z) };
    let (kept, l) = (&skeleton.kept, &skeleton.l);
    let k = gram(&linear(), z);
    let own = Mat::from_fn(kept.len(), kept.len(), |i, j| k[(kept[i], kept[j])]);
    let factored = ratio(norm(&(&own - dense::product(l.as_ref(), l.transpose()))), n, norm(&own));
    let mut across = Mat::from_fn(kept.len(), n, |i, j| k[(kept[i], j)]);
    dense::solve_lower(l.as_ref(), across.as_mut());
    let left = largest((0..n).map(|j| k[(j, j)] - across.col(j).squared_norm_l2()));
    // The factor ends where the residual is rounding error of the trace.
    [factored, ratio(left, n, dense::trace(&k))]
}

/// Points may be rejected only if they are all zero.
fn without_variance(z: &Points<'static>) -> [f64; 2] {
    if z.values().iter().all(|v| *v == 0.0) { [0.0; 2] } else { [f64::NAN; 2] }
}

/// `AᵀKA = I`, in units of the magnitudes summed.
fn orthonormal_components(z: &Points<'static>, expansion: &Expansion) -> f64 {
    let kept = z.select(&expansion.kept);
    let k = gram(&linear(), &kept);
    let a = match &expansion.frame {
        Some(frame) => dense::product(expansion.coefficients.as_ref(), frame.as_ref()),
        None => expansion.coefficients.clone(),
    };
    let products = dense::product(a.transpose(), dense::product(k.as_ref(), a.as_ref()).as_ref());
    let error = norm(&(products - Mat::<f64>::identity(a.ncols(), a.ncols())));
    let terms = |j: usize| (0..kept.n()).map(|i| a[(i, j)].abs() * k[(i, i)].sqrt()).sum::<f64>();
    let longest = largest((0..a.ncols()).map(terms)).max(1.0);
    ratio(error, z.n(), longest * longest)
}

/// Ritz pairs over points of a spectrum: orthonormal components, and captured variance equal to the exact one.
fn ritz(z: &Points<'static>) -> [f64; 2] {
    let span = |center| Span::new(&linear(), z, z, center, &());
    let Ok(Ok(expansion)) = span(false).map(|span| span.best(6, &())) else { return without_variance(z) };
    let exact = dense::eigen(gram(&linear(), z).as_ref()).unwrap().0;
    let best: f64 = exact.iter().take(expansion.values.len()).sum();
    let captured = ratio((expansion.captured - best).abs(), z.n(), dense::trace(&gram(&linear(), z)));
    // Components are accurate to the tolerance of the eigensolver.
    [orthonormal_components(z, &expansion), captured * f64::EPSILON / Accuracy::default().tolerance]
}

/// The frame E that makes unit columns orthonormal.
fn framed(z: &Points<'static>) -> f64 {
    let n = z.n();
    let columns: Vec<Vec<f64>> = (0..n)
        .map(|j| (0..n).map(|i| z.row(i)[j]).collect::<Vec<f64>>())
        .filter_map(|column| {
            let longest = column.iter().fold(0.0_f64, |longest, v| longest.max(v.abs()));
            let length = column.iter().map(|v| (v / longest).powi(2)).sum::<f64>().sqrt() * longest;
            (length > 0.0).then(|| column.iter().map(|v| v / length).collect())
        })
        .collect();
    if columns.is_empty() {
        return 0.0;
    }
    let y = Mat::from_fn(n, columns.len(), |i, j| columns[j][i]);
    let Ok(e) = dense::frame(y.as_ref(), 1e-10) else { return f64::NAN };
    ratio(skew(dense::product(y.as_ref(), e.as_ref()).as_ref()), n, norm(&y).max(1.0) * norm(&e).max(1.0))
}

/// `K(X, Z) A` in 64 and in 32 bits, against the definition.
///
/// The scaled kinds are out of range for 32 bits; models use 64 bits for them.
fn products(z: &Points<'static>, single: bool) -> [f64; 2] {
    let n = z.n();
    let basis = Basis::new(linear(), z.clone());
    let mut random = Random::new(3, Stream::Tests);
    let a = Mat::from_fn(n, 3, |_, _| random.normal());
    let weights = basis.weights(a.clone());
    let length = |i: usize| z.row(i).iter().map(|v| v * v).sum::<f64>().sqrt();
    let longest = (0..n).map(length).fold(0.0, f64::max);
    [(Precision::Double, f64::EPSILON), (Precision::Single, f64::from(f32::EPSILON))].map(|(precision, epsilon)| {
        if precision == Precision::Single && !single {
            return 0.0;
        }
        let found = basis.product(z, &weights, precision);
        let mut worst = 0.0_f64;
        for (i, found) in found.chunks_exact(3).enumerate() {
            for (k, found) in found.iter().enumerate() {
                let terms = (0..n).map(|j| dense::dot(z.row(i), z.row(j)) * a[(j, k)]);
                let exact: f64 = terms.sum();
                let rounded = longest * length(i) * a.col(k).norm_l1();
                let one = ratio((found - exact).abs(), n, rounded) * f64::EPSILON / epsilon;
                worst = largest([worst, one].into_iter());
            }
        }
        worst
    })
}

#[test]
#[allow(clippy::print_stdout)] // printed by the command at the head of this file
fn spectra_leave_ratios_below_thirty() {
    let names =
        ["A-UΛU'", "U'U-I", "Au-λu", "u'u-I", "K-LL'", "dropped", "a'Ka-I", "captured", "frame", "K·A 64", "K·A 32"];
    println!("{:>4} {:>4} {}", "kind", "n", names.map(|name| format!("{name:>9}")).concat());
    let mut above = Vec::new();
    for n in SIZES {
        for number in 1..=KINDS {
            let (a, z) = (matrix(number, n), rows(number, n));
            let [pairs, leading, cholesky] = [all_pairs(&a), leading_pairs(&a), cholesky(&z)];
            let mut ratios = [pairs, leading, cholesky, ritz(&z)].concat();
            ratios.push(framed(&z));
            ratios.extend(products(&z, kind(number, n).3 == 1.0));
            println!("{number:>4} {n:>4} {}", ratios.iter().map(|ratio| format!("{ratio:>9.2}")).collect::<String>());
            for (name, ratio) in names.iter().zip(ratios).filter(|(_, ratio)| ratio.is_nan() || *ratio >= ALLOWED) {
                above.push(format!("kind {number}, n = {n}, {name}: {ratio}"));
            }
        }
    }
    assert!(above.is_empty(), "{above:#?}");
}
