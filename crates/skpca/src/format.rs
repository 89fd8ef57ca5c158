//! Model ⇄ bytes: a safetensors file with one metadata entry.
//!
//! ```text
//! "skpca" : checksum (8 hex digits) + JSON { version, method, kernel, columns, n, … , report, request }
//! tensors : support m×d, coefficients m×q, frame q×q′, axes m×any, weights, mu, beta, variances, shift, scale, low, high, scores, scores_above, rows,
//!           learning (bytes, of models that are to be updated),
//!           kernel.FIELD for each list among the kernel's parameters
//! ```
//!
//! There is a single entry, because the container writes entries in no fixed order and the same model must give the
//! same bytes. The checksum covers the JSON and every tensor's name, shape and values, as the container alone would
//! accept a flipped bit. It is not a signature, so the reader trusts nothing: the size of header and JSON is limited,
//! no more is read than the shapes require, every number must be finite and in range, and the components of all but
//! huge models must have unit norm.

use std::collections::HashMap;
use std::io::{Read, Write};

use faer::Mat;
use safetensors::tensor::{Dtype, Metadata, SafeTensors, TensorView};
use serde_json::{Map, Value, json};

use crate::columns::{Columns, Ranges, Scaling};
use crate::density::Density;
use crate::error::{Error, Result};
use crate::intake::Intake;
use crate::method;
use crate::model::{Calibration, Learned, Model, Parts, Scores, Statistics, Tail};
use crate::points::Points;
use crate::report::{Agreement, Report};
use crate::request::Request;
use crate::spec::Spec;

/// The current format version; older versions are read, newer ones are rejected. Version 1 had other names for μ and β.
/// Versions 1 and 2 had no range of the training rows, no weights of a density, no calibration and no noise. Version 3
/// had no online learning.
pub const VERSION: u64 = 4;
/// The version of models without online learning, so that older programs can read them.
const WITHOUT_LEARNING: u64 = 3;
const KEY: &str = "skpca";
/// The state of online learning: bytes that are only read when learning continues.
const LEARNING: &str = "learning";
/// The tensors of a model.
const TENSORS: [&str; 16] = [
    "axes",
    "beta",
    "coefficients",
    "frame",
    "high",
    LEARNING,
    "low",
    "mu",
    "rows",
    "scale",
    "scores",
    "scores_above",
    "shift",
    "support",
    "variances",
    "weights",
];
/// The name of β in version 1.
const BETA: &str = "mean";
/// The name of μ in version 1.
const MU: &str = "means";
/// Prefix of the names of lists among the kernel's parameters.
const KERNEL: &str = "kernel.";
/// Maximum size of a header, which holds names and parameters.
const HEADER_LIMIT: u64 = 16 << 20;
/// Maximum length of the JSON without columns: parsed, it takes up to seventy times as much memory.
const JSON_LIMIT: usize = 1 << 20;
/// Additional length of the JSON allowed per column.
const JSON_LIMIT_PER_COLUMN: usize = 256;

