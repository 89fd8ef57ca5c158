//! The page of `skpca monitor`: scores, T², alarms and drift over the rows of a table, in time order.

use super::plots::shortened;
use super::svg::{Axis, escaped, short};
use super::timeline::{Timeline, Times};
use super::{definitions, page};
use crate::inspect::{self, counted};
use crate::monitor::runs::{AlarmRun, KEPT, Lead};
use crate::monitor::series::{Column, Range};
use crate::monitor::{Monitored, percent};

/// Maximum number of windows of rows in the charts of drift.
const WINDOWS: usize = 40;
/// Minimum number of independent rows in a window.
const WINDOW: usize = 100;
/// A scale is linear if all values are at most this multiple of their limit.
const TALL: f64 = 8.0;
/// Lower end of a logarithmic scale, as a multiple of the limit.
const DEEP: f64 = 1e-3;
/// Half width of the 99% band of chance, in standard errors.
const CHANCE: f64 = 2.576;
/// Maximum number of inputs in the table of causes.
const INPUTS: usize = 12;

/// The whole page.
pub fn of_monitored(seen: &Monitored) -> String {
    let title = format!("Monitor: {}", seen.data);
    let windows = Windows::of(seen);
    let notes: String = notes(seen).iter().map(|note| format!("<li>{}</li>", escaped(note))).collect();
    let notes = if notes.is_empty() { notes } else { format!("<ul class=\"notes\">{notes}</ul>\n") };
    let summary = inspect::summary_lines(&seen.model);
    let body = format!(
        "<section><h2>{}</h2>\n<p class=\"advice\">{}.</p>\n<p>{}</p>\n{notes}{}{}</section>\n\
         <section><h2>Runs of alarms</h2>\n{}{}</section>\n<section><h2>Drift</h2>\n{}</section>\n\
         <section><h2>The model</h2>\n{}</section>\n",
        escaped(&format!("{} by {}", seen.data, seen.model_name)),
        escaped(&seen.sentence()),
        escaped(&windows.sentence(seen)),
        score(seen),
        t2(seen),
        runs(seen),
        inputs(seen),
        windows.figures(seen),
        definitions(&summary)
    );
    page(&title, &body)
}

/// Notes for the reader of the page.
fn notes(seen: &Monitored) -> Vec<String> {
    let mut notes = Vec::new();
    if seen.skipped > 0 {
        let passed = counted(seen.skipped, "row");
        notes.push(format!("skpca skipped {passed} that could not be used; row numbers do not count such rows."));
    }
    if seen.model.parts().scores.calibration.is_none() {
        notes.push(
            "The threshold is a quantile of the training scores, which new rows exceed more often. Fit with --false-alarms for a \
             rate that holds for new rows."
                .into(),
        );
    }
    if seen.model.parts().frame.is_some() {
        notes.push("The components of this model are correlated: there is no T² without refit=true.".into());
    }
    notes
}

/// The label of a row: its time or its number.
fn label(seen: &Monitored, row: usize, time: &str) -> String {
    if seen.time.is_some() { shortened(time) } else { row.to_string() }
}

fn times(seen: &Monitored) -> Times {
    let (name, columns) = (seen.time.as_ref().map_or("row".to_string(), |name| shortened(name)), &seen.series.columns);
    let time = |row: usize| &columns[columns.partition_point(|column| column.first <= row) - 1].time;
    Times::of(&name, seen.series.rows, |row| label(seen, row, time(row)))
}

/// A linear axis if all values are near their limit, otherwise a logarithmic one.
fn axis(name: &str, all: Range, limit: Option<f64>) -> Axis {
    let high = limit.map_or(all.high, |limit| all.high.max(1.15 * limit));
    match limit {
        Some(limit) if all.high > TALL * limit => {
            Axis::log(&format!("{name}, logarithmic"), [all.low.max(DEEP * limit), high])
        }
        _ => Axis::from(name, 0.0, 1.05 * high),
    }
}

/// A statistic of the rows; `of` returns its range in a column of the chart, and its range over the rows above the
/// limit.
struct Statistic<'a> {
    title: &'a str,
    about: &'a str,
    name: &'a str,
    limit: Option<f64>,
    of: fn(&Column) -> (Range, Range),
}

