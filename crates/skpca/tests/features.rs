//! `skfa`, `akfa`, `pursuit` and `reduced-set` against their papers' iterations on the whole kernel matrix.

use faer::Mat;
use faer::linalg::solvers::Solve;
use skpca::{Fit, Scaling, Spec, Target, kernel, toys};

const Q: usize = 2;

/// Returns the rows of three clusters that a method keeps, with uncentred features as in the papers.
fn kept(method: &str, m: usize) -> Vec<usize> {
    let fit = Fit {
        method: method.parse().unwrap(),
        kernel: Spec::new("rbf").with("gamma", 2.0),
        components: Some(Q),
        target: Some(Target::Support(m)),
        center: Some(false),
        scaling: Scaling::None,
        ..Fit::default()
    };
    fit.run(&toys::clusters(2), None, &()).unwrap().parts().rows.clone().unwrap()
}

fn matrix() -> Mat<f64> {
    let points = toys::clusters(2);
    let kernel = kernel::build(&Spec::new("rbf").with("gamma", 2.0), &points, 0).unwrap();
    Mat::from_fn(points.n(), points.n(), |i, j| kernel.eval(points.row(i), points.row(j)))
}

/// Chooses rows with `K ← K − K_i K_iᵀ / k_ii` after each choice, as printed.
fn by_deflation(m: usize, score: impl Fn(&Mat<f64>, usize) -> f64) -> Vec<usize> {
    let mut k = matrix();
    let n = k.nrows();
    let mut chosen: Vec<usize> = Vec::new();
    for _ in 0..m {
        let open = (0..n).filter(|i| !chosen.contains(i));
        let best = open.max_by(|&i, &j| score(&k, i).total_cmp(&score(&k, j))).unwrap();
        let column: Vec<f64> = (0..n).map(|i| k[(i, best)]).collect();
        for j in 0..n {
            (0..n).for_each(|i| k[(i, j)] -= column[i] * column[j] / column[best]);
        }
        chosen.push(best);
    }
    chosen.sort_unstable();
    chosen
}

#[test]
fn rows_equal_those_of_the_papers_iterations() {
    let power = |k: &Mat<f64>, i: usize| (0..k.nrows()).map(|j| k[(i, j)] * k[(i, j)]).sum::<f64>();
    for m in 1..=8 {
        assert_eq!(kept("skfa", m), by_deflation(m, power), "skfa {m}");
        let quotient = by_deflation(m, |k, i| power(k, i) / k[(i, i)]);
        assert_eq!(kept("akfa", m), quotient, "akfa {m}");
        assert_eq!(kept("pursuit,candidates=0", m), quotient, "pursuit {m}");
        assert_eq!(kept("greedy,gain=trace,exchanges=0", m), quotient, "greedy {m}");
    }
    assert!((1..=8).any(|m| kept("skfa", m) != kept("akfa", m)), "the scores differ");
    assert!((1..=8).any(|m| kept("pursuit", m) != kept("akfa", m)), "59 of 90 rows are not all");
}

/// Returns `Σ_k λ_k ‖v_k − P_S v_k‖²`, v = Σ u_i φ(x_i) / √λ, from the eigenvectors u of K.
fn lost(k: &Mat<f64>, u: &[(f64, Vec<f64>)], set: &[usize]) -> f64 {
    let inner = Mat::from_fn(set.len(), set.len(), |i, j| k[(set[i], set[j])]);
    let each = |(value, u): &(f64, Vec<f64>)| {
        // k_S(v) = K_S u / √λ = √λ u_S
        let along = Mat::from_fn(set.len(), 1, |i, _| value.sqrt() * u[set[i]]);
        let solved = inner.partial_piv_lu().solve(&along);
        value * (1.0 - (along.transpose() * solved)[(0, 0)])
    };
    u.iter().map(each).sum()
}

