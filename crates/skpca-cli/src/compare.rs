//! `skpca compare`: fits every method to one table at many sizes and judges the models on held-out rows.
//!
//! ```text
//! table ── splits ──► fitted rows ── Study: methods × sizes, within budget ──► cells ── choice ──► recommended model,
//!                     held-out rows ──► captured variance, accuracy, novelty ─┘                    fitted to all rows
//! ```
//!
//! With a label, each split holds out other rows, until every row has been used to judge, and models are compared row
//! by row.

mod baselines;
pub mod budget;
pub mod calls;
mod choice;
pub mod evidence;
pub mod judges;
mod quality;
pub mod report;
mod split;
mod trials;

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use skpca::method::{COMPONENTS, Entry, FIDELITY, METHODS};
use skpca::{Fit, Intake, Labels, Model, Points, Spec, Study, Target};

use crate::arguments::CompareArguments;
use crate::failure::Failure;
use crate::intake::{self, Training};
use crate::outputs::{Ours, Outputs, make_directory};
use crate::progress::Bar;
use crate::table::{self, Table};
use crate::terminal::Screen;
use crate::{fit, model_file, page, use_threads};
pub use baselines::Baseline;
use budget::Budget;
use judges::{Judged, Judges, Measure};
use split::Split;
use trials::{Setting, Trials};

/// Sizes tried by default, as multiples of the number of components.
const SIZES: [usize; 4] = [1, 2, 5, 10];
/// Files that `--keep` writes besides one model per case.
const RECOMMENDED: &str = "recommended.skpca";
const ROWS: &str = "rows.csv";

pub fn run(arguments: &CompareArguments, quiet: bool) -> Result<(), Failure> {
    let budget = Budget::new(arguments.budget);
    use_threads(arguments.table.threads)?;
    let mut plan = Plan::new(arguments)?;
    let read = [Some(&arguments.table.data), arguments.test.as_ref()];
    let outputs = Outputs::apart_from(read.into_iter().flatten().map(Path::new));
    arguments.output.as_ref().map_or(Ok(()), |output| outputs.check(output))?;
    arguments.keep.as_ref().map_or(Ok(()), |directory| make_directory(directory))?;
    let data = Data::read(arguments)?;
    plan.intake = data.intake.clone();
    if let Some(directory) = &arguments.keep {
        plan.check_keep(directory, &outputs, data.points.n())?;
    }
    let comparison = compare(data, &plan, &budget, &Bar::new(quiet))?;
    if let Some(directory) = &arguments.keep {
        comparison.keep(directory, &outputs)?;
    }
    if let Some(output) = &arguments.output {
        page::write(output, &page::of_comparisons(&[&comparison])?)?;
    }
    if arguments.json {
        return Ok(writeln!(std::io::stdout(), "{}", comparison.json())?);
    }
    let mut screen = Screen::unless(quiet && arguments.output.is_some());
    report::print(&mut screen, &comparison)?;
    if quiet {
        return Ok(());
    }
    screen.line("")?;
    Ok(screen.line(&match &arguments.output {
        Some(output) => format!("The page is {}: open it in a browser.", output.display()),
        None => "Add -o report.html for a page with charts.".into(),
    })?)
}

/// What methods and kernels that use labels need.
const NEEDED: &str = "name the column of classes with --label, and no --normal";

/// What to try.
pub struct Plan {
    /// Everything but method and target.
    pub base: Fit,
    pub methods: Vec<Spec>,
    /// Numbers of points; if empty, multiples of the number of components.
    pub sizes: Vec<usize>,
    pub fidelity: f64,
    /// Whether the user gave that fidelity.
    pub fidelity_given: bool,
    /// Whether the user gave the methods.
    pub methods_given: bool,
    /// Share of the rows to hold out.
    pub hold_out: f64,
    /// Columns of the table that models ignore.
    pub ignored: Vec<String>,
    /// How the columns are made from those of the table, if they are not the same.
    pub intake: Option<Intake>,
    /// The call of `skpca fit` without the flags for method and size.
    pub command: String,
}

