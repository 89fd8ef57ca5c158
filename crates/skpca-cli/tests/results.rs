//! Results of the program: they are reproducible and as documented.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::support::{Desk, NAMES, csv, normal, npy};
use serde_json::Value;
use skpca::Domain;
use skpca::kernel::KERNELS;
use skpca::method::METHODS;
use skpca::{Level, Points, Precision, format};

/// Enough rows for several blocks, so that threads can share the work.
const ROWS: usize = 1500;

fn desk(n: usize) -> Desk {
    let desk = Desk::new();
    desk.put("data.csv", csv(&NAMES, &normal(1, n, 3)));
    desk
}

#[test]
fn the_same_seed_gives_the_same_file_on_any_number_of_threads() {
    let desk = desk(ROWS);
    for flags in ["--support 20", "--fidelity 0.9", "--method exact -q 3", "--kernel laplacian --support 20"] {
        let model = |name: &str, more: &str| {
            desk.ok(&format!("fit data.csv -o {name} {flags} {more}"));
            desk.bytes(name)
        };
        let first = model("first.skpca", "--seed 5 --threads 1");
        for more in ["--seed 5 --threads 1", "--seed 5 --threads 2", "--seed 5"] {
            assert!(model("again.skpca", more) == first, "{flags} {more}");
        }
        assert!(model("other.skpca", "--seed 6") != first, "{flags}");
    }
}

#[test]
fn fits_and_scores_can_be_pinned_to_instructions_that_the_machine_has() {
    let desk = desk(ROWS);
    let rows = Points::new(3, normal(1, ROWS, 3).concat()).unwrap();
    for level in Level::available() {
        let fit = format!("fit data.csv --method landmarks --support 20 --level {level} -o");
        desk.ok(&format!("{fit} first.skpca"));
        desk.ok(&format!("{fit} again.skpca"));
        let bytes = desk.bytes("first.skpca");
        assert!(bytes == desk.bytes("again.skpca"), "{level}");
        let model = format::read(&bytes[..]).unwrap();
        assert_eq!(model.parts().request.as_ref().map(|request| request.fit.level), Some(level));
        for scored in Level::available() {
            let model = format::read(&bytes[..]).unwrap().pinned(scored).unwrap();
            let expected = model.score(&rows, Precision::Double).unwrap();
            let found = desk.rows(&format!("score first.skpca data.csv --level {scored}"));
            assert_eq!(found.iter().map(|row| row[0]).collect::<Vec<_>>(), expected, "{level} {scored}");
        }
    }
    let refused = desk.run("fit data.csv -o model.skpca --level sse9");
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("level = sse9: expected auto or avx512 or avx2 or portable"), "{}", refused.stderr);
}

#[test]
fn another_seed_chooses_other_points() {
    let desk = desk(ROWS);
    let support =
        |seed| desk.json(&format!("fit data.csv -o model.skpca --method landmarks --support 20 --json --seed {seed}"));
    assert_ne!(support(5)["support"], support(6)["support"]);
}

#[test]
fn results_do_not_depend_on_threads() {
    let desk = desk(ROWS);
    desk.ok("fit data.csv -o model.skpca --support 20");
    for verb in ["transform", "score", "transform --single", "score --single"] {
        let on = |threads| desk.ok(&format!("{verb} model.skpca data.csv --threads {threads}"));
        assert!(on(1) == on(2), "{verb}");
    }
}

#[test]
fn a_single_row_gets_the_same_results_as_in_a_batch() {
    let rows = normal(1, 700, 3);
    let desk = desk(700);
    for kernel in
        KERNELS.iter().filter(|entry| entry.capabilities.positive_semidefinite && !entry.capabilities.labelled)
    {
        desk.run(&format!("fit data.csv -o model.skpca --support 20 --kernel {}", kernel.name));
        for verb in ["transform", "score", "transform --single", "score --single"] {
            let all = desk.ok(&format!("{verb} model.skpca data.csv"));
            for i in [0, 1, 511, 512, 699] {
                desk.put("one.csv", csv(&NAMES, &rows[i..=i]));
                let one = desk.ok(&format!("{verb} model.skpca one.csv"));
                assert_eq!(one.lines().nth(1), all.lines().nth(i + 1), "{} {verb}, row {i}", kernel.name);
            }
        }
    }
}

