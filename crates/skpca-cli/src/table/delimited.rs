//! Text tables: fields between separators, one row per line, quoted fields as in RFC 4180.

use std::io::{self, BufReader, Read, Write};
use std::str;

use csv::{ByteRecord, Terminator};
use flate2::read::MultiGzDecoder;

use super::error::{At, Columns, Place, TableError};
use super::selection::Selection;
use super::{ReadOptions, Table};

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
const UTF8_BOM: &[u8] = b"\xef\xbb\xbf";
const BUFFER_BYTES: usize = 1 << 16;

/// Words that stand for an absent value, in any case. A field of blanks only is absent as well.
const MISSING: &[&str] = &["na", "n/a", "<na>", "nan", "null", "none"];

/// Reads a text table, packed by gzip or not.
pub(super) fn read(file: &str, input: impl Read, separator: u8, options: &ReadOptions) -> Result<Table, TableError> {
    let io_error = |error| TableError::Io { file: file.to_string(), error };
    let text = skip_bom(unpack(input).map_err(io_error)?).map_err(io_error)?;
    let mut records = Records::new(file, text, separator);
    if !records.advance()? {
        return Err(TableError::Empty { file: file.to_string() });
    }
    let columns = if options.header {
        Columns::Named(header(file, &records.record)?)
    } else {
        Columns::Numbered(records.record.len())
    };
    let mut rows = Rows { selection: Selection::new(file, columns, options)?, values: Vec::new(), label: Vec::new() };
    if !options.header {
        rows.push(&records)?;
    }
    while records.advance()? {
        rows.push(&records)?;
    }
    rows.selection.table(rows.values, rows.label)
}

/// Writes a header and the rows; every number reads back to the same bits.
pub(super) fn write(output: impl Write, separator: u8, names: &[String], values: &[f64]) -> io::Result<()> {
    let mut writer = csv::WriterBuilder::new().delimiter(separator).buffer_capacity(BUFFER_BYTES).from_writer(output);
    writer.write_record(names).map_err(plain)?;
    let mut text = Vec::new();
    for row in values.chunks(names.len().max(1)) {
        for value in row {
            text.clear();
            // Debug form: the shortest digits that round-trip, with an exponent where it saves
            // zeros.
            write!(text, "{value:?}")?;
            writer.write_field(text.strip_suffix(b".0").unwrap_or(&text)).map_err(plain)?;
        }
        writer.write_record(None::<&[u8]>).map_err(plain)?;
    }
    writer.flush()
}

/// The conversion that csv offers hides the kind of the error, and with it a broken pipe.
fn plain(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// Gzip is recognised by its first bytes: standard input has no extension.
fn unpack<'a>(input: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let mut input = BufReader::with_capacity(BUFFER_BYTES, input);
    let head = peek(&mut input, GZIP_MAGIC.len())?;
    let packed = head == GZIP_MAGIC;
    let whole = io::Cursor::new(head).chain(input);
    Ok(if packed { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) })
}

fn skip_bom<'a>(mut text: Box<dyn Read + 'a>) -> io::Result<Box<dyn Read + 'a>> {
    let head = peek(&mut text, UTF8_BOM.len())?;
    if head == UTF8_BOM { Ok(text) } else { Ok(Box::new(io::Cursor::new(head).chain(text))) }
}

/// Up to `count` bytes, fewer only at the end: one `read` of a pipe may bring a single byte.
fn peek(input: &mut impl Read, count: usize) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(count);
    input.take(count as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// The csv reader with exact line numbers, which it does not keep itself once lines are blank.
///
/// Only `\n` ends a record and the input is given one more, so that each record takes exactly one
/// line end besides those inside quotes; any further ones were blank lines. A `\r` before the line
/// end stays in the last field.
struct Records<'a> {
    file: &'a str,
    reader: csv::Reader<Box<dyn Read + 'a>>,
    record: ByteRecord,
    /// Line on which `record` begins, from 1.
    line: u64,
    /// First of the blank lines between the previous record and this one.
    blank: Option<u64>,
}

impl<'a> Records<'a> {
    fn new(file: &'a str, text: Box<dyn Read + 'a>, separator: u8) -> Self {
        let ended: Box<dyn Read + 'a> = Box::new(text.chain(&b"\n"[..]));
        let reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(separator)
            .terminator(Terminator::Any(b'\n'))
            .buffer_capacity(BUFFER_BYTES)
            .from_reader(ended);
        Records { file, reader, record: ByteRecord::new(), line: 0, blank: None }
    }

