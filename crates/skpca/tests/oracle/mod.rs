//! Obj(A, P) = ½ tr T − tr(VᵀT P) + ½ tr(VᵀT V) + ridge(A) + penalty(A),   V = B A,  B = K^½,  T = B H B
//!
//! The three published iterations for sparse kernel PCA, implemented literally and slowly as references for the fast
//! solver. H is the centring matrix I − 11ᵀ/n, or I; P has q orthonormal columns and starts at the leading eigenvectors
//! of T.
//!
//! | function | source | ridge | penalty |
//! |---|---|---|---|
//! | [`l1`] | Wang & Tanaka 2019, Algorithm 1 | λ/2 ‖V‖² | Σ λ₁ₖ ‖a_k‖₁ |
//! | [`l21`] | Wang & Tanaka 2019, Algorithm 2 | λ/2 ‖V‖² | μ Σ ‖row_i‖ |
//! | [`elastic_net`] | Das, Golatkar & Awate 2018 | λ/2 ‖A‖² | λ₁/2 Σ ‖a_k‖₁ |
//!
//! `outer` is the number of A-steps; P changes only *between* two of them. So `outer = 1` is the convex problem at the
//! initial P, the A returned is the paper's A after `outer` rounds, and (A, P) always belong together.
//!
//! The papers write the linear step as Q = (T + λI + ρK⁻¹)⁻¹[T P + ρK^−½ Z]. Here X = K^−½ Q is computed instead,
//!
//! ```text
//! X = (K H K + λK + ρI)⁻¹ [B T P + ρZ],    Q = B X,
//! ```
//!
//! which is the same step with B factored out on both sides and avoids the condition number of K⁻¹.
//!
//! Threads: everything uses faer's global parallelism (`faer::set_global_parallelism`).

pub mod tipping;

use faer::linalg::solvers::{Llt, Solve};
use faer::{Mat, MatRef, Scale, Side};

/// The kernel matrix and the quantities that all three algorithms derive from it.
pub struct Setting {
    /// The kernel matrix *including* the jitter; everything else, and the objective, refer to this matrix.
    pub k: Mat<f64>,
    pub center: bool,
    pub q: usize,
    /// B = K^½.
    pub root: Mat<f64>,
    /// T = B H B.
    pub t: Mat<f64>,
    /// K H K = B T B.
    pub moment: Mat<f64>,
    /// The initial P: the q leading eigenvectors of T, largest first.
    pub start: Mat<f64>,
    /// How ADMM measures its dual residual; `Dual::Printed` unless changed.
    pub dual: Dual,
    inverse_root: Mat<f64>,
    values: Vec<f64>,
    vectors: Mat<f64>,
}

/// The norm of the dual residual ρ(A_new − A_old), which stops ADMM and adapts the ρ of Algorithm 2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Dual {
    /// ‖K^−½ · ‖, as printed in the paper. K^−½ magnifies directions of little weight (up to 10⁵ times), so ρ becomes
    /// hundreds of times too small and the rule stops long after the objective has converged.
    Printed,
    /// ‖·‖: the residual of the same iteration with X = K^−½ Q as its variable.
    Plain,
}

/// Coefficients with exact zeros, the P they were computed for, and the objective of the two.
pub struct Answer {
    pub a: Mat<f64>,
    pub p: Mat<f64>,
    pub objective: f64,
    /// ADMM iterations, or sweeps of coordinate descent, over all rounds and components.
    pub iterations: usize,
}

impl Setting {
    pub fn new(k: MatRef<f64>, center: bool, q: usize) -> Setting {
        let n = k.nrows();
        // K^−½ appears in Wang's dual residual. A pseudo-inverse would force A into the range of K and so destroy
        // sparsity (213 nonzeros instead of 11 at the optimum); a jitter far below the accuracy of the objective makes
        // K invertible instead.
        let jitter = 1e-10 * (0..n).map(|i| k[(i, i)]).sum::<f64>() / n as f64;
        let k = Mat::from_fn(n, n, |i, j| 0.5 * (k[(i, j)] + k[(j, i)]) + if i == j { jitter } else { 0.0 });
        let (values, vectors) = eigen(&k);
        let values: Vec<f64> = values.into_iter().map(|value| value.max(jitter)).collect();
        let root = spectral(&vectors, &values, f64::sqrt);
        let inverse_root = spectral(&vectors, &values, |value| 1.0 / value.sqrt());
        let (t, moment) = if center { (less_mean(&k, &root), less_mean(&(&k * &k), &k)) } else { (k.clone(), &k * &k) };
        let leading = if center { eigen(&t).1 } else { vectors.clone() };
        let start = leading.get(.., ..q).to_owned();
        Setting { k, center, q, root, t, moment, start, dual: Dual::Printed, inverse_root, values, vectors }
    }

