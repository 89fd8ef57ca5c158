//! Threshold and p-values, from a summary of the scores of training rows.
//!
//! ```text
//! in sample:  threshold = a quantile of the training scores
//! held out:   p(s) = (1 + w · number of scores ≥ s) / (1 + w N),   threshold = the least t with p(s) ≤ rate for s > t
//! ```
//!
//! In-sample scores are too low, the more so the more degrees of freedom the fit has. Scores of rows by models that
//! have not seen them (see `calibration.rs`) are not: for a fresh row that is exchangeable with the training rows, `P(p
//! ≤ α) ≤ α`. The effective sample size of N dependent rows is `w N`. Beyond the highest score p is extrapolated: above
//! a score u the excesses are assumed exponential, with mean e estimated from κ = w k of them, and
//!
//! ```text
//! p(s) = p(u) (1 + (s − u) / (κ e))^−κ
//! ```
//!
//! which is the predictive distribution of an exponential excess, exact for any number of excesses.

use super::statistics::Statistics;
use crate::error::{Error, Result};
use crate::sample_weight::Copies;

/// Order statistics of the scores of training rows: threshold and p-values without storing all scores.
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
    /// Number of training rows scored.
    pub count: usize,
    /// Share of rows at or below the threshold: of training rows in sample, of fresh rows if rows were held out.
    pub quantile: f64,
    /// Rows with higher scores are novel.
    pub threshold: f64,
    /// Some of the sorted scores, increasing.
    pub values: Vec<f64>,
    /// For each of `values`, the number of all scores that are higher.
    pub above: Vec<usize>,
    /// How rows were held out; absent if the scores are in-sample.
    pub calibration: Option<Calibration>,
}

/// How rows were held out for calibration.
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
    /// Number of folds.
    pub folds: usize,
    /// Whether folds are contiguous rows in time order, with a gap to the rows that were fitted.
    pub in_time_order: bool,
    /// Effective sample size of the scores.
    pub effective: f64,
    /// Extrapolation beyond the highest score.
    pub tail: Option<Tail>,
    /// Limits of SPE and T², each of which is exceeded as often as the threshold of the score; absent in files of older
    /// versions.
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
    /// u: the score above which excesses are exponential.
    pub start: f64,
    /// e: mean excess above u.
    pub excess: f64,
    /// κ: effective number of excesses that e was estimated from.
    pub count: f64,
}

/// Number of highest scores that are all kept, and maximum number kept of the rest, on a grid of ranks.
pub(super) const KEPT_SCORES: usize = 1000;
/// Share of the scores that the tail is estimated from.
const TAIL: f64 = 0.1;

impl Scores {
    /// Summarises training scores; a share `quantile` of them lies below the threshold.
    pub(crate) fn new(mut all: Vec<f64>, quantile: f64) -> Scores {
        all.sort_by(f64::total_cmp);
        let position = quantile * (all.len() - 1) as f64;
        let (below, above) = (all[position.floor() as usize], all[position.ceil() as usize]);
        let threshold = below + (above - below) * position.fract();
        Scores { quantile, threshold, ..Scores::summary(&all) }
    }

    /// Like [`Scores::new`], for weighted rows: each score counts once per copy of its row.
    pub(crate) fn weighted(all: Vec<f64>, weights: Option<&[f64]>, quantile: f64) -> Scores {
        Scores::new(repeated(all, weights), quantile)
    }

