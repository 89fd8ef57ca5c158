//! Laws that hold for every method and every kernel of the registries. New entries are tested automatically.

use std::sync::atomic::{AtomicUsize, Ordering};

use skpca::kernel::{self, Form, KERNELS};
use skpca::method::{self, Capabilities, METHODS};
use skpca::{
    Domain, Error, Fit, Labels, Level, Model, Points, Precision, Scaling, Spec, Study, Target, Training, Watch, format,
    toys,
};

/// Returns every kernel, with parameters for which it is positive semi-definite.
fn kernels() -> Vec<Spec> {
    let valid = |entry: &kernel::Entry| match entry.capabilities {
        // An f in the plane that changes sign, as learned ones do.
        kernel::Capabilities { labelled: true, .. } => Spec::new(entry.name)
            .with("delta", 0.5)
            .with("constant", 0.5)
            .with("weights", vec![1.0, -1.5])
            .with("vectors", vec![-0.5, 0.2, 0.7, 0.1]),
        // tanh is nearly linear, and thus nearly positive semi-definite, for small arguments only.
        kernel::Capabilities { positive_semidefinite: false, .. } => {
            Spec::new(entry.name).with("gamma", 1e-7).with("coef0", 0.0)
        }
        _ => Spec::new(entry.name),
    };
    KERNELS.iter().map(valid).collect()
}

fn methods() -> Vec<Spec> {
    let all = METHODS.iter().map(|entry| Spec::new(entry.name));
    // The papers' own components, which are not orthonormal.
    let own = METHODS.iter().filter(|entry| entry.own_components());
    all.chain(own.map(|entry| Spec::new(entry.name).with("refit", false))).collect()
}

/// Returns the capabilities of a method.
fn can(method: &Spec) -> Capabilities {
    method::entry(method).unwrap().capabilities
}

/// Returns the method that keeps every row, to which others are compared.
fn reference() -> Spec {
    let entry = METHODS.iter().find(|entry| entry.capabilities.keeps_all_rows);
    Spec::new(entry.unwrap().name)
}

/// Returns whether a method works with a kernel.
fn takes(method: &Spec, kernel: &Spec) -> bool {
    method::entry(method).unwrap().takes(kernel)
}

/// Returns the default kernel of a method.
fn default_kernel(method: &Spec) -> Spec {
    method::entry(method).unwrap().kernel()
}

fn cases() -> Vec<(Spec, Spec)> {
    let all = methods().into_iter().flat_map(|m| kernels().into_iter().map(move |k| (m.clone(), k)));
    all.filter(|(method, kernel)| takes(method, kernel)).collect()
}

/// Returns the target, for methods that have one.
fn asked(method: &Spec, target: Target) -> Option<Target> {
    (!can(method).keeps_all_rows).then_some(target)
}

fn fit_of(method: &Spec, kernel: &Spec, m: usize) -> Fit {
    Fit {
        method: method.clone(),
        kernel: kernel.clone(),
        components: Some(2),
        target: asked(method, Target::Support(m)),
        // One of them does not centre by default.
        center: Some(true),
        scaling: Scaling::None,
        ..Fit::default()
    }
}

/// Returns labels of three classes, which two components can separate.
fn labels(points: &Points) -> Labels {
    Labels::new((0..points.n()).map(|row| 3 * row / points.n())).unwrap()
}

/// Fits a model, with labels if the method needs them.
fn run(fit: &Fit, points: &Points) -> skpca::Result<Model> {
    if fit.labelled()? { fit.run_labelled(points, &labels(points), None, &()) } else { fit.run(points, None, &()) }
}

fn fit(method: &Spec, kernel: &Spec, points: &Points, m: usize) -> Model {
    run(&fit_of(method, kernel, m), points).unwrap_or_else(|error| panic!("{method} {kernel}: {error}"))
}

fn bytes(model: &Model) -> Vec<u8> {
    let mut bytes = Vec::new();
    format::write(model, &mut bytes).unwrap();
    bytes
}

#[test]
fn supports_are_increasing_and_components_orthonormal() {
    let points = toys::parabola(0);
    for (method, kernel) in cases() {
        let model = fit(&method, &kernel, &points, 20);
        let parts = model.parts();
        assert_eq!(parts.rows.is_none(), can(&method).synthetic_points, "{method} {kernel}");
        assert_eq!(parts.density.is_some(), can(&method).density, "{method} {kernel}");
        let rows = parts.rows.clone().unwrap_or_default();
        assert!(rows.windows(2).all(|w| w[0] < w[1]), "{method} {kernel}");
        for (i, &row) in rows.iter().enumerate() {
            assert_eq!(parts.support.row(i), points.row(row), "{method} {kernel}");
        }
        assert_orthonormal(&model, &format!("{method} {kernel}"));
    }
}

/// Asserts that components are orthonormal, or have a frame that makes them so.
fn assert_orthonormal(model: &Model, case: &str) {
    let (parts, m) = (model.parts(), model.m());
    let a = parts.frame.as_ref().map_or_else(|| parts.coefficients.clone(), |frame| &parts.coefficients * frame);
    // The inner product, and the magnitude of its terms: points close to each other have large coefficients that
    // cancel.
    let inner = |k: usize, l: usize| -> (f64, f64) {
        let pairs = (0..m).flat_map(|i| (0..m).map(move |j| (i, j)));
        let term = |(i, j)| a[(i, k)] * a[(j, l)] * model.kernel().eval(parts.support.row(i), parts.support.row(j));
        pairs.map(term).fold((0.0, 0.0), |(sum, size), term: f64| (sum + term, size + term.abs()))
    };
    for k in 0..a.ncols() {
        for l in 0..=k {
            let expected = if k == l { 1.0 } else { 0.0 };
            let (found, size) = inner(k, l);
            let rounding = 1e-8 + 10.0 * f64::EPSILON * size;
            assert!((found - expected).abs() < rounding, "{case}: {k} {l} {found} {size}");
        }
    }
}

