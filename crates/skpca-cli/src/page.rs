//! The report page: a single HTML file that includes its plots, style and script.

mod contour;
mod monitor;
mod plots;
mod svg;
mod timeline;

use std::path::Path;

use serde_json::json;
use skpca::Model;

use crate::compare::{Baseline, Comparison, report};
use crate::failure::Failure;
use crate::{inspect, outputs};
pub use monitor::of_monitored;
use plots::Rows;
use svg::escaped;
pub use svg::short;

const STYLE: &str = include_str!("page/style.css");
const SCRIPT: &str = include_str!("page/script.js");

pub fn write(path: &Path, page: &str) -> Result<(), Failure> {
    outputs::write(path, page.as_bytes())
}

/// The page of `skpca compare`, with one section per comparison.
pub fn of_comparisons(comparisons: &[&Comparison]) -> Result<String, Failure> {
    let sections = comparisons.iter().enumerate().map(|(i, comparison)| section(comparison, i));
    let sections: String = sections.collect::<Result<_, _>>()?;
    let names: Vec<&str> = comparisons.iter().map(|comparison| comparison.data.name.as_str()).collect();
    Ok(page(&format!("Sparse kernel PCA of {}", names.join(" and ")), &sections))
}

/// The page of `skpca inspect`.
pub fn of_model(name: &str, model: &Model) -> Result<String, Failure> {
    let body = format!("<section><h2>{}</h2>{}</section>", escaped(name), model_part(model, None, "m")?);
    Ok(page(&format!("Sparse kernel PCA: {name}"), &body))
}

fn page(title: &str, body: &str) -> String {
    let (title, version) = (escaped(title), env!("CARGO_PKG_VERSION"));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>{STYLE}</style></head>\n\
         <body><header><h1>{title}</h1></header>\n<main>{body}</main>\n\
         <footer>skpca {version}</footer>\n<div id=\"tip\" role=\"status\" hidden></div>\n<script>{SCRIPT}</script></body></html>\n"
    )
}

fn section(comparison: &Comparison, i: usize) -> Result<String, Failure> {
    let about = escaped(&report::about(comparison));
    let (advice, model) = match &comparison.recommended {
        None => (format!("<p class=\"advice\">{}</p>", report::NOTHING), String::new()),
        Some(recommended) => {
            let data = &comparison.data;
            let classes = data.classes.as_ref().map(|classes| (classes.names.as_slice(), classes.of.as_slice()));
            let rows = Rows { points: &data.points, classes };
            let advice = format!(
                "<p class=\"advice\">{}</p>\n<pre><code>{}</code></pre>\n<pre><code>{}</code></pre>",
                escaped(&report::sentence(recommended)),
                escaped(&comparison.call(recommended)),
                escaped(&comparison.python(recommended))
            );
            (
                advice,
                format!(
                    "<h3>The recommended model</h3>\n{}",
                    model_part(&recommended.model, Some(&rows), &format!("s{i}"))?
                ),
            )
        }
    };
    let frontier = if comparison.cells.is_empty() {
        String::new()
    } else {
        let quality = plots::quality(comparison).map_or(String::new(), |plot| plot.figure(&format!("s{i}-quality")));
        let names = plots::series(&comparison.cells);
        plots::frontier(comparison).figure(&format!("s{i}-frontier")) + &quality + &legend(&names, Marks::Methods)
    };
    // Escape `<`, so that no text looks like a tag. It occurs in JSON strings only, where the escape is equivalent.
    let json = comparison.json().to_string().replace('<', "\\u003c");
    Ok(format!(
        "<section><h2>{}</h2>\n<p>{about}</p>\n{advice}\n{}\n<div class=\"frontier\">{frontier}</div>\n{}\n{}\n{model}\n\
         <script type=\"application/json\" class=\"data\">{json}</script></section>\n",
        escaped(&comparison.data.name),
        notes(comparison),
        models(comparison) + &baselines(comparison),
        skipped(comparison)
    ))
}

/// What the marks of a plot represent.
#[derive(Clone, Copy, PartialEq)]
enum Marks {
    /// Methods, with a line through their sizes.
    Methods,
    /// Classes, with rings around the support.
    Classes,
}

/// The legend: shape, colour and dashes of each name, and the meaning of outlines and other lines.
fn legend(names: &[String], marks: Marks) -> String {
    let item = |(k, name): (usize, &String)| {
        let line = if marks == Marks::Methods {
            format!("<path class=\"line {} d{k}\" d=\"M-16 0H16\"/>", svg::colour(k))
        } else {
            String::new()
        };
        let mark = format!("<path class=\"mark {}\" d=\"{}\"/>", svg::colour(k), svg::shape(k));
        legend_item(&format!("{line}{mark}"), name)
    };
    let items: String = names.iter().enumerate().map(item).collect();
    let again =
        if names.len() > svg::DIFFERENT { "<li>(marks repeat; point at one to see its class)</li>" } else { "" };
    let own = match marks {
        Marks::Methods => [
            legend_item(
                &format!("<path class=\"mark c0 chosen\" d=\"{}\"/>", svg::shape(1)),
                "outlined: the recommended model",
            ),
            legend_item("<path class=\"line ceiling\" d=\"M-16 0H16\"/>", "exact kernel PCA"),
            legend_item("<path class=\"line asked\" d=\"M-16 0H16\"/>", "the requested fidelity"),
        ]
        .concat(),
        Marks::Classes => {
            legend_item(&format!("<path class=\"mark kept\" d=\"{}\"/>", svg::shape(0)), "ring: a point that is kept")
        }
    };
    format!("<ul class=\"legend\">{items}{again}{own}</ul>\n")
}

