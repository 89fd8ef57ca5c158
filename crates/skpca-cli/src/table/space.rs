//! Checks for free memory before allocating, since a `Vec` that cannot grow aborts the process.

use super::error::TableError;
use crate::memory;

const ADVICE: &str = ": take fewer rows, or fewer columns with --drop";

/// Reserves room for `more` elements. The capacity doubles, so that growing stays cheap, or grows by an eighth if
/// memory is scarce.
pub fn reserve<T>(vec: &mut Vec<T>, more: usize, file: &str) -> Result<(), TableError> {
    let (needed, capacity) = (vec.len().saturating_add(more), vec.capacity());
    if needed <= capacity {
        return Ok(());
    }
    let twice = needed.max(capacity.saturating_mul(2));
    let eighth = needed.max(capacity.saturating_add(capacity / 8));
    grow(vec, twice, file).or_else(|_| grow(vec, eighth, file))
}

/// Grows a vector. Only the additional bytes must be free, since operating systems move large blocks without a copy.
fn grow<T>(vec: &mut Vec<T>, capacity: usize, file: &str) -> Result<(), TableError> {
    let size = |elements: usize| elements.saturating_mul(size_of::<T>());
    check(file, size(capacity - vec.capacity()))?;
    vec.try_reserve_exact(capacity - vec.len()).map_err(|_| {
        let message = format!("this table needs about {} of memory, more than is free", memory::text(size(capacity)));
        too_large(file, message + ADVICE)
    })
}

/// Rejects an allocation that is larger than the free memory.
pub(super) fn check(file: &str, bytes: usize) -> Result<(), TableError> {
    memory::check("this table", bytes, ADVICE).map_err(|message| too_large(file, message))
}

/// Adds a copy of `text`.
pub(super) fn push(texts: &mut Vec<String>, text: &str, file: &str) -> Result<(), TableError> {
    reserve(texts, 1, file)?;
    let mut copy = String::new();
    check(file, text.len())?;
    copy.try_reserve_exact(text.len()).map_err(|error| too_large(file, error.to_string()))?;
    copy.push_str(text);
    texts.push(copy);
    Ok(())
}

fn too_large(file: &str, message: String) -> TableError {
    TableError::Malformed { file: file.to_string(), message }
}
