//! Kernels: one file each, and a registry that is a plain list.
//!
//! [`Kernel::eval`] is the definition. [`Kernel::form`] tells the block code how to compute many values at
//! once; the two are proved equal over the registry. To add a kernel: one file, one line in [`KERNELS`].

mod bandwidth;
pub(crate) mod conformal;
pub(crate) mod cosine;
mod laplacian;
mod linear;
mod polynomial;
pub(crate) mod rbf;
mod sigmoid;

use std::fmt::Debug;
use std::sync::Arc;

pub use bandwidth::Bandwidth;
pub(crate) use bandwidth::Distance;
pub use conformal::Conformal;

use crate::error::{Error, Result};
use crate::points::Points;
use crate::spec::{Fields, Spec};

/// A symmetric function of two points, `k(x, z) = φ(x)·φ(z)`.
pub trait Kernel: Debug + Send + Sync {
    /// The definition, one value.
    fn eval(&self, x: &[f64], z: &[f64]) -> f64;

    /// The same in the shape the block code knows.
    fn form(&self) -> Form;

    /// Name and parameters, every rule resolved to a number.
    fn spec(&self) -> Spec;

    /// Adds `weight · ∂k(z, x)/∂z` to `out`.
    fn add_gradient(&self, z: &[f64], x: &[f64], weight: f64, out: &mut [f64]);

    /// The dimension of feature space over d columns, or more: no factor has a higher rank.
    fn rank(&self, _d: usize) -> usize {
        usize::MAX
    }

    /// The columns that points must have, where the kernel knows.
    fn width(&self) -> Option<usize> {
        None
    }

    /// What [`Kernel::form`] leaves out: the factor of a conformal kernel.
    fn conformal(&self) -> Option<&Conformal> {
        None
    }

    /// Whether kernel matrices are positive semi-definite, whatever the points.
    fn positive_semidefinite(&self) -> bool {
        true
    }

    /// Whether `φ(x) = x`: then the columns of a table are all there is of feature space.
    fn is_linear(&self) -> bool {
        let identity = Form::Dot { gamma: 1.0, coef0: 0.0, outer: Outer::Identity };
        self.form() == identity && self.conformal().is_none()
    }

    /// Whether values lie between −1 and 1, whatever the rows: then no row's rounding outweighs the others'.
    fn bounded(&self) -> bool {
        let form = matches!(self.form(), Form::Gaussian { .. } | Form::Manhattan { .. } | Form::Cosine);
        form && self.conformal().is_none()
    }
}

/// The shapes of kernel that the hot loop computes from tiles.
#[allow(missing_docs)] // the fields stand in the formulas
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    /// `exp(−γ ‖x − z‖²)`
    Gaussian { gamma: f64 },
    /// `exp(−γ ‖x − z‖₁)`
    Manhattan { gamma: f64 },
    /// `g(γ x·z + c)`
    Dot { gamma: f64, coef0: f64, outer: Outer },
    /// `x·z / (‖x‖ ‖z‖)`
    Cosine,
}

/// What a kernel of the inner product does with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outer {
    /// `t`
    Identity,
    /// `t^p`
    Power(i32),
    /// `tanh t`
    Tanh,
}

/// A line of the registry.
pub struct Entry {
    /// The name users give.
    pub name: &'static str,
    /// Formula and parameters, for help texts.
    pub about: &'static str,
    /// Whether it is learned from labels.
    pub labelled: bool,
    build: fn(&mut Fields, &Bandwidth) -> Result<Arc<dyn Kernel>>,
}

/// Every kernel there is.
pub const KERNELS: &[Entry] =
    &[rbf::ENTRY, laplacian::ENTRY, polynomial::ENTRY, sigmoid::ENTRY, linear::ENTRY, cosine::ENTRY, conformal::ENTRY];

/// Builds the kernel that `spec` names; rules such as `gamma=median` look at `points`.
pub fn build(spec: &Spec, points: &Points, seed: u64) -> Result<Arc<dyn Kernel>> {
    let kernel = build_with(spec, &Bandwidth { points: Some(points), seed })?;
    match kernel.width() {
        Some(expected) if expected != points.d() => Err(Error::Width { found: points.d(), expected }),
        _ => Ok(kernel),
    }
}

/// Builds a kernel whose parameters are all numbers, as a model file has it.
pub(crate) fn build_resolved(spec: &Spec) -> Result<Arc<dyn Kernel>> {
    build_with(spec, &Bandwidth { points: None, seed: 0 })
}

/// Builds the kernel that `spec` names, for points of any width.
pub(crate) fn build_with(spec: &Spec, bandwidth: &Bandwidth) -> Result<Arc<dyn Kernel>> {
    let entry = KERNELS.iter().find(|entry| entry.name == spec.name).ok_or_else(|| Error::Unknown {
        what: "kernel",
        name: spec.name.clone(),
        valid: KERNELS.iter().map(|entry| entry.name.to_string()).collect(),
    })?;
    let mut fields = Fields::new(spec);
    let kernel = (entry.build)(&mut fields, bandwidth)?;
    fields.finish("kernel parameter")?;
    Ok(kernel)
}

#[cfg(test)]
impl Entry {
    /// A kernel over points like these; one that is learned from labels is given an f that changes its sign.
    pub(crate) fn example(&self, points: &Points) -> Arc<dyn Kernel> {
        let mut spec = Spec::new(self.name);
        if self.labelled {
            let vectors = [points.row(0), points.row(points.n() - 1)].concat();
            spec = spec.with("delta", 0.1).with("constant", 0.5);
            spec = spec.with("weights", vec![1.5, -2.0]).with("vectors", vectors);
        }
        build(&spec, points, 0).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_list_the_valid_ones() {
        let points = Points::new(1, vec![0.0, 1.0]).unwrap();
        let message = |text: &str| build(&text.parse().unwrap(), &points, 0).unwrap_err().to_string();
        assert_eq!(
            message("gauss"),
            "unknown kernel 'gauss': expected one of rbf, laplacian, polynomial, sigmoid, linear, cosine, conformal"
        );
        assert_eq!(message("rbf,sigma=1"), "unknown kernel parameter 'sigma': expected one of gamma");
        assert_eq!(
            message("linear,gamma=1"),
            "unknown kernel parameter 'gamma': expected one of nothing (it has no parameters)"
        );
        assert_eq!(message("rbf,gamma=-1"), "gamma = -1: expected a positive number");
        assert_eq!(message("rbf,gamma=wide"), "gamma = \"wide\": expected a positive number, median, mean or scale");
        assert_eq!(message("polynomial,degree=2.5"), "degree = 2.5: expected a whole number from 1 to 64");
    }

    #[test]
    fn every_kernel_is_symmetric_and_its_spec_rebuilds_it() {
        let x = [0.3, -1.2, 2.0];
        let z = [1.1, 0.4, -0.7];
        let points = Points::new(3, [x, z, [0.0, 1.0, 1.0]].concat()).unwrap();
        for entry in KERNELS {
            let kernel = entry.example(&points);
            assert_eq!(kernel.eval(&x, &z), kernel.eval(&z, &x), "{}", entry.name);
            assert_eq!(kernel.spec().name, entry.name);
            let again = build_resolved(&kernel.spec()).unwrap();
            assert_eq!(again.eval(&x, &z), kernel.eval(&x, &z), "{}", entry.name);
        }
    }

    #[test]
    fn a_rule_needs_points() {
        let error = build_resolved(&Spec::new("rbf")).unwrap_err().to_string();
        assert_eq!(error, "gamma = median: expected a number where there are no points to look at");
    }
}