#[test]
fn columns_are_known_by_name_in_any_order() {
    let desk = desk(40);
    desk.ok("fit data.csv -o model.skpca --support 8");
    let turned: Vec<Vec<f64>> = normal(1, 40, 3).iter().map(|row| vec![row[2], row[0], row[1]]).collect();
    desk.put("turned.csv", csv(&["c", "a", "b"], &turned));
    for verb in ["transform", "score"] {
        let of = |data| desk.ok(&format!("{verb} model.skpca {data}"));
        assert_eq!(of("turned.csv"), of("data.csv"), "{verb}");
    }
}

/// The table with columns `names`, with a column of words in front and a column of dates at the end.
fn labelled(names: &[&str]) -> String {
    let plain = csv(&[], &normal(1, 40, 3));
    let header = if names.is_empty() { String::new() } else { names.join(",") + "\n" };
    header + &plain.lines().map(|line| format!("red,{line},monday\n")).collect::<String>()
}

#[test]
fn label_and_dropped_columns_are_optional_in_new_tables() {
    let desk = desk(40);
    desk.put("labelled.csv", labelled(&["kind", "a", "b", "c", "day"]));
    desk.ok("fit labelled.csv -o model.skpca --support 8 --label kind --drop day");
    desk.ok("fit data.csv -o plain.skpca --support 8");
    let expected = desk.ok("score plain.skpca data.csv");
    for data in ["data.csv", "labelled.csv", "labelled.csv --label kind", "labelled.csv --drop day,kind"] {
        assert_eq!(desk.ok(&format!("score model.skpca {data}")), expected, "{data}");
    }
}

#[test]
fn label_and_dropped_columns_are_optional_in_new_tables_without_names() {
    let desk = Desk::new();
    desk.put("labelled.csv", labelled(&[]));
    desk.put("plain.npy", npy(&normal(1, 40, 3)));
    desk.ok("fit labelled.csv --no-header -o model.skpca --support 8 --label 0 --drop 4");
    desk.ok("fit plain.npy -o plain.skpca --support 8");
    let expected = desk.ok("score plain.skpca plain.npy");
    for data in ["labelled.csv --no-header", "plain.npy"] {
        assert_eq!(desk.ok(&format!("score model.skpca {data}")), expected, "{data}");
    }
}

#[test]
fn json_describes_the_model() {
    let desk = desk(200);
    let rows = "--method landmarks --support 20";
    for flags in [rows, "--support 20", "--fidelity 0.9", "--method exact -q 3", "--kernel linear", "--no-center -q 2"]
    {
        let fit = desk.json(&format!("fit data.csv -o model.skpca --json {flags}"));
        describes(&fit, 200, flags);
        assert!(fit["seconds"].as_f64().unwrap() > 0.0, "{flags}");
        let mut inspected = desk.json("inspect model.skpca --json");
        assert_eq!(inspected.get("seconds"), None, "{flags}");
        let importance = inspected.as_object_mut().unwrap().remove("importance").unwrap();
        assert_eq!(importance.as_array().unwrap().len(), 3, "{flags}: one per column");
        inspected["seconds"] = fit["seconds"].clone();
        assert_eq!(inspected, fit, "{flags}: inspect and fit say the same");
    }
}

