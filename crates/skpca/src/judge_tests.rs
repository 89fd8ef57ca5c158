//! Compares models with the same formulas in double-double arithmetic, which has 106 bits, so that all differences are
//! our own rounding errors.
//!
//! ```text
//! μ = mean of k_z(x),     K_zz β = μ,     score = k(x, x) − 2 βᵀk_z(x) + μᵀβ − ‖Eᵀ Aᵀ(k_z(x) − μ)‖²
//! ```
//!
//! Errors are measured in units of ε κ, the rounding error of one kernel value: its exponent is a difference of terms
//! up to γ ‖x‖² and thus accurate to ε times that. Run with `--nocapture` for the figures.

use std::ops::{Add, Mul, Neg, Sub};

use crate::gram::Precision;
use crate::method::Target;
use crate::points::Points;
use crate::random::{Random, Stream};
use crate::{Fit, Model, Scaling, Spec};

/// An unevaluated sum of two numbers, the second at most half a unit of the first (Dekker 1971).
#[derive(Clone, Copy, Debug)]
struct Double(f64, f64);

impl Double {
    const ZERO: Double = Double(0.0, 0.0);

    fn of(a: f64) -> Double {
        Double(a, 0.0)
    }

    /// Adds without error if the first number is not the smaller one.
    fn fast(a: f64, b: f64) -> Double {
        let sum = a + b;
        Double(sum, b - (sum - a))
    }

    fn over(self, b: Double) -> Double {
        let first = self.0 / b.0;
        let rest = self - b * Double::of(first);
        let second = rest.0 / b.0;
        let third = (rest - b * Double::of(second)).0 / b.0;
        Double::fast(first, second) + Double::of(third)
    }

    fn root(self) -> Double {
        if self.0 <= 0.0 {
            return Double::ZERO;
        }
        let first = self.0.sqrt();
        // One Newton step doubles the number of digits.
        let rest = self - Double::of(first) * Double::of(first);
        Double::fast(first, rest.0 / (2.0 * first))
    }
}

impl Add for Double {
    type Output = Double;
    fn add(self, b: Double) -> Double {
        let sum = self.0 + b.0;
        let part = sum - self.0;
        let error = (self.0 - (sum - part)) + (b.0 - part);
        Double::fast(sum, error + self.1 + b.1)
    }
}

impl Neg for Double {
    type Output = Double;
    fn neg(self) -> Double {
        Double(-self.0, -self.1)
    }
}

impl Sub for Double {
    type Output = Double;
    fn sub(self, b: Double) -> Double {
        self + -b
    }
}

impl Mul for Double {
    type Output = Double;
    fn mul(self, b: Double) -> Double {
        let product = self.0 * b.0;
        let error = self.0.mul_add(b.0, -product);
        Double::fast(product, error + self.0 * b.1 + self.1 * b.0)
    }
}

fn sum(values: impl Iterator<Item = Double>) -> Double {
    values.fold(Double::ZERO, |sum, value| sum + value)
}

fn dot(a: &[Double], b: &[Double]) -> Double {
    sum(a.iter().zip(b).map(|(a, b)| *a * *b))
}

/// Returns `L`, row by row, or `None` if the matrix is not positive definite to 106 bits.
fn cholesky(k: &[Vec<Double>]) -> Option<Vec<Vec<Double>>> {
    let mut l: Vec<Vec<Double>> = Vec::new();
    for (i, k) in k.iter().enumerate() {
        let mut row: Vec<Double> = Vec::new();
        for (j, l) in l.iter().enumerate() {
            row.push((k[j] - dot(&row, &l[..j])).over(l[j]));
        }
        let pivot = k[i] - dot(&row, &row);
        if pivot.0 <= 0.0 {
            return None;
        }
        row.push(pivot.root());
        l.push(row);
    }
    Some(l)
}

fn solve(l: &[Vec<Double>], b: &[Double]) -> Vec<Double> {
    let mut y: Vec<Double> = Vec::new();
    for (i, row) in l.iter().enumerate() {
        let known = dot(&row[..i], &y);
        y.push((b[i] - known).over(row[i]));
    }
    for i in (0..l.len()).rev() {
        let known = sum((i + 1..l.len()).map(|j| l[j][i] * y[j]));
        y[i] = (y[i] - known).over(l[i][i]);
    }
    y
}

