//! Expansion vectors chosen among the rows (Li & Gao 2011): one after the other, each that which gains most.
//!
//! ```text
//! captured by the span of Z:  tr P_Z T,   P_Z the projector on the span      = tr K_zz⁻¹ C on the data
//! gain of row i:              g_iᵀ T g_i / ‖g_i‖²,   g_i = f_i − P_Z f_i
//! ```
//!
//! Then exchanges: each point in turn leaves and the best one takes its place, until none is better than the one that left.
//! T is the whole scatter (`gain=trace`), or its part along the leading q eigenvectors (`gain=leading`), which asks for what
//! q components need and nothing else. Rows are in coordinates where T is diagonal: a pick costs two products n × r.

use faer::{Mat, MatRef};

use super::{DEPENDENT, Entry, Method, Report, Size, Solution, Support, Target, Task, usual_rank};
use crate::dense;
use crate::error::Result;
use crate::factor::Factor;
use crate::random::Random;
use crate::spec::Spec;
use crate::spectrum::Expansion;
use crate::watch::check;

/// Rows among which points are chosen: all up to this many, a uniform sample above, or as many a point.
const CANDIDATES: usize = 4000;
const CANDIDATES_A_POINT: usize = 10;
/// A row is spanned when less than this share of its squared length is left.
const SPANNED: f64 = 1e-9;
/// An exchange pays when it gains this share more.
const PAYS: f64 = 1e-6;
/// Passes of exchanges where nothing is said.
const EXCHANGES: usize = 10;

pub(super) const ENTRY: Entry = Entry {
    name: "greedy",
    about: "rows that gain most, one after the other, then exchanged while that helps (Li & Gao); gain (leading or trace), \
            exchanges (passes at most), rank",
    build: |fields| {
        Ok(Box::new(Greedy {
            gain: fields.choice("gain", &["leading", "trace"])?,
            exchanges: fields.count("exchanges")?.unwrap_or(EXCHANGES),
            rank: fields.count("rank")?,
        }))
    },
};

#[derive(Debug)]
struct Greedy {
    gain: &'static str,
    exchanges: usize,
    rank: Option<usize>,
}

impl Method for Greedy {
    fn fit(&self, task: &mut Task) -> Result<Solution> {
        let task = &*task;
        let n = task.points.n();
        let (factor, values) = task.principal(usual_rank(self.rank, n, task.target))?;
        let support = if let Some(Target::Support(m)) = task.target { m } else { 0 };
        let candidates = Random::new(task.seed, 15).sample(n, CANDIDATES.max(CANDIDATES_A_POINT * support));
        let leading = values.len().min(if self.gain == "leading" { task.q } else { values.len() });
        let choice = Choice {
            task,
            atoms: factor.rows_of(&candidates),
            lengths: candidates.iter().map(|&i| factor.row(i).iter().map(|v| v * v).sum()).collect(),
            candidates,
            weights: values.iter().enumerate().map(|(k, v)| if k < leading { *v } else { 0.0 }).collect(),
            passes: self.exchanges,
        };
        let (rows, expansion, settled) = match task.wanted(None)? {
            Some(Target::Fidelity(fidelity)) => choice.smallest(&factor, &values, fidelity)?,
            _ => {
                let (rows, settled) = match support >= factor.rank() {
                    // There is nothing to choose.
                    true => (sorted(factor.pivots.clone()), Settled { passes: 0, done: true }),
                    false => {
                        let (chosen, settled) = choice.exchanged(choice.picks(support)?)?;
                        (choice.rows(&chosen), settled)
                    }
                };
                let expansion = task.expansion(&rows, None)?;
                (rows, expansion, settled)
            }
        };
        let report = Report {
            objective: Some(expansion.captured / n as f64),
            rounds: settled.passes,
            converged: settled.done,
            ..Report::default()
        };
        Ok(Solution {
            method: Spec::new("greedy")
                .with("gain", self.gain)
                .with("exchanges", self.exchanges)
                .with("rank", factor.rank()),
            support: Support::Rows(rows),
            expansion,
            density: None,
            fewer: DEPENDENT,
            report,
        })
    }

