//! Sums of kernel gradients as matrix products: derivatives of kernel values between fixed rows and moving points.
//!
//! ```text
//! out_i = Σ_j w_ji ∂k(z_i, x_j)/∂z_i
//! Gaussian   2γ ( Σ_j v_ji (x_j − x̄) − t_i (z_i − x̄) )      v = w ∘ k,   t_i = Σ_j w_ji k_ji
//! Dot        γ Σ_j v_ji x_j                                    v = w ∘ g′(γ x·z + c)
//! Cosine     (Σ_j w_ji x_j / ‖x_j‖) / ‖z_i‖ − t_i z_i / ‖z_i‖²
//! Manhattan, Pairs: pair by pair
//! ```
//!
//! [`Kernel::add_gradient`] is the definition. Rows are packed once for any number of points: as points of the kernel
//! tiles, which produce values `[panel][row][lane]` with the moving points as lanes, and as columns of the product that
//! sums the gradient. Values stay in that layout until the gradient has been summed, so that they are computed only
//! once.

use std::ops::Range;
use std::sync::Arc;

use faer::{Mat, MatRef};

use crate::blocks;
use crate::dense;
use crate::gram::{Basis, stretches};
use crate::kernel::cosine::inverse_norm;
use crate::kernel::{Conformal, Form, Kernel, Outer, pinned};
use crate::points::Points;
use crate::scatter::Scatter;
use crate::spec::Spec;
use skpca_simd::{Element, Tiles};

/// Fixed rows, packed for kernel values with moving points and for the gradients of these values.
pub(crate) struct Anchors {
    kernel: Arc<dyn Kernel>,
    points: Points<'static>,
    /// Factors s_j of the values of each row, 1 by default.
    factors: Option<Vec<f64>>,
    /// Roots of the weights of the rows, 1 by default; they are included in the factors.
    roots: Option<Vec<f64>>,
    /// Subtracted from rows and points before products of them are summed.
    centre: Vec<f64>,
    tiles: Tiles<f64>,
    blocks: Vec<Block>,
}

/// The rows of one block.
struct Block {
    basis: Basis,
    /// Groups of coordinates, each `[row][coordinate]`, rows padded with zeros.
    columns: Vec<f64>,
}

/// `s_j k(x_j, z_i)` of each block of rows, in the layout `[panel][row][lane]`: lanes are points, and padding is zero.
pub(crate) struct KernelValues {
    n: usize,
    m: usize,
    /// Number of lanes of a panel.
    width: usize,
    values: Vec<Vec<f64>>,
    /// `s_j g′`, for kernels of the inner product.
    slopes: Vec<Vec<f64>>,
}

/// Weights `w_ji` of a block of rows in the same layout.
type Lanes = Vec<f64>;

impl Anchors {
    /// Packs `points`. For a conformal kernel f(x) f(z) k(x, z) the values are f(x) k(x, z), because the span of the
    /// points z does not depend on their lengths, which f(z) changes.
    pub(crate) fn new(kernel: &Arc<dyn Kernel>, points: Points<'static>) -> Anchors {
        match Conformal::of(kernel.as_ref()) {
            Some(conformal) => {
                let factors = stretches(conformal, &points);
                Anchors::with_factors(&conformal.base, points, Some(factors))
            }
            None => Anchors::with_factors(kernel, points, None),
        }
    }

    /// Packs `points` for a kernel that is not conformal, with any factors of the rows.
    pub(crate) fn with_factors(
        kernel: &Arc<dyn Kernel>,
        points: Points<'static>,
        factors: Option<Vec<f64>>,
    ) -> Anchors {
        let tiles = f64::tiles(kernel.instructions());
        let centre = match kernel.form() {
            Form::Gaussian { .. } => points.mean(),
            _ => vec![0.0; points.d()],
        };
        let inner: Arc<dyn Kernel> = match kernel.form() {
            Form::Dot { gamma, coef0, .. } => pinned(Arc::new(Argument { gamma, coef0 }), kernel.instructions()),
            _ => kernel.clone(),
        };
        let roots = None;
        let mut anchors = Anchors { kernel: kernel.clone(), points, factors, roots, centre, tiles, blocks: Vec::new() };
        anchors.blocks = blocks::map(anchors.points.n(), |rows| Block {
            basis: Basis::new(inner.clone(), anchors.points.slice(rows.clone()).into_owned()),
            columns: anchors.columns(rows),
        });
        anchors
    }

