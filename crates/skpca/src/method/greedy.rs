//! Expansion vectors chosen among the rows (Li & Gao 2011): one after the other, each that which gains most.
//!
//! ```text
//! captured by the span of Z:  tr P_Z T,   P_Z the projector on the span      = tr K_zz⁻¹ C on the data
//! gain of row i:              g_iᵀ T g_i / ‖g_i‖²,   g_i = φ(x_i) − P_Z φ(x_i)
//! ```
//!
//! Then exchanges: each point in turn leaves and the best one takes its place, until none is better than the one that left.
//! T is the part of the scatter along the leading q eigenvectors (`gain=leading`), which asks for what q components need and
//! nothing else, or the whole of it (`gain=trace`). `gain=top` is what the best q components in the span gain, W(Z ∪ i) − W(Z), itself.
//!
//! Of a row only its length, its coordinates along the eigenvectors of T that count and its inner products with the points
//! chosen are needed. The leading eigenvectors are those that fidelity is measured against, so `leading` makes no factor: a pick
//! costs a column of the kernel matrix, n (d + m + q) multiply-adds, a try to exchange n (m + q). The other gains, and `rank`, use a factor.

use std::cell::RefCell;
use std::collections::BTreeMap;

use faer::{Mat, MatRef};

use super::search::{Chosen, until_held};
use super::shared::Principal;
use super::{DEPENDENT, Entry, Method, NO_VARIANCE, Size, Solution, Support, Target, Task, usual_rank};
use crate::dense;
use crate::eigen::{Accuracy, top};
use crate::error::{Error, Result};
use crate::factor::{Factor, sums};
use crate::gradient::Anchors;
use crate::kernel_matrix::{diagonal, gram};
use crate::points::Points;
use crate::random::{Random, Stream};
use crate::reference::{Leading, Reference};
use crate::report::Report;
use crate::spec::Spec;
use crate::spectrum::Expansion;
use crate::watch::check;

/// Rows among which points are chosen: all up to this many, a uniform sample above, or this many per point.
pub(super) const CANDIDATES: usize = 4000;
pub(super) const CANDIDATES_PER_POINT: usize = 10;
/// A row is spanned when less than this share of its squared length is left.
const SPANNED: f64 = 1e-9;
/// An exchange pays when it gains this share more.
const PAYS: f64 = 1e-6;
/// Gains are equal that differ by less than this share, or by less than this share of the largest eigenvalue: on symmetric tables, or where
/// nothing is left to gain, rounding would choose.
const TIED: f64 = 1e-9;
const ROUNDING: f64 = 1e-12;
/// Eigenvalues are looked for to this share of the largest.
const DIGITS: f64 = 1e-10;
/// Columns of the kernel matrix that are made together, …
const TOGETHER: usize = 16;
/// … and how many are kept before all are forgotten.
const KEPT: usize = 1000;
/// Columns that are kept together while points are picked.
const PIECE: usize = 32;
/// Passes of exchanges by default.
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
    fn fit(&self, task: &Task) -> Result<Solution> {
        self.choose(task, |choice| self.chosen(task, choice))
    }

    fn fidelities(&self, task: &Task, most: usize) -> Result<Option<Vec<(usize, f64)>>> {
        self.choose(task, |choice| choice.fidelities(most)).map(Some)
    }

    fn holds_rows(&self, size: &Size) -> bool {
        !self.by_kernel(size.n, size.points(10 * size.q))
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
    /// Whether the rows on which fidelity is measured are all that is needed.
    fn by_kernel(&self, n: usize, support: usize) -> bool {
        let enough = n <= CANDIDATES || CANDIDATES_PER_POINT * support <= CANDIDATES;
        self.gain == "leading" && self.rank.is_none() && enough
    }

    /// What `then` makes of the rows to choose among.
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
            objective: Some(expansion.captured / task.n() as f64),
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

impl Chosen for (Vec<usize>, Expansion, Exchanged) {
    fn rows(&self) -> &[usize] {
        &self.0
    }

    fn expansion(&self) -> &Expansion {
        &self.1
    }
}

/// How exchanges ended.
#[derive(Clone, Copy)]
pub(super) struct Exchanged {
    passes: usize,
    /// Whether no exchange helped any more.
    done: bool,
}

/// The rows to choose among.
pub(super) struct Selection<'a> {
    task: &'a Task<'a>,
    /// Numbers of the rows, increasing.
    candidates: Vec<usize>,
    source: InnerProducts<'a>,
    /// Each row along the eigenvectors of T that count …
    along: Mat<f64>,
    /// … and T along them.
    weights: Vec<f64>,
    /// `‖φ(x_i)‖²`
    lengths: Vec<f64>,
    passes: usize,
    /// How many components count, where it is not T that says so.
    top: Option<usize>,
}

