//! What a service declares.

use serde::{Deserialize, Serialize};

use super::ownership::OwnerView;
use crate::dials::Dials;
use crate::mutants::{Mutant, Mutants};
use crate::proxy::{AgeAction, AgeRule};
use crate::types::{RegionId, ServiceId};

/// Regions that a policy can name.
pub const REGIONS_MAX: usize = 8;

/// Some regions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RegionSet(u8);

impl RegionSet {
    /// Of these regions. Those beyond [`REGIONS_MAX`] are left out.
    pub fn of(regions: &[RegionId]) -> Self {
        let bit = |region: &RegionId| 1u8.checked_shl(region.0.into()).unwrap_or(0);
        Self(regions.iter().fold(0, |set, region| set | bit(region)))
    }

    /// Whether a region is in it.
    pub fn has(self, region: RegionId) -> bool {
        region.index() < REGIONS_MAX && self.0 >> region.0 & 1 == 1
    }
}

/// What calls do to a service's data.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Access {
    /// Only reads; every region can serve them.
    #[default]
    ReadOnly,
    /// Writes too, and every region can take them.
    Writable,
    /// Writes go to the one region that owns the data; reads as for `ReadOnly`.
    SingleWriter,
}

/// What one call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Operation {
    /// Reads.
    Read,
    /// Writes.
    Write,
}

/// A service's policy.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ServicePolicy {
    /// What calls do.
    pub access: Access,
    /// Other regions that may serve a region's calls, in order. Empty: cross-region routing is not allowed.
    pub order: Vec<RegionId>,
    /// Regions that the data may be in, callers' and targets' alike.
    pub residency: RegionSet,
    /// READY instances that the service wants, by region.
    pub target: [u32; REGIONS_MAX],
    /// What a region can take over from all others together, in instances, by region.
    pub spare: [u32; REGIONS_MAX],
    /// Whether the dial for strict services limits the age of snapshots.
    pub strict_age: bool,
    /// What happens beyond that age.
    pub age_action: AgeAction,
}

/// Why a policy was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// More regions than a policy can name, or one of them outside.
    #[error("policies[{service}].{field}: region {region}; expected less than {regions}", service = service.0, region = region.0)]
    Region {
        /// Whose policy.
        service: ServiceId,
        /// Which field.
        field: &'static str,
        /// The region.
        region: RegionId,
        /// How many regions there are.
        regions: usize,
    },
    /// A region stands in the order twice.
    #[error("policies[{service}].order: region {region} twice", service = service.0, region = region.0)]
    Twice {
        /// Whose policy.
        service: ServiceId,
        /// The region.
        region: RegionId,
    },
    /// The order names a region that the data may not be in.
    #[error("policies[{service}].order: region {region}, which residency leaves out", service = service.0, region = region.0)]
    Residency {
        /// Whose policy.
        service: ServiceId,
        /// The region.
        region: RegionId,
    },
    /// Too many regions for any policy.
    #[error("regions: {0}; expected 1 to {REGIONS_MAX}")]
    Regions(usize),
}

/// Regions in the order in which a call may try them. None: the policy refuses the call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    regions: [RegionId; REGIONS_MAX],
    len: u8,
}

impl Targets {
    /// The regions, for [`crate::proxy::Plan`].
    pub fn regions(&self) -> &[RegionId] {
        &self.regions[..usize::from(self.len)]
    }

    pub(super) fn push(&mut self, region: RegionId) {
        self.regions[usize::from(self.len)] = region;
        self.len += 1;
    }
}

impl ServicePolicy {
    /// At home only: no cross-region routing, data wherever the callers are.
    pub fn home_only(target: [u32; REGIONS_MAX]) -> Self {
        Self {
            access: Access::ReadOnly,
            order: Vec::new(),
            residency: RegionSet(u8::MAX),
            target,
            spare: [0; REGIONS_MAX],
            strict_age: false,
            age_action: AgeAction::Degrade,
        }
    }

    /// How old the set may be that calls are routed by (R101).
    pub fn age_rule(&self, dials: &Dials) -> AgeRule {
        let max_s = if self.strict_age {
            dials.snapshot_age_max_strict_s
        } else {
            dials.snapshot_age_max_ordinary_s
        };
        AgeRule { max: Dials::span_s(max_s), action: self.age_action }
    }

    /// Whether a call from a region may be served in another at all: what invariant I11 asks of every routed call.
    pub fn permits(
        &self,
        home: RegionId,
        target: RegionId,
        operation: Operation,
        owner: &OwnerView,
    ) -> bool {
        if !self.residency.has(home) || !self.residency.has(target) {
            return false;
        }
        match (self.access, operation) {
            (Access::ReadOnly, Operation::Write) => false,
            (Access::SingleWriter, Operation::Write) => owner.region() == Some(target),
            _ => home == target || self.order.contains(&target),
        }
    }

    /// Where a write of a single-writer service goes: to the owner, wherever the caller is, or nowhere.
    pub fn write_targets(
        &self,
        home: RegionId,
        owner: &OwnerView,
        ready: &[u32; REGIONS_MAX],
        mutants: Mutants,
    ) -> Targets {
        let mut targets = Targets::default();
        let owning =
            owner.region().filter(|&region| self.permits(home, region, Operation::Write, owner));
        targets_push(&mut targets, owning);
        if mutants.has(Mutant::WriterWithoutToken) {
            let alive = |region: &RegionId| ready[region.index()] > 0;
            let other = self.order.iter().copied().find(alive);
            if owning.is_none_or(|region| ready[region.index()] == 0) {
                targets = Targets::default();
                targets_push(&mut targets, other);
            }
        }
        targets
    }
}

fn targets_push(targets: &mut Targets, region: Option<RegionId>) {
    if let Some(region) = region {
        targets.push(region);
    }
}

/// The policies of all services, as one version of them. This is what the global layer hands around.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PolicyBook {
    version: u64,
    regions: u8,
    policies: Vec<ServicePolicy>,
}

impl PolicyBook {
    /// A version of the policies of all services, by service, for so many regions.
    pub fn new(
        version: u64,
        regions: usize,
        policies: Vec<ServicePolicy>,
    ) -> Result<Self, PolicyError> {
        if regions == 0 || regions > REGIONS_MAX {
            return Err(PolicyError::Regions(regions));
        }
        for (index, policy) in policies.iter().enumerate() {
            let service = ServiceId(index as u16);
            for (at, &region) in policy.order.iter().enumerate() {
                if region.index() >= regions {
                    return Err(PolicyError::Region { service, field: "order", region, regions });
                }
                if policy.order[..at].contains(&region) {
                    return Err(PolicyError::Twice { service, region });
                }
                if !policy.residency.has(region) {
                    return Err(PolicyError::Residency { service, region });
                }
            }
        }
        Ok(Self { version, regions: regions as u8, policies })
    }

    /// Version.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Number of regions.
    pub fn regions(&self) -> usize {
        self.regions.into()
    }

    /// A service's policy.
    pub fn policy(&self, service: ServiceId) -> Option<&ServicePolicy> {
        self.policies.get(service.index())
    }

    /// Takes another version if it is newer; messages of the global layer may be late.
    pub fn adopt(&mut self, other: &Self) -> bool {
        let newer = other.version > self.version;
        if newer {
            self.clone_from(other);
        }
        newer
    }
}
