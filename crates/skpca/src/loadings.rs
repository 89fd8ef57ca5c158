//! Sparse loadings without a model: of a table, or of a covariance or correlation matrix without its rows.
//!
//! ```text
//! v_k   sparse, of unit length        adjusted variance of v_k: that of X v_k outside the span of X v_1 … X v_{k−1}
//! ```

use std::sync::Arc;

use faer::Mat;

use crate::dense;
use crate::error::{Error, Result};
use crate::fit::Fit;
use crate::kernel::Kernel;
use crate::method::spca::{Found, Question, Spca, adjusted};
use crate::method::{COMPONENTS, FIDELITY, Target};
use crate::plan::Plan;
use crate::points::Points;
use crate::report::Report;
use crate::table_moments::TableMoments;
use crate::watch::Watch;

/// Tolerance for the symmetry of a covariance matrix, as a share of its largest entry.
const SYMMETRIC: f64 = 1e-6;
/// Tolerance for negative eigenvalues, as a share of the largest one: published matrices are rounded.
const NEGATIVE: f64 = 1e-2;

/// Sparse loadings of some columns.
///
/// ```
/// use skpca::typed::{Linear, Spca};
/// use skpca::{Fit, toys};
///
/// let method = Spca { nonzero: Some(vec![1]), ..Spca::default() }.into();
/// let fit = Fit { method, kernel: Linear {}.into(), components: Some(2), ..Fit::default() };
/// assert_eq!(fit.loadings(&toys::parabola(0), &())?.nonzero(), [1, 1]);
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Loadings {
    /// The loadings, d × q, each of unit length; in units of the scaled columns.
    pub vectors: Mat<f64>,
    /// Variance along each component.
    pub variances: Vec<f64>,
    /// Adjusted variance: that of each component outside the span of the previous ones (Zou, Hastie & Tibshirani 2006,
    /// §3.5).
    pub adjusted: Vec<f64>,
    /// Total variance of all columns.
    pub total: f64,
    /// Variance in the span of the loadings.
    pub captured: f64,
    /// Captured variance divided by that of PCA with the requested number of components.
    pub fidelity: f64,
    /// λ₁ of each component.
    pub penalties: Vec<f64>,
    /// λ, the ridge penalty.
    pub ridge: f64,
    /// Means of the scaled columns; zero for a covariance matrix.
    pub mean: Vec<f64>,
    /// Objective, duality gap of the last elastic nets, rounds and whether P converged.
    pub report: Report,
}

impl Fit {
    /// Computes the sparse loadings of a table by the method `spca`. The support of a model of the same fit is the same
    /// loadings.
    pub fn loadings(&self, points: &Points, watch: &dyn Watch) -> Result<Loadings> {
        let method = self.sparse_pca()?;
        let (plan, table) = Plan::with_table(self, points, None, watch)?;
        let kernel: &Arc<dyn Kernel> = table.base_kernel();
        let TableMoments { mean, scatter, trace, n, .. } = TableMoments::new(kernel, &table.rows, plan.center, watch)?;
        let d = scatter.nrows();
        let covariance = Mat::from_fn(d, d, |i, j| scatter[(i, j)] / n as f64);
        let found = method.loadings(&self.question(&covariance, trace / n as f64, watch))?;
        Ok(Loadings::new(&covariance, found, mean))
    }

    /// Computes the sparse loadings of a covariance or correlation matrix by the method `spca`.
    ///
    /// ```
    /// use skpca::{Fit, Points};
    ///
    /// let correlation = Points::new(3, vec![1.0, 0.9, 0.1, 0.9, 1.0, 0.1, 0.1, 0.1, 1.0])?;
    /// let fit = Fit {
    ///     method: "spca,nonzero=2:1".parse()?,
    ///     kernel: "linear".parse()?,
    ///     components: Some(2),
    ///     ..Fit::default()
    /// };
    /// let loadings = fit.loadings_of_covariance(&correlation, &())?;
    /// assert_eq!((loadings.vectors[(2, 0)], loadings.vectors[(2, 1)].abs()), (0.0, 1.0));
    /// # Ok::<(), skpca::Error>(())
    /// ```
    pub fn loadings_of_covariance(&self, matrix: &Points, watch: &dyn Watch) -> Result<Loadings> {
        let method = self.sparse_pca()?;
        let covariance = symmetric(matrix)?;
        let trace = dense::trace(&covariance);
        let found = method.loadings(&self.question(&covariance, trace, watch))?;
        Ok(Loadings::new(&covariance, found, vec![0.0; matrix.d()]))
    }

