//! The path of the elastic net in Gram form (LARS with drops; Osborne, Presnell & Turlach 2000, Efron et al. 2004).
//!
//! ```text
//! min ½ bᵀ(S + λ)b − bᵀc + μ‖b‖₁          b_A = (S_AA + λ)⁻¹ (c_A − μ s_A),   |c − (S + λ)b| ≤ μ
//! ```
//!
//! The solution is linear in (c, μ) as long as the active set A and its signs s do not change. The path from one
//! solution to another is a sequence of events, at which a coefficient becomes zero or a correlation reaches μ. A cold
//! start decreases μ; when P has moved a little, c changes little, and there are few events.

use faer::Mat;

/// For a given number of coefficients, the penalty stops at this share of the way from the value at which the last one
/// entered to the value at which the next would, so that rounding does not change their number.
const INSIDE: f64 = 0.95;
/// A column with at most this share of its squared length outside the span of the active ones does not enter.
const DEPENDENT: f64 = 1e-12;
/// Slopes below this are rounding errors.
const FLAT: f64 = 1e-14;

/// The matrix shared by all paths of a problem.
#[derive(Clone, Copy)]
pub(super) struct Gram<'a> {
    /// S
    pub s: &'a Mat<f64>,
    /// λ
    pub ridge: f64,
}

impl Gram<'_> {
    fn dim(&self) -> usize {
        self.s.nrows()
    }

    fn column(&self, j: usize) -> &[f64] {
        self.s.col_as_slice(j)
    }

    fn entry(&self, i: usize, j: usize) -> f64 {
        self.s[(i, j)] + if i == j { self.ridge } else { 0.0 }
    }
}

/// The requested sparsity of a solution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Sparsity {
    /// μ
    Penalty(f64),
    /// Number of non-zero coefficients.
    Count(usize),
}

/// A condition that ends a move before its target.
#[derive(Clone, Copy)]
enum Limit {
    None,
    /// Stops once fewer than this many coefficients are active.
    Below(usize),
    /// Stops before more than this many coefficients are active.
    Filled(usize),
}

/// The end of a linear piece.
#[derive(Clone, Copy)]
enum Event {
    /// The column that enters.
    Enters(usize),
    /// The position, in the active set, of the column that leaves.
    Leaves(usize),
}

/// A point of the path.
#[derive(Clone, Default)]
pub(super) struct Homotopy {
    /// A, in the order of entry.
    pub active: Vec<usize>,
    /// Signs of the active coefficients.
    signs: Vec<f64>,
    /// Active coefficients.
    pub values: Vec<f64>,
    /// Rows of the Cholesky factor of `S_AA + λ`.
    factor: Vec<Vec<f64>>,
    /// c
    target: Vec<f64>,
    /// μ
    pub penalty: f64,
    /// Columns that are linearly dependent on the active ones.
    blocked: Vec<usize>,
}

impl Homotopy {
    /// Moves to the solution for `c`.
    pub(super) fn solve(&mut self, gram: Gram, c: &[f64], sparsity: Sparsity) {
        let largest = c.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
        if self.active.is_empty() {
            (self.target, self.penalty) = (c.to_vec(), largest);
        }
        match sparsity {
            Sparsity::Penalty(penalty) => {
                self.penalty = if self.active.is_empty() { largest.max(penalty) } else { self.penalty };
                self.run(gram, c, penalty, Limit::None);
            }
            Sparsity::Count(count) => {
                self.run(gram, c, self.penalty, Limit::None);
                self.run(gram, c, 2.0 * self.penalty.max(largest), Limit::Below(count));
                self.run(gram, c, 0.0, Limit::Filled(count));
            }
        }
    }

    /// Moves (c, μ) along a straight line.
    fn run(&mut self, gram: Gram, c: &[f64], penalty: f64, limit: Limit) {
        self.blocked.clear();
        for _ in 0..20 * (gram.dim() + 10) {
            if matches!(limit, Limit::Below(count) if self.active.len() < count) {
                return;
            }
            let dc: Vec<f64> = c.iter().zip(&self.target).map(|(to, from)| to - from).collect();
            let dmu = penalty - self.penalty;
            let step = self.solved(self.active.iter().zip(&self.signs).map(|(&i, s)| dc[i] - dmu * s).collect());
            let (t, event) = self.next_event(gram, &dc, dmu, &step);
            let full = matches!(limit, Limit::Filled(count) if self.active.len() == count);
            match event {
                Some(Event::Enters(j)) if full && t <= FLAT => {
                    // A tie with a column that has entered.
                    self.blocked.push(j);
                    continue;
                }
                Some(Event::Enters(_)) if full => return self.advance(t * INSIDE, &dc, dmu, &step),
                None => {
                    self.advance(1.0, &dc, dmu, &step);
                    return;
                }
                Some(event) => {
                    self.advance(t, &dc, dmu, &step);
                    match event {
                        Event::Enters(j) => self.enter(gram, j),
                        Event::Leaves(place) => self.leave(gram, place),
                    }
                }
            }
        }
    }

