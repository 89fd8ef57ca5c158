//! Degenerate but valid tables: fits must succeed and give sensible results. If nothing can be fitted, the message says
//! why.

use crate::support::{Desk, NAMES, csv, distance, normal, scaled};
use serde_json::Value;
use skpca::Spec;
use skpca::kernel::{Entry, KERNELS};
use skpca::method::{self, METHODS};

/// Puts `rows` on a new desk, as `data.csv`.
fn desk(rows: &[Vec<f64>]) -> Desk {
    let desk = Desk::new();
    desk.put("data.csv", csv(&NAMES[..rows[0].len()], rows));
    desk
}

/// Fits `data.csv`, checks that features and scores of its rows are sensible, and returns the description of the model.
fn sound(desk: &Desk, flags: &str) -> Value {
    let fit = desk.json(&format!("fit data.csv -o model.skpca --json {flags}"));
    let (n, q) = (fit["n"].as_u64().unwrap() as usize, fit["q"].as_u64().unwrap() as usize);
    let features = desk.rows("transform model.skpca data.csv");
    assert_eq!(features.len(), n, "{flags}");
    assert!(features.iter().all(|row| row.len() == q && row.iter().all(|v| v.is_finite())), "{flags}");
    let scores = desk.rows("score model.skpca data.csv");
    assert_eq!(scores.len(), n, "{flags}");
    for row in scores {
        // Models with a density add the log-likelihood.
        let [score, threshold, p, novel, ref more @ ..] = row[..] else { panic!("{row:?}") };
        assert!(more.len() == usize::from(fit["method"]["name"] == "likelihood"), "{flags}: {row:?}");
        assert!(more.iter().all(|v| v.is_finite()), "{flags}: {row:?}");
        assert!(score >= 0.0 && score.is_finite() && p > 0.0 && p <= 1.0, "{flags}: {row:?}");
        assert_eq!(threshold, fit["threshold"].as_f64().unwrap(), "{flags}");
        assert_eq!(novel, f64::from(u8::from(score > threshold)), "{flags}: {row:?}");
    }
    fit
}

#[test]
fn narrow_and_constant_columns_fit() {
    let rows = normal(1, 40, 3);
    let with = |f: fn(&[f64]) -> Vec<f64>| rows.iter().map(|row| f(row)).collect::<Vec<_>>();
    let one = with(|row| vec![row[0]]);
    let one_constant = with(|row| vec![row[0], 7.0, row[2]]);
    let all_but_one_constant = with(|row| vec![0.1, row[1], 1e6]);
    for rows in [one, one_constant, all_but_one_constant] {
        for flags in ["", "--scale none", "--scale minmax", "--support 8", "--method exact", "--no-center"] {
            sound(&desk(&rows), flags);
        }
    }
}

#[test]
fn a_constant_column_changes_nothing() {
    let rows = normal(1, 40, 2);
    let plain = desk(&rows);
    let padded = desk(&rows.iter().map(|row| vec![row[0], row[1], 0.1]).collect::<Vec<_>>());
    for desk in [&plain, &padded] {
        sound(desk, "--support 8");
    }
    let scores = |desk: &Desk| desk.rows("score model.skpca data.csv");
    assert!(distance(&scores(&plain), &scores(&padded)) < 1e-12);
}

/// Kernels that need no labels.
fn plain_kernels() -> impl Iterator<Item = &'static Entry> {
    KERNELS.iter().filter(|entry| !entry.capabilities.labelled)
}

/// Methods that need no labels and work with this kernel.
fn unlabelled(kernel: &Spec) -> impl Iterator<Item = &'static method::Entry> + use<'_> {
    METHODS.iter().filter(move |entry| entry.takes(kernel) && !entry.capabilities.labelled)
}

#[test]
fn every_kernel_and_method_fits_two_rows() {
    let desk = desk(&normal(4, 2, 3));
    for kernel in plain_kernels() {
        for method in unlabelled(&Spec::new(kernel.name)) {
            let fit = sound(&desk, &format!("--center --kernel {} --method {}", kernel.name, method.name));
            assert_eq!(fit["q"], 1, "{} {}: two rows lie on a line", kernel.name, method.name);
        }
    }
}

#[test]
fn every_kernel_fits_plain_rows() {
    let desk = desk(&normal(1, 40, 3));
    for kernel in plain_kernels().filter(|entry| entry.name != "sigmoid") {
        for flags in ["", "--support 8", "--method exact", "--no-center", "--scale minmax"] {
            sound(&desk, &format!("--kernel {} {flags}", kernel.name));
        }
    }
}

#[test]
fn an_indefinite_sigmoid_says_so() {
    let desk = desk(&normal(1, 40, 3));
    for method in unlabelled(&Spec::new("sigmoid")) {
        let run = desk.run(&format!("fit data.csv -o model.skpca --kernel sigmoid --method {}", method.name));
        let start = "error: the sigmoid kernel is not positive semi-definite on these data (a pivot or eigenvalue is -";
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{}", method.name);
        assert!(run.stderr.starts_with(start), "{}", run.stderr);
        assert!(run.stderr.ends_with("); use other parameters or another kernel\n"), "{}", run.stderr);
        assert!(!desk.path("model.skpca").exists());
    }
}

