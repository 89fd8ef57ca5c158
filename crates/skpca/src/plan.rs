//! A fit that is known to be sound, and the table it will see: everything is checked once and built once.

use std::sync::Arc;

use crate::columns::{Columns, Table};
use crate::conformal::Learner;
use crate::error::{Error, Result};
use crate::fit::Fit;
use crate::kernel::{self, Bandwidth, Kernel};
use crate::labels::Labels;
use crate::method::{Method, Target};
use crate::points::Points;

/// A fit whose parameters are sound, with its method built.
pub(crate) struct Plan {
    pub fit: Fit,
    pub method: Box<dyn Method>,
    /// Whether features are centred.
    pub center: bool,
}

impl Plan {
    pub(crate) fn new(fit: &Fit) -> Result<Plan> {
        Ok(Plan { method: fit.built()?, center: fit.centered()?, fit: fit.clone() })
    }

    /// The plan of `fit`, and the table that it will see.
    pub(crate) fn with_table<'a>(
        fit: &Fit,
        points: &'a Points,
        labels: Option<&'a Labels>,
        names: Option<Vec<String>>,
    ) -> Result<(Plan, Prepared<'a>)> {
        let plan = Plan::new(fit)?;
        plan.check_table(points.n(), labels.is_some())?;
        Ok((plan, Prepared::new(fit, points, labels, names)?))
    }

    /// Refuses what a table of n rows, with labels or without, cannot give.
    pub(crate) fn check_table(&self, n: usize, labelled: bool) -> Result<()> {
        if let Some(Target::Support(m)) = self.fit.target.filter(|t| matches!(t, Target::Support(m) if *m > n)) {
            return Err(Error::parameter("support", m, &format!("at most the {n} rows there are")));
        }
        match self.fit.needs_labels()?.filter(|_| !labelled) {
            Some((what, name)) => Err(Error::parameter(what, name, "labels with it: the class of each row")),
            None => Ok(()),
        }
    }
}

/// A table as methods see it.
pub(crate) struct Prepared<'a> {
    /// Scaled as they are read.
    pub rows: Table<'a>,
    pub labels: Option<&'a Labels>,
    pub kernel: TableKernel,
}

/// The kernel of a table.
pub(crate) enum TableKernel {
    Known(Arc<dyn Kernel>),
    /// Each fit learns its own from the labels.
    Learned(Learner),
}

impl<'a> Prepared<'a> {
    /// Scales the columns and builds the kernel, as `fit` says.
    pub(crate) fn new(
        fit: &Fit,
        points: &'a Points,
        labels: Option<&'a Labels>,
        names: Option<Vec<String>>,
    ) -> Result<Prepared<'a>> {
        if points.n() < 2 {
            return Err(Error::TooFewRows { rows: points.n(), needed: 2, why: "a fit".into() });
        }
        if let Some(labels) = labels.filter(|labels| labels.n() != points.n()) {
            let expected = format!("one for each of the {} rows", points.n());
            return Err(Error::parameter("labels", labels.n(), &expected));
        }
        let instructions = fit.level.instructions()?;
        let rows = Table::new(points, Columns::fit(points, names, fit.scaling)?);
        let bandwidth = Bandwidth { rows: Some(&rows), seed: fit.seed };
        let kernel = match Learner::new(&fit.kernel, &bandwidth)? {
            Some(learner) => TableKernel::Learned(learner.pinned(instructions)),
            None => {
                let kernel = kernel::build_for(&fit.kernel, &bandwidth, points.d())?;
                TableKernel::Known(kernel::pinned(kernel, instructions))
            }
        };
        Ok(Prepared { rows, labels, kernel })
    }

    /// The kernel before anything is learned from labels.
    pub(crate) fn base_kernel(&self) -> &Arc<dyn Kernel> {
        match &self.kernel {
            TableKernel::Known(kernel) => kernel,
            TableKernel::Learned(learner) => learner.base(),
        }
    }
}
