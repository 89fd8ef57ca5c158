//! Parameters that several kernels have.

use crate::parameter::{Parameter, Range};

/// γ of a kernel of distances …
pub(super) const GAMMA: Parameter = gamma("median");
/// … and of one of inner products, as in scikit-learn.
pub(super) const GAMMA_OF_PRODUCTS: Parameter = gamma("scale");

const fn gamma(default: &'static str) -> Parameter {
    Parameter::bandwidth("gamma", default, "γ: a number, or a rule that finds one").as_sklearn("gamma")
}

/// The constant of a kernel of inner products, in some range.
pub(super) const fn coef0(range: Range) -> Parameter {
    Parameter::number("coef0", range, 1.0, "what is added to the inner product").as_sklearn("coef0")
}