    /// Returns B T P: the correlations of all points with the targets. Its largest entry (row norm) is the largest
    /// useful penalty.
    pub fn correlation(&self, p: MatRef<f64>) -> Mat<f64> {
        &self.root * (&self.t * p)
    }

    fn dual_norm(&self, x: &Mat<f64>) -> f64 {
        match self.dual {
            Dual::Printed => (&self.inverse_root * x).norm_l2(),
            Dual::Plain => x.norm_l2(),
        }
    }

    /// Returns ½ tr T − tr(VᵀT P) + ½ tr(VᵀT V) + λ/2 ‖V‖², with V = B A. Pass λ = 0 for the loss alone.
    fn loss(&self, a: &Mat<f64>, p: &Mat<f64>, lambda: f64) -> f64 {
        let v = &self.root * a;
        let trace: f64 = (0..self.t.nrows()).map(|i| self.t[(i, i)]).sum();
        0.5 * trace - dot(&v, &(&self.t * (p - Scale(0.5) * &v))) + 0.5 * lambda * dot(&v, &v)
    }

    pub fn objective_l1(&self, a: &Mat<f64>, p: &Mat<f64>, lambda: f64, lambda1: &[f64]) -> f64 {
        let size = |k: usize| a.col(k).iter().map(|x| x.abs()).sum::<f64>();
        self.loss(a, p, lambda) + (0..self.q).map(|k| lambda1[k] * size(k)).sum::<f64>()
    }

    pub fn objective_l21(&self, a: &Mat<f64>, p: &Mat<f64>, lambda: f64, mu: f64) -> f64 {
        self.loss(a, p, lambda) + mu * (0..a.nrows()).map(|i| a.row(i).norm_l2()).sum::<f64>()
    }

    pub fn objective_elastic_net(&self, a: &Mat<f64>, p: &Mat<f64>, lambda: f64, lambda1: f64) -> f64 {
        self.loss(a, p, 0.0) + 0.5 * lambda * dot(a, a) + 0.5 * lambda1 * a.norm_l1()
    }
}

/// Algorithm 1: one component after the other, ADMM inside, p_k deflated against p_1 … p_{k−1}.
///
/// `tolerance` is the paper's ε^abs and ε^rel, and bounds ‖q_new − q_old‖ between rounds.
pub fn l1(
    setting: &Setting,
    lambda: f64,
    lambda1: &[f64],
    rho: f64,
    outer: usize,
    inner: usize,
    tolerance: f64,
) -> Answer {
    assert_eq!(lambda1.len(), setting.q, "one λ₁ per component");
    let n = setting.k.nrows();
    let system = System::new(setting, lambda, rho);
    let (mut a, mut p, mut iterations) = (Mat::zeros(n, setting.q), setting.start.clone(), 0);
    for (k, &lambda1) in lambda1.iter().enumerate() {
        // Step 4 leaves the initial values open: zero at first, then the result of the previous round.
        let mut state = Column { q: Mat::zeros(n, 1), a: Mat::zeros(n, 1), t: Mat::zeros(n, 1) };
        for round in 0..outer {
            let before = state.q.clone();
            let target = setting.correlation(p.get(.., k..k + 1));
            iterations += state.solve(setting, &system, &target, lambda1, rho, inner, tolerance);
            let settled = (&state.q - &before).norm_l2() < tolerance;
            // If a component vanished, q_k is only rounding error of ADMM and must not determine p_k.
            if round + 1 == outer || settled || state.a.norm_max() == 0.0 {
                break;
            }
            let next = deflated(setting, &state.q, p.get(.., ..k));
            p.get_mut(.., k..k + 1).copy_from(&next);
        }
        a.get_mut(.., k..k + 1).copy_from(&state.a);
    }
    let objective = setting.objective_l1(&a, &p, lambda, lambda1);
    Answer { a, p, objective, iterations }
}