    /// Moves to the next record that is not blank; false at the end.
    fn advance(&mut self) -> Result<bool, TableError> {
        self.blank = None;
        loop {
            let start = self.reader.position().line();
            let more = self.reader.read_byte_record(&mut self.record);
            if !more.map_err(|error| TableError::Io { file: self.file.to_string(), error: plain(error) })? {
                return Ok(false);
            }
            self.line = first_line(self.reader.position().line(), &self.record, start);
            if self.line > start {
                self.blank.get_or_insert(start);
            }
            if !is_blank(&self.record) {
                return Ok(true);
            }
            self.blank.get_or_insert(self.line);
        }
    }
}

fn first_line(end: u64, record: &ByteRecord, start: u64) -> u64 {
    if end == start + 1 {
        return start;
    }
    let inside_quotes = record.as_slice().iter().filter(|&&byte| byte == b'\n').count() as u64;
    end.saturating_sub(1 + inside_quotes)
}

/// A line of `\r` or spaces. A quoted empty field is a value, though a missing one.
fn is_blank(record: &ByteRecord) -> bool {
    record.len() == 1 && !record.as_slice().is_empty() && record.as_slice().trim_ascii().is_empty()
}

fn header(file: &str, record: &ByteRecord) -> Result<Vec<String>, TableError> {
    let names = record.iter().enumerate().map(|(index, field)| match str::from_utf8(field.trim_ascii()) {
        Ok(name) => Ok(name.to_string()),
        Err(_) => Err(TableError::Malformed {
            file: file.to_string(),
            message: format!("the name of column {index} (from 0) is not UTF-8"),
        }),
    });
    let names: Vec<String> = names.collect::<Result<_, _>>()?;
    if names.iter().all(|name| name.parse::<f64>().is_ok()) {
        return Err(TableError::HeaderIsNumbers { file: file.to_string() });
    }
    Ok(names)
}

/// The rows read so far.
struct Rows {
    selection: Selection,
    values: Vec<f64>,
    label: Vec<String>,
}

impl Rows {
    fn push(&mut self, records: &Records) -> Result<(), TableError> {
        let (selection, record) = (&self.selection, &records.record);
        let expected = selection.columns.count();
        // In a table of one column a blank line is a row without its value; elsewhere it is only a
        // blank line.
        if let (1, Some(line)) = (expected, records.blank) {
            return Err(TableError::Missing { place: selection.place(At::Line(line), 0) });
        }
        if record.len() != expected {
            let (file, line, fields) = (selection.file.clone(), records.line, record.len());
            return Err(TableError::RaggedLine { file, line, fields, expected });
        }
        for &column in &selection.features {
            self.values.push(number(&record[column], || selection.place(At::Line(records.line), column))?);
        }
        if let Some(column) = selection.label {
            self.label.push(label(&record[column], column, records)?);
        }
        Ok(())
    }
}

fn number(field: &[u8], place: impl FnOnce() -> Place) -> Result<f64, TableError> {
    let field = field.trim_ascii();
    let parsed = str::from_utf8(field).ok().and_then(|text| text.parse::<f64>().ok());
    if let Some(value) = parsed.filter(|value| value.is_finite()) {
        return Ok(value);
    }
    let value = String::from_utf8_lossy(field).into_owned();
    if field.is_empty() || MISSING.contains(&value.to_ascii_lowercase().as_str()) {
        return Err(TableError::Missing { place: place() });
    }
    match parsed {
        Some(parsed) if parsed.is_nan() => Err(TableError::Missing { place: place() }),
        Some(_) => Err(TableError::NotFinite { place: place(), value }),
        None => Err(TableError::NotANumber { place: place(), value }),
    }
}

fn label(field: &[u8], column: usize, records: &Records) -> Result<String, TableError> {
    let field = field.strip_suffix(b"\r").unwrap_or(field);
    match str::from_utf8(field) {
        Ok(text) => Ok(text.to_string()),
        Err(_) => Err(TableError::Malformed {
            file: records.file.to_string(),
            message: format!("line {}, column {column} (from 0): the label is not UTF-8", records.line),
        }),
    }
}
