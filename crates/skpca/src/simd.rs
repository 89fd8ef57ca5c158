//! The one room with `unsafe`: register tiles for the hot loop, behind a safe face.
//!
//! Three operations on packed panels, for `f64` and `f32`, on every instruction set we know:
//!
//! ```text
//! kernel_panel   out[j][i] = g( u_i + w_j + Σ_k x[k][i] · z[k][j] ) − μ_j     or  − Σ_k |x[k][i] − z[k][j]| inside
//! product_panel  out[c][i] += Σ_j k[j][i] · a[j][c]
//! transposed     out[j][c] += Σ_i k[j][i] · v[i][c]             over the rows i of several panels; lanes are columns
//! ```
//!
//! with `g` = 2^t or nothing. A panel holds `rows` query rows side by side (`x[k][i]` at `k · rows + i`), so
//! one vector register holds the same coordinate of several queries and every query is computed by the
//! same instructions in the same order, whatever its neighbours are: a batch of one equals a batch of many.
//!
//! Safety: the face checks every slice length against the tile shape before a pointer is made, and picks
//! only instruction sets that the processor was asked for at run time.

use std::sync::OnceLock;

/// A number type the tiles work in.
pub(crate) trait Element: Copy + Default + Send + Sync + PartialEq + 'static {
    fn from_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;
    /// The type's packed instructions on one instruction set.
    fn tiles(level: Level) -> Tiles<Self>;
    /// [`Tiles::product_panel`] that adds to 64-bit sums; `part` has room for a tile.
    fn add_product(tiles: &Tiles<Self>, columns: usize, k: &[Self], a: &[Self], part: &mut [Self], out: &mut [f64]);
}

/// What a tile sums over the coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inner {
    /// `+ Σ x_k z_k`
    Dot,
    /// `− Σ |x_k − z_k|`
    Manhattan,
}

/// An instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// Every instruction set of this machine, the best last.
    pub(crate) fn available() -> Vec<Level> {
        let mut levels = vec![Level::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                levels.push(Level::Avx2);
            }
            if is_x86_feature_detected!("avx512f") {
                levels.push(Level::Avx512);
            }
        }
        levels
    }

    pub(crate) fn best() -> Level {
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(|| *Level::available().last().expect("portable is always there"))
    }
}

/// One kernel panel: see the module's formula. `last` applies `g`; `first` starts from `u_i + w_j`, otherwise
/// from what `out` holds (the coordinates come in several runs).
pub(crate) struct KernelPanel<'a, E> {
    pub inner: Inner,
    pub exp2: bool,
    pub first: bool,
    pub depth: usize,
    pub x: &'a [E],
    pub row_term: &'a [E],
    pub z: &'a [E],
    pub point_term: &'a [E],
    /// Subtracted from the result, one a point.
    pub means: &'a [E],
}

type KernelFn<E> = unsafe fn(&KernelPanel<E>, &mut [E]);
type ProductFn<E> = unsafe fn(usize, usize, &[E], &[E], &mut [E]);
type TransposedFn<E> = unsafe fn(usize, &[E], &[E], &mut [E]);

/// The tile operations of one element type on one instruction set.
#[derive(Clone, Copy)]
pub(crate) struct Tiles<E> {
    /// Query rows in a panel.
    pub rows: usize,
    /// Points in a panel; also the most columns of one product.
    pub points: usize,
    kernel: KernelFn<E>,
    product: ProductFn<E>,
    transposed: TransposedFn<E>,
}

impl<E: Element> Tiles<E> {
    /// `out[panel][j][i]`, `rows · points` values a panel of points.
    pub(crate) fn kernel_panel(&self, panel: &KernelPanel<E>, out: &mut [E]) {
        let panels = panel.point_term.len() / self.points;
        assert_eq!(panel.point_term.len(), panels * self.points);
        assert_eq!(panel.means.len(), panel.point_term.len());
        assert_eq!(panel.row_term.len(), self.rows);
        assert_eq!(panel.x.len(), panel.depth * self.rows);
        assert_eq!(panel.z.len(), panels * panel.depth * self.points);
        assert_eq!(out.len(), panels * self.points * self.rows);
        // SAFETY: the lengths above are what the tile reads and writes; the instruction set was detected.
        unsafe { (self.kernel)(panel, out) }
    }

