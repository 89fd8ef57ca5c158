//! Newton's method for the weights of the active points; all matrices are m × m.
//!
//! ```text
//! B = I + √W K √W / σ²,   log|C/σ²| = log|B|,   S_ij = f_iᵀC⁻¹f_j,   Q_ij = f_iᵀC⁻¹TC⁻¹f_j
//! ```

use faer::Mat;

use crate::bounded::bounded;
use crate::dense;
use crate::error::{Error, Result};

/// Maximum number of Newton steps for one active set.
const STEPS: usize = 100;
/// Maximum number of halvings in a line search.
const HALVINGS: usize = 30;
/// Longest step in θ.
const LONGEST: f64 = 3.0;
/// Expected increases of L below this many rounding errors cannot be measured.
const UNMEASURABLE: f64 = 10.0;
/// Number of such steps that are taken even if ρ does not come closer to 1.
const POLISHES: usize = 5;

/// S and Q.
type PointMoments = (Mat<f64>, Mat<f64>);

pub(super) fn unsolvable() -> Error {
    Error::Numerical { why: "the weights of the likelihood cannot be computed: is the noise too small?".into() }
}

/// Returns the Cholesky factor of `B = I + √W K √W / σ²`.
pub(super) fn root(k: &Mat<f64>, roots: &[f64], noise: f64) -> Option<Mat<f64>> {
    let one = |i: usize, j: usize| if i == j { 1.0 } else { 0.0 };
    let b = |i: usize, j: usize| roots[i] * k[(i, j)] * roots[j] / noise + one(i, j);
    dense::cholesky(Mat::from_fn(roots.len(), roots.len(), b).as_ref())
}

/// The problem on the active points.
pub(super) struct Active {
    /// Kernel values of the active points, `F_A F_Aᵀ`.
    pub k: Mat<f64>,
    /// `F_A T F_Aᵀ`
    pub g: Mat<f64>,
    pub n: f64,
    pub noise: f64,
    /// tr T
    pub trace: f64,
}

impl Active {
    fn of(&self, points: &[usize]) -> Active {
        let part = |a: &Mat<f64>| Mat::from_fn(points.len(), points.len(), |i, j| a[(points[i], points[j])]);
        Active { k: part(&self.k), g: part(&self.g), ..*self }
    }

    /// L
    fn likelihood(&self, weights: &[f64]) -> Result<f64> {
        let m = weights.len();
        let roots: Vec<f64> = weights.iter().map(|w| w.sqrt()).collect();
        let l = root(&self.k, &roots, self.noise).ok_or_else(unsolvable)?;
        let mut x = Mat::from_fn(m, m, |i, j| roots[i] * self.g[(i, j)] * roots[j]);
        dense::whiten(l.as_ref(), &mut x);
        let determinant = 2.0 * (0..m).map(|i| l[(i, i)].ln()).sum::<f64>();
        Ok(-0.5 * (self.n * determinant + (self.trace - dense::trace(&x) / self.noise) / self.noise))
    }

    /// Computes `S_ij` and `Q_ij`. `σ²C⁻¹f_a = Σ_b E_ba f_b`, where column a of E is that of `√W B⁻¹ √W⁻¹`, or of
    /// `I − √W B⁻¹ √W K/σ²` if the weight is zero.
    fn moments(&self, weights: &[f64]) -> Result<PointMoments> {
        let m = weights.len();
        let roots: Vec<f64> = weights.iter().map(|w| w.sqrt()).collect();
        let l = root(&self.k, &roots, self.noise).ok_or_else(unsolvable)?;
        let mut e = Mat::from_fn(m, m, |i, a| {
            if weights[a] > 0.0 {
                (if i == a { 1.0 } else { 0.0 }) / roots[a]
            } else {
                -roots[i] * self.k[(i, a)] / self.noise
            }
        });
        dense::solve_lower(l.as_ref(), e.as_mut());
        dense::solve_lower_transposed(l.as_ref(), e.as_mut());
        for a in 0..m {
            e.col_mut(a).iter_mut().zip(&roots).for_each(|(e, root)| *e *= root);
            if weights[a] == 0.0 {
                e[(a, a)] += 1.0;
            }
        }
        let s = dense::product(self.k.as_ref(), e.as_ref());
        let q = dense::product(e.transpose(), dense::product(self.g.as_ref(), e.as_ref()).as_ref());
        let noise = self.noise;
        let symmetric = |a: &Mat<f64>, unit: f64| Mat::from_fn(m, m, |i, j| 0.5 * (a[(i, j)] + a[(j, i)]) / unit);
        Ok((symmetric(&s, noise), symmetric(&q, noise * noise)))
    }

