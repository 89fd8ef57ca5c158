//! Columns: their names, and the scaling that is learned from the training data and applied to new data.
//!
//! ```text
//! standard   (x − mean) / standard deviation        minmax   (x − min) / (max − min)        none   x
//! ```
//!
//! Columns also store their training range: rows far outside it were probably scaled differently.

mod range;

use std::collections::HashSet;
use std::ops::Range;
use std::str::FromStr;
use std::sync::OnceLock;

use rayon::prelude::*;

use crate::blocks;
use crate::error::{Error, Result};
use crate::exact::ExactSum;
use crate::gram::QueryRows;
use crate::intake::Intake;
use crate::parcel::Parcel;
use crate::points::{Numbers, Points, UncheckedRows, first_not_finite};
use crate::rows::{Errand, Pass, Rows, Sent, fold};
use crate::source::{Raw, elsewhere};
use crate::watch::Watch;

pub(crate) use range::{EXTENT, extent};
pub use range::{FarOutside, Ranges};

/// The scaling of columns before the kernel is applied.
///
/// ```
/// use skpca::Scaling;
///
/// assert_eq!("minmax".parse::<Scaling>()?, Scaling::Minmax);
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scaling {
    /// Mean 0, standard deviation 1.
    #[default]
    Standard,
    /// From 0 to 1.
    Minmax,
    /// No scaling.
    None,
    /// A scaler absorbed by [`Model::with_scaler`](crate::Model::with_scaler); not available for fits.
    Given,
}

/// The name of [`Scaling::Given`] in model files.
const GIVEN: &str = "given";

impl Scaling {
    /// All variants available for fits, with their names.
    pub const ALL: &'static [(&'static str, Scaling)] =
        &[("standard", Scaling::Standard), ("minmax", Scaling::Minmax), ("none", Scaling::None)];

    /// Returns the name that users write.
    pub fn name(self) -> &'static str {
        Scaling::ALL.iter().find(|(_, s)| *s == self).map_or(GIVEN, |(name, _)| name)
    }

    /// Parses the scaling of a model's columns, which may be [`Scaling::Given`].
    pub(crate) fn of_columns(name: &str) -> Result<Scaling> {
        if name == GIVEN { Ok(Scaling::Given) } else { name.parse() }
    }
}

impl FromStr for Scaling {
    type Err = Error;

    fn from_str(text: &str) -> Result<Scaling> {
        Scaling::ALL.iter().find(|(name, _)| *name == text).map(|(_, s)| *s).ok_or_else(|| Error::Unknown {
            what: "scaling",
            name: text.into(),
            valid: Scaling::ALL.iter().map(|(name, _)| name.to_string()).collect(),
        })
    }
}

/// Names and scaling of the columns a model was fitted on.
///
/// ```
/// use skpca::{Columns, Points, Scaling};
///
/// let points = Points::new(1, vec![10.0, 20.0, 30.0])?;
/// let columns = Columns::fit(&points, None, Scaling::Minmax)?;
/// assert_eq!(columns.apply(&points)?.values(), [0.0, 0.5, 1.0]);
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    /// Column names, if the data had any.
    pub names: Option<Vec<String>>,
    /// The rule from which shift and scale were computed.
    pub scaling: Scaling,
    /// The number subtracted from each column.
    pub shift: Vec<f64>,
    /// The number that each column is divided by after the shift.
    pub scale: Vec<f64>,
    /// Names of additional columns that tables may have: the label and dropped columns.
    pub ignored: Vec<String>,
    /// The range of the training rows before scaling; absent in files of older versions.
    pub ranges: Option<Ranges>,
    /// How the columns are made from those of a table, if they are not the same.
    pub intake: Option<Intake>,
}

/// Rows that are scaled block by block as they are read.
pub(crate) struct Scaled<'a> {
    rows: UncheckedRows<'a>,
    columns: &'a Columns,
}

/// The scaled rows of a table: small tables are scaled once, large ones block by block as they are read, which saves a
/// second copy. The columns were fitted to these rows, which are therefore finite when scaled.
pub(crate) struct Table<'a> {
    raw: Raw<'a>,
    columns: Columns,
    /// All scaled rows of a table in memory, computed on first use.
    scaled: OnceLock<Points<'a>>,
}

/// Maximum number of values of a table that is scaled as a whole.
const SMALL: usize = 1_000_000;