/// Where inner products of rows come from.
enum InnerProducts<'a> {
    /// Rows of a factor, in coordinates where T is `values`.
    Factor { atoms: Mat<f64>, factor: &'a Factor, values: &'a [f64] },
    /// The kernel; columns of its matrix that were needed are kept.
    Kernel { anchors: Box<Anchors>, columns: RefCell<BTreeMap<usize, Vec<f64>>> },
}

impl<'a> Selection<'a> {
    /// Among the rows on which fidelity is measured.
    pub(super) fn leading(task: &'a Task<'a>, passes: usize) -> Result<Selection<'a>> {
        let candidates = task.reference()?.rows.clone();
        let points = task.rows.gather(&candidates)?;
        let made;
        let Leading { values, along } = match &task.reference()?.leading {
            Some(leading) => leading,
            // Found without these rows, or in a feature space of few dimensions.
            None => {
                made = Reference::new(task.kernel, &points, task.q, task.center, task.seed, task.watch)?;
                made.leading.as_ref().expect("so few rows are looked at themselves")
            }
        };
        if values.is_empty() {
            return Err(Error::NoVariance { why: NO_VARIANCE.into() });
        }
        let lengths = diagonal(task.kernel, &points)?;
        let (weights, along) = (values.clone(), along.clone());
        let anchors = Box::new(Anchors::new(task.kernel, points));
        let source = InnerProducts::Kernel { anchors, columns: RefCell::default() };
        Ok(Selection { task, candidates, source, along, weights, lengths, passes, top: None })
    }

    /// Among the rows of a factor (a sample where there are many); T counts along its first `counting` coordinates.
    fn of_factor(
        task: &'a Task<'a>,
        factor: &'a Factor,
        values: &'a [f64],
        counting: usize,
        passes: usize,
    ) -> Selection<'a> {
        let most = CANDIDATES.max(CANDIDATES_PER_POINT * task.support());
        let candidates = Random::new(task.seed, Stream::GreedyCandidates).sample(factor.n(), most);
        let atoms = factor.rows_of(&candidates);
        let lengths = (0..atoms.nrows()).map(|i| atoms.row(i).squared_norm_l2()).collect();
        let (along, weights) = (atoms.as_ref().subcols(0, counting).to_owned(), values[..counting].to_vec());
        let source = InnerProducts::Factor { atoms, factor, values };
        Selection { task, candidates, source, along, weights, lengths, passes, top: None }
    }

    fn rank(&self) -> Option<usize> {
        match &self.source {
            InnerProducts::Factor { factor, .. } => Some(factor.rank()),
            InnerProducts::Kernel { .. } => None,
        }
    }

    /// Numbers of rows that span all there is, if they are no more than `m`.
    pub(super) fn spanning(&self, m: usize) -> Option<Vec<usize>> {
        match &self.source {
            InnerProducts::Factor { factor, .. } => (m >= factor.rank()).then(|| sorted(factor.pivots.clone())),
            InnerProducts::Kernel { .. } => (m >= self.task.n()).then(|| self.candidates.clone()),
        }
    }

    /// Numbers of rows, increasing, of places among the candidates.
    pub(super) fn rows(&self, chosen: &[usize]) -> Vec<usize> {
        sorted(chosen.iter().map(|&i| self.candidates[i]).collect())
    }

    /// The rows themselves.
    pub(super) fn points(&self, chosen: &[usize]) -> Result<Points<'static>> {
        self.task.rows.gather(&self.rows(chosen))
    }

    /// `φ(x_i)·φ(x_p)` of all candidates i and those chosen.
    fn inner(&self, chosen: &[usize]) -> Mat<f64> {
        match &self.source {
            InnerProducts::Factor { atoms, .. } => dense::product(atoms.as_ref(), gathered(atoms, chosen).transpose()),
            InnerProducts::Kernel { anchors, columns } => {
                let mut columns = columns.borrow_mut();
                let missing: Vec<usize> = chosen.iter().copied().filter(|p| !columns.contains_key(p)).collect();
                if !missing.is_empty() {
                    let k = anchors.between(&missing);
                    columns.extend(missing.iter().enumerate().map(|(at, p)| (*p, k.col_as_slice(at).to_vec())));
                }
                let mut out = Mat::zeros(self.lengths.len(), chosen.len());
                (0..chosen.len()).for_each(|at| out.col_as_slice_mut(at).copy_from_slice(&columns[&chosen[at]]));
                out
            }
        }
    }

    /// The column of one row. Where it must be made, those of the rows that gain most are made with it: a tile has as many lanes,
    /// and some of them come next.
    fn column(&self, row: usize, gains: &Gains) -> Mat<f64> {
        if let InnerProducts::Kernel { columns, .. } = &self.source {
            if columns.borrow().len() > KEPT {
                columns.borrow_mut().clear();
            }
            if !columns.borrow().contains_key(&row) {
                let mut next: Vec<usize> = (0..gains.traces.len()).filter(|&i| i != row).collect();
                let count = (TOGETHER - 1).min(next.len());
                let larger = |i: &usize, j: &usize| gains.traces[*j].total_cmp(&gains.traces[*i]).then(i.cmp(j));
                if count < next.len() {
                    next.select_nth_unstable_by(count, larger);
                    next.truncate(count);
                }
                next.push(row);
                self.inner(&next);
            }
        }
        self.inner(&[row])
    }

    /// The first `count` picks, fewer if they span everything.
    pub(super) fn picks(&self, count: usize) -> Result<Vec<usize>> {
        let (n, c) = (self.lengths.len(), self.weights.len());
        let nothing = Held { u: vec![Mat::zeros(n, 0)], basis: Mat::zeros(c, 0), rest: self.all() };
        self.picks_beside(nothing, count)
    }

    /// Picks beside any points, each for what it adds to them and to those before it.
    pub(super) fn picks_beside_points(&self, z: &Points<'static>, count: usize) -> Result<Vec<usize>> {
        let InnerProducts::Kernel { anchors, .. } = &self.source else { return Ok(Vec::new()) };
        let n = self.lengths.len() as f64;
        // φ(z)·v_k = Σ_j a_jk k(x_j, z): the coefficients of a component are its rows' own coordinates over λ, without their mean.
        let mean = |k: usize| if self.task.center { self.along.col(k).sum() / n } else { 0.0 };
        let means: Vec<f64> = (0..self.weights.len()).map(mean).collect();
        let a = Mat::from_fn(self.along.nrows(), means.len(), |j, k| (self.along[(j, k)] - means[k]) / self.weights[k]);
        let mut u = anchors.values(z).matrix();
        let mut basis = dense::product(u.transpose(), a.as_ref());
        let Some(l) = dense::cholesky(gram(anchors.kernel(), z).as_ref()) else { return Ok(Vec::new()) };
        dense::solve_lower(l.as_ref(), basis.as_mut());
        dense::divide_by_transposed(u.as_mut(), l.as_ref());
        let rest = self.all().without(u.as_ref(), basis.as_ref());
        self.picks_beside(Held { u: vec![u], basis: basis.transpose().to_owned(), rest }, count)
    }

    fn picks_beside(&self, mut held: Held, count: usize) -> Result<Vec<usize>> {
        let mut chosen = Vec::new();
        while chosen.len() < count {
            check(self.task.watch, "picks", chosen.len() as f64 / count as f64)?;
            let sums = self.sums(&held.rest);
            let gains = self.gains(sums, held.rest.lengths.clone(), || held.basis.clone())?;
            let (best, gain) = gains.best();
            if gain < 0.0 {
                break;
            }
            let mut u = self.column(best, &gains);
            for of in &held.u {
                dense::subtract_product(u.as_mut(), of.as_ref(), of.as_ref().subrows(best, 1).transpose());
            }
            let length = u[(best, 0)];
            if length > 0.1 * SPANNED * self.lengths[best] {
                chosen.push(best);
                let root = length.sqrt();
                u.col_mut(0).iter_mut().for_each(|u| *u /= root);
                let v = Mat::from_fn(self.weights.len(), 1, |k, _| held.rest.g[(best, k)] / root);
                held.rest = held.rest.without(u.as_ref(), v.transpose());
                held.join(u);
                held.basis = dense::beside(held.basis.as_ref(), v.as_ref());
            }
            held.rest.lengths[best] = 0.0;
        }
        Ok(chosen)
    }

    /// All rows, where nothing spans anything of them.
    fn all(&self) -> Rest {
        Rest { lengths: self.lengths.clone(), g: self.along.clone() }
    }

    /// `gᵀTg` of each row.
    fn sums(&self, rest: &Rest) -> Vec<f64> {
        let mut sums = vec![0.0; rest.lengths.len()];
        for (column, weight) in rest.g.col_iter().zip(&self.weights) {
            sums.iter_mut().zip(column.iter()).for_each(|(sum, g)| *sum += weight * g * g);
        }
        sums
    }

    /// What each row gains beside a span, `basis` of it orthonormal, which leaves `gᵀTg` and `‖g‖²` of it.
    fn gains(&self, sums: Vec<f64>, lengths: Vec<f64>, basis: impl FnOnce() -> Mat<f64>) -> Result<Gains> {
        let left = lengths.iter().zip(&self.lengths);
        let quotient = |(sum, (left, all)): (&f64, (&f64, &f64))| if *left > SPANNED * all { sum / left } else { -1.0 };
        let traces = sums.iter().zip(left).map(quotient).collect();
        let ritz = self.top.map(|q| Ritz::new(&self.weights, &self.along, basis().as_ref(), q)).transpose()?;
        Ok(Gains { lengths, traces, ritz, rounding: ROUNDING * self.weights[0] })
    }

    /// Exchanges points while that helps.
    pub(super) fn exchanged(&self, mut chosen: Vec<usize>) -> Result<(Vec<usize>, Exchanged)> {
        // No passes asked for are no passes missed.
        let unsettled = |passes| Exchanged { passes, done: self.passes == 0 };
        if self.passes == 0 {
            return Ok((chosen, unsettled(0)));
        }
        let Some(mut span) = ChosenSpan::new(self, &chosen, self.inner(&chosen)) else {
            return Ok((chosen, unsettled(1)));
        };
        // Points tried since the last exchange: when all have been, none helps.
        let mut tried = 0;
        for pass in 1..=self.passes {
            for at in 0..chosen.len() {
                check(self.task.watch, "exchanges", (pass - 1) as f64 / self.passes as f64)?;
                tried += 1;
                if let Some((best, next)) = self.exchange(&span, &chosen, at)? {
                    (chosen[at], span, tried) = (best, next, 1);
                }
                if tried == chosen.len() {
                    return Ok((chosen, Exchanged { passes: pass, done: true }));
                }
            }
        }
        Ok((chosen, unsettled(self.passes)))
    }

    /// A row that is better in the place of one point, and the span with it. Without the point the span loses a direction h,
    /// orthogonal to the others: what each row would gain in its place follows by one product with h.
    fn exchange(&self, span: &ChosenSpan, chosen: &[usize], at: usize) -> Result<Option<(usize, ChosenSpan)>> {
        let (a, h) = span.only(at);
        let weighted: Vec<f64> = h.iter().zip(&self.weights).map(|(h, weight)| h * weight).collect();
        let square = dense::dot(&h, &weighted);
        let mut cross = vec![0.0; a.len()];
        for (column, w) in span.rest.g.col_iter().zip(&weighted) {
            cross.iter_mut().zip(column.iter()).for_each(|(cross, g)| *cross += w * g);
        }
        let of = span.sums.iter().zip(&cross).zip(&a);
        let sums = of.map(|((sum, cross), a)| sum + a * (2.0 * cross + a * square)).collect();
        let lengths = span.rest.lengths.iter().zip(&a).map(|(length, a)| length + a * a).collect();
        let gains = self.gains(sums, lengths, || span.without(&h))?;
        let (best, gain) = gains.best();
        if gain <= (1.0 + PAYS) * gains.of(chosen[at]) + gains.rounding || chosen.contains(&best) {
            return Ok(None);
        }
        let mut next = chosen.to_vec();
        next[at] = best;
        let mut k = span.k.clone();
        k.col_mut(at).copy_from(self.column(best, &gains).col(0));
        Ok(ChosenSpan::new(self, &next, k).map(|span| (best, span)))
    }

    /// The share of what exact kernel PCA captures that the span of these rows does.
    fn share(&self, chosen: &[usize]) -> Result<f64> {
        let (task, rows) = (self.task, self.rows(chosen));
        match &self.source {
            InnerProducts::Factor { factor, values, .. } => {
                let all: f64 = values.iter().take(task.q).sum();
                Ok(factor.captured(&dense::diagonal(values), &rows, None, task.q)? / all)
            }
            InnerProducts::Kernel { anchors, .. } => {
                let captured = match ChosenSpan::new(self, chosen, self.inner(chosen)) {
                    Some(span) => span.captured(task)?,
                    None => task.on(anchors.points()).expansion_of(&task.rows.gather(&rows)?)?.captured,
                };
                Ok(captured / self.weights.iter().sum::<f64>())
            }
        }
    }

    /// One point after the other, exchanged each time.
    fn fidelities(&self, most: usize) -> Result<Vec<(usize, f64)>> {
        let mut chosen = self.picks(1)?;
        let mut found = Vec::new();
        while !chosen.is_empty() {
            found.push((chosen.len(), self.share(&chosen)?));
            let next = self.grown(chosen.clone(), 1)?;
            if chosen.len() >= most || next.len() == chosen.len() {
                break;
            }
            chosen = self.exchanged(next)?.0;
        }
        Ok(found)
    }

    /// The fewest points, exchanged, that hold the fidelity: on these rows first, then on all.
    pub(super) fn smallest(&self, fidelity: f64) -> Result<(Vec<usize>, Expansion, Exchanged)> {
        let solved = |(chosen, exchanged): &(Vec<usize>, Exchanged)| {
            let rows = self.rows(chosen);
            let expansion = self.task.expansion(&rows, None)?;
            Ok((rows, expansion, *exchanged))
        };
        let next = |(chosen, _): (Vec<usize>, Exchanged)| {
            let count = chosen.len();
            let more = self.grown(chosen, 1 + count / 20)?;
            // Picks that span all there is cannot grow.
            if more.len() > count { self.exchanged(more).map(Some) } else { Ok(None) }
        };
        until_held(self.task, fidelity, self.smallest_here(fidelity)?, solved, next)
    }

    /// From the picks that hold it without exchanges, which make up for some: one point fewer, or more, at a time.
    fn smallest_here(&self, fidelity: f64) -> Result<(Vec<usize>, Exchanged)> {
        let (picks, held, rise) = self.enough(fidelity)?;
        if !held {
            // They span all there is: no exchange adds to that.
            return Ok((picks, Exchanged { passes: 0, done: true }));
        }
        let mut best = self.exchanged(picks)?;
        let mut share = self.share(&best.0)?;
        while share >= fidelity && best.0.len() > 1 {
            // What is too much, in points; a step may be too long, never the last.
            let spare = ((share - fidelity) / rise) as usize;
            let mut fewer = 1.max(spare.min(best.0.len() / 4));
            loop {
                let tried = self.exchanged(self.shrunk(best.0.clone(), fewer))?;
                let now = self.share(&tried.0)?;
                if now >= fidelity {
                    (best, share) = (tried, now);
                    break;
                }
                if fewer == 1 {
                    return Ok(best);
                }
                fewer /= 2;
            }
        }
        Ok(best)
    }

    /// The fewest picks that hold the fidelity as they are, whether there are any, and what the last one brought.
    fn enough(&self, fidelity: f64) -> Result<(Vec<usize>, bool, f64)> {
        let mut count = self.task.q.min(self.candidates.len());
        let mut picks = self.picks(count)?;
        let mut low = 0;
        while self.share(&picks)? < fidelity {
            if picks.len() < count {
                return Ok((picks, false, 1.0));
            }
            (low, count) = (count, 2 * count);
            picks = self.picks(count)?;
        }
        let mut high = picks.len();
        while low + 1 < high {
            let middle = low.midpoint(high);
            if self.share(&picks[..middle])? >= fidelity { high = middle } else { low = middle }
        }
        let last = high.div_ceil(4);
        let below = if last < high { self.share(&picks[..high - last])? } else { 0.0 };
        let rise = (self.share(&picks[..high])? - below) / last as f64;
        picks.truncate(high);
        Ok((picks, true, rise.max(1e-6)))
    }

    /// With more picks.
    fn grown(&self, mut chosen: Vec<usize>, more: usize) -> Result<Vec<usize>> {
        let Some(span) = ChosenSpan::new(self, &chosen, self.inner(&chosen)) else { return Ok(chosen) };
        let picks = self.picks_beside(span.held(), more)?;
        chosen.extend(picks);
        Ok(chosen)
    }

    /// Without those that lose least, one after the other.
    fn shrunk(&self, mut chosen: Vec<usize>, fewer: usize) -> Vec<usize> {
        for _ in 0..fewer {
            let Some(span) = ChosenSpan::new(self, &chosen, self.inner(&chosen)) else {
                chosen.pop();
                continue;
            };
            let loss = |at: usize| {
                let (_, h) = span.only(at);
                h.iter().zip(&self.weights).map(|(h, weight)| weight * h * h).sum::<f64>()
            };
            let least = (0..chosen.len())
                .map(|at| (loss(at), at))
                .fold((f64::INFINITY, 0), |a, b| if b.0 < a.0 { b } else { a });
            chosen.remove(least.1);
        }
        chosen
    }
}

