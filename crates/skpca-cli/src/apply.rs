//! `skpca transform` and `skpca score`: apply a model to rows and write one line for each. `skpca monitor` reads rows
//! in the same way.
//!
//! ```text
//! rows ── a block of a file, or the lines available in a pipe ──► model ──► results ──► next block
//! ```
//!
//! No more than a block is in memory at any time.

use std::borrow::Cow;
use std::path::Path;

use skpca::{Error, Model, Points, Precision, Statistics, UncheckedRows};

use crate::arguments::{ApplyArguments, ScoreArguments, TableArguments};
use crate::failure::Failure;
use crate::intake::{self, Encoder, Order};
use crate::lags::Lags;
use crate::outputs::Outputs;
use crate::table::{self, Block, Column, ReadOptions, Source, Target};
use crate::terminal::print_stderr;
use crate::{model_file, use_threads};

/// Maximum number of skipped rows that are listed; the others are counted.
const NAMED: usize = 20;

pub fn transform(arguments: &ApplyArguments, quiet: bool) -> Result<(), Failure> {
    run(arguments, Answer::Features, 0, quiet)
}

pub fn score(arguments: &ScoreArguments, quiet: bool) -> Result<(), Failure> {
    let answer = if arguments.statistics { Answer::Statistics } else { Answer::Novelty };
    run(&arguments.apply, answer, arguments.explain, quiet)
}

/// What is computed for every row.
#[derive(Clone, Copy)]
pub enum Answer {
    Features,
    Novelty,
    /// Novelty, and the statistics that the score combines.
    Statistics,
    /// Score and, if the model has it, Hotelling's T².
    ScoreAndT2,
}

/// Writes a line for every row, with the `causes` inputs that contribute most to its score.
fn run(arguments: &ApplyArguments, answer: Answer, causes: usize, quiet: bool) -> Result<(), Failure> {
    table::check_target(arguments.output.as_deref())?;
    if let Some(output) = arguments.output.as_deref().filter(|&output| output != "-") {
        Outputs::apart_from([Path::new(&arguments.table.data), &arguments.model]).check(Path::new(output))?;
    }
    use_threads(arguments.table.threads)?;
    let model = model_file::read(&arguments.model)?.pinned(arguments.instructions.level)?;
    if let Answer::Statistics = answer {
        limits(&model)?;
    }
    let read = ReadOptions { all: arguments.append, ..options(&arguments.table, arguments.skip_bad, &model) };
    let mut source = Source::open(&arguments.table.data, &read)?;
    let mut run = Run::new(model, answer, &source, &arguments.table, quiet)?.skipping(arguments.skip_bad);
    run.precision = if arguments.single { Precision::Single } else { Precision::Double };
    let mut columns = if arguments.append { source.layout() } else { Vec::new() };
    let causes = Causes::new(causes, &run.model, run.lags.as_ref());
    let mut results = answer.columns(&run.model);
    results.extend(run.filled.map(|_| Column::number("filled")));
    results.extend(causes.columns());
    check_names(&columns, &results)?;
    columns.extend(results);
    let mut target = Target::begin(arguments.output.as_deref(), columns)?;
    while let Some(block) = source.next()? {
        if let Some((rows, results)) = run.answers(block)? {
            let (numbers, texts) = run.lines(&rows, &results, &causes, arguments.append)?;
            target.write(&numbers, &texts)?;
        }
        if source.live {
            target.flush()?;
        }
    }
    run.end()?;
    Ok(target.finish()?)
}

/// Returns the options for reading the rows of a table for a model.
pub fn options(table: &TableArguments, skip_bad: bool, model: &Model) -> ReadOptions {
    intake::options_for(model, ReadOptions { skip_bad, ..intake::options(table) })
}

/// Rejects two columns with the same name.
fn check_names(columns: &[Column], results: &[Column]) -> Result<(), Failure> {
    match results.iter().find(|result| columns.iter().any(|column| column.name == result.name)) {
        Some(Column { name, .. }) => {
            Err(Failure::Call(format!("--append: the table has a column '{name}' already; rename it, or leave it out")))
        }
        None => Ok(()),
    }
}

impl Answer {
    fn columns(self, model: &Model) -> Vec<Column> {
        match self {
            Answer::Features => (1..=model.q()).map(|k| Column::number(format!("pc{k}"))).collect(),
            Answer::Novelty => {
                let likelihood = model.parts().density.iter().map(|_| "log_likelihood");
                ["score", "threshold", "p_value", "novel"].into_iter().chain(likelihood).map(Column::number).collect()
            }
            Answer::Statistics => {
                let statistics = ["spe", "spe_limit", "t2", "t2_limit"].map(Column::number);
                Answer::Novelty.columns(model).into_iter().chain(statistics).collect()
            }
            Answer::ScoreAndT2 => {
                ["score"].into_iter().chain(has_t2(model).then_some("t2")).map(Column::number).collect()
            }
        }
    }

