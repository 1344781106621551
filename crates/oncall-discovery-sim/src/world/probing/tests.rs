//! Who has to look at what, when dials are turned.

use super::*;
use crate::schedule::{Action, Planned, Scenario};
use crate::topology::Scale;
use crate::world::Setup;
use oncall_discovery::dials::Dials;

fn world(plan: &[(f64, Action)]) -> World {
    let plan = plan.iter().map(|&(at_s, action)| Planned { at_s, action }).collect();
    let scenario =
        Scenario { name: "test".to_owned(), about: String::new(), length_s: 3_600.0, plan };
    let shape = Scale::Small.env_shape();
    World::new(Setup { shape, scenario, dials: Dials::default(), seed: 7, verify: true }).unwrap()
}

/// Instances whose successes are not played, and those of them that one of the first `looking` probers at home does
/// not hold for up.
fn quiet(world: &mut World, looking: u8) -> (usize, usize) {
    let (mut quiet, mut early) = (0, 0);
    for id in 0..world.fleet.instances.len() as u32 {
        let Some(target) = world.probing.targets.get_mut(id) else { continue };
        if target.look() != FINE {
            continue;
        }
        let group = usize::from(world.group_of(world.fleet.instances[id as usize].cell));
        let group = &world.control.groups[group];
        let row = group.catalog.row_of(InstanceId(id)).unwrap();
        let up = |turn: u8| {
            let prober = ProberId(((id + u32::from(turn)) % u32::from(PROBERS)) as u8);
            group.decider.opinion(row, prober) == Opinion::Up
        };
        quiet += 1;
        early += usize::from(!(0..looking).all(up));
    }
    (quiet, early)
}

/// Once the successes of all probers were added up, so that one of a prober that was asked newly was enough, or none
/// at all where the others had told of more than they had to.
#[test]
fn each_prober_that_is_asked_newly_has_to_see_enough() {
    let mut world = world(&[]);
    world.run_until(30 * S);
    let all = world.fleet.instances.len();
    let (settled, early) = quiet(&mut world, 1);
    assert!(settled > all * 9 / 10 && early == 0, "{settled} and {early} of {all}");
    let turns = [(1, 2, 2), (2, 1, 3), (3, 3, 3), (1, 4, 1), (2, 4, 2)];
    for (at, (failures, successes, looking)) in turns.into_iter().enumerate() {
        let wish = Dials {
            failure_threshold: f64::from(failures),
            recovery_threshold: f64::from(successes),
            confirming_probers: f64::from(looking),
            ..Dials::default()
        };
        world.turn(wish).unwrap();
        let from = world.shared.now() + S;
        for tick in 0..1_000 {
            world.run_until(from + tick * 50 * MS);
            let (_, early) = quiet(&mut world, looking);
            assert_eq!(early, 0, "turn {at}, {tick} ticks later");
        }
        let (settled, _) = quiet(&mut world, looking);
        assert!(settled > all * 9 / 10, "turn {at}: {settled} of {all}");
    }
    assert_eq!(world.violations(), []);
}

/// Once two of the looks went to one and the same prober while another one was in quarantine, so that nobody
/// confirmed what it found.
#[test]
fn in_a_quarantine_the_two_others_look() {
    let mut world = world(&[(10.0, Action::BadProber { region: 0, for_s: 100.0 })]);
    world.turn(Dials { confirming_probers: 2.0, ..Dials::default() }).unwrap();
    world.run_until(60 * S);
    let (mut seen, mut both) = (0, 0);
    for (id, instance) in world.fleet.instances.iter().enumerate() {
        let group = &world.control.groups[usize::from(world.group_of(instance.cell))];
        if group.region != 0 || instance.state != State::Ready {
            continue;
        }
        assert!(group.decider.quarantined(world.shared.time(), ProberId(0)));
        let row = group.catalog.row_of(InstanceId(id as u32)).unwrap();
        let up = |prober| group.decider.opinion(row, ProberId(prober)) == Opinion::Up;
        seen += 1;
        both += usize::from(up(1) && up(2));
    }
    assert!(seen > 100 && both > seen * 9 / 10, "{both} of {seen}");
    assert_eq!(world.violations(), []);
}