/// Returns the largest eigenvalue of the inverse times the trace, a bound of the condition number.
fn condition(k: &[Vec<Double>], l: &[Vec<Double>]) -> f64 {
    let mut x: Vec<Double> = (0..k.len()).map(|i| Double::of((i as f64 + 1.0).sin())).collect();
    let mut growth = 0.0;
    for _ in 0..12 {
        let length = dot(&x, &x).root();
        x = solve(l, &x.iter().map(|v| v.over(length)).collect::<Vec<_>>());
        growth = dot(&x, &x).root().0;
    }
    growth * sum((0..k.len()).map(|i| k[i][i])).0
}

#[test]
fn double_doubles_keep_digits_that_doubles_lose() {
    let third = Double::of(1.0).over(Double::of(3.0));
    let error = third * Double::of(3.0) - Double::of(1.0);
    assert!(error.0.abs() < 1e-31, "{error:?}");
    let root = Double::of(2.0).root();
    assert!((root * root - Double::of(2.0)).0.abs() < 1e-31);
    assert_eq!((Double::of(1e16) + Double::of(1.0) - Double::of(1e16)).0, 1.0);
    // The Hilbert matrix of size 12 has a condition number of 1e16: 64-bit arithmetic would lose all digits.
    let hilbert: Vec<Vec<Double>> =
        (0..12).map(|i| (0..12).map(|j| Double::of(1.0).over(Double::of((i + j + 1) as f64))).collect()).collect();
    let ones = vec![Double::of(1.0); 12];
    let b: Vec<Double> = hilbert.iter().map(|row| dot(row, &ones)).collect();
    let x = solve(&cholesky(&hilbert).unwrap(), &b);
    assert!(x.iter().all(|v| (*v - Double::of(1.0)).0.abs() < 1e-13), "{x:?}");
}

/// Errors of a model, each in units of its rounding error.
#[derive(Debug, Default)]
struct Errors {
    mu: f64,
    /// `‖K β − μ‖` in units of m ε ‖K‖ ‖β‖.
    backward: f64,
    /// `‖β − β′‖ / ‖β′‖` in units of m ε times the condition.
    beta: f64,
    /// In units of m ε times the sum of the magnitudes added up.
    score: f64,
    /// The error of scores in 32 bits, as a share of the largest score.
    single: f64,
    condition: f64,
}

/// Returns κ. It is bounded, because the values of far-out rows are computed by the kernel's definition, and values
/// below e^−700 are 0.
fn rounding(kernel: &Spec, rows: &Points) -> f64 {
    let gamma = kernel.fields["gamma"].as_f64().unwrap();
    let square = rows.rows().map(|x| x.iter().map(|v| v * v).sum::<f64>()).fold(0.0, f64::max);
    let exponent = if kernel.name == "rbf" { (gamma * square).min(1_048_576.0) } else { (gamma * square).min(700.0) };
    1.0 + exponent
}

