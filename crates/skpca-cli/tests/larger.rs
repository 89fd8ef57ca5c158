//! Tables that are larger than memory or in several files, and samples of them.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::process::Stdio;

use crate::support::{Desk, NAMES, csv, normal, npy};

/// Rows and columns of a table that is too large for the memory limit below.
const ROWS: usize = 52_000;
const COLUMNS: usize = 20;
/// Too little for this table together with a fit, but enough for the fit alone.
const LITTLE: &str = "--memory 41MB";

fn names() -> Vec<String> {
    (0..COLUMNS).map(|k| format!("c{k}")).collect()
}

fn text(rows: &[Vec<f64>], order: &[usize]) -> String {
    let names = names();
    let ordered: Vec<&str> = order.iter().map(|&k| names[k].as_str()).collect();
    let cells: Vec<Vec<f64>> = rows.iter().map(|row| order.iter().map(|&k| row[k]).collect()).collect();
    csv(&ordered, &cells)
}

/// A table in which the first numbers that need 64 bits come late.
fn table() -> Vec<Vec<f64>> {
    let mut rows = normal(5, ROWS, COLUMNS);
    for row in &mut rows[..ROWS / 2] {
        row.iter_mut().for_each(|v| *v = (64.0 * *v).round() / 64.0);
    }
    rows
}

#[test]
fn a_fit_in_passes_gives_the_same_file_as_one_in_memory() {
    let (desk, rows) = (Desk::new(), table());
    let forwards: Vec<usize> = (0..COLUMNS).collect();
    let backwards: Vec<usize> = (0..COLUMNS).rev().collect();
    desk.put("all.csv", text(&rows, &forwards));
    desk.put("all.npy", npy(&rows));
    std::fs::create_dir(desk.path("parts")).unwrap();
    desk.put("parts/1.csv", text(&rows[..1], &forwards));
    desk.put("parts/2.csv", text(&[], &backwards));
    desk.put("parts/3.csv", text(&rows[1..20_000], &backwards));
    desk.put("parts/_note.csv", "not a table");
    desk.put("rest.csv", text(&rows[20_000..], &forwards));
    desk.ok("fit parts/3.csv -o any.skpca --method landmarks --support 2 --quiet");
    for format in ["parquet", "feather", "csv.gz"] {
        desk.ok(&format!("score any.skpca all.csv --append --single -o all.{format}"));
    }
    let drop = "--drop score threshold p_value novel";
    for method in ["landmarks", "greedy", "expansion"] {
        let flags = format!("--method {method} --support 12 -q 4 --quiet");
        let fit = |data: &str, flags: &str| {
            desk.ok(&format!("fit {data} -o model.skpca {flags}"));
            desk.bytes("model.skpca")
        };
        let expected = fit("all.csv", &flags);
        let unnamed = fit("all.npy", &flags);
        for threads in [1, 2] {
            let flags = format!("{flags} {LITTLE} --threads {threads}");
            assert!(fit("all.csv", &flags) == expected, "{method} {threads}");
            assert!(fit("parts rest.csv", &flags) == expected, "{method} {threads}");
            assert!(fit("all.npy", &flags) == unnamed, "{method} {threads}");
        }
        let dropped = fit("all.parquet", &format!("{flags} {drop}"));
        for data in ["all.parquet", "all.feather", "all.csv.gz"] {
            assert!(fit(data, &format!("{flags} {drop} {LITTLE}")) == dropped, "{method} {data}");
        }
    }
    let said = desk.run(&format!("fit all.csv -o model.skpca --support 12 -q 4 {LITTLE}")).stderr;
    let expected =
        "note: 52000 rows (8 MB) are read in passes: expansion on all of them in memory needs more than 41 MB\n";
    assert!(said.starts_with(expected), "{said}");
    assert_eq!(desk.names().len(), 8, "{:?}", desk.names());
}

