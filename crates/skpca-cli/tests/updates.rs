//! `skpca update`: updates of models, and model files that stay intact whatever happens.

use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use crate::support::{Desk, NAMES, csv, normal, npy};

fn desk(flags: &str) -> Desk {
    let desk = Desk::new();
    desk.put("first.csv", csv(&NAMES, &normal(1, 300, 3)));
    desk.put("more.csv", csv(&NAMES, &normal(2, 2500, 3)));
    desk.put("more.npy", npy(&normal(2, 2500, 3)));
    desk.ok(&format!("fit first.csv -o model.skpca --support 12 {flags}"));
    desk
}

#[test]
fn an_update_learns_every_row_in_any_format() {
    let desk = desk("--updatable");
    let about = desk.json("update model.skpca more.csv -o new.skpca --json");
    assert_eq!((&about["update"]["rows"], &about["update"]["seen"]), (&Value::from(2500), &Value::from(2800)));
    assert_eq!((&about["n"], &about["learned"]["rows"]), (&Value::from(2800), &Value::from(2800)));
    let expected = desk.bytes("new.skpca");
    desk.ok("update model.skpca more.npy -o other.skpca --quiet");
    assert!(desk.bytes("other.skpca") == expected);
    let text = desk.bytes("more.csv");
    assert_eq!(desk.feed("update model.skpca - -o piped.skpca --quiet --threads 3", &text).code, 0);
    assert!(desk.bytes("piped.skpca") == expected, "batches do not depend on how a pipe is filled");
    // Two updates give the same model as one.
    let told = desk.ok("update new.skpca first.csv -o new.skpca --forget 0.999");
    assert!(
        told.contains("learned on   new.skpca: 300 rows") && told.contains("was the threshold of the fit"),
        "{told}"
    );
    assert_eq!(desk.json("update new.skpca first.csv -o new.skpca --json")["update"]["forget"], Value::from(0.999));
    assert!(desk.ok("inspect new.skpca").contains("learned on   3400 rows"));
    desk.ok("score new.skpca more.csv -o scores.csv");
}

#[test]
fn detectors_learn_alarms_only_on_request() {
    let desk = desk("--novelty --updatable");
    let told =
        |flags: &str| desk.json(&format!("update model.skpca more.csv -o new.skpca --json {flags}"))["update"].clone();
    let (usual, all) = (told(""), told("--learn-alarms"));
    assert!(usual["alarms"].as_u64() > Some(0) && usual["learned"].as_u64() < Some(2500), "{usual}");
    assert_eq!(all["learned"], Value::from(2500));
}

#[test]
fn errors_say_how_to_make_a_model_updatable() {
    let desk = desk("");
    let why = "model.skpca: the model cannot be updated; fit it again with --updatable";
    desk.refuses("update model.skpca more.csv -o new.skpca", 1, why);
    desk.ok("fit first.csv -o model.skpca --support 12 --updatable");
    desk.refuses("update model.skpca more.csv -o more.csv", 2, "more.csv: the output would replace the input");
    let why = "forget = 1.5: expected a number above 0 and up to 1";
    desk.refuses("update model.skpca more.csv -o new.skpca --forget 1.5", 2, why);
    desk.put("other.csv", "a,b,d\n1,2,3\n");
    desk.refuses(
        "update model.skpca other.csv -o new.skpca",
        1,
        "columns do not match the model: missing 'c'; not known to it 'd'",
    );
    desk.put("empty.csv", "a,b,c\n");
    desk.refuses("update model.skpca empty.csv -o new.skpca", 1, "empty.csv: no rows");
    desk.put("hole.csv", "a,b,c\n1,2,3\n1,nan,3\n");
    desk.refuses(
        "update model.skpca hole.csv -o model.skpca",
        1,
        "hole.csv line 3, column 'b': missing value (--skip-bad skips such rows; models fitted with --missing median \
         fill them)",
    );
}

#[test]
fn files_of_models_that_are_not_updatable_are_unchanged() {
    let desk = desk("");
    let text = String::from_utf8_lossy(&desk.bytes("model.skpca")).into_owned();
    assert!(text.contains(r#"\"version\":3"#) && !text.contains("learned"));
    desk.ok("fit first.csv -o model.skpca --support 12 --updatable");
    assert!(String::from_utf8_lossy(&desk.bytes("model.skpca")).contains(r#"\"version\":4"#));
}

#[cfg(unix)]
#[test]
fn a_killed_update_leaves_the_old_model_or_the_new_one() {
    let desk = desk("--updatable");
    let old = desk.bytes("model.skpca");
    desk.ok("update model.skpca more.csv -o new.skpca --quiet");
    let new = desk.bytes("new.skpca");
    let text = desk.bytes("more.csv");
    let mut replaced = 0;
    // Killed before its input ends, and at various times after that.
    for (sent, spins) in
        [(0, 0), (text.len() / 2, 0)].into_iter().chain((0..12).map(|k| (text.len(), 1_u64 << (2 * k))))
    {
        desk.put("model.skpca", &old);
        let mut command = desk.command("update model.skpca - -o model.skpca --quiet");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(&text[..sent]).unwrap();
        if sent == text.len() {
            drop(input);
            for spin in 0..spins {
                std::hint::black_box(spin);
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let found = desk.bytes("model.skpca");
        assert!(found == old || (found == new && sent == text.len()), "{sent} bytes sent");
        replaced += usize::from(found == new);
    }
    assert!(replaced < 14, "none was killed in time");
    assert!(killed_before_the_rename(&desk, &old, &new, &text) > 0, "none was killed while the new file was written");
    desk.put("model.skpca", &old);
    assert_eq!(desk.feed("update model.skpca - -o model.skpca --quiet", &text).code, 0);
    assert!(desk.bytes("model.skpca") == new);
}

/// Counts the updates that were killed after the new file was created and before it was renamed; the file is then left
/// behind.
#[cfg(unix)]
fn killed_before_the_rename(desk: &Desk, old: &[u8], new: &[u8], text: &[u8]) -> usize {
    let temporary = || {
        let entries = std::fs::read_dir(desk.path("")).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|end| end == "tmp")).collect::<Vec<_>>()
    };
    let mut left = 0;
    for _ in 0..25 {
        desk.put("model.skpca", old);
        let mut command = desk.command("update model.skpca - -o model.skpca --quiet");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // The text is larger than the pipe buffer: once it is written, the program has checked its output.
        child.stdin.take().unwrap().write_all(text).unwrap();
        while temporary().is_empty() && child.try_wait().unwrap().is_none() {}
        child.kill().unwrap();
        child.wait().unwrap();
        let found = desk.bytes("model.skpca");
        assert!(found == old || found == new);
        for path in temporary() {
            assert!(found == old, "a temporary file is left, and the model is another");
            std::fs::remove_file(path).unwrap();
            left += 1;
        }
    }
    left
}
