//! Mutated model files with valid checksums.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::{Value, json};
use skpca::{
    Fit, Intake, Kind, Labels, Learning, Missing, Model, Online, Points, Precision, Random, Scaling, SparseRows, Spec,
    Statistic, Target, Training, Unknown, format, toys,
};

use crate::choices::{self, one_in};
use crate::json;
use crate::moments::{Framed, mutate_numbers};

/// A model file taken apart.
#[derive(Clone)]
struct Parts {
    entry: Value,
    tensors: BTreeMap<String, Tensor>,
}

#[derive(Clone)]
struct Tensor {
    dtype: String,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Parts {
    fn of(file: &[u8]) -> Option<Parts> {
        let length = usize::try_from(u64::from_le_bytes(*file.first_chunk()?)).ok()?;
        let (header, data) = file.get(8..)?.split_at_checked(length)?;
        let header: Value = serde_json::from_slice(header).ok()?;
        let entry = serde_json::from_str(header["__metadata__"]["skpca"].as_str()?.get(8..)?).ok()?;
        let mut tensors = BTreeMap::new();
        for (name, about) in header.as_object()?.iter().filter(|(name, _)| *name != "__metadata__") {
            let offsets: [usize; 2] = serde_json::from_value(about["data_offsets"].clone()).ok()?;
            let tensor = Tensor {
                dtype: about["dtype"].as_str()?.into(),
                shape: serde_json::from_value(about["shape"].clone()).ok()?,
                bytes: data.get(offsets[0]..offsets[1])?.to_vec(),
            };
            tensors.insert(name.clone(), tensor);
        }
        Some(Parts { entry, tensors })
    }

    /// The bytes of the file with a valid checksum, as an attacker would write it.
    fn bytes(&self) -> Vec<u8> {
        let text = self.entry.to_string();
        let mut sum = crc32fast::Hasher::new();
        sum.update(text.as_bytes());
        let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
        for (name, Tensor { dtype, shape, bytes }) in &self.tensors {
            sum.update(format!("{name}{shape:?}").as_bytes());
            sum.update(bytes);
            let offsets = [data.len(), data.len() + bytes.len()];
            header.insert(name.clone(), json!({"dtype": dtype, "shape": shape, "data_offsets": offsets}));
            data.extend(bytes);
        }
        header.insert("__metadata__".into(), json!({"skpca": format!("{:08x}{text}", sum.finalize())}));
        let header = Value::Object(header).to_string();
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat()
    }

    fn mutate(&mut self, random: &mut Random) {
        for _ in 0..1 + random.below(2) {
            match random.below(8) {
                0..4 => json::mutate(random, &mut self.entry),
                4..7 => self.mutate_tensor(random),
                _ => self.mutate_rows(random),
            }
        }
    }

    fn mutate_tensor(&mut self, random: &mut Random) {
        let name = self.tensors.keys().nth(random.below(self.tensors.len().max(1))).cloned().unwrap_or_default();
        let other = self.tensors.values().nth(random.below(self.tensors.len().max(1))).cloned();
        let Some(tensor) = self.tensors.get_mut(&name) else { return };
        match random.below(12) {
            0..6 => mutate_numbers(random, &mut tensor.bytes),
            6 => {
                let dimension = random.below(tensor.shape.len().max(1));
                let list = [0, 1, 2, usize::MAX, 1 << 60, 1 << 33];
                if let Some(length) = tensor.shape.get_mut(dimension) {
                    *length = list[random.below(list.len())];
                }
            }
            7 => tensor.shape.reverse(),
            8 => drop(self.tensors.remove(&name)),
            9 => {
                if let Some(other) = other {
                    self.tensors.insert(name, other);
                }
            }
            10 => {
                let names =
                    ["frame", "axes", "weights", "low", "high", "rows", "kernel.weights", "means", "mean", "more"];
                if let Some(other) = other {
                    self.tensors.insert(names[random.below(names.len())].into(), other);
                }
            }
            // Scale all numbers by the same factor, which preserves relations among them.
            _ => {
                let factor = 2_f64.powi(random.below(600) as i32 - 300);
                for cell in tensor.bytes.as_chunks_mut::<8>().0 {
                    *cell = (f64::from_le_bytes(*cell) * factor).to_le_bytes();
                }
            }
        }
    }

    /// Removes or repeats the first row of a tensor.
    fn mutate_rows(&mut self, random: &mut Random) {
        let name = self.tensors.keys().nth(random.below(self.tensors.len().max(1))).cloned().unwrap_or_default();
        let Some(Tensor { shape, bytes, .. }) = self.tensors.get_mut(&name) else { return };
        let Some(rows) = shape.first_mut().filter(|rows| **rows > 0 && bytes.len().is_multiple_of(**rows)) else {
            return;
        };
        let row = bytes.len() / *rows;
        if one_in(random, 2) {
            *rows -= 1;
            bytes.drain(..row);
        } else {
            *rows += 1;
            bytes.extend_from_within(..row);
        }
    }
}

/// Models of every method, of every kernel, and with the optional contents of model files.
fn models() -> Vec<Model> {
    let clusters = toys::clusters(0);
    let chosen: Vec<usize> = (0..90).step_by(4).collect();
    let points = clusters.select(&chosen);
    let labels = Labels::new((0..points.n()).map(|i| 3 * i / points.n())).expect("three classes");
    let names = Some(vec!["x".to_string(), "y".to_string()]);
    let base = Fit { components: Some(2), target: Some(Target::Support(3)), ..Fit::default() };
    let fitted = |fit: &Fit, names: &Option<Vec<String>>| {
        let training = Training { labels: Some(&labels), names: names.clone(), ..Training::of(&points) };
        let fit = match fit.train(training.clone()) {
            Err(_) => Fit { target: None, ..fit.clone() }.train(training),
            done => done,
        };
        fit.expect("a sound fit")
    };
    let mut all = Vec::new();
    for entry in skpca::method::METHODS {
        all.push(fitted(&Fit { method: Spec::new(entry.name), kernel: entry.kernel(), ..base.clone() }, &names));
    }
    for spec in ["l1,refit=false", "l21,refit=false", "likelihood,refit=false", "threshold,refit=false"] {
        all.push(fitted(&Fit { method: spec.parse().expect("a method"), ..base.clone() }, &None));
    }
    for entry in skpca::kernel::KERNELS {
        if !entry.capabilities.positive_semidefinite {
            continue;
        }
        let kernel = Spec::new(entry.name);
        all.push(fitted(&Fit { kernel, method: Spec::new("landmarks"), ..base.clone() }, &None));
    }
    for fit in [
        Fit { scaling: Scaling::Minmax, ..base.clone() },
        Fit { scaling: Scaling::None, center: Some(false), ..base.clone() },
        Fit { false_alarms: Some(0.1), ..base.clone() },
        Fit { statistic: Statistic::Mahalanobis, components: None, ..base.clone() },
        Fit { robust: true, ..base.clone() },
    ] {
        all.push(fitted(&fit, &None));
    }
    let mut taken = fitted(&base, &names);
    let input = |name: &str, kind: Kind| skpca::Input { name: name.into(), kind };
    let category = Kind::Category { values: vec!["a".into()], fill: Some(0) };
    let intake = Intake {
        inputs: vec![input("x", Kind::Number { fill: Some(0.5) }), input("y", category)],
        missing: Missing::Median,
        unknown: Unknown::Zero,
        time: Some("t".into()),
        empty: 0.25,
    };
    if taken.take_in(intake).is_ok() {
        all.push(taken);
    }
    all
}

fn file(model: &Model) -> Vec<u8> {
    let mut bytes = Vec::new();
    format::write(model, &mut bytes).expect("a model is written");
    bytes
}

/// The files of all models.
pub fn seeds() -> Vec<Vec<u8>> {
    models().iter().map(file).chain(learning_seeds()).collect()
}

pub fn learning_seeds() -> Vec<Vec<u8>> {
    let points = toys::clusters(0);
    let mut all = Vec::new();
    for (kernel, learning) in [
        ("rbf", Learning { reservoir: 12, ..Learning::default() }),
        ("rbf", Learning { reservoir: 0, forget: 0.99, ..Learning::default() }),
        ("linear", Learning { reservoir: 8, alarms: false, ..Learning::default() }),
        ("laplacian", Learning { reservoir: 30, most: Some(6), ..Learning::default() }),
    ] {
        let fit = Fit {
            kernel: Spec::new(kernel),
            method: Spec::new("landmarks"),
            components: Some(2),
            target: Some(if kernel == "laplacian" { Target::Fidelity(0.6) } else { Target::Support(2) }),
            ..Fit::default()
        };
        let model = fit.train(&points).expect("a fit");
        let online = Online::new(model, &points, None, learning, &()).expect("it learns on");
        all.push(file(&online.into_model()));
    }
    all
}

pub fn make(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    let seed = &seeds[random.below(seeds.len())];
    match Parts::of(seed) {
        Some(mut parts) => {
            parts.mutate(random);
            parts.bytes()
        }
        None => damage(random, seeds),
    }
}

/// Damages a file anywhere, without repairing the checksum.
pub fn damage(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = seeds[random.below(seeds.len())].clone();
    choices::mutate(random, &mut bytes);
    bytes
}

/// Mutates the state of an updatable model: its header, its moments or its numbers.
pub fn make_learning(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    let seed = &seeds[random.below(seeds.len())];
    let Some(mut parts) = Parts::of(seed) else { return damage(random, seeds) };
    if one_in(random, 8) {
        parts.mutate(random);
    }
    if let Some(state) = parts.tensors.get_mut("learning") {
        if let Some(mut framed) = Framed::of(&state.bytes) {
            let moments = framed.rest.first_chunk::<8>().map_or(0, |length| u64::from_le_bytes(*length) as usize);
            match (one_in(random, 2), framed.rest.get(8..8 + moments).and_then(Framed::of)) {
                (true, Some(mut inner)) => {
                    inner.mutate(random);
                    let bytes = inner.bytes();
                    let length = (bytes.len() as u64).to_le_bytes();
                    framed.rest.splice(..8 + moments, length.into_iter().chain(bytes));
                }
                _ => framed.mutate(random),
            }
            state.bytes = framed.bytes();
        }
        state.shape = vec![state.bytes.len()];
    }
    parts.bytes()
}

/// Values of the query rows.
const ROWS: [f64; 6] = [0.1, -3.0, 1e6, 1e300, 0.0, 5e-324];

/// Reads a model and calls all its functions.
pub fn run(bytes: &[u8]) {
    let Ok(model) = format::read(bytes) else { return };
    let width = model.parts().columns.d();
    if width > 10_000 {
        return;
    }
    let values: Vec<f64> = (0..3 * width).map(|i| ROWS[i % ROWS.len()] * ((i % 7) as f64 - 3.0)).collect();
    let Ok(points) = Points::new(width, values) else { return };
    for precision in [Precision::Double, Precision::Single] {
        let _ = model.transform(&points, precision);
        let scores = model.score(&points, precision).unwrap_or_default();
        for score in scores {
            assert!(score >= 0.0 || score.is_nan(), "a score of {score}");
            let p = model.p_value(score);
            assert!(p >= 0.0 || p.is_nan(), "a p-value of {p}");
            model.is_novel(score);
            model.score_error(score);
        }
        let _ = model.log_likelihood(&points, precision);
    }
    let _ = (model.statistics(&points), model.contributions(&points), model.score_gradient(&points));
    let _ = (model.importance(), model.captured_share(&points), model.far_outside(&points));
    let starts = [0, width.min(1) as i64, width.min(1) as i64];
    if let Ok(rows) = SparseRows::new(width, &starts, &[0][..width.min(1)], &[2.5][..width.min(1)]) {
        let _ = (model.score_sparse(&rows), model.transform_sparse(&rows));
    }
    let _ = (model.fidelity(), model.threshold(), model.captured(), model.converged());
    let _ = format::describe(&model).len();
    let mut written = Vec::new();
    format::write(&model, &mut written).expect("what was read is written");
    let again = format::read(&written[..]).expect("what was written is read");
    let mut twice = Vec::new();
    format::write(&again, &mut twice).expect("what was read is written");
    assert_eq!(written, twice, "the same model, other bytes");
    let _ = model.moments(&()).and_then(|moments| model.refit(&moments, &()));
}

/// Reads an updatable model and updates it.
pub fn learn(bytes: &[u8]) {
    let Ok(model) = format::read(bytes) else { return };
    let width = model.parts().columns.d();
    let Ok(mut online) = Online::resume(model) else { return };
    for scale in [0.3, 1.0, 40.0] {
        let values: Vec<f64> = (0..4 * width).map(|i| scale * ((i * i) as f64).sin()).collect();
        let Ok(points) = Points::new(width, values) else { return };
        let _ = online.update(&points, Some(&[1.0, 0.5, 0.0, 2.0]), &());
        let _ = online.update(&points, None, &());
    }
    let Ok(stored) = online.stored() else { return };
    let written = file(&stored);
    let again = format::read(&written[..]).expect("an updated model is read");
    Online::resume(again).expect("an updated model can be updated again");
}

/// A small model, fitted once.
pub fn small() -> &'static Model {
    static SMALL: OnceLock<Model> = OnceLock::new();
    SMALL.get_or_init(|| models().remove(0))
}
