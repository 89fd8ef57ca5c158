//! A fitted model: features and novelty scores of new points, at m kernel values each.
//!
//! ```text
//! project(x)_k = Σ_i a_ik (k(z_i, x) − μ_i)
//! score(x)     = k(x,x) − 2 βᵀk_z(x) + μᵀβ − ‖Eᵀ project(x)‖²     E orthonormalises the components
//! ```
//!
//! With a noise ε > 0 the score is ε times the squared Mahalanobis distance under the covariance of the components plus
//! white noise of variance ε: a deviation outside the span of the components counts in full, one along a component
//! with weight `ε / (λ + ε)`. This combines SPE and T² of process monitoring in one number, without a hard choice of
//! the number of components:
//!
//! ```text
//! score(x) = k(x,x) − 2 βᵀk_z(x) + μᵀβ − Σ_k λ_k / (λ_k + ε) project(x)_k²  (+ a trace of ‖x − z̄‖² under bounded kernels)
//! ```
//!
//! Without noise, the score is the squared distance of φ(x) − Pφ̄ from the span of the components (Hoffmann 2007), with
//! the mean φ̄ projected onto the support: β = K_zz⁻¹ μ. The norm lost by that projection, `lost = ‖φ̄‖² − μᵀβ`,
//! bounds the error:
//! `|score − Hoffmann's| ≤ 2 √(lost · score) + lost`.

mod answers;
mod check;
mod contributions;
mod importance;
mod loss;
mod scores;
mod sparse;
mod statistics;

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use faer::{ColRef, Mat, MatRef};
use rayon::prelude::*;

use crate::columns::{Columns, FarOutside, Scaling};
use crate::dense;
use crate::density::Density;
use crate::error::{Error, Result};
use crate::gram::{Basis, Finish, Number, Precision, Products, Queried, Weights, as_they_are, each_row};
use crate::intake::Intake;
use crate::kernel::{self, Form, Kernel};
use crate::points::{Points, UncheckedRows, first_not_finite};
use crate::report::{Agreement, Report};
use crate::request::Request;
use crate::sparse::SparseBasis;
use crate::spec::Spec;
use skpca_simd::{Instructions, Level};

pub use contributions::Contributions;
use loss::{Loss, enough};
pub(crate) use scores::repeated;
pub use scores::{Calibration, Scores, Tail};
pub use statistics::Statistics;

/// ε of a Mahalanobis score, as a share of the total variance.
const NOISE: f64 = 1e-5;
/// ε for kernels that are not smooth: their variances decay slowly, and their last components are noise themselves.
const NOISE_OF_ROUGH_KERNELS: f64 = 1e-2;

/// Returns ε for a kernel, as a share of the total variance.
pub(crate) fn noise(kernel: &dyn Kernel) -> f64 {
    if matches!(kernel.form(), Form::Manhattan { .. }) { NOISE_OF_ROUGH_KERNELS } else { NOISE }
}

/// The stored parts of a model; [`Model`] adds what is computed from them.
///
/// ```
/// use skpca::{Fit, Model, toys};
///
/// let model = Fit::default().train(&toys::parabola(0))?;
/// let parts = model.parts().clone();
/// assert_eq!((parts.n, parts.support.n()), (500, model.m()));
/// assert_eq!(Model::new(parts)?.parts(), model.parts());
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Parts {
    /// The method that chose the support.
    pub method: Spec,
    /// The kernel, with its parameters resolved to numbers.
    pub kernel: Spec,
    /// Names and scaling of the input columns.
    pub columns: Columns,
    /// Indices of the support points among the training rows, increasing; absent if the points are synthetic.
    pub rows: Option<Vec<usize>>,
    /// The support points, m × d, scaled.
    pub support: Points<'static>,
    /// Coefficients of the components, m × q; each component has unit norm in feature space.
    pub coefficients: Mat<f64>,
    /// The q × q′ matrix that makes `coefficients · frame` orthonormal; absent if the components already are.
    pub frame: Option<Mat<f64>>,
    /// The Gaussian fitted by the method, if it fits one.
    pub density: Option<Density>,
    /// μ: mean kernel value of each support point over the training data; zero if not centred.
    pub mu: Vec<f64>,
    /// β: coefficients of the mean projected onto the support.
    pub beta: Vec<f64>,
    /// Variance along each component, per row.
    pub variances: Vec<f64>,
    /// Variance in the span of the components, per row.
    pub captured: f64,
    /// ε of the score; 0 if the score is the distance from the span of the components.
    pub noise: f64,
    /// Whether features are centred.
    pub center: bool,
    /// Number of rows of the training table, including those of weight zero.
    pub n: usize,
    /// Total variance per row: `(1/n) Σ k(x, x) − ‖Pφ̄‖²`.
    pub total_variance: f64,
    /// `‖φ̄‖² − μᵀβ`, or an upper bound of it.
    pub mean_lost: f64,
    /// Captured variance divided by that of exact kernel PCA.
    pub fidelity: f64,
    /// Seed of the fit.
    pub seed: u64,
    /// Scores of training rows.
    pub scores: Scores,
    /// The report of the fit.
    pub report: Report,
    /// The parameters requested for the fit; absent in files of older versions.
    pub request: Option<Request>,
    /// The state of online learning, if the model was updated after its fit.
    pub learned: Option<Learned>,
}

