//! The alternating scheme that Wang & Tanaka (2019) and Das, Golatkar & Awate (2018) share, on rows of feature space.
//!
//! ```text
//! Obj(A, P) = ½ tr T − tr VᵀTP + ½ tr VᵀTV + ridge + penalty,    V = FᵀA,  T = F̃ᵀF̃,  PᵀP = I
//!           = ½ tr T − tr AᵀC + ½ tr AᵀGA + penalty,             C = F T P
//!
//! ridge λ/2 ‖V‖²:  G = F(T + λI)Fᵀ          penalty on rows of A     (l2,1), or
//! ridge λ/2 ‖A‖²:  G = F T Fᵀ + λI          penalty on its entries   (l1), one number a column
//!
//! A-step: a (group) lasso for fixed P, convex           P-step: P = polar(T V), where −tr VᵀTP = −‖TV‖_*
//! ```
//!
//! Everything happens on a working set of rows, over which G is known, and P moves within its reach. When the alternation
//! has settled there, one pass over all rows finds those that would lower the objective, and they join. The duality gap over all rows, recomputed from what
//! is returned, is the certificate of the A-step. What vectors are, and how T acts on them, is the space's to know.

use std::ops::Range;

use faer::{ColRef, Mat, MatRef, Scale};
use rayon::prelude::*;

use super::polar::polar;
use super::reach::{Images, Reach};
use super::space::{Atoms, Space, Vectors};
use super::twins::Twins;
use crate::dense;
use crate::error::Result;
use crate::lasso::{self, Problem};
use crate::watch::{Watch, check};

/// What a coefficient costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Shape {
    /// Rows of A: one set of points for all components.
    Rows,
    /// Entries of A: each component its own points.
    Entries,
}

/// What keeps the coefficients from growing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Ridge {
    /// `λ/2 ‖V‖²`, the norm in feature space.
    Features(f64),
    /// `λ/2 ‖A‖²`
    Coefficients(f64),
}

impl Ridge {
    /// λ on features and on coefficients: one of them is zero.
    fn both(self) -> (f64, f64) {
        match self {
            Ridge::Features(lambda) => (lambda, 0.0),
            Ridge::Coefficients(lambda) => (0.0, lambda),
        }
    }
}

/// What is minimised, and how far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scheme {
    pub shape: Shape,
    pub ridge: Ridge,
    /// Relative duality gap of the A-step.
    pub gap: f64,
    /// P-steps at most; none leaves P at the leading eigenvectors.
    pub rounds: usize,
    /// One component after the other, each deflated against those before it (Wang's Algorithm 1).
    pub sequential: bool,
}

/// When an alternation ends: after so many P-steps, or when P moves less than `moved` (a column) and the objective falls
/// by less than `change` (a share); and at which gap over all rows the working set is large enough.
#[derive(Clone, Copy)]
struct Effort {
    rounds: usize,
    moved: f64,
    change: f64,
    gap: f64,
    /// Whether all rows have to be looked at.
    certified: bool,
}

/// What is enough to see which rows matter.
const LOOSE: Effort = Effort { rounds: 0, moved: 1e-2, change: 1e-6, gap: 1e-3, certified: false };
/// Rows in the working set from which columns are solved on all threads.
const SMALL: usize = 48;
/// Newton steps of an A-step.
const STEPS: usize = 200;
/// Passes over all rows that may enlarge the working set.
const PASSES: usize = 100;
/// Rows that pull more than this share of the penalty may join soon …
const NEARLY: f64 = 0.7;
/// … and no more than so many are watched, a quarter of them because they pull most.
const NEAREST: usize = 2000;
const FIRST: usize = NEAREST / 4;
/// A squared cosine that only equal rows have.
const EQUAL: f64 = 1.0 - 1e-10;
/// Rows that join at a time, or an eighth of the working set if that is more.
const JOIN: usize = 30;
/// Rows that join are no more alike than this cosine in feature space.
const ALIKE: f64 = 0.95;

/// A minimum, or where the search for it ended.
#[derive(Clone)]
pub(super) struct State {
    /// Orthonormal.
    pub p: Vectors,
    /// w × q over the working set.
    pub a: Mat<f64>,
    pub objective: f64,
    /// Relative, over all rows.
    pub gap: f64,
    /// P-steps taken.
    pub rounds: usize,
    pub converged: bool,
    /// η of the last A-step, to start the next from: one list a group of columns.
    sizes: Vec<Vec<f64>>,
}

