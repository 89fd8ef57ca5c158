//! Command lines of the program, run in a folder with a table and a model.
//!
//! The program is expected next to the driver, or at the path in SKPCA.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use skpca::{Random, format};

use crate::choices::{self, one_in};
use crate::models;

const CALLS: [&str; 16] = [
    "fit t.csv -o m2.skpca --support 3",
    "fit t.csv -o m2.skpca --fidelity 0.8 --method l21,fraction=0.3 --kernel rbf,gamma=0.5 -q 2",
    "fit t.csv -o m2.skpca --label y --novelty --false-alarms 5%",
    "fit t.csv -o m2.skpca --scaling minmax --no-center --seed 3 --threads 1 --memory 100MB",
    "fit - -o m2.skpca --no-header",
    "score m.skpca t.csv",
    "transform m.skpca t.csv -o f.csv --precision single",
    "inspect m.skpca --json",
    "inspect m.skpca --html page.html",
    "export m.skpca -o m.onnx",
    "export m.skpca -o m.sql --table t",
    "methods l21",
    "kernels",
    "completions bash",
    "path t.csv --support 4",
    "monitor m.skpca t.csv -o page.html",
];

static PLACE: OnceLock<Option<(PathBuf, PathBuf)>> = OnceLock::new();

/// A folder with the files that the calls use, and the path of the program.
fn place() -> Option<&'static (PathBuf, PathBuf)> {
    let made = PLACE.get_or_init(|| {
        let beside = std::env::current_exe().ok()?.with_file_name("skpca");
        let program = std::env::var_os("SKPCA").map_or(beside, PathBuf::from);
        if !program.is_file() {
            return None;
        }
        let folder = std::env::temp_dir().join(format!("skpca-flags-{}", std::process::id()));
        fs::create_dir_all(&folder).ok()?;
        let rows: String = (0..12).map(|i| format!("{},{},{}\n", i, (i * i) % 7, ["a", "b"][i % 2])).collect();
        fs::write(folder.join("t.csv"), format!("x0,x1,y\n{rows}")).ok()?;
        let mut bytes = Vec::new();
        format::write(models::small(), &mut bytes).ok()?;
        fs::write(folder.join("m.skpca"), bytes).ok()?;
        Some((folder, program))
    });
    made.as_ref()
}

/// Removes the folder.
pub fn clean() {
    if let Some(Some((folder, _))) = PLACE.get() {
        let _ = fs::remove_dir_all(folder);
    }
}

pub fn seeds() -> Vec<Vec<u8>> {
    CALLS.iter().map(|call| call.as_bytes().to_vec()).collect()
}

pub fn make(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    const WORDS: [&str; 48] = [
        "--support",
        "--fidelity",
        "--method",
        "--kernel",
        "-q",
        "--components",
        "--label",
        "--drop",
        "--seed",
        "--threads",
        "--memory",
        "--false-alarms",
        "--novelty",
        "--robust",
        "--quantile",
        "--scaling",
        "--precision",
        "--missing",
        "--category",
        "--time",
        "--weights",
        "--updatable",
        "--landmarks",
        "--json",
        "--quiet",
        "--help",
        "--",
        "-",
        "0",
        "-1",
        "1e400",
        "nan",
        "1e-9",
        "0.5",
        "18446744073709551616",
        "100%",
        "x0",
        "t.csv",
        "m.skpca",
        "none.csv",
        "l1,fraction=2",
        "rbf,gamma=-1",
        "polynomial,degree=64",
        "expansion,steps=0",
        "",
        "\u{1b}[2J",
        "y",
        "--no-header",
    ];
    let text = String::from_utf8_lossy(&seeds[random.below(seeds.len())]).into_owned();
    let mut words: Vec<String> = text.split(' ').map(String::from).collect();
    for _ in 0..1 + random.below(3) {
        let at = random.below(words.len() + 1);
        let word = WORDS[random.below(WORDS.len())].to_string();
        match random.below(4) {
            0 if !words.is_empty() => drop(words.remove(at.min(words.len() - 1))),
            1 if !words.is_empty() => *words.last_mut().expect("there is one") = word,
            _ => words.insert(at, word),
        }
    }
    let mut bytes = words.join(" ").into_bytes();
    if one_in(random, 10) {
        choices::mutate(random, &mut bytes);
    }
    bytes
}

pub fn run(bytes: &[u8]) {
    let Some((folder, program)) = place() else { return };
    let text = String::from_utf8_lossy(bytes).replace('\0', "");
    // Skip paths outside the folder, which could be overwritten, and comparisons, which take minutes by design.
    if text.contains('/') || text.contains("..") || text.contains("compare") || text.contains("demo") {
        return;
    }
    let input = File::open(folder.join("t.csv")).expect("it was written");
    let out = Command::new(program)
        .args(text.split(' '))
        .current_dir(folder)
        .stdin(Stdio::from(input))
        .env("RAYON_NUM_THREADS", "1")
        .output()
        .expect("the program runs");
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(matches!(out.status.code(), Some(0..=2)), "{text:?}: {}: {said}", out.status);
    assert!(!said.contains("panicked") && !said.contains('\u{1b}'), "{text:?}: {said}");
    assert!(out.status.success() || out.stdout.is_empty(), "{text:?}: it failed, and wrote a result");
    let left: Vec<_> = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    for path in left.iter().filter(|path| !path.ends_with("t.csv") && !path.ends_with("m.skpca")) {
        let _ = fs::remove_file(path);
    }
}