/// The state of a model that is updated online.
///
/// ```
/// use skpca::{Fit, Learning, Online, toys};
///
/// let points = toys::parabola(0);
/// let model = Fit::default().train(&points)?;
/// let online = Online::new(model, &points, None, Learning::default(), &())?;
/// assert_eq!(online.into_model().parts().learned.as_ref().map(|learned| learned.rows), Some(500));
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Learned {
    /// Number of rows learned.
    pub rows: usize,
    /// The threshold of the original fit; the model's own threshold follows the rows.
    pub reference: f64,
    /// ε: bound of the error of the square root of the captured variance that is due to points added later, relative to
    /// the square root of `Σ k(x, x)`.
    pub error: f64,
    /// The state needed to continue learning, as bytes that only [`Online`](crate::Online) reads.
    pub state: Option<Arc<[u8]>>,
}

/// A fitted model. Its parts have been checked, so every `Model` can transform and score.
///
/// ```
/// use skpca::{Fit, Points, Precision, toys};
///
/// let model = Fit { components: Some(3), ..Fit::default() }.train(&toys::parabola(0))?;
/// let rows = Points::new(2, vec![0.5, 0.25, 0.5, 5.0])?;
/// assert_eq!(model.transform(&rows, Precision::Double)?.len(), 2 * model.q());
/// let scores = model.score(&rows, Precision::Double)?;
/// assert!(!model.is_novel(scores[0]) && model.is_novel(scores[1]));
/// # Ok::<(), skpca::Error>(())
/// ```
pub struct Model {
    parts: Parts,
    basis: Basis,
    features: Weights,
    novelty: Weights,
    /// `μᵀβ`
    mean_norm: f64,
    /// The term that ranks rows so far away that all their kernel values vanish.
    far: Option<Far>,
    /// Precision that 32-bit arithmetic would lose.
    loss: Loss,
    /// The support prepared for sparse rows, built on first use.
    sparse: OnceLock<SparseBasis>,
}

impl Model {
    /// Checks that the parts are consistent and builds the model.
    pub fn new(parts: Parts) -> Result<Model> {
        Model::with(parts, Instructions::best())
    }

    /// Returns the same model with kernel values computed by the instructions of `level`. By default a fitted model
    /// uses those of its fit, and a model read from a file the best ones available.
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

    /// Builds the model from [checked](Parts::check) parts and the basis of their support, centred.
    pub(crate) fn packed(basis: Basis, parts: Parts) -> Model {
        let features = basis.weights(parts.coefficients.clone());
        let novelty = basis.weights(with_beta(&parts.shrunk(), &parts.beta));
        let mean_norm = dense::dot(&parts.mu, &parts.beta);
        let loss = Loss::of_32_bits(basis.kernel().as_ref(), &parts);
        let far = (parts.noise > 0.0 && basis.kernel().bounded()).then(|| Far::new(&parts.support, parts.noise));
        Model { parts, basis, features, novelty, mean_norm, far, loss, sparse: OnceLock::new() }
    }

