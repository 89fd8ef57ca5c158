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
//! One path of models, each from the one before: as many rows as components, chosen and exchanged as `greedy` does; a few steps of
//! L-BFGS; the rows that add most to the points where they are now; steps again. It goes on until the target is held, or there are as
//! many points as asked for. What can still be gained is told by the last steps: where it will not do, there is no use in more of
//! them. In the end the points that matter least are dropped while the target can be held without them (docs/decisions/0023).
//!
//! With many rows it sees a sample of them, and the components are those of all rows in the end: nothing larger than the data is
//! ever made. A limited-memory method of our own: the crates that have one want the problem in their own vector types and cannot be
//! interrupted between evaluations.

use std::cell::Cell;
use std::sync::Arc;

use faer::Mat;

use super::greedy::Choice;
use super::kmeans;
use super::plane::Plane;
use super::{DEPENDENT, Entry, Method, Report, Size, Solution, Support, Target, Task};
use crate::dense::{self, dot};
use crate::eigen::{Accuracy, top};
use crate::error::Result;
use crate::factor::diagonal;
use crate::gradient::{Anchors, Values};
use crate::gram::stretches;
use crate::kernel::{Form, Kernel};
use crate::model::ABOVE_ONE;
use crate::points::Points;
use crate::random::{Random, Stream};
use crate::spec::Spec;
use crate::spectrum::{Expansion, LOSS, condition};
use crate::watch::{Watch, check};

/// Rows that are seen while points move: those on which fidelity is measured, unless the user says otherwise.
const ROWS: usize = crate::reference::ROWS;
/// Rows for each point at least.
const ROWS_A_POINT: usize = 10;
/// Steps of L-BFGS at most, for each number of points.
const STEPS: usize = 200;
/// They end when so many together raise W by less than this share …
const PATIENCE: usize = 5;
const RISE: f64 = 1e-5;
/// … or by this where more points are to come …
const PASSING: f64 = 3e-3;
/// … or by this where each number of points is looked at, and when a target is held …
const LOOKED_AT: f64 = 1e-3;
/// … or where a target is further than this many times what they brought.
const HOPE: f64 = 15.0;
/// What is not captured falls like this power of the number of points: a guess at how many are missing.
const FALL: f64 = 1.2;
/// Points join by this share of those there are, at most.
const GROWTH: f64 = 0.5;
/// Steps that the curvature is remembered of.
const MEMORY: usize = 10;
/// Trials of a step before it is given up.
const TRIALS: usize = 20;
/// The first step moves a coordinate by this much of its column's spread, at most.
const FIRST: f64 = 0.1;
/// Points stay apart by this much, as far as they were: W has about as many digits as this leaves of sixteen.
const APART: f64 = 1e-8;
/// The rounding of W where they are quite apart.
const DIGITS: f64 = 1e-15;
/// Passes of exchanges of the points it starts from.
const EXCHANGES: usize = 5;
/// A plane is left with so many points for each component: what they lack is not in it.
const IN_PLANE: usize = 10;
/// Targets are aimed at with this much to spare, for rounding.
const SPARE: f64 = 1e-9;

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
        ]
    },
    capabilities: super::Capabilities { synthetic_points: true, ..super::Capabilities::NONE },
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
    fn fit(&self, task: &mut Task) -> Result<Solution> {
        let task = &*task;
        let n = task.points.n();
        let mut path = Path::new(self, task)?;
        let moved = match task.aim() {
            Target::Fidelity(fidelity) => path.smallest(fidelity)?,
            Target::Support(m) => path.with_points(m)?,
        };
        let evaluations = path.problem.evaluations.get();
        let seen = path.problem.rows().n();
        let note = (seen < n && evaluations > 1).then(|| format!("points were moved on {seen} of {n} rows"));
        let report = Report {
            notes: note.into_iter().collect(),
            objective: Some(moved.expansion.captured / n as f64),
            rounds: evaluations,
            converged: moved.converged,
            ..Report::default()
        };
        Ok(Solution {
            method: Spec::new("expansion")
                .with("steps", self.steps)
                .with("rows", self.rows)
                .with("restarts", self.restarts),
            support: Support::Points(moved.support),
            expansion: moved.expansion,
            density: None,
            fidelity: None,
            fewer: DEPENDENT,
            report,
        })
    }

    fn fidelities(&self, task: &Task, most: usize) -> Result<Option<Vec<(usize, f64)>>> {
        Path::new(self, task)?.fidelities(most).map(Some)
    }

    fn memory(&self, size: &Size) -> usize {
        let m = size.points(2 * size.q);
        let seen = size.n.min(self.rows.max(ROWS_A_POINT * m));
        // Rows packed twice for moving and twice for choosing, values and their weights.
        8 * (size.leading() + 2 * size.n + seen * (4 * size.d + 6 * m + 4 * size.q) + m * (30 * size.d + 8 * m))
    }
}

