//! Failover of reads by declared policy, and of writes by ownership (R42, R120-R122, R193).
//!
//! Proxies look at their own sets once a second; all callers of a region and service see nearly the same, so the
//! decision is made once for them, on the mean of their candidates. An endpoint that a proxy has ejected is no
//! candidate: in a quorum loss that is the only sign of what is gone.

use super::World;
use crate::queue::{Micros, S};
use crate::topology::REGIONS;
use oncall_discovery::dials::Dials;
use oncall_discovery::mutants::Mutants;
use oncall_discovery::policy::{Access, FailoverRule, Operation, OwnerView, REGIONS_MAX};
use oncall_discovery::types::{RegionId, Time};

/// An owner renews when so much of its lease is left.
const RENEW_BEFORE: Micros = 20 * S;
/// Below this a difference of shares is none.
const NOTHING: f64 = 1e-9;

impl World {
    /// The dials that the proxies of a region go by.
    pub(crate) fn proxies_dials(&self, region: usize) -> &Dials {
        &self.shared.proxy[region]
    }

    /// Once a second: where reads and writes go.
    pub(crate) fn tend_failover(&mut self) {
        for writer in 0..self.plane.traffic.writers.len() {
            self.tend_ownership(writer);
        }
        let rule = |region: usize| {
            let dials = self.proxies_dials(region);
            (dials.failover_trigger_pct, dials.failover_cap_pct)
        };
        let rules = std::array::from_fn(rule);
        if rules != self.plane.traffic.rules {
            self.plane.traffic.rules = rules;
            for cell in 0..self.topology.cells() {
                self.plane.traffic.watch(cell);
            }
        }
        let mut changed = Vec::new();
        let mut watched = std::mem::take(&mut self.plane.traffic.watched);
        watched.sort_unstable();
        for &cell in &watched {
            let (service, home) = (cell as usize / REGIONS, cell as usize % REGIONS);
            if self.tend_reads(service, home) && changed.last() != Some(&service) {
                changed.push(service);
            }
        }
        watched.retain(|&cell| {
            let cell = cell as usize;
            let traffic = &mut self.plane.traffic;
            let keep = traffic.failover[cell].active() || !self.plane.ledger.is_uniform(cell);
            if !keep {
                traffic.unwatch(cell);
            }
            keep
        });
        self.plane.traffic.watched = watched;
        for service in changed {
            self.check_shares(service);
        }
    }

    /// Whether calls get from one region to another.
    fn reaches(&self, from: usize, to: usize, now: Micros) -> bool {
        from == to || self.plane.parted[from].max(self.plane.parted[to]) <= now
    }

    /// Shares of the reads of a region's callers. Returns whether they changed.
    fn tend_reads(&mut self, service: usize, home: usize) -> bool {
        let cell = service * REGIONS + home;
        let now = self.shared.now();
        let rule = FailoverRule::from(self.proxies_dials(home));
        let policy = &self.plane.traffic.policies[service];
        let mut ready = [0; REGIONS_MAX];
        ready[home] = self.plane.ledger.candidates_mean(cell);
        let target = policy.target[home];
        let mut failover = self.plane.traffic.failover[cell];
        let was = failover.active();
        failover.update(ready[home], target, rule);
        if !was && !failover.active() {
            return false;
        }
        if failover.active() {
            for region in (0..REGIONS).filter(|&region| region != home) {
                // Calls across a cut fail to connect: to the caller nobody is there.
                if self.reaches(home, region, now) {
                    ready[region] = self.plane.seen_from(home, service * REGIONS + region);
                }
            }
        }
        let region = RegionId(home as u8);
        let mutants = self.shared.mutants;
        let all = failover.shares(policy, region, REGIONS, &ready, rule, mutants).by_region;
        let shares: [f64; REGIONS] = std::array::from_fn(|region| all[region]);
        let missing = f64::from(target.saturating_sub(ready[home])) / f64::from(target.max(1));
        let elsewhere = ready.iter().enumerate().any(|(region, &n)| region != home && n > 0);
        if failover.active() && elsewhere && 1.0 - shares[home] < missing - NOTHING {
            self.shared.goals.failover_capped += 1;
        }
        self.plane.traffic.failover[cell] = failover;
        let before = std::mem::replace(&mut self.plane.traffic.shares[cell], shares);
        let changed = before.iter().zip(shares).any(|(a, b)| (a - b).abs() > NOTHING);
        if changed {
            self.plane.retraffic_cell(&mut self.shared, cell);
        }
        changed
    }

