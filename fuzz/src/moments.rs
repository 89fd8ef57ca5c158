//! Serialised moments, passes and sums: a magic word, a header, numbers and a checksum.

use std::ops::Range;
use std::sync::Mutex;

use serde_json::Value;
use skpca::passes::{self, Part};
use skpca::{Fit, Moments, Points, Random, Remote, Result, Source, Spec, Target, toys};

use crate::choices::{self, odd, one_in};
use crate::json;

/// Bytes that begin with a magic word of eight letters, a length and JSON.
pub struct Framed {
    pub magic: Vec<u8>,
    pub head: Value,
    pub rest: Vec<u8>,
}

impl Framed {
    pub fn of(bytes: &[u8]) -> Option<Framed> {
        let body = bytes.get(16..bytes.len().checked_sub(4)?)?;
        let length = usize::try_from(u64::from_le_bytes(bytes[8..16].try_into().ok()?)).ok()?;
        let (head, rest) = body.split_at_checked(length)?;
        Some(Framed { magic: bytes[..8].to_vec(), head: serde_json::from_slice(head).ok()?, rest: rest.to_vec() })
    }

    /// The bytes with a valid checksum.
    pub fn bytes(&self) -> Vec<u8> {
        let head = self.head.to_string();
        let mut bytes = self.magic.clone();
        bytes.extend((head.len() as u64).to_le_bytes());
        bytes.extend(head.as_bytes());
        bytes.extend(&self.rest);
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes
    }

    pub fn mutate(&mut self, random: &mut Random) {
        if one_in(random, 2) {
            json::mutate(random, &mut self.head);
        }
        if one_in(random, 2) {
            mutate_numbers(random, &mut self.rest);
        }
    }
}

/// Changes 64-bit numbers, or the number of bytes.
pub fn mutate_numbers(random: &mut Random, bytes: &mut Vec<u8>) {
    let count = bytes.len() / 8;
    if count == 0 || one_in(random, 6) {
        return choices::mutate(random, bytes);
    }
    for _ in 0..1 + random.below(3) {
        let at = 8 * random.below(count);
        let cell: &mut [u8] = &mut bytes[at..at + 8];
        let now = f64::from_le_bytes(cell.try_into().expect("eight bytes"));
        let number = match random.below(6) {
            0 => -now,
            1 => now * 10_f64.powi(random.below(61) as i32 - 30),
            2 => now + 1.0,
            3 => f64::from_bits(now.to_bits() ^ (1 << random.below(64))),
            _ => odd(random),
        };
        cell.copy_from_slice(&number.to_le_bytes());
    }
}

fn changed(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = seeds[random.below(seeds.len())].clone();
    match Framed::of(&bytes) {
        Some(mut framed) if !one_in(random, 10) => {
            framed.mutate(random);
            framed.bytes()
        }
        _ => {
            choices::mutate(random, &mut bytes);
            bytes
        }
    }
}

pub fn seeds() -> Vec<Vec<u8>> {
    let points = toys::clusters(0);
    ["rbf", "laplacian", "linear", "cosine", "polynomial,degree=3"]
        .iter()
        .map(|kernel| {
            let kernel: Spec = kernel.parse().expect("a kernel");
            let fit = Fit {
                kernel,
                method: Spec::new("landmarks"),
                components: Some(2),
                target: Some(Target::Support(2)),
                ..Fit::default()
            };
            let model = fit.train(&points).expect("a fit");
            let mut moments = model.moments(&()).expect("moments");
            moments.add(&points, None, &()).expect("rows");
            moments.to_bytes()
        })
        .collect()
}

pub fn make(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    changed(random, seeds)
}

pub fn run(bytes: &[u8]) {
    let Ok(mut moments) = Moments::from_bytes(bytes) else { return };
    assert_eq!(
        Moments::from_bytes(&moments.to_bytes()).expect("what was written is read").to_bytes(),
        moments.to_bytes()
    );
    let (rows, m) = (moments.rows(), moments.m());
    let same = moments.clone();
    // Merging fails if sums would overflow.
    if moments.merge(&same).is_ok() {
        moments.subtract(&same).expect("what was merged");
    }
    let _ = moments.scale(0.5);
    let width = Framed::of(bytes).and_then(|framed| framed.head["d"].as_u64()).unwrap_or(1) as usize;
    if let Ok(points) = Points::new(width, vec![0.25; 2 * width]) {
        let _ = moments.add(&points, None, &());
        let _ = moments.moved(&points.into_owned(), &());
    }
    assert!(moments.m() == m && moments.rows() >= rows.min(1), "rows or points were lost");
}

/// A stand-in for rows on another machine, which records the passes it receives and the sums it returns.
struct Elsewhere {
    points: Points<'static>,
    seen: Mutex<Vec<Vec<u8>>>,
}

impl Source for Elsewhere {
    fn n(&self) -> usize {
        self.points.n()
    }

    fn d(&self) -> usize {
        self.points.d()
    }

    fn read(&self, rows: Range<usize>, room: &mut Vec<f64>) -> Result<()> {
        Source::read(&self.points, rows, room)
    }

    fn remote(&self) -> Option<&dyn Remote> {
        Some(self)
    }
}

impl Remote for Elsewhere {
    fn fold(&self, _stage: &str, pass: &[u8]) -> Result<Vec<u8>> {
        let sum = passes::run(pass, Part { rows: &self.points, first: 0, labels: None })?;
        self.seen.lock().expect("nobody panics").extend([pass.to_vec(), sum.clone()]);
        Ok(sum)
    }
}

/// The recorded passes and sums of distributed fits.
pub fn parcels() -> Vec<Vec<u8>> {
    let elsewhere = Elsewhere { points: toys::normal(334_000, 3, 0), seen: Mutex::new(Vec::new()) };
    for kernel in ["rbf", "laplacian", "linear", "polynomial,degree=2", "rbf,gamma=mean", "rbf,gamma=scale"] {
        let fit = Fit {
            kernel: kernel.parse().expect("a kernel"),
            method: Spec::new("landmarks"),
            components: Some(2),
            target: Some(Target::Support(3)),
            ..Fit::default()
        };
        fit.run_remote(&elsewhere, None, None, &()).expect("a fit");
    }
    let mut all = elsewhere.seen.into_inner().expect("nobody panics");
    all.sort();
    all.dedup();
    assert!(!all.is_empty(), "no pass was made");
    all
}

pub fn make_parcel(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    changed(random, seeds)
}

pub fn run_parcel(bytes: &[u8]) {
    let rows = toys::clusters(1);
    let rows = rows.slice(0..5);
    let _ = passes::name(bytes);
    let _ = passes::levels(bytes);
    let _ = passes::asks_for_labels(bytes);
    let labels = [0, 1, 0, 2, 7];
    for labels in [None, Some(&labels[..])] {
        if let Ok(sum) = passes::run(bytes, Part { rows: &rows, first: 3, labels }) {
            let _ = passes::merge(bytes, &[&sum, &sum]);
        }
    }
    let _ = passes::merge(bytes, &[bytes, bytes]);
    let _ = passes::merge(bytes, &[]);
}
