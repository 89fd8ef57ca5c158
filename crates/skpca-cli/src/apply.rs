//! `skpca transform` and `skpca score`: a model and a table in, a table out.

use std::path::Path;

use skpca::{Model, Points, Precision};

use crate::arguments::ApplyArguments;
use crate::failure::Failure;
use crate::outputs::Outputs;
use crate::table::{self, ReadOptions, Table};
use crate::{memory, model_file, use_threads};

pub fn transform(arguments: &ApplyArguments) -> Result<(), Failure> {
    let (model, points) = load(arguments)?;
    let features = model.transform(&points, precision(arguments))?;
    let names: Vec<String> = (1..=model.q()).map(|k| format!("pc{k}")).collect();
    Ok(table::write(arguments.output.as_deref(), &names, points.n(), &features)?)
}

pub fn score(arguments: &ApplyArguments) -> Result<(), Failure> {
    let (model, points) = load(arguments)?;
    let summary = &model.parts().scores;
    let scores = model.score(&points, precision(arguments))?;
    let row = |&s: &f64| [s, summary.threshold, summary.p_value(s), f64::from(u8::from(s > summary.threshold))];
    let mut values: Vec<f64> = scores.iter().flat_map(row).collect();
    let mut names = ["score", "threshold", "p_value", "novel"].map(String::from).to_vec();
    if model.parts().density.is_some() {
        let likelihoods = model.log_likelihood(&points, precision(arguments))?;
        let rows = values.chunks_exact(4).zip(&likelihoods);
        values = rows.flat_map(|(row, likelihood)| row.iter().chain([likelihood]).copied()).collect();
        names.push("log_likelihood".to_string());
    }
    Ok(table::write(arguments.output.as_deref(), &names, points.n(), &values)?)
}

fn precision(arguments: &ApplyArguments) -> Precision {
    if arguments.single { Precision::Single } else { Precision::Double }
}

fn load(arguments: &ApplyArguments) -> Result<(Model, Points<'static>), Failure> {
    table::check_target(arguments.output.as_deref())?;
    if let Some(output) = arguments.output.as_deref().filter(|&output| output != "-") {
        Outputs::apart_from([Path::new(&arguments.table.data), &arguments.model]).check(Path::new(output))?;
    }
    use_threads(arguments.table.threads)?;
    let model = model_file::read(&arguments.model)?.pinned(arguments.instructions.level)?;
    let options = ReadOptions {
        header: !arguments.table.no_header,
        label: arguments.table.label.clone(),
        drop: arguments.table.drop.clone(),
        ignore: model.parts().columns.ignored.clone(),
        expected: Some(model.parts().columns.d()),
        label_optional: false,
        delimiter: arguments.table.delimiter,
        decimal: arguments.table.decimal,
    };
    let table = table::read(&arguments.table.data, &options)?;
    // The columns in the model's order and scaled, and the answers.
    let numbers = table.rows.saturating_mul(2 * table.columns + 2 * model.q() + 8);
    memory::check("this table", numbers.saturating_mul(size_of::<f64>()), ": take fewer rows at a time")
        .map_err(Failure::Run)?;
    let points = arranged(&model, table)?;
    Ok((model, points))
}

/// The table's columns in the model's order.
fn arranged(model: &Model, table: Table) -> Result<Points<'static>, Failure> {
    let order = match &table.names {
        Some(names) => model.parts().columns.order(names)?,
        None => (0..table.columns).collect(),
    };
    if order.iter().enumerate().all(|(i, o)| i == *o) {
        return Ok(Points::new(table.columns, table.values)?);
    }
    let rows = table.values.chunks_exact(table.columns);
    let values: Vec<f64> = rows.flat_map(|row| order.iter().map(|&k| row[k])).collect();
    Ok(Points::new(order.len(), values)?)
}
