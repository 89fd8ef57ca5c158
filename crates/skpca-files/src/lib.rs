//! Atomic writes, and rows in files that do not fit in memory, for the program and the Python package.
//!
//! ```text
//! target ── follow links ──► regular file, or none: temporary file beside it ── fill ── sync ── rename onto it
//!                            pipe or device:        written directly
//!                            directory, read-only:  error
//! ```
//!
//! A process that is killed leaves a file `.skpca-XXXXXX.tmp` behind, which may be deleted when no run is active.

#![forbid(unsafe_code)]

pub mod memory;
mod rows;

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

pub use rows::{Element, FileRows, Spool};

/// Prefix of the names of temporary files.
pub const PREFIX: &str = ".skpca-";
/// Suffix of the names of temporary files.
pub const SUFFIX: &str = ".tmp";
/// Maximum length of a chain of symbolic links, as on Linux; a longer one counts as a loop.
const LINKS: usize = 40;
const BUFFER_BYTES: usize = 1 << 16;

/// Writes a file through `fill`. If anything fails, an existing file is unchanged and nothing else is left behind.
///
/// An existing file keeps its mode; a new one gets the default of the process (0666 minus the umask). A symbolic link
/// is kept, and the file that it points to is replaced. A read-only file is an error. Pipes and devices are written
/// directly.
pub fn write(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    let mut output = Output::begin(path)?;
    fill(&mut output.file)?;
    output.finish()
}

/// A file that is being written, as in [`write()`]. It appears under its name once [`Output::finish`] has succeeded,
/// and leaves nothing behind if it is dropped before.
pub struct Output {
    file: BufWriter<File>,
    /// The temporary file and the target; `None` for pipes and devices.
    place: Option<(tempfile::TempPath, PathBuf)>,
}

impl Output {
    /// Begins a file.
    pub fn begin(path: &Path) -> io::Result<Output> {
        let target = follow(path)?;
        let previous = check_target(&target)?;
        let buffered = |file| BufWriter::with_capacity(BUFFER_BYTES, file);
        if previous.as_ref().is_some_and(|previous| !previous.is_file()) {
            return Ok(Output { file: buffered(OpenOptions::new().write(true).open(&target)?), place: None });
        }
        let (file, temporary) = create_beside(&target)?.into_parts();
        if let Some(previous) = previous {
            adopt(&file, &previous)?;
        }
        Ok(Output { file: buffered(file), place: Some((temporary, target)) })
    }

    /// Completes the file and moves it into place.
    pub fn finish(self) -> io::Result<()> {
        let file = self.file.into_inner().map_err(|error| error.into_error())?;
        let Some((temporary, target)) = self.place else { return Ok(()) };
        file.sync_all()?;
        temporary.persist(&target).map_err(|error| error.error)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Output {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// Checks that [`write()`] will be able to write to `path`, so that a long computation is not lost.
pub fn check(path: &Path) -> io::Result<()> {
    let target = follow(path)?;
    match check_target(&target)? {
        Some(previous) if !previous.is_file() => Ok(()),
        _ => create_beside(&target).map(drop),
    }
}

/// Follows symbolic links to the file that `path` stands for, which need not exist.
fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_path_buf();
    for _ in 0..LINKS {
        match fs::read_link(&target) {
            // Links such as standard output can be opened although their text is not a path if they lead to a pipe.
            Ok(_) if target.starts_with("/proc") => return fs::canonicalize(&target).or(Ok(target)),
            Ok(next) => target = directory(&target).join(next),
            Err(_) => return Ok(target),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Returns the metadata of an existing target, or an error if it cannot be written.
fn check_target(target: &Path) -> io::Result<Option<Metadata>> {
    let previous = match fs::metadata(target) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    if previous.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if previous.is_file() {
        // The rename would succeed anyway, and the superuser could open it.
        if previous.permissions().readonly() {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only"));
        }
        OpenOptions::new().write(true).open(target)?;
    }
    Ok(Some(previous))
}

fn directory(target: &Path) -> &Path {
    target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn create_beside(target: &Path) -> io::Result<tempfile::NamedTempFile> {
    fs::metadata(directory(target))?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Minus the umask; tempfile's default mode would let only the owner read the file.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let named = |error: io::Error| {
        io::Error::new(error.kind(), format!("no file can be created in its directory: {}", plain(&error)))
    };
    builder.tempfile_in(directory(target)).map_err(named)
}

/// The message of the system, without the path of the temporary file, which tempfile adds and users do not know.
fn plain(error: &io::Error) -> String {
    error.raw_os_error().map_or_else(|| error.kind().to_string(), |code| io::Error::from_raw_os_error(code).to_string())
}

/// Gives the new file the mode of the old one, and its owner if permitted.
fn adopt(file: &File, previous: &Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, fchown};
        let own = file.metadata()?;
        if (own.uid(), own.gid()) != (previous.uid(), previous.gid()) {
            let _ = fchown(file, Some(previous.uid()), Some(previous.gid()));
        }
    }
    file.set_permissions(previous.permissions())
}
