//! The last complete set of a cell, with the proxy's own fence against older generations (R57, R92).

use serde::{Deserialize, Serialize};

use crate::distrib::{Delta, EndpointSet};
use crate::mutants::{Mutant, Mutants};
use crate::types::{Change, Endpoint, Generation, InstanceId, Time};

/// Newest generation of an instance that was seen and is not in the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Fence {
    instance: InstanceId,
    generation: Generation,
    since_ms: u32,
}

/// Fences kept for each cell; the oldest goes first.
const FENCES_MAX: usize = 1_024;

/// A set that only changes as a whole, to what was published.
///
/// An endpoint of an older generation than one seen before stays in the set, so that checksums go on matching,
/// but is not routable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct View {
    set: EndpointSet,
    fences: Vec<Fence>,
    masked: Vec<InstanceId>,
}

impl View {
    /// The set as published.
    pub const fn set(&self) -> &EndpointSet {
        &self.set
    }

    /// The endpoints that requests may go to, in the order of instance ids.
    pub fn routable(&self) -> impl Iterator<Item = &Endpoint> + Clone + '_ {
        let masked = |endpoint: &&Endpoint| self.masked.binary_search(&endpoint.instance).is_err();
        self.set.endpoints().iter().filter(masked)
    }

    /// Endpoints that are fenced off.
    pub fn fenced(&self) -> usize {
        self.masked.len()
    }

    /// Whether a delta that starts at this set leads to the set that it says.
    pub fn fits(&self, delta: &Delta) -> bool {
        self.set.fits(&delta.changes, delta.count, delta.checksum)
    }

    /// Applies a delta that fits. Returns how many endpoints it fenced off.
    pub fn apply(&mut self, now: Time, delta: &Delta, mutants: Mutants) -> usize {
        for change in &delta.changes {
            if let Change::Removed(old) | Change::Changed(old, _) = change {
                self.remember(now, old.instance);
            }
        }
        if mutants.has(Mutant::NonContiguousDelta) {
            self.set.apply_blindly(&delta.changes);
        } else if !self.set.apply(&delta.changes, delta.count, delta.checksum) {
            return 0;
        }
        self.mask(mutants)
    }

    /// Becomes the set of a snapshot, at once. Returns how many endpoints it fenced off.
    pub fn replace(&mut self, now: Time, endpoints: Vec<Endpoint>, mutants: Mutants) -> usize {
        let gone: Vec<InstanceId> = self
            .set
            .endpoints()
            .iter()
            .filter(|old| {
                let at = endpoints.binary_search_by_key(&old.instance, |new| new.instance);
                at.is_err() || at.is_ok_and(|at| endpoints[at].generation != old.generation)
            })
            .map(|old| old.instance)
            .collect();
        for instance in gone {
            self.remember(now, instance);
        }
        self.set.replace(endpoints, mutants);
        self.mask(mutants)
    }

    /// Raises the fence of an instance to what the set has of it.
    fn remember(&mut self, now: Time, instance: InstanceId) {
        let Some(generation) = self.set.get(instance).map(|endpoint| endpoint.generation) else {
            return;
        };
        let fence = Fence { instance, generation, since_ms: now.ms() };
        match self.fences.binary_search_by_key(&instance, |fence| fence.instance) {
            Ok(at) if self.fences[at].generation >= generation => {}
            Ok(at) => self.fences[at] = fence,
            Err(at) => self.fences.insert(at, fence),
        }
        if self.fences.len() > FENCES_MAX {
            let oldest = self.fences.iter().enumerate().min_by_key(|(_, fence)| fence.since_ms);
            if let Some((at, _)) = oldest {
                self.fences.remove(at);
            }
        }
    }

    /// Finds who is behind its fence; a fence that was reached or passed is no longer needed.
    fn mask(&mut self, mutants: Mutants) -> usize {
        let before = std::mem::take(&mut self.masked);
        let (set, masked) = (&self.set, &mut self.masked);
        self.fences.retain(|fence| {
            let Some(endpoint) = set.get(fence.instance) else { return true };
            let behind = endpoint.generation < fence.generation;
            if behind && !mutants.has(Mutant::ProxyWithoutFence) {
                masked.push(fence.instance);
            }
            behind
        });
        self.masked.iter().filter(|instance| before.binary_search(instance).is_err()).count()
    }
}
