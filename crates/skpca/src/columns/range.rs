//! The range of the training rows, and whether new rows are so far outside it that they were probably scaled
//! differently.

use std::fmt;

use super::Columns;
use crate::error::Result;
use crate::parcel::Parcel;
use crate::points::{Numbers, Points, UncheckedRows};
use crate::rows::{Errand, Pass, Rows, fold};
use crate::watch::Watch;

/// A column is far outside if most rows are beyond its range by more than this many times its extent.
const FAR: f64 = 10.0;
/// Rows are also far outside if in half of the columns most of them are out of range at all. That takes at least this
/// many rows, because a few may be novel.
const MANY_ROWS: usize = 10;
/// Maximum number of values of a batch that are checked.
const MAX_CHECKED: usize = 1 << 16;
/// Maximum number of rows of a batch that are checked.
const MAX_CHECKED_ROWS: usize = 256;

/// The lowest and the highest training value of each column.
///
/// ```
/// use skpca::{Fit, Points};
///
/// let points = Points::new(1, vec![10.0, 30.0, 20.0, 11.0])?;
/// let model = Fit { components: Some(1), ..Fit::default() }.train(&points)?;
/// let ranges = model.parts().columns.ranges.as_ref().expect("a new model knows them");
/// assert_eq!((ranges.low[0], ranges.high[0]), (10.0, 30.0));
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Ranges {
    /// Lowest values.
    pub low: Vec<f64>,
    /// Highest values.
    pub high: Vec<f64>,
}

/// A description of rows far outside the range of the training rows, such as raw rows given to a model of scaled rows.
///
/// ```
/// use skpca::{Fit, Points, toys};
///
/// let model = Fit::default().train(&toys::parabola(0))?;
/// let far = model.far_outside(&Points::new(2, vec![0.0, 1e6])?).expect("a million is far from a parabola");
/// assert_eq!((far.column, far.value), (1, 1e6));
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct FarOutside {
    /// The column that is furthest outside, in units of its extent.
    pub column: usize,
    /// Its name, if the training data had names.
    pub name: Option<String>,
    /// Its value furthest outside.
    pub value: f64,
    /// The range of the training rows.
    pub range: (f64, f64),
}

impl fmt::Display for FarOutside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FarOutside { column, name, value, range: (low, high) } = self;
        match name {
            Some(name) => write!(f, "column '{name}'")?,
            None => write!(f, "column {column} (from 0)")?,
        }
        write!(
            f,
            " is far outside the range of the training rows: {value:.4} is not near {low:.4} to {high:.4}; \
             were the training rows scaled, and these rows are not?"
        )
    }
}

/// Statistics of a batch in one column.
#[derive(Clone, Copy, Default)]
struct Seen {
    outside: usize,
    far: usize,
    /// The largest distance from the range, in units of its extent, and the value there.
    furthest: (f64, f64),
}

impl Ranges {
    /// Computes the ranges in one pass over the rows.
    pub(crate) fn of(rows: &dyn Rows, watch: (&dyn Watch, &str)) -> Result<Ranges> {
        fold(rows, &Extent { d: rows.d() }, watch)
    }

    fn include(&mut self, low: &[f64], high: &[f64]) {
        self.low.iter_mut().zip(low).for_each(|(a, b)| *a = a.min(*b));
        self.high.iter_mut().zip(high).for_each(|(a, b)| *a = a.max(*b));
    }

    /// Returns the ranges before a scaler, `x ↦ (x − shift) / scale`.
    pub(super) fn unscaled(&self, shift: &[f64], scale: &[f64]) -> Ranges {
        let raw = |values: &[f64]| values.iter().zip(shift.iter().zip(scale)).map(|(v, (a, b))| v * b + a).collect();
        Ranges { low: raw(&self.low), high: raw(&self.high) }
    }

    fn see(&self, seen: &mut [Seen], k: usize, value: f64) {
        let extent = self.high[k] - self.low[k];
        let beyond = (self.low[k] - value).max(value - self.high[k]);
        // A constant column has no extent to compare with.
        if beyond > 0.0 && extent > 0.0 {
            seen[k].outside += 1;
            seen[k].far += usize::from(beyond > FAR * extent);
            if beyond / extent > seen[k].furthest.0 {
                seen[k].furthest = (beyond / extent, value);
            }
        }
    }
}

/// The name of the pass when it is sent to another machine.
pub(crate) const EXTENT: &str = "ranges";

/// Restores the pass for the ranges of columns on another machine.
pub(crate) fn extent(parcel: Parcel) -> Result<Box<dyn Errand>> {
    Ok(Box::new(Extent { d: parcel.count("d")? }))
}

/// The pass for the ranges of `d` columns.
struct Extent {
    d: usize,
}

impl Pass for Extent {
    type Sum = Ranges;

    fn zero(&self) -> Ranges {
        Ranges { low: vec![f64::INFINITY; self.d], high: vec![f64::NEG_INFINITY; self.d] }
    }

    fn add(&self, ranges: &mut Ranges, block: &Points, _: usize) {
        block.rows().for_each(|row| ranges.include(row, row));
    }

    fn merge(&self, left: &mut Ranges, right: Ranges) {
        left.include(&right.low, &right.high);
    }

