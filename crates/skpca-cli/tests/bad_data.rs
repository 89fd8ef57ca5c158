//! Tables and parameters that must be rejected, with the exact message and without writing anything.

use crate::support::{self, Desk, NAMES, csv, normal, npy};

const EXTENSIONS: &str = ".csv .csv.gz .tsv .tsv.gz .txt .txt.gz .parquet .arrow .feather .ipc .npy";

/// A desk with a sound table of 40 rows, `data.csv`.
fn desk() -> Desk {
    let desk = Desk::new();
    desk.put("data.csv", csv(&NAMES, &normal(1, 40, 3)));
    desk
}

/// A desk with that table and its model, `model.skpca`.
fn desk_with_model() -> Desk {
    let desk = desk();
    desk.ok("fit data.csv -o model.skpca --support 8");
    desk
}

/// The advice about empty cells.
const FILL: &str =
    "fill them with --missing median, leave out their rows with --missing drop, or the columns with --drop";

const RED: &str =
    "column 'b': 'red' is not a number; if the column holds classes use --label b, to leave it out --drop b";

#[test]
fn a_fit_rejects_text_that_is_no_table_of_finite_numbers() {
    let missing = format!("bad.csv: 1 of 4 cells is empty, first line 3, column 'b'; by column: 'b' 1; {FILL} b");
    let cases = [
        ("a,b\n1,2\n3,NaN\n", missing.as_str()),
        ("a,b\n1,2\n3,\n", &missing),
        ("a,b\n1,2\n3,inf\n", "bad.csv line 3, column 'b': 'inf' is not finite"),
        ("a,b\n1,2\n3,-inf\n", "bad.csv line 3, column 'b': '-inf' is not finite"),
        ("a,b\n1,2\n3,1e999\n", "bad.csv line 3, column 'b': '1e999' is not finite"),
        ("a,b\n1,2\n3,red\n", &format!("bad.csv line 3, {RED}")),
        ("a,b\n1,2\n3\n", "bad.csv line 3: 1 field, expected 2"),
        ("a,b\n1,2\n3,4,5\n", "bad.csv line 3: 3 fields, expected 2"),
        ("", "bad.csv is empty"),
        ("a,b\n", "bad.csv: no rows"),
        ("a,b\n1,2\n", "1 row: a fit needs at least 2"),
        ("a,a\n1,2\n3,4\n", "bad.csv: column 'a' appears twice, expected distinct names"),
        ("1,2\n3,4\n", "bad.csv: first line has only numbers; if the file has no header use --no-header"),
    ];
    let desk = Desk::new();
    for (text, message) in cases {
        desk.put("bad.csv", text);
        desk.refuses_fit("bad.csv", 1, message);
    }
}

#[test]
fn a_fit_rejects_arrays_that_are_not_finite() {
    let desk = Desk::new();
    desk.put("nan.npy", npy(&[vec![1.0, 2.0], vec![f64::NAN, 4.0]]));
    desk.put("infinite.npy", npy(&[vec![1.0, 2.0], vec![3.0, f64::INFINITY]]));
    let message = "nan.npy: 1 of 4 cells is empty, first row 1 (from 0), column 0 (from 0); by column: '0' 1;";
    desk.refuses_fit("nan.npy", 1, &format!("{message} {FILL} 0"));
    desk.refuses_fit("infinite.npy", 1, "infinite.npy row 1 (from 0), column 1 (from 0): 'inf' is not finite");
}

#[test]
fn a_fit_rejects_files_and_columns_that_are_not_there() {
    let desk = desk();
    desk.refuses_fit("none.csv", 1, "none.csv: No such file or directory (os error 2)");
    desk.refuses_fit("data.xlsx", 2, &format!("data.xlsx: unknown extension, expected one of {EXTENSIONS}"));
    for flag in ["--label z", "--drop z", "--drop a,z"] {
        desk.refuses_fit(&format!("data.csv {flag}"), 2, "data.csv has no column 'z'; it has a, b, c");
    }
    let message = "data.csv: no feature columns left, expected at least one";
    desk.refuses_fit("data.csv --label a --drop b,c", 1, message);
}

