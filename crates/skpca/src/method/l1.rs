//! Wang & Tanaka 2019, Algorithm 1: each component has its own points.
//!
//! ```text
//! ½‖F̃(P − V)‖² + λ/2 ‖V‖² + Σ_k λ₁ₖ ‖a_k‖₁        ridge = λ, penalty = λ₁ (one number, or one per component)
//! ```

use super::parameters::{RANK, REFIT, SEQUENTIAL};
use super::regression::{ALTERNATIONS, FRACTION, Kind, PENALTY, RIDGE, Regression, STARTS, TOLERANCE};
use super::{Capabilities, Entry};

pub(super) const ENTRY: Entry = Entry {
    name: "l1",
    summary: "sparse regression on the components, with separate points for each component",
    source: "Wang & Tanaka 2019",
    parameters: &[RIDGE, PENALTY, FRACTION, SEQUENTIAL, ALTERNATIONS, STARTS, REFIT, TOLERANCE, RANK],
    capabilities: Capabilities { path: true, ..Capabilities::NONE },
    build: |fields| Regression::build(Kind::L1, fields),
};
