//! The orchestrator's controller of a region: desired life cycle against what the catalog has (R58).
//!
//! It writes differences, not events, so repeating itself does no harm and an outage leaves nothing to remember
//! but the wishes. Every command carries the revision that it was decided on. What piled up is written at a
//! limited rate, removals first (D12).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::catalog::{CatalogShard, Command, Registration};
use crate::distrib::Bucket;
use crate::types::{
    EndpointRecord, Generation, InstanceId, Out, Peer, Reason, RegionId, Source, State, Time,
    Verdict,
};

/// What the orchestrator wants of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Wish {
    /// Runs; is it through startup and readiness?
    Running {
        /// What the platform observed.
        started: bool,
    },
    /// On its way out.
    Draining,
    /// Its process is gone.
    Gone,
}

/// An instance as the orchestrator knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Desired {
    /// How to register it.
    pub registration: Registration,
    /// What is wanted of it.
    pub wish: Wish,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// It was applied, with this verdict.
    Applied(Verdict),
    /// The log did not take it: no leader, no quorum.
    NotTaken,
    /// Nobody knows: the leader went away in between. Asking again is safe.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Tracked {
    desired: Desired,
    /// A command is under way.
    pending: bool,
}

/// The controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Controller {
    region: RegionId,
    tracked: BTreeMap<InstanceId, Tracked>,
    /// To be looked at: removals (false) before the others.
    open: BTreeSet<(bool, InstanceId)>,
    rate: Bucket,
}

impl Desired {
    /// The next command towards the wish, if there is something to do.
    pub fn next(&self, record: Option<&EndpointRecord>) -> Option<Command> {
        let mine = self.registration.generation;
        let record = match record {
            Some(record) if record.generation.start > mine.start => return None,
            Some(record) if record.generation.start == mine.start => record,
            _ => return matches!(self.wish, Wish::Running { .. }).then(|| self.register()),
        };
        let step = |to, reason| {
            Some(Command::Move {
                instance: record.instance,
                generation: record.generation,
                to,
                reason,
                source: Source::Controller,
                expected: Some(record.revision),
            })
        };
        match (self.wish, record.state) {
            // Only on the word of somebody who saw the process alive, see `Controller::lives_on`: a controller that
            // registered expired instances again by itself would keep the dead in the catalog for ever.
            (Wish::Running { .. }, State::Expired) if mine > record.generation => {
                Some(self.register())
            }
            (Wish::Running { started: true }, State::Starting) => {
                step(State::Ready, Reason::Started)
            }
            (Wish::Draining | Wish::Gone, State::Starting | State::Ready | State::Unhealthy) => {
                step(State::Draining, Reason::Withdrawn)
            }
            (Wish::Gone, State::Draining) => step(State::Gone, Reason::Exited),
            (Wish::Gone, State::Expired) => step(State::Gone, Reason::Cleared),
            _ => None,
        }
    }

    fn register(&self) -> Command {
        let ready = matches!(self.wish, Wish::Running { started: true });
        Command::Register(Registration { ready, ..self.registration }, Source::Controller)
    }
}

impl Controller {
    /// A controller that writes at most so many commands a second.
    pub fn new(now: Time, region: RegionId, commands_per_s: u64) -> Self {
        Self {
            region,
            tracked: BTreeMap::new(),
            open: BTreeSet::new(),
            rate: Bucket::new(now, commands_per_s, commands_per_s),
        }
    }

    /// Its region.
    pub fn region(&self) -> RegionId {
        self.region
    }

    /// The orchestrator wants something new of an instance.
    pub fn want(&mut self, desired: Desired) {
        let instance = desired.registration.instance;
        let tracked = self.tracked.entry(instance).or_insert(Tracked { desired, pending: false });
        let forgotten = Self::queue_key(instance, &tracked.desired);
        tracked.desired = desired;
        self.open.remove(&forgotten);
        self.look_at(instance);
    }

    /// A node's agent says that this process lives although the catalog holds this generation of it for expired:
    /// it lived through whatever kept its renewals away, and is registered once more (D10).
    pub fn lives_on(&mut self, instance: InstanceId, expired: Generation) {
        let Some(tracked) = self.tracked.get_mut(&instance) else { return };
        let known = &mut tracked.desired.registration.generation;
        if known.start == expired.start && expired >= *known {
            *known = expired.again();
            self.look_at(instance);
        }
    }

    /// The catalog moved: look at this instance again.
    pub fn look_at(&mut self, instance: InstanceId) {
        if let Some(tracked) = self.tracked.get(&instance) {
            self.open.insert(Self::queue_key(instance, &tracked.desired));
        }
    }

    /// How many instances are to be looked at.
    pub fn backlog(&self) -> usize {
        self.open.len()
    }

    /// Writes what the rate allows; asks to be called again for the rest. `catalog` gives the shard of an instance's
    /// cell, as current as the controller can read it.
    pub fn pump<'a>(
        &mut self,
        now: Time,
        catalog: impl Fn(&Registration) -> &'a CatalogShard,
        out: &mut Out<Command, ()>,
    ) {
        let mut waiting = BTreeSet::new();
        while let Some(key) = self.open.pop_first() {
            let instance = key.1;
            let Some(tracked) = self.tracked.get_mut(&instance) else { continue };
            if tracked.pending {
                waiting.insert(key);
                continue;
            }
            let shard = catalog(&tracked.desired.registration);
            let Some(command) = tracked.desired.next(shard.find(instance).as_ref()) else {
                if tracked.desired.wish == Wish::Gone {
                    self.tracked.remove(&instance);
                }
                continue;
            };
            if let Err(when) = self.rate.take(now, 1) {
                self.open.insert(key);
                out.timer(when, ());
                break;
            }
            tracked.pending = true;
            out.send(Peer::Catalog(shard.region(), shard.shard()), command);
        }
        self.open.append(&mut waiting);
    }

    /// How a command about an instance ended. The catalog is looked at again, since what is there now decides and
    /// not what was asked for; only after a refusal on principle the instance waits for a new wish or a change.
    pub fn ended(&mut self, instance: InstanceId, outcome: Outcome) {
        if let Some(tracked) = self.tracked.get_mut(&instance) {
            tracked.pending = false;
        }
        let again = matches!(
            outcome,
            Outcome::NotTaken
                | Outcome::Unknown
                | Outcome::Applied(
                    Verdict::Accepted
                        | Verdict::AlreadySo
                        | Verdict::StaleRead
                        | Verdict::OldGeneration
                )
        );
        if again {
            self.look_at(instance);
        }
    }

    fn queue_key(instance: InstanceId, desired: &Desired) -> (bool, InstanceId) {
        (matches!(desired.wish, Wish::Running { .. }), instance)
    }
}