    /// Computes the results for some rows, row by row.
    fn of(self, model: &Model, rows: UncheckedRows, precision: Precision) -> skpca::Result<Vec<f64>> {
        match self {
            Answer::Features => model.transform(rows, precision),
            Answer::Novelty => novelty(model, rows, precision),
            Answer::Statistics => with_statistics(model, rows, precision),
            Answer::ScoreAndT2 => score_and_t2(model, rows, precision),
        }
    }
}

fn novelty(model: &Model, rows: UncheckedRows, precision: Precision) -> skpca::Result<Vec<f64>> {
    let summary = &model.parts().scores;
    let scores = model.score(rows, precision)?;
    let row = |&s: &f64| [s, summary.threshold, summary.p_value(s), f64::from(u8::from(s > summary.threshold))];
    let values: Vec<f64> = scores.iter().flat_map(row).collect();
    if model.parts().density.is_none() {
        return Ok(values);
    }
    let likelihoods = model.log_likelihood(rows, precision)?;
    let rows = values.chunks_exact(4).zip(&likelihoods);
    Ok(rows.flat_map(|(row, likelihood)| row.iter().chain([likelihood]).copied()).collect())
}

/// Whether T² follows from the features and their variances, which requires uncorrelated components.
pub fn has_t2(model: &Model) -> bool {
    model.parts().frame.is_none()
}

/// Score and T², row by row; the score alone if the model has no T².
fn score_and_t2(model: &Model, rows: UncheckedRows, precision: Precision) -> skpca::Result<Vec<f64>> {
    let scores = model.score(rows, precision)?;
    if !has_t2(model) {
        return Ok(scores);
    }
    let statistics = model.statistics(rows)?;
    Ok(scores.into_iter().zip(statistics).flat_map(|(score, own)| [score, own.t2]).collect())
}

/// The limits of the two statistics.
fn limits(model: &Model) -> skpca::Result<Statistics> {
    let limits = model.parts().scores.calibration.as_ref().and_then(|calibration| calibration.limits);
    let expected = "a model fitted with --false-alarms or --novelty, of uncorrelated components (refit=true)";
    limits.ok_or_else(|| Error::Parameter {
        name: "--statistics".into(),
        value: "no limits".into(),
        expected: expected.into(),
    })
}

fn with_statistics(model: &Model, rows: UncheckedRows, precision: Precision) -> skpca::Result<Vec<f64>> {
    let (novelty, limits) = (novelty(model, rows, precision)?, limits(model)?);
    let statistics = model.statistics(rows)?;
    let width = novelty.len() / statistics.len();
    let both = novelty.chunks_exact(width).zip(&statistics);
    Ok(both.flat_map(|(row, own)| row.iter().copied().chain([own.spe, limits.spe, own.t2, limits.t2])).collect())
}

/// The inputs that contribute most to a score; contributions are summed over their lags.
struct Causes {
    /// How many to name.
    count: usize,
    /// Names of the inputs.
    names: Vec<String>,
    lags: Option<Lags>,
}

struct Cause {
    input: usize,
    contribution: f64,
    expected: f64,
}

impl Causes {
    fn new(count: usize, model: &Model, lags: Option<&Lags>) -> Causes {
        let columns = &model.parts().columns;
        let names = lags.map(|lags| lags.inputs().to_vec()).or_else(|| columns.names.clone());
        let names = names.unwrap_or_else(|| (0..columns.d()).map(|column| column.to_string()).collect());
        Causes { count: count.min(names.len()), names, lags: lags.cloned() }
    }

    fn columns(&self) -> impl Iterator<Item = Column> {
        (1..=self.count).flat_map(|k| {
            let number = |what: &str| Column::number(format!("{what}{k}"));
            [Column { name: format!("cause{k}"), text: true }, number("contribution"), number("expected")]
        })
    }

    /// The causes of each row, the largest first; ties keep the order of the inputs.
    fn of(&self, model: &Model, values: &[f64]) -> skpca::Result<Vec<Vec<Cause>>> {
        let width = model.parts().columns.d();
        let rows = values.len() / width;
        if self.count == 0 {
            return Ok((0..rows).map(|_| Vec::new()).collect());
        }
        let found = model.contributions(&Points::new(width, values)?)?;
        let row = |i: usize| {
            let own: Vec<f64> = found.contributions.row(i).iter().copied().collect();
            let own = if let Some(lags) = &self.lags { lags.sums(&own) } else { own };
            let cause = |input| Cause { input, contribution: own[input], expected: found.expected[(i, input)] };
            let mut causes: Vec<Cause> = (0..own.len()).map(cause).collect();
            causes.sort_by(|a, b| b.contribution.total_cmp(&a.contribution));
            causes.truncate(self.count);
            causes
        };
        Ok((0..rows).map(row).collect())
    }
}

