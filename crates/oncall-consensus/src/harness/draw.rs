//! How a plan is drawn from its seed.

use super::plan::{Action, Event, Plan, SKEW_PERMILLE, Who};
use super::trail::Key;
use crate::config::Config;
use crate::message::MessageKind;
use crate::types::{NodeId, Time};

/// A pattern that chance alone would hardly ever draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Recipe {
    None,
    /// Two leaders inside one lease; see [`lease_trap`].
    LeaseTrap,
    /// Figure 8 of the Raft paper: a leader alone with a tail of entries, a second one alone with its
    /// barrier, the first one again and gone before its new barrier has spread, the second one again.
    FigureEight,
}

impl Plan {
    /// The plan of a seed: a mixture of troubles that is different for each.
    pub fn from_seed(seed: u64) -> Self {
        let key = Key(seed).of(0x706c_616e);
        // Each kind of trouble is off in some plans, so that it cannot hide what others would find.
        let on = |part: u64, permille: u64| key.of(part).chance(permille);
        let upto = |part: u64, high: u64| key.of(part).of(1).between(1, high);
        let some = |part: u64, high: u64| if on(part, 500) { upto(part, high) } else { 0 };
        let recipe = match key.of(17).below(7) {
            0 => Recipe::LeaseTrap,
            1 => Recipe::FigureEight,
            _ => Recipe::None,
        };
        let trap = recipe == Recipe::LeaseTrap;
        let replicas = if on(1, 600) || trap { 3 } else { 5 };
        let clock_permille = if on(2, 500) {
            std::array::from_fn(|id| {
                let drawn = key.of(3).of(id as u64);
                drawn.between(1_000 - SKEW_PERMILLE, 1_000 + SKEW_PERMILLE)
            })
        } else {
            [1_000; 5]
        };
        let figure_eight = recipe == Recipe::FigureEight;
        let faults_until = key.of(4).between(1_000, 4_000);
        Self {
            seed,
            config: config(key, replicas, figure_eight),
            loss_permille: some(5, 200),
            duplicate_permille: some(6, 200),
            straggler_permille: some(7, 150),
            late_kind: match key.of(18).below(16) {
                0 | 1 => Some(MessageKind::Election),
                2 => Some(MessageKind::Append),
                3 => Some(MessageKind::Reply),
                4 => Some(MessageKind::Install),
                5 => Some(MessageKind::Commit),
                _ => None,
            },
            delay_max: upto(8, if trap { 4 } else { 12 }),
            straggler_delay_max: key.of(9).between(20, 400),
            sync_delay_max: some(10, 8),
            clock_permille,
            tick_every: if on(11, 400) { upto(11, 15) } else { 1 },
            propose_every: match recipe {
                Recipe::None if on(12, 850) => upto(12, 40),
                Recipe::FigureEight => upto(12, 4),
                // Proposals would give the trap away.
                Recipe::None | Recipe::LeaseTrap => 0,
            },
            compact_every: some(13, 20),
            compact_keep: some(14, 10),
            strike_permille: if figure_eight { 950 } else { some(16, 900) },
            figure_eight,
            events: events(key.of(15), replicas, faults_until, recipe),
            faults_until,
        }
    }

    /// Trouble for the `count`-th elected leader of the run, if there is any, and when.
    pub(crate) fn strike(&self, leader: NodeId, count: u64, now: Time) -> Option<Event> {
        let key = Key(self.seed).of(0x7374_7269_6b65).of(count);
        if !key.of(1).chance(self.strike_permille) {
            return None;
        }
        // A split may come before the first message leaves, so that the barrier stays alone.
        let alone = if self.figure_eight { count % 3 == 2 } else { key.of(7).chance(300) };
        let at = now + if alone { 0 } else { key.of(2).between(1, 40) };
        let longest = if key.of(3).chance(500) { 30 } else { 400 };
        let ticks = key.of(4).between(1, longest);
        if self.figure_eight {
            let action = Action::Split { side: 1 << leader, ticks: 100 + key.of(4).below(400) };
            return Some(Event { at, action });
        }
        let who = Who::Id(leader);
        let side = 1 << leader | key.of(5).below(1 << self.config.replicas) as u8;
        let action = match key.of(6).below(5) {
            _ if alone => Action::Split { side, ticks },
            0 | 1 => Action::Crash { who, ticks },
            2 => Action::Pause { who, ticks },
            _ => Action::Split { side, ticks },
        };
        Some(Event { at, action })
    }
}

