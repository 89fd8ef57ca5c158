//! Kernels: one file each, and a registry that is a plain list.
//!
//! [`Kernel::eval`] is the definition. [`Kernel::form`] tells the block code how to compute many values at once; tests
//! compare the two for every registered kernel. A new kernel takes one file and one line in [`KERNELS`]; in another
//! crate, the same file and a call of [`register`].

pub(crate) mod bandwidth;
pub(crate) mod conformal;
pub(crate) mod cosine;
mod laplacian;
mod linear;
mod parameters;
mod pinned;
mod polynomial;
pub(crate) mod rbf;
mod sigmoid;

use std::any::Any;
use std::fmt::Debug;
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::{Value, json};

pub use bandwidth::{Bandwidth, Distance};
pub use conformal::{Conformal, Stretch};
pub(crate) use pinned::{kernel_of, pinned, with_kernel};

use crate::error::{Error, Result};
use crate::parameter::{self, Parameter};
use crate::points::Points;
pub use crate::spec::Fields;
use crate::spec::Spec;
use skpca_simd::Instructions;

/// A symmetric function of two points, `k(x, z) = φ(x)·φ(z)`.
pub trait Kernel: Any + Debug + Send + Sync {
    /// Returns k(x, z); this is the definition of the kernel.
    fn eval(&self, x: &[f64], z: &[f64]) -> f64;

    /// Returns the form in which the block code computes the kernel; for a [`Conformal`] kernel, that of its base.
    fn form(&self) -> Form {
        Form::Pairs
    }

    /// Returns name and parameters, with every rule resolved to a number.
    fn spec(&self) -> Spec;

    /// Adds `weight · ∂k(z, x)/∂z` to `out`.
    fn add_gradient(&self, z: &[f64], x: &[f64], weight: f64, out: &mut [f64]);

    /// Returns an upper bound of the dimension of feature space over d columns, and thus of the rank of any factor.
    fn rank(&self, _d: usize) -> usize {
        usize::MAX
    }

    /// Returns the number of columns that points must have, if the kernel fixes it.
    fn width(&self) -> Option<usize> {
        None
    }

    /// Returns the instruction set that blocks of values are computed with: the best one available, unless the fit
    /// fixes another ([`Fit::level`](crate::Fit)).
    fn instructions(&self) -> Instructions {
        Instructions::best()
    }

    /// Returns whether kernel matrices are positive semi-definite for all points.
    fn positive_semidefinite(&self) -> bool {
        true
    }

    /// Returns whether `φ(x) = x`: feature space is then the space of the input columns.
    fn is_linear(&self) -> bool {
        let identity = Form::Dot { gamma: 1.0, coef0: 0.0, outer: Outer::Identity };
        self.form() == identity
    }

    /// Returns whether `k(x, x) = 1` for all x.
    fn unit_diagonal(&self) -> bool {
        self.bounded() && matches!(self.form(), Form::Gaussian { .. } | Form::Manhattan { .. })
    }

    /// Returns whether all values lie between −1 and 1, so that no row's rounding errors outweigh the others'.
    fn bounded(&self) -> bool {
        matches!(self.form(), Form::Gaussian { .. } | Form::Manhattan { .. } | Form::Cosine)
    }
}

/// The forms of kernel that the hot loop computes from tiles.
#[allow(missing_docs)] // the formulas define the fields
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
    /// Anything else: values are computed one pair at a time, by [`Kernel::eval`].
    Pairs,
}

/// The function g that a kernel applies to the inner product.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outer {
    /// `t`
    Identity,
    /// `t^p`
    Power(i32),
    /// `tanh t`
    Tanh,
}

/// An entry of the registry.
pub struct Entry {
    /// The name that users write.
    pub name: &'static str,
    /// The name in scikit-learn, if it differs.
    pub sklearn: Option<&'static str>,
    /// The formula and a short description.
    pub summary: &'static str,
    /// The publication.
    pub source: Option<&'static str>,
    /// The parameters.
    pub parameters: &'static [Parameter],
    /// The parameters of a kernel learned from labels, as stored in models.
    pub learned: &'static [Parameter],
    /// The properties of the kernel.
    pub capabilities: Capabilities,
    /// Builds the kernel, reading exactly the declared parameters.
    pub build: fn(&mut Fields, &Bandwidth) -> Result<Arc<dyn Kernel>>,
}

