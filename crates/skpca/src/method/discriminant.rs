//! Kernel discriminant analysis in the span of few points (reviewed in Li & Gao 2011, §2.2): directions with a large
//! scatter between classes and a small scatter within.
//!
//! ```text
//! S_b v = J (S_w + ρ (tr S_w / m) I) v,    S_b = Σ_c n_c (m_c − φ̄)(m_c − φ̄)ᵀ,   S_w = Σ_j (φ(x_j) − m_c(j))(φ(x_j) − m_c(j))ᵀ
//! ```
//!
//! in orthonormal coordinates of the span of the points that `greedy` chooses for all variance (`gain=trace`). There
//! are at most as many directions as classes less one. No n × n matrix is needed: S_w is the scatter of all rows less
//! that of the class means.

use std::borrow::Cow;
use std::sync::Arc;

use faer::{Mat, MatRef};

use super::greedy::Greedy;
use super::{COMPONENTS, Capabilities, Entry, Method, Size, Solution, Task};
use crate::dense;
use crate::eigen::{Accuracy, top};
use crate::error::{Error, Result};
use crate::gram::Basis;
use crate::kernel::{kernel_of, with_kernel};
use crate::labels::Labels;
use crate::parameter::{Parameter, Range};
use crate::parcel::Parcel;
use crate::points::Points;
use crate::report::Report;
use crate::rows::{Errand, Pass, fold};
use crate::spec::Spec;

/// Default ρ.
const REGULARISATION: f64 = 1e-3;

/// Scatter within classes below this share of the total is rounding error.
const ROUNDING: f64 = 1e-12;
const NOTHING_WITHIN: &str = "no class varies within itself: any direction separates them";

pub(super) const ENTRY: Entry = Entry {
    name: "discriminant",
    summary: "needs labels: directions that separate the classes, in the span of the points that greedy chooses; support \
              and fidelity apply to that span",
    source: "Li & Gao 2011",
    parameters: &[Parameter::number(
        "regularisation",
        Range::Above(0.0),
        REGULARISATION,
        "ridge added to the scatter within classes, as a share of its mean eigenvalue",
    )],
    capabilities: Capabilities { labelled: true, ..Capabilities::NONE },
    build: |fields| {
        let regularisation = fields.number("regularisation")?;
        Ok(Box::new(Discriminant { regularisation, points: Greedy::of_all_variance() }))
    },
};

#[derive(Debug)]
struct Discriminant {
    regularisation: f64,
    points: Greedy,
}

impl Method for Discriminant {
    fn fit(&self, task: &Task) -> Result<Solution> {
        let labels = task.labels.expect("a fit without labels is rejected");
        let directions = task.q.min(labels.classes() - 1);
        // Even for few directions, the span they are found in should be that of many components.
        let task = &task.with_components(task.q.max(COMPONENTS).min(task.n()));
        let Solution { support, expansion, fewer, .. } = self.points.fit(task)?;
        let chosen = support.points(task.rows)?;
        let fidelity = task.fidelity_of(&chosen, &expansion)?;
        let span = task.span(&chosen)?;
        let basis = Arc::new(Basis::new(task.kernel.clone(), chosen.select(span.kept())));
        let means = class_means(&basis, task, labels)?;
        let (values, directions) =
            self.directions(span.scatter(), span.coordinates(means).as_ref(), &labels.counts(), directions)?;
        let note = "the fidelity is that of kernel PCA on the points kept, not of the directions that separate classes";
        let report = Report {
            objective: Some(values.iter().sum()),
            rounds: 1,
            converged: true,
            notes: vec![note.into()],
            ..Report::default()
        };
        let method = Spec::new("discriminant").with("regularisation", self.regularisation);
        let (fidelity, reference) = (Some(fidelity), Some(task.reference()?.clone()));
        let solution = Solution::new(method, support, span.along(directions)?, report);
        Ok(Solution { fidelity, reference, fewer, ..solution })
    }

    fn holds_rows(&self, size: &Size) -> bool {
        self.points.holds_rows(size)
    }

    fn memory(&self, size: &Size) -> usize {
        self.points.memory(size)
    }
}

