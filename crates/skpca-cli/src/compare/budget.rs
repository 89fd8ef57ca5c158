//! The time budget of a comparison.

use std::cell::Cell;
use std::time::{Duration, Instant};

use skpca::Watch;

use crate::progress::Bar;

/// Maximum share of the budget for a single fit, so that a slow method leaves time for others.
const ONE: f64 = 0.1;
/// Maximum share for the first fit, which is larger because a comparison needs at least one model.
const FIRST: f64 = 0.5;
/// Share at which fits end; the rest is for fitting the recommended model to all rows, and for the page.
const FITS: f64 = 0.8;
/// Share at which the fits of the first split end if other splits follow.
const FIRST_SPLIT: f64 = 0.4;

/// The available time.
pub struct Budget {
    start: Instant,
    whole: Duration,
    /// Share at which the fits of the first split end.
    first: Cell<f64>,
}

impl Budget {
    pub fn new(whole: Duration) -> Budget {
        Budget { start: Instant::now(), whole, first: Cell::new(FITS) }
    }

    /// Reserves time for other splits.
    pub fn split(&self) {
        self.first.set(FIRST_SPLIT);
    }

    /// When a fit that starts now must end; `None` if there is no time for one. The `first` fit gets more time, since
    /// it computes what the others share.
    pub fn for_fit(&self, first: bool) -> Option<Instant> {
        self.until(self.first.get(), if first { FIRST } else { ONE })
    }

    /// The same for a fit to the rows of another split.
    pub fn for_repeat(&self) -> Option<Instant> {
        self.until(FITS, ONE)
    }

    /// The earlier of share `last` of the budget and now plus share `one` of it; `None` if `last` has passed.
    fn until(&self, last: f64, one: f64) -> Option<Instant> {
        let last = self.start + self.whole.mul_f64(last);
        let now = Instant::now();
        (now < last).then(|| last.min(now + self.whole.mul_f64(one)))
    }

    /// When the budget ends.
    pub fn end(&self) -> Instant {
        self.start + self.whole
    }
}

/// Shows the progress of a fit, and stops it when its time is over.
pub struct Deadline<'a> {
    pub bar: &'a Bar,
    pub at: Instant,
}

impl Watch for Deadline<'_> {
    fn at(&self, stage: &str, fraction: f64) -> bool {
        self.bar.at(stage, fraction) && Instant::now() < self.at
    }
}

/// `90`, `90s`, `5m`, `1.5h`
pub fn parse(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_alphabetic());
    let unit = match text[digits.len()..].to_lowercase().as_str() {
        "" | "s" | "sec" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => f64::NAN,
    };
    match digits.trim().parse::<f64>().map(|number| number * unit) {
        Ok(seconds) if seconds > 0.0 && seconds <= 1e9 => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("expected a time such as 90s, 5m or 1h".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        let seconds = |text| parse(text).map(|time| time.as_secs_f64());
        assert_eq!(
            ["90", "90s", " 5m", "1.5h", "0.5 s"].map(|text| seconds(text).ok()),
            [90.0, 90.0, 300.0, 5400.0, 0.5].map(Some)
        );
        for wrong in ["", "s", "-1s", "0", "5x", "1e999", "nan", "inf"] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn one_fit_never_gets_all_the_time() {
        let budget = Budget::new(Duration::from_secs(100));
        let seconds = |first| budget.for_fit(first).expect("there is time").duration_since(budget.start).as_secs();
        assert!(seconds(false) < 11 && (50..52).contains(&seconds(true)));
        assert!(
            Budget::new(Duration::ZERO).for_fit(true).is_none() && Budget::new(Duration::ZERO).for_repeat().is_none()
        );
        budget.split();
        assert!((39..41).contains(&seconds(true)), "other splits need time too");
    }
}
