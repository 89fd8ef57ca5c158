//! `k(x, z) = tanh(γ x·z + c)`. Not positive semi-definite in general; fits check this.

use std::sync::Arc;

use super::bandwidth::Distance;
use super::parameters::{GAMMA_OF_PRODUCTS, coef0};
use super::{Capabilities, Entry, Form, Kernel, Outer};
use crate::dense::dot;
use crate::parameter::Range;
use crate::spec::Spec;

pub(super) const ENTRY: Entry = Entry {
    name: "sigmoid",
    sklearn: None,
    summary: "tanh(γ x·z + coef0): not always valid",
    source: None,
    parameters: &[GAMMA_OF_PRODUCTS, coef0(Range::Any)],
    learned: &[],
    capabilities: Capabilities { bounded: false, positive_semidefinite: false, ..Capabilities::RADIAL },
    build: |fields, bandwidth| {
        let gamma = bandwidth.of("gamma", fields, Distance::Squared)?;
        Ok(Arc::new(Sigmoid { gamma, coef0: fields.number("coef0")? }))
    },
};

#[derive(Debug)]
struct Sigmoid {
    gamma: f64,
    coef0: f64,
}

impl Kernel for Sigmoid {
    /// Returns NaN if the inner product overflows: tanh would hide that, and its sign may be wrong.
    fn eval(&self, x: &[f64], z: &[f64]) -> f64 {
        let inner = self.gamma * dot(x, z) + self.coef0;
        if inner.is_finite() { inner.tanh() } else { f64::NAN }
    }

    fn form(&self) -> Form {
        Form::Dot { gamma: self.gamma, coef0: self.coef0, outer: Outer::Tanh }
    }

    fn positive_semidefinite(&self) -> bool {
        false
    }

    fn spec(&self) -> Spec {
        Spec::new("sigmoid").with("gamma", self.gamma).with("coef0", self.coef0)
    }

    fn add_gradient(&self, z: &[f64], x: &[f64], weight: f64, out: &mut [f64]) {
        let value = self.eval(z, x);
        let step = weight * self.gamma * (1.0 - value * value);
        out.iter_mut().zip(x).for_each(|(out, x)| *out += step * x);
    }
}
