//! Leading eigenpairs of symmetric matrices given by their products with vectors.
//!
//! ```text
//! exact KPCA        K̃ u = λ u,   K̃ = H K H,  H = I − 11ᵀ/n        K is not stored if it is large
//! basis V           grows by residuals r = K̃u − λu (block Krylov), or by (M − λ)⁻¹ r with M ≈ K̃ (Davidson 1975)
//! ```

mod guide;
mod kernel;
mod weighted;

use std::sync::Arc;

use faer::{ColRef, Mat, MatRef};

use crate::blocks;
use crate::dense;
use crate::error::{Error, Result};
use crate::gram::BUNDLES;
use crate::kernel::Kernel;
use crate::random::{Random, Stream};
use crate::watch::{Watch, check};

use guide::Guide;
pub(crate) use guide::guide_rank;
pub(crate) use kernel::{KernelOperator, center_columns};
pub(crate) use weighted::WeightedKernel;

/// Eigenvalues below this share of the largest belong to the null space.
const RANK: f64 = 1e-11;
/// So do eigenvalues below this share of the trace before centring.
const ROUNDING: f64 = 1e-13;
/// A Ritz value this far below zero (as a share of the largest) shows an indefinite kernel.
const NEGATIVE: f64 = 1e-8;
/// Size up to which a full decomposition is cheaper than iterating.
const DENSE: usize = 192;
/// Number of rows from which a low-rank factor guides the iteration.
const GUIDED: usize = 1500;
/// Residual below which new basis vectors contribute so little to the eigenvectors that their products may be rough.
const ROUGH: f64 = 2e-5;
/// The error of a rough product, times that residual, must stay below this share of the tolerance.
const ROUGH_SHARE: f64 = 0.1;

/// A symmetric matrix given by its products with vectors.
pub(crate) trait Operator: Sync {
    fn dim(&self) -> usize;
    fn apply(&self, v: MatRef<f64>) -> Mat<f64>;

    /// Returns an approximate product and the norm of the error of its worst column, if that is much cheaper.
    fn apply_roughly(&self, _v: MatRef<f64>) -> Option<(Mat<f64>, f64)> {
        None
    }
}

/// A stored matrix is an operator.
impl Operator for Mat<f64> {
    fn dim(&self) -> usize {
        self.nrows()
    }
    fn apply(&self, v: MatRef<f64>) -> Mat<f64> {
        dense::product(self.as_ref(), v)
    }
}

/// Leading eigenpairs, largest first, with the status of the iteration.
pub(crate) struct Pairs {
    pub values: Vec<f64>,
    pub vectors: Mat<f64>,
    /// Number of products with the operator.
    pub rounds: usize,
    /// Largest `‖K u − λ u‖ / λ₁` of the returned pairs.
    pub residual: f64,
    pub converged: bool,
    /// The lowest Ritz value seen; a value far below zero shows that the matrix is not positive semi-definite.
    lowest: f64,
}

impl Pairs {
    /// Returns an error for the pairs of an indefinite kernel.
    fn of_kernel(self, kernel: &Arc<dyn Kernel>, trace: f64) -> Result<Pairs> {
        if self.lowest < -(NEGATIVE * self.values.first().copied().unwrap_or(0.0)).max(ROUNDING * trace) {
            Err(Error::NotPositive { kernel: kernel.spec().name, value: self.lowest })
        } else {
            Ok(self)
        }
    }
}

/// The required accuracy: `‖K u − λ u‖ ≤ tolerance · λ₁`, in at most `rounds` products.
#[derive(Clone, Copy)]
pub(crate) struct Accuracy {
    pub tolerance: f64,
    pub rounds: usize,
    /// `Σ k(x, x)`: eigenvalues below its rounding error are dropped.
    pub trace: f64,
}

impl Default for Accuracy {
    fn default() -> Accuracy {
        Accuracy { tolerance: 1e-10, rounds: 500, trace: 0.0 }
    }
}

