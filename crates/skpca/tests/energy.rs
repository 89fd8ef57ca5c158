//! The energy rule against its definition and its bound.

use skpca::kernel;
use skpca::{Fit, Model, Points, Precision, Scaling, Spec, Target, toys};

fn fit(points: &Points, kernel: &str, method: &str) -> Model {
    let (method, kernel) = (method.parse().unwrap(), kernel.parse().unwrap());
    Fit { method, kernel, scaling: Scaling::None, ..Fit::default() }.run(points, None, &()).unwrap()
}

/// Returns squared distances from the mean in feature space, by the definition of the kernel.
fn energies(points: &Points, kernel: &str) -> Vec<f64> {
    let kernel = kernel::build(&kernel.parse().unwrap(), points, 0).unwrap();
    let n = points.n();
    let k = |i: usize, j: usize| kernel.eval(points.row(i), points.row(j));
    let means: Vec<f64> = (0..n).map(|i| (0..n).map(|j| k(i, j)).sum::<f64>() / n as f64).collect();
    let mean = means.iter().sum::<f64>() / n as f64;
    (0..n).map(|i| k(i, i) - 2.0 * means[i] + mean).collect()
}

#[test]
fn the_fewest_farthest_points_with_the_energy_are_kept_and_the_bound_holds() {
    for (points, kernel) in [
        (toys::clusters(1), "rbf,gamma=8"),
        (toys::parabola(1), "rbf,gamma=2"),
        (toys::parabola(2), "laplacian"),
        (toys::normal(300, 6, 0), "linear"),
        (toys::normal(300, 3, 0), "polynomial,degree=2"),
    ] {
        let e = energies(&points, kernel);
        let total: f64 = e.iter().sum();
        for (split, alpha) in [("half", 0.3), ("half", 0.05), ("sharp", 0.3), ("sharp", 0.05)] {
            let model = fit(&points, kernel, &format!("energy,alpha={alpha},split={split}"));
            let gamma = if split == "half" { alpha / 2.0 } else { 1.0 - f64::sqrt(1.0 - alpha) };
            let mut sorted = e.clone();
            sorted.sort_by(|a, b| b.total_cmp(a));
            let held = |count: usize| sorted[..count].iter().sum::<f64>();
            let report = &model.parts().report;
            let case = format!("{kernel} {split} {alpha}: {report:?}");
            assert!(held(report.chosen) >= (1.0 - gamma - 1e-9) * total, "{case}");
            assert!(held(report.chosen - 1) < (1.0 - gamma + 1e-9) * total, "{case}");
            let least = sorted[report.chosen - 1];
            assert!(model.parts().rows.as_ref().unwrap().iter().all(|&i| e[i] >= least - 1e-9), "{case}");
            let bound = report.objective.unwrap();
            assert!(bound > 0.0 && bound <= 1.0 - (1.0 - gamma).powi(2) + 1e-12, "{case}");
            // With one component fewer, more than the second half of α would be lost.
            let q = model.q();
            let fewer = fit_with(&points, kernel, &format!("energy,alpha={alpha},split={split}"), q - 1);
            let held_by_points = held(report.chosen) / total;
            assert!(1.0 - fewer.parts().report.objective.unwrap() < (1.0 - gamma) * held_by_points + 1e-9, "{case}");
            assert!(1.0 - bound >= (1.0 - gamma) * held_by_points - 1e-9, "{case}");
        }
    }
}

fn fit_with(points: &Points, kernel: &str, method: &str, q: usize) -> Model {
    let (method, kernel) = (method.parse().unwrap(), kernel.parse().unwrap());
    Fit { method, kernel, components: Some(q), scaling: Scaling::None, ..Fit::default() }
        .run(points, None, &())
        .unwrap()
}

/// German credit data as in the paper: 700 rows that are all equally far from each other.
#[test]
fn the_number_of_points_of_equidistant_rows_depends_on_alpha_only() {
    for (alpha, published) in [(0.3, 595), (0.2, 630), (0.1, 665)] {
        let model = fit(&toys::normal(700, 20, 0), "rbf,gamma=10", &format!("energy,alpha={alpha}"));
        assert_eq!(model.parts().report.chosen, published);
    }
}

/// The paper's Table 2: normal data, 10,000 × 50, linear kernel.
#[test]
fn normal_data_give_the_published_counts_and_need_no_more_points_than_columns() {
    let points = toys::normal(10_000, 50, 0);
    for (alpha, published) in [(0.3, 7966.0), (0.2, 8586.0), (0.1, 9245.0)] {
        let model = fit(&points, "linear", &format!("energy,alpha={alpha}"));
        let chosen = model.parts().report.chosen as f64;
        assert!((chosen / published - 1.0).abs() < 0.01, "{alpha}: {chosen} against {published}");
        assert_eq!(model.m(), 50);
        assert!((model.parts().fidelity - 1.0).abs() < 1e-9, "{}", model.parts().fidelity);
    }
}

