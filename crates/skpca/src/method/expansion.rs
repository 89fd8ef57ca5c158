//! Free expansion vectors (Li & Gao 2011): the points themselves are moved until their span captures most.
//!
//! ```text
//! W(Z) = Σ_{k ≤ q} λ_k,   C b = λ K_zz b,  bᵀK_zz b = 1,   C = Σ_j (k_z(x_j) − μ)(k_z(x_j) − μ)ᵀ
//! ∂W/∂z_i = 2 Σ_j (Σ_k b_ik y_jk) ∂k(z_i, x_j) − 2 Σ_l (Σ_k λ_k b_ik b_lk) ∂k(z_i, z_l),   y_jk = b_kᵀ(k_z(x_j) − μ)
//! ```
//!
//! A conformal kernel f(x) f(z) k(x, z) needs only f at the rows and the gradient of k: W depends on the span of Z,
//! which the length f(z) of a vector does not change.
//!
//! The method builds a path of models, each from the previous one. It starts with as many rows as components, chosen
//! and exchanged as in `greedy`, and takes a few steps of L-BFGS. Then the rows that add most to the span of the points
//! join them, and the optimiser continues, until the target is met. If the gains of the last steps show that the target
//! is out of reach for this number of points, the optimiser stops early. Finally, points that contribute least are
//! dropped as long as the target can be met without them (docs/decisions/0023).
//!
//! With many rows, points are moved on a sample of them; the final components are those of all rows. No matrix larger
//! than the data is ever stored.

mod climb;
mod objective;

use self::climb::{Climber, End, Until};
use self::objective::Objective;
use super::greedy::Selection;
use super::kmeans;
use super::lbfgs::Memory;
use super::plane::Plane;
use super::{Entry, Following, Method, Size, Solution, Support, Target, Task};
use crate::error::Result;
use crate::kernel::Form;
use crate::points::Points;
use crate::random::{Random, Stream};
use crate::report::{ABOVE_ONE, Report};
use crate::rows::Part;
use crate::spec::Spec;
use crate::spectrum::Expansion;

/// Default number of rows on which points are moved: those on which fidelity is measured.
const SEEN_ROWS: usize = crate::reference::REFERENCE_ROWS;
/// Minimum number of these rows per point.
const ROWS_PER_POINT: usize = 10;
/// Default maximum number of L-BFGS steps for each number of points.
const STEPS: usize = 200;
/// Number of L-BFGS steps in each review of the points of an online model.
const REVIEW_STEPS: usize = 5;
/// The optimiser has converged when a few steps together increase W by less than this share.
const TOLERANCE: f64 = 1e-5;
/// The same tolerance while more points are still to join.
const GROWING_TOLERANCE: f64 = 3e-3;
/// The same tolerance for the models of a path, and once a target is met.
const PATH_TOLERANCE: f64 = 1e-3;
/// The uncaptured variance is assumed to fall like 1/m to this power, to estimate how many points are missing.
const DECAY: f64 = 1.2;
/// Maximum number of points that join at a time, as a share of the present number.
const GROWTH: f64 = 0.5;
/// Minimum relative distance kept between points that started farther apart than that. It leaves W about eight of its
/// sixteen digits.
const APART: f64 = 1e-8;
/// Number of exchange passes over the initial points.
const EXCHANGES: usize = 5;
/// Number of points per component at which the plane is left, because the missing variance is outside it.
const IN_PLANE: usize = 10;
/// Maximum number of times that the goal for W is raised because the fidelity is still missed.
const MAX_RAISES: usize = 30;
/// Relative margin by which targets are exceeded, for rounding.
const MARGIN: f64 = 1e-9;

pub(super) const ENTRY: Entry = Entry {
    name: "expansion",
    summary: "points moved by an optimiser until their span captures most: the smallest models",
    source: "Li & Gao 2011",
    parameters: {
        use crate::parameter::Parameter;
        &[
            Parameter::count("steps", 0, STEPS, "maximum number of optimiser steps").as_sklearn("max_iter"),
            Parameter::count("restarts", 0, 0, "additional starts, from k-means centres; the best is kept"),
            Parameter::count("rows", 2, SEEN_ROWS, "number of rows on which points are moved"),
        ]
    },
    capabilities: super::Capabilities { synthetic_points: true, weights: true, ..super::Capabilities::NONE },
    build: |fields| {
        Ok(Box::new(Free {
            steps: fields.count("steps")?,
            restarts: fields.count("restarts")?,
            rows: fields.count("rows")?,
        }))
    },
};

