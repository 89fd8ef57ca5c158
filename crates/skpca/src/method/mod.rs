//! Methods: one file each, and a registry that is a plain list.
//!
//! A method sees the kernel and the points, and nothing else; it returns a support, components over it and a
//! report. To add one: one file, one line in [`METHODS`]; command line, bindings, file format and the law tests
//! then know it.

mod active;
mod alternation;
mod discriminant;
mod elastic_net;
mod energy;
mod exact;
mod expansion;
mod greedy;
mod kmeans;
mod l1;
mod l21;
mod landmarks;
mod likelihood;
mod parameters;
mod plane;
mod polar;
mod reach;
mod regression;
mod search;
mod shared;
mod space;
mod threshold;
mod twins;
mod weights;

use std::cell::OnceCell;
use std::fmt::Debug;
use std::rc::Rc;
use std::sync::Arc;

use faer::{Mat, MatRef};
use serde_json::{Value, json};

use crate::dense;
use crate::eigen::{Accuracy, Pairs, above_rounding, top};
use crate::error::{Error, Result};
use crate::factor::{Factor, Stop, gram};
use crate::kernel::Kernel;
use crate::labels::Labels;
use crate::model::Density;
use crate::parameter::{self, Parameter};
use crate::points::Points;
use crate::reference::{self, Reference};
use crate::spec::{Fields, Spec};
use crate::spectrum::{Expansion, Span};
use crate::watch::Watch;

pub use regression::Step;
pub(crate) use regression::steps;
pub(crate) use shared::Shared;
use shared::{Memo, Principal, Scattered};

/// What the user asks of a method: how small, or how good.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// This many support points.
    Support(usize),
    /// The smallest model that captures this share of what exact kernel PCA captures.
    Fidelity(f64),
}

/// Components where nothing is said.
pub const COMPONENTS: usize = 10;
/// Fidelity where nothing is said.
pub const FIDELITY: f64 = 0.95;

/// Rank of the factor where nothing is said: all of it up to this many rows …
const EXACT_ROWS: usize = 1000;
/// … 500 above, and less where the factor would take more numbers than this.
const RANK: usize = 500;
const LEAST_RANK: usize = 200;
const FACTOR: usize = 200_000_000;

/// The rank that the user asked for, or a good one for n rows.
fn usual_rank(asked: Option<usize>, n: usize, target: Option<Target>) -> usize {
    let enough = match target {
        Some(Target::Support(m)) => m.saturating_mul(2),
        _ => 0,
    };
    match asked {
        Some(rank) => rank.clamp(1, n),
        None if n <= EXACT_ROWS => n,
        None => RANK.min((FACTOR / n).max(LEAST_RANK)).max(enough).min(n),
    }
}

/// A factor ends where no more than this share of the trace is left.
const ROUNDING: f64 = 1e-13;
/// One that leaves no more than this knows what exact kernel PCA captures.
const EXACT: f64 = 1e-11;
/// Why there is nothing to find.
pub(crate) const NO_VARIANCE: &str = "the kernel does not vary over these rows";

/// A way to choose components over few points.
pub(crate) trait Method: Debug + Send + Sync {
    /// May set the task's `q` first, where the user has not.
    fn fit(&self, task: &mut Task) -> Result<Solution>;

    /// Numbers of points, up to `most`, and the fidelity of each along the method's path, if it has one.
    fn fidelities(&self, _task: &Task, _most: usize) -> Result<Option<Vec<(usize, f64)>>> {
        Ok(None)
    }

    /// Bytes that a fit needs beside the data, for the target given.
    fn memory(&self, size: &Size) -> usize;
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
        Reference::memory(self.n.min(reference::ROWS), self.d, self.q, self.dimension, self.linear)
    }

    /// Bytes of a method with a factor, which are `own` numbers, and the reference: for a fidelity both are there at the same time. In few
    /// dimensions the factor knows what exact kernel PCA captures.
    fn beside_factor(&self, own: usize) -> usize {
        let reference = if self.dimension <= LEAST_RANK { 0 } else { self.reference() };
        8 * if self.support.is_some() { own.max(reference) } else { own + reference }
    }

    /// The points that may be kept, where a target says so: no more than feature space has dimensions.
    fn points(&self, otherwise: usize) -> usize {
        self.support.unwrap_or(otherwise).min(self.n).min(self.dimension)
    }
}

