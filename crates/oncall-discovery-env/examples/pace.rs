//! temporary
use oncall_discovery_sim::schedule::*;
use oncall_discovery_sim::topology::Scale;
use oncall_discovery_sim::world::{Setup, World};
fn main() {
    for scale in Scale::ALL {
        let mut setup = Setup::shipped("calm", scale, 1).unwrap();
        setup.shape = scale.env_shape();
        let n = f64::from(setup.shape.instances);
        setup.scenario.plan =
            vec![Planned { at_s: 1.0, action: Action::Churn { per_s: n * 2e-5, for_s: 1e6 } }];
        let t = std::time::Instant::now();
        let mut world = World::new(setup).unwrap();
        let made = t.elapsed();
        let steps = match scale {
            Scale::Small => 1000,
            Scale::Tenth => 100,
            Scale::Full => 20,
        };
        world.run_until(60_000_000);
        let t = std::time::Instant::now();
        let e0 = world.totals().events;
        for i in 0..steps {
            world.run_until(60_000_000 + (i + 1) * 10_000_000);
        }
        let s = t.elapsed().as_secs_f64();
        println!(
            "{} made {made:?} steps/s {:.0} events/step {}",
            scale.name(),
            steps as f64 / s,
            (world.totals().events - e0) / steps
        );
        let tot = world.totals();
        println!(
            "  raft {} probes {} hb {} deltas {}",
            tot.raft_messages, tot.probes, tot.heartbeats, tot.deltas
        );
        let t = std::time::Instant::now();
        let bytes = world.save().unwrap();
        println!("  save {} bytes {:?}", bytes.len(), t.elapsed());
    }
}
