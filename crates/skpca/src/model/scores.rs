//! Threshold and p-values, from a summary of the scores of training rows.
//!
//! ```text
//! in sample:  threshold = a quantile of the training scores
//! held out:   p(s) = (1 + w · number of scores ≥ s) / (1 + w N),   threshold = the least t with p(s) ≤ rate for s > t
//! ```
//!
//! Training scores are too low, by as much as the fit had freedom. Scores of rows by models that have not seen them
//! (see `calibration.rs`) are not: for a fresh row that is exchangeable with the training rows, `P(p ≤ α) ≤ α`. N rows
//! that depend on each other are worth `w N` independent ones. Beyond the highest score, where so few rows say nothing,
//! p follows the tail: above its start u the excesses are taken as exponential, of mean e estimated from κ = w k of
//! them, and
//!
//! ```text
//! p(s) = p(u) (1 + (s − u) / (κ e))^−κ
//! ```
//!
//! which is the predictive distribution of an exponential excess: exact for any number of excesses, not only for many.

use super::statistics::Statistics;
use crate::error::{Error, Result};
use crate::sample_weight::Copies;

/// Order statistics of the scores of training rows: a threshold and p-values without keeping them all.
///
/// ```
/// use skpca::{Fit, toys};
///
/// let model = Fit::default().train(&toys::parabola(0))?;
/// let scores = &model.parts().scores;
/// assert_eq!((scores.count, scores.threshold), (500, model.threshold()));
/// assert!(scores.p_value(2.0 * scores.threshold) < scores.p_value(0.5 * scores.threshold));
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Scores {
    /// Training rows that were scored.
    pub count: usize,
    /// Share of them at or below the threshold; where they are held out, of fresh rows.
    pub quantile: f64,
    /// Scores above it are novel.
    pub threshold: f64,
    /// Some of the sorted scores, increasing …
    pub values: Vec<f64>,
    /// … and how many of all are higher.
    pub above: Vec<usize>,
    /// How rows were held out; absent where the scores are in-sample.
    pub calibration: Option<Calibration>,
}

/// How scores became those of rows that their models had not seen.
///
/// ```
/// use skpca::{Fit, toys};
///
/// let model = Fit { false_alarms: Some(0.05), ..Fit::default() }.train(&toys::parabola(0))?;
/// let calibration = model.parts().scores.calibration.as_ref().expect("rows were held out");
/// assert!(calibration.folds >= 3 && !calibration.in_time_order);
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// Models that were fitted to the other rows.
    pub folds: usize,
    /// Whether folds are stretches of rows in time order, apart from the rows that were fitted.
    pub in_time_order: bool,
    /// How many independent rows the scores are worth.
    pub effective: f64,
    /// What lies beyond the highest score.
    pub tail: Option<Tail>,
    /// What each statistic alone exceeds as often as the score exceeds its threshold; files of older versions do not
    /// know.
    pub limits: Option<Statistics>,
}

/// Exponential excesses above a high score.
///
/// ```
/// use skpca::{Fit, toys};
///
/// // A rate too small for 500 rows: the threshold is extrapolated from the highest scores.
/// let model = Fit { false_alarms: Some(0.0005), ..Fit::default() }.train(&toys::parabola(0))?;
/// let tail = model.parts().scores.calibration.as_ref().and_then(|calibration| calibration.tail);
/// assert!(tail.is_some_and(|tail| model.threshold() > tail.start));
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tail {
    /// u
    pub start: f64,
    /// e: mean excess above it.
    pub excess: f64,
    /// κ: how many independent excesses it was estimated from.
    pub count: f64,
}

/// The highest scores are kept one by one, the rest on a grid of ranks: this many of each.
pub(super) const KEPT_SCORES: usize = 1000;
/// Share of the scores that the tail is estimated from.
const TAIL: f64 = 0.1;