struct Tensor {
    name: String,
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

/// Writes a model; the same model always gives the same bytes.
pub fn write(model: &Model, mut to: impl Write) -> std::io::Result<()> {
    let parts = model.parts();
    let tensors = tensors(parts);
    let text = metadata(parts).to_string();
    if text.len() > json_limit(parts.support.d()) {
        return Err(std::io::Error::other("the column names are too long for a model file"));
    }
    let entry =
        format!("{:08x}{text}", checksum(&text, tensors.iter().map(|t| (&t.name[..], &t.shape[..], &t.bytes[..]))));
    let views = tensors.iter().map(|t| Ok((&t.name, TensorView::new(t.dtype, t.shape.clone(), &t.bytes)?)));
    let bytes = views
        .collect::<std::result::Result<Vec<_>, _>>()
        .and_then(|views| safetensors::serialize(views, Some(HashMap::from([(KEY.to_string(), entry)]))))
        .map_err(std::io::Error::other)?;
    to.write_all(&bytes)
}

fn json_limit(d: usize) -> usize {
    JSON_LIMIT + JSON_LIMIT_PER_COLUMN * d
}

/// Reads a model; invalid bytes are an error that says what is wrong. Reads at most one byte past the model's end.
pub fn read(mut from: impl Read) -> Result<Model> {
    let mut bytes = Vec::new();
    take(&mut from, 8, &mut bytes)?;
    let length = u64::from_le_bytes(bytes[..].try_into().expect("eight bytes were read"));
    if length > HEADER_LIMIT {
        return Err(Error::file("its header is larger than any model's; is it a model file?"));
    }
    if length < "{}".len() as u64 {
        return Err(Error::file("its header is empty; is it a model file?"));
    }
    take(&mut from, length, &mut bytes)?;
    let header: Metadata =
        serde_json::from_slice(&bytes[8..]).map_err(|error| Error::file(format!("its header: {error}")))?;
    if let Some(name) = header.offset_keys().iter().find(|name| !is_known(name)) {
        return Err(Error::file(format!("it has an unknown tensor {name:?}")));
    }
    take(&mut from, header.data_len() as u64, &mut bytes)?;
    if from.take(1).read_to_end(&mut bytes).map_err(|error| Error::file(error.to_string()))? > 0 {
        return Err(Error::file("something follows its end"));
    }
    from_bytes(&bytes, &header)
}

/// Appends the next `count` bytes. Memory grows with the bytes received, not with what a header claims.
fn take(from: &mut impl Read, count: u64, bytes: &mut Vec<u8>) -> Result<()> {
    let read = from.take(count).read_to_end(bytes).map_err(|error| Error::file(error.to_string()))?;
    if read as u64 == count { Ok(()) } else { Err(Error::file("it is too short")) }
}

/// Returns whether a tensor of this name belongs to the format.
fn is_known(name: &str) -> bool {
    TENSORS.contains(&name) || [BETA, MU].contains(&name) || name.starts_with(KERNEL)
}

fn from_bytes(bytes: &[u8], header: &Metadata) -> Result<Model> {
    let file = SafeTensors::deserialize(bytes).map_err(|error| Error::file(error.to_string()))?;
    let entry =
        header.metadata().as_ref().and_then(|m| m.get(KEY)).ok_or_else(|| Error::file("it has no skpca entry"))?;
    let (sum, text) = entry.split_at_checked(8).ok_or_else(|| Error::file("its skpca entry is too short"))?;
    let d = header.info("support").and_then(|support| support.shape.get(1)).map_or(0, |d| *d);
    if text.len() > json_limit(d) {
        return Err(Error::file("its skpca entry is too long"));
    }
    let json: Value = serde_json::from_str(text).map_err(|e| Error::file(format!("its skpca entry: {e}")))?;
    // Checked first, because a newer version may have another checksum.
    let version = json["version"].as_u64().ok_or_else(|| Error::file("it has no version"))?;
    if !(1..=VERSION).contains(&version) {
        let known = format!("this program reads 1 to {VERSION}");
        return Err(Error::file(format!("it has format version {version}, {known}")));
    }
    let mut views = file.tensors();
    views.sort_by(|a, b| a.0.cmp(&b.0));
    let found = checksum(text, views.iter().map(|(name, view)| (name.as_str(), view.shape(), view.data())));
    if format!("{found:08x}") != sum {
        return Err(Error::file("its checksum is wrong: the file is damaged"));
    }
    model(&json, &file).map_err(|error| match error {
        Error::File { .. } => error,
        other => Error::file(other.to_string()),
    })
}

/// Reads the model of a file with a valid checksum, which a forged file may have too.
fn model(json: &Value, file: &SafeTensors) -> Result<Model> {
    let parts = Reader { json, file }.parts()?;
    let own = metadata(&parts);
    let unknown = json.as_object().into_iter().flat_map(Map::keys).find(|key| own.get(key.as_str()).is_none());
    if let Some(key) = unknown {
        return Err(Error::file(format!("it has an unknown entry {key:?}")));
    }
    method::build(&parts.method)?;
    let model = Model::new(parts)?;
    model.check_components()?;
    Ok(model)
}

fn checksum<'a>(text: &str, tensors: impl Iterator<Item = (&'a str, &'a [usize], &'a [u8])>) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(text.as_bytes());
    for (name, shape, bytes) in tensors {
        hasher.update(format!("{name}{shape:?}").as_bytes());
        hasher.update(bytes);
    }
    hasher.finalize()
}

