//! Turns raw tables into numbers: empty cells, categorical columns, times and text.
//!
//! ```text
//! fit      table ── text columns: rejected or left out ── empty cells: counted ──► Intake::learn ──► numbers
//! score    table ── the model's Intake ──► numbers, row by row
//! ```

use std::borrow::Cow;

use skpca::{Cell, Columns, Error, Intake, Kind, Missing, Model, Points, RowOrder};

use crate::arguments::{IntakeArguments, TableArguments};
use crate::failure::Failure;
use crate::lags::Lags;
use crate::table::{Block, Input, ReadOptions, Source, Survey, Table, TableError, Tables, Within};

/// Maximum number of columns that a message lists.
const NAMED: usize = 20;
/// A column is nearly constant if this share of its rows has the same value.
const NEARLY_CONSTANT: f64 = 0.99;

/// A table that a model can be fitted to.
pub struct Training {
    pub table: Table,
    /// The weights of the rows, if a column gives them.
    pub weights: Option<Vec<f64>>,
    /// How new rows must be prepared, if they need more than reading.
    pub intake: Option<Intake>,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// Rows as read from a table.
struct Raw {
    file: String,
    inputs: Vec<Input>,
    named: bool,
    values: Vec<f64>,
    texts: Vec<String>,
    /// Numbers and texts per row.
    widths: (usize, usize),
    rows: usize,
}

/// Returns the options that every command reads tables with.
pub fn options(table: &TableArguments) -> ReadOptions {
    ReadOptions {
        header: !table.no_header,
        label: table.label.clone(),
        drop: table.drop.clone(),
        delimiter: table.delimiter,
        decimal: table.decimal,
        ..ReadOptions::default()
    }
}

/// Returns the options for tables to fit: text columns are surveyed, empty cells are kept to be counted.
pub fn to_learn(table: &TableArguments, wanted: &IntakeArguments) -> ReadOptions {
    let survey = if wanted.numeric_only { Survey::LeaveOut } else { Survey::Refuse };
    let (categories, time) = (wanted.categorical.clone(), wanted.time.clone());
    ReadOptions { categories, time, gaps: true, survey, ..options(table) }
}

/// Reads a table to fit.
pub fn read(table: &TableArguments, wanted: &IntakeArguments) -> Result<Training, Failure> {
    let mut tables = Tables::open(&[&table.data], &to_learn(table, wanted))?;
    let (mut values, mut texts) = (Vec::new(), Vec::new());
    while let Some(block) = tables.next()? {
        crate::table::reserve(&mut values, block.values.len(), &table.data)?;
        values.extend(block.values);
        crate::table::reserve(&mut texts, block.texts.len(), &table.data)?;
        texts.extend(block.texts);
    }
    learned(&tables, (values, texts), (wanted, None))
}

/// Turns what was read into a table of numbers, with the column `weight` taken out of it. If there are no `texts`,
/// label and time are ignored.
pub fn learned(
    tables: &Tables,
    (values, texts): (Vec<f64>, Vec<String>),
    (wanted, weight): (&IntakeArguments, Option<&str>),
) -> Result<Training, Failure> {
    let layout = tables.layout();
    let (label, time) = if texts.is_empty() { (None, None) } else { (layout.label, layout.time) };
    let mut notes: Vec<String> = left_out(tables);
    let mut raw = Raw::new(tables, values, texts);
    let empty = raw.empty_cells();
    let count: usize = empty.iter().sum();
    if count > 0 && wanted.missing == Missing::Refuse {
        return Err(Failure::Run(raw.refusal(&empty, tables.gap())));
    }
    let cells = raw.rows * raw.inputs.len();
    if count > 0 {
        notes.push(raw.leave_out_gaps(wanted.missing, count, cells)?);
    }
    if let (Some(column), Some(time)) = (time, &wanted.time) {
        raw.check_time(column, time)?;
    }
    let weights = weight.map(|name| raw.take_weights(name)).transpose()?;
    let mut intake = raw.learn(wanted)?;
    intake.iter_mut().for_each(|intake| intake.empty = count as f64 / cells as f64);
    let table = raw.into_table(intake.as_ref(), label)?;
    notes.extend(constant_columns(&table, intake.as_ref()));
    Ok(Training { table, weights, intake, notes })
}

/// Returns a note for each column that is left out.
pub fn left_out(tables: &Tables) -> Vec<String> {
    let note = |name: &String| format!("column '{name}' holds text or dates and is left out");
    tables.layout().left_out.iter().map(note).collect()
}

/// Rejects empty cells in a table that does not fit in memory.
pub fn check_gaps(tables: &Tables) -> Result<(), Failure> {
    let Some(place) = tables.gap() else { return Ok(()) };
    Err(Failure::Run(format!(
        "{place}: the cell is empty, and the table does not fit in memory: leave out the column with --drop, or raise \
         --memory or take --sample to fill or leave out such cells with --missing"
    )))
}

/// Reads another table with the columns of the fitted one.
pub fn read_alike(
    source: &str,
    table: &TableArguments,
    intake: Option<&Intake>,
    names: Option<&Vec<String>>,
) -> Result<Table, Failure> {
    let plain = ReadOptions { label_optional: true, ..options(table) };
    let Some(intake) = intake else { return Ok(crate::table::read(source, &plain)?) };
    let ignore = intake.time.clone().into_iter().collect();
    let mut source = Source::open(source, &of_intake(ReadOptions { ignore, ..plain }, intake, names.is_some()))?;
    let encoder = Encoder::new(&source, &Order::Intake(intake), names.is_some())?;
    let block = source.all()?;
    let (label, _) = source.label_and_time();
    let wide = source.widths().1;
    let rows = block.values.len() / source.widths().0;
    let mut values = Vec::with_capacity(rows * intake.width());
    (0..rows).try_for_each(|row| encoder.row(&block, row, row, &mut values).map(|_| ())).map_err(with_advice)?;
    let label = label.map(|label| (0..rows).map(|row| block.texts[row * wide + label].clone()).collect());
    Ok(Table { names: names.map(|_| intake.names()), rows, columns: intake.width(), values, label })
}

/// Adds the options that follow from an intake.
fn of_intake(options: ReadOptions, intake: &Intake, named: bool) -> ReadOptions {
    let categories: Vec<String> = intake.categories().cloned().collect();
    let is_category = |k: &usize| categories.contains(&intake.inputs[*k].name);
    ReadOptions {
        wanted: named.then(|| intake.inputs.iter().map(|input| input.name.clone()).collect()),
        expected: Some(intake.inputs.len()),
        category_numbers: (0..intake.inputs.len()).filter(is_category).collect(),
        gaps: intake.missing != Missing::Refuse,
        categories,
        ..options
    }
}

/// Returns the options for reading a table of new rows for a model.
pub fn options_for(model: &Model, options: ReadOptions) -> ReadOptions {
    let Columns { names, ignored, intake, .. } = &model.parts().columns;
    let options = ReadOptions { ignore: ignored.clone(), ..options };
    match intake {
        Some(intake) => of_intake(options, intake, names.is_some()),
        None => {
            let inputs = Lags::of(model).map(|lags| lags.inputs().to_vec());
            let expected = inputs.as_ref().map_or(model.parts().columns.d(), Vec::len);
            ReadOptions { wanted: inputs.or_else(|| names.clone()), expected: Some(expected), ..options }
        }
    }
}

/// Adds the flags that help to an error about a cell.
pub fn with_advice(error: Error) -> Failure {
    let advice = match &error {
        Error::UnknownCategory { .. } => {
            "; --skip-bad skips such rows, and a model fitted with --unknown zero takes them"
        }
        Error::EmptyCell { .. } => "; --skip-bad skips such rows, and a model fitted with --missing median fills them",
        _ => return error.into(),
    };
    Failure::Run(format!("{error}{advice}"))
}

impl Raw {
    fn new(tables: &Tables, values: Vec<f64>, texts: Vec<String>) -> Raw {
        let layout = tables.layout();
        let (width, wide) = layout.widths;
        let widths = (width, if texts.is_empty() { 0 } else { wide });
        let file = tables.single().map_or("the tables", |file| if file == "-" { "stdin" } else { file }).to_string();
        let (inputs, named) = (layout.inputs.clone(), tables.names().is_some());
        Raw { file, inputs, named, rows: values.len() / width, values, texts, widths }
    }

