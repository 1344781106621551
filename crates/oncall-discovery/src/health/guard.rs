//! The capacity guard: how much of a service, and of a zone, health may take away within a minute (D7).

use serde::{Deserialize, Serialize};

use crate::mutants::{Mutant, Mutants};
use crate::types::Time;

/// Removals that may happen in a window in which there were `base` READY instances at the start:
/// max(1, ⌊share × base⌋). At least one may always go, or a service of three could never lose a dead one.
pub fn allowance(share_pct: f64, base: u32) -> u32 {
    ((share_pct * f64::from(base) / 100.0).floor() as u32).max(1)
}

const PARTS: usize = 6;
const PART_MS: u32 = 10_000;

/// Events of the last minute, to 10 s: what lies 60 to 70 s back may still count, never less than 60 s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SlidingCount {
    part: u32,
    counts: [u16; PARTS + 1],
}

impl SlidingCount {
    fn slide(&mut self, now: Time) {
        let part = now.ms() / PART_MS;
        let passed = part.saturating_sub(self.part) as usize;
        if passed > 0 {
            self.part = part;
            let fresh = passed.min(self.counts.len());
            self.counts.rotate_right(fresh);
            self.counts[..fresh].fill(0);
        }
    }

    /// Counts one.
    pub fn add(&mut self, now: Time) {
        self.slide(now);
        self.counts[0] = self.counts[0].saturating_add(1);
    }

    /// How many there were within the last minute.
    pub fn sum(mut self, now: Time) -> u32 {
        self.slide(now);
        self.counts.iter().map(|&count| u32::from(count)).sum()
    }
}

/// One limit: of a cell, or of a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Scope {
    removed: SlidingCount,
    /// Proposed, and not yet decided.
    pending: u16,
}

impl Scope {
    fn allows(&self, now: Time, ready: u32, share_pct: f64, mutants: Mutants) -> bool {
        let removed = self.removed.sum(now);
        let pending = u32::from(self.pending);
        if mutants.has(Mutant::GuardRounding) {
            let limit = (share_pct * f64::from(ready) / 100.0).ceil() as u32;
            return pending < limit;
        }
        // What was there when the window began, but for instances that came since.
        removed + pending < allowance(share_pct, ready + removed)
    }
}

/// The guard of a shard.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Guard {
    cells: Vec<Scope>,
    zones: Vec<Scope>,
}

impl Guard {
    /// Whether one more instance may be removed from a cell and a zone that have so many READY now.
    pub fn allows(
        &self,
        now: Time,
        (cell, cell_ready): (usize, u32),
        (zone, zone_ready): (usize, u32),
        share_pct: f64,
        mutants: Mutants,
    ) -> bool {
        let ask = |scopes: &[Scope], at: usize, ready| {
            let scope = scopes.get(at).copied().unwrap_or_default();
            scope.allows(now, ready, share_pct, mutants)
        };
        ask(&self.cells, cell, cell_ready) && ask(&self.zones, zone, zone_ready)
    }

    /// A removal is proposed.
    pub fn propose(&mut self, cell: usize, zone: usize) {
        self.both(cell, zone, |scope| scope.pending += 1);
    }

    /// A proposal is decided, either way.
    pub fn settle(&mut self, cell: usize, zone: usize) {
        self.both(cell, zone, |scope| scope.pending = scope.pending.saturating_sub(1));
    }

    /// A removal was accepted.
    pub fn removed(&mut self, now: Time, cell: usize, zone: usize) {
        self.both(cell, zone, |scope| scope.removed.add(now));
    }

    /// Forgets all proposals: their leader is gone.
    pub fn reset_pending(&mut self) {
        self.cells.iter_mut().chain(&mut self.zones).for_each(|scope| scope.pending = 0);
    }

    fn both(&mut self, cell: usize, zone: usize, change: impl Fn(&mut Scope)) {
        for (scopes, at) in [(&mut self.cells, cell), (&mut self.zones, zone)] {
            if scopes.len() <= at {
                scopes.resize(at + 1, Scope::default());
            }
            change(&mut scopes[at]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_allowance_rounds_down_and_is_at_least_one() {
        for (share_pct, base, expected) in [
            (30.0, 0, 1),
            (30.0, 1, 1),
            (30.0, 2, 1),
            (30.0, 6, 1),
            (30.0, 7, 2),
            (30.0, 50, 15),
            (5.0, 19, 1),
            (5.0, 40, 2),
            (100.0, 4, 4),
        ] {
            assert_eq!(allowance(share_pct, base), expected, "{share_pct} % of {base}");
        }
    }

    #[test]
    fn the_window_slides_and_never_forgets_early() {
        let mut count = SlidingCount::default();
        count.add(Time::from_s(9));
        count.add(Time::from_s(11));
        assert_eq!(count.sum(Time::from_ms(69_999)), 2);
        assert_eq!(count.sum(Time::from_s(70)), 1);
        assert_eq!(count.sum(Time::from_s(80)), 0);
        count.add(Time::from_s(1_000_000));
        assert_eq!(count.sum(Time::from_s(1_000_000)), 1);
    }

    #[test]
    fn removals_and_proposals_use_up_the_allowance() {
        let mut guard = Guard::default();
        let now = Time::from_s(100);
        let allows = |guard: &Guard, now, ready| {
            guard.allows(now, (0, ready), (0, 1_000), 30.0, Mutants::default())
        };
        // Ten instances, so three may go. The base does not shrink with what went.
        for ready in [10, 9, 8] {
            assert!(allows(&guard, now, ready));
            guard.propose(0, 0);
            guard.settle(0, 0);
            guard.removed(now, 0, 0);
        }
        assert!(!allows(&guard, now, 7));
        assert!(!allows(&guard, Time::from_s(159), 7));
        assert!(allows(&guard, Time::from_s(170), 7));
        guard.propose(0, 0);
        assert!(allows(&guard, Time::from_s(170), 7), "two of seven");
        guard.propose(0, 0);
        assert!(!allows(&guard, Time::from_s(170), 7));
        guard.reset_pending();
        assert!(allows(&guard, Time::from_s(170), 7));
    }

    #[test]
    fn the_zone_has_its_own_limit() {
        let mut guard = Guard::default();
        let now = Time::from_s(100);
        for cell in 0..3 {
            guard.removed(now, cell, 1);
        }
        let allows =
            |cell, zone| guard.allows(now, (cell, 100), (zone, 7), 30.0, Mutants::default());
        assert!(!allows(9, 1), "three of ten in the zone, though the cell lost none");
        assert!(allows(9, 2));
    }
}
