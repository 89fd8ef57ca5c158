//! The parameters of a fit: method, kernel, target and all other settings.

use std::str::FromStr;
use std::sync::Arc;

use crate::columns::{Scaling, Table};
use crate::conformal::Learner;
use crate::error::{Error, Result};
use crate::kernel::{self, Bandwidth, Kernel, conformal};
use crate::method::{self, COMPONENTS, Method, Size, Target};
use crate::points::Points;
use crate::spec::Spec;
use skpca_simd::Level;

/// Bytes that every fit needs for the working memory of its threads.
const THREAD_BUFFERS: usize = 10_000_000;
/// Bytes per column of the blocks that threads read and scale.
const READ_BUFFERS: usize = 100_000;
/// Maximum number of rows that affect the memory of a fit which does not hold all rows: it looks at samples of them.
const SAMPLED_ROWS: usize = 100_000;

/// What the order of the rows means.
///
/// ```
/// use skpca::RowOrder;
///
/// assert_eq!("time".parse::<RowOrder>()?, RowOrder::Time);
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowOrder {
    /// Rows are in time order if neighbouring rows are more alike than rows a little farther apart; otherwise their
    /// order has no meaning.
    #[default]
    Auto,
    /// Rows are in time order.
    Time,
    /// The order has no meaning.
    Any,
}

impl RowOrder {
    /// All variants with their names.
    pub const ALL: &'static [(&'static str, RowOrder)] =
        &[("auto", RowOrder::Auto), ("time", RowOrder::Time), ("any", RowOrder::Any)];

    /// Returns the name that users write.
    pub fn name(self) -> &'static str {
        RowOrder::ALL.iter().find(|(_, order)| *order == self).expect("all are listed").0
    }
}

impl std::fmt::Display for RowOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for RowOrder {
    type Err = Error;

    fn from_str(text: &str) -> Result<RowOrder> {
        RowOrder::ALL.iter().find(|(name, _)| *name == text).map(|(_, order)| *order).ok_or_else(|| Error::Unknown {
            what: "row order",
            name: text.into(),
            valid: RowOrder::ALL.iter().map(|(name, _)| name.to_string()).collect(),
        })
    }
}

/// The statistic that a novelty score is.
///
/// ```
/// use skpca::{Fit, Statistic};
///
/// assert_eq!((Fit::default().statistic, Fit::detector().statistic), (Statistic::Distance, Statistic::Mahalanobis));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Statistic {
    /// The squared distance from the span of the components (Hoffmann 2007), also known as SPE or Q.
    #[default]
    Distance,
    /// The Mahalanobis distance under the covariance of all components plus a little noise: SPE and T² in one. Its
    /// defaults are 100 points, as many components as points, and a Gaussian kernel with a tenth of the usual γ.
    Mahalanobis,
}

impl Statistic {
    /// All variants with their names.
    pub const ALL: &'static [(&'static str, Statistic)] =
        &[("distance", Statistic::Distance), ("mahalanobis", Statistic::Mahalanobis)];

    /// Returns the name that users write.
    pub fn name(self) -> &'static str {
        Statistic::ALL.iter().find(|(_, s)| *s == self).expect("all are listed").0
    }
}

impl FromStr for Statistic {
    type Err = Error;

    fn from_str(text: &str) -> Result<Statistic> {
        Statistic::ALL.iter().find(|(name, _)| *name == text).map(|(_, s)| *s).ok_or_else(|| Error::Unknown {
            what: "statistic",
            name: text.into(),
            valid: Statistic::ALL.iter().map(|(name, _)| name.to_string()).collect(),
        })
    }
}

/// The parameters of a fit.
///
/// ```
/// use skpca::{Fit, Points, Precision, Target};
///
/// let circle = (0..200).flat_map(|i| [(i as f64).cos(), (i as f64).sin()]).collect::<Vec<_>>();
/// let points = Points::new(2, circle)?;
/// let model = Fit { target: Some(Target::Support(20)), ..Fit::default() }.train(&points)?;
/// let scores = model.score(&Points::new(2, vec![1.0, 0.0, 3.0, 3.0])?, Precision::Double)?;
/// assert!(!model.is_novel(scores[0]) && model.is_novel(scores[1]));
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The method that chooses the support points.
    pub method: Spec,
    /// The kernel: inner products in feature space.
    pub kernel: Spec,
    /// Number of components. Default: 10, or the rank if that is lower.
    pub components: Option<usize>,
    /// Number of support points or fidelity to reach. Default: a fidelity of 0.95.
    pub target: Option<Target>,
    /// Whether features are centred. Default: as in the method's paper.
    pub center: Option<bool>,
    /// How columns are scaled.
    pub scaling: Scaling,
    /// Share of the training rows below the novelty threshold; used unless `false_alarms` is given.
    pub quantile: f64,
    /// Share of fresh normal rows above the novelty threshold. Threshold and p-values then come from models that have
    /// not seen the rows they score (cross-fitting), which takes one more fit per fold.
    pub false_alarms: Option<f64>,
    /// The statistic that a novelty score is.
    pub statistic: Statistic,
    /// Rank correlation with the scores of an exact model to reach on held-out rows: the number of points grows until
    /// it is reached.
    pub score_fidelity: Option<f64>,
    /// Whether outlying rows are first set aside by concentration steps; the report lists them.
    pub robust: bool,
    /// What the order of the rows means; only false-alarm rates depend on it.
    pub row_order: RowOrder,
    /// Seed of everything random.
    pub seed: u64,
    /// Instruction set used for kernel values.
    pub level: Level,
}

