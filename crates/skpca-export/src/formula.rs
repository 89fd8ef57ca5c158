//! A model as plain numbers.
//!
//! ```text
//! u        = ((x − shift) − offset) / scale              offset · 1/scale = c, the centre of the points
//! v_i      = f(x) f_i κ(u, z_i) − μ_i                      f is 1 but for a conformal kernel
//! features = Aᵀv + a
//! score    = own(x) − 2 βᵀv − mean_norm − Σ_k w_k (Eᵀ features)_k² + far ‖u − z̄‖²     own(x) = k(x, x)
//! T²       = Σ_k features_k² / (λ_k + ε)                   if components are uncorrelated, so that E is absent
//! ```
//!
//! The weights w are 1 and far is 0 unless the score is a Mahalanobis distance. Then `w = λ / (λ + ε)`, and far is a
//! small weight that distinguishes rows for which all kernel values vanish.
//!
//! Points and rows are centred by the same c. Kernels of distances do not change; for inner products, the terms of
//! `(u + c)·(z + c)` with c become constants. With the linear kernel there are no points: `v = u`, and A has a row for
//! each column.

use serde_json::{Value, json};
use skpca::kernel::{Conformal, Form, Outer, Stretch};
use skpca::{Calibration, Intake, Missing, Model, Points, Scores};

use crate::Error;

/// A row-major matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// Number of columns.
    pub columns: usize,
    /// The elements, row by row.
    pub values: Vec<f64>,
}

impl Matrix {
    pub(crate) fn from_fn(rows: usize, columns: usize, value: impl Fn(usize, usize) -> f64) -> Matrix {
        let values = (0..rows * columns).map(|at| value(at / columns, at % columns)).collect();
        Matrix { columns, values }
    }

    pub(crate) fn rows(&self) -> impl ExactSizeIterator<Item = &[f64]> {
        self.values.chunks_exact(self.columns.max(1))
    }

    pub(crate) fn n(&self) -> usize {
        self.values.len() / self.columns.max(1)
    }

    fn of(points: &Points) -> Matrix {
        Matrix { columns: points.d(), values: points.values().to_vec() }
    }

    /// Subtracts `by` from each row.
    fn less(mut self, by: &[f64]) -> Matrix {
        self.values.chunks_exact_mut(by.len()).for_each(|row| row.iter_mut().zip(by).for_each(|(v, c)| *v -= c));
        self
    }
}

/// `Wᵀv + bias`
#[derive(Clone, Debug, PartialEq)]
pub struct Linear {
    /// W, with a row for each value.
    pub weights: Matrix,
    /// One entry for each output.
    pub bias: Vec<f64>,
}

/// `κ(u, z_i)`
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// `exp(−γ ‖u − z‖²)`
    Gaussian {
        /// γ
        gamma: f64,
        /// z, centred
        points: Matrix,
    },
    /// `exp(−γ ‖u − z‖₁)`
    Manhattan {
        /// γ
        gamma: f64,
        /// z, centred
        points: Matrix,
    },
    /// `g(γ u·z_i + constants_i)`; `k(x, x) = g(γ ‖u‖² + own·u + own_constant)`
    Dot {
        /// γ
        gamma: f64,
        /// z, not centred
        points: Matrix,
        /// `γ c·z_i + coef0`
        constants: Vec<f64>,
        /// `2 γ c`
        own: Vec<f64>,
        /// `γ ‖c‖² + coef0`
        own_constant: f64,
        /// g
        outer: Outer,
    },
    /// `u·z_i / ‖u‖`, z of unit length; 0 where u is 0
    Cosine {
        /// z
        points: Matrix,
    },
    /// `u`
    Columns,
}

/// The log-likelihood of rows, `−½ (constant + max(0, length − ‖along‖²) / noise)` with
/// `length = own(x) − 2 βᵀv − mean_norm`.
#[derive(Clone, Debug, PartialEq)]
pub struct Density {
    /// The map from v to along.
    pub along: Linear,
    /// `D log 2πσ² + log|C/σ²|`
    pub constant: f64,
    /// σ²
    pub noise: f64,
}

/// The term of the score that grows far from the points, `weight ‖u − centre‖²`.
#[derive(Clone, Debug, PartialEq)]
pub struct Far {
    /// The factor of the squared distance.
    pub weight: f64,
    /// z̄, centred as the points are: zeros if these are centred by their mean.
    pub centre: Vec<f64>,
}

/// Exported p-values are too high by less than this.
const COARSE: f64 = 0.01;
/// Exported p-values are too high by less than this relative error, so they are exact for the 20 highest scores.
const COARSE_SHARE: f64 = 0.05;

