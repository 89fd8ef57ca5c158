//! Tables for the benchmarks, from files.

use skpca::{Columns, Points, Scaling};

/// A file's name without folder and ending.
pub fn stem(file: &str) -> String {
    file.rsplit('/').next().unwrap_or(file).trim_end_matches(".npy").to_string()
}

/// A C-ordered matrix of doubles, standardised.
pub fn read(file: &str) -> Points<'static> {
    let bytes = std::fs::read(file).expect("the file can be read");
    let header = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let text = String::from_utf8_lossy(&bytes[10..header]);
    let shape = text.split_once("'shape': (").and_then(|(_, rest)| rest.split_once(')')).expect("an npy header").0;
    let d: usize = shape.split(',').nth(1).and_then(|d| d.trim().parse().ok()).expect("two dimensions");
    let values: Vec<f64> = bytes[header..].as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).collect();
    let points = Points::new(d, values).expect("finite rows");
    Columns::fit(&points, None, Scaling::Standard).and_then(|c| c.apply(&points)).expect("columns").into_owned()
}
