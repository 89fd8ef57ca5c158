//! Rows in a file, as a fit reads them: little-endian numbers in row-major order.
//!
//! ```text
//! blocks of rows ── Spool ──► unnamed temporary file ──► FileRows ◄── an array in a user's file
//! ```
//!
//! A spool stores numbers in 32 bits as long as that is exact. From the first number that needs 64 bits, it stores all
//! in
//! 64. Its file has no name, so it disappears with the process, however that ends.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use skpca::{Error, Source};

/// Number of bytes written or rewritten at a time.
const BUFFER_BYTES: usize = 1 << 20;

/// The type of the numbers in a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Element {
    /// 32-bit floating point.
    Single,
    /// 64-bit floating point.
    Double,
}

impl Element {
    /// Number of bytes of a number.
    pub fn bytes(self) -> usize {
        match self {
            Element::Single => size_of::<f32>(),
            Element::Double => size_of::<f64>(),
        }
    }

    fn decode(self, bytes: &[u8], values: &mut [f64]) {
        match self {
            Element::Single => {
                let numbers = bytes.as_chunks().0.iter().map(|number| f32::from_le_bytes(*number));
                values.iter_mut().zip(numbers).for_each(|(value, number)| *value = f64::from(number));
            }
            Element::Double => {
                let numbers = bytes.as_chunks().0.iter().map(|number| f64::from_le_bytes(*number));
                values.iter_mut().zip(numbers).for_each(|(value, number)| *value = number);
            }
        }
    }

    fn write(self, values: &[f64], to: &mut impl Write) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(values.len() * self.bytes());
        match self {
            Element::Single => values.iter().for_each(|v| bytes.extend((*v as f32).to_le_bytes())),
            Element::Double => values.iter().for_each(|v| bytes.extend(v.to_le_bytes())),
        }
        to.write_all(&bytes)
    }
}

/// A table that is being written to a temporary file, to be read in passes.
pub struct Spool {
    directory: PathBuf,
    file: BufWriter<File>,
    element: Element,
    d: usize,
    values: usize,
}

impl Spool {
    /// Creates an empty table of d columns in an unnamed file.
    pub fn begin(directory: &Path, d: usize) -> io::Result<Spool> {
        Ok(Spool { directory: directory.into(), file: nameless(directory)?, element: Element::Single, d, values: 0 })
    }

    /// Adds whole rows.
    pub fn add(&mut self, values: &[f64]) -> io::Result<()> {
        debug_assert!(values.len().is_multiple_of(self.d));
        let single = |v: &f64| f64::from(*v as f32).to_bits() == v.to_bits();
        if self.element == Element::Single && !values.iter().all(single) {
            self.widen()?;
        }
        self.values += values.len();
        values.chunks(BUFFER_BYTES / size_of::<f64>()).try_for_each(|some| self.element.write(some, &mut self.file))
    }

    /// Rewrites the numbers so far from 32 to 64 bits.
    fn widen(&mut self) -> io::Result<()> {
        let mut wide = nameless(&self.directory)?;
        self.file.flush()?;
        let narrow = self.file.get_mut();
        narrow.seek(SeekFrom::Start(0))?;
        let mut narrow = BufReader::with_capacity(BUFFER_BYTES, narrow);
        let (mut left, mut bytes, mut values) = (self.values, Vec::new(), Vec::new());
        while left > 0 {
            let count = left.min(BUFFER_BYTES / size_of::<f64>());
            bytes.resize(count * self.element.bytes(), 0);
            values.resize(count, 0.0);
            narrow.read_exact(&mut bytes)?;
            self.element.decode(&bytes, &mut values);
            Element::Double.write(&values, &mut wide)?;
            left -= count;
        }
        (self.file, self.element) = (wide, Element::Double);
        Ok(())
    }

    /// Number of rows so far.
    pub fn rows(&self) -> usize {
        self.values / self.d
    }

    /// Ends the table and returns it for reading.
    pub fn finish(self) -> io::Result<FileRows> {
        let (n, d) = (self.rows(), self.d);
        let file = self.file.into_inner().map_err(|error| error.into_error())?;
        Ok(FileRows { file, start: 0, n, d, element: self.element, origin: None })
    }
}