impl Plan {
    fn new(arguments: &CompareArguments) -> Result<Plan, Failure> {
        // Fidelities of centred and uncentred features are not comparable: centre all models, or none.
        let center = Some(!arguments.common.no_center);
        let base = Fit { center, ..arguments.common.fit(Fit::default().method, None) };
        let fidelity = arguments.fidelity.unwrap_or(FIDELITY);
        Fit { target: Some(Target::Fidelity(fidelity)), ..base.clone() }.check()?;
        for &m in &arguments.support {
            Fit { target: Some(Target::Support(m)), ..base.clone() }.check()?;
        }
        for method in &arguments.methods {
            Fit { method: method.clone(), ..base.clone() }.check()?;
        }
        if !(0.0..=0.9).contains(&arguments.hold_out) {
            return Err(Failure::Call(format!("--hold-out {}: expected a share from 0 to 0.9", arguments.hold_out)));
        }
        let labelled = arguments.table.label.is_some() && arguments.normal.is_none();
        let usable =
            |method: &Spec| Fit { method: method.clone(), ..base.clone() }.labelled().map(|needs| labelled || !needs);
        if let Some(method) = arguments.methods.iter().find(|method| !usable(method).unwrap_or(true)) {
            return Err(Failure::Call(format!("--methods {method}: {NEEDED}")));
        }
        if !usable(&base.method)? {
            return Err(Failure::Call(format!("--kernel {}: {NEEDED}", base.kernel)));
        }
        Ok(Plan {
            methods: if arguments.methods.is_empty() {
                applicable(labelled, &base.kernel)
            } else {
                distinct(&arguments.methods)
            },
            methods_given: !arguments.methods.is_empty(),
            sizes: arguments.support.clone(),
            fidelity,
            fidelity_given: arguments.fidelity.is_some(),
            hold_out: if arguments.test.is_some() { 0.0 } else { arguments.hold_out },
            intake: None,
            ignored: fit::ignored(&arguments.table, &arguments.intake),
            command: calls::command(arguments),
            base,
        })
    }

    /// Stores in a model which columns to ignore and how its own are made.
    fn keep_columns(&self, model: &mut Model) -> Result<(), Failure> {
        model.ignore(self.ignored.clone());
        Ok(self.intake.clone().map_or(Ok(()), |intake| model.take_in(intake))?)
    }

    /// Checks, before the first fit, that [`Comparison::keep`] will be able to write its files.
    pub fn check_keep(&self, directory: &Path, outputs: &Outputs, n: usize) -> Result<(), Failure> {
        let targets: Vec<Option<Target>> = self.targets(n).into_iter().map(Some).chain([None]).collect();
        for method in &self.methods {
            for &target in &targets {
                let case = Case { method: method.clone(), target };
                outputs.check_own(&directory.join(report::file_name(&case)), Ours::Model)?;
            }
        }
        outputs.check_own(&directory.join(RECOMMENDED), Ours::Model)?;
        outputs.check_own(&directory.join(ROWS), Ours::HeldOut)
    }

    /// The targets in the order in which they are tried with every method that has sizes: the smallest size, the
    /// fidelity, then the other sizes in increasing order.
    fn targets(&self, n: usize) -> Vec<Target> {
        let q = self.base.components.unwrap_or(COMPONENTS);
        let mut sizes = if self.sizes.is_empty() {
            SIZES.map(|times| q.saturating_mul(times)).into_iter().filter(|&m| m <= n).collect()
        } else {
            self.sizes.clone()
        };
        sizes.sort_unstable();
        sizes.dedup();
        let mut targets: Vec<Target> = sizes.into_iter().map(Target::Support).collect();
        targets.insert(targets.len().min(1), Target::Fidelity(self.fidelity));
        targets
    }
}

/// Removes duplicates and keeps the order.
fn distinct(methods: &[Spec]) -> Vec<Spec> {
    let first = |(i, method): &(usize, &Spec)| !methods[..*i].contains(method);
    methods.iter().enumerate().filter(first).map(|(_, method)| method.clone()).collect()
}

/// All methods that apply to such data with this kernel.
pub fn applicable(labelled: bool, kernel: &Spec) -> Vec<Spec> {
    let able = |entry: &&Entry| entry.takes(kernel) && (labelled || !entry.capabilities.labelled);
    METHODS.iter().filter(able).map(|entry| Spec::new(entry.name)).collect()
}

/// The data of a comparison.
pub struct Data {
    /// The name to show.
    pub name: String,
    /// Column names.
    pub names: Option<Vec<String>>,
    /// All rows.
    pub points: Points<'static>,
    /// Rows of `--test`, which judge the models instead of held-out rows.
    pub test: Option<Points<'static>>,
    pub classes: Option<Classes>,
    /// How the columns are made from those of the table, if they are not the same.
    pub intake: Option<Intake>,
}

/// Labels as numbers.
pub struct Classes {
    /// In order of appearance.
    pub names: Vec<String>,
    /// The class of each row.
    pub of: Vec<usize>,
    /// The class of each row of `--test`.
    pub of_test: Vec<usize>,
    /// The class of `--normal`: only its rows are fitted, and all others are novel.
    pub normal: Option<usize>,
}

