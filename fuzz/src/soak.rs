//! Small fits and updates for long runs, as in a service.

use skpca::{Fit, Learning, Online, Points, Precision, Random, Scaling, Spec, Target, toys};

/// Fits twelve rows, with each method and kernel in turn, and scores them.
pub fn fit(number: u64) {
    let methods = ["landmarks", "expansion", "l21", "greedy", "energy", "threshold"];
    let kernels = ["rbf", "laplacian", "linear", "cosine", "polynomial,degree=2"];
    let mut random = Random::numbered(number, 5);
    let values: Vec<f64> = (0..24).map(|_| random.below(1000) as f64 / 100.0).collect();
    let points = Points::new(2, values).expect("finite numbers");
    let fit = Fit {
        method: Spec::new(methods[number as usize % methods.len()]),
        kernel: kernels[number as usize / 7 % kernels.len()].parse().expect("a kernel"),
        components: Some(2),
        target: Some(Target::Support(3)),
        scaling: Scaling::None,
        seed: number,
        ..Fit::default()
    };
    if let Ok(model) = fit.train(&points) {
        model.score(&points, Precision::Double).expect("scores of sound rows");
    }
}

/// Returns a function that updates a model with three rows per call.
pub fn learner() -> impl FnMut(u64) {
    let points = toys::clusters(0);
    let fit = Fit { components: Some(2), target: Some(Target::Support(6)), ..Fit::default() };
    let model = fit.train(&points).expect("a fit");
    let learning = Learning { reservoir: 60, forget: 0.999, ..Learning::default() };
    let mut online = Online::new(model, &points, None, learning, &()).expect("it learns on");
    move |number| {
        let from = (number as usize * 3) % (points.n() - 3);
        // The data drift, so that points are exchanged now and then.
        let shift = (number as f64 * 1e-3).sin();
        let values: Vec<f64> = points.slice(from..from + 3).values().iter().map(|v| v + shift).collect();
        let rows = Points::new(2, values).expect("finite numbers");
        online.update(&rows, None, &()).expect("sound rows are learned");
    }
}
