//! Vectors of AVX2 and AVX-512. Callers must have enabled the instruction set: see [`Vector`].

use std::arch::x86_64::*;

use super::exp2::*;
use super::{Exp2, RV, Vector};

/// Gives the intrinsics of each vector type the same names.
macro_rules! instructions {
    ($module:ident: $($intrinsic:ident as $name:ident),* $(,)?) => {
        mod $module {
            pub(super) use std::arch::x86_64::{$($intrinsic as $name),*};
        }
    };
}

instructions!(double_4:
    _mm256_set1_pd as splat, _mm256_loadu_pd as load, _mm256_storeu_pd as store,
    _mm256_add_pd as add, _mm256_sub_pd as sub, _mm256_mul_pd as mul, _mm256_div_pd as div, _mm256_fmadd_pd as fma, _mm256_max_pd as max,
    _mm256_castpd_si256 as to_bits, _mm256_castsi256_pd as from_bits, _mm256_slli_epi64 as shift, _mm256_add_epi64 as add_bits,
);
instructions!(single_8:
    _mm256_set1_ps as splat, _mm256_loadu_ps as load, _mm256_storeu_ps as store,
    _mm256_add_ps as add, _mm256_sub_ps as sub, _mm256_mul_ps as mul, _mm256_div_ps as div, _mm256_fmadd_ps as fma, _mm256_max_ps as max,
    _mm256_castps_si256 as to_bits, _mm256_castsi256_ps as from_bits, _mm256_slli_epi32 as shift, _mm256_add_epi32 as add_bits,
);
instructions!(double_8:
    _mm512_set1_pd as splat, _mm512_loadu_pd as load, _mm512_storeu_pd as store,
    _mm512_add_pd as add, _mm512_sub_pd as sub, _mm512_mul_pd as mul, _mm512_div_pd as div, _mm512_fmadd_pd as fma, _mm512_max_pd as max,
    _mm512_castpd_si512 as to_bits, _mm512_castsi512_pd as from_bits, _mm512_slli_epi64 as shift, _mm512_add_epi64 as add_bits,
);
instructions!(single_16:
    _mm512_set1_ps as splat, _mm512_loadu_ps as load, _mm512_storeu_ps as store,
    _mm512_add_ps as add, _mm512_sub_ps as sub, _mm512_mul_ps as mul, _mm512_div_ps as div, _mm512_fmadd_ps as fma, _mm512_max_ps as max,
    _mm512_castps_si512 as to_bits, _mm512_castsi512_ps as from_bits, _mm512_slli_epi32 as shift, _mm512_add_epi32 as add_bits,
);

macro_rules! vector {
    ($vector:ty, $element:ty, $lanes:literal, $op:ident, $interleave:ident) => {
        impl Vector for $vector {
            type E = $element;
            const LANES: usize = $lanes;
            #[inline(always)]
            unsafe fn splat(value: $element) -> Self {
                // SAFETY: the instruction set is enabled.
                unsafe { $op::splat(value) }
            }
            #[inline(always)]
            unsafe fn load(from: *const $element) -> Self {
                // SAFETY: the instruction set is enabled, and the caller guarantees a vector of values there.
                unsafe { $op::load(from) }
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $element) {
                // SAFETY: the instruction set is enabled, and the caller guarantees room for a vector there.
                unsafe { $op::store(to, self) }
            }
            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                // SAFETY: the instruction set is enabled.
                unsafe { $op::add(self, other) }
            }
            #[inline(always)]
            unsafe fn sub(self, other: Self) -> Self {
                // SAFETY: the instruction set is enabled.
                unsafe { $op::sub(self, other) }
            }
            #[inline(always)]
            unsafe fn mul(self, other: Self) -> Self {
                // SAFETY: the instruction set is enabled.
                unsafe { $op::mul(self, other) }
            }
            #[inline(always)]
            unsafe fn div(self, other: Self) -> Self {
                // SAFETY: the instruction set is enabled.
                unsafe { $op::div(self, other) }
            }
            #[inline(always)]
            unsafe fn max_size(self, other: Self) -> Self {
                // SAFETY: the instruction set is enabled.
                unsafe { $op::max(self, $op::max(other, $op::sub($op::splat(0.0), other))) }
            }
            #[inline(always)]
            unsafe fn interleave(self, other: Self) -> (Self, Self) {
                // SAFETY: the instruction set is enabled.
                unsafe { $interleave(self, other) }
            }
            #[inline(always)]
            unsafe fn fma(self, b: Self, c: Self) -> Self {
                // SAFETY: the instruction set is enabled.
                unsafe { $op::fma(self, b, c) }
            }
            #[inline(always)]
            unsafe fn minus_distance(self, a: Self, b: Self) -> Self {
                // SAFETY: the instruction set is enabled.
                unsafe { $op::sub(self, $op::max($op::sub(a, b), $op::sub(b, a))) }
            }
        }
    };
}

vector!(__m256d, f64, 4, double_4, interleave_double_4);
vector!(__m256, f32, 8, single_8, interleave_single_8);
vector!(__m512d, f64, 8, double_8, interleave_double_8);
vector!(__m512, f32, 16, single_16, interleave_single_16);

/// Interleaves within the 128-bit halves of the vectors, then exchanges halves.
macro_rules! interleave_halves {
    ($name:ident, $vector:ty, $low:ident, $high:ident, $halves:ident) => {
        #[inline(always)]
        unsafe fn $name(a: $vector, b: $vector) -> ($vector, $vector) {
            // SAFETY: the instruction set is enabled.
            unsafe {
                let (low, high) = ($low(a, b), $high(a, b));
                ($halves::<0x20>(low, high), $halves::<0x31>(low, high))
            }
        }
    };
}