impl Classes {
    fn new(labels: &[String], normal: Option<&String>) -> Result<Classes, Failure> {
        fit::check_labels(labels)?;
        let mut names: Vec<String> = Vec::new();
        let mut numbers = HashMap::new();
        let number = |label: &String| {
            *numbers.entry(label.clone()).or_insert_with(|| {
                names.push(label.clone());
                names.len() - 1
            })
        };
        let of: Vec<usize> = labels.iter().map(number).collect();
        let (classes, rows) = (names.len(), labels.len());
        match classes {
            1 => Err(Failure::Run("the label has one class only: leave it out with --drop".into())),
            _ if classes > 2 && 2 * classes > rows && normal.is_none() => Err(Failure::Run(format!(
                "the label has {classes} values on {rows} rows: it does not name classes; leave it out with --drop"
            ))),
            _ => {
                let normal = normal.map(|value| Classes::named(&names, value)).transpose()?;
                Ok(Classes { names, of, of_test: Vec::new(), normal })
            }
        }
    }

    fn named(names: &[String], value: &str) -> Result<usize, Failure> {
        names.iter().position(|name| name == value).ok_or_else(|| {
            let shown: Vec<&str> = names.iter().take(20).map(String::as_str).collect();
            Failure::Run(format!("--normal {value}: the label has no such value; it has {}", shown.join(", ")))
        })
    }

    /// Numbers the classes of the test table, all of which must occur in the first.
    fn number_test(&mut self, labels: &[String], table: &str) -> Result<(), Failure> {
        let numbers: HashMap<&String, usize> = self.names.iter().enumerate().map(|(k, name)| (name, k)).collect();
        let number = |(row, label): (usize, &String)| {
            numbers.get(label).copied().ok_or_else(|| {
                Failure::Run(format!(
                    "{table}: row {row} (from 0) is of class '{label}', which the rows fitted do not have"
                ))
            })
        };
        self.of_test = labels.iter().enumerate().map(number).collect::<Result<_, _>>()?;
        Ok(())
    }

    /// The class with fewer rows, if there are two classes.
    pub fn rarer(&self) -> Option<usize> {
        (self.names.len() == 2).then(|| usize::from(self.count(1) <= self.count(0)))
    }

    /// Number of rows of a class.
    pub fn count(&self, class: usize) -> usize {
        self.of.iter().filter(|&&of| of == class).count()
    }
}

impl Data {
    fn read(arguments: &CompareArguments) -> Result<Data, Failure> {
        let Training { table: Table { names, columns, values, label, .. }, intake, .. } =
            intake::read(&arguments.table, &arguments.intake)?;
        let mut data = Data {
            name: arguments.table.data.clone(),
            names,
            points: Points::new(columns, values)?,
            test: None,
            classes: None,
            intake,
        };
        data.classes = label.map(|label| Classes::new(&label, arguments.normal.as_ref())).transpose()?;
        if let Some(test) = &arguments.test {
            let table = intake::read_alike(test, &arguments.table, data.intake.as_ref(), data.names.as_ref())?;
            if table.names != data.names || table.columns != data.points.d() {
                return Err(Failure::Run(format!("{test}: its columns are not those of {}", data.name)));
            }
            data.test = Some(Points::new(table.columns, table.values)?);
            if let (Some(classes), Some(label)) = (&mut data.classes, table.label) {
                classes.number_test(&label, test)?;
            }
        }
        Ok(data)
    }

    /// Numbers of the rows of the normal class, if only they are fitted.
    pub fn normal_rows(&self) -> Option<Vec<usize>> {
        let classes = self.classes.as_ref()?;
        let normal = classes.normal?;
        Some((0..classes.of.len()).filter(|&row| classes.of[row] == normal).collect())
    }
}

fn keeps_all_rows(method: &Spec) -> bool {
    skpca::method::entry(method).is_ok_and(|entry| entry.capabilities.keeps_all_rows)
}

/// A method and its target; no target for a method that keeps every row or whose parameters fix the size.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    pub method: Spec,
    pub target: Option<Target>,
}

impl Case {
    pub fn keeps_all_rows(&self) -> bool {
        keeps_all_rows(&self.method)
    }

    pub fn target_text(&self) -> String {
        match self.target {
            None if self.keeps_all_rows() => "every row".into(),
            None => "as given".into(),
            Some(Target::Support(m)) => format!("{m} points"),
            Some(Target::Fidelity(f)) => format!("fidelity {f}"),
        }
    }
}

/// The result of a case.
pub struct Cell {
    pub case: Case,
    pub model: Model,
    /// Seconds that the fit would take on its own.
    pub seconds: f64,
    /// Seconds to score a row.
    pub query: f64,
    /// Size of the model file.
    pub bytes: usize,
    pub judged: Option<Judged>,
}

/// A case without a result, and why.
pub struct Skipped {
    pub case: Case,
    pub why: String,
}

/// The model that is recommended.
pub struct Recommended {
    pub case: Case,
    pub fit: Fit,
    /// Fitted to all rows.
    pub model: Model,
    pub seconds: f64,
    pub reason: String,
    /// What the models were judged by.
    pub measure: Measure,
}