    fn text(&self, row: usize, place: usize) -> &str {
        &self.texts[row * self.widths.1 + place]
    }

    fn cell(&self, row: usize, input: usize) -> Cell<'_> {
        match self.inputs[input].place {
            Within::Numbers(k) => Cell::Number(self.values[row * self.widths.0 + k]),
            Within::Texts(k) => Cell::Text(self.text(row, k)),
        }
    }

    fn is_gappy(&self, row: usize) -> bool {
        (0..self.inputs.len()).any(|input| self.cell(row, input).is_empty())
    }

    /// Keeps some rows, in place.
    fn keep(&mut self, keeps: impl Fn(&Raw, usize) -> bool) {
        let (width, wide) = self.widths;
        let kept: Vec<usize> = (0..self.rows).filter(|&row| keeps(self, row)).collect();
        for (to, &from) in kept.iter().enumerate() {
            self.values.copy_within(from * width..(from + 1) * width, to * width);
            (0..wide).for_each(|k| self.texts.swap(to * wide + k, from * wide + k));
        }
        self.rows = kept.len();
        self.values.truncate(self.rows * width);
        self.texts.truncate(self.rows * wide);
    }

    /// Counts the empty cells of each input.
    fn empty_cells(&self) -> Vec<usize> {
        let of = |input| (0..self.rows).filter(|&row| self.cell(row, input).is_empty()).count();
        (0..self.inputs.len()).map(of).collect()
    }

