//! `k(x, z) = exp(−γ ‖x − z‖²)`, with γ = 1 / 2σ² if σ is given, and γ = 1 / r² if a width r is given.

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
    parameters: &[GAMMA, SIGMA, WIDTH],
    learned: &[],
    capabilities: Capabilities { gaussian: true, ..Capabilities::RADIAL },
    build: |fields, bandwidth| {
        let gamma_is_given = fields.is_given("gamma");
        let gamma = match (fields.optional_number("sigma")?, fields.optional_number("width")?) {
            (None, None) => bandwidth.of("gamma", fields, Distance::Squared)?,
            (Some(sigma), None) if !gamma_is_given => 0.5 / (sigma * sigma),
            (None, Some(width)) if !gamma_is_given => 1.0 / (width * width),
            (Some(sigma), _) => return Err(Error::parameter("sigma", sigma, ONE_OF_THEM)),
            (_, Some(width)) => return Err(Error::parameter("width", width, ONE_OF_THEM)),
        };
        Ok(Arc::new(Rbf { gamma }))
    },
};

const ONE_OF_THEM: &str = "one of gamma, sigma and width, not several";

/// Tipping's parametrisation.
const WIDTH: Parameter = Parameter::optional(
    "width",
    Domain::Number(Range::Between(1e-150, 1e150)),
    "gamma decides",
    "r, instead of γ = 1 / r²",
);

/// The range ensures that squares neither underflow nor overflow.
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

#[cfg(test)]
mod tests {
    use crate::Points;
    use crate::kernel::build;

    #[test]
    fn gamma_sigma_and_width_agree() {
        let points = Points::new(1, vec![0.0, 1.0]).unwrap();
        let built = |text: &str| build(&text.parse().unwrap(), &points, 0);
        for (text, gamma) in [("rbf,gamma=0.125", 0.125_f64), ("rbf,sigma=2", 0.125), ("rbf,width=2", 0.25)] {
            assert_eq!(built(text).unwrap().eval(&[0.0], &[3.0]), (-9.0 * gamma).exp(), "{text}");
        }
        for text in ["rbf,gamma=1,sigma=2", "rbf,gamma=1,width=2", "rbf,sigma=1,width=2", "rbf,width=0", "rbf,sigma=-1"]
        {
            assert!(built(text).is_err(), "{text}");
        }
        let message = built("rbf,width=0").unwrap_err().to_string();
        assert_eq!(message, "width = 0.0: expected a number from 1e-150 to 1e150");
    }
}
