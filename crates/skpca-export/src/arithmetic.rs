//! Decides how many bits an export computes with, by evaluating rows around the model's points in 32 and in 64 bits.

use skpca::Kind;

use crate::evaluate::Answer;
use crate::formula::{Formula, Matrix, Values};
use crate::{Error, evaluate};

/// Largest accepted error of 32 bits, relative to the largest feature and to the largest training score. It is half of
/// the documented 1e-5, since other implementations may round differently.
const ACCEPTED: f64 = 5e-6;
/// Maximum number of rows that are evaluated both ways.
const PROBES: usize = 256;
/// Number of these rows that a graph contains as examples, with their results.
pub(crate) const EXAMPLES: usize = 3;

/// How many bits an export computes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// 32 bits throughout.
    Single,
    /// Inputs and outputs in 32 bits, arithmetic in 64, since cancellation would lose too many digits in 32.
    Mixed,
    /// 64 bits throughout.
    Double,
}

impl Arithmetic {
    /// 64 bits if requested, otherwise as many as the formula needs.
    pub(crate) fn of(formula: &Formula, double: bool) -> Result<Arithmetic, Error> {
        if double {
            return Ok(Arithmetic::Double);
        }
        let outside = |v: f64| !(v as f32).is_finite() || (v != 0.0 && v.abs() < f64::from(f32::MIN_POSITIVE));
        let columns = formula.shift.iter().zip(&formula.offset).zip(&formula.scale);
        for (k, ((shift, offset), scale)) in columns.enumerate() {
            if outside(*scale) || !((shift + offset) as f32).is_finite() {
                return Err(Error::Range { column: formula.inputs()[k].clone() });
            }
        }
        Ok(if formula.loss_of_32_bits() <= ACCEPTED { Arithmetic::Single } else { Arithmetic::Mixed })
    }

    /// Whether the arithmetic has 64 bits.
    pub(crate) fn internal_double(self) -> bool {
        self != Arithmetic::Single
    }

    /// Whether inputs and outputs have 64 bits.
    pub(crate) fn external_double(self) -> bool {
        self == Arithmetic::Double
    }

    /// The name in the metadata.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Arithmetic::Single => "32 bits",
            Arithmetic::Mixed => "64 bits, inputs and outputs in 32",
            Arithmetic::Double => "64 bits",
        }
    }
}

impl Formula {
    /// The largest error of features, scores and T² in 32 bits, relative to the largest value of each.
    fn loss_of_32_bits(&self) -> f64 {
        let highest = self.scores.last().copied().unwrap_or(0.0);
        let rows =
            self.probes().into_iter().map(|row| row.into_iter().map(|v| f64::from(v as f32)).collect::<Vec<_>>());
        let pairs: Vec<(Answer, Answer)> =
            rows.map(|row| (self.evaluate::<f32>(&row), self.evaluate::<f64>(&row))).collect();
        let largest = pairs.iter().flat_map(|(_, exact)| &exact.features).fold(0.0_f64, |most, y| most.max(y.abs()));
        let most_t2 = pairs.iter().filter_map(|(_, exact)| exact.t2).fold(0.0_f64, f64::max);
        let mut worst = 0.0_f64;
        for (rough, exact) in &pairs {
            let features = rough.features.iter().zip(&exact.features).map(|(a, b)| (a - b).abs() / largest);
            let score = (rough.score - exact.score).abs() / highest.max(exact.score);
            // Not `max`, which would ignore a NaN.
            let t2 = rough.t2.zip(exact.t2).map(|(a, b)| (a - b).abs() / most_t2);
            worst = features.chain([score]).chain(t2).fold(worst, |most, v| if v <= most { most } else { v });
        }
        if worst.is_nan() { f64::INFINITY } else { worst }
    }

    /// Rows around the model: its points, midpoints between them, and points up to twice as far from the centre.
    pub(crate) fn probes(&self) -> Vec<Vec<f64>> {
        let points = self.points();
        let step = points.n().div_ceil(PROBES / 4).max(1);
        let chosen: Vec<&[f64]> = points.rows().step_by(step).collect();
        let mut probes = Vec::new();
        for (i, u) in chosen.iter().enumerate() {
            let next = chosen[(i + 1) % chosen.len()];
            probes.push(self.unscaled(|k| u[k]));
            probes.push(self.unscaled(|k| 0.5 * (u[k] + next[k])));
            probes.push(self.unscaled(|k| 1.3 * u[k] - 0.3 * next[k]));
            probes.push(self.unscaled(|k| 2.0 * u[k]));
        }
        probes
    }

    /// The centred points; for the linear kernel, which has none, some points along its components.
    fn points(&self) -> Matrix {
        let d = self.d();
        match &self.values {
            Values::Gaussian { points, .. } | Values::Manhattan { points, .. } => points.clone(),
            Values::Cosine { points } => points.clone(),
            Values::Dot { gamma, points, own, .. } => {
                let centre = |k: usize| own[k] / (2.0 * gamma);
                Matrix::from_fn(points.n(), d, |i, k| points.values[i * d + k] - centre(k))
            }
            Values::Columns => {
                let w = &self.features.weights;
                let length = |i: usize| self.scores.last().map_or(1.0, |s| s.sqrt()) * [1.0, -1.0][i % 2];
                Matrix::from_fn(2 * self.q(), d, |i, k| {
                    length(i) * (w.values[k * w.columns + i / 2] + 0.5 * f64::from(k % 3 == i % 3))
                })
            }
        }
    }

    /// Converts a centred and scaled row to the units of the user's table.
    fn unscaled(&self, u: impl Fn(usize) -> f64) -> Vec<f64> {
        (0..self.d()).map(|k| u(k) * self.scale[k] + self.offset[k] + self.shift[k]).collect()
    }

    /// Gives the row a valid value in each categorical column, choosing value `i` modulo their number.
    fn sound(&self, i: usize, mut row: Vec<f64>) -> Vec<f64> {
        let mut at = 0;
        for input in self.intake.iter().flat_map(|intake| &intake.inputs) {
            let cells = &mut row[at..at + input.width()];
            if matches!(input.kind, Kind::Category { .. }) {
                let chosen = i % cells.len();
                cells.iter_mut().enumerate().for_each(|(k, cell)| *cell = f64::from(u8::from(k == chosen)));
            }
            at += input.width();
        }
        row
    }

    /// A few rows and their results, for checking an export in its runtime.
    pub(crate) fn examples(&self, arithmetic: Arithmetic) -> Vec<(Vec<f64>, evaluate::Answer)> {
        // Any rows will do, so round them to few digits.
        let short = |(v, scale): (f64, &f64)| {
            let digit = 10f64.powf((0.1 * scale).log10().floor());
            let v = if digit > 0.0 { (v / digit).round() * digit } else { v };
            if arithmetic.external_double() { v } else { f64::from(v as f32) }
        };
        let shortened = |row: Vec<f64>| row.into_iter().zip(&self.scale).map(short).collect();
        let rows = self.probes().into_iter().take(EXAMPLES).map(shortened).enumerate();
        let rows = rows.map(|(i, row)| self.sound(i, row));
        rows.map(|row| {
            let answer = self.evaluate::<f64>(&row);
            (row, answer)
        })
        .collect()
    }
}