fn describes(fit: &Value, n: u64, flags: &str) {
    let list = |name: &str| fit[name].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect::<Vec<_>>();
    let count = |name: &str| fit[name].as_u64().unwrap();
    let (m, q) = (count("m"), count("q"));
    assert!(fit["method"]["name"].is_string() && fit["kernel"]["name"].is_string(), "{flags}");
    assert_eq!((count("n"), count("d")), (n, 3), "{flags}");
    // Synthetic points are not rows.
    assert_eq!(fit.get("support").is_none(), fit["method"]["name"] == "expansion", "{flags}");
    let support = if fit.get("support").is_some() { list("support") } else { (0..m).map(|i| i as f64).collect() };
    assert!(support.windows(2).all(|pair| pair[0] < pair[1]), "{flags}: {support:?}");
    assert!(support.len() as u64 == m && support.iter().all(|row| *row < n as f64), "{flags}: {support:?}");
    let per_component = list("support_per_component");
    assert!(per_component.len() as u64 == q && per_component.iter().all(|c| *c <= m as f64), "{flags}");
    let variances = list("explained_variance");
    assert!(variances.len() as u64 == q && variances.windows(2).all(|pair| pair[0] >= pair[1]), "{flags}");
    let captured = fit["captured"].as_f64().unwrap();
    assert!((captured / variances.iter().sum::<f64>() / n as f64 - 1.0).abs() < 1e-12, "{flags}");
    assert!((0.0..=1.0 + 1e-9).contains(&fit["fidelity"].as_f64().unwrap()), "{flags}");
    let report = fit["report"].as_object().unwrap();
    for name in ["objective", "gap", "rounds", "converged", "residual_trace"] {
        assert!(report.contains_key(name), "{flags}: report.{name}");
    }
    assert_eq!(report["converged"], true, "{flags}");
    assert!((-1e-12..1.0).contains(&report["residual_trace"].as_f64().unwrap()), "{flags}");
}

#[test]
fn a_requested_fidelity_is_reached() {
    for n in [200, ROWS] {
        let desk = desk(n);
        let mut points = 0;
        for target in [0.5, 0.9, 0.99, 0.999] {
            let fit = desk.json(&format!("fit data.csv -o model.skpca -q 5 --json --fidelity {target}"));
            assert!(fit["fidelity"].as_f64().unwrap() >= target, "{n} rows, {target}: {fit}");
            assert!(fit["m"].as_u64().unwrap() >= points, "{n} rows, {target}: better with fewer points");
            points = fit["m"].as_u64().unwrap();
        }
        assert!(points < n as u64 / 2, "{points} points for {n} rows");
    }
}

#[test]
fn the_threshold_is_the_quantile_of_the_training_scores() {
    let desk = desk(200);
    for quantile in [0.95, 0.5, 0.999] {
        for flags in ["--support 20", "--method exact"] {
            let fit = desk.json(&format!("fit data.csv -o model.skpca --json --quantile {quantile} {flags}"));
            let mut scores: Vec<f64> = desk.rows("score model.skpca data.csv").iter().map(|row| row[0]).collect();
            scores.sort_by(f64::total_cmp);
            let difference = fit["threshold"].as_f64().unwrap() - linear_quantile(&scores, quantile);
            assert!(difference.abs() < 1e-12, "{quantile} {flags}: {difference:e}");
        }
    }
}

