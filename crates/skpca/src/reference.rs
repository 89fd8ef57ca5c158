//! The reference: the variance that exact kernel PCA captures with the same data and kernel.
//!
//! ```text
//! fidelity = captured variance of the model / Σ_{k ≤ q} λ_k(K̃)
//! ```
//!
//! Both are computed on all rows, hence exact, if there are a few thousand at most, or if feature space has few
//! dimensions. Otherwise both are computed on the same uniform sample of rows. That is an estimate and comes with an
//! interval (docs/decisions/0004), each end of which is moved outwards by three standard errors of the ratio:
//!
//! ```text
//! low    on the sample, where exact kernel PCA fits the noise too: in expectation it captures more there than on all rows
//! high   on new rows, with the exact components of the sample: the best components of all rows capture at least as much
//! ```

use std::sync::Arc;

use faer::{ColRef, Mat};

use crate::dense;
use crate::eigen::{Accuracy, KernelOperator, WeightedKernel, kernel_memory, top, top_of_kernel, top_of_weighted};
use crate::error::Result;
use crate::factor::{Factor, Stop, sums};
use crate::gram::{Basis, Precision, Weights};
use crate::kernel::Kernel;
use crate::kernel_matrix::diagonal;
use crate::points::Points;
use crate::random::{Random, Stream};
use crate::rows::{Part, Rows, Weighted};
use crate::sample_weight;
use crate::spectrum::Expansion;
use crate::table_moments::TableMoments;
use crate::watch::Watch;

/// Maximum number of rows on which fidelity is measured.
pub(crate) const REFERENCE_ROWS: usize = 4000;

/// Dimension of feature space up to which all rows are used.
const SMALL: usize = 200;

/// Exact kernel PCA on the rows where fidelity is measured.
pub(crate) struct Reference {
    /// Numbers of the rows, increasing; all of them if there are few. Landmarks are drawn among them.
    pub rows: Vec<usize>,
    /// Sum of the leading eigenvalues.
    pub captured: f64,
    /// The components themselves, unless only the variance that they capture was computed.
    pub leading: Option<Leading>,
    /// `‖φ̄‖²` of all rows, if it was a by-product.
    pub mean_norm: Option<f64>,
    center: bool,
    seed: u64,
    /// Whether `captured` is over all rows.
    whole: bool,
    /// Weights of the rows that `captured` is a sum over.
    weights: Option<Vec<f64>>,
}

/// The leading components `v_k` of exact kernel PCA.
pub(crate) struct Leading {
    /// Variance along each, summed over rows.
    pub values: Vec<f64>,
    /// `φ(x_i)·v_k` of the rows of the reference, not centred.
    pub along: Mat<f64>,
}

/// The settings of exact kernel PCA.
#[derive(Clone, Copy)]
pub(crate) struct Question {
    pub q: usize,
    pub center: bool,
    pub seed: u64,
}

