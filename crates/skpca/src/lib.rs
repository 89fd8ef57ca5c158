//! skpca
#![deny(unsafe_code)]
mod blocks;
mod columns;
mod dense;
mod error;
mod factor;
mod fit;
pub mod format;
mod gram;
pub mod kernel;
pub mod method;
mod model;
mod points;
mod random;
mod reference;
#[allow(unsafe_code)]
mod simd;
mod spec;
mod spectrum;
pub mod toys;
mod watch;

pub use columns::{Columns, Scaling};
pub use error::{Error, Result};
pub use factor::{Factor, Stop};
pub use fit::Fit;
pub use gram::{Basis, Precision, Weights};
pub use method::{Report, Target};
pub use model::{Model, Parts, Scores};
pub use points::Points;
pub use spec::Spec;
pub use watch::Watch;
