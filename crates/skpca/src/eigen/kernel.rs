//! The kernel matrix as an operator, with exact and rough products.

use std::sync::{Arc, OnceLock};

use faer::{Mat, MatRef};

use super::Operator;
use crate::dense;
use crate::gram::{Precision, Symmetric};
use crate::kernel::Kernel;
use crate::points::Points;
use crate::random::{Random, Stream};

/// Maximum size in bytes of a kernel matrix that is stored, about that of a cache.
const STORED: usize = 32 << 20;
/// The same if rows are so wide that recomputing the matrix costs more than reading it.
const STORED_WIDE: usize = 4 << 30;
/// Number of columns from which rows are that wide.
const WIDE: usize = 32;
/// Number of rows on which the error of a rough product is measured: this many random rows, and as many in which the
/// vectors are largest.
const MEASURED_ROWS: usize = 32;
/// Safety factor on the measured error, which is never taken to be less than the rounding error of the result.
const SAFETY: f64 = 2.0;

/// The kernel matrix of `points`, centred or not, stored or computed anew for each product.
pub(crate) struct KernelOperator<'a> {
    pub(super) points: &'a Points<'a>,
    matrix: Symmetric,
    pub(super) center: bool,
    /// `K 1 / n`, a by-product of the first centred product.
    means: OnceLock<Vec<f64>>,
}

impl<'a> KernelOperator<'a> {
    pub(crate) fn new(kernel: &Arc<dyn Kernel>, points: &'a Points<'a>, center: bool) -> KernelOperator<'a> {
        let matrix = Symmetric::new(kernel, points, stores(points.n(), points.d()));
        KernelOperator { points, matrix, center, means: OnceLock::new() }
    }

    pub(super) fn kernel(&self) -> &Arc<dyn Kernel> {
        self.matrix.kernel()
    }

    /// `K v`, whether centred or not.
    pub(crate) fn plain(&self, v: MatRef<f64>) -> Mat<f64> {
        self.matrix.product(v, Precision::Double)
    }

    /// Returns `μ = K 1 / n`, or zero if not centred.
    pub(crate) fn means(&self) -> Vec<f64> {
        if self.center {
            self.means.get_or_init(|| column(&self.plain(self.shares().as_ref()), 0)).clone()
        } else {
            vec![0.0; self.dim()]
        }
    }

    /// Returns the rows on which the error of a rough product with `v` is measured. A random draw alone could miss a
    /// few rows in which most of `v` is concentrated.
    fn measured_rows(&self, v: MatRef<f64>) -> Vec<usize> {
        let mut rows: Vec<usize> = (0..self.dim()).collect();
        let sizes: Vec<f64> = rows.iter().map(|&i| v.row(i).squared_norm_l2()).collect();
        let count = MEASURED_ROWS.min(rows.len());
        if count < rows.len() {
            rows.select_nth_unstable_by(count, |&i, &j| sizes[j].total_cmp(&sizes[i]).then(i.cmp(&j)));
        }
        rows.truncate(count);
        rows.extend(Random::new(0, Stream::RoughProducts).sample(self.dim(), MEASURED_ROWS));
        rows.sort_unstable();
        rows.dedup();
        rows
    }

    /// `1 / n`, as a column.
    fn shares(&self) -> Mat<f64> {
        Mat::from_fn(self.dim(), 1, |_, _| 1.0 / self.dim() as f64)
    }
}

/// Returns whether the kernel matrix of n rows is stored.
pub(super) fn stores(n: usize, d: usize) -> bool {
    let bytes = n.saturating_mul(n).saturating_mul(8);
    bytes <= STORED || (d >= WIDE && bytes <= STORED_WIDE)
}

impl Operator for KernelOperator<'_> {
    fn dim(&self) -> usize {
        self.points.n()
    }

    fn apply(&self, v: MatRef<f64>) -> Mat<f64> {
        if !self.center {
            return self.plain(v);
        }
        let mut centred = v.to_owned();
        center_columns(&mut centred);
        let mut out = match self.means.get() {
            Some(_) => self.plain(centred.as_ref()),
            // One more column costs little compared with computing the kernel values for it alone.
            None => {
                let both = self.plain(dense::beside(centred.as_ref(), self.shares().as_ref()).as_ref());
                let _ = self.means.set(column(&both, v.ncols()));
                both.as_ref().subcols(0, v.ncols()).to_owned()
            }
        };
        center_columns(&mut out);
        out
    }

    /// Computes the product in 32 bits if the matrix is not stored, and estimates its error from some rows.
    fn apply_roughly(&self, v: MatRef<f64>) -> Option<(Mat<f64>, f64)> {
        if self.matrix.is_stored() || !self.matrix.kernel().bounded() {
            return None;
        }
        let mut v = v.to_owned();
        if self.center {
            center_columns(&mut v);
        }
        let mut out = self.matrix.product(v.as_ref(), Precision::Single);
        let rows = self.measured_rows(v.as_ref());
        let exact = self.matrix.product_at(&rows, v.as_ref());
        let square = |c: usize| (0..rows.len()).map(|i| (out[(rows[i], c)] - exact[(i, c)]).powi(2)).sum::<f64>();
        let worst = (0..v.ncols()).map(square).fold(0.0, f64::max);
        let largest = out.col_iter().map(|column| column.norm_l2()).fold(0.0, f64::max);
        let measured = SAFETY * (worst * self.dim() as f64 / rows.len() as f64).sqrt();
        let error = measured.max(f64::from(f32::EPSILON) * largest);
        if self.center {
            center_columns(&mut out);
        }
        Some((out, error))
    }
}

fn column(a: &Mat<f64>, j: usize) -> Vec<f64> {
    a.col(j).iter().copied().collect()
}

pub(crate) fn center_columns(a: &mut Mat<f64>) {
    let n = a.nrows() as f64;
    for j in 0..a.ncols() {
        let mean = a.col(j).sum() / n;
        a.col_mut(j).iter_mut().for_each(|x| *x -= mean);
    }
}
