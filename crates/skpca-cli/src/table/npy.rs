//! NumPy's .npy files: magic, version, a header `{'descr': …, 'fortran_order': …, 'shape': …}`,
//! then the elements.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};

use super::error::{At, Columns, TableError, check_finite};
use super::selection::Selection;
use super::{ReadOptions, Table, space};

const MAGIC: &[u8] = b"\x93NUMPY";
/// NumPy itself refuses headers above 10,000 bytes unless told otherwise.
const HEADER_LIMIT: usize = 1 << 16;
/// Elements start at a multiple of this many bytes (format specification, version 1.0).
const ALIGNMENT: usize = 64;
/// Numbers kept for each column while its place is looked up.
const PLACES: usize = 4;
const EXPECTED_TYPES: &str = "expected little-endian f4, f8, i1 to i8, u1 to u8 or bool";

/// Reads an array of one or two dimensions; one dimension is one column.
pub(super) fn read(file: &str, input: File, options: &ReadOptions) -> Result<Table, TableError> {
    let malformed = |message| TableError::Malformed { file: file.to_string(), message };
    let io_error = |error| TableError::Io { file: file.to_string(), error };
    let bytes = input.metadata().map_err(io_error)?.len();
    let mut input = BufReader::new(input);
    let (header, start) = read_header(&mut input).map_err(malformed)?;
    let array = Array::parse(&header).map_err(malformed)?;
    array.check_size(bytes.saturating_sub(start)).map_err(malformed)?;
    if array.rows == 0 {
        return Err(TableError::NoRows { file: file.to_string() });
    }
    // Numbers of 64 bits whatever is in the file, and the columns' places.
    space::check(file, (array.rows + PLACES).saturating_mul(array.columns).saturating_mul(size_of::<f64>()))?;
    let selection = Selection::new(file, Columns::Numbered(array.columns), options)?;
    array.read(&mut input, selection)
}

/// Writes 64-bit floats, row by row; the format has no place for names.
pub(super) fn write(mut output: impl Write, columns: usize, rows: usize, values: &[f64]) -> io::Result<()> {
    let mut header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    let before = MAGIC.len() + 2 + 2;
    let whole = (before + header.len() + 1).next_multiple_of(ALIGNMENT);
    header.push_str(&" ".repeat(whole - before - header.len() - 1));
    header.push('\n');
    output.write_all(MAGIC)?;
    output.write_all(&[1, 0])?;
    // Two 20-digit numbers at most: the header always fits 16 bits.
    output.write_all(&(header.len() as u16).to_le_bytes())?;
    output.write_all(header.as_bytes())?;
    values.iter().try_for_each(|value| output.write_all(&value.to_le_bytes()))
}

/// The header's text and the offset at which the elements start.
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

/// What the header promises.
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

    /// Nothing is allocated before the file is known to hold what its header promises.
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

    fn read(&self, input: &mut impl Read, selection: Selection) -> Result<Table, TableError> {
        let width = selection.features.len();
        let mut feature = vec![None; self.columns];
        for (position, &column) in selection.features.iter().enumerate() {
            feature[column] = Some(position);
        }
        let (mut values, mut label) = (Vec::new(), Vec::new());
        space::reserve(&mut values, self.rows * width, &selection.file)?;
        values.resize(self.rows * width, 0.0);
        if selection.label.is_some() {
            space::reserve(&mut label, self.rows, &selection.file)?;
            label.resize(self.rows, String::new());
        }
        for index in 0..self.rows * self.columns {
            let (row, column) = self.position(index);
            let mut cell = [0; 8];
            input
                .read_exact(&mut cell[..self.element.bytes()])
                .map_err(|error| TableError::Io { file: selection.file.clone(), error })?;
            if let Some(position) = feature[column] {
                let value = self.element.number(cell);
                values[row * width + position] = check_finite(value, || selection.place(At::Row(row), column))?;
            } else if selection.label == Some(column) {
                label[row] = self.element.text(cell);
            }
        }
        selection.table(values, label)
    }

    /// Row and column of an element by its place in the file.
    fn position(&self, index: usize) -> (usize, usize) {
        if self.fortran { (index % self.rows, index / self.rows) } else { (index / self.columns, index % self.columns) }
    }
}

/// The header's text behind `'key':`. Python writes either quote.
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

/// The element types we take, with their bytes.
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

    /// The element at the head of `cell`; the bytes behind it are zero.
    fn number(self, cell: [u8; 8]) -> f64 {
        match self {
            Element::Float(4) => f64::from(single(cell)),
            Element::Float(_) => f64::from_le_bytes(cell),
            Element::Signed(bytes) => signed(cell, bytes) as f64,
            Element::Unsigned(_) => u64::from_le_bytes(cell) as f64,
            Element::Bool => f64::from(cell[0] != 0),
        }
    }

    /// The element as text, without a detour through f64 that would spoil long identifiers.
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

/// Shifts the sign bit to the top and back down.
fn signed(cell: [u8; 8], bytes: usize) -> i64 {
    let unused = 64 - 8 * bytes;
    (i64::from_le_bytes(cell) << unused) >> unused
}
