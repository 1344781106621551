//! R151 to R168 at the small scale, with every set-level invariant on.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use oncall_discovery_sim::topology::Scale;
use oncall_discovery_sim::verify::verify;

#[test]
fn every_requirement_holds_at_small_scale() {
    let checks = verify(Scale::Small, 1, |check| {
        eprintln!(
            "{} {} {}: {}",
            if check.passed { "pass" } else { "FAIL" },
            check.requirement,
            check.name,
            check.figure
        );
    });
    let checks = checks.unwrap();
    for number in 151..=168 {
        let wanted = format!("R{number}");
        assert!(checks.iter().any(|check| check.requirement == wanted), "{wanted} is not checked");
    }
    let failed: Vec<_> = checks.into_iter().filter(|check| !check.passed).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}