/// Returns `k(x,x) − 2 βᵀk_z(x) + μᵀβ − ‖Eᵀ project(x)‖²` term by term, and the magnitude that rounding is relative to.
fn score_by_definition(model: &Model, x: &[f64]) -> (f64, f64) {
    let (parts, m) = (model.parts(), model.m());
    let k: Vec<f64> = parts.support.rows().map(|z| model.kernel().eval(z, x)).collect();
    let a = parts.frame.as_ref().map_or_else(|| parts.coefficients.clone(), |frame| &parts.coefficients * frame);
    let own = model.kernel().eval(x, x);
    let mean = |i: usize| parts.beta[i] * (parts.mu[i] - 2.0 * k[i]);
    let (mut score, mut size) = ((0..m).map(mean).sum::<f64>() + own, (0..m).map(|i| mean(i).abs()).sum::<f64>() + own);
    for c in 0..a.ncols() {
        let terms = || (0..m).map(|i| a[(i, c)] * (k[i] - parts.mu[i]));
        let (along, length) = (terms().sum::<f64>(), terms().map(f64::abs).sum::<f64>());
        score -= along * along;
        size += along.abs() * length;
    }
    (score, size)
}

#[test]
fn scores_equal_their_definition_which_is_negative_by_rounding_only() {
    let (points, others) = (toys::clusters(6), toys::parabola(6));
    let mut negative = 0;
    for (method, kernel) in cases() {
        for center in [true, false] {
            let fit = Fit { center: Some(center), ..fit_of(&method, &kernel, 8) };
            let model = run(&fit, &points).unwrap_or_else(|error| panic!("{method} {kernel}: {error}"));
            for rows in [&points, &others] {
                let scores = model.score(rows, Precision::Double).unwrap();
                for (x, found) in rows.rows().zip(scores) {
                    let (score, size) = score_by_definition(&model, x);
                    let case = format!("{method} {kernel} centred {center}: {score:e} {size:e} {found:e}");
                    assert!(score >= -1e-13 * size - 1e-12 * model.kernel().eval(x, x), "{case}");
                    assert!((score.max(0.0) - found).abs() <= 1e-13 * size + 1e-12 * score.abs(), "{case}");
                    negative += usize::from(score < 0.0);
                }
            }
        }
    }
    assert!(negative > 0, "some are negative by rounding");
}

#[test]
fn uncentred_fits_are_consistent() {
    let points = toys::clusters(1);
    for (method, kernel) in cases() {
        let uncentred = |method: &Spec, m| {
            let fit = Fit { center: Some(false), ..fit_of(method, &kernel, m) };
            run(&fit, &points).unwrap_or_else(|error| panic!("{method} {kernel}: {error}"))
        };
        let (exact, few) = (uncentred(&reference(), 0), uncentred(&method, 6));
        let (parts, case) = (few.parts(), format!("{method} {kernel}"));
        assert!(!parts.center && parts.mu.iter().chain(&parts.beta).all(|v| *v == 0.0), "{case}");
        assert_orthonormal(&few, &case);
        assert!(few.captured() <= exact.captured() * (1.0 + 1e-9) && parts.fidelity <= 1.0, "{case}");
        if !can(&method).labelled {
            assert!((parts.fidelity - few.captured() / exact.captured()).abs() < 1e-8, "{case}");
        }
        // Without centring the variance of a feature is its mean square.
        let features = few.transform(&points, Precision::Double).unwrap();
        for (k, stated) in parts.variances.iter().enumerate() {
            let square = features.iter().skip(k).step_by(few.q()).map(|y| y * y).sum::<f64>() / points.n() as f64;
            assert!((square - stated).abs() < 1e-7 * stated, "{case}: {square} {stated}");
        }
    }
}

/// Asks to stop at a single report: a fit that ignores it will finish.
struct Until {
    last: usize,
    reports: AtomicUsize,
}

impl Watch for Until {
    fn at(&self, _: &str, fraction: f64) -> bool {
        assert!((0.0..=1.0).contains(&fraction), "{fraction}");
        self.reports.fetch_add(1, Ordering::Relaxed) + 1 != self.last
    }
}

#[test]
fn every_method_can_be_stopped_at_every_report() {
    let points = toys::parabola(3);
    let labels = labels(&points);
    for method in methods() {
        for kernel in ["rbf", "linear"].map(Spec::new).into_iter().filter(|kernel| takes(&method, kernel)) {
            for target in [Target::Support(15), Target::Fidelity(0.9)] {
                let target = asked(&method, target);
                let fit = Fit { target, components: Some(2), ..fit_of(&method, &kernel, 0) };
                let stopped = |last: usize| {
                    let watch = Until { last, reports: AtomicUsize::new(0) };
                    let model = if fit.labelled().unwrap() {
                        fit.run_labelled(&points, &labels, None, &watch)
                    } else {
                        fit.run(&points, None, &watch)
                    };
                    (model, watch.reports.into_inner())
                };
                let case = format!("{method} {kernel} {target:?}");
                let (model, reports) = stopped(usize::MAX);
                assert!(model.is_ok() && reports > 0, "{case}: {reports}");
                for last in (1..=reports.min(10)).chain([reports / 2, reports]).filter(|last| *last > 0) {
                    assert_eq!(stopped(last).0.err(), Some(Error::Interrupted), "{case}: {last} of {reports}");
                }
            }
        }
    }
}

#[test]
fn a_study_gives_the_same_models_as_separate_fits() {
    let points = toys::clusters(4);
    let labels = labels(&points);
    let clock = || std::time::Duration::ZERO;
    for kernel in kernels() {
        let study = Study::new(&fit_of(&reference(), &kernel, 0), &points, Some(&labels), None, &clock).unwrap();
        for method in methods().into_iter().filter(|method| takes(method, &kernel)) {
            // The second fit reuses the shared results of the first.
            for target in [Target::Support(7), Target::Fidelity(0.8)] {
                let target = asked(&method, target);
                let alone = run(&Fit { target, ..fit_of(&method, &kernel, 0) }, &points).unwrap();
                let (shared, _) = study.fit(&method, target, &()).unwrap();
                assert!(bytes(&shared) == bytes(&alone), "{method} {kernel} {target:?}");
            }
        }
    }
}

