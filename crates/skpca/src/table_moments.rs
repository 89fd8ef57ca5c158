//! Mean and scatter of the rows of a table. With the linear kernel `φ(x) = x`, and PCA needs nothing else: no factor,
//! no kernel values, no n × d matrix.
//!
//! ```text
//! x̄ = (1/n) Σ x_i,      T = Σ (x_i − x̄)(x_i − x̄)ᵀ      d × d, one pass
//! ```

use std::ops::Range;
use std::sync::Arc;

use faer::{Mat, MatRef};

use crate::blocks;
use crate::dense;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::kernel_matrix::check_magnitude;
use crate::parcel::Parcel;
use crate::points::Points;
use crate::rows::{Errand, Pass, Rows, fold};
use crate::watch::Watch;

/// Number of evenly spaced rows whose mean approximates that of all rows.
const NEAR: usize = 480;

/// Mean and scatter of a table.
pub(crate) struct TableMoments {
    /// `x̄`; zero if not centred.
    pub mean: Vec<f64>,
    /// `T`, about that mean.
    pub scatter: Mat<f64>,
    /// `Σ ‖x_i‖²`
    pub trace: f64,
    /// Number of rows.
    pub n: usize,
    /// Sum of their weights.
    pub weight: f64,
}

impl TableMoments {
    /// Computes the moments of all rows; values whose squares overflow or vanish are an error of `kernel`, which is
    /// linear.
    pub(crate) fn new(
        kernel: &Arc<dyn Kernel>,
        rows: &dyn Rows,
        center: bool,
        watch: &dyn Watch,
    ) -> Result<TableMoments> {
        let (n, weight, d) = (rows.n(), rows.weight(), rows.d());
        // Sums of squares are taken about a point near the mean: if that is far from zero, they would lose the digits
        // in which rows differ.
        let origin = if center { near_mean(rows)? } else { vec![0.0; d] };
        let about = About { origin: origin.clone(), weights: rows.weights() };
        let sum = fold(rows, &about, (watch, "scatter"))?;
        let (mut scatter, sums) = sum.into_parts();
        let mut mean = vec![0.0; d];
        if center {
            let offset: Vec<f64> = sums.iter().map(|sum| sum / weight).collect();
            scatter = Mat::from_fn(d, d, |i, j| scatter[(i, j)] - weight * offset[i] * offset[j]);
            mean = origin.iter().zip(&offset).map(|(origin, offset)| origin + offset).collect();
        }
        let trace = dense::trace(&scatter) + weight * dense::dot(&mean, &mean);
        check_magnitude(kernel, rows, trace)?;
        Ok(TableMoments { mean, scatter, trace, n, weight })
    }

    /// Computes `‖x_i − x̄‖²` for each row of the table.
    pub(crate) fn distances(&self, points: &Points) -> Vec<f64> {
        let squares = |rows| points.slice(rows).rows().map(|x| squared_distance(x, &self.mean)).collect::<Vec<f64>>();
        blocks::map(points.n(), squares).concat()
    }

    /// Computes `Σ (x_i − x̄)(x_i − x̄)ᵀ` over some rows of the table, in increasing order. If they are the majority,
    /// the others are subtracted from the total, and rounding errors are relative to the total.
    pub(crate) fn scatter_of(&self, points: &Points, rows: &[usize], watch: &dyn Watch) -> Result<Mat<f64>> {
        if 2 * rows.len() <= self.n {
            return scatter_about(points, rows, &self.mean, watch);
        }
        let mut kept = rows.iter().peekable();
        let others: Vec<usize> = (0..self.n).filter(|i| kept.next_if(|kept| *kept == i).is_none()).collect();
        Ok(&self.scatter - scatter_about(points, &others, &self.mean, watch)?)
    }
}

/// Computes `Σ (x_i − origin)(x_i − origin)ᵀ` over some rows.
pub(crate) fn scatter_about(points: &Points, rows: &[usize], origin: &[f64], watch: &dyn Watch) -> Result<Mat<f64>> {
    let add = |sum: &mut Sum, part: Range<usize>| {
        sum.add(rows[part].iter().map(|&i| points.row(i)), origin, None);
        Ok(())
    };
    let sum = blocks::watched_sum(rows.len(), (watch, "scatter"), || Sum::new(points.d()), add, Sum::merge)?;
    Ok(sum.into_parts().0)
}

/// An accumulator of the scatter and the sum of rows. Tables have fewer columns than supports have points: products
/// without the padding of kernel tiles take two thirds of the time.
struct Sum {
    /// The lower triangle of the scatter.
    scatter: Mat<f64>,
    sums: Vec<f64>,
    /// The rows being added, less the origin.
    block: Vec<f64>,
}

impl Sum {
    fn new(d: usize) -> Sum {
        Sum { scatter: Mat::zeros(d, d), sums: vec![0.0; d], block: Vec::with_capacity(blocks::ROWS * d) }
    }

    fn add<'a>(&mut self, rows: impl Iterator<Item = &'a [f64]>, origin: &[f64], weights: Option<&[f64]>) {
        self.block.clear();
        rows.for_each(|row| self.block.extend(row.iter().zip(origin).map(|(v, origin)| v - origin)));
        let d = origin.len();
        for (i, row) in self.block.chunks_exact_mut(d).enumerate() {
            let root = weights.map_or(1.0, |weights| weights[i].sqrt());
            row.iter_mut().for_each(|v| *v *= root);
            self.sums.iter_mut().zip(row).for_each(|(sum, v)| *sum += root * *v);
        }
        let block = MatRef::from_row_major_slice(&self.block, self.block.len() / d, d);
        dense::add_squares(&mut self.scatter, block);
    }

    fn merge(&mut self, other: Sum) {
        self.scatter += other.scatter;
        self.sums.iter_mut().zip(other.sums).for_each(|(a, b)| *a += b);
    }

    fn into_parts(mut self) -> (Mat<f64>, Vec<f64>) {
        dense::mirror(&mut self.scatter);
        (self.scatter, self.sums)
    }
}

