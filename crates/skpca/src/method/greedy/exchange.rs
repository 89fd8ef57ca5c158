//! Exchanges of chosen rows for better ones.

use super::MIN_GAIN;
use super::selection::Selection;
use super::span::ChosenSpan;
use crate::dense;
use crate::error::Result;
use crate::watch::check;

/// The outcome of the exchanges.
#[derive(Clone, Copy)]
pub(in crate::method) struct Exchanged {
    pub(super) passes: usize,
    /// Whether no further exchange helps.
    pub(super) done: bool,
}

impl Selection<'_> {
    /// Exchanges points as long as this helps.
    pub(in crate::method) fn exchanged(&self, mut chosen: Vec<usize>) -> Result<(Vec<usize>, Exchanged)> {
        // Without requested passes, exchanges are done at once.
        let unsettled = |passes| Exchanged { passes, done: self.passes == 0 };
        if self.passes == 0 {
            return Ok((chosen, unsettled(0)));
        }
        let Some(mut span) = ChosenSpan::new(self, &chosen, self.inner(&chosen)) else {
            return Ok((chosen, unsettled(1)));
        };
        // Number of points tried since the last exchange: when all have been, no exchange helps.
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

    /// Returns a row that is better in the place of one point, and the span with it. Without the point the span loses a
    /// direction h, orthogonal to the others; the gain of each row in its place follows from one product with h.
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
        if gain <= (1.0 + MIN_GAIN) * gains.of(chosen[at]) + gains.rounding || chosen.contains(&best) {
            return Ok(None);
        }
        let mut next = chosen.to_vec();
        next[at] = best;
        let mut k = span.k.clone();
        k.col_mut(at).copy_from(self.column(best, &gains).col(0));
        Ok(ChosenSpan::new(self, &next, k).map(|span| (best, span)))
    }
}