#[test]
fn a_target_determines_alpha_and_that_alpha_gives_the_same_points() {
    let points = toys::parabola(3);
    for target in [Target::Support(25), Target::Fidelity(0.9)] {
        let method = Spec::new("energy");
        let run = Fit { method, components: Some(4), target: Some(target), scaling: Scaling::None, ..Fit::default() };
        let model = run.run(&points, None, &()).unwrap();
        let again = fit_with(&points, "rbf", &model.parts().method.to_string(), 4);
        assert_eq!(model.parts().rows, again.parts().rows, "{target:?}");
        match target {
            Target::Support(m) => assert_eq!(model.parts().report.chosen, m),
            Target::Fidelity(f) => assert!(model.parts().fidelity >= f, "{}", model.parts().fidelity),
        }
    }
}

#[test]
fn invalid_parameters_are_rejected() {
    let points = toys::clusters(0);
    for (method, message) in [
        ("energy,alpha=-0.1", "alpha = -0.1: expected a number ≥ 0 and < 1"),
        ("energy,alpha=1", "alpha = 1.0: expected a number ≥ 0 and < 1"),
        ("energy,split=thirds", "split = \"thirds\": expected half or sharp"),
    ] {
        let fit = Fit { method: method.parse().unwrap(), ..Fit::default() };
        assert_eq!(fit.run(&points, None, &()).err().unwrap().to_string(), message);
    }
    let target = Some(Target::Support(5));
    let fit = Fit { method: "energy,alpha=0.1".parse().unwrap(), target, ..Fit::default() };
    let message = fit.run(&points, None, &()).err().unwrap().to_string();
    assert_eq!(message, "support = 5: expected a target or alpha, not both");
}

#[test]
fn the_bound_holds_with_more_rows_than_the_default_rank_of_a_factor() {
    let points = toys::normal(1100, 20, 0);
    let model = fit(&points, "rbf,gamma=10", "energy,alpha=0.1");
    let parts = model.parts();
    assert!(parts.report.objective.unwrap() <= 0.1, "{:?}", parts.report);
    assert!(parts.fidelity <= 1.0 + 1e-6, "{}", parts.fidelity);
    let short = fit(&points, "rbf,gamma=10", "energy,alpha=0.1,rank=50");
    let note = "that is more than alpha = 0.1: a factor of rank 50 does not hold the rest";
    assert!(short.parts().report.notes.iter().any(|n| n == note), "{:?}", short.parts().report);
}

#[test]
fn a_target_fidelity_is_reached_with_the_fewest_points() {
    // With this many columns no point is nearly dependent on others.
    let points = toys::normal(300, 6, 1);
    let run = |target| {
        let method = Spec::new("energy");
        let fit = Fit { method, components: Some(4), target: Some(target), scaling: Scaling::None, ..Fit::default() };
        fit.run(&points, None, &()).unwrap()
    };
    let found = run(Target::Fidelity(0.9));
    let fewer = run(Target::Support(found.parts().report.chosen - 1));
    assert!(found.parts().fidelity >= 0.9 && fewer.parts().fidelity < 0.9, "{}", fewer.parts().fidelity);
    let all = run(Target::Fidelity(1.0));
    assert_eq!(all.parts().report.chosen, 300);
    // The reported parameters can be used for another fit.
    let again = fit_with(&points, "rbf", &all.parts().method.to_string(), 4);
    assert_eq!(all.parts().rows, again.parts().rows);
}

#[test]
fn the_note_states_both_losses() {
    let points = toys::parabola(2);
    let model = fit(&points, "rbf,gamma=2", "energy,alpha=0.2");
    let total: f64 = energies(&points, "rbf,gamma=2").iter().sum();
    let (bound, lost) = (model.parts().report.objective.unwrap(), 1.0 - model.captured() / total);
    let note = format!("of the energy, the rule's own components lose {bound:.6}, these {lost:.6}");
    assert_eq!(model.parts().report.notes, [note]);
}

/// The kernel `linear`, and the same kernel as a polynomial, which like all other kernels uses a factor of all rows.
const BY_FACTOR: &str = "polynomial,degree=1,gamma=1,coef0=0";

