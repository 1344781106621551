//! Messages on their way.

use std::collections::BTreeMap;

use super::plan::Plan;
use super::trail::Key;
use super::world::Letter;
use crate::types::{NodeId, REPLICAS_MAX, Time};

/// Where a message is while it travels, and which links are dead.
#[derive(Debug)]
pub(crate) struct Network {
    key: Key,
    /// By arrival and order of sending.
    post: BTreeMap<(Time, u64), Letter>,
    sent: u64,
    /// Messages so far on each link: the index of the next draw.
    counts: [[u64; REPLICAS_MAX]; REPLICAS_MAX],
    /// A link is dead until then.
    dead_until: [[Time; REPLICAS_MAX]; REPLICAS_MAX],
    /// Faults have stopped.
    pub(crate) calm: bool,
}

/// What became of a message at its sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fate {
    pub(crate) lost: bool,
    pub(crate) doubled: bool,
    pub(crate) late: bool,
}

impl Network {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            key: Key(plan.seed).of(0x6e65_7477),
            post: BTreeMap::new(),
            sent: 0,
            counts: Default::default(),
            dead_until: Default::default(),
            calm: false,
        }
    }

    /// Kills one direction of a link.
    pub(crate) fn cut(&mut self, from: NodeId, to: NodeId, until: Time) {
        let link = &mut self.dead_until[usize::from(from)][usize::from(to)];
        *link = until.max(*link);
    }

    /// All links live, and nothing is lost from here on.
    pub(crate) fn heal(&mut self) {
        self.dead_until = Default::default();
        self.calm = true;
    }

    /// Puts a message on its way.
    pub(crate) fn send(&mut self, plan: &Plan, now: Time, letter: Letter) -> Fate {
        let (from, to) = (usize::from(letter.from), usize::from(letter.to));
        let count = &mut self.counts[from][to];
        *count += 1;
        let key = self.key.of((from * REPLICAS_MAX + to) as u64).of(*count);
        let late_permille =
            if plan.late_kind == Some(letter.kind()) { 400 } else { plan.straggler_permille };
        let trouble = |part: u64, permille: u64| !self.calm && key.of(part).chance(permille);
        let fate = Fate {
            lost: now < self.dead_until[from][to] || trouble(1, plan.loss_permille),
            doubled: trouble(2, plan.duplicate_permille),
            late: trouble(3, late_permille),
        };
        if fate.lost {
            return fate;
        }
        let longest = if fate.late { plan.straggler_delay_max } else { plan.delay_max };
        if fate.doubled {
            self.post_at(now + key.of(5).between(1, plan.straggler_delay_max), letter.clone());
        }
        self.post_at(now + key.of(4).between(1, longest), letter);
        fate
    }

    /// Puts a message back until a time, behind what arrives then.
    pub(crate) fn post_at(&mut self, at: Time, letter: Letter) {
        self.sent += 1;
        self.post.insert((at, self.sent), letter);
    }

    /// The next message that has arrived.
    pub(crate) fn arrived(&mut self, now: Time) -> Option<Letter> {
        let entry = self.post.first_entry()?;
        (entry.key().0 <= now).then(|| entry.remove())
    }
}
