//! `landmarks` with every kind of sampling: which points are kept, how good they are, and reproducibility.

use std::collections::HashSet;

use skpca::{Fit, Model, Points, Scaling, Spec, Target, format, toys};

const DRAWN: [&str; 4] = ["auto", "pivoted", "uniform", "leverage"];
const M: usize = 12;

fn fit(method: &str, m: usize, seed: u64, points: &Points) -> Model {
    let fit = Fit {
        method: method.parse().unwrap(),
        kernel: Spec::new("rbf").with("gamma", 0.2),
        components: Some(3),
        target: Some(Target::Support(m)),
        scaling: Scaling::None,
        seed,
        ..Fit::default()
    };
    fit.run(points, None, &()).unwrap()
}

fn sampled(sampling: &str, steps: usize, m: usize, seed: u64, points: &Points) -> Model {
    fit(&format!("landmarks,sampling={sampling},steps={steps}"), m, seed, points)
}

#[test]
fn drawn_landmarks_are_rows_and_moved_ones_are_synthetic() {
    let points = toys::normal(400, 4, 0);
    let table: HashSet<Vec<u64>> = points.rows().map(|row| row.iter().map(|v| v.to_bits()).collect()).collect();
    let held = |model: &Model| {
        model
            .parts()
            .support
            .rows()
            .filter(|row| table.contains(&row.iter().map(|v| v.to_bits()).collect::<Vec<_>>()))
            .count()
    };
    for sampling in DRAWN {
        let model = sampled(sampling, 0, M, 0, &points);
        let rows = model.parts().rows.as_ref().unwrap_or_else(|| panic!("{sampling} keeps rows"));
        assert!(rows.len() == M && rows.windows(2).all(|pair| pair[0] < pair[1]), "{sampling}: {rows:?}");
        assert!(rows.iter().zip(model.parts().support.rows()).all(|(&i, row)| points.row(i) == row), "{sampling}");
    }
    for (sampling, steps) in DRAWN.map(|name| (name, 10)).into_iter().chain([("kmeans", 0), ("kmeans", 10)]) {
        let model = sampled(sampling, steps, M, 0, &points);
        assert!(model.parts().rows.is_none(), "{sampling} {steps}");
        assert_eq!((model.parts().support.n(), held(&model)), (M, 0), "{sampling} {steps}");
    }
}

#[test]
fn centres_capture_more_than_rows_and_optimised_points_more_than_either() {
    let points = toys::normal(400, 4, 0);
    let mean = |sampling: &str, steps: usize| {
        (0..4).map(|seed| sampled(sampling, steps, M, seed, &points).parts().fidelity).sum::<f64>() / 4.0
    };
    let centres = mean("kmeans", 0);
    for sampling in DRAWN {
        let (still, moved) = (mean(sampling, 0), mean(sampling, 10));
        assert!(still > 0.6 && still < centres, "{sampling}: {still}, centres {centres}");
        assert!(moved > still + 0.02 && moved <= 1.0 + 1e-9, "{sampling}: {still} to {moved}");
    }
    assert!(mean("kmeans", 10) > centres);
    let few = points.slice(0..40);
    for sampling in DRAWN.into_iter().chain(["kmeans"]) {
        let fidelity = sampled(sampling, 0, 40, 0, &few).parts().fidelity;
        assert!((fidelity - 1.0).abs() < 1e-9, "{sampling}: all rows are exact kernel PCA, not {fidelity}");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let points = toys::normal(400, 4, 0);
    for (sampling, steps) in DRAWN.into_iter().chain(["kmeans"]).flat_map(|name| [(name, 0), (name, 3)]) {
        let bytes = |threads: usize, seed: u64| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut bytes = Vec::new();
            format::write(&pool.install(|| sampled(sampling, steps, M, seed, &points)), &mut bytes).unwrap();
            bytes
        };
        let one = bytes(1, 5);
        assert!(one == bytes(3, 5), "{sampling} {steps}");
        assert!(one != bytes(1, 6), "{sampling} {steps}: another seed draws others");
    }
}

/// Twenty rows far from the others and from each other: rare rows have high leverage.
#[test]
fn leverage_sampling_draws_rare_rows_more_often_than_uniform_sampling() {
    let mut values = toys::normal(400, 2, 3).values().to_vec();
    (0..20).for_each(|i| values[2 * i..2 * i + 2].copy_from_slice(&[10.0 + 5.0 * i as f64, -10.0]));
    let points = Points::new(2, values).unwrap();
    let rare = |sampling: &str| -> usize {
        let count = |seed| {
            sampled(sampling, 0, 30, seed, &points).parts().rows.as_ref().unwrap().iter().filter(|i| **i < 20).count()
        };
        (0..5).map(count).sum()
    };
    let (leverage, uniform) = (rare("leverage"), rare("uniform"));
    assert!(leverage > 50 && uniform < 20, "{leverage} {uniform}");
}
