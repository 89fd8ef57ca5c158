//! `k(x, z) = exp(−γ ‖x − z‖²)`, with γ = 1 / 2σ² where σ is given

use std::sync::Arc;

use super::bandwidth::Distance;
use super::parameters::GAMMA;
use super::{Capabilities, Entry, Form, Kernel};
use crate::error::Error;
use crate::parameter::{Domain, Parameter, Range};
use crate::spec::Spec;

pub(super) const ENTRY: Entry = Entry {
    name: "rbf",
    sklearn: None,
    summary: "exp(−γ ‖x − z‖²)",
    source: None,
    parameters: &[GAMMA, SIGMA],
    learned: &[],
    capabilities: Capabilities { gaussian: true, ..Capabilities::RADIAL },
    build: |fields, bandwidth| {
        let gamma_is_given = fields.is_given("gamma");
        let gamma = match fields.optional_number("sigma")? {
            None => bandwidth.of("gamma", fields, Distance::Squared)?,
            Some(sigma) if gamma_is_given => {
                return Err(Error::parameter("sigma", sigma, "either gamma or sigma, not both"));
            }
            Some(sigma) => 0.5 / (sigma * sigma),
        };
        Ok(Arc::new(Rbf { gamma }))
    },
};

/// Squares of these are neither 0 nor infinite.
const SIGMA: Parameter = Parameter::optional(
    "sigma",
    Domain::Number(Range::Between(1e-150, 1e150)),
    "gamma decides",
    "σ, instead of γ = 1 / 2σ²",
);

#[derive(Debug)]
pub(crate) struct Rbf {
    pub gamma: f64,
}

impl Kernel for Rbf {
    fn eval(&self, x: &[f64], z: &[f64]) -> f64 {
        let squared: f64 = x.iter().zip(z).map(|(a, b)| (a - b) * (a - b)).sum();
        (-self.gamma * squared).exp()
    }

    fn form(&self) -> Form {
        Form::Gaussian { gamma: self.gamma }
    }

    fn spec(&self) -> Spec {
        Spec::new("rbf").with("gamma", self.gamma)
    }

    fn add_gradient(&self, z: &[f64], x: &[f64], weight: f64, out: &mut [f64]) {
        let step = -2.0 * self.gamma * weight * self.eval(z, x);
        out.iter_mut().zip(z.iter().zip(x)).for_each(|(out, (z, x))| *out += step * (z - x));
    }
}
