//! Expansion vectors chosen among the rows (Li & Gao 2011): one after the other, each that which gains most.
//!
//! ```text
//! captured by the span of Z:  tr P_Z T,   P_Z the projector on the span      = tr K_zz⁻¹ C on the data
//! gain of row i:              g_iᵀ T g_i / ‖g_i‖²,   g_i = f_i − P_Z f_i
//! ```
//!
//! Then exchanges: each point in turn leaves and the best one takes its place, until none is better than the one that left.
//! T is the whole scatter (`gain=trace`), or its part along the leading q eigenvectors (`gain=leading`), which asks for what
//! q components need and nothing else. Rows are in coordinates where T is diagonal: a pick, and a try to exchange, cost one product n × r.

use faer::{Mat, MatRef};

use super::search;
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
    labelled: false,
    build: |fields| {
        Ok(Box::new(Greedy {
            gain: fields.choice("gain", &["leading", "trace"])?,
            exchanges: fields.count("exchanges")?.unwrap_or(EXCHANGES),
            rank: fields.count("rank")?,
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
    /// As where nothing is said.
    pub(super) fn usual() -> Greedy {
        Greedy { gain: "leading", exchanges: EXCHANGES, rank: None }
    }
}

impl Method for Greedy {
    fn fit(&self, task: &mut Task) -> Result<Solution> {
        let task = &*task;
        let n = task.points.n();
        let support = if let Some(Target::Support(m)) = task.target { m } else { 0 };
        let (factor, values) = task.principal(usual_rank(self.rank, n, task.target))?;
        let leading = values.len().min(if self.gain == "leading" { task.q } else { values.len() });
        let choice = Choice::new(task, &factor, &values[..leading], support, self.exchanges);
        let (rows, expansion, settled) = match task.aim() {
            Target::Fidelity(fidelity) => choice.smallest(&factor, &values, fidelity)?,
            Target::Support(_) => {
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
            fidelity: None,
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
pub(super) struct Settled {
    passes: usize,
    /// Whether no exchange helped any more.
    done: bool,
}

/// The rows to choose among.
pub(super) struct Choice<'a> {
    task: &'a Task<'a>,
    /// Numbers of the rows, increasing …
    candidates: Vec<usize>,
    /// … and the rows themselves, in coordinates where T is diagonal …
    atoms: Mat<f64>,
    /// … with its diagonal, as far as it counts.
    weights: Vec<f64>,
    /// `‖f_i‖²`
    lengths: Vec<f64>,
    passes: usize,
}

impl<'a> Choice<'a> {
    pub(super) fn new(task: &'a Task<'a>, factor: &Factor, values: &[f64], m: usize, passes: usize) -> Choice<'a> {
        let candidates = Random::new(task.seed, 15).sample(factor.n(), CANDIDATES.max(CANDIDATES_A_POINT * m));
        let atoms = factor.rows_of(&candidates);
        let lengths = (0..atoms.nrows()).map(|i| atoms.row(i).squared_norm_l2()).collect();
        Choice { task, candidates, atoms, weights: values.to_vec(), lengths, passes }
    }

    /// Numbers of rows, increasing, of places among the candidates.
    pub(super) fn rows(&self, chosen: &[usize]) -> Vec<usize> {
        sorted(chosen.iter().map(|&i| self.candidates[i]).collect())
    }

    /// The first `count` picks, fewer if they span everything.
    pub(super) fn picks(&self, count: usize) -> Result<Vec<usize>> {
        let mut rest = Rest { lengths: self.lengths.clone(), g: self.counting().to_owned() };
        let mut basis = Mat::zeros(self.atoms.ncols(), 0);
        let mut chosen = Vec::new();
        while chosen.len() < count {
            check(self.task.watch, "picks", chosen.len() as f64 / count as f64)?;
            let gains = self.gains(&rest);
            let best = largest(gains.iter().copied());
            if gains[best] < 0.0 {
                break;
            }
            if let Some(v) = self.direction(best, basis.as_ref()) {
                chosen.push(best);
                rest = rest.changed(&self.atoms, &v, -1.0);
                basis = dense::beside(basis.as_ref(), v.as_ref());
            }
            rest.lengths[best] = 0.0;
        }
        Ok(chosen)
    }

    /// The columns of the rows along which T counts.
    fn counting(&self) -> MatRef<'_, f64> {
        self.atoms.as_ref().subcols(0, self.weights.len())
    }

    /// The unit vector that row `i` adds to a basis, unless it is in its span.
    fn direction(&self, i: usize, basis: MatRef<f64>) -> Option<Mat<f64>> {
        let f = self.atoms.as_ref().subrows(i, 1).transpose().to_owned();
        let rest = project_out(&project_out(&f, basis), basis);
        let norm = rest.norm_l2();
        (norm * norm > 0.1 * SPANNED * self.lengths[i]).then(|| Mat::from_fn(f.nrows(), 1, |k, _| rest[(k, 0)] / norm))
    }

    /// `gᵀTg / ‖g‖²` of each row; −1 of those that are spanned.
    fn gains(&self, rest: &Rest) -> Vec<f64> {
        let mut sums = vec![0.0; rest.lengths.len()];
        for (column, weight) in rest.g.col_iter().zip(&self.weights) {
            sums.iter_mut().zip(column.iter()).for_each(|(sum, g)| *sum += weight * g * g);
        }
        let left = rest.lengths.iter().zip(&self.lengths);
        sums.iter().zip(left).map(|(sum, (left, all))| if *left > SPANNED * all { sum / left } else { -1.0 }).collect()
    }

    /// Exchanges points while that helps. Without one of them the span loses a direction h, orthogonal to the others: what
    /// each row would gain in its place follows by one product with h.
    pub(super) fn exchanged(&self, mut chosen: Vec<usize>) -> Result<(Vec<usize>, Settled)> {
        let unsettled = |passes| Settled { passes, done: false };
        for pass in 1..=self.passes {
            check(self.task.watch, "exchanges", pass as f64 / self.passes as f64)?;
            let Some(mut span) = Span::new(self, &chosen) else { return Ok((chosen, unsettled(pass))) };
            let mut swapped = false;
            for at in 0..chosen.len() {
                let gains = self.gains(&span.rest.changed(&self.atoms, &span.only(at), 1.0));
                let best = largest(gains.iter().copied());
                if gains[best] <= (1.0 + PAYS) * gains[chosen[at]] {
                    continue;
                }
                let old = std::mem::replace(&mut chosen[at], best);
                match Span::new(self, &chosen) {
                    Some(next) => (span, swapped) = (next, true),
                    None => chosen[at] = old,
                }
            }
            if !swapped {
                return Ok((chosen, Settled { passes: pass, done: true }));
            }
        }
        Ok((chosen, unsettled(self.passes)))
    }

    /// The fewest points, exchanged, that hold the fidelity: on the factor first, then on the data.
    fn smallest(&self, factor: &Factor, values: &[f64], fidelity: f64) -> Result<(Vec<usize>, Expansion, Settled)> {
        let q = self.task.q;
        let t = dense::diagonal(values);
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
        let all_picks = self.exchanged(picks.clone())?;
        let (mut high, mut best) = search::smallest(0, picks.len(), all_picks, |count| {
            let tried = self.exchanged(picks[..count].to_vec())?;
            Ok(holds(&tried.0)?.then_some(tried))
        })?;
        // The factor is a little kinder than the data.
        loop {
            let rows = self.rows(&best.0);
            let expansion = self.task.expansion(&rows, None)?;
            if self.task.fidelity(&rows, &expansion)? >= fidelity {
                return Ok((rows, expansion, best.1));
            }
            high += 1 + high / 20;
            if high > picks.len() {
                picks = self.picks(2 * high)?;
            }
            if high > picks.len() {
                // The picks span all there is; rounding alone is missing.
                return Ok((rows, expansion, best.1));
            }
            best = self.exchanged(picks[..high].to_vec())?;
        }
    }
}

fn sorted(mut rows: Vec<usize>) -> Vec<usize> {
    rows.sort_unstable();
    rows
}

/// What a span leaves of every row.
struct Rest {
    /// `‖g_i‖²`
    lengths: Vec<f64>,
    /// g along the directions that count.
    g: Mat<f64>,
}

impl Rest {
    /// When the unit vector `v` joins the span (`sign` −1), or leaves it (+1).
    fn changed(&self, atoms: &Mat<f64>, v: &Mat<f64>, sign: f64) -> Rest {
        let along = dense::product(atoms.as_ref(), v.as_ref());
        let lengths = self.lengths.iter().zip(along.col(0).iter()).map(|(length, a)| length + sign * a * a).collect();
        let mut g = self.g.clone();
        for (k, column) in g.col_iter_mut().enumerate() {
            let step = sign * v[(k, 0)];
            column.iter_mut().zip(along.col(0).iter()).for_each(|(g, a)| *g += step * a);
        }
        Rest { lengths, g }
    }
}

/// The span of chosen rows.
struct Span {
    /// The rows, m × r, …
    points: Mat<f64>,
    /// … and the Cholesky factor of their inner products.
    l: Mat<f64>,
    rest: Rest,
}

impl Span {
    /// Nothing if they depend on each other.
    fn new(choice: &Choice, chosen: &[usize]) -> Option<Span> {
        let points = Mat::from_fn(chosen.len(), choice.atoms.ncols(), |i, k| choice.atoms[(chosen[i], k)]);
        let l = dense::cholesky(dense::product(points.as_ref(), points.transpose()).as_ref())?;
        let mut basis = points.clone();
        dense::solve_lower(l.as_ref(), basis.as_mut());
        let along = dense::product(choice.atoms.as_ref(), basis.transpose());
        let mut lengths = choice.lengths.clone();
        for column in along.col_iter() {
            lengths.iter_mut().zip(column.iter()).for_each(|(left, a)| *left -= a * a);
        }
        let counting = choice.counting();
        let mut g = counting.to_owned();
        dense::subtract_product(g.as_mut(), along.as_ref(), basis.as_ref().subcols(0, counting.ncols()));
        Some(Span { points, l, rest: Rest { lengths, g } })
    }

    /// The unit vector of the span that is orthogonal to all points but one.
    fn only(&self, at: usize) -> Mat<f64> {
        let mut x = Mat::from_fn(self.l.nrows(), 1, |i, _| if i == at { 1.0 } else { 0.0 });
        dense::solve_lower(self.l.as_ref(), x.as_mut());
        dense::solve_lower_transposed(self.l.as_ref(), x.as_mut());
        let h = dense::product(self.points.transpose(), x.as_ref());
        let norm = h.norm_l2();
        Mat::from_fn(h.nrows(), 1, |k, _| h[(k, 0)] / norm)
    }
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
