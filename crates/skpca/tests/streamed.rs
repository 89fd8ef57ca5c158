//! Laws for rows that are read when they are needed: fits are the same as those of the same rows in memory.

use std::ops::Range;

use skpca::method::METHODS;
use skpca::{Error, Fit, Model, Points, Result, Scaling, Source, Spec, Statistic, Target, format, toys};

/// A table too large to be read into memory as a whole.
const SHAPE: (usize, usize) = (60_000, 20);
/// Bytes of memory, enough for samples of a few thousand rows.
const LITTLE: usize = 60_000_000;

/// Rows that behave as if they were not in memory; one value may be changed.
struct Elsewhere<'a> {
    points: &'a Points<'a>,
    changed: Option<(usize, f64)>,
    /// Number of rows missing from each read.
    missing: usize,
}

impl<'a> Elsewhere<'a> {
    fn of(points: &'a Points<'a>) -> Elsewhere<'a> {
        Elsewhere { points, changed: None, missing: 0 }
    }
}

impl Source for Elsewhere<'_> {
    fn n(&self) -> usize {
        self.points.n()
    }

    fn d(&self) -> usize {
        self.points.d()
    }

    fn read(&self, rows: Range<usize>, room: &mut Vec<f64>) -> Result<()> {
        room.clear();
        room.extend_from_slice(self.points.slice(rows.start..rows.end - self.missing.min(rows.len())).values());
        if let Some((row, value)) = self.changed.filter(|(row, _)| rows.contains(row)) {
            room[(row - rows.start) * self.d() + 3] = value;
        }
        Ok(())
    }
}

/// Returns clusters of different sizes, in columns of different units.
fn table() -> Points<'static> {
    let (n, d) = SHAPE;
    let noise = toys::normal(n, d, 0);
    let cell =
        |(at, v): (usize, &f64)| (at % d + 1) as f64 * (v + 3.0 * ((at / d) % 7 % 4) as f64 * ((at % d) % 3) as f64);
    Points::new(d, noise.values().iter().enumerate().map(cell).collect::<Vec<_>>()).unwrap()
}

fn bytes(model: &Model) -> Vec<u8> {
    let mut bytes = Vec::new();
    format::write(model, &mut bytes).unwrap();
    bytes
}

fn on<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

#[test]
fn methods_that_work_on_samples_give_the_same_bytes_as_in_memory() {
    let points = table();
    let fits = ["landmarks", "greedy", "expansion"].map(|name| Fit { method: Spec::new(name), ..Fit::default() });
    let detector = Fit::detector();
    let others = [
        Fit { kernel: Spec::new("linear"), ..fits[0].clone() },
        Fit { kernel: "laplacian,gamma=mean".parse().unwrap(), scaling: Scaling::None, ..fits[1].clone() },
        Fit { scaling: Scaling::Minmax, false_alarms: Some(0.02), ..fits[0].clone() },
        Fit { kernel: "rbf,gamma=scale".parse().unwrap(), target: Some(Target::Fidelity(0.7)), ..fits[2].clone() },
    ];
    for fit in fits.into_iter().chain(others).chain([detector]) {
        let size = Some(fit.target.unwrap_or(Target::Support(15))).filter(|_| fit.statistic == Statistic::Distance);
        let fit = Fit { target: size, components: size.map(|_| 4), ..fit };
        let names = || Some((0..SHAPE.1).map(|k| format!("c{k}")).collect());
        let expected = bytes(&fit.run(&points, names(), &()).unwrap());
        for threads in [1, 2] {
            let run = || fit.run_streamed(&Elsewhere::of(&points), names(), LITTLE, &()).unwrap();
            assert!(bytes(&on(threads, run)) == expected, "{} {} {threads}", fit.method, fit.kernel);
        }
    }
}

#[test]
fn small_tables_give_the_same_bytes_as_in_memory_for_all_methods() {
    let points = toys::clusters(0);
    for entry in METHODS.iter().filter(|entry| !entry.capabilities.labelled) {
        let fit = Fit { method: Spec::new(entry.name), kernel: entry.kernel(), components: Some(2), ..Fit::default() };
        let streamed = fit.run_streamed(&Elsewhere::of(&points), None, 0, &()).unwrap();
        assert!(bytes(&streamed) == bytes(&fit.run(&points, None, &()).unwrap()), "{}", entry.name);
    }
}