#[derive(Debug)]
struct Free {
    steps: usize,
    rows: usize,
    restarts: usize,
}

impl Method for Free {
    fn fit(&self, task: &Task) -> Result<Solution> {
        let n = task.n();
        let mut path = Growth::new(self, task)?;
        let moved = match task.aim() {
            Target::Fidelity(fidelity) => path.smallest(fidelity)?,
            Target::Support(m) => path.with_points(m)?,
        };
        let evaluations = path.objective.evaluations.get();
        let seen = path.objective.rows().n();
        let note = (seen < n && evaluations > 1).then(|| format!("points were moved on {seen} of {n} rows"));
        let report = Report {
            notes: note.into_iter().collect(),
            objective: Some(moved.expansion.captured / task.rows.weight()),
            rounds: evaluations,
            converged: moved.converged,
            ..Report::default()
        };
        let method = Spec::new("expansion").with("steps", self.steps).with("rows", self.rows);
        let method = method.with("restarts", self.restarts);
        Ok(Solution::new(method, Support::Points(moved.support), moved.expansion, report))
    }

    fn fidelities(&self, task: &Task, most: usize) -> Result<Option<Vec<(usize, f64)>>> {
        Growth::new(self, task)?.fidelities(most).map(Some)
    }

    fn moved(
        &self,
        rows: &Points<'static>,
        points: &Points<'static>,
        goal: &Following,
    ) -> Result<Option<Points<'static>>> {
        let part = Part { points: rows.clone(), weights: None };
        let objective = Objective::new(goal.kernel, part, goal.q, goal.center)?;
        objective.climbed(points.clone(), self.steps.min(REVIEW_STEPS), goal.watch).map(Some)
    }

    fn holds_rows(&self, _: &Size) -> bool {
        false
    }

    fn memory(&self, size: &Size) -> usize {
        let m = size.points(2 * size.q);
        let seen = size.n.min(self.rows.max(ROWS_PER_POINT * m));
        // Rows are packed twice for moving and twice for selection; then there are kernel values and their weights.
        8 * (size.leading() + 2 * size.n + seen * (4 * size.d + 6 * m + 4 * size.q) + m * (30 * size.d + 8 * m))
    }
}

/// Moves given points by some steps of the optimiser, on the rows that `expansion` would use; returns them unchanged if
/// they cannot move.
pub(super) fn polished(task: &Task, z: Points<'static>, steps: usize) -> Result<Points<'static>> {
    let seen = SEEN_ROWS.max(ROWS_PER_POINT * z.n());
    let rows = Random::new(task.seed, Stream::ExpansionRows).sample(task.n(), seen);
    Objective::new(task.kernel, Part::of(task.rows, &rows)?, task.q, task.center)?.climbed(z, steps, task.watch)
}

/// A model at the end of the optimisation.
struct Moved {
    support: Points<'static>,
    expansion: Expansion,
    converged: bool,
}

/// The path of models with growing numbers of points.
struct Growth<'a> {
    method: &'a Free,
    task: &'a Task<'a>,
    choice: Selection<'a>,
    /// Numbers of the rows on which points are moved.
    rows: Vec<usize>,
    /// The plane that points move in, if any.
    plane: Option<Plane>,
    objective: Objective,
}

