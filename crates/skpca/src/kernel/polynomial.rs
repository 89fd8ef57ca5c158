//! `k(x, z) = (γ x·z + c)^p`, `c ≥ 0` so that it is positive semi-definite.

use std::sync::Arc;

use super::bandwidth::Distance;
use super::{Entry, Form, Kernel, Outer};
use crate::dense::dot;
use crate::error::Error;
use crate::spec::Spec;

pub(super) const ENTRY: Entry = Entry {
    name: "polynomial",
    about: "(γ x·z + coef0)^degree; gamma = scale (default), median, mean or a number, degree = 3, coef0 = 1",
    labelled: false,
    build: |fields, bandwidth| {
        let gamma = bandwidth.gamma(fields, "scale", Distance::Squared)?;
        let degree = fields.number("degree", 3.0)?;
        if degree.fract() != 0.0 || !(1.0..=64.0).contains(&degree) {
            return Err(Error::parameter("degree", degree, "a whole number from 1 to 64"));
        }
        let coef0 = fields.number("coef0", 1.0)?;
        if coef0 < 0.0 {
            return Err(Error::parameter("coef0", coef0, "a number not below zero"));
        }
        Ok(Arc::new(Polynomial { gamma, degree: degree as i32, coef0 }))
    },
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

    /// Monomials of d variables up to the degree.
    fn rank(&self, d: usize) -> usize {
        (1..=self.degree as usize).fold(1_usize, |count, k| count.saturating_mul(d + k) / k)
    }
}
