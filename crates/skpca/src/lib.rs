//! Sparse kernel PCA: non-linear features and novelty scores from a model that keeps only a few points.
//!
#![doc = include_str!("../points.svg")]
//!
//! *Of 500 rows (grey) the model keeps seven points (red), which capture 99 % of the variance that kernel PCA with all
//! rows captures. Contours show the novelty score, the thick one its threshold.* The documentation site, which
//! `docs/build` builds from a checkout, has a picture for each of [`method::METHODS`] and [`kernel::KERNELS`], and a
//! gallery of examples.
//!
//! # The mathematics on one page
//!
//! `n` points, `d` input features, `q` components, `m` support points. A kernel is an inner product in a feature
//! space, `k(x, y) = φ(x)·φ(y)`. Kernel PCA finds the directions of largest variance of the `φ(x_j)`; its components
//! are linear combinations of all n of them, so a query costs n kernel values. Sparse kernel PCA keeps m ≪ n points.
//!
//! **A component** is `v = Σ_i a_i φ(z_i)` over the *uncentred* features of the support, so that projecting a query
//! costs exactly m kernel values:
//!
//! ```text
//! project(x)_k = Σ_i a_ik (k(z_i, x) − μ_i),        μ_i = (1/n) Σ_j k(z_i, x_j)
//! ```
//!
//! **Rayleigh–Ritz.** The best q components in the span of a support solve the m × m problem
//!
//! ```text
//! C b = λ K_zz b,   bᵀ K_zz b = 1,        C = Σ_j (k_z(x_j) − μ)(k_z(x_j) − μ)ᵀ
//! ```
//!
//! **Captured variance** is `Σ λ`. **Fidelity** is captured variance divided by the sum of the q largest eigenvalues of
//! exact kernel PCA.
//!
//! **The novelty score** is the squared distance of `φ(x)` from the span of the components through the mean (Hoffmann
//! 2007), with the mean projected onto the support, `β = K_zz⁻¹ μ`:
//!
//! ```text
//! score(x) = k(x,x) − 2 βᵀk_z(x) + μᵀβ − ‖Eᵀ project(x)‖²  ≥ 0
//! ```
//!
//! where E orthonormalises the components; it is the identity unless a method keeps its own components.
//!
//! # Usage
//!
//! ```
//! use skpca::{Fit, Precision, Target, toys};
//!
//! let points = toys::parabola(0);
//! let fit = Fit { components: Some(3), target: Some(Target::Fidelity(0.99)), ..Fit::default() };
//! let model = fit.train(&points)?;
//! assert!(model.m() < 30 && model.fidelity() >= 0.99);
//! let features = model.transform(&points, Precision::Double)?;   // 3 per row
//! let scores = model.score(&points, Precision::Double)?;         // higher is more novel
//! let novel = scores.iter().filter(|score| model.is_novel(**score)).count();
//! assert!(novel <= 25, "a twentieth of 500");
//! # assert_eq!((features.len(), scores.len()), (1500, 500));
//! # Ok::<(), skpca::Error>(())
//! ```
//!
//! [`Training`] bundles the table with column names, labels and a progress callback. Methods and kernels are given by
//! name (`"l21,fraction=0.3".parse()?`) or by type ([`typed`]). Rows are slices, `faer` matrices or, with the feature
//! `ndarray`, arrays, in 64 or 32 bits.
//!
//! The library uses no files, clocks, printing or environment variables: models are read from any `Read` and written to
//! any `Write` ([`mod@format`]), and long fits report their progress to a [`Watch`]. On one kind of processor (with
//! AVX-512, with AVX2 or with neither) results depend on data, parameters and seed only, not on the number of threads.
//!
//! Rounding differs between instruction sets. The same points are kept, and scores agree to 1e-9 of the largest score.
//! Agreement is 1e-6 for methods that move points (under kernels with a smooth gradient), worse if points are nearly
//! linearly dependent, and 1e-3 for methods that keep their own components, which are solved to the method's tolerance.
//! Where choices tie, as on a regular grid, the eigenvectors of equal eigenvalues may be any basis of their span.
//! `exact`, `landmarks`, `energy`, `greedy`, `expansion` and `discriminant` do not depend on that basis; all others
//! (`l1`, `l21`, `elastic-net`, `threshold`, `likelihood`, `spca`, `skfa`, `akfa`, `pursuit`, `reduced-set`, `robust`)
//! may then keep different points, and `robust` may do so on any table. [`Fit::level`](Fit) fixes the instruction set
//! used for kernel values; the dense linear algebra around them always uses the best one available.

#![forbid(unsafe_code)]
#![deny(missing_docs)]
// Without the feature `files` no model is read, so the code that checks one is unused.
#![cfg_attr(not(feature = "files"), allow(dead_code))]
#![warn(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro)]

mod agreement;
mod blocks;
mod bounded;
mod calibration;
mod columns;
mod concentration;
mod conformal;
#[cfg(test)]
mod counters;
mod dense;
mod density;
mod eigen;
mod error;
mod exact;
mod factor;
mod fit;
#[cfg(feature = "files")]
pub mod format;
mod given;
mod gradient;
mod gram;
mod intake;
#[cfg(test)]
mod judge_tests;
pub mod kernel;
mod kernel_matrix;
mod labels;
mod lasso;
mod loadings;
pub mod method;
mod model;
mod moments;
mod online;
mod parameter;
mod parcel;
pub mod passes;
mod plan;
mod points;
mod random;
mod ranks;
mod reference;
mod report;
mod request;
mod rows;
mod run;
mod sample;
mod sample_weight;
mod sampled;
mod scatter;
mod skeleton;
mod source;
mod sparse;
mod spec;
#[cfg(test)]
mod spectra_tests;
mod spectrum;
mod study;
mod sums;
mod table_moments;
pub mod toys;
mod training;
pub mod typed;
mod views;
mod watch;

pub use columns::{Columns, FarOutside, Ranges, Scaling};
pub use density::Density;
pub use error::{Error, Result};
pub use factor::{Factor, Stop};
pub use fit::{Fit, RowOrder, Statistic};
pub use given::Given;
pub use gram::{Basis, Precision, Weights, multiply_adds};
pub use intake::{Cell, Input, Intake, Kind, Missing, Unknown};
pub use labels::Labels;
pub use loadings::Loadings;
pub use method::{Step, Target};
pub use model::{Calibration, Contributions, Learned, Model, Parts, Scores, Statistics, Tail};
pub use moments::Moments;
pub use online::{Learning, Online, Update};
pub use parameter::{DefaultValue, Domain, Parameter, Range};
pub use points::{Numbers, Points, UncheckedRows};
pub use random::Random;
pub use report::{Agreement, Report};
pub use request::Request;
pub use rows::Remote;
pub use sampled::check_sparse;
pub use skpca_simd::Level;
pub use source::Source;
pub use sparse::SparseRows;
pub use spec::Spec;
pub use study::Study;
pub use training::Training;
pub use watch::Watch;

/// Runs the examples of the documentation page on Rust as doctests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/reference/rust.md")]
struct Page;
