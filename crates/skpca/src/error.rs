//! The crate's only error type. Every variant carries the name, the value and what was expected.

use std::fmt;

use skpca_simd::LevelError;

/// Why a call failed.
///
/// ```
/// use skpca::{Error, Fit};
///
/// let wrong = Fit { quantile: 1.5, ..Fit::default() }.check().unwrap_err();
/// assert!(matches!(&wrong, Error::Parameter { name, .. } if name == "quantile"));
/// assert!(wrong.to_string().starts_with("quantile = 1.5: expected"));
/// ```
#[allow(missing_docs)] // the names of the fields are self-explanatory
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// A table without rows or without columns.
    Empty { what: &'static str },
    /// A number of values that is not rows × columns.
    Shape { rows: usize, columns: usize, values: usize },
    /// A NaN or an infinity in the data.
    NotFinite { row: usize, column: usize, value: f64 },
    /// A value that overflows when it is scaled.
    Outside { row: usize, column: usize, value: f64 },
    /// An empty cell in a column whose empty cells are not filled.
    EmptyCell { row: usize, column: String },
    /// A category that does not occur in the training rows.
    UnknownCategory { row: usize, column: String, value: String, expected: String },
    /// Fewer rows than the request needs.
    TooFewRows { rows: usize, needed: usize, why: String },
    /// Data whose number of columns differs from the model's.
    Width { found: usize, expected: usize },
    /// Column names that the model does not know, or that the data lack.
    Names { missing: Vec<String>, unexpected: Vec<String> },
    /// A parameter with an invalid value.
    Parameter { name: String, value: String, expected: String },
    /// A name that is not in its registry.
    Unknown { what: &'static str, name: String, valid: Vec<String> },
    /// A kernel that is not positive semi-definite on these data.
    NotPositive { kernel: String, value: f64 },
    /// A kernel value that overflows.
    Overflow { kernel: String, row: usize },
    /// Data without variance, or whose kernel values are all zero.
    NoVariance { why: String },
    /// A numerical failure on valid data.
    Numerical { why: String },
    /// A row source that cannot be read.
    Source { why: String },
    /// An invalid or damaged model file.
    File { why: String },
    /// The caller asked to stop.
    Interrupted,
}

/// `Result` with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Returns an [`Error::Parameter`].
    pub fn parameter(name: &str, value: impl fmt::Display, expected: &str) -> Error {
        Error::Parameter { name: name.into(), value: value.to_string(), expected: expected.into() }
    }

    pub(crate) fn file(why: impl Into<String>) -> Error {
        Error::File { why: why.into() }
    }
}

impl From<LevelError> for Error {
    fn from(error: LevelError) -> Error {
        Error::parameter("level", error.level, &error.expected)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Empty { what } => write!(f, "the data have no {what}"),
            Error::Shape { rows, columns, values } => {
                write!(f, "{values} values do not fill {rows} rows × {columns} columns")
            }
            Error::NotFinite { row, column, value } => {
                write!(f, "row {row}, column {column} (from 0): {value} is not a finite number")
            }
            Error::Outside { row, column, value } => write!(
                f,
                "row {row}, column {column} (from 0): {value:e} is too far outside the training data to be scaled"
            ),
            Error::EmptyCell { row, column } => write!(f, "row {row} (from 0), column '{column}': the cell is empty"),
            Error::UnknownCategory { row, column, value, expected } => {
                write!(f, "row {row} (from 0), column '{column}': '{value}' is not known, expected {expected}")
            }
            Error::TooFewRows { rows, needed, why } => {
                write!(f, "{rows} row{}: {why} needs at least {needed}", if *rows == 1 { "" } else { "s" })
            }
            Error::Width { found, expected } => {
                write!(f, "the data have {found} columns, the model expects {expected}")
            }
            Error::Names { missing, unexpected } => write_names(f, missing, unexpected),
            Error::Parameter { name, value, expected } => write!(f, "{name} = {value}: expected {expected}"),
            Error::Unknown { what, name, valid } => {
                write!(f, "unknown {what} '{name}': expected one of {}", valid.join(", "))
            }
            Error::NotPositive { kernel, value } => write!(
                f,
                "the {kernel} kernel is not positive semi-definite on these data (a pivot or eigenvalue is {value:.3e}); \
                 use other parameters or another kernel"
            ),
            Error::Overflow { kernel, row } => {
                write!(f, "row {row} (from 0): a value of the {kernel} kernel overflows; scale the columns first")
            }
            Error::NoVariance { why } => write!(f, "there is nothing to fit: {why}"),
            Error::Numerical { why } => write!(f, "{why}; scaling the columns may help"),
            Error::Source { why } => write!(f, "the rows cannot be read: {why}"),
            Error::File { why } => write!(f, "not a usable model file: {why}"),
            Error::Interrupted => write!(f, "interrupted"),
        }
    }
}

fn write_names(f: &mut fmt::Formatter<'_>, missing: &[String], unexpected: &[String]) -> fmt::Result {
    let list = |names: &[String]| names.iter().map(|n| format!("'{n}'")).collect::<Vec<_>>().join(", ");
    match (missing.is_empty(), unexpected.is_empty()) {
        (false, true) => write!(f, "columns of the model are missing from the data: {}", list(missing)),
        (true, false) => write!(f, "the model does not know these columns: {}", list(unexpected)),
        _ => {
            write!(f, "columns do not match the model: missing {}; not known to it {}", list(missing), list(unexpected))
        }
    }
}

impl std::error::Error for Error {}