fn tensors(parts: &Parts) -> Vec<Tensor> {
    let (m, d) = (parts.support.n(), parts.support.d());
    let numbers = |name: &str, shape: Vec<usize>, values: &mut dyn Iterator<Item = f64>| Tensor {
        name: name.into(),
        dtype: Dtype::F64,
        shape,
        bytes: values.flat_map(f64::to_le_bytes).collect(),
    };
    let counts = |name: &str, values: &[usize]| Tensor {
        name: name.into(),
        dtype: Dtype::U64,
        shape: vec![values.len()],
        bytes: values.iter().flat_map(|v| (*v as u64).to_le_bytes()).collect(),
    };
    let vector = |name: &str, values: &[f64]| numbers(name, vec![values.len()], &mut values.iter().copied());
    let matrix = |name: &str, a: &Mat<f64>| {
        let values = &mut (0..a.nrows()).flat_map(|i| (0..a.ncols()).map(move |k| a[(i, k)]));
        numbers(name, vec![a.nrows(), a.ncols()], values)
    };
    let mut all = vec![
        matrix("coefficients", &parts.coefficients),
        vector("beta", &parts.beta),
        vector("mu", &parts.mu),
        vector("scale", &parts.columns.scale),
        vector("scores", &parts.scores.values),
        counts("scores_above", &parts.scores.above),
        vector("shift", &parts.columns.shift),
        numbers("support", vec![m, d], &mut parts.support.values().iter().copied()),
        vector("variances", &parts.variances),
    ];
    all.extend(parts.rows.iter().map(|rows| counts("rows", rows)));
    all.extend(parts.frame.iter().map(|frame| matrix("frame", frame)));
    all.extend(parts.density.iter().map(|density| matrix("axes", &density.axes)));
    let weights = parts.density.iter().flat_map(|density| &density.weights);
    all.extend(weights.map(|weights| vector("weights", weights)));
    let ranges = parts.columns.ranges.iter();
    all.extend(ranges.flat_map(|ranges| [vector("low", &ranges.low), vector("high", &ranges.high)]));
    let state = parts.learned.as_ref().and_then(|learned| learned.state.as_ref());
    all.extend(state.map(|state| Tensor {
        name: LEARNING.into(),
        dtype: Dtype::U8,
        shape: vec![state.len()],
        bytes: state.to_vec(),
    }));
    all.extend(lists(&parts.kernel).map(|(field, values)| vector(&format!("{KERNEL}{field}"), &values)));
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// Returns the lists among a kernel's parameters, which are too long for a header.
fn lists(kernel: &Spec) -> impl Iterator<Item = (&str, Vec<f64>)> {
    kernel.fields.iter().filter_map(|(field, value)| {
        let values = value.as_array()?.iter().map(|v| v.as_f64().unwrap_or(f64::NAN)).collect();
        Some((field.as_str(), values))
    })
}

fn metadata(parts: &Parts) -> Value {
    let mut kernel = parts.kernel.clone();
    kernel.fields.retain(|_, value| !value.is_array());
    let calibration = parts.scores.calibration.as_ref();
    let mut json = json!({
        "version": if parts.learned.is_some() { VERSION } else { WITHOUT_LEARNING },
        "method": parts.method.to_json(),
        "kernel": kernel.to_json(),
        "names": parts.columns.names,
        "ignored": parts.columns.ignored,
        "scaling": parts.columns.scaling.name(),
        "center": parts.center,
        "n": parts.n,
        "total_variance": parts.total_variance,
        "captured": parts.captured,
        "mean_lost": parts.mean_lost,
        "fidelity": parts.fidelity,
        "seed": parts.seed,
        "scored": parts.scores.count,
        "quantile": parts.scores.quantile,
        "threshold": parts.scores.threshold,
        "density": parts.density.as_ref().map(|density| json!({
            "noise": density.noise,
            "dimension": density.dimension,
            "log_determinant": density.log_determinant,
        })),
        "report": parts.report.to_json(),
        "request": parts.request.as_ref().map(|request| request.to_file(&parts.kernel)),
    });
    if parts.noise > 0.0 {
        json["noise"] = parts.noise.into();
    }
    if let Some(intake) = &parts.columns.intake {
        json["intake"] = intake.to_json();
    }
    if let Some(learned) = &parts.learned {
        json["learned"] = learned.to_json();
    }
    if let Some(calibration) = calibration {
        json["calibration"] = calibration.to_json();
    }
    json
}

impl Calibration {
    /// Returns a JSON object.
    pub fn to_json(&self) -> Value {
        json!({
            "folds": self.folds,
            "in_time_order": self.in_time_order,
            "effective": self.effective,
            "tail": self.tail.map(|tail| json!({"start": tail.start, "excess": tail.excess, "count": tail.count})),
            "limits": self.limits.map(|limits| json!({"spe": limits.spe, "t2": limits.t2})),
        })
    }
}

impl Learned {
    /// Returns a JSON object without the state.
    pub fn to_json(&self) -> Value {
        json!({"rows": self.rows, "reference": self.reference, "error": self.error})
    }
}

impl Report {
    /// Returns a JSON object; absent numbers are null.
    pub fn to_json(&self) -> Value {
        json!({
            "objective": self.objective,
            "fidelity_interval": self.fidelity_interval,
            "gap": self.gap,
            "chosen": self.chosen,
            "rounds": self.rounds,
            "converged": self.converged,
            "residual_trace": self.residual_trace,
            "score_fidelity": self.score_fidelity.map(|agreement| json!({
                "rank_correlation": agreement.rank_correlation,
                "worst_difference": agreement.worst_difference,
                "rows": agreement.rows,
            })),
            "set_aside": self.set_aside,
            "notes": self.notes,
        })
    }
}

/// Reads the parts of a model from a file.
struct Reader<'a> {
    json: &'a Value,
    file: &'a SafeTensors<'a>,
}

