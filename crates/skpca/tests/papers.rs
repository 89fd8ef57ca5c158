//! The regression methods against the papers' own iterations, and properties of their results.

use crate::oracle::{self, Answer, Dual, Setting};
use faer::Mat;
use skpca::kernel;
use skpca::{Fit, Model, Parts, Points, Scaling, Spec, Target, toys};

const Q: usize = 4;

fn sets() -> [(&'static str, Points<'static>); 2] {
    let parabola = toys::parabola(0);
    let third: Vec<usize> = (0..parabola.n()).step_by(3).collect();
    [("clusters", toys::clusters(0)), ("parabola", parabola.select(&third))]
}

/// Returns the papers' setting for `points`.
fn setting(points: &Points) -> Setting {
    let kernel = kernel::build(&Spec::new("rbf"), points, 0).unwrap();
    let k = Mat::from_fn(points.n(), points.n(), |i, j| kernel.eval(points.row(i), points.row(j)));
    let mut setting = Setting::new(k.as_ref(), true, Q);
    // As printed, the rule that adapts ρ keeps Algorithm 2 from converging.
    setting.dual = Dual::Plain;
    setting
}

fn fit(points: &Points, method: &str, target: Option<Target>) -> Result<Model, skpca::Error> {
    let method = method.parse()?;
    Fit { method, components: Some(Q), target, scaling: Scaling::None, ..Fit::default() }.run(points, None, &())
}

fn objective(model: &Model) -> f64 {
    model.parts().report.objective.unwrap()
}

/// Returns the largest useful penalties at the initial P: on rows, and on entries.
fn largest(setting: &Setting) -> (f64, f64) {
    let c = setting.correlation(setting.start.as_ref());
    let rows = (0..c.nrows()).map(|i| c.row(i).norm_l2()).fold(0.0, f64::max);
    (rows, c.norm_max())
}

/// Asserts that our objective is never above the paper's, and that the paper's own iteration comes close to it, so that
/// both minimise the same objective.
fn compare(name: &str, method: &str, points: &Points, theirs: Answer, near: f64) {
    let model = fit(points, method, None).unwrap();
    let (ours, report) = (objective(&model), &model.parts().report);
    assert!(report.gap.unwrap() <= 1e-6 && report.converged, "{name} {method}: {report:?}");
    assert!(ours <= theirs.objective * (1.0 + 1e-9), "{name} {method}: {ours} against {}", theirs.objective);
    assert!(theirs.objective <= ours * (1.0 + near), "{name} {method}: {ours} against {}", theirs.objective);
}

#[test]
fn the_convex_step_agrees_with_admm() {
    for (name, points) in sets() {
        let setting = setting(&points);
        let (rows, entries) = largest(&setting);
        for share in [0.5, 0.1, 0.02] {
            let (ridge, mu, lambda1) = (0.1, share * rows, share * entries);
            let theirs = oracle::l21(&setting, ridge, mu, 1.0, 1, 5000, 1e-8);
            compare(name, &format!("l21,alternations=0,ridge={ridge},penalty={mu}"), &points, theirs, 1e-4);
            let theirs = oracle::l1(&setting, ridge, &[lambda1; Q], 1.0, 1, 5000, 1e-8);
            let together = oracle::l1_together(&setting, ridge, lambda1, 1.0, 5000, 1e-8);
            assert!(
                (together.objective / theirs.objective - 1.0).abs() < 1e-6,
                "{name} {share}: components do not meet"
            );
            let method = format!("l1,sequential=true,alternations=0,ridge={ridge},penalty={lambda1}");
            compare(name, &method, &points, theirs, 1e-4);
        }
    }
}

#[test]
fn objectives_after_alternations_are_at_most_those_of_the_papers() {
    for (name, points) in sets() {
        let setting = setting(&points);
        let (rows, entries) = largest(&setting);
        // If a component vanishes, Algorithm 1's P is not orthonormal, and its objective is meaningless.
        for share in [0.2, 0.05] {
            let (ridge, mu, lambda1) = (0.1, share * rows, share * entries);
            let theirs = oracle::l21(&setting, ridge, mu, 1.0, 10, 500, 1e-6);
            compare(name, &format!("l21,ridge={ridge},penalty={mu}"), &points, theirs, 0.01);
            let theirs = oracle::l1(&setting, ridge, &[lambda1; Q], 1.0, 10, 500, 1e-6);
            // Components are optimised one by one, so another solution may have a better sum by chance.
            let model = fit(&points, &format!("l1,sequential=true,ridge={ridge},penalty={lambda1}"), None).unwrap();
            assert!((objective(&model) / theirs.objective - 1.0).abs() < 1e-2, "{name} {share}: {}", objective(&model));
            let simultaneous = fit(&points, &format!("l1,ridge={ridge},penalty={lambda1}"), None).unwrap();
            let (ours, theirs) = (objective(&simultaneous), theirs.objective);
            assert!(ours <= theirs * (1.0 + 1e-9), "{name} {share}: {ours} against {theirs}");
        }
    }
}

