//! Models outside of skpca: as an ONNX graph, as a C99 header, as a SQL query.
//!
//! ```text
//! Model ──► Formula ──► arithmetic: are 32 bits enough? ──► onnx | c | sql ──► bytes
//! ```
//!
//! A [`Formula`] is the model over plain numbers, with the points centred so that little cancels. Writers turn it into
//! text or bytes and know nothing of methods. Every export fills empty cells and encodes categories as the model does,
//! says how novel a row is, and raises the alarm for a row whose score is no number: a broken sensor is not a quiet one.

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

/// What a model can be exported as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// An ONNX graph of standard operators.
    Onnx,
    /// A C99 header that needs `math.h` alone.
    C,
    /// A SQL query.
    Sql,
}

impl Format {
    /// Every format, with the extension of its files.
    pub const ALL: &'static [(&'static str, Format)] =
        &[("onnx", Format::Onnx), ("h", Format::C), ("sql", Format::Sql)];

    /// The format of a file, by its extension.
    pub fn of(path: &Path) -> Result<Format, Error> {
        Format::named(path.extension().and_then(|extension| extension.to_str()).unwrap_or(""))
    }

    /// The format whose files have this extension.
    pub fn named(extension: &str) -> Result<Format, Error> {
        let found = Format::ALL.iter().find(|(name, _)| extension.eq_ignore_ascii_case(name));
        found.map(|(_, format)| *format).ok_or_else(|| Error::Extension(extension.to_string()))
    }
}

/// How a model is written.
#[derive(Clone, Debug)]
pub struct Options {
    /// 64-bit inputs, arithmetic and outputs. Otherwise inputs and outputs have 32 bits, and so has the arithmetic
    /// where that is enough. SQL knows 64 bits only.
    pub double: bool,
    /// C: what names begin with. SQL: the table.
    pub name: String,
    /// SQL: columns to repeat in front of the results.
    pub keep: Vec<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options { double: false, name: "skpca".into(), keep: Vec::new() }
    }
}

/// The model as the bytes of a file.
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
    /// The columns are outside of what 32 bits hold.
    Range {
        /// The column, by name or number.
        column: String,
    },
    /// A name that the language of the export does not take.
    Name(String),
    /// A kernel of another crate, of which no formula is known.
    Kernel(String),
    /// The name of a column or category has a zero byte, which SQL cannot hold.
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
                write!(f, "the kernel {name} is not one of this crate's: its formula cannot be exported")
            }
            Error::ZeroByte => {
                write!(f, "the name of a column or category has a zero byte, which SQL cannot hold: rename it")
            }
        }
    }
}

impl std::error::Error for Error {}
