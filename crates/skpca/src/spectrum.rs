//! Spectra: leading eigenpairs without full decompositions, and Rayleigh–Ritz on a support.
//!
//! ```text
//! exact KPCA        K̃ u = λ u,   K̃ = H K H,  H = I − 11ᵀ/n        block Krylov, K never stored if it is large
//! Rayleigh–Ritz     C b = λ K_zz b,  bᵀ K_zz b = 1                  best components in the span of a support
//!                   C = Σ_j (k_z(x_j) − μ)(k_z(x_j) − μ)ᵀ,  μ = (1/n) Σ_j k_z(x_j)
//! ```

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use faer::{Mat, MatRef};
use rayon::prelude::*;

use crate::blocks;
use crate::dense;
use crate::error::{Error, Result};
use crate::factor::{Factor, Stop, diagonal, gram};
use crate::gram::{Basis, Precision};
use crate::kernel::Kernel;
use crate::points::Points;
use crate::random::Random;
use crate::watch::{Watch, check};

/// Eigenvalues below this share of the largest belong to the null space …
const RANK: f64 = 1e-11;
/// … and so do those within rounding of the trace before centring.
const ROUNDING: f64 = 1e-13;
/// A Ritz value this far below zero (as a share of the largest) shows an indefinite kernel.
const NEGATIVE: f64 = 1e-8;
/// Below this size a full decomposition is cheaper than iterating.
const DENSE: usize = 192;
/// A kernel matrix is kept in memory up to this size, about that of a cache …
const STORED: usize = 32 << 20;
/// … and up to this one where rows are so wide that computing it again costs more than reading it.
const STORED_WIDE: usize = 4 << 30;
const WIDE: usize = 32;
/// From this many rows a low-rank factor of this rank guides the iteration.
const GUIDED: usize = 1500;
const GUIDE_RANK: usize = 400;

/// A symmetric matrix known by its products.
pub(crate) trait Operator: Sync {
    fn dim(&self) -> usize;
    fn apply(&self, v: MatRef<f64>) -> Mat<f64>;
}

/// A stored matrix.
impl Operator for Mat<f64> {
    fn dim(&self) -> usize {
        self.nrows()
    }
    fn apply(&self, v: MatRef<f64>) -> Mat<f64> {
        dense::product(self.as_ref(), v)
    }
}

/// Leading eigenpairs, largest first, and how they were found.
pub(crate) struct Pairs {
    pub values: Vec<f64>,
    pub vectors: Mat<f64>,
    /// Products with the operator.
    pub rounds: usize,
    /// Largest `‖K u − λ u‖ / λ₁` of the pairs returned.
    pub residual: f64,
    pub converged: bool,
    /// The lowest Ritz value seen: far below zero it shows that the matrix is not positive semi-definite.
    lowest: f64,
}

impl Pairs {
    /// Refuses the pairs of an indefinite kernel.
    fn of_kernel(self, kernel: &Arc<dyn Kernel>, trace: f64) -> Result<Pairs> {
        match self.lowest < -(NEGATIVE * self.values.first().copied().unwrap_or(0.0)).max(ROUNDING * trace) {
            true => Err(Error::NotPositive { kernel: kernel.spec().name, value: self.lowest }),
            false => Ok(self),
        }
    }
}

/// How well eigenpairs are found: `‖K u − λ u‖ ≤ tolerance · λ₁`, in at most `rounds` products.
#[derive(Clone, Copy)]
pub(crate) struct Accuracy {
    pub tolerance: f64,
    pub rounds: usize,
    /// `Σ k(x, x)`, whose rounding no eigenvalue may be below.
    pub trace: f64,
}

impl Default for Accuracy {
    fn default() -> Accuracy {
        Accuracy { tolerance: 1e-10, rounds: 500, trace: 0.0 }
    }
}

/// The `q` leading eigenpairs (fewer if the rank is lower) by block Krylov iteration with thick restarts.
pub(crate) fn top(
    operator: &dyn Operator,
    q: usize,
    accuracy: Accuracy,
    seed: u64,
    watch: &dyn Watch,
) -> Result<Pairs> {
    iterate(operator, None, q, accuracy, seed, watch)
}

