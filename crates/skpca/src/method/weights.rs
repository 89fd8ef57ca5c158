//! The weights that maximise the likelihood of Tipping's covariance model (2001), by an active set.
//!
//! ```text
//! C = σ²I + Σ w_i f_i f_iᵀ,   L(w) = −½ [ n log|C/σ²| + Σ_j f_jᵀC⁻¹f_j ],   w ≥ 0
//! S_i = f_iᵀC⁻¹f_i,  Q_i = f_iᵀC⁻¹TC⁻¹f_i,  ρ_i = Q_i / (n S_i),   ∂L/∂w_i = (n S_i / 2)(ρ_i − 1)
//!
//! a point alone:   w = (ρ − 1)/S,   gain n/2 (ρ − 1 − log ρ)                          where ρ > 1
//! all together:    Newton in θ_i = log(w_i + c_i), c_i such that w_i + c_i = 1/S_i:   ∂L/∂θ_i = n/2 (ρ_i − 1)
//!                  −∂²L/∂θ_i∂θ_j = (S_ij Q_ij − n/2 S_ij²) / (S_ii S_jj) − [i = j] n/2 (ρ_i − 1)
//! maximum:         ρ = 1 where w > 0,  ρ ≤ 1 elsewhere
//! ```
//!
//! Rows of the factor are in coordinates where T is diagonal, so that Q is a sum of squares: as a difference it would lose
//! all its digits where σ² is small. Newton needs m × m matrices alone; all points are looked at by two products n × r × m.
//! The maximum is local: second maxima are rare and near the first (docs/decisions/0013).

use std::sync::Arc;

use faer::{Mat, MatRef};

use crate::blocks;
use crate::bounded::bounded;
use crate::dense;
use crate::error::{Error, Result};
use crate::factor::Factor;
use crate::random::Random;
use crate::watch::{Watch, check};

/// ρ − 1 of the active points at which Newton stops, at first …
const LOOSE: f64 = 0.03;
/// … and before all points are looked at, where there are many, or at last.
const TIGHT: f64 = 1e-9;
/// A point joins where ρ − 1 is above this.
const JOINS: f64 = 1e-9;
/// Looks at the points.
const ROUNDS: usize = 300;
/// Newton steps between two looks.
const STEPS: usize = 100;
/// Halvings of a step before it is given up.
const HALVINGS: usize = 30;
/// The longest step in θ.
const LONGEST: f64 = 3.0;
/// Points that may join between two looks at all of them, where there are more than twice as many.
const NEAREST: usize = 2000;
/// Points join while they gain at least this share of what the first did.
const WORTH: f64 = 0.01;
/// A squared cosine that only collinear rows have: one of them is enough.
const EQUAL: f64 = 1.0 - 1e-10;

/// A maximum, or where the search for it ended.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// Rows with a positive weight, increasing, …
    pub rows: Vec<usize>,
    /// … and their weights.
    pub weights: Vec<f64>,
    /// L
    pub likelihood: f64,
    /// Points that were near to joining.
    near: Option<Arc<Near>>,
    /// Largest |ρ − 1| of the active points, or ρ − 1 of the others if that is larger.
    pub violation: f64,
    pub rounds: usize,
}

/// The points and their second moment.
pub(super) struct Problem<'a> {
    /// Rows in coordinates where T is diagonal.
    factor: &'a Factor,
    /// The diagonal of T.
    values: &'a [f64],
    /// `‖f_i‖²`
    lengths: Vec<f64>,
    watch: &'a dyn Watch,
}

/// Some of the points.
#[derive(Debug)]
struct Near {
    /// Numbers of the rows, increasing …
    rows: Vec<usize>,
    /// … and the rows themselves.
    atoms: Mat<f64>,
}

/// Points that may join, and what is known of them.
struct Look {
    /// Nothing if they are all there are.
    near: Option<Arc<Near>>,
    s: Vec<f64>,
    q: Vec<f64>,
}

impl Look {
    fn row(&self, i: usize) -> usize {
        self.near.as_ref().map_or(i, |near| near.rows[i])
    }

    fn place(&self, row: usize) -> Option<usize> {
        self.near.as_ref().map_or(Some(row), |near| near.rows.binary_search(&row).ok())
    }
}

