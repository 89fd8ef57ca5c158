//! The energy rule of Zhang, Wang & Ma 2010 (AKPCA; APCA with the linear kernel): the points farthest from the mean.
//!
//! ```text
//! e_i = ‖φ(x_i) − φ̄‖²,  E = Σ e_i        the fewest points, largest e first, that hold (1 − γ) E
//! β: eigenvalues of Σ_kept (φ(x_i) − φ̄)(φ(x_i) − φ̄)ᵀ      the fewest components that hold (1 − γ) Σ β
//! J = 1 − Σ_{k ≤ q} β_k / E  ≤  1 − (1 − γ)²  ≤  α          γ = α/2 (the paper's), or 1 − √(1 − α): then the bound is α
//! ```
//!
//! J is the energy that the paper's components lose, counted on the kept points alone; on all points they lose no more.
//! Those components hold φ̄, and with it every point. Ours are the best in the span of the kept points, usually better, but
//! J does not bound what they lose: both numbers are reported.
//!
//! What the rule does: it keeps the points farthest from the mean, so outliers first; and where the bandwidth is so small
//! that all points are equally far, it keeps (1 − γ) n of them, whatever the data. The kernel's own dimension is used: with
//! the linear kernel everything is O(n d²), and no more than d points need to be stored.

use faer::Mat;

use super::parameters::{BY_TARGET, RANK};
use super::search;
use super::shared::Scattered;
use super::{
    Capabilities, DEPENDENT, Entry, Method, NO_VARIANCE, Report, Size, Solution, Support, Target, Task, usual_rank,
};
use crate::blocks;
use crate::dense;
use crate::eigen::{Accuracy, top};
use crate::error::{Error, Result};
use crate::factor::{Factor, diagonal};
use crate::parameter::{Domain, Parameter, Range};
use crate::scatter::Scatter;
use crate::spec::Spec;
use crate::spectrum::Expansion;
use crate::watch::{Watch, check};

/// Sums that differ by this share of the whole are equal.
const SLACK: f64 = 1e-12;

pub(super) const ENTRY: Entry = Entry {
    name: "energy",
    summary: "the points farthest from the mean, until they hold enough of the variance",
    source: "Zhang, Wang & Ma 2010",
    parameters: &[ALPHA, SPLIT, RANK],
    capabilities: Capabilities::NONE,
    build: |fields| {
        let alpha = fields.optional_number("alpha")?;
        let split = match fields.choice("split")? {
            "half" => Split::Half,
            _ => Split::Sharp,
        };
        Ok(Box::new(Energy { alpha, split, rank: fields.optional_count("rank")? }))
    },
};

const ALPHA: Parameter = Parameter::optional(
    "alpha",
    Domain::Number(Range::Below(0.0, 1.0)),
    BY_TARGET,
    "the share of the variance that may be lost",
)
.fixing_size();

const SPLIT: Parameter = Parameter::choice(
    "split",
    &["half", "sharp"],
    "half: half of alpha for points, half for components, as in the paper; sharp: the bound is alpha itself",
);

/// How α is shared between points and components.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Split {
    /// `γ = α/2`
    Half,
    /// `γ = 1 − √(1 − α)`
    Sharp,
}