impl Scores {
    /// Summarises training scores; `quantile` of them lie below the threshold.
    pub(crate) fn new(mut all: Vec<f64>, quantile: f64) -> Scores {
        all.sort_by(f64::total_cmp);
        let position = quantile * (all.len() - 1) as f64;
        let (below, above) = (all[position.floor() as usize], all[position.ceil() as usize]);
        let threshold = below + (above - below) * position.fract();
        Scores { quantile, threshold, ..Scores::summary(&all) }
    }

    /// The same of rows that count differently: each score as often as its row has copies.
    pub(crate) fn weighted(all: Vec<f64>, weights: Option<&[f64]>, quantile: f64) -> Scores {
        Scores::new(repeated(all, weights), quantile)
    }

    /// Summarises scores of rows that were held out. Fresh rows are above the threshold as often as `rate` says.
    pub(crate) fn held_out(mut all: Vec<f64>, rate: f64, calibration: Calibration) -> Scores {
        all.sort_by(f64::total_cmp);
        let (count, effective) = (all.len(), calibration.effective);
        // p ≤ rate allows so many scores at or above.
        let allowed = (rate * (1.0 + effective) - 1.0) * count as f64 / effective;
        // A hair more, for rates such as 0.05 that are no sums of powers of two.
        let mut scores = Scores { quantile: 1.0 - rate, calibration: Some(calibration), ..Scores::summary(&all) };
        scores.threshold = if allowed >= 0.0 {
            all[count - 1 - ((allowed * (1.0 + 1e-12)) as usize).min(count - 1)]
        } else {
            let tail = Tail::of(&all, effective);
            scores.calibration.iter_mut().for_each(|calibration| calibration.tail = tail);
            tail.map_or(all[count - 1], |tail| tail.quantile(rate, effective).max(all[count - 1]))
        };
        scores
    }

    /// The sorted scores, thinned out.
    fn summary(all: &[f64]) -> Scores {
        let count = all.len();
        let step = step(count);
        let kept = |i: &usize| i.is_multiple_of(step) || i + KEPT_SCORES >= count;
        let ranks: Vec<usize> = (0..count).filter(kept).collect();
        let above = |i: &usize| count - all.partition_point(|v| *v <= all[*i]);
        Scores {
            count,
            quantile: 0.5,
            threshold: 0.0,
            above: ranks.iter().map(above).collect(),
            values: ranks.iter().map(|&i| all[i]).collect(),
            calibration: None,
        }
    }

    /// `(1 + number of scores at least as high) / (1 + number of scores)`, both as many independent rows as they are
    /// worth; between stored scores the larger p. Beyond the highest, where the tail is known, lower still. NaN is as
    /// high as nothing: its p is NaN.
    pub fn p_value(&self, score: f64) -> f64 {
        if score.is_nan() {
            return f64::NAN;
        }
        // As high as `score` are at most those above the highest stored score below it.
        let at_least = match self.values.partition_point(|v| *v < score) {
            0 => self.count,
            i => self.above[i - 1],
        };
        let Some(Calibration { effective, tail, .. }) = self.calibration else {
            return (1.0 + at_least as f64) / (1.0 + self.count as f64);
        };
        let p = (1.0 + at_least as f64 * (effective / self.count as f64)) / (1.0 + effective);
        match tail {
            Some(tail) if at_least == 0 => p.min(tail.p_value(score, effective)),
            _ => p,
        }
    }

    /// About half of the scores are lower: as exact as the scores that are kept.
    pub(crate) fn median(&self) -> f64 {
        let middle = self.above.partition_point(|above| 2 * above > self.count);
        self.values[middle.min(self.values.len() - 1)]
    }

