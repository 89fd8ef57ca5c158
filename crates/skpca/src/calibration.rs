//! Calibration by cross-fitting: thresholds from scores of training rows by models that have not seen them.
//!
//! ```text
//! rows ── folds ──► fit to the other rows, choice of points and scaling included ──► scores of the fold's own
//! ```
//!
//! A model fits its own training rows better than other rows, the more so the more degrees of freedom it has, so a
//! quantile of their scores is too low a threshold. Rows in time order depend on their neighbours: their folds are few
//! and long with a gap to the rows that are fitted, and their effective sample size is `n / (1 + 2 Σ_l ρ_l)`, with ρ_l
//! the autocorrelation of the scores' ranks.

use std::ops::Range;

use rayon::prelude::*;

use crate::columns::Table;
use crate::error::{Error, Result};
use crate::fit::{Fit, RowOrder};
use crate::gram::Precision;
use crate::method::{self, Target};
use crate::model::{Calibration, Model, Scores, Statistics, repeated};
use crate::plan::{Data, Plan, Prepared};
use crate::random::{Random, Stream};
use crate::ranks::ranks;
use crate::rows::Rows;
use crate::sample_weight;
use crate::watch::{Watch, check};

/// Maximum number of rows of a small table.
const SMALL_TABLE: usize = 1000;
/// Number of folds of a small table without time order.
const FOLDS_OF_SMALL: usize = 10;
/// Number of folds of a larger table without time order.
const FOLDS: usize = 5;
/// Number of folds of rows in time order.
const FOLDS_IN_TIME: usize = 3;
/// Gap between scored and fitted rows in time order, as a share of all rows.
const GAP: f64 = 0.04;
/// Maximum number of rows scored; more would not change the result noticeably.
const MAX_SCORED: usize = 20_000;
/// Maximum number of rows that the model of a fold is fitted to.
const MAX_FITTED: usize = 20_000;

/// Replaces threshold and p-values of `model`, which `plan` fitted to `table`, by those of held-out rows, so that fresh
/// rows exceed the threshold at `rate`.
pub(crate) fn calibrate(
    (plan, table): (&Plan, &Prepared),
    model: &mut Model,
    rate: f64,
    watch: &dyn Watch,
) -> Result<()> {
    let n = table.rows.n();
    let folds = Folds::new(&table.rows, plan.fit.row_order, plan.fit.seed)?;
    let fit = Fit {
        components: plan.fit.components,
        target: same_size(&plan.fit, model)?,
        false_alarms: None,
        ..plan.fit.clone()
    };
    let count = folds.scored.len();
    let scores = |k: usize| {
        let watch = Stage { watch, done: k as f64 / count as f64 };
        folds.scores(k, &fit, table, &watch)
    };
    let scores: Result<Vec<Vec<HeldOut>>> = if Table::is_small(n, table.rows.d()) {
        (0..count).into_par_iter().map(scores).collect()
    } else {
        (0..count).map(scores).collect()
    };
    let mut scores = match scores {
        Ok(scores) => scores.into_iter().flatten().collect::<Vec<HeldOut>>(),
        Err(Error::Interrupted) => return Err(Error::Interrupted),
        // For example if all variance is due to a single row: the others have none.
        Err(why) => {
            model.note(format!("a false-alarm rate of {rate} requested, rows cannot be held out ({why}): {IN_SAMPLE}"));
            return Ok(());
        }
    };
    scores.sort_unstable_by_key(|held| held.row);
    let rows: Vec<usize> = scores.iter().map(|held| held.row).collect();
    let statistics: Option<Vec<Statistics>> = scores.iter().map(|held| held.statistics).collect();
    let scores: Vec<f64> = scores.into_iter().map(|held| held.score).collect();
    let weights = sample_weight::select(table.rows.weights(), &rows);
    let independent = if folds.in_time_order { effective(&scores) } else { scores.len() as f64 };
    // Copies of a row are held out together, so only the inequality of the weights matters.
    let shrunk = weights.as_ref().map_or(1.0, |weights| sample_weight::effective(weights) / rows.len() as f64);
    let independent = (independent * shrunk).max(1.0);
    let calibration = Calibration {
        folds: count,
        in_time_order: folds.in_time_order,
        effective: independent,
        tail: None,
        limits: None,
    };
    notes(&calibration, rows.len(), rate, plan.fit.row_order).into_iter().for_each(|note| model.note(note));
    let held_out = |scores: Vec<f64>| Scores::held_out(repeated(scores, weights.as_deref()), rate, calibration.clone());
    let limit = |of: &dyn Fn(&Statistics) -> f64, all: &[Statistics]| held_out(all.iter().map(of).collect()).threshold;
    let mut scores = held_out(scores);
    scores.calibration.iter_mut().for_each(|calibration| {
        calibration.limits =
            statistics.as_ref().map(|all| Statistics { spe: limit(&|s| s.spe, all), t2: limit(&|s| s.t2, all) });
    });
    model.calibrated(scores);
    Ok(())
}

