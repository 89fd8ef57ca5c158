//! `skpca path`: a table of the fidelity at every penalty or number of points, for little more than the cost of one
//! fit.

use skpca::method::COMPONENTS;
use skpca::{Fit, Points, Step};

use crate::arguments::PathArguments;
use crate::failure::Failure;
use crate::outputs::Outputs;
use crate::progress::Bar;
use crate::{intake, table, use_threads};

/// Default largest size, as a multiple of the number of components.
const LARGEST: usize = 3;

pub fn run(arguments: &PathArguments, quiet: bool) -> Result<(), Failure> {
    let fit = arguments.common.fit(arguments.method.clone(), None);
    use_threads(arguments.table.threads)?;
    fit.check()?;
    table::check_target(arguments.output.as_deref())?;
    if let Some(output) = arguments.output.as_deref().filter(|&output| output != "-") {
        Outputs::apart_from([arguments.table.data.as_ref()]).check(output.as_ref())?;
    }
    let penalised = skpca::method::entry(&fit.method)?.capabilities.path;
    if penalised && arguments.most.is_some() {
        return Err(Failure::Call(format!("--most: {} has a path of penalties; see --shares", fit.method.name)));
    }
    if !penalised && !arguments.shares.is_empty() {
        return Err(Failure::Call(format!("--shares: {} has a path of sizes; see --most", fit.method.name)));
    }
    let read = intake::read(&arguments.table, &arguments.intake)?.table;
    let points = Points::new(read.columns, read.values)?;
    let (names, rows) = if penalised {
        penalties(&fit, &points, &arguments.shares, quiet)?
    } else {
        sizes(&fit, &points, arguments.most, quiet)?
    };
    let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
    let values: Vec<f64> = rows.concat();
    Ok(table::write(arguments.output.as_deref(), &names, rows.len(), &values)?)
}

/// Column names, and the rows.
type Path = (&'static [&'static str], Vec<Vec<f64>>);

fn penalties(fit: &Fit, points: &Points, shares: &[f64], quiet: bool) -> Result<Path, Failure> {
    let shares = if shares.is_empty() { skpca::method::shares(20, 0.01) } else { shares.to_vec() };
    let row = |step: &Step| {
        let known = |number: Option<f64>| number.unwrap_or(f64::NAN);
        let (objective, gap) = (known(step.report.objective), known(step.report.gap));
        let converged = f64::from(u8::from(step.report.converged));
        vec![step.share, step.penalty, step.rows.len() as f64, step.fidelity, objective, gap, converged]
    };
    let steps = fit.path(points, &shares, &Bar::new(quiet))?;
    let names = &["share", "penalty", "points", "fidelity", "objective", "gap", "converged"];
    Ok((names, steps.iter().map(row).collect()))
}

fn sizes(fit: &Fit, points: &Points, most: Option<usize>, quiet: bool) -> Result<Path, Failure> {
    let most = most.unwrap_or_else(|| fit.components.unwrap_or(COMPONENTS).saturating_mul(LARGEST));
    let path = fit.fidelities(points, most, &Bar::new(quiet))?;
    Ok((&["points", "fidelity"], path.into_iter().map(|(m, fidelity)| vec![m as f64, fidelity]).collect()))
}