#[test]
fn methods_that_hold_all_rows_choose_on_a_sample_and_note_it() {
    let points = table();
    for entry in METHODS.iter().filter(|entry| !entry.capabilities.labelled && !entry.capabilities.keeps_all_rows) {
        let (method, kernel) = (Spec::new(entry.name), entry.kernel());
        for target in [Target::Support(18), Target::Fidelity(0.8)] {
            let fit = Fit {
                method: method.clone(),
                kernel: kernel.clone(),
                components: Some(3),
                target: Some(target),
                ..Fit::default()
            };
            let run = || fit.run_streamed(&Elsewhere::of(&points), None, LITTLE, &()).unwrap();
            let model = on(2, run);
            let case = format!("{} {target:?}", entry.name);
            let parts = model.parts();
            let samples = parts.report.notes.iter().filter(|note| note.contains("were chosen on a sample of")).count();
            let whole = ["landmarks", "greedy", "expansion", "spca"].contains(&entry.name);
            assert_eq!(samples, usize::from(!whole), "{case}: {:?}", parts.report.notes);
            assert_eq!(parts.n, SHAPE.0, "{case}");
            if let Target::Fidelity(asked) = target {
                assert!(parts.fidelity >= asked, "{case}: {}", parts.fidelity);
            }
            // The support is numbered by the rows of the whole table.
            if let Some(rows) = &parts.rows {
                let scaled = parts.columns.apply(&points).unwrap();
                assert!(scaled.select(rows) == parts.support, "{case}");
            }
        }
    }
}

#[test]
fn points_chosen_on_a_sample_do_not_depend_on_threads_and_are_nearly_as_good() {
    let points = table();
    let target = Some(Target::Support(20));
    let fit = Fit { method: "l21,refit=false".parse().unwrap(), components: Some(4), target, ..Fit::default() };
    let run = |threads| on(threads, || fit.run_streamed(&Elsewhere::of(&points), None, LITTLE, &()).unwrap());
    let model = run(1);
    assert!(bytes(&model) == bytes(&run(2)));
    assert!(model.parts().frame.is_some(), "the method keeps its own components");
    let whole = fit.run(&points, None, &()).unwrap();
    assert!(model.fidelity() > whole.fidelity() - 0.02, "{} {}", model.fidelity(), whole.fidelity());
}

#[test]
fn unreadable_rows_and_fits_that_do_not_fit_in_memory_are_errors() {
    let points = table();
    let fit = |name: &str| Fit { method: Spec::new(name), ..Fit::default() };
    let message = |fit: Fit, rows: Elsewhere| fit.run_streamed(&rows, None, LITTLE, &()).err().unwrap().to_string();
    let changed = |value| Elsewhere { changed: Some((31_234, value)), ..Elsewhere::of(&points) };
    for scaling in [Scaling::Standard, Scaling::None] {
        let fit = Fit { scaling, ..fit("landmarks") };
        assert_eq!(message(fit, changed(f64::NAN)), "row 31234, column 3 (from 0): NaN is not a finite number");
    }
    let short = Elsewhere { missing: 1, ..Elsewhere::of(&points) };
    assert_eq!(message(fit("landmarks"), short), "9580 values do not fill 480 rows × 20 columns");
    let expected = "method = exact: expected a method that keeps few rows, where they do not all fit in memory";
    assert_eq!(message(fit("exact"), Elsewhere::of(&points)), expected);
    let labelled = fit("discriminant").run_streamed(&Elsewhere::of(&points), None, LITTLE, &()).err();
    assert!(matches!(labelled, Some(Error::Parameter { .. })), "{labelled:?}");
    let many = Fit { target: Some(Target::Support(59_000)), ..fit("l21") };
    assert!(message(many, Elsewhere::of(&points)).contains("rows that fit in memory at once"));
}
