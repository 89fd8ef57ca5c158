//! Learns the factor f of a conformal kernel that separates the classes best (Li & Gao 2011, after Xiong, Swamy & Ahmad
//! 2005).
//!
//! ```text
//! k′ = f f k,   f = E ξ,   E = [1, exp(−δ‖x_i − v_n‖²)],   v_n: the support that the method chooses under k
//! J(ξ) = ξᵀEᵀB₀Eξ / ξᵀEᵀW₀Eξ      B₀ = blkdiag(K_cc / n_c) − K / n,   W₀ = diag K − blkdiag(K_cc / n_c)
//! ```
//!
//! J is the ratio of between-class to within-class scatter in the feature space of k′. There are three solvers:
//!
//! | solver | ξ |
//! |---|---|
//! | `exact` | the leading eigenvector of EᵀB₀E ξ = J (EᵀW₀E + ρ I) ξ; f may be negative |
//! | `positive` | the same subject to b ≥ 0 and b₀ ≥ Σ b_n / 10, so that f is positive everywhere. Each round solves a quadratic that touches J from below |
//! | `iteration` | (32) of the paper: gradient steps from f = 1, with a step size that decreases to zero |
//!
//! f is scaled to mean square 1 over the rows. No n × n matrix is stored: at most [`LEARNING_ROWS`] rows are used.

use std::sync::Arc;

use faer::{Mat, MatRef};

use crate::blocks;
use crate::bounded::bounded;
use crate::dense::{self, dot};
use crate::error::{Error, Result};
use crate::gram::{Basis, Precision};
use crate::kernel::conformal::{Conformal, Stretch, build_base, is_unlearned};
use crate::kernel::rbf::Rbf;
use crate::kernel::{self, Bandwidth, Distance, Kernel, pinned};
use crate::labels::Labels;
use crate::points::Points;
use crate::random::{Random, Stream};
use crate::rows::Rows;
use crate::spec::{Fields, Spec};
use crate::watch::{Watch, check};
use skpca_simd::Instructions;

/// Maximum number of rows that f is learned from; larger tables are sampled uniformly.
const LEARNING_ROWS: usize = 4000;
/// Maximum number of centres v_n of f; a larger support is sampled.
const MAX_CENTRES: usize = 500;
/// Scatter below this share of the total is due to rounding.
const ROUNDING: f64 = 1e-12;
/// b₀ of a positive f is at least this share of the sum of the other b, which bounds max f / min f by 1 + 1 / this.
const MIN_CONSTANT: f64 = 0.1;
/// Maximum number of rounds of `positive`.
const MAX_ROUNDS: usize = 500;
/// Relative increase of J below which `positive` has converged.
const MIN_INCREASE: f64 = 1e-9;

/// Learns f with one of the solvers.
pub(crate) struct Learner {
    base: Arc<dyn Kernel>,
    delta: f64,
    solver: Solver,
}

enum Solver {
    Exact { regularisation: f64 },
    Positive { regularisation: f64 },
    Iteration { rate: f64, steps: usize },
}

impl Learner {
    /// Creates the learner of `spec` if that is a conformal kernel without an f.
    pub(crate) fn new(spec: &Spec, bandwidth: &Bandwidth) -> Result<Option<Learner>> {
        if !is_unlearned(spec) {
            return Ok(None);
        }
        let mut fields = Fields::new(spec, kernel::entry(spec)?.parameters);
        let delta = bandwidth.of("delta", &mut fields, Distance::Squared)?;
        let solver = match fields.choice("solver")? {
            "exact" => Solver::Exact { regularisation: fields.number("regularisation")? },
            "positive" => Solver::Positive { regularisation: fields.number("regularisation")? },
            _ => Solver::Iteration { rate: fields.number("rate")?, steps: fields.count("rounds")? },
        };
        let base = build_base(&mut fields, bandwidth)?;
        fields.finish("kernel parameter")?;
        Ok(Some(Learner { base, delta, solver }))
    }

    /// Returns the same learner with kernel values computed by these instructions.
    pub(crate) fn pinned(self, instructions: Instructions) -> Learner {
        Learner { base: pinned(self.base, instructions), ..self }
    }

