//! The functions of `math` against 40-digit values, against `libm`, and at their edges.

use super::*;
use crate::streams::scramble;

/// A small sequence of uniform numbers in [0, 1).
fn shares(count: u64) -> impl Iterator<Item = f64> {
    (0..count).map(|i| (scramble(i.wrapping_mul(0x9e37_79b9)) >> 11) as f64 / 2_f64.powi(53))
}

/// Distance in units in the last place of the expected value.
fn ulps(found: f64, expected: f64) -> f64 {
    let unit = f64::from_bits(expected.abs().to_bits() + 1) - expected.abs();
    (found - expected).abs() / unit
}

/// The rows of a function: argument, and its value as a double and what the double leaves of it.
fn rows(name: &str) -> Vec<(f64, f64, f64)> {
    let text = include_str!("../../../tests/data/math.csv");
    let rows: Vec<_> = text
        .lines()
        .filter(|line| line.split(',').next() == Some(name))
        .map(|line| {
            let mut cells = line.split(',').skip(1).map(|cell| cell.parse().unwrap());
            let mut next = || cells.next().unwrap();
            (next(), next(), next())
        })
        .collect();
    assert!(rows.len() >= 400, "{name}: {} rows", rows.len());
    rows
}

#[test]
fn within_the_bounds_of_forty_digits() {
    type Function = fn(f64) -> f64;
    let functions: [(&str, Function, f64); 5] = [
        ("exp", exp, 1.0),
        ("ln", ln, 1.0),
        ("ln_1p", ln_1p, 1.5),
        ("sin", sin, 1.5),
        ("cos", |x| sin_cos(x).1, 1.5),
    ];
    for (name, function, bound) in functions {
        let mut worst = 0.0_f64;
        for (x, high, low) in rows(name) {
            let unit = f64::from_bits(high.abs().to_bits() + 1) - high.abs();
            let error = ((function(x) - high) - low).abs() / unit;
            assert!(error < bound, "{name}({x:e}): {error} units");
            worst = worst.max(error);
        }
        println!("{name}: {worst:.3} units in the last place");
    }
}

#[test]
fn close_to_libm_everywhere() {
    for share in shares(1_000_000) {
        let x = (share - 0.5) * 1414.0;
        assert!(ulps(exp(x), libm::exp(x)) <= 1.0, "exp({x})");
        let x = libm::exp((share - 0.5) * 1400.0);
        assert!(ulps(ln(x), libm::log(x)) <= 1.0, "ln({x:e})");
        let x = 0.5 + share;
        assert!(ulps(ln(x), libm::log(x)) <= 1.0, "ln({x:e})");
        let x = libm::expm1((share - 0.4) * 80.0);
        assert!(ulps(ln_1p(x), libm::log1p(x)) <= 2.0, "ln_1p({x:e})");
        let x = (share - 0.5) * 50.0;
        let ((s, c), (t, d)) = (sin_cos(x), libm::sincos(x));
        assert!(ulps(s, t) <= 2.0 && ulps(c, d) <= 2.0, "sin_cos({x})");
        let x = (share - 0.5) * 2e6;
        let ((s, c), (t, d)) = (sin_cos(x), libm::sincos(x));
        assert!((s - t).abs() < 3e-16 && (c - d).abs() < 3e-16, "sin_cos({x})");
    }
}

#[test]
fn edges() {
    assert_eq!((exp(0.0), exp(-0.0), exp(1e9), exp(-1e9)), (1.0, 1.0, f64::INFINITY, 0.0));
    assert_eq!((exp(f64::INFINITY), exp(f64::NEG_INFINITY)), (f64::INFINITY, 0.0));
    assert!(exp(f64::NAN).is_nan() && ln(f64::NAN).is_nan() && ln(-1.0).is_nan());
    assert_eq!((exp(709.75), exp(709.79)), (libm::exp(709.75), f64::INFINITY));
    assert_eq!((ln(1.0), ln(0.0), ln(f64::INFINITY)), (0.0, f64::NEG_INFINITY, f64::INFINITY));
    assert_eq!(ln(5e-324), libm::log(5e-324));
    assert_eq!((ln_1p(0.0), ln_1p(-1.0)), (0.0, f64::NEG_INFINITY));
    assert_eq!((ln_1p(1e-300), ln_1p(-1e-20)), (1e-300, -1e-20));
    assert_eq!(ln_1p(-0.0).to_bits(), 0.0_f64.to_bits(), "no negative zero");
    assert!(ln_1p(f64::NAN).is_nan() && sin(f64::NAN).is_nan() && sin(f64::INFINITY).is_nan());
    assert_eq!((sin(0.0), sin_cos(0.0).1), (0.0, 1.0));
    assert_eq!(sin(1e15), libm::sin(1e15));
}

#[test]
fn whole_numbers() {
    for share in shares(100_000) {
        for x in [share * 10.0, share * 1e6, (share * 1e4).floor() + 0.5, share * 1e13] {
            assert_eq!((round(x), ceil(x), floor(x)), (x.round(), x.ceil(), x.floor()), "{x}");
            assert_eq!(from_whole(to_whole(x.floor())), x.floor());
        }
    }
    for x in [0.0, -0.0, -0.3, -0.5, -7.5, f64::NEG_INFINITY] {
        assert_eq!([round(x), ceil(x), floor(x)].map(f64::to_bits), [0; 3], "{x}");
    }
    assert_eq!(round(0.5_f64.next_down()), 0.0);
}

#[test]
fn least_and_greatest() {
    assert_eq!((min(1.0, 2.0), max(1.0, 2.0)), (1.0, 2.0));
    assert_eq!((min(2.0, 1.0), max(2.0, 1.0)), (1.0, 2.0));
}

#[test]
fn single_precision_logarithm() {
    let mut worst = 0.0_f64;
    for share in shares(1_000_000) {
        for x in [share as f32, libm::exp(share * 160.0 - 90.0) as f32] {
            let (found, expected) = (f64::from(ln_1p_single(x)), libm::log1p(f64::from(x)));
            let unit = f64::from((expected as f32).next_up()) - f64::from(expected as f32);
            worst = worst.max((found - expected).abs() / unit);
        }
    }
    assert!(worst < 2.0, "{worst}");
    assert_eq!(ln_1p_single(0.0).to_bits(), 0);
}

#[test]
fn negative_zero_becomes_positive() {
    assert_eq!(canonical_zero(-0.0).to_bits(), 0.0_f64.to_bits());
    assert_eq!(canonical_zero(-1.5).to_bits(), (-1.5_f64).to_bits());
}

/// Known bits: a change that moves a trajectory must be noticed here first.
#[test]
fn known_answers() {
    assert_eq!(exp(1.0).to_bits(), 0x4005_bf0a_8b14_576a); // one above the nearest double to e
    assert_eq!(ln(10.0).to_bits(), std::f64::consts::LN_10.to_bits());
    assert_eq!(exp(-1.0 / 30.0), 0.967_216_100_482_005_9);
    assert_eq!(ln(100.0), 4.605_170_185_988_092);
    assert_eq!(sin(0.5), 0.479_425_538_604_203);
}
