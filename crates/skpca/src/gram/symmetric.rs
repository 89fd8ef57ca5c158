//! `K · V` for the kernel matrix of the points themselves: every value is computed (or read) once and used twice.
//!
//! ```text
//! strips I ≥ J of points:   out_I += K_IJ V_J,     out_J += K_IJᵀ V_I  (if I ≠ J)
//! ```
//!
//! Strips are grouped into bundles. Every pair of bundles has its own sums, which are added in a fixed order, so
//! results are the same bit for bit on any number of threads; all these sums take a small multiple of the memory of
//! `V`.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use faer::{Mat, MatRef};
use rayon::prelude::*;

use super::{Arithmetic, Basis, Packed, PackedWeights, Placing, Precision, Queries};
use crate::dense;
use crate::kernel::Kernel;
use crate::points::{Numbers, Points};

/// Number of bundles of strips: enough pairs of them to keep many threads busy.
pub(crate) const BUNDLES: usize = 10;
/// Number of panels of rows whose values are kept for their second use.
const PANELS: usize = 6;

/// The kernel matrix of a set of points, as an operator.
pub(crate) struct Symmetric {
    basis: Basis,
    double: Vec<Queries<f64>>,
    single: OnceLock<Vec<Queries<f32>>>,
    /// The values of the pairs (I, J), I ≥ J, one row of pairs after the other; if absent, they are recomputed for each
    /// product.
    stored: Option<Vec<Vec<f64>>>,
}

/// A number type that the matrix can be multiplied in.
trait Side: Arithmetic {
    /// Returns the points as query rows, strip by strip.
    fn strips(matrix: &Symmetric) -> &[Queries<Self>];
    /// Returns the values if they are stored.
    fn stored(matrix: &Symmetric) -> Option<&[Vec<Self>]>;
}

impl Side for f64 {
    fn strips(matrix: &Symmetric) -> &[Queries<f64>] {
        &matrix.double
    }
    fn stored(matrix: &Symmetric) -> Option<&[Vec<f64>]> {
        matrix.stored.as_deref()
    }
}

impl Side for f32 {
    fn strips(matrix: &Symmetric) -> &[Queries<f32>] {
        matrix.single.get_or_init(|| strips(&matrix.basis))
    }
    fn stored(_: &Symmetric) -> Option<&[Vec<f32>]> {
        None
    }
}

/// `V` in the layouts of both products, strip by strip.
struct Sides<E> {
    columns: usize,
    points: PackedWeights<E>,
    /// `[group][row][column of the group]`
    lanes: Vec<Vec<E>>,
}

/// The sums of a pair of bundles, one entry per strip.
struct Sums<E> {
    /// `[panel][column][row of the panel]`
    rows: Vec<Vec<E>>,
    /// `[group][point][column of the group]`
    points: Vec<Vec<E>>,
}

impl Symmetric {
    pub(crate) fn new(kernel: &Arc<dyn Kernel>, points: &Points, store: bool) -> Symmetric {
        let basis = Basis::new(kernel.clone(), points.slice(0..points.n()).into_owned());
        let double = strips(&basis);
        let mut matrix = Symmetric { basis, double, single: OnceLock::new(), stored: None };
        if store {
            let pairs: Vec<(usize, usize)> = triangle(matrix.double.len()).collect();
            let values = pairs.into_par_iter().map(|(i, j)| {
                let panels = matrix.panels::<f64>(i);
                let mut values = vec![0.0; panels * matrix.panel_size::<f64>(j)];
                matrix.values(i, j, 0..panels, &mut values);
                values
            });
            matrix.stored = Some(values.collect());
        }
        matrix
    }

    /// Returns whether values are stored rather than recomputed.
    pub(crate) fn is_stored(&self) -> bool {
        self.stored.is_some()
    }

    pub(crate) fn kernel(&self) -> &Arc<dyn Kernel> {
        self.basis.kernel()
    }

    /// Returns `K V`. In 32 bits a bundle's sums have errors of about 10⁻⁶ of `Σ |k||v|`.
    pub(crate) fn product(&self, v: MatRef<f64>, precision: Precision) -> Mat<f64> {
        if v.ncols() == 0 {
            return Mat::zeros(v.nrows(), 0);
        }
        match precision {
            Precision::Double => self.product_in::<f64>(v),
            Precision::Single => self.product_in::<f32>(v),
        }
    }

