//! Lease arithmetic (R29, R127, R128).

use crate::types::Span;

/// Renewals each second if every instance renews on its own: 100,000 every 10 s make 10,000/s.
pub fn direct_renewals_per_s(instances: u32, interval: Span) -> f64 {
    f64::from(instances) / interval.as_s()
}

/// Renewal messages each second if a node's agent renews for all its instances: one to each of the shards that
/// they are spread over, at most one for each instance.
pub fn aggregated_renewals_per_s(
    nodes: u32,
    instances_per_node: u32,
    shards: u32,
    interval: Span,
) -> f64 {
    f64::from(nodes) * f64::from(instances_per_node.min(shards)) / interval.as_s()
}

/// Shortest lease that survives `lost` renewals in a row and a leaderless time, with the jitter of the last one.
pub fn ttl_lower_bound(interval: Span, lost: u32, jitter_pct: f64, leaderless: Span) -> Span {
    let renewals_s = interval.as_s() * f64::from(lost + 1) * (1.0 + jitter_pct / 100.0);
    crate::dials::Dials::span_s(renewals_s + leaderless.as_s())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_of_the_specification() {
        assert_eq!(direct_renewals_per_s(100_000, Span::from_s(10)), 10_000.0);
        // One message for each node and shard; with one shard a twentieth of the direct load.
        assert_eq!(aggregated_renewals_per_s(5_000, 20, 1, Span::from_s(10)), 500.0);
        assert_eq!(aggregated_renewals_per_s(5_000, 20, 8, Span::from_s(10)), 4_000.0);
        assert_eq!(aggregated_renewals_per_s(5_000, 20, 64, Span::from_s(10)), 10_000.0);
        let ttl = ttl_lower_bound(Span::from_s(10), 1, 10.0, Span::from_s(5));
        assert_eq!(ttl, Span::from_s(27));
    }
}
