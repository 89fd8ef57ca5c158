//! `skpca compare`: every method on one table in many sizes, judged on rows that none of them saw.
//!
//! ```text
//! table ── split ──► fitted rows ── Study: methods × sizes, in the time there is ──► cells ── choice ──► the model recommended,
//!                    rows held out ──► captured variance, accuracy, novelty ────────┘                    fitted to all rows
//! ```

pub mod budget;
mod choice;
mod quality;
pub mod report;
mod split;

use std::path::Path;
use std::time::{Duration, Instant};

use skpca::method::METHODS;
use skpca::{Error, Fit, Labels, Model, Points, Precision, Random, Spec, Study, Target, format};

use crate::arguments::CompareArguments;
use crate::failure::Failure;
use crate::progress::Bar;
use crate::table::{self, Table};
use crate::{fit, memory, page, use_threads};
use budget::{Budget, Deadline};
use choice::{Candidate, Reason};
use quality::Sample;
use split::Split;

/// Fidelity to aim at where nothing is said.
const FIDELITY: f64 = 0.95;
/// Sizes where nothing is said, in numbers of components.
const SIZES: [usize; 4] = [1, 2, 5, 10];
/// Components where nothing is said, as the library has it.
const COMPONENTS: usize = 10;
/// Rows that a nearest neighbour is looked for among, and rows that look for one.
const NEIGHBOURS: usize = 4000;
const SEEKERS: usize = 2000;
/// Exact kernel PCA of more rows is tried only where it is asked for by name.
const EXACT_ROWS: usize = 20_000;
/// A label is the novel class of two where it has no more than this share of the rows.
const RARE: f64 = 0.1;
/// Random numbers for [`NEIGHBOURS`], a purpose that the library does not use.
const PURPOSE: u64 = 1002;

pub fn run(arguments: &CompareArguments, quiet: bool) -> Result<(), Failure> {
    let budget = Budget::new(arguments.budget);
    use_threads(arguments.table.threads)?;
    let plan = Plan::new(arguments)?;
    if let Some(output) = &arguments.output {
        fit::check_output(output)?;
    }
    let data = Data::read(arguments)?;
    let comparison = compare(&data, &plan, &budget, &Bar::new(quiet))?;
    if let Some(directory) = &arguments.keep {
        comparison.keep(directory)?;
    }
    if let Some(output) = &arguments.output {
        page::write(output, &page::of_comparisons(&[&comparison])?)?;
    }
    if arguments.json {
        println!("{}", comparison.json());
    } else if !quiet {
        report::print(&comparison)?;
        match &arguments.output {
            Some(output) => println!("\nThe page is {}: open it in a browser.", output.display()),
            None => println!("\nAdd -o report.html for a page with pictures."),
        }
    }
    Ok(())
}

/// What is to be tried.
pub struct Plan {
    /// All but method and target.
    pub base: Fit,
    pub methods: Vec<Spec>,
    /// Where it is empty, multiples of the number of components.
    pub sizes: Vec<usize>,
    pub fidelity: f64,
    /// Whether the user named that fidelity.
    pub asked: bool,
    /// Whether the user named the methods.
    pub named: bool,
    /// Share of the rows that judge.
    pub hold_out: f64,
    /// Columns that tables have beside those of the models.
    pub ignored: Vec<String>,
    /// The call of `skpca fit` up to the flags of method and size.
    pub command: String,
}

impl Plan {
    fn new(arguments: &CompareArguments) -> Result<Plan, Failure> {
        // Fidelities of centred and other features are not comparable: all are centred, or none.
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
        let labelled = arguments.table.label.is_some();
        let usable =
            |method: &Spec| Fit { method: method.clone(), ..base.clone() }.labelled().map(|needs| labelled || !needs);
        if let Some(method) = arguments.methods.iter().find(|method| !usable(method).unwrap_or(true)) {
            return Err(Failure::Call(format!("--methods {method}: name the column of classes with --label")));
        }
        if !usable(&base.method)? {
            return Err(Failure::Call(format!("--kernel {}: name the column of classes with --label", base.kernel)));
        }
        Ok(Plan {
            methods: match arguments.methods.is_empty() {
                true => applicable(labelled),
                false => arguments.methods.clone(),
            },
            named: !arguments.methods.is_empty(),
            sizes: arguments.support.clone(),
            fidelity,
            asked: arguments.fidelity.is_some(),
            hold_out: if arguments.test.is_some() { 0.0 } else { arguments.hold_out },
            ignored: fit::ignored(&arguments.table),
            command: report::command(arguments),
            base,
        })
    }

