//! Quadratic programs with lower bounds: the Newton step of problems with non-negative variables.

use faer::Mat;

use crate::dense;

/// Slopes below this share of the gradient are rounding errors.
const ROUNDING: f64 = 1e-9;
/// Maximum number of block exchanges before falling back to the active-set walk.
const EXCHANGES: usize = 30;
/// Number of successive exchanges that may fail to decrease the number of conflicts.
const PATIENCE: usize = 3;

/// Returns the step `d` that minimises `gᵀd + ½dᵀHd` with `x + d ≥ 0`.
pub(crate) fn bounded(hessian: &Mat<f64>, gradient: &[f64], x: &[f64]) -> Vec<f64> {
    exchange(hessian, gradient, x).unwrap_or_else(|| walk(hessian, gradient, x))
}

/// Block principal pivoting (Júdice & Pires 1994): all free variables below zero become fixed, and all fixed variables
/// with a negative slope become free, until there are none. This takes a handful of linear solves, the walk one per
/// variable. Returns `None` if the exchanges do not end or a matrix is not positive definite.
fn exchange(hessian: &Mat<f64>, gradient: &[f64], x: &[f64]) -> Option<Vec<f64>> {
    let n = x.len();
    let mut fixed = vec![false; n];
    let (mut least, mut patience) = (n + 1, PATIENCE);
    for _ in 0..EXCHANGES {
        let free: Vec<usize> = (0..n).filter(|&i| !fixed[i]).collect();
        let mut d: Vec<f64> = (0..n).map(|i| if fixed[i] { -x[i] } else { 0.0 }).collect();
        let go = newton(hessian, &slopes(hessian, gradient, &d), &free)?;
        free.iter().zip(go).for_each(|(&i, go)| d[i] = go);
        let slopes = slopes(hessian, gradient, &d);
        let wrong =
            |i: &usize| if fixed[*i] { slopes[*i] < -ROUNDING * gradient[*i].abs() } else { x[*i] + d[*i] < 0.0 };
        let conflicts: Vec<usize> = (0..n).filter(wrong).collect();
        if conflicts.is_empty() {
            return Some(d);
        }
        patience = if conflicts.len() < least { PATIENCE } else { patience.checked_sub(1)? };
        least = least.min(conflicts.len());
        conflicts.iter().for_each(|&i| fixed[i] = !fixed[i]);
    }
    None
}

/// `g + Hd`
fn slopes(hessian: &Mat<f64>, gradient: &[f64], d: &[f64]) -> Vec<f64> {
    (0..d.len()).map(|i| gradient[i] + dense::dot(hessian.col_as_slice(i), d)).collect()
}

/// An active-set walk from `d = 0` that decreases the quadratic at every step, fixing variables as they reach zero and
/// freeing them when their slope becomes negative.
fn walk(hessian: &Mat<f64>, gradient: &[f64], x: &[f64]) -> Vec<f64> {
    let n = x.len();
    let mut d = vec![0.0; n];
    let mut free: Vec<usize> = (0..n).collect();
    for _ in 0..4 * n {
        let Some(go) = newton(hessian, &slopes(hessian, gradient, &d), &free) else { return d };
        // The first free variable that reaches zero on the way, and the step length at which it does.
        let reach = |at: &usize| (x[free[*at]] + d[free[*at]]) / -go[*at];
        let hits = (0..free.len()).filter(|&at| x[free[at]] + d[free[at]] + go[at] < 0.0);
        let first = hits.min_by(|a, b| reach(a).total_cmp(&reach(b)));
        let t = first.as_ref().map_or(1.0, reach);
        free.iter().zip(&go).for_each(|(&i, go)| d[i] += t * go);
        if let Some(at) = first {
            let out = free.remove(at);
            d[out] = -x[out];
            continue;
        }
        let slopes = slopes(hessian, gradient, &d);
        let fixed = (0..n).filter(|i| !free.contains(i) && slopes[*i] < -ROUNDING * gradient[*i].abs());
        match fixed.min_by(|&i, &j| slopes[i].total_cmp(&slopes[j])) {
            Some(back) => free.push(back),
            None => return d,
        }
    }
    d
}