    /// Returns the weights that give the features and, beside them, the product with the mean.
    fn features_and_mean(&self) -> Weights {
        self.basis.weights(with_beta(&self.parts.coefficients, &self.parts.beta))
    }

    /// Returns the stored parts.
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Sets the names of additional columns that tables may have.
    pub fn ignore(&mut self, names: Vec<String>) {
        let mut seen: HashSet<&String> = self.parts.columns.names.iter().flatten().collect();
        self.parts.columns.ignored = names.iter().filter(|name| seen.insert(name)).cloned().collect();
    }

    /// Stores the intake that makes the model's columns from those of a table.
    pub fn take_in(&mut self, intake: Intake) -> Result<()> {
        intake.check(self.parts.columns.d(), self.parts.columns.names.as_ref())?;
        self.parts.columns.intake = Some(intake);
        Ok(())
    }

    /// Absorbs a scaler, `x ↦ (x − shift) / scale`, that the training rows went through before the fit: the returned
    /// model takes unscaled rows. `rule` is the equivalent [`Scaling`], if there is one; `names` are the names of the
    /// scaler's input columns.
    ///
    /// ```
    /// use skpca::{Fit, Points, Precision, Scaling, toys};
    ///
    /// let raw = toys::clusters(0);
    /// let scaled = Points::new(2, raw.values().iter().map(|x| (x - 1.0) / 4.0).collect::<Vec<_>>())?;
    /// let model = Fit { scaling: Scaling::None, ..Fit::default() }.run(&scaled, None, &())?;
    /// let expected = model.score(&scaled, Precision::Double)?;
    /// let found = model.with_scaler(&[1.0, 1.0], &[4.0, 4.0], None, None)?.score(&raw, Precision::Double)?;
    /// assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12));
    /// # Ok::<(), skpca::Error>(())
    /// ```
    pub fn with_scaler(
        self,
        shift: &[f64],
        scale: &[f64],
        rule: Option<Scaling>,
        names: Option<Vec<String>>,
    ) -> Result<Model> {
        let instructions = self.kernel().instructions();
        let mut parts = self.parts;
        let raw = parts.columns.scaling == Scaling::None;
        // The online state holds rows and moments of scaled rows.
        parts.learned.iter_mut().for_each(|learned| learned.state = None);
        parts.columns = parts.columns.after_scaler(shift, scale, rule)?;
        if names.is_some() {
            (parts.columns.names, parts.columns.intake) = (names, None);
        }
        // A fit that scales by the rule itself finds the same model.
        let asked = rule.filter(|rule| raw && *rule != Scaling::Given);
        parts.request.iter_mut().for_each(|request| request.fit.scaling = asked.unwrap_or(request.fit.scaling));
        Model::with(parts, instructions)
    }

