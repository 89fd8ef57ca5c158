//! The lasso and the group lasso in Gram form, solved to a duality gap.
//!
//! ```text
//! min over A   ½‖Y − R A‖² + μ Σ_i ‖a_i‖            a_i: rows of A;  one column: the lasso
//!              known by  G = RᵀR,  C = RᵀY,  ‖Y‖²
//!
//! ‖a‖ = min over η of (‖a‖²/η + η)/2, so A can be eliminated (η_i = ‖a_i‖ at the optimum):
//!     g(η) = ½ tr Yᵀ Z + (μ/2) Σ η_i,   Z = (I + R diag(η) Rᵀ/μ)⁻¹ Y = Y − R A,   η ≥ 0      convex
//!     A = √η (μI + √η G √η)⁻¹ √η C                                 well conditioned, however bad G is
//!     ∂g/∂η_i = ½(μ − ‖z_i‖²/μ),   z = RᵀZ = C − G A
//!     ∂²g/∂η_i∂η_j = (R_iᵀ(I + RηRᵀ/μ)⁻¹R_j)(z_i·z_j)/μ²
//! ```
//!
//! Newton steps on g over the rows in use and those that would decrease g, bounded by η ≥ 0. Designs of kernel values
//! are so badly conditioned that coordinate descent takes ten thousand sweeps where this takes twenty steps
//! (docs/decisions/0010).

use faer::{ColRef, Mat, MatRef};

use crate::bounded::bounded;
use crate::dense;

/// A row may enter when its correlation with the residual exceeds the penalty by this share.
const ENTER: f64 = 1e-12;
/// Added to the diagonal of the Hessian, as a share of it, because equal rows make it singular.
const DAMPING: f64 = 1e-11;
/// Maximum number of halvings in a line search.
const HALVINGS: usize = 40;

/// The problem.
pub(crate) struct Lasso<'a> {
    /// `G`
    pub gram: MatRef<'a, f64>,
    /// `C`
    pub correlations: MatRef<'a, f64>,
    /// `‖Y‖²`
    pub squared: f64,
    /// `μ`, positive.
    pub penalty: f64,
}

/// The solution.
pub(crate) struct Answer {
    pub coefficients: Mat<f64>,
    /// `‖R A‖²`
    pub squared: f64,
    /// η, a warm start of the next problem.
    pub sizes: Vec<f64>,
    /// Approximate number of multiply-adds spent.
    pub work: f64,
}

/// Returns upper and lower bounds of the minimum, from `‖Y − RA‖²`, `tr Yᵀ(Y − RA)`, `Σ μ‖a_i‖` and the largest
/// `‖z_i‖/μ`: the residual, scaled down until it is feasible, is a dual point.
pub(crate) fn bounds(residual: f64, inner: f64, penalty: f64, largest: f64) -> (f64, f64) {
    let shrink = 1.0 / largest.max(1.0);
    (0.5 * residual + penalty, shrink * inner - 0.5 * shrink * shrink * residual)
}

/// Returns the relative duality gap.
pub(crate) fn gap(primal: f64, dual: f64) -> f64 {
    ((primal - dual) / primal.max(f64::MIN_POSITIVE)).max(0.0)
}

/// η, and everything computed from it.
struct ActiveSet {
    sizes: Vec<f64>,
    /// Rows with η > 0.
    active: Vec<usize>,
    /// The Cholesky factor of `μI + √η G √η` over the active rows.
    l: Mat<f64>,
    coefficients: Mat<f64>,
    /// `‖R A‖²`
    squared: f64,
    z: Mat<f64>,
    /// `‖z_i‖ / μ`
    ratios: Vec<f64>,
    /// g(η)
    value: f64,
    /// `½‖Y − R A‖² + μ Σ ‖a_i‖`
    primal: f64,
    /// A lower bound of the minimum.
    dual: f64,
}

impl ActiveSet {
    /// Returns the multiply-adds needed to compute this from η: a Cholesky factor, and z of all rows.
    fn work(&self) -> f64 {
        let (m, w, q) = (self.active.len() as f64, self.sizes.len() as f64, self.z.ncols() as f64);
        m * m * m / 3.0 + m * w * q
    }
}