/// The consequence if rows cannot be held out.
const IN_SAMPLE: &str = "the threshold is a quantile of the training scores, and fresh rows exceed it more often";

/// Returns what the user should know about the rows that a threshold is based on.
fn notes(calibration: &Calibration, rows: usize, rate: f64, order: RowOrder) -> Vec<String> {
    let mut notes = Vec::new();
    let worth = calibration.effective.round();
    if calibration.in_time_order && order == RowOrder::Auto {
        let advice = "shuffle the rows, or set the row order to 'any', if their order means nothing";
        notes.push(format!("neighbouring rows are alike: taken as in time order; {advice}"));
    }
    let lowest = 1.0 / (1.0 + calibration.effective);
    if rate < lowest {
        let worth =
            if calibration.in_time_order { format!(" (worth {worth} independent ones)") } else { String::new() };
        notes.push(format!(
            "{rows} rows{worth} are too few for a false-alarm rate of {rate}, enough for {lowest:.3} or more: the \
             threshold is extrapolated from their highest scores"
        ));
    }
    notes
}

/// Returns the target of the models of folds: the size of the whole table's model, so that no fold searches for it.
fn same_size(fit: &Fit, model: &Model) -> Result<Option<Target>> {
    let entry = method::entry(&fit.method)?;
    let own = entry.capabilities.keeps_all_rows || entry.fixes_size(&fit.method);
    Ok((!own).then(|| Target::Support(model.parts().report.chosen.max(1))))
}

/// A row's score and statistics by a model that has not seen it.
struct HeldOut {
    row: usize,
    score: f64,
    statistics: Option<Statistics>,
}

/// The folds: which rows are scored together.
struct Folds {
    in_time_order: bool,
    /// Row numbers of each fold, increasing.
    scored: Vec<Vec<usize>>,
}

impl Folds {
    fn new(rows: &dyn Rows, order: RowOrder, seed: u64) -> Result<Folds> {
        let n = rows.n();
        let in_time_order = match order {
            RowOrder::Auto => look_time_ordered(rows)?,
            RowOrder::Time => true,
            RowOrder::Any => false,
        };
        let mut random = Random::new(seed, Stream::HeldOutRows);
        let mut scored = random.sample(n, MAX_SCORED);
        let count = if in_time_order {
            FOLDS_IN_TIME
        } else {
            random.shuffle(&mut scored);
            if n <= SMALL_TABLE { FOLDS_OF_SMALL } else { FOLDS }
        };
        let count = count.min(n);
        let fold = |k: usize| {
            let mut rows = scored[stretch(k, count, scored.len())].to_vec();
            rows.sort_unstable();
            rows
        };
        Ok(Folds { in_time_order, scored: (0..count).map(fold).collect() })
    }

    /// Returns the rows that the model of fold k is fitted to: all others, or a sample of them.
    fn fitted(&self, k: usize, n: usize, seed: u64) -> Vec<usize> {
        let scored = &self.scored[k];
        let mut rows = Random::new(seed, Stream::FittedRows).sample(n, MAX_FITTED);
        if self.in_time_order {
            let gap = ((GAP * n as f64) as usize).max(1);
            let apart = scored[0].saturating_sub(gap)..(scored[scored.len() - 1] + 1).saturating_add(gap);
            rows.retain(|row| !apart.contains(row));
        } else {
            rows.retain(|row| scored.binary_search(row).is_err());
        }
        rows
    }

    /// Returns the rows of fold k with their scores by a model of the others.
    fn scores(&self, k: usize, fit: &Fit, table: &Prepared, watch: &dyn Watch) -> Result<Vec<HeldOut>> {
        check(watch, STAGE, 0.0)?;
        let rows = self.fitted(k, table.rows.n(), fit.seed);
        // The other folds may have fewer rows than the points requested.
        let fit = Fit { target: fit.target.map(|target| target.at_most(rows.len())), ..fit.clone() };
        let others = table.rows.raw().gather(&rows)?;
        let labels = table.labels.map(|labels| labels.select(&rows));
        let weights = sample_weight::select(table.rows.weights(), &rows);
        let data = Data { source: &others, labels: labels.as_ref(), weights: weights.as_deref() };
        let (plan, others) = Plan::with_table(&fit, data, None, watch)?;
        let model = plan.run_unjudged(&others, watch)?;
        let scored = table.rows.raw().gather(&self.scored[k])?;
        let scores = model.score(&scored, Precision::Double)?;
        // Methods that keep their own components have correlated ones, for which these statistics are not defined.
        let statistics = model.statistics(&scored).ok();
        let held = |(i, (&row, score)): (usize, (&usize, f64))| HeldOut {
            row,
            score,
            statistics: statistics.as_ref().map(|statistics| statistics[i]),
        };
        Ok(self.scored[k].iter().zip(scores).enumerate().map(held).collect())
    }
}

