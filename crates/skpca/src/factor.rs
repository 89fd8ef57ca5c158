//! The factor: rows `f_i` with `f_i · f_j ≈ k(x_i, x_j)`, by randomly pivoted Cholesky.
//!
//! ```text
//! d_i = k(x_i, x_i) − ‖f_i‖²                      residual diagonal; its sum is the error of the factor
//! S ~ d, with rejection inside the block           accelerated form (Epperly, Tropp & Webber 2024)
//! F ← [F  (K(:,S) − F F_Sᵀ) L⁻ᵀ],  L Lᵀ = K_SS − F_S F_Sᵀ
//! ```
//!
//! Proposals are drawn many at a time. Each is accepted with a probability equal to the share of its residual that the
//! previously accepted ones leave, so that pivots have the distribution of one-at-a-time sampling while the work is in
//! matrix products. Block sizes depend only on the requested rank.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use faer::{Mat, MatRef};
use rayon::prelude::*;

use crate::blocks;
use crate::dense;
use crate::error::{Error, Result};
use crate::gram::Basis;
use crate::kernel::Kernel;
use crate::kernel_matrix::{diagonal, gram};
use crate::points::Points;
use crate::random::{Random, Stream};
use crate::rows::Weighted;
use crate::sample_weight;
use crate::scatter::Scatter;
use crate::watch::{Watch, check};
use skpca_simd::Instructions;

/// A residual below this share of its kernel value is rounding error: the point is linearly dependent on the pivots.
pub(crate) const FLOOR: f64 = 1e-12;
/// A residual this far below zero (as a share) is not rounding error: the kernel is not positive semi-definite.
const NEGATIVE: f64 = 1e-7;

/// Number of rows up to which a factor of full rank is first tried without pivoting.
const TRIANGULAR: usize = 4000;
/// Minimum number of values that one thread gathers.
const GATHERED: usize = 100_000;

/// Returns the number of rank × rank matrices in memory while the scatter of n rows is summed and decomposed: partial
/// sums, of which there is one for each block if there are few, and copies.
pub(crate) fn sums(n: usize) -> usize {
    (n.div_ceil(blocks::ROWS) + 2).min(8)
}

/// The stopping rule of the factorisation, which ends when either condition is met.
///
/// ```
/// use skpca::{Factor, Stop, kernel, toys};
///
/// let points = toys::clusters(0);
/// let rbf = kernel::build(&"rbf,gamma=0.5".parse()?, &points, 0)?;
/// let factor = Factor::pivoted(&rbf, &points, Stop { rank: 90, residual: 0.01 }, 0, &())?;
/// assert!(factor.residual_trace <= 0.01 * factor.trace);
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Stop {
    /// Maximum number of columns.
    pub rank: usize,
    /// Largest residual trace at which to stop, as a share of the trace.
    pub residual: f64,
}

/// Rows `f_i` with `f_i · f_j ≈ k(x_i, x_j)`, and the pivots from which they were computed.
///
/// ```
/// use skpca::{Factor, Stop, kernel, toys};
///
/// let points = toys::clusters(0);
/// let rbf = kernel::build(&"rbf,gamma=0.5".parse()?, &points, 0)?;
/// let factor = Factor::pivoted(&rbf, &points, Stop { rank: 20, residual: 0.0 }, 0, &())?;
/// assert!(factor.rank() == 20 && factor.residual_trace < 0.1 * factor.trace);
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone)]
pub struct Factor {
    /// Rows whose span the factor represents, in the order in which they were chosen.
    pub pivots: Vec<usize>,
    /// `Σ k(x_i, x_i)`
    pub trace: f64,
    /// `Σ k(x_i, x_i) − ‖f_i‖²`: the error of the factor.
    pub residual_trace: f64,
    /// Blocks of rows.
    rows: Vec<Mat<f64>>,
    /// Weights of the rows in sums, 1 by default.
    weights: Option<Vec<f64>>,
    instructions: Instructions,
}

impl Factor {
    /// Computes the exact factor: every linearly independent row becomes a pivot, and `F Fᵀ = K` up to rounding.
    pub fn exact(kernel: &Arc<dyn Kernel>, points: &Points, watch: &dyn Watch) -> Result<Factor> {
        Factor::pivoted(kernel, points, Stop { rank: points.n(), residual: 0.0 }, 0, watch)
    }

