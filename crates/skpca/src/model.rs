//! A fitted model: features and novelty scores of new points, at m kernel values each.
//!
//! ```text
//! project(x)_k = Σ_i a_ik (k(z_i, x) − μ_i)
//! score(x)     = k(x,x) − 2 βᵀk_z(x) + μᵀβ − ‖Eᵀ project(x)‖²     E orthonormalises the components
//! ```
//!
//! The score is the squared distance of φ(x) − Pφ̄ to the span of the components (Hoffmann 2007), with the mean
//! φ̄ projected on the support: β = K_zz⁻¹ μ. What the projection loses, `‖φ̄‖² − μᵀβ`, bounds the error:
//! `|score − Hoffmann's| ≤ 2 √(lost · score) + lost`.

mod check;
mod loss;

use std::collections::HashSet;
use std::sync::Arc;

use faer::{ColRef, Mat, MatRef};
use rayon::prelude::*;

use crate::columns::Columns;
use crate::dense;
use crate::density::Density;
use crate::error::{Error, Result};
use crate::gram::{Basis, Finish, Number, Precision, Weights, as_they_are};
use crate::kernel::{self, Kernel};
use crate::points::{Points, UncheckedRows, first_not_finite};
use crate::report::Report;
use crate::request::Request;
use crate::simd::{Instructions, Level};
use crate::spec::Spec;

use loss::{Loss, enough};

/// What is stored of a model; [`Model`] adds what is computed from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Parts {
    /// The method that chose the support.
    pub method: Spec,
    /// The kernel, its parameters resolved to numbers.
    pub kernel: Spec,
    /// Names and scaling of the input columns.
    pub columns: Columns,
    /// Rows of the training data that are the support, increasing; absent where the points are synthetic.
    pub rows: Option<Vec<usize>>,
    /// The support, m × d, scaled.
    pub support: Points<'static>,
    /// m × q, each component of unit norm in feature space.
    pub coefficients: Mat<f64>,
    /// q × q′ such that `coefficients · frame` are orthonormal; absent where the components themselves are.
    pub frame: Option<Mat<f64>>,
    /// The Gaussian that the method fitted, where it did.
    pub density: Option<Density>,
    /// μ: mean kernel value of each support point over the training data; zero if not centred.
    pub mu: Vec<f64>,
    /// β: the mean projected on the support.
    pub beta: Vec<f64>,
    /// Variance along each component, per row.
    pub variances: Vec<f64>,
    /// Variance in the span of the components, per row.
    pub captured: f64,
    /// Whether features are centred.
    pub center: bool,
    /// Training rows.
    pub n: usize,
    /// `(1/n) Σ k(x, x) − ‖Pφ̄‖²`: all the variance there is, per row.
    pub total_variance: f64,
    /// `‖φ̄‖² − μᵀβ`, or an upper bound of it.
    pub mean_lost: f64,
    /// Share of what exact kernel PCA captures.
    pub fidelity: f64,
    /// Seed of the fit.
    pub seed: u64,
    /// Training scores.
    pub scores: Scores,
    /// How the fit went.
    pub report: Report,
    /// What was asked for; files of older versions do not know.
    pub request: Option<Request>,
}

/// A fitted model. One that exists can transform and score.
pub struct Model {
    parts: Parts,
    basis: Basis,
    features: Weights,
    novelty: Weights,
    /// `μᵀβ`
    mean_norm: f64,
    /// What 32 bits would cost.
    loss: Loss,
}

impl Model {
    /// Checks that the parts fit together, and packs them.
    pub fn new(parts: Parts) -> Result<Model> {
        Model::with(parts, Instructions::best())
    }

    /// The same model, its kernel values by the instructions of `level`. A model that was just fitted computes with those of
    /// its fit; one that was read, with the best there are.
    pub fn pinned(self, level: Level) -> Result<Model> {
        let instructions = level.instructions()?;
        if self.kernel().instructions() == instructions { Ok(self) } else { Model::with(self.parts, instructions) }
    }

    pub(crate) fn with(parts: Parts, instructions: Instructions) -> Result<Model> {
        let kernel = kernel::pinned(kernel::build_resolved(&parts.kernel)?, instructions);
        parts.check()?;
        if let Some(width) = kernel.width().filter(|width| *width != parts.support.d()) {
            let d = parts.support.d();
            return Err(Error::file(format!("its kernel is for {width} columns, its support has {d}")));
        }
        let basis = Basis::centred(kernel, parts.support.clone(), parts.mu.clone());
        Ok(Model::packed(basis, parts))
    }