    fn memory(&self, size: &Size) -> usize {
        let rank = usual_rank(self.rank, size.n, size.support.map(Target::Support)).min(size.dimension);
        let m = size.support.unwrap_or(10 * size.q).min(size.n);
        let candidates = size.n.min(CANDIDATES.max(CANDIDATES_A_POINT * m));
        8 * (size.n * (rank + 2) + 6 * rank * rank + 3 * candidates * rank + 4 * m * (m + rank))
    }
}

/// How exchanges ended.
#[derive(Clone, Copy)]
struct Settled {
    passes: usize,
    /// Whether no exchange helped any more.
    done: bool,
}

/// The rows to choose among.
struct Choice<'a> {
    task: &'a Task<'a>,
    /// Numbers of the rows, increasing …
    candidates: Vec<usize>,
    /// … and the rows themselves, in coordinates where T is diagonal …
    atoms: Mat<f64>,
    /// … with the diagonal as far as it counts.
    weights: Vec<f64>,
    /// `‖f_i‖²`
    lengths: Vec<f64>,
    passes: usize,
}

impl Choice<'_> {
    /// Numbers of rows, increasing, of places among the candidates.
    fn rows(&self, chosen: &[usize]) -> Vec<usize> {
        sorted(chosen.iter().map(|&i| self.candidates[i]).collect())
    }

    /// The first `count` picks, fewer if they span everything.
    fn picks(&self, count: usize) -> Result<Vec<usize>> {
        let mut left = self.lengths.clone();
        let mut gains = self.weighted_squares(self.atoms.as_ref());
        let mut basis = Mat::zeros(self.atoms.ncols(), 0);
        let mut chosen = Vec::new();
        while chosen.len() < count {
            check(self.task.watch, "picks", chosen.len() as f64 / count as f64)?;
            let ratio = |i: usize| if left[i] > SPANNED * self.lengths[i] { gains[i] / left[i] } else { -1.0 };
            let best = largest((0..left.len()).map(ratio));
            if ratio(best) < 0.0 {
                break;
            }
            let Some(v) = self.direction(best, basis.as_ref()) else {
                left[best] = 0.0;
                continue;
            };
            chosen.push(best);
            let tv = Mat::from_fn(v.nrows(), 1, |k, _| self.weights[k] * v[(k, 0)]);
            let along: f64 = v.col(0).iter().zip(tv.col(0).iter()).map(|(v, tv)| v * tv).sum();
            let both = dense::beside(v.as_ref(), project_out(&tv, basis.as_ref()).as_ref());
            let products = dense::product(self.atoms.as_ref(), both.as_ref());
            for (i, (a, b)) in products.col(0).iter().zip(products.col(1).iter()).enumerate() {
                gains[i] += a * (a * along - 2.0 * b);
                left[i] -= a * a;
            }
            left[best] = 0.0;
            basis = dense::beside(basis.as_ref(), v.as_ref());
        }
        Ok(chosen)
    }

    /// The unit vector that row `i` adds to a basis, unless it is in its span.
    fn direction(&self, i: usize, basis: MatRef<f64>) -> Option<Mat<f64>> {
        let f = self.atoms.as_ref().subrows(i, 1).transpose().to_owned();
        let rest = project_out(&project_out(&f, basis), basis);
        let norm = rest.norm_l2();
        (norm * norm > 0.1 * SPANNED * self.lengths[i]).then(|| Mat::from_fn(f.nrows(), 1, |k, _| rest[(k, 0)] / norm))
    }

    /// Exchanges points while that helps.
    fn exchanged(&self, mut chosen: Vec<usize>) -> Result<(Vec<usize>, Settled)> {
        for pass in 0..self.passes {
            check(self.task.watch, "exchanges", pass as f64 / self.passes as f64)?;
            let mut swapped = false;
            for at in 0..chosen.len() {
                let rest: Vec<usize> = chosen.iter().copied().filter(|&i| i != chosen[at]).collect();
                let gains = self.gains_beside(&rest);
                let best = largest(gains.iter().copied());
                if gains[best] > (1.0 + PAYS) * gains[chosen[at]] {
                    chosen[at] = best;
                    swapped = true;
                }
            }
            if !swapped {
                return Ok((chosen, Settled { passes: pass + 1, done: true }));
            }
        }
        Ok((chosen, Settled { passes: self.passes, done: self.passes == 0 }))
    }

    /// What each row would gain beside `rest`; −1 for those that they span.
    fn gains_beside(&self, rest: &[usize]) -> Vec<f64> {
        let mut basis = Mat::zeros(self.atoms.ncols(), 0);
        for &i in rest {
            if let Some(v) = self.direction(i, basis.as_ref()) {
                basis = dense::beside(basis.as_ref(), v.as_ref());
            }
        }
        let along = dense::product(self.atoms.as_ref(), basis.as_ref());
        let mut left = self.lengths.clone();
        for column in along.col_iter() {
            left.iter_mut().zip(column.iter()).for_each(|(left, a)| *left -= a * a);
        }
        // gᵀTg = fᵀTf − 2 aᵀVᵀTf + aᵀ(VᵀTV)a, only over the directions that count.
        let counting = self.weights.iter().take_while(|w| **w > 0.0).count();
        let mut g = self.atoms.as_ref().subcols(0, counting).to_owned();
        dense::subtract_product(g.as_mut(), along.as_ref(), basis.as_ref().subrows(0, counting).transpose());
        let gains = self.weighted_squares(g.as_ref());
        let ratio = |i: usize| if left[i] > SPANNED * self.lengths[i] { gains[i] / left[i] } else { -1.0 };
        (0..left.len()).map(ratio).collect()
    }

    /// `Σ_k t_k g_ik²` of each row, over the columns there are.
    fn weighted_squares(&self, g: MatRef<f64>) -> Vec<f64> {
        let mut sums = vec![0.0; g.nrows()];
        for (column, weight) in g.col_iter().zip(&self.weights).filter(|(_, weight)| **weight > 0.0) {
            sums.iter_mut().zip(column.iter()).for_each(|(sum, g)| *sum += weight * g * g);
        }
        sums
    }

    /// The fewest points, exchanged, that hold the fidelity: on the factor first, then on the data.
    fn smallest(&self, factor: &Factor, values: &[f64], fidelity: f64) -> Result<(Vec<usize>, Expansion, Settled)> {
        let q = self.task.q;
        let t = Mat::from_fn(values.len(), values.len(), |i, j| if i == j { values[i] } else { 0.0 });
        let all: f64 = values.iter().take(q).sum();
        let holds = |chosen: &[usize]| -> Result<bool> {
            Ok(factor.captured(&t, &self.rows(chosen), None, q)? >= fidelity * all)
        };
        let mut count = q.min(self.candidates.len());
        let mut picks = self.picks(count)?;
        while picks.len() == count && !holds(&picks)? {
            count *= 2;
            picks = self.picks(count)?;
        }
        // Exchanges make up for some points: bisection over the number of picks that they start from.
        let (mut low, mut high) = (0, picks.len());
        let mut best = self.exchanged(picks.clone())?;
        while low + 1 < high {
            let middle = (low + high) / 2;
            let tried = self.exchanged(picks[..middle].to_vec())?;
            match holds(&tried.0)? {
                true => (high, best) = (middle, tried),
                false => low = middle,
            }
        }
        // The factor is a little kinder than the data.
        loop {
            let rows = self.rows(&best.0);
            let expansion = self.task.expansion(&rows, None)?;
            if high >= picks.len() || self.task.fidelity(&rows, &expansion)? >= fidelity {
                return Ok((rows, expansion, best.1));
            }
            high = (high + 1 + high / 20).min(picks.len());
            best = self.exchanged(picks[..high].to_vec())?;
        }
    }
}

fn sorted(mut rows: Vec<usize>) -> Vec<usize> {
    rows.sort_unstable();
    rows
}

/// `x − V Vᵀx`
fn project_out(x: &Mat<f64>, basis: MatRef<f64>) -> Mat<f64> {
    let along = dense::product(basis.transpose(), x.as_ref());
    let mut rest = x.clone();
    dense::subtract_product(rest.as_mut(), basis, along.as_ref());
    rest
}

/// The place of the largest value, the first of equal ones.
fn largest(values: impl Iterator<Item = f64>) -> usize {
    values.enumerate().fold((0, f64::NEG_INFINITY), |best, (i, v)| if v > best.1 { (i, v) } else { best }).0
}
