//! Features of one row each, found one after the other and taken out of all rows: what `skfa`, `akfa` and `pursuit`
//! share.
//!
//! ```text
//! g_i = φ(x_i) − P_Z φ(x_i)           what the rows chosen so far leave of row i
//! power g_iᵀ T g_i = Σ_j ⟨g_i, φ̃(x_j)⟩²,   length ‖g_i‖²        T: the scatter of all rows
//!
//! the next row is the best by power and length; then q = g / ‖g‖ leaves all of them:
//!     power_i ← power_i − 2 (q·f_i)(z·f_i) + (qᵀT q)(q·f_i)²,   z = (I − P_Z) T q        length_i ← length_i − (q·f_i)²
//! ```
//!
//! Two products with the factor per row chosen, n r multiply-adds each. The features of the papers are the q's, in the
//! order they are found; ours are the best components in their span, which capture at least as much.

use faer::Mat;

use super::search;
use super::shared::Principal;
use super::{Method, Size, Solution, Support, Target, Task, usual_rank};
use crate::dense;
use crate::eigen::{Accuracy, top};
use crate::error::Result;
use crate::factor::{Factor, sums};
use crate::random::{Random, Stream};
use crate::report::Report;
use crate::spec::Spec;
use crate::spectrum::Expansion;
use crate::watch::check;

/// A row is spanned when less than this share of its squared length is left.
const SPANNED: f64 = 1e-9;
/// Scores that differ by this share are equal: the first row is taken.
const TIED: f64 = 1e-9;
/// Points that a search for a fidelity begins with, for each component.
const BEGIN: usize = 2;

/// What the next row has most of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Score {
    /// Its power: long rows first.
    Power,
    /// Its power for its length: the variance along it.
    Quotient,
}

/// A method of this kind.
#[derive(Debug)]
pub(super) struct Deflation {
    pub name: &'static str,
    pub score: Score,
    /// Rows with less than this share of their squared length left are looked at no more.
    pub cutoff: Option<f64>,
    /// Rows that are drawn for each choice; 0 for all, as without a number.
    pub candidates: Option<usize>,
    pub rank: Option<usize>,
}

impl Method for Deflation {
    fn fit(&self, task: &Task) -> Result<Solution> {
        let n = task.n();
        let principal = task.principal(usual_rank(self.rank, n, task.target))?;
        let mut choice = Choice::new(self, task, &principal)?;
        let (rows, expansion) = match task.aim() {
            Target::Support(m) if m >= n => ((0..n).collect(), None),
            Target::Support(m) => {
                choice.grow(m)?;
                (choice.first(m), None)
            }
            Target::Fidelity(fidelity) => {
                let (rows, expansion) = choice.smallest(fidelity)?;
                (rows, Some(expansion))
            }
        };
        let expansion = expansion.map_or_else(|| task.expansion(&rows, None), Ok)?;
        let objective = Some(expansion.captured / task.rows.weight());
        let report = Report { objective, rounds: rows.len(), converged: true, ..Report::default() };
        Ok(Solution::new(self.spec(principal.factor.rank()), Support::Rows(rows), expansion, report))
    }

    fn memory(&self, size: &Size) -> usize {
        let m = size.points(10 * size.q);
        let rank = usual_rank(self.rank, size.n, size.support.map(Target::Support)).min(size.dimension);
        size.beside_factor(size.n * (rank + 6) + sums(size.n) * rank * rank + 2 * m * rank)
    }
}

impl Deflation {
    fn spec(&self, rank: usize) -> Spec {
        let spec = Spec::new(self.name).with("rank", rank);
        let spec = match self.cutoff {
            Some(cutoff) => spec.with("cutoff", cutoff),
            None => spec,
        };
        match self.candidates {
            Some(count) => spec.with("candidates", count),
            None => spec,
        }
    }
}

/// Rows chosen so far, and what they leave of the others.
struct Choice<'a> {
    method: &'a Deflation,
    task: &'a Task<'a>,
    factor: &'a Factor,
    /// T, diagonal in the factor's coordinates.
    values: &'a [f64],
    /// ‖f_i‖²
    whole: Vec<f64>,
    powers: Vec<f64>,
    lengths: Vec<f64>,
    chosen: Vec<usize>,
    /// r × m, orthonormal.
    basis: Mat<f64>,
    random: Random,
}