#[test]
fn elimination_drops_the_point_that_costs_least() {
    let k = matrix();
    let pairs = k.self_adjoint_eigen(faer::Side::Lower).unwrap();
    let n = k.nrows();
    let leading =
        |c: usize| (pairs.S().column_vector()[n - 1 - c], (0..n).map(|i| pairs.U()[(i, n - 1 - c)]).collect());
    let u: Vec<(f64, Vec<f64>)> = (0..Q).map(leading).collect();
    for m in [9, 6, 3] {
        let larger = kept("reduced-set", m + 1);
        let smaller = kept("reduced-set", m);
        let without = |i: usize| larger.iter().copied().filter(|&j| j != larger[i]).collect::<Vec<_>>();
        let best = (0..=m).map(without).min_by(|a, b| lost(&k, &u, a).total_cmp(&lost(&k, &u, b))).unwrap();
        assert_eq!(smaller, best, "{m}");
    }
}

#[test]
fn a_reduced_set_by_penalty_has_the_requested_size_or_slightly_less() {
    for m in [4, 8, 15] {
        let found = kept("reduced-set,by=penalty", m).len();
        assert!(found <= m && found + 3 >= m, "{m}: {found}");
    }
}

#[test]
fn robust_components_without_epsilon_and_clip_need_every_row() {
    let fit = |epsilon: f64| Fit {
        method: Spec::new("robust").with("epsilon", epsilon).with("clip", 1e9),
        components: Some(Q),
        ..Fit::default()
    };
    let points = toys::clusters(2);
    let all = fit(0.0).run(&points, None, &()).unwrap();
    assert_eq!(all.parts().report.chosen, 90);
    let some = fit(1.0).run(&points, None, &()).unwrap();
    assert!(some.parts().report.chosen < 90 && some.parts().report.converged, "{:?}", some.parts().report);
}

/// The iteration of Alzate & Suykens on the whole centred kernel matrix: `α_j ∝ L'(e_j)`, `e = K α`, orthogonal to the
/// previous components.
fn robust_iteration(k: &Mat<f64>, q: usize, epsilon: f64, clip: f64) -> (Vec<usize>, f64) {
    let n = k.nrows();
    let mean: Vec<f64> = (0..n).map(|j| (0..n).map(|i| k[(i, j)]).sum::<f64>() / n as f64).collect();
    let all = mean.iter().sum::<f64>() / n as f64;
    let centred = Mat::from_fn(n, n, |i, j| k[(i, j)] - mean[i] - mean[j] + all);
    let pairs = centred.self_adjoint_eigen(faer::Side::Lower).unwrap();
    let inner = |a: &Mat<f64>, b: &Mat<f64>| (a.transpose() * &centred * b)[(0, 0)];
    let (mut found, mut taking, mut objective): (Vec<Mat<f64>>, _, _) = (Vec::new(), vec![false; n], 0.0);
    for c in 0..q {
        let scale = (pairs.S().column_vector()[n - 1 - c] / n as f64).sqrt();
        let pull = |e: f64| (e.abs() - epsilon * scale).clamp(0.0, clip * scale) * e.signum();
        let mut alpha = Mat::from_fn(n, 1, |i, _| pairs.U()[(i, n - 1 - c)]);
        let normal = |mut alpha: Mat<f64>| {
            for before in &found {
                let along = inner(before, &alpha);
                alpha -= before * along;
            }
            let length = inner(&alpha, &alpha).sqrt();
            alpha * (1.0 / length)
        };
        alpha = normal(alpha);
        for _ in 0..400 {
            let e = &centred * &alpha;
            alpha = normal(Mat::from_fn(n, 1, |i, _| pull(e[(i, 0)])));
        }
        let e = &centred * &alpha;
        for i in 0..n {
            let beyond = (e[(i, 0)].abs() - epsilon * scale).max(0.0);
            let near = beyond.min(clip * scale);
            taking[i] |= beyond > 0.0;
            objective += 0.5 * near * near + clip * scale * (beyond - near);
        }
        found.push(alpha);
    }
    ((0..n).filter(|&i| taking[i]).collect(), objective / n as f64)
}

