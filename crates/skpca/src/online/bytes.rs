//! The state of online learning ⇄ bytes: part of the files of models that can be updated.
//!
//! ```text
//! "SKPCALRN", length, JSON { version, forget, … }, length, moments, numbers in 64 bits, checksum
//! ```

use std::sync::Arc;

use serde_json::{Value, json};

use super::reservoir::{Kept, Reservoir};
use super::support::Goal;
use super::{Learning, RECENT_SCORES, State};
use crate::error::{Error, Result};
use crate::method::Method;
use crate::moments::Moments;
use crate::sums::MOST_ROWS;

const MAGIC: &[u8] = b"SKPCALRN";
/// The version written; newer ones are rejected.
const VERSION: u64 = 1;

impl State {
    /// Returns the state as bytes; the same state gives the same bytes.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let State { learning, moments, reservoir, recent, reference, seen, goal, method: _ } = self;
        let kept = reservoir.kept();
        let head = json!({
            "version": VERSION,
            "forget": learning.forget,
            "reservoir": learning.reservoir,
            "most": learning.most,
            "alarms": learning.alarms,
            "seen": seen,
            "reference": reference,
            "components": goal.q,
            "center": goal.center,
            "points": goal.most,
            "fidelity": goal.fidelity,
            "seed": goal.seed,
            "offered": kept.offered,
            "clock": kept.clock,
            "changed": kept.changed,
            "kept": kept.numbers.len(),
            "recent": recent.len(),
        });
        let mut bytes = MAGIC.to_vec();
        for part in [head.to_string().as_bytes(), &moments.to_bytes()] {
            bytes.extend((part.len() as u64).to_le_bytes());
            bytes.extend(part);
        }
        kept.numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        let numbers = kept.keys.iter().chain(&kept.values).chain(recent);
        numbers.for_each(|number| bytes.extend(number.to_le_bytes()));
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes
    }

    /// Reads bytes written by [`State::to_bytes`]; invalid ones are an error that says what is wrong.
    pub(super) fn from_bytes(bytes: &[u8], method: Arc<dyn Method>) -> Result<State> {
        let wrong = |why: &str| Error::file(format!("its learning state: {why}"));
        let short = || wrong("it is too short");
        let body = bytes.strip_prefix(MAGIC).ok_or_else(|| wrong("it does not begin with SKPCALRN"))?;
        let (body, sum) = body.split_last_chunk::<4>().ok_or_else(short)?;
        if crc32fast::hash(&bytes[..bytes.len() - 4]) != u32::from_le_bytes(*sum) {
            return Err(wrong("its checksum is wrong: it is damaged"));
        }
        let (head, body) = part(body).ok_or_else(short)?;
        let head: Value = serde_json::from_slice(head).map_err(|error| wrong(&error.to_string()))?;
        match head["version"].as_u64() {
            Some(VERSION) => {}
            Some(version) => return Err(wrong(&format!("it has version {version}, this program reads {VERSION}"))),
            None => return Err(wrong("it has no version")),
        }
        let (moments, body) = part(body).ok_or_else(short)?;
        let moments = Moments::from_bytes(moments)?;
        Reader { head: &head, words: body.as_chunks().0, odd: !body.len().is_multiple_of(8) }.state(moments, method)
    }
}

/// Splits off the first part, which is preceded by its length.
fn part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<8>()?;
    rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)
}

struct Reader<'a> {
    head: &'a Value,
    words: &'a [[u8; 8]],
    odd: bool,
}

impl Reader<'_> {
    fn state(mut self, moments: Moments, method: Arc<dyn Method>) -> Result<State> {
        let wrong = |why: &str| Error::file(format!("its learning state: {why}"));
        let learning = Learning {
            forget: self.number("forget")?,
            reservoir: self.whole("reservoir")?,
            most: if self.head["most"].is_null() { None } else { Some(self.whole("most")?) },
            alarms: self.flag("alarms")?,
        };
        learning.check()?;
        let fidelity = if self.head["fidelity"].is_null() { None } else { Some(self.number("fidelity")?) };
        let goal = Goal {
            q: self.whole("components")?,
            center: self.flag("center")?,
            most: self.whole("points")?,
            fidelity,
            seed: self.count("seed")?,
        };
        if goal.q == 0 || fidelity.is_some_and(|fidelity| !(fidelity > 0.0 && fidelity <= 1.0)) {
            return Err(wrong("its number of components or its fidelity is invalid"));
        }
        let (n, recent, d) = (self.whole("kept")?, self.whole("recent")?, moments.d());
        let expected = n.checked_mul(d + 2).and_then(|numbers| numbers.checked_add(recent));
        if self.odd || n > learning.reservoir || recent > RECENT_SCORES || expected != Some(self.words.len()) {
            return Err(wrong("its numbers are too few or too many"));
        }
        let numbers = self.take(n).iter().map(|word| u64::from_le_bytes(*word)).collect();
        let (keys, values, recent) = (self.finite(n)?, self.finite(n * d)?, self.finite(recent)?);
        let (offered, clock, changed) = (self.count("offered")?, self.number("clock")?, self.whole("changed")?);
        let (reference, seen) = (self.number("reference")?, self.whole("seen")?);
        if offered.max(seen as u64) > MOST_ROWS as u64 {
            return Err(wrong("it has seen more rows than can be counted"));
        }
        let kept = Kept { offered, clock, changed, numbers, keys, values };
        let negative = reference < 0.0 || recent.iter().any(|score| *score < 0.0);
        if negative || !kept.numbers.iter().all(|number| *number < kept.offered) {
            return Err(wrong("a row number is too large, or a score is negative"));
        }
        let reservoir = Reservoir::with(goal.seed, (learning.reservoir, d), kept);
        Ok(State { learning, moments, reservoir, recent, reference, seen, goal, method })
    }

    fn take(&mut self, count: usize) -> &[[u8; 8]] {
        let (taken, rest) = self.words.split_at(count);
        self.words = rest;
        taken
    }

    fn finite(&mut self, count: usize) -> Result<Vec<f64>> {
        let numbers: Vec<f64> = self.take(count).iter().map(|word| f64::from_le_bytes(*word)).collect();
        match numbers.iter().find(|number| !number.is_finite()) {
            Some(number) => Err(Error::file(format!("its learning state: {number} is not a finite number"))),
            None => Ok(numbers),
        }
    }

    fn missing(name: &str) -> Error {
        Error::file(format!("its learning state: '{name}' is missing or of the wrong type"))
    }

    fn number(&self, name: &str) -> Result<f64> {
        self.head[name].as_f64().ok_or_else(|| Reader::missing(name))
    }

    fn flag(&self, name: &str) -> Result<bool> {
        self.head[name].as_bool().ok_or_else(|| Reader::missing(name))
    }

    fn count(&self, name: &str) -> Result<u64> {
        self.head[name].as_u64().ok_or_else(|| Reader::missing(name))
    }

    fn whole(&self, name: &str) -> Result<usize> {
        usize::try_from(self.count(name)?).map_err(|_| Reader::missing(name))
    }
}
