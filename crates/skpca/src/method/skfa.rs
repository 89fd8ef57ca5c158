//! Sparse kernel feature analysis (Smola, Mangasarian & Schölkopf 1999): each feature is a single row.
//!
//! ```text
//! max Σ_j ⟨v, φ̃(x_j)⟩²  over  v = Σ a_i g_i,  Σ |a_i| ≤ 1
//! ```
//!
//! A convex function over a polytope is largest at a vertex: v is one of the g_i, what earlier features leave of a row.
//! Rows count by their whole power, so that under a kernel whose rows have different lengths the longest come first;
//! under a Gaussian that matters only once much has been taken out. What it does well: no eigenproblem, m products with
//! the factor. For as many points `akfa`, which divides by the length, captures more.

use super::deflation::{Deflation, Score};
use super::parameters::RANK;
use super::{Capabilities, Entry};

pub(super) const ENTRY: Entry = Entry {
    name: "skfa",
    summary: "rows that have most in common with all others, each taken out of the rest",
    source: "Smola, Mangasarian & Schölkopf 1999",
    parameters: &[RANK],
    capabilities: Capabilities { weights: true, ..Capabilities::NONE },
    build: |fields| {
        let rank = fields.optional_count("rank")?;
        Ok(Box::new(Deflation { name: "skfa", score: Score::Power, cutoff: None, candidates: None, rank }))
    },
};