/// The `q` leading eigenpairs of a kernel matrix, centred or not; with many rows a factor guides the iteration, which
/// halves the number of products.
pub(crate) fn top_of_kernel(
    operator: &KernelOperator,
    q: usize,
    accuracy: Accuracy,
    seed: u64,
    watch: &dyn Watch,
) -> Result<Pairs> {
    let kernel = operator.basis.kernel();
    let guide = match operator.dim() >= GUIDED {
        true => Some(Guide::new(kernel, operator.points, operator.center, seed, watch)?),
        false => None,
    };
    // Rows that do not vary leave a guide without directions.
    let guide = guide.filter(|guide| !guide.values.is_empty());
    iterate(operator, guide.as_ref(), q, accuracy, seed, watch)?.of_kernel(kernel, accuracy.trace)
}

/// Block Davidson iteration: the basis grows by residuals (then it is block Krylov), or by residuals that a guide has
/// turned towards the eigenvectors.
fn iterate(
    operator: &dyn Operator,
    guide: Option<&Guide>,
    q: usize,
    accuracy: Accuracy,
    seed: u64,
    watch: &dyn Watch,
) -> Result<Pairs> {
    let n = operator.dim();
    let block = block(q);
    let most = 10 * block;
    if n <= DENSE.max(2 * block) {
        return top_dense(operator, q, accuracy);
    }
    let mut random = Random::new(seed, 3);
    let start = match guide {
        Some(guide) => guide.start(block),
        None => Mat::from_fn(n, block, |_, _| random.normal()),
    };
    let mut v = orthonormal(start, None);
    let mut kv = operator.apply(v.as_ref());
    let mut h = dense::product(v.transpose(), kv.as_ref());
    let mut lowest = f64::INFINITY;
    for rounds in 1.. {
        let (values, s) = dense::eigen(h.as_ref())?;
        lowest = lowest.min(*values.last().expect("a block has columns"));
        let lead = s.as_ref().subcols(0, block.min(s.ncols()));
        let (u, mut r) = (dense::product(v.as_ref(), lead), dense::product(kv.as_ref(), lead));
        for (j, value) in values.iter().take(r.ncols()).enumerate() {
            for i in 0..n {
                r[(i, j)] -= value * u[(i, j)];
            }
        }
        let residual = (0..q.min(r.ncols())).map(|j| r.col(j).norm_l2()).fold(0.0, f64::max)
            / values[0].abs().max(f64::MIN_POSITIVE);
        let w = match residual <= accuracy.tolerance || rounds >= accuracy.rounds {
            true => Mat::zeros(n, 0),
            false => orthonormal(guide.map_or_else(|| r.clone(), |g| g.correct(&r, &values)), Some(v.as_ref())),
        };
        if w.ncols() == 0 {
            let converged = residual <= accuracy.tolerance || rounds < accuracy.rounds;
            return Ok(trimmed(values, u, q, accuracy, Status { rounds, residual, converged, lowest }));
        }
        check(watch, "eigenvectors", progress(residual, accuracy.tolerance))?;
        if v.ncols() + w.ncols() > most {
            let keep = s.as_ref().subcols(0, 3 * block);
            (v, kv) = (dense::product(v.as_ref(), keep), dense::product(kv.as_ref(), keep));
            h = Mat::from_fn(3 * block, 3 * block, |i, j| if i == j { values[i] } else { 0.0 });
        }
        let kw = operator.apply(w.as_ref());
        let (v_kw, w_kw) = (dense::product(v.transpose(), kw.as_ref()), dense::product(w.transpose(), kw.as_ref()));
        h = grown(&h, &v_kw, &w_kw);
        v = dense::beside(v.as_ref(), w.as_ref());
        kv = dense::beside(kv.as_ref(), kw.as_ref());
    }
    unreachable!("the loop returns")
}

/// The whole decomposition, for small operators.
fn top_dense(operator: &dyn Operator, q: usize, accuracy: Accuracy) -> Result<Pairs> {
    let n = operator.dim();
    let (values, u) = dense::eigen(operator.apply(Mat::<f64>::identity(n, n).as_ref()).as_ref())?;
    let lowest = values.last().copied().unwrap_or(0.0);
    Ok(trimmed(values, u, q, accuracy, Status { rounds: 1, residual: 0.0, converged: true, lowest }))
}

