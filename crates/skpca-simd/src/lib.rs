//! Register tiles for the hot loop of [skpca](https://docs.rs/skpca), behind a safe face: the one crate of it with
//! `unsafe`.
//!
//! Operations on packed panels, for `f64` and `f32`, on every instruction set we know:
//!
//! ```text
//! kernel_panel   out[j][i] = g( u_i + w_j + Σ_k x[k][i] · z[k][j] ) − μ_j     or  − Σ_k |x[k][i] − z[k][j]| inside
//! product_panel  out[c][i] += Σ_j k[j][i] · a[j][c]
//! transposed     out[j][c] += Σ_i k[j][i] · v[i][c]             over the rows i of several panels; lanes are columns
//! pack, unpack   rows that lie one after the other into panels, and back
//! ```
//!
//! with `g` = 2^t or nothing. A panel holds `rows` query rows side by side (`x[k][i]` at `k · rows + i`), so
//! one vector register holds the same coordinate of several queries and every query is computed by the
//! same instructions in the same order, whatever its neighbours are: a batch of one equals a batch of many.
//!
//! Safety: the face checks every slice length against the tile shape before a pointer is made, and picks
//! only instruction sets that the processor was asked for at run time.

#![warn(missing_docs)]

mod exp2;
mod layout;
mod plain;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::error::Error;
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use plain::Plain;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__m256, __m256d, __m512, __m512d};

/// A number type the tiles work in.
pub trait Element: Copy + Default + Send + Sync + PartialEq + 'static {
    /// The nearest number of this type.
    fn from_f64(value: f64) -> Self;
    /// The same number in 64 bits.
    fn to_f64(self) -> f64;
    /// The tiles of one instruction set; sound, because only instructions that the processor has exist.
    fn tiles(of: Instructions) -> Tiles<Self>;
    /// [`Tiles::product_panel`] that adds to 64-bit sums; `part` has room for a tile.
    fn add_product(tiles: &Tiles<Self>, columns: usize, k: &[Self], a: &[Self], part: &mut [Self], out: &mut [f64]);
}

/// What a tile sums over the coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inner {
    /// `+ Σ x_k z_k`
    Dot,
    /// `− Σ |x_k − z_k|`
    Manhattan,
}

/// Which instructions kernel values are computed with. Rounding differs between them, so the same fit has the same bits
/// on one of them only.
///
/// It decides on the tiles of kernel values and their products, in which a fit spends its time. The small dense algebra
/// around them (faer) follows the processor, and is not pinned.
///
/// ```
/// use skpca_simd::Level;
///
/// assert!(Level::available().contains(&Level::Portable));
/// assert_eq!(Level::default().name(), "auto");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// The best that the machine has.
    #[default]
    Auto,
    /// AVX-512 F.
    Avx512,
    /// AVX2 with FMA.
    Avx2,
    /// What every machine has.
    Portable,
}

impl Level {
    /// All there are.
    pub const ALL: [Level; 4] = [Level::Auto, Level::Avx512, Level::Avx2, Level::Portable];

    /// Those that this machine has, the best first.
    pub fn available() -> Vec<Level> {
        Instructions::available().iter().rev().map(|found| found.0).collect()
    }

    /// The name users give.
    pub fn name(self) -> &'static str {
        match self {
            Level::Auto => "auto",
            Level::Avx512 => "avx512",
            Level::Avx2 => "avx2",
            Level::Portable => "portable",
        }
    }

    /// The instructions, or an error that says which this machine has.
    pub fn instructions(self) -> Result<Instructions, LevelError> {
        if self == Level::Auto { Ok(Instructions::best()) } else { self.among(&Instructions::available()) }
    }

    fn among(self, found: &[Instructions]) -> Result<Instructions, LevelError> {
        found.iter().copied().find(|found| found.0 == self).ok_or_else(|| {
            let names: Vec<&str> = found.iter().map(|found| found.0.name()).collect();
            LevelError::new(self, format!("auto or what this machine has: {}", names.join(", ")))
        })
    }
}

impl FromStr for Level {
    type Err = LevelError;

