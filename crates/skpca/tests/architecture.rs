//! Enforces ARCHITECTURE.md: every room uses only what its line in the table allows.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // reads the source tree

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Rooms that may be used by all rooms below them.
const OPEN: [&str; 4] = ["error", "watch", "points", "dense"];

/// A line of the table: the room, its files and the rooms it may use.
struct Room {
    name: String,
    files: Vec<String>,
    may_use: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn rooms() -> Vec<Room> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let section = text.split("## The library, from the bottom up").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let lines = section.lines().filter(|line| line.starts_with("| `"));
    lines
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let files: Vec<String> =
                cells[0].split(',').map(|file| file.trim().trim_matches('`').to_string()).collect();
            let name = files[0].trim_end_matches('/').trim_end_matches(".rs").to_string();
            let may_use = cells[2].split(',').map(|room| room.trim().to_string()).filter(|room| room != "–").collect();
            Room { name, files, may_use }
        })
        .collect()
}

/// Collects the source files of the library.
fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else {
            into.push(path);
        }
    }
}

/// Returns the rooms that a source names as `crate::room` outside of tests and comments.
fn used(source: &str) -> BTreeSet<String> {
    let code = source.split("#[cfg(test)]\nmod tests").next().unwrap();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let mut found = BTreeSet::new();
    for line in lines {
        for rest in line.split("crate::").skip(1) {
            let names: Vec<&str> = match rest.strip_prefix('{') {
                Some(list) => list.split('}').next().unwrap().split(',').map(str::trim).collect(),
                None => vec![rest],
            };
            for name in names {
                let end = name.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(name.len());
                found.insert(name[..end].to_string());
            }
        }
    }
    // The counters of tests are not a room.
    found.remove("counters");
    found
}

/// Returns the rooms that a source uses although its line in the table does not allow them.
fn forbidden(room: &Room, above: &BTreeSet<String>, source: &str) -> Vec<String> {
    let open = |name: &String| OPEN.contains(&name.as_str()) && above.contains(name);
    let allowed = |name: &String| *name == room.name || room.may_use.contains(name) || open(name);
    used(source).into_iter().filter(|name| !allowed(name)).collect()
}

/// Returns the rooms above each room.
fn above(rooms: &[Room]) -> BTreeMap<&str, BTreeSet<String>> {
    let names = |rooms: &[Room]| rooms.iter().map(|room| room.name.clone()).collect();
    rooms.iter().enumerate().map(|(at, room)| (room.name.as_str(), names(&rooms[..at]))).collect()
}

#[test]
fn rooms_use_only_what_the_table_allows() {
    let rooms = rooms();
    let above = above(&rooms);
    let mut files = Vec::new();
    let folder = root().join("crates/skpca/src");
    sources(&folder, &mut files);
    let mut seen: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for path in files {
        let name = path.strip_prefix(&folder).unwrap().to_str().unwrap().replace('\\', "/");
        if ["lib.rs", "counters.rs"].contains(&name.as_str()) || name.ends_with("tests.rs") {
            continue;
        }
        let holds = |file: &String| *file == name || file.ends_with('/') && name.starts_with(file.as_str());
        let room = rooms.iter().find(|room| room.files.iter().any(holds));
        let room = room.unwrap_or_else(|| panic!("{name} is in no room of ARCHITECTURE.md"));
        let source = fs::read_to_string(&path).unwrap();
        let found = forbidden(room, &above[room.name.as_str()], &source);
        assert!(found.is_empty(), "{name} uses {found:?}, which ARCHITECTURE.md does not allow");
        seen.entry(&room.name).or_default().extend(used(&source));
    }
    for room in &rooms {
        let used = seen.get(room.name.as_str()).unwrap_or_else(|| panic!("there is no room {}", room.name));
        for name in &room.may_use {
            assert!(above[room.name.as_str()].contains(name), "{} may use {name}, which is not above it", room.name);
            assert!(used.contains(name), "{} may use {name}, but does not", room.name);
        }
    }
}

#[test]
fn forbidden_uses_are_detected() {
    let rooms = rooms();
    let above = above(&rooms);
    let points = rooms.iter().find(|room| room.name == "points").unwrap();
    let found = |source: &str| forbidden(points, &above["points"], source);
    assert_eq!(found("use crate::model::Model;"), ["model"]);
    assert_eq!(found("use crate::{error::Error, model, watch};"), ["model"]);
    assert_eq!(found("let x = crate::run::sample();"), ["run"]);
    assert_eq!(found("use crate::dense;"), ["dense"], "it stands below");
    assert!(
        found("use crate::error::Error;\n// crate::model\n#[cfg(test)]\nmod tests { use crate::toys; }").is_empty()
    );
}