#[test]
fn a_fit_rejects_names_that_are_in_no_registry() {
    let desk = desk();
    let list = |names: Vec<&str>| names.join(", ");
    let methods = list(skpca::method::METHODS.iter().map(|entry| entry.name).collect());
    let kernels = list(skpca::kernel::KERNELS.iter().map(|entry| entry.name).collect());
    let cases = [
        ("--method magic", format!("unknown method 'magic': expected one of {methods}")),
        ("--method landmarks,size=3", "unknown method parameter 'size': expected one of sampling, steps".into()),
        ("--kernel gauss", format!("unknown kernel 'gauss': expected one of {kernels}")),
        ("--kernel rbf,breadth=1", "unknown kernel parameter 'breadth': expected one of gamma, sigma, width".into()),
    ];
    for (flags, message) in cases {
        desk.refuses_fit(&format!("data.csv {flags}"), 2, &message);
    }
}

#[test]
fn a_fit_rejects_parameters_outside_their_domain() {
    let desk = desk();
    let cases = [
        ("--kernel rbf,gamma=-1", "gamma = -1: expected a positive number"),
        ("--kernel rbf,gamma=0", "gamma = 0: expected a positive number"),
        ("--kernel rbf,gamma=wide", "gamma = \"wide\": expected a positive number, median, mean, scale or auto"),
        ("--kernel polynomial,degree=1.5", "degree = 1.5: expected an integer from 1 to 64"),
        ("--support 0", "support = 0: expected an integer ≥ 1"),
        ("--support 41", "support = 41: expected at most the 40 rows there are"),
        ("--method exact --support 8", "support = 8: expected no target, or all rows: exact keeps every point"),
        ("--fidelity 0", "fidelity = 0: expected a number above 0 and up to 1"),
        ("--fidelity -1", "fidelity = -1: expected a number above 0 and up to 1"),
        ("--fidelity 1.5", "fidelity = 1.5: expected a number above 0 and up to 1"),
        ("--fidelity nan", "fidelity = NaN: expected a number above 0 and up to 1"),
        ("-q 0", "components = 0: expected an integer ≥ 1"),
        ("--quantile 0", "quantile = 0: expected a number between 0 and 1"),
        ("--quantile 1", "quantile = 1: expected a number between 0 and 1"),
        ("--quantile -0.5", "quantile = -0.5: expected a number between 0 and 1"),
    ];
    for (flags, message) in cases {
        desk.refuses_fit(&format!("data.csv {flags}"), 2, message);
    }
}

/// These are rejected while the arguments are parsed; a hint at the help follows the message.
#[test]
fn a_fit_rejects_calls_that_cannot_be_read() {
    let desk = desk();
    let size = "expected a size such as 8GB, 512MB or 1000000";
    let cases = [
        (
            "--scale log",
            "invalid value 'log' for '--scale <RULE>': unknown scaling 'log': expected one of standard, minmax, none",
        ),
        (
            "--kernel rbf,gamma",
            "invalid value 'rbf,gamma' for '--kernel <NAME[,k=v…]>': rbf = gamma: expected key=value after the name",
        ),
        ("--support -1", "invalid value '-1' for '--support <M>': invalid digit found in string"),
        ("--threads 0", "invalid value '0' for '--threads <N>': 0 is not in 1..=1024"),
        ("--memory much", &format!("invalid value 'much' for '--memory <SIZE>': {size}")),
        (
            "--support 5 --fidelity 0.9",
            "the argument '--support <M>' cannot be used with '--fidelity <F>'\n\n\
             Usage: skpca fit --output <MODEL> --support <M> <DATA> [DATA]...",
        ),
    ];
    for (flags, message) in cases {
        desk.refuses_fit(&format!("data.csv {flags}"), 2, &format!("{message}\n\nFor more information, try '--help'."));
    }
}

#[test]
fn a_fit_that_needs_too_much_memory_is_rejected_with_advice() {
    let desk = Desk::new();
    desk.put("data.csv", csv(&NAMES, &normal(2, 12_000, 3)));
    for (method, allowed, ways) in [("exact", 80, 3), ("exact", 1, 1), ("l21", 1, 1)] {
        let flags = format!("--method {method} --memory {allowed}MB");
        let message = desk.run(&format!("fit data.csv -o model.skpca {flags}")).stderr;
        let advice = message.split_once(&format!(" MB of memory, {allowed} MB are allowed: use "));
        let (start, advice) = advice.unwrap_or_else(|| panic!("{message}"));
        assert!(start.strip_prefix("error: this fit needs about ").is_some_and(|needed| needed.parse::<f64>().is_ok()));
        desk.refuses_fit(&format!("data.csv {flags}"), 1, message.trim_start_matches("error: ").trim_end());
        // Each suggestion works on its own.
        let advice: Vec<&str> = advice.trim_end().split(", or ").collect();
        assert_eq!(advice.len(), ways, "{message}");
        for way in advice {
            let way = way.split(" (").next().unwrap();
            let kept: Vec<&str> = flags.split(" --").map(|flag| flag.trim_start_matches("--")).collect();
            let kept = kept.iter().filter(|flag| !way.starts_with(&format!("--{} ", flag.split(' ').next().unwrap())));
            let kept: String = kept.map(|flag| format!("--{flag} ")).collect();
            let run = desk.run(&format!("fit data.csv -o model.skpca {kept} {way} --quiet"));
            assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{way}");
        }
    }
}

