//! The catalog of the test world: what was accepted, and a copy of the set at every head there ever was.

use std::collections::BTreeMap;

use crate::distrib::{CellStore, Cursor};
use crate::types::{
    Address, Cell, CellUpdate, Change, Endpoint, Generation, Incarnation, InstanceId, Labels,
    NodeId, Reason, RegionId, Revision, ServiceId, Time, ZoneId,
};

/// Service `service` in region 0.
pub(crate) const fn cell(service: u16) -> Cell {
    Cell { service: ServiceId(service), region: RegionId(0) }
}

/// An endpoint whose fields follow from its id and start.
pub(crate) fn endpoint(instance: u32, start: u32) -> Endpoint {
    Endpoint {
        instance: InstanceId(instance),
        generation: Generation::first(start),
        address: Address { ip: 0x0a00_0000 + instance, port: 8_080 },
        labels: Labels::NONE,
        node: NodeId((instance % 7) as u16),
        version: 1,
        weight: 1,
        zone: ZoneId((instance % 3) as u8),
    }
}

#[derive(Clone, Debug, Default)]
struct Truth {
    accepted: u32,
    head: u32,
    set: BTreeMap<InstanceId, Endpoint>,
    updates: Vec<CellUpdate>,
}

/// The naive model: copied sets.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) incarnation: Incarnation,
    cells: BTreeMap<Cell, Truth>,
    bases: BTreeMap<Cell, (u32, Vec<Endpoint>)>,
    history: BTreeMap<(Cell, Cursor), Vec<Endpoint>>,
    newest: BTreeMap<(Cell, InstanceId), Generation>,
}

impl Source {
    pub(crate) fn new(cells: &[Cell]) -> Self {
        let mut source = Self {
            incarnation: Incarnation(1),
            cells: BTreeMap::new(),
            bases: BTreeMap::new(),
            history: BTreeMap::new(),
            newest: BTreeMap::new(),
        };
        for &cell in cells {
            source.cells.insert(cell, Truth::default());
            source.bases.insert(cell, (0, Vec::new()));
            source.history.insert((cell, Cursor::new(Incarnation(1), Revision(0))), Vec::new());
        }
        source
    }

    pub(crate) fn head(&self, cell: Cell) -> Cursor {
        Cursor::new(self.incarnation, Revision(self.cells[&cell].head))
    }

    pub(crate) fn set(&self, cell: Cell) -> Vec<Endpoint> {
        self.cells[&cell].set.values().copied().collect()
    }

    /// The newest generation of an instance that was ever published.
    pub(crate) fn newest(&self, cell: Cell, instance: InstanceId) -> Option<Generation> {
        self.newest.get(&(cell, instance)).copied()
    }

    /// The set at a head, if there ever was one there.
    pub(crate) fn at(&self, cell: Cell, cursor: Cursor) -> Option<&[Endpoint]> {
        self.history.get(&(cell, cursor)).map(Vec::as_slice)
    }

    /// A transition that does not touch the routable set: a revision that no head names.
    pub(crate) fn silent(&mut self, cell: Cell) {
        self.cells.get_mut(&cell).unwrap().accepted += 1;
    }

    /// Puts an endpoint in, or another weight or generation of it.
    pub(crate) fn put(&mut self, now: Time, cell: Cell, endpoint: Endpoint) -> Option<CellUpdate> {
        let old = self.cells[&cell].set.get(&endpoint.instance).copied();
        let change = match old {
            Some(old) if old == endpoint => return None,
            Some(old) => Change::Changed(old, endpoint),
            None => Change::Added(endpoint),
        };
        Some(self.accept(now, cell, change))
    }

    /// Takes an endpoint out.
    pub(crate) fn remove(&mut self, now: Time, cell: Cell, instance: u32) -> Option<CellUpdate> {
        let old = *self.cells[&cell].set.get(&InstanceId(instance))?;
        Some(self.accept(now, cell, Change::Removed(old)))
    }

    fn accept(&mut self, now: Time, cell: Cell, change: Change) -> CellUpdate {
        let incarnation = self.incarnation;
        let truth = self.cells.get_mut(&cell).unwrap();
        if let Change::Added(new) | Change::Changed(_, new) = change {
            let newest = self.newest.entry((cell, new.instance)).or_default();
            *newest = new.generation.max(*newest);
        }
        match change {
            Change::Added(new) | Change::Changed(_, new) => truth.set.insert(new.instance, new),
            Change::Removed(old) => truth.set.remove(&old.instance),
        };
        let from = truth.head;
        truth.accepted += 1;
        truth.head = truth.accepted;
        let update = CellUpdate {
            cell,
            incarnation,
            from: Revision(from),
            to: Revision(truth.head),
            change,
            reason: Reason::Withdrawn,
            count: truth.set.len() as u32,
            checksum: Endpoint::checksum(truth.set.values()),
            accepted: now,
        };
        truth.updates.push(update);
        let set = truth.set.values().copied().collect();
        self.history.insert((cell, Cursor::new(incarnation, update.to)), set);
        update
    }

    /// What a publisher is rebuilt from: the sets at the log's beginning, and the log.
    pub(crate) fn log(&self) -> (Vec<CellStore>, Vec<CellUpdate>) {
        let base = |(cell, (rev, set)): (&Cell, &(u32, Vec<Endpoint>))| {
            let start = Cursor::new(self.incarnation, Revision(*rev));
            CellStore::at(*cell, start, set.clone())
        };
        let bases = self.bases.iter().map(base).collect();
        let updates = self.cells.values().flat_map(|truth| &truth.updates).copied().collect();
        (bases, updates)
    }

    /// Restored from a copy that lacks the last `lost` updates of each cell: a new life of the history.
    pub(crate) fn restore(&mut self, lost: usize) {
        self.incarnation = self.incarnation.next();
        for (cell, truth) in &mut self.cells {
            let keep = truth.updates.len().saturating_sub(lost);
            let last = Cursor::new(
                Incarnation(self.incarnation.0 - 1),
                truth.updates[..keep].last().map_or(Revision(self.bases[cell].0), |u| u.to),
            );
            let set = self.history[&(*cell, last)].clone();
            truth.head = last.rev.0;
            truth.accepted = last.rev.0;
            truth.updates.clear();
            truth.set = set.iter().map(|endpoint| (endpoint.instance, *endpoint)).collect();
            self.bases.insert(*cell, (last.rev.0, set.clone()));
            self.history.insert((*cell, Cursor::new(self.incarnation, last.rev)), set);
        }
    }
}
