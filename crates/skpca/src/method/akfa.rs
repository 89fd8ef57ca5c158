//! Accelerated kernel feature analysis (Jiang, Motai, Wahl & Zhu 2006): features of one row, by the variance along it.
//!
//! ```text
//! max_i  g_iᵀ T g_i / ‖g_i‖²,     rows with ‖g_i‖² ≤ δ k(x_i, x_i) are no longer candidates        cutoff = δ
//! ```
//!
//! The quotient is the gain of captured variance, so that the method selects the same rows as
//! `greedy,gain=trace,exchanges=0`; features are updated rather than solved for, at n r multiply-adds per row. This is
//! the plain greedy selection at the lowest cost. `greedy` captures more, because it considers only the leading
//! components and exchanges points that later ones have made redundant.

use super::deflation::{Deflation, Score};
use super::parameters::RANK;
use super::{Capabilities, Entry};
use crate::parameter::{Parameter, Range};

pub(super) const ENTRY: Entry = Entry {
    name: "akfa",
    summary: "greedy: the row along which all others vary most, then deflation",
    source: "Jiang, Motai, Wahl & Zhu 2006",
    parameters: &[CUTOFF, RANK],
    capabilities: Capabilities { weights: true, ..Capabilities::NONE },
    build: |fields| {
        let (cutoff, rank) = (fields.number("cutoff")?, fields.optional_count("rank")?);
        Ok(Box::new(Deflation { name: "akfa", score: Score::Quotient, cutoff: Some(cutoff), candidates: None, rank }))
    },
};

const CUTOFF: Parameter = Parameter::number(
    "cutoff",
    Range::Below(0.0, 1.0),
    0.0,
    "rows with less than this share of their squared length left are no longer candidates",
);