impl Split {
    fn share(self, alpha: f64) -> f64 {
        match self {
            Split::Half => alpha / 2.0,
            Split::Sharp => 1.0 - (1.0 - alpha).sqrt(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Split::Half => "half",
            Split::Sharp => "sharp",
        }
    }
}

#[derive(Debug)]
struct Energy {
    alpha: Option<f64>,
    split: Split,
    rank: Option<usize>,
}

impl Method for Energy {
    fn fit(&self, task: &mut Task) -> Result<Solution> {
        if self.alpha.is_some() {
            task.refuse_target("alpha")?;
        }
        // α promises something of the whole energy, so the factor has to hold it.
        let rank = self.rank.or(self.alpha.map(|_| task.points.n()));
        let scattered = task.scattered(usual_rank(rank, task.points.n(), task.target))?;
        let Scattered { factor, t, mean } = &*scattered;
        let ranking = Ranking::new(task, factor, mean)?;
        let (rows, expansion, beta) = match (self.alpha, task.aim()) {
            (Some(alpha), _) => {
                let gamma = self.split.share(alpha);
                let rows = ranking.rows(ranking.holding(gamma));
                let beta = components(task, factor, mean, &rows, gamma)?;
                task.q = beta.len();
                // The factor knows what as many components of exact kernel PCA capture: nobody has to find out again.
                task.leading(factor, t)?;
                let expansion = task.expansion(&rows, None)?;
                (rows, expansion, beta)
            }
            (None, Target::Support(m)) => {
                let rows = ranking.rows(m);
                let expansion = task.expansion(&rows, None)?;
                let beta = leading(task, &kept_scatter(factor, mean, &rows, task.watch)?)?;
                (rows, expansion, beta)
            }
            (None, Target::Fidelity(fidelity)) => {
                let (rows, expansion) = ranking.smallest(task, factor, t, fidelity)?;
                let beta = leading(task, &kept_scatter(factor, mean, &rows, task.watch)?)?;
                (rows, expansion, beta)
            }
        };
        let bound = 1.0 - beta.iter().sum::<f64>() / ranking.total;
        let residual = 1.0 - expansion.captured / ranking.total;
        // With a target it is the points that decide; the paper's split would need an α above 1 for few of them.
        let (alpha, split) = match self.alpha {
            Some(alpha) => (alpha, self.split),
            None => (1.0 - (1.0 - ranking.left_by(rows.len())).powi(2), Split::Sharp),
        };
        let mut report = Report { objective: Some(bound), rounds: 1, converged: true, ..Report::default() };
        report.notes.push(format!("of the energy, the rule's own components lose {bound:.6}, these {residual:.6}"));
        if let Some(alpha) = self.alpha.filter(|alpha| !task.asked && bound > alpha + SLACK) {
            let rank = factor.rank();
            report
                .notes
                .push(format!("that is more than alpha = {alpha}: a factor of rank {rank} does not hold the rest"));
        }
        Ok(Solution {
            method: Spec::new("energy").with("alpha", alpha).with("split", split.name()).with("rank", factor.rank()),
            support: Support::Rows(rows),
            expansion,
            density: None,
            fidelity: None,
            fewer: DEPENDENT,
            report,
        })
    }

    fn memory(&self, size: &Size) -> usize {
        let rank = self.rank.or(self.alpha.map(|_| size.n));
        let rank = usual_rank(rank, size.n, size.support.map(Target::Support)).min(size.dimension);
        let points = size.support.unwrap_or(if self.alpha.is_some() { size.n } else { 10 * size.q }).min(size.n);
        let kept = points.min(size.dimension);
        8 * (size.n * (rank + 3) + 4 * rank * rank + points * size.d + 4 * kept * kept)
    }
}

/// The points, those that hold most energy first.
struct Ranking {
    order: Vec<usize>,
    energies: Vec<f64>,
    total: f64,
}

impl Ranking {
    /// `e_i = k(x_i, x_i) − 2 f_i·f̄ + ‖f̄‖²`: the factor gives the means alone, the rest is exact.
    fn new(task: &Task, factor: &Factor, mean: &[f64]) -> Result<Ranking> {
        let norm: f64 = mean.iter().map(|v| v * v).sum();
        let products = factor.product(Mat::from_fn(mean.len(), 1, |k, _| mean[k]).as_ref());
        let energies: Vec<f64> = diagonal(task.kernel, task.points)?
            .iter()
            .zip(products.col(0).iter())
            .map(|(k, product)| (k - 2.0 * product + norm).max(0.0))
            .collect();
        let total: f64 = energies.iter().sum();
        if total <= SLACK * factor.trace {
            return Err(Error::NoVariance { why: NO_VARIANCE.into() });
        }
        let mut order: Vec<usize> = (0..energies.len()).collect();
        order.sort_by(|&i, &j| energies[j].total_cmp(&energies[i]).then(i.cmp(&j)));
        Ok(Ranking { order, energies, total })
    }

