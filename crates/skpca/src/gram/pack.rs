//! How points, queries and weights are laid out for the tiles.

use std::sync::Arc;

use faer::{Mat, MatRef};

use super::{BLOCK, Basis, CHUNK_DEEP, CHUNK_SHALLOW, DEPTH, Precision, Weights};
use crate::kernel::conformal::Conformal;
use crate::kernel::cosine::inverse_norm;
use crate::kernel::rbf::Rbf;
use crate::kernel::{Form, Kernel, Outer, pinned};
use crate::points::Points;
use crate::simd::{Element, Inner, Instructions, Tiles};

/// How rows become packed coordinates: the table in the module's head.
pub struct Coordinates {
    pub form: Form,
    pub inner: Inner,
    pub exp2: bool,
    pub outer: Outer,
    pub shift: Vec<f64>,
    pub row_scale: f64,
    pub point_scale: f64,
    pub point_offset: f64,
    pub stretch: Option<Box<Stretched>>,
    /// Whether the tiles compute all there is.
    pub finished: bool,
}

/// f of each of these points.
pub fn stretches(kernel: &Conformal, points: &Points) -> Vec<f64> {
    Stretched::new(kernel).of(points)
}

/// The factor f of a conformal kernel, as a product of its own.
pub struct Stretched {
    pub constant: f64,
    pub basis: Basis,
    pub weights: Weights,
}

impl Stretched {
    pub fn new(kernel: &Conformal) -> Box<Stretched> {
        let stretch = &kernel.stretch;
        let bumps = pinned(Arc::new(Rbf { gamma: stretch.delta }), kernel.instructions());
        let basis = Basis::new(bumps, stretch.vectors.clone());
        let weights = basis.weights(Mat::from_fn(stretch.weights.len(), 1, |n, _| stretch.weights[n]));
        Box::new(Stretched { constant: stretch.constant, basis, weights })
    }

    fn of(&self, x: &Points) -> Vec<f64> {
        let values = self.basis.product(x, &self.weights, Precision::Double);
        values.into_iter().map(|v| self.constant + v).collect()
    }
}

impl Coordinates {
    pub fn new(kernel: &dyn Kernel, points: &Points) -> Coordinates {
        use std::f64::consts::LOG2_E;
        let form = kernel.form();
        let stretch = Conformal::of(kernel).map(Stretched::new);
        let finished = stretch.is_none() && !matches!(form, Form::Dot { outer: Outer::Power(_) | Outer::Tanh, .. });
        let plain = Coordinates {
            form,
            inner: Inner::Dot,
            exp2: false,
            outer: Outer::Identity,
            shift: vec![0.0; points.d()],
            row_scale: 1.0,
            point_scale: 1.0,
            point_offset: 0.0,
            stretch,
            finished,
        };
        match form {
            Form::Gaussian { gamma } => {
                let scale = (2.0 * gamma * LOG2_E).sqrt();
                Coordinates { exp2: true, shift: points.mean(), row_scale: scale, point_scale: scale, ..plain }
            }
            Form::Manhattan { gamma } => {
                let scale = gamma * LOG2_E;
                let inner = Inner::Manhattan;
                Coordinates { inner, exp2: true, shift: points.mean(), row_scale: scale, point_scale: scale, ..plain }
            }
            Form::Dot { gamma, coef0, outer } => {
                Coordinates { outer, point_scale: gamma, point_offset: coef0, ..plain }
            }
            Form::Cosine => plain,
        }
    }

    /// f of each row; 1 without it.
    pub fn stretches(&self, x: &Points) -> Vec<f64> {
        match &self.stretch {
            None => vec![1.0; x.n()],
            Some(f) => f.of(x),
        }
    }

    /// The factor of this row's coordinates.
    pub fn factor(&self, row: &[f64], scale: f64) -> f64 {
        if self.form == Form::Cosine { inverse_norm(row) } else { scale }
    }

    /// The term of a row whose coordinates' squares sum to `squares`, and whether it is too far out for
    /// arithmetic with unit roundoff like `E`'s.
    pub fn term<E: Element>(&self, squares: f64, largest: f64) -> (f64, bool) {
        let limit = if size_of::<E>() == 4 { 64.0 } else { 1_048_576.0 };
        match self.form {
            Form::Gaussian { .. } => (-0.5 * squares, !within(squares, limit)),
            Form::Manhattan { .. } => (0.0, !within(largest, limit)),
            _ => (0.0, !E::from_f64(squares).to_f64().is_finite()),
        }
    }
}

