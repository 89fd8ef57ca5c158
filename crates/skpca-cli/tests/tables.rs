//! Realistic tables with times, text, categories and empty cells, from the file to alarms.

use std::fmt::Write;
use std::process::Command;

use crate::support::{Desk, normal};

/// A log of a plant: a time, two text columns, a mode on which the level depends, three readings, and 3 % empty cells.
/// With `fault`, the readings of the last rows are inconsistent.
fn plant(rows: usize, seed: u64, fault: bool) -> String {
    let mut text = "time,site,note,mode,load,level,flow\n".to_string();
    let noise = normal(seed, rows, 4);
    for (i, noise) in noise.iter().enumerate() {
        let (mode, base) = [("auto", 0.0), ("hand", 5.0), ("off", 10.0)][i % 3];
        let wrong = if fault && i + 5 >= rows { 3.0 } else { 0.0 };
        let cell =
            |k: usize, value: f64| if (i * 7 + k).is_multiple_of(33) { String::new() } else { format!("{value:.4}") };
        let (load, level) = (cell(0, noise[0]), cell(1, base + noise[0] + 0.1 * noise[1] + wrong));
        let flow = cell(2, 2.0 * noise[0] + 0.1 * noise[2]);
        writeln!(text, "2026-01-{:02} {:02}:00,north,ok {i},{mode},{load},{level},{flow}", 1 + i / 24, i % 24).unwrap();
    }
    text
}

fn desk() -> Desk {
    let desk = Desk::new();
    desk.put("plant.csv", plant(600, 1, false));
    desk.put("new.csv", plant(60, 2, true));
    desk
}

const TREATED: &str = "--time time --categorical mode --missing median --drop site,note";

/// A column of the results, by name.
fn column(text: &str, name: &str) -> Vec<f64> {
    let at = text.lines().next().unwrap().split(',').position(|column| column == name).unwrap();
    text.lines().skip(1).map(|line| line.split(',').nth(at).unwrap().parse().unwrap()).collect()
}

#[test]
fn from_a_log_to_alarms() {
    let desk = desk();
    desk.ok(&format!("fit plant.csv -o model.skpca --novelty {TREATED} --quiet"));
    let about = desk.ok("inspect model.skpca");
    assert!(about.contains("columns      mode=auto, mode=hand, mode=off, load, level, flow\n"), "{about}");
    let intake =
        "intake       empty cells are filled (2.29% of the cells); categories mode (others are refused); time time\n";
    assert!(about.contains(intake), "{about}");
    let scores = desk.ok("score model.skpca new.csv");
    let novel = column(&scores, "novel");
    assert_eq!(&novel[55..], [1.0; 5], "the fault: {novel:?}");
    assert!(novel[..55].iter().sum::<f64>() <= 8.0, "{novel:?}");
    let filled = column(&scores, "filled");
    assert!(filled.iter().all(|share| [0.0, 0.25].contains(share)) && filled.iter().sum::<f64>() > 0.0, "{filled:?}");
}

#[test]
fn text_columns_are_rejected_in_one_message_or_left_out() {
    let desk = desk();
    let message = "plant.csv: columns 'time' (2026-01-01 00:00), 'site' (north), 'note' (ok 0), 'mode' (auto) hold text or dates: \
                   leave out with --drop time,site,note,mode (or --numeric-only), encode categories with --categorical, \
                   name times with --time and classes with --label";
    desk.refuses_fit("plant.csv", 1, message);
    let run = desk.run("fit plant.csv -o model.skpca --numeric-only --missing drop --support 5");
    assert_eq!(run.code, 0, "{}", run.stderr);
    for note in
        ["note: column 'site' holds text or dates and is left out\n", "of 600 rows have empty cells and are left out\n"]
    {
        assert!(run.stderr.contains(note), "{}", run.stderr);
    }
    assert!(run.stdout.contains("columns      load, level, flow\n"), "{}", run.stdout);
    // The same columns are left out of new tables, and rows with empty cells are skipped.
    let scored = desk.run("score model.skpca new.csv");
    let gaps = scored.stderr.matches("skipped: row ").count();
    assert!(gaps > 0 && scored.stderr.contains(", column 'load': the cell is empty\n"), "{}", scored.stderr);
    assert_eq!((scored.code, scored.stdout.lines().count()), (0, 61 - gaps));
}

#[test]
fn empty_cells_are_counted_and_rejected_with_the_flags_that_help() {
    let desk = Desk::new();
    desk.put("gaps.csv", "a,b,c\n1,2,3\n4,,6\n7,NA,9\n10,11,\n");
    let message = "gaps.csv: 3 of 12 cells are empty, first line 3, column 'b'; by column: 'b' 2, 'c' 1; fill them with \
                   --missing median, leave out their rows with --missing drop, or the columns with --drop b,c";
    desk.refuses_fit("gaps.csv", 1, message);
    desk.put("all.csv", "a,b\n1,\n,2\n");
    let message = "--missing drop: every row has an empty cell; fill them with --missing median";
    desk.refuses_fit("all.csv --missing drop", 1, message);
    desk.put("none.csv", "a,b\n1,\n2,\n");
    let message = "none.csv: column = b: expected a value in at least one row: leave it out with --drop b";
    desk.refuses_fit("none.csv --missing median", 1, message);
}