/// Default number of support points under the Mahalanobis statistic.
const DETECTOR_POINTS: usize = 100;
/// Default γ under the Mahalanobis statistic, as a share of the usual one.
const DETECTOR_GAMMA: f64 = 0.1;

impl Default for Fit {
    fn default() -> Fit {
        Fit {
            method: Spec::new("expansion"),
            kernel: Spec::new("rbf"),
            components: None,
            target: None,
            center: None,
            scaling: Scaling::Standard,
            quantile: 0.95,
            false_alarms: None,
            statistic: Statistic::Distance,
            score_fidelity: None,
            robust: false,
            row_order: RowOrder::Auto,
            seed: 0,
            level: Level::Auto,
        }
    }
}

impl Fit {
    /// Rejects invalid parameters.
    pub fn check(&self) -> Result<()> {
        self.built()?;
        self.any_kernel().map(drop)
    }

    /// Checks everything but the kernel, which may need the rows, and returns the method.
    pub(crate) fn built(&self) -> Result<Box<dyn Method>> {
        let method = method::build(&self.method)?;
        self.level.instructions()?;
        if !method::entry(&self.method)?.takes(&self.kernel) {
            let expected = format!("linear: {} looks at the columns of the table", self.method.name);
            return Err(Error::parameter("kernel", &self.kernel.name, &expected));
        }
        if self.components == Some(0) {
            return Err(Error::parameter("components", 0, "an integer ≥ 1"));
        }
        match self.target {
            Some(Target::Support(0)) => return Err(Error::parameter("support", 0, "an integer ≥ 1")),
            Some(Target::Fidelity(f)) if !(f > 0.0 && f <= 1.0) => {
                return Err(Error::parameter("fidelity", f, "a number above 0 and up to 1"));
            }
            _ => {}
        }
        if let Some(rate) = self.false_alarms.filter(|rate| !(*rate > 0.0 && *rate < 1.0)) {
            return Err(Error::parameter("false_alarms", rate, "a number between 0 and 1"));
        }
        if let Some(asked) = self.score_fidelity.filter(|asked| !(*asked > 0.0 && *asked <= 1.0)) {
            return Err(Error::parameter("score_fidelity", asked, "a number above 0 and up to 1"));
        }
        if self.quantile > 0.0 && self.quantile < 1.0 {
            return Ok(method);
        }
        Err(Error::parameter("quantile", self.quantile, "a number between 0 and 1"))
    }

    /// Returns the parameters of a novelty detector: `landmarks`, the Mahalanobis statistic of all components, 5 %
    /// false alarms.
    ///
    /// ```
    /// use skpca::{Fit, Points, Precision, toys};
    ///
    /// let model = Fit::detector().run(&toys::normal(300, 3, 0), None, &())?;
    /// let scores = model.score(&Points::new(3, vec![0.0, 0.0, 0.0, 50.0, 0.0, 0.0, 5000.0, 0.0, 0.0])?, Precision::Double)?;
    /// assert!(scores[0] < model.parts().scores.threshold && model.parts().scores.threshold < scores[1]);
    /// assert!(model.m() <= 100 && scores[1] < scores[2]);
    /// # Ok::<(), skpca::Error>(())
    /// ```
    pub fn detector() -> Fit {
        Fit {
            method: Spec::new("landmarks"),
            statistic: Statistic::Mahalanobis,
            false_alarms: Some(0.05),
            ..Fit::default()
        }
    }

    /// Returns the target for n rows: the requested one, or else the default of the statistic if it has one.
    pub(crate) fn usual_target(&self, n: usize) -> Result<Option<Target>> {
        let entry = method::entry(&self.method)?;
        let own = entry.capabilities.keeps_all_rows || entry.fixes_size(&self.method);
        let usual = self.statistic == Statistic::Mahalanobis && self.target.is_none() && !own;
        Ok(if usual { Some(Target::Support(DETECTOR_POINTS.min(n))) } else { self.target })
    }