#[test]
fn captured_shares_agree_with_features_and_scores() {
    let (points, others) = (toys::parabola(0), toys::parabola(1));
    for (method, kernel) in cases() {
        let model = fit(&method, &kernel, &points, 10);
        let parts = model.parts();
        let known = model.captured_share(&points).unwrap();
        let lost: f64 = model.score(&others, Precision::Double).unwrap().iter().sum();
        let share = model.captured_share(&others).unwrap();
        let scale = parts.total_variance * points.n() as f64;
        if scale > 1e-6 {
            assert!((known - parts.captured / parts.total_variance).abs() < 1e-6, "{method} {kernel}: {known}");
        }
        let captured = lost * share / (1.0 - share);
        let features = model.transform(&others, Precision::Double).unwrap();
        let length: f64 = features.iter().map(|y| y * y).sum();
        if parts.frame.is_none() && share < 1.0 - 1e-9 {
            assert!((captured - length).abs() < 1e-6 * length, "{method} {kernel}: {captured} {length}");
        }
    }
}

#[test]
fn variances_equal_those_of_the_features() {
    let points = toys::parabola(2);
    for (method, kernel) in cases() {
        let model = fit(&method, &kernel, &points, 15);
        let features = model.transform(&points, Precision::Double).unwrap();
        let (n, q) = (points.n() as f64, model.q());
        for k in 0..q {
            let column = || features.iter().skip(k).step_by(q);
            let mean = column().sum::<f64>() / n;
            let variance = column().map(|y| y * y).sum::<f64>() / n;
            let stated = model.parts().variances[k];
            assert!(mean.abs() < 1e-7 * stated.sqrt(), "{method} {kernel}: mean {mean}");
            assert!((variance - stated).abs() < 1e-7 * stated, "{method} {kernel}: {variance} {stated}");
        }
    }
}

#[test]
fn no_method_captures_more_than_exact_and_full_support_captures_as_much() {
    let points = toys::clusters(1);
    for (method, kernel) in cases() {
        let exact = fit(&reference(), &kernel, &points, 0);
        let few = fit(&method, &kernel, &points, 4);
        assert!(few.captured() <= exact.captured() * (1.0 + 1e-9), "{method} {kernel}");
        // Components that separate classes do not maximise variance, and their fidelity is that of the span.
        if can(&method).labelled {
            continue;
        }
        assert!((few.parts().fidelity - few.captured() / exact.captured()).abs() < 1e-8, "{method} {kernel}");
        // The likelihood has a maximum with fewer points for any noise.
        if can(&method).density {
            continue;
        }
        let all = fit(&method, &kernel, &points, points.n());
        assert!((all.captured() / exact.captured() - 1.0).abs() < 1e-8, "{method} {kernel}");
        // Points are dropped as dependent up to 1e-12 of a squared norm: scores may differ by at most its square root.
        let new = toys::parabola(3);
        let scores = [&all, &exact].map(|model| model.score(&new, Precision::Double).unwrap());
        let size = scores[1].iter().copied().fold(exact.parts().total_variance, f64::max);
        for (a, b) in scores[0].iter().zip(&scores[1]) {
            assert!((a - b).abs() < 1e-8 * size, "{method} {kernel}: {a} {b}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_model_on_any_number_of_threads() {
    let points = toys::parabola(4);
    for (method, kernel) in cases() {
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let model = fit(&method, &kernel, &points, 12);
                (bytes(&model), model.score(&points, Precision::Double).unwrap())
            })
        };
        let (one, two) = (on(1), on(2));
        assert!(one == two, "{method} {kernel}");
        assert!(one == on(1), "{method} {kernel}");
    }
}

/// Returns the condition number of the support's kernel matrix, by which rounding errors are amplified: directions
/// spanned by nearly dependent points depend on the last digits.
fn condition(model: &Model) -> f64 {
    let z = &model.parts().support;
    let k = faer::Mat::from_fn(z.n(), z.n(), |i, j| model.kernel().eval(z.row(i), z.row(j)));
    let values = k.self_adjoint_eigenvalues(faer::Side::Lower).unwrap();
    values[values.len() - 1] / values[0].max(f64::EPSILON * values[values.len() - 1])
}

#[test]
fn every_instruction_set_gives_the_same_model_up_to_rounding() {
    let (points, others) = (toys::parabola(4), toys::parabola(5));
    for (method, kernel) in cases() {
        let on = |level: Level| {
            let model = run(&Fit { level, ..fit_of(&method, &kernel, 12) }, &points).unwrap();
            let scores = model.score(&others, Precision::Double).unwrap();
            (model, scores)
        };
        let (auto, expected) = on(Level::Auto);
        // Where optimised points end depends on the last digits of gradients.
        let moved = can(&method).synthetic_points;
        // The span of a method's own components, if they are nearly parallel, is only accurate to its tolerance.
        let own = auto.parts().frame.is_some();
        let near = if own {
            1e-3
        } else if moved {
            1e-6
        } else {
            1e-9
        };
        // The worst case would be 30 times as large.
        let near = near + f64::EPSILON * condition(&auto) / 30.0;
        let scale = expected.iter().copied().fold(auto.parts().total_variance, f64::max);
        for (i, level) in Level::available().into_iter().enumerate() {
            let (model, scores) = on(level);
            let case = format!("{method} {kernel} {level}");
            if method.name == "robust" {
                // Rounding decides which rows at the edge of the insensitive band are used; other choices are as good.
                assert!((model.captured() / auto.captured() - 1.0).abs() < 0.05, "{case}");
                continue;
            }
            // If any points span the whole feature space, rounding decides which are kept.
            let spans_all = auto.m() >= auto.kernel().rank(points.d());
            assert!(spans_all || model.parts().rows == auto.parts().rows, "{case}");
            assert_eq!(model.m(), auto.m(), "{case}");
            assert!(i > 0 || scores == expected, "{case}: the best level is the default");
            if moved && matches!(model.kernel().form(), Form::Manhattan { .. }) {
                // The gradient is discontinuous where two coordinates are equal, so there are many maxima close
                // together.
                assert!((model.captured() / auto.captured() - 1.0).abs() < 1e-3, "{case}");
                continue;
            }
            let off = scores.iter().zip(&expected).map(|(a, b)| (a - b).abs() / scale).fold(0.0, f64::max);
            assert!(off <= near, "{case}: {off:e} {near:e}");
        }
    }
}