/// The pass that computes `Σ w_i (x_i − origin)(x_i − origin)ᵀ` over all rows. Weights exist only for rows in memory,
/// so that parcels do not include them.
struct About<'a> {
    origin: Vec<f64>,
    weights: Option<&'a [f64]>,
}

/// Name of the pass in parcels.
pub(crate) const ABOUT: &str = "scatter";

/// Recreates the pass on another machine.
pub(crate) fn about(parcel: Parcel) -> Result<Box<dyn Errand>> {
    Ok(Box::new(About { origin: parcel.numbers, weights: None }))
}

impl Pass for About<'_> {
    type Sum = Sum;

    fn zero(&self) -> Sum {
        Sum::new(self.origin.len())
    }

    fn add(&self, sum: &mut Sum, block: &Points, first: usize) {
        sum.add(block.rows(), &self.origin, self.weights.map(|weights| &weights[first..]));
    }

    fn merge(&self, left: &mut Sum, right: Sum) {
        left.merge(right);
    }

    fn parcel(&self) -> Parcel {
        Parcel::new(ABOUT, self.origin.clone())
    }

    fn numbers(&self, sum: Sum) -> Vec<f64> {
        [dense::lower_triangle(&sum.scatter), sum.sums].concat()
    }

    fn sum(&self, numbers: Vec<f64>) -> Sum {
        let d = self.origin.len();
        let (triangle, sums) = numbers.split_at(numbers.len() - d);
        Sum { scatter: dense::from_lower_triangle(d, triangle), sums: sums.to_vec(), ..Sum::new(d) }
    }
}

fn near_mean(rows: &dyn Rows) -> Result<Vec<f64>> {
    let step = rows.n().div_ceil(NEAR);
    Ok(rows.gather(&(0..rows.n()).step_by(step).collect::<Vec<_>>())?.mean())
}

/// Computes `‖x − z‖²` in lanes that the compiler can vectorise.
fn squared_distance(x: &[f64], z: &[f64]) -> f64 {
    const LANES: usize = 8;
    let (x, rest_x) = x.as_chunks::<LANES>();
    let (z, rest_z) = z.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for (x, z) in x.iter().zip(z) {
        (0..LANES).for_each(|k| lanes[k] += (x[k] - z[k]) * (x[k] - z[k]));
    }
    let rest: f64 = rest_x.iter().zip(rest_z).map(|(x, z)| (x - z) * (x - z)).sum();
    lanes.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::kernel;
    use crate::random::{Random, Stream};
    use crate::watch::Impatient;

    fn linear() -> Arc<dyn Kernel> {
        kernel::build_resolved(&"linear".parse().unwrap()).unwrap()
    }

    /// Normal rows around a point far from zero.
    fn far(n: usize, d: usize) -> Points<'static> {
        let mut random = Random::new(3, Stream::Tests);
        Points::new(d, (0..n * d).map(|i| 1e6 + (1 + i % d) as f64 * random.normal()).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn mean_and_scatter_equal_their_definitions_far_from_zero() {
        for (n, d) in [(2, 1), (700, 3), (1000, 21)] {
            let points = far(n, d);
            for center in [true, false] {
                let moments = TableMoments::new(&linear(), &points, center, &()).unwrap();
                let mean: Vec<f64> = if center { points.mean() } else { vec![0.0; d] };
                let some: Vec<usize> = (0..n).filter(|i| i % 3 != 0).collect();
                let few: Vec<usize> = (0..n).filter(|i| i % 3 == 0).collect();
                for rows in [(0..n).collect(), some, few] {
                    let found = moments.scatter_of(&points, &rows, &()).unwrap();
                    for (i, j) in (0..d).flat_map(|i| (0..d).map(move |j| (i, j))) {
                        let term = |&r: &usize| (points.row(r)[i] - mean[i]) * (points.row(r)[j] - mean[j]);
                        let expected: f64 = rows.iter().map(term).sum();
                        let scale = moments.scatter[(i, i)].max(moments.scatter[(j, j)]);
                        assert!((found[(i, j)] - expected).abs() <= 1e-8 * scale, "{n} {d} {center} {i} {j}");
                    }
                }
                let distances = moments.distances(&points);
                let trace: f64 = distances.iter().sum();
                assert_eq!(distances.len(), n);
                assert!((dense::trace(&moments.scatter) / trace - 1.0).abs() < 1e-8, "{n} {d} {center}");
            }
        }
    }

    #[test]
    fn values_that_cannot_be_squared_give_the_same_error_as_other_kernels() {
        for value in [1e200, 1e75, 1e-75] {
            let points = Points::new(1, vec![value, -value, 0.0]).unwrap();
            let expected = crate::kernel_matrix::diagonal(&linear(), &points).err();
            assert!(expected.is_some(), "{value}");
            assert_eq!(TableMoments::new(&linear(), &points, true, &()).err(), expected, "{value}");
        }
        let zeros = Points::new(1, vec![0.0, 0.0]).unwrap();
        assert_eq!(TableMoments::new(&linear(), &zeros, true, &()).unwrap().trace, 0.0);
    }

    #[test]
    fn a_pass_can_be_interrupted() {
        assert_eq!(TableMoments::new(&linear(), &far(100, 2), true, &Impatient).err(), Some(Error::Interrupted));
    }
}