#[test]
fn a_detector_has_the_requested_false_alarm_rate_and_names_causes() {
    let desk = desk(300);
    let fit = desk.json("fit data.csv -o model.skpca --novelty --false-alarms 10% --json");
    assert_eq!((&fit["statistic"], fit["calibration"]["folds"].as_u64()), (&"mahalanobis".into(), Some(10)));
    assert!(fit["m"].as_u64().unwrap() <= 100, "{fit}");
    desk.put("fresh.csv", csv(&NAMES, &normal(7, 2000, 3)));
    let novel = desk.rows("score model.skpca fresh.csv").iter().filter(|row| row[3] == 1.0).count();
    assert!((120..280).contains(&novel), "{novel} of 2000");
    let summary = desk.ok("inspect model.skpca");
    assert!(summary.contains("10% of fresh rows score higher, by 10 folds"), "{summary}");
    desk.put("odd.csv", "c,a,b\n0.1,0.2,50\n-9,0.2,0.1\n");
    let told = desk.ok("score model.skpca odd.csv --explain 2");
    let lines: Vec<Vec<&str>> = told.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines[0][4..], ["cause1", "contribution1", "expected1", "cause2", "contribution2", "expected2"]);
    assert_eq!((lines[1][4], lines[2][4]), ("b", "c"));
    let number = |row: usize, column: usize| lines[row][column].parse::<f64>().unwrap();
    assert!(number(1, 5) > number(1, 8) && number(1, 6).abs() < 4.0, "{told}");
    let appended = desk.ok("score model.skpca odd.csv --explain 1 --append --single");
    assert!(appended.starts_with("c,a,b,score,threshold,p_value,novel,cause1,contribution1,expected1\n0.1,0.2,50,"));
    for (flags, message) in
        [("3", "must be between 0 and 1, or 0% and 100%"), ("1% --quantile 0.9", "cannot be used with")]
    {
        let run = desk.run(&format!("fit data.csv -o model.skpca --false-alarms {flags}"));
        assert!(run.code == 2 && run.stderr.contains(message), "{run:?}");
    }
}

/// `numpy.quantile` of sorted values, with its default method.
fn linear_quantile(sorted: &[f64], quantile: f64) -> f64 {
    let position = quantile * (sorted.len() - 1) as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (position - below as f64) * (sorted[above] - sorted[below])
}

#[test]
fn a_plain_fit_prints_its_summary_and_nothing_else() {
    let desk = desk(200);
    let text = desk.ok("fit data.csv -o model.skpca");
    let names: Vec<&str> = text.lines().map(|line| line[..12].trim_end()).collect();
    let expected = ["method", "kernel", "trained on", "columns", "keeps", "fidelity", "captured", "variances"];
    assert_eq!(names, [&expected[..], &["threshold", "ended", "written"]].concat());
    assert!(!text.contains(['\r', '\u{1b}', '█']), "a progress bar: {text}");
    let inspected = desk.ok("inspect model.skpca");
    let (last, first) = inspected.lines().collect::<Vec<_>>().split_last().map(|(l, f)| (*l, f.to_vec())).unwrap();
    assert_eq!(text.lines().take(10).collect::<Vec<_>>(), first);
    assert!(last.starts_with("inputs "), "{last}");
}

#[test]
fn the_summary_says_how_the_fit_ended() {
    let desk = desk(200);
    let call = "fit data.csv -o model.skpca -q 2 --method l21,fraction=0.3";
    let report = desk.json(&format!("{call} --json"))["report"].clone();
    let number = |name: &str| report[name].as_f64().unwrap();
    let (objective, gap, rounds) = (number("objective"), number("gap"), number("rounds"));
    let expected = format!("objective {objective:.6e}, gap {gap:.1e}, {rounds} rounds, converged");
    for text in [desk.ok(call), desk.ok("inspect model.skpca")] {
        let ended = text.lines().find_map(|line| line.strip_prefix("ended ")).unwrap();
        assert_eq!(ended.trim(), expected);
    }
}

