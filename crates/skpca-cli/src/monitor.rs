//! `skpca monitor`: scores rows in time order and draws a process-monitoring page.
//!
//! ```text
//! rows ── a block ──► score, T², p-value ──► columns of the charts, runs of alarms ──► next block … page
//! ```
//!
//! Memory is limited to one block of rows and the charts, for any number of rows.

mod limit;
pub mod runs;
pub mod series;

use std::path::Path;

use skpca::Model;

use crate::apply::{self, Answer, Run};
use crate::arguments::MonitorArguments;
use crate::failure::Failure;
use crate::inspect::counted;
use crate::outputs::Outputs;
use crate::table::{Block, ReadOptions, Source, TableError};
use crate::terminal::Screen;
use crate::{model_file, page, use_threads};
use runs::{AlarmRun, Runs};
use series::{Reading, Series};

/// A threshold below this share of the variance is rounding error, not a limit.
const ROUNDING: f64 = 1e-12;

/// What the page shows.
pub struct Monitored {
    pub data: String,
    pub model_name: String,
    pub model: Model,
    /// The column that labels the rows; by default, row numbers do.
    pub time: Option<String>,
    pub series: Series,
    /// The runs that are listed.
    pub kept: Vec<AlarmRun>,
    /// Totals over all runs.
    pub runs: Runs,
    pub t2_limit: Option<f64>,
    pub skipped: usize,
}

impl Monitored {
    /// The share of rows above the threshold that the fit promised.
    pub fn promised(&self) -> f64 {
        promised(&self.model)
    }

    /// `12 of 1000 rows raise the alarm (1.2%; 1% promised), in 9 runs`
    pub fn sentence(&self) -> String {
        let (alarms, rows, runs) = (self.runs.alarms, self.series.rows, self.runs.count);
        let share = percent(alarms as f64 / rows as f64);
        let (promised, raise) = (percent(self.promised()), if alarms == 1 { "raises" } else { "raise" });
        let runs = if alarms == 0 { String::new() } else { format!(", in {}", counted(runs, "run")) };
        format!("{alarms} of {} {raise} the alarm ({share}; {promised} promised){runs}", counted(rows, "row"))
    }
}

fn promised(model: &Model) -> f64 {
    // Rounded, since 1 − 0.95 is not exactly 0.05.
    (1e10 * (1.0 - model.parts().scores.quantile)).round() / 1e10
}

/// `1.25%`
pub fn percent(share: f64) -> String {
    format!("{}%", page::short(100.0 * share))
}

pub fn run(arguments: &MonitorArguments, quiet: bool) -> Result<(), Failure> {
    check_output(arguments)?;
    use_threads(arguments.table.threads)?;
    let model = model_file::read(&arguments.model)?.pinned(arguments.instructions.level)?;
    check_limit(&arguments.model, &model)?;
    let mut source = open(arguments, &model)?;
    let time = arguments.time.as_ref().map(|time| TimeColumn::find(time, &source));
    let t2_limit = if apply::has_t2(&model) { limit::of_t2(&model, promised(&model)) } else { None };
    let run = Run::new(model, Answer::ScoreAndT2, &source, &arguments.table, quiet)?;
    let mut monitoring = Monitoring {
        run: run.skipping(arguments.skip_bad),
        time,
        series: Series::new(t2_limit),
        runs: Runs::default(),
    };
    while let Some(block) = source.next()? {
        monitoring.block(block)?;
    }
    monitoring.run.end()?;
    let Monitoring { run, series, mut runs, .. } = monitoring;
    let monitored = Monitored {
        data: arguments.table.data.clone(),
        model_name: arguments.model.display().to_string(),
        time: arguments.time.clone(),
        kept: runs.end(),
        skipped: run.skipped,
        model: run.model,
        series,
        runs,
        t2_limit,
    };
    page::write(&arguments.output, &page::of_monitored(&monitored))?;
    let mut screen = Screen::unless(quiet);
    screen.line(&format!("monitored    {}", monitored.sentence()))?;
    Ok(screen.line(&format!("drawn        {}", arguments.output.display()))?)
}

