//! What `compare` says: a table, a sentence, a command line, and the same as JSON.

use serde_json::{Map, Value, json};
use skpca::{Fit, Level, Model, Scaling, Spec, Target, format};

use super::choice::Reason;
use super::judges::Measure;
use super::{Accuracy, Case, Cell, Comparison, Recommended, Skipped};
use crate::arguments::CompareArguments;
use crate::failure::Failure;
use crate::inspect::counted;
use crate::memory;
use crate::terminal::{Screen, aligned, time};

/// A column of the table: its heading, what it means, and what it says of a model.
pub struct Column {
    pub heading: &'static str,
    pub about: &'static str,
    pub text: fn(&Cell) -> String,
    /// By which it is sorted, where that is a number.
    pub number: Option<fn(&Cell) -> Option<f64>>,
}

/// All columns there can be.
const COLUMNS: &[Column] = &[
    Column {
        heading: "method",
        about: "how points are chosen",
        text: |cell| cell.case.method.to_string(),
        number: None,
    },
    Column { heading: "asked for", about: "a size or a fidelity", text: |cell| cell.case.asked(), number: None },
    Column {
        heading: "points",
        about: "stored points, each a kernel value a query",
        text: |cell| cell.model.m().to_string(),
        number: Some(|cell| Some(cell.model.m() as f64)),
    },
    Column {
        heading: "points per component",
        about: "points that a component uses, on average",
        text: |cell| format!("{:.1}", per_component(&cell.model)),
        number: Some(|cell| Some(per_component(&cell.model))),
    },
    Column {
        heading: "fidelity",
        about: "captured variance, as a share of what exact kernel PCA captures",
        text: |cell| format!("{:.4}", cell.model.parts().fidelity),
        number: Some(|cell| Some(cell.model.parts().fidelity)),
    },
    Column {
        heading: "held out",
        about: "share of the variance of rows held out that is captured",
        text: |cell| held_out(cell).map_or(String::new(), |share| format!("{share:.4}")),
        number: Some(held_out),
    },
    Column {
        heading: "AUROC",
        about: "how well the score tells the rarer class on rows held out",
        text: |cell| auroc(cell).map_or(String::new(), |area| format!("{area:.4}")),
        number: Some(auroc),
    },
    Column {
        heading: "1-NN",
        about: "accuracy of the nearest neighbour on rows held out (2,000 at most, among 4,000 fitted)",
        text: |cell| accuracy(cell).map_or(String::new(), |a| format!("{:.4}", a.nearest)),
        number: Some(|cell| accuracy(cell).map(|a| a.nearest)),
    },
    Column {
        heading: "linear",
        about: "accuracy of a linear classifier (least squares), on the same rows",
        text: |cell| accuracy(cell).map_or(String::new(), |a| format!("{:.4}", a.linear)),
        number: Some(|cell| accuracy(cell).map(|a| a.linear)),
    },
    Column {
        heading: "fit",
        about: "time to fit, as if alone",
        text: |cell| time(cell.seconds),
        number: Some(|cell| Some(cell.seconds)),
    },
    Column {
        heading: "query",
        about: "time to score a row, many at once",
        text: |cell| time(cell.query),
        number: Some(|cell| Some(cell.query)),
    },
    Column {
        heading: "file",
        about: "size of the model file",
        text: |cell| memory::text(cell.bytes),
        number: Some(|cell| Some(cell.bytes as f64)),
    },
];

fn held_out(cell: &Cell) -> Option<f64> {
    cell.judged.as_ref().map(|judged| judged.captured)
}

fn auroc(cell: &Cell) -> Option<f64> {
    cell.judged.as_ref()?.auroc
}

fn accuracy(cell: &Cell) -> Option<&Accuracy> {
    cell.judged.as_ref()?.classes.as_ref()
}

fn per_component(model: &Model) -> f64 {
    let a = &model.parts().coefficients;
    let used: usize = a.col_iter().map(|column| column.iter().filter(|v| **v != 0.0).count()).sum();
    used as f64 / a.ncols() as f64
}

/// The columns in which any model has something to say.
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
    Ok(screen.line(&format!("  {}", python(recommended)))?)
}

/// Every model, the recommended one marked.
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

/// What is said where no model can be recommended.
pub const NOTHING: &str = "No model was fitted to all rows in time: raise --budget, or name other --methods.";

/// What should be known of the models: which did not converge, and what the fit of the recommended one noted.
pub fn notes(comparison: &Comparison) -> Vec<String> {
    let unsure = comparison.cells.iter().filter(|cell| !cell.model.parts().report.converged);
    let mut notes: Vec<String> =
        unsure.map(|cell| format!("{}, {}: the fit did not converge", cell.case.method, cell.case.asked())).collect();
    let judged = comparison.cells.iter().filter_map(|cell| cell.judged.as_ref());
    let two = comparison.data.classes.as_ref().is_some_and(|classes| classes.names.len() == 2);
    if two && judged.clone().count() > 0 && judged.clone().all(|judged| judged.auroc.is_none()) {
        notes.push("no AUROC: the rows held out are all of one class".into());
    }
    if let Some(recommended) = &comparison.recommended {
        notes
            .extend(recommended.model.parts().report.notes.iter().map(|note| format!("the model recommended: {note}")));
    }
    notes
}

