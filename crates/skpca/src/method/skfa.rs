//! Sparse kernel feature analysis (Smola, Mangasarian & Schölkopf 1999): each feature is a single row.
//!
//! ```text
//! max Σ_j ⟨v, φ̃(x_j)⟩²  over  v = Σ a_i g_i,  Σ |a_i| ≤ 1
//! ```
//!
//! A convex function over a polytope is largest at a vertex: v is one of the g_i, the residual of a row after the
//! earlier features. The score is not divided by ‖g_i‖², so that under a kernel whose rows have different lengths the
//! longest come first; under a Gaussian that matters only once much has been deflated. Its advantage is the cost: no
//! eigenproblem, and m products with the factor. With as many points, `akfa`, which divides by the length, captures
//! more.

use super::deflation::{Deflation, Score};
use super::parameters::RANK;
use super::{Capabilities, Entry};

pub(super) const ENTRY: Entry = Entry {
    name: "skfa",
    summary: "greedy: the row with the largest inner products with all rows, then deflation",
    source: "Smola, Mangasarian & Schölkopf 1999",
    parameters: &[RANK],
    capabilities: Capabilities { weights: true, ..Capabilities::NONE },
    build: |fields| {
        let rank = fields.optional_count("rank")?;
        Ok(Box::new(Deflation { name: "skfa", score: Score::Power, cutoff: None, candidates: None, rank }))
    },
};
