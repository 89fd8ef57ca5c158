//! How well the scores of a sparse model agree with exact ones, and how many points a given agreement takes.
//!
//! ```text
//! a sample ── some rows held out ──► their exact scores by a model of the others, with every row a support point
//!                                └─► sparse scores by models of the others with 25, 50, 100, … points
//! agreement: Spearman's rank correlation of both, and their largest difference as a share of the median exact score
//! ```
//!
//! The exact Mahalanobis score needs no eigenvectors: with ω the normalised weights of the rows and Ω = diag(ω) it is
//!
//! ```text
//! k̃(x, x) − k̃ₓᵀ Ω^½ (Ω^½ K̃ Ω^½ + ε)⁻¹ Ω^½ k̃ₓ
//! ```

use std::sync::Arc;

use faer::Mat;

use crate::dense;
use crate::error::{Error, Result};
use crate::fit::{Fit, Statistic};
use crate::gram::{Basis, Precision};
use crate::kernel::Kernel;
use crate::kernel_matrix::gram;
use crate::method::{self, METHODS, Target};
use crate::model::{self, Far};
use crate::plan::{Data, Plan};
use crate::points::Points;
use crate::random::{Random, Stream};
use crate::ranks::correlation;
use crate::report::Agreement;
use crate::rows::{Part, Rows};
use crate::sample_weight;
use crate::spec::Spec;
use crate::watch::{Watch, check};

/// Maximum number of rows fitted.
const MAX_FITTED: usize = 1500;
/// Maximum number of rows scored.
const MAX_SCORED: usize = 500;
/// One in this many rows is held out and scored.
const ONE_HELD_OUT_OF: usize = 4;
/// Number of points of the first model; each further model has twice as many.
const FIRST_SIZE: usize = 25;

/// The stage reported to the watch.
const STAGE: &str = "score fidelity";

/// Returns the number of points at which the agreement of the scores reaches `asked`, or else that of all points, and
/// the agreement.
pub(crate) fn points_for(fit: &Fit, asked: f64, data: Data, watch: &dyn Watch) -> Result<(usize, Agreement)> {
    check_sized(fit)?;
    let n = data.source.n();
    let mut sample = Random::new(fit.seed, Stream::AgreementRows).sample(n, MAX_FITTED + MAX_SCORED);
    Random::new(fit.seed, Stream::AgreementRows).shuffle(&mut sample);
    let held_out = MAX_SCORED.min(sample.len() / ONE_HELD_OUT_OF);
    let (scored, fitted) = sample.split_at_mut(held_out);
    fitted.sort_unstable();
    if scored.len() < 2 || fitted.len() < 2 {
        return Err(Error::TooFewRows { rows: n, needed: 2 * ONE_HELD_OUT_OF, why: "a score fidelity".into() });
    }
    let scored = data.gather(scored)?;
    let points = data.gather(fitted)?;
    let weights = sample_weight::select(data.weights, fitted);
    let data = Data { source: &points, labels: None, weights: weights.as_deref() };
    let exact = exact_scores(fit, data, &scored, watch)?;
    let mut m = FIRST_SIZE.min(points.n());
    loop {
        check(watch, STAGE, m as f64 / points.n() as f64)?;
        let (plan, table) =
            Plan::with_table(&Fit { target: Some(Target::Support(m)), ..fit.clone() }, data, None, watch)?;
        let sparse = plan.run_unjudged(&table, watch)?.score(&scored, Precision::Double)?;
        let agreement = Agreement::of(&exact, &sparse);
        if agreement.rank_correlation >= asked {
            return Ok((m, agreement));
        }
        if m == points.n() {
            return Ok((n.min(m), agreement));
        }
        m = (2 * m).min(points.n());
    }
}

/// Rejects fits whose size is given, and methods without a size to choose.
fn check_sized(fit: &Fit) -> Result<()> {
    let entry = method::entry(&fit.method)?;
    let expected = if fit.target.is_some() {
        "a score fidelity or a size, not both"
    } else if entry.capabilities.keeps_all_rows || entry.fixes_size(&fit.method) || fit.labelled()? {
        "a method that chooses among rows without labels, and no parameter that fixes its size"
    } else {
        return Ok(());
    };
    Err(Error::parameter("score_fidelity", fit.score_fidelity.unwrap_or(1.0), expected))
}

/// Returns the scores of these rows by the same fit with every row a support point.
fn exact_scores(fit: &Fit, data: Data, scored: &Points, watch: &dyn Watch) -> Result<Vec<f64>> {
    let (plan, table) = Plan::with_table(fit, data, None, watch)?;
    if fit.statistic == Statistic::Distance {
        let entry = METHODS.iter().find(|entry| entry.capabilities.keeps_all_rows).expect("one of them does");
        let center = Some(plan.center);
        let exact = Fit { method: Spec::new(entry.name), target: None, center, ..fit.clone() };
        let (plan, table) = Plan::with_table(&exact, data, None, watch)?;
        return plan.run_unjudged(&table, watch)?.score(scored, Precision::Double);
    }
    let rows = Part::of(&table.rows, &(0..table.rows.n()).collect::<Vec<_>>())?;
    let scored = table.rows.columns().apply(scored)?.into_owned();
    mahalanobis(table.base_kernel(), &rows, &scored, plan.center)
}