/// Not for NaN.
pub fn within(value: f64, limit: f64) -> bool {
    value <= limit
}

/// Points in panels, chunk by chunk.
pub struct Packed<E> {
    pub tiles: Tiles<E>,
    pub d: usize,
    pub chunk: usize,
    pub chunks: Vec<Chunk<E>>,
}

/// `z` runs over runs of coordinates, then panels, then coordinates, then the points of a panel.
pub struct Chunk<E> {
    /// Points in a panel: all panels of a chunk have as many, and as few as their number allows.
    pub width: usize,
    pub z: Vec<E>,
    pub terms: Vec<E>,
    /// Subtracted from the values …
    pub means: Vec<E>,
    /// … or these, where the values are not finished yet …
    pub zeros: Vec<E>,
    /// … and multiplied by f of the point first.
    pub stretches: Vec<f64>,
    /// Points (numbered in the whole basis) that need the definition.
    pub far: Vec<usize>,
}

impl<E: Element> Packed<E> {
    pub fn new(coordinates: &Coordinates, points: &Points, means: &[f64], instructions: Instructions) -> Packed<E> {
        let tiles = E::tiles(instructions);
        let d = points.d();
        let chunk = if d <= DEPTH { CHUNK_SHALLOW } else { CHUNK_DEEP };
        let chunks = (0..points.n())
            .step_by(chunk)
            .map(|start| pack_chunk(coordinates, points, means, start..(start + chunk).min(points.n()), tiles.points))
            .collect();
        Packed { tiles, d, chunk, chunks }
    }
}

pub fn pack_chunk<E: Element>(
    coordinates: &Coordinates,
    points: &Points,
    means: &[f64],
    range: std::ops::Range<usize>,
    widest: usize,
) -> Chunk<E> {
    let d = points.d();
    let width = range.len().div_ceil(range.len().div_ceil(widest));
    let padded = range.len().next_multiple_of(width);
    let zeros = |count| vec![E::default(); count];
    let mut stretches = coordinates.stretches(&points.slice(range.clone()));
    stretches.resize(padded, 0.0);
    let mut chunk = Chunk {
        width,
        z: zeros(padded * d),
        terms: zeros(padded),
        means: zeros(padded),
        zeros: zeros(padded),
        stretches,
        far: vec![],
    };
    for (j, point) in range.clone().enumerate() {
        let row = points.row(point);
        let factor = coordinates.factor(row, coordinates.point_scale);
        let (mut squares, mut largest) = (0.0, 0.0_f64);
        for (k, value) in row.iter().enumerate() {
            let value = factor * (value - coordinates.shift[k]);
            squares += value * value;
            largest = largest.max(value.abs());
            let (run, within) = (k / DEPTH * DEPTH, k % DEPTH);
            let depth = DEPTH.min(d - run);
            chunk.z[run * padded + (j / width * depth + within) * width + j % width] = E::from_f64(value);
        }
        let (term, far) = coordinates.term::<E>(squares, largest);
        chunk.terms[j] = E::from_f64(term + coordinates.point_offset);
        chunk.means[j] = E::from_f64(means[point]);
        if far {
            chunk.far.push(point);
            // Coordinates that are no numbers would spoil the sums of others.
            (0..d).for_each(|k| {
                let (run, within) = (k / DEPTH * DEPTH, k % DEPTH);
                let at = run * padded + (j / width * DEPTH.min(d - run) + within) * width + j % width;
                chunk.z[at] = E::default();
            });
            chunk.terms[j] = E::default();
        }
    }
    chunk
}

/// Rows packed at a time; every tile's rows are a multiple of it.
const LANES: usize = 8;

/// A block of query rows in panels.
pub struct Queries<E> {
    pub x: Vec<E>,
    pub terms: Vec<E>,
    pub stretches: Vec<f64>,
    /// Rows of the block that need the definition.
    pub far: Vec<usize>,
}

impl<E: Element> Queries<E> {
    pub fn new(rows: usize, d: usize) -> Queries<E> {
        let zeros = |count| vec![E::default(); count];
        Queries { x: zeros(rows * d), terms: zeros(rows), stretches: vec![0.0; rows], far: Vec::new() }
    }

