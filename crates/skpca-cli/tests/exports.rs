//! `skpca export`: the C header compiles without warnings and agrees with the program, and errors name what cannot be
//! exported.

use std::process::Command;

use crate::support::{Desk, NAMES, csv, normal, numbers};

/// Prints features, score, p-value, T² and alarm of each row of standard input.
const MAIN: &str = r#"
#include <stdio.h>
#include "model.h"

int main(void)
{
    model_number x[MODEL_INPUTS];
    double value;
    int k = 0;
    printf("header\n");
    while (scanf("%lf", &value) == 1) {
        x[k++] = (model_number)value;
        if (k == MODEL_INPUTS) {
            const model_result result = model_evaluate(x);
            for (k = 0; k < MODEL_COMPONENTS; k++) {
                printf("%.17g,", (double)result.features[k]);
            }
            printf("%.17g,%.17g,", (double)result.score, (double)model_p_value(result.score));
            printf("%.17g,%d\n", (double)T2, result.alarm);
            k = 0;
        }
    }
    return 0;
}
"#;

/// Results of the compiled header for some rows; T² is 0 if the model has none.
fn compiled(desk: &Desk, rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let has_t2 = String::from_utf8(desk.bytes("model.h")).unwrap().contains(" t2;");
    desk.put("main.c", MAIN.replace("T2", if has_t2 { "result.t2" } else { "0" }));
    let flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1", "main.c", "-o", "main", "-lm"];
    let cc = Command::new("cc").args(flags).current_dir(desk.path("")).output().unwrap();
    assert!(cc.status.success(), "{}", String::from_utf8_lossy(&cc.stderr));
    let text: String = rows.iter().map(|row| row.iter().map(|v| format!("{v:e} ")).collect::<String>()).collect();
    desk.put("rows.txt", text);
    let input = std::fs::File::open(desk.path("rows.txt")).unwrap();
    let run = Command::new(desk.path("main")).stdin(input).output().unwrap();
    numbers(&String::from_utf8(run.stdout).unwrap())
}

/// The largest difference in a column, relative to its largest value.
fn error(found: &[Vec<f64>], expected: &[Vec<f64>], column: usize) -> f64 {
    assert_eq!(found.len(), expected.len());
    let of = |rows: &[Vec<f64>], i: usize| rows[i][column];
    let largest = (0..expected.len()).map(|i| of(expected, i).abs()).fold(0.0, f64::max);
    (0..expected.len()).map(|i| (of(found, i) - of(expected, i)).abs() / largest).fold(0.0, f64::max)
}

#[test]
fn the_header_agrees_with_the_program() {
    let (train, rows) = (normal(1, 300, 3), normal(2, 10_000, 3));
    let calls = [
        "--support 12",
        "--support 12 --kernel laplacian --method landmarks",
        "--support 12 --kernel polynomial --method landmarks",
        "--support 3 --kernel linear --method landmarks -q 2",
        "--support 3 --kernel cosine --method landmarks -q 2",
        "--support 12 --kernel sigmoid,gamma=1e-7,coef0=0 --method landmarks -q 2",
        "--support 12 --kernel conformal --label class --method landmarks",
        "--support 12 --method likelihood",
        "--support 12 --method elastic-net,refit=false -q 3",
        "--support 12 --scale none --no-center",
        "--support 12 --novelty",
        "--support 3 --novelty --kernel cosine -q 2 --method landmarks",
        "--support 12 --false-alarms 0.1%",
    ];
    for call in calls {
        let desk = Desk::new();
        let labelled: String = csv(&NAMES, &train)
            .lines()
            .enumerate()
            .map(|(i, line)| match i {
                0 => format!("{line},class\n"),
                _ => format!("{line},{}\n", if train[i - 1][0] * train[i - 1][1] > 0.0 { "same" } else { "other" }),
            })
            .collect();
        desk.put("train.csv", labelled);
        desk.put("rows.csv", csv(&NAMES, &rows));
        let drop = if call.contains("--label") { "" } else { "--drop class" };
        desk.ok(&format!("fit train.csv -o model.skpca --quiet {drop} {call}"));
        let (features, novelty) =
            (desk.rows("transform model.skpca rows.csv"), desk.rows("score model.skpca rows.csv"));
        let q = features[0].len();
        let about = desk.json("inspect model.skpca --json");
        let noise = about["noise"].as_f64().unwrap();
        let correlated = call.contains("refit=false");
        let t2 = |features: &[f64]| -> f64 {
            let variances = about["explained_variance"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap() + noise);
            if correlated { 0.0 } else { features.iter().zip(variances).map(|(y, v)| y * y / v).sum() }
        };
        let expected: Vec<Vec<f64>> = features
            .into_iter()
            .zip(&novelty)
            .map(|(features, novelty)| {
                let t2 = t2(&features);
                [features, vec![novelty[0], novelty[2], t2, novelty[3]]].concat()
            })
            .collect();
        for (flag, tolerance) in [("--double", 1e-12), ("", 1e-5)] {
            desk.ok(&format!("export model.skpca -o model.h {flag} --quiet"));
            let found = compiled(&desk, &rows);
            for column in 0..=q {
                let off = error(&found, &expected, column);
                assert!(off <= tolerance, "{call} {flag}, column {column}: {off:.1e}");
            }
            if !correlated {
                let off = error(&found, &expected, q + 2);
                assert!(off <= 1e3 * tolerance, "{call} {flag}, T²: {off:.1e}");
            }
            let different = found.iter().zip(&expected).filter(|(a, b)| a[q + 3] != b[q + 3]).count();
            assert!(different <= if flag.is_empty() { 3 } else { 0 }, "{call} {flag}: {different} other alarms");
            // Lower only by rounding, which may move a score past one of the exported ones.
            let (mut lower, mut higher) = (0, 0);
            for (found, p) in found.iter().map(|row| row[q + 1]).zip(expected.iter().map(|row| row[q + 1])) {
                lower += usize::from(found < p * (1.0 - 1e-6));
                higher += usize::from(found > p + (0.05 * p).min(0.01) + 1e-6 * p);
            }
            assert!(lower + higher <= 20, "{call} {flag}: {lower} lower p-values, {higher} higher");
        }
        let alarms = compiled(&desk, &[vec![f64::NAN, 0.0, 0.0]]);
        assert_eq!(alarms[0][q + 3], 1.0, "{call}: a row that is no number");
    }
}

