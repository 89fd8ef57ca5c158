//! Linearly independent points of a support, and sums over the rows of kernel values with them.
//!
//! ```text
//! y = k_z(x) − s 1, or L⁻¹ of it (K_zz = L Lᵀ):      Σ w,  Σ w y,  Σ w y yᵀ,  Σ w k(x, x)
//! ```
//!
//! Whether y is multiplied by `L⁻¹`, and which s is subtracted, depends only on the support, so that sums over
//! different rows can be added.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

use faer::{Mat, MatRef};

use crate::dense;
use crate::error::{Error, Result};
use crate::factor::{Factor, Stop};
use crate::gram::{Arithmetic, Basis};
use crate::kernel::{Form, Kernel, kernel_of, with_kernel};
use crate::kernel_matrix::{gram, trace};
use crate::parcel::Parcel;
use crate::points::Points;
use crate::random::{Random, Stream};
use crate::rows::{Errand, Pass, Weighted, fold};
use crate::scatter::Scatter;
use crate::sums::Sums;
use crate::watch::{Watch, check};

/// Number of rows among which independent ones are searched first.
pub(crate) const SPANNING: usize = 4000;
/// Exponent of a Gaussian up to which it is computed as a difference of squares.
const FARTHEST: f64 = 1e6;
/// Relative accuracy required of `L⁻¹ (Σ k kᵀ) L⁻ᵀ`, which may lose seven of sixteen digits; if it would lose more,
/// each row is multiplied by `L⁻ᵀ` before summing.
pub(crate) const LOSS: f64 = 1e-9;

/// Number of rows from which 32-bit kernel values and products are considered: with so many rows, rounding errors
/// average out (docs/decisions/0018).
pub(crate) const SINGLE_ROWS: usize = 50_000;
/// Number of points from which they are considered.
pub(crate) const SINGLE_POINTS: usize = 100;
/// Condition number up to which they are used.
const SINGLE_CONDITION: f64 = 2e6;

/// Linearly independent points of a support and the Cholesky factor of their kernel matrix: the part of a span that
/// does not depend on other rows.
#[derive(Clone)]
pub(crate) struct Skeleton {
    /// Positions of the independent points in the support.
    pub kept: Vec<usize>,
    pub basis: Arc<Basis>,
    pub l: Mat<f64>,
    /// Condition number of the kernel matrix.
    pub condition: f64,
    /// Magnitude to which the rounding errors of each point's kernel values are relative.
    pub units: Vec<f64>,
    /// s, a value common to all kernel values; subtracting it preserves the digits in which they differ.
    pub shift: f64,
    /// Whether y is multiplied by `L⁻¹` row by row, because whitening the sum would lose too many digits.
    pub whitens: bool,
}

impl Skeleton {
    pub(crate) fn new(kernel: &Arc<dyn Kernel>, support: &Points<'static>, watch: &dyn Watch) -> Result<Skeleton> {
        let (kept, l) = independent(kernel, support, watch)?;
        Ok(Skeleton::with(kernel, support, kept, l))
    }

    /// Creates the skeleton of points that are known to be independent, in their order.
    pub(crate) fn in_order(kernel: &Arc<dyn Kernel>, support: &Points<'static>) -> Result<Skeleton> {
        match dense::cholesky(gram(kernel, support).as_ref()) {
            Some(l) => Ok(Skeleton::with(kernel, support, (0..support.n()).collect(), l)),
            None => Err(Error::Numerical { why: "the support points are linearly dependent".into() }),
        }
    }

    fn with(kernel: &Arc<dyn Kernel>, support: &Points<'static>, kept: Vec<usize>, l: Mat<f64>) -> Skeleton {
        let basis = Arc::new(Basis::new(kernel.clone(), support.select(&kept)));
        let (units, condition) = (units(&basis, l.as_ref()), condition(l.as_ref()));
        let (shift, whitens) = (common_value(l.as_ref()), f64::EPSILON * condition > LOSS);
        Skeleton { kept, basis, condition, l, units, shift, whitens }
    }

    pub(crate) fn kernel(&self) -> &Arc<dyn Kernel> {
        self.basis.kernel()
    }

