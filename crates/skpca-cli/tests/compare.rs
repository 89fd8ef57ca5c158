//! `skpca compare`: its numbers agree with separate runs, skipped fits are listed, and page and JSON agree.

use crate::support::{Desk, NAMES, csv, normal, numbers};
use serde_json::{Value, json};
use skpca::method::METHODS;

/// A table with columns a, b, c and class; one of the two classes is rare and far from the other.
fn labelled(seed: u64, n: usize) -> String {
    let rows = normal(seed, n, 3);
    let line = |(i, row): (usize, &Vec<f64>)| {
        let far = i % 20 == 0;
        let x: Vec<String> = row.iter().map(|v| format!("{}", if far { 4.0 + v } else { *v })).collect();
        format!("{},{}\n", x.join(","), if far { "odd" } else { "usual" })
    };
    "a,b,c,class\n".to_string() + &rows.iter().enumerate().map(line).collect::<String>()
}

fn desk() -> Desk {
    let desk = Desk::new();
    desk.put("train.csv", labelled(1, 300));
    desk.put("test.csv", labelled(2, 200));
    desk
}

fn models(json: &Value) -> &Vec<Value> {
    json["models"].as_array().unwrap()
}

/// The flags of a model's own fit.
fn flags(model: &Value) -> String {
    let asked = match &model["asked"] {
        Value::Null => String::new(),
        asked if asked["support"].is_u64() => format!("--support {}", asked["support"]),
        asked => format!("--fidelity {}", asked["fidelity"]),
    };
    format!("--method {} {asked}", model["given"]["name"].as_str().unwrap())
}

fn close(found: &Value, expected: f64, what: &str) {
    let found = found.as_f64().unwrap_or_else(|| panic!("{what}: {found}"));
    assert!((found - expected).abs() < 1e-9, "{what}: {found} {expected}");
}

/// Methods that work with the default kernel.
fn compared() -> impl Iterator<Item = &'static skpca::method::Entry> {
    METHODS.iter().filter(|entry| entry.takes(&skpca::Fit::default().kernel))
}

#[test]
fn numbers_are_those_of_separate_fits_and_scores() {
    let desk = desk();
    let all = desk
        .json("compare train.csv --test test.csv --label class -q 4 --support 8 --fidelity 0.9 --budget 10m --json");
    let names: Vec<&str> = models(&all).iter().map(|model| model["given"]["name"].as_str().unwrap()).collect();
    assert!(compared().all(|entry| names.contains(&entry.name)), "every method is compared: {names:?}");
    assert_eq!(all["skipped"], json!([]));
    let test = desk.bytes("test.csv");
    let odd: Vec<bool> = String::from_utf8(test).unwrap().lines().skip(1).map(|line| line.ends_with("odd")).collect();
    for model in models(&all) {
        let flags = flags(model);
        let alone = desk.run(&format!("fit train.csv -o model.skpca --label class -q 4 --center {flags} --json"));
        let alone: Value = serde_json::from_str(&alone.stdout).unwrap();
        for name in ["m", "q", "fidelity", "captured", "support_per_component", "threshold", "method", "report"] {
            assert_eq!(model[name], alone[name], "{flags}: {name}");
        }
        assert_eq!(model["bytes"], desk.bytes("model.skpca").len(), "{flags}");
        let scores: Vec<f64> = desk.rows("score model.skpca test.csv").iter().map(|row| row[0]).collect();
        let features = desk.rows("transform model.skpca test.csv");
        let length: f64 = features.iter().flatten().map(|y| y * y).sum();
        close(
            &model["held_out_captured"],
            length / (length + scores.iter().sum::<f64>()),
            &format!("{flags}: held out"),
        );
        close(&model["auroc"], auroc(&scores, &odd), &format!("{flags}: AUROC"));
        let known = desk.rows("transform model.skpca train.csv");
        let right = features.iter().enumerate().filter(|(i, row)| {
            let distance = |other: &Vec<f64>| other.iter().zip(*row).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
            let nearest = (0..known.len()).min_by(|&a, &b| distance(&known[a]).total_cmp(&distance(&known[b])));
            (nearest.unwrap() % 20 == 0) == odd[*i]
        });
        close(&model["nearest_accuracy"], right.count() as f64 / 200.0, &format!("{flags}: nearest"));
    }
}

