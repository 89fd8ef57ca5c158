//! `expansion`: where the optimised points end, on which rows, and what a search for a fidelity returns.

use faer::Mat;
use skpca::{Fit, Model, Points, Scaling, Target, toys};

fn fit_of(method: &str, kernel: &str, q: usize, target: Target) -> Fit {
    Fit {
        method: method.parse().unwrap(),
        kernel: kernel.parse().unwrap(),
        components: Some(q),
        target: Some(target),
        scaling: Scaling::None,
        ..Fit::default()
    }
}

fn fit(points: &Points, method: &str, kernel: &str, q: usize, target: Target) -> Model {
    fit_of(method, kernel, q, target).run(points, None, &()).unwrap()
}

/// Returns the sum of the q largest eigenvalues of C b = λ K_zz b over all rows.
fn captured(points: &Points, model: &Model) -> f64 {
    let (support, kernel) = (&model.parts().support, model.kernel());
    let (n, m) = (points.n(), support.n());
    let k = Mat::from_fn(m, n, |i, j| kernel.eval(support.row(i), points.row(j)));
    let means: Vec<f64> = (0..m).map(|i| k.row(i).iter().sum::<f64>() / n as f64).collect();
    let mut y = Mat::from_fn(m, n, |i, j| k[(i, j)] - means[i]);
    let zz = Mat::from_fn(m, m, |i, j| kernel.eval(support.row(i), support.row(j)));
    let llt = zz.llt(faer::Side::Lower).unwrap();
    faer::linalg::triangular_solve::solve_lower_triangular_in_place(llt.L(), y.as_mut(), faer::Par::Seq);
    let values = (&y * y.transpose()).self_adjoint_eigenvalues(faer::Side::Lower).unwrap();
    values.iter().rev().take(model.q()).sum()
}

#[test]
fn components_are_those_of_all_rows_even_if_points_were_optimised_on_few() {
    let points = toys::normal(4600, 3, 4);
    for method in ["expansion", "expansion,rows=100", "expansion,rows=5000"] {
        let model = fit(&points, method, "rbf,gamma=0.1", 4, Target::Support(8));
        assert!((model.captured() / captured(&points, &model) - 1.0).abs() < 1e-8, "{method}");
        let seen = model.parts().report.notes.iter().any(|note| note.starts_with("points were moved on"));
        assert_eq!(seen, method != "expansion,rows=5000", "{method}");
    }
    let with = |rows: usize| {
        fit(&points, &format!("expansion,rows={rows}"), "rbf,gamma=0.1", 4, Target::Support(8)).captured()
    };
    assert!(with(100) < with(2000) && with(2000) != with(4500));
}

#[test]
fn optimised_points_never_capture_less_than_the_initial_ones() {
    for (points, kernel) in
        [(toys::normal(4600, 5, 4), "rbf"), (toys::parabola(0), "rbf"), (toys::clusters(0), "laplacian")]
    {
        let [start, end] = ["expansion,steps=0", "expansion"]
            .map(|method| fit(&points, method, kernel, 4, Target::Support(12)).captured());
        assert!(end >= start, "{kernel}: {end} {start}");
    }
}

#[test]
fn the_default_number_of_steps_suffices() {
    let points = toys::parabola(0);
    let model = fit(&points, "expansion", "rbf", 4, Target::Support(6));
    let report = &model.parts().report;
    assert!(report.converged && (5..150).contains(&report.rounds), "{report:?}");
    assert!((report.objective.unwrap() * 500.0 / model.captured() - 1.0).abs() < 1e-12);
    let fits =
        (0..4).map(|seed| Fit { seed, ..fit_of("expansion,restarts=3,steps=1000", "rbf", 4, Target::Support(6)) });
    let best = fits.map(|fit| fit.run(&points, None, &()).unwrap().captured()).fold(0.0, f64::max);
    assert!(model.captured() > (1.0 - 3e-4) * best, "{} {best}", model.captured());
}

/// Restarts rarely improve on the path: it takes a few tables and sizes to see it.
#[test]
fn restarts_never_hurt_and_sometimes_help() {
    let captured = |points: &Points, m: usize, restarts: usize| {
        let method = format!("expansion,restarts={restarts}");
        fit(points, &method, "rbf", m.min(4), Target::Support(m)).captured()
    };
    let tables = [toys::parabola(0), toys::clusters(0), toys::normal(300, 3, 1), toys::normal(200, 6, 2)];
    let both = tables.iter().flat_map(|points| [2, 3, 5, 7].map(|m| (captured(points, m, 0), captured(points, m, 6))));
    let pairs: Vec<(f64, f64)> = both.collect();
    assert!(pairs.iter().all(|(none, some)| some >= none), "{pairs:?}");
    assert!(pairs.iter().any(|(none, some)| *some > none * (1.0 + 1e-6)), "{pairs:?}");
}

