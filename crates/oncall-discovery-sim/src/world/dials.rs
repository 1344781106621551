//! Dials that travel (spec 4.1: their delivery is part of the world).
//!
//! A wish gets a number. In each region it goes the way of any change: a command in the log of the region's first
//! group, so without a quorum it waits there like everybody else. Once committed, what the leader and its probers,
//! publisher, agents and rollouts obey is in force. The publisher then sends it to the region's relays as a policy,
//! each relay to the proxies whose streams stand; the others get it with their next welcome, and a heartbeat shows
//! one that was lost. A region has one wish on its way to the log at most, and wishes that nobody holds are
//! forgotten, so turning often costs no memory.

use super::World;
use super::full::{Full, calls};
use super::share::relays;
use super::shared::{Event, HOP_PROXY, HOP_RELAY, Shared};
use crate::noise::Draw;
use crate::queue::{Micros, S, micros};
use crate::schedule::Action;
use crate::topology::REGIONS;
use oncall_discovery::catalog::Command;
use oncall_discovery::dials::{DialError, Dials};
use oncall_discovery::proxy::{LinkState, ProxyDials};
use oncall_discovery::types::{Span, Time};
use serde::{Deserialize, Serialize};

/// From the commit until another number of relays is there.
pub const RELAYS_DELAY: Micros = 120 * S;
/// New relays are filled over so long, so that not all of their proxies reconnect at once.
const FILL: Micros = 20 * S;
/// Bytes of a policy: its values and a header.
pub(crate) const POLICY_BYTES: u64 = 64 + 8 * Dials::TABLE.len() as u64;

/// One setting of the dials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Wish {
    number: u32,
    dials: Dials,
    rules: ProxyDials,
    /// Proxies that go by it.
    proxies: [u32; REGIONS],
    /// Relays that have it.
    relays: u32,
}

/// All wishes that somebody still holds, and how far they have come.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Wishes {
    /// By number; the last one is what the operator wants.
    list: Vec<Wish>,
    committed: [u32; REGIONS],
    /// On its way into the region's log.
    asked: [Option<u32>; REGIONS],
    published: [u32; REGIONS],
    /// By which a region's calls are accounted.
    ruling: [u32; REGIONS],
    /// Relays that were ordered last.
    ordered: [u16; REGIONS],
}

impl Wishes {
    /// The opening setting is in force everywhere.
    pub(crate) fn new(dials: &Dials) -> Self {
        Self {
            list: vec![Wish::new(0, dials)],
            committed: [0; REGIONS],
            asked: [None; REGIONS],
            published: [0; REGIONS],
            ruling: [0; REGIONS],
            ordered: [0; REGIONS],
        }
    }

    /// Tells who is there at the beginning.
    pub(crate) fn hold_all(
        &mut self,
        proxies: [u32; REGIONS],
        relays: u32,
        ordered: [u16; REGIONS],
    ) {
        if let Some(wish) = self.list.last_mut() {
            (wish.proxies, wish.relays) = (proxies, relays);
        }
        self.ordered = ordered;
    }

    fn newest(&self) -> u32 {
        self.list.last().map_or(0, |wish| wish.number)
    }

    #[inline]
    fn find(&self, number: u32) -> Option<&Wish> {
        self.list.iter().rev().find(|wish| wish.number == number)
    }

    fn find_mut(&mut self, number: u32) -> Option<&mut Wish> {
        self.list.iter_mut().rev().find(|wish| wish.number == number)
    }

    /// What a proxy or relay with this wish goes by.
    #[inline]
    pub(crate) fn rules(&self, number: u32) -> &ProxyDials {
        let wish = self.find(number).or(self.list.last());
        wish.map_or_else(|| unreachable!("there always is a wish"), |wish| &wish.rules)
    }

    pub(crate) fn dials(&self, number: u32) -> Option<Dials> {
        self.find(number).map(|wish| wish.dials)
    }

