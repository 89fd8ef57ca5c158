//! Feature space as the alternation uses it: vectors, their scatter, and the rows of the data as atoms.
//!
//! ```text
//!            a vector                     ⟨u, v⟩     its values at all rows     T v
//! factor     v in Rʳ                      uᵀv        F v                        F̃ᵀF̃ v
//! kernel     v = Σ x_i φ_i,  y = K x      xᵤᵀ y_v    y                          x ← H y,  y ← K H y
//! ```
//!
//! The factor is for kernels whose eigenvalues decay quickly, and for many rows. If they decay slowly, a complete
//! factor has as many columns as there are rows and costs O(n³); the kernel matrix itself costs O(n²).

use std::ops::Range;
use std::sync::Arc;

use faer::{Mat, MatRef, Scale};

use super::Task;
use crate::blocks;
use crate::dense;
use crate::eigen::{Accuracy, KernelOperator, center_columns, guide_rank, top_of_kernel};
use crate::error::Result;
use crate::factor::{Factor, Stop};
use crate::gram::Basis;
use crate::kernel::{Form, Kernel};
use crate::kernel_matrix::gram;
use crate::points::Points;
use crate::spectrum::Span;

/// Vectors of feature space, as columns.
#[derive(Clone)]
pub(super) struct Vectors {
    x: Mat<f64>,
    /// The dual coordinates, if they are not `x`: inner products are taken between `x` and as many rows of `y` as `x`
    /// has. Any further rows of `y` are other linear functions of the vectors, carried along.
    y: Option<Mat<f64>>,
}

impl Vectors {
    /// Returns the coordinates, over the factor's columns or over the rows.
    #[cfg(test)]
    pub(super) fn coordinates(&self) -> &Mat<f64> {
        &self.x
    }

    /// Vectors in coordinates of an orthonormal basis.
    pub(super) fn plain(x: Mat<f64>) -> Vectors {
        Vectors { x, y: None }
    }

    /// Vectors with coordinates `x` and dual coordinates `y`, possibly followed by further linear functions.
    pub(super) fn paired(x: Mat<f64>, y: Mat<f64>) -> Vectors {
        Vectors { x, y: Some(y) }
    }

    pub(super) fn pair(&self) -> (MatRef<'_, f64>, MatRef<'_, f64>) {
        (self.x.as_ref(), self.y.as_ref().unwrap_or(&self.x).as_ref())
    }

    fn dual(&self) -> MatRef<'_, f64> {
        self.pair().1.get(..self.x.nrows(), ..)
    }

    pub(super) fn count(&self) -> usize {
        self.x.ncols()
    }

    /// `⟨u_i, v_j⟩`
    pub(super) fn products(&self, other: &Vectors) -> Mat<f64> {
        dense::product(self.x.transpose(), other.dual())
    }

    /// `Σ ⟨u_k, v_k⟩` over some columns.
    pub(super) fn inner(&self, other: &Vectors, columns: Range<usize>) -> f64 {
        columns.map(|k| self.x.col(k).transpose() * other.dual().col(k)).sum()
    }

    pub(super) fn norm(&self) -> f64 {
        self.inner(self, 0..self.count()).max(0.0).sqrt()
    }

    fn each(&self, change: impl Fn(MatRef<f64>) -> Mat<f64>) -> Vectors {
        Vectors { x: change(self.x.as_ref()), y: self.y.as_ref().map(|y| change(y.as_ref())) }
    }

    fn both(&self, other: &Vectors, change: impl Fn(MatRef<f64>, MatRef<f64>) -> Mat<f64>) -> Vectors {
        let y = self.y.as_ref().map(|y| change(y.as_ref(), other.pair().1));
        Vectors { x: change(self.x.as_ref(), other.x.as_ref()), y }
    }

    /// `[u₁ u₂ …] M`
    pub(super) fn times(&self, m: MatRef<f64>) -> Vectors {
        self.each(|x| dense::product(x, m))
    }

    /// `u + s v`
    pub(super) fn plus(&self, s: f64, other: &Vectors) -> Vectors {
        self.both(other, |a, b| a + Scale(s) * b)
    }

    pub(super) fn columns(&self, columns: Range<usize>) -> Vectors {
        self.each(|x| x.subcols(columns.start, columns.len()).to_owned())
    }

    pub(super) fn beside(&self, other: &Vectors) -> Vectors {
        self.both(other, dense::beside)
    }
}