fn sorted(mut rows: Vec<usize>) -> Vec<usize> {
    rows.sort_unstable();
    rows
}

fn gathered(a: &Mat<f64>, rows: &[usize]) -> Mat<f64> {
    Mat::from_fn(rows.len(), a.ncols(), |i, k| a[(rows[i], k)])
}

/// What a span leaves of every row.
struct Rest {
    /// `‖g_i‖²`
    lengths: Vec<f64>,
    /// g along the directions that count.
    g: Mat<f64>,
}

impl Rest {
    /// When orthonormal vectors join the span: `u` of the rows along them, and their own coordinates, a row each.
    fn without(mut self, u: MatRef<f64>, basis: MatRef<f64>) -> Rest {
        for column in u.col_iter() {
            self.lengths.iter_mut().zip(column.iter()).for_each(|(left, u)| *left -= u * u);
        }
        dense::subtract_product(self.g.as_mut(), u, basis);
        self
    }
}

/// A span: rows along an orthonormal basis of it, that basis along the directions that count (a column each), and what is left.
struct Held {
    /// In pieces of some columns each.
    u: Vec<Mat<f64>>,
    basis: Mat<f64>,
    rest: Rest,
}

impl Held {
    /// Adds a column; the last piece grows until it is worth a product of its own.
    fn join(&mut self, u: Mat<f64>) {
        match self.u.last_mut() {
            Some(last) if last.ncols() < PIECE => *last = dense::beside(last.as_ref(), u.as_ref()),
            _ => self.u.push(u),
        }
    }
}