/// The state of applying a model to the rows of a table.
pub struct Run<'a> {
    pub model: Model,
    answer: Answer,
    precision: Precision,
    encoder: Encoder,
    pub lags: Option<Lags>,
    /// The share that one filled cell is of a row's cells, if the share of filled cells is among the results.
    filled: Option<f64>,
    skip_bad: bool,
    /// The table, for messages.
    data: &'a str,
    quiet: bool,
    /// Number of rows with results so far.
    pub answered: usize,
    pub skipped: usize,
    /// Whether the warning about rows far outside the training range was given.
    warned: bool,
}

impl<'a> Run<'a> {
    /// Starts in double precision; a row that cannot be used is an error.
    pub fn new(
        model: Model,
        answer: Answer,
        source: &Source,
        table: &'a TableArguments,
        quiet: bool,
    ) -> Result<Run<'a>, Failure> {
        let lags = Lags::of(&model);
        let order = Order::of(&model, lags.as_ref());
        let encoder = Encoder::new(source, &order, model.parts().columns.names.is_some())?;
        let filled = encoder.filled_share().filter(|_| matches!(answer, Answer::Novelty));
        let data = table.data.as_str();
        Ok(Run {
            model,
            answer,
            precision: Precision::Double,
            encoder,
            lags,
            filled,
            skip_bad: false,
            data,
            quiet,
            answered: 0,
            skipped: 0,
            warned: quiet,
        })
    }

    /// Sets whether rows that cannot be used are skipped instead.
    pub fn skipping(self, skip_bad: bool) -> Run<'a> {
        Run { skip_bad, ..self }
    }

    /// Returns the usable rows of a block and their results, row by row; `None` if there are none.
    pub fn answers(&mut self, mut raw: Block) -> Result<Option<(Rows, Vec<f64>)>, Failure> {
        for error in std::mem::take(&mut raw.bad) {
            self.skip(&error);
        }
        if raw.values.is_empty() {
            return Ok(None);
        }
        let first = self.answered + self.skipped;
        let mut rows = self.encoded(raw, first)?;
        if rows.count == 0 {
            return Ok(None);
        }
        if let Some(lags) = &mut self.lags {
            rows.encoded = Some(lags.add(rows.numbers()));
        }
        let results = match self.results(rows.numbers()) {
            Err(error) if self.skip_bad && row_of(&error).is_some() => self.one_by_one(&mut rows, first)?,
            results => results.map_err(|error| counted(error, first))?,
        };
        self.answered += rows.count;
        self.warn_if_far(rows.numbers())?;
        Ok((rows.count > 0).then_some((rows, results)))
    }

    /// The output lines of some rows: their own columns if `append`, the results, and the causes.
    fn lines(
        &self,
        rows: &Rows,
        results: &[f64],
        causes: &Causes,
        append: bool,
    ) -> Result<(Vec<f64>, Vec<String>), Failure> {
        let (mut numbers, mut texts) = (Vec::new(), Vec::new());
        let explained = causes.of(&self.model, rows.numbers())?;
        let results = results.chunks_exact(results.len() / rows.count);
        for (i, (results, explained)) in results.zip(explained).enumerate() {
            if append {
                let (row, row_texts) = rows.raw(i);
                numbers.extend(row);
                texts.extend_from_slice(row_texts);
            }
            numbers.extend(results);
            numbers.extend(self.filled.map(|share| share * rows.filled[i] as f64));
            numbers.extend(explained.iter().flat_map(|cause| [cause.contribution, cause.expected]));
            texts.extend(explained.into_iter().map(|cause| causes.names[cause.input].clone()));
        }
        Ok((numbers, texts))
    }

    /// Encodes the rows of a block for the model. Rows that cannot be encoded are skipped if the user or the model says
    /// so; `first` is the number of the first row.
    fn encoded(&mut self, raw: Block, first: usize) -> Result<Rows, Failure> {
        let count = self.encoder.rows(&raw);
        if let Some(numbers) = self.encoder.arranged(&raw) {
            let encoded = match numbers {
                Cow::Borrowed(_) => None,
                Cow::Owned(numbers) => Some(numbers),
            };
            return Ok(Rows { raw, encoded, filled: vec![0; count], count });
        }
        let (mut numbers, mut filled, mut kept) = (Vec::new(), Vec::new(), Vec::new());
        for row in 0..count {
            match self.encoder.row(&raw, row, first + row, &mut numbers) {
                Ok(count) => {
                    filled.push(count);
                    kept.push(row);
                }
                Err(error) if self.skip_bad || self.encoder.skips(&error) => self.skip(&error),
                Err(error) => return Err(intake::with_advice(error)),
            }
        }
        let mut rows = Rows { raw, encoded: Some(numbers), filled, count };
        rows.keep_raw(&kept);
        Ok(rows)
    }

    fn results(&self, numbers: &[f64]) -> skpca::Result<Vec<f64>> {
        let width = self.model.parts().columns.d();
        self.answer.of(&self.model, UncheckedRows::new(width, numbers)?, self.precision)
    }

    /// Warns once if rows are far outside the range of the training rows.
    fn warn_if_far(&mut self, numbers: &[f64]) -> Result<(), Failure> {
        if self.warned || numbers.is_empty() {
            return Ok(());
        }
        if let Some(far) = self.model.far_outside(UncheckedRows::new(self.model.parts().columns.d(), numbers)?) {
            print_stderr(&format!("warning: {far}"));
            self.warned = true;
        }
        Ok(())
    }

    /// Computes results row by row and skips the rows for which the model fails.
    fn one_by_one(&mut self, rows: &mut Rows, first: usize) -> Result<Vec<f64>, Failure> {
        let (mut kept, mut results) = (Vec::new(), Vec::new());
        let width = self.model.parts().columns.d();
        for (i, row) in rows.numbers().chunks_exact(width).enumerate() {
            match self.results(row) {
                Ok(result) => {
                    results.extend(result);
                    kept.push(i);
                }
                Err(error) if row_of(&error).is_some() => self.skip(&counted(error, first + i)),
                Err(error) => return Err(error.into()),
            }
        }
        let numbers = kept.iter().flat_map(|&i| &rows.numbers()[i * width..(i + 1) * width]).copied().collect();
        rows.encoded = Some(numbers);
        rows.filled = kept.iter().map(|&i| rows.filled[i]).collect();
        rows.keep_raw(&kept);
        Ok(results)
    }

    fn skip(&mut self, why: &dyn std::fmt::Display) {
        self.skipped += 1;
        if self.skipped <= NAMED && !self.quiet {
            print_stderr(&format!("skipped: {why}"));
        }
    }

    /// Reports how many rows were skipped in total. It is an error if no row was usable.
    pub fn end(&self) -> Result<(), Failure> {
        if self.skipped > NAMED && !self.quiet {
            print_stderr(&format!("skipped: {} more rows", self.skipped - NAMED));
        }
        if self.answered > 0 {
            return Ok(());
        }
        Err(intake::no_rows(self.data))
    }
}

