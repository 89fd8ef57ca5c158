//! Thread pools, one set per process. A child of `fork` has the memory of its parent's pools but none of their threads,
//! and would wait for them forever: it creates new ones.
//!
//! A call with one thread runs on the calling thread. Otherwise callers on several threads, as in a Dask worker, would
//! wait for each other.

use std::cell::{Cell, OnceCell};
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

struct Pool {
    process: u32,
    threads: usize,
    /// Never dropped: dropping it would also wait for its threads.
    pool: &'static ThreadPool,
}

static POOLS: Mutex<Vec<Pool>> = Mutex::new(Vec::new());

/// Maximum number of threads; every number of threads has its own pool.
const MOST_THREADS: usize = 1024;

thread_local! {
    /// Number of threads that calls from this thread use.
    static THREADS: Cell<usize> = const { Cell::new(0) };
    /// A pool of this thread only, which does not depend on other threads after a fork.
    static ALONE: OnceCell<Option<ThreadPool>> = const { OnceCell::new() };
}

/// Sets the number of threads for calls from this thread; 0 is the default, one per core or `RAYON_NUM_THREADS`.
/// Returns the previous number.
#[pyfunction]
pub fn use_threads(number: usize) -> usize {
    THREADS.replace(number.min(MOST_THREADS))
}

/// Runs `work` on the threads that calls from this thread use. All code that may use threads must go through here.
pub fn install<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    if THREADS.get() != 1 {
        let pool = pool(py)?;
        return Ok(py.detach(|| pool.install(work)));
    }
    let alone = || ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().ok();
    Ok(py.detach(|| {
        ALONE.with(|pool| match pool.get_or_init(alone) {
            Some(pool) => pool.install(work),
            // This is already a pool thread, in a fit that asks Python for rows.
            None => work(),
        })
    }))
}

/// Returns the pool for calls from this thread.
///
/// The thread that holds the lock is attached to the interpreter, as is a thread that forks: no child finds it locked.
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
