//! The field separator and the decimal separator of a text table.
//!
//! Spreadsheets in half of the world write `1,5;2,5` where others write `1.5,2.5`. The first line decides, unless the
//! user does.

use std::str;

use super::ReadOptions;

/// Words that stand for a missing value, ignoring case. A blank field is missing as well.
const MISSING: &[&str] = &["na", "n/a", "<na>", "nan", "null", "none"];

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Dialect {
    pub separator: u8,
    pub decimal: u8,
}

impl Dialect {
    /// Determines the dialect of a table from the separator of its extension (`usual`), its first line and the options.
    pub fn of(line: &[u8], usual: u8, options: &ReadOptions) -> Dialect {
        let separator = options.delimiter.unwrap_or_else(|| if usual == b',' { separator(line) } else { usual });
        let decimal = options.decimal.unwrap_or(if separator == b';' { b',' } else { b'.' });
        Dialect { separator, decimal }
    }

    /// Parses a finite number; `None` for any other text. Numbers with a decimal point are accepted in every dialect.
    pub fn number(&self, field: &[u8]) -> Option<f64> {
        let text = str::from_utf8(field.trim_ascii()).ok()?;
        let value: f64 = if self.decimal == b',' && text.contains(',') {
            if text.contains('.') {
                return None;
            }
            text.replacen(',', ".", 1).parse().ok()?
        } else {
            text.parse().ok()?
        };
        value.is_finite().then_some(value)
    }
}

impl Dialect {
    /// Whether a field is blank or a word for a missing value.
    pub fn is_missing(field: &[u8]) -> bool {
        let field = field.trim_ascii();
        let is_nan = || str::from_utf8(field).is_ok_and(|text| text.parse().is_ok_and(f64::is_nan));
        field.is_empty() || MISSING.iter().any(|word| field.eq_ignore_ascii_case(word.as_bytes())) || is_nan()
    }

    /// Whether a field is infinite, or a number too large for 64 bits.
    pub fn is_infinite(&self, field: &[u8]) -> bool {
        str::from_utf8(field.trim_ascii()).is_ok_and(|text| text.parse().is_ok_and(f64::is_infinite))
    }
}

/// A comma, unless the line has semicolons or tabs and any commas in it are decimal separators.
fn separator(line: &[u8]) -> u8 {
    let mut quoted = false;
    let mut plain = Vec::with_capacity(line.len());
    for &byte in line {
        quoted ^= byte == b'"';
        if !quoted {
            plain.push(byte);
        }
    }
    let is_number = |field: &[u8]| Dialect { separator: b';', decimal: b',' }.number(field).is_some();
    let splits = |by: u8| {
        plain.contains(&by) && plain.split(|byte| *byte == by).all(|field| !field.contains(&b',') || is_number(field))
    };
    [b';', b'\t'].into_iter().find(|by| splits(*by)).unwrap_or(b',')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_determines_the_dialect() {
        let of = |line: &str| Dialect::of(line.as_bytes(), b',', &ReadOptions::default());
        let (comma, semicolon) =
            (Dialect { separator: b',', decimal: b'.' }, Dialect { separator: b';', decimal: b',' });
        for line in ["a,b", "a", "1.5,2.5", "a;b,c", "\"x;y\",z", "1;2,x", ""] {
            assert_eq!(of(line), comma, "{line}");
        }
        for line in ["a;b", "1,5;2,5", "1;2,5", "\"x,y\";z"] {
            assert_eq!(of(line), semicolon, "{line}");
        }
        assert_eq!(of("a\tb"), Dialect { separator: b'\t', decimal: b'.' });
    }

    #[test]
    fn options_override_the_first_line() {
        let options = ReadOptions { delimiter: Some(b'|'), decimal: Some(b','), ..Default::default() };
        assert_eq!(Dialect::of(b"a;b", b',', &options), Dialect { separator: b'|', decimal: b',' });
        assert_eq!(Dialect::of(b"a;b", b'\t', &ReadOptions::default()).separator, b'\t', "a .tsv has tabs");
    }

    #[test]
    fn numbers_have_one_decimal_separator() {
        let (point, comma) = (Dialect { separator: b',', decimal: b'.' }, Dialect { separator: b';', decimal: b',' });
        assert_eq!(["1.5", "1,5"].map(|text| point.number(text.as_bytes())), [Some(1.5), None]);
        let read = ["1.5", "1,5", " -2,5e3 ", "1.000,5", "1,000,5", ",5"].map(|text| comma.number(text.as_bytes()));
        assert_eq!(read, [Some(1.5), Some(1.5), Some(-2500.0), None, None, Some(0.5)]);
    }
}
