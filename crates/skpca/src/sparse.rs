//! Sparse rows (CSR), for kernels that depend on inner products and norms only: zeros cost nothing.
//!
//! ```text
//! x·z_j for all j at once  =  Σ x_k (Zᵀ)_kj over the entries k of x          O(entries · m); Zᵀ sparse if z is
//! k = exp(−γ (‖x‖² + ‖z‖² − 2 x·z)),  g(γ x·z + c),  x·z / (‖x‖ ‖z‖)
//! ```

use std::ops::Range;

use faer::{Mat, MatRef};
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::kernel::cosine::inverse_norm;
use crate::kernel::{Conformal, Form, Kernel, Outer};
use crate::points::{Points, first_not_finite};

/// `n` rows of `d` columns as compressed sparse rows, borrowed from the caller.
///
/// ```
/// let rows = skpca::SparseRows::new(4, &[0, 2, 3], &[0, 3, 1], &[1.0, 2.0, 5.0])?;
/// assert_eq!((rows.n(), rows.d()), (2, 4));
/// assert!(skpca::SparseRows::new(3, &[0, 2, 3], &[0, 3, 1], &[1.0, 2.0, 5.0]).is_err());
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SparseRows<'a> {
    d: usize,
    starts: &'a [i64],
    columns: &'a [i32],
    values: &'a [f64],
}

impl<'a> SparseRows<'a> {
    /// Creates rows from CSR arrays: the entries of row i are those from `starts[i]` to `starts[i + 1]`, in ascending
    /// columns, each at most once.
    pub fn new(d: usize, starts: &'a [i64], columns: &'a [i32], values: &'a [f64]) -> Result<SparseRows<'a>> {
        let rows = SparseRows { d, starts, columns, values };
        if starts.len() < 2 || d == 0 {
            return Err(Error::Empty { what: if d == 0 { "columns" } else { "rows" } });
        }
        let ends = (starts[0], starts[starts.len() - 1]);
        let whole = ends == (0, values.len() as i64) && columns.len() == values.len();
        if !whole || starts.windows(2).any(|pair| pair[0] > pair[1]) {
            let found = format!("{} starts for {} entries", starts.len(), values.len());
            return Err(Error::parameter("indptr", found, "ascending numbers from 0 to the number of entries"));
        }
        let inside = |column: &i32| usize::try_from(*column).is_ok_and(|column| column < d);
        let sound = |i: &usize| {
            let columns = &columns[rows.range(*i)];
            columns.iter().all(inside) && columns.windows(2).all(|pair| pair[0] < pair[1])
        };
        if let Some(row) = (0..rows.n()).find(|row| !sound(row)) {
            let expected = format!("ascending columns below {d}, each at most once");
            return Err(Error::parameter("indices", format!("those of row {row}"), &expected));
        }
        if let Some(at) = first_not_finite(values) {
            let row = starts.partition_point(|start| *start <= at as i64) - 1;
            return Err(Error::NotFinite { row, column: columns[at] as usize, value: values[at] });
        }
        Ok(rows)
    }

    /// Returns the number of rows.
    pub fn n(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the number of columns.
    pub fn d(&self) -> usize {
        self.d
    }

    fn range(&self, row: usize) -> Range<usize> {
        self.starts[row] as usize..self.starts[row + 1] as usize
    }

    /// Returns columns and values of the entries of a row.
    fn entries(&self, row: usize) -> (&'a [i32], &'a [f64]) {
        (&self.columns[self.range(row)], &self.values[self.range(row)])
    }

    /// Returns mean and variance of all cells.
    pub(crate) fn mean_and_variance(&self) -> (f64, f64) {
        let cells = self.n() as f64 * self.d as f64;
        let mean = self.values.iter().sum::<f64>() / cells;
        let zeros = cells - self.values.len() as f64;
        let squares: f64 = self.values.iter().map(|value| (value - mean) * (value - mean)).sum();
        (mean, (squares + zeros * mean * mean) / cells)
    }

    /// Returns the inner products `s_i·s_j` of some rows.
    pub(crate) fn gram(&self, rows: &[usize]) -> Mat<f64> {
        let products = |i: &usize| {
            let mut dense = vec![0.0; self.d];
            add_entries(self.entries(rows[*i]), 1.0, &mut dense);
            (0..=*i).map(|j| dot(self.entries(rows[j]), &dense)).collect::<Vec<f64>>()
        };
        let lower: Vec<Vec<f64>> = (0..rows.len()).collect::<Vec<_>>().par_iter().map(products).collect();
        Mat::from_fn(rows.len(), rows.len(), |i, j| lower[i.max(j)][i.min(j)])
    }

    /// Returns `W S`: linear combinations of some rows, one per row of W.
    pub(crate) fn combinations(&self, rows: &[usize], w: MatRef<f64>) -> Points<'static> {
        let mut out = vec![0.0; w.nrows() * self.d];
        out.par_chunks_mut(self.d).enumerate().for_each(|(i, out)| {
            rows.iter().enumerate().for_each(|(j, row)| add_entries(self.entries(*row), w[(i, j)], out));
        });
        Points::finite(self.d, out)
    }

    /// Returns some rows, dense.
    pub(crate) fn dense(&self, rows: &[usize]) -> Points<'static> {
        let mut out = vec![0.0; rows.len() * self.d];
        for (row, out) in rows.iter().zip(out.chunks_exact_mut(self.d)) {
            add_entries(self.entries(*row), 1.0, out);
        }
        Points::finite(self.d, out)
    }

