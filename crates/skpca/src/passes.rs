//! Execution of passes on other machines.
//!
//! ```text
//! here      pass ──► bytes                                                             bytes ──► sum
//! there              bytes + part of the rows ──► bytes of its sum;   sums ──► the sum of all, in order
//! ```
//!
//! Nothing else is exchanged: the fit runs on one machine and requests rows by number and sums of passes.

use std::collections::BTreeSet;
use std::ops::Range;

use serde_json::Value;

use crate::columns::{self, COLUMN_POWERS, EXTENT};
use crate::error::{Error, Result};
use crate::kernel::bandwidth::{self, DIFFERING, POWER};
use crate::kernel_matrix::{self, TRACE};
use crate::method::discriminant::{self, CLASS_SUMS};
use crate::parcel::{Parcel, wrong};
use crate::points::Points;
use crate::rows::{Errand, Rows};
use crate::skeleton::{self, COVARIANCE};
use crate::table_moments::{self, ABOUT};
use skpca_simd::Instructions;

/// The rows of a pass that are on one machine.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// The rows, unscaled.
    pub rows: &'a Points<'a>,
    /// The number of the first of them.
    pub first: usize,
    /// The class number of each row, if the pass [needs it](asks_for_labels).
    pub labels: Option<&'a [usize]>,
}

/// Returns the name of a pass, for progress displays.
pub fn name(pass: &[u8]) -> Result<String> {
    Ok(Parcel::from_bytes(pass)?.text("name").into())
}

/// Returns whether a pass needs the classes of the rows.
pub fn asks_for_labels(pass: &[u8]) -> Result<bool> {
    Ok(Parcel::from_bytes(pass)?.text("name") == CLASS_SUMS)
}

/// Computes the sum of a pass over some rows; both are bytes.
pub fn run(pass: &[u8], part: Part) -> Result<Vec<u8>> {
    let mut parcel = Parcel::from_bytes(pass)?;
    let scaled = Scaled::take(part.rows, &mut parcel)?;
    if let Some(expected) = width(&parcel)?.filter(|width| *width != part.rows.d()) {
        return Err(Error::Width { found: part.rows.d(), expected });
    }
    let numbers = errand(parcel, part)?.over(&scaled, part.first)?;
    Ok(sum(numbers, BTreeSet::from([Instructions::best().level().name().to_string()])))
}

/// Merges sums of a pass, in their order.
pub fn merge(pass: &[u8], sums: &[&[u8]]) -> Result<Vec<u8>> {
    let mut parcel = Parcel::from_bytes(pass)?;
    let nothing = Points::finite(1, Vec::new());
    Scaled::take(&nothing, &mut parcel)?;
    // A pass for ranges only states their number, which must not exceed what a sum holds.
    let ranges = if parcel.text("name") == EXTENT { parcel.count("d")? } else { 0 };
    let errand = errand(parcel, Part { rows: &nothing, first: 0, labels: Some(&[]) })?;
    let mut sums = sums.iter().map(|bytes| Parcel::from_bytes(bytes));
    let first = sums.next().ok_or_else(|| wrong("there is no sum to merge"))??;
    if first.numbers.len() < ranges {
        return Err(wrong("a sum of fewer columns than its pass has"));
    }
    let mut levels = levels_of(&first);
    let numbers = sums.try_fold(first.numbers, |left, right| {
        let right = right?;
        levels.extend(levels_of(&right));
        errand.merged(left, right.numbers)
    })?;
    Ok(sum(numbers, levels))
}

/// Returns the instruction sets of the machines that computed a sum.
pub fn levels(sum: &[u8]) -> Result<Vec<String>> {
    Ok(levels_of(&Parcel::from_bytes(sum)?).into_iter().collect())
}

fn sum(numbers: Vec<f64>, levels: BTreeSet<String>) -> Vec<u8> {
    Parcel::new("sum", numbers).with("levels", levels.into_iter().collect::<Vec<_>>()).to_bytes()
}

fn levels_of(sum: &Parcel) -> BTreeSet<String> {
    let list = sum.head.get("levels").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(|level| level.as_str().map(String::from)).collect()
}

