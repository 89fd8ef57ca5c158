//! Manners at the terminal: aligned tables, times with units, emphasis only where it is seen.

use std::io::IsTerminal;

/// Emphasis on standard output: on a terminal, and not where NO_COLOR is set.
pub struct Emphasis(bool);

impl Emphasis {
    pub fn new() -> Emphasis {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let unwanted = set("NO_COLOR") || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Emphasis(std::io::stdout().is_terminal() && !unwanted)
    }

    pub fn bold(&self, text: &str) -> String {
        if self.0 { format!("\x1b[1m{text}\x1b[0m") } else { text.to_string() }
    }

    pub fn green(&self, text: &str) -> String {
        if self.0 { format!("\x1b[1;32m{text}\x1b[0m") } else { text.to_string() }
    }
}

/// Rows of cells as lines, columns as wide as their widest cell; the first `left` columns are words, the others numbers.
pub fn aligned(rows: &[Vec<String>], left: usize) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |k: usize| rows.iter().filter_map(|row| row.get(k)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cell = |(k, text): (usize, &String)| match k < left {
            true => format!("{text:<0$}", widths[k]),
            false => format!("{text:>0$}", widths[k]),
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
    match number < 9.95 {
        true => format!("{number:.1} {unit}"),
        false => format!("{number:.0} {unit}"),
    }
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
    fn times_have_units() {
        assert_eq!([4e-8, 1.2e-5, 0.0034, 2.06, 240.0].map(time), ["40 ns", "12 µs", "3.4 ms", "2.1 s", "4.0 min"]);
    }
}