    /// Returns `‖x − c‖²`, given `squared` = `‖c‖²`.
    pub(crate) fn squared_distance(&self, row: usize, centre: &[f64], squared: f64) -> f64 {
        let (_, values) = self.entries(row);
        let own: f64 = values.iter().map(|v| v * v).sum();
        (own + squared - 2.0 * dot(self.entries(row), centre)).max(0.0)
    }
}

/// `x·dense`
fn dot((columns, values): (&[i32], &[f64]), dense: &[f64]) -> f64 {
    columns.iter().zip(values).map(|(column, value)| value * dense[*column as usize]).sum()
}

/// Adds `weight · x` to `dense`.
fn add_entries((columns, values): (&[i32], &[f64]), weight: f64, dense: &mut [f64]) {
    columns.iter().zip(values).for_each(|(column, value)| dense[*column as usize] += weight * value);
}

/// Points are stored sparse if at most one in this many cells is not zero.
const SPARSE_BELOW: usize = 4;

/// Zᵀ, d × m.
enum Transposed {
    /// All values, row after row.
    Dense(Vec<f64>),
    /// The entries of row k, from `starts[k]` to `starts[k + 1]`: their positions in the row, and their values.
    Sparse { starts: Vec<usize>, places: Vec<u32>, values: Vec<f64> },
}

impl Transposed {
    fn new(points: &Points) -> Transposed {
        let (m, d) = (points.n(), points.d());
        let entries = |(j, z): (usize, &'_ [f64])| {
            let entries: Vec<_> = z.iter().enumerate().filter(|(_, v)| **v != 0.0).map(|(k, v)| (k, j, *v)).collect();
            entries
        };
        let count = points.values().iter().filter(|v| **v != 0.0).count();
        if SPARSE_BELOW * count > m * d {
            let mut transposed = vec![0.0; m * d];
            points.rows().enumerate().flat_map(entries).for_each(|(k, j, v)| transposed[k * m + j] = v);
            return Transposed::Dense(transposed);
        }
        let mut entries: Vec<(usize, usize, f64)> = points.rows().enumerate().flat_map(entries).collect();
        entries.sort_unstable_by_key(|(k, j, _)| (*k, *j));
        let starts = (0..=d).map(|k| entries.partition_point(|(column, _, _)| *column < k)).collect();
        let (places, values) = entries.into_iter().map(|(_, j, v)| (j as u32, v)).unzip();
        Transposed::Sparse { starts, places, values }
    }