/// Points where they came to rest.
struct Moved {
    support: Points<'static>,
    expansion: Expansion,
    converged: bool,
}

/// Points on their way up, with the curvature that their last steps met.
#[derive(Clone)]
struct Climber {
    at: At,
    memory: Vec<(Vec<f64>, Vec<f64>)>,
}

/// When a climb ends.
#[derive(Clone, Copy)]
enum Until {
    /// W is this much, or will not be.
    Reached(f64),
    /// A few steps raise W by less than this share.
    Settled(f64),
}

/// How it ended.
#[derive(Clone, Copy, PartialEq)]
enum End {
    /// As it was meant to.
    Done,
    /// The target is out of reach.
    Hopeless,
    /// There were no steps left.
    OutOfSteps,
}

/// The path of models for growing numbers of points.
struct Path<'a> {
    method: &'a Free,
    task: &'a Task<'a>,
    choice: Choice<'a>,
    /// Numbers of the rows that are seen.
    rows: Vec<usize>,
    /// Where points move, unless it is everywhere.
    plane: Option<Plane>,
    problem: Problem,
}

impl<'a> Path<'a> {
    fn new(method: &'a Free, task: &'a Task<'a>) -> Result<Path<'a>> {
        let choice = Choice::leading(task, EXCHANGES)?;
        let least = ROWS_A_POINT * task.support();
        let rows = match method.rows == ROWS && least <= ROWS {
            true => task.reference()?.rows.clone(),
            false => Random::new(task.seed, Stream::ExpansionRows).sample(task.points.n(), method.rows.max(least)),
        };
        let x = task.points.select(&rows);
        let plane = match task.kernel.form() {
            Form::Gaussian { .. } => Plane::new(&x, task.seed),
            _ => None,
        };
        let mut problem = match &plane {
            Some(plane) => Problem::in_plane(task, &x, plane)?,
            None => Problem::new(task.kernel, x, task.q, task.center)?,
        };
        if !task.kernel.positive_semidefinite() && rows.len() == task.points.n() {
            problem.ceiling = (1.0 + ABOVE_ONE) * task.reference()?.captured;
        }
        Ok(Path { method, task, choice, rows, plane, problem })
    }

    /// `m` points: grown from few, then moved as far as they go; and from centres of the rows, as often as asked for.
    fn with_points(&mut self, m: usize) -> Result<Moved> {
        // Rows that span everything leave nothing to gain by moving.
        if m >= self.task.points.n() || self.choice.picks(m)?.len() < m {
            return self.still(m);
        }
        let first = self.task.q.min(m);
        let picks = self.choice.exchanged(self.choice.picks(first)?)?.0;
        let Some(mut now) = self.start(self.choice.points(&picks), first) else { return self.still(m) };
        while now.m() < m {
            self.climb(&mut now, Until::Settled(PASSING))?;
            let more = self.step_up(now.m()).min(m - now.m());
            let Some(next) = self.grown(&now, more)? else { return self.still(m) };
            now = next;
        }
        let mut end = self.climb(&mut now, Until::Settled(RISE))?;
        if let Some(everywhere) = self.everywhere(&now)? {
            now = everywhere;
            end = self.climb(&mut now, Until::Settled(RISE))?;
        }
        let mut random = Random::new(self.task.seed, Stream::ExpansionCentres);
        for _ in 0..self.method.restarts {
            let Some(mut other) = self.start_inside(kmeans::centres(self.problem.rows(), m, &mut random), m) else {
                continue;
            };
            let other_end = self.climb(&mut other, Until::Settled(RISE))?;
            if other.at.captured > now.at.captured {
                (now, end) = (other, other_end);
            }
        }
        let support = self.outside(&now.at.z);
        let expansion = self.task.expansion_of(&support)?;
        if self.problem.rows().n() < self.task.points.n() {
            // What is gained on the rows that were seen may be lost on the others.
            let still = self.still(m)?;
            if still.expansion.captured > expansion.captured {
                return Ok(still);
            }
        }
        Ok(Moved { support, expansion, converged: end == End::Done })
    }

    /// One point after the other, from as many as components: what they capture of the rows that are seen.
    fn fidelities(&self, most: usize) -> Result<Vec<(usize, f64)>> {
        let first = self.task.q.min(most);
        let picks = self.choice.exchanged(self.choice.picks(first)?)?.0;
        let mut now = self.start(self.choice.points(&picks), picks.len());
        let (all, mut found) = (self.all()?, Vec::new());
        while let Some(mut climber) = now {
            self.climb(&mut climber, Until::Settled(LOOKED_AT))?;
            found.push((climber.m(), climber.at.captured / all));
            now = if climber.m() < most { self.grown(&climber, 1)? } else { None };
        }
        Ok(found)
    }

    /// The best rows as they are: where points cannot move, or there is nothing to gain.
    fn still(&self, m: usize) -> Result<Moved> {
        let rows = match self.choice.spanning(m) {
            Some(all) => all,
            None => self.choice.rows(&self.choice.exchanged(self.choice.picks(m)?)?.0),
        };
        let support = self.task.points.select(&rows);
        let expansion = self.task.expansion_of(&support)?;
        Ok(Moved { support, expansion, converged: true })
    }

    /// Leaves the plane: the same points, free to move everywhere.
    fn everywhere(&mut self, now: &Climber) -> Result<Option<Climber>> {
        let Some(plane) = self.plane.take() else { return Ok(None) };
        let evaluations = self.problem.evaluations.clone();
        let rows = self.task.points.select(&self.rows);
        self.problem = Problem::new(self.task.kernel, rows, self.task.q, self.task.center)?;
        self.problem.evaluations = evaluations;
        Ok(self.start(plane.outside(&now.at.z), now.m()))
    }

    /// The fewest points that hold the fidelity.
    fn smallest(&mut self, fidelity: f64) -> Result<Moved> {
        let all = self.all()?;
        let mut goal = fidelity * all * (1.0 + SPARE);
        let first = self.task.q.min(self.task.points.n());
        let picks = self.choice.exchanged(self.choice.picks(first)?)?.0;
        let Some(mut now) = self.start(self.choice.points(&picks), first) else { return self.still(picks.len()) };
        // The most points that do not hold it.
        let mut failed = 0;
        loop {
            let (mut best, held) = self.search(now, goal, &mut failed)?;
            if held {
                // The number is found: what the points still hold within reach is for the model, not for the target.
                self.climb(&mut best, Until::Settled(LOOKED_AT))?;
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
                // No row adds to the points any more, or the rows that are seen cannot tell: rows as they are can.
                let (rows, still, _) = self.choice.smallest(fidelity)?;
                let sure = best.at.surely_captured() / best.at.captured;
                let held = self.task.fidelity(&rows, &still)? >= fidelity;
                let better = !held && sure * expansion.captured > still.captured;
                return Ok(match better {
                    true => Moved { support, expansion, converged: true },
                    false => Moved { support: self.task.points.select(&rows), expansion: still, converged: true },
                });
            }
            // The rows that are seen are a little kinder than all of them.
            goal = goal.max(best.at.captured) * (1.0 + 1.1 * (fidelity / found - 1.0) + SPARE);
            now = best;
        }
    }

    /// The fewest points, more than `failed`, that reach the goal, and whether any do.
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
            let fewer = now.at.to_spare(goal).clamp(1, most.min(now.m() - *failed - 1));
            let Some(mut tried) = self.shrunk(&now, fewer) else { break };
            match self.climb(&mut tried, Until::Reached(goal))? {
                End::Done => now = tried,
                _ => (*failed, most) = (tried.m(), (fewer / 2).max(1)),
            }
        }
        self.restarted(now, goal)
    }

    /// From centres of the rows, one point fewer, as often as asked for.
    fn restarted(&self, mut now: Climber, goal: f64) -> Result<(Climber, bool)> {
        let mut random = Random::new(self.task.seed, Stream::ExpansionCentres);
        for _ in 0..self.method.restarts {
            if now.m() == 1 {
                break;
            }
            let centres = kmeans::centres(self.problem.rows(), now.m() - 1, &mut random);
            let Some(mut tried) = self.start_inside(centres, now.m() - 1) else { continue };
            if self.climb(&mut tried, Until::Reached(goal))? == End::Done {
                now = tried;
            }
        }
        Ok((now, true))
    }

    /// Points where they can move.
    fn inside(&self, z: Points<'static>) -> Points<'static> {
        match &self.plane {
            Some(plane) => plane.inside(&z).0,
            None => z,
        }
    }

    /// Points that have moved, as they are for others.
    fn outside(&self, z: &Points<'static>) -> Points<'static> {
        self.plane.as_ref().map_or_else(|| z.clone(), |plane| plane.outside(z))
    }

    /// Points that are about to move, unless there are fewer than asked for or they depend on each other.
    fn start(&self, z: Points<'static>, m: usize) -> Option<Climber> {
        self.start_inside(self.inside(z), m)
    }

    fn start_inside(&self, z: Points<'static>, m: usize) -> Option<Climber> {
        let at = if z.n() == m { self.problem.at(z, 0.0) } else { None };
        Some(Climber { at: at?, memory: Vec::new() })
    }

    /// What exact kernel PCA captures, or would, of as many rows as are seen.
    fn all(&self) -> Result<f64> {
        let reference = self.task.reference()?;
        let share = self.problem.rows().n() as f64 / reference.rows_seen(self.task.points.n()) as f64;
        Ok(share * reference.captured)
    }

    /// Points that may join at a time.
    fn step_up(&self, m: usize) -> usize {
        1.max((GROWTH * m as f64) as usize)
    }

    /// How many points a goal seems to need beside those there are.
    fn missing(&self, now: &Climber, goal: f64) -> Result<usize> {
        let all = self.all()?;
        let left = |captured: f64| (1.0 - captured / all).max(1e-12);
        let times = (left(now.at.captured) / left(goal)).powf(1.0 / FALL);
        let more = (now.m() as f64 * (times - 1.0)) as usize;
        Ok(more.clamp(1, self.step_up(now.m())))
    }

    /// With more rows, those that add most.
    fn grown(&self, now: &Climber, more: usize) -> Result<Option<Climber>> {
        let picks = self.choice.picks_beside_points(&self.outside(&now.at.z), more)?;
        if picks.is_empty() {
            return Ok(None);
        }
        let (z, joined) = (&now.at.z, self.inside(self.choice.points(&picks)));
        let values = [z.values(), joined.values()].concat();
        let Some(at) = self.problem.at(Points::new(z.d(), values)?, APART) else { return Ok(None) };
        // Of the new points' curvature nothing is known.
        let mut memory = now.memory.clone();
        let size = at.z.values().len();
        memory.iter_mut().for_each(|(moved, fallen)| [moved, fallen].into_iter().for_each(|v| v.resize(size, 0.0)));
        Ok(Some(Climber { at, memory }))
    }

    /// Without the points that matter least.
    fn shrunk(&self, now: &Climber, fewer: usize) -> Option<Climber> {
        let mut order: Vec<usize> = (0..now.m()).collect();
        let losses = now.at.losses();
        order.sort_by(|&i, &j| losses[i].total_cmp(&losses[j]));
        let mut kept = order.split_off(fewer);
        kept.sort_unstable();
        let d = now.at.z.d();
        let part = |v: &[f64]| kept.iter().flat_map(|i| &v[i * d..(i + 1) * d]).copied().collect::<Vec<f64>>();
        let memory = now.memory.iter().map(|(moved, fallen)| (part(moved), part(fallen)));
        let memory = memory.filter(|(moved, fallen)| is_curved(moved, fallen)).collect();
        let at = self.problem.at(now.at.z.select(&kept), 0.0)?;
        Some(Climber { at, memory })
    }

    fn climb(&self, climber: &mut Climber, until: Until) -> Result<End> {
        self.problem.climb(climber, self.method.steps, until, self.task.watch)
    }
}

impl Climber {
    fn m(&self) -> usize {
        self.at.z.n()
    }
}

/// W and its gradient over some rows.
struct Problem {
    anchors: Anchors,
    q: usize,
    center: bool,
    /// `Σ k(x, x)`
    trace: f64,
    /// Mean distance of each column's values from their mean: the unit that it is moved in. Zero where they do not vary, and
    /// points keep their values there.
    units: Vec<f64>,
    /// Lowest and highest value that points may take: kernels that grow would send them to infinity.
    ranges: Vec<(f64, f64)>,
    /// How often W has been evaluated.
    evaluations: Cell<usize>,
    /// What no points can capture, where it is known: more would show that the kernel is no inner product there.
    ceiling: f64,
}

/// W at some points, and what its gradient there needs.
#[derive(Clone)]
struct At {
    z: Points<'static>,
    /// W
    captured: f64,
    /// λ
    variances: Vec<f64>,
    /// b, m × q
    b: Mat<f64>,
    /// `μ_i`; zero if not centred.
    means: Vec<f64>,
    /// The Cholesky factor of K_zz, and how far from depending on each other points are by it: the least share of a squared
    /// length that is not in the span of those before it.
    l: Mat<f64>,
    apart: f64,
    values: Arc<(Values, Anchors, Values)>,
}

impl At {
    /// W without what may be rounding: the nearer points are to depending on each other, the more that is.
    fn surely_captured(&self) -> f64 {
        self.captured * (1.0 - DIGITS / self.apart).max(0.0)
    }

    /// What W loses, nearly, without each point: what the components have along the direction that it alone adds.
    fn losses(&self) -> Vec<f64> {
        let m = self.z.n();
        let mut inverse = Mat::<f64>::identity(m, m);
        dense::solve_lower(self.l.as_ref(), inverse.as_mut());
        let along =
            |i: usize| self.variances.iter().enumerate().map(|(k, value)| value * self.b[(i, k)].powi(2)).sum::<f64>();
        (0..m).map(|i| along(i) / inverse.col(i).squared_norm_l2()).collect()
    }

    /// How many points could go without W falling far below the goal.
    fn to_spare(&self, goal: f64) -> usize {
        let mut losses = self.losses();
        losses.sort_by(f64::total_cmp);
        let mut spare = self.surely_captured() - goal;
        losses
            .iter()
            .take_while(|loss| {
                spare -= **loss;
                spare > 0.0
            })
            .count()
            + 1
    }
}

impl Problem {
    fn new(kernel: &Arc<dyn Kernel>, x: Points<'static>, q: usize, center: bool) -> Result<Problem> {
        let (mean, n) = (x.mean(), x.n() as f64);
        let mut units = vec![0.0; x.d()];
        let mut ranges = vec![(f64::MAX, f64::MIN); x.d()];
        for row in x.rows() {
            for (k, value) in row.iter().enumerate() {
                units[k] += (value - mean[k]).abs() / n;
                ranges[k] = (ranges[k].0.min(*value), ranges[k].1.max(*value));
            }
        }
        for (unit, (low, high)) in units.iter_mut().zip(&mut ranges) {
            // The mean of equal values may differ from them in the last bit.
            *unit = if *low < *high { *unit } else { 0.0 };
            (*low, *high) = (*low - (*high - *low), *high + (*high - *low));
        }
        let trace = diagonal(kernel, &x)?.iter().sum();
        Ok(Problem {
            anchors: Anchors::new(kernel, x),
            q,
            center,
            trace,
            units,
            ranges,
            evaluations: Cell::new(0),
            ceiling: f64::INFINITY,
        })
    }

    /// The same where points move in a plane: a row's distance from it is a factor of its values.
    fn in_plane(task: &Task, x: &Points<'static>, plane: &Plane) -> Result<Problem> {
        let whole = Problem::new(task.kernel, x.clone(), task.q, task.center)?;
        let (inside, heights) = plane.inside(x);
        let Form::Gaussian { gamma } = task.kernel.form() else { return Ok(whole) };
        let (base, f) = match task.kernel.conformal() {
            Some(conformal) => (&conformal.base, stretches(conformal, x)),
            None => (task.kernel, vec![1.0; x.n()]),
        };
        let factors = f.iter().zip(&heights).map(|(f, height)| f * (-gamma * height).exp()).collect();
        // No axis is more likely a way to go than another.
        let unit =
            whole.units.iter().sum::<f64>() / whole.units.iter().filter(|unit| **unit > 0.0).count().max(1) as f64;
        let ranges = Problem::new(base, inside.clone(), task.q, task.center)?.ranges;
        let units = vec![unit; inside.d()];
        Ok(Problem { anchors: Anchors::with_factors(base, inside, Some(factors)), units, ranges, ..whole })
    }

    fn rows(&self) -> &Points<'static> {
        self.anchors.points()
    }

    /// W at Z; nothing where points are less than this much apart.
    fn at(&self, z: Points<'static>, apart: f64) -> Option<At> {
        let own = Anchors::new(self.anchors.kernel(), z.clone());
        let inner = own.values(&z);
        let k = inner.matrix();
        let l = dense::cholesky(k.as_ref())?;
        let left = (0..z.n()).map(|i| l[(i, i)] * l[(i, i)] / k[(i, i)]).fold(1.0, f64::min);
        if left.is_nan() || left < apart {
            return None;
        }
        self.evaluations.set(self.evaluations.get() + 1);
        let values = self.anchors.values(&z);
        let (c, mean) = self.scatter(&values, &l);
        let pairs = top(&c, self.q, Accuracy { trace: self.trace, ..Accuracy::default() }, 0, &()).ok()?;
        let captured = pairs.values.iter().sum::<f64>();
        // Points so far from all rows that they hold nothing have no components, and no gradient.
        if pairs.values.is_empty() || !captured.is_finite() || captured > self.ceiling {
            return None;
        }
        let mut b = pairs.vectors;
        dense::solve_lower_transposed(l.as_ref(), b.as_mut());
        let means = dense::product(l.as_ref(), mean.as_ref()).col_as_slice(0).to_vec();
        Some(At {
            z,
            captured,
            variances: pairs.values,
            b,
            means,
            l,
            apart: left,
            values: Arc::new((values, own, inner)),
        })
    }

    /// `L⁻¹ C L⁻ᵀ` and `L⁻¹ μ`.
    fn scatter(&self, values: &Values, l: &Mat<f64>) -> (Mat<f64>, Mat<f64>) {
        let (m, n) = (l.nrows(), self.rows().n() as f64);
        let (mut c, mut mean);
        if f64::EPSILON * condition(l.as_ref()) > LOSS {
            // Row by row first: the sum would lose too many digits.
            let mut inverse = Mat::<f64>::identity(m, m);
            dense::solve_lower(l.as_ref(), inverse.as_mut());
            let (sum, sums) = self.anchors.scatter(&self.anchors.times(values, inverse.transpose()));
            (c, mean) = (sum, Mat::from_fn(m, 1, |i, _| sums[i] / n));
        } else {
            let (sum, sums) = self.anchors.scatter(values);
            (c, mean) = (sum, Mat::from_fn(m, 1, |i, _| sums[i] / n));
            dense::whiten(l.as_ref(), &mut c);
            dense::solve_lower(l.as_ref(), mean.as_mut());
        }
        if !self.center {
            mean.fill(0.0);
        }
        let c = Mat::from_fn(m, m, |i, j| c[(i.max(j), i.min(j))] - n * mean[(i, 0)] * mean[(j, 0)]);
        (c, mean)
    }

    /// ∂W/∂Z, in the order of Z's values, each per unit of its column.
    fn gradient(&self, at: &At) -> Vec<f64> {
        let (values, own, inner) = &*at.values;
        let m = at.z.n();
        let scaled = Mat::from_fn(m, at.b.ncols(), |i, k| -2.0 * at.variances[k] * at.b[(i, k)]);
        let weights = dense::product(scaled.as_ref(), at.b.transpose());
        let mut gradient = self.anchors.gradient(&at.z, values, &at.means, at.b.as_ref());
        let among = own.gradient_with(&at.z, inner, weights.as_ref());
        let units = self.units.iter().cycle();
        gradient.iter_mut().zip(among.iter().zip(units)).for_each(|(g, (among, unit))| *g = unit * (*g + among));
        gradient
    }

    /// The first of ever shorter steps along v that raises W as its slope promises; nothing if none does. None makes points
    /// depend on each other so much that W would be rounding.
    fn step(&self, from: &At, v: &[f64], slope: f64) -> Option<At> {
        let apart = from.apart.min(APART);
        let mut t = 1.0;
        for _ in 0..TRIALS {
            let along = from.z.values().iter().zip(v).zip(self.units.iter().zip(&self.ranges).cycle());
            let next = along.map(|((z, v), (unit, (low, high)))| (z + t * v * unit).clamp(*low, *high));
            let next = Points::new(from.z.d(), next.collect::<Vec<f64>>()).ok()?;
            let tried = self.at(next, apart);
            let risen = tried.as_ref().map(|at| at.captured - from.captured);
            match risen {
                Some(risen) if risen >= 1e-4 * t * slope => return tried,
                // Where the parabola through both values and the slope has its maximum.
                Some(risen) => t *= (0.5 * slope * t / (slope * t - risen)).clamp(0.1, 0.5),
                None => t *= 0.5,
            }
        }
        None
    }

    /// L-BFGS with backtracking.
    fn climb(&self, climber: &mut Climber, steps: usize, until: Until, watch: &dyn Watch) -> Result<End> {
        let reached = |at: &At| matches!(until, Until::Reached(goal) if at.surely_captured() >= goal);
        if reached(&climber.at) {
            return Ok(End::Done);
        }
        let mut g = self.gradient(&climber.at);
        let mut history = vec![climber.at.captured];
        for step in 0..steps {
            check(watch, "moving points", step as f64 / steps as f64)?;
            let Some(next) = self.next(climber, &g) else { return Ok(ended(until)) };
            let gradient = self.gradient(&next);
            let per_unit = |(moved, unit): (f64, &f64)| if *unit > 0.0 { moved / unit } else { 0.0 };
            let moved = difference(next.z.values(), climber.at.z.values()).into_iter().zip(self.units.iter().cycle());
            remember(&mut climber.memory, moved.map(per_unit).collect(), difference(&g, &gradient));
            (climber.at, g) = (next, gradient);
            let captured = climber.at.captured;
            history.push(captured);
            if reached(&climber.at) {
                return Ok(End::Done);
            }
            let before = history.len().checked_sub(PATIENCE + 1).map(|at| history[at]);
            let brought = before.map_or(f64::INFINITY, |before| captured - before);
            match until {
                Until::Reached(goal) if captured + HOPE * brought < goal => return Ok(End::Hopeless),
                Until::Settled(rise) if brought <= rise * captured => return Ok(End::Done),
                _ if brought <= RISE * captured => return Ok(ended(until)),
                _ => {}
            }
        }
        Ok(End::OutOfSteps)
    }

    /// Where the next step leads; nothing where no step is left that raises W.
    fn next(&self, climber: &mut Climber, g: &[f64]) -> Option<At> {
        if !climber.memory.is_empty() {
            let direction = quasi_newton(g, &climber.memory);
            let slope = dot(&direction, g);
            if slope > 0.0
                && let Some(next) = self.step(&climber.at, &direction, slope)
            {
                return Some(next);
            }
            // The memory misleads: once more along the gradient.
            climber.memory.clear();
        }
        let largest = g.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        if !(largest > 0.0 && largest.is_finite()) {
            return None;
        }
        let direction: Vec<f64> = g.iter().map(|v| v * FIRST / largest).collect();
        self.step(&climber.at, &direction, dot(&direction, g))
    }
}