    /// Returns how far `rows` are outside the range of the training rows if most of them are, as happens when raw rows
    /// are given to a model of scaled rows. Only a sample is looked at. Always `None` for models from files of older
    /// versions, which do not store the range.
    pub fn far_outside<'a>(&self, rows: impl Into<UncheckedRows<'a>>) -> Option<FarOutside> {
        self.parts.columns.far_outside(rows.into())
    }

    /// Sets the scores of held-out rows, from which threshold and p-values are computed.
    pub(crate) fn calibrated(&mut self, scores: Scores) {
        self.parts.scores = scores;
    }

    /// Sets the state of online learning.
    pub(crate) fn learned(&mut self, learned: Learned) {
        self.parts.learned = Some(learned);
    }

    /// Sets a fidelity measured after the fit.
    pub(crate) fn judged(&mut self, fidelity: f64) {
        self.parts.fidelity = fidelity;
        self.parts.report.fidelity_interval = None;
    }

    /// Maps row numbers, which are positions in `rows`, to the numbers in `rows`, which are among those of n rows.
    pub(crate) fn renumber(&mut self, rows: &[usize], n: usize) {
        let Parts { rows: support, report, .. } = &mut self.parts;
        support.iter_mut().flatten().chain(&mut report.set_aside).for_each(|row| *row = rows[*row]);
        self.parts.n = n;
    }

    /// Records that this is the model of a robust fit and which rows it set aside.
    pub(crate) fn set_aside(&mut self, aside: Vec<usize>) {
        self.parts.request.iter_mut().for_each(|request| request.fit.robust = true);
        if !aside.is_empty() {
            let rows = self.parts.n;
            self.note(format!("{} of {rows} rows were set aside: they do not belong to the others", aside.len()));
        }
        self.parts.report.set_aside = aside;
    }

    /// Records how well the scores agree with exact ones, with a note if that is less than requested.
    pub(crate) fn agrees(&mut self, asked: f64, agreement: Agreement) {
        let Parts { request, support, report, .. } = &mut self.parts;
        request.iter_mut().for_each(|request| (request.fit.score_fidelity, request.fit.target) = (Some(asked), None));
        report.score_fidelity = Some(agreement);
        let reached = agreement.rank_correlation;
        if reached < asked {
            report
                .notes
                .push(format!("score fidelity {asked} requested, {reached:.4} reached with {} points", support.n()));
        }
    }

    /// Adds a note for the user to the report.
    pub fn note(&mut self, note: String) {
        self.parts.report.notes.push(note);
    }

    /// Stores the request as the caller spelled it.
    pub fn request_in(&mut self, words: serde_json::Map<String, serde_json::Value>) {
        self.parts.request.iter_mut().for_each(|request| request.words = words.clone());
    }

    /// Returns the number of components.
    pub fn q(&self) -> usize {
        self.parts.coefficients.ncols()
    }

    /// Returns the number of support points.
    pub fn m(&self) -> usize {
        self.parts.support.n()
    }

    /// Returns the kernel.
    pub fn kernel(&self) -> &Arc<dyn Kernel> {
        self.basis.kernel()
    }

    /// Returns the variance captured on the training data, summed over rows and components.
    pub fn captured(&self) -> f64 {
        self.parts.captured * self.parts.n as f64
    }

    /// Returns the features of `rows`, q per row, row after row. In 32 bits they differ from those in 64 bits by less
    /// than 1e-4 of their standard deviation: models that would lose more to cancellation use 64 bits whatever
    /// `precision` says.
    ///
    /// Rows are [`Points`], or [`UncheckedRows`] of 64-bit or 32-bit numbers, which are checked as they are read.
    pub fn transform<'a>(&self, rows: impl Into<UncheckedRows<'a>>, precision: Precision) -> Result<Vec<f64>> {
        let rows = rows.into();
        let mut out = vec![0.0; rows.n() * self.q()];
        self.transform_into(rows, precision, &mut out)?;
        Ok(out)
    }

    /// Writes the features, as [`Model::transform`] returns them, to `out`: q numbers per row.
    pub fn transform_into(&self, rows: UncheckedRows, precision: Precision, out: &mut [f64]) -> Result<()> {
        assert_eq!(out.len(), rows.n() * self.q());
        self.pass(rows, &self.features, enough(precision, self.loss.features), as_they_are, out)
    }

    /// Like [`Model::transform_into`] with every feature rounded to 32 bits; a feature that overflows is an error.
    pub fn transform_into_single(&self, rows: UncheckedRows, precision: Precision, out: &mut [f32]) -> Result<()> {
        assert_eq!(out.len(), rows.n() * self.q());
        self.pass(rows, &self.features, enough(precision, self.loss.features), as_they_are, out)
    }

    /// Returns the novelty scores of `rows`: squared distances in feature space, higher is more novel. In 32 bits they
    /// differ from those in 64 bits by less than 1e-4 of the mean training score or of their own value, whichever is
    /// larger; as in [`Model::transform`], models that would lose more use 64 bits.
    pub fn score<'a>(&self, rows: impl Into<UncheckedRows<'a>>, precision: Precision) -> Result<Vec<f64>> {
        let rows = rows.into();
        let mut out = vec![0.0; rows.n()];
        self.score_into(rows, precision, &mut out)?;
        Ok(out)
    }

    /// Writes the scores, as [`Model::score`] returns them, to `out`: one number per row.
    pub fn score_into(&self, rows: UncheckedRows, precision: Precision, out: &mut [f64]) -> Result<()> {
        assert_eq!(out.len(), rows.n());
        let finish = |x: Option<&Points>, mut products: Products, out: &mut [f64]| {
            each_row(&mut products, out, |i, row| self.novelty_of(row, x.map(|x| x.row(i))))
        };
        self.pass(rows, &self.novelty, enough(precision, self.loss.scores), finish, out)
    }

    /// Scales the rows, multiplies their kernel values by `weights`, and writes what `finish` makes of the products.
    fn pass<T: Number>(
        &self,
        rows: UncheckedRows,
        weights: &Weights,
        precision: Precision,
        finish: impl Finish<T>,
        out: &mut [T],
    ) -> Result<()> {
        let x = self.parts.columns.scaled(rows)?;
        // Features need only the products. Scores also need k(x, x), and thus the row, unless the kernel has a unit
        // diagonal.
        let read = !std::ptr::eq(weights, &self.features) && (self.far.is_some() || !self.kernel().unit_diagonal());
        if self.basis.pass(&Queried { rows: &x, read, weights, precision }, &finish, out) {
            return Ok(());
        }
        // Failure is rare, so the cause is looked for only now.
        let out: Vec<f64> = out.iter().map(|v| (*v).into()).collect();
        x.fault().map_or_else(|| self.finite(&out, out.len() / rows.n()), Err)
    }

    /// Returns the score of one row from its products with `[A β]`.
    fn novelty_of(&self, products: &[f64], x: Option<&[f64]>) -> f64 {
        let score = distance(self.own_value(x), products, self.mean_norm, self.parts.frame.as_ref());
        score + self.far.as_ref().zip(x).map_or(0.0, |(far, x)| far.of(x))
    }

    /// Returns the scores of rows that are already scaled.
    pub(crate) fn score_of_scaled(&self, x: &Points) -> Vec<f64> {
        let products = self.basis.product(x, &self.novelty, Precision::Double);
        products.chunks_exact(self.q() + 1).zip(x.rows()).map(|(row, x)| self.novelty_of(row, Some(x))).collect()
    }

    /// Like [`Model::score_of_scaled`], for rows whose kernel values may overflow.
    pub(crate) fn finite_scores_of_scaled(&self, x: &Points) -> Result<Vec<f64>> {
        let scores = self.score_of_scaled(x);
        self.finite(&scores, 1)?;
        Ok(scores)
    }

    /// Returns k(x, x); the row is only missing if the kernel has a unit diagonal.
    fn own_value(&self, x: Option<&[f64]>) -> f64 {
        x.map_or(1.0, |x| self.kernel().eval(x, x))
    }

    /// Returns the share of the variance of `points` in feature space, around the training mean, that the components
    /// capture: 0 to 1.
    pub fn captured_share(&self, points: &Points) -> Result<f64> {
        let x = self.parts.columns.apply(points)?;
        let products = self.basis.product(&x, &self.features_and_mean(), Precision::Double);
        let (mut lost, mut captured) = (0.0, 0.0);
        for (row, x) in products.chunks_exact(self.q() + 1).zip(x.rows()) {
            lost += distance(self.kernel().eval(x, x), row, self.mean_norm, self.parts.frame.as_ref());
            captured += projected(&row[..self.q()], self.parts.frame.as_ref());
        }
        self.finite(&[lost, captured], 1)?;
        Ok(if captured > 0.0 { captured / (captured + lost) } else { 0.0 })
    }

    /// Returns the log-likelihood of each row under the Gaussian that the method `likelihood` fits. Its mean over
    /// held-out rows tells which σ² is best.
    pub fn log_likelihood<'a>(&self, rows: impl Into<UncheckedRows<'a>>, precision: Precision) -> Result<Vec<f64>> {
        let Some(density) = &self.parts.density else {
            return Err(Error::parameter("method", &self.parts.method.name, "likelihood: no other has one"));
        };
        let beta = Mat::from_fn(self.parts.beta.len(), 1, |i, _| self.parts.beta[i]);
        let weights = self.basis.weights(dense::beside(density.axes.as_ref(), beta.as_ref()));
        let constant =
            density.dimension as f64 * (std::f64::consts::TAU * density.noise).ln() + density.log_determinant;
        let each = |row: &[f64], x: Option<&[f64]>| {
            let (along, mean) = row.split_at(row.len() - 1);
            let length = self.own_value(x) - 2.0 * mean[0] - self.mean_norm;
            let distance = length - along.iter().map(|y| y * y).sum::<f64>();
            -0.5 * (constant + distance.max(0.0) / density.noise)
        };
        let finish = |x: Option<&Points>, mut products: Products, out: &mut [f64]| {
            each_row(&mut products, out, |i, row| each(row, x.map(|x| x.row(i))))
        };
        let rows = rows.into();
        let mut out = vec![0.0; rows.n()];
        self.pass(rows, &weights, enough(precision, self.loss.scores), finish, &mut out)?;
        Ok(out)
    }

    /// Returns the gradient of each row's score with respect to its inputs, d per row, row after row.
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
            let mut along = self.orthonormal(features);
            along.iter_mut().zip(self.parts.shrinkage()).for_each(|(along, factor)| *along *= factor);
            self.far.iter().for_each(|far| far.add_gradient(x, out));
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

    /// Returns a bound of the difference between a score and the one without projection of the mean.
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

