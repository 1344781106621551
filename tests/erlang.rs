//! Erlang B and C against values of 40 digits (`tests/reference/erlang.py` makes them), and Erlang C
//! against the plain recursion over every number of servers.

use oncall_fleet::queue::{erlang_b_reference, erlang_c, erlang_c_reference};

/// The stated bound: near saturation `1 - a/n` loses digits to cancellation, in any code.
fn bound(servers: u32, load: f64) -> f64 {
    let gap = 1.0 - load / f64::from(servers);
    4e-13 + if gap > 0.0 { 2e-15 / gap } else { 0.0 }
}

#[test]
fn erlang_agrees_with_high_precision() {
    let text = include_str!("data/erlang.csv");
    let (mut rows, mut worst) = (0, 0.0_f64);
    for line in text.lines().skip(1) {
        let cells: Vec<f64> = line.split(',').map(|cell| cell.parse().unwrap()).collect();
        let [servers, load, b, c] = cells[..] else { panic!("four columns: {line}") };
        let servers = servers as u32;
        // Below the smallest normal double only the order of magnitude is left.
        let near = |found: f64, expected: f64, bound: f64| {
            (found - expected).abs() <= bound * expected || (expected < 1e-300 && found < 1e-300)
        };
        assert!(near(erlang_b_reference(servers, load), b, 2e-13), "B by reference: {line}");
        let (found, bound) = (erlang_c(servers, load), bound(servers, load));
        assert!(near(found, c, bound), "C: {line}: {found}");
        assert!(near(erlang_c_reference(servers, load), c, bound), "C by reference: {line}");
        if c > 1e-300 {
            worst = worst.max((found / c - 1.0).abs() / bound);
        }
        rows += 1;
    }
    assert_eq!(rows, 15 * 19);
    println!("the largest error is {worst:.2} of the bound");
}

#[test]
fn erlang_c_is_the_recursion_for_every_number_of_servers() {
    for servers in 1..=640 {
        for step in 1..400 {
            let load = f64::from(servers) * f64::from(step) / 400.0;
            let (found, expected) = (erlang_c(servers, load), erlang_c_reference(servers, load));
            let bound = bound(servers, load) * expected;
            assert!((found - expected).abs() <= bound || expected < 1e-300, "{servers} {load}");
        }
    }
}