#[test]
fn the_elastic_net_agrees_with_das_golatkar_and_awate() {
    for (name, points) in sets() {
        let setting = setting(&points);
        let (_, entries) = largest(&setting);
        for share in [0.5, 0.1] {
            // Their objective is twice ours: the oracle halves it, but the report does not.
            let (ridge, lambda1) = (0.5, 2.0 * share * entries);
            let twice = |answer: Answer| Answer { objective: 2.0 * answer.objective, ..answer };
            let theirs = twice(oracle::elastic_net(&setting, ridge, lambda1, 1, 20_000, 1e-10));
            let method = format!("elastic-net,ridge={ridge},penalty={lambda1}");
            compare(name, &format!("{method},alternations=0"), &points, theirs, 1e-4);
            let theirs = twice(oracle::elastic_net(&setting, ridge, lambda1, 10, 2000, 1e-8));
            compare(name, &method, &points, theirs, 0.1);
        }
    }
}

#[test]
fn an_l1_ratio_equals_its_ridge_and_penalty() {
    let points = toys::clusters(3);
    let ratio = fit(&points, "elastic-net,l1_ratio=0.3", None).unwrap();
    let both = fit(&points, "elastic-net,ridge=0.35,penalty=0.3", None).unwrap();
    // Everything except the request.
    assert_eq!(Parts { request: None, ..ratio.parts().clone() }, Parts { request: None, ..both.parts().clone() });
}

#[test]
fn nothing_is_selected_at_the_largest_penalty_and_something_just_below() {
    for (name, points) in sets() {
        let (rows, entries) = largest(&setting(&points));
        for (method, most) in
            [("l21", rows), ("l1", entries), ("l1,sequential=true", entries), ("elastic-net", 2.0 * entries)]
        {
            let at = |share: f64| fit(&points, &format!("{method},penalty={}", share * most), None);
            let error = at(1.0 + 1e-6).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains("selects no point: it has to be below"), "{name} {method}: {error}");
            assert!(at(0.99).unwrap().m() > 0, "{name} {method}");
            let model = fit(&points, &format!("{method},fraction=0.99"), None).unwrap();
            assert!(model.m() > 0, "{name} {method}");
            assert!(fit(&points, &format!("{method},fraction=1"), None).is_err(), "{name} {method}");
        }
    }
}

#[test]
fn gaps_are_within_the_requested_tolerance() {
    for (name, points) in sets() {
        for method in ["l21", "l1", "l1,sequential=true", "elastic-net"] {
            for share in [0.5, 0.1, 0.02] {
                for tolerance in [1e-6, 1e-10] {
                    let model =
                        fit(&points, &format!("{method},fraction={share},tolerance={tolerance}"), None).unwrap();
                    let report = &model.parts().report;
                    assert!(report.gap.unwrap() <= tolerance, "{name} {method} {share}: {report:?}");
                }
            }
        }
    }
}

#[test]
fn gaps_close_with_repeated_rows() {
    let clusters = toys::clusters(2);
    let points = clusters.select(&(0..90).map(|i| i / 2).collect::<Vec<usize>>());
    for method in ["l21", "l1", "elastic-net"] {
        for share in [0.5, 0.1, 0.02] {
            let report = fit(&points, &format!("{method},fraction={share}"), None).unwrap().parts().report.clone();
            assert!(report.gap.unwrap() <= 1e-6, "{method} {share}: {report:?}");
        }
    }
}

#[test]
fn more_alternations_never_increase_the_objective() {
    for (name, points) in sets() {
        for method in ["l21", "l1", "elastic-net"] {
            let at = |rounds: usize| {
                objective(
                    &fit(&points, &format!("{method},fraction=0.1,tolerance=1e-9,alternations={rounds}"), None)
                        .unwrap(),
                )
            };
            let objectives: Vec<f64> = [0, 1, 3, 10, 30, 500].map(at).to_vec();
            let falls = objectives.windows(2).all(|w| w[1] <= w[0] * (1.0 + 1e-8));
            assert!(falls && objectives[5] < objectives[0], "{name} {method}: {objectives:?}");
        }
    }
}

