//! Plots as SVG text: axes, marks, and descriptions for screen readers.

use std::fmt::Write;

/// Escapes text for HTML.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A range of numbers and the ticks on it.
#[derive(Clone)]
pub struct Axis {
    pub label: String,
    low: f64,
    high: f64,
    scale: Scale,
}

/// The scale of an axis.
#[derive(Clone, Copy, PartialEq)]
enum Scale {
    /// Linear.
    Values,
    /// Logarithmic.
    Ratios,
    /// Logarithmic in 1 − value, down to [`LEAST`]: 0.9 and 0.99 are as far apart as 0.99 and 0.999.
    Nines,
}

/// The smallest distance from 1 that the scale of nines resolves.
const LEAST: f64 = 1e-4;

impl Scale {
    fn of(self, value: f64) -> f64 {
        match self {
            Scale::Values => value,
            Scale::Ratios => value.max(f64::MIN_POSITIVE).ln(),
            Scale::Nines => -((1.0 - value).max(0.0) + LEAST).ln(),
        }
    }
}

impl Axis {
    /// A linear axis that contains all `values`, with some margin.
    pub fn around(label: &str, values: impl IntoIterator<Item = f64>) -> Axis {
        let (low, high) = range(values);
        let pad = if apart(low, high) { 0.04 * (high - low) } else { low.abs().max(1.0) * 0.5 };
        Axis { label: label.into(), low: low - pad, high: high + pad, scale: Scale::Values }
    }

    /// A linear axis from `low` to `high`.
    pub fn from(label: &str, low: f64, high: f64) -> Axis {
        Axis {
            label: label.into(),
            low,
            high: if apart(low, high) { high } else { low + low.abs().max(1.0) },
            scale: Scale::Values,
        }
    }

    /// A logarithmic axis; values must be positive.
    pub fn log(label: &str, values: impl IntoIterator<Item = f64>) -> Axis {
        let (low, high) = range(values);
        Axis { label: label.into(), low: low / 1.25, high: high * 1.25, scale: Scale::Ratios }
    }

    /// An axis for shares up to 1 that is stretched near 1.
    pub fn nines(label: &str, low: f64) -> Axis {
        Axis { label: label.into(), low: low.clamp(0.0, 0.9), high: 1.0, scale: Scale::Nines }
    }

    /// The position of a value between the ends, from 0 to 1.
    pub fn place(&self, value: f64) -> f64 {
        let of = |v: f64| self.scale.of(v);
        (of(value) - of(self.low)) / (of(self.high) - of(self.low))
    }

    /// About six round numbers.
    fn ticks(&self) -> Vec<f64> {
        if self.scale == Scale::Nines {
            return [0.0, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999, 1.0].into_iter().filter(|t| *t >= self.low).collect();
        }
        if self.scale == Scale::Ratios {
            let first = self.low.log10().floor() as i32;
            let powers = (first..=self.high.log10().ceil() as i32).map(|p| 10f64.powi(p));
            let inside = |steps: &[f64]| -> Vec<f64> {
                let all = powers.clone().flat_map(|power| steps.iter().map(move |step| step * power));
                all.filter(|t| (self.low..=self.high).contains(t)).collect()
            };
            let few = inside(&[1.0]);
            return if few.len() >= 4 { few } else { inside(&[1.0, 2.0, 5.0]) };
        }
        let rough = (self.high - self.low) / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|s| s * power).find(|s| *s >= rough).unwrap_or(10.0 * power);
        let first = (self.low / step).ceil();
        (0..20).map(|i| (first + f64::from(i)) * step).take_while(|tick| *tick <= self.high + 1e-9 * step).collect()
    }

    /// Ticks and their labels, with as many digits as are needed to distinguish them.
    pub fn labels(&self) -> Vec<(f64, String)> {
        let ticks = self.ticks();
        let step = ticks.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
        let digits = if step.is_finite() && step > 0.0 { (-step.log10().floor()).clamp(0.0, 9.0) as usize } else { 0 };
        let crowded = |tick: &f64| tick.abs() >= 1e4 * step && tick.abs() < 1e9;
        let text = |tick: f64| {
            if self.scale == Scale::Values && crowded(&tick) { format!("{tick:.digits$}") } else { short(tick) }
        };
        ticks.into_iter().map(|tick| (tick, text(tick))).collect()
    }
}

