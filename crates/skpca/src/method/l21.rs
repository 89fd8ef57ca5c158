//! Wang & Tanaka 2019, Algorithm 2: one set of points for all components.
//!
//! ```text
//! ½‖F̃(P − V)‖² + λ/2 ‖V‖² + μ Σ_i ‖a_i‖           ridge = λ, penalty = μ
//! ```

use super::parameters::{RANK, REFIT};
use super::regression::{ALTERNATIONS, FRACTION, Kind, PENALTY, RIDGE, Regression, TOLERANCE};
use super::{Capabilities, Entry};

pub(super) const ENTRY: Entry = Entry {
    name: "l21",
    summary: "group-sparse regression on the components, with one set of points for all components",
    source: "Wang & Tanaka 2019",
    parameters: &[RIDGE, PENALTY, FRACTION, ALTERNATIONS, REFIT, TOLERANCE, RANK],
    capabilities: Capabilities { path: true, ..Capabilities::NONE },
    build: |fields| Regression::build(Kind::L21, fields),
};
