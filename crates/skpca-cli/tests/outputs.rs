//! Files that a run must not replace: its inputs, and files that skpca did not create.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::support::{Desk, NAMES, csv, normal};

const COMPARE: &str = "--methods landmarks --support 4 -q 2 --budget 30s";

fn desk() -> Desk {
    let desk = Desk::new();
    desk.put("data.csv", csv(&NAMES, &normal(1, 40, 3)));
    fs::create_dir(desk.path("k")).unwrap();
    desk
}

fn foreign(file: &str) -> String {
    format!("{file} is there already and is not of this program's making; move it, or name another directory")
}

#[test]
fn a_comparison_keeps_its_input() {
    let desk = desk();
    desk.put("k/rows.csv", desk.bytes("data.csv"));
    let before = desk.bytes("k/rows.csv");
    let refused = "k/rows.csv: the output would replace the input";
    desk.refuses(&format!("compare k/rows.csv --keep k {COMPARE}"), 2, refused);
    desk.refuses(&format!("compare data.csv --test k/rows.csv --keep k {COMPARE}"), 2, refused);
    desk.refuses(&format!("compare k/rows.csv -o k/rows.csv {COMPARE}"), 2, refused);
    assert!(desk.bytes("k/rows.csv") == before);
}

#[test]
fn a_link_to_the_input_is_the_input() {
    let desk = desk();
    let before = desk.bytes("data.csv");
    symlink("../data.csv", desk.path("k/landmarks-4.skpca")).unwrap();
    let refused = "k/landmarks-4.skpca: the output would replace the input";
    desk.refuses(&format!("compare data.csv --keep k {COMPARE}"), 2, refused);
    let refused = desk.shell(":", "fit - -o data.csv", "< data.csv");
    assert_eq!((refused.code, refused.stderr.as_str()), (2, "error: data.csv: the output would replace the input\n"));
    assert!(desk.bytes("data.csv") == before);
}

#[test]
fn kept_models_replace_kept_models_and_nothing_else() {
    let desk = desk();
    let call = format!("compare data.csv --keep k {COMPARE} --quiet");
    desk.ok(&call);
    desk.ok(&call);
    let names = ["landmarks-4.skpca", "landmarks-fidelity-0.95.skpca", "recommended.skpca", "rows.csv"];
    for name in names {
        let file = format!("k/{name}");
        let kept = desk.bytes(&file);
        desk.put(&file, "a,b\nmine,mine\n");
        desk.refuses(&call, 2, &foreign(&file));
        assert_eq!(desk.bytes(&file), b"a,b\nmine,mine\n");
        desk.put(&file, kept);
    }
}

#[test]
fn the_demo_replaces_only_its_own_files() {
    let desk = desk();
    fs::create_dir_all(desk.path("k/parabola")).unwrap();
    for file in
        ["k/clusters.csv", "k/parabola.csv", "k/skpca-demo.html", "k/parabola/rows.csv", "k/parabola/greedy-5.skpca"]
    {
        desk.put(file, "x,y\n1,2\n");
        desk.refuses("demo -o k", 2, &foreign(file));
        assert_eq!(desk.bytes(file), b"x,y\n1,2\n");
        fs::remove_file(desk.path(file)).unwrap();
    }
    desk.put("skpca-demo.html", "my page");
    desk.refuses("demo", 2, &foreign("skpca-demo.html"));
    assert!(!desk.path("k/clusters.csv").exists(), "all outputs are checked before any is written");
    desk.ok("demo -o k --quiet");
    desk.ok("demo -o k --quiet");
}

#[test]
fn manual_pages_replace_only_manual_pages() {
    let desk = desk();
    desk.ok("man -o k");
    desk.ok("man -o k");
    assert!(desk.path("k/skpca-fit.1").exists());
    desk.put("k/skpca-fit.1", "mine");
    desk.refuses("man -o k", 2, &foreign("k/skpca-fit.1"));
    assert_eq!(desk.bytes("k/skpca-fit.1"), b"mine");
}

#[test]
fn a_read_only_output_is_rejected_before_the_data_are_read() {
    let desk = desk();
    for file in ["old.skpca", "old.csv", "old.html"] {
        desk.put(file, "old");
        fs::set_permissions(desk.path(file), fs::Permissions::from_mode(0o444)).unwrap();
    }
    desk.refuses("fit none.csv -o old.skpca", 1, "old.skpca: the file is read-only");
    desk.refuses("compare none.csv -o old.html", 1, "old.html: the file is read-only");
    desk.ok("fit data.csv -o model.skpca --support 4");
    desk.refuses("score model.skpca none.csv -o old.csv", 1, "old.csv: the file is read-only");
    desk.refuses("inspect model.skpca --html old.html", 1, "old.html: the file is read-only");
}

#[test]
fn a_model_keeps_the_mode_and_the_link_of_the_one_before() {
    let desk = desk();
    desk.put("k/model.skpca", "old");
    fs::set_permissions(desk.path("k/model.skpca"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink("k/model.skpca", desk.path("link.skpca")).unwrap();
    desk.ok("fit data.csv -o link.skpca --support 4");
    assert!(fs::symlink_metadata(desk.path("link.skpca")).unwrap().is_symlink());
    assert_eq!(fs::metadata(desk.path("k/model.skpca")).unwrap().permissions().mode() & 0o777, 0o640);
    desk.ok("inspect k/model.skpca");
    assert_eq!(fs::read_dir(desk.path("k")).unwrap().count(), 1, "a temporary file is left");
}
