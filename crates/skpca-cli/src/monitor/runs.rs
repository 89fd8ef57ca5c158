//! Runs of consecutive alarms, and the inputs that contribute most to them.

use skpca::{Model, Points};

use super::series::Reading;
use crate::lags::Lags;

/// Number of alarms at the start of a run that are explained.
const EXPLAINED: usize = 100;
/// Maximum number of runs that are listed: the longest, and among those of equal length the ones with the highest
/// scores.
pub const KEPT: usize = 200;
/// Maximum number of inputs that are named for a run.
const NAMED: usize = 3;
/// Minimum share of the contributions for naming an input, except the first.
const MIN_SHARE: f64 = 0.1;

/// The number and the time of a row.
#[derive(Clone, Debug, Default)]
pub struct Place {
    pub row: usize,
    pub time: String,
}

impl Place {
    fn of(reading: &Reading) -> Place {
        Place { row: reading.row, time: reading.time.to_string() }
    }
}

/// An input and its contribution to a run.
#[derive(Clone, Debug)]
pub struct Lead {
    pub input: usize,
    /// Share of all contributions in the run.
    pub share: f64,
    /// Its value in the row with the highest explained score.
    pub value: f64,
    /// The expected value in that row.
    pub expected: f64,
}

/// Consecutive alarms.
#[derive(Clone, Debug)]
pub struct AlarmRun {
    pub first: Place,
    pub last: Place,
    pub rows: usize,
    /// The highest score.
    pub score: f64,
    /// The lowest p-value.
    pub p_value: f64,
    /// The inputs with the largest contributions, the largest first.
    pub leads: Vec<Lead>,
}

/// The explanation of an alarm: per input, its value, its contribution and its expected value.
pub struct Explained {
    pub values: Vec<f64>,
    pub contributions: Vec<f64>,
    pub expected: Vec<f64>,
}

/// The current run.
struct Open {
    run: AlarmRun,
    contributions: Vec<f64>,
    /// The highest score that was explained, with the values and expected values of its row.
    peak: Option<(f64, Vec<f64>, Vec<f64>)>,
}

/// All runs so far, in constant memory.
#[derive(Default)]
pub struct Runs {
    open: Option<Open>,
    /// Some of the runs, in any order.
    kept: Vec<AlarmRun>,
    /// Number of runs.
    pub count: usize,
    /// Number of alarms.
    pub alarms: usize,
    /// Contribution shares of each input, summed over all explained alarms.
    pub shares: Vec<f64>,
    /// Number of explained alarms.
    pub explained: usize,
}

impl Runs {
    /// Returns the rows of a block whose alarms are to be explained, given which of its rows are novel.
    pub fn to_explain(&self, novel: &[bool]) -> Vec<usize> {
        let mut length = self.open.as_ref().map_or(0, |open| open.run.rows);
        let mut rows = Vec::new();
        for (row, novel) in novel.iter().enumerate() {
            length = if *novel { length + 1 } else { 0 };
            if (1..=EXPLAINED).contains(&length) {
                rows.push(row);
            }
        }
        rows
    }

    pub fn push(&mut self, reading: &Reading, explained: Option<&Explained>) {
        if !reading.novel {
            return self.close();
        }
        self.alarms += 1;
        let open = self.open.get_or_insert_with(|| Open::new(reading));
        open.run.last = Place::of(reading);
        open.run.rows += 1;
        open.run.score = open.run.score.max(reading.score);
        open.run.p_value = open.run.p_value.min(reading.p_value);
        if let Some(explained) = explained {
            let share = open.explain(reading.score, explained);
            self.shares.resize(share.len(), 0.0);
            self.shares.iter_mut().zip(share).for_each(|(sum, share)| *sum += share);
            self.explained += 1;
        }
    }

    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        self.count += 1;
        self.kept.push(open.closed());
        if self.kept.len() >= 2 * KEPT {
            self.thin();
        }
    }

    /// Keeps only the [`KEPT`] runs to list.
    fn thin(&mut self) {
        self.kept.sort_by(|a, b| b.rows.cmp(&a.rows).then(b.score.total_cmp(&a.score)));
        self.kept.truncate(KEPT);
    }

    /// Ends the last run and returns the kept runs in the order of their rows.
    pub fn end(&mut self) -> Vec<AlarmRun> {
        self.close();
        self.thin();
        let mut kept = std::mem::take(&mut self.kept);
        kept.sort_by_key(|run| run.first.row);
        kept
    }
}

impl Open {
    fn new(reading: &Reading) -> Open {
        let (first, last) = (Place::of(reading), Place::of(reading));
        let run = AlarmRun { first, last, rows: 0, score: reading.score, p_value: reading.p_value, leads: Vec::new() };
        Open { run, contributions: Vec::new(), peak: None }
    }

