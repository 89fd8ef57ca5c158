//! What the lock file may hold.

use std::collections::BTreeSet;
use std::process::Command;

/// `paste` is unmaintained (RUSTSEC-2024-0436). faer's matrix products expand macros with it while they are compiled;
/// nothing else may bring it in, and when faer has moved on it must be gone (docs/decisions/0002).
#[test]
fn paste_comes_with_faer_alone() {
    let lock = include_str!("../../../Cargo.lock");
    let name = |package: &str| package.lines().find_map(|line| line.strip_prefix("name = ")).unwrap_or("").to_string();
    let packages = lock.split("[[package]]").filter(|package| package.contains("\n \"paste\",\n"));
    let users: Vec<String> = packages.map(name).collect();
    assert!(!users.is_empty(), "paste is gone: so may this test be");
    assert!(users.iter().all(|user| user.starts_with("\"gemm") || user == "\"pulp\""), "{users:?}");
}

/// Crates that a build without model files is made of. There may be fewer (docs/decisions/0059).
const WITHOUT_FILES: usize = 55;

#[test]
fn without_files_nothing_is_built_for_them() {
    let tree = |features: &[&str]| {
        let words = ["tree", "--offline", "-p", "skpca", "-e", "normal", "--prefix", "none"];
        let told = Command::new(env!("CARGO")).args(words).args(features).output().unwrap();
        assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
        let crates = String::from_utf8(told.stdout).unwrap();
        let crates = crates.lines().filter_map(|line| line.split(" (").next()).map(String::from);
        crates.collect::<BTreeSet<String>>()
    };
    let (all, few) = (tree(&[]), tree(&["--no-default-features"]));
    let has = |crates: &BTreeSet<String>, name: &str| crates.iter().any(|one| one.starts_with(name));
    for name in ["safetensors ", "crc32fast ", "serde_derive ", "tempfile "] {
        assert!(has(&all, name) && !has(&few, name), "{name}");
    }
    assert!(few.len() <= WITHOUT_FILES, "{} crates: {few:?}", few.len());
}
