//! Maximises W by L-BFGS, with early stopping when a target is out of reach.

use super::super::lbfgs::Memory;
use super::objective::{At, Objective};
use super::{APART, TOLERANCE};
use crate::dense::dot;
use crate::error::Result;
use crate::points::Points;
use crate::watch::{Watch, check};

/// Number of steps whose joint gain decides whether to stop.
const PATIENCE: usize = 5;
/// A target farther away than this multiple of that gain is out of reach.
const REACH: f64 = 15.0;
/// Maximum number of trials in a line search.
const TRIALS: usize = 20;
/// Largest change of a coordinate in the first step, in units of its column's spread.
const FIRST: f64 = 0.1;

/// The state of the optimiser: points, and the curvature along the last steps.
#[derive(Clone)]
pub(super) struct Climber {
    pub(super) at: At,
    pub(super) memory: Memory,
}

/// The stopping rule of the optimiser.
#[derive(Clone, Copy)]
pub(super) enum Until {
    /// Until W reaches this value, or the value is out of reach.
    Reached(f64),
    /// Until a few steps together increase W by less than this share.
    Settled(f64),
}

/// Why the optimiser stopped.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum End {
    /// The stopping rule was met.
    Done,
    /// The target is out of reach.
    OutOfReach,
    /// The maximum number of steps was taken.
    OutOfSteps,
}

impl Climber {
    /// Number of points.
    pub(super) fn m(&self) -> usize {
        self.at.z.n()
    }
}

impl Objective {
    /// Backtracking line search along v: takes the first of ever shorter steps that increases W sufficiently, or
    /// returns `None`. Points never become so close to linearly dependent that W would be dominated by rounding.
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
                // The maximum of the parabola through both values and the slope.
                Some(risen) => t *= (0.5 * slope * t / (slope * t - risen)).clamp(0.1, 0.5),
                None => t *= 0.5,
            }
        }
        None
    }

    /// Increases W by L-BFGS with backtracking.
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
                Until::Reached(goal) if captured + REACH * brought < goal => return Ok(End::OutOfReach),
                Until::Settled(rise) if brought <= rise * captured => return Ok(End::Done),
                _ if brought <= TOLERANCE * captured => return Ok(ended(until)),
                _ => {}
            }
        }
        Ok(End::OutOfSteps)
    }

    /// Returns the points after a number of steps, or unchanged if they cannot move.
    pub(super) fn climbed(&self, z: Points<'static>, steps: usize, watch: &dyn Watch) -> Result<Points<'static>> {
        let Some(at) = self.at(z.clone(), 0.0) else { return Ok(z) };
        let mut climber = Climber { at, memory: Memory::default() };
        self.climb(&mut climber, steps, Until::Settled(TOLERANCE), watch)?;
        Ok(climber.at.z)
    }

    /// Takes the next step; `None` if no step increases W.
    fn next(&self, climber: &mut Climber, g: &[f64]) -> Option<At> {
        if !climber.memory.is_empty() {
            let direction = climber.memory.direction(g);
            let slope = dot(&direction, g);
            if slope > 0.0
                && let Some(next) = self.step(&climber.at, &direction, slope)
            {
                return Some(next);
            }
            // The curvature in memory is misleading: restart along the gradient.
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

/// Returns how the optimisation ends if W does not increase any more.
fn ended(until: Until) -> End {
    if let Until::Reached(_) = until { End::OutOfReach } else { End::Done }
}

fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}
