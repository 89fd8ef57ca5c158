//! The two statistics of process monitoring, each with its own limit.
//!
//! ```text
//! SPE(x) = ‖φ̃(x)‖² − Σ_k f_k²          squared distance from the span of the components
//! T²(x)  = Σ_k f_k² / (λ_k + ε)         squared distance within it, in units of the variances
//! ```
//!
//! With a noise ε the score is `SPE + ε T²`, plus a small term that ranks far rows. Without noise the score is SPE, and
//! T² is what the score ignores.

use super::{Model, distance};
use crate::error::{Error, Result};
use crate::gram::Precision;
use crate::points::UncheckedRows;

/// SPE (or Q) and Hotelling's T² of a row.
///
/// ```
/// use skpca::{Fit, Points, toys};
///
/// let model = Fit::default().train(&toys::parabola(0))?;
/// let found = model.statistics(&Points::new(2, vec![0.5, 0.25, 0.5, 5.0])?)?;
/// assert!(found[1].spe > found[0].spe);
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics {
    /// Squared prediction error: the squared distance from the span of the components.
    pub spe: f64,
    /// Hotelling's T²: the sum of squared features divided by their variances.
    pub t2: f64,
}

impl Model {
    /// Returns SPE and T² of each row; their limits are in [`Calibration`](crate::Calibration).
    ///
    /// ```
    /// use skpca::{Fit, toys};
    ///
    /// let model = Fit::detector().run(&toys::normal(300, 3, 0), None, &())?;
    /// let limits = model.parts().scores.calibration.as_ref().and_then(|c| c.limits).unwrap();
    /// let far = model.statistics(&skpca::Points::new(3, vec![0.0, 9.0, 0.0])?)?[0];
    /// assert!(far.spe > limits.spe || far.t2 > limits.t2);
    /// # Ok::<(), skpca::Error>(())
    /// ```
    pub fn statistics<'a>(&self, rows: impl Into<UncheckedRows<'a>>) -> Result<Vec<Statistics>> {
        if self.parts.frame.is_some() {
            let name = self.parts.method.to_string();
            return Err(Error::parameter(
                "method",
                name,
                "uncorrelated components (refit=true): T² is a sum over them",
            ));
        }
        let rows = rows.into().checked()?;
        let x = self.parts.columns.apply(&rows)?;
        let products = self.basis.product(&x, &self.features_and_mean(), Precision::Double);
        let noise = self.parts.noise;
        let inverse = |v: &f64| if v + noise > 0.0 { 1.0 / (v + noise) } else { 0.0 };
        let inverses: Vec<f64> = self.parts.variances.iter().map(inverse).collect();
        let row = |(row, x): (&[f64], &[f64])| Statistics {
            spe: distance(self.kernel().eval(x, x), row, self.mean_norm, None),
            t2: row.iter().zip(&inverses).map(|(y, inverse)| y * y * inverse).sum(),
        };
        let found: Vec<Statistics> = products.chunks_exact(self.q() + 1).zip(x.rows()).map(row).collect();
        self.finite(&found.iter().map(|s| s.spe + s.t2).collect::<Vec<f64>>(), 1)?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::Target;
    use crate::{Fit, Points, Scaling, Spec, toys};

    /// Found by `fuzz/run fit`: distances overflowed, and multiplied by a weight of 0 gave NaN.
    #[test]
    fn columns_whose_squares_overflow_or_underflow_have_finite_scores() {
        let usual = toys::normal(30, 2, 0);
        for scale in [1e200, 1e-200] {
            let points = Points::new(2, usual.values().iter().map(|v| scale * v).collect::<Vec<_>>()).unwrap();
            let fit =
                Fit { kernel: Spec::new("cosine"), scaling: Scaling::None, false_alarms: None, ..Fit::detector() };
            // Cosines of rows whose squares underflow may have no variance.
            let Ok(model) = fit.train(&points) else { continue };
            let scores = model.score(&points, Precision::Double).unwrap();
            assert!(scores.iter().all(|score| score.is_finite()) && model.threshold().is_finite(), "{scale}");
        }
    }

    #[test]
    fn a_row_whose_distance_overflows_is_an_error_or_has_a_score() {
        let mut values = toys::normal(30, 2, 0).values().to_vec();
        values[0] = 1e200;
        let points = Points::new(2, values).unwrap();
        let fit = Fit { kernel: Spec::new("cosine"), scaling: Scaling::None, false_alarms: None, ..Fit::detector() };
        for method in ["landmarks", "akfa", "expansion"] {
            let fit = Fit { method: Spec::new(method), ..fit.clone() };
            assert!(fit.train(&points).is_ok_and(|model| model.threshold().is_finite()) || fit.train(&points).is_err());
        }
    }

    #[test]
    fn statistics_add_up_to_the_score() {
        let fresh = toys::normal(50, 3, 9);
        for kernel in ["rbf", "polynomial,degree=2"] {
            let fit = Fit { kernel: kernel.parse().unwrap(), false_alarms: None, ..Fit::detector() };
            let model = fit.run(&toys::normal(200, 3, 0), None, &()).unwrap();
            let (scores, noise) = (model.score(&fresh, Precision::Double).unwrap(), model.parts().noise);
            for (i, (score, Statistics { spe, t2 })) in scores.iter().zip(model.statistics(&fresh).unwrap()).enumerate()
            {
                let x = model.parts.columns.apply(&fresh).unwrap();
                let far = model.far.as_ref().map_or(0.0, |far| far.of(x.row(i)));
                assert!((score - spe - noise * t2 - far).abs() < 1e-9 * score, "{kernel}: {score} {spe} {t2}");
            }
            let method = Spec::new("l21").with("refit", false);
            let own = Fit { method, target: Some(Target::Support(20)), ..Fit::default() };
            let own = own.run(&toys::normal(200, 3, 0), None, &()).unwrap();
            assert!(own.statistics(&fresh).is_err() && own.score(&fresh, Precision::Double).is_ok());
        }
    }

    #[test]
    fn noise_is_a_share_of_the_total_variance_that_depends_on_the_kernel() {
        for (kernel, share) in [("laplacian", 1e-2), ("laplacian,gamma=2", 1e-2), ("rbf", 1e-5), ("linear", 1e-5)] {
            let fit = Fit { kernel: kernel.parse().unwrap(), false_alarms: None, ..Fit::detector() };
            let parts = fit.run(&toys::normal(200, 3, 0), None, &()).unwrap().parts().clone();
            assert_eq!(parts.noise, share * parts.total_variance, "{kernel}");
        }
    }

    #[test]
    fn each_limit_is_exceeded_at_the_requested_rate() {
        let fresh = toys::normal(2000, 3, 1000);
        for fit in [Fit::detector(), Fit { target: Some(Target::Support(15)), ..Fit::default() }] {
            let mut shares = [0.0; 2];
            for seed in 0..10 {
                let fit = Fit { false_alarms: Some(0.1), components: Some(5), ..fit.clone() };
                let model = fit.run(&toys::normal(100, 3, seed), None, &()).unwrap();
                let limits = model.parts.scores.calibration.as_ref().and_then(|c| c.limits).unwrap();
                for found in model.statistics(&fresh).unwrap() {
                    shares[0] += f64::from(u8::from(found.spe > limits.spe)) / 20_000.0;
                    shares[1] += f64::from(u8::from(found.t2 > limits.t2)) / 20_000.0;
                }
            }
            assert!(shares.iter().all(|share| (0.07..0.13).contains(share)), "{}: {shares:?}", fit.method);
        }
    }
}