impl<'a> Table<'a> {
    /// Creates the table of the rows that `columns` were fitted to.
    pub(crate) fn new(raw: Raw<'a>, columns: Columns) -> Table<'a> {
        let table = Table { raw, columns, scaled: OnceLock::new() };
        if Table::is_small(raw.n(), raw.d()) {
            table.all();
        }
        table
    }

    /// Returns whether a copy of n rows of d columns is cheap.
    pub(crate) fn is_small(n: usize, d: usize) -> bool {
        n.saturating_mul(d) <= SMALL
    }

    /// Returns the unscaled rows.
    pub(crate) fn raw(&self) -> &Raw<'a> {
        &self.raw
    }

    pub(crate) fn columns(&self) -> &Columns {
        &self.columns
    }

    fn all(&self) -> Option<&Points<'a>> {
        let raw = self.raw.points()?;
        Some(self.scaled.get_or_init(|| self.columns.scale_all(raw)))
    }
}

impl Rows for Table<'_> {
    fn n(&self) -> usize {
        self.raw.n()
    }

    fn d(&self) -> usize {
        self.raw.d()
    }

    fn gather(&self, rows: &[usize]) -> Result<Points<'static>> {
        if let Some(scaled) = self.scaled.get() {
            return Ok(scaled.select(rows));
        }
        let raw = self.raw.gather(rows)?;
        Ok(if self.columns.scaling == Scaling::None { raw } else { self.columns.scale_all(&raw).into_owned() })
    }

    fn block<'b>(&'b self, rows: Range<usize>, room: &'b mut Vec<f64>) -> Result<Points<'b>> {
        if let Some(scaled) = self.scaled.get() {
            return Ok(scaled.slice(rows));
        }
        if self.columns.scaling == Scaling::None {
            return self.raw.block(rows, room);
        }
        if let Some(raw) = self.raw.points() {
            room.resize(rows.len() * self.raw.d(), 0.0);
            self.columns.scale(raw.slice(rows).values(), room);
        } else {
            self.raw.read(rows, room)?;
            self.columns.scale_in_place(room);
        }
        Ok(Points::finite(self.raw.d(), &room[..]))
    }

    fn whole(&self) -> Result<&Points<'_>> {
        self.all().ok_or_else(elsewhere)
    }

    fn in_memory(&self) -> bool {
        self.raw.in_memory()
    }

    fn remote(&self) -> Option<Sent<'_>> {
        let Columns { scaling, shift, scale, .. } = &self.columns;
        let sent = self.raw.remote()?;
        Some(Sent { scaling: (*scaling != Scaling::None).then_some((shift, scale)), ..sent })
    }

    fn weights(&self) -> Option<&[f64]> {
        self.raw.weights()
    }
}

impl Columns {
    /// Learns the scaling from the training points.
    pub fn fit(points: &Points, names: Option<Vec<String>>, scaling: Scaling) -> Result<Columns> {
        Columns::of(points, names, scaling, &())
    }

    /// Like [`Columns::fit`], for rows that need not be in memory.
    pub(crate) fn of(
        rows: &dyn Rows,
        names: Option<Vec<String>>,
        scaling: Scaling,
        watch: &dyn Watch,
    ) -> Result<Columns> {
        let (d, watch) = (rows.d(), (watch, "scaling"));
        if let Some(found) = names.as_ref().map(Vec::len).filter(|len| *len != d) {
            return Err(Error::Width { found, expected: d });
        }
        let mut seen = HashSet::new();
        if let Some(name) = names.iter().flatten().find(|name| !seen.insert(*name)) {
            return Err(Error::parameter("names", format!("{name:?} twice"), "a name of its own for every column"));
        }
        let ranges = Ranges::of(rows, watch)?;
        let (shift, scale): (Vec<f64>, Vec<f64>) = match scaling {
            Scaling::None => (vec![0.0; d], vec![1.0; d]),
            Scaling::Minmax => (ranges.low.clone(), (0..d).map(|k| or_one(ranges.high[k] - ranges.low[k])).collect()),
            Scaling::Standard => standard(rows, &ranges, watch)?,
            Scaling::Given => return Err(Error::parameter("scaling", GIVEN, "standard, minmax or none")),
        };
        // Scaling is monotone: if both ends of a column's range stay finite, so do all values between them.
        let sound = |k: usize| [ranges.low[k], ranges.high[k]].iter().all(|v| ((v - shift[k]) / scale[k]).is_finite());
        match (0..d).find(|&k| !(scale[k].is_finite() && sound(k))) {
            Some(column) => Err(Error::Numerical { why: format!("the range of column {column} (from 0) overflows") }),
            None => {
                Ok(Columns { names, scaling, shift, scale, ignored: Vec::new(), ranges: Some(ranges), intake: None })
            }
        }
    }