/// How an iteration ended.
struct Status {
    rounds: usize,
    residual: f64,
    converged: bool,
    lowest: f64,
}

/// The first `q` pairs whose values are above the rank's floor.
fn trimmed(mut values: Vec<f64>, u: Mat<f64>, q: usize, accuracy: Accuracy, status: Status) -> Pairs {
    let floor = (RANK * values.first().copied().unwrap_or(0.0)).max(ROUNDING * accuracy.trace);
    let count = values.iter().take(q.min(u.ncols())).take_while(|v| **v > floor).count();
    values.truncate(count);
    let Status { rounds, residual, converged, lowest } = status;
    Pairs { values, vectors: u.as_ref().subcols(0, count).to_owned(), rounds, residual, converged, lowest }
}

/// Convergence is geometric: progress is the share of digits gained.
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

/// An orthonormal basis of what `w` adds to `v`: projected twice, scaled through its Gram matrix
/// (Stathopoulos & Wu 2002), dependent columns dropped.
fn orthonormal(mut w: Mat<f64>, v: Option<MatRef<f64>>) -> Mat<f64> {
    for j in 0..w.ncols() {
        let norm = w.col(j).norm_l2();
        let scale = if norm > 0.0 { 1.0 / norm } else { 0.0 };
        w.col_mut(j).iter_mut().for_each(|x| *x *= scale);
    }
    for _ in 0..3 {
        if let Some(v) = v {
            let overlap = dense::product(v.transpose(), w.as_ref());
            dense::subtract_product(w.as_mut(), v, overlap.as_ref());
        }
        let gram = dense::product(w.transpose(), w.as_ref());
        let Ok((values, s)) = dense::eigen(gram.as_ref()) else { return Mat::zeros(w.nrows(), 0) };
        let count = values.iter().take_while(|x| **x > 1e-14 * values[0].max(1e-10)).count();
        let scaled = Mat::from_fn(s.nrows(), count, |i, j| s[(i, j)] / values[j].sqrt());
        w = dense::product(w.as_ref(), scaled.as_ref());
    }
    w
}

/// A low-rank factor of a kernel matrix, `K̃ ≈ M = F̃F̃ᵀ = U Λ Uᵀ`, as start and as Davidson's preconditioner:
///
/// ```text
/// (M − θ)⁻¹ r = U ((Λ − θ)⁻¹ + θ⁻¹) Uᵀ r − r / θ,        U = F̃ W Λ^−½,   F̃ᵀF̃ = W Λ Wᵀ
/// ```
struct Guide {
    factor: Factor,
    /// f̄, or zero if not centred.
    mean: Vec<f64>,
    values: Vec<f64>,
    /// `W Λ^−½`
    map: Mat<f64>,
}

impl Guide {
    fn new(kernel: &Arc<dyn Kernel>, points: &Points, center: bool, seed: u64, watch: &dyn Watch) -> Result<Guide> {
        let factor = Factor::pivoted(kernel, points, Stop { rank: GUIDE_RANK, residual: 1e-9 }, seed, watch)?;
        let (t, mean) = factor.scatter(center);
        let (mut values, w) = dense::eigen(t.as_ref())?;
        let floor = (1e-9 * values.first().copied().unwrap_or(0.0)).max(ROUNDING * factor.trace);
        let count = values.iter().take_while(|v| **v > floor).count();
        values.truncate(count);
        let map = Mat::from_fn(w.nrows(), count, |i, j| w[(i, j)] / values[j].sqrt());
        Ok(Guide { factor, mean, values, map })
    }

    /// The factor's own leading eigenvectors.
    fn start(&self, count: usize) -> Mat<f64> {
        self.expand(self.map.as_ref().subcols(0, count.min(self.map.ncols())))
    }

