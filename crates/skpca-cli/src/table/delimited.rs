//! Text tables: separated fields, one row per line, quoted fields as in RFC 4180.

use std::io::{self, BufRead, BufReader, Read};
use std::{mem, str};

use flate2::read::MultiGzDecoder;

use super::dialect::Dialect;
use super::error::{At, Columns, Place, TableError};
use super::quoted::{Record, Records};
use super::selection::Selection;
use super::text::Text;
use super::{Block, Blocks, ReadOptions, Survey, plain, space, survey};

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
const UTF8_BOM: &[u8] = b"\xef\xbb\xbf";
const BUFFER_BYTES: usize = 1 << 16;
/// Maximum number of bytes of the first line that are searched for separators.
const LONGEST_LINE: u64 = 16 << 20;

/// Reads a text table, which may be compressed with gzip, as it arrives.
pub(super) struct Reader<'a> {
    records: Records<'a>,
    dialect: Dialect,
    skip_bad: bool,
    /// Whether the first record, which was read already, is a row.
    first: bool,
    /// The first of the blank lines since the last record.
    blank: Option<u64>,
    /// An error to return after the rows before it.
    failed: Option<TableError>,
}

/// Opens a text table and selects its columns.
pub(super) fn open<'a>(
    file: &str,
    (input, live): (impl Read + 'a, bool),
    separator: u8,
    options: &ReadOptions,
) -> Result<(Selection, Reader<'a>), TableError> {
    let io_error = |error| TableError::Io { file: file.to_string(), error };
    let text = without_bom(unpack(input).map_err(io_error)?).map_err(io_error)?;
    let mut text = BufReader::with_capacity(BUFFER_BYTES, text);
    let mut line = Vec::new();
    (&mut text).take(LONGEST_LINE).read_until(b'\n', &mut line).map_err(io_error)?;
    let dialect = Dialect::of(&line, separator, options);
    let text = Text::new(Box::new(io::Cursor::new(line).chain(text)), live);
    let mut records = Records::new(file, text, dialect.separator);
    if !records.advance()? {
        return Err(TableError::Empty { file: file.to_string() });
    }
    let columns = if options.header {
        Columns::Named(header(file, &records.record)?)
    } else {
        Columns::Numbered(records.record.count())
    };
    let mut selection = Selection::new(file, columns, options)?;
    if options.survey != Survey::Not {
        let Records { input, record } = &mut records;
        let first = Some(&*record).filter(|_| !options.header);
        let found = survey::text_columns(first, input.whole_lines().map_err(io_error)?, dialect, &selection);
        selection.without(found, options.survey)?;
    }
    let (skip_bad, first) = (options.skip_bad, !options.header);
    Ok((selection, Reader { records, dialect, skip_bad, first, blank: None, failed: None }))
}

/// Decompresses gzip, recognised by its first bytes, since standard input has no extension.
fn unpack<'a>(input: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let mut input = BufReader::with_capacity(BUFFER_BYTES, input);
    let head = peek(&mut input, GZIP_MAGIC)?;
    let packed = head == GZIP_MAGIC;
    let whole = io::Cursor::new(head).chain(input);
    Ok(if packed { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) })
}

fn without_bom<'a>(mut text: Box<dyn Read + 'a>) -> io::Result<Box<dyn Read + 'a>> {
    let head = peek(&mut text, UTF8_BOM)?;
    if head == UTF8_BOM { Ok(text) } else { Ok(Box::new(io::Cursor::new(head).chain(text))) }
}

/// Reads the first bytes as long as they match `expected`, byte by byte, since a pipe may deliver the next byte only
/// after an answer.
fn peek(input: &mut impl Read, expected: &[u8]) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(expected.len());
    while head.len() < expected.len() && expected.starts_with(&head) {
        if input.take(1).read_to_end(&mut head)? == 0 {
            break;
        }
    }
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

impl Blocks for Reader<'_> {
    fn next(&mut self, selection: &Selection) -> Result<Option<Block>, TableError> {
        let io_error = |error| TableError::Io { file: selection.file.clone(), error };
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut block = Block::default();
        if mem::take(&mut self.first) {
            self.push(&mut block, selection).or_else(|error| self.skip_or_fail(error, &mut block))?;
        }
        while block.is_empty() {
            let Records { input, record } = &mut self.records;
            let lines = input.whole_lines().map_err(io_error)?;
            let length = lines.len();
            // A blank line before the chunk may be a missing value.
            let plain = match self.blank {
                None => take_plain((lines, record.last_line), self.dialect, selection, &mut block)?,
                Some(_) => None,
            };
            match plain {
                Some(count) => {
                    self.records.record.last_line += count;
                    self.records.input.consume(length);
                }
                None => self.take_records(length, &mut block, selection)?,
            }
            if self.records.input.is_over() {
                break;
            }
        }
        Ok(Some(block).filter(|block| !block.is_empty()))
    }
}