/// On a grid, eigenvalues are equal in pairs and rows are equivalent in groups of eight. Methods that use single
/// eigenvectors, which are then not unique, are not tested.
#[test]
fn ties_are_not_broken_by_rounding() {
    let grid: Vec<f64> = (0..400).flat_map(|i| [f64::from(i % 20), f64::from(i / 20)]).collect();
    let points = Points::new(2, grid).unwrap();
    for method in ["exact", "landmarks", "energy", "greedy", "expansion", "discriminant"] {
        let method = Spec::new(method);
        for (target, q) in [(Target::Support(10), 3), (Target::Support(10), 10), (Target::Fidelity(0.9), 5)] {
            let on = |level: Level| {
                let target = asked(&method, target);
                let fit = Fit { level, components: Some(q), target, ..fit_of(&method, &Spec::new("rbf"), 0) };
                let model = run(&fit, &points).unwrap();
                let scores = model.score(&points, Precision::Double).unwrap();
                (model, scores)
            };
            let (auto, expected) = on(Level::Auto);
            for level in Level::available() {
                let (model, scores) = on(level);
                let case = format!("{method} {target:?} {q} {level}");
                assert_eq!((model.m(), &model.parts().rows), (auto.m(), &auto.parts().rows), "{case}");
                let off = scores.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(off < 1e-6 * auto.parts().total_variance, "{case}: {off:e}");
            }
        }
    }
}

#[test]
fn a_model_written_and_read_back_is_the_same() {
    let points = toys::clusters(5);
    for (method, kernel) in cases() {
        let model = fit(&method, &kernel, &points, 12);
        let again = format::read(&bytes(&model)[..]).unwrap();
        assert_eq!(again.parts(), model.parts(), "{method} {kernel}");
        for precision in [Precision::Double, Precision::Single] {
            assert_eq!(again.score(&points, precision), model.score(&points, precision));
            assert_eq!(again.transform(&points, precision), model.transform(&points, precision));
        }
        assert!(bytes(&again) == bytes(&model), "{method} {kernel}");
    }
}

#[test]
fn scores_are_squared_distances_and_the_threshold_is_their_quantile() {
    let points = toys::parabola(6);
    for (method, kernel) in cases() {
        let model = fit(&method, &kernel, &points, 10);
        let scores = model.score(&points, Precision::Double).unwrap();
        assert!(scores.iter().all(|s| *s >= 0.0));
        let parts = model.parts();
        let below = scores.iter().filter(|s| **s <= parts.scores.threshold).count();
        // 0.95 of 500, up to equal scores under kernels whose feature space is spanned.
        if parts.scores.threshold > 1e-12 {
            assert!((474..=476).contains(&below), "{method} {kernel}: {below}");
        }
        let p = parts.scores.p_value(parts.scores.threshold + 1e-15);
        assert!(p > 0.0 && p <= 1.0);
    }
}

#[test]
fn signs_follow_the_features_not_the_support() {
    let points = toys::parabola(7);
    let exact = fit(&Spec::new("exact"), &Spec::new("rbf"), &points, 0);
    let sparse = fit(&Spec::new("landmarks"), &Spec::new("rbf"), &points, 30);
    let (a, b) =
        (exact.transform(&points, Precision::Double).unwrap(), sparse.transform(&points, Precision::Double).unwrap());
    for k in 0..2 {
        let agreement: f64 = a.iter().skip(k).step_by(2).zip(b.iter().skip(k).step_by(2)).map(|(x, y)| x * y).sum();
        assert!(agreement > 0.0, "component {k}");
        let column = || a.iter().skip(k).step_by(2).copied();
        let lead = column().max_by(|x, y| x.abs().total_cmp(&y.abs())).unwrap();
        assert!(lead > 0.0, "component {k}: the feature of largest size is positive");
    }
}

#[test]
fn permuting_the_rows_permutes_exact_kernel_pca() {
    let points = toys::clusters(8);
    let order: Vec<usize> = (0..points.n()).map(|i| (37 * i + 11) % points.n()).collect();
    let kernel = Spec::new("rbf").with("gamma", 2.0);
    let a = fit(&Spec::new("exact"), &kernel, &points, 0);
    let b = fit(&Spec::new("exact"), &kernel, &points.select(&order), 0);
    let (fa, fb) = (a.transform(&points, Precision::Double).unwrap(), b.transform(&points, Precision::Double).unwrap());
    assert!(fa.iter().zip(&fb).all(|(x, y)| (x - y).abs() < 1e-9));
}