/// Computes the `q` leading eigenpairs (fewer if the rank is lower) by block Krylov iteration with thick restarts.
pub(crate) fn top(
    operator: &dyn Operator,
    q: usize,
    accuracy: Accuracy,
    seed: u64,
    watch: &dyn Watch,
) -> Result<Pairs> {
    Davidson { operator, guide: None, q, accuracy, watch }.run(seed)
}

/// Computes the `q` leading eigenpairs of a kernel matrix, centred or not; with many rows a factor guides the
/// iteration, which halves the number of products.
pub(crate) fn top_of_kernel(
    operator: &KernelOperator,
    q: usize,
    accuracy: Accuracy,
    seed: u64,
    watch: &dyn Watch,
) -> Result<Pairs> {
    let kernel = operator.kernel();
    let guide = if operator.dim() >= GUIDED { Some(Guide::new(operator, seed, watch)?) } else { None };
    let guide = guide.filter(|guide| !guide.is_empty());
    let search = Davidson { operator, guide: guide.as_ref(), q, accuracy, watch };
    search.run(seed)?.of_kernel(kernel, accuracy.trace)
}

/// Computes the same for weighted rows, without a guide.
pub(crate) fn top_of_weighted(
    operator: &WeightedKernel,
    q: usize,
    accuracy: Accuracy,
    seed: u64,
    watch: &dyn Watch,
) -> Result<Pairs> {
    top(operator, q, accuracy, seed, watch)?.of_kernel(operator.kernel(), accuracy.trace)
}

/// Returns how many numbers [`top_of_kernel`] keeps: the matrix if it is stored, the guide, the basis and its products.
pub(crate) fn kernel_memory(n: usize, d: usize, q: usize) -> usize {
    let matrix = if kernel::stores(n, d) { n * n / 2 } else { 0 };
    let guide = if n >= GUIDED { n * guide_rank(n) } else { 0 };
    // The basis and its image; a product has sums for every bundle, both sides of `V`, and the result. A quarter is
    // added for padding of tiles and for copies.
    (matrix + guide + (2 * BLOCKS + BUNDLES + 4) * n * block(q)) / 4 * 5
}

/// Block Davidson iteration: the basis grows by residuals (which is block Krylov), or by residuals preconditioned by a
/// guide.
struct Davidson<'a> {
    operator: &'a dyn Operator,
    guide: Option<&'a Guide>,
    q: usize,
    accuracy: Accuracy,
    watch: &'a dyn Watch,
}

impl Davidson<'_> {
    fn run(&self, seed: u64) -> Result<Pairs> {
        let Davidson { operator, q, accuracy, .. } = *self;
        let n = operator.dim();
        let block = block(q);
        if n <= DENSE.max(2 * block) {
            return top_dense(operator, q, accuracy);
        }
        let mut basis = Subspace::new(n, BLOCKS * block);
        basis.grow(operator, orthonormal(start(self.guide, n, block, seed), None), 0.0);
        let (mut lowest, mut rough) = (f64::INFINITY, true);
        for rounds in 1.. {
            let now = basis.estimate(block)?;
            lowest = lowest.min(now.lowest);
            let residual = now.norms.iter().take(q).copied().fold(0.0, f64::max);
            check(self.watch, "eigenvectors", progress(residual, accuracy.tolerance))?;
            if now.errors.iter().take(q).any(|error| *error > 0.5 * accuracy.tolerance) && rounds < accuracy.rounds {
                // The errors of rough products have become too large.
                basis = Subspace::new(n, BLOCKS * block);
                basis.grow(operator, orthonormal(now.u, None), 0.0);
                rough = false;
                continue;
            }
            let last = residual <= accuracy.tolerance || rounds >= accuracy.rounds;
            let w = if last {
                Mat::zeros(n, 0)
            } else {
                orthonormal(self.directions(now.r, &now.values, &now.norms), Some(basis.v()))
            };
            if w.ncols() == 0 {
                let converged = residual <= accuracy.tolerance || rounds < accuracy.rounds;
                return Ok(trimmed(now.values, now.u, q, accuracy, Status { rounds, residual, converged, lowest }));
            }
            if basis.used + w.ncols() > BLOCKS * block {
                basis.shrink(&now.values, now.s.as_ref().subcols(0, KEPT * block));
            }
            let most = ROUGH_SHARE * accuracy.tolerance * now.scale / residual;
            rough &= basis.grow(operator, w, if rough && residual <= ROUGH { most } else { 0.0 });
        }
        unreachable!("the loop returns")
    }

    /// Returns the vectors by which the basis should grow.
    fn directions(&self, residuals: Mat<f64>, values: &[f64], norms: &[f64]) -> Mat<f64> {
        match self.guide {
            Some(guide) => guide.correct(&residuals, values, guide.wanted(self.q), norms, self.accuracy.tolerance),
            None => residuals,
        }
    }
}