    /// Returns the base kernel.
    pub(crate) fn base(&self) -> &Arc<dyn Kernel> {
        &self.base
    }

    /// Returns the kernel with the f that separates the classes, its centres at `support`, and a note for the report.
    pub(crate) fn learn(
        &self,
        table: &dyn Rows,
        labels: &Labels,
        support: &Points,
        seed: u64,
        watch: &dyn Watch,
    ) -> Result<(Arc<dyn Kernel>, String)> {
        let rows = sample(labels, seed);
        let (x, labels) = (table.gather(&rows)?, labels.select(&rows));
        let vectors = support.select(&Random::new(seed, Stream::ConformalVectors).sample(support.n(), MAX_CENTRES));
        let bump = pinned(Arc::new(Rbf { gamma: self.delta }), self.base.instructions());
        let e = bumps(bump, &x, &vectors);
        check(watch, "scatter of the classes", 0.0)?;
        let fisher = Fisher::new(&self.base, &x, &labels, e.as_ref())?;
        let mut xi = fisher.solve(&self.solver, watch)?;
        let f = dense::product(e.as_ref(), column(&xi).as_ref());
        let mean = f.squared_norm_l2() / x.n() as f64;
        if !(mean > 0.0 && mean.is_finite()) {
            let why = "the factor of the conformal kernel is zero or infinite on all rows; try another solver or rate";
            return Err(Error::Numerical { why: why.into() });
        }
        let sign = if f.col(0).iter().sum::<f64>() < 0.0 { -1.0 } else { 1.0 };
        xi.iter_mut().for_each(|v| *v *= sign / mean.sqrt());
        let negative = f.col(0).iter().filter(|v| **v * sign < 0.0).count();
        let note = format!(
            "classes are apart by J = {:.4} under the conformal kernel, {:.4} under {}; f is negative on {:.0} % of the rows",
            fisher.ratio(&xi),
            fisher.ratio(&unit(xi.len())),
            self.base.spec().name,
            100.0 * negative as f64 / x.n() as f64
        );
        let stretch = Stretch { constant: xi[0], weights: xi[1..].to_vec(), vectors, delta: self.delta };
        Ok((Arc::new(Conformal { base: self.base.clone(), stretch }), note))
    }
}

/// Returns the rows to learn from: a uniform sample, plus up to two rows of every class it misses, unless there are too
/// many classes.
fn sample(labels: &Labels, seed: u64) -> Vec<usize> {
    let drawn = Random::new(seed, Stream::ConformalRows).sample(labels.n(), LEARNING_ROWS);
    if drawn.len() == labels.n() || labels.classes() > LEARNING_ROWS / 4 {
        return drawn;
    }
    let mut counts = labels.select(&drawn).counts();
    let mut rows = drawn.clone();
    for row in 0..labels.n() {
        let class = labels.of(row);
        if counts[class] < 2 && drawn.binary_search(&row).is_err() {
            counts[class] += 1;
            rows.push(row);
        }
    }
    rows.sort_unstable();
    rows
}

/// `E`
fn bumps(bump: Arc<dyn Kernel>, x: &Points, vectors: &Points) -> Mat<f64> {
    let basis = Basis::new(bump, vectors.slice(0..vectors.n()).into_owned());
    let parts = blocks::map(x.n(), |rows| {
        let mut block = Mat::zeros(rows.len(), vectors.n());
        basis.block(&x.slice(rows.clone()), block.as_mut());
        dense::beside(Mat::from_fn(rows.len(), 1, |_, _| 1.0).as_ref(), block.as_ref())
    });
    dense::stack(&parts)
}

/// `EᵀB₀E` and `EᵀW₀E`
struct Fisher {
    between: Mat<f64>,
    within: Mat<f64>,
}