/// What a look at the rows outside the working set has shown.
struct Look {
    /// Rows that would lower the objective, those that pull most first.
    first: Vec<usize>,
    /// How much each row looked at pulls, as a share of the penalty; zero for the working set.
    ratios: Vec<f64>,
}

/// Rows that may join soon, increasing. If there are many, those that pull most are neighbours, and once a few of them have
/// joined the others no longer want to: most of the watched are spread evenly over all.
fn nearest(ratios: &[f64]) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..ratios.len()).filter(|&i| ratios[i] > NEARLY).collect();
    if rows.len() > NEAREST {
        rows.select_nth_unstable_by(FIRST, |&i, &j| ratios[j].total_cmp(&ratios[i]).then(i.cmp(&j)));
        let mut others = rows.split_off(FIRST);
        others.sort_unstable();
        let spread = NEAREST - FIRST;
        rows.extend((0..spread).map(|k| others[k * others.len() / spread]));
        rows.sort_unstable();
    }
    rows
}

/// The problem on its working set.
pub(super) struct Alternation<'a> {
    space: &'a dyn Space,
    scheme: Scheme,
    twins: Option<Twins>,
    watch: &'a dyn Watch,
    /// `tr T`
    variance: f64,
    /// Rows that may join soon, if there are so many that looking at all of them is work.
    near: Option<Atoms>,
    /// The working set …
    pub atoms: Atoms,
    /// … their squared lengths …
    squares: Vec<f64>,
    /// … and G.
    gram: Mat<f64>,
    /// What a P that moves needs of them; nothing as long as there are none.
    images: Option<Images>,
}

/// What an A-step gives.
struct Coefficients {
    a: Mat<f64>,
    /// η
    sizes: Vec<Vec<f64>>,
    /// `½ tr T + ½ tr AᵀGA + penalty`
    without_p: f64,
}

/// Where an alternation on a working set has ended.
struct Settled {
    p: Vectors,
    sizes: Vec<Vec<f64>>,
    rounds: usize,
    settled: bool,
}