    /// Every share goes where the policy permits it, and all regions together stay within the declared
    /// capacity (I11).
    fn check_shares(&mut self, service: usize) {
        let policy = &self.plane.traffic.policies[service];
        let nobody = OwnerView::default();
        let mut taken = [0.0; REGIONS];
        let mut cap_pct: f64 = 0.0;
        let mut broken = None;
        for home in 0..REGIONS {
            let shares = self.plane.traffic.shares[service * REGIONS + home];
            cap_pct = cap_pct.max(self.proxies_dials(home).failover_cap_pct);
            for to in (0..REGIONS).filter(|&to| to != home && shares[to] > 0.0) {
                taken[to] += shares[to] * f64::from(policy.target[home]);
                let (from, there) = (RegionId(home as u8), RegionId(to as u8));
                if !policy.permits(from, there, Operation::Read, &nobody) {
                    broken = Some(format!("service {service}: reads of region {home} in {to}"));
                }
            }
        }
        for (to, taken) in taken.into_iter().enumerate() {
            let cap = f64::from(policy.spare[to]) * cap_pct / 100.0;
            if taken > cap + NOTHING {
                broken = Some(format!(
                    "service {service}: {taken:.2} instances' reads in {to}, of {cap:.2}"
                ));
            }
        }
        self.shared.assert(broken.is_none(), "I11", || broken.unwrap_or_default());
    }

    /// Whether a region can own a service's data: somebody of it serves there, and the global layer is in reach.
    /// That is a matter of the data and not of the catalog, so neither an outage nor a lost quorum moves it.
    fn may_own(&self, service: u16, region: usize, now: Micros) -> bool {
        let cell = usize::from(service) * REGIONS + region;
        let serves = self.plane.ledger.cells[cell].head_members().good() > 0;
        serves && self.plane.parted[region] <= now
    }

    /// Whether nothing can change within this second: the owner has just renewed, everybody knows it and reaches
    /// it.
    fn is_settled(&self, writer: &super::traffic::Writer, now: Micros) -> bool {
        let Some(token) = writer.ownership.held() else { return false };
        now < token.until.0.saturating_sub(RENEW_BEFORE)
            && self.plane.parted.iter().all(|&until| until <= now)
            && writer.views.iter().all(|view| view.epoch() == token.epoch)
            && writer.to == [Some(token.region.0); REGIONS]
            && self.shared.mutants == Mutants::default()
    }

    /// The owner renews, or another region claims what is over; proxies learn of it; writes follow.
    fn tend_ownership(&mut self, index: usize) {
        let now = self.shared.now();
        if self.is_settled(&self.plane.traffic.writers[index], now) {
            return;
        }
        let mut writer = self.plane.traffic.writers[index].clone();
        let (service, time) = (writer.service, Time(now));
        let service_at = usize::from(service);
        let held = writer.ownership.held();
        let owner = held.map(|token| token.region.index());
        if let (Some(token), Some(region)) = (held, owner)
            && self.may_own(service, region, now)
        {
            // Refused only if its lease is over: then it claims like any other.
            let _ = writer.ownership.renew(time, token);
        }
        let over = writer.ownership.held().is_none_or(|token| !token.may_write(time));
        if over {
            let order = self.plane.traffic.policies[service_at].order.clone();
            if let Some(&next) =
                order.iter().find(|region| self.may_own(service, region.index(), now))
            {
                let _ = writer.ownership.claim(time, next);
            }
        }
        let token = writer.ownership.held();
        for region in 0..REGIONS {
            if let Some(token) = token
                && (now == 0 || self.plane.hears(region, now))
            {
                writer.views[region].learn(token);
            }
            writer.to[region] = self.write_target(&writer, region, time);
        }
        let changed: Vec<usize> = (0..REGIONS)
            .filter(|&r| self.plane.traffic.writers[index].to[r] != writer.to[r])
            .collect();
        self.plane.traffic.writers[index] = writer;
        for region in changed {
            self.plane.retraffic_cell(&mut self.shared, service_at * REGIONS + region);
        }
    }

    /// Where a region's writes are taken: at the owner that its proxies know, if that one still may write, by the
    /// epoch at its store (I11).
    fn write_target(
        &mut self,
        writer: &super::traffic::Writer,
        region: usize,
        now: Time,
    ) -> Option<u8> {
        let policy = &self.plane.traffic.policies[usize::from(writer.service)];
        debug_assert_eq!(policy.access, Access::SingleWriter);
        let cells = usize::from(writer.service) * REGIONS;
        let mut ready = [0; REGIONS_MAX];
        for (at, ready) in ready.iter_mut().enumerate().take(REGIONS) {
            *ready = self.plane.ledger.cells[cells + at].head_members().total().n;
        }
        let view = writer.views[region];
        let home = RegionId(region as u8);
        let mutants = self.shared.mutants;
        let targets = policy.write_targets(home, &view, &ready, mutants);
        let to = targets.regions().first().copied()?;
        let token = writer.ownership.held()?;
        let takes = token.region == to && token.epoch == view.epoch() && token.may_write(now);
        let permitted = policy.permits(home, to, Operation::Write, &view);
        self.shared.assert(permitted, "I11", || {
            format!("service {}: writes of {region} in {to:?}, owner {token:?}", writer.service)
        });
        (takes && self.reaches(region, to.index(), now.0)).then_some(to.0)
    }
}