/// The AUROC by its definition: the share of pairs in the right order.
fn auroc(scores: &[f64], odd: &[bool]) -> f64 {
    let (mut pairs, mut right) = (0.0, 0.0);
    for (i, _) in odd.iter().enumerate().filter(|(_, odd)| **odd) {
        for (j, _) in odd.iter().enumerate().filter(|(_, odd)| !**odd) {
            pairs += 1.0;
            right += if scores[i] > scores[j] { 1.0 } else { 0.5 * f64::from(u8::from(scores[i] == scores[j])) };
        }
    }
    right / pairs
}

#[test]
fn the_command_recommended_gives_the_model_promised() {
    let desk = desk();
    for flags in [
        "--drop class",
        "--label class",
        "--label class --seed 3 --scale minmax -q 3 --fidelity 0.8",
        "--label class --kernel laplacian --methods likelihood",
        "--drop class --no-center",
    ] {
        let all = desk.json(&format!("compare train.csv {flags} --support 6 9 --budget 10m --json"));
        let best = &all["recommended"];
        let command = best["command"].as_str().unwrap().strip_prefix("skpca ").unwrap();
        let alone = desk.run(&format!("{command} --json"));
        assert_eq!(alone.code, 0, "{command}: {}", alone.stderr);
        let alone: Value = serde_json::from_str(&alone.stdout).unwrap();
        for name in ["m", "q", "fidelity", "threshold", "n", "kernel"] {
            assert_eq!(best[name], alone[name], "{command}: {name}");
        }
        let center = if flags.contains("--no-center") { json!(false) } else { json!(true) };
        assert!(models(&all).iter().chain([best]).all(|model| model["center"] == center), "the same centring for all");
        assert_eq!(best["n"], 300, "all rows, including held-out ones");
        assert_eq!((&all["fitted"], &all["judges"]), (&json!(225), &json!(75)));
    }
}

#[test]
fn with_labels_every_row_is_held_out_once_and_errors_are_reported() {
    let desk = desk();
    let flags = "--label class -q 2 --methods landmarks greedy --support 6 --budget 10m";
    let all = desk.json(&format!("compare train.csv {flags} --json"));
    assert_eq!((&all["splits"], &all["fitted"], &all["judges"]), (&json!(4), &json!(225), &json!(75)));
    for model in models(&all) {
        let error = model["auroc_error"].as_f64().unwrap();
        // 15 of the 300 rows are odd: with one split only, half a row of 4 would be 0.125.
        assert!(error > 0.0 && error < 0.1, "{error}");
        assert!(model["accuracy_error"].as_f64().unwrap() < 0.03);
    }
    assert!(
        desk.ok(&format!("compare train.csv {flags}")).contains("225 fitted, 75 held out to judge, 4 times in turn")
    );
    let one = desk.json("compare train.csv --drop class -q 2 --methods landmarks --support 6 --json");
    assert_eq!((&one["splits"], &one["baselines"]), (&json!(1), &json!([])), "without labels nothing is compared");
}

#[test]
fn baselines_agree_with_their_definitions() {
    let desk = desk();
    let flags = "--test test.csv --label class -q 2 --methods landmarks --support 6";
    let all = desk.json(&format!("compare train.csv {flags} --json"));
    let named = |name: &str| all["baselines"].as_array().unwrap().iter().find(|b| b["name"] == name).unwrap().clone();
    close(&named("majority class")["nearest_accuracy"], 0.95, "one of twenty is odd");
    assert!(named("majority class")["auroc"].is_null());
    // Raw columns, standardised by the fitted rows: the fifth nearest distance detects the odd rows.
    let table = |name: &str| -> Vec<Vec<f64>> {
        let text = String::from_utf8(desk.bytes(name)).unwrap();
        text.lines().skip(1).map(|line| line.split(',').take(3).map(|v| v.parse().unwrap()).collect()).collect()
    };
    let (train, test) = (table("train.csv"), table("test.csv"));
    let moments: Vec<(f64, f64)> = (0..3)
        .map(|k| {
            let mean = train.iter().map(|row| row[k]).sum::<f64>() / 300.0;
            (mean, (train.iter().map(|row| (row[k] - mean).powi(2)).sum::<f64>() / 300.0).sqrt())
        })
        .collect();
    let score = |row: &Vec<f64>| {
        let square = |other: &Vec<f64>| (0..3).map(|k| ((row[k] - other[k]) / moments[k].1).powi(2)).sum::<f64>();
        let mut squares: Vec<f64> = train.iter().map(square).collect();
        squares.sort_by(f64::total_cmp);
        squares[4].sqrt()
    };
    let odd: Vec<bool> = (0..200).map(|i| i % 20 == 0).collect();
    close(&named("raw columns")["auroc"], auroc(&test.iter().map(score).collect::<Vec<_>>(), &odd), "KNN");
    // Linear PCA is kernel PCA with the linear kernel.
    desk.ok("fit train.csv -o pca.skpca --label class -q 2 --method exact --kernel linear --quiet");
    let scores: Vec<f64> = desk.rows("score pca.skpca test.csv").iter().map(|row| row[0]).collect();
    close(&named("linear PCA")["auroc"], auroc(&scores, &odd), "linear PCA");
    let text = desk.ok(&format!("compare train.csv {flags}"));
    assert!(
        text.contains("for comparison") && text.contains("majority class") && text.contains("linear PCA"),
        "{text}"
    );
}

