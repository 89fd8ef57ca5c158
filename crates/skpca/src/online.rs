//! Online learning: rows are scored, then added to the model's moments, and the support points adapt to the data.
//!
//! ```text
//! n, s, S, t ← λ^k (n, s, S, t) + those of k new rows, row i with weight λ^(k − 1 − i)          then refit, m × m
//! ```
//!
//! As long as the support does not change, this is exact: it gives the model of all rows over these points. A reservoir
//! of rows, sampled by weight and age, shows when the points are no longer good enough (`support.rs`). The moments are
//! then projected onto the new points and corrected on the reservoir, with a known error bound ([`Moments::error`]).
//!
//! Every row is scored by a model that has not seen it, so the scores of recent rows give a threshold that holds for
//! fresh rows and moves with them. The threshold of the original fit is kept beside it.

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

/// Number of recent scores from which the moving threshold is computed.
const RECENT_SCORES: usize = 1000;
/// Minimum number of recent scores for a moving threshold. It also takes enough of them that one is expected above it.
const MIN_RECENT_SCORES: usize = 100;
/// Share of the reservoir that must have been replaced before the support is reconsidered, if points may join.
const REVIEW_SHARE: f64 = 0.125;
/// The same if the number of points is fixed: reviews are most of the cost then, and half as many do as well.
const FIXED_REVIEW_SHARE: f64 = 0.25;

/// The parameters of online learning.
///
/// ```
/// use skpca::Learning;
///
/// assert!(Learning { forget: 0.998, ..Learning::default() }.check().is_ok());
/// assert!(Learning { forget: 2.0, ..Learning::default() }.check().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Learning {
    /// Forgetting factor λ, 0 < λ ≤ 1: the weight of all earlier rows is multiplied by it for every row learned. The
    /// effective memory is the last 1 / (1 − λ) rows.
    pub forget: f64,
    /// Number of rows kept to judge the support points; with 0, the points never change.
    pub reservoir: usize,
    /// Maximum number of support points. Default: the number requested for the fit, or half the size of the reservoir.
    pub most: Option<usize>,
    /// Whether rows above the threshold are learned too.
    pub alarms: bool,
}

impl Default for Learning {
    fn default() -> Learning {
        Learning { forget: 1.0, reservoir: 500, most: None, alarms: true }
    }
}

impl Learning {
    /// Returns the defaults for a model that was just fitted: detectors, that is, fits with a false-alarm rate, do not
    /// learn rows above their threshold.
    pub fn of(model: &Model) -> Learning {
        let request = model.parts().request.as_ref();
        let detects = request.is_some_and(|request| request.fit.false_alarms.is_some());
        Learning { alarms: !detects, ..Learning::default() }
    }

    /// Rejects invalid parameters.
    pub fn check(&self) -> Result<()> {
        if !(self.forget > 0.0 && self.forget <= 1.0) {
            return Err(Error::parameter("forget", self.forget, "a number above 0 and up to 1"));
        }
        match self.most {
            Some(0) => Err(Error::parameter("most", 0, "an integer ≥ 1")),
            _ => Ok(()),
        }
    }
}

/// The outcome of an update.
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
    /// Number of rows scored.
    pub rows: usize,
    /// Number of rows above the threshold.
    pub alarms: usize,
    /// Number of rows learned.
    pub learned: usize,
    /// Number of reviews at which the points were moved.
    pub moved: usize,
    /// Number of support points added.
    pub joined: usize,
    /// Number of support points removed.
    pub left: usize,
}

impl Update {
    /// Adds the counts of another update.
    pub fn add(&mut self, other: &Update) {
        self.rows += other.rows;
        self.alarms += other.alarms;
        self.learned += other.learned;
        self.moved += other.moved;
        self.joined += other.joined;
        self.left += other.left;
    }
}

/// A model that is updated as rows arrive.
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

/// Everything that learning needs beside the model.
#[derive(Clone)]
struct State {
    learning: Learning,
    moments: Moments,
    reservoir: Reservoir,
    /// Scores of the last rows, computed before they were learned.
    recent: Vec<f64>,
    /// The threshold of the original fit.
    reference: f64,
    /// Number of rows scored, learned or not.
    seen: usize,
    goal: Goal,
    /// The method of the model, which may move its points.
    method: Arc<dyn Method>,
}

impl Online {
    /// Continues from a model that was just fitted to `rows`, which are in the units of the user's table. With weights,
    /// its components become those of the weighted rows.
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

    /// Continues from a model that stores the state of online learning, as [`Online::into_model`] returns it.
    pub fn resume(model: Model) -> Result<Online> {
        let state = model.parts().learned.as_ref().and_then(|learned| learned.state.clone()).ok_or_else(|| {
            Error::parameter("model", "without moments", "one fitted to be updated (--updatable, updatable=True)")
        })?;
        let state = State::from_bytes(&state, method::build(&model.parts().method)?.into())?;
        model.moments(&())?.check_same_space(&state.moments)?;
        Ok(Online { model, state })
    }

