//! Bytes as a list of choices, and random bytes. Once the bytes are used up, every choice is the first option.

use skpca::Random;

/// Numbers that often cause errors.
const ODD: [f64; 24] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.0,
    1e-3,
    1e3,
    1e6,
    -1e6,
    1e12,
    1e-12,
    1e100,
    -1e100,
    1e-100,
    1e154,
    1e-160,
    1e300,
    -1e308,
    f64::MAX,
    f64::MIN_POSITIVE,
    5e-324,
    f64::EPSILON,
    9007199254740993.0,
];

pub struct Choices<'a>(pub &'a [u8]);

impl<'a> Choices<'a> {
    pub fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (usize::from(self.byte()) << 8 | usize::from(self.byte())) % bound.max(1)
    }

    /// Returns true in one of `cases` cases.
    pub fn one_in(&mut self, cases: usize) -> bool {
        self.below(cases) == cases - 1
    }

    pub fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// Mostly ordinary numbers, and a few extreme ones.
    pub fn number(&mut self) -> f64 {
        match self.byte() % 16 {
            0..6 => f64::from(self.byte()) / 64.0 - 2.0,
            6..9 => f64::from(i8::from_le_bytes([self.byte()])),
            9..12 => f64::from(self.byte()).sin() * 10_f64.powi(i32::from(self.byte() % 12) - 6),
            12 | 13 => self.of(&ODD),
            14 => f64::from_bits(u64::from_le_bytes([(); 8].map(|()| self.byte()))),
            _ => 10_f64.powi(i32::from(self.byte()) * 2 - 256),
        }
    }
}

/// Any 64 bits.
pub fn word(random: &mut Random) -> u64 {
    (random.below(1 << 32) as u64) << 32 | random.below(1 << 32) as u64
}

/// Returns true in one of `cases` cases.
pub fn one_in(random: &mut Random, cases: usize) -> bool {
    random.below(cases) == 0
}

/// A number that may cause errors; rarely not finite.
pub fn odd(random: &mut Random) -> f64 {
    match random.below(10) {
        0..5 => ODD[random.below(ODD.len())],
        5 => random.below(2000) as f64 - 1000.0,
        6 | 7 => random.below(1 << 30) as f64 / (1u64 << 30) as f64,
        8 => f64::from_bits(word(random)),
        _ => [f64::NAN, f64::INFINITY, f64::NEG_INFINITY][random.below(3)],
    }
}

/// Generates bytes for [`Choices`]: from scratch, or by mutating a seed.
pub fn make(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    if seeds.is_empty() || one_in(random, 2) {
        let length = 16 << random.below(6);
        return (0..length).map(|_| random.below(256) as u8).collect();
    }
    let mut bytes = seeds[random.below(seeds.len())].clone();
    mutate(random, &mut bytes);
    bytes
}

/// Mutates bytes: flips bits, inserts odd values, cuts and repeats.
pub fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..1 + random.below(4) {
        if bytes.is_empty() {
            bytes.push(random.below(256) as u8);
            continue;
        }
        let at = random.below(bytes.len());
        let most = 1 << random.below(8);
        let end = (at + 1 + random.below(most)).min(bytes.len());
        match random.below(9) {
            0 | 1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes[at] = random.below(256) as u8,
            3 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff, b'"', b'\n', b','][random.below(8)],
            4 => drop(bytes.drain(at..end)),
            5 => bytes.truncate(at),
            6 => {
                let copy = bytes[at..end].to_vec();
                let to = random.below(bytes.len());
                bytes.splice(to..to, copy);
            }
            7 if bytes.len() >= at + 8 => bytes[at..at + 8].copy_from_slice(&odd(random).to_le_bytes()),
            8 if bytes.len() >= at + 4 => {
                let number = [u32::MAX, 1 << 31, (1 << 31) - 1, 1 << 16, 1 << 24, 0][random.below(6)];
                bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
            }
            _ => bytes.insert(at, random.below(256) as u8),
        }
    }
}