impl Statistic<'_> {
    fn chart(&self, seen: &Monitored, tip: impl Fn(&Column) -> String) -> Timeline {
        let columns = &seen.series.columns;
        let rows = seen.series.rows as f64;
        let middle = |column: &Column| (column.first as f64 + 0.5 * column.rows as f64) / rows;
        let all = columns.iter().map(|column| (self.of)(column).0).fold(Range::EMPTY, Range::with);
        let mut chart = Timeline::new(self.title, self.about, axis(self.name, all, self.limit));
        let ends = |column: &Column| {
            let (x, range) = (middle(column), (self.of)(column).0);
            [(x, range.low), (x, range.high)]
        };
        chart.line("values", columns.iter().flat_map(ends));
        let beyond: Vec<(f64, Range)> = columns
            .iter()
            .map(|column| (middle(column), (self.of)(column).1))
            .filter(|(_, r)| r.low <= r.high)
            .collect();
        chart.columns("alarms", beyond.iter().map(|(x, range)| (*x, range.low, range.high)));
        chart.columns("peaks", beyond.iter().map(|(x, range)| (*x, range.high, range.high)));
        if let Some(limit) = self.limit {
            chart.limit("ceiling", limit, &format!("limit {}", short(limit)));
        }
        for column in columns {
            let half = 0.5 * column.rows as f64 / rows;
            chart.tip((middle(column) - half, middle(column) + half), &tip(column));
        }
        chart
    }
}

/// `rows 10 to 19: `, or `row 10: `, with their times.
fn rows_of(seen: &Monitored, column: &Column) -> String {
    let time = if seen.time.is_some() { format!(", from {}", shortened(&column.time)) } else { String::new() };
    match column.rows {
        1 => format!("row {}{}: ", column.first, time.replace(", from", ",")),
        rows => format!("rows {} to {}{time}: ", column.first, column.first + rows - 1),
    }
}

/// `0.12`, or `0.12 to 0.5`
fn ends(range: Range) -> String {
    if range.low == range.high { short(range.low) } else { format!("{} to {}", short(range.low), short(range.high)) }
}

fn score(seen: &Monitored) -> String {
    let (what, title) = if seen.model.parts().noise > 0.0 {
        ("The score is a Mahalanobis distance in feature space, which combines SPE and T².", "Score")
    } else {
        ("The score is the squared distance to the span of the components: SPE, or Q.", "Score: SPE")
    };
    let about = format!(
        "{what} Red: alarms; a dot marks the highest of neighbouring rows. Dashed: the threshold of the model."
    );
    let limit = Some(seen.model.threshold());
    let statistic =
        Statistic { title, about: &about, name: "score", limit, of: |column| (column.score, column.alarmed) };
    let tip = |column: &Column| {
        let alarms = match column.alarms {
            0 => String::new(),
            alarms if column.rows == 1 && alarms == 1 => ", an alarm".into(),
            alarms => format!(", {}", counted(alarms, "alarm")),
        };
        format!("{}score {}{alarms}", rows_of(seen, column), ends(column.score))
    };
    statistic.chart(seen, tip).figure("score", &times(seen))
}

fn t2(seen: &Monitored) -> String {
    if seen.series.columns.iter().all(|column| column.t2.low > column.t2.high) {
        return String::new();
    }
    let beyond: usize = seen.series.columns.iter().map(|column| column.beyond).sum();
    let limit = match seen.t2_limit {
        Some(_) if seen.model.parts().noise > 0.0 => {
            format!("Dashed: the limit beyond which T² alone makes the score an alarm. Rows beyond it: {beyond}.")
        }
        Some(_) => format!(
            "Dashed: the limit that Gaussian features exceed at a rate of {}. Rows beyond it, which raise no alarm by themselves: \
             {beyond}.",
            percent(seen.promised())
        ),
        None => "There is no limit: the model has as many components as training rows.".into(),
    };
    let about = format!(
        "The squared features over their variances: how far rows are from the mean within the span of the components. {limit}"
    );
    let of = |column: &Column| (column.t2, column.t2_beyond);
    let statistic = Statistic { title: "Hotelling's T²", about: &about, name: "T²", limit: seen.t2_limit, of };
    let tip = |column: &Column| {
        let beyond = if column.beyond > 0 { format!(", {} beyond the limit", column.beyond) } else { String::new() };
        format!("{}T² {}{beyond}", rows_of(seen, column), ends(column.t2))
    };
    statistic.chart(seen, tip).figure("t2", &times(seen))
}

/// The name of an input.
fn name(seen: &Monitored, input: usize) -> String {
    let names = &seen.model.parts().columns.names;
    names.as_ref().map_or_else(|| format!("column {input}"), |names| shortened(&names[input]))
}