    /// The message for empty cells when `--missing refuse` holds.
    fn refusal(&self, empty: &[usize], first: Option<&str>) -> String {
        let gappy: Vec<(&Input, &usize)> = self.inputs.iter().zip(empty).filter(|(_, count)| **count > 0).collect();
        let (count, cells) = (empty.iter().sum::<usize>(), self.rows * self.inputs.len());
        let shown: Vec<String> = gappy.iter().take(NAMED).map(|(input, n)| format!("'{}' {n}", input.name)).collect();
        let more = if gappy.len() > NAMED { format!(" and {} more", gappy.len() - NAMED) } else { String::new() };
        let names: Vec<&str> = gappy.iter().map(|(input, _)| input.name.as_str()).collect();
        let first = first
            .map(|place| format!(", first {}", place.trim_start_matches(self.file.as_str()).trim_start()))
            .unwrap_or_default();
        format!(
            "{}: {count} of {cells} cells {} empty{first}; by column: {}{more}; fill them with --missing median, leave \
             out their rows with --missing drop, or the columns with --drop {}",
            self.file,
            if count == 1 { "is" } else { "are" },
            shown.join(", "),
            crate::table::shell_words(&names)
        )
    }

    /// Leaves out rows with empty cells if `missing` says so; returns the note about them.
    fn leave_out_gaps(&mut self, missing: Missing, count: usize, cells: usize) -> Result<String, Failure> {
        if missing != Missing::Drop {
            let share = 100.0 * count as f64 / cells as f64;
            return Ok(format!(
                "{count} empty cells ({share:.2}%) are filled: numbers with medians, categories with the most frequent"
            ));
        }
        let before = self.rows;
        self.keep(|raw, row| !raw.is_gappy(row));
        if self.rows == 0 {
            let message = "--missing drop: every row has an empty cell; fill them with --missing median";
            return Err(Failure::Run(message.into()));
        }
        Ok(format!("{} of {before} rows have empty cells and are left out", before - self.rows))
    }

    /// Removes the weight column from the inputs and returns it.
    fn take_weights(&mut self, name: &str) -> Result<Vec<f64>, Failure> {
        let is_it = |input: &Input| input.name == name && matches!(input.place, Within::Numbers(_));
        let found = self.inputs.iter().position(is_it).filter(|_| self.inputs.len() > 1);
        let Some((at, Within::Numbers(column))) = found.map(|at| (at, self.inputs[at].place)) else {
            let names: Vec<&str> = self.inputs.iter().map(|input| input.name.as_str()).collect();
            let names = names.join(", ");
            return Err(Failure::Call(format!("--weight {name}: expected one of several columns of numbers: {names}")));
        };
        let width = self.widths.0;
        let taken = self.values.iter().skip(column).step_by(width).copied().collect();
        let mut at_value = 0..;
        self.values.retain(|_| at_value.next().is_some_and(|k: usize| k % width != column));
        self.widths.0 -= 1;
        self.inputs.remove(at);
        for input in &mut self.inputs {
            if let Within::Numbers(k) = &mut input.place {
                *k -= usize::from(*k > column);
            }
        }
        Ok(taken)
    }

    /// Rejects rows that are not sorted by time, as far as times can be compared.
    fn check_time(&self, column: usize, name: &str) -> Result<(), Failure> {
        let times: Vec<&str> = (0..self.rows).map(|row| self.text(row, column).trim()).collect();
        let numbers: Option<Vec<f64>> = times.iter().map(|time| time.parse().ok()).collect();
        let dated = |time: &&str| time.len() >= 10 && time.is_char_boundary(5) && time.as_bytes()[4] == b'-';
        let back = match numbers {
            Some(numbers) => numbers.windows(2).position(|pair| pair[1] < pair[0]),
            // ISO 8601 dates sort as text.
            None if times.iter().all(dated) => times.windows(2).position(|pair| pair[1] < pair[0]),
            None => None,
        };
        match back {
            None => Ok(()),
            Some(row) => Err(Failure::Run(format!(
                "{}: --time {name}: '{}' follows '{}' (row {}, from 0): sort the table by time, or use --drop {name}",
                self.file,
                times[row + 1],
                times[row],
                row + 1
            ))),
        }
    }

