//! Long fits: the pool computes; the calling thread waits, checks for Ctrl-C and reports progress to Python.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::prelude::*;
use skpca::{Error, Watch};

use crate::{threads, value_error};

/// Interval between checks.
const PAUSE: Duration = Duration::from_millis(100);

/// Progress of the fit, and whether it should stop: the state shared by the pool and the caller.
#[derive(Default)]
struct Place {
    stage: Mutex<Option<(String, f64)>>,
    stop: AtomicBool,
}

impl Watch for Place {
    fn at(&self, stage: &str, fraction: f64) -> bool {
        // If it is locked, another thread is reporting: skip this report.
        if let Ok(mut place) = self.stage.try_lock() {
            let (name, share) = place.get_or_insert_default();
            if name != stage {
                stage.clone_into(name);
            }
            *share = fraction;
        }
        !self.stop.load(Ordering::Relaxed)
    }
}

/// Runs `fit` on the thread pool. Ctrl-C or an exception in `progress` stops it.
pub fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    fit: impl FnOnce(&dyn Watch) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let (place, mut raised) = (Place::default(), None);
    let (sender, mut receiver) = channel();
    let watch = &place;
    let fitted = threads::pool(py)?.in_place_scope(|scope| {
        // The closure owns the sender: a panic drops it, which the receiver notices.
        scope.spawn(move |_| sender.send(fit(watch)).expect("the caller waits for it"));
        loop {
            let news;
            // The receiver is moved in and back out, because it is not `Sync`.
            (receiver, news) = py.detach(move || {
                let news = receiver.recv_timeout(PAUSE);
                (receiver, news)
            });
            match news {
                Ok(fitted) => break Some(fitted),
                // A panic, which the scope propagates.
                Err(RecvTimeoutError::Disconnected) => break None,
                Err(RecvTimeoutError::Timeout) if raised.is_some() => {}
                Err(RecvTimeoutError::Timeout) => {
                    raised = look(py, progress.as_ref(), &place).err();
                    place.stop.store(raised.is_some(), Ordering::Relaxed);
                }
            }
        }
    });
    match (raised, fitted) {
        (Some(error), _) => Err(error),
        (None, fitted) => fitted.expect("no panic has come this far").map_err(value_error),
    }
}

/// Handles signals and calls `progress`.
fn look(py: Python<'_>, progress: Option<&Py<PyAny>>, place: &Place) -> PyResult<()> {
    let unwound = Unwound;
    let reported = py.check_signals().and_then(|()| {
        let now = place.stage.lock().expect("no code panics while holding the lock").clone();
        match (progress, now) {
            (Some(progress), Some(now)) => progress.call1(py, now).map(|_| ()),
            _ => Ok(()),
        }
    });
    std::mem::forget(unwound);
    reported
}

/// Python code called from a daemon thread may end the thread when the interpreter exits: before version 3.14 by
/// unwinding the stack, which must not continue through Rust. The thread hangs here instead, as in 3.14.
struct Unwound;

impl Drop for Unwound {
    fn drop(&mut self) {
        loop {
            std::thread::park();
        }
    }
}
