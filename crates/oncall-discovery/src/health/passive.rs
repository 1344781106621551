//! Complaints of proxies (D9): evidence, not decisions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::types::{Generation, Place, ProxyId, Span, Time};

/// What makes complaints count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PassiveRule {
    /// Distinct proxies.
    pub proxies: u8,
    /// Distinct zones that they stand in, at least 2: one zone's broken link is no evidence.
    pub zones: u8,
    /// How long a complaint counts.
    pub window: Span,
}

impl Default for PassiveRule {
    /// Three proxies in two zones within 30 s.
    fn default() -> Self {
        Self { proxies: 3, zones: 2, window: Span::from_s(30) }
    }
}

/// Most complaints kept about one instance; the oldest makes room.
const KEPT: usize = 16;

/// What is held against one instance.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Complaint {
    generation: Generation,
    from: Vec<(ProxyId, Place, Time)>,
    /// When an active probe failed last, since the first complaint.
    probe_failed: Option<Time>,
}

/// Complaints by row of the catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Complaints {
    by_row: BTreeMap<u32, Complaint>,
}

impl Complaints {
    /// A proxy complains about a generation.
    pub fn add(
        &mut self,
        now: Time,
        row: u32,
        generation: Generation,
        (proxy, place): (ProxyId, Place),
        rule: PassiveRule,
    ) {
        let fresh = || Complaint { generation, from: Vec::new(), probe_failed: None };
        let complaint = self.by_row.entry(row).or_insert_with(fresh);
        if complaint.generation != generation {
            *complaint = fresh();
        }
        complaint.from.retain(|&(other, _, at)| other != proxy && now.since(at) < rule.window);
        if complaint.from.len() == KEPT {
            complaint.from.remove(0);
        }
        complaint.from.push((proxy, place, now));
    }

    /// An active probe of a row had a result.
    pub fn probed(&mut self, now: Time, row: u32, ok: bool) {
        if let Some(complaint) = self.by_row.get_mut(&row) {
            complaint.probe_failed = (!ok).then_some(now);
        }
    }

    /// Whether anybody complains about a row.
    pub fn about(&self, row: u32) -> bool {
        self.by_row.contains_key(&row)
    }

    /// Whether enough proxies in enough zones complain.
    pub fn quorum(&self, now: Time, row: u32, generation: Generation, rule: PassiveRule) -> bool {
        let Some(complaint) = self.by_row.get(&row) else { return false };
        let mut zones: Vec<Place> = Vec::with_capacity(KEPT);
        let mut proxies = 0;
        for &(_, place, _) in
            complaint.from.iter().filter(|&&(_, _, at)| now.since(at) < rule.window)
        {
            proxies += 1;
            if !zones.contains(&place) {
                zones.push(place);
            }
        }
        complaint.generation == generation
            && proxies >= usize::from(rule.proxies)
            && zones.len() >= usize::from(rule.zones.max(2))
    }

    /// Whether the last active probe since the first complaint failed, and lately.
    pub fn probe_agrees(&self, now: Time, row: u32, rule: PassiveRule) -> bool {
        let failed = self.by_row.get(&row).and_then(|complaint| complaint.probe_failed);
        failed.is_some_and(|at| now.since(at) < rule.window)
    }

    /// Forgets a row.
    pub fn clear(&mut self, row: u32) {
        self.by_row.remove(&row);
    }

    /// Forgets everything.
    pub fn clear_all(&mut self) {
        self.by_row.clear();
    }

    /// Forgets rows about which nobody complained lately.
    pub fn prune(&mut self, now: Time, rule: PassiveRule) {
        self.by_row.retain(|_, complaint| {
            complaint.from.last().is_some_and(|&(_, _, at)| now.since(at) < rule.window)
        });
    }

    /// After a sweep of the catalog: rows got new numbers.
    pub fn renumber(&mut self, moved: &[u32]) {
        let old = std::mem::take(&mut self.by_row);
        self.by_row = old
            .into_iter()
            .filter_map(|(row, complaint)| {
                let row = *moved.get(row as usize)?;
                (row != u32::MAX).then_some((row, complaint))
            })
            .collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{RegionId, ZoneId};

    const RULE: PassiveRule = PassiveRule { proxies: 3, zones: 2, window: Span::from_s(30) };
    const GENERATION: Generation = Generation::first(5);

    fn complain(complaints: &mut Complaints, now_s: u64, proxy: u16, zone: u8) {
        let place = Place { region: RegionId(0), zone: ZoneId(zone) };
        let from = (ProxyId(proxy), place);
        complaints.add(Time::from_s(now_s), 0, GENERATION, from, RULE);
    }

    #[test]
    fn three_proxies_in_two_zones_within_the_window() {
        let mut all = Complaints::default();
        let quorum = |all: &Complaints, now_s| all.quorum(Time::from_s(now_s), 0, GENERATION, RULE);
        for (now_s, proxy, zone) in [(0, 1, 0), (1, 2, 0), (2, 3, 0), (3, 1, 0)] {
            complain(&mut all, now_s, proxy, zone);
            assert!(!quorum(&all, now_s), "one zone only");
        }
        complain(&mut all, 4, 9, 1);
        assert!(quorum(&all, 4));
        assert!(quorum(&all, 31), "of 2, 3, 1 and 9, at 1 to 4 s, the first is out");
        assert!(!quorum(&all, 32));
        assert!(!all.quorum(Time::from_s(4), 0, GENERATION.again(), RULE), "another life");
        all.prune(Time::from_s(33), RULE);
        assert!(all.about(0));
        all.prune(Time::from_s(34), RULE);
        assert!(!all.about(0));
    }

    #[test]
    fn one_proxy_counts_once_and_memory_is_bounded() {
        let mut all = Complaints::default();
        for second in 0..20 {
            complain(&mut all, second, 1, (second % 3) as u8);
        }
        assert!(!all.quorum(Time::from_s(20), 0, GENERATION, RULE));
        for proxy in 0..1_000 {
            complain(&mut all, 20, proxy, 0);
        }
        assert_eq!(all.by_row[&0].from.len(), KEPT);
    }
}
