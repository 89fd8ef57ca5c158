//! How a fit went, in numbers and notes.

/// Shares may be above 1 by this much, which is rounding.
pub(crate) const ABOVE_ONE: f64 = 1e-6;

/// How a fit went.
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
    /// The method's own objective, where it has one.
    pub objective: Option<f64>,
    /// Points the method chose; those that others express are not kept.
    pub chosen: usize,
    /// Where the fidelity lies, where it was estimated on a sample of the rows: with three standard errors to both
    /// sides.
    pub fidelity_interval: Option<[f64; 2]>,
    /// Distance to the optimum: a duality gap, or the residual of the eigenpairs, relative.
    pub gap: Option<f64>,
    /// Iterations.
    pub rounds: usize,
    /// Whether the method reached its tolerance.
    pub converged: bool,
    /// Share of `Σ k(x, x)` outside the span of the support.
    pub residual_trace: f64,
    /// How well scores agree with those of an exact model, where that was asked for.
    pub score_fidelity: Option<Agreement>,
    /// Numbers of the rows that a robust fit set aside, increasing.
    pub set_aside: Vec<usize>,
    /// What the user should know: fewer components than asked for, dependent points dropped.
    pub notes: Vec<String>,
}

/// How well sparse scores agree with exact ones, on rows that neither model has seen.
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
    /// Spearman's.
    pub rank_correlation: f64,
    /// The largest difference, as a share of the median exact score.
    pub worst_difference: f64,
    /// Rows that were compared.
    pub rows: usize,
}
