//! A model that learns on: rows are scored, then added to its moments, and its points follow the data.
//!
//! ```text
//! n, s, S, t ← λ^k (n, s, S, t) + those of k new rows, row i of which counts λ^(k − 1 − i)          then refit, m × m
//! ```
//!
//! As long as the points stay, this is exact: the model of all rows over these points. A reservoir of rows, drawn by
//! weight and age, shows when the points are no longer good enough (`support.rs`). Moments follow to new points by
//! projection, corrected on the reservoir: how far that can be off is known ([`Moments::error`]).
//!
//! Every row is scored by a model that has not seen it, so the scores of the last rows make a limit that holds for
//! fresh ones and moves with them. The limit of the fit stays beside it.

mod bytes;
mod reservoir;
mod support;

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::method::{self, Method, Target};
use crate::model::{Learned, Model, Scores};
use crate::moments::Moments;
use crate::points::Points;
use crate::sample_weight;
use crate::sums::MOST_ROWS;
use crate::watch::Watch;
use reservoir::Reservoir;
use support::{Choice, Goal};

/// Scores of so many last rows make the limit that moves …
const RECENT: usize = 1000;
/// … once there are this many, and as many as are needed for one to lie above it.
const FEWEST: usize = 100;
/// The points are reviewed when this share of the reservoir has been replaced and their number may grow.
const REVIEW_TO_GROW: f64 = 0.125;
/// The same if their number is fixed, where a review costs more than it can gain at once.
const REVIEW: f64 = 0.25;

/// How a model learns on.
///
/// ```
/// use skpca::Learning;
///
/// assert!(Learning { forget: 0.998, ..Learning::default() }.check().is_ok());
/// assert!(Learning { forget: 2.0, ..Learning::default() }.check().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Learning {
    /// λ: what all rows so far weigh once another one is learned, from above 0 to 1. The last 1 / (1 − λ) rows are
    /// those that count.
    pub forget: f64,
    /// Rows that are kept to watch the points; with none, the points stay as they are.
    pub reservoir: usize,
    /// Most points; by default as many as the fit was asked for, or half as many as there are rows in the reservoir.
    pub most: Option<usize>,
    /// Whether rows above the limit are learned too.
    pub alarms: bool,
}

impl Default for Learning {
    fn default() -> Learning {
        Learning { forget: 1.0, reservoir: 500, most: None, alarms: true }
    }
}

impl Learning {
    /// How a model learns on that was just fitted: detectors, which were asked for a rate of false alarms, do not learn
    /// rows above their limit.
    pub fn of(model: &Model) -> Learning {
        let request = model.parts().request.as_ref();
        let detects = request.is_some_and(|request| request.fit.false_alarms.is_some());
        Learning { alarms: !detects, ..Learning::default() }
    }

    /// Rejects what cannot be meant.
    pub fn check(&self) -> Result<()> {
        if !(self.forget > 0.0 && self.forget <= 1.0) {
            return Err(Error::parameter("forget", self.forget, "a number above 0 and up to 1"));
        }
        match self.most {
            Some(0) => Err(Error::parameter("most", 0, "a whole number from 1")),
            _ => Ok(()),
        }
    }
}

/// What an update did.
///
/// ```
/// use skpca::{Fit, Learning, Online, toys};
///
/// let points = toys::parabola(0);
/// let model = Fit::default().train(&points.slice(0..400))?;
/// let mut online = Online::new(model, &points.slice(0..400), None, Learning::default(), &())?;
/// let update = online.update(&points.slice(400..500), None, &())?;
/// assert_eq!((update.rows, update.learned), (100, 100));
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Update {
    /// Rows that were scored.
    pub rows: usize,
    /// Rows above the limit.
    pub alarms: usize,
    /// Rows that were learned.
    pub learned: usize,
    /// Batches at which the points moved to where they capture more.
    pub moved: usize,
    /// Points that joined …
    pub joined: usize,
    /// … and that left.
    pub left: usize,
}

