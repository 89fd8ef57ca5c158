//! `skpca inspect`: what a model file holds, in words or as JSON.

use std::io::Write;
use std::path::Path;

use serde_json::Value;
use skpca::{Model, Parts, format};

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
        return Ok(writeln!(std::io::stdout(), "{}", Value::Object(format::describe(&model)))?);
    }
    let mut screen = Screen::unless(quiet && html.is_some());
    print_summary(&mut screen, &model)?;
    html.map_or(Ok(()), |html| Ok(screen.line(&format!("drawn        {}", html.display()))?))
}

/// A dozen aligned lines.
pub fn print_summary(screen: &mut Screen, model: &Model) -> std::io::Result<()> {
    summary_lines(model).iter().try_for_each(|(name, text)| screen.line(&format!("{name:<12} {text}")))
}

/// What there is to say of a model, each under its name.
pub fn summary_lines(model: &Model) -> Vec<(&'static str, String)> {
    let parts = model.parts();
    let total = parts.total_variance;
    let captured = parts.captured;
    let mut lines = vec![
        ("method", parts.method.to_string()),
        ("kernel", parts.kernel.to_string()),
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
    ];
    if let Some(names) = &parts.columns.names {
        lines.insert(3, ("columns", shortened(names)));
    }
    lines
}

/// `1 row`, `2 rows`
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn threshold(model: &Model) -> String {
    let scores = &model.parts().scores;
    format!(
        "{:.6} (score of the training rows' {} quantile; error of the score there at most {:.1e})",
        scores.threshold,
        scores.quantile,
        model.score_error(scores.threshold)
    )
}

fn shares(variances: &[f64], total: f64) -> String {
    let share = |v: &f64| format!("{:.2}%", if total > 0.0 { 100.0 * v / total } else { 0.0 });
    let shown: Vec<String> = variances.iter().take(8).map(share).collect();
    format!("{}{}", shown.join(" "), if variances.len() > 8 { " …" } else { "" })
}

fn shortened(names: &[String]) -> String {
    if names.len() > 8 { format!("{}, … ({} in all)", names[..8].join(", "), names.len()) } else { names.join(", ") }
}

/// The fidelity, and how far it is known.
fn fidelity(parts: &Parts) -> String {
    let known = match parts.report.fidelity_interval {
        Some([low, high]) => format!(" ({low:.4} to {high:.4}, estimated on a sample)"),
        None => String::new(),
    };
    format!("{:.4}{known} of what exact kernel PCA captures", parts.fidelity)
}
