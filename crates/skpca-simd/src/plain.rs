//! Portable vectors: arrays, vectorised by the compiler.

use super::exp2::{EXP2_F32, EXP2_F64, LOWEST_F32, LOWEST_F64, ROUND_F32, ROUND_F64};
use super::{Exp2, RV, Vector};

/// Four numbers.
#[derive(Clone, Copy)]
pub(super) struct Plain<E>([E; 4]);

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
                // SAFETY: the caller guarantees four values there.
                Plain(unsafe { from.cast::<[$element; 4]>().read_unaligned() })
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $element) {
                // SAFETY: the caller guarantees room for four values there.
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
            unsafe fn mul(self, other: Self) -> Self {
                Plain(std::array::from_fn(|i| self.0[i] * other.0[i]))
            }
            #[inline(always)]
            unsafe fn div(self, other: Self) -> Self {
                Plain(std::array::from_fn(|i| self.0[i] / other.0[i]))
            }
            #[inline(always)]
            unsafe fn max_size(self, other: Self) -> Self {
                Plain(std::array::from_fn(|i| self.0[i].max(other.0[i].abs())))
            }
            #[inline(always)]
            unsafe fn interleave(self, other: Self) -> (Self, Self) {
                let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
                (Plain([a, e, b, f]), Plain([c, g, d, h]))
            }
            #[inline(always)]
            unsafe fn fma(self, b: Self, c: Self) -> Self {
                // Not fused, since `mul_add` is a library call without the instruction.
                Plain(std::array::from_fn(|i| self.0[i] * b.0[i] + c.0[i]))
            }
            #[inline(always)]
            unsafe fn minus_distance(self, a: Self, b: Self) -> Self {
                Plain(std::array::from_fn(|i| self.0[i] - (a.0[i] - b.0[i]).abs()))
            }
        }

        impl Exp2 for Plain<$element> {
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
