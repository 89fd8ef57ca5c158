//! `k(x, z) = exp(−γ ‖x − z‖²)`

use std::sync::Arc;

use super::bandwidth::Distance;
use super::{Entry, Form, Kernel};
use crate::spec::Spec;

pub(super) const ENTRY: Entry = Entry {
    name: "rbf",
    about: "exp(−γ ‖x − z‖²); gamma = median (default), mean, scale or a number",
    labelled: false,
    build: |fields, bandwidth| {
        let gamma = bandwidth.gamma(fields, "median", Distance::Squared)?;
        Ok(Arc::new(Rbf { gamma }))
    },
};

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
