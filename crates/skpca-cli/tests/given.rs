//! `fit --landmarks FILE`, and `skpca loadings`.

use serde_json::Value;

use crate::support::{Desk, NAMES, csv, normal, npy, numbers};

fn desk() -> Desk {
    let desk = Desk::new();
    desk.put("data.csv", csv(&NAMES, &normal(1, 120, 3)));
    desk.put("points.csv", csv(&NAMES, &normal(2, 6, 3)));
    desk
}

#[test]
fn exactly_the_points_of_the_file_are_kept() {
    let desk = desk();
    let about = desk.json("fit data.csv -o model.skpca --landmarks points.csv -q 6 --no-center --json --quiet");
    assert_eq!((about["m"].as_u64(), about["n"].as_u64()), (Some(6), Some(120)));
    // With as many components as points, the kept points are in their span, and no other row is.
    let scores =
        |file: &str| -> Vec<f64> { desk.rows(&format!("score model.skpca {file}")).iter().map(|row| row[0]).collect() };
    assert!(scores("points.csv").iter().all(|score| *score < 1e-9), "{:?}", scores("points.csv"));
    assert!(scores("data.csv").iter().all(|score| *score > 1e-6));
}

#[test]
fn landmarks_that_depend_on_others_are_named() {
    let desk = desk();
    let rows = normal(2, 6, 3);
    desk.put("twice.csv", csv(&NAMES, &[rows.clone(), vec![rows[2].clone()]].concat()));
    let about = desk.json("fit data.csv -o model.skpca --landmarks twice.csv -q 2 --json --quiet");
    assert_eq!(about["m"], 6);
    let notes = about["report"]["notes"].to_string();
    let named = ["landmarks 2 (from 0)", "landmarks 6 (from 0)"].iter().any(|which| notes.contains(which));
    assert!(named && notes.contains("depend on the others and are left out"), "{notes}");
}

#[test]
fn landmarks_of_another_table_are_rejected() {
    let desk = desk();
    desk.put("other.csv", csv(&["a", "b", "z"], &normal(2, 6, 3)));
    let words = "data.csv --landmarks other.csv";
    desk.refuses_fit(words, 2, "--landmarks other.csv: expected the columns a, b, c, found a, b, z");
    let run = desk.run("fit data.csv -o model.skpca --landmarks points.csv --support 5");
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("cannot be used with"), "{}", run.stderr);
    assert!(!desk.names().contains(&"model.skpca".into()));
}

/// The output of `loadings`; its notes are on standard error.
fn loadings(desk: &Desk, words: &str) -> Value {
    let run = desk.run(&format!("loadings {words} --json --quiet"));
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("note: non-zero loadings 2, "), "{}", run.stderr);
    serde_json::from_str(&run.stdout).unwrap()
}

/// Two groups of columns, the first with more variance.
fn grouped() -> Vec<Vec<f64>> {
    let share =
        |row: Vec<f64>| vec![3.0 * row[0] + 0.1 * row[1], 3.0 * row[0] + 0.1 * row[2], row[3], row[3] + 0.1 * row[4]];
    normal(3, 200, 5).into_iter().map(share).collect()
}

#[test]
fn each_component_loads_on_the_columns_of_one_group() {
    let desk = Desk::new();
    let names = ["a", "b", "c", "d"];
    desk.put("data.csv", csv(&names, &grouped()));
    let found = loadings(&desk, "data.csv -q 2 --scale none --method spca,nonzero=2 -o loadings.csv");
    let columns =
        |k: usize| -> Vec<String> { found["components"][k]["loadings"].as_object().unwrap().keys().cloned().collect() };
    assert_eq!((columns(0), columns(1)), (vec!["a".into(), "b".into()], vec!["c".into(), "d".into()]));
    let text = String::from_utf8(desk.bytes("loadings.csv")).unwrap();
    assert!(text.starts_with("a,b,c,d\n"), "{text}");
    let rows = numbers(&text);
    assert_eq!(rows.len(), 2);
    for (k, row) in rows.iter().enumerate() {
        assert!((row.iter().map(|v| v * v).sum::<f64>() - 1.0).abs() < 1e-12);
        let own = &found["components"][k]["loadings"];
        assert!(row.iter().zip(names).all(|(v, name)| own[name].as_f64().unwrap_or(0.0) == *v));
    }
    assert!(found["fidelity"].as_f64().unwrap() > 0.99);
    let shown = desk.run("loadings data.csv -q 2 --scale none --method spca,nonzero=2");
    assert_eq!(shown.code, 0);
    for line in ["non-zero", "adjusted", "of what PCA captures"] {
        assert!(shown.stdout.contains(line), "{line}: {}", shown.stdout);
    }
}

#[test]
fn a_covariance_has_the_loadings_of_its_table() {
    let desk = Desk::new();
    let rows = grouped();
    let mean: Vec<f64> = (0..4).map(|j| rows.iter().map(|row| row[j]).sum::<f64>() / 200.0).collect();
    let entry =
        |i: usize, j: usize| rows.iter().map(|row| (row[i] - mean[i]) * (row[j] - mean[j])).sum::<f64>() / 200.0;
    let covariance: Vec<Vec<f64>> = (0..4).map(|i| (0..4).map(|j| entry(i.min(j), i.max(j))).collect()).collect();
    desk.put("data.npy", npy(&rows));
    desk.put("covariance.npy", npy(&covariance));
    for method in ["spca,nonzero=2:1", "spca,nonzero=2:1,polish=true"] {
        let of = |words: &str| loadings(&desk, &format!("{words} -q 2 --method {method}"));
        let (table, matrix) = (of("data.npy --scale none"), of("covariance.npy --covariance"));
        for k in 0..2 {
            let (one, other) = (&table["components"][k]["loadings"], &matrix["components"][k]["loadings"]);
            let (one, other) = (one.as_object().unwrap(), other.as_object().unwrap());
            assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>(), "{method}");
            assert!(one.iter().all(|(name, v)| (v.as_f64().unwrap() - other[name].as_f64().unwrap()).abs() < 1e-9));
        }
    }
}

#[test]
fn loadings_reject_methods_and_kernels_without_them() {
    let desk = desk();
    desk.refuses("loadings data.csv --method greedy", 2, "method = greedy: expected spca: others have no loadings");
    desk.refuses("loadings data.csv -o data.csv", 2, "data.csv: the output would replace the input");
    let square = "covariance = 120 × 3: expected a square matrix, one row for each column";
    desk.refuses("loadings data.csv --covariance", 2, square);
}
