//! The statistics over scenarios against rliable 1.2 itself: `tests/reference/rliable_values.py`.

use oncall_eval::stats::{Bootstrap, Figure};

const A: [f64; 11] =
    [-22.5, -31.0, -18.25, -140.0, -22.5, -9.5, -55.75, -27.0, -33.5, -21.0, -19.0];
const B: [f64; 11] =
    [-30.0, -31.0, -12.25, -100.0, -25.5, -9.5, -66.75, -28.0, -31.5, -41.0, -19.5];

/// As many resamples as the reference drew.
const BOOTSTRAP: Bootstrap = Bootstrap { resamples: 20_000, seed: 1 };

fn third() -> Vec<f64> {
    A.iter().map(|x| x / 2.0 - 8.0).collect()
}

/// Points to rounding; ends, which other draws made, to a twentieth of the interval's width.
fn check(name: &str, found: Figure, value: f64, ends: [f64; 2]) {
    assert!((found.value - value).abs() < 1e-12 * value.abs().max(1.0), "{name}: {found:?}");
    let room = 0.05 * (ends[1] - ends[0]);
    for (found, end) in found.ci95.into_iter().zip(ends) {
        assert!((found - end).abs() <= room, "{name}: {found} {end}");
    }
}

#[test]
fn aggregates() {
    let third = third();
    let strata: [&[f64]; 3] = [&A, &B, &third];
    let estimate = BOOTSTRAP.estimate(&strata);
    let mean = Figure { value: estimate.mean, ci95: estimate.ci95 };
    check("mean", mean, -32.818_181_818_181_82, [-42.65, -24.80]);
    check("mean", BOOTSTRAP.mean(&strata), -32.818_181_818_181_82, [-42.65, -24.80]);
    let iqm = Figure { value: estimate.iqm, ci95: estimate.iqm_ci95 };
    check("iqm", iqm, -24.514_705_882_352_942, [-29.80, -21.25]);
    let median = BOOTSTRAP.median_of_means(&strata);
    check("median", median, -35.909_090_909_090_91, [-45.05, -22.81]);
    let gap = BOOTSTRAP.optimality_gap(&strata, -20.0);
    check("gap", gap, 14.261_363_636_363_633, [6.61, 23.85]);
}

#[test]
fn improvement() {
    let third = third();
    let found = BOOTSTRAP.improvement(&[&A, &B, &third], &[&B, &third, &A]);
    check("improvement", found, 0.504_132_231_404_958_7, [0.3616, 0.6453]);
}

#[test]
fn profile() {
    let third = third();
    let taus = [-150.0, -31.0, -22.5, -10.0, 0.0];
    let found = BOOTSTRAP.profile(&[&A, &B, &third], &taus);
    // Of 33 values: whole numbers of them.
    let expected = [
        (33.0, [33.0, 33.0]),
        (22.0, [17.0, 27.0]),
        (14.0, [9.0, 19.0]),
        (2.0, [0.0, 5.0]),
        (0.0, [0.0, 0.0]),
    ];
    for (found, (value, ends)) in found.shares.into_iter().zip(expected) {
        check("profile", found, value / 33.0, ends.map(|end: f64| end / 33.0));
    }
}