/// The span of chosen rows.
struct ChosenSpan {
    /// Inner products of all rows with them, …
    k: Mat<f64>,
    /// … the Cholesky factor of theirs with each other, …
    l: Mat<f64>,
    /// … their coordinates that count, m × c, …
    points: Mat<f64>,
    rest: Rest,
    /// … and `gᵀTg` of each row.
    sums: Vec<f64>,
}

impl ChosenSpan {
    /// Nothing if they depend on each other, or nearly so: gains would be rounding.
    fn new(choice: &Selection, chosen: &[usize], k: Mat<f64>) -> Option<ChosenSpan> {
        let points = gathered(&choice.along, chosen);
        let l = dense::cholesky(gathered(&k, chosen).as_ref())?;
        if (0..chosen.len()).any(|i| l[(i, i)] * l[(i, i)] <= SPANNED * choice.lengths[chosen[i]]) {
            return None;
        }
        let mut span = ChosenSpan { k, l, points, rest: choice.all(), sums: Vec::new() };
        let (u, basis) = (span.u(), span.basis());
        span.rest = span.rest.without(u.as_ref(), basis.as_ref());
        span.sums = choice.sums(&span.rest);
        Some(span)
    }

    /// Rows along the orthonormal basis.
    fn u(&self) -> Mat<f64> {
        let mut u = self.k.clone();
        dense::divide_by_transposed(u.as_mut(), self.l.as_ref());
        u
    }

