//! Rows with those before them: `--lags`.

use crate::support::{Desk, csv, normal};

/// Rows of which each depends on the one before it.
fn series(seed: u64, n: usize) -> Vec<Vec<f64>> {
    let mut state = [0.0, 0.0];
    normal(seed, n, 2)
        .into_iter()
        .map(|row| {
            state = [0.9 * state[0] + 0.3 * row[0], 0.7 * state[1] + 0.3 * state[0] + 0.2 * row[1]];
            state.to_vec()
        })
        .collect()
}

/// The same rows with two lags, made by hand.
fn by_hand(rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let at = |i: usize, lag: usize| rows[i.saturating_sub(lag)].clone();
    (0..rows.len()).map(|i| [at(i, 0), at(i, 1), at(i, 2)].concat()).collect()
}

const NAMES: [&str; 2] = ["load", "flow"];
const WIDE: [&str; 6] = ["load", "flow", "load (t-1)", "flow (t-1)", "load (t-2)", "flow (t-2)"];

#[test]
fn a_model_with_lags_is_that_of_a_table_with_lagged_columns() {
    let desk = Desk::new();
    let (rows, fresh) = (series(1, 400), series(2, 300));
    desk.put("rows.csv", csv(&NAMES, &rows));
    desk.put("wide.csv", csv(&WIDE, &by_hand(&rows)));
    desk.put("fresh.csv", csv(&NAMES, &fresh));
    desk.ok("--quiet fit rows.csv -o model.skpca --novelty --lags 2");
    desk.ok("--quiet fit wide.csv -o by-hand.skpca --novelty --row-order time");
    assert_eq!(desk.bytes("model.skpca"), desk.bytes("by-hand.skpca"));
    // Blocks of a file, single lines of a pipe, and a table with other columns too.
    let scores = desk.rows("score model.skpca fresh.csv");
    let piped = desk.feed("score model.skpca -", csv(&NAMES, &fresh).as_bytes());
    assert_eq!(piped.stdout, desk.ok("score model.skpca fresh.csv"));
    let named: Vec<Vec<f64>> = fresh.iter().map(|row| vec![row[1], 7.0, row[0]]).collect();
    desk.put("named.csv", csv(&["flow", "other", "load"], &named));
    assert_eq!(desk.rows("score model.skpca named.csv"), scores);
    desk.put("wide-fresh.csv", csv(&WIDE, &by_hand(&fresh)));
    assert_eq!(desk.rows("score by-hand.skpca wide-fresh.csv"), scores);
}

#[test]
fn causes_are_inputs_and_their_contributions_sum_over_lags() {
    let desk = Desk::new();
    let mut fresh = series(2, 60);
    fresh[30][1] += 30.0;
    desk.put("rows.csv", csv(&NAMES, &series(1, 400)));
    desk.put("fresh.csv", csv(&NAMES, &fresh));
    desk.ok("--quiet fit rows.csv -o model.skpca --novelty --lags 2");
    let said = desk.ok("score model.skpca fresh.csv --explain 2 --append");
    let line: Vec<&str> = said.lines().nth(31).unwrap().split(',').collect();
    let head: Vec<&str> = said.lines().next().unwrap().split(',').collect();
    assert_eq!(head.len(), 12, "{head:?}");
    let column = |name: &str| line[head.iter().position(|column| *column == name).unwrap()];
    assert_eq!((column("cause1"), column("novel"), column("flow")), ("flow", "1", fresh[30][1].to_string().as_str()));
    desk.ok("--quiet monitor model.skpca fresh.csv -o page.html");
    let page = String::from_utf8(desk.bytes("page.html")).unwrap();
    // Lagged columns are those of the model, never a cause.
    assert_eq!(page.matches("(t-1)").count(), 2);
}

#[test]
fn rows_that_are_skipped_are_no_predecessors() {
    let desk = Desk::new();
    let fresh = series(2, 20);
    desk.put("rows.csv", csv(&NAMES, &series(1, 200)));
    desk.ok("--quiet fit rows.csv -o model.skpca --novelty --lags 1");
    let mut bad: Vec<String> = csv(&NAMES, &fresh).lines().map(String::from).collect();
    bad.insert(6, "nan,1".into());
    desk.put("bad.csv", bad.join("\n") + "\n");
    desk.put("good.csv", csv(&NAMES, &fresh));
    assert_eq!(desk.ok("--quiet score model.skpca bad.csv --skip-bad"), desk.ok("score model.skpca good.csv"));
}

#[test]
fn what_has_no_rows_before_it_is_rejected() {
    let desk = Desk::new();
    desk.put("rows.csv", csv(&NAMES, &series(1, 200)));
    desk.put("unnamed.csv", csv(&NAMES, &series(1, 200)).split_once('\n').unwrap().1);
    let unnamed = "--lags: the columns need names, by which the model knows them later";
    desk.refuses_fit("unnamed.csv --no-header --lags 2", 2, unnamed);
    for flags in ["--sample 100", "--updatable", "--landmarks rows.csv", "--weight flow", "--missing median"] {
        let run = desk.run(&format!("fit rows.csv -o new.skpca --lags 2 {flags}"));
        assert!(run.code == 2 && run.stderr.contains("cannot be used with"), "{flags}: {}", run.stderr);
    }
    let run = desk.run("fit rows.csv -o new.skpca --lags 2000");
    assert!(run.code == 2 && run.stderr.contains("2000 is not in 0..=1000"), "{}", run.stderr);
    let unordered = "--lags: rows with lags are in time order; leave out --row-order any";
    desk.refuses_fit("rows.csv --lags 1 --row-order any --false-alarms 5%", 2, unordered);
}
