//! From a request and a role to a command.

use serde::{Deserialize, Serialize};

use crate::auth::{AuthError, Claims, Role};
use crate::catalog::{CatalogShard, Command, Registration, may_move};
use crate::types::{
    Cell, EndpointRecord, Generation, InstanceId, NodeId, Reason, Revision, Source, State,
};

/// What somebody asks of a shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// To be registered.
    Register(Registration),
    /// A transition.
    Move {
        /// Who.
        instance: InstanceId,
        /// Which life of it.
        generation: Generation,
        /// State asked for.
        to: State,
        /// Why.
        reason: Reason,
        /// Revision of the record that was read, if the asker insists on it.
        expected: Option<Revision>,
    },
    /// Another weight.
    Weigh {
        /// Who.
        instance: InstanceId,
        /// Which life of it.
        generation: Generation,
        /// At least 1.
        weight: u16,
    },
    /// Renewal of leases.
    Renew(Vec<(InstanceId, Generation)>),
    /// To read or follow a cell.
    Read(Cell),
    /// To report what a probe, a caller or its own node's agent saw of an instance.
    Report(InstanceId),
}

/// A request that may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Admitted {
    /// To the log.
    Command(Command),
    /// To the lease keeper, on behalf of a node's agent.
    Renew(NodeId),
    /// To whoever answers reads or takes reports.
    Pass,
}

/// Least privilege: what a role may ask of a shard. The labels of a request are never looked at.
pub fn admit(
    claims: &Claims,
    request: &Request,
    catalog: &CatalogShard,
) -> Result<Admitted, AuthError> {
    match request {
        Request::Register(asked) => register(&claims.role, asked, catalog),
        Request::Move { instance, generation, to, reason, expected } => {
            let source = owner(&claims.role, *instance, catalog)?;
            let node = catalog.find(*instance).map_or(NodeId(u16::MAX), |record| record.node);
            if !may_move(source, *reason, *instance, node) {
                return Err(AuthError::Forbidden("ask for a transition for this reason"));
            }
            Ok(Admitted::Command(Command::Move {
                instance: *instance,
                generation: *generation,
                to: *to,
                reason: *reason,
                source,
                expected: *expected,
            }))
        }
        Request::Weigh { instance, generation, weight } => {
            let source = owner(&claims.role, *instance, catalog)?;
            if source != Source::Controller {
                return Err(AuthError::Forbidden("set weights"));
            }
            let (instance, generation, weight) = (*instance, *generation, *weight);
            Ok(Admitted::Command(Command::Weigh { instance, generation, weight, source }))
        }
        Request::Renew(listed) => renew(&claims.role, listed, catalog),
        Request::Read(cell) if may_read(&claims.role, *cell) => Ok(Admitted::Pass),
        Request::Read(_) => Err(AuthError::Forbidden("watch this cell")),
        Request::Report(instance) => report(&claims.role, *instance, catalog),
    }
}

fn register(
    role: &Role,
    asked: &Registration,
    catalog: &CatalogShard,
) -> Result<Admitted, AuthError> {
    let source = match role {
        Role::Controller { region } if *region == asked.cell.region => Source::Controller,
        Role::Controller { .. } => return Err(AuthError::Forbidden("register in another region")),
        Role::Agent { node, place, ip, services } => {
            if *node != asked.node || *place != asked.place {
                return Err(AuthError::Forbidden("register on another node"));
            }
            if *ip != asked.address.ip {
                return Err(AuthError::Forbidden("register an address of another node"));
            }
            if services.binary_search(&asked.cell.service).is_err() {
                return Err(AuthError::Forbidden("register this service"));
            }
            let known = catalog.find(asked.instance);
            if known.is_some_and(|record| record.node != *node && record.state.leased()) {
                return Err(AuthError::Forbidden("take over an instance of another node"));
            }
            Source::Agent(*node)
        }
        Role::Workload { cell, instance, address } => {
            if *cell != asked.cell || *instance != asked.instance {
                return Err(AuthError::Forbidden("register another service or instance"));
            }
            if *address != asked.address {
                return Err(AuthError::Forbidden("register another's address"));
            }
            Source::Workload(*instance)
        }
        _ => return Err(AuthError::Forbidden("register")),
    };
    Ok(Admitted::Command(Command::Register(*asked, source)))
}

/// The source that a role counts as, for a known instance that lies within its reach.
fn owner(role: &Role, instance: InstanceId, catalog: &CatalogShard) -> Result<Source, AuthError> {
    let record = catalog.find(instance);
    let here = |is: &dyn Fn(&EndpointRecord) -> bool| record.as_ref().is_some_and(is);
    match role {
        Role::Controller { region } if *region == catalog.region() => Ok(Source::Controller),
        Role::Agent { node, .. } if here(&|record| record.node == *node) => {
            Ok(Source::Agent(*node))
        }
        Role::Workload { cell, instance: own, .. }
            if *own == instance && here(&|record| record.cell == *cell) =>
        {
            Ok(Source::Workload(instance))
        }
        _ => Err(AuthError::Forbidden("change this instance")),
    }
}

fn renew(
    role: &Role,
    listed: &[(InstanceId, Generation)],
    catalog: &CatalogShard,
) -> Result<Admitted, AuthError> {
    match role {
        // The keeper checks the node of each instance on the list.
        Role::Agent { node, place, .. } if place.region == catalog.region() => {
            Ok(Admitted::Renew(*node))
        }
        Role::Workload { instance, .. } if listed.iter().all(|(listed, _)| listed == instance) => {
            let record = catalog.find(*instance);
            let node = record.map(|record| Admitted::Renew(record.node));
            node.ok_or(AuthError::Forbidden("renew what is not registered"))
        }
        _ => Err(AuthError::Forbidden("renew these leases")),
    }
}

/// Whether a role may read or follow a cell.
pub(super) fn may_read(role: &Role, cell: Cell) -> bool {
    match role {
        // Which remote cells of its services it is given is a matter of policy, not of identity.
        Role::Proxy { services, .. } => services.binary_search(&cell.service).is_ok(),
        // Relays also serve the remote cells that policy permits; they can only read.
        Role::Relay { .. } => true,
        Role::Controller { region } => *region == cell.region,
        Role::Workload { cell: own, .. } => *own == cell,
        Role::Agent { .. } | Role::Prober { .. } => false,
    }
}

fn report(
    role: &Role,
    instance: InstanceId,
    catalog: &CatalogShard,
) -> Result<Admitted, AuthError> {
    let may = |record: EndpointRecord| match role {
        Role::Proxy { services, .. } => services.binary_search(&record.cell.service).is_ok(),
        Role::Prober { region, .. } => *region == record.cell.region,
        Role::Agent { node, .. } => *node == record.node,
        _ => false,
    };
    if catalog.find(instance).is_some_and(may) {
        return Ok(Admitted::Pass);
    }
    Err(AuthError::Forbidden("report on this instance"))
}