    fn parcel(&self) -> Parcel {
        Parcel::new(EXTENT, Vec::new()).with("d", self.d)
    }

    fn numbers(&self, sum: Ranges) -> Vec<f64> {
        [sum.low, sum.high].concat()
    }

    fn sum(&self, numbers: Vec<f64>) -> Ranges {
        let (low, high) = numbers.split_at(self.d);
        Ranges { low: low.to_vec(), high: high.to_vec() }
    }
}

impl Columns {
    /// Returns a description if most of these rows are far outside the range of the training rows; `None` also if the
    /// range is not known.
    pub(crate) fn far_outside(&self, rows: UncheckedRows) -> Option<FarOutside> {
        let ranges = self.ranges.as_ref().filter(|_| rows.d() == self.d())?;
        let looked = rows.n().min((MAX_CHECKED / self.d()).clamp(1, MAX_CHECKED_ROWS));
        let mut seen = vec![Seen::default(); self.d()];
        for i in 0..looked {
            let row = i * rows.n() / looked;
            match rows.slice(row..row + 1) {
                Numbers::Double(values) => {
                    values.iter().enumerate().for_each(|(k, v)| ranges.see(&mut seen, k, *v));
                }
                Numbers::Single(values) => {
                    values.iter().enumerate().for_each(|(k, v)| ranges.see(&mut seen, k, f64::from(*v)));
                }
            }
        }
        let most = |count: usize| 2 * count > looked;
        let varying = (0..self.d()).filter(|&k| ranges.high[k] > ranges.low[k]).count();
        let outside = seen.iter().filter(|column| most(column.outside)).count();
        let systematic = looked >= MANY_ROWS && outside > 0 && 2 * outside >= varying;
        if !systematic && !seen.iter().any(|column| most(column.far)) {
            return None;
        }
        let column = (0..self.d()).max_by(|&a, &b| seen[a].furthest.0.total_cmp(&seen[b].furthest.0))?;
        Some(FarOutside {
            column,
            name: self.names.as_ref().map(|names| names[column].clone()),
            value: seen[column].furthest.1,
            range: (ranges.low[column], ranges.high[column]),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::columns::{Columns, Scaling};
    use crate::points::{Points, UncheckedRows};
    use crate::toys;

    fn columns(points: &Points) -> Columns {
        let names = Some((0..points.d()).map(|k| format!("c{k}")).collect());
        Columns::fit(points, names, Scaling::None).unwrap()
    }

    /// Returns the message for rows that are the training rows times a number, plus a number.
    fn message(points: &Points, times: f64, plus: f64) -> Option<String> {
        let moved: Vec<f64> = points.values().iter().map(|v| times * v + plus).collect();
        let rows = UncheckedRows::new(points.d(), &moved[..]).unwrap();
        columns(points).far_outside(rows).map(|far| far.to_string())
    }

    #[test]
    fn rows_like_the_training_rows_are_not_far_outside() {
        let points = toys::normal(500, 4, 0);
        for (times, plus) in [(1.0, 0.0), (2.0, 0.0), (1.0, 2.0), (0.01, 0.0), (-1.0, 0.5)] {
            assert_eq!(message(&points, times, plus), None, "{times} {plus}");
        }
    }

    #[test]
    fn unscaled_rows_are_far_outside() {
        let points = toys::normal(500, 4, 0);
        for (times, plus) in [(30.0, 500.0), (1.0, 10.0), (0.1, -9.0)] {
            let text = message(&points, times, plus).unwrap_or_else(|| panic!("{times} {plus}"));
            assert!(text.contains("' is far outside the range of the training rows: "), "{text}");
        }
    }

    #[test]
    fn one_novel_row_is_not_far_outside_but_an_extreme_one_is() {
        let points = toys::normal(500, 4, 0);
        let columns = columns(&points);
        let of = |row: &[f64]| columns.far_outside(UncheckedRows::new(4, row).unwrap());
        assert_eq!(of(&[12.0, -9.0, 7.0, 0.0]), None);
        let far = of(&[12.0, 900.0, 7.0, 0.0]).unwrap();
        assert_eq!((far.column, far.name.as_deref(), far.value), (1, Some("c1"), 900.0));
        let single = [12.0_f32, 900.0, 7.0, 0.0];
        assert_eq!(columns.far_outside(UncheckedRows::new(4, &single[..]).unwrap()), Some(far));
        assert_eq!(columns.far_outside(UncheckedRows::new(2, &[1e9, 1e9][..]).unwrap()), None, "an error elsewhere");
    }

    #[test]
    fn one_column_in_other_units_is_far_outside_and_constant_columns_are_ignored() {
        let points = Points::new(2, (0..100).flat_map(|i| [f64::from(i % 10), 7.0]).collect::<Vec<_>>()).unwrap();
        let of = |a: f64, b: f64| columns(&points).far_outside(UncheckedRows::new(2, &[a, b][..]).unwrap());
        assert!(of(3.0, 1e9).is_none() && of(100.0, 7.0).is_some() && of(50.0, 7.0).is_none());
        assert!(of(f64::NAN, 7.0).is_none(), "an error elsewhere");
    }
}
