//! The proxy's request half: chooses an endpoint out of the sets that are there. Asks nobody (R23, R70).

use super::component::Followed;
use super::request::{Attempt, AttemptResult, Outcome, Plan, Pool, Request, Served, Step};
use super::{AgeVerdict, Ejected, Gate, LinkState, PassiveReport, Proxy, ProxyTimer, pick, pool};
use crate::distrib::Wire;
use crate::types::{Cell, Endpoint, InstanceId, Metric, Out, Time, ZoneId};

/// Why a cell gave no endpoint.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Miss {
    /// Nobody in it, or everybody ejected or tried.
    Empty,
    /// Its breaker is open.
    Open,
    /// Its set is too old for the service.
    TooOld,
    /// This proxy may not follow it.
    Denied,
}

impl Proxy {
    /// Begins a request. `plan` is what policy allows; `uniform` a fresh uniform 32-bit number for the choice.
    pub fn begin(
        &mut self,
        now: Time,
        request: &mut Request,
        plan: &Plan<'_>,
        uniform: u32,
        out: &mut Out<Wire, ProxyTimer>,
    ) -> Step {
        self.retries.deposit(self.policy.dials.retry_budget_pct);
        match self.choose(now, request, plan, uniform) {
            Ok(attempt) => self.attempt(request, attempt, out),
            Err(miss) => end(miss_outcome(miss, request.attempts), out),
        }
    }

    /// Goes on after an attempt: another one, or the end.
    pub fn finish(
        &mut self,
        now: Time,
        request: &mut Request,
        result: AttemptResult,
        plan: &Plan<'_>,
        uniform: u32,
        out: &mut Out<Wire, ProxyTimer>,
    ) -> Step {
        let Some(attempt) = request.last.take() else {
            return end(Outcome::Failed { attempts: request.attempts }, out);
        };
        match result {
            AttemptResult::Served => {
                self.served(now, &attempt);
                end(Outcome::Served(Served { attempt, attempts: request.attempts }), out)
            }
            AttemptResult::CallerRefused => end(Outcome::AuthRefused, out),
            AttemptResult::Terminated => end(Outcome::ForciblyTerminated, out),
            AttemptResult::IdentityRefused => {
                // Not a matter of health: the endpoint is not ejected, its identity is refused each time.
                self.again(now, request, &attempt, true, Outcome::AuthRefused, plan, uniform, out)
            }
            AttemptResult::ConnectRefused | AttemptResult::ConnectTimeout => {
                self.failed(now, &attempt, out);
                let outcome = Outcome::Failed { attempts: request.attempts };
                self.again(now, request, &attempt, true, outcome, plan, uniform, out)
            }
            AttemptResult::FailedAfterSend => {
                self.failed(now, &attempt, out);
                let outcome = Outcome::Failed { attempts: request.attempts };
                self.again(now, request, &attempt, false, outcome, plan, uniform, out)
            }
        }
    }

    /// Tries once more if it is allowed: within the count and the budget, and only what was not sent or does no
    /// harm twice (D20).
    #[expect(clippy::too_many_arguments, reason = "the state of one request, in one place")]
    fn again(
        &mut self,
        now: Time,
        request: &mut Request,
        last: &Attempt,
        unsent: bool,
        otherwise: Outcome,
        plan: &Plan<'_>,
        uniform: u32,
        out: &mut Out<Wire, ProxyTimer>,
    ) -> Step {
        let dials = self.policy.dials;
        let allowed = (unsent || request.idempotent)
            && !last.degraded
            && request.attempts <= dials.retries_max
            && usize::from(request.attempts) < request.tried.len();
        if !allowed {
            return self.give_up(now, last.cell, otherwise, out);
        }
        let next = match self.choose(now, request, plan, uniform) {
            Ok(next) => next,
            Err(miss) => {
                let refused = otherwise == Outcome::AuthRefused;
                let end = if refused { otherwise } else { miss_outcome(miss, request.attempts) };
                return self.give_up(now, last.cell, end, out);
            }
        };
        if !self.retries.take(dials.retry_budget_pct) {
            out.count(Metric::RetriesDenied);
            return self.give_up(now, last.cell, otherwise, out);
        }
        out.count(Metric::Retries);
        self.attempt(request, next, out)
    }

    fn give_up(
        &mut self,
        now: Time,
        cell: Cell,
        outcome: Outcome,
        out: &mut Out<Wire, ProxyTimer>,
    ) -> Step {
        let rule = self.policy.dials.breaker;
        let failure = matches!(outcome, Outcome::Failed { .. } | Outcome::NoBackend { .. });
        if failure
            && let Some(at) = self.find(cell)
            && self.cells[at].breaker.failed(now, rule)
        {
            out.count(Metric::BreakersOpened);
        }
        end(outcome, out)
    }

    fn attempt(
        &mut self,
        request: &mut Request,
        attempt: Attempt,
        out: &mut Out<Wire, ProxyTimer>,
    ) -> Step {
        request.tried[usize::from(request.attempts)] = attempt.endpoint.instance;
        request.attempts += 1;
        request.last = Some(attempt);
        if attempt.cell.region != self.config.place.region {
            out.count(Metric::CrossRegion);
        }
        Step::Try(attempt)
    }

    /// The first permitted region that has a candidate. If none has, the gravest reason.
    fn choose(
        &mut self,
        now: Time,
        request: &Request,
        plan: &Plan<'_>,
        uniform: u32,
    ) -> Result<Attempt, Option<Miss>> {
        let mut gravest = None;
        for &region in plan.regions {
            let cell = Cell { service: request.service, region };
            match self.choose_in(now, cell, request, plan, uniform) {
                Ok(attempt) => return Ok(attempt),
                Err(miss) => gravest = gravest.max(Some(miss)),
            }
        }
        Err(gravest)
    }

