//! Accelerated kernel feature analysis (Jiang, Motai, Wahl & Zhu 2006): features of one row, by the variance along it.
//!
//! ```text
//! max_i  g_iᵀ T g_i / ‖g_i‖²,     rows with ‖g_i‖² ≤ δ k(x_i, x_i) are looked at no more        cutoff = δ
//! ```
//!
//! The quotient is what the row adds to the trace of what is held, as in `greedy,gain=trace,exchanges=0`, which chooses
//! the same rows; the features are updated and not solved for, n r multiply-adds a row. What it does well: it is the
//! plain greedy choice at the least cost. `greedy` does better, for it looks at the leading components and exchanges
//! points that later ones have made useless.

use super::deflation::{Deflation, Score};
use super::parameters::RANK;
use super::{Capabilities, Entry};
use crate::parameter::{Parameter, Range};

pub(super) const ENTRY: Entry = Entry {
    name: "akfa",
    summary: "rows along which all others vary most, each taken out of the rest",
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
    "rows of which less than this share is left are looked at no more",
);
