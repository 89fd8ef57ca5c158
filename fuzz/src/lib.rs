//! Fuzz targets: functions of bytes that panic if skpca breaks a promise, and generators of bytes for them.
//!
//! ```text
//! make(random, seeds) ──► bytes ──► run(bytes)        laws: no panic, bounded time, memory ≤ 10 × the input + 100 MB
//! ```
//!
//! The driver (`main.rs`) needs only stable Rust. With nightly and cargo-fuzz, a target is one line:
//! `fuzz_target!(|data: &[u8]| (skpca_fuzz::target("model").unwrap().run)(data));`.

#![forbid(unsafe_code)]

mod choices;
mod fits;
mod flags;
mod graphs;
mod json;
mod models;
mod moments;
pub mod soak;
mod specs;
mod tables;

// Modules of the program and of the exports that are not public API.
#[allow(dead_code, unused_imports)]
#[path = "../../crates/skpca-cli/src"]
mod program {
    pub mod memory;
    pub mod table;
    pub mod terminal;
}
#[allow(dead_code)]
#[path = "../../crates/skpca-export/src/proto.rs"]
mod proto;

use program::{memory, table, terminal};
use skpca::Random;

/// A reader of untrusted input.
pub struct Target {
    /// The name for the driver.
    pub name: &'static str,
    /// What it reads.
    pub about: &'static str,
    /// Its share of the time when all targets run.
    pub share: u32,
    /// Runs one case; panics if a promise is broken.
    pub run: fn(&[u8]),
    /// Generates bytes that pass the first checks: mutated seeds, or bytes built from scratch.
    pub make: fn(&mut Random, &[Vec<u8>]) -> Vec<u8>,
    /// Valid bytes to start from.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target {
        name: "model",
        about: "model files with a valid checksum: read, evaluated in every way, written and read again",
        share: 5,
        run: models::run,
        make: models::make,
        seeds: models::seeds,
    },
    Target {
        name: "bytes",
        about: "model files with any damage",
        share: 1,
        run: models::run,
        make: models::damage,
        seeds: models::seeds,
    },
    Target {
        name: "moments",
        about: "moments as bytes with a valid checksum: read, merged, refitted",
        share: 1,
        run: moments::run,
        make: moments::make,
        seeds: moments::seeds,
    },
    Target {
        name: "learning",
        about: "updatable models with a modified state, and their updates",
        share: 2,
        run: models::learn,
        make: models::make_learning,
        seeds: models::learning_seeds,
    },
    Target {
        name: "parcel",
        about: "serialised passes and sums of distributed fits",
        share: 1,
        run: moments::run_parcel,
        make: moments::make_parcel,
        seeds: moments::parcels,
    },
    Target {
        name: "table",
        about: "CSV, TSV, gzip, Parquet, Arrow and .npy files, read with many options",
        share: 5,
        run: tables::run,
        make: tables::make,
        seeds: tables::seeds,
    },
    Target {
        name: "spec",
        about: "specs of methods and kernels, as text",
        share: 1,
        run: specs::run,
        make: specs::make,
        seeds: specs::seeds,
    },
    Target {
        name: "flags",
        about: "calls of the program, as processes",
        share: 1,
        run: flags::run,
        make: flags::make,
        seeds: flags::seeds,
    },
    Target {
        name: "fit",
        about: "odd tables × odd parameters: fitted, scored, written and read again",
        share: 4,
        run: fits::run,
        make: fits::make,
        seeds: fits::seeds,
    },
    Target {
        name: "export",
        about: "modified models, exported as ONNX, C and SQL, and the graph read back",
        share: 1,
        run: graphs::run,
        make: models::make,
        seeds: models::seeds,
    },
];

/// Returns the target with this name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Removes the files that this process has created.
pub fn clean() {
    tables::clean();
    flags::clean();
}
