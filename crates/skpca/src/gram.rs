//! Blocks of kernel values, and the product `K(X, Z) · A` without storing `K`.
//!
//! ```text
//! Gaussian    k = 2^( x'·z' − ‖x'‖²/2 − ‖z'‖²/2 )    x' = √(2γ log₂e) (x − z̄)
//! Manhattan   k = 2^( −Σ|x'_k − z'_k| )              x' = γ log₂e (x − z̄)
//! Dot         k = g( x·z' + c )                      z' = γ z
//! Cosine      k = x'·z'                              x' = x / ‖x‖
//! Pairs       k                                      by its definition
//! ```
//!
//! The points of a basis are packed once into panels; query rows are packed block by block. Coordinates are shifted by
//! the basis mean where the kernel allows it, because the expanded square loses precision when a common offset is large
//! compared to the distances. The values of rows and points that are still too far out for that are computed by
//! [`Kernel::eval`] instead.
//!
//! The values of a query depend only on the query and the basis, not on its neighbours, block or thread.

mod pack;
mod sums;
mod symmetric;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use faer::{Mat, MatMut};
use rayon::prelude::*;

use crate::error::Result;
use crate::kernel::{Kernel, Outer};
use crate::points::{Numbers, Points};
use skpca_simd::{Element, Instructions, KernelPanel, Level, prefetch};

pub(crate) use pack::stretches;
use pack::{Chunk, Coordinates, Packed, PackedWeights, Packing, Placing, Queries, Scratch};
use sums::{AllTiles, Summing};
pub(crate) use sums::{Number, Products, each_row};
pub(crate) use symmetric::{BUNDLES, Symmetric};

/// Query rows processed at a time; a multiple of every tile's rows.
const BLOCK: usize = 64;
/// Coordinates processed at a time: a panel of that depth stays in the L1 cache.
const DEPTH: usize = 192;
/// Points processed at a time for rows of up to [`DEPTH`] coordinates; a multiple of every tile's points.
const CHUNK_SHALLOW: usize = 240;
/// Points processed at a time for rows of more coordinates.
const CHUNK_DEEP: usize = 120;

/// Maximum number of columns for which the next block of rows is prefetched: such passes are memory-bound.
const NARROW: usize = 32;

/// Passes of fewer multiply-adds than this run on the calling thread: starting threads would cost more than it saves.
const SMALL: usize = 1 << 20;

/// The arithmetic of a pass over queries.
///
/// ```
/// use skpca::{Fit, Precision, toys};
///
/// let points = toys::parabola(0);
/// let model = Fit::default().train(&points)?;
/// let (double, single) = (model.score(&points, Precision::Double)?, model.score(&points, Precision::Single)?);
/// assert!(double.iter().zip(&single).all(|(a, b)| (a - b).abs() < 1e-5));
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// 64-bit throughout.
    #[default]
    Double,
    /// 32-bit kernel values, 64-bit sums of chunks. Kernel values have errors of about 1e-7 of the largest, which large
    /// coefficients that cancel amplify. A [`Model`](crate::Model) estimates that error and uses 64 bits if it is too
    /// large.
    Single,
}

/// Points packed for the fast computation of kernel values with them.
///
/// ```
/// use faer::Mat;
/// use skpca::{Basis, Points, Precision, kernel, toys};
///
/// let points = toys::clusters(0);
/// let rbf = kernel::build(&"rbf,gamma=0.5".parse()?, &points, 0)?;
/// let basis = Basis::new(rbf.clone(), points.select(&[0, 1]));
/// let values = basis.product(&points, &basis.weights(Mat::identity(2, 2)), Precision::Double);
/// assert!((values[5] - rbf.eval(points.row(2), points.row(1))).abs() < 1e-12);
/// # Ok::<(), skpca::Error>(())
/// ```
pub struct Basis {
    kernel: Arc<dyn Kernel>,
    points: Points<'static>,
    means: Vec<f64>,
    coordinates: Coordinates,
    instructions: Instructions,
    double: Packed<f64>,
    single: OnceLock<Packed<f32>>,
}

