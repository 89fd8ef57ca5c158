//! `k′(x, z) = f(x) f(z) k(x, z)`, with `f(x) = b₀ + Σ_n b_n exp(−δ ‖x − v_n‖²)` (Amari & Wu 1999; Li & Gao 2011).
//!
//! Where f is large, the kernel magnifies distances in feature space. [`crate::conformal`] learns the f that separates
//! the classes of labelled rows; here it is given.

use std::any::Any;
use std::sync::Arc;

use super::bandwidth::Bandwidth;
use super::{Capabilities, Entry, Form, Kernel, entry, known};
use crate::error::{Error, Result};
use crate::parameter::{DefaultValue, Domain, Parameter, Range};
use crate::points::Points;
use crate::spec::{Fields, Spec};
use skpca_simd::Instructions;

/// Default ridge on the within-class scatter, as a share of its mean.
const REGULARISATION: f64 = 1e-3;
/// Default initial step size of the paper's iteration.
const RATE: f64 = 0.01;
/// Default number of steps of the paper's iteration.
const STEPS: usize = 200;
const NAME: &str = "conformal";

/// Returns whether a spec is a conformal kernel whose f is to be learned from labels.
pub(crate) fn is_unlearned(spec: &Spec) -> bool {
    entry(spec).is_ok_and(|entry| entry.learns(spec))
}

pub(super) const ENTRY: Entry = Entry {
    name: NAME,
    sklearn: None,
    summary: "f(x) f(z) k(x, z), where f = b₀ + Σ b_n exp(−δ ‖x − v_n‖²) separates labelled classes; k is the kernel base, \
              whose parameters stand beside it",
    source: Some("Amari & Wu 1999; Li & Gao 2011"),
    parameters: &[
        Parameter::bandwidth("delta", "median", "δ, computed like γ of a kernel of distances"),
        Parameter::choice(
            "solver",
            &["exact", "positive", "iteration"],
            "how f is computed: the best one; the best positive one; the gradient steps of the paper",
        ),
        Parameter::number(
            "regularisation",
            Range::Above(0.0),
            REGULARISATION,
            "exact, positive: ridge added to the within-class scatter, as a share of its mean",
        ),
        Parameter::number("rate", Range::Above(0.0), RATE, "iteration: the initial step size"),
        Parameter::count("rounds", 0, STEPS, "iteration: the number of steps"),
        BASE,
    ],
    learned: &[
        learned("delta", Domain::Number(Range::Above(0.0)), "δ"),
        learned("constant", Domain::Number(Range::Any), "b₀"),
        learned("weights", Domain::Reals, "b_n"),
        learned("vectors", Domain::Reals, "v_n, one after the other"),
        BASE,
    ],
    capabilities: Capabilities { bounded: false, labelled: true, ..Capabilities::RADIAL },
    build: |fields, bandwidth| {
        let missing = |name| Error::parameter(NAME, format!("no {name}"), "labels to learn f from, or f itself");
        let delta = fields.optional_number("delta")?.ok_or_else(|| missing("delta"))?;
        let constant = fields.optional_number("constant")?.unwrap_or(0.0);
        let weights = fields.optional_numbers("weights")?.ok_or_else(|| missing("weights"))?;
        let vectors = fields.optional_numbers("vectors")?.ok_or_else(|| missing("vectors"))?;
        if weights.is_empty() || vectors.is_empty() || vectors.len() % weights.len() != 0 {
            let found = format!("{} numbers for {} weights", vectors.len(), weights.len());
            return Err(Error::parameter("vectors", found, "as many coordinates for each weight"));
        }
        let vectors = Points::new(vectors.len() / weights.len(), vectors)?;
        let base = build_base(fields, bandwidth)?;
        Ok(Arc::new(Conformal { base, stretch: Stretch { constant, weights, vectors, delta } }))
    },
};

const BASE: Parameter = Parameter {
    default: DefaultValue::Word("rbf"),
    ..Parameter::optional("base", Domain::Kernel, "", "k: any kernel that is not learned")
};

