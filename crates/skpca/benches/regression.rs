//! `l1` and `l21` against the papers' own ADMM, in the same language, to the same objective.
//!
//! ```text
//! cargo bench -p skpca --bench regression [-- [--whole | --path] TABLE.npy …]
//! ```
//!
//! Both solve the same convex problem: P fixed at the leading eigenvectors, exact kernel, centred, q = 10, ridge 10⁻³
//! of the largest eigenvalue. ADMM runs from scratch with 50, 100, 200, … iterations until it is within 10⁻⁶ of our
//! objective; the time of that run alone counts, with its two eigendecompositions. Ours is the whole fit: bandwidth,
//! eigenvectors, solution with its certificate over all rows, refit, fidelity and training scores. Both have one
//! thread. With `--whole` ADMM takes 5000 iterations, unless both of its residuals are below 10⁻⁸ before, and the
//! question is whose objective is lower. With `--path` there is no ADMM: a path of 20 penalties is held against a fit
//! at the last of them, on two threads.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark has a clock and files")]

use std::time::Instant;

use faer::Mat;
use skpca::{Factor, Fit, Points, Scaling, Spec, Stop, Target, kernel, toys};

#[allow(dead_code)]
#[path = "../tests/oracle/mod.rs"]
mod oracle;
mod tables;

use oracle::{Answer, Dual, Setting};

const Q: usize = 10;
/// Iterations after which ADMM is given up.
const MOST: usize = 3200;
/// Iterations, and residuals, of a whole run.
const WHOLE: (usize, f64) = (5000, 1e-8);
/// From so many rows on a fit is compared with its own factorisation.
const LARGE: usize = 20_000;
/// Columns that a factor has by default above 1,000 rows …
const RANK: usize = 500;
/// … and up to which a whole one is made for a path.
const WHOLE_RANK: usize = 4000;
/// Objectives this near (as a share) are the same: the duality gap that ours is asked for.
const SAME: f64 = 1e-6;

fn main() {
    let asked = |flag: &str| std::env::args().any(|argument| argument == flag);
    let whole = asked("--whole");
    let files = std::env::args().skip(1).filter(|argument| argument.ends_with(".npy"));
    let tables = files.map(|file| (tables::stem(&file), tables::read(&file)));
    let tables = std::iter::once(("parabola".to_string(), toys::parabola(0))).chain(tables);
    if asked("--path") {
        tables.for_each(|(name, points)| paths(&name, &points));
        return;
    }
    println!(
        "{:<34} {:>4} {:>9} {:>6} {:>9} {:>10} {:>5} {:>9} {:>7}",
        "", "λ/max", "ours", "points", "gap", "ADMM", "steps", "objective", "ratio"
    );
    for (name, points) in tables {
        if points.n() > LARGE {
            against_factor(&name, &points);
            continue;
        }
        let theirs = Prepared::new(&points);
        for method in ["l21", "l1"] {
            for share in [0.5, 0.1, 0.02] {
                compare(&name, &points, method, share, &theirs, whole);
            }
        }
    }
}

/// Larger tables have no n × n matrix to run ADMM on: the fit is held against its own factorisation.
fn against_factor(name: &str, points: &Points) {
    let rank = 200;
    let kernel = kernel::build(&Spec::new("rbf"), points, 0).expect("a kernel");
    let method = Spec::new("l21").with("rank", rank);
    let (scaling, target) = (Scaling::None, Some(Target::Support(50)));
    let fit = Fit { method, components: Some(Q), target, scaling, ..Fit::default() };
    let (mut factor, mut ours) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..5 {
        let start = Instant::now();
        let stop = Stop { rank, residual: 0.0 };
        std::hint::black_box(Factor::pivoted(&kernel, points, stop, 0, &()).expect("a factor"));
        factor = factor.min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        std::hint::black_box(fit.run(points, None, &()).expect("a model"));
        ours = ours.min(start.elapsed().as_secs_f64());
    }
    let size = format!("{}×{}", points.n(), points.d());
    println!(
        "{name} {size}: l21, rank {rank}, 50 points {:.0} ms, the factorisation alone {:.0} ms: {:.1}×",
        1e3 * ours,
        1e3 * factor,
        ours / factor
    );
}