/// Rejects an output that is not named .html or would replace an input.
fn check_output(arguments: &MonitorArguments) -> Result<(), Failure> {
    let output = &arguments.output;
    let extension = output.extension().map(|end| end.to_ascii_lowercase());
    if !extension.is_some_and(|end| end == "html" || end == "htm") {
        let what = format!("{}: unknown extension: the page is HTML, name it .html", output.display());
        return Err(Failure::Call(what));
    }
    Outputs::apart_from([Path::new(&arguments.table.data), &arguments.model]).check(output)
}

/// Rejects a model whose scores are all zero up to rounding.
fn check_limit(path: &Path, model: &Model) -> Result<(), Failure> {
    let parts = model.parts();
    if parts.scores.threshold > ROUNDING * parts.total_variance {
        return Ok(());
    }
    let why = "has no limit: its components capture all variance of the rows, so that scores are rounding errors; fit it with \
               fewer components (-q) or with --novelty";
    Err(Failure::Call(format!("{} {why}", path.display())))
}

/// Opens the table, with the time column as text unless it is an input of the model.
fn open(arguments: &MonitorArguments, model: &Model) -> Result<Source, TableError> {
    let mut read = apply::options(&arguments.table, arguments.skip_bad, model);
    if let Some(time) = &arguments.time {
        let wanted = |names: &Vec<String>| names.contains(time);
        if !read.wanted.as_ref().is_some_and(wanted) {
            read.drop.push(time.clone());
        }
        read = ReadOptions { all: true, ..read };
    }
    Source::open(&arguments.table.data, &read)
}

/// Where in a block the time column is.
struct TimeColumn {
    /// Whether it is among the texts; otherwise it is among the numbers.
    text: bool,
    place: usize,
    /// Number of columns of the same kind.
    width: usize,
}

impl TimeColumn {
    fn find(time: &str, source: &Source) -> TimeColumn {
        let (layout, numbered) = (source.layout(), format!("x{time}"));
        let name = if source.names().is_some() { time } else { &numbered };
        let at = layout.iter().position(|column| column.name == name).expect("the source was opened with it");
        let text = layout[at].text;
        let alike = |count: usize| layout[..count].iter().filter(|column| column.text == text).count();
        TimeColumn { text, place: alike(at), width: alike(layout.len()) }
    }

    fn of(&self, block: &Block, row: usize) -> String {
        let at = row * self.width + self.place;
        if self.text { block.texts[at].trim().to_string() } else { block.values[at].to_string() }
    }
}

/// The state of monitoring a table.
struct Monitoring<'a> {
    run: Run<'a>,
    time: Option<TimeColumn>,
    series: Series,
    runs: Runs,
}

impl Monitoring<'_> {
    fn block(&mut self, block: Block) -> Result<(), Failure> {
        let Some((rows, results)) = self.run.answers(block)? else { return Ok(()) };
        let model = &self.run.model;
        let results: Vec<&[f64]> = results.chunks_exact(if apply::has_t2(model) { 2 } else { 1 }).collect();
        let novel: Vec<bool> = results.iter().map(|result| model.is_novel(result[0])).collect();
        let chosen = self.runs.to_explain(&novel);
        let explained = runs::explain(model, self.run.lags.as_ref(), rows.numbers(), &chosen)?;
        let mut explained = chosen.iter().zip(&explained).peekable();
        let first = self.run.answered - results.len();
        for (i, result) in results.iter().enumerate() {
            let time = self.time.as_ref().map_or(String::new(), |time| time.of(&rows.raw, i));
            let score = result[0];
            let reading = Reading {
                row: first + i,
                time: &time,
                score,
                p_value: model.p_value(score),
                novel: novel[i],
                t2: result.get(1).copied(),
            };
            self.series.push(&reading);
            let why = explained.next_if(|(row, _)| **row == i).map(|(_, why)| why);
            self.runs.push(&reading, why);
        }
        Ok(())
    }
}