    /// The orthonormal basis along the directions that count, a row each.
    fn basis(&self) -> Mat<f64> {
        let mut basis = self.points.clone();
        dense::solve_lower(self.l.as_ref(), basis.as_mut());
        basis
    }

    /// What the best components in the span capture of the rows.
    fn captured(&self, task: &Task) -> Result<f64> {
        let u = self.u();
        let mut c = dense::product(u.transpose(), u.as_ref());
        if task.center {
            let means = Mat::from_fn(u.ncols(), 1, |i, _| u.col(i).sum());
            let share = Mat::from_fn(1, u.ncols(), |_, i| means[(i, 0)] / u.nrows() as f64);
            dense::subtract_product(c.as_mut(), means.as_ref(), share.as_ref());
        }
        let accuracy = Accuracy { trace: dense::trace(&c), ..Accuracy::default() };
        Ok(top(&c, task.q, accuracy, task.seed, task.watch)?.values.iter().sum())
    }

    fn held(self) -> Held {
        Held { u: vec![self.u()], basis: self.basis().transpose().to_owned(), rest: self.rest }
    }

    /// An orthonormal basis of the span without the unit vector `h` of it, r × m − 1; all coordinates count.
    fn without(&self, h: &[f64]) -> Mat<f64> {
        let basis = self.basis();
        let along = dense::product(basis.as_ref(), MatRef::from_column_major_slice(h, h.len(), 1));
        // The reflection that takes the coordinates of h to the last axis takes the other axes to a basis of the rest.
        let m = along.nrows();
        let sign = if along[(m - 1, 0)] < 0.0 { -1.0 } else { 1.0 };
        let mut w = along;
        w[(m - 1, 0)] += sign;
        let norm = w.squared_norm_l2();
        let axes = Mat::from_fn(m, m - 1, |i, k| f64::from(i == k) - 2.0 * w[(i, 0)] * w[(k, 0)] / norm);
        dense::product(basis.transpose(), axes.as_ref())
    }

