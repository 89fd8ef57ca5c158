//! The memory layout of points, queries and weights for the tiles.

use std::sync::Arc;

use faer::{Mat, MatRef};

use super::sums::Sums;
use super::{BLOCK, Basis, CHUNK_DEEP, CHUNK_SHALLOW, DEPTH, Precision, Weights};
use crate::kernel::conformal::Conformal;
use crate::kernel::cosine::inverse_norm;
use crate::kernel::rbf::Rbf;
use crate::kernel::{Form, Kernel, Outer, pinned};
use crate::points::{Numbers, Points};
use skpca_simd::{Element, Inner, Instructions, PackRows, PackedRows, Placement, Tiles};

/// The map from rows to packed coordinates, by the table at the head of `gram.rs`.
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
    /// Whether the tiles compute the complete kernel value.
    pub finished: bool,
}

/// Returns f of each of these points.
pub fn stretches(kernel: &Conformal, points: &Points) -> Vec<f64> {
    Stretched::new(kernel).of(points)
}

/// The factor f of a conformal kernel, computed as a kernel product itself.
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
            Form::Cosine | Form::Pairs => plain,
        }
    }

    /// Returns whether packing queries needs their rows, scaled.
    pub fn reads_rows(&self) -> bool {
        self.form == Form::Cosine || self.stretch.is_some()
    }

    /// Returns f of each row; 1 for kernels without f.
    pub fn stretches(&self, x: &Points) -> Vec<f64> {
        match &self.stretch {
            None => vec![1.0; x.n()],
            Some(f) => f.of(x),
        }
    }

    /// Returns the factor of this row's coordinates.
    pub fn factor(&self, row: &[f64], scale: f64) -> f64 {
        if self.form == Form::Cosine { inverse_norm(row) } else { scale }
    }

    /// Returns the additive term of a row whose squared coordinates sum to `squares`, and whether the row is too far
    /// out for the precision of `E`.
    pub fn term<E: Element>(&self, squares: f64, largest: f64) -> (f64, bool) {
        let limit = if size_of::<E>() == 4 { 64.0 } else { 1_048_576.0 };
        match self.form {
            Form::Gaussian { .. } => (-0.5 * squares, !within(squares, limit)),
            Form::Manhattan { .. } => (0.0, !(within(largest, limit) && squares.is_finite())),
            _ => (0.0, !E::from_f64(squares).to_f64().is_finite()),
        }
    }
}

/// Returns whether a value is within a limit; false for NaN.
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

/// A chunk of points. `z` is ordered by run of coordinates, then panel, then coordinate, then point within the panel.
pub struct Chunk<E> {
    /// Points per panel: the same for all panels of a chunk, and as small as their number allows.
    pub width: usize,
    pub z: Vec<E>,
    pub terms: Vec<E>,
    /// Subtracted from finished values.
    pub means: Vec<E>,
    /// Used in place of `means` while values are not finished.
    pub zeros: Vec<E>,
    /// f of each point, which unfinished values are multiplied by.
    pub stretches: Vec<f64>,
    /// Points (numbered in the whole basis) whose values are computed by the definition.
    pub far: Vec<usize>,
}

