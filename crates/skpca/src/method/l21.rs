//! Wang & Tanaka 2019, Algorithm 2: one set of points for all components.
//!
//! ```text
//! ½‖F̃(P − V)‖² + λ/2 ‖V‖² + μ Σ_i ‖a_i‖           ridge = λ, penalty = μ
//! ```

use super::Entry;
use super::regression::{Kind, Regression};

pub(super) const ENTRY: Entry = Entry {
    name: "l21",
    about: "group-sparse regression on the components (Wang & Tanaka), one set of points for all; ridge, penalty, fraction, \
            alternations, refit, tolerance, rank",
    labelled: false,
    build: |fields| Regression::build(Kind::L21, fields),
};
