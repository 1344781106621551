//! Leases: the safety net for abandoned records, not the way of leaving (R78).
//!
//! Renewals stay with the leader and never enter the log (D17); what enters it are grants (registrations) and
//! expiries. A leader therefore knows nothing of the renewals that its predecessor heard: from the moment its
//! barrier is committed every lease gets one full TTL of grace (D11). An expiry is a proposal that carries the
//! term in which it was decided, and the catalog refuses one from another term.
//!
//! Renewals come aggregated, one message for all instances of a node (R128). At full scale even those need not be
//! played: a driver may [`LeaseKeeper::cover`] rows whose renewals arrive every time, and take the cover away with
//! the time of the last renewal when the path breaks. Nothing else differs.

mod keeper;
mod load;

#[cfg(test)]
mod leader_model;
#[cfg(test)]
mod tests;

pub use keeper::{LeaseKeeper, LeaseMessage, LeaseTimer, RenewalRefusal};
pub use load::{aggregated_renewals_per_s, direct_renewals_per_s, ttl_lower_bound};