fn config(key: Key, replicas: u8, slow: bool) -> Config {
    let append_entries_max = key.of(20).between(1, if slow { 3 } else { 20 }) as u32;
    let window = key.of(23).between(1, if slow { 2 } else { 8 }) as u32;
    Config {
        election_timeout_min: 100,
        election_timeout_max: 200,
        heartbeat_interval: key.of(21).between(15, 35),
        // Leader slow, follower fast: 100 local ticks of the one last 110.5 of the other.
        lease_margin: 12,
        snapshot_retry: key.of(22).between(30, 300),
        append_entries_max,
        inflight_entries_max: append_entries_max * window,
        uncommitted_entries_max: if key.of(24).chance(300) { 6 } else { 200 },
        eager_commit: key.of(25).chance(500),
        ..Config::new(0, replicas, key.of(26).0)
    }
}

fn who(key: Key, replicas: u8) -> Who {
    match key.of(30).below(4) {
        0 | 1 => Who::Id(key.of(31).below(replicas.into()) as u8),
        2 => Who::Leader,
        _ => Who::AfterLeader(key.of(32).between(1, u64::from(replicas) - 1) as u8),
    }
}

fn events(key: Key, replicas: u8, faults_until: Time, recipe: Recipe) -> Vec<Event> {
    // The kinds that this plan knows at all, with at least one.
    let mut kinds: Vec<u64> = (0..9).filter(|&kind| key.of(40).of(kind).chance(500)).collect();
    if kinds.is_empty() {
        kinds.push(key.of(41).below(9));
    }
    let count = key.of(42).between(1, faults_until / 60);
    let mut events: Vec<Event> = (0..count)
        .map(|n| {
            let key = key.of(43).of(n);
            let kind = kinds[key.of(1).below(kinds.len() as u64) as usize];
            let at = key.of(2).below(faults_until);
            Event { at, action: action(key.of(3), kind, replicas) }
        })
        .collect();
    match recipe {
        Recipe::None | Recipe::FigureEight => {}
        Recipe::LeaseTrap => lease_trap(key.of(45), faults_until, &mut events),
    }
    events.sort_by_key(|event| event.at);
    events
}

/// One follower loses sight of a leader that does well, and the other one keeps crashing: whoever
/// forgets its promise to the leader helps to elect a second one inside the first one's lease.
fn lease_trap(key: Key, faults_until: Time, events: &mut Vec<Event>) {
    let start = key.of(1).below(faults_until);
    let (out_of_sight, promised) = (Who::AfterLeader(1), Who::AfterLeader(2));
    let action = Action::Cut { a: Who::Leader, b: out_of_sight, ticks: 500 };
    events.push(Event { at: start, action });
    for n in 0..40 {
        let at = start + 80 + 8 * n + key.of(2).of(n).below(8);
        let action = Action::Crash { who: promised, ticks: key.of(3).of(n).between(1, 2) };
        events.push(Event { at, action });
    }
}

fn action(key: Key, kind: u64, replicas: u8) -> Action {
    // Short and long troubles matter in different ways; half of them are short.
    let ticks = match key.of(50).below(4) {
        0 | 1 => key.of(51).between(1, 40),
        2 => key.of(51).between(40, 300),
        _ => key.of(51).between(300, 1_200),
    };
    let (one, other) = (who(key.of(52), replicas), who(key.of(53), replicas));
    match kind {
        0 => Action::CutOneWay { from: one, to: other, ticks },
        1 => Action::Cut { a: one, b: other, ticks },
        2 => Action::Isolate { who: one, ticks },
        3 => Action::Split { side: key.of(54).below(1 << replicas) as u8, ticks },
        4 => Action::Crash { who: one, ticks },
        5 => Action::CrashAll { ticks: ticks.min(50) },
        6 => Action::Pause { who: one, ticks: ticks.min(400) },
        7 => Action::Burst { count: key.of(55).between(2, 40) as u32 },
        _ => Action::Campaign { who: one },
    }
}