fn nameless(directory: &Path) -> io::Result<BufWriter<File>> {
    Ok(BufWriter::with_capacity(BUFFER_BYTES, tempfile::tempfile_in(directory)?))
}

/// Rows in a file, read in place. It needs memory only for the rows read at a time.
pub struct FileRows {
    file: File,
    /// Offset of the first number.
    start: u64,
    n: usize,
    d: usize,
    element: Element,
    /// The name of a user's file, and its state when it was opened.
    origin: Option<(String, State)>,
}

/// The length of a file and the time of its last modification, to detect changes.
#[derive(PartialEq)]
struct State(u64, Option<SystemTime>);

impl State {
    fn of(file: &File) -> io::Result<State> {
        let about = file.metadata()?;
        Ok(State(about.len(), about.modified().ok()))
    }
}

impl FileRows {
    /// Opens a user's file with n rows of d numbers from byte `start` on.
    pub fn open(path: &Path, start: u64, (n, d): (usize, usize), element: Element) -> io::Result<FileRows> {
        let file = File::open(path)?;
        let state = State::of(&file)?;
        let numbers = (n as u64).checked_mul(d as u64).and_then(|count| count.checked_mul(element.bytes() as u64));
        if numbers.and_then(|bytes| bytes.checked_add(start)).is_none_or(|end| end > state.0) {
            let message = format!("{n} rows x {d} columns from byte {start} are more than its {} bytes", state.0);
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
        }
        Ok(FileRows { file, start, n, d, element, origin: Some((path.display().to_string(), state)) })
    }

    /// Number of bytes of the rows.
    pub fn bytes(&self) -> usize {
        self.n * self.d * self.element.bytes()
    }

    /// Returns the result computed from the rows, or an error if the file was modified since it was opened. A read
    /// error takes precedence, because it names the row.
    pub fn unless_changed<T>(&self, made: Result<T, Error>) -> Result<T, Error> {
        let unread = matches!(made, Err(Error::Source { .. }));
        match &self.origin {
            Some((name, state)) if !unread && State::of(&self.file).ok().as_ref() != Some(state) => {
                let why = format!("{name}: the file changed while it was read; fit again once it is complete");
                Err(Error::Source { why })
            }
            _ => made,
        }
    }

    fn bytes_of(&self, rows: Range<usize>, bytes: &mut Vec<u8>) -> Result<(), Error> {
        let width = self.d * self.element.bytes();
        bytes.resize(rows.len() * width, 0);
        read_exact_at(&self.file, bytes, self.start + (rows.start * width) as u64).map_err(|error| {
            let name = self.origin.as_ref().map_or("temporary file", |(name, _)| name);
            let why = match error.kind() {
                io::ErrorKind::UnexpectedEof => {
                    format!("{name} ends before row {} of {}: it was truncated while being read", rows.end, self.n)
                }
                _ => format!("{name}: {error}"),
            };
            Error::Source { why }
        })
    }
}

impl Source for FileRows {
    fn n(&self) -> usize {
        self.n
    }

    fn d(&self) -> usize {
        self.d
    }

    fn read(&self, rows: Range<usize>, room: &mut Vec<f64>) -> Result<(), Error> {
        BYTES.with_borrow_mut(|bytes| {
            self.bytes_of(rows.clone(), bytes)?;
            room.resize(rows.len() * self.d, 0.0);
            self.element.decode(bytes, room);
            Ok(())
        })
    }

    fn gather(&self, rows: &[usize]) -> Result<Vec<f64>, Error> {
        let mut values = vec![0.0; rows.len() * self.d];
        // In the order of the file, which is faster on disks.
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_unstable_by_key(|&i| rows[i]);
        BYTES.with_borrow_mut(|bytes| {
            for i in order {
                self.bytes_of(rows[i]..rows[i] + 1, bytes)?;
                self.element.decode(bytes, &mut values[i * self.d..(i + 1) * self.d]);
            }
            Ok(values)
        })
    }
}

thread_local! {
    /// Buffer of bytes to decode, reused from block to block.
    static BYTES: std::cell::RefCell<Vec<u8>> = const { std::cell::RefCell::new(Vec::new()) };
}

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut bytes: &mut [u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, bytes, at) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                bytes = &mut bytes[count..];
                at += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