    /// Targets in the order they are tried, each with every method that has a size: the smallest size, the fidelity, then size
    /// after size.
    fn targets(&self, n: usize) -> Vec<Target> {
        let q = self.base.components.unwrap_or(COMPONENTS);
        let mut sizes = match self.sizes.is_empty() {
            true => SIZES.map(|times| times * q).into_iter().filter(|&m| m <= n).collect(),
            false => self.sizes.clone(),
        };
        sizes.sort_unstable();
        sizes.dedup();
        let mut targets: Vec<Target> = sizes.into_iter().map(Target::Support).collect();
        targets.insert(targets.len().min(1), Target::Fidelity(self.fidelity));
        targets
    }
}

/// Every method there is for such data.
pub fn applicable(labelled: bool) -> Vec<Spec> {
    METHODS.iter().filter(|entry| labelled || !entry.labelled).map(|entry| Spec::new(entry.name)).collect()
}

/// What is compared on.
pub struct Data {
    /// How users call it.
    pub name: String,
    pub names: Option<Vec<String>>,
    /// All rows.
    pub points: Points<'static>,
    /// Other rows, that judge in place of some of those.
    pub test: Option<Points<'static>>,
    pub classes: Option<Classes>,
}

/// Labels as numbers.
pub struct Classes {
    /// In the order they appear.
    pub names: Vec<String>,
    pub of: Vec<usize>,
    pub of_test: Vec<usize>,
}

impl Classes {
    fn new(labels: &[String], test: Option<&[String]>) -> Result<Classes, Failure> {
        fit::labels(labels)?;
        let mut names: Vec<String> = Vec::new();
        let mut number = |label: &String| {
            names.iter().position(|name| name == label).unwrap_or_else(|| {
                names.push(label.clone());
                names.len() - 1
            })
        };
        let of: Vec<usize> = labels.iter().map(&mut number).collect();
        let of_test: Vec<usize> = test.unwrap_or_default().iter().map(&mut number).collect();
        match names.len() > 2 && 2 * names.len() > labels.len() {
            true => Err(Failure::Run(format!(
                "the label has {} values on {} rows: it does not name classes; leave it out with --drop",
                names.len(),
                labels.len()
            ))),
            false => Ok(Classes { names, of, of_test }),
        }
    }

    /// Of two classes the one with fewer rows.
    pub fn rarer(&self) -> Option<usize> {
        let count = |class: usize| self.of.iter().filter(|&&of| of == class).count();
        (self.names.len() == 2).then(|| usize::from(count(1) <= count(0)))
    }
}

impl Data {
    fn read(arguments: &CompareArguments) -> Result<Data, Failure> {
        let Table { names, columns, values, label, .. } = fit::read(&arguments.table)?;
        let mut data = Data {
            name: arguments.table.data.clone(),
            names,
            points: Points::new(columns, values)?,
            test: None,
            classes: None,
        };
        let mut other = None;
        if let Some(test) = &arguments.test {
            let table = fit::read_from(test, &arguments.table)?;
            if table.names != data.names || table.columns != data.points.d() {
                return Err(Failure::Run(format!("{test}: its columns are not those of {}", data.name)));
            }
            data.test = Some(Points::new(table.columns, table.values)?);
            other = table.label;
        }
        data.classes = label.map(|label| Classes::new(&label, other.as_deref())).transpose()?;
        Ok(data)
    }
}

/// A method and what is asked of it; nothing for one that keeps every row.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    pub method: Spec,
    pub target: Option<Target>,
}

impl Case {
    pub fn asked(&self) -> String {
        match self.target {
            None => "every row".into(),
            Some(Target::Support(m)) => format!("{m} points"),
            Some(Target::Fidelity(f)) => format!("fidelity {f}"),
        }
    }
}

/// What came of a case.
pub struct Cell {
    pub case: Case,
    pub model: Model,
    /// Of the fit, as if it had been alone.
    pub seconds: f64,
    /// Of scoring a row.
    pub query: f64,
    /// Of the model file.
    pub bytes: usize,
    pub judged: Option<Judged>,
}

/// What rows that no fit saw say.
pub struct Judged {
    /// Share of their variance that is captured.
    pub captured: f64,
    /// How well scores tell the rarer of two classes.
    pub auroc: Option<f64>,
    /// Accuracies.
    pub classes: Option<Accuracy>,
}

pub struct Accuracy {
    pub nearest: f64,
    pub linear: f64,
}

/// What did not come of a case.
pub struct Skipped {
    pub case: Case,
    pub why: String,
}