#[test]
fn without_a_penalty_it_is_exact_kernel_pca() {
    for (name, points) in sets() {
        let exact = fit(&points, "exact", None).unwrap();
        for method in ["l21,penalty=0", "l1,penalty=0", "elastic-net,penalty=0,ridge=0"] {
            let model = fit(&points, method, None).unwrap();
            let share = model.captured() / exact.captured();
            assert!((share - 1.0).abs() < 1e-9, "{name} {method}: {share}");
        }
    }
}

#[test]
fn the_support_has_the_requested_size_or_the_next_smaller_one_with_a_note() {
    for (name, points) in sets() {
        for method in ["l21", "l1", "l1,sequential=true", "elastic-net", "threshold"] {
            for m in [4, 10, 20] {
                let model = fit(&points, method, Some(Target::Support(m))).unwrap();
                let notes = &model.parts().report.notes;
                assert!(model.m() <= m && model.m() + 4 >= m, "{name} {method}: {} for {m}", model.m());
                let told = notes.iter().any(|note| note.starts_with(&format!("{m} support points requested")));
                assert_eq!(told, model.m() < m, "{name} {method}: {notes:?}");
            }
        }
    }
}

/// With fixed P the problem is convex, so a path and a separate fit have the same minimum. With varying P, the first
/// step of a path starts like a fit.
#[test]
fn paths_agree_with_separate_fits() {
    for (name, points) in sets() {
        for method in ["l21", "l1", "elastic-net"] {
            for alternations in [0, 500] {
                let spec: Spec = format!("{method},alternations={alternations}").parse().unwrap();
                let whole = Fit { method: spec.clone(), components: Some(Q), scaling: Scaling::None, ..Fit::default() };
                let path = whole.path(&points, &[0.5, 0.1, 0.05], &()).unwrap();
                for (step, share) in path.iter().zip([0.5, 0.1, 0.05]) {
                    let alone = fit(&points, &spec.clone().with("fraction", share).to_string(), None).unwrap();
                    let (report, case) = (&step.report, format!("{name} {method} {alternations} {share}"));
                    assert!(report.converged && report.gap.unwrap() <= 1e-6, "{case}: {report:?}");
                    assert!(step.rows.is_sorted() && report.chosen == step.rows.len(), "{case}");
                    let penalty = alone.parts().method.fields["penalty"].as_f64().unwrap();
                    assert!((step.penalty / penalty - 1.0).abs() < 1e-9, "{case}: {} {penalty}", step.penalty);
                    if alternations == 0 || share == 0.5 {
                        let distance = (report.objective.unwrap() / objective(&alone) - 1.0).abs();
                        assert!(distance < 1e-6, "{case}: {distance}");
                    }
                }
            }
        }
    }
}

#[test]
fn components_keep_their_own_zeros_and_the_support_is_their_union() {
    let points = toys::parabola(1);
    for method in ["l1", "elastic-net", "threshold"] {
        let own = fit(&points, &format!("{method},refit=false"), Some(Target::Support(20))).unwrap();
        let text = serde_json::Value::Object(skpca::format::describe(&own));
        let counts: Vec<u64> =
            text["support_per_component"].as_array().unwrap().iter().map(|v| v.as_u64().unwrap()).collect();
        assert!(counts.iter().all(|&c| c < own.m() as u64), "{method}: {counts:?} of {}", own.m());
        assert!(counts.iter().sum::<u64>() >= own.m() as u64, "{method}: every point is used");
        let refitted = fit(&points, method, Some(Target::Support(20))).unwrap();
        // The same choice, except for rows that depend on others up to rounding.
        let (rows, all) = (refitted.parts().rows.clone().unwrap(), own.parts().rows.clone().unwrap());
        assert!(rows.iter().all(|row| all.contains(row)) && rows.len() + 2 >= all.len(), "{method}: {rows:?} {all:?}");
        assert!(refitted.parts().frame.is_none() && refitted.parts().fidelity > own.parts().fidelity, "{method}");
    }
}

#[test]
fn thresholding_keeps_the_largest_coefficients_of_each_component() {
    // With a narrow kernel all rows are linearly independent, and the coefficients of exact kernel PCA are unique.
    let points = toys::clusters(4);
    let run = |method: &str| {
        let (method, kernel) = (method.parse().unwrap(), "rbf,gamma=300".parse().unwrap());
        Fit { method, kernel, components: Some(2), scaling: Scaling::None, ..Fit::default() }
            .run(&points, None, &())
            .unwrap()
    };
    let (exact, sparse) = (run("exact"), run("threshold,keep=5,refit=false"));
    let mut expected: Vec<usize> = Vec::new();
    for k in 0..2 {
        let size = |i: &usize| exact.parts().coefficients[(*i, k)].abs();
        let mut order: Vec<usize> = (0..points.n()).collect();
        order.sort_by(|i, j| size(j).total_cmp(&size(i)));
        expected.extend(&order[..5]);
    }
    expected.sort_unstable();
    expected.dedup();
    assert_eq!(sparse.parts().rows.as_ref(), Some(&expected));
}

