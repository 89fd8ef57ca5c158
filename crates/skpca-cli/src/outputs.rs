//! Which files may be written: never an input, and a file whose name the user did not choose only if this program made
//! it.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::{model_file, table};

/// Number of bytes at the start of a file that are searched to recognise it.
const HEAD: u64 = 64 << 20;

/// The inputs of a run, which no output may replace.
pub struct Outputs {
    /// Canonical paths.
    inputs: Vec<PathBuf>,
}

impl Outputs {
    /// For a run that reads these files; `-` is standard input.
    pub fn apart_from<'a>(inputs: impl IntoIterator<Item = &'a Path>) -> Outputs {
        let real = |path: &Path| if path == Path::new("-") { Path::new("/dev/stdin") } else { path }.canonicalize();
        Outputs { inputs: inputs.into_iter().filter_map(|path| real(path).ok()).collect() }
    }

    /// Rejects, before the fit, an output that cannot be written or would replace an input.
    pub fn check(&self, path: &Path) -> Result<(), Failure> {
        if path.canonicalize().is_ok_and(|real| self.inputs.contains(&real)) {
            return Err(Failure::Call(format!("{}: the output would replace the input", path.display())));
        }
        skpca_files::check(path).map_err(|error| failed(path, &error))
    }

    /// The same for a file whose name the user did not give: a file that exists already must be one of `ours`.
    pub fn check_own(&self, path: &Path, ours: Ours) -> Result<(), Failure> {
        self.check(path)?;
        if path.exists() && !ours.recognises(path) {
            let why = "is there already and is not of this program's making; move it, or name another directory";
            return Err(Failure::Call(format!("{} {why}", path.display())));
        }
        Ok(())
    }
}

/// Files that a run may replace although the user did not name them.
#[derive(Clone, Copy)]
pub enum Ours<'a> {
    Model,
    Page,
    Manual,
    /// `rows.csv` of a comparison.
    HeldOut,
    /// The same table: names of the columns and values.
    Table(&'a [String], &'a [f64]),
}

impl Ours<'_> {
    /// Whether the file is of this kind.
    fn recognises(self, path: &Path) -> bool {
        match self {
            Ours::Model => model_file::read(path).is_ok(),
            Ours::Page => head(path).is_some_and(|text| text.contains("<footer>skpca ")),
            Ours::Manual => head(path).is_some_and(|text| text.contains(".TH skpca")),
            Ours::HeldOut => head(path).is_some_and(|text| text.lines().next() == Some("held_out")),
            Ours::Table(names, values) => path
                .to_str()
                .and_then(|name| table::read(name, &table::ReadOptions::default()).ok())
                .is_some_and(|table| table.names.as_deref() == Some(names) && table.values == values),
        }
    }
}

fn head(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(HEAD).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Writes a file completely or not at all.
pub fn write(path: &Path, contents: &[u8]) -> Result<(), Failure> {
    skpca_files::write(path, |to| to.write_all(contents)).map_err(|error| failed(path, &error))
}

/// Creates a directory for output files.
pub fn make_directory(directory: &Path) -> Result<(), Failure> {
    match directory.to_str() {
        None => Err(Failure::Run(format!("{}: expected a name in UTF-8", directory.display()))),
        Some(_) => std::fs::create_dir_all(directory).map_err(|error| failed(directory, &error)),
    }
}

/// A failure with the name of the file in front.
pub fn failed(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::Run(format!("{}: {error}", path.display()))
}