    /// Returns the number of components to look for in n rows.
    pub(crate) fn wanted(&self, n: usize) -> usize {
        let usual = match (self.statistic, self.target) {
            (Statistic::Distance, _) => COMPONENTS,
            (Statistic::Mahalanobis, Some(Target::Support(m))) => m,
            (Statistic::Mahalanobis, _) => DETECTOR_POINTS,
        };
        self.components.unwrap_or(usual).min(n)
    }

    /// Widens a Gaussian kernel whose γ was not given, for the Mahalanobis statistic.
    pub(crate) fn widened(&self, kernel: Arc<dyn Kernel>) -> Result<Arc<dyn Kernel>> {
        let broad = self.statistic == Statistic::Mahalanobis && self.kernel.fields.is_empty();
        let spec = kernel.spec();
        match spec.fields.get("gamma").and_then(serde_json::Value::as_f64) {
            Some(gamma) if broad && kernel::entry(&self.kernel)?.capabilities.gaussian => {
                kernel::build_resolved(&spec.with("gamma", DETECTOR_GAMMA * gamma))
            }
            _ => Ok(kernel),
        }
    }

    /// Builds the kernel over two arbitrary points, which is enough to check its name and parameters.
    fn any_kernel(&self) -> Result<Arc<dyn Kernel>> {
        let points = Points::new(1, vec![0.0, 1.0])?;
        let bandwidth = Bandwidth { rows: Some(&points), seed: 0 };
        match Learner::new(&self.kernel, &bandwidth)? {
            Some(learner) => Ok(learner.base().clone()),
            None => kernel::build_with(&self.kernel, &bandwidth),
        }
    }

    /// Returns the bytes that [`Fit::run`] will need for n rows of d columns, not counting the caller's own copy.
    pub fn memory(&self, n: usize, d: usize) -> Result<usize> {
        let (method, size) = (method::build(&self.method)?, self.size(n, d)?);
        let copied = Table::is_small(n, d) || method.holds_rows(&size) || size.reference_holds_rows();
        let rows = n.saturating_mul(if copied { 8 * (d + 2) } else { 16 });
        Ok(method.memory(&size).saturating_add(rows).saturating_add(THREAD_BUFFERS))
    }

    /// Returns the bytes that [`Fit::run_streamed`] will need for n rows of d columns if it may use `memory`: more than
    /// that if `memory` is too small for any fit.
    pub fn streamed_memory(&self, n: usize, d: usize, memory: usize) -> Result<usize> {
        if Table::is_small(n, d) {
            return self.sampled_memory(n, d);
        }
        let read = READ_BUFFERS.saturating_mul(d);
        Ok(read.saturating_add(if self.holds_rows(n, d)? {
            self.sampled_memory(self.sample_within(n, d, memory)?, d)?
        } else {
            self.memory(n.min(SAMPLED_ROWS), d)?
        }))
    }

    /// Returns whether the method keeps something per row in memory.
    pub(crate) fn holds_rows(&self, n: usize, d: usize) -> Result<bool> {
        Ok(method::build(&self.method)?.holds_rows(&self.size(n, d)?))
    }

    /// Returns the size of this fit.
    fn size(&self, n: usize, d: usize) -> Result<Size> {
        let support = match self.usual_target(n)? {
            Some(Target::Support(m)) => Some(m),
            _ => None,
        };
        let kernel = self.any_kernel()?;
        let linear = kernel.is_linear() && !conformal::is_unlearned(&self.kernel);
        Ok(Size { n, d, q: self.wanted(n), support, dimension: kernel.rank(d), linear })
    }

    /// Returns whether a fit needs labels; without them it is an error.
    pub fn labelled(&self) -> Result<bool> {
        Ok(self.needs_labels()?.is_some())
    }

    /// Returns whether features are centred; by default this follows the method's paper.
    pub fn centered(&self) -> Result<bool> {
        Ok(self.center.unwrap_or(!method::entry(&self.method)?.capabilities.uncentred))
    }

    /// Returns what needs labels, `"method"` or `"kernel"`, and its name.
    pub(crate) fn needs_labels(&self) -> Result<Option<(&'static str, &str)>> {
        Ok(if method::entry(&self.method)?.capabilities.labelled {
            Some(("method", &self.method.name))
        } else {
            conformal::is_unlearned(&self.kernel).then_some(("kernel", &self.kernel.name))
        })
    }
}