impl Reference {
    pub(crate) fn new(
        kernel: &Arc<dyn Kernel>,
        table: &dyn Rows,
        Question { q, center, seed }: Question,
        watch: &dyn Watch,
    ) -> Result<Reference> {
        let dimension = kernel.rank(table.d());
        if Reference::is_exact(table.n(), dimension) && kernel.is_linear() {
            let TableMoments { scatter, trace, .. } = TableMoments::new(kernel, table, center, watch)?;
            let captured = top(&scatter, q, Accuracy { trace, ..Accuracy::default() }, seed, watch)?;
            return Ok(Reference::known(table.n(), captured.values.iter().sum(), center, seed));
        }
        if Reference::is_exact(table.n(), dimension) && table.in_memory() {
            let factor =
                Factor::weighted(kernel, Weighted::of(table), Stop { rank: dimension, residual: 0.0 }, seed, watch)?;
            let (t, _) = factor.scatter(center, watch)?;
            let accuracy = Accuracy { trace: factor.trace, ..Accuracy::default() };
            let pairs = top(&t, q, accuracy, seed, watch)?;
            let mut reference = Reference::known(table.n(), pairs.values.iter().sum(), center, seed);
            let along = dense::product(factor.rows_of(&reference.rows).as_ref(), pairs.vectors.as_ref());
            reference.leading = Some(Leading { values: pairs.values, along });
            return Ok(reference);
        }
        let rows = Random::new(seed, Stream::Reference).sample(table.n(), REFERENCE_ROWS);
        let Part { points: sample, weights } = Part::of(table, &rows)?;
        let whole = rows.len() == table.n();
        let squares = diagonal(kernel, &sample)?;
        let trace = weights.as_ref().map_or_else(|| squares.iter().sum(), |weights| dense::dot(&squares, weights));
        // Eigenvalues converge twice as fast as eigenvectors: 1e-5 gives 1e-10 of the sum. Sampling errors are 1e-3.
        let tolerance = if whole { 1e-5 } else { 1e-3 };
        let accuracy = Accuracy { tolerance, trace, ..Accuracy::default() };
        if let Some(weights) = weights {
            let operator = WeightedKernel::new(kernel, &sample, &weights, center);
            let pairs = top_of_weighted(&operator, q, accuracy, seed, watch)?;
            let mean_norm = operator.mean_norm().filter(|_| whole);
            let captured = pairs.values.iter().sum();
            let leading = Leading::weighted(pairs.values, &pairs.vectors, &operator);
            let (leading, weights) = (Some(leading), Some(weights));
            return Ok(Reference { rows, captured, leading, mean_norm, center, seed, whole, weights });
        }
        let operator = KernelOperator::new(kernel, &sample, center);
        let pairs = top_of_kernel(&operator, q, accuracy, seed, watch)?;
        let means = operator.means();
        let mean_norm = (whole && center).then(|| means.iter().sum::<f64>() / means.len() as f64);
        let captured = pairs.values.iter().sum();
        let leading = Leading::new(pairs.values, &pairs.vectors, &means);
        Ok(Reference { rows, captured, leading: Some(leading), mean_norm, center, seed, whole, weights: None })
    }

    /// Returns whether it is computed on all rows although there are many, because feature space has few dimensions.
    pub(crate) fn is_exact(n: usize, dimension: usize) -> bool {
        n > REFERENCE_ROWS && dimension <= SMALL
    }

    /// Returns how many numbers its computation keeps in memory.
    pub(crate) fn memory(n: usize, d: usize, q: usize, dimension: usize, linear: bool) -> usize {
        if !Reference::is_exact(n, dimension) {
            let rows = n.min(REFERENCE_ROWS);
            return 4 * rows * d + kernel_memory(rows, d, q);
        }
        if linear { sums(n) * d * d } else { n * dimension + sums(n) * dimension * dimension }
    }

    /// Creates the reference if the variance that exact kernel PCA captures on all rows is known.
    pub(crate) fn known(n: usize, captured: f64, center: bool, seed: u64) -> Reference {
        let rows = Random::new(seed, Stream::Reference).sample(n, REFERENCE_ROWS);
        Reference { rows, captured, leading: None, mean_norm: None, center, seed, whole: true, weights: None }
    }

    /// Returns the total weight of the rows that `captured` is a sum over.
    pub(crate) fn weight_seen(&self, table: &dyn Rows) -> f64 {
        if self.whole { table.weight() } else { sample_weight::total(self.weights.as_deref(), self.rows.len()) }
    }

    /// Returns the fidelity of components over the points `support`, which are needed only if it is estimated.
    pub(crate) fn fidelity(
        &self,
        kernel: &Arc<dyn Kernel>,
        table: &dyn Rows,
        support: impl FnOnce() -> Result<Points<'static>>,
        expansion: &Expansion,
    ) -> Result<f64> {
        if self.captured <= 0.0 {
            return Ok(1.0);
        }
        if self.whole {
            return Ok(expansion.captured / self.captured);
        }
        let components = Components::of_model(kernel, &support()?, expansion);
        let sample = Part::of(table, &self.rows)?;
        Ok(self.lengths(&components.along(&sample.points), sample.weights()).iter().sum::<f64>() / self.captured)
    }

