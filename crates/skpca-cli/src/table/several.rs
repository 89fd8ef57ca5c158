//! Several tables with the same columns, read one after the other: files, and directories of files.

use std::fs;
use std::path::Path;

use super::error::TableError;
use super::{Block, FORMATS, Input, ReadOptions, STANDARD, Source, format_of};

/// Tables that are read as one, with the column names and order of the first.
pub struct Tables {
    files: Vec<String>,
    /// Bytes of each file, at least one.
    sizes: Vec<u64>,
    options: ReadOptions,
    /// Names of the feature columns of the first table, if it has any.
    names: Option<Vec<String>>,
    /// Number of feature columns.
    columns: usize,
    /// The layout of the first table.
    layout: Layout,
    /// The number of the current table.
    at: usize,
    /// The current table.
    source: Source,
    /// For each feature column of the first table, its position in the current one, if the order differs.
    order: Option<Vec<usize>>,
    /// The same for the text columns.
    text_order: Option<Vec<usize>>,
    /// Number of rows read so far.
    rows: usize,
    /// Where the first empty cell was.
    gap: Option<String>,
}

/// The columns of a table, as they are returned.
pub struct Layout {
    pub inputs: Vec<Input>,
    /// Numbers and texts per row.
    pub widths: (usize, usize),
    /// Position of the label among the texts of a row.
    pub label: Option<usize>,
    /// Position of the time among the texts of a row.
    pub time: Option<usize>,
    /// Columns of text or dates that were left out.
    pub left_out: Vec<String>,
    /// Names of the columns of text.
    texts: Vec<String>,
}

impl Layout {
    fn of(source: &Source) -> Layout {
        let (label, time) = source.label_and_time();
        let texts = source.layout().into_iter().filter(|column| column.text).map(|column| column.name).collect();
        let left_out = source.left_out().to_vec();
        Layout { inputs: source.inputs(), widths: source.widths(), label, time, left_out, texts }
    }
}

impl Tables {
    /// Opens the first table; the others are opened when their turn comes.
    pub fn open(given: &[&str], options: &ReadOptions) -> Result<Tables, TableError> {
        let mut files = Vec::new();
        for name in given {
            if *name != STANDARD && Path::new(name).is_dir() {
                files.extend(inside(name)?)
            } else {
                files.push(name.to_string())
            }
        }
        let source = Source::open(&files[0], options)?;
        let (names, columns, layout) = (source.names(), source.columns(), Layout::of(&source));
        let (options, order, text_order) = (options.clone(), None, None);
        let sizes = files.iter().map(|file| fs::metadata(file).map_or(1, |about| about.len().max(1))).collect();
        Ok(Tables {
            files,
            sizes,
            options,
            names,
            columns,
            layout,
            at: 0,
            source,
            order,
            text_order,
            rows: 0,
            gap: None,
        })
    }

    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Where the first empty cell was, in the rows read so far.
    pub fn gap(&self) -> Option<&str> {
        self.gap.as_deref()
    }

    /// Names of the feature columns; `None` if the first table has no names.
    pub fn names(&self) -> Option<Vec<String>> {
        self.names.clone()
    }

    /// Number of feature columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The table, if there is only one.
    pub fn single(&self) -> Option<&str> {
        if let [file] = &self.files[..] { Some(file) } else { None }
    }

    /// The name of the current table.
    pub fn file(&self) -> String {
        let file = &self.files[self.at];
        if file == STANDARD { "stdin".to_string() } else { file.clone() }
    }

    /// The share of all bytes read so far.
    pub fn share(&self) -> f64 {
        let bytes = |sizes: &[u64]| sizes.iter().sum::<u64>() as f64;
        (bytes(&self.sizes[..self.at]) + self.source.share() * self.sizes[self.at] as f64) / bytes(&self.sizes)
    }

    /// Returns the next rows; `None` at the end. It is an error if there are no rows at all.
    pub fn next(&mut self) -> Result<Option<Block>, TableError> {
        loop {
            if let Some(mut block) = self.source.next()? {
                if let Some(order) = &self.order {
                    block.values =
                        block.values.chunks_exact(self.columns).flat_map(|row| order.iter().map(|&k| row[k])).collect();
                }
                if let Some(order) = &self.text_order {
                    let rows = block.texts.chunks_exact(order.len());
                    block.texts = rows.flat_map(|row| order.iter().map(|&k| row[k].clone())).collect();
                }
                self.rows += block.values.len() / self.columns;
                self.gap = self.gap.take().or_else(|| self.source.first_gap(&block));
                return Ok(Some(block));
            }
            if self.at + 1 == self.files.len() {
                return if self.rows > 0 { Ok(None) } else { Err(TableError::NoRows { file: self.file() }) };
            }
            self.at += 1;
            self.source = Source::open(&self.files[self.at], &self.options)?;
            self.order = self.order()?;
            let texts = Layout::of(&self.source).texts;
            let place = |name: &String| texts.iter().position(|other| other == name);
            self.text_order = (texts != self.layout.texts)
                .then(|| self.layout.texts.iter().map(place).collect::<Option<_>>())
                .flatten();
        }
    }

    /// The positions of the first table's columns in the current one; `None` if the order is the same.
    fn order(&self) -> Result<Option<Vec<usize>>, TableError> {
        let names = self.source.names();
        let why = match (&self.names, &names) {
            (Some(first), Some(names)) if first == names => return Ok(None),
            (Some(first), Some(names)) => {
                let place = |name: &String| names.iter().position(|other| other == name);
                let order: Option<Vec<usize>> = first.iter().map(place).collect();
                if let Some(order) = order.filter(|order| order.len() == names.len()) {
                    return Ok(Some(order));
                }
                let of = |some: &[String], others: &[String]| {
                    some.iter()
                        .filter(|name| !others.contains(name))
                        .map(|name| format!("'{name}'"))
                        .collect::<Vec<_>>()
                        .join(", ")
                };
                match (of(first, names), of(names, first)) {
                    (missing, more) if more.is_empty() => format!("missing {missing}"),
                    (missing, more) if missing.is_empty() => format!("unexpected {more}"),
                    (missing, more) => format!("missing {missing}, unexpected {more}"),
                }
            }
            _ if self.source.columns() == self.columns => return Ok(None),
            _ => format!("{} of them, expected {}", self.source.columns(), self.columns),
        };
        let (file, first) = (self.files[self.at].clone(), self.files[0].clone());
        Err(TableError::OtherColumns { file, first, why })
    }
}

/// Lists the tables in a directory, sorted by name. Files with other extensions, and those whose names begin with `.`
/// or `_`, are ignored.
fn inside(directory: &str) -> Result<Vec<String>, TableError> {
    let failed = |error| TableError::Io { file: directory.to_string(), error };
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path().to_string_lossy().into_owned();
        if !name.starts_with(['.', '_']) && format_of(&name).is_ok() && !entry.path().is_dir() {
            files.push(path);
        }
    }
    if files.is_empty() {
        let known: Vec<&str> = FORMATS.iter().map(|&(extension, _)| extension).collect();
        let message = format!("no tables in this directory, expected files named {}", known.join(" "));
        return Err(TableError::Malformed { file: directory.to_string(), message });
    }
    files.sort_unstable();
    Ok(files)
}
