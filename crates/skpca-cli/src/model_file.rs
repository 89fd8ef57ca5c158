//! Model files in and out. Of whatever a path leads to, no more is read than a model can have.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;

use skpca::{Model, format};

use crate::failure::Failure;
use crate::memory;
use crate::outputs::failed;

/// What a pipe or device may bring; a file tells how large it is.
const PIPE_LIMIT: u64 = 1 << 30;
/// The bytes, and the numbers and names made of them.
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
