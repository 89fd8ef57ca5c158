//! NumPy's .npy files: magic, version, a header `{'descr': …, 'fortran_order': …, 'shape': …}`, then the elements.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use skpca_files::Element as Stored;

use super::error::{Columns, TableError};
use super::selection::Selection;
use super::{Block, Blocks, ReadOptions, space};

pub(super) const MAGIC: &[u8] = b"\x93NUMPY";
/// Maximum length of the header. NumPy itself rejects headers above 10,000 bytes by default.
const HEADER_LIMIT: usize = 1 << 16;
/// Number of elements read at a time; few in tests, so that small arrays have several blocks.
const BLOCK: usize = if cfg!(test) { 1 << 5 } else { 1 << 19 };
/// Numbers stored per column while columns are selected.
const PLACES: usize = 4;
const EXPECTED_TYPES: &str = "expected little-endian f4, f8, i1 to i8, u1 to u8 or bool";

/// Reads the rows of an array, block by block.
pub(super) struct Reader {
    input: File,
    array: Array,
    /// Offset of the first element.
    start: u64,
    /// The next row.
    row: usize,
    skip_bad: bool,
}

/// Opens an array of one or two dimensions; one dimension is one column.
pub(super) fn open(file: &str, input: File, options: &ReadOptions) -> Result<(Selection, Reader), TableError> {
    let malformed = |message| TableError::Malformed { file: file.to_string(), message };
    let io_error = |error| TableError::Io { file: file.to_string(), error };
    let bytes = input.metadata().map_err(io_error)?.len();
    let (header, start) = read_header(&mut BufReader::new(&input)).map_err(malformed)?;
    let array = Array::parse(&header).map_err(malformed)?;
    array.check_size(bytes.saturating_sub(start)).map_err(malformed)?;
    if array.rows == 0 {
        return Err(TableError::NoRows { file: file.to_string() });
    }
    // Memory for selecting columns.
    space::check(file, PLACES.saturating_mul(array.columns).saturating_mul(size_of::<f64>()))?;
    let selection = Selection::new(file, Columns::Numbered(array.columns), options)?;
    Ok((selection, Reader { input, array, start, row: 0, skip_bad: options.skip_bad }))
}

/// Returns the offset, the shape and the element type of an array that a fit can read in place: row by row, in 32 or 64
/// bits.
pub fn lies_by_rows(file: &str) -> Option<(u64, (usize, usize), Stored)> {
    let input = File::open(file).ok().filter(|input| input.metadata().is_ok_and(|about| about.is_file()))?;
    let (header, start) = read_header(&mut BufReader::new(&input)).ok()?;
    let array = Array::parse(&header).ok().filter(|array| !array.fortran)?;
    let element = match array.element {
        Element::Float(4) => Stored::Single,
        Element::Float(8) => Stored::Double,
        _ => return None,
    };
    Some((start, (array.rows, array.columns), element))
}

impl Blocks for Reader {
    fn next(&mut self, selection: &Selection) -> Result<Option<Block>, TableError> {
        let (first, width) = (self.row, selection.features.len());
        let rows = (self.array.rows - first).min((BLOCK / self.array.columns).max(1));
        if rows == 0 {
            return Ok(None);
        }
        let mut block = Block::default();
        space::reserve(&mut block.values, rows * width, &selection.file)?;
        block.values.resize(rows * width, 0.0);
        block.texts.resize(rows * selection.texts.len(), String::new());
        self.fill(&mut block, rows, selection).map_err(|error| self.failed(selection, error))?;
        self.row += rows;
        block.check(selection, first, self.skip_bad)?;
        Ok(Some(block))
    }
}

impl Reader {
    /// Reads the next rows: with one read in row-major order, or one read per column in column-major order.
    fn fill(&mut self, block: &mut Block, rows: usize, selection: &Selection) -> io::Result<()> {
        let (size, columns) = (self.array.element.bytes(), self.array.columns);
        let mut bytes = Vec::new();
        if !self.array.fortran {
            self.read(&mut bytes, self.row * columns, rows * columns)?;
        }
        for column in 0..columns {
            let feature = selection.features.binary_search(&column);
            let text = selection.texts.binary_search(&column);
            if feature.is_err() && text.is_err() {
                continue;
            }
            let (from, step) = if self.array.fortran { (0, 1) } else { (column, columns) };
            if self.array.fortran {
                self.read(&mut bytes, column * self.array.rows + self.row, rows)?;
            }
            let cells = bytes.chunks_exact(size).skip(from).step_by(step).map(cell);
            if let Ok(position) = feature {
                let places = block.values[position..].iter_mut().step_by(selection.features.len());
                places.zip(cells).for_each(|(place, cell)| *place = self.array.element.number(cell));
            } else if let Ok(position) = text {
                let places = block.texts[position..].iter_mut().step_by(selection.texts.len());
                places.zip(cells).for_each(|(place, cell)| *place = self.array.element.text(cell));
            }
        }
        Ok(())
    }

