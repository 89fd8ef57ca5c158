//! Baselines without kernel PCA, judged in the same way as the models.

use skpca::kernel::KERNELS;
use skpca::method::METHODS;
use skpca::{Columns, Fit, Points, Precision, Spec};

use super::judges::Judged;
use crate::failure::Failure;

/// The score is the distance to this nearest neighbour, as in PyOD's KNN.
const NEIGHBOUR: usize = 5;

/// A baseline and its quality on held-out rows.
pub struct Baseline {
    pub name: &'static str,
    pub about: &'static str,
    pub judged: Judged,
}

/// A kind of baseline.
pub struct Kind {
    pub name: &'static str,
    pub about: &'static str,
    look: Look,
}

enum Look {
    /// It ignores the rows.
    Majority,
    /// The columns, scaled as for the fits.
    Raw,
    /// The leading principal components of these columns.
    LinearPca,
}

/// All baselines, the simplest first. Exact kernel PCA is among the methods.
pub const ALL: &[Kind] = &[
    Kind { name: "majority class", about: "always the most frequent class", look: Look::Majority },
    Kind {
        name: "raw columns",
        about: "the scaled columns themselves; score: the distance to the 5th nearest training row (KNN)",
        look: Look::Raw,
    },
    Kind {
        name: "linear PCA",
        about: "as many components with the linear kernel; score: the squared distance to their span",
        look: Look::LinearPca,
    },
];

/// The rows of one split.
pub struct Rows<'a> {
    /// A sample of the fitted rows.
    pub known: &'a Points<'a>,
    /// The held-out rows.
    pub judges: &'a Points<'a>,
    /// A sample of the held-out rows.
    pub seekers: Points<'static>,
}

/// Scores and features of a baseline.
#[derive(Default)]
pub struct View {
    /// Scores of the held-out rows.
    pub scores: Option<Vec<f64>>,
    /// The number of features, the features of the known rows and those of the seekers.
    pub features: Option<(usize, Vec<f64>, Vec<f64>)>,
}

impl Kind {
    pub fn is_majority(&self) -> bool {
        matches!(self.look, Look::Majority)
    }

    /// Computes scores and features; `None` if the baseline does not apply.
    pub fn view(&self, rows: &Rows, base: &Fit) -> Result<Option<View>, Failure> {
        match self.look {
            Look::Majority => Ok(Some(View::default())),
            Look::Raw => {
                let columns = Columns::fit(rows.known, None, base.scaling)?;
                let seen =
                    |points: &Points| -> Result<Vec<f64>, Failure> { Ok(columns.apply(points)?.values().to_vec()) };
                let (known, judges) = (seen(rows.known)?, seen(rows.judges)?);
                let scores = neighbour_distances(&known, &judges, columns.d());
                Ok(Some(View { scores: Some(scores), features: Some((columns.d(), known, seen(&rows.seekers)?)) }))
            }
            Look::LinearPca => {
                let every_row = METHODS.iter().find(|entry| entry.capabilities.keeps_all_rows);
                let plain = KERNELS.iter().find(|entry| entry.capabilities.linear);
                let (Some(method), Some(kernel)) = (every_row, plain) else { return Ok(None) };
                let (method, kernel) = (Spec::new(method.name), Spec::new(kernel.name));
                let fit = Fit { method, kernel, target: None, center: Some(true), ..base.clone() };
                let Ok(model) = fit.run(rows.known, None, &()) else { return Ok(None) };
                Ok(Some(View {
                    scores: Some(model.score(rows.judges, Precision::Double)?),
                    features: Some((
                        model.q(),
                        model.transform(rows.known, Precision::Double)?,
                        model.transform(&rows.seekers, Precision::Double)?,
                    )),
                }))
            }
        }
    }
}

/// The distance of each row to the [`NEIGHBOUR`]th nearest known row.
fn neighbour_distances(known: &[f64], rows: &[f64], d: usize) -> Vec<f64> {
    let place = NEIGHBOUR.min(known.len() / d) - 1;
    let of = |row: &[f64]| {
        let square = |other: &[f64]| other.iter().zip(row).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
        let mut squares: Vec<f64> = known.chunks_exact(d).map(square).collect();
        squares.select_nth_unstable_by(place, f64::total_cmp).1.sqrt()
    };
    rows.chunks_exact(d).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fifth_nearest_row_is_the_fifth() {
        let known = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        assert_eq!(neighbour_distances(&known, &[0.0, 3.0, 10.0], 1), [4.0, 2.0, 8.0]);
        assert_eq!(neighbour_distances(&known[..2], &[0.0], 1), [1.0], "the last if there are fewer");
    }

    #[test]
    fn linear_pca_is_a_baseline_under_any_kernel() {
        let points = skpca::toys::normal(300, 4, 0);
        let rows = Rows { known: &points, judges: &points, seekers: points.select(&[0, 1]) };
        let base = Fit { components: Some(2), kernel: Spec::new("laplacian"), ..Fit::default() };
        let kind = ALL.iter().find(|kind| kind.name == "linear PCA").unwrap();
        let Ok(Some(pca)) = kind.view(&rows, &base) else { panic!("it applies") };
        // Two components of four standardised columns leave the two smaller eigenvalues, on average.
        let mean = pca.scores.unwrap().iter().sum::<f64>() / 300.0;
        assert!(pca.features.unwrap().0 == 2 && mean > 1.5 && mean < 2.0, "{mean}");
    }
}
