//! Where results may go: never onto what was read, and onto files whose names we chose only if we made them.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::{model_file, table};

/// Of a file that may be ours, at most this much is looked at.
const LOOKED_AT: u64 = 64 << 20;

/// What was read, and must survive.
pub struct Outputs {
    /// Without links.
    inputs: Vec<PathBuf>,
}

impl Outputs {
    /// Outputs of a run that reads these files; `-` is standard input.
    pub fn apart_from<'a>(inputs: impl IntoIterator<Item = &'a Path>) -> Outputs {
        let real = |path: &Path| if path == Path::new("-") { Path::new("/dev/stdin") } else { path }.canonicalize();
        Outputs { inputs: inputs.into_iter().filter_map(|path| real(path).ok()).collect() }
    }

    /// Refuses an output that cannot be written or would replace what is read: better known before the fit than after
    /// it.
    pub fn check(&self, path: &Path) -> Result<(), Failure> {
        if path.canonicalize().is_ok_and(|real| self.inputs.contains(&real)) {
            return Err(Failure::Call(format!("{}: the output would replace the input", path.display())));
        }
        skpca_files::check(path).map_err(|error| failed(path, &error))
    }

    /// The same for a file whose name the user did not give: one that is there already must be `ours`.
    pub fn check_own(&self, path: &Path, ours: Ours) -> Result<(), Failure> {
        self.check(path)?;
        if path.exists() && !ours.recognises(path) {
            let why = "is there already and is not of this program's making; move it, or name another directory";
            return Err(Failure::Call(format!("{} {why}", path.display())));
        }
        Ok(())
    }
}

/// Files that a run may replace without being told to.
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
    /// Whether the file is one of these.
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
    File::open(path).ok()?.take(LOOKED_AT).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Writes a file: whole, or not at all.
pub fn write(path: &Path, contents: &[u8]) -> Result<(), Failure> {
    skpca_files::write(path, |to| to.write_all(contents)).map_err(|error| failed(path, &error))
}

/// Makes a directory that files will go into.
pub fn make_directory(directory: &Path) -> Result<(), Failure> {
    match directory.to_str() {
        None => Err(Failure::Run(format!("{}: expected a name in UTF-8", directory.display()))),
        Some(_) => std::fs::create_dir_all(directory).map_err(|error| failed(directory, &error)),
    }
}

/// What went wrong with a file, by its name.
pub fn failed(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::Run(format!("{}: {error}", path.display()))
}
