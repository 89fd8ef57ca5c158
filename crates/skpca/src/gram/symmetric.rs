//! `K · V` for the kernel matrix of the points themselves: each value is computed (or read) once and used twice.
//!
//! ```text
//! strips I ≥ J of points:   out_I += K_IJ V_J,     out_J += K_IJᵀ V_I  (if I ≠ J)
//! ```
//!
//! Strips are bundled; each pair of bundles has sums of its own, which are added in a fixed order, so the bits do not
//! depend on threads, and there are few enough of them that they take a small multiple of `V`.

use std::ops::Range;
use std::sync::Arc;

use faer::{Mat, MatRef};
use rayon::prelude::*;

use super::{Basis, PackedWeights, Queries};
use crate::dense;
use crate::kernel::Kernel;
use crate::points::Points;

/// Bundles of strips: enough pairs of them to keep many threads busy.
pub(crate) const BUNDLES: usize = 10;
/// Panels of rows whose values are kept for their second use.
const PANELS: usize = 6;

/// The kernel matrix of a set of points, known by its products.
pub(crate) struct Symmetric {
    basis: Basis,
    strips: Vec<Queries<f64>>,
    /// The values of the pairs (I, J), I ≥ J, one row of pairs after the other; or none, and they are computed anew.
    stored: Option<Vec<Vec<f64>>>,
}

/// `V` as both products read it, strip by strip.
struct Sides {
    columns: usize,
    points: PackedWeights<f64>,
    /// `[group][row][column of the group]`
    lanes: Vec<Vec<f64>>,
}

/// The sums of a pair of bundles, one entry a strip.
struct Sums {
    /// `[panel][column][row of the panel]`
    rows: Vec<Vec<f64>>,
    /// `[group][point][column of the group]`
    points: Vec<Vec<f64>>,
}

impl Symmetric {
    pub(crate) fn new(kernel: &Arc<dyn Kernel>, points: &Points, store: bool) -> Symmetric {
        let basis = Basis::new(kernel.clone(), points.slice(0..points.n()).into_owned());
        let packed = &basis.double;
        let strips: Vec<Queries<f64>> = (0..packed.chunks.len())
            .into_par_iter()
            .map(|strip| {
                let rows = basis.strip(strip);
                let mut queries = Queries::new(rows.len().next_multiple_of(packed.tiles.rows), packed.d);
                queries.pack(&basis.coordinates, &packed.tiles, &basis.points.slice(rows));
                queries
            })
            .collect();
        let mut matrix = Symmetric { basis, strips, stored: None };
        if store {
            let pairs: Vec<(usize, usize)> = triangle(matrix.strips.len()).collect();
            let values = pairs.into_par_iter().map(|(i, j)| {
                let panels = matrix.panels(i);
                let mut values = vec![0.0; panels * matrix.panel_size(j)];
                matrix.values(i, j, 0..panels, &mut values);
                values
            });
            matrix.stored = Some(values.collect());
        }
        matrix
    }

    pub(crate) fn kernel(&self) -> &Arc<dyn Kernel> {
        self.basis.kernel()
    }

    /// `K V`
    pub(crate) fn product(&self, v: MatRef<f64>) -> Mat<f64> {
        let sides = self.sides(v);
        let strips = self.strips.len();
        let size = strips.div_ceil(BUNDLES);
        let bundle = |b: usize| b * size..((b + 1) * size).min(strips);
        let pairs: Vec<(usize, usize)> = triangle(strips.div_ceil(size)).collect();
        let sums: Vec<Sums> = pairs.par_iter().map(|&(a, b)| self.pair(bundle(a), bundle(b), &sides)).collect();
        let of_bundle = |b: usize| {
            let rows = pairs.iter().zip(&sums).filter(|(pair, _)| pair.0 == b).map(|(_, sums)| &sums.rows);
            let points = pairs.iter().zip(&sums).filter(|(pair, _)| pair.1 == b).map(|(_, sums)| &sums.points);
            self.merged(bundle(b), sides.columns, &total(rows), &total(points))
        };
        let parts: Vec<Mat<f64>> = (0..strips.div_ceil(size)).into_par_iter().map(of_bundle).collect();
        dense::stack(&parts)
    }

