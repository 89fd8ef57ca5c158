//! Free expansion vectors (Li & Gao 2011): the points themselves are moved until their span captures most.
//!
//! ```text
//! W(Z) = Σ_{k ≤ q} λ_k,   C b = λ K_zz b,  bᵀK_zz b = 1,   C = Σ_j (k_z(x_j) − μ)(k_z(x_j) − μ)ᵀ
//! ∂W/∂z_i = 2 Σ_j (Σ_k b_ik y_jk) ∂k(z_i, x_j) − 2 Σ_l (Σ_k λ_k b_ik b_lk) ∂k(z_i, z_l),   y_jk = b_kᵀ(k_z(x_j) − μ)
//! ```
//!
//! A conformal kernel f(x) f(z) k(x, z) needs f at the rows and the gradient of k alone: W depends on the span of Z, which the
//! length f(z) of a vector does not change.
//!
//! L-BFGS from the points that `greedy` chooses, and from k-means centres where restarts are asked for; every step raises W. (Centres
//! often capture more at first and less in the end: docs/decisions/0014.) With many rows it sees a sample of them, in choosing the
//! start and in moving, and the components are those of all rows in the end: nothing larger than the data is ever made. A limited-memory method of our own, fifty lines: the crates that have one want
//! the problem in their own vector types and cannot be interrupted between evaluations.

use std::sync::Arc;

use faer::Mat;

use super::greedy::{CANDIDATES, CANDIDATES_A_POINT, Choice};
use super::shared::Principal;
use super::{DEPENDENT, Entry, Method, Report, Size, Solution, Support, Target, Task, usual_rank};
use super::{kmeans, search};
use crate::blocks;
use crate::dense::{self, dot};
use crate::error::Result;
use crate::factor;
use crate::gram::{self, Basis, Precision};
use crate::kernel::Kernel;
use crate::points::Points;
use crate::random::Random;
use crate::spec::Spec;
use crate::spectrum::{Expansion, Span};
use crate::watch::{Watch, check};

/// Rows that are seen while points move.
const ROWS: usize = 2000;
/// Steps of L-BFGS at most.
const STEPS: usize = 200;
/// It ends when so many steps together raise W by less than this share.
const PATIENCE: usize = 5;
const RISE: f64 = 1e-5;
/// Steps that the curvature is remembered of.
const MEMORY: usize = 10;
/// Halvings of a step before it is given up.
const HALVINGS: usize = 20;
/// The first step moves a coordinate by this much of its column's spread, at most.
const FIRST: f64 = 0.1;
/// Points stay apart by this much, as far as they were: W has about as many digits as this leaves of sixteen.
const APART: f64 = 1e-8;
/// Passes of exchanges of the points it starts from.
const EXCHANGES: usize = 5;

pub(super) const ENTRY: Entry = Entry {
    name: "expansion",
    summary: "points that are moved until their span captures most: the smallest models",
    source: "Li & Gao 2011",
    parameters: {
        use crate::parameter::Parameter;
        &[
            Parameter::count("steps", 0, STEPS, "steps of the optimiser at most").as_sklearn("max_iter"),
            Parameter::count("restarts", 0, 0, "more starts, from other k-means centres; the best is kept"),
            Parameter::count("rows", 2, ROWS, "rows that are seen while points move"),
            super::parameters::RANK,
        ]
    },
    capabilities: super::Capabilities { synthetic_points: true, ..super::Capabilities::NONE },
    build: |fields| {
        Ok(Box::new(Free {
            steps: fields.count("steps")?,
            restarts: fields.count("restarts")?,
            rows: fields.count("rows")?,
            rank: fields.optional_count("rank")?,
        }))
    },
};

#[derive(Debug)]
struct Free {
    steps: usize,
    rows: usize,
    restarts: usize,
    rank: Option<usize>,
}