    /// Returns the columns with a preceding scaler, `x ↦ (x − shift) / scale`, absorbed; `rule` is the equivalent
    /// scaling rule, if there is one.
    pub(crate) fn after_scaler(&self, shift: &[f64], scale: &[f64], rule: Option<Scaling>) -> Result<Columns> {
        let d = self.d();
        if shift.len() != d || scale.len() != d {
            return Err(Error::Width { found: shift.len().min(scale.len()), expected: d });
        }
        let composed = |k: usize| (shift[k] + scale[k] * self.shift[k], scale[k] * self.scale[k]);
        let (shifts, scales): (Vec<f64>, Vec<f64>) = (0..d).map(composed).unzip();
        let sound = |k: &usize| shifts[*k].is_finite() && scales[*k].is_finite() && scales[*k] > 0.0;
        if let Some(k) = (0..d).find(|k| !sound(k)) {
            return Err(Error::parameter("scale", scale[k], "positive numbers that do not overflow"));
        }
        // Standard and min-max scaling give the same result after any scaler.
        let scaling = if self.scaling == Scaling::None { rule.unwrap_or(Scaling::Given) } else { self.scaling };
        let ranges = self.ranges.as_ref().map(|ranges| ranges.unscaled(shift, scale));
        Ok(Columns { scaling, shift: shifts, scale: scales, ranges, ..self.clone() })
    }

    /// Returns the number of columns.
    pub fn d(&self) -> usize {
        self.shift.len()
    }

    /// Returns the scaled points; a value that overflows is an error.
    pub fn apply<'a>(&self, points: &'a Points) -> Result<Points<'a>> {
        if points.d() != self.d() {
            return Err(Error::Width { found: points.d(), expected: self.d() });
        }
        let scaled = self.scale_all(points);
        match first_not_finite(scaled.values()) {
            None => Ok(scaled),
            Some(at) => {
                let (row, column) = (at / self.d(), at % self.d());
                Err(Error::Outside { row, column, value: points.row(row)[column] })
            }
        }
    }

    /// Returns the scaled points without a check that they are finite.
    fn scale_all<'a>(&self, points: &'a Points) -> Points<'a> {
        if self.scaling == Scaling::None {
            return points.slice(0..points.n());
        }
        let mut values = vec![0.0; points.values().len()];
        let length = blocks::ROWS * self.d();
        let each = |(rows, out): (&[f64], &mut [f64])| self.scale(rows, out);
        if points.n() < blocks::ROWS {
            each((points.values(), &mut values))
        } else {
            points.values().par_chunks(length).zip(values.par_chunks_mut(length)).for_each(each)
        }
        Points::finite(self.d(), values)
    }

    /// Returns rows that are scaled block by block as they are read.
    pub(crate) fn scaled<'a>(&'a self, rows: UncheckedRows<'a>) -> Result<Scaled<'a>> {
        if rows.d() == self.d() {
            Ok(Scaled { rows, columns: self })
        } else {
            Err(Error::Width { found: rows.d(), expected: self.d() })
        }
    }

    /// Scales whole rows into `out`.
    fn scale<T: Copy + Into<f64>>(&self, rows: &[T], out: &mut [f64]) {
        let d = self.d();
        for (row, out) in rows.chunks_exact(d).zip(out.chunks_exact_mut(d)) {
            for (((value, out), shift), scale) in row.iter().zip(out).zip(&self.shift).zip(&self.scale) {
                *out = ((*value).into() - shift) / scale;
            }
        }
    }

    /// Scales whole rows in place.
    fn scale_in_place(&self, rows: &mut [f64]) {
        for row in rows.chunks_exact_mut(self.d()) {
            for ((value, shift), scale) in row.iter_mut().zip(&self.shift).zip(&self.scale) {
                *value = (*value - shift) / scale;
            }
        }
    }

    /// Returns for each of the model's columns its index among `names`, those of a table; rejects missing and unknown
    /// names.
    pub fn order(&self, names: &[String]) -> Result<Vec<usize>> {
        let Some(own) = &self.names else {
            return if names.len() == self.d() {
                Ok((0..self.d()).collect())
            } else {
                Err(Error::Width { found: names.len(), expected: self.d() })
            };
        };
        let missing: Vec<String> = own.iter().filter(|n| !names.contains(n)).cloned().collect();
        let unexpected: Vec<String> = names.iter().filter(|n| !own.contains(n)).cloned().collect();
        if !missing.is_empty() || !unexpected.is_empty() {
            return Err(Error::Names { missing, unexpected });
        }
        Ok(own.iter().filter_map(|n| names.iter().position(|m| m == n)).collect())
    }
}