/// The model that is recommended.
pub struct Recommended {
    pub case: Case,
    pub fit: Fit,
    /// On all rows.
    pub model: Model,
    pub seconds: f64,
    pub reason: String,
}

/// All that was found.
pub struct Comparison {
    pub data: About,
    pub cells: Vec<Cell>,
    pub skipped: Vec<Skipped>,
    /// Nothing if none was fitted to all rows in time.
    pub recommended: Option<Recommended>,
    pub command: String,
}

/// The data, as far as the report needs them.
pub struct About {
    pub name: String,
    pub points: Points<'static>,
    pub classes: Option<Classes>,
    pub fitted: usize,
    pub held_out: Vec<usize>,
    /// Rows that judge: those held out, or those of another table.
    pub judges: usize,
    pub fidelity: f64,
}

/// Fits and judges, and recommends one.
pub fn compare(data: &Data, plan: &Plan, budget: &Budget, bar: &Bar) -> Result<Comparison, Failure> {
    let n = data.points.n();
    let of = data.classes.as_ref().map(|classes| classes.of.as_slice());
    let Split { fitted, held_out } = split::split(n, plan.hold_out, of, plan.base.seed);
    let points = if held_out.is_empty() { data.points.clone() } else { data.points.select(&fitted) };
    let class = |rows: &[usize]| of.map_or(Vec::new(), |of| rows.iter().map(|&row| of[row]).collect());
    let judges = Judges::new(data, &points, class(&fitted), &held_out, class(&held_out), plan.base.seed);
    let labels = of.map(|_| Labels::new(class(&fitted))).transpose()?;
    let start = Instant::now();
    let clock = || start.elapsed();
    let study = Study::new(&plan.base, &points, labels.as_ref(), data.names.clone(), &clock)?;
    let (mut cells, mut skipped) = (Vec::<Cell>::new(), Vec::<Skipped>::new());
    let mut attempt = |case: Case, number: usize| -> Result<f64, Failure> {
        bar.of(format!("fit {number}: {}, {}: ", case.method, case.asked()));
        let start = Instant::now();
        match tried(&case, plan, &study, &points, &skipped, budget.of_one(), bar)? {
            Ok((mut model, time)) => {
                model.ignore(plan.ignored.clone());
                cells.push(judges.cell(case, model, time)?);
            }
            Err(why) => skipped.push(Skipped { case, why }),
        }
        Ok(start.elapsed().as_secs_f64())
    };
    // Exact kernel PCA, which has one size and is the slowest with many rows, comes last; of the others the fast ones come first.
    let (exact, sparse): (Vec<&Spec>, Vec<&Spec>) = plan.methods.iter().partition(|method| method.name == "exact");
    let mut sparse: Vec<(f64, &Spec)> = sparse.into_iter().map(|method| (0.0, method)).collect();
    let mut number = 0;
    for target in plan.targets(points.n()) {
        for (seconds, method) in &mut sparse {
            number += 1;
            *seconds += attempt(Case { method: (*method).clone(), target: Some(target) }, number)?;
        }
        sparse.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    for method in exact {
        attempt(Case { method: method.clone(), target: None }, number + 1)?;
    }
    let place = |case: &Case| METHODS.iter().position(|entry| entry.name == case.method.name);
    cells.sort_by_key(|cell| (place(&cell.case), cell.case.method.to_string(), cell.model.m()));
    skipped.sort_by_key(|skipped| (place(&skipped.case), skipped.case.method.to_string()));
    bar.of("the model recommended: ".into());
    let recommended = recommend(data, plan, &cells, judges.count(), held_out.is_empty(), budget, bar)?;
    let about = About {
        name: data.name.clone(),
        points: data.points.clone(),
        classes: data.classes.as_ref().map(|c| Classes {
            names: c.names.clone(),
            of: c.of.clone(),
            of_test: Vec::new(),
        }),
        fitted: points.n(),
        judges: judges.count(),
        held_out,
        fidelity: plan.fidelity,
    };
    Ok(Comparison { data: about, cells, skipped, recommended, command: plan.command.clone() })
}

/// The model of a case and the time of its fit, or why there is none; an error only where no case could do better.
#[allow(clippy::type_complexity)]
fn tried(
    case: &Case,
    plan: &Plan,
    study: &Study,
    points: &Points,
    skipped: &[Skipped],
    until: Option<Instant>,
    bar: &Bar,
) -> Result<Result<(Model, Duration), String>, Failure> {
    if case.target.is_none() && points.n() > EXACT_ROWS && !plan.named {
        return Ok(Err(format!("it keeps every row: above {EXACT_ROWS} rows only with --methods exact")));
    }
    let fit = Fit { method: case.method.clone(), target: case.target, ..plan.base.clone() };
    if memory::available().is_some_and(|free| fit.memory(points.n(), points.d()).is_ok_and(|needed| needed > free)) {
        return Ok(Err("it needs more memory than is free".into()));
    }
    let stopped = |s: &&Skipped| s.case.method == case.method && s.why.starts_with(STOPPED);
    if let Some(Target::Support(m)) = case.target
        && skipped.iter().filter(stopped).any(|s| matches!(s.case.target, Some(Target::Support(less)) if less < m))
    {
        return Ok(Err("a smaller one took too long".into()));
    }
    let Some(at) = until else { return Ok(Err("no time left: raise --budget".into())) };
    let start = Instant::now();
    match study.fit(&case.method, case.target, &Deadline { bar, at }) {
        Ok(fitted) => Ok(Ok(fitted)),
        Err(Error::Interrupted) => Ok(Err(format!(
            "{STOPPED} {:.1} s, its share of the budget: raise --budget",
            start.elapsed().as_secs_f64()
        ))),
        // What one method cannot do, others can; what is wrong with the data, all would say.
        Err(error @ (Error::Parameter { .. } | Error::NoVariance { .. } | Error::Numerical { .. })) => {
            Ok(Err(error.to_string()))
        }
        Err(error) => Err(error.into()),
    }
}

const STOPPED: &str = "stopped after";

/// Rows that judge models, and rows that classifiers learn from.
struct Judges<'a> {
    data: &'a Data,
    /// Rows that judge, none if there are none.
    points: Option<Points<'static>>,
    classes: Vec<usize>,
    /// Some of the rows that were fitted.
    known: Points<'static>,
    known_classes: Vec<usize>,
    /// Some of the rows that judge.
    seekers: Vec<usize>,
    /// Rows that are scored to see how long it takes.
    timed: Points<'static>,
}

