//! Table errors, with file, line or row, column, value and what was expected.

use std::fmt;
use std::io;

use crate::terminal::printable;

/// Maximum number of characters of a value that a message repeats.
const SHOWN_CHARACTERS: usize = 60;
/// Maximum number of columns that a message lists.
const SHOWN_COLUMNS: usize = 20;

/// Why a table could not be read or written. `file` is the name that the user gave, or `stdin` / `stdout`.
#[derive(Debug)]
pub enum TableError {
    /// Reading or writing failed.
    Io { file: String, error: io::Error },
    /// The reader of standard output has closed the pipe (`skpca … | head`): not a failure, exit quietly.
    BrokenPipe,
    /// The extension of the file is unknown.
    UnknownExtension { file: String, known: String },
    /// The file does not have the format of its extension, or is damaged.
    Malformed { file: String, message: String },
    /// The file has not even a header.
    Empty { file: String },
    /// The table has columns but no rows.
    NoRows { file: String },
    /// Every column is dropped, ignored or the label.
    NoFeatures { file: String },
    /// A header was expected, but the first line has only numbers.
    HeaderIsNumbers { file: String },
    /// Two columns have the same name.
    DuplicateColumn { file: String, name: String },
    /// One of several tables has other columns than the first.
    OtherColumns { file: String, first: String, why: String },
    /// `--label` or `--drop` names a column that does not exist.
    UnknownColumn { file: String, name: String, columns: Columns },
    /// A quote is never closed, so that everything after it would be one cell.
    OpenQuote { file: String, line: u64 },
    /// Text follows a closing quote, usually because an earlier quote is missing.
    StrayQuote { file: String, opened: u64, line: u64 },
    /// An error in a row that a quoted cell extends over several lines, perhaps by mistake.
    ManyLines { error: Box<TableError>, first: u64, last: u64 },
    /// A line has more or fewer fields than the first one.
    RaggedLine { file: String, line: u64, fields: usize, expected: usize },
    /// A text column cannot be written to a format of numbers only.
    OnlyNumbers { file: String, name: String },
    /// A text is not UTF-8.
    NotText { file: String, line: u64, column: usize },
    /// A typed column (Parquet, Arrow) does not contain numbers.
    ColumnType { file: String, name: String, found: String },
    /// Columns of text or dates, each with an example cell.
    TextColumns { file: String, columns: Vec<(String, String)> },
    /// A field is not a number.
    NotANumber { place: Place, value: String },
    /// An empty field, a null, or a word for a missing value.
    Missing { place: Place },
    /// An infinite value, or a number too large for 64 bits.
    NotFinite { place: Place, value: String },
}

/// A column of text or dates.
pub struct TextColumn {
    /// Its number in the source.
    pub column: usize,
    /// An example cell, or the type of the column.
    pub example: String,
}

/// The position of a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// The name that the user gave.
    pub file: String,
    /// Line of a text file or row of a binary one.
    pub at: At,
    /// The column as [`Columns::text`] shows it.
    pub column: String,
    /// The column as a flag names it.
    pub name: String,
}

/// Text editors count lines from 1, data frames count rows from 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum At {
    /// Line of a text file, from 1.
    Line(u64),
    /// Row of a binary file, from 0.
    Row(usize),
}

/// The columns of a source: by name, or numbered from 0 if it has no names.
#[derive(Debug, Clone, PartialEq)]
pub enum Columns {
    /// One distinct name per column.
    Named(Vec<String>),
    /// The number of columns.
    Numbered(usize),
}

impl Columns {
    /// The number of columns.
    pub fn count(&self) -> usize {
        match self {
            Columns::Named(names) => names.len(),
            Columns::Numbered(count) => *count,
        }
    }

    /// The column as a flag names it.
    pub fn name(&self, index: usize) -> String {
        match self {
            Columns::Named(names) => names[index].clone(),
            Columns::Numbered(_) => index.to_string(),
        }
    }

    /// The column as a message shows it.
    pub fn text(&self, index: usize) -> String {
        match self {
            Columns::Named(names) => format!("column '{}'", shorten(&names[index])),
            Columns::Numbered(_) => format!("column {index} (from 0)"),
        }
    }
}

