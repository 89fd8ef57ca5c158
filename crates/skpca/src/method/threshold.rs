//! Plain thresholding, the baseline of Das, Golatkar & Awate 2018: each component keeps its largest coefficients.
//!
//! ```text
//! a_k = u_k / √λ_k,  K̃ u_k = λ_k u_k,   all but the `keep` largest |a_ik| of each component set to zero
//! ```
//!
//! The eigenvectors come from the factor: `u = F̃ p / √λ` with p a leading eigenvector of T.

use faer::Mat;

use super::parameters::{BY_TARGET, REFIT};
use super::search;
use super::shared::Scattered;
use super::{Capabilities, Entry, Method, Size, Solution, Support, Target, Task};
use crate::error::{Error, Result};
use crate::factor::sums;
use crate::parameter::{Domain, Parameter};
use crate::report::Report;
use crate::spec::Spec;
use crate::spectrum::Expansion;

/// Maximum rank of the factor from which eigenvectors are computed; exact up to this many rows.
const RANK: usize = 1000;
/// Number of entries of the factor above which its rank is lower than that.
const MAX_ENTRIES: usize = 50_000_000;
/// The rank is not lowered below this one.
const LEAST_RANK: usize = 200;
/// Number of points at which a search for a fidelity ends: with more, the baseline is not a sparse model.
const MAX_POINTS: usize = 1000;

pub(super) const ENTRY: Entry = Entry {
    name: "threshold",
    summary: "baseline: each component of kernel PCA keeps its largest coefficients",
    source: "Das, Golatkar & Awate 2018",
    parameters: &[KEEP, REFIT],
    capabilities: Capabilities::NONE,
    build: |fields| Ok(Box::new(Threshold { keep: fields.optional_count("keep")?, refit: fields.boolean("refit")? })),
};

const KEEP: Parameter =
    Parameter::optional("keep", Domain::from(1), BY_TARGET, "coefficients that each component keeps").fixing_size();

#[derive(Debug)]
struct Threshold {
    /// Number of coefficients per component.
    keep: Option<usize>,
    refit: bool,
}

impl Method for Threshold {
    fn fit(&self, task: &Task) -> Result<Solution> {
        let n = task.n();
        if self.keep.is_some() {
            task.refuse_target("keep")?;
        }
        let scattered = task.scattered(rank(n))?;
        let Scattered { factor, t, mean } = &*scattered;
        let pairs = task.leading(factor, t)?;
        let mut a = factor.product(pairs.vectors.as_ref());
        for (k, value) in pairs.values.iter().enumerate() {
            let offset: f64 = mean.iter().enumerate().map(|(i, m)| m * pairs.vectors[(i, k)]).sum();
            a.col_mut(k).iter_mut().for_each(|a| *a = (*a - offset) / value);
        }
        let choice = Truncation { task, refit: self.refit, order: largest_first(&a), a };
        let keep = match (self.keep, task.aim()) {
            (Some(keep), _) => keep.min(n),
            (None, Target::Support(m)) => choice.last(|keep| Ok(choice.rows(keep).len() <= m))?.ok_or_else(|| {
                let least = choice.rows(1).len();
                Error::parameter("support", m, &format!("at least {least}: one point per component"))
            })?,
            (None, Target::Fidelity(fidelity)) => {
                let short = |keep| Ok(choice.rows(keep).len() <= MAX_POINTS && choice.fidelity(keep)? < fidelity);
                choice.last(short)?.map_or(1, |keep| (keep + 1).min(n))
            }
        };
        let rows = choice.rows(keep);
        let expansion = choice.expansion(&rows, keep)?;
        let method = Spec::new("threshold").with("keep", keep).with("refit", self.refit);
        let report = Report { rounds: 1, converged: true, ..Report::default() };
        let fewer = "one more coefficient per component would need more points";
        Ok(Solution { fewer, ..Solution::new(method, Support::Rows(rows), expansion, report) })
    }

    fn memory(&self, size: &Size) -> usize {
        let rank = rank(size.n).min(size.dimension);
        size.beside_factor(size.n * (rank + 3 * size.q) + sums(size.n) * rank * rank)
    }
}

fn rank(n: usize) -> usize {
    RANK.min((MAX_ENTRIES / n.max(1)).max(LEAST_RANK)).min(n)
}

/// The coefficients of kernel PCA, to be truncated.
struct Truncation<'a> {
    task: &'a Task<'a>,
    refit: bool,
    a: Mat<f64>,
    /// Rows of each component, largest coefficient first.
    order: Vec<Vec<usize>>,
}

impl Truncation<'_> {
    /// Returns the union of the kept rows, in increasing order.
    fn rows(&self, keep: usize) -> Vec<usize> {
        let mut rows: Vec<usize> = self.order.iter().flat_map(|order| order[..keep].iter().copied()).collect();
        rows.sort_unstable();
        rows.dedup();
        rows
    }

    fn expansion(&self, rows: &[usize], keep: usize) -> Result<Expansion> {
        if self.refit {
            return self.task.expansion(rows, None);
        }
        let mut a = Mat::zeros(rows.len(), self.a.ncols());
        for (k, order) in self.order.iter().enumerate() {
            for &row in &order[..keep] {
                a[(rows.partition_point(|&r| r < row), k)] = self.a[(row, k)];
            }
        }
        self.task.expansion(rows, Some(a.as_ref()))
    }

    fn fidelity(&self, keep: usize) -> Result<f64> {
        let rows = self.rows(keep);
        self.task.fidelity(&rows, &self.expansion(&rows, keep)?)
    }

    /// Returns the largest number of kept coefficients for which `holds` is true; `None` if it never is. Once false, it
    /// must stay false for larger numbers.
    fn last(&self, holds: impl Fn(usize) -> Result<bool>) -> Result<Option<usize>> {
        let n = self.a.nrows();
        let (mut low, mut high) = (0, 1);
        while high <= n && holds(high)? {
            (low, high) = (high, 2 * high);
        }
        let (first_not, _) = search::smallest(low, high.min(n + 1), (), |keep| Ok((!holds(keep)?).then_some(())))?;
        Ok((first_not > 1).then_some(first_not - 1))
    }
}

fn largest_first(a: &Mat<f64>) -> Vec<Vec<usize>> {
    let order = |k: usize| {
        let mut rows: Vec<usize> = (0..a.nrows()).collect();
        rows.sort_by(|&i, &j| a[(j, k)].abs().total_cmp(&a[(i, k)].abs()).then(i.cmp(&j)));
        rows
    };
    (0..a.ncols()).map(order).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_factor_of_many_rows_has_fewer_columns() {
        assert_eq!([1, 900, 5000, 50_000].map(rank), [1, 900, RANK, RANK]);
        for n in [60_000, 190_000, 10_000_000] {
            assert!(rank(n) * n <= MAX_ENTRIES.max(LEAST_RANK * n), "{n}: {}", rank(n));
        }
    }
}
