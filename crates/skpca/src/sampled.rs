//! Fits to sparse rows. Methods run on a sample of s rows in s dense coordinates:
//!
//! ```text
//! S sample, s × d sparse      S Sᵀ = L Lᵀ      rows of L: the same inner products, norms and distances, dense, s × s
//! ```
//!
//! Kernels that depend on inner products and norms only have the same values in both, so all methods, bandwidth rules,
//! fidelity and calibration work unchanged. The points are mapped back to the d columns, `z = p L⁻¹ S`, and the best
//! components over them for all rows are computed in one pass, O(entries · m).

use std::sync::Arc;

use faer::{Mat, MatRef};

use crate::blocks;
use crate::columns::{Columns, Scaling};
use crate::dense;
use crate::error::{Error, Result};
use crate::fit::Fit;
use crate::kernel::{self, Bandwidth, Kernel};
use crate::method::{self, Target};
use crate::model::{Model, Scores};
use crate::points::Points;
use crate::random::{Random, Stream};
use crate::request::Request;
use crate::skeleton::Skeleton;
use crate::sparse::{SparseBasis, SparseRows, check_kernel, needs_dense_rows};
use crate::spec::Spec;
use crate::sums::Sums;
use crate::watch::Watch;

/// Number of rows in a sample; if more, twice the number of points requested.
const SAMPLE: usize = 1000;
/// Maximum number of training rows scored.
const MAX_SCORED: usize = 20_000;
/// Ridges added to the squared norms, as a share of the largest, so that linearly dependent rows have a Cholesky
/// factor. They are tried in this order.
const RIDGES: [f64; 4] = [1e-13, 1e-11, 1e-9, 1e-7];

/// A sample of rows in dense coordinates.
struct Sample {
    /// Their numbers among all rows, ascending.
    numbers: Vec<usize>,
    /// The rows of L.
    points: Points<'static>,
}

impl Fit {
    /// Fits a model to sparse rows without making them dense: memory is needed for their entries and for points ×
    /// columns. Points are chosen, and fidelity and held-out scores measured, on a sample of 1000 rows or twice the
    /// number of points; components are the best ones over these points for all rows. The kernel must depend on inner
    /// products and norms only, columns are not scaled, and the method must not need labels or keep its own components.
    ///
    /// ```
    /// use skpca::{Fit, Scaling, SparseRows, Target};
    ///
    /// let (starts, columns): (Vec<i64>, Vec<i32>) = ((0..=90).collect(), (0..90).map(|i| i * i % 11).collect());
    /// let values: Vec<f64> = (0..90).map(|i| 1.0 + f64::from(i % 4)).collect();
    /// let rows = SparseRows::new(11, &starts, &columns, &values)?;
    /// let fit = Fit { scaling: Scaling::None, target: Some(Target::Support(4)), ..Fit::default() };
    /// let model = fit.run_sparse(&rows, None, &())?;
    /// assert_eq!((model.m(), model.transform_sparse(&rows)?.len()), (4, 90 * model.q()));
    /// # Ok::<(), skpca::Error>(())
    /// ```
    pub fn run_sparse(&self, rows: &SparseRows, names: Option<Vec<String>>, watch: &dyn Watch) -> Result<Model> {
        self.check_sparse(rows)?;
        let requested = match self.target {
            Some(Target::Support(m)) => 2 * m,
            _ => 0,
        };
        let numbers = Random::new(self.seed, Stream::SparseSample).sample(rows.n(), SAMPLE.max(requested));
        let sample = Sample::new(rows, numbers, watch)?;
        let spec = for_sparse(&self.kernel, rows);
        let bandwidth = Bandwidth { rows: Some(&sample.points), seed: self.seed };
        let kernel = self.widened(kernel::build_for(&spec, &bandwidth, rows.d())?)?;
        check_kernel(kernel.as_ref())?;
        let kernel = kernel::pinned(kernel, self.level.instructions()?);
        let chosen = Fit { kernel: kernel.spec(), ..self.clone() }.run(&sample.points, None, watch)?;
        let parts = chosen.parts();
        if parts.frame.is_some() || parts.density.is_some() {
            let expected = "one without components or a density of its own, on sparse rows: refit=true, or dense rows";
            return Err(Error::parameter("method", &parts.method.name, expected));
        }
        self.over_all_rows(rows, names, (&chosen, sample), &kernel, watch)
    }