#[test]
fn methods_that_need_every_row_in_memory_choose_points_on_a_sample() {
    let (desk, rows) = (Desk::new(), table());
    desk.put("all.npy", npy(&rows));
    let run = desk.run("fit all.npy -o model.skpca --method l21 --support 12 -q 4 --memory 60MB");
    assert_eq!(run.code, 0, "{}", run.stderr);
    let note = "note: l21 holds something of every row, and 52000 rows do not fit in memory: its points were chosen on a sample of ";
    assert!(run.stderr.contains(note), "{}", run.stderr);
}

#[test]
fn errors_name_the_file_and_the_row() {
    let (desk, mut rows) = (Desk::new(), table());
    desk.put("a.csv", csv(&NAMES, &normal(1, 40, 3)));
    desk.put("b.csv", "c,b,a\n1,2,3\n1,,3\n");
    desk.put("c.csv", "a,b,d\n1,2,3\n");
    desk.put("d.npy", npy(&normal(1, 10, 4)));
    desk.put("e.csv", "a,b,c\n");
    let cases = [
        (
            "a.csv b.csv",
            "the tables: 1 of 126 cells is empty, first b.csv line 3, column 'b'; by column: 'b' 1; fill them with \
             --missing median, leave out their rows with --missing drop, or the columns with --drop b",
        ),
        ("a.csv c.csv", "c.csv: its columns are not those of a.csv: missing 'c', unexpected 'd'"),
        ("a.csv d.npy", "d.npy: its columns are not those of a.csv: 4 of them, expected 3"),
        ("a.csv none.csv", "none.csv: No such file or directory (os error 2)"),
        ("e.csv e.csv", "e.csv: no rows"),
    ];
    for (data, message) in cases {
        desk.refuses(&format!("fit {data} -o model.skpca"), 1, message);
    }
    std::fs::create_dir(desk.path("empty")).unwrap();
    let known = ".csv .csv.gz .tsv .tsv.gz .txt .txt.gz .parquet .arrow .feather .ipc .npy";
    desk.refuses(
        "fit empty -o model.skpca",
        1,
        &format!("empty: no tables in this directory, expected files named {known}"),
    );

    rows[31_234][7] = f64::NAN;
    desk.put("all.npy", npy(&rows));
    let words = format!("fit all.npy -o model.skpca --support 12 -q 4 --quiet {LITTLE}");
    desk.refuses(&words, 1, "all.npy: row 31234, column 7 (from 0): NaN is not a finite number");
    desk.put("all.csv", text(&rows[..31_000], &(0..COLUMNS).collect::<Vec<_>>()));
    let run = desk.shell(
        "export TMPDIR=/nowhere",
        &format!("fit all.csv all.csv -o model.skpca --support 12 -q 4 {LITTLE}"),
        "",
    );
    assert_eq!(run.code, 1);
    assert!(run.stderr.starts_with("error: /nowhere: no temporary file for a table"), "{}", run.stderr);
}

/// Fits the file in passes and calls `change` during the fit; returns the messages.
fn fit_a_file_that_changes(desk: &Desk, file: &str, change: impl FnOnce()) -> String {
    let mut command = desk.command(&format!("fit {file} -o model.skpca --support 12 -q 4 {LITTLE}"));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut said, mut rest) = (String::new(), BufReader::new(child.stderr.take().unwrap()));
    // The note comes before the first pass.
    rest.read_line(&mut said).unwrap();
    assert!(said.contains("are read in passes"), "{said}");
    change();
    said.clear();
    rest.read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{said}");
    assert!(!desk.path("model.skpca").exists());
    said
}