    /// Computes a factor by randomly pivoted Cholesky.
    pub fn pivoted(
        kernel: &Arc<dyn Kernel>,
        points: &Points,
        stop: Stop,
        seed: u64,
        watch: &dyn Watch,
    ) -> Result<Factor> {
        Factor::weighted(kernel, Weighted { rows: points, weights: None }, stop, seed, watch)
    }

    /// Computes the factor of weighted rows: pivots are drawn, and traces and scatter summed, as if rows were repeated.
    pub(crate) fn weighted(
        kernel: &Arc<dyn Kernel>,
        Weighted { rows, weights }: Weighted,
        stop: Stop,
        seed: u64,
        watch: &dyn Watch,
    ) -> Result<Factor> {
        let points = rows.whole()?;
        let diagonal = diagonal(kernel, points)?;
        let rank = stop.rank.min(points.n());
        let mut factor = Factor {
            pivots: Vec::new(),
            trace: 0.0,
            residual_trace: 0.0,
            rows: Vec::new(),
            weights: weights.map(<[f64]>::to_vec),
            instructions: kernel.instructions(),
        };
        factor.trace = ordered_sum(&factor.counted(&diagonal));
        if rank == points.n() && rank <= TRIANGULAR && factor.triangular(kernel, points, &diagonal, watch)? {
            return Ok(factor);
        }
        factor.rows = blocks::map(points.n(), |rows| Mat::zeros(rows.len(), rank));
        let mut residual = diagonal.clone();
        let mut random = Random::new(seed, Stream::Pivots);
        let proposals = (rank / 8).clamp(16, 128);
        while factor.pivots.len() < rank {
            let counted = factor.counted(&residual);
            let left = ordered_sum(&counted);
            if left <= stop.residual * factor.trace || left <= 0.0 {
                break;
            }
            check(watch, "factor", factor.pivots.len() as f64 / rank as f64)?;
            let proposed = draw(&counted, left, proposals, &mut random);
            let h = factor.residual_block(kernel, points, &proposed);
            let (chosen, l) = factor.accept(&h, &proposed, &diagonal, &mut residual, &mut random);
            factor.extend(kernel, points, &chosen, l.as_ref(), &mut residual);
            clean(kernel, &diagonal, &mut residual)?;
            chosen.iter().for_each(|&i| residual[i] = 0.0);
        }
        factor.residual_trace = ordered_sum(&factor.counted(&residual));
        Ok(factor)
    }

    /// Tries a Cholesky factorisation without pivoting, in which every row is a pivot; it takes a sixth of the work.
    /// Returns false if a row is nearly linearly dependent on others.
    fn triangular(
        &mut self,
        kernel: &Arc<dyn Kernel>,
        points: &Points,
        diagonal: &[f64],
        watch: &dyn Watch,
    ) -> Result<bool> {
        let n = points.n();
        let k = gram(kernel, &points.slice(0..n).into_owned());
        let Some(l) = dense::large_cholesky(k, |done| check(watch, "factor", done))? else { return Ok(false) };
        let independent = (0..n).all(|i| l[(i, i)] * l[(i, i)] > FLOOR * diagonal[i]);
        if independent {
            self.pivots = (0..n).collect();
            self.rows = blocks::map(n, |rows| l.as_ref().subrows(rows.start, rows.len()).to_owned());
        }
        Ok(independent)
    }

