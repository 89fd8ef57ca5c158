//! Labelled data: the conformal kernel and discriminant directions separate classes as defined.

use skpca::kernel::{self, Kernel};
use skpca::{Error, Fit, Labels, Model, Points, Precision, Scaling, Target, format, toys};

/// Returns two classes, one around the other, and their labels.
fn rings() -> (Points<'static>, Labels) {
    let noise = toys::normal(120, 2, 3);
    let radius = |i: usize| if i.is_multiple_of(3) { 0.4 } else { 1.2 };
    let row = |i: usize| [radius(i) * (i as f64).cos(), radius(i) * (i as f64).sin()];
    let values = (0..120).flat_map(|i| [0, 1].map(|k| row(i)[k] + 0.1 * noise.row(i)[k]));
    let points = Points::new(2, values.collect::<Vec<_>>()).unwrap();
    (points, Labels::new((0..120).map(|i| i % 3 == 0)).unwrap())
}

fn fit_of(method: &str, kernel: &str, m: usize) -> Fit {
    Fit {
        method: method.parse().unwrap(),
        kernel: kernel.parse().unwrap(),
        components: Some(3),
        target: Some(Target::Support(m)),
        scaling: Scaling::None,
        ..Fit::default()
    }
}

fn fit(method: &str, kernel: &str, m: usize) -> Model {
    let (points, labels) = rings();
    fit_of(method, kernel, m).run_labelled(&points, &labels, None, &()).unwrap()
}

/// Returns J by its definition: between-class scatter divided by within-class scatter in the kernel's feature space.
fn separation(kernel: &dyn Kernel, points: &Points, labels: &Labels) -> f64 {
    apart(|i, j| kernel.eval(points.row(i), points.row(j)), labels, points.n())
}

fn apart(k: impl Fn(usize, usize) -> f64, labels: &Labels, n: usize) -> f64 {
    let (mut between, mut within) = (0.0, 0.0);
    let counts: Vec<f64> =
        (0..labels.classes()).map(|class| (0..n).filter(|&i| labels.of(i) == class).count() as f64).collect();
    for i in 0..n {
        within += k(i, i);
        for j in 0..n {
            let k = k(i, j);
            between -= k / n as f64;
            if labels.of(i) == labels.of(j) {
                between += k / counts[labels.of(i)];
                within -= k / counts[labels.of(i)];
            }
        }
    }
    between / within
}

fn separated(model: &Model) -> f64 {
    let (points, labels) = rings();
    separation(model.kernel().as_ref(), &points, &labels)
}

