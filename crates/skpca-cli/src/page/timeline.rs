//! Charts along the rows of a table, as wide as the page. Marks are stretched with it; strokes and text are not.

use std::fmt::Write;

use super::svg::{Axis, escaped};

const WIDTH: f64 = 1200.0;
const HEIGHT: f64 = 240.0;
/// Number of labels along the rows; phones show the first and the last only.
const LABELS: usize = 5;

/// Labels of equally spaced rows along a chart, including both ends.
pub struct Times {
    /// The name of the axis: `row`, or the name of a column.
    pub name: String,
    pub labels: Vec<String>,
}

impl Times {
    /// Labels for `count` rows.
    pub fn of(name: &str, count: usize, label: impl Fn(usize) -> String) -> Times {
        let shown = LABELS.min(count);
        let at = |k: usize| if shown > 1 { k * (count - 1) / (shown - 1) } else { 0 };
        Times { name: name.into(), labels: (0..shown).map(|k| label(at(k))).collect() }
    }
}

/// A chart under construction. Positions along the rows range from 0 to 1.
pub struct Timeline {
    title: String,
    about: String,
    y: Axis,
    marks: String,
    limits: String,
}

impl Timeline {
    pub fn new(title: &str, about: &str, y: Axis) -> Timeline {
        Timeline { title: title.into(), about: about.into(), y, marks: String::new(), limits: String::new() }
    }

    fn height(&self, value: f64) -> f64 {
        HEIGHT * (1.0 - self.y.place(value).clamp(0.0, 1.0))
    }

    fn at(&self, (x, y): (f64, f64)) -> String {
        format!("{:.1} {:.1}", WIDTH * x, self.height(y))
    }

    /// A line through points.
    pub fn line(&mut self, class: &str, points: impl IntoIterator<Item = (f64, f64)>) {
        let places: Vec<String> = points.into_iter().map(|point| self.at(point)).collect();
        let _ = writeln!(self.marks, "<path class=\"line {class}\" d=\"M{}\"/>", places.join("L"));
    }

    /// The area between two lines.
    pub fn band(&mut self, class: &str, points: &[(f64, f64, f64)]) {
        let low = points.iter().rev().map(|&(x, low, _)| (x, low));
        let places: Vec<String> =
            points.iter().map(|&(x, _, high)| (x, high)).chain(low).map(|point| self.at(point)).collect();
        let _ = writeln!(self.marks, "<path class=\"band {class}\" d=\"M{}Z\"/>", places.join("L"));
    }

    /// Vertical bars from low to high.
    pub fn columns(&mut self, class: &str, columns: impl IntoIterator<Item = (f64, f64, f64)>) {
        let mut path = String::new();
        for (x, low, high) in columns {
            let _ = write!(path, "M{}V{:.1}", self.at((x, low)), self.height(high) - 0.1);
        }
        if !path.is_empty() {
            let _ = writeln!(self.marks, "<path class=\"{class}\" d=\"{path}\"/>");
        }
    }

    /// A tip for a range of rows, shown wherever in it the pointer is.
    pub fn tip(&mut self, (from, to): (f64, f64), tip: &str) {
        let (x, width) = (WIDTH * from, (WIDTH * (to - from)).max(0.5));
        let tip = escaped(tip);
        let _ =
            writeln!(self.marks, "<rect x=\"{x:.1}\" width=\"{width:.1}\" height=\"240\"><title>{tip}</title></rect>");
    }

    /// A horizontal line with a label.
    pub fn limit(&mut self, class: &str, value: f64, name: &str) {
        let y = self.height(value);
        let _ = writeln!(self.marks, "<path class=\"line {class}\" d=\"M0 {y:.1}H{WIDTH}\"/>");
        let (top, name) = (100.0 * y / HEIGHT, escaped(name));
        let _ = writeln!(self.limits, "<span class=\"limit\" style=\"top:{top:.1}%\">{name}</span>");
    }

    /// The figure, with an `id` that is unique on the page.
    pub fn figure(&self, id: &str, times: &Times) -> String {
        let (mut grid, mut labels) = (String::new(), String::new());
        for (tick, text) in self.y.labels() {
            let y = self.height(tick);
            let _ = write!(grid, "<path d=\"M0 {y:.1}H{WIDTH}\"/>");
            let _ = writeln!(labels, "<span class=\"y\" style=\"top:{:.1}%\">{text}</span>", 100.0 * y / HEIGHT);
        }
        let last = times.labels.len().saturating_sub(1);
        for (k, text) in times.labels.iter().enumerate() {
            let (at, text) = (100.0 * k as f64 / last.max(1) as f64, escaped(text));
            let end = if k == 0 {
                " first"
            } else if k == last {
                " last"
            } else {
                ""
            };
            let _ = writeln!(labels, "<span class=\"x{end}\" style=\"left:{at:.1}%\">{text}</span>");
        }
        let (title, about, name) = (escaped(&self.title), escaped(&self.about), escaped(&times.name));
        format!(
            "<figure id=\"{id}\" class=\"timeline\"><figcaption>{title}</figcaption>\n\
             <p class=\"unit\">{}</p><div class=\"plot\">\n\
             <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\
             <title id=\"{id}-t\">{title}</title><desc id=\"{id}-d\">{about}</desc>\n\
             <g class=\"axes\">{grid}</g>\n<g class=\"marks\">{}</g></svg>\n{labels}{}</div>\n\
             <p class=\"along\">{name}</p><p class=\"about\">{about}</p></figure>\n",
            escaped(&self.y.label),
            self.marks,
            self.limits
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_times_stay_text() {
        let mut chart = Timeline::new("<b>", "&", Axis::from("\"<i>", 0.0, 1.0));
        chart.limit("limit", 0.5, "<script>");
        chart.tip((0.0, 1.0), "</title><script>");
        let figure = chart.figure("f", &Times::of("<u>", 3, |_| "<script>".into()));
        assert!(["<script>", "<b>", "<i>", "<u>"].iter().all(|tag| !figure.contains(tag)), "{figure}");
    }

    #[test]
    fn labels_include_both_ends() {
        let of = |count| Times::of("row", count, |row| row.to_string()).labels;
        assert_eq!(of(1), ["0"]);
        assert_eq!(of(3), ["0", "1", "2"]);
        assert_eq!(of(1000), ["0", "249", "499", "749", "999"]);
    }
}
