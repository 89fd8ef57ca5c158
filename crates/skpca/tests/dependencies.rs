//! Restrictions on dependencies.

use std::collections::BTreeSet;
use std::process::Command;

/// `paste` is unmaintained (RUSTSEC-2024-0436). faer's matrix products use its macros at compile time; nothing else may
/// depend on it, and once faer no longer does it must be gone (docs/decisions/0002).
#[test]
fn paste_comes_with_faer_alone() {
    let lock = include_str!("../../../Cargo.lock");
    let name = |package: &str| package.lines().find_map(|line| line.strip_prefix("name = ")).unwrap_or("").to_string();
    let packages = lock.split("[[package]]").filter(|package| package.contains("\n \"paste\",\n"));
    let users: Vec<String> = packages.map(name).collect();
    assert!(!users.is_empty(), "paste is gone: so may this test be");
    assert!(users.iter().all(|user| user.starts_with("\"gemm") || user == "\"pulp\""), "{users:?}");
}

/// Maximum number of crates in a build without model files (docs/decisions/0059).
const WITHOUT_FILES: usize = 55;

#[test]
fn builds_without_model_files_do_not_need_their_dependencies() {
    let tree = |features: &[&str]| {
        let words = ["tree", "--offline", "-p", "skpca", "-e", "normal", "--prefix", "none"];
        let output = Command::new(env!("CARGO")).args(words).args(features).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let crates = String::from_utf8(output.stdout).unwrap();
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
