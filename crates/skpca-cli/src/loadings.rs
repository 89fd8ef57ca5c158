//! `skpca loadings`: sparse principal components of a table or of a covariance matrix.

use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};
use skpca::method::METHODS;
use skpca::{Fit, Loadings, Points, Scaling, Spec, Target};

use crate::arguments::LoadingsArguments;
use crate::failure::Failure;
use crate::intake::{self, Training};
use crate::outputs::Outputs;
use crate::progress::Bar;
use crate::table::{self, Table};
use crate::terminal::{Screen, aligned, print_stderr};
use crate::use_threads;

/// Decimals of a loading.
const DECIMALS: usize = 3;

/// The method that has loadings.
pub fn method() -> Spec {
    let entry = METHODS.iter().find(|entry| entry.capabilities.linear);
    Spec::new(entry.map_or("", |entry| entry.name))
}

pub fn run(arguments: &LoadingsArguments, quiet: bool) -> Result<(), Failure> {
    let target = arguments.support.map(Target::Support).or(arguments.fidelity.map(Target::Fidelity));
    let method = arguments.method.clone().unwrap_or_else(method);
    let request = Fit {
        kernel: skpca::method::entry(&method)?.kernel(),
        method,
        target,
        components: arguments.components,
        center: Some(!arguments.no_center),
        scaling: if arguments.covariance { Scaling::None } else { arguments.scale },
        seed: arguments.seed,
        ..Fit::default()
    };
    use_threads(arguments.table.threads)?;
    request.check()?;
    let output = arguments.output.as_deref();
    table::check_target(output)?;
    if let Some(output) = output {
        Outputs::apart_from([Path::new(&arguments.table.data)]).check(Path::new(output))?;
    }
    let Training { table: Table { names, columns, values, .. }, notes, .. } =
        intake::read(&arguments.table, &arguments.intake)?;
    let points = Points::new(columns, values)?;
    let bar = Bar::new(quiet);
    let found = if arguments.covariance {
        request.loadings_of_covariance(&points, &bar)?
    } else {
        request.loadings(&points, &bar)?
    };
    let names = names.unwrap_or_else(|| (0..columns).map(|j| j.to_string()).collect());
    for note in notes.iter().chain(&found.report.notes) {
        print_stderr(&format!("note: {note}"));
    }
    if !found.report.converged {
        print_stderr("warning: the loadings did not converge; more alternations or a larger tolerance may help");
    }
    if output.is_some() {
        let rows: Vec<f64> = found.vectors.col_iter().flat_map(|v| v.iter().copied().collect::<Vec<_>>()).collect();
        table::write(output, &names, found.vectors.ncols(), &rows)?;
    }
    if arguments.json {
        return Ok(writeln!(std::io::stdout(), "{}", to_json(&found, &names))?);
    }
    print(&mut Screen::unless(quiet && output.is_some()), &found, &names)
}

fn to_json(found: &Loadings, names: &[String]) -> Value {
    let components: Vec<Value> = (0..found.vectors.ncols())
        .map(|k| {
            let loadings = names.iter().zip(found.vectors.col(k).iter()).filter(|(_, v)| **v != 0.0);
            json!({
                "loadings": loadings.map(|(name, v)| (name.clone(), json!(v))).collect::<serde_json::Map<_, _>>(),
                "variance": found.variances[k],
                "adjusted_variance": found.adjusted[k],
            })
        })
        .collect();
    json!({
        "components": components,
        "columns": names,
        "total_variance": found.total,
        "captured": found.captured,
        "fidelity": found.fidelity,
        "penalties": found.penalties,
        "ridge": found.ridge,
        "report": {
            "objective": found.report.objective,
            "gap": found.report.gap,
            "rounds": found.report.rounds,
            "converged": found.report.converged,
            "notes": found.report.notes,
        },
    })
}

/// Prints a line for each column with a non-zero loading, then the counts and variances of the components.
fn print(screen: &mut Screen, found: &Loadings, names: &[String]) -> Result<(), Failure> {
    let q = found.vectors.ncols();
    let row = |name: &str, cell: &dyn Fn(usize) -> String| {
        std::iter::once(name.to_string()).chain((0..q).map(cell)).collect::<Vec<String>>()
    };
    let mut rows = vec![row("column", &|k| format!("pc{}", k + 1))];
    for (j, name) in names.iter().enumerate() {
        let loading = |k: usize| found.vectors[(j, k)];
        if (0..q).any(|k| loading(k) != 0.0) {
            rows.push(row(name, &|k| match loading(k) {
                0.0 => String::new(),
                v => format!("{v:.DECIMALS$}"),
            }));
        }
    }
    let nonzero = found.nonzero();
    rows.push(row("non-zero", &|k| nonzero[k].to_string()));
    rows.push(row("adjusted", &|k| format!("{:.1}%", 100.0 * found.adjusted[k] / found.total)));
    aligned(&rows, 1).iter().try_for_each(|line| screen.line(line))?;
    let total: f64 = found.adjusted.iter().sum();
    screen.line("")?;
    Ok(screen.line(&format!(
        "captured {:.4} of the variance, {:.4} of what PCA captures; adjusted variances sum to {:.1}%",
        found.captured / found.total,
        found.fidelity,
        100.0 * total / found.total
    ))?)
}
