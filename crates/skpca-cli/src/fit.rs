//! `skpca fit`: reads a table and writes a model file.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::Value;
use skpca::method::{self, METHODS};
use skpca::{Fit, Given, Intake, Labels, Learning, Model, Online, Points, RowOrder, Source as _, Spec, format};
use skpca_files::FileRows;

use crate::arguments::{FitArguments, IntakeArguments, TableArguments};
use crate::failure::Failure;
use crate::intake::{self, Training};
use crate::lags::Lags;
use crate::memory::Allowed;
use crate::outputs::Outputs;
use crate::progress::Bar;
use crate::rows::{Purpose, Rows};
use crate::table::Table;
use crate::terminal::{Screen, print_stderr};
use crate::{inspect, memory, model_file, use_threads};

/// Fits that need more bytes than this announce how much memory they take.
const ANNOUNCED_ABOVE: usize = 1_000_000_000;

pub fn run(arguments: &FitArguments, quiet: bool) -> Result<(), Failure> {
    let fit = arguments.fit();
    use_threads(arguments.table.threads)?;
    fit.check()?;
    Outputs::apart_from(arguments.tables().into_iter().map(Path::new)).check(&arguments.output)?;
    let labelled = check_labelled(&fit, arguments)?;
    let bar = Bar::new(quiet);
    let in_memory_only = labelled
        || arguments.weight.is_some()
        || arguments.robust
        || arguments.lags > 0
        || !arguments.intake.is_plain();
    let purpose = Purpose {
        fit: &fit,
        intake: &arguments.intake,
        allowed: Allowed::new(arguments.memory),
        normal: arguments.normal.as_deref(),
        weight: arguments.weight.as_deref(),
        sample: arguments.sample.map(|count| usize::try_from(count).unwrap_or(usize::MAX)),
        texts: labelled || !arguments.intake.is_plain(),
        updatable: arguments.updatable,
        lags: arguments.lags as usize,
        in_memory_only: in_memory_only || method::entry(&fit.method)?.capabilities.keeps_all_rows,
        directory: directory(&arguments.output),
    };
    let options = intake::to_learn(&arguments.table, &arguments.intake);
    let rows = Rows::read(&arguments.tables(), &options, &purpose, &bar)?;
    check_memory(&purpose, &rows, quiet)?;

    let start = Instant::now();
    let mut model = match rows {
        Rows::InMemory { training, of } => fitted(arguments, &fit, (training, of), &bar)?,
        Rows::InFile { rows, names, notes } => {
            let mut model = in_file(arguments, &purpose, (rows, names), &bar)?;
            notes.into_iter().for_each(|note| model.note(note));
            model
        }
    };
    let seconds = start.elapsed().as_secs_f64();
    drop(bar);
    let ignored = ignored(&arguments.table, &arguments.intake);
    model.ignore(ignored.into_iter().chain(arguments.weight.clone()).collect());
    model_file::write(&model, &arguments.output)?;
    if quiet && !arguments.json { Ok(()) } else { print(&model, &arguments.output, seconds, arguments.json) }
}

/// Returns whether the fit uses labels; it is an error if there are none, or if `--normal` leaves one class.
fn check_labelled(fit: &Fit, arguments: &FitArguments) -> Result<bool, Failure> {
    let labelled = fit.labelled()?;
    let needs = || format!("--method {} --kernel {}", fit.method.name, fit.kernel.name);
    if labelled && arguments.table.label.is_none() {
        let needs = needs();
        return Err(Failure::Call(format!("{needs}: the class of each row is needed; name its column with --label")));
    }
    if labelled && arguments.normal.is_some() {
        return Err(Failure::Call(format!("{}: several classes are needed, --normal leaves one", needs())));
    }
    Ok(labelled)
}

/// The directory for a temporary table: TMPDIR if set, otherwise the directory of the model.
fn directory(output: &Path) -> PathBuf {
    let beside = || output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::env::var_os("TMPDIR").filter(|named| !named.is_empty()).map_or_else(|| beside().to_path_buf(), PathBuf::from)
}