    /// The same of parts that were [checked](Parts::check), where the support is packed already, centred.
    pub(crate) fn packed(basis: Basis, parts: Parts) -> Model {
        let features = basis.weights(parts.coefficients.clone());
        let novelty = basis.weights(with_beta(&parts.coefficients, &parts.beta));
        let mean_norm = dense::dot(&parts.mu, &parts.beta);
        let loss = Loss::of_32_bits(basis.kernel().as_ref(), &parts);
        Model { parts, basis, features, novelty, mean_norm, loss }
    }

    /// What is stored.
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Names the columns that tables may have beside the model's.
    pub fn ignore(&mut self, names: Vec<String>) {
        let mut seen: HashSet<&String> = self.parts.columns.names.iter().flatten().collect();
        self.parts.columns.ignored = names.iter().filter(|name| seen.insert(name)).cloned().collect();
    }

    /// Keeps the caller's own words for what was asked for.
    pub fn request_in(&mut self, words: serde_json::Map<String, serde_json::Value>) {
        self.parts.request.iter_mut().for_each(|request| request.words = words.clone());
    }

    /// Number of components.
    pub fn q(&self) -> usize {
        self.parts.coefficients.ncols()
    }

    /// Number of support points.
    pub fn m(&self) -> usize {
        self.parts.support.n()
    }

    /// The kernel.
    pub fn kernel(&self) -> &Arc<dyn Kernel> {
        self.basis.kernel()
    }

    /// Variance captured on the training data, summed over rows and components.
    pub fn captured(&self) -> f64 {
        self.parts.captured * self.parts.n as f64
    }