    /// Reads `count` elements, starting with number `first`.
    fn read(&mut self, bytes: &mut Vec<u8>, first: usize, count: usize) -> io::Result<()> {
        let size = self.array.element.bytes();
        bytes.resize(count * size, 0);
        self.input.seek(SeekFrom::Start(self.start + (first * size) as u64))?;
        self.input.read_exact(bytes)
    }

    fn failed(&self, selection: &Selection, error: io::Error) -> TableError {
        let file = selection.file.clone();
        if error.kind() == io::ErrorKind::UnexpectedEof {
            let message = format!("it ends before row {}: it was truncated while being read", self.array.rows);
            return TableError::Malformed { file, message };
        }
        TableError::Io { file, error }
    }
}

fn cell(bytes: &[u8]) -> [u8; 8] {
    let mut cell = [0; 8];
    cell[..bytes.len()].copy_from_slice(bytes);
    cell
}

/// Returns the text of the header and the offset of the elements.
fn read_header(input: &mut impl Read) -> Result<(String, u64), String> {
    let short = |_| "the file ends inside its .npy header".to_string();
    let mut magic = [0; MAGIC.len()];
    input.read_exact(&mut magic).map_err(short)?;
    if magic != MAGIC {
        return Err("not a .npy file (it does not begin with \\x93NUMPY)".to_string());
    }
    let mut version = [0; 2];
    input.read_exact(&mut version).map_err(short)?;
    // The length has two bytes in version 1.0 and four since.
    let width = match version {
        [1, 0] => 2,
        [2, 0] | [3, 0] => 4,
        [major, minor] => {
            return Err(format!(".npy version {major}.{minor}, expected 1.0, 2.0 or 3.0"));
        }
    };
    let mut length = [0; 4];
    input.read_exact(&mut length[..width]).map_err(short)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > HEADER_LIMIT {
        return Err(format!("a .npy header of {length} bytes, expected at most {HEADER_LIMIT}"));
    }
    let mut header = vec![0; length];
    input.read_exact(&mut header).map_err(short)?;
    let header = String::from_utf8(header).map_err(|_| "the .npy header is not text".to_string())?;
    Ok((header, (MAGIC.len() + version.len() + width + length) as u64))
}

/// The contents of the header.
struct Array {
    element: Element,
    fortran: bool,
    rows: usize,
    columns: usize,
}

impl Array {
    fn parse(header: &str) -> Result<Self, String> {
        let element = Element::parse(value_of(header, "descr")?)?;
        let order = value_of(header, "fortran_order")?;
        let fortran = match order {
            _ if order.starts_with("True") => true,
            _ if order.starts_with("False") => false,
            _ => {
                return Err("'fortran_order' in the .npy header is neither True nor False".to_string());
            }
        };
        let (rows, columns) = shape(value_of(header, "shape")?)?;
        Ok(Array { element, fortran, rows, columns })
    }

    /// Checks, before anything is allocated, that the file is as long as its header says.
    fn check_size(&self, present: u64) -> Result<(), String> {
        let (rows, columns) = (self.rows, self.columns);
        let elements = (rows as u64).checked_mul(columns as u64);
        let needed = elements.and_then(|count| count.checked_mul(self.element.bytes() as u64));
        match needed {
            Some(needed) if needed == present => Ok(()),
            Some(needed) => Err(format!(
                "{rows} rows x {columns} columns need {needed} bytes after the header, the file has {present}"
            )),
            None => Err(format!("{rows} rows x {columns} columns are more than any file can hold")),
        }
    }
}

