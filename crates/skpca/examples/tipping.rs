//! Figures 1–3 of Tipping (2001), drawn anew: three clusters, kernel PCA over all points and over a few.
//!
//! ```text
//! cargo run --release -p skpca --example tipping [-- tipping.svg]
//! ```
//!
//! Kernel `exp(−‖x − x′‖²/r²)` with r = 0.25, σ = 0.25, features not centred. The sparse components are those of the
//! paper, the principal axes of the fitted covariance: no more than points were kept.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "an example has a clock and writes a file")]

use std::error::Error;
use std::fmt::Write;
use std::time::Instant;

use skpca::{Fit, Model, Points, Precision, Scaling, toys};

const FULL: &str = "exact";
const SPARSE: &str = "likelihood,noise=0.0625,refit=false";
const COMPONENTS: usize = 9;
/// Data sets over which kept points are counted.
const SEEDS: u64 = 100;
/// Nodes of the grid on each side.
const GRID: usize = 101;
/// Contours in a panel.
const LEVELS: usize = 10;
/// Between the data and the frame, in units of the data.
const MARGIN: f64 = 0.3;
/// Between panels, with room for a title, in pixels.
const GAP: f64 = 26.0;
/// Sides of the panels of Figures 1 and 2, and of Figure 3: as wide as three of them.
const SMALL: f64 = 170.0;
const LARGE: f64 = 3.0 * SMALL + 2.0 * GAP;

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).unwrap_or("tipping.svg".into());
    // Nine points are kept of these, as in the paper.
    let data = toys::clusters(4);
    let (full, sparse) = (fit(&data, FULL)?, fit(&data, SPARSE)?);
    std::fs::write(&file, draw(&data, &full, &sparse)?)?;
    println!("{file}: {} components of {} points, {} of {}", full.q(), full.m(), sparse.q(), sparse.m());
    Ok(count()?)
}

fn fit(data: &Points, method: &str) -> skpca::Result<Model> {
    let (method, kernel) = (method.parse()?, "rbf,gamma=16".parse()?);
    let (components, center) = (Some(COMPONENTS), Some(false));
    Fit { method, kernel, components, center, scaling: Scaling::None, ..Fit::default() }.run(data, None, &())
}

/// Prints how many points maximum likelihood keeps.
fn count() -> skpca::Result<()> {
    let start = Instant::now();
    let models = (0..SEEDS).map(|seed| fit(&toys::clusters(seed), SPARSE)).collect::<skpca::Result<Vec<_>>>()?;
    let seconds = start.elapsed().as_secs_f64();
    let mut kept: Vec<usize> = models.iter().map(Model::m).collect();
    kept.sort();
    let converged = models.iter().filter(|model| model.parts().report.converged).count();
    let mean = kept.iter().sum::<usize>() as f64 / SEEDS as f64;
    let squares: f64 = kept.iter().map(|&m| (m as f64 - mean).powi(2)).sum();
    let deviation = (squares / (SEEDS - 1) as f64).sqrt();
    println!("\npoints kept of 90 at σ² = 0.0625, {SEEDS} seeds: {mean:.2} ± {deviation:.2} (the paper shows 9)");
    for m in kept[0]..=kept[kept.len() - 1] {
        let times = kept.iter().filter(|&&kept| kept == m).count();
        println!("{m:>4} {times:>4}  {}", "#".repeat(times));
    }
    println!("{converged} of {SEEDS} converged, {seconds:.2} s in all");
    Ok(())
}

fn draw(data: &Points, full: &Model, sparse: &Model) -> Result<String, Box<dyn Error>> {
    let kept = sparse.parts().rows.as_deref().unwrap_or(&[]);
    let mut sheet = Sheet { svg: String::new(), view: View::around(data), data };
    sheet.components("Figure 1: kernel PCA", full, &[], GAP)?;
    let title = format!("Figure 2: sparse kernel PCA, {} points kept", kept.len());
    sheet.components(&title, sparse, kept, LARGE + 2.0 * GAP)?;
    sheet.errors([(full, &[]), (sparse, kept)])?;
    let (width, height) = (2.0 * LARGE + 3.0 * GAP, 2.0 * LARGE + 5.5 * GAP);
    let size = format!("viewBox='0 0 {width} {height}' width='{width}' height='{height}'");
    let font = "font-family='sans-serif' font-size='11'";
    let paper = "<rect width='100%' height='100%' fill='white'/>";
    Ok(format!("<svg xmlns='http://www.w3.org/2000/svg' {size} {font}>\n{paper}\n{}</svg>\n", sheet.svg))
}

/// A square of the plane.
struct View {
    left: f64,
    bottom: f64,
    side: f64,
}

impl View {
    fn around(data: &Points) -> View {
        let range = |column: usize| bounds(data.rows().map(|row| row[column]));
        let ((left, right), (bottom, top)) = (range(0), range(1));
        let side = (right - left).max(top - bottom) + 2.0 * MARGIN;
        View { left: (left + right - side) / 2.0, bottom: (bottom + top - side) / 2.0, side }
    }

    /// Where a point is in a panel.
    fn pixel(&self, point: &[f64], size: f64) -> (f64, f64) {
        let scale = size / self.side;
        ((point[0] - self.left) * scale, size - (point[1] - self.bottom) * scale)
    }

    /// The grid's nodes, row after row from the bottom.
    fn grid(&self) -> skpca::Result<Points<'static>> {
        let at = |start: f64, i: usize| start + self.side * i as f64 / (GRID - 1) as f64;
        let node = |i: usize| [at(self.left, i % GRID), at(self.bottom, i / GRID)];
        Points::new(2, (0..GRID * GRID).flat_map(node).collect::<Vec<_>>())
    }
}

