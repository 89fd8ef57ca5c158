//! Text tables: fields between separators, one row per line, quoted fields as in RFC 4180.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::str;

use flate2::read::MultiGzDecoder;

use super::dialect::Dialect;
use super::error::{At, Columns, Place, TableError};
use super::quoted::{Record, Records};
use super::selection::Selection;
use super::{ReadOptions, Table, plain, space};

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
const UTF8_BOM: &[u8] = b"\xef\xbb\xbf";
const BUFFER_BYTES: usize = 1 << 16;
/// No more of a first line than this is looked at for its separators.
const LONGEST_LINE: u64 = 16 << 20;

/// Words that stand for an absent value, in any case. A field of blanks only is absent as well.
const MISSING: &[&str] = &["na", "n/a", "<na>", "nan", "null", "none"];

/// Reads a text table, packed by gzip or not.
pub(super) fn read(file: &str, input: impl Read, separator: u8, options: &ReadOptions) -> Result<Table, TableError> {
    let io_error = |error| TableError::Io { file: file.to_string(), error };
    let text = skip_bom(unpack(input).map_err(io_error)?).map_err(io_error)?;
    let mut text = BufReader::with_capacity(BUFFER_BYTES, text);
    let mut line = Vec::new();
    (&mut text).take(LONGEST_LINE).read_until(b'\n', &mut line).map_err(io_error)?;
    let dialect = Dialect::of(&line, separator, options);
    let text: Box<dyn BufRead> = Box::new(io::Cursor::new(line).chain(text));
    let mut records = Records::new(file, text, dialect.separator);
    if !records.advance()? {
        return Err(TableError::Empty { file: file.to_string() });
    }
    let columns = if options.header {
        Columns::Named(header(file, &records.record)?)
    } else {
        Columns::Numbered(records.record.count())
    };
    let selection = Selection::new(file, columns, options)?;
    let mut rows = Rows { selection, dialect, values: Vec::new(), label: Vec::new() };
    if !options.header {
        rows.push(&records)?;
    }
    rows.extend(&mut records)?;
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

fn header(file: &str, record: &Record) -> Result<Vec<String>, TableError> {
    let names = (0..record.count()).map(|index| match str::from_utf8(record.field(index).trim_ascii()) {
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
    dialect: Dialect,
    values: Vec<f64>,
    label: Vec<String>,
}

impl Rows {
    /// Takes plain lines as long as there are any.
    fn extend(&mut self, records: &mut Records) -> Result<(), TableError> {
        let io_error = |error| TableError::Io { file: self.selection.file.clone(), error };
        let mut slab = Vec::new();
        loop {
            let whole = plain::fill(&mut *records.input, &mut slab).map_err(io_error)?;
            // Twice: as they are parsed, and where they go.
            let room = space::check(&self.selection.file, 2 * plain::size(&slab, &self.selection)).is_ok();
            let plain = whole && room && !slab.is_empty();
            let pieces = plain.then(|| plain::parse(&slab, self.dialect, &self.selection)).flatten();
            let Some(pieces) = pieces else {
                records.put_back(slab);
                return Ok(());
            };
            for plain::Rows { values, labels, lines } in pieces {
                space::reserve(&mut self.values, values.len(), &self.selection.file)?;
                self.values.extend(values);
                space::reserve(&mut self.label, labels.len(), &self.selection.file)?;
                self.label.extend(labels);
                records.record.last_line += lines;
            }
        }
    }

    fn push(&mut self, records: &Records) -> Result<(), TableError> {
        let record = &records.record;
        self.push_record(record, records.blank).map_err(|error| match (record.line, record.last_line) {
            (first, last) if last > first => TableError::ManyLines { error: Box::new(error), first, last },
            _ => error,
        })
    }

    fn push_record(&mut self, record: &Record, blank: Option<u64>) -> Result<(), TableError> {
        let selection = &self.selection;
        let expected = selection.columns.count();
        // In a table of one column a blank line is a row without its value; elsewhere it is only a
        // blank line.
        if let (1, Some(line)) = (expected, blank) {
            return Err(TableError::Missing { place: selection.place(At::Line(line), 0) });
        }
        if record.count() != expected {
            let (file, line, fields) = (selection.file.clone(), record.line, record.count());
            return Err(TableError::RaggedLine { file, line, fields, expected });
        }
        space::reserve(&mut self.values, selection.features.len(), &selection.file)?;
        for &column in &selection.features {
            let place = || selection.place(At::Line(record.line), column);
            self.values.push(number(record.field(column), self.dialect, place)?);
        }
        if let Some(column) = selection.label {
            space::push(&mut self.label, label(record, column, &selection.file)?, &selection.file)?;
        }
        Ok(())
    }
}

fn number(field: &[u8], dialect: Dialect, place: impl FnOnce() -> Place) -> Result<f64, TableError> {
    if let Some(value) = dialect.number(field) {
        return Ok(value);
    }
    let field = field.trim_ascii();
    let parsed = str::from_utf8(field).ok().and_then(|text| text.parse::<f64>().ok());
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

fn label<'a>(record: &'a Record, column: usize, file: &str) -> Result<&'a str, TableError> {
    let field = record.field(column);
    str::from_utf8(field.strip_suffix(b"\r").unwrap_or(field)).map_err(|_| TableError::Malformed {
        file: file.to_string(),
        message: format!("line {}, column {column} (from 0): the label is not UTF-8", record.line),
    })
}