    /// Features of `points`, q per row, row after row. In 32 bits they differ from those in 64 bits by less than 1e-4 of their
    /// standard deviation: models in which more would be lost to cancellation use 64 bits whatever `precision` says.
    ///
    /// Rows are [`Points`], or [`UncheckedRows`] of either width that nobody has looked at yet.
    pub fn transform<'a>(&self, rows: impl Into<UncheckedRows<'a>>, precision: Precision) -> Result<Vec<f64>> {
        let rows = rows.into();
        let mut out = vec![0.0; rows.n() * self.q()];
        self.transform_into(rows, precision, &mut out)?;
        Ok(out)
    }

    /// [`Model::transform`] into memory that the caller has: q numbers per row.
    pub fn transform_into(&self, rows: UncheckedRows, precision: Precision, out: &mut [f64]) -> Result<()> {
        assert_eq!(out.len(), rows.n() * self.q());
        self.pass(rows, &self.features, enough(precision, self.loss.features), as_they_are, out)
    }

    /// [`Model::transform_into`], each feature rounded to 32 bits; one that is too large for them is an error.
    pub fn transform_into_single(&self, rows: UncheckedRows, precision: Precision, out: &mut [f32]) -> Result<()> {
        assert_eq!(out.len(), rows.n() * self.q());
        self.pass(rows, &self.features, enough(precision, self.loss.features), as_they_are, out)
    }

    /// Novelty scores of `points`: squared distances in feature space, higher is more novel. In 32 bits they differ from those
    /// in 64 bits by less than 1e-4 of the mean training score or of their own size, as in [`Model::transform`].
    pub fn score<'a>(&self, rows: impl Into<UncheckedRows<'a>>, precision: Precision) -> Result<Vec<f64>> {
        let rows = rows.into();
        let mut out = vec![0.0; rows.n()];
        self.score_into(rows, precision, &mut out)?;
        Ok(out)
    }

    /// [`Model::score`] into memory that the caller has: one number per row.
    pub fn score_into(&self, rows: UncheckedRows, precision: Precision, out: &mut [f64]) -> Result<()> {
        assert_eq!(out.len(), rows.n());
        let finish = |x: &Points, products: &[f64], out: &mut [f64]| {
            let rows = products.chunks_exact(self.q() + 1).zip(x.rows());
            out.iter_mut().zip(rows).for_each(|(out, (row, x))| *out = self.novelty_of(row, x));
        };
        self.pass(rows, &self.novelty, enough(precision, self.loss.scores), finish, out)
    }

    /// What `finish` makes of the products of the rows, scaled, with `weights`.
    fn pass<T: Number>(
        &self,
        rows: UncheckedRows,
        weights: &Weights,
        precision: Precision,
        finish: impl Finish<T>,
        out: &mut [T],
    ) -> Result<()> {
        let x = self.parts.columns.scaled(rows)?;
        if self.basis.pass(&x, weights, precision, &finish, out) {
            return Ok(());
        }
        // Rare enough for a second look to tell why.
        let out: Vec<f64> = out.iter().map(|v| (*v).into()).collect();
        x.fault().map_or_else(|| self.finite(&out, out.len() / rows.n()), Err)
    }

    /// The score of one row from its products with `[A β]`.
    fn novelty_of(&self, products: &[f64], x: &[f64]) -> f64 {
        distance(self.kernel().eval(x, x), products, self.mean_norm, self.parts.frame.as_ref())
    }

    /// The share of the variance of `points` in feature space, around the training mean, that the components capture: 0 to 1.
    pub fn captured_share(&self, points: &Points) -> Result<f64> {
        let x = self.parts.columns.apply(points)?;
        let products = self.basis.product(&x, &self.novelty, Precision::Double);
        let (mut lost, mut captured) = (0.0, 0.0);
        for (row, x) in products.chunks_exact(self.q() + 1).zip(x.rows()) {
            lost += self.novelty_of(row, x);
            captured += projected(&row[..self.q()], self.parts.frame.as_ref());
        }
        self.finite(&[lost, captured], 1)?;
        Ok(if captured > 0.0 { captured / (captured + lost) } else { 0.0 })
    }

    /// Log-likelihood of each row of `points` under the Gaussian of the method `likelihood`: its mean over held-out rows
    /// tells which σ² is best.
    pub fn log_likelihood<'a>(&self, rows: impl Into<UncheckedRows<'a>>, precision: Precision) -> Result<Vec<f64>> {
        let Some(density) = &self.parts.density else {
            return Err(Error::parameter("method", &self.parts.method.name, "likelihood: no other has one"));
        };
        let beta = Mat::from_fn(self.parts.beta.len(), 1, |i, _| self.parts.beta[i]);
        let weights = self.basis.weights(dense::beside(density.axes.as_ref(), beta.as_ref()));
        let constant =
            density.dimension as f64 * (std::f64::consts::TAU * density.noise).ln() + density.log_determinant;
        let each = |(row, x): (&[f64], &[f64])| {
            let (along, mean) = row.split_at(row.len() - 1);
            let length = self.kernel().eval(x, x) - 2.0 * mean[0] - self.mean_norm;
            let distance = length - along.iter().map(|y| y * y).sum::<f64>();
            -0.5 * (constant + distance.max(0.0) / density.noise)
        };
        let finish = |x: &Points, products: &[f64], out: &mut [f64]| {
            let rows = products.chunks_exact(density.axes.ncols() + 1).zip(x.rows());
            out.iter_mut().zip(rows).for_each(|(out, row)| *out = each(row));
        };
        let rows = rows.into();
        let mut out = vec![0.0; rows.n()];
        self.pass(rows, &weights, enough(precision, self.loss.scores), finish, &mut out)?;
        Ok(out)
    }

    /// How the score of each row changes with each input, d per row, row after row: which inputs drive it.
    ///
    /// ```text
    /// ∂score = 2 ∂k(x, ·)|ₓ − 2 Σ_i (β_i + Σ_k a_ik w_k) ∂k(x, z_i),   w = E Eᵀ project(x)
    /// ```
    pub fn score_gradient(&self, points: &Points) -> Result<Vec<f64>> {
        let x = self.parts.columns.apply(points)?;
        let (q, d) = (self.q(), x.d());
        let features = self.basis.product(&x, &self.features, Precision::Double);
        let mut out = vec![0.0; x.n() * d];
        out.par_chunks_mut(d).zip(features.par_chunks(q)).enumerate().for_each(|(i, (out, features))| {
            let x = x.row(i);
            let along = self.orthonormal(features);
            self.kernel().add_gradient(x, x, 2.0, out);
            for (j, z) in self.parts.support.rows().enumerate() {
                let a = self.parts.coefficients.row(j);
                let weight = self.parts.beta[j] + a.iter().zip(&along).map(|(a, w)| a * w).sum::<f64>();
                self.kernel().add_gradient(x, z, -2.0 * weight, out);
            }
            out.iter_mut().zip(&self.parts.columns.scale).for_each(|(out, scale)| *out /= scale);
        });
        self.finite(&out, d)?;
        Ok(out)
    }

    /// `E Eᵀ y`
    fn orthonormal(&self, y: &[f64]) -> Vec<f64> {
        let Some(frame) = &self.parts.frame else { return y.to_vec() };
        let mut out = vec![0.0; y.len()];
        for e in frame.col_iter() {
            let along: f64 = e.iter().zip(y).map(|(e, y)| e * y).sum();
            out.iter_mut().zip(e.iter()).for_each(|(out, e)| *out += along * e);
        }
        out
    }

    /// How far a score can be from the one with the mean unprojected.
    pub fn score_error(&self, score: f64) -> f64 {
        2.0 * (self.parts.mean_lost * score).sqrt() + self.parts.mean_lost
    }

    fn finite(&self, values: &[f64], columns: usize) -> Result<()> {
        match first_not_finite(values) {
            Some(at) => Err(Error::Overflow { kernel: self.parts.kernel.name.clone(), row: at / columns }),
            None => Ok(()),
        }
    }
}

