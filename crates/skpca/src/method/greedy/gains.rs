//! The gain of each row when it joins a span.

use faer::{Mat, MatRef};

use super::TIED;
use crate::dense;
use crate::error::Result;

/// Accuracy of eigenvalues, as a share of the largest.
const TOLERANCE: f64 = 1e-10;

/// The gain of each row when it joins a span.
pub(super) struct Gains {
    pub(super) lengths: Vec<f64>,
    /// `gᵀTg / ‖g‖²`, or −1 for rows that are spanned.
    pub(super) traces: Vec<f64>,
    pub(super) ritz: Option<Ritz>,
    /// Differences below this are rounding errors.
    pub(super) rounding: f64,
}

impl Gains {
    pub(super) fn of(&self, i: usize) -> f64 {
        match &self.ritz {
            Some(ritz) if self.traces[i] > 0.0 => ritz.gain(i, self.lengths[i], self.traces[i]),
            _ => self.traces[i],
        }
    }

    /// Returns the row with the largest gain, the first of ties, and its gain.
    pub(super) fn best(&self) -> (usize, f64) {
        if self.ritz.is_none() {
            let most = self.traces.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            // The gain of spanned rows is −1.
            let least = if most < 0.0 { most } else { (most - self.rounding.max(TIED * most)).max(0.0) };
            let first = self.traces.iter().position(|gain| *gain >= least).unwrap_or(0);
            return (first, self.traces[first]);
        }
        let mut order: Vec<usize> = (0..self.traces.len()).collect();
        order.sort_by(|&i, &j| self.traces[j].total_cmp(&self.traces[i]));
        let mut best = (order[0], f64::NEG_INFINITY);
        for i in order {
            // The gain in trace is an upper bound.
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
pub(super) struct Ritz {
    q: usize,
    values: Vec<f64>,
    /// `b_k ‖g‖` of each row, m × n.
    borders: Mat<f64>,
}

impl Ritz {
    pub(super) fn new(t: &[f64], atoms: &Mat<f64>, basis: MatRef<f64>, q: usize) -> Result<Ritz> {
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

    /// Returns the gain of the sum of the q largest eigenvalues by row i, given ‖g‖² and c. The eigenvalues move up to
    /// the zeros of `μ − c − Σ b_k² / (μ − λ_k)`, which increases from one λ to the next.
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
            while high - low > TOLERANCE * highest {
                let middle = 0.5 * (low + high);
                if secular(middle) < 0.0 { low = middle } else { high = middle }
            }
            low - self.values[k]
        };
        (0..self.q).map(moved).sum()
    }
}
