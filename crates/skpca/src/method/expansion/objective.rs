//! W, the variance captured by the best components in the span of some points, and its gradient.

use std::cell::Cell;
use std::sync::Arc;

use faer::Mat;

use super::super::Task;
use super::super::plane::Plane;
use crate::dense;
use crate::eigen::{Accuracy, top};
use crate::error::Result;
use crate::gradient::{Anchors, KernelValues};
use crate::gram::stretches;
use crate::kernel::{Conformal, Form, Kernel};
use crate::kernel_matrix::diagonal;
use crate::points::Points;
use crate::rows::{Part, Rows};
use crate::skeleton::{LOSS, condition};

/// Relative rounding error of W for points that are far apart.
const ROUNDING: f64 = 1e-15;

/// W and its gradient over some rows.
pub(super) struct Objective {
    pub(super) anchors: Anchors,
    pub(super) q: usize,
    pub(super) center: bool,
    /// `Σ w k(x, x)`
    pub(super) trace: f64,
    /// Weights of the rows.
    pub(super) counts: Option<Vec<f64>>,
    /// Sum of the weights.
    pub(super) weight: f64,
    /// Mean absolute deviation of each column: the unit of steps along it. It is zero for a constant column, in which
    /// points keep their values.
    pub(super) units: Vec<f64>,
    /// Lowest and highest value of the points in each column: unbounded kernels would move them to infinity.
    pub(super) ranges: Vec<(f64, f64)>,
    /// Number of evaluations of W.
    pub(super) evaluations: Cell<usize>,
    /// Upper bound of W, if known; a larger value shows that the kernel is not positive semi-definite there.
    pub(super) ceiling: f64,
}

/// W at some points, and what its gradient is computed from.
#[derive(Clone)]
pub(super) struct At {
    pub(super) z: Points<'static>,
    /// W
    pub(super) captured: f64,
    /// λ
    pub(super) variances: Vec<f64>,
    /// b, m × q
    pub(super) b: Mat<f64>,
    /// `μ_i`; zero if not centred.
    pub(super) means: Vec<f64>,
    /// The Cholesky factor of K_zz.
    pub(super) l: Mat<f64>,
    /// How far points are from linear dependence: the smallest share of a point's squared length outside the span of
    /// the previous points.
    pub(super) apart: f64,
    pub(super) values: Arc<(KernelValues, Anchors, KernelValues)>,
}

impl At {
    /// Returns W less its rounding error, which grows as points approach linear dependence.
    pub(super) fn surely_captured(&self) -> f64 {
        self.captured * (1.0 - ROUNDING / self.apart).max(0.0)
    }

    /// Estimates the loss of W without each point: the variance of the components along the direction that only this
    /// point adds.
    pub(super) fn losses(&self) -> Vec<f64> {
        let m = self.z.n();
        let mut inverse = Mat::<f64>::identity(m, m);
        dense::solve_lower(self.l.as_ref(), inverse.as_mut());
        let along =
            |i: usize| self.variances.iter().enumerate().map(|(k, value)| value * self.b[(i, k)].powi(2)).sum::<f64>();
        (0..m).map(|i| along(i) / inverse.col(i).squared_norm_l2()).collect()
    }

    /// Estimates how many points can be removed without W falling far below the goal.
    pub(super) fn removable(&self, goal: f64) -> usize {
        let mut losses = self.losses();
        losses.sort_by(f64::total_cmp);
        let mut spare = self.surely_captured() - goal;
        losses
            .iter()
            .take_while(|loss| {
                spare -= **loss;
                spare > 0.0
            })
            .count()
            + 1
    }
}

impl Objective {
    pub(super) fn new(kernel: &Arc<dyn Kernel>, x: Part, q: usize, center: bool) -> Result<Objective> {
        let (n, Part { points: x, weights: counts }) = (x.weight(), x);
        let count = |row: usize| counts.as_ref().map_or(1.0, |counts| counts[row]);
        let mean = x.weighted_mean(counts.as_deref());
        let mut units = vec![0.0; x.d()];
        let mut ranges = vec![(f64::MAX, f64::MIN); x.d()];
        for (i, row) in x.rows().enumerate() {
            for (k, value) in row.iter().enumerate() {
                units[k] += count(i) * (value - mean[k]).abs() / n;
                ranges[k] = (ranges[k].0.min(*value), ranges[k].1.max(*value));
            }
        }
        for (unit, (low, high)) in units.iter_mut().zip(&mut ranges) {
            // The mean of equal values may differ from them in the last bit.
            *unit = if *low < *high { *unit } else { 0.0 };
            (*low, *high) = (*low - (*high - *low), *high + (*high - *low));
        }
        let trace = diagonal(kernel, &x)?.iter().enumerate().map(|(i, k)| count(i) * k).sum();
        Ok(Objective {
            anchors: Anchors::new(kernel, x).weighted(counts.as_deref()),
            counts,
            weight: n,
            q,
            center,
            trace,
            units,
            ranges,
            evaluations: Cell::new(0),
            ceiling: f64::INFINITY,
        })
    }