/// A matrix of m rows packed for products `K(X, Z) · A`.
///
/// ```
/// use faer::Mat;
/// use skpca::{Basis, Precision, Weights, kernel, toys};
///
/// let points = toys::clusters(0);
/// let basis = Basis::new(kernel::build(&"linear".parse()?, &points, 0)?, points.select(&[0, 1, 2]));
/// let sum: Weights = basis.weights(Mat::ones(3, 1));
/// assert_eq!(basis.product(&points, &sum, Precision::Double).len(), points.n());
/// # Ok::<(), skpca::Error>(())
/// ```
pub struct Weights {
    matrix: Mat<f64>,
    double: PackedWeights<f64>,
    single: OnceLock<PackedWeights<f32>>,
}

/// Rows that a pass reads block by block.
pub(crate) trait QueryRows: Sync {
    fn n(&self) -> usize;
    fn d(&self) -> usize;
    /// Returns the values of a range of rows as they are in memory.
    fn numbers(&self, rows: Range<usize>) -> Numbers<'_>;
    /// Returns shift and divisor of each column if these values are not scaled yet.
    fn scaling(&self) -> Option<(&[f64], &[f64])>;
    /// Returns a range of rows, scaled, in `room` unless they are in memory that way; `None` if any value is not
    /// finite.
    fn block<'a>(&'a self, rows: Range<usize>, room: &'a mut Vec<f64>) -> Option<Points<'a>>;
}

impl QueryRows for Points<'_> {
    fn n(&self) -> usize {
        self.n()
    }

    fn d(&self) -> usize {
        self.d()
    }

    fn numbers(&self, rows: Range<usize>) -> Numbers<'_> {
        Numbers::Double(&self.values()[rows.start * self.d()..rows.end * self.d()])
    }

    fn scaling(&self) -> Option<(&[f64], &[f64])> {
        None
    }

    fn block<'a>(&'a self, rows: Range<usize>, _room: &'a mut Vec<f64>) -> Option<Points<'a>> {
        Some(self.slice(rows))
    }
}

/// Turns a block of rows and their products into `out`, some numbers per row. Returns whether all are finite. The rows
/// themselves are only present if [`Queried::read`] is set.
pub(crate) trait Finish<T>: Fn(Option<&Points>, Products, &mut [T]) -> bool + Sync {}
impl<T, F: Fn(Option<&Points>, Products, &mut [T]) -> bool + Sync> Finish<T> for F {}

/// Returns the products unchanged.
pub(crate) fn as_they_are<T: Number>(_: Option<&Points>, mut products: Products, out: &mut [T]) -> bool {
    products.write(out)
}

/// A pass over rows.
pub(crate) struct Queried<'a, R> {
    pub rows: &'a R,
    /// Whether the rows themselves are needed, besides the products.
    pub read: bool,
    pub weights: &'a Weights,
    pub precision: Precision,
}

/// A number type that a basis can be packed in.
pub(crate) trait Arithmetic: Packing + Summing {
    fn packed(basis: &Basis) -> &Packed<Self>;
}

impl Arithmetic for f64 {
    fn packed(basis: &Basis) -> &Packed<f64> {
        &basis.double
    }
}

impl Arithmetic for f32 {
    fn packed(basis: &Basis) -> &Packed<f32> {
        let Basis { coordinates, points, means, instructions, .. } = basis;
        cached(&basis.single, || Packed::new(coordinates, points, means, *instructions))
    }
}

/// Returns the value of `cell`, which is set to `make()` if it is empty. Unlike with `get_or_init`, two threads may
/// both compute the (same) value: a process forked while another thread is inside `make` would otherwise wait forever
/// for a thread that does not exist in it.
fn cached<T>(cell: &OnceLock<T>, make: impl FnOnce() -> T) -> &T {
    if cell.get().is_none() {
        let _ = cell.set(make());
    }
    cell.get().expect("set above, or by another thread")
}

