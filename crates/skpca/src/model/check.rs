//! Checks of a model read from a file: shapes, ranges of numbers, and that its components are orthonormal.

use std::collections::HashSet;

use faer::Mat;

use super::{Model, Parts, with_beta};
use crate::dense;
use crate::error::{Error, Result};
use crate::gram::Precision;
use crate::report::ABOVE_ONE;

/// Maximum number of multiply-adds for the check of the components.
const MAX_WORK: usize = 4_000_000_000;
/// Tolerance for norms, inner products and β.
const TOLERANCE: f64 = 1e-6;
/// Additional tolerance for rounding, as a share of the terms that cancel.
const ROUNDING: f64 = 1e-12;

impl Model {
    /// Checks that the components have unit norm, the frame makes them orthonormal and β is the mean projected onto the
    /// support. Models for which that would take too long are not checked.
    pub(crate) fn check_components(&self) -> Result<()> {
        if self.m() * self.m() * (self.parts.support.d() + self.q()) > MAX_WORK {
            return Ok(());
        }
        let check = ComponentCheck::new(self);
        if !check.unit_norms() {
            return Err(Error::file("a component does not have unit norm"));
        }
        if !check.orthonormal() {
            return Err(Error::file("the components are not orthonormal"));
        }
        if check.mean_is_projected() { Ok(()) } else { Err(Error::file("the mean is not projected on the support")) }
    }
}

/// The quantities that the components are checked by.
struct ComponentCheck<'a> {
    parts: &'a Parts,
    /// `K_zz [A β]`
    products: Mat<f64>,
    /// `Aᵀ K_zz A`
    gram: Mat<f64>,
    /// The largest of `k(z, z)` and `|μ|`, the scale of rounding errors.
    largest: f64,
    /// The sums of `|a|` and of `|β|`, by which they are multiplied.
    sums: Vec<f64>,
}

impl<'a> ComponentCheck<'a> {
    fn new(model: &'a Model) -> ComponentCheck<'a> {
        let (parts, q, m) = (&model.parts, model.q(), model.m());
        let a = with_beta(&parts.coefficients, &parts.beta);
        let centred = model.basis.product(&parts.support, &model.features_and_mean(), Precision::Double);
        // The products are of k_z(x) − μ.
        let shifts: Vec<f64> = a.col_iter().map(|a| a.iter().zip(&parts.mu).map(|(a, mu)| a * mu).sum()).collect();
        let products = Mat::from_fn(m, q + 1, |i, k| centred[i * (q + 1) + k] + shifts[k]);
        let own = parts.support.rows().map(|z| model.kernel().eval(z, z));
        let largest = own.chain(parts.mu.iter().map(|mu| mu.abs())).fold(f64::MIN_POSITIVE, f64::max);
        let gram = dense::product(parts.coefficients.transpose(), products.as_ref().subcols(0, q));
        let sums = a.col_iter().map(|a| a.iter().map(|v| v.abs()).sum()).collect();
        ComponentCheck { parts, products, gram, largest, sums }
    }

    fn unit_norms(&self) -> bool {
        (0..self.gram.nrows()).all(|k| near(self.gram[(k, k)], 1.0, self.rounding(k)))
    }

    fn orthonormal(&self) -> bool {
        let framed;
        let (gram, spread) = match &self.parts.frame {
            None => (&self.gram, 1.0),
            Some(e) => {
                framed = dense::product(e.transpose(), dense::product(self.gram.as_ref(), e.as_ref()).as_ref());
                (&framed, e.squared_norm_l2())
            }
        };
        let worst = (0..self.gram.nrows()).map(|k| self.rounding(k)).fold(0.0, f64::max);
        let sound = |k: usize, l: usize| near(gram[(k, l)], f64::from(k == l), spread * worst);
        (0..gram.nrows()).all(|k| (0..=k).all(|l| sound(k, l)))
    }

    /// Checks K β = μ relative to the largest kernel value.
    fn mean_is_projected(&self) -> bool {
        let (q, mu) = (self.gram.nrows(), &self.parts.mu);
        let rounding = ROUNDING * self.sums[q];
        (0..mu.len()).all(|i| near(self.products[(i, q)] / self.largest, mu[i] / self.largest, rounding))
    }

    /// Returns the rounding error of the squared norm of component k.
    fn rounding(&self, k: usize) -> f64 {
        ROUNDING * self.sums[k] * self.sums[k] * self.largest
    }
}

fn near(found: f64, expected: f64, rounding: f64) -> bool {
    (found - expected).abs() <= TOLERANCE + rounding
}

impl Parts {
    /// Checks the parts for consistency.
    pub(crate) fn check(&self) -> Result<()> {
        self.check_shapes()?;
        self.check_finite()?;
        self.check_density()?;
        self.check_variances()?;
        self.check_names()?;
        let shrinks = self.noise > 0.0 && self.noise.is_finite() && self.frame.is_none();
        if self.noise != 0.0 && !shrinks {
            return Err(Error::file("its noise is not a positive variance, or its components are correlated"));
        }
        self.scores.check()
    }