    /// Returns the model with the state needed to continue: its file holds the moments, the recent scores and the rows
    /// of the reservoir.
    pub fn into_model(mut self) -> Model {
        self.model.learned(self.kept());
        self.model
    }

    /// Like [`Online::into_model`], as a copy.
    pub fn stored(&self) -> Result<Model> {
        let mut model = Model::new(self.model.parts().clone())?;
        model.learned(self.kept());
        Ok(model)
    }

    fn kept(&self) -> Learned {
        Learned { state: Some(self.state.to_bytes().into()), ..self.state.learned() }
    }

    /// Returns the current model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Changes the parameters of learning; the size of the reservoir stays the same.
    pub fn learn_by(&mut self, learning: Learning) -> Result<()> {
        learning.check()?;
        self.state.learning = Learning { reservoir: self.state.learning.reservoir, ..learning };
        self.state.goal.most = most(&self.model, &self.state.learning);
        Ok(())
    }

    /// Returns the parameters of learning.
    pub fn learning(&self) -> Learning {
        self.state.learning
    }

    /// Returns the number of rows scored so far, learned or not, including those of the original fit.
    pub fn seen(&self) -> usize {
        self.state.seen
    }

    /// Returns the threshold of the original fit; that of the [model](Model::threshold) moves with the rows.
    pub fn reference_threshold(&self) -> f64 {
        self.state.reference
    }

    /// Returns the moments of all rows learned.
    pub fn moments(&self) -> &Moments {
        &self.state.moments
    }

    /// Returns the numbers of the rows in the reservoir, counted from 0 among the rows learned.
    pub fn reservoir(&self) -> &[u64] {
        self.state.reservoir.numbers()
    }

    /// Scores rows, which are in the units of the user's table, and learns them. An update that fails changes nothing.
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

/// Returns the goal that the support points have to meet.
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
    /// Checks that `rows` more rows can be counted.
    fn check_room(&self, rows: usize) -> Result<()> {
        let counted = (self.seen as u64).max(self.reservoir.offered());
        if counted.saturating_add(rows as u64) > MOST_ROWS as u64 {
            return Err(Error::parameter("rows", counted, "a model that has seen fewer rows: no more can be counted"));
        }
        Ok(())
    }

    /// Adds scaled rows to moments and reservoir.
    fn learn(&mut self, x: &Points, weights: Option<&[f64]>, watch: &dyn Watch) -> Result<()> {
        self.offer(x, weights);
        self.add(x, weights, watch)
    }

    /// Like [`State::learn`], but reconsiders the support before the rows enter the moments, so that rows which require
    /// new points are represented over them exactly. Returns the fidelity on the reservoir if it was measured.
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

    /// Adds rows to the moments, discounted by age; the last one has its full weight.
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
        // The factor must stay positive even if it underflows.
        self.moments.scale(forget.powf(x.n() as f64).max(f64::MIN_POSITIVE))?;
        self.moments.add_scaled(x, Some(&aged), watch)
    }

    fn remember(&mut self, scores: &[f64]) {
        self.recent.extend(scores);
        let old = self.recent.len().saturating_sub(RECENT_SCORES);
        self.recent.drain(..old);
    }

    /// Returns a summary of the recent scores if there are enough for a threshold.
    fn scores(&self, quantile: f64) -> Option<Scores> {
        let enough = self.recent.len() as f64 >= (1.0 / (1.0 - quantile)).max(MIN_RECENT_SCORES as f64);
        (enough && self.recent.len() <= self.moments.rows()).then(|| Scores::new(self.recent.clone(), quantile))
    }

    fn learned(&self) -> Learned {
        Learned { rows: self.moments.rows(), reference: self.reference, error: self.share_of_error(), state: None }
    }

    /// Returns ε relative to `√Σ k(x, x)`.
    fn share_of_error(&self) -> f64 {
        let trace = self.moments.trace();
        if trace > 0.0 { (self.moments.error() / trace.sqrt()).min(1.0) } else { 0.0 }
    }

    /// Reconsiders the support if enough of the reservoir has changed, and replaces points if that helps. The moments
    /// are those of rows with numbers below `before`.
    fn look(&mut self, before: u64, update: &mut Update, watch: &dyn Watch) -> Result<Option<f64>> {
        let share = if self.goal.fidelity.is_some() { REVIEW_SHARE } else { FIXED_REVIEW_SHARE };
        let due = ((share * self.reservoir.size() as f64) as usize).max(1);
        if self.reservoir.changed() < due || self.reservoir.len() < 2 {
            return Ok(None);
        }
        let rows = self.reservoir.points();
        // If points are only exchanged, rows that were candidates before would gain little.
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
