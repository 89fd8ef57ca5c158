//! `skpca path`: a table of sizes or of penalties, each row of which agrees with a fit.

use crate::support::{Desk, NAMES, csv, normal, numbers};

fn desk() -> Desk {
    let desk = Desk::new();
    desk.put("data.csv", csv(&NAMES, &normal(1, 120, 3)));
    desk
}

#[test]
fn sizes_grow_and_so_does_the_fidelity() {
    let desk = desk();
    for method in ["", "--method greedy"] {
        let text = desk.ok(&format!("path data.csv -q 2 --most 6 {method}"));
        assert!(text.starts_with("points,fidelity\n"), "{text}");
        let rows = numbers(&text);
        assert_eq!(rows.last().unwrap()[0], 6.0);
        assert!(rows.windows(2).all(|pair| pair[0][0] < pair[1][0] && pair[0][1] <= pair[1][1]), "{text}");
        // A fit of that size optimises further than the path, which only passes through it.
        let model = desk.run(&format!("fit data.csv -o model.skpca -q 2 --support 6 {method} --json"));
        let fidelity = serde_json::from_str::<serde_json::Value>(&model.stdout).unwrap()["fidelity"].as_f64().unwrap();
        assert!(fidelity >= rows.last().unwrap()[1] - 1e-2, "{fidelity} {text}");
    }
}

#[test]
fn a_step_agrees_with_a_fit_with_its_penalty() {
    let desk = desk();
    let text = desk.ok("path data.csv -q 2 --method l21 --shares 0.5,0.2");
    assert!(text.starts_with("share,penalty,points,fidelity,objective,gap,converged\n"), "{text}");
    let rows = numbers(&text);
    assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), [0.5, 0.2]);
    let first = &rows[0];
    let json = desk.run(&format!("fit data.csv -o model.skpca -q 2 --method l21,penalty={} --json", first[1]));
    let model: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(model["m"].as_f64(), Some(first[2]));
    assert!((model["fidelity"].as_f64().unwrap() - first[3]).abs() < 1e-9, "{first:?} {}", model["fidelity"]);
    assert!((model["report"]["objective"].as_f64().unwrap() / first[4] - 1.0).abs() < 1e-6, "{first:?}");
}

#[test]
fn twenty_penalties_by_default_and_output_to_a_file() {
    let desk = desk();
    assert_eq!(desk.ok("path data.csv -q 2 --method elastic-net -o path.csv --quiet"), "");
    let rows = numbers(&String::from_utf8(desk.bytes("path.csv")).unwrap());
    assert_eq!(rows.len(), 20);
    assert!((rows[0][0], rows[0][2], rows[0][3]) == (1.0, 0.0, 0.0), "the largest selects nothing: {:?}", rows[0]);
    assert!((rows[19][0] - 0.01).abs() < 1e-12 && rows[19][2] > 10.0);
}

#[test]
fn the_wrong_kind_of_path_is_an_error() {
    let desk = desk();
    desk.refuses("path data.csv --shares 0.1", 2, "--shares: expansion has a path of sizes; see --most");
    desk.refuses("path data.csv --method l1 --most 9", 2, "--most: l1 has a path of penalties; see --shares");
    desk.refuses("path data.csv --most 0", 2, "most = 0: expected an integer ≥ 1");
    desk.refuses("path data.csv -o data.csv", 2, "data.csv: the output would replace the input");
    let none = "method = landmarks: expected expansion or greedy: others have no such path";
    desk.refuses("path data.csv --method landmarks", 2, none);
}
