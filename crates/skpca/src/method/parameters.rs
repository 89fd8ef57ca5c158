//! Parameters shared by several methods.

use crate::parameter::{Domain, Parameter};

/// Default of a parameter that fixes the size.
pub(super) const BY_TARGET: &str = "found for the requested size or fidelity";

pub(super) const REFIT: Parameter = Parameter::boolean(
    "refit",
    true,
    "true: the best components in the span of the chosen points; false: the method's own",
)
.as_sklearn("refit");

pub(super) const RANK: Parameter = Parameter::optional(
    "rank",
    Domain::from(0),
    "all up to 1000 rows, then 500 or fewer",
    "columns of the factor that approximates the kernel matrix",
);

pub(super) const SEQUENTIAL: Parameter = Parameter::boolean("sequential", false, "one component after the other");
