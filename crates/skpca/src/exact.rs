//! A sum that does not depend on its order: every number is added, as an integer, to the limb for its exponent.
//!
//! ```text
//! v = ± mantissa · 2^(e − 1075)      limbs[e / 32] += ± mantissa · 2^(e mod 32)
//! ```
//!
//! The scaling of columns and the bandwidth are computed from such sums, so that methods see the same bits wherever the
//! rows are and however they are split.

/// Bits from one limb to the next.
const BITS: usize = 32;
/// Limbs for all exponents, and two for carries beyond them.
const LIMBS: usize = 2048 / BITS + 2;

/// An exact running sum of up to 2⁴³ numbers. An infinite number counts as 2¹⁰²⁴, so that the sum overflows.
#[derive(Clone, Debug)]
pub(crate) struct ExactSum {
    limbs: [i128; LIMBS],
}

impl Default for ExactSum {
    fn default() -> ExactSum {
        ExactSum { limbs: [0; LIMBS] }
    }
}

impl ExactSum {
    pub(crate) const LENGTH: usize = LIMBS;

    pub(crate) fn add(&mut self, value: f64) {
        let bits = value.to_bits();
        let (exponent, fraction) = ((bits >> 52 & 0x7ff) as usize, bits & ((1 << 52) - 1));
        // Subnormal numbers have no implicit leading one, and the exponent of the smallest normal numbers.
        let mantissa = i128::from(if exponent == 0 { fraction } else { fraction | 1 << 52 });
        let (exponent, signed) = (exponent.max(1), if value.is_sign_negative() { -mantissa } else { mantissa });
        self.limbs[exponent / BITS] += signed << (exponent % BITS);
    }

    pub(crate) fn merge(&mut self, other: &ExactSum) {
        self.limbs.iter_mut().zip(&other.limbs).for_each(|(a, b)| *a += b);
    }

    /// Returns the sum, rounded.
    pub(crate) fn value(&self) -> f64 {
        let mut limbs = self.carried();
        let negative = limbs[LIMBS - 1] < 0;
        if negative {
            limbs = ExactSum { limbs: limbs.map(|limb| -limb) }.carried();
        }
        let term = |(k, limb): (usize, &i128)| {
            let power = (BITS * k) as i32 - 1075;
            // In two steps, because the power itself may overflow or underflow.
            *limb as f64 * 2.0_f64.powi(power / 2) * 2.0_f64.powi(power - power / 2)
        };
        let value: f64 = limbs.iter().enumerate().rev().map(term).sum();
        if negative { -value } else { value }
    }

    /// Returns the sum as integer-valued numbers that can be sent to another machine.
    pub(crate) fn numbers(&self) -> Vec<f64> {
        self.carried().iter().map(|limb| *limb as f64).collect()
    }

    /// Restores a sum from its [`ExactSum::LENGTH`] numbers.
    pub(crate) fn of(numbers: &[f64]) -> ExactSum {
        let mut sum = ExactSum::default();
        sum.limbs.iter_mut().zip(numbers).for_each(|(limb, number)| *limb = *number as i128);
        sum
    }

    /// Returns the limbs after carrying: each in 0..2³² except the last, which has the sign.
    fn carried(&self) -> [i128; LIMBS] {
        let mut limbs = self.limbs;
        for k in 0..LIMBS - 1 {
            let carry = limbs[k] >> BITS;
            limbs[k] -= carry << BITS;
            limbs[k + 1] += carry;
        }
        limbs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Random, Stream};

    fn sum(values: &[f64]) -> ExactSum {
        let mut sum = ExactSum::default();
        values.iter().for_each(|v| sum.add(*v));
        sum
    }

    #[test]
    fn no_digit_is_lost_in_any_order() {
        assert_eq!(sum(&[]).value(), 0.0);
        assert_eq!(sum(&[1e300, 1.0, -1e300]).value(), 1.0);
        assert_eq!(sum(&[-1e-300, 3.0, -5.0]).value(), -2.0);
        assert_eq!(sum(&[0.1; 10]).value(), 1.0);
        assert_eq!(sum(&[1e200, 1e-200, -1e200, -1e-200, -0.0]).value(), 0.0);
        let mut random = Random::new(2, Stream::Tests);
        let mut values: Vec<f64> = (0..2000).map(|_| random.normal() * 10.0_f64.powf(20.0 * random.normal())).collect();
        let whole = sum(&values);
        random.shuffle(&mut values);
        let (first, second) = values.split_at(700);
        let mut parts = ExactSum::of(&sum(second).numbers());
        parts.merge(&sum(first));
        assert_eq!(parts.value().to_bits(), whole.value().to_bits());
        values.extend(values.clone().iter().map(|v| -v));
        assert_eq!(sum(&values).value(), 0.0);
    }

    #[test]
    fn sum_equals_the_ordinary_one() {
        let mut random = Random::new(3, Stream::Tests);
        let values: Vec<f64> = (0..1000).map(|_| random.uniform()).collect();
        let (plain, exact) = (values.iter().sum::<f64>(), sum(&values).value());
        assert!((plain / exact - 1.0).abs() < 1e-13 && sum(&[exact]).value() == exact);
        for value in [f64::MAX, f64::MIN_POSITIVE, -1.5, 1e-290, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(sum(&[value]).value(), value);
        }
    }
}