/// Algorithm 1's ADMM at the initial P, where the components are independent: all of them at once, with one penalty.
pub fn l1_together(setting: &Setting, lambda: f64, lambda1: f64, rho: f64, inner: usize, tolerance: f64) -> Answer {
    let zero = || Mat::zeros(setting.k.nrows(), setting.q);
    let mut state = Column { q: zero(), a: zero(), t: zero() };
    let system = System::new(setting, lambda, rho);
    let (p, target) = (setting.start.clone(), setting.correlation(setting.start.as_ref()));
    let iterations = state.solve(setting, &system, &target, lambda1, rho, inner, tolerance);
    let objective = setting.objective_l1(&state.a, &p, lambda, &vec![lambda1; setting.q]);
    Answer { a: state.a, p, objective, iterations }
}

/// Steps 10–12: p_k = (I − P_(k−1) P_(k−1)ᵀ) T q_k, to unit length (which makes step 10's scaling immaterial).
fn deflated(setting: &Setting, q: &Mat<f64>, earlier: MatRef<f64>) -> Mat<f64> {
    let image = &setting.t * q;
    let rest = &image - earlier * (earlier.transpose() * &image);
    Scale(1.0 / rest.norm_l2()) * rest
}

/// The ADMM variables of one component, or of several independent ones: q_k, a_k and the multiplier t_k.
struct Column {
    q: Mat<f64>,
    a: Mat<f64>,
    t: Mat<f64>,
}

impl Column {
    /// Steps 5–9; returns the number of iterations.
    #[allow(clippy::too_many_arguments)]
    fn solve(
        &mut self,
        setting: &Setting,
        system: &System,
        target: &Mat<f64>,
        lambda1: f64,
        rho: f64,
        inner: usize,
        tolerance: f64,
    ) -> usize {
        let floor = (self.a.nrows() as f64).sqrt() * tolerance;
        for iteration in 1..=inner {
            let x = system.solve(&(target + Scale(rho) * &self.a - &self.t));
            // Line 7 prints the threshold λ/ρ; the derivation above it has λ₁ₖ/ρ, which is the correct minimiser.
            let a = soft_entries(&(&x + Scale(1.0 / rho) * &self.t), lambda1 / rho);
            let primal = &x - &a;
            let dual = rho * setting.dual_norm(&(&a - &self.a));
            self.t += Scale(rho) * &primal;
            self.a = a;
            let primal_bound = floor + tolerance * x.norm_l2().max(self.a.norm_l2());
            let small = primal.norm_l2() <= primal_bound && dual <= floor + tolerance * setting.dual_norm(&self.t);
            if small || iteration == inner {
                self.q = &setting.root * x;
                return iteration;
            }
        }
        0
    }
}

/// Algorithm 2: all components at once, rows of A thresholded together, ρ adapted to the residuals.
///
/// `tolerance` is the paper's δ for *both* residuals (it prints "or", which a zero start satisfies at once), and
/// bounds ‖Q_new − Q_old‖ between rounds.
pub fn l21(setting: &Setting, lambda: f64, mu: f64, rho0: f64, outer: usize, inner: usize, tolerance: f64) -> Answer {
    let zero = || Mat::zeros(setting.k.nrows(), setting.q);
    // Step 3 leaves the initial values open: zero at first, then the result of the previous round.
    let mut state = Rows { q: zero(), a: zero(), w: zero(), rho: rho0, system: System::new(setting, lambda, rho0) };
    let (mut p, mut iterations) = (setting.start.clone(), 0);
    for round in 0..outer {
        let before = state.q.clone();
        let target = setting.correlation(p.as_ref());
        iterations += state.solve(setting, &target, lambda, mu, inner, tolerance);
        let settled = (&state.q - &before).norm_l2() < tolerance;
        if round + 1 == outer || settled || state.a.norm_max() == 0.0 {
            break;
        }
        p = polar(&(&setting.t * &state.q)); // steps 9–10
    }
    let objective = setting.objective_l21(&state.a, &p, lambda, mu);
    Answer { a: state.a, p, objective, iterations }
}

/// The ADMM variables of all components: Q, A, the scaled multiplier W, ρ and the system that belongs to it.
struct Rows {
    q: Mat<f64>,
    a: Mat<f64>,
    w: Mat<f64>,
    rho: f64,
    system: System,
}

