//! Tables of numbers in and out of files.
//!
//! This room knows files and their formats; it knows nothing of kernels, models or command-line
//! flags beyond the names it recommends in messages. What it returns is rectangular and finite:
//! nobody downstream checks again.

mod columnar;
mod delimited;
mod dialect;
mod error;
mod ipc;
mod npy;
mod pages;
mod plain;
mod quoted;
mod selection;
mod space;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

pub use error::TableError;

/// The name that stands for standard input and output.
const STANDARD: &str = "-";

/// A rectangular table of finite numbers with optional names and label column.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Names of the feature columns; none if the source has none (`.npy`, no header).
    pub names: Option<Vec<String>>,
    /// Number of rows, at least one.
    pub rows: usize,
    /// Number of feature columns, at least one.
    pub columns: usize,
    /// The features row by row; label and dropped columns are not among them.
    pub values: Vec<f64>,
    /// The text of the label column as written, if it was asked for and is there; a null is empty
    /// text.
    pub label: Option<Vec<String>>,
}

/// How to read. A column is given by its name, or by its number from 0 if the source has no names.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// The first line of a text table holds the names; other formats know by themselves.
    pub header: bool,
    /// The column to return as text.
    pub label: Option<String>,
    /// Columns to leave out, which must be there.
    pub drop: Vec<String>,
    /// Columns to leave out if they are there.
    pub ignore: Vec<String>,
    /// How many features are expected, if known: tells whether a source without names has the ignored columns.
    pub expected: Option<usize>,
    /// Whether the label column may be absent.
    pub label_optional: bool,
    /// What stands between the fields of a text table; by default its extension and first line tell.
    pub delimiter: Option<u8>,
    /// The decimal sign of a text table; by default a comma between semicolons, a point elsewhere.
    pub decimal: Option<u8>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions {
            header: true,
            label: None,
            drop: Vec::new(),
            ignore: Vec::new(),
            expected: None,
            label_optional: false,
            delimiter: None,
            decimal: None,
        }
    }
}

/// What an extension stands for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Format {
    Delimited { separator: u8, gzip: bool },
    Parquet,
    Arrow,
    Npy,
}

/// Every extension we read and write.
const FORMATS: &[(&str, Format)] = &[
    (".csv", Format::Delimited { separator: b',', gzip: false }),
    (".csv.gz", Format::Delimited { separator: b',', gzip: true }),
    (".tsv", Format::Delimited { separator: b'\t', gzip: false }),
    (".tsv.gz", Format::Delimited { separator: b'\t', gzip: true }),
    (".txt", Format::Delimited { separator: b'\t', gzip: false }),
    (".txt.gz", Format::Delimited { separator: b'\t', gzip: true }),
    (".parquet", Format::Parquet),
    (".arrow", Format::Arrow),
    (".feather", Format::Arrow),
    (".ipc", Format::Arrow),
    (".npy", Format::Npy),
];

/// Reads a table; `-` is CSV from standard input, otherwise the extension tells the format.
pub fn read(source: &str, options: &ReadOptions) -> Result<Table, TableError> {
    if source == STANDARD {
        return delimited::read("stdin", io::stdin().lock(), b',', options);
    }
    let format = format_of(source)?;
    let input = open(source)?;
    match format {
        Format::Delimited { separator, .. } => delimited::read(source, input, separator, options),
        Format::Parquet => columnar::read_parquet(source, input, options),
        Format::Arrow => columnar::read_arrow(source, input, options),
        Format::Npy => npy::read(source, input, options),
    }
}

/// Writes a table, row-major; none or `-` is CSV to standard output, otherwise the extension tells
/// the format.
pub fn write(target: Option<&str>, names: &[String], rows: usize, values: &[f64]) -> Result<(), TableError> {
    let file = target.filter(|&target| target != STANDARD);
    check_target(file)?;
    if rows.checked_mul(names.len()) != Some(values.len()) {
        let message = format!("{} values for {rows} rows x {} columns", values.len(), names.len());
        return Err(TableError::Malformed { file: file.unwrap_or("stdout").to_string(), message });
    }
    match file {
        None => delimited::write(io::stdout().lock(), b',', names, values).map_err(stdout_error),
        Some(file) => write_file(file, names, rows, values),
    }
}

/// Whether [`write()`] will know what to do: ask before the long computation, not after it.
pub fn check_target(target: Option<&str>) -> Result<(), TableError> {
    let Some(file) = target.filter(|&target| target != STANDARD) else {
        return Ok(());
    };
    format_of(file)?;
    skpca_files::check(Path::new(file)).map_err(|error| TableError::Io { file: file.to_string(), error })
}

fn write_file(file: &str, names: &[String], rows: usize, values: &[f64]) -> Result<(), TableError> {
    let format = format_of(file)?;
    let written = skpca_files::write(Path::new(file), |output| match format {
        Format::Delimited { separator, gzip: false } => delimited::write(output, separator, names, values),
        Format::Delimited { separator, gzip: true } => {
            let mut packed = GzEncoder::new(output, Compression::default());
            delimited::write(&mut packed, separator, names, values)?;
            packed.finish()?.flush()
        }
        Format::Parquet => columnar::write_parquet(output, names, values),
        Format::Arrow => columnar::write_arrow(output, names, values),
        Format::Npy => npy::write(output, names.len(), rows, values),
    });
    written.map_err(|error| TableError::Io { file: file.to_string(), error })
}

/// Case does not matter. No extension is the end of another, so the first that fits is the only
/// one.
fn format_of(file: &str) -> Result<Format, TableError> {
    let name = file.to_lowercase();
    let found = FORMATS.iter().find(|(extension, _)| name.ends_with(extension));
    found.map(|&(_, format)| format).ok_or_else(|| {
        let known: Vec<&str> = FORMATS.iter().map(|&(extension, _)| extension).collect();
        TableError::UnknownExtension { file: file.to_string(), known: known.join(" ") }
    })
}

/// No format has an empty file; saying so here is clearer than each reader's own complaint.
fn open(source: &str) -> Result<File, TableError> {
    let io_error = |error| TableError::Io { file: source.to_string(), error };
    let input = File::open(source).map_err(io_error)?;
    let metadata = input.metadata().map_err(io_error)?;
    if metadata.is_dir() {
        return Err(io_error(io::ErrorKind::IsADirectory.into()));
    }
    if metadata.is_file() && metadata.len() == 0 {
        return Err(TableError::Empty { file: source.to_string() });
    }
    Ok(input)
}

fn stdout_error(error: io::Error) -> TableError {
    match error.kind() {
        io::ErrorKind::BrokenPipe => TableError::BrokenPipe,
        _ => TableError::Io { file: "stdout".to_string(), error },
    }
}