#[test]
fn permuting_the_rows_permutes_the_model() {
    let (points, others) = (toys::clusters(8), toys::parabola(1));
    let n = points.n();
    let order: Vec<usize> = (0..n).map(|i| (37 * i + 11) % n).collect();
    let classes = labels(&points);
    let permuted = (points.select(&order), Labels::new(order.iter().map(|row| classes.of(*row))).unwrap());
    for (method, kernel) in cases() {
        // Methods that draw rows draw row numbers, which change; with all rows kept there is nothing to draw.
        let drawn = |seed| {
            run(&Fit { seed, ..fit_of(&method, &default_kernel(&method), 6) }, &points).unwrap().parts().rows.clone()
        };
        let m = if drawn(0) == drawn(1) { 6 } else { n };
        let fit = fit_of(&method, &kernel, m);
        let before = run(&fit, &points).unwrap();
        let after = if fit.labelled().unwrap() {
            fit.run_labelled(&permuted.0, &permuted.1, None, &())
        } else {
            fit.run(&permuted.0, None, &())
        };
        let (after, case) = (after.unwrap(), format!("{method} {kernel}"));
        let scores = [&before, &after].map(|model| model.score(&others, Precision::Double).unwrap());
        let scale = scores[0].iter().copied().fold(before.parts().total_variance, f64::max);
        // Tolerances as between instruction sets, because sums have another order.
        let moved = can(&method).synthetic_points;
        let near = match before.kernel().form() {
            Form::Manhattan { .. } if moved => 1e-2,
            _ if moved => 1e-6,
            // Points are dropped as dependent up to 1e-12 of a squared norm.
            _ if m == n => 1e-8,
            _ => 1e-9,
        };
        let off = scores[0].iter().zip(&scores[1]).map(|(a, b)| (a - b).abs() / scale).fold(0.0, f64::max);
        assert!(off < near, "{case}: {off:e}");
        // If the points span all rows, other points could too.
        if before.parts().report.residual_trace > 1e-9 {
            let back = |rows: &Vec<usize>| {
                let mut rows: Vec<usize> = rows.iter().map(|row| order[*row]).collect();
                rows.sort_unstable();
                rows
            };
            assert_eq!(before.parts().rows, after.parts().rows.as_ref().map(back), "{case}");
        }
    }
}

#[test]
fn the_requested_fidelity_is_reached() {
    let points = toys::parabola(9);
    for entry in METHODS.iter().filter(|entry| !entry.capabilities.keeps_all_rows) {
        for fidelity in [0.5, 0.8, 0.9] {
            let (method, kernel) = (Spec::new(entry.name), entry.kernel());
            let fit = Fit { method, kernel, target: Some(Target::Fidelity(fidelity)), ..Fit::default() };
            let model = run(&fit, &points).unwrap();
            assert!(model.parts().fidelity >= fidelity, "{}: {}", entry.name, model.parts().fidelity);
        }
    }
}

#[test]
fn few_points_capture_much_with_the_best_components_in_their_span() {
    let points = toys::parabola(9);
    for method in ["landmarks", "l21", "l1", "elastic-net"] {
        let size = |fidelity| {
            let fit = Fit { method: Spec::new(method), target: Some(Target::Fidelity(fidelity)), ..Fit::default() };
            let model = fit.run(&points, None, &()).unwrap();
            assert!(model.parts().fidelity >= fidelity, "{method}: {}", model.parts().fidelity);
            model.m()
        };
        let sizes = [0.5, 0.9, 0.95, 0.99, 0.999].map(size);
        assert!(sizes.windows(2).all(|w| w[0] <= w[1]) && sizes[4] < 60, "{method}: {sizes:?}");
    }
}

#[test]
fn methods_with_a_path_return_it_and_others_reject_it() {
    let points = toys::clusters(3);
    for entry in METHODS {
        let fit = Fit { method: Spec::new(entry.name), kernel: entry.kernel(), ..Fit::default() };
        assert_eq!(fit.path(&points, &[0.5, 0.2], &()).is_ok(), entry.capabilities.path, "{}", entry.name);
    }
}

#[test]
fn a_parameter_that_fixes_the_size_excludes_a_target() {
    let points = toys::clusters(3);
    for entry in METHODS {
        for parameter in entry.parameters.iter().filter(|parameter| parameter.domain != Domain::Boolean) {
            let whole = matches!(parameter.domain, Domain::Count { .. } | Domain::Counts);
            let value = if whole { 2.0 } else { 0.5 };
            let value = parameter.default.value().unwrap_or(value.into());
            let method = Spec::new(entry.name).with(parameter.name, value);
            let (target, kernel) = (Some(Target::Support(5)), entry.kernel());
            let refused = run(&Fit { target, kernel, method: method.clone(), ..Fit::default() }, &points)
                .is_err_and(|error| error.to_string().contains("a target or"));
            assert_eq!(refused, parameter.fixes_size, "{method}");
            assert_eq!(refused, entry.fixes_size(&method), "{method}");
        }
    }
}

#[test]
fn invalid_requests_are_rejected_by_name() {
    let points = toys::clusters(0);
    let message = |fit: Fit| fit.run(&points, None, &()).err().map(|e| e.to_string()).unwrap_or_default();
    let base = Fit::default;
    assert_eq!(
        message(Fit { method: Spec::new("greed"), ..base() }),
        format!(
            "unknown method 'greed': expected one of {}",
            METHODS.iter().map(|e| e.name).collect::<Vec<_>>().join(", ")
        )
    );
    assert_eq!(message(Fit { components: Some(0), ..base() }), "components = 0: expected an integer ≥ 1");
    assert_eq!(message(Fit { target: Some(Target::Support(0)), ..base() }), "support = 0: expected an integer ≥ 1");
    assert_eq!(
        message(Fit { target: Some(Target::Support(91)), ..base() }),
        "support = 91: expected at most the 90 rows there are"
    );
    assert_eq!(
        message(Fit { target: Some(Target::Fidelity(1.5)), ..base() }),
        "fidelity = 1.5: expected a number above 0 and up to 1"
    );
    assert_eq!(message(Fit { quantile: 1.0, ..base() }), "quantile = 1: expected a number between 0 and 1");
    let one = Points::new(2, vec![0.0, 1.0]).unwrap();
    assert_eq!(base().run(&one, None, &()).err().unwrap().to_string(), "1 row: a fit needs at least 2");
    let same = Points::new(2, vec![1.0; 8]).unwrap();
    assert_eq!(
        base().run(&same, None, &()).err().unwrap().to_string(),
        "there is nothing to fit: all rows are the same"
    );
}

