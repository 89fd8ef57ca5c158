//! Maximum likelihood against the paper's own two iterations, and properties of its results.

use crate::oracle::tipping::{Oracle, Update};
use faer::{Mat, Side};
use skpca::kernel;
use skpca::{Fit, Model, Parts, Points, Precision, Scaling, Spec, Target, toys};

/// Tipping's Figure 1: `exp(−‖x − x′‖²/r²)` with r = 0.25, σ = 0.25.
const CLUSTERS: &str = "rbf,gamma=16";
const NOISE: f64 = 0.0625;

fn fit(points: &Points, kernel: &str, method: &str, target: Option<Target>) -> Result<Model, skpca::Error> {
    let (method, kernel) = (method.parse()?, kernel.parse()?);
    Fit { method, kernel, components: Some(3), target, scaling: Scaling::None, ..Fit::default() }.run(points, None, &())
}

fn gram(points: &Points, kernel: &str) -> Mat<f64> {
    let kernel = kernel::build(&kernel.parse::<Spec>().unwrap(), points, 0).unwrap();
    Mat::from_fn(points.n(), points.n(), |i, j| kernel.eval(points.row(i), points.row(j)))
}

/// Returns L from the report, which states it per row and with the constant of the dimension.
fn likelihood(model: &Model) -> f64 {
    let (parts, density) = (model.parts(), model.parts().density.as_ref().unwrap());
    let constant = density.dimension as f64 * (std::f64::consts::TAU * density.noise).ln();
    parts.n as f64 * (parts.report.objective.unwrap() + 0.5 * constant)
}

#[test]
fn neither_of_the_papers_iterations_reaches_a_higher_likelihood() {
    let third: Vec<usize> = (0..500).step_by(5).collect();
    for (name, points, kernel, noise) in [
        ("clusters 0", toys::clusters(0), CLUSTERS, NOISE),
        ("clusters 1", toys::clusters(1), CLUSTERS, NOISE),
        ("clusters 0, less noise", toys::clusters(0), CLUSTERS, 0.01),
        ("parabola", toys::parabola(0).select(&third), "rbf,gamma=2", 0.01),
    ] {
        let model = fit(&points, kernel, &format!("likelihood,noise={noise}"), None).unwrap();
        assert!(model.parts().report.gap.unwrap() <= 1e-6 && model.parts().report.converged, "{name}");
        let ours = likelihood(&model);
        for update in [Update::Expectation, Update::FixedPoint] {
            let mut oracle = Oracle::new(gram(&points, kernel), noise);
            let mut last = oracle.likelihood();
            for _ in 0..5 {
                (0..60).for_each(|_| oracle.step(update));
                let now = oracle.likelihood();
                assert!(now >= last - 1e-9 * last.abs(), "{name}: the oracle climbs");
                last = now;
            }
            assert!(ours >= last - 1e-9 * last.abs(), "{name}: {ours} against {last}");
            if update == Update::FixedPoint {
                assert!(ours - last < 1e-3 * last.abs(), "{name}: {ours} against {last}: the same objective");
            }
        }
    }
}

/// Returns ρ of every point, computed from the model alone: `f_iᵀC⁻¹f_j = (k_ij − Σ_l a_l(x_i) a_l(x_j))/σ²`.
fn ratios(model: &Model, points: &Points) -> Vec<f64> {
    let density = model.parts().density.as_ref().unwrap();
    let (n, m) = (points.n(), model.m());
    let eval = |x: &[f64], z: &[f64]| model.kernel().eval(x, z);
    let k = Mat::from_fn(n, m, |i, j| eval(points.row(i), model.parts().support.row(j)));
    let along = &k * &density.axes;
    let inner = Mat::from_fn(n, n, |i, j| {
        let removed: f64 = (0..along.ncols()).map(|l| along[(i, l)] * along[(j, l)]).sum();
        (eval(points.row(i), points.row(j)) - removed) / density.noise
    });
    (0..n).map(|i| inner.row(i).squared_norm_l2() / (n as f64 * inner[(i, i)])).collect()
}

