//! Methods: one file each, and a registry that is a plain list.
//!
//! A method sees the kernel and the points, and nothing else; it returns a support, components over it and a
//! report. To add one: one file, one line in [`METHODS`]; command line, bindings, file format and the law tests
//! then know it.

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

/// Components by default.
pub const COMPONENTS: usize = 10;
/// Fidelity by default.
pub const FIDELITY: f64 = 0.95;

/// A way to choose components over few points.
pub(crate) trait Method: Debug + Send + Sync {
    /// Chooses points, and components over them.
    fn fit(&self, task: &Task) -> Result<Solution>;

    /// Numbers of points, up to `most`, and the fidelity of each along the method's path, if it has one.
    fn fidelities(&self, _task: &Task, _most: usize) -> Result<Option<Vec<(usize, f64)>>> {
        Ok(None)
    }

    /// Moves the points of a model a few steps towards where they capture more of the variance of these rows, scaled.
    /// Returns `None` if the method keeps points where they are.
    fn moved(
        &self,
        _rows: &Points<'static>,
        _points: &Points<'static>,
        _goal: &Following,
    ) -> Result<Option<Points<'static>>> {
        Ok(None)
    }

    /// Bytes that a fit needs beside the data, for the target given.
    fn memory(&self, size: &Size) -> usize;

    /// Whether a fit holds all rows in memory, scaled, beside the caller's.
    fn holds_rows(&self, _size: &Size) -> bool {
        true
    }
}

/// What the points of a model that learns on are to capture.
pub(crate) struct Following<'a> {
    pub kernel: &'a Arc<dyn Kernel>,
    /// Number of components.
    pub q: usize,
    pub center: bool,
    pub watch: &'a dyn Watch,
}

/// The size of a fit to come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub n: usize,
    pub d: usize,
    pub q: usize,
    pub support: Option<usize>,
    /// The kernel's, or more.
    pub dimension: usize,
    /// Whether the kernel is linear.
    pub linear: bool,
}

impl Size {
    /// Numbers that the reference for the fidelity takes.
    fn reference(&self) -> usize {
        Reference::memory(self.n, self.d, self.q, self.dimension, self.linear)
    }

    /// The same with its components, which no sum over all rows gives.
    fn leading(&self) -> usize {
        Reference::memory(self.n.min(REFERENCE_ROWS), self.d, self.q, self.dimension, self.linear)
    }

    /// Bytes of a method with a factor, which are `own` numbers, and the reference: for a fidelity both are there at
    /// the same time. In few dimensions the factor knows what exact kernel PCA captures.
    fn beside_factor(&self, own: usize) -> usize {
        let reference = if self.dimension <= LEAST_RANK { 0 } else { self.reference() };
        8 * if self.support.is_some() { own.max(reference) } else { own + reference }
    }

    /// Whether the reference for the fidelity is made of all rows.
    pub(crate) fn reference_holds_rows(&self) -> bool {
        !self.linear && Reference::is_exact(self.n, self.dimension)
    }

    /// The points that may be kept, where a target says so: no more than feature space has dimensions.
    fn points(&self, otherwise: usize) -> usize {
        self.support.unwrap_or(otherwise).min(self.n).min(self.dimension)
    }
}

/// A line of the registry.
pub struct Entry {
    /// The name users give.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// What sets it apart from the others.
    pub capabilities: Capabilities,
    build: fn(&mut Fields) -> Result<Box<dyn Method>>,
}

/// What a method does that others do not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capabilities {
    /// It keeps every row, and takes no target.
    pub keeps_all_rows: bool,
    /// Its points are no rows of the data.
    pub synthetic_points: bool,
    /// It needs the classes of the rows, and its components separate them.
    pub labelled: bool,
    /// It leaves features uncentred by default.
    pub uncentred: bool,
    /// It has solutions along a path of penalties ([`crate::Fit::path`]).
    pub path: bool,
    /// Its models know the likelihood of new rows.
    pub density: bool,
    /// It looks at columns, so that only the linear kernel will do.
    pub linear: bool,
    /// Rows may count differently, as if they were repeated.
    pub weights: bool,
}

impl Capabilities {
    /// A method that chooses rows, like most.
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
    /// What it does and which parameters it has, for help texts.
    pub fn about(&self) -> String {
        parameter::about(self.summary, Some(self.source), self.parameters)
    }

    /// Whether it has components of its own, which `refit=false` keeps.
    pub fn own_components(&self) -> bool {
        self.parameters.contains(&parameters::REFIT)
    }

    /// The kernel that it takes by default.
    pub fn kernel(&self) -> Spec {
        Spec::new(if self.capabilities.linear { "linear" } else { "rbf" })
    }

    /// Whether it works with a kernel.
    pub fn takes(&self, kernel: &Spec) -> bool {
        kernel.name == "linear" || !self.capabilities.linear
    }

    /// Whether a spec of it says itself how many points are kept, so that no target can be asked for.
    pub fn fixes_size(&self, spec: &Spec) -> bool {
        let fixed = |parameter: &Parameter| parameter.fixes_size && spec.fields.contains_key(parameter.name);
        self.capabilities.keeps_all_rows || self.parameters.iter().any(fixed)
    }

    /// All of it, for other languages.
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

/// Every method there is.
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

/// The line of the registry that `spec` names.
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

    /// The names that an entry reads from a spec.
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
    fn declared_values_are_accepted_and_others_refused() {
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
