//! Reads and writes tables of numbers.
//!
//! This module knows files and their formats, but nothing of kernels, models or command-line flags except the flag
//! names that its messages recommend. The tables that it returns are rectangular and finite, so that no caller needs to
//! check again.

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
mod several;
mod space;
mod survey;
mod target;
#[cfg(test)]
mod tests;
mod text;

use std::fs::File;
use std::io::{self, Seek};
use std::path::Path;

pub use error::{TableError, shell_words};
pub use npy::lies_by_rows;
pub use several::{Layout, Tables};
pub use space::reserve;
pub use target::{Column, Target};

use error::{At, Columns, check_finite};
use selection::Selection;

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
    /// The text of the label column as written, if it was requested and exists; a null is an empty text.
    pub label: Option<Vec<String>>,
}

/// How to read a table. A column is given by its name, or by its number from 0 if the source has no names.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// Whether the first line of a text table contains the names; other formats record this themselves.
    pub header: bool,
    /// The column to return as text.
    pub label: Option<String>,
    /// Columns to leave out, which must exist.
    pub drop: Vec<String>,
    /// Columns to leave out if they exist.
    pub ignore: Vec<String>,
    /// The columns that are wanted, if known. If a source has all of them, its other columns are left out.
    pub wanted: Option<Vec<String>>,
    /// The expected number of features, if known. It decides whether a source without names has the ignored columns.
    pub expected: Option<usize>,
    /// Whether the label column may be absent.
    pub label_optional: bool,
    /// Whether every column that is not a feature is returned as text, not only the label.
    pub all: bool,
    /// Categorical columns, which are inputs but returned as text.
    pub categories: Vec<String>,
    /// Which of the inputs of a source without names are categories, counted from 0.
    pub category_numbers: Vec<usize>,
    /// The time column, which is returned as text.
    pub time: Option<String>,
    /// Whether empty cells become NaN instead of being an error.
    pub gaps: bool,
    /// What to do with columns of text or dates.
    pub survey: Survey,
    /// Skip rows that cannot be used, instead of stopping at the first.
    pub skip_bad: bool,
    /// The field separator of a text table; by default determined by its extension and first line.
    pub delimiter: Option<u8>,
    /// The decimal separator of a text table; by default a comma if fields are separated by semicolons, a point
    /// otherwise.
    pub decimal: Option<u8>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions {
            header: true,
            label: None,
            drop: Vec::new(),
            ignore: Vec::new(),
            wanted: None,
            expected: None,
            label_optional: false,
            all: false,
            categories: Vec::new(),
            category_numbers: Vec::new(),
            time: None,
            gaps: false,
            survey: Survey::Not,
            skip_bad: false,
            delimiter: None,
            decimal: None,
        }
    }
}

/// What to do with columns of text or dates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Survey {
    /// Do not look for them: their first cell is an error.
    Not,
    /// Reject them, all in one message.
    Refuse,
    /// Leave them out.
    LeaveOut,
}

/// An input of a source, and where its cell is in a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    /// Its name, or its number from 0.
    pub name: String,
    pub place: Within,
}

/// Where a cell is in a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Within {
    /// Among its numbers.
    Numbers(usize),
    /// Among its texts.
    Texts(usize),
}

/// The format that an extension stands for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Format {
    Delimited { separator: u8, gzip: bool },
    Parquet,
    Arrow,
    Npy,
}

/// All supported extensions.
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

/// Some rows of a table, in order.
#[derive(Debug, Default)]
pub struct Block {
    /// The features row by row, finite; with [`ReadOptions::gaps`], empty cells are NaN.
    pub values: Vec<f64>,
    /// Other columns as text, row by row.
    pub texts: Vec<String>,
    /// The errors of rows that were skipped.
    pub bad: Vec<TableError>,
    /// The first empty cell: its line or row, and its column in the source.
    gap: Option<(At, usize)>,
}

impl Block {
    fn is_empty(&self) -> bool {
        self.values.is_empty() && self.bad.is_empty()
    }