/// Some rows of the data as vectors of feature space.
pub(super) struct Atoms {
    /// Row numbers.
    pub rows: Vec<usize>,
    /// One column per atom, in the representation of the space.
    columns: Mat<f64>,
}

impl Atoms {
    /// Returns the atoms at the given positions.
    pub(super) fn select(&self, places: &[usize]) -> Atoms {
        let columns = Mat::from_fn(self.columns.nrows(), places.len(), |k, i| self.columns[(k, places[i])]);
        Atoms { rows: places.iter().map(|&i| self.rows[i]).collect(), columns }
    }

    pub(super) fn extend(&mut self, more: &Atoms) {
        self.rows.extend(&more.rows);
        self.columns = dense::beside(self.columns.as_ref(), more.columns.as_ref());
    }
}

/// The operations in feature space that the alternation needs.
pub(super) trait Space: Sync {
    /// Number of rows.
    fn n(&self) -> usize;

    /// Dimension of the span of all rows, or an upper bound of it.
    fn rank(&self) -> usize;

    /// `Σ k(x, x)`
    fn trace(&self) -> f64;

    /// `tr T`
    fn variance(&self) -> f64;

    fn atoms(&self, rows: Vec<usize>) -> Atoms;

    /// The sums `Σ_i a_ik φ_i`.
    fn combination(&self, atoms: &Atoms, a: MatRef<f64>) -> Vectors;

    /// Returns the i-th of `rank` vectors that span the space.
    fn direction(&self, i: usize) -> Vectors;

    /// `T v`
    fn scatter(&self, v: &Vectors) -> Vectors;

    /// `⟨φ_i, T v_k⟩`, and `⟨v_k, T v_k⟩`.
    fn along(&self, atoms: &Atoms, v: &Vectors) -> (Mat<f64>, Vec<f64>);

    /// `⟨u_i, T v_j⟩`
    fn between(&self, u: &Vectors, v: &Vectors) -> Mat<f64>;

    /// `⟨φ_i, v_k⟩`
    fn values(&self, atoms: &Atoms, v: &Vectors) -> Mat<f64>;

    /// Calls `each` with the values `⟨φ_i, v_k⟩` of every block of rows, and concatenates the results.
    fn pass(&self, v: &Vectors, each: &(dyn Fn(MatRef<f64>) -> Vec<f64> + Sync)) -> Vec<f64>;

    /// `⟨φ_i, φ_j⟩`
    fn products(&self, a: &Atoms, b: &Atoms) -> Mat<f64>;

    /// `⟨φ_i, T φ_j⟩`
    fn scattered(&self, a: &Atoms, b: &Atoms) -> Mat<f64>;

    /// Returns rows, in increasing order, and the coefficients over them that express the vectors `v`.
    fn expansion(&self, v: &Vectors) -> (Vec<usize>, Mat<f64>);

    /// Returns the variance captured by the best q components in the span of `rows`, or by the span of the components
    /// `own` over them.
    fn captured(&self, rows: &[usize], own: Option<MatRef<f64>>, q: usize) -> Result<f64>;
}

/// Feature space represented by a factor and the scatter of its rows.
pub(super) struct FactorSpace<'a> {
    pub factor: &'a Factor,
    pub t: &'a Mat<f64>,
}

impl FactorSpace<'_> {
    pub(super) fn vectors(&self, x: Mat<f64>) -> Vectors {
        Vectors::plain(x)
    }
}

