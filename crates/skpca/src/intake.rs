//! Encodes the columns of a table, with empty cells and categories, as the numbers that a model is fitted to.
//!
//! ```text
//! number     x; an empty cell becomes the median of the training rows
//! category   one column per value of the training rows, sorted: 1 if the cell has that value, else 0 (one-hot);
//!            an empty cell becomes the most frequent value
//! ```
//!
//! The encoding learned from the training rows is stored with the model and applied to new rows.

use std::collections::{BTreeMap, HashSet};
use std::str::FromStr;

use serde_json::{Map, Value, json};

use crate::error::{Error, Result};

/// Maximum number of categories of a column: a column with more probably holds names or keys.
const MOST_CATEGORIES: usize = 1000;

/// The treatment of empty cells.
///
/// ```
/// use skpca::Missing;
///
/// assert_eq!("median".parse::<Missing>()?, Missing::Median);
/// assert_eq!(Missing::default().name(), "refuse");
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// They are an error.
    #[default]
    Refuse,
    /// They are filled: with the median of the column, or the most frequent category.
    Median,
    /// Their rows are left out.
    Drop,
}

/// The treatment of categories that do not occur in the training rows.
///
/// ```
/// use skpca::Unknown;
///
/// assert_eq!("zero".parse::<Unknown>()?, Unknown::Zero);
/// assert_eq!(Unknown::default().name(), "refuse");
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unknown {
    /// They are an error.
    #[default]
    Refuse,
    /// All columns of the category are 0.
    Zero,
}

impl Missing {
    /// All variants with their names.
    pub const ALL: &'static [(&'static str, Missing)] =
        &[("refuse", Missing::Refuse), ("median", Missing::Median), ("drop", Missing::Drop)];

    /// Returns the name that users write.
    pub fn name(self) -> &'static str {
        Missing::ALL.iter().find(|(_, m)| *m == self).map_or("", |(name, _)| name)
    }
}

impl Unknown {
    /// All variants with their names.
    pub const ALL: &'static [(&'static str, Unknown)] = &[("refuse", Unknown::Refuse), ("zero", Unknown::Zero)];

    /// Returns the name that users write.
    pub fn name(self) -> &'static str {
        Unknown::ALL.iter().find(|(_, u)| *u == self).map_or("", |(name, _)| name)
    }
}

impl FromStr for Missing {
    type Err = Error;

    fn from_str(text: &str) -> Result<Missing> {
        choice("treatment of missing values", text, Missing::ALL)
    }
}

impl FromStr for Unknown {
    type Err = Error;

    fn from_str(text: &str) -> Result<Unknown> {
        choice("treatment of unknown categories", text, Unknown::ALL)
    }
}

fn choice<T: Copy>(what: &'static str, text: &str, all: &[(&str, T)]) -> Result<T> {
    all.iter().find(|(name, _)| *name == text).map(|(_, choice)| *choice).ok_or_else(|| Error::Unknown {
        what,
        name: text.into(),
        valid: all.iter().map(|(name, _)| name.to_string()).collect(),
    })
}

/// The encoding of a table before its columns are scaled.
///
/// ```
/// use skpca::{Cell, Intake, Missing, Unknown};
///
/// let pumps = ["on", "off", "on"];
/// let learned = Intake::learn(&["pump".into()], 3, |i, _| Cell::Text(pumps[i]), (Missing::Refuse, Unknown::Refuse))?;
/// assert_eq!(learned.names(), ["pump=off", "pump=on"]);
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Intake {
    /// The columns that a table must have.
    pub inputs: Vec<Input>,
    /// The treatment of empty cells.
    pub missing: Missing,
    /// The treatment of categories that do not occur in the training rows.
    pub unknown: Unknown,
    /// The time column, which is not an input.
    pub time: Option<String>,
    /// The share of empty cells in the training rows.
    pub empty: f64,
}

/// An input column of a table.
///
/// ```
/// use skpca::{Cell, Intake, Missing, Unknown};
///
/// let pumps = ["on", "off", "on"];
/// let learned = Intake::learn(&["pump".into()], 3, |i, _| Cell::Text(pumps[i]), (Missing::Refuse, Unknown::Refuse))?;
/// assert_eq!(learned.inputs[0].name, "pump");
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// Its name, or its number from 0 in a table without names.
    pub name: String,
    /// The kind of its values.
    pub kind: Kind,
}