    /// Rejects or skips rows that are not finite; `first` is the number of the first row.
    fn check(&mut self, selection: &Selection, first: usize, skip_bad: bool) -> Result<(), TableError> {
        let (width, wide) = (selection.features.len(), selection.texts.len());
        if self.values.iter().fold(true, |sound, value| sound & value.is_finite()) {
            return Ok(());
        }
        let gap = self.values.iter().position(|value| value.is_nan()).filter(|_| selection.gaps);
        self.gap = gap.map(|at| (At::Row(first + at / width), selection.features[at % width]));
        let sound = |value: &f64| value.is_finite() || (selection.gaps && value.is_nan());
        let mut kept = 0;
        for row in 0..self.values.len() / width {
            let numbers = &self.values[row * width..(row + 1) * width];
            match numbers.iter().position(|value| !sound(value)) {
                None => {
                    self.values.copy_within(row * width..(row + 1) * width, kept * width);
                    (0..wide).for_each(|k| self.texts.swap(kept * wide + k, row * wide + k));
                    kept += 1;
                }
                Some(at) => {
                    let place = || selection.place(At::Row(first + row), selection.features[at]);
                    let wrong = check_finite(numbers[at], place);
                    if skip_bad {
                        self.bad.extend(wrong.err());
                    } else {
                        wrong?;
                    }
                }
            }
        }
        self.values.truncate(kept * width);
        self.texts.truncate(kept * wide);
        Ok(())
    }
}

/// Reads the rows of a file, block by block.
trait Blocks {
    /// Returns the next rows; `None` at the end.
    fn next(&mut self, selection: &Selection) -> Result<Option<Block>, TableError>;
}

/// A table that is being read, block by block.
pub struct Source {
    selection: Selection,
    blocks: Box<dyn Blocks>,
    /// Whether rows come from a pipe, whose writer may wait for the answer to each row.
    pub live: bool,
    /// A second handle of the file, which shares the reader's position, and the length of the file.
    whole: Option<(File, u64)>,
}

impl Source {
    /// Opens a table; `-` is CSV from standard input, otherwise the extension determines the format.
    pub fn open(source: &str, options: &ReadOptions) -> Result<Source, TableError> {
        if source == STANDARD {
            // Surveying the columns requires many rows at once.
            let live = options.survey == Survey::Not && !standard_input_is_file();
            let (selection, reader) = delimited::open("stdin", (io::stdin(), live), b',', options)?;
            return Ok(Source { selection, blocks: Box::new(reader), live, whole: None });
        }
        let format = format_of(source)?;
        let input = open(source)?;
        let length = input.metadata().ok().filter(|about| about.is_file()).map(|about| about.len());
        let (live, whole) = (length.is_none(), length.and_then(|length| Some((input.try_clone().ok()?, length))));
        let (selection, blocks): (Selection, Box<dyn Blocks>) = match format {
            Format::Delimited { separator, .. } => boxed(delimited::open(source, (input, live), separator, options)?),
            Format::Parquet => boxed(columnar::open_parquet(source, input, options)?),
            Format::Arrow => boxed(columnar::open_arrow(source, input, options)?),
            Format::Npy => boxed(npy::open(source, input, options)?),
        };
        Ok(Source { selection, blocks, live, whole })
    }

    /// Names of the feature columns; `None` if the source has no names (`.npy`, no header).
    pub fn names(&self) -> Option<Vec<String>> {
        self.selection.names()
    }

    /// Number of feature columns, at least one.
    pub fn columns(&self) -> usize {
        self.selection.features.len()
    }

    /// All columns that are returned, in the order of the source. Columns without names are called x0, x1, …
    pub fn layout(&self) -> Vec<Column> {
        let Selection { columns, features, texts, .. } = &self.selection;
        let mut wanted: Vec<usize> = features.iter().chain(texts).copied().collect();
        wanted.sort_unstable();
        let name = |index: usize| match columns {
            Columns::Named(names) => names[index].clone(),
            Columns::Numbered(_) => format!("x{index}"),
        };
        let column = |&index: &usize| Column { name: name(index), text: texts.contains(&index) };
        wanted.iter().map(column).collect()
    }

    /// The approximate share of the file that was read; 0 if unknown.
    pub fn share(&self) -> f64 {
        let share = self.whole.as_ref().and_then(|(file, length)| {
            let mut file: &File = file;
            Some(file.stream_position().ok()? as f64 / *length as f64)
        });
        share.unwrap_or(0.0).min(1.0)
    }

    /// The columns that a model may be fitted to, in the order of the source: features and categories.
    pub fn inputs(&self) -> Vec<Input> {
        let Selection { columns, features, texts, categories, .. } = &self.selection;
        let number = |(k, &column): (usize, &usize)| (column, Within::Numbers(k));
        let text = |(k, &column): (usize, &usize)| (column, Within::Texts(k));
        let categories = texts.iter().enumerate().filter(|(_, column)| categories.contains(column));
        let mut all: Vec<(usize, Within)> =
            features.iter().enumerate().map(number).chain(categories.map(text)).collect();
        all.sort_unstable_by_key(|(column, _)| *column);
        all.into_iter().map(|(column, place)| Input { name: columns.name(column), place }).collect()
    }