impl Basis {
    /// Packs `points`.
    pub fn new(kernel: Arc<dyn Kernel>, points: Points<'static>) -> Basis {
        let means = vec![0.0; points.n()];
        Basis::centred(kernel, points, means)
    }

    /// Packs `points` for values `k(x, z_j) − means[j]`. Products then need no correction by a constant, which in
    /// 32 bits would lose the leading digits that the values have in common.
    pub fn centred(kernel: Arc<dyn Kernel>, points: Points<'static>, means: Vec<f64>) -> Basis {
        assert_eq!(means.len(), points.n());
        let instructions = kernel.instructions();
        let coordinates = Coordinates::new(kernel.as_ref(), &points);
        let double = Packed::new(&coordinates, &points, &means, instructions);
        Basis { kernel, points, means, coordinates, instructions, double, single: OnceLock::new() }
    }

    /// Returns the kernel.
    pub fn kernel(&self) -> &Arc<dyn Kernel> {
        &self.kernel
    }

    /// Returns the points, as given.
    pub fn points(&self) -> &Points<'static> {
        &self.points
    }

    /// Packs the m × c matrix `a` for [`Basis::product`].
    pub fn weights(&self, a: Mat<f64>) -> Weights {
        assert_eq!(a.nrows(), self.points.n());
        let double = PackedWeights::new(&self.double, a.as_ref());
        Weights { matrix: a, double, single: OnceLock::new() }
    }

    /// Returns `(K(X, Z) − 1 meansᵀ) · A`, n × c, row after row; computed in parallel.
    pub fn product(&self, x: &Points, weights: &Weights, precision: Precision) -> Vec<f64> {
        let mut out = vec![0.0; x.n() * weights.matrix.ncols()];
        self.pass(&Queried { rows: x, read: false, weights, precision }, &as_they_are, &mut out);
        out
    }

    /// Computes the same product without storing it: `finish` turns each block of it into the rows of `out` while it is
    /// in cache. Returns whether all rows and all of `out` are finite; the block of a row that is not finite is not
    /// written.
    pub(crate) fn pass<T: Number>(
        &self,
        queried: &Queried<impl QueryRows>,
        finish: &impl Finish<T>,
        out: &mut [T],
    ) -> bool {
        let weights = queried.weights;
        match queried.precision {
            Precision::Double => self.pass_in(&self.double, &weights.double, queried, finish, out),
            Precision::Single => {
                let packed = f32::packed(self);
                let weights = cached(&weights.single, || PackedWeights::new(packed, weights.matrix.as_ref()));
                self.pass_in(packed, weights, queried, finish, out)
            }
        }
    }

    fn pass_in<E: Arithmetic, T: Number>(
        &self,
        packed: &Packed<E>,
        weights: &PackedWeights<E>,
        queried: &Queried<impl QueryRows>,
        finish: &impl Finish<T>,
        out: &mut [T],
    ) -> bool {
        if out.is_empty() {
            return true;
        }
        let x = queried.rows;
        let width = out.len() / x.n();
        let placing = Placing::new(&self.coordinates, x.scaling(), self.instructions);
        let tiles = AllTiles::new(self.instructions, packed.tiles.rows());
        let read = queried.read || self.coordinates.reads_rows() || packed.chunks.iter().any(|c| !c.far.is_empty());
        let each = |scratch: &mut Scratch<E>, (block, out): (usize, &mut [T])| {
            let start = block * BLOCK;
            let rows = start..start + out.len() / width;
            let Scratch { room, queries, values, sums } = scratch;
            if x.d().max(width) <= NARROW {
                prefetch(out);
                match x.numbers(rows.end..(rows.end + BLOCK).min(x.n())) {
                    Numbers::Double(next) => prefetch(next),
                    Numbers::Single(next) => prefetch(next),
                }
            }
            let mut points = if read { x.block(rows.clone(), room) } else { None };
            if read && points.is_none() {
                return false;
            }
            queries.pack(&self.coordinates, &placing, x.numbers(rows.clone()), points.as_ref());
            if points.is_none() && !queries.far.is_empty() {
                // Rare; these may include rows that are not finite.
                points = x.block(rows.clone(), room);
                if points.is_none() {
                    return false;
                }
            }
            E::clear(sums, packed.chunks.len());
            self.sweep(packed, queries, values, (rows.len(), points.as_ref()), |panel, chunk, values| {
                E::add(sums, &packed.tiles, panel, values, (weights, chunk));
            });
            finish(points.as_ref(), Products::new(sums, &tiles, rows.len()), out)
        };
        let scratch = || Scratch::new(packed, weights.columns);
        let work = x.n() * self.points.n() * (x.d() + weights.columns);
        if work < SMALL {
            let mut scratch = scratch();
            let blocks = out.chunks_mut(BLOCK * width).enumerate();
            blocks.fold(true, |sound, part| each(&mut scratch, part) & sound)
        } else {
            let blocks = out.par_chunks_mut(BLOCK * width).enumerate();
            blocks.map_init(scratch, each).reduce(|| true, |a, b| a & b)
        }
    }

    /// Writes the block `K(X, Z)` itself, sequentially, to `out` (rows of X by points of Z).
    pub(crate) fn block(&self, x: &Points, mut out: MatMut<f64>) {
        assert_eq!((out.nrows(), out.ncols()), (x.n(), self.points.n()));
        let rows = self.double.tiles.rows();
        self.panels(x, |panel, first, values: &[f64]| {
            let inside = rows.min(x.n() - panel * rows);
            for (values, column) in values.chunks_exact(rows).zip(first..self.points.n()) {
                let to = out.as_mut().subrows_mut(panel * rows, inside).col_mut(column);
                let to = to.try_as_col_major_mut().expect("columns are contiguous").as_slice_mut();
                to.copy_from_slice(&values[..inside]);
            }
        });
    }

    /// Passes all kernel values, minus the means, sequentially to `take(panel, first, values)`: `values[j][i]` is that
    /// of point `first + j` and the i-th row of the panel. Both may run past the end.
    pub(crate) fn panels<E: Arithmetic>(&self, x: &Points, mut take: impl FnMut(usize, usize, &[E])) {
        let packed = E::packed(self);
        let mut scratch = Scratch::new(packed, 0);
        let placing = Placing::new(&self.coordinates, None, self.instructions);
        for start in (0..x.n()).step_by(BLOCK) {
            let part = x.slice(start..(start + BLOCK).min(x.n()));
            scratch.queries.pack(&self.coordinates, &placing, Numbers::Double(part.values()), Some(&part));
            let rows = (part.n(), Some(&part));
            self.sweep(packed, &scratch.queries, &mut scratch.values, rows, |panel, chunk, values| {
                take(start / packed.tiles.rows() + panel, chunk * packed.chunk, values);
            });
        }
    }

    /// Passes all kernel values of a packed block of `n` queries to `take(panel, chunk, values)`, for one panel and
    /// chunk at a time. The rows `x` themselves are needed if some are far out.
    fn sweep<E: Element>(
        &self,
        packed: &Packed<E>,
        queries: &Queries<E>,
        values: &mut [E],
        (n, x): (usize, Option<&Points>),
        mut take: impl FnMut(usize, usize, &[E]),
    ) {
        let rows = packed.tiles.rows();
        let panels = n.div_ceil(rows);
        // With one run of coordinates a panel is finished while it is in cache; with several, all panels of the block
        // share each run of the points.
        let together = if packed.d <= DEPTH { 1 } else { panels };
        for (chunk, points) in packed.chunks.iter().enumerate() {
            let size = points.terms.len() * rows;
            for first in (0..panels).step_by(together) {
                let group = first..(first + together).min(panels);
                self.kernel_values(packed, queries, points, group.clone(), values);
                for panel in group {
                    let values = &mut values[(panel - first) * size..][..size];
                    self.finish(points, queries, panel, values);
                    if let Some(x) = x {
                        self.by_definition(packed, queries, x, panel, chunk, values);
                    }
                    take(panel, chunk, values);
                }
            }
        }
    }

    fn kernel_values<E: Element>(
        &self,
        packed: &Packed<E>,
        queries: &Queries<E>,
        points: &Chunk<E>,
        panels: Range<usize>,
        values: &mut [E],
    ) {
        let (rows, d) = (packed.tiles.rows(), packed.d);
        let size = points.terms.len() * rows;
        for start in (0..d).step_by(DEPTH) {
            let depth = DEPTH.min(d - start);
            let z = &points.z[start * points.terms.len()..][..depth * points.terms.len()];
            for panel in panels.clone() {
                let task = KernelPanel {
                    inner: self.coordinates.inner,
                    exp2: self.coordinates.exp2 && start + depth == d,
                    first: start == 0,
                    means: if self.coordinates.finished && start + depth == d { &points.means } else { &points.zeros },
                    depth,
                    width: points.width,
                    x: &queries.lanes.x[(panel * d + start) * rows..][..depth * rows],
                    row_term: &queries.terms[panel * rows..][..rows],
                    z,
                    point_term: &points.terms,
                };
                let to = (panel - panels.start) * size;
                packed.tiles.kernel_panel(&task, &mut values[to..to + size]);
            }
        }
    }

    /// Applies `g` and `f` and subtracts the means if the tiles cannot do so.
    fn finish<E: Element>(&self, points: &Chunk<E>, queries: &Queries<E>, panel: usize, values: &mut [E]) {
        if self.coordinates.finished {
            return;
        }
        let g: &dyn Fn(f64) -> f64 = match self.coordinates.outer {
            Outer::Identity => &|t| t,
            Outer::Power(p) => &move |t| t.powi(p),
            Outer::Tanh => &f64::tanh,
        };
        let rows = values.len() / points.terms.len();
        let stretches = &queries.stretches[panel * rows..][..rows];
        for (j, values) in values.chunks_exact_mut(rows).enumerate() {
            let (stretch, mean) = (points.stretches[j], points.means[j].to_f64());
            for (v, f) in values.iter_mut().zip(stretches) {
                *v = E::from_f64(g(v.to_f64()) * (f * stretch) - mean);
            }
        }
    }

    /// Recomputes the values of far-out rows and points by the kernel's definition.
    fn by_definition<E: Element>(
        &self,
        packed: &Packed<E>,
        queries: &Queries<E>,
        x: &Points,
        panel: usize,
        chunk: usize,
        values: &mut [E],
    ) {
        let rows = packed.tiles.rows();
        let first = chunk * packed.chunk;
        let last = (first + packed.chunk).min(self.points.n());
        let mut recompute = |row: usize, point: usize| {
            let value = self.kernel.eval(x.row(row), self.points.row(point));
            values[(point - first) * rows + row - panel * rows] = E::from_f64(value - self.means[point]);
        };
        for &row in queries.far.iter().filter(|&&row| row / rows == panel) {
            (first..last).for_each(|point| recompute(row, point));
        }
        for &point in &packed.chunks[chunk].far {
            (panel * rows..((panel + 1) * rows).min(x.n())).for_each(|row| recompute(row, point));
        }
    }
}