impl Scaled<'_> {
    /// Returns the error for the first row that is not finite, unscaled or scaled.
    pub(crate) fn fault(&self) -> Option<Error> {
        self.rows.not_finite().or_else(|| {
            let mut room = Vec::new();
            let row = (0..self.n()).find(|&row| self.block(row..row + 1, &mut room).is_none())?;
            let column = room.iter().position(|v| !v.is_finite())?;
            let value = match self.rows.slice(row..row + 1) {
                Numbers::Double(values) => values[column],
                Numbers::Single(values) => values[column].into(),
            };
            Some(Error::Outside { row, column, value })
        })
    }
}

impl QueryRows for Scaled<'_> {
    fn n(&self) -> usize {
        self.rows.n()
    }

    fn d(&self) -> usize {
        self.rows.d()
    }

    fn numbers(&self, rows: Range<usize>) -> Numbers<'_> {
        self.rows.slice(rows)
    }

    fn scaling(&self) -> Option<(&[f64], &[f64])> {
        let Columns { scaling, shift, scale, .. } = self.columns;
        (*scaling != Scaling::None).then_some((shift, scale))
    }

    fn block<'a>(&'a self, rows: Range<usize>, room: &'a mut Vec<f64>) -> Option<Points<'a>> {
        room.resize(rows.len() * self.d(), 0.0);
        match (self.rows.slice(rows), self.columns.scaling) {
            (Numbers::Double(values), Scaling::None) => return Points::few(self.d(), values),
            (Numbers::Single(values), Scaling::None) => {
                room.iter_mut().zip(values).for_each(|(room, value)| *room = f64::from(*value));
            }
            (Numbers::Double(values), _) => self.columns.scale(values, room),
            (Numbers::Single(values), _) => self.columns.scale(values, room),
        }
        Points::few(self.d(), room)
    }
}

/// Returns mean and (population) standard deviation, computed on values divided by the largest, so that squares of huge
/// or tiny numbers neither overflow nor underflow.
fn standard(rows: &dyn Rows, ranges: &Ranges, watch: (&dyn Watch, &str)) -> Result<(Vec<f64>, Vec<f64>)> {
    let (weights, weight) = (rows.weights(), rows.weight());
    let unit: Vec<f64> =
        ranges.low.iter().zip(&ranges.high).map(|(low, high)| or_one(low.abs().max(high.abs()))).collect();
    let mean_of = |mean: Option<&[f64]>| -> Result<Vec<f64>> {
        let mean = mean.map(<[f64]>::to_vec);
        let sums = fold(rows, &Powers { unit: unit.clone(), mean, weights }, watch)?;
        Ok(sums.iter().map(|sum| sum.value() / weight).collect())
    };
    let mean = mean_of(None)?;
    let variance = mean_of(Some(&mean))?;
    let shift = mean.iter().zip(&unit).map(|(m, u)| m * u).collect();
    let scale = (0..rows.d()).map(|k| {
        let deviation = variance[k].sqrt();
        // A column whose deviation is within rounding error of its values counts as constant.
        if deviation <= 4.0 * f64::EPSILON { 1.0 } else { deviation * unit[k] }
    });
    Ok((shift, scale.collect()))
}

/// The name of the pass when it is sent to another machine.
pub(crate) const COLUMN_POWERS: &str = "column powers";

/// Restores the pass for means or deviations of columns on another machine.
pub(crate) fn column_powers(mut parcel: Parcel) -> Result<Box<dyn Errand>> {
    let unit = parcel.take(parcel.count("d")?)?;
    let mean = (!parcel.numbers.is_empty()).then(|| parcel.take(unit.len())).transpose()?;
    Ok(Box::new(Powers { unit, mean, weights: None }))
}

/// The sum `Σ w v / unit` of each column, or with a mean `Σ w (v / unit − mean)²`. Weights are only used for rows in
/// memory, so they are never sent.
struct Powers<'a> {
    unit: Vec<f64>,
    mean: Option<Vec<f64>>,
    weights: Option<&'a [f64]>,
}