/// Properties of a kernel that hold for all values of its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capabilities {
    /// Values lie between −1 and 1 ([`Kernel::bounded`]).
    pub bounded: bool,
    /// Kernel matrices are positive semi-definite ([`Kernel::positive_semidefinite`]).
    pub positive_semidefinite: bool,
    /// Its feature space has finitely many dimensions ([`Kernel::rank`]).
    pub finite_dimension: bool,
    /// It is `exp(−γ ‖x − z‖²)` for some γ: pre-images have a fixed-point iteration (Mika et al. 1998).
    pub gaussian: bool,
    /// It is the inner product of the rows themselves ([`Kernel::is_linear`]).
    pub linear: bool,
    /// It is learned from the classes of the rows.
    pub labelled: bool,
}

impl Capabilities {
    /// A bounded, positive semi-definite function of the distance with infinitely many features.
    pub const RADIAL: Capabilities = Capabilities {
        bounded: true,
        positive_semidefinite: true,
        finite_dimension: false,
        gaussian: false,
        linear: false,
        labelled: false,
    };
}

impl Entry {
    /// Returns formula and parameters for help texts.
    pub fn about(&self) -> String {
        parameter::about(self.summary, self.source, self.parameters)
    }

    /// Returns the parameters that the kernel is built from: the learned ones for a kernel learned from labels.
    fn declared(&self) -> &'static [Parameter] {
        if self.capabilities.labelled { self.learned } else { self.parameters }
    }

    /// Returns whether `spec` lacks parameters that are learned from labels.
    pub(crate) fn learns(&self, spec: &Spec) -> bool {
        self.capabilities.labelled && !self.only_learned().any(|name| spec.fields.contains_key(name))
    }

    /// Builds the kernel of `spec`.
    fn build(&self, spec: &Spec, bandwidth: &Bandwidth) -> Result<Arc<dyn Kernel>> {
        let mut fields = Fields::new(spec, self.declared());
        let kernel = (self.build)(&mut fields, bandwidth)?;
        fields.finish("kernel parameter")?;
        Ok(kernel)
    }

    /// Returns the names of the parameters that are only known after learning.
    fn only_learned(&self) -> impl Iterator<Item = &'static str> {
        let given = |parameter: &&Parameter| self.parameters.iter().any(|other| other.name == parameter.name);
        self.learned.iter().filter(move |parameter| !given(parameter)).map(|parameter| parameter.name)
    }

    /// Returns the entry as JSON, for bindings to other languages.
    pub fn to_json(&self) -> Value {
        let Capabilities { bounded, positive_semidefinite, finite_dimension, gaussian, linear, labelled } =
            self.capabilities;
        json!({
            "name": self.name,
            "sklearn": self.sklearn,
            "summary": self.summary,
            "source": self.source,
            "parameters": self.parameters.iter().map(Parameter::to_json).collect::<Vec<_>>(),
            "learned": self.only_learned().collect::<Vec<_>>(),
            "bounded": bounded,
            "positive_semidefinite": positive_semidefinite,
            "finite_dimension": finite_dimension,
            "gaussian": gaussian,
            "linear": linear,
            "labelled": labelled,
        })
    }
}

/// All kernels of this crate.
pub const KERNELS: &[Entry] =
    &[rbf::ENTRY, laplacian::ENTRY, polynomial::ENTRY, sigmoid::ENTRY, linear::ENTRY, cosine::ENTRY, conformal::ENTRY];

/// Kernels of other crates. They can be added but not changed or removed, so that names keep their meaning.
static REGISTERED: RwLock<Vec<&'static Entry>> = RwLock::new(Vec::new());