#[test]
fn a_normal_class_is_fitted_alone_and_all_others_are_novel() {
    let desk = desk();
    let train = String::from_utf8(desk.bytes("train.csv")).unwrap();
    let mut odd = 0;
    let lines = train.lines().map(|line| {
        odd += usize::from(line.ends_with("odd"));
        if line.ends_with("odd") && odd % 2 == 0 { line.replace("odd", "late") } else { line.to_string() }
    });
    desk.put("three.csv", lines.collect::<Vec<_>>().join("\n") + "\n");
    let flags = "--label class --normal usual -q 2 --methods landmarks greedy --support 6";
    let all = desk.json(&format!("compare three.csv {flags} --json"));
    assert_eq!(all["fitted"], json!(285 - 71), "a quarter of the usual rows is held out");
    assert!(models(&all).iter().all(|model| model["auroc"].as_f64().unwrap() > 0.9));
    assert!(models(&all).iter().all(|model| model["linear_accuracy"].is_null()), "one class has no classifier");
    let baselines: Vec<&str> =
        all["baselines"].as_array().unwrap().iter().map(|b| b["name"].as_str().unwrap()).collect();
    assert_eq!(baselines, ["raw columns", "linear PCA"], "nor a most frequent one");
    assert!(!desk.ok(&format!("compare three.csv {flags}")).contains("most frequent class"));
    let best = &all["recommended"];
    assert_eq!(best["n"], 285, "all usual rows, no other");
    let python = best["python"].as_str().unwrap();
    assert!(python.starts_with("KernelNovelty(2, ") && python.ends_with(".fit(X[y == \"usual\"])"), "{python}");
    let command = best["command"].as_str().unwrap().strip_prefix("skpca ").unwrap();
    assert!(command.contains("--label class --normal usual"), "{command}");
    let alone: Value = serde_json::from_str(&desk.run(&format!("{command} --json")).stdout).unwrap();
    for name in ["n", "m", "fidelity", "threshold"] {
        assert_eq!(best[name], alone[name], "{command}: {name}");
    }
    let none = "--normal none: the label has no such value; it has odd, usual, late";
    desk.refuses("compare three.csv --label class --normal none", 1, none);
    desk.refuses("fit three.csv -o m.skpca --label class --normal none", 1, "--normal none: no row has this label");
    let one = "--method discriminant --kernel rbf: several classes are needed, --normal leaves one";
    desk.refuses("fit three.csv -o m.skpca --label class --normal odd --method discriminant", 2, one);
    let needs = "--methods discriminant: name the column of classes with --label, and no --normal";
    desk.refuses("compare three.csv --label class --normal usual --methods discriminant", 2, needs);
}