    fn check_sparse(&self, rows: &SparseRows) -> Result<()> {
        if self.scaling != Scaling::None {
            let expected =
                "none on sparse rows: those that are centred are dense; scale them without centring beforehand";
            return Err(Error::parameter("scaling", self.scaling.name(), expected));
        }
        if self.robust {
            return Err(Error::parameter("robust", true, "dense rows: sparse ones are all fitted"));
        }
        if let Some(asked) = self.score_fidelity {
            return Err(Error::parameter(
                "score_fidelity",
                asked,
                "a size or a fidelity on sparse rows, or dense rows",
            ));
        }
        let capabilities = method::entry(&self.method)?.capabilities;
        let everything = capabilities.keeps_all_rows && rows.n() > SAMPLE;
        if capabilities.linear || capabilities.labelled || everything {
            let expected = "one that chooses points on a sample, such as landmarks, greedy or expansion; or dense rows";
            return Err(Error::parameter("method", &self.method.name, expected));
        }
        Ok(())
    }

    /// Maps the chosen points back to the original columns, and fits the best components over them to all rows.
    fn over_all_rows(
        &self,
        rows: &SparseRows,
        names: Option<Vec<String>>,
        (chosen, sample): (&Model, Sample),
        kernel: &Arc<dyn Kernel>,
        watch: &dyn Watch,
    ) -> Result<Model> {
        let old = chosen.parts();
        let numbers = old.rows.as_ref().map(|own| own.iter().map(|&i| sample.numbers[i]).collect::<Vec<_>>());
        let support = match &numbers {
            Some(numbers) => rows.dense(numbers),
            None => sample.back(rows, &old.support),
        };
        let sampled = sample.numbers.len();
        // Sample and support may each take as much memory as the sparse rows, or more.
        drop(sample);
        let skeleton = Skeleton::new(kernel, &support, watch)?;
        drop(support);
        let sums = sums(&skeleton, rows, watch)?;
        let expansion = skeleton.span_of(&sums, old.center, watch)?.best(chosen.q(), watch)?;
        if expansion.values.is_empty() {
            return Err(Error::NoVariance { why: method::NO_VARIANCE.into() });
        }
        let kept: Vec<usize> = expansion.kept.clone();
        let support = skeleton.basis.points().select(&places(&skeleton.kept, &kept));
        drop(skeleton);
        let mut parts = chosen.refitted(&sums, old.support.select(&kept), expansion)?;
        parts.support = support;
        parts.rows = numbers.map(|numbers| kept.iter().map(|&i| numbers[i]).collect());
        parts.n = rows.n();
        parts.columns = plain_columns(rows.d(), names);
        parts.request = Some(Request { fit: self.clone(), words: serde_json::Map::new() });
        if sampled < rows.n() {
            let note = format!("points and fidelity are those of a sample of {sampled} of the {} rows", rows.n());
            parts.report.notes.push(note);
        }
        let mut model = Model::with(parts, kernel.instructions())?;
        if model.parts().scores.calibration.is_none() {
            let scored = Random::new(self.seed, Stream::Scored).sample(rows.n(), MAX_SCORED);
            let all = model.score_sparse(rows)?;
            model.calibrated(Scores::new(scored.iter().map(|&i| all[i]).collect(), self.quantile));
        }
        Ok(model)
    }
}

/// Rejects kernels that cannot be used on sparse rows: those that depend on more than inner products and norms.
pub fn check_sparse(kernel: &Spec) -> Result<()> {
    if kernel::entry(kernel)?.capabilities.labelled {
        return Err(needs_dense_rows(&kernel.name));
    }
    let points = Points::new(1, vec![0.0, 1.0])?;
    check_kernel(kernel::build_with(kernel, &Bandwidth { rows: Some(&points), seed: 0 })?.as_ref())
}

