//! `k(x, z) = exp(−γ ‖x − z‖² / ℓ²)`: a Gaussian whose width can be changed independently of the rule for γ.

use std::sync::Arc;

use super::bandwidth::Distance;
use super::parameters::GAMMA;
use super::{Capabilities, Entry, Form, Kernel};
use crate::parameter::{Parameter, Range};
use crate::spec::Spec;

pub(super) const ENTRY: Entry = Entry {
    name: "squared-exponential",
    sklearn: None,
    summary: "exp(−γ ‖x − z‖² / length²)",
    source: None,
    parameters: &[GAMMA, Parameter::number("length", Range::Above(0.0), 1.0, "ℓ: the length scale")],
    learned: &[],
    capabilities: Capabilities { gaussian: true, ..Capabilities::RADIAL },
    build: |fields, bandwidth| {
        let gamma = bandwidth.of("gamma", fields, Distance::Squared)?;
        Ok(Arc::new(SquaredExponential { gamma, length: fields.number("length")? }))
    },
};

#[derive(Debug)]
struct SquaredExponential {
    gamma: f64,
    length: f64,
}

impl SquaredExponential {
    fn rate(&self) -> f64 {
        self.gamma / (self.length * self.length)
    }
}

impl Kernel for SquaredExponential {
    fn eval(&self, x: &[f64], z: &[f64]) -> f64 {
        let squared: f64 = x.iter().zip(z).map(|(a, b)| (a - b) * (a - b)).sum();
        (-self.rate() * squared).exp()
    }

    fn form(&self) -> Form {
        Form::Gaussian { gamma: self.rate() }
    }

    fn spec(&self) -> Spec {
        Spec::new("squared-exponential").with("gamma", self.gamma).with("length", self.length)
    }

    fn add_gradient(&self, z: &[f64], x: &[f64], weight: f64, out: &mut [f64]) {
        let step = -2.0 * self.rate() * weight * self.eval(z, x);
        out.iter_mut().zip(z.iter().zip(x)).for_each(|(out, (z, x))| *out += step * (z - x));
    }
}