impl<'a> Judges<'a> {
    fn new(
        data: &'a Data,
        fitted: &Points,
        fitted_classes: Vec<usize>,
        held_out: &[usize],
        held_out_classes: Vec<usize>,
        seed: u64,
    ) -> Judges<'a> {
        let (points, classes) = match &data.test {
            Some(test) => (Some(test.clone()), data.classes.as_ref().map_or(Vec::new(), |c| c.of_test.clone())),
            None if held_out.is_empty() => (None, Vec::new()),
            None => (Some(data.points.select(held_out)), held_out_classes),
        };
        let mut random = Random::new(seed, PURPOSE);
        let known = random.sample(fitted.n(), NEIGHBOURS);
        let seekers = random.sample(points.as_ref().map_or(0, Points::n), SEEKERS);
        let known_classes =
            if fitted_classes.is_empty() { Vec::new() } else { known.iter().map(|&row| fitted_classes[row]).collect() };
        let known = fitted.select(&known);
        let timed = points.clone().unwrap_or_else(|| known.clone());
        Judges { data, points, classes, known, known_classes, seekers, timed }
    }

    fn count(&self) -> usize {
        self.points.as_ref().map_or(0, Points::n)
    }

    fn cell(&self, case: Case, model: Model, time: Duration) -> Result<Cell, Failure> {
        let mut bytes = Vec::new();
        format::write(&model, &mut bytes)?;
        let judged = self.points.as_ref().map(|points| self.judged(&model, points)).transpose()?;
        let (query, seconds) = (self.query(&model)?, time.as_secs_f64());
        Ok(Cell { case, seconds, query, bytes: bytes.len(), judged, model })
    }

    /// Time to score one row: the best of three passes, of one that takes long.
    fn query(&self, model: &Model) -> Result<f64, Failure> {
        let mut best = f64::INFINITY;
        for _ in 0..3 {
            let start = Instant::now();
            std::hint::black_box(model.score(&self.timed, Precision::Double)?);
            best = best.min(start.elapsed().as_secs_f64());
            if best > 0.2 {
                break;
            }
        }
        Ok(best / self.timed.n() as f64)
    }

    fn judged(&self, model: &Model, points: &Points) -> Result<Judged, Failure> {
        let mut judged = Judged { captured: model.captured_share(points)?, auroc: None, classes: None };
        let Some(classes) = &self.data.classes else { return Ok(judged) };
        if let Some(rarer) = classes.rarer() {
            let novel: Vec<bool> = self.classes.iter().map(|&class| class == rarer).collect();
            let area = quality::auroc(&model.score(points, Precision::Double)?, &novel);
            judged.auroc = area.is_finite().then_some(area);
        }
        let seekers = points.select(&self.seekers);
        let sought: Vec<usize> = self.seekers.iter().map(|&row| self.classes[row]).collect();
        let (known, features) =
            (model.transform(&self.known, Precision::Double)?, model.transform(&seekers, Precision::Double)?);
        let train = Sample { features: &known, columns: model.q(), classes: &self.known_classes };
        let test = Sample { features: &features, columns: model.q(), classes: &sought };
        judged.classes = Some(Accuracy {
            nearest: quality::nearest(&train, &test),
            linear: quality::linear(&train, &test, classes.names.len()),
        });
        Ok(judged)
    }
}

