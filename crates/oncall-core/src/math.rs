//! The only place that calls transcendental functions.
//!
//! The platform's `exp`, `ln`, `sin` and `cos` differ in the last bit between systems, and one bit
//! is enough to break a replay. These are made of additions, multiplications, divisions and bit
//! operations only, which IEEE 754 fixes to the last bit, never fused; so they are the same on every
//! machine, and the same whether a compiler works them out one by one or many at a time. Nothing in
//! them branches on a value except in special cases that no world reaches (see each function), so
//! that a loop over them becomes a loop of vector instructions.
//!
//! **Error bounds**, in units in the last place of the exact value, measured against 40-digit values
//! (`tests/data/math.csv`) and against `libm` on a million points each: [`exp`] and [`ln`] stay below 1,
//! [`ln_1p`], [`sin`] and [`cos`](sin_cos) below 1.5. Coefficients are near-minimax (Chebyshev interpolation
//! in 50 digits, `tests/reference/math_coefficients.py`).
#![expect(clippy::inline_always, reason = "the body must be compiled for each set of instructions")]
#![cfg_attr(not(test), expect(clippy::float_cmp, reason = "halves are exact"))]

use std::f64::consts::LOG2_E;

/// Adding and taking away this rounds to a whole number, half to even; the low bits of the sum are
/// that number.
const ROUND: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52
/// 2^52: a double from here on is a whole number, and its low bits are it.
const WHOLE: f64 = 4_503_599_627_370_496.0;
const WHOLE_BITS: u64 = 0x4330_0000_0000_0000;
/// ln 2 in two parts, the first with trailing zeros, so that small multiples of it are exact.
const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
/// pi/2 in three parts, the first two with trailing zeros.
const HALF_PI_HIGH: f64 = 1.570_796_326_734_125_6;
const HALF_PI_MID: f64 = 6.077_100_506_303_966e-11;
const HALF_PI_LOW: f64 = 2.022_266_248_795_950_6e-21;
/// Beyond this angle the reduction above loses digits.
const ANGLE_MAX: f64 = 1e6;
/// Bits of sqrt(1/2), where the mantissa of a logarithm is cut, and of 1.
const SQRT_HALF_BITS: u64 = 0x3fe6_a09e_667f_3bcd;
const ONE_BITS: u64 = 0x3ff0_0000_0000_0000;
const EXPONENT: u64 = 0xfff0_0000_0000_0000;

/// Horner's rule, lowest coefficient first.
#[inline(always)]
fn polynomial<const N: usize>(x: f64, coefficients: &[f64; N]) -> f64 {
    let mut sum = coefficients[N - 1];
    let mut index = N - 1;
    while index > 0 {
        index -= 1;
        sum = sum * x + coefficients[index];
    }
    sum
}

