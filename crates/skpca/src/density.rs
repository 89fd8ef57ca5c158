//! The Gaussian density in feature space that some methods fit.

use faer::Mat;

/// A Gaussian in feature space, `N(φ̄, C)`.
///
/// ```text
/// log p(x) = −½ [ D log 2πσ² + log|C/σ²| + (‖φ(x) − φ̄‖² − ‖axesᵀ(k_z(x) − μ)‖²) / σ² ]
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Density {
    /// σ²
    pub noise: f64,
    /// D, the rank of the training data in feature space.
    pub dimension: usize,
    /// `log|C/σ²|`
    pub log_determinant: f64,
    /// Coefficients over the support, m rows and any number of columns.
    pub axes: Mat<f64>,
    /// The weight of each support point if C is σ²I plus a sum of weighted points; absent in files of older versions.
    /// Linearly dependent points are not included; if there were any, the sum is incomplete.
    pub weights: Option<Vec<f64>>,
}
