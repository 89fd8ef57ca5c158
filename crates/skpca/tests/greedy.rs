//! Greedy expansion vectors: each pick and each exchange gains what it says, and few points hold much.

use faer::Mat;
use skpca::{Fit, Model, Points, Scaling, Spec, Target, toys};

const Q: usize = 4;

fn fit(points: &Points, method: &str, m: usize) -> Model {
    let (method, target) = (method.parse().unwrap(), Some(Target::Support(m)));
    Fit { method, components: Some(Q), target, scaling: Scaling::None, ..Fit::default() }
        .run(points, None, &())
        .unwrap()
}

/// `trace` counts all that a span captures, `top` what its best q components do.
#[test]
fn each_pick_is_the_best_there_is_and_exchanges_only_help() {
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
            // No other row beside the earlier ones captures more.
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
        // And none is left that does.
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

/// What the best `q` components in the span of points capture: the largest eigenvalues of `L⁻¹ C L⁻ᵀ`.
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
fn it_holds_more_than_half_as_many_points_again_drawn_at_random() {
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
fn what_q_components_need_is_held_better_by_their_own_gain() {
    let points = toys::normal(600, 4, 1);
    let [leading, trace] = ["greedy", "greedy,gain=trace"].map(|method| fit(&points, method, 25).parts().fidelity);
    assert!(leading > trace, "{leading} {trace}");
}

/// Sixteen hundred rows have a factor of rank 500, which holds less than all of them.
#[test]
fn a_fidelity_is_held_on_the_data_not_on_the_factor_alone() {
    let points = toys::normal(1600, 8, 0);
    for fidelity in [0.8, 0.9] {
        let target = Some(Target::Fidelity(fidelity));
        let fit = Fit { method: "greedy,rank=100".parse().unwrap(), components: Some(Q), target, ..Fit::default() };
        let model = fit.run(&points, None, &()).unwrap();
        assert!(model.parts().fidelity >= fidelity, "{fidelity}: {} with {}", model.parts().fidelity, model.m());
    }
}