impl Rows {
    /// Steps 4–8; returns the number of iterations.
    fn solve(
        &mut self,
        setting: &Setting,
        target: &Mat<f64>,
        lambda: f64,
        mu: f64,
        inner: usize,
        tolerance: f64,
    ) -> usize {
        for iteration in 1..=inner {
            let x = self.system.solve(&(target + Scale(self.rho) * (&self.a + &self.w)));
            let a = soft_rows(&(&x - &self.w), mu / self.rho); // (19)
            let difference = &x - &a;
            self.w -= &difference;
            let primal = difference.norm_l2();
            let dual = self.rho * setting.dual_norm(&(&a - &self.a));
            self.a = a;
            if (primal < tolerance && dual < tolerance) || iteration == inner {
                self.q = &setting.root * x;
                return iteration;
            }
            self.adapt(setting, lambda, primal, dual);
        }
        0
    }

    /// Applies the self-adaptive rule with η = 10 and τ = 2; W = T/ρ is rescaled so that the multiplier T stays the
    /// same.
    fn adapt(&mut self, setting: &Setting, lambda: f64, primal: f64, dual: f64) {
        let factor = if primal > 10.0 * dual {
            2.0
        } else if dual > 10.0 * primal {
            0.5
        } else {
            return;
        };
        self.rho *= factor;
        self.w *= Scale(1.0 / factor);
        self.system = System::new(setting, lambda, self.rho);
    }
}

/// Das's alternation: elastic nets (11) by cyclic coordinate descent, then Corollary 1.
///
/// With α = B⁻¹P the constraint αᵀKα = I becomes PᵀP = I, the start α = E D^−½ becomes the leading eigenvectors, K²α
/// becomes B T P and Corollary 1 the polar factor of T V. `tolerance` bounds the violation of the optimality conditions
/// relative to the largest correlation, and ‖V_new − V_old‖ between rounds.
pub fn elastic_net(
    setting: &Setting,
    lambda: f64,
    lambda1: f64,
    outer: usize,
    sweeps: usize,
    tolerance: f64,
) -> Answer {
    let n = setting.k.nrows();
    let (mut a, mut v) = (Mat::zeros(n, setting.q), Mat::zeros(n, setting.q));
    let (mut p, mut iterations) = (setting.start.clone(), 0);
    for round in 0..outer {
        let target = setting.correlation(p.as_ref());
        for k in 0..setting.q {
            let mut column: Vec<f64> = a.col(k).iter().copied().collect();
            let goal: Vec<f64> = target.col(k).iter().copied().collect();
            iterations += descend(&setting.moment, &goal, lambda, 0.5 * lambda1, &mut column, sweeps, tolerance);
            (0..n).for_each(|i| a[(i, k)] = column[i]);
        }
        let before = std::mem::replace(&mut v, &setting.root * &a);
        if round + 1 == outer || (&v - &before).norm_l2() < tolerance || a.norm_max() == 0.0 {
            break;
        }
        p = polar(&(&setting.t * &v));
    }
    let objective = setting.objective_elastic_net(&a, &p, lambda, lambda1);
    Answer { a, p, objective, iterations }
}

/// Minimises ½ aᵀ(M + λI)a − goalᵀa + threshold ‖a‖₁ from the given `a`, one coordinate after the other.
fn descend(
    moment: &Mat<f64>,
    goal: &[f64],
    lambda: f64,
    threshold: f64,
    a: &mut [f64],
    sweeps: usize,
    tolerance: f64,
) -> usize {
    let n = goal.len();
    let bound = tolerance * goal.iter().fold(0.0, |m: f64, g| m.max(g.abs()));
    for sweep in 1..=sweeps {
        // goal − M a, recomputed every sweep, because rounding of thousands of updates would accumulate.
        let mut rest = goal.to_vec();
        (0..n).filter(|&i| a[i] != 0.0).for_each(|i| subtract(&mut rest, a[i], moment, i));
        if (0..n).all(|i| violation(rest[i] - lambda * a[i], a[i], threshold) <= bound) {
            return sweep - 1;
        }
        for i in 0..n {
            let new = soft(rest[i] + moment[(i, i)] * a[i], threshold) / (moment[(i, i)] + lambda);
            if new != a[i] {
                subtract(&mut rest, new - a[i], moment, i);
                a[i] = new;
            }
        }
    }
    sweeps
}