#[test]
fn a_target_fidelity_is_reached_with_the_fewest_points() {
    for (points, q) in [(toys::parabola(0), 4), (toys::normal(400, 4, 0), 5)] {
        for method in ["expansion", "greedy"] {
            let model = fit(&points, method, "rbf", q, Target::Fidelity(0.97));
            assert!(model.parts().fidelity >= 0.97, "{method}");
            let fewer = fit(&points, method, "rbf", q, Target::Support(model.m() - 1));
            assert!(fewer.parts().fidelity < 0.97, "{method}: {} points hold {}", fewer.m(), fewer.parts().fidelity);
        }
    }
}

/// Each model of the path captures more than the previous one, and a separate fit with as many points hardly more.
#[test]
fn a_path_gives_the_fidelity_of_each_number_of_points() {
    let points = toys::normal(700, 5, 3);
    for (method, first) in [("expansion", 4), ("greedy", 1), ("greedy,gain=trace", 1)] {
        let fit_of = |target| Fit { target, ..fit_of(method, "rbf", 4, Target::Support(1)) };
        let path = fit_of(None).fidelities(&points, 14, &()).unwrap();
        assert!(path.iter().map(|(m, _)| *m).eq(first..=14), "{method}: {path:?}");
        assert!(path.windows(2).all(|pair| pair[0].1 < pair[1].1), "{method}: {path:?}");
        for (m, fidelity) in path.into_iter().filter(|(m, _)| [4, 9, 14].contains(m)) {
            let alone = fit_of(Some(Target::Support(m))).run(&points, None, &()).unwrap().parts().fidelity;
            assert!((alone - fidelity).abs() < 0.02, "{method} {m}: {alone} {fidelity}");
        }
    }
    let message = |fit: Fit| fit.fidelities(&points, 5, &()).unwrap_err().to_string();
    assert_eq!(
        message(Fit { target: None, ..fit_of("l21", "rbf", 4, Target::Support(1)) }),
        "method = l21: expected expansion or greedy: others have no such path"
    );
    assert_eq!(
        message(fit_of("greedy", "rbf", 4, Target::Support(9))),
        "support = 9: expected a target or a path, not both"
    );
}

/// The search uses W on some of the rows; the result must hold on all.
#[test]
fn a_target_fidelity_is_reached_on_all_rows() {
    let points = toys::normal(5000, 4, 5);
    for method in ["expansion", "expansion,rows=150", "greedy"] {
        for fidelity in [0.9, 0.97] {
            let model = fit(&points, method, "rbf", 4, Target::Fidelity(fidelity));
            let found = model.parts().fidelity;
            assert!(found >= fidelity && model.m() < 60, "{method} {fidelity}: {found} by {}", model.m());
        }
    }
}

/// The bits of a fit do not depend on threads, however points are moved and rows are chosen.
#[test]
fn points_are_the_same_on_any_number_of_threads() {
    let points = toys::normal(1300, 6, 2);
    for (method, kernel) in
        [("expansion", "rbf"), ("expansion", "laplacian"), ("greedy", "rbf"), ("expansion", "polynomial")]
    {
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| fit(&points, method, kernel, 4, Target::Fidelity(0.96)).parts().support.clone())
        };
        assert_eq!(on(1), on(3), "{method} {kernel}");
    }
}

/// With many columns, points first move in a low-dimensional plane; the model is that of the rows themselves.
#[test]
fn many_columns_do_not_require_more_points() {
    let (low, map) = (toys::normal(300, 5, 0), toys::normal(5, 600, 1));
    let value = |i: usize, k: usize| (0..5).map(|r| low.row(i)[r] * map.row(r)[k]).sum::<f64>();
    let wide = Points::new(600, (0..300).flat_map(|i| (0..600).map(move |k| value(i, k))).collect::<Vec<_>>()).unwrap();
    // The same rows in five columns, with the same distances.
    let gram = |a: usize, b: usize| (0..600).map(|k| map.row(a)[k] * map.row(b)[k]).sum::<f64>();
    let l = Mat::from_fn(5, 5, gram).llt(faer::Side::Lower).unwrap().L().to_owned();
    let narrow =
        (0..300).flat_map(|i| (0..5).map(|c| (0..5).map(|r| low.row(i)[r] * l[(r, c)]).sum()).collect::<Vec<f64>>());
    let narrow = Points::new(5, narrow.collect::<Vec<f64>>()).unwrap();
    for target in [Target::Support(8), Target::Fidelity(0.97), Target::Fidelity(1.0)] {
        let [a, b] = [&wide, &narrow].map(|points| fit(points, "expansion", "rbf", 4, target));
        assert!(target == Target::Fidelity(1.0) || a.m().abs_diff(b.m()) <= 1, "{target:?}: {} {}", a.m(), b.m());
        assert!((a.parts().fidelity - b.parts().fidelity).abs() < 0.01, "{target:?}");
    }
}

