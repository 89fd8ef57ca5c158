//! Columns: their names, and the scaling that new data get as the training data did.
//!
//! ```text
//! standard   (x − mean) / standard deviation        minmax   (x − min) / (max − min)        none   x
//! ```

use std::collections::HashSet;
use std::ops::Range;
use std::str::FromStr;

use rayon::prelude::*;

use crate::blocks;
use crate::error::{Error, Result};
use crate::gram::Source;
use crate::points::{Points, Rows, Values};

/// How columns are scaled before the kernel sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scaling {
    /// Mean 0, standard deviation 1.
    #[default]
    Standard,
    /// From 0 to 1.
    Minmax,
    /// As they are.
    None,
}

impl Scaling {
    /// Every choice, with its name.
    pub const ALL: &'static [(&'static str, Scaling)] =
        &[("standard", Scaling::Standard), ("minmax", Scaling::Minmax), ("none", Scaling::None)];

    /// The name users give.
    pub fn name(self) -> &'static str {
        Scaling::ALL.iter().find(|(_, s)| *s == self).expect("all are listed").0
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
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    /// Names, where the data had any.
    pub names: Option<Vec<String>>,
    /// The rule the numbers came from.
    pub scaling: Scaling,
    /// Subtracted from each column …
    pub shift: Vec<f64>,
    /// … which is then divided by this.
    pub scale: Vec<f64>,
    /// Columns that tables may have beside these: the label and what was dropped.
    pub ignored: Vec<String>,
}

/// Rows as the kernel sees them, scaled a block at a time when they are read.
pub(crate) struct Scaled<'a> {
    rows: Rows<'a>,
    columns: &'a Columns,
}

/// What one pass learns of a column.
#[derive(Clone, Copy)]
struct Extent {
    low: f64,
    high: f64,
}

impl Columns {
    /// Learns the scaling from the training points.
    pub fn fit(points: &Points, names: Option<Vec<String>>, scaling: Scaling) -> Result<Columns> {
        let d = points.d();
        if let Some(found) = names.as_ref().map(Vec::len).filter(|len| *len != d) {
            return Err(Error::Width { found, expected: d });
        }
        let mut seen = HashSet::new();
        if let Some(name) = names.iter().flatten().find(|name| !seen.insert(*name)) {
            return Err(Error::parameter("names", format!("{name:?} twice"), "a name of its own for every column"));
        }
        let ranges = ranges(points);
        let (shift, scale) = match scaling {
            Scaling::None => (vec![0.0; d], vec![1.0; d]),
            Scaling::Minmax => ranges.iter().map(|r| (r.low, or_one(r.high - r.low))).unzip(),
            Scaling::Standard => standard(points, &ranges),
        };
        match scale.iter().zip(&shift).position(|(s, m)| !(s.is_finite() && m.is_finite())) {
            Some(column) => Err(Error::Numerical { why: format!("the range of column {column} (from 0) overflows") }),
            None => Ok(Columns { names, scaling, shift, scale, ignored: Vec::new() }),
        }
    }

    /// Number of columns.
    pub fn d(&self) -> usize {
        self.shift.len()
    }

