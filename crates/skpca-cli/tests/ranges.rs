//! New tables: unknown columns are left out, and rows far outside the training range cause a warning.

use crate::support::{Desk, NAMES, csv, normal, scaled};

/// The warning about rows far outside.
const FAR: &str = "is far outside the range of the training rows: ";

fn desk_with_model() -> Desk {
    let desk = Desk::new();
    desk.put("data.csv", csv(&NAMES, &normal(1, 200, 3)));
    desk.ok("fit data.csv -o model.skpca --support 9 --quiet");
    desk
}

#[test]
fn columns_that_the_model_does_not_know_are_left_out() {
    let desk = desk_with_model();
    let expected = desk.ok("score model.skpca data.csv");
    let text = String::from_utf8(desk.bytes("data.csv")).unwrap();
    let lines = text
        .lines()
        .enumerate()
        .map(|(i, line)| if i == 0 { format!("note,{line},d") } else { format!("abc,{line},{i}") });
    desk.put("more.csv", lines.collect::<Vec<_>>().join("\n") + "\n");
    assert_eq!(desk.ok("score model.skpca more.csv"), expected);
    assert_eq!(desk.ok("score model.skpca more.csv --drop note"), expected);
    let appended = desk.ok("score model.skpca more.csv --append");
    assert!(appended.starts_with("note,a,b,c,d,score,"), "{appended}");
    // If a column is missing, nothing is left out, since it may have another name.
    desk.put("misspelt.csv", csv(&["a", "bb", "c"], &normal(1, 5, 3)));
    let message = "columns do not match the model: missing 'b'; not known to it 'bb'";
    desk.refuses("score model.skpca misspelt.csv", 1, message);
}

#[test]
fn rows_far_outside_the_range_cause_one_warning() {
    let desk = desk_with_model();
    for command in ["score", "transform"] {
        assert_eq!(desk.run(&format!("{command} model.skpca data.csv")).stderr, "");
        desk.put("far.csv", csv(&["b", "a", "c"], &scaled(&normal(1, 9000, 3), 1000.0)));
        let told = desk.run(&format!("{command} model.skpca far.csv")).stderr;
        assert!(told.starts_with("warning: column '") && told.matches(FAR).count() == 1, "{told}");
        assert_eq!(desk.run(&format!("{command} model.skpca far.csv --quiet")).stderr, "");
    }
}
