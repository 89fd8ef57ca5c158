//! Kernel matching pursuit: sparse greedy matrix approximation (Smola & Schölkopf 2000), which Hussain & Shawe-Taylor
//! (2009) showed to be sparse kernel PCA by quotient maximisation and deflation.
//!
//! ```text
//! max_i  e_iᵀK² e_i / e_iᵀK e_i,   K ← K − K e_i e_iᵀK / k_ii         over a few rows drawn anew each time
//! ```
//!
//! The best of 59 rows is among the best 5 % of all with a probability of 95 %. With centred features K² is replaced by
//! products with centred rows; the chosen rows stay uncentred, as everywhere here. The method comes close to `akfa` and
//! avoids scoring all rows; in this implementation the factor costs more than the scores, and `akfa` captures a little
//! more.

use super::deflation::{Deflation, Score};
use super::parameters::RANK;
use super::{Capabilities, Entry};
use crate::parameter::Parameter;

pub(super) const ENTRY: Entry = Entry {
    name: "pursuit",
    summary: "matching pursuit: the best of a few randomly drawn rows, then deflation",
    source: "Smola & Schölkopf 2000; Hussain & Shawe-Taylor 2009",
    parameters: &[CANDIDATES, RANK],
    capabilities: Capabilities::NONE,
    build: |fields| {
        let (candidates, rank) = (fields.count("candidates")?, fields.optional_count("rank")?);
        Ok(Box::new(Deflation {
            name: "pursuit",
            score: Score::Quotient,
            cutoff: None,
            candidates: Some(candidates),
            rank,
        }))
    },
};

const CANDIDATES: Parameter = Parameter::count("candidates", 0, 59, "rows drawn for each selection; 0 for all rows");