    fn from_str(text: &str) -> Result<Level, LevelError> {
        Level::ALL
            .into_iter()
            .find(|level| level.name() == text)
            .ok_or_else(|| LevelError::new(text, Level::ALL.map(Level::name).join(" or ")))
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A level that does not exist, or that this machine lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelError {
    /// What was asked for.
    pub level: String,
    /// What there is.
    pub expected: String,
}

impl LevelError {
    fn new(level: impl fmt::Display, expected: String) -> LevelError {
        LevelError { level: level.to_string(), expected }
    }
}

impl fmt::Display for LevelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "level = {}: expected {}", self.level, self.expected)
    }
}

impl Error for LevelError {}

/// Instructions that this processor has. Only [`Instructions::available`] makes them, after asking the processor:
/// whoever holds them may run their tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instructions(Level);

impl Instructions {
    /// All of this machine, the best last.
    pub fn available() -> Vec<Instructions> {
        let mut found = vec![Instructions(Level::Portable)];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                found.push(Instructions(Level::Avx2));
            }
            if is_x86_feature_detected!("avx512f") {
                found.push(Instructions(Level::Avx512));
            }
        }
        found
    }

    /// What they are called.
    pub fn level(self) -> Level {
        self.0
    }

    /// The best of this machine.
    pub fn best() -> Instructions {
        static BEST: OnceLock<Instructions> = OnceLock::new();
        *BEST.get_or_init(|| *Instructions::available().last().expect("portable is always there"))
    }
}

/// One kernel panel: see the module's formula. `last` applies `g`; `first` starts from `u_i + w_j`, otherwise
/// from what `out` holds (the coordinates come in several runs).
pub struct KernelPanel<'a, E> {
    /// What is summed over the coordinates.
    pub inner: Inner,
    /// Whether g is 2^t, rather than nothing.
    pub exp2: bool,
    /// Whether these are the first coordinates.
    pub first: bool,
    /// Coordinates in this run.
    pub depth: usize,
    /// Points in a panel: at most as many as a tile has.
    pub width: usize,
    /// Coordinates of the rows.
    pub x: &'a [E],
    /// u, one per row.
    pub row_term: &'a [E],
    /// Coordinates of the points.
    pub z: &'a [E],
    /// w, one per point.
    pub point_term: &'a [E],
    /// Subtracted from the result, one per point.
    pub means: &'a [E],
}

/// How numbers become coordinates, column by column: `((v − first) / scale − second) · factor`.
#[derive(Default)]
pub struct Placement<E> {
    /// Subtracted first.
    pub first: Vec<E>,
    /// Empty where nothing is divided.
    pub scale: Vec<E>,
    /// Subtracted from what was divided.
    pub second: Vec<E>,
    /// What the difference is multiplied by.
    pub factor: Vec<E>,
}

/// Rows to be packed.
pub struct PackRows<'a, E> {
    /// Row after row.
    pub values: &'a [E],
    /// How they become coordinates.
    pub placement: &'a Placement<E>,
    /// Rows in a panel.
    pub stride: usize,
}

/// Where they are packed to: whole panels, and what is known of each row.
pub struct PackedRows<'a, E> {
    /// Panels of coordinates.
    pub x: &'a mut [E],
    /// `Σ_k x²`
    pub squares: &'a mut [E],
    /// `max_k |x|`
    pub largest: &'a mut [E],
}

type KernelFn<E> = unsafe fn(&KernelPanel<E>, &mut [E]);
type ProductFn<E> = unsafe fn(usize, usize, &[E], &[E], &mut [E]);
type TransposedFn<E> = unsafe fn(usize, &[E], &[E], &mut [E]);
type PackFn<E> = unsafe fn(&PackRows<E>, &mut PackedRows<E>);
type UnpackFn<E> = unsafe fn(usize, usize, &[E], &mut [E]) -> bool;

/// The tile operations of one element type on one instruction set.
#[derive(Clone, Copy)]
pub struct Tiles<E> {
    rows: usize,
    points: usize,
    kernel: KernelFn<E>,
    product: ProductFn<E>,
    transposed: TransposedFn<E>,
    pack: PackFn<E>,
    unpack: UnpackFn<E>,
    lanes: usize,
}

