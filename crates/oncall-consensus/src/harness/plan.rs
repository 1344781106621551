//! What will go wrong: drawn from a seed, and then plain data.

use super::trail::Key;
use crate::config::Config;
use crate::types::{NodeId, Time};

/// Whom an event hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Who {
    /// This replica.
    Id(NodeId),
    /// Whoever leads the newest term when it happens (nobody: nothing happens).
    Leader,
    /// The n-th replica after the leader, cyclically (n ≥ 1).
    AfterLeader(NodeId),
}

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// One direction of one link is dead for a while.
    CutOneWay {
        /// Sender.
        from: Who,
        /// Receiver.
        to: Who,
        /// For how long, in ticks.
        ticks: Time,
    },
    /// Both directions of one link are dead for a while.
    Cut {
        /// One end.
        a: Who,
        /// The other end.
        b: Who,
        /// For how long, in ticks.
        ticks: Time,
    },
    /// A replica hears and reaches nobody for a while.
    Isolate {
        /// Who.
        who: Who,
        /// For how long, in ticks.
        ticks: Time,
    },
    /// The replicas whose bit is set and the others do not reach each other for a while.
    Split {
        /// One bit per replica.
        side: u8,
        /// For how long, in ticks.
        ticks: Time,
    },
    /// A process dies: everything that its disk has not confirmed is lost.
    Crash {
        /// Who.
        who: Who,
        /// It comes back after so many ticks.
        ticks: Time,
    },
    /// All processes die at once.
    CrashAll {
        /// They come back after so many ticks.
        ticks: Time,
    },
    /// A process stands still while its clock and its disk go on; messages wait for it.
    Pause {
        /// Who.
        who: Who,
        /// For how long, in ticks.
        ticks: Time,
    },
    /// Many proposals at once, at everyone who claims to lead.
    Burst {
        /// How many.
        count: u32,
    },
    /// A replica tries an election out of turn.
    Campaign {
        /// Who.
        who: Who,
    },
}

/// Something that happens at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Event {
    /// True time, in ticks.
    pub at: Time,
    /// What.
    pub action: Action,
}

/// A source of trouble that can be switched off while a failure is made smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Off {
    /// Lost messages.
    Loss,
    /// Doubled messages.
    Duplicates,
    /// Messages that are very late.
    Stragglers,
    /// Disks that take time.
    SlowDisk,
    /// Clocks that run at different rates.
    Skew,
    /// Ticks that come late.
    CoarseTick,
    /// Snapshots.
    Compaction,
    /// Regular proposals.
    Proposals,
}

impl Off {
    /// All of them, with their names on the command line.
    pub const ALL: [(Off, &'static str); 8] = [
        (Off::Loss, "loss"),
        (Off::Duplicates, "duplicates"),
        (Off::Stragglers, "stragglers"),
        (Off::SlowDisk, "slow-disk"),
        (Off::Skew, "skew"),
        (Off::CoarseTick, "coarse-tick"),
        (Off::Compaction, "compaction"),
        (Off::Proposals, "proposals"),
    ];
}

/// What to leave out of the plan of a seed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reduction {
    /// Only the events with these numbers; `None` keeps all.
    pub keep: Option<Vec<usize>>,
    /// Switched off.
    pub off: Vec<Off>,
}

/// Everything that decides a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Where all draws of the run come from.
    pub seed: u64,
    /// Settings of every replica; `id` is filled in later.
    pub config: Config,
    /// Lost messages, in thousandths.
    pub loss_permille: u64,
    /// Doubled messages, in thousandths.
    pub duplicate_permille: u64,
    /// Very late messages, in thousandths.
    pub straggler_permille: u64,
    /// Longest delay of an ordinary message, in ticks; the shortest is 1.
    pub delay_max: Time,
    /// Longest delay of a very late message, in ticks.
    pub straggler_delay_max: Time,
    /// Longest time that a disk takes, in ticks; 0 is an instant disk.
    pub sync_delay_max: Time,
    /// Local ticks per 1,000 true ticks, for each replica.
    pub clock_permille: [u64; 5],
    /// A replica's timer is looked at every so many true ticks.
    pub tick_every: Time,
    /// A proposal at everyone who claims to lead, every so many ticks; 0 for none.
    pub propose_every: Time,
    /// A replica takes a snapshot after so many more applied entries; 0 for never.
    pub compact_every: u64,
    /// Entries that it keeps before the snapshot.
    pub compact_keep: u64,
    /// What happens, by time.
    pub events: Vec<Event>,
    /// When faults stop, in true ticks.
    pub faults_until: Time,
}