    /// Creates the objective for points that move in a plane: the distance of a row from it is a factor of its kernel
    /// values.
    pub(super) fn in_plane(task: &Task, x: &Part, plane: &Plane) -> Result<Objective> {
        let Part { points: x, weights } = x;
        let part = |points: &Points<'static>| Part { points: points.clone(), weights: weights.clone() };
        let whole = Objective::new(task.kernel, part(x), task.q, task.center)?;
        let (inside, heights) = plane.inside(x);
        let Form::Gaussian { gamma } = task.kernel.form() else { return Ok(whole) };
        let (base, f) = match Conformal::of(task.kernel.as_ref()) {
            Some(conformal) => (&conformal.base, stretches(conformal, x)),
            None => (task.kernel, vec![1.0; x.n()]),
        };
        let factors = f.iter().zip(&heights).map(|(f, height)| f * (-gamma * height).exp()).collect();
        // All axes have the same unit.
        let unit =
            whole.units.iter().sum::<f64>() / whole.units.iter().filter(|unit| **unit > 0.0).count().max(1) as f64;
        let ranges = Objective::new(base, part(&inside), task.q, task.center)?.ranges;
        let units = vec![unit; inside.d()];
        let anchors = Anchors::with_factors(base, inside, Some(factors)).weighted(weights.as_deref());
        Ok(Objective { anchors, units, ranges, ..whole })
    }

    pub(super) fn rows(&self) -> &Points<'static> {
        self.anchors.points()
    }

    /// Returns the rows and their weights.
    pub(super) fn counted(&self) -> (&Points<'static>, Option<&[f64]>) {
        (self.rows(), self.counts.as_deref())
    }

    /// Evaluates W at Z; `None` if points are closer to linear dependence than `apart`.
    pub(super) fn at(&self, z: Points<'static>, apart: f64) -> Option<At> {
        let own = Anchors::new(self.anchors.kernel(), z.clone());
        let inner = own.values(&z);
        let k = inner.matrix();
        let l = dense::cholesky(k.as_ref())?;
        let left = (0..z.n()).map(|i| l[(i, i)] * l[(i, i)] / k[(i, i)]).fold(1.0, f64::min);
        if left.is_nan() || left < apart {
            return None;
        }
        self.evaluations.set(self.evaluations.get() + 1);
        let values = self.anchors.values(&z);
        let (c, mean) = self.scatter(&values, &l);
        let pairs = top(&c, self.q, Accuracy { trace: self.trace, ..Accuracy::default() }, 0, &()).ok()?;
        let captured = pairs.values.iter().sum::<f64>();
        // Points so far from all rows that they capture nothing have no components and no gradient.
        if pairs.values.is_empty() || !captured.is_finite() || captured > self.ceiling {
            return None;
        }
        let mut b = pairs.vectors;
        dense::solve_lower_transposed(l.as_ref(), b.as_mut());
        let means = dense::product(l.as_ref(), mean.as_ref()).col_as_slice(0).to_vec();
        Some(At {
            z,
            captured,
            variances: pairs.values,
            b,
            means,
            l,
            apart: left,
            values: Arc::new((values, own, inner)),
        })
    }

    /// Computes `L⁻¹ C L⁻ᵀ` and `L⁻¹ μ`.
    fn scatter(&self, values: &KernelValues, l: &Mat<f64>) -> (Mat<f64>, Mat<f64>) {
        let (m, n) = (l.nrows(), self.weight);
        let (mut c, mut mean);
        if f64::EPSILON * condition(l.as_ref()) > LOSS {
            // Whiten each row before summing: the sum of unwhitened rows would lose too many digits.
            let mut inverse = Mat::<f64>::identity(m, m);
            dense::solve_lower(l.as_ref(), inverse.as_mut());
            let (sum, sums) = self.anchors.scatter(&self.anchors.times(values, inverse.transpose()));
            (c, mean) = (sum, Mat::from_fn(m, 1, |i, _| sums[i] / n));
        } else {
            let (sum, sums) = self.anchors.scatter(values);
            (c, mean) = (sum, Mat::from_fn(m, 1, |i, _| sums[i] / n));
            dense::whiten(l.as_ref(), &mut c);
            dense::solve_lower(l.as_ref(), mean.as_mut());
        }
        if !self.center {
            mean.fill(0.0);
        }
        let c = Mat::from_fn(m, m, |i, j| c[(i.max(j), i.min(j))] - n * mean[(i, 0)] * mean[(j, 0)]);
        (c, mean)
    }

    /// Computes ∂W/∂Z in the order of Z's values, in units of the columns.
    pub(super) fn gradient(&self, at: &At) -> Vec<f64> {
        let (values, own, inner) = &*at.values;
        let m = at.z.n();
        let scaled = Mat::from_fn(m, at.b.ncols(), |i, k| -2.0 * at.variances[k] * at.b[(i, k)]);
        let weights = dense::product(scaled.as_ref(), at.b.transpose());
        let mut gradient = self.anchors.gradient(&at.z, values, &at.means, at.b.as_ref());
        let among = own.gradient_with(&at.z, inner, weights.as_ref());
        let units = self.units.iter().cycle();
        gradient.iter_mut().zip(among.iter().zip(units)).for_each(|(g, (among, unit))| *g = unit * (*g + among));
        gradient
    }
}
