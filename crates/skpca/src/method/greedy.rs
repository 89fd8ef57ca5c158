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
//! `gain=top` is what the best q components in the span gain, W(Z ∪ i) − W(Z), itself.

use faer::{Mat, MatRef};

use super::search;
use super::shared::Principal;
use super::{DEPENDENT, Entry, Method, Report, Size, Solution, Support, Target, Task, usual_rank};
use crate::dense;
use crate::error::Result;
use crate::factor::Factor;
use crate::points::Points;
use crate::random::Random;
use crate::spec::Spec;
use crate::spectrum::Expansion;
use crate::watch::check;

/// Rows among which points are chosen: all up to this many, a uniform sample above, or as many a point.
pub(super) const CANDIDATES: usize = 4000;
pub(super) const CANDIDATES_A_POINT: usize = 10;
/// A row is spanned when less than this share of its squared length is left.
const SPANNED: f64 = 1e-9;
/// An exchange pays when it gains this share more.
const PAYS: f64 = 1e-6;
/// Eigenvalues are looked for to this share of the largest.
const DIGITS: f64 = 1e-10;
/// Passes of exchanges where nothing is said.
const EXCHANGES: usize = 10;

pub(super) const ENTRY: Entry = Entry {
    name: "greedy",
    summary: "rows that gain most, one after the other, then exchanged while that helps",
    source: "Li & Gao 2011",
    parameters: {
        use crate::parameter::Parameter;
        &[
            Parameter::choice(
                "gain",
                &["leading", "trace", "top"],
                "leading: what the leading q eigenvectors hold; trace: all variance; top: what q components in the span gain",
            ),
            Parameter::count("exchanges", 0, EXCHANGES, "passes in which each point may be exchanged for a better one")
                .as_sklearn("max_iter"),
            super::parameters::RANK,
        ]
    },
    capabilities: super::Capabilities::NONE,
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
    /// Points that hold as much as they can of everything; exchanges would add little to a span and take most of the time.
    pub(super) fn of_all_variance() -> Greedy {
        Greedy { gain: "trace", exchanges: 0, rank: None }
    }
}

impl Method for Greedy {
    fn fit(&self, task: &mut Task) -> Result<Solution> {
        let task = &*task;
        let n = task.points.n();
        let support = if let Some(Target::Support(m)) = task.target { m } else { 0 };
        let principal = task.principal(usual_rank(self.rank, n, task.target))?;
        let Principal { factor, values } = &*principal;
        let leading = values.len().min(if self.gain == "leading" { task.q } else { values.len() });
        let mut choice = Choice::new(task, factor, &values[..leading], support, self.exchanges);
        choice.top = (self.gain == "top").then_some(task.q);
        let (rows, expansion, settled) = match task.aim() {
            Target::Fidelity(fidelity) => choice.smallest(factor, values, fidelity)?,
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
            fewer: if self.rank.is_some() { "the factor's rank allows no more" } else { DEPENDENT },
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
    /// How many components count, where it is not T that says so.
    top: Option<usize>,
}

impl<'a> Choice<'a> {
    pub(super) fn new(task: &'a Task<'a>, factor: &Factor, values: &[f64], m: usize, passes: usize) -> Choice<'a> {
        let candidates = Random::new(task.seed, 15).sample(factor.n(), CANDIDATES.max(CANDIDATES_A_POINT * m));
        let atoms = factor.rows_of(&candidates);
        let lengths = (0..atoms.nrows()).map(|i| atoms.row(i).squared_norm_l2()).collect();
        Choice { task, candidates, atoms, weights: values.to_vec(), lengths, passes, top: None }
    }

    /// Numbers of rows, increasing, of places among the candidates.
    pub(super) fn rows(&self, chosen: &[usize]) -> Vec<usize> {
        sorted(chosen.iter().map(|&i| self.candidates[i]).collect())
    }

    /// The rows themselves.
    pub(super) fn points(&self, chosen: &[usize]) -> Points<'static> {
        self.task.points.select(&self.rows(chosen))
    }