/// The kind of values in a column.
///
/// ```
/// use skpca::{Cell, Intake, Kind, Missing, Unknown};
///
/// let pumps = ["on", "off", "on"];
/// let learned = Intake::learn(&["pump".into()], 3, |i, _| Cell::Text(pumps[i]), (Missing::Refuse, Unknown::Refuse))?;
/// assert!(matches!(&learned.inputs[0].kind, Kind::Category { values, .. } if values == &["off", "on"]));
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Numbers.
    Number {
        /// The median of the training rows, if empty cells are filled.
        fill: Option<f64>,
    },
    /// Categories.
    Category {
        /// The categories of the training rows, sorted.
        values: Vec<String>,
        /// The index of the most frequent one, if empty cells are filled.
        fill: Option<usize>,
    },
}

/// A cell of a table.
///
/// ```
/// use skpca::Cell;
///
/// assert!(Cell::Text("").is_empty() && Cell::Number(f64::NAN).is_empty() && !Cell::Number(0.0).is_empty());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// A number; NaN if the cell is empty.
    Number(f64),
    /// A category; blank if the cell is empty.
    Text(&'a str),
}

impl Cell<'_> {
    /// Returns whether the cell is empty.
    pub fn is_empty(&self) -> bool {
        match self {
            Cell::Number(value) => value.is_nan(),
            Cell::Text(text) => text.trim().is_empty(),
        }
    }
}

impl Intake {
    /// Learns fill values and categories from training rows. `cell(row, column)` returns the cells of the `named`
    /// columns; all cells of a column are of one kind.
    ///
    /// ```
    /// use skpca::{Cell, Intake, Missing, Unknown};
    ///
    /// let rows = [(1.0, "on"), (f64::NAN, "off"), (3.0, "on")];
    /// let cell = |i: usize, column: usize| if column == 0 { Cell::Number(rows[i].0) } else { Cell::Text(rows[i].1) };
    /// let names = ["load".to_string(), "pump".to_string()];
    /// let intake = Intake::learn(&names, rows.len(), cell, (Missing::Median, Unknown::Refuse))?;
    /// assert_eq!(intake.names(), ["load", "pump=off", "pump=on"]);
    /// let mut row = Vec::new();
    /// let filled = intake.encode(1, |column| cell(1, column), &mut row)?;
    /// assert_eq!((filled, row), (1, vec![2.0, 1.0, 0.0]));
    /// # Ok::<(), skpca::Error>(())
    /// ```
    pub fn learn<'a>(
        named: &[String],
        rows: usize,
        cell: impl Fn(usize, usize) -> Cell<'a>,
        (missing, unknown): (Missing, Unknown),
    ) -> Result<Intake> {
        let mut empty = 0;
        let mut inputs = Vec::with_capacity(named.len());
        for (column, name) in named.iter().enumerate() {
            let present = (0..rows).map(|row| cell(row, column)).filter(|cell| !cell.is_empty());
            let (count, kind) = learn_column(name, present, missing)?;
            empty += rows - count;
            inputs.push(Input { name: name.clone(), kind });
        }
        let empty = empty as f64 / (rows * named.len()).max(1) as f64;
        Ok(Intake { inputs, missing, unknown, time: None, empty })
    }

    /// Returns the number of encoded columns.
    pub fn width(&self) -> usize {
        self.inputs.iter().map(Input::width).sum()
    }

    /// Returns the names of the encoded columns: `mode=auto` for the value `auto` of the category `mode`.
    pub fn names(&self) -> Vec<String> {
        let of = |input: &Input| match &input.kind {
            Kind::Number { .. } => vec![input.name.clone()],
            Kind::Category { values, .. } => values.iter().map(|value| format!("{}={value}", input.name)).collect(),
        };
        self.inputs.iter().flat_map(of).collect()
    }

    /// Iterates over the names of the categorical columns.
    pub fn categories(&self) -> impl Iterator<Item = &String> {
        let category = |input: &&Input| matches!(input.kind, Kind::Category { .. });
        self.inputs.iter().filter(category).map(|input| &input.name)
    }

    /// Returns whether a row has an empty cell.
    pub fn is_gappy<'a>(&self, cell: impl Fn(usize) -> Cell<'a>) -> bool {
        (0..self.inputs.len()).any(|column| cell(column).is_empty())
    }

    /// Appends the encoded numbers of a row and returns the number of filled cells; `row` is the row's number for
    /// messages. On an error nothing is appended.
    pub fn encode<'a>(&self, row: usize, cell: impl Fn(usize) -> Cell<'a>, out: &mut Vec<f64>) -> Result<usize> {
        let (start, mut filled) = (out.len(), 0);
        for (column, input) in self.inputs.iter().enumerate() {
            let cell = cell(column);
            filled += usize::from(cell.is_empty());
            if let Err(rejected) = input.encode(cell, self.unknown, out) {
                out.truncate(start);
                let column = input.name.clone();
                return Err(match rejected {
                    Rejected::Empty => Error::EmptyCell { row, column },
                    Rejected::Unknown { value, expected } => Error::UnknownCategory { row, column, value, expected },
                });
            }
        }
        Ok(filled)
    }
}