#[test]
fn the_python_call_is_a_detector_if_novelty_decides_and_a_transformer_if_classes_do() {
    let desk = desk();
    let novelty = desk.json("compare train.csv --label class -q 2 --methods greedy --support 6 --json");
    let python = novelty["recommended"]["python"].as_str().unwrap();
    assert!(python.starts_with("KernelNovelty(2, ") && python.contains("scaling=\"standard\""), "{python}");
    let rows = normal(3, 120, 3);
    let lines =
        rows.iter().enumerate().map(|(i, row)| format!("{},{},{},{}\n", row[0], row[1], row[2], ["x", "y"][i % 2]));
    desk.put("noise.csv", "a,b,c,class\n".to_string() + &lines.collect::<String>());
    let all = desk.json("compare noise.csv --label class -q 3 --methods landmarks greedy expansion --json");
    let best = &all["recommended"];
    assert!(best["python"].as_str().unwrap().starts_with("SparseKernelPCA(3, "));
    // Random labels decide nothing, so the smallest model that reaches the fidelity is recommended.
    assert!(best["reason"].as_str().unwrap().contains("too few rows to tell"), "{}", best["reason"]);
    let text = desk.ok("compare noise.csv --label class -q 3 --methods greedy");
    assert!(text.contains("classify no better than always naming the most frequent class"), "{text}");
}

#[test]
fn rough_scores_are_explained() {
    let desk = Desk::new();
    // Two distant clusters and one point, which cannot represent the mean.
    let rows = normal(5, 200, 1).into_iter().enumerate();
    let rows: Vec<Vec<f64>> = rows.map(|(i, row)| vec![0.01 * row[0] + if i % 2 == 0 { 1.0 } else { -1.0 }]).collect();
    desk.put("data.csv", csv(&["a"], &rows));
    let flags = "-q 1 --kernel rbf,gamma=5";
    let text = desk.ok(&format!("compare data.csv {flags} --methods landmarks --support 1 --fidelity 0.01"));
    assert!(text.contains("scores of the recommended model are rough: each may be off by "), "{text}");
    let fine = desk.ok(&format!("compare data.csv {flags} --methods exact"));
    assert!(!fine.contains("are rough"), "{fine}");
}

#[test]
fn page_and_json_of_one_run_agree() {
    let desk = desk();
    let all = desk.json("compare train.csv --label class -q 3 --methods greedy l21 exact -o report.html --json");
    let page = String::from_utf8(desk.bytes("report.html")).unwrap();
    let (_, rest) = page.split_once("<script type=\"application/json\" class=\"data\">").unwrap();
    let (embedded, _) = rest.split_once("</script>").unwrap();
    assert_eq!(serde_json::from_str::<Value>(embedded).unwrap(), all);
    for model in models(&all) {
        let shown = format!("<td data-value=\"{}\">{:.4}</td>", model["fidelity"], model["fidelity"].as_f64().unwrap());
        assert!(page.contains(&shown), "{shown}");
    }
    assert!(page.contains(best_command(&all)));
    assert!(!page.contains("http"), "the page needs no network");
}

fn best_command(all: &Value) -> &str {
    all["recommended"]["command"].as_str().unwrap()
}

#[test]
fn what_does_not_fit_the_budget_is_listed() {
    let desk = Desk::new();
    desk.put("data.csv", csv(&NAMES, &normal(1, 3000, 3)));
    // Four sizes and a fidelity, or one fit of all rows.
    let unlabelled = compared().filter(|entry| !entry.capabilities.labelled);
    let cases: usize = unlabelled.map(|entry| if entry.capabilities.keeps_all_rows { 1 } else { 5 }).sum();
    for budget in ["0.3s", "2s", "0.000001s"] {
        let all = desk.json(&format!("compare data.csv --budget {budget} --json"));
        let (done, skipped) = (models(&all).len(), all["skipped"].as_array().unwrap());
        assert_eq!(done + skipped.len(), cases, "{budget}: every case is in the table or in the list");
        assert!(!skipped.is_empty(), "{budget}");
        assert!(skipped.iter().all(|s| !s["why"].as_str().unwrap().is_empty()));
        assert!(done > 0 || all["recommended"].is_null(), "{budget}: nothing to recommend");
    }
    assert!(
        desk.ok("compare data.csv --budget 0.000001s")
            .contains("No model was fitted to all rows in time: raise --budget")
    );
}

#[test]
fn a_model_recommended_for_its_fidelity_reaches_it() {
    let desk = Desk::new();
    for seed in 0..20 {
        desk.put("data.csv", csv(&NAMES, &normal(seed, 60, 3)));
        let flags = "-q 3 --support 5,6,7,8,9 --methods greedy --fidelity 0.95 --budget 10m";
        let best = &desk.json(&format!("compare data.csv {flags} --json"))["recommended"];
        let reason = best["reason"].as_str().unwrap();
        let holds = best["fidelity"].as_f64().unwrap() >= 0.95;
        assert!(holds || !reason.contains("fewest points"), "seed {seed}: {reason}");
    }
}

