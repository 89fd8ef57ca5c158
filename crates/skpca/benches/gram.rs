//! Kernel values a second in the hot loop, and which share of the arithmetic limit that is.
//!
//! ```text
//! cargo bench -p skpca --bench gram
//! ```
//!
//! A value costs d multiply-adds for its inner product, q for the components and a polynomial for 2^x: 10 in 64 bits, 6
//! in
//! 32. The limit is what the same tiles do when they do nothing but multiply-adds. Best of several passes, all threads.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark has a clock")]

use std::sync::Arc;
use std::time::Instant;

use faer::Mat;
use skpca::{Basis, Level, Points, Precision, Spec, kernel, multiply_adds};

const POINTS: usize = 5000;
const QUERIES: usize = 10_000;
const COMPONENTS: usize = 10;
const PASSES: usize = 15;

fn main() {
    for (precision, polynomial) in [(Precision::Double, 10), (Precision::Single, 6)] {
        let mut rate = 0.0_f64;
        for _ in 0..PASSES {
            let start = Instant::now();
            let done = multiply_adds(precision, Level::Auto, 100_000).expect("this machine has it");
            rate = rate.max(done as f64 / start.elapsed().as_secs_f64());
        }
        println!("{precision:?}: {:.1} G multiply-adds/s", rate / 1e9);
        for d in [2, 10, 54, 784] {
            let values = values_a_second(d, precision);
            let share = values * (d + COMPONENTS + polynomial) as f64 / rate;
            println!("  d = {d:>3}: {:.3} G kernel values/s, {:.0} % of the limit", values / 1e9, 100.0 * share);
        }
    }
}

fn values_a_second(d: usize, precision: Precision) -> f64 {
    let (z, x) = (waves(POINTS, d, 0.37), waves(QUERIES, d, 0.73));
    let kernel = kernel::build(&Spec::new("rbf"), &z, 0).expect("a kernel");
    let basis = Basis::new(Arc::clone(&kernel), z);
    let weights = basis.weights(Mat::from_fn(POINTS, COMPONENTS, |i, c| ((i * (c + 1)) as f64).sin()));
    let mut best = f64::INFINITY;
    for _ in 0..PASSES {
        let start = Instant::now();
        std::hint::black_box(basis.product(&x, &weights, precision));
        best = best.min(start.elapsed().as_secs_f64());
    }
    (POINTS * QUERIES) as f64 / best
}

fn waves(n: usize, d: usize, step: f64) -> Points<'static> {
    let values: Vec<f64> = (0..n * d).map(|i| (step * (i * i % 100_003) as f64).sin()).collect();
    Points::new(d, values).expect("finite")
}
