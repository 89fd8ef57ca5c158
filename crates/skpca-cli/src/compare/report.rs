//! The report of `compare`: a table, a recommendation, a command line, and the same as JSON.

use serde_json::{Map, Value, json};
use skpca::{Model, Target, format};

use super::baselines::Baseline;
use super::choice::{Reason, SIGNIFICANT};
use super::evidence::{Estimate, difference, quality};
use super::judges::{Judged, Measure};
use super::{Case, Cell, Comparison, Recommended, Skipped};
use crate::failure::Failure;
use crate::inspect::counted;
use crate::memory;
use crate::terminal::{Screen, aligned, time};

/// A column of the table of models.
pub struct Column {
    /// Heading on the page.
    pub title: &'static str,
    /// Heading in text.
    pub heading: &'static str,
    pub about: &'static str,
    pub text: fn(&Cell) -> String,
    /// The number to sort by, if the column is numeric.
    pub number: Option<fn(&Cell) -> Option<f64>>,
}

/// All possible columns.
const COLUMNS: &[Column] = &[
    Column {
        title: "Method",
        heading: "method",
        about: "how points are chosen",
        text: |cell| cell.case.method.to_string(),
        number: None,
    },
    Column {
        title: "Points kept",
        heading: "points",
        about: "stored points; scoring a row takes one kernel value for each",
        text: |cell| cell.model.m().to_string(),
        number: Some(|cell| Some(cell.model.m() as f64)),
    },
    Column {
        title: "Fidelity",
        heading: "fidelity",
        about: "captured variance, as a share of what exact kernel PCA captures",
        text: |cell| format!("{:.4}", cell.model.parts().fidelity),
        number: Some(|cell| Some(cell.model.parts().fidelity)),
    },
    Column {
        title: "Novelty: AUROC",
        heading: "AUROC",
        about: "how well the score separates novel rows from the others, on held-out rows: 1 is perfect, 0.5 is chance",
        text: |cell| shown(auroc(cell)),
        number: Some(auroc),
    },
    Column {
        title: "Nearest-neighbour accuracy",
        heading: "1-NN",
        about: "share of held-out rows (at most 2,000) whose nearest fitted row (of at most 4,000) has the same class",
        text: |cell| shown(nearest(cell)),
        number: Some(nearest),
    },
    Column {
        title: "Linear accuracy",
        heading: "linear",
        about: "share of the same rows that a linear classifier (least squares) gets right",
        text: |cell| shown(linear(cell)),
        number: Some(linear),
    },
    Column {
        title: "Captured on new rows",
        heading: "new rows",
        about: "captured share of the variance of held-out rows",
        text: |cell| shown(held_out(cell)),
        number: Some(held_out),
    },
    Column {
        title: "Requested",
        heading: "requested",
        about: "a size or a fidelity",
        text: |cell| cell.case.target_text(),
        number: None,
    },
    Column {
        title: "Points per component",
        heading: "per component",
        about: "average number of points that a component uses",
        text: |cell| format!("{:.1}", per_component(&cell.model)),
        number: Some(|cell| Some(per_component(&cell.model))),
    },
    Column {
        title: "Time to fit",
        heading: "fit",
        about: "time that the fit would take on its own",
        text: |cell| time(cell.seconds),
        number: Some(|cell| Some(cell.seconds)),
    },
    Column {
        title: "Time per row",
        heading: "per row",
        about: "time to score a row in a large batch",
        text: |cell| time(cell.query),
        number: Some(|cell| Some(cell.query)),
    },
    Column {
        title: "File size",
        heading: "file",
        about: "size of the model file",
        text: |cell| memory::text(cell.bytes),
        number: Some(|cell| Some(cell.bytes as f64)),
    },
];

/// Four digits, or an empty string.
fn shown(share: Option<f64>) -> String {
    share.map_or(String::new(), |share| format!("{share:.4}"))
}

fn held_out(cell: &Cell) -> Option<f64> {
    cell.judged.as_ref()?.captured()
}

fn auroc(cell: &Cell) -> Option<f64> {
    cell.judged.as_ref()?.auroc().map(|area| area.value)
}

fn nearest(cell: &Cell) -> Option<f64> {
    quality(&cell.judged.as_ref()?.nearest).map(|share| share.value)
}

fn linear(cell: &Cell) -> Option<f64> {
    quality(&cell.judged.as_ref()?.linear).map(|share| share.value)
}