/// Whether two ends differ by more than rounding.
pub fn apart(low: f64, high: f64) -> bool {
    high - low > 1e-12 * low.abs().max(high.abs())
}

fn range(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let fold = values.into_iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    if fold.0 <= fold.1 { fold } else { (0.0, 1.0) }
}

/// A number with few digits: `0.25`, `1e5`.
pub fn short(value: f64) -> String {
    let size = value.abs();
    match () {
        () if value == 0.0 => "0".into(),
        () if !(1e-4..1e5).contains(&size) => format!("{value:.2e}").replace(".00e", "e"),
        () => {
            let digits = (3 - size.log10().floor() as i32).clamp(0, 6) as usize;
            let text = format!("{value:.digits$}");
            if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
        }
    }
}

/// Shapes of marks, so that series differ by more than colour.
const SHAPES: [&str; 8] = [
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0",
    "M-3.6-3.6h7.2v7.2h-7.2z",
    "M0-4.6L4.3 3.2H-4.3z",
    "M0-5L5 0L0 5L-5 0z",
    "M0 4.6L4.3-3.2H-4.3z",
    "M-1.5-4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z",
    "M-4.5 0L0-1.6L4.5 0L0 1.6zM0-4.5L1.6 0L0 4.5L-1.6 0z",
    "M-4.5-2.6L0-5.2L4.5-2.6V2.6L0 5.2L-4.5 2.6z",
];

/// The shape of a series.
pub fn shape(series: usize) -> &'static str {
    SHAPES[series % SHAPES.len()]
}

/// Number of colours in the style sheet.
const COLOURS: usize = 12;
/// Number of series with distinct combinations of shape and colour.
pub const DIFFERENT: usize = 24;

/// The CSS class for the colour of a series.
pub fn colour(series: usize) -> String {
    format!("c{}", series % COLOURS)
}

const LEFT: f64 = 60.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 42.0;

/// A plot under construction.
pub struct Plot {
    title: String,
    about: String,
    size: (f64, f64),
    x: Axis,
    y: Axis,
    marks: String,
}

