//! The target of a method, and its solution.

use std::sync::Arc;

use super::search::Chosen;
use crate::density::Density;
use crate::error::{Error, Result};
use crate::points::Points;
use crate::reference::Reference;
use crate::report::Report;
use crate::rows::Rows;
use crate::spec::Spec;
use crate::spectrum::Expansion;

/// The user's target for a model: how small, or how good.
///
/// ```
/// use skpca::{Fit, Target, toys};
///
/// let points = toys::parabola(0);
/// let small = Fit { target: Some(Target::Support(12)), ..Fit::default() }.train(&points)?;
/// let good = Fit { target: Some(Target::Fidelity(0.99)), ..Fit::default() }.train(&points)?;
/// assert!(small.m() == 12 && good.fidelity() >= 0.99);
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// This many support points.
    Support(usize),
    /// The smallest model that captures this share of what exact kernel PCA captures.
    Fidelity(f64),
}

impl Target {
    /// Limits a number of support points to the number of rows.
    pub(crate) fn at_most(self, rows: usize) -> Target {
        match self {
            Target::Support(m) => Target::Support(m.min(rows)),
            fidelity => fidelity,
        }
    }

    /// Returns the error for a target that is given together with the method's `own` parameter.
    pub(crate) fn refused(self, own: &str) -> Error {
        let (name, value) = match self {
            Target::Support(m) => ("support", m as f64),
            Target::Fidelity(f) => ("fidelity", f),
        };
        Error::parameter(name, value, &format!("a target or {own}, not both"))
    }
}

/// Why a model usually has fewer points than requested: linearly dependent points are left out.
pub(crate) const DEPENDENT: &str = "the others are linearly dependent";

/// The support points.
pub(crate) enum Support {
    /// Numbers of rows of the training data, increasing.
    Rows(Vec<usize>),
    /// Synthetic points.
    Points(Points<'static>),
}

impl Support {
    pub(crate) fn len(&self) -> usize {
        match self {
            Support::Rows(rows) => rows.len(),
            Support::Points(points) => points.n(),
        }
    }

    /// Returns the points themselves; row numbers refer to `all`.
    pub(crate) fn points(&self, all: &dyn Rows) -> Result<Points<'static>> {
        match self {
            Support::Rows(rows) => all.gather(rows),
            Support::Points(points) => Ok(points.clone()),
        }
    }
}

impl Chosen for Solution {
    fn rows(&self) -> &[usize] {
        match &self.support {
            Support::Rows(rows) => rows,
            Support::Points(_) => &[],
        }
    }

    fn expansion(&self) -> &Expansion {
        &self.expansion
    }
}

/// The result of a method.
pub(crate) struct Solution {
    /// The method's name with the parameters it used, including those it determined itself.
    pub method: Spec,
    pub support: Support,
    /// Components over the linearly independent points of the support.
    pub expansion: Expansion,
    /// Parameters of the density of new rows, if the method has one.
    pub density: Option<Density>,
    /// The fidelity, if it is not that of the components.
    pub fidelity: Option<f64>,
    /// The variance that exact kernel PCA captures with as many components, if the method chose their number.
    pub reference: Option<Arc<Reference>>,
    /// Why there may be fewer points than requested.
    pub fewer: &'static str,
    pub report: Report,
}

impl Solution {
    /// Creates a solution with default values of all other fields.
    pub(crate) fn new(method: Spec, support: Support, expansion: Expansion, report: Report) -> Solution {
        Solution {
            method,
            support,
            expansion,
            density: None,
            fidelity: None,
            reference: None,
            fewer: DEPENDENT,
            report,
        }
    }
}
