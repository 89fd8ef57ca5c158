//! Points: a rectangular table of finite numbers. The only module that checks for NaN.

use std::borrow::Cow;
use std::ops::Range;

use rayon::prelude::*;

use crate::error::{Error, Result};

/// `n` rows of `d` finite numbers, row after row, owned or borrowed from the caller without a copy.
///
/// ```
/// let points = skpca::Points::new(2, vec![0.0, 1.0, 2.0, 3.0])?;
/// assert_eq!((points.n(), points.d(), points.row(1)), (2, 2, &[2.0, 3.0][..]));
/// assert!(skpca::Points::new(2, vec![0.0, f64::NAN]).is_err());
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Points<'a> {
    d: usize,
    values: Cow<'a, [f64]>,
}

impl<'a> Points<'a> {
    /// Creates points from rows of `d` values each; rejects empty and ragged tables and values that are not finite.
    pub fn new(d: usize, values: impl Into<Cow<'a, [f64]>>) -> Result<Points<'a>> {
        let values = values.into();
        check_shape(d, values.len())?;
        match first_not_finite(&values) {
            Some(at) => Err(Error::NotFinite { row: at / d, column: at % d, value: values[at] }),
            None => Ok(Points { d, values }),
        }
    }

    /// Creates points from values that are known to be finite, without a check.
    pub(crate) fn finite(d: usize, values: impl Into<Cow<'a, [f64]>>) -> Points<'a> {
        Points { d, values: values.into() }
    }

    /// Creates points from a few rows of `d` values each; returns `None` if a value is not finite.
    pub(crate) fn few(d: usize, values: &'a [f64]) -> Option<Points<'a>> {
        all_finite(values).then_some(Points { d, values: Cow::Borrowed(values) })
    }

    /// Returns the number of rows.
    pub fn n(&self) -> usize {
        self.values.len() / self.d
    }

    /// Returns the number of columns.
    pub fn d(&self) -> usize {
        self.d
    }

    /// Returns row `i`.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.d..(i + 1) * self.d]
    }

    /// Iterates over the rows in order.
    pub fn rows(&self) -> std::slice::ChunksExact<'_, f64> {
        self.values.chunks_exact(self.d)
    }

    /// Returns all values, row after row.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Borrows a range of rows.
    pub fn slice(&self, rows: Range<usize>) -> Points<'_> {
        Points { d: self.d, values: Cow::Borrowed(&self.values[rows.start * self.d..rows.end * self.d]) }
    }

    /// Returns the same points, owned.
    pub fn into_owned(self) -> Points<'static> {
        Points { d: self.d, values: Cow::Owned(self.values.into_owned()) }
    }

    /// Copies the given rows in the order given.
    pub fn select(&self, rows: &[usize]) -> Points<'static> {
        let mut values = Vec::with_capacity(rows.len() * self.d);
        rows.iter().for_each(|&i| values.extend_from_slice(self.row(i)));
        Points { d: self.d, values: Cow::Owned(values) }
    }

    /// Returns the columns that are nearly constant, in that at least `share` and more than half of the rows have the
    /// same value, with the share of those rows.
    pub fn steady(&self, share: f64) -> Vec<(usize, f64)> {
        // Boyer–Moore majority vote: when different values cancel in pairs, the majority value is left.
        let mut leaders: Vec<(f64, usize)> = self.row(0).iter().map(|value| (*value, 0)).collect();
        for row in self.rows() {
            for ((leader, votes), value) in leaders.iter_mut().zip(row) {
                match (*votes, leader == value) {
                    (0, _) => (*leader, *votes) = (*value, 1),
                    (_, true) => *votes += 1,
                    (_, false) => *votes -= 1,
                }
            }
        }
        let mut counts = vec![0_usize; self.d];
        for row in self.rows() {
            counts.iter_mut().zip(&leaders).zip(row).for_each(|((n, (leader, _)), v)| *n += usize::from(leader == v));
        }
        let shares = counts.into_iter().map(|count| count as f64 / self.n() as f64).enumerate();
        shares.filter(|(_, found)| *found >= share && *found > 0.5).collect()
    }

    /// Returns the mean row, computed as a running mean so that huge values do not overflow.
    pub(crate) fn mean(&self) -> Vec<f64> {
        self.weighted_mean(None)
    }

    /// Returns the weighted mean row.
    pub(crate) fn weighted_mean(&self, weights: Option<&[f64]>) -> Vec<f64> {
        let (mut mean, mut total) = (vec![0.0; self.d], 0.0);
        for (i, row) in self.rows().enumerate() {
            let count = weights.map_or(1.0, |weights| weights[i]);
            total += count;
            let part = total / count;
            for (m, v) in mean.iter_mut().zip(row) {
                // Not (v − m)/count: the difference of two huge values may overflow.
                *m += v / part - *m / part;
            }
        }
        mean
    }
}

/// Rows in the caller's memory, in 64 or 32 bits. They are not yet checked for NaN: that happens block by block as they
/// are read.
///
/// ```
/// let rows = skpca::UncheckedRows::new(2, &[0.0_f32, 1.0, 2.0, 3.0][..])?;
/// assert_eq!((rows.n(), rows.d()), (2, 2));
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct UncheckedRows<'a> {
    d: usize,
    values: Numbers<'a>,
}

