//! Typed columns: Parquet and Arrow files, read batch by batch.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Seek, SeekFrom};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_ipc::reader::StreamReader;
use arrow_schema::{ArrowError, DataType, Schema};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::error::{Columns, TableError, TextColumn};
use super::selection::Selection;
use super::{Block, Blocks, ReadOptions, Survey, ipc, pages, space};

/// Number of rows converted at a time.
const BATCH_ROWS: usize = 8192;

/// Cuts the batches of a file into blocks.
pub(super) struct Reader {
    format: &'static str,
    batches: Box<dyn Iterator<Item = Result<RecordBatch, String>>>,
    skip_bad: bool,
    /// The rest of the last batch.
    left: Option<RecordBatch>,
    /// The number of the next row.
    row: usize,
}

/// Opens a Parquet file. Columns that are not selected are not decoded.
pub(super) fn open_parquet(file: &str, input: File, options: &ReadOptions) -> Result<(Selection, Reader), TableError> {
    let damaged = |error: &dyn std::error::Error| malformed(file, "Parquet", error);
    contain_panic(file, "Parquet", || {
        let again = input.try_clone().map_err(|error| damaged(&error))?;
        let builder = ParquetRecordBatchReaderBuilder::try_new(input).map_err(|error| damaged(&error))?;
        let selection = select(file, builder.schema(), options)?;
        let mask = ProjectionMask::roots(builder.parquet_schema(), wanted(&selection));
        pages::check(again, builder.metadata(), &mask).map_err(|error| damaged(&error))?;
        let reader = builder.with_projection(mask).with_batch_size(BATCH_ROWS).build();
        let reader = reader.map_err(|error| damaged(&error))?;
        Ok((selection, Reader::new("Parquet", reader, options)))
    })
}

/// Opens an Arrow file (Feather version 2 is the same) or an Arrow stream saved to a file.
pub(super) fn open_arrow(
    file: &str,
    mut input: File,
    options: &ReadOptions,
) -> Result<(Selection, Reader), TableError> {
    let damaged = |error: &dyn std::error::Error| malformed(file, "Arrow", error);
    contain_panic(file, "Arrow", || {
        let stream = ipc::Stream::find(&mut input).map_err(|error| damaged(&error))?;
        ipc::check(&mut BufReader::new(&input), stream).map_err(|error| damaged(&error))?;
        let open = |projection| {
            let mut input = BufReader::new(input.try_clone()?);
            input.seek(SeekFrom::Start(stream.start))?;
            StreamReader::try_new(input, projection)
        };
        let schema = open(None).map_err(|error| damaged(&error))?.schema();
        let selection = select(file, &schema, options)?;
        let reader = open(Some(wanted(&selection))).map_err(|error| damaged(&error))?;
        Ok((selection, Reader::new("Arrow", reader, options)))
    })
}

impl Reader {
    fn new(
        format: &'static str,
        batches: impl Iterator<Item = Result<RecordBatch, ArrowError>> + 'static,
        options: &ReadOptions,
    ) -> Reader {
        let batches = Box::new(batches.map(|batch| batch.map_err(|error| error.to_string())));
        Reader { format, batches, skip_bad: options.skip_bad, left: None, row: 0 }
    }

    /// Returns the next decoded rows, at most [`BATCH_ROWS`].
    fn batch(&mut self, file: &str) -> Result<Option<RecordBatch>, TableError> {
        while self.left.as_ref().is_none_or(|left| left.num_rows() == 0) {
            let next = contain_panic(file, self.format, || {
                self.batches.next().transpose().map_err(|error| malformed(file, self.format, &io::Error::other(error)))
            })?;
            let Some(next) = next else { return Ok(None) };
            self.left = Some(next);
        }
        Ok(self.left.take().map(|batch| {
            let count = batch.num_rows().min(BATCH_ROWS);
            self.left = Some(batch.slice(count, batch.num_rows() - count));
            batch.slice(0, count)
        }))
    }
}

