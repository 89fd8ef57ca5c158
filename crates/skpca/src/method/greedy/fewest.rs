//! Search for the fewest points that reach a fidelity.

use super::exchange::Exchanged;
use super::selection::{InnerProducts, Selection};
use super::span::ChosenSpan;
use crate::dense;
use crate::error::Result;
use crate::method::search::{Chosen, until_reached};
use crate::rows::Part;
use crate::spectrum::Expansion;

impl Chosen for (Vec<usize>, Expansion, Exchanged) {
    fn rows(&self) -> &[usize] {
        &self.0
    }

    fn expansion(&self) -> &Expansion {
        &self.1
    }
}

impl Selection<'_> {
    /// Returns the fidelity of the span of these rows on the candidates.
    fn share(&self, chosen: &[usize]) -> Result<f64> {
        let (task, rows) = (self.task, self.rows(chosen));
        match &self.source {
            InnerProducts::Factor { factor, values, .. } => {
                let all: f64 = values.iter().take(task.q).sum();
                Ok(factor.captured(&dense::diagonal(values), &rows, None, task.q)? / all)
            }
            InnerProducts::Kernel { anchors, .. } => {
                let captured = match ChosenSpan::new(self, chosen, self.inner(chosen)) {
                    Some(span) => span.captured(task, self.counts.as_deref())?,
                    None => {
                        let candidates = Part { points: anchors.points().clone(), weights: self.counts.clone() };
                        task.on(&candidates).expansion_of(&task.rows.gather(&rows)?)?.captured
                    }
                };
                Ok(captured / self.weights.iter().sum::<f64>())
            }
        }
    }

    /// Returns the fidelity of each number of points, which are added one by one and exchanged each time.
    pub(super) fn fidelities(&self, most: usize) -> Result<Vec<(usize, f64)>> {
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

    /// Finds the fewest points, after exchanges, that reach the fidelity, on the candidates first, then on all rows.
    pub(in crate::method) fn smallest(&self, fidelity: f64) -> Result<(Vec<usize>, Expansion, Exchanged)> {
        let solved = |(chosen, exchanged): &(Vec<usize>, Exchanged)| {
            let rows = self.rows(chosen);
            let expansion = self.task.expansion(&rows, None)?;
            Ok((rows, expansion, *exchanged))
        };
        let next = |(chosen, _): (Vec<usize>, Exchanged)| {
            let count = chosen.len();
            let more = self.grown(chosen, 1 + count / 20)?;
            // Picks that span everything cannot grow.
            if more.len() > count { self.exchanged(more).map(Some) } else { Ok(None) }
        };
        until_reached(self.task, fidelity, self.smallest_here(fidelity)?, solved, next)
    }

    /// Starts from the picks that reach the fidelity without exchanges, and drops points as long as exchanges make up
    /// for them.
    fn smallest_here(&self, fidelity: f64) -> Result<(Vec<usize>, Exchanged)> {
        let (picks, held, rise) = self.enough(fidelity)?;
        if !held {
            // The picks span everything: no exchange helps.
            return Ok((picks, Exchanged { passes: 0, done: true }));
        }
        let mut best = self.exchanged(picks)?;
        let mut share = self.share(&best.0)?;
        while share >= fidelity && best.0.len() > 1 {
            // The excess in points. Steps that are too long are halved, down to one point.
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

    /// Returns the fewest picks that reach the fidelity without exchanges, whether any do, and the gain of fidelity per
    /// point at the end.
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

    /// Adds more picks.
    fn grown(&self, mut chosen: Vec<usize>, more: usize) -> Result<Vec<usize>> {
        let Some(span) = ChosenSpan::new(self, &chosen, self.inner(&chosen)) else { return Ok(chosen) };
        let picks = self.picks_beside(span.held(), more)?;
        chosen.extend(picks);
        Ok(chosen)
    }

    /// Drops `fewer` points one after the other, each time the one with the smallest loss.
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