/// The term that a score adds for the squared distance from the support's mean z̄, relative to the mean over the
/// support: small enough not to matter wherever kernel values are positive, and enough to rank rows for which all of
/// them are 0.
///
/// ```text
/// ε ‖x − z̄‖² / mean ‖z − z̄‖²
/// ```
pub(crate) struct Far {
    centre: Vec<f64>,
    weight: f64,
}

impl Far {
    pub(crate) fn new(support: &Points, noise: f64) -> Far {
        let mut far = Far { centre: support.mean(), weight: 1.0 };
        let mean = support.rows().map(|z| far.of(z)).sum::<f64>() / support.n() as f64;
        // Distances are useless if their squares overflow or vanish.
        let weight = noise / mean;
        far.weight = if mean > 0.0 && mean.is_finite() && weight.is_finite() { weight } else { 0.0 };
        far
    }

    pub(crate) fn of(&self, x: &[f64]) -> f64 {
        if self.weight == 0.0 {
            return 0.0;
        }
        self.weight * x.iter().zip(&self.centre).map(|(x, centre)| (x - centre) * (x - centre)).sum::<f64>()
    }

    fn add_gradient(&self, x: &[f64], out: &mut [f64]) {
        let slope = |(x, centre): (&f64, &f64)| 2.0 * self.weight * (x - centre);
        out.iter_mut().zip(x.iter().zip(&self.centre).map(slope)).for_each(|(out, slope)| *out += slope);
    }
}