    /// Returns the number of independent points.
    pub(crate) fn m(&self) -> usize {
        self.kept.len()
    }

    /// Computes the sums over all rows; with at least `single` rows, 32-bit arithmetic may be used.
    pub(crate) fn sums(&self, rows: Weighted, single: usize, watch: &dyn Watch) -> Result<Sums> {
        let trace = trace(self.kernel(), rows, watch)?;
        let single = !self.whitens && rows.rows.n() >= single && self.single_is_enough();
        let (squares, sums) =
            if single { self.covariance::<f32>(rows, watch) } else { self.covariance::<f64>(rows, watch) }?;
        Ok(Sums { rows: rows.rows.n(), weight: rows.weight(), sums, squares, trace })
    }

    fn covariance<E: Arithmetic>(&self, rows: Weighted, watch: &dyn Watch) -> Result<(Mat<f64>, Vec<f64>)> {
        let whitening = self.whitens.then(|| Cow::Borrowed(&self.l));
        let (basis, shift, weights) = (self.basis.clone(), self.shift, rows.weights);
        let pass = Covariance::<E> { basis, shift, whitening, weights, arithmetic: PhantomData };
        Ok(fold(rows.rows, &pass, (watch, "covariance"))?.into_parts())
    }

    /// Returns `L⁻¹ Z`: for the linear kernel, orthonormal rows that span the kept points.
    pub(crate) fn axes(&self) -> Mat<f64> {
        let z = self.basis.points();
        let mut axes = MatRef::from_row_major_slice(z.values(), z.n(), z.d()).to_owned();
        dense::solve_lower(self.l.as_ref(), axes.as_mut());
        axes
    }

    /// Returns whether 32 bits are enough for `Σ k kᵀ`: values must be between −1 and 1, and points well separated.
    pub(crate) fn single_is_enough(&self) -> bool {
        self.kernel().bounded() && self.m() >= SINGLE_POINTS && self.condition <= SINGLE_CONDITION
    }
}

/// Returns `k(z, z)` of each point. For a Gaussian, whose exponents are computed as differences of squares, it is
/// larger for points far from the others.
fn units(basis: &Basis, l: MatRef<f64>) -> Vec<f64> {
    let points = basis.points();
    let centre = points.mean();
    let far = |z: &[f64]| match basis.kernel().form() {
        Form::Gaussian { gamma } => gamma * z.iter().zip(&centre).map(|(z, c)| (z - c) * (z - c)).sum::<f64>(),
        _ => 0.0,
    };
    // Beyond FARTHEST, kernel values are computed by their definition.
    let unit = |(i, z): (usize, &[f64])| l.row(i).squared_norm_l2() * (1.0 + far(z).min(FARTHEST) / 4.0);
    points.rows().enumerate().map(unit).collect()
}

/// Returns the positions of an independent subset of `support` and the Cholesky factor of its kernel matrix.
fn independent(
    kernel: &Arc<dyn Kernel>,
    support: &Points<'static>,
    watch: &dyn Watch,
) -> Result<(Vec<usize>, Mat<f64>)> {
    let rank = support.n().min(kernel.rank(support.d()));
    let report = |done| check(watch, "support", done);
    if rank == support.n()
        && let Some(l) = dense::large_cholesky(gram(kernel, support), report)?.filter(|l| spread(l) > 1e-12)
    {
        return Ok(((0..rank).collect(), l));
    }
    let stop = Stop { rank, residual: 0.0 };
    // If feature space has few dimensions, a sample spans it.
    let sample = Random::new(0, Stream::SpanningSupport).sample(support.n(), SPANNING.max(10 * rank));
    if sample.len() < support.n() {
        let factor = Factor::pivoted(kernel, &support.select(&sample), stop, 0, watch)?;
        if factor.rank() == rank {
            let l = factor.triangle();
            return Ok((factor.pivots.iter().map(|&i| sample[i]).collect(), l));
        }
    }
    let factor = Factor::pivoted(kernel, support, stop, 0, watch)?;
    let l = factor.triangle();
    Ok((factor.pivots, l))
}