impl Method for Free {
    fn fit(&self, task: &mut Task) -> Result<Solution> {
        let task = &*task;
        let n = task.points.n();
        let m = if let Some(Target::Support(m)) = task.target { m } else { 0 };
        // Few rows are the task itself: what its factor knows of exact kernel PCA is then not found again.
        let seen = Random::new(task.seed, 16).sample(n, CANDIDATES.max(CANDIDATES_A_POINT * m));
        let seen = if seen.len() < n { Some(task.points.select(&seen)) } else { None };
        let part = seen.as_ref().map(|points| task.on(points));
        let part = part.as_ref().unwrap_or(task);
        let principal = part.principal(usual_rank(self.rank, part.points.n(), task.target))?;
        let Principal { factor, values } = &*principal;
        let rank = factor.rank();
        let leading = task.q.min(values.len());
        let start = Choice::new(part, factor, &values[..leading], m, EXCHANGES);
        let rows = Random::new(task.seed, 19).sample(n, self.rows.max(10 * m));
        let problem = Problem::new(task.kernel, task.points.select(&rows), task.q, task.center);
        let search = Search { method: self, task, start, problem, spanning: part.points.select(&factor.pivots) };
        let moved = match task.aim() {
            Target::Fidelity(fidelity) => search.smallest(fidelity)?,
            Target::Support(_) => search.moved(m)?,
        };
        let seen = search.problem.x.n();
        let note = (seen < n && moved.steps > 0).then(|| format!("points were moved on {seen} of {n} rows"));
        let report = Report {
            notes: note.into_iter().collect(),
            objective: Some(moved.expansion.captured / n as f64),
            rounds: moved.steps,
            converged: moved.converged,
            ..Report::default()
        };
        Ok(Solution {
            method: Spec::new("expansion")
                .with("steps", self.steps)
                .with("rows", self.rows)
                .with("restarts", self.restarts)
                .with("rank", rank),
            support: Support::Points(moved.support),
            expansion: moved.expansion,
            density: None,
            fidelity: None,
            fewer: DEPENDENT,
            report,
        })
    }

    fn memory(&self, size: &Size) -> usize {
        let m = size.support.unwrap_or(2 * size.q).min(size.n);
        let seen = size.n.min(CANDIDATES.max(CANDIDATES_A_POINT * m));
        let rank = usual_rank(self.rank, seen, size.support.map(Target::Support)).min(size.dimension);
        let start = seen * (4 * rank + size.d) + 6 * rank * rank;
        8 * (2 * size.n + start + self.rows.max(10 * m) * size.d + m * (30 * size.d + 8 * m))
    }
}

/// Points where they came to rest.
struct Moved {
    support: Points<'static>,
    expansion: Expansion,
    steps: usize,
    converged: bool,
}

/// Where W stopped rising on the rows that were seen.
struct Summit {
    points: Points<'static>,
    captured: f64,
    steps: usize,
    converged: bool,
}

struct Search<'a> {
    method: &'a Free,
    task: &'a Task<'a>,
    start: Choice<'a>,
    problem: Problem<'a>,
    /// Rows that span everything.
    spanning: Points<'static>,
}

impl Search<'_> {
    /// `m` points: from the best rows, then from centres of all rows, as often as asked for.
    fn moved(&self, m: usize) -> Result<Moved> {
        if m >= self.spanning.n() {
            // There is nothing to gain.
            let expansion = self.task.expansion_of(&self.spanning)?;
            return Ok(Moved { support: self.spanning.clone(), expansion, steps: 0, converged: true });
        }
        let rows = self.start.points(&self.start.exchanged(self.start.picks(m)?)?.0);
        let mut random = Random::new(self.task.seed, 20);
        let mut best = self.problem.climb(rows.clone(), self.method.steps, self.task.watch)?;
        for _ in 0..self.method.restarts {
            let other = self.problem.climb(
                kmeans::centres(&self.problem.x, m, &mut random),
                self.method.steps,
                self.task.watch,
            )?;
            if other.captured > best.captured {
                best = other;
            }
        }
        let moved = self.task.expansion_of(&best.points)?;
        if self.problem.x.n() < self.task.points.n() {
            // What is gained on the rows that were seen may be lost on the others.
            let start = self.task.expansion_of(&rows)?;
            if start.captured > moved.captured {
                return Ok(Moved { support: rows, expansion: start, steps: best.steps, converged: best.converged });
            }
        }
        Ok(Moved { support: best.points, expansion: moved, steps: best.steps, converged: best.converged })
    }

    /// The fewest points that hold the fidelity: growing, then bisection.
    fn smallest(&self, fidelity: f64) -> Result<Moved> {
        let n = self.task.points.n();
        let holds = |moved: &Moved| -> Result<bool> {
            Ok(self.task.fidelity_of(&moved.support, &moved.expansion)? >= fidelity)
        };
        let (mut low, mut high) = (0, self.task.q.min(n));
        let mut best = self.moved(high)?;
        while !holds(&best)? {
            let reached = best.support.n();
            if high == n || reached < high {
                // All rows there are, or as many as are independent.
                return Ok(best);
            }
            (low, high) = (high, (high + 1 + high / 2).min(n));
            best = self.moved(high)?;
        }
        let (_, best) = search::smallest(low, high, best, |count| {
            let tried = self.moved(count)?;
            Ok(holds(&tried)?.then_some(tried))
        })?;
        Ok(best)
    }
}