impl<'a> Alternation<'a> {
    pub(super) fn new(
        space: &'a dyn Space,
        scheme: Scheme,
        twins: Option<Twins>,
        watch: &'a dyn Watch,
    ) -> Alternation<'a> {
        let (variance, atoms, gram) = (space.variance(), space.atoms(Vec::new()), Mat::zeros(0, 0));
        Alternation {
            space,
            scheme,
            twins,
            watch,
            variance,
            near: None,
            atoms,
            squares: Vec::new(),
            gram,
            images: None,
        }
    }

    /// The largest useful penalty at P: from there on nothing is selected.
    pub(super) fn largest_penalty(&self, p: &Vectors) -> f64 {
        let pulls = self.pulls(&self.space.scatter(p), &vec![1.0; self.groups(p.count()).len()]);
        pulls.into_iter().fold(0.0, f64::max)
    }

    /// Minimises at `penalties`, one a group of columns, with P from `start`; coefficients found before, at other
    /// penalties, are a good start too.
    pub(super) fn solve(&mut self, start: &Vectors, penalties: &[f64], warm: Option<&State>) -> Result<State> {
        let mut sizes =
            warm.map_or_else(|| vec![Vec::new(); self.groups(start.count()).len()], |state| state.sizes.clone());
        let Scheme { gap, rounds, .. } = self.scheme;
        let tight = Effort { rounds, moved: gap.sqrt(), change: 0.1 * gap, gap, certified: true };
        let loose = Effort { rounds, gap: gap.max(LOOSE.gap), ..LOOSE };
        if rounds == 0 {
            return self.grown(start, penalties, sizes, tight);
        }
        if warm.is_none() {
            // The rows that matter before P moves.
            sizes = self.grown(start, penalties, sizes, Effort { rounds: 0, ..loose })?.sizes;
        }
        // Then those that matter when it has nearly settled.
        let rough = self.grown(start, penalties, sizes, loose)?;
        let left = rounds.saturating_sub(rough.rounds);
        let mut state = self.grown(&rough.p, penalties, rough.sizes, Effort { rounds: left, ..tight })?;
        state.rounds += rough.rounds;
        Ok(state)
    }

    fn once(&mut self, start: &Vectors, penalties: &[f64], sizes: &[Vec<f64>], effort: Effort) -> Result<State> {
        if effort.rounds == 0 || self.atoms.rows.is_empty() {
            // A P that is fixed, or that nothing moves, has settled; rounds that are used up are another matter.
            let settled = self.scheme.rounds == 0 || self.atoms.rows.is_empty();
            return Ok(self.state(start.clone(), penalties, sizes, 0, settled));
        }
        let images = Images::of(self.space, &self.atoms, self.images.take());
        let reach = Reach::new(self.space, &images, start);
        self.images = Some(images);
        let own = reach.start();
        let Settled { p, sizes, rounds, settled } = match self.scheme.sequential {
            true => self.one_by_one(&reach, &own, penalties, sizes, effort)?,
            false => self.alternate(&reach, &own, &own.columns(0..0), penalties, sizes, effort)?,
        };
        let p = reach.outside(&p);
        let directions = |i: usize| (i < self.space.rank()).then(|| self.space.direction(i));
        let p = polar(&p, start, &p.columns(0..0), &directions)?.0;
        Ok(self.state(p, penalties, &sizes, rounds, settled))
    }

    /// Alternates on the working set, enlarges it, and so on until no row outside wants to join. Between two passes over
    /// all rows only those that were near to joining are looked at.
    fn grown(
        &mut self,
        start: &Vectors,
        penalties: &[f64],
        mut sizes: Vec<Vec<f64>>,
        mut effort: Effort,
    ) -> Result<State> {
        let mut p = start.clone();
        let mut taken = 0;
        for pass in 1.. {
            check(self.watch, "working set", pass as f64 / PASSES as f64)?;
            sizes.iter_mut().for_each(|sizes| sizes.resize(self.atoms.rows.len(), 0.0));
            let mut state = self.once(&p, penalties, &sizes, effort)?;
            taken += state.rounds;
            effort.rounds = effort.rounds.saturating_sub(state.rounds);
            let outside = self.look(&mut state, penalties, effort);
            let last = pass == PASSES;
            if outside.is_empty() || last || !self.join(&outside) {
                if effort.certified && !outside.is_empty() {
                    self.certify(&mut state, penalties, None);
                }
                state.converged &= state.gap <= effort.gap;
                state.rounds = taken;
                return Ok(state);
            }
            (p, sizes) = (state.p, state.sizes);
        }
        unreachable!("the loop returns")
    }

    /// Rows that should join, none if the state is good enough: first among those near, then, if it has to be certified or
    /// none are known to be near, among all. The gap of a certified state is over all rows.
    fn look(&mut self, state: &mut State, penalties: &[f64], effort: Effort) -> Vec<usize> {
        if let Some(near) = &self.near {
            let outside = self.certify(state, penalties, Some(near)).first;
            if state.gap > effort.gap && !outside.is_empty() {
                return outside;
            }
            if !effort.certified {
                return Vec::new();
            }
        }
        let Look { first, ratios } = self.certify(state, penalties, None);
        self.near = (ratios.len() > 2 * NEAREST).then(|| self.space.atoms(nearest(&ratios)));
        if state.gap <= effort.gap { Vec::new() } else { first }
    }

    /// Columns that are penalised together.
    pub(super) fn groups(&self, q: usize) -> Vec<Range<usize>> {
        match self.scheme.shape {
            Shape::Rows => std::iter::once(0..q).collect(),
            Shape::Entries => (0..q).map(|k| k..k + 1).collect(),
        }
    }

    /// Algorithm 1's order: each component alternates until it settles, orthogonal to those before it.
    fn one_by_one(
        &self,
        reach: &Reach,
        start: &Vectors,
        penalties: &[f64],
        sizes: &[Vec<f64>],
        effort: Effort,
    ) -> Result<Settled> {
        let mut all = Settled { p: start.columns(0..0), sizes: Vec::new(), rounds: 0, settled: true };
        for k in 0..start.count() {
            let column = start.columns(k..k + 1);
            let own = polar(&column, &column, &all.p, &|i| reach.direction(i))?.0;
            let one = self.alternate(reach, &own, &all.p, &penalties[k..k + 1], &sizes[k..k + 1], effort)?;
            all.p = all.p.beside(&one.p);
            all.sizes.extend(one.sizes);
            all.rounds = all.rounds.max(one.rounds);
            all.settled &= one.settled;
        }
        Ok(all)
    }

    /// P-steps with momentum, which is dropped when the objective rises.
    fn alternate(
        &self,
        reach: &Reach,
        start: &Vectors,
        before: &Vectors,
        penalties: &[f64],
        sizes: &[Vec<f64>],
        effort: Effort,
    ) -> Result<Settled> {
        let tight = 1e-2 * self.scheme.gap;
        let (mut p, mut previous) = (start.clone(), start.clone());
        let mut sizes = sizes.to_vec();
        let (mut best, mut momentum, mut taken) = (f64::INFINITY, 0.0, 0);
        let mut settled = false;
        let directions = |i: usize| reach.direction(i);
        while taken < effort.rounds && !settled {
            taken += 1;
            check(self.watch, "alternation", taken as f64 / effort.rounds as f64)?;
            let ahead = match momentum > 0.0 {
                true => {
                    let further = p.plus(momentum / (momentum + 3.0), &p.plus(-1.0, &previous));
                    polar(&further, &p, before, &directions)?.0
                }
                false => p.clone(),
            };
            let step = self.coefficients(reach.along(&ahead), penalties, &sizes, tight);
            let (next, nuclear) = polar(&reach.image(step.a.as_ref()), &ahead, before, &directions)?;
            let objective = step.without_p - nuclear;
            if momentum > 0.0 && objective > best {
                momentum = 0.0;
                continue;
            }
            settled = next.plus(-1.0, &ahead).norm() <= effort.moved * (next.count() as f64).sqrt()
                && best - objective <= effort.change * objective.abs();
            (previous, p, sizes, best) = (p, next, step.sizes, objective);
            momentum += 1.0;
        }
        Ok(Settled { p, sizes, rounds: taken, settled })
    }

    /// A last A-step.
    fn state(&self, p: Vectors, penalties: &[f64], sizes: &[Vec<f64>], rounds: usize, converged: bool) -> State {
        let (c, squares) = self.space.along(&self.atoms, &p);
        let Coefficients { a, sizes, without_p } =
            self.coefficients((c.clone(), squares), penalties, sizes, 0.1 * self.scheme.gap);
        let objective = without_p - inner(&a, &c);
        State { p, a, objective, gap: f64::INFINITY, rounds, converged, sizes }
    }

    /// `V = FᵀA`
    fn combination(&self, a: &Mat<f64>) -> Vectors {
        self.space.combination(&self.atoms, a.as_ref())
    }

    /// The A-step, from C and the `⟨p_k, T p_k⟩`.
    fn coefficients(
        &self,
        (c, squares): (Mat<f64>, Vec<f64>),
        penalties: &[f64],
        sizes: &[Vec<f64>],
        tolerance: f64,
    ) -> Coefficients {
        let groups = self.groups(c.ncols());
        let answer = |g: usize| {
            let squared = squares[groups[g].clone()].iter().sum();
            let correlations = c.as_ref().subcols(groups[g].start, groups[g].len());
            let problem = Problem { gram: self.gram.as_ref(), correlations, squared, penalty: penalties[g] };
            problem.solve(sizes[g].clone(), tolerance, STEPS)
        };
        // Waking the threads takes as long as some of these problems.
        let answers: Vec<lasso::Answer> = match groups.len() == 1 || self.atoms.rows.len() < SMALL {
            true => (0..groups.len()).map(answer).collect(),
            false => (0..groups.len()).into_par_iter().map(answer).collect(),
        };
        let mut a = Mat::zeros(self.atoms.rows.len(), c.ncols());
        for (columns, answer) in groups.iter().zip(&answers) {
            a.as_mut().subcols_mut(columns.start, columns.len()).copy_from(&answer.coefficients);
        }
        let without_p = 0.5 * self.variance
            + 0.5 * answers.iter().map(|answer| answer.squared).sum::<f64>()
            + self.cost(&a, penalties).iter().sum::<f64>();
        Coefficients { a, sizes: answers.into_iter().map(|answer| answer.sizes).collect(), without_p }
    }

    /// The penalty, a group of columns.
    fn cost(&self, a: &Mat<f64>, penalties: &[f64]) -> Vec<f64> {
        let norms = |columns: &Range<usize>| -> f64 {
            let part = a.as_ref().subcols(columns.start, columns.len());
            (0..a.nrows()).map(|i| part.row(i).norm_l2()).sum()
        };
        self.groups(a.ncols()).iter().zip(penalties).map(|(columns, penalty)| penalty * norms(columns)).collect()
    }

    /// Sets the gap over all rows, or over the working set and those `near` it.
    fn certify(&self, state: &mut State, penalties: &[f64], near: Option<&Atoms>) -> Look {
        let (p, a) = (&state.p, &state.a);
        let v = self.combination(a);
        let left = self.space.scatter(&p.plus(-1.0, &v));
        let (features, _) = self.scheme.ridge.both();
        let y = left.plus(-features, &v);
        let groups = self.groups(p.count());
        let mut others = match near {
            None => self.pulls(&y, penalties),
            Some(near) => ratios(self.space.values(near, &y).as_ref(), &groups, penalties),
        };
        // A coefficient's own ridge pulls back; rows outside have none.
        let ridges: Vec<f64> = self.atoms.rows.iter().map(|&row| self.own_ridge(row)).collect();
        let mut own = self.space.values(&self.atoms, &y);
        for (own, a) in own.col_iter_mut().zip(a.col_iter()) {
            own.iter_mut().zip(a.iter()).zip(&ridges).for_each(|((own, a), ridge)| *own -= ridge * a);
        }
        let own = ratios(own.as_ref(), &groups, penalties);
        let count = groups.len();
        if let (None, Some(twins)) = (near, &self.twins) {
            twins.others.iter().for_each(|&i| others[i * count..][..count].fill(0.0));
        }
        for &row in &self.atoms.rows {
            let at = near.map_or(Some(row), |near| near.rows.binary_search(&row).ok());
            at.into_iter().for_each(|i| others[i * count..][..count].fill(0.0));
        }
        let (mut primal, mut dual) = (0.0, 0.0);
        for (g, (columns, cost)) in groups.iter().zip(self.cost(a, penalties)).enumerate() {
            let sum = |x: &Vectors, y: &Vectors| x.inner(y, columns.clone());
            let explained = sum(p, &left);
            let paid = |a: ColRef<f64>| a.iter().zip(&ridges).map(|(a, ridge)| ridge * a * a).sum::<f64>();
            let ridge = features * sum(&v, &v) + columns.clone().map(|k| paid(a.col(k))).sum::<f64>();
            let residual = explained - sum(&v, &left) + ridge;
            let largest = own.iter().chain(&others).skip(g).step_by(groups.len()).copied().fold(0.0, f64::max);
            let bounds = lasso::bounds(residual, explained, cost, largest);
            (primal, dual) = (primal + bounds.0, dual + bounds.1);
        }
        state.gap = lasso::gap(primal, dual);
        let ratios: Vec<f64> = match count {
            1 => others,
            _ => others.par_chunks_exact(count).map(|row| row.iter().copied().fold(0.0, f64::max)).collect(),
        };
        let mut first: Vec<usize> = (0..ratios.len()).filter(|&i| ratios[i] > 1.0 + 1e-10).collect();
        first.sort_by(|&i, &j| ratios[j].total_cmp(&ratios[i]).then(i.cmp(&j)));
        Look { first: first.into_iter().map(|i| near.map_or(i, |near| near.rows[i])).collect(), ratios }
    }

    /// `‖⟨φ_i, y⟩‖ / penalty`, a group of columns, for every row, row after row.
    fn pulls(&self, y: &Vectors, penalties: &[f64]) -> Vec<f64> {
        let groups = self.groups(y.count());
        self.space.pass(y, &|products| ratios(products, &groups, penalties))
    }

    /// Enlarges the working set by the first of `candidates` that are not too alike; tells whether it grew.
    fn join(&mut self, candidates: &[usize]) -> bool {
        let most = JOIN.max(self.atoms.rows.len() / 8);
        let considered = &candidates[..candidates.len().min(4 * most)];
        let atoms = self.space.atoms(considered.to_vec());
        let products = self.space.products(&atoms, &atoms);
        let known = self.space.products(&atoms, &self.atoms);
        let squares = &self.squares;
        let (features, coefficients) = self.scheme.ridge.both();
        // Collinear rows are no help, but under a ridge on coefficients, where the equal ones have been left out.
        let equal =
            |i: usize, w: usize| coefficients == 0.0 && known[(i, w)].powi(2) > EQUAL * products[(i, i)] * squares[w];
        let mut chosen: Vec<usize> = Vec::new();
        // A row equal to one of the working set pulls as that one does, but for rounding.
        for i in (0..considered.len()).filter(|&i| !(0..squares.len()).any(|w| equal(i, w))) {
            let alike = |&j: &usize| products[(i, j)].powi(2) > ALIKE * ALIKE * products[(i, i)] * products[(j, j)];
            if chosen.len() < most && !chosen.iter().any(alike) {
                chosen.push(i);
            }
        }
        let new = atoms.select(&chosen);
        self.squares.extend(chosen.iter().map(|&i| products[(i, i)]));
        self.atoms.extend(&new);
        // `F (T + λI) F_newᵀ` borders the Gram matrix.
        let inner = self.space.products(&self.atoms, &new);
        let mut columns = self.space.scattered(&self.atoms, &new);
        columns += Scale(features) * inner;
        for (j, &row) in new.rows.iter().enumerate() {
            columns[(self.gram.nrows() + j, j)] += self.own_ridge(row);
        }
        let (border, corner) = columns.as_ref().split_at_row(self.gram.nrows());
        self.gram = dense::bordered(self.gram.as_ref(), border, corner);
        !chosen.is_empty()
    }

    /// The ridge on a row's coefficient.
    fn own_ridge(&self, row: usize) -> f64 {
        let (_, coefficients) = self.scheme.ridge.both();
        coefficients / self.twins.as_ref().map_or(1.0, |twins| twins.counts[row])
    }

    /// Rows of the working set that `a` uses.
    pub(super) fn used(&self, a: &Mat<f64>) -> Vec<usize> {
        (0..a.nrows()).filter(|&i| a.row(i).iter().any(|v| *v != 0.0)).collect()
    }
}

