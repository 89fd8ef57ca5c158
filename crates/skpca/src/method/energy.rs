//! The energy rule of Zhang, Wang & Ma 2010 (AKPCA; APCA with the linear kernel): the points farthest from the mean.
//!
//! ```text
//! e_i = ‖φ(x_i) − φ̄‖²,  E = Σ e_i        the fewest points, largest e first, that sum to (1 − γ) E
//! β: eigenvalues of Σ_kept (φ(x_i) − φ̄)(φ(x_i) − φ̄)ᵀ    the fewest components that sum to (1 − γ) Σ β
//! J = 1 − Σ_{k ≤ q} β_k / E  ≤  1 − (1 − γ)²  ≤  α          γ = α/2 (the paper's), or 1 − √(1 − α): then the bound is α
//! ```
//!
//! J is the energy that the paper's components lose, computed on the kept points alone; on all points they lose no
//! more. Those components contain φ̄, and with it every point. Ours are the best in the span of the kept points and
//! usually better, but J does not bound what they lose: both numbers are reported.
//!
//! Consequences: the points farthest from the mean are kept, so outliers come first; and if the bandwidth is so small
//! that all points are equally far, (1 − γ) n of them are kept, whatever the data. With the linear kernel, features are
//! the columns: the method takes two passes over the table and sums of size d × d, and stores at most d points.

mod features;

use std::collections::BTreeSet;
use std::sync::Arc;

use faer::Mat;

use self::features::Features;
use super::parameters::{BY_TARGET, RANK};
use super::search;
use super::{Capabilities, Entry, Method, NO_VARIANCE, Size, Solution, Support, Target, Task, usual_rank};
use crate::dense;
use crate::eigen::{Accuracy, top};
use crate::error::{Error, Result};
use crate::factor::sums;
use crate::parameter::{Domain, Parameter, Range};
use crate::reference::Reference;
use crate::report::Report;
use crate::skeleton::SPANNING;
use crate::spec::Spec;
use crate::spectrum::Expansion;
use crate::watch::check;

/// Sums that differ by less than this share of the total count as equal.
const SLACK: f64 = 1e-12;

pub(super) const ENTRY: Entry = Entry {
    name: "energy",
    summary: "the points farthest from the mean, until they make up enough of the variance",
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
    "share of the variance that may be lost",
)
.fixing_size();

const SPLIT: Parameter = Parameter::choice(
    "split",
    &["half", "sharp"],
    "half: half of alpha for points, half for components, as in the paper; sharp: the bound is alpha itself",
);

/// How α is split between points and components.
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
    fn fit(&self, task: &Task) -> Result<Solution> {
        if self.alpha.is_some() {
            task.refuse_target("alpha")?;
        }
        let features = Features::new(task, self.rank(task.n(), task.target))?;
        let mut ranking = Ranking::new(features.energies(task)?, features.trace())?;
        let Kept { rows, expansion, beta, reference } = self.choose(task, &features, &mut ranking)?;
        let lost = |held: f64| (1.0 - held / ranking.total).max(0.0);
        let (bound, residual) = (lost(beta.iter().sum()), lost(expansion.captured));
        // With a target, α follows from the points; the paper's split would need an α above 1 for few of them.
        let (alpha, split) = match self.alpha {
            Some(alpha) => (alpha, self.split),
            None => (1.0 - (1.0 - ranking.left_by(rows.len())).powi(2), Split::Sharp),
        };
        let rank = features.rank();
        let mut report = Report { objective: Some(bound), rounds: 1, converged: true, ..Report::default() };
        report.notes.push(format!("of the energy, the rule's own components lose {bound:.6}, these {residual:.6}"));
        if let Some(alpha) = self.alpha.filter(|alpha| !task.asked && bound > alpha + SLACK) {
            report
                .notes
                .push(format!("that is more than alpha = {alpha}: a factor of rank {rank} does not hold the rest"));
        }
        let method = Spec::new("energy").with("alpha", alpha).with("split", split.name()).with("rank", rank);
        Ok(Solution { reference, ..Solution::new(method, Support::Rows(rows), expansion, report) })
    }

    fn memory(&self, size: &Size) -> usize {
        let rank = self.rank(size.n, size.support.map(Target::Support));
        if size.linear && size.d <= rank {
            // The ranking and the kept rows, sums of size d × d, and the points among which independent ones are found.
            return 8 * (5 * size.n + 80 * size.d * size.d + 2 * SPANNING.max(10 * size.d) * size.d);
        }
        let rank = rank.min(size.dimension);
        let points = size.support.unwrap_or(if self.alpha.is_some() { size.n } else { 10 * size.q }).min(size.n);
        let kept = points.min(size.dimension);
        size.beside_factor(size.n * (rank + 3) + sums(size.n) * rank * rank + points * size.d + 4 * kept * kept)
    }
}

impl Energy {
    /// Returns the rank of the factor; α refers to the whole energy, which the factor then has to represent.
    fn rank(&self, n: usize, target: Option<Target>) -> usize {
        usual_rank(self.rank.or(self.alpha.map(|_| n)), n, target)
    }

    /// Selects rows by the rule, or by a target.
    fn choose(&self, task: &Task, features: &Features, ranking: &mut Ranking) -> Result<Kept> {
        let (rows, expansion) = match (self.alpha, task.aim()) {
            (Some(alpha), _) => {
                let gamma = self.split.share(alpha);
                let rows = ranking.rows_holding(gamma);
                let beta = components(task, &features.scatter_of(&rows, task.watch)?, gamma)?;
                let task = task.with_components(beta.len());
                task.note(features.leading(&task)?.1);
                let expansion = features.expansion(&task, &rows)?;
                return Ok(Kept { rows, expansion, beta, reference: Some(task.reference()?.clone()) });
            }
            (None, Target::Support(m)) => {
                task.note(features.leading(task)?.1);
                let rows = ranking.rows(m);
                let expansion = features.expansion(task, &rows)?;
                (rows, expansion)
            }
            (None, Target::Fidelity(fidelity)) => smallest(task, features, ranking, fidelity)?,
        };
        let beta = leading(task, &features.scatter_of(&rows, task.watch)?)?;
        Ok(Kept { rows, expansion, beta, reference: None })
    }
}