    /// Multiplies the values of the rows by their weights.
    fn counted<'v>(&self, values: &'v [f64]) -> Cow<'v, [f64]> {
        match &self.weights {
            None => values.into(),
            Some(weights) => values.iter().zip(weights).map(|(v, w)| v * w).collect(),
        }
    }

    /// Returns the number of columns.
    pub fn rank(&self) -> usize {
        self.pivots.len()
    }

    /// Returns the instruction set used for sums.
    pub(crate) fn instructions(&self) -> Instructions {
        self.instructions
    }

    /// Returns the number of rows.
    pub fn n(&self) -> usize {
        self.rows.iter().map(Mat::nrows).sum()
    }

    /// Returns the block of rows, as cut by `blocks`, that starts at `rows.start`.
    pub(crate) fn block(&self, rows: &Range<usize>) -> MatRef<'_, f64> {
        self.rows[rows.start / blocks::ROWS].as_ref().subcols(0, self.rank())
    }

    /// Returns row `i` of the factor.
    pub fn row(&self, i: usize) -> Vec<f64> {
        let block = &self.rows[i / blocks::ROWS];
        (0..self.rank()).map(|k| block[(i % blocks::ROWS, k)]).collect()
    }

    /// `F y`
    pub(crate) fn product(&self, y: MatRef<f64>) -> Mat<f64> {
        dense::stack(&blocks::map(self.n(), |rows| dense::streamed_product(self.block(&rows), y)))
    }

    /// `Fᵀ v`
    pub(crate) fn transposed_product(&self, v: &Mat<f64>) -> Mat<f64> {
        blocks::sum(
            self.n(),
            || Mat::zeros(self.rank(), v.ncols()),
            |sum, rows| {
                let part = v.as_ref().subrows(rows.start, rows.len());
                dense::add_transposed_product(sum, self.block(&rows), part);
            },
            |a, b| *a += b,
        )
    }

    /// Computes `T = F̃ᵀF̃` and the mean row `f̄`; without centring, `FᵀF` and zero.
    pub(crate) fn scatter(&self, center: bool, watch: &dyn Watch) -> Result<(Mat<f64>, Vec<f64>)> {
        let (n, r) = (sample_weight::total(self.weights.as_deref(), self.n()), self.rank());
        let sum = blocks::watched_sum(
            self.n(),
            (watch, "factor"),
            || Scatter::<f64>::new(r, self.instructions),
            |sum, rows| {
                let weights = self.weights.as_ref().map(|weights| &weights[rows.clone()]);
                sum.add_weighted_rows(self.block(&rows), weights);
                Ok(())
            },
            |sum, other| sum.merge(&other),
        )?;
        let (t, sums) = sum.into_parts();
        if !center {
            return Ok((t, vec![0.0; r]));
        }
        let mean: Vec<f64> = sums.iter().map(|s| s / n).collect();
        Ok((Mat::from_fn(r, r, |i, j| t[(i, j)] - n * mean[i] * mean[j]), mean))
    }

    /// Changes coordinates to `F E` with E orthogonal; rows of the pivots are then no longer triangular.
    pub(crate) fn rotated(mut self, e: MatRef<f64>) -> Factor {
        let rank = self.rank();
        self.rows.par_iter_mut().for_each(|rows| *rows = dense::product(rows.as_ref().subcols(0, rank), e));
        self
    }

    /// Returns some rows of the factor.
    pub(crate) fn rows_of(&self, indices: &[usize]) -> Mat<f64> {
        let (count, rank) = (indices.len(), self.rank());
        if count == 0 || rank == 0 {
            return Mat::zeros(count, rank);
        }
        let places: Vec<_> = indices.iter().map(|i| (i / blocks::ROWS, i % blocks::ROWS)).collect();
        let mut values = vec![0.0; count * rank];
        // Block by block, some columns at a time: rows of a block are close in memory.
        let together = GATHERED.div_ceil(count).min(rank);
        values.par_chunks_mut(count * together).enumerate().for_each(|(part, values)| {
            let first = part * together;
            let mut start = 0;
            for run in places.chunk_by(|a, b| a.0 == b.0) {
                let block = &self.rows[run[0].0];
                for (k, column) in values.chunks_exact_mut(count).enumerate() {
                    let from = block.col_as_slice(first + k);
                    column[start..start + run.len()]
                        .iter_mut()
                        .zip(run)
                        .for_each(|(value, (_, row))| *value = from[*row]);
                }
                start += run.len();
            }
        });
        MatRef::from_column_major_slice(&values, count, rank).to_owned()
    }

    /// Returns the variance captured by the best q components in the span of `rows`, or by the span of the components
    /// `own` over them, in the space of the factor, whose scatter is `t`.
    pub(crate) fn captured(&self, t: &Mat<f64>, rows: &[usize], own: Option<MatRef<f64>>, q: usize) -> Result<f64> {
        let atoms = self.rows_of(rows);
        if own.is_none() && rows.len() >= self.rank() {
            return captured_by_range(t, dense::product(atoms.transpose(), atoms.as_ref()).as_ref(), q);
        }
        let v = match own {
            None => atoms.transpose().to_owned(),
            Some(own) => dense::product(atoms.transpose(), own),
        };
        let tv = dense::product(t.as_ref(), v.as_ref());
        let e = dense::frame(v.as_ref(), 1e-12)?;
        let inner = dense::product(
            e.transpose(),
            dense::product(v.transpose(), dense::product(tv.as_ref(), e.as_ref()).as_ref()).as_ref(),
        );
        Ok(dense::eigen(inner.as_ref())?.0.iter().take(q).sum())
    }

    /// Returns the rows of the pivots, a lower triangular matrix: the Cholesky factor of their kernel matrix.
    pub(crate) fn triangle(&self) -> Mat<f64> {
        let rows = self.rows_of(&self.pivots);
        Mat::from_fn(self.rank(), self.rank(), |i, j| if j <= i { rows[(i, j)] } else { 0.0 })
    }

    /// Returns the kernel matrix of some rows less its approximation by the factor.
    fn residual_block(&self, kernel: &Arc<dyn Kernel>, points: &Points, rows: &[usize]) -> Mat<f64> {
        let mut h = gram(kernel, &points.select(rows));
        let f = self.rows_of(rows);
        dense::subtract_product(h.as_mut(), f.as_ref(), f.transpose());
        h
    }

    /// Goes through the proposals, whose residual block is `h`, in order; returns those accepted and the Cholesky
    /// factor of their residual block.
    fn accept(
        &self,
        h: &Mat<f64>,
        proposed: &[usize],
        diagonal: &[f64],
        residual: &mut [f64],
        random: &mut Random,
    ) -> (Vec<usize>, Mat<f64>) {
        // Maximum number of pivots.
        let rank = self.rows.first().map_or(0, Mat::ncols);
        let mut accepted: Vec<usize> = Vec::new();
        // Column j of `l` is the residual column of the j-th accepted proposal, over all proposals.
        let mut l = Mat::<f64>::zeros(proposed.len(), proposed.len());
        for p in 0..proposed.len() {
            if self.rank() + accepted.len() == rank {
                break;
            }
            let shrunk = h[(p, p)] - (0..accepted.len()).map(|k| l[(p, k)] * l[(p, k)]).sum::<f64>();
            let enough = random.uniform() * residual[proposed[p]] < shrunk;
            if !(enough && shrunk > FLOOR * diagonal[proposed[p]]) {
                continue;
            }
            let root = shrunk.sqrt();
            let count = accepted.len();
            for i in p..proposed.len() {
                let dot = (0..count).map(|k| l[(i, k)] * l[(p, k)]).sum::<f64>();
                l[(i, count)] = (h[(i, p)] - dot) / root;
            }
            accepted.push(p);
        }
        if accepted.is_empty() {
            // The residuals of the proposals were overestimated: correct them for the next draw.
            for (p, &i) in proposed.iter().enumerate() {
                residual[i] = if h[(p, p)] > FLOOR * diagonal[i] { h[(p, p)] } else { 0.0 };
            }
        }
        let l = Mat::from_fn(accepted.len(), accepted.len(), |i, j| if j <= i { l[(accepted[i], j)] } else { 0.0 });
        (accepted.into_iter().map(|p| proposed[p]).collect(), l)
    }

    /// Appends the columns of the accepted pivots and updates the residuals.
    fn extend(
        &mut self,
        kernel: &Arc<dyn Kernel>,
        points: &Points,
        chosen: &[usize],
        l: MatRef<f64>,
        residual: &mut [f64],
    ) {
        let basis = Basis::new(kernel.clone(), points.select(chosen));
        let pivots = self.rows_of(chosen);
        let (start, count) = (self.rank(), chosen.len());
        self.rows.par_iter_mut().zip(residual.par_chunks_mut(blocks::ROWS)).enumerate().for_each(
            |(block, (rows, residual))| {
                let first = block * blocks::ROWS;
                let (old, new) = rows.as_mut().split_at_col_mut(start);
                let mut new = new.subcols_mut(0, count);
                basis.block(&points.slice(first..first + residual.len()), new.as_mut());
                dense::subtract_product(new.as_mut(), old.as_ref(), pivots.transpose());
                dense::divide_by_transposed(new.as_mut(), l);
                for k in 0..count {
                    let column = new.as_ref().col(k);
                    residual.iter_mut().enumerate().for_each(|(i, r)| *r -= column[i] * column[i]);
                }
            },
        );
        self.pivots.extend_from_slice(chosen);
    }
}