/// W and its gradient over some rows.
struct Problem<'a> {
    kernel: &'a Arc<dyn Kernel>,
    x: Points<'static>,
    q: usize,
    center: bool,
    /// Mean distance of each column's values from their mean: the unit that it is moved in. Zero where they do not vary, and
    /// points keep their values there.
    units: Vec<f64>,
    /// Lowest and highest value that points may take: kernels that grow would send them to infinity.
    ranges: Vec<(f64, f64)>,
    /// f of each row; 1 without it.
    stretches: Vec<f64>,
}

impl<'a> Problem<'a> {
    fn new(kernel: &'a Arc<dyn Kernel>, x: Points<'static>, q: usize, center: bool) -> Problem<'a> {
        let (mean, n) = (x.mean(), x.n() as f64);
        let column = |k: usize| x.rows().map(move |row| row[k]);
        let varies = |k: usize| column(k).any(|v| v != x.row(0)[k]);
        let unit = |k: usize| if varies(k) { column(k).map(|v| (v - mean[k]).abs() / n).sum() } else { 0.0 };
        let range = |k: usize| {
            let (low, high) = column(k).fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
            (low - (high - low), high + (high - low))
        };
        let (units, ranges) = ((0..x.d()).map(unit).collect(), (0..x.d()).map(range).collect());
        Problem { kernel, stretches: stretches(kernel, &x), x, q, center, units, ranges }
    }

    /// The best components in the span of Z: W(Z) is what they capture.
    fn best(&self, z: &Points<'static>) -> Result<Expansion> {
        Span::new(self.kernel, &self.x, z, self.center, &())?.best(self.q, &())
    }

    /// ∂W/∂Z at the best components, in the order of Z's values, each per unit of its column.
    fn gradient(&self, z: &Points<'static>, best: &Expansion) -> Vec<f64> {
        let (d, q) = (z.d(), best.values.len());
        let points = z.select(&best.kept);
        let (m, b) = (points.n(), &best.coefficients);
        let basis = Basis::centred(self.kernel.clone(), points.clone(), best.means.clone());
        let components = basis.weights(b.clone());
        let kernel = self.kernel.conformal().map_or(self.kernel, |conformal| &conformal.base);
        let f = stretches(self.kernel, &points);
        let mut inner = blocks::sum(
            self.x.n(),
            || vec![0.0; m * d],
            |sum, rows| {
                let x = self.x.slice(rows.clone());
                let y = basis.product(&x, &components, Precision::Double);
                let y = Mat::from_fn(rows.len(), q, |j, k| 2.0 * self.stretches[rows.start + j] * y[j * q + k]);
                let weights = dense::product(y.as_ref(), b.transpose());
                for (i, out) in sum.chunks_exact_mut(d).enumerate() {
                    for j in 0..rows.len() {
                        kernel.add_gradient(points.row(i), x.row(j), f[i] * weights[(j, i)], out);
                    }
                }
            },
            |a, b| a.iter_mut().zip(b).for_each(|(a, b)| *a += b),
        );
        for (i, out) in inner.chunks_exact_mut(d).enumerate() {
            for l in 0..m {
                let weight: f64 = (0..q).map(|k| best.values[k] * b[(i, k)] * b[(l, k)]).sum();
                kernel.add_gradient(points.row(i), points.row(l), -2.0 * f[i] * f[l] * weight, out);
            }
        }
        // Points that others express have no say.
        let mut gradient = vec![0.0; z.n() * d];
        for (&i, from) in best.kept.iter().zip(inner.chunks_exact(d)) {
            let to = gradient[i * d..][..d].iter_mut().zip(&self.units);
            to.zip(from).for_each(|((to, unit), from)| *to = unit * from);
        }
        gradient
    }

    /// How far from depending on each other points are: the least share of a squared length that is not in the span of those
    /// before it.
    fn apart(&self, z: &Points<'static>) -> f64 {
        let k = factor::gram(self.kernel, z);
        let Some(l) = dense::cholesky(k.as_ref()) else { return 0.0 };
        (0..z.n()).map(|i| l[(i, i)] * l[(i, i)] / k[(i, i)]).fold(1.0, f64::min)
    }

    /// The longest of the steps v, v/2, v/4, … that raises W as its slope promises; nothing if none does. None makes points
    /// depend on each other so much that W would be rounding.
    fn step(&self, z: &Points<'static>, w: f64, v: &[f64], slope: f64) -> Option<(Points<'static>, Expansion)> {
        let apart = self.apart(z).min(APART);
        (0..HALVINGS).map(|halvings| 0.5_f64.powi(halvings as i32)).find_map(|t| {
            let along = z.values().iter().zip(v).zip(self.units.iter().zip(&self.ranges).cycle());
            let next = along.map(|((z, v), (unit, (low, high)))| (z + t * v * unit).clamp(*low, *high));
            let next = Points::new(z.d(), next.collect::<Vec<f64>>()).ok()?;
            if self.apart(&next) < apart {
                return None;
            }
            let best = self.best(&next).ok()?;
            (best.captured >= w + 1e-4 * t * slope && best.captured.is_finite()).then_some((next, best))
        })
    }

    /// L-BFGS with backtracking, as far as W rises.
    fn climb(&self, mut z: Points<'static>, steps: usize, watch: &dyn Watch) -> Result<Summit> {
        let best = self.best(&z)?;
        let mut g = self.gradient(&z, &best);
        let mut history = vec![best.captured];
        let mut memory: Vec<(Vec<f64>, Vec<f64>)> = Vec::new();
        for step in 0..steps {
            check(watch, "moving points", step as f64 / steps as f64)?;
            let mut direction = quasi_newton(&g, &memory);
            if memory.is_empty() {
                let largest = direction.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
                if largest == 0.0 {
                    return Ok(Summit {
                        points: z,
                        captured: history[history.len() - 1],
                        steps: step,
                        converged: true,
                    });
                }
                direction.iter_mut().for_each(|v| *v *= FIRST / largest);
            }
            let Some((next, best)) = self.step(&z, history[history.len() - 1], &direction, dot(&direction, &g)) else {
                if memory.is_empty() {
                    return Ok(Summit {
                        points: z,
                        captured: history[history.len() - 1],
                        steps: step,
                        converged: true,
                    });
                }
                // The memory misleads: once more along the gradient.
                memory.clear();
                continue;
            };
            let gradient = self.gradient(&next, &best);
            let per_unit = |(moved, unit): (f64, &f64)| if *unit > 0.0 { moved / unit } else { 0.0 };
            let moved = difference(next.values(), z.values()).into_iter().zip(self.units.iter().cycle()).map(per_unit);
            remember(&mut memory, moved.collect(), difference(&g, &gradient));
            (z, g) = (next, gradient);
            history.push(best.captured);
            let before = history.len().checked_sub(PATIENCE + 1).map(|at| history[at]);
            if before.is_some_and(|before| best.captured - before <= RISE * best.captured) {
                return Ok(Summit { points: z, captured: best.captured, steps: step + 1, converged: true });
            }
        }
        Ok(Summit { points: z, captured: history[history.len() - 1], steps, converged: false })
    }
}

