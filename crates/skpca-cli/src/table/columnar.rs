//! Typed columns: Parquet and Arrow files, taken batch by batch.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Seek, SeekFrom, Write};
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Once};

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{ArrayRef, Float64Array, RecordBatch};
use arrow_cast::cast;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use super::error::{At, Columns, TableError, check_finite};
use super::selection::Selection;
use super::{ReadOptions, Table, ipc, pages, space};

/// Rows held in columns at a time, besides the table itself.
const BATCH_ROWS: usize = 8192;

/// Reads a Parquet file; columns that are not asked for are not even decoded.
pub(super) fn read_parquet(file: &str, input: File, options: &ReadOptions) -> Result<Table, TableError> {
    contain_panic(file, "Parquet", || decode_parquet(file, input, options))
}

/// Reads an Arrow file (Feather version 2 is the same) or an Arrow stream saved to a file.
pub(super) fn read_arrow(file: &str, input: File, options: &ReadOptions) -> Result<Table, TableError> {
    contain_panic(file, "Arrow", || decode_arrow(file, input, options))
}

fn decode_parquet(file: &str, input: File, options: &ReadOptions) -> Result<Table, TableError> {
    let damaged = |error: &dyn std::error::Error| malformed(file, "Parquet", error);
    let again = input.try_clone().map_err(|error| damaged(&error))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(input).map_err(|error| damaged(&error))?;
    let selection = select(file, builder.schema(), options)?;
    let mask = ProjectionMask::roots(builder.parquet_schema(), wanted(&selection));
    pages::check(again, builder.metadata(), &mask).map_err(|error| damaged(&error))?;
    let reader = builder.with_projection(mask).with_batch_size(BATCH_ROWS).build().map_err(|error| damaged(&error))?;
    collect(selection, reader.map(|batch| batch.map_err(|error| damaged(&error))))
}

fn decode_arrow(file: &str, mut input: File, options: &ReadOptions) -> Result<Table, TableError> {
    let damaged = |error: &dyn std::error::Error| malformed(file, "Arrow", error);
    let stream = ipc::Stream::find(&mut input).map_err(|error| damaged(&error))?;
    ipc::check(&mut BufReader::new(&input), stream).map_err(|error| damaged(&error))?;
    let open = |projection| {
        let mut input = BufReader::new(&input);
        input.seek(SeekFrom::Start(stream.start))?;
        StreamReader::try_new(input, projection)
    };
    let schema = open(None).map_err(|error| damaged(&error))?.schema();
    let selection = select(file, &schema, options)?;
    let reader = open(Some(wanted(&selection))).map_err(|error| damaged(&error))?;
    collect(selection, reader.map(|batch| batch.map_err(|error| damaged(&error))))
}

thread_local! {
    static DECODING: Cell<bool> = const { Cell::new(false) };
}

/// The arrow and parquet crates (60.1) panic on some damaged files, as flipping bytes shows; the
/// user gets an error.
pub(super) fn contain_panic(
    file: &str,
    format: &str,
    decode: impl FnOnce() -> Result<Table, TableError>,
) -> Result<Table, TableError> {
    silence_decoding();
    DECODING.set(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(decode));
    DECODING.set(false);
    outcome.unwrap_or_else(|_| Err(malformed(file, format, &io::Error::other("inconsistent contents"))))
}

/// Keeps the report of a contained panic off the terminal; all other panics are reported as before.
fn silence_decoding() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !DECODING.get() {
                report(info);
            }
        }));
    });
}

/// Writes a Parquet file of 64-bit floats.
pub(super) fn write_parquet(output: impl Write + Send, names: &[String], values: &[f64]) -> io::Result<()> {
    // Scores hardly ever repeat: a dictionary would be built only to be thrown away.
    let properties =
        WriterProperties::builder().set_compression(Compression::SNAPPY).set_dictionary_enabled(false).build();
    let mut writer = ArrowWriter::try_new(output, schema(names), Some(properties)).map_err(io::Error::other)?;
    for batch in batches(names, values) {
        writer.write(&batch.map_err(io::Error::other)?).map_err(io::Error::other)?;
    }
    writer.close().map_err(io::Error::other)?;
    Ok(())
}

/// Writes an Arrow file of 64-bit floats, not compressed so that it can be mapped into memory.
pub(super) fn write_arrow(output: impl Write, names: &[String], values: &[f64]) -> io::Result<()> {
    let mut writer = FileWriter::try_new(output, &schema(names)).map_err(io::Error::other)?;
    for batch in batches(names, values) {
        writer.write(&batch.map_err(io::Error::other)?).map_err(io::Error::other)?;
    }
    writer.finish().map_err(io::Error::other)
}