    /// The fewest points that hold all of the energy but the share `gamma`.
    fn holding(&self, gamma: f64) -> usize {
        fewest(self.order.iter().map(|&i| self.energies[i]), (1.0 - gamma) * self.total)
    }

    /// The share of the energy that the first `count` points do not hold.
    fn left_by(&self, count: usize) -> f64 {
        self.order[count..].iter().map(|&i| self.energies[i]).sum::<f64>() / self.total
    }

    /// The first `count`, increasing.
    fn rows(&self, count: usize) -> Vec<usize> {
        let mut rows = self.order[..count].to_vec();
        rows.sort_unstable();
        rows
    }

    /// The fewest points whose span holds the fidelity: on the factor first, then on the data.
    fn smallest(&self, task: &Task, factor: &Factor, t: &Mat<f64>, fidelity: f64) -> Result<(Vec<usize>, Expansion)> {
        let n = self.order.len();
        let all: f64 = task.leading(factor, t)?.values.iter().sum();
        let enough = |count: usize| -> Result<bool> {
            check(task.watch, "search", 0.0)?;
            Ok(factor.captured(t, &self.order[..count], None, task.q)? >= fidelity * all)
        };
        // What a span captures grows with it: doubling, then bisection. All of it is held by all points alone.
        let (mut low, mut high) = if fidelity < 1.0 - 1e-9 { (0, task.q.min(n)) } else { (n - 1, n) };
        while high < n && !enough(high)? {
            (low, high) = (high, (2 * high).min(n));
        }
        (high, _) = search::smallest(low, high, (), |count| Ok(enough(count)?.then_some(())))?;
        // The factor is a little kinder than the data.
        loop {
            let rows = self.rows(high);
            let expansion = task.expansion(&rows, None)?;
            if high == n || task.fidelity(&rows, &expansion)? >= fidelity {
                return Ok((rows, expansion));
            }
            high = (high + 1 + high / 20).min(n);
        }
    }
}

/// `Σ (f_i − f̄)(f_i − f̄)ᵀ` over some rows.
fn kept_scatter(factor: &Factor, mean: &[f64], rows: &[usize], watch: &dyn Watch) -> Result<Mat<f64>> {
    let sum = blocks::watched_sum(
        rows.len(),
        (watch, "energy"),
        || Scatter::<f64>::new(mean.len()),
        |sum, part| {
            let mut f = factor.rows_of(&rows[part]);
            mean.iter().enumerate().for_each(|(k, mean)| f.col_mut(k).iter_mut().for_each(|v| *v -= mean));
            sum.add_rows(f.as_ref());
        },
        |sum, other| sum.merge(&other),
    )?;
    Ok(sum.into_parts().0)
}

/// The eigenvalues of the components that the rule keeps: as many as the user asked for, or the fewest that hold all of
/// the kept energy but the share `gamma`.
fn components(task: &Task, factor: &Factor, mean: &[f64], rows: &[usize], gamma: f64) -> Result<Vec<f64>> {
    let scatter = kept_scatter(factor, mean, rows, task.watch)?;
    if task.asked {
        return leading(task, &scatter);
    }
    let (values, _) = dense::eigen(scatter.as_ref())?;
    let count = fewest(values.iter().copied(), (1.0 - gamma) * values.iter().sum::<f64>());
    Ok(values[..count].to_vec())
}

/// How many of the first values sum to `wanted`, at least one.
fn fewest(values: impl ExactSizeIterator<Item = f64>, wanted: f64) -> usize {
    let most = values.len().max(1);
    let sums = values.scan(0.0, |sum, v| {
        *sum += v;
        Some(*sum)
    });
    (1 + sums.take_while(|sum| *sum < (1.0 - SLACK) * wanted).count()).min(most)
}

fn leading(task: &Task, scatter: &Mat<f64>) -> Result<Vec<f64>> {
    Ok(top(scatter, task.q, Accuracy::default(), task.seed, task.watch)?.values)
}
