//! The sum `C = Σ_r k_r k_rᵀ` over rows of kernel values, computed in register tiles.
//!
//! ```text
//! lanes  [a][r][i]   value of row r and point a·A + i     the layout of kernel tiles: points as lanes, rows as depth
//! other  [b][r][c]   value of row r and point b·B + c     the same, for the other side of the product
//! tile (a, b)        Σ_r lanes[a][r] other[b][r]ᵀ         only tiles that touch the lower triangle
//! ```

use faer::{Mat, MatRef};

use crate::gram::{Arithmetic, Basis};
use crate::points::Points;
use skpca_simd::{Instructions, Tiles};

/// Number of rows processed at a time, such that a panel of them fits in the L1 cache.
const STRIP: usize = 240;
/// Number of panels of lanes processed together, such that they fit in the L2 cache.
const TOGETHER: usize = 16;

/// An accumulator of the sum over m points: values and products in E, sums of panels in 64 bits.
pub(crate) struct Scatter<E = f64> {
    m: usize,
    tiles: Tiles<E>,
    /// Start of the tiles of each panel of the other side; the last entry is the end.
    starts: Vec<usize>,
    sums: Vec<f64>,
    totals: Vec<f64>,
    lanes: Vec<E>,
    other: Vec<E>,
}

impl<E: Arithmetic> Scatter<E> {
    pub(crate) fn new(m: usize, instructions: Instructions) -> Scatter<E> {
        let tiles = E::tiles(instructions);
        let (panels, others) = (m.div_ceil(tiles.rows()), m.div_ceil(tiles.points()));
        let mut starts = vec![0];
        for b in 0..others {
            starts.push(starts[b] + (panels - b * tiles.points() / tiles.rows()) * tiles.rows() * tiles.points());
        }
        Scatter {
            m,
            tiles,
            sums: vec![0.0; starts[others]],
            starts,
            totals: vec![0.0; panels * tiles.rows()],
            lanes: vec![E::default(); panels * tiles.rows() * STRIP],
            other: vec![E::default(); others * tiles.points() * STRIP],
        }
    }

    /// Adds the rows `k_z(x) − shift`, weighted by `weights`.
    pub(crate) fn add_kernel(&mut self, basis: &Basis, x: &Points, shift: f64, weights: Option<&[f64]>) {
        for start in (0..x.n()).step_by(STRIP) {
            let part = x.slice(start..(start + STRIP).min(x.n())).into_owned();
            let rows = part.n();
            let part = Basis::centred(basis.kernel().clone(), part, vec![shift; rows]);
            let roots = roots::<E>(weights.map(|weights| &weights[start..start + rows]));
            part.panels(basis.points(), |panel, first, values: &[E]| {
                let count = values.len().min((rows - first) * self.tiles.rows());
                let to = (panel * rows + first) * self.tiles.rows();
                let lanes = &mut self.lanes[to..to + count];
                lanes.copy_from_slice(&values[..count]);
                if weights.is_some() {
                    multiply(lanes, self.tiles.rows(), &roots[first..]);
                }
                self.copy(panel, rows);
            });
            self.add_lanes(rows, &roots);
        }
    }

    /// Adds the rows of `k`.
    pub(crate) fn add_rows(&mut self, k: MatRef<f64>) {
        self.add_weighted_rows(k, None);
    }

    /// Adds the rows of `k`, weighted by `weights`.
    pub(crate) fn add_weighted_rows(&mut self, k: MatRef<f64>, weights: Option<&[f64]>) {
        let width = self.tiles.rows();
        for start in (0..k.nrows()).step_by(STRIP) {
            let part = k.subrows(start, STRIP.min(k.nrows() - start));
            let rows = part.nrows();
            for j in 0..self.m {
                let to = &mut self.lanes[j / width * rows * width + j % width..];
                to.iter_mut().step_by(width).zip(part.col(j).iter()).for_each(|(to, v)| *to = E::from_f64(*v));
            }
            let roots = roots::<E>(weights.map(|weights| &weights[start..start + rows]));
            for a in 0..self.m.div_ceil(width) {
                if weights.is_some() {
                    multiply(&mut self.lanes[a * rows * width..][..rows * width], width, &roots);
                }
                self.copy(a, rows);
            }
            self.add_lanes(rows, &roots);
        }
    }

