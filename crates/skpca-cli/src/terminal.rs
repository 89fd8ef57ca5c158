//! Terminal output: escaped control characters, aligned tables, times with units, and emphasis on terminals only.
//!
//! Names of columns, files and classes come from data, and data may contain escape sequences. All text for people goes
//! through [`Screen`] or [`print_stderr`], which escape such characters; tables and JSON on standard output are data
//! and are written unchanged.

use std::borrow::Cow;
use std::io::{self, IsTerminal, StdoutLock, Write};

/// Escapes every character that could control a terminal, as `\u{1b}`.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let escape = |c: char| if is_control(c) { c.escape_default().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(escape).collect())
}

/// Whether a character is a control character, a Unicode bidirectional control, or a Unicode line separator.
fn is_control(c: char) -> bool {
    let bidirectional =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || bidirectional || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Writes a line to standard error, ignoring errors.
pub fn print_stderr(text: &str) {
    let _ = writeln!(io::stderr(), "{}", printable(text));
}

/// Standard output, for people. Text is emphasised on a terminal only, and not if NO_COLOR is set.
pub struct Screen {
    out: StdoutLock<'static>,
    emphasis: bool,
    silent: bool,
}

impl Screen {
    pub fn new() -> Screen {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let unwanted = set("NO_COLOR") || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Screen { out: io::stdout().lock(), emphasis: io::stdout().is_terminal() && !unwanted, silent: false }
    }

    /// A screen that shows nothing if `quiet`.
    pub fn unless(quiet: bool) -> Screen {
        Screen { silent: quiet, ..Screen::new() }
    }

    pub fn line(&mut self, text: &str) -> io::Result<()> {
        self.show(text, "")
    }

    pub fn bold(&mut self, text: &str) -> io::Result<()> {
        self.show(text, "1")
    }

    pub fn green(&mut self, text: &str) -> io::Result<()> {
        self.show(text, "1;32")
    }

    fn show(&mut self, text: &str, style: &str) -> io::Result<()> {
        let text = printable(text);
        if self.silent {
            Ok(())
        } else if self.emphasis && !style.is_empty() {
            writeln!(self.out, "\x1b[{style}m{text}\x1b[0m")
        } else {
            writeln!(self.out, "{text}")
        }
    }
}

/// Formats rows of cells as lines, with columns as wide as their widest cell. The first `left` columns are aligned to
/// the left, the others to the right.
pub fn aligned(rows: &[Vec<String>], left: usize) -> Vec<String> {
    // Escape before measuring widths.
    let rows: Vec<Vec<Cow<str>>> = rows.iter().map(|row| row.iter().map(|cell| printable(cell)).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |k: usize| rows.iter().filter_map(|row| row.get(k)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<Cow<str>>| {
        let cell = |(k, text): (usize, &Cow<str>)| {
            if k < left { format!("{text:<0$}", widths[k]) } else { format!("{text:>0$}", widths[k]) }
        };
        row.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ").trim_end().to_string()
    };
    rows.iter().map(line).collect()
}

/// `840 ns`, `12 µs`, `3.4 ms`, `2.1 s`, `3 min`
pub fn time(seconds: f64) -> String {
    let (number, unit) = match seconds {
        s if s < 1e-6 => (1e9 * s, "ns"),
        s if s < 1e-3 => (1e6 * s, "µs"),
        s if s < 1.0 => (1e3 * s, "ms"),
        s if s < 100.0 => (s, "s"),
        s => (s / 60.0, "min"),
    };
    if number < 9.95 { format!("{number:.1} {unit}") } else { format!("{number:.0} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [vec!["é".into(), "1".into()], vec!["abc".into(), "100".into()]];
        assert_eq!(aligned(&rows, 1), ["é      1", "abc  100"]);
    }

    #[test]
    fn text_cannot_command_the_terminal() {
        assert_eq!(printable("\x1b[31mred\x07\u{9b}2J\n"), r"\u{1b}[31mred\u{7}\u{9b}2J\n");
        assert_eq!(printable("a\u{202e}b\u{2066}\u{200f}c"), r"a\u{202e}b\u{2066}\u{200f}c");
        let plain = "Größe of 'x\\y' in µm², 名前";
        assert!(matches!(printable(plain), Cow::Borrowed(text) if text == plain));
        assert_eq!(aligned(&[vec!["\x1b".into(), "1".into()], vec!["abc".into(), "2".into()]], 1)[1], "abc     2");
    }

    #[test]
    fn times_have_units() {
        assert_eq!([4e-8, 1.2e-5, 0.0034, 2.06, 240.0].map(time), ["40 ns", "12 µs", "3.4 ms", "2.1 s", "4.0 min"]);
    }
}