/// Returns exact Mahalanobis scores, by the formula at the head of this file.
fn mahalanobis(kernel: &Arc<dyn Kernel>, rows: &Part, scored: &Points, center: bool) -> Result<Vec<f64>> {
    let (n, total) = (rows.n(), rows.weight());
    let share = |i: usize| rows.weights().map_or(1.0, |weights| weights[i]) / total;
    let shares: Vec<f64> = (0..n).map(share).collect();
    let mut k = gram(kernel, &rows.points);
    let mut across = Mat::zeros(scored.n(), n);
    Basis::new(kernel.clone(), rows.points.clone()).block(scored, across.as_mut());
    // The mean kernel value of each row with all rows, and the mean of these.
    let mean = |row: &dyn Fn(usize) -> f64| if center { (0..n).map(|j| shares[j] * row(j)).sum() } else { 0.0 };
    let means: Vec<f64> = (0..n).map(|i| mean(&|j| k[(i, j)])).collect();
    let grand = if center { dense::dot(&means, &shares) } else { 0.0 };
    let own: Vec<f64> = scored.rows().map(|x| kernel.eval(x, x)).collect();
    let offsets: Vec<f64> = (0..scored.n()).map(|i| mean(&|j| across[(i, j)])).collect();
    let root = |i: usize| shares[i].sqrt();
    k = Mat::from_fn(n, n, |i, j| root(i) * root(j) * (k[(i, j)] - means[i] - means[j] + grand));
    let noise = model::noise(kernel.as_ref()) * dense::trace(&k);
    (0..n).for_each(|i| k[(i, i)] += noise);
    let centred = |j: usize, i: usize| root(j) * (across[(i, j)] - offsets[i] - means[j] + grand);
    let mut along = Mat::from_fn(n, scored.n(), centred);
    let l =
        dense::cholesky(k.as_ref()).ok_or_else(|| Error::NotPositive { kernel: kernel.spec().name, value: -noise })?;
    dense::solve_lower(l.as_ref(), along.as_mut());
    let far = kernel.bounded().then(|| Far::new(&rows.points, noise));
    let score = |(i, x): (usize, &[f64])| {
        let length = own[i] - 2.0 * offsets[i] + grand - along.col(i).squared_norm_l2();
        length.max(0.0) + far.as_ref().map_or(0.0, |far| far.of(x))
    };
    Ok(scored.rows().enumerate().map(score).collect())
}

impl Agreement {
    fn of(exact: &[f64], sparse: &[f64]) -> Agreement {
        let mut sorted = exact.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let unit = sorted[sorted.len() / 2].max(f64::MIN_POSITIVE);
        let differences = exact.iter().zip(sparse).map(|(a, b)| (a - b).abs() / unit);
        Agreement {
            rank_correlation: correlation(exact, sparse),
            worst_difference: differences.fold(0.0, f64::max),
            rows: exact.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toys;

    /// Landmarks that are all rows give the exact score.
    #[test]
    fn the_exact_score_is_that_of_a_model_with_every_row() {
        let (rows, fresh) = (toys::normal(90, 3, 0), toys::normal(40, 3, 1));
        let weights: Vec<f64> = (0..90).map(|i| 1.0 + (i % 4) as f64).collect();
        for kernel in ["rbf,gamma=0.5", "laplacian"] {
            for (center, weights) in [(true, None), (false, None), (true, Some(&weights[..]))] {
                let fit = Fit {
                    kernel: kernel.parse().unwrap(),
                    center: Some(center),
                    false_alarms: None,
                    target: Some(Target::Support(90)),
                    ..Fit::detector()
                };
                let data = Data { source: &rows, labels: None, weights };
                let exact = exact_scores(&Fit { target: None, ..fit.clone() }, data, &fresh, &()).unwrap();
                let model = fit.run_data(data, None, &()).unwrap();
                let agreement = Agreement::of(&exact, &model.score(&fresh, Precision::Double).unwrap());
                assert!(agreement.worst_difference < 1e-5, "{kernel} {center}: {agreement:?}");
            }
        }
    }

    #[test]
    fn points_are_added_until_scores_agree_and_the_report_states_the_agreement() {
        let points = toys::normal(800, 4, 0);
        let sizes = [0.5, 0.9, 0.999].map(|asked| {
            let model = Fit { score_fidelity: Some(asked), false_alarms: None, ..Fit::detector() };
            let model = model.run(&points, None, &()).unwrap();
            let agreement = model.parts().report.score_fidelity.unwrap();
            assert!(agreement.rank_correlation >= asked && agreement.rows == 200, "{agreement:?}");
            assert_eq!(model.parts().request.as_ref().unwrap().fit.score_fidelity, Some(asked));
            model.m()
        });
        assert!(sizes[0] <= sizes[1] && sizes[1] < sizes[2] && sizes[2] <= 600, "{sizes:?}");
    }

    #[test]
    fn a_score_fidelity_that_is_not_reached_is_noted() {
        // A kernel so narrow that every row is similar to itself only.
        let fit = Fit { kernel: "rbf,gamma=1e4".parse().unwrap(), score_fidelity: Some(1.0), ..Fit::detector() };
        let model = Fit { false_alarms: None, ..fit }.run(&toys::normal(400, 3, 0), None, &()).unwrap();
        let notes = &model.parts().report.notes;
        let reached = model.parts().report.score_fidelity.unwrap().rank_correlation;
        assert!(
            reached >= 1.0 || notes.iter().any(|note| note.starts_with("score fidelity 1 requested, ")),
            "{notes:?}"
        );
    }

    #[test]
    fn given_sizes_and_methods_without_a_size_are_rejected() {
        let points = toys::normal(100, 2, 0);
        let message = |fit: Fit| {
            let fit = Fit { score_fidelity: Some(0.9), ..fit };
            fit.run(&points, None, &()).err().unwrap().to_string()
        };
        let both = message(Fit { target: Some(Target::Support(5)), ..Fit::detector() });
        assert_eq!(both, "score_fidelity = 0.9: expected a score fidelity or a size, not both");
        let all = message(Fit { method: Spec::new("exact"), ..Fit::default() });
        assert!(all.starts_with("score_fidelity = 0.9: expected a method that chooses"), "{all}");
    }
}
