//! One table in many formats gives the same models and the same results, bit for bit.

use crate::support::{Desk, NAMES, csv, normal};

const NAMED: [&str; 7] = ["csv", "csv.gz", "tsv", "tsv.gz", "parquet", "arrow", "feather"];

/// A desk with one table of features, `x`, in every format, as `transform` writes them.
fn desk() -> Desk {
    let desk = Desk::new();
    desk.put("data.csv", csv(&NAMES, &normal(1, 600, 3)));
    desk.ok("fit data.csv -o maker.skpca --support 12 -q 4");
    for extension in NAMED.iter().chain(&["npy"]) {
        let printed = desk.ok(&format!("transform maker.skpca data.csv -o x.{extension}"));
        assert_eq!(printed, "", "{extension}");
    }
    desk
}

#[test]
fn formats_with_names_give_the_same_model_file() {
    let desk = desk();
    desk.ok("fit x.csv -o model.skpca --support 10");
    let expected = desk.bytes("model.skpca");
    for extension in NAMED {
        desk.ok(&format!("fit x.{extension} -o again.skpca --support 10"));
        assert!(desk.bytes("again.skpca") == expected, "{extension}");
    }
    let run = desk.feed("fit - -o again.skpca --support 10", &desk.bytes("x.csv"));
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert!(desk.bytes("again.skpca") == expected, "standard input");
}

#[test]
fn an_array_gives_the_same_support_and_scores() {
    let desk = desk();
    let named = desk.json("fit x.csv -o model.skpca --support 10 --json");
    let array = desk.json("fit x.npy -o array.skpca --support 10 --json");
    for entry in ["support", "explained_variance", "threshold", "fidelity", "kernel"] {
        assert_eq!(array[entry], named[entry], "{entry}");
    }
    assert_eq!((&named["columns"][3], &array["columns"]), (&"pc4".into(), &serde_json::Value::Null));
    assert_eq!(desk.ok("score array.skpca x.npy"), desk.ok("score model.skpca x.csv"));
    assert_eq!(desk.ok("score array.skpca x.csv"), desk.ok("score model.skpca x.npy"));
}

#[test]
fn every_format_reads_back_what_was_written() {
    let desk = desk();
    let printed = desk.ok("transform maker.skpca data.csv");
    assert_eq!(String::from_utf8(desk.bytes("x.csv")).unwrap(), printed);
    desk.ok("fit x.csv -o model.skpca --support 10");
    for verb in ["score", "transform"] {
        let expected = desk.ok(&format!("{verb} model.skpca x.csv"));
        for extension in NAMED.iter().chain(&["npy"]) {
            assert_eq!(desk.ok(&format!("{verb} model.skpca x.{extension}")), expected, "{verb} {extension}");
        }
        let run = desk.feed(&format!("{verb} model.skpca -"), &desk.bytes("x.csv"));
        assert_eq!((run.code, run.stderr.as_str(), run.stdout), (0, "", expected), "{verb} -");
    }
}

#[test]
fn scores_are_tables_too() {
    let desk = desk();
    desk.ok("fit x.csv -o model.skpca --support 10");
    let model_of_scores = |extension: &str| {
        desk.ok(&format!("score model.skpca x.csv -o scores.{extension}"));
        desk.ok(&format!("fit scores.{extension} -o second.skpca --support 5 --quiet"));
        desk.bytes("second.skpca")
    };
    let expected = model_of_scores("csv");
    for extension in NAMED {
        assert!(model_of_scores(extension) == expected, "{extension}");
    }
    assert_eq!(String::from_utf8(desk.bytes("scores.csv")).unwrap(), desk.ok("score model.skpca x.csv -o -"));
}

#[test]
fn a_wrong_extension_is_an_error() {
    let desk = desk();
    for (target, source) in [("parquet", "csv"), ("arrow", "csv"), ("npy", "parquet"), ("parquet", "npy")] {
        desk.put(&format!("lie.{target}"), desk.bytes(&format!("x.{source}")));
        let run = desk.run(&format!("fit lie.{target} -o model.skpca"));
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{source} as {target}");
        assert!(run.stderr.starts_with(&format!("error: lie.{target}: ")), "{}", run.stderr);
        assert!(!desk.path("model.skpca").exists());
    }
}
