//! Das, Golatkar & Awate 2018: an elastic net on the coefficients, designed for outlier detection.
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
    summary: "elastic net on the coefficients, with separate points for each component",
    source: "Das, Golatkar & Awate 2018",
    parameters: &[RIDGE, PENALTY, FRACTION, L1_RATIO, ALTERNATIONS, STARTS, REFIT, TOLERANCE, RANK],
    capabilities: Capabilities { path: true, ..Capabilities::NONE },
    build: |fields| Regression::build(Kind::ElasticNet, fields),
};

const RIDGE: Parameter = Parameter::optional(
    "ridge",
    Domain::Number(Range::From(0.0)),
    "1e-3 times the largest eigenvalue and the mean k(x, x)",
    "penalty on the squared norm of the coefficients",
);

const L1_RATIO: Parameter = Parameter::optional(
    "l1_ratio",
    Domain::Number(Range::Between(0.0, 1.0)),
    BY_TARGET,
    "ρ of Das et al.: penalty ρ and ridge (1 − ρ)/2",
)
.fixing_size();
