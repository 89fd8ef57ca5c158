//! Reads and writes model files. No more is read than the length of the file, or a fixed limit for pipes and devices.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;

use skpca::{Model, format};

use crate::failure::Failure;
use crate::memory;
use crate::outputs::failed;

/// Maximum number of bytes read from a pipe or device, whose length is unknown.
const PIPE_LIMIT: u64 = 1 << 30;
/// Memory needed to read a model, as a multiple of its bytes: the bytes, and the numbers and names parsed from them.
const COPIES: u64 = 3;

pub fn read(path: &Path) -> Result<Model, Failure> {
    let file = File::open(path).map_err(|error| failed(path, &error))?;
    let about = file.metadata().map_err(|error| failed(path, &error))?;
    if about.is_dir() {
        return Err(failed(path, &std::io::Error::from(ErrorKind::IsADirectory)));
    }
    let limit = if about.is_file() { about.len() } else { PIPE_LIMIT };
    let mut input = BufReader::new(file).take(limit);
    if about.is_file() {
        let needed = usize::try_from(limit.saturating_mul(COPIES)).unwrap_or(usize::MAX);
        memory::check("this model", needed, "").map_err(|why| failed(path, &why))?;
    }
    match format::read(&mut input) {
        Err(_) if !about.is_file() && input.limit() == 0 => {
            let most = memory::text(PIPE_LIMIT as usize);
            Err(failed(
                path,
                &format!("more than {most} from what is not a regular file: save the model to a file first"),
            ))
        }
        read => read.map_err(|error| failed(path, &error)),
    }
}

pub fn write(model: &Model, path: &Path) -> Result<(), Failure> {
    skpca_files::write(path, |to| format::write(model, to)).map_err(|error| failed(path, &error))
}