    /// Forgets wishes that nobody holds.
    fn prune(&mut self) {
        let newest = self.newest();
        let marks = [self.committed, self.published, self.ruling];
        let asked = self.asked;
        self.list.retain(|wish| {
            wish.number == newest
                || wish.relays > 0
                || wish.proxies.iter().any(|&count| count > 0)
                || marks.iter().flatten().any(|&mark| mark == wish.number)
                || asked.contains(&Some(wish.number))
        });
    }

    /// A proxy takes another wish.
    fn proxy_moves(&mut self, region: usize, from: u32, to: u32) {
        if let Some(wish) = self.find_mut(from) {
            wish.proxies[region] -= 1;
        }
        if let Some(wish) = self.find_mut(to) {
            wish.proxies[region] += 1;
        }
    }

    /// A relay takes another wish, or stops.
    pub(crate) fn relay_moves(&mut self, from: Option<u32>, to: Option<u32>) {
        if let Some(wish) = from.and_then(|from| self.find_mut(from)) {
            wish.relays -= 1;
        }
        if let Some(wish) = to.and_then(|to| self.find_mut(to)) {
            wish.relays += 1;
        }
    }

    /// The newest wish that at least half of a region's proxies go by, if it is newer than the one that its calls
    /// are accounted by.
    fn overtakes(&mut self, region: usize) -> Option<Dials> {
        let all: u32 = self.list.iter().map(|wish| wish.proxies[region]).sum();
        let mut have = 0;
        for wish in self.list.iter().rev() {
            if wish.number <= self.ruling[region] {
                return None;
            }
            have += wish.proxies[region];
            if have * 2 >= all {
                let (number, dials) = (wish.number, wish.dials);
                self.ruling[region] = number;
                return Some(dials);
            }
        }
        None
    }

    /// Share of a region's proxies that have what the operator wants.
    fn share(&self, region: usize) -> f64 {
        let all: u32 = self.list.iter().map(|wish| wish.proxies[region]).sum();
        let have = self.list.last().map_or(0, |wish| wish.proxies[region]);
        f64::from(have) / f64::from(all.max(1))
    }

    /// Relays that a region has or has ordered, whichever is more: those are paid for.
    pub(crate) fn paid_relays(&self, region: usize, active: u16) -> u16 {
        self.ordered[region].max(active)
    }
}

impl Wish {
    fn new(number: u32, dials: &Dials) -> Self {
        let rules = ProxyDials::from(dials);
        Self { number, dials: *dials, rules, proxies: [0; REGIONS], relays: 0 }
    }
}

/// Which dials act where now.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct InForce {
    /// What the operator wants.
    pub wish: Dials,
    /// At the leaders, probers, publishers, agents and rollouts of each region.
    pub catalog: [Dials; REGIONS],
    /// At the relays of each region: retention, snapshot budget, admission, heartbeat.
    pub relay: [Dials; REGIONS],
    /// At half or more of the proxies of each region.
    pub proxies: [Dials; REGIONS],
    /// Share of each region's proxies that have the operator's newest wish.
    pub proxies_with_wish_share: [f64; REGIONS],
    /// Relays of each region, of this fleet's size: the shape's share of the dial.
    pub relays: [u16; REGIONS],
}

impl World {
    /// The operator turns the dials. They act once they have arrived: see the head of `world/dials.rs` in the
    /// source, and decision 0008. The same setting again does nothing.
    ///
    /// # Errors
    ///
    /// A dial out of its range or against a rule between dials; nothing is changed then.
    pub fn turn(&mut self, wish: Dials) -> Result<(), DialError> {
        wish.validate()?;
        if wish == self.shared.dials {
            return Ok(());
        }
        self.shared.dials = wish;
        let number = self.shared.wishes.newest() + 1;
        self.shared.wishes.list.push(Wish::new(number, &wish));
        for region in 0..REGIONS {
            self.ask_for_wish(region);
        }
        self.shared.wishes.prune();
        Ok(())
    }

    /// Brings the newest wish to a region's log, unless another one is still on its way there.
    fn ask_for_wish(&mut self, region: usize) {
        let wishes = &mut self.shared.wishes;
        let version = wishes.newest();
        if wishes.asked[region].is_some() || version <= wishes.committed[region] {
            return;
        }
        wishes.asked[region] = Some(version);
        let group = region as u16 * u16::from(self.topology.shape.shards);
        self.control.ask(group, Command::Configure { version }, true, &mut self.shared);
    }