impl<'a> Problem<'a> {
    pub(super) fn new(factor: &'a Factor, values: &'a [f64], watch: &'a dyn Watch) -> Problem<'a> {
        let lengths = blocks::map(factor.n(), |rows| {
            let mut sums = vec![0.0; rows.len()];
            let add = |column: faer::ColRef<f64>| {
                sums.iter_mut().zip(column.iter()).for_each(|(sum, f)| *sum += f * f);
            };
            factor.block(&rows).col_iter().for_each(add);
            sums
        });
        Problem { factor, values, lengths: lengths.concat(), watch }
    }

    /// The largest useful σ²: from there on no weight is positive.
    pub(super) fn largest_noise(&self) -> f64 {
        let n = self.factor.n() as f64;
        let moments = blocks::map(self.factor.n(), |rows| self.weighted_squares(self.factor.block(&rows))).concat();
        let ratio = |(moment, length): (&f64, &f64)| if *length > 0.0 { moment / (n * length) } else { 0.0 };
        moments.iter().zip(&self.lengths).map(ratio).fold(0.0, f64::max)
    }

    /// `Σ_k t_k u_ik²` of each row.
    fn weighted_squares(&self, u: MatRef<f64>) -> Vec<f64> {
        let mut sums = vec![0.0; u.nrows()];
        for (k, value) in self.values.iter().enumerate() {
            sums.iter_mut().zip(u.col(k).iter()).for_each(|(sum, u)| *sum += value * u * u);
        }
        sums
    }

    /// Maximises at σ² = `noise`, from weights found at another.
    pub(super) fn maximise(&self, noise: f64, start: Option<&State>) -> Result<State> {
        let mut state = start.cloned().unwrap_or_default();
        state.violation = f64::INFINITY;
        let mut tolerance = LOOSE;
        let mut near = state.near.take().or_else(|| self.sample());
        let mut idle = 0;
        for round in 1..=ROUNDS {
            check(self.watch, "likelihood", round as f64 / ROUNDS as f64)?;
            let before = if round == 1 { f64::NEG_INFINITY } else { state.likelihood };
            self.settle(&mut state, noise, tolerance)?;
            state.rounds = round;
            let z = self.spread(&state, noise)?;
            let everything = near.is_none();
            let mut look = self.look(near.take(), z.as_ref(), noise);
            let mut ratio = self.largest_ratio(&look, &state);
            if ratio <= 1.0 + JOINS && !everything && tolerance > TIGHT {
                // A look at all points is dear: first settle among the near ones.
                (tolerance, near) = (TIGHT, look.near);
                continue;
            }
            if ratio <= 1.0 + JOINS && !everything {
                look = self.look(None, z.as_ref(), noise);
                ratio = self.largest_ratio(&look, &state);
            }
            let certified = look.near.is_none();
            if certified {
                state.violation = self.violation(&look, &state);
                self.keep_near(&mut look);
            }
            // Rounding may take points in and out for ever.
            idle = if state.likelihood > before + self.rounding(&state, noise) { 0 } else { idle + 1 };
            let joined = ratio > 1.0 + JOINS && idle < 5 && self.join(&mut look, &mut state, z, noise);
            if !joined && (tolerance <= TIGHT || state.rows.is_empty()) {
                if !certified {
                    let z = self.spread(&state, noise)?;
                    state.violation = self.violation(&self.look(None, z.as_ref(), noise), &state);
                }
                state.near = look.near;
                return Ok(state);
            }
            tolerance = if joined { tolerance.min((LOOSE * (ratio - 1.0)).max(TIGHT)) } else { TIGHT };
            near = look.near;
        }
        self.settle(&mut state, noise, TIGHT)?;
        let z = self.spread(&state, noise)?;
        state.violation = self.violation(&self.look(None, z.as_ref(), noise), &state);
        Ok(state)
    }

    /// How far L can be wrong.
    fn rounding(&self, state: &State, noise: f64) -> f64 {
        let trace: f64 = self.values.iter().sum();
        10.0 * state.rows.len().max(50) as f64 * f64::EPSILON * (trace / noise + state.likelihood.abs())
    }

    /// Newton on the active weights; those that end at zero leave.
    fn settle(&self, state: &mut State, noise: f64, tolerance: f64) -> Result<()> {
        let f = self.factor.rows_of(&state.rows);
        let scaled = Mat::from_fn(f.nrows(), f.ncols(), |i, k| f[(i, k)] * self.values[k]);
        let inner = Inner {
            k: dense::product(f.as_ref(), f.transpose()),
            g: dense::product(scaled.as_ref(), f.transpose()),
            n: self.factor.n() as f64,
            noise,
            trace: self.values.iter().sum(),
        };
        let rounding = self.rounding(state, noise);
        let (weights, likelihood) = inner.maximise(&state.weights, tolerance, rounding)?;
        let kept: Vec<usize> = (0..weights.len()).filter(|&i| weights[i] > 0.0).collect();
        state.rows = kept.iter().map(|&i| state.rows[i]).collect();
        state.weights = kept.iter().map(|&i| weights[i]).collect();
        state.likelihood = likelihood;
        Ok(())
    }

    /// Z, r × m, with `C⁻¹ = (I − ZZᵀ/σ²)/σ²`.
    fn spread(&self, state: &State, noise: f64) -> Result<Mat<f64>> {
        let f = self.factor.rows_of(&state.rows);
        let roots: Vec<f64> = state.weights.iter().map(|w| w.sqrt()).collect();
        let mut z = Mat::from_fn(f.nrows(), f.ncols(), |i, k| roots[i] * f[(i, k)]);
        let l = root(&dense::product(f.as_ref(), f.transpose()), &roots, noise).ok_or_else(unsolvable)?;
        dense::solve_lower(l.as_ref(), z.as_mut());
        Ok(z.transpose().to_owned())
    }

    /// S and Q of the points given, or of all.
    fn look(&self, near: Option<Arc<Near>>, z: MatRef<f64>, noise: f64) -> Look {
        let parts = match &near {
            None => blocks::map(self.factor.n(), |rows| {
                self.ratios(self.factor.block(&rows), &self.lengths[rows], z, noise)
            }),
            Some(near) => {
                let lengths: Vec<f64> = near.rows.iter().map(|&row| self.lengths[row]).collect();
                blocks::map(near.rows.len(), |rows| {
                    let atoms = near.atoms.as_ref().subrows(rows.start, rows.len());
                    self.ratios(atoms, &lengths[rows], z, noise)
                })
            }
        };
        let (mut s, mut q) = (Vec::new(), Vec::new());
        for (more_s, more_q) in parts {
            s.extend(more_s);
            q.extend(more_q);
        }
        Look { near, s, q }
    }

    /// S and Q of rows `f` of these squared lengths.
    fn ratios(&self, f: MatRef<f64>, lengths: &[f64], z: MatRef<f64>, noise: f64) -> (Vec<f64>, Vec<f64>) {
        let mut along = dense::product(f, z);
        let mut s = lengths.to_vec();
        for column in along.as_mut().col_iter_mut() {
            for (v, s) in column.iter_mut().zip(&mut s) {
                *s -= *v * *v / noise;
                *v /= noise;
            }
        }
        s.iter_mut().for_each(|s| *s /= noise);
        // Rows σ²C⁻¹f.
        let mut u = f.to_owned();
        dense::subtract_product(u.as_mut(), along.as_ref(), z.transpose());
        let mut q = self.weighted_squares(u.as_ref());
        q.iter_mut().for_each(|q| *q /= noise * noise);
        (s, q)
    }

    fn ratio(&self, look: &Look, i: usize) -> f64 {
        if look.s[i] > 0.0 { look.q[i] / (self.factor.n() as f64 * look.s[i]) } else { 0.0 }
    }

    /// The largest ρ of a point that is not active.
    fn largest_ratio(&self, look: &Look, state: &State) -> f64 {
        let mut active = state.rows.iter().copied().peekable();
        let mut largest: f64 = 0.0;
        for i in 0..look.s.len() {
            let row = look.row(i);
            while active.next_if(|&next| next < row).is_some() {}
            if active.peek() != Some(&row) {
                largest = largest.max(self.ratio(look, i));
            }
        }
        largest
    }

    fn violation(&self, look: &Look, state: &State) -> f64 {
        let active = state.rows.iter().map(|&row| (self.ratio(look, row) - 1.0).abs());
        active.fold((self.largest_ratio(look, state) - 1.0).max(0.0), f64::max)
    }

    /// Of many points, leaves those that are likely to join.
    fn keep_near(&self, look: &mut Look) {
        let n = look.s.len();
        if n <= 2 * NEAREST {
            return;
        }
        let ratios: Vec<f64> = (0..n).map(|i| self.ratio(look, i)).collect();
        let mut rows: Vec<usize> = (0..n).collect();
        rows.select_nth_unstable_by(NEAREST, |&i, &j| ratios[j].total_cmp(&ratios[i]).then(i.cmp(&j)));
        rows.truncate(NEAREST);
        rows.sort_unstable();
        look.s = rows.iter().map(|&i| look.s[i]).collect();
        look.q = rows.iter().map(|&i| look.q[i]).collect();
        look.near = Some(Arc::new(Near { atoms: self.factor.rows_of(&rows), rows }));
    }

    /// Where there are many points, some of them to begin with: those of the largest ρ would be all of one region.
    fn sample(&self) -> Option<Arc<Near>> {
        let n = self.factor.n();
        (n > 2 * NEAREST).then(|| {
            let rows = Random::new(0, 14).sample(n, NEAREST);
            Arc::new(Near { atoms: self.factor.rows_of(&rows), rows })
        })
    }

    /// Points join one after the other, that of the largest gain first, each with its best weight; S and Q of the others
    /// follow. Tells whether any did.
    fn join(&self, look: &mut Look, state: &mut State, z: Mat<f64>, noise: f64) -> bool {
        let (n, active) = (self.factor.n() as f64, state.rows.len());
        let most = active.max(8);
        let mut inverse = Mat::zeros(z.nrows(), active + most);
        inverse.as_mut().subcols_mut(0, active).copy_from(&z);
        let mut closed = vec![false; look.s.len()];
        state.rows.iter().filter_map(|&row| look.place(row)).for_each(|i| closed[i] = true);
        let mut atoms = self.factor.rows_of(&state.rows);
        let mut first = 0.0;
        let mut taken = active;
        while taken < active + most {
            let gain = |i: usize| {
                let ratio = if closed[i] { 0.0 } else { self.ratio(look, i) };
                if ratio > 1.0 + JOINS { 0.5 * n * (ratio - 1.0 - ratio.ln()) } else { 0.0 }
            };
            let best = (0..look.s.len()).map(|i| (gain(i), i)).fold((0.0, 0), |a, b| if b.0 > a.0 { b } else { a });
            if best.0 <= WORTH * first || best.0 <= 0.0 {
                break;
            }
            let i = best.1;
            closed[i] = true;
            let f = self.factor.rows_of(&[look.row(i)]).transpose().to_owned();
            let products = dense::product(atoms.as_ref(), f.as_ref());
            let length = f.squared_norm_l2();
            if (0..taken).any(|a| products[(a, 0)].powi(2) > EQUAL * length * atoms.row(a).squared_norm_l2()) {
                continue;
            }
            first = f64::max(first, best.0);
            let (s, q) = (look.s[i], look.q[i]);
            let weight = (self.ratio(look, i) - 1.0) / s;
            let step = weight / (1.0 + weight * s);
            let apply = |x: &Mat<f64>| {
                let z = inverse.as_ref().subcols(0, taken);
                let along = dense::product(z.transpose(), x.as_ref());
                let back = dense::product(z, along.as_ref());
                Mat::from_fn(x.nrows(), 1, |k, _| (x[(k, 0)] - back[(k, 0)] / noise) / noise)
            };
            let u = apply(&f);
            let second = apply(&Mat::from_fn(u.nrows(), 1, |k, _| self.values[k] * u[(k, 0)]));
            let both = dense::beside(u.as_ref(), second.as_ref());
            let along = match &look.near {
                None => self.factor.product(both.as_ref()),
                Some(near) => dense::product(near.atoms.as_ref(), both.as_ref()),
            };
            for (j, (c, h)) in along.col(0).iter().zip(along.col(1).iter()).enumerate() {
                look.s[j] -= step * c * c;
                look.q[j] += step * c * (step * c * q - 2.0 * h);
            }
            let scale = noise * step.sqrt();
            inverse.col_mut(taken).iter_mut().zip(u.col(0).iter()).for_each(|(z, u)| *z = scale * u);
            atoms = dense::stack(&[atoms, f.transpose().to_owned()]);
            state.rows.push(look.row(i));
            state.weights.push(weight);
            taken += 1;
        }
        let mut order: Vec<usize> = (0..taken).collect();
        order.sort_by_key(|&i| state.rows[i]);
        state.rows = order.iter().map(|&i| state.rows[i]).collect();
        state.weights = order.iter().map(|&i| state.weights[i]).collect();
        taken > active
    }
}

fn unsolvable() -> Error {
    Error::Numerical { why: "the weights of the likelihood cannot be computed: is the noise too small?".into() }
}

/// The Cholesky factor of `B = I + √W K √W / σ²`.
pub(super) fn root(k: &Mat<f64>, roots: &[f64], noise: f64) -> Option<Mat<f64>> {
    let one = |i: usize, j: usize| if i == j { 1.0 } else { 0.0 };
    let b = |i: usize, j: usize| roots[i] * k[(i, j)] * roots[j] / noise + one(i, j);
    dense::cholesky(Mat::from_fn(roots.len(), roots.len(), b).as_ref())
}

/// The problem on the active points.
struct Inner {
    /// Their kernel values, `F_A F_Aᵀ` …
    k: Mat<f64>,
    /// … and `F_A T F_Aᵀ`.
    g: Mat<f64>,
    n: f64,
    noise: f64,
    /// tr T
    trace: f64,
}

impl Inner {
    fn of(&self, points: &[usize]) -> Inner {
        let part = |a: &Mat<f64>| Mat::from_fn(points.len(), points.len(), |i, j| a[(points[i], points[j])]);
        Inner { k: part(&self.k), g: part(&self.g), ..*self }
    }

