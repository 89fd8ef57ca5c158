//! Evaluates the formula in either precision: the reference for exports, and their error in 32 bits.

use skpca::kernel::{Outer, Stretch};

use crate::Arithmetic;
use crate::formula::{Formula, Linear, Matrix, Values};

/// A number type that the formula is evaluated in.
pub(crate) trait Real: Copy {
    const ARITHMETIC: Arithmetic;
    fn of(value: f64) -> Self;
    fn double(self) -> f64;
    /// Applies an operation and rounds to this type.
    fn then(self, other: Self, op: impl Fn(f64, f64) -> f64) -> Self {
        Self::of(op(self.double(), other.double()))
    }
}

impl Real for f32 {
    const ARITHMETIC: Arithmetic = Arithmetic::Single;
    fn of(value: f64) -> f32 {
        value as f32
    }
    fn double(self) -> f64 {
        self.into()
    }
}

impl Real for f64 {
    const ARITHMETIC: Arithmetic = Arithmetic::Double;
    fn of(value: f64) -> f64 {
        value
    }
    fn double(self) -> f64 {
        self
    }
}

/// The results for a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub features: Vec<f64>,
    pub score: f64,
    pub t2: Option<f64>,
    pub log_likelihood: Option<f64>,
}

/// `a · b + start`, rounded after each operation.
fn dot<T: Real>(a: &[T], b: &[f64], start: f64) -> T {
    a.iter().zip(b).fold(T::of(start), |sum, (a, b)| {
        let product = a.then(T::of(*b), |a, b| a * b);
        sum.then(product, |sum, product| sum + product)
    })
}

fn add<T: Real>(a: T, b: T) -> T {
    a.then(b, |a, b| a + b)
}

fn multiply<T: Real>(a: T, b: T) -> T {
    a.then(b, |a, b| a * b)
}

fn squares<T: Real>(u: &[T]) -> T {
    u.iter().fold(T::of(0.0), |sum, v| add(sum, multiply(*v, *v)))
}

impl Formula {
    /// Evaluates the formula for one row, in T.
    pub(crate) fn evaluate<T: Real>(&self, x: &[f64]) -> Answer {
        let u = self.scaled::<T>(x);
        let stretch = self.stretch.as_ref().map(|stretch| stretched(stretch, &u));
        let times = |value: T, by: Option<T>| by.map_or(value, |by| multiply(value, by));
        let (raw, own) = self.values.of(&u);
        let raw = raw.into_iter().zip(&self.factors);
        let raw = raw.map(|(value, factor)| times(value, stretch.map(|f| multiply(f, T::of(*factor)))));
        let v: Vec<T> = raw.zip(&self.mean).map(|(value, mu)| add(value, T::of(-mu))).collect();
        let own = times(own, stretch.map(|f| multiply(f, f)));
        let features = apply(&self.features, &v);
        let mean = dot(&v, &self.beta, 0.0);
        let length = own.then(mean, |own, mean| own - 2.0 * mean).then(T::of(self.mean_norm), |a, b| a - b);
        let t2 = self.precisions.as_ref().map(|precisions| {
            let squares: Vec<T> = features.iter().map(|y| multiply(*y, *y)).collect();
            dot(&squares, precisions, 0.0).double()
        });
        let along = match &self.frame {
            None => features.clone(),
            Some(frame) => apply(&Linear { weights: frame.clone(), bias: vec![0.0; frame.columns] }, &features),
        };
        let along = match &self.weights {
            None => squares(&along),
            Some(weights) => dot(&along.iter().map(|y| multiply(*y, *y)).collect::<Vec<T>>(), weights, 0.0),
        };
        let distance = length.then(along, |a, b| a - b).double();
        // Negative only by rounding; NaN is kept.
        let distance = T::of(if distance < 0.0 { 0.0 } else { distance });
        let score = self.far.as_ref().map_or(distance, |far| {
            let steps = u.iter().zip(&far.centre).map(|(u, centre)| u.then(T::of(*centre), |a, b| a - b));
            add(distance, multiply(squares(&steps.collect::<Vec<T>>()), T::of(far.weight)))
        });
        let log_likelihood = self.density.as_ref().map(|density| {
            let distance = length.then(squares(&apply(&density.along, &v)), |a, b| a - b).double();
            -0.5 * (density.constant + distance.max(0.0) / density.noise)
        });
        let features = features.into_iter().map(Real::double).collect();
        Answer { features, score: score.double(), t2, log_likelihood }
    }

