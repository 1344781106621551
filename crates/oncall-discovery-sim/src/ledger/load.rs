//! Capacity: a cell whose live, routed endpoints are too few for the attempts sent to it fails the excess.
//!
//! Endpoints of a cell are alike, so capacity is the cell's: what one endpoint can take, times the live
//! candidates that calls see, the mean over the views weighed by their traffic. Attempts count with their
//! retries, and retries follow from the share that fails; that share is the solution of one equation,
//! `attempts(share) * (1 - share) = capacity`, whose left side falls.

use super::cell::Epoch;
use super::members::{CALLERS, Load};
use super::{Ledger, Members};
use crate::queue::Micros;

/// Relative error at which a share of overload is left as it is.
const TOLERANCE: f64 = 5e-3;
/// Halvings of the interval at most; each step is at least one.
const STEPS: u32 = 40;

impl Ledger {
    /// Attempts a second that one endpoint of a cell can take; 0 for any number.
    pub fn set_capacity(&mut self, now: Micros, cell: usize, per_endpoint: f64) {
        self.cells[cell].capacity = per_endpoint;
        self.watch(now, cell);
    }

    /// A dependency of a cell's service fails that share of the attempts, each on its own.
    pub fn set_soft(&mut self, now: Micros, cell: usize, soft: f64) {
        let load = Load { soft, ..self.cells[cell].load };
        if load != self.cells[cell].load {
            self.set_load(now, cell, load);
            self.watch(now, cell);
        }
    }

    /// Policy refuses so many micro-requests a second of a cell's callers before they are sent anywhere.
    pub fn set_policy_refused(&mut self, now: Micros, cell: usize, refused: u64) {
        if self.cells[cell].refused != refused {
            self.cells[cell].settle(now);
            self.cells[cell].refused = refused;
            self.cells[cell].sum_rates();
        }
    }

    /// Micro-requests a second that policy refuses.
    pub fn policy_refused(&self, cell: usize) -> u64 {
        self.cells[cell].refused
    }

    /// Chances that a single attempt fails at an endpoint that serves.
    pub fn load(&self, cell: usize) -> Load {
        self.cells[cell].load
    }

    /// Live candidates that a cell's calls see: the mean over the views, weighed by their traffic; and that
    /// traffic, requests a second.
    pub fn routed(&self, cell: usize) -> (f64, f64) {
        let (mut room, mut traffic) = (0.0, 0.0);
        self.each_view(cell, |_, view, _, mass| {
            room += mass * f64::from(view.good());
            traffic += mass;
        });
        (if traffic > 0.0 { room / traffic } else { 0.0 }, traffic)
    }

    /// Whether some calls of a cell end without a backend although a candidate of theirs serves, and no single
    /// attempt fails there: what may never be.
    pub fn silent_no_backend(&self, cell: usize) -> bool {
        let ledger = &self.cells[cell];
        let bad = |none: f64, view: &Members| none > 0.0 && view.good() > 0;
        let common = ledger.epochs.iter().any(|epoch| {
            (0..CALLERS).any(|caller| {
                let none = epoch.outcome(caller as u8).counts.no_backend;
                epoch.mass[caller] > 0 && bad(none, &epoch.members)
            })
        });
        let mut privates = ledger.privates.iter().filter(|p| p.is_apart());
        ledger.load == Load::NONE
            && (common || privates.any(|p| bad(p.outcome.counts.no_backend, &p.view)))
    }

    /// Caller, view, whether it may not retry, requests a second.
    fn each_view(&self, cell: usize, mut see: impl FnMut(u8, &Members, bool, f64)) {
        let ledger = &self.cells[cell];
        for epoch in &ledger.epochs {
            for caller in 0..CALLERS {
                if epoch.mass[caller] > 0 {
                    see(caller as u8, &epoch.members, false, epoch.mass[caller] as f64 / 1e6);
                }
            }
        }
        for private in ledger.privates.iter().filter(|p| p.is_apart() && p.lambda > 0) {
            let rate = private.lambda as f64 / 1e6;
            see(private.caller, &private.view, private.degraded, rate);
        }
    }