#[test]
fn a_file_that_changes_between_passes_ends_the_fit() {
    let (desk, rows) = (Desk::new(), table());
    let bytes = npy(&rows);
    desk.put("all.npy", &bytes);
    let open = || std::fs::OpenOptions::new().write(true).open(desk.path("all.npy")).unwrap();
    let said = fit_a_file_that_changes(&desk, "all.npy", || {
        open().write_all_at(&1e3_f64.to_le_bytes(), bytes.len() as u64 - 8).unwrap();
    });
    assert!(said.ends_with("all.npy: the file changed while it was read; fit again once it is complete\n"), "{said}");
    desk.put("all.npy", &bytes);
    let said = fit_a_file_that_changes(&desk, "all.npy", || open().set_len(bytes.len() as u64 - 8).unwrap());
    let expected = "all.npy ends before row 52000 of 52000: it was truncated while being read\n";
    assert!(said.ends_with(expected) || said.ends_with("fit again once it is complete\n"), "{said}");
    desk.put("all.npy", &bytes);
    let said = fit_a_file_that_changes(&desk, "all.npy", || open().set_len(4_000_000).unwrap());
    let row = said.split_once("all.npy ends before row ").expect(&said).1;
    assert!(row.ends_with(" of 52000: it was truncated while being read\n"), "{said}");
    let row: usize = row.split(' ').next().unwrap().parse().unwrap();
    // 128 bytes of header, 160 for each row.
    assert!(row > (4_000_000 - 128) / 160, "{said}");
}

#[test]
fn the_memory_limit_includes_the_copy_of_the_rows_for_updatable_models() {
    let desk = Desk::new();
    desk.put("all.npy", npy(&table()));
    // The fit takes 41 MB and the copy 8 MB.
    let words = "fit all.npy -o model.skpca --method landmarks --support 12 -q 4 --memory 45MB";
    desk.ok(words);
    let run = desk.run(&format!("{words} --updatable"));
    assert!(
        run.code == 1 && run.stderr.contains("error: --updatable: the rows do not fit in memory"),
        "{}",
        run.stderr
    );
}

#[test]
fn truncated_text_is_an_error_with_its_line() {
    let (desk, rows) = (Desk::new(), table());
    let text = text(&rows, &(0..COLUMNS).collect::<Vec<_>>());
    desk.put("cut.csv", &text[..text.len() - 40]);
    let run = desk.run(&format!("fit cut.csv -o model.skpca --support 12 -q 4 --quiet {LITTLE}"));
    assert!(run.code == 1 && run.stderr.starts_with("error: cut.csv line 52001: "), "{}", run.stderr);
}

#[test]
fn a_sample_is_drawn_by_the_seed_and_the_model_says_so() {
    let desk = Desk::new();
    let labelled: String = normal(3, 2000, 2)
        .iter()
        .enumerate()
        .map(|(i, row)| format!("{:e},{:e},{}\n", row[0] + (i % 2) as f64, row[1], ["no", "yes"][i % 2]))
        .collect();
    desk.put("data.csv", format!("x,y,kind\n{labelled}"));
    let fit = |flags: &str| {
        let run = desk.run(&format!("fit data.csv -o model.skpca --label kind --support 5 -q 2 {flags}"));
        assert_eq!(run.code, 0, "{}", run.stderr);
        (run.stderr, desk.bytes("model.skpca"))
    };
    let (said, first) = fit("--sample 300");
    assert_eq!(said, "note: fitted to a sample of 300 of 2000 rows\n");
    assert!(fit("--sample 300").1 == first && fit("--sample 300 --seed 1").1 != first);
    assert_eq!(fit("--sample 2000").1, fit("").1, "all of them");
    let (said, _) = fit("--sample 300 --normal yes");
    assert_eq!(said, "note: fitted to a sample of 300 of 1000 rows\n");
    desk.ok("fit data.csv -o model.skpca --label kind --method discriminant --sample 2000 --support 5 --quiet");
}

/// A process limited to 270 MB of address space fits a table of 300 MB. It uses one arena, since the allocator would
/// otherwise reserve 64 MB of addresses per thread, or 128 MB if they are badly aligned.
#[test]
fn a_table_larger_than_the_address_space_is_fitted() {
    const MANY: usize = 1_500_000;
    let desk = Desk::new();
    let row = |i: usize| (0..25).map(|k| ((i * (k + 3)) % 7).to_string()).collect::<Vec<_>>().join(",");
    desk.put("large.csv", (0..7).map(|i| row(i) + "\n").collect::<String>().repeat(MANY / 7));
    let words = "fit large.csv -o model.skpca --no-header --threads 1 --method landmarks --support 5 -q 2 --quiet --memory 50MB";
    let run = desk.shell("export MALLOC_ARENA_MAX=1; ulimit -v 270000", words, "");
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
}