/// What it means that W rises no more.
fn ended(until: Until) -> End {
    if let Until::Reached(_) = until { End::Hopeless } else { End::Done }
}

/// A step and by how much the gradient fell, where it is worth remembering.
fn remember(memory: &mut Vec<(Vec<f64>, Vec<f64>)>, moved: Vec<f64>, fallen: Vec<f64>) {
    if is_curved(&moved, &fallen) {
        memory.push((moved, fallen));
        if memory.len() > MEMORY {
            memory.remove(0);
        }
    }
}

/// Positive curvature, as there is where W is near a maximum.
fn is_curved(moved: &[f64], fallen: &[f64]) -> bool {
    dot(moved, fallen) > 1e-10 * dot(moved, moved).sqrt() * dot(fallen, fallen).sqrt()
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
    use crate::spectrum::Span;
    use crate::toys;

    fn problem(kernel: &Arc<dyn Kernel>, x: &Points, center: bool) -> Problem {
        Problem::new(kernel, x.slice(0..x.n()).into_owned(), 2, center).unwrap()
    }

    fn climbed(problem: &Problem, start: Points<'static>, steps: usize) -> Climber {
        let mut climber = Climber { at: problem.at(start, 0.0).unwrap(), memory: Vec::new() };
        problem.climb(&mut climber, steps, Until::Settled(RISE), &()).unwrap();
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
                    let gradient = problem.gradient(&problem.at(points(&z), 0.0).unwrap());
                    let size = gradient.iter().fold(0.0_f64, |m, g| m.max(g.abs()));
                    for (i, found) in gradient.iter().enumerate() {
                        let moved = |by: f64| {
                            let mut z = z.clone();
                            z[i] += by;
                            problem.at(points(&z), 0.0).unwrap().captured
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
        let exact = Span::new(&kernel, &x, &x, true, &()).unwrap().best(2, &()).unwrap().captured;
        let mut last = problem.at(start.clone(), 0.0).unwrap().captured;
        for steps in 1..30 {
            let w = climbed(&problem, start.clone(), steps).at.captured;
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
        let z = climbed(&problem, x.select(&[1, 2, 3]), 20).at.z;
        assert!(problem.evaluations.get() > 2 && z.rows().all(|row| row[1] == 3.0));
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
