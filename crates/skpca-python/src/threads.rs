//! Threads of our own, pools per process. A child of `fork` has the memory of its parent's pools but none of their
//! threads, and would wait for them for ever: it makes new ones.
//!
//! Whoever asks for one thread has it: the caller's own. Callers on several threads, as in a worker of Dask, would
//! otherwise wait for each other.

use std::cell::{Cell, OnceCell};
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

struct Pool {
    process: u32,
    threads: usize,
    /// Never dropped: that would wait for its threads too.
    pool: &'static ThreadPool,
}

static POOLS: Mutex<Vec<Pool>> = Mutex::new(Vec::new());

/// More than these are never of use, and every number has a pool of its own.
const MOST_THREADS: usize = 1024;

thread_local! {
    /// How many threads calls from this thread use.
    static THREADS: Cell<usize> = const { Cell::new(0) };
    /// A pool of this thread alone: no other has to survive a fork.
    static ALONE: OnceCell<Option<ThreadPool>> = const { OnceCell::new() };
}

/// Calls from this thread use so many threads from now on; 0 is the default, one per core or `RAYON_NUM_THREADS`.
/// Returns how many they used before.
#[pyfunction]
pub fn use_threads(number: usize) -> usize {
    THREADS.replace(number.min(MOST_THREADS))
}

/// Does `work` on the threads that calls from this thread use. Whatever may use threads goes through here.
pub fn install<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    if THREADS.get() != 1 {
        let pool = pool(py)?;
        return Ok(py.detach(|| pool.install(work)));
    }
    let alone = || ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().ok();
    Ok(py.detach(|| {
        ALONE.with(|pool| match pool.get_or_init(alone) {
            Some(pool) => pool.install(work),
            // A thread of a pool of ours, in the middle of a fit that asks Python for rows.
            None => work(),
        })
    }))
}

/// The pool for calls from this thread.
///
/// Whoever has the lock is attached to the interpreter, as is whoever forks: no child finds it locked.
pub fn pool(_attached: Python<'_>) -> PyResult<&'static ThreadPool> {
    let (process, threads) = (std::process::id(), THREADS.get());
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = pools.iter().find(|known| (known.process, known.threads) == (process, threads)) {
        return Ok(known.pool);
    }
    let builder = ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("skpca-{i}"));
    let pool = builder.build().map_err(|error| PyRuntimeError::new_err(format!("no threads: {error}")))?;
    let pool: &'static ThreadPool = Box::leak(Box::new(pool));
    pools.retain(|known| known.process == process);
    pools.push(Pool { process, threads, pool });
    Ok(pool)
}
