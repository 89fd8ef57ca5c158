//! Reduced sets (Schölkopf, Mika, Burges, Knirsch, Müller, Rätsch & Smola 1999): the components of exact kernel PCA,
//! expressed by fewer and fewer points.
//!
//! ```text
//! min over S, B   Σ_k λ_k ‖v_k − Σ_{i ∈ S} b_ik φ(x_i)‖²
//!
//! by=elimination: drop the point of least cost, Σ_k λ_k b_ik² / (K_SS⁻¹)_ii, and refit the others
//! by=penalty:     ½ Σ_k λ_k ‖v_k − Σ b_ik φ(x_i)‖² + μ Σ_i ‖√λ b_i‖, a group lasso; μ is found for the size
//! ```
//!
//! The paper approximates one vector; here there are q, weighted by their variances. Strengths: the method considers
//! only the components to be expressed, and elimination takes all points into account, whereas greedy selection knows
//! only the previous ones. Weaknesses: it needs exact components first, starts from the pivots of a factor, and its
//! cost is cubic in their number.

use faer::Mat;

use super::parameters::{RANK, REFIT};
use super::search;
use super::shared::Scattered;
use super::{Capabilities, Entry, Method, Size, Solution, Support, Target, Task, usual_rank};
use crate::dense;
use crate::error::Result;
use crate::factor::{Factor, sums};
use crate::lasso::Lasso;
use crate::parameter::Parameter;
use crate::report::Report;
use crate::spec::Spec;
use crate::spectrum::Expansion;
use crate::watch::check;

/// Pivots with less than this share of their squared length left are skipped: they would add only rounding errors.
const APART: f64 = 1e-9;
/// Relative duality gap of the lasso.
const GAP: f64 = 1e-6;
/// Maximum number of Newton steps of the lasso.
const STEPS: usize = 200;
/// Relative width of the bracket of penalties at which a search ends.
const TIGHT: f64 = 1e-3;

pub(super) const ENTRY: Entry = Entry {
    name: "reduced-set",
    summary: "the components of exact kernel PCA, expressed by fewer and fewer of their points",
    source: "Schölkopf, Mika, Burges, Knirsch, Müller, Rätsch & Smola 1999",
    parameters: &[BY, REFIT, RANK],
    capabilities: Capabilities::NONE,
    build: |fields| {
        let (by, refit) = (fields.choice("by")?, fields.boolean("refit")?);
        Ok(Box::new(ReducedSet { by, refit, rank: fields.optional_count("rank")? }))
    },
};

const BY: Parameter = Parameter::choice(
    "by",
    &["elimination", "penalty"],
    "elimination: drop the point of least cost, one by one; penalty: a group lasso",
);

#[derive(Debug)]
struct ReducedSet {
    by: &'static str,
    refit: bool,
    rank: Option<usize>,
}

impl Method for ReducedSet {
    fn fit(&self, task: &Task) -> Result<Solution> {
        let n = task.n();
        let scattered = task.scattered(usual_rank(self.rank, n, task.target))?;
        let Scattered { factor, t, .. } = &*scattered;
        let pairs = task.leading(factor, t)?;
        let all: f64 = pairs.values.iter().sum();
        let p = Mat::from_fn(t.nrows(), pairs.values.len(), |i, k| pairs.vectors[(i, k)] * pairs.values[k].sqrt());
        let pool = Pool::new(task, factor, t, p);
        let mut chosen = match (self.by, task.aim()) {
            (_, Target::Support(m)) if m >= n => (0..n).collect(),
            ("elimination", aim) => pool.eliminated(aim, all)?,
            (_, aim) => pool.penalised(aim, all)?,
        };
        let mut expansion = self.expansion(&pool, &chosen)?;
        if let Target::Fidelity(fidelity) = task.aim() {
            // The fidelity may be lower on the data than on the factor.
            while task.fidelity(&chosen, &expansion)? < fidelity && chosen.len() < n {
                let more = search::a_few_more(chosen.len(), n).unwrap_or(n);
                chosen = if more > pool.rows.len() { (0..n).collect() } else { pool.kept(&pool.order()?, more) };
                expansion = self.expansion(&pool, &chosen)?;
            }
        }
        let report = Report {
            rounds: pool.rows.len() - chosen.len().min(pool.rows.len()),
            converged: true,
            ..Report::default()
        };
        let method = Spec::new("reduced-set").with("by", self.by).with("refit", self.refit).with("rank", factor.rank());
        let fewer = if self.by == "penalty" { "no penalty selects as many" } else { super::DEPENDENT };
        Ok(Solution { fewer, ..Solution::new(method, Support::Rows(chosen), expansion, report) })
    }