#[test]
fn methods_with_a_fixed_size_are_tried_once() {
    let desk = desk();
    let all =
        desk.json("compare train.csv --drop class -q 2 --methods energy,alpha=0.3 greedy greedy --support 6 --json");
    let names: Vec<&str> = models(&all).iter().map(|model| model["given"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["energy", "greedy", "greedy"], "greedy: a size and a fidelity");
    assert_eq!(models(&all)[0]["asked"], Value::Null);
    let text = desk.ok("compare train.csv --drop class -q 2 --methods energy,alpha=0.3");
    let line = text.lines().find(|line| line.contains("energy,alpha=0.3  ")).unwrap();
    assert!(line.contains("as given"), "{text}");
}

#[test]
fn a_closed_pipe_does_not_panic() {
    let desk = desk();
    for words in [
        "demo",
        "compare train.csv --drop class --methods landmarks --json",
        "compare train.csv --drop class --methods landmarks",
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = desk.command(words).stdout(full).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (output.status.code(), error.as_str()),
            (Some(1), "error: No space left on device (os error 28)\n"),
            "{words}"
        );
    }
}

#[test]
fn inputs_are_never_replaced() {
    let desk = desk();
    desk.ok("fit train.csv --drop class -o model.skpca --support 5");
    for words in [
        "compare train.csv --drop class -o ./train.csv",
        "compare train.csv --test test.csv --drop class -o test.csv",
        "fit train.csv --drop class -o train.csv",
        "inspect model.skpca --html model.skpca",
        "score model.skpca train.csv -o train.csv",
    ] {
        let output = words.split(' ').next_back().unwrap();
        desk.refuses(words, 2, &format!("{output}: the output would replace the input"));
    }
}

#[test]
fn models_are_kept_with_the_list_of_held_out_rows() {
    let desk = desk();
    let all = desk.json("compare train.csv --label class -q 3 --methods greedy --support 5 --keep kept --json");
    assert!(desk.ok("inspect kept/greedy-5.skpca").contains("keeps        5 points for 3 components"));
    let rows = numbers(&String::from_utf8(desk.bytes("kept/rows.csv")).unwrap());
    let held: Vec<usize> = (0..rows.len()).filter(|&i| rows[i][0] == 1.0).collect();
    assert_eq!(all["held_out"], json!(held));
    assert_eq!(desk.json("inspect kept/recommended.skpca --json")["n"], 300);
    // A kept model ignores the label column.
    desk.ok("score kept/greedy-5.skpca train.csv");
}

#[test]
fn wrong_calls_are_rejected() {
    let desk = desk();
    let methods: Vec<&str> = METHODS.iter().map(|entry| entry.name).collect();
    desk.refuses(
        "compare train.csv --drop class --methods nonsense",
        2,
        &format!("unknown method 'nonsense': expected one of {}", methods.join(", ")),
    );
    desk.refuses("compare train.csv --drop class --hold-out 1", 2, "--hold-out 1: expected a share from 0 to 0.9");
    desk.refuses(
        "compare train.csv --drop class --methods discriminant",
        2,
        "--methods discriminant: name the column of classes with --label, and no --normal",
    );
    desk.refuses(
        "compare train.csv --drop class --kernel conformal",
        2,
        "--kernel conformal: name the column of classes with --label, and no --normal",
    );
    desk.refuses(
        "compare train.csv --label a --drop class",
        1,
        "the label has 300 values on 300 rows: it does not name classes; leave it out with --drop",
    );
    desk.refuses("compare train.csv --drop class --support 0", 2, "support = 0: expected an integer ≥ 1");
    desk.refuses(
        "compare train.csv --drop class --fidelity 2",
        2,
        "fidelity = 2: expected a number above 0 and up to 1",
    );
    desk.put("other.csv", csv(&["a", "b", "class"], &normal(1, 50, 3)));
    let differ = "other.csv: its columns are not those of train.csv";
    desk.refuses("compare train.csv --drop class --test other.csv", 1, differ);
    desk.refuses(
        "compare train.csv --drop class -o no/report.html",
        1,
        "no/report.html: No such file or directory (os error 2)",
    );
    desk.put("new.csv", labelled(2, 40).replace("odd", "strange"));
    let strange = "new.csv: row 0 (from 0) is of class 'strange', which the rows fitted do not have";
    desk.refuses("compare train.csv --label class --test new.csv", 1, strange);
    desk.put("one.csv", labelled(2, 40).replace("odd", "usual"));
    desk.refuses("compare one.csv --label class", 1, "the label has one class only: leave it out with --drop");
    desk.put("gap.csv", labelled(2, 40).replace("odd", ""));
    desk.refuses("compare gap.csv --label class", 1, "row 0 (from 0) has no label: leave it out, or name its class");
    desk.put("file", "");
    desk.refuses("compare train.csv --drop class --keep file", 1, "file: File exists (os error 17)");
    let wrong = desk.run("compare train.csv --budget soon");
    assert!(wrong.code == 2 && wrong.stderr.contains("expected a time such as 90s, 5m or 1h"), "{}", wrong.stderr);
}