/// `[A β]`
fn with_beta(coefficients: &Mat<f64>, beta: &[f64]) -> Mat<f64> {
    dense::beside(coefficients.as_ref(), MatRef::from_column_major_slice(beta, beta.len(), 1))
}

/// The score of a row x from `k(x, x)` and its products with `[A β]`; `mean_norm` is `μᵀβ`.
fn distance(own: f64, products: &[f64], mean_norm: f64, frame: Option<&Mat<f64>>) -> f64 {
    let (features, mean) = products.split_at(products.len() - 1);
    // βᵀk_z(x) is βᵀ(k_z(x) − μ), which the product gives, and μᵀβ.
    let score = own - 2.0 * mean[0] - mean_norm - projected(features, frame);
    // Below zero by rounding only: it is a squared distance.
    if score < 0.0 { 0.0 } else { score }
}

/// `‖Eᵀ y‖²`
fn projected(features: &[f64], frame: Option<&Mat<f64>>) -> f64 {
    let Some(frame) = frame else { return features.iter().map(|y| y * y).sum() };
    let along = |e: ColRef<f64>| e.iter().zip(features).map(|(e, y)| e * y).sum::<f64>();
    frame.col_iter().map(|e| along(e) * along(e)).sum()
}

/// Fixes the signs of components on training rows `x` (scaled): of each, the largest feature is positive. Returns the scores
/// of these rows. The basis is centred by `mu`.
pub(crate) fn orient(
    basis: &Basis,
    coefficients: &mut Mat<f64>,
    frame: &mut Option<Mat<f64>>,
    (mu, beta): (&[f64], &[f64]),
    x: &Points,
) -> Result<Vec<f64>> {
    let (q, kernel) = (coefficients.ncols(), basis.kernel());
    let products = basis.product(x, &basis.weights(with_beta(coefficients, beta)), Precision::Double);
    let mean_norm = dense::dot(mu, beta);
    let rows = products.chunks_exact(q + 1).zip(x.rows());
    let scores: Vec<f64> = rows.map(|(row, x)| distance(kernel.eval(x, x), row, mean_norm, frame.as_ref())).collect();
    if let Some(row) = first_not_finite(&scores) {
        return Err(Error::Overflow { kernel: kernel.spec().name, row });
    }
    for k in 0..q {
        let feature = || products.iter().skip(k).step_by(q + 1);
        let largest = feature().fold(0.0_f64, |largest, y| largest.max(y.abs()));
        // Among sizes equal but for rounding, the first decides.
        if feature().find(|y| y.abs() >= (1.0 - 1e-8) * largest).is_some_and(|y| *y < 0.0) {
            coefficients.col_mut(k).iter_mut().for_each(|a| *a = -*a);
            frame.iter_mut().for_each(|frame| frame.row_mut(k).iter_mut().for_each(|e| *e = -*e));
        }
    }
    Ok(scores)
}

/// Order statistics of the training scores: a threshold and p-values without keeping them all.
#[derive(Clone, Debug, PartialEq)]
pub struct Scores {
    /// Training rows that were scored.
    pub count: usize,
    /// Share of them at or below the threshold.
    pub quantile: f64,
    /// Scores above it are novel.
    pub threshold: f64,
    /// Some of the sorted scores, increasing …
    pub values: Vec<f64>,
    /// … and how many of all are higher.
    pub above: Vec<usize>,
}

