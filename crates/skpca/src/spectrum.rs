//! Rayleigh–Ritz: the best components in the span of a support.
//!
//! ```text
//! C b = λ K_zz b,  bᵀ K_zz b = 1,      C = Σ_j (k_z(x_j) − μ)(k_z(x_j) − μ)ᵀ,  μ = (1/n) Σ_j k_z(x_j)
//! ```

use std::sync::Arc;

use faer::{Mat, MatRef};

use crate::dense;
use crate::eigen::{Accuracy, top};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::points::Points;
use crate::rows::{Rows, Weighted};
use crate::skeleton::{SINGLE_ROWS, Skeleton};
use crate::sums::Sums;
use crate::table_moments::TableMoments;
use crate::watch::{Watch, check};

/// Number of rows from which 32 bits are used if spans are only compared with each other.
const ROUGH: usize = 1000;
/// A component shorter than this share of its terms is rounding error.
const EMPTY: f64 = 1e-12;
/// Accuracy to which components are orthonormal.
const ORTHONORMAL: f64 = 1e-8;
/// Relative accuracy of kernel values. [`resolved`] states what both imply for `Σ a_i² k(z_i, z_i)`.
const KERNEL_ROUNDING: f64 = 8.0 * f64::EPSILON;
/// A point is well separated if at least this share of its squared length is outside the span of the others.
const APART: f64 = KERNEL_ROUNDING / ORTHONORMAL;
/// A residual trace this far below zero (as a share of the trace) is not rounding error: the kernel is not positive
/// semi-definite.
const NEGATIVE: f64 = 1e-7;

/// Components in the span of a support, with everything a model needs to know about them.
pub(crate) struct Expansion {
    /// Positions of the independent points in the support; the other fields are over these.
    pub kept: Vec<usize>,
    /// m × q, of unit norm: `bᵀ K_zz b = 1`.
    pub coefficients: Mat<f64>,
    /// q × q′, such that `coefficients · frame` are orthonormal; absent if the components themselves are.
    pub frame: Option<Mat<f64>>,
    /// Variance along each component, summed over rows.
    pub values: Vec<f64>,
    /// Variance in the span of the components, summed over rows.
    pub captured: f64,
    /// `μ_i = (1/n) Σ_j k(z_i, x_j)`; zero if not centred.
    pub mu: Vec<f64>,
    /// `β = K_zz⁻¹ μ`: the mean, projected onto the span of the support.
    pub beta: Vec<f64>,
    /// `Σ_j k(x_j, x_j) − ‖P φ(x_j)‖²` over all rows: the variance outside the span of the support.
    pub residual_trace: f64,
    /// `Σ_j k(x_j, x_j)`
    pub trace: f64,
}

/// Returns the variance of some rows captured by the best `q` components in the span of `skeleton`, to a few digits,
/// which are enough for comparisons.
pub(crate) fn roughly_captured(
    skeleton: &Skeleton,
    rows: &dyn Rows,
    q: usize,
    center: bool,
    watch: &dyn Watch,
) -> Result<f64> {
    let span = skeleton.span(rows, center, ROUGH, watch)?;
    let accuracy = Accuracy { tolerance: 1e-3, trace: span.trace, ..Accuracy::default() };
    Ok(top(&span.c, q, accuracy, 0, watch)?.values.iter().sum())
}

impl Skeleton {
    /// Computes the span over all rows; with at least `single` rows, sums may be computed in 32 bits.
    pub(crate) fn span(&self, rows: &dyn Rows, center: bool, single: usize, watch: &dyn Watch) -> Result<Span> {
        self.span_of(&self.sums(Weighted::of(rows), single, watch)?, center, watch)
    }