    /// Adds weights of the rows: squares and gradients are summed as if rows were repeated.
    pub(crate) fn weighted(self, weights: Option<&[f64]>) -> Anchors {
        let Some(weights) = weights else { return self };
        let roots: Vec<f64> = weights.iter().map(|w| w.sqrt()).collect();
        let factors = roots.iter().enumerate().map(|(row, root)| root * self.factor(row)).collect();
        Anchors { roots: Some(roots), ..Anchors::with_factors(&self.kernel, self.points, Some(factors)) }
    }

    pub(crate) fn points(&self) -> &Points<'static> {
        &self.points
    }

    /// Returns the kernel without the factors.
    pub(crate) fn kernel(&self) -> &Arc<dyn Kernel> {
        &self.kernel
    }

    /// Computes the kernel matrix between all rows and some of them, including the factors of both.
    pub(crate) fn between(&self, rows: &[usize]) -> Mat<f64> {
        let mut k = self.values(&self.points.select(rows)).matrix();
        if self.factors.is_some() {
            for (column, &row) in k.col_iter_mut().zip(rows) {
                column.iter_mut().for_each(|v| *v *= self.factor(row));
            }
        }
        k
    }

    /// Returns the factor of a row.
    fn factor(&self, row: usize) -> f64 {
        self.factors.as_ref().map_or(1.0, |factors| factors[row])
    }

    /// Returns the number of rows of a block with padding.
    fn padded(&self, rows: usize) -> usize {
        rows.next_multiple_of(self.tiles.points())
    }

    /// Returns the number of coordinates in each group.
    fn groups(&self) -> Vec<usize> {
        let (d, count) = (self.points.d(), self.points.d().div_ceil(self.tiles.points()));
        (0..count).map(|g| d * (g + 1) / count - d * g / count).collect()
    }

    /// Packs the rows of which gradients are linear combinations.
    fn columns(&self, rows: Range<usize>) -> Vec<f64> {
        if is_pair_by_pair(self.kernel.form()) {
            return Vec::new();
        }
        let padded = self.padded(rows.len());
        let mut out = vec![0.0; padded * self.points.d()];
        for (r, row) in rows.enumerate() {
            let values = self.points.row(row);
            let scale = if self.kernel.form() == Form::Cosine { self.factor(row) * inverse_norm(values) } else { 1.0 };
            let mut first = 0;
            for width in self.groups() {
                let to = &mut out[first * padded + r * width..][..width];
                let from = values[first..].iter().zip(&self.centre[first..]);
                to.iter_mut().zip(from).for_each(|(to, (value, centre))| *to = scale * (value - centre));
                first += width;
            }
        }
        out
    }

    /// Computes the kernel values of `z`.
    pub(crate) fn values(&self, z: &Points) -> KernelValues {
        let form = self.kernel.form();
        let blocks = blocks::map(self.points.n(), |rows| {
            let mut values = self.block_values(&rows, z);
            let slopes = match form {
                Form::Dot { outer, .. } => {
                    let slopes = values.iter().map(|t| slope(outer, *t)).collect();
                    values.iter_mut().for_each(|t| *t = outer_value(outer, *t));
                    slopes
                }
                _ => Vec::new(),
            };
            (self.scaled(&rows, z.n(), values), self.scaled(&rows, z.n(), slopes))
        });
        let (values, slopes) = blocks.into_iter().unzip();
        KernelValues { n: self.points.n(), m: z.n(), width: self.tiles.rows(), values, slopes }
    }

    fn block_values(&self, rows: &Range<usize>, z: &Points) -> Lanes {
        let (width, padded) = (self.tiles.rows(), self.padded(rows.len()));
        let mut out = vec![0.0; z.n().div_ceil(width) * padded * width];
        self.blocks[rows.start / blocks::ROWS].basis.panels(z, |panel, first, values: &[f64]| {
            let count = values.len().min((rows.len() - first) * width);
            out[(panel * padded + first) * width..][..count].copy_from_slice(&values[..count]);
        });
        out
    }

    /// Multiplies by the factors of the rows, and sets the padding to zero.
    fn scaled(&self, rows: &Range<usize>, m: usize, mut lanes: Lanes) -> Lanes {
        let (width, padded) = (self.tiles.rows(), self.padded(rows.len()));
        for (panel, lanes) in lanes.chunks_exact_mut(padded * width).enumerate() {
            lanes[rows.len() * width..].fill(0.0);
            let inside = width.min(m - panel * width);
            if inside < width {
                lanes.chunks_exact_mut(width).for_each(|row| row[inside..].fill(0.0));
            }
            if let Some(factors) = &self.factors {
                let factors = &factors[rows.clone()];
                lanes.chunks_exact_mut(width).zip(factors).for_each(|(row, f)| row.iter_mut().for_each(|v| *v *= f));
            }
        }
        lanes
    }

    /// Computes `Σ_j w_j k_j k_jᵀ` and `Σ_j w_j k_j` over the rows.
    pub(crate) fn scatter(&self, values: &KernelValues) -> (Mat<f64>, Vec<f64>) {
        let sum = blocks::sum(
            self.points.n(),
            || Scatter::<f64>::new(values.m, self.kernel.instructions()),
            |sum, rows| {
                let roots = self.roots.as_ref().map(|roots| &roots[rows.clone()]);
                sum.add_panels(&values.values[rows.start / blocks::ROWS], rows.len(), self.padded(rows.len()), roots);
            },
            |sum, other| sum.merge(&other),
        );
        sum.into_parts()
    }

    /// Computes `K M`, for an M with as many columns as points.
    pub(crate) fn times(&self, values: &KernelValues, matrix: MatRef<f64>) -> KernelValues {
        let packed = self.packed(matrix);
        let product = |rows: Range<usize>| self.block_times(&values.values[rows.start / blocks::ROWS], &packed, rows);
        KernelValues { values: blocks::map(self.points.n(), product), slopes: Vec::new(), ..*values }
    }

    /// Packs a matrix by panels of columns, each `[row][lane]`, padded with zeros.
    fn packed(&self, matrix: MatRef<f64>) -> Vec<f64> {
        let width = self.tiles.rows();
        let [rows, columns] = [matrix.nrows(), matrix.ncols()].map(|size| size.next_multiple_of(width));
        let mut out = vec![0.0; rows * columns];
        for c in 0..matrix.ncols() {
            let to = &mut out[c / width * rows * width + c % width..];
            to.iter_mut().step_by(width).zip(matrix.col(c).iter()).for_each(|(to, from)| *to = *from);
        }
        out
    }

    /// Multiplies the values of a block by a packed matrix; the result has the same layout.
    fn block_times(&self, values: &[f64], packed: &[f64], rows: Range<usize>) -> Lanes {
        let width = self.tiles.rows();
        let size = self.padded(rows.len()) * width;
        let panels = values.len() / size;
        let matrices = packed.chunks_exact(panels * width * width);
        let mut out = vec![0.0; matrices.len() * size];
        for (out, matrix) in out.chunks_exact_mut(size).zip(matrices) {
            self.tiles.transposed_panels(panels, values, matrix, out);
        }
        out
    }

    /// Computes the gradient with weights `w = 2 (K − 1 meansᵀ) B Bᵀ`, d numbers per point.
    pub(crate) fn gradient(&self, z: &Points, values: &KernelValues, means: &[f64], b: MatRef<f64>) -> Vec<f64> {
        let width = self.tiles.rows();
        let twice = Mat::from_fn(b.nrows(), b.ncols(), |i, k| 2.0 * b[(i, k)]);
        let both = dense::product(twice.as_ref(), b.transpose());
        let offset: Vec<f64> =
            both.col_iter().map(|column| column.iter().zip(means).map(|(a, m)| a * m).sum()).collect();
        // Multiply by one factor after the other if that is less work.
        let padded = |size: usize| size.next_multiple_of(width);
        let factors = if 2 * padded(b.ncols()) < padded(b.nrows()) {
            vec![self.packed(twice.as_ref()), self.packed(b.transpose())]
        } else {
            vec![self.packed(both.as_ref())]
        };
        self.summed(z, values, |rows| {
            let first = self.block_times(&values.values[rows.start / blocks::ROWS], &factors[0], rows.clone());
            let times = |weights: Lanes, factor: &Vec<f64>| self.block_times(&weights, factor, rows.clone());
            let mut weights = factors[1..].iter().fold(first, times);
            let size = self.padded(rows.len()) * width;
            for (panel, weights) in weights.chunks_exact_mut(size).enumerate() {
                let offset = &offset[panel * width..offset.len().min((panel + 1) * width)];
                for (i, row) in weights.chunks_exact_mut(width).enumerate() {
                    let root = self.roots.as_ref().and_then(|roots| roots[rows.clone()].get(i)).unwrap_or(&1.0);
                    row.iter_mut().zip(offset).for_each(|(w, o)| *w -= root * o);
                }
            }
            self.scaled_weights(&rows, weights)
        })
    }

    /// Computes the gradient with the weights `w[(j, i)]` of row j and point i.
    pub(crate) fn gradient_with(&self, z: &Points, values: &KernelValues, w: MatRef<f64>) -> Vec<f64> {
        let width = self.tiles.rows();
        self.summed(z, values, |rows| {
            let padded = self.padded(rows.len());
            let mut weights = vec![0.0; values.m.div_ceil(width) * padded * width];
            for i in 0..values.m {
                let to = &mut weights[i / width * padded * width + i % width..];
                to.iter_mut().step_by(width).zip(rows.clone()).for_each(|(to, j)| *to = w[(j, i)]);
            }
            self.scaled_weights(&rows, weights)
        })
    }

    /// Multiplies weights by the factors of the rows if the gradient is not computed from values, which include them.
    fn scaled_weights(&self, rows: &Range<usize>, mut weights: Lanes) -> Lanes {
        if let (true, Some(factors)) = (is_pair_by_pair(self.kernel.form()), &self.factors) {
            let (width, factors) = (self.tiles.rows(), &factors[rows.clone()]);
            for panel in weights.chunks_exact_mut(self.padded(rows.len()) * width) {
                panel.chunks_exact_mut(width).zip(factors).for_each(|(row, f)| row.iter_mut().for_each(|v| *v *= f));
            }
        }
        weights
    }

    fn summed(&self, z: &Points, values: &KernelValues, weights: impl Fn(Range<usize>) -> Lanes + Sync) -> Vec<f64> {
        let (m, d) = (z.n(), z.d());
        if is_pair_by_pair(self.kernel.form()) {
            return self.pair_by_pair(z, &weights);
        }
        let padded = m.next_multiple_of(self.tiles.rows());
        let sum = blocks::sum(
            self.points.n(),
            || vec![0.0; padded * (d + 1)],
            |sum, rows| self.add_block(sum, values, &rows, weights(rows.clone())),
            |a, b| a.iter_mut().zip(b).for_each(|(a, b)| *a += b),
        );
        let out = self.finished(z, &sum);
        // Differences of very large numbers overflow here; the definition avoids that.
        if out.iter().all(|v| v.is_finite()) { out } else { self.pair_by_pair(z, &weights) }
    }

    /// Adds `Σ_j v_ji x_j`, `[panel][coordinate][lane]`, with `t_i` after the coordinates of each panel.
    fn add_block(&self, sum: &mut [f64], values: &KernelValues, rows: &Range<usize>, mut weights: Lanes) {
        let (width, d) = (self.tiles.rows(), self.points.d());
        let at = rows.start / blocks::ROWS;
        let padded = self.padded(rows.len());
        let columns = &self.blocks[at].columns;
        let panels = weights.chunks_exact_mut(padded * width).zip(values.values[at].chunks_exact(padded * width));
        for (panel, (weights, values_of)) in panels.enumerate() {
            let sum = &mut sum[panel * (d + 1) * width..][..(d + 1) * width];
            let total = &mut sum[d * width..];
            for (w, v) in weights.chunks_exact(width).zip(values_of.chunks_exact(width)) {
                total.iter_mut().zip(w.iter().zip(v)).for_each(|(t, (w, v))| *t += w * v);
            }
            let by = match self.kernel.form() {
                Form::Gaussian { .. } => values_of,
                Form::Dot { .. } => &values.slopes[at][panel * padded * width..][..padded * width],
                _ => &[],
            };
            weights.iter_mut().zip(by).for_each(|(w, by)| *w *= by);
            let mut first = 0;
            for group in self.groups() {
                let a = &columns[first * padded..][..group * padded];
                self.tiles.product_panel(padded, group, weights, a, &mut sum[first * width..][..group * width]);
                first += group;
            }
        }
    }

    /// Computes the gradient from the sums, by the table in the module documentation.
    fn finished(&self, z: &Points, sum: &[f64]) -> Vec<f64> {
        let (width, d) = (self.tiles.rows(), z.d());
        let mut out = Vec::with_capacity(z.n() * d);
        for (i, point) in z.rows().enumerate() {
            let sum = &sum[i / width * (d + 1) * width..];
            let (of, total) = (|k: usize| sum[k * width + i % width], sum[d * width + i % width]);
            let norm = inverse_norm(point);
            let value = |k: usize| match self.kernel.form() {
                Form::Gaussian { gamma } => 2.0 * gamma * (of(k) - total * (point[k] - self.centre[k])),
                Form::Dot { gamma, .. } => gamma * of(k),
                _ => norm * (of(k) - total * norm * point[k]),
            };
            out.extend((0..d).map(value));
        }
        out
    }

    /// Computes the gradient by its definition.
    fn pair_by_pair(&self, z: &Points, weights: &(impl Fn(Range<usize>) -> Lanes + Sync)) -> Vec<f64> {
        let (width, d) = (self.tiles.rows(), z.d());
        blocks::sum(
            self.points.n(),
            || vec![0.0; z.n() * d],
            |sum, rows| {
                let (weights, padded) = (weights(rows.clone()), self.padded(rows.len()));
                let factor = |j: usize| if is_pair_by_pair(self.kernel.form()) { 1.0 } else { self.factor(j) };
                for (i, out) in sum.chunks_exact_mut(d).enumerate() {
                    let of = &weights[i / width * padded * width + i % width..];
                    for (j, w) in rows.clone().zip(of.iter().step_by(width)) {
                        self.kernel.add_gradient(z.row(i), self.points.row(j), factor(j) * w, out);
                    }
                }
            },
            |a, b| a.iter_mut().zip(b).for_each(|(a, b)| *a += b),
        )
    }
}