#[test]
fn the_optimality_conditions_hold_when_recomputed_from_the_model() {
    for (points, kernel) in [
        (toys::clusters(2), CLUSTERS),
        (toys::parabola(1), "rbf"),
        (toys::parabola(1), "laplacian"),
        (toys::normal(200, 3, 0), "polynomial"),
    ] {
        for fraction in [0.5, 0.1, 0.02] {
            let model = fit(&points, kernel, &format!("likelihood,fraction={fraction}"), None).unwrap();
            let rows = model.parts().rows.as_ref().unwrap();
            // Some of the polynomial's points depend on others: they have a weight but are not kept.
            for (i, ratio) in ratios(&model, &points).into_iter().enumerate() {
                match rows.binary_search(&i) {
                    Ok(_) => assert!((ratio - 1.0).abs() < 1e-6, "{kernel} {fraction}: active {i} {ratio}"),
                    Err(_) => assert!(ratio < 1.0 + 1e-6, "{kernel} {fraction}: {i} {ratio}"),
                }
            }
        }
    }
}

#[test]
fn above_the_largest_noise_nothing_is_kept_and_just_below_one_point() {
    let points = toys::clusters(4);
    let k = gram(&points, CLUSTERS);
    let n = points.n();
    let most = (0..n).map(|i| k.row(i).squared_norm_l2() / (n as f64 * k[(i, i)])).fold(0.0, f64::max);
    let below = fit(&points, CLUSTERS, &format!("likelihood,noise={}", 0.999 * most), None).unwrap();
    assert_eq!(below.m(), 1);
    let above = fit(&points, CLUSTERS, &format!("likelihood,noise={}", 1.001 * most), None).err().unwrap();
    let message = format!("a noise of {:.6e} selects no point: it has to be below {most:.6e}", 1.001 * most);
    assert!(above.to_string().contains(&message), "{above}");
}

#[test]
fn every_number_of_points_is_reached_or_noted() {
    let points = toys::clusters(0);
    for m in 1..=20 {
        let model = fit(&points, CLUSTERS, "likelihood", Some(Target::Support(m))).unwrap();
        let told = model.parts().report.notes.iter().any(|note| note.contains("support points requested"));
        assert!(model.m() == m || (model.m() < m && told), "{m}: {}", model.m());
        assert!(model.m() + 1 >= m, "{m}: {}", model.m());
        assert!(model.parts().report.converged, "{m}");
    }
}

/// The paper's own components are eigenvectors of C: `C⁻¹v = v/(λ + σ²)`, checked at every point.
#[test]
fn without_refit_the_components_are_the_principal_axes() {
    let points = toys::clusters(3);
    let model = fit(&points, CLUSTERS, &format!("likelihood,noise={NOISE},refit=false"), None).unwrap();
    let parts = model.parts();
    let density = parts.density.as_ref().unwrap();
    let features = model.transform(&points, Precision::Double).unwrap();
    let kernel = model.kernel();
    let cross = |a: &Points, b: &Points| Mat::from_fn(a.n(), b.n(), |i, j| kernel.eval(a.row(i), b.row(j)));
    let along = &cross(&points, &parts.support) * &density.axes;
    let inner = density.axes.transpose() * &cross(&parts.support, &parts.support) * &parts.coefficients;
    let mut last = 0.0;
    for k in 0..model.q() {
        let shares: Vec<f64> = (0..points.n())
            .filter(|i| features[i * model.q() + k].abs() > 1e-3)
            .map(|i| {
                let v = features[i * model.q() + k];
                let removed: f64 = (0..along.ncols()).map(|l| along[(i, l)] * inner[(l, k)]).sum();
                (v - removed) / v
            })
            .collect();
        let share = shares[0];
        assert!(shares.len() > 20 && shares.iter().all(|s| (s - share).abs() < 1e-8), "{k}: {shares:?}");
        // σ²/(λ + σ²): the leading axes first.
        assert!(share >= last && share < 1.0, "{k}: {share} after {last}");
        last = share;
    }
    // Orthonormal, and the score is the reconstruction error (18).
    let scores = model.score(&points, Precision::Double).unwrap();
    for (i, score) in scores.iter().enumerate() {
        let squares: f64 = features[i * model.q()..(i + 1) * model.q()].iter().map(|y| y * y).sum();
        assert!((score - (1.0 - squares)).abs() < 1e-9, "{i}");
    }
}