    /// Returns an interval that almost certainly contains the fidelity of these components; `None` if it is exact.
    pub(crate) fn interval(
        &self,
        kernel: &Arc<dyn Kernel>,
        table: &dyn Rows,
        support: impl FnOnce() -> Result<Points<'static>>,
        expansion: &Expansion,
    ) -> Result<Option<[f64; 2]>> {
        let Some(Leading { values, along }) = self.leading.as_ref().filter(|_| !self.whole) else { return Ok(None) };
        let Part { points: sample, weights } = Part::of(table, &self.rows)?;
        let weights = weights.as_deref();
        let model = Components::of_model(kernel, &support()?, expansion);
        let seen = Ratio::new(&self.lengths(&model.along(&sample), weights), &self.lengths(along, weights));
        // Features of exact components on their own rows are u √λ, coefficients u / √λ.
        let means = self.means(along, weights);
        let coefficient = |i: usize, k: usize| weights.map_or(1.0, |w| w[i]) * (along[(i, k)] - means[k]) / values[k];
        let coefficients = Mat::from_fn(along.nrows(), values.len(), coefficient);
        let exact = Components::new(kernel, sample, coefficients);
        let others = Random::new(self.seed, Stream::ReferenceJudges).sample(table.n(), OTHERS);
        let Part { points: others, weights } = Part::of(table, &others)?;
        let lengths = |components: &Components| self.lengths(&components.along(&others), weights.as_deref());
        let anew = Ratio::new(&lengths(&model), &lengths(&exact));
        let low = seen.value - SIGMAS * seen.error;
        let high = (anew.value + SIGMAS * anew.error).max(seen.value);
        Ok(Some([low.clamp(0.0, 1.0), high.clamp(0.0, 1.0)]))
    }

    /// Returns the squared length of each row of features, relative to their mean if centred, times the row's weight.
    fn lengths(&self, features: &Mat<f64>, weights: Option<&[f64]>) -> Vec<f64> {
        let mut lengths = vec![0.0; features.nrows()];
        for (feature, mean) in features.col_iter().zip(self.means(features, weights)) {
            lengths.iter_mut().zip(feature.iter()).for_each(|(length, y)| *length += (y - mean) * (y - mean));
        }
        lengths.iter_mut().zip(weights.unwrap_or_default()).for_each(|(length, weight)| *length *= weight);
        lengths
    }

    /// Returns the mean of each feature; zero if not centred.
    fn means(&self, features: &Mat<f64>, weights: Option<&[f64]>) -> Vec<f64> {
        let total = sample_weight::total(weights, features.nrows());
        let sum = |feature: ColRef<f64>| match weights {
            None => feature.sum(),
            Some(weights) => feature.iter().zip(weights).map(|(y, w)| y * w).sum(),
        };
        features.col_iter().map(|feature| if self.center { sum(feature) / total } else { 0.0 }).collect()
    }
}

/// Number of new rows drawn for the upper end of an interval.
const OTHERS: usize = 2000;
/// Number of standard errors by which each end is moved outwards.
const SIGMAS: f64 = 3.0;

/// Orthonormal components over some points.
struct Components {
    basis: Basis,
    weights: Weights,
}

impl Components {
    fn new(kernel: &Arc<dyn Kernel>, points: Points<'static>, coefficients: Mat<f64>) -> Components {
        let basis = Basis::new(kernel.clone(), points);
        Components { weights: basis.weights(coefficients), basis }
    }

    fn of_model(kernel: &Arc<dyn Kernel>, support: &Points<'static>, expansion: &Expansion) -> Components {
        let orthonormal = match &expansion.frame {
            Some(frame) => dense::product(expansion.coefficients.as_ref(), frame.as_ref()),
            None => expansion.coefficients.clone(),
        };
        Components::new(kernel, support.select(&expansion.kept), orthonormal)
    }

    /// Computes features, not centred.
    fn along(&self, points: &Points) -> Mat<f64> {
        let values = self.basis.product(points, &self.weights, Precision::Double);
        let q = values.len() / points.n();
        Mat::from_fn(points.n(), q, |i, k| values[i * q + k])
    }
}

/// The ratio of two sums over the same rows, and its standard error.
struct Ratio {
    value: f64,
    error: f64,
}

impl Ratio {
    fn new(above: &[f64], below: &[f64]) -> Ratio {
        let total: f64 = below.iter().sum();
        let value = above.iter().sum::<f64>() / total;
        let squares: f64 = above.iter().zip(below).map(|(a, b)| (a - value * b) * (a - value * b)).sum();
        Ratio { value, error: squares.sqrt() / total }
    }
}