/// The text of the header after `'key':`. Python may use either kind of quote.
fn value_of<'a>(header: &'a str, key: &str) -> Result<&'a str, String> {
    let quoted = [format!("'{key}'"), format!("\"{key}\"")];
    let behind = quoted.iter().find_map(|quoted| header.split_once(quoted.as_str())).map(|(_, behind)| behind);
    behind
        .and_then(|behind| behind.trim_start().strip_prefix(':'))
        .map(str::trim_start)
        .ok_or_else(|| format!("the .npy header has no '{key}'"))
}

fn shape(text: &str) -> Result<(usize, usize), String> {
    let inside = text.strip_prefix('(').and_then(|text| text.split_once(')')).map(|(inside, _)| inside);
    let inside = inside.ok_or("'shape' in the .npy header is not a tuple")?;
    let sizes = inside.trim().trim_end_matches(',').split(',').filter(|size| !size.trim().is_empty());
    let sizes: Vec<usize> = sizes
        .map(|size| size.trim().parse().map_err(|_| format!("shape ({inside}) in the .npy header, expected sizes")))
        .collect::<Result<_, _>>()?;
    match sizes[..] {
        [rows] => Ok((rows, 1)),
        [rows, columns] => Ok((rows, columns)),
        _ => Err(format!("an array of {} dimensions, expected rows and columns", sizes.len())),
    }
}

/// The supported element types, with their bytes.
#[derive(Clone, Copy)]
enum Element {
    Float(usize),
    Signed(usize),
    Unsigned(usize),
    Bool,
}

impl Element {
    fn parse(text: &str) -> Result<Self, String> {
        let quote = text.chars().next().filter(|&quote| quote == '\'' || quote == '"');
        let inside = quote.and_then(|quote| text[1..].split_once(quote)).map(|(inside, _)| inside);
        let Some(descr) = inside else {
            return Err(format!("a structured array, {EXPECTED_TYPES}"));
        };
        if descr.starts_with('>') {
            return Err(format!("big-endian elements '{descr}', {EXPECTED_TYPES}"));
        }
        match descr.trim_start_matches(['<', '|', '=']) {
            "f4" => Ok(Element::Float(4)),
            "f8" => Ok(Element::Float(8)),
            "i1" => Ok(Element::Signed(1)),
            "i2" => Ok(Element::Signed(2)),
            "i4" => Ok(Element::Signed(4)),
            "i8" => Ok(Element::Signed(8)),
            "u1" => Ok(Element::Unsigned(1)),
            "u2" => Ok(Element::Unsigned(2)),
            "u4" => Ok(Element::Unsigned(4)),
            "u8" => Ok(Element::Unsigned(8)),
            "b1" => Ok(Element::Bool),
            object if object.starts_with('O') => Err(format!("Python objects, {EXPECTED_TYPES}")),
            _ => Err(format!("elements of type '{descr}', {EXPECTED_TYPES}")),
        }
    }

    fn bytes(self) -> usize {
        match self {
            Element::Float(bytes) | Element::Signed(bytes) | Element::Unsigned(bytes) => bytes,
            Element::Bool => 1,
        }
    }

    /// The element at the start of `cell`, whose other bytes are zero.
    fn number(self, cell: [u8; 8]) -> f64 {
        match self {
            Element::Float(4) => f64::from(single(cell)),
            Element::Float(_) => f64::from_le_bytes(cell),
            Element::Signed(bytes) => signed(cell, bytes) as f64,
            Element::Unsigned(_) => u64::from_le_bytes(cell) as f64,
            Element::Bool => f64::from(cell[0] != 0),
        }
    }

    /// The element as text, not converted to f64, which would corrupt long identifiers.
    fn text(self, cell: [u8; 8]) -> String {
        match self {
            Element::Float(4) => single(cell).to_string(),
            Element::Float(_) => f64::from_le_bytes(cell).to_string(),
            Element::Signed(bytes) => signed(cell, bytes).to_string(),
            Element::Unsigned(_) => u64::from_le_bytes(cell).to_string(),
            Element::Bool => (cell[0] != 0).to_string(),
        }
    }
}

fn single(cell: [u8; 8]) -> f32 {
    f32::from_le_bytes([cell[0], cell[1], cell[2], cell[3]])
}

/// Sign-extends an integer by shifting its sign bit to the top and back.
fn signed(cell: [u8; 8], bytes: usize) -> i64 {
    let unused = 64 - 8 * bytes;
    (i64::from_le_bytes(cell) << unused) >> unused
}