/// Returns the variance, with scatter `t`, captured by the best q components in the range of `squares`, `Σ f fᵀ` over
/// the rows that span it.
pub(crate) fn captured_by_range(t: &Mat<f64>, squares: MatRef<f64>, q: usize) -> Result<f64> {
    let (squares, e) = dense::eigen(squares)?;
    let span = e.as_ref().subcols(0, squares.iter().take_while(|v| **v > 1e-12 * squares[0]).count());
    let inner = dense::product(span.transpose(), dense::product(t.as_ref(), span).as_ref());
    Ok(dense::eigen(inner.as_ref())?.0.iter().take(q).sum())
}

fn ordered_sum(values: &[f64]) -> f64 {
    blocks::map(values.len(), |rows| values[rows].iter().sum::<f64>()).iter().sum()
}

/// Sets residuals below the floor to zero; residuals that are clearly negative or not finite are an error.
fn clean(kernel: &Arc<dyn Kernel>, diagonal: &[f64], residual: &mut [f64]) -> Result<()> {
    let largest = diagonal.iter().copied().fold(0.0, f64::max);
    for (row, (r, &d)) in residual.iter_mut().zip(diagonal).enumerate() {
        if !r.is_finite() {
            return Err(Error::Overflow { kernel: kernel.spec().name, row });
        }
        if *r < -NEGATIVE * largest {
            return Err(Error::NotPositive { kernel: kernel.spec().name, value: *r });
        }
        if *r <= FLOOR * d {
            *r = 0.0;
        }
    }
    Ok(())
}