    fn learn(&self, wanted: &IntakeArguments) -> Result<Option<Intake>, Failure> {
        if wanted.is_plain() {
            return Ok(None);
        }
        let names: Vec<String> = self.inputs.iter().map(|input| input.name.clone()).collect();
        let learned =
            Intake::learn(&names, self.rows, |row, input| self.cell(row, input), (wanted.missing, wanted.unknown));
        let intake = learned.map_err(|error| match &error {
            Error::Parameter { value, .. } => {
                let name = names.iter().find(|name| value.starts_with(name.as_str())).map_or("", String::as_str);
                Failure::Run(format!("{}: {error} with --drop {}", self.file, crate::table::shell_words(&[name])))
            }
            _ => error.into(),
        })?;
        Ok(Some(Intake { time: wanted.time.clone(), ..intake }))
    }

    /// Fills empty cells of a table of numbers in place.
    fn fill(&mut self, intake: &Intake) {
        for row in self.values.chunks_exact_mut(self.widths.0) {
            for (value, input) in row.iter_mut().zip(&intake.inputs).filter(|(value, _)| value.is_nan()) {
                if let Kind::Number { fill: Some(fill) } = input.kind {
                    *value = fill;
                }
            }
        }
    }

    fn into_table(mut self, intake: Option<&Intake>, label: Option<usize>) -> Result<Table, Failure> {
        let label = label.map(|label| (0..self.rows).map(|row| self.text(row, label).to_string()).collect());
        let names: Vec<String> = self.inputs.iter().map(|input| input.name.clone()).collect();
        let names = intake.map_or(names, Intake::names);
        let columns = names.len();
        if let Some(intake) = intake.filter(|intake| intake.categories().next().is_none()) {
            self.fill(intake);
        } else if let Some(intake) = intake {
            let mut values = Vec::new();
            values.try_reserve_exact(self.rows * columns).map_err(|error| Failure::Run(error.to_string()))?;
            for row in 0..self.rows {
                intake.encode(row, |input| self.cell(row, input), &mut values).map_err(with_advice)?;
            }
            self.values = values;
        }
        Ok(Table { names: self.named.then_some(names), rows: self.rows, columns, values: self.values, label })
    }
}

/// Returns notes on columns that are constant or nearly constant.
fn constant_columns(table: &Table, intake: Option<&Intake>) -> Vec<String> {
    let Ok(points) = Points::new(table.columns, &table.values[..]) else { return Vec::new() };
    let name = |k: usize| table.names.as_ref().map_or_else(|| k.to_string(), |names| names[k].clone());
    // A rare category is not suspicious.
    let encoded = |name: &String| intake.is_some_and(|intake| intake.inputs.iter().all(|input| input.name != *name));
    let note = |(column, share): (usize, f64)| {
        let name = name(column);
        if share == 1.0 {
            Some(format!("column '{name}' is constant"))
        } else if encoded(&name) {
            None
        } else {
            Some(format!("column '{name}' is nearly constant: {:.1}% of the rows have one value", 100.0 * share))
        }
    };
    points.steady(NEARLY_CONSTANT).into_iter().filter_map(note).collect()
}