    /// Returns some of the rows of `K V`.
    pub(crate) fn product_at(&self, rows: &[usize], v: MatRef<f64>) -> Mat<f64> {
        let values =
            self.basis.product(&self.basis.points.select(rows), &self.basis.weights(v.to_owned()), Precision::Double);
        Mat::from_fn(rows.len(), v.ncols(), |i, c| values[i * v.ncols() + c])
    }

    fn product_in<E: Side>(&self, v: MatRef<f64>) -> Mat<f64> {
        let sides = self.sides::<E>(v);
        let strips = self.double.len();
        let size = strips.div_ceil(BUNDLES);
        let bundle = |b: usize| b * size..((b + 1) * size).min(strips);
        let pairs: Vec<(usize, usize)> = triangle(strips.div_ceil(size)).collect();
        let sums: Vec<Sums<E>> = pairs.par_iter().map(|&(a, b)| self.pair(bundle(a), bundle(b), &sides)).collect();
        let of_bundle = |b: usize| {
            let rows = pairs.iter().zip(&sums).filter(|(pair, _)| pair.0 == b).map(|(_, sums)| &sums.rows);
            let points = pairs.iter().zip(&sums).filter(|(pair, _)| pair.1 == b).map(|(_, sums)| &sums.points);
            self.merged::<E>(bundle(b), sides.columns, &total(rows), &total(points))
        };
        let parts: Vec<Mat<f64>> = (0..strips.div_ceil(size)).into_par_iter().map(of_bundle).collect();
        dense::stack(&parts)
    }

    fn sides<E: Side>(&self, v: MatRef<f64>) -> Sides<E> {
        let (columns, width) = (v.ncols(), self.packed::<E>().tiles.rows());
        let lanes = |strip: usize| {
            let (rows, padded) = (self.basis.strip(strip), self.panels::<E>(strip) * width);
            let mut lanes = vec![E::default(); columns.div_ceil(width) * padded * width];
            for c in 0..columns {
                for (i, row) in rows.clone().enumerate() {
                    lanes[(c / width * padded + i) * width + c % width] = E::from_f64(v[(row, c)]);
                }
            }
            lanes
        };
        let lanes = (0..self.double.len()).into_par_iter().map(lanes).collect();
        Sides { columns, points: PackedWeights::new(self.packed::<E>(), v), lanes }
    }

    /// Computes the sums of all pairs (I, J), I ≥ J, of two bundles.
    fn pair<E: Side>(&self, a: Range<usize>, b: Range<usize>, sides: &Sides<E>) -> Sums<E> {
        let (columns, width) = (sides.columns, self.packed::<E>().tiles.rows());
        let rows = |i: usize| vec![E::default(); self.panels::<E>(i) * columns * width];
        let points = |j: usize| vec![E::default(); columns.div_ceil(width) * self.panel_size::<E>(j)];
        let mut sums = Sums { rows: a.clone().map(rows).collect(), points: b.clone().map(points).collect() };
        let mut scratch = vec![E::default(); PANELS * width * self.packed::<E>().chunk];
        for i in a.clone() {
            for j in b.clone().take_while(|&j| j <= i) {
                for first in (0..self.panels::<E>(i)).step_by(PANELS) {
                    let panels = first..(first + PANELS).min(self.panels::<E>(i));
                    let size = self.panel_size::<E>(j);
                    let values = match E::stored(self) {
                        Some(stored) => &stored[i * (i + 1) / 2 + j][panels.start * size..panels.end * size],
                        None => {
                            self.values(i, j, panels.clone(), &mut scratch[..panels.len() * size]);
                            &scratch[..panels.len() * size]
                        }
                    };
                    self.forward(j, panels.start, values, sides, &mut sums.rows[i - a.start]);
                    if i != j {
                        self.backward(i, panels, values, sides, &mut sums.points[j - b.start]);
                    }
                }
            }
        }
        sums
    }

