//! Streaming: one output line per input line as rows arrive, tables larger than memory, and unusable rows.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

use crate::support::{Desk, NAMES, csv, normal, npy};

/// A model of three columns, and 200 new rows.
fn desk() -> Desk {
    let desk = Desk::new();
    desk.put("data.csv", csv(&NAMES, &normal(1, 100, 3)));
    desk.put("new.csv", csv(&NAMES, &normal(2, 200, 3)));
    desk.put("new.npy", npy(&normal(2, 200, 3)));
    desk.ok("fit data.csv -o model.skpca --support 8");
    desk
}

/// Sends each row of `text` and waits for its answer before sending the next one.
fn converse(desk: &Desk, words: &str, text: &str) -> String {
    let mut command = desk.command(words);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut answers = String::new();
    for (i, row) in text.lines().enumerate() {
        // In two halves, so that no read returns a whole line.
        let (left, right) = row.split_at(row.len() / 2);
        input.write_all(left.as_bytes()).unwrap();
        input.write_all(format!("{right}\n").as_bytes()).unwrap();
        // The header is answered with the first row.
        let lines = [0, 2].get(i).copied().unwrap_or(1);
        (0..lines).for_each(|_| assert!(output.read_line(&mut answers).unwrap() > 0, "{words}: no answer to {row}"));
    }
    drop(input);
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!((child.wait().unwrap().code(), rest.as_str()), (Some(0), ""), "{words}");
    answers
}

#[test]
fn a_line_is_answered_while_the_pipe_is_open() {
    let desk = desk();
    let text = String::from_utf8(desk.bytes("new.csv")).unwrap();
    for verb in ["score", "transform"] {
        for flags in ["", "--append", "--skip-bad", "--single"] {
            let expected = desk.ok(&format!("{verb} model.skpca new.csv {flags}"));
            assert_eq!(converse(&desk, &format!("{verb} model.skpca - {flags}"), &text), expected, "{verb} {flags}");
        }
    }
    let quoted: String = text.lines().map(|line| format!("\"{}\"\n", line.replace(',', "\",\""))).collect();
    assert_eq!(converse(&desk, "score model.skpca -", &quoted), desk.ok("score model.skpca new.csv"));
}

#[test]
fn pipes_and_files_give_the_same_answers() {
    let desk = desk();
    for verb in ["score", "transform"] {
        let expected = desk.ok(&format!("{verb} model.skpca new.csv"));
        assert_eq!(desk.ok(&format!("{verb} model.skpca new.npy")), expected);
        let redirected = desk.shell("true", &format!("{verb} model.skpca -"), "< new.csv");
        assert_eq!((redirected.code, redirected.stdout), (0, expected.clone()), "{verb}");
        desk.put("fifo.sh", "mkfifo in.csv; cat new.csv > in.csv &");
        let fifo = desk.shell("rm -f in.csv; . ./fifo.sh", &format!("{verb} model.skpca in.csv"), "");
        assert_eq!((fifo.code, fifo.stdout), (0, expected), "{verb}");
    }
}

#[test]
fn columns_are_copied_in_front_of_the_results() {
    let desk = desk();
    let rows = normal(3, 5, 3);
    let line = |(i, row): (usize, &Vec<f64>)| format!("t{i},{:e},{:e},\"a, b\",{:e}\n", row[2], row[0], row[1]);
    let text = "time,c,a,kind,b\n".to_string() + &rows.iter().enumerate().map(line).collect::<String>();
    desk.put("log.csv", &text);
    desk.put("plain.csv", csv(&NAMES, &rows));
    for verb in ["score", "transform"] {
        let plain = desk.ok(&format!("{verb} model.skpca plain.csv"));
        let words = format!("{verb} model.skpca log.csv --drop time kind --append");
        for (i, (found, results)) in desk.ok(&words).lines().zip(plain.lines()).enumerate() {
            let expected = match i.checked_sub(1) {
                None => "time,c,a,kind,b".to_string(),
                Some(i) => format!("t{i},{},{},\"a, b\",{}", rows[i][2], rows[i][0], rows[i][1]),
            };
            assert_eq!(found, format!("{expected},{results}"), "{verb}");
        }
        desk.refuses(
            &format!("{words} -o out.npy"),
            1,
            "out.npy: column 'time' is not a feature and may hold text, which .npy cannot: choose .csv or .parquet",
        );
    }
}

#[test]
fn copied_columns_survive_every_format() {
    let desk = desk();
    desk.put("log.csv", "id,a,b,c\nx1,0.5,1e-3,-2\n\"x, 2\",0.25,3,1\n");
    let expected = desk.ok("score model.skpca log.csv --drop id --append");
    let drop = "--drop id score threshold p_value novel --append";
    for format in ["parquet", "feather", "arrow", "csv.gz", "tsv"] {
        desk.ok(&format!("score model.skpca log.csv --drop id --append -o out.{format}"));
        // Transform what was written: its columns, including the old results, come before the features.
        let again = desk.ok(&format!("transform model.skpca out.{format} {drop}"));
        let columns: String =
            again.lines().map(|line| line.rsplitn(9, ',').last().unwrap().to_string() + "\n").collect();
        // Numbers that are not features are copied as text, formatted according to their type.
        assert_eq!(columns.replace(".0\n", "\n"), expected, "{format}");
    }
    let clash = "--append: the table has a column 'score' already; rename it, or leave it out";
    desk.refuses("score model.skpca out.tsv --drop id score threshold p_value novel --append", 2, clash);
}