/// Before the data are opened, since a fit may take hours.
#[test]
fn an_output_that_cannot_be_written_is_rejected_first() {
    let desk = desk();
    std::fs::create_dir(desk.path("folder")).unwrap();
    for data in ["data.csv", "none.csv"] {
        let words = format!("fit {data} -o none/model.skpca");
        desk.refuses(&words, 1, "none/model.skpca: No such file or directory (os error 2)");
        desk.refuses(&format!("fit {data} -o folder"), 1, "folder: is a directory");
    }
    desk.ok("fit data.csv -o folder/model.skpca");
}

#[test]
fn a_model_rejects_tables_of_other_columns() {
    let desk = desk_with_model();
    let cases: [(&[&str], &str); 2] = [
        (&["a", "c"], "columns of the model are missing from the data: 'b'"),
        (&["a", "d", "c"], "columns do not match the model: missing 'b'; not known to it 'd'"),
    ];
    for (names, message) in cases {
        desk.put("new.csv", csv(names, &normal(3, 5, names.len())));
        refuses_to_apply(&desk, "new.csv", 1, message);
    }
    for width in [2, 4] {
        desk.put("new.npy", npy(&normal(3, 5, width)));
        let message = format!("the data have {width} columns, the model expects 3");
        refuses_to_apply(&desk, "new.npy", 1, &message);
    }
}

#[test]
fn a_model_rejects_values_it_cannot_use() {
    let desk = desk_with_model();
    let cases = [
        (
            "a,b,c\n1,2,3\n1,NaN,3\n",
            "new.csv line 3, column 'b': missing value (--skip-bad skips such rows; models fitted with --missing median fill them)",
        ),
        ("a,b,c\n1,2,3\n1,1e999,3\n", "new.csv line 3, column 'b': '1e999' is not finite"),
        ("a,b,c\n1,2,3\n1,red,3\n", &format!("new.csv line 3, {RED}")),
        ("a,b,c\n", "new.csv: no rows"),
        ("", "new.csv is empty"),
    ];
    for (text, message) in cases {
        desk.put("new.csv", text);
        refuses_to_apply(&desk, "new.csv", 1, message);
    }
    refuses_to_apply(&desk, "none.csv", 1, "none.csv: No such file or directory (os error 2)");
    refuses_to_apply(&desk, "data.csv --label z", 2, "data.csv has no column 'z'; it has a, b, c");
}

#[test]
fn a_value_beyond_all_scaling_is_named() {
    let desk = Desk::new();
    desk.put("data.csv", csv(&NAMES, &support::scaled(&normal(1, 40, 3), 1e-150)));
    desk.ok("fit data.csv -o model.skpca --support 8");
    desk.put("new.csv", "a,b,c\n1e-150,1e-150,1e-150\n1e-150,1e300,1e-150\n");
    let message = "row 1, column 1 (from 0): 1e300 is too far outside the training data to be scaled";
    refuses_to_apply(&desk, "new.csv", 1, message);
}

#[test]
fn results_go_only_where_they_can_be_written() {
    let desk = desk_with_model();
    for verb in ["transform", "score"] {
        let words = |output: &str| format!("{verb} model.skpca data.csv -o {output}");
        let message = format!("out.xlsx: unknown extension, expected one of {EXTENSIONS}");
        desk.refuses(&words("out.xlsx"), 2, &message);
        desk.refuses(&words("none/out.csv"), 1, "none/out.csv: No such file or directory (os error 2)");
    }
}

/// Both commands, to standard output and to an existing file.
fn refuses_to_apply(desk: &Desk, data: &str, code: i32, message: &str) {
    desk.put("old.csv", "older results");
    for verb in ["transform", "score"] {
        desk.refuses(&format!("{verb} model.skpca {data}"), code, message);
        desk.refuses(&format!("{verb} model.skpca {data} -o old.csv"), code, message);
    }
}
