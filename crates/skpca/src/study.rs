//! One table under one kernel: what every fit of it needs, made once.

use std::sync::Arc;
use std::time::Duration;

use crate::columns::Columns;
use crate::conformal::Learner;
use crate::error::{Error, Result};
use crate::fit::Fit;
use crate::kernel::{self, Bandwidth, Kernel};
use crate::labels::Labels;
use crate::method::{Shared, Target};
use crate::model::Model;
use crate::points::Points;
use crate::spec::Spec;
use crate::watch::Watch;

/// Fits of many methods and sizes to one table, which share the scaled rows, the kernel, its factor and the reference for the
/// fidelity. Each gives the same bits as [`Fit::run`].
///
/// ```
/// use skpca::{Fit, Spec, Study, Target, toys};
///
/// let points = toys::parabola(0);
/// let start = std::time::Instant::now();
/// let clock = || start.elapsed();
/// let study = Study::new(&Fit::default(), &points, None, None, &clock)?;
/// for method in ["landmarks", "greedy", "l21"] {
///     let (model, alone) = study.fit(&Spec::new(method), Some(Target::Support(15)), &())?;
///     println!("{method}: fidelity {:.4} in {alone:?}", model.parts().fidelity);
/// }
/// # Ok::<(), skpca::Error>(())
/// ```
pub struct Study<'a> {
    fit: Fit,
    table: Ground<'a>,
    shared: Shared<'a>,
}

/// A table as methods see it.
pub(crate) struct Ground<'a> {
    pub columns: Columns,
    /// Scaled.
    pub points: Points<'a>,
    pub labels: Option<&'a Labels>,
    pub kernel: Inner,
}

/// Inner products in feature space.
pub(crate) enum Inner {
    Known(Arc<dyn Kernel>),
    /// Each fit learns its own from the labels.
    Learned(Learner),
}

impl<'a> Ground<'a> {
    /// Scales the columns and builds the kernel, as `fit` says.
    pub(crate) fn new(
        fit: &Fit,
        points: &'a Points,
        labels: Option<&'a Labels>,
        names: Option<Vec<String>>,
    ) -> Result<Ground<'a>> {
        fit.check()?;
        let instructions = fit.level.instructions()?;
        if points.n() < 2 {
            return Err(Error::TooFewRows { rows: points.n(), needed: 2, why: "a fit".into() });
        }
        if let Some(labels) = labels.filter(|labels| labels.n() != points.n()) {
            let expected = format!("one for each of the {} rows", points.n());
            return Err(Error::parameter("labels", labels.n(), &expected));
        }
        fit.fits(points.n(), labels.is_some())?;
        let columns = Columns::fit(points, names, fit.scaling)?;
        let scaled = columns.apply(points)?;
        let kernel = match Learner::new(&fit.kernel, &Bandwidth { points: Some(&scaled), seed: fit.seed })? {
            Some(learner) => Inner::Learned(learner.pinned(instructions)),
            None => Inner::Known(kernel::pinned(kernel::build(&fit.kernel, &scaled, fit.seed)?, instructions)),
        };
        Ok(Ground { columns, points: scaled, labels, kernel })
    }
}

impl<'a> Study<'a> {
    /// A study of `points`. Of `fit` all but method and target counts; `clock` tells the time since any fixed moment.
    pub fn new(
        fit: &Fit,
        points: &'a Points,
        labels: Option<&'a Labels>,
        names: Option<Vec<String>>,
        clock: &'a dyn Fn() -> Duration,
    ) -> Result<Study<'a>> {
        let fit = Fit { method: Fit::default().method, target: None, ..fit.clone() };
        let table = Ground::new(&fit, points, labels, names)?;
        Ok(Study { fit, table, shared: Shared::new(clock) })
    }

    /// The model of one method and target, and the time that its fit would have taken alone.
    pub fn fit(&self, method: &Spec, target: Option<Target>, watch: &dyn Watch) -> Result<(Model, Duration)> {
        let fit = Fit { method: method.clone(), target, ..self.fit.clone() };
        fit.check()?;
        fit.fits(self.table.points.n(), self.table.labels.is_some())?;
        let (model, alone) = self.shared.timed(|| fit.run_on(&self.table, Some(&self.shared), watch));
        Ok((model?, alone))
    }
}