fn learn_column<'a>(name: &str, present: impl Iterator<Item = Cell<'a>>, missing: Missing) -> Result<(usize, Kind)> {
    let (mut numbers, mut counts) = (Vec::new(), BTreeMap::new());
    let mut texts = 0;
    for cell in present {
        match cell {
            Cell::Number(value) if missing == Missing::Median => numbers.push(value),
            // Only their count matters.
            Cell::Number(_) => numbers.push(0.0),
            Cell::Text(text) => {
                texts += 1;
                *counts.entry(text.trim()).or_insert(0_usize) += 1;
            }
        }
    }
    if numbers.is_empty() && texts == 0 {
        return Err(Error::parameter("column", name, "a value in at least one row: leave it out"));
    }
    let fills = missing == Missing::Median;
    if texts == 0 {
        let count = numbers.len();
        return Ok((count, Kind::Number { fill: fills.then(|| median(numbers)) }));
    }
    if counts.len() > MOST_CATEGORIES {
        let found = format!("{name}, with {} different values", counts.len());
        return Err(Error::parameter("categorical", found, "at most 1000 categories: leave the column out"));
    }
    let most = counts.values().max().copied();
    let fill = counts.values().position(|count| Some(*count) == most).filter(|_| fills);
    Ok((texts, Kind::Category { values: counts.into_keys().map(String::from).collect(), fill }))
}

/// Returns the median: the mean of the two middle values if their number is even.
fn median(mut values: Vec<f64>) -> f64 {
    let half = values.len() / 2;
    let odd = values.len() % 2 == 1;
    let (below, middle, _) = values.select_nth_unstable_by(half, f64::total_cmp);
    let low = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // Halved before they are added, because the sum of two huge values overflows.
    if odd { *middle } else { low / 2.0 + *middle / 2.0 }
}

/// The reason why a cell is rejected.
enum Rejected {
    Empty,
    Unknown { value: String, expected: String },
}

impl Input {
    /// Returns the number of encoded columns of this input.
    pub fn width(&self) -> usize {
        match &self.kind {
            Kind::Number { .. } => 1,
            Kind::Category { values, .. } => values.len(),
        }
    }

    fn encode(&self, cell: Cell, unknown: Unknown, out: &mut Vec<f64>) -> std::result::Result<(), Rejected> {
        let unexpected =
            |value: &str, expected: &str| Rejected::Unknown { value: value.into(), expected: expected.into() };
        match (&self.kind, cell) {
            (Kind::Number { fill }, Cell::Number(value)) if value.is_nan() => out.push(fill.ok_or(Rejected::Empty)?),
            (Kind::Number { .. }, Cell::Number(value)) => out.push(value),
            (Kind::Category { values, fill }, Cell::Text(text)) => {
                let place = match text.trim() {
                    "" => Some(fill.ok_or(Rejected::Empty)?),
                    text => values.binary_search_by(|value| value.as_str().cmp(text)).ok(),
                };
                if place.is_none() && unknown == Unknown::Refuse {
                    return Err(unexpected(text.trim(), &format!("one of {}", shortened(values))));
                }
                out.extend((0..values.len()).map(|k| f64::from(u8::from(place == Some(k)))));
            }
            (Kind::Number { .. }, Cell::Text(text)) => return Err(unexpected(text, "a number")),
            (Kind::Category { .. }, Cell::Number(value)) => return Err(unexpected(&value.to_string(), "a category")),
        }
        Ok(())
    }
}

/// Returns a list of the first few values.
fn shortened(values: &[String]) -> String {
    const SHOWN: usize = 8;
    let more = if values.len() > SHOWN { format!(", … ({} in all)", values.len()) } else { String::new() };
    format!("{}{more}", values[..values.len().min(SHOWN)].join(", "))
}

/// The encoding in a model file.
impl Intake {
    /// Returns the encoding as a JSON object.
    pub fn to_json(&self) -> Value {
        let input = |input: &Input| match &input.kind {
            Kind::Number { fill } => json!({ "name": input.name, "fill": fill }),
            Kind::Category { values, fill } => json!({ "name": input.name, "categories": values, "fill": fill }),
        };
        json!({
            "inputs": self.inputs.iter().map(input).collect::<Vec<_>>(),
            "missing": self.missing.name(),
            "unknown": self.unknown.name(),
            "time": self.time,
            "empty": self.empty,
        })
    }

