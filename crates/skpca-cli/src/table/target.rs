//! Writes tables, block by block.

use std::io::{self, Seek, SeekFrom, Stdout, Write};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use flate2::Compression;
use flate2::write::GzEncoder;
use parquet::arrow::ArrowWriter;
use parquet::basic;
use parquet::file::properties::WriterProperties;
use skpca_files::Output;

use super::error::TableError;
use super::npy::MAGIC;
use super::{Format, STANDARD, format_of};

const BUFFER_BYTES: usize = 1 << 16;
/// Elements of a .npy file start at a multiple of this many bytes (format specification, version 1.0).
const ALIGNMENT: usize = 64;
/// Number of rows per batch.
const BATCH_ROWS: usize = 8192;

/// A column of results: its name, and whether it contains text.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    pub name: String,
    pub text: bool,
}

impl Column {
    pub fn number(name: impl Into<String>) -> Column {
        Column { name: name.into(), text: false }
    }
}

/// A table that is being written. A file appears once [`Target::finish`] has succeeded, or not at all.
pub struct Target {
    file: Option<String>,
    columns: Vec<Column>,
    sink: Sink,
    rows: usize,
}

enum Sink {
    Text { writer: Box<csv::Writer<Text>>, begun: bool },
    Parquet(Box<ArrowWriter<Output>>),
    Arrow(Box<FileWriter<Output>>),
    Npy(Output),
}

enum Text {
    Standard(Stdout),
    Plain(Output),
    Packed(Box<GzEncoder<Output>>),
}

impl Target {
    /// Begins a table; `None` or `-` is CSV to standard output, otherwise the extension determines the format.
    pub fn begin(target: Option<&str>, columns: Vec<Column>) -> Result<Target, TableError> {
        let file = target.filter(|&target| target != STANDARD);
        let sink = match file {
            None => Sink::text(Text::Standard(io::stdout()), b','),
            Some(file) => {
                let format = format_of(file)?;
                if let (Format::Npy, Some(column)) = (format, columns.iter().find(|column| column.text)) {
                    let name = column.name.clone();
                    return Err(TableError::OnlyNumbers { file: file.to_string(), name });
                }
                let failed = |error| TableError::Io { file: file.to_string(), error };
                let output = Output::begin(Path::new(file)).map_err(failed)?;
                Sink::new(output, format, &columns).map_err(failed)?
            }
        };
        Ok(Target { file: file.map(String::from), columns, sink, rows: 0 })
    }

    /// Writes rows, given their numbers and their texts, row by row.
    pub fn write(&mut self, numbers: &[f64], texts: &[String]) -> Result<(), TableError> {
        let width = self.columns.iter().filter(|column| !column.text).count().max(1);
        self.rows += numbers.len() / width;
        let Target { sink, columns, .. } = self;
        let written = match sink {
            Sink::Text { writer, begun } => write_text(writer, begun, columns, (numbers, texts)),
            Sink::Parquet(writer) => batches(columns, numbers, texts)
                .try_for_each(|batch| writer.write(&batch.map_err(io::Error::other)?).map_err(io::Error::other)),
            Sink::Arrow(writer) => batches(columns, numbers, texts)
                .try_for_each(|batch| writer.write(&batch.map_err(io::Error::other)?).map_err(io::Error::other)),
            Sink::Npy(output) => numbers.iter().try_for_each(|value| output.write_all(&value.to_le_bytes())),
        };
        written.map_err(|error| self.failed(error))
    }

    /// Flushes standard output, whose reader may be waiting.
    pub fn flush(&mut self) -> Result<(), TableError> {
        let flushed = match &mut self.sink {
            Sink::Text { writer, .. } if self.file.is_none() => writer.flush(),
            _ => Ok(()),
        };
        flushed.map_err(|error| self.failed(error))
    }

    /// Completes the table and moves the file into place.
    pub fn finish(self) -> Result<(), TableError> {
        let (file, rows, columns) = (self.file, self.rows, self.columns.len());
        self.sink.finish(rows, columns).map_err(|error| failed(file.as_deref(), error))
    }

    fn failed(&self, error: io::Error) -> TableError {
        failed(self.file.as_deref(), error)
    }
}

pub(super) fn failed(file: Option<&str>, error: io::Error) -> TableError {
    match file {
        None if error.kind() == io::ErrorKind::BrokenPipe => TableError::BrokenPipe,
        file => TableError::Io { file: file.unwrap_or("stdout").to_string(), error },
    }
}

impl Sink {
    fn text(output: Text, separator: u8) -> Sink {
        let writer = csv::WriterBuilder::new().delimiter(separator).buffer_capacity(BUFFER_BYTES).from_writer(output);
        Sink::Text { writer: Box::new(writer), begun: false }
    }

