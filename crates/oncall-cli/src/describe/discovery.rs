//! What a scenario of discovery says: the size of the fleet, the numbers that differ from their defaults,
//! and the faults.

use super::said::{Said, as_json_list, table};
use crate::output::short;
use oncall_core::{Field, Sampled};
use oncall_discovery_env::DiscoveryWorld;
use oncall_discovery_env::params::{Params, Section, Target, common};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// All numbers worth telling: drawn ones, those that differ from their default, and what a fault says.
fn said(scenario: &Params) -> Vec<Said> {
    let numbers = &scenario.numbers;
    let sections = Section::ALL.into_iter().flat_map(|section| {
        (0..section.fields().len()).map(move |field| Target::Section(section, field))
    });
    let faults = numbers.faults.iter().enumerate().flat_map(|(index, fault)| {
        // The key names draws and is nobody's business.
        let fields = (0..fault.kind.fields().len()).filter(|field| *field != common::KEY);
        fields.map(move |field| Target::Fault(index, field))
    });
    let mut slots = numbers.clone();
    let mut all = Vec::new();
    for target in sections.chain(faults) {
        let field: &'static Field = numbers.field(target);
        let drawn = scenario.draws.iter().find(|(drawn, _)| *drawn == target);
        let fixed = *slots.slot(target);
        let is_own = matches!(target, Target::Fault(_, field) if field >= common::OWN);
        let value = match drawn {
            Some((_, dist)) => Sampled::Drawn(dist.clone()),
            None if is_own || field.default != Some(fixed) => Sampled::Fixed(fixed),
            None => continue,
        };
        let path = numbers.path(target);
        all.push(Said { path, default: field.default, unit: field.unit, doc: field.doc, value });
    }
    all
}

/// Appends what is played.
pub(super) fn write_text(text: &mut String, world: &DiscoveryWorld) {
    let shape = world.scale().env_shape();
    let _ = writeln!(
        text,
        "\nscale {}: {} services, {} instances, {} proxies; a tick is {} s",
        world.scale().name(),
        shape.services,
        shape.instances,
        shape.nodes,
        oncall_discovery_env::TICK_S
    );
    let variants = world.variants();
    for (scenario, share) in variants.iter().zip(world.shares()) {
        if variants.len() > 1 {
            let share = short(100.0 * share, 1);
            let _ = write!(text, "\nIn {share} % of the episodes: {}", scenario.name);
        }
        let said = said(scenario);
        if said.is_empty() {
            text.push_str("\nNothing differs from the defaults, and nothing happens\n");
            continue;
        }
        text.push_str("\nWhat differs from the defaults\n");
        text.push_str(&table(said));
    }
}

/// What is played, as the module `describe` documents it.
pub(super) fn as_json(world: &DiscoveryWorld) -> Vec<Value> {
    let variant = |(scenario, share): (&Params, f64)| {
        json!({
            "name": scenario.name,
            "share": share,
            "length_min": scenario.numbers.length_min(),
            "scale": world.scale().name(),
            "numbers": as_json_list(said(scenario)),
        })
    };
    world.variants().iter().zip(world.shares()).map(variant).collect()
}

#[cfg(test)]
mod tests {
    use super::super::said::words;
    use super::*;
    use oncall_core::Dist;
    use oncall_discovery_env::params::{Fault, Kind};

    #[test]
    fn tells_what_differs_and_every_fault() {
        let mut scenario = Params::defaults("test");
        assert!(said(&scenario).is_empty());
        scenario.numbers.faults.push(Fault::defaults(Kind::RelayRestart, 0));
        let at = Target::Fault(0, common::AT);
        scenario.draws.push((at, Dist::Uniform { low: 5.0, high: 30.0 }));
        let told: Vec<String> =
            said(&scenario).iter().map(|s| format!("{}={}", s.path, words(&s.value))).collect();
        let expected = [
            "relay_restarts[0].at_min=uniform 5..30",
            "relay_restarts[0].share=1",
            "relay_restarts[0].cold=0",
        ];
        assert_eq!(told, expected);
    }
}