#[test]
fn robust_components_equal_those_of_the_papers_iteration() {
    let points = toys::clusters(2);
    let mut sizes = Vec::new();
    for (epsilon, clip) in [(0.5, 1.0), (1.0, 1.0), (1.0, 0.2), (1.2, 1e9)] {
        let fit = Fit {
            method: Spec::new("robust").with("epsilon", epsilon).with("clip", clip),
            kernel: Spec::new("rbf").with("gamma", 2.0),
            components: Some(Q),
            scaling: Scaling::None,
            ..Fit::default()
        };
        let model = fit.run(&points, None, &()).unwrap();
        let (rows, objective) = robust_iteration(&matrix(), Q, epsilon, clip);
        // Rows that depend on others have coefficients in the paper's iteration but are not needed.
        assert_eq!(model.parts().report.chosen, rows.len(), "{epsilon} {clip}");
        assert!(model.parts().rows.as_ref().unwrap().iter().all(|row| rows.contains(row)), "{epsilon} {clip}");
        let found = model.parts().report.objective.unwrap();
        assert!((found / objective - 1.0).abs() < 1e-6, "{epsilon} {clip}: {found} {objective}");
        sizes.push(rows.len());
    }
    assert!(sizes.iter().any(|size| *size < 90), "{sizes:?}");
}

/// Minimises `½ ‖W − Σ c_i φ(x_i)‖² + μ Σ ‖c_i‖`, W = √λ v, by accelerated proximal gradient, and returns the rows with
/// non-zero coefficients.
fn group_lasso(k: &Mat<f64>, products: &Mat<f64>, penalty: f64) -> Vec<usize> {
    let (n, q) = (products.nrows(), products.ncols());
    let step = 1.0 / k.self_adjoint_eigenvalues(faer::Side::Lower).unwrap().last().unwrap();
    let (mut c, mut ahead, mut t) = (Mat::<f64>::zeros(n, q), Mat::<f64>::zeros(n, q), 1.0_f64);
    for _ in 0..3000 {
        let moved = &ahead - (k * &ahead - products) * step;
        let shrink = |i: usize| (1.0 - step * penalty / moved.row(i).norm_l2()).max(0.0);
        let next = Mat::from_fn(n, q, |i, j| moved[(i, j)] * shrink(i));
        let after = 0.5 * (1.0 + (1.0 + 4.0 * t * t).sqrt());
        ahead = &next + (&next - &c) * ((t - 1.0) / after);
        (c, t) = (next, after);
    }
    (0..n).filter(|&i| c.row(i).norm_max() > 0.0).collect()
}

#[test]
fn a_reduced_set_by_penalty_is_the_solution_of_a_group_lasso() {
    let (points, gamma) = (toys::clusters(2), 50.0);
    let spec = Spec::new("rbf").with("gamma", gamma);
    let kernel = kernel::build(&spec, &points, 0).unwrap();
    let n = points.n();
    let k = Mat::from_fn(n, n, |i, j| kernel.eval(points.row(i), points.row(j)));
    let pairs = k.self_adjoint_eigen(faer::Side::Lower).unwrap();
    // k(x_i, √λ v) = λ u_i
    let products = Mat::from_fn(n, Q, |i, c| pairs.S().column_vector()[n - 1 - c] * pairs.U()[(i, n - 1 - c)]);
    for m in [5, 10, 20] {
        let fit = Fit {
            method: "reduced-set,by=penalty".parse().unwrap(),
            kernel: spec.clone(),
            components: Some(Q),
            target: Some(Target::Support(m)),
            center: Some(false),
            scaling: Scaling::None,
            ..Fit::default()
        };
        let found = fit.run(&points, None, &()).unwrap().parts().rows.clone().unwrap();
        let (mut low, mut high) = (0.0, (0..n).map(|i| products.row(i).norm_l2()).fold(0.0, f64::max));
        let mut rows = Vec::new();
        for _ in 0..30 {
            let penalty = 0.5 * (low + high);
            rows = group_lasso(&k, &products, penalty);
            match rows.len().cmp(&found.len()) {
                std::cmp::Ordering::Equal => break,
                std::cmp::Ordering::Less => high = penalty,
                std::cmp::Ordering::Greater => low = penalty,
            }
        }
        assert_eq!(found, rows, "{m}");
    }
}