impl Fisher {
    fn new(kernel: &Arc<dyn Kernel>, x: &Points, labels: &Labels, e: MatRef<f64>) -> Result<Fisher> {
        let size = e.ncols();
        let rows: Vec<usize> = (0..x.n()).collect();
        let all = quadratic_form(kernel, x, &rows, e);
        let mut classes = Mat::zeros(size, size);
        for class in 0..labels.classes() {
            let of: Vec<usize> = rows.iter().copied().filter(|&i| labels.of(i) == class).collect();
            if !of.is_empty() {
                classes += quadratic_form(kernel, x, &of, e) * faer::Scale(1.0 / of.len() as f64);
            }
        }
        let lengths: Vec<f64> = x.rows().map(|row| kernel.eval(row, row)).collect();
        let weighted = Mat::from_fn(x.n(), size, |i, n| lengths[i] * e[(i, n)]);
        let mut within = Mat::zeros(size, size);
        dense::add_transposed_product(&mut within, e, weighted.as_ref());
        let n = x.n() as f64;
        let symmetric = |a: &dyn Fn(usize, usize) -> f64| Mat::from_fn(size, size, |i, j| 0.5 * (a(i, j) + a(j, i)));
        let fisher = Fisher {
            between: symmetric(&|i, j| classes[(i, j)] - all[(i, j)] / n),
            within: symmetric(&|i, j| within[(i, j)] - classes[(i, j)]),
        };
        let least = ROUNDING * dense::trace(&within);
        match (dense::trace(&fisher.within) > least, dense::trace(&fisher.between) > least) {
            (true, true) => Ok(fisher),
            (false, _) => Err(no_scatter()),
            (_, false) => Err(Error::NoVariance { why: "the means of all classes coincide".into() }),
        }
    }

    /// J
    fn ratio(&self, xi: &[f64]) -> f64 {
        quadratic(&self.between, xi) / quadratic(&self.within, xi)
    }

    fn solve(&self, solver: &Solver, watch: &dyn Watch) -> Result<Vec<f64>> {
        match *solver {
            Solver::Exact { regularisation } => self.exact(regularisation),
            Solver::Positive { regularisation } => self.positive(regularisation, watch),
            Solver::Iteration { rate, steps } => Ok(self.iteration(rate, steps)),
        }
    }

    /// `EᵀW₀E + ρ I`
    fn regularised(&self, regularisation: f64) -> Mat<f64> {
        let size = self.within.nrows();
        let mean = dense::trace(&self.within) / size as f64;
        let add = |i, j| if i == j { regularisation * mean } else { 0.0 };
        Mat::from_fn(size, size, |i, j| self.within[(i, j)] + add(i, j))
    }

    fn exact(&self, regularisation: f64) -> Result<Vec<f64>> {
        let l = dense::cholesky(self.regularised(regularisation).as_ref()).ok_or_else(no_scatter)?;
        let mut between = self.between.clone();
        dense::whiten(l.as_ref(), &mut between);
        let (_, vectors) = dense::eigen(between.as_ref())?;
        let mut xi = column(vectors.col_as_slice(0));
        dense::solve_lower_transposed(l.as_ref(), xi.as_mut());
        Ok(xi.col_as_slice(0).to_vec())
    }

    /// Minorise–maximise: the numerator is convex, so its tangent at ξ lies below it, and maximising
    /// `ξᵀBξ′ / J − ½ ξ′ᵀWξ′` over ξ′ ≥ 0 increases J.
    fn positive(&self, regularisation: f64, watch: &dyn Watch) -> Result<Vec<f64>> {
        let size = self.within.nrows();
        // ξ = M η, η ≥ 0: b₀ is η₀ plus a share of every other η.
        let m = Mat::from_fn(size, size, |i, j| match i {
            0 if j > 0 => MIN_CONSTANT,
            _ => f64::from(i == j),
        });
        let inside = |a: &Mat<f64>| m.transpose() * a * &m;
        let (between, within) = (inside(&self.between), inside(&self.regularised(regularisation)));
        let ratio = |eta: &[f64]| quadratic(&between, eta) / quadratic(&within, eta);
        let climb = |mut eta: Vec<f64>| -> Result<(f64, Vec<f64>)> {
            let mut best = ratio(&eta);
            for round in 0..MAX_ROUNDS {
                check(watch, "factor of the kernel", round as f64 / MAX_ROUNDS as f64)?;
                let slopes: Vec<f64> = times(&between, &eta).iter().map(|b| -b / best).collect();
                let next = bounded(&within, &slopes, &vec![0.0; size]);
                let risen = ratio(&next);
                let rises = risen > (1.0 + MIN_INCREASE) * best;
                if !rises {
                    break;
                }
                (eta, best) = (next, risen);
            }
            Ok((best, eta))
        };
        // There may be several local maxima, so start both from f = 1 and from equal weights.
        let (one, other) = (climb(unit(size))?, climb(vec![1.0; size])?);
        let (best, eta) = if other.0 > one.0 { other } else { one };
        if best.is_finite() { Ok(times(&m.transpose().to_owned(), &eta)) } else { Err(no_scatter()) }
    }