/// Local clocks run up to so much faster or slower, in thousandths.
pub(crate) const SKEW_PERMILLE: u64 = 50;

impl Plan {
    /// The plan of a seed: a mixture of troubles that is different for each.
    pub fn from_seed(seed: u64) -> Self {
        let key = Key(seed).of(0x706c_616e);
        // Each kind of trouble is off in some plans, so that it cannot hide what others would find.
        let on = |part: u64, permille: u64| key.of(part).chance(permille);
        let upto = |part: u64, high: u64| key.of(part).of(1).between(1, high);
        let some = |part: u64, high: u64| if on(part, 500) { upto(part, high) } else { 0 };
        let replicas = if on(1, 600) { 3 } else { 5 };
        let clock_permille = if on(2, 500) {
            std::array::from_fn(|id| {
                let drawn = key.of(3).of(id as u64);
                drawn.between(1_000 - SKEW_PERMILLE, 1_000 + SKEW_PERMILLE)
            })
        } else {
            [1_000; 5]
        };
        let faults_until = key.of(4).between(1_000, 4_000);
        Self {
            seed,
            config: config(key, replicas),
            loss_permille: some(5, 200),
            duplicate_permille: some(6, 200),
            straggler_permille: some(7, 150),
            delay_max: upto(8, 12),
            straggler_delay_max: key.of(9).between(20, 400),
            sync_delay_max: some(10, 8),
            clock_permille,
            tick_every: if on(11, 400) { upto(11, 15) } else { 1 },
            propose_every: if on(12, 850) { upto(12, 40) } else { 0 },
            compact_every: some(13, 20),
            compact_keep: some(14, 10),
            events: events(key.of(15), replicas, faults_until),
            faults_until,
        }
    }

    /// The plan without what the reduction leaves out.
    #[must_use]
    pub fn reduced(mut self, reduction: &Reduction) -> Self {
        if let Some(keep) = &reduction.keep {
            let numbered = self.events.iter().enumerate();
            self.events =
                numbered.filter(|(n, _)| keep.contains(n)).map(|(_, &event)| event).collect();
        }
        for off in &reduction.off {
            match off {
                Off::Loss => self.loss_permille = 0,
                Off::Duplicates => self.duplicate_permille = 0,
                Off::Stragglers => self.straggler_permille = 0,
                Off::SlowDisk => self.sync_delay_max = 0,
                Off::Skew => self.clock_permille = [1_000; 5],
                Off::CoarseTick => self.tick_every = 1,
                Off::Compaction => self.compact_every = 0,
                Off::Proposals => self.propose_every = 0,
            }
        }
        self
    }
}

fn config(key: Key, replicas: u8) -> Config {
    let append_entries_max = key.of(20).between(1, 20) as u32;
    Config {
        election_timeout_min: 100,
        election_timeout_max: 200,
        heartbeat_interval: key.of(21).between(15, 35),
        // Leader slow, follower fast: 100 local ticks of the one last 110.5 of the other.
        lease_margin: 12,
        snapshot_retry: key.of(22).between(30, 300),
        append_entries_max,
        inflight_entries_max: append_entries_max * key.of(23).between(1, 8) as u32,
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

fn events(key: Key, replicas: u8, faults_until: Time) -> Vec<Event> {
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
    events.sort_by_key(|event| event.at);
    events
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