    /// Computes the span over rows with known sums.
    pub(crate) fn span_of(&self, sums: &Sums, center: bool, watch: &dyn Watch) -> Result<Span> {
        let (l, n) = (self.l.as_ref(), sums.weight);
        let mut c = sums.squares.clone();
        let mut mean = Mat::from_fn(self.m(), 1, |i, _| sums.sums[i] / n);
        subtract_outer(&mut c, n, &mean);
        // Back to the mean of k_z itself, in the coordinates of the span.
        let mut shift = Mat::from_fn(self.m(), 1, |_, _| self.shift);
        dense::solve_lower(l, shift.as_mut());
        if !self.whitens {
            dense::large_whiten(l, &mut c, |done| check(watch, "covariance", done))?;
            dense::solve_lower(l, mean.as_mut());
        }
        mean += shift;
        let residual_trace = sums.trace - dense::trace(&c) - n * mean.squared_norm_l2();
        let rounding = NEGATIVE.max(10.0 * f64::EPSILON * self.condition);
        if residual_trace < -rounding * sums.trace && !self.kernel().positive_semidefinite() {
            // A projection is never longer than the vector itself.
            return Err(Error::NotPositive { kernel: self.kernel().spec().name, value: residual_trace });
        }
        if !center {
            subtract_outer(&mut c, -n, &mean);
            mean.fill(0.0);
        }
        Ok(self.spanned(c, mean, residual_trace, (sums.trace, n)))
    }

    /// Computes the span over the rows of a table with these moments, for the linear kernel.
    pub(crate) fn linear_span(&self, moments: &TableMoments) -> Span {
        let axes = self.axes();
        let c = dense::product(axes.as_ref(), dense::product(moments.scatter.as_ref(), axes.transpose()).as_ref());
        let mean = MatRef::from_column_major_slice(&moments.mean, moments.mean.len(), 1);
        let mean = dense::product(axes.as_ref(), mean);
        let n = moments.weight;
        let held = dense::trace(&c) + n * mean.squared_norm_l2();
        self.spanned(c, mean, moments.trace - held, (moments.trace, n))
    }

    /// Creates the span with scatter `c` and `mean` in its coordinates.
    fn spanned(&self, mut c: Mat<f64>, mean: Mat<f64>, residual_trace: f64, (trace, weight): (f64, f64)) -> Span {
        dense::mirror(&mut c);
        let (kept, l, units) = (self.kept.clone(), self.l.clone(), self.units.clone());
        Span { kept, l, units, c, mean, residual_trace: residual_trace.max(0.0), trace, weight }
    }
}

/// The span of a support, in coordinates `y = Lᵀ a` that are orthonormal in feature space (`K_zz = L Lᵀ`).
pub(crate) struct Span {
    /// Positions of the independent points in the support.
    kept: Vec<usize>,
    l: Mat<f64>,
    /// As in [`Skeleton`].
    units: Vec<f64>,
    /// `L⁻¹ C L⁻ᵀ`
    c: Mat<f64>,
    /// `L⁻¹ μ`; zero if not centred.
    mean: Mat<f64>,
    residual_trace: f64,
    trace: f64,
    /// Sum of the weights of the rows.
    weight: f64,
}

impl Span {
    pub(crate) fn new(
        kernel: &Arc<dyn Kernel>,
        rows: &dyn Rows,
        support: &Points<'static>,
        center: bool,
        watch: &dyn Watch,
    ) -> Result<Span> {
        Skeleton::new(kernel, support, watch)?.span(rows, center, SINGLE_ROWS, watch)
    }

    /// Returns the best `q` components.
    pub(crate) fn best(self, q: usize, watch: &dyn Watch) -> Result<Expansion> {
        let pairs = top(&self.c, q, Accuracy { trace: self.trace, ..Accuracy::default() }, 0, watch)?;
        let mut coefficients = pairs.vectors;
        dense::solve_lower_transposed(self.l.as_ref(), coefficients.as_mut());
        let resolved = resolved(coefficients.as_ref(), &self.units);
        if resolved.len() < coefficients.ncols()
            && let Some((apart, _)) = self.apart()
        {
            return apart.best(q, watch);
        }
        let values: Vec<f64> = resolved.iter().map(|&j| pairs.values[j]).collect();
        let captured = values.iter().sum();
        Ok(self.expansion(dense::columns(&coefficients, &resolved), None, values, captured))
    }