/// The smaller one; the second if either is no number. One instruction, which `f64::min` is not.
#[inline(always)]
pub fn min(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// The greater one; the second if either is no number. One instruction, which `f64::max` is not.
#[inline(always)]
pub fn max(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// `e^x`; 0 below -708, where the result would no longer be a normal number.
#[inline(always)]
pub fn exp(x: f64) -> f64 {
    // e^r = 1 + r + r^2 P(r) on |r| <= ln(2) / 2.
    const P: [f64; 10] = [
        0.500_000_000_000_000_1,
        0.166_666_666_666_666_69,
        0.041_666_666_666_624_13,
        0.008_333_333_333_330_062,
        0.001_388_888_891_721_371_7,
        0.000_198_412_698_630_536_18,
        2.480_152_129_595_437_6e-5,
        2.755_726_845_999_706_4e-6,
        2.762_008_844_540_974_6e-7,
        2.510_038_549_551_032e-8,
    ];
    let shifted = x * LOG2_E + ROUND;
    let k = shifted - ROUND;
    let r = (x - k * LN_2_HIGH) - k * LN_2_LOW;
    let y = 1.0 + (r + r * r * polynomial(r, &P));
    // 2^(k - 1), then twice that: 2^1024 is no double, but results just below it are.
    let half = f64::from_bits(shifted.to_bits().wrapping_add(1022) << 52);
    let y = y * half * 2.0;
    let y = if x < -708.0 { 0.0 } else { y };
    if x > 709.8 { f64::INFINITY } else { y }
}

/// A logarithm's argument `u = 2^k m`, `m` in [sqrt(1/2), sqrt(2)): (k, m, 2^-k).
#[inline(always)]
fn split(u: f64) -> (f64, f64, f64) {
    let bits = u.to_bits();
    let biased = bits.wrapping_add(ONE_BITS - SQRT_HALF_BITS);
    let exponent = biased & EXPONENT;
    let m = f64::from_bits(bits.wrapping_sub(exponent).wrapping_add(ONE_BITS));
    let k = f64::from_bits((biased >> 52) | WHOLE_BITS) - (WHOLE + 1023.0);
    let inverse = f64::from_bits((2 * ONE_BITS).wrapping_sub(exponent));
    (k, m, inverse)
}

/// `k ln 2 + ln(1 + f)` for `f` in [sqrt(1/2) - 1, sqrt(2) - 1], after fdlibm's scheme:
/// `ln(1 + f) = f - (f^2/2 - s (f^2/2 + R(s^2)))`, `s = f / (2 + f)`.
#[inline(always)]
fn ln_parts(k: f64, f: f64) -> f64 {
    const R: [f64; 7] = [
        0.666_666_666_666_667,
        0.399_999_999_998_994_44,
        0.285_714_286_260_032_7,
        0.222_222_111_302_598_78,
        0.181_828_894_556_749_47,
        0.153_317_106_182_107_73,
        0.146_165_854_248_886_23,
    ];
    let s = f / (2.0 + f);
    let z = s * s;
    let half = 0.5 * f * f;
    let rest = s * (half + z * polynomial(z, &R));
    k * LN_2_HIGH - ((half - (rest + k * LN_2_LOW)) - f)
}

/// Natural logarithm of a positive, normal, finite number; of anything else, some number.
#[inline(always)]
pub fn ln_normal(x: f64) -> f64 {
    let (k, m, _) = split(x);
    ln_parts(k, m - 1.0)
}

/// Natural logarithm.
#[inline]
pub fn ln(x: f64) -> f64 {
    if (f64::MIN_POSITIVE..f64::INFINITY).contains(&x) { ln_normal(x) } else { libm::log(x) }
}

/// `ln(u + lost)` of a positive, normal, finite number and a part of it too small for its digits.
#[inline(always)]
pub fn ln_of_parts(u: f64, lost: f64) -> f64 {
    let (k, m, inverse) = split(u);
    ln_parts(k, (m - 1.0) + lost * inverse)
}

/// `ln(1 + x)`, exact near zero, for a finite `x` above -1 by more than 1e-300; of anything else,
/// some number.
#[inline(always)]
pub fn ln_1p_normal(x: f64) -> f64 {
    let u = 1.0 + x;
    ln_of_parts(u, x - (u - 1.0))
}

/// `ln(1 + x)`, exact near zero.
#[inline]
pub fn ln_1p(x: f64) -> f64 {
    if x > -1.0 && x < f64::INFINITY { ln_1p_normal(x) } else { libm::log1p(x) }
}

/// `e^x - 1`, exact near zero.
#[inline]
pub fn exp_m1(x: f64) -> f64 {
    libm::expm1(x)
}

/// Sine and cosine of an angle of at most a million radians; of anything else, some numbers.
#[inline(always)]
pub fn sin_cos_normal(x: f64) -> (f64, f64) {
    // sin r = r + r^3 S(r^2), cos r = 1 - r^2/2 + r^4 C(r^2) on |r| <= pi/4.
    const S: [f64; 6] = [
        -0.166_666_666_666_666_66,
        0.008_333_333_333_330_946,
        -0.000_198_412_698_367_549_7,
        2.755_731_610_068_312e-6,
        -2.505_113_145_544_742_8e-8,
        1.591_810_123_167_728e-10,
    ];
    const C: [f64; 6] = [
        0.041_666_666_666_666_664,
        -0.001_388_888_888_888_739_5,
        2.480_158_729_876_343_3e-5,
        -2.755_731_727_056_038_5e-7,
        2.087_614_602_470_193e-9,
        -1.138_261_486_943_412_8e-11,
    ];
    let shifted = x * std::f64::consts::FRAC_2_PI + ROUND;
    let n = shifted - ROUND;
    let r = ((x - n * HALF_PI_HIGH) - n * HALF_PI_MID) - n * HALF_PI_LOW;
    let z = r * r;
    let sin = r + r * z * polynomial(z, &S);
    let half = 0.5 * z;
    let head = 1.0 - half;
    // What 1 - z/2 lost comes back with the rest of the series.
    let cos = head + (((1.0 - head) - half) + z * z * polynomial(z, &C));
    let quadrant = shifted.to_bits();
    let (sine, cosine) = if quadrant & 1 == 0 { (sin, cos) } else { (cos, sin) };
    let sine_sign = (quadrant & 2) << 62;
    let cosine_sign = (quadrant.wrapping_add(1) & 2) << 62;
    (f64::from_bits(sine.to_bits() ^ sine_sign), f64::from_bits(cosine.to_bits() ^ cosine_sign))
}

/// Sine and cosine of an angle in radians.
#[inline]
pub fn sin_cos(x: f64) -> (f64, f64) {
    if x.abs() <= ANGLE_MAX { sin_cos_normal(x) } else { libm::sincos(x) }
}

/// Sine of an angle in radians.
#[inline]
pub fn sin(x: f64) -> f64 {
    sin_cos(x).0
}

/// Square root; correctly rounded by IEEE 754, so the hardware's will do.
#[inline(always)]
pub fn sqrt(x: f64) -> f64 {
    x.sqrt()
}

/// Whole numbers of [0, 2^51): the nearest one, half up. Below 0 it is 0. The hardware's
/// instructions for this differ between sets of them, and some sets have none.
#[inline(always)]
pub fn round(x: f64) -> f64 {
    let x = max(x, 0.0);
    let even = (x + WHOLE) - WHOLE;
    even + if x - even == 0.5 { 1.0 } else { 0.0 }
}

/// The least whole number that is not less, of [0, 2^51); below 0 it is 0.
#[inline(always)]
pub fn ceil(x: f64) -> f64 {
    let x = max(x, 0.0);
    let even = (x + WHOLE) - WHOLE;
    even + if even < x { 1.0 } else { 0.0 }
}

/// The greatest whole number that is not greater, of [0, 2^51); below 0 it is 0.
#[inline(always)]
pub fn floor(x: f64) -> f64 {
    let x = max(x, 0.0);
    let even = (x + WHOLE) - WHOLE;
    even - if even > x { 1.0 } else { 0.0 }
}

/// A whole number of [0, 2^51), as an integer.
#[inline(always)]
pub fn to_whole(x: f64) -> u64 {
    (x + WHOLE).to_bits() & !EXPONENT
}

/// An integer below 2^51, as a number.
#[inline(always)]
pub fn from_whole(n: u64) -> f64 {
    f64::from_bits(n | WHOLE_BITS) - WHOLE
}

/// `ln(1 + x)` in single precision for `x` of [0, 1e30], within 2 units in the last place: for
/// observations, which have no more digits.
#[inline(always)]
pub fn ln_1p_single(x: f32) -> f32 {
    // ln(1 + f) = f - f^2/2 + f^3 P(f).
    const P: [f32; 8] = [
        0.333_333_3,
        -0.250_003_06,
        0.200_010_45,
        -0.166_412_82,
        0.142_144_96,
        -0.129_981_84,
        0.126_223_2,
        -0.079_027_44,
    ];
    const SQRT_HALF: u32 = 0x3f35_04f3;
    const ONE: u32 = 0x3f80_0000;
    const EXPONENT: u32 = 0xff80_0000;
    let u = 1.0 + x;
    let lost = x - (u - 1.0);
    let bits = u.to_bits();
    let biased = bits.wrapping_add(ONE - SQRT_HALF);
    let exponent = biased & EXPONENT;
    let m = f32::from_bits(bits.wrapping_sub(exponent).wrapping_add(ONE));
    let k = ((biased >> 23) as i32 - 127) as f32;
    let f = (m - 1.0) + lost * f32::from_bits((2 * ONE).wrapping_sub(exponent));
    let mut sum = P[7];
    let mut index = 7;
    while index > 0 {
        index -= 1;
        sum = sum * f + P[index];
    }
    let square = f * f;
    k * std::f32::consts::LN_2 + (f - (0.5 * square - square * f * sum))
}

/// Turns -0.0 into +0.0, so that two equal states have equal bits.
///
/// `min`, `max` and `clamp` may return either zero; a digest sees the difference.
#[inline(always)]
pub fn canonical_zero(x: f64) -> f64 {
    x + 0.0
}

#[cfg(test)]
#[path = "math_tests.rs"]
mod tests;