    /// Solves with `M − θ` for each residual; near its poles the denominator is kept away from zero.
    fn correct(&self, residuals: &Mat<f64>, values: &[f64]) -> Mat<f64> {
        let c = dense::product(self.map.transpose(), self.factor.transposed_product(residuals).as_ref());
        let solved = Mat::from_fn(c.nrows(), c.ncols(), |k, j| {
            let gap = self.values[k] - values[j];
            c[(k, j)] * (1.0 / gap.abs().max(0.02 * values[j]).copysign(gap) + 1.0 / values[j])
        });
        let mut out = self.expand(dense::product(self.map.as_ref(), solved.as_ref()).as_ref());
        for (j, value) in values.iter().take(out.ncols()).enumerate() {
            match *value > RANK * values[0] {
                true => out.col_mut(j).iter_mut().zip(residuals.col(j).iter()).for_each(|(o, r)| *o -= r / value),
                false => out.col_mut(j).copy_from(residuals.col(j)),
            }
        }
        out
    }

    /// `F̃ y`
    fn expand(&self, y: MatRef<f64>) -> Mat<f64> {
        let mut out = self.factor.product(y);
        for j in 0..y.ncols() {
            let offset: f64 = self.mean.iter().enumerate().map(|(k, m)| m * y[(k, j)]).sum();
            out.col_mut(j).iter_mut().for_each(|v| *v -= offset);
        }
        out
    }
}

/// The centred (or plain) kernel matrix of `points`, stored or computed anew for each product.
pub(crate) struct KernelOperator<'a> {
    points: &'a Points<'a>,
    basis: Basis,
    center: bool,
    stored: Option<Vec<Mat<f64>>>,
    /// `K 1 / n`, a by-product of the first centred product.
    means: OnceLock<Vec<f64>>,
}

impl<'a> KernelOperator<'a> {
    pub(crate) fn new(kernel: &Arc<dyn Kernel>, points: &'a Points<'a>, center: bool) -> KernelOperator<'a> {
        let basis = Basis::new(kernel.clone(), points.slice(0..points.n()).into_owned());
        let stored = stores(points.n(), points.d()).then(|| {
            blocks::map(points.n(), |rows| {
                let mut k = Mat::zeros(rows.len(), points.n());
                basis.block(&points.slice(rows), k.as_mut());
                k
            })
        });
        KernelOperator { points, basis, center, stored, means: OnceLock::new() }
    }

    /// `μ = K 1 / n`, or zero if not centred.
    pub(crate) fn means(&self) -> Vec<f64> {
        match self.center {
            true => self.means.get_or_init(|| column(&self.plain(self.shares().as_ref()), 0)).clone(),
            false => vec![0.0; self.dim()],
        }
    }

    /// `1 / n`, as a column.
    fn shares(&self) -> Mat<f64> {
        Mat::from_fn(self.dim(), 1, |_, _| 1.0 / self.dim() as f64)
    }

    /// `K v` without centring.
    fn plain(&self, v: MatRef<f64>) -> Mat<f64> {
        let (n, c) = (v.nrows(), v.ncols());
        let Some(stored) = &self.stored else {
            let weights = self.basis.weights(v.to_owned());
            return dense::from_rows(n, c, &self.basis.product(self.points, &weights, Precision::Double));
        };
        let parts: Vec<Mat<f64>> = stored.par_iter().map(|k| dense::product(k.as_ref(), v)).collect();
        dense::stack(&parts)
    }
}

/// Numbers that [`top_of_kernel`] keeps: the matrix if it is stored, the guide, the basis and its products.
pub(crate) fn kernel_memory(n: usize, d: usize, q: usize) -> usize {
    let matrix = if stores(n, d) { n * n } else { 0 };
    let guide = if n >= GUIDED { n * GUIDE_RANK } else { 0 };
    matrix + guide + 2 * n * 8 * block(q)
}

/// Columns by which the basis grows.
fn block(q: usize) -> usize {
    q + (q / 2).clamp(4, 16)
}

/// Whether the kernel matrix of n rows is kept.
fn stores(n: usize, d: usize) -> bool {
    let bytes = n.saturating_mul(n).saturating_mul(8);
    bytes <= STORED || (d >= WIDE && bytes <= STORED_WIDE)
}