    /// The points as the kernel sees them.
    pub fn apply<'a>(&self, points: &'a Points) -> Result<Points<'a>> {
        if points.d() != self.d() {
            return Err(Error::Width { found: points.d(), expected: self.d() });
        }
        if self.scaling == Scaling::None {
            return Ok(points.slice(0..points.n()));
        }
        let mut values = vec![0.0; points.values().len()];
        let length = blocks::ROWS * self.d();
        let each = |(rows, out): (&[f64], &mut [f64])| self.scale(rows, out);
        match points.n() < blocks::ROWS {
            true => each((points.values(), &mut values)),
            false => points.values().par_chunks(length).zip(values.par_chunks_mut(length)).for_each(each),
        }
        Points::new(self.d(), values).map_err(|error| match error {
            Error::NotFinite { row, column, .. } => Error::Outside { row, column, value: points.row(row)[column] },
            other => other,
        })
    }

    /// The same of rows that are read a block at a time.
    pub(crate) fn scaled<'a>(&'a self, rows: Rows<'a>) -> Result<Scaled<'a>> {
        match rows.d() == self.d() {
            true => Ok(Scaled { rows, columns: self }),
            false => Err(Error::Width { found: rows.d(), expected: self.d() }),
        }
    }

    /// Whole rows, scaled.
    fn scale<T: Copy + Into<f64>>(&self, rows: &[T], out: &mut [f64]) {
        let d = self.d();
        for (row, out) in rows.chunks_exact(d).zip(out.chunks_exact_mut(d)) {
            for (((value, out), shift), scale) in row.iter().zip(out).zip(&self.shift).zip(&self.scale) {
                *out = ((*value).into() - shift) / scale;
            }
        }
    }

    /// The order in which columns of a table named `names` are to be taken; refuses missing and unknown names.
    pub fn order(&self, names: &[String]) -> Result<Vec<usize>> {
        let Some(own) = &self.names else {
            return match names.len() == self.d() {
                true => Ok((0..self.d()).collect()),
                false => Err(Error::Width { found: names.len(), expected: self.d() }),
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
    /// The complaint about the first row that is not finite, as it is or scaled.
    pub(crate) fn fault(&self) -> Option<Error> {
        self.rows.not_finite().or_else(|| {
            let mut room = vec![0.0; self.d()];
            let row = (0..self.n()).find(|&row| self.block(row..row + 1, &mut room).is_none())?;
            let column = room.iter().position(|v| !v.is_finite())?;
            let value = match self.rows.slice(row..row + 1) {
                Values::Double(values) => values[column],
                Values::Single(values) => values[column].into(),
            };
            Some(Error::Outside { row, column, value })
        })
    }
}

impl Source for Scaled<'_> {
    fn n(&self) -> usize {
        self.rows.n()
    }

    fn d(&self) -> usize {
        self.rows.d()
    }

    fn block<'a>(&'a self, rows: Range<usize>, room: &'a mut [f64]) -> Option<Points<'a>> {
        let room = &mut room[..rows.len() * self.d()];
        match (self.rows.slice(rows), self.columns.scaling) {
            (Values::Double(values), Scaling::None) => return Points::few(self.d(), values),
            (Values::Single(values), Scaling::None) => {
                room.iter_mut().zip(values).for_each(|(room, value)| *room = f64::from(*value));
            }
            (Values::Double(values), _) => self.columns.scale(values, room),
            (Values::Single(values), _) => self.columns.scale(values, room),
        }
        Points::few(self.d(), room)
    }
}

fn ranges(points: &Points) -> Vec<Extent> {
    let none = Extent { low: f64::INFINITY, high: f64::NEG_INFINITY };
    blocks::sum(
        points.n(),
        || vec![none; points.d()],
        |ranges, rows| {
            for row in points.slice(rows).rows() {
                for (r, &v) in ranges.iter_mut().zip(row) {
                    *r = Extent { low: r.low.min(v), high: r.high.max(v) };
                }
            }
        },
        |a, b| a.iter_mut().zip(b).for_each(|(a, b)| *a = Extent { low: a.low.min(b.low), high: a.high.max(b.high) }),
    )
}

/// Mean and (population) standard deviation, computed on values divided by the largest, so that squares of
/// huge or tiny numbers neither overflow nor vanish.
fn standard(points: &Points, ranges: &[Extent]) -> (Vec<f64>, Vec<f64>) {
    let unit: Vec<f64> = ranges.iter().map(|r| or_one(r.low.abs().max(r.high.abs()))).collect();
    let mean_of = |f: &(dyn Fn(usize, f64) -> f64 + Sync)| -> Vec<f64> {
        let sums = blocks::sum(
            points.n(),
            || vec![0.0; points.d()],
            |sums, rows| {
                for row in points.slice(rows).rows() {
                    sums.iter_mut().zip(row).enumerate().for_each(|(k, (s, v))| *s += f(k, v / unit[k]));
                }
            },
            |a, b| a.iter_mut().zip(b).for_each(|(a, b)| *a += b),
        );
        sums.iter().map(|s| s / points.n() as f64).collect()
    };
    let mean = mean_of(&|_, v| v);
    let variance = mean_of(&|k, v| (v - mean[k]) * (v - mean[k]));
    let shift = mean.iter().zip(&unit).map(|(m, u)| m * u).collect();
    let scale = (0..points.d()).map(|k| {
        let deviation = variance[k].sqrt();
        // A deviation within rounding of the values is that of a constant column.
        if deviation <= 4.0 * f64::EPSILON { 1.0 } else { deviation * unit[k] }
    });
    (shift, scale.collect())
}

/// A column without extent is shifted but not stretched.
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
    fn scales_by_hand_and_at_any_magnitude() {
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
