//! What will go wrong: drawn from a seed, and then plain data.

use crate::config::Config;
use crate::message::MessageKind;
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
    /// Trouble for new leaders.
    Strikes,
}

impl Off {
    /// All of them, with their names on the command line.
    pub const ALL: [(Off, &'static str); 9] = [
        (Off::Loss, "loss"),
        (Off::Duplicates, "duplicates"),
        (Off::Stragglers, "stragglers"),
        (Off::SlowDisk, "slow-disk"),
        (Off::Skew, "skew"),
        (Off::CoarseTick, "coarse-tick"),
        (Off::Compaction, "compaction"),
        (Off::Proposals, "proposals"),
        (Off::Strikes, "strikes"),
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
    /// Messages of this kind are very late far more often.
    pub late_kind: Option<MessageKind>,
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
    /// A new leader is struck soon after its election, in thousandths: where terms meet is where
    /// mistakes show.
    pub strike_permille: u64,
    /// Strikes follow the pattern of figure 8 of the Raft paper instead of chance.
    pub figure_eight: bool,
    /// What happens, by time.
    pub events: Vec<Event>,
    /// When faults stop, in true ticks.
    pub faults_until: Time,
}

/// Local clocks run up to so much faster or slower, in thousandths.
pub(crate) const SKEW_PERMILLE: u64 = 50;

impl Plan {
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
                Off::Stragglers => {
                    self.straggler_permille = 0;
                    self.late_kind = None;
                }
                Off::SlowDisk => self.sync_delay_max = 0,
                Off::Skew => self.clock_permille = [1_000; 5],
                Off::CoarseTick => self.tick_every = 1,
                Off::Compaction => self.compact_every = 0,
                Off::Proposals => self.propose_every = 0,
                Off::Strikes => self.strike_permille = 0,
            }
        }
        self
    }
}