    /// L
    fn likelihood(&self, weights: &[f64]) -> Result<f64> {
        let m = weights.len();
        let roots: Vec<f64> = weights.iter().map(|w| w.sqrt()).collect();
        let l = root(&self.k, &roots, self.noise).ok_or_else(unsolvable)?;
        let mut x = Mat::from_fn(m, m, |i, j| roots[i] * self.g[(i, j)] * roots[j]);
        dense::solve_lower(l.as_ref(), x.as_mut());
        dense::divide_by_transposed(x.as_mut(), l.as_ref());
        let determinant = 2.0 * (0..m).map(|i| l[(i, i)].ln()).sum::<f64>();
        let explained = (0..m).map(|i| x[(i, i)]).sum::<f64>();
        Ok(-0.5 * (self.n * determinant + (self.trace - explained / self.noise) / self.noise))
    }

    /// `S_ij` and `Q_ij`. `σ²C⁻¹f_a = Σ_b E_ba f_b`; column a of E is of `√W B⁻¹ √W⁻¹`, or of `I − √W B⁻¹ √W K/σ²` where
    /// the weight is zero.
    fn moments(&self, weights: &[f64]) -> Result<(Mat<f64>, Mat<f64>)> {
        let m = weights.len();
        let roots: Vec<f64> = weights.iter().map(|w| w.sqrt()).collect();
        let l = root(&self.k, &roots, self.noise).ok_or_else(unsolvable)?;
        let mut e = Mat::from_fn(m, m, |i, a| match weights[a] > 0.0 {
            true => (if i == a { 1.0 } else { 0.0 }) / roots[a],
            false => -roots[i] * self.k[(i, a)] / self.noise,
        });
        dense::solve_lower(l.as_ref(), e.as_mut());
        dense::solve_lower_transposed(l.as_ref(), e.as_mut());
        for a in 0..m {
            e.col_mut(a).iter_mut().zip(&roots).for_each(|(e, root)| *e *= root);
            if weights[a] == 0.0 {
                e[(a, a)] += 1.0;
            }
        }
        let s = dense::product(self.k.as_ref(), e.as_ref());
        let q = dense::product(e.transpose(), dense::product(self.g.as_ref(), e.as_ref()).as_ref());
        let noise = self.noise;
        let symmetric = |a: &Mat<f64>, unit: f64| Mat::from_fn(m, m, |i, j| 0.5 * (a[(i, j)] + a[(j, i)]) / unit);
        Ok((symmetric(&s, noise), symmetric(&q, noise * noise)))
    }

