//! The only place that calls transcendental functions.
//!
//! The platform's `exp`, `ln`, `sin` and `cos` differ in the last bit between systems, and one bit
//! is enough to break a replay. These come from the `libm` crate, which is the same code everywhere.

/// `e^x`.
#[inline]
pub fn exp(x: f64) -> f64 {
    libm::exp(x)
}

/// Natural logarithm.
#[inline]
pub fn ln(x: f64) -> f64 {
    libm::log(x)
}

/// `ln(1 + x)`, exact near zero.
#[inline]
pub fn ln_1p(x: f64) -> f64 {
    libm::log1p(x)
}

/// `e^x - 1`, exact near zero.
#[inline]
pub fn exp_m1(x: f64) -> f64 {
    libm::expm1(x)
}

/// Sine of an angle in radians.
#[inline]
pub fn sin(x: f64) -> f64 {
    libm::sin(x)
}

/// Sine and cosine of an angle in radians.
#[inline]
pub fn sin_cos(x: f64) -> (f64, f64) {
    libm::sincos(x)
}

/// Square root; correctly rounded by IEEE 754, so the hardware's will do.
#[inline]
pub fn sqrt(x: f64) -> f64 {
    x.sqrt()
}

/// Turns -0.0 into +0.0, so that two equal states have equal bits.
///
/// `min`, `max` and `clamp` may return either zero; a digest sees the difference.
#[inline]
pub fn canonical_zero(x: f64) -> f64 {
    x + 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_zero_becomes_positive() {
        assert_eq!(canonical_zero(-0.0).to_bits(), 0.0_f64.to_bits());
        assert_eq!(canonical_zero(-1.5).to_bits(), (-1.5_f64).to_bits());
    }

    /// Known bits: a change of the libm crate that moves a trajectory must be noticed here first.
    #[test]
    fn known_answers() {
        assert_eq!(exp(1.0).to_bits(), 0x4005_bf0a_8b14_576a); // one above the nearest double to e
        assert_eq!(ln(10.0).to_bits(), std::f64::consts::LN_10.to_bits());
        assert_eq!(exp(-1.0 / 30.0), 0.967_216_100_482_005_9);
        assert_eq!(ln(100.0), 4.605_170_185_988_092);
        assert_eq!(sin(0.5), 0.479_425_538_604_203);
    }
}