#[test]
fn odd_tables_are_compared_too() {
    let desk = Desk::new();
    let flat: Vec<Vec<f64>> = normal(1, 40, 1).iter().map(|row| vec![row[0], 1.0]).collect();
    desk.put("flat.csv", csv(&["a", "b"], &flat));
    desk.put("twins.csv", csv(&NAMES, &vec![normal(1, 5, 3); 8].concat()));
    desk.put("few.csv", csv(&NAMES, &normal(1, 3, 3)));
    let large: Vec<Vec<f64>> = normal(2, 40, 1).iter().map(|row| vec![row[0], 1e150]).collect();
    desk.put("large.csv", csv(&["a", "b"], &large));
    let end: Vec<Vec<f64>> = (0..30).map(|i| vec![if i % 2 == 0 { 1.5e308 } else { -1.5e308 }, f64::from(i)]).collect();
    desk.put("end.csv", csv(&["a", "b"], &end));
    for table in ["flat.csv", "twins.csv", "few.csv", "large.csv", "end.csv"] {
        let all = desk.json(&format!("compare {table} -o page.html --json"));
        let page = String::from_utf8(desk.bytes("page.html")).unwrap();
        assert!(!page.replace("isNaN", "").contains("NaN") && !page.contains("inf "), "{table}");
        assert!(!models(&all).is_empty() && !all["recommended"].is_null(), "{table}");
    }
    desk.put("same.csv", "a,b\n".to_string() + &"1,2\n".repeat(20));
    desk.refuses("compare same.csv --json", 1, "there is nothing to fit: all rows are the same");
}

#[test]
fn a_model_is_drawn_without_its_data() {
    let desk = desk();
    desk.ok("fit train.csv --drop class,c -o model.skpca --support 9 -q 3 --quiet");
    assert!(desk.ok("inspect model.skpca --html page.html").ends_with("drawn        page.html\n"));
    let page = String::from_utf8(desk.bytes("page.html")).unwrap();
    assert_eq!(
        page.matches("<figure").count(),
        3 + 3 + 1,
        "scatter, scree and scores; three components and the novelty"
    );
    assert_eq!(page.matches("class=\"mark kept\"").count(), 9);
}

#[test]
fn quiet_runs_print_only_results() {
    let desk = desk();
    let flags = "--drop class -q 3 --methods landmarks --support 5";
    assert_eq!(desk.ok(&format!("compare train.csv {flags} -o report.html --quiet")), "");
    assert_eq!(desk.ok("fit train.csv --drop class -o model.skpca --support 9 --quiet"), "");
    assert_eq!(desk.ok("--quiet demo"), "");
    let table = desk.ok(&format!("compare train.csv {flags}"));
    assert!(!table.contains('\x1b'), "colours only on a terminal");
    assert!(table.contains("* landmarks"), "{table}");
}

#[test]
fn shells_and_man_know_every_command() {
    let desk = Desk::new();
    let commands = ["fit", "transform", "score", "inspect", "compare", "demo"];
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = desk.ok(&format!("completions {shell}"));
        assert!(commands.iter().all(|command| text.contains(command)) && text.contains("budget"), "{shell}");
    }
    assert!(desk.ok("man").starts_with(".ie"), "a manual page");
    desk.ok("man -o pages");
    for command in commands {
        let page = String::from_utf8(desk.bytes(&format!("pages/skpca-{command}.1"))).unwrap();
        assert!(page.contains(".TH"), "{command}");
    }
}
