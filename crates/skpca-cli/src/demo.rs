//! `skpca demo`: the two toy sets of the papers, every method that needs no labels, one table.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use skpca::method::METHODS;
use skpca::{Fit, Model, Points, Precision, Scaling, Spec, Target, toys};

use crate::failure::Failure;
use crate::fit::write_model;
use crate::table;

/// Sizes that each sparse method is asked for, beside its default fidelity.
const SIZES: [usize; 2] = [10, 20];

pub fn run(directory: Option<&Path>) -> Result<(), Failure> {
    if let Some(directory) = directory {
        std::fs::create_dir_all(directory)
            .map_err(|error| Failure::Run(format!("{}: {error}", directory.display())))?;
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "Kernel PCA keeps every training point. How few are enough?\n")?;
    for (name, about, points) in [
        ("clusters", "three Gaussian clusters, 90 points in the plane", toys::clusters(0)),
        ("parabola", "y = x² + noise, 500 points in the plane", toys::parabola(0)),
    ] {
        writeln!(out, "{name}: {about}; rbf kernel, median rule, 5 components\n")?;
        writeln!(
            out,
            "  {:<12} {:<15} {:>6} {:>9} {:>9} {:>9} {:>11}",
            "method", "asked for", "points", "fidelity", "captured", "fit", "query"
        )?;
        for (method, target) in cases() {
            let row = case(name, &points, method, target, directory)?;
            writeln!(out, "{row}")?;
        }
        if let Some(directory) = directory {
            let file = directory.join(format!("{name}.csv"));
            table::write(file.to_str(), &["x".to_string(), "y".to_string()], points.n(), points.values())?;
        }
        writeln!(out)?;
    }
    writeln!(out, "fidelity: variance captured, as a share of what exact kernel PCA captures with all points.")?;
    writeln!(out, "captured: the same as a share of all variance in feature space. query: time to score one row.")?;
    match directory {
        Some(directory) => {
            writeln!(out, "\nSets and models are in {}. Look into one: skpca inspect MODEL", directory.display())?
        }
        None => writeln!(
            out,
            "\nNext: skpca fit YOUR.csv -o model.skpca --support 50, then skpca score model.skpca YOUR.csv"
        )?,
    }
    Ok(())
}

fn cases() -> Vec<(&'static str, Option<Target>)> {
    let sparse = METHODS.iter().filter(|entry| entry.name != "exact" && !entry.labelled);
    let targets = SIZES.map(Target::Support).into_iter().chain([Target::Fidelity(0.95), Target::Fidelity(0.99)]);
    let grid = sparse.flat_map(move |entry| targets.clone().map(move |target| (entry.name, Some(target))));
    std::iter::once(("exact", None)).chain(grid).collect()
}

fn case(
    set: &str,
    points: &Points,
    method: &str,
    target: Option<Target>,
    directory: Option<&Path>,
) -> Result<String, Failure> {
    let fit = Fit {
        method: Spec::new(method),
        components: Some(5),
        target,
        center: Some(true),
        scaling: Scaling::None,
        ..Fit::default()
    };
    let start = Instant::now();
    let model = fit.run(points, Some(vec!["x".into(), "y".into()]), &())?;
    let seconds = start.elapsed().as_secs_f64();
    let asked = match target {
        None => "every point".to_string(),
        Some(Target::Support(m)) => format!("support {m}"),
        Some(Target::Fidelity(f)) => format!("fidelity {f}"),
    };
    if let Some(directory) = directory {
        let file = format!("{set}-{method}-{}.skpca", asked.replace(' ', "-"));
        write_model(&model, &directory.join(file))?;
    }
    let parts = model.parts();
    let captured = parts.captured / parts.total_variance;
    let (m, fidelity, query) = (model.m(), parts.fidelity, query_nanoseconds(&model, points)?);
    Ok(format!(
        "  {method:<12} {asked:<15} {m:>6} {fidelity:>9.4} {captured:>9.4} {:>6.1} ms {query:>8.0} ns",
        1e3 * seconds
    ))
}

/// Time to score one row, from scoring all of them a few times.
fn query_nanoseconds(model: &Model, points: &Points) -> Result<f64, Failure> {
    let start = Instant::now();
    let repeats = 20;
    for _ in 0..repeats {
        std::hint::black_box(model.score(points, Precision::Double)?);
    }
    Ok(1e9 * start.elapsed().as_secs_f64() / (repeats * points.n()) as f64)
}
