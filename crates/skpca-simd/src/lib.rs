//! Register tiles for the hot loop of [skpca](https://docs.rs/skpca), behind a safe interface. This is the only crate
//! of skpca that contains `unsafe` code.
//!
//! Operations on packed panels, for `f64` and `f32`, on every supported instruction set:
//!
//! ```text
//! kernel_panel   out[j][i] = g( u_i + w_j + Σ_k x[k][i] · z[k][j] ) − μ_j     or  − Σ_k |x[k][i] − z[k][j]| inside
//! product_panel  out[c][i] += Σ_j k[j][i] · a[j][c]
//! transposed     out[j][c] += Σ_i k[j][i] · v[i][c]             over the rows i of several panels; lanes are columns
//! pack, unpack   row-major rows into panels, and back
//! ```
//!
//! where `g` is 2^t or the identity. A panel holds `rows` query rows side by side (`x[k][i]` at `k · rows + i`), so
//! that one vector register holds the same coordinate of several queries. Every query is computed by the same
//! instructions in the same order, whatever its neighbours are: a batch of one gives the same result as a batch of
//! many.
//!
//! Safety: the interface checks every slice length against the tile shape before it creates a pointer, and selects only
//! instruction sets that were detected at run time.

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

/// A number type that the tiles support.
pub trait Element: Copy + Default + Send + Sync + PartialEq + 'static {
    /// Rounds to the nearest number of this type.
    fn from_f64(value: f64) -> Self;
    /// Converts to 64 bits, exactly.
    fn to_f64(self) -> f64;
    /// Returns the tiles of one instruction set. This is sound because a value of [`Instructions`] exists only for
    /// instruction sets that the processor has.
    fn tiles(of: Instructions) -> Tiles<Self>;
    /// Computes [`Tiles::product_panel`] and adds it to 64-bit sums; `part` has room for a tile.
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

/// The instruction set that kernel values are computed with. Rounding differs between instruction sets, so a fit is
/// reproducible bit for bit only with the same one.
///
/// It applies to the tiles of kernel values and their products, in which a fit spends its time. The small dense linear
/// algebra around them (faer) depends on the processor and is not pinned.
///
/// ```
/// use skpca_simd::Level;
///
/// assert!(Level::available().contains(&Level::Portable));
/// assert_eq!(Level::default().name(), "auto");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// The best that this machine supports.
    #[default]
    Auto,
    /// AVX-512 F.
    Avx512,
    /// AVX2 with FMA.
    Avx2,
    /// Portable code without special instructions.
    Portable,
}

impl Level {
    /// All levels.
    pub const ALL: [Level; 4] = [Level::Auto, Level::Avx512, Level::Avx2, Level::Portable];

    /// The levels that this machine supports, the best first.
    pub fn available() -> Vec<Level> {
        Instructions::available().iter().rev().map(|found| found.0).collect()
    }

    /// The name for users.
    pub fn name(self) -> &'static str {
        match self {
            Level::Auto => "auto",
            Level::Avx512 => "avx512",
            Level::Avx2 => "avx2",
            Level::Portable => "portable",
        }
    }

    /// Returns the instructions, or an error that lists the levels that this machine supports.
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

/// A level that does not exist, or that this machine does not support.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelError {
    /// The requested level.
    pub level: String,
    /// The levels that are available.
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

/// An instruction set that this processor supports. Only [`Instructions::available`] creates one, after detecting it,
/// so a value of this type is proof that its tiles may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instructions(Level);

impl Instructions {
    /// All instruction sets of this machine, the best last.
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

    /// The level of these instructions.
    pub fn level(self) -> Level {
        self.0
    }

    /// The best instruction set of this machine.
    pub fn best() -> Instructions {
        static BEST: OnceLock<Instructions> = OnceLock::new();
        *BEST.get_or_init(|| *Instructions::available().last().expect("portable is always there"))
    }
}

/// The inputs of [`Tiles::kernel_panel`], with the formula at the head of the crate. The coordinates may come in
/// several runs: with `first` the sums start from `u_i + w_j`, otherwise from the contents of `out`.
pub struct KernelPanel<'a, E> {
    /// What is summed over the coordinates.
    pub inner: Inner,
    /// Whether g is 2^t; otherwise it is the identity.
    pub exp2: bool,
    /// Whether this is the first run of coordinates.
    pub first: bool,
    /// Number of coordinates in this run.
    pub depth: usize,
    /// Number of points in a panel, at most that of a tile.
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

