//! Exports models for use without skpca: as an ONNX graph, a C99 header or a SQL query.
//!
//! ```text
//! Model ──► Formula ──► Arithmetic: are 32 bits accurate enough? ──► onnx | c | sql ──► bytes
//! ```
//!
//! A [`Formula`] is the model as plain numbers, with centred points to reduce cancellation. The writers turn it into
//! text or bytes and know nothing of methods. Every export fills empty cells and encodes categories as the model does,
//! computes features and the novelty score, and raises the alarm if the score is NaN, so that a broken sensor does not
//! go unnoticed.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod arithmetic;
mod c;
mod evaluate;
mod formula;
mod onnx;
mod proto;
mod sql;

use std::fmt;
use std::path::Path;

use skpca::Model;

pub use arithmetic::Arithmetic;
pub use formula::Formula;

/// The format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// An ONNX graph of standard operators.
    Onnx,
    /// A C99 header that needs only the standard library.
    C,
    /// A SQL query.
    Sql,
}

impl Format {
    /// All formats, with their file extensions.
    pub const ALL: &'static [(&'static str, Format)] =
        &[("onnx", Format::Onnx), ("h", Format::C), ("sql", Format::Sql)];

    /// Returns the format of a file, by its extension.
    pub fn of(path: &Path) -> Result<Format, Error> {
        Format::named(path.extension().and_then(|extension| extension.to_str()).unwrap_or(""))
    }

    /// Returns the format with this extension.
    pub fn named(extension: &str) -> Result<Format, Error> {
        let found = Format::ALL.iter().find(|(name, _)| extension.eq_ignore_ascii_case(name));
        found.map(|(_, format)| *format).ok_or_else(|| Error::Extension(extension.to_string()))
    }
}

/// Options of an export.
#[derive(Clone, Debug)]
pub struct Options {
    /// Use 64-bit inputs, arithmetic and outputs. Otherwise inputs and outputs have 32 bits, and the arithmetic too
    /// where that is accurate enough. SQL always uses 64 bits.
    pub double: bool,
    /// C: the prefix of all names. SQL: the table.
    pub name: String,
    /// SQL: columns to copy in front of the results.
    pub keep: Vec<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options { double: false, name: "skpca".into(), keep: Vec::new() }
    }
}

/// Exports a model as the bytes of a file.
pub fn export(model: &Model, format: Format, options: &Options) -> Result<Vec<u8>, Error> {
    let formula = Formula::of(model)?;
    match format {
        Format::Onnx => onnx::write(model, &formula, Arithmetic::of(&formula, options.double)?),
        Format::C => c::write(model, &formula, Arithmetic::of(&formula, options.double)?, &options.name),
        Format::Sql => sql::write(model, &formula, options),
    }
}

/// Why a model cannot be exported.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// No format has this extension.
    Extension(String),
    /// The scale of a column is outside the range of 32-bit numbers.
    Range {
        /// The column, by name or number.
        column: String,
    },
    /// A name that is not valid in the language of the export.
    Name(String),
    /// A kernel of another crate, whose formula is unknown.
    Kernel(String),
    /// The name of a column or category has a zero byte, which SQL cannot represent.
    ZeroByte,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Extension(found) => {
                let known: Vec<String> = Format::ALL.iter().map(|(name, _)| format!(".{name}")).collect();
                write!(f, "cannot export to '.{found}': the extension must be {}", known.join(" or "))
            }
            Error::Range { column } => {
                write!(f, "the scale of column {column} is beyond 32-bit numbers: export with --double (double=True)")
            }
            Error::Name(name) => {
                write!(f, "'{name}' cannot begin names in C: it must be letters, digits and '_', no digit first")
            }
            Error::Kernel(name) => {
                write!(f, "the kernel {name} is defined outside skpca: its formula cannot be exported")
            }
            Error::ZeroByte => {
                write!(f, "the name of a column or category has a zero byte, which SQL cannot represent: rename it")
            }
        }
    }
}

impl std::error::Error for Error {}
