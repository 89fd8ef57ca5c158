//! Moments ⇄ bytes, so that workers can send their moments to be added up.
//!
//! ```text
//! "SKPCAMOM", length, JSON { version, kernel, names, scaling, rows, m, d, … }, length, numbers in 64 bits, checksum
//! ```

use std::sync::Arc;

use serde_json::{Value, json};

use super::Moments;
use crate::columns::{Columns, Scaling};
use crate::dense;
use crate::error::{Error, Result};
use crate::kernel::{self, Kernel};
use crate::points::Points;
use crate::skeleton::Skeleton;
use crate::spec::Spec;
use crate::sums::{MOST_ROWS, Sums};
use crate::watch::Watch;

const MAGIC: &[u8] = b"SKPCAMOM";
/// The version written; newer ones are rejected.
const VERSION: u64 = 1;

impl Moments {
    /// Returns the moments as bytes; the same moments give the same bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (skeleton, sums) = (&self.skeleton, &self.sums);
        let m = self.m();
        let head = json!({
            "version": VERSION,
            "kernel": self.kernel().spec().to_json(),
            "names": self.columns.names,
            "ignored": self.columns.ignored,
            "scaling": self.columns.scaling.name(),
            "whitens": skeleton.whitens,
            "rows": sums.rows,
            "m": m,
            "d": self.columns.d(),
        });
        let head = head.to_string();
        let mut numbers = vec![skeleton.shift, sums.weight, sums.trace, self.error];
        numbers.extend(self.columns.shift.iter().chain(&self.columns.scale));
        numbers.extend(self.support().values().iter().chain(&sums.sums));
        (0..m).for_each(|j| (j..m).for_each(|i| numbers.push(sums.squares[(i, j)])));
        let mut bytes = MAGIC.to_vec();
        bytes.extend((head.len() as u64).to_le_bytes());
        bytes.extend(head.as_bytes());
        numbers.iter().for_each(|v| bytes.extend(v.to_le_bytes()));
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes
    }

    /// Reads bytes written by [`Moments::to_bytes`]; invalid ones are an error that says what is wrong.
    pub fn from_bytes(bytes: &[u8]) -> Result<Moments> {
        let wrong = |why: &str| Error::Numerical { why: format!("not usable moments: {why}") };
        let body = bytes.strip_prefix(MAGIC).ok_or_else(|| wrong("they do not begin with SKPCAMOM"))?;
        let (body, sum) = body.split_last_chunk::<4>().ok_or_else(|| wrong("they are too short"))?;
        if crc32fast::hash(&bytes[..bytes.len() - 4]) != u32::from_le_bytes(*sum) {
            return Err(wrong("their checksum is wrong: they are damaged"));
        }
        let (length, body) = body.split_first_chunk::<8>().ok_or_else(|| wrong("they are too short"))?;
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let (head, body) = body.split_at_checked(length).ok_or_else(|| wrong("they are too short"))?;
        let head: Value = serde_json::from_slice(head).map_err(|error| wrong(&error.to_string()))?;
        match head["version"].as_u64() {
            Some(VERSION) => {}
            Some(version) => return Err(wrong(&format!("they have version {version}, this program reads {VERSION}"))),
            None => return Err(wrong("they have no version")),
        }
        let numbers = body.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
        Reader { head: &head, numbers, used: 0 }.moments().map_err(|error| wrong(&error.to_string()))
    }
}

struct Reader<'a> {
    head: &'a Value,
    numbers: Vec<f64>,
    used: usize,
}

impl Reader<'_> {
    fn moments(mut self) -> Result<Moments> {
        let (m, d, rows) = (self.whole("m")?, self.whole("d")?, self.whole("rows")?);
        if rows > MOST_ROWS {
            return Err(Error::file("they are of more rows than can be counted"));
        }
        let triangle = m.saturating_mul(m.saturating_add(1)) / 2;
        let columns = d.saturating_mul(m.saturating_add(2));
        let expected = [triangle, columns, m, 4].into_iter().fold(0, usize::saturating_add);
        if m == 0 || d == 0 || expected != self.numbers.len() || !self.numbers.iter().all(|v| v.is_finite()) {
            return Err(Error::file("their numbers are too few, too many or not finite"));
        }
        let [shift, weight, trace, error] = [(); 4].map(|()| self.next());
        if weight < 0.0 || error < 0.0 {
            return Err(Error::file("a weight or an error is negative"));
        }
        let columns = Columns {
            names: serde_json::from_value(self.head["names"].clone()).map_err(|e| Error::file(e.to_string()))?,
            ignored: serde_json::from_value(self.head["ignored"].clone()).map_err(|e| Error::file(e.to_string()))?,
            scaling: Scaling::of_columns(self.head["scaling"].as_str().unwrap_or_default())?,
            shift: self.vector(d),
            scale: self.vector(d),
            ranges: None,
            intake: None,
        };
        if columns.names.as_ref().is_some_and(|names| names.len() != d) || columns.scale.iter().any(|s| *s <= 0.0) {
            return Err(Error::file("their columns do not fit"));
        }
        let kernel = kernel::build_resolved(&Spec::from_json(&self.head["kernel"])?)?;
        if kernel.width().is_some_and(|width| width != d) {
            return Err(Error::file("their kernel is for another number of columns"));
        }
        let support = Points::new(d, self.vector(m * d))?;
        let whitens = self.head["whitens"].as_bool().unwrap_or(false);
        let skeleton = Skeleton { shift, whitens, ..skeleton(&kernel, &support)? };
        let sums = self.vector(m);
        let mut squares = faer::Mat::zeros(m, m);
        (0..m).for_each(|j| (j..m).for_each(|i| squares[(i, j)] = self.next()));
        dense::mirror(&mut squares);
        let sums = Sums { rows, weight, sums, squares, trace };
        Ok(Moments { columns, skeleton: Arc::new(skeleton), sums, error })
    }

    fn whole(&self, name: &str) -> Result<usize> {
        let value = self.head[name].as_u64().and_then(|v| usize::try_from(v).ok());
        value.ok_or_else(|| Error::file(format!("their {name} is not a number")))
    }

    fn next(&mut self) -> f64 {
        self.used += 1;
        self.numbers[self.used - 1]
    }

    fn vector(&mut self, length: usize) -> Vec<f64> {
        self.used += length;
        self.numbers[self.used - length..self.used].to_vec()
    }
}

/// Returns the skeleton of points in the given order; they were independent on the machine that wrote them.
fn skeleton(kernel: &Arc<dyn Kernel>, support: &Points<'static>) -> Result<Skeleton> {
    let watch: &dyn Watch = &();
    let mut skeleton = Skeleton::new(kernel, support, watch)?;
    if skeleton.kept.len() < support.n() || !skeleton.kept.is_sorted() {
        skeleton = Skeleton::in_order(kernel, support)?;
    }
    skeleton.kept = (0..support.n()).collect();
    Ok(skeleton)
}