    /// Adds `weight` times row k.
    fn add(&self, k: usize, weight: f64, out: &mut [f64]) {
        match self {
            Transposed::Dense(transposed) => {
                let m = out.len();
                out.iter_mut().zip(&transposed[k * m..(k + 1) * m]).for_each(|(out, z)| *out += weight * z);
            }
            Transposed::Sparse { starts, places, values } => {
                let row = starts[k]..starts[k + 1];
                places[row.clone()].iter().zip(&values[row]).for_each(|(j, z)| out[*j as usize] += weight * z);
            }
        }
    }
}

/// Points transposed for products with sparse rows.
pub(crate) struct SparseBasis {
    form: Form,
    d: usize,
    transposed: Transposed,
    /// `‖z‖²`, or `1 / ‖z‖` for the cosine kernel.
    norms: Vec<f64>,
}

impl SparseBasis {
    /// Creates a basis; rejects kernels that need every cell.
    pub(crate) fn new(kernel: &dyn Kernel, points: &Points) -> Result<SparseBasis> {
        check_kernel(kernel)?;
        let form = kernel.form();
        let norms = points.rows().map(|z| norm(form, z)).collect();
        Ok(SparseBasis { form, d: points.d(), transposed: Transposed::new(points), norms })
    }

    /// Returns the number of points.
    pub(crate) fn m(&self) -> usize {
        self.norms.len()
    }

    pub(crate) fn check_width(&self, rows: &SparseRows) -> Result<()> {
        if rows.d == self.d { Ok(()) } else { Err(Error::Width { found: rows.d, expected: self.d }) }
    }

    /// Writes the kernel values of a row with all points to `out`; returns `k(x, x)`.
    pub(crate) fn row(&self, rows: &SparseRows, row: usize, out: &mut [f64]) -> f64 {
        let (columns, values) = rows.entries(row);
        out.fill(0.0);
        columns.iter().zip(values).for_each(|(column, value)| self.transposed.add(*column as usize, *value, out));
        let own = norm(self.form, values);
        out.iter_mut().zip(&self.norms).for_each(|(out, z)| *out = value_of(self.form, *out, own, *z));
        match self.form {
            Form::Cosine => f64::from(u8::from(own > 0.0)),
            form => value_of(form, own, own, own),
        }
    }
}

/// Rejects kernels that need every cell of a row.
pub(crate) fn check_kernel(kernel: &dyn Kernel) -> Result<()> {
    if Conformal::of(kernel).is_none() && !matches!(kernel.form(), Form::Manhattan { .. } | Form::Pairs) {
        return Ok(());
    }
    Err(needs_dense_rows(&kernel.spec().name))
}

/// Returns the error for a kernel that needs every cell.
pub(crate) fn needs_dense_rows(kernel: &str) -> Error {
    let expected = "a kernel of inner products and norms on sparse rows (rbf, cosine, linear, polynomial, sigmoid), or \
                    dense rows";
    Error::parameter("kernel", kernel, expected)
}

/// Returns the norm of a row in the form that kernel values need besides the inner product.
fn norm(form: Form, values: &[f64]) -> f64 {
    match form {
        Form::Cosine => inverse_norm(values),
        _ => values.iter().map(|v| v * v).sum(),
    }
}