impl Operator for KernelOperator<'_> {
    fn dim(&self) -> usize {
        self.points.n()
    }

    fn apply(&self, v: MatRef<f64>) -> Mat<f64> {
        if !self.center {
            return self.plain(v);
        }
        let mut centred = v.to_owned();
        center_columns(&mut centred);
        let mut out = match self.means.get() {
            Some(_) => self.plain(centred.as_ref()),
            // One column more costs little beside computing the kernel values for it alone.
            None => {
                let both = self.plain(dense::beside(centred.as_ref(), self.shares().as_ref()).as_ref());
                let _ = self.means.set(column(&both, v.ncols()));
                both.as_ref().subcols(0, v.ncols()).to_owned()
            }
        };
        center_columns(&mut out);
        out
    }
}

fn column(a: &Mat<f64>, j: usize) -> Vec<f64> {
    a.col(j).iter().copied().collect()
}

fn center_columns(a: &mut Mat<f64>) {
    let n = a.nrows() as f64;
    for j in 0..a.ncols() {
        let mean = a.col(j).sum() / n;
        a.col_mut(j).iter_mut().for_each(|x| *x -= mean);
    }
}

/// Everything a model needs to know of components in the span of a support.
pub(crate) struct Expansion {
    /// Rows of the support that are independent; the rest of the fields are over these.
    pub kept: Vec<usize>,
    /// m × q, of unit norm: `bᵀ K_zz b = 1`.
    pub coefficients: Mat<f64>,
    /// q × q′, such that `coefficients · frame` are orthonormal; absent where the components themselves are.
    pub frame: Option<Mat<f64>>,
    /// Variance sums along the components.
    pub values: Vec<f64>,
    /// Variance sum in the span of the components.
    pub captured: f64,
    /// `μ_i = (1/n) Σ_j k(z_i, x_j)`; zero if not centred.
    pub means: Vec<f64>,
    /// `β = K_zz⁻¹ μ`: the mean, projected on the support.
    pub mean: Vec<f64>,
    /// `Σ_j k(x_j, x_j) − ‖P φ(x_j)‖²` over all rows: what the span of the support does not hold.
    pub residual_trace: f64,
    /// `Σ_j k(x_j, x_j)`
    pub trace: f64,
}

/// The best `q` components in the span of `support`, over all rows of `points`.
pub(crate) fn ritz(
    kernel: &Arc<dyn Kernel>,
    points: &Points,
    support: &Points<'static>,
    q: usize,
    center: bool,
    watch: &dyn Watch,
) -> Result<Expansion> {
    Span::new(kernel, points, support, center, watch)?.best(q)
}

/// The span of a support, in coordinates `y = Lᵀ a` that are orthonormal in feature space (`K_zz = L Lᵀ`).
pub(crate) struct Span {
    /// Independent rows of the support.
    kept: Vec<usize>,
    l: Mat<f64>,
    /// `L⁻¹ C L⁻ᵀ`
    c: Mat<f64>,
    /// `L⁻¹ μ`; zero if not centred.
    mean: Mat<f64>,
    residual_trace: f64,
    trace: f64,
}

impl Span {
    pub(crate) fn new(
        kernel: &Arc<dyn Kernel>,
        points: &Points,
        support: &Points<'static>,
        center: bool,
        watch: &dyn Watch,
    ) -> Result<Span> {
        let (kept, l) = independent(kernel, support)?;
        let m = kept.len();
        let basis = Basis::new(kernel.clone(), support.select(&kept));
        let trace: f64 = diagonal(kernel, points)?.iter().sum();
        let n = points.n() as f64;

        let whiten = ill_conditioned(l.as_ref());
        check(watch, "covariance", 0.0)?;
        let (mut c, sums) = covariance(&basis, points, whiten.then_some(l.as_ref()), watch);
        check(watch, "covariance", 1.0)?;
        let mut mean = Mat::from_fn(m, 1, |i, _| sums[i] / n);
        if !whiten {
            dense::mirror(&mut c);
            dense::solve_lower(l.as_ref(), c.as_mut());
            dense::divide_by_transposed(c.as_mut(), l.as_ref());
            dense::solve_lower(l.as_ref(), mean.as_mut());
        }
        let residual_trace = (trace - (0..m).map(|i| c[(i, i)]).sum::<f64>()).max(0.0);
        if !center {
            mean.fill(0.0);
        }
        for j in 0..m {
            for i in j..m {
                c[(i, j)] -= n * mean[(i, 0)] * mean[(j, 0)];
            }
        }
        dense::mirror(&mut c);
        Ok(Span { kept, l, c, mean, residual_trace, trace })
    }