#[test]
fn invalid_parameters_are_rejected_by_name() {
    let points = toys::clusters(0);
    let message = |method: &str, target| fit(&points, method, target).err().map(|e| e.to_string()).unwrap_or_default();
    for (method, expected) in [
        ("l21,penalty=-1", "penalty = -1.0: expected a number ≥ 0, or several (0.1:0.2)"),
        ("l21,penalty=1:2", "penalty = 2 numbers: expected one number"),
        ("l1,penalty=1:2", "penalty = 2 numbers: expected one number or 4"),
        ("l1,penalty=1:0:1:1", "penalty = 0: expected positive numbers, or a single 0 for none"),
        ("l1,penalty=1,fraction=0.5", "fraction = 0.5: expected this or the other parameters of the penalty, not both"),
        ("elastic-net,l1_ratio=1.5", "l1_ratio = 1.5: expected a number from 0 to 1"),
        ("l21,refit=3", "refit = 3.0: expected true or false"),
        ("l21,alternations=1.5", "alternations = 1.5: expected an integer ≥ 0, at most 1000000"),
        ("l21,tolerance=0", "tolerance = 0.0: expected a number above 0"),
        ("threshold,keep=0", "keep = 0.0: expected an integer ≥ 1, at most 1000000"),
    ] {
        assert_eq!(message(method, None), expected, "{method}");
    }
    assert_eq!(
        message("l21,penalty=1", Some(Target::Support(5))),
        "support = 5: expected a target or a penalty, not both"
    );
    assert!(message("l21,mu=1", None).starts_with("unknown method parameter 'mu': expected one of ridge, penalty,"));
    let path = |method: &str, shares: &[f64]| {
        let fit = Fit { method: method.parse().unwrap(), ..Fit::default() };
        fit.path(&points, shares, &()).err().map(|e| e.to_string()).unwrap_or_default()
    };
    assert_eq!(path("greedy", &[0.5]), "method = greedy: expected a method with a path: l1, l21, elastic-net");
    for (share, told) in [(0.0, "0.0"), (1e308, "1e308"), (f64::NAN, "NaN")] {
        let expected = format!("shares = {told}: expected numbers above 0 that leave a penalty finite");
        assert_eq!(path("l21", &[0.5, share]), expected);
    }
    let sized = Fit { method: Spec::new("l21"), target: Some(Target::Support(5)), ..Fit::default() };
    let told = sized.path(&points, &[0.5], &()).err().map(|e| e.to_string());
    assert_eq!(told.as_deref(), Some("support = 5: expected a target or a path, not both"));
    assert_eq!(
        path("l1,fraction=0.1", &[0.5]),
        "method = l1,fraction=0.1: expected no penalty of its own: a path has several"
    );
}

/// More starts of P never give a higher objective, sometimes give a lower one, and the same bytes on any number of
/// threads.
#[test]
fn the_lowest_of_several_starts_is_kept() {
    let points = skpca::toys::normal(150, 4, 2);
    let mut lower = 0;
    for method in ["l1", "elastic-net"] {
        for fraction in [0.1, 0.3, 0.5] {
            let fit = |starts: usize| skpca::Fit {
                method: format!("{method},fraction={fraction},starts={starts}").parse().unwrap(),
                kernel: "rbf,gamma=0.2".parse().unwrap(),
                components: Some(4),
                ..skpca::Fit::default()
            };
            let on = |threads: usize, starts: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| fit(starts).run(&points, None, &()).unwrap())
            };
            let bytes = |model: &skpca::Model| {
                let mut bytes = Vec::new();
                skpca::format::write(model, &mut bytes).unwrap();
                bytes
            };
            let objective = |model: &skpca::Model| model.parts().report.objective.unwrap();
            let (one, several) = (on(2, 1), on(2, 6));
            assert!(bytes(&several) == bytes(&on(1, 6)), "{method} {fraction}");
            // Minima are compared at low accuracy and refined afterwards.
            assert!(objective(&several) <= objective(&one) * (1.0 + 1e-4), "{method} {fraction}");
            lower += usize::from(objective(&several) < objective(&one) * (1.0 - 1e-4));
        }
    }
    assert!(lower > 0, "six starts find what one does not");
}