/// Computes `−H⁻¹g` over the variables `free`.
fn newton(hessian: &Mat<f64>, gradient: &[f64], free: &[usize]) -> Option<Vec<f64>> {
    let h = Mat::from_fn(free.len(), free.len(), |i, j| hessian[(free[i], free[j])]);
    let mut right = Mat::from_fn(free.len(), 1, |i, _| -gradient[free[i]]);
    let l = dense::cholesky(h.as_ref())?;
    dense::solve_lower(l.as_ref(), right.as_mut());
    dense::solve_lower_transposed(l.as_ref(), right.as_mut());
    Some((0..free.len()).map(|i| right[(i, 0)]).collect())
}

#[cfg(test)]
mod tests {
    use faer::Scale;

    use super::*;
    use crate::random::{Random, Stream};

    #[test]
    fn the_step_satisfies_the_conditions_of_optimality() {
        let n = 7;
        let hessian = Mat::from_fn(n, n, |i, j| if i == j { 2.0 } else { 0.9_f64.powi((i as i32 - j as i32).abs()) });
        for shift in 0..20 {
            let gradient: Vec<f64> = (0..n).map(|i| ((i + shift) as f64 * 1.7).sin()).collect();
            let x: Vec<f64> = (0..n).map(|i| if (i + shift) % 3 == 0 { 0.0 } else { 0.3 }).collect();
            let d = bounded(&hessian, &gradient, &x);
            for i in 0..n {
                let slope = gradient[i] + (0..n).map(|j| hessian[(i, j)] * d[j]).sum::<f64>();
                let free = x[i] + d[i] > 1e-12;
                assert!(x[i] + d[i] >= -1e-12, "{shift} {i}");
                assert!(if free { slope.abs() < 1e-9 } else { slope > -1e-9 }, "{shift} {i}: {slope}");
            }
        }
    }

    /// The first variable reaches zero on the way to the free minimum, and becomes free again when the second is fixed.
    #[test]
    fn a_fixed_variable_becomes_free_again() {
        let hessian = Mat::from_fn(2, 2, |i, j| if i == j { 1.0 } else { 0.9 });
        let (gradient, x) = ([-0.05, -2.0], [0.01, -0.0]);
        let d = bounded(&hessian, &gradient, &x);
        let slope = |i: usize| gradient[i] + (0..2).map(|j| hessian[(i, j)] * d[j]).sum::<f64>();
        assert!(x[0] + d[0] >= 0.0 && (x[0] + d[0]) * slope(0).abs() < 1e-12 && slope(0) > -1e-12, "{d:?}");
        let many = Mat::from_fn(6, 6, |i, j| 1.0 / (1.0 + i as f64 + j as f64) + if i == j { 1e-3 } else { 0.0 });
        for shift in 0..50 {
            let gradient: Vec<f64> = (0..6).map(|i| ((7 * i + 3 * shift) as f64).sin()).collect();
            let x: Vec<f64> = (0..6).map(|i| 0.5 + 0.5 * ((i + shift) as f64).cos()).collect();
            let d = bounded(&many, &gradient, &x);
            for i in 0..6 {
                let slope = gradient[i] + (0..6).map(|j| many[(i, j)] * d[j]).sum::<f64>();
                let free = x[i] + d[i] > 1e-9;
                assert!(if free { slope.abs() < 1e-7 } else { slope > -1e-7 }, "{shift} {i}: {slope}");
            }
        }
    }

    #[test]
    fn exchanges_end_where_the_walk_does() {
        let mut random = Random::new(3, Stream::Tests);
        let mut ended = 0;
        for n in [1, 2, 5, 20, 60] {
            for _ in 0..20 {
                let r = Mat::from_fn(n + 2, n, |_, _| random.normal());
                let hessian = r.transpose() * &r + Mat::<f64>::identity(n, n) * Scale(0.1);
                let gradient: Vec<f64> = (0..n).map(|_| random.normal()).collect();
                let x: Vec<f64> = (0..n).map(|_| random.normal().max(0.0)).collect();
                let walked = walk(&hessian, &gradient, &x);
                if let Some(d) = exchange(&hessian, &gradient, &x) {
                    ended += 1;
                    assert!(d.iter().zip(&walked).all(|(a, b)| (a - b).abs() < 1e-9), "{n}: {d:?} {walked:?}");
                }
            }
        }
        assert!(ended > 90, "{ended}");
    }
}
