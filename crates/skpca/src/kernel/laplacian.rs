//! `k(x, z) = exp(−γ ‖x − z‖₁)`

use std::sync::Arc;

use super::bandwidth::Distance;
use super::parameters::GAMMA;
use super::{Capabilities, Entry, Form, Kernel};
use crate::spec::Spec;

pub(super) const ENTRY: Entry = Entry {
    name: "laplacian",
    sklearn: None,
    summary: "exp(−γ ‖x − z‖₁)",
    source: None,
    parameters: &[GAMMA],
    learned: &[],
    capabilities: Capabilities::RADIAL,
    build: |fields, bandwidth| Ok(Arc::new(Laplacian { gamma: bandwidth.of("gamma", fields, Distance::Manhattan)? })),
};

#[derive(Debug)]
struct Laplacian {
    gamma: f64,
}

impl Kernel for Laplacian {
    fn eval(&self, x: &[f64], z: &[f64]) -> f64 {
        let distance: f64 = x.iter().zip(z).map(|(a, b)| (a - b).abs()).sum();
        (-self.gamma * distance).exp()
    }

    fn form(&self) -> Form {
        Form::Manhattan { gamma: self.gamma }
    }

    fn spec(&self) -> Spec {
        Spec::new("laplacian").with("gamma", self.gamma)
    }

    fn add_gradient(&self, z: &[f64], x: &[f64], weight: f64, out: &mut [f64]) {
        // At a kink, where a coordinate is equal, the derivative is taken as zero.
        let step = -self.gamma * weight * self.eval(z, x);
        for (out, (z, x)) in out.iter_mut().zip(z.iter().zip(x)) {
            *out += if z > x {
                step
            } else if z < x {
                -step
            } else {
                0.0
            };
        }
    }
}