impl Update {
    /// Adds what another update did.
    pub fn add(&mut self, other: &Update) {
        self.rows += other.rows;
        self.alarms += other.alarms;
        self.learned += other.learned;
        self.moved += other.moved;
        self.joined += other.joined;
        self.left += other.left;
    }
}

/// A model that learns on.
///
/// ```
/// use skpca::{Fit, Learning, Online, Precision, Target, toys};
///
/// let points = toys::parabola(0);
/// let fit = Fit { components: Some(3), target: Some(Target::Fidelity(0.95)), ..Fit::default() };
/// let model = fit.train(&points.slice(0..100))?;
/// let mut online = Online::new(model, &points.slice(0..100), None, Learning::default(), &())?;
/// for first in (100..500).step_by(50) {
///     online.update(&points.slice(first..first + 50), None, &())?;
/// }
/// assert!(online.seen() == 500 && online.model().fidelity() > 0.94);
/// # Ok::<(), skpca::Error>(())
/// ```
pub struct Online {
    model: Model,
    state: State,
}

/// All that is known beside the model.
#[derive(Clone)]
struct State {
    learning: Learning,
    moments: Moments,
    reservoir: Reservoir,
    /// Scores of the last rows, before they were learned.
    recent: Vec<f64>,
    /// The limit that the fit found.
    reference: f64,
    /// Rows that were scored, learned or not.
    seen: usize,
    goal: Goal,
    /// That of the model.
    method: Arc<dyn Method>,
}

impl Online {
    /// Goes on from a model that was just fitted to `rows`, in the units of the user's table. With weights, its
    /// components become those of the weighted rows.
    pub fn new(
        model: Model,
        rows: &Points,
        weights: Option<&[f64]>,
        learning: Learning,
        watch: &dyn Watch,
    ) -> Result<Online> {
        learning.check()?;
        let parts = model.parts();
        let mut state = State {
            moments: model.moments(watch)?,
            reservoir: Reservoir::new(parts.seed, learning.reservoir, parts.support.d()),
            recent: Vec::new(),
            reference: parts.scores.threshold,
            seen: rows.n(),
            goal: goal(&model, &learning, rows.n())?,
            method: method::build(&parts.method)?.into(),
            learning,
        };
        let scaled = parts.columns.apply(rows)?;
        state.learn(&scaled, weights, watch)?;
        state.reservoir.looked_at();
        let mut online = Online { model, state };
        match weights {
            Some(_) => online.refit(watch)?,
            None => online.model.learned(online.state.learned()),
        }
        Ok(online)
    }

    /// Goes on from a model that kept what that needs: see [`Online::into_model`].
    pub fn resume(model: Model) -> Result<Online> {
        let state = model.parts().learned.as_ref().and_then(|learned| learned.state.clone()).ok_or_else(|| {
            Error::parameter("model", "without moments", "one fitted to be updated (--updatable, updatable=True)")
        })?;
        let state = State::from_bytes(&state, method::build(&model.parts().method)?.into())?;
        model.moments(&())?.check_same_space(&state.moments)?;
        Ok(Online { model, state })
    }

    /// The model, with all that is needed to go on: its file has moments, recent scores and the rows of the reservoir.
    pub fn into_model(mut self) -> Model {
        self.model.learned(self.kept());
        self.model
    }

    /// The same of a model that goes on learning.
    pub fn stored(&self) -> Result<Model> {
        let mut model = Model::new(self.model.parts().clone())?;
        model.learned(self.kept());
        Ok(model)
    }

    fn kept(&self) -> Learned {
        Learned { state: Some(self.state.to_bytes().into()), ..self.state.learned() }
    }

    /// The model as it is now.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// How it learns, from now on: the size of the reservoir stays.
    pub fn learn_by(&mut self, learning: Learning) -> Result<()> {
        learning.check()?;
        self.state.learning = Learning { reservoir: self.state.learning.reservoir, ..learning };
        self.state.goal.most = most(&self.model, &self.state.learning);
        Ok(())
    }

    /// How it learns.
    pub fn learning(&self) -> Learning {
        self.state.learning
    }

    /// Rows that were scored so far, learned or not, the first ones included.
    pub fn seen(&self) -> usize {
        self.state.seen
    }