impl<E: Element> Packed<E> {
    pub fn new(coordinates: &Coordinates, points: &Points, means: &[f64], instructions: Instructions) -> Packed<E> {
        let tiles = E::tiles(instructions);
        let d = points.d();
        let chunk = if d <= DEPTH { CHUNK_SHALLOW } else { CHUNK_DEEP };
        let chunks = (0..points.n())
            .step_by(chunk)
            .map(|start| pack_chunk(coordinates, points, means, start..(start + chunk).min(points.n()), tiles.points()))
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
        let far = far || coordinates.form == Form::Pairs;
        chunk.terms[j] = E::from_f64(term + coordinates.point_offset);
        chunk.means[j] = E::from_f64(means[point]);
        if far {
            chunk.far.push(point);
            // NaN or infinite coordinates would spoil the sums of other points.
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

/// The map from the numbers of a table to coordinates, for 64-bit and for 32-bit numbers.
pub struct Placing {
    instructions: Instructions,
    double: Placement<f64>,
    single: Placement<f32>,
}

impl Placing {
    /// Creates the map for rows whose columns are first scaled by `scaling`, if given: shifted and divided.
    pub fn new(coordinates: &Coordinates, scaling: Option<(&[f64], &[f64])>, instructions: Instructions) -> Placing {
        let (shift, factor) = (&coordinates.shift, coordinates.row_scale);
        let d = shift.len();
        let double = match scaling {
            None => (shift.clone(), Vec::new(), vec![0.0; d]),
            Some((origin, unit)) => (origin.to_vec(), unit.to_vec(), shift.clone()),
        };
        let double = Placement { first: double.0, scale: double.1, second: double.2, factor: vec![factor; d] };
        let mut single = Placement::default();
        for (k, shift) in shift.iter().enumerate() {
            let (origin, unit) = scaling.map_or((0.0, 1.0), |(origin, unit)| (origin[k], unit[k]));
            // As a sum of two numbers: far from zero, a single one would lose the digits in which rows differ.
            let centre = origin + unit * shift;
            single.first.push(centre as f32);
            single.second.push((centre - f64::from(centre as f32)) as f32);
            single.factor.push((factor / unit) as f32);
        }
        Placing { instructions, double, single }
    }
}

/// Rows of a block in panels, with their squared norms and largest coordinates.
#[derive(Default)]
pub struct Lanes<E> {
    pub x: Vec<E>,
    squares: Vec<E>,
    largest: Vec<E>,
}

impl<E: Element> Lanes<E> {
    fn new(rows: usize, d: usize) -> Lanes<E> {
        let zeros = |count| vec![E::default(); count];
        Lanes { x: zeros(rows * d), squares: zeros(rows), largest: zeros(rows) }
    }

    fn pack(&mut self, instructions: Instructions, stride: usize, values: &[E], placement: &Placement<E>) {
        let Lanes { x, squares, largest } = self;
        E::tiles(instructions).pack(&PackRows { values, placement, stride }, &mut PackedRows { x, squares, largest });
    }
}

impl Lanes<f64> {
    /// Scales rows to unit length; rows of length zero get an infinite `squares`.
    fn normalise(&mut self, points: &Points, stride: usize) {
        let size = stride * points.d();
        for row in 0..points.n().next_multiple_of(stride) {
            let factor = inverse_norm(points.row(row.min(points.n() - 1)));
            let lane = self.x[row / stride * size..][..size].iter_mut().skip(row % stride).step_by(stride);
            lane.for_each(|x| *x *= factor);
            self.squares[row] = if factor.is_finite() { 1.0 } else { f64::INFINITY };
        }
    }
}

/// A number type that queries are packed in.
pub trait Packing: Element {
    /// Packs the numbers of some rows; `points` are the rows if they are to be scaled to unit length.
    fn place(queries: &mut Queries<Self>, placing: &Placing, numbers: Numbers, points: Option<&Points>);
}

impl Packing for f64 {
    fn place(queries: &mut Queries<f64>, placing: &Placing, numbers: Numbers, points: Option<&Points>) {
        let Queries { lanes, room, stride, .. } = queries;
        lanes.pack(placing.instructions, *stride, widened(numbers, room), &placing.double);
        points.into_iter().for_each(|points| lanes.normalise(points, *stride));
    }
}

impl Packing for f32 {
    fn place(queries: &mut Queries<f32>, placing: &Placing, numbers: Numbers, points: Option<&Points>) {
        let Queries { lanes, wide, room, stride, .. } = queries;
        if let (Numbers::Single(values), None) = (numbers, points) {
            return lanes.pack(placing.instructions, *stride, values, &placing.single);
        }
        if wide.x.is_empty() {
            *wide = Lanes::new(lanes.squares.len(), placing.double.factor.len());
        }
        wide.pack(placing.instructions, *stride, widened(numbers, room), &placing.double);
        points.into_iter().for_each(|points| wide.normalise(points, *stride));
        let narrow = |from: &[f64], to: &mut [f32]| to.iter_mut().zip(from).for_each(|(to, from)| *to = *from as f32);
        narrow(&wide.x, &mut lanes.x);
        narrow(&wide.squares, &mut lanes.squares);
        narrow(&wide.largest, &mut lanes.largest);
    }
}

/// Returns the numbers in 64 bits, converted in `room` if necessary.
fn widened<'a>(numbers: Numbers<'a>, room: &'a mut Vec<f64>) -> &'a [f64] {
    match numbers {
        Numbers::Double(values) => values,
        Numbers::Single(values) => {
            room.clear();
            room.extend(values.iter().map(|v| f64::from(*v)));
            room
        }
    }
}

/// A block of query rows in panels.
pub struct Queries<E> {
    pub lanes: Lanes<E>,
    pub terms: Vec<E>,
    pub stretches: Vec<f64>,
    /// Rows of the block whose values are computed by the definition.
    pub far: Vec<usize>,
    /// Rows per panel.
    stride: usize,
    /// Coordinates in 64 bits, before they are rounded to 32.
    wide: Lanes<f64>,
    room: Vec<f64>,
}

impl<E: Packing> Queries<E> {
    /// Allocates space for `rows` rows, which are whole panels of `stride` rows.
    pub fn new(rows: usize, d: usize, stride: usize) -> Queries<E> {
        Queries {
            lanes: Lanes::new(rows, d),
            terms: vec![E::default(); rows],
            stretches: vec![0.0; rows],
            far: Vec::new(),
            stride,
            wide: Lanes::default(),
            room: Vec::new(),
        }
    }

    /// Packs rows; `points` are the same rows, scaled, and needed if [`Coordinates::reads_rows`] returns true.
    pub fn pack(&mut self, coordinates: &Coordinates, placing: &Placing, numbers: Numbers, points: Option<&Points>) {
        let n = numbers.len() / coordinates.shift.len();
        if !coordinates.finished {
            self.stretches.fill(0.0);
            match (&coordinates.stretch, points) {
                (Some(stretch), Some(points)) => self.stretches[..n].copy_from_slice(&stretch.of(points)),
                _ => self.stretches[..n].fill(1.0),
            }
        }
        E::place(self, placing, numbers, points.filter(|_| coordinates.form == Form::Cosine));
        self.measure(coordinates, n);
    }

    /// Computes the term of each row, and leaves out rows that are too far out.
    fn measure(&mut self, coordinates: &Coordinates, n: usize) {
        self.far.clear();
        let Queries { lanes: Lanes { squares, largest, .. }, terms, stride, .. } = self;
        let padded = n.next_multiple_of(*stride);
        let mut any = false;
        for ((term, squares), largest) in terms[..padded].iter_mut().zip(&*squares).zip(&*largest) {
            let (own, far) = coordinates.term::<E>(squares.to_f64(), largest.to_f64());
            *term = E::from_f64(own);
            any |= far;
        }
        if any {
            (0..padded).for_each(|row| self.leave_out(coordinates, row, n));
        }
    }

    /// Zeroes this row of n if it is too far out: NaN or infinite coordinates would spoil the sums of other rows.
    fn leave_out(&mut self, coordinates: &Coordinates, row: usize, n: usize) {
        let Queries { lanes, terms, stride, far, .. } = self;
        if coordinates.term::<E>(lanes.squares[row].to_f64(), lanes.largest[row].to_f64()).1 {
            let size = *stride * coordinates.shift.len();
            let lane = lanes.x[row / *stride * size..][..size].iter_mut().skip(row % *stride).step_by(*stride);
            lane.for_each(|x| *x = E::default());
            terms[row] = E::default();
            far.extend((row < n).then_some(row));
        }
    }
}

/// The working memory of a thread for one block.
pub struct Scratch<E> {
    /// Scaled rows, if they are not in memory that way.
    pub room: Vec<f64>,
    pub queries: Queries<E>,
    pub values: Vec<E>,
    pub sums: Sums,
}

impl<E: Packing> Scratch<E> {
    pub fn new(packed: &Packed<E>, columns: usize) -> Scratch<E> {
        let panels = if packed.d <= DEPTH { 1 } else { BLOCK / packed.tiles.rows() };
        let points = packed.chunks.iter().map(|chunk| chunk.terms.len()).max().unwrap_or(0);
        Scratch {
            room: Vec::new(),
            queries: Queries::new(BLOCK, packed.d, packed.tiles.rows()),
            values: vec![E::default(); panels * packed.tiles.rows() * points],
            sums: Sums::new(columns),
        }
    }
}

/// The weight matrix in column groups no wider than a tile, in the same chunks as the points.
pub struct PackedWeights<E> {
    pub columns: usize,
    pub widths: Vec<usize>,
    pub chunks: Vec<Vec<E>>,
}

impl<E: Element> PackedWeights<E> {
    pub fn new(packed: &Packed<E>, a: MatRef<f64>) -> PackedWeights<E> {
        let columns = a.ncols();
        let groups = columns.div_ceil(packed.tiles.points());
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

    /// Adds the products of a panel with one chunk of points.
    pub fn multiply(&self, tiles: &Tiles<E>, chunk: usize, values: &[E], sums: &mut [E]) {
        let (rows, mut from) = (tiles.rows(), 0);
        let length = values.len() / rows;
        for &width in &self.widths {
            let a = &self.chunks[chunk][from * length..(from + width) * length];
            tiles.product_panel(length, width, values, a, &mut sums[from * rows..(from + width) * rows]);
            from += width;
        }
    }
}