impl KernelValues {
    /// Returns `s_j k(x_j, z_i)`, rows by points.
    pub(crate) fn matrix(&self) -> Mat<f64> {
        let width = self.width;
        let panels = self.m.div_ceil(width);
        let mut out = Mat::zeros(self.n, self.m);
        for i in 0..self.m {
            let blocks = out.col_as_slice_mut(i).chunks_mut(blocks::ROWS).zip(&self.values);
            for (column, lanes) in blocks {
                let from = lanes[i / width * (lanes.len() / panels) + i % width..].iter().step_by(width);
                column.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
            }
        }
        out
    }
}

/// Returns whether gradients are not computed from kernel values; weights then include the factors of the rows.
fn is_pair_by_pair(form: Form) -> bool {
    matches!(form, Form::Manhattan { .. } | Form::Pairs)
}

/// `γ x·z + c`, the argument of kernels of the inner product.
#[derive(Debug)]
struct Argument {
    gamma: f64,
    coef0: f64,
}

impl Kernel for Argument {
    fn eval(&self, x: &[f64], z: &[f64]) -> f64 {
        self.gamma * dense::dot(x, z) + self.coef0
    }

    fn form(&self) -> Form {
        Form::Dot { gamma: self.gamma, coef0: self.coef0, outer: Outer::Identity }
    }

