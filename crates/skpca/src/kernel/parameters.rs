//! Parameters shared by several kernels.

use crate::parameter::{Parameter, Range};

/// γ of a kernel of distances.
pub(super) const GAMMA: Parameter = gamma("median");
/// γ of a kernel of inner products, with the default of scikit-learn.
pub(super) const GAMMA_OF_PRODUCTS: Parameter = gamma("scale");

const fn gamma(default: &'static str) -> Parameter {
    Parameter::bandwidth("gamma", default, "γ: a number, or a rule that computes one").as_sklearn("gamma")
}

/// Declares the constant of a kernel of inner products, in a range.
pub(super) const fn coef0(range: Range) -> Parameter {
    Parameter::number("coef0", range, 1.0, "constant added to the inner product").as_sklearn("coef0")
}