    pub fn pack(&mut self, coordinates: &Coordinates, tiles: &Tiles<E>, x: &Points) {
        let rows = tiles.rows;
        self.far.clear();
        if !coordinates.finished {
            self.stretches.fill(0.0);
            self.stretches[..x.n()].copy_from_slice(&coordinates.stretches(x));
        }
        for start in (0..x.n().next_multiple_of(rows)).step_by(LANES) {
            self.pack_lanes(coordinates, x, start, rows);
        }
    }

    /// Packs rows `start`… of `x` into panels of `rows` rows, some of them side by side at each coordinate in turn; rows
    /// beyond the last become zeros.
    fn pack_lanes(&mut self, coordinates: &Coordinates, x: &Points, start: usize, rows: usize) {
        let shift = &coordinates.shift[..];
        let to = &mut self.x[start / rows * rows * shift.len() + start % rows..];
        let row = |lane: usize| if start + lane < x.n() { x.row(start + lane) } else { shift };
        let lanes: [&[f64]; LANES] = std::array::from_fn(|lane| &row(lane)[..shift.len()]);
        let factors = lanes.map(|row| coordinates.factor(row, coordinates.row_scale));
        let (mut squares, mut largest) = ([0.0; LANES], [0.0_f64; LANES]);
        for (k, shift) in shift.iter().enumerate() {
            let to = &mut to[k * rows..k * rows + LANES];
            for lane in 0..LANES {
                let value = factors[lane] * (lanes[lane][k] - shift);
                squares[lane] += value * value;
                largest[lane] = if value.abs() > largest[lane] { value.abs() } else { largest[lane] };
                to[lane] = E::from_f64(value);
            }
        }
        for lane in 0..LANES {
            let (term, far) = coordinates.term::<E>(squares[lane], largest[lane]);
            self.terms[start + lane] = E::from_f64(term);
            if far && start + lane < x.n() {
                self.far.push(start + lane);
                // Coordinates that are no numbers would spoil the sums of others.
                (0..shift.len()).for_each(|k| to[k * rows + lane] = E::default());
                self.terms[start + lane] = E::default();
            }
        }
    }
}

/// What one thread needs for a block.
pub struct Scratch<E> {
    /// Rows that do not lie in memory as they are wanted.
    pub room: Vec<f64>,
    pub queries: Queries<E>,
    pub values: Vec<E>,
    /// A tile's own sums.
    pub part: Vec<E>,
    /// Those of all tiles, panel after panel.
    pub sums: Vec<f64>,
    /// The same, row after row.
    pub products: Vec<f64>,
}

impl<E: Element> Scratch<E> {
    pub fn new(packed: &Packed<E>, columns: usize) -> Scratch<E> {
        let panels = if packed.d <= DEPTH { 1 } else { BLOCK / packed.tiles.rows };
        let zeros = |count| vec![E::default(); count];
        let points = packed.chunks.iter().map(|chunk| chunk.terms.len()).max().unwrap_or(0);
        Scratch {
            room: vec![0.0; BLOCK * packed.d],
            queries: Queries::new(BLOCK, packed.d),
            values: zeros(panels * packed.tiles.rows * points),
            part: zeros(packed.tiles.points * packed.tiles.rows),
            sums: vec![0.0; columns * BLOCK],
            products: vec![0.0; columns * BLOCK],
        }
    }
}

/// The matrix in column groups no wider than a tile, chunk by chunk as the points are.
pub struct PackedWeights<E> {
    pub columns: usize,
    pub widths: Vec<usize>,
    pub chunks: Vec<Vec<E>>,
}

impl<E: Element> PackedWeights<E> {
    pub fn new(packed: &Packed<E>, a: MatRef<f64>) -> PackedWeights<E> {
        let columns = a.ncols();
        let groups = columns.div_ceil(packed.tiles.points);
        let widths: Vec<usize> = (0..groups).map(|g| (columns * (g + 1)) / groups - (columns * g) / groups).collect();
        let pack = |(index, chunk): (usize, &Chunk<E>)| {
            let mut out = Vec::with_capacity(chunk.terms.len() * columns);
            let mut from = 0;
            for &width in &widths {
                for j in 0..chunk.terms.len() {
                    let row = index * packed.chunk + j;
                    let value = |c| if row < a.nrows() { E::from_f64(a[(row, c)]) } else { E::default() };
                    out.extend((from..from + width).map(value));
                }
                from += width;
            }
            out
        };
        let chunks = packed.chunks.iter().enumerate().map(pack).collect();
        PackedWeights { columns, widths, chunks }
    }
}
