//! The products of a block of rows: as the tiles produce them, and as rows.

use super::{BLOCK, PackedWeights};
use crate::points::all_finite;
use skpca_simd::{Element, Instructions, Tiles};

/// Sums ordered as `[panel][column][row of the panel]`, in 64 bits or, for 32-bit values of a single chunk, in 32.
pub struct Sums {
    columns: usize,
    double: Vec<f64>,
    single: Vec<f32>,
    are_single: bool,
    /// The products as rows.
    rows: Vec<f64>,
}

impl Sums {
    pub fn new(columns: usize) -> Sums {
        Sums { columns, double: Vec::new(), single: Vec::new(), are_single: false, rows: Vec::new() }
    }
}

/// A number type that products are summed in.
pub trait Summing: Element {
    /// Sets all sums to zero.
    fn clear(sums: &mut Sums, chunks: usize);

    /// Adds the products of one panel with one chunk of points.
    fn add(sums: &mut Sums, tiles: &Tiles<Self>, panel: usize, values: &[Self], chunk: (&PackedWeights<Self>, usize));
}

impl Summing for f64 {
    fn clear(sums: &mut Sums, _chunks: usize) {
        sums.are_single = false;
        sums.double.clear();
        sums.double.resize(sums.columns * BLOCK, 0.0);
    }

    fn add(sums: &mut Sums, tiles: &Tiles<f64>, panel: usize, values: &[f64], chunk: (&PackedWeights<f64>, usize)) {
        let size = sums.columns * tiles.rows();
        chunk.0.multiply(tiles, chunk.1, values, &mut sums.double[panel * size..][..size]);
    }
}

impl Summing for f32 {
    fn clear(sums: &mut Sums, chunks: usize) {
        sums.are_single = chunks == 1;
        sums.single.clear();
        sums.single.resize(sums.columns * BLOCK, 0.0);
        if !sums.are_single {
            f64::clear(sums, chunks);
        }
    }

    fn add(sums: &mut Sums, tiles: &Tiles<f32>, panel: usize, values: &[f32], chunk: (&PackedWeights<f32>, usize)) {
        let size = sums.columns * tiles.rows();
        let own = &mut sums.single[panel * size..][..size];
        if sums.are_single {
            return chunk.0.multiply(tiles, chunk.1, values, own);
        }
        own.fill(0.0);
        chunk.0.multiply(tiles, chunk.1, values, own);
        let sums = &mut sums.double[panel * size..][..size];
        sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += f64::from(*own));
    }
}

/// A number type of results.
pub trait Number: Element + Into<f64> {
    /// Writes the first `out.len() / columns` rows of the products; returns whether all are finite.
    fn write(sums: &mut Sums, tiles: &AllTiles, out: &mut [Self]) -> bool;
}

impl Number for f64 {
    fn write(sums: &mut Sums, tiles: &AllTiles, out: &mut [f64]) -> bool {
        if sums.are_single {
            sums.double.clear();
            sums.double.extend(sums.single.iter().map(|v| f64::from(*v)));
        }
        tiles.double.unpack(sums.columns, tiles.stride, &sums.double, out)
    }
}

impl Number for f32 {
    fn write(sums: &mut Sums, tiles: &AllTiles, out: &mut [f32]) -> bool {
        if !sums.are_single {
            sums.single.clear();
            sums.single.extend(sums.double.iter().map(|v| *v as f32));
        }
        tiles.single.unpack(sums.columns, tiles.stride, &sums.single, out)
    }
}

/// The tiles of one instruction set for both number types, and the rows per panel of those that computed the sums.
pub struct AllTiles {
    double: Tiles<f64>,
    single: Tiles<f32>,
    stride: usize,
}

impl AllTiles {
    pub fn new(instructions: Instructions, stride: usize) -> AllTiles {
        AllTiles { double: f64::tiles(instructions), single: f32::tiles(instructions), stride }
    }
}

/// The products of a block of rows.
pub struct Products<'a> {
    sums: &'a mut Sums,
    tiles: &'a AllTiles,
    n: usize,
}

impl<'a> Products<'a> {
    pub fn new(sums: &'a mut Sums, tiles: &'a AllTiles, n: usize) -> Products<'a> {
        Products { sums, tiles, n }
    }

    /// Writes the products to `out`, row after row; returns whether all are finite.
    pub fn write<T: Number>(&mut self, out: &mut [T]) -> bool {
        T::write(self.sums, self.tiles, out)
    }

    /// Iterates over the products of each row.
    pub fn rows(&mut self) -> std::slice::ChunksExact<'_, f64> {
        let columns = self.sums.columns;
        let mut rows = std::mem::take(&mut self.sums.rows);
        rows.resize(self.n * columns, 0.0);
        self.write(&mut rows);
        self.sums.rows = rows;
        self.sums.rows.chunks_exact(columns)
    }
}

/// Computes one number per row from its products; returns whether all are finite.
pub fn each_row<T: Element + Into<f64>>(
    products: &mut Products,
    out: &mut [T],
    mut each: impl FnMut(usize, &[f64]) -> T,
) -> bool {
    out.iter_mut().zip(products.rows()).enumerate().for_each(|(i, (out, row))| *out = each(i, row));
    all_finite(out)
}