    /// Returns given components, `coefficients` over all points of the support with kernel matrix `k`, scaled to unit
    /// norm. If dependent points were dropped, the components are expressed by the others.
    pub(crate) fn given(self, coefficients: MatRef<f64>, k: impl FnOnce() -> Mat<f64>) -> Result<Expansion> {
        let (m, q) = (self.kept.len(), coefficients.ncols());
        let (mut a, mut y);
        if m == coefficients.nrows() {
            a = Mat::from_fn(m, q, |i, j| coefficients[(self.kept[i], j)]);
            y = dense::product(self.l.transpose(), a.as_ref());
        } else {
            let k = k();
            let rows = Mat::from_fn(m, k.ncols(), |i, j| k[(self.kept[i], j)]);
            y = dense::product(rows.as_ref(), coefficients);
            dense::solve_lower(self.l.as_ref(), y.as_mut());
            a = y.clone();
            dense::solve_lower_transposed(self.l.as_ref(), a.as_mut());
        }
        self.components(a, y)
    }

    /// Returns the positions of the independent points in the support.
    pub(crate) fn kept(&self) -> &[usize] {
        &self.kept
    }

    /// Returns the variance of the rows outside the span.
    pub(crate) fn residual_trace(&self) -> f64 {
        self.residual_trace
    }

    /// Returns `L⁻¹ C L⁻ᵀ`, the scatter of the rows.
    pub(crate) fn scatter(&self) -> &Mat<f64> {
        &self.c
    }

    /// Returns the coordinates, relative to the mean if centred, of vectors given by their products `k` with the kept
    /// points.
    pub(crate) fn coordinates(&self, mut k: Mat<f64>) -> Mat<f64> {
        dense::solve_lower(self.l.as_ref(), k.as_mut());
        Mat::from_fn(k.nrows(), k.ncols(), |i, j| k[(i, j)] - self.mean[(i, 0)])
    }

    /// Returns the components with these coordinates, scaled to unit norm.
    pub(crate) fn along(self, y: Mat<f64>) -> Result<Expansion> {
        let mut a = y.clone();
        dense::solve_lower_transposed(self.l.as_ref(), a.as_mut());
        self.components(a, y)
    }

    /// Returns components with coefficients `a` and coordinates `y`. Those whose length is zero, or only the rounding
    /// error of terms that cancel, have no direction and are left out.
    fn components(self, a: Mat<f64>, y: Mat<f64>) -> Result<Expansion> {
        let terms = |j: usize| a.col(j).iter().zip(&self.units).map(|(a, unit)| a.abs() * unit.sqrt()).sum::<f64>();
        let norms: Vec<f64> = y.col_iter().map(|y| y.norm_l2()).collect();
        let alive: Vec<usize> = (0..y.ncols()).filter(|&j| norms[j] > EMPTY * terms(j)).collect();
        let unit = |m: &Mat<f64>| Mat::from_fn(m.nrows(), alive.len(), |i, j| m[(i, alive[j])] / norms[alive[j]]);
        let (a, y) = (unit(&a), unit(&y));
        let sound = resolved(a.as_ref(), &self.units);
        if sound.len() < a.ncols() {
            return match self.apart() {
                Some((apart, q)) => apart.along(dense::product(q.as_ref(), y.as_ref())),
                None => self.components(dense::columns(&a, &sound), dense::columns(&y, &sound)),
            };
        }
        let frame = dense::frame(y.as_ref(), 1e-10)?;
        let axes = resolved(dense::product(a.as_ref(), frame.as_ref()).as_ref(), &self.units);
        let frame = dense::columns(&frame, &axes);
        let scatter = |y: &Mat<f64>| -> Vec<f64> {
            let cy = dense::product(self.c.as_ref(), y.as_ref());
            let along = |j: usize| y.col(j).iter().zip(cy.col(j).iter()).map(|(y, c)| y * c).sum::<f64>();
            (0..y.ncols()).map(|j| along(j).max(0.0)).collect()
        };
        let captured = scatter(&dense::product(y.as_ref(), frame.as_ref())).iter().sum();
        let values = scatter(&y);
        Ok(self.expansion(a, Some(frame), values, captured))
    }