/// Norms of each row's groups of columns, over the penalty of the group, row after row.
fn ratios(products: MatRef<f64>, groups: &[Range<usize>], penalties: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; products.nrows() * groups.len()];
    for (g, columns) in groups.iter().enumerate() {
        for k in columns.clone() {
            let values = products.col(k).iter();
            out.iter_mut().skip(g).step_by(groups.len()).zip(values).for_each(|(sum, v)| *sum += v * v);
        }
        out.iter_mut().skip(g).step_by(groups.len()).for_each(|sum| *sum = sum.sqrt() / penalties[g]);
    }
    out
}

/// `tr AᵀB`
fn inner(a: &Mat<f64>, b: &Mat<f64>) -> f64 {
    (0..a.ncols()).map(|k| a.col(k).transpose() * b.col(k)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eigen::{self, top};
    use crate::factor::{Factor, Stop};
    use crate::method::space::{FactorSpace, KernelSpace};
    use crate::points::Points;
    use crate::random::Random;
    use crate::spec::Spec;
    use crate::toys;

    /// The gap and the objective, from every row of the factor and nothing else of the solver's.
    fn recomputed(
        f: &Mat<f64>,
        t: &Mat<f64>,
        a: &Mat<f64>,
        p: &Mat<f64>,
        ridge: Ridge,
        shape: Shape,
        penalty: f64,
    ) -> (f64, f64) {
        let v = f.transpose() * a;
        let (features, coefficients) = ridge.both();
        let z = f * (t * (p - &v) - Scale(features) * &v) - Scale(coefficients) * a;
        let norms = |x: &Mat<f64>, k: usize| -> Vec<f64> {
            match shape {
                Shape::Rows => (0..x.nrows()).map(|i| x.row(i).norm_l2()).collect(),
                Shape::Entries => x.col(k).iter().map(|v| v.abs()).collect(),
            }
        };
        let q = p.ncols();
        let groups: Vec<Range<usize>> =
            if shape == Shape::Rows { std::iter::once(0..q).collect() } else { (0..q).map(|k| k..k + 1).collect() };
        let (mut primal, mut dual, mut cost) = (0.0, 0.0, 0.0);
        for columns in groups {
            let pick = |x: &Mat<f64>| x.get(.., columns.clone()).to_owned();
            let (p, v, a) = (pick(p), pick(&v), pick(a));
            let dot = |x: &Mat<f64>, y: &Mat<f64>| (x.transpose() * y).diagonal().column_vector().sum();
            let own = penalty * norms(&a, 0).iter().sum::<f64>();
            let residual = dot(&(&p - &v), &(t * (&p - &v))) + features * dot(&v, &v) + coefficients * dot(&a, &a);
            let largest = norms(&pick(&z), 0).into_iter().fold(0.0, f64::max) / penalty;
            let shrink = 1.0 / largest.max(1.0);
            primal += 0.5 * residual + own;
            dual += shrink * dot(&p, &(t * (&p - &v))) - 0.5 * shrink * shrink * residual;
            cost += own;
        }
        let trace = dense::trace(t);
        let dot = |x: &Mat<f64>, y: &Mat<f64>| (x.transpose() * y).diagonal().column_vector().sum();
        let ridge = 0.5 * features * dot(&v, &v) + 0.5 * coefficients * dot(a, a);
        let objective = 0.5 * trace - dot(&v, &(t * p)) + 0.5 * dot(&v, &(t * &v)) + ridge + cost;
        ((primal - dual) / primal, objective)
    }

    #[test]
    fn gap_and_objective_are_those_of_what_is_returned() {
        // So many rows that most passes look at those near the working set alone.
        let many = |i: usize| [(0.7 * i as f64).sin() + 1e-4 * i as f64, (0.31 * i as f64).cos()];
        for points in
            [toys::parabola(5), Points::new(2, (0..3 * NEAREST).flat_map(many).collect::<Vec<f64>>()).unwrap()]
        {
            let kernel = crate::kernel::build(&Spec::new("rbf"), &points, 0).unwrap();
            let factor = Factor::pivoted(&kernel, &points, Stop { rank: 60, residual: 0.0 }, 0, &()).unwrap();
            let (t, _) = factor.scatter(true);
            let space = FactorSpace { factor: &factor, t: &t };
            let start = space.vectors(top(&t, 3, eigen::Accuracy::default(), 0, &()).unwrap().vectors);
            let f = factor.rows_of(&(0..points.n()).collect::<Vec<_>>());
            check_in(&space, &start, &f, &t, |p| p.coordinates().clone());
        }
    }

    #[test]
    fn watched_rows_pull_most_or_are_spread_over_all_that_may_join() {
        let few = [0.1, 0.9, 0.7, 0.71];
        assert_eq!(nearest(&few), [1, 3]);
        // Most at the end, as many again that may join, and as many that may not.
        let many: Vec<f64> =
            (0..9 * NEAREST).map(|i| 0.4 + 0.4 * (i / (3 * NEAREST)) as f64 + 1e-6 * i as f64).collect();
        let rows = nearest(&many);
        assert!(rows.len() == NEAREST && rows.is_sorted_by(|a, b| a < b) && rows[0] >= 3 * NEAREST);
        assert!((9 * NEAREST - FIRST..9 * NEAREST).all(|i| rows.binary_search(&i).is_ok()));
        let gap = rows.windows(2).map(|pair| pair[1] - pair[0]).max();
        assert!(gap <= Some(8), "{gap:?}");
    }

    /// The kernel matrix as its own factor, against the whole factor of the same rows.
    #[test]
    fn they_are_so_without_a_factor() {
        let mut random = Random::new(0, 78);
        let points = Points::new(8, (0..150 * 8).map(|_| random.normal()).collect::<Vec<_>>()).unwrap();
        let kernel = crate::kernel::build(&Spec::new("rbf"), &points, 0).unwrap();
        let factor = Factor::exact(&kernel, &points, &()).unwrap();
        let f = factor.rows_of(&(0..150).collect::<Vec<_>>());
        for center in [true, false] {
            let (t, _) = factor.scatter(center);
            let mut x = top(&t, 3, eigen::Accuracy::default(), 0, &()).unwrap().vectors;
            let own = FactorSpace { factor: &factor, t: &t };
            let start = own.vectors(x.clone());
            let by_factor = check_in(&own, &start, &f, &t, |p| p.coordinates().clone());
            dense::solve_lower_transposed(f.as_ref(), x.as_mut());
            let space = KernelSpace::new(&kernel, &points, center, factor.trace);
            let start = space.vectors(x);
            let by_kernel = check_in(&space, &start, &f, &t, |p| f.transpose() * p.coordinates());
            for (a, b) in by_factor.into_iter().zip(by_kernel) {
                assert!((a.0 / b.0 - 1.0).abs() < 1e-6 && a.1 == b.1, "{a:?} {b:?}");
            }
            let rows: Vec<usize> = (0..40).collect();
            let weights = Mat::from_fn(40, 2, |i, k| ((i * (k + 1)) as f64).sin());
            for own_components in [None, Some(weights.as_ref())] {
                let captured = |space: &dyn Space| space.captured(&rows, own_components, 2).unwrap();
                assert!((captured(&own) / captured(&space) - 1.0).abs() < 1e-9);
            }
        }
    }

    /// Solves in every way, recomputes what is reported, and returns the objectives with the rows in use.
    fn check_in(
        space: &dyn Space,
        start: &Vectors,
        f: &Mat<f64>,
        t: &Mat<f64>,
        coordinates: impl Fn(&Vectors) -> Mat<f64>,
    ) -> Vec<(f64, Vec<usize>)> {
        let mut found = Vec::new();
        for (shape, sequential) in [(Shape::Rows, false), (Shape::Entries, false), (Shape::Entries, true)] {
            for ridge in [Ridge::Features(0.1), Ridge::Coefficients(0.1)] {
                for rounds in [0, 2, 500] {
                    let scheme = Scheme { shape, ridge, gap: 1e-6, rounds, sequential };
                    let mut problem = Alternation::new(space, scheme, None, &());
                    let penalty = 0.1 * problem.largest_penalty(start);
                    let groups = if shape == Shape::Rows { 1 } else { 3 };
                    let state = problem.solve(start, &vec![penalty; groups], None).unwrap();
                    let mut a = Mat::zeros(f.nrows(), 3);
                    for (w, &row) in problem.atoms.rows.iter().enumerate() {
                        (0..3).for_each(|k| a[(row, k)] = state.a[(w, k)]);
                    }
                    let p = coordinates(&state.p);
                    let (gap, objective) = recomputed(f, t, &a, &p, ridge, shape, penalty);
                    let case = format!("{shape:?} {ridge:?} {rounds} {sequential}");
                    assert!((gap - state.gap).abs() < 1e-9 && gap <= 1e-6, "{case}: {gap} {}", state.gap);
                    assert!(
                        (objective / state.objective - 1.0).abs() < 1e-10,
                        "{case}: {objective} {}",
                        state.objective
                    );
                    let identity = p.transpose() * &p - Mat::<f64>::identity(3, 3);
                    assert!(identity.norm_max() < 1e-12, "{case}: P is orthonormal");
                    assert!(rounds == 2 || state.converged, "{case}");
                    let mut rows: Vec<usize> = problem.used(&state.a).iter().map(|&w| problem.atoms.rows[w]).collect();
                    rows.sort_unstable();
                    found.push((objective, rows));
                }
            }
        }
        found
    }

    /// Every row four times: together they are solved as one, and spread again they are a minimum over all rows.
    #[test]
    fn equal_rows_share_a_coefficient() {
        let few: Vec<usize> = (0..400).map(|i| 2 * (i % 100)).collect();
        let points = toys::parabola(6).select(&few);
        let kernel = crate::kernel::build(&Spec::new("rbf"), &points, 0).unwrap();
        let factor = Factor::pivoted(&kernel, &points, Stop { rank: 60, residual: 0.0 }, 0, &()).unwrap();
        let (t, _) = factor.scatter(true);
        let space = FactorSpace { factor: &factor, t: &t };
        let pairs = top(&t, 2, eigen::Accuracy::default(), 0, &()).unwrap();
        let (shape, ridge) = (Shape::Entries, Ridge::Coefficients(0.5));
        let scheme = Scheme { shape, ridge, gap: 1e-6, rounds: 100, sequential: false };
        let mut problem = Alternation::new(&space, scheme, Some(Twins::of(&points)), &());
        let start = space.vectors(pairs.vectors);
        let penalty = 0.1 * problem.largest_penalty(&start);
        let state = problem.solve(&start, &[penalty; 2], None).unwrap();
        assert!(problem.atoms.rows.iter().all(|row| *row < 100), "the first of each: {:?}", problem.atoms.rows);
        let mut a = Mat::zeros(400, 2);
        for (w, &row) in problem.atoms.rows.iter().enumerate() {
            (0..4).for_each(|copy| (0..2).for_each(|k| a[(row + 100 * copy, k)] = state.a[(w, k)] / 4.0));
        }
        let f = factor.rows_of(&(0..400).collect::<Vec<_>>());
        let (gap, objective) = recomputed(&f, &t, &a, state.p.coordinates(), ridge, shape, penalty);
        assert!((gap - state.gap).abs() < 1e-9 && gap <= 1e-6, "{gap} {}", state.gap);
        assert!((objective / state.objective - 1.0).abs() < 1e-10, "{objective} {}", state.objective);
    }
}
