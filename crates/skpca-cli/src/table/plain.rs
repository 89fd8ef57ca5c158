//! Parses lines without quotes on all threads.
//!
//! ```text
//! chunk of whole lines ──► pieces of whole lines ── numbers, texts ──► in order
//! ```
//!
//! Only plain lines are parsed here. A chunk with anything else (a quote, a blank line, a field that is not a number)
//! is left to the record reader, which handles or reports it.

use std::str;

use rayon::prelude::*;

use super::dialect::Dialect;
use super::selection::Selection;

/// Number of bytes that a thread parses at a time.
const PIECE: usize = if cfg!(test) { 1 << 5 } else { 256 << 10 };

/// Rows of a piece.
pub(super) struct Rows {
    /// The features row by row.
    pub values: Vec<f64>,
    pub texts: Vec<String>,
    pub lines: u64,
    /// The first empty cell: its line, from 1, and its column.
    pub gap: Option<(u64, usize)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Feature,
    Text,
    LeftOut,
}

/// Parses whole lines into rows, piece by piece; `None` if they are not plain.
pub(super) fn parse(slab: &[u8], dialect: Dialect, selection: &Selection) -> Option<Vec<Rows>> {
    if slab.contains(&b'"') {
        return None;
    }
    let mut kinds = vec![Kind::LeftOut; selection.columns.count()];
    selection.features.iter().for_each(|&column| kinds[column] = Kind::Feature);
    selection.texts.iter().for_each(|&column| kinds[column] = Kind::Text);
    let number = |field: &[u8]| {
        let gap = || (selection.gaps && Dialect::is_missing(field)).then_some(f64::NAN);
        dialect.number(field).or_else(gap)
    };
    // A few lines are not worth waking the threads for.
    if slab.len() <= PIECE {
        return Some(vec![rows(slab, dialect.separator, number, &kinds)?]);
    }
    pieces(slab).into_par_iter().map(|piece| rows(piece, dialect.separator, number, &kinds)).collect()
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

/// Memory for the parsed rows of whole lines, in bytes.
pub(super) fn size(slab: &[u8], selection: &Selection) -> usize {
    lines(slab) * (selection.features.len() * size_of::<f64>() + selection.texts.len() * size_of::<String>())
}

fn lines(text: &[u8]) -> usize {
    text.iter().filter(|&&byte| byte == b'\n').count() + 1
}

/// Parses the rows of one piece; `None` if it is not plain, or if there is no memory for the rows, which the record
/// reader then reports.
fn rows(mut text: &[u8], separator: u8, number: impl Fn(&[u8]) -> Option<f64>, kinds: &[Kind]) -> Option<Rows> {
    let mut rows = Rows { values: Vec::new(), texts: Vec::new(), lines: 0, gap: None };
    let count = |wanted| lines(text) * kinds.iter().filter(|kind| **kind == wanted).count();
    rows.values.try_reserve_exact(count(Kind::Feature)).ok()?;
    rows.texts.try_reserve_exact(count(Kind::Text)).ok()?;
    while !text.is_empty() {
        rows.lines += 1;
        for (column, kind) in kinds.iter().enumerate() {
            let end = text.iter().position(|&byte| byte == separator || byte == b'\n').unwrap_or(text.len());
            let (field, rest) = text.split_at(end);
            let last = rest.first().is_none_or(|&byte| byte == b'\n');
            if last != (column + 1 == kinds.len()) {
                return None;
            }
            match kind {
                Kind::Feature => {
                    let value = number(field)?;
                    if value.is_nan() {
                        rows.gap.get_or_insert((rows.lines, column));
                    }
                    rows.values.push(value);
                }
                Kind::Text => rows.texts.push(str::from_utf8(field.strip_suffix(b"\r").unwrap_or(field)).ok()?.into()),
                Kind::LeftOut => {}
            }
            text = rest.get(1..).unwrap_or_default();
        }
    }
    Some(rows)
}
