//! ONNX: the [`Formula`] as a graph of standard operators, none of which has changed since operator set 13.
//!
//! ```text
//! X ─ Sub ─ Div ─ [u, ‖u‖², 1] ─ MatMul ─ Exp ─ Sub μ ─ MatMul ─ Split ─┬─► features ─ squares ─┬─► t2
//!                                                                      └─ β ──────────────────┴─► score ─┬─ search ──► p_value
//!                                                                                                         └─ > threshold ──► alarm
//! ```
//!
//! Runtimes write every intermediate result to memory, and multiply by a vector row by row. The graph therefore has few
//! operators on rows × points, and keeps one number per row as a column until the output.

mod graph;

use prost::Message;
use serde_json::json;
use skpca::kernel::{Outer, Stretch};
use skpca::{Input, Intake, Kind, Model, Unknown};

use crate::arithmetic::Arithmetic;
use crate::formula::{Formula, Linear, Matrix, Values, description};
use crate::{Error, proto};

use graph::{BOOL, Builder, DOUBLE, FLOAT, STRING, body, inner, int, ints, value};

/// Operator set and format version, which every runtime of the last five years supports.
const VERSIONS: (i64, i64) = (13, 7);
/// The same for models with categories: texts can be compared since 2023.
const VERSIONS_WITH_TEXTS: (i64, i64) = (19, 9);

const ABOUT: &str = "Sparse kernel PCA";

pub(crate) fn write(model: &Model, formula: &Formula, arithmetic: Arithmetic) -> Result<Vec<u8>, Error> {
    let mut metadata: Vec<proto::Entry> = description(model)
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| entry(key, value.as_str().map_or_else(|| value.to_string(), String::from)))
        .collect();
    metadata.push(entry("arithmetic", arithmetic.name().into()));
    metadata.push(entry("examples", examples(formula, arithmetic)));
    let texts = formula.intake.as_ref().is_some_and(|intake| intake.categories().next().is_some());
    let (version, ir_version) = if texts { VERSIONS_WITH_TEXTS } else { VERSIONS };
    let set = proto::OperatorSet { domain: String::new(), version };
    let file = proto::Model {
        ir_version,
        producer_name: "skpca".into(),
        producer_version: env!("CARGO_PKG_VERSION").into(),
        doc_string: ABOUT.into(),
        graph: Some(Writer::new(formula, arithmetic).graph()),
        opset_import: vec![set],
        metadata_props: metadata,
    };
    Ok(file.encode_to_vec())
}

fn entry(key: &str, value: String) -> proto::Entry {
    proto::Entry { key: key.into(), value }
}

/// A few rows with the results of this program, for checking a runtime.
fn examples(formula: &Formula, arithmetic: Arithmetic) -> String {
    let (rows, answers): (Vec<_>, Vec<_>) = formula.examples(arithmetic).into_iter().unzip();
    let features: Vec<_> = answers.iter().map(|answer| answer.features.clone()).collect();
    let scores: Vec<f64> = answers.iter().map(|answer| answer.score).collect();
    // The shortest text of a number, which is about half as long in 32 bits.
    let short = |v: f64| {
        if arithmetic.external_double() { v } else { (v as f32).to_string().parse().unwrap_or(v) }
    };
    let numbers = |values: Vec<f64>| json!(values.into_iter().map(short).collect::<Vec<f64>>());
    let table = |rows: Vec<Vec<f64>>| rows.into_iter().map(numbers).collect::<Vec<_>>();
    let mut examples = json!({ "features": table(features), "score": numbers(scores) });
    match &formula.intake {
        None => examples["X"] = json!(table(rows)),
        Some(intake) => {
            let cells: Vec<_> = rows.iter().map(|row| cells(intake, row)).collect();
            examples["X"] = json!(table(cells.iter().map(|(numbers, _)| numbers.clone()).collect()));
            examples["C"] = json!(cells.into_iter().map(|(_, texts)| texts).collect::<Vec<_>>());
        }
    }
    examples.to_string()
}