/// A step and by how much the gradient fell: positive curvature where W is maximised, or it is not worth remembering.
fn remember(memory: &mut Vec<(Vec<f64>, Vec<f64>)>, moved: Vec<f64>, fallen: Vec<f64>) {
    if dot(&moved, &fallen) > 1e-10 * dot(&moved, &moved).sqrt() * dot(&fallen, &fallen).sqrt() {
        memory.push((moved, fallen));
        if memory.len() > MEMORY {
            memory.remove(0);
        }
    }
}

/// f of each point under a conformal kernel, 1 under any other.
fn stretches(kernel: &Arc<dyn Kernel>, points: &Points) -> Vec<f64> {
    match kernel.conformal() {
        Some(conformal) => gram::stretches(conformal, points),
        None => vec![1.0; points.n()],
    }
}

fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

/// The two-loop recursion: H g, H the inverse curvature remembered.
fn quasi_newton(g: &[f64], memory: &[(Vec<f64>, Vec<f64>)]) -> Vec<f64> {
    let mut direction = g.to_vec();
    let mut shares = Vec::with_capacity(memory.len());
    for (moved, fallen) in memory.iter().rev() {
        let share = dot(moved, &direction) / dot(moved, fallen);
        direction.iter_mut().zip(fallen).for_each(|(v, y)| *v -= share * y);
        shares.push(share);
    }
    if let Some((moved, fallen)) = memory.last() {
        let scale = dot(moved, fallen) / dot(fallen, fallen);
        direction.iter_mut().for_each(|v| *v *= scale);
    }
    for ((moved, fallen), share) in memory.iter().zip(shares.iter().rev()) {
        let back = dot(fallen, &direction) / dot(moved, fallen);
        direction.iter_mut().zip(moved).for_each(|(v, s)| *v += (share - back) * s);
    }
    direction
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{self, KERNELS};
    use crate::toys;

    fn problem<'a>(kernel: &'a Arc<dyn Kernel>, x: &Points, center: bool) -> Problem<'a> {
        Problem::new(kernel, x.slice(0..x.n()).into_owned(), 2, center)
    }

    #[test]
    fn the_gradient_agrees_with_differences_for_every_kernel() {
        let x = toys::normal(60, 3, 0);
        let far = toys::normal(5, 3, 1);
        // Two points that nearly coincide.
        let mut close = far.values().to_vec();
        (0..3).for_each(|k| close[3 + k] = close[k] + 1e-2 * (k + 1) as f64);
        for entry in KERNELS {
            // tanh is nearly linear, and so positive semi-definite, on small arguments only.
            let kernel = match entry.name {
                "sigmoid" => kernel::build(&"sigmoid,gamma=1e-3,coef0=0".parse().unwrap(), &x, 0).unwrap(),
                _ => entry.example(&x),
            };
            for (name, values) in [("far", far.values()), ("close", &close[..])] {
                // The linear kernels have three dimensions: more points would leave nothing to gain.
                let m = if kernel.rank(3) == 3 || entry.name == "sigmoid" { 2 } else { 5 };
                for center in [true, false] {
                    let problem = problem(&kernel, &x, center);
                    let points = |values: &[f64]| Points::new(3, values.to_vec()).unwrap();
                    let z = values[..3 * m].to_vec();
                    let gradient = problem.gradient(&points(&z), &problem.best(&points(&z)).unwrap());
                    let size = gradient.iter().fold(0.0_f64, |m, g| m.max(g.abs()));
                    for (i, found) in gradient.iter().enumerate() {
                        let moved = |by: f64| {
                            let mut z = z.clone();
                            z[i] += by;
                            problem.best(&points(&z)).unwrap().captured
                        };
                        let step = 1e-4;
                        let (near, twice) = (moved(step) - moved(-step), moved(2.0 * step) - moved(-2.0 * step));
                        let expected = problem.units[i % 3] * (8.0 * near - twice) / (12.0 * step);
                        let case = format!("{} {name} {center} {i}: {found} {expected}", entry.name);
                        assert!((found - expected).abs() < 1e-6 * size.max(1e-3), "{case}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_step_climbs_and_none_above_exact_kernel_pca() {
        let x = toys::parabola(0);
        let kernel = kernel::build(&Spec::new("rbf"), &x, 0).unwrap();
        let problem = problem(&kernel, &x, true);
        let start = x.select(&[3, 77, 150, 301]);
        let all: Vec<usize> = (0..x.n()).collect();
        let exact = problem.best(&x.select(&all)).unwrap().captured;
        let mut last = problem.best(&start).unwrap().captured;
        for steps in 1..30 {
            let z = problem.climb(start.clone(), steps, &()).unwrap().points;
            let w = problem.best(&z).unwrap().captured;
            assert!(w >= last * (1.0 - 1e-12) && w <= exact * (1.0 + 1e-9), "{steps}: {w} after {last}, {exact}");
            last = w;
        }
        assert!(last > 0.95 * exact, "{last} {exact}");
    }

    #[test]
    fn a_constant_column_stays_as_it_is() {
        let values: Vec<f64> = toys::parabola(1).rows().flat_map(|row| [row[0], 3.0, row[1]]).collect();
        let x = Points::new(3, values).unwrap();
        let kernel = kernel::build(&"polynomial,gamma=1".parse().unwrap(), &x, 0).unwrap();
        let problem = problem(&kernel, &x, true);
        let Summit { points: z, steps, .. } = problem.climb(x.select(&[1, 2, 3]), 20, &()).unwrap();
        assert!(steps > 1 && z.rows().all(|row| row[1] == 3.0));
        assert!(z.row(0) != x.row(1), "the others move");
    }

    #[test]
    fn the_remembered_curvature_is_met() {
        let memory = vec![(vec![1.0, 0.0, 2.0], vec![2.0, 0.5, 3.0]), (vec![0.0, 1.0, -1.0], vec![-0.5, 2.0, -1.5])];
        // The secant condition: what the last step changed the gradient by is taken back to that step.
        let step = quasi_newton(&memory[1].1, &memory);
        assert!(step.iter().zip(&memory[1].0).all(|(a, b)| (a - b).abs() < 1e-12), "{step:?}");
        // Without memory it is the gradient, with one pair H = γI across it.
        assert_eq!(quasi_newton(&[3.0, 1.0], &[]), [3.0, 1.0]);
        let across = quasi_newton(&[0.0, 1.0], &[(vec![2.0, 0.0], vec![4.0, 0.0])]);
        assert_eq!(across, [0.0, 0.5]);
    }
}
