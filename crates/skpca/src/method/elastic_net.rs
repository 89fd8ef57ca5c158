//! Das, Golatkar & Awate 2018: an elastic net on the coefficients, made for outlier detection.
//!
//! ```text
//! ‖F̃(P − V)‖² + λ ‖A‖² + λ₁ Σ_k ‖a_k‖₁            ridge = λ, penalty = λ₁;  l1_ratio ρ: λ₁ = ρ, λ = (1 − ρ)/2
//! ```

use super::parameters::{BY_TARGET, RANK, REFIT};
use super::regression::{ALTERNATIONS, FRACTION, Kind, PENALTY, Regression, STARTS, TOLERANCE};
use super::{Capabilities, Entry};
use crate::parameter::{Domain, Parameter, Range};

pub(super) const ENTRY: Entry = Entry {
    name: "elastic-net",
    summary: "elastic net on the coefficients, points of its own for each component",
    source: "Das, Golatkar & Awate 2018",
    parameters: &[RIDGE, PENALTY, FRACTION, L1_RATIO, ALTERNATIONS, STARTS, REFIT, TOLERANCE, RANK],
    capabilities: Capabilities { path: true, ..Capabilities::NONE },
    build: |fields| Regression::build(Kind::ElasticNet, fields),
};

const RIDGE: Parameter = Parameter::optional(
    "ridge",
    Domain::Number(Range::From(0.0)),
    "1e-3 times the largest eigenvalue and the mean k(x, x)",
    "what the squared norm of the coefficients costs",
);

const L1_RATIO: Parameter = Parameter::optional(
    "l1_ratio",
    Domain::Number(Range::Between(0.0, 1.0)),
    BY_TARGET,
    "Das's ρ, which gives penalty ρ and ridge (1 − ρ)/2",
)
.fixing_size();
