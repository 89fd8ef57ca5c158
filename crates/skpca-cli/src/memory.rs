//! How much memory a fit may take, and what to say when it would take too much.

pub use skpca_files::memory::available;

/// What takes less is not worth looking up what is free.
const WORTH_LOOKING: usize = 1 << 20;

/// Reads `8GB`, `512MB`, `1000000`.
pub fn parse(text: &str) -> Result<usize, String> {
    let upper = text.trim().to_ascii_uppercase();
    let digits = upper.trim_end_matches(char::is_alphabetic);
    let unit = match &upper[digits.len()..] {
        "" | "B" => 1.0,
        "K" | "KB" => 1e3,
        "M" | "MB" => 1e6,
        "G" | "GB" => 1e9,
        "T" | "TB" => 1e12,
        _ => return Err("expected a size such as 8GB, 512MB or 1000000".into()),
    };
    match digits.trim().parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok((number * unit) as usize),
        _ => Err("expected a size such as 8GB, 512MB or 1000000".into()),
    }
}

/// `1.6 GB`
pub fn text(bytes: usize) -> String {
    match bytes {
        0..1_000_000 => format!("{:.0} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.0} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// Refuses what cannot fit; `advice` says what would. The system would end the process, and say less.
pub fn check(what: &str, needed: usize, advice: &str) -> Result<(), String> {
    if needed <= WORTH_LOOKING {
        return Ok(());
    }
    match available() {
        Some(free) if needed > free => {
            Err(format!("{what} needs about {} of memory, {} are free{advice}", text(needed), text(free)))
        }
        _ => Ok(()),
    }
}

/// How much a fit may take, and who says so.
#[derive(Clone, Copy)]
pub struct Allowed {
    pub bytes: usize,
    pub said: &'static str,
}

impl Allowed {
    /// What the user allows, or a share of what is free.
    pub fn new(given: Option<usize>) -> Allowed {
        match given {
            Some(bytes) => Allowed { bytes, said: "allowed" },
            None => {
                let free = skpca_files::memory::share();
                Allowed { bytes: free, said: "free for it" }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        assert_eq!(parse("8GB"), Ok(8_000_000_000));
        assert_eq!(parse("1.5 mb"), Ok(1_500_000));
        assert_eq!(parse("100"), Ok(100));
        for wrong in ["", "GB", "-1GB", "8XB", "1e999"] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