    /// `out[c][i] += Σ_j k[j][i] a[j][c]` for `length` points and `columns ≤ points` columns.
    pub(crate) fn product_panel(&self, length: usize, columns: usize, k: &[E], a: &[E], out: &mut [E]) {
        assert!(columns <= self.points);
        assert_eq!(k.len(), length * self.rows);
        assert_eq!(a.len(), length * columns);
        assert_eq!(out.len(), columns * self.rows);
        // SAFETY: as above.
        unsafe { (self.product)(length, columns, k, a, out) }
    }

    /// `out[j][c] += Σ_p Σ_i k[p][j][i] v[p][i][c]` over `panels` panels p, with as many columns c as a panel has rows.
    pub(crate) fn transposed_panels(&self, panels: usize, k: &[E], v: &[E], out: &mut [E]) {
        assert_eq!(out.len() % (self.points * self.rows), 0);
        assert_eq!(k.len(), panels * out.len());
        assert_eq!(v.len(), panels * self.rows * self.rows);
        // SAFETY: as above.
        unsafe { (self.transposed)(panels, k, v, out) }
    }
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
    /// `self · b + c`
    unsafe fn fma(self, b: Self, c: Self) -> Self;
    /// `self − |a − b|`
    unsafe fn minus_distance(self, a: Self, b: Self) -> Self;
    /// `2^t` for `t` up to a few ulps above zero; at least 2 to the smallest normal exponent. Several at a time, step
    /// by step, because each step waits for the one before.
    unsafe fn exp2<const G: usize>(t: [[Self; RV]; G], constants: &Self::Constants) -> [[Self; RV]; G];
    /// Registers full of the numbers that `exp2` needs.
    type Constants;
    unsafe fn constants() -> Self::Constants;
}

/// 2^r on |r| ≤ ½ as 1 + r·s(r), minimax in relative error: 3.0e-16 (found by Remez exchange).
const EXP2_F64: [f64; 11] = [
    1.0,
    0.693_147_180_559_951_6,
    0.240_226_506_959_104_72,
    0.055_504_108_664_346_58,
    0.009_618_129_107_380_714,
    0.001_333_355_824_648_072,
    0.000_154_035_308_008_182_56,
    0.000_015_252_647_747_695_92,
    1.321_523_563_477_604e-6,
    1.021_050_645_881_614_5e-7,
    7.111_758_687_557_852e-9,
];

/// The same for single precision: 2.6e-9.
#[allow(clippy::approx_constant)] // rounded, the second coefficient is ln 2; it is still a coefficient
const EXP2_F32: [f32; 7] =
    [1.0, 0.693_147_2, 0.240_226_53, 0.055_503_106, 0.009_617_693, 0.001_340_664_4, 0.000_155_946_78];

/// Adding this rounds to an integer, which then stands in the low bits.
const ROUND_F64: f64 = 1.5 * (1u64 << 52) as f64;
const ROUND_F32: f32 = 1.5 * (1u32 << 23) as f32;
const LOWEST_F64: f64 = -1022.0;
const LOWEST_F32: f32 = -126.0;

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
unsafe fn kernel_panel<V: Vector, const NP: usize, const GROUP: usize, const MANHATTAN: bool, const EXP2: bool>(
    panel: &KernelPanel<V::E>,
    out: &mut [V::E],
) {
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
        finish::<V, GROUP, EXP2>(panel.means, out.as_mut_ptr());
    }
}