impl Lasso<'_> {
    /// Starts from `sizes` and stops at a relative gap of `tolerance`, or when rounding prevents further progress.
    pub(crate) fn solve(&self, sizes: Vec<f64>, tolerance: f64, steps: usize) -> Answer {
        let mut state = self.state(sizes);
        let mut work = state.work();
        for _ in 0..steps {
            if gap(state.primal, state.dual) <= tolerance {
                break;
            }
            match self.step(&state) {
                Some(next) => state = next,
                None => break,
            }
            // A Hessian, a Newton step and the state after it.
            work += 6.0 * state.work();
        }
        Answer { coefficients: state.coefficients, squared: state.squared, sizes: state.sizes, work }
    }

    fn state(&self, sizes: Vec<f64>) -> ActiveSet {
        let (w, q) = (sizes.len(), self.correlations.ncols());
        let active: Vec<usize> = (0..w).filter(|&i| sizes[i] > 0.0).collect();
        let (l, a) = self.inner(&sizes, &active);
        let mut z = self.correlations.to_owned();
        let mut coefficients = Mat::zeros(w, q);
        let (mut explained, mut norms) = (0.0, 0.0);
        for (i, &row) in active.iter().enumerate() {
            let column = contiguous(self.gram.col(row));
            for k in 0..q {
                let value = a[(i, k)];
                coefficients[(row, k)] = value;
                explained += value * self.correlations[(row, k)];
                let z = z.col_as_slice_mut(k);
                z.iter_mut().zip(column).for_each(|(z, g)| *z -= value * g);
            }
            norms += a.row(i).norm_l2();
        }
        let mut squares = vec![0.0; w];
        let mut left = 0.0;
        for k in 0..q {
            let (z, coefficients) = (z.col_as_slice(k), coefficients.col_as_slice(k));
            squares.iter_mut().zip(z).for_each(|(s, z)| *s += z * z);
            left += z.iter().zip(coefficients).map(|(z, a)| z * a).sum::<f64>();
        }
        let ratios: Vec<f64> = squares.iter().map(|s| s.sqrt() / self.penalty).collect();
        let inner = self.squared - explained;
        let largest = ratios.iter().copied().fold(0.0, f64::max);
        let (primal, dual) = bounds((inner - left).max(0.0), inner, self.penalty * norms, largest);
        let value = 0.5 * inner + 0.5 * self.penalty * sizes.iter().sum::<f64>();
        let squared = explained - left;
        ActiveSet { sizes, active, l, coefficients, squared, z, ratios, value, primal, dual }
    }

    /// Computes the Cholesky factor of `μI + √η G √η` over the active rows, and their coefficients.
    fn inner(&self, sizes: &[f64], active: &[usize]) -> (Mat<f64>, Mat<f64>) {
        let roots: Vec<f64> = active.iter().map(|&i| sizes[i].sqrt()).collect();
        let m = active.len();
        let mut inner = Mat::zeros(m, m);
        for j in 0..m {
            let column = contiguous(self.gram.col(active[j]));
            for i in j..m {
                inner[(i, j)] = roots[i] * column[active[i]] * roots[j];
            }
            inner[(j, j)] += self.penalty;
        }
        // μI makes it positive definite for any η. If rounding should spoil that, the line search rejects the step.
        let l = dense::cholesky(inner.as_ref()).unwrap_or_else(|| Mat::identity(m, m));
        let mut a = Mat::from_fn(m, self.correlations.ncols(), |i, k| roots[i] * self.correlations[(active[i], k)]);
        dense::solve_lower(l.as_ref(), a.as_mut());
        dense::solve_lower_transposed(l.as_ref(), a.as_mut());
        for k in 0..a.ncols() {
            a.col_as_slice_mut(k).iter_mut().zip(&roots).for_each(|(a, root)| *a *= root);
        }
        (l, a)
    }

    /// Takes a Newton step with a line search; `None` if no step makes progress.
    fn step(&self, state: &ActiveSet) -> Option<ActiveSet> {
        let may_enter = |i: &usize| state.sizes[*i] == 0.0 && state.ratios[*i] > 1.0 + ENTER;
        let mut enter: Vec<usize> = (0..state.sizes.len()).filter(may_enter).collect();
        enter.sort_by(|&i, &j| state.ratios[j].total_cmp(&state.ratios[i]).then(i.cmp(&j)));
        enter.truncate(8.max(state.active.len() / 2));
        let mut free: Vec<usize> = state.active.iter().copied().chain(enter).collect();
        free.sort_unstable();

        let slope = |&i: &usize| 0.5 * self.penalty * (1.0 - state.ratios[i] * state.ratios[i]);
        let gradient: Vec<f64> = free.iter().map(slope).collect();
        let hessian = self.hessian(state, &free);
        let sizes: Vec<f64> = free.iter().map(|&i| state.sizes[i]).collect();
        let newton = bounded(&hessian, &gradient, &sizes);
        self.search(state, &free, &gradient, &newton).or_else(|| {
            let each = |i: usize| (sizes[i] - gradient[i] / hessian[(i, i)]).max(0.0) - sizes[i];
            let diagonal: Vec<f64> = (0..free.len()).map(each).collect();
            self.search(state, &free, &gradient, &diagonal)
        })
    }

    /// Computes the Hessian over the rows `free`.
    fn hessian(&self, state: &ActiveSet, free: &[usize]) -> Mat<f64> {
        let (m, f) = (state.active.len(), free.len());
        let mut b =
            Mat::from_fn(m, f, |i, j| state.sizes[state.active[i]].sqrt() * self.gram[(state.active[i], free[j])]);
        dense::solve_lower(state.l.as_ref(), b.as_mut());
        let mut e = Mat::from_fn(f, f, |i, j| self.gram[(free[i], free[j])]);
        dense::subtract_product(e.as_mut(), b.transpose(), b.as_ref());
        let z = Mat::from_fn(f, state.z.ncols(), |i, k| state.z[(free[i], k)] / self.penalty);
        let inner = dense::product(z.as_ref(), z.transpose());
        Mat::from_fn(f, f, |i, j| {
            let value = e[(i, j)] * inner[(i, j)];
            // For a row in the span of the others only rounding errors are left, which must not be taken for negative
            // curvature.
            if i == j { value.max(0.0) + DAMPING * self.gram[(free[i], free[i])] * inner[(i, i)] } else { value }
        })
    }

    /// Takes the longest of the steps d, d/2, d/4, … that decreases g sufficiently, or narrows the gap if changes of g
    /// are below its rounding error.
    fn search(&self, state: &ActiveSet, free: &[usize], gradient: &[f64], d: &[f64]) -> Option<ActiveSet> {
        let slope: f64 = gradient.iter().zip(d).map(|(g, d)| g * d).sum();
        if slope >= 0.0 || !slope.is_finite() {
            return None;
        }
        let before = gap(state.primal, state.dual);
        (0..HALVINGS).map(|halvings| 0.5_f64.powi(halvings as i32)).find_map(|t| {
            let mut sizes = state.sizes.clone();
            free.iter().zip(d).for_each(|(&i, d)| sizes[i] = (sizes[i] + t * d).max(0.0));
            let next = self.state(sizes);
            let lower = next.value <= state.value + 1e-4 * t * slope && next.value < state.value;
            (lower || (next.value <= state.value + 1e-14 * self.squared && gap(next.primal, next.dual) < 0.9 * before))
                .then_some(next)
        })
    }
}