/// A model with an intake agrees with a model of tables that were filled and encoded beforehand.
#[test]
fn filling_and_encoding_agree_with_a_prepared_table() {
    let desk = Desk::new();
    desk.put("raw.csv", "mode,x,y\nb,1,2\na,2,\n,3,5\nb,,1\nc,4,3\nb,5,5\n");
    desk.put(
        "made.csv",
        "mode=a,mode=b,mode=c,x,y\n0,1,0,1,2\n1,0,0,2,3\n0,1,0,3,5\n0,1,0,3,1\n0,0,1,4,3\n0,1,0,5,5\n",
    );
    let flags = "--support 4 --kernel rbf,gamma=0.2 --method landmarks --quiet";
    desk.ok(&format!("fit raw.csv -o raw.skpca --missing median --categorical mode --unknown zero {flags}"));
    desk.ok(&format!("fit made.csv -o made.skpca {flags}"));
    desk.put("new.csv", "y,mode,other,x\n1,d,text,\n2,,,3\n");
    desk.put("new_made.csv", "mode=a,mode=b,mode=c,x,y\n0,0,0,3,1\n0,1,0,3,2\n");
    assert_eq!(desk.ok("transform raw.skpca new.csv"), desk.ok("transform made.skpca new_made.csv"));
    let scores = desk.ok("score raw.skpca new.csv --append");
    assert!(scores.starts_with("y,mode,other,x,score,threshold,p_value,novel,filled\n1,d,text,NaN,"), "{scores}");
    assert_eq!(column(&scores, "score"), column(&desk.ok("score made.skpca new_made.csv"), "score"));
    assert_eq!(column(&scores, "filled"), [1.0 / 3.0, 1.0 / 3.0]);
}

#[test]
fn a_model_rejects_cells_that_its_intake_does_not_allow() {
    let desk = Desk::new();
    desk.put("raw.csv", "mode,x,y\nb,1,2\na,2,3\nb,3,5\nb,0,1\n");
    desk.ok("fit raw.csv -o model.skpca --categorical mode --support 3 --quiet");
    for (text, message) in [
        ("x,y\n1,2\n", "columns of the model are missing from the data: 'mode'"),
        (
            "mode,x,y\na,1,2\nc,1,2\n",
            "row 1 (from 0), column 'mode': 'c' is not known, expected one of a, b; --skip-bad \
          skips such rows, and a model fitted with --unknown zero takes them",
        ),
        (
            "mode,x,y\n ,1,2\n",
            "row 0 (from 0), column 'mode': the cell is empty; --skip-bad skips such rows, and a \
          model fitted with --missing median fills them",
        ),
        (
            "mode,x,y\na,,2\n",
            "new.csv line 2, column 'x': missing value (--skip-bad skips such rows; models fitted \
          with --missing median fill them)",
        ),
    ] {
        desk.put("new.csv", text);
        desk.refuses("score model.skpca new.csv", 1, message);
    }
    desk.put("new.csv", "mode,x,y\na,1,2\nc,1,2\na,,2\nb,1,3\n");
    let run = desk.run("score model.skpca new.csv --skip-bad --append");
    assert_eq!((run.code, run.stdout.lines().count()), (0, 3), "{}", run.stdout);
    assert_eq!(run.stderr.matches("skipped: ").count(), 2, "{}", run.stderr);
}

#[test]
fn rows_must_be_sorted_by_time() {
    let desk = Desk::new();
    desk.put("back.csv", "t,x,y\n2026-01-02,1,2\n2026-01-01,2,3\n2026-01-03,0,4\n");
    let message = "back.csv: --time t: '2026-01-01' follows '2026-01-02' (row 1, from 0): sort the table by time, or use --drop t";
    desk.refuses_fit("back.csv --time t", 1, message);
    desk.put("back.csv", "t,x,y\n10,1,2\n9,2,3\n11,0,4\n");
    let message = "back.csv: --time t: '9' follows '10' (row 1, from 0): sort the table by time, or use --drop t";
    desk.refuses_fit("back.csv --time t", 1, message);
    desk.refuses_fit("back.csv --time when", 2, "back.csv has no column 'when'; it has t, x, y");
}

#[test]
fn constant_columns_are_noted() {
    let desk = Desk::new();
    let rows: String = (0..300).map(|i| format!("{},7,{}\n", i % 10, u8::from(i == 5))).collect();
    desk.put("data.csv", format!("x,same,rare\n{rows}"));
    let run = desk.run("fit data.csv -o model.skpca --support 3");
    let expected =
        "note: column 'same' is constant\nnote: column 'rare' is nearly constant: 99.7% of the rows have one value\n";
    assert!(run.stderr.contains(expected), "{}", run.stderr);
}