    /// Reads a JSON object as [`Intake::to_json`] writes it.
    pub(crate) fn from_json(json: &Value) -> Result<Intake> {
        let wrong = |what: &str| Error::file(format!("its intake: '{what}' is missing or of the wrong type"));
        let object = json.as_object().ok_or_else(|| wrong("intake"))?;
        let text = |name: &str| object.get(name).and_then(Value::as_str).ok_or_else(|| wrong(name));
        let inputs = object.get("inputs").and_then(Value::as_array).ok_or_else(|| wrong("inputs"))?;
        let input = |input: &Value| input.as_object().and_then(input_from_json).ok_or_else(|| wrong("inputs"));
        Ok(Intake {
            inputs: inputs.iter().map(input).collect::<Result<_>>()?,
            missing: text("missing")?.parse()?,
            unknown: text("unknown")?.parse()?,
            time: match object.get("time") {
                None | Some(Value::Null) => None,
                Some(time) => Some(time.as_str().ok_or_else(|| wrong("time"))?.to_string()),
            },
            empty: object.get("empty").and_then(Value::as_f64).ok_or_else(|| wrong("empty"))?,
        })
    }

    /// Checks an intake read from a file, for a model with `d` columns of these names.
    pub(crate) fn check(&self, d: usize, names: Option<&Vec<String>>) -> Result<()> {
        let fills = self.missing == Missing::Median;
        let mut seen = HashSet::new();
        for Input { name, kind } in &self.inputs {
            let sound = match kind {
                Kind::Number { fill } => fill.is_some() == fills && fill.is_none_or(f64::is_finite),
                Kind::Category { values, fill } => {
                    let sorted = values.windows(2).all(|pair| pair[0] < pair[1]);
                    let trimmed = values.iter().all(|value| !value.is_empty() && value.trim() == value);
                    let few = (1..=MOST_CATEGORIES).contains(&values.len());
                    sorted && trimmed && few && fill.is_some() == fills && fill.is_none_or(|k| k < values.len())
                }
            };
            if !sound || !seen.insert(name) || Some(name) == self.time.as_ref() {
                return Err(Error::file(format!("its intake of the column {name:?} is invalid")));
            }
        }
        if self.width() != d || names.is_some_and(|names| *names != self.names()) {
            return Err(Error::file("its intake does not make the columns of the model"));
        }
        if !(0.0..=1.0).contains(&self.empty) {
            return Err(Error::file(format!("its share of empty cells is {}, expected 0 to 1", self.empty)));
        }
        Ok(())
    }
}