    /// Newton steps until ρ is within `tolerance` of 1, or L has no more digits to tell.
    fn maximise(&self, start: &[f64], tolerance: f64, rounding: f64) -> Result<(Vec<f64>, f64)> {
        let mut alive: Vec<usize> = (0..start.len()).collect();
        let mut weights = start.to_vec();
        let mut problem = self.of(&alive);
        let mut likelihood = problem.likelihood(&weights)?;
        let mut polished = 0;
        for _ in 0..STEPS {
            let (mut s, mut q) = problem.moments(&weights)?;
            let ratio = |s: &Mat<f64>, q: &Mat<f64>, i: usize| q[(i, i)] / (self.n * s[(i, i)]);
            // What has no weight and wants none is out: it would make the Hessian look indefinite.
            let live: Vec<usize> = (0..weights.len()).filter(|&i| weights[i] > 0.0 || ratio(&s, &q, i) > 1.0).collect();
            if live.len() < weights.len() {
                alive = live.iter().map(|&i| alive[i]).collect();
                weights = live.iter().map(|&i| weights[i]).collect();
                problem = self.of(&alive);
                (s, q) = problem.moments(&weights)?;
            }
            let worst = |s: &Mat<f64>, q: &Mat<f64>, weights: &[f64]| {
                let off = |i: usize| match weights[i] > 0.0 {
                    true => (ratio(s, q, i) - 1.0).abs(),
                    false => (ratio(s, q, i) - 1.0).max(0.0),
                };
                (0..weights.len()).map(off).fold(0.0, f64::max)
            };
            let off = worst(&s, &q, &weights);
            if off <= tolerance {
                break;
            }
            let (d, slope) = self.direction(&s, &q, &weights);
            let moved = |t: f64| -> Vec<f64> {
                let each = |i: usize| {
                    let (room, step) = (weights[i] * s[(i, i)], (t * d[i]).exp_m1());
                    if step <= -room { 0.0 } else { weights[i] + step / s[(i, i)] }
                };
                (0..d.len()).map(each).collect()
            };
            let mut accepted = None;
            for halvings in 0..HALVINGS {
                let t = 0.5_f64.powi(halvings as i32);
                let next = moved(t);
                let value = problem.likelihood(&next)?;
                if value >= likelihood + 1e-4 * t * slope {
                    accepted = Some((next, value));
                    break;
                }
                if slope <= 10.0 * rounding {
                    break;
                }
            }
            if accepted.is_none() && slope <= 10.0 * rounding {
                // L does not see the step any more; ρ may.
                let next = moved(1.0);
                let value = problem.likelihood(&next)?;
                let (s, q) = problem.moments(&next)?;
                if value >= likelihood - rounding && (worst(&s, &q, &next) < off || polished < 5) {
                    polished += 1;
                    accepted = Some((next, value.max(likelihood)));
                }
            }
            let Some(next) = accepted else { break };
            (weights, likelihood) = next;
            if let Some(next) = problem.without_needless(&weights, likelihood)? {
                (weights, likelihood) = next;
            }
        }
        let mut all = vec![0.0; start.len()];
        alive.iter().zip(&weights).for_each(|(&i, w)| all[i] = *w);
        Ok((all, likelihood))
    }

