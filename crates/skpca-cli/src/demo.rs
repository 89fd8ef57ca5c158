//! `skpca demo`: every method on the two toy sets of the papers, and the page.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use skpca::{Fit, Points, Scaling, toys};

use crate::compare::budget::Budget;
use crate::compare::{Comparison, Data, Plan, applicable, compare, make_directory, report};
use crate::failure::Failure;
use crate::progress::Bar;
use crate::{page, table};

/// Far more than it takes: nothing is left out on a slow machine.
const BUDGET: Duration = Duration::from_secs(600);
/// Few, so that the tables fit on a screen each.
const SIZES: [usize; 2] = [5, 10];
const PAGE: &str = "skpca-demo.html";

pub fn run(directory: Option<&Path>, quiet: bool) -> Result<(), Failure> {
    directory.map_or(Ok(()), make_directory)?;
    let sets = [
        ("clusters", "three Gaussian clusters in the plane", toys::clusters(0)),
        ("parabola", "y = x² + noise", toys::parabola(0)),
    ];
    let mut out = std::io::stdout().lock();
    let mut say = |text: &str| if quiet { Ok(()) } else { writeln!(out, "{text}") };
    say("Kernel PCA keeps every training point. How few are enough?\n")?;
    let mut comparisons = Vec::new();
    for (name, about, points) in sets {
        let comparison = of_set(name, about, points, directory, quiet)?;
        let mut text = Vec::new();
        report::print(&mut text, &comparison)?;
        say(&String::from_utf8_lossy(&text))?;
        comparisons.push(comparison);
    }
    let file = directory.map_or_else(|| PAGE.into(), |directory| directory.join(PAGE));
    page::write(&file, &page::of_comparisons(&comparisons.iter().collect::<Vec<_>>())?)?;
    say(&format!("The page is {}: open it in a browser. Look at how few points", file.display()))?;
    say("reach the dashed line of exact kernel PCA, and at the contours of the components and of the novelty score.")?;
    say(&match directory {
        Some(directory) => format!("Sets and models are in {}: skpca inspect MODEL tells of one.", directory.display()),
        None => "With -o . the sets are written too, and the commands above can be run.".into(),
    })?;
    say("\nNext, with a table of yours: skpca compare YOUR.csv -o report.html")?;
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
        command: format!("{} -q 5 --scale none", report::fit_of(&source)),
    };
    let data = Data { name: format!("{name}, {about}"), names: Some(names), points, test: None, classes: None };
    let comparison = compare(data, &plan, &Budget::new(BUDGET), &Bar::new(quiet))?;
    if let Some(directory) = directory {
        let models = directory.join(name);
        make_directory(&models)?;
        comparison.keep(&models)?;
    }
    Ok(comparison)
}
