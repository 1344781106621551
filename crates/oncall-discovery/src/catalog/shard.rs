//! The state of a shard and how it is read (D19).

use oncall_consensus::Pages;
use oncall_core::streams::mix;
use serde::{Deserialize, Serialize};

use super::audit::AuditLog;
use super::index::Index;
use crate::mutants::Mutants;
use crate::types::{
    Address, Cell, CellUpdate, Directory, Endpoint, EndpointRecord, Generation, Incarnation,
    InstanceId, Labels, NodeId, Place, RegionId, Revision, Sample, ShardId, State, Term, Time,
    Transition, ZoneId,
};

/// No row.
pub(super) const NIL: u32 = u32::MAX;
/// No cell of this shard.
const ELSEWHERE: u16 = u16::MAX;

/// One instance: 48 bytes, no pointers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) instance: InstanceId,
    pub(super) generation: Generation,
    pub(super) address: Address,
    pub(super) labels: Labels,
    pub(super) revision: Revision,
    /// Neighbours in the list of the cell's rows that are not gone.
    pub(super) next: u32,
    pub(super) previous: u32,
    pub(super) node: NodeId,
    pub(super) version: u16,
    pub(super) weight: u16,
    /// Place in the shard's cells.
    pub(super) cell: u16,
    pub(super) zone: ZoneId,
    pub(super) state: State,
    /// Whether this process has been READY: only then may it come back READY (D10).
    pub(super) started: bool,
}

/// Who an address belongs to: the latest that registered there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Owner {
    pub(super) address: Address,
    /// Its row; [`NIL`] once that is forgotten.
    pub(super) row: u32,
    pub(super) start: u32,
}

/// One cell of the shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct CellRow {
    pub(super) cell: Cell,
    /// Revision of the last accepted change.
    pub(super) revision: Revision,
    /// Revision of the last change of the routable set.
    pub(super) head: Revision,
    /// Checksum of the routable set.
    pub(super) checksum: u64,
    /// First row of the list.
    pub(super) first: u32,
    /// Rows by state.
    pub(super) counts: [u32; State::ALL.len()],
}

/// A shard of a region's catalog. See the [module](super).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CatalogShard {
    pub(super) region: RegionId,
    pub(super) shard: ShardId,
    pub(super) incarnation: Incarnation,
    /// Term of the last barrier.
    pub(super) term: Term,
    /// Unknown instances that started before this are refused.
    pub(super) floor: u32,
    pub(super) rows: Pages<Row>,
    pub(super) by_instance: Index,
    pub(super) owners: Pages<Owner>,
    pub(super) by_address: Index,
    pub(super) cells: Vec<CellRow>,
    /// Place in `cells` by service.
    pub(super) cell_of: Vec<u16>,
    pub(super) audit: AuditLog,
    pub(super) mutants: Mutants,
}

/// What applying an entry brings about. The caller empties and reuses it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CatalogOut {
    /// Accepted transitions, in order of revision for each cell.
    pub transitions: Vec<Transition>,
    /// Changes of routable sets.
    pub updates: Vec<CellUpdate>,
    /// After a sweep: the new number of each old row, `u32::MAX` for those that are forgotten. Tables that are
    /// kept by row have to follow.
    pub moved: Option<Vec<u32>>,
    /// Registrations accepted (R134), commands refused.
    pub samples: Vec<Sample>,
}

impl CatalogOut {
    /// Empties it and keeps its memory.
    pub fn clear(&mut self) {
        self.transitions.clear();
        self.updates.clear();
        self.moved = None;
        self.samples.clear();
    }
}

/// What a snapshot of a cell is labelled with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CellHead {
    /// Life of the shard's history.
    pub incarnation: Incarnation,
    /// Revision of the last change of the routable set.
    pub revision: Revision,
    /// Size of the routable set.
    pub count: u32,
    /// Checksum of the routable set.
    pub checksum: u64,
}

/// A cell as it is now. Everything read from one view belongs to one revision (D19).
#[derive(Clone, Copy, Debug)]
pub struct CellView<'a> {
    shard: &'a CatalogShard,
    cell: &'a CellRow,
}