    /// A region's leader committed a wish.
    pub(crate) fn on_configured(&mut self, region: usize, version: u32) {
        let wishes = &mut self.shared.wishes;
        if wishes.asked[region] == Some(version) {
            wishes.asked[region] = None;
        }
        if version > wishes.committed[region]
            && let Some(dials) = wishes.dials(version)
        {
            wishes.committed[region] = version;
            self.lead_by(region, &dials);
            self.order_relays(region);
        }
        self.ask_for_wish(region);
        self.shared.wishes.prune();
    }

    /// A region's leaders, probers, publisher, agents and rollouts go by these dials from now on.
    fn lead_by(&mut self, region: usize, dials: &Dials) {
        let before = std::mem::replace(&mut self.shared.catalog[region], *dials);
        let rules = self.health_rules(region);
        let ttl = Shared::span_s(dials.lease_ttl_s);
        let groups = self.control.groups.iter_mut();
        for group in groups.filter(|group| usize::from(group.region) == region) {
            group.decider.set_rules(rules);
            group.leases.set_ttl(ttl);
        }
        let asks = |dials: &Dials| [dials.recovery_threshold, dials.confirming_probers];
        if asks(&before).iter().zip(asks(dials)).any(|(&before, now)| before < now) {
            self.look_at_region(region);
        }
        let counts = |dials: &Dials| dials.dependency_mode >= 1.0;
        if counts(&before) != counts(dials) {
            self.report_anew(region);
        }
    }

    /// Relays are machines: another number of them is there two minutes after it was ordered.
    fn order_relays(&mut self, region: usize) {
        let dial = self.shared.catalog[region].relays_per_region;
        let count = relays(&self.topology.shape, dial);
        if count != self.shared.wishes.ordered[region] {
            self.shared.wishes.ordered[region] = count;
            let at = self.shared.now() + RELAYS_DELAY;
            self.shared.push(at, Event::Relays { region: region as u8, count });
        }
    }

    fn look_at_region(&mut self, region: usize) {
        for id in 0..self.fleet.instances.len() as u32 {
            if super::fleet::cell_region(self.fleet.instances[id as usize].cell) == region {
                self.look_again(id);
            }
        }
    }

    /// Whether dependencies count has changed: agents say anew what they think, each with its next renewal.
    fn report_anew(&mut self, region: usize) {
        let interval = micros(self.shared.led(region).renewal_interval_s);
        let now = self.shared.now();
        for plan in 0..self.memory.len() {
            if !matches!(self.scenario.plan[plan].action, Action::BadDependency { .. }) {
                continue;
            }
            for id in self.dependents(plan) {
                let instance = self.fleet.instances[id as usize];
                if super::fleet::cell_region(instance.cell) == region && instance.dependency_bad {
                    let wait = self.shared.noise.below(Draw::Renewal, u64::from(id), now, interval);
                    let what = super::shared::Life::Report;
                    let event = Event::Life { instance: id, life: instance.life, what };
                    self.shared.push(now + wait, event);
                }
            }
        }
    }

    /// Turns the dials, at once and everywhere, past any outage: for tests and for opening settings. The number
    /// of relays stays.
    ///
    /// # Errors
    ///
    /// A dial out of its range or against a rule between dials; nothing is changed then.
    pub fn set_dials(&mut self, dials: Dials) -> Result<(), DialError> {
        dials.validate()?;
        self.shared.dials = dials;
        let number = self.shared.wishes.newest() + 1;
        let mut wish = Wish::new(number, &dials);
        for old in &mut self.shared.wishes.list {
            for region in 0..REGIONS {
                wish.proxies[region] += std::mem::take(&mut old.proxies[region]);
            }
            wish.relays += std::mem::take(&mut old.relays);
        }
        let wishes = &mut self.shared.wishes;
        wishes.list.push(wish);
        wishes.committed = [number; REGIONS];
        wishes.published = [number; REGIONS];
        wishes.ruling = [number; REGIONS];
        self.shared.relay = [dials; REGIONS];
        self.shared.proxy = [dials; REGIONS];
        for region in 0..REGIONS {
            self.lead_by(region, &dials);
        }
        self.plane.set_dials(&mut self.shared, number);
        self.shared.wishes.prune();
        Ok(())
    }