#[test]
fn tables_of_equal_rows_are_rejected() {
    let same = Points::new(2, [0.3, 0.7].repeat(1600)).unwrap();
    for method in METHODS {
        for kernel in ["rbf,gamma=1", "linear", "cosine"] {
            let (method, kernel) = (Spec::new(method.name), kernel.parse().unwrap());
            if !takes(&method, &kernel) {
                continue;
            }
            let fit = Fit { method, kernel, center: Some(true), scaling: Scaling::None, ..Fit::default() };
            let error = run(&fit, &same).err().expect("nothing varies").to_string();
            assert!(error.starts_with("there is nothing to fit"), "{} {}: {error}", fit.method, fit.kernel);
        }
    }
}

#[test]
fn low_rank_and_dependent_points_are_noted() {
    let points = toys::clusters(0);
    let linear =
        Fit { kernel: Spec::new("linear"), components: Some(10), target: Some(Target::Support(9)), ..Fit::default() };
    let model = linear.run(&points, None, &()).unwrap();
    assert_eq!((model.q(), model.m()), (2, 2));
    assert_eq!(
        model.parts().report.notes,
        [
            "10 components requested, 2 found: to working precision, the data have no higher rank",
            "9 support points requested, 2 kept: the others are linearly dependent"
        ]
    );
}

/// Returns tables that could make a method divide by zero, run out of rank or cross one of its size limits.
fn odd_tables() -> Vec<(&'static str, Points<'static>)> {
    let line = |n: usize, each: &dyn Fn(usize) -> f64| Points::new(1, (0..n).map(each).collect::<Vec<f64>>()).unwrap();
    let repeated: Vec<usize> = (0..90).map(|i| i / 3).collect();
    let plane =
        |each: &dyn Fn(usize) -> [f64; 2]| Points::new(2, (0..40).flat_map(each).collect::<Vec<f64>>()).unwrap();
    vec![
        ("two rows", line(2, &|i| i as f64)),
        ("three rows", line(3, &|i| (i * i) as f64)),
        ("all but one equal", line(1600, &|i| if i == 7 { 1.0 } else { 0.0 })),
        ("every row thrice", toys::clusters(3).select(&repeated)),
        ("a line in the plane", plane(&|i| [i as f64, 2.0 * i as f64])),
        ("an outlier", plane(&|i| [if i == 3 { 1e9 } else { (i as f64).sin() }, (i as f64).cos()])),
        ("two values", line(50, &|i| (i % 2) as f64)),
        ("tiny values", line(30, &|i| 1e-150 * i as f64)),
        ("huge values", line(30, &|i| 1e150 * i as f64)),
        ("many rows", line(4500, &|i| (0.37 * i as f64).sin() + 1e-3 * i as f64)),
    ]
}

#[test]
fn odd_tables_give_a_consistent_model_or_an_error() {
    for method in methods().into_iter().chain(["l1,sequential=true".parse().unwrap()]) {
        for (name, points) in odd_tables() {
            for (target, kernel) in [
                (None, "rbf"),
                (Some(Target::Support(1)), "rbf"),
                (Some(Target::Support(3)), "rbf,gamma=1"),
                (Some(Target::Support(20)), "linear"),
                (Some(Target::Fidelity(0.9)), "cosine"),
            ] {
                // A fidelity of single components may take minutes on many rows.
                if points.n() > 2000 && !matches!(target, Some(Target::Support(_))) {
                    continue;
                }
                for components in [Some(1), None] {
                    let (method, kernel): (_, Spec) = (method.clone(), kernel.parse().unwrap());
                    let kernel = if takes(&method, &kernel) { kernel } else { default_kernel(&method) };
                    let fit = Fit { method, kernel, components, target, ..Fit::default() };
                    let Ok(model) = fit.run(&points, None, &()) else { continue };
                    let case = format!("{name}, {} {} {target:?} {components:?}", fit.method, fit.kernel);
                    let scores = model.score(&points, Precision::Double).unwrap();
                    assert!(scores.iter().all(|s| s.is_finite()), "{case}");
                    assert!(model.parts().fidelity <= 1.0 + 1e-6, "{case}: {}", model.parts().fidelity);
                    if let Some(Target::Support(m)) = asked(&fit.method, Target::Support(0)).and(target) {
                        assert!(model.m() <= m, "{case}: {}", model.m());
                    }
                }
            }
        }
    }
}

#[test]
fn scores_are_distances_to_the_span_of_components_that_are_not_orthogonal() {
    let points = toys::parabola(10);
    let mut overlap = 0.0_f64;
    for method in ["l1", "l21", "elastic-net", "threshold"] {
        let model = fit(&Spec::new(method).with("refit", false), &Spec::new("rbf"), &points, 6);
        let parts = model.parts();
        let kernel = kernel::build(&parts.kernel, &points, 0).unwrap();
        let (m, a) = (model.m(), &parts.coefficients);
        let gram = |k: usize, l: usize| -> f64 {
            let pairs = (0..m).flat_map(|i| (0..m).map(move |j| (i, j)));
            pairs.map(|(i, j)| a[(i, k)] * a[(j, l)] * kernel.eval(parts.support.row(i), parts.support.row(j))).sum()
        };
        let (g, h, i) = (gram(0, 0), gram(0, 1), gram(1, 1));
        overlap = overlap.max(h.abs());
        let features = model.transform(&points, Precision::Double).unwrap();
        let scores = model.score(&points, Precision::Double).unwrap();
        for (row, x) in points.rows().enumerate() {
            let (y, z) = (features[2 * row], features[2 * row + 1]);
            let projected = (i * y * y - 2.0 * h * y * z + g * z * z) / (g * i - h * h);
            let near: f64 = (0..m).map(|s| parts.beta[s] * kernel.eval(parts.support.row(s), x)).sum();
            let mean: f64 = parts.beta.iter().zip(&parts.mu).map(|(b, u)| b * u).sum();
            let expected = kernel.eval(x, x) - 2.0 * near + mean - projected;
            assert!((scores[row] - expected.max(0.0)).abs() < 1e-9, "{method}: {} {expected}", scores[row]);
        }
    }
    assert!(overlap > 1e-3, "some of the components overlap: {overlap}");
}

