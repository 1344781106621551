//! The part of the dials that proxies obey, as they travel to them.

use serde::{Deserialize, Serialize};

use super::{BackOff, BreakerRule, EjectRule};
use crate::dials::Dials;
use crate::types::Span;

/// What a proxy goes by. Arrives as a policy through the distribution tier, and so not at all in an outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProxyDials {
    /// Times between attempts to connect, and between repeated repairs.
    pub back_off: BackOff,
    /// Time between two heartbeats that the relay promises.
    pub heartbeat: Span,
    /// Local ejection.
    pub eject: EjectRule,
    /// Circuit breaker of a cell.
    pub breaker: BreakerRule,
    /// How long a connection may take.
    pub connect_timeout: Span,
    /// Retries of one request.
    pub retries_max: u8,
    /// Retries as a share of requests, in percent.
    pub retry_budget_pct: u8,
    /// Age beyond which a proxy raises an alert; it goes on using the set (R94).
    pub age_alert: Span,
    /// Oldest set that an ordinary service may be routed by.
    pub age_max_ordinary: Span,
    /// Oldest set that a strict service may be routed by.
    pub age_max_strict: Span,
}

impl Default for ProxyDials {
    fn default() -> Self {
        Self::from(&Dials::default())
    }
}

impl From<&Dials> for ProxyDials {
    /// From validated dials. The alert comes at four missed heartbeats, or 30 s if that is longer.
    fn from(dials: &Dials) -> Self {
        let heartbeat = Dials::span_s(dials.head_heartbeat_s);
        let base = Dials::span_s(dials.ejection_base_s);
        Self {
            back_off: BackOff {
                base: Dials::span_s(dials.reconnect_base_s),
                cap: Dials::span_s(dials.reconnect_cap_s),
                jitter_pct: dials.reconnect_jitter_pct as u8,
            },
            heartbeat,
            eject: EjectRule {
                errors: dials.ejection_errors as u8,
                base,
                cap: Span(base.0 * 10).min(Span::from_s(600)),
                share_max_pct: dials.ejected_share_max_pct as u8,
            },
            breaker: BreakerRule::default(),
            connect_timeout: Dials::span_ms(dials.connect_timeout_ms),
            retries_max: dials.retries_max as u8,
            retry_budget_pct: dials.retry_budget_pct as u8,
            age_alert: Span(heartbeat.0 * 4).max(Span::from_s(30)),
            age_max_ordinary: Dials::span_s(dials.snapshot_age_max_ordinary_s),
            age_max_strict: Dials::span_s(dials.snapshot_age_max_strict_s),
        }
    }
}
