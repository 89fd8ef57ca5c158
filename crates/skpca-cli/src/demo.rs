//! `skpca demo`: compares every method on two toy data sets of the papers and draws the page.

use std::path::{Path, PathBuf};
use std::time::Duration;

use skpca::{Fit, Points, Scaling, toys};

use crate::compare::budget::Budget;
use crate::compare::{Comparison, Data, Plan, applicable, calls, compare, report};
use crate::failure::Failure;
use crate::outputs::{Ours, Outputs, make_directory};
use crate::progress::Bar;
use crate::terminal::Screen;
use crate::{page, table};

/// Far more than needed, so that nothing is skipped on a slow machine.
const BUDGET: Duration = Duration::from_secs(600);
/// Few sizes, so that each table fits on a screen.
const SIZES: [usize; 2] = [5, 10];
const PAGE: &str = "skpca-demo.html";

pub fn run(directory: Option<&Path>, quiet: bool) -> Result<(), Failure> {
    let file = directory.map_or_else(|| PAGE.into(), |directory| directory.join(PAGE));
    directory.map_or(Ok(()), make_directory)?;
    let sets = [
        Set::new("clusters", "three Gaussian clusters in the plane", toys::clusters(0)),
        Set::new("parabola", "y = x² + noise", toys::parabola(0)),
    ];
    // Check all outputs before writing any.
    Outputs::apart_from([]).check_own(&file, Ours::Page)?;
    if let Some(directory) = directory {
        sets.iter().try_for_each(|set| set.check_keep(directory))?;
    }
    let mut screen = Screen::unless(quiet);
    screen.line("Kernel PCA keeps every training point. How few are enough?")?;
    let mut comparisons = Vec::new();
    for set in sets {
        let comparison = set.compare(directory, quiet)?;
        screen.line("")?;
        report::print(&mut screen, &comparison)?;
        comparisons.push(comparison);
    }
    page::write(&file, &page::of_comparisons(&comparisons.iter().collect::<Vec<_>>())?)?;
    screen.line("")?;
    screen.line(&format!("The page is {}: open it in a browser. Look at how few points", file.display()))?;
    screen.line(
        "reach the dashed line of exact kernel PCA, and at the contours of the components and of the novelty score.",
    )?;
    screen.line(&match directory {
        Some(directory) => {
            format!("Sets and models are in {}: skpca inspect MODEL describes one.", directory.display())
        }
        None => "With -o . the sets are written too, so that you can run the commands above.".into(),
    })?;
    screen.line("")?;
    Ok(screen.line("Next, with a table of your own: skpca compare YOUR.csv -o report.html")?)
}

/// A synthetic data set of two columns.
struct Set {
    name: &'static str,
    about: &'static str,
    columns: Vec<String>,
    points: Points<'static>,
}

impl Set {
    fn new(name: &'static str, about: &'static str, points: Points<'static>) -> Set {
        Set { name, about, columns: vec!["x".to_string(), "y".to_string()], points }
    }

    /// The file that it is written to.
    fn file(&self, directory: &Path) -> PathBuf {
        directory.join(format!("{}.csv", self.name))
    }

    fn check_keep(&self, directory: &Path) -> Result<(), Failure> {
        let outputs = Outputs::apart_from([]);
        outputs.check_own(&self.file(directory), Ours::Table(&self.columns, self.points.values()))?;
        let models = directory.join(self.name);
        if models.exists() { self.plan("").check_keep(&models, &outputs, self.points.n()) } else { Ok(()) }
    }

    /// As in the papers: 5 components, unscaled columns.
    fn plan(&self, source: &str) -> Plan {
        Plan {
            base: Fit { components: Some(5), center: Some(true), scaling: Scaling::None, ..Fit::default() },
            methods: applicable(false, &Fit::default().kernel),
            sizes: SIZES.to_vec(),
            fidelity: 0.99,
            fidelity_given: true,
            methods_given: false,
            hold_out: 0.25,
            ignored: Vec::new(),
            intake: None,
            command: format!("{} -q 5 --scale none", calls::fit_of(source)),
        }
    }

    fn compare(self, directory: Option<&Path>, quiet: bool) -> Result<Comparison, Failure> {
        let file = directory.map(|directory| self.file(directory));
        if let Some(file) = &file {
            table::write(file.to_str(), &self.columns, self.points.n(), self.points.values())?;
        }
        let plan = self.plan(&file.map_or_else(|| format!("{}.csv", self.name), |file| file.display().to_string()));
        let Set { name, about, columns, points } = self;
        let name_of = format!("{name}, {about}");
        let data = Data { name: name_of, names: Some(columns), points, test: None, classes: None, intake: None };
        let comparison = compare(data, &plan, &Budget::new(BUDGET), &Bar::new(quiet))?;
        if let Some(directory) = directory {
            let models = directory.join(name);
            make_directory(&models)?;
            comparison.keep(&models, &Outputs::apart_from([]))?;
        }
        Ok(comparison)
    }
}