/// With unbounded kernels, points could diverge to where rounding errors capture most.
#[test]
fn points_never_capture_more_than_the_total_variance() {
    let waves = Points::new(1, (0..60).map(|i| (0.37 * f64::from(i)).sin()).collect::<Vec<_>>()).unwrap();
    for (points, kernel, q, m) in [
        (waves, "polynomial", 3, 3),
        (toys::normal(60, 1, 2), "polynomial,degree=5", 5, 5),
        (toys::normal(60, 1, 0), "polynomial,degree=5", 5, 5),
        (toys::normal(60, 2, 0), "polynomial,degree=3", 6, 9),
    ] {
        let exact =
            Fit { target: None, ..fit_of("exact", kernel, q, Target::Support(1)) }.run(&points, None, &()).unwrap();
        for method in ["expansion", "expansion,restarts=3", "greedy", "greedy,gain=top"] {
            for target in [Target::Support(m), Target::Fidelity(0.9999), Target::Fidelity(1.0)] {
                let model = fit(&points, method, kernel, q, target);
                let share = model.captured() / exact.captured();
                assert!(share <= 1.0 + 1e-6, "{kernel} {method} {target:?}: {share}");
            }
        }
    }
}

#[test]
fn the_unit_of_a_column_does_not_matter() {
    let points = toys::parabola(0);
    let captured = |scale: f64, other: f64| {
        let values: Vec<f64> = points.rows().flat_map(|row| [scale * row[0], other * row[1]]).collect();
        let fit = Fit { scaling: Scaling::Standard, ..fit_of("expansion", "rbf,gamma=0.5", 3, Target::Support(4)) };
        fit.run(&Points::new(2, values).unwrap(), None, &()).unwrap().captured()
    };
    assert!((captured(1e-6, 1e3) / captured(1.0, 1.0) - 1.0).abs() < 1e-6);
    // Without scaling, the bandwidth follows a common factor of all columns.
    let raw = |scale: f64| {
        let values: Vec<f64> = points.values().iter().map(|v| scale * v).collect();
        fit(&Points::new(2, values).unwrap(), "expansion", "rbf", 3, Target::Support(4)).captured()
    };
    for scale in [1e-100, 1e-9, 1e9, 1e100] {
        assert!((raw(scale) / raw(1.0) - 1.0).abs() < 1e-6, "{scale:e}");
    }
}

#[test]
fn a_constant_column_keeps_its_value() {
    let values: Vec<f64> = toys::parabola(1).rows().flat_map(|row| [row[0], 0.1, row[1]]).collect();
    let points = Points::new(3, values).unwrap();
    let model = fit(&points, "expansion,restarts=1", "polynomial,gamma=1", 3, Target::Support(5));
    assert!(model.parts().support.rows().all(|row| row[1] == 0.1));
}

/// Near full rank the gains of an exchange are rounding errors, and must not make the model worse.
#[test]
fn exchanges_near_full_rank_do_not_lose_fidelity() {
    for (points, kernel) in [
        (toys::normal(60, 1, 3), "rbf,gamma=0.1"),
        (toys::normal(60, 2, 2), "rbf"),
        (toys::normal(80, 3, 1), "rbf,gamma=0.01"),
    ] {
        for gain in ["leading", "trace", "top"] {
            let of = |exchanges: usize, target| {
                fit(&points, &format!("greedy,gain={gain},exchanges={exchanges}"), kernel, 3, target).parts().fidelity
            };
            let target = Target::Fidelity(1.0);
            assert!(of(10, target) > of(0, target) - 1e-6, "{kernel} {gain}: {} {}", of(10, target), of(0, target));
            for m in [10, 30, 60] {
                let target = Target::Support(m);
                assert!(
                    of(10, target) > of(0, target) - 1e-6,
                    "{kernel} {gain} {m}: {} {}",
                    of(10, target),
                    of(0, target)
                );
            }
        }
    }
}

#[test]
fn values_near_the_largest_number_do_not_stop_a_restart() {
    let values: Vec<f64> =
        (0..40).map(|i| if i % 3 == 0 { 1.6e308 } else { -1.6e308 + 1e306 * f64::from(i) }).collect();
    let points = Points::new(2, values).unwrap();
    // A model or an error, but no panic.
    let _ = fit_of("expansion,restarts=2", "laplacian,gamma=1e-308", 2, Target::Support(3)).run(&points, None, &());
}
