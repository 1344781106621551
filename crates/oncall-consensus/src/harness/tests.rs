//! The fuzzer finds nothing in the real thing, and finds what is put in on purpose.

use super::*;

/// 500 plans here; the others by `cargo run --release -p oncall-consensus --example fuzz`.
#[test]
fn five_hundred_plans() {
    let report = fuzz(0, 500, |_| {});
    if let Some(failure) = report.failure {
        let command = reproduce_command(failure.seed, &failure.reduction);
        panic!("{}\n{command}\n{:#?}", failure.violation, failure.small);
    }
    assert_eq!(report.goals.missed(), Vec::<&str>::new());
}