/// p-values above the highest exported score, `share (1 + (score − start) / scale)^−count`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tail {
    /// The score at which the tail begins.
    pub start: f64,
    /// The scale of scores in the tail.
    pub scale: f64,
    /// The exponent.
    pub count: f64,
    /// The p-value at the start.
    pub share: f64,
}

/// A model as plain numbers. The symbols are those of the formulas at the head of this module.
#[derive(Clone, Debug, PartialEq)]
pub struct Formula {
    /// How the columns are made from a table with empty cells and categories.
    pub intake: Option<Intake>,
    /// Names of the inputs, if the data had any.
    pub names: Option<Vec<String>>,
    /// Subtracted from the inputs first.
    pub shift: Vec<f64>,
    /// Subtracted second.
    pub offset: Vec<f64>,
    /// Divisors of the differences.
    pub scale: Vec<f64>,
    /// κ
    pub values: Values,
    /// f of a conformal kernel, over u.
    pub stretch: Option<Stretch>,
    /// `f_i`
    pub factors: Vec<f64>,
    /// μ
    pub mean: Vec<f64>,
    /// A and a
    pub features: Linear,
    /// β, empty for the linear kernel
    pub beta: Vec<f64>,
    /// The constant term of the score.
    pub mean_norm: f64,
    /// E; `None` if components are orthonormal.
    pub frame: Option<Matrix>,
    /// w, unless all are 1.
    pub weights: Option<Vec<f64>>,
    /// The far term, if the score has one.
    pub far: Option<Far>,
    /// `1 / (λ + ε)`, if T² is defined.
    pub precisions: Option<Vec<f64>>,
    /// The density, if the model has one.
    pub density: Option<Density>,
    /// Scores above it are alarms.
    pub threshold: f64,
    /// Some training scores, in increasing order.
    pub scores: Vec<f64>,
    /// Entry i is the p-value of a row whose score is above exactly i of `scores`.
    pub p_values: Vec<f64>,
    /// p-values above the highest of `scores`, if the model has a tail.
    pub tail: Option<Tail>,
}

impl Formula {
    /// Returns the formula of a model. Kernels defined in other crates may have none, which is an error.
    pub fn of(model: &Model) -> Result<Formula, Error> {
        let kernel = model.kernel().as_ref();
        let (stretch, form) = match Conformal::of(kernel) {
            Some(conformal) => (Some(&conformal.stretch), conformal.base.form()),
            None => (None, kernel.form()),
        };
        let parts = model.parts();
        let linear = stretch.is_none() && kernel.is_linear();
        let centre = if linear { combined(&parts.support, &parts.beta) } else { centre(&parts.support, form) };
        let values = values(&parts.support, form, linear, &centre);
        let values = values.ok_or_else(|| Error::Kernel(parts.kernel.name.clone()))?;
        let factors = factors(&parts.support, stretch);
        let columns = &parts.columns;
        let layer = Layer { model, centre: &centre, linear };
        let beta = if linear { Vec::new() } else { parts.beta.clone() };
        let mean_norm: f64 = parts.mu.iter().zip(&parts.beta).map(|(mu, beta)| mu * beta).sum();
        let squared: f64 = centre.iter().map(|c| c * c).sum();
        let frame = parts.frame.as_ref();
        // The tail applies beyond the table, by its own formula.
        let table = Scores { calibration: without_tail(&parts.scores), ..parts.scores.clone() };
        let (scores, p_values) = thinned(&table);
        Ok(Formula {
            intake: columns.intake.clone().filter(treats),
            names: columns.names.clone(),
            shift: columns.shift.clone(),
            offset: centre.iter().zip(&columns.scale).map(|(c, scale)| c * scale).collect(),
            scale: columns.scale.clone(),
            values,
            stretch: stretch.map(|stretch| centred(stretch, &centre)),
            factors,
            mean: if linear { vec![0.0; centre.len()] } else { parts.mu.clone() },
            features: layer.of(model.q(), |i, k| parts.coefficients[(i, k)]),
            beta,
            mean_norm: if linear { squared - mean_norm } else { mean_norm },
            weights: (parts.noise > 0.0).then(|| parts.variances.iter().map(|v| v / (v + parts.noise)).collect()),
            // As in the model: left out if squares of the columns overflow or vanish, so that distances mean nothing.
            far: (parts.noise > 0.0 && kernel.bounded())
                .then(|| far(&parts.support, &centre, parts.noise))
                .filter(|far| far.weight > 0.0 && far.weight.is_finite()),
            precisions: frame.is_none().then(|| parts.variances.iter().map(|v| precision(v + parts.noise)).collect()),
            frame: frame.map(|e| Matrix::from_fn(e.nrows(), e.ncols(), |k, l| e[(k, l)])),
            density: parts.density.as_ref().map(|density| Density {
                along: layer.of(density.axes.ncols(), |i, k| density.axes[(i, k)]),
                constant: density.dimension as f64 * (std::f64::consts::TAU * density.noise).ln()
                    + density.log_determinant,
                noise: density.noise,
            }),
            threshold: parts.scores.threshold,
            scores,
            p_values,
            tail: tail(&parts.scores),
        })
    }

