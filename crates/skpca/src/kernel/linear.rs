//! `k(x, z) = x·z`: kernel PCA is then ordinary PCA.

use std::sync::Arc;

use super::{Capabilities, Entry, Form, Kernel, Outer};
use crate::dense::dot;
use crate::spec::Spec;

pub(super) const ENTRY: Entry = Entry {
    name: "linear",
    sklearn: None,
    summary: "x·z: ordinary PCA",
    source: None,
    parameters: &[],
    learned: &[],
    capabilities: Capabilities { bounded: false, finite_dimension: true, linear: true, ..Capabilities::RADIAL },
    build: |_, _| Ok(Arc::new(Linear)),
};

#[derive(Debug)]
struct Linear;

impl Kernel for Linear {
    fn eval(&self, x: &[f64], z: &[f64]) -> f64 {
        dot(x, z)
    }

    fn form(&self) -> Form {
        Form::Dot { gamma: 1.0, coef0: 0.0, outer: Outer::Identity }
    }

    fn spec(&self) -> Spec {
        Spec::new("linear")
    }

    fn add_gradient(&self, _: &[f64], x: &[f64], weight: f64, out: &mut [f64]) {
        out.iter_mut().zip(x).for_each(|(out, x)| *out += weight * x);
    }

    fn rank(&self, d: usize) -> usize {
        d
    }
}
