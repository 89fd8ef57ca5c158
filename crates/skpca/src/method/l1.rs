//! Wang & Tanaka 2019, Algorithm 1: each component has its own points.
//!
//! ```text
//! ½‖F̃(P − V)‖² + λ/2 ‖V‖² + Σ_k λ₁ₖ ‖a_k‖₁        ridge = λ, penalty = λ₁ (one number, or one a component)
//! ```

use super::Entry;
use super::regression::{Kind, Regression};

pub(super) const ENTRY: Entry = Entry {
    name: "l1",
    about: "sparse regression on the components (Wang & Tanaka), points of its own for each; ridge, penalty (one, or one a \
            component: 0.1:0.2), fraction, sequential, alternations, refit, tolerance, rank",
    labelled: false,
    build: |fields| Regression::build(Kind::L1, fields),
};