impl Space for FactorSpace<'_> {
    fn n(&self) -> usize {
        self.factor.n()
    }

    fn rank(&self) -> usize {
        self.factor.rank()
    }

    fn trace(&self) -> f64 {
        self.factor.trace
    }

    fn variance(&self) -> f64 {
        dense::trace(self.t)
    }

    fn atoms(&self, rows: Vec<usize>) -> Atoms {
        Atoms { columns: self.factor.rows_of(&rows).transpose().to_owned(), rows }
    }

    fn combination(&self, atoms: &Atoms, a: MatRef<f64>) -> Vectors {
        self.vectors(dense::product(atoms.columns.as_ref(), a))
    }

    fn direction(&self, i: usize) -> Vectors {
        self.vectors(Mat::from_fn(self.rank(), 1, |k, _| if k == i { 1.0 } else { 0.0 }))
    }

    fn scatter(&self, v: &Vectors) -> Vectors {
        self.vectors(dense::product(self.t.as_ref(), v.x.as_ref()))
    }

    fn along(&self, atoms: &Atoms, v: &Vectors) -> (Mat<f64>, Vec<f64>) {
        let tv = self.scatter(v);
        let squares = (0..v.count()).map(|k| v.inner(&tv, k..k + 1)).collect();
        (self.values(atoms, &tv), squares)
    }

    fn between(&self, u: &Vectors, v: &Vectors) -> Mat<f64> {
        u.products(&self.scatter(v))
    }

    fn values(&self, atoms: &Atoms, v: &Vectors) -> Mat<f64> {
        dense::product(atoms.columns.transpose(), v.x.as_ref())
    }

    fn pass(&self, v: &Vectors, each: &(dyn Fn(MatRef<f64>) -> Vec<f64> + Sync)) -> Vec<f64> {
        let block = |rows| each(dense::streamed_product(self.factor.block(&rows), v.x.as_ref()).as_ref());
        blocks::map(self.n(), block).concat()
    }

    fn products(&self, a: &Atoms, b: &Atoms) -> Mat<f64> {
        dense::product(a.columns.transpose(), b.columns.as_ref())
    }

    fn scattered(&self, a: &Atoms, b: &Atoms) -> Mat<f64> {
        dense::product(a.columns.transpose(), dense::product(self.t.as_ref(), b.columns.as_ref()).as_ref())
    }

    /// The rows are the pivots: their rows of the factor form a triangular matrix.
    fn expansion(&self, v: &Vectors) -> (Vec<usize>, Mat<f64>) {
        let pivots = &self.factor.pivots;
        let mut a = v.x.clone();
        dense::solve_lower_transposed(self.factor.triangle().as_ref(), a.as_mut());
        let mut order: Vec<usize> = (0..pivots.len()).collect();
        order.sort_by_key(|&i| pivots[i]);
        (order.iter().map(|&i| pivots[i]).collect(), Mat::from_fn(order.len(), a.ncols(), |i, k| a[(order[i], k)]))
    }

    fn captured(&self, rows: &[usize], own: Option<MatRef<f64>>, q: usize) -> Result<f64> {
        self.factor.captured(self.t, rows, own, q)
    }
}

/// Feature space represented by the kernel matrix of all rows.
pub(super) struct KernelSpace<'a> {
    kernel: &'a Arc<dyn Kernel>,
    points: &'a Points<'a>,
    center: bool,
    operator: KernelOperator<'a>,
    trace: f64,
}

/// Maximum number of rows for which the kernel matrix is used.
const KERNEL_ROWS: usize = 4000;
/// Share of the trace left by a factor of low rank above which eigenvalues count as decaying slowly.
const SPREAD: f64 = 1e-3;

impl<'a> KernelSpace<'a> {
    /// Returns the space for a task whose factor would have a column for nearly every row, else `None`. It is used only
    /// for kernels that are positive definite for all points: with others, the factor detects indefiniteness.
    pub(super) fn of(task: &'a Task, rank: usize) -> Result<Option<KernelSpace<'a>>> {
        let Task { kernel, center, .. } = *task;
        let n = task.n();
        let definite = matches!(kernel.form(), Form::Gaussian { .. } | Form::Manhattan { .. });
        if !definite || rank < n || n > KERNEL_ROWS {
            return Ok(None);
        }
        let points = task.rows.whole()?;
        let stop = Stop { rank: guide_rank(n), residual: SPREAD };
        let factor = Factor::pivoted(kernel, points, stop, task.seed, task.watch)?;
        let spread = factor.residual_trace > SPREAD * factor.trace;
        Ok(spread.then(|| KernelSpace::new(kernel, points, center, factor.trace)))
    }

    pub(super) fn new(
        kernel: &'a Arc<dyn Kernel>,
        points: &'a Points<'a>,
        center: bool,
        trace: f64,
    ) -> KernelSpace<'a> {
        KernelSpace { kernel, points, center, operator: KernelOperator::new(kernel, points, center), trace }
    }