impl Reader<'_> {
    fn parts(&self) -> Result<Parts> {
        let (m, d, support) = self.matrix("support")?;
        let (rows, q, coefficients) = self.matrix("coefficients")?;
        if rows != m {
            return Err(Error::file(format!("coefficients has {rows} rows, expected {m}")));
        }
        let kernel = self.kernel()?;
        Ok(Parts {
            method: Spec::from_json(&self.json["method"])?,
            columns: Columns {
                names: self.names("names")?,
                ignored: self.names("ignored")?.unwrap_or_default(),
                ranges: self.ranges()?,
                scaling: Scaling::of_columns(self.text("scaling")?)?,
                shift: self.vector("shift")?,
                scale: self.vector("scale")?,
                intake: Some(&self.json["intake"])
                    .filter(|entry| !entry.is_null())
                    .map(Intake::from_json)
                    .transpose()?,
            },
            rows: self.file.tensor("rows").is_ok().then(|| self.counts("rows")).transpose()?,
            support: Points::new(d, support)?,
            coefficients: Mat::from_fn(m, q, |i, k| coefficients[i * q + k]),
            frame: self.optional("frame")?,
            density: self.density()?,
            mu: self.vector(self.name("mu", MU))?,
            beta: self.vector(self.name("beta", BETA))?,
            variances: self.vector("variances")?,
            noise: self.json["noise"].as_f64().unwrap_or(0.0),
            center: self.json["center"].as_bool().ok_or_else(|| wrong("center"))?,
            n: self.whole("n")?,
            total_variance: self.number("total_variance")?,
            captured: self.number("captured")?,
            mean_lost: self.number("mean_lost")?,
            fidelity: self.number("fidelity")?,
            seed: self.json["seed"].as_u64().ok_or_else(|| wrong("seed"))?,
            scores: Scores {
                count: self.whole("scored")?,
                quantile: self.number("quantile")?,
                threshold: self.number("threshold")?,
                values: self.vector("scores")?,
                above: self.counts("scores_above")?,
                calibration: self.calibration()?,
            },
            report: self.report()?,
            request: Request::from_file(&self.json["request"], &kernel)?,
            learned: self.learned()?,
            kernel,
        })
    }

    fn kernel(&self) -> Result<Spec> {
        let mut kernel = Spec::from_json(&self.json["kernel"])?;
        for name in self.file.names() {
            if let Some(field) = name.strip_prefix(KERNEL) {
                kernel = kernel.with(field, self.vector(name)?);
            }
        }
        Ok(kernel)
    }

    /// Returns the name of a tensor in this file's version.
    fn name(&self, now: &'static str, in_version_1: &'static str) -> &'static str {
        if self.json["version"] == 1 { in_version_1 } else { now }
    }

    fn optional(&self, name: &str) -> Result<Option<Mat<f64>>> {
        if self.file.tensor(name).is_err() {
            return Ok(None);
        }
        let (rows, columns, values) = self.matrix(name)?;
        Ok(Some(Mat::from_fn(rows, columns, |i, k| values[i * columns + k])))
    }

    fn ranges(&self) -> Result<Option<Ranges>> {
        if self.file.tensor("low").is_err() && self.file.tensor("high").is_err() {
            return Ok(None);
        }
        Ok(Some(Ranges { low: self.vector("low")?, high: self.vector("high")? }))
    }

    fn calibration(&self) -> Result<Option<Calibration>> {
        let entry = &self.json["calibration"];
        if entry.is_null() {
            return Ok(None);
        }
        let number = |of: &Value, name: &str| of[name].as_f64().ok_or_else(|| wrong(name));
        let tail = &entry["tail"];
        let of_tail = || -> Result<Tail> {
            let (start, excess) = (number(tail, "start")?, number(tail, "excess")?);
            Ok(Tail { start, excess, count: number(tail, "count")? })
        };
        let limits = &entry["limits"];
        let of_limits =
            || -> Result<Statistics> { Ok(Statistics { spe: number(limits, "spe")?, t2: number(limits, "t2")? }) };
        let folds = entry["folds"].as_u64().and_then(|folds| usize::try_from(folds).ok());
        Ok(Some(Calibration {
            folds: folds.ok_or_else(|| wrong("folds"))?,
            in_time_order: entry["in_time_order"].as_bool().ok_or_else(|| wrong("in_time_order"))?,
            effective: number(entry, "effective")?,
            tail: if tail.is_null() { None } else { Some(of_tail()?) },
            limits: if limits.is_null() { None } else { Some(of_limits()?) },
        }))
    }

    fn learned(&self) -> Result<Option<Learned>> {
        let entry = &self.json["learned"];
        if entry.is_null() {
            return Ok(None);
        }
        let number = |name: &str| entry[name].as_f64().filter(|number| *number >= 0.0).ok_or_else(|| wrong(name));
        let rows = entry["rows"].as_u64().and_then(|rows| usize::try_from(rows).ok());
        let state = self.file.tensor(LEARNING).is_ok().then(|| self.tensor(LEARNING, Dtype::U8, 1)).transpose()?;
        Ok(Some(Learned {
            rows: rows.ok_or_else(|| wrong("rows"))?,
            reference: number("reference")?,
            error: number("error")?,
            state: state.map(|state| state.data().into()),
        }))
    }

    fn density(&self) -> Result<Option<Density>> {
        let entry = &self.json["density"];
        if entry.is_null() {
            return Ok(None);
        }
        let axes = self.optional("axes")?.ok_or_else(|| Error::file("it has no tensor 'axes'"))?;
        let number = |name: &str| entry[name].as_f64().ok_or_else(|| wrong(name));
        let dimension = entry["dimension"].as_u64().and_then(|v| usize::try_from(v).ok());
        Ok(Some(Density {
            noise: number("noise")?,
            dimension: dimension.ok_or_else(|| wrong("dimension"))?,
            log_determinant: number("log_determinant")?,
            axes,
            weights: self.file.tensor("weights").is_ok().then(|| self.vector("weights")).transpose()?,
        }))
    }

    fn report(&self) -> Result<Report> {
        let report = self.json["report"].as_object().ok_or_else(|| wrong("report"))?;
        let number = |name: &str| report.get(name).and_then(Value::as_f64);
        let notes = report.get("notes").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        Ok(Report {
            objective: number("objective"),
            fidelity_interval: interval(report.get("fidelity_interval"))?,
            gap: number("gap"),
            chosen: number("chosen").unwrap_or(0.0) as usize,
            rounds: number("rounds").unwrap_or(0.0) as usize,
            converged: report.get("converged").and_then(Value::as_bool).ok_or_else(|| wrong("converged"))?,
            residual_trace: number("residual_trace").ok_or_else(|| wrong("residual_trace"))?,
            score_fidelity: agreement(report.get("score_fidelity"))?,
            set_aside: self.set_aside(report.get("set_aside"))?,
            notes: notes.iter().filter_map(Value::as_str).map(String::from).collect(),
        })
    }

    /// Reads row numbers; absent in older files.
    fn set_aside(&self, value: Option<&Value>) -> Result<Vec<usize>> {
        let row = |value: &Value| value.as_u64().and_then(|row| usize::try_from(row).ok());
        let rows = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let rows: Option<Vec<usize>> = rows.iter().map(row).collect();
        rows.filter(|rows| rows.is_sorted_by(|a, b| a < b)).ok_or_else(|| wrong("set_aside"))
    }

    fn names(&self, entry: &str) -> Result<Option<Vec<String>>> {
        match &self.json[entry] {
            Value::Null => Ok(None),
            Value::Array(names) => {
                let text = |name: &Value| name.as_str().map(String::from).ok_or_else(|| wrong(entry));
                names.iter().map(text).collect::<Result<_>>().map(Some)
            }
            _ => Err(wrong(entry)),
        }
    }

    fn text(&self, name: &str) -> Result<&str> {
        self.json[name].as_str().ok_or_else(|| wrong(name))
    }

    fn number(&self, name: &str) -> Result<f64> {
        self.json[name].as_f64().ok_or_else(|| wrong(name))
    }

    fn whole(&self, name: &str) -> Result<usize> {
        self.json[name].as_u64().and_then(|v| usize::try_from(v).ok()).ok_or_else(|| wrong(name))
    }

    fn tensor(&self, name: &str, dtype: Dtype, dimensions: usize) -> Result<TensorView<'_>> {
        let view = self.file.tensor(name).map_err(|_| Error::file(format!("it has no tensor '{name}'")))?;
        if view.dtype() == dtype && view.shape().len() == dimensions {
            Ok(view)
        } else {
            Err(Error::file(format!("tensor '{name}' is not of type {dtype:?} in {dimensions} dimensions")))
        }
    }

    fn matrix(&self, name: &str) -> Result<(usize, usize, Vec<f64>)> {
        let view = self.tensor(name, Dtype::F64, 2)?;
        Ok((view.shape()[0], view.shape()[1], numbers(&view)))
    }

    fn vector(&self, name: &str) -> Result<Vec<f64>> {
        Ok(numbers(&self.tensor(name, Dtype::F64, 1)?))
    }

    fn counts(&self, name: &str) -> Result<Vec<usize>> {
        let view = self.tensor(name, Dtype::U64, 1)?;
        let count = |bytes: &[u8; 8]| usize::try_from(u64::from_le_bytes(*bytes)).map_err(|_| wrong(name));
        view.data().as_chunks::<8>().0.iter().map(count).collect()
    }
}