/// The best cell whose fit to all rows ends in time, and that fit.
fn recommend(
    data: &Data,
    plan: &Plan,
    cells: &[Cell],
    judges: usize,
    whole: bool,
    budget: &Budget,
    bar: &Bar,
) -> Result<Option<Recommended>, Failure> {
    let measure = Measure::of(data);
    let candidate = |cell: &Cell| Candidate {
        points: cell.model.m(),
        fidelity: cell.model.parts().fidelity,
        quality: cell.judged.as_ref().and_then(|judged| measure.quality(judged, data, judges)),
    };
    let (order, reason) = choice::ranked(&cells.iter().map(candidate).collect::<Vec<_>>(), plan.fidelity, plan.asked);
    for i in order {
        let Cell { case, model, seconds, .. } = &cells[i];
        let because = report::because(&cells[i], &reason, &measure, plan);
        let (case, seconds) = (case.clone(), *seconds);
        let fit = Fit { method: case.method.clone(), target: case.target, ..plan.base.clone() };
        if whole {
            let model = Model::new(model.parts().clone())?;
            return Ok(Some(Recommended { case, fit, model, seconds, reason: because }));
        }
        let start = Instant::now();
        let deadline = Deadline { bar, at: budget.end() };
        let fitted = match data.classes.as_ref().filter(|_| fit.labelled().unwrap_or(false)) {
            Some(classes) => fit.run_labelled(&data.points, &Labels::new(&classes.of)?, data.names.clone(), &deadline),
            None => fit.run(&data.points, data.names.clone(), &deadline),
        };
        match fitted {
            Ok(model) => {
                let seconds = start.elapsed().as_secs_f64();
                return Ok(Some(Recommended { case, fit, model, seconds, reason: because }));
            }
            Err(Error::Interrupted) => continue,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

/// What a label asks of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Measure {
    Nothing,
    /// To tell a rare class by its scores.
    Novelty,
    /// To tell classes by its features.
    Accuracy,
}

impl Measure {
    fn of(data: &Data) -> Measure {
        let Some(classes) = &data.classes else { return Measure::Nothing };
        let rare = |class: usize| {
            classes.of.iter().filter(|&&of| of == class).count() as f64 <= RARE * classes.of.len() as f64
        };
        if classes.rarer().is_some_and(rare) { Measure::Novelty } else { Measure::Accuracy }
    }

    /// The number that counts, and its standard error.
    fn quality(self, judged: &Judged, data: &Data, judges: usize) -> Option<(f64, f64)> {
        match self {
            Measure::Nothing => None,
            Measure::Novelty => judged.auroc.map(|area| {
                let classes = data.classes.as_ref().expect("novelty has a label");
                let share = classes.of.iter().filter(|&&of| Some(of) == classes.rarer()).count() as f64
                    / classes.of.len() as f64;
                let novel = ((share * judges as f64).round() as usize).max(1);
                (area, quality::auroc_error(area, novel, judges.saturating_sub(novel).max(1)))
            }),
            Measure::Accuracy => judged.classes.as_ref().map(|classes| {
                let best = classes.nearest.max(classes.linear);
                (best, quality::share_error(best, judges.min(SEEKERS)))
            }),
        }
    }
}

impl Comparison {
    /// Writes every model, and which rows were held out.
    pub fn keep(&self, directory: &Path) -> Result<(), Failure> {
        std::fs::create_dir_all(directory)
            .map_err(|error| Failure::Run(format!("{}: {error}", directory.display())))?;
        for cell in &self.cells {
            fit::write_model(&cell.model, &directory.join(report::file_name(&cell.case)))?;
        }
        let held: Vec<f64> = (0..self.data.points.n())
            .map(|row| f64::from(u8::from(self.data.held_out.binary_search(&row).is_ok())))
            .collect();
        let file = directory.join("rows.csv");
        Ok(table::write(file.to_str(), &["held_out".to_string()], held.len(), &held)?)
    }
}