/// Ritz pairs of a basis, and their errors.
struct Estimate {
    /// All Ritz values.
    values: Vec<f64>,
    /// The corresponding eigenvectors of `H`.
    s: Mat<f64>,
    /// The leading Ritz vectors.
    u: Mat<f64>,
    /// Their residuals.
    r: Mat<f64>,
    /// Magnitude of the largest value; `errors` and `norms` are relative to it.
    scale: f64,
    /// Error bounds of the products with the leading vectors.
    errors: Vec<f64>,
    /// Norms of the residuals, errors included.
    norms: Vec<f64>,
    /// An upper bound of the smallest eigenvalue.
    lowest: f64,
}

/// Returns the first block of the basis.
fn start(guide: Option<&Guide>, n: usize, block: usize, seed: u64) -> Mat<f64> {
    let guided = guide.map_or_else(|| Mat::zeros(n, 0), |guide| guide.start(block));
    // Directions outside a guide of too low a rank would never be reached otherwise.
    let mut random = Random::new(seed, Stream::EigenStart);
    let more = Mat::from_fn(n, block - guided.ncols(), |_, _| random.normal());
    if more.ncols() == 0 { guided } else { dense::beside(guided.as_ref(), more.as_ref()) }
}

/// Maximum number of blocks of columns in the basis.
const BLOCKS: usize = 10;
/// Number of blocks that are kept at a restart.
const KEPT: usize = 3;

/// An orthonormal basis `V`, its image `K V`, and `H = Vᵀ K V`.
struct Subspace {
    v: Mat<f64>,
    kv: Mat<f64>,
    h: Mat<f64>,
    /// Error bounds of the columns of `K V`.
    errors: Vec<f64>,
    /// Number of columns in use.
    used: usize,
}

impl Subspace {
    fn new(n: usize, most: usize) -> Subspace {
        Subspace { v: Mat::zeros(n, most), kv: Mat::zeros(n, most), h: Mat::zeros(0, 0), errors: Vec::new(), used: 0 }
    }