    pub(crate) fn check(&self) -> Result<()> {
        let increasing = self.values.windows(2).all(|w| w[0] <= w[1]);
        let decreasing = self.above.windows(2).all(|w| w[0] >= w[1]);
        let inside = self.above.iter().all(|&c| c < self.count);
        let kept = self.count.saturating_sub(KEPT_SCORES).div_ceil(step(self.count)) + self.count.min(KEPT_SCORES);
        let sound = self.values.len() == kept && self.above.len() == kept && kept > 0;
        let finite = self.values.iter().chain([&self.threshold, &self.quantile]).all(|v| v.is_finite());
        if !(increasing && decreasing && inside && sound && finite) {
            return Err(Error::file("the training scores are not in order"));
        }
        if !(self.quantile > 0.0 && self.quantile < 1.0) {
            return Err(Error::file(format!("its quantile is {}, expected a number between 0 and 1", self.quantile)));
        }
        let (lowest, highest) = (self.values[0], self.values[self.values.len() - 1]);
        let beyond = match &self.calibration {
            Some(calibration) => calibration.check(self.count)?,
            None => false,
        };
        if lowest >= 0.0 && self.threshold >= lowest && (self.threshold <= highest || beyond) {
            Ok(())
        } else {
            Err(Error::file(format!("its threshold {} is not among the training scores", self.threshold)))
        }
    }
}

/// Of `count` sorted scores every so many-th is kept below the highest ones.
fn step(count: usize) -> usize {
    count.saturating_sub(KEPT_SCORES).div_ceil(KEPT_SCORES).max(1)
}

/// Each score as often as its row has copies.
pub(crate) fn repeated(scores: Vec<f64>, weights: Option<&[f64]>) -> Vec<f64> {
    let Some(weights) = weights else { return scores };
    let copies = Copies::new(weights);
    (0..copies.count()).map(|k| scores[copies.row(k)]).collect()
}

impl Calibration {
    /// Whether a threshold may lie beyond the highest of `count` scores.
    fn check(&self, count: usize) -> Result<bool> {
        let Calibration { folds, effective, tail, limits, .. } = self;
        let of_tail = |tail: &Tail| tail.start >= 0.0 && tail.excess > 0.0 && tail.count > 0.0;
        let finite = |tail: &Tail| [tail.start, tail.excess, tail.count].iter().all(|v| v.is_finite());
        let limit = |value: f64| value.is_finite() && value >= 0.0;
        let sound = tail.as_ref().is_none_or(|tail| of_tail(tail) && finite(tail))
            && limits.is_none_or(|limits| limit(limits.spe) && limit(limits.t2));
        if *folds < 2 || !(*effective >= 1.0 && *effective <= count as f64) || !sound {
            return Err(Error::file("its calibration is none that a fit makes"));
        }
        Ok(tail.is_some())
    }
}

impl Tail {
    /// The tail of sorted scores that are worth `effective` independent ones; nothing where none of them stands out.
    fn of(all: &[f64], effective: f64) -> Option<Tail> {
        let count = all.len();
        let excesses = ((TAIL * count as f64).ceil() as usize).clamp(1, count - 1);
        let start = all[count - 1 - excesses];
        let excess = all[count - excesses..].iter().map(|score| score - start).sum::<f64>() / excesses as f64;
        let tail = Tail { start, excess, count: (excesses as f64 * (effective / count as f64)).max(1.0) };
        (excess > 0.0).then_some(tail)
    }

    /// p(u), with `effective` independent rows.
    fn share(&self, effective: f64) -> f64 {
        (1.0 + self.count) / (1.0 + effective)
    }

    fn p_value(&self, score: f64, effective: f64) -> f64 {
        self.share(effective) * (1.0 + (score - self.start) / (self.count * self.excess)).powf(-self.count)
    }

