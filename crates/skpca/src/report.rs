//! The report of a fit, in numbers and notes.

/// Tolerance by which shares may exceed 1 because of rounding.
pub(crate) const ABOVE_ONE: f64 = 1e-6;

/// The report of a fit.
///
/// ```
/// use skpca::{Fit, toys};
///
/// let report = Fit::default().train(&toys::clusters(0))?.parts().report.clone();
/// assert!(report.converged && report.set_aside.is_empty());
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The method's objective, if it has one.
    pub objective: Option<f64>,
    /// Number of points chosen by the method; points that depend linearly on others are not kept.
    pub chosen: usize,
    /// Interval of ±3 standard errors for a fidelity that was estimated on a sample of the rows.
    pub fidelity_interval: Option<[f64; 2]>,
    /// Relative distance from the optimum: a duality gap, or the residual of the eigenpairs.
    pub gap: Option<f64>,
    /// Number of iterations.
    pub rounds: usize,
    /// Whether the method reached its tolerance.
    pub converged: bool,
    /// Share of `Σ k(x, x)` outside the span of the support.
    pub residual_trace: f64,
    /// Agreement of the scores with those of an exact model, if that was requested.
    pub score_fidelity: Option<Agreement>,
    /// Numbers of the rows that a robust fit set aside, increasing.
    pub set_aside: Vec<usize>,
    /// Notes for the user, such as fewer components than requested or dependent points dropped.
    pub notes: Vec<String>,
}

/// The agreement of sparse scores with exact ones, on rows that neither model has seen.
///
/// ```
/// use skpca::{Fit, toys};
///
/// let fit = Fit { score_fidelity: Some(0.9), ..Fit::detector() };
/// let model = fit.train(&toys::parabola(0))?;
/// let agreement = model.parts().report.score_fidelity.expect("it was asked for");
/// assert!(agreement.rank_correlation >= 0.9);
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreement {
    /// Spearman's rank correlation.
    pub rank_correlation: f64,
    /// The largest difference, as a share of the median exact score.
    pub worst_difference: f64,
    /// Number of rows compared.
    pub rows: usize,
}