fn numbers(view: &TensorView) -> Vec<f64> {
    view.data().as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()
}

/// Reads two shares, the lower one first; absent in older files.
fn interval(value: Option<&Value>) -> Result<Option<[f64; 2]>> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(None) };
    let ends: Option<Vec<f64>> = value.as_array().and_then(|ends| ends.iter().map(Value::as_f64).collect());
    match ends.as_deref() {
        Some(&[low, high]) if 0.0 <= low && low <= high && high <= 1.0 => Ok(Some([low, high])),
        _ => Err(wrong("fidelity_interval")),
    }
}

/// Reads the agreement of scores; absent if it was not requested, and in older files.
fn agreement(value: Option<&Value>) -> Result<Option<Agreement>> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(None) };
    let number = |name: &str| value[name].as_f64().ok_or_else(|| wrong("score_fidelity"));
    let rows = value["rows"].as_u64().and_then(|rows| usize::try_from(rows).ok());
    Ok(Some(Agreement {
        rank_correlation: number("rank_correlation")?,
        worst_difference: number("worst_difference")?,
        rows: rows.ok_or_else(|| wrong("score_fidelity"))?,
    }))
}

fn wrong(name: &str) -> Error {
    Error::file(format!("its entry '{name}' is missing or of the wrong type"))
}

/// Describes a model as a JSON object: the fields of `fit --json` and `inspect --json`.
pub fn describe(model: &Model) -> Map<String, Value> {
    let parts = model.parts();
    let Value::Object(mut map) = json!({
        "method": parts.method.to_json(),
        "kernel": parts.kernel.to_json(),
        "n": parts.n,
        "d": parts.support.d(),
        "q": model.q(),
        "m": model.m(),
        "support_per_component": per_component(parts),
        "explained_variance": parts.variances,
        "total_variance": parts.total_variance,
        "captured": model.captured(),
        "fidelity": parts.fidelity,
        "threshold": parts.scores.threshold,
        "quantile": parts.scores.quantile,
        "calibration": parts.scores.calibration.as_ref().map(Calibration::to_json),
        "statistic": if parts.noise > 0.0 { "mahalanobis" } else { "distance" },
        "noise": parts.noise,
        "score_error": model.score_error(parts.scores.threshold),
        "center": parts.center,
        "scaling": parts.columns.scaling.name(),
        "columns": parts.columns.names,
        "intake": parts.columns.intake.as_ref().map(Intake::to_json),
        "seed": parts.seed,
        "report": parts.report.to_json(),
        "learned": parts.learned.as_ref().map(Learned::to_json),
    }) else {
        unreachable!("json! of braces is an object")
    };
    if let Some(rows) = &parts.rows {
        map.insert("support".into(), json!(rows));
    }
    map
}

