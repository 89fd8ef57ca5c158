//! Rows that are read when they are needed, for example from a file larger than memory.
//!
//! ```text
//! source ── block by block, as often as a fit needs it ──► checked ──► scaled ──► kernel
//! ```

use std::ops::Range;

use crate::error::{Error, Result};
use crate::points::{Points, first_not_finite};
use crate::rows::{Remote, Rows, Sent};

/// A table whose rows can be read repeatedly and are the same each time. [`Points`] are a source in memory;
/// [`Fit::run_streamed`](crate::Fit::run_streamed) accepts any source.
///
/// ```
/// use std::ops::Range;
/// use skpca::{Fit, Result, Source, Spec, Target};
///
/// /// A spiral that is computed anew for each read.
/// struct Spiral;
///
/// impl Source for Spiral {
///     fn n(&self) -> usize {
///         200_000
///     }
///
///     fn d(&self) -> usize {
///         6
///     }
///
///     fn read(&self, rows: Range<usize>, room: &mut Vec<f64>) -> Result<()> {
///         room.clear();
///         room.extend(rows.flat_map(|i| (0..6).map(move |k| (i as f64 * 1e-4 + k as f64).sin() * i as f64)));
///         Ok(())
///     }
/// }
///
/// let fit = Fit { method: Spec::new("landmarks"), target: Some(Target::Support(20)), ..Fit::default() };
/// let model = fit.run_streamed(&Spiral, None, 100_000_000, &())?;
/// assert_eq!((model.m(), model.parts().n), (20, 200_000));
/// # Ok::<(), skpca::Error>(())
/// ```
pub trait Source: Sync {
    /// Returns the number of rows.
    fn n(&self) -> usize;

    /// Returns the number of columns.
    fn d(&self) -> usize;

    /// Replaces the contents of `room` by a range of rows, row after row. Several threads may read at the same time.
    fn read(&self, rows: Range<usize>, room: &mut Vec<f64>) -> Result<()>;

    /// Returns the rows with these numbers, in the order given, row after row.
    fn gather(&self, rows: &[usize]) -> Result<Vec<f64>> {
        let (mut values, mut room) = (Vec::with_capacity(rows.len() * self.d()), Vec::new());
        for &row in rows {
            self.read(row..row + 1, &mut room)?;
            values.extend_from_slice(&room);
        }
        Ok(values)
    }

    /// Returns all rows if they are in memory.
    fn points(&self) -> Option<&Points<'_>> {
        None
    }

    /// Returns the machines that have the rows, to which passes are sent, if the rows are remote. Only a few rows at a
    /// time are then read from this source.
    fn remote(&self) -> Option<&dyn Remote> {
        None
    }
}

impl Source for Points<'_> {
    fn n(&self) -> usize {
        Points::n(self)
    }

    fn d(&self) -> usize {
        Points::d(self)
    }

    fn read(&self, rows: Range<usize>, room: &mut Vec<f64>) -> Result<()> {
        room.clear();
        room.extend_from_slice(self.slice(rows).values());
        Ok(())
    }

    fn points(&self) -> Option<&Points<'_>> {
        Some(self)
    }
}

/// The unscaled rows of a source, which are checked whenever they are read, because any implementation may return them.
#[derive(Clone, Copy)]
pub(crate) struct Raw<'a> {
    source: &'a dyn Source,
    weights: Option<&'a [f64]>,
}

impl<'a> Raw<'a> {
    pub(crate) fn new(source: &'a dyn Source) -> Raw<'a> {
        Raw::weighted(source, None)
    }

    /// Creates rows with weights; these must be in memory.
    pub(crate) fn weighted(source: &'a dyn Source, weights: Option<&'a [f64]>) -> Raw<'a> {
        Raw { source, weights }
    }

    /// Returns all rows if they are in memory.
    pub(crate) fn points(self) -> Option<&'a Points<'a>> {
        self.source.points()
    }

    /// Reads a range of rows into `room`.
    pub(crate) fn read(self, rows: Range<usize>, room: &mut Vec<f64>) -> Result<()> {
        let (first, count) = (rows.start, rows.len());
        self.source.read(rows, room)?;
        self.check(room, count, |row| first + row)
    }

    /// Returns all rows, copied if they are not in memory.
    pub(crate) fn collect(self) -> Result<Points<'a>> {
        if let Some(points) = self.points() {
            return Ok(points.slice(0..points.n()));
        }
        let mut values = Vec::new();
        self.read(0..self.source.n(), &mut values)?;
        Ok(Points::finite(self.source.d(), values))
    }

    fn check(self, values: &[f64], count: usize, number: impl Fn(usize) -> usize) -> Result<()> {
        let d = self.source.d();
        if values.len() != count * d {
            return Err(Error::Shape { rows: count, columns: d, values: values.len() });
        }
        match first_not_finite(values) {
            None => Ok(()),
            Some(at) => Err(Error::NotFinite { row: number(at / d), column: at % d, value: values[at] }),
        }
    }
}

impl Rows for Raw<'_> {
    fn n(&self) -> usize {
        self.source.n()
    }

    fn d(&self) -> usize {
        self.source.d()
    }

    fn gather(&self, rows: &[usize]) -> Result<Points<'static>> {
        if let Some(points) = self.points() {
            return Ok(points.select(rows));
        }
        let values = self.source.gather(rows)?;
        self.check(&values, rows.len(), |row| rows[row])?;
        Ok(Points::finite(self.source.d(), values))
    }

    fn block<'a>(&'a self, rows: Range<usize>, room: &'a mut Vec<f64>) -> Result<Points<'a>> {
        if let Some(points) = self.points() {
            return Ok(points.slice(rows));
        }
        self.read(rows, room)?;
        Ok(Points::finite(self.source.d(), &room[..]))
    }

    fn whole(&self) -> Result<&Points<'_>> {
        self.points().ok_or_else(elsewhere)
    }

    fn in_memory(&self) -> bool {
        self.points().is_some()
    }

    fn remote(&self) -> Option<Sent<'_>> {
        self.source.remote().map(|to| Sent { to, scaling: None })
    }

    fn weights(&self) -> Option<&[f64]> {
        self.weights
    }
}

/// Returns the error for rows that are not in memory. It should not occur: methods that need all rows get a sample.
pub(crate) fn elsewhere() -> Error {
    Error::Source { why: "not all rows can be in memory at once".into() }
}
