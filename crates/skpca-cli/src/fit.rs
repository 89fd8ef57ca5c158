//! `skpca fit`: a table in, a model file out.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use serde_json::Value;
use skpca::method::METHODS;
use skpca::{Fit, Labels, Model, Points, Spec, Target, format};

use crate::arguments::{FitArguments, TableArguments};
use crate::failure::Failure;
use crate::outputs::Outputs;
use crate::progress::Bar;
use crate::table::{self, ReadOptions, Table};
use crate::terminal::{Screen, complain};
use crate::{inspect, memory, model_file, use_threads};

/// A fit that needs less goes ahead without a word.
const WORTH_SAYING: usize = 1_000_000_000;

pub fn run(arguments: &FitArguments, quiet: bool) -> Result<(), Failure> {
    let target = arguments.support.map(Target::Support).or(arguments.fidelity.map(Target::Fidelity));
    let fit = arguments.common.fit(arguments.method.clone(), target);
    use_threads(arguments.table.threads)?;
    fit.check()?;
    Outputs::apart_from([Path::new(&arguments.table.data)]).check(&arguments.output)?;
    let labelled = fit.labelled()?;
    if labelled && arguments.table.label.is_none() {
        let needs = format!("--method {} --kernel {}", fit.method.name, fit.kernel.name);
        return Err(Failure::Call(format!("{needs}: the class of each row is needed; name its column with --label")));
    }
    let table = read(&arguments.table)?;
    check_memory(&fit, &table, arguments.memory, quiet)?;

    let start = Instant::now();
    let Table { names, columns, values, label, .. } = table;
    let points = Points::new(columns, values)?;
    let mut model = match label.filter(|_| labelled) {
        Some(label) => fit.run_labelled(&points, &labels(&label)?, names, &Bar::new(quiet))?,
        None => fit.run(&points, names, &Bar::new(quiet))?,
    };
    let seconds = start.elapsed().as_secs_f64();
    model.ignore(ignored(&arguments.table));
    model_file::write(&model, &arguments.output)?;
    if quiet && !arguments.json { Ok(()) } else { print(&model, &arguments.output, seconds, arguments.json) }
}

pub fn read(arguments: &TableArguments) -> Result<Table, Failure> {
    read_from(&arguments.data, arguments)
}

/// Another table, read in the same way.
pub fn read_from(source: &str, arguments: &TableArguments) -> Result<Table, Failure> {
    let options = ReadOptions {
        header: !arguments.no_header,
        label: arguments.label.clone(),
        drop: arguments.drop.clone(),
        delimiter: arguments.delimiter,
        decimal: arguments.decimal,
        ..ReadOptions::default()
    };
    Ok(table::read(source, &options)?)
}

/// The classes that the label column names.
fn labels(column: &[String]) -> Result<Labels, Failure> {
    check_labels(column)?;
    Ok(Labels::new(column)?)
}

/// Refuses rows without a label.
pub fn check_labels(column: &[String]) -> Result<(), Failure> {
    match column.iter().position(|label| label.trim().is_empty()) {
        Some(row) => Err(Failure::Run(format!("row {row} (from 0) has no label: leave it out, or name its class"))),
        None => Ok(()),
    }
}

/// Columns that later tables may have and the model does not want.
pub fn ignored(arguments: &TableArguments) -> Vec<String> {
    arguments.label.iter().chain(&arguments.drop).cloned().collect()
}

/// Says what a large fit takes, and refuses what cannot fit before it has cost an hour.
fn check_memory(fit: &Fit, table: &Table, limit: Option<usize>, quiet: bool) -> Result<(), Failure> {
    let needed = fit.memory(table.rows, table.columns)?;
    let (most, whose) = match limit {
        Some(limit) => (limit, "allowed"),
        None => (memory::available().unwrap_or(usize::MAX), "free"),
    };
    if needed > most {
        let advice = match leanest(fit, table) {
            Some((name, least)) if least < needed => format!("--method {name} (about {}), ", memory::text(least)),
            _ => String::new(),
        };
        return Err(Failure::Run(format!(
            "this fit needs about {} of memory, {} are {whose}: use {advice}a smaller --support, or fewer rows",
            memory::text(needed),
            memory::text(most)
        )));
    }
    if needed > WORTH_SAYING && !quiet {
        complain(&format!("this fit takes about {} of memory", memory::text(needed)));
    }
    Ok(())
}

/// The method that fits the table in the least memory, and how much that is.
fn leanest(fit: &Fit, table: &Table) -> Option<(&'static str, usize)> {
    let others = METHODS.iter().filter(|entry| !entry.capabilities.labelled);
    let memory = |name| Fit { method: Spec::new(name), ..fit.clone() }.memory(table.rows, table.columns).ok();
    others.filter_map(|entry| Some((entry.name, memory(entry.name)?))).min_by_key(|(_, bytes)| *bytes)
}

fn print(model: &Model, path: &Path, seconds: f64, json: bool) -> Result<(), Failure> {
    if json {
        let mut object = format::describe(model);
        object.insert("seconds".into(), Value::from(seconds));
        return Ok(writeln!(std::io::stdout(), "{}", Value::Object(object))?);
    }
    for note in &model.parts().report.notes {
        complain(&format!("note: {note}"));
    }
    if !model.parts().report.converged {
        complain("warning: the fit did not converge; its components may be inaccurate");
    }
    let mut screen = Screen::new();
    inspect::print_summary(&mut screen, model)?;
    Ok(screen.line(&format!("written      {} in {seconds:.2} s", path.display()))?)
}