    fn spec(&self) -> Spec {
        Spec::new("argument")
    }

    fn add_gradient(&self, _z: &[f64], x: &[f64], weight: f64, out: &mut [f64]) {
        out.iter_mut().zip(x).for_each(|(out, x)| *out += weight * self.gamma * x);
    }
}

fn outer_value(outer: Outer, t: f64) -> f64 {
    match outer {
        Outer::Identity => t,
        Outer::Power(p) => t.powi(p),
        Outer::Tanh => t.tanh(),
    }
}

/// `g′(t)`
fn slope(outer: Outer, t: f64) -> f64 {
    match outer {
        Outer::Identity => 1.0,
        Outer::Power(p) => f64::from(p) * t.powi(p - 1),
        Outer::Tanh => 1.0 - t.tanh() * t.tanh(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::KERNELS;
    use crate::random::{Random, Stream};
    use crate::toys;

    fn matrix(rows: usize, columns: usize, seed: u64) -> Mat<f64> {
        let mut random = Random::new(seed, Stream::Tests);
        Mat::from_fn(rows, columns, |_, _| random.normal())
    }

    /// Compares values and gradients, for both kinds of weights, with the definition of the kernel.
    #[test]
    fn sums_equal_the_definition_for_every_kernel() {
        for (n, m, d) in [(1, 1, 1), (700, 17, 3), (485, 5, 40), (30, 33, 13)] {
            let (x, z) = (toys::normal(n, d, 1), toys::normal(m, d, 2));
            for entry in KERNELS {
                let kernel = entry.example(&toys::normal(50, d, 3));
                let kernel = Conformal::of(kernel.as_ref()).map_or(&kernel, |conformal| &conformal.base);
                for factors in [None, Some((0..n).map(|j| 1.0 - 0.4 * (j % 7) as f64).collect::<Vec<_>>())] {
                    let case = format!("{} {n} {m} {d} {}", entry.name, factors.is_some());
                    let anchors = Anchors::with_factors(kernel, x.slice(0..n).into_owned(), factors.clone());
                    let values = anchors.values(&z);
                    let factor = |j: usize| factors.as_ref().map_or(1.0, |f| f[j]);
                    let k = Mat::from_fn(n, m, |j, i| factor(j) * kernel.eval(x.row(j), z.row(i)));
                    assert!((&values.matrix() - &k).norm_max() < 1e-12 * k.norm_max(), "{case}");
                    let expected = |w: &Mat<f64>| {
                        let mut out = vec![0.0; m * d];
                        for (i, out) in out.chunks_exact_mut(d).enumerate() {
                            (0..n).for_each(|j| kernel.add_gradient(z.row(i), x.row(j), factor(j) * w[(j, i)], out));
                        }
                        out
                    };
                    let near = |found: &[f64], expected: &[f64]| {
                        let size = expected.iter().fold(1e-300_f64, |a, b| a.max(b.abs()));
                        found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-10 * size)
                    };
                    let w = matrix(n, m, 4);
                    assert!(near(&anchors.gradient_with(&z, &values, w.as_ref()), &expected(&w)), "{case}");
                    let means: Vec<f64> = (0..m).map(|i| 0.1 * i as f64).collect();
                    for q in [1, m] {
                        let b = matrix(m, q, 5);
                        let centred = Mat::from_fn(n, m, |j, i| 2.0 * (k[(j, i)] - means[i]));
                        let w = &centred * &b * b.transpose();
                        let found = anchors.gradient(&z, &values, &means, b.as_ref());
                        assert!(near(&found, &expected(&w)), "{case} {q}");
                    }
                    let by = matrix(m, m, 6);
                    let times = anchors.times(&values, by.as_ref()).matrix();
                    assert!((&times - &k * &by).norm_max() < 1e-10 * k.norm_max().max(1.0) * m as f64, "{case}");
                    let (c, sums) = anchors.scatter(&values);
                    assert!((&c - k.transpose() * &k).norm_max() < 1e-11 * c.norm_max().max(1.0), "{case}");
                    assert!((0..m).all(|i| (sums[i] - k.col(i).sum()).abs() < 1e-9 * n as f64), "{case}");
                }
            }
        }
    }

    #[test]
    fn rows_near_the_largest_number_give_a_finite_gradient() {
        let x = Points::new(1, vec![1.7e308, -1.7e308, 0.0, 1.0]).unwrap();
        let z = Points::new(1, vec![0.5]).unwrap();
        let kernel: Arc<dyn Kernel> = crate::kernel::build(&"rbf,gamma=0.5".parse().unwrap(), &z, 0).unwrap();
        let anchors = Anchors::new(&kernel, x.clone());
        let values = anchors.values(&z);
        let found = anchors.gradient_with(&z, &values, Mat::from_fn(4, 1, |j, _| j as f64).as_ref());
        let mut expected = [0.0];
        (0..4).for_each(|j| kernel.add_gradient(z.row(0), x.row(j), j as f64, &mut expected));
        assert!((found[0] - expected[0]).abs() < 1e-12, "{found:?} {expected:?}");
    }
}
