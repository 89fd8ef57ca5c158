//! Rows that are read when they are needed: in a file, say, which may be larger than the memory.
//!
//! ```text
//! source ── a block at a time, as often as a fit needs it ──► checked ──► scaled ──► kernel
//! ```

use std::ops::Range;

use crate::error::{Error, Result};
use crate::points::{Points, first_not_finite};
use crate::rows::{Remote, Rows, Sent};

/// A table whose rows can be read again and again, and are the same each time. [`Points`] are one that lies in memory;
/// [`Fit::run_streamed`](crate::Fit::run_streamed) takes any.
///
/// ```
/// use std::ops::Range;
/// use skpca::{Fit, Result, Source, Spec, Target};
///
/// /// A spiral that is computed again whenever somebody looks.
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
    /// Number of rows.
    fn n(&self) -> usize;

    /// Number of columns.
    fn d(&self) -> usize;

    /// Replaces the contents of `room` by a run of rows, row after row. Threads read at the same time.
    fn read(&self, rows: Range<usize>, room: &mut Vec<f64>) -> Result<()>;

    /// The rows with these numbers, in the order given, row after row.
    fn gather(&self, rows: &[usize]) -> Result<Vec<f64>> {
        let (mut values, mut room) = (Vec::with_capacity(rows.len() * self.d()), Vec::new());
        for &row in rows {
            self.read(row..row + 1, &mut room)?;
            values.extend_from_slice(&room);
        }
        Ok(values)
    }

    /// All rows, where they lie in memory.
    fn points(&self) -> Option<&Points<'_>> {
        None
    }

    /// Takes passes to the rows, where those are on other machines: what these read is a few rows at a time.
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

/// The rows of a source, looked at whenever they are read: they may be anybody's.
#[derive(Clone, Copy)]
pub(crate) struct Raw<'a> {
    source: &'a dyn Source,
    weights: Option<&'a [f64]>,
}

impl<'a> Raw<'a> {
    pub(crate) fn new(source: &'a dyn Source) -> Raw<'a> {
        Raw::weighted(source, None)
    }

    /// Of rows in memory that count differently.
    pub(crate) fn weighted(source: &'a dyn Source, weights: Option<&'a [f64]>) -> Raw<'a> {
        Raw { source, weights }
    }

    /// All rows, where they lie in memory.
    pub(crate) fn points(self) -> Option<&'a Points<'a>> {
        self.source.points()
    }

    /// A run of rows, in `room`.
    pub(crate) fn read(self, rows: Range<usize>, room: &mut Vec<f64>) -> Result<()> {
        let (first, count) = (rows.start, rows.len());
        self.source.read(rows, room)?;
        self.check(room, count, |row| first + row)
    }

    /// All rows, copied where they are elsewhere.
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

/// A method that needs all rows at once is given a sample: nobody else asks.
pub(crate) fn elsewhere() -> Error {
    Error::Source { why: "not all rows can be in memory at once".into() }
}