    /// Takes Newton steps until ρ is within `tolerance` of 1, or rounding hides any further progress.
    pub(super) fn maximise(&self, start: &[f64], tolerance: f64, rounding: f64) -> Result<(Vec<f64>, f64)> {
        let mut alive: Vec<usize> = (0..start.len()).collect();
        let mut weights = start.to_vec();
        let mut problem = self.of(&alive);
        let mut likelihood = problem.likelihood(&weights)?;
        let mut polished = 0;
        for _ in 0..STEPS {
            let mut moments = problem.moments(&weights)?;
            // Points without a weight that would not gain one are dropped: they would make the Hessian look indefinite.
            let wanted = |i: &usize| weights[*i] > 0.0 || self.ratio(&moments, *i) > 1.0;
            let live: Vec<usize> = (0..weights.len()).filter(wanted).collect();
            if live.len() < weights.len() {
                alive = live.iter().map(|&i| alive[i]).collect();
                weights = live.iter().map(|&i| weights[i]).collect();
                problem = self.of(&alive);
                moments = problem.moments(&weights)?;
            }
            let off = self.violation(&moments, &weights);
            if off <= tolerance {
                break;
            }
            let step = self.step(&moments, &weights);
            let mut next = problem.climbed(&step, &weights, likelihood, rounding)?;
            if next.is_none() && step.slope <= UNMEASURABLE * rounding {
                // The increase of L is below its rounding error, but ρ may still improve.
                next =
                    problem.polished(&step, &weights, likelihood - rounding, (polished >= POLISHES).then_some(off))?;
                polished += 1;
            }
            let Some((moved, value)) = next else { break };
            (weights, likelihood) = (moved, value.max(likelihood));
            if let Some(next) = problem.without_needless(&weights, likelihood)? {
                (weights, likelihood) = next;
            }
        }
        let mut all = vec![0.0; start.len()];
        alive.iter().zip(&weights).for_each(|(&i, w)| all[i] = *w);
        Ok((all, likelihood))
    }

    /// ρ
    fn ratio(&self, (s, q): &PointMoments, i: usize) -> f64 {
        q[(i, i)] / (self.n * s[(i, i)])
    }

    /// Returns the largest |ρ − 1|, or ρ − 1 for points without a weight.
    fn violation(&self, moments: &PointMoments, weights: &[f64]) -> f64 {
        let off = |i: usize| {
            if weights[i] > 0.0 {
                (self.ratio(moments, i) - 1.0).abs()
            } else {
                (self.ratio(moments, i) - 1.0).max(0.0)
            }
        };
        (0..weights.len()).map(off).fold(0.0, f64::max)
    }

    /// Backtracking line search: takes the longest of the steps 1, ½, ¼, … that increases L sufficiently; `None` if
    /// none does.
    fn climbed(
        &self,
        step: &NewtonStep,
        weights: &[f64],
        likelihood: f64,
        rounding: f64,
    ) -> Result<Option<(Vec<f64>, f64)>> {
        for halvings in 0..HALVINGS {
            let t = 0.5_f64.powi(halvings as i32);
            let next = step.moved(weights, t);
            let value = self.likelihood(&next)?;
            if value >= likelihood + 1e-4 * t * step.slope {
                return Ok(Some((next, value)));
            }
            if step.slope <= UNMEASURABLE * rounding {
                break;
            }
        }
        Ok(None)
    }

    /// Takes the full step if L does not fall below `least` and, with `off`, ρ comes closer to 1 than that.
    fn polished(
        &self,
        step: &NewtonStep,
        weights: &[f64],
        least: f64,
        off: Option<f64>,
    ) -> Result<Option<(Vec<f64>, f64)>> {
        let next = step.moved(weights, 1.0);
        let value = self.likelihood(&next)?;
        let nearer = match off {
            Some(off) => self.violation(&self.moments(&next)?, &next) < off,
            None => true,
        };
        Ok((value >= least && nearer).then_some((next, value)))
    }

    /// Computes the Newton step in θ.
    fn step(&self, (s, q): &PointMoments, weights: &[f64]) -> NewtonStep {
        let m = weights.len();
        let gradient: Vec<f64> = (0..m).map(|i| 0.5 * (q[(i, i)] / s[(i, i)] - self.n)).collect();
        let hessian = Mat::from_fn(m, m, |i, j| {
            let value = s[(i, j)] * (q[(i, j)] - 0.5 * self.n * s[(i, j)]) / (s[(i, i)] * s[(j, j)]);
            if i == j { value - gradient[i] } else { value }
        });
        let room: Vec<f64> = (0..m).map(|i| -(-(weights[i] * s[(i, i)]).min(1.0 - 1e-15)).ln_1p()).collect();
        let down: Vec<f64> = gradient.iter().map(|g| -g).collect();
        let mut d = bounded(&definite(hessian), &down, &room);
        let longest = d.iter().copied().fold(0.0, f64::max);
        if longest > LONGEST {
            d.iter_mut().for_each(|d| *d *= LONGEST / longest);
        }
        let slope = gradient.iter().zip(&d).map(|(g, d)| g * d).sum();
        NewtonStep { d, units: (0..m).map(|i| s[(i, i)]).collect(), slope }
    }

    /// Drops the points whose best weight, with the others fixed, is zero; `None` if there are none or L would fall.
    fn without_needless(&self, weights: &[f64], likelihood: f64) -> Result<Option<(Vec<f64>, f64)>> {
        let (s, q) = self.moments(weights)?;
        let needless = |i: usize| weights[i] > 0.0 && q[(i, i)] <= self.n * s[(i, i)] * (1.0 - weights[i] * s[(i, i)]);
        let fewer: Vec<f64> = (0..weights.len()).map(|i| if needless(i) { 0.0 } else { weights[i] }).collect();
        if fewer == weights {
            return Ok(None);
        }
        let value = self.likelihood(&fewer)?;
        Ok((value >= likelihood).then_some((fewer, value)))
    }
}

