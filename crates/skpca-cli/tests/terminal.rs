//! Output on the terminal, and without one.

use crate::support::{Desk, NAMES, csv, normal};

const HOSTILE: &str = "\x1b[31m";

fn desk() -> Desk {
    let desk = Desk::new();
    desk.put("data.csv", csv(&NAMES, &normal(1, 40, 3)));
    desk
}

fn assert_harmless(text: &str) {
    let dangerous = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!text.contains(dangerous), "{text:?}");
}

#[test]
fn closed_output_streams_do_not_panic() {
    let desk = desk();
    for (words, code) in [
        ("fit none.csv -o model.skpca", 1),
        ("fit data.csv -o model.skpca --method magic", 2),
        ("fit --no-such-flag", 2),
        ("", 2),
        ("fit data.csv -o model.skpca --support 4", 0),
        ("fit data.csv -o model.skpca --method l1,penalty=0.5,alternations=1,tolerance=1e-300", 0),
        ("compare data.csv --methods landmarks --support 4 -q 2", 0),
        ("--help", 0),
    ] {
        assert_eq!(desk.shell(":", words, "2> /dev/full").code, code, "{words}");
        assert_eq!(desk.shell(":", words, "2>&-").code, code, "{words}, closed");
    }
    assert_eq!(desk.shell(":", "--help", "> /dev/full").code, 1, "help that cannot be shown");
    assert_eq!(desk.shell(":", "inspect model.skpca", "> /dev/full").code, 1);
}

#[test]
fn column_names_cannot_control_the_terminal() {
    let desk = desk();
    let rows = normal(2, 40, 3);
    let names = [&format!("{HOSTILE}red"), "\u{9b}2J", "\u{202e}c"];
    desk.put("bad.csv", csv(&names, &rows));
    let fitted = desk.ok("fit bad.csv -o bad.skpca --support 4");
    let shown = desk.ok("inspect bad.skpca");
    for text in [&fitted, &shown] {
        assert_harmless(text);
        assert!(text.contains(r"\u{1b}[31mred, \u{9b}2J, \u{202e}c"), "{text}");
    }
    for words in
        ["score bad.skpca data.csv", "fit bad.csv -o b.skpca --label none", "fit bad.csv -o b.skpca --drop none"]
    {
        let run = desk.run(words);
        assert_ne!(run.code, 0, "{words}");
        assert_harmless(&run.stderr);
    }
    desk.put("worse.csv", csv(&names, &rows) + "1,2,\x1b]0;title\x07\n");
    let run = desk.run("fit worse.csv -o b.skpca");
    assert_eq!(run.code, 1);
    assert_harmless(&run.stderr);
    // Data are written unchanged.
    assert!(desk.ok("inspect bad.skpca --json").contains(r"\u001b[31mred"));
}

#[test]
fn file_and_class_names_cannot_control_the_terminal() {
    let desk = desk();
    let labels = |i: usize| ["\x1b[2Ja", "b"][i % 2];
    let body: String =
        normal(3, 40, 2).iter().enumerate().map(|(i, row)| format!("{},{},{}\n", row[0], row[1], labels(i))).collect();
    let file = format!("{HOSTILE}.csv");
    desk.put(&file, format!("a,b,kind\n{body}"));
    let compared = desk.ok(&format!("compare {file} --label kind --methods landmarks --support 4 -q 2"));
    assert_harmless(&compared);
    assert!(compared.contains(r"\u{1b}[31m.csv: 40 rows"), "{compared}");
    let written = desk.ok(&format!("fit {file} --drop kind -o {HOSTILE}.skpca --support 4"));
    assert_harmless(&written);
    desk.put("odd.csv", "a,b,kind\n1,2,\x1b[2Jnew\n");
    for words in [
        format!("fit {HOSTILE}none.csv -o m.skpca"),
        format!("inspect {HOSTILE}none.skpca"),
        format!("compare {file} --label kind --test odd.csv"),
    ] {
        let run = desk.run(&words);
        assert_ne!(run.code, 0, "{words:?}");
        assert_harmless(&run.stderr);
    }
}

#[test]
fn impossible_numbers_of_threads_are_errors() {
    let desk = desk();
    for threads in ["1025", "65535"] {
        let message = format!(
            "invalid value '{threads}' for '--threads <N>': {threads} is not in 1..=1024\n\nFor more information, try '--help'."
        );
        desk.refuses_fit(&format!("data.csv --threads {threads}"), 2, &message);
    }
    for components in ["4611686018427387904", "9223372036854775808", "18446744073709551615"] {
        let found = desk.json(&format!("compare data.csv -q {components} --methods landmarks --json"));
        let asked: Vec<&serde_json::Value> =
            found["models"].as_array().unwrap().iter().map(|model| &model["asked"]).collect();
        assert!(asked.iter().all(|asked| asked["support"].is_null()), "{components}: {asked:?}");
    }
}