/// Executes only fused multiply-adds, on every thread and in the tiles of the hot loop, and returns their number. This
/// is the peak rate that benchmarks compare the hot loop with.
pub fn multiply_adds(precision: Precision, level: Level, rounds: usize) -> Result<u64> {
    let instructions = level.instructions()?;
    Ok(match precision {
        Precision::Double => multiply_adds_in::<f64>(instructions, rounds),
        Precision::Single => multiply_adds_in::<f32>(instructions, rounds),
    })
}

fn multiply_adds_in<E: Element>(instructions: Instructions, rounds: usize) -> u64 {
    let tiles = E::tiles(instructions);
    let length = 128;
    let on_each = rayon::broadcast(|_| {
        let zeros = |count| vec![E::default(); count];
        let (k, a, mut out) =
            (zeros(length * tiles.rows()), zeros(length * tiles.points()), zeros(tiles.points() * tiles.rows()));
        for _ in 0..rounds {
            tiles.product_panel(length, tiles.points(), &k, std::hint::black_box(&a), &mut out);
        }
        (rounds * length * tiles.rows() * tiles.points()) as u64
    });
    on_each.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{self, KERNELS, pinned};
    use crate::random::{Random, Stream};

    fn cloud(n: usize, d: usize, seed: u64) -> Points<'static> {
        let mut random = Random::new(seed, Stream::Tests);
        Points::new(d, (0..n * d).map(|_| random.normal()).collect::<Vec<_>>()).unwrap()
    }

    fn weights(m: usize, columns: usize) -> Mat<f64> {
        let mut random = Random::new(6, Stream::Tests);
        Mat::from_fn(m, columns, |_, _| random.normal())
    }

    /// Returns the largest error of the block against the kernel's definition, as a share of the largest value.
    fn block_error(basis: &Basis, x: &Points) -> f64 {
        let z = basis.points();
        let mut k = Mat::zeros(x.n(), z.n());
        basis.block(x, k.as_mut());
        let exact = Mat::from_fn(x.n(), z.n(), |i, j| basis.kernel().eval(x.row(i), z.row(j)));
        (&k - &exact).norm_max() / exact.norm_max()
    }

    /// Returns the largest error of the fused product against the definition, relative to the largest entry of `|K|
    /// |A|`.
    fn product_error(basis: &Basis, x: &Points, columns: usize, precision: Precision) -> f64 {
        let z = basis.points();
        let a = weights(z.n(), columns);
        let found = basis.product(x, &basis.weights(a.clone()), precision);
        let exact = Mat::from_fn(x.n(), z.n(), |i, j| basis.kernel().eval(x.row(i), z.row(j)));
        let product = dense_product(&exact, &a);
        let size = |k: &Mat<f64>| Mat::from_fn(k.nrows(), k.ncols(), |i, j| k[(i, j)].abs());
        let scale = dense_product(&size(&exact), &size(&a)).norm_max();
        let error = |i: usize, c: usize| (found[i * columns + c] - product[(i, c)]).abs() / scale;
        (0..x.n()).flat_map(|i| (0..columns).map(move |c| (i, c))).map(|(i, c)| error(i, c)).fold(0.0, f64::max)
    }

    fn dense_product(k: &Mat<f64>, a: &Mat<f64>) -> Mat<f64> {
        Mat::from_fn(k.nrows(), a.ncols(), |i, c| (0..k.ncols()).map(|j| k[(i, j)] * a[(j, c)]).sum())
    }

    #[test]
    fn blocks_and_products_equal_the_definition_on_every_instruction_set() {
        let sizes = [(1, 1, 1), (9, 5, 2), (65, 241, 7), (64, 240, 54), (17, 119, 256), (70, 250, 300), (8, 6, 513)];
        for level in Instructions::available() {
            for entry in KERNELS {
                for (n, m, d) in sizes {
                    let (x, z) = (cloud(n, d, 3), cloud(m, d, 2));
                    let both = Points::new(d, [x.values(), z.values()].concat()).unwrap();
                    let kernel = entry.example(&both);
                    let basis = Basis::new(pinned(kernel, level), z);
                    let what = format!("{level:?} {} n {n} m {m} d {d}", entry.name);
                    let error = block_error(&basis, &x);
                    assert!(error < 2e-13, "{what}: {error}");
                    for columns in [1, 5, 10, 13] {
                        let double = product_error(&basis, &x, columns, Precision::Double);
                        assert!(double < 1e-13, "{what} × {columns}: {double}");
                        let single = product_error(&basis, &x, columns, Precision::Single);
                        assert!(single < 1e-6, "{what} × {columns}: {single}");
                    }
                }
            }
        }
    }

    #[test]
    fn far_rows_and_offsets_lose_no_precision() {
        for level in Instructions::available() {
            for (kernel, far) in [("rbf,gamma=0.1", 1e6), ("rbf,gamma=1e-3", 1e9), ("laplacian,gamma=0.1", 1e7)] {
                // Two distant clouds: the kernel is zero between them, and within each the same as near the origin.
                let near = cloud(20, 3, 3);
                let moved: Vec<f64> = near.values().iter().map(|v| v + far).collect();
                let z = Points::new(3, [near.values(), &moved].concat()).unwrap();
                let kernel = kernel::build(&kernel.parse().unwrap(), &z, 0).unwrap();
                let basis = Basis::new(pinned(kernel, level), z.clone());
                assert!(block_error(&basis, &z) < 1e-9, "{level:?} {far} {}", block_error(&basis, &z));
            }
            for size in [1e150, 1e200, 1e300] {
                let z = Points::new(1, vec![0.0, 1.0, size]).unwrap();
                let kernel = kernel::build(&"rbf,gamma=0.5".parse().unwrap(), &z, 0).unwrap();
                let basis = Basis::new(pinned(kernel, level), z.clone());
                assert!(block_error(&basis, &z) < 1e-15, "{level:?} {size}");
            }
        }
    }

    #[test]
    fn means_are_subtracted_from_every_kernel() {
        for level in Instructions::available() {
            for entry in KERNELS {
                for d in [3, 300] {
                    let (mut x, z) = (cloud(20, d, 1), cloud(30, d, 2));
                    x = Points::new(d, [x.values(), &vec![1e8; d]].concat()).unwrap();
                    let means: Vec<f64> = (0..30).map(|j| 0.1 * f64::from(j)).collect();
                    let kernel = entry.example(&z);
                    let plain = Basis::new(pinned(kernel.clone(), level), z.clone());
                    let centred = Basis::centred(pinned(kernel, level), z, means.clone());
                    let identity = || Mat::identity(30, 30);
                    let a = plain.product(&x, &plain.weights(identity()), Precision::Double);
                    let b = centred.product(&x, &centred.weights(identity()), Precision::Double);
                    for (at, (a, b)) in a.iter().zip(&b).enumerate() {
                        assert!(
                            (a - means[at % 30] - b).abs() <= 1e-14 * a.abs().max(1.0),
                            "{level:?} {} {d}",
                            entry.name
                        );
                    }
                }
            }
        }
    }

    /// As in a process forked by one thread while another one packs: it must not wait for that thread.
    #[test]
    fn cached_does_not_wait_for_another_thread() {
        let cell = OnceLock::new();
        let outer = cached(&cell, || *cached(&cell, || 7));
        assert_eq!(*outer, 7);
    }

    #[test]
    fn results_of_a_row_do_not_depend_on_its_batch() {
        for level in Instructions::available() {
            for entry in KERNELS {
                for d in [1, 10, 300] {
                    let (x, z) = (cloud(67, d, 4), cloud(245, d, 5));
                    let kernel = entry.example(&z);
                    let means = (0..245).map(f64::from).collect();
                    let basis = Basis::centred(pinned(kernel, level), z, means);
                    let weights = basis.weights(weights(245, 7));
                    for precision in [Precision::Double, Precision::Single] {
                        let whole = basis.product(&x, &weights, precision);
                        for i in 0..67 {
                            let one = basis.product(&x.slice(i..i + 1), &weights, precision);
                            assert_eq!(one, whole[i * 7..(i + 1) * 7], "{level:?} {} {d} {i}", entry.name);
                        }
                    }
                }
            }
        }
    }
}