/// The table of the runs that are kept, which the script sorts.
fn runs(seen: &Monitored) -> String {
    if seen.kept.is_empty() {
        return "<p>There is no alarm.</p>\n".into();
    }
    let headings = [("First", "number"), ("Last", "number"), ("Rows", "number"), ("Highest score", "number")];
    let headings = headings.into_iter().chain([("Lowest p-value", "number"), ("Leading inputs", "text")]);
    let heading = |(text, sort)| format!("<th scope=\"col\" data-sort=\"{sort}\"><button>{text}</button></th>");
    let headings: String = headings.map(heading).collect();
    let rows: String = seen.kept.iter().map(|run| row(seen, run)).collect();
    let others = seen.runs.count - seen.kept.len();
    let shown: usize = seen.kept.iter().map(|run| run.rows).sum();
    let others = if others == 0 {
        String::new()
    } else {
        let alarms = counted(seen.runs.alarms - shown, "alarm");
        format!("These are the {KEPT} longest; {} with {alarms} are in the chart only. ", counted(others, "other run"))
    };
    format!(
        "<p>A run is a sequence of alarms without a normal row in between. {others}Inputs are listed with their share of the excess \
         of the scores, their value in the row with the highest score, and the value expected there. Click a heading to sort.</p>\n\
         <div class=\"wide runs\"><table class=\"models\"><thead><tr>{headings}</tr></thead><tbody>\n{rows}</tbody></table></div>\n"
    )
}

fn row(seen: &Monitored, run: &AlarmRun) -> String {
    let number = |value: f64, text: &str| format!("<td data-value=\"{value}\">{}</td>", escaped(text));
    let place = |row: usize, time: &str| number(row as f64, &label(seen, row, time));
    let leads: Vec<String> = run.leads.iter().map(|lead| describe_lead(seen, lead)).collect();
    format!(
        "<tr>{}{}{}{}{}<td class=\"what\">{}</td></tr>\n",
        place(run.first.row, &run.first.time),
        place(run.last.row, &run.last.time),
        number(run.rows as f64, &run.rows.to_string()),
        number(run.score, &short(run.score)),
        number(run.p_value, &short(run.p_value)),
        escaped(&leads.join("; "))
    )
}

/// `pressure 74%: 12.1, expected 3.2`
fn describe_lead(seen: &Monitored, lead: &Lead) -> String {
    let share = (100.0 * lead.share).round();
    format!("{} {share}%: {}, expected {}", name(seen, lead.input), short(lead.value), short(lead.expected))
}

/// The table of the inputs behind all alarms, which count equally.
fn inputs(seen: &Monitored) -> String {
    let shares = &seen.runs.shares;
    if seen.runs.explained == 0 || shares.len() < 2 {
        return String::new();
    }
    let share = |input: usize| shares[input] / seen.runs.explained as f64;
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by(|a, b| shares[*b].total_cmp(&shares[*a]));
    let row = |&input: &usize| {
        let (name, share) = (escaped(&name(seen, input)), 100.0 * share(input));
        format!(
            "<tr><th scope=\"row\">{name}</th><td>{share:.1}%</td>\
             <td class=\"share\"><span style=\"width:{share:.1}%\"></span></td></tr>\n"
        )
    };
    let rows: String = order.iter().take(INPUTS).map(row).collect();
    let explained = match seen.runs.explained {
        all if all == seen.runs.alarms => "all alarms".into(),
        some => format!("{some} alarms, the first 100 of each run"),
    };
    format!(
        "<h3>Inputs behind the alarms</h3>\n<p>Share of each input in the excess score, on average over {explained}.</p>\n\
         <table class=\"inputs\"><tbody>\n{rows}</tbody></table>\n"
    )
}

/// Windows of rows, for the charts of drift.
struct Windows {
    windows: Vec<Column>,
    promised: f64,
    /// The number of independent rows that a row is worth.
    worth: f64,
    /// The number of independent rows that the threshold was computed from.
    made_of: f64,
}

impl Windows {
    fn of(seen: &Monitored) -> Windows {
        let scores = &seen.model.parts().scores;
        let effective = scores.calibration.as_ref().map_or(scores.count as f64, |calibration| calibration.effective);
        let worth = effective / scores.count as f64;
        let windows = seen.series.windows(WINDOWS, (WINDOW as f64 / worth).ceil() as usize);
        Windows { windows, promised: seen.promised(), worth, made_of: effective }
    }

    fn share(window: &Column) -> f64 {
        window.alarms as f64 / window.rows as f64
    }

    /// The range of the share of alarms that chance allows. Both the rows of the window and those that the threshold
    /// was computed from are samples.
    fn chance(&self, window: &Column) -> (f64, f64) {
        let rows = 1.0 / (1.0 / (self.worth * window.rows as f64) + 1.0 / self.made_of);
        let error = CHANCE * (self.promised * (1.0 - self.promised) / rows).sqrt();
        // A single alarm is not drift.
        let one = 1.0 / window.rows as f64;
        ((self.promised - error).max(0.0), (self.promised + error.max(one)).min(1.0))
    }

