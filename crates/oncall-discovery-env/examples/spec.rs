//! Prints the tables of dials, signals and reward terms.

fn main() {
    let spec = oncall_discovery_env::spec();
    println!("dials: name, unit, kind, low, high, default, stops");
    for dial in &spec.dials {
        println!(
            "  {} [{}] {} {}..{} = {} {:?}",
            dial.name,
            dial.unit,
            dial.kind.name(),
            dial.low,
            dial.high,
            dial.default,
            dial.stops
        );
    }
    println!("signals: name, unit, view, low, high, scale; what");
    for signal in &spec.signals {
        println!(
            "  {} [{}] {} {}..{} {}; {}",
            signal.name,
            signal.unit,
            signal.view.name(),
            signal.low,
            signal.high,
            signal.scale.name(),
            signal.doc
        );
    }
    println!("terms");
    for term in &spec.terms {
        println!("  {}: {}", term.name, term.doc);
    }
}