    /// Number of inputs.
    pub fn d(&self) -> usize {
        self.shift.len()
    }

    /// Number of components.
    pub fn q(&self) -> usize {
        self.features.weights.columns
    }

    /// Names of the inputs, or `x0`, `x1`, …
    pub fn inputs(&self) -> Vec<String> {
        self.names.clone().unwrap_or_else(|| (0..self.d()).map(|k| format!("x{k}")).collect())
    }

    /// What is subtracted from the inputs, in two steps: the second contains the digits that the first rounds off. It
    /// is all zeros if it would make no difference.
    pub(crate) fn steps(&self, arithmetic: crate::Arithmetic) -> (Vec<f64>, Vec<f64>) {
        let double = arithmetic.internal_double();
        let rounded = |v: f64| if double { v } else { f64::from(v as f32) };
        let unit = if double { f64::EPSILON } else { f64::from(f32::EPSILON) };
        let split = |(shift, offset): (&f64, &f64)| {
            let first = rounded(shift + offset);
            // The exact rounding error of the sum: Knuth's two-sum.
            let part = first - shift;
            (first, (shift - (first - part)) + (offset - part))
        };
        let (first, second): (Vec<f64>, Vec<f64>) = self.shift.iter().zip(&self.offset).map(split).unzip();
        let seen = second.iter().zip(&self.scale).any(|(step, scale)| step.abs() > 4.0 * unit * scale);
        if seen { (first, second) } else { (first, vec![0.0; self.d()]) }
    }
}

/// The metadata of an export about its model.
pub(crate) fn description(model: &Model) -> Vec<(&'static str, Value)> {
    let parts = model.parts();
    vec![
        ("method", json!(parts.method.to_string())),
        ("kernel", json!(parts.kernel.to_string())),
        ("points", json!(model.m())),
        ("components", json!(model.q())),
        ("training_rows", json!(parts.n)),
        ("fidelity", json!(parts.fidelity)),
        ("threshold", json!(parts.scores.threshold)),
        ("false_alarm_rate", json!(((1.0 - parts.scores.quantile) * 1e12).round() / 1e12)),
        ("columns", json!(parts.columns.names)),
        ("inputs", parts.columns.intake.as_ref().map_or(Value::Null, |intake| intake.to_json()["inputs"].take())),
    ]
}

/// What the rows are centred by: the mean of the points, or zero for the cosine kernel, which cannot be recentred.
fn centre(support: &Points, form: Form) -> Vec<f64> {
    if form == Form::Cosine {
        vec![0.0; support.d()]
    } else {
        combined(support, &vec![1.0 / support.n() as f64; support.n()])
    }
}

/// Whether an intake changes tables: it fills cells or encodes categories.
fn treats(intake: &Intake) -> bool {
    intake.missing == Missing::Median || intake.categories().next().is_some()
}

fn without_tail(scores: &Scores) -> Option<Calibration> {
    scores.calibration.clone().map(|calibration| Calibration { tail: None, ..calibration })
}

/// The inverse of a variance; 0 for a component without variance.
fn precision(variance: f64) -> f64 {
    if variance > 0.0 { 1.0 / variance } else { 0.0 }
}

/// Selects training scores, from the highest down, so that their p-values suffice for all rows. A row between two of
/// them gets the p-value of the lower one, which is too high by less than allowed. The highest score that raises no
/// alarm is always selected, so that no alarm has a p-value above the false-alarm rate.
fn thinned(all: &Scores) -> (Vec<f64>, Vec<f64>) {
    let exact: Vec<f64> = all.values.iter().map(|score| all.p_value(score.next_up())).collect();
    let quiet = all.values.partition_point(|score| *score <= all.threshold);
    let (mut scores, mut p_values) = (Vec::new(), Vec::new());
    // The p-value of rows just below the last selected score.
    let mut right = 0.0;
    for i in (0..exact.len()).rev() {
        // The p-value that they would get if this score were left out.
        let next = if i == 0 { 1.0 } else { exact[i - 1] };
        // Slightly less than the bound, for differences that equal it up to rounding.
        let off = next - right >= (1.0 - 1e-9) * COARSE.min(COARSE_SHARE * right);
        if i + 1 == exact.len() || i + 1 == quiet || off {
            scores.push(all.values[i]);
            p_values.push(exact[i]);
            right = next;
        }
    }
    p_values.push(1.0);
    scores.reverse();
    p_values.reverse();
    (scores, p_values)
}