#[test]
fn names_from_data_cannot_end_the_comment() {
    let desk = Desk::new();
    let text = csv(&["*/ int x; /*", "b\\\"??/", "NAME"], &normal(1, 30, 3));
    desk.put("train.csv", text.replacen("b\\\"??/", "\"b\\\"\"??/\"", 1));
    desk.ok("fit train.csv -o model.skpca --support 4 -q 2 --quiet");
    desk.ok("export model.skpca -o model.h --quiet");
    let text = String::from_utf8(desk.bytes("model.h")).unwrap();
    assert!(text.contains("* / int x; / *") && text.contains(r#""NAME""#), "{text}");
    assert_eq!(compiled(&desk, &normal(3, 5, 3)).len(), 5);
}

#[test]
fn what_cannot_be_exported_is_rejected_by_name() {
    let desk = Desk::new();
    desk.put("train.csv", csv(&NAMES, &normal(1, 30, 3)));
    desk.ok("fit train.csv -o model.skpca --support 4 -q 2 --quiet");
    let extension = |found| format!("cannot export to '.{found}': the extension must be .onnx or .h or .sql");
    desk.refuses("export model.skpca -o model.pmml", 2, &extension("pmml"));
    desk.refuses("export model.skpca -o model", 2, &extension(""));
    desk.refuses("export none.skpca -o model.onnx", 1, "none.skpca: No such file or directory (os error 2)");
    desk.refuses(
        "export train.csv -o model.onnx",
        1,
        "train.csv: not a usable model file: its header is larger than any model's; is it a model file?",
    );
    desk.refuses("export model.skpca -o model.onnx --table readings", 2, "--table is for .sql files: leave it out");
    desk.refuses("export model.skpca -o model.sql --name pump", 2, "--name is for .h files: leave it out");
    let message = "'2nd pump' cannot begin names in C: it must be letters, digits and '_', no digit first";
    let run = desk.command("export model.skpca -o model.h --name").arg("2nd pump").output().unwrap();
    assert_eq!((run.status.code(), String::from_utf8(run.stderr).unwrap()), (Some(2), format!("error: {message}\n")));
    let wide = csv(&NAMES, &crate::support::scaled(&normal(1, 30, 3), 1e60));
    desk.put("wide.csv", wide);
    desk.ok("fit wide.csv -o wide.skpca --support 4 -q 2 --quiet");
    let message = "the scale of column a is beyond 32-bit numbers: export with --double (double=True)";
    desk.refuses("export wide.skpca -o wide.onnx", 2, message);
    desk.ok("export wide.skpca -o wide.onnx --double --quiet");
}