    /// The score whose p-value is `rate`.
    fn quantile(&self, rate: f64, effective: f64) -> f64 {
        self.start + self.count * self.excess * ((self.share(effective) / rate).powf(1.0 / self.count) - 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Random, Stream};

    fn exchangeable(count: usize) -> Calibration {
        Calibration { folds: 5, in_time_order: false, effective: count as f64, tail: None, limits: None }
    }

    #[test]
    fn novel_is_what_has_a_p_value_up_to_the_rate() {
        let all: Vec<f64> = (1..=99).map(f64::from).collect();
        for rate in [0.01, 0.02, 0.05, 0.1, 0.5] {
            let scores = Scores::held_out(all.clone(), rate, exchangeable(99));
            assert_eq!(scores.calibration, Some(exchangeable(99)));
            for s in (0..=200).map(|s| f64::from(s) / 2.0) {
                assert_eq!(s > scores.threshold, scores.p_value(s) <= rate + 1e-12, "{rate} {s} {}", scores.threshold);
            }
            assert!(scores.check().is_ok());
        }
    }

    #[test]
    fn too_few_rows_follow_the_tail() {
        let mut random = Random::new(3, Stream::Tests);
        let mut novel = [0; 2];
        for _ in 0..2000 {
            let mut exponential = || -(1.0 - random.uniform()).ln();
            let all: Vec<f64> = (0..40).map(|_| exponential()).collect();
            for (novel, rate) in novel.iter_mut().zip([0.01, 0.002]) {
                let scores = Scores::held_out(all.clone(), rate, exchangeable(40));
                assert!(scores.calibration.as_ref().unwrap().tail.is_some() && scores.threshold >= scores.values[39]);
                assert!(
                    ((scores.p_value(scores.threshold * (1.0 + 1e-12)) / rate) - 1.0).abs() < 1e-6
                        || scores.threshold == scores.values[39]
                );
                *novel += (0..50).filter(|_| exponential() > scores.threshold).count();
            }
        }
        let shares = novel.map(|novel| novel as f64 / 1e5);
        assert!((0.007..0.012).contains(&shares[0]) && (0.0012..0.0026).contains(&shares[1]), "{shares:?}");
    }

    #[test]
    fn rows_that_depend_on_each_other_count_for_less() {
        let all: Vec<f64> = (1..=300).map(f64::from).collect();
        let alone = Scores::held_out(all.clone(), 0.05, exchangeable(300));
        let held = Scores::held_out(all.clone(), 0.05, Calibration { effective: 30.0, ..exchangeable(300) });
        assert!(held.threshold > alone.threshold && held.p_value(250.0) > alone.p_value(250.0));
        assert_eq!(held.p_value(300.5), 1.0 / 31.0);
        let equal = Scores::held_out(vec![0.0; 20], 0.01, exchangeable(20));
        assert_eq!((equal.threshold, equal.p_value(1.0)), (0.0, 1.0 / 21.0));
        assert!(equal.check().is_ok());
    }

    #[test]
    fn scores_summarise_exactly_when_few() {
        let scores = Scores::new(vec![3.0, 1.0, 2.0, 2.0], 0.5);
        assert_eq!(scores.threshold, 2.0);
        let p = |s| (scores.p_value(s) * 5.0).round() as usize;
        assert_eq!([p(0.0), p(1.0), p(1.5), p(2.0), p(2.5), p(3.0), p(4.0)], [5, 5, 4, 4, 2, 2, 1]);
    }

    #[test]
    fn a_score_that_is_no_number_has_no_p_value() {
        let scores = Scores::new(vec![3.0, 1.0, 2.0], 0.5);
        assert!(scores.p_value(f64::NAN).is_nan());
        assert_eq!([scores.p_value(f64::NEG_INFINITY), scores.p_value(f64::INFINITY)], [1.0, 0.25]);
    }

    #[test]
    fn many_scores_keep_the_tail_and_bound_the_rest() {
        let all: Vec<f64> = (0..50_000).map(|i| i as f64).collect();
        let scores = Scores::new(all, 0.95);
        assert!((scores.threshold - 0.95 * 49_999.0).abs() < 1e-9);
        assert!(scores.values.len() <= 2 * KEPT_SCORES + 1);
        for s in [0.0, 17.5, 12_345.6, 48_999.5, 49_500.0, 49_999.0, 60_000.0] {
            let truth = (1.0 + (0..50_000).filter(|&i| i as f64 >= s).count() as f64) / 50_001.0;
            let found = scores.p_value(s);
            assert!(found >= truth - 1e-12 && found <= truth + 0.0011, "{s}: {found} {truth}");
            if s >= 49_000.0 {
                assert!((found - truth).abs() < 1e-12, "{s}: the tail is exact");
            }
        }
    }
}