    fn v(&self) -> MatRef<'_, f64> {
        self.v.as_ref().subcols(0, self.used)
    }

    fn kv(&self) -> MatRef<'_, f64> {
        self.kv.as_ref().subcols(0, self.used)
    }

    /// Adds columns that are orthonormal to the basis. Their products may have errors up to `most`; if no rough product
    /// is that accurate, exact products are used, and false is returned.
    fn grow(&mut self, operator: &dyn Operator, w: Mat<f64>, most: f64) -> bool {
        let tried = if most > 0.0 { operator.apply_roughly(w.as_ref()) } else { None };
        let rough = tried.filter(|(_, error)| *error <= most);
        let is_rough = rough.is_some();
        let (kw, error) = rough.unwrap_or_else(|| (operator.apply(w.as_ref()), 0.0));
        // If these products are rough, those of `V` are more accurate.
        let cross = if is_rough { inner(self.kv(), w.as_ref()) } else { inner(self.v(), kw.as_ref()) };
        self.h = grown(&self.h, &cross, &inner(w.as_ref(), kw.as_ref()));
        self.errors.extend(vec![error; w.ncols()]);
        self.v.as_mut().subcols_mut(self.used, w.ncols()).copy_from(&w);
        self.kv.as_mut().subcols_mut(self.used, w.ncols()).copy_from(&kw);
        self.used += w.ncols();
        is_rough || most == 0.0
    }

    /// Returns an error bound of `K V s`.
    fn error(&self, s: ColRef<f64>) -> f64 {
        s.iter().zip(&self.errors).map(|(s, error)| s.abs() * error).sum()
    }

    /// Computes Ritz vectors `u = V s` and their residuals `K u − θ u`.
    fn ritz(&self, values: &[f64], s: MatRef<f64>) -> (Mat<f64>, Mat<f64>) {
        let (u, mut r) = (tall(self.v(), s), tall(self.kv(), s));
        for (j, value) in values.iter().take(r.ncols()).enumerate() {
            r.col_mut(j).iter_mut().zip(u.col(j).iter()).for_each(|(r, u)| *r -= value * u);
        }
        (u, r)
    }

    /// Computes Ritz values, and the first `block` Ritz vectors with their residuals.
    fn estimate(&self, block: usize) -> Result<Estimate> {
        let (values, s) = dense::eigen(self.h.as_ref())?;
        // The error of a Ritz value is that of the product with its vector.
        let bottom = values.len() - 1;
        let lowest = values[bottom] + self.error(s.col(bottom));
        let lead = s.as_ref().subcols(0, block.min(s.ncols()));
        let (u, r) = self.ritz(&values, lead);
        let scale = values[0].abs().max(f64::MIN_POSITIVE);
        let errors: Vec<f64> = lead.col_iter().map(|s| self.error(s) / scale).collect();
        let norms = (0..r.ncols()).map(|j| r.col(j).norm_l2() / scale + errors[j]).collect();
        Ok(Estimate { values, s, u, r, scale, errors, norms, lowest })
    }

    /// Restarts: keeps only the leading Ritz vectors.
    fn shrink(&mut self, values: &[f64], s: MatRef<f64>) {
        let (v, kv, k) = (tall(self.v(), s), tall(self.kv(), s), s.ncols());
        self.v.as_mut().subcols_mut(0, k).copy_from(&v);
        self.kv.as_mut().subcols_mut(0, k).copy_from(&kv);
        self.h = dense::diagonal(&values[..k]);
        self.errors = s.col_iter().map(|s| self.error(s)).collect();
        self.used = k;
    }
}

/// Computes `A B` for many rows, in parallel.
fn tall(a: MatRef<f64>, b: MatRef<f64>) -> Mat<f64> {
    dense::stack(&blocks::map(a.nrows(), |rows| dense::product(a.subrows(rows.start, rows.len()), b)))
}

/// Computes `AᵀB` for many rows, in parallel and in a fixed order.
fn inner(a: MatRef<f64>, b: MatRef<f64>) -> Mat<f64> {
    let part = |m: &mut Mat<f64>, rows: std::ops::Range<usize>| {
        let (start, count) = (rows.start, rows.len());
        dense::add_transposed_product(m, a.subrows(start, count), b.subrows(start, count));
    };
    blocks::sum(a.nrows(), || Mat::zeros(a.ncols(), b.ncols()), part, |a, b| *a += b)
}

/// Computes the full decomposition of a small operator.
fn top_dense(operator: &dyn Operator, q: usize, accuracy: Accuracy) -> Result<Pairs> {
    let n = operator.dim();
    let (values, u) = dense::eigen(operator.apply(Mat::<f64>::identity(n, n).as_ref()).as_ref())?;
    let lowest = values.last().copied().unwrap_or(0.0);
    Ok(trimmed(values, u, q, accuracy, Status { rounds: 1, residual: 0.0, converged: true, lowest }))
}

/// The status at the end of an iteration.
struct Status {
    rounds: usize,
    residual: f64,
    converged: bool,
    lowest: f64,
}