#[test]
fn the_share_of_filled_cells_is_in_the_report_for_programs() {
    let desk = Desk::new();
    desk.put("gaps.csv", "a,b,c\n1,2,3\n4,,6\n7,NA,9\n10,11,\n12,13,14\n");
    let report = desk.json("fit gaps.csv -o model.skpca --missing median --support 3 --json");
    assert_eq!(report["intake"]["empty"], 0.2, "{report}");
    assert_eq!(report["intake"]["missing"], "median");
    assert_eq!(desk.json("inspect model.skpca --json")["intake"], report["intake"]);
}

/// Columns are matched by exact name, in any order and among other columns; upper and lower case differ.
#[test]
fn columns_are_found_by_their_names() {
    let desk = Desk::new();
    desk.put("train.csv", "x,y\n1,2\n2,1\n3,5\n0,4\n");
    desk.ok("fit train.csv -o model.skpca --support 3 --quiet");
    desk.put("same.csv", "x,y\n1,2\n3,4\n");
    desk.put("other.csv", "y,x\n2,1\n4,3\n");
    assert_eq!(desk.ok("score model.skpca other.csv"), desk.ok("score model.skpca same.csv"));
    desk.put("more.csv", "z,y,x\n7,2,1\n8,4,3\n");
    assert_eq!(desk.ok("score model.skpca more.csv"), desk.ok("score model.skpca same.csv"));
    desk.put("case.csv", "X,y\n1,2\n3,4\n");
    let message =
        "columns do not match the model: missing 'x'; not known to it 'X'; upper and lower case are different names";
    desk.refuses("score model.skpca case.csv", 1, message);
}

/// Rows of the plant as input of the header: three readings, NaN for empty cells, and the mode.
const MAIN: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model.h"

int main(void)
{
    char line[256];
    while (fgets(line, sizeof line, stdin)) {
        char *cells[8], *at = line;
        double x[MODEL_INPUTS];
        const char *c[MODEL_CATEGORIES];
        int k;
        line[strcspn(line, "\n")] = 0;
        for (k = 0; k < 4; k++) {
            cells[k] = at;
            at += strcspn(at, ",");
            *at++ = 0;
        }
        c[0] = cells[0];
        for (k = 0; k < 3; k++) {
            x[k] = *cells[k + 1] ? atof(cells[k + 1]) : NAN;
        }
        {
            const model_result result = model_evaluate(x, c);
            printf("%.17g,%d\n", (double)result.score, result.alarm);
        }
    }
    return 0;
}
"#;

#[test]
fn the_header_fills_and_encodes_like_the_program() {
    let desk = desk();
    desk.ok(&format!("fit plant.csv -o model.skpca --novelty {TREATED} --quiet"));
    desk.ok("export model.skpca -o model.h --double --quiet");
    desk.put("main.c", MAIN);
    let flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1", "main.c", "-o", "main", "-lm"];
    let cc = Command::new("cc").args(flags).current_dir(desk.path("")).output().unwrap();
    assert!(cc.status.success(), "{}", String::from_utf8_lossy(&cc.stderr));
    let table = plant(60, 2, true);
    let text = table.lines().skip(1).map(|line| line.splitn(4, ',').nth(3).unwrap().to_string() + "\n");
    // An unknown mode, which the program rejects.
    desk.put("rows.txt", text.collect::<String>() + "broken,1,2,3\n");
    let input = std::fs::File::open(desk.path("rows.txt")).unwrap();
    let run = Command::new(desk.path("main")).stdin(input).output().unwrap();
    let found = String::from_utf8(run.stdout).unwrap();
    let found: Vec<&str> = found.lines().collect();
    assert_eq!((found.len(), found[60].split_once(',').unwrap().1), (61, "1"));
    let scores = desk.ok("score model.skpca new.csv");
    let expected = column(&scores, "score").into_iter().zip(column(&scores, "novel"));
    let largest = column(&scores, "score").into_iter().fold(0.0, f64::max);
    for (i, (score, novel)) in expected.enumerate() {
        let (found, alarm) = found[i].split_once(',').unwrap();
        assert!((found.parse::<f64>().unwrap() - score).abs() <= 1e-12 * largest, "row {i}: {found} {score}");
        assert_eq!(alarm.parse::<f64>().unwrap(), novel, "row {i}");
    }
}

#[test]
fn queries_fill_and_encode() {
    let desk = desk();
    desk.ok(&format!("fit plant.csv -o model.skpca --novelty {TREATED} --quiet"));
    desk.ok("export model.skpca -o model.sql --quiet");
    let query = String::from_utf8(desk.bytes("model.sql")).unwrap();
    let mode = "CASE WHEN COALESCE(NULLIF(TRIM(\"mode\"), ''), 'auto') = 'hand' THEN 1e0 WHEN";
    assert!(query.contains(mode) && query.contains("COALESCE(\"flow\", "), "{query}");
}