/// A column of the table of baselines: its heading and its value.
pub type BaselineColumn = (&'static str, fn(&Judged) -> Option<Estimate>);

/// The columns in which any baseline has a value.
pub fn baseline_columns(baselines: &[Baseline]) -> Vec<BaselineColumn> {
    let all: [BaselineColumn; 3] = [
        ("AUROC", |judged| judged.auroc()),
        ("1-NN", |judged| quality(&judged.nearest)),
        ("linear", |judged| quality(&judged.linear)),
    ];
    all.into_iter().filter(|(_, of)| baselines.iter().any(|baseline| of(&baseline.judged).is_some())).collect()
}

/// The rows of the table of baselines, including the heading.
pub fn baseline_rows(baselines: &[Baseline]) -> Vec<Vec<String>> {
    let columns = baseline_columns(baselines);
    let mut rows = vec![vec!["for comparison".to_string()]];
    rows[0].extend(columns.iter().map(|(heading, _)| heading.to_string()));
    rows.extend(baselines.iter().map(|baseline| {
        let numbers = columns.iter().map(|(_, of)| shown(of(&baseline.judged).map(|estimate| estimate.value)));
        std::iter::once(baseline.name.to_string()).chain(numbers).collect()
    }));
    rows
}

fn per_component(model: &Model) -> f64 {
    let a = &model.parts().coefficients;
    let used: usize = a.col_iter().map(|column| column.iter().filter(|v| **v != 0.0).count()).sum();
    used as f64 / a.ncols() as f64
}

/// The columns in which any model has a value.
pub fn columns(cells: &[Cell]) -> Vec<&'static Column> {
    let known = |column: &&Column| column.number.is_none_or(|number| cells.iter().any(|cell| number(cell).is_some()));
    COLUMNS.iter().filter(known).collect()
}

pub fn print(screen: &mut Screen, comparison: &Comparison) -> Result<(), Failure> {
    screen.line(&about(comparison))?;
    screen.line("")?;
    if !comparison.cells.is_empty() {
        print_cells(screen, comparison)?;
    }
    if !comparison.baselines.is_empty() {
        screen.line("")?;
        let lines = aligned(&baseline_rows(&comparison.baselines), 2);
        lines.iter().try_for_each(|line| screen.line(&format!("  {line}")))?;
    }
    if !comparison.skipped.is_empty() {
        screen.line("")?;
        screen.line("Not in the table:")?;
        let rows: Vec<Vec<String>> = missing(comparison).into_iter().map(|(what, why)| vec![what, why]).collect();
        aligned(&rows, 2).iter().try_for_each(|line| screen.line(&format!("  {line}")))?;
    }
    let notes = notes(comparison);
    if !notes.is_empty() {
        screen.line("")?;
        screen.line("Notes:")?;
        notes.iter().try_for_each(|note| screen.line(&format!("  {note}")))?;
    }
    screen.line("")?;
    let Some(recommended) = &comparison.recommended else {
        return Ok(screen.line(NOTHING)?);
    };
    screen.bold(&sentence(recommended))?;
    screen.line(&format!("  {}", comparison.call(recommended)))?;
    Ok(screen.line(&format!("  {}", comparison.python(recommended)))?)
}

/// Prints every model, with the recommended one marked.
fn print_cells(screen: &mut Screen, comparison: &Comparison) -> Result<(), Failure> {
    let columns = columns(&comparison.cells);
    let mut rows = vec![columns.iter().map(|column| column.heading.to_string()).collect::<Vec<_>>()];
    rows.extend(comparison.cells.iter().map(|cell| columns.iter().map(|column| (column.text)(cell)).collect()));
    let lines = aligned(&rows, 2);
    screen.bold(&format!("  {}", lines[0]))?;
    for (line, cell) in lines[1..].iter().zip(&comparison.cells) {
        if comparison.recommended.as_ref().is_some_and(|recommended| recommended.case == cell.case) {
            screen.green(&format!("* {line}"))?
        } else {
            screen.line(&format!("  {line}"))?
        }
    }
    Ok(())
}

/// The message if no model can be recommended.
pub const NOTHING: &str = "No model was fitted to all rows in time: raise --budget, or name other --methods.";

/// Notes on the models: which did not converge, how they were judged, and what is wrong with the recommended one.
pub fn notes(comparison: &Comparison) -> Vec<String> {
    let unsure = comparison.cells.iter().filter(|cell| !cell.model.parts().report.converged);
    let mut notes: Vec<String> = unsure
        .map(|cell| format!("{}, {}: the fit did not converge", cell.case.method, cell.case.target_text()))
        .collect();
    let judged = comparison.cells.iter().filter_map(|cell| cell.judged.as_ref());
    let two = comparison.data.classes.as_ref().is_some_and(|c| c.names.len() == 2 || c.normal.is_some());
    if two && judged.clone().count() > 0 && judged.clone().all(|judged| judged.novelty.is_empty()) {
        notes.push("no AUROC: all held-out rows are of one class".into());
    }
    if let Some(recommended) = &comparison.recommended {
        let own = recommended.model.parts().report.notes.iter();
        notes.extend(own.map(|note| format!("the recommended model: {note}")));
        notes.extend(rough_scores(&recommended.model));
        notes.extend(beside_baselines(comparison, recommended));
    }
    notes
}

