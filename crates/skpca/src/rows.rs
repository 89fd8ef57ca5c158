//! Rows, wherever they are: their number and width, access to some of them by number, and folds over all of them in
//! blocks.
//!
//! ```text
//! rows 0…n  →  leaves of whole blocks  →  pass.add(sum, block) in order  →  pass.merge(left, right) up a fixed tree
//! ```
//!
//! A [`Pass`] is a value that does not depend on where the rows are, and its sums are small. Leaves are runs of whole
//! blocks counted from row 0, so that rows in memory and rows elsewhere give the same bits.
//!
//! If the rows are on other machines, the pass is sent to them as bytes, with the scaling of the columns. Each machine
//! computes the sums of its parts, and sums are merged in the order of the parts.

use std::ops::Range;

use crate::blocks;
use crate::error::Result;
use crate::parcel::{Parcel, wrong};
use crate::points::Points;
use crate::sample_weight;
use crate::watch::{Watch, check};

/// A table of finite rows, scaled for the kernel.
pub(crate) trait Rows: Sync {
    /// Returns the number of rows.
    fn n(&self) -> usize;

    /// Returns the number of columns.
    fn d(&self) -> usize;

    /// Returns the rows with these numbers, in the order given.
    fn gather(&self, rows: &[usize]) -> Result<Points<'static>>;

    /// Returns a range of rows: borrowed, or copied to `room`.
    fn block<'a>(&'a self, rows: Range<usize>, room: &'a mut Vec<f64>) -> Result<Points<'a>>;

    /// Returns all rows, in memory, for methods that keep something per row anyway.
    fn whole(&self) -> Result<&Points<'_>>;

    /// Returns whether [`Rows::whole`] is available.
    fn in_memory(&self) -> bool {
        true
    }

    /// Returns the machines that have the rows, if passes are to be sent to them.
    fn remote(&self) -> Option<Sent<'_>> {
        None
    }

    /// Returns the weights of the rows, all > 0; by default, and for rows not in memory, all are 1.
    fn weights(&self) -> Option<&[f64]> {
        None
    }

    /// Returns the total weight.
    fn weight(&self) -> f64 {
        sample_weight::total(self.weights(), self.n())
    }
}

/// Sends passes to rows on other machines, which run [`passes::run`](crate::passes::run) and
/// [`passes::merge`](crate::passes::merge).
///
/// ```
/// use skpca::{Fit, Points, Remote, Result, Source, passes, toys};
///
/// /// Two machines, played by two halves of a table.
/// struct Machines(Vec<Points<'static>>);
///
/// impl Remote for Machines {
///     fn fold(&self, _stage: &str, pass: &[u8]) -> Result<Vec<u8>> {
///         let part = |half: usize| passes::Part { rows: &self.0[half], first: half * self.0[0].n(), labels: None };
///         let sums = [passes::run(pass, part(0))?, passes::run(pass, part(1))?];
///         passes::merge(pass, &[&sums[0], &sums[1]])
///     }
/// }
///
/// impl Source for Machines {
///     fn n(&self) -> usize {
///         500
///     }
///
///     fn d(&self) -> usize {
///         2
///     }
///
///     fn read(&self, rows: std::ops::Range<usize>, room: &mut Vec<f64>) -> Result<()> {
///         room.clear();
///         room.extend(rows.flat_map(|i| self.0[i / 250].row(i % 250).to_vec()));
///         Ok(())
///     }
///
///     fn remote(&self) -> Option<&dyn Remote> {
///         Some(self)
///     }
/// }
///
/// let table = toys::parabola(0);
/// let machines = Machines(vec![table.slice(0..250).into_owned(), table.slice(250..500).into_owned()]);
/// let model = Fit::default().run_streamed(&machines, None, 100_000_000, &())?;
/// assert_eq!(model.parts().n, 500);
/// # Ok::<(), skpca::Error>(())
/// ```
pub trait Remote: Sync {
    /// Returns the sum of a pass over all rows, both as bytes; `stage` names its purpose. Sums of parts are merged in
    /// the order of their rows: the same parts in the same tree give the same bits.
    fn fold(&self, stage: &str, pass: &[u8]) -> Result<Vec<u8>>;
}

/// Where passes are sent, and how columns are scaled there.
#[derive(Clone, Copy)]
pub(crate) struct Sent<'a> {
    pub to: &'a dyn Remote,
    /// Shift and divisor of each column; absent if rows are not scaled.
    pub scaling: Option<(&'a [f64], &'a [f64])>,
}

/// Some rows in memory, with their weights.
pub(crate) struct Part {
    pub points: Points<'static>,
    pub weights: Option<Vec<f64>>,
}

impl Part {
    /// Returns the rows with these numbers.
    pub(crate) fn of(rows: &dyn Rows, numbers: &[usize]) -> Result<Part> {
        Ok(Part { points: rows.gather(numbers)?, weights: sample_weight::select(rows.weights(), numbers) })
    }
}

impl Rows for Part {
    fn n(&self) -> usize {
        self.points.n()
    }

    fn d(&self) -> usize {
        self.points.d()
    }