/// All results of a comparison.
pub struct Comparison {
    pub data: Data,
    /// Number of fitted rows.
    pub fitted: usize,
    /// Rows that the first split held out.
    pub held_out: Vec<usize>,
    /// Number of rows that judge: those of `held_out`, or of the test table.
    pub judges: usize,
    /// Number of splits, each of which held out other rows.
    pub splits: usize,
    /// What the models were judged by.
    pub measure: Measure,
    pub baselines: Vec<Baseline>,
    /// The fidelity to reach.
    pub fidelity: f64,
    pub cells: Vec<Cell>,
    pub skipped: Vec<Skipped>,
    /// `None` if no model was fitted to all rows in time.
    pub recommended: Option<Recommended>,
    pub command: String,
}

/// Fits and judges the models, and recommends one.
pub fn compare(data: Data, plan: &Plan, budget: &Budget, bar: &Bar) -> Result<Comparison, Failure> {
    let classes = data.classes.as_ref();
    let of = classes.map(|classes| classes.of.as_slice());
    let normal = classes.and_then(|classes| classes.normal);
    let splits = split::splits(data.points.n(), plan.hold_out, of, normal, plan.base.seed);
    let first = &splits[0];
    let whole = first.held_out.is_empty();
    let points = rows_of(&data, &first.fitted);
    let labels = labels_of(&data, &first.fitted)?;
    let judges = Judges::new(&data, 0, first, plan.base.seed);
    let measure = judges.measure();
    let more = if measure == Measure::Nothing { &[] } else { &splits[1..] };
    if !more.is_empty() {
        budget.split();
    }
    let start = std::time::Instant::now();
    let clock = || start.elapsed();
    let study = Study::new(&plan.base, &points, labels.as_ref(), data.names.clone(), &clock)?;
    let mut baselines = if measure == Measure::Nothing { Vec::new() } else { judges.baselines(plan)? };
    let mut trials = Trials::new(Setting { plan, study: &study, points: &points, judges: &judges, budget, bar });
    trials.run()?;
    let mut done = 1;
    for (number, split) in more.iter().enumerate() {
        let (points, labels) = (rows_of(&data, &split.fitted), labels_of(&data, &split.fitted)?);
        let judges = Judges::new(&data, number + 1, split, plan.base.seed);
        let study = Study::new(&plan.base, &points, labels.as_ref(), data.names.clone(), &clock)?;
        if budget.for_repeat().is_none() || trials.repeat(&study, &judges)? == 0 {
            break;
        }
        for more in judges.baselines(plan)? {
            let same = baselines.iter_mut().find(|baseline| baseline.name == more.name);
            same.into_iter().for_each(|baseline| baseline.judged.add(more.judged.clone()));
        }
        done += 1;
    }
    let recommended = trials.recommend(&data, whole)?;
    let (cells, skipped) = trials.into_parts();
    let Split { fitted, held_out } = splits.into_iter().next().expect("there is a first split");
    let (fitted, judges) = (fitted.len(), judges.count());
    Ok(Comparison {
        data,
        fitted,
        held_out,
        judges,
        splits: done,
        measure,
        baselines,
        fidelity: plan.fidelity,
        cells,
        skipped,
        recommended,
        command: plan.command.clone(),
    })
}

/// The rows to fit.
fn rows_of<'a>(data: &'a Data, fitted: &[usize]) -> Points<'a> {
    if fitted.len() == data.points.n() { data.points.slice(0..data.points.n()) } else { data.points.select(fitted) }
}

/// The labels of the rows to fit; `None` with a normal class, which leaves one label only.
fn labels_of(data: &Data, fitted: &[usize]) -> Result<Option<Labels>, Failure> {
    let classes = data.classes.as_ref().filter(|classes| classes.normal.is_none());
    Ok(classes.map(|classes| Labels::new(fitted.iter().map(|&row| classes.of[row]))).transpose()?)
}

impl Comparison {
    /// Writes every model, and the list of held-out rows.
    pub fn keep(&self, directory: &Path, outputs: &Outputs) -> Result<(), Failure> {
        let write = |model: &Model, name: &str| {
            let file = directory.join(name);
            outputs.check_own(&file, Ours::Model)?;
            model_file::write(model, &file)
        };
        self.cells.iter().try_for_each(|cell| write(&cell.model, &report::file_name(&cell.case)))?;
        self.recommended.as_ref().map_or(Ok(()), |recommended| write(&recommended.model, RECOMMENDED))?;
        let judges = |row: usize| f64::from(u8::from(self.held_out.binary_search(&row).is_ok()));
        let held: Vec<f64> = (0..self.data.points.n()).map(judges).collect();
        let file = directory.join(ROWS);
        outputs.check_own(&file, Ours::HeldOut)?;
        Ok(table::write(file.to_str(), &["held_out".to_string()], held.len(), &held)?)
    }
}