impl Discriminant {
    /// Computes the ratios J, largest first, and the directions, for classes with these `means` (m × classes, relative
    /// to the mean of `scatter`).
    fn directions(
        &self,
        scatter: &Mat<f64>,
        means: MatRef<f64>,
        counts: &[usize],
        q: usize,
    ) -> Result<(Vec<f64>, Mat<f64>)> {
        let (m, n) = (scatter.nrows(), counts.iter().sum::<usize>() as f64);
        let roots = Mat::from_fn(m, counts.len(), |i, c| (counts[c] as f64).sqrt() * means[(i, c)]);
        let mut within = scatter.clone();
        dense::subtract_product(within.as_mut(), roots.as_ref(), roots.transpose());
        let trace = dense::trace(&within);
        if trace <= ROUNDING * dense::trace(scatter) {
            return Err(Error::NoVariance { why: NOTHING_WITHIN.into() });
        }
        (0..m).for_each(|i| within[(i, i)] += self.regularisation * trace / m as f64);
        let l = dense::cholesky(within.as_ref()).ok_or_else(|| Error::NoVariance { why: NOTHING_WITHIN.into() })?;
        // The overall mean is 0 unless `scatter` is uncentred.
        let overall = |i: usize| (0..counts.len()).map(|c| counts[c] as f64 * means[(i, c)]).sum::<f64>() / n;
        let overall: Vec<f64> = (0..m).map(overall).collect();
        let mut apart = Mat::from_fn(m, counts.len(), |i, c| (counts[c] as f64).sqrt() * (means[(i, c)] - overall[i]));
        dense::solve_lower(l.as_ref(), apart.as_mut());
        let between = dense::product(apart.as_ref(), apart.transpose());
        let trace = dense::trace(&between);
        let pairs = top(&between, q, Accuracy { trace, ..Accuracy::default() }, 0, &())?;
        if pairs.values.is_empty() {
            return Err(Error::NoVariance { why: "the means of all classes coincide".into() });
        }
        let mut directions = pairs.vectors;
        dense::solve_lower_transposed(l.as_ref(), directions.as_mut());
        Ok((pairs.values, directions))
    }
}

/// Computes `(1/n_c) Σ_{j in c} k_z(x_j)`, m × classes.
fn class_means(basis: &Arc<Basis>, task: &Task, labels: &Labels) -> Result<Mat<f64>> {
    let counts = labels.counts();
    let pass = ClassSums { basis: basis.clone(), labels: Cow::Borrowed(labels), first: 0 };
    let sums = fold(task.rows, &pass, (task.watch, "class means"))?;
    Ok(Mat::from_fn(sums.nrows(), counts.len(), |i, c| sums[(i, c)] / counts[c] as f64))
}

/// The pass that computes `Σ_{j in c} k_z(x_j)`, m × classes.
struct ClassSums<'a> {
    basis: Arc<Basis>,
    /// Labels of the rows from the number `first` on.
    labels: Cow<'a, Labels>,
    first: usize,
}

/// Name of the pass in parcels.
pub(crate) const CLASS_SUMS: &str = "class sums";

/// Recreates the pass on another machine, whose rows, from the number `first` on, have these `classes`.
pub(crate) fn class_sums(mut parcel: Parcel, classes: Vec<usize>, first: usize) -> Result<Box<dyn Errand>> {
    let (m, d, kernel) = (parcel.count("m")?, parcel.count("d")?, kernel_of(&parcel)?);
    let basis = Arc::new(Basis::new(kernel, Points::new(d, parcel.take(m.saturating_mul(d))?)?));
    let labels = Labels::numbered(parcel.count("classes")?, classes)?;
    Ok(Box::new(ClassSums { basis, labels: Cow::Owned(labels), first }))
}

impl Pass for ClassSums<'_> {
    type Sum = Mat<f64>;

    fn zero(&self) -> Mat<f64> {
        Mat::zeros(self.basis.points().n(), self.labels.classes())
    }

    fn add(&self, sums: &mut Mat<f64>, block: &Points, first: usize) {
        let mut k = Mat::zeros(block.n(), sums.nrows());
        self.basis.block(block, k.as_mut());
        for i in 0..block.n() {
            let class = self.labels.of(first - self.first + i);
            sums.col_mut(class).iter_mut().zip(k.row(i).iter()).for_each(|(sum, k)| *sum += k);
        }
    }

    fn merge(&self, left: &mut Mat<f64>, right: Mat<f64>) {
        *left += right;
    }

    fn parcel(&self) -> Parcel {
        let points = self.basis.points();
        let parcel = Parcel::new(CLASS_SUMS, points.values().to_vec()).with("m", points.n()).with("d", points.d());
        with_kernel(parcel.with("classes", self.labels.classes()), self.basis.kernel())
    }

    fn numbers(&self, sum: Mat<f64>) -> Vec<f64> {
        (0..sum.ncols()).flat_map(|class| sum.col(class).iter().copied().collect::<Vec<f64>>()).collect()
    }

    fn sum(&self, numbers: Vec<f64>) -> Mat<f64> {
        MatRef::from_column_major_slice(&numbers, self.basis.points().n(), self.labels.classes()).to_owned()
    }
}
