//! The plots of models and comparisons.

use skpca::{Model, Points, Precision};

use super::contour::{Grid, steps};
use super::svg::{Axis, Plot, apart, colour, short};
use crate::compare::evidence::{self, Estimate};
use crate::compare::judges::{Judged, Measure};
use crate::compare::{Cell, Comparison, report};
use crate::failure::Failure;
use crate::inspect::counted;
use crate::random::{Stream, random};

const WIDE: (f64, f64) = (560.0, 360.0);
const SMALL: (f64, f64) = (340.0, 300.0);
/// Maximum number of rows that are drawn.
const ROWS: usize = 1000;
/// Maximum number of columns whose values a tip shows.
const TIP_COLUMNS: usize = 6;
/// Number of grid points in each direction.
const GRID: usize = 61;
/// Number of contour lines.
const LEVELS: usize = 9;
/// Maximum number of components whose contours are drawn.
const CONTOURS: usize = 6;
const BINS: usize = 40;
/// Maximum number of characters of a name.
const NAME: usize = 32;

/// The methods of the cells, in drawing order.
pub fn series(cells: &[Cell]) -> Vec<String> {
    let mut names: Vec<String> = cells.iter().map(|cell| cell.case.method.to_string()).collect();
    names.dedup();
    names
}

/// Fidelity against size, with one line per method.
pub fn frontier(comparison: &Comparison) -> Plot {
    let cells = &comparison.cells;
    let points = |cell: &Cell| cell.model.m() as f64;
    let fidelity = |cell: &Cell| cell.model.parts().fidelity;
    let low = cells.iter().map(fidelity).fold(1.0, f64::min);
    let x = Axis::log("points kept", cells.iter().map(points));
    let low = low.min(comparison.fidelity);
    let y = Axis::nines("fidelity", (low * 20.0).floor() / 20.0);
    let about = "Up and to the left is better: more of kernel PCA with fewer points. The dashed line is exact kernel PCA, which keeps \
                 every row; the dotted line is the requested fidelity; the recommended model is outlined. Near 1 the scale is stretched.";
    let mut plot = Plot::new("Size and fidelity of every method", about, WIDE, x, y);
    let ends = cells.iter().map(points).fold((f64::INFINITY, 0.0), |(a, b): (f64, f64), m| (a.min(m), b.max(m)));
    plot.line("ceiling", [(ends.0, 1.0), (ends.1, 1.0)]);
    plot.text((ends.1, 1.0), true, "exact kernel PCA");
    plot.line("asked", [(ends.0, comparison.fidelity), (ends.1, comparison.fidelity)]);
    for (k, name) in series(cells).iter().enumerate() {
        let own: Vec<&Cell> = cells.iter().filter(|cell| cell.case.method.to_string() == *name).collect();
        plot.line(&format!("{} d{k}", colour(k)), own.iter().map(|cell| (points(cell), fidelity(cell))));
        for cell in own {
            let chosen = comparison.recommended.as_ref().is_some_and(|r| r.case == cell.case);
            let tip = format!(
                "{name}: {} points, fidelity {:.4} (requested: {}){}",
                cell.model.m(),
                fidelity(cell),
                cell.case.target_text(),
                if chosen { ", recommended" } else { "" }
            );
            let class = if chosen { format!("{} chosen", colour(k)) } else { colour(k) };
            plot.mark(k, &class, (points(cell), fidelity(cell)), &tip);
        }
    }
    plot
}