impl Parts {
    /// Returns the factor of each squared feature in the score: λ / (λ + ε), or 1 without noise.
    fn shrinkage(&self) -> impl Iterator<Item = f64> {
        self.variances.iter().map(|v| if self.noise > 0.0 { v / (v + self.noise) } else { 1.0 })
    }

    /// Returns the coefficients multiplied by the square roots of [`Parts::shrinkage`].
    fn shrunk(&self) -> Mat<f64> {
        let factors: Vec<f64> = self.shrinkage().map(f64::sqrt).collect();
        Mat::from_fn(self.coefficients.nrows(), self.coefficients.ncols(), |i, k| {
            self.coefficients[(i, k)] * factors[k]
        })
    }
}

/// `[A β]`
fn with_beta(coefficients: &Mat<f64>, beta: &[f64]) -> Mat<f64> {
    dense::beside(coefficients.as_ref(), MatRef::from_column_major_slice(beta, beta.len(), 1))
}

/// Returns the score of a row x from `k(x, x)` and its products with `[A β]`; `mean_norm` is `μᵀβ`.
fn distance(own: f64, products: &[f64], mean_norm: f64, frame: Option<&Mat<f64>>) -> f64 {
    let (features, mean) = products.split_at(products.len() - 1);
    // βᵀk_z(x) is βᵀ(k_z(x) − μ), the last product, plus μᵀβ.
    let score = own - 2.0 * mean[0] - mean_norm - projected(features, frame);
    // A squared distance is negative by rounding only.
    if score < 0.0 { 0.0 } else { score }
}