/// A warning if the error of the scores may be larger than their threshold.
fn rough_scores(model: &Model) -> Option<String> {
    let threshold = model.parts().scores.threshold;
    let error = model.score_error(threshold);
    (error > threshold).then(|| {
        format!(
            "scores of the recommended model are rough: each may be off by {error:.1e}, more than the threshold of {threshold:.1e}, \
             because so few points cannot represent the mean of all rows; if scores matter, keep more points or ask for a \
             higher fidelity"
        )
    })
}

/// Notes on baselines that are significantly better than the recommended model, and on features that do not classify
/// better than the majority class.
fn beside_baselines(comparison: &Comparison, recommended: &Recommended) -> Vec<String> {
    let cell = comparison.cells.iter().find(|cell| cell.case == recommended.case);
    let Some(own) = cell.and_then(|cell| cell.judged.as_ref()) else { return Vec::new() };
    let evidence = own.evidence(comparison.measure);
    let Some(value) = quality(evidence).map(|quality| quality.value) else { return Vec::new() };
    let what = word_of(comparison.measure);
    let better = comparison.baselines.iter().filter_map(|baseline| {
        let theirs = baseline.judged.evidence(comparison.measure);
        let by = difference(theirs, evidence)?;
        let remark = || format!("{} has the higher {what}: {:.4} against {value:.4}", baseline.name, value + by.value);
        (by.value > SIGNIFICANT * by.error).then(remark)
    });
    let mut notes: Vec<String> = better.collect();
    // The simplest baseline comes first.
    let majority = comparison.baselines.first().filter(|_| comparison.measure == Measure::Accuracy);
    let majority = majority.and_then(|first| difference(evidence, first.judged.evidence(comparison.measure)));
    if majority.is_some_and(|by| by.value <= SIGNIFICANT * by.error) {
        notes.push(
            "the features of the recommended model classify no better than always naming the most frequent class"
                .into(),
        );
    }
    notes
}

/// The name of the deciding measure.
pub fn word_of(measure: Measure) -> &'static str {
    if measure == Measure::Novelty { "AUROC" } else { "accuracy" }
}

/// The skipped cases and the reasons, grouped by method and reason.
pub fn missing(comparison: &Comparison) -> Vec<(String, String)> {
    let alike = |a: &Skipped, b: &Skipped| a.case.method == b.case.method && a.why == b.why;
    let group = |group: &[Skipped]| {
        let asked: Vec<String> = group.iter().map(|skipped| skipped.case.target_text()).collect();
        (format!("{}: {}", group[0].case.method, asked.join(", ")), group[0].why.clone())
    };
    comparison.skipped.chunk_by(alike).map(group).collect()
}

/// One line about the data and the split.
pub fn about(comparison: &Comparison) -> String {
    let data = &comparison.data;
    let judged = match (comparison.judges, comparison.held_out.is_empty()) {
        (0, _) => "none held out".to_string(),
        (count, true) => format!("judged on {count} others"),
        (count, false) if comparison.splits > 1 => {
            format!("{count} held out to judge, {} times in turn", comparison.splits)
        }
        (count, false) => format!("{count} held out to judge"),
    };
    let (rows, columns) = (counted(data.points.n(), "row"), counted(data.points.d(), "column"));
    format!("{}: {rows} × {columns}; {} fitted, {judged}", data.name, comparison.fitted)
}

/// The recommendation, as a sentence.
pub fn sentence(recommended: &Recommended) -> String {
    let Recommended { model, reason, .. } = recommended;
    let (points, fidelity) = (counted(model.m(), "point"), model.parts().fidelity);
    format!("Recommended: {reason}. Fitted to all rows it keeps {points} with fidelity {fidelity:.6}.")
}

/// Why cell `chosen` is recommended.
pub(super) fn because(cells: &[Cell], chosen: usize, reason: Reason, measure: Measure, target: f64) -> String {
    let cell = &cells[chosen];
    let (method, m, fidelity) = (&cell.case.method, cell.model.m(), cell.model.parts().fidelity);
    let evidence = quality_text(cells, cell, measure);
    let holds = if fidelity >= target { format!("reaches a fidelity of {target} and ") } else { String::new() };
    let does = if measure == Measure::Novelty { "detects novel rows" } else { "classifies" };
    match reason {
        Reason::Fidelity => format!("{method}, which needs the fewest points ({m}) for a fidelity of {target}"),
        Reason::Nearest => {
            format!("{method} with {m} points, which comes nearest to a fidelity of {target} ({fidelity:.4})")
        }
        Reason::Quality => {
            format!(
                "{method} with {m} points, the simplest model that {holds}{does} as well as the best, up to chance ({evidence})"
            )
        }
        Reason::TooFewRows => format!(
            "{method} with {m} points, the simplest model for a fidelity of {target}; there are too few rows to tell \
             which of the models that reach it {does} best ({evidence})"
        ),
        Reason::Same => format!(
            "{method} with {m} points, the simplest model for a fidelity of {target}; no model that reaches it {does} \
             better by more than chance ({evidence})"
        ),
        Reason::Better => format!(
            "{method} with {m} points, the simplest model that {does} as well as the best, up to chance ({evidence}), and \
             better than every model that reaches a fidelity of {target}; its own is {fidelity:.4}"
        ),
        Reason::Next => format!("{method} with {m} points ({evidence})"),
    }
}