/// Parses whole lines if all of them are plain, and returns their number; `before` lines precede them.
fn take_plain(
    (lines, before): (&[u8], u64),
    dialect: Dialect,
    selection: &Selection,
    block: &mut Block,
) -> Result<Option<u64>, TableError> {
    // Twice: the parsed pieces, and the block that they are copied to.
    if lines.is_empty() || space::check(&selection.file, 2 * plain::size(lines, selection)).is_err() {
        return Ok(None);
    }
    let Some(pieces) = plain::parse(lines, dialect, selection) else { return Ok(None) };
    let mut count = 0;
    for plain::Rows { values, texts, lines, gap } in pieces {
        block.gap = block.gap.or(gap.map(|(line, column)| (At::Line(before + count + line), column)));
        count += lines;
        append(&mut block.values, values, &selection.file)?;
        append(&mut block.texts, texts, &selection.file)?;
    }
    Ok(Some(count))
}

/// Appends elements; moves the vector if the target is empty.
fn append<T>(to: &mut Vec<T>, from: Vec<T>, file: &str) -> Result<(), TableError> {
    if to.is_empty() {
        *to = from;
        return Ok(());
    }
    space::reserve(to, from.len(), file)?;
    to.extend(from);
    Ok(())
}

impl Reader<'_> {
    /// Reads the records that begin within the next `length` bytes, at least one.
    fn take_records(&mut self, length: usize, block: &mut Block, selection: &Selection) -> Result<(), TableError> {
        let end = self.records.input.position + length.max(1) as u64;
        while self.records.input.position < end && self.failed.is_none() {
            match self.take_record(block, selection) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => self.skip_or_fail(error, block)?,
            }
        }
        Ok(())
    }

    /// Reads one record; returns false at the end.
    fn take_record(&mut self, block: &mut Block, selection: &Selection) -> Result<bool, TableError> {
        if !self.records.read()? {
            return Ok(false);
        }
        if self.records.record.is_blank() {
            self.blank.get_or_insert(self.records.record.line);
            return Ok(true);
        }
        // In a table of one column, a blank line is a row with a missing value; otherwise it is ignored.
        if let (1, Some(line)) = (selection.columns.count(), self.blank.take()) {
            if selection.gaps {
                block.values.push(f64::NAN);
                block.gap.get_or_insert((At::Line(line), 0));
            } else {
                let missing = TableError::Missing { place: selection.place(At::Line(line), 0) };
                self.skip_or_fail(missing, block)?;
            }
            if self.failed.is_some() {
                return Ok(true);
            }
        }
        self.push(block, selection).map(|()| true)
    }

    /// Handles a row that cannot be used: it is skipped, or reading ends with its error.
    fn skip_or_fail(&mut self, error: TableError, block: &mut Block) -> Result<(), TableError> {
        if self.skip_bad && error.is_about_a_row() {
            if let TableError::StrayQuote { file, .. } = &error {
                let io_error = |error| TableError::Io { file: file.clone(), error };
                self.records.skip_line().map_err(io_error)?;
            }
            block.bad.push(error);
            return Ok(());
        }
        // A writer waiting for answers gets those to the rows before the error first.
        if self.records.input.live && !block.is_empty() {
            self.failed = Some(error);
            return Ok(());
        }
        Err(error)
    }

    fn push(&self, block: &mut Block, selection: &Selection) -> Result<(), TableError> {
        let record = &self.records.record;
        let (values, texts) = (block.values.len(), block.texts.len());
        self.push_fields(block, selection).map_err(|error| {
            block.values.truncate(values);
            block.texts.truncate(texts);
            match (record.line, record.last_line) {
                (first, last) if last > first => TableError::ManyLines { error: Box::new(error), first, last },
                _ => error,
            }
        })
    }

    fn push_fields(&self, block: &mut Block, selection: &Selection) -> Result<(), TableError> {
        let record = &self.records.record;
        let expected = selection.columns.count();
        if record.count() != expected {
            let (file, line, fields) = (selection.file.clone(), record.line, record.count());
            return Err(TableError::RaggedLine { file, line, fields, expected });
        }
        space::reserve(&mut block.values, selection.features.len(), &selection.file)?;
        for &column in &selection.features {
            let place = || selection.place(At::Line(record.line), column);
            match number(record.field(column), self.dialect, place) {
                Err(TableError::Missing { .. }) if selection.gaps => {
                    block.values.push(f64::NAN);
                    block.gap.get_or_insert((At::Line(record.line), column));
                }
                value => block.values.push(value?),
            }
        }
        for &column in &selection.texts {
            space::push(&mut block.texts, text(record, column, selection)?, &selection.file)?;
        }
        Ok(())
    }
}

fn number(field: &[u8], dialect: Dialect, place: impl FnOnce() -> Place) -> Result<f64, TableError> {
    if let Some(value) = dialect.number(field) {
        return Ok(value);
    }
    if Dialect::is_missing(field) {
        return Err(TableError::Missing { place: place() });
    }
    let value = String::from_utf8_lossy(field.trim_ascii()).into_owned();
    if dialect.is_infinite(field) {
        Err(TableError::NotFinite { place: place(), value })
    } else {
        Err(TableError::NotANumber { place: place(), value })
    }
}

fn text<'a>(record: &'a Record, column: usize, selection: &Selection) -> Result<&'a str, TableError> {
    let field = record.field(column);
    str::from_utf8(field.strip_suffix(b"\r").unwrap_or(field)).map_err(|_| TableError::NotText {
        file: selection.file.clone(),
        line: record.line,
        column,
    })
}