impl Blocks for Reader {
    fn next(&mut self, selection: &Selection) -> Result<Option<Block>, TableError> {
        let Some(batch) = self.batch(&selection.file)? else { return Ok(None) };
        let (rows, width) = (batch.num_rows(), selection.features.len());
        let mut block = Block::default();
        // Check before converting: a column of nulls can claim any number of rows in a tiny file.
        space::reserve(&mut block.values, rows.saturating_mul(width), &selection.file)?;
        block.values.resize(rows * width, 0.0);
        block.texts.resize(rows * selection.texts.len(), String::new());
        for (&index, column) in wanted(selection).iter().zip(batch.columns()) {
            match selection.texts.binary_search(&index) {
                Ok(position) => fill_text(&mut block.texts, selection, position, column)?,
                Err(_) => fill_feature(&mut block.values, selection, index, column)?,
            }
        }
        let first = self.row;
        self.row += rows;
        block.check(selection, first, self.skip_bad)?;
        Ok(Some(block))
    }
}

thread_local! {
    static DECODING: Cell<bool> = const { Cell::new(false) };
}

/// Turns a panic of the arrow and parquet crates (60.1), which occurs on some damaged files, into an error.
pub(super) fn contain_panic<T>(
    file: &str,
    format: &str,
    decode: impl FnOnce() -> Result<T, TableError>,
) -> Result<T, TableError> {
    silence_decoding();
    DECODING.set(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(decode));
    DECODING.set(false);
    outcome.unwrap_or_else(|_| Err(malformed(file, format, &io::Error::other("inconsistent contents"))))
}

/// Suppresses the report of a contained panic; all other panics are reported as before.
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

fn malformed(file: &str, format: &str, error: &dyn std::error::Error) -> TableError {
    TableError::Malformed { file: file.to_string(), message: format!("not a valid {format} file: {error}") }
}

fn select(file: &str, schema: &Schema, options: &ReadOptions) -> Result<Selection, TableError> {
    let names = schema.fields().iter().map(|field| field.name().clone()).collect();
    let mut selection = Selection::new(file, Columns::Named(names), options)?;
    let kind = |column: usize| schema.field(column).data_type();
    let texts = selection.features.iter().filter(|&&column| !is_number(kind(column)));
    let texts: Vec<_> = texts.map(|&column| TextColumn { column, example: kind(column).to_string() }).collect();
    if let (Survey::Not, Some(TextColumn { column, example: found })) = (options.survey, texts.first()) {
        let (name, found) = (schema.field(*column).name().clone(), found.clone());
        return Err(TableError::ColumnType { file: file.to_string(), name, found });
    }
    selection.without(texts, options.survey)?;
    Ok(selection)
}

/// Whether a cast to f64 keeps the meaning of a type. A date could be cast too, but to days since 1970.
fn is_number(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, values) => is_number(values),
        DataType::Boolean => true,
        other => other.is_numeric(),
    }
}

/// Source columns to decode, ascending, which is the order in which both readers return them.
fn wanted(selection: &Selection) -> Vec<usize> {
    let mut wanted: Vec<usize> = selection.features.iter().chain(&selection.texts).copied().collect();
    wanted.sort_unstable();
    wanted
}

fn fill_feature(values: &mut [f64], selection: &Selection, index: usize, column: &ArrayRef) -> Result<(), TableError> {
    let numbers = convert(selection, index, column, &DataType::Float64)?;
    let numbers = numbers.as_primitive::<Float64Type>();
    // `features` is sorted, so bisection finds the position of the source column.
    let position = selection.features.partition_point(|&feature| feature < index);
    let places = values[position..].iter_mut().step_by(selection.features.len());
    if numbers.null_count() == 0 {
        places.zip(numbers.values()).for_each(|(place, number)| *place = *number);
    } else {
        // Nulls and NaN are both missing values.
        places.zip(numbers.iter()).for_each(|(place, number)| *place = number.unwrap_or(f64::NAN));
    }
    Ok(())
}

fn fill_text(
    texts: &mut [String],
    selection: &Selection,
    position: usize,
    column: &ArrayRef,
) -> Result<(), TableError> {
    let column = convert(selection, selection.texts[position], column, &DataType::Utf8)?;
    let places = texts[position..].iter_mut().step_by(selection.texts.len());
    let column = column.as_string::<i32>().iter().map(Option::unwrap_or_default);
    places.zip(column).for_each(|(place, text)| text.clone_into(place));
    Ok(())
}

fn convert(selection: &Selection, index: usize, column: &ArrayRef, kind: &DataType) -> Result<ArrayRef, TableError> {
    cast(column, kind).map_err(|error| TableError::Malformed {
        file: selection.file.clone(),
        message: format!("{}: {error}", selection.columns.text(index)),
    })
}