/// Returns the first `q` pairs whose values are above rounding.
fn trimmed(mut values: Vec<f64>, u: Mat<f64>, q: usize, accuracy: Accuracy, status: Status) -> Pairs {
    let count = above_rounding(&values, accuracy.trace).min(q).min(u.ncols());
    values.truncate(count);
    let Status { rounds, residual, converged, lowest } = status;
    Pairs { values, vectors: u.as_ref().subcols(0, count).to_owned(), rounds, residual, converged, lowest }
}

/// Returns how many of these eigenvalues, largest first, exceed the rounding error of a matrix with this trace.
pub(crate) fn above_rounding(values: &[f64], trace: f64) -> usize {
    let floor = (RANK * values.first().copied().unwrap_or(0.0)).max(ROUNDING * trace);
    values.iter().take_while(|v| **v > floor).count()
}

/// Returns the progress as the share of digits gained, because convergence is geometric.
fn progress(residual: f64, tolerance: f64) -> f64 {
    (residual.max(1e-300).ln() / tolerance.ln()).clamp(0.0, 1.0)
}

/// `[h  a; aᵀ  b]`, symmetric.
fn grown(h: &Mat<f64>, a: &Mat<f64>, b: &Mat<f64>) -> Mat<f64> {
    let k = h.nrows();
    Mat::from_fn(k + b.nrows(), k + b.nrows(), |i, j| match (i < k, j < k) {
        (true, true) => h[(i, j)],
        (true, false) => a[(i, j - k)],
        (false, true) => a[(j, i - k)],
        (false, false) => 0.5 * (b[(i - k, j - k)] + b[(j - k, i - k)]),
    })
}

/// Returns an orthonormal basis of the part of `w` orthogonal to `v`. The columns are projected and scaled by their
/// Gram matrix (Stathopoulos & Wu 2002) until it is the identity; dependent columns are dropped.
pub(crate) fn orthonormal(mut w: Mat<f64>, v: Option<MatRef<f64>>) -> Mat<f64> {
    for column in w.col_iter_mut() {
        let norm = column.norm_l2();
        let scale = if norm > 0.0 { 1.0 / norm } else { 0.0 };
        column.iter_mut().for_each(|x| *x *= scale);
    }
    for _ in 0..3 {
        if let Some(v) = v {
            let overlap = inner(v, w.as_ref());
            w -= tall(v, overlap.as_ref());
        }
        let Ok((values, s)) = dense::eigen(inner(w.as_ref(), w.as_ref()).as_ref()) else {
            return Mat::zeros(w.nrows(), 0);
        };
        let count = values.iter().take_while(|x| **x > 1e-14 * values[0].max(1e-10)).count();
        let scaled = Mat::from_fn(s.nrows(), count, |i, j| s[(i, j)] / values[j].sqrt());
        w = tall(w.as_ref(), scaled.as_ref());
        // The columns were orthonormal already, so that nothing was lost to rounding.
        if values.iter().all(|x| (x - 1.0).abs() < 1e-3) {
            break;
        }
    }
    w
}

