//! Fits with tables and parameters chosen by bytes, mostly within the declared domains.

use serde_json::{Value, json};
use skpca::{
    Domain, Fit, Labels, Level, Points, Precision, Random, RowOrder, Scaling, Spec, Statistic, Target, Training, format,
};

use crate::choices::{self, Choices};

pub fn seeds() -> Vec<Vec<u8>> {
    Vec::new()
}

pub fn make(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    choices::make(random, seeds)
}

/// A value for a parameter, usually within its domain.
fn value(choices: &mut Choices, domain: &Domain) -> Value {
    if choices.one_in(12) {
        return match choices.below(4) {
            0 => json!(choices.number()),
            1 => json!(-1),
            2 => json!("x"),
            _ => json!([1, 2]),
        };
    }
    match domain {
        Domain::Number(_) => json!(choices.number().abs()),
        Domain::Count { least, .. } => json!(least + choices.below(8)),
        Domain::Boolean => json!(choices.below(2) == 1),
        Domain::Choice(words) => json!(choices.of(words)),
        Domain::Bandwidth => match choices.below(3) {
            0 => json!(choices.of(&["median", "mean", "scale", "auto"])),
            _ => json!(choices.number().abs()),
        },
        Domain::Numbers => json!([choices.number().abs()]),
        Domain::Counts => json!([1 + choices.below(4)]),
        Domain::Reals => json!([choices.number()]),
        Domain::Kernel => json!(choices.of(&["rbf", "laplacian", "polynomial", "linear", "cosine", "sigmoid"])),
    }
}

fn spec(choices: &mut Choices, name: &str, parameters: &[skpca::Parameter]) -> Spec {
    let mut spec = Spec::new(name);
    for parameter in parameters {
        if choices.one_in(4) {
            spec = spec.with(parameter.name, value(choices, &parameter.domain));
        }
    }
    spec
}

fn table(choices: &mut Choices) -> Option<(usize, Points<'static>)> {
    let most = if choices.one_in(3) { 30 } else { 8 };
    let (n, d) = (1 + choices.below(most), 1 + choices.below(4));
    let kind = choices.below(8);
    let values: Vec<f64> = (0..n * d)
        .map(|i| match kind {
            0..3 => choices.number(),
            3 => (i as f64 * 0.7).sin() + f64::from(choices.byte()) / 256.0,
            4 => f64::from(choices.byte() % 3),
            5 => 1e8 + f64::from(choices.byte()),
            6 => 0.0,
            _ => f64::from(choices.byte()) * 1e-160,
        })
        .collect();
    Some((n, Points::new(d, values).ok()?))
}

pub fn run(bytes: &[u8]) {
    let mut choices = Choices(bytes);
    let method = &skpca::method::METHODS[choices.below(skpca::method::METHODS.len())];
    let kernel = &skpca::kernel::KERNELS[choices.below(skpca::kernel::KERNELS.len())];
    let fit = Fit {
        method: spec(&mut choices, method.name, method.parameters),
        kernel: spec(&mut choices, kernel.name, kernel.parameters),
        components: choices.one_in(2).then(|| choices.below(6)),
        target: match choices.below(4) {
            0 => None,
            1 => {
                Some(Target::Fidelity(if choices.one_in(5) { choices.number() } else { choices.of(&[0.5, 0.9, 1.0]) }))
            }
            _ => Some(Target::Support(choices.below(8))),
        },
        center: choices.of(&[None, Some(true), Some(false)]),
        scaling: choices.of(&[Scaling::Standard, Scaling::Minmax, Scaling::None]),
        quantile: if choices.one_in(8) { choices.number() } else { 0.95 },
        false_alarms: choices.one_in(8).then(|| choices.number().abs()),
        statistic: if choices.one_in(6) { Statistic::Mahalanobis } else { Statistic::Distance },
        score_fidelity: choices.one_in(20).then(|| choices.number().abs()),
        robust: choices.one_in(12),
        row_order: choices.of(&[RowOrder::Auto, RowOrder::Time, RowOrder::Any]),
        seed: u64::from(choices.byte()),
        level: choices.of(&Level::available()),
    };
    let Some((n, points)) = table(&mut choices) else { return };
    let labels = Labels::new((0..n).map(|i| if i < 2 { i } else { choices.below(3) }));
    let odd = choices.one_in(4);
    let weight = |choices: &mut Choices| if odd { choices.number().abs() } else { f64::from(choices.byte() % 4) };
    let weights: Option<Vec<f64>> = choices.one_in(5).then(|| (0..n).map(|_| weight(&mut choices)).collect());
    let training = Training { labels: labels.as_ref().ok(), weights: weights.as_deref(), ..Training::of(&points) };
    let Ok(model) = fit.train(training) else { return };
    let mut written = Vec::new();
    format::write(&model, &mut written).expect("a model that was fitted is written");
    // Files do not store the requested instruction set.
    let again = format::read(&written[..]).and_then(|model| model.pinned(fit.level));
    let again = again.unwrap_or_else(|error| panic!("{fit:?}: {error}"));
    for precision in [Precision::Double, Precision::Single] {
        let (scores, twins) = (model.score(&points, precision), again.score(&points, precision));
        assert_eq!(scores, twins, "other scores once read again");
        let sound = |score: &f64| *score >= 0.0 && score.is_finite();
        assert!(scores.iter().flatten().all(sound), "{fit:?}: scores {scores:?}");
        assert_eq!(model.transform(&points, precision), again.transform(&points, precision));
    }
    let _ =
        (model.importance(), model.contributions(&points), model.statistics(&points), model.score_gradient(&points));
}
