//! Constants for 2^t = 2^n · 2^r, where n is a multiple of 1 or 1/16.
//!
//! ```text
//! n an integer   2^r on |r| ≤ ½ by a polynomial, 2^n by its exponent bits
//! n in 16ths     2^r on |r| ≤ 1/32 by a shorter polynomial, 2^n = 2^(j/16) · 2^e by a table and the exponent bits
//!                (AVX-512 in 64 bits only)
//! ```

/// 2^r on |r| ≤ ½ as 1 + r·s(r), minimax in relative error: 3.0e-16 (found by Remez exchange).
pub(super) const EXP2_F64: [f64; 11] = [
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
pub(super) const EXP2_F32: [f32; 7] =
    [1.0, 0.693_147_2, 0.240_226_53, 0.055_503_106, 0.009_617_693, 0.001_340_664_4, 0.000_155_946_78];

/// Adding this rounds to an integer, which is then in the low bits.
pub(super) const ROUND_F64: f64 = 1.5 * (1u64 << 52) as f64;
pub(super) const ROUND_F32: f32 = 1.5 * (1u32 << 23) as f32;
pub(super) const LOWEST_F64: f64 = -1022.0;
pub(super) const LOWEST_F32: f32 = -126.0;

/// 2^(j/16), which AVX-512 looks up in two registers, so that a shorter polynomial suffices.
#[allow(clippy::approx_constant)] // the middle one is √2
const POWERS: [f64; 16] = [
    1.0,
    1.044_273_782_427_413_8,
    1.090_507_732_665_257_7,
    1.138_788_634_756_691_6,
    1.189_207_115_002_721,
    1.241_857_812_073_484,
    1.296_839_554_651_009_6,
    1.354_255_546_936_892_7,
    1.414_213_562_373_095_1,
    1.476_826_145_939_499_3,
    1.542_210_825_407_940_7,
    1.610_490_331_949_254_3,
    1.681_792_830_507_429,
    1.756_252_160_373_299_5,
    1.834_008_086_409_342_4,
    1.915_206_561_397_147_4,
];

/// The same minus j << 48, which shifting n into the exponent adds back.
pub(super) const TABLE_F64: [f64; 16] = {
    let (mut table, mut j) = (POWERS, 0);
    while j < 16 {
        table[j] = f64::from_bits(POWERS[j].to_bits() - ((j as u64) << 48));
        j += 1;
    }
    table
};

/// Coefficients of q(r) ≈ (2^r − 1) / r on |r| ≤ 1/32; the error of 1 + r·q(r) is below 9e-18.
pub(super) const NEAR_F64: [f64; 6] = [
    0.693_147_180_559_946_8,
    0.240_226_506_959_101_67,
    0.055_504_108_651_954_584,
    0.009_618_129_102_053_624,
    0.001_333_382_023_281_516_2,
    0.000_154_042_116_993_352_25,
];