    /// The best `q` components.
    pub(crate) fn best(self, q: usize) -> Result<Expansion> {
        let pairs = top(&self.c, q, Accuracy { trace: self.trace, ..Accuracy::default() }, 0, &())?;
        let mut coefficients = pairs.vectors;
        dense::solve_lower_transposed(self.l.as_ref(), coefficients.as_mut());
        let captured = pairs.values.iter().sum();
        Ok(self.expansion(coefficients, None, pairs.values, captured))
    }

    /// Given components, `coefficients` over all points of the support (`k`: their kernel matrix), scaled to unit norm
    /// and otherwise as they are; where dependent points were dropped, expressed by the others.
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
        for j in 0..q {
            let norm = y.col(j).norm_l2();
            y.col_mut(j).iter_mut().chain(a.col_mut(j).iter_mut()).for_each(|v| *v /= norm);
        }
        let (squares, e) = dense::eigen(dense::product(y.transpose(), y.as_ref()).as_ref())?;
        let count = squares.iter().take_while(|v| **v > 1e-10 * squares[0]).count();
        let frame = Mat::from_fn(q, count, |i, j| e[(i, j)] / squares[j].sqrt());
        let scatter = |y: &Mat<f64>| -> Vec<f64> {
            let cy = dense::product(self.c.as_ref(), y.as_ref());
            (0..y.ncols()).map(|j| y.col(j).iter().zip(cy.col(j).iter()).map(|(y, c)| y * c).sum()).collect()
        };
        let captured = scatter(&dense::product(y.as_ref(), frame.as_ref())).iter().sum();
        let values = scatter(&y);
        Ok(self.expansion(a, Some(frame), values, captured))
    }

    fn expansion(self, a: Mat<f64>, frame: Option<Mat<f64>>, values: Vec<f64>, captured: f64) -> Expansion {
        let Span { kept, l, mut mean, residual_trace, trace, .. } = self;
        let means = dense::product(l.as_ref(), mean.as_ref());
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
            means: ordered(&means),
            mean: ordered(&mean),
            residual_trace,
            trace,
        }
    }
}

/// The numbers of an independent subset of `support` and the Cholesky factor of its kernel matrix.
fn independent(kernel: &Arc<dyn Kernel>, support: &Points<'static>) -> Result<(Vec<usize>, Mat<f64>)> {
    let k = gram(kernel, support);
    if let Some(l) = dense::cholesky(k.as_ref()).filter(|l| spread(l) > 1e-12) {
        return Ok(((0..support.n()).collect(), l));
    }
    let factor = Factor::pivoted(kernel, support, Stop { rank: support.n(), residual: 0.0 }, 0, &())?;
    let pivots = &factor.pivots;
    let l = factor_rows(&factor, pivots);
    Ok((pivots.clone(), l))
}

fn factor_rows(factor: &Factor, rows: &[usize]) -> Mat<f64> {
    let values: Vec<Vec<f64>> = rows.iter().map(|&i| factor.row(i)).collect();
    Mat::from_fn(rows.len(), rows.len(), |i, j| if j <= i { values[i][j] } else { 0.0 })
}

/// Smallest over largest squared pivot.
fn spread(l: &Mat<f64>) -> f64 {
    let pivots = (0..l.nrows()).map(|i| l[(i, i)] * l[(i, i)]);
    let (low, high) = pivots.fold((f64::MAX, 0.0_f64), |(low, high), p| (low.min(p), high.max(p)));
    low / high
}

/// Whether `L⁻¹ (Σ k kᵀ) L⁻ᵀ` would lose more than seven of sixteen digits, so that each row has to be multiplied by
/// `L⁻ᵀ` first: the loss is the condition of `K_zz`, its smallest eigenvalue found by inverse iteration.
fn ill_conditioned(l: MatRef<f64>) -> bool {
    let trace: f64 = (0..l.nrows()).map(|i| l.row(i).squared_norm_l2()).sum();
    let mut random = Random::new(0, 9);
    let mut x = Mat::from_fn(l.nrows(), 1, |_, _| random.normal());
    let mut growth = 0.0;
    for _ in 0..8 {
        let norm = x.norm_l2();
        x.col_mut(0).iter_mut().for_each(|v| *v /= norm);
        dense::solve_lower(l, x.as_mut());
        dense::solve_lower_transposed(l, x.as_mut());
        growth = x.norm_l2();
    }
    f64::EPSILON * trace * growth > 1e-9
}