fn judge(model: &Model, rows: &Points, scaled: &Points) -> Errors {
    let parts = model.parts();
    let (m, n) = (model.m(), scaled.n());
    let kernel = model.kernel();
    let value = |a: &[f64], b: &[f64]| Double::of(kernel.eval(a, b));
    let z = |i: usize| parts.support.row(i);
    let k: Vec<Vec<Double>> = (0..m).map(|i| (0..m).map(|j| value(z(i), z(j))).collect()).collect();
    let count = Double::of(n as f64);
    let mu: Vec<Double> = (0..m).map(|i| sum(scaled.rows().map(|x| value(z(i), x))).over(count)).collect();
    let kappa = rounding(&parts.kernel, scaled);
    let unit = m as f64 * f64::EPSILON * kappa;
    let mut errors = Errors::default();
    for (mine, exact) in parts.mu.iter().zip(&mu) {
        errors.mu = errors
            .mu
            .max((Double::of(*mine) - *exact).0.abs() / (n as f64 * f64::EPSILON * kappa * exact.0.abs().max(1e-300)));
    }
    let length = |v: &[Double]| dot(v, v).root().0;
    let trace = sum((0..m).map(|i| k[i][i])).0;
    let beta: Vec<Double> = parts.beta.iter().map(|v| Double::of(*v)).collect();
    let residual: Vec<Double> = (0..m).map(|i| dot(&k[i], &beta) - mu[i]).collect();
    errors.backward = length(&residual) / (unit * (trace * length(&beta) + length(&mu))).max(1e-300);
    let l = cholesky(&k).expect("points that are kept are independent");
    errors.condition = condition(&k, &l);
    let exact = solve(&l, &mu);
    let apart: Vec<Double> = beta.iter().zip(&exact).map(|(a, b)| *a - *b).collect();
    errors.beta = length(&apart) / (unit * errors.condition * length(&exact)).max(1e-300);
    let double = model.score(rows, Precision::Double).unwrap();
    let single = model.score(rows, Precision::Single).unwrap();
    let largest = double.iter().fold(0.0_f64, |a, b| a.max(*b));
    for (i, x) in scaled.rows().enumerate() {
        let kz: Vec<Double> = (0..m).map(|j| value(z(j), x)).collect();
        let from: Vec<Double> = kz.iter().zip(&parts.mu).map(|(k, mu)| *k - Double::of(*mu)).collect();
        let (mut score, mut added) = (value(x, x), value(x, x).0);
        let mut add = |term: Double, size: f64| {
            score = score + term;
            added += size;
        };
        for (j, b) in beta.iter().enumerate() {
            let (cross, own) = (*b * kz[j], *b * Double::of(parts.mu[j]));
            add(own - cross - cross, own.0.abs() + 2.0 * cross.0.abs());
        }
        for c in 0..parts.coefficients.ncols() {
            let a: Vec<Double> = (0..m).map(|j| Double::of(parts.coefficients[(j, c)])).collect();
            let along = dot(&a, &from);
            let size: f64 = a.iter().zip(&from).map(|(a, f)| (a.0 * f.0).abs()).sum();
            // The rounding error of the projection is multiplied by the projection.
            add(-(along * along), along.0 * along.0 + 2.0 * along.0.abs() * size);
        }
        let exact = score.0.max(0.0);
        errors.score = errors.score.max((double[i] - exact).abs() / (unit * added));
        errors.single = errors.single.max((single[i] - exact).abs() / largest.max(unit * added));
    }
    errors
}

/// Returns rows of which every fourth is nearly a copy of the previous one.
fn nearly_twins(distance: f64) -> Points<'static> {
    let mut random = Random::new(5, Stream::Tests);
    let mut values: Vec<f64> = Vec::new();
    for i in 0..120 {
        for k in 0..3 {
            let twin = (i % 4 == 3).then(|| values[values.len() - 3] + distance * random.normal());
            values.push(twin.unwrap_or_else(|| random.normal() + k as f64));
        }
    }
    Points::new(3, values).unwrap()
}

#[test]
#[allow(clippy::print_stdout)] // the figures are quoted in the documentation
fn models_are_as_exact_as_their_condition_allows() {
    let (mut judged, mut above) = (0, Vec::new());
    println!(
        "{:<28} {:>2} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "kernel", "m", "condition", "mu", "backward", "beta", "score", "32 bits"
    );
    for distance in [1.0, 1e-3, 1e-6, 1e-9] {
        let rows = nearly_twins(distance);
        for kernel in ["rbf", "laplacian"] {
            for exponent in (-12..=12).step_by(3) {
                let spec = Spec::new(kernel).with("gamma", 10_f64.powi(exponent));
                let fit = Fit {
                    kernel: spec,
                    method: Spec::new("landmarks"),
                    components: Some(3),
                    target: Some(Target::Support(20)),
                    center: Some(true),
                    scaling: Scaling::None,
                    ..Fit::default()
                };
                let Ok(model) = fit.train(&rows) else { continue };
                // A fit fails if all rows have the same features.
                let scaled = model.parts().columns.apply(&rows).unwrap();
                let errors = judge(&model, &rows, &scaled);
                let name = format!("{kernel} 1e{exponent} {distance:.0e}");
                let Errors { mu, backward, beta, score, single, condition } = errors;
                println!(
                    "{name:<28} {:>2} {condition:>9.1e} {mu:>8.3} {backward:>8.3} {beta:>8.1e} {score:>8.3} {single:>8.1e}",
                    model.m()
                );
                let sound = [mu, backward, beta, score].iter().all(|ratio| *ratio < 30.0) && single < 1e-2;
                if !sound {
                    above.push(format!("{name}: {errors:?}"));
                }
                judged += 1;
            }
        }
    }
    assert!(above.is_empty(), "{above:#?}");
    assert!(judged >= 50, "{judged} models were judged");
}