/// Why a shard cannot be restored from a copy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "incarnation: {given}; expected more than {known}, which revisions may have been read under"
)]
pub struct RestoreError {
    /// What was given.
    pub given: u32,
    /// The largest known.
    pub known: u32,
}

impl CatalogShard {
    /// An empty shard with the cells of its region that the directory spreads to it. Keeps `audit_lines` lines.
    pub fn new(directory: &Directory, region: RegionId, shard: ShardId, audit_lines: u32) -> Self {
        let mut cells = Vec::new();
        let cell_of = (0..directory.len() as u16).map(crate::types::ServiceId).map(|service| {
            if directory.shard(service) != Some(shard) {
                return ELSEWHERE;
            }
            cells.push(CellRow {
                cell: Cell { service, region },
                revision: Revision(0),
                head: Revision(0),
                checksum: 0,
                first: NIL,
                counts: [0; State::ALL.len()],
            });
            cells.len() as u16 - 1
        });
        let cell_of = cell_of.collect();
        Self {
            region,
            shard,
            incarnation: Incarnation(1),
            term: Term(0),
            floor: 0,
            rows: Pages::default(),
            by_instance: Index::default(),
            owners: Pages::default(),
            by_address: Index::default(),
            cells,
            cell_of,
            audit: AuditLog::new(audit_lines),
            mutants: Mutants::default(),
        }
    }

    /// The same shard with safeguards taken out, for tests.
    #[must_use]
    pub fn with_mutants(self, mutants: Mutants) -> Self {
        Self { mutants, ..self }
    }

    /// The same without its audit log, which counts refusals too and would make every state a new one.
    #[cfg(test)]
    pub(crate) fn without_audit(self) -> Self {
        Self { audit: AuditLog::new(0), ..self }
    }

    /// This copy as the start of a new life, after the original was lost. `known` is the largest incarnation that
    /// anybody may have read: revisions after the copy was taken will be given out again, with other contents.
    pub fn restored(
        mut self,
        known: Incarnation,
        incarnation: Incarnation,
    ) -> Result<Self, RestoreError> {
        let known = known.max(self.incarnation);
        if incarnation <= known {
            return Err(RestoreError { given: incarnation.0, known: known.0 });
        }
        self.incarnation = incarnation;
        Ok(self)
    }

    /// Region.
    pub fn region(&self) -> RegionId {
        self.region
    }

    /// Which shard.
    pub fn shard(&self) -> ShardId {
        self.shard
    }

    /// Life of this history.
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// Term of the last barrier.
    pub fn term(&self) -> Term {
        self.term
    }

    /// The audit log.
    pub fn audit(&self) -> &AuditLog {
        &self.audit
    }

    /// Rows ever made: rows are numbered below this, and keep their number until a sweep.
    pub fn rows(&self) -> u32 {
        self.rows.len() as u32
    }

    /// Row of an instance, gone ones included.
    pub fn row_of(&self, instance: InstanceId) -> Option<u32> {
        let rows = &self.rows;
        self.by_instance.find(u64::from(instance.0), |row| rows[row as usize].instance == instance)
    }

    /// What is on record in a row.
    pub fn record(&self, row: u32) -> Option<EndpointRecord> {
        self.rows.get(row as usize).map(|row| self.to_record(row))
    }

    /// What is on record about an instance, gone ones included.
    pub fn find(&self, instance: InstanceId) -> Option<EndpointRecord> {
        self.record(self.row_of(instance)?)
    }