/// The values of some rows, row after row, in either precision.
///
/// ```
/// use skpca::{Numbers, UncheckedRows};
///
/// assert_eq!(UncheckedRows::new(2, &[1.0_f32, 2.0, 3.0, 4.0][..])?.n(), 2);
/// assert!(matches!(Numbers::from(&[1.0_f64][..]), Numbers::Double([_])));
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Numbers<'a> {
    /// In 64 bits.
    Double(&'a [f64]),
    /// In 32 bits.
    Single(&'a [f32]),
}

impl<'a> From<&'a [f64]> for Numbers<'a> {
    fn from(values: &'a [f64]) -> Numbers<'a> {
        Numbers::Double(values)
    }
}

impl<'a> From<&'a [f32]> for Numbers<'a> {
    fn from(values: &'a [f32]) -> Numbers<'a> {
        Numbers::Single(values)
    }
}

impl<'a> From<&'a Points<'_>> for UncheckedRows<'a> {
    fn from(points: &'a Points<'_>) -> UncheckedRows<'a> {
        UncheckedRows { d: points.d, values: Numbers::Double(&points.values) }
    }
}

impl<'a> UncheckedRows<'a> {
    /// Creates rows of `d` values each; rejects empty and ragged tables.
    pub fn new(d: usize, values: impl Into<Numbers<'a>>) -> Result<UncheckedRows<'a>> {
        let values = values.into();
        check_shape(d, values.len())?;
        Ok(UncheckedRows { d, values })
    }

    /// Returns the number of rows.
    pub fn n(&self) -> usize {
        self.values.len() / self.d
    }

    /// Returns the number of columns.
    pub fn d(&self) -> usize {
        self.d
    }

    /// Returns the values of a range of rows.
    pub(crate) fn slice(&self, rows: Range<usize>) -> Numbers<'a> {
        let range = rows.start * self.d..rows.end * self.d;
        match self.values {
            Numbers::Double(values) => Numbers::Double(&values[range]),
            Numbers::Single(values) => Numbers::Single(&values[range]),
        }
    }

    /// Returns the same rows as points; a number that is not finite is an error.
    pub(crate) fn checked(&self) -> Result<Points<'a>> {
        match self.values {
            Numbers::Double(values) => Points::new(self.d, values),
            Numbers::Single(values) => Points::new(self.d, values.iter().map(|&v| v.into()).collect::<Vec<f64>>()),
        }
    }

    /// Returns an error that names the first NaN or infinity, if there is one.
    pub(crate) fn not_finite(&self) -> Option<Error> {
        let (at, value) = match self.values {
            Numbers::Double(values) => first_not_finite(values).map(|at| (at, values[at])),
            Numbers::Single(values) => values.iter().position(|v| !v.is_finite()).map(|at| (at, values[at].into())),
        }?;
        Some(Error::NotFinite { row: at / self.d, column: at % self.d, value })
    }
}

impl Numbers<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Numbers::Double(values) => values.len(),
            Numbers::Single(values) => values.len(),
        }
    }
}

fn check_shape(d: usize, values: usize) -> Result<()> {
    if d == 0 {
        return Err(Error::Empty { what: "columns" });
    }
    if values == 0 {
        return Err(Error::Empty { what: "rows" });
    }
    match values % d {
        0 => Ok(()),
        _ => Err(Error::Shape { rows: values.div_ceil(d), columns: d, values }),
    }
}

/// Returns whether all values are finite, without a branch per value.
pub(crate) fn all_finite<T: Copy + Into<f64>>(values: &[T]) -> bool {
    values.iter().fold(true, |sound, v| sound & (*v).into().is_finite())
}

/// Returns the index of the first NaN or infinity. A small number of values is checked on the calling thread.
pub(crate) fn first_not_finite(values: &[f64]) -> Option<usize> {
    #[cfg(test)]
    crate::counters::count(|counts| counts.numbers += values.len());
    const CHUNK: usize = 4096;
    let unsound = |chunk: &[f64]| !all_finite(chunk);
    let chunk = if values.len() < 100_000 {
        values.chunks(CHUNK).position(unsound)
    } else {
        values.par_chunks(CHUNK).position_first(unsound)
    }?;
    let rest = &values[chunk * CHUNK..];
    rest.iter().position(|v| !v.is_finite()).map(|at| chunk * CHUNK + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_ragged_empty_and_non_finite_tables() {
        let message = |d, values: Vec<f64>| Points::new(d, values).unwrap_err().to_string();
        assert_eq!(message(0, vec![]), "the data have no columns");
        assert_eq!(message(2, vec![]), "the data have no rows");
        assert_eq!(message(2, vec![1.0, 2.0, 3.0]), "3 values do not fill 2 rows × 2 columns");
        assert_eq!(message(2, vec![1.0, 2.0, f64::NAN, 3.0]), "row 1, column 0 (from 0): NaN is not a finite number");
        assert_eq!(
            message(1, vec![1.0, f64::NEG_INFINITY, f64::NAN]),
            "row 1, column 0 (from 0): -inf is not a finite number"
        );
    }

    #[test]
    fn mean_of_huge_values_is_finite() {
        let points = Points::new(1, vec![f64::MAX, -f64::MAX, f64::MAX]).unwrap();
        assert!(points.mean()[0].is_finite());
    }

    #[test]
    fn first_non_finite_value_is_found() {
        for (n, at) in [(10, vec![3]), (5000, vec![4097, 4999]), (300_000, vec![250_000, 299_999]), (300_000, vec![])] {
            let mut values = vec![1.0; n];
            at.iter().for_each(|&at| values[at] = if at % 2 == 0 { f64::NAN } else { f64::NEG_INFINITY });
            assert_eq!(first_not_finite(&values), at.first().copied(), "{n} {at:?}");
        }
    }
}