    fn gather(&self, rows: &[usize]) -> Result<Points<'static>> {
        Ok(self.points.select(rows))
    }

    fn block<'a>(&'a self, rows: Range<usize>, _: &'a mut Vec<f64>) -> Result<Points<'a>> {
        Ok(self.points.slice(rows))
    }

    fn whole(&self) -> Result<&Points<'_>> {
        Ok(&self.points)
    }

    fn weights(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }
}

impl Rows for Points<'_> {
    fn n(&self) -> usize {
        Points::n(self)
    }

    fn d(&self) -> usize {
        Points::d(self)
    }

    fn gather(&self, rows: &[usize]) -> Result<Points<'static>> {
        Ok(self.select(rows))
    }

    fn block<'a>(&'a self, rows: Range<usize>, _: &'a mut Vec<f64>) -> Result<Points<'a>> {
        Ok(self.slice(rows))
    }

    fn whole(&self) -> Result<&Points<'_>> {
        Ok(self)
    }
}

/// Rows with weights; 1 by default.
#[derive(Clone, Copy)]
pub(crate) struct Weighted<'a> {
    pub rows: &'a dyn Rows,
    pub weights: Option<&'a [f64]>,
}

impl<'a> Weighted<'a> {
    /// Returns the rows with their own weights.
    pub(crate) fn of(rows: &'a dyn Rows) -> Weighted<'a> {
        Weighted { rows, weights: rows.weights() }
    }

    /// Returns the total weight.
    pub(crate) fn weight(&self) -> f64 {
        sample_weight::total(self.weights, self.rows.n())
    }
}

/// A sum over all rows.
pub(crate) trait Pass: Sync {
    /// The sum: small, and of a size that does not depend on the number of rows.
    type Sum: Send;

    /// Returns the sum over no rows.
    fn zero(&self) -> Self::Sum;

    /// Adds a block of rows, the first of which has the number `first`.
    fn add(&self, sum: &mut Self::Sum, block: &Points, first: usize);

    /// Adds the sum over rows that come after those of `left`.
    fn merge(&self, left: &mut Self::Sum, right: Self::Sum);

    /// Returns the pass in the form that is sent to other machines and read by `passes.rs`.
    fn parcel(&self) -> Parcel;

    /// Returns a sum as a fixed number of numbers.
    fn numbers(&self, sum: Self::Sum) -> Vec<f64>;

    /// Restores a sum from its numbers.
    fn sum(&self, numbers: Vec<f64>) -> Self::Sum;
}

/// A pass from another machine, with the type of its sums erased.
pub(crate) trait Errand: Sync {
    /// Computes the sum over some rows, the first of which has the number `first`.
    fn over(&self, rows: &dyn Rows, first: usize) -> Result<Vec<f64>>;

    /// Merges two sums.
    fn merged(&self, left: Vec<f64>, right: Vec<f64>) -> Result<Vec<f64>>;
}

impl<P: Pass> Errand for P {
    fn over(&self, rows: &dyn Rows, first: usize) -> Result<Vec<f64>> {
        Ok(self.numbers(sum_here(rows, self, first, (&(), "rows"))?))
    }

    fn merged(&self, left: Vec<f64>, right: Vec<f64>) -> Result<Vec<f64>> {
        let mut sum = checked(self, left)?;
        self.merge(&mut sum, checked(self, right)?);
        Ok(self.numbers(sum))
    }
}

/// Restores the sum of a pass from its numbers after a check of their count.
fn checked<P: Pass>(pass: &P, numbers: Vec<f64>) -> Result<P::Sum> {
    let expected = pass.numbers(pass.zero()).len();
    if numbers.len() == expected {
        Ok(pass.sum(numbers))
    } else {
        Err(wrong(&format!("{} numbers where {expected} were expected", numbers.len())))
    }
}

/// Computes the sum of a pass over all rows, in the fixed order above; it reports to `watch`, which may stop it.
pub(crate) fn fold<P: Pass>(rows: &dyn Rows, pass: &P, watch: (&dyn Watch, &str)) -> Result<P::Sum> {
    match rows.remote() {
        Some(sent) => sent.sum(pass, watch),
        None => sum_here(rows, pass, 0, watch),
    }
}

/// Computes the sum of a pass over rows that this machine reads, the first of which has the number `first`.
fn sum_here<P: Pass>(rows: &dyn Rows, pass: &P, first: usize, watch: (&dyn Watch, &str)) -> Result<P::Sum> {
    let (sum, _) = blocks::watched_sum(
        rows.n(),
        watch,
        || (pass.zero(), Vec::new()),
        |(sum, room), range| {
            let number = first + range.start;
            pass.add(sum, &rows.block(range, room)?, number);
            Ok(())
        },
        |(left, _), (right, _)| pass.merge(left, right),
    )?;
    Ok(sum)
}

impl Sent<'_> {
    fn sum<P: Pass>(&self, pass: &P, (watch, stage): (&dyn Watch, &str)) -> Result<P::Sum> {
        check(watch, stage, 0.0)?;
        let mut parcel = pass.parcel().with("scaled", self.scaling.is_some());
        if let Some((shift, scale)) = self.scaling {
            parcel = parcel.with("columns", shift.len());
            parcel.numbers = [shift, scale, &parcel.numbers].concat();
        }
        let sum = Parcel::from_bytes(&self.to.fold(stage, &parcel.to_bytes())?)?;
        check(watch, stage, 1.0)?;
        checked(pass, sum.numbers)
    }
}