/// Returns the ratio of the smallest to the largest squared pivot.
fn spread(l: &Mat<f64>) -> f64 {
    let pivots = (0..l.nrows()).map(|i| l[(i, i)] * l[(i, i)]);
    let (low, high) = pivots.fold((f64::MAX, 0.0_f64), |(low, high), p| (low.min(p), high.max(p)));
    low / high
}

/// Returns the common part of kernel values: the mean of `K_zz = L Lᵀ`, or 0 if features of some points are much longer
/// than those of others, whose small values would lose digits.
fn common_value(l: MatRef<f64>) -> f64 {
    let m = l.nrows();
    let squares = (0..m).map(|i| l.row(i).squared_norm_l2());
    let (low, high) = squares.fold((f64::MAX, 0.0_f64), |(low, high), s| (low.min(s), high.max(s)));
    if low < high / 4.0 {
        return 0.0;
    }
    (0..m).map(|j| l.col(j).subrows(j, m - j).sum().powi(2)).sum::<f64>() / (m * m) as f64
}

/// Estimates the condition number of `K_zz`: its trace over its smallest eigenvalue, which is found by inverse
/// iteration.
pub(crate) fn condition(l: MatRef<f64>) -> f64 {
    let trace: f64 = (0..l.nrows()).map(|i| l.row(i).squared_norm_l2()).sum();
    let mut random = Random::new(0, Stream::Condition);
    let mut x = Mat::from_fn(l.nrows(), 1, |_, _| random.normal());
    let mut growth = 0.0;
    for _ in 0..8 {
        let norm = x.norm_l2();
        x.col_mut(0).iter_mut().for_each(|v| *v /= norm);
        dense::solve_lower(l, x.as_mut());
        dense::solve_lower_transposed(l, x.as_mut());
        growth = x.norm_l2();
    }
    trace * growth
}

/// Name of the pass in parcels.
pub(crate) const COVARIANCE: &str = "covariance";

/// Recreates the pass on another machine.
pub(crate) fn covariance(mut parcel: Parcel) -> Result<Box<dyn Errand>> {
    let (m, d, kernel) = (parcel.count("m")?, parcel.count("d")?, kernel_of(&parcel)?);
    let shift = parcel.take(1)?[0];
    let basis = Arc::new(Basis::new(kernel, Points::new(d, parcel.take(m.saturating_mul(d))?)?));
    let triangle = if parcel.says("whitens") { m * (m + 1) / 2 } else { 0 };
    let triangle = parcel.take(triangle)?;
    let whitening = (!triangle.is_empty()).then(|| Cow::Owned(dense::from_lower_triangle(m, &triangle)));
    Ok(if parcel.says("single") {
        Box::new(Covariance::<f32> { basis, shift, whitening, weights: None, arithmetic: PhantomData })
    } else {
        Box::new(Covariance::<f64> { basis, shift, whitening, weights: None, arithmetic: PhantomData })
    })
}

/// The pass that computes `Σ w y yᵀ` and `Σ w y`, in the arithmetic of E.
struct Covariance<'a, E> {
    basis: Arc<Basis>,
    shift: f64,
    /// L if y is `L⁻¹ (k_z(x) − s)`, `None` if it is `k_z(x) − s`.
    whitening: Option<Cow<'a, Mat<f64>>>,
    weights: Option<&'a [f64]>,
    arithmetic: PhantomData<fn() -> E>,
}