    fn scaled<T: Real>(&self, x: &[f64]) -> Vec<T> {
        let (first, second) = self.steps(T::ARITHMETIC);
        let steps = first.into_iter().zip(second).zip(&self.scale);
        let scale = |(x, ((first, second), scale)): (&f64, ((f64, f64), &f64))| {
            let less = T::of(*x).then(T::of(first), |a, b| a - b).then(T::of(second), |a, b| a - b);
            less.then(T::of(*scale), |a, b| a / b)
        };
        x.iter().zip(steps).map(scale).collect()
    }
}

/// `Wᵀv + bias`
fn apply<T: Real>(linear: &Linear, v: &[T]) -> Vec<T> {
    let column = |k: usize| linear.weights.rows().map(|row| row[k]).collect::<Vec<f64>>();
    (0..linear.weights.columns).map(|k| dot(v, &column(k), linear.bias[k])).collect()
}

fn stretched<T: Real>(stretch: &Stretch, u: &[T]) -> T {
    let vectors = Matrix { columns: stretch.vectors.d(), values: stretch.vectors.values().to_vec() };
    dot(&gaussian(stretch.delta, &vectors, u), &stretch.weights, stretch.constant)
}

/// `exp(2γ u·z − γ ‖z‖² − γ ‖u‖²)`, computed as in the graph.
fn gaussian<T: Real>(gamma: f64, points: &Matrix, u: &[T]) -> Vec<T> {
    let own = squares(u).then(T::of(-gamma), |a, b| a * b);
    let value = |z: &[f64]| {
        let (scaled, start): (Vec<f64>, f64) =
            (z.iter().map(|z| 2.0 * gamma * z).collect(), -gamma * z.iter().map(|z| z * z).sum::<f64>());
        T::of(add(dot(u, &scaled, start), own).double().exp())
    };
    points.rows().map(value).collect()
}

impl Values {
    /// `κ(u, z_i)` for every point, and `k(x, x)`.
    fn of<T: Real>(&self, u: &[T]) -> (Vec<T>, T) {
        match self {
            Values::Columns => (u.to_vec(), squares(u)),
            Values::Gaussian { gamma, points } => (gaussian(*gamma, points, u), T::of(1.0)),
            Values::Manhattan { gamma, points } => {
                let value = |z: &[f64]| {
                    let differences = u.iter().zip(z).map(|(u, z)| u.then(T::of(*z), |u, z| (u - z).abs()));
                    let distance = differences.fold(T::of(0.0), add);
                    T::of((-gamma * distance.double()).exp())
                };
                (points.rows().map(value).collect(), T::of(1.0))
            }
            Values::Dot { gamma, points, constants, own, own_constant, outer } => {
                let inner = |(z, start): (&[f64], &f64)| {
                    let scaled: Vec<f64> = z.iter().map(|z| gamma * z).collect();
                    outer_of(*outer, dot(u, &scaled, *start))
                };
                let squared = multiply(squares(u), T::of(*gamma));
                let own = add(squared, dot(u, own, *own_constant));
                (points.rows().zip(constants).map(inner).collect(), outer_of(*outer, own))
            }
            Values::Cosine { points } => {
                let length = T::of(squares(u).double().sqrt());
                if length.double() == 0.0 {
                    return (vec![T::of(0.0); points.n()], T::of(0.0));
                }
                let unit: Vec<T> = u.iter().map(|v| v.then(length, |a, b| a / b)).collect();
                (points.rows().map(|z| dot(&unit, z, 0.0)).collect(), T::of(1.0))
            }
        }
    }
}

fn outer_of<T: Real>(outer: Outer, inner: T) -> T {
    T::of(match outer {
        Outer::Identity => inner.double(),
        Outer::Power(power) => inner.double().powi(power),
        Outer::Tanh => inner.double().tanh(),
    })
}

#[cfg(test)]
mod tests {
    use skpca::kernel::{self, KERNELS};
    use skpca::method::{self, METHODS};
    use skpca::{Fit, Labels, Model, Points, Precision, Spec, Statistic, Statistics, Target, toys};

    use super::*;