    /// Summarises scores of held-out rows. Fresh rows exceed the threshold at `rate`.
    pub(crate) fn held_out(mut all: Vec<f64>, rate: f64, calibration: Calibration) -> Scores {
        all.sort_by(f64::total_cmp);
        let (count, effective) = (all.len(), calibration.effective);
        // The number of scores at or above a score with p ≤ rate.
        let allowed = (rate * (1.0 + effective) - 1.0) * count as f64 / effective;
        // Slightly increased below, because rates such as 0.05 are not exact in binary.
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

    /// Thins out sorted scores.
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

    /// Returns the p-value `(1 + number of scores at least as high) / (1 + number of scores)`, where both numbers are
    /// effective ones; between stored scores the larger p. Beyond the highest score p is extrapolated if the tail is
    /// known. The p-value of NaN is NaN.
    pub fn p_value(&self, score: f64) -> f64 {
        if score.is_nan() {
            return f64::NAN;
        }
        // An upper bound: the scores above the highest stored score below `score`.
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

    /// Returns the median, as accurately as the stored scores allow.
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

/// Returns the step between the ranks of scores that are kept below the highest ones.
fn step(count: usize) -> usize {
    count.saturating_sub(KEPT_SCORES).div_ceil(KEPT_SCORES).max(1)
}

/// Repeats each score once per copy of its row.
pub(crate) fn repeated(scores: Vec<f64>, weights: Option<&[f64]>) -> Vec<f64> {
    let Some(weights) = weights else { return scores };
    let copies = Copies::new(weights);
    (0..copies.count()).map(|k| scores[copies.row(k)]).collect()
}

impl Calibration {
    /// Checks the numbers, and returns whether a threshold may lie beyond the highest of `count` scores.
    fn check(&self, count: usize) -> Result<bool> {
        let Calibration { folds, effective, tail, limits, .. } = self;
        let of_tail = |tail: &Tail| tail.start >= 0.0 && tail.excess > 0.0 && tail.count > 0.0;
        let finite = |tail: &Tail| [tail.start, tail.excess, tail.count].iter().all(|v| v.is_finite());
        let limit = |value: f64| value.is_finite() && value >= 0.0;
        let sound = tail.as_ref().is_none_or(|tail| of_tail(tail) && finite(tail))
            && limits.is_none_or(|limits| limit(limits.spe) && limit(limits.t2));
        if *folds < 2 || !(*effective >= 1.0 && *effective <= count as f64) || !sound {
            return Err(Error::file("its calibration is invalid"));
        }
        Ok(tail.is_some())
    }
}

impl Tail {
    /// Estimates the tail of sorted scores with effective sample size `effective`; `None` if the highest are all equal.
    fn of(all: &[f64], effective: f64) -> Option<Tail> {
        let count = all.len();
        let excesses = ((TAIL * count as f64).ceil() as usize).clamp(1, count - 1);
        let start = all[count - 1 - excesses];
        let excess = all[count - excesses..].iter().map(|score| score - start).sum::<f64>() / excesses as f64;
        let tail = Tail { start, excess, count: (excesses as f64 * (effective / count as f64)).max(1.0) };
        (excess > 0.0).then_some(tail)
    }

    /// Returns p(u) for the effective sample size `effective`.
    fn share(&self, effective: f64) -> f64 {
        (1.0 + self.count) / (1.0 + effective)
    }

    fn p_value(&self, score: f64, effective: f64) -> f64 {
        self.share(effective) * (1.0 + (score - self.start) / (self.count * self.excess)).powf(-self.count)
    }

    /// Returns the score whose p-value is `rate`.
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
    fn scores_are_novel_if_their_p_value_is_at_most_the_rate() {
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
    fn too_few_rows_are_extrapolated_by_the_tail() {
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
    fn dependent_rows_give_a_higher_threshold() {
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
    fn few_scores_are_summarised_exactly() {
        let scores = Scores::new(vec![3.0, 1.0, 2.0, 2.0], 0.5);
        assert_eq!(scores.threshold, 2.0);
        let p = |s| (scores.p_value(s) * 5.0).round() as usize;
        assert_eq!([p(0.0), p(1.0), p(1.5), p(2.0), p(2.5), p(3.0), p(4.0)], [5, 5, 4, 4, 2, 2, 1]);
    }

    #[test]
    fn the_p_value_of_nan_is_nan() {
        let scores = Scores::new(vec![3.0, 1.0, 2.0], 0.5);
        assert!(scores.p_value(f64::NAN).is_nan());
        assert_eq!([scores.p_value(f64::NEG_INFINITY), scores.p_value(f64::INFINITY)], [1.0, 0.25]);
    }

    #[test]
    fn many_scores_are_exact_in_the_tail_and_bounded_elsewhere() {
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