    fn check_shapes(&self) -> Result<()> {
        let (m, q, d) = (self.support.n(), self.coefficients.ncols(), self.support.d());
        if q == 0 || self.n == 0 {
            return Err(Error::file("no components, or no rows"));
        }
        shape("coefficients", self.coefficients.nrows(), m)?;
        shape("mu", self.mu.len(), m)?;
        shape("beta", self.beta.len(), m)?;
        shape("variances", self.variances.len(), q)?;
        shape("shift", self.columns.shift.len(), d)?;
        shape("scale", self.columns.scale.len(), d)?;
        if let Some(ranges) = &self.columns.ranges {
            shape("low", ranges.low.len(), d)?;
            shape("high", ranges.high.len(), d)?;
            if ranges.low.iter().zip(&ranges.high).any(|(low, high)| low > high) {
                return Err(Error::file("a column's range is empty"));
            }
        }
        if let Some(rows) = &self.rows {
            shape("rows", rows.len(), m)?;
            if rows.windows(2).any(|w| w[0] >= w[1]) || rows.last().is_some_and(|&last| last >= self.n) {
                return Err(Error::file("rows are not increasing numbers below n"));
            }
        }
        if let Some(frame) = &self.frame {
            shape("frame", frame.nrows(), q)?;
            if frame.ncols() == 0 || frame.ncols() > q {
                return Err(Error::file(format!("frame has {} columns for {q} components", frame.ncols())));
            }
        }
        if let Some(density) = &self.density {
            shape("axes", density.axes.nrows(), m)?;
            density.weights.iter().try_for_each(|weights| shape("weights", weights.len(), m))?;
        }
        Ok(())
    }

    fn check_finite(&self) -> Result<()> {
        let matrices = [Some(&self.coefficients), self.frame.as_ref(), self.density.as_ref().map(|d| &d.axes)];
        let columns = matrices.into_iter().flatten().flat_map(|matrix| matrix.col_iter().flat_map(|c| c.iter()));
        let vectors = [&self.mu, &self.beta, &self.variances, &self.columns.shift, &self.columns.scale];
        let scalars = [self.total_variance, self.captured, self.mean_lost, self.fidelity];
        let ranges = self.columns.ranges.iter().flat_map(|ranges| ranges.low.iter().chain(&ranges.high));
        if columns.chain(vectors.into_iter().flatten()).chain(&scalars).chain(ranges).any(|v| !v.is_finite()) {
            return Err(Error::file("a value is not finite"));
        }
        if self.columns.scale.iter().any(|s| *s <= 0.0) {
            return Err(Error::file("a column's scale is not positive"));
        }
        Ok(())
    }

    fn check_density(&self) -> Result<()> {
        if let Some(density) = &self.density {
            let sound = density.noise > 0.0 && density.noise.is_finite() && density.log_determinant.is_finite();
            if !sound || density.dimension > self.n {
                return Err(Error::file("the density has no positive noise, or more dimensions than rows"));
            }
            if density.weights.iter().flatten().any(|w| !(*w > 0.0 && w.is_finite())) {
                return Err(Error::file("a weight of the density is not positive"));
            }
        }
        Ok(())
    }

    fn check_variances(&self) -> Result<()> {
        let is_share = |v: f64| (0.0..=1.0 + ABOVE_ONE).contains(&v);
        if self.mean_lost < 0.0 || self.variances.iter().any(|v| *v < 0.0) {
            return Err(Error::file("a variance is negative"));
        }
        if !is_share(self.fidelity) {
            return Err(Error::file(format!("its fidelity is {}, expected 0 to 1", self.fidelity)));
        }
        let (captured, total) = (self.captured, self.total_variance);
        if total <= 0.0 || !is_share(captured / total) {
            return Err(Error::file(format!("it captures {captured} of a total variance of {total}")));
        }
        let sum: f64 = self.variances.iter().sum();
        if self.frame.is_none() && (sum - captured).abs() > ABOVE_ONE * captured {
            return Err(Error::file("the variances do not add up to the captured variance"));
        }
        Ok(())
    }

    fn check_names(&self) -> Result<()> {
        if let Some(names) = &self.columns.names {
            shape("names", names.len(), self.support.d())?;
        }
        if let Some(intake) = &self.columns.intake {
            intake.check(self.support.d(), self.columns.names.as_ref())?;
        }
        let mut seen = HashSet::new();
        let mut names = self.columns.names.iter().flatten().chain(&self.columns.ignored);
        match names.find(|name| !seen.insert(*name)) {
            Some(name) => Err(Error::file(format!("two columns have the name {name:?}"))),
            None => Ok(()),
        }
    }
}

fn shape(what: &str, found: usize, expected: usize) -> Result<()> {
    if found == expected {
        Ok(())
    } else {
        Err(Error::file(format!("{what} has {found} entries, expected {expected}")))
    }
}