impl<E: Arithmetic> Pass for Covariance<'_, E> {
    type Sum = Scatter<E>;

    fn zero(&self) -> Scatter<E> {
        Scatter::new(self.basis.points().n(), self.basis.kernel().instructions())
    }

    fn add(&self, sum: &mut Scatter<E>, x: &Points, first: usize) {
        let weights = self.weights.map(|weights| &weights[first..first + x.n()]);
        match &self.whitening {
            None => sum.add_kernel(&self.basis, x, self.shift, weights),
            Some(l) => {
                let mut k = Mat::zeros(x.n(), l.nrows());
                self.basis.block(x, k.as_mut());
                k.col_iter_mut().for_each(|column| column.iter_mut().for_each(|k| *k -= self.shift));
                dense::divide_by_transposed(k.as_mut(), l.as_ref().as_ref());
                sum.add_weighted_rows(k.as_ref(), weights);
            }
        }
    }

    fn merge(&self, left: &mut Scatter<E>, right: Scatter<E>) {
        left.merge(&right);
    }

    fn parcel(&self) -> Parcel {
        let points = self.basis.points();
        let mut numbers = vec![self.shift];
        numbers.extend(points.values());
        numbers.extend(self.whitening.iter().flat_map(|l| dense::lower_triangle(l)));
        let parcel = Parcel::new(COVARIANCE, numbers).with("m", points.n()).with("d", points.d());
        let parcel =
            parcel.with("whitens", self.whitening.is_some()).with("single", size_of::<E>() == size_of::<f32>());
        with_kernel(parcel, self.basis.kernel())
    }

    fn numbers(&self, sum: Scatter<E>) -> Vec<f64> {
        let (squares, sums) = sum.into_parts();
        [dense::lower_triangle(&squares), sums].concat()
    }

    fn sum(&self, numbers: Vec<f64>) -> Scatter<E> {
        let mut scatter = self.zero();
        let (triangle, sums) = numbers.split_at(numbers.len() - self.basis.points().n());
        scatter.set(triangle, sums);
        scatter
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel;
    use crate::toys;

    #[test]
    fn whitening_rows_or_the_sum_gives_the_same_components() {
        let points = toys::parabola(1);
        let kernel = kernel::build(&"rbf".parse().unwrap(), &points, 0).unwrap();
        let support = points.select(&(0..10).map(|i| 50 * i).collect::<Vec<_>>());
        let plain = Skeleton::new(&kernel, &support, &()).unwrap();
        assert!(plain.m() == 10 && !plain.whitens);
        let whitened = Skeleton { whitens: true, ..plain.clone() };
        let weights: Vec<f64> = (0..points.n()).map(|i| (i % 3) as f64).collect();
        for weights in [None, Some(&weights[..])] {
            let sums = |skeleton: &Skeleton| skeleton.sums(Weighted { rows: &points, weights }, 0, &()).unwrap();
            let (rows, mut sum) = (sums(&whitened).squares, sums(&plain).squares);
            dense::whiten(plain.l.as_ref(), &mut sum);
            for j in 0..10 {
                for i in j..10 {
                    assert!((rows[(i, j)] - sum[(i, j)]).abs() < 1e-7 * rows[(0, 0)], "{i} {j}");
                }
            }
        }
    }

    #[test]
    fn a_row_of_weight_two_is_two_rows() {
        let points = toys::parabola(1);
        let twice: Vec<usize> = (0..points.n()).flat_map(|i| vec![i; i % 3]).collect();
        let weights: Vec<f64> = (0..points.n()).map(|i| (i % 3) as f64).collect();
        let support = points.select(&(0..10).map(|i| 50 * i).collect::<Vec<_>>());
        for (name, whitens) in [("rbf", false), ("rbf", true), ("polynomial,degree=2", false)] {
            let kernel = kernel::build(&name.parse().unwrap(), &points, 0).unwrap();
            let skeleton = Skeleton { whitens, ..Skeleton::new(&kernel, &support, &()).unwrap() };
            let weighted = skeleton.sums(Weighted { rows: &points, weights: Some(&weights) }, 0, &()).unwrap();
            let repeated = skeleton.sums(Weighted::of(&points.select(&twice)), 0, &()).unwrap();
            assert!((weighted.weight, weighted.rows) == (twice.len() as f64, points.n()));
            assert!((weighted.trace / repeated.trace - 1.0).abs() < 1e-12, "{name}");
            let scale = repeated.squares.norm_max();
            assert!((&weighted.squares - &repeated.squares).norm_max() < 1e-12 * scale, "{name} {whitens}");
            for (a, b) in weighted.sums.iter().zip(&repeated.sums) {
                assert!((a - b).abs() < 1e-12 * repeated.weight * scale.sqrt(), "{name} {whitens} {a} {b}");
            }
        }
    }
}