/// A step in θ.
struct NewtonStep {
    d: Vec<f64>,
    /// S of each point: θ = log(w + c) with w + c = 1/S.
    units: Vec<f64>,
    /// The first-order increase of L.
    slope: f64,
}

impl NewtonStep {
    /// Returns the weights after the share `t` of the step; none falls below zero.
    fn moved(&self, weights: &[f64], t: f64) -> Vec<f64> {
        let each = |((w, d), s): ((&f64, &f64), &f64)| {
            let rise = (t * d).exp_m1();
            if rise <= -w * s { 0.0 } else { w + rise / s }
        };
        weights.iter().zip(&self.d).zip(&self.units).map(each).collect()
    }
}

/// Returns the matrix itself if it is positive definite; otherwise, the eigenvalues of the scaled matrix are replaced
/// by their absolute values.
fn definite(a: Mat<f64>) -> Mat<f64> {
    let m = a.nrows();
    if dense::cholesky(a.as_ref()).is_some() {
        return a;
    }
    let scale: Vec<f64> = (0..m).map(|i| a[(i, i)].abs().max(f64::MIN_POSITIVE).sqrt()).collect();
    let scaled = Mat::from_fn(m, m, |i, j| a[(i, j)] / (scale[i] * scale[j]));
    let Ok((values, vectors)) = dense::eigen(scaled.as_ref()) else {
        return Mat::from_fn(m, m, |i, j| if i == j { a[(i, i)].abs() } else { 0.0 });
    };
    let stretched = Mat::from_fn(m, m, |i, k| vectors[(i, k)] * values[k].abs().max(1e-11));
    let product = dense::product(stretched.as_ref(), vectors.transpose());
    Mat::from_fn(m, m, |i, j| product[(i.max(j), i.min(j))] * scale[i] * scale[j])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::factor::{Factor, Stop};
    use crate::{kernel, toys};

    /// Compares with S and Q computed from C itself; some points have no weight.
    #[test]
    fn moments_and_likelihood_are_those_of_the_covariance() {
        let points = toys::clusters(2);
        let kernel = kernel::build(&"rbf,gamma=4".parse().unwrap(), &points, 0).unwrap();
        let factor = Factor::pivoted(&kernel, &points, Stop { rank: 40, residual: 0.0 }, 0, &()).unwrap();
        let (t, _) = factor.scatter(false, &()).unwrap();
        let (values, e) = dense::eigen(t.as_ref()).unwrap();
        let factor = factor.rotated(e.as_ref());

        let rows = [3, 11, 25, 40, 70];
        let weights = [0.4, 0.0, 0.1, 0.0, 0.7];
        let (noise, n) = (0.05, factor.n() as f64);
        let f = factor.rows_of(&rows);
        let k = dense::product(f.as_ref(), f.transpose());
        let scaled = Mat::from_fn(5, f.ncols(), |i, j| f[(i, j)] * values[j]);
        let g = dense::product(scaled.as_ref(), f.transpose());
        let inner = Active { k, g, n, noise, trace: values.iter().sum() };
        let c = Mat::from_fn(f.ncols(), f.ncols(), |a, b| {
            let sum: f64 = (0..5).map(|i| weights[i] * f[(i, a)] * f[(i, b)]).sum();
            sum + if a == b { noise } else { 0.0 }
        });
        let l = dense::cholesky(c.as_ref()).unwrap();
        let mut u = f.transpose().to_owned();
        dense::solve_lower(l.as_ref(), u.as_mut());
        dense::solve_lower_transposed(l.as_ref(), u.as_mut());
        let (s, q) = inner.moments(&weights).unwrap();
        for i in 0..5 {
            for j in 0..5 {
                let expected: f64 = (0..f.ncols()).map(|a| f[(i, a)] * u[(a, j)]).sum();
                assert!((s[(i, j)] - expected).abs() < 1e-9 * s[(i, i)].abs(), "S {i} {j}");
                let expected: f64 = (0..f.ncols()).map(|a| u[(a, i)] * values[a] * u[(a, j)]).sum();
                assert!((q[(i, j)] - expected).abs() < 1e-9 * q[(i, i)].abs(), "Q {i} {j}");
            }
        }
        let mut inverse = Mat::<f64>::identity(f.ncols(), f.ncols());
        dense::solve_lower(l.as_ref(), inverse.as_mut());
        let quadratic: f64 = (0..f.ncols()).map(|a| values[a] * inverse.col(a).squared_norm_l2()).sum();
        let determinant: f64 = (0..f.ncols()).map(|a| 2.0 * l[(a, a)].ln() - noise.ln()).sum();
        let expected = -0.5 * (n * determinant + quadratic);
        assert!((inner.likelihood(&weights).unwrap() / expected - 1.0).abs() < 1e-10);
    }
}
