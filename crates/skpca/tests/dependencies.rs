//! What the lock file may hold.

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
