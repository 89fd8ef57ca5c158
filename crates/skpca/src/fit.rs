//! What to fit: method, kernel, target and the numbers around them.

use std::sync::Arc;

use crate::columns::{Scaling, Table};
use crate::conformal::Learner;
use crate::error::{Error, Result};
use crate::kernel::{self, Bandwidth, Kernel, conformal};
use crate::method::{self, COMPONENTS, Method, Size, Target};
use crate::points::Points;
use crate::simd::Level;
use crate::spec::Spec;

/// Bytes that any fit takes: what threads work in.
const ROOM: usize = 10_000_000;

/// What to fit.
///
/// ```
/// use skpca::{Fit, Points, Precision, Target};
///
/// let circle = (0..200).flat_map(|i| [(i as f64).cos(), (i as f64).sin()]).collect::<Vec<_>>();
/// let points = Points::new(2, circle)?;
/// let model = Fit { target: Some(Target::Support(20)), ..Fit::default() }.run(&points, None, &())?;
/// let scores = model.score(&Points::new(2, vec![1.0, 0.0, 3.0, 3.0])?, Precision::Double)?;
/// assert!(scores[0] < model.parts().scores.threshold && scores[1] > model.parts().scores.threshold);
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// How the support is chosen.
    pub method: Spec,
    /// Inner products in feature space.
    pub kernel: Spec,
    /// Number of components; 10, or the rank if that is lower, by default.
    pub components: Option<usize>,
    /// How small, or how good; a fidelity of 0.95 by default.
    pub target: Option<Target>,
    /// Whether features are centred; by default, as in the method's paper.
    pub center: Option<bool>,
    /// How columns are scaled.
    pub scaling: Scaling,
    /// Share of the training rows below the novelty threshold.
    pub quantile: f64,
    /// Everything random depends on it and on nothing else.
    pub seed: u64,
    /// Which instructions kernel values are computed with.
    pub level: Level,
}

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
            seed: 0,
            level: Level::Auto,
        }
    }
}

impl Fit {
    /// Refuses what cannot be meant.
    pub fn check(&self) -> Result<()> {
        self.built()?;
        self.any_kernel().map(drop)
    }

    /// The method, once all but the kernel is known to be sound: that may need the rows.
    pub(crate) fn built(&self) -> Result<Box<dyn Method>> {
        let method = method::build(&self.method)?;
        self.level.instructions()?;
        if self.components == Some(0) {
            return Err(Error::parameter("components", 0, "a whole number from 1"));
        }
        match self.target {
            Some(Target::Support(0)) => return Err(Error::parameter("support", 0, "a whole number from 1")),
            Some(Target::Fidelity(f)) if !(f > 0.0 && f <= 1.0) => {
                return Err(Error::parameter("fidelity", f, "a number above 0 and up to 1"));
            }
            _ => {}
        }
        if self.quantile > 0.0 && self.quantile < 1.0 {
            return Ok(method);
        }
        Err(Error::parameter("quantile", self.quantile, "a number between 0 and 1"))
    }

    /// The kernel over any two points: they will do to see whether its name and parameters are known.
    fn any_kernel(&self) -> Result<Arc<dyn Kernel>> {
        let points = Points::new(1, vec![0.0, 1.0])?;
        let bandwidth = Bandwidth { rows: Some(&points), seed: 0 };
        match Learner::new(&self.kernel, &bandwidth)? {
            Some(learner) => Ok(learner.base().clone()),
            None => kernel::build_with(&self.kernel, &bandwidth),
        }
    }

    /// Bytes that [`Fit::run`] will need for n rows of d columns beside the caller's own copy.
    pub fn memory(&self, n: usize, d: usize) -> Result<usize> {
        let support = match self.target {
            Some(Target::Support(m)) => Some(m),
            _ => None,
        };
        let kernel = self.any_kernel()?;
        let linear = kernel.is_linear() && !conformal::is_unlearned(&self.kernel);
        let dimension = kernel.rank(d);
        let size = Size { n, d, q: self.components.unwrap_or(COMPONENTS).min(n), support, dimension, linear };
        let method = method::build(&self.method)?;
        let copied = Table::is_small(n, d) || method.holds_rows(&size) || size.reference_holds_rows();
        let rows = n.saturating_mul(if copied { 8 * (d + 2) } else { 16 });
        Ok(method.memory(&size).saturating_add(rows).saturating_add(ROOM))
    }

    /// Whether a fit looks at labels: it is refused without them.
    pub fn labelled(&self) -> Result<bool> {
        Ok(self.needs_labels()?.is_some())
    }

    /// Whether features are centred: by default, as in the method's paper.
    pub fn centered(&self) -> Result<bool> {
        Ok(self.center.unwrap_or(!method::entry(&self.method)?.capabilities.uncentred))
    }

    /// What of a fit looks at labels, method or kernel, and its name.
    pub(crate) fn needs_labels(&self) -> Result<Option<(&'static str, &str)>> {
        Ok(if method::entry(&self.method)?.capabilities.labelled {
            Some(("method", &self.method.name))
        } else {
            conformal::is_unlearned(&self.kernel).then_some(("kernel", &self.kernel.name))
        })
    }
}