/// `‖Eᵀ y‖²`
fn projected(features: &[f64], frame: Option<&Mat<f64>>) -> f64 {
    let Some(frame) = frame else { return features.iter().map(|y| y * y).sum() };
    let along = |e: ColRef<f64>| e.iter().zip(features).map(|(e, y)| e * y).sum::<f64>();
    frame.col_iter().map(|e| along(e) * along(e)).sum()
}

/// Fixes the signs of the components so that the feature of largest magnitude on the training rows `x` (scaled) is
/// positive. Returns the scores of these rows. The basis is centred by `mu`.
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
        // Among magnitudes that are equal up to rounding, the first decides.
        if feature().find(|y| y.abs() >= (1.0 - 1e-8) * largest).is_some_and(|y| *y < 0.0) {
            coefficients.col_mut(k).iter_mut().for_each(|a| *a = -*a);
            frame.iter_mut().for_each(|frame| frame.row_mut(k).iter_mut().for_each(|e| *e = -*e));
        }
    }
    Ok(scores)
}

#[cfg(test)]
mod tests {
    use super::loss::SINGLE_ERROR;
    use super::*;
    use crate::{Fit, Target, toys};

    /// Returns the largest errors of features and of scores when 32 bits are forced, in the units of `Loss`.
    fn error_in_32_bits(model: &Model, points: &Points) -> (f64, f64) {
        let x = model.parts.columns.apply(points).unwrap();
        let q = model.q();
        let products = |precision| model.basis.product(&x, &model.novelty, precision);
        let (single, double) = (products(Precision::Single), products(Precision::Double));
        let off = |i: usize| (single[i] - double[i]).abs() / model.parts.variances[i % (q + 1)].sqrt();
        let features = (0..single.len()).filter(|i| i % (q + 1) < q).map(off).fold(0.0, f64::max);
        let scores = |products: &[f64]| -> Vec<f64> {
            products.chunks_exact(q + 1).zip(x.rows()).map(|(row, x)| model.novelty_of(row, Some(x))).collect()
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

    /// Returns a small model with scaled columns, and enough rows for it to use several threads.
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
                let expected: Vec<f64> = rows.map(|(row, x)| model.novelty_of(row, Some(x))).collect();
                assert!(model.score(&points, precision).unwrap() == expected, "{kernel} {precision:?}");
            }
        }
    }

    #[test]
    fn rows_in_32_bits_give_the_same_results() {
        let (model, points) = small("rbf");
        let narrow: Vec<f32> = points.values().iter().map(|v| *v as f32).collect();
        let wide = Points::new(5, narrow.iter().map(|v| f64::from(*v)).collect::<Vec<_>>()).unwrap();
        let rows = UncheckedRows::new(5, &narrow[..]).unwrap();
        // Rows in 32 bits are scaled in 32 bits; rows in 64 bits are scaled in 64 bits and rounded afterwards.
        let off = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        let unit = |precision| if precision == Precision::Single { 0.1 * SINGLE_ERROR } else { 0.0 };
        let deviation = model.parts.variances[3].sqrt();
        for precision in [Precision::Double, Precision::Single] {
            let found = model.transform(rows, precision).unwrap();
            let expected = model.transform(&wide, precision).unwrap();
            assert!(off(&found, &expected) <= unit(precision) * deviation, "{precision:?}");
            let (found, expected) = (model.score(rows, precision).unwrap(), model.score(&wide, precision).unwrap());
            assert!(off(&found, &expected) <= unit(precision), "{precision:?}");
            let mut out = vec![0.0; 10_000 * model.q()];
            model.transform_into_single(rows, precision, &mut out).unwrap();
            let rounded: Vec<f32> = model.transform(rows, precision).unwrap().iter().map(|v| *v as f32).collect();
            assert!(out == rounded, "{precision:?}");
        }
    }

    #[test]
    fn error_names_the_first_non_finite_row() {
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
    fn error_names_the_row_that_overflows_in_scaling_or_kernel() {
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
}