/// With the linear kernel feature space is the plane, and the density an ordinary Gaussian.
#[test]
fn the_log_likelihood_of_new_rows_is_that_of_the_gaussian() {
    let (points, new) = (toys::normal(150, 3, 1), toys::normal(40, 3, 2));
    let model = fit(&points, "linear", "likelihood,noise=0.3", None).unwrap();
    let parts = model.parts();
    let density = parts.density.as_ref().unwrap();
    let x = Mat::from_fn(model.m(), 3, |i, j| parts.support.row(i)[j]);
    let axes = x.transpose() * &density.axes;
    let precision = (Mat::<f64>::identity(3, 3) - &axes * axes.transpose()) * faer::Scale(1.0 / density.noise);
    let determinant = precision.determinant();
    let found = model.log_likelihood(&new, Precision::Double).unwrap();
    for (i, found) in found.iter().enumerate() {
        let y = Mat::from_fn(3, 1, |j, _| new.row(i)[j]);
        let square = (y.transpose() * &precision * &y)[(0, 0)];
        let expected = -0.5 * (3.0 * std::f64::consts::TAU.ln() - determinant.ln() + square);
        assert!((found - expected).abs() < 1e-8, "{i}: {found} {expected}");
    }
    let train = model.log_likelihood(&points, Precision::Double).unwrap();
    let mean = train.iter().sum::<f64>() / points.n() as f64;
    assert!((mean - parts.report.objective.unwrap()).abs() < 1e-9, "{mean} {:?}", parts.report.objective);
    // The optimal covariance is that of the data with its small eigenvalues raised to the noise.
    let t = Mat::from_fn(3, 3, |a, b| points.rows().map(|r| r[a] * r[b]).sum::<f64>() / points.n() as f64);
    let values = t.self_adjoint_eigenvalues(Side::Lower).unwrap();
    let best: f64 = values.iter().map(|v| (std::f64::consts::TAU * v.max(0.3)).ln() + v / v.max(0.3)).sum();
    assert!(mean <= -0.5 * best + 1e-12, "{mean} against {}", -0.5 * best);
    assert!(mean > -0.5 * best - 0.01, "{mean} against {}", -0.5 * best);
}

#[test]
fn centring_follows_the_request() {
    let points = toys::clusters(5);
    let run = |center: Option<bool>| {
        let (method, kernel) = (Spec::new("likelihood").with("fraction", 0.1), CLUSTERS.parse().unwrap());
        let fit = Fit { method, kernel, center, components: Some(2), scaling: Scaling::None, ..Fit::default() };
        fit.run(&points, None, &()).unwrap()
    };
    // Everything except the request.
    let found = |center| Parts { request: None, ..run(center).parts().clone() };
    assert!(!found(None).center && found(None) == found(Some(false)));
    let centred = run(Some(true));
    assert!(centred.parts().center);
    let features = centred.transform(&points, Precision::Double).unwrap();
    assert!(features.iter().step_by(2).sum::<f64>().abs() < 1e-9);
    // The mean log-likelihood is the maximised objective, except for the part of the mean outside the support's span.
    let mean = centred.log_likelihood(&points, Precision::Double).unwrap().iter().sum::<f64>() / points.n() as f64;
    let noise = centred.parts().density.as_ref().unwrap().noise;
    let lost = 0.5 * centred.parts().mean_lost / noise;
    let report = centred.parts().report.objective.unwrap();
    assert!((mean - report).abs() <= lost + 1e-9, "{mean} {report} {lost}");
}

