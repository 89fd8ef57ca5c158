//! Chooses the support points of an online model on its reservoir of rows.
//!
//! ```text
//! E = K − Kᵀ_z K_zz⁻¹ K_z        the residual outside the span; row j adds the direction e_j, c_i = E_ij / √E_jj
//! ```
//!
//! The variance that row j adds to the q best components is at least that added within the span of these and e_j. There
//! the scatter is an arrow matrix with the variances λ on its diagonal, `g = Σ_i y_i c_i` as its border and `h = Σ
//! c_i²` in its corner, and the added variance is h minus its smallest eigenvalue.
//!
//! With a fixed number of points, synthetic ones first take a few steps of their method's optimiser, which are kept if
//! the mean gain over the rows exceeds its standard error.
//!
//! Points are added one by one, the best first, until the span has the target fidelity. If the maximum number of points
//! is reached, or there is no target fidelity, the best candidate replaces the least useful point as long as the mean
//! gain over the rows exceeds its standard error. A row with few similar rows is an outlier and is not added.

use std::sync::Arc;

use faer::Mat;

use crate::dense;
use crate::eigen::center_columns;
use crate::error::Result;
use crate::gram::Basis;
use crate::kernel::Kernel;
use crate::method::{Following, Method};
use crate::points::Points;
use crate::reference::{Question, Reference};
use crate::skeleton::Skeleton;
use crate::watch::{Watch, check};

/// A row is a candidate if the residual it explains is at least that of this many copies of itself.
const MIN_SIMILAR_ROWS: f64 = 2.0;
/// The fidelity on the reservoir is optimistic, because support points are among its rows. The target is therefore
/// raised by this share of its distance from 1.
const HEADROOM: f64 = 0.5;
/// Number of standard errors by which an exchange must improve the mean.
const STANDARD_ERRORS: f64 = 1.0;
/// A row is in the span if less than this share of its squared norm is outside.
const SPANNED: f64 = 1e-7;
/// Maximum share of the points exchanged at a time, plus one.
const MAX_EXCHANGED: f64 = 0.25;
/// Maximum number of candidates tried per step.
const MAX_CANDIDATES: usize = 3;
/// Bisection steps for the eigenvalue of an arrow matrix.
const BISECTIONS: usize = 40;

/// The goal that the support points have to meet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Goal {
    /// Number of components; larger than possible if all of them count.
    pub q: usize,
    pub center: bool,
    /// Maximum number of points.
    pub most: usize,
    /// Target fidelity; by default the points are as good as their number allows.
    pub fidelity: Option<f64>,
    pub seed: u64,
}

/// The points chosen.
pub(super) struct Choice {
    pub support: Points<'static>,
    /// Number of points added.
    pub joined: usize,
    /// Number of points removed.
    pub left: usize,
    /// Whether the points were moved.
    pub moved: bool,
    /// Fidelity of the span on these rows, if there is a target.
    pub fidelity: Option<f64>,
}

