//! Das, Golatkar & Awate 2018: an elastic net on the coefficients, made for outlier detection.
//!
//! ```text
//! ‖F̃(P − V)‖² + λ ‖A‖² + λ₁ Σ_k ‖a_k‖₁            ridge = λ, penalty = λ₁;  l1_ratio ρ: λ₁ = ρ, λ = (1 − ρ)/2
//! ```

use super::Entry;
use super::regression::{Kind, Regression};

pub(super) const ENTRY: Entry = Entry {
    name: "elastic-net",
    about: "elastic net on the coefficients (Das, Golatkar & Awate), points of its own for each component; l1_ratio, or ridge \
            and penalty, or fraction; alternations, refit, tolerance, rank",
    labelled: false,
    build: |fields| Regression::build(Kind::ElasticNet, fields),
};