    /// The limit that the fit found: that of the [model](Model::threshold) moves with the rows.
    pub fn reference_threshold(&self) -> f64 {
        self.state.reference
    }

    /// Sums over all rows learned.
    pub fn moments(&self) -> &Moments {
        &self.state.moments
    }

    /// Numbers of the rows in the reservoir, counted from 0 among those learned.
    pub fn reservoir(&self) -> &[u64] {
        self.state.reservoir.numbers()
    }

    /// Scores rows, in the units of the user's table, and learns them. If it fails, nothing has changed.
    pub fn update(&mut self, rows: &Points, weights: Option<&[f64]>, watch: &dyn Watch) -> Result<Update> {
        self.state.check_room(rows.n())?;
        let x = self.model.parts().columns.apply(rows)?;
        let scores = self.model.finite_scores_of_scaled(&x)?;
        let limit = self.model.parts().scores.threshold;
        let learned: Vec<usize> = (0..x.n()).filter(|&i| self.state.learning.alarms || scores[i] <= limit).collect();
        let mut update = Update { rows: x.n(), learned: learned.len(), ..Update::default() };
        update.alarms = scores.iter().filter(|score| **score > limit).count();
        weights.map_or(Ok(()), |weights| sample_weight::check(weights, x.n()))?;
        let mut next = self.state.clone();
        next.seen += x.n();
        next.remember(&scores);
        let fidelity = if learned.len() == x.n() {
            next.learn_and_look(&x, weights, &mut update, watch)?
        } else if learned.is_empty() {
            None
        } else {
            let weights: Option<Vec<f64>> = weights.map(|all| learned.iter().map(|&i| all[i]).collect());
            next.learn_and_look(&x.select(&learned), weights.as_deref(), &mut update, watch)?
        };
        let before = std::mem::replace(&mut self.state, next);
        if let Err(error) = self.refit(watch) {
            self.state = before;
            return Err(error);
        }
        fidelity.into_iter().for_each(|fidelity| self.model.judged(fidelity));
        Ok(update)
    }

    fn refit(&mut self, watch: &dyn Watch) -> Result<()> {
        let mut model = self.model.refit_to(&self.state.moments, watch)?;
        if let Some(scores) = self.state.scores(self.model.parts().scores.quantile) {
            model.calibrated(scores);
        }
        model.learned(self.state.learned());
        self.model = model;
        Ok(())
    }
}

/// What the points are to hold.
fn goal(model: &Model, learning: &Learning, n: usize) -> Result<Goal> {
    let parts = model.parts();
    let fit = parts.request.as_ref().map(|request| request.fit.clone()).unwrap_or_default();
    let fidelity = match fit.usual_target(n)? {
        Some(Target::Fidelity(fidelity)) => Some(fidelity),
        _ => None,
    };
    let q = model.components_wanted(usize::MAX);
    Ok(Goal { q, center: parts.center, most: most(model, learning), fidelity, seed: parts.seed })
}

fn most(model: &Model, learning: &Learning) -> usize {
    let target = model.parts().request.as_ref().and_then(|request| request.fit.target);
    let asked = match target {
        Some(Target::Support(m)) => Some(m),
        _ => None,
    };
    learning.most.or(asked).unwrap_or(learning.reservoir / 2).max(model.m())
}

impl State {
    /// Whether so many more rows can be counted.
    fn check_room(&self, rows: usize) -> Result<()> {
        let counted = (self.seen as u64).max(self.reservoir.offered());
        if counted.saturating_add(rows as u64) > MOST_ROWS as u64 {
            return Err(Error::parameter("rows", counted, "a model that has seen fewer rows: no more can be counted"));
        }
        Ok(())
    }

    /// Adds rows, scaled, to moments and reservoir.
    fn learn(&mut self, x: &Points, weights: Option<&[f64]>, watch: &dyn Watch) -> Result<()> {
        self.offer(x, weights);
        self.add(x, weights, watch)
    }

