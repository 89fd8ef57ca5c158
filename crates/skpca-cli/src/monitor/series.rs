//! A chart of any number of rows in constant memory: consecutive rows share a column, with about one column per pixel.
//!
//! ```text
//! columns of w rows: 1 2 3 … 1200   one more: pairs are merged, columns of 2w rows: 1 2 … 600, 601 …
//! ```
//!
//! A column keeps its lowest and highest value, and the lowest, the highest and the number of its alarms, so that no
//! alarm is lost.

/// Maximum number of columns. There are at least half as many once there are that many rows.
pub const COLUMNS: usize = 1200;
/// Number of histogram bins of the p-values, of equal width.
pub const CLASSES: usize = 20;

/// A row and its results.
pub struct Reading<'a> {
    /// Its number, from 0, among those that could be used.
    pub row: usize,
    pub time: &'a str,
    pub score: f64,
    pub p_value: f64,
    pub novel: bool,
    /// Hotelling's T², if the model has it.
    pub t2: Option<f64>,
}

/// The minimum and maximum of some numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    pub low: f64,
    pub high: f64,
}

impl Range {
    pub const EMPTY: Range = Range { low: f64::INFINITY, high: f64::NEG_INFINITY };

    pub fn of(value: f64) -> Range {
        Range { low: value, high: value }
    }

    pub fn with(self, other: Range) -> Range {
        Range { low: self.low.min(other.low), high: self.high.max(other.high) }
    }
}

/// A group of consecutive rows.
#[derive(Clone, Debug)]
pub struct Column {
    /// The number of its first row.
    pub first: usize,
    /// The time of its first row.
    pub time: String,
    pub rows: usize,
    pub score: Range,
    pub t2: Range,
    pub alarms: usize,
    /// The scores of its alarms.
    pub alarmed: Range,
    /// Number of rows above the limit of T².
    pub beyond: usize,
    /// The T² of these rows.
    pub t2_beyond: Range,
    /// Histogram of the p-values.
    pub p_values: [u32; CLASSES],
}

impl Column {
    fn new(reading: &Reading, t2_limit: Option<f64>) -> Column {
        let (score, t2) = (Range::of(reading.score), reading.t2.map_or(Range::EMPTY, Range::of));
        let beyond = reading.t2.zip(t2_limit).is_some_and(|(t2, limit)| t2 > limit);
        let mut p_values = [0; CLASSES];
        // Bins include their upper end: p ≤ 0.05 is the first.
        p_values[((reading.p_value * CLASSES as f64).ceil() as usize).clamp(1, CLASSES) - 1] = 1;
        Column {
            first: reading.row,
            time: reading.time.to_string(),
            rows: 1,
            score,
            t2,
            alarms: usize::from(reading.novel),
            alarmed: if reading.novel { score } else { Range::EMPTY },
            beyond: usize::from(beyond),
            t2_beyond: if beyond { t2 } else { Range::EMPTY },
            p_values,
        }
    }

    /// Merges the next column into this one.
    pub fn join(&mut self, next: &Column) {
        self.rows += next.rows;
        self.score = self.score.with(next.score);
        self.t2 = self.t2.with(next.t2);
        self.alarms += next.alarms;
        self.alarmed = self.alarmed.with(next.alarmed);
        self.beyond += next.beyond;
        self.t2_beyond = self.t2_beyond.with(next.t2_beyond);
        self.p_values.iter_mut().zip(next.p_values).for_each(|(count, more)| *count += more);
    }

    /// The quantile of the column's p-values, interpolated within a bin.
    pub fn p_quantile(&self, share: f64) -> f64 {
        let mut wanted = share * self.rows as f64;
        for (class, count) in self.p_values.into_iter().map(f64::from).enumerate() {
            if count >= wanted && count > 0.0 {
                return (class as f64 + wanted / count) / CLASSES as f64;
            }
            wanted -= count;
        }
        1.0
    }
}

/// All rows so far.
pub struct Series {
    pub columns: Vec<Column>,
    pub rows: usize,
    /// Number of rows per column; the last may have fewer.
    width: usize,
    /// The limit of T².
    t2_limit: Option<f64>,
}

impl Series {
    pub fn new(t2_limit: Option<f64>) -> Series {
        Series { columns: Vec::with_capacity(COLUMNS), rows: 0, width: 1, t2_limit }
    }

    pub fn push(&mut self, reading: &Reading) {
        let row = Column::new(reading, self.t2_limit);
        self.rows += 1;
        match self.columns.last_mut().filter(|column| column.rows < self.width) {
            Some(column) => column.join(&row),
            None => {
                if self.columns.len() == COLUMNS {
                    self.halve();
                }
                self.columns.push(row);
            }
        }
    }

    fn halve(&mut self) {
        self.columns = together(&self.columns, 2);
        self.width *= 2;
    }

    /// Merges the columns into at most `most` windows of equal length with at least `rows` rows each; the last may have
    /// fewer.
    pub fn windows(&self, most: usize, rows: usize) -> Vec<Column> {
        let many = self.columns.len().div_ceil(most).max(rows.div_ceil(self.width));
        together(&self.columns, many)
    }
}

/// Merges every `many` consecutive columns into one.
fn together(columns: &[Column], many: usize) -> Vec<Column> {
    let one = |some: &[Column]| {
        let (first, others) = some.split_first().expect("chunks are not empty");
        others.iter().fold(first.clone(), |mut sum, column| {
            sum.join(column);
            sum
        })
    };
    columns.chunks(many).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(row: usize, score: f64) -> Reading<'static> {
        Reading { row, time: "", score, p_value: 1.0 / (1.0 + score), novel: score > 9.0, t2: Some(score / 2.0) }
    }

    #[test]
    fn no_alarm_is_lost_however_many_rows_there_are() {
        for rows in [1, 7, COLUMNS, COLUMNS + 1, 100_000] {
            let mut series = Series::new(Some(4.75));
            let score = |row: usize| ((row * 7919) % 1009) as f64 / 100.0;
            (0..rows).for_each(|row| series.push(&reading(row, score(row))));
            assert!(series.columns.len() <= COLUMNS && (rows < COLUMNS || series.columns.len() >= COLUMNS / 2));
            assert_eq!(series.columns.iter().map(|column| column.rows).sum::<usize>(), rows);
            for column in &series.columns {
                let own: Vec<f64> = (column.first..column.first + column.rows).map(score).collect();
                let ends = |values: &[f64]| values.iter().copied().map(Range::of).fold(Range::EMPTY, Range::with);
                let alarms: Vec<f64> = own.iter().copied().filter(|score| *score > 9.0).collect();
                assert_eq!((column.score, column.alarmed), (ends(&own), ends(&alarms)));
                assert_eq!(column.alarms, alarms.len());
                assert_eq!(column.beyond, own.iter().filter(|score| **score > 9.5).count());
                assert_eq!(column.p_values.iter().sum::<u32>() as usize, column.rows);
            }
        }
    }

    #[test]
    fn quantiles_of_even_p_values_are_their_shares() {
        let mut series = Series::new(None);
        for row in 0..2000 {
            let p_value = (row as f64 * 0.618_033_988_749_895).fract();
            series.push(&Reading { p_value, ..reading(row, 0.0) });
        }
        let all = together(&series.columns, COLUMNS).remove(0);
        for share in [0.25, 0.5, 0.75] {
            assert!((all.p_quantile(share) - share).abs() < 0.002, "{share}: {}", all.p_quantile(share));
        }
        let windows = series.windows(40, 100);
        assert!(windows.len() <= 20 && windows[..windows.len() - 1].iter().all(|window| window.rows >= 100));
    }
}