/// Returns the number of columns that a pass requires, if it does.
fn width(parcel: &Parcel) -> Result<Option<usize>> {
    match parcel.text("name") {
        ABOUT => Ok(Some(parcel.numbers.len())),
        COLUMN_POWERS | COVARIANCE | EXTENT => parcel.count("d").map(Some),
        _ => Ok(None),
    }
}

/// Restores the pass in a parcel.
fn errand(parcel: Parcel, part: Part) -> Result<Box<dyn Errand>> {
    match parcel.text("name") {
        ABOUT => table_moments::about(parcel),
        CLASS_SUMS => {
            let labels = part.labels.ok_or_else(|| Error::parameter("labels", "none", "one for each of the rows"))?;
            discriminant::class_sums(parcel, labels.to_vec(), part.first)
        }
        COLUMN_POWERS => columns::column_powers(parcel),
        COVARIANCE => skeleton::covariance(parcel),
        DIFFERING => bandwidth::differing(parcel),
        EXTENT => columns::extent(parcel),
        POWER => bandwidth::power(parcel),
        TRACE => kernel_matrix::trace_of_others(parcel),
        other => Err(wrong(&format!("there is no pass '{other}'"))),
    }
}

/// Rows that are scaled as they are read.
struct Scaled<'a> {
    raw: &'a Points<'a>,
    scaling: Option<(Vec<f64>, Vec<f64>)>,
}

impl<'a> Scaled<'a> {
    /// Creates the rows with the scaling at the beginning of the parcel.
    fn take(raw: &'a Points<'a>, parcel: &mut Parcel) -> Result<Scaled<'a>> {
        if !parcel.says("scaled") {
            return Ok(Scaled { raw, scaling: None });
        }
        let d = parcel.count("columns")?;
        let scaling = (parcel.take(d)?, parcel.take(d)?);
        if raw.n() > 0 && raw.d() != d {
            return Err(Error::Width { found: raw.d(), expected: d });
        }
        Ok(Scaled { raw, scaling: Some(scaling) })
    }
}