    /// Computes the leading eigenvalues and the corresponding directions in feature space.
    pub(super) fn leading(&self, task: &Task) -> Result<(Vec<f64>, Vectors)> {
        let accuracy = Accuracy { trace: self.trace, ..Accuracy::default() };
        let pairs = top_of_kernel(&self.operator, task.q, accuracy, task.seed, task.watch)?;
        task.note(Some(task.captured(&pairs.values)?));
        let (values, u) = (pairs.values, pairs.vectors);
        let x = Mat::from_fn(u.nrows(), u.ncols(), |i, k| u[(i, k)] / values[k].sqrt());
        Ok((values, self.vectors(x)))
    }

    pub(super) fn vectors(&self, x: Mat<f64>) -> Vectors {
        let y = Some(self.operator.plain(x.as_ref()));
        Vectors { x, y }
    }

    fn centred(&self, y: MatRef<f64>) -> Mat<f64> {
        let mut y = y.to_owned();
        if self.center {
            center_columns(&mut y);
        }
        y
    }
}

impl Space for KernelSpace<'_> {
    fn n(&self) -> usize {
        self.points.n()
    }

    fn rank(&self) -> usize {
        self.n()
    }

    fn trace(&self) -> f64 {
        self.trace
    }

    fn variance(&self) -> f64 {
        self.trace - self.operator.means().iter().sum::<f64>()
    }

    fn atoms(&self, rows: Vec<usize>) -> Atoms {
        let basis = Basis::new(self.kernel.clone(), self.points.select(&rows));
        let parts = blocks::map(self.n(), |block| {
            let mut part = Mat::zeros(block.len(), rows.len());
            basis.block(&self.points.slice(block), part.as_mut());
            part
        });
        Atoms { columns: dense::stack(&parts), rows }
    }

    fn combination(&self, atoms: &Atoms, a: MatRef<f64>) -> Vectors {
        let mut x = Mat::zeros(self.n(), a.ncols());
        for (i, &row) in atoms.rows.iter().enumerate() {
            x.row_mut(row).copy_from(a.row(i));
        }
        Vectors { x, y: Some(dense::product(atoms.columns.as_ref(), a)) }
    }

    fn direction(&self, i: usize) -> Vectors {
        self.combination(&self.atoms(vec![i]), Mat::identity(1, 1).as_ref())
    }

    fn scatter(&self, v: &Vectors) -> Vectors {
        self.vectors(self.centred(v.dual()))
    }

    /// Needs no product with K, because `T v` is evaluated at the atoms only.
    fn along(&self, atoms: &Atoms, v: &Vectors) -> (Mat<f64>, Vec<f64>) {
        let y = self.centred(v.dual());
        let squares = (0..v.count()).map(|k| v.dual().col(k).transpose() * y.col(k)).collect();
        (dense::product(atoms.columns.transpose(), y.as_ref()), squares)
    }

    fn between(&self, u: &Vectors, v: &Vectors) -> Mat<f64> {
        dense::product(u.dual().transpose(), self.centred(v.dual()).as_ref())
    }

    fn values(&self, atoms: &Atoms, v: &Vectors) -> Mat<f64> {
        Mat::from_fn(atoms.rows.len(), v.count(), |i, k| v.dual()[(atoms.rows[i], k)])
    }

    fn pass(&self, v: &Vectors, each: &(dyn Fn(MatRef<f64>) -> Vec<f64> + Sync)) -> Vec<f64> {
        blocks::map(self.n(), |rows| each(v.dual().subrows(rows.start, rows.len()))).concat()
    }

    fn products(&self, a: &Atoms, b: &Atoms) -> Mat<f64> {
        Mat::from_fn(a.rows.len(), b.rows.len(), |i, j| b.columns[(a.rows[i], j)])
    }

    fn scattered(&self, a: &Atoms, b: &Atoms) -> Mat<f64> {
        dense::product(a.columns.transpose(), self.centred(b.columns.as_ref()).as_ref())
    }

    fn expansion(&self, v: &Vectors) -> (Vec<usize>, Mat<f64>) {
        ((0..self.n()).collect(), v.x.clone())
    }

    fn captured(&self, rows: &[usize], own: Option<MatRef<f64>>, q: usize) -> Result<f64> {
        let support = self.points.select(rows);
        let span = Span::new(self.kernel, self.points, &support, self.center, &())?;
        let expansion = match own {
            None => span.best(q, &())?,
            Some(own) => span.given(own, || gram(self.kernel, &support))?,
        };
        Ok(expansion.captured)
    }
}