impl Leading {
    /// Computes the components from eigenvectors u of the kernel matrix and the means `μ = K 1 / n` (zero if not
    /// centred): `v_k = Σ_j u_jk φ(x_j) / √λ_k`, so that `φ(x_i)·v_k = √λ_k u_ik + Σ_j u_jk μ_j / √λ_k`.
    fn new(values: Vec<f64>, u: &Mat<f64>, means: &[f64]) -> Leading {
        let offset = |k: usize| u.col(k).iter().zip(means).map(|(u, mean)| u * mean).sum::<f64>() / values[k].sqrt();
        let offsets: Vec<f64> = (0..values.len()).map(offset).collect();
        let along = Mat::from_fn(u.nrows(), values.len(), |i, k| values[k].sqrt() * u[(i, k)] + offsets[k]);
        Leading { values, along }
    }

    /// Computes the same for weighted rows, by `K a` itself, which is accurate for small weights too.
    fn weighted(values: Vec<f64>, u: &Mat<f64>, operator: &WeightedKernel) -> Leading {
        let coefficients = operator.coefficients(u, &values);
        let along = operator.plain(coefficients.as_ref());
        Leading { values, along }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Fit, Points, Spec, Target, Training, toys};

    /// Found by `fuzz/run fit`: if all rows of positive weight are equal, there are no leading components, and a
    /// product with none of them ended in a division by zero.
    #[test]
    fn equal_rows_with_weights_are_rejected_like_the_same_rows_without() {
        let others = toys::normal(3, 2, 0);
        let equal = [-2.967, -0.76].repeat(14);
        let points = Points::new(2, [&equal[..], others.values()].concat()).unwrap();
        let weights: Vec<f64> = (0..17).map(|i| if i < 14 { (i % 4) as f64 } else { 0.0 }).collect();
        let alone = Points::new(2, equal).unwrap();
        for kernel in ["polynomial,gamma=1e-9", "polynomial,gamma=0.5", "rbf,gamma=1", "linear", "cosine"] {
            let fit = Fit {
                method: Spec::new("landmarks"),
                kernel: kernel.parse().unwrap(),
                components: Some(2),
                target: Some(Target::Support(3)),
                ..Fit::default()
            };
            let weighted = fit.train(Training { weights: Some(&weights), ..Training::of(&points) });
            assert_eq!(weighted.is_err(), fit.train(&alone).is_err(), "{kernel}");
        }
    }

    /// Found by `fuzz/run fit`: rows without leverage were drawn by leverage.
    #[test]
    fn rows_that_are_all_zero_are_an_error_under_any_rule() {
        let points = Points::new(2, vec![0.0; 40]).unwrap();
        for rule in ["pivoted", "uniform", "leverage", "kmeans"] {
            let method = Spec::new("landmarks").with("sampling", rule);
            let fit = Fit { method, kernel: Spec::new("linear"), target: Some(Target::Support(3)), ..Fit::default() };
            assert!(fit.train(&points).is_err(), "{rule}");
        }
    }

    #[test]
    fn the_interval_holds_the_fidelity_over_all_rows() {
        for (d, q, seed) in [(3, 5, 0), (10, 5, 1), (10, 20, 2)] {
            let points = toys::normal(6000, d, seed);
            let fit = Fit { components: Some(q), seed, ..Fit::default() };
            let exact = Fit { method: Spec::new("exact"), ..fit.clone() }.run(&points, None, &()).unwrap();
            for m in [q + 5, 100, 300] {
                let fit = Fit { method: Spec::new("landmarks"), target: Some(Target::Support(m)), ..fit.clone() };
                let model = fit.run(&points, None, &()).unwrap();
                let truth = model.captured() / exact.captured();
                let [low, high] = model.parts().report.fidelity_interval.unwrap();
                let stated = model.parts().fidelity;
                assert!(low <= truth && truth <= high, "d {d} q {q} m {m}: {truth} outside {low} to {high}");
                assert!(low <= stated && stated <= high, "d {d} q {q} m {m}: {stated} outside {low} to {high}");
                assert!(high - low < 0.08, "d {d} q {q} m {m}: {low} to {high}");
            }
        }
    }

    #[test]
    fn an_exact_fidelity_has_no_interval() {
        let fit = Fit { method: Spec::new("landmarks"), target: Some(Target::Support(20)), ..Fit::default() };
        assert_eq!(fit.run(&toys::normal(3000, 3, 0), None, &()).unwrap().parts().report.fidelity_interval, None);
        let linear = Fit { kernel: Spec::new("linear"), ..fit };
        assert_eq!(linear.run(&toys::normal(6000, 3, 0), None, &()).unwrap().parts().report.fidelity_interval, None);
    }
}
