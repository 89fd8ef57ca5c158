//! The Gaussian in feature space that a method may have fitted.

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
    /// Coefficients over the support: m × any.
    pub axes: Mat<f64>,
    /// The weight of each support point, where C is σ² and a sum of weighted points; files of older versions do not
    /// know. Points that others express have no place here: without them the sum is not all of C.
    pub weights: Option<Vec<f64>>,
}