impl<'a> Choice<'a> {
    fn new(method: &'a Deflation, task: &'a Task<'a>, principal: &'a Principal) -> Result<Choice<'a>> {
        let Principal { factor, values } = principal;
        let squares = |i: usize| factor.row(i).into_iter().map(|f| f * f).collect::<Vec<f64>>();
        let sums = |i: usize| (squares(i).iter().sum::<f64>(), dense::dot(&squares(i), values));
        let (whole, powers): (Vec<f64>, Vec<f64>) = (0..factor.n()).map(sums).unzip();
        let (lengths, basis) = (whole.clone(), Mat::zeros(factor.rank(), 0));
        let random = Random::new(task.seed, Stream::PursuitCandidates);
        Ok(Choice { method, task, factor, values, whole, powers, lengths, chosen: Vec::new(), basis, random })
    }

    /// Chooses rows until there are `m`, or the rest is spanned.
    fn grow(&mut self, m: usize) -> Result<()> {
        while self.chosen.len() < m {
            check(self.task.watch, "features", self.chosen.len() as f64 / m as f64)?;
            let Some(row) = self.best() else { break };
            self.take(row);
        }
        Ok(())
    }

    /// The row with the highest score, among some or all that are not spanned; the first of equal ones.
    fn best(&mut self) -> Option<usize> {
        let floor = SPANNED.max(self.method.cutoff.unwrap_or(0.0));
        let n = self.whole.len();
        let is_open = |i: &usize| self.lengths[*i] > floor * self.whole[*i];
        let drawn = match self.method.candidates {
            None | Some(0) => Vec::new(),
            Some(count) => self.random.sample(n, count).into_iter().filter(is_open).collect(),
        };
        // Those that are left may be few among many.
        let looked_at: Vec<usize> = if drawn.is_empty() { (0..n).filter(is_open).collect() } else { drawn };
        let score = |&i: &usize| match self.method.score {
            Score::Power => self.powers[i],
            Score::Quotient => self.powers[i] / self.lengths[i],
        };
        let most = looked_at.iter().map(score).fold(f64::NEG_INFINITY, f64::max);
        looked_at.iter().copied().find(|i| score(i) >= most - TIED * most.abs())
    }

    fn take(&mut self, row: usize) {
        let f = self.factor.row(row);
        let mut q = Mat::from_fn(f.len(), 1, |k, _| f[k]);
        // Twice, for rounding.
        for _ in 0..2 {
            q = self.outside(q);
        }
        let length = q.norm_l2();
        q.col_as_slice_mut(0).iter_mut().for_each(|v| *v /= length);
        let image = Mat::from_fn(q.nrows(), 1, |k, _| self.values[k] * q[(k, 0)]);
        let along = (0..q.nrows()).map(|k| q[(k, 0)] * image[(k, 0)]).sum::<f64>();
        let z = self.outside(image);
        let products = self.factor.product(dense::beside(q.as_ref(), z.as_ref()).as_ref());
        for i in 0..self.lengths.len() {
            let (own, other) = (products[(i, 0)], products[(i, 1)]);
            self.powers[i] = (self.powers[i] - 2.0 * own * other + along * own * own).max(0.0);
            self.lengths[i] -= own * own;
        }
        self.lengths[row] = 0.0;
        self.basis = dense::beside(self.basis.as_ref(), q.as_ref());
        self.chosen.push(row);
    }

    /// What the basis does not hold of a vector.
    fn outside(&self, mut v: Mat<f64>) -> Mat<f64> {
        let along = dense::product(self.basis.transpose(), v.as_ref());
        dense::subtract_product(v.as_mut(), self.basis.as_ref(), along.as_ref());
        v
    }

    /// The first `count` rows chosen, increasing.
    fn first(&self, count: usize) -> Vec<usize> {
        let mut rows = self.chosen[..count.min(self.chosen.len())].to_vec();
        rows.sort_unstable();
        rows
    }

    /// What the best components in the span of the first `count` capture.
    fn captured(&self, count: usize) -> Result<f64> {
        let basis = self.basis.subcols(0, count);
        let image = Mat::from_fn(basis.nrows(), count, |k, j| self.values[k] * basis[(k, j)]);
        let t = dense::product(basis.transpose(), image.as_ref());
        let accuracy = Accuracy { tolerance: 1e-8, ..Accuracy::default() };
        Ok(top(&t, self.task.q, accuracy, self.task.seed, self.task.watch)?.values.iter().sum())
    }

    /// The fewest rows, in the order they are chosen, whose span holds the fidelity.
    fn smallest(&mut self, fidelity: f64) -> Result<(Vec<usize>, Expansion)> {
        let all: f64 = self.values.iter().take(self.task.q).sum();
        let wanted = fidelity * all * (1.0 - 1e-9);
        let mut most = BEGIN * self.task.q;
        loop {
            self.grow(most)?;
            if self.chosen.len() < most || self.captured(most)? >= wanted {
                break;
            }
            most *= 2;
        }
        let (enough, _) =
            search::smallest(0, self.chosen.len(), (), |count| Ok((self.captured(count)? >= wanted).then_some(())))?;
        let mut count = enough;
        loop {
            self.grow(count)?;
            let rows = if count > self.chosen.len() { (0..self.task.n()).collect() } else { self.first(count) };
            let expansion = self.task.expansion(&rows, None)?;
            if rows.len() == self.task.n() || self.task.fidelity(&rows, &expansion)? >= fidelity {
                return Ok((rows, expansion));
            }
            count = count + 1 + count / 20;
        }
    }
}
