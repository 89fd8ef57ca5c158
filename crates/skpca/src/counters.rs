//! Counters for tests: how often methods and kernels are built, and how many numbers are checked for NaN.

use std::cell::Cell;

/// The counts of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    pub methods: usize,
    pub kernels: usize,
    pub numbers: usize,
}

thread_local! {
    static COUNTS: Cell<Counts> = Cell::default();
}

/// Adds to the counts of this thread.
pub(crate) fn count(add: impl FnOnce(&mut Counts)) {
    let mut counts = COUNTS.get();
    add(&mut counts);
    COUNTS.set(counts);
}

/// Runs `work` on a pool of one thread and returns its result and the counts.
pub(crate) fn counted<T: Send>(work: impl FnOnce() -> T + Send) -> (T, Counts) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    pool.install(|| {
        COUNTS.set(Counts::default());
        let value = work();
        (value, COUNTS.get())
    })
}