    /// Which dials act where now.
    pub fn in_force(&self) -> InForce {
        let wishes = &self.shared.wishes;
        InForce {
            wish: self.shared.dials,
            catalog: self.shared.catalog,
            relay: self.shared.relay,
            proxies: self.shared.proxy,
            proxies_with_wish_share: std::array::from_fn(|region| wishes.share(region)),
            relays: self.plane.active,
        }
    }
}

impl Full {
    /// The publisher of a region has read a policy: it goes to all relays.
    pub(crate) fn publish_policy(&mut self, shared: &mut Shared, region: usize, version: u32) {
        if version <= shared.wishes.published[region] {
            return;
        }
        shared.wishes.published[region] = version;
        for number in self.relays_of(region) {
            if std::mem::replace(&mut self.relays[number].policy_due, true) {
                continue;
            }
            let index = shared.next();
            let hop = shared.hop(HOP_RELAY, Draw::HopRelay, number as u64 | 1 << 40, index);
            shared.push(shared.now() + hop, Event::Policy { relay: number as u16 });
        }
        shared.wishes.prune();
    }

    /// A policy reaches a relay: it goes by it, and sends it to the proxies whose streams stand.
    pub(crate) fn on_policy(&mut self, shared: &mut Shared, number: u16) {
        let now = shared.now();
        let region = self.region_of_relay(number);
        let relay = &mut self.relays[usize::from(number)];
        relay.policy_due = false;
        if !self.is_active(number) {
            return;
        }
        let relay = &mut self.relays[usize::from(number)];
        if relay.is_down(now) {
            // It asks for the newest policy once it is back.
            relay.policy_due = true;
            return shared.push(relay.back_at() + S / 100, Event::Policy { relay: number });
        }
        let version = shared.wishes.published[region];
        if relay.policy == version {
            return;
        }
        let Some(dials) = shared.wishes.dials(version) else { return };
        shared.wishes.relay_moves(Some(relay.policy), Some(version));
        relay.policy = version;
        shared.relay[region] = dials;
        self.rate_relay(shared, number);
        for id in (region..self.proxies.len()).step_by(REGIONS) {
            let proxy = &self.proxies[id];
            if proxy.relay == number && proxy.link.state() == LinkState::Up {
                self.send_policy(shared, id as u16);
            }
        }
        shared.wishes.prune();
    }

    /// A relay sends its policy to one of its proxies.
    pub(crate) fn send_policy(&mut self, shared: &mut Shared, id: u16) {
        let now = shared.now();
        let proxy = self.proxies[usize::from(id)];
        let index = shared.next();
        let relay = &mut self.relays[usize::from(proxy.relay)];
        let entity = u64::from(id) | 1 << 35;
        if relay.loses(now, shared.noise, entity, index) {
            return;
        }
        let work = self.service(shared, proxy.relay, 1.0);
        let left = self.relays[usize::from(proxy.relay)].lane.enter(Time(now), work, false).0;
        let hop = shared.hop(HOP_PROXY, Draw::HopProxy, entity, index);
        let version = self.relays[usize::from(proxy.relay)].policy;
        let meter = &mut shared.meters.regions[usize::from(proxy.region)];
        meter.policies += 1;
        meter.policy_bytes += POLICY_BYTES;
        let session = proxy.link.session();
        shared.push(left + hop, Event::Adopt { proxy: id, session, version });
    }

    /// A policy reaches a proxy.
    pub(crate) fn on_adopt(&mut self, shared: &mut Shared, id: u16, session: u32, version: u32) {
        let now = shared.now();
        let proxy = &mut self.proxies[usize::from(id)];
        if proxy.link.session() != session || proxy.link.state() != LinkState::Up {
            return;
        }
        if proxy.is_cut(now) {
            return;
        }
        proxy.link.heard(Time(now));
        self.adopt(shared, id, version);
    }