/// How the columns of a table map to those of a model.
pub enum Order<'a> {
    /// They are the columns of the model, possibly in another order.
    Columns(&'a Columns),
    /// They are the inputs of this intake.
    Intake(&'a Intake),
    /// They are the columns of a model without their lags.
    Inputs(&'a [String]),
}

impl<'a> Order<'a> {
    pub fn of(model: &'a Model, lags: Option<&'a Lags>) -> Order<'a> {
        let columns = &model.parts().columns;
        match (&columns.intake, lags) {
            (Some(intake), _) => Order::Intake(intake),
            (None, Some(lags)) => Order::Inputs(lags.inputs()),
            (None, None) => Order::Columns(columns),
        }
    }
}

/// Converts rows of a source to the columns of a model.
pub struct Encoder {
    intake: Option<Intake>,
    /// Where in a row each input is.
    places: Vec<Within>,
    /// Numbers and texts per row.
    widths: (usize, usize),
}

impl Encoder {
    /// An encoder for the rows of `source`. Missing and unknown columns are an error; if the model has no column names,
    /// columns are matched by position.
    pub fn new(source: &Source, order: &Order, named: bool) -> skpca::Result<Encoder> {
        let (inputs, widths) = (source.inputs(), source.widths());
        let (own, intake): (Vec<&String>, _) = match order {
            Order::Columns(columns) => (columns.names.iter().flatten().collect(), None),
            Order::Intake(intake) => (intake.inputs.iter().map(|input| &input.name).collect(), Some((*intake).clone())),
            Order::Inputs(inputs) => (inputs.iter().collect(), None),
        };
        let expected = match order {
            Order::Columns(columns) => columns.d(),
            Order::Intake(intake) => intake.inputs.len(),
            Order::Inputs(inputs) => inputs.len(),
        };
        if !named || source.names().is_none() {
            if inputs.len() != expected {
                return Err(Error::Width { found: inputs.len(), expected });
            }
            return Ok(Encoder { intake, places: inputs.iter().map(|input| input.place).collect(), widths });
        }
        let found = |name: &String| inputs.iter().find(|input| input.name == *name).map(|input| input.place);
        let missing: Vec<String> =
            own.iter().filter(|name| found(name).is_none()).map(|name| name.to_string()).collect();
        let is_own = |input: &&Input| own.iter().any(|name| **name == input.name);
        let unexpected: Vec<String> =
            inputs.iter().filter(|input| !is_own(input)).map(|input| input.name.clone()).collect();
        if !missing.is_empty() || !unexpected.is_empty() {
            return Err(Error::Names { missing, unexpected });
        }
        Ok(Encoder { intake, places: own.into_iter().filter_map(found).collect(), widths })
    }

    /// Whether rows already are numbers in the order of the model.
    fn is_identity(&self) -> bool {
        let in_order = |(k, place): (usize, &Within)| *place == Within::Numbers(k);
        self.intake.is_none() && self.places.len() == self.widths.0 && self.places.iter().enumerate().all(in_order)
    }

    /// The share that one filled cell is of a row's cells; `None` if the model does not fill cells.
    pub fn filled_share(&self) -> Option<f64> {
        let intake = self.intake.as_ref().filter(|intake| intake.missing == Missing::Median)?;
        Some(1.0 / intake.inputs.len() as f64)
    }

    /// Whether rows with this error are left out, as they were left out of the training rows.
    pub fn skips(&self, error: &Error) -> bool {
        let drops = self.intake.as_ref().is_some_and(|intake| intake.missing == Missing::Drop);
        drops && matches!(error, Error::EmptyCell { .. })
    }

    /// Number of rows in a block.
    pub fn rows(&self, block: &Block) -> usize {
        block.values.len() / self.widths.0
    }

    /// Appends the values of a row of a block and returns how many cells were filled; `number` is the number of the row
    /// in the table.
    pub fn row(&self, block: &Block, row: usize, number: usize, out: &mut Vec<f64>) -> skpca::Result<usize> {
        let (width, wide) = self.widths;
        let cell = |k: usize| match self.places[k] {
            Within::Numbers(k) => Cell::Number(block.values[row * width + k]),
            Within::Texts(k) => Cell::Text(&block.texts[row * wide + k]),
        };
        if let Some(intake) = &self.intake {
            return intake.encode(number, cell, out);
        }
        out.extend((0..self.places.len()).map(|k| match cell(k) {
            Cell::Number(value) => value,
            Cell::Text(_) => f64::NAN,
        }));
        Ok(0)
    }

    /// The values of all rows of a block, if no row can fail.
    pub fn arranged<'b>(&self, block: &'b Block) -> Option<Cow<'b, [f64]>> {
        if self.is_identity() {
            return Some(Cow::Borrowed(&block.values));
        }
        if self.intake.is_some() {
            return None;
        }
        let mut out = Vec::with_capacity(block.values.len());
        (0..self.rows(block)).try_for_each(|row| self.row(block, row, row, &mut out).map(|_| ())).ok()?;
        Some(Cow::Owned(out))
    }
}

/// Returns the row order for the calibration: a time column or lags mean that rows are in time order.
pub fn row_order(given: RowOrder, timed: bool) -> RowOrder {
    if given == RowOrder::Auto && timed { RowOrder::Time } else { given }
}

/// The error for a table without rows.
pub fn no_rows(data: &str) -> Failure {
    let file = if data == "-" { "stdin".to_string() } else { data.to_string() };
    TableError::NoRows { file }.into()
}
