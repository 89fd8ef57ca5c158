//! Points move uphill: steps of L-BFGS, and when there is no use in more of them.

use super::super::lbfgs::Memory;
use super::objective::{At, Objective};
use super::{APART, RISE};
use crate::dense::dot;
use crate::error::Result;
use crate::points::Points;
use crate::watch::{Watch, check};

/// So many steps together tell whether more will help, …
const PATIENCE: usize = 5;
/// … and a target further away than this many times what they brought is out of reach.
const HOPE: f64 = 15.0;
/// Trials of a step before it is given up.
const TRIALS: usize = 20;
/// The first step moves a coordinate by this much of its column's spread, at most.
const FIRST: f64 = 0.1;

/// Points on their way up, with the curvature that their last steps met.
#[derive(Clone)]
pub(super) struct Climber {
    pub(super) at: At,
    pub(super) memory: Memory,
}

/// When a climb ends.
#[derive(Clone, Copy)]
pub(super) enum Until {
    /// W is this much, or will not be.
    Reached(f64),
    /// A few steps raise W by less than this share.
    Settled(f64),
}

/// How it ended.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum End {
    /// As it was meant to.
    Done,
    /// The target is out of reach.
    Hopeless,
    /// There were no steps left.
    OutOfSteps,
}

impl Climber {
    /// Number of points.
    pub(super) fn m(&self) -> usize {
        self.at.z.n()
    }
}

impl Objective {
    /// The first of ever shorter steps along v that raises W as its slope promises; nothing if none does. None makes
    /// points depend on each other so much that W would be rounding.
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

    /// Raises W by steps of L-BFGS with backtracking.
    pub(super) fn climb(&self, climber: &mut Climber, steps: usize, until: Until, watch: &dyn Watch) -> Result<End> {
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
            climber.memory.remember(moved.map(per_unit).collect(), difference(&g, &gradient));
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

    /// The points after some steps; where they are if they cannot move.
    pub(super) fn climbed(&self, z: Points<'static>, steps: usize, watch: &dyn Watch) -> Result<Points<'static>> {
        let Some(at) = self.at(z.clone(), 0.0) else { return Ok(z) };
        let mut climber = Climber { at, memory: Memory::default() };
        self.climb(&mut climber, steps, Until::Settled(RISE), watch)?;
        Ok(climber.at.z)
    }

    /// Where the next step leads; nothing where no step is left that raises W.
    fn next(&self, climber: &mut Climber, g: &[f64]) -> Option<At> {
        if !climber.memory.is_empty() {
            let direction = climber.memory.direction(g);
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

fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}
