//! Sparse loadings: the published example, optimality checked by the definition, data and covariance, many rows.

use skpca::{Fit, Loadings, Points, Precision, Scaling, Spec, Target, toys};

/// Correlations of 180 pit props (Jeffers 1967): topdiam, length, moist, testsg, ovensg, ringtop, ringbut, bowmax,
/// bowdist, whorls, clear, knots, diaknot. In thousandths, below the diagonal.
const PITPROPS: [&[i32]; 13] = [
    &[],
    &[954],
    &[364, 297],
    &[342, 284, 882],
    &[-129, -118, -148, 220],
    &[313, 291, 153, 381, 364],
    &[496, 503, -29, 174, 296, 813],
    &[424, 419, -54, -59, 4, 90, 372],
    &[592, 648, 125, 137, -39, 211, 465, 482],
    &[545, 569, -81, -14, 37, 274, 679, 557, 526],
    &[84, 76, 162, 97, -91, -36, -113, 61, 85, -319],
    &[-19, -36, 220, 169, -145, 24, -232, -357, -127, -368, 29],
    &[134, 144, 126, 15, -208, -329, -424, -202, -76, -291, 7, 184],
];
/// Table 3 of Zou, Hastie & Tibshirani: non-zero loadings, and adjusted variances in per cent.
const COUNTS: [usize; 6] = [7, 4, 4, 1, 1, 1];
const ADJUSTED: [f64; 6] = [28.0, 14.0, 13.3, 7.4, 6.8, 6.2];

fn pitprops() -> Points<'static> {
    let entry = |i: usize, j: usize| match i.cmp(&j) {
        std::cmp::Ordering::Equal => 1.0,
        std::cmp::Ordering::Greater => f64::from(PITPROPS[i][j]) / 1000.0,
        std::cmp::Ordering::Less => f64::from(PITPROPS[j][i]) / 1000.0,
    };
    Points::new(13, (0..169).map(|k| entry(k / 13, k % 13)).collect::<Vec<f64>>()).unwrap()
}

fn fit(method: &str, q: usize) -> Fit {
    Fit {
        method: method.parse().unwrap(),
        kernel: Spec::new("linear"),
        components: Some(q),
        scaling: Scaling::None,
        ..Fit::default()
    }
}

/// Returns adjusted variances in per cent, rounded as in the paper.
fn printed(loadings: &Loadings) -> Vec<f64> {
    loadings.adjusted.iter().map(|v| (1000.0 * v / loadings.total).round() / 10.0).collect()
}

#[test]
fn pitprops_have_the_published_variance_with_the_same_number_of_loadings() {
    let matrix = pitprops();
    let counts = COUNTS.map(|count| count.to_string()).join(":");
    let loadings = fit(&format!("spca,nonzero={counts}"), 6).loadings_of_covariance(&matrix, &()).unwrap();
    assert_eq!(loadings.nonzero(), COUNTS);
    let found = printed(&loadings);
    assert!(found.iter().zip(ADJUSTED).all(|(found, published)| *found >= published), "{found:?}");
    let total = loadings.adjusted.iter().sum::<f64>() / loadings.total;
    assert!(total > 0.758, "{total}");
    assert!(loadings.report.converged && loadings.report.gap.unwrap() < 1e-10, "{:?}", loadings.report);
    assert!(loadings.fidelity > 0.92, "{}", loadings.fidelity);
}

#[test]
fn the_penalties_of_the_paper_give_its_table() {
    let method = "spca,ridge=1e-8,penalty=0.06:0.16:0.1:0.5:0.5:0.5,tolerance=1e-9,alternations=2000";
    let loadings = fit(method, 6).loadings_of_covariance(&pitprops(), &()).unwrap();
    assert_eq!(loadings.nonzero(), COUNTS);
    assert_eq!(printed(&loadings), ADJUSTED);
}

/// The optimality conditions of the last elastic nets, from the matrix alone. The coefficients b are not stored: b is
/// the loading times the length that minimises its objective.
#[test]
fn loadings_are_minima_of_their_elastic_nets() {
    let matrix = pitprops();
    for method in ["spca,nonzero=5", "spca,penalty=0.3", "spca,nonzero=3,sequential=true", "spca"] {
        let fit = fit(method, 4);
        let loadings = fit.loadings_of_covariance(&matrix, &()).unwrap();
        assert!(loadings.report.gap.unwrap() < 1e-9, "{method}: {:?}", loadings.report);
        assert!(loadings.report.converged, "{method}: {:?}", loadings.report);
        for v in loadings.vectors.col_iter() {
            assert!((v.norm_l2() - 1.0).abs() < 1e-12, "{method}");
        }
        if method == "spca" {
            assert!(loadings.fidelity >= 0.95 && loadings.fidelity < 0.96, "{}", loadings.fidelity);
        }
    }
}