impl Plot {
    /// A plot without marks; `about` describes it in words.
    pub fn new(title: &str, about: &str, size: (f64, f64), x: Axis, y: Axis) -> Plot {
        Plot { title: title.into(), about: about.into(), size, x, y, marks: String::new() }
    }

    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        let (width, height) = (self.size.0 - LEFT - RIGHT, self.size.1 - TOP - BOTTOM);
        (LEFT + width * self.x.place(x), TOP + height * (1.0 - self.y.place(y)))
    }

    /// A mark in the shape of its series, with a tip.
    pub fn mark(&mut self, series: usize, class: &str, (x, y): (f64, f64), tip: &str) {
        let (x, y) = self.at(x, y);
        let (shape, tip) = (shape(series), escaped(tip));
        self.push(&format!(
            "<path class=\"mark {class}\" transform=\"translate({x:.1} {y:.1})\" d=\"{shape}\"><title>{tip}</title></path>"
        ));
    }

    /// A line through points.
    pub fn line(&mut self, class: &str, points: impl IntoIterator<Item = (f64, f64)>) {
        let places: Vec<String> = points
            .into_iter()
            .map(|(x, y)| {
                let (x, y) = self.at(x, y);
                format!("{x:.1} {y:.1}")
            })
            .collect();
        self.push(&format!("<path class=\"line {class}\" d=\"M{}\"/>", places.join("L")));
    }

    /// Line segments with a common tip.
    pub fn segments(&mut self, class: &str, segments: &[[(f64, f64); 2]], tip: &str) {
        let mut path = String::new();
        for [a, b] in segments {
            let ((ax, ay), (bx, by)) = (self.at(a.0, a.1), self.at(b.0, b.1));
            let _ = write!(path, "M{ax:.1} {ay:.1}L{bx:.1} {by:.1}");
        }
        if !path.is_empty() {
            self.push(&format!("<path class=\"line {class}\" d=\"{path}\"><title>{}</title></path>", escaped(tip)));
        }
    }

    /// Dots without tips.
    pub fn dots(&mut self, class: &str, points: impl IntoIterator<Item = (f64, f64)>) {
        let mut path = String::new();
        for (x, y) in points {
            let (x, y) = self.at(x, y);
            let _ = write!(path, "M{x:.1} {y:.1}h0");
        }
        self.push(&format!("<path class=\"dots {class}\" d=\"{path}\"/>"));
    }

    /// A bar from the lower axis.
    pub fn bar(&mut self, class: &str, (from, to): (f64, f64), height: f64, tip: &str) {
        let ((left, top), (right, bottom)) = (self.at(from, height), self.at(to, self.y.low));
        let (width, height) = ((right - left - 1.0).max(0.5), (bottom - top).max(0.0));
        self.push(&format!(
            "<rect class=\"bar {class}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"><title>{}</title></rect>",
            escaped(tip)
        ));
    }

    /// Text below a point, which begins there, or ends there if `end`.
    pub fn text(&mut self, (x, y): (f64, f64), end: bool, text: &str) {
        let (x, y) = self.at(x, y);
        let anchor = if end { "end" } else { "start" };
        self.push(&format!(
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
            y + 12.0,
            escaped(text)
        ));
    }

    fn push(&mut self, mark: &str) {
        self.marks.push_str(mark);
        self.marks.push('\n');
    }

    /// The figure, with an `id` that is unique on the page.
    pub fn figure(&self, id: &str) -> String {
        let (width, height) = self.size;
        let (right, bottom) = (width - RIGHT, height - BOTTOM);
        let mut axes = String::new();
        for (tick, text) in self.x.labels() {
            let x = self.at(tick, self.y.low).0;
            let _ = write!(
                axes,
                "<path d=\"M{x:.1} {TOP}V{bottom}\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 14.0,
                text
            );
        }
        for (tick, text) in self.y.labels() {
            let y = self.at(self.x.low, tick).1;
            let _ = write!(
                axes,
                "<path d=\"M{LEFT} {y:.1}H{right}\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 5.0,
                y + 3.5,
                text
            );
        }
        let (middle, center) = ((LEFT + right) / 2.0, (TOP + bottom) / 2.0);
        let (title, about) = (escaped(&self.title), escaped(&self.about));
        format!(
            "<figure id=\"{id}\"><figcaption>{title}</figcaption>\n\
             <svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\"><title id=\"{id}-t\">{title}</title><desc id=\"{id}-d\">{about}</desc>\n\
             <g class=\"axes\">{axes}<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text>\
             <text transform=\"translate(11 {center}) rotate(-90)\" text-anchor=\"middle\">{}</text></g>\n\
             <g class=\"marks\">{}</g></svg>\n<p class=\"about\">{about}</p></figure>\n",
            height - 6.0,
            escaped(&self.x.label),
            escaped(&self.y.label),
            self.marks
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(Axis::from("", 0.0, 1.0).ticks(), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
        assert_eq!(Axis::log("", [10.0, 500.0]).ticks(), [10.0, 20.0, 50.0, 100.0, 200.0, 500.0]);
        assert_eq!(Axis::log("", [1.0, 5e5]).ticks().len(), 6);
        assert_eq!(Axis::nines("", 0.85).ticks(), [0.9, 0.95, 0.99, 0.999, 1.0]);
        assert!(Axis::around("", [3.0, 3.0]).ticks().len() > 1, "a single value has an axis too");
        assert!(Axis::around("", [1e300, -1e300]).ticks().len() > 1);
        let near = Axis::from("", 999_999.0, 1_000_001.0).labels();
        assert_eq!(near[1].1, "999999.5", "ticks far from zero have distinct labels");
        assert!(Axis::from("", 1e150, 1e150).ticks().len() > 1);
    }

    #[test]
    fn numbers_are_short() {
        let of = [0.0, 0.25, 0.6000000000000001, 12345.678, 1e7, 2.5e-9, -3.0].map(short);
        assert_eq!(of, ["0", "0.25", "0.6", "12346", "1e7", "2.50e-9", "-3"]);
    }

    #[test]
    fn hostile_names_stay_text() {
        let mut plot =
            Plot::new("<script>", "\"&", (100.0, 100.0), Axis::from("<b>", 0.0, 1.0), Axis::from("", 0.0, 1.0));
        plot.mark(0, "", (0.5, 0.5), "</title><script>alert(1)</script>");
        let figure = plot.figure("f");
        assert!(!figure.contains("<script>") && !figure.contains("<b>"), "{figure}");
    }
}