/// The lower triangle of `Σ_j k_j k_jᵀ`, and `Σ_j k_j`, with `k_j = k_z(x_j)`, or `L⁻¹ k_z(x_j)` if `l` is given.
fn covariance(basis: &Basis, points: &Points, l: Option<MatRef<f64>>, watch: &dyn Watch) -> (Mat<f64>, Vec<f64>) {
    let m = basis.points().n();
    let n = points.n();
    let done = AtomicUsize::new(0);
    let stopped = AtomicBool::new(false);
    blocks::sum(
        n,
        || (Mat::<f64>::zeros(m, m), vec![0.0; m]),
        |(c, sums), rows| {
            if stopped.load(Ordering::Relaxed) {
                return;
            }
            let mut k = Mat::zeros(rows.len(), m);
            basis.block(&points.slice(rows.clone()), k.as_mut());
            if let Some(l) = l {
                dense::divide_by_transposed(k.as_mut(), l);
            }
            dense::add_gram(c, k.as_ref());
            sums.iter_mut().enumerate().for_each(|(j, s)| *s += k.col(j).sum());
            let done = done.fetch_add(rows.len(), Ordering::Relaxed);
            if !watch.at("covariance", done as f64 / n as f64) {
                stopped.store(true, Ordering::Relaxed);
            }
        },
        |(c, sums), (other, more)| {
            *c += other;
            sums.iter_mut().zip(more).for_each(|(s, v)| *s += v);
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel;
    use crate::spec::Spec;
    use crate::toys;

    fn rbf() -> Arc<dyn Kernel> {
        kernel::build(&Spec::new("rbf"), &toys::parabola(0), 0).unwrap()
    }

    /// A symmetric matrix with eigenvalues `values` in a random orthonormal frame.
    fn with_spectrum(values: &[f64]) -> Mat<f64> {
        let n = values.len();
        let mut random = Random::new(9, 0);
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
    fn the_rank_limits_the_pairs_and_indefiniteness_is_seen() {
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
        struct Impatient;
        impl Watch for Impatient {
            fn at(&self, _: &str, _: f64) -> bool {
                false
            }
        }
        let values: Vec<f64> = (0..400).map(|i| 1.0 / (1.0 + i as f64)).collect();
        let ended = top(&with_spectrum(&values), 5, Accuracy::default(), 0, &Impatient).err();
        assert_eq!(ended, Some(Error::Interrupted));
        let points = toys::parabola(0);
        let kernel = kernel::build(&Spec::new("rbf"), &points, 0).unwrap();
        let support = points.select(&[0, 1, 2]);
        assert_eq!(ritz(&kernel, &points, &support, 2, true, &Impatient).err(), Some(Error::Interrupted));
    }

    #[test]
    fn whitening_rows_or_the_sum_gives_the_same_components() {
        let points = toys::parabola(1);
        let kernel = kernel::build(&Spec::new("rbf"), &points, 0).unwrap();
        let support = points.select(&(0..10).map(|i| 50 * i).collect::<Vec<_>>());
        let (kept, l) = independent(&kernel, &support).unwrap();
        assert_eq!(kept.len(), 10);
        let basis = Basis::new(kernel, support);
        let (rows, _) = covariance(&basis, &points, Some(l.as_ref()), &());
        let (mut sum, _) = covariance(&basis, &points, None, &());
        dense::mirror(&mut sum);
        dense::solve_lower(l.as_ref(), sum.as_mut());
        dense::divide_by_transposed(sum.as_mut(), l.as_ref());
        for j in 0..10 {
            for i in j..10 {
                assert!((rows[(i, j)] - sum[(i, j)]).abs() < 1e-7 * rows[(0, 0)], "{i} {j}");
            }
        }
    }
}