/// The deciding measure, AUROC or accuracy, against size, with one line per method and standard errors; `None` without
/// labels.
pub fn quality(comparison: &Comparison) -> Option<Plot> {
    let of = |judged: &Judged| evidence::quality(judged.evidence(comparison.measure));
    let judged = |cell: &Cell| Some((cell.model.m() as f64, of(cell.judged.as_ref()?)?));
    let known: Vec<(f64, Estimate)> = comparison.cells.iter().filter_map(judged).collect();
    let baselines = comparison.baselines.iter().filter_map(|baseline| Some((baseline.name, of(&baseline.judged)?)));
    let baselines: Vec<(&str, Estimate)> = baselines.collect();
    let what = report::word_of(comparison.measure);
    let low = known.iter().map(|(_, q)| q.value - q.error).fold(f64::INFINITY, f64::min);
    let x = Axis::log("points kept", known.iter().map(|(m, _)| *m));
    let low = (low * 20.0).floor() / 20.0;
    let y = Axis::from(what, low, 1.0 + 1e-9);
    // Baselines far below all models are left out, so that the models get more room.
    let (shown, below): (Vec<_>, Vec<_>) = baselines.into_iter().partition(|(_, q)| q.value >= low);
    let below: String = below.iter().map(|(name, q)| format!(" Not shown: {name}, {:.4}.", q.value)).collect();
    let about = format!(
        "On held-out rows; bars extend one standard error to both sides. Models are compared row by row, which detects smaller \
         differences than the bars suggest. Dotted lines are baselines.{below}"
    );
    let title =
        if comparison.measure == Measure::Novelty { "Size and detection of novel rows" } else { "Size and accuracy" };
    let mut plot = Plot::new(title, &about, WIDE, x, y);
    known.first()?;
    let ends = known.iter().fold((f64::INFINITY, 0.0), |(a, b): (f64, f64), (m, _)| (a.min(*m), b.max(*m)));
    for (_, quality) in &shown {
        plot.line("asked", [(ends.0, quality.value), (ends.1, quality.value)]);
    }
    for (value, names) in labels(shown, (1.0 - low) / LINES) {
        plot.text((ends.1, value), true, &names.join(", "));
    }
    for (k, name) in series(&comparison.cells).iter().enumerate() {
        let own = comparison.cells.iter().filter(|cell| cell.case.method.to_string() == *name);
        let own: Vec<(&Cell, (f64, Estimate))> = own.filter_map(|cell| Some((cell, judged(cell)?))).collect();
        plot.line(&format!("{} d{k}", colour(k)), own.iter().map(|(_, (m, q))| (*m, q.value)));
        for (cell, (m, q)) in own {
            let chosen = comparison.recommended.as_ref().is_some_and(|r| r.case == cell.case);
            let suffix = if chosen { ", recommended" } else { "" };
            let tip = format!("{name}: {m} points, {what} {:.4} ± {:.4}{suffix}", q.value, q.error);
            plot.line(&format!("{} error", colour(k)), [(m, q.value - q.error), (m, (q.value + q.error).min(1.0))]);
            let class = if chosen { format!("{} chosen", colour(k)) } else { colour(k) };
            plot.mark(k, &class, (m, q.value), &tip);
        }
    }
    Some(plot)
}

/// Number of text lines that fit into a wide plot.
const LINES: f64 = 20.0;

/// Labels for values, the highest first; names of values within `apart` below the first share its line.
fn labels(mut of: Vec<(&str, Estimate)>, apart: f64) -> Vec<(f64, Vec<&str>)> {
    of.sort_by(|(_, a), (_, b)| b.value.total_cmp(&a.value));
    let mut labels: Vec<(f64, Vec<&str>)> = Vec::new();
    for (name, Estimate { value, .. }) in of {
        match labels.last_mut() {
            Some((first, names)) if *first - value < apart => names.push(name),
            _ => labels.push((value, vec![name])),
        }
    }
    labels
}

/// Share of the variance along each component.
pub fn scree(model: &Model) -> Plot {
    let parts = model.parts();
    let total = if parts.total_variance > 0.0 { parts.total_variance } else { 1.0 };
    let shares: Vec<f64> = parts.variances.iter().map(|v| v / total).collect();
    let most = shares.iter().copied().fold(0.0, f64::max);
    let x = Axis::from("component", 0.5, shares.len() as f64 + 0.5);
    let y = Axis::from("share of the variance", 0.0, 1.05 * most);
    let captured: f64 = parts.captured / total;
    let components = counted(shares.len(), "component");
    let about = format!("{components}: {:.1} % of the variance in feature space.", 100.0 * captured);
    let mut plot = Plot::new("Variance along each component", &about, SMALL, x, y);
    for (k, share) in shares.iter().enumerate() {
        let at = k as f64 + 1.0;
        plot.bar("", (at - 0.4, at + 0.4), *share, &format!("component {}: {:.2} %", k + 1, 100.0 * share));
    }
    plot
}