/// The numbers and texts of a table from which these columns were made.
fn cells<'a>(intake: &'a Intake, row: &[f64]) -> (Vec<f64>, Vec<&'a str>) {
    let (mut numbers, mut texts) = (Vec::new(), Vec::new());
    let mut at = 0;
    for input in &intake.inputs {
        match &input.kind {
            Kind::Number { .. } => numbers.push(row[at]),
            Kind::Category { values, .. } => {
                let one = values.iter().zip(&row[at..]).find(|(_, cell)| **cell == 1.0);
                texts.push(one.map_or("", |(value, _)| value.as_str()));
            }
        }
        at += input.width();
    }
    (numbers, texts)
}

struct Writer<'a> {
    formula: &'a Formula,
    arithmetic: Arithmetic,
    graph: Builder,
}

/// The names of kernel values in the graph.
struct Known {
    /// n × m, or n × d for the linear kernel.
    values: String,
    /// k(x, x): a column, or one number for all rows.
    own: String,
}

impl Writer<'_> {
    fn new(formula: &Formula, arithmetic: Arithmetic) -> Writer<'_> {
        let number = if arithmetic.internal_double() { DOUBLE } else { FLOAT };
        Writer { formula, arithmetic, graph: Builder::new(number) }
    }

    fn graph(mut self) -> proto::Graph {
        let x = match &self.formula.intake {
            None => self.numbers(&self.formula.inputs()),
            Some(intake) => self.encoded(intake),
        };
        let u = self.scaled(&x);
        let known = self.known(&u);
        let (features, length) = self.features(&known);
        let squares = self.graph.op("Mul", &[&features, &features]);
        let squared = self.along(&features, &squares);
        let distance = self.graph.op("Sub", &[&length, &squared]);
        let distance = self.clipped(&distance);
        let score = self.with_far(&distance, &u);
        // Not IsNaN, whose result tract does not know to be Boolean.
        let number = self.graph.op("Equal", &[&score, &score]);
        let p_value = self.p_value(&score, &number);
        let threshold = self.graph.scalar("threshold", self.formula.threshold);
        let above = self.graph.op("Greater", &[&score, &threshold]);
        let nan = self.graph.op("Not", &[&number]);
        let alarm = self.graph.op("Or", &[&above, &nan]);
        self.table(&features, "features", "projections on the components");
        self.column(&score, "score", "squared distance to the components: higher is more novel");
        if let Some(precisions) = &self.formula.precisions {
            let precisions = self.graph.column("precisions", precisions);
            let t2 = self.graph.op("MatMul", &[&squares, &precisions]);
            self.column(&t2, "t2", "Hotelling's T²: squared features over their variances");
        }
        self.column(&p_value, "p_value", "share of the training rows that score at least as high");
        let axis = self.graph.last_axis();
        self.graph.named("Squeeze", &[&alarm, &axis], Vec::new(), "alarm");
        let about = "whether the score is above the threshold, or NaN";
        self.graph.graph.output.push(value("alarm", BOOL, None, about));
        self.log_likelihood(&known, &length);
        self.graph.graph
    }

    /// The type of inputs and outputs.
    fn external(&self) -> i32 {
        if self.arithmetic.external_double() { DOUBLE } else { FLOAT }
    }

    /// Adds an output with a column for each component.
    fn table(&mut self, from: &str, name: &str, about: &str) {
        let external = self.external();
        if external == self.graph.number {
            self.graph.rename(from, name);
        } else {
            self.graph.named("Cast", &[from], vec![int("to", external.into())], name);
        }
        self.graph.graph.output.push(value(name, external, Some(self.formula.q()), about));
    }

    /// Adds an output, turning a column into a vector.
    fn column(&mut self, from: &str, name: &str, about: &str) {
        let external = self.external();
        let axis = self.graph.last_axis();
        if external == self.graph.number {
            self.graph.named("Squeeze", &[from, &axis], Vec::new(), name);
        } else {
            let flat = self.graph.op("Squeeze", &[from, &axis]);
            self.graph.named("Cast", &[&flat], vec![int("to", external.into())], name);
        }
        self.graph.graph.output.push(value(name, external, None, about));
    }

    /// Adds the input of numeric columns.
    fn numbers(&mut self, names: &[String]) -> String {
        let about = format!("rows × columns: {}", names.join(", "));
        self.graph.graph.input.push(value("X", self.external(), Some(names.len()), &about));
        if self.external() == self.graph.number { "X".into() } else { self.graph.cast("X", self.graph.number) }
    }

    /// The columns that an intake makes from numbers (NaN for an empty cell) and from categories (trimmed texts). Cells
    /// that it rejects become NaN, which raises the alarm.
    fn encoded(&mut self, intake: &Intake) -> String {
        let (mut names, mut fills, mut columns) = (Vec::new(), Vec::new(), Vec::new());
        for input in &intake.inputs {
            if let Kind::Number { fill } = &input.kind {
                names.push(input.name.clone());
                fills.push(fill.unwrap_or(f64::NAN));
            }
        }
        let categories: Vec<String> = intake.categories().cloned().collect();
        if !names.is_empty() {
            let mut x = self.numbers(&names);
            if fills.iter().any(|fill| !fill.is_nan()) {
                let fills = self.graph.vector("fills", &fills);
                let full = self.graph.op("Equal", &[&x, &x]);
                x = self.graph.op("Where", &[&full, &x, &fills]);
            }
            columns.push(x);
        }
        if !categories.is_empty() {
            let about = format!("rows × categories: {}", categories.join(", "));
            self.graph.graph.input.push(value("C", STRING, Some(categories.len()), &about));
        }
        let all = intake.inputs.iter().filter_map(|input| match &input.kind {
            Kind::Number { .. } => None,
            Kind::Category { values, fill } => Some((values, *fill)),
        });
        for (k, (values, fill)) in all.enumerate() {
            columns.push(self.category(k, values, fill, intake.unknown));
        }
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        let joined = self.graph.op_with("Concat", &columns, vec![int("axis", 1)]);
        let order = self.graph.integers("order", &[self.formula.d()], &order(intake));
        self.graph.op_with("Gather", &[&joined, &order], vec![int("axis", 1)])
    }

    /// The columns of category k.
    fn category(&mut self, k: usize, values: &[String], fill: Option<usize>, unknown: Unknown) -> String {
        let place = self.graph.integers(&format!("category_{k}"), &[1], &[k as i64]);
        let cell = self.graph.op_with("Gather", &["C", &place], vec![int("axis", 1)]);
        let texts: Vec<&str> = values.iter().map(String::as_str).collect();
        let texts = self.graph.texts(&format!("category_{k}_values"), &texts);
        let mut equal = self.graph.op("Equal", &[&cell, &texts]);
        let nothing = self.graph.texts("nothing", &[""]);
        let empty = self.graph.op("Equal", &[&cell, &nothing]);
        if let Some(fill) = fill {
            let flags: Vec<bool> = (0..values.len()).map(|k| k == fill).collect();
            let flags = self.graph.flags(&format!("category_{k}_fill"), &flags);
            let filled = self.graph.op("And", &[&empty, &flags]);
            equal = self.graph.op("Or", &[&equal, &filled]);
        }
        let columns = self.graph.cast(&equal, self.graph.number);
        match (unknown, fill) {
            (Unknown::Zero, Some(_)) => columns,
            (Unknown::Zero, None) => {
                let nan = self.graph.scalar("nan", f64::NAN);
                self.graph.op("Where", &[&empty, &nan, &columns])
            }
            (Unknown::Refuse, _) => {
                let nan = self.graph.scalar("nan", f64::NAN);
                let sum = self.graph.row_sums(&columns);
                let zero = self.graph.scalar("zero", 0.0);
                let known = self.graph.op("Greater", &[&sum, &zero]);
                self.graph.op("Where", &[&known, &columns, &nan])
            }
        }
    }

    /// `((x − shift) − offset) / scale`
    fn scaled(&mut self, x: &str) -> String {
        let mut u = x.to_string();
        let (first, second) = self.formula.steps(self.arithmetic);
        for (name, step) in [("shift", first), ("offset", second)] {
            if step.iter().any(|v| *v != 0.0) {
                let step = self.graph.vector(name, &step);
                u = self.graph.op("Sub", &[&u, &step]);
            }
        }
        if self.formula.scale.iter().any(|v| *v != 1.0) {
            let scale = self.graph.vector("scale", &self.formula.scale);
            u = self.graph.op("Div", &[&u, &scale]);
        }
        u
    }

    /// Centred kernel values and k(x, x).
    fn known(&mut self, u: &str) -> Known {
        let formula = self.formula;
        let mut known = self.kernel(u);
        if let Some(stretch) = &formula.stretch {
            let f = self.stretch(u, stretch);
            let factors = self.graph.vector("factors", &formula.factors);
            let stretched = self.graph.op("Mul", &[&known.values, &factors]);
            known.values = self.graph.op("Mul", &[&stretched, &f]);
            let squared = self.graph.op("Mul", &[&f, &f]);
            known.own = self.graph.op("Mul", &[&known.own, &squared]);
        }
        if formula.mean.iter().any(|mu| *mu != 0.0) {
            let mean = self.graph.vector("mu", &formula.mean);
            known.values = self.graph.op("Sub", &[&known.values, &mean]);
        }
        known
    }

    fn kernel(&mut self, u: &str) -> Known {
        let formula = self.formula;
        match &formula.values {
            Values::Columns => Known { values: u.into(), own: self.graph.squares(u) },
            Values::Gaussian { gamma, points } => {
                Known { values: self.gaussian("points", *gamma, points, u), own: self.graph.scalar("one", 1.0) }
            }
            Values::Manhattan { gamma, points } => {
                let distances = self.manhattan(points, u);
                let gamma = self.graph.scalar("minus_gamma", -gamma);
                let exponents = self.graph.op("Mul", &[&distances, &gamma]);
                Known { values: self.graph.op("Exp", &[&exponents]), own: self.graph.scalar("one", 1.0) }
            }
            Values::Dot { .. } => self.dot(u),
            Values::Cosine { points } => self.cosine(points, u),
        }
    }

    /// `exp([u, ‖u‖², 1] [2γ z, −γ, −γ ‖z‖²]ᵀ)`: the distances as one matrix product.
    fn gaussian(&mut self, name: &str, gamma: f64, points: &Matrix, u: &str) -> String {
        let own: Vec<f64> = points.rows().map(|z| -gamma * z.iter().map(|v| v * v).sum::<f64>()).collect();
        let weights = Matrix::from_fn(points.columns + 2, points.n(), |k, i| match k.checked_sub(points.columns) {
            None => 2.0 * gamma * points.values[i * points.columns + k],
            Some(0) => -gamma,
            Some(_) => own[i],
        });
        let weights = self.graph.matrix(name, &weights);
        let extended = self.extended(u);
        let exponents = self.graph.op("MatMul", &[&extended, &weights]);
        self.graph.op("Exp", &[&exponents])
    }

    /// `[u, ‖u‖², 1]`
    fn extended(&mut self, u: &str) -> String {
        let squares = self.graph.squares(u);
        let one = self.graph.scalar("one", 1.0);
        let right = self.graph.integers("to_the_right", &[4], &[0, 0, 0, 1]);
        let padded = self.graph.op("Pad", &[&squares, &right, &one]);
        self.graph.op_with("Concat", &[u, &padded], vec![int("axis", 1)])
    }

    /// `Σ_k |u_k − z_k|`, column by column, so that no tensor has rows × points × columns elements.
    fn manhattan(&mut self, points: &Matrix, u: &str) -> String {
        let number = self.graph.number;
        let mut each = Builder::of_column(number);
        let axis = each.integers("column_axis", &[1], &[1]);
        let column = each.op("Unsqueeze", &["u_column", &axis]);
        let difference = each.op("Sub", &[&column, "z_column"]);
        let distance = each.op("Abs", &[&difference]);
        each.named("Add", &["so_far", &distance], Vec::new(), "sum");
        let m = points.n();
        each.graph.input = vec![
            inner("so_far", number, true, Some(m)),
            inner("u_column", number, true, None),
            inner("z_column", number, false, Some(m)),
        ];
        each.graph.output = vec![inner("sum", number, true, Some(m))];
        let zeros = self.graph.matrix("no_distance", &Matrix::from_fn(points.columns, m, |_, _| 0.0));
        let none = self.graph.op("MatMul", &[u, &zeros]);
        let columns = self.graph.op_with("Transpose", &[u], vec![ints("perm", &[1, 0])]);
        let by_column = Matrix::from_fn(points.columns, m, |k, i| points.values[i * points.columns + k]);
        let points = self.graph.matrix("points", &by_column);
        let attributes = vec![body("body", each.graph), int("num_scan_inputs", 2)];
        self.graph.op_with("Scan", &[&none, &columns, &points], attributes)
    }

    fn dot(&mut self, u: &str) -> Known {
        let formula = self.formula;
        let Values::Dot { gamma, points, constants, own, own_constant, outer } = &formula.values else {
            unreachable!("called for dot-product kernels only")
        };
        // The last column is k(x, x).
        let (d, m) = (points.columns, points.n());
        let weights = Matrix::from_fn(d + 2, m + 1, |k, i| match (k.checked_sub(d), i == m) {
            (None, false) => gamma * points.values[i * d + k],
            (None, true) => own[k],
            (Some(0), false) => 0.0,
            (Some(0), true) => *gamma,
            (Some(_), false) => constants[i],
            (Some(_), true) => *own_constant,
        });
        let weights = self.graph.matrix("points", &weights);
        let extended = self.extended(u);
        let inner = self.graph.op("MatMul", &[&extended, &weights]);
        let values = self.outer(*outer, &inner);
        let [values, own] = self.graph.split(&values, [m, 1]);
        Known { values, own }
    }

    /// Computes powers by squaring, since multiplication is accurate to half an ulp and `Pow` need not be.
    fn outer(&mut self, outer: Outer, inner: &str) -> String {
        match outer {
            Outer::Identity => inner.into(),
            Outer::Tanh => self.graph.op("Tanh", &[inner]),
            Outer::Power(power) => {
                let (mut power, mut square) = (power, inner.to_string());
                let mut product: Option<String> = None;
                loop {
                    if power % 2 == 1 {
                        product = Some(match product {
                            None => square.clone(),
                            Some(product) => self.graph.op("Mul", &[&product, &square]),
                        });
                    }
                    power /= 2;
                    if power == 0 {
                        return product.expect("degrees are positive");
                    }
                    square = self.graph.op("Mul", &[&square, &square]);
                }
            }
        }
    }

    /// The cosine; that of a zero row is 0.
    fn cosine(&mut self, points: &Matrix, u: &str) -> Known {
        let squares = self.graph.squares(u);
        let (zero, one) = (self.graph.scalar("zero", 0.0), self.graph.scalar("one", 1.0));
        let nothing = self.graph.op("Equal", &[&squares, &zero]);
        let squares = self.graph.op("Where", &[&nothing, &one, &squares]);
        let length = self.graph.op("Sqrt", &[&squares]);
        let unit = self.graph.op("Div", &[u, &length]);
        let by_column = Matrix::from_fn(points.columns, points.n(), |k, i| points.values[i * points.columns + k]);
        let points = self.graph.matrix("points", &by_column);
        let values = self.graph.op("MatMul", &[&unit, &points]);
        let own = self.graph.op("Where", &[&nothing, &zero, &one]);
        Known { values, own }
    }

    /// `f(x)`, as a column.
    fn stretch(&mut self, u: &str, stretch: &Stretch) -> String {
        let vectors = Matrix { columns: stretch.vectors.d(), values: stretch.vectors.values().to_vec() };
        let bumps = self.gaussian("stretch", stretch.delta, &vectors, u);
        let weights = self.graph.column("stretch_weights", &stretch.weights);
        let sum = self.graph.op("MatMul", &[&bumps, &weights]);
        let constant = self.graph.scalar("stretch_constant", stretch.constant);
        self.graph.op("Add", &[&sum, &constant])
    }

    /// `v W + bias`
    fn affine(&mut self, name: &str, weights: &Matrix, bias: &[f64], v: &str) -> String {
        let weights = self.graph.matrix(name, weights);
        if bias.iter().all(|v| *v == 0.0) {
            return self.graph.op("MatMul", &[v, &weights]);
        }
        // Not Gemm, whose third input tract assumes to have 32 bits; onnxruntime fuses the two operators into one.
        let product = self.graph.op("MatMul", &[v, &weights]);
        let bias = self.graph.vector(&format!("{name}_bias"), bias);
        self.graph.op("Add", &[&product, &bias])
    }

    /// The features and `own − 2 βᵀv − mean_norm`, with all weights of the values in one product.
    fn features(&mut self, known: &Known) -> (String, String) {
        let Formula { features: Linear { weights, bias }, beta, mean_norm, .. } = self.formula;
        let mut length = known.own.clone();
        if *mean_norm != 0.0 {
            let norm = self.graph.scalar("mean_norm", *mean_norm);
            length = self.graph.op("Sub", &[&length, &norm]);
        }
        if beta.iter().all(|beta| *beta == 0.0) {
            let features = self.affine("coefficients", weights, bias, &known.values);
            return (features, length);
        }
        let q = weights.columns;
        let twice = |i: usize| 2.0 * beta[i];
        let joint = |i: usize, k: usize| if k < q { weights.values[i * q + k] } else { twice(i) };
        let joint = Matrix::from_fn(beta.len(), q + 1, joint);
        let bias: Vec<f64> = bias.iter().copied().chain([0.0]).collect();
        let sums = self.affine("coefficients", &joint, &bias, &known.values);
        let [features, mean] = self.graph.split(&sums, [q, 1]);
        (features, self.graph.op("Sub", &[&length, &mean]))
    }

    /// `Σ_k w_k (Eᵀ features)_k²`, as a column; `squares` are those of the features.
    fn along(&mut self, features: &str, squares: &str) -> String {
        match (&self.formula.frame, &self.formula.weights) {
            (Some(frame), _) => {
                let frame = self.graph.matrix("frame", frame);
                let along = self.graph.op("MatMul", &[features, &frame]);
                self.graph.squares(&along)
            }
            (None, Some(weights)) => {
                let weights = self.graph.column("weights", weights);
                self.graph.op("MatMul", &[squares, &weights])
            }
            (None, None) => self.graph.row_sums(squares),
        }
    }

    /// Adds the far term to the score.
    fn with_far(&mut self, score: &str, u: &str) -> String {
        let Some(far) = &self.formula.far else { return score.into() };
        let mut from = u.to_string();
        if far.centre.iter().any(|v| *v != 0.0) {
            let centre = self.graph.vector("far_centre", &far.centre);
            from = self.graph.op("Sub", &[&from, &centre]);
        }
        let squares = self.graph.squares(&from);
        let weight = self.graph.scalar("far_weight", far.weight);
        let more = self.graph.op("Mul", &[&squares, &weight]);
        self.graph.op("Add", &[score, &more])
    }

    /// Replaces negative numbers by zero and keeps NaN.
    fn clipped(&mut self, score: &str) -> String {
        let zero = self.graph.scalar("zero", 0.0);
        let negative = self.graph.op("Less", &[score, &zero]);
        self.graph.op("Where", &[&negative, &zero, score])
    }

    /// The p-value from a table, indexed by the number of exported scores below, which bisection finds.
    fn p_value(&mut self, score: &str, number: &str) -> String {
        let formula = self.formula;
        // One more number in front, so that score number `below + step`, counted from 1, has that index.
        let scores: Vec<f64> = formula.scores.first().into_iter().chain(&formula.scores).copied().collect();
        let scores = self.graph.vector("scores", &scores);
        let p_values = self.graph.vector("p_values", &formula.p_values);
        let mut below = self.graph.integers("none", &[], &[0]);
        for step in bisection(formula.scores.len()) {
            let step = self.graph.integers(&format!("step_{step}"), &[], &[step as i64]);
            let at = self.graph.op("Add", &[&below, &step]);
            let there = self.graph.op("Gather", &[&scores, &at]);
            let less = self.graph.op("Less", &[&there, score]);
            below = self.graph.op("Where", &[&less, &at, &below]);
        }
        let p_value = self.graph.op("Gather", &[&p_values, &below]);
        let p_value = self.with_tail(score, &p_value);
        self.graph.op("Where", &[number, &p_value, score])
    }

    /// The p-value; above the highest training score, that of the tail if it is lower.
    fn with_tail(&mut self, score: &str, p_value: &str) -> String {
        let (Some(tail), Some(highest)) = (self.formula.tail, self.formula.scores.last()) else {
            return p_value.into();
        };
        let constants =
            [("tail_start", tail.start), ("tail_scale", tail.scale), ("tail_power", -tail.count), ("one", 1.0)];
        let [start, scale, power, one] = constants.map(|(name, value)| self.graph.scalar(name, value));
        let excess = self.graph.op("Sub", &[score, &start]);
        let excess = self.graph.op("Div", &[&excess, &scale]);
        let base = self.graph.op("Add", &[&excess, &one]);
        // For scores in the table the base may be negative; the power is not used there.
        let highest = self.graph.scalar("highest_score", *highest);
        let beyond = self.graph.op("Greater", &[score, &highest]);
        let base = self.graph.op("Where", &[&beyond, &base, &one]);
        let power = self.graph.op("Pow", &[&base, &power]);
        let share = self.graph.scalar("tail_share", tail.share);
        let lower = self.graph.op("Mul", &[&power, &share]);
        let less = self.graph.op("Less", &[&lower, p_value]);
        let both = self.graph.op("And", &[&beyond, &less]);
        self.graph.op("Where", &[&both, &lower, p_value])
    }

    fn log_likelihood(&mut self, known: &Known, length: &str) {
        let formula = self.formula;
        let Some(density) = &formula.density else { return };
        let along = self.affine("axes", &density.along.weights, &density.along.bias, &known.values);
        let squared = self.graph.squares(&along);
        let distance = self.graph.op("Sub", &[length, &squared]);
        let distance = self.clipped(&distance);
        let factor = self.graph.scalar("minus_half_precision", -0.5 / density.noise);
        let exponent = self.graph.op("Mul", &[&distance, &factor]);
        let constant = self.graph.scalar("log_normaliser", -0.5 * density.constant);
        let log_likelihood = self.graph.op("Add", &[&exponent, &constant]);
        self.column(&log_likelihood, "log_likelihood", "log-likelihood of the Gaussian in feature space");
    }
}

/// The positions of an intake's columns in a table with its numbers first, then its categories.
fn order(intake: &Intake) -> Vec<i64> {
    let is_number = |input: &Input| matches!(input.kind, Kind::Number { .. });
    let numbers = intake.inputs.iter().filter(|input| is_number(input)).count();
    let (mut number, mut category) = (0, numbers);
    let place = |input: &Input| {
        let next = if is_number(input) { &mut number } else { &mut category };
        let first = *next;
        *next += input.width();
        (first..*next).map(|at| at as i64)
    };
    intake.inputs.iter().flat_map(place).collect()
}

/// The step lengths of a bisection among `count` scores.
fn bisection(count: usize) -> Vec<usize> {
    let (mut left, mut steps) = (count, Vec::new());
    while left > 1 {
        steps.push(left / 2);
        left -= left / 2;
    }
    steps.extend((count > 0).then_some(1));
    steps
}