impl Sample {
    fn new(rows: &SparseRows, numbers: Vec<usize>, watch: &dyn Watch) -> Result<Sample> {
        for ridge in RIDGES {
            // Recomputed per ridge: more than one is rare, so a copy is not worth its memory.
            let mut a = rows.gram(&numbers);
            let largest = (0..a.nrows()).map(|i| a[(i, i)]).fold(0.0, f64::max);
            if largest == 0.0 {
                return Err(Error::NoVariance { why: "all cells are 0".into() });
            }
            (0..a.nrows()).for_each(|i| a[(i, i)] += ridge * largest);
            let report = |done| crate::watch::check(watch, "coordinates", done);
            if let Some(l) = dense::large_cholesky(a, report)? {
                let mut values = Vec::with_capacity(l.nrows() * l.ncols());
                l.row_iter().for_each(|row| values.extend(row.iter()));
                let points = Points::new(l.ncols(), values)?;
                return Ok(Sample { numbers, points });
            }
        }
        Err(Error::Numerical { why: "the inner products of the rows overflow".into() })
    }

    /// Maps points back to the columns of the rows, `P L⁻¹ S`.
    fn back(&self, rows: &SparseRows, points: &Points) -> Points<'static> {
        let mut w = Mat::from_fn(points.d(), points.n(), |k, i| points.row(i)[k]);
        let (s, l) = (self.points.n(), self.points.values());
        dense::solve_lower_transposed(MatRef::from_row_major_slice(l, s, s), w.as_mut());
        rows.combinations(&self.numbers, w.transpose())
    }
}

/// Resolves the rules for γ that depend on the columns, because the sample has different ones.
fn for_sparse(spec: &Spec, rows: &SparseRows) -> Spec {
    let declared = || {
        let parameters = kernel::entry(spec).ok()?.parameters;
        parameters.iter().find(|parameter| parameter.name == "gamma")?.default.value()
    };
    let rule = spec.fields.get("gamma").cloned().or_else(declared);
    match rule.as_ref().and_then(|rule| rule.as_str()) {
        Some("auto") => spec.clone().with("gamma", 1.0 / rows.d() as f64),
        Some("scale") => spec.clone().with("gamma", 1.0 / (rows.d() as f64 * rows.mean_and_variance().1)),
        _ => spec.clone(),
    }
}

/// Returns the index in `kept` of each of some numbers.
fn places(kept: &[usize], numbers: &[usize]) -> Vec<usize> {
    numbers.iter().filter_map(|number| kept.iter().position(|kept| kept == number)).collect()
}

fn plain_columns(d: usize, names: Option<Vec<String>>) -> Columns {
    let (shift, scale) = (vec![0.0; d], vec![1.0; d]);
    Columns { names, scaling: Scaling::None, shift, scale, ignored: Vec::new(), ranges: None, intake: None }
}