    /// The same, after a look at the points: rows that call for new ones are then known over these exactly. Returns the
    /// fidelity on the reservoir, where it was measured.
    fn learn_and_look(
        &mut self,
        x: &Points,
        weights: Option<&[f64]>,
        update: &mut Update,
        watch: &dyn Watch,
    ) -> Result<Option<f64>> {
        let before = self.reservoir.offered();
        self.offer(x, weights);
        let fidelity = self.look(before, update, watch)?;
        self.add(x, weights, watch)?;
        Ok(fidelity)
    }

    fn offer(&mut self, x: &Points, weights: Option<&[f64]>) {
        for (i, row) in x.rows().enumerate() {
            self.reservoir.offer(row, weights.map_or(1.0, |weights| weights[i]), self.learning.forget);
        }
    }

    /// Adds rows to the moments, the last one with its whole weight.
    fn add(&mut self, x: &Points, weights: Option<&[f64]>, watch: &dyn Watch) -> Result<()> {
        let forget = self.learning.forget;
        if forget == 1.0 {
            return self.moments.add_scaled(x, weights, watch);
        }
        let ages = (0..x.n()).rev().map(|age| forget.powf(age as f64));
        let aged: Vec<f64> = match weights {
            None => ages.collect(),
            Some(weights) => ages.zip(weights).map(|(age, weight)| age * weight).collect(),
        };
        // What is forgotten altogether weighs the least that a number can.
        self.moments.scale(forget.powf(x.n() as f64).max(f64::MIN_POSITIVE))?;
        self.moments.add_scaled(x, Some(&aged), watch)
    }

    fn remember(&mut self, scores: &[f64]) {
        self.recent.extend(scores);
        let old = self.recent.len().saturating_sub(RECENT);
        self.recent.drain(..old);
    }

    /// A summary of the last scores, once there are enough for a limit.
    fn scores(&self, quantile: f64) -> Option<Scores> {
        let enough = self.recent.len() as f64 >= (1.0 / (1.0 - quantile)).max(FEWEST as f64);
        (enough && self.recent.len() <= self.moments.rows()).then(|| Scores::new(self.recent.clone(), quantile))
    }

    fn learned(&self) -> Learned {
        Learned { rows: self.moments.rows(), reference: self.reference, error: self.share_of_error(), state: None }
    }

    /// ε as a share of all there is, `Σ k(x, x)`.
    fn share_of_error(&self) -> f64 {
        let trace = self.moments.trace();
        if trace > 0.0 { (self.moments.error() / trace.sqrt()).min(1.0) } else { 0.0 }
    }

    /// Looks whether other points are called for, and takes them: the moments are of rows with numbers below `before`.
    fn look(&mut self, before: u64, update: &mut Update, watch: &dyn Watch) -> Result<Option<f64>> {
        let share = if self.goal.fidelity.is_some() { REVIEW_TO_GROW } else { REVIEW };
        let due = ((share * self.reservoir.size() as f64) as usize).max(1);
        if self.reservoir.changed() < due || self.reservoir.len() < 2 {
            return Ok(None);
        }
        let rows = self.reservoir.points();
        // Where points only take the place of others, rows that were looked at before would gain little by it.
        let candidates = match self.goal.fidelity {
            Some(_) => (0..rows.n()).collect(),
            None => self.reservoir.newest(),
        };
        self.reservoir.looked_at();
        let kernel = self.moments.kernel().clone();
        let points = (self.method.as_ref(), self.moments.support());
        let Choice { support, joined, left, moved, fidelity } =
            support::choose(&kernel, points, (&rows, candidates), &self.goal, watch)?;
        if joined > 0 || moved {
            let old = self.reservoir.points_before(before);
            let every = old.n() == self.moments.rows() && self.moments.weight() == old.n() as f64;
            self.moments = if every {
                let mut moments = self.moments.over(&support, watch)?;
                moments.add_scaled(&old, None, watch)?;
                moments
            } else {
                self.moments.moved_along(&support, &old, watch)?
            };
        }
        (update.moved, update.joined, update.left) = (usize::from(moved), joined, left);
        Ok(fidelity)
    }
}

#[cfg(test)]
mod tests;
