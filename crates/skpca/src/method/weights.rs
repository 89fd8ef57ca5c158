//! The weights that maximise the likelihood of Tipping's covariance model (2001), by an active-set method.
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
//! Rows of the factor are in coordinates where T is diagonal, so that Q is a sum of squares. Computed as a difference,
//! Q takes half the memory traffic but loses digits if σ² is small; the difference is used when enough digits are left.
//! Newton's method needs m × m matrices only; S and Q of all points take two products n × r × m. The maximum is local:
//! other maxima are rare and close to it (docs/decisions/0013).

use std::sync::Arc;

use faer::{Mat, MatRef};

use super::active::{Active, root, unsolvable};
use crate::blocks;
use crate::dense;
use crate::error::Result;
use crate::factor::Factor;
use crate::random::{Random, Stream};
use crate::watch::{Watch, check};

/// Tolerance of Newton's method on |ρ − 1| of the active points in the first rounds.
const LOOSE: f64 = 0.03;
/// The same in the last round, and before a pass over all of many points.
const TIGHT: f64 = 1e-9;
/// Points join if ρ − 1 is above this.
const JOINS: f64 = 1e-9;
/// Maximum number of rounds, each of which optimises the active weights and lets points join.
const ROUNDS: usize = 300;
/// Number of candidates between two passes over all points, if there are more than twice as many points.
pub(super) const NEAREST: usize = 2000;
/// One in this many points belongs to the wide candidate set.
const WIDE: usize = 16;
/// The wide candidate set is chosen when at most this many points are active; later passes use it in place of all
/// points, until the last.
const FEW: usize = 16;
/// Points join while their gain is at least this share of the first one's.
const MIN_GAIN: f64 = 0.01;
/// Q is computed as a difference if rounding moves ρ by less than this share of its distance from 1.
const ROUNDED: f64 = 1e-8;
/// Relative rounding error of the terms of that difference.
const UNITS: f64 = 64.0 * f64::EPSILON;
/// Squared cosine above which rows count as collinear, so that one of them suffices.
const COLLINEAR: f64 = 1.0 - 1e-10;

/// A maximum, or the state in which the search for it ended.
#[derive(Clone, Debug, Default)]
pub(super) struct WeightState {
    /// Rows with a positive weight, increasing.
    pub rows: Vec<usize>,
    /// Their weights.
    pub weights: Vec<f64>,
    /// L
    pub likelihood: f64,
    /// The points of largest ρ at the last pass, the candidates of the next rounds.
    near: Option<Arc<Near>>,
    /// The wide candidate set.
    wide: Option<Arc<Near>>,
    /// Largest |ρ − 1| of the active points, or ρ − 1 of the others if that is larger.
    pub violation: f64,
    pub rounds: usize,
}

impl WeightState {
    /// Takes over the wide candidate set of `other` if this state has none.
    pub(super) fn share_wide(&mut self, other: &WeightState) {
        if self.wide.is_none() {
            self.wide.clone_from(&other.wide);
        }
    }
}

/// Which points may have a weight.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Over {
    /// The points of the wide candidate set, once it has been chosen.
    Wide,
    All,
}

/// The points and their second moment.
pub(super) struct WeightProblem<'a> {
    /// The factor, in coordinates where T is diagonal.
    factor: &'a Factor,
    /// The diagonal of T.
    values: &'a [f64],
    forms: Vec<Forms>,
    watch: &'a dyn Watch,
}

/// Precomputed quadratic forms of a row.
#[derive(Clone, Copy)]
struct Forms {
    /// `‖f_i‖²`
    length: f64,
    /// `f_iᵀT f_i`
    moment: f64,
}

/// C⁻¹ in the form that S and Q of rows are computed from.
struct Inverse<'a> {
    z: MatRef<'a, f64>,
    noise: f64,
    /// Z and W = TZ − Z ZᵀTZ / 2σ², side by side: `σ⁴ C⁻¹TC⁻¹ = T − (Z Wᵀ + W Zᵀ)/σ²`.
    both: Mat<f64>,
}