impl fmt::Display for TableError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { file, error } => write!(out, "{file}: {error}"),
            Self::BrokenPipe => write!(out, "stdout: broken pipe"),
            Self::UnknownExtension { file, known } => {
                write!(out, "{file}: unknown extension, expected one of {known}")
            }
            Self::Malformed { file, message } => write!(out, "{file}: {message}"),
            Self::Empty { file } => write!(out, "{file} is empty"),
            Self::NoRows { file } => write!(out, "{file}: no rows"),
            Self::NoFeatures { file } => {
                write!(out, "{file}: no feature columns left, expected at least one")
            }
            Self::HeaderIsNumbers { file } => {
                write!(out, "{file}: first line has only numbers; if the file has no header use --no-header")
            }
            Self::DuplicateColumn { file, name } => {
                write!(out, "{file}: column '{}' appears twice, expected distinct names", shorten(name))
            }
            Self::OtherColumns { file, first, why } => {
                write!(out, "{file}: its columns are not those of {first}: {}", printable(why))
            }
            Self::UnknownColumn { file, name, columns } => {
                write!(out, "{file} has no column '{}'; {}", shorten(name), listing(columns))
            }
            Self::OpenQuote { file, line } => {
                write!(out, "{file} line {line}: the quote that opens here is never closed")
            }
            Self::StrayQuote { file, opened, line } => write!(
                out,
                "{file} line {line}: text follows a closing quote; the quote was opened on line {opened}: \
                 is one missing, or not written twice?"
            ),
            Self::ManyLines { error, first, last } => {
                write!(out, "{error}; a quoted cell makes one row of lines {first} to {last}: is a quote missing?")
            }
            Self::RaggedLine { file, line, fields, expected } => {
                let s = if *fields == 1 { "" } else { "s" };
                write!(out, "{file} line {line}: {fields} field{s}, expected {expected}")
            }
            Self::OnlyNumbers { file, name } => write!(
                out,
                "{file}: column '{}' is not a feature and may hold text, which .npy cannot: choose .csv or .parquet",
                shorten(name)
            ),
            Self::NotText { file, line, column } => {
                write!(out, "{file}: line {line}, column {column} (from 0): the label is not UTF-8")
            }
            Self::ColumnType { file, name, found } => write!(
                out,
                "{file}: column '{}' has type {found}, expected numbers; if it holds classes use --label {}, \
                 to leave it out --drop {}",
                shorten(name),
                shell_word(name),
                shell_word(name)
            ),
            Self::TextColumns { file, columns } => write!(out, "{file}: {}", text_columns(columns)),
            Self::NotANumber { place, value } => {
                write!(out, "{place}: '{}' is not a number; {}", shorten(value), advice(place, value))
            }
            Self::Missing { place } => write!(
                out,
                "{place}: missing value (--skip-bad skips such rows; models fitted with --missing median fill them)"
            ),
            Self::NotFinite { place, value } => {
                write!(out, "{place}: '{}' is not finite", shorten(value))
            }
        }
    }
}

impl TableError {
    /// Whether the error concerns a single row, so that reading can continue after it.
    pub(super) fn is_about_a_row(&self) -> bool {
        match self {
            Self::ManyLines { error, .. } => error.is_about_a_row(),
            Self::OpenQuote { .. } | Self::StrayQuote { .. } | Self::RaggedLine { .. } | Self::NotText { .. } => true,
            Self::NotANumber { .. } | Self::Missing { .. } | Self::NotFinite { .. } => true,
            _ => false,
        }
    }
}

impl std::error::Error for TableError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            At::Line(line) => write!(out, "{} line {line}, {}", self.file, self.column),
            At::Row(row) => write!(out, "{} row {row} (from 0), {}", self.file, self.column),
        }
    }
}

/// Returns the value if it is finite, otherwise an error.
pub(super) fn check_finite(value: f64, place: impl FnOnce() -> Place) -> Result<f64, TableError> {
    if value.is_finite() {
        Ok(value)
    } else if value.is_nan() {
        Err(TableError::Missing { place: place() })
    } else {
        Err(TableError::NotFinite { place: place(), value: value.to_string() })
    }
}

/// The message about columns of text or dates.
fn text_columns(columns: &[(String, String)]) -> String {
    let shown: Vec<String> = columns.iter().take(SHOWN_COLUMNS).map(shown_column).collect();
    let rest = columns.len() - shown.len();
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    let words: Vec<String> = columns.iter().map(|(name, _)| shell_word(name)).collect();
    let (list, s, hold) =
        (words.join(","), if words.len() == 1 { "" } else { "s" }, if words.len() == 1 { "s" } else { "" });
    format!(
        "column{s} {}{more} hold{hold} text or dates: leave out with --drop {list} (or --numeric-only), encode \
         categories with --categorical, name times with --time and classes with --label",
        shown.join(", ")
    )
}

fn shown_column((name, example): &(String, String)) -> String {
    format!("'{}' ({})", shorten(name), shorten(example))
}

/// The advice for a value that is not a number.
fn advice(place: &Place, value: &str) -> String {
    if value.contains(',') && dotted(value) {
        return "if commas are decimal signs use --decimal ,".to_string();
    }
    let word = shell_word(&place.name);
    format!("if the column holds classes use --label {word}, to leave it out --drop {word}")
}

/// Shortens a value: a misplaced quote can turn a thousand lines into one field.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARACTERS) {
        None => printable(text).into_owned(),
        Some((end, _)) => format!("{}…", printable(&text[..end])),
    }
}

/// Whether a text is a number if its commas are read as points.
fn dotted(text: &str) -> bool {
    text.trim().replace(',', ".").parse::<f64>().is_ok()
}

fn listing(columns: &Columns) -> String {
    match columns {
        Columns::Named(names) => {
            let shown: Vec<String> = names.iter().take(SHOWN_COLUMNS).map(|name| shorten(name)).collect();
            let rest = names.len() - shown.len();
            let more = if rest > 0 { format!(" … and {rest} more") } else { String::new() };
            format!("it has {}{more}", shown.join(", "))
        }
        Columns::Numbered(0) => "it has no columns".to_string(),
        Columns::Numbered(count) => {
            format!("it has no names, use a number from 0 to {}", count - 1)
        }
    }
}

/// Joins names for a flag, quoted for a shell.
pub fn shell_words(names: &[&str]) -> String {
    names.iter().map(|name| shell_word(name)).collect::<Vec<_>>().join(",")
}

/// Quotes a name for a shell.
fn shell_word(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    if !name.is_empty() && name.chars().all(plain) {
        name.to_string()
    } else {
        format!("'{}'", shorten(&name.replace('\'', r"'\''")))
    }
}