    /// The unit vector of the span that is orthogonal to all points but one: the rows along it, and its coordinates that count.
    fn only(&self, at: usize) -> (Vec<f64>, Vec<f64>) {
        let mut x = Mat::from_fn(self.l.nrows(), 1, |i, _| if i == at { 1.0 } else { 0.0 });
        dense::solve_lower(self.l.as_ref(), x.as_mut());
        dense::solve_lower_transposed(self.l.as_ref(), x.as_mut());
        // Its squared length is xᵀK_zz x = x_at.
        let root = x[(at, 0)].sqrt();
        x.col_mut(0).iter_mut().for_each(|x| *x /= root);
        let a = dense::product(self.k.as_ref(), x.as_ref());
        let h = dense::product(self.points.transpose(), x.as_ref());
        (a.col_as_slice(0).to_vec(), h.col_as_slice(0).to_vec())
    }
}

/// What each row gains when it joins a span.
struct Gains {
    lengths: Vec<f64>,
    /// `gᵀTg / ‖g‖²`; −1 of rows that are spanned.
    traces: Vec<f64>,
    ritz: Option<Ritz>,
    /// Differences below this say nothing.
    rounding: f64,
}

impl Gains {
    fn of(&self, i: usize) -> f64 {
        match &self.ritz {
            Some(ritz) if self.traces[i] > 0.0 => ritz.gain(i, self.lengths[i], self.traces[i]),
            _ => self.traces[i],
        }
    }

    /// The row that gains most, the first of equal ones, and its gain.
    fn best(&self) -> (usize, f64) {
        if self.ritz.is_none() {
            let most = self.traces.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            // Rows that are spanned gain −1.
            let least = if most < 0.0 { most } else { (most - self.rounding.max(TIED * most)).max(0.0) };
            let first = self.traces.iter().position(|gain| *gain >= least).unwrap_or(0);
            return (first, self.traces[first]);
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