/// Registers a kernel of another crate, so that fits, model files and [`Conformal`] know it by its name. A program
/// calls this once before it fits with the kernel or reads a model that uses it; calling it again has no effect.
///
/// ```
/// use std::sync::Arc;
///
/// use skpca::kernel::{self, Capabilities, Entry, Kernel};
/// use skpca::{Fit, Parameter, Range, Spec, toys};
///
/// /// `1 / (1 + ‖x − z‖² / ℓ²)`
/// #[derive(Debug)]
/// struct Cauchy {
///     length: f64,
/// }
///
/// impl Kernel for Cauchy {
///     fn eval(&self, x: &[f64], z: &[f64]) -> f64 {
///         let squared: f64 = x.iter().zip(z).map(|(a, b)| (a - b) * (a - b)).sum();
///         1.0 / (1.0 + squared / (self.length * self.length))
///     }
///
///     fn spec(&self) -> Spec {
///         Spec::new("cauchy").with("length", self.length)
///     }
///
///     fn add_gradient(&self, z: &[f64], x: &[f64], weight: f64, out: &mut [f64]) {
///         let slope = -2.0 * weight * (self.eval(z, x) / self.length).powi(2);
///         out.iter_mut().zip(z.iter().zip(x)).for_each(|(out, (z, x))| *out += slope * (z - x));
///     }
///
///     fn bounded(&self) -> bool {
///         true
///     }
/// }
///
/// static CAUCHY: Entry = Entry {
///     name: "cauchy",
///     sklearn: None,
///     summary: "1 / (1 + ‖x − z‖² / length²)",
///     source: None,
///     parameters: &[Parameter::number("length", Range::Above(0.0), 1.0, "ℓ: the length scale")],
///     learned: &[],
///     capabilities: Capabilities::RADIAL,
///     build: |fields, _| Ok(Arc::new(Cauchy { length: fields.number("length")? })),
/// };
///
/// kernel::register(&CAUCHY)?;
/// let fit = Fit { kernel: "cauchy,length=2".parse()?, ..Fit::default() };
/// assert!(fit.train(&toys::parabola(0))?.fidelity() >= 0.95);
/// # Ok::<(), skpca::Error>(())
/// ```
pub fn register(entry: &'static Entry) -> Result<()> {
    let rejected = |expected: &str| Err(Error::parameter("kernel", entry.name, expected));
    if entry.name.is_empty() || entry.name.contains(|c: char| c.is_whitespace() || c == ',' || c == '=') {
        return rejected("a name without spaces, commas and equals signs");
    }
    if entry.capabilities.labelled {
        return rejected("a kernel that is not learned from labels");
    }
    let points = Points::new(1, vec![0.0, 1.0])?;
    let kernel = entry.build(&Spec::new(entry.name), &Bandwidth { rows: Some(&points), seed: 0 })?;
    if kernel.spec().name != entry.name {
        return rejected("a kernel whose spec has the name of its entry");
    }
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    match KERNELS.iter().chain(registered.iter().copied()).find(|known| known.name == entry.name) {
        None => registered.push(entry),
        Some(known) if std::ptr::eq(known, entry) => {}
        Some(_) => return rejected("a name that no other kernel has"),
    }
    Ok(())
}

/// Iterates over all kernels, those of other crates last.
fn known() -> impl Iterator<Item = &'static Entry> + Clone {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner).clone();
    KERNELS.iter().chain(registered)
}

/// Returns the registry entry of the kernel that `spec` names.
pub fn entry(spec: &Spec) -> Result<&'static Entry> {
    known().find(|entry| entry.name == spec.name).ok_or_else(|| Error::Unknown {
        what: "kernel",
        name: spec.name.clone(),
        valid: known().map(|entry| entry.name.to_string()).collect(),
    })
}

/// Builds the kernel that `spec` names; rules such as `gamma=median` are evaluated on `points`.
pub fn build(spec: &Spec, points: &Points, seed: u64) -> Result<Arc<dyn Kernel>> {
    build_for(spec, &Bandwidth { rows: Some(points), seed }, points.d())
}

/// Like [`build`], for rows of d columns that need not be in memory.
pub(crate) fn build_for(spec: &Spec, bandwidth: &Bandwidth, d: usize) -> Result<Arc<dyn Kernel>> {
    let kernel = build_with(spec, bandwidth)?;
    match kernel.width() {
        Some(expected) if expected != d => Err(Error::Width { found: d, expected }),
        _ => Ok(kernel),
    }
}

/// Builds a kernel whose parameters are all numbers, as in a model file.
pub(crate) fn build_resolved(spec: &Spec) -> Result<Arc<dyn Kernel>> {
    build_with(spec, &Bandwidth { rows: None, seed: 0 })
}

/// Builds the kernel that `spec` names, for points of any width.
pub(crate) fn build_with(spec: &Spec, bandwidth: &Bandwidth) -> Result<Arc<dyn Kernel>> {
    #[cfg(test)]
    crate::counters::count(|counts| counts.kernels += 1);
    entry(spec)?.build(spec, bandwidth)
}