/// Fits a model to rows in memory, which may be a sample of a larger table.
fn fitted(
    arguments: &FitArguments,
    fit: &Fit,
    (training, of): (Training, Option<usize>),
    bar: &Bar,
) -> Result<Model, Failure> {
    let Training { mut table, weights, intake, notes } = training;
    if arguments.lags > 0 {
        if fit.row_order == RowOrder::Any {
            return Err(Failure::Call("--lags: rows with lags are in time order; leave out --row-order any".into()));
        }
        table = with_lags(table, arguments.lags as usize)?;
    }
    let Table { names, rows, columns, values, label } = table;
    let points = Points::new(columns, values)?;
    let label = label.filter(|_| fit.labelled().unwrap_or(false));
    let labels = label.map(|label| labels(&label)).transpose()?;
    let mut model = match &arguments.landmarks {
        Some(landmarks) => {
            let given = given(landmarks, &arguments.table, intake.as_ref(), names.as_ref())?;
            fit.run_with_landmarks(&points, given, names, bar)?
        }
        None => {
            let (labels, weights) = (labels.as_ref(), weights.as_deref());
            fit.train(skpca::Training { points: &points, labels, weights, names, watch: bar })?
        }
    };
    if arguments.updatable {
        let learning = Learning::of(&model);
        model = Online::new(model, &points, None, learning, bar)?.into_model();
    }
    intake.map_or(Ok(()), |intake| model.take_in(intake))?;
    notes.into_iter().for_each(|note| model.note(note));
    if let Some(of) = of.filter(|of| *of > rows) {
        model.note(format!("fitted to a sample of {rows} of {of} rows"));
    }
    Ok(model)
}

/// Returns a table with lags of all its columns.
fn with_lags(table: Table, count: usize) -> Result<Table, Failure> {
    let Some(names) = &table.names else {
        return Err(Failure::Call("--lags: the columns need names, by which the model knows them later".into()));
    };
    let mut lags = Lags::new(count, names);
    let (names, values) = (lags.names(), lags.add(&table.values));
    Ok(Table { columns: names.len(), names: Some(names), values, ..table })
}

/// Fits a model to rows in a file.
fn in_file(
    arguments: &FitArguments,
    purpose: &Purpose,
    (rows, names): (FileRows, Option<Vec<String>>),
    bar: &Bar,
) -> Result<Model, Failure> {
    if arguments.updatable {
        let why =
            "--updatable: the rows do not fit in memory; fit a --sample of them and learn the others by skpca update";
        return Err(Failure::Run(why.into()));
    }
    let model = match &arguments.landmarks {
        Some(landmarks) => {
            let given = given(landmarks, &arguments.table, None, names.as_ref())?;
            purpose.fit.run_with_landmarks(&rows, given, names, bar)
        }
        None => purpose.fit.run_streamed(&rows, names, purpose.allowed.bytes, bar),
    };
    rows.unless_changed(model).map_err(|error| match (error, &arguments.table.data) {
        (error @ skpca::Error::NotFinite { .. }, file) => Failure::Run(format!("{file}: {error}")),
        (error, _) => error.into(),
    })
}

/// Reads the points of another table with the same columns.
fn given(
    source: &str,
    arguments: &TableArguments,
    intake: Option<&Intake>,
    names: Option<&Vec<String>>,
) -> Result<Given, Failure> {
    let Table { names: own, columns, values, .. } = intake::read_alike(source, arguments, intake, names)?;
    if let (Some(own), Some(names)) = (&own, names)
        && own != names
    {
        let expected =
            format!("--landmarks {source}: expected the columns {}, found {}", names.join(", "), own.join(", "));
        return Err(Failure::Call(expected));
    }
    Ok(Given::Points(Points::new(columns, values)?))
}

/// Returns the classes of a label column.
fn labels(column: &[String]) -> Result<Labels, Failure> {
    check_labels(column)?;
    Ok(Labels::new(column)?)
}

/// Rejects rows without a label.
pub fn check_labels(column: &[String]) -> Result<(), Failure> {
    match column.iter().position(|label| label.trim().is_empty()) {
        Some(row) => Err(Failure::Run(format!("row {row} (from 0) has no label: leave it out, or name its class"))),
        None => Ok(()),
    }
}

/// Columns of later tables that the model ignores.
pub fn ignored(arguments: &TableArguments, intake: &IntakeArguments) -> Vec<String> {
    arguments.label.iter().chain(&arguments.drop).chain(&intake.time).cloned().collect()
}

