//! What a fit says that it will need of memory, against what it takes.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use skpca::method::METHODS;
use skpca::{Fit, Labels, Points, Spec, Target, toys};

/// The system's allocator, which counts what is taken and the most that was taken at a time.
struct Counting;

static TAKEN: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn taken(size: usize) {
    MOST.fetch_max(TAKEN.fetch_add(size, Ordering::Relaxed) + size, Ordering::Relaxed);
}

// SAFETY: the system's allocator does all there is to do.
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
        // Both may be there while values are copied.
        taken(size);
        TAKEN.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most that a fit takes beside what there was before it.
fn peak(fit: &Fit, points: &Points, labels: &Labels) -> usize {
    let before = TAKEN.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let model =
        if fit.labelled().unwrap() { fit.run_labelled(points, labels, None, &()) } else { fit.run(points, None, &()) };
    model.unwrap_or_else(|error| panic!("{} {}: {error}", fit.method, fit.kernel));
    MOST.load(Ordering::Relaxed) - before
}

/// What may be stated too much whatever the fit: what threads work in, taken once by the first of many.
const ROOM: usize = 12_000_000;

/// What is counted is counted for the whole process: one at a time.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn a_fit_takes_no_more_than_it_says_and_at_least_half_of_that() {
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
                assert!(stated <= 2 * found + ROOM, "{case}");
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
        // Fewer rows take as much: what is chosen from is a sample.
        let few = toys::normal(n / 4, d, 0);
        let labels = Labels::new((0..n / 4).map(|row| row % 2)).unwrap();
        let fewer = pool.install(|| peak(&fit, &few, &labels));
        assert!(found < fewer + 8 * n, "{case}; {fewer} with a quarter of the rows");
    }
}