fn legend_item(drawn: &str, name: &str) -> String {
    format!(
        "<li><svg viewBox=\"-16 -7 32 14\" width=\"32\" height=\"14\" aria-hidden=\"true\">{drawn}</svg> {}</li>",
        escaped(name)
    )
}

/// The table of all models, which the script sorts.
fn models(comparison: &Comparison) -> String {
    let columns = report::columns(&comparison.cells);
    let heading = |column: &&report::Column| {
        let sort = if column.number.is_some() { "number" } else { "text" };
        format!(
            "<th scope=\"col\" data-sort=\"{sort}\"><button title=\"{}\">{}</button></th>",
            escaped(column.about),
            escaped(column.title)
        )
    };
    let headings: String = columns.iter().map(heading).collect();
    let mut rows = String::new();
    for cell in &comparison.cells {
        let chosen = comparison.recommended.as_ref().is_some_and(|r| r.case == cell.case);
        let entry = |column: &&report::Column| {
            let text = escaped(&(column.text)(cell));
            match column.number {
                None => format!("<td>{text}</td>"),
                Some(number) => format!("<td data-value=\"{}\">{text}</td>", json!(number(cell))),
            }
        };
        let entries: String = columns.iter().map(entry).collect();
        rows.push_str(&format!("<tr{}>{entries}</tr>\n", if chosen { " class=\"chosen\"" } else { "" }));
    }
    let meanings: String =
        columns.iter().map(|c| format!("<dt>{}</dt><dd>{}</dd>", escaped(c.title), escaped(c.about))).collect();
    format!(
        "<h3>Every model</h3>\n<p>Click a heading to sort; the recommended one is marked ★.</p>\n\
         <div class=\"wide\"><table class=\"models\"><thead><tr>{headings}</tr></thead><tbody>\n{rows}</tbody></table></div>\n\
         <details><summary>What the columns mean</summary><dl>{meanings}</dl></details>\n"
    )
}

/// The table of baselines.
fn baselines(comparison: &Comparison) -> String {
    if comparison.baselines.is_empty() {
        return String::new();
    }
    let rows = report::baseline_rows(&comparison.baselines);
    let headings: String =
        rows[0][1..].iter().map(|text| format!("<th scope=\"col\">{}</th>", escaped(text))).collect();
    let row = |(cells, baseline): (&Vec<String>, &Baseline)| {
        let numbers: String = cells[1..].iter().map(|text| format!("<td>{}</td>", escaped(text))).collect();
        format!(
            "<tr><th scope=\"row\" title=\"{0}\">{1}</th>{numbers}<td class=\"what\">{0}</td></tr>\n",
            escaped(baseline.about),
            escaped(baseline.name)
        )
    };
    let body: String = rows[1..].iter().zip(&comparison.baselines).map(row).collect();
    format!(
        "<h3>For comparison</h3>\n<p>Baselines without a kernel PCA model, judged on the same held-out rows.</p>\n\
         <div class=\"wide\"><table class=\"baselines\"><thead><tr><th></th>{headings}<th>what it is</th></tr></thead>\
         <tbody>\n{body}</tbody></table></div>\n"
    )
}

fn skipped(comparison: &Comparison) -> String {
    if comparison.skipped.is_empty() {
        return String::new();
    }
    let item = |(what, why): (String, String)| format!("<li>{}: {}</li>", escaped(&what), escaped(&why));
    let items: String = report::missing(comparison).into_iter().map(item).collect();
    format!("<h3>Not in the table</h3>\n<ul class=\"skipped\">{items}</ul>\n")
}

fn notes(comparison: &Comparison) -> String {
    let notes = report::notes(comparison);
    let items: String = notes.iter().map(|note| format!("<li>{}</li>", escaped(note))).collect();
    if notes.is_empty() { String::new() } else { format!("<h3>Notes</h3>\n<ul>{items}</ul>\n") }
}

/// The summary and the plots of a model, including the rows if given.
fn model_part(model: &Model, rows: Option<&Rows>, id: &str) -> Result<String, Failure> {
    let summary = inspect::summary_lines(model);
    let mut figures = plots::scatter(model, rows)?.figure(&format!("{id}-scatter"));
    if let Some((names, _)) = rows.and_then(|rows| rows.classes) {
        figures.push_str(&legend(names, Marks::Classes));
    }
    let mut small = plots::scree(model).figure(&format!("{id}-scree"));
    small.push_str(&plots::scores(model).figure(&format!("{id}-scores")));
    for (k, plot) in plots::contours(model, rows)?.iter().enumerate() {
        small.push_str(&plot.figure(&format!("{id}-contour-{k}")));
    }
    Ok(format!(
        "{}<div class=\"scatter\">{figures}</div>\n<div class=\"figures\">{small}</div>\n",
        definitions(&summary)
    ))
}

/// A list of names and descriptions.
fn definitions(lines: &[(&str, String)]) -> String {
    let line = |(name, text): &(&str, String)| format!("<dt>{}</dt><dd>{}</dd>", escaped(name), escaped(text));
    format!("<dl class=\"summary\">{}</dl>\n", lines.iter().map(line).collect::<String>())
}