    /// A cell, if this shard keeps it.
    pub fn view(&self, cell: Cell) -> Option<CellView<'_>> {
        Some(CellView { shard: self, cell: &self.cells[self.cell_at(cell)?] })
    }

    /// All cells of the shard, by service.
    pub fn views(&self) -> impl Iterator<Item = CellView<'_>> {
        self.cells.iter().map(|cell| CellView { shard: self, cell })
    }

    /// Number of a cell within its shard; a number that no cell has, if the shard does not keep it.
    pub(crate) fn place_of(&self, cell: Cell) -> usize {
        self.cell_at(cell).unwrap_or(self.cells.len())
    }

    pub(super) fn cell_at(&self, cell: Cell) -> Option<usize> {
        let at = *self.cell_of.get(cell.service.index())?;
        (cell.region == self.region && at != ELSEWHERE).then_some(usize::from(at))
    }

    /// The address's owner.
    pub(super) fn owner_at(&self, address: Address) -> Option<u32> {
        let owners = &self.owners;
        self.by_address.find(hash_of(address), |at| owners[at as usize].address == address)
    }

    pub(super) fn to_record(&self, row: &Row) -> EndpointRecord {
        let cell = self.cells[usize::from(row.cell)].cell;
        EndpointRecord {
            cell,
            instance: row.instance,
            generation: row.generation,
            address: row.address,
            place: Place { region: cell.region, zone: row.zone },
            node: row.node,
            version: row.version,
            weight: row.weight,
            labels: row.labels,
            state: row.state,
            lease_expiry: Time::NEVER,
            revision: row.revision,
        }
    }

    /// Hash of everything that later entries depend on; equal on all replicas after the same entries.
    pub fn digest(&self) -> u64 {
        let head = [
            u64::from(self.region.0) << 8 | u64::from(self.shard.0),
            u64::from(self.incarnation.0) << 32 | u64::from(self.floor),
            self.term.0,
            self.audit.written(),
        ];
        let mut hash = head.into_iter().fold(0, mix);
        for chunk in self.audit.digest().chunks_exact(8) {
            hash = mix(hash, u64::from_le_bytes(std::array::from_fn(|at| chunk[at])));
        }
        for cell in &self.cells {
            hash = mix(hash, u64::from(cell.revision.0) << 32 | u64::from(cell.head.0));
            hash = mix(hash, cell.checksum);
        }
        for row in self.rows.iter() {
            let state = (row.state as u64) << 8 | u64::from(row.started);
            hash = mix(hash, self.to_record(row).endpoint().fingerprint() ^ state);
            hash = mix(hash, u64::from(row.revision.0) << 32 | u64::from(row.instance.0));
        }
        for owner in self.owners.iter() {
            hash = mix(hash, u64::from(owner.row) << 32 | u64::from(owner.start));
            hash = mix(hash, hash_of(owner.address));
        }
        hash
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.rows.heap_bytes()
            + self.owners.heap_bytes()
            + self.cells.capacity() * size_of::<CellRow>()
            + self.cell_of.capacity() * size_of::<u16>()
            + self.by_instance.heap_bytes()
            + self.by_address.heap_bytes()
            + self.audit.heap_bytes()
    }
}

/// Key of an address in its index.
pub(super) fn hash_of(address: Address) -> u64 {
    u64::from(address.ip) << 16 | u64::from(address.port)
}

impl<'a> CellView<'a> {
    /// Which cell.
    pub fn cell(self) -> Cell {
        self.cell.cell
    }

    /// What a snapshot taken now is labelled with.
    pub fn head(self) -> CellHead {
        CellHead {
            incarnation: self.shard.incarnation,
            revision: self.cell.head,
            count: self.count(State::Ready),
            checksum: self.cell.checksum,
        }
    }

    /// Revision of the last accepted change, of the routable set or not.
    pub fn revision(self) -> Revision {
        self.cell.revision
    }

    /// Instances in a state (R137).
    pub fn count(self, state: State) -> u32 {
        self.cell.counts[state as usize]
    }

    /// Records of the cell that are not gone, in no particular but reproducible order.
    pub fn records(self) -> impl Iterator<Item = EndpointRecord> + use<'a> {
        self.walk().map(move |row| self.shard.to_record(row))
    }

    /// The routable set: what a snapshot carries.
    pub fn endpoints(self) -> impl Iterator<Item = Endpoint> + use<'a> {
        let shard = self.shard;
        self.walk()
            .filter(|row| row.state.routable())
            .map(move |row| shard.to_record(row).endpoint())
    }

    fn walk(self) -> impl Iterator<Item = &'a Row> {
        let rows = &self.shard.rows;
        let first = rows.get(self.cell.first as usize);
        std::iter::successors(first, move |row| rows.get(row.next as usize))
    }
}
