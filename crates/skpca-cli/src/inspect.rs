//! `skpca inspect`: describes a model file as text, as JSON or on a page.

use std::io::Write;
use std::path::Path;

use serde_json::Value;
use skpca::{Intake, Learned, Missing, Model, Parts, Report, Unknown, format};

use crate::failure::Failure;
use crate::outputs::Outputs;
use crate::terminal::Screen;
use crate::{model_file, page};

pub fn run(path: &Path, json: bool, html: Option<&Path>, quiet: bool) -> Result<(), Failure> {
    let model = model_file::read(path)?;
    if let Some(html) = html {
        Outputs::apart_from([path]).check(html)?;
        page::write(html, &page::of_model(&path.display().to_string(), &model)?)?;
    }
    if json {
        let mut about = format::describe(&model);
        about.insert("importance".into(), model.importance()?.into());
        return Ok(writeln!(std::io::stdout(), "{}", Value::Object(about))?);
    }
    let mut screen = Screen::unless(quiet && html.is_some());
    print_summary(&mut screen, &model)?;
    screen.line(&format!("{:<12} {}", "inputs", importance(&model)?))?;
    html.map_or(Ok(()), |html| Ok(screen.line(&format!("drawn        {}", html.display()))?))
}

/// Prints a dozen aligned lines about a model.
pub fn print_summary(screen: &mut Screen, model: &Model) -> std::io::Result<()> {
    summary_lines(model).iter().try_for_each(|(name, text)| screen.line(&format!("{name:<12} {text}")))
}

/// The lines of a model's summary, each with its name.
pub fn summary_lines(model: &Model) -> Vec<(&'static str, String)> {
    let parts = model.parts();
    let total = parts.total_variance;
    let captured = parts.captured;
    let mut lines = vec![
        ("method", parts.method.to_string()),
        ("kernel", parts.kernel.brief()),
        (
            "trained on",
            format!(
                "{} × {}, scaled: {}",
                counted(parts.n, "row"),
                counted(parts.support.d(), "column"),
                parts.columns.scaling.name()
            ),
        ),
        ("keeps", format!("{} for {}", counted(model.m(), "point"), counted(model.q(), "component"))),
        ("fidelity", fidelity(parts)),
        (
            "captured",
            format!("{:.4} of the variance in feature space", if total > 0.0 { captured / total } else { 1.0 }),
        ),
        ("variances", shares(&parts.variances, total)),
        ("threshold", threshold(model)),
        ("ended", ended(&parts.report)),
    ];
    if let Some(intake) = &parts.columns.intake {
        lines.insert(3, ("intake", taken_in(intake)));
    }
    if let Some(learned) = &parts.learned {
        lines.push(("learned on", learning(learned)));
    }
    if let Some(names) = &parts.columns.names {
        lines.insert(3, ("columns", shortened(names)));
    }
    lines
}

/// How a table is turned into the columns of a model.
fn taken_in(intake: &Intake) -> String {
    let share = format!("{:.2}% of the cells", 100.0 * intake.empty);
    let empty = match intake.missing {
        Missing::Refuse => "empty cells are refused".to_string(),
        Missing::Median => format!("empty cells are filled ({share})"),
        Missing::Drop => format!("rows with empty cells are left out ({share})"),
    };
    let categories: Vec<String> = intake.categories().cloned().collect();
    let unknown = match intake.unknown {
        Unknown::Refuse => "others are refused",
        Unknown::Zero => "others are 0",
    };
    let categories = (!categories.is_empty()).then(|| format!("categories {} ({unknown})", shortened(&categories)));
    let time = intake.time.as_ref().map(|time| format!("time {time}"));
    [Some(empty), categories, time].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// `1 row`, `2 rows`
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// How the fit ended: whether it converged and, if the method has them, the objective, the gap to the optimum and the
/// number of rounds.
fn ended(report: &Report) -> String {
    let objective = report.objective.map(|objective| format!("objective {objective:.6e}"));
    let gap = report.gap.map(|gap| format!("gap {gap:.1e}"));
    let rounds = (report.rounds > 0).then(|| counted(report.rounds, "round"));
    let converged = if report.converged { "converged" } else { "not converged" };
    let facts: Vec<String> = [objective, gap, rounds].into_iter().flatten().chain([converged.into()]).collect();
    facts.join(", ")
}

fn threshold(model: &Model) -> String {
    let scores = &model.parts().scores;
    let meaning = match &scores.calibration {
        None => format!("score of the training rows' {} quantile", scores.quantile),
        Some(calibration) => {
            let order = if calibration.in_time_order { ", in time order" } else { "" };
            let rate = (1e10 * (1.0 - scores.quantile)).round() / 1e8;
            format!("{rate}% of fresh rows score higher, by {} folds{order}", calibration.folds)
        }
    };
    let error = model.score_error(scores.threshold);
    format!("{:.6} ({meaning}; error of the score there at most {error:.1e})", scores.threshold)
}

/// What an updatable model has learned.
fn learning(learned: &Learned) -> String {
    let error = match learned.error {
        0.0 => "sums are exact".to_string(),
        error => format!("points have been added: √captured / √total is accurate to {error:.3}"),
    };
    let on = if learned.state.is_some() { "" } else { "; cannot be updated" };
    format!("{}; threshold of the fit {:.6}; {error}{on}", counted(learned.rows, "row"), learned.reference)
}

fn shares(variances: &[f64], total: f64) -> String {
    let share = |v: &f64| format!("{:.2}%", if total > 0.0 { 100.0 * v / total } else { 0.0 });
    let shown: Vec<String> = variances.iter().take(8).map(share).collect();
    format!("{}{}", shown.join(" "), if variances.len() > 8 { " …" } else { "" })
}

/// The inputs that shape the components, the most important first.
fn importance(model: &Model) -> Result<String, Failure> {
    let shares = model.importance()?;
    let names = model.parts().columns.names.clone();
    let name = |k: usize| names.as_ref().map_or_else(|| format!("x{k}"), |names| names[k].clone());
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by(|a, b| shares[*b].total_cmp(&shares[*a]));
    let shown: Vec<String> = order.iter().take(8).map(|&k| format!("{} {:.1}%", name(k), 100.0 * shares[k])).collect();
    Ok(format!("{}{}", shown.join(", "), if order.len() > 8 { ", …" } else { "" }))
}

fn shortened(names: &[String]) -> String {
    if names.len() > 8 { format!("{}, … ({} in all)", names[..8].join(", "), names.len()) } else { names.join(", ") }
}

/// The fidelity, with its interval if it is an estimate.
fn fidelity(parts: &Parts) -> String {
    let known = match parts.report.fidelity_interval {
        Some([low, high]) => format!(" ({low:.4} to {high:.4}, estimated on a sample)"),
        None => String::new(),
    };
    format!("{:.4}{known} of what exact kernel PCA captures", parts.fidelity)
}