    /// Adds the first `rows` rows of values `[panel][row][lane]`, with `padded` rows per panel. Values of weighted rows
    /// must have been multiplied by the `roots` of their weights.
    pub(crate) fn add_panels(&mut self, values: &[E], rows: usize, padded: usize, roots: Option<&[f64]>) {
        let height = self.tiles.rows();
        for start in (0..rows).step_by(STRIP) {
            let count = STRIP.min(rows - start);
            for (a, panel) in values.chunks_exact(padded * height).enumerate() {
                let from = &panel[start * height..(start + count) * height];
                self.lanes[a * count * height..][..count * height].copy_from_slice(from);
                self.copy(a, count);
            }
            let mut of = [E::from_f64(1.0); STRIP];
            of.iter_mut()
                .zip(roots.map_or(&[][..], |roots| &roots[start..]))
                .for_each(|(to, root)| *to = E::from_f64(*root));
            self.add_lanes(count, &of);
        }
    }

    /// Adds the contents of `lanes`: rows times the roots of their weights.
    fn add_lanes(&mut self, rows: usize, roots: &[E; STRIP]) {
        let (width, height) = (self.tiles.points(), self.tiles.rows());
        let panels = self.m.div_ceil(height);
        let mut part = vec![E::default(); width * height];
        for first in (0..panels).step_by(TOGETHER) {
            let last = (first + TOGETHER).min(panels);
            for b in 0..self.m.div_ceil(width) {
                let lowest = b * width / height;
                let other = &self.other[b * rows * width..][..rows * width];
                for a in first.max(lowest)..last {
                    let lanes = &self.lanes[a * rows * height..][..rows * height];
                    let tile = &mut self.sums[self.starts[b] + (a - lowest) * width * height..][..width * height];
                    E::add_product(&self.tiles, width, lanes, other, &mut part, tile);
                }
            }
        }
        for (a, totals) in self.totals.chunks_exact_mut(height).enumerate() {
            let lanes = &self.lanes[a * rows * height..][..rows * height];
            E::add_product(&self.tiles, 1, lanes, &roots[..rows], &mut part, totals);
        }
    }

    /// Copies panel `a` of the lanes to the other side, while it is in the L1 cache.
    fn copy(&mut self, a: usize, rows: usize) {
        let (width, height) = (self.tiles.points(), self.tiles.rows());
        let lanes = &self.lanes[a * rows * height..][..rows * height];
        let mut j = a * height;
        while j < ((a + 1) * height).min(self.m) {
            let (lane, point) = (j % height, j % width);
            // Number of lanes that are contiguous on the other side too; tiles have even sizes.
            let side_by_side = (width - point).min(height - lane).min(self.m - j);
            let other = &mut self.other[j / width * rows * width..][..rows * width];
            let strips = other.chunks_exact_mut(width).zip(lanes.chunks_exact(height));
            let strips = strips.map(|(to, from)| (&mut to[point..], &from[lane..]));
            match side_by_side {
                12 => strips.for_each(|(to, from)| first::<E, 12>(to, from)),
                8 => strips.for_each(|(to, from)| first::<E, 8>(to, from)),
                6 => strips.for_each(|(to, from)| first::<E, 6>(to, from)),
                4 => strips.for_each(|(to, from)| first::<E, 4>(to, from)),
                2 => strips.for_each(|(to, from)| first::<E, 2>(to, from)),
                count => strips.for_each(|(to, from)| to[..count].copy_from_slice(&from[..count])),
            }
            j += side_by_side;
        }
    }

    /// Adds another sum over the same points.
    pub(crate) fn merge(&mut self, other: &Scatter<E>) {
        self.sums.iter_mut().zip(&other.sums).for_each(|(a, b)| *a += b);
        self.totals.iter_mut().zip(&other.totals).for_each(|(a, b)| *a += b);
    }

