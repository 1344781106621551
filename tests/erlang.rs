//! Erlang B and C against values of 40 digits; `tests/reference/erlang.py` makes them.

use oncall_fleet::queue::{erlang_b, erlang_b_reference, erlang_c};

#[test]
fn erlang_agrees_with_high_precision() {
    let text = include_str!("data/erlang.csv");
    let mut rows = 0;
    for line in text.lines().skip(1) {
        let cells: Vec<f64> = line.split(',').map(|cell| cell.parse().unwrap()).collect();
        let [servers, load, b, c] = cells[..] else { panic!("four columns: {line}") };
        let servers = servers as u32;
        // Below the smallest normal double only the order of magnitude is left.
        let near = |found: f64, expected: f64| {
            (found - expected).abs() <= 2e-13 * expected || (expected < 1e-300 && found < 1e-300)
        };
        assert!(near(erlang_b(servers, load), b), "B: {line}: {}", erlang_b(servers, load));
        assert!(near(erlang_b_reference(servers, load), b), "B by reference: {line}");
        // Near saturation 1 - a/n loses digits to cancellation, in the formula and in any code.
        let gap = 1.0 - load / f64::from(servers);
        let slack = if gap > 0.0 { 1e-15 / gap } else { 0.0 };
        let found = erlang_c(servers, load);
        assert!((found - c).abs() <= (2e-13 + slack) * c || c < 1e-300, "C: {line}: {found}");
        rows += 1;
    }
    assert_eq!(rows, 15 * 19);
}