    fn sparse_pca(&self) -> Result<Spca> {
        self.check()?;
        if self.method.name != "spca" {
            return Err(Error::parameter("method", &self.method.name, "spca: others have no loadings"));
        }
        let method = Spca::of(&self.method)?;
        method.refuse_target(self.target)?;
        Ok(method)
    }

    fn question<'a>(&self, covariance: &'a Mat<f64>, trace: f64, watch: &'a dyn Watch) -> Question<'a> {
        Question {
            covariance,
            trace,
            q: self.components.unwrap_or(COMPONENTS).min(covariance.nrows()),
            aim: self.target.unwrap_or(Target::Fidelity(FIDELITY)),
            seed: self.seed,
            watch,
        }
    }
}

impl Loadings {
    fn new(covariance: &Mat<f64>, found: Found, mean: Vec<f64>) -> Loadings {
        let Found { loadings, penalties, ridge, captured, exact, report } = found;
        let image = dense::product(covariance.as_ref(), loadings.as_ref());
        Loadings {
            variances: (0..loadings.ncols()).map(|k| loadings.col(k).transpose() * image.col(k)).collect(),
            adjusted: adjusted(covariance, loadings.as_ref()),
            total: dense::trace(covariance),
            fidelity: if exact > 0.0 { captured / exact } else { 1.0 },
            vectors: loadings,
            captured,
            penalties,
            ridge,
            mean,
            report,
        }
    }

    /// Returns the number of non-zero loadings of each component.
    pub fn nonzero(&self) -> Vec<usize> {
        self.vectors.col_iter().map(|v| v.iter().filter(|v| **v != 0.0).count()).collect()
    }
}

/// Checks that a matrix is symmetric and positive semi-definite up to rounding.
fn symmetric(matrix: &Points) -> Result<Mat<f64>> {
    let (n, d) = (matrix.n(), matrix.d());
    let rejected = |value: String, expected: &str| Err(Error::parameter("covariance", value, expected));
    if n != d {
        return rejected(format!("{n} × {d}"), "a square matrix, one row for each column");
    }
    let at = |i: usize, j: usize| matrix.row(i)[j];
    let largest = (0..d).map(|i| at(i, i).abs()).fold(0.0, f64::max);
    for (i, j) in (0..d).flat_map(|i| (0..i).map(move |j| (i, j))) {
        if (at(i, j) - at(j, i)).abs() > SYMMETRIC * largest {
            return rejected(format!("{} and {}", at(i, j), at(j, i)), "a symmetric matrix");
        }
    }
    let covariance = Mat::from_fn(d, d, |i, j| 0.5 * (at(i, j) + at(j, i)));
    let values = dense::eigen(covariance.as_ref())?.0;
    let lowest = values[d - 1];
    if lowest < -NEGATIVE * values[0] || values[0] <= 0.0 {
        return rejected(format!("a matrix with the eigenvalue {lowest:.3e}"), "one that is positive semi-definite");
    }
    Ok(covariance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Spec;

    fn fit(method: &str) -> Fit {
        Fit { method: method.parse().unwrap(), kernel: Spec::new("linear"), components: Some(2), ..Fit::default() }
    }

    #[test]
    fn invalid_covariances_are_rejected() {
        let message = |values: &[f64], d: usize| {
            let points = Points::new(d, values).unwrap();
            fit("spca").loadings_of_covariance(&points, &()).err().unwrap().to_string()
        };
        assert_eq!(message(&[1.0, 0.0], 2), "covariance = 1 × 2: expected a square matrix, one row for each column");
        assert_eq!(message(&[1.0, 0.5, 0.4, 1.0], 2), "covariance = 0.4 and 0.5: expected a symmetric matrix");
        assert_eq!(
            message(&[1.0, 2.0, 2.0, 1.0], 2),
            "covariance = a matrix with the eigenvalue -1.000e0: expected one that is positive semi-definite"
        );
        let points = Points::new(2, vec![1.0, 0.5, 0.5, 1.0]).unwrap();
        let other = Fit { method: Spec::new("greedy"), ..fit("spca") };
        let error = other.loadings_of_covariance(&points, &()).err().unwrap().to_string();
        assert_eq!(error, "method = greedy: expected spca: others have no loadings");
    }
}
