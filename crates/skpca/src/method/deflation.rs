//! Greedy selection with deflation, shared by `skfa`, `akfa` and `pursuit`: each feature is one row, and is projected
//! out of all others.
//!
//! ```text
//! g_i = φ(x_i) − P_Z φ(x_i)           the residual of row i after projection onto the span of the chosen rows
//! power g_iᵀ T g_i = Σ_j ⟨g_i, φ̃(x_j)⟩²,   length ‖g_i‖²        T: the scatter of all rows
//!
//! the next row is the best by power and length; then q = g / ‖g‖ is projected out of all rows:
//!     power_i ← power_i − 2 (q·f_i)(z·f_i) + (qᵀT q)(q·f_i)²,   z = (I − P_Z) T q        length_i ← length_i − (q·f_i)²
//! ```
//!
//! Each chosen row costs two products with the factor, n r multiply-adds each. The features of the papers are the q's,
//! in the order they are found; ours are the best components in their span, which capture at least as much.

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

/// A row counts as spanned when less than this share of its squared length is left.
const SPANNED: f64 = 1e-9;
/// Scores that differ by less than this share are ties, and the first row is taken.
const TIED: f64 = 1e-9;
/// Number of points per component with which a search for a fidelity begins.
const BEGIN: usize = 2;

/// The score by which the next row is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Score {
    /// The power, which favours long rows.
    Power,
    /// The power divided by the length: the variance along the row.
    Quotient,
}

/// A method of this kind.
#[derive(Debug)]
pub(super) struct Deflation {
    pub name: &'static str,
    pub score: Score,
    /// Rows with less than this share of their squared length left are no longer candidates.
    pub cutoff: Option<f64>,
    /// Number of rows drawn for each selection; all if it is 0 or `None`.
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

/// The rows chosen so far, and the residuals of all rows.
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

    /// Chooses rows until there are `m`, or all others are spanned.
    fn grow(&mut self, m: usize) -> Result<()> {
        while self.chosen.len() < m {
            check(self.task.watch, "features", self.chosen.len() as f64 / m as f64)?;
            let Some(row) = self.best() else { break };
            self.take(row);
        }
        Ok(())
    }

    /// Returns the row with the highest score among the candidates that are not spanned; the first of ties.
    fn best(&mut self) -> Option<usize> {
        let floor = SPANNED.max(self.method.cutoff.unwrap_or(0.0));
        let n = self.whole.len();
        let is_open = |i: &usize| self.lengths[*i] > floor * self.whole[*i];
        let drawn = match self.method.candidates {
            None | Some(0) => Vec::new(),
            Some(count) => self.random.sample(n, count).into_iter().filter(is_open).collect(),
        };
        // If none of the drawn rows is a candidate, consider all.
        let considered: Vec<usize> = if drawn.is_empty() { (0..n).filter(is_open).collect() } else { drawn };
        let score = |&i: &usize| match self.method.score {
            Score::Power => self.powers[i],
            Score::Quotient => self.powers[i] / self.lengths[i],
        };
        let most = considered.iter().map(score).fold(f64::NEG_INFINITY, f64::max);
        considered.iter().copied().find(|i| score(i) >= most - TIED * most.abs())
    }

    fn take(&mut self, row: usize) {
        let f = self.factor.row(row);
        let mut q = Mat::from_fn(f.len(), 1, |k, _| f[k]);
        // Twice, to remove rounding errors.
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

    /// Projects a vector onto the orthogonal complement of the basis.
    fn outside(&self, mut v: Mat<f64>) -> Mat<f64> {
        let along = dense::product(self.basis.transpose(), v.as_ref());
        dense::subtract_product(v.as_mut(), self.basis.as_ref(), along.as_ref());
        v
    }

    /// Returns the first `count` chosen rows in increasing order.
    fn first(&self, count: usize) -> Vec<usize> {
        let mut rows = self.chosen[..count.min(self.chosen.len())].to_vec();
        rows.sort_unstable();
        rows
    }

    /// Returns the variance captured by the best components in the span of the first `count` rows.
    fn captured(&self, count: usize) -> Result<f64> {
        let basis = self.basis.subcols(0, count);
        let image = Mat::from_fn(basis.nrows(), count, |k, j| self.values[k] * basis[(k, j)]);
        let t = dense::product(basis.transpose(), image.as_ref());
        let accuracy = Accuracy { tolerance: 1e-8, ..Accuracy::default() };
        Ok(top(&t, self.task.q, accuracy, self.task.seed, self.task.watch)?.values.iter().sum())
    }

    /// Finds the fewest rows, in the order they are chosen, whose span reaches the fidelity.
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