    fn memory(&self, size: &Size) -> usize {
        let rank = usual_rank(self.rank, size.n, size.support.map(Target::Support)).min(size.dimension);
        size.beside_factor(size.n * (rank + 2) + (sums(size.n) + 4) * rank * rank)
    }
}

impl ReducedSet {
    /// Computes the best components in the span of the rows, or the approximations themselves.
    fn expansion(&self, pool: &Pool, rows: &[usize]) -> Result<Expansion> {
        if self.refit || rows.len() == pool.task.n() {
            return pool.task.expansion(rows, None);
        }
        let own = pool.approximation(rows);
        pool.task.expansion(rows, own.as_ref().map(|own| own.as_ref()))
    }
}

/// The initial points, in coordinates of the factor.
struct Pool<'a> {
    task: &'a Task<'a>,
    factor: &'a Factor,
    t: &'a Mat<f64>,
    /// Row numbers of the points.
    rows: Vec<usize>,
    /// Their coordinates, one row each.
    points: Mat<f64>,
    /// Coordinates of the vectors √λ v, one column each.
    vectors: Mat<f64>,
}

impl<'a> Pool<'a> {
    /// Creates the pool of the pivots that are well separated.
    fn new(task: &'a Task<'a>, factor: &'a Factor, t: &'a Mat<f64>, vectors: Mat<f64>) -> Pool<'a> {
        let all = factor.rows_of(&factor.pivots);
        let apart: Vec<usize> =
            (0..all.nrows()).filter(|&i| all[(i, i)] * all[(i, i)] > APART * all.row(i).squared_norm_l2()).collect();
        let mut rows: Vec<usize> = apart.iter().map(|&i| factor.pivots[i]).collect();
        rows.sort_unstable();
        let points = factor.rows_of(&rows);
        Pool { task, factor, t, rows, points, vectors }
    }

    /// Returns `K_PP` and the products of the points with the vectors.
    fn products(&self) -> (Mat<f64>, Mat<f64>) {
        let points = self.points.as_ref();
        (dense::product(points, points.transpose()), dense::product(points, self.vectors.as_ref()))
    }

    /// Returns the positions of the points in the order of elimination.
    fn order(&self) -> Result<Vec<usize>> {
        let (gram, products) = self.products();
        let m = gram.nrows();
        let Some(l) = dense::cholesky(gram.as_ref()) else { return Ok((0..m).collect()) };
        let mut inverse = Mat::identity(m, m);
        dense::solve_lower(l.as_ref(), inverse.as_mut());
        dense::solve_lower_transposed(l.as_ref(), inverse.as_mut());
        let mut b = dense::product(inverse.as_ref(), products.as_ref());
        let (mut left, mut order): (Vec<usize>, Vec<usize>) = ((0..m).collect(), Vec::with_capacity(m));
        while left.len() > 1 {
            check(self.task.watch, "elimination", order.len() as f64 / m as f64)?;
            let cost = |i: usize| b.row(i).squared_norm_l2() / inverse[(i, i)].max(f64::MIN_POSITIVE);
            let place = (0..left.len()).fold(0, |best, p| if cost(left[p]) < cost(left[best]) { p } else { best });
            let i = left.remove(place);
            let column: Vec<f64> = inverse.col_as_slice(i).to_vec();
            let own = column[i];
            for k in 0..b.ncols() {
                let share = b[(i, k)] / own;
                b.col_as_slice_mut(k).iter_mut().zip(&column).for_each(|(b, g)| *b -= share * g);
            }
            for &j in &left {
                let share = column[j] / own;
                inverse.col_as_slice_mut(j).iter_mut().zip(&column).for_each(|(v, g)| *v -= share * g);
            }
            order.push(i);
        }
        order.extend(left);
        Ok(order)
    }

    /// Returns the row numbers, in increasing order, of the `count` points that are eliminated last.
    fn kept(&self, order: &[usize], count: usize) -> Vec<usize> {
        let mut rows: Vec<usize> =
            order[order.len() - count.min(order.len())..].iter().map(|&i| self.rows[i]).collect();
        rows.sort_unstable();
        rows
    }

    fn eliminated(&self, aim: Target, all: f64) -> Result<Vec<usize>> {
        let order = self.order()?;
        let fidelity = match aim {
            Target::Support(m) => return Ok(self.kept(&order, m)),
            Target::Fidelity(fidelity) => fidelity,
        };
        let enough = |count: usize| Ok((self.share(&self.kept(&order, count), all)? >= fidelity).then_some(()));
        let (count, _) = search::smallest(0, order.len(), (), enough)?;
        Ok(self.kept(&order, count))
    }

    /// Returns the fidelity on the factor.
    fn share(&self, rows: &[usize], all: f64) -> Result<f64> {
        if rows.is_empty() {
            return Ok(0.0);
        }
        Ok(self.factor.captured(self.t, rows, None, self.vectors.ncols())? / all)
    }

    fn penalised(&self, aim: Target, all: f64) -> Result<Vec<usize>> {
        let (gram, products) = self.products();
        let most = (0..products.nrows()).map(|i| products.row(i).norm_l2()).fold(0.0, f64::max);
        let wanted = match aim {
            Target::Support(m) => m as f64 + 0.5,
            Target::Fidelity(fidelity) => fidelity,
        };
        let solve = |penalty: f64, warm: Option<&(Vec<f64>, Vec<usize>)>| {
            check(self.task.watch, "penalty", 0.5)?;
            let problem = Lasso { gram: gram.as_ref(), correlations: products.as_ref(), squared: all, penalty };
            let start = warm.map_or_else(|| vec![0.0; self.rows.len()], |(sizes, _)| sizes.clone());
            let answer = problem.solve(start, GAP, STEPS);
            let used: Vec<usize> =
                (0..self.rows.len()).filter(|&i| answer.sizes[i] > 0.0).map(|i| self.rows[i]).collect();
            let measured = match aim {
                Target::Support(_) => used.len() as f64,
                Target::Fidelity(_) => self.share(&used, all)?,
            };
            Ok(Some(((answer.sizes, used), measured)))
        };
        let found = search::search(most, wanted, TIGHT, solve, |measured| measured == wanted - 0.5)?;
        let chosen = match aim {
            Target::Support(_) => found.sparse.filter(|(_, (_, used))| !used.is_empty()),
            Target::Fidelity(_) => found.dense,
        };
        Ok(chosen.map_or_else(|| self.rows.clone(), |(_, (_, used))| used))
    }

    /// Computes the coefficients over rows of the pool that best approximate the vectors.
    fn approximation(&self, rows: &[usize]) -> Option<Mat<f64>> {
        let points = self.factor.rows_of(rows);
        let mut b = dense::product(points.as_ref(), self.vectors.as_ref());
        let l = dense::cholesky(dense::product(points.as_ref(), points.transpose()).as_ref())?;
        dense::solve_lower(l.as_ref(), b.as_mut());
        dense::solve_lower_transposed(l.as_ref(), b.as_mut());
        Some(b)
    }
}
