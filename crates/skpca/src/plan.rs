//! A checked fit and its prepared table: everything is checked once and built once.

use std::sync::Arc;

use crate::columns::{Columns, Table};
use crate::conformal::Learner;
use crate::error::{Error, Result};
use crate::fit::Fit;
use crate::kernel::{self, Bandwidth, Kernel};
use crate::labels::Labels;
use crate::method::{METHODS, Method, Target};
use crate::points::Points;
use crate::rows::Rows;
use crate::source::{Raw, Source};
use crate::watch::Watch;

/// A fit whose parameters have been checked, with its method built.
pub(crate) struct Plan {
    pub fit: Fit,
    pub method: Box<dyn Method>,
    /// Whether features are centred.
    pub center: bool,
    /// Number of rows to sample for a method that holds all rows, if they are not in memory.
    pub sample: usize,
}

impl Plan {
    pub(crate) fn new(fit: &Fit) -> Result<Plan> {
        Ok(Plan { method: fit.built()?, center: fit.centered()?, sample: usize::MAX, fit: fit.clone() })
    }

    /// Returns the plan of `fit` and the prepared table.
    pub(crate) fn with_table<'a>(
        fit: &Fit,
        data: impl Into<Data<'a>>,
        names: Option<Vec<String>>,
        watch: &dyn Watch,
    ) -> Result<(Plan, Prepared<'a>)> {
        let (plan, data) = (Plan::new(fit)?, data.into());
        plan.check_table(data.source.n(), data.labels.is_some())?;
        if data.weights.is_some() {
            plan.check_weighted()?;
        }
        Ok((plan, Prepared::new(fit, data, names, watch)?))
    }

    /// Rejects weights if the method, or anything that needs labels, would ignore them.
    fn check_weighted(&self) -> Result<()> {
        let able = || METHODS.iter().filter(|entry| entry.capabilities.weights).map(|entry| entry.name);
        if !able().any(|name| name == self.fit.method.name) {
            let able = able().collect::<Vec<_>>().join(", ");
            let expected =
                format!("no weights ({} counts every row once), or one of the methods {able}", self.fit.method.name);
            return Err(Error::parameter("sample_weight", "given", &expected));
        }
        match self.fit.needs_labels()? {
            Some((what, name)) => {
                let expected = format!("no weights: the {what} {name}, which needs labels, counts every row once");
                Err(Error::parameter("sample_weight", "given", &expected))
            }
            None => Ok(()),
        }
    }

    /// Returns the target of a model of n rows.
    pub(crate) fn target(&self, n: usize) -> Option<Target> {
        self.fit.usual_target(n).expect("the method is known")
    }

    /// Rejects requests that a table of n rows, with or without labels, cannot meet.
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

/// Rows with optional labels and weights.
#[derive(Clone, Copy)]
pub(crate) struct Data<'a> {
    pub source: &'a dyn Source,
    pub labels: Option<&'a Labels>,
    /// The weight of each row, > 0; 1 by default. Rows with weights are in memory.
    pub weights: Option<&'a [f64]>,
}

impl<'a> From<&'a Points<'a>> for Data<'a> {
    fn from(points: &'a Points<'a>) -> Data<'a> {
        Data { source: points, labels: None, weights: None }
    }
}

impl<'a> From<&'a dyn Source> for Data<'a> {
    fn from(source: &'a dyn Source) -> Data<'a> {
        Data { source, labels: None, weights: None }
    }
}

impl Data<'_> {
    /// Returns the rows with these numbers.
    pub(crate) fn gather(&self, rows: &[usize]) -> Result<Points<'static>> {
        Raw::new(self.source).gather(rows)
    }
}

/// A table prepared for a method.
pub(crate) struct Prepared<'a> {
    /// The rows, scaled as they are read.
    pub rows: Table<'a>,
    pub labels: Option<&'a Labels>,
    pub kernel: TableKernel,
}

/// The kernel of a table.
pub(crate) enum TableKernel {
    Known(Arc<dyn Kernel>),
    /// Every fit learns its own kernel from the labels.
    Learned(Learner),
}

impl<'a> Prepared<'a> {
    /// Scales the columns and builds the kernel according to `fit`.
    pub(crate) fn new(
        fit: &Fit,
        Data { source, labels, weights }: Data<'a>,
        names: Option<Vec<String>>,
        watch: &dyn Watch,
    ) -> Result<Prepared<'a>> {
        let (n, d) = (source.n(), source.d());
        if n < 2 {
            return Err(Error::TooFewRows { rows: n, needed: 2, why: "a fit".into() });
        }
        if let Some(labels) = labels.filter(|labels| labels.n() != n) {
            let expected = format!("one for each of the {n} rows");
            return Err(Error::parameter("labels", labels.n(), &expected));
        }
        let instructions = fit.level.instructions()?;
        let raw = Raw::weighted(source, weights);
        let rows = Table::new(raw, Columns::of(&raw, names, fit.scaling, watch)?);
        let bandwidth = Bandwidth { rows: Some(&rows), seed: fit.seed };
        let kernel = match Learner::new(&fit.kernel, &bandwidth)? {
            Some(learner) => TableKernel::Learned(learner.pinned(instructions)),
            None => {
                let kernel = fit.widened(kernel::build_for(&fit.kernel, &bandwidth, d)?)?;
                TableKernel::Known(kernel::pinned(kernel, instructions))
            }
        };
        Ok(Prepared { rows, labels, kernel })
    }

    /// Returns the kernel before anything is learned from labels.
    pub(crate) fn base_kernel(&self) -> &Arc<dyn Kernel> {
        match &self.kernel {
            TableKernel::Known(kernel) => kernel,
            TableKernel::Learned(learner) => learner.base(),
        }
    }
}
