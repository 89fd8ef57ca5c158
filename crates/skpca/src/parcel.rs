//! The byte format of passes and their sums: a head and numbers.
//!
//! ```text
//! "SKPCAROW", length, JSON { skpca, … }, numbers in 64 bits, checksum
//! ```
//!
//! Both ends must run the same version of skpca; these bytes are never stored.

use serde_json::{Map, Value};

use crate::error::{Error, Result};

const MAGIC: &[u8] = b"SKPCAROW";
/// The version of skpca on this machine.
const HERE: &str = env!("CARGO_PKG_VERSION");

/// Numbers with a descriptive head.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Parcel {
    pub head: Map<String, Value>,
    pub numbers: Vec<f64>,
}

impl Parcel {
    /// Creates a parcel of numbers under a name.
    pub(crate) fn new(name: &str, numbers: Vec<f64>) -> Parcel {
        Parcel { head: Map::new(), numbers }.with("name", name)
    }

    /// Adds an entry to the head.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Parcel {
        self.head.insert(name.into(), value.into());
        self
    }

    /// Returns a text of the head; empty if it is missing.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.head.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns a count of the head.
    pub(crate) fn count(&self, name: &str) -> Result<usize> {
        let count = self.head.get(name).and_then(Value::as_u64).and_then(|count| usize::try_from(count).ok());
        count.ok_or_else(|| wrong(&format!("they do not say {name}")))
    }

    /// Returns a Boolean of the head; false if it is missing.
    pub(crate) fn says(&self, name: &str) -> bool {
        self.head.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    /// Removes and returns the first `count` numbers.
    pub(crate) fn take(&mut self, count: usize) -> Result<Vec<f64>> {
        if count > self.numbers.len() {
            return Err(wrong(&format!("{} numbers where {count} were expected", self.numbers.len())));
        }
        let rest = self.numbers.split_off(count);
        Ok(std::mem::replace(&mut self.numbers, rest))
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut head = self.head.clone();
        head.insert("skpca".into(), HERE.into());
        let head = Value::Object(head).to_string();
        let mut bytes = Vec::with_capacity(MAGIC.len() + 12 + head.len() + 8 * self.numbers.len());
        bytes.extend(MAGIC);
        bytes.extend((head.len() as u64).to_le_bytes());
        bytes.extend(head.as_bytes());
        self.numbers.iter().for_each(|v| bytes.extend(v.to_le_bytes()));
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes
    }

    /// Reads bytes written by [`Parcel::to_bytes`] of the same version.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Parcel> {
        let short = || wrong("they are too short");
        let body = bytes.strip_prefix(MAGIC).ok_or_else(|| wrong("they do not begin with SKPCAROW"))?;
        let (body, sum) = body.split_last_chunk::<4>().ok_or_else(short)?;
        if crc32fast::hash(&bytes[..bytes.len() - 4]) != u32::from_le_bytes(*sum) {
            return Err(wrong("their checksum is wrong: they are damaged"));
        }
        let (length, body) = body.split_first_chunk::<8>().ok_or_else(short)?;
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let (head, body) = body.split_at_checked(length).ok_or_else(short)?;
        let head: Map<String, Value> = serde_json::from_slice(head).map_err(|error| wrong(&error.to_string()))?;
        let numbers = body.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
        let parcel = Parcel { head, numbers };
        match parcel.text("skpca") {
            HERE => Ok(parcel),
            there => {
                let expected = format!("{HERE}, as here: every machine needs the same version of skpca");
                Err(Error::parameter("skpca", there, &expected))
            }
        }
    }
}

/// Returns the error for invalid bytes.
pub(crate) fn wrong(why: &str) -> Error {
    Error::Numerical { why: format!("not a usable pass or sum: {why}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parcels_round_trip_and_damaged_ones_are_rejected() {
        let parcel = Parcel::new("trace", vec![0.1, -0.0, f64::INFINITY]).with("m", 3).with("single", true);
        let bytes = parcel.to_bytes();
        let mut back = Parcel::from_bytes(&bytes).unwrap();
        assert_eq!((back.text("name"), back.count("m"), back.says("single")), ("trace", Ok(3), true));
        assert_eq!(back.take(2), Ok(vec![0.1, -0.0]));
        assert_eq!(back.numbers, [f64::INFINITY]);
        assert!(back.take(2).is_err() && back.count("d").is_err());
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            assert!(Parcel::from_bytes(&damaged).is_err() && Parcel::from_bytes(&bytes[..at]).is_err(), "{at}");
        }
    }

    #[test]
    fn another_version_is_rejected_by_name() {
        // Of the same length, which the bytes before it state.
        let later: String = HERE.chars().map(|c| if c.is_ascii_digit() { '9' } else { c }).collect();
        let bytes = Parcel::new("trace", Vec::new()).to_bytes();
        let mut other = String::from_utf8_lossy(&bytes[..bytes.len() - 4]).replace(HERE, &later).into_bytes();
        other.extend(crc32fast::hash(&other).to_le_bytes());
        let message = Parcel::from_bytes(&other).unwrap_err().to_string();
        assert!(message.contains(&later) && message.contains(HERE), "{message}");
    }
}