    /// The positions of the label and the time among the texts of a row.
    pub fn label_and_time(&self) -> (Option<usize>, Option<usize>) {
        let Selection { label, time, texts, .. } = &self.selection;
        let place = |column: &Option<usize>| column.and_then(|column| texts.iter().position(|text| *text == column));
        (place(label), place(time))
    }

    /// Numbers and texts per row.
    pub fn widths(&self) -> (usize, usize) {
        (self.columns(), self.selection.texts.len())
    }

    /// Columns of text or dates that were left out.
    pub fn left_out(&self) -> &[String] {
        &self.selection.left_out
    }

    /// Where the first empty cell of a block is.
    pub fn first_gap(&self, block: &Block) -> Option<String> {
        block.gap.map(|(at, column)| self.selection.place(at, column).to_string())
    }

    /// Returns the next rows; `None` at the end.
    pub fn next(&mut self) -> Result<Option<Block>, TableError> {
        self.blocks.next(&self.selection)
    }

    /// Returns all remaining rows as one block. It is an error if there are none.
    pub fn all(&mut self) -> Result<Block, TableError> {
        let mut all = Block::default();
        while let Some(block) = self.next()? {
            space::reserve(&mut all.values, block.values.len(), &self.selection.file)?;
            all.values.extend(block.values);
            space::reserve(&mut all.texts, block.texts.len(), &self.selection.file)?;
            all.texts.extend(block.texts);
            all.gap = all.gap.or(block.gap);
        }
        if all.values.is_empty() { Err(TableError::NoRows { file: self.selection.file.clone() }) } else { Ok(all) }
    }

    fn collect(mut self) -> Result<Table, TableError> {
        let Block { values, texts, .. } = self.all()?;
        self.selection.table(values, texts)
    }
}

fn boxed<B: Blocks + 'static>((selection, blocks): (Selection, B)) -> (Selection, Box<dyn Blocks>) {
    (selection, Box::new(blocks))
}

#[cfg(unix)]
fn standard_input_is_file() -> bool {
    use std::os::fd::AsFd;
    let duplicate = io::stdin().as_fd().try_clone_to_owned();
    duplicate.and_then(|input| File::from(input).metadata()).is_ok_and(|about| about.is_file())
}

#[cfg(not(unix))]
fn standard_input_is_file() -> bool {
    false
}

/// Reads a table; `-` is CSV from standard input, otherwise the extension determines the format.
pub fn read(source: &str, options: &ReadOptions) -> Result<Table, TableError> {
    Source::open(source, options)?.collect()
}

/// Writes a table, row by row; `None` or `-` is CSV to standard output, otherwise the extension determines the format.
pub fn write(target: Option<&str>, names: &[String], rows: usize, values: &[f64]) -> Result<(), TableError> {
    if rows.checked_mul(names.len()) != Some(values.len()) {
        let message = format!("{} values for {rows} rows x {} columns", values.len(), names.len());
        return Err(TableError::Malformed { file: target.unwrap_or("stdout").to_string(), message });
    }
    let mut target = Target::begin(target, names.iter().map(Column::number).collect())?;
    target.write(values, &[])?;
    target.finish()
}

/// Checks that [`write()`] will be able to write to the target, so that a long computation is not lost.
pub fn check_target(target: Option<&str>) -> Result<(), TableError> {
    let Some(file) = target.filter(|&target| target != STANDARD) else {
        return Ok(());
    };
    format_of(file)?;
    skpca_files::check(Path::new(file)).map_err(|error| TableError::Io { file: file.to_string(), error })
}

/// Finds the format by the extension, ignoring case. No extension is a suffix of another, so at most one matches.
fn format_of(file: &str) -> Result<Format, TableError> {
    let name = file.to_lowercase();
    let found = FORMATS.iter().find(|(extension, _)| name.ends_with(extension));
    found.map(|&(_, format)| format).ok_or_else(|| {
        let known: Vec<&str> = FORMATS.iter().map(|&(extension, _)| extension).collect();
        TableError::UnknownExtension { file: file.to_string(), known: known.join(" ") }
    })
}

/// Opens a file and rejects an empty one, which is valid in no format.
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