/// The result of the rule.
struct Kept {
    rows: Vec<usize>,
    /// The best components in their span.
    expansion: Expansion,
    /// Eigenvalues of the rule's own components.
    beta: Vec<f64>,
    /// The variance that exact kernel PCA captures, if the rule chose the number of components.
    reference: Option<Arc<Reference>>,
}

/// Rounds to nine digits: rows that are equally far by symmetry would otherwise be ordered by their rounding errors.
fn rounded(energy: f64) -> f64 {
    const DROPPED: u32 = 22;
    f64::from_bits(((energy.to_bits() >> (DROPPED - 1)).wrapping_add(1) >> 1) << DROPPED)
}

/// The rows by decreasing energy, sorted only as far as needed: all rows before a cut rank before all rows behind it,
/// and the row just before a cut is the lowest of those before it.
struct Ranking {
    /// Energy and row number.
    order: Vec<(f64, usize)>,
    cuts: BTreeSet<usize>,
    total: f64,
}

impl Ranking {
    fn new(energies: Vec<f64>, trace: f64) -> Result<Ranking> {
        let total: f64 = energies.iter().sum();
        if total <= SLACK * trace {
            return Err(Error::NoVariance { why: NO_VARIANCE.into() });
        }
        let cuts = BTreeSet::from([0, energies.len()]);
        Ok(Ranking { order: energies.into_iter().zip(0..).collect(), cuts, total })
    }

    /// Moves the first `count` rows to the front.
    fn cut(&mut self, count: usize) {
        let low = self.cuts.range(..=count).next_back().copied().unwrap_or(0);
        let high = self.cuts.range(count..).next().copied().unwrap_or(self.order.len());
        if low < count && count < high {
            let farther =
                |a: &(f64, usize), b: &(f64, usize)| rounded(b.0).total_cmp(&rounded(a.0)).then(a.1.cmp(&b.1));
            self.order[low..high].select_nth_unstable_by(count - 1 - low, farther);
            self.cuts.insert(count);
        }
    }

    /// Returns the fewest rows, in increasing order, whose energy is at least the share 1 − `gamma` of the total.
    fn rows_holding(&mut self, gamma: f64) -> Vec<usize> {
        let wanted = (1.0 - SLACK) * (1.0 - gamma) * self.total;
        let (mut low, mut high, mut held) = (0, self.order.len(), 0.0);
        while low + 1 < high {
            let half = low.midpoint(high);
            self.cut(half);
            let more: f64 = self.order[low..half].iter().map(|(energy, _)| energy).sum();
            if held + more < wanted {
                (low, held) = (half, held + more);
            } else {
                high = half;
            }
        }
        self.rows(high)
    }

    /// Returns the share of the energy that is not in the first `count` rows.
    fn left_by(&mut self, count: usize) -> f64 {
        self.cut(count);
        self.order[count..].iter().map(|(energy, _)| energy).sum::<f64>() / self.total
    }

    /// Returns the first `count` rows in increasing order.
    fn rows(&mut self, count: usize) -> Vec<usize> {
        self.cut(count);
        let mut first = vec![false; self.order.len()];
        self.order[..count].iter().for_each(|(_, row)| first[*row] = true);
        (0..first.len()).filter(|row| first[*row]).collect()
    }
}

/// Finds the fewest points whose span reaches the fidelity, in the features first, then on the data.
fn smallest(task: &Task, features: &Features, ranking: &mut Ranking, fidelity: f64) -> Result<(Vec<usize>, Expansion)> {
    let n = task.n();
    let (values, reference) = features.leading(task)?;
    task.note(reference);
    let all: f64 = values.iter().sum();
    let mut enough = |count: usize| -> Result<bool> {
        check(task.watch, "search", 0.0)?;
        Ok(features.captured(task, &ranking.rows(count))? >= fidelity * all)
    };
    // The captured variance grows with the span, which allows doubling and bisection. A fidelity of 1 takes all points.
    let (mut low, mut high) = if fidelity < 1.0 - 1e-9 { (0, task.q.min(n)) } else { (n - 1, n) };
    while high < n && !enough(high)? {
        (low, high) = (high, (2 * high).min(n));
    }
    (high, _) = search::smallest(low, high, (), |count| Ok(enough(count)?.then_some(())))?;
    let solved = |count: &usize| {
        let rows = ranking.rows(*count);
        let expansion = features.expansion(task, &rows)?;
        Ok((rows, expansion))
    };
    search::until_reached(task, fidelity, high, solved, |count| Ok(search::a_few_more(count, n)))
}

/// Returns the eigenvalues of the components that the rule keeps: as many as the user requested, or the fewest that sum
/// to the share 1 − `gamma` of the kept energy.
fn components(task: &Task, scatter: &Mat<f64>, gamma: f64) -> Result<Vec<f64>> {
    if task.asked {
        return leading(task, scatter);
    }
    let (values, _) = dense::eigen(scatter.as_ref())?;
    let count = fewest(values.iter().copied(), (1.0 - gamma) * values.iter().sum::<f64>());
    Ok(values[..count].to_vec())
}

/// Returns how many of the first values sum to `wanted`, at least one.
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