fn per_component(parts: &Parts) -> Vec<usize> {
    let nonzero = |k| parts.coefficients.col(k).iter().filter(|a| **a != 0.0).count();
    (0..parts.coefficients.ncols()).map(nonzero).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fit, Target, toys};

    fn model() -> Model {
        let method = Spec::new("landmarks");
        let fit = Fit { method, components: Some(2), target: Some(Target::Support(3)), ..Fit::default() };
        let mut model = fit.run(&toys::clusters(0), Some(vec!["x".into(), "y".into()]), &()).unwrap();
        model.ignore(vec!["class".into()]);
        model
    }

    fn bytes(model: &Model) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(model, &mut bytes).unwrap();
        bytes
    }

    fn message(bytes: &[u8]) -> String {
        read(bytes).err().map(|error| error.to_string()).unwrap_or_default()
    }

    /// Returns a file with invalid content and a valid checksum: `change` edits the JSON and the tensors.
    fn forged(change: impl Fn(&mut Value, &mut Vec<Tensor>)) -> Vec<u8> {
        forged_from(&model(), change)
    }

    fn forged_from(model: &Model, change: impl Fn(&mut Value, &mut Vec<Tensor>)) -> Vec<u8> {
        let (mut json, mut list) = (metadata(model.parts()), tensors(model.parts()));
        change(&mut json, &mut list);
        list.sort_by(|a, b| a.name.cmp(&b.name));
        let text = json.to_string();
        let sum = checksum(&text, list.iter().map(|t| (&t.name[..], &t.shape[..], &t.bytes[..])));
        let views = list.iter().map(|t| (&t.name, TensorView::new(t.dtype, t.shape.clone(), &t.bytes).unwrap()));
        let entry = HashMap::from([(KEY.to_string(), format!("{sum:08x}{text}"))]);
        safetensors::serialize(views.collect::<Vec<_>>(), Some(entry)).unwrap()
    }

    fn tensor<'a>(list: &'a mut [Tensor], name: &str) -> &'a mut Tensor {
        list.iter_mut().find(|t| t.name == name).unwrap()
    }

    #[test]
    fn files_of_version_1_are_read() {
        let old = forged(|json, list| {
            json["version"] = json!(1);
            tensor(list, "mu").name = MU.into();
            tensor(list, "beta").name = BETA.into();
        });
        assert_eq!(read(&old[..]).unwrap().parts(), model().parts());
        let mixed = forged(|json, _| json["version"] = json!(1));
        assert!(read(&mixed[..]).err().unwrap().to_string().contains("it has no tensor"));
    }

    #[test]
    fn files_of_version_2_are_read_without_the_range_of_the_training_rows() {
        let old = forged(|json, list| {
            json["version"] = json!(2);
            list.retain(|tensor| tensor.name != "low" && tensor.name != "high");
        });
        let read = read(&old[..]).unwrap();
        assert_eq!(read.parts().columns.ranges, None);
        assert_eq!(read.far_outside(&Points::new(2, vec![1e9, 1e9]).unwrap()), None);
        assert!(model().far_outside(&Points::new(2, vec![1e9, 1e9]).unwrap()).is_some());
    }

    #[test]
    fn an_intake_is_read_back_and_checked() {
        let mut treated = model();
        let cell = |row: usize, column: usize| crate::Cell::Number((row + column) as f64);
        let names = ["x".to_string(), "y".to_string()];
        let treatment = (crate::Missing::Median, crate::Unknown::Refuse);
        treated.take_in(Intake::learn(&names, 5, cell, treatment).unwrap()).unwrap();
        assert_eq!(read(&bytes(&treated)[..]).unwrap().parts(), treated.parts());
        let other = Intake::learn(&names[..1], 5, cell, treatment).unwrap();
        assert!(treated.take_in(other).is_err());
        let change = |change: fn(&mut Value)| message(&forged_from(&treated, |json, _| change(&mut json["intake"])));
        for (found, expected) in [
            (change(|intake| intake["inputs"][0]["fill"] = Value::Null), "of the column \"x\" is invalid"),
            (change(|intake| intake["inputs"][0]["name"] = json!("z")), "does not make the columns"),
            (change(|intake| *intake = json!([])), "'intake' is missing or of the wrong type"),
            (change(|intake| intake["missing"] = json!("mean")), "unknown treatment of missing values 'mean'"),
        ] {
            assert!(found.contains(expected), "{expected}: {found}");
        }
    }

    #[test]
    fn forged_ranges_are_rejected() {
        let set = |name: &'static str, values: &'static [f64]| {
            forged(move |_, list| {
                let range = tensor(list, name);
                (range.shape, range.bytes) =
                    (vec![values.len()], values.iter().flat_map(|v| v.to_le_bytes()).collect());
            })
        };
        for (expected, file) in [
            ("low has 1 entries, expected 2", set("low", &[1.0])),
            ("a column's range is empty", set("low", &[1e9, 0.0])),
            ("a value is not finite", set("high", &[f64::INFINITY, 9.0])),
            ("it has no tensor 'low'", forged(|_, list| list.retain(|tensor| tensor.name != "low"))),
        ] {
            assert_eq!(message(&file), format!("not a usable model file: {expected}"));
        }
    }

    #[test]
    fn an_absorbed_scaler_is_stored_in_the_file() {
        let given = model().with_scaler(&[1.0, 2.0], &[3.0, 4.0], None, None).unwrap();
        assert_eq!(given.parts().columns.scaling, Scaling::Standard, "standard scaling is the same after any scaler");
        let points = toys::clusters(0);
        let fit =
            Fit { scaling: Scaling::None, components: Some(2), target: Some(Target::Support(3)), ..Fit::default() };
        let given = fit.run(&points, None, &()).unwrap().with_scaler(&[1.0, 2.0], &[3.0, 4.0], None, None).unwrap();
        assert_eq!(given.parts().columns.scaling, Scaling::Given);
        assert_eq!(read(&bytes(&given)[..]).unwrap().parts(), given.parts());
        let rule = Some(Scaling::Minmax);
        let minmax = fit.run(&points, None, &()).unwrap().with_scaler(&[1.0, 2.0], &[3.0, 4.0], rule, None).unwrap();
        assert_eq!(minmax.parts().request.as_ref().unwrap().fit.scaling, Scaling::Minmax);
        for (shift, scale) in
            [(vec![1.0], vec![1.0]), (vec![0.0, 0.0], vec![1.0, 0.0]), (vec![0.0, 0.0], vec![1.0, -1.0])]
        {
            assert!(model().with_scaler(&shift, &scale, None, None).is_err(), "{shift:?} {scale:?}");
        }
        assert!(Fit { scaling: Scaling::Given, ..fit }.run(&points, None, &()).is_err());
    }

    #[test]
    fn a_kernel_with_lists_is_read_back_and_forged_lists_are_rejected() {
        let points = toys::clusters(0);
        let kernel = Spec::new("conformal")
            .with("delta", 0.5)
            .with("weights", vec![1.0, -1.5])
            .with("vectors", vec![-0.5, 0.2, 0.7, 0.1]);
        let fit = Fit { kernel, components: Some(2), target: Some(Target::Support(3)), ..Fit::default() };
        let model = fit.run(&points, None, &()).unwrap();
        let mut bytes = Vec::new();
        write(&model, &mut bytes).unwrap();
        assert_eq!(read(&bytes[..]).unwrap().parts(), model.parts());
        let set = |list: &mut Vec<Tensor>, name: &str, values: &[f64]| {
            let tensor = tensor(list, name);
            (tensor.shape, tensor.bytes) = (vec![values.len()], values.iter().flat_map(|v| v.to_le_bytes()).collect());
        };
        type Change<'a> = &'a dyn Fn(&mut Value, &mut Vec<Tensor>);
        let cases: [(&str, Change); 7] = [
            ("vectors = 3 numbers for 2 weights: expected as", &|_, list| {
                set(list, "kernel.vectors", &[1.0, 2.0, 3.0])
            }),
            ("its kernel is for 1 columns, its support has 2", &|_, list| set(list, "kernel.vectors", &[1.0, 2.0])),
            ("vectors = 4 numbers for 0 weights: expected as", &|_, list| set(list, "kernel.weights", &[])),
            ("weights = ", &|_, list| set(list, "kernel.weights", &[1.0, f64::NAN])),
            ("conformal = no weights: expected labels", &|_, list| list.retain(|t| t.name != "kernel.weights")),
            ("delta = -1.0: expected a number above 0", &|json, _| json["kernel"]["delta"] = (-1.0).into()),
            ("base = \"conformal\": expected rbf or", &|json, _| json["kernel"]["base"] = "conformal".into()),
        ];
        for (message, change) in cases {
            let found = read(&forged_from(&model, change)[..]).err().unwrap().to_string();
            assert!(found.contains(message), "{message}: {found}");
        }
    }

    #[test]
    fn every_flipped_bit_and_every_truncation_is_detected() {
        let good = bytes(&model());
        assert!(read(&good[..]).is_ok());
        for bit in 0..8 * good.len() {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(message(&bad).starts_with("not a usable model file: "), "bit {bit}");
        }
        for length in 0..good.len() {
            assert!(message(&good[..length]).starts_with("not a usable model file: "), "cut at {length}");
        }
        assert!(read(&[&good[..], b"x"].concat()[..]).is_err(), "something after the end");
    }

    #[test]
    fn other_files_are_rejected_with_a_reason() {
        assert_eq!(message(b""), "not a usable model file: it is too short");
        let header = "not a usable model file: its header is larger than any model's; is it a model file?";
        assert_eq!(message(b"x,y,label\n0.1,0.2,a\n"), header);
        assert_eq!(message(&[0xff; 64]), header);
        let empty = safetensors::serialize(Vec::<(&str, TensorView)>::new(), None).unwrap();
        assert_eq!(message(&empty), "not a usable model file: it has no skpca entry");
    }

    #[test]
    fn forged_densities_are_rejected() {
        let target = Some(Target::Support(3));
        let fit = Fit { method: Spec::new("likelihood"), components: Some(2), target, ..Fit::default() };
        let model = fit.run(&toys::clusters(0), None, &()).unwrap();
        assert_eq!(read(&bytes(&model)[..]).unwrap().parts(), model.parts());
        let unsound = "the density has no positive noise, or more dimensions than rows";
        for (expected, file) in [
            (unsound, forged_from(&model, |json, _| json["density"]["noise"] = json!(-1.0))),
            (unsound, forged_from(&model, |json, _| json["density"]["dimension"] = json!(91))),
            ("its entry 'noise' is missing", forged_from(&model, |json, _| json["density"] = json!({}))),
            ("it has no tensor 'axes'", forged_from(&model, |_, list| list.retain(|t| t.name != "axes"))),
            (
                "axes has 2 entries, expected 3",
                forged_from(&model, |_, list| {
                    let axes = tensor(list, "axes");
                    axes.shape = vec![2, 3];
                    axes.bytes.truncate(48);
                }),
            ),
            (
                "a value is not finite",
                forged_from(&model, |_, list| {
                    tensor(list, "axes").bytes[..8].copy_from_slice(&f64::NAN.to_le_bytes());
                }),
            ),
        ] {
            assert!(message(&file).contains(expected), "{}", message(&file));
        }
    }

    #[test]
    fn files_with_a_valid_checksum_are_still_checked() {
        let cases: [(&str, Vec<u8>); 12] = [
            ("it has format version 5, this program reads 1 to 4", forged(|json, _| json["version"] = json!(5))),
            ("it has no version", forged(|json, _| json["version"] = Value::Null)),
            (
                "a value is not finite",
                forged(|_, list| tensor(list, "mu").bytes[..8].copy_from_slice(&f64::NAN.to_le_bytes())),
            ),
            ("it has no tensor 'beta'", forged(|_, list| list.retain(|t| t.name != "beta"))),
            (
                "tensor 'beta' is not of type F64 in 1 dimensions",
                forged(|_, list| tensor(list, "beta").shape = vec![3, 1]),
            ),
            (
                "tensor 'rows' is not of type U64 in 1 dimensions",
                forged(|_, list| tensor(list, "rows").dtype = Dtype::F64),
            ),
            ("rows are not increasing numbers below n", forged(|json, _| json["n"] = json!(2))),
            (
                "mu has 2 entries, expected 3",
                forged(|_, list| {
                    let mu = tensor(list, "mu");
                    mu.shape = vec![2];
                    mu.bytes.truncate(16);
                }),
            ),
            ("a column's scale is not positive", forged(|_, list| tensor(list, "scale").bytes.fill(0))),
            ("the training scores are not in order", forged(|_, list| tensor(list, "scores_above").bytes.fill(0xff))),
            ("its entry 'names' is missing or of the wrong type", forged(|json, _| json["names"] = json!(3))),
            ("a variance is negative", forged(|json, _| json["mean_lost"] = json!(-1))),
        ];
        for (expected, bytes) in cases {
            assert_eq!(message(&bytes), format!("not a usable model file: {expected}"));
        }
        let kernel = forged(|json, _| json["kernel"] = json!({"name": "rbf", "gamma": "median"}));
        assert_eq!(
            message(&kernel),
            "not a usable model file: gamma = median: expected a number where there are no points to look at"
        );
        let support = forged(|_, list| tensor(list, "support").bytes.fill(0xff));
        assert_eq!(message(&support), "not a usable model file: row 0, column 0 (from 0): NaN is not a finite number");
    }

    #[test]
    fn implausible_numbers_are_rejected() {
        let set = |name: &'static str, value: Value| forged(|json, _| json[name] = value.clone());
        let twice = forged(|_, list| {
            let doubled = |bytes: &[u8; 8]| (1000.0 * f64::from_le_bytes(*bytes)).to_le_bytes();
            let coefficients = tensor(list, "coefficients");
            coefficients.bytes = coefficients.bytes.as_chunks::<8>().0.iter().flat_map(doubled).collect();
        });
        let beta = forged(|_, list| tensor(list, "beta").bytes.fill(0));
        let stranger = forged(|_, list| {
            list.push(Tensor { name: "more".into(), dtype: Dtype::F64, shape: vec![0], bytes: vec![] });
        });
        let held_out = |folds: usize, effective: f64, excess: f64| {
            let tail = json!({"start": 0.1, "excess": excess, "count": 1.0});
            let held_out = json!({"folds": folds, "in_time_order": false, "effective": effective, "tail": tail});
            set("calibration", held_out)
        };
        let calibration = "its calibration is invalid";
        let cases: [(&str, Vec<u8>); 19] = [
            (calibration, held_out(1, 2.0, 1.0)),
            (calibration, held_out(5, 1e9, 1.0)),
            (calibration, held_out(5, 2.0, -1.0)),
            ("it has an unknown entry \"noise\"", set("noise", json!(-1))),
            ("its fidelity is 7, expected 0 to 1", set("fidelity", json!(7))),
            ("its fidelity is -1, expected 0 to 1", set("fidelity", json!(-1))),
            ("its quantile is 12, expected a number between 0 and 1", set("quantile", json!(12))),
            ("its threshold -5 is not among the training scores", set("threshold", json!(-5))),
            ("its threshold 5 is not among the training scores", set("threshold", json!(5))),
            (" of a total variance of 0", set("total_variance", json!(0))),
            ("it captures 7 of a total variance of ", set("captured", json!(7))),
            ("the variances do not add up to the captured variance", set("captured", json!(0.1))),
            ("two columns have the name \"x\"", set("names", json!(["x", "x"]))),
            ("two columns have the name \"x\"", set("ignored", json!(["x"]))),
            ("unknown method 'magic': expected one of exact, ", set("method", json!({"name": "magic"}))),
            ("a component does not have unit norm", twice),
            ("the mean is not projected on the support", beta),
            ("it has an unknown tensor \"more\"", stranger),
            ("it has an unknown entry \"comment\"", set("comment", json!("hello"))),
        ];
        for (expected, bytes) in cases {
            assert!(message(&bytes).contains(expected), "{expected}: {:?}", message(&bytes));
        }
    }

    #[test]
    fn no_more_is_read_than_the_length_of_a_model() {
        // Counts the bytes read: a file without an end, or with an endless entry, must not fill the memory.
        struct Endless<'a>(&'a [u8], usize);
        impl Read for Endless<'_> {
            fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
                let known = self.0.read(to)?;
                to[known..].fill(b' ');
                self.1 += to.len();
                Ok(to.len())
            }
        }
        let good = bytes(&model());
        for (start, expected) in [(&[0; 8][..], "its header is empty"), (&good[..], "something follows its end")] {
            let mut from = Endless(start, 0);
            let found = read(&mut from).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(found.contains(expected), "{found}");
            assert!(from.1 < 2 * good.len() + 100_000, "{} bytes were read", from.1);
        }
        let long = forged(|json, _| json["ignored"] = json!(vec!["x".repeat(1000); 2000]));
        assert_eq!(message(&long), "not a usable model file: its skpca entry is too long");
        let mut named = model();
        named.ignore((0..2000).map(|i| format!("{i}{}", "x".repeat(1000))).collect());
        let error = write(&named, &mut Vec::new()).unwrap_err().to_string();
        assert_eq!(error, "the column names are too long for a model file");
    }

    #[test]
    fn a_frame_must_fit_the_components() {
        let framed = |shape: Vec<usize>, components: usize| {
            forged(|_, list| {
                let identity = |i: usize| f64::from(i.is_multiple_of(components + 1)).to_le_bytes();
                let bytes = (0..shape.iter().product::<usize>()).flat_map(identity).collect();
                list.push(Tensor { name: "frame".into(), dtype: Dtype::F64, shape: shape.clone(), bytes });
                let coefficients = tensor(list, "coefficients");
                coefficients.bytes.truncate(8 * 3 * components);
                coefficients.shape = vec![3, components];
                tensor(list, "variances").bytes.truncate(8 * components);
                tensor(list, "variances").shape = vec![components];
                list.sort_by_key(|t| t.name.clone());
            })
        };
        assert_eq!(message(&framed(vec![2, 2], 2)), "");
        for (shape, components) in [(vec![3, 1], 2), (vec![2, 3], 2), (vec![2, 0], 2), (vec![0, 0], 0), (vec![4], 2)] {
            let text = message(&framed(shape.clone(), components));
            assert!(text.starts_with("not a usable model file: "), "{shape:?} {components}: {text:?}");
        }
    }
}