/// How values are transformed to coordinates, column by column: `((v − first) / scale − second) · factor`.
#[derive(Default)]
pub struct Placement<E> {
    /// Subtracted first.
    pub first: Vec<E>,
    /// The divisors; empty for no division.
    pub scale: Vec<E>,
    /// Subtracted after the division.
    pub second: Vec<E>,
    /// Multiplied last.
    pub factor: Vec<E>,
}

/// Rows to be packed.
pub struct PackRows<'a, E> {
    /// The rows, in row-major order.
    pub values: &'a [E],
    /// How they are transformed to coordinates.
    pub placement: &'a Placement<E>,
    /// Number of rows in a panel.
    pub stride: usize,
}

/// Packed rows: whole panels, and two statistics of each row.
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
    /// Number of query rows in a panel.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Maximum number of points in a panel, and of columns in one product.
    pub fn points(&self) -> usize {
        self.points
    }

    /// Packs rows into panels of `stride` rows, which may belong to other tiles. Lanes beyond the last row repeat it.
    pub fn pack(&self, rows: &PackRows<E>, out: &mut PackedRows<E>) {
        let (Placement { first, scale, second, factor }, stride) = (rows.placement, rows.stride);
        let d = factor.len();
        assert!(d > 0 && first.len() == d && second.len() == d && (scale.is_empty() || scale.len() == d));
        assert!(stride > 0 && stride.is_multiple_of(self.lanes) && rows.values.len().is_multiple_of(d));
        let padded = (rows.values.len() / d).next_multiple_of(stride);
        assert!(out.x.len() >= padded * d && out.squares.len() >= padded && out.largest.len() >= padded);
        // SAFETY: the lengths checked above cover all reads and writes; the instruction set was detected.
        unsafe { (self.pack)(rows, out) }
    }

    /// Computes `out[i][c] = sums[panel][c][i]`, with `stride` rows in a panel; returns whether all of `sums` is
    /// finite.
    pub fn unpack(&self, columns: usize, stride: usize, sums: &[E], out: &mut [E]) -> bool {
        assert!(columns > 0 && out.len().is_multiple_of(columns) && stride > 0 && stride.is_multiple_of(self.lanes));
        assert!(sums.len() >= (out.len() / columns).next_multiple_of(stride) * columns);
        // SAFETY: as above.
        unsafe { (self.unpack)(columns, stride, sums, out) }
    }

    /// Computes `out[panel][j][i]`, with `rows · width` values per panel of points.
    pub fn kernel_panel(&self, panel: &KernelPanel<E>, out: &mut [E]) {
        assert!((1..=self.points).contains(&panel.width));
        let panels = panel.point_term.len() / panel.width;
        assert_eq!(panel.point_term.len(), panels * panel.width);
        assert_eq!(panel.means.len(), panel.point_term.len());
        assert_eq!(panel.row_term.len(), self.rows);
        assert_eq!(panel.x.len(), panel.depth * self.rows);
        assert_eq!(panel.z.len(), panels * panel.depth * panel.width);
        assert_eq!(out.len(), panels * panel.width * self.rows);
        // SAFETY: the lengths checked above cover all reads and writes; the instruction set was detected.
        unsafe { (self.kernel)(panel, out) }
    }

    /// Computes `out[c][i] += Σ_j k[j][i] a[j][c]` for `length` points and `columns ≤ points` columns.
    pub fn product_panel(&self, length: usize, columns: usize, k: &[E], a: &[E], out: &mut [E]) {
        assert!(columns <= self.points);
        assert_eq!(k.len(), length * self.rows);
        assert_eq!(a.len(), length * columns);
        assert_eq!(out.len(), columns * self.rows);
        // SAFETY: as above.
        unsafe { (self.product)(length, columns, k, a, out) }
    }

    /// Computes `out[j][c] += Σ_p Σ_i k[p][j][i] v[p][i][c]` over `panels` panels p, with as many columns c as a panel
    /// has rows.
    pub fn transposed_panels(&self, panels: usize, k: &[E], v: &[E], out: &mut [E]) {
        assert_eq!(out.len() % self.rows, 0);
        assert_eq!(k.len(), panels * out.len());
        assert_eq!(v.len(), panels * self.rows * self.rows);
        // SAFETY: as above.
        unsafe { (self.transposed)(panels, k, v, out) }
    }
}

