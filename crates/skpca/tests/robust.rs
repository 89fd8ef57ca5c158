//! Regression tests: data and parameters on which fits once hung, lost all precision, or silently gave wrong results.

use std::sync::atomic::{AtomicUsize, Ordering};

use skpca::method::{Entry, METHODS};
use skpca::{Error, Fit, Model, Points, Random, Result, Scaling, Spec, Target, Watch};

fn gaussian(n: usize, d: usize, seed: u64) -> Points<'static> {
    // Sums of uniform numbers are close enough to normal.
    let mut random = Random::numbered(seed, 0);
    let mut normal = || (0..12).map(|_| random.sample(1 << 20, 1)[0] as f64 / f64::from(1 << 20)).sum::<f64>() - 6.0;
    Points::new(d, (0..n * d).map(|_| normal()).collect::<Vec<_>>()).unwrap()
}

/// Returns three classes of flowers similar to Fisher's iris data; two of them overlap.
fn flowers() -> Points<'static> {
    let centres = [[5.0, 3.4, 1.5, 0.2], [5.9, 2.8, 4.3, 1.3], [6.6, 3.0, 5.6, 2.0]];
    let noise = gaussian(150, 4, 1);
    let value = |(i, row): (usize, &[f64])| -> Vec<f64> {
        // Rounded to a tenth, so that some rows are equal.
        row.iter().zip(centres[i / 50]).map(|(v, c)| ((c + 0.3 * v) * 10.0).round() / 10.0).collect()
    };
    Points::new(4, noise.rows().enumerate().flat_map(value).collect::<Vec<_>>()).unwrap()
}

fn fit(method: &str, kernel: &str, q: usize, target: Option<Target>) -> Fit {
    Fit {
        method: method.parse().unwrap(),
        kernel: kernel.parse().unwrap(),
        components: Some(q),
        target,
        ..Fit::default()
    }
}

/// Counts the progress reports of a fit.
struct Reports(AtomicUsize);

impl Watch for Reports {
    fn at(&self, _: &str, _: f64) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed);
        true
    }
}

fn counted(fit: &Fit, points: &Points) -> (Result<Model>, usize) {
    let reports = Reports(AtomicUsize::new(0));
    let model = fit.run(points, None, &reports);
    (model, reports.0.into_inner())
}

#[test]
fn components_that_a_penalty_empties_are_left_out() {
    for points in [flowers(), gaussian(120, 5, 2)] {
        for method in ["l1,refit=false", "elastic-net,refit=false", "threshold,refit=false"] {
            for q in [2, 5, 8] {
                for fidelity in [0.5, 0.95] {
                    let fit = fit(method, "rbf", q, Some(Target::Fidelity(fidelity)));
                    let model = fit.run(&points, None, &()).unwrap_or_else(|e| panic!("{method} {q} {fidelity}: {e}"));
                    assert!(model.parts().fidelity >= fidelity, "{method} {q} {fidelity}: {}", model.parts().fidelity);
                }
            }
        }
    }
    let grid: Vec<f64> = (0..49).flat_map(|i| [f64::from(i % 7) - 3.0, f64::from(i / 7) - 3.0]).collect();
    let grid = Points::new(2, grid).unwrap();
    for target in [Target::Support(6), Target::Fidelity(0.9)] {
        let model = fit("threshold,refit=false", "cosine", 4, Some(target)).run(&grid, None, &()).unwrap();
        assert!(model.parts().coefficients.col_iter().all(|a| a.iter().all(|v| v.is_finite())));
    }
}

/// Returns whether a method needs no labels and works with any kernel.
fn any_kernel(entry: &Entry) -> bool {
    !entry.capabilities.labelled && !entry.capabilities.linear
}

#[test]
fn kernel_values_that_overflow_are_an_error() {
    let points = Points::new(2, vec![1e200, -1e200, 1e200, 1e200, -1e200, 2e200, 0.0, 1.0]).unwrap();
    for entry in METHODS.iter().filter(|entry| any_kernel(entry)) {
        let fit = Fit { scaling: Scaling::None, ..fit(entry.name, "sigmoid,gamma=1", 1, None) };
        let error = fit.run(&points, None, &()).err();
        assert!(matches!(error, Some(Error::Overflow { .. })), "{}: {error:?}", entry.name);
    }
}

#[test]
fn features_of_very_different_norms_keep_their_precision() {
    // Powers of 64: values from 1 to 1e19, and cosines of rows whose inverse norm overflows.
    let powers = Points::new(1, vec![-1.0, -0.3, 0.5, 1.0]).unwrap();
    let tiny = Points::new(2, vec![2e-323, 0.0, -4e-323, 1e-322, 1.0, 2.0, 3e-310, -1e-320]).unwrap();
    // A mean that is much longer than one of the points.
    let uneven = Points::new(1, vec![3.3e8, -410.0]).unwrap();
    let cases = [(powers, "polynomial,degree=64,gamma=1"), (tiny, "cosine"), (uneven, "linear")];
    for (points, kernel) in cases {
        let fit = Fit { scaling: Scaling::None, ..fit("greedy,gain=top", kernel, 1, None) };
        let model = fit.run(&points, None, &()).unwrap();
        let parts = model.parts();
        for (z, mu) in parts.support.rows().zip(&parts.mu) {
            let values = points.rows().map(|x| model.kernel().eval(x, z));
            let expected = values.sum::<f64>() / points.n() as f64;
            assert!((mu - expected).abs() <= 1e-12 * expected.abs(), "{kernel}: {mu} {expected}");
        }
        let mut bytes = Vec::new();
        skpca::format::write(&model, &mut bytes).unwrap();
        assert!(skpca::format::read(&bytes[..]).is_ok(), "{kernel}");
    }
}