    /// Computes `K_IJ` for some panels of I; values past the end of the points are zero.
    fn values<E: Side>(&self, i: usize, j: usize, panels: Range<usize>, out: &mut [E]) {
        let packed = self.packed::<E>();
        let (queries, chunk, width) = (&E::strips(self)[i], &packed.chunks[j], packed.tiles.rows());
        let x = self.basis.points.slice(self.basis.strip(i));
        self.basis.kernel_values(packed, queries, chunk, panels.clone(), out);
        for (panel, values) in panels.zip(out.chunks_exact_mut(self.panel_size::<E>(j))) {
            self.basis.finish(chunk, queries, panel, values);
            self.basis.by_definition(packed, queries, &x, panel, j, values);
            values[self.basis.strip(j).len() * width..].fill(E::default());
            let inside = width.min(x.n() - panel * width);
            if inside < width {
                values.chunks_exact_mut(width).for_each(|values| values[inside..].fill(E::default()));
            }
        }
    }

    /// `rows += K_IJ V_J`
    fn forward<E: Side>(&self, j: usize, first: usize, values: &[E], sides: &Sides<E>, rows: &mut [E]) {
        let tiles = &self.packed::<E>().tiles;
        let length = self.panel_size::<E>(j) / tiles.rows();
        for (k, values) in values.chunks_exact(length * tiles.rows()).enumerate() {
            let out = &mut rows[(first + k) * sides.columns * tiles.rows()..][..sides.columns * tiles.rows()];
            sides.points.multiply(tiles, j, values, out);
        }
    }

    /// `points += K_IJᵀ V_I`
    fn backward<E: Side>(&self, i: usize, panels: Range<usize>, values: &[E], sides: &Sides<E>, points: &mut [E]) {
        let tiles = &self.packed::<E>().tiles;
        let (panel, strip) = (tiles.rows() * tiles.rows(), self.panels::<E>(i) * tiles.rows() * tiles.rows());
        let size = values.len() / panels.len();
        for (lanes, out) in sides.lanes[i].chunks_exact(strip).zip(points.chunks_exact_mut(size)) {
            tiles.transposed_panels(panels.len(), values, &lanes[panels.start * panel..panels.end * panel], out);
        }
    }

    /// Adds both kinds of sums of a bundle, as rows.
    fn merged<E: Side>(
        &self,
        strips: Range<usize>,
        columns: usize,
        rows: &[Vec<f64>],
        points: &[Vec<f64>],
    ) -> Mat<f64> {
        let width = self.packed::<E>().tiles.rows();
        let parts: Vec<Mat<f64>> = (strips.zip(rows).zip(points))
            .map(|((strip, rows), points)| {
                let padded = points.len() / columns.div_ceil(width) / width;
                Mat::from_fn(self.basis.strip(strip).len(), columns, |i, c| {
                    rows[(i / width * columns + c) * width + i % width]
                        + points[(c / width * padded + i) * width + c % width]
                })
            })
            .collect();
        dense::stack(&parts)
    }

    fn packed<E: Side>(&self) -> &Packed<E> {
        E::packed(&self.basis)
    }

    /// Returns the number of panels of rows in a strip.
    fn panels<E: Side>(&self, strip: usize) -> usize {
        self.basis.strip(strip).len().div_ceil(self.packed::<E>().tiles.rows())
    }

    /// Returns the number of values of one panel of rows with a strip of points.
    fn panel_size<E: Side>(&self, strip: usize) -> usize {
        self.packed::<E>().chunks[strip].terms.len() * self.packed::<E>().tiles.rows()
    }
}

impl Basis {
    /// Returns the range of points in a chunk.
    fn strip(&self, chunk: usize) -> Range<usize> {
        let start = chunk * self.double.chunk;
        start..(start + self.double.chunk).min(self.points.n())
    }
}

/// Packs the points of a basis as query rows.
fn strips<E: Arithmetic>(basis: &Basis) -> Vec<Queries<E>> {
    let packed = E::packed(basis);
    let placing = Placing::new(&basis.coordinates, None, basis.instructions);
    let strip = |strip: usize| {
        let rows = basis.strip(strip);
        let stride = packed.tiles.rows();
        let mut queries = Queries::new(rows.len().next_multiple_of(stride), packed.d, stride);
        let points = basis.points.slice(rows);
        queries.pack(&basis.coordinates, &placing, Numbers::Double(points.values()), Some(&points));
        queries
    };
    (0..packed.chunks.len()).into_par_iter().map(strip).collect()
}