    fn sides(&self, v: MatRef<f64>) -> Sides {
        let (columns, width) = (v.ncols(), self.basis.double.tiles.rows);
        let lanes = |strip: usize| {
            let (rows, padded) = (self.basis.strip(strip), self.panels(strip) * width);
            let mut lanes = vec![0.0; columns.div_ceil(width) * padded * width];
            for c in 0..columns {
                for (i, row) in rows.clone().enumerate() {
                    lanes[(c / width * padded + i) * width + c % width] = v[(row, c)];
                }
            }
            lanes
        };
        let lanes = (0..self.strips.len()).into_par_iter().map(lanes).collect();
        Sides { columns, points: PackedWeights::new(&self.basis.double, v), lanes }
    }

    /// The sums of all pairs (I, J), I ≥ J, of two bundles.
    fn pair(&self, a: Range<usize>, b: Range<usize>, sides: &Sides) -> Sums {
        let (columns, width) = (sides.columns, self.basis.double.tiles.rows);
        let rows = |i: usize| vec![0.0; self.panels(i) * columns * width];
        let points = |j: usize| vec![0.0; columns.div_ceil(width) * self.panel_size(j)];
        let mut sums = Sums { rows: a.clone().map(rows).collect(), points: b.clone().map(points).collect() };
        let mut scratch = vec![0.0; PANELS * width * self.basis.double.chunk];
        for i in a.clone() {
            for j in b.clone().take_while(|&j| j <= i) {
                for first in (0..self.panels(i)).step_by(PANELS) {
                    let panels = first..(first + PANELS).min(self.panels(i));
                    let size = self.panel_size(j);
                    let values = match &self.stored {
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

    /// `K_IJ` for some panels of I; what runs over the end of the points is zero.
    fn values(&self, i: usize, j: usize, panels: Range<usize>, out: &mut [f64]) {
        let Basis { double: packed, points, .. } = &self.basis;
        let (queries, chunk, width) = (&self.strips[i], &packed.chunks[j], packed.tiles.rows);
        let x = points.slice(self.basis.strip(i));
        self.basis.kernel_values(packed, queries, chunk, panels.clone(), out);
        for (panel, values) in panels.zip(out.chunks_exact_mut(self.panel_size(j))) {
            self.basis.finish(chunk, queries, panel, values);
            self.basis.mend(packed, queries, &x, panel, j, values);
            values[self.basis.strip(j).len() * width..].fill(0.0);
            let inside = width.min(x.n() - panel * width);
            if inside < width {
                values.chunks_exact_mut(width).for_each(|values| values[inside..].fill(0.0));
            }
        }
    }

    /// `rows += K_IJ V_J`
    fn forward(&self, j: usize, first: usize, values: &[f64], sides: &Sides, rows: &mut [f64]) {
        let tiles = &self.basis.double.tiles;
        let length = self.panel_size(j) / tiles.rows;
        for (k, values) in values.chunks_exact(length * tiles.rows).enumerate() {
            let out = &mut rows[(first + k) * sides.columns * tiles.rows..][..sides.columns * tiles.rows];
            let mut from = 0;
            for &width in &sides.points.widths {
                let a = &sides.points.chunks[j][from * length..(from + width) * length];
                let out = &mut out[from * tiles.rows..(from + width) * tiles.rows];
                tiles.product_panel(length, width, values, a, out);
                from += width;
            }
        }
    }

    /// `points += K_IJᵀ V_I`
    fn backward(&self, i: usize, panels: Range<usize>, values: &[f64], sides: &Sides, points: &mut [f64]) {
        let tiles = &self.basis.double.tiles;
        let (panel, strip) = (tiles.rows * tiles.rows, self.panels(i) * tiles.rows * tiles.rows);
        let size = values.len() / panels.len();
        for (lanes, out) in sides.lanes[i].chunks_exact(strip).zip(points.chunks_exact_mut(size)) {
            tiles.transposed_panels(panels.len(), values, &lanes[panels.start * panel..panels.end * panel], out);
        }
    }

    /// Both kinds of sums of a bundle, as rows.
    fn merged(&self, strips: Range<usize>, columns: usize, rows: &[Vec<f64>], points: &[Vec<f64>]) -> Mat<f64> {
        let width = self.basis.double.tiles.rows;
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

    /// Panels of rows in a strip.
    fn panels(&self, strip: usize) -> usize {
        self.basis.strip(strip).len().div_ceil(self.basis.double.tiles.rows)
    }

    /// Values of one panel of rows with a strip of points.
    fn panel_size(&self, strip: usize) -> usize {
        self.basis.double.chunks[strip].terms.len() * self.basis.double.tiles.rows
    }
}

impl Basis {
    /// The points of a chunk.
    fn strip(&self, chunk: usize) -> Range<usize> {
        let start = chunk * self.double.chunk;
        start..(start + self.double.chunk).min(self.points.n())
    }
}

/// (0, 0), (1, 0), (1, 1), (2, 0), …
fn triangle(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).flat_map(|a| (0..=a).map(move |b| (a, b)))
}

/// The sum of several lists of vectors, entry by entry, in order.
fn total<'a>(mut lists: impl Iterator<Item = &'a Vec<Vec<f64>>>) -> Vec<Vec<f64>> {
    let mut sum = lists.next().expect("a bundle is paired with itself").clone();
    for list in lists {
        for (sum, more) in sum.iter_mut().zip(list) {
            sum.iter_mut().zip(more).for_each(|(s, v)| *s += v);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gram::Precision;
    use crate::kernel::{self, KERNELS};
    use crate::random::Random;
    use crate::spec::Spec;

    fn normal(count: usize) -> Vec<f64> {
        let mut random = Random::new(8, count as u64);
        (0..count).map(|_| random.normal()).collect()
    }

    /// Largest difference to the product that uses no symmetry, as a share of its largest value.
    fn difference(kernel: &Arc<dyn Kernel>, points: &Points<'static>, columns: usize, store: bool) -> f64 {
        let n = points.n();
        let v = dense::product(
            Mat::from_fn(n, 1, |i, _| 1.0 + (i % 7) as f64).as_ref(),
            Mat::from_fn(1, columns, |_, c| 1.0 - 0.3 * c as f64).as_ref(),
        );
        let basis = Basis::new(kernel.clone(), points.clone());
        let plain = basis.product(points, &basis.weights(v.clone()), Precision::Double);
        let found = Symmetric::new(kernel, points, store).product(v.as_ref());
        let largest = plain.iter().fold(0.0_f64, |a, b| a.max(b.abs()));
        let error = |i: usize, c: usize| (found[(i, c)] - plain[i * columns + c]).abs() / largest;
        (0..n).flat_map(|i| (0..columns).map(move |c| (i, c))).map(|(i, c)| error(i, c)).fold(0.0, f64::max)
    }

    #[test]
    fn symmetry_changes_no_product() {
        for entry in KERNELS {
            for (n, d, columns) in [(2, 2, 1), (239, 3, 16), (241, 1, 7), (3000, 2, 10), (370, 200, 9)] {
                let points = Points::new(d, normal(n * d)).unwrap();
                let kernel = entry.example(&points);
                for store in [false, true] {
                    let error = difference(&kernel, &points, columns, store);
                    assert!(error < 1e-12, "{} n {n} d {d} columns {columns}: {error}", entry.name);
                }
            }
        }
    }

    #[test]
    fn rows_far_out_harm_no_others() {
        let mut values = normal(600);
        values[599] = 1e300;
        values[0] = -1e200;
        let points = Points::new(2, values).unwrap();
        let kernel = kernel::build(&"rbf,gamma=0.5".parse().unwrap(), &points, 0).unwrap();
        let product = Symmetric::new(&kernel, &points, false).product(Mat::from_fn(300, 3, |_, _| 1.0).as_ref());
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
            pool.install(|| Symmetric::new(&kernel, &points, false).product(v.as_ref()))
        };
        assert_eq!(on(1), on(3));
    }
}