/// Chooses points for these rows, `among` which are the candidates.
pub(super) fn choose(
    kernel: &Arc<dyn Kernel>,
    (method, support): (&dyn Method, &Points<'static>),
    (rows, among): (&Points<'static>, Vec<usize>),
    goal: &Goal,
    watch: &dyn Watch,
) -> Result<Choice> {
    let exact = match goal.fidelity {
        None => None,
        Some(_) => {
            let question = Question { q: goal.q.min(rows.n()), center: goal.center, seed: goal.seed };
            Some(Reference::new(kernel, rows, question, watch)?.captured)
        }
    };
    let mut view = View::new(kernel, support, rows, goal)?;
    let (mut joined, mut left, mut moved) = (0, 0, false);
    let fidelity = |view: &View| exact.map(|exact| if exact > 0.0 { (view.captured() / exact).min(1.0) } else { 1.0 });
    let exchanges = 1 + (MAX_EXCHANGED * view.m() as f64) as usize;
    let aim = goal.fidelity.map(|asked| asked + HEADROOM * (1.0 - asked));
    let done = |view: &View| aim.zip(fidelity(view)).is_some_and(|(aim, found)| found >= aim);
    // With a target fidelity rows are added instead: on the reservoir, points fitted to it would seem better than they are.
    if goal.fidelity.is_none() {
        let following = Following { kernel, q: goal.q, center: goal.center, watch };
        if let Some(points) = method.moved(rows, support, &following)? {
            let next = View::new(kernel, &points, rows, goal)?;
            if next.m() == view.m() && next.is_better_than(&view) {
                (view, moved) = (next, true);
            }
        }
    }
    let candidates = Candidates::new(kernel, rows, among);
    while left < exchanges && !done(&view) {
        check(watch, "support", 0.0)?;
        let Some((next, full)) = view.next(&candidates, rows, goal)? else { break };
        (joined, left) = (joined + 1, left + usize::from(full));
        view = next;
    }
    Ok(Choice { fidelity: fidelity(&view), support: view.support(), joined, left, moved })
}

/// The rows that may become points.
struct Candidates {
    rows: Vec<usize>,
    /// Kernel values of all rows with the candidates, n × candidates.
    k: Mat<f64>,
}

impl Candidates {
    fn new(kernel: &Arc<dyn Kernel>, all: &Points<'static>, rows: Vec<usize>) -> Candidates {
        let mut k = Mat::zeros(all.n(), rows.len());
        Basis::new(kernel.clone(), all.select(&rows)).block(all, k.as_mut());
        Candidates { rows, k }
    }
}

/// The rows in the span of a support.
struct View {
    skeleton: Skeleton,
    /// Coordinates of the rows in the span, n × m.
    along: Mat<f64>,
    /// Sums of squared features of the best components for these rows.
    values: Vec<f64>,
    /// Whether another component could be added.
    room: bool,
    /// The components in the coordinates of the span, m × q.
    components: Mat<f64>,
    /// The features of the rows, n × q.
    features: Mat<f64>,
}

impl View {
    fn new(kernel: &Arc<dyn Kernel>, support: &Points<'static>, rows: &Points, goal: &Goal) -> Result<View> {
        let skeleton = Skeleton::new(kernel, support, &())?;
        let m = skeleton.m();
        let mut along = Mat::zeros(rows.n(), m);
        skeleton.basis.block(rows, along.as_mut());
        dense::divide_by_transposed(along.as_mut(), skeleton.l.as_ref());
        let mut centred = along.clone();
        if goal.center {
            center_columns(&mut centred);
        }
        let mut scatter = Mat::zeros(m, m);
        dense::add_squares(&mut scatter, centred.as_ref());
        let (mut values, vectors) = dense::eigen(scatter.as_ref())?;
        let q = goal.q.min(m);
        values.truncate(q);
        let components = vectors.subcols(0, q).to_owned();
        let features = dense::product(centred.as_ref(), components.as_ref());
        Ok(View { skeleton, along, values, room: goal.q > m, components, features })
    }

    fn m(&self) -> usize {
        self.skeleton.m()
    }

    fn support(&self) -> Points<'static> {
        self.skeleton.basis.points().clone()
    }

    fn with(&self, row: &[f64]) -> Points<'static> {
        let mut values = self.skeleton.basis.points().values().to_vec();
        values.extend(row);
        Points::finite(row.len(), values)
    }

    fn captured(&self) -> f64 {
        self.values.iter().sum()
    }

    /// Returns the view with one more point, or with one in place of the least useful point, and whether it is the
    /// latter; `None` if neither is better.
    fn next(&self, candidates: &Candidates, rows: &Points, goal: &Goal) -> Result<Option<(View, bool)>> {
        for row in self.best_of(candidates, goal) {
            let grown = View::new(self.skeleton.kernel(), &self.with(rows.row(row)), rows, goal)?;
            if grown.m() <= self.m() {
                continue;
            }
            let full = grown.m() > goal.most;
            let next =
                if full { View::new(self.skeleton.kernel(), &grown.without_the_least(), rows, goal)? } else { grown };
            if !full && goal.fidelity.is_some() || next.is_better_than(self) {
                return Ok(Some((next, full)));
            }
        }
        Ok(None)
    }

    /// Returns the rows that would add most, the best first, without outliers.
    fn best_of(&self, candidates: &Candidates, goal: &Goal) -> Vec<usize> {
        let Candidates { rows, k } = candidates;
        let n = k.nrows();
        let along = Mat::from_fn(rows.len(), self.m(), |j, i| self.along[(rows[j], i)]);
        let mut e = k.clone();
        dense::subtract_product(e.as_mut(), self.along.as_ref(), along.transpose());
        let g = dense::product(self.features.transpose(), e.as_ref());
        let mut gains = Vec::new();
        for (j, &row) in rows.iter().enumerate() {
            let own = e[(row, j)];
            let squares = e.col(j).squared_norm_l2();
            if own <= SPANNED * k[(row, j)] || squares < MIN_SIMILAR_ROWS * own * own {
                continue;
            }
            let mean = if goal.center { e.col(j).sum() / n as f64 } else { 0.0 };
            let h = (squares - n as f64 * mean * mean) / own;
            let border = g.col(j).iter().map(|g| g * g / own);
            let gain = if self.room { h } else { h - smallest_of_arrow(&self.values, border.collect(), h) };
            gains.push((row, gain));
        }
        gains.retain(|(_, gain)| *gain > 0.0);
        gains.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        gains.into_iter().take(MAX_CANDIDATES).map(|(row, _)| row).collect()
    }

    /// Returns all points except the one whose removal costs the components least: component k has the coefficient
    /// `a_ik / √(K⁻¹)_ii` along the direction removed with point i. The last point was just added and stays.
    fn without_the_least(&self) -> Points<'static> {
        let m = self.m();
        let mut inverse = Mat::<f64>::identity(m, m);
        dense::solve_lower(self.skeleton.l.as_ref(), inverse.as_mut());
        let a = dense::product(inverse.transpose(), self.components.as_ref());
        let lost = |i: usize| {
            let along = self.values.iter().enumerate().map(|(k, value)| value * a[(i, k)] * a[(i, k)]);
            along.sum::<f64>() / inverse.col(i).squared_norm_l2()
        };
        let losses: Vec<f64> = (0..m).map(lost).collect();
        let newest = self.skeleton.kept.iter().position(|kept| *kept + 1 == m);
        let least = (0..m).filter(|i| Some(*i) != newest).min_by(|i, j| losses[*i].total_cmp(&losses[*j]));
        let stay: Vec<usize> = (0..m).filter(|i| Some(*i) != least).collect();
        self.skeleton.basis.points().select(&stay)
    }

    /// Returns whether the components capture significantly more of the rows than those of `other`.
    fn is_better_than(&self, other: &View) -> bool {
        let n = self.along.nrows() as f64;
        let length = |view: &View, i: usize| view.features.row(i).squared_norm_l2();
        let gains: Vec<f64> = (0..self.along.nrows()).map(|i| length(self, i) - length(other, i)).collect();
        let mean = gains.iter().sum::<f64>() / n;
        let variance = gains.iter().map(|gain| (gain - mean) * (gain - mean)).sum::<f64>() / n;
        mean > STANDARD_ERRORS * (variance / n).sqrt()
    }
}

