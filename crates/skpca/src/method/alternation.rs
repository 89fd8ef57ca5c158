//! The alternating scheme that Wang & Tanaka (2019) and Das, Golatkar & Awate (2018) share, on rows of feature space.
//!
//! ```text
//! Obj(A, P) = ½ tr T − tr VᵀTP + ½ tr VᵀTV + ridge + penalty,    V = FᵀA,  T = F̃ᵀF̃,  PᵀP = I
//!           = ½ tr T − tr AᵀC + ½ tr AᵀGA + penalty,             C = F T P
//!
//! ridge λ/2 ‖V‖²:  G = F(T + λI)Fᵀ          penalty on rows of A     (l2,1), or
//! ridge λ/2 ‖A‖²:  G = F T Fᵀ + λI          penalty on its entries   (l1), one number per column
//!
//! A-step: a (group) lasso for fixed P, convex           P-step: P = polar(T V), where −tr VᵀTP = −‖TV‖_*
//! ```
//!
//! Both steps run on a working set of rows, for which G is known, and P moves within its reach (reach.rs). When the
//! alternation has converged there, a pass over all rows finds those that would lower the objective, and they join. The
//! duality gap over all rows, recomputed from the returned solution, is the certificate of the A-step. How vectors are
//! represented and how T acts on them is defined by the space (space.rs).

use std::cell::Cell;
use std::ops::Range;

use faer::{ColRef, Mat, MatRef, Scale};
use rayon::prelude::*;

use super::polar::polar;
use super::reach::{Images, Reach};
use super::space::{Atoms, Space, Vectors};
use super::twins::Twins;
use crate::dense;
use crate::error::Result;
use crate::lasso::{self, Lasso};
use crate::watch::{Watch, check};

/// The groups of coefficients that are penalised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Shape {
    /// Rows of A: one set of points for all components.
    Rows,
    /// Entries of A: each component has its own points.
    Entries,
}

/// The ridge penalty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Ridge {
    /// `λ/2 ‖V‖²`, the norm in feature space.
    Features(f64),
    /// `λ/2 ‖A‖²`
    Coefficients(f64),
}

impl Ridge {
    /// Returns λ on features and λ on coefficients; one of them is zero.
    fn both(self) -> (f64, f64) {
        match self {
            Ridge::Features(lambda) => (lambda, 0.0),
            Ridge::Coefficients(lambda) => (0.0, lambda),
        }
    }
}

/// The objective and the stopping rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scheme {
    pub shape: Shape,
    pub ridge: Ridge,
    /// Relative duality gap of the A-step.
    pub gap: f64,
    /// Maximum number of P-steps; 0 leaves P at the leading eigenvectors.
    pub rounds: usize,
    /// One component after the other, each deflated against those before it (Algorithm 1 of Wang & Tanaka).
    pub sequential: bool,
}

/// The stopping rule of an alternation on working sets.
#[derive(Clone, Copy)]
struct Effort {
    /// Maximum number of P-steps.
    rounds: usize,
    /// Tolerance on the change of P, per column; the alternation has converged when both tolerances are met.
    moved: f64,
    /// Tolerance on the relative decrease of the objective.
    change: f64,
    /// Duality gap over all rows at which the working set is large enough.
    gap: f64,
    /// Whether a final pass over all rows is required.
    certified: bool,
    /// Work done by the fit at which no further round begins.
    work: f64,
}