    /// Returns the span of the well-separated points, and the matrix that maps coordinates of this span to coordinates
    /// of that one; `None` if all points are well separated.
    fn apart(&self) -> Option<(Span, Mat<f64>)> {
        let (apart, q) = dense::independent_rows(self.l.as_ref(), APART);
        if apart.len() == self.kept.len() {
            return None;
        }
        let c = dense::product(q.as_ref(), dense::product(self.c.as_ref(), q.transpose()).as_ref());
        let mean = dense::product(q.as_ref(), self.mean.as_ref());
        let lost = dense::trace(&self.c) - dense::trace(&c)
            + self.weight * (self.mean.squared_norm_l2() - mean.squared_norm_l2());
        let l = Mat::from_fn(apart.len(), self.l.ncols(), |i, j| self.l[(apart[i], j)]);
        let mut l = dense::product(l.as_ref(), q.transpose());
        (0..l.ncols()).for_each(|j| l.col_mut(j).subrows_mut(0, j).fill(0.0));
        let mut span = Span {
            kept: apart.iter().map(|&i| self.kept[i]).collect(),
            units: apart.iter().map(|&i| self.units[i]).collect(),
            l,
            c,
            mean,
            residual_trace: self.residual_trace + lost.max(0.0),
            ..*self
        };
        dense::mirror(&mut span.c);
        Some((span, q))
    }

    fn expansion(self, a: Mat<f64>, frame: Option<Mat<f64>>, values: Vec<f64>, captured: f64) -> Expansion {
        let Span { kept, l, mut mean, residual_trace, trace, .. } = self;
        let mu = dense::product(l.as_ref(), mean.as_ref());
        dense::solve_lower_transposed(l.as_ref(), mean.as_mut());
        // Dependent points may have left the kept ones in pivot order.
        let mut order: Vec<usize> = (0..kept.len()).collect();
        order.sort_by_key(|&i| kept[i]);
        let ordered = |a: &Mat<f64>| order.iter().map(|&i| a[(i, 0)]).collect::<Vec<f64>>();
        Expansion {
            kept: order.iter().map(|&i| kept[i]).collect(),
            coefficients: Mat::from_fn(kept.len(), a.ncols(), |i, j| a[(order[i], j)]),
            frame,
            values,
            captured,
            mu: ordered(&mu),
            beta: ordered(&mean),
            residual_trace,
            trace,
        }
    }
}

/// Returns the components, of unit norm with coefficients `a`, whose norm is not dominated by rounding errors. Kernel
/// values are accurate to about `ε k`, and products of components therefore to `ε Σ a_i² k(z_i, z_i)`, which is large
/// if points are nearly linearly dependent and large coefficients cancel. `units` are the `k(z_i, z_i)`, or larger.
pub(crate) fn resolved(a: MatRef<f64>, units: &[f64]) -> Vec<usize> {
    let terms = |j: usize| a.col(j).iter().zip(units).map(|(a, unit)| a * a * unit).sum::<f64>();
    (0..a.ncols()).filter(|&j| KERNEL_ROUNDING * terms(j) <= ORTHONORMAL).collect()
}