    /// The first `count` picks, fewer if they span everything.
    pub(super) fn picks(&self, count: usize) -> Result<Vec<usize>> {
        let mut rest = Rest { lengths: self.lengths.clone(), g: self.counting().to_owned() };
        let mut basis = Mat::zeros(self.atoms.ncols(), 0);
        let mut chosen = Vec::new();
        while chosen.len() < count {
            check(self.task.watch, "picks", chosen.len() as f64 / count as f64)?;
            let (best, gain) = self.gains(&rest, || basis.clone())?.best();
            if gain < 0.0 {
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

    /// What each row gains beside a span, `basis` of it orthonormal.
    fn gains<'b>(&'b self, rest: &'b Rest, basis: impl FnOnce() -> Mat<f64>) -> Result<Gains<'b>> {
        let mut sums = vec![0.0; rest.lengths.len()];
        for (column, weight) in rest.g.col_iter().zip(&self.weights) {
            sums.iter_mut().zip(column.iter()).for_each(|(sum, g)| *sum += weight * g * g);
        }
        let left = rest.lengths.iter().zip(&self.lengths);
        let quotient = |(sum, (left, all)): (&f64, (&f64, &f64))| if *left > SPANNED * all { sum / left } else { -1.0 };
        let traces = sums.iter().zip(left).map(quotient).collect();
        let ritz = self.top.map(|q| Ritz::new(&self.weights, &self.atoms, basis().as_ref(), q)).transpose()?;
        Ok(Gains { rest, traces, ritz })
    }

    /// Exchanges points while that helps. Without one of them the span loses a direction h, orthogonal to the others: what
    /// each row would gain in its place follows by one product with h.
    pub(super) fn exchanged(&self, mut chosen: Vec<usize>) -> Result<(Vec<usize>, Settled)> {
        // No passes asked for are no passes missed.
        let unsettled = |passes| Settled { passes, done: self.passes == 0 };
        for pass in 1..=self.passes {
            let Some(mut span) = Span::new(self, &chosen) else { return Ok((chosen, unsettled(pass))) };
            let mut swapped = false;
            for at in 0..chosen.len() {
                check(self.task.watch, "exchanges", (pass - 1) as f64 / self.passes as f64)?;
                let only = span.only(at);
                let rest = span.rest.changed(&self.atoms, &only, 1.0);
                let gains = self.gains(&rest, || span.without(&only))?;
                let (best, gain) = gains.best();
                if gain <= (1.0 + PAYS) * gains.of(chosen[at]) || chosen.contains(&best) {
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
                // The picks span all that the factor holds.
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
    /// Nothing if they depend on each other, or nearly so: gains would be rounding.
    fn new(choice: &Choice, chosen: &[usize]) -> Option<Span> {
        let points = Mat::from_fn(chosen.len(), choice.atoms.ncols(), |i, k| choice.atoms[(chosen[i], k)]);
        let l = dense::cholesky(dense::product(points.as_ref(), points.transpose()).as_ref())?;
        if (0..chosen.len()).any(|i| l[(i, i)] * l[(i, i)] <= SPANNED * choice.lengths[chosen[i]]) {
            return None;
        }
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

    /// An orthonormal basis of the span without the unit vector `h` of it, r × m − 1.
    fn without(&self, h: &Mat<f64>) -> Mat<f64> {
        let mut basis = self.points.clone();
        dense::solve_lower(self.l.as_ref(), basis.as_mut());
        let along = dense::product(basis.as_ref(), h.as_ref());
        // The reflection that takes the coordinates of h to the last axis takes the other axes to a basis of the rest.
        let m = along.nrows();
        let sign = if along[(m - 1, 0)] < 0.0 { -1.0 } else { 1.0 };
        let mut w = along;
        w[(m - 1, 0)] += sign;
        let norm = w.squared_norm_l2();
        let axes = Mat::from_fn(m, m - 1, |i, k| f64::from(i == k) - 2.0 * w[(i, 0)] * w[(k, 0)] / norm);
        dense::product(basis.transpose(), axes.as_ref())
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

/// What each row gains when it joins a span.
struct Gains<'a> {
    rest: &'a Rest,
    /// `gᵀTg / ‖g‖²`; −1 of rows that are spanned.
    traces: Vec<f64>,
    ritz: Option<Ritz>,
}

impl Gains<'_> {
    fn of(&self, i: usize) -> f64 {
        match &self.ritz {
            Some(ritz) if self.traces[i] > 0.0 => ritz.gain(i, self.rest.lengths[i], self.traces[i]),
            _ => self.traces[i],
        }
    }

    /// The row that gains most, the first of equal ones, and its gain.
    fn best(&self) -> (usize, f64) {
        if self.ritz.is_none() {
            let larger = |best: (usize, f64), (i, &gain): (usize, &f64)| if gain > best.1 { (i, gain) } else { best };
            return self.traces.iter().enumerate().fold((0, f64::NEG_INFINITY), larger);
        }
        let mut order: Vec<usize> = (0..self.traces.len()).collect();
        order.sort_by(|&i, &j| self.traces[j].total_cmp(&self.traces[i]));
        let mut best = (order[0], f64::NEG_INFINITY);
        for i in order {
            // Nothing gains more than in trace.
            if self.traces[i] <= best.1 {
                break;
            }
            let gain = self.of(i);
            if gain > best.1 {
                best = (i, gain);
            }
        }
        best
    }
}

/// The eigenpairs (λ, v) of T in a span. A row that joins it borders their diagonal:
///
/// ```text
/// ( Λ   b )      b_k = v_kᵀT g / ‖g‖ = (T v_k − λ_k v_k)ᵀ f / ‖g‖
/// ( bᵀ  c )      c   = gᵀT g / ‖g‖²,  the gain in trace
/// ```
struct Ritz {
    q: usize,
    values: Vec<f64>,
    /// `b_k ‖g‖` of each row, m × n.
    borders: Mat<f64>,
}

impl Ritz {
    fn new(t: &[f64], atoms: &Mat<f64>, basis: MatRef<f64>, q: usize) -> Result<Ritz> {
        let weighted = |a: MatRef<f64>| Mat::from_fn(a.nrows(), a.ncols(), |i, k| t[i] * a[(i, k)]);
        let inside = dense::product(basis.transpose(), weighted(basis).as_ref());
        let (values, u) = match basis.ncols() {
            0 => (Vec::new(), Mat::zeros(0, 0)),
            _ => dense::eigen(inside.as_ref())?,
        };
        let v = dense::product(basis, u.as_ref());
        let residuals = Mat::from_fn(v.nrows(), v.ncols(), |i, k| (t[i] - values[k]) * v[(i, k)]);
        Ok(Ritz { q, values, borders: dense::product(residuals.transpose(), atoms.transpose()) })
    }

    /// What the sum of the q largest eigenvalues gains by row i, ‖g‖² and c given: they move up to where
    /// `μ − c − Σ b_k² / (μ − λ_k)`, which rises from one λ to the next, is zero.
    fn gain(&self, i: usize, length: f64, c: f64) -> f64 {
        if self.values.len() < self.q {
            return c;
        }
        let squares: Vec<f64> = self.borders.col_as_slice(i).iter().map(|b| b * b / length).collect();
        let highest = self.values[0].max(c) + squares.iter().sum::<f64>().sqrt();
        let secular = |mu: f64| -> f64 {
            mu - c
                - squares.iter().zip(&self.values).map(|(b, v)| if *b > 0.0 { b / (mu - v) } else { 0.0 }).sum::<f64>()
        };
        let moved = |k: usize| {
            let (mut low, mut high) = (self.values[k], if k == 0 { highest } else { self.values[k - 1] });
            while high - low > DIGITS * highest {
                let middle = 0.5 * (low + high);
                if secular(middle) < 0.0 { low = middle } else { high = middle }
            }
            low - self.values[k]
        };
        (0..self.q).map(moved).sum()
    }
}