/// The stopping rule of a rough minimum, which is enough to see which rows matter.
const LOOSE: Effort = Effort { rounds: 0, moved: 1e-2, change: 1e-6, gap: 1e-3, certified: false, work: 0.0 };
/// Size of the working set from which columns are solved in parallel.
const SMALL: usize = 48;
/// Maximum number of Newton steps of an A-step.
const STEPS: usize = 200;
/// A search may take as many P-steps as this many solutions that do not converge.
const SEARCH: usize = 6;
/// Minimum number of P-steps allowed for a solution when the search has used up its budget.
const MIN_ROUNDS: usize = 20;
/// Maximum work of all rounds of a fit, in multiply-adds per row of the data.
const WORK: f64 = 1e8;
/// Share of the remaining work that a solution may take during a search.
const SHARE: f64 = 0.25;
/// Minimum work allowed for a solution, as a share of the total.
const MIN_SHARE: f64 = 0.02;
/// Maximum number of passes that enlarge the working set.
const PASSES: usize = 100;
/// Rows whose gradient exceeds this share of the penalty are candidates to join soon.
const NEARLY: f64 = 0.7;
/// Maximum number of such candidates.
const NEAREST: usize = 2000;
/// Number of candidates chosen for the largest gradients if there are more than that; the others are spread evenly.
const FIRST: usize = NEAREST / 4;
/// Squared cosine above which rows count as collinear.
const COLLINEAR: f64 = 1.0 - 1e-10;
/// Maximum number of rows that join at a time, or an eighth of the working set if that is more.
const JOIN: usize = 30;
/// Largest cosine in feature space between two rows that join at a time.
const ALIKE: f64 = 0.95;

/// A minimum, or the state in which the search for it ended.
#[derive(Clone)]
pub(super) struct Minimum {
    /// P, orthonormal.
    pub p: Vectors,
    /// A, w × q over the working set.
    pub a: Mat<f64>,
    pub objective: f64,
    /// Relative duality gap over all rows.
    pub gap: f64,
    /// Number of P-steps taken.
    pub rounds: usize,
    pub converged: bool,
    /// Penalty of the first group of columns.
    pub penalty: f64,
    /// Whether it is more than a rough minimum.
    pub finished: bool,
    /// η of the last A-step, a warm start of the next: one list per group of columns.
    sizes: Vec<Vec<f64>>,
}

/// Gradients at the rows outside the working set.
struct Screening {
    /// Rows that would lower the objective, by decreasing gradient.
    first: Vec<usize>,
    /// Gradient norm of each screened row as a share of the penalty; zero for the working set.
    ratios: Vec<f64>,
}

/// Returns the rows that may join soon, in increasing order. If there are many, the rows with the largest gradients are
/// neighbours of each other, and once a few have joined the others no longer violate the conditions of a minimum.
/// Therefore most of the candidates are spread evenly over all.
fn nearest(ratios: &[f64]) -> Vec<usize> {
    let rows: Vec<usize> = (0..ratios.len()).filter(|&i| ratios[i] > NEARLY).collect();
    if rows.len() <= NEAREST {
        return rows;
    }
    let mut first = strongest(rows.clone(), ratios, FIRST);
    first.sort_unstable();
    let others: Vec<usize> = rows.into_iter().filter(|row| first.binary_search(row).is_err()).collect();
    let spread = NEAREST - FIRST;
    first.extend((0..spread).map(|k| others[k * others.len() / spread]));
    first.sort_unstable();
    first
}

/// Returns the `count` rows with the largest gradients, in any order.
fn strongest(mut rows: Vec<usize>, ratios: &[f64], count: usize) -> Vec<usize> {
    if count < rows.len() {
        rows.select_nth_unstable_by(count, |&i, &j| ratios[j].total_cmp(&ratios[i]).then(i.cmp(&j)));
        rows.truncate(count);
    }
    rows
}

/// The optimisation problem with its working set.
pub(super) struct Alternation<'a> {
    space: &'a dyn Space,
    scheme: Scheme,
    twins: Option<Twins>,
    watch: &'a dyn Watch,
    /// `tr T`
    variance: f64,
    /// Rows that may join soon, if a pass over all rows is expensive.
    near: Option<Atoms>,
    /// The working set.
    pub atoms: Atoms,
    /// Squared lengths of the working set.
    squares: Vec<f64>,
    /// G over the working set.
    gram: Mat<f64>,
    /// Images of the working set under T, once P moves.
    images: Option<Images>,
    /// Number of P-steps that all solutions together may still take; when it is used up, each gets a few.
    budget: usize,
    /// Multiply-adds of all rounds so far.
    spent: Cell<f64>,
    /// Maximum number of multiply-adds of all rounds.
    allowed: f64,
    /// Share of the remaining multiply-adds that a solution may take.
    share: f64,
}

