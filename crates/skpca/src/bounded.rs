//! A quadratic over a box open above: the Newton step of problems whose variables must not fall below zero.

use faer::Mat;

use crate::dense;

/// The step `d` that minimises `gᵀd + ½dᵀHd` with `x + d ≥ 0`: an active-set walk from `d = 0` that lowers the quadratic at
/// every step, leaving out variables as they reach zero and taking them back when they pull.
pub(crate) fn bounded(hessian: &Mat<f64>, gradient: &[f64], x: &[f64]) -> Vec<f64> {
    let n = x.len();
    let mut d = vec![0.0; n];
    let mut free: Vec<usize> = (0..n).collect();
    let slopes = |d: &[f64]| -> Vec<f64> {
        let dot = |i: usize| hessian.col_as_slice(i).iter().zip(d).map(|(h, d)| h * d).sum::<f64>();
        (0..n).map(|i| gradient[i] + dot(i)).collect()
    };
    for _ in 0..4 * n {
        let Some(go) = newton(hessian, &slopes(&d), &free) else { return d };
        // The first free variable that reaches zero on the way, and where.
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
        let slopes = slopes(&d);
        let fixed = (0..n).filter(|i| !free.contains(i) && slopes[*i] < -1e-9 * gradient[*i].abs());
        match fixed.min_by(|&i, &j| slopes[i].total_cmp(&slopes[j])) {
            Some(back) => free.push(back),
            None => return d,
        }
    }
    d
}

/// `−H⁻¹g` over the variables `free`.
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
    use super::*;

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
}
