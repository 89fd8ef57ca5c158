//! `skpca demo`: every method on the two toy sets of the papers, and the page.

use std::path::Path;
use std::time::Duration;

use skpca::{Fit, Points, Scaling, toys};

use crate::compare::budget::Budget;
use crate::compare::{Comparison, Data, Plan, applicable, compare, report};
use crate::failure::Failure;
use crate::progress::Bar;
use crate::{page, table};

/// Far more than it takes: nothing is left out on a slow machine.
const BUDGET: Duration = Duration::from_secs(600);
/// Few, so that the tables fit on a screen each.
const SIZES: [usize; 2] = [5, 10];
const PAGE: &str = "skpca-demo.html";

pub fn run(directory: Option<&Path>, quiet: bool) -> Result<(), Failure> {
    if let Some(directory) = directory {
        std::fs::create_dir_all(directory)
            .map_err(|error| Failure::Run(format!("{}: {error}", directory.display())))?;
    }
    if !quiet {
        println!("Kernel PCA keeps every training point. How few are enough?\n");
    }
    let sets = [
        ("clusters", "three Gaussian clusters in the plane", toys::clusters(0)),
        ("parabola", "y = x² + noise", toys::parabola(0)),
    ];
    let mut comparisons = Vec::new();
    for (name, about, points) in sets {
        let comparison = of_set(name, about, points, directory, quiet)?;
        if !quiet {
            report::print(&comparison)?;
            println!();
        }
        comparisons.push(comparison);
    }
    let file = directory.map_or_else(|| PAGE.into(), |directory| directory.join(PAGE));
    page::write(&file, &page::of_comparisons(&comparisons.iter().collect::<Vec<_>>())?)?;
    if !quiet {
        println!("The page is {}: open it in a browser. Look at how few points", file.display());
        println!(
            "reach the dashed line of exact kernel PCA, and at the contours of the components and of the novelty score."
        );
        if let Some(directory) = directory {
            println!("Sets and models are in {}: skpca inspect MODEL tells of one.", directory.display());
        }
        println!("\nNext, with a table of yours: skpca compare YOUR.csv -o report.html");
    }
    Ok(())
}

/// As in the papers: 5 components, columns as they are.
fn of_set(
    name: &str,
    about: &str,
    points: Points<'static>,
    directory: Option<&Path>,
    quiet: bool,
) -> Result<Comparison, Failure> {
    let names = vec!["x".to_string(), "y".to_string()];
    let file = directory.map(|directory| directory.join(format!("{name}.csv")));
    if let Some(file) = &file {
        table::write(file.to_str(), &names, points.n(), points.values())?;
    }
    let source = file.map_or_else(|| format!("{name}.csv"), |file| file.display().to_string());
    let plan = Plan {
        base: Fit { components: Some(5), center: Some(true), scaling: Scaling::None, ..Fit::default() },
        methods: applicable(false),
        sizes: SIZES.to_vec(),
        fidelity: 0.99,
        asked: true,
        named: false,
        hold_out: 0.25,
        ignored: Vec::new(),
        command: format!("skpca fit {source} -q 5 --scale none"),
    };
    let data = Data { name: format!("{name}, {about}"), names: Some(names), points, test: None, classes: None };
    let comparison = compare(&data, &plan, &Budget::new(BUDGET), &Bar::new(quiet))?;
    if let Some(directory) = directory {
        comparison.keep(&directory.join(name))?;
    }
    Ok(comparison)
}