impl<'a> Growth<'a> {
    fn new(method: &'a Free, task: &'a Task<'a>) -> Result<Growth<'a>> {
        let choice = Selection::leading(task, EXCHANGES)?;
        let least = ROWS_PER_POINT * task.support();
        let rows = if method.rows == SEEN_ROWS && least <= SEEN_ROWS {
            task.reference()?.rows.clone()
        } else {
            Random::new(task.seed, Stream::ExpansionRows).sample(task.n(), method.rows.max(least))
        };
        let Part { points: x, weights } = Part::of(task.rows, &rows)?;
        let plane = match task.kernel.form() {
            Form::Gaussian { .. } => Plane::new(&x, task.seed),
            _ => None,
        };
        let mut objective = match &plane {
            Some(plane) => Objective::in_plane(task, &Part { points: x, weights }, plane)?,
            None => Objective::new(task.kernel, Part { points: x, weights }, task.q, task.center)?,
        };
        if !task.kernel.positive_semidefinite() && rows.len() == task.n() {
            objective.ceiling = (1.0 + ABOVE_ONE) * task.reference()?.captured;
        }
        Ok(Growth { method, task, choice, rows, plane, objective })
    }

    /// Finds the best `m` points: grown from few and then optimised, or optimised from k-means centres at each restart.
    fn with_points(&mut self, m: usize) -> Result<Moved> {
        // If rows span everything, nothing can be gained by moving points.
        if m >= self.task.n() || self.choice.picks(m)?.len() < m {
            return self.unmoved(m);
        }
        let first = self.task.q.min(m);
        let picks = self.choice.exchanged(self.choice.picks(first)?)?.0;
        let Some(mut now) = self.start(self.choice.points(&picks)?, first) else { return self.unmoved(m) };
        while now.m() < m {
            self.climb(&mut now, Until::Settled(GROWING_TOLERANCE))?;
            let more = self.max_growth(now.m()).min(m - now.m());
            let Some(next) = self.grown(&now, more)? else { break };
            now = next;
        }
        let mut end = self.climb(&mut now, Until::Settled(TOLERANCE))?;
        if let Some(everywhere) = self.everywhere(&now)? {
            now = everywhere;
            end = self.climb(&mut now, Until::Settled(TOLERANCE))?;
        }
        let mut random = Random::new(self.task.seed, Stream::ExpansionCentres);
        for _ in 0..self.method.restarts {
            let Some(mut other) = self.start_inside(kmeans::centres(self.objective.counted(), m, &mut random), m)
            else {
                continue;
            };
            let other_end = self.climb(&mut other, Until::Settled(TOLERANCE))?;
            if other.at.captured > now.at.captured {
                (now, end) = (other, other_end);
            }
        }
        let support = self.outside(&now.at.z);
        let expansion = self.task.expansion_of(&support)?;
        if self.objective.rows().n() < self.task.n() || support.n() < m {
            // A gain on the sample may be a loss over all rows, and fewer points may capture less.
            let still = self.unmoved(m)?;
            if still.expansion.captured > expansion.captured {
                return Ok(still);
            }
        }
        Ok(Moved { support, expansion, converged: end == End::Done })
    }

    /// Returns the fidelity, on the sample, of each number of points, starting with one per component and adding one
    /// point at a time.
    fn fidelities(&self, most: usize) -> Result<Vec<(usize, f64)>> {
        let first = self.task.q.min(most);
        let picks = self.choice.exchanged(self.choice.picks(first)?)?.0;
        let mut now = self.start(self.choice.points(&picks)?, picks.len());
        let (all, mut found) = (self.all()?, Vec::new());
        while let Some(mut climber) = now {
            self.climb(&mut climber, Until::Settled(PATH_TOLERANCE))?;
            found.push((climber.m(), climber.at.captured / all));
            now = if climber.m() < most { self.grown(&climber, 1)? } else { None };
        }
        Ok(found)
    }

    /// Returns the best rows themselves, for points that cannot move or have nothing to gain.
    fn unmoved(&self, m: usize) -> Result<Moved> {
        let rows = match self.choice.spanning(m) {
            Some(all) => all,
            None => self.choice.rows(&self.choice.exchanged(self.choice.picks(m)?)?.0),
        };
        let support = self.task.rows.gather(&rows)?;
        let expansion = self.task.expansion_of(&support)?;
        Ok(Moved { support, expansion, converged: true })
    }

    /// Leaves the plane: returns the same points, free to move everywhere; `None` if there is no plane.
    fn everywhere(&mut self, now: &Climber) -> Result<Option<Climber>> {
        let Some(plane) = self.plane.take() else { return Ok(None) };
        let evaluations = self.objective.evaluations.clone();
        let rows = Part::of(self.task.rows, &self.rows)?;
        self.objective = Objective::new(self.task.kernel, rows, self.task.q, self.task.center)?;
        self.objective.evaluations = evaluations;
        Ok(self.start(plane.outside(&now.at.z), now.m()))
    }

    /// Finds the fewest points that reach the fidelity.
    fn smallest(&mut self, fidelity: f64) -> Result<Moved> {
        let all = self.all()?;
        let mut goal = fidelity * all * (1.0 + MARGIN);
        let first = self.task.q.min(self.task.n());
        let picks = self.choice.exchanged(self.choice.picks(first)?)?.0;
        let Some(mut now) = self.start(self.choice.points(&picks)?, first) else { return self.unmoved(picks.len()) };
        // The largest number of points that failed to reach the goal, and how often the goal has been raised.
        let (mut failed, mut raised) = (0, 0);
        loop {
            let (mut best, held) = self.search(now, goal, &mut failed)?;
            // If nearly all rows are alike, W and the captured variance differ by rounding, and raising has no end.
            let held = held && raised < MAX_RAISES;
            if held {
                // The number of points is final; optimise them further to improve the model.
                self.climb(&mut best, Until::Settled(PATH_TOLERANCE))?;
            }
            if !held && let Some(everywhere) = self.everywhere(&best)? {
                (now, failed) = (everywhere, 0);
                continue;
            }
            let support = self.outside(&best.at.z);
            let expansion = self.task.expansion_of(&support)?;
            let found = self.task.fidelity_of(&support, &expansion)?;
            if held && found >= fidelity {
                return Ok(Moved { support, expansion, converged: true });
            }
            if !held {
                // No further row adds to the points, or the sample is not conclusive: select rows without moving them.
                let (rows, still, _) = self.choice.smallest(fidelity)?;
                let sure = best.at.surely_captured() / best.at.captured;
                let held = self.task.fidelity(&rows, &still)? >= fidelity;
                let better = !held && sure * expansion.captured > still.captured;
                return Ok(if better {
                    Moved { support, expansion, converged: true }
                } else {
                    Moved { support: self.task.rows.gather(&rows)?, expansion: still, converged: true }
                });
            }
            // The fidelity on the sample is slightly optimistic.
            raised += 1;
            goal = goal.max(best.at.captured) * (1.0 + 1.1 * (fidelity / found - 1.0) + MARGIN);
            now = best;
        }
    }

    /// Finds the fewest points, more than `failed`, that reach the goal; also returns whether the goal is reached.
    fn search(&self, mut now: Climber, goal: f64, failed: &mut usize) -> Result<(Climber, bool)> {
        while self.climb(&mut now, Until::Reached(goal))? != End::Done {
            *failed = now.m();
            if self.plane.is_some() && now.m() >= IN_PLANE * self.task.q {
                return Ok((now, false));
            }
            match self.grown(&now, self.missing(&now, goal)?)? {
                Some(next) => now = next,
                None => return Ok((now, false)),
            }
        }
        let mut most = usize::MAX;
        while *failed + 1 < now.m() {
            let fewer = now.at.removable(goal).clamp(1, most.min(now.m() - *failed - 1));
            let Some(mut tried) = self.shrunk(&now, fewer) else { break };
            match self.climb(&mut tried, Until::Reached(goal))? {
                End::Done => now = tried,
                _ => (*failed, most) = (tried.m(), (fewer / 2).max(1)),
            }
        }
        self.restarted(now, goal)
    }

    /// Tries one point fewer, starting from k-means centres, at each restart.
    fn restarted(&self, mut now: Climber, goal: f64) -> Result<(Climber, bool)> {
        let mut random = Random::new(self.task.seed, Stream::ExpansionCentres);
        for _ in 0..self.method.restarts {
            if now.m() == 1 {
                break;
            }
            let centres = kmeans::centres(self.objective.counted(), now.m() - 1, &mut random);
            let Some(mut tried) = self.start_inside(centres, now.m() - 1) else { continue };
            if self.climb(&mut tried, Until::Reached(goal))? == End::Done {
                now = tried;
            }
        }
        Ok((now, true))
    }

    /// Converts points to the coordinates in which they move.
    fn inside(&self, z: Points<'static>) -> Points<'static> {
        match &self.plane {
            Some(plane) => plane.inside(&z).0,
            None => z,
        }
    }

    /// Converts moved points back to the columns of the rows.
    fn outside(&self, z: &Points<'static>) -> Points<'static> {
        self.plane.as_ref().map_or_else(|| z.clone(), |plane| plane.outside(z))
    }

    /// Returns `m` points ready to move; `None` if there are fewer or they are linearly dependent.
    fn start(&self, z: Points<'static>, m: usize) -> Option<Climber> {
        self.start_inside(self.inside(z), m)
    }

    fn start_inside(&self, z: Points<'static>, m: usize) -> Option<Climber> {
        let at = if z.n() == m { self.objective.at(z, 0.0) } else { None };
        Some(Climber { at: at?, memory: Memory::default() })
    }

    /// Returns what exact kernel PCA captures of all rows, scaled to the weight of the sample.
    fn all(&self) -> Result<f64> {
        let reference = self.task.reference()?;
        let share = self.objective.weight / reference.weight_seen(self.task.rows);
        Ok(share * reference.captured)
    }

    /// Returns the maximum number of points that may join `m` points at a time.
    fn max_growth(&self, m: usize) -> usize {
        1.max((GROWTH * m as f64) as usize)
    }

    /// Estimates how many more points the goal needs.
    fn missing(&self, now: &Climber, goal: f64) -> Result<usize> {
        let all = self.all()?;
        let left = |captured: f64| (1.0 - captured / all).max(1e-12);
        let times = (left(now.at.captured) / left(goal)).powf(1.0 / DECAY);
        let more = (now.m() as f64 * (times - 1.0)) as usize;
        Ok(more.clamp(1, self.max_growth(now.m())))
    }

    /// Adds up to `more` rows that add most, as many as keep their distance from the points and from each other; `None`
    /// if there are none.
    fn grown(&self, now: &Climber, more: usize) -> Result<Option<Climber>> {
        let mut picks = self.choice.picks_beside_points(&self.outside(&now.at.z), more)?;
        while !picks.is_empty() {
            let (z, joined) = (&now.at.z, self.inside(self.choice.points(&picks)?));
            let values = [z.values(), joined.values()].concat();
            if let Some(at) = self.objective.at(Points::new(z.d(), values)?, now.at.apart.min(APART)) {
                let memory = now.memory.extended(at.z.values().len());
                return Ok(Some(Climber { at, memory }));
            }
            // Each row was chosen for what it adds to the previous ones: the last ones add least.
            picks.truncate(picks.len() / 2);
        }
        Ok(None)
    }

    /// Drops the points that contribute least, `fewer` of them.
    fn shrunk(&self, now: &Climber, fewer: usize) -> Option<Climber> {
        let mut order: Vec<usize> = (0..now.m()).collect();
        let losses = now.at.losses();
        order.sort_by(|&i, &j| losses[i].total_cmp(&losses[j]));
        let mut kept = order.split_off(fewer);
        kept.sort_unstable();
        let d = now.at.z.d();
        let part = |v: &[f64]| kept.iter().flat_map(|i| &v[i * d..(i + 1) * d]).copied().collect::<Vec<f64>>();
        let memory = now.memory.restricted(part);
        let at = self.objective.at(now.at.z.select(&kept), 0.0)?;
        Some(Climber { at, memory })
    }

    fn climb(&self, climber: &mut Climber, until: Until) -> Result<End> {
        self.objective.climb(climber, self.method.steps, until, self.task.watch)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::kernel::{self, KERNELS, Kernel};
    use crate::spectrum::Span;
    use crate::toys;

    fn objective(kernel: &Arc<dyn Kernel>, x: &Points, center: bool) -> Objective {
        Objective::new(kernel, Part { points: x.slice(0..x.n()).into_owned(), weights: None }, 2, center).unwrap()
    }

    #[test]
    fn weights_act_like_repeated_rows() {
        let (x, z) = (toys::normal(700, 3, 0), toys::normal(2, 3, 1));
        let weights: Vec<f64> = (0..700).map(|i| 1.0 + (i % 3) as f64).collect();
        let repeated: Vec<usize> = (0..700).flat_map(|i| vec![i; 1 + i % 3]).collect();
        for entry in KERNELS.iter().filter(|entry| entry.capabilities.positive_semidefinite) {
            let kernel = entry.example(&x);
            let part = Part { points: x.clone(), weights: Some(weights.clone()) };
            let (weighted, repeated) =
                (Objective::new(&kernel, part, 2, true).unwrap(), objective(&kernel, &x.select(&repeated), true));
            let at = |objective: &Objective| {
                let at = objective.at(z.clone(), 0.0).unwrap();
                (at.captured, objective.gradient(&at))
            };
            let ((a, slopes), (b, expected)) = (at(&weighted), at(&repeated));
            let size = expected.iter().fold(0.0_f64, |size, v| size.max(v.abs()));
            assert!((a / b - 1.0).abs() < 1e-10, "{}: {a} {b}", entry.name);
            let near = slopes.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-8 * size);
            assert!(near, "{}: {slopes:?} {expected:?}", entry.name);
        }
    }

    fn climbed(objective: &Objective, start: Points<'static>, steps: usize) -> Climber {
        let mut climber = Climber { at: objective.at(start, 0.0).unwrap(), memory: Memory::default() };
        objective.climb(&mut climber, steps, Until::Settled(TOLERANCE), &()).unwrap();
        climber
    }

    #[test]
    fn the_gradient_agrees_with_differences_for_every_kernel() {
        let x = toys::normal(60, 3, 0);
        let far = toys::normal(5, 3, 1);
        // Two points that nearly coincide.
        let mut close = far.values().to_vec();
        (0..3).for_each(|k| close[3 + k] = close[k] + 1e-2 * (k + 1) as f64);
        for entry in KERNELS {
            // tanh is nearly linear, hence positive semi-definite, for small arguments only.
            let kernel = match entry.name {
                "sigmoid" => kernel::build(&"sigmoid,gamma=1e-3,coef0=0".parse().unwrap(), &x, 0).unwrap(),
                _ => entry.example(&x),
            };
            for (name, values) in [("far", far.values()), ("close", &close[..])] {
                // The linear kernels have three dimensions: with more points there would be nothing to gain.
                let m = if kernel.rank(3) == 3 || entry.name == "sigmoid" { 2 } else { 5 };
                for center in [true, false] {
                    let objective = objective(&kernel, &x, center);
                    let points = |values: &[f64]| Points::new(3, values.to_vec()).unwrap();
                    let z = values[..3 * m].to_vec();
                    let gradient = objective.gradient(&objective.at(points(&z), 0.0).unwrap());
                    let size = gradient.iter().fold(0.0_f64, |m, g| m.max(g.abs()));
                    for (i, found) in gradient.iter().enumerate() {
                        let moved = |by: f64| {
                            let mut z = z.clone();
                            z[i] += by;
                            objective.at(points(&z), 0.0).unwrap().captured
                        };
                        let step = 1e-4;
                        let (near, twice) = (moved(step) - moved(-step), moved(2.0 * step) - moved(-2.0 * step));
                        let expected = objective.units[i % 3] * (8.0 * near - twice) / (12.0 * step);
                        let case = format!("{} {name} {center} {i}: {found} {expected}", entry.name);
                        assert!((found - expected).abs() < 1e-6 * size.max(1e-3), "{case}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_step_increases_w_up_to_that_of_exact_kernel_pca() {
        let x = toys::parabola(0);
        let kernel = kernel::build(&Spec::new("rbf"), &x, 0).unwrap();
        let objective = objective(&kernel, &x, true);
        let start = x.select(&[3, 77, 150, 301]);
        let exact = Span::new(&kernel, &x, &x, true, &()).unwrap().best(2, &()).unwrap().captured;
        let mut last = objective.at(start.clone(), 0.0).unwrap().captured;
        for steps in 1..30 {
            let w = climbed(&objective, start.clone(), steps).at.captured;
            assert!(w >= last * (1.0 - 1e-12) && w <= exact * (1.0 + 1e-9), "{steps}: {w} after {last}, {exact}");
            last = w;
        }
        assert!(last > 0.95 * exact, "{last} {exact}");
    }

    #[test]
    fn rows_can_join_points_that_nearly_coincide() {
        let x = toys::clusters(0);
        let kernel = kernel::build(&"rbf,gamma=0.1".parse().unwrap(), &x, 0).unwrap();
        let task = Task::new(&kernel, &x, 2, &());
        let method = Free { steps: STEPS, rows: SEEN_ROWS, restarts: 0 };
        let growth = Growth::new(&method, &task).unwrap();
        let [a, b] = [x.row(0)[0], x.row(0)[1]];
        let now = growth.start(Points::new(2, vec![a, b, a + 1e-5, b]).unwrap(), 2).unwrap();
        assert!(now.at.apart < APART);
        assert_eq!(growth.grown(&now, 1).unwrap().expect("a row joins").m(), 3);
    }

    #[test]
    fn a_constant_column_stays_as_it_is() {
        let values: Vec<f64> = toys::parabola(1).rows().flat_map(|row| [row[0], 3.0, row[1]]).collect();
        let x = Points::new(3, values).unwrap();
        let kernel = kernel::build(&"polynomial,gamma=1".parse().unwrap(), &x, 0).unwrap();
        let objective = objective(&kernel, &x, true);
        let z = climbed(&objective, x.select(&[1, 2, 3]), 20).at.z;
        assert!(objective.evaluations.get() > 2 && z.rows().all(|row| row[1] == 3.0));
        assert!(z.row(0) != x.row(1), "the others move");
    }
}
