//! Reads records of separated fields, quoted as in RFC 4180, without losing rows to misplaced quotes.
//!
//! ```text
//!                 separator, line end: the field ends
//!            ┌─────────────────────────────────────────┐
//! Start ─ any ─► Plain                              next field
//!   └──── " ───► Quoted ─ " ─► Closed ─ separator, line end
//!                  ▲             │ └─ blanks: ignored; other text: an error
//!                  └───── " ─────┘ a doubled quote
//! ```
//!
//! The csv crate's reader is not used because it accepts a quote that is never closed, and text after a closing quote,
//! as part of a cell. In both cases rows vanish unnoticed into one cell.

use std::io::{self, BufRead};

use super::error::TableError;
use super::space;
use super::text::Text;

/// Maximum number of bytes of a record.
const RECORD_LIMIT: usize = 1 << 30;

/// The records of a text, one at a time.
pub(super) struct Records<'a> {
    pub input: Text<'a>,
    pub record: Record,
}

/// The fields of a row, and its position.
pub(super) struct Record {
    file: String,
    pub separator: u8,
    state: State,
    /// The fields, one after the other.
    text: Vec<u8>,
    /// The end of each field in `text`.
    ends: Vec<usize>,
    /// Whether any field is quoted.
    quoted: bool,
    /// Line on which the record begins, from 1.
    pub line: u64,
    /// Line on which it ends; while it is being read, the line of the next byte.
    pub last_line: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Start,
    Plain,
    Quoted { opened: u64 },
    Closed { opened: u64 },
}

impl<'a> Records<'a> {
    pub fn new(file: &str, input: Text<'a>, separator: u8) -> Self {
        let (text, ends) = (Vec::new(), Vec::new());
        let (file, state) = (file.to_string(), State::Start);
        let record = Record { file, separator, state, text, ends, quoted: false, line: 0, last_line: 0 };
        Records { input, record }
    }

    /// Reads the next record that is not blank; returns false at the end.
    pub fn advance(&mut self) -> Result<bool, TableError> {
        while self.read()? {
            if !self.record.is_blank() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Skips the rest of a line that is not a record.
    pub fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let chunk = self.input.fill_buf()?;
            let end = chunk.iter().position(|&byte| byte == b'\n');
            let (used, last) = (end.map_or(chunk.len(), |end| end + 1), end.is_some() || chunk.is_empty());
            self.input.consume(used);
            if last {
                return Ok(());
            }
        }
    }

    /// Reads the next record, which may be blank; returns false at the end.
    pub fn read(&mut self) -> Result<bool, TableError> {
        self.record.begin();
        loop {
            let chunk = match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(TableError::Io { file: self.record.file.clone(), error }),
                Ok([]) => return self.record.end(),
                Ok(chunk) => chunk,
            };
            let mut used = 0;
            let whole = self.record.take(chunk, &mut used);
            self.input.consume(used);
            if whole? {
                return Ok(true);
            }
        }
    }
}

impl Record {
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    pub fn field(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text[start..self.ends[index]]
    }

    /// Whether the line is empty or contains only `\r` and blanks. A quoted empty field is not blank but a missing
    /// value.
    pub fn is_blank(&self) -> bool {
        self.count() == 1 && !self.quoted && self.text.trim_ascii().is_empty()
    }

    fn begin(&mut self) {
        self.text.clear();
        self.ends.clear();
        (self.state, self.quoted) = (State::Start, false);
        self.line = self.last_line + 1;
        self.last_line = self.line;
    }

    /// Consumes the bytes of `chunk` from `at` on that belong to the record and advances `at`; returns true if the
    /// record is complete.
    fn take(&mut self, chunk: &[u8], at: &mut usize) -> Result<bool, TableError> {
        if self.text.len() > RECORD_LIMIT {
            let message = format!("line {} is longer than a gigabyte: is it a table?", self.line);
            return Err(TableError::Malformed { file: self.file.clone(), message });
        }
        space::reserve(&mut self.text, chunk.len(), &self.file)?;
        space::reserve(&mut self.ends, chunk.len() + 1, &self.file)?;
        while *at < chunk.len() {
            let rest = &chunk[*at..];
            match self.state {
                State::Start if rest[0] == b'"' => {
                    self.quoted = true;
                    self.state = State::Quoted { opened: self.last_line };
                    *at += 1;
                }
                State::Start | State::Plain => {
                    let length = rest.iter().position(|&byte| self.ends_field(byte)).unwrap_or(rest.len());
                    self.text.extend_from_slice(&rest[..length]);
                    self.state = State::Plain;
                    *at += (length + 1).min(rest.len());
                    if length < rest.len() && self.end_field(rest[length]) {
                        return Ok(true);
                    }
                }
                State::Quoted { opened } => {
                    let length = rest.iter().position(|&byte| byte == b'"').unwrap_or(rest.len());
                    self.text.extend_from_slice(&rest[..length]);
                    self.last_line += rest[..length].iter().filter(|&&byte| byte == b'\n').count() as u64;
                    *at += (length + 1).min(rest.len());
                    if length < rest.len() {
                        self.state = State::Closed { opened };
                    }
                }
                State::Closed { opened } => {
                    *at += 1;
                    if self.after_quote(rest[0], opened)? {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    /// Handles the byte after a quote within a quoted field; returns true if it ends the record.
    fn after_quote(&mut self, byte: u8, opened: u64) -> Result<bool, TableError> {
        match byte {
            b'"' => {
                self.text.push(b'"');
                self.state = State::Quoted { opened };
            }
            byte if self.ends_field(byte) => return Ok(self.end_field(byte)),
            b' ' | b'\t' | b'\r' => {}
            _ => return Err(TableError::StrayQuote { file: self.file.clone(), opened, line: self.last_line }),
        }
        Ok(false)
    }

    fn ends_field(&self, byte: u8) -> bool {
        byte == self.separator || byte == b'\n'
    }

    /// Ends a field; returns true if the record ends too.
    fn end_field(&mut self, byte: u8) -> bool {
        self.ends.push(self.text.len());
        self.state = State::Start;
        byte == b'\n'
    }

    /// Ends the last record, which may lack a line break; returns false if there is no record.
    fn end(&mut self) -> Result<bool, TableError> {
        match self.state {
            State::Quoted { opened } => Err(TableError::OpenQuote { file: self.file.clone(), line: opened }),
            State::Start if self.ends.is_empty() => Ok(false),
            _ => {
                self.end_field(b'\n');
                Ok(true)
            }
        }
    }
}