/// A histogram of the scores, with the threshold.
pub fn scores(model: &Model) -> Plot {
    let scores = &model.parts().scores;
    let most = scores.values.last().copied().unwrap_or(1.0).max(scores.threshold);
    let width = if most > 0.0 { most / BINS as f64 } else { 1.0 };
    let mut counts = vec![0usize; BINS + 1];
    let mut before = scores.count;
    // The number of rows between two kept scores is the difference of their ranks.
    for (value, above) in scores.values.iter().zip(&scores.above) {
        counts[((value / width) as usize).min(BINS)] += before - above;
        before = *above;
    }
    let highest = *counts.iter().max().unwrap_or(&1) as f64;
    let x = Axis::from("novelty score", 0.0, width * (BINS + 1) as f64);
    let y = Axis::from("training rows", 0.0, 1.08 * highest);
    let share = short(100.0 * scores.quantile);
    let rows = if scores.calibration.is_some() { "held-out rows" } else { "training rows" };
    let about = format!("{share} % of {} {rows} score below the threshold, {}.", scores.count, short(scores.threshold));
    let mut plot = Plot::new(&format!("Novelty scores of the {rows}"), &about, SMALL, x, y);
    for (i, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let (from, to) = (i as f64 * width, (i + 1) as f64 * width);
        plot.bar("", (from, to), *count as f64, &format!("{} to {}: {count} rows", short(from), short(to)));
    }
    plot.line("threshold", [(scores.threshold, 0.0), (scores.threshold, 1.08 * highest)]);
    plot.text((scores.threshold, 1.08 * highest), scores.threshold > 0.6 * most, "threshold");
    plot
}

/// Rows and their classes, if known.
pub struct Rows<'a> {
    pub points: &'a Points<'a>,
    /// The names of the classes, and the class of each row.
    pub classes: Option<(&'a [String], &'a [usize])>,
}

/// The support in the units of the user's columns.
fn support(model: &Model) -> Result<Points<'static>, Failure> {
    let (support, columns) = (&model.parts().support, &model.parts().columns);
    let unscale = |row: &[f64]| -> Vec<f64> {
        row.iter().enumerate().map(|(k, v)| v * columns.scale[k] + columns.shift[k]).collect()
    };
    Ok(Points::new(support.d(), support.rows().flat_map(unscale).collect::<Vec<f64>>())?)
}

/// A number with nine digits.
fn precise(value: f64) -> String {
    let text = format!("{value:.8e}");
    text.parse::<f64>()
        .map_or(text, |rounded| if (1e-4..1e15).contains(&value.abs()) { rounded.to_string() } else { short(value) })
}

/// Shortens a long name.
pub fn shortened(name: &str) -> String {
    if name.chars().count() > NAME { name.chars().take(NAME - 1).chain(['…']).collect() } else { name.to_string() }
}

/// `x = 1.2, y = 3.4, …`
fn describe_row(model: &Model, row: &[f64]) -> String {
    let names = &model.parts().columns.names;
    let name = |k: usize| names.as_ref().map_or_else(|| format!("column {k}"), |names| shortened(&names[k]));
    let mut text: Vec<String> =
        row.iter().take(TIP_COLUMNS).enumerate().map(|(k, v)| format!("{} = {}", name(k), precise(*v))).collect();
    if row.len() > TIP_COLUMNS {
        text.push("…".into());
    }
    text.join(", ")
}

/// Rows and support along the first two components, or along the component and the score if there is only one.
pub fn scatter(model: &Model, rows: Option<&Rows>) -> Result<Plot, Failure> {
    let place = |points: &Points| -> Result<Vec<(f64, f64)>, Failure> {
        let features = model.transform(points, Precision::Double)?;
        Ok(match model.q() {
            1 => features.iter().copied().zip(model.score(points, Precision::Double)?).collect(),
            q => features.chunks_exact(q).map(|row| (row[0], row[1])).collect(),
        })
    };
    let all_support = support(model)?;
    let numbers = random(0, Stream::Plots).sample(all_support.n(), ROWS);
    let support = all_support.select(&numbers);
    let kept = place(&support)?;
    let shown = rows.map(|rows| random(0, Stream::Plots).sample(rows.points.n(), ROWS)).unwrap_or_default();
    let places = match rows {
        Some(rows) => place(&rows.points.select(&shown))?,
        None => Vec::new(),
    };
    let all = || places.iter().chain(&kept);
    let x = Axis::around("component 1", all().map(|p| p.0));
    let y = Axis::around(if model.q() == 1 { "novelty score" } else { "component 2" }, all().map(|p| p.1));
    let what = if model.parts().rows.is_some() { "training rows" } else { "synthetic points" };
    let about = match rows {
        Some(rows) if shown.len() < rows.points.n() => {
            format!("{} of {} rows; rings are the support, {what}.", shown.len(), rows.points.n())
        }
        _ => format!("Rings are the support, {what}."),
    };
    let title = if rows.is_some() { "Rows and support along the components" } else { "Support along the components" };
    let mut plot = Plot::new(title, &about, WIDE, x, y);
    for (&row, at) in shown.iter().zip(&places) {
        let rows = rows.expect("shown rows are there");
        let class = rows.classes.map(|(names, of)| (of[row], names[of[row]].as_str()));
        let named = class.map_or(String::new(), |(_, name)| format!(", class {name}"));
        let series = class.map_or(0, |(class, _)| class);
        let tip = format!("row {row}{named}: {}", describe_row(model, rows.points.row(row)));
        plot.mark(series, &format!("row {}", colour(series)), *at, &tip);
    }
    for (i, (&number, at)) in numbers.iter().zip(&kept).enumerate() {
        let own = || format!("synthetic point {number}");
        let name = model.parts().rows.as_ref().map_or_else(own, |rows| format!("row {}", rows[number]));
        plot.mark(0, "kept", *at, &format!("support, {name}: {}", describe_row(model, support.row(i))));
    }
    Ok(plot)
}