/// Returns part k of n rows split into `count` parts.
fn stretch(k: usize, count: usize, n: usize) -> Range<usize> {
    k * n / count..(k + 1) * n / count
}

/// Maximum number of rows whose neighbours are compared.
const COMPARED_ROWS: usize = 4000;
/// Distance in rows to the farther neighbour.
const FARTHER: usize = 20;
/// Rows are in time order if the next row is closer than the farther one this many standard deviations more often than
/// half of the time.
const DEVIATIONS: f64 = 5.0;

/// Returns whether rows are more like the next row than like one a little farther on, which indicates time order.
/// Tables that are sorted by class do not qualify: within a class, both neighbours are equally close.
fn look_time_ordered(rows: &dyn Rows) -> Result<bool> {
    let n = rows.n();
    if n < 3 * FARTHER {
        return Ok(false);
    }
    let (last, count) = (n - FARTHER, COMPARED_ROWS.min(n - FARTHER));
    let triples: Vec<usize> = (0..count).map(|i| i * last / count).flat_map(|i| [i, i + 1, i + FARTHER]).collect();
    let triples = rows.gather(&triples)?;
    let distance =
        |i: usize, j: usize| -> f64 { triples.row(i).iter().zip(triples.row(j)).map(|(a, b)| (a - b) * (a - b)).sum() };
    let nearer = |i: usize| match distance(3 * i, 3 * i + 1).partial_cmp(&distance(3 * i, 3 * i + 2)) {
        Some(std::cmp::Ordering::Less) => 1.0,
        Some(std::cmp::Ordering::Greater) => 0.0,
        _ => 0.5,
    };
    let nearer = (0..count).map(nearer).sum::<f64>();
    Ok(nearer > 0.5 * (count as f64 + DEVIATIONS * (count as f64).sqrt()))
}

/// Returns the effective sample size of scores in the order of their rows: `n / (1 + 2 Σ_l ρ_l)`, summed up to the
/// first lag without correlation.
fn effective(scores: &[f64]) -> f64 {
    let n = scores.len();
    let ranks = ranks(scores);
    let variance: f64 = ranks.iter().map(|r| r * r).sum();
    if variance <= 0.0 {
        return n as f64;
    }
    let correlation = |lag: usize| ranks.iter().zip(&ranks[lag..]).map(|(a, b)| a * b).sum::<f64>() / variance;
    let sum: f64 = (1..n / 4).map(correlation).take_while(|rho| *rho > UNCORRELATED).sum();
    (n as f64 / (1.0 + 2.0 * sum)).max(1.0)
}

/// Autocorrelations up to this are considered noise.
const UNCORRELATED: f64 = 0.05;

/// The stage reported to the watch.
const STAGE: &str = "held-out scores";

/// Reports the fits of all folds as one stage.
struct Stage<'a> {
    watch: &'a dyn Watch,
    done: f64,
}