/// A subset of the points.
#[derive(Debug)]
struct Near {
    /// Numbers of the rows, increasing.
    rows: Vec<usize>,
    /// The rows themselves.
    atoms: Mat<f64>,
}

/// Points that may join, with S and Q of each.
struct Candidates {
    /// The candidates, or `None` if they are all points.
    near: Option<Arc<Near>>,
    s: Vec<f64>,
    q: Vec<f64>,
}

impl Candidates {
    fn row(&self, i: usize) -> usize {
        self.near.as_ref().map_or(i, |near| near.rows[i])
    }

    fn place(&self, row: usize) -> Option<usize> {
        self.near.as_ref().map_or(Some(row), |near| near.rows.binary_search(&row).ok())
    }
}

impl<'a> WeightProblem<'a> {
    pub(super) fn new(factor: &'a Factor, values: &'a [f64], watch: &'a dyn Watch) -> WeightProblem<'a> {
        let forms = blocks::map(factor.n(), |rows| {
            let f = factor.block(&rows);
            let (lengths, moments) = (weighted_squares(f, None), weighted_squares(f, Some(values)));
            let pairs = lengths.into_iter().zip(moments);
            pairs.map(|(length, moment)| Forms { length, moment }).collect::<Vec<_>>()
        });
        WeightProblem { factor, values, forms: forms.concat(), watch }
    }

    /// Returns the largest useful σ²: at this value and above, no weight is positive.
    pub(super) fn largest_noise(&self) -> f64 {
        let n = self.factor.n() as f64;
        let ratio = |row: &Forms| if row.length > 0.0 { row.moment / (n * row.length) } else { 0.0 };
        self.forms.iter().map(ratio).fold(0.0, f64::max)
    }

    /// Maximises at σ² = `noise`, starting from weights found at another value.
    pub(super) fn maximise(&self, noise: f64, start: Option<&WeightState>) -> Result<WeightState> {
        self.maximise_over(Over::All, noise, start)
    }

    /// Returns whether there are so many points that candidate sets pay off.
    pub(super) fn large(&self) -> bool {
        self.factor.n() > 2 * NEAREST
    }

    /// Maximises over the wide candidate set or over all points.
    pub(super) fn maximise_over(&self, over: Over, noise: f64, start: Option<&WeightState>) -> Result<WeightState> {
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
            let mut checked = false;
            let mut look = self.look(near.take(), z.as_ref(), noise);
            let mut ratio = self.largest_ratio(&look, &state);
            if ratio <= 1.0 + JOINS && !everything && tolerance > TIGHT {
                // A pass over all points is expensive: first converge on the candidates.
                (tolerance, near) = (TIGHT, look.near);
                continue;
            }
            if ratio <= 1.0 + JOINS && !everything {
                let wide = state.wide.clone().filter(|_| over == Over::Wide && state.rows.len() > FEW);
                look = self.look(wide, z.as_ref(), noise);
                checked = true;
                ratio = self.largest_ratio(&look, &state);
            }
            let certified = look.near.is_none() || checked;
            if certified {
                state.violation = self.violation(&look, &state);
                if look.near.is_none() && self.large() && over == Over::Wide && state.rows.len() >= FEW / 2 {
                    state.wide = Some(self.nearest(&look, (self.factor.n() / WIDE).max(2 * NEAREST)).1);
                }
                self.keep_near(&mut look);
            }
            // Rounding could let points join and leave forever.
            idle = if state.likelihood > before + self.rounding(&state, noise) { 0 } else { idle + 1 };
            let joined = ratio > 1.0 + JOINS && idle < 5 && self.join(&mut look, &mut state, z, noise);
            if !joined && (tolerance <= TIGHT || state.rows.is_empty()) {
                if !certified && over == Over::All {
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

    /// Returns a bound of the rounding error of L.
    fn rounding(&self, state: &WeightState, noise: f64) -> f64 {
        let trace: f64 = self.values.iter().sum();
        10.0 * state.rows.len().max(50) as f64 * f64::EPSILON * (trace / noise + state.likelihood.abs())
    }

    /// Runs Newton's method on the active weights and drops points whose weight becomes zero.
    fn settle(&self, state: &mut WeightState, noise: f64, tolerance: f64) -> Result<()> {
        let f = self.factor.rows_of(&state.rows);
        let scaled = Mat::from_fn(f.nrows(), f.ncols(), |i, k| f[(i, k)] * self.values[k]);
        let active = Active {
            k: dense::product(f.as_ref(), f.transpose()),
            g: dense::product(scaled.as_ref(), f.transpose()),
            n: self.factor.n() as f64,
            noise,
            trace: self.values.iter().sum(),
        };
        let rounding = self.rounding(state, noise);
        let (weights, likelihood) = active.maximise(&state.weights, tolerance, rounding)?;
        let kept: Vec<usize> = (0..weights.len()).filter(|&i| weights[i] > 0.0).collect();
        state.rows = kept.iter().map(|&i| state.rows[i]).collect();
        state.weights = kept.iter().map(|&i| weights[i]).collect();
        state.likelihood = likelihood;
        Ok(())
    }

    /// Computes Z, r × m, with `C⁻¹ = (I − ZZᵀ/σ²)/σ²`.
    fn spread(&self, state: &WeightState, noise: f64) -> Result<Mat<f64>> {
        let f = self.factor.rows_of(&state.rows);
        let roots: Vec<f64> = state.weights.iter().map(|w| w.sqrt()).collect();
        let mut z = Mat::from_fn(f.nrows(), f.ncols(), |i, k| roots[i] * f[(i, k)]);
        let l = root(&dense::product(f.as_ref(), f.transpose()), &roots, noise).ok_or_else(unsolvable)?;
        dense::solve_lower(l.as_ref(), z.as_mut());
        Ok(z.transpose().to_owned())
    }

    /// Computes S and Q of the given points, or of all.
    fn look(&self, near: Option<Arc<Near>>, z: MatRef<f64>, noise: f64) -> Candidates {
        let mut w = Mat::from_fn(z.nrows(), z.ncols(), |k, j| self.values[k] * z[(k, j)]);
        let half = dense::product(z.transpose(), w.as_ref()) * faer::Scale(0.5 / noise);
        dense::subtract_product(w.as_mut(), z, half.as_ref());
        let inverse = Inverse { z, noise, both: dense::beside(z, w.as_ref()) };
        let parts = match &near {
            None => {
                blocks::map(self.factor.n(), |rows| self.ratios(self.factor.block(&rows), &self.forms[rows], &inverse))
            }
            Some(near) => {
                let forms: Vec<Forms> = near.rows.iter().map(|&row| self.forms[row]).collect();
                blocks::map(near.rows.len(), |rows| {
                    let atoms = near.atoms.as_ref().subrows(rows.start, rows.len());
                    self.ratios(atoms, &forms[rows], &inverse)
                })
            }
        };
        let (mut s, mut q) = (Vec::new(), Vec::new());
        for (more_s, more_q) in parts {
            s.extend(more_s);
            q.extend(more_q);
        }
        Candidates { near, s, q }
    }

    /// Computes S and Q of the rows `f`.
    fn ratios(&self, f: MatRef<f64>, forms: &[Forms], inverse: &Inverse) -> (Vec<f64>, Vec<f64>) {
        let quick = if self.large() { self.ratios_by_differences(f, forms, inverse) } else { None };
        quick.unwrap_or_else(|| self.ratios_by_squares(f, forms, inverse))
    }

    /// Computes `σ⁴ Q = fᵀTf − 2 fᵀZ Wᵀf / σ²`; `None` if rounding errors would be too large.
    fn ratios_by_differences(
        &self,
        f: MatRef<f64>,
        forms: &[Forms],
        inverse: &Inverse,
    ) -> Option<(Vec<f64>, Vec<f64>)> {
        let precision = 1.0 / inverse.noise;
        let products = dense::streamed_product(f, inverse.both.as_ref());
        let (z, w) = products.as_ref().split_at_col(inverse.z.ncols());
        let (mut s, mut q): (Vec<f64>, Vec<f64>) = forms.iter().map(|row| (row.length, row.moment)).unzip();
        for (z, w) in z.col_iter().zip(w.col_iter()) {
            let sums = s.iter_mut().zip(&mut q);
            for ((s, q), (z, w)) in sums.zip(z.iter().zip(w.iter())) {
                let scaled = z * precision;
                *s -= z * scaled;
                *q -= 2.0 * scaled * w;
            }
        }
        s.iter_mut().for_each(|s| *s *= precision);
        q.iter_mut().for_each(|q| *q *= precision * precision);
        self.resolved(forms, (&s, &q), inverse.noise).then_some((s, q))
    }

    /// Computes Q as a sum of squares.
    fn ratios_by_squares(&self, f: MatRef<f64>, forms: &[Forms], inverse: &Inverse) -> (Vec<f64>, Vec<f64>) {
        let Inverse { z, noise, .. } = *inverse;
        let mut along = dense::streamed_product(f, z);
        let mut s: Vec<f64> = forms.iter().map(|row| row.length).collect();
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
        let mut q = weighted_squares(u.as_ref(), Some(self.values));
        q.iter_mut().for_each(|q| *q /= noise * noise);
        (s, q)
    }

    /// Returns whether ρ is accurate although Q was computed as a difference.
    fn resolved(&self, forms: &[Forms], (s, q): (&[f64], &[f64]), noise: f64) -> bool {
        let n = self.factor.n() as f64;
        forms
            .iter()
            .zip(s.iter().zip(q))
            .all(|(row, (s, q))| UNITS * row.moment / (noise * noise) <= ROUNDED * (n * s - q).abs() && *s > 0.0)
    }

    fn ratio(&self, look: &Candidates, i: usize) -> f64 {
        if look.s[i] > 0.0 { look.q[i] / (self.factor.n() as f64 * look.s[i]) } else { 0.0 }
    }

    /// Returns the largest ρ of the points that are not active.
    fn largest_ratio(&self, look: &Candidates, state: &WeightState) -> f64 {
        let parts = blocks::map(look.s.len(), |places| {
            let from = state.rows.partition_point(|&row| row < look.row(places.start));
            let mut active = state.rows[from..].iter().copied().peekable();
            let mut largest: f64 = 0.0;
            for i in places {
                let row = look.row(i);
                while active.next_if(|&next| next < row).is_some() {}
                if active.next_if_eq(&row).is_none() {
                    largest = largest.max(self.ratio(look, i));
                }
            }
            largest
        });
        parts.into_iter().fold(0.0, f64::max)
    }

    fn violation(&self, look: &Candidates, state: &WeightState) -> f64 {
        let places = state.rows.iter().filter_map(|&row| look.place(row));
        let active = places.map(|i| (self.ratio(look, i) - 1.0).abs());
        active.fold((self.largest_ratio(look, state) - 1.0).max(0.0), f64::max)
    }

    /// If there are many candidates, keeps only those that are likely to join.
    fn keep_near(&self, look: &mut Candidates) {
        if look.s.len() <= 2 * NEAREST {
            return;
        }
        let (places, near) = self.nearest(look, NEAREST);
        look.s = places.iter().map(|&i| look.s[i]).collect();
        look.q = places.iter().map(|&i| look.q[i]).collect();
        look.near = Some(near);
    }

    /// Returns the `count` candidates of the largest ρ: their positions, and the points.
    fn nearest(&self, look: &Candidates, count: usize) -> (Vec<usize>, Arc<Near>) {
        let ratios =
            blocks::map(look.s.len(), |places| places.map(|i| self.ratio(look, i)).collect::<Vec<_>>()).concat();
        let mut places: Vec<usize> = (0..ratios.len()).collect();
        places.select_nth_unstable_by(count, |&i, &j| ratios[j].total_cmp(&ratios[i]).then(i.cmp(&j)));
        places.truncate(count);
        places.sort_unstable();
        let rows: Vec<usize> = places.iter().map(|&i| look.row(i)).collect();
        let atoms = match &look.near {
            None => self.factor.rows_of(&rows),
            Some(near) => Mat::from_fn(rows.len(), near.atoms.ncols(), |i, k| near.atoms[(places[i], k)]),
        };
        (places, Arc::new(Near { atoms, rows }))
    }

    /// Returns the initial candidates if there are many points: a random sample, because the points of the largest ρ
    /// would all lie in one region.
    fn sample(&self) -> Option<Arc<Near>> {
        let n = self.factor.n();
        self.large().then(|| {
            let rows = Random::new(0, Stream::NearRows).sample(n, NEAREST);
            Arc::new(Near { atoms: self.factor.rows_of(&rows), rows })
        })
    }

    /// Lets points join one after the other, the one with the largest gain first, each with its best weight, and
    /// updates S and Q of the others. Returns whether any point joined.
    fn join(&self, look: &mut Candidates, state: &mut WeightState, z: Mat<f64>, noise: f64) -> bool {
        let active = state.rows.len();
        let most = active.max(8);
        let mut closed = vec![false; look.s.len()];
        state.rows.iter().filter_map(|&row| look.place(row)).for_each(|i| closed[i] = true);
        let mut model = Grown::new(self.factor.rows_of(&state.rows), z, most, noise);
        let mut first = 0.0;
        while model.taken < active + most {
            let (gain, i) = self.largest_gain(look, &closed);
            if gain <= MIN_GAIN * first || gain <= 0.0 {
                break;
            }
            closed[i] = true;
            let f = self.factor.rows_of(&[look.row(i)]).transpose().to_owned();
            if model.has_collinear(&f) {
                continue;
            }
            first = f64::max(first, gain);
            let weight = (self.ratio(look, i) - 1.0) / look.s[i];
            self.admit(&mut model, look, i, f, weight);
            state.rows.push(look.row(i));
            state.weights.push(weight);
        }
        let mut order: Vec<usize> = (0..model.taken).collect();
        order.sort_by_key(|&i| state.rows[i]);
        state.rows = order.iter().map(|&i| state.rows[i]).collect();
        state.weights = order.iter().map(|&i| state.weights[i]).collect();
        model.taken > active
    }

    /// Returns the largest gain of a point that is not `closed`, and its position: the point of the largest ρ.
    fn largest_gain(&self, look: &Candidates, closed: &[bool]) -> (f64, usize) {
        let ratio = |i: usize| if closed[i] { 0.0 } else { self.ratio(look, i) };
        let largest = (0..look.s.len()).map(|i| (ratio(i), i)).fold((0.0, 0), |a, b| if b.0 > a.0 { b } else { a });
        let gain = if largest.0 > 1.0 + JOINS { largest.0 - 1.0 - largest.0.ln() } else { 0.0 };
        (0.5 * self.factor.n() as f64 * gain, largest.1)
    }

    /// Adds point `i`, the row f, with a weight: C grows by `w f fᵀ`, and S and Q are updated by the rank-one formula
    /// `C⁻¹ − step C⁻¹f fᵀC⁻¹`.
    fn admit(&self, model: &mut Grown, look: &mut Candidates, i: usize, f: Mat<f64>, weight: f64) {
        let (s, q) = (look.s[i], look.q[i]);
        let step = weight / (1.0 + weight * s);
        let u = model.solved(&f);
        let second = model.solved(&Mat::from_fn(u.nrows(), 1, |k, _| self.values[k] * u[(k, 0)]));
        let both = dense::beside(u.as_ref(), second.as_ref());
        let along = match &look.near {
            None => self.factor.product(both.as_ref()),
            Some(near) => dense::product(near.atoms.as_ref(), both.as_ref()),
        };
        for (j, (c, h)) in along.col(0).iter().zip(along.col(1).iter()).enumerate() {
            look.s[j] -= step * c * c;
            look.q[j] += step * c * (step * c * q - 2.0 * h);
        }
        model.grow(f, &u, step);
    }
}

/// Returns `Σ_k t_k u_ik²` of each row, or its squared length without `t`.
fn weighted_squares(u: MatRef<f64>, t: Option<&[f64]>) -> Vec<f64> {
    let mut sums = vec![0.0; u.nrows()];
    for k in 0..u.ncols() {
        let value = t.map_or(1.0, |t| t[k]);
        sums.iter_mut().zip(u.col(k).iter()).for_each(|(sum, u)| *sum += value * u * u);
    }
    sums
}

/// C while points join: `C⁻¹ = (I − ZZᵀ/σ²)/σ²`, where Z gains one column per point.
struct Grown {
    z: Mat<f64>,
    /// Number of columns of Z in use.
    taken: usize,
    /// Rows of the active points.
    atoms: Mat<f64>,
    noise: f64,
}

impl Grown {
    /// Creates the model with room for `more` points.
    fn new(atoms: Mat<f64>, z: Mat<f64>, more: usize, noise: f64) -> Grown {
        let taken = z.ncols();
        let mut room = Mat::zeros(z.nrows(), taken + more);
        room.as_mut().subcols_mut(0, taken).copy_from(&z);
        Grown { z: room, taken, atoms, noise }
    }

    fn has_collinear(&self, f: &Mat<f64>) -> bool {
        let products = dense::product(self.atoms.as_ref(), f.as_ref());
        let length = f.squared_norm_l2();
        (0..self.taken).any(|a| products[(a, 0)].powi(2) > COLLINEAR * length * self.atoms.row(a).squared_norm_l2())
    }

    /// `C⁻¹x`
    fn solved(&self, x: &Mat<f64>) -> Mat<f64> {
        let z = self.z.as_ref().subcols(0, self.taken);
        let along = dense::product(z.transpose(), x.as_ref());
        let back = dense::product(z, along.as_ref());
        Mat::from_fn(x.nrows(), 1, |k, _| (x[(k, 0)] - back[(k, 0)] / self.noise) / self.noise)
    }

    /// Subtracts `step u uᵀ`, u = C⁻¹f, from `C⁻¹`.
    fn grow(&mut self, f: Mat<f64>, u: &Mat<f64>, step: f64) {
        let scale = self.noise * step.sqrt();
        self.z.col_mut(self.taken).iter_mut().zip(u.col(0).iter()).for_each(|(z, u)| *z = scale * u);
        self.atoms = dense::stack(&[self.atoms.clone(), f.transpose().to_owned()]);
        self.taken += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::factor::Stop;
    use crate::kernel;
    use crate::points::Points;
    use crate::toys;

    fn with_model(points: &Points, rank: usize, test: impl Fn(&WeightProblem)) {
        let kernel = kernel::build(&"rbf,gamma=4".parse().unwrap(), points, 0).unwrap();
        let factor = Factor::pivoted(&kernel, points, Stop { rank, residual: 0.0 }, 0, &()).unwrap();
        let (t, _) = factor.scatter(false, &()).unwrap();
        let (values, e) = dense::eigen(t.as_ref()).unwrap();
        let factor = factor.rotated(e.as_ref());
        test(&WeightProblem::new(&factor, &values, &()));
    }

    #[test]
    fn the_likelihood_never_falls_and_s_and_q_are_updated_exactly() {
        with_model(&toys::parabola(0), 80, |model| {
            let noise = 0.02 * model.largest_noise();
            let mut state = WeightState::default();
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
                let warm =
                    model.maximise(noise, Some(&WeightState { rows, weights, ..WeightState::default() })).unwrap();
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

    /// There are so many points that most rounds evaluate the candidates only.
    #[test]
    fn the_certificate_covers_all_points_if_there_are_many() {
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
}
