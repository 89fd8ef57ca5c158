//! `skpca update`: updates a model with the rows of a table.
//!
//! ```text
//! rows ── BATCH at a time ──► scored by the current model ──► learned ──► next
//! ```
//!
//! No more than a batch and a block of the table are in memory at any time.

use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};
use skpca::{Error, Learning, Online, Points, Update, format};

use crate::arguments::UpdateArguments;
use crate::failure::Failure;
use crate::inspect::{self, counted};
use crate::intake::{self, Encoder, Order};
use crate::outputs::Outputs;
use crate::progress::Bar;
use crate::table::{ReadOptions, Source};
use crate::terminal::{Screen, print_stderr};
use crate::{model_file, use_threads};

/// Number of rows that are scored and learned together. It is fixed, so that results do not depend on how a pipe
/// delivers its rows.
const BATCH: usize = 1000;

pub fn run(arguments: &UpdateArguments, quiet: bool) -> Result<(), Failure> {
    // The model itself may be replaced: the old file stays until the new one is complete.
    Outputs::apart_from([Path::new(&arguments.table.data)]).check(&arguments.output)?;
    use_threads(arguments.table.threads)?;
    let model = model_file::read(&arguments.model)?;
    let options = intake::options_for(&model, intake::options(&arguments.table));
    let known = model.parts().learned.as_ref().is_some_and(|learned| learned.state.is_some());
    if !known {
        let why = "the model cannot be updated; fit it again with --updatable";
        return Err(Failure::Run(format!("{}: {why}", arguments.model.display())));
    }
    let mut online = Online::resume(model)?;
    online.learn_by(arguments.learning(online.learning()))?;
    let update = learn(&mut online, &options, arguments, quiet)?;
    let about = about(&online, &update);
    let (before, reference) = (arguments.model.display().to_string(), online.reference_threshold());
    let model = online.into_model();
    model_file::write(&model, &arguments.output)?;
    if arguments.json {
        let mut object = format::describe(&model);
        object.insert("update".into(), about);
        return Ok(writeln!(std::io::stdout(), "{}", Value::Object(object))?);
    }
    if quiet {
        return Ok(());
    }
    let mut screen = Screen::new();
    let Update { rows, alarms, learned, moved, joined, left } = update;
    let alarmed = if learned < rows { ", which were not learned" } else { "" };
    screen.line(&format!(
        "{:<12} {before}: {}, {alarms} above the limit{alarmed}",
        "learned on",
        counted(rows, "row")
    ))?;
    screen.line(&format!(
        "{:<12} {} joined, {left} left; moved {}",
        "points",
        counted(joined, "point"),
        counted(moved, "time")
    ))?;
    screen.line(&format!("{:<12} {reference:.6} was the threshold of the fit", "reference"))?;
    inspect::print_summary(&mut screen, &model)?;
    Ok(screen.line(&format!("written      {}", arguments.output.display()))?)
}

/// Learns the rows of the table in batches.
fn learn(
    online: &mut Online,
    options: &ReadOptions,
    arguments: &UpdateArguments,
    quiet: bool,
) -> Result<Update, Failure> {
    let mut source = Source::open(&arguments.table.data, options)?;
    let encoder =
        Encoder::new(&source, &Order::of(online.model(), None), online.model().parts().columns.names.is_some())?;
    let width = online.model().parts().columns.d();
    let (bar, mut all, mut rows) = (Bar::new(quiet), Update::default(), Vec::new());
    let mut warned = quiet;
    let mut take = |rows: Vec<f64>| -> Result<(), Failure> {
        let first = all.rows;
        let points = Points::new(width, rows)?;
        if let Some(far) = online.model().far_outside(&points).filter(|_| !warned) {
            print_stderr(&format!("warning: {far}"));
            warned = true;
        }
        all.add(&online.update(&points, None, &bar).map_err(|error| counted_from(error, first))?);
        Ok(())
    };
    let mut read = 0;
    while let Some(block) = source.next()? {
        for row in 0..encoder.rows(&block) {
            encoder.row(&block, row, read, &mut rows).map_err(intake::with_advice)?;
            read += 1;
            if rows.len() == BATCH * width {
                take(std::mem::take(&mut rows))?;
            }
        }
    }
    if !rows.is_empty() {
        take(rows)?;
    }
    if all.rows == 0 {
        return Err(intake::no_rows(&arguments.table.data));
    }
    Ok(all)
}

/// Replaces the row number within a batch by the number in the table.
fn counted_from(mut error: Error, first: usize) -> Error {
    if let Error::NotFinite { row, .. } | Error::Outside { row, .. } | Error::Overflow { row, .. } = &mut error {
        *row += first;
    }
    error
}

fn about(online: &Online, update: &Update) -> Value {
    let Update { rows, alarms, learned, moved, joined, left } = *update;
    let Learning { forget, alarms: learns_alarms, .. } = online.learning();
    json!({
        "rows": rows,
        "alarms": alarms,
        "learned": learned,
        "moved": moved,
        "joined": joined,
        "left": left,
        "seen": online.seen(),
        "forget": forget,
        "learns_alarms": learns_alarms,
    })
}
