//! Files that are either whole or not there: written beside the target, then renamed onto it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process;

/// How many leftovers of dead processes with our number we step over.
const ATTEMPTS: u32 = 100;

/// Writes a file through `fill`; if anything fails, a file that was there before stays as it was.
///
/// A symbolic link is followed and a device (`/dev/null`) written directly, since a rename would
/// replace them.
pub fn atomic_write(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    replace(path, |output| fill(output))
}

/// [`atomic_write`] with the concrete writer, for those who need it to be `Send`.
pub(super) fn replace(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    let previous = fs::metadata(path).ok();
    if previous.as_ref().is_some_and(|previous| !previous.is_file()) {
        return fill_file(OpenOptions::new().write(true).open(path)?, fill);
    }
    let target = if previous.is_some() { fs::canonicalize(path)? } else { path.to_path_buf() };
    let (file, temporary) = Temporary::create(&target)?;
    if let Some(previous) = previous {
        file.set_permissions(previous.permissions())?;
    }
    fill_file(file, fill)?;
    fs::rename(&temporary.path, &target)
}

fn fill_file(file: File, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    let mut output = BufWriter::with_capacity(1 << 16, file);
    fill(&mut output)?;
    output.flush()
}

/// A file that is removed when this goes, also on a panic; after the rename there is nothing left
/// to remove.
struct Temporary {
    path: PathBuf,
}

impl Temporary {
    fn create(target: &Path) -> io::Result<(File, Self)> {
        let name = target.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a file name"))?;
        let mut attempt = 0;
        loop {
            let own = format!(".{}.{}-{attempt}.tmp", name.to_string_lossy(), process::id());
            let path = target.with_file_name(own);
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => return Ok((file, Temporary { path })),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < ATTEMPTS => attempt += 1,
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Fails after the rename, as it should.
        let _ = fs::remove_file(&self.path);
    }
}
