//! Finds the columns of a text table that contain text or dates, from its first rows.
//!
//! A column is a text column if more of its cells are words than numbers. A word among numbers is an error, which is
//! reported with its line when the row is read.

use std::io::Cursor;

use super::dialect::Dialect;
use super::error::TextColumn;
use super::quoted::{Record, Records};
use super::selection::Selection;
use super::text::Text;

/// Maximum number of rows to inspect.
const ROWS: usize = 1000;

/// What was seen in a column.
#[derive(Clone, Default)]
struct Seen {
    numbers: usize,
    words: usize,
    example: String,
}

/// Finds the text columns among the features from the first record, if it is a row, and the lines after it.
pub(super) fn text_columns(
    first: Option<&Record>,
    lines: &[u8],
    dialect: Dialect,
    selection: &Selection,
) -> Vec<TextColumn> {
    let mut seen = vec![Seen::default(); selection.features.len()];
    first.into_iter().for_each(|record| look(record, dialect, selection, &mut seen));
    let mut records = Records::new(&selection.file, Text::new(Box::new(Cursor::new(lines)), false), dialect.separator);
    // Errors in records are reported when the rows are read.
    for _ in 0..ROWS {
        if !records.advance().unwrap_or(false) {
            break;
        }
        look(&records.record, dialect, selection, &mut seen);
    }
    let words = |(seen, column): (Seen, &usize)| {
        (seen.words > seen.numbers).then_some(TextColumn { column: *column, example: seen.example })
    };
    seen.into_iter().zip(&selection.features).filter_map(words).collect()
}

fn look(record: &Record, dialect: Dialect, selection: &Selection, seen: &mut [Seen]) {
    if record.count() != selection.columns.count() {
        return;
    }
    for (seen, &column) in seen.iter_mut().zip(&selection.features) {
        let field = record.field(column);
        if dialect.number(field).is_some() || dialect.is_infinite(field) {
            seen.numbers += 1;
        } else if !Dialect::is_missing(field) {
            seen.words += 1;
            if seen.words == 1 {
                seen.example = String::from_utf8_lossy(field.trim_ascii()).into_owned();
            }
        }
    }
}
