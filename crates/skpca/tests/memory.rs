//! Compares the memory that a fit is predicted to need with the memory it allocates.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use skpca::method::METHODS;
use skpca::{Fit, Labels, Points, Spec, Target, toys};

/// The system allocator with counters of the memory allocated and of its peak.
struct Counting;

static TAKEN: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn taken(size: usize) {
    MOST.fetch_max(TAKEN.fetch_add(size, Ordering::Relaxed) + size, Ordering::Relaxed);
}

// SAFETY: every call is passed on to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        taken(layout.size());
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        taken(layout.size());
        // SAFETY: as the caller promised.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        TAKEN.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both allocations may exist while values are copied.
        taken(size);
        TAKEN.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the peak memory of a fit above what was allocated before.
fn peak(fit: &Fit, points: &Points, labels: &Labels) -> usize {
    let before = TAKEN.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let model =
        if fit.labelled().unwrap() { fit.run_labelled(points, labels, None, &()) } else { fit.run(points, None, &()) };
    model.unwrap_or_else(|error| panic!("{} {}: {error}", fit.method, fit.kernel));
    MOST.load(Ordering::Relaxed) - before
}

/// Slack for any fit: the working memory of threads, which only the first of many fits allocates.
const THREAD_BUFFERS: usize = 12_000_000;

/// The counters are those of the whole process, so tests must run one at a time.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn a_fit_needs_at_most_the_predicted_memory_and_at_least_half_of_it() {
    let _alone = ALONE.lock();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    for (n, d, m, kernel) in
        [(1200, 4, 30, "rbf"), (4500, 8, 50, "rbf"), (2000, 40, 25, "rbf"), (5000, 6, 30, "linear")]
    {
        let points = toys::normal(n, d, 0);
        let labels = Labels::new((0..n).map(|row| 3 * row / n)).unwrap();
        for entry in METHODS.iter().filter(|entry| entry.takes(&Spec::new(kernel))) {
            for target in [Target::Support(m), Target::Fidelity(0.6)] {
                let target = (!entry.capabilities.keeps_all_rows).then_some(target);
                let (method, kernel) = (Spec::new(entry.name), Spec::new(kernel));
                let fit = Fit { method, kernel, components: Some(5), target, ..Fit::default() };
                let stated = fit.memory(n, d).unwrap();
                let found = pool.install(|| peak(&fit, &points, &labels));
                let case =
                    format!("{n} × {d}, {} {} {target:?}: {stated} stated, {found} found", fit.method, fit.kernel);
                assert!(found <= stated, "{case}");
                assert!(stated <= 2 * found + THREAD_BUFFERS, "{case}");
            }
        }
    }
}

#[test]
fn large_tables_are_not_copied() {
    let _alone = ALONE.lock();
    let (n, d) = (400_000, 10);
    let points = toys::normal(n, d, 0);
    let labels = Labels::new((0..n).map(|row| row % 2)).unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    for method in ["landmarks", "greedy", "expansion"] {
        let target = Some(Target::Support(12));
        let fit = Fit { method: Spec::new(method), components: Some(5), target, ..Fit::default() };
        let (found, stated) = (pool.install(|| peak(&fit, &points, &labels)), fit.memory(n, d).unwrap());
        let case = format!("{method}: {stated} stated, {found} found, a copy takes {}", 8 * n * d);
        assert!(found <= stated, "{case}");
        // Fewer rows need as much memory: points are chosen from a sample.
        let few = toys::normal(n / 4, d, 0);
        let labels = Labels::new((0..n / 4).map(|row| row % 2)).unwrap();
        let fewer = pool.install(|| peak(&fit, &few, &labels));
        assert!(found < fewer + 8 * n, "{case}; {fewer} with a quarter of the rows");
    }
}