/// From a strong penalty to a weak one, each from where the one before ended, against the weak one alone: factor,
/// eigenvectors and all.
fn paths(name: &str, points: &Points) {
    let shares: Vec<f64> = (0..20).map(|i| 0.9 * (0.02_f64 / 0.9).powf(f64::from(i) / 19.0)).collect();
    let size = format!("{name} {}×{}", points.n(), points.d());
    let mut ranks = vec![RANK.min(points.n()), points.n()];
    ranks.dedup();
    for rank in ranks.into_iter().filter(|rank| *rank <= WHOLE_RANK) {
        for method in ["l21", "l1", "elastic-net"] {
            for alternations in [0, 500] {
                let spec = Spec::new(method).with("alternations", alternations).with("rank", rank);
                let fit = Fit { method: spec, components: Some(Q), scaling: Scaling::None, ..Fit::default() };
                let timed = |shares: &[f64]| {
                    let start = Instant::now();
                    let steps = fit.path(points, shares, &()).expect("the benchmark's tables can be fitted");
                    (start.elapsed().as_secs_f64(), steps)
                };
                let (mut alone, mut path, mut steps) = (f64::INFINITY, f64::INFINITY, Vec::new());
                for _ in 0..3 {
                    alone = alone.min(timed(&shares[19..]).0);
                    let (seconds, found) = timed(&shares);
                    (path, steps) = (path.min(seconds), found);
                }
                println!(
                    "{size} {method}, rank {rank}, {alternations} alternations: {:.0} ms for 20 penalties, {} to {} points, \
                     {:.0} ms for the last alone: {:.1}×",
                    1e3 * path,
                    steps[0].rows.len(),
                    steps[19].rows.len(),
                    1e3 * alone,
                    path / alone
                );
            }
        }
    }
}

/// What ADMM starts from, and how long that took.
struct Prepared {
    setting: Setting,
    seconds: f64,
}

impl Prepared {
    fn new(points: &Points) -> Prepared {
        let start = Instant::now();
        let kernel = kernel::build(&Spec::new("rbf"), points, 0).expect("a kernel");
        let k = Mat::from_fn(points.n(), points.n(), |i, j| kernel.eval(points.row(i), points.row(j)));
        let mut setting = Setting::new(k.as_ref(), true, Q);
        setting.dual = Dual::Plain;
        Prepared { setting, seconds: start.elapsed().as_secs_f64() }
    }

    /// Its answer after so many iterations, and the time of all of it.
    fn run(&self, method: &str, ridge: f64, penalty: f64, (iterations, tolerance): (usize, f64)) -> (Answer, f64) {
        let start = Instant::now();
        let answer = match method {
            "l21" => oracle::l21(&self.setting, ridge, penalty, 1.0, 1, iterations, tolerance),
            _ => oracle::l1_together(&self.setting, ridge, penalty, 1.0, iterations, tolerance),
        };
        (answer, self.seconds + start.elapsed().as_secs_f64())
    }
}

fn compare(name: &str, points: &Points, method: &str, share: f64, prepared: &Prepared, whole: bool) {
    let spec =
        Spec::new(method).with("alternations", 0).with("fraction", share).with("rank", points.n()).with("refit", true);
    let fit = Fit { method: spec, components: Some(Q), scaling: Scaling::None, ..Fit::default() };
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    let mut ours = f64::INFINITY;
    let mut model = None;
    for _ in 0..if whole { 1 } else { 3 } {
        let start = Instant::now();
        model = Some(alone.install(|| fit.run(points, None, &())).expect("the benchmark's tables can be fitted"));
        ours = ours.min(start.elapsed().as_secs_f64());
    }
    let model = model.expect("fits were made");
    let (report, parameters) = (&model.parts().report, &model.parts().method.fields);
    let number = |field: &str| parameters[field].as_f64().expect("a number");
    let objective = report.objective.expect("the method has one");
    let run = |effort| prepared.run(method, number("ridge"), number("penalty"), effort);

    let (answer, theirs) = if whole {
        run(WHOLE)
    } else {
        let mut iterations = 50;
        loop {
            let (answer, theirs) = run((iterations, 1e-12));
            if answer.objective <= objective * (1.0 + SAME) || iterations >= MOST {
                break (answer, theirs);
            }
            iterations *= 2;
        }
    };
    println!(
        "{:<34} {share:>4} {:>7.0}ms {:>6} {:>9.1e} {:>8.0}ms {:>5} {:>9.1e} {:>6.1}×",
        format!("{name} {}×{} {method}", points.n(), points.d()),
        1e3 * ours,
        model.m(),
        report.gap.unwrap_or(f64::NAN),
        1e3 * theirs,
        answer.iterations,
        answer.objective / objective - 1.0,
        theirs / ours
    );
}
