//! Greedy picks: the row with the largest gain, one after the other.

use faer::Mat;

use super::gains::{Gains, Ritz};
use super::selection::{InnerProducts, Selection};
use super::span::{Held, Rest};
use super::{ROUNDING, SPANNED};
use crate::dense;
use crate::error::Result;
use crate::kernel_matrix::gram;
use crate::points::Points;
use crate::sample_weight;
use crate::watch::check;

impl Selection<'_> {
    /// Returns the first `count` picks, fewer if they span everything.
    pub(in crate::method) fn picks(&self, count: usize) -> Result<Vec<usize>> {
        let (n, c) = (self.lengths.len(), self.weights.len());
        let nothing = Held { u: vec![Mat::zeros(n, 0)], basis: Mat::zeros(c, 0), rest: self.all() };
        self.picks_beside(nothing, count)
    }

    /// Returns picks given any points, each chosen for what it adds to them and to the previous picks.
    pub(in crate::method) fn picks_beside_points(&self, z: &Points<'static>, count: usize) -> Result<Vec<usize>> {
        let InnerProducts::Kernel { anchors, .. } = &self.source else { return Ok(Vec::new()) };
        // φ(z)·v_k = Σ_j a_jk k(x_j, z): the coefficients of a component are the coordinates of the rows along it,
        // centred and divided by λ.
        let counted = |j: usize| self.counts.as_ref().map_or(1.0, |counts| counts[j]);
        let n = sample_weight::total(self.counts.as_deref(), self.lengths.len());
        let sum = |k: usize| self.along.col(k).iter().enumerate().map(|(j, v)| counted(j) * v).sum::<f64>();
        let means: Vec<f64> =
            (0..self.weights.len()).map(|k| if self.task.center { sum(k) / n } else { 0.0 }).collect();
        let coefficient = |j: usize, k: usize| counted(j) * (self.along[(j, k)] - means[k]) / self.weights[k];
        let a = Mat::from_fn(self.along.nrows(), means.len(), coefficient);
        let mut u = anchors.values(z).matrix();
        let mut basis = dense::product(u.transpose(), a.as_ref());
        let Some(l) = dense::cholesky(gram(anchors.kernel(), z).as_ref()) else { return Ok(Vec::new()) };
        dense::solve_lower(l.as_ref(), basis.as_mut());
        dense::divide_by_transposed(u.as_mut(), l.as_ref());
        let rest = self.all().without(u.as_ref(), basis.as_ref());
        self.picks_beside(Held { u: vec![u], basis: basis.transpose().to_owned(), rest }, count)
    }

    pub(super) fn picks_beside(&self, mut held: Held, count: usize) -> Result<Vec<usize>> {
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

    /// Returns what the empty span leaves of every row: all of it.
    pub(super) fn all(&self) -> Rest {
        Rest { lengths: self.lengths.clone(), g: self.along.clone() }
    }

    /// Computes `gᵀTg` of each row.
    pub(super) fn sums(&self, rest: &Rest) -> Vec<f64> {
        let mut sums = vec![0.0; rest.lengths.len()];
        for (column, weight) in rest.g.col_iter().zip(&self.weights) {
            sums.iter_mut().zip(column.iter()).for_each(|(sum, g)| *sum += weight * g * g);
        }
        sums
    }

    /// Computes the gain of each row from `sums`, `gᵀTg`, and `lengths`, `‖g‖²`, of what the span leaves of it; `basis`
    /// is an orthonormal basis of the span.
    pub(super) fn gains(&self, sums: Vec<f64>, lengths: Vec<f64>, basis: impl FnOnce() -> Mat<f64>) -> Result<Gains> {
        let left = lengths.iter().zip(&self.lengths);
        let quotient = |(sum, (left, all)): (&f64, (&f64, &f64))| if *left > SPANNED * all { sum / left } else { -1.0 };
        let traces = sums.iter().zip(left).map(quotient).collect();
        let ritz = self.top.map(|q| Ritz::new(&self.weights, &self.along, basis().as_ref(), q)).transpose()?;
        Ok(Gains { lengths, traces, ritz, rounding: ROUNDING * self.weights[0] })
    }
}