fn contiguous(column: ColRef<'_, f64>) -> &[f64] {
    column.try_as_col_major().expect("matrices are stored by columns").as_slice()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Random, Stream};

    /// A design of Gaussian bumps, as badly conditioned as kernel matrices, and targets.
    fn design(rows: usize, w: usize, q: usize, width: f64) -> (Mat<f64>, Mat<f64>) {
        let mut random = Random::new(w as u64, Stream::Tests);
        let at: Vec<f64> = (0..w).map(|_| random.uniform()).collect();
        let r = Mat::from_fn(rows, w, |i, j| (-((i as f64 / rows as f64 - at[j]) / width).powi(2)).exp());
        let y = Mat::from_fn(rows, q, |i, k| ((k + 2) as f64 * i as f64 / rows as f64).sin());
        (r, y)
    }

    fn check(w: usize, q: usize, width: f64, share: f64) -> usize {
        let (r, y) = design(60, w, q, width);
        let gram = dense::product(r.transpose(), r.as_ref());
        let correlations = dense::product(r.transpose(), y.as_ref());
        let largest = (0..w).map(|i| correlations.row(i).norm_l2()).fold(0.0, f64::max);
        let penalty = share * largest;
        let squared = y.squared_norm_l2();
        let problem = Lasso { gram: gram.as_ref(), correlations: correlations.as_ref(), squared, penalty };
        let answer = problem.solve(vec![0.0; w], 1e-10, 200);
        let state = problem.state(answer.sizes.clone());
        let case = format!("w {w} q {q} width {width} share {share}");
        assert!(gap(state.primal, state.dual) <= 1e-10, "{case}: {}", gap(state.primal, state.dual));
        // The certificate, computed from the design itself.
        let a = &answer.coefficients;
        let residual = &y - dense::product(r.as_ref(), a.as_ref());
        let z = dense::product(r.transpose(), residual.as_ref());
        let norms: f64 = (0..w).map(|i| a.row(i).norm_l2()).sum();
        let primal = 0.5 * residual.squared_norm_l2() + penalty * norms;
        assert!((primal / state.primal - 1.0).abs() < 1e-9, "{case}");
        for i in 0..w {
            let ratio = z.row(i).norm_l2() / penalty;
            assert!(ratio < 1.0 + 1e-5, "{case}: ratio {ratio} of row {i}");
            if a.row(i).norm_l2() > 1e-3 * norms / w as f64 {
                assert!((ratio - 1.0).abs() < 1e-4, "{case}: ratio {ratio} of row {i}, which is in use");
            }
        }
        (0..w).filter(|&i| a.row(i).norm_l2() > 0.0).count()
    }

    #[test]
    fn optimality_holds_for_lasso_and_group_lasso_on_bad_designs() {
        for width in [0.05, 0.2, 0.6] {
            for q in [1, 3] {
                for share in [0.9, 0.1, 1e-2, 1e-3] {
                    for w in [5, 40, 120] {
                        check(w, q, width, share);
                    }
                }
            }
        }
    }

    #[test]
    fn above_the_largest_correlation_nothing_is_selected_and_just_below_something() {
        assert_eq!(check(40, 2, 0.2, 1.0), 0);
        assert_eq!(check(40, 2, 0.2, 1.5), 0);
        assert!(check(40, 2, 0.2, 0.99) > 0);
    }

    #[test]
    fn equal_rows_do_no_harm() {
        let gram = Mat::from_fn(4, 4, |_, _| 2.0);
        let correlations = Mat::from_fn(4, 1, |_, _| 3.0);
        let problem = Lasso { gram: gram.as_ref(), correlations: correlations.as_ref(), squared: 4.5, penalty: 1.0 };
        let answer = problem.solve(vec![0.0; 4], 1e-12, 100);
        // The coefficients sum to (3 − 1)/2, however they are distributed.
        assert!((answer.coefficients.sum() - 1.0).abs() < 1e-9, "{}", answer.coefficients.sum());
    }

    #[test]
    fn a_warm_start_gives_the_same_answer() {
        let (r, y) = design(60, 50, 2, 0.2);
        let gram = dense::product(r.transpose(), r.as_ref());
        let correlations = dense::product(r.transpose(), y.as_ref());
        let at = |penalty, sizes| {
            let squared = y.squared_norm_l2();
            let problem = Lasso { gram: gram.as_ref(), correlations: correlations.as_ref(), squared, penalty };
            problem.state(problem.solve(sizes, 1e-12, 200).sizes)
        };
        let first = at(1.0, vec![0.0; 50]);
        let (warm, cold) = (at(0.1, first.sizes), at(0.1, vec![0.0; 50]));
        assert!((warm.primal / cold.primal - 1.0).abs() < 1e-10);
    }
}