/// Rejects a fit that needs more memory than allowed, and announces how much a large one takes.
fn check_memory(purpose: &Purpose, rows: &Rows, quiet: bool) -> Result<(), Failure> {
    let Purpose { fit, allowed, .. } = *purpose;
    let needed = needed(purpose, rows)?;
    if needed > allowed.bytes {
        let advice = advice(purpose, rows)?;
        let (needed, allowed, wording) = (memory::text(needed), memory::text(allowed.bytes), allowed.wording);
        return Err(Failure::Run(format!(
            "this fit needs about {needed} of memory, {allowed} are {wording}: {advice}"
        )));
    }
    if quiet {
        return Ok(());
    }
    if let Rows::InFile { rows, .. } = rows {
        let (bytes, allowed) = (memory::text(rows.bytes()), memory::text(allowed.bytes));
        let (n, name) = (rows.n(), &fit.method.name);
        print_stderr(&format!(
            "note: {n} rows ({bytes}) are read in passes: {name} on all of them in memory needs more than {allowed}"
        ));
    } else if needed > ANNOUNCED_ABOVE {
        print_stderr(&format!("this fit takes about {} of memory", memory::text(needed)));
    }
    Ok(())
}

/// Bytes of the fit and of the rows that it keeps in memory.
fn needed(purpose: &Purpose, rows: &Rows) -> Result<usize, Failure> {
    let (Purpose { fit, allowed, .. }, (n, d)) = (purpose, rows.shape());
    match rows {
        Rows::InMemory { .. } => purpose.in_memory(n, d, n.saturating_mul(d)),
        Rows::InFile { .. } => Ok(fit.streamed_memory(n, d, allowed.bytes)?),
    }
}

/// Smaller samples are not suggested.
const MIN_SAMPLE: usize = 500;

/// Suggests flags that would make the fit possible, each of them on its own.
fn advice(purpose: &Purpose, rows: &Rows) -> Result<String, Failure> {
    let (Purpose { fit, allowed, texts, .. }, (n, d)) = (purpose, rows.shape());
    let mut ways = Vec::new();
    let mut sample = n / 2;
    while sample > MIN_SAMPLE && purpose.in_memory(sample, d, sample * d)? > allowed.bytes {
        sample /= 2;
    }
    if sample > MIN_SAMPLE {
        let digits = 10_usize.pow(sample.ilog10());
        ways.push(format!("--sample {}", sample / digits * digits));
    }
    if !texts
        && let Some((name, least)) = leanest(fit, (n, d), allowed.bytes)
        && least <= allowed.bytes
    {
        ways.push(format!("--method {name} (about {})", memory::text(least)));
    }
    let whole = purpose.in_memory(n, d, n.saturating_mul(d))?;
    if memory::available().is_none_or(|free| whole < free) {
        ways.push(format!("--memory {}MB", whole.div_ceil(1_000_000) + 1));
    }
    Ok(if ways.is_empty() {
        "use fewer columns, or a machine with more".into()
    } else {
        format!("use {}", ways.join(", or "))
    })
}

/// Returns the method that needs the least memory for the table, and the bytes that it needs.
fn leanest(fit: &Fit, (n, d): (usize, usize), allowed: usize) -> Option<(&'static str, usize)> {
    let suits = |entry: &&method::Entry| entry.takes(&fit.kernel) && !entry.capabilities.labelled;
    let others = METHODS.iter().filter(suits).filter(|entry| !entry.capabilities.keeps_all_rows);
    let memory = |name| Fit { method: Spec::new(name), ..fit.clone() }.streamed_memory(n, d, allowed).ok();
    others.filter_map(|entry| Some((entry.name, memory(entry.name)?))).min_by_key(|(_, bytes)| *bytes)
}

fn print(model: &Model, path: &Path, seconds: f64, json: bool) -> Result<(), Failure> {
    if json {
        let mut object = format::describe(model);
        object.insert("seconds".into(), Value::from(seconds));
        return Ok(writeln!(std::io::stdout(), "{}", Value::Object(object))?);
    }
    for note in &model.parts().report.notes {
        print_stderr(&format!("note: {note}"));
    }
    if !model.parts().report.converged {
        print_stderr("warning: the fit did not converge; its components may be inaccurate");
    }
    let mut screen = Screen::new();
    inspect::print_summary(&mut screen, model)?;
    Ok(screen.line(&format!("written      {} in {seconds:.2} s", path.display()))?)
}