const fn learned(name: &'static str, domain: Domain, help: &'static str) -> Parameter {
    Parameter::optional(name, domain, "learned from labels", help)
}

/// Builds the kernel that the field `base` names, with parameters from the other fields.
pub(crate) fn build_base(fields: &mut Fields, bandwidth: &Bandwidth) -> Result<Arc<dyn Kernel>> {
    let name = fields.value("base")?.unwrap_or_default();
    let bases = known().filter(|entry| !entry.capabilities.labelled);
    let entry = bases.clone().find(|entry| name == entry.name).ok_or_else(|| {
        let names: Vec<&str> = bases.map(|entry| entry.name).collect();
        Error::parameter("base", &name, &names.join(" or "))
    })?;
    fields.declare(entry.parameters);
    (entry.build)(fields, bandwidth)
}

/// A kernel multiplied by f of both arguments.
#[derive(Debug)]
pub struct Conformal {
    /// k
    pub base: Arc<dyn Kernel>,
    /// f
    pub stretch: Stretch,
}

impl Conformal {
    /// Returns the kernel as a conformal kernel, if it is one.
    pub fn of(kernel: &dyn Kernel) -> Option<&Conformal> {
        (kernel as &dyn Any).downcast_ref()
    }
}

/// `f(x) = b₀ + Σ_n b_n exp(−δ ‖x − v_n‖²)`
#[derive(Clone, Debug, PartialEq)]
pub struct Stretch {
    /// b₀
    pub constant: f64,
    /// b_n
    pub weights: Vec<f64>,
    /// v_n
    pub vectors: Points<'static>,
    /// δ
    pub delta: f64,
}

impl Stretch {
    /// Returns f(x).
    pub fn at(&self, x: &[f64]) -> f64 {
        self.constant + self.weights.iter().zip(self.bumps(x)).map(|(b, bump)| b * bump).sum::<f64>()
    }

    /// Iterates over `exp(−δ ‖x − v_n‖²)`.
    fn bumps<'a>(&'a self, x: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        self.vectors.rows().map(move |v| {
            let squared: f64 = x.iter().zip(v).map(|(a, b)| (a - b) * (a - b)).sum();
            (-self.delta * squared).exp()
        })
    }
}

impl Kernel for Conformal {
    fn eval(&self, x: &[f64], z: &[f64]) -> f64 {
        // This order makes the kernel symmetric to the last bit.
        self.base.eval(x, z) * (self.stretch.at(x) * self.stretch.at(z))
    }

    fn form(&self) -> Form {
        self.base.form()
    }

    fn instructions(&self) -> Instructions {
        self.base.instructions()
    }

    fn is_linear(&self) -> bool {
        false
    }

    fn bounded(&self) -> bool {
        false
    }

    fn spec(&self) -> Spec {
        let base = self.base.spec();
        let Stretch { constant, weights, vectors, delta } = &self.stretch;
        Spec { name: NAME.into(), fields: base.fields }
            .with("base", base.name)
            .with("delta", *delta)
            .with("constant", *constant)
            .with("weights", weights.clone())
            .with("vectors", vectors.values().to_vec())
    }

    fn add_gradient(&self, z: &[f64], x: &[f64], weight: f64, out: &mut [f64]) {
        let weight = weight * self.stretch.at(x);
        self.base.add_gradient(z, x, weight * self.stretch.at(z), out);
        // ∂f(z) = −2δ Σ b_n e_n (z − v_n)
        let weight = -2.0 * self.stretch.delta * weight * self.base.eval(z, x);
        let bumps = self.stretch.weights.iter().zip(self.stretch.bumps(z));
        for (v, (b, bump)) in self.stretch.vectors.rows().zip(bumps) {
            out.iter_mut().zip(z.iter().zip(v)).for_each(|(out, (z, v))| *out += weight * b * bump * (z - v));
        }
    }

    fn rank(&self, d: usize) -> usize {
        self.base.rank(d)
    }

    fn positive_semidefinite(&self) -> bool {
        self.base.positive_semidefinite()
    }

    fn width(&self) -> Option<usize> {
        Some(self.stretch.vectors.d())
    }
}