/// Returns the smallest eigenvalue x of an arrow matrix with these decreasing values on its diagonal, these squares of
/// its border and h in its corner, by bisection: `h − x = Σ g² / (λ − x)`, between 0 and the smaller of h and the last
/// value.
fn smallest_of_arrow(values: &[f64], border: Vec<f64>, h: f64) -> f64 {
    let (mut low, mut high) = (0.0, values.last().map_or(h, |value| value.min(h)).max(0.0));
    for _ in 0..BISECTIONS {
        let x = 0.5 * (low + high);
        let taken: f64 = values.iter().zip(&border).map(|(value, g)| g / (value - x)).sum();
        if h - x > taken { low = x } else { high = x }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel;
    use crate::method;
    use crate::toys;

    #[test]
    fn smallest_eigenvalue_of_an_arrow_matrix() {
        let (values, border, h) = (vec![5.0, 3.0, 2.0], vec![1.0, 0.25, 0.5], 1.5_f64);
        let mut arrow = Mat::zeros(4, 4);
        (0..3).for_each(|k| (arrow[(k, k)], arrow[(3, k)]) = (values[k], border[k]));
        arrow[(3, 3)] = h;
        let expected = dense::eigen(arrow.as_ref()).unwrap().0[3];
        let squares = border.iter().map(|g| g * g).collect();
        assert!((smallest_of_arrow(&values, squares, h) - expected).abs() < 1e-9);
    }

    /// A method that does not move points.
    fn still() -> Box<dyn Method> {
        method::build(&"greedy".parse().unwrap()).unwrap()
    }

    fn goal(q: usize, most: usize, fidelity: Option<f64>) -> Goal {
        Goal { q, center: true, most, fidelity, seed: 0 }
    }

    #[test]
    fn points_are_added_until_the_fidelity_is_reached_and_outliers_are_not() {
        let mut values = toys::parabola(0).values()[..600].to_vec();
        values.extend([50.0, 50.0]);
        let rows = Points::new(2, values).unwrap();
        let kernel = kernel::build(&"rbf,gamma=3".parse().unwrap(), &rows, 0).unwrap();
        let few = rows.select(&[0, 1]);
        let found =
            choose(&kernel, (still().as_ref(), &few), (&rows, (0..rows.n()).collect()), &goal(4, 40, Some(0.9)), &())
                .unwrap();
        assert!((0.9..0.99).contains(&found.fidelity.unwrap()), "{:?}", found.fidelity);
        assert!(found.left == 0 && found.support.n() == 2 + found.joined && found.joined < 15);
        assert!(found.support.rows().all(|z| z[0] < 10.0));
        // The goal is already met.
        let again = choose(
            &kernel,
            (still().as_ref(), &found.support),
            (&rows, (0..rows.n()).collect()),
            &goal(4, 40, Some(0.9)),
            &(),
        )
        .unwrap();
        assert!((again.joined, again.left) == (0, 0));
    }

    #[test]
    fn a_full_support_exchanges_points_for_better_ones() {
        let rows = toys::parabola(0).select(&(0..400).collect::<Vec<_>>());
        let kernel = kernel::build(&"rbf,gamma=3".parse().unwrap(), &rows, 0).unwrap();
        // Points of one end.
        let mut order: Vec<usize> = (0..400).collect();
        order.sort_by(|a, b| rows.row(*a)[0].total_cmp(&rows.row(*b)[0]));
        let mut support = rows.select(&order[..8]);
        let captured =
            |support: &Points<'static>| View::new(&kernel, support, &rows, &goal(3, 8, None)).unwrap().captured();
        let before = captured(&support);
        for _ in 0..10 {
            let found =
                choose(&kernel, (still().as_ref(), &support), (&rows, (0..rows.n()).collect()), &goal(3, 8, None), &())
                    .unwrap();
            assert!(found.support.n() == 8 && found.joined == found.left);
            assert!(found.joined == 0 || captured(&found.support) > captured(&support));
            support = found.support;
        }
        let best = View::new(&kernel, &rows, &rows, &goal(3, 400, None)).unwrap().captured();
        assert!(before < 0.7 * best && captured(&support) > 0.95 * best, "{before} {} {best}", captured(&support));
    }

    #[test]
    fn the_least_useful_point_is_the_one_whose_removal_costs_least() {
        let rows = toys::normal(200, 3, 0);
        let kernel = kernel::build(&"rbf".parse().unwrap(), &rows, 0).unwrap();
        let goal = goal(3, 9, None);
        let view = View::new(&kernel, &rows.select(&(0..9).collect::<Vec<_>>()), &rows, &goal).unwrap();
        let left = |gone: usize| {
            let stay: Vec<usize> = (0..9).filter(|i| *i != gone).collect();
            View::new(&kernel, &rows.select(&stay), &rows, &goal).unwrap().captured()
        };
        let best = (0..8).map(left).fold(0.0, f64::max);
        let found = View::new(&kernel, &view.without_the_least(), &rows, &goal).unwrap().captured();
        assert!(found >= best - 0.02 * (view.captured() - best) - 1e-9, "{found} {best}");
    }
}