    /// A kernel with parameters under which it is positive semi-definite.
    fn spec(entry: &kernel::Entry) -> Spec {
        match entry.capabilities {
            kernel::Capabilities { labelled: true, .. } => Spec::new(entry.name)
                .with("delta", 0.5)
                .with("constant", 0.5)
                .with("weights", vec![1.0, -1.5])
                .with("vectors", vec![-0.5, 0.2, 0.7, 0.1]),
            kernel::Capabilities { positive_semidefinite: false, .. } => {
                Spec::new(entry.name).with("gamma", 1e-7).with("coef0", 0.0)
            }
            _ => Spec::new(entry.name),
        }
    }

    fn fit(method: &str, kernel: Spec, points: &Points, statistic: Statistic) -> Option<Model> {
        let spec: Spec = method.parse().unwrap();
        let capabilities = skpca::method::entry(&spec).unwrap().capabilities;
        let target = (!capabilities.keeps_all_rows).then_some(Target::Support(8));
        let fit = Fit { method: spec, kernel, components: Some(2), target, statistic, ..Fit::default() };
        let labels = Labels::new((0..points.n()).map(|row| 3 * row / points.n())).unwrap();
        let model = if fit.labelled().unwrap() {
            fit.run_labelled(points, &labels, None, &())
        } else {
            fit.run(points, None, &())
        };
        match model {
            Ok(model) => Some(model),
            // A Mahalanobis distance needs uncorrelated components.
            Err(error) => {
                assert!(
                    statistic == Statistic::Mahalanobis && error.to_string().contains("uncorrelated"),
                    "{method}: {error}"
                );
                None
            }
        }
    }

    /// Factor of the tolerance: the Mahalanobis distance divides rounding errors by variances down to 1e-5.
    fn loss(statistic: Statistic) -> f64 {
        if statistic == Statistic::Mahalanobis { 1e3 } else { 1.0 }
    }

    fn close(found: f64, expected: f64, unit: f64) -> bool {
        (found - expected).abs() <= 1e-12 * unit
    }

    #[test]
    fn the_formula_agrees_with_the_model() {
        let points = toys::clusters(0);
        let rows = toys::clusters(1);
        let own = METHODS.iter().filter(|entry| entry.own_components()).map(|e| format!("{},refit=false", e.name));
        for method in METHODS.iter().map(|entry| entry.name.to_string()).chain(own) {
            let takes = method::entry(&method.parse().unwrap()).unwrap();
            let kernels = KERNELS.iter().filter(|entry| takes.takes(&Spec::new(entry.name)));
            let cases = kernels.flat_map(|entry| Statistic::ALL.iter().map(move |(_, s)| (spec(entry), *s)));
            for (kernel, statistic) in cases {
                let case = format!("{method} {kernel} {statistic:?}");
                let Some(model) = fit(&method, kernel, &points, statistic) else { continue };
                let formula = Formula::of(&model).unwrap();
                let features = model.transform(&rows, Precision::Double).unwrap();
                let scores = model.score(&rows, Precision::Double).unwrap();
                let largest = |values: &[f64]| values.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
                for (i, row) in rows.rows().enumerate() {
                    let found = formula.evaluate::<f64>(row);
                    let expected = &features[i * model.q()..(i + 1) * model.q()];
                    assert!(
                        found.features.iter().zip(expected).all(|(a, b)| close(*a, *b, largest(&features))),
                        "{case}"
                    );
                    // If nothing is outside the components, distances are rounding errors of the variance.
                    let unit = largest(&scores).max(model.parts().total_variance) * loss(statistic);
                    assert!(close(found.score, scores[i], unit), "{case}: {} {}", found.score, scores[i]);
                }
                assert_eq!(formula.precisions.is_some(), model.statistics(&rows).is_ok(), "{case}");
                if let Ok(expected) = model.statistics(&rows) {
                    let largest = expected.iter().fold(0.0_f64, |most, s| most.max(s.t2));
                    let found = |row: &[f64]| formula.evaluate::<f64>(row).t2.unwrap();
                    // T² amplifies errors of the smallest features, which differ by up to 1e-12 of the largest.
                    let sound = |(row, s): (&[f64], &Statistics)| close(found(row), s.t2, 1e3 * largest);
                    assert!(rows.rows().zip(&expected).all(sound), "{case}");
                }
                if model.parts().density.is_some() {
                    let expected = model.log_likelihood(&rows, Precision::Double).unwrap();
                    let found = |row: &[f64]| formula.evaluate::<f64>(row).log_likelihood.unwrap();
                    let sound = |(row, e): (&[f64], &f64)| close(found(row), *e, 10.0 * largest(&expected));
                    assert!(rows.rows().zip(&expected).all(sound), "{case}");
                }
            }
        }
    }
}