/// All eigenvalues are equal, and more components are requested than the factor that guides the iteration has columns.
#[test]
fn a_flat_spectrum_has_the_requested_number_of_components() {
    let points = toys::normal(1600, 20, 0);
    let kernel: Spec = "rbf,gamma=10".parse().unwrap();
    let base = Fit { kernel, components: Some(150), scaling: Scaling::None, ..Fit::default() };
    let exact = Fit { method: Spec::new("exact"), ..base.clone() }.run(&points, None, &()).unwrap();
    assert_eq!(exact.q(), 150);
    let most = Fit { method: Spec::new("landmarks"), target: Some(Target::Support(1500)), ..base };
    let most = most.run(&points, None, &()).unwrap();
    let fidelity = most.captured() / exact.captured();
    assert!(
        fidelity <= 1.0 + 1e-9 && (most.parts().fidelity - fidelity).abs() < 1e-6,
        "{fidelity} {}",
        most.parts().fidelity
    );
}

/// With few dimensions the fidelity is exact for any number of rows, and a few rows that span the others are found.
#[test]
fn few_dimensions_are_handled_exactly() {
    let each = |i: usize| [(0.7 * i as f64).sin(), (0.3 * i as f64).cos(), if i % 2500 == 7 { 5.0 } else { 0.0 }];
    let points = Points::new(3, (0..5000).flat_map(each).collect::<Vec<f64>>()).unwrap();
    for kernel in ["linear", "cosine"] {
        let run = |method: &str, target| {
            let (method, kernel) = (method.parse().unwrap(), kernel.parse().unwrap());
            let fit = Fit { method, kernel, components: Some(2), target, scaling: Scaling::None, ..Fit::default() };
            fit.run(&points, None, &()).unwrap()
        };
        let exact = run("exact", None);
        let two = run("landmarks", Some(Target::Support(2)));
        let fidelity = two.captured() / exact.captured();
        assert!((two.parts().fidelity - fidelity).abs() < 1e-8, "{kernel}: {} {fidelity}", two.parts().fidelity);
        let all = run("energy,alpha=0", None);
        assert_eq!((all.parts().report.chosen, all.m()), (5000, 3), "{kernel}");
        assert!((all.captured() / exact.captured() - 1.0).abs() < 1e-8, "{kernel}");
    }
}

/// The reference for the fidelity must not come from a factor of low rank.
#[test]
fn fidelity_does_not_depend_on_the_rank_of_the_factor() {
    let points = toys::parabola(7);
    let exact = Fit { method: Spec::new("exact"), components: Some(4), center: Some(true), ..Fit::default() };
    let exact = exact.run(&points, None, &()).unwrap();
    for method in ["l21,fraction=0.2,rank=6", "likelihood,fraction=0.2,rank=6", "energy,alpha=0.5,rank=6"] {
        let method: Spec = method.parse().unwrap();
        let fit = Fit { method, components: Some(4), center: Some(true), ..Fit::default() };
        let model = fit.run(&points, None, &()).unwrap();
        let fidelity = model.captured() / exact.captured();
        assert!(
            (model.parts().fidelity - fidelity).abs() < 1e-8,
            "{}: {} {fidelity}",
            fit.method,
            model.parts().fidelity
        );
    }
}

#[test]
fn score_gradients_agree_with_differences() {
    let points = toys::parabola(4);
    let queries = toys::normal(6, 2, 1);
    for (method, kernel) in cases() {
        // Scaled columns: gradients are per unit of the input.
        let fit = Fit { scaling: Scaling::Minmax, ..fit_of(&method, &kernel, 12) };
        let model = run(&fit, &points).unwrap();
        let gradient = model.score_gradient(&queries).unwrap();
        let size = gradient.iter().fold(0.0_f64, |m, g| m.max(g.abs()));
        for (at, found) in gradient.iter().enumerate() {
            let score = |by: f64| {
                let mut values = queries.values().to_vec();
                values[at] += by;
                model.score(&Points::new(2, values).unwrap(), Precision::Double).unwrap()[at / 2]
            };
            let step = 1e-5;
            let expected = (score(step) - score(-step)) / (2.0 * step);
            // Scores are cut off at 0, where differences are meaningless.
            if score(0.0) > 1e-9 * size {
                assert!((found - expected).abs() < 1e-5 * size.max(1e-4), "{method} {kernel} {at}: {found} {expected}");
            }
        }
    }
}

/// Features have the stated variance even for components whose variance is close to rounding error.
#[test]
fn the_last_components_of_exact_kernel_pca_are_centred_too() {
    let points = toys::normal(30, 1, 0);
    let fit = Fit { method: Spec::new("exact"), components: Some(14), scaling: Scaling::None, ..Fit::default() };
    let model = fit.run(&points, None, &()).unwrap();
    let (features, q) = (model.transform(&points, Precision::Double).unwrap(), model.q());
    for (k, stated) in model.parts().variances.iter().enumerate() {
        let found = features.iter().skip(k).step_by(q).map(|y| y * y).sum::<f64>() / 30.0;
        assert!((found / stated - 1.0).abs() < 1e-3, "{k}: {found} {stated}");
    }
}

/// Returns every method that supports weights, with kernels of every form.
fn weighted_cases() -> Vec<(Spec, Spec)> {
    cases().into_iter().filter(|(method, kernel)| can(method).weights && !is_learned(kernel)).collect()
}

/// Returns whether a kernel is learned from labels; such kernels do not support weights.
fn is_learned(kernel: &Spec) -> bool {
    KERNELS.iter().any(|entry| entry.name == kernel.name && entry.capabilities.labelled)
}