    /// The Newton step in θ and the rise it promises at first order.
    fn direction(&self, s: &Mat<f64>, q: &Mat<f64>, weights: &[f64]) -> (Vec<f64>, f64) {
        let m = weights.len();
        let gradient: Vec<f64> = (0..m).map(|i| 0.5 * (q[(i, i)] / s[(i, i)] - self.n)).collect();
        let hessian = Mat::from_fn(m, m, |i, j| {
            let value = s[(i, j)] * (q[(i, j)] - 0.5 * self.n * s[(i, j)]) / (s[(i, i)] * s[(j, j)]);
            if i == j { value - gradient[i] } else { value }
        });
        let room: Vec<f64> = (0..m).map(|i| -(-(weights[i] * s[(i, i)]).min(1.0 - 1e-15)).ln_1p()).collect();
        let down: Vec<f64> = gradient.iter().map(|g| -g).collect();
        let mut d = bounded(&definite(hessian), &down, &room);
        let longest = d.iter().copied().fold(0.0, f64::max);
        if longest > LONGEST {
            d.iter_mut().for_each(|d| *d *= LONGEST / longest);
        }
        let slope = gradient.iter().zip(&d).map(|(g, d)| g * d).sum();
        (d, slope)
    }

    /// Without the points that would be best at zero if the others stayed; nothing if L would fall.
    fn without_needless(&self, weights: &[f64], likelihood: f64) -> Result<Option<(Vec<f64>, f64)>> {
        let (s, q) = self.moments(weights)?;
        let needless = |i: usize| weights[i] > 0.0 && q[(i, i)] <= self.n * s[(i, i)] * (1.0 - weights[i] * s[(i, i)]);
        let fewer: Vec<f64> = (0..weights.len()).map(|i| if needless(i) { 0.0 } else { weights[i] }).collect();
        if fewer == weights {
            return Ok(None);
        }
        let value = self.likelihood(&fewer)?;
        Ok((value >= likelihood).then_some((fewer, value)))
    }
}

/// The matrix itself if it is positive definite, or with its (scaled) eigenvalues turned positive.
fn definite(a: Mat<f64>) -> Mat<f64> {
    let m = a.nrows();
    if dense::cholesky(a.as_ref()).is_some() {
        return a;
    }
    let scale: Vec<f64> = (0..m).map(|i| a[(i, i)].abs().max(f64::MIN_POSITIVE).sqrt()).collect();
    let scaled = Mat::from_fn(m, m, |i, j| a[(i, j)] / (scale[i] * scale[j]));
    let Ok((values, vectors)) = dense::eigen(scaled.as_ref()) else {
        return Mat::from_fn(m, m, |i, j| if i == j { a[(i, i)].abs() } else { 0.0 });
    };
    let stretched = Mat::from_fn(m, m, |i, k| vectors[(i, k)] * values[k].abs().max(1e-11));
    let product = dense::product(stretched.as_ref(), vectors.transpose());
    Mat::from_fn(m, m, |i, j| product[(i.max(j), i.min(j))] * scale[i] * scale[j])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::factor::Stop;
    use crate::kernel;
    use crate::points::Points;
    use crate::toys;

    fn with_model(points: &Points, rank: usize, test: impl Fn(&Problem)) {
        let kernel = kernel::build(&"rbf,gamma=4".parse().unwrap(), points, 0).unwrap();
        let factor = Factor::pivoted(&kernel, points, Stop { rank, residual: 0.0 }, 0, &()).unwrap();
        let (t, _) = factor.scatter(false);
        let (values, e) = dense::eigen(t.as_ref()).unwrap();
        let factor = factor.rotated(e.as_ref());
        test(&Problem::new(&factor, &values, &()));
    }

    #[test]
    fn every_step_climbs_and_what_joins_is_accounted_for() {
        with_model(&toys::parabola(0), 80, |model| {
            let noise = 0.02 * model.largest_noise();
            let mut state = State::default();
            let mut last = f64::NEG_INFINITY;
            for round in 0..12 {
                model.settle(&mut state, noise, 1e-2).unwrap();
                assert!(state.likelihood >= last, "round {round}: {} after {last}", state.likelihood);
                last = state.likelihood;
                let z = model.spread(&state, noise).unwrap();
                let mut look = model.look(None, z.as_ref(), noise);
                if !model.join(&mut look, &mut state, z, noise) {
                    break;
                }
                let z = model.spread(&state, noise).unwrap();
                let fresh = model.look(None, z.as_ref(), noise);
                for i in 0..look.s.len() {
                    assert!((look.s[i] / fresh.s[i] - 1.0).abs() < 1e-6, "S of {i} in round {round}");
                    assert!((look.q[i] - fresh.q[i]).abs() < 1e-6 * fresh.q[i].max(1.0), "Q of {i} in round {round}");
                }
            }
            assert!(state.rows.len() > 10);
        });
    }

    #[test]
    fn any_start_leads_to_a_maximum_no_lower_than_itself() {
        with_model(&toys::clusters(0), 90, |model| {
            let noise = 0.05 * model.largest_noise();
            let cold = model.maximise(noise, None).unwrap();
            for start in 0..3 {
                let rows: Vec<usize> = (start..90).step_by(3).collect();
                let weights = vec![1.0 / 30.0; rows.len()];
                let warm = model.maximise(noise, Some(&State { rows, weights, ..State::default() })).unwrap();
                assert!(warm.violation < 1e-8, "{warm:?}");
                assert!(
                    (warm.likelihood / cold.likelihood - 1.0).abs() < 1e-3,
                    "{} {}",
                    warm.likelihood,
                    cold.likelihood
                );
            }
        });
    }

    /// So many points that most looks are at those near to joining alone.
    #[test]
    fn the_certificate_is_over_all_points_where_there_are_many() {
        let many = |i: usize| [(0.7 * i as f64).sin() + 1e-4 * i as f64, (0.31 * i as f64).cos()];
        let points = Points::new(2, (0..3 * NEAREST).flat_map(many).collect::<Vec<f64>>()).unwrap();
        with_model(&points, 60, |model| {
            let noise = 0.05 * model.largest_noise();
            let state = model.maximise(noise, None).unwrap();
            let all: Vec<usize> = (0..points.n()).collect();
            let f = model.factor.rows_of(&all);
            let n = points.n() as f64;
            let c = Mat::from_fn(60, 60, |a, b| {
                let sum: f64 = state.rows.iter().zip(&state.weights).map(|(&i, w)| w * f[(i, a)] * f[(i, b)]).sum();
                sum + if a == b { noise } else { 0.0 }
            });
            let l = dense::cholesky(c.as_ref()).unwrap();
            let mut u = f.transpose().to_owned();
            dense::solve_lower(l.as_ref(), u.as_mut());
            dense::solve_lower_transposed(l.as_ref(), u.as_mut());
            let mut worst: f64 = 0.0;
            for i in 0..points.n() {
                let s: f64 = (0..60).map(|k| f[(i, k)] * u[(k, i)]).sum();
                let q: f64 = (0..60).map(|k| model.values[k] * u[(k, i)] * u[(k, i)]).sum();
                let off = q / (n * s) - 1.0;
                worst = worst.max(if state.rows.binary_search(&i).is_ok() { off.abs() } else { off });
            }
            assert!(worst < 1e-7 && (worst - state.violation).abs() < 1e-7, "{worst} {}", state.violation);
            assert!(state.rows.len() > 10, "{}", state.rows.len());
        });
    }

    /// S and Q of the active points, from C itself, some of them without a weight.
    #[test]
    fn moments_and_likelihood_are_those_of_the_covariance() {
        with_model(&toys::clusters(2), 40, |model| {
            let rows = [3, 11, 25, 40, 70];
            let weights = [0.4, 0.0, 0.1, 0.0, 0.7];
            let (noise, n) = (0.05, model.factor.n() as f64);
            let f = model.factor.rows_of(&rows);
            let k = dense::product(f.as_ref(), f.transpose());
            let scaled = Mat::from_fn(5, f.ncols(), |i, j| f[(i, j)] * model.values[j]);
            let g = dense::product(scaled.as_ref(), f.transpose());
            let inner = Inner { k, g, n, noise, trace: model.values.iter().sum() };
            let c = Mat::from_fn(f.ncols(), f.ncols(), |a, b| {
                let sum: f64 = (0..5).map(|i| weights[i] * f[(i, a)] * f[(i, b)]).sum();
                sum + if a == b { noise } else { 0.0 }
            });
            let l = dense::cholesky(c.as_ref()).unwrap();
            let mut u = f.transpose().to_owned();
            dense::solve_lower(l.as_ref(), u.as_mut());
            dense::solve_lower_transposed(l.as_ref(), u.as_mut());
            let (s, q) = inner.moments(&weights).unwrap();
            for i in 0..5 {
                for j in 0..5 {
                    let expected: f64 = (0..f.ncols()).map(|a| f[(i, a)] * u[(a, j)]).sum();
                    assert!((s[(i, j)] - expected).abs() < 1e-9 * s[(i, i)].abs(), "S {i} {j}");
                    let expected: f64 = (0..f.ncols()).map(|a| u[(a, i)] * model.values[a] * u[(a, j)]).sum();
                    assert!((q[(i, j)] - expected).abs() < 1e-9 * q[(i, i)].abs(), "Q {i} {j}");
                }
            }
            let mut inverse = Mat::<f64>::identity(f.ncols(), f.ncols());
            dense::solve_lower(l.as_ref(), inverse.as_mut());
            let quadratic: f64 = (0..f.ncols()).map(|a| model.values[a] * inverse.col(a).squared_norm_l2()).sum();
            let determinant: f64 = (0..f.ncols()).map(|a| 2.0 * l[(a, a)].ln() - noise.ln()).sum();
            let expected = -0.5 * (n * determinant + quadratic);
            assert!((inner.likelihood(&weights).unwrap() / expected - 1.0).abs() < 1e-10);
        });
    }
}
