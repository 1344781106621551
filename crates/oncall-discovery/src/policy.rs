//! Policy: where calls of a service may go (R120), decided by what it declares and never by what looks alive.
//!
//! The global layer carries policies and ownership between regions and nothing else (R74): no region learns from
//! it that another's instances are dead (R119, R190). A caller's region counts what it sees READY at home, and the
//! declared policy says when and how far calls go elsewhere (R121, R193). What may not go elsewhere ends in an
//! explicit result (R95).

mod failover;
mod ownership;
mod service;

#[cfg(test)]
mod tests;

pub use failover::{Failover, FailoverRule, Shares};
pub use ownership::{OwnerView, Ownership, OwnershipError, OwnershipToken, WriteFence};
pub use service::{
    Access, Operation, PolicyBook, PolicyError, REGIONS_MAX, RegionSet, ServicePolicy, Targets,
};
