//! How a long fit tells where it is, and learns that it should stop.

use crate::error::{Error, Result};

/// Sees the stages of a fit pass by.
///
/// ```
/// use skpca::{Error, Fit, Watch, toys};
///
/// /// Ends a fit as soon as it says where it is.
/// struct Impatient;
///
/// impl Watch for Impatient {
///     fn at(&self, _stage: &str, _fraction: f64) -> bool {
///         false
///     }
/// }
///
/// let stopped = Fit::default().run(&toys::parabola(0), None, &Impatient);
/// assert_eq!(stopped.err(), Some(Error::Interrupted));
/// ```
pub trait Watch: Sync {
    /// `stage` is `fraction` done (0 to 1); `false` asks the fit to stop.
    fn at(&self, stage: &str, fraction: f64) -> bool;
}

/// Watches nothing.
impl Watch for () {
    fn at(&self, _: &str, _: f64) -> bool {
        true
    }
}

/// Asks to stop at once.
#[cfg(test)]
pub(crate) struct Impatient;

#[cfg(test)]
impl Watch for Impatient {
    fn at(&self, _: &str, _: f64) -> bool {
        false
    }
}

/// Tells `watch`, and turns its request to stop into the error that ends the fit.
pub(crate) fn check(watch: &dyn Watch, stage: &str, fraction: f64) -> Result<()> {
    if watch.at(stage, fraction) { Ok(()) } else { Err(Error::Interrupted) }
}