/// What has been drawn, and what every panel shows.
struct Sheet<'a> {
    svg: String,
    view: View,
    data: &'a Points<'a>,
}

impl Sheet<'_> {
    /// Figures 1 and 2: a panel for every component.
    fn components(&mut self, title: &str, model: &Model, kept: &[usize], left: f64) -> Result<(), Box<dyn Error>> {
        self.heading(title, left, GAP)?;
        let features = model.transform(&self.view.grid()?, Precision::Double)?;
        for (k, variance) in model.parts().variances.iter().enumerate() {
            let values: Vec<f64> = features.iter().skip(k).step_by(model.q()).copied().collect();
            let (column, row) = ((k % 3) as f64, (k / 3) as f64);
            let place = (left + column * (SMALL + GAP), 2.0 * GAP + row * (SMALL + GAP), SMALL);
            self.panel(&format!("{}: variance {variance:.4}", k + 1), &values, kept, place)?;
        }
        Ok(())
    }

    /// Figure 3: a panel for every model.
    fn errors(&mut self, models: [(&Model, &[usize]); 2]) -> Result<(), Box<dyn Error>> {
        let View { left, bottom, side } = self.view;
        let (right, top) = (left + side, bottom + side);
        let area = format!("x from {left:.2} to {right:.2}, y from {bottom:.2} to {top:.2} in every panel");
        self.heading(&format!("Figure 3: reconstruction error; {area}"), GAP, LARGE + 3.5 * GAP)?;
        for (i, (model, kept)) in models.into_iter().enumerate() {
            let values = model.score(&self.view.grid()?, Precision::Double)?;
            let (low, high) = bounds(values.iter().copied());
            let title = format!("{} components of {} points: from {low:.3} to {high:.3}", model.q(), model.m());
            let place = (GAP + i as f64 * (LARGE + GAP), LARGE + 4.5 * GAP, LARGE);
            self.panel(&title, &values, kept, place)?;
        }
        Ok(())
    }

    fn heading(&mut self, text: &str, x: f64, y: f64) -> std::fmt::Result {
        writeln!(self.svg, "<text x='{x}' y='{y}' font-size='15' font-weight='bold'>{text}</text>")
    }

    /// Contours of `values` on the grid, the data, and circles around kept points; `place` is left, top and side.
    fn panel(&mut self, title: &str, values: &[f64], kept: &[usize], place: (f64, f64, f64)) -> std::fmt::Result {
        let (left, top, size) = place;
        let circle = |row: &[f64], style: &str| {
            let (x, y) = self.view.pixel(row, size);
            format!("<circle cx='{x:.2}' cy='{y:.2}' {style}/>\n")
        };
        let svg = &mut self.svg;
        writeln!(svg, "<g transform='translate({left} {top})' fill='none' stroke-linecap='round'>")?;
        writeln!(svg, "<text y='-5' fill='black'>{title}</text>")?;
        self.data.rows().for_each(|row| svg.push_str(&circle(row, "r='1.5' fill='#888'")));
        let (low, high) = bounds(values.iter().copied());
        for level in 0..LEVELS {
            let share = (level as f64 + 0.5) / LEVELS as f64;
            let path = contour(values, low + share * (high - low), size)?;
            let (red, blue) = (255.0 * share, 255.0 * (1.0 - share));
            writeln!(svg, "<path d='{path}' stroke='rgb({red:.0},40,{blue:.0})'/>")?;
        }
        let style = format!("r='{}' stroke='black'", 3.0 * (size / SMALL).sqrt());
        kept.iter().for_each(|&i| svg.push_str(&circle(self.data.row(i), &style)));
        writeln!(svg, "<rect width='{size}' height='{size}' stroke='black'/>\n</g>")
    }
}

/// Marching squares: the pieces of a contour, cell by cell, as an SVG path in a square of `size` pixels.
fn contour(values: &[f64], level: f64, size: f64) -> Result<String, std::fmt::Error> {
    let mut path = String::new();
    let pixels = size / (GRID - 1) as f64;
    for cell in (0..(GRID - 1) * (GRID - 1)).map(|i| (i % (GRID - 1), i / (GRID - 1))) {
        // Around the cell, with the value above the level.
        let corners = [(0, 0), (1, 0), (1, 1), (0, 1)].map(|(i, j)| {
            let (column, row) = (cell.0 + i, cell.1 + j);
            (column as f64, row as f64, values[row * GRID + column] - level)
        });
        let mut crossings = Vec::with_capacity(4);
        for (i, a) in corners.iter().enumerate() {
            let b = corners[(i + 1) % 4];
            if (a.2 < 0.0) != (b.2 < 0.0) {
                let t = a.2 / (a.2 - b.2);
                crossings.push(((a.0 + t * (b.0 - a.0)) * pixels, size - (a.1 + t * (b.1 - a.1)) * pixels));
            }
        }
        // At a saddle the middle belongs to the first corner, whose neighbours are cut off, or to them.
        let middle: f64 = corners.iter().map(|corner| corner.2).sum();
        if crossings.len() == 4 && (middle < 0.0) != (corners[0].2 < 0.0) {
            crossings.rotate_left(1);
        }
        for (i, (x, y)) in crossings.into_iter().enumerate() {
            write!(path, "{}{x:.2} {y:.2}", ["M", "L"][i % 2])?;
        }
    }
    Ok(path)
}

fn bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
}
