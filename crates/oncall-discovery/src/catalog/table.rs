//! The table of transitions (D13, I6) and who may ask for what (R59, I14). Plain functions of plain values.

use crate::catalog::Registration;
use crate::types::{InstanceId, NodeId, Reason, Source, State};

/// Whether an instance may go from one state to another for a reason. Registrations have their own rules.
pub const fn legal(from: State, to: State, reason: Reason) -> bool {
    use Reason as R;
    use State as S;
    match (from, to) {
        (S::Starting, S::Ready) => matches!(reason, R::Started),
        // A rollout may be taken back before the instance is up, and a sick one may be shut down: both must not
        // become READY afterwards.
        (S::Starting | S::Ready | S::Unhealthy, S::Draining) => matches!(reason, R::Withdrawn),
        (S::Ready, S::Unhealthy) => {
            matches!(reason, R::ReadinessReported | R::ProbesFailed | R::PassiveConfirmed)
        }
        (S::Unhealthy, S::Ready) => matches!(reason, R::Recovered),
        (S::Starting | S::Ready | S::Draining | S::Unhealthy, S::Expired) => {
            matches!(reason, R::LeaseExpired | R::Replaced)
        }
        (S::Draining, S::Gone) => matches!(reason, R::Exited | R::DrainOver),
        (S::Expired, S::Gone) => matches!(reason, R::Cleared),
        _ => false,
    }
}

/// Whether a source may ask for a transition of an instance on a node for a reason.
pub fn may_move(source: Source, reason: Reason, instance: InstanceId, node: NodeId) -> bool {
    use Reason as R;
    match source {
        Source::Controller => {
            matches!(reason, R::Started | R::Withdrawn | R::Exited | R::DrainOver | R::Cleared)
        }
        // What an agent says of readiness goes to the health decider, so that the capacity guard sees it.
        Source::Agent(own) => {
            own == node && matches!(reason, R::Withdrawn | R::Exited | R::DrainOver)
        }
        Source::Workload(own) => own == instance && matches!(reason, R::Withdrawn | R::Exited),
        Source::Health => matches!(
            reason,
            R::Started
                | R::ReadinessReported
                | R::ProbesFailed
                | R::PassiveConfirmed
                | R::Recovered
        ),
        Source::Leases(_) => matches!(reason, R::LeaseExpired),
    }
}

/// Whether a source may register this.
pub fn may_register(source: Source, registration: &Registration) -> bool {
    match source {
        Source::Controller => true,
        Source::Agent(node) => node == registration.node,
        Source::Workload(instance) => instance == registration.instance,
        Source::Health | Source::Leases(_) => false,
    }
}