/// Returns rows, their weights, and the rows repeated as often as their weights say.
fn repeated(n: usize) -> (Points<'static>, Vec<f64>, Points<'static>) {
    let points = toys::normal(n, 2, 3);
    let weights: Vec<f64> = (0..n).map(|i| [1.0, 3.0, 2.0, 1.0, 0.0][i % 5]).collect();
    let copies = (0..n).flat_map(|i| points.row(i).repeat(weights[i] as usize)).collect::<Vec<f64>>();
    (points, weights, Points::new(2, copies).unwrap())
}

fn weighted(fit: &Fit, points: &Points, weights: &[f64]) -> Model {
    let data = Training { weights: Some(weights), ..Training::of(points) };
    fit.train(data).unwrap_or_else(|error| panic!("{} {}: {error}", fit.method, fit.kernel))
}

/// Returns the largest difference of features and scores of two models, relative to those of the first.
fn apart(a: &Model, b: &Model, fresh: &Points) -> f64 {
    let outputs = |model: &Model| {
        let precision = Precision::Double;
        [model.transform(fresh, precision).unwrap(), model.score(fresh, precision).unwrap()]
    };
    // If components capture everything, scores are rounding errors relative to the variance.
    let unit = a.parts().total_variance;
    let relative = |(a, b): (&Vec<f64>, &Vec<f64>)| {
        let size = a.iter().fold(unit, |size, v| size.max(v.abs()));
        assert_eq!(a.len(), b.len());
        a.iter().zip(b).map(|(a, b)| (a - b).abs() / size).fold(0.0, f64::max)
    };
    outputs(a).iter().zip(&outputs(b)).map(relative).fold(0.0, f64::max)
}

#[test]
fn weights_equal_repeated_rows() {
    let (points, weights, copies) = repeated(60);
    let fresh = toys::normal(30, 2, 4);
    let mut wrong = Vec::new();
    for (method, kernel) in weighted_cases() {
        for scaling in [Scaling::None, Scaling::Standard] {
            let fit = Fit { scaling, ..fit_of(&method, &kernel, 8) };
            let (found, expected) = (weighted(&fit, &points, &weights), fit.run(&copies, None, &()).unwrap());
            // Any copy of a row may be chosen, so points are compared, not row numbers.
            let chooses = !can(&method).synthetic_points && !can(&method).keeps_all_rows;
            let (a, b) = (found.parts(), expected.parts());
            let points = if chooses { difference(a.support.values(), b.support.values()) } else { 0.0 };
            let off = [
                points,
                apart(&expected, &found, &fresh),
                (a.scores.threshold - b.scores.threshold).abs() / b.scores.threshold.max(b.total_variance),
                (a.fidelity - b.fidelity).abs(),
            ];
            if off.iter().any(|off| off.is_nan() || *off > near(&method)) {
                wrong.push(format!("{method} {kernel} {}: {off:?}", scaling.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the largest difference of two lists; infinite if their lengths differ.
fn difference(a: &[f64], b: &[f64]) -> f64 {
    let largest = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    if a.len() == b.len() { largest } else { f64::INFINITY }
}

/// Returns the tolerance for a method: optimisers may stop a step earlier or later because of rounding.
fn near(method: &Spec) -> f64 {
    if can(method).synthetic_points { 1e-4 } else { 1e-9 }
}

#[test]
fn only_relative_weights_matter() {
    let (points, _, _) = repeated(60);
    let weights: Vec<f64> = (0..60).map(|i| 0.1 + (i % 7) as f64).collect();
    let scaled: Vec<f64> = weights.iter().map(|w| 0.3 * w).collect();
    let fresh = toys::normal(30, 2, 4);
    for (method, kernel) in weighted_cases() {
        let fit = fit_of(&method, &kernel, 8);
        let off = apart(&weighted(&fit, &points, &weights), &weighted(&fit, &points, &scaled), &fresh);
        assert!(off < near(&method), "{method} {kernel}: {off:e}");
    }
}

#[test]
fn rows_of_weight_zero_are_ignored() {
    let points = toys::normal(60, 2, 3);
    let kept: Vec<usize> = (0..60).filter(|i| i % 3 != 0).collect();
    let weights: Vec<f64> = (0..60).map(|i| if i % 3 == 0 { 0.0 } else { 1.0 }).collect();
    let some = Points::new(2, kept.iter().flat_map(|&i| points.row(i).to_vec()).collect::<Vec<f64>>()).unwrap();
    for (method, kernel) in weighted_cases() {
        let fit = fit_of(&method, &kernel, 8);
        let (found, expected) = (weighted(&fit, &points, &weights), fit.run(&some, None, &()).unwrap());
        assert!(apart(&expected, &found, &some) < near(&method), "{method} {kernel}");
        let rows = expected.parts().rows.as_ref().map(|rows| rows.iter().map(|&i| kept[i]).collect::<Vec<_>>());
        assert_eq!(found.parts().rows, rows, "{method} {kernel}");
    }
}

#[test]
fn invalid_weights_are_rejected() {
    let points = toys::normal(40, 2, 0);
    let message = |method: &Spec, weights: &[f64]| {
        let fit = fit_of(method, &default_kernel(method), 5);
        fit.train(Training { weights: Some(weights), ..Training::of(&points) }).err().map(|error| error.to_string())
    };
    let able = METHODS.iter().find(|entry| entry.capabilities.weights).unwrap().name;
    let of_able = |weights: &[f64]| message(&Spec::new(able), weights).unwrap();
    assert_eq!(of_able(&[1.0; 3]), "sample_weight = 3 weights: expected one for each of the 40 rows");
    let mut negative = [1.0; 40];
    negative[7] = -2.0;
    assert_eq!(of_able(&negative), "sample_weight = -2 (row 7, from 0): expected finite numbers ≥ 0");
    assert_eq!(of_able(&[0.0; 40]), "sample_weight = 0 everywhere: expected at least two rows that count");
    for entry in METHODS.iter().filter(|entry| !entry.capabilities.weights && !entry.capabilities.labelled) {
        let error = message(&Spec::new(entry.name), &[1.0; 40]).unwrap();
        assert!(error.starts_with("sample_weight = given: expected no weights") && error.contains(able), "{error}");
    }
}