#[test]
fn invalid_parameters_and_other_methods_are_rejected() {
    let points = toys::clusters(0);
    for (method, message) in [
        ("likelihood,noise=0", "noise = 0.0: expected a number above 0"),
        ("likelihood,noise=1,fraction=0.5", "fraction = 0.5: expected this or noise, not both"),
        (
            "likelihood,penalty=1",
            "unknown method parameter 'penalty': expected one of noise, fraction, refit, tolerance, rank",
        ),
    ] {
        assert_eq!(fit(&points, CLUSTERS, method, None).err().unwrap().to_string(), message);
    }
    let message = fit(&points, CLUSTERS, "likelihood,noise=0.1", Some(Target::Support(3))).err().unwrap().to_string();
    assert_eq!(message, "support = 3: expected a target or noise (or fraction), not both");
    let other = fit(&points, CLUSTERS, "landmarks", Some(Target::Support(3))).unwrap();
    let message = other.log_likelihood(&points, Precision::Double).err().unwrap().to_string();
    assert_eq!(message, "method = landmarks: expected likelihood: no other has one");
}

/// The residual of the factor counts as noise of the model.
#[test]
fn the_objective_is_the_mean_log_likelihood_at_any_rank() {
    let points = toys::parabola(3);
    let model = fit(&points, "rbf,gamma=4", "likelihood,noise=0.02,rank=15", None).unwrap();
    let mean = model.log_likelihood(&points, Precision::Double).unwrap().iter().sum::<f64>() / points.n() as f64;
    let objective = model.parts().report.objective.unwrap();
    let stop = skpca::Stop { rank: 15, residual: 0.0 };
    let factor = skpca::Factor::pivoted(model.kernel(), &points, stop, 0, &()).unwrap();
    let outside = 0.5 * factor.residual_trace / 0.02 / points.n() as f64;
    // Weights are fitted to the factor, but the log-likelihood uses the exact kernel, so the two differ slightly.
    assert!((mean - objective).abs() < 0.3 * outside, "{mean} {objective} {outside}");
}

#[test]
fn a_target_fidelity_is_reached_with_about_the_fewest_points() {
    let points = toys::parabola(5);
    let found = fit(&points, "rbf,gamma=2", "likelihood", Some(Target::Fidelity(0.95))).unwrap();
    assert!(found.parts().fidelity >= 0.95);
    let noise = found.parts().density.as_ref().unwrap().noise;
    let sparser = fit(&points, "rbf,gamma=2", &format!("likelihood,noise={}", 1.2 * noise), None).unwrap();
    assert!(sparser.parts().fidelity < 0.95, "{} with {} points", sparser.parts().fidelity, sparser.m());
}

#[test]
fn without_refit_there_are_as_many_components_as_points() {
    let points = toys::clusters(6);
    let method = format!("likelihood,noise={NOISE},refit=false").parse().unwrap();
    let kernel = CLUSTERS.parse().unwrap();
    let fit = Fit { method, kernel, components: Some(30), scaling: Scaling::None, ..Fit::default() };
    let model = fit.run(&points, None, &()).unwrap();
    assert!(model.q() == model.m() && model.m() > 3, "{} {}", model.q(), model.m());
}

#[test]
fn equal_and_collinear_rows_get_one_weight() {
    let thrice: Vec<usize> = (0..270).map(|i| i % 90).collect();
    let points = toys::clusters(1).select(&thrice);
    let model = fit(&points, CLUSTERS, "likelihood,noise=0.01", None).unwrap();
    let report = &model.parts().report;
    assert!(report.converged && report.chosen == model.m(), "{report:?}");
    let line = Points::new(1, (1..60).map(f64::from).collect::<Vec<_>>()).unwrap();
    let model = fit(&line, "linear", "likelihood,noise=0.01", None).unwrap();
    assert_eq!(model.parts().report.chosen, 1);
}