/// rest −= step · (column i of M).
fn subtract(rest: &mut [f64], step: f64, moment: &Mat<f64>, i: usize) {
    rest.iter_mut().zip(moment.col_as_slice(i)).for_each(|(r, m)| *r -= step * m);
}

/// Returns the distance of the negative gradient of the smooth part from threshold · ∂|a|.
fn violation(descent: f64, a: f64, threshold: f64) -> f64 {
    if a == 0.0 { (descent.abs() - threshold).max(0.0) } else { (descent - threshold * a.signum()).abs() }
}

/// The matrix K H K + λK + ρI, factored.
enum System {
    /// Without centring it is diagonal in the eigenbasis of K for every ρ.
    Diagonal {
        vectors: Mat<f64>,
        values: Vec<f64>,
    },
    Cholesky(Llt<f64>),
}

impl System {
    fn new(setting: &Setting, lambda: f64, rho: f64) -> System {
        if !setting.center {
            let values = setting.values.iter().map(|d| d * d + lambda * d + rho).collect();
            return System::Diagonal { vectors: setting.vectors.clone(), values };
        }
        let n = setting.k.nrows();
        let mut matrix = &setting.moment + Scale(lambda) * &setting.k;
        (0..n).for_each(|i| matrix[(i, i)] += rho);
        System::Cholesky(matrix.llt(Side::Lower).expect("K H K + λK + ρI is positive definite"))
    }

    fn solve(&self, right: &Mat<f64>) -> Mat<f64> {
        match self {
            System::Cholesky(factor) => factor.solve(right),
            System::Diagonal { vectors, values } => {
                let mut coordinates = vectors.transpose() * right;
                for column in coordinates.col_iter_mut() {
                    column.iter_mut().zip(values).for_each(|(x, value)| *x /= value);
                }
                vectors * coordinates
            }
        }
    }
}

/// Applies S_τ to each entry, with exact zeros.
fn soft_entries(x: &Mat<f64>, tau: f64) -> Mat<f64> {
    Mat::from_fn(x.nrows(), x.ncols(), |i, j| soft(x[(i, j)], tau))
}

fn soft(x: f64, tau: f64) -> f64 {
    if x.abs() > tau { x - tau * x.signum() } else { 0.0 }
}

/// (19): shrinks the norm of every row by β, to no less than zero.
fn soft_rows(x: &Mat<f64>, beta: f64) -> Mat<f64> {
    let keep: Vec<f64> = (0..x.nrows()).map(|i| x.row(i).norm_l2()).map(|r| soft(r, beta) / r.max(beta)).collect();
    Mat::from_fn(x.nrows(), x.ncols(), |i, j| if keep[i] > 0.0 { keep[i] * x[(i, j)] } else { 0.0 })
}

/// Returns E Gᵀ of the thin singular value decomposition E D Gᵀ: the orthonormal P that maximises tr(PᵀX).
fn polar(x: &Mat<f64>) -> Mat<f64> {
    let svd = x.thin_svd().expect("a finite matrix");
    svd.U() * svd.V().transpose()
}

/// Returns eigenvalues, largest first, and eigenvectors.
fn eigen(matrix: &Mat<f64>) -> (Vec<f64>, Mat<f64>) {
    let pairs = matrix.self_adjoint_eigen(Side::Lower).expect("a finite symmetric matrix");
    let values = pairs.S().column_vector().iter().rev().copied().collect();
    (values, pairs.U().reverse_cols().to_owned())
}

/// Returns E f(D) Eᵀ.
fn spectral(vectors: &Mat<f64>, values: &[f64], f: impl Fn(f64) -> f64) -> Mat<f64> {
    let scaled = Mat::from_fn(vectors.nrows(), values.len(), |i, j| vectors[(i, j)] * f(values[j]));
    scaled * vectors.transpose()
}

/// Returns S H S = S² − (S1)(S1)ᵀ/n for a symmetric S with a known square.
fn less_mean(square: &Mat<f64>, s: &Mat<f64>) -> Mat<f64> {
    let n = s.nrows();
    let sums: Vec<f64> = (0..n).map(|j| s.col(j).iter().sum()).collect();
    Mat::from_fn(n, n, |i, j| square[(i, j)] - sums[i] * sums[j] / n as f64)
}

fn dot(x: &Mat<f64>, y: &Mat<f64>) -> f64 {
    (0..x.ncols()).map(|j| x.col(j).transpose() * y.col(j)).sum()
}
