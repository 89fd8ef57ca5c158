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

/// All that the span of a model's points captures.
fn trace(model: &Model, points: &Points) -> f64 {
    captured(points, &model.parts().support)
}

#[test]
fn each_pick_is_the_best_there_is_and_exchanges_only_help() {
    let points = toys::clusters(2);
    let all = |m: usize| trace(&fit(&points, "greedy,gain=trace,exchanges=0", m), &points);
    let mut last: Vec<usize> = Vec::new();
    for m in 1..=5 {
        let model = fit(&points, "greedy,gain=trace,exchanges=0", m);
        let rows = model.parts().rows.clone().unwrap();
        assert!(last.iter().all(|row| rows.contains(row)), "{m}: {last:?} stay in {rows:?}");
        // No other row beside the earlier ones captures more.
        for other in (0..points.n()).filter(|row| !last.contains(row)) {
            let mut tried = last.clone();
            tried.push(other);
            tried.sort_unstable();
            let support = points.select(&tried);
            assert!(captured(&points, &support) <= all(m) * (1.0 + 1e-9), "{m}: {other}");
        }
        last = rows;
        let exchanged = trace(&fit(&points, "greedy,gain=trace", m), &points);
        assert!(exchanged >= all(m) * (1.0 - 1e-9), "{m}: {exchanged} {}", all(m));
    }
    // Five points: at least one exchange pays here, and none is left that does.
    let model = fit(&points, "greedy,gain=trace", 5);
    assert!(model.parts().report.converged && trace(&model, &points) > all(5) * (1.0 + 1e-6));
    let rows = model.parts().rows.clone().unwrap();
    for at in 0..5 {
        for other in (0..points.n()).filter(|row| !rows.contains(row)) {
            let mut tried = rows.clone();
            tried[at] = other;
            tried.sort_unstable();
            assert!(captured(&points, &points.select(&tried)) <= trace(&model, &points) * (1.0 + 1e-5), "{at} {other}");
        }
    }
}

/// All that the span of points captures: `tr K_zz⁻¹ C`.
fn captured(points: &Points, support: &Points<'static>) -> f64 {
    let kernel = skpca::kernel::build(&Spec::new("rbf"), points, 0).unwrap();
    let (n, m) = (points.n(), support.n());
    let k = Mat::from_fn(n, m, |i, j| kernel.eval(points.row(i), support.row(j)));
    let means: Vec<f64> = (0..m).map(|j| (0..n).map(|i| k[(i, j)]).sum::<f64>() / n as f64).collect();
    let centred = Mat::from_fn(n, m, |i, j| k[(i, j)] - means[j]);
    let c = centred.transpose() * &centred;
    let zz = Mat::from_fn(m, m, |i, j| kernel.eval(support.row(i), support.row(j)));
    let solved = faer::linalg::solvers::Solve::solve(&zz.llt(faer::Side::Lower).unwrap(), &c);
    (0..m).map(|i| solved[(i, i)]).sum()
}

#[test]
fn it_holds_more_than_half_as_many_points_again_drawn_at_random() {
    for points in [toys::parabola(0), toys::normal(600, 4, 0)] {
        for m in [6, 10] {
            let greedy = fit(&points, "greedy", m);
            let seeds = (0..3).map(|seed| {
                let target = Some(Target::Support(3 * m / 2));
                let fit = Fit { components: Some(Q), target, scaling: Scaling::None, seed, ..Fit::default() };
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