/// Prefetches memory that will be read or written soon.
#[inline]
pub fn prefetch<T>(values: &[T]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        const LINE: usize = 64;
        for line in (0..size_of_val(values)).step_by(LINE) {
            // SAFETY: every x86-64 processor has this hint; the address is inside the slice.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(values.as_ptr().cast::<i8>().add(line)) }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = values;
}

/// A vector register. Its functions may be called only where its instruction set is enabled.
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
    /// `max(self, |other|)`
    unsafe fn max_size(self, other: Self) -> Self;
    /// The lanes of both vectors interleaved: first, second, first, …
    unsafe fn interleave(self, other: Self) -> (Self, Self);
    /// `self · b + c`
    unsafe fn fma(self, b: Self, c: Self) -> Self;
    /// `self − |a − b|`
    unsafe fn minus_distance(self, a: Self, b: Self) -> Self;
}

/// `2^t` for `t` up to a few ulps above zero; results are at least the smallest normal number.
trait Exp2: Vector {
    /// The constants of the algorithm, in registers.
    type Constants;
    unsafe fn constants() -> Self::Constants;
    /// Computes several vectors in step, since each instruction waits for the one before it.
    unsafe fn exp2<const G: usize>(t: [[Self; RV]; G], constants: &Self::Constants) -> [[Self; RV]; G];
}

/// Number of vectors of query rows in a tile.
const RV: usize = 2;

/// One tile: `V::LANES · RV` rows by `NP` points, accumulators in registers.
#[inline(always)]
unsafe fn accumulate<V: Vector, const NP: usize, const MANHATTAN: bool>(
    depth: usize,
    x: *const V::E,
    z: *const V::E,
    mut acc: [[V; RV]; NP],
) -> [[V; RV]; NP] {
    // SAFETY: the caller guarantees depth · RV · LANES values at x and depth · NP at z.
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
            // Each run of coordinates is summed from zero and then added, which reduces the rounding error.
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

/// `out[j][i] = g(out[j][i]) − μ_j`, in a separate pass, since the registers cannot hold both the sums and the
/// polynomials of several vectors. Two points at a time hide the latency of a single vector.
#[inline(always)]
unsafe fn finish<V: Exp2, const EXP2: bool>(means: &[V::E], out: &mut [V::E]) {
    // SAFETY: the caller guarantees RV vectors for every mean.
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
    // SAFETY: the caller guarantees G means, and RV vectors for each.
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
            // SAFETY: the caller guarantees a term for every row and point.
            *sum = unsafe { sum.add(V::load(row_term.add(v * V::LANES)).add(V::splat(*point_term.add(j)))) };
        }
    }
}

/// `acc[j][i] += out[j][i]`
#[inline(always)]
unsafe fn add_stored<V: Vector, const NP: usize>(acc: &mut [[V; RV]; NP], out: *const V::E) {
    for (j, sums) in acc.iter_mut().enumerate() {
        for (v, sum) in sums.iter_mut().enumerate() {
            // SAFETY: the caller guarantees a value for every row and point.
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

/// [`Tiles::transposed_panels`] for NP points, starting with `first`.
#[inline(always)]
unsafe fn transposed<V: Vector, const NP: usize>(
    first: usize,
    panels: usize,
    k: &[V::E],
    v: &[V::E],
    out: &mut [V::E],
) {
    let rows = RV * V::LANES;
    // SAFETY: `Tiles::transposed_panels` checked the lengths; the caller guarantees NP points there.
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

/// Defines the `Tiles` of a vector type: the generic tiles, compiled for its instruction set.
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
                        _ => unreachable!("at most {} points per panel", $np),
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
                        _ => unreachable!("at most {} columns per panel", $np),
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
                            _ => unreachable!("at most {} points per tile", $np),
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
    fn a_level_that_the_machine_lacks_is_an_error() {
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

    /// 2^t for each t, computed by tiles of depth 0.
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
    fn powers_of_two_are_accurate_to_a_few_ulps() {
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
