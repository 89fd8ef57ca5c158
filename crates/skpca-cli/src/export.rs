//! `skpca export`: writes a model as ONNX, C or SQL.

use skpca_export::{Error, Format, Options, export};

use crate::arguments::ExportArguments;
use crate::failure::Failure;
use crate::model_file;
use crate::outputs::{self, Outputs};
use crate::terminal::Screen;

pub fn run(arguments: &ExportArguments, quiet: bool) -> Result<(), Failure> {
    let format = Format::of(&arguments.output)?;
    let options = options(arguments, format)?;
    Outputs::apart_from([arguments.model.as_path()]).check(&arguments.output)?;
    let model = model_file::read(&arguments.model)?;
    let bytes = export(&model, format, &options)?;
    outputs::write(&arguments.output, &bytes)?;
    let line = format!("exported     {}, {}", arguments.output.display(), size(bytes.len()));
    Ok(Screen::unless(quiet).line(&line)?)
}

/// Returns the options of a format and rejects those of other formats.
fn options(arguments: &ExportArguments, format: Format) -> Result<Options, Failure> {
    let flags = [
        ("--name", arguments.name.is_some(), Format::C, ".h"),
        ("--table", arguments.table.is_some(), Format::Sql, ".sql"),
        ("--keep", !arguments.keep.is_empty(), Format::Sql, ".sql"),
    ];
    if let Some((flag, _, _, extension)) = flags.iter().find(|(_, given, of, _)| *given && *of != format) {
        return Err(Failure::Call(format!("{flag} is for {extension} files: leave it out")));
    }
    let name = match format {
        Format::Sql => arguments.table.clone().unwrap_or_else(|| "data".into()),
        _ => arguments.name.clone().unwrap_or_else(|| identifier(&arguments.output)),
    };
    Ok(Options { double: arguments.double, name, keep: arguments.keep.clone() })
}

/// The name of a file as a C identifier.
fn identifier(path: &std::path::Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

fn size(bytes: usize) -> String {
    if bytes < 10_000 { format!("{bytes} bytes") } else { format!("{} kB", bytes.div_ceil(1000)) }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Call(error.to_string())
    }
}
