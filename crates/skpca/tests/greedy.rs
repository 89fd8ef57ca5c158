//! Greedy expansion vectors: each pick and each exchange is the best one, and few points capture most of the variance.

use faer::Mat;
use skpca::{Fit, Model, Points, Scaling, Spec, Target, toys};

const Q: usize = 4;

fn fit(points: &Points, method: &str, m: usize) -> Model {
    let (method, target) = (method.parse().unwrap(), Some(Target::Support(m)));
    Fit { method, components: Some(Q), target, scaling: Scaling::None, ..Fit::default() }
        .run(points, None, &())
        .unwrap()
}

/// `trace` counts the variance in the whole span, `top` that of its best q components.
#[test]
fn each_pick_is_the_best_one_and_exchanges_only_improve() {
    let points = toys::clusters(2);
    for (gain, counted) in [("trace", usize::MAX), ("top", Q)] {
        let captured = |rows: &[usize]| captured(&points, &points.select(rows), counted);
        let chosen = |exchanges: &str, m: usize| {
            let model = fit(&points, &format!("greedy,gain={gain}{exchanges}"), m);
            (model.parts().rows.clone().unwrap(), model.parts().report.converged)
        };
        let mut last: Vec<usize> = Vec::new();
        let mut paid = false;
        for m in 1..=6 {
            let (rows, _) = chosen(",exchanges=0", m);
            assert!(last.iter().all(|row| rows.contains(row)), "{gain} {m}: {last:?} stay in {rows:?}");
            // No other row captures more together with the earlier ones.
            for other in (0..points.n()).filter(|row| !last.contains(row)) {
                let tried = [&last[..], &[other]].concat();
                assert!(captured(&tried) <= captured(&rows) * (1.0 + 1e-9), "{gain} {m}: {other}");
            }
            let (exchanged, converged) = chosen("", m);
            assert!(converged && captured(&exchanged) >= captured(&rows) * (1.0 - 1e-9), "{gain} {m}");
            paid |= captured(&exchanged) > captured(&rows) * (1.0 + 1e-6);
            last = rows;
        }
        assert!(paid, "{gain}: at least one exchange pays here");
        // No improving exchange is left.
        let (rows, _) = chosen("", 6);
        for at in 0..6 {
            for other in (0..points.n()).filter(|row| !rows.contains(row)) {
                let mut tried = rows.clone();
                tried[at] = other;
                assert!(captured(&tried) <= captured(&rows) * (1.0 + 1e-5), "{gain} {at} {other}");
            }
        }
    }
}

/// Returns the variance that the best `q` components in the span of points capture: the largest eigenvalues of
/// `L⁻¹ C L⁻ᵀ`.
fn captured(points: &Points, support: &Points<'static>, q: usize) -> f64 {
    let kernel = skpca::kernel::build(&Spec::new("rbf"), points, 0).unwrap();
    let (n, m) = (points.n(), support.n());
    let k = Mat::from_fn(n, m, |i, j| kernel.eval(points.row(i), support.row(j)));
    let means: Vec<f64> = (0..m).map(|j| (0..n).map(|i| k[(i, j)]).sum::<f64>() / n as f64).collect();
    let centred = Mat::from_fn(n, m, |i, j| k[(i, j)] - means[j]);
    let zz = Mat::from_fn(m, m, |i, j| kernel.eval(support.row(i), support.row(j)));
    let Ok(llt) = zz.llt(faer::Side::Lower) else { return 0.0 };
    let mut y = centred.transpose().to_owned();
    faer::linalg::triangular_solve::solve_lower_triangular_in_place(llt.L(), y.as_mut(), faer::Par::Seq);
    let values = (&y * y.transpose()).self_adjoint_eigenvalues(faer::Side::Lower).unwrap();
    values.iter().rev().take(q).sum()
}

#[test]
fn greedy_points_capture_more_than_one_and_a_half_times_as_many_random_ones() {
    for points in [toys::parabola(0), toys::normal(600, 4, 0)] {
        for m in [6, 10] {
            let greedy = fit(&points, "greedy", m);
            let seeds = (0..3).map(|seed| {
                let target = Some(Target::Support(3 * m / 2));
                let method = Spec::new("landmarks");
                let fit = Fit { method, components: Some(Q), target, scaling: Scaling::None, seed, ..Fit::default() };
                fit.run(&points, None, &()).unwrap().parts().fidelity
            });
            let drawn = seeds.sum::<f64>() / 3.0;
            assert!(greedy.parts().fidelity > drawn, "{m}: {} {drawn}", greedy.parts().fidelity);
        }
    }
}

#[test]
fn the_leading_gain_captures_more_with_q_components_than_the_trace_gain() {
    let points = toys::normal(600, 4, 1);
    let [leading, trace] = ["greedy", "greedy,gain=trace"].map(|method| fit(&points, method, 25).parts().fidelity);
    assert!(leading > trace, "{leading} {trace}");
}

/// The default factor of 1600 rows has rank 500 and does not represent them completely.
#[test]
fn a_target_fidelity_holds_on_the_data_not_only_on_the_factor() {
    let points = toys::normal(1600, 8, 0);
    for fidelity in [0.8, 0.9] {
        let target = Some(Target::Fidelity(fidelity));
        let fit = Fit { method: "greedy,rank=100".parse().unwrap(), components: Some(Q), target, ..Fit::default() };
        let model = fit.run(&points, None, &()).unwrap();
        assert!(model.parts().fidelity >= fidelity, "{fidelity}: {} with {}", model.parts().fidelity, model.m());
    }
}