interleave_halves!(interleave_double_4, __m256d, _mm256_unpacklo_pd, _mm256_unpackhi_pd, _mm256_permute2f128_pd);
interleave_halves!(interleave_single_8, __m256, _mm256_unpacklo_ps, _mm256_unpackhi_ps, _mm256_permute2f128_ps);

#[inline(always)]
unsafe fn interleave_double_8(a: __m512d, b: __m512d) -> (__m512d, __m512d) {
    // SAFETY: the instruction set is enabled.
    unsafe {
        let low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
        let high = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
        (_mm512_permutex2var_pd(a, low, b), _mm512_permutex2var_pd(a, high, b))
    }
}

#[inline(always)]
unsafe fn interleave_single_16(a: __m512, b: __m512) -> (__m512, __m512) {
    // SAFETY: the instruction set is enabled.
    unsafe {
        let low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        let high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
        (_mm512_permutex2var_ps(a, low, b), _mm512_permutex2var_ps(a, high, b))
    }
}

macro_rules! by_polynomial {
    ($vector:ty, $op:ident, $poly:ident, $round:ident, $lowest:ident, $mantissa:literal) => {
        impl Exp2 for $vector {
            type Constants = ([Self; $poly.len()], Self, Self);
            #[inline(always)]
            unsafe fn constants() -> Self::Constants {
                // Hidden from the compiler, which would otherwise broadcast each constant again at every use.
                let (poly, lowest, round) = std::hint::black_box(&($poly, $lowest, $round));
                // SAFETY: the instruction set is enabled.
                unsafe { (poly.map(|c| $op::splat(c)), $op::splat(*lowest), $op::splat(*round)) }
            }
            #[inline(always)]
            unsafe fn exp2<const G: usize>(
                t: [[Self; RV]; G],
                (poly, lowest, round): &Self::Constants,
            ) -> [[Self; RV]; G] {
                // SAFETY: the instruction set is enabled.
                unsafe {
                    let mut n = t;
                    let mut p = t;
                    for (p, n) in p.as_flattened_mut().iter_mut().zip(n.as_flattened_mut()) {
                        let t = $op::max(*p, *lowest);
                        *n = $op::add(t, *round);
                        let r = $op::sub(t, $op::sub(*n, *round));
                        // Even and odd powers separately: two short dependency chains instead of a long one.
                        let square = $op::mul(r, r);
                        let mut even = poly[poly.len() - 1];
                        let mut odd = poly[poly.len() - 2];
                        for c in poly[..poly.len() - 2].rchunks_exact(2) {
                            even = $op::fma(even, square, c[1]);
                            odd = $op::fma(odd, square, c[0]);
                        }
                        even = $op::fma(even, square, poly[0]);
                        *p = $op::fma(odd, r, even);
                    }
                    for (p, n) in p.as_flattened_mut().iter_mut().zip(n.as_flattened()) {
                        // Adding the low bits of n to the exponent multiplies by 2^n.
                        *p = $op::from_bits($op::add_bits($op::to_bits(*p), $op::shift::<$mantissa>($op::to_bits(*n))));
                    }
                    p
                }
            }
        }
    };
}

by_polynomial!(__m256d, double_4, EXP2_F64, ROUND_F64, LOWEST_F64, 52);
by_polynomial!(__m256, single_8, EXP2_F32, ROUND_F32, LOWEST_F32, 23);
// A table would not make these faster, and its rounding error would be the same for all values that share an entry, so
// that sums over many rows would not average it out.
by_polynomial!(__m512, single_16, EXP2_F32, ROUND_F32, LOWEST_F32, 23);

/// The lowest four bits of n select the table entry; n shifted by 48 is added to the exponent.
impl Exp2 for __m512d {
    type Constants = ([Self; 2], [Self; NEAR_F64.len()], Self, Self);
    #[inline(always)]
    unsafe fn constants() -> Self::Constants {
        // Hidden from the compiler, as above.
        let (table, poly, lowest, round) = std::hint::black_box(&(TABLE_F64, NEAR_F64, LOWEST_F64, ROUND_F64 / 16.0));
        // SAFETY: the instruction set is enabled, and the table fills two vectors.
        unsafe {
            let table = [double_8::load(table.as_ptr()), double_8::load(table.as_ptr().add(8))];
            (table, poly.map(|c| double_8::splat(c)), double_8::splat(*lowest), double_8::splat(*round))
        }
    }
    #[inline(always)]
    unsafe fn exp2<const G: usize>(
        mut t: [[Self; RV]; G],
        (table, poly, lowest, round): &Self::Constants,
    ) -> [[Self; RV]; G] {
        // SAFETY: the instruction set is enabled.
        unsafe {
            for t in t.as_flattened_mut() {
                *t = double_8::max(*t, *lowest);
                let n = double_8::add(*t, *round);
                let r = double_8::sub(*t, double_8::sub(n, *round));
                let power = double_8::to_bits(_mm512_permutex2var_pd(table[0], double_8::to_bits(n), table[1]));
                let power = double_8::from_bits(double_8::add_bits(power, double_8::shift::<48>(double_8::to_bits(n))));
                let q = poly[..5].iter().rev().fold(poly[5], |q, c| double_8::fma(q, r, *c));
                *t = double_8::fma(double_8::mul(power, r), q, power);
            }
            t
        }
    }
}
