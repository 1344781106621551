//! Local ejection from passive errors (R97 to R99). Local: it never leaves the proxy but as a report.

use serde::{Deserialize, Serialize};

use crate::mutants::{Mutant, Mutants};
use crate::types::{Cell, Endpoint, Generation, InstanceId, Place, ProxyId, Span, Time};

/// When an endpoint is ejected, and for how long (dials 20 to 22).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EjectRule {
    /// Errors in a row.
    pub errors: u8,
    /// First time.
    pub base: Span,
    /// Longest time.
    pub cap: Span,
    /// Share of a cell's endpoints that may be ejected, in percent.
    pub share_max_pct: u8,
}

impl Default for EjectRule {
    fn default() -> Self {
        Self { errors: 3, base: Span::from_s(30), cap: Span::from_s(300), share_max_pct: 30 }
    }
}

/// Whether one more of `candidates` may be ejected when `already` are. The cap holds *after* the ejection: with
/// one endpoint, or two and a cap of 30 %, there is none.
pub fn may_eject(already: u32, candidates: u32, share_max_pct: u8, mutants: Mutants) -> bool {
    let limit = u32::from(share_max_pct) * candidates;
    if mutants.has(Mutant::EjectionCapBefore) {
        return already * 100 < limit;
    }
    (already + 1) * 100 <= limit
}

/// How long the ejection lasts that follows `before` earlier ones: `min(cap, base × (before + 1))`.
pub fn ejection_time(rule: EjectRule, before: u8) -> Span {
    Span(rule.base.0.saturating_mul(u64::from(before) + 1).min(rule.cap.0.max(rule.base.0)))
}

/// What a proxy tells the control plane about an endpoint: evidence for the health decider, never a change of the
/// catalog by itself (I13).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PassiveReport {
    /// Whose proxy.
    pub proxy: ProxyId,
    /// Where that proxy is.
    pub place: Place,
    /// Where the endpoint is.
    pub cell: Cell,
    /// Which endpoint.
    pub instance: InstanceId,
    /// Which life of it.
    pub generation: Generation,
    /// Errors in a row.
    pub errors: u8,
}

/// What an error led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ejected {
    /// Counted.
    Counted,
    /// Ejected until a time.
    Until(Time),
    /// Enough errors, but the cap keeps it in; counting starts anew.
    Capped,
}

/// Health of one endpoint as this proxy sees it. 24 bytes, only for endpoints that had an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Local {
    instance: InstanceId,
    generation: Generation,
    until_ms: u32,
    errors: u8,
    times: u8,
}

/// Local health of a cell's endpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ejector {
    locals: Vec<Local>,
}

impl Ejector {
    fn find(&self, instance: InstanceId) -> Result<usize, usize> {
        self.locals.binary_search_by_key(&instance, |local| local.instance)
    }

    /// Whether an endpoint is ejected now. Another generation at the same place starts clean.
    pub fn is_out(&self, now: Time, endpoint: &Endpoint) -> bool {
        self.find(endpoint.instance).is_ok_and(|at| {
            let local = self.locals[at];
            local.generation == endpoint.generation && now.ms() < local.until_ms
        })
    }

    /// How many are ejected now.
    pub fn out(&self, now: Time) -> u32 {
        self.locals.iter().filter(|local| now.ms() < local.until_ms).count() as u32
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.locals.is_empty()
    }

    /// A request to an endpoint failed; `candidates` is the size of the set that it belongs to.
    pub fn on_error(
        &mut self,
        now: Time,
        endpoint: &Endpoint,
        candidates: u32,
        rule: EjectRule,
        mutants: Mutants,
    ) -> Ejected {
        let fresh = Local {
            instance: endpoint.instance,
            generation: endpoint.generation,
            until_ms: 0,
            errors: 0,
            times: 0,
        };
        let at = match self.find(endpoint.instance) {
            Ok(at) if self.locals[at].generation == endpoint.generation => at,
            Ok(at) => {
                self.locals[at] = fresh;
                at
            }
            Err(at) => {
                self.locals.insert(at, fresh);
                at
            }
        };
        self.locals[at].errors = self.locals[at].errors.saturating_add(1);
        // An answer to a request that was sent before the ejection neither extends nor repeats it.
        if self.locals[at].errors < rule.errors.max(1) || now.ms() < self.locals[at].until_ms {
            return Ejected::Counted;
        }
        // Counts anew either way, so that one that stays in is reported once in so many errors.
        self.locals[at].errors = 0;
        if !may_eject(self.out(now), candidates, rule.share_max_pct, mutants) {
            return Ejected::Capped;
        }
        let local = &mut self.locals[at];
        let until = now.after(ejection_time(rule, local.times));
        local.until_ms = until.ms();
        local.times = local.times.saturating_add(1);
        Ejected::Until(until)
    }

    /// A request to an endpoint was served. Forgets its errors, and its past ejections after a quiet time as long
    /// as the last one.
    pub fn on_success(&mut self, now: Time, endpoint: &Endpoint, rule: EjectRule) {
        let Ok(at) = self.find(endpoint.instance) else { return };
        let local = &mut self.locals[at];
        local.errors = 0;
        let quiet = ejection_time(rule, local.times.saturating_sub(1));
        if local.times == 0 || now.before(quiet).ms() >= local.until_ms {
            self.locals.remove(at);
        }
    }

    /// The set has changed: forgets whoever left it (removal wins over local health), then lets go of those that
    /// would come back first until the cap holds for the new size.
    pub fn on_set(&mut self, now: Time, set: &[Endpoint], rule: EjectRule) {
        self.locals.retain(|local| {
            set.binary_search_by_key(&local.instance, |endpoint| endpoint.instance)
                .is_ok_and(|at| set[at].generation == local.generation)
        });
        while self.out(now) * 100 > u32::from(rule.share_max_pct) * set.len() as u32 {
            let out = self.locals.iter_mut().filter(|local| now.ms() < local.until_ms);
            let Some(first) = out.min_by_key(|local| local.until_ms) else { return };
            first.until_ms = 0;
        }
    }
}
