//! What must have happened somewhere in a long run, or its silence means nothing.

/// Things that are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    Elections,
    LeaderChanges,
    TwoClaimToLead,
    StoodDownForTerm,
    StoodDownForQuorum,
    Truncations,
    Compactions,
    Installs,
    InstallsOverEntries,
    Restarts,
    WritesLost,
    Lost,
    Doubled,
    Late,
    RefusedNotLeader,
    RefusedNoQuorum,
    RefusedOtherTerm,
    RefusedBarrier,
    RefusedBacklog,
    FencedTaken,
    Accepted,
    Superseded,
    Unknown,
    LeaseReads,
    LeaseRefused,
    TicketsReady,
    TicketsLost,
    QuietReturns,
    DeadLinks,
}

/// Names of the counters, in their order.
pub const GOALS: [&str; 29] = [
    "elections won",
    "leader changes",
    "inputs while two replicas claimed to lead",
    "step-downs for a newer term",
    "step-downs without a quorum",
    "truncations of uncommitted entries",
    "compactions",
    "snapshots installed",
    "snapshots installed over existing entries",
    "restarts",
    "disk writes lost in a crash",
    "messages lost",
    "messages doubled",
    "messages very late",
    "refused: not the leader",
    "refused: no quorum",
    "refused: another term",
    "refused: barrier pending",
    "refused: backlog",
    "fenced proposals taken",
    "proposals accepted",
    "proposals superseded",
    "proposals of unknown outcome",
    "lease reads served",
    "lease reads refused",
    "confirmed reads served",
    "confirmed reads lost",
    "quiet returns after isolation",
    "progress while a link was dead",
];

/// The counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Goals {
    /// In the order of [`GOALS`].
    pub counts: [u64; GOALS.len()],
}

impl Default for Goals {
    fn default() -> Self {
        Self { counts: [0; GOALS.len()] }
    }
}

impl Goals {
    pub(crate) fn add(&mut self, goal: Goal, count: u64) {
        self.counts[goal as usize] += count;
    }

    pub(crate) fn hit(&mut self, goal: Goal) {
        self.add(goal, 1);
    }

    /// Adds another run's counts.
    pub fn merge(&mut self, other: &Self) {
        for (sum, count) in self.counts.iter_mut().zip(other.counts) {
            *sum += count;
        }
    }

    /// What never happened.
    pub fn missed(&self) -> Vec<&'static str> {
        GOALS
            .iter()
            .zip(self.counts)
            .filter(|(_, count)| *count == 0)
            .map(|(&name, _)| name)
            .collect()
    }
}
