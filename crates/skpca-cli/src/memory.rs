//! How much memory a fit may take.

pub use skpca_files::memory::available;

/// Below this many bytes the free memory is not looked up.
const UNCHECKED: usize = 1 << 20;

/// Parses `8GB`, `512MB`, `1000000`.
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

/// Rejects an allocation larger than the free memory, with `advice`; otherwise the system might kill the process
/// without a message.
pub fn check(what: &str, needed: usize, advice: &str) -> Result<(), String> {
    if needed <= UNCHECKED {
        return Ok(());
    }
    match available() {
        Some(free) if needed > free => {
            Err(format!("{what} needs about {} of memory, {} are free{advice}", text(needed), text(free)))
        }
        _ => Ok(()),
    }
}

/// How much memory a fit may take.
#[derive(Clone, Copy)]
pub struct Allowed {
    pub bytes: usize,
    /// Where the limit comes from, for messages: "allowed" or "free for it".
    pub wording: &'static str,
}

impl Allowed {
    /// The bytes that the user allows, or by default a share of the free memory.
    pub fn new(given: Option<usize>) -> Allowed {
        match given {
            Some(bytes) => Allowed { bytes, wording: "allowed" },
            None => {
                let free = skpca_files::memory::share();
                Allowed { bytes: free, wording: "free for it" }
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