    fn choose_in(
        &mut self,
        now: Time,
        cell: Cell,
        request: &Request,
        plan: &Plan<'_>,
        uniform: u32,
    ) -> Result<Attempt, Miss> {
        let (place, dials) = (self.config.place, self.policy.dials);
        let at = self.find(cell).ok_or(Miss::Empty)?;
        let followed = &mut self.cells[at];
        if followed.denied {
            return Err(Miss::Denied);
        }
        if !followed.sub.has_set() {
            return Err(Miss::Empty);
        }
        let age = plan.age.judge(followed.sub.age(now));
        if age == AgeVerdict::Rejected {
            return Err(Miss::TooOld);
        }
        let zone = (cell.region == place.region).then_some(place.zone);
        let endpoint = select(now, followed, request.tried(), zone, uniform).ok_or(Miss::Empty)?;
        // Last, so that a trial is not used up by a cell that has nobody. A retry belongs to a request that has
        // passed already.
        if request.attempts == 0 && followed.breaker.gate(now, dials.breaker) == Gate::Fail {
            return Err(Miss::Open);
        }
        let degraded = age == AgeVerdict::Degraded;
        Ok(Attempt { cell, endpoint, connect_timeout: dials.connect_timeout, degraded })
    }

    fn served(&mut self, now: Time, attempt: &Attempt) {
        let rule = self.policy.dials.eject;
        if let Some(at) = self.find(attempt.cell) {
            self.cells[at].breaker.served();
            self.cells[at].ejector.on_success(now, &attempt.endpoint, rule);
        }
    }

    /// Counts an error against an endpoint, if the set still has it, and reports what looks broken.
    fn failed(&mut self, now: Time, attempt: &Attempt, out: &mut Out<Wire, ProxyTimer>) {
        let (rule, mutants) = (self.policy.dials.eject, self.config.mutants);
        let (endpoint, cell) = (attempt.endpoint, attempt.cell);
        let Some(at) = self.find(cell) else { return };
        let followed = &mut self.cells[at];
        let known = followed.view.set().get(endpoint.instance);
        if known.is_none_or(|known| known.generation != endpoint.generation) {
            out.count(Metric::StaleConnectFailures);
            return;
        }
        let size = followed.view.set().count();
        match followed.ejector.on_error(now, &endpoint, size, rule, mutants) {
            Ejected::Counted => {}
            Ejected::Until(_) => {
                out.count(Metric::Ejections);
                self.report(cell, &endpoint, rule.errors, out);
            }
            Ejected::Capped => self.report(cell, &endpoint, rule.errors, out),
        }
    }

    /// Tells the control plane, if there is a stream; a proxy without one keeps it to itself.
    fn report(&self, cell: Cell, endpoint: &Endpoint, errors: u8, out: &mut Out<Wire, ProxyTimer>) {
        let Some(relay) = self.relay().filter(|_| self.link().state() == LinkState::Up) else {
            return;
        };
        let report = PassiveReport {
            proxy: self.config.id,
            place: self.config.place,
            cell,
            instance: endpoint.instance,
            generation: endpoint.generation,
            errors,
        };
        out.send(relay, Wire::Report(report));
    }
}

/// A weighted choice among those who are neither ejected nor tried, in the caller's zone if it has one.
fn select(
    now: Time,
    followed: &Followed,
    tried: &[InstanceId],
    zone: Option<ZoneId>,
    uniform: u32,
) -> Option<Endpoint> {
    let ejector = &followed.ejector;
    let candidates =
        followed.view.routable().chain(&followed.ghosts).filter(|endpoint| {
            !tried.contains(&endpoint.instance) && !ejector.is_out(now, endpoint)
        });
    let near = candidates.clone().filter(|endpoint| Some(endpoint.zone) == zone);
    match pool(near.clone().count() as u32, candidates.clone().count() as u32) {
        Pool::Empty => None,
        Pool::Zone => weighted(near, uniform),
        Pool::Cell => weighted(candidates, uniform),
    }
}

fn weighted<'a>(
    mut among: impl Iterator<Item = &'a Endpoint> + Clone,
    uniform: u32,
) -> Option<Endpoint> {
    let at = pick(among.clone().map(|endpoint| endpoint.weight.max(1)), uniform)?;
    among.nth(at).copied()
}

fn miss_outcome(miss: Option<Miss>, attempts: u8) -> Outcome {
    match miss {
        None => Outcome::PolicyRefused,
        Some(Miss::Empty) => Outcome::NoBackend { attempts },
        Some(Miss::Open) => Outcome::Failed { attempts },
        Some(Miss::TooOld) => Outcome::TooOld,
        Some(Miss::Denied) => Outcome::AuthRefused,
    }
}

fn end<T>(outcome: Outcome, out: &mut Out<Wire, T>) -> Step {
    match outcome {
        Outcome::NoBackend { .. } => out.count(Metric::NoBackend),
        Outcome::PolicyRefused | Outcome::TooOld => out.count(Metric::PolicyRefused),
        Outcome::AuthRefused => out.count(Metric::AuthRefusedRequests),
        Outcome::ForciblyTerminated => out.count(Metric::ForcedTerminations),
        Outcome::Served(_) | Outcome::Failed { .. } => {}
    }
    Step::Done(outcome)
}