/// Returns rows that vary around a point far from zero; the last column repeats the first, and the last but one is zero
/// in all rows but one.
fn lopsided(n: usize) -> Points<'static> {
    let normal = toys::normal(n, 6, 4);
    let row = |(i, row): (usize, &[f64])| {
        let mut row: Vec<f64> = row.iter().enumerate().map(|(k, v)| 3.0 + v * (k + 1) as f64).collect();
        row.extend([if i == n / 3 { 2.0 } else { 0.0 }, row[0]]);
        row
    };
    Points::new(8, normal.rows().enumerate().flat_map(row).collect::<Vec<_>>()).unwrap()
}

#[test]
fn the_linear_kernel_gives_the_same_model_with_and_without_a_factor() {
    let cases: Vec<(&str, Option<usize>, Option<Target>)> = vec![
        ("energy,alpha=0.2", None, None),
        ("energy,alpha=0.7,split=sharp", None, None),
        ("energy,alpha=0.05", Some(3), None),
        ("energy,alpha=0", None, None),
        ("energy", Some(3), Some(Target::Support(2))),
        ("energy", Some(3), Some(Target::Support(7))),
        ("energy", Some(3), Some(Target::Support(300))),
        ("energy", Some(3), Some(Target::Fidelity(0.9))),
        ("energy", Some(2), Some(Target::Fidelity(1.0))),
    ];
    // More rows than are searched first for independent ones, and fewer.
    for points in [toys::normal(700, 6, 3), lopsided(700), lopsided(9000)] {
        for (method, components, target) in &cases {
            for center in [true, false] {
                let run = |kernel: &str| {
                    let (method, kernel) = (method.parse().unwrap(), kernel.parse().unwrap());
                    let center = Some(center);
                    let fit =
                        Fit { method, kernel, components: *components, target: *target, center, ..Fit::default() };
                    Fit { scaling: Scaling::None, ..fit }.run(&points, None, &()).unwrap()
                };
                let case = format!("{} rows, {method} {target:?} {components:?} {center}", points.n());
                same(&run("linear"), &run(BY_FACTOR), &points, &case);
            }
        }
    }
}

/// Asserts that two models agree up to rounding.
fn same(fast: &Model, general: &Model, points: &Points, case: &str) {
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-8 * (1.0 + a.abs());
    let (a, b) = (fast.parts(), general.parts());
    assert_eq!((a.report.chosen, fast.m(), fast.q()), (b.report.chosen, general.m(), general.q()), "{case}");
    assert!(near(a.report.objective.unwrap(), b.report.objective.unwrap()), "{case}: {:?} {:?}", a.report, b.report);
    assert!(near(a.fidelity, b.fidelity), "{case}: {} {}", a.fidelity, b.fidelity);
    assert!(near(a.total_variance, b.total_variance), "{case}: {} {}", a.total_variance, b.total_variance);
    assert!(near(a.report.residual_trace, b.report.residual_trace), "{case}: {:?} {:?}", a.report, b.report);
    assert!(near(a.mean_lost, b.mean_lost), "{case}: {} {}", a.mean_lost, b.mean_lost);
    assert_eq!(a.report.notes, b.report.notes, "{case}");
    a.variances.iter().zip(&b.variances).for_each(|(a, b)| assert!(near(*a, *b), "{case}: {a} {b}"));
    let scores = |model: &Model| model.score(points, Precision::Double).unwrap();
    let largest = scores(general).iter().copied().fold(1.0, f64::max);
    let differ = |(a, b): (&f64, &f64)| (a - b).abs() > 1e-8 * largest;
    assert!(!scores(fast).iter().zip(&scores(general)).any(differ), "{case}");
}

#[test]
fn the_linear_kernel_gives_the_same_bits_on_any_number_of_threads() {
    let points = lopsided(9000);
    for method in ["energy,alpha=0.2", "energy"] {
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut bytes = Vec::new();
            skpca::format::write(&pool.install(|| fit(&points, "linear", method)), &mut bytes).unwrap();
            bytes
        };
        assert!(on(1) == on(2), "{method}");
    }
}

#[test]
fn the_linear_kernel_needs_no_memory_of_the_size_of_the_table() {
    let fit = |kernel: &str| Fit {
        method: "energy,alpha=0.2".parse().unwrap(),
        kernel: kernel.parse().unwrap(),
        scaling: Scaling::None,
        ..Fit::default()
    };
    let (n, d) = (1_000_000, 50);
    // The memory for scaling is always included.
    let scaled = 8 * n * (d + 2);
    assert!(fit("linear").memory(n, d).unwrap() - scaled < 100_000_000);
    assert!(fit("cosine").memory(n, d).unwrap() - scaled > 8 * n * d);
}
