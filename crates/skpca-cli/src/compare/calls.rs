//! The command line and the Python expression that reproduce the recommended model.

use serde_json::Value;
use skpca::{Fit, Level, Missing, Scaling, Spec, Target, Unknown};

use super::judges::Measure;
use super::{Comparison, Recommended};
use crate::arguments::CompareArguments;

/// Quotes a text as one shell word. Arguments contain no NUL, the only character that cannot be quoted.
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
    if let Some(normal) = &arguments.normal {
        say("--normal", normal.clone());
    }
    if !table.drop.is_empty() {
        say("--drop", table.drop.join(","));
    }
    let intake = &arguments.intake;
    if intake.missing != Missing::default() {
        say("--missing", intake.missing.name().to_string());
    }
    if !intake.categorical.is_empty() {
        say("--categorical", intake.categorical.join(","));
    }
    if intake.unknown != Unknown::default() {
        say("--unknown", intake.unknown.name().to_string());
    }
    if let Some(time) = &intake.time {
        say("--time", time.clone());
    }
    if let Some(kernel) = &common.kernel {
        say("--kernel", kernel.to_string());
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
    if intake.numeric_only {
        call.push_str(" --numeric-only");
    }
    if table.no_header {
        call.push_str(" --no-header");
    }
    call
}

fn python(recommended: &Recommended, normal: Option<&str>) -> String {
    let parts = recommended.model.parts();
    let mut arguments = Vec::new();
    arguments.extend(recommended.fit.components.map(|q| q.to_string()));
    let defaults = Fit::default();
    if recommended.case.method != defaults.method {
        arguments.push(format!("method={}", literal(&recommended.case.method)));
    }
    // A bandwidth found by a rule is given as a number; a kernel learned from labels is learned again.
    let labelled = recommended.fit.labelled().unwrap_or(false);
    let learned = skpca::kernel::entry(&recommended.fit.kernel).is_ok_and(|entry| entry.capabilities.labelled);
    arguments.push(format!("kernel={}", literal(if learned { &recommended.fit.kernel } else { &parts.kernel })));
    match recommended.case.target {
        Some(Target::Support(m)) => arguments.push(format!("n_support={m}")),
        Some(Target::Fidelity(f)) => arguments.push(format!("fidelity={f}")),
        None => {}
    }
    if parts.columns.scaling != Scaling::None {
        arguments.push(format!("scaling={:?}", parts.columns.scaling.name()));
    }
    arguments.push(format!("center={}, random_state={}", if parts.center { "True" } else { "False" }, parts.seed));
    let name = if recommended.measure == Measure::Novelty { "KernelNovelty" } else { "SparseKernelPCA" };
    let rows = match (labelled, normal) {
        (true, _) => "X, y".to_string(),
        (false, Some(value)) => format!("X[y == {}]", literal_text(value)),
        (false, None) => "X".to_string(),
    };
    format!("{name}({}).fit({rows})", arguments.join(", "))
}

/// A Python string literal; JSON strings are valid ones.
fn literal_text(text: &str) -> String {
    Value::from(text).to_string()
}

/// A Python literal of a spec: a name, or a dict.
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

impl Comparison {
    /// The command line that fits the recommended model.
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

    /// A Python expression that fits the same model; a detector if models were judged by novelty.
    pub fn python(&self, recommended: &Recommended) -> String {
        let classes = self.data.classes.as_ref();
        let normal = classes.and_then(|classes| Some(classes.names[classes.normal?].as_str()));
        python(recommended, normal)
    }
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
    fn specs_become_python_literals() {
        assert_eq!(literal(&Spec::new("greedy")), "\"greedy\"");
        let spec = Spec::new("l21").with("refit", false).with("penalty", vec![0.5, 1.0]);
        assert_eq!(literal(&spec), r#"{"name": "l21", "penalty": [0.5, 1.0], "refit": False}"#);
    }
}