#[test]
fn no_factor_separates_better_than_the_exact_one() {
    let (points, labels) = rings();
    let exact = fit("greedy", "conformal,gamma=1,delta=2,regularisation=1e-9", 10);
    let best = separated(&exact);
    let plain =
        separation(kernel::build(&"rbf,gamma=1".parse().unwrap(), &points, 0).unwrap().as_ref(), &points, &labels);
    let positive = separated(&fit("greedy", "conformal,gamma=1,delta=2,solver=positive,regularisation=1e-9", 10));
    let short = separated(&fit("greedy", "conformal,gamma=1,delta=2,solver=iteration,rounds=20", 10));
    let long = separated(&fit("greedy", "conformal,gamma=1,delta=2,solver=iteration,rounds=2000,rate=0.1", 10));
    assert!(plain < short && short < long && long < best, "{plain} {short} {long} {best}");
    assert!(plain < positive && positive < best, "{plain} {positive} {best}");
    // At the maximum every small change of a coefficient decreases J.
    let spec = exact.parts().kernel.clone();
    let weights: Vec<f64> = spec.fields["weights"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
    for at in 0..weights.len() {
        for change in [-0.01, 0.01] {
            let mut moved = weights.clone();
            moved[at] += change * weights.iter().map(|w| w.abs()).fold(0.0, f64::max);
            let moved = kernel::build(&spec.clone().with("weights", moved), &points, 0).unwrap();
            assert!(separation(moved.as_ref(), &points, &labels) < best, "{at} {change}");
        }
    }
    // The J in the report is correct.
    let note = &exact.parts().report.notes[0];
    assert!(note.contains(&format!("J = {best:.4} under the conformal kernel, {plain:.4} under rbf")), "{note}");
}

#[test]
fn a_positive_factor_is_positive_everywhere_and_a_factor_has_mean_square_one() {
    let (points, _) = rings();
    let f = |model: &Model, x: &[f64]| {
        let base = kernel::build(&"rbf,gamma=1".parse().unwrap(), &points, 0).unwrap();
        // k′(x, x) = f(x)², and the sign of f(x) is that of k′(x, z) for a z where f is positive.
        let k = |z: &[f64]| model.kernel().eval(x, z) / base.eval(x, z);
        (model.kernel().eval(x, x).sqrt(), k(points.row(0)))
    };
    let mean_square = |model: &Model| points.rows().map(|row| model.kernel().eval(row, row)).sum::<f64>() / 120.0;
    for solver in ["exact", "positive", "iteration"] {
        let model = fit("greedy", &format!("conformal,gamma=1,delta=2,solver={solver}"), 8);
        assert!((mean_square(&model) - 1.0).abs() < 1e-12, "{solver}");
    }
    let model = fit("greedy", "conformal,gamma=1,delta=2,solver=positive", 8);
    let values: Vec<f64> = points.rows().map(|row| f(&model, row).0).collect();
    assert!(points.rows().all(|row| f(&model, row).1 > 0.0));
    let (low, high) = values.iter().fold((f64::MAX, 0.0_f64), |(low, high), v| (low.min(*v), high.max(*v)));
    assert!(low > 0.0 && high / low <= 11.0, "{low} {high}");
    assert!(high / low > 1.2, "it does something");
    // The exact factor changes sign on these rings.
    let exact = fit("greedy", "conformal,gamma=1,delta=2", 8);
    let signs: Vec<bool> = points.rows().map(|row| f(&exact, row).1 > 0.0).collect();
    assert!(signs.contains(&true) && signs.contains(&false));
}

#[test]
fn every_base_kernel_and_method_works_with_a_factor_and_files_restore_it() {
    let (points, _) = rings();
    for base in kernel::KERNELS.iter().filter(|entry| !entry.capabilities.labelled) {
        let gamma = if base.name == "sigmoid" { ",gamma=1e-7,coef0=0" } else { "" };
        for method in ["greedy", "expansion", "landmarks", "exact", "l21"] {
            let kernel = format!("conformal,base={}{gamma}", base.name);
            let mut fit_of = fit_of(method, &kernel, 6);
            fit_of.target = fit_of.target.filter(|_| method != "exact");
            let (points_, labels) = rings();
            let model =
                fit_of.run_labelled(&points_, &labels, None, &()).unwrap_or_else(|e| panic!("{method} {kernel}: {e}"));
            let mut bytes = Vec::new();
            format::write(&model, &mut bytes).unwrap();
            let again = format::read(&bytes[..]).unwrap();
            for score in [false, true] {
                let values = |model: &Model| {
                    if score {
                        model.score(&points, Precision::Double).unwrap()
                    } else {
                        model.transform(&points, Precision::Double).unwrap()
                    }
                };
                assert_eq!(values(&model), values(&again), "{method} {kernel}");
            }
        }
    }
}

#[test]
fn labels_are_required_and_must_be_one_per_row() {
    let (points, labels) = rings();
    let message = |error: Error| error.to_string();
    let conformal = fit_of("greedy", "conformal", 5);
    assert_eq!(
        message(conformal.run(&points, None, &()).err().unwrap()),
        "kernel = conformal: expected labels with it: the class of each row"
    );
    assert_eq!(
        message(fit_of("discriminant", "rbf", 5).run(&points, None, &()).err().unwrap()),
        "method = discriminant: expected labels with it: the class of each row"
    );
    let few = points.slice(0..7).into_owned();
    assert_eq!(
        message(conformal.run_labelled(&few, &labels, None, &()).err().unwrap()),
        "labels = 120: expected one for each of the 7 rows"
    );
    assert_eq!(message(Labels::new([1, 1]).err().unwrap()), "labels = 1 class: expected two classes or more");
    let bases = kernel::KERNELS.iter().filter(|entry| !entry.capabilities.labelled).map(|entry| entry.name);
    let bases: Vec<&str> = bases.collect();
    assert_eq!(
        message(fit_of("greedy", "conformal,base=conformal", 5).check().err().unwrap()),
        format!("base = \"conformal\": expected {}", bases.join(" or "))
    );
    assert_eq!(
        message(fit_of("greedy", "conformal,gama=1", 5).check().err().unwrap()),
        "unknown kernel parameter 'gama': expected one of delta, solver, regularisation, base, gamma, sigma, width"
    );
    // Every row is its own class: there is no within-class scatter.
    let own = Labels::new(0..120).unwrap();
    for fit in [conformal, fit_of("discriminant", "rbf", 5)] {
        let error = fit.run_labelled(&points, &own, None, &()).err().unwrap();
        assert!(message(error).starts_with("there is nothing to fit: no class varies within itself"));
    }
}

#[test]
fn a_given_factor_needs_no_labels_but_points_of_its_width() {
    let (points, _) = rings();
    let learned = fit("greedy", "conformal", 5);
    let known = Fit { kernel: learned.parts().kernel.clone(), ..fit_of("greedy", "rbf", 5) };
    let model = known.run(&points, None, &()).unwrap();
    assert_eq!(model.parts().coefficients, learned.parts().coefficients);
    let error = known.run(&toys::normal(20, 3, 0), None, &()).err().unwrap();
    assert_eq!(error, Error::Width { found: 3, expected: 2 });
}

#[test]
fn discriminant_directions_maximise_fishers_ratio() {
    let (points, labels) = rings();
    let model = fit("discriminant,regularisation=1e-9", "rbf,gamma=1", 10);
    assert_eq!((model.q(), model.parts().fidelity > 0.9), (1, true));
    let notes = &model.parts().report.notes;
    assert!(notes.contains(&"3 components requested, 1 found: one fewer than classes".into()), "{notes:?}");
    let ratio = |coefficients: &[f64]| {
        let value = |x: &[f64]| -> f64 {
            let support = model.parts().support.rows();
            support.zip(coefficients).map(|(z, a)| a * model.kernel().eval(z, x)).sum()
        };
        let y: Vec<f64> = points.rows().map(value).collect();
        let mean = |class: Option<usize>| {
            let rows = || (0..y.len()).filter(|&i| class.is_none_or(|class| labels.of(i) == class));
            rows().map(|i| y[i]).sum::<f64>() / rows().count() as f64
        };
        let (overall, means) = (mean(None), [mean(Some(0)), mean(Some(1))]);
        let between: f64 = (0..y.len()).map(|i| (means[labels.of(i)] - overall).powi(2)).sum();
        between / (0..y.len()).map(|i| (y[i] - means[labels.of(i)]).powi(2)).sum::<f64>()
    };
    let found: Vec<f64> = model.parts().coefficients.col(0).iter().copied().collect();
    let best = ratio(&found);
    assert!((model.parts().report.objective.unwrap() / best - 1.0).abs() < 1e-5);
    let size = found.iter().fold(0.0_f64, |m, a| m.max(a.abs()));
    for at in 0..found.len() {
        for change in [-0.01, 0.01] {
            let mut moved = found.clone();
            moved[at] += change * size;
            assert!(ratio(&moved) < best, "{at} {change}");
        }
    }
}

#[test]
fn discriminant_directions_do_not_depend_on_centring() {
    let (points, labels) = rings();
    let features = |center| {
        // With all points, because the greedy choice of points does depend on centring.
        let fit = Fit { center: Some(center), ..fit_of("discriminant", "laplacian,gamma=1", 120) };
        fit.run_labelled(&points, &labels, None, &()).unwrap().transform(&points, Precision::Double).unwrap()
    };
    let (with, without) = (features(true), features(false));
    let shift = with[0] - without[0];
    let same = with.iter().zip(&without).all(|(a, b)| (a - b - shift).abs() < 1e-8);
    let mirrored = with.iter().zip(&without).all(|(a, b)| (a + b - with[0] - without[0]).abs() < 1e-8);
    assert!(same || mirrored);
}

#[test]
fn three_classes_give_two_directions_that_separate_them() {
    let points = toys::clusters(0);
    let labels = Labels::new((0..90).map(|i| i / 30)).unwrap();
    let fit = Fit { method: "discriminant".parse().unwrap(), ..Fit::default() };
    let model = fit.run_labelled(&points, &labels, None, &()).unwrap();
    assert_eq!(model.q(), 2);
    let y = model.transform(&points, Precision::Double).unwrap();
    let distance = |i: usize, j: usize| (y[2 * i] - y[2 * j]).hypot(y[2 * i + 1] - y[2 * j + 1]);
    let nearest = |i: usize| (0..90).filter(|&j| j != i).min_by(|&a, &b| distance(i, a).total_cmp(&distance(i, b)));
    assert!((0..90).all(|i| nearest(i).unwrap() / 30 == i / 30));
}

fn weights(model: &Model, field: &str) -> Vec<f64> {
    model.parts().kernel.fields[field].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

/// Returns f(x) by its definition, from the stored kernel.
fn factor(model: &Model, x: &[f64]) -> f64 {
    let (b, v) = (weights(model, "weights"), weights(model, "vectors"));
    let number = |field: &str| model.parts().kernel.fields[field].as_f64().unwrap();
    let bump = |v: &[f64]| (-number("delta") * x.iter().zip(v).map(|(a, b)| (a - b) * (a - b)).sum::<f64>()).exp();
    number("constant") + b.iter().zip(v.chunks_exact(x.len())).map(|(b, v)| b * bump(v)).sum::<f64>()
}

#[test]
fn centres_are_the_support_under_the_base_kernel_and_negative_signs_are_noted() {
    let (points, _) = rings();
    for method in ["greedy", "landmarks", "expansion"] {
        let model = fit(method, "conformal,gamma=1,delta=2", 9);
        let plain = fit_of(method, "rbf,gamma=1", 9).run(&points, None, &()).unwrap();
        assert_eq!(weights(&model, "vectors"), plain.parts().support.values(), "{method}");
        let f: Vec<f64> = points.rows().map(|row| factor(&model, row)).collect();
        assert!(f.iter().sum::<f64>() >= 0.0, "{method}");
        let negative = f.iter().filter(|f| **f < 0.0).count() as f64 / 1.2;
        let note = model.parts().report.notes.last().unwrap();
        assert!(
            note.ends_with(&format!("f is negative on {negative:.0} % of the rows")),
            "{method}: {note} {negative}"
        );
    }
}

/// More rows than f is learned from, sorted by class, with one class of a few rows.
#[test]
fn a_sample_of_the_rows_contains_all_classes() {
    let noise = toys::normal(4500, 2, 0);
    let class = |i: usize| if i < 5 { 2 } else { usize::from(i < 2200) };
    let shift = |i: usize| [3.0 * f64::from(class(i) == 1), 8.0 * f64::from(class(i) == 2)];
    let values: Vec<f64> = (0..4500).flat_map(|i| [0, 1].map(|k| noise.row(i)[k] + shift(i)[k])).collect();
    let points = Points::new(2, values).unwrap();
    let labels = Labels::new((0..4500).map(class)).unwrap();
    let run = |seed: u64| {
        let fit = Fit { seed, ..fit_of("landmarks", "conformal,gamma=0.2,delta=0.2", 12) };
        fit.run_labelled(&points, &labels, None, &()).unwrap()
    };
    let model = run(0);
    let f: Vec<f64> = points.rows().map(|row| factor(&model, row)).collect();
    let mean = f.iter().map(|f| f * f).sum::<f64>() / 4500.0;
    assert!((mean - 1.0).abs() < 0.02, "{mean}");
    let base = kernel::build(&"rbf,gamma=0.2".parse().unwrap(), &points, 0).unwrap();
    let apart = apart(|i, j| f[i] * f[j] * base.eval(points.row(i), points.row(j)), &labels, 4500);
    let note = model.parts().report.notes.last().unwrap();
    let stated: f64 = note.split("J = ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((stated / apart - 1.0).abs() < 0.03, "{stated} {apart}");
    assert_ne!(weights(&model, "weights"), weights(&run(1), "weights"));
}

#[test]
fn classes_without_variance_or_difference_are_rejected_by_every_solver() {
    let (points, _) = rings();
    let own = Labels::new(0..120).unwrap();
    for solver in ["exact", "positive", "iteration"] {
        let fit = fit_of("greedy", &format!("conformal,solver={solver}"), 5);
        let error = fit.run_labelled(&points, &own, None, &()).err().unwrap().to_string();
        assert!(error.contains("no class varies within itself"), "{solver}: {error}");
        // The same rows in both classes.
        let twice = Points::new(2, [points.values(), points.values()].concat()).unwrap();
        let labels = Labels::new((0..240).map(|i| i < 120)).unwrap();
        let error = fit.run_labelled(&twice, &labels, None, &()).err().unwrap().to_string();
        assert!(error.contains("the means of all classes coincide"), "{solver}: {error}");
    }
    let fit = Fit { target: Some(Target::Fidelity(0.9)), ..fit_of("discriminant", "cosine", 5) };
    assert!(fit.run_labelled(&points, &own, None, &()).is_err());
}

/// Two terms of opposite sign nearly cancel: rounding errors of f must not make the factorisation run forever.
#[test]
fn fits_with_a_cancelling_factor_terminate() {
    let points = toys::normal(400, 2, 5);
    for (weight, apart) in [(1e4, 1e-3), (1e10, 1e-3), (1e6, 1e-9)] {
        let kernel = "conformal".parse::<skpca::Spec>().unwrap();
        let kernel = kernel.with("delta", 0.5).with("constant", 0.0).with("gamma", 0.3);
        let kernel = kernel.with("weights", vec![weight, -weight]).with("vectors", vec![0.0, 0.0, apart, 0.0]);
        for method in ["landmarks", "greedy", "expansion", "exact", "l21"] {
            let target = (method != "exact").then_some(Target::Support(30));
            let fit = Fit { kernel: kernel.clone(), target, ..fit_of(method, "rbf", 30) };
            // Either a model or an error.
            let _ = fit.run(&points, None, &());
        }
    }
}

#[test]
fn few_directions_use_the_default_number_of_points() {
    let (points, labels) = rings();
    let run = |method: &str, components| {
        let target = Some(Target::Fidelity(0.95));
        let fit = Fit { components, target, ..fit_of(method, "rbf,gamma=1", 5) };
        fit.run_labelled(&points, &labels, None, &()).unwrap().m()
    };
    assert_eq!(run("discriminant", Some(1)), run("discriminant", None));
    assert!(run("discriminant", Some(1)) >= run("greedy", Some(10)));
}