fn tail(scores: &Scores) -> Option<Tail> {
    let calibration = scores.calibration.as_ref()?;
    let skpca::Tail { start, excess, count } = calibration.tail?;
    let share = (1.0 + count) / (1.0 + calibration.effective);
    Some(Tail { start, scale: count * excess, count, share })
}

/// `noise ‖u − z̄‖² / mean ‖z − z̄‖²`
fn far(support: &Points, centre: &[f64], noise: f64) -> Far {
    let mean = combined(support, &vec![1.0 / support.n() as f64; support.n()]);
    let squared = |z: &[f64]| z.iter().zip(&mean).map(|(z, mean)| (z - mean) * (z - mean)).sum::<f64>();
    let spread = support.rows().map(squared).sum::<f64>() / support.n() as f64;
    let weight = if spread > 0.0 { noise / spread } else { 0.0 };
    Far { weight, centre: mean.iter().zip(centre).map(|(mean, c)| mean - c).collect() }
}

/// `Zᵀw`
fn combined(support: &Points, weights: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; support.d()];
    for (z, w) in support.rows().zip(weights) {
        sum.iter_mut().zip(z).for_each(|(sum, z)| *sum += w * z);
    }
    sum
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The formula of kernel values; `None` if the kernel has none.
fn values(support: &Points, form: Form, linear: bool, centre: &[f64]) -> Option<Values> {
    let points = Matrix::of(support);
    Some(match form {
        _ if linear => Values::Columns,
        Form::Gaussian { gamma } => Values::Gaussian { gamma, points: points.less(centre) },
        Form::Manhattan { gamma } => Values::Manhattan { gamma, points: points.less(centre) },
        Form::Dot { gamma, coef0, outer } => Values::Dot {
            gamma,
            constants: points.rows().map(|z| gamma * dot(centre, z) + coef0).collect(),
            points,
            own: centre.iter().map(|c| 2.0 * gamma * c).collect(),
            own_constant: gamma * dot(centre, centre) + coef0,
            outer,
        },
        Form::Cosine => Values::Cosine { points: unit(points) },
        Form::Pairs => return None,
    })
}

/// Divides rows by their lengths, scaled first so that no square overflows or vanishes.
fn unit(mut points: Matrix) -> Matrix {
    for row in points.values.chunks_exact_mut(points.columns) {
        let largest = row.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
        if largest > 0.0 {
            row.iter_mut().for_each(|v| *v /= largest);
            let length = dot(row, row).sqrt();
            row.iter_mut().for_each(|v| *v /= length);
        }
    }
    points
}

fn factors(support: &Points, stretch: Option<&Stretch>) -> Vec<f64> {
    support.rows().map(|z| stretch.map_or(1.0, |stretch| stretch.at(z))).collect()
}

fn centred(stretch: &Stretch, centre: &[f64]) -> Stretch {
    let vectors = Matrix::of(&stretch.vectors).less(centre);
    let vectors = Points::new(vectors.columns, vectors.values).expect("differences of scaled points are finite");
    Stretch { vectors, ..stretch.clone() }
}

/// Turns weights of points into weights of values.
struct Layer<'a> {
    model: &'a Model,
    centre: &'a [f64],
    linear: bool,
}

impl Layer<'_> {
    fn of(&self, columns: usize, weight: impl Fn(usize, usize) -> f64) -> Linear {
        let parts = self.model.parts();
        if !self.linear {
            return Linear { weights: Matrix::from_fn(self.model.m(), columns, weight), bias: vec![0.0; columns] };
        }
        let column = |k: usize| -> Vec<f64> { (0..self.model.m()).map(|i| weight(i, k)).collect() };
        let combined: Vec<Vec<f64>> = (0..columns).map(|k| combined(&parts.support, &column(k))).collect();
        // z_i·c − μ_i, whose weighted sum is the bias.
        let left: Vec<f64> = parts.support.rows().zip(&parts.mu).map(|(z, mu)| dot(z, self.centre) - mu).collect();
        let bias = (0..columns).map(|k| dot(&column(k), &left)).collect();
        Linear { weights: Matrix::from_fn(self.centre.len(), columns, |j, k| combined[k][j]), bias }
    }
}
