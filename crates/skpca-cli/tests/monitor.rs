//! `skpca monitor`: the counts and names on the page, and errors. How the page looks is tested in a browser.

use std::fmt::Write;

use crate::support::{Desk, NAMES, csv, normal};

/// A model of normal rows in time order, with a threshold that is valid for new rows.
fn desk() -> Desk {
    let desk = Desk::new();
    desk.put("train.csv", csv(&NAMES, &normal(1, 400, 3)));
    desk.ok("fit train.csv -o model.skpca --novelty --support 30 --false-alarms 1% --quiet");
    desk
}

/// Rows with a time column, in which `b` is 40 from row 30 to 34.
fn faulty(rows: usize) -> String {
    let mut text = "time,a,b,c\n".to_string();
    for (i, mut row) in normal(2, rows, 3).into_iter().enumerate() {
        if (30..35).contains(&i) {
            row[1] = 40.0;
        }
        let _ = writeln!(text, "2026-11-19T08:{:02}:{:02},{},{},{}", i / 60, i % 60, row[0], row[1], row[2]);
    }
    text
}

fn page(desk: &Desk, name: &str) -> String {
    String::from_utf8(desk.bytes(name)).unwrap()
}

/// Counts alarms and runs from the output of `score`.
fn alarms(desk: &Desk, words: &str) -> (usize, usize) {
    let novel: Vec<bool> = desk.rows(words).iter().map(|row| row[3] == 1.0).collect();
    let begins = |i: &usize| novel[*i] && (*i == 0 || !novel[*i - 1]);
    (novel.iter().filter(|novel| **novel).count(), (0..novel.len()).filter(begins).count())
}

#[test]
fn alarms_agree_with_the_scores_and_runs_name_their_cause() {
    let desk = desk();
    desk.put("today.csv", faulty(200));
    let told = desk.ok("monitor model.skpca today.csv -o chart.html --time time");
    let (alarms, runs) = alarms(&desk, "score model.skpca today.csv --drop time");
    assert!(alarms >= 5, "{alarms}");
    let expected = format!("monitored    {alarms} of 200 rows raise the alarm (");
    assert!(told.starts_with(&expected) && told.contains(&format!(", in {runs} run")), "{told}");
    assert!(told.ends_with("drawn        chart.html\n"), "{told}");
    let page = page(&desk, "chart.html");
    let run = page.split("<tr>").find(|row| row.starts_with("<td data-value=\"30\">2026-11-19T08:00:30</td>")).unwrap();
    assert!(run.contains("<td data-value=\"34\">2026-11-19T08:00:34</td><td data-value=\"5\">5</td>"), "{run}");
    let cause = run.split("<td class=\"what\">b ").nth(1).unwrap();
    assert!(cause.split_once("%: 40, expected ").unwrap().0.parse::<f64>().unwrap() > 80.0, "{run}");
    for id in ["score", "t2", "alarms", "p-values"] {
        assert!(page.contains(&format!("<figure id=\"{id}\" class=\"timeline\">")), "{id}");
    }
}

#[test]
fn pipes_and_files_give_the_same_page() {
    let desk = desk();
    desk.put("data.csv", faulty(300));
    desk.ok("monitor model.skpca data.csv -o file.html --time time --quiet");
    let piped = desk.feed("monitor model.skpca - -o pipe.html --time time --quiet", &desk.bytes("data.csv"));
    assert_eq!((piped.code, piped.stdout.as_str(), piped.stderr.as_str()), (0, "", ""));
    let pipe = page(&desk, "pipe.html").replace("Monitor: -", "Monitor: data.csv").replace("- by ", "data.csv by ");
    assert!(pipe == page(&desk, "file.html"));
    // A numeric input of the model may be the time column as well.
    desk.ok("monitor model.skpca data.csv -o number.html --time a --drop time --quiet");
    assert!(page(&desk, "number.html").contains("<p class=\"along\">a</p>"));
}

