//! Methods: one file each, and a registry that is a plain list.
//!
//! A method sees the kernel and the points, and nothing else; it returns a support, components over it and a
//! report. To add one, write one file and add one line to [`METHODS`]: the command line, the bindings, the file
//! format and the law tests pick it up from there.

mod active;
mod akfa;
mod alternation;
mod deflation;
pub(crate) mod discriminant;
mod elastic_net;
mod energy;
mod exact;
mod expansion;
mod greedy;
mod homotopy;
mod kmeans;
mod l1;
mod l21;
pub(crate) mod landmarks;
mod lbfgs;
mod likelihood;
mod parameters;
mod plane;
mod polar;
mod pursuit;
mod reach;
mod reduced_set;
mod regression;
mod robust;
mod search;
mod shared;
mod skfa;
mod solution;
mod space;
pub(crate) mod spca;
mod task;
mod threshold;
mod twins;
mod weights;

use std::fmt::Debug;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::parameter::{self, Parameter};
use crate::points::Points;
use crate::reference::{REFERENCE_ROWS, Reference};
use crate::spec::{Fields, Spec};
use crate::watch::Watch;

pub(crate) use regression::steps;
pub use regression::{Step, shares};
pub(crate) use shared::Shared;
pub use solution::Target;
pub(crate) use solution::{DEPENDENT, Solution, Support};
use task::{LEAST_RANK, usual_rank};
pub(crate) use task::{NO_VARIANCE, Task};

/// Default number of components.
pub const COMPONENTS: usize = 10;
/// Default fidelity.
pub const FIDELITY: f64 = 0.95;

/// A way to choose a few points and components over them.
pub(crate) trait Method: Debug + Send + Sync {
    /// Chooses points and components over them.
    fn fit(&self, task: &Task) -> Result<Solution>;

    /// Returns the numbers of points along the method's path, up to `most`, each with its fidelity; `None` if the
    /// method has no path.
    fn fidelities(&self, _task: &Task, _most: usize) -> Result<Option<Vec<(usize, f64)>>> {
        Ok(None)
    }

    /// Moves the points of a model a few steps towards where they capture more of the variance of these scaled rows.
    /// Returns `None` if the method keeps points where they are.
    fn moved(
        &self,
        _rows: &Points<'static>,
        _points: &Points<'static>,
        _goal: &Following,
    ) -> Result<Option<Points<'static>>> {
        Ok(None)
    }

    /// Returns the number of bytes that a fit of this size needs besides the data.
    fn memory(&self, size: &Size) -> usize;

    /// Returns whether a fit keeps a scaled copy of all rows in memory besides the caller's.
    fn holds_rows(&self, _size: &Size) -> bool {
        true
    }
}

/// What the points of an online model should capture.
pub(crate) struct Following<'a> {
    pub kernel: &'a Arc<dyn Kernel>,
    /// Number of components.
    pub q: usize,
    pub center: bool,
    pub watch: &'a dyn Watch,
}

/// The size of a planned fit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub n: usize,
    pub d: usize,
    pub q: usize,
    pub support: Option<usize>,
    /// Dimension of the kernel's feature space, or an upper bound of it.
    pub dimension: usize,
    /// Whether the kernel is linear.
    pub linear: bool,
}

impl Size {
    /// Returns how many numbers the reference for the fidelity occupies.
    fn reference(&self) -> usize {
        Reference::memory(self.n, self.d, self.q, self.dimension, self.linear)
    }

    /// The same for a reference with components, which sums over all rows do not give: at most `REFERENCE_ROWS` rows.
    fn leading(&self) -> usize {
        Reference::memory(self.n.min(REFERENCE_ROWS), self.d, self.q, self.dimension, self.linear)
    }

    /// Returns the bytes of a method whose factor and work space are `own` numbers, and of the reference; both are in
    /// memory at the same time if the target is a fidelity. In few dimensions no reference is needed, because the
    /// factor is exact.
    fn beside_factor(&self, own: usize) -> usize {
        let reference = if self.dimension <= LEAST_RANK { 0 } else { self.reference() };
        8 * if self.support.is_some() { own.max(reference) } else { own + reference }
    }

    /// Returns whether the reference for the fidelity is computed from all rows.
    pub(crate) fn reference_holds_rows(&self) -> bool {
        !self.linear && Reference::is_exact(self.n, self.dimension)
    }

    /// Returns the number of points of the target, or `otherwise`, but no more than there are rows or dimensions of
    /// feature space.
    fn points(&self, otherwise: usize) -> usize {
        self.support.unwrap_or(otherwise).min(self.n).min(self.dimension)
    }
}

/// An entry of the registry.
pub struct Entry {
    /// The method's name in specs.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// The paper it was published in.
    pub source: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// What distinguishes it from other methods.
    pub capabilities: Capabilities,
    build: fn(&mut Fields) -> Result<Box<dyn Method>>,
}

/// The properties in which methods differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capabilities {
    /// It keeps every row and takes no target.
    pub keeps_all_rows: bool,
    /// Its support points are synthetic: they are not rows of the data.
    pub synthetic_points: bool,
    /// It needs class labels, and its components separate the classes.
    pub labelled: bool,
    /// It does not centre features by default.
    pub uncentred: bool,
    /// It has solutions along a path of penalties ([`crate::Fit::path`]).
    pub path: bool,
    /// Its models give the likelihood of new rows.
    pub density: bool,
    /// It selects columns and works with the linear kernel only.
    pub linear: bool,
    /// It accepts sample weights; a weight counts a row as often as that many copies of it.
    pub weights: bool,
}

