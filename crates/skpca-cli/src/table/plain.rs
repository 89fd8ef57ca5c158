//! Lines without quotes, parsed on all threads.
//!
//! ```text
//! text ──► slabs of whole lines ──► pieces of whole lines ── numbers, labels ──► in order
//! ```
//!
//! Only what is plain is taken here. A slab with anything else (a quote, a blank line, a field that is no number) is left
//! to the reader of records, which knows what it means or what to say about it.

use std::io::{self, BufRead, Read};
use std::str;

use rayon::prelude::*;

use super::dialect::Dialect;
use super::selection::Selection;

/// Bytes that are read at a time; few in tests, so that small tables have several slabs.
const SLAB: u64 = if cfg!(test) { 1 << 7 } else { 16 << 20 };
/// Bytes that are parsed by one thread at a time.
const PIECE: usize = if cfg!(test) { 1 << 5 } else { 256 << 10 };
/// A longer line is not plain.
const LONGEST: u64 = 16 << 20;

/// Rows of a piece.
pub(super) struct Rows {
    /// The features row by row.
    pub values: Vec<f64>,
    pub labels: Vec<String>,
    pub lines: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Feature,
    Label,
    LeftOut,
}

/// Fills `slab` with whole lines, with nothing at the end of the text; false if it ends within a line that is too long.
pub(super) fn fill(input: &mut dyn BufRead, slab: &mut Vec<u8>) -> io::Result<bool> {
    slab.clear();
    (&mut *input).take(SLAB).read_to_end(slab)?;
    match slab.last() {
        None | Some(b'\n') => Ok(true),
        // The last line of a text may lack its end.
        Some(_) => Ok((&mut *input).take(LONGEST).read_until(b'\n', slab)? < LONGEST as usize),
    }
}

/// The rows of whole lines, piece after piece; nothing where they are not plain.
pub(super) fn parse(slab: &[u8], dialect: Dialect, selection: &Selection) -> Option<Vec<Rows>> {
    if slab.contains(&b'"') {
        return None;
    }
    let mut kinds = vec![Kind::LeftOut; selection.columns.count()];
    selection.features.iter().for_each(|&column| kinds[column] = Kind::Feature);
    selection.label.into_iter().for_each(|column| kinds[column] = Kind::Label);
    pieces(slab).into_par_iter().map(|piece| rows(piece, dialect, &kinds)).collect()
}

fn pieces(mut slab: &[u8]) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    while !slab.is_empty() {
        let least = PIECE.min(slab.len());
        let line = slab[least..].iter().position(|&byte| byte == b'\n');
        let (piece, rest) = slab.split_at(line.map_or(slab.len(), |end| least + end + 1));
        pieces.push(piece);
        slab = rest;
    }
    pieces
}

/// Bytes that the rows of whole lines take.
pub(super) fn size(slab: &[u8], selection: &Selection) -> usize {
    lines(slab) * (selection.features.len() * size_of::<f64>() + selection.label.map_or(0, |_| size_of::<String>()))
}

fn lines(text: &[u8]) -> usize {
    text.iter().filter(|&&byte| byte == b'\n').count() + 1
}

/// Nothing, too, where there is no memory for them: the reader of records will say so.
fn rows(mut text: &[u8], dialect: Dialect, kinds: &[Kind]) -> Option<Rows> {
    let mut rows = Rows { values: Vec::new(), labels: Vec::new(), lines: 0 };
    let count = |wanted| lines(text) * kinds.iter().filter(|kind| **kind == wanted).count();
    rows.values.try_reserve_exact(count(Kind::Feature)).ok()?;
    rows.labels.try_reserve_exact(count(Kind::Label)).ok()?;
    while !text.is_empty() {
        rows.lines += 1;
        for (column, kind) in kinds.iter().enumerate() {
            let end = text.iter().position(|&byte| byte == dialect.separator || byte == b'\n').unwrap_or(text.len());
            let (field, rest) = text.split_at(end);
            let last = rest.first().is_none_or(|&byte| byte == b'\n');
            if last != (column + 1 == kinds.len()) {
                return None;
            }
            match kind {
                Kind::Feature => rows.values.push(dialect.number(field)?),
                Kind::Label => {
                    rows.labels.push(str::from_utf8(field.strip_suffix(b"\r").unwrap_or(field)).ok()?.into())
                }
                Kind::LeftOut => {}
            }
            text = rest.get(1..).unwrap_or_default();
        }
    }
    Some(rows)
}
