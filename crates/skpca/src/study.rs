//! Many fits of one table under one kernel, which share everything they have in common.

use std::time::Duration;

use crate::error::Result;
use crate::fit::Fit;
use crate::labels::Labels;
use crate::method::{Shared, Target};
use crate::model::Model;
use crate::plan::{Data, Plan, Prepared};
use crate::points::Points;
use crate::rows::Rows;
use crate::spec::Spec;
use crate::watch::Watch;

/// Fits of many methods and sizes to one table, which share the scaled rows, the kernel, its factor and the reference
/// for the fidelity. Each gives bit for bit the model of [`Fit::run`].
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
    table: Prepared<'a>,
    shared: Shared<'a>,
}

impl<'a> Study<'a> {
    /// Creates a study of `points`. Method and target of `fit` are ignored; `clock` returns the time since any fixed
    /// moment.
    pub fn new(
        fit: &Fit,
        points: &'a Points,
        labels: Option<&'a Labels>,
        names: Option<Vec<String>>,
        clock: &'a (dyn Fn() -> Duration + Sync),
    ) -> Result<Study<'a>> {
        let fit = Fit { method: Fit::default().method, target: None, ..fit.clone() };
        Plan::new(&fit)?.check_table(points.n(), labels.is_some())?;
        let table = Prepared::new(&fit, Data { labels, ..points.into() }, names, &())?;
        Ok(Study { fit, table, shared: Shared::new(clock) })
    }

    /// Fits one method and target. Returns the model and the time that this fit would have taken on its own.
    pub fn fit(&self, method: &Spec, target: Option<Target>, watch: &dyn Watch) -> Result<(Model, Duration)> {
        let fit = Fit { method: method.clone(), target, ..self.fit.clone() };
        let plan = Plan::new(&fit)?;
        plan.check_table(self.table.rows.n(), self.table.labels.is_some())?;
        let (model, alone) = self.shared.timed(|| plan.run(&self.table, Some(&self.shared), watch));
        Ok((model?, alone))
    }
}