    /// A proxy goes by a policy from now on; one that nobody has any more was overtaken by a newer one.
    pub(crate) fn adopt(&mut self, shared: &mut Shared, id: u16, version: u32) {
        let now = shared.now();
        let proxy = &mut self.proxies[usize::from(id)];
        if version <= proxy.policy || shared.wishes.find(version).is_none() {
            return;
        }
        let heartbeat = shared.wishes.rules(version).heartbeat;
        let changed = shared.wishes.rules(proxy.policy).heartbeat != heartbeat;
        let region = usize::from(proxy.region);
        shared.wishes.proxy_moves(region, proxy.policy, version);
        proxy.policy = version;
        if changed && proxy.link.state() == LinkState::Up {
            let at = proxy.beat_at.min(now + heartbeat.0);
            self.plan_heartbeat(shared, id, at.max(now + 1));
        }
        if let Some(dials) = shared.wishes.overtakes(region) {
            self.rule(shared, region, &dials);
        }
        shared.wishes.prune();
    }

    /// A region's calls are accounted by these dials from now on.
    fn rule(&mut self, shared: &mut Shared, region: usize, dials: &Dials) {
        shared.proxy[region] = *dials;
        self.ledger.set_calls(shared.now(), region, calls(dials));
        self.drain_pairs(shared);
        self.take_stopped();
    }

    /// Takes dials at once and everywhere.
    fn set_dials(&mut self, shared: &mut Shared, version: u32) {
        for number in 0..self.relays.len() as u16 {
            self.relays[usize::from(number)].policy = version;
            self.rate_relay(shared, number);
        }
        for id in 0..self.proxies.len() {
            self.proxies[id].policy = version;
        }
        for region in 0..REGIONS {
            let dials = shared.proxy[region];
            self.rule(shared, region, &dials);
        }
    }

    /// Another number of relays is there. Those that are gone drop their streams; new ones start without a log,
    /// and take their part of the proxies, little by little.
    pub(crate) fn set_relays(&mut self, shared: &mut Shared, region: usize, count: u16) {
        let old = std::mem::replace(&mut self.active[region], count);
        let (now, base) = (shared.now(), region as u16 * self.stride);
        if count == old {
            return;
        }
        for place in count..old {
            let policy = self.relays[usize::from(base + place)].policy;
            shared.wishes.relay_moves(Some(policy), None);
            self.relays[usize::from(base + place)].policy_due = false;
        }
        for place in old..count {
            let policy = shared.wishes.published[region];
            shared.wishes.relay_moves(None, Some(policy));
            self.relays[usize::from(base + place)].start(now, policy);
        }
        for number in base..base + count {
            self.rate_relay(shared, number);
        }
        for id in (region..self.proxies.len()).step_by(REGIONS) {
            let uniform = shared.noise.uniform(Draw::Fault, id as u64 | 1 << 43, now);
            let place = (uniform * f64::from(count)) as u16;
            let proxy = &mut self.proxies[id];
            if proxy.link.relay() >= count {
                proxy.link.send_to(place);
                if proxy.relay >= base + count && proxy.link.state() == LinkState::Up {
                    self.lose(shared, id as u16, Span::ZERO);
                }
            } else if place >= old {
                let wait = shared.noise.below(Draw::Fault, id as u64 | 1 << 44, now, FILL);
                shared.push(now + wait, Event::Move { proxy: id as u16, place });
            }
        }
        shared.wishes.prune();
    }

    /// A proxy is sent to a new relay.
    pub(crate) fn on_move(&mut self, shared: &mut Shared, id: u16, place: u16) {
        let proxy = &mut self.proxies[usize::from(id)];
        if place >= self.active[usize::from(proxy.region)] || proxy.link.relay() == place {
            return;
        }
        proxy.link.send_to(place);
        if proxy.link.state() == LinkState::Up {
            self.lose(shared, id, Span::ZERO);
        }
    }
}