/// Draws `count` rows with probabilities proportional to `weights`, which sum to `total`; a row may be drawn
/// repeatedly.
fn draw(weights: &[f64], total: f64, count: usize, random: &mut Random) -> Vec<usize> {
    let mut targets: Vec<(f64, usize)> = (0..count).map(|order| (random.uniform() * total, order)).collect();
    targets.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut found: Vec<(usize, usize)> = Vec::with_capacity(count);
    let mut sum = 0.0;
    let mut next = targets.into_iter().peekable();
    let mut last = None;
    for (i, &weight) in weights.iter().enumerate().filter(|(_, w)| **w > 0.0) {
        sum += weight;
        last = Some(i);
        while let Some((_, order)) = next.next_if(|t| t.0 < sum) {
            found.push((order, i));
        }
    }
    // Rounding may put the last targets just beyond the sum.
    found.extend(next.filter_map(|(_, order)| Some((order, last?))));
    found.sort_unstable();
    found.into_iter().map(|(_, row)| row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{self, KERNELS};
    use crate::spec::Spec;

    fn cloud(n: usize, d: usize) -> Points<'static> {
        let mut random = Random::new(11, Stream::Tests);
        Points::new(d, (0..n * d).map(|_| random.normal()).collect::<Vec<_>>()).unwrap()
    }

    fn rbf(points: &Points) -> Arc<dyn Kernel> {
        kernel::build(&Spec::new("rbf"), points, 0).unwrap()
    }

    fn distance(factor: &Factor, kernel: &Arc<dyn Kernel>, points: &Points) -> f64 {
        let rows: Vec<Vec<f64>> = (0..points.n()).map(|i| factor.row(i)).collect();
        let dot = |i: usize, j: usize| rows[i].iter().zip(&rows[j]).map(|(a, b)| a * b).sum::<f64>();
        let error = |i: usize, j: usize| (kernel.eval(points.row(i), points.row(j)) - dot(i, j)).abs();
        (0..points.n()).flat_map(|i| (0..=i).map(move |j| (i, j))).map(|(i, j)| error(i, j)).fold(0.0, f64::max)
    }

    #[test]
    fn the_exact_factor_reproduces_every_kernel() {
        let points = cloud(120, 3);
        for entry in KERNELS.iter().filter(|entry| entry.name != "sigmoid") {
            let kernel = entry.example(&points);
            let factor = Factor::exact(&kernel, &points, &()).unwrap();
            let scale = diagonal(&kernel, &points).unwrap().into_iter().fold(0.0, f64::max);
            assert!(distance(&factor, &kernel, &points) < 1e-9 * scale, "{}", entry.name);
        }
    }

    #[test]
    fn the_residual_trace_is_the_error_of_the_rows() {
        let points = cloud(1200, 4);
        let kernel = rbf(&points);
        let factor = Factor::pivoted(&kernel, &points, Stop { rank: 40, residual: 0.0 }, 3, &()).unwrap();
        assert_eq!((factor.rank(), factor.n()), (40, 1200));
        let left: f64 = (0..1200).map(|i| 1.0 - factor.row(i).iter().map(|f| f * f).sum::<f64>()).sum();
        assert!((left - factor.residual_trace).abs() < 1e-9 * factor.trace, "{left} {}", factor.residual_trace);
        assert!((factor.trace - 1200.0).abs() < 1e-9);
    }

    #[test]
    fn it_stops_by_residual_and_at_the_rank() {
        let points = cloud(600, 2);
        let kernel = rbf(&points);
        let stop = Stop { rank: 600, residual: 0.01 };
        let factor = Factor::pivoted(&kernel, &points, stop, 0, &()).unwrap();
        assert!(factor.residual_trace <= 0.01 * factor.trace && factor.rank() < 200, "{}", factor.rank());
        // Five distinct rows, forty times each.
        let few = Points::new(1, (0..200).map(|i| f64::from(i % 5)).collect::<Vec<_>>()).unwrap();
        let factor = Factor::exact(&rbf(&few), &few, &()).unwrap();
        assert_eq!(factor.rank(), 5);
        assert!(factor.residual_trace.abs() < 1e-12);
    }

    #[test]
    fn an_indefinite_kernel_is_rejected() {
        let points = cloud(200, 3);
        let kernel = kernel::build(&"sigmoid,gamma=1,coef0=-1".parse().unwrap(), &points, 0).unwrap();
        assert!(matches!(Factor::exact(&kernel, &points, &()), Err(Error::NotPositive { .. })));
    }

    /// The accelerated form must draw pairs of pivots as the definition does: the first in proportion to the
    /// diagonal, the second in proportion to what the first leaves.
    #[test]
    fn pivots_have_the_distribution_of_one_at_a_time_sampling() {
        let points = Points::new(2, vec![1.0, 0.0, 1.0, 0.2, 0.0, 1.5, 0.5, 0.5]).unwrap();
        let kernel = kernel::build(&Spec::new("linear"), &points, 0).unwrap();
        let k = |i: usize, j: usize| kernel.eval(points.row(i), points.row(j));
        let total: f64 = (0..4).map(|i| k(i, i)).sum();
        let draws = 40_000;
        let mut counts = [[0.0_f64; 4]; 4];
        for seed in 0..draws {
            let factor = Factor::pivoted(&kernel, &points, Stop { rank: 2, residual: 0.0 }, seed, &()).unwrap();
            counts[factor.pivots[0]][factor.pivots[1]] += 1.0;
        }
        for (i, row) in counts.iter().enumerate() {
            let left = |j: usize| if i == j { 0.0 } else { k(j, j) - k(i, j) * k(i, j) / k(i, i) };
            let sum: f64 = (0..4).map(left).sum();
            for (j, count) in row.iter().enumerate() {
                let expected = draws as f64 * k(i, i) / total * left(j) / sum;
                assert!((count - expected).abs() < 5.0 * (expected + 1.0).sqrt(), "{i} {j}: {count} {expected}");
            }
        }
    }

    #[test]
    fn captured_variance_does_not_depend_on_how_it_is_computed() {
        let points = cloud(60, 2);
        let factor = Factor::pivoted(&rbf(&points), &points, Stop { rank: 8, residual: 0.0 }, 0, &()).unwrap();
        let (t, _) = factor.scatter(true, &()).unwrap();
        // Repeated rows: more than the rank, but spanning less.
        let repeated = [1, 2, 3, 1, 2, 3, 1, 2, 3];
        let many = factor.captured(&t, &repeated, None, 2).unwrap();
        let few = factor.captured(&t, &repeated[..3], None, 2).unwrap();
        assert!((many / few - 1.0).abs() < 1e-9, "{many} {few}");
        let all: Vec<usize> = (0..60).collect();
        let whole: f64 = dense::eigen(t.as_ref()).unwrap().0[..2].iter().sum();
        assert!((factor.captured(&t, &all, None, 2).unwrap() / whole - 1.0).abs() < 1e-9);
        assert!(few < 0.999 * whole);
    }
}