    /// (32) of the paper: steps along the gradient of J ((31) as printed lacks a factor 1 / J₂).
    fn iteration(&self, rate: f64, steps: usize) -> Vec<f64> {
        let mut xi = unit(self.within.nrows());
        for step in 0..steps {
            let rate = rate * (1.0 - step as f64 / steps as f64);
            let (b, w) = (times(&self.between, &xi), times(&self.within, &xi));
            let (j1, j2) = (dot(&b, &xi), dot(&w, &xi));
            if !(j2 > 0.0 && j1.is_finite()) {
                break;
            }
            let change = b.iter().zip(&w).map(|(b, w)| rate * (b / j2 - j1 / (j2 * j2) * w));
            xi = xi.iter().zip(change).map(|(v, change)| v + change).collect();
        }
        xi
    }
}

/// Returns `E_sᵀ K_ss E_s` for some rows s.
fn quadratic_form(kernel: &Arc<dyn Kernel>, x: &Points, rows: &[usize], e: MatRef<f64>) -> Mat<f64> {
    let size = e.ncols();
    let (x, e) = (x.select(rows), Mat::from_fn(rows.len(), size, |i, n| e[(rows[i], n)]));
    let basis = Basis::new(kernel.clone(), x.clone());
    let ke = basis.product(&x, &basis.weights(e.clone()), Precision::Double);
    let mut out = Mat::zeros(size, size);
    dense::add_transposed_product(&mut out, e.as_ref(), MatRef::from_row_major_slice(&ke, rows.len(), size));
    out
}

fn no_scatter() -> Error {
    Error::NoVariance { why: "no class varies within itself: nothing to separate it from the others by".into() }
}

/// ξ of f = 1.
fn unit(size: usize) -> Vec<f64> {
    (0..size).map(|n| if n == 0 { 1.0 } else { 0.0 }).collect()
}

fn column(values: &[f64]) -> Mat<f64> {
    Mat::from_fn(values.len(), 1, |i, _| values[i])
}

fn times(a: &Mat<f64>, x: &[f64]) -> Vec<f64> {
    (0..x.len()).map(|i| dot(a.col_as_slice(i), x)).collect()
}

fn quadratic(a: &Mat<f64>, x: &[f64]) -> f64 {
    dot(&times(a, x), x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toys;

    #[test]
    fn a_sample_has_every_class_and_distinct_rows() {
        // Rare classes at both ends and in between, two rows each.
        let class = |i: usize| if i % 1000 < 2 { 1 + i / 1000 } else { 0 };
        let labels = Labels::new((0..20_000).map(class)).unwrap();
        for seed in 0..20 {
            let rows = sample(&labels, seed);
            assert!(rows.windows(2).all(|pair| pair[0] < pair[1]), "{seed}");
            assert!(labels.select(&rows).counts().iter().all(|&count| count >= 2), "{seed}");
            assert!(rows.len() < LEARNING_ROWS + 2 * labels.classes(), "{seed}");
        }
    }

    #[test]
    fn a_solver_reads_every_parameter_that_the_kernel_declares() {
        let points = toys::clusters(0);
        let bandwidth = Bandwidth { rows: Some(&points), seed: 0 };
        for entry in kernel::KERNELS.iter().filter(|entry| entry.capabilities.labelled) {
            for parameter in entry.parameters {
                let value = parameter.default.value().expect("all have one");
                let spec = Spec::new(entry.name).with(parameter.name, value);
                let read = |solver: &str| {
                    let spec =
                        if parameter.name == "solver" { spec.clone() } else { spec.clone().with("solver", solver) };
                    matches!(Learner::new(&spec, &bandwidth), Ok(Some(_)))
                };
                assert!(["exact", "positive", "iteration"].iter().any(|solver| read(solver)), "{}", parameter.name);
            }
        }
    }
}