/// What is not in the table, and why; cases of one method and reason together.
pub fn missing(comparison: &Comparison) -> Vec<(String, String)> {
    let alike = |a: &Skipped, b: &Skipped| a.case.method == b.case.method && a.why == b.why;
    let group = |group: &[Skipped]| {
        let asked: Vec<String> = group.iter().map(|skipped| skipped.case.asked()).collect();
        (format!("{}: {}", group[0].case.method, asked.join(", ")), group[0].why.clone())
    };
    comparison.skipped.chunk_by(alike).map(group).collect()
}

/// What the comparison is of.
pub fn about(comparison: &Comparison) -> String {
    let data = &comparison.data;
    let judged = match (comparison.judges, comparison.held_out.is_empty()) {
        (0, _) => "none held out".to_string(),
        (count, true) => format!("{count} others judge"),
        (count, false) => format!("{count} held out to judge"),
    };
    let (rows, columns) = (counted(data.points.n(), "row"), counted(data.points.d(), "column"));
    format!("{}: {rows} × {columns}; {} fitted, {judged}", data.name, comparison.fitted)
}

/// The recommendation.
pub fn sentence(recommended: &Recommended) -> String {
    let Recommended { model, reason, .. } = recommended;
    let (points, fidelity) = (counted(model.m(), "point"), model.parts().fidelity);
    format!("Recommended: {reason}. Fitted to all rows it keeps {points} with fidelity {fidelity:.6}.")
}

/// Why a cell is recommended; `best` is the best quality of all.
pub(super) fn because(cell: &Cell, reason: Reason, measure: Measure, asked: f64, best: f64) -> String {
    let (method, m, fidelity) = (&cell.case.method, cell.model.m(), cell.model.parts().fidelity);
    let told = match measure {
        Measure::Novelty => format!("AUROC {:.4}, best {best:.4}", auroc(cell).unwrap_or(f64::NAN)),
        _ => {
            let (nearest, linear) = accuracy(cell).map_or((f64::NAN, f64::NAN), |a| (a.nearest, a.linear));
            let (value, whose) = if linear > nearest { (linear, "linear") } else { (nearest, "1-NN") };
            format!("{whose} accuracy {value:.4}, best of all {best:.4}")
        }
    };
    let does = if measure == Measure::Novelty { "tells the rarer class" } else { "has features that classify" };
    match reason {
        Reason::Fidelity => format!("{method}, which needs the fewest points ({m}) for a fidelity of {asked}"),
        Reason::Nearest => {
            format!("{method} with {m} points, which comes nearest to a fidelity of {asked} ({fidelity:.4})")
        }
        Reason::Quality => {
            format!(
                "{method}, the smallest model ({m} points) that {does} within one standard error of the best ({told})"
            )
        }
        Reason::Next => format!("{method} with {m} points ({told})"),
    }
}

/// A name that a shell takes as one word. No argument has a NUL, which no shell could take.
fn quoted(text: &str) -> String {
    shlex::Quoter::new().allow_nul(true).quote(text).map_or_else(|_| text.to_string(), String::from)
}

/// The call of `skpca fit` for a table.
pub fn fit_of(table: &str) -> String {
    let path = if table.starts_with('-') && table != "-" { format!("./{table}") } else { table.to_string() };
    format!("skpca fit {}", quoted(&path))
}

/// The call of `skpca fit` that reads the same table in the same way.
pub(super) fn command(arguments: &CompareArguments) -> String {
    let (table, common) = (&arguments.table, &arguments.common);
    let mut call = fit_of(&table.data);
    let mut say = |flag: &str, value: String| {
        let between = if value.starts_with('-') { "=" } else { " " };
        call.push_str(&format!(" {flag}{between}{}", quoted(&value)));
    };
    if let Some(label) = &table.label {
        say("--label", label.clone());
    }
    if !table.drop.is_empty() {
        say("--drop", table.drop.join(","));
    }
    if common.kernel != Fit::default().kernel {
        say("--kernel", common.kernel.to_string());
    }
    if let Some(q) = common.components {
        say("-q", q.to_string());
    }
    if common.scale != Scaling::default() {
        say("--scale", common.scale.name().to_string());
    }
    if common.quantile != Fit::default().quantile {
        say("--quantile", common.quantile.to_string());
    }
    if common.instructions.level != Level::Auto {
        say("--level", common.instructions.level.to_string());
    }
    if common.seed != 0 {
        say("--seed", common.seed.to_string());
    }
    if table.no_header {
        call.push_str(" --no-header");
    }
    call
}

