//! From a schedule to a better one at a stroke: measure every minute where the schedule brings the
//! world, find the cheapest fleet for it, and play that.

use crate::episode::{Episode, Schedule, Trace};
use crate::fleet::{Rules, cheapest, floors};
use crate::table::{Table, exact, serving_next};
use oncall_fleet::dials::index;

/// Rounds of measuring and playing. One is enough where no choice of levels changes the warmth.
const ROUNDS: usize = 4;

/// Dynamic programming over the fleet for the presses of `start`. Returns the best schedule seen,
/// `start` included, and what the relaxed problem of the last round would cost.
pub(crate) fn solve(episode: &Episode<'_>, table: &mut Table, start: &Trace) -> (Trace, f64) {
    let mut best = start.clone();
    let mut relaxed = f64::NEG_INFINITY;
    let mut base = start.clone();
    for round in 0..ROUNDS {
        table.update(episode, &base);
        if round > 0 && table.changed() == 0 {
            break;
        }
        let (sizes, usd) = cheapest(&rules(episode), table);
        relaxed = usd;
        base = realise(episode, table, &base, &floors(&sizes, episode.boot_min()));
        if base.usd(episode) < best.usd(episode) {
            best = base.clone();
        }
    }
    (best, relaxed)
}

fn rules(episode: &Episode<'_>) -> Rules {
    let capacity = &episode.opening.capacity;
    Rules {
        minutes: episode.length_min,
        most: episode.instances_max(),
        serving: capacity.serving as usize,
        coming: capacity.booting.iter().map(|&count| count as usize).collect(),
        boot_min: episode.boot_min(),
        instance_usd: episode.instance_usd(),
    }
}

/// Plays floors with the table's level for what really serves, and the presses of `base`.
fn realise(episode: &Episode<'_>, table: &Table, base: &Trace, floors: &[usize]) -> Trace {
    let mut lane = episode.opening;
    let mut actions: Schedule = Vec::with_capacity(floors.len());
    for (t, &floor) in floors.iter().enumerate() {
        let pressed = [index::WARM_UP, index::ROLLBACK].map(|dial| base.actions[t][dial] > 0.5);
        let level = table.level(t, serving_next(&lane, floor));
        let action = exact(floor, &level, pressed);
        episode.play(&mut lane, &action);
        actions.push(action);
    }
    Trace::new(episode, actions)
}