    fn advance(&mut self, t: f64, dc: &[f64], dmu: f64, step: &[f64]) {
        self.values.iter_mut().zip(step).for_each(|(b, w)| *b += t * w);
        self.target.iter_mut().zip(dc).for_each(|(c, d)| *c += t * d);
        self.penalty += t * dmu;
    }

    /// `c − (S + λ)b`
    pub(super) fn residual(&self, gram: Gram) -> Vec<f64> {
        let mut r = self.target.clone();
        for (&j, b) in self.active.iter().zip(&self.values) {
            r.iter_mut().zip(gram.column(j)).for_each(|(r, s)| *r -= b * s);
            r[j] -= gram.ridge * b;
        }
        r
    }

    /// Returns the first event on the way, and the share of the way at which it occurs.
    fn next_event(&self, gram: Gram, dc: &[f64], dmu: f64, step: &[f64]) -> (f64, Option<Event>) {
        let r = self.residual(gram);
        let mut slopes = dc.to_vec();
        for (&j, w) in self.active.iter().zip(step) {
            slopes.iter_mut().zip(gram.column(j)).for_each(|(v, s)| *v -= w * s);
        }
        let mut first = (1.0, None);
        let mut consider = |t: f64, event: Event| {
            if t < first.0 {
                first = (t.max(0.0), Some(event));
            }
        };
        let mut inside = vec![true; gram.dim()];
        self.active.iter().chain(&self.blocked).for_each(|&j| inside[j] = false);
        let flat = FLAT * (dmu.abs() + dc.iter().fold(0.0_f64, |most, v| most.max(v.abs())));
        for j in (0..gram.dim()).filter(|&j| inside[j]) {
            for side in [1.0, -1.0] {
                let speed = side * slopes[j] - dmu;
                if speed > flat {
                    consider((self.penalty - side * r[j]) / speed, Event::Enters(j));
                }
            }
        }
        for (place, (b, w)) in self.values.iter().zip(step).enumerate() {
            if w * self.signs[place] < 0.0 {
                consider((-b / w).max(0.0), Event::Leaves(place));
            }
        }
        first
    }

    fn enter(&mut self, gram: Gram, j: usize) {
        let row = self.appended(gram, j);
        match row {
            Some(row) => {
                let r = self.residual(gram)[j];
                self.factor.push(row);
                self.active.push(j);
                self.signs.push(r.signum());
                self.values.push(0.0);
            }
            None => self.blocked.push(j),
        }
    }

    /// Returns the row of the Cholesky factor that `j` adds; `None` if `j` depends on the active columns.
    fn appended(&self, gram: Gram, j: usize) -> Option<Vec<f64>> {
        let mut row: Vec<f64> = self.active.iter().map(|&i| gram.entry(i, j)).collect();
        forward(&self.factor, &mut row);
        let whole = gram.entry(j, j);
        let left = whole - row.iter().map(|v| v * v).sum::<f64>();
        if left <= DEPENDENT * whole {
            return None;
        }
        row.push(left.sqrt());
        Some(row)
    }

    fn leave(&mut self, gram: Gram, place: usize) {
        self.blocked.clear();
        let later: Vec<(usize, f64, f64)> =
            (place + 1..self.active.len()).map(|i| (self.active[i], self.signs[i], self.values[i])).collect();
        self.active.truncate(place);
        self.signs.truncate(place);
        self.values.truncate(place);
        self.factor.truncate(place);
        for (j, sign, value) in later {
            // Columns stay independent when one leaves.
            if let Some(row) = self.appended(gram, j) {
                self.factor.push(row);
                self.active.push(j);
                self.signs.push(sign);
                self.values.push(value);
            }
        }
    }

    /// `(S_AA + λ)⁻¹ x`
    fn solved(&self, mut x: Vec<f64>) -> Vec<f64> {
        forward(&self.factor, &mut x);
        for i in (0..x.len()).rev() {
            x[i] /= self.factor[i][i];
            let (value, row) = (x[i], &self.factor[i]);
            x[..i].iter_mut().zip(row).for_each(|(x, l)| *x -= value * l);
        }
        x
    }
}