#[cfg(test)]
impl Entry {
    /// Returns a kernel over such points; a kernel learned from labels gets an f that changes sign.
    pub(crate) fn example(&self, points: &Points) -> Arc<dyn Kernel> {
        let mut spec = Spec::new(self.name);
        if self.capabilities.labelled {
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
    use crate::toys;

    #[test]
    fn unknown_names_list_the_valid_ones() {
        let points = Points::new(1, vec![0.0, 1.0]).unwrap();
        let message = |text: &str| build(&text.parse().unwrap(), &points, 0).unwrap_err().to_string();
        let names: Vec<&str> = KERNELS.iter().map(|entry| entry.name).collect();
        assert_eq!(message("gauss"), format!("unknown kernel 'gauss': expected one of {}", names.join(", ")));
        assert_eq!(message("rbf,breadth=1"), "unknown kernel parameter 'breadth': expected one of gamma, sigma, width");
        assert_eq!(
            message("linear,gamma=1"),
            "unknown kernel parameter 'gamma': expected one of nothing (it has no parameters)"
        );
        assert_eq!(message("rbf,gamma=-1"), "gamma = -1: expected a positive number");
        assert_eq!(
            message("rbf,gamma=wide"),
            "gamma = \"wide\": expected a positive number, median, mean, scale or auto"
        );
        assert_eq!(message("polynomial,degree=2.5"), "degree = 2.5: expected an integer from 1 to 64");
    }

    #[test]
    fn entries_read_the_parameters_that_they_declare_and_no_others() {
        let points = toys::clusters(0);
        let bandwidth = Bandwidth { rows: Some(&points), seed: 0 };
        for entry in KERNELS.iter().filter(|entry| !entry.capabilities.labelled) {
            let declared: Vec<&str> = entry.parameters.iter().map(|parameter| parameter.name).collect();
            let defaults = entry.parameters.iter().filter_map(|p| Some((p.name, p.default.value()?)));
            let spec = defaults.fold(Spec::new(entry.name), |spec, (name, value)| spec.with(name, value));
            let mut fields = Fields::new(&spec, entry.parameters);
            (entry.build)(&mut fields, &bandwidth).unwrap();
            assert_eq!(fields.known, declared, "{}", entry.name);
            let valid = if declared.is_empty() { vec!["nothing (it has no parameters)"] } else { declared };
            let error = build(&Spec::new(entry.name).with("nonsense", 1), &points, 0).unwrap_err();
            let expected = format!("unknown kernel parameter 'nonsense': expected one of {}", valid.join(", "));
            assert_eq!(error.to_string(), expected, "{}", entry.name);
        }
    }

    #[test]
    fn declared_values_are_accepted_and_others_rejected() {
        let points = toys::clusters(0);
        for entry in KERNELS.iter().filter(|entry| !entry.capabilities.labelled) {
            for parameter in entry.parameters {
                let with = |value| build(&Spec::new(entry.name).with(parameter.name, value), &points, 0);
                let (inside, outside) = parameter.domain.examples();
                for value in inside {
                    assert!(with(value.clone()).is_ok(), "{} {} {value}", entry.name, parameter.name);
                }
                for value in outside {
                    let error = with(value.clone()).unwrap_err();
                    assert!(matches!(error, Error::Parameter { .. }), "{} {} {value}", entry.name, parameter.name);
                }
            }
        }
    }

    #[test]
    fn a_learned_kernel_reads_what_it_declares() {
        let points = Points::new(2, vec![0.0, 1.0, 2.0, 0.5, 1.0, 3.0]).unwrap();
        for entry in KERNELS.iter().filter(|entry| entry.capabilities.labelled) {
            let spec = entry.example(&points).spec();
            assert!(entry.learns(&Spec::new(entry.name)) && !entry.learns(&spec), "{}", entry.name);
            let mut fields = Fields::new(&spec, entry.learned);
            (entry.build)(&mut fields, &Bandwidth { rows: None, seed: 0 }).unwrap();
            let own = fields.known.iter().filter(|name| entry.learned.iter().any(|p| p.name == **name));
            assert_eq!(own.count(), entry.learned.len(), "{}: {:?}", entry.name, fields.known);
        }
    }

    #[test]
    fn declared_capabilities_match_the_kernels() {
        let points = Points::new(2, vec![0.0, 1.0, 2.0, 0.5, 1.0, 3.0]).unwrap();
        for entry in KERNELS {
            let kernel = entry.example(&points);
            let conformal = Conformal::of(kernel.as_ref());
            let found = Capabilities {
                bounded: kernel.bounded(),
                positive_semidefinite: kernel.positive_semidefinite(),
                finite_dimension: kernel.rank(2) < usize::MAX,
                gaussian: matches!(kernel.form(), Form::Gaussian { .. }) && conformal.is_none(),
                linear: kernel.is_linear(),
                labelled: conformal.is_some(),
            };
            assert_eq!(entry.capabilities, found, "{}", entry.name);
        }
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