    /// Finds out whether overload is possible as things stand, and weighs if so. Without failures of single
    /// attempts no request makes two attempts at endpoints that serve, so the traffic bounds the attempts.
    pub(super) fn watch(&mut self, now: Micros, cell: usize) {
        let ledger = &self.cells[cell];
        if ledger.capacity <= 0.0 {
            return;
        }
        let traffic: u64 = ledger.epochs.iter().flat_map(|epoch| epoch.mass).sum::<u64>()
            + ledger.privates.iter().filter(|p| p.is_apart()).map(|p| p.lambda).sum::<u64>();
        let head = ledger.head();
        let held = |epoch: &&Epoch| epoch.subs + epoch.expected > 0 || epoch.seq == head;
        let views = ledger.epochs.iter().filter(held);
        let common = views.map(|epoch| epoch.members.good());
        let private = ledger.privates.iter().filter(|p| p.is_apart()).map(|p| p.view.good());
        let least = common.chain(private).min().unwrap_or(u32::MAX);
        let enough = f64::from(least) * ledger.capacity >= traffic as f64 / 1e6;
        self.cells[cell].tight = ledger.load != Load::NONE || !enough;
        if self.cells[cell].tight {
            self.balance(now, cell);
        }
    }

    /// Brings the share that overload fails up to date.
    pub(super) fn balance(&mut self, now: Micros, cell: usize) {
        let (routed, traffic) = self.routed(cell);
        let (load, attempts) = (self.cells[cell].load, self.cells[cell].rate.live);
        let room = self.cells[cell].capacity * routed;
        let taken = attempts * (1.0 - load.over);
        let fits = if load.over == 0.0 {
            taken <= room * (1.0 + TOLERANCE)
        } else {
            (taken - room).abs() <= TOLERANCE * room
        };
        if fits || self.cells[cell].capacity <= 0.0 || traffic <= 0.0 {
            return;
        }
        let over = self.share_over(cell, load.soft, room);
        if over != load.over {
            self.set_load(now, cell, Load { over, ..load });
        }
    }

    /// Attempts that endpoints would take, a second, if overload failed that share of them.
    fn taken(&self, cell: usize, load: Load) -> f64 {
        let (calls, mut attempts) = (*self.calls(cell), 0.0);
        let single = super::Calls { retries: 0, ..calls };
        self.each_view(cell, |caller, view, degraded, rate| {
            let calls = if degraded { &single } else { &calls };
            attempts += rate * view.outcome(caller, calls, load).counts.live;
        });
        attempts * (1.0 - load.over)
    }

    fn share_over(&self, cell: usize, soft: f64, room: f64) -> f64 {
        if self.taken(cell, Load { soft, over: 0.0 }) <= room {
            return 0.0;
        }
        if room <= 0.0 {
            // Nobody is left to take anything: whoever is failing answers for it.
            return 0.0;
        }
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..STEPS {
            let over = 0.5 * (low + high);
            let taken = self.taken(cell, Load { soft, over });
            if (taken - room).abs() <= 0.05 * TOLERANCE * room {
                return over;
            }
            if taken > room { low = over } else { high = over }
        }
        0.5 * (low + high)
    }

    fn set_load(&mut self, now: Micros, cell: usize, load: Load) {
        let calls = *self.calls(cell);
        let ledger = &mut self.cells[cell];
        ledger.settle(now);
        ledger.load = load;
        for epoch in &mut ledger.epochs {
            epoch.refresh(&calls, load);
        }
        self.renew_misses(now, cell);
        self.refresh_privates(now, cell);
        self.cells[cell].sum_rates();
        if !self.cells[cell].tails.is_empty() {
            self.weigh_tails(now, cell);
        }
    }
}