impl Watch for Stage<'_> {
    fn at(&self, _: &str, _: f64) -> bool {
        self.watch.at(STAGE, self.done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Spec;
    use crate::{Points, format, toys};

    /// Returns a first-order autoregressive series: each row is ρ times the previous one plus noise.
    fn autoregressive(n: usize, d: usize, rho: f64, seed: u64) -> Points<'static> {
        let noise = toys::normal(n, d, seed);
        let mut values = noise.values().to_vec();
        (d..n * d).for_each(|i| values[i] += rho * values[i - d]);
        Points::new(d, values).unwrap()
    }

    #[test]
    fn time_order_is_detected() {
        for seed in 0..20 {
            assert!(!look_time_ordered(&toys::normal(100, 3, seed)).unwrap(), "{seed}");
            assert!(look_time_ordered(&autoregressive(200, 3, 0.8, seed)).unwrap(), "{seed}");
            // Two classes, one after the other.
            let mut sorted = toys::normal(400, 3, seed).values().to_vec();
            sorted[600..].iter_mut().for_each(|v| *v += 10.0);
            assert!(!look_time_ordered(&Points::new(3, sorted).unwrap()).unwrap(), "{seed}");
        }
        assert!(!look_time_ordered(&Points::new(1, vec![1.0; 200]).unwrap()).unwrap());
    }

    #[test]
    fn effective_sample_size_of_correlated_scores() {
        // (1 − ρ) / (1 + ρ) of 20,000.
        for (rho, expected) in [(0.0, 20_000.0), (0.5, 6667.0), (0.9, 1053.0)] {
            let found = effective(autoregressive(20_000, 1, rho, 1).values());
            assert!((0.8..1.2).contains(&(found / expected)), "{rho}: {found}");
        }
        assert_eq!(effective(&[1.0; 50]), 50.0);
    }

    #[test]
    fn folds_cover_every_row_once_and_keep_their_gap() {
        let rows = toys::normal(300, 2, 0);
        for order in [RowOrder::Time, RowOrder::Any] {
            let folds = Folds::new(&rows, order, 5).unwrap();
            let mut all = folds.scored.concat();
            all.sort_unstable();
            assert_eq!(all, (0..300).collect::<Vec<_>>());
            for (k, scored) in folds.scored.iter().enumerate() {
                let fitted = folds.fitted(k, 300, 5);
                let gap = if order == RowOrder::Time { 12 } else { 0 };
                assert!(scored.iter().all(|i| fitted.iter().all(|j| i.abs_diff(*j) > gap)), "{order}");
                assert!(fitted.len() + scored.len() + 2 * gap >= 300);
            }
        }
    }

    fn fit(method: &str, rate: f64) -> Fit {
        let target = (method != "exact").then_some(Target::Support(8));
        let (method, false_alarms) = (Spec::new(method), Some(rate));
        Fit { method, target, false_alarms, components: Some(3), ..Fit::default() }
    }

    #[test]
    fn false_alarm_rate_is_the_requested_one() {
        let fresh = toys::normal(2000, 3, 1000);
        for name in ["expansion", "greedy", "landmarks", "exact", "l21"] {
            let share = |fit: &Fit, seed: u64| {
                let model = fit.run(&toys::normal(60, 3, seed), None, &()).unwrap();
                let scores = model.score(&fresh, Precision::Double).unwrap();
                scores.iter().filter(|score| **score > model.parts().scores.threshold).count() as f64 / 2000.0
            };
            let mean = |fit: &Fit| (0..20).map(|seed| share(fit, seed)).sum::<f64>() / 20.0;
            let held_out = mean(&fit(name, 0.1));
            assert!((0.07..0.13).contains(&held_out), "{name}: {held_out}");
            let in_sample = mean(&Fit { false_alarms: None, quantile: 0.9, ..fit(name, 0.1) });
            assert!(in_sample > 0.13, "{name}: {in_sample}");
        }
    }

    #[test]
    fn calibrated_models_have_the_same_bits_on_any_number_of_threads_and_in_files() {
        let points = autoregressive(150, 3, 0.9, 2);
        for (method, rate) in [("greedy", 0.1), ("expansion", 0.001)] {
            let bytes = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let model = pool.install(|| fit(method, rate).run(&points, None, &()).unwrap());
                let mut bytes = Vec::new();
                format::write(&model, &mut bytes).unwrap();
                assert!(model.parts().scores.calibration.as_ref().is_some_and(|calibration| calibration.in_time_order));
                assert_eq!(format::read(&bytes[..]).unwrap().parts(), model.parts());
                bytes
            };
            assert!(bytes(1) == bytes(3), "{method}");
        }
    }

    #[test]
    fn rows_that_cannot_be_held_out_leave_the_threshold_in_sample() {
        let mut values = vec![1.0; 40];
        values[39] = 2.0;
        let points = Points::new(2, values).unwrap();
        let fit = Fit { method: Spec::new("landmarks"), false_alarms: Some(0.1), ..Fit::default() };
        let model = fit.run(&points, None, &()).unwrap();
        assert_eq!(model.parts().scores.calibration, None);
        let note = model.parts().report.notes.last().unwrap();
        assert!(note.starts_with("a false-alarm rate of 0.1 requested, rows cannot be held out"), "{note}");
        let two = Points::new(1, vec![0.0, 1.0]).unwrap();
        assert!(fit.run(&two, None, &()).unwrap().parts().scores.calibration.is_none());
    }

    #[test]
    fn calibration_can_be_interrupted() {
        struct Until;
        impl Watch for Until {
            fn at(&self, stage: &str, _: f64) -> bool {
                stage != STAGE
            }
        }
        let found = fit("greedy", 0.1).run(&toys::normal(50, 2, 0), None, &Until);
        assert_eq!(found.err(), Some(Error::Interrupted));
    }
}