/// A Python expression that fits the same model.
pub fn python(recommended: &Recommended) -> String {
    let parts = recommended.model.parts();
    let mut arguments = Vec::new();
    arguments.extend(recommended.fit.components.map(|q| q.to_string()));
    let defaults = Fit::default();
    if recommended.case.method != defaults.method {
        arguments.push(format!("method={}", literal(&recommended.case.method)));
    }
    // The bandwidth as it was found, which a rule would find again; what was learned from labels is learned again.
    let labelled = recommended.fit.labelled().unwrap_or(false);
    let learned = skpca::kernel::entry(&recommended.fit.kernel).is_ok_and(|entry| entry.capabilities.labelled);
    arguments.push(format!("kernel={}", literal(if learned { &recommended.fit.kernel } else { &parts.kernel })));
    match recommended.case.target {
        Some(Target::Support(m)) => arguments.push(format!("n_support={m}")),
        Some(Target::Fidelity(f)) => arguments.push(format!("fidelity={f}")),
        None => {}
    }
    arguments.push(format!("center={}, random_state={}", if parts.center { "True" } else { "False" }, parts.seed));
    let labels = if labelled { "X, y" } else { "X" };
    let scaler = match parts.columns.scaling {
        Scaling::Standard => "StandardScaler(), ",
        Scaling::Minmax => "MinMaxScaler(), ",
        Scaling::None => "",
    };
    format!("make_pipeline({scaler}SparseKernelPCA({})).fit({labels})", arguments.join(", "))
}

/// As Python writes it: a name, or a dict.
fn literal(spec: &Spec) -> String {
    fn of(value: &Value) -> String {
        match value {
            Value::Null => "None".into(),
            Value::Bool(true) => "True".into(),
            Value::Bool(false) => "False".into(),
            Value::Array(items) => format!("[{}]", items.iter().map(of).collect::<Vec<_>>().join(", ")),
            Value::Object(map) => {
                let items: Vec<String> = map.iter().map(|(key, value)| format!("{:?}: {}", key, of(value))).collect();
                format!("{{{}}}", items.join(", "))
            }
            other => other.to_string(),
        }
    }
    if spec == &Spec::new(&spec.name) { format!("{:?}", spec.name) } else { of(&spec.to_json()) }
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
    /// The command line that makes the model recommended.
    pub fn call(&self, recommended: &Recommended) -> String {
        let target = match recommended.case.target {
            None => String::new(),
            Some(Target::Support(m)) => format!(" --support {m}"),
            Some(Target::Fidelity(f)) => format!(" --fidelity {f}"),
        };
        let center = recommended.fit.center;
        let usual = Fit { center: None, ..recommended.fit.clone() }.centered().ok();
        let center = match center.filter(|_| center != usual) {
            None => "",
            Some(true) => " --center",
            Some(false) => " --no-center",
        };
        let method = quoted(&recommended.case.method.to_string());
        format!("{} --method {method}{target}{center} -o model.skpca", self.command)
    }

    pub fn json(&self) -> Value {
        let data = &self.data;
        json!({
            "data": data.name,
            "rows": data.points.n(),
            "columns": data.points.d(),
            "classes": data.classes.as_ref().map(|classes| &classes.names),
            "fitted": self.fitted,
            "judges": self.judges,
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
                map.insert("python".into(), json!(python(recommended)));
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

fn of_cell(cell: &Cell) -> Map<String, Value> {
    let mut map = format::describe(&cell.model);
    map.insert("asked".into(), of_target(cell.case.target));
    map.insert("given".into(), cell.case.method.to_json());
    map.insert("seconds".into(), json!(cell.seconds));
    map.insert("query_seconds".into(), json!(cell.query));
    map.insert("bytes".into(), json!(cell.bytes));
    map.insert("held_out_captured".into(), json!(held_out(cell)));
    map.insert("auroc".into(), json!(auroc(cell)));
    map.insert("nearest_accuracy".into(), json!(accuracy(cell).map(|a| a.nearest)));
    map.insert("linear_accuracy".into(), json!(accuracy(cell).map(|a| a.linear)));
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_a_shell() {
        assert_eq!(quoted("data/train.csv"), "data/train.csv");
        assert_eq!(quoted("my data.csv"), "'my data.csv'");
        for text in ["it's", "", "a$b`c`", "l21,fraction=0.2", "a\nb", "back\\slash", "*", "ü", "#x", "a!b"] {
            assert_eq!(shlex::split(&quoted(text)).unwrap(), [text]);
        }
    }

    #[test]
    fn python_has_its_own_words() {
        assert_eq!(literal(&Spec::new("greedy")), "\"greedy\"");
        let spec = Spec::new("l21").with("refit", false).with("penalty", vec![0.5, 1.0]);
        assert_eq!(literal(&spec), r#"{"name": "l21", "penalty": [0.5, 1.0], "refit": False}"#);
    }
}
