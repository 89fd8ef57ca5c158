//! A progress bar, shown on terminals only.

use std::sync::Mutex;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use skpca::Watch;

/// Shows the stages of a fit on standard error if that is a terminal.
pub struct Bar {
    bar: ProgressBar,
    stage: Mutex<String>,
}

const STEPS: u64 = 1000;

impl Bar {
    pub fn new(quiet: bool) -> Bar {
        let style = ProgressStyle::with_template("{prefix}{msg:<14} {bar:32} {percent:>3}% {elapsed}");
        let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::new(STEPS) };
        bar.set_style(style.expect("the template is right"));
        bar.enable_steady_tick(Duration::from_millis(200));
        Bar { bar, stage: Mutex::new(String::new()) }
    }

    /// Sets the name of the fit that the following stages belong to.
    pub fn of(&self, fit: String) {
        self.bar.set_prefix(fit);
    }
}

impl Watch for Bar {
    fn at(&self, stage: &str, fraction: f64) -> bool {
        let mut shown = self.stage.lock().expect("nobody panics with the lock");
        if *shown != stage {
            *shown = stage.to_string();
            self.bar.set_message(stage.to_string());
        }
        self.bar.set_position((fraction.clamp(0.0, 1.0) * STEPS as f64) as u64);
        true
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