impl<E: Element> Tiles<E> {
    /// Query rows in a panel.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The most points in a panel; also the most columns of one product.
    pub fn points(&self) -> usize {
        self.points
    }

    /// Packs rows into panels of `stride` rows, which may be those of other tiles; lanes without a row hold the last
    /// row.
    pub fn pack(&self, rows: &PackRows<E>, out: &mut PackedRows<E>) {
        let (Placement { first, scale, second, factor }, stride) = (rows.placement, rows.stride);
        let d = factor.len();
        assert!(d > 0 && first.len() == d && second.len() == d && (scale.is_empty() || scale.len() == d));
        assert!(stride > 0 && stride.is_multiple_of(self.lanes) && rows.values.len().is_multiple_of(d));
        let padded = (rows.values.len() / d).next_multiple_of(stride);
        assert!(out.x.len() >= padded * d && out.squares.len() >= padded && out.largest.len() >= padded);
        // SAFETY: the lengths above are what is read and written; the instruction set was detected.
        unsafe { (self.pack)(rows, out) }
    }

    /// `out[i][c] = sums[panel][c][i]`, with `stride` rows in a panel; tells whether all of `sums` is finite.
    pub fn unpack(&self, columns: usize, stride: usize, sums: &[E], out: &mut [E]) -> bool {
        assert!(columns > 0 && out.len().is_multiple_of(columns) && stride > 0 && stride.is_multiple_of(self.lanes));
        assert!(sums.len() >= (out.len() / columns).next_multiple_of(stride) * columns);
        // SAFETY: as above.
        unsafe { (self.unpack)(columns, stride, sums, out) }
    }

    /// `out[panel][j][i]`, `rows · width` values a panel of points.
    pub fn kernel_panel(&self, panel: &KernelPanel<E>, out: &mut [E]) {
        assert!((1..=self.points).contains(&panel.width));
        let panels = panel.point_term.len() / panel.width;
        assert_eq!(panel.point_term.len(), panels * panel.width);
        assert_eq!(panel.means.len(), panel.point_term.len());
        assert_eq!(panel.row_term.len(), self.rows);
        assert_eq!(panel.x.len(), panel.depth * self.rows);
        assert_eq!(panel.z.len(), panels * panel.depth * panel.width);
        assert_eq!(out.len(), panels * panel.width * self.rows);
        // SAFETY: the lengths above are what the tile reads and writes; the instruction set was detected.
        unsafe { (self.kernel)(panel, out) }
    }

    /// `out[c][i] += Σ_j k[j][i] a[j][c]` for `length` points and `columns ≤ points` columns.
    pub fn product_panel(&self, length: usize, columns: usize, k: &[E], a: &[E], out: &mut [E]) {
        assert!(columns <= self.points);
        assert_eq!(k.len(), length * self.rows);
        assert_eq!(a.len(), length * columns);
        assert_eq!(out.len(), columns * self.rows);
        // SAFETY: as above.
        unsafe { (self.product)(length, columns, k, a, out) }
    }

    /// `out[j][c] += Σ_p Σ_i k[p][j][i] v[p][i][c]` over `panels` panels p, with as many columns c as a panel has rows.
    pub fn transposed_panels(&self, panels: usize, k: &[E], v: &[E], out: &mut [E]) {
        assert_eq!(out.len() % self.rows, 0);
        assert_eq!(k.len(), panels * out.len());
        assert_eq!(v.len(), panels * self.rows * self.rows);
        // SAFETY: as above.
        unsafe { (self.transposed)(panels, k, v, out) }
    }
}