/// The range of the values, with a margin on both sides.
fn padded_range<I: Iterator<Item = f64>>(column: impl Fn() -> I) -> (f64, f64) {
    let (low, high) = (column().fold(f64::INFINITY, f64::min), column().fold(f64::NEG_INFINITY, f64::max));
    let pad = if apart(low, high) { 0.15 * (high - low) } else { 0.5 * low.abs().max(1.0) };
    (low - pad, high + pad)
}

/// Contour lines of each component and of the score, for models of two columns.
pub fn contours(model: &Model, rows: Option<&Rows>) -> Result<Vec<Plot>, Failure> {
    let columns = &model.parts().columns;
    if columns.d() != 2 {
        return Ok(Vec::new());
    }
    let support = support(model)?;
    let points = rows.map_or(&support, |rows| rows.points);
    let names = columns.names.clone().unwrap_or_else(|| vec!["column 0".into(), "column 1".into()]);
    let names: Vec<String> = names.iter().map(|name| shortened(name)).collect();
    let ranges = [0, 1].map(|k| padded_range(|| points.rows().chain(support.rows()).map(|row| row[k])));
    // Ranges that overflow cannot be drawn.
    if ranges.iter().any(|(low, high)| !(high - low).is_finite()) {
        return Ok(Vec::new());
    }
    let (xs, ys) = (steps(ranges[0].0, ranges[0].1, GRID), steps(ranges[1].0, ranges[1].1, GRID));
    let grid = Points::new(2, Grid::crossings(&xs, &ys))?;
    let features = model.transform(&grid, Precision::Double)?;
    let dots: Vec<(f64, f64)> = match rows {
        Some(rows) => random(0, Stream::Plots)
            .sample(rows.points.n(), ROWS)
            .iter()
            .map(|&i| (rows.points.row(i)[0], rows.points.row(i)[1]))
            .collect(),
        None => Vec::new(),
    };
    let draw = |title: &str, about: &str, values: Vec<f64>, threshold: Option<f64>| {
        let axis = |k: usize| Axis::from(&names[k], ranges[k].0, ranges[k].1);
        let mut plot = Plot::new(title, about, SMALL, axis(0), axis(1));
        let lines = Grid { xs: xs.clone(), ys: ys.clone(), values };
        plot.dots("row", dots.iter().copied());
        for (i, level) in lines.levels(LEVELS).into_iter().enumerate() {
            plot.segments(&format!("level l{i}"), &lines.line(level), &short(level));
        }
        if let Some(threshold) = threshold {
            plot.segments("threshold", &lines.line(threshold), &format!("threshold {}", short(threshold)));
        }
        plot.dots("kept", support.rows().map(|row| (row[0], row[1])));
        plot
    };
    let q = model.q();
    let component = |k: usize| {
        let values = features.iter().skip(k).step_by(q).copied().collect();
        draw(&format!("Component {}", k + 1), "Lines of equal value; large dots are the support.", values, None)
    };
    let mut plots: Vec<Plot> = (0..q.min(CONTOURS)).map(component).collect();
    let scores = model.score(&grid, Precision::Double)?;
    let about = "Lines of equal novelty score; rows beyond the thick line are novel.";
    plots.push(draw("Novelty score", about, scores, Some(model.parts().scores.threshold)));
    Ok(plots)
}