/// Computes `C − n m mᵀ` in place.
fn subtract_outer(c: &mut Mat<f64>, n: f64, m: &Mat<f64>) {
    for j in 0..m.nrows() {
        (0..m.nrows()).for_each(|i| c[(i, j)] -= n * m[(i, 0)] * m[(j, 0)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel;
    use crate::kernel_matrix::gram;
    use crate::random::{Random, Stream};
    use crate::skeleton::SINGLE_POINTS;
    use crate::spec::Spec;
    use crate::toys;
    use crate::watch::Impatient;

    #[test]
    fn interrupting_ends_the_fit() {
        let points = toys::parabola(0);
        let kernel = kernel::build(&Spec::new("rbf"), &points, 0).unwrap();
        let support = points.select(&[0, 1, 2]);
        assert_eq!(Span::new(&kernel, &points, &support, true, &Impatient).err(), Some(Error::Interrupted));
    }

    /// Returns how far the components are from orthonormal, using kernel values by their definition.
    fn skew(kernel: &Arc<dyn Kernel>, support: &Points<'static>, expansion: &Expansion) -> f64 {
        let kept = support.select(&expansion.kept);
        let k = Mat::from_fn(kept.n(), kept.n(), |i, j| kernel.eval(kept.row(i), kept.row(j)));
        let a = match &expansion.frame {
            Some(frame) => dense::product(expansion.coefficients.as_ref(), frame.as_ref()),
            None => expansion.coefficients.clone(),
        };
        let products = dense::product(a.transpose(), dense::product(k.as_ref(), a.as_ref()).as_ref());
        (products - Mat::<f64>::identity(a.ncols(), a.ncols())).norm_max()
    }

    #[test]
    fn components_that_are_rounding_errors_are_left_out_and_the_others_stay() {
        // Pairs of points so close that the length of a component along their difference is not known to eight digits.
        let points = toys::parabola(1);
        for distance in [1e-3, 1e-4, 1e-5, 1e-6] {
            let near = |i: usize| points.row(i).iter().map(move |v| v + distance).collect::<Vec<f64>>();
            let pairs = (0..8).flat_map(|i| [points.row(50 * i).to_vec(), near(50 * i)].concat());
            let support = Points::new(2, pairs.collect::<Vec<f64>>()).unwrap();
            let alone = points.select(&(0..8).map(|i| 50 * i).collect::<Vec<_>>());
            for kernel in ["rbf,gamma=0.5", "laplacian,gamma=0.5", "polynomial,degree=3"] {
                let kernel = kernel::build(&kernel.parse().unwrap(), &points, 0).unwrap();
                let span = |support| Span::new(&kernel, &points, support, true, &()).unwrap();
                let (pairs, singles) = (span(&support).best(6, &()).unwrap(), span(&alone).best(6, &()).unwrap());
                assert!(skew(&kernel, &support, &pairs) < 1e-8, "{kernel:?} {distance}");
                assert!(pairs.captured > (1.0 - 1e-6) * singles.captured, "{kernel:?} {distance}");
                let own = Mat::from_fn(16, 8, |i, j| if i / 2 == j { 1.0 - 2.0 * (i % 2) as f64 } else { 0.0 });
                let k = || gram(&kernel, &support);
                let differences = span(&support).given(own.as_ref(), k).unwrap();
                assert!(skew(&kernel, &support, &differences) < 1e-8, "{kernel:?} {distance}");
            }
        }
    }

    /// Many rows in four columns and some points among them.
    fn many() -> (Points<'static>, Points<'static>) {
        let mut random = Random::new(1, Stream::Tests);
        let points = Points::new(4, (0..4 * 20_000).map(|_| random.normal()).collect::<Vec<_>>()).unwrap();
        let support = points.select(&(0..SINGLE_POINTS).collect::<Vec<_>>());
        (points, support)
    }

    #[test]
    fn sums_in_32_bits_keep_six_digits_and_their_bits_on_any_pool() {
        let (points, support) = many();
        for (kernel, center) in [("rbf,gamma=0.3", true), ("rbf,gamma=0.3", false), ("laplacian", true)] {
            let kernel = kernel::build(&kernel.parse().unwrap(), &points, 0).unwrap();
            let skeleton = Skeleton::new(&kernel, &support, &()).unwrap();
            assert!(skeleton.single_is_enough(), "{}", skeleton.condition);
            let span = |single: usize| skeleton.span(&points, center, single, &()).unwrap();
            let on = |threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| span(0))
            };
            let (single, double) = (on(1), span(usize::MAX));
            assert_eq!(single.c, on(3).c);
            assert!(single.c != double.c, "32 bits were not used");
            // Inverting K_zz amplifies the rounding errors of 32 bits by its condition number.
            let lost = (single.residual_trace - double.residual_trace).abs() / double.trace;
            assert!(lost < 5e-11 * skeleton.condition, "{lost} {}", skeleton.condition);
            let (single, double) = (single.best(5, &()).unwrap(), double.best(5, &()).unwrap());
            for (a, b) in single.values.iter().zip(&double.values) {
                assert!((a / b - 1.0).abs() < 1e-6, "{a} {b}");
            }
            for (a, b) in single.mu.iter().zip(&double.mu) {
                assert!((a - b).abs() < 1e-6, "{a} {b}");
            }
        }
    }

    #[test]
    fn neither_large_values_nor_close_points_are_summed_in_32_bits() {
        let (points, support) = many();
        let enough = |kernel: &str, support: &Points<'static>| {
            let kernel = kernel::build(&kernel.parse().unwrap(), &points, 0).unwrap();
            Skeleton::new(&kernel, support, &()).unwrap().single_is_enough()
        };
        assert!(enough("rbf,gamma=0.3", &support));
        assert!(!enough("rbf,gamma=0.3", &support.select(&(1..SINGLE_POINTS).collect::<Vec<_>>())));
        assert!(!enough("rbf,gamma=0.001", &support));
        assert!(!enough("polynomial,degree=6", &support));
    }
}