/// All that a method may see.
pub(crate) struct Task<'a> {
    pub kernel: &'a Arc<dyn Kernel>,
    pub points: &'a Points<'a>,
    /// Classes of the rows, where they are known.
    pub labels: Option<&'a Labels>,
    /// Components to find …
    pub q: usize,
    /// … and whether the user said so.
    pub asked: bool,
    pub target: Option<Target>,
    pub center: bool,
    pub seed: u64,
    pub watch: &'a dyn Watch,
    pub reference: OnceCell<Rc<Reference>>,
    /// What fits before this one have made of the same rows.
    pub shared: Option<&'a Shared<'a>>,
}

impl Task<'_> {
    /// The same task over other points, such as some of the rows.
    pub(crate) fn on<'b>(&'b self, points: &'b Points<'b>) -> Task<'b> {
        Task { points, labels: None, reference: OnceCell::new(), shared: None, ..*self }
    }

    /// What to aim at: the usual fidelity where nothing is said.
    pub(crate) fn aim(&self) -> Target {
        self.target.unwrap_or(Target::Fidelity(FIDELITY))
    }

    /// The number of points asked for; 0 where it is not that.
    fn support(&self) -> usize {
        if let Some(Target::Support(m)) = self.target { m } else { 0 }
    }

    /// Refuses a target where the method was given its `own` parameter.
    pub(crate) fn refuse_target(&self, own: &str) -> Result<()> {
        let (name, value) = match self.target {
            None => return Ok(()),
            Some(Target::Support(m)) => ("support", m as f64),
            Some(Target::Fidelity(f)) => ("fidelity", f),
        };
        Err(Error::parameter(name, value, &format!("a target or {own}, not both")))
    }

    /// What was made before, or `make` makes.
    fn made<K: PartialEq, V>(
        &self,
        memo: impl for<'s> Fn(&'s Shared) -> &'s Memo<K, V>,
        key: K,
        make: impl FnOnce() -> Result<V>,
    ) -> Result<Rc<V>> {
        match self.shared {
            Some(shared) => shared.made(memo(shared), key, make),
            None => make().map(Rc::new),
        }
    }

    /// The factor with at most `rank` columns.
    fn factor(&self, rank: usize) -> Result<Rc<Factor>> {
        let rank = rank.min(self.kernel.rank(self.points.d()));
        let stop = Stop { rank, residual: ROUNDING };
        let make = || Factor::pivoted(self.kernel, self.points, stop, self.seed, self.watch);
        self.made(|shared| &shared.factors, rank, make)
    }

    /// The factor with at most `rank` columns and the scatter of its rows.
    pub(crate) fn scattered(&self, rank: usize) -> Result<Rc<Scattered>> {
        let make = || {
            let factor = self.factor(rank)?;
            let (t, mean) = factor.scatter(self.center, self.watch)?;
            Ok(Scattered { factor, t, mean })
        };
        self.made(|shared| &shared.scattered, (rank, self.center), make)
    }

    /// The leading eigenpairs of the factor's `t`.
    pub(crate) fn leading(&self, factor: &Factor, t: &Mat<f64>) -> Result<Pairs> {
        let pairs = top(t, self.q, Accuracy { trace: factor.trace, ..Accuracy::default() }, self.seed, self.watch)?;
        self.note_exact(factor, &pairs.values)?;
        Ok(pairs)
    }

    /// The factor in coordinates where its scatter is diagonal.
    pub(crate) fn principal(&self, rank: usize) -> Result<Rc<Principal>> {
        let make = || {
            let Scattered { factor, t, .. } = Rc::unwrap_or_clone(self.scattered(rank)?);
            let (mut values, e) = dense::eigen(t.as_ref())?;
            values.iter_mut().for_each(|v| *v = v.max(0.0));
            Ok(Principal { factor: Rc::unwrap_or_clone(factor).rotated(e.as_ref()), values })
        };
        let principal = self.made(|shared| &shared.principal, (rank, self.center), make)?;
        let Principal { factor, values } = &*principal;
        let leading = above_rounding(values, factor.trace).min(self.q);
        self.note_exact(factor, &values[..leading])?;
        Ok(principal)
    }

    /// A factor that leaves nothing knows what exact kernel PCA captures: its leading eigenvalues, which are noted.
    fn note_exact(&self, factor: &Factor, leading: &[f64]) -> Result<()> {
        match factor.residual_trace <= EXACT * factor.trace {
            true => self.note_captured(leading),
            false if leading.is_empty() => Err(Error::NoVariance { why: NO_VARIANCE.into() }),
            false => Ok(()),
        }
    }

    /// Notes what exact kernel PCA captures: its leading eigenvalues.
    fn note_captured(&self, leading: &[f64]) -> Result<()> {
        if leading.is_empty() {
            return Err(Error::NoVariance { why: NO_VARIANCE.into() });
        }
        let captured = leading.iter().sum();
        let reference = Reference::known(self.points.n(), captured, self.center, self.seed);
        let _ = self.reference.set(Rc::new(reference));
        Ok(())
    }

    /// The best components in the span of `rows`, or a method's `own` over them.
    pub(crate) fn expansion(&self, rows: &[usize], own: Option<MatRef<f64>>) -> Result<Expansion> {
        let support = self.points.select(rows);
        match own {
            None => self.expansion_of(&support),
            Some(own) => self.span(&support)?.given(own, || gram(self.kernel, &support)),
        }
    }

    /// The best components in the span of any points.
    pub(crate) fn expansion_of(&self, support: &Points<'static>) -> Result<Expansion> {
        self.span(support)?.best(self.q, self.watch)
    }

    /// The span of any points.
    pub(crate) fn span(&self, support: &Points<'static>) -> Result<Span> {
        Span::new(self.kernel, self.points, support, self.center, self.watch)
    }

    /// The share of exact kernel PCA's captured variance that components over `rows` capture.
    pub(crate) fn fidelity(&self, rows: &[usize], expansion: &Expansion) -> Result<f64> {
        match expansion.kept.len() == self.points.n() && expansion.frame.is_none() {
            true => Ok(1.0),
            false => {
                let support = || self.points.select(rows);
                Ok(self.reference()?.fidelity(self.kernel, self.points, support, expansion))
            }
        }
    }

    /// The same of components over any points.
    pub(crate) fn fidelity_of(&self, support: &Points<'static>, expansion: &Expansion) -> Result<f64> {
        Ok(self.reference()?.fidelity(self.kernel, self.points, || support.clone(), expansion))
    }

    /// What exact kernel PCA captures, computed on first use.
    pub(crate) fn reference(&self) -> Result<&Reference> {
        if self.reference.get().is_none() {
            let make = || Reference::new(self.kernel, self.points, self.q, self.center, self.seed, self.watch);
            let _ = self.reference.set(self.made(|shared| &shared.references, (self.q, self.center), make)?);
        }
        Ok(self.reference.get().expect("just set"))
    }
}

