//! Model files in and out. Of whatever a path leads to, no more is read than a model can have.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;

use skpca::{Error, Model, format};

use crate::failure::Failure;
use crate::memory;
use crate::outputs::failed;

/// A header holds names and parameters: a larger one is no model's.
const HEADER_LIMIT: u64 = 16 << 20;
/// `{}`
const HEADER_LEAST: u64 = 2;
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
    let mut head = Vec::new();
    Read::by_ref(&mut input).take(8).read_to_end(&mut head).map_err(|error| failed(path, &error))?;
    check_header(&head).map_err(|why| failed(path, &Error::File { why: why.into() }))?;
    if about.is_file() {
        let needed = usize::try_from(limit.saturating_mul(COPIES)).unwrap_or(usize::MAX);
        memory::check("this model", needed, "").map_err(|why| failed(path, &why))?;
    }
    match format::read(head.as_slice().chain(&mut input)) {
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

/// Looks at the header's length before anything is read because of it. A file that ends sooner is left to the reader.
fn check_header(head: &[u8]) -> Result<(), &'static str> {
    match head.try_into().map(u64::from_le_bytes) {
        Ok(length) if length > HEADER_LIMIT => Err("its header is larger than any model's; is it a model file?"),
        Ok(length) if length < HEADER_LEAST => Err("its header is empty; is it a model file?"),
        _ => Ok(()),
    }
}

pub fn write(model: &Model, path: &Path) -> Result<(), Failure> {
    skpca_files::write(path, |to| format::write(model, to)).map_err(|error| failed(path, &error))
}
