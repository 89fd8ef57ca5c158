//! `likelihood` against the paper's fixed point (14), in the same language, and against its own factorisation.
//!
//! ```text
//! cargo bench -p skpca --bench likelihood [-- TABLE.npy …]
//! ```
//!
//! Exact factor, uncentred, q = 10, σ² a twentieth of the largest useful one. Ours is the whole fit with its
//! certificate. The fixed point runs 2,000 iterations, on small tables all of them; on others a few are timed, and the
//! time of 2,000 is what they would take. Tables of more than 20,000 rows are fitted with rank 200 and held against the
//! factorisation.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark has a clock and files")]

use std::time::Instant;

use faer::Mat;
use skpca::{Factor, Fit, Model, Points, Scaling, Spec, Stop, kernel, toys};

#[allow(dead_code)]
#[path = "../tests/oracle/tipping.rs"]
mod oracle;
mod tables;

use oracle::{Oracle, Update};

const ITERATIONS: usize = 2000;
/// Iterations that are timed where all would take too long: on more rows than this.
const TIMED: usize = 5;
const SMALL: usize = 200;
const LARGE: usize = 20_000;

fn main() {
    let files = std::env::args().skip(1).filter(|argument| argument.ends_with(".npy"));
    let tables = files.map(|file| (tables::stem(&file), tables::read(&file)));
    for (name, points) in std::iter::once(("clusters".to_string(), toys::clusters(0))).chain(tables) {
        if points.n() > LARGE { against_factor(&name, &points) } else { against_fixed_point(&name, &points) }
    }
}

fn best(repeats: usize, fit: &Fit, points: &Points) -> (f64, Model) {
    let timed = || {
        let start = Instant::now();
        let model = fit.run(points, None, &()).expect("the benchmark's tables can be fitted");
        (start.elapsed().as_secs_f64(), model)
    };
    (0..repeats).map(|_| timed()).min_by(|a, b| a.0.total_cmp(&b.0)).expect("at least one repeat")
}

fn against_fixed_point(name: &str, points: &Points) {
    let method = Spec::new("likelihood").with("fraction", 0.05).with("rank", points.n());
    let fit = Fit { method, components: Some(10), scaling: Scaling::None, ..Fit::default() };
    let (ours, model) = best(3, &fit, points);
    let density = model.parts().density.as_ref().expect("the method has one");
    let k = {
        let kernel = kernel::build(&model.parts().kernel, points, 0).expect("a kernel");
        Mat::from_fn(points.n(), points.n(), |i, j| kernel.eval(points.row(i), points.row(j)))
    };
    let mut oracle = Oracle::new(k, density.noise);
    let all = points.n() <= SMALL;
    let iterations = if all { ITERATIONS } else { TIMED };
    let start = Instant::now();
    (0..iterations).for_each(|_| oracle.step(Update::FixedPoint));
    let theirs = start.elapsed().as_secs_f64() * (ITERATIONS / iterations) as f64;
    let constant = density.dimension as f64 * (std::f64::consts::TAU * density.noise).ln();
    let objective = model.parts().report.objective.expect("the method has one");
    let likelihood = points.n() as f64 * (objective + 0.5 * constant);
    println!(
        "{name} {}×{}: {} points, ours {:.0} ms, violation {:.0e}; {ITERATIONS} iterations of (14) {:.1} s{}: {:.0}×{}",
        points.n(),
        points.d(),
        model.m(),
        1e3 * ours,
        model.parts().report.gap.unwrap_or(f64::NAN),
        theirs,
        if all { "" } else { " (from 5)" },
        theirs / ours,
        if all { format!(", ours is {:.2e} above", likelihood - oracle.likelihood()) } else { String::new() },
    );
}

fn against_factor(name: &str, points: &Points) {
    let rank = 200;
    let kernel = kernel::build(&Spec::new("rbf"), points, 0).expect("a kernel");
    let method = Spec::new("likelihood").with("fraction", 0.05).with("rank", rank);
    let fit = Fit { method, components: Some(10), scaling: Scaling::None, ..Fit::default() };
    let mut factor = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        let stop = Stop { rank, residual: 0.0 };
        std::hint::black_box(Factor::pivoted(&kernel, points, stop, 0, &()).expect("a factor"));
        factor = factor.min(start.elapsed().as_secs_f64());
    }
    let (ours, model) = best(5, &fit, points);
    println!(
        "{name} {}×{}: rank {rank}, {} points {:.0} ms, the factorisation alone {:.0} ms: {:.1}×",
        points.n(),
        points.d(),
        model.m(),
        1e3 * ours,
        1e3 * factor,
        ours / factor
    );
}
