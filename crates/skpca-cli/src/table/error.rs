//! What can go wrong with a table, said with file, line or row, column, value and what was
//! expected.

use std::fmt;
use std::io;

use crate::terminal::printable;

/// The longest stretch of a user's value or column list that a message repeats.
const SHOWN_CHARACTERS: usize = 60;
const SHOWN_COLUMNS: usize = 20;

/// Why a table could not be read or written. `file` is the name the user gave, or `stdin` /
/// `stdout`.
#[derive(Debug)]
pub enum TableError {
    /// The operating system refused to read or write.
    Io { file: String, error: io::Error },
    /// The reader of our standard output has gone (`skpca … | head`): not a failure, end quietly.
    BrokenPipe,
    /// The file name says nothing about the format.
    UnknownExtension { file: String, known: String },
    /// The file is not what its extension promises, or it is damaged.
    Malformed { file: String, message: String },
    /// Not even a header.
    Empty { file: String },
    /// Columns, but no rows.
    NoRows { file: String },
    /// Every column is dropped, ignored or the label.
    NoFeatures { file: String },
    /// A header was expected; the first line has only numbers.
    HeaderIsNumbers { file: String },
    /// Two columns have one name.
    DuplicateColumn { file: String, name: String },
    /// A table of several has other columns than the first.
    OtherColumns { file: String, first: String, why: String },
    /// `--label` or `--drop` names a column that is not there.
    UnknownColumn { file: String, name: String, columns: Columns },
    /// A quote that nothing closes: all that follows would be one cell.
    OpenQuote { file: String, line: u64 },
    /// Text behind a closing quote: most often a quote is missing before it.
    StrayQuote { file: String, opened: u64, line: u64 },
    /// What is wrong with a row of many lines, which quotes make and which may not be meant.
    ManyLines { error: Box<TableError>, first: u64, last: u64 },
    /// A line with more or fewer fields than the first one.
    RaggedLine { file: String, line: u64, fields: usize, expected: usize },
    /// Text for a file that holds numbers alone.
    OnlyNumbers { file: String, name: String },
    /// A text that is not UTF-8.
    NotText { file: String, line: u64, column: usize },
    /// A typed column (Parquet, Arrow) that does not hold numbers.
    ColumnType { file: String, name: String, found: String },
    /// Columns of text or dates, each with a cell of it.
    TextColumns { file: String, columns: Vec<(String, String)> },
    /// A field that does not parse.
    NotANumber { place: Place, value: String },
    /// An empty field, a null, or one of the words for them.
    Missing { place: Place },
    /// An infinity, or a number too large for 64 bits.
    NotFinite { place: Place, value: String },
}

/// A column of text or dates.
pub struct TextColumn {
    /// Its number in the source.
    pub column: usize,
    /// A cell of it, or its type.
    pub example: String,
}

/// Where a value stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// The name the user gave.
    pub file: String,
    /// Line of a text file or row of a binary one.
    pub at: At,
    /// The column as [`Columns::text`] shows it …
    pub column: String,
    /// … and as a flag names it.
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

/// The columns a source has: by name, or numbered from 0 if it has no names.
#[derive(Debug, Clone, PartialEq)]
pub enum Columns {
    /// One name each, all different.
    Named(Vec<String>),
    /// How many there are.
    Numbered(usize),
}

impl Columns {
    /// How many columns there are.
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
    /// Whether the table goes on behind what is wrong.
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

/// Refuses what no kernel can take. The value itself is fine otherwise.
pub(super) fn check_finite(value: f64, place: impl FnOnce() -> Place) -> Result<f64, TableError> {
    if value.is_finite() {
        Ok(value)
    } else if value.is_nan() {
        Err(TableError::Missing { place: place() })
    } else {
        Err(TableError::NotFinite { place: place(), value: value.to_string() })
    }
}

/// What to do about columns of text or dates.
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

/// What to do about a value that is not a number.
fn advice(place: &Place, value: &str) -> String {
    if value.contains(',') && dotted(value) {
        return "if commas are decimal signs use --decimal ,".to_string();
    }
    let word = shell_word(&place.name);
    format!("if the column holds classes use --label {word}, to leave it out --drop {word}")
}

/// A quote in the wrong place can make one field of a thousand lines: never print that.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARACTERS) {
        None => printable(text).into_owned(),
        Some((end, _)) => format!("{}…", printable(&text[..end])),
    }
}

/// Whether a text is a number but for its commas.
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

/// Names as a flag takes them, pasted into a shell.
pub fn shell_words(names: &[&str]) -> String {
    names.iter().map(|name| shell_word(name)).collect::<Vec<_>>().join(",")
}

/// The name as it can be pasted into a shell.
fn shell_word(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    if !name.is_empty() && name.chars().all(plain) {
        name.to_string()
    } else {
        format!("'{}'", shorten(&name.replace('\'', r"'\''")))
    }
}