impl Pass for Powers<'_> {
    type Sum = Vec<ExactSum>;

    fn zero(&self) -> Vec<ExactSum> {
        vec![ExactSum::default(); self.unit.len()]
    }

    fn add(&self, sums: &mut Vec<ExactSum>, block: &Points, first: usize) {
        for (i, row) in block.rows().enumerate() {
            let weight = self.weights.map_or(1.0, |weights| weights[first + i]);
            let sums = sums.iter_mut().zip(row.iter().zip(&self.unit).map(|(v, unit)| v / unit));
            match &self.mean {
                None => sums.for_each(|(sum, v)| sum.add(weight * v)),
                Some(mean) => {
                    sums.zip(mean).for_each(|((sum, v), mean)| sum.add(weight * ((v - mean) * (v - mean))));
                }
            }
        }
    }

    fn merge(&self, left: &mut Vec<ExactSum>, right: Vec<ExactSum>) {
        left.iter_mut().zip(&right).for_each(|(a, b)| a.merge(b));
    }

    fn parcel(&self) -> Parcel {
        let numbers = [&self.unit[..], self.mean.as_deref().unwrap_or_default()].concat();
        Parcel::new(COLUMN_POWERS, numbers).with("d", self.unit.len())
    }

    fn numbers(&self, sums: Vec<ExactSum>) -> Vec<f64> {
        sums.iter().flat_map(ExactSum::numbers).collect()
    }

    fn sum(&self, numbers: Vec<f64>) -> Vec<ExactSum> {
        numbers.chunks_exact(ExactSum::LENGTH).map(ExactSum::of).collect()
    }
}

/// Returns 1 for an extent of 0: constant columns are shifted but not scaled.
fn or_one(extent: f64) -> f64 {
    if extent == 0.0 { 1.0 } else { extent }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaled(values: Vec<f64>, scaling: Scaling) -> Vec<f64> {
        let points = Points::new(1, values).unwrap();
        let columns = Columns::fit(&points, None, scaling).unwrap();
        columns.apply(&points).unwrap().values().to_vec()
    }

    #[test]
    fn scaling_is_correct_at_any_magnitude() {
        assert_eq!(scaled(vec![1.0, 3.0], Scaling::Standard), [-1.0, 1.0]);
        assert_eq!(scaled(vec![1.0, 3.0, 5.0], Scaling::Minmax), [0.0, 0.5, 1.0]);
        assert_eq!(scaled(vec![1.0, 3.0], Scaling::None), [1.0, 3.0]);
        for unit in [1e-300, 1e-150, 1e150, 1e300] {
            let found = scaled(vec![unit, 3.0 * unit], Scaling::Standard);
            assert!((found[0] + 1.0).abs() < 1e-12 && (found[1] - 1.0).abs() < 1e-12, "{unit}: {found:?}");
        }
    }

    #[test]
    fn a_constant_column_becomes_zero() {
        for value in [0.0, 7.0, 1e-150, 0.1] {
            for scaling in [Scaling::Standard, Scaling::Minmax] {
                let found = scaled(vec![value; 7], scaling);
                assert!(found.iter().all(|v| v.abs() < 1e-14), "{value} {scaling:?}: {found:?}");
            }
        }
    }

    #[test]
    fn names_are_matched_in_any_order() {
        let names = |list: &[&str]| list.iter().map(|n| n.to_string()).collect::<Vec<_>>();
        let points = Points::new(2, vec![0.0, 1.0, 1.0, 0.0]).unwrap();
        let columns = Columns::fit(&points, Some(names(&["a", "b"])), Scaling::None).unwrap();
        assert_eq!(columns.order(&names(&["b", "a"])), Ok(vec![1, 0]));
        let message = |list: &[&str]| columns.order(&names(list)).unwrap_err().to_string();
        assert_eq!(message(&["a"]), "columns of the model are missing from the data: 'b'");
        assert_eq!(message(&["a", "b", "c"]), "the model does not know these columns: 'c'");
        assert_eq!(message(&["a", "c"]), "columns do not match the model: missing 'b'; not known to it 'c'");
        assert!(Columns::fit(&points, Some(names(&["a"])), Scaling::None).is_err());
        let twice = Columns::fit(&points, Some(names(&["a", "a"])), Scaling::None).unwrap_err().to_string();
        assert_eq!(twice, "names = \"a\" twice: expected a name of its own for every column");
    }
}