#[test]
fn no_model_exceeds_fidelity_1_under_an_indefinite_kernel() {
    let mut models = 0;
    for seed in 0..60 {
        let points = gaussian(2 + seed as usize % 4, 2, seed);
        for kernel in ["sigmoid,gamma=1,coef0=0", "sigmoid,gamma=0.1,coef0=1", "sigmoid,gamma=2,coef0=-1"] {
            for entry in METHODS.iter().filter(|entry| any_kernel(entry)) {
                match fit(entry.name, kernel, 2, None).run(&points, None, &()) {
                    Ok(model) => {
                        models += 1;
                        let fidelity = model.parts().fidelity;
                        assert!(fidelity <= 1.0 + 1e-6, "{} {kernel} {seed}: {fidelity}", entry.name);
                    }
                    Err(Error::NotPositive { .. } | Error::NoVariance { .. }) => {}
                    Err(error) => panic!("{} {kernel} {seed}: {error}", entry.name),
                }
            }
        }
    }
    assert!(models > 0, "some of these tables have a positive kernel matrix");
}

#[test]
fn fidelity_1_takes_not_much_longer_than_fidelity_0_999() {
    let points = flowers();
    for entry in METHODS.iter().filter(|entry| any_kernel(entry) && !entry.capabilities.keeps_all_rows) {
        let (most, few) = counted(&fit(entry.name, "rbf", 10, Some(Target::Fidelity(0.999))), &points);
        let (all, many) = counted(&fit(entry.name, "rbf", 10, Some(Target::Fidelity(1.0))), &points);
        let (most, all) = (most.unwrap(), all.unwrap());
        assert!(all.m() >= most.m(), "{}: {} {}", entry.name, all.m(), most.m());
        assert!(all.parts().fidelity > 1.0 - 1e-6, "{}: {}", entry.name, all.parts().fidelity);
        assert!(many <= 10 * few + 1000, "{}: {many} reports, {few} for 0.999", entry.name);
    }
}

#[test]
fn absurdly_large_counts_are_rejected() {
    let points = gaussian(30, 2, 3);
    for method in ["greedy,exchanges=1e15", "expansion,steps=1e15", "expansion,restarts=1e12", "l1,alternations=1e15"] {
        let error = fit(method, "rbf", 2, None).run(&points, None, &()).err().map(|e| e.to_string());
        assert!(error.as_ref().is_some_and(|e| e.contains("at most 1000000")), "{method}: {error:?}");
    }
    let spec: Spec = "greedy,exchanges=1000000".parse().unwrap();
    assert!(Fit { method: spec, ..Fit::default() }.run(&points, None, &()).is_ok());
}

#[test]
fn points_that_capture_nothing_are_not_moved() {
    // Under a narrow kernel the centres of a coarse grid are far from all rows; under a wide one two rows hardly
    // differ.
    let grid = Points::new(2, (0..12).flat_map(|i| [f64::from(i % 4), f64::from(i / 4)]).collect::<Vec<_>>()).unwrap();
    let pair = Points::new(1, vec![0.0, 1.0]).unwrap();
    for (points, kernel) in [(grid, "rbf,gamma=2000"), (pair, "rbf,gamma=1e-12")] {
        for method in ["expansion", "expansion,restarts=3"] {
            let fit = Fit { scaling: Scaling::None, ..fit(method, kernel, 1, Some(Target::Support(2))) };
            match fit.run(&points, None, &()) {
                Ok(model) => assert!(model.parts().fidelity > 0.0),
                Err(error) => assert!(matches!(error, Error::NoVariance { .. }), "{method} {kernel}: {error}"),
            }
        }
    }
}

/// All rows are orthogonal in feature space, and there are nearly as many components: every penalty is a tie, and the
/// cost of a round is cubic in the number of components.
#[test]
fn a_search_takes_a_bounded_amount_of_work() {
    let points = gaussian(200, 2, 4);
    for method in ["l1", "elastic-net"] {
        let (model, reports) = counted(&fit(method, "laplacian,gamma=1e200", 190, Some(Target::Support(131))), &points);
        let model = model.unwrap();
        assert!(reports < 150, "{method}: {reports} reports");
        assert!(model.m() <= 131, "{method}: {}", model.m());
        let report = &model.parts().report;
        assert!(report.converged || report.gap.is_some_and(|gap| gap < 1e-6), "{method}: {report:?}");
    }
}

#[test]
fn a_search_ends_when_a_penalty_keeps_every_row() {
    let points = gaussian(60, 4, 5);
    let method = "elastic-net,refit=false,alternations=20";
    let (model, reports) = counted(&fit(method, "rbf", 10, Some(Target::Fidelity(0.99999))), &points);
    let model = model.unwrap();
    assert!(model.m() == 60 && model.parts().fidelity > 1.0 - 1e-9, "{} {}", model.m(), model.parts().fidelity);
    assert!(reports < 300, "{reports} reports");
}
