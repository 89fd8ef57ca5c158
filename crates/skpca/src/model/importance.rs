//! Importance of the inputs for the components: mean squared gradients at the support points.
//!
//! ```text
//! importance_c ∝ Σ_j Σ_k (∂/∂x_c  Σ_i w_ik k(x, z_i) at x = z_j)²,   w = A E
//! ```
//!
//! Gradients are taken with respect to the scaled columns; without scaling, the importance of a column depends on its
//! unit. The training rows are not needed, because the support points are distributed like them.

use faer::{Mat, MatRef};
use rayon::prelude::*;

use super::Model;
use crate::dense;
use crate::error::Result;

/// Maximum number of multiply-adds; larger models are evaluated at fewer of their points.
const MAX_WORK: usize = 2_000_000_000;
/// Minimum number of points at which a model is evaluated.
const MIN_POINTS: usize = 20;

impl Model {
    /// Returns the share of each input in the squared gradients of the components: d numbers that sum to 1, or zeros if
    /// all gradients vanish.
    pub fn importance(&self) -> Result<Vec<f64>> {
        let parts = &self.parts;
        let weights = match &parts.frame {
            Some(frame) => dense::product(parts.coefficients.as_ref(), frame.as_ref()),
            None => parts.coefficients.clone(),
        };
        let (m, d, q) = (self.m(), parts.support.d(), weights.ncols());
        let count = (MAX_WORK / (m * d * (q + 1)).max(1)).clamp(MIN_POINTS.min(m), m);
        let at: Vec<usize> = (0..count).map(|j| j * m / count).collect();
        // Summed in order, so that the result is the same bit for bit on any number of threads.
        let squares: Vec<Vec<f64>> = at.par_iter().map(|&j| self.squared_gradients(j, weights.as_ref())).collect();
        let mut total = vec![0.0; d];
        squares.iter().for_each(|row| total.iter_mut().zip(row).for_each(|(total, v)| *total += v));
        self.finite(&total, d)?;
        let sum: f64 = total.iter().sum();
        Ok(if sum > 0.0 { total.into_iter().map(|v| v / sum).collect() } else { total })
    }

    /// Returns `Σ_k (∂ Σ_i w_ik k(x, z_i))²` at point j, one number per column.
    fn squared_gradients(&self, j: usize, weights: MatRef<f64>) -> Vec<f64> {
        let support = &self.parts.support;
        let mut gradients = Mat::<f64>::zeros(support.d(), weights.ncols());
        let mut one = vec![0.0; support.d()];
        for (i, z) in support.rows().enumerate() {
            one.fill(0.0);
            self.kernel().add_gradient(support.row(j), z, 1.0, &mut one);
            for (column, w) in gradients.col_iter_mut().zip(weights.row(i).iter()) {
                column.iter_mut().zip(&one).for_each(|(sum, slope)| *sum += w * slope);
            }
        }
        (0..support.d()).map(|c| gradients.row(c).iter().map(|v| v * v).sum()).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::kernel::KERNELS;
    use crate::{Fit, Points, Precision, Scaling, Spec, Target, toys};

    /// Returns clusters in a plane, with a third column of noise of standard deviation `noise`.
    fn rows(noise: f64) -> Points<'static> {
        let (plane, other) = (toys::clusters(0), toys::normal(90, 1, 3));
        let rows = plane.rows().zip(other.values()).flat_map(|(row, v)| [row[0], row[1], noise * v]);
        Points::new(3, rows.collect::<Vec<_>>()).unwrap()
    }

    fn fit(kernel: &str, scaling: Scaling) -> Fit {
        let target = Some(Target::Support(12));
        let method = Spec::new("landmarks");
        Fit { method, kernel: kernel.parse().unwrap(), components: Some(2), target, scaling, ..Fit::default() }
    }

    #[test]
    fn importance_equals_the_mean_of_squared_differences_of_features() {
        let points = rows(0.3);
        for entry in
            KERNELS.iter().filter(|entry| entry.capabilities.positive_semidefinite && !entry.capabilities.labelled)
        {
            let model = fit(entry.name, Scaling::None).run(&points, None, &()).unwrap();
            let support = model.parts().support.clone();
            let mut expected = [0.0; 3];
            // The city-block distance has kinks at the points; the derivative there is the mean of both sides.
            let step = 1e-6;
            for z in support.rows() {
                for c in 0..3 {
                    let moved = |by: f64| {
                        let mut z = z.to_vec();
                        z[c] += by;
                        model.transform(&Points::new(3, z).unwrap(), Precision::Double).unwrap()
                    };
                    let pairs = moved(step).into_iter().zip(moved(-step));
                    expected[c] += pairs.map(|(a, b)| ((a - b) / (2.0 * step)).powi(2)).sum::<f64>();
                }
            }
            let sum: f64 = expected.iter().sum();
            for (found, expected) in model.importance().unwrap().iter().zip(&expected) {
                assert!((found - expected / sum).abs() < 1e-5, "{}: {found} {}", entry.name, expected / sum);
            }
        }
    }

    #[test]
    fn a_column_that_hardly_varies_does_not_matter() {
        let model = fit("rbf", Scaling::None).run(&rows(1e-3), None, &()).unwrap();
        let importance = model.importance().unwrap();
        assert!((importance.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!(importance[2] < 1e-4 && importance[0] > 0.1 && importance[1] > 0.1, "{importance:?}");
        let constant = fit("rbf", Scaling::Standard).run(&rows(0.0), None, &()).unwrap();
        assert_eq!(constant.importance().unwrap()[2], 0.0);
    }
}
