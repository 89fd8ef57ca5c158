//! Expansion vectors chosen among the rows (Li & Gao 2011), one after the other, each with the largest gain.
//!
//! ```text
//! captured by the span of Z:  tr P_Z T,   P_Z the projector onto the span    = tr K_zz⁻¹ C on the data
//! gain of row i:              g_iᵀ T g_i / ‖g_i‖²,   g_i = φ(x_i) − P_Z φ(x_i)
//! ```
//!
//! Exchanges follow: each point in turn is replaced by the best row, until no replacement is better. T is the part of
//! the scatter along the leading q eigenvectors (`gain=leading`), which is what q components need, or the whole scatter
//! (`gain=trace`). `gain=top` is the exact gain of the best q components in the span, W(Z ∪ i) − W(Z).
//!
//! The method needs only the length of each row, its coordinates along the relevant eigenvectors of T, and its inner
//! products with the chosen points. The leading eigenvectors are those that fidelity is measured against, so that
//! `leading` needs no factor: a pick costs a column of the kernel matrix, n (d + m + q) multiply-adds, and an attempted
//! exchange n (m + q). The other gains, and `rank`, use a factor.

mod exchange;
mod fewest;
mod gains;
mod picks;
mod selection;
mod span;

use exchange::Exchanged;
pub(super) use selection::Selection;

use super::shared::Principal;
use super::{DEPENDENT, Entry, Method, Size, Solution, Support, Target, Task, usual_rank};
use crate::error::Result;
use crate::factor::sums;
use crate::report::Report;
use crate::spec::Spec;

/// Minimum number of candidate rows; they are a uniform sample if there are more rows.
const CANDIDATES: usize = 4000;
/// Minimum number of candidate rows per point.
const CANDIDATES_PER_POINT: usize = 10;
/// A row counts as spanned when less than this share of its squared length is left.
const SPANNED: f64 = 1e-9;
/// Minimum relative gain of an exchange.
const MIN_GAIN: f64 = 1e-6;
/// Gains that differ by less than this share are ties, which rounding would otherwise decide on symmetric tables.
const TIED: f64 = 1e-9;
/// So are gains that differ by less than this share of the largest eigenvalue.
const ROUNDING: f64 = 1e-12;
/// Default number of exchange passes.
const EXCHANGES: usize = 10;

pub(super) const ENTRY: Entry = Entry {
    name: "greedy",
    summary: "rows with the largest gain of captured variance, one by one, then exchanged for better ones",
    source: "Li & Gao 2011",
    parameters: {
        use crate::parameter::Parameter;
        &[
            Parameter::choice(
                "gain",
                &["leading", "trace", "top"],
                "leading: variance along the leading q eigenvectors; trace: all variance; top: exact, for q components",
            ),
            Parameter::count("exchanges", 0, EXCHANGES, "maximum number of passes that try to exchange each point")
                .as_sklearn("max_iter"),
            super::parameters::RANK,
        ]
    },
    capabilities: super::Capabilities { weights: true, ..super::Capabilities::NONE },
    build: |fields| {
        Ok(Box::new(Greedy {
            gain: fields.choice("gain")?,
            exchanges: fields.count("exchanges")?,
            rank: fields.optional_count("rank")?,
        }))
    },
};

#[derive(Debug)]
pub(super) struct Greedy {
    gain: &'static str,
    exchanges: usize,
    rank: Option<usize>,
}

impl Greedy {
    /// A selection by all variance, without exchanges, which would improve the span little and take most of the time.
    pub(super) fn of_all_variance() -> Greedy {
        Greedy { gain: "trace", exchanges: 0, rank: None }
    }
}

impl Method for Greedy {
    fn fit(&self, task: &Task) -> Result<Solution> {
        self.choose(task, |choice| self.chosen(task, choice))
    }

    fn fidelities(&self, task: &Task, most: usize) -> Result<Option<Vec<(usize, f64)>>> {
        self.choose(task, |choice| choice.fidelities(most)).map(Some)
    }

    fn holds_rows(&self, size: &Size) -> bool {
        !self.by_kernel(size.n, size.support.unwrap_or(0))
    }

    fn memory(&self, size: &Size) -> usize {
        let m = size.points(10 * size.q);
        let candidates = size.n.min(CANDIDATES.max(CANDIDATES_PER_POINT * m));
        if self.by_kernel(size.n, m) {
            return 8 * (size.leading() + 2 * size.n + candidates * (3 * size.d + 4 * m + 4 * size.q) + 4 * m * m);
        }
        let rank = usual_rank(self.rank, size.n, size.support.map(Target::Support)).min(size.dimension);
        size.beside_factor(
            size.n * (rank + 2) + sums(size.n) * rank * rank + 3 * candidates * rank + 4 * m * (m + rank),
        )
    }
}

impl Greedy {
    /// Returns whether the rows on which fidelity is measured are enough, so that no factor is needed.
    fn by_kernel(&self, n: usize, support: usize) -> bool {
        let enough = n <= CANDIDATES || CANDIDATES_PER_POINT * support <= CANDIDATES;
        self.gain == "leading" && self.rank.is_none() && enough
    }

    /// Calls `then` with the selection among the candidate rows.
    fn choose<T>(&self, task: &Task, then: impl FnOnce(&Selection) -> Result<T>) -> Result<T> {
        let n = task.n();
        if self.by_kernel(n, task.support()) {
            return then(&Selection::leading(task, self.exchanges)?);
        }
        let principal = task.principal(usual_rank(self.rank, n, task.target))?;
        let Principal { factor, values } = &*principal;
        let counting = values.len().min(if self.gain == "leading" { task.q } else { values.len() });
        let mut choice = Selection::of_factor(task, factor, values, counting, self.exchanges);
        choice.top = (self.gain == "top").then_some(task.q);
        then(&choice)
    }

    fn chosen(&self, task: &Task, choice: &Selection) -> Result<Solution> {
        let (rows, expansion, settled) = match task.aim() {
            Target::Fidelity(fidelity) => choice.smallest(fidelity)?,
            Target::Support(m) => {
                let (rows, settled) = match choice.spanning(m) {
                    // There is nothing to choose.
                    Some(all) => (all, Exchanged { passes: 0, done: true }),
                    None => {
                        let (chosen, settled) = choice.exchanged(choice.picks(m)?)?;
                        (choice.rows(&chosen), settled)
                    }
                };
                let expansion = task.expansion(&rows, None)?;
                (rows, expansion, settled)
            }
        };
        let report = Report {
            objective: Some(expansion.captured / task.rows.weight()),
            rounds: settled.passes,
            converged: settled.done,
            ..Report::default()
        };
        let mut method = Spec::new("greedy").with("gain", self.gain).with("exchanges", self.exchanges);
        if let Some(rank) = choice.rank() {
            method = method.with("rank", rank);
        }
        let fewer = if self.rank.is_some() { "the factor's rank allows no more" } else { DEPENDENT };
        Ok(Solution { fewer, ..Solution::new(method, Support::Rows(rows), expansion, report) })
    }
}