/// Computes `L⁻¹ x` in place, L given by its rows.
fn forward(l: &[Vec<f64>], x: &mut [f64]) {
    for (i, row) in l.iter().enumerate() {
        let known: f64 = row[..i].iter().zip(&x[..i]).map(|(l, x)| l * x).sum();
        x[i] = (x[i] - known) / row[i];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dense;
    use crate::random::{Random, Stream};

    /// The covariance of more columns than rows, and a target.
    fn problem(d: usize, rows: usize) -> (Mat<f64>, Vec<f64>) {
        let mut random = Random::new(d as u64, Stream::Tests);
        let x = Mat::from_fn(rows, d, |_, _| random.normal());
        let s = dense::product(x.transpose(), x.as_ref());
        let c = (0..d).map(|_| 10.0 * random.normal()).collect();
        (s, c)
    }

    /// Checks the conditions of a minimum with S itself.
    fn check(gram: Gram, path: &Homotopy, c: &[f64], case: &str) {
        let mut b = vec![0.0; c.len()];
        path.active.iter().zip(&path.values).for_each(|(&j, v)| b[j] = *v);
        for (i, c) in c.iter().enumerate() {
            let r = c - (0..b.len()).map(|j| gram.entry(i, j) * b[j]).sum::<f64>();
            assert!(r.abs() <= path.penalty + 1e-8, "{case}: gradient {i} is {r}, penalty {}", path.penalty);
            if b[i] != 0.0 {
                assert!((r - path.penalty * b[i].signum()).abs() < 1e-8, "{case}: {i} {r} {}", path.penalty);
            }
        }
    }

    #[test]
    fn every_point_of_the_path_is_a_minimum_from_cold_and_warm_starts() {
        for (d, rows, ridge) in [(6, 20, 0.0), (30, 12, 0.1), (60, 100, 1.0)] {
            let (s, c) = problem(d, rows);
            let gram = Gram { s: &s, ridge };
            let largest = c.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
            let mut warm = Homotopy::default();
            for (k, share) in [0.9, 0.5, 0.1, 0.02, 0.3, 0.7].into_iter().enumerate() {
                let case = format!("d {d} rows {rows} share {share}");
                let turned: Vec<f64> = c.iter().enumerate().map(|(i, v)| v + 0.3 * (i + k) as f64 % 1.7).collect();
                let mut cold = Homotopy::default();
                cold.solve(gram, &turned, Sparsity::Penalty(share * largest));
                warm.solve(gram, &turned, Sparsity::Penalty(share * largest));
                check(gram, &cold, &turned, &case);
                check(gram, &warm, &turned, &case);
                assert!(!cold.active.is_empty() || share > 0.8, "{case}");
                assert_eq!(cold.active.len(), warm.active.len(), "{case}");
            }
        }
    }

    #[test]
    fn a_requested_number_of_coefficients_is_met_and_its_penalty_gives_it_again() {
        let (s, c) = problem(40, 80);
        let gram = Gram { s: &s, ridge: 0.5 };
        let mut warm = Homotopy::default();
        for count in [1, 2, 7, 30, 3, 40] {
            let mut cold = Homotopy::default();
            cold.solve(gram, &c, Sparsity::Count(count));
            warm.solve(gram, &c, Sparsity::Count(count));
            for path in [&cold, &warm] {
                assert_eq!(path.values.iter().filter(|b| **b != 0.0).count(), count);
                check(gram, path, &c, &format!("{count}"));
            }
            assert!((cold.penalty - warm.penalty).abs() < 1e-9 * cold.penalty.max(1.0), "{count}");
            let mut again = Homotopy::default();
            again.solve(gram, &c, Sparsity::Penalty(cold.penalty));
            assert_eq!(again.active.len(), count);
        }
    }

    #[test]
    fn equal_columns_do_not_stop_the_path() {
        let s = Mat::from_fn(4, 4, |i, j| if i / 2 == j / 2 { 2.0 } else { 0.5 });
        let c = [3.0, 3.0, 1.0, 1.0];
        for ridge in [0.0, 0.1] {
            let gram = Gram { s: &s, ridge };
            for sparsity in [Sparsity::Penalty(0.1), Sparsity::Count(1), Sparsity::Count(2)] {
                let mut path = Homotopy::default();
                path.solve(gram, &c, sparsity);
                // With a ridge, equal columns share their coefficient: a minimum uses both.
                if ridge == 0.0 || sparsity != Sparsity::Count(1) {
                    check(gram, &path, &c, &format!("{ridge} {sparsity:?}"));
                }
                assert!(path.values.iter().any(|b| *b != 0.0), "{ridge} {sparsity:?}");
            }
        }
    }
}
