//! A long fit: the threads compute, the caller waits, looks for Ctrl-C now and then, and tells Python where the fit is.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::prelude::*;
use skpca::{Error, Watch};

use crate::{threads, value_error};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// Where the fit is, and whether it should stop: all that the threads and the caller share.
#[derive(Default)]
struct Place {
    stage: Mutex<Option<(String, f64)>>,
    stop: AtomicBool,
}

impl Watch for Place {
    fn at(&self, stage: &str, fraction: f64) -> bool {
        // Whoever finds it locked need not tell: another one does.
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

/// What `fit` finds on our threads. An error of Ctrl-C or of `progress` stops it.
pub fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    fit: impl FnOnce(&dyn Watch) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let (place, mut raised) = (Place::default(), None);
    let (sender, mut receiver) = channel();
    let watch = &place;
    let fitted = threads::pool(py)?.in_place_scope(|scope| {
        // The sender goes along: a panic drops it, and whoever waits is told.
        scope.spawn(move |_| sender.send(fit(watch)).expect("the caller waits for it"));
        loop {
            let news;
            // There and back: a receiver belongs to one thread at a time.
            (receiver, news) = py.detach(move || {
                let news = receiver.recv_timeout(PAUSE);
                (receiver, news)
            });
            match news {
                Ok(fitted) => break Some(fitted),
                // A panic, which the scope passes on.
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

/// Handles signals, and tells `progress` where the fit is.
fn look(py: Python<'_>, progress: Option<&Py<PyAny>>, place: &Place) -> PyResult<()> {
    let unwound = Unwound;
    let reported = py.check_signals().and_then(|()| {
        let now = place.stage.lock().expect("nobody panics here").clone();
        match (progress, now) {
            (Some(progress), Some(now)) => progress.call1(py, now).map(|_| ()),
            _ => Ok(()),
        }
    });
    std::mem::forget(unwound);
    reported
}

/// Python code that we call may end the thread, if that is a daemon's and the interpreter exits: before version 3.14 by
/// unwinding the stack, which must not go on through us. The thread stays here instead, as those of 3.14 do.
struct Unwound;

impl Drop for Unwound {
    fn drop(&mut self) {
        loop {
            std::thread::park();
        }
    }
}
