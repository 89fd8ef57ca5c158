//! `k(x, z) = (γ x·z + c)^p`, with `c ≥ 0` so that it is positive semi-definite.

use std::sync::Arc;

use super::bandwidth::Distance;
use super::parameters::{GAMMA_OF_PRODUCTS, coef0};
use super::{Capabilities, Entry, Form, Kernel, Outer};
use crate::dense::dot;
use crate::parameter::{Domain, Parameter, Range};
use crate::spec::Spec;

pub(super) const ENTRY: Entry = Entry {
    name: "polynomial",
    sklearn: Some("poly"),
    summary: "(γ x·z + coef0)^degree",
    source: None,
    parameters: &[GAMMA_OF_PRODUCTS, DEGREE, coef0(Range::From(0.0))],
    learned: &[],
    capabilities: Capabilities { bounded: false, finite_dimension: true, ..Capabilities::RADIAL },
    build: |fields, bandwidth| {
        let gamma = bandwidth.of("gamma", fields, Distance::Squared)?;
        let degree = fields.count("degree")? as i32;
        Ok(Arc::new(Polynomial { gamma, degree, coef0: fields.number("coef0")? }))
    },
};

const DEGREE: Parameter = Parameter {
    domain: Domain::Count { least: 1, most: 64 },
    ..Parameter::count("degree", 1, 3, "the power").as_sklearn("degree")
};

#[derive(Debug)]
struct Polynomial {
    gamma: f64,
    degree: i32,
    coef0: f64,
}

impl Kernel for Polynomial {
    fn eval(&self, x: &[f64], z: &[f64]) -> f64 {
        (self.gamma * dot(x, z) + self.coef0).powi(self.degree)
    }

    fn form(&self) -> Form {
        Form::Dot { gamma: self.gamma, coef0: self.coef0, outer: Outer::Power(self.degree) }
    }

    fn spec(&self) -> Spec {
        Spec::new("polynomial").with("gamma", self.gamma).with("degree", self.degree).with("coef0", self.coef0)
    }

    fn add_gradient(&self, z: &[f64], x: &[f64], weight: f64, out: &mut [f64]) {
        let inner = self.gamma * dot(z, x) + self.coef0;
        let step = weight * self.gamma * f64::from(self.degree) * inner.powi(self.degree - 1);
        out.iter_mut().zip(x).for_each(|(out, x)| *out += step * x);
    }

    /// Returns the number of monomials of d variables up to the degree.
    fn rank(&self, d: usize) -> usize {
        (1..=self.degree as usize).fold(1_usize, |count, k| count.saturating_mul(d + k) / k)
    }
}