/// Each loading maximises the variance captured by the span of all: no other vector on the same columns, near or far,
/// captures more together with the others.
#[test]
fn polished_loadings_maximise_captured_variance_on_their_columns() {
    let matrix = pitprops();
    let entry = |i: usize, j: usize| matrix.row(i)[j];
    let captured = |loadings: &[Vec<f64>]| {
        let mut basis: Vec<Vec<f64>> = Vec::new();
        for v in loadings {
            let mut left = v.clone();
            for b in &basis {
                let along: f64 = b.iter().zip(&left).map(|(b, v)| b * v).sum();
                left.iter_mut().zip(b).for_each(|(v, b)| *v -= along * b);
            }
            let norm = left.iter().map(|v| v * v).sum::<f64>().sqrt();
            basis.push(left.iter().map(|v| v / norm).collect());
        }
        let variance = |b: &Vec<f64>| (0..169).map(|k| b[k / 13] * entry(k / 13, k % 13) * b[k % 13]).sum::<f64>();
        basis.iter().map(variance).sum::<f64>()
    };
    for method in ["spca,nonzero=7:4:4:3", "spca,nonzero=5,sequential=true", "spca,penalty=0.3"] {
        let plain = fit(method, 4).loadings_of_covariance(&matrix, &()).unwrap();
        let polished = fit(&format!("{method},polish=true"), 4).loadings_of_covariance(&matrix, &()).unwrap();
        let places = |loadings: &Loadings| -> Vec<usize> {
            (0..52).filter(|&k| loadings.vectors[(k % 13, k / 13)] != 0.0).collect()
        };
        assert_eq!(places(&plain), places(&polished), "{method}");
        assert!(polished.captured > 1.002 * plain.captured, "{method}: {} {}", plain.captured, polished.captured);
        assert_eq!((polished.report.gap, polished.report.objective), (None, Some(polished.captured)));
        let columns: Vec<Vec<f64>> = (0..4).map(|k| polished.vectors.col_as_slice(k).to_vec()).collect();
        let most = captured(&columns);
        assert!((most - polished.captured).abs() < 1e-9, "{method}");
        let mut random = 0.5_f64;
        for k in 0..4 {
            for step in [1e-2, 0.1, 1.0] {
                let mut other = columns.clone();
                for v in other[k].iter_mut().filter(|v| **v != 0.0) {
                    random = 4.0 * random.max(1e-3) * (1.0 - random) % 0.9999;
                    *v += step * (random - 0.5);
                }
                assert!(captured(&other) <= most * (1.0 + 1e-4), "{method}: {k} {step}");
            }
        }
    }
}

#[test]
fn without_a_penalty_it_is_pca() {
    let matrix = pitprops();
    let all = fit("spca,nonzero=13,ridge=0", 3).loadings_of_covariance(&matrix, &()).unwrap();
    assert!((all.fidelity - 1.0).abs() < 1e-9, "{}", all.fidelity);
    let whole = Fit { target: Some(Target::Support(13)), ..fit("spca", 3) };
    let whole = whole.loadings_of_covariance(&matrix, &()).unwrap();
    assert!((whole.fidelity - 1.0).abs() < 1e-12);
    let few = Fit { target: Some(Target::Support(5)), ..fit("spca", 3) }.loadings_of_covariance(&matrix, &()).unwrap();
    let used = (0..13).filter(|&i| (0..few.vectors.ncols()).any(|k| few.vectors[(i, k)] != 0.0)).count();
    assert!((1..=5).contains(&used), "{used}");
}

#[test]
fn table_covariance_and_model_have_the_same_loadings() {
    let points = toys::normal(400, 6, 1);
    let mixed: Vec<f64> = points.rows().flat_map(|x| (0..6).map(|j| x[j] + 0.8 * x[(j + 1) % 6] + 5.0)).collect();
    let points = Points::new(6, mixed).unwrap();
    let mean: Vec<f64> = (0..6).map(|j| points.rows().map(|x| x[j]).sum::<f64>() / 400.0).collect();
    let each = |i: usize, j: usize| points.rows().map(|x| (x[i] - mean[i]) * (x[j] - mean[j])).sum::<f64>() / 400.0;
    let covariance = Points::new(6, (0..36).map(|k| each(k / 6, k % 6)).collect::<Vec<_>>()).unwrap();
    let fit = fit("spca,nonzero=4:2:3", 3);
    let (of_rows, of_matrix) =
        (fit.loadings(&points, &()).unwrap(), fit.loadings_of_covariance(&covariance, &()).unwrap());
    assert!((&of_rows.vectors - &of_matrix.vectors).norm_max() < 1e-9);
    assert!(of_rows.mean.iter().zip(&mean).all(|(a, b)| (a - b).abs() < 1e-12));
    let model = fit.run(&points, None, &()).unwrap();
    assert_eq!(model.parts().support.values().iter().filter(|v| **v != 0.0).count(), 9);
    let features = model.transform(&points, Precision::Double).unwrap();
    for (x, y) in points.rows().zip(features.chunks(3)) {
        for (k, y) in y.iter().enumerate() {
            let along: f64 = (0..6).map(|j| (x[j] - mean[j]) * of_rows.vectors[(j, k)]).sum();
            assert!((along.abs() - y.abs()).abs() < 1e-9, "{along} {y}");
        }
    }
    assert!((model.parts().fidelity - of_rows.fidelity).abs() < 1e-9);
}

#[test]
fn invalid_requests_are_rejected() {
    let matrix = pitprops();
    let message = |method: &str| fit(method, 3).loadings_of_covariance(&matrix, &()).err().unwrap().to_string();
    assert_eq!(message("spca,nonzero=14"), "nonzero = 14: expected at most the 13 columns there are");
    assert_eq!(message("spca,nonzero=4:3"), "nonzero = 2 numbers: expected one number or 3");
    assert_eq!(
        message("spca,nonzero=4,penalty=1"),
        "penalty = [1.0]: expected no penalty where nonzero says how many loadings there are"
    );
    assert!(message("spca,penalty=100").starts_with("there is nothing to fit: every loading is zero: the penalty"));
    let rbf = Fit { method: Spec::new("spca"), ..Fit::default() };
    assert_eq!(
        rbf.run(&toys::parabola(0), None, &()).err().unwrap().to_string(),
        "kernel = rbf: expected linear: spca looks at the columns of the table"
    );
}
