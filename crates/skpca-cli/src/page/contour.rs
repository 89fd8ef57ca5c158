//! Contour lines of a function on a grid: marching squares.

/// Values at the grid points of `xs` and `ys`, with x varying fastest.
pub struct Grid {
    pub xs: Vec<f64>,
    pub ys: Vec<f64>,
    pub values: Vec<f64>,
}

/// `count` evenly spaced numbers from `low` to `high`.
pub fn steps(low: f64, high: f64, count: usize) -> Vec<f64> {
    (0..count).map(|i| low + (high - low) * i as f64 / (count - 1) as f64).collect()
}

impl Grid {
    /// All grid points, in the order of the values.
    pub fn crossings(xs: &[f64], ys: &[f64]) -> Vec<f64> {
        ys.iter().flat_map(|y| xs.iter().flat_map(move |x| [*x, *y])).collect()
    }

    /// `count` evenly spaced levels between the smallest and the largest value.
    pub fn levels(&self, count: usize) -> Vec<f64> {
        let low = self.values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = self.values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (1..=count).map(|i| low + (high - low) * i as f64 / (count + 1) as f64).collect()
    }

    /// Segments of the contour line at `level`.
    pub fn line(&self, level: f64) -> Vec<[(f64, f64); 2]> {
        let columns = self.xs.len();
        let mut pieces = Vec::new();
        for j in 0..self.ys.len() - 1 {
            for i in 0..columns - 1 {
                let corner = |di: usize, dj: usize| {
                    (self.xs[i + di], self.ys[j + dj], self.values[(j + dj) * columns + i + di] - level)
                };
                // The corners in order; the line crosses the sides whose ends differ in sign.
                let corners = [corner(0, 0), corner(1, 0), corner(1, 1), corner(0, 1)];
                let crossed: Vec<(f64, f64)> = (0..4)
                    .filter_map(|side| {
                        let (a, b) = (corners[side], corners[(side + 1) % 4]);
                        let share = a.2 / (a.2 - b.2);
                        ((a.2 < 0.0) != (b.2 < 0.0)).then_some((a.0 + share * (b.0 - a.0), a.1 + share * (b.1 - a.1)))
                    })
                    .collect();
                match crossed[..] {
                    [a, b] => pieces.push([a, b]),
                    // A saddle: the value in the middle decides which corners are connected.
                    [a, b, c, d] => {
                        let middle = corners.iter().map(|corner| corner.2).sum::<f64>();
                        if (middle < 0.0) == (corners[0].2 < 0.0) {
                            pieces.extend([[a, b], [c, d]])
                        } else {
                            pieces.extend([[a, d], [b, c]])
                        }
                    }
                    _ => {}
                }
            }
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contour_of_a_paraboloid_is_a_circle() {
        let xs = steps(-1.0, 1.0, 41);
        let values = Grid::crossings(&xs, &xs).chunks(2).map(|p| p[0] * p[0] + p[1] * p[1]).collect();
        let grid = Grid { xs: xs.clone(), ys: xs, values };
        let pieces = grid.line(0.5);
        assert!(pieces.len() > 40);
        let (mut length, radius) = (0.0, 0.5f64.sqrt());
        for [a, b] in &pieces {
            assert!((a.0.hypot(a.1) - radius).abs() < 2e-3, "{a:?}");
            length += (a.0 - b.0).hypot(a.1 - b.1);
        }
        assert!((length - std::f64::consts::TAU * radius).abs() < 0.01, "{length}");
        assert!(grid.line(7.0).is_empty());
        assert_eq!(grid.levels(3).len(), 3);
    }

    #[test]
    fn a_saddle_is_two_lines_that_do_not_meet() {
        let grid = Grid { xs: vec![0.0, 1.0], ys: vec![0.0, 1.0], values: vec![1.0, -1.0, -0.5, 1.0] };
        assert_eq!(grid.line(0.0).len(), 2);
    }
}