/// Computes the sums of the skeleton over all sparse rows.
fn sums(skeleton: &Skeleton, rows: &SparseRows, watch: &dyn Watch) -> Result<Sums> {
    let basis = SparseBasis::new(skeleton.kernel().as_ref(), skeleton.basis.points())?;
    let m = basis.m();
    let mut all = blocks::watched_sum(
        rows.n(),
        (watch, "covariance"),
        || Sums::none(m),
        |sums, range| {
            let mut k = Mat::zeros(range.len(), m);
            let mut values = vec![0.0; m];
            for (i, row) in range.enumerate() {
                let own = basis.row(rows, row, &mut values);
                if !own.is_finite() || values.iter().any(|value| !value.is_finite()) {
                    return Err(Error::Overflow { kernel: skeleton.kernel().spec().name, row });
                }
                sums.trace += own;
                values.iter().enumerate().for_each(|(j, value)| k[(i, j)] = value - skeleton.shift);
            }
            if skeleton.whitens {
                dense::divide_by_transposed(k.as_mut(), skeleton.l.as_ref());
            }
            sums.rows += k.nrows();
            sums.weight += k.nrows() as f64;
            sums.sums.iter_mut().zip(k.col_iter()).for_each(|(sum, column)| *sum += column.sum());
            dense::add_squares(&mut sums.squares, k.as_ref());
            Ok(())
        },
        |left, right| left.add(&right, 1.0),
    )?;
    dense::mirror(&mut all.squares);
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Precision;
    use crate::sparse::tests::made;

    fn distance(a: &[f64], b: &[f64]) -> f64 {
        let largest = b.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
        a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / largest
    }

    #[test]
    fn a_sparse_fit_equals_the_dense_one() {
        let made = made(300, 60);
        for kernel in ["rbf", "rbf,gamma=scale", "cosine", "linear", "polynomial,degree=2"] {
            for method in ["landmarks", "greedy"] {
                let (method, kernel) = (method.parse().unwrap(), kernel.parse().unwrap());
                let target = Some(Target::Support(12));
                let fit = Fit { method, kernel, target, components: Some(4), scaling: Scaling::None, ..Fit::default() };
                let (sparse, dense) =
                    (fit.run_sparse(&made.rows(), None, &()).unwrap(), fit.run(&made.dense, None, &()).unwrap());
                let what = format!("{} {}", fit.method, fit.kernel);
                assert_eq!(sparse.parts().rows, dense.parts().rows, "{what}");
                let found = sparse.transform_sparse(&made.rows()).unwrap();
                let expected = dense.transform(&made.dense, Precision::Double).unwrap();
                assert!(distance(&found, &expected) < 1e-10, "{what}: {}", distance(&found, &expected));
                let found = sparse.score_sparse(&made.rows()).unwrap();
                let expected = dense.score(&made.dense, Precision::Double).unwrap();
                assert!(distance(&found, &expected) < 1e-10, "{what}: {}", distance(&found, &expected));
                assert!((sparse.fidelity() - dense.fidelity()).abs() < 1e-9, "{what}");
                assert!((sparse.threshold() / dense.threshold() - 1.0).abs() < 1e-9, "{what}");
            }
        }
    }

    #[test]
    fn moved_points_are_mapped_back_to_the_columns() {
        let made = made(300, 60);
        let fit = Fit { target: Some(Target::Support(6)), scaling: Scaling::None, ..Fit::default() };
        let (sparse, dense) =
            (fit.run_sparse(&made.rows(), None, &()).unwrap(), fit.run(&made.dense, None, &()).unwrap());
        assert!(sparse.parts().rows.is_none() && (sparse.fidelity() - dense.fidelity()).abs() < 1e-3);
        let answers = sparse.score_sparse(&made.rows()).unwrap();
        assert!(distance(&answers, &sparse.score(&made.dense, Precision::Double).unwrap()) < 1e-10);
    }

    #[test]
    fn detectors_are_calibrated_on_the_sample() {
        let made = made(2600, 60);
        let fit = Fit { scaling: Scaling::None, target: Some(Target::Support(20)), ..Fit::detector() };
        let model = fit.run_sparse(&made.rows(), None, &()).unwrap();
        assert!(model.parts().scores.calibration.is_some() && model.parts().n == 2600);
        let note = "points and fidelity are those of a sample of 1000 of the 2600 rows".to_string();
        assert!(model.parts().report.notes.contains(&note), "{:?}", model.parts().report.notes);
        let scores = model.score_sparse(&made.rows()).unwrap();
        let novel = scores.iter().filter(|score| model.is_novel(**score)).count();
        assert!(novel < 260, "{novel}");
        assert!(distance(&scores, &model.score(&made.dense, Precision::Double).unwrap()) < 1e-9);
    }

    #[test]
    fn unsupported_fits_to_sparse_rows_are_rejected() {
        let made = made(60, 40);
        let message = |fit: Fit| fit.run_sparse(&made.rows(), None, &()).err().unwrap().to_string();
        let plain = Fit { scaling: Scaling::None, ..Fit::default() };
        assert!(message(Fit::default()).starts_with("scaling = standard: expected none on sparse rows"));
        let of = |method: &str, kernel: &str| {
            message(Fit { method: method.parse().unwrap(), kernel: kernel.parse().unwrap(), ..plain.clone() })
        };
        assert!(of("landmarks", "laplacian").starts_with("kernel = laplacian: expected a kernel of inner products"));
        assert!(of("discriminant", "rbf").starts_with("method = discriminant: expected one that chooses points"));
        assert!(of("likelihood", "rbf").starts_with("method = likelihood: expected one without"));
        let narrow = crate::sparse::tests::made(60, 39);
        let model = plain.run_sparse(&made.rows(), None, &()).unwrap();
        assert_eq!(model.score_sparse(&narrow.rows()).err(), Some(Error::Width { found: 39, expected: 40 }));
        let scaled = Fit::default().run(&made.dense, None, &()).unwrap();
        assert!(scaled.transform_sparse(&made.rows()).unwrap_err().to_string().starts_with("scaling = standard"));
    }
}
