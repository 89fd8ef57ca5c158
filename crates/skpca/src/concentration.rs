//! Outliers among the training rows, found by cross-fitted concentration steps (Rousseeuw & Van Driessen 1999).
//!
//! ```text
//! start:        the half of the rows that is nearest to φ̄
//! concentrate:  fit to them, score every row by a model that has not seen it, take those with the lowest scores:
//!               half of the rows, twice, then three quarters, twice
//! set aside:    rows that score above exp(c + 2 (c − a)), a and c the quartiles of all log scores (Tukey's fence)
//! ```
//!
//! A model with many components is close to all rows it was fitted to, outliers included: if models scored their own
//! training rows, the same rows would be selected again and again. Hence the folds. Up to a quarter of the rows cannot
//! move the limit at all, and fewer than about one in a hundred clean rows exceeds it.

use rayon::prelude::*;

use crate::error::Result;
use crate::fit::Fit;
use crate::gram::{Basis, Precision};
use crate::model::Model;
use crate::plan::{Data, Plan};
use crate::random::{Random, Stream};
use crate::rows::Rows;
use crate::sample_weight;
use crate::watch::{Watch, check};

/// Maximum number of rows in the concentration steps; the others are scored by a model of the rows kept.
const MAX_SAMPLED: usize = 5000;
/// Maximum number of rows that the initial φ̄ is the mean of.
const MEAN_ROWS: usize = 500;
/// Number of folds.
const FOLDS: usize = 3;
/// Share of the rows that is fitted in each step.
const SHARES: [f64; 4] = [0.5, 0.5, 0.75, 0.75];
/// Width of Tukey's fence in interquartile ranges above the upper quartile of the log scores.
const FENCE: f64 = 2.0;
/// Minimum number of rows; with fewer, none are set aside.
const MIN_ROWS: usize = 20;

/// The stage reported to the watch.
const STAGE: &str = "concentration";

/// Returns the numbers of the rows that belong together, and of the outliers.
pub(crate) fn split(fit: &Fit, data: Data, watch: &dyn Watch) -> Result<(Vec<usize>, Vec<usize>)> {
    let n = data.source.n();
    if n < MIN_ROWS {
        return Ok(((0..n).collect(), Vec::new()));
    }
    let mut random = Random::new(fit.seed, Stream::Concentration);
    let mut sample = random.sample(n, MAX_SAMPLED);
    random.shuffle(&mut sample);
    let mut scores = distances_to_mean(fit, data, &sample, watch)?;
    let folded = Folded { fit, data, sample: &sample, watch };
    for (step, share) in SHARES.into_iter().enumerate() {
        check(watch, STAGE, step as f64 / SHARES.len() as f64)?;
        scores = folded.scores(&lowest(&scores, (share * sample.len() as f64).ceil() as usize))?;
    }
    let limit = limit(&scores);
    let mut kept: Vec<usize> = sample.iter().zip(&scores).filter(|(_, s)| **s <= limit).map(|(row, _)| *row).collect();
    if sample.len() < n {
        kept.extend(folded.others(&kept, n, limit)?);
    }
    kept.sort_unstable();
    let aside = (0..n).filter(|row| kept.binary_search(row).is_err()).collect();
    Ok((kept, aside))
}

/// Returns `k(x, x) − 2 φ̄ᵀφ(x)` for the rows of the sample, which is their squared distance from φ̄ up to a constant,
/// with φ̄ the mean of some of them.
fn distances_to_mean(fit: &Fit, data: Data, sample: &[usize], watch: &dyn Watch) -> Result<Vec<f64>> {
    let (_, table) = Plan::with_table(fit, data, None, watch)?;
    // The sample is in random order.
    let some = &sample[..MEAN_ROWS.min(sample.len())];
    let weights = sample_weight::select(data.weights, some);
    let total = sample_weight::total(weights.as_deref(), some.len());
    let basis = Basis::new(table.base_kernel().clone(), table.rows.gather(some)?);
    let share = |i: usize, _: usize| weights.as_ref().map_or(1.0, |weights| weights[i]) / total;
    let shares = basis.weights(faer::Mat::from_fn(some.len(), 1, share));
    let rows = table.rows.gather(sample)?;
    let along = basis.product(&rows, &shares, Precision::Double);
    let distance = |(x, along): (&[f64], f64)| basis.kernel().eval(x, x) - 2.0 * along;
    Ok(rows.rows().zip(along).map(distance).collect())
}

/// Cross-fitting on a sample of rows in random order.
struct Folded<'a> {
    fit: &'a Fit,
    data: Data<'a>,
    sample: &'a [usize],
    watch: &'a dyn Watch,
}

