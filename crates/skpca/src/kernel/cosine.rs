//! `k(x, z) = x·z / (‖x‖ ‖z‖)`; a zero vector is orthogonal to all vectors, including itself.

use std::sync::Arc;

use super::{Capabilities, Entry, Form, Kernel};
use crate::spec::Spec;

pub(super) const ENTRY: Entry = Entry {
    name: "cosine",
    sklearn: None,
    summary: "x·z / ‖x‖‖z‖",
    source: None,
    parameters: &[],
    learned: &[],
    capabilities: Capabilities { finite_dimension: true, ..Capabilities::RADIAL },
    build: |_, _| Ok(Arc::new(Cosine)),
};

/// A factor that makes subnormal numbers normal.
const LARGER: f64 = 1e100;

#[derive(Debug)]
struct Cosine;

/// Returns `1 / ‖x‖`, computed on scaled values so that squares neither overflow nor underflow.
pub(crate) fn inverse_norm(x: &[f64]) -> f64 {
    let largest = x.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    if largest > 0.0 {
        1.0 / (largest * x.iter().map(|v| (v / largest) * (v / largest)).sum::<f64>().sqrt())
    } else {
        0.0
    }
}

impl Kernel for Cosine {
    fn eval(&self, x: &[f64], z: &[f64]) -> f64 {
        let (a, b) = (inverse_norm(x), inverse_norm(z));
        if a.is_infinite() || b.is_infinite() {
            // The inverse of a norm of 1e-309 overflows, but the cosine is well defined.
            let larger = |row: &[f64]| row.iter().map(|v| v * LARGER).collect::<Vec<f64>>();
            return match (a.is_infinite(), b.is_infinite()) {
                (true, true) => self.eval(&larger(x), &larger(z)),
                (true, false) => self.eval(&larger(x), z),
                _ => self.eval(x, &larger(z)),
            };
        }
        x.iter().zip(z).map(|(u, v)| (u * a) * (v * b)).sum()
    }

    fn form(&self) -> Form {
        Form::Cosine
    }

    fn spec(&self) -> Spec {
        Spec::new("cosine")
    }

    fn add_gradient(&self, z: &[f64], x: &[f64], weight: f64, out: &mut [f64]) {
        let (a, b, value) = (inverse_norm(z), inverse_norm(x), self.eval(z, x));
        out.iter_mut().zip(z.iter().zip(x)).for_each(|(out, (z, x))| *out += weight * a * (b * x - value * a * z));
    }

    fn rank(&self, d: usize) -> usize {
        d
    }
}
