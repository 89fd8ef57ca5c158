//! Threads of our own, a pool per process. A child of `fork` has the memory of its parent's pool but none of its threads,
//! and would wait for them for ever: it makes a new one.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// The pool, and the process that made it. Never dropped: that would wait for its threads too.
static POOL: Mutex<Option<(u32, &'static ThreadPool)>> = Mutex::new(None);

/// The pool of this process: `RAYON_NUM_THREADS` threads, or one per core.
///
/// Whoever has the lock is attached to the interpreter, as is whoever forks: no child finds it locked.
pub fn pool(_attached: Python<'_>) -> PyResult<&'static ThreadPool> {
    let mut known = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((maker, pool)) = *known
        && maker == process
    {
        return Ok(pool);
    }
    let builder = ThreadPoolBuilder::new().thread_name(|i| format!("skpca-{i}"));
    let pool = builder.build().map_err(|error| PyRuntimeError::new_err(format!("no threads: {error}")))?;
    let pool: &'static ThreadPool = Box::leak(Box::new(pool));
    *known = Some((process, pool));
    Ok(pool)
}