fn malformed(file: &str, format: &str, error: &dyn std::error::Error) -> TableError {
    TableError::Malformed { file: file.to_string(), message: format!("not a whole {format} file: {error}") }
}

fn select(file: &str, schema: &Schema, options: &ReadOptions) -> Result<Selection, TableError> {
    let names = schema.fields().iter().map(|field| field.name().clone()).collect();
    let selection = Selection::new(file, Columns::Named(names), options)?;
    for &index in &selection.features {
        let field = schema.field(index);
        if !is_number(field.data_type()) {
            let (name, found) = (field.name().clone(), field.data_type().to_string());
            return Err(TableError::ColumnType { file: file.to_string(), name, found });
        }
    }
    Ok(selection)
}

/// Types whose cast to f64 keeps their meaning; a date would cast as well, to days since 1970.
fn is_number(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, values) => is_number(values),
        DataType::Boolean => true,
        other => other.is_numeric(),
    }
}

/// Source columns to decode, ascending as both readers return them.
fn wanted(selection: &Selection) -> Vec<usize> {
    let mut wanted: Vec<usize> = selection.features.iter().copied().chain(selection.label).collect();
    wanted.sort_unstable();
    wanted
}

fn collect(
    selection: Selection,
    batches: impl Iterator<Item = Result<RecordBatch, TableError>>,
) -> Result<Table, TableError> {
    let wanted = wanted(&selection);
    let (mut values, mut label) = (Vec::new(), Vec::new());
    for batch in batches {
        let batch = batch?;
        let first_row = values.len() / selection.features.len();
        // Before anything is made of it: a column of nothing but nulls claims any number of rows for free.
        let more = batch.num_rows().saturating_mul(selection.features.len());
        space::reserve(&mut values, more, &selection.file)?;
        space::reserve(&mut label, selection.label.map_or(0, |_| batch.num_rows()), &selection.file)?;
        values.resize(values.len() + more, 0.0);
        for (&index, column) in wanted.iter().zip(batch.columns()) {
            if selection.label == Some(index) {
                push_label(&mut label, &selection, index, column)?;
            } else {
                fill_feature(&mut values, &selection, index, first_row, column)?;
            }
        }
    }
    selection.table(values, label)
}

fn fill_feature(
    values: &mut [f64],
    selection: &Selection,
    index: usize,
    first_row: usize,
    column: &ArrayRef,
) -> Result<(), TableError> {
    let numbers = convert(selection, index, column, &DataType::Float64)?;
    let width = selection.features.len();
    // `features` ascends, so the source column finds its place by bisection.
    let position = selection.features.partition_point(|&feature| feature < index);
    for (offset, number) in numbers.as_primitive::<Float64Type>().iter().enumerate() {
        let row = first_row + offset;
        // A null and a NaN are the same to us: a value that is missing.
        let number = number.unwrap_or(f64::NAN);
        values[row * width + position] = check_finite(number, || selection.place(At::Row(row), index))?;
    }
    Ok(())
}

fn push_label(
    label: &mut Vec<String>,
    selection: &Selection,
    index: usize,
    column: &ArrayRef,
) -> Result<(), TableError> {
    let texts = convert(selection, index, column, &DataType::Utf8)?;
    let texts = texts.as_string::<i32>().iter();
    texts.map(Option::unwrap_or_default).try_for_each(|text| space::push(label, text, &selection.file))
}

fn convert(selection: &Selection, index: usize, column: &ArrayRef, kind: &DataType) -> Result<ArrayRef, TableError> {
    cast(column, kind).map_err(|error| TableError::Malformed {
        file: selection.file.clone(),
        message: format!("{}: {error}", selection.columns.text(index)),
    })
}

fn schema(names: &[String]) -> Arc<Schema> {
    let fields: Vec<Field> = names.iter().map(|name| Field::new(name, DataType::Float64, false)).collect();
    Arc::new(Schema::new(fields))
}

fn batches(names: &[String], values: &[f64]) -> impl Iterator<Item = Result<RecordBatch, ArrowError>> {
    let (schema, width) = (schema(names), names.len().max(1));
    values.chunks(BATCH_ROWS * width).map(move |rows| {
        let column = |index| rows.iter().skip(index).step_by(width).copied().collect::<Float64Array>();
        let columns = (0..width).map(|index| Arc::new(column(index)) as ArrayRef).collect();
        RecordBatch::try_new(schema.clone(), columns)
    })
}