/// `out[j][i] = g(out[j][i]) − μ_j`, in a pass of its own: with the sums still in registers, the polynomials of several
/// vectors would not fit beside them. `GROUP` points at a time, because one vector alone waits for itself.
#[inline(always)]
unsafe fn finish<V: Vector, const GROUP: usize, const EXP2: bool>(means: &[V::E], out: *mut V::E) {
    // SAFETY: the caller has RV vectors for every mean, and a multiple of GROUP of them.
    unsafe {
        let constants = V::constants();
        for j in (0..means.len()).step_by(GROUP) {
            let at = |g: usize, v: usize| out.add(((j + g) * RV + v) * V::LANES);
            let mut group: [[V; RV]; GROUP] = std::array::from_fn(|g| std::array::from_fn(|v| V::load(at(g, v))));
            if EXP2 {
                group = V::exp2(group, &constants);
            }
            for (g, sums) in group.into_iter().enumerate() {
                let mean = V::splat(*means.as_ptr().add(j + g));
                for (v, value) in sums.into_iter().enumerate() {
                    value.sub(mean).store(at(g, v));
                }
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

#[inline(always)]
unsafe fn transposed<V: Vector, const NP: usize>(panels: usize, k: &[V::E], v: &[V::E], out: &mut [V::E]) {
    let rows = RV * V::LANES;
    // SAFETY: `Tiles::transposed_panels` checked the lengths.
    unsafe {
        for j in (0..out.len() / rows).step_by(NP) {
            let mut acc = [[V::splat(V::E::default()); RV]; NP];
            for i in 0..panels * rows {
                let row: [V; RV] = std::array::from_fn(|c| V::load(v.as_ptr().add(i * rows + c * V::LANES)));
                let k = k.as_ptr().add(i / rows * out.len() + j * rows + i % rows);
                for (point, sums) in acc.iter_mut().enumerate() {
                    let value = V::splat(*k.add(point * rows));
                    for (sum, &row) in sums.iter_mut().zip(&row) {
                        *sum = row.fma(value, *sum);
                    }
                }
            }
            for (point, sums) in acc.iter().enumerate() {
                for (c, sum) in sums.iter().enumerate() {
                    let to = out.as_mut_ptr().add((j + point) * rows + c * V::LANES);
                    sum.add(V::load(to)).store(to);
                }
            }
        }
    }
}

/// Makes the `Tiles` of a vector type: the same generic tiles, compiled once per instruction set.
macro_rules! tiles {
    ($module:ident, $vector:ty, [$($features:literal)?], $np:literal, $group:literal, [$($width:literal),*]) => {
        mod $module {
            use super::*;
            type E = <$vector as Vector>::E;

            $(#[target_feature(enable = $features)])?
            unsafe fn kernel(panel: &KernelPanel<E>, out: &mut [E]) {
                // SAFETY: forwarded from `Tiles`.
                unsafe {
                    match (panel.inner, panel.exp2) {
                        (Inner::Dot, false) => kernel_panel::<$vector, $np, $group, false, false>(panel, out),
                        (Inner::Dot, true) => kernel_panel::<$vector, $np, $group, false, true>(panel, out),
                        (Inner::Manhattan, false) => kernel_panel::<$vector, $np, $group, true, false>(panel, out),
                        (Inner::Manhattan, true) => kernel_panel::<$vector, $np, $group, true, true>(panel, out),
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
                unsafe { transposed::<$vector, $np>(panels, k, v, out) }
            }

            pub(super) const TILES: Tiles<E> = Tiles {
                rows: RV * <$vector as Vector>::LANES,
                points: $np,
                kernel,
                product: product_of,
                transposed: transposed_of,
            };
        }
    };
}

/// Plain arrays: whatever the compiler makes of them.
#[derive(Clone, Copy)]
struct Plain<E>([E; 4]);

macro_rules! plain {
    ($element:ty, $poly:ident, $round:ident, $lowest:ident, $mantissa:literal) => {
        impl Vector for Plain<$element> {
            type E = $element;
            const LANES: usize = 4;
            #[inline(always)]
            unsafe fn splat(value: $element) -> Self {
                Plain([value; 4])
            }
            #[inline(always)]
            unsafe fn load(from: *const $element) -> Self {
                // SAFETY: the caller has four values there.
                Plain(unsafe { from.cast::<[$element; 4]>().read_unaligned() })
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $element) {
                // SAFETY: the caller has four places there.
                unsafe { to.cast::<[$element; 4]>().write_unaligned(self.0) }
            }
            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                Plain(std::array::from_fn(|i| self.0[i] + other.0[i]))
            }
            #[inline(always)]
            unsafe fn sub(self, other: Self) -> Self {
                Plain(std::array::from_fn(|i| self.0[i] - other.0[i]))
            }
            #[inline(always)]
            unsafe fn fma(self, b: Self, c: Self) -> Self {
                // Not fused: without the instruction `mul_add` is a library call.
                Plain(std::array::from_fn(|i| self.0[i] * b.0[i] + c.0[i]))
            }
            #[inline(always)]
            unsafe fn minus_distance(self, a: Self, b: Self) -> Self {
                Plain(std::array::from_fn(|i| self.0[i] - (a.0[i] - b.0[i]).abs()))
            }
            type Constants = ();
            #[inline(always)]
            unsafe fn constants() {}
            #[inline(always)]
            unsafe fn exp2<const G: usize>(t: [[Self; RV]; G], _: &()) -> [[Self; RV]; G] {
                let one = |t: $element| {
                    let t = t.max($lowest);
                    let n = t + $round;
                    let r = t - (n - $round);
                    let p = $poly.iter().rev().fold(0.0, |sum, c| sum * r + c);
                    <$element>::from_bits(p.to_bits().wrapping_add(n.to_bits() << $mantissa))
                };
                t.map(|pair| pair.map(|vector| Plain(vector.0.map(one))))
            }
        }
    };
}
plain!(f64, EXP2_F64, ROUND_F64, LOWEST_F64, 52);
plain!(f32, EXP2_F32, ROUND_F32, LOWEST_F32, 23);

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

#[cfg(target_arch = "x86_64")]
macro_rules! x86_vector {
    ($vector:ty, $element:ty, $lanes:literal, $poly:ident, $round:ident, $lowest:ident, $mantissa:literal,
     $set1:ident, $loadu:ident, $storeu:ident, $add:ident, $sub:ident, $mul:ident, $fmadd:ident, $max:ident,
     $to_bits:ident, $from_bits:ident, $shift:ident, $add_bits:ident) => {
        impl Vector for $vector {
            type E = $element;
            const LANES: usize = $lanes;
            #[inline(always)]
            unsafe fn splat(value: $element) -> Self {
                unsafe { $set1(value) }
            }
            #[inline(always)]
            unsafe fn load(from: *const $element) -> Self {
                unsafe { $loadu(from) }
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $element) {
                unsafe { $storeu(to, self) }
            }
            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                unsafe { $add(self, other) }
            }
            #[inline(always)]
            unsafe fn sub(self, other: Self) -> Self {
                unsafe { $sub(self, other) }
            }
            #[inline(always)]
            unsafe fn fma(self, b: Self, c: Self) -> Self {
                unsafe { $fmadd(self, b, c) }
            }
            #[inline(always)]
            unsafe fn minus_distance(self, a: Self, b: Self) -> Self {
                unsafe { $sub(self, $max($sub(a, b), $sub(b, a))) }
            }
            type Constants = ([Self; $poly.len()], Self, Self);
            #[inline(always)]
            unsafe fn constants() -> Self::Constants {
                // Hidden from the compiler, which would otherwise spread each number anew for every use.
                let (poly, lowest, round) = std::hint::black_box(&($poly, $lowest, $round));
                unsafe { (poly.map(|c| $set1(c)), $set1(*lowest), $set1(*round)) }
            }
            #[inline(always)]
            unsafe fn exp2<const G: usize>(
                t: [[Self; RV]; G],
                (poly, lowest, round): &Self::Constants,
            ) -> [[Self; RV]; G] {
                unsafe {
                    let mut n = t;
                    let mut p = t;
                    for (p, n) in p.as_flattened_mut().iter_mut().zip(n.as_flattened_mut()) {
                        let t = $max(*p, *lowest);
                        *n = $add(t, *round);
                        let r = $sub(t, $sub(*n, *round));
                        // Even and odd powers apart: two short chains instead of one long.
                        let square = $mul(r, r);
                        let mut even = poly[poly.len() - 1];
                        let mut odd = poly[poly.len() - 2];
                        for c in poly[..poly.len() - 2].rchunks_exact(2) {
                            even = $fmadd(even, square, c[1]);
                            odd = $fmadd(odd, square, c[0]);
                        }
                        even = $fmadd(even, square, poly[0]);
                        *p = $fmadd(odd, r, even);
                    }
                    for (p, n) in p.as_flattened_mut().iter_mut().zip(n.as_flattened()) {
                        // n's low bits, shifted into the exponent, multiply by 2^n.
                        *p = $from_bits($add_bits($to_bits(*p), $shift::<$mantissa>($to_bits(*n))));
                    }
                    p
                }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
x86_vector!(
    __m256d,
    f64,
    4,
    EXP2_F64,
    ROUND_F64,
    LOWEST_F64,
    52,
    _mm256_set1_pd,
    _mm256_loadu_pd,
    _mm256_storeu_pd,
    _mm256_add_pd,
    _mm256_sub_pd,
    _mm256_mul_pd,
    _mm256_fmadd_pd,
    _mm256_max_pd,
    _mm256_castpd_si256,
    _mm256_castsi256_pd,
    _mm256_slli_epi64,
    _mm256_add_epi64
);
#[cfg(target_arch = "x86_64")]
x86_vector!(
    __m256,
    f32,
    8,
    EXP2_F32,
    ROUND_F32,
    LOWEST_F32,
    23,
    _mm256_set1_ps,
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    _mm256_add_ps,
    _mm256_sub_ps,
    _mm256_mul_ps,
    _mm256_fmadd_ps,
    _mm256_max_ps,
    _mm256_castps_si256,
    _mm256_castsi256_ps,
    _mm256_slli_epi32,
    _mm256_add_epi32
);
#[cfg(target_arch = "x86_64")]
x86_vector!(
    __m512d,
    f64,
    8,
    EXP2_F64,
    ROUND_F64,
    LOWEST_F64,
    52,
    _mm512_set1_pd,
    _mm512_loadu_pd,
    _mm512_storeu_pd,
    _mm512_add_pd,
    _mm512_sub_pd,
    _mm512_mul_pd,
    _mm512_fmadd_pd,
    _mm512_max_pd,
    _mm512_castpd_si512,
    _mm512_castsi512_pd,
    _mm512_slli_epi64,
    _mm512_add_epi64
);
#[cfg(target_arch = "x86_64")]
x86_vector!(
    __m512,
    f32,
    16,
    EXP2_F32,
    ROUND_F32,
    LOWEST_F32,
    23,
    _mm512_set1_ps,
    _mm512_loadu_ps,
    _mm512_storeu_ps,
    _mm512_add_ps,
    _mm512_sub_ps,
    _mm512_mul_ps,
    _mm512_fmadd_ps,
    _mm512_max_ps,
    _mm512_castps_si512,
    _mm512_castsi512_ps,
    _mm512_slli_epi32,
    _mm512_add_epi32
);

tiles!(plain_f64, Plain<f64>, [], 4, 2, [1, 2, 3, 4]);
tiles!(plain_f32, Plain<f32>, [], 4, 2, [1, 2, 3, 4]);
#[cfg(target_arch = "x86_64")]
tiles!(avx2_f64, __m256d, ["avx2,fma"], 6, 2, [1, 2, 3, 4, 5, 6]);
#[cfg(target_arch = "x86_64")]
tiles!(avx2_f32, __m256, ["avx2,fma"], 6, 2, [1, 2, 3, 4, 5, 6]);
#[cfg(target_arch = "x86_64")]
tiles!(avx512_f64, __m512d, ["avx512f"], 12, 2, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
#[cfg(target_arch = "x86_64")]
tiles!(avx512_f32, __m512, ["avx512f"], 12, 2, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);

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
    fn tiles(level: Level) -> Tiles<f64> {
        match level {
            Level::Portable => plain_f64::TILES,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => avx2_f64::TILES,
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => avx512_f64::TILES,
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
    fn tiles(level: Level) -> Tiles<f32> {
        match level {
            Level::Portable => plain_f32::TILES,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => avx2_f32::TILES,
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => avx512_f32::TILES,
        }
    }
}