/// Returns the kernel value of two rows from their inner product and norms.
fn value_of(form: Form, product: f64, x: f64, z: f64) -> f64 {
    match form {
        Form::Gaussian { gamma } => (-gamma * (x + z - 2.0 * product).max(0.0)).exp(),
        Form::Cosine => product * x * z,
        Form::Dot { gamma, coef0, outer } => {
            let t = gamma * product + coef0;
            match outer {
                Outer::Identity => t,
                Outer::Power(p) => t.powi(p),
                Outer::Tanh => t.tanh(),
            }
        }
        // Rejected by `check_kernel`.
        Form::Manhattan { .. } | Form::Pairs => f64::NAN,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::kernel;
    use crate::random::{Random, Stream};

    /// CSR arrays of rows, and the same rows dense.
    pub(crate) struct Made {
        pub starts: Vec<i64>,
        pub columns: Vec<i32>,
        pub values: Vec<f64>,
        pub dense: Points<'static>,
    }

    impl Made {
        pub(crate) fn rows(&self) -> SparseRows<'_> {
            SparseRows::new(self.dense.d(), &self.starts, &self.columns, &self.values).unwrap()
        }
    }

    /// Returns rows in three groups that share most of their columns, with one cell in eight not zero.
    pub(crate) fn made(n: usize, d: usize) -> Made {
        let mut random = Random::new(1, Stream::Tests);
        let cell = |random: &mut Random, i: usize, k: usize| {
            let likely = if k % 3 == i % 3 { 0.3 } else { 0.04 };
            if random.uniform() < likely { random.uniform() + 0.2 } else { 0.0 }
        };
        let dense: Vec<f64> = (0..n * d).map(|at| cell(&mut random, at / d, at % d)).collect();
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in dense.chunks_exact(d) {
            let entries = row.iter().enumerate().filter(|(_, v)| **v != 0.0);
            entries.for_each(|(k, v)| {
                columns.push(k as i32);
                values.push(*v);
            });
            starts.push(values.len() as i64);
        }
        Made { starts, columns, values, dense: Points::finite(d, dense) }
    }

    #[test]
    fn kernel_values_equal_the_definition() {
        let made = made(60, 40);
        let rows = made.rows();
        let support = made.dense.slice(0..7).into_owned();
        let full = Points::finite(40, support.values().iter().map(|v| v + 0.01).collect::<Vec<f64>>());
        let names = ["rbf,gamma=0.3", "linear", "cosine", "polynomial,gamma=0.1", "sigmoid,gamma=0.05"];
        for (name, support) in names.iter().flat_map(|name| [(name, &support), (name, &full)]) {
            let kernel = kernel::build(&name.parse().unwrap(), &made.dense, 0).unwrap();
            let basis = SparseBasis::new(kernel.as_ref(), support).unwrap();
            assert_eq!(matches!(basis.transposed, Transposed::Dense(_)), std::ptr::eq(support, &full));
            let mut out = vec![0.0; 7];
            for i in 0..60 {
                let (x, own) = (made.dense.row(i), basis.row(&rows, i, &mut out));
                assert!((own - kernel.eval(x, x)).abs() < 1e-12 * own.abs(), "{name} {own}");
                for (j, value) in out.iter().enumerate() {
                    let expected = kernel.eval(x, support.row(j));
                    assert!((value - expected).abs() < 1e-12 * own.abs(), "{name} {i} {j}: {value} {expected}");
                }
            }
        }
        let laplacian = kernel::build(&"laplacian".parse().unwrap(), &made.dense, 0).unwrap();
        let message = SparseBasis::new(laplacian.as_ref(), &full).err().unwrap().to_string();
        assert!(message.starts_with("kernel = laplacian: expected a kernel of inner products"), "{message}");
    }

    #[test]
    fn invalid_arrays_are_rejected() {
        let message = |starts: &[i64], columns: &[i32], values: &[f64]| {
            SparseRows::new(3, starts, columns, values).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(message(&[0, 1, 2], &[0, 2], &[1.0, 2.0]), "");
        let starts = "expected ascending numbers from 0 to the number of entries";
        for wrong in [&[0, 1, 3][..], &[1, 1, 2], &[0, 2, 1, 2], &[0, -1, 2], &[0, 1, i64::MAX]] {
            assert!(message(wrong, &[0, 2], &[1.0, 2.0]).ends_with(starts), "{wrong:?}");
        }
        assert!(message(&[0, 1], &[0, 1], &[1.0]).ends_with(starts));
        for wrong in [[0, 3], [-1, 0], [1, 1], [2, 0]] {
            let expected = "indices = those of row 0: expected ascending columns below 3, each at most once";
            assert_eq!(message(&[0, 2], &wrong, &[1.0, 2.0]), expected, "{wrong:?}");
        }
        let message = message(&[0, 1, 1, 2], &[0, 2], &[1.0, f64::NAN]);
        assert_eq!(message, "row 2, column 2 (from 0): NaN is not a finite number");
    }
}