    fn new(output: Output, format: Format, columns: &[Column]) -> io::Result<Sink> {
        Ok(match format {
            Format::Delimited { separator, gzip: false } => Sink::text(Text::Plain(output), separator),
            Format::Delimited { separator, gzip: true } => {
                Sink::text(Text::Packed(Box::new(GzEncoder::new(output, Compression::default()))), separator)
            }
            Format::Parquet => {
                // Scores hardly ever repeat, so a dictionary would be built only to be discarded.
                let properties = WriterProperties::builder()
                    .set_compression(basic::Compression::SNAPPY)
                    .set_dictionary_enabled(false)
                    .build();
                let writer = ArrowWriter::try_new(output, schema(columns), Some(properties));
                Sink::Parquet(Box::new(writer.map_err(io::Error::other)?))
            }
            // Uncompressed, so that it can be mapped into memory.
            Format::Arrow => {
                Sink::Arrow(Box::new(FileWriter::try_new(output, &schema(columns)).map_err(io::Error::other)?))
            }
            Format::Npy => {
                let mut output = output;
                output.write_all(&npy_header(0, columns.len()))?;
                Sink::Npy(output)
            }
        })
    }

    fn finish(self, rows: usize, columns: usize) -> io::Result<()> {
        match self {
            Sink::Text { writer, .. } => match writer.into_inner().map_err(|error| error.into_error())? {
                Text::Standard(mut output) => output.flush(),
                Text::Plain(output) => output.finish(),
                Text::Packed(output) => output.finish()?.finish(),
            },
            Sink::Parquet(writer) => writer.into_inner().map_err(io::Error::other)?.finish(),
            Sink::Arrow(mut writer) => {
                writer.finish().map_err(io::Error::other)?;
                writer.into_inner().map_err(io::Error::other)?.finish()
            }
            Sink::Npy(mut output) => {
                // The header contains the number of rows, which is known only now.
                output.seek(SeekFrom::Start(0))?;
                output.write_all(&npy_header(rows, columns))?;
                output.finish()
            }
        }
    }
}

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Text::Standard(output) => output.write(bytes),
            Text::Plain(output) => output.write(bytes),
            Text::Packed(output) => output.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Text::Standard(output) => output.flush(),
            Text::Plain(output) => output.flush(),
            Text::Packed(output) => output.flush(),
        }
    }
}

/// Writes rows, with a header before the first; every number reads back to the same bits.
pub(super) fn write_text<W: Write>(
    writer: &mut csv::Writer<W>,
    begun: &mut bool,
    columns: &[Column],
    (mut numbers, mut texts): (&[f64], &[String]),
) -> io::Result<()> {
    if !*begun {
        *begun = true;
        writer.write_record(columns.iter().map(|column| &column.name)).map_err(plain)?;
    }
    let mut text = Vec::new();
    while !numbers.is_empty() {
        for column in columns {
            if column.text {
                writer.write_field(&texts[0]).map_err(plain)?;
                texts = &texts[1..];
                continue;
            }
            text.clear();
            // Debug formatting: the shortest digits that round-trip, with an exponent if that saves zeros.
            write!(text, "{:?}", numbers[0])?;
            numbers = &numbers[1..];
            writer.write_field(text.strip_suffix(b".0").unwrap_or(&text)).map_err(plain)?;
        }
        writer.write_record(None::<&[u8]>).map_err(plain)?;
    }
    Ok(())
}

/// Converts an error and keeps its kind, which the conversion of the csv crate hides, and with it a broken pipe.
fn plain(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// The header of a .npy file. Its length is the same for any number of rows. The format has no column names.
fn npy_header(rows: usize, columns: usize) -> Vec<u8> {
    let text = |rows: &str| format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    let before = MAGIC.len() + 2 + 2;
    let whole = (before + text(&usize::MAX.to_string()).len() + 1).next_multiple_of(ALIGNMENT);
    let text = format!("{:<width$}\n", text(&rows.to_string()), width = whole - before - 1);
    // With at most two 20-digit numbers, the length of the header always fits 16 bits.
    [MAGIC, &[1, 0], &(text.len() as u16).to_le_bytes(), text.as_bytes()].concat()
}

fn schema(columns: &[Column]) -> Arc<Schema> {
    let kind = |column: &Column| if column.text { DataType::Utf8 } else { DataType::Float64 };
    Arc::new(Schema::new(columns.iter().map(|c| Field::new(&c.name, kind(c), false)).collect::<Vec<_>>()))
}

fn batches<'a>(
    columns: &'a [Column],
    numbers: &'a [f64],
    texts: &'a [String],
) -> impl Iterator<Item = Result<RecordBatch, ArrowError>> + 'a {
    let schema = schema(columns);
    let wide = columns.iter().filter(|column| column.text).count();
    let width = columns.len() - wide;
    let rows = numbers.len() / width.max(1);
    (0..rows).step_by(BATCH_ROWS).map(move |start| {
        let end = (start + BATCH_ROWS).min(rows);
        let (mut number, mut text) = (0, 0);
        let arrays = columns.iter().map(|column| -> ArrayRef {
            if column.text {
                text += 1;
                let part = texts[start * wide..end * wide].iter().skip(text - 1).step_by(wide);
                Arc::new(part.map(|text| Some(text.as_str())).collect::<StringArray>())
            } else {
                number += 1;
                let part = numbers[start * width..end * width].iter().skip(number - 1).step_by(width);
                Arc::new(part.copied().collect::<Float64Array>())
            }
        });
        RecordBatch::try_new(schema.clone(), arrays.collect())
    })
}