    fn drifted(&self) -> Vec<usize> {
        let high = |k: &usize| Windows::share(&self.windows[*k]) > self.chance(&self.windows[*k]).1;
        (0..self.windows.len()).filter(high).collect()
    }

    fn sentence(&self, seen: &Monitored) -> String {
        let (all, drifted) = (counted(self.windows.len(), "window"), self.drifted());
        let rows = counted(self.windows[0].rows, "row");
        match (drifted.first(), drifted.len()) {
            (Some(first), many) => {
                let first = &self.windows[*first];
                let from = if seen.time.is_some() { shortened(&first.time) } else { format!("row {}", first.first) };
                let has = if many == 1 { "has" } else { "have" };
                format!("{many} of {all} of {rows} {has} more alarms than chance allows, the first from {from} on.")
            }
            (None, _) => format!("No more alarms than chance allows in any of {all} of {rows}."),
        }
    }

    fn figures(&self, seen: &Monitored) -> String {
        let times = times(seen);
        self.alarms(seen).figure("alarms", &times) + &self.p_values(seen).figure("p-values", &times)
    }

    /// The start and end of each window, as shares of the rows.
    fn places(&self, seen: &Monitored) -> Vec<(f64, f64)> {
        let rows = seen.series.rows as f64;
        self.windows.iter().map(|w| (w.first as f64 / rows, (w.first + w.rows) as f64 / rows)).collect()
    }

    fn alarms(&self, seen: &Monitored) -> Timeline {
        let places = self.places(seen);
        let chance: Vec<(f64, f64)> = self.windows.iter().map(|window| self.chance(window)).collect();
        let most = self.windows.iter().map(Windows::share).chain(chance.iter().map(|c| c.1)).fold(0.0, f64::max);
        let about = "Share of alarms in windows of rows. Dashed: the promised share. Grey: the range that chance allows 99 times out \
                     of 100, including the uncertainty of the threshold.";
        let mut chart = Timeline::new("Share of alarms", about, Axis::from("share of the rows", 0.0, 1.05 * most));
        let band: Vec<(f64, f64, f64)> =
            places.iter().zip(&chance).flat_map(|(&(a, b), &(low, high))| [(a, low, high), (b, low, high)]).collect();
        chart.band("chance", &band);
        let steps = |share: fn(&Column) -> f64| -> Vec<(f64, f64)> {
            let step = |(&(a, b), window): (&(f64, f64), &Column)| [(a, share(window)), (b, share(window))];
            places.iter().zip(&self.windows).flat_map(step).collect()
        };
        chart.line("values", steps(Windows::share));
        let drifted = self.drifted().into_iter().map(|k| (k, Windows::share(&self.windows[k])));
        chart.columns("peaks", drifted.map(|(k, share)| (0.5 * (places[k].0 + places[k].1), share, share)));
        chart.limit("ceiling", self.promised, &format!("promised {}", percent(self.promised)));
        for (window, place) in self.windows.iter().zip(&places) {
            let alarms = counted(window.alarms, "alarm");
            chart.tip(*place, &format!("{}{alarms}, {}", rows_of(seen, window), percent(Windows::share(window))));
        }
        chart
    }

    fn p_values(&self, seen: &Monitored) -> Timeline {
        let places = self.places(seen);
        let about = "Median of the p-values (line) and the range of their middle half (grey) in windows of rows. For rows like the \
                     training rows, the median is 0.5 and the quartiles are 0.25 and 0.75 (dashed). A falling median is a sign of \
                     drift, often before there are alarms.";
        let mut chart = Timeline::new("p-values", about, Axis::from("p-value", 0.0, 1.0));
        let quarters = |w: &Column| (w.p_quantile(0.25), w.p_quantile(0.75));
        let band = |(&(a, b), window): (&(f64, f64), &Column)| {
            let (low, high) = quarters(window);
            [(a, low, high), (b, low, high)]
        };
        chart.band("chance", &places.iter().zip(&self.windows).flat_map(band).collect::<Vec<_>>());
        let step = |(&(a, b), window): (&(f64, f64), &Column)| {
            let median = window.p_quantile(0.5);
            [(a, median), (b, median)]
        };
        chart.line("values", places.iter().zip(&self.windows).flat_map(step).collect::<Vec<_>>());
        [0.25, 0.5, 0.75].into_iter().for_each(|share| chart.line("ceiling", [(0.0, share), (1.0, share)]));
        for (window, place) in self.windows.iter().zip(&places) {
            let [low, middle, high] = [0.25, 0.5, 0.75].map(|share| short(window.p_quantile(share)));
            chart.tip(*place, &format!("{}median p {middle}, quartiles {low} and {high}", rows_of(seen, window)));
        }
        chart
    }
}