/// Asks for memory that is read or written soon.
#[inline]
pub fn prefetch<T>(values: &[T]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        const LINE: usize = 64;
        for line in (0..size_of_val(values)).step_by(LINE) {
            // SAFETY: a hint, which every such processor has; the address is inside the slice.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(values.as_ptr().cast::<i8>().add(line)) }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = values;
}

/// A vector register. Every function must be called only where its instruction set is enabled.
trait Vector: Copy {
    type E: Element;
    const LANES: usize;
    unsafe fn splat(value: Self::E) -> Self;
    unsafe fn load(from: *const Self::E) -> Self;
    unsafe fn store(self, to: *mut Self::E);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    unsafe fn div(self, other: Self) -> Self;
    /// The larger of `self` and `|other|`.
    unsafe fn max_size(self, other: Self) -> Self;
    /// The lanes of both in turns: first, second, first, …
    unsafe fn interleave(self, other: Self) -> (Self, Self);
    /// `self · b + c`
    unsafe fn fma(self, b: Self, c: Self) -> Self;
    /// `self − |a − b|`
    unsafe fn minus_distance(self, a: Self, b: Self) -> Self;
}

/// `2^t` for `t` up to a few ulps above zero; at least 2 to the smallest normal exponent.
trait Exp2: Vector {
    /// Registers full of the numbers that it needs.
    type Constants;
    unsafe fn constants() -> Self::Constants;
    /// Several at a time, step by step, because each step waits for the one before.
    unsafe fn exp2<const G: usize>(t: [[Self; RV]; G], constants: &Self::Constants) -> [[Self; RV]; G];
}

/// Vectors of query rows in a tile.
const RV: usize = 2;

/// One tile: `V::LANES · RV` rows by `NP` points, accumulators in registers.
#[inline(always)]
unsafe fn accumulate<V: Vector, const NP: usize, const MANHATTAN: bool>(
    depth: usize,
    x: *const V::E,
    z: *const V::E,
    mut acc: [[V; RV]; NP],
) -> [[V; RV]; NP] {
    // SAFETY: the caller vouches for depth · RV · LANES values at x and depth · NP at z.
    unsafe {
        for k in 0..depth {
            let mut row = [V::splat(V::E::default()); RV];
            for (v, value) in row.iter_mut().enumerate() {
                *value = V::load(x.add((k * RV + v) * V::LANES));
            }
            for (j, sums) in acc.iter_mut().enumerate() {
                let point = V::splat(*z.add(k * NP + j));
                for (sum, &value) in sums.iter_mut().zip(&row) {
                    *sum = if MANHATTAN { sum.minus_distance(value, point) } else { value.fma(point, *sum) };
                }
            }
        }
    }
    acc
}

#[inline(always)]
unsafe fn kernel_panel<V: Vector, const NP: usize, const MANHATTAN: bool>(panel: &KernelPanel<V::E>, out: &mut [V::E]) {
    let rows = RV * V::LANES;
    // SAFETY: `Tiles::kernel_panel` checked the lengths.
    unsafe {
        for p in 0..panel.point_term.len() / NP {
            let out = out.as_mut_ptr().add(p * NP * rows);
            let z = panel.z.as_ptr().add(p * panel.depth * NP);
            // Each run of coordinates is summed from zero and added at its end: fewer roundings at full size.
            let zero = [[V::splat(V::E::default()); RV]; NP];
            let mut acc = accumulate::<V, NP, MANHATTAN>(panel.depth, panel.x.as_ptr(), z, zero);
            if panel.first {
                add_terms(&mut acc, panel.row_term.as_ptr(), panel.point_term.as_ptr().add(p * NP));
            } else {
                add_stored(&mut acc, out);
            }
            for (j, sums) in acc.into_iter().enumerate() {
                for (v, sum) in sums.into_iter().enumerate() {
                    sum.store(out.add(j * rows + v * V::LANES));
                }
            }
        }
    }
}

/// `out[j][i] = g(out[j][i]) − μ_j`, in a pass of its own: with the sums still in registers, the polynomials of several
/// vectors would not fit beside them. Two points at a time, because one vector alone waits for itself.
#[inline(always)]
unsafe fn finish<V: Exp2, const EXP2: bool>(means: &[V::E], out: &mut [V::E]) {
    // SAFETY: the caller has RV vectors for every mean.
    unsafe {
        let constants = V::constants();
        let pairs = means.len() / 2 * 2;
        for j in (0..pairs).step_by(2) {
            finish_points::<V, 2, EXP2>(&constants, means.as_ptr().add(j), out.as_mut_ptr().add(j * RV * V::LANES));
        }
        for j in pairs..means.len() {
            finish_points::<V, 1, EXP2>(&constants, means.as_ptr().add(j), out.as_mut_ptr().add(j * RV * V::LANES));
        }
    }
}

#[inline(always)]
unsafe fn finish_points<V: Exp2, const G: usize, const EXP2: bool>(
    constants: &V::Constants,
    means: *const V::E,
    out: *mut V::E,
) {
    // SAFETY: the caller has G means, and RV vectors for each.
    unsafe {
        let at = |g: usize, v: usize| out.add((g * RV + v) * V::LANES);
        let mut group: [[V; RV]; G] = std::array::from_fn(|g| std::array::from_fn(|v| V::load(at(g, v))));
        if EXP2 {
            group = V::exp2(group, constants);
        }
        for (g, sums) in group.into_iter().enumerate() {
            let mean = V::splat(*means.add(g));
            for (v, value) in sums.into_iter().enumerate() {
                value.sub(mean).store(at(g, v));
            }
        }
    }
}

/// `acc[j][i] += u_i + w_j`
#[inline(always)]
unsafe fn add_terms<V: Vector, const NP: usize>(
    acc: &mut [[V; RV]; NP],
    row_term: *const V::E,
    point_term: *const V::E,
) {
    for (j, sums) in acc.iter_mut().enumerate() {
        for (v, sum) in sums.iter_mut().enumerate() {
            // SAFETY: the caller has a term for every row and point.
            *sum = unsafe { sum.add(V::load(row_term.add(v * V::LANES)).add(V::splat(*point_term.add(j)))) };
        }
    }
}

/// `acc[j][i] += out[j][i]`
#[inline(always)]
unsafe fn add_stored<V: Vector, const NP: usize>(acc: &mut [[V; RV]; NP], out: *const V::E) {
    for (j, sums) in acc.iter_mut().enumerate() {
        for (v, sum) in sums.iter_mut().enumerate() {
            // SAFETY: the caller has a value for every row and point.
            *sum = unsafe { sum.add(V::load(out.add((j * RV + v) * V::LANES))) };
        }
    }
}

#[inline(always)]
unsafe fn product<V: Vector, const NP: usize>(length: usize, k: &[V::E], a: &[V::E], out: &mut [V::E]) {
    // SAFETY: `Tiles::product_panel` checked the lengths.
    unsafe {
        let zero = [[V::splat(V::E::default()); RV]; NP];
        let acc = accumulate::<V, NP, false>(length, k.as_ptr(), a.as_ptr(), zero);
        for (c, sums) in acc.iter().enumerate() {
            for (v, sum) in sums.iter().enumerate() {
                let to = out.as_mut_ptr().add((c * RV + v) * V::LANES);
                sum.add(V::load(to)).store(to);
            }
        }
    }
}

/// [`Tiles::transposed_panels`] for NP points from the `first` on.
#[inline(always)]
unsafe fn transposed<V: Vector, const NP: usize>(
    first: usize,
    panels: usize,
    k: &[V::E],
    v: &[V::E],
    out: &mut [V::E],
) {
    let rows = RV * V::LANES;
    // SAFETY: `Tiles::transposed_panels` checked the lengths; the caller has NP points there.
    unsafe {
        let mut acc = [[V::splat(V::E::default()); RV]; NP];
        for i in 0..panels * rows {
            let row: [V; RV] = std::array::from_fn(|c| V::load(v.as_ptr().add(i * rows + c * V::LANES)));
            let k = k.as_ptr().add(i / rows * out.len() + first * rows + i % rows);
            for (point, sums) in acc.iter_mut().enumerate() {
                let value = V::splat(*k.add(point * rows));
                for (sum, &row) in sums.iter_mut().zip(&row) {
                    *sum = row.fma(value, *sum);
                }
            }
        }
        for (point, sums) in acc.iter().enumerate() {
            for (c, sum) in sums.iter().enumerate() {
                let to = out.as_mut_ptr().add((first + point) * rows + c * V::LANES);
                sum.add(V::load(to)).store(to);
            }
        }
    }
}

/// Makes the `Tiles` of a vector type: the same generic tiles, compiled once per instruction set.
macro_rules! tiles {
    ($module:ident, $vector:ty, $lanes:literal, [$($features:literal)?], $np:literal, [$($width:literal),*]) => {
        mod $module {
            use super::*;
            type E = <$vector as Vector>::E;

            $(#[target_feature(enable = $features)])?
            unsafe fn kernel(panel: &KernelPanel<E>, out: &mut [E]) {
                // SAFETY: forwarded from `Tiles`.
                unsafe {
                    match (panel.inner, panel.width) {
                        $((Inner::Dot, $width) => kernel_panel::<$vector, $width, false>(panel, out),)*
                        $((Inner::Manhattan, $width) => kernel_panel::<$vector, $width, true>(panel, out),)*
                        _ => unreachable!("at most {} points a panel", $np),
                    }
                    if panel.exp2 {
                        finish::<$vector, true>(panel.means, out)
                    } else {
                        finish::<$vector, false>(panel.means, out)
                    }
                }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn product_of(length: usize, columns: usize, k: &[E], a: &[E], out: &mut [E]) {
                // SAFETY: forwarded from `Tiles`.
                unsafe {
                    match columns {
                        $($width => product::<$vector, $width>(length, k, a, out),)*
                        _ => unreachable!("at most {} columns a panel", $np),
                    }
                }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn transposed_of(panels: usize, k: &[E], v: &[E], out: &mut [E]) {
                // SAFETY: forwarded from `Tiles`.
                unsafe {
                    let points = out.len() / TILES.rows;
                    for first in (0..points).step_by($np) {
                        match $np.min(points - first) {
                            $($width => transposed::<$vector, $width>(first, panels, k, v, out),)*
                            _ => unreachable!("at most {} points a tile", $np),
                        }
                    }
                }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn pack_of(rows: &PackRows<E>, out: &mut PackedRows<E>) {
                // SAFETY: forwarded from `Tiles`.
                unsafe {
                    if rows.placement.scale.is_empty() {
                        layout::pack::<$vector, $lanes, false>(rows, out)
                    } else {
                        layout::pack::<$vector, $lanes, true>(rows, out)
                    }
                }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn unpack_of(columns: usize, stride: usize, sums: &[E], out: &mut [E]) -> bool {
                // SAFETY: forwarded from `Tiles`.
                unsafe { layout::unpack::<$vector, $lanes>(columns, stride, sums, out) }
            }

            pub(super) const TILES: Tiles<E> = Tiles {
                rows: RV * <$vector as Vector>::LANES,
                points: $np,
                kernel,
                product: product_of,
                transposed: transposed_of,
                pack: pack_of,
                unpack: unpack_of,
                lanes: <$vector as Vector>::LANES,
            };
        }
    };
}

tiles!(plain_f64, Plain<f64>, 4, [], 4, [1, 2, 3, 4]);
tiles!(plain_f32, Plain<f32>, 4, [], 4, [1, 2, 3, 4]);
#[cfg(target_arch = "x86_64")]
tiles!(avx2_f64, __m256d, 4, ["avx2,fma"], 6, [1, 2, 3, 4, 5, 6]);
#[cfg(target_arch = "x86_64")]
tiles!(avx2_f32, __m256, 8, ["avx2,fma"], 6, [1, 2, 3, 4, 5, 6]);
#[cfg(target_arch = "x86_64")]
tiles!(avx512_f64, __m512d, 8, ["avx512f"], 12, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
#[cfg(target_arch = "x86_64")]
tiles!(avx512_f32, __m512, 16, ["avx512f"], 12, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);

impl Element for f64 {
    fn from_f64(value: f64) -> f64 {
        value
    }
    fn to_f64(self) -> f64 {
        self
    }
    fn add_product(tiles: &Tiles<f64>, columns: usize, k: &[f64], a: &[f64], _part: &mut [f64], out: &mut [f64]) {
        tiles.product_panel(a.len() / columns, columns, k, a, out);
    }
    fn tiles(of: Instructions) -> Tiles<f64> {
        match of.0 {
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => avx2_f64::TILES,
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => avx512_f64::TILES,
            _ => plain_f64::TILES,
        }
    }
}

impl Element for f32 {
    fn from_f64(value: f64) -> f32 {
        value as f32
    }
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
    fn add_product(tiles: &Tiles<f32>, columns: usize, k: &[f32], a: &[f32], part: &mut [f32], out: &mut [f64]) {
        let part = &mut part[..out.len()];
        part.fill(0.0);
        tiles.product_panel(a.len() / columns, columns, k, a, part);
        out.iter_mut().zip(part).for_each(|(sum, part)| *sum += f64::from(*part));
    }
    fn tiles(of: Instructions) -> Tiles<f32> {
        match of.0 {
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => avx2_f32::TILES,
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => avx512_f32::TILES,
            _ => plain_f32::TILES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::exp2::{LOWEST_F32, LOWEST_F64};
    use super::*;

    #[test]
    fn a_level_that_the_machine_lacks_is_refused() {
        let found = [Instructions(Level::Portable), Instructions(Level::Avx2)];
        assert_eq!(Level::Avx2.among(&found), Ok(found[1]));
        let message = Level::Avx512.among(&found).unwrap_err().to_string();
        assert_eq!(message, "level = avx512: expected auto or what this machine has: portable, avx2");
        for level in Level::ALL {
            let available = level == Level::Auto || Level::available().contains(&level);
            assert_eq!(level.instructions().is_ok(), available, "{level}");
            assert_eq!(level.name().parse(), Ok(level));
        }
        let message = "sse2".parse::<Level>().unwrap_err().to_string();
        assert_eq!(message, "level = sse2: expected auto or avx512 or avx2 or portable");
    }

    /// 2^t of each of these, by tiles of depth 0.
    fn powers<E: Element>(level: Instructions, t: &[f64]) -> Vec<f64> {
        let tiles = E::tiles(level);
        let none = vec![E::default(); tiles.points()];
        let mut out = vec![E::default(); tiles.points() * tiles.rows()];
        let each = |t: &[f64]| {
            let mut row_term: Vec<E> = t.iter().map(|t| E::from_f64(*t)).collect();
            row_term.resize(tiles.rows(), E::default());
            let (row_term, point_term, means) = (&row_term[..], &none[..], &none[..]);
            let (inner, width, x, z): (_, _, &[E], &[E]) = (Inner::Dot, tiles.points(), &[], &[]);
            let task =
                KernelPanel { inner, exp2: true, first: true, depth: 0, width, x, row_term, z, point_term, means };
            tiles.kernel_panel(&task, &mut out);
            out[..t.len()].iter().map(|v| v.to_f64()).collect::<Vec<_>>()
        };
        t.chunks(tiles.rows()).flat_map(each).collect()
    }

    fn error_of<E: Element>(level: Instructions, lowest: f64) -> f64 {
        let t: Vec<f64> = (0..=200_000).map(|i| E::from_f64(lowest * f64::from(i) / 200_000.0).to_f64()).collect();
        let errors = powers::<E>(level, &t).into_iter().zip(t).map(|(found, t)| (found / t.exp2() - 1.0).abs());
        errors.fold(0.0, f64::max)
    }

    #[test]
    fn powers_of_two_are_right_to_the_last_bits() {
        for level in Instructions::available() {
            let (double, single) = (error_of::<f64>(level, LOWEST_F64), error_of::<f32>(level, LOWEST_F32.into()));
            assert!(double < 7e-16 && single < 1.7e-7, "{level:?}: {double} {single}");
        }
    }

    #[test]
    fn powers_end_at_the_smallest_normal_number() {
        let far = [-1023.0, -1e5, -1e30];
        for level in Instructions::available() {
            assert_eq!(powers::<f64>(level, &far), [f64::MIN_POSITIVE; 3], "{level:?}");
            assert_eq!(powers::<f32>(level, &far), [f64::from(f32::MIN_POSITIVE); 3], "{level:?}");
        }
    }
}
