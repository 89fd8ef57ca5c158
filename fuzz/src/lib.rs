//! What is fuzzed: functions from bytes to nothing that panic where skpca breaks a promise, and what makes bytes for
//! them.
//!
//! ```text
//! make(random, seeds) ──► bytes ──► run(bytes)        laws: no panic, bounded time, memory ≤ 10 × the input + 100 MB
//! ```
//!
//! The driver (`main.rs`) needs nothing but stable Rust. With nightly and cargo-fuzz, a target is one line:
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

// Rooms of the program and of the exports, which are no libraries of their own.
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

/// Something that reads what strangers write.
pub struct Target {
    /// What users of the driver call it.
    pub name: &'static str,
    /// What it reads.
    pub about: &'static str,
    /// How much of the time of a run of all targets it gets.
    pub share: u32,
    /// Panics where a promise is broken.
    pub run: fn(&[u8]),
    /// Bytes that get far: mutated seeds, or built from scratch.
    pub make: fn(&mut Random, &[Vec<u8>]) -> Vec<u8>,
    /// Sound bytes to start from.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target {
        name: "model",
        about: "model files with the right checksum: read, every answer, written and read again",
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
        about: "moments as bytes with the right checksum: read, merged, refitted",
        share: 1,
        run: moments::run,
        make: moments::make,
        seeds: moments::seeds,
    },
    Target {
        name: "learning",
        about: "models that learn on, their state changed, and what they then learn",
        share: 2,
        run: models::learn,
        make: models::make_learning,
        seeds: models::learning_seeds,
    },
    Target {
        name: "parcel",
        about: "passes and sums that travel between machines",
        share: 1,
        run: moments::run_parcel,
        make: moments::make_parcel,
        seeds: moments::parcels,
    },
    Target {
        name: "table",
        about: "CSV, TSV, gzip, Parquet, Arrow and .npy files, by many options",
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
        about: "models changed, exported as ONNX, C and SQL, and the graph read back",
        share: 1,
        run: graphs::run,
        make: models::make,
        seeds: models::seeds,
    },
];

/// The target of this name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Takes away the files that this process has made.
pub fn clean() {
    tables::clean();
    flags::clean();
}