#[test]
fn a_closed_pipe_is_not_a_failure() {
    let desk = desk(ROWS);
    desk.ok("fit data.csv -o model.skpca --support 20");
    for verb in ["score", "transform"] {
        let mut command = desk.command(&format!("{verb} model.skpca data.csv"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        // The pipe closes at the end of this statement; it buffers 64 KB, the output has 90.
        BufReader::with_capacity(16, child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(line.starts_with(if verb == "score" { "score,threshold" } else { "pc1,pc2" }), "{line}");
        assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(0), ""), "{verb}");
    }
}

#[test]
fn help_describes_every_command_method_and_kernel() {
    let desk = Desk::new();
    let all = desk.ok("--help");
    for command in
        ["fit", "transform", "score", "inspect", "compare", "demo", "methods", "kernels", "completions", "man"]
    {
        assert!(all.contains(&format!("\n  {command} ")), "{command}");
        for flag in ["-h", "--help"] {
            let text = desk.ok(&format!("{command} {flag}"));
            assert!(text.contains(&format!("Usage: skpca {command}")), "{command} {flag}");
        }
    }
    let text = desk.ok("fit --help");
    let names = METHODS.iter().map(|entry| entry.name).chain(KERNELS.iter().map(|entry| entry.name));
    for name in names {
        assert!(text.contains(&format!("\n  {name} ")), "{name}");
    }
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let methods = METHODS.iter().map(|entry| ("methods", entry.name, entry.summary, entry.parameters));
    let kernels = KERNELS.iter().map(|entry| ("kernels", entry.name, entry.summary, entry.parameters));
    for (command, name, summary, parameters) in methods.chain(kernels) {
        let list = flat(&desk.ok(command));
        let about = flat(&desk.ok(&format!("{command} {name}")));
        assert!(list.contains(&format!("{name} {}", flat(summary))), "{command}: {name}");
        assert!(about.contains(&flat(summary)), "{command} {name}");
        for parameter in parameters {
            let default = format!("[default: {}]", parameter.default);
            for text in [&about, &flat(&text)] {
                assert!(
                    text.contains(parameter.help) && text.contains(&default),
                    "{command} {name} {}",
                    parameter.name
                );
            }
            assert!(parameter.domain == Domain::Boolean || about.contains(&parameter.domain.to_string()), "{name}");
        }
    }
    let names: Vec<&str> = METHODS.iter().map(|entry| entry.name).collect();
    desk.refuses("methods magic", 2, &format!("unknown method 'magic': expected one of {}", names.join(", ")));
}

/// Whether a comparison without labels and with the default kernel includes the method.
fn compared(entry: &skpca::method::Entry) -> bool {
    entry.takes(&skpca::Fit::default().kernel) && !entry.capabilities.labelled
}

/// Whether such a comparison fits the method at several sizes.
fn has_sizes(entry: &skpca::method::Entry) -> bool {
    !entry.capabilities.keeps_all_rows && compared(entry)
}

#[test]
fn the_demo_compares_every_method_and_keeps_models() {
    let desk = Desk::new();
    let table = desk.ok("demo");
    desk.ok("demo -o demo/here");
    for method in METHODS.iter().filter(|entry| compared(entry)) {
        let lines =
            table.lines().filter(|line| line.trim_start_matches('*').split_whitespace().next() == Some(method.name));
        assert!(lines.count() >= 2, "{}: a line for each set", method.name);
    }
    assert!(table.contains("The page is skpca-demo.html"), "{table}");
    let page = |path: &str| String::from_utf8(desk.bytes(path)).unwrap();
    assert_eq!(page("skpca-demo.html").matches("class=\"data\"").count(), 2, "a section for each data set");
    assert!(page("demo/here/skpca-demo.html").contains("demo/here/parabola.csv"), "the command as it has to be called");
    for set in ["clusters", "parabola"] {
        let files = std::fs::read_dir(desk.path(&format!("demo/here/{set}"))).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let models: Vec<String> = names.filter(|name| name.ends_with(".skpca")).collect();
        assert_eq!(
            models.len(),
            3 * METHODS.iter().filter(|entry| has_sizes(entry)).count() + 2,
            "three sizes of each but exact and those with labels; the one recommended"
        );
        for model in models {
            assert!(desk.ok(&format!("inspect demo/here/{set}/{model}")).contains("columns      x, y\n"), "{model}");
            desk.ok(&format!("score demo/here/{set}/{model} demo/here/{set}.csv"));
        }
    }
}

#[test]
fn a_likelihood_model_computes_log_likelihoods() {
    let desk = desk(300);
    let fit = desk.json("fit data.csv -o model.skpca --method likelihood --support 12 --json");
    assert_eq!(fit["center"], false);
    let out = desk.ok("score model.skpca data.csv");
    let mut lines = out.lines();
    assert_eq!(lines.next(), Some("score,threshold,p_value,novel,log_likelihood"));
    let last = |line: &str| line.rsplit(',').next().unwrap().parse::<f64>().unwrap();
    let values: Vec<f64> = lines.map(last).collect();
    let mean = values.iter().sum::<f64>() / 300.0;
    let objective = fit["report"]["objective"].as_f64().unwrap();
    assert!((mean - objective).abs() < 1e-6 * objective.abs(), "{mean} {objective}");
    assert_eq!(
        desk.json("fit data.csv -o model.skpca --method likelihood --center --support 12 --json")["center"],
        true
    );
    assert_eq!(desk.json("fit data.csv -o model.skpca --support 12 --json")["center"], true);
}

/// Rows of two classes, one shifted against the other.
fn classes(label: impl Fn(usize) -> &'static str) -> String {
    let line = |(i, row): (usize, &Vec<f64>)| {
        let shift = if i.is_multiple_of(2) { 3.0 } else { 0.0 };
        format!("{},{},{},{}\n", row[0] + shift, row[1] - shift, row[2], label(i))
    };
    "a,b,c,kind\n".to_string() + &normal(1, 60, 3).iter().enumerate().map(line).collect::<String>()
}

#[test]
fn labels_separate_classes_and_are_not_needed_later() {
    let desk = Desk::new();
    desk.put("train.csv", classes(|i| if i.is_multiple_of(2) { "red" } else { "blue" }));
    desk.put("new.csv", csv(&NAMES, &normal(1, 60, 3)));
    for flags in [
        "--method discriminant --support 10",
        "--method discriminant",
        "--method greedy --support 10 --kernel conformal",
        "--method expansion --support 5 --kernel conformal,base=polynomial,degree=2,solver=exact",
    ] {
        let fit = desk.json(&format!("fit train.csv -o model.skpca --label kind --json {flags}"));
        let features = desk.rows("transform model.skpca train.csv");
        assert_eq!(features.len(), 60, "{flags}");
        assert_eq!(desk.rows("score model.skpca new.csv").len(), 60, "{flags}");
        if flags.contains("discriminant") {
            assert_eq!(fit["q"], 1, "{flags}");
            // One threshold separates the two classes.
            let side = |parity: usize| (0..60).filter(move |i| i % 2 == parity).map(|i| features[i][0]);
            let (low, high) = (side(0).fold(f64::MAX, f64::min), side(0).fold(f64::MIN, f64::max));
            assert!(side(1).filter(|y| (low..=high).contains(y)).count() <= 3, "{flags}");
        } else {
            let text = desk.ok("inspect model.skpca");
            assert!(text.contains("conformal,base="), "{text}");
            assert!(text.lines().all(|line| line.chars().count() < 200), "{text}");
        }
    }
}

#[test]
fn missing_labels_are_an_error() {
    let desk = Desk::new();
    desk.put("data.csv", classes(|i| if i.is_multiple_of(2) { "red" } else { "blue" }));
    desk.put("holes.csv", classes(|i| if i == 7 { "" } else { "red" }));
    desk.put("one.csv", classes(|_| "red"));
    let flags = "--method discriminant --kernel linear";
    let message =
        "--method discriminant --kernel linear: the class of each row is needed; name its column with --label";
    desk.refuses_fit(&format!("data.csv --drop kind {flags}"), 2, message);
    desk.refuses_fit(
        &format!("holes.csv --label kind {flags}"),
        1,
        "row 7 (from 0) has no label: leave it out, or name its class",
    );
    desk.refuses_fit(&format!("one.csv --label kind {flags}"), 2, "labels = 1 class: expected two classes or more");
}