/// The highest scores are kept one by one, the rest on a grid of ranks: this many of each.
const KEPT_SCORES: usize = 1000;

impl Scores {
    /// Summarises training scores; `quantile` of them lie below the threshold.
    pub(crate) fn new(mut all: Vec<f64>, quantile: f64) -> Scores {
        all.sort_by(f64::total_cmp);
        let count = all.len();
        let position = quantile * (count - 1) as f64;
        let (below, above) = (all[position.floor() as usize], all[position.ceil() as usize]);
        let threshold = below + (above - below) * position.fract();
        let step = count.saturating_sub(KEPT_SCORES).div_ceil(KEPT_SCORES).max(1);
        let kept = |i: &usize| i.is_multiple_of(step) || i + KEPT_SCORES >= count;
        let ranks: Vec<usize> = (0..count).filter(kept).collect();
        let above = |i: &usize| count - all.partition_point(|v| *v <= all[*i]);
        Scores {
            count,
            quantile,
            threshold,
            above: ranks.iter().map(above).collect(),
            values: ranks.iter().map(|&i| all[i]).collect(),
        }
    }

    /// `(1 + number of training scores at least as high) / (1 + number of training scores)`; between stored
    /// scores the larger p. NaN is as high as nothing: its p is NaN.
    pub fn p_value(&self, score: f64) -> f64 {
        if score.is_nan() {
            return f64::NAN;
        }
        // As high as `score` are at most those above the highest stored score below it.
        let at_least = match self.values.partition_point(|v| *v < score) {
            0 => self.count,
            i => self.above[i - 1],
        };
        (1.0 + at_least as f64) / (1.0 + self.count as f64)
    }