impl Rows for Scaled<'_> {
    fn n(&self) -> usize {
        self.raw.n()
    }

    fn d(&self) -> usize {
        self.raw.d()
    }

    fn gather(&self, rows: &[usize]) -> Result<Points<'static>> {
        let mut room = Vec::new();
        let values = rows.iter().map(|&row| Ok(self.block(row..row + 1, &mut room)?.values().to_vec()));
        Ok(Points::finite(self.d(), values.collect::<Result<Vec<_>>>()?.concat()))
    }

    fn block<'b>(&'b self, rows: Range<usize>, room: &'b mut Vec<f64>) -> Result<Points<'b>> {
        let raw = self.raw.slice(rows);
        let Some((shift, scale)) = &self.scaling else { return Ok(raw) };
        room.clear();
        let scaled = |(value, (shift, scale)): (&f64, (&f64, &f64))| (value - shift) / scale;
        raw.rows().for_each(|row| room.extend(row.iter().zip(shift.iter().zip(scale)).map(scaled)));
        Ok(Points::finite(self.d(), &room[..]))
    }

    fn whole(&self) -> Result<&Points<'_>> {
        Err(wrong("a pass looks at blocks of rows only"))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use faer::Mat;

    use super::*;
    use crate::kernel;
    use crate::labels::Labels;
    use crate::method::{self, Target, Task};
    use crate::rows::Weighted;
    use crate::rows::{Remote, Sent};
    use crate::skeleton::Skeleton;
    use crate::spec::Spec;
    use crate::toys;

    /// Rows in parts, one of them empty, that cannot be read block by block.
    struct Machines {
        parts: Vec<Points<'static>>,
        all: Points<'static>,
        labels: Vec<usize>,
        scaling: Option<(Vec<f64>, Vec<f64>)>,
        names: Mutex<BTreeSet<String>>,
        /// All rows, scaled, for methods that need them in memory.
        whole: Option<Points<'static>>,
    }

    impl Machines {
        fn new(all: &Points<'static>, scaling: Option<(Vec<f64>, Vec<f64>)>) -> Machines {
            let n = all.n();
            let ends = [0, n / 7, n / 7, n / 2, n];
            let parts = ends.windows(2).map(|ends| all.slice(ends[0]..ends[1]).into_owned()).collect();
            let labels = (0..n).map(|i| usize::from(all.row(i)[0] > 0.3)).collect();
            Machines { parts, all: all.clone(), labels, scaling, names: Mutex::default(), whole: None }
        }
    }

    impl Remote for Machines {
        fn fold(&self, _: &str, pass: &[u8]) -> Result<Vec<u8>> {
            self.names.lock().unwrap().insert(name(pass)?);
            let (mut sums, mut first) = (Vec::new(), 0);
            for rows in self.parts.iter().filter(|rows| rows.n() > 0) {
                let labels = asks_for_labels(pass)?.then(|| &self.labels[first..first + rows.n()]);
                sums.push(run(pass, Part { rows, first, labels })?);
                first += rows.n();
            }
            let merged: Vec<Vec<u8>> = sums
                .chunks(2)
                .map(|two| merge(pass, &two.iter().map(Vec::as_slice).collect::<Vec<_>>()))
                .collect::<Result<_>>()?;
            merge(pass, &merged.iter().map(Vec::as_slice).collect::<Vec<_>>())
        }
    }

    impl Rows for Machines {
        fn n(&self) -> usize {
            self.all.n()
        }

        fn d(&self) -> usize {
            self.all.d()
        }

        fn gather(&self, rows: &[usize]) -> Result<Points<'static>> {
            Scaled { raw: &self.all, scaling: self.scaling.clone() }.gather(rows)
        }

        fn block<'a>(&'a self, _: Range<usize>, _: &'a mut Vec<f64>) -> Result<Points<'a>> {
            Err(wrong("these rows are elsewhere"))
        }

        fn whole(&self) -> Result<&Points<'_>> {
            self.whole.as_ref().ok_or_else(|| wrong("these rows are elsewhere"))
        }

        fn in_memory(&self) -> bool {
            self.whole.is_some()
        }

        fn remote(&self) -> Option<Sent<'_>> {
            Some(Sent { to: self, scaling: self.scaling.as_ref().map(|(shift, scale)| (&shift[..], &scale[..])) })
        }
    }

    fn near(a: &Mat<f64>, b: &Mat<f64>) -> bool {
        a.shape() == b.shape() && (a - b).norm_max() <= 1e-9 * b.norm_max()
    }

    #[test]
    fn fits_only_request_rows_by_number_and_sums() {
        let points = toys::normal(6000, 3, 0);
        let scaling = (vec![0.1, -0.2, 0.0], vec![1.1, 0.9, 2.0]);
        let here = Scaled { raw: &points, scaling: Some(scaling.clone()) };
        let here = here.block(0..6000, &mut Vec::new()).unwrap().into_owned();
        let mut elsewhere = Machines::new(&points, Some(scaling));
        let labels = Labels::new(elsewhere.labels.iter().copied()).unwrap();
        for (kernel, target) in
            [("rbf", Target::Fidelity(0.8)), ("linear", Target::Support(2)), ("laplacian", Target::Support(12))]
        {
            let kernel = kernel::build(&Spec::new(kernel), &here, 0).unwrap();
            for name in ["landmarks", "greedy", "expansion", "discriminant"] {
                elsewhere.whole = (name == "discriminant").then(|| here.clone());
                let solve = |rows: &dyn Rows| {
                    let mut task = Task::new(&kernel, rows, 2, &());
                    (task.target, task.labels) = (Some(target), Some(&labels));
                    let solution = method::build(&Spec::new(name)).unwrap().fit(&task).unwrap();
                    (solution.support.points(rows).unwrap(), solution.expansion)
                };
                let ((support, found), (expected, whole)) = (solve(&elsewhere), solve(&here));
                assert_eq!(support, expected, "{name} {kernel:?}");
                assert!(near(&found.coefficients, &whole.coefficients), "{name} {kernel:?}");
                assert!((found.captured / whole.captured - 1.0).abs() < 1e-9, "{name} {kernel:?}");
            }
        }
        for rule in ["rbf,gamma=scale", "rbf,gamma=median", "polynomial,degree=2,gamma=scale"] {
            let spec: Spec = rule.parse().unwrap();
            let gamma = |rows: &dyn Rows| {
                let bandwidth = kernel::Bandwidth { rows: Some(rows), seed: 5 };
                let kernel = kernel::build_for(&spec, &bandwidth, 3).unwrap();
                let trace = kernel_matrix::trace(&kernel, Weighted::of(rows), &()).unwrap();
                (kernel.spec().fields["gamma"].as_f64().unwrap(), trace)
            };
            let (found, expected) = (gamma(&elsewhere), gamma(&here));
            assert!((found.0 / expected.0 - 1.0).abs() < 1e-12 && (found.1 / expected.1 - 1.0).abs() < 1e-12, "{rule}");
        }
        let names: Vec<String> = elsewhere.names.into_inner().unwrap().into_iter().collect();
        assert_eq!(names, [CLASS_SUMS, COVARIANCE, DIFFERING, POWER, ABOUT, TRACE]);
    }

    #[test]
    fn covariances_are_the_same_in_32_bits_and_whitened() {
        let points = toys::normal(3000, 4, 1);
        let elsewhere = Machines::new(&points, None);
        let support = points.select(&(0..120).collect::<Vec<_>>());
        let kernel = kernel::build(&"rbf,gamma=0.3".parse().unwrap(), &points, 0).unwrap();
        let plain = Skeleton::new(&kernel, &support, &()).unwrap();
        for (whitens, single, near) in [(false, 0, 1e-6), (false, usize::MAX, 1e-12), (true, 0, 1e-9)] {
            let skeleton = Skeleton { whitens, ..plain.clone() };
            let sums = |rows: &dyn Rows| skeleton.sums(Weighted::of(rows), single, &()).unwrap();
            let (found, expected) = (sums(&elsewhere), sums(&points));
            assert_eq!(single == 0 && !whitens, skeleton.single_is_enough() && single == 0 && !whitens);
            assert!(
                (&found.squares - &expected.squares).norm_max() <= near * expected.squares.norm_max(),
                "{whitens} {single}"
            );
            assert!((found.trace, found.rows) == (expected.trace, expected.rows));
        }
    }

    #[test]
    fn mismatched_passes_and_sums_are_rejected() {
        let points = toys::normal(50, 3, 0);
        let part = Part { rows: &points, first: 0, labels: None };
        let pass = |parcel: Parcel| parcel.with("scaled", false).to_bytes();
        let scatter = pass(Parcel::new(ABOUT, vec![0.0; 3]));
        let sum = run(&scatter, part).unwrap();
        assert_eq!(levels(&sum).unwrap(), [Instructions::best().level().name()]);
        let other = run(&pass(Parcel::new(POWER, vec![0.0, 1.0]).with("power", 2)), part).unwrap();
        assert!(merge(&scatter, &[&sum, &sum]).is_ok());
        assert!(merge(&scatter, &[&sum, &other]).is_err() && merge(&scatter, &[]).is_err());
        assert!(run(&pass(Parcel::new("nonsense", Vec::new())), part).is_err());
        assert!(run(&pass(Parcel::new(COVARIANCE, vec![0.0])), part).is_err());
        let wide = Parcel::new(ABOUT, vec![0.0; 8]).with("scaled", true).with("columns", 4).to_bytes();
        assert_eq!(run(&wide, part).unwrap_err(), Error::Width { found: 3, expected: 4 });
    }

    /// Found by `fuzz/run parcel`: rows of another width reached the tiles, which panicked.
    #[test]
    fn rows_of_another_width_are_rejected() {
        let (points, narrow) = (toys::normal(50, 3, 0), toys::normal(50, 2, 0));
        let kernel = kernel::build(&"rbf,gamma=0.3".parse().unwrap(), &points, 0).unwrap();
        let numbers = [&[0.0], points.select(&[0, 1, 2]).values()].concat();
        let covariance = kernel::with_kernel(Parcel::new(COVARIANCE, numbers), &kernel).with("m", 3).with("d", 3);
        for pass in [covariance, Parcel::new(ABOUT, vec![0.0; 3])] {
            let pass = pass.with("scaled", false).to_bytes();
            let part = |rows| Part { rows, first: 0, labels: None };
            assert!(run(&pass, part(&points)).is_ok());
            assert_eq!(run(&pass, part(&narrow)).unwrap_err(), Error::Width { found: 2, expected: 3 });
        }
        let endless = Parcel::new(EXTENT, Vec::new()).with("d", 1_u64 << 62).with("scaled", false).to_bytes();
        assert!(merge(&endless, &[&endless, &endless]).is_err());
    }
}
