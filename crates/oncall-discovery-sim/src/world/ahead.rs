//! What the events of the next millisecond look at is fetched before they are played.
//!
//! At full scale a world does not fit into the nearest memory, and one event after the other waits for its lines.
//! The events of a slot are known before they are played, and what most of them look at first as well: so it is read
//! once for all of them, side by side, which takes as long as reading it for one. Nothing is changed.

use super::World;
use super::full::Full;
use super::shared::{Delivery, Event};
use std::hint::black_box;
use std::ops::Range;

impl World {
    /// Fetches what the events of the slot look at that was just taken.
    pub(crate) fn fetch_ahead(&self) {
        let events = || self.shared.queue.playing();
        if events().len() < 2 {
            return;
        }
        events().for_each(|event| self.fetch_first(*event));
        events().for_each(|event| self.fetch_second(*event));
    }

    /// What is found by the event itself.
    #[inline]
    fn fetch_first(&self, event: Event) {
        match event {
            Event::Deliver(delivery) => self.plane.fetch_sub(delivery),
            Event::Life { instance, .. } | Event::Probe { instance, .. } => {
                black_box(self.fleet.instances.get(instance as usize).map(|i| (i.life, i.cell)));
            }
            Event::Ask { slot } => {
                black_box(self.control.asks.get(slot).map(|ask| ask.born));
            }
            Event::Heartbeat { proxy, .. } | Event::Tend { proxy } => {
                black_box(self.plane.proxies.get(usize::from(proxy)).map(|proxy| proxy.beat));
            }
            _ => {}
        }
    }

    /// What is found by what was fetched first.
    #[inline]
    fn fetch_second(&self, event: Event) {
        match event {
            Event::Deliver(delivery) => {
                self.plane.fetch_proxy(delivery);
                self.plane.fetch_cell(delivery);
            }
            Event::Ask { slot } => self.control.fetch_row(slot),
            _ => {}
        }
    }
}

impl Full {
    /// A subscription's rows.
    #[inline]
    pub(crate) fn fetch_sub(&self, delivery: Delivery) {
        let sub = delivery.sub as usize;
        black_box((self.sub_cell[sub], self.ledger.subs[sub].seq, self.subs[sub].tries()));
    }

    /// Its proxy.
    #[inline]
    pub(crate) fn fetch_proxy(&self, delivery: Delivery) {
        let proxy = self.ledger.subs[delivery.sub as usize].proxy;
        black_box(self.proxies[usize::from(proxy)].gapped);
    }

    /// The proxies of subscriptions that lie side by side.
    pub(crate) fn fetch_proxies(&self, subs: Range<usize>) {
        for sub in &self.ledger.subs[subs] {
            black_box(self.proxies[usize::from(sub.proxy)].gapped);
        }
    }

    /// Its cell.
    #[inline]
    pub(crate) fn fetch_cell(&self, delivery: Delivery) {
        let cell = self.sub_cell[delivery.sub as usize] as usize;
        black_box((
            self.cells[cell].newest().map(|newest| newest.seq),
            self.ledger.cells[cell].head(),
        ));
    }
}