/// The quality of a cell with its standard error, and the best quality of all cells.
fn quality_text(cells: &[Cell], cell: &Cell, measure: Measure) -> String {
    let of = |cell: &Cell| quality(cell.judged.as_ref()?.evidence(measure));
    let best = cells.iter().filter_map(of).map(|quality| quality.value).fold(f64::NEG_INFINITY, f64::max);
    let Some(own) = of(cell) else { return "not judged".into() };
    let linear = cell.judged.as_ref().is_some_and(Judged::linear_is_better);
    let name = match (measure, linear) {
        (Measure::Novelty, _) => "AUROC",
        (_, true) => "linear accuracy",
        (_, false) => "nearest-neighbour accuracy",
    };
    format!("{name} {:.4} ± {:.4}, best of all {best:.4}", own.value, own.error)
}

/// `l21-50.skpca`, `greedy-fidelity-0.95.skpca`
pub(super) fn file_name(case: &Case) -> String {
    let asked = match case.target {
        None => String::new(),
        Some(Target::Support(m)) => format!("-{m}"),
        Some(Target::Fidelity(f)) => format!("-fidelity-{f}"),
    };
    format!("{}{asked}.skpca", case.method)
}

impl Comparison {
    pub fn json(&self) -> Value {
        let data = &self.data;
        json!({
            "data": data.name,
            "rows": data.points.n(),
            "columns": data.points.d(),
            "classes": data.classes.as_ref().map(|classes| &classes.names),
            "fitted": self.fitted,
            "judges": self.judges,
            "splits": self.splits,
            "baselines": self.baselines.iter().map(of_baseline).collect::<Vec<_>>(),
            "held_out": self.held_out,
            "fidelity": self.fidelity,
            "models": self.cells.iter().map(of_cell).collect::<Vec<_>>(),
            "skipped": self.skipped.iter().map(|s| {
                json!({ "method": s.case.method.to_json(), "asked": of_target(s.case.target), "why": s.why })
            }).collect::<Vec<_>>(),
            "recommended": self.recommended.as_ref().map(|recommended| {
                let mut map = format::describe(&recommended.model);
                map.insert("asked".into(), of_target(recommended.case.target));
                map.insert("given".into(), recommended.case.method.to_json());
                map.insert("reason".into(), json!(recommended.reason));
                map.insert("command".into(), json!(self.call(recommended)));
                map.insert("python".into(), json!(self.python(recommended)));
                map.insert("seconds".into(), json!(recommended.seconds));
                map
            }),
        })
    }
}

fn of_target(target: Option<Target>) -> Value {
    match target {
        None => Value::Null,
        Some(Target::Support(m)) => json!({ "support": m }),
        Some(Target::Fidelity(f)) => json!({ "fidelity": f }),
    }
}

fn of_baseline(baseline: &Baseline) -> Value {
    let value = |estimate: Option<Estimate>| estimate.map(|estimate| estimate.value);
    json!({
        "name": baseline.name,
        "about": baseline.about,
        "auroc": value(baseline.judged.auroc()),
        "nearest_accuracy": value(quality(&baseline.judged.nearest)),
        "linear_accuracy": value(quality(&baseline.judged.linear)),
    })
}

fn of_cell(cell: &Cell) -> Map<String, Value> {
    let mut map = format::describe(&cell.model);
    map.insert("asked".into(), of_target(cell.case.target));
    map.insert("given".into(), cell.case.method.to_json());
    map.insert("seconds".into(), json!(cell.seconds));
    map.insert("query_seconds".into(), json!(cell.query));
    map.insert("bytes".into(), json!(cell.bytes));
    map.insert("held_out_captured".into(), json!(held_out(cell)));
    map.insert("auroc".into(), json!(auroc(cell)));
    map.insert("nearest_accuracy".into(), json!(nearest(cell)));
    map.insert("linear_accuracy".into(), json!(linear(cell)));
    let error = |estimate: fn(&Judged) -> Option<Estimate>| cell.judged.as_ref().and_then(estimate).map(|e| e.error);
    map.insert("auroc_error".into(), json!(error(Judged::auroc)));
    map.insert("accuracy_error".into(), json!(error(Judged::accuracy)));
    map
}
