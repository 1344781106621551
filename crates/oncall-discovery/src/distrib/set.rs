//! A set of endpoints with its checksum: changed as a whole or not at all (R82).

use serde::{Deserialize, Serialize};

use crate::mutants::{Mutant, Mutants};
use crate::types::{Change, Endpoint, InstanceId};

/// Routable endpoints of one cell, in the order of instance ids.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EndpointSet {
    endpoints: Vec<Endpoint>,
    checksum: u64,
}

/// The instance that a change is about.
pub(super) fn instance_of(change: &Change) -> InstanceId {
    match change {
        Change::Added(endpoint) | Change::Removed(endpoint) | Change::Changed(_, endpoint) => {
            endpoint.instance
        }
    }
}

fn before(change: &Change) -> Option<Endpoint> {
    match change {
        Change::Added(_) => None,
        Change::Removed(endpoint) | Change::Changed(endpoint, _) => Some(*endpoint),
    }
}

fn after(change: &Change) -> Option<Endpoint> {
    match change {
        Change::Removed(_) => None,
        Change::Added(endpoint) | Change::Changed(_, endpoint) => Some(*endpoint),
    }
}

/// The change from one presence of an instance to another; `None` if nothing changed.
fn change(before: Option<Endpoint>, after: Option<Endpoint>) -> Option<Change> {
    match (before, after) {
        (None, None) => None,
        (None, Some(new)) => Some(Change::Added(new)),
        (Some(old), None) => Some(Change::Removed(old)),
        (Some(old), Some(new)) if old == new => None,
        (Some(old), Some(new)) => Some(Change::Changed(old, new)),
    }
}

/// Folds changes in their order into net changes: at most one for each instance, opposite ones cancelled, in
/// the order of instance ids.
pub fn net<'a>(changes: impl IntoIterator<Item = &'a Change>) -> Vec<Change> {
    let mut all: Vec<Change> = changes.into_iter().copied().collect();
    all.sort_by_key(instance_of); // stable: the order in time is kept within an instance
    let groups = all.chunk_by(|a, b| instance_of(a) == instance_of(b));
    groups.filter_map(|group| change(before(&group[0]), after(&group[group.len() - 1]))).collect()
}

impl EndpointSet {
    /// The set, in the order of instance ids.
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// How many.
    pub fn count(&self) -> u32 {
        self.endpoints.len() as u32
    }

    /// Its checksum; see [`Endpoint::fingerprint`].
    pub const fn checksum(&self) -> u64 {
        self.checksum
    }

    /// Finds an endpoint.
    pub fn get(&self, instance: InstanceId) -> Option<&Endpoint> {
        self.find(instance).ok().map(|at| &self.endpoints[at])
    }

    fn find(&self, instance: InstanceId) -> Result<usize, usize> {
        self.endpoints.binary_search_by_key(&instance, |endpoint| endpoint.instance)
    }

    /// Applies net changes if the set after them has this size and checksum; else changes nothing.
    #[must_use]
    pub fn apply(&mut self, changes: &[Change], count: u32, checksum: u64) -> bool {
        if !self.fits(changes, count, checksum) {
            return false;
        }
        self.commit(changes);
        self.checksum = checksum;
        true
    }

    /// Whether the set after net changes would have this size and checksum.
    pub fn fits(&self, changes: &[Change], count: u32, checksum: u64) -> bool {
        // Two changes of one instance would be counted twice below.
        let sorted = changes.windows(2).all(|pair| instance_of(&pair[0]) < instance_of(&pair[1]));
        sorted && self.preview(changes) == (count, checksum)
    }

    /// Size and checksum after net changes, without making them.
    fn preview(&self, changes: &[Change]) -> (u32, u64) {
        let mut count = self.count();
        let mut checksum = self.checksum;
        for change in changes {
            if let Some(old) = self.get(instance_of(change)) {
                count -= 1;
                checksum = checksum.wrapping_sub(old.fingerprint());
            }
            if let Some(new) = after(change) {
                count += 1;
                checksum = checksum.wrapping_add(new.fingerprint());
            }
        }
        (count, checksum)
    }

    fn commit(&mut self, changes: &[Change]) {
        for change in changes {
            match (self.find(instance_of(change)), after(change)) {
                (Ok(at), Some(new)) => self.endpoints[at] = new,
                (Ok(at), None) => drop(self.endpoints.remove(at)),
                (Err(at), Some(new)) => self.endpoints.insert(at, new),
                (Err(_), None) => {}
            }
        }
    }

    /// Applies changes without looking at the checksum: what a mistake would do.
    pub(crate) fn apply_blindly(&mut self, changes: &[Change]) {
        self.commit(changes);
        self.checksum = Endpoint::checksum(&self.endpoints);
    }

    /// Whether endpoints are a set of this size and checksum, in order.
    pub fn intact(endpoints: &[Endpoint], count: u32, checksum: u64) -> bool {
        endpoints.len() == count as usize
            && endpoints.windows(2).all(|pair| pair[0].instance < pair[1].instance)
            && Endpoint::checksum(endpoints) == checksum
    }

    /// Becomes another set, at once.
    pub fn replace(&mut self, endpoints: Vec<Endpoint>, mutants: Mutants) {
        if mutants.has(Mutant::NonAtomicSnapshot) {
            let added: Vec<Change> = endpoints.into_iter().map(Change::Added).collect();
            return self.apply_blindly(&added);
        }
        self.checksum = Endpoint::checksum(&endpoints);
        self.endpoints = endpoints;
    }

    /// Net changes that turn this set into another.
    pub fn diff(&self, to: &[Endpoint]) -> Vec<Change> {
        let removed = self.endpoints.iter().map(|endpoint| Change::Removed(*endpoint));
        let added = to.iter().map(|endpoint| Change::Added(*endpoint));
        let all: Vec<Change> = removed.chain(added).collect();
        net(&all)
    }
}
