//! Weighted rows, excluded outliers, and both statistics.

use crate::support::{Desk, NAMES, csv, normal};

#[test]
fn weights_agree_with_repeated_rows() {
    let desk = Desk::new();
    let rows = normal(1, 60, 3);
    let weighted: Vec<Vec<f64>> =
        rows.iter().enumerate().map(|(i, row)| [&row[..], &[(i % 3) as f64]].concat()).collect();
    let repeated: Vec<Vec<f64>> = rows.iter().enumerate().flat_map(|(i, row)| vec![row.clone(); i % 3]).collect();
    desk.put("weighted.csv", csv(&["a", "b", "c", "w"], &weighted));
    desk.put("repeated.csv", csv(&NAMES, &repeated));
    let options = "--method greedy --support 8 -q 3";
    desk.ok(&format!("--quiet fit weighted.csv -o weighted.skpca --weight w {options}"));
    desk.ok(&format!("--quiet fit repeated.csv -o repeated.skpca {options}"));
    // The weight column is ignored later, too.
    let scores = |model: &str, table: &str| -> Vec<f64> {
        desk.rows(&format!("score {model} {table}")).into_iter().map(|row| row[0]).collect()
    };
    desk.put("fresh.csv", csv(&NAMES, &rows));
    let (found, expected) = (scores("weighted.skpca", "weighted.csv"), scores("repeated.skpca", "fresh.csv"));
    assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-9), "{found:?} {expected:?}");
    let names = "--weight v: expected one of several columns of numbers: a, b, c, w";
    desk.refuses_fit("weighted.csv --weight v", 2, names);
}

#[test]
fn robust_fits_list_excluded_rows_and_both_statistics_have_limits() {
    let desk = Desk::new();
    let mut rows = normal(2, 200, 3);
    rows.iter_mut().step_by(10).for_each(|row| row.iter_mut().for_each(|v| *v = 10.0 * *v + 10.0));
    desk.put("rows.csv", csv(&NAMES, &rows));
    let about = desk.json("fit rows.csv -o model.skpca --novelty --robust --json");
    let aside: Vec<u64> = about["report"]["set_aside"].as_array().unwrap().iter().filter_map(|v| v.as_u64()).collect();
    assert!(aside.iter().filter(|row| *row % 10 == 0).count() >= 18 && aside.len() < 30, "{aside:?}");
    let found = desk.rows("score model.skpca rows.csv --statistics");
    assert!(found.iter().all(|row| row.len() == 8 && row[5] == found[0][5] && row[7] == found[0][7]));
    desk.ok("--quiet fit rows.csv -o plain.skpca --support 10");
    let refused = desk.run("score plain.skpca rows.csv --statistics");
    let expected = "expected a model fitted with --false-alarms or --novelty";
    assert!(refused.code == 2 && refused.stderr.contains(expected), "{}", refused.stderr);
}
