//! Lags: rows in time order together with the rows before them (dynamic kernel PCA).
//!
//! ```text
//! a, b  ──►  a, b, a (t-1), b (t-1), a (t-2), b (t-2)
//! ```
//!
//! A model with lags is known by the names of its columns, which those of `KernelNovelty(lags=2)` in Python share. The
//! very first row stands in for the rows before it (docs/decisions/0084).

use skpca::Model;

/// Adds lags to rows that arrive block by block.
#[derive(Clone)]
pub struct Lags {
    count: usize,
    /// Names of the columns without lags.
    inputs: Vec<String>,
    /// The last `count` usable rows, the latest first.
    recent: Vec<f64>,
}

impl Lags {
    pub fn new(count: usize, inputs: &[String]) -> Lags {
        Lags { count, inputs: inputs.to_vec(), recent: Vec::new() }
    }

    /// The lags that a model was fitted with, if there are any.
    pub fn of(model: &Model) -> Option<Lags> {
        let names = model.parts().columns.names.as_ref()?;
        let inputs = names.iter().position(|name| name.ends_with(" (t-1)")).filter(|inputs| *inputs > 0)?;
        let lags = Lags::new(names.len() / inputs - 1, &names[..inputs]);
        (lags.names() == *names).then_some(lags)
    }

    /// Names of the columns without lags.
    pub fn inputs(&self) -> &[String] {
        &self.inputs
    }

    /// Names of the columns with lags.
    pub fn names(&self) -> Vec<String> {
        let lagged = |lag: usize| self.inputs.iter().map(move |name| format!("{name} (t-{lag})"));
        self.inputs.iter().cloned().chain((1..=self.count).flat_map(lagged)).collect()
    }

    /// Returns the next rows with those before them. A row with numbers that are not finite is no predecessor.
    pub fn add(&mut self, rows: &[f64]) -> Vec<f64> {
        let width = self.inputs.len();
        let mut wide = Vec::with_capacity(rows.len() * (self.count + 1));
        for row in rows.chunks_exact(width) {
            let usable = row.iter().all(|value| value.is_finite());
            if self.recent.is_empty() && usable {
                self.recent = row.repeat(self.count);
            }
            wide.extend(row);
            if self.recent.is_empty() {
                wide.extend(row.repeat(self.count));
            }
            wide.extend(&self.recent);
            if usable {
                self.recent.truncate((self.count - 1) * width);
                self.recent.splice(0..0, row.iter().copied());
            }
        }
        wide
    }

    /// Sums contributions over the lags, so that there is one per input.
    pub fn sums(&self, contributions: &[f64]) -> Vec<f64> {
        let inputs = self.inputs.len();
        (0..inputs).map(|input| contributions.iter().skip(input).step_by(inputs).sum()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lags() -> Lags {
        Lags::new(2, &["a".to_string(), "b".to_string()])
    }

    #[test]
    fn blocks_do_not_matter_and_unusable_rows_are_no_predecessors() {
        let rows = [1.0, 2.0, 3.0, 4.0, f64::NAN, 6.0, 7.0, 8.0, 9.0, 10.0];
        let expected = [
            [1.0, 2.0, 1.0, 2.0, 1.0, 2.0],
            [3.0, 4.0, 1.0, 2.0, 1.0, 2.0],
            [f64::NAN, 6.0, 3.0, 4.0, 1.0, 2.0],
            [7.0, 8.0, 3.0, 4.0, 1.0, 2.0],
            [9.0, 10.0, 7.0, 8.0, 3.0, 4.0],
        ];
        let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        for size in 1..=5 {
            let mut lags = lags();
            let found: Vec<f64> = rows.chunks(2 * size).flat_map(|block| lags.add(block)).collect();
            assert_eq!(bits(&found), bits(expected.as_flattened()), "{size}");
        }
        assert_eq!(lags().add(&[f64::NAN, 1.0, 2.0, 3.0])[6..], [2.0, 3.0, 2.0, 3.0, 2.0, 3.0]);
    }

    #[test]
    fn names_and_sums() {
        assert_eq!(lags().names(), ["a", "b", "a (t-1)", "b (t-1)", "a (t-2)", "b (t-2)"]);
        assert_eq!(lags().sums(&[1.0, 2.0, 10.0, 20.0, 100.0, 200.0]), [111.0, 222.0]);
    }
}
