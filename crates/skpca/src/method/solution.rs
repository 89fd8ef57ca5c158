//! What is asked of a method, and its answer.

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

/// What the user asks of a method: how small, or how good.
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
    /// The same of a table of no more rows than this.
    pub(crate) fn at_most(self, rows: usize) -> Target {
        match self {
            Target::Support(m) => Target::Support(m.min(rows)),
            fidelity => fidelity,
        }
    }

    /// The error where a method was given its `own` parameter beside this.
    pub(crate) fn refused(self, own: &str) -> Error {
        let (name, value) = match self {
            Target::Support(m) => ("support", m as f64),
            Target::Fidelity(f) => ("fidelity", f),
        };
        Error::parameter(name, value, &format!("a target or {own}, not both"))
    }
}

/// Points that others express are left out.
pub(crate) const DEPENDENT: &str = "the others depend on them";

/// Where the support comes from.
pub(crate) enum Support {
    /// Rows of the training data, increasing.
    Rows(Vec<usize>),
    /// Points of the method's own.
    Points(Points<'static>),
}

impl Support {
    pub(crate) fn len(&self) -> usize {
        match self {
            Support::Rows(rows) => rows.len(),
            Support::Points(points) => points.n(),
        }
    }

    /// The points themselves; `all` are those that rows are counted in.
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

/// A method's answer.
pub(crate) struct Solution {
    /// The method's name with the parameters it used, those it found included.
    pub method: Spec,
    pub support: Support,
    /// Over those of the support that are independent.
    pub expansion: Expansion,
    /// What the likelihood of new rows needs, where the method has one.
    pub density: Option<Density>,
    /// The fidelity, where it is not that of the components.
    pub fidelity: Option<f64>,
    /// What exact kernel PCA captures with as many components, where their number was the method's own choice.
    pub reference: Option<Arc<Reference>>,
    /// Why there may be fewer points than asked for.
    pub fewer: &'static str,
    pub report: Report,
}

impl Solution {
    /// An answer with nothing special about it.
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