    /// Sets the sum to this lower triangle, column by column, and these totals.
    pub(crate) fn set(&mut self, triangle: &[f64], totals: &[f64]) {
        let pairs = (0..self.m).flat_map(|j| (j..self.m).map(move |i| (i, j)));
        for ((i, j), value) in pairs.zip(triangle) {
            let place = self.place(i, j);
            self.sums[place] = *value;
        }
        self.totals[..self.m].copy_from_slice(totals);
    }

    /// Returns the index of the sum for points i ≥ j.
    fn place(&self, i: usize, j: usize) -> usize {
        let (width, height) = (self.tiles.points(), self.tiles.rows());
        let (a, b) = (i / height, j / width);
        self.starts[b] + (a - b * width / height) * width * height + j % width * height + i % height
    }

    /// Returns the full matrix `C`, and `Σ_r k_r`.
    pub(crate) fn into_parts(self) -> (Mat<f64>, Vec<f64>) {
        let c = Mat::from_fn(self.m, self.m, |i, j| self.sums[self.place(i.max(j), i.min(j))]);
        (c, self.totals[..self.m].to_vec())
    }
}

/// Returns the roots of the weights of a strip of rows, 1 without weights.
fn roots<E: Arithmetic>(weights: Option<&[f64]>) -> [E; STRIP] {
    let mut roots = [E::from_f64(1.0); STRIP];
    roots.iter_mut().zip(weights.unwrap_or_default()).for_each(|(root, weight)| *root = E::from_f64(weight.sqrt()));
    roots
}

/// Multiplies each row of `width` lanes by its root.
fn multiply<E: Arithmetic>(lanes: &mut [E], width: usize, roots: &[E]) {
    for (lanes, root) in lanes.chunks_exact_mut(width).zip(roots) {
        lanes.iter_mut().for_each(|v| *v = E::from_f64(v.to_f64() * root.to_f64()));
    }
}

/// Copies the first N values; N is known at compile time.
fn first<E: Copy, const N: usize>(to: &mut [E], from: &[E]) {
    let (Some(to), Some(from)) = (to.first_chunk_mut::<N>(), from.first_chunk::<N>()) else { return };
    *to = *from;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel;
    use crate::random::{Random, Stream};

    #[test]
    fn the_sum_equals_its_definition_from_kernels_and_from_rows() {
        check::<f64>(1e-12);
        check::<f32>(1e-6);
    }

    fn check<E: Arithmetic>(near: f64) {
        for (n, m, d) in [(1, 1, 1), (250, 7, 3), (500, 30, 2), (130, 101, 200)] {
            let mut random = Random::new(7, Stream::Tests);
            let x = Points::new(d, (0..n * d).map(|_| random.normal()).collect::<Vec<_>>()).unwrap();
            let z = Points::new(d, (0..m * d).map(|_| random.normal()).collect::<Vec<_>>()).unwrap();
            let kernel = kernel::build(&"rbf,gamma=0.3".parse().unwrap(), &z, 0).unwrap();
            for shift in [0.0, 0.25] {
                let k = Mat::from_fn(n, m, |r, i| kernel.eval(x.row(r), z.row(i)) - shift);
                let (mut by_kernel, mut by_rows) =
                    (Scatter::<E>::new(m, kernel.instructions()), Scatter::<E>::new(m, kernel.instructions()));
                by_kernel.add_kernel(&Basis::new(kernel.clone(), z.clone()), &x, shift, None);
                by_rows.add_rows(k.as_ref());
                for (c, totals) in [by_kernel.into_parts(), by_rows.into_parts()] {
                    for i in 0..m {
                        let total = (0..n).map(|r| k[(r, i)]).sum::<f64>();
                        assert!((totals[i] - total).abs() < near * n as f64, "{n} {m} {i}");
                        for j in 0..m {
                            let sum = (0..n).map(|r| k[(r, i)] * k[(r, j)]).sum::<f64>();
                            assert!((c[(i, j)] - sum).abs() < near * n as f64, "{n} {m} {i} {j}: {} {sum}", c[(i, j)]);
                        }
                    }
                }
            }
        }
    }
}