    /// Adds the contributions and returns them as shares.
    fn explain(&mut self, score: f64, explained: &Explained) -> Vec<f64> {
        self.contributions.resize(explained.contributions.len(), 0.0);
        self.contributions.iter_mut().zip(&explained.contributions).for_each(|(sum, c)| *sum += c.max(0.0));
        if self.peak.as_ref().is_none_or(|(highest, ..)| score > *highest) {
            self.peak = Some((score, explained.values.clone(), explained.expected.clone()));
        }
        shares(&explained.contributions)
    }

    fn closed(mut self) -> AlarmRun {
        let share = shares(&self.contributions);
        let Some((_, values, expected)) = &self.peak else { return self.run };
        let mut order: Vec<usize> = (0..share.len()).collect();
        order.sort_by(|a, b| share[*b].total_cmp(&share[*a]));
        let lead = |input| Lead { input, share: share[input], value: values[input], expected: expected[input] };
        let worth = |(place, input): &(usize, usize)| *place == 0 || share[*input] >= MIN_SHARE;
        self.run.leads =
            order.into_iter().take(NAMED).enumerate().filter(worth).map(|(_, input)| lead(input)).collect();
        self.run
    }
}

/// The positive contributions as shares of their sum; 0 for the others.
fn shares(contributions: &[f64]) -> Vec<f64> {
    let total: f64 = contributions.iter().map(|c| c.max(0.0)).sum();
    contributions.iter().map(|c| if total > 0.0 { c.max(0.0) / total } else { 0.0 }).collect()
}

/// Explains these rows of a block, whose values are in the order of the model's columns.
pub fn explain(model: &Model, lags: Option<&Lags>, values: &[f64], rows: &[usize]) -> skpca::Result<Vec<Explained>> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let d = model.parts().columns.d();
    let chosen: Vec<f64> = rows.iter().flat_map(|row| &values[row * d..(row + 1) * d]).copied().collect();
    let found = model.contributions(&Points::new(d, chosen.as_slice())?)?;
    let inputs = lags.map_or(d, |lags| lags.inputs().len());
    let of = |i: usize| {
        let own: Vec<f64> = found.contributions.row(i).iter().copied().collect();
        Explained {
            values: chosen[i * d..i * d + inputs].to_vec(),
            contributions: if let Some(lags) = lags { lags.sums(&own) } else { own },
            expected: found.expected.row(i).iter().take(inputs).copied().collect(),
        }
    };
    Ok((0..rows.len()).map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(row: usize, score: f64) -> Reading<'static> {
        Reading { row, time: "", score, p_value: 0.1 / score, novel: score > 1.0, t2: None }
    }

    fn explained(contributions: [f64; 3]) -> Explained {
        Explained { values: vec![1.0, 2.0, 3.0], contributions: contributions.to_vec(), expected: vec![0.0; 3] }
    }

    #[test]
    fn a_run_ends_with_a_normal_row_or_with_the_table() {
        let mut runs = Runs::default();
        for (row, score) in [0.5, 2.0, 5.0, 0.5, 0.5, 3.0].into_iter().enumerate() {
            runs.push(&reading(row, score), (score > 1.0).then_some(&explained([score, 1.0, 0.0])));
        }
        let kept = runs.end();
        let found: Vec<_> = kept.iter().map(|run| (run.first.row, run.last.row, run.rows, run.score)).collect();
        assert_eq!(found, [(1, 2, 2, 5.0), (5, 5, 1, 3.0)]);
        assert_eq!((runs.count, runs.alarms, runs.explained), (2, 3, 3));
        let leads: Vec<_> = kept[0].leads.iter().map(|lead| (lead.input, lead.share, lead.value)).collect();
        assert_eq!(leads, [(0, 7.0 / 9.0, 1.0), (1, 2.0 / 9.0, 2.0)]);
        assert_eq!(kept[0].p_value, 0.02);
    }

    #[test]
    fn the_longest_runs_are_kept_and_all_are_counted() {
        let mut runs = Runs::default();
        let mut row = 0;
        for run in 0..1000 {
            let length = if run % 100 == 50 { 3 } else { 1 };
            for score in std::iter::repeat_n(2.0 + run as f64, length).chain([0.0]) {
                runs.push(&reading(row, score), None);
                row += 1;
            }
        }
        let kept = runs.end();
        assert_eq!((runs.count, runs.alarms, kept.len()), (1000, 1020, KEPT));
        assert_eq!(kept.iter().filter(|run| run.rows == 3).count(), 10);
        assert!(kept.windows(2).all(|pair| pair[0].last.row < pair[1].first.row));
        let lowest = kept.iter().filter(|run| run.rows == 1).map(|run| run.score).fold(f64::INFINITY, f64::min);
        assert_eq!(lowest, 2.0 + (1000 - KEPT + 9 - 1) as f64);
    }

    #[test]
    fn long_runs_are_explained_by_their_first_alarms() {
        let mut runs = Runs::default();
        assert_eq!(runs.to_explain(&[true, false, true, true]), [0, 2, 3]);
        (0..EXPLAINED - 1).for_each(|row| runs.push(&reading(row, 2.0), None));
        assert_eq!(runs.to_explain(&[true, true, false, true]), [0, 3]);
    }
}