#[test]
fn unusable_rows_are_skipped_on_request() {
    let desk = desk();
    desk.put("good.csv", "a,b,c\n1,2,3\n3,2,1\n");
    desk.put("bad.csv", "a,b,c\n1,2,3\n1,2\n1,,3\n1,x,3\n3,2,1\n1e300,1,inf\n");
    let expected = desk.ok("score model.skpca good.csv");
    let run = desk.run("score model.skpca bad.csv --skip-bad");
    assert_eq!((run.code, run.stdout.as_str()), (0, expected.as_str()));
    let said: Vec<&str> = run.stderr.lines().collect();
    assert_eq!(said.len(), 4, "{said:?}");
    for (said, line) in said.iter().zip([3, 4, 5, 7]) {
        assert!(said.starts_with(&format!("skipped: bad.csv line {line}")), "{said}");
    }
    assert_eq!(desk.run("score model.skpca bad.csv --skip-bad --quiet").stderr, "");

    // In a pipe, the rows before the first bad one are answered, the others are not.
    let run = desk.feed("score model.skpca -", &desk.bytes("bad.csv"));
    let answered: Vec<&str> = expected.lines().take(2).collect();
    assert_eq!((run.code, run.stdout.lines().collect::<Vec<_>>()), (1, answered));
    assert_eq!(run.stderr, "error: stdin line 3: 2 fields, expected 3\n");
    desk.refuses("score model.skpca bad.csv", 1, "bad.csv line 3: 2 fields, expected 3");

    desk.put("all.csv", "a,b,c\n1,2\n");
    let run = desk.run("score model.skpca all.csv --skip-bad");
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    let expected = "skipped: all.csv line 2: 2 fields, expected 3\nerror: all.csv: no rows\n";
    assert_eq!(run.stderr, expected);
    desk.put("many.csv", "a,b,c\n1,2,3\n".to_string() + &"1,2\n".repeat(50));
    let said = desk.run("score model.skpca many.csv --skip-bad").stderr;
    assert_eq!((said.lines().count(), said.lines().last()), (21, Some("skipped: 30 more rows")));
}

#[test]
fn rows_that_overflow_when_scaled_are_skipped_too() {
    let desk = Desk::new();
    desk.put("data.csv", csv(&NAMES, &crate::support::scaled(&normal(1, 40, 3), 1e-150)));
    desk.ok("fit data.csv -o model.skpca --support 8");
    let good = "1e-150,1e-150,1e-150\n";
    desk.put("good.csv", format!("a,b,c\n{good}{good}"));
    desk.put("new.csv", format!("a,b,c\n{good}1e-150,1e300,1e-150\n{good}"));
    let run = desk.run("score model.skpca new.csv --skip-bad");
    assert_eq!((run.code, run.stdout), (0, desk.ok("score model.skpca good.csv")));
    let why = "row 1, column 1 (from 0): 1e300 is too far outside the training data to be scaled";
    assert_eq!(run.stderr, format!("skipped: {why}\n"));
    let array: Vec<Vec<f64>> = vec![vec![1e-150; 3], vec![1e-150, f64::NAN, 0.0], vec![1e-150; 3]];
    desk.put("new.npy", npy(&array));
    let run = desk.run("score model.skpca new.npy --skip-bad");
    assert_eq!((run.code, run.stdout), (0, desk.ok("score model.skpca good.csv")));
    let why = "new.npy row 1 (from 0), column 1 (from 0): missing value (--skip-bad skips such rows; models fitted with --missing median fill them)";
    assert_eq!(run.stderr, format!("skipped: {why}\n"));
}

/// A process limited to 280 MB of address space scores a table of 300 MB. One arena, as for fits (larger.rs).
#[test]
fn tables_larger_than_memory_are_scored() {
    const MANY: usize = 1_500_000;
    let desk = Desk::new();
    desk.put("data.csv", csv(&[], &normal(1, 100, 25)));
    desk.ok("fit data.csv -o model.skpca --support 8 --no-header");
    let row: Vec<String> = (0..25).map(|k| (k % 3).to_string()).collect();
    desk.put("large.csv", (row.join(",") + "\n").repeat(MANY));
    let shape = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({MANY}, 25), }}");
    let head = [b"\x93NUMPY\x01\x00", &118_u16.to_le_bytes()[..], format!("{shape:<117}\n").as_bytes()].concat();
    let cells: Vec<u8> = (0..25).map(|k| k % 3).collect();
    desk.put("large.npy", [head, cells.repeat(MANY)].concat());
    for (data, after) in [("large.csv", ""), ("large.npy", ""), ("-", "< large.csv")] {
        for output in ["out.csv", "out.parquet", "out.npy"] {
            let words = format!("score model.skpca {data} --no-header --threads 1 --single -o {output}");
            let run = desk.shell("export MALLOC_ARENA_MAX=1; ulimit -v 280000", &words, after);
            assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{data} {output}");
        }
    }
    let scores = desk.bytes("out.npy");
    assert_eq!(scores.len(), 128 + MANY * 4 * 8);
    assert_eq!(scores[128..160], scores[scores.len() - 32..], "every row is the same");
}