    pub(crate) fn check(&self) -> Result<()> {
        let increasing = self.values.windows(2).all(|w| w[0] <= w[1]);
        let decreasing = self.above.windows(2).all(|w| w[0] >= w[1]);
        let inside = self.above.iter().all(|&c| c < self.count);
        let sound = self.values.len() == self.above.len() && !self.values.is_empty();
        let finite = self.values.iter().chain([&self.threshold, &self.quantile]).all(|v| v.is_finite());
        if !(increasing && decreasing && inside && sound && finite) {
            return Err(Error::file("the training scores are not in order"));
        }
        if !(self.quantile > 0.0 && self.quantile < 1.0) {
            return Err(Error::file(format!("its quantile is {}, expected a number between 0 and 1", self.quantile)));
        }
        let (lowest, highest) = (self.values[0], self.values[self.values.len() - 1]);
        if lowest >= 0.0 && (lowest..=highest).contains(&self.threshold) {
            Ok(())
        } else {
            Err(Error::file(format!("its threshold {} is not among the training scores", self.threshold)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::loss::SINGLE_ERROR;
    use super::*;
    use crate::{Fit, Target, toys};

    /// The largest error of features and of scores in 32 bits, taken at its word, in the units of `Loss`.
    fn error_in_32_bits(model: &Model, points: &Points) -> (f64, f64) {
        let x = model.parts.columns.apply(points).unwrap();
        let q = model.q();
        let products = |precision| model.basis.product(&x, &model.novelty, precision);
        let (single, double) = (products(Precision::Single), products(Precision::Double));
        let off = |i: usize| (single[i] - double[i]).abs() / model.parts.variances[i % (q + 1)].sqrt();
        let features = (0..single.len()).filter(|i| i % (q + 1) < q).map(off).fold(0.0, f64::max);
        let scores = |products: &[f64]| -> Vec<f64> {
            products.chunks_exact(q + 1).zip(x.rows()).map(|(row, x)| model.novelty_of(row, x)).collect()
        };
        let lost = model.parts.total_variance - model.parts.captured;
        let (single, double) = (scores(&single), scores(&double));
        let off = single.iter().zip(&double).map(|(a, b)| (a - b).abs() / lost.max(*b));
        (features, off.fold(0.0, f64::max))
    }

    #[test]
    fn what_32_bits_cost_is_known_and_never_more_than_promised() {
        let mut taken = 0;
        let kernels = ["rbf", "rbf,gamma=1", "rbf,gamma=0.01", "rbf,gamma=1e-3", "rbf,gamma=1e-4", "rbf,gamma=1e-5"];
        let others =
            ["laplacian", "laplacian,gamma=1e-4", "linear", "polynomial", "cosine", "sigmoid,gamma=1e-7,coef0=0"];
        for kernel in kernels.iter().chain(&others) {
            for (n, d, m, q) in [(600, 2, 15, 3), (2000, 10, 50, 10), (1000, 4, 200, 10), (500, 30, 30, 5)] {
                let points = toys::normal(n, d, 3);
                let fit = Fit {
                    method: Spec::new("landmarks"),
                    kernel: kernel.parse().unwrap(),
                    components: Some(q),
                    target: Some(Target::Support(m)),
                    ..Fit::default()
                };
                let model = fit.run(&points, None, &()).unwrap();
                let loss = model.loss;
                let (features, scores) = error_in_32_bits(&model, &points);
                let case = format!("{kernel} {n} × {d}, {m} points: {loss:?}, {features:.1e}, {scores:.1e}");
                assert!(features <= loss.features && (scores <= loss.scores || loss.scores > 1.0), "{case}");
                taken += usize::from(loss.scores <= SINGLE_ERROR);
                let (single, double) = (Precision::Single, Precision::Double);
                let lost = model.parts.total_variance - model.parts.captured;
                let pairs =
                    model.score(&points, single).unwrap().into_iter().zip(model.score(&points, double).unwrap());
                for (a, b) in pairs {
                    assert!((a - b).abs() <= SINGLE_ERROR * lost.max(b), "{case}: {a} {b}");
                }
            }
        }
        assert!((10..48).contains(&taken), "{taken} of 48 in 32 bits");
    }

    /// A small model of scaled columns, and rows for it: enough to be spread over threads.
    fn small(kernel: &str) -> (Model, Points<'static>) {
        let points = toys::normal(2000, 5, 1);
        let fit = Fit {
            method: Spec::new("landmarks"),
            kernel: kernel.parse().unwrap(),
            components: Some(4),
            target: Some(Target::Support(100)),
            ..Fit::default()
        };
        (fit.run(&points, None, &()).unwrap(), toys::normal(10_000, 5, 2))
    }

    #[test]
    fn rows_are_scaled_as_they_are_read() {
        for kernel in ["rbf", "laplacian", "polynomial", "cosine"] {
            let (model, points) = small(kernel);
            let x = model.parts.columns.apply(&points).unwrap();
            for precision in [Precision::Double, Precision::Single] {
                let used = enough(precision, model.loss.features);
                let expected = model.basis.product(&x, &model.features, used);
                assert!(model.transform(&points, precision).unwrap() == expected, "{kernel} {precision:?}");
                let used = enough(precision, model.loss.scores);
                let products = model.basis.product(&x, &model.novelty, used);
                let rows = products.chunks_exact(model.q() + 1).zip(x.rows());
                let expected: Vec<f64> = rows.map(|(row, x)| model.novelty_of(row, x)).collect();
                assert!(model.score(&points, precision).unwrap() == expected, "{kernel} {precision:?}");
            }
        }
    }

    #[test]
    fn rows_in_32_bits_are_the_numbers_they_are() {
        let (model, points) = small("rbf");
        let narrow: Vec<f32> = points.values().iter().map(|v| *v as f32).collect();
        let wide = Points::new(5, narrow.iter().map(|v| f64::from(*v)).collect::<Vec<_>>()).unwrap();
        let rows = UncheckedRows::new(5, &narrow[..]).unwrap();
        for precision in [Precision::Double, Precision::Single] {
            assert!(model.transform(rows, precision) == model.transform(&wide, precision), "{precision:?}");
            assert!(model.score(rows, precision) == model.score(&wide, precision), "{precision:?}");
            let mut out = vec![0.0; 10_000 * model.q()];
            model.transform_into_single(rows, precision, &mut out).unwrap();
            let rounded: Vec<f32> = model.transform(rows, precision).unwrap().iter().map(|v| *v as f32).collect();
            assert!(out == rounded, "{precision:?}");
        }
    }

    #[test]
    fn the_first_row_that_cannot_be_read_is_named() {
        let (model, points) = small("rbf");
        let message = |bad: &[(usize, f64)]| {
            let mut values = points.values().to_vec();
            bad.iter().for_each(|(at, value)| values[*at] = *value);
            let rows = UncheckedRows::new(5, &values[..]).unwrap();
            let found = model.transform(rows, Precision::Double).unwrap_err().to_string();
            assert_eq!(model.score(rows, Precision::Single).unwrap_err().to_string(), found);
            found
        };
        let infinity = f64::INFINITY;
        assert_eq!(message(&[(49_999, f64::NAN)]), "row 9999, column 4 (from 0): NaN is not a finite number");
        assert_eq!(
            message(&[(12_346, -infinity), (40_000, f64::NAN)]),
            "row 2469, column 1 (from 0): -inf is not a finite number"
        );
        let mut narrow = [0.0_f32; 50];
        narrow[7] = f32::INFINITY;
        let found =
            model.score(UncheckedRows::new(5, &narrow[..]).unwrap(), Precision::Double).unwrap_err().to_string();
        assert_eq!(found, "row 1, column 2 (from 0): inf is not a finite number");
    }

    #[test]
    fn rows_that_scaling_or_the_kernel_makes_infinite_are_named() {
        let (mut model, points) = small("polynomial");
        let with = |at: usize, value: f64| {
            let mut values = points.values().to_vec();
            values[at] = value;
            Points::new(5, values).unwrap()
        };
        let found = model.transform(&with(20_003, 1e200), Precision::Double).unwrap_err();
        assert_eq!(found, Error::Overflow { kernel: "polynomial".into(), row: 4000 });
        let large = with(20_003, 1e20);
        assert!(model.transform(&large, Precision::Double).is_ok());
        let mut out = vec![0.0; points.n() * model.q()];
        let found = model.transform_into_single((&large).into(), Precision::Double, &mut out).unwrap_err();
        assert_eq!(found, Error::Overflow { kernel: "polynomial".into(), row: 4000 });
        model.parts.columns.scale[3] = 1e-200;
        let found = model.transform(&with(20_003, 1e200), Precision::Double).unwrap_err();
        assert_eq!(found, model.parts.columns.apply(&with(20_003, 1e200)).unwrap_err());
        assert_eq!(found, Error::Outside { row: 4000, column: 3, value: 1e200 });
    }

    #[test]
    fn linear_data_of_a_tiny_unit_do_not_vanish_in_32_bits() {
        let points = toys::normal(300, 5, 0);
        let tiny = Points::new(5, points.values().iter().map(|v| v * 1e-25).collect::<Vec<_>>()).unwrap();
        let (kernel, method) = (Spec::new("linear"), Spec::new("landmarks"));
        let fit = Fit { kernel, method, scaling: crate::Scaling::None, components: Some(2), ..Fit::default() };
        let model = fit.run(&tiny, None, &()).unwrap();
        let (single, double) =
            (model.transform(&tiny, Precision::Single).unwrap(), model.transform(&tiny, Precision::Double).unwrap());
        assert!(double.iter().any(|y| *y != 0.0) && single == double);
    }

    #[test]
    fn scores_summarise_exactly_when_few() {
        let scores = Scores::new(vec![3.0, 1.0, 2.0, 2.0], 0.5);
        assert_eq!(scores.threshold, 2.0);
        let p = |s| (scores.p_value(s) * 5.0).round() as usize;
        assert_eq!([p(0.0), p(1.0), p(1.5), p(2.0), p(2.5), p(3.0), p(4.0)], [5, 5, 4, 4, 2, 2, 1]);
    }

    #[test]
    fn a_score_that_is_no_number_has_no_p_value() {
        let scores = Scores::new(vec![3.0, 1.0, 2.0], 0.5);
        assert!(scores.p_value(f64::NAN).is_nan());
        assert_eq!([scores.p_value(f64::NEG_INFINITY), scores.p_value(f64::INFINITY)], [1.0, 0.25]);
    }

    #[test]
    fn many_scores_keep_the_tail_and_bound_the_rest() {
        let all: Vec<f64> = (0..50_000).map(|i| i as f64).collect();
        let scores = Scores::new(all, 0.95);
        assert!((scores.threshold - 0.95 * 49_999.0).abs() < 1e-9);
        assert!(scores.values.len() <= 2 * KEPT_SCORES + 1);
        for s in [0.0, 17.5, 12_345.6, 48_999.5, 49_500.0, 49_999.0, 60_000.0] {
            let truth = (1.0 + (0..50_000).filter(|&i| i as f64 >= s).count() as f64) / 50_001.0;
            let found = scores.p_value(s);
            assert!(found >= truth - 1e-12 && found <= truth + 0.0011, "{s}: {found} {truth}");
            if s >= 49_000.0 {
                assert!((found - truth).abs() < 1e-12, "{s}: the tail is exact");
            }
        }
    }
}