/// Where the support comes from.
pub(crate) enum Support {
    /// Rows of the training data, increasing.
    Rows(Vec<usize>),
    /// Points of the method's own.
    Points(Points<'static>),
}

impl Support {
    pub(crate) fn len(&self) -> usize {
        match self {
            Support::Rows(rows) => rows.len(),
            Support::Points(points) => points.n(),
        }
    }

    /// The points themselves; `all` are those that rows are counted in.
    pub(crate) fn points(&self, all: &Points) -> Points<'static> {
        match self {
            Support::Rows(rows) => all.select(rows),
            Support::Points(points) => points.clone(),
        }
    }
}

/// A method's answer.
pub(crate) struct Solution {
    /// The method's name with the parameters it used, those it found included.
    pub method: Spec,
    pub support: Support,
    /// Over those of the support that are independent.
    pub expansion: Expansion,
    /// What the likelihood of new rows needs, where the method has one.
    pub density: Option<Density>,
    /// The fidelity, where it is not that of the components.
    pub fidelity: Option<f64>,
    /// Why there may be fewer points than asked for.
    pub fewer: &'static str,
    pub report: Report,
}

/// How a fit went.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The method's own objective, where it has one.
    pub objective: Option<f64>,
    /// Points the method chose; those that others express are not kept.
    pub chosen: usize,
    /// Where the fidelity lies, where it was estimated on a sample of the rows: with three standard errors to both sides.
    pub fidelity_interval: Option<[f64; 2]>,
    /// Distance to the optimum: a duality gap, or the residual of the eigenpairs, relative.
    pub gap: Option<f64>,
    /// Iterations.
    pub rounds: usize,
    /// Whether the method reached its tolerance.
    pub converged: bool,
    /// Share of `Σ k(x, x)` outside the span of the support.
    pub residual_trace: f64,
    /// What the user should know: fewer components than asked for, dependent points dropped.
    pub notes: Vec<String>,
}

/// Points that others express are left out.
pub(crate) const DEPENDENT: &str = "the others depend on them";

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

    /// Whether a spec of it says itself how many points are kept, so that no target can be asked for.
    pub fn fixes_size(&self, spec: &Spec) -> bool {
        let fixed = |parameter: &Parameter| parameter.fixes_size && spec.fields.contains_key(parameter.name);
        self.capabilities.keeps_all_rows || self.parameters.iter().any(fixed)
    }

    /// All of it, for other languages.
    pub fn to_json(&self) -> Value {
        let Capabilities { keeps_all_rows, synthetic_points, labelled, uncentred, path, density } = self.capabilities;
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
