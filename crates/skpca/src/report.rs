//! How a fit went, in numbers and notes.

/// Shares may be above 1 by this much, which is rounding.
pub(crate) const ABOVE_ONE: f64 = 1e-6;

/// How a fit went.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The method's own objective, where it has one.
    pub objective: Option<f64>,
    /// Points the method chose; those that others express are not kept.
    pub chosen: usize,
    /// Where the fidelity lies, where it was estimated on a sample of the rows: with three standard errors to both sides.
    pub fidelity_interval: Option<[f64; 2]>,
    /// Distance to the optimum: a duality gap, or the residual of the eigenpairs, relative.
    pub gap: Option<f64>,
    /// Iterations.
    pub rounds: usize,
    /// Whether the method reached its tolerance.
    pub converged: bool,
    /// Share of `Σ k(x, x)` outside the span of the support.
    pub residual_trace: f64,
    /// What the user should know: fewer components than asked for, dependent points dropped.
    pub notes: Vec<String>,
}