impl Folded<'_> {
    /// Scores every row of the sample by a model of those rows at `places` that are in other folds.
    fn scores(&self, places: &[usize]) -> Result<Vec<f64>> {
        let n = self.sample.len();
        let fold = |k: usize| {
            let scored = k * n / FOLDS..(k + 1) * n / FOLDS;
            let others: Vec<usize> =
                places.iter().filter(|at| !scored.contains(at)).map(|&at| self.sample[at]).collect();
            self.model(&others)?.score(&self.data.gather(&self.sample[scored])?, Precision::Double)
        };
        let scores: Result<Vec<Vec<f64>>> = (0..FOLDS).into_par_iter().map(fold).collect();
        Ok(scores?.concat())
    }

    fn model(&self, rows: &[usize]) -> Result<Model> {
        let points = self.data.gather(rows)?;
        let labels = self.data.labels.map(|labels| labels.select(rows));
        let weights = sample_weight::select(self.data.weights, rows);
        let data = Data { source: &points, labels: labels.as_ref(), weights: weights.as_deref() };
        let target = self.fit.target.map(|target| target.at_most(rows.len()));
        let (plan, table) = Plan::with_table(&Fit { target, ..self.fit.clone() }, data, None, self.watch)?;
        plan.run_unjudged(&table, self.watch)
    }

    /// Returns the rows outside of the sample whose scores by a model of the rows `kept` are within the limit.
    fn others(&self, kept: &[usize], n: usize, limit: f64) -> Result<Vec<usize>> {
        let mut sample = self.sample.to_vec();
        sample.sort_unstable();
        let rows: Vec<usize> = (0..n).filter(|row| sample.binary_search(row).is_err()).collect();
        let model = self.model(kept)?;
        let mut belong = Vec::with_capacity(rows.len());
        for some in rows.chunks(MAX_SAMPLED) {
            let scores = model.score(&self.data.gather(some)?, Precision::Double)?;
            belong.extend(some.iter().zip(scores).filter(|(_, score)| *score <= limit).map(|(row, _)| *row));
        }
        Ok(belong)
    }
}

/// Returns the indices of the `count` lowest scores, increasing; ties go to the first.
fn lowest(scores: &[f64], count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_unstable_by(|&i, &j| scores[i].total_cmp(&scores[j]).then(i.cmp(&j)));
    order.truncate(count);
    order.sort_unstable();
    order
}

/// Returns Tukey's fence of the log scores, as a score.
fn limit(scores: &[f64]) -> f64 {
    let mut sorted = scores.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len();
    let log = |share: f64| sorted[(share * (n - 1) as f64) as usize].max(f64::MIN_POSITIVE).ln();
    let (a, c) = (log(0.25), log(0.75));
    (c + FENCE * (c - a)).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::points::Points;
    use crate::ranks::correlation;
    use crate::toys;

    fn robust() -> Fit {
        Fit { robust: true, ..Fit::detector() }
    }

    /// Returns normal rows, clean and with every tenth replaced by noise of ten standard deviations.
    fn contaminated(n: usize, d: usize, seed: u64) -> (Points<'static>, Points<'static>) {
        let clean = toys::normal(n, d, seed);
        let noise = toys::normal(n, d, seed + 1000);
        let value = |i: usize| if (i / d).is_multiple_of(10) { 10.0 * noise.values()[i] } else { clean.values()[i] };
        let values: Vec<f64> = (0..n * d).map(value).collect();
        (clean.clone(), Points::new(d, values).unwrap())
    }

    #[test]
    fn ten_percent_of_noise_does_not_change_the_ranking_of_clean_rows() {
        for (n, d) in [(500, 3), (400, 8)] {
            let (clean, dirty) = contaminated(n, d, 1);
            let kept: Vec<usize> = (0..n).filter(|i| !i.is_multiple_of(10)).collect();
            let scores = |fit: &Fit, points: &Points| {
                let model = fit.run(points, None, &()).unwrap();
                (model.score(&clean.select(&kept), Precision::Double).unwrap(), model)
            };
            let plain = Fit { robust: false, ..robust() };
            let (expected, _) = scores(&plain, &clean.select(&kept));
            let (found, model) = scores(&robust(), &dirty);
            let aside = &model.parts().report.set_aside;
            let caught = aside.iter().filter(|i| i.is_multiple_of(10)).count();
            let (robust, plain) = (correlation(&expected, &found), correlation(&expected, &scores(&plain, &dirty).0));
            assert!(robust > 0.98, "{n} {d}: {robust} {plain}");
            assert!(caught >= n / 10 - 4 && aside.len() < caught + n / 50, "{n} {d}: {aside:?}");
        }
    }

    #[test]
    fn clean_rows_are_hardly_set_aside_and_rows_keep_their_numbers() {
        for seed in 0..5 {
            let model = robust().run(&toys::normal(400, 3, seed), None, &()).unwrap();
            let (parts, aside) = (model.parts(), &model.parts().report.set_aside);
            assert!(aside.len() <= 8, "{seed}: {} of 400", aside.len());
            assert!(parts.rows.iter().flatten().all(|row| !aside.contains(row)), "{seed}");
            assert_eq!(parts.n, 400);
        }
        let (_, dirty) = contaminated(200, 2, 3);
        let model = robust().run(&dirty, None, &()).unwrap();
        let parts = model.parts();
        for (z, &row) in parts.support.rows().zip(parts.rows.as_ref().unwrap()) {
            let raw: Vec<f64> =
                z.iter().enumerate().map(|(k, v)| v * parts.columns.scale[k] + parts.columns.shift[k]).collect();
            assert!(raw.iter().zip(dirty.row(row)).all(|(a, b)| (a - b).abs() < 1e-12), "row {row}");
        }
    }

    #[test]
    fn many_rows_are_judged_by_a_sample_of_them() {
        let (_, dirty) = contaminated(6000, 2, 5);
        let model = Fit { false_alarms: None, ..robust() }.run(&dirty, None, &()).unwrap();
        let aside = &model.parts().report.set_aside;
        let caught = aside.iter().filter(|i| i.is_multiple_of(10)).count();
        assert!(caught > 500 && aside.len() - caught < 60, "{caught} of 600, {} in all", aside.len());
    }
}
