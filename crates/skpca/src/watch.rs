//! Progress reports and cancellation of long fits.

use crate::error::{Error, Result};

/// Receives the progress of a fit and can stop it.
///
/// ```
/// use skpca::{Error, Fit, Watch, toys};
///
/// /// Stops a fit at its first report.
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
    /// Called when `stage` is `fraction` done (0 to 1). Returning `false` stops the fit.
    fn at(&self, stage: &str, fraction: f64) -> bool;
}

/// Ignores progress and never stops a fit.
impl Watch for () {
    fn at(&self, _: &str, _: f64) -> bool {
        true
    }
}

/// Stops a fit at its first report.
#[cfg(test)]
pub(crate) struct Impatient;

#[cfg(test)]
impl Watch for Impatient {
    fn at(&self, _: &str, _: f64) -> bool {
        false
    }
}

/// Reports to `watch`; its request to stop becomes [`Error::Interrupted`].
pub(crate) fn check(watch: &dyn Watch, stage: &str, fraction: f64) -> Result<()> {
    if watch.at(stage, fraction) { Ok(()) } else { Err(Error::Interrupted) }
}