fn input_from_json(object: &Map<String, Value>) -> Option<Input> {
    let name = object.get("name")?.as_str()?.to_string();
    let fill = object.get("fill").filter(|fill| !fill.is_null());
    let kind = match object.get("categories") {
        None => Kind::Number { fill: fill.map(|fill| fill.as_f64().unwrap_or(f64::NAN)) },
        Some(values) => {
            let values =
                values.as_array()?.iter().map(|value| value.as_str().map(String::from)).collect::<Option<_>>()?;
            let number = |fill: &Value| fill.as_u64().and_then(|k| usize::try_from(k).ok()).unwrap_or(usize::MAX);
            Kind::Category { values, fill: fill.map(number) }
        }
    };
    Some(Input { name, kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: [(f64, &str); 5] = [(4.0, "b"), (f64::NAN, "a "), (1.0, ""), (2.0, "b"), (3.0, "c")];

    fn cell(row: usize, column: usize) -> Cell<'static> {
        if column == 0 { Cell::Number(ROWS[row].0) } else { Cell::Text(ROWS[row].1) }
    }

    fn names() -> Vec<String> {
        vec!["x".into(), "kind".into()]
    }

    fn intake(missing: Missing, unknown: Unknown) -> Intake {
        Intake::learn(&names(), ROWS.len(), cell, (missing, unknown)).unwrap()
    }

    fn encoded(intake: &Intake, row: (f64, &str)) -> std::result::Result<(usize, Vec<f64>), String> {
        let mut out = Vec::new();
        let cell = |column| if column == 0 { Cell::Number(row.0) } else { Cell::Text(row.1) };
        let filled = intake.encode(7, cell, &mut out).map_err(|error| error.to_string())?;
        Ok((filled, out))
    }

    #[test]
    fn cells_are_filled_by_median_and_most_frequent_category() {
        let intake = intake(Missing::Median, Unknown::Zero);
        assert_eq!(intake.names(), ["x", "kind=a", "kind=b", "kind=c"]);
        assert_eq!(intake.empty, 0.2);
        assert_eq!(encoded(&intake, (f64::NAN, " ")), Ok((2, vec![2.5, 0.0, 1.0, 0.0])));
        assert_eq!(encoded(&intake, (7.0, " c")), Ok((0, vec![7.0, 0.0, 0.0, 1.0])));
        assert_eq!(encoded(&intake, (7.0, "d")), Ok((0, vec![7.0, 0.0, 0.0, 0.0])));
    }

    #[test]
    fn invalid_cells_are_rejected() {
        let intake = intake(Missing::Refuse, Unknown::Refuse);
        let message = |row| encoded(&intake, row).unwrap_err();
        assert_eq!(message((f64::NAN, "a")), "row 7 (from 0), column 'x': the cell is empty");
        assert_eq!(message((1.0, "")), "row 7 (from 0), column 'kind': the cell is empty");
        assert_eq!(message((1.0, "d")), "row 7 (from 0), column 'kind': 'd' is not known, expected one of a, b, c");
    }

    #[test]
    fn invalid_columns_are_rejected() {
        let learn = |cell: &dyn Fn(usize) -> Cell<'static>| {
            let one = ["x".to_string()];
            Intake::learn(&one, 1200, |row, _| cell(row), Default::default()).unwrap_err().to_string()
        };
        let empty = learn(&|_| Cell::Number(f64::NAN));
        assert_eq!(empty, "column = x: expected a value in at least one row: leave it out");
        let keys: Vec<String> = (0..1200).map(|i| i.to_string()).collect();
        let keys: &'static [String] = keys.leak();
        let many = learn(&|row| Cell::Text(&keys[row]));
        let expected = "at most 1000 categories: leave the column out";
        assert_eq!(many, format!("categorical = x, with 1200 different values: expected {expected}"));
    }

    #[test]
    fn median_of_odd_even_and_huge_values() {
        for (values, expected) in
            [(vec![3.0], 3.0), (vec![2.0, 1.0], 1.5), (vec![9.0, -1.0, 4.0], 4.0), (vec![1e308, 1.7e308], 1.35e308)]
        {
            assert_eq!(median(values), expected);
        }
    }

    #[test]
    fn json_round_trips_and_forged_json_is_rejected() {
        for missing in [Missing::Refuse, Missing::Median, Missing::Drop] {
            let known = Intake { time: Some("t".into()), ..intake(missing, Unknown::Zero) };
            let again = Intake::from_json(&known.to_json()).unwrap();
            assert_eq!(again, known);
            assert_eq!(again.check(4, Some(&known.names())), Ok(()));
            assert!(again.check(3, None).is_err() && again.check(4, Some(&vec!["x".into(); 4])).is_err());
        }
        let forged = |change: &dyn Fn(&mut Value)| {
            let mut json = intake(Missing::Median, Unknown::Zero).to_json();
            change(&mut json);
            Intake::from_json(&json).and_then(|intake| intake.check(4, None)).unwrap_err().to_string()
        };
        for (expected, found) in [
            ("'inputs' is missing", forged(&|json| json["inputs"] = json!(3))),
            ("'inputs' is missing", forged(&|json| json["inputs"][1]["categories"] = json!([1, 2, 3]))),
            ("unknown treatment of missing values 'mean'", forged(&|json| json["missing"] = json!("mean"))),
            ("'time' is missing", forged(&|json| json["time"] = json!(5))),
            ("column \"x\" is invalid", forged(&|json| json["inputs"][0]["fill"] = Value::Null)),
            ("column \"x\" is invalid", forged(&|json| json["inputs"][0]["fill"] = json!("much"))),
            ("column \"x\" is invalid", forged(&|json| json["time"] = json!("x"))),
            ("column \"x\" is invalid", forged(&|json| json["inputs"][1]["name"] = json!("x"))),
            ("column \"kind\" is invalid", forged(&|json| json["inputs"][1]["fill"] = json!(3))),
            ("column \"kind\" is invalid", forged(&|json| json["inputs"][1]["categories"] = json!(["b", "a", "c"]))),
            ("does not make the columns", forged(&|json| json["inputs"][1]["categories"] = json!(["a", "b"]))),
            ("share of empty cells is 2", forged(&|json| json["empty"] = json!(2.0))),
        ] {
            assert!(found.contains(expected), "{expected}: {found}");
        }
    }
}