#[test]
fn any_number_of_rows_makes_a_small_page() {
    let desk = desk();
    desk.put("many.csv", csv(&NAMES, &normal(3, 100_000, 3)));
    desk.ok("monitor model.skpca many.csv -o many.html --quiet");
    let page = page(&desk, "many.html");
    assert!(page.len() < 1_000_000, "{}", page.len());
    let (alarms, runs) = alarms(&desk, "score model.skpca many.csv");
    assert!(page.contains(&format!("{alarms} of 100000 rows")) && page.contains(&format!("in {runs} runs.")));
    // Every alarm is in some column of the chart.
    let score = page.split("<figure id=\"score\"").nth(1).unwrap().split("</figure>").next().unwrap();
    let tips = score.split("<rect").skip(1).map(|rect| rect.split("</title>").next().unwrap());
    let of = |tip: &str| match tip.rsplit_once(", ") {
        Some((_, "an alarm")) => 1,
        Some((_, last)) if last.contains(" alarm") => last.split(' ').next().unwrap().parse().unwrap(),
        _ => 0,
    };
    let counted: usize = tips.map(of).sum();
    assert_eq!(counted, alarms);
    assert!(page.contains("These are the 200 longest; "));
}

#[test]
fn the_page_explains_its_limits() {
    let desk = desk();
    desk.put("today.csv", faulty(200));
    let page = |words: &str| {
        desk.ok(&format!("fit train.csv -o other.skpca --quiet {words}"));
        desk.ok("monitor other.skpca today.csv -o chart.html --time time --quiet");
        page(&desk, "chart.html")
    };
    let quantile = "The threshold is a quantile of the training scores";
    assert!(page("--support 10 -q 2").contains(quantile));
    let held_out = page("--support 10 -q 2 --false-alarms 2%");
    assert!(!held_out.contains(quantile) && held_out.contains("2% promised") && held_out.contains("id=\"t2\""));
    let correlated = page("--support 10 -q 2 --method l1,refit=false");
    assert!(correlated.contains("there is no T² without refit=true") && !correlated.contains("id=\"t2\""));
}

#[test]
fn unusable_rows_are_skipped_on_request() {
    let desk = desk();
    desk.put("bad.csv", "time,a,b,c\n1,0,0,0\n2,0,,0\n3,0,0,0\n");
    let run = desk.run("monitor model.skpca bad.csv -o chart.html --time time");
    assert_eq!(run.code, 1, "{}", run.stderr);
    let run = desk.run("monitor model.skpca bad.csv -o chart.html --time time --skip-bad");
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.starts_with("skipped: bad.csv line 3"), "{}", run.stderr);
    assert!(page(&desk, "chart.html").contains("skipped 1 row that could not be used"));
}

#[test]
fn inputs_that_make_no_page_are_errors() {
    let desk = desk();
    desk.put("today.csv", faulty(50));
    let extension = |name: &str| format!("{name}: unknown extension: the page is HTML, name it .html");
    desk.refuses("monitor model.skpca today.csv -o chart.pdf --time time", 2, &extension("chart.pdf"));
    desk.refuses("monitor model.skpca today.csv -o chart --time time", 2, &extension("chart"));
    desk.refuses(
        "monitor model.skpca today.csv -o chart.html --time when",
        2,
        "today.csv has no column 'when'; it has time, a, b, c",
    );
    desk.refuses("monitor none.skpca today.csv -o chart.html", 1, "none.skpca: No such file or directory (os error 2)");
    desk.put("page.html", desk.bytes("model.skpca"));
    desk.refuses("monitor page.html today.csv -o page.html", 2, "page.html: the output would replace the input");
    desk.put("empty.csv", "a,b,c\n");
    desk.refuses("monitor model.skpca empty.csv -o chart.html", 1, "empty.csv: no rows");
    // Three components capture all variance of three columns.
    desk.ok("fit train.csv -o full.skpca --kernel linear --support 3 -q 3 --quiet");
    desk.refuses(
        "monitor full.skpca today.csv -o chart.html",
        2,
        "full.skpca has no limit: its components capture all variance of the rows, so that scores are rounding errors; fit it with \
         fewer components (-q) or with --novelty",
    );
}