#[test]
fn duplicated_rows_fit_and_support_counts_distinct_ones() {
    let rows = normal(1, 20, 3);
    let desk = desk(&(0..40).map(|i| rows[i % 20].clone()).collect::<Vec<_>>());
    for flags in ["", "--support 8", "--method exact"] {
        sound(&desk, flags);
    }
    let note = "30 support points requested, 20 kept: the others are linearly dependent";
    let fit = sound(&desk, "--support 30");
    assert_eq!((&fit["m"], &fit["report"]["notes"]), (&Value::from(20), &Value::from(vec![note])));
    let run = desk.run("fit data.csv -o model.skpca --support 30");
    assert_eq!((run.code, run.stderr), (0, format!("note: {note}\n")));
}

#[test]
fn half_the_rows_may_be_one_row() {
    let rows = normal(1, 40, 3);
    let desk = desk(&(0..40).map(|i| rows[if i < 20 { i } else { 0 }].clone()).collect::<Vec<_>>());
    for flags in ["", "--support 8", "--method exact", "--scale none"] {
        sound(&desk, flags);
    }
    assert_eq!(sound(&desk, "--support 40")["m"], 20);
}

#[test]
fn fewer_components_than_requested_are_noted() {
    let desk = desk(&normal(1, 40, 3));
    let run = desk.run("fit data.csv -o model.skpca --kernel linear -q 6");
    let note = "note: 6 components requested, 3 found: to working precision, the data have no higher rank\n";
    assert_eq!((run.code, run.stderr.as_str()), (0, note));
}

#[test]
fn equal_rows_leave_nothing_to_fit() {
    let desk = desk(&vec![normal(1, 1, 3)[0].clone(); 40]);
    for kernel in plain_kernels() {
        for flags in ["", "--support 3", "--method exact", "--scale none", "--scale none --method exact"] {
            let words = format!("fit data.csv -o model.skpca --kernel {} {flags}", kernel.name);
            let run = desk.run(&words);
            assert!(run.stderr.starts_with("error: there is nothing to fit: "), "{words}: {run:?}");
            assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{words}");
            assert!(!desk.path("model.skpca").exists());
        }
    }
    desk.refuses_fit("data.csv", 1, "there is nothing to fit: all rows are the same");
}

#[test]
fn standardised_tables_do_not_depend_on_their_unit() {
    let rows = normal(1, 40, 3);
    // Only methods that choose rows: where synthetic points stop moving depends on rounding.
    for flags in ["--support 8", "--fidelity 0.9", "-q 4", "--kernel linear"].into_iter().zip([
        "landmarks",
        "greedy",
        "exact",
        "landmarks",
    ]) {
        let flags = &format!("{} --method {}", flags.0, flags.1);
        let results = |factor: f64| {
            let desk = desk(&scaled(&rows, factor));
            let fit = sound(&desk, flags);
            let tables = ["transform", "score"].map(|verb| desk.rows(&format!("{verb} model.skpca data.csv")));
            (fit["support"].clone(), tables)
        };
        let (support, [features, scores]) = results(1.0);
        for factor in [1e150, 1e-150] {
            let (other, tables) = results(factor);
            assert_eq!(other, support, "{flags} × {factor:e}");
            assert!(distance(&tables[0], &features) < 1e-9, "{flags} × {factor:e}");
            assert!(distance(&leading(&tables[1]), &leading(&scores)) < 1e-9, "{flags} × {factor:e}");
        }
    }
}

/// Score and threshold. p-values may differ, since the scores of support rows are zero up to rounding.
fn leading(scores: &[Vec<f64>]) -> Vec<Vec<f64>> {
    scores.iter().map(|row| row[..2].to_vec()).collect()
}

/// Without scaling, squares overflow or vanish. The fit must succeed or advise to scale.
#[test]
fn huge_and_tiny_tables_unscaled_fit_or_are_told_to_scale() {
    let mut wrong = Vec::new();
    for factor in [1e-300, 1e-200, 1e-150, 1e150, 1e200, 1e300] {
        let desk = desk(&scaled(&normal(1, 40, 3), factor));
        for kernel in plain_kernels().filter(|entry| entry.name != "sigmoid") {
            for method in ["landmarks --support 5", "exact"] {
                let flags = format!("--scale none --kernel {} --method {method}", kernel.name);
                let run = desk.run(&format!("fit data.csv -o model.skpca {flags}"));
                let advised = run.stderr.starts_with("error: ") && run.stderr.contains("scal");
                if run.code == 0 {
                    // With numbers of ordinary size, five points reach a fidelity of 0.39 and more.
                    let fidelity = sound(&desk, &flags)["fidelity"].as_f64().unwrap();
                    wrong.extend((fidelity < 0.3).then(|| format!("× {factor:e} {flags}: fidelity {fidelity:e}\n")));
                } else if !advised {
                    wrong.push(format!("× {factor:e} {flags}: {}", run.stderr));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "neither a model nor advice to scale:\n{}", wrong.concat());
}