/// The result of an A-step.
struct Coefficients {
    a: Mat<f64>,
    /// η
    sizes: Vec<Vec<f64>>,
    /// `½ tr T + ½ tr AᵀGA + penalty`
    without_p: f64,
}

/// The start of an alternation on a working set.
#[derive(Clone, Copy)]
struct Start<'a> {
    p: &'a Vectors,
    penalties: &'a [f64],
    sizes: &'a [Vec<f64>],
}

/// The result of an alternation on a working set.
struct Alternated {
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
            budget: usize::MAX,
            spent: Cell::new(0.0),
            allowed: WORK * space.n() as f64,
            share: 1.0,
        }
    }

    /// Returns whether the work limit of the fit has been reached.
    pub(super) fn exhausted(&self) -> bool {
        self.spent.get() >= self.allowed
    }

    /// Limits the P-steps of a search, which solves at many penalties: if P converges slowly at all of them, only the
    /// first solutions run to the end. The report says whether the last one converged.
    pub(super) fn limit(&mut self, starts: usize) {
        self.budget = (SEARCH * starts).saturating_mul(self.scheme.rounds);
        self.share = SHARE;
    }

    /// Returns the largest useful penalty at P: at this value and above, nothing is selected.
    pub(super) fn largest_penalty(&self, p: &Vectors) -> f64 {
        let norms = self.gradient_ratios(&self.space.scatter(p), &vec![1.0; self.groups(p.count()).len()]);
        norms.into_iter().fold(0.0, f64::max)
    }

    /// Minimises at `penalties`, one per group of columns, with P starting from `start`. A minimum at other penalties
    /// is a warm start of the coefficients.
    pub(super) fn solve(&mut self, start: &Vectors, penalties: &[f64], warm: Option<&Minimum>) -> Result<Minimum> {
        let rough = self.rough(start, penalties, warm)?;
        self.finish(rough, penalties)
    }

    /// Does the same with a loose tolerance, until P has nearly converged and few rows are missing; this shows about
    /// how many rows will be in use.
    pub(super) fn rough(&mut self, start: &Vectors, penalties: &[f64], warm: Option<&Minimum>) -> Result<Minimum> {
        let mut sizes =
            warm.map_or_else(|| vec![Vec::new(); self.groups(start.count()).len()], |state| state.sizes.clone());
        let tight = self.effort(0);
        if tight.rounds == 0 {
            return self.grown(start, penalties, sizes, tight);
        }
        let loose = Effort { rounds: tight.rounds, work: tight.work, gap: tight.gap.max(LOOSE.gap), ..LOOSE };
        let (mut p, mut taken) = (start.clone(), 0);
        if warm.is_none() {
            // First the rows that matter before P moves, then the candidates that matter once it has nearly converged.
            sizes = self.grown(start, penalties, sizes, Effort { rounds: 0, ..loose })?.sizes;
            let near = self.grown(start, penalties, sizes, loose)?;
            (p, sizes, taken) = (near.p, near.sizes, near.rounds);
        }
        // Then all rows that matter.
        let left = Effort { rounds: loose.rounds.saturating_sub(taken), certified: true, ..loose };
        let mut state = self.grown(&p, penalties, sizes, left)?;
        state.rounds += taken;
        state.finished = false;
        self.budget = self.budget.saturating_sub(state.rounds);
        Ok(state)
    }

    /// Refines a rough minimum.
    pub(super) fn finish(&mut self, rough: Minimum, penalties: &[f64]) -> Result<Minimum> {
        if rough.finished {
            return Ok(rough);
        }
        let effort = self.effort(rough.rounds);
        let mut state = self.grown(&rough.p, penalties, rough.sizes, effort)?;
        self.budget = self.budget.saturating_sub(state.rounds);
        state.rounds += rough.rounds;
        Ok(state)
    }

    /// Returns the limits of a solution that has taken `taken` rounds already.
    fn effort(&self, taken: usize) -> Effort {
        let Scheme { gap, rounds, .. } = self.scheme;
        let rounds = rounds.min(self.budget.max(MIN_ROUNDS)).saturating_sub(taken);
        let spent = self.spent.get();
        let work = spent + (self.share * (self.allowed - spent)).max(MIN_SHARE * self.allowed);
        Effort { rounds, moved: gap.sqrt(), change: 0.1 * gap, gap, certified: true, work }
    }

    fn once(&mut self, start: &Vectors, penalties: &[f64], sizes: &[Vec<f64>], effort: Effort) -> Result<Minimum> {
        if effort.rounds == 0 || self.atoms.rows.is_empty() {
            // P has converged if it is fixed or nothing can move it, but not if its rounds are used up.
            let settled = self.scheme.rounds == 0 || self.atoms.rows.is_empty();
            return Ok(self.state(start.clone(), penalties, sizes, 0, settled));
        }
        let images = Images::of(self.space, &self.atoms, self.images.take());
        let reach = Reach::new(self.space, &images, start);
        let own = reach.start();
        let from = Start { p: &own, penalties, sizes };
        let Alternated { p, sizes, rounds, settled } = if self.scheme.sequential {
            self.one_by_one(&reach, from, effort)?
        } else {
            self.alternate(&reach, from, &own.columns(0..0), effort)?
        };
        let p = reach.outside(&p);
        self.images = Some(images);
        let directions = |i: usize| (i < self.space.rank()).then(|| self.space.direction(i));
        let p = polar(&p, start, &p.columns(0..0), &directions)?.0;
        Ok(self.state(p, penalties, &sizes, rounds, settled))
    }

    /// Alternates on the working set and enlarges it, until no row outside would lower the objective. Between two
    /// passes over all rows only the candidates are screened.
    fn grown(
        &mut self,
        start: &Vectors,
        penalties: &[f64],
        mut sizes: Vec<Vec<f64>>,
        mut effort: Effort,
    ) -> Result<Minimum> {
        let mut p = start.clone();
        let mut taken = 0;
        for pass in 1.. {
            check(self.watch, "working set", pass as f64 / PASSES as f64)?;
            sizes.iter_mut().for_each(|sizes| sizes.resize(self.atoms.rows.len(), 0.0));
            let mut state = self.once(&p, penalties, &sizes, effort)?;
            taken += state.rounds;
            effort.rounds = effort.rounds.saturating_sub(state.rounds);
            let outside = self.screen(&mut state, penalties, effort);
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

    /// Returns the rows that should join, none if the gap is small enough: first among the candidates, then, if the
    /// state has to be certified or there are no candidates, among all. The gap of a certified state is over all rows.
    fn screen(&mut self, state: &mut Minimum, penalties: &[f64], effort: Effort) -> Vec<usize> {
        if let Some(near) = &self.near {
            let outside = self.certify(state, penalties, Some(near)).first;
            if state.gap > effort.gap && !outside.is_empty() {
                return outside;
            }
            if !effort.certified {
                return Vec::new();
            }
        }
        let Screening { first, ratios } = self.certify(state, penalties, None);
        self.near = (ratios.len() > 2 * NEAREST).then(|| self.space.atoms(nearest(&ratios)));
        if state.gap <= effort.gap { Vec::new() } else { first }
    }

    /// Returns the groups of columns that are penalised together.
    pub(super) fn groups(&self, q: usize) -> Vec<Range<usize>> {
        match self.scheme.shape {
            Shape::Rows => std::iter::once(0..q).collect(),
            Shape::Entries => (0..q).map(|k| k..k + 1).collect(),
        }
    }

    /// Solves in the order of Algorithm 1: each component alternates until it converges, orthogonal to those before it.
    fn one_by_one(&self, reach: &Reach, from: Start, effort: Effort) -> Result<Alternated> {
        let mut all = Alternated { p: from.p.columns(0..0), sizes: Vec::new(), rounds: 0, settled: true };
        for k in 0..from.p.count() {
            let column = from.p.columns(k..k + 1);
            let own = polar(&column, &column, &all.p, &|i| reach.direction(i))?.0;
            let from = Start { p: &own, penalties: &from.penalties[k..k + 1], sizes: &from.sizes[k..k + 1] };
            let one = self.alternate(reach, from, &all.p, effort)?;
            all.p = all.p.beside(&one.p);
            all.sizes.extend(one.sizes);
            all.rounds = all.rounds.max(one.rounds);
            all.settled &= one.settled;
        }
        Ok(all)
    }

    /// Takes P-steps with momentum, which restarts when the objective rises.
    fn alternate(&self, reach: &Reach, from: Start, before: &Vectors, effort: Effort) -> Result<Alternated> {
        let tight = 1e-2 * self.scheme.gap;
        let (mut p, mut previous) = (from.p.clone(), from.p.clone());
        let mut sizes = from.sizes.to_vec();
        let (mut best, mut momentum, mut taken) = (f64::INFINITY, 0.0, 0);
        let mut settled = false;
        let directions = |i: usize| reach.direction(i);
        while taken < effort.rounds && !settled && (taken == 0 || self.spent.get() < effort.work) {
            taken += 1;
            self.spent.set(self.spent.get() + polar_work(reach, p.count()));
            check(self.watch, "alternation", taken as f64 / effort.rounds as f64)?;
            let ahead = if momentum > 0.0 {
                let further = p.plus(momentum / (momentum + 3.0), &p.plus(-1.0, &previous));
                polar(&further, &p, before, &directions)?.0
            } else {
                p.clone()
            };
            let step = self.coefficients(reach.along(&ahead), from.penalties, &sizes, tight);
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
        Ok(Alternated { p, sizes, rounds: taken, settled })
    }

    /// Takes a last A-step and returns the minimum.
    fn state(&self, p: Vectors, penalties: &[f64], sizes: &[Vec<f64>], rounds: usize, converged: bool) -> Minimum {
        let (c, squares) = self.space.along(&self.atoms, &p);
        let Coefficients { a, sizes, without_p } =
            self.coefficients((c.clone(), squares), penalties, sizes, 0.1 * self.scheme.gap);
        let objective = without_p - inner(&a, &c);
        Minimum { p, a, objective, gap: f64::INFINITY, rounds, converged, penalty: penalties[0], finished: true, sizes }
    }

    /// `V = FᵀA`
    fn combination(&self, a: &Mat<f64>) -> Vectors {
        self.space.combination(&self.atoms, a.as_ref())
    }

    /// Takes an A-step, from C and the `⟨p_k, T p_k⟩`.
    fn coefficients(
        &self,
        (c, squares): (Mat<f64>, Vec<f64>),
        penalties: &[f64],
        sizes: &[Vec<f64>],
        tolerance: f64,
    ) -> Coefficients {
        let (groups, gram) = (self.groups(c.ncols()), self.gram.as_ref());
        let answer = |g: usize| {
            let squared = squares[groups[g].clone()].iter().sum();
            let correlations = c.as_ref().subcols(groups[g].start, groups[g].len());
            let problem = Lasso { gram, correlations, squared, penalty: penalties[g] };
            problem.solve(sizes[g].clone(), tolerance, STEPS)
        };
        // Waking the threads takes longer than small problems.
        let answers: Vec<lasso::Answer> = if groups.len() == 1 || self.atoms.rows.len() < SMALL {
            (0..groups.len()).map(answer).collect()
        } else {
            (0..groups.len()).into_par_iter().map(answer).collect()
        };
        self.spent.set(self.spent.get() + answers.iter().map(|answer| answer.work).sum::<f64>());
        let mut a = Mat::zeros(self.atoms.rows.len(), c.ncols());
        for (columns, answer) in groups.iter().zip(&answers) {
            a.as_mut().subcols_mut(columns.start, columns.len()).copy_from(&answer.coefficients);
        }
        let without_p = 0.5 * self.variance
            + 0.5 * answers.iter().map(|answer| answer.squared).sum::<f64>()
            + self.cost(&a, penalties).iter().sum::<f64>();
        Coefficients { a, sizes: answers.into_iter().map(|answer| answer.sizes).collect(), without_p }
    }

    /// Returns the penalty term of each group of columns.
    fn cost(&self, a: &Mat<f64>, penalties: &[f64]) -> Vec<f64> {
        let norms = |columns: &Range<usize>| -> f64 {
            let part = a.as_ref().subcols(columns.start, columns.len());
            (0..a.nrows()).map(|i| part.row(i).norm_l2()).sum()
        };
        self.groups(a.ncols()).iter().zip(penalties).map(|(columns, penalty)| penalty * norms(columns)).collect()
    }

    /// Computes the duality gap over all rows, or over the working set and the candidates `near`.
    fn certify(&self, state: &mut Minimum, penalties: &[f64], near: Option<&Atoms>) -> Screening {
        let (p, a) = (&state.p, &state.a);
        let v = self.combination(a);
        let left = self.space.scatter(&p.plus(-1.0, &v));
        let (features, _) = self.scheme.ridge.both();
        let y = left.plus(-features, &v);
        let groups = self.groups(p.count());
        let mut others = match near {
            None => self.gradient_ratios(&y, penalties),
            Some(near) => ratios(self.space.values(near, &y).as_ref(), &groups, penalties),
        };
        // The gradient of the ridge on a coefficient, which is zero for rows outside the working set.
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
        let first: Vec<usize> = (0..ratios.len()).filter(|&i| ratios[i] > 1.0 + 1e-10).collect();
        let mut first = strongest(first, &ratios, self.considered());
        first.sort_by(|&i, &j| ratios[j].total_cmp(&ratios[i]).then(i.cmp(&j)));
        Screening { first: first.into_iter().map(|i| near.map_or(i, |near| near.rows[i])).collect(), ratios }
    }

    /// Returns `‖⟨φ_i, y⟩‖ / penalty` for each group of columns of every row, row after row.
    fn gradient_ratios(&self, y: &Vectors, penalties: &[f64]) -> Vec<f64> {
        let groups = self.groups(y.count());
        self.space.pass(y, &|products| ratios(products, &groups, penalties))
    }

    /// Returns the number of rows considered at a time, of which a quarter may join.
    fn considered(&self) -> usize {
        4 * JOIN.max(self.atoms.rows.len() / 8)
    }

    /// Enlarges the working set by the first of `candidates` that are not too similar; returns whether it grew.
    fn join(&mut self, candidates: &[usize]) -> bool {
        let most = self.considered() / 4;
        let considered = &candidates[..candidates.len().min(self.considered())];
        let atoms = self.space.atoms(considered.to_vec());
        let products = self.space.products(&atoms, &atoms);
        let known = self.space.products(&atoms, &self.atoms);
        let squares = &self.squares;
        let (features, coefficients) = self.scheme.ridge.both();
        // Collinear rows are redundant, except under a ridge on coefficients; equal rows have been left out there.
        let equal = |i: usize, w: usize| {
            coefficients == 0.0 && known[(i, w)].powi(2) > COLLINEAR * products[(i, i)] * squares[w]
        };
        let mut chosen: Vec<usize> = Vec::new();
        // Up to rounding, a row has the same gradient as an equal row of the working set.
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

    /// Returns the ridge on a row's coefficient.
    fn own_ridge(&self, row: usize) -> f64 {
        let (_, coefficients) = self.scheme.ridge.both();
        coefficients / self.twins.as_ref().map_or(1.0, |twins| twins.counts[row])
    }

    /// Returns the rows of the working set that `a` uses.
    pub(super) fn used(&self, a: &Mat<f64>) -> Vec<usize> {
        (0..a.nrows()).filter(|&i| a.row(i).iter().any(|v| *v != 0.0)).collect()
    }
}

/// Returns the multiply-adds of a P-step: eigenvectors of a q × q matrix, and products of q vectors of the reach.
fn polar_work(reach: &Reach, q: usize) -> f64 {
    (q * q) as f64 * (20 * q + 8 * reach.count()) as f64
}

/// Returns the norm of each group of columns of each row, divided by the penalty of the group, row after row.
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
mod tests;
