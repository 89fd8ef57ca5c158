//! Shared by the tests of the program: a directory per test, small tables, and runs of the program.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// Column names of a table with three columns.
pub const NAMES: [&str; 3] = ["a", "b", "c"];

/// How a run of the program ended.
#[derive(Debug)]
pub struct Outcome {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// A directory for one test; the program runs inside it, so that messages show bare file names.
pub struct Desk {
    directory: TempDir,
}

impl Desk {
    pub fn new() -> Desk {
        Desk { directory: TempDir::new().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn put(&self, name: &str, contents: impl AsRef<[u8]>) {
        fs::write(self.path(name), contents).unwrap();
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// The program with these arguments, ready to start.
    pub fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_skpca"));
        command.args(words.split_whitespace()).current_dir(self.directory.path()).stdin(Stdio::null());
        command
    }

    pub fn run(&self, words: &str) -> Outcome {
        outcome(self.command(words).output().unwrap())
    }

    /// Runs the program with these arguments in a shell, after the commands `before` and followed by `after`.
    pub fn shell(&self, before: &str, words: &str, after: &str) -> Outcome {
        let call = format!("{before}; {} {words} {after}", env!("CARGO_BIN_EXE_skpca"));
        let mut command = Command::new("sh");
        command.args(["-c", &call]).current_dir(self.directory.path()).stdin(Stdio::null());
        outcome(command.output().unwrap())
    }

    /// Runs with `input` on standard input.
    pub fn feed(&self, words: &str, input: &[u8]) -> Outcome {
        let mut command = self.command(words);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        outcome(child.wait_with_output().unwrap())
    }

    /// Runs a call that must succeed with empty standard error; returns standard output.
    pub fn ok(&self, words: &str) -> String {
        let run = self.run(words);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "skpca {words}");
        run.stdout
    }

    /// The rows of numbers that a successful run prints.
    pub fn rows(&self, words: &str) -> Vec<Vec<f64>> {
        numbers(&self.ok(words))
    }

    pub fn json(&self, words: &str) -> Value {
        serde_json::from_str(&self.ok(words)).unwrap()
    }

    /// Runs a call that must fail with this message, without output and without creating, changing or removing a file.
    pub fn refuses(&self, words: &str, code: i32, message: &str) {
        let before = self.files();
        let run = self.run(words);
        assert_eq!((run.code, run.stderr.as_str()), (code, format!("error: {message}\n").as_str()), "skpca {words}");
        assert_eq!(run.stdout, "", "skpca {words}");
        assert!(self.files() == before, "skpca {words}: files have changed");
    }

    /// The same for a fit, with and without an existing model file.
    pub fn refuses_fit(&self, words: &str, code: i32, message: &str) {
        self.put("old.skpca", "an older model");
        for model in ["old.skpca", "new.skpca"] {
            self.refuses(&format!("fit {words} -o {model}"), code, message);
        }
    }

    /// Names of the existing files.
    pub fn names(&self) -> Vec<String> {
        self.files().into_keys().collect()
    }

    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let entries = fs::read_dir(self.directory.path()).unwrap().map(|entry| entry.unwrap());
        entries
            .filter(|entry| entry.file_type().unwrap().is_file())
            .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
            .collect()
    }
}

fn outcome(output: std::process::Output) -> Outcome {
    let run = Outcome {
        code: output.status.code().expect("not ended by a signal"),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    };
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    run
}

/// Rows of standard normal numbers, the same on every machine (SplitMix64, Box–Muller).
pub fn normal(seed: u64, n: usize, d: usize) -> Vec<Vec<f64>> {
    let mut state = seed;
    let mut uniform = move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    };
    let mut number = || (-2.0 * (1.0 - uniform()).ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
    (0..n).map(|_| (0..d).map(|_| number()).collect()).collect()
}

/// Multiplies every value by `factor`.
pub fn scaled(rows: &[Vec<f64>], factor: f64) -> Vec<Vec<f64>> {
    rows.iter().map(|row| row.iter().map(|v| v * factor).collect()).collect()
}

/// CSV with these column names; no header if there are no names.
pub fn csv(names: &[&str], rows: &[Vec<f64>]) -> String {
    let header = if names.is_empty() { String::new() } else { names.join(",") + "\n" };
    header + &rows.iter().map(|row| line(row)).collect::<String>()
}

fn line(row: &[f64]) -> String {
    row.iter().map(|v| format!("{v:e}")).collect::<Vec<_>>().join(",") + "\n"
}

/// A .npy file of 64-bit floats.
pub fn npy(rows: &[Vec<f64>]) -> Vec<u8> {
    let shape = format!("({}, {})", rows.len(), rows[0].len());
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}");
    let head = [b"\x93NUMPY\x01\x00", &(118_u16).to_le_bytes()[..], format!("{header:<117}\n").as_bytes()].concat();
    head.into_iter().chain(rows.iter().flatten().flat_map(|v| v.to_le_bytes())).collect()
}

/// The numbers of a printed table, below its header.
pub fn numbers(text: &str) -> Vec<Vec<f64>> {
    text.lines().skip(1).map(|line| line.split(',').map(|field| field.parse().unwrap()).collect()).collect()
}

/// The largest difference between two tables of the same shape.
pub fn distance(left: &[Vec<f64>], right: &[Vec<f64>]) -> f64 {
    let shape = |rows: &[Vec<f64>]| rows.iter().map(Vec::len).collect::<Vec<_>>();
    assert_eq!(shape(left), shape(right));
    let pairs = left.iter().flatten().zip(right.iter().flatten());
    // Not `max`, which would ignore a NaN.
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, |most, v| if v <= most { most } else { v })
}