/// Returns the number of columns by which the basis grows.
fn block(q: usize) -> usize {
    q + (q / 2).clamp(4, 16)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::kernel;
    use crate::points::Points;
    use crate::spec::Spec;
    use crate::toys;
    use crate::watch::Impatient;

    fn rbf() -> Arc<dyn Kernel> {
        kernel::build(&Spec::new("rbf"), &toys::parabola(0), 0).unwrap()
    }

    /// A symmetric matrix with eigenvalues `values` in a random orthonormal frame.
    fn with_spectrum(values: &[f64]) -> Mat<f64> {
        let n = values.len();
        let mut random = Random::new(9, Stream::Tests);
        let u = orthonormal(Mat::from_fn(n, n, |_, _| random.normal()), None);
        let scaled = Mat::from_fn(n, n, |i, j| u[(i, j)] * values[j]);
        dense::product(scaled.as_ref(), u.transpose())
    }

    fn check_pairs(a: &Mat<f64>, values: &[f64], q: usize) {
        let pairs = top(a, q, Accuracy::default(), 1, &()).unwrap();
        assert!(pairs.converged);
        assert_eq!(pairs.values.len(), q);
        for k in 0..q {
            assert!((pairs.values[k] - values[k]).abs() < 1e-10 * values[0], "{k}: {} {}", pairs.values[k], values[k]);
            let u = pairs.vectors.as_ref().subcols(k, 1);
            let residual = &dense::product(a.as_ref(), u) - u * faer::Scale(pairs.values[k]);
            assert!(residual.norm_l2() < 1e-9 * values[0], "{k}: {}", residual.norm_l2());
        }
        let gram = dense::product(pairs.vectors.transpose(), pairs.vectors.as_ref());
        assert!((&gram - Mat::<f64>::identity(q, q)).norm_max() < 1e-12);
    }

    #[test]
    fn leading_pairs_satisfy_the_defining_equation() {
        let slow: Vec<f64> = (0..300).map(|i| 1.0 / (1.0 + i as f64)).collect();
        let clustered: Vec<f64> =
            (0..400).map(|i| if i < 20 { 1.0 - 1e-6 * i as f64 } else { 0.9f64.powi(i) }).collect();
        let small: Vec<f64> = (0..50).map(|i| 0.5f64.powi(i)).collect();
        for values in [slow, clustered, small] {
            check_pairs(&with_spectrum(&values), &values, 6);
        }
    }

    #[test]
    fn the_rank_limits_the_pairs_and_indefiniteness_is_detected() {
        let mut values = vec![0.0; 250];
        values[..4].copy_from_slice(&[4.0, 3.0, 2.0, 1.0]);
        assert_eq!(top(&with_spectrum(&values), 10, Accuracy::default(), 0, &()).unwrap().values.len(), 4);
        values[249] = -1.0;
        let pairs = top(&with_spectrum(&values), 10, Accuracy::default(), 0, &()).unwrap();
        assert!(matches!(pairs.of_kernel(&rbf(), 1.0).err(), Some(Error::NotPositive { .. })));
    }

    #[test]
    fn running_out_of_rounds_is_a_status() {
        let values: Vec<f64> = (0..400).map(|i| 1.0 - i as f64 / 500.0).collect();
        let accuracy = Accuracy { tolerance: 1e-11, rounds: 3, trace: 0.0 };
        let pairs = top(&with_spectrum(&values), 5, accuracy, 0, &()).unwrap();
        assert!(!pairs.converged && pairs.rounds == 3 && pairs.residual > 1e-11);
    }

    #[test]
    fn interrupting_ends_the_fit() {
        let values: Vec<f64> = (0..400).map(|i| 1.0 / (1.0 + i as f64)).collect();
        let ended = top(&with_spectrum(&values), 5, Accuracy::default(), 0, &Impatient).err();
        assert_eq!(ended, Some(Error::Interrupted));
    }

    /// A matrix whose rough products have the given error, and report it.
    struct Noisy {
        matrix: Mat<f64>,
        error: f64,
        calls: AtomicUsize,
    }

    impl Operator for Noisy {
        fn dim(&self) -> usize {
            self.matrix.nrows()
        }
        fn apply(&self, v: MatRef<f64>) -> Mat<f64> {
            self.matrix.apply(v)
        }
        fn apply_roughly(&self, v: MatRef<f64>) -> Option<(Mat<f64>, f64)> {
            let call = self.calls.fetch_add(1, Ordering::Relaxed);
            let mut random = Random::new(call as u64, Stream::Tests);
            let size = self.error / (self.dim() as f64).sqrt();
            let noise = Mat::from_fn(v.nrows(), v.ncols(), |_, _| size * random.normal());
            Some((self.apply(v) + noise, 1.2 * self.error))
        }
    }

    #[test]
    fn rough_products_leave_pairs_as_accurate_as_requested() {
        // Errors that do not matter, that matter for pairs far below the first, and that are as large as the matrix.
        for (second, error) in [(0.95, 1e-8), (1e-3, 4e-7), (0.95, 1.0)] {
            let values: Vec<f64> = (0..500).map(|i| if i == 0 { 1.0 } else { second * 0.95f64.powi(i) }).collect();
            let noisy = Noisy { matrix: with_spectrum(&values), error, calls: AtomicUsize::new(0) };
            let pairs = top(&noisy, 6, Accuracy::default(), 1, &()).unwrap();
            assert!(noisy.calls.into_inner() > 0 && pairs.converged, "{error}: {}", pairs.residual);
            assert!(pairs.residual <= 1e-10);
            for k in 0..6 {
                let u = pairs.vectors.as_ref().subcols(k, 1);
                let residual = &dense::product(noisy.matrix.as_ref(), u) - u * faer::Scale(pairs.values[k]);
                assert!(residual.norm_l2() <= 1.01e-10, "{error} {k}: {}", residual.norm_l2());
            }
        }
    }

    #[test]
    fn rounding_of_rough_products_does_not_make_a_smooth_kernel_look_indefinite() {
        let mut random = Random::new(0, Stream::Tests);
        for (d, gamma, q) in [(2, 0.01, 10), (1, 0.01, 5), (1, 0.001, 2), (3, 0.001, 10)] {
            let points = Points::new(d, (0..2100 * d).map(|_| random.normal()).collect::<Vec<_>>()).unwrap();
            let kernel = kernel::build(&Spec::new("rbf").with("gamma", gamma), &points, 0).unwrap();
            let operator = KernelOperator::new(&kernel, &points, true);
            let accuracy = Accuracy { trace: 2100.0, ..Accuracy::default() };
            let pairs = top_of_kernel(&operator, q, accuracy, 0, &());
            assert!(pairs.as_ref().is_ok_and(|pairs| pairs.converged), "{d} {gamma} {q}: {:?}", pairs.err());
        }
    }

    #[test]
    fn a_kernel_matrix_that_is_not_stored_reports_the_error_of_rough_products() {
        // A few rows are far from all others, and some vectors are zero elsewhere.
        let apart = 1000..1040;
        let value = |i: usize| (0.37 * i as f64).sin() + if apart.contains(&(i / 3)) { 6.0 } else { 0.0 };
        let points = Points::new(3, (0..9000).map(value).collect::<Vec<_>>()).unwrap();
        for center in [true, false] {
            let operator = KernelOperator::new(&rbf(), &points, center);
            let wave = |i: usize, j: usize| ((i * (j + 2)) as f64).cos();
            let everywhere = orthonormal(Mat::from_fn(3000, 4, wave), None);
            let somewhere = |i, j| if apart.contains(&i) { wave(i, j) } else { 0.0 };
            let somewhere = orthonormal(Mat::from_fn(3000, 4, somewhere), None);
            for (v, times) in [(everywhere, 10.0), (somewhere, 100.0)] {
                let (rough, error) = operator.apply_roughly(v.as_ref()).expect("it is not stored");
                let off = rough - operator.apply(v.as_ref());
                let largest = off.col_iter().map(|column| column.norm_l2()).fold(0.0, f64::max);
                assert!(largest <= error && error <= times * largest, "{largest} {error}");
            }
            let pairs = top_of_kernel(&operator, 5, Accuracy::default(), 0, &()).unwrap();
            let ku = operator.apply(pairs.vectors.as_ref());
            for k in 0..5 {
                let residual =
                    ku.as_ref().subcols(k, 1) - pairs.vectors.as_ref().subcols(k, 1) * faer::Scale(pairs.values[k]);
                assert!(residual.norm_l2() <= 1e-10 * pairs.values[0], "{k}: {}", residual.norm_l2());
            }
        }
        let stored =
            KernelOperator::new(&rbf(), &points.slice(0..200), true).apply_roughly(Mat::zeros(200, 1).as_ref());
        let unbounded = kernel::build(&Spec::new("polynomial"), &points, 0).unwrap();
        let unbounded = KernelOperator::new(&unbounded, &points, true).apply_roughly(Mat::zeros(3000, 1).as_ref());
        assert!(stored.is_none() && unbounded.is_none());
    }
}