/// (0, 0), (1, 0), (1, 1), (2, 0), …
fn triangle(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).flat_map(|a| (0..=a).map(move |b| (a, b)))
}

/// Adds several lists of vectors elementwise, in order.
fn total<'a, E: Arithmetic>(mut lists: impl Iterator<Item = &'a Vec<Vec<E>>>) -> Vec<Vec<f64>> {
    let first = lists.next().expect("a bundle is paired with itself");
    let mut sum: Vec<Vec<f64>> = first.iter().map(|list| list.iter().map(|v| v.to_f64()).collect()).collect();
    for list in lists {
        for (sum, more) in sum.iter_mut().zip(list) {
            sum.iter_mut().zip(more).for_each(|(s, v)| *s += v.to_f64());
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{self, KERNELS};
    use crate::random::{Random, Stream};
    use crate::spec::Spec;

    fn normal(count: usize) -> Vec<f64> {
        let mut random = Random::new(count as u64, Stream::Tests);
        (0..count).map(|_| random.normal()).collect()
    }

    /// Returns the largest difference from the product without symmetry, as a share of its largest value.
    fn difference(
        kernel: &Arc<dyn Kernel>,
        points: &Points<'static>,
        columns: usize,
        store: bool,
        precision: Precision,
    ) -> f64 {
        let n = points.n();
        let v = dense::product(
            Mat::from_fn(n, 1, |i, _| 1.0 + (i % 7) as f64).as_ref(),
            Mat::from_fn(1, columns, |_, c| 1.0 - 0.3 * c as f64).as_ref(),
        );
        let basis = Basis::new(kernel.clone(), points.clone());
        let plain = basis.product(points, &basis.weights(v.clone()), Precision::Double);
        let found = Symmetric::new(kernel, points, store).product(v.as_ref(), precision);
        let largest = plain.iter().fold(0.0_f64, |a, b| a.max(b.abs()));
        let error = |i: usize, c: usize| (found[(i, c)] - plain[i * columns + c]).abs() / largest;
        (0..n).flat_map(|i| (0..columns).map(move |c| (i, c))).map(|(i, c)| error(i, c)).fold(0.0, f64::max)
    }

    #[test]
    fn symmetric_products_equal_plain_ones() {
        for entry in KERNELS {
            for (n, d, columns) in [(2, 2, 1), (239, 3, 16), (241, 1, 7), (3000, 2, 10), (370, 200, 9)] {
                let points = Points::new(d, normal(n * d)).unwrap();
                let kernel = entry.example(&points);
                for (store, precision, most) in [
                    (false, Precision::Double, 1e-12),
                    (true, Precision::Double, 1e-12),
                    (false, Precision::Single, 2e-5),
                ] {
                    let error = difference(&kernel, &points, columns, store, precision);
                    assert!(error < most, "{} n {n} d {d} columns {columns} {precision:?}: {error}", entry.name);
                }
            }
        }
    }

    #[test]
    fn far_rows_do_not_spoil_others() {
        let mut values = normal(600);
        values[599] = 1e300;
        values[0] = -1e200;
        let points = Points::new(2, values).unwrap();
        let kernel = kernel::build(&"rbf,gamma=0.5".parse().unwrap(), &points, 0).unwrap();
        let product = Symmetric::new(&kernel, &points, false)
            .product(Mat::from_fn(300, 3, |_, _| 1.0).as_ref(), Precision::Double);
        for i in 0..300 {
            let sum: f64 = (0..300).map(|j| kernel.eval(points.row(i), points.row(j))).sum();
            assert!((product[(i, 2)] - sum).abs() < 1e-11 * sum, "{i}: {} {sum}", product[(i, 2)]);
        }
    }

    #[test]
    fn bits_do_not_depend_on_threads() {
        let points = Points::new(3, normal(2100)).unwrap();
        let kernel = kernel::build(&Spec::new("rbf"), &points, 0).unwrap();
        let v = Mat::from_fn(700, 5, |i, c| ((i * 5 + c) as f64).sin());
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let matrix = Symmetric::new(&kernel, &points, false);
                [Precision::Double, Precision::Single].map(|precision| matrix.product(v.as_ref(), precision))
            })
        };
        assert_eq!(on(1), on(3));
    }
}