impl Capabilities {
    /// A method that selects rows, as most do, and has none of these properties.
    pub(crate) const NONE: Capabilities = Capabilities {
        keeps_all_rows: false,
        synthetic_points: false,
        labelled: false,
        uncentred: false,
        path: false,
        density: false,
        linear: false,
        weights: false,
    };
}

impl Entry {
    /// Describes the method and its parameters, for help texts.
    pub fn about(&self) -> String {
        parameter::about(self.summary, Some(self.source), self.parameters)
    }

    /// Returns whether the method computes components of its own, which `refit=false` keeps.
    pub fn own_components(&self) -> bool {
        self.parameters.contains(&parameters::REFIT)
    }

    /// Returns the method's default kernel.
    pub fn kernel(&self) -> Spec {
        Spec::new(if self.capabilities.linear { "linear" } else { "rbf" })
    }

    /// Returns whether the method works with this kernel.
    pub fn takes(&self, kernel: &Spec) -> bool {
        kernel.name == "linear" || !self.capabilities.linear
    }

    /// Returns whether `spec` fixes the number of points itself, so that no target can be given.
    pub fn fixes_size(&self, spec: &Spec) -> bool {
        let fixed = |parameter: &Parameter| parameter.fixes_size && spec.fields.contains_key(parameter.name);
        self.capabilities.keeps_all_rows || self.parameters.iter().any(fixed)
    }

    /// Returns the whole entry as JSON, for the bindings.
    pub fn to_json(&self) -> Value {
        let Capabilities { keeps_all_rows, synthetic_points, labelled, uncentred, path, density, linear, weights } =
            self.capabilities;
        json!({
            "name": self.name,
            "summary": self.summary,
            "source": self.source,
            "parameters": self.parameters.iter().map(Parameter::to_json).collect::<Vec<_>>(),
            "keeps_all_rows": keeps_all_rows,
            "synthetic_points": synthetic_points,
            "labelled": labelled,
            "uncentred": uncentred,
            "path": path,
            "density": density,
            "linear": linear,
            "weights": weights,
            "own_components": self.own_components(),
        })
    }
}

/// All methods.
pub const METHODS: &[Entry] = &[
    exact::ENTRY,
    landmarks::ENTRY,
    l1::ENTRY,
    l21::ENTRY,
    elastic_net::ENTRY,
    threshold::ENTRY,
    energy::ENTRY,
    likelihood::ENTRY,
    greedy::ENTRY,
    expansion::ENTRY,
    skfa::ENTRY,
    akfa::ENTRY,
    pursuit::ENTRY,
    reduced_set::ENTRY,
    robust::ENTRY,
    spca::ENTRY,
    discriminant::ENTRY,
];

/// Returns the registry entry that `spec` names.
pub fn entry(spec: &Spec) -> Result<&'static Entry> {
    METHODS.iter().find(|entry| entry.name == spec.name).ok_or_else(|| Error::Unknown {
        what: "method",
        name: spec.name.clone(),
        valid: METHODS.iter().map(|entry| entry.name.to_string()).collect(),
    })
}

/// Builds the method that `spec` names.
pub(crate) fn build(spec: &Spec) -> Result<Box<dyn Method>> {
    #[cfg(test)]
    crate::counters::count(|counts| counts.methods += 1);
    let entry = entry(spec)?;
    let mut fields = Fields::new(spec, entry.parameters);
    let method = (entry.build)(&mut fields)?;
    fields.finish("method parameter")?;
    Ok(method)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names of the fields that an entry reads from a spec.
    fn read(entry: &Entry, spec: &Spec) -> Vec<&'static str> {
        let mut fields = Fields::new(spec, entry.parameters);
        (entry.build)(&mut fields).unwrap_or_else(|error| panic!("{spec}: {error}"));
        fields.known
    }

    #[test]
    fn entries_read_the_parameters_that_they_declare_and_no_others() {
        for entry in METHODS {
            let declared: Vec<&str> = entry.parameters.iter().map(|parameter| parameter.name).collect();
            let defaults = entry.parameters.iter().filter_map(|p| Some((p.name, p.default.value()?)));
            let spec = defaults.fold(Spec::new(entry.name), |spec, (name, value)| spec.with(name, value));
            assert_eq!(read(entry, &spec), declared, "{}", entry.name);
            build(&spec).unwrap_or_else(|error| panic!("{spec}: {error}"));
            let error = build(&Spec::new(entry.name).with("nonsense", 1)).unwrap_err();
            let valid = if declared.is_empty() { vec!["nothing (it has no parameters)"] } else { declared };
            let expected = format!("unknown method parameter 'nonsense': expected one of {}", valid.join(", "));
            assert_eq!(error.to_string(), expected, "{}", entry.name);
        }
    }

    #[test]
    fn declared_values_are_accepted_and_others_rejected() {
        for entry in METHODS {
            for parameter in entry.parameters {
                let with = |value| build(&Spec::new(entry.name).with(parameter.name, value));
                let (inside, outside) = parameter.domain.examples();
                for value in inside {
                    assert!(with(value.clone()).is_ok(), "{} {} {value}", entry.name, parameter.name);
                }
                for value in outside {
                    let error = with(value.clone()).unwrap_err();
                    assert_eq!(error, Error::parameter(parameter.name, &value, &parameter.domain.to_string()));
                }
            }
        }
    }
}