/// Rows of a block, raw and encoded for the model.
pub struct Rows {
    pub raw: Block,
    /// `None` if the numbers of the block need no encoding.
    encoded: Option<Vec<f64>>,
    /// Number of filled cells of each row.
    filled: Vec<usize>,
    count: usize,
}

impl Rows {
    pub fn numbers(&self) -> &[f64] {
        self.encoded.as_deref().unwrap_or(&self.raw.values)
    }

    /// Numbers and texts of a row, as in the table.
    fn raw(&self, row: usize) -> (&[f64], &[String]) {
        let (width, wide) = (self.raw.values.len() / self.count, self.raw.texts.len() / self.count);
        (&self.raw.values[row * width..(row + 1) * width], &self.raw.texts[row * wide..(row + 1) * wide])
    }

    /// Keeps only these rows of the block.
    fn keep_raw(&mut self, kept: &[usize]) {
        if kept.len() < self.count {
            let (values, texts) = kept.iter().map(|&row| self.raw(row)).unzip::<_, _, Vec<_>, Vec<_>>();
            (self.raw.values, self.raw.texts) = (values.concat(), texts.concat());
            self.count = kept.len();
        }
    }
}

/// The number, within its block, of the row that an error is about.
fn row_of(error: &Error) -> Option<usize> {
    match error {
        Error::NotFinite { row, .. } | Error::Outside { row, .. } | Error::Overflow { row, .. } => Some(*row),
        _ => None,
    }
}

/// Replaces the row number within a block by the number in the table.
fn counted(mut error: Error, first: usize) -> Error {
    if let Error::NotFinite { row, .. } | Error::Outside { row, .. } | Error::Overflow { row, .. } = &mut error {
        *row += first;
    }
    error
}
