//! Deliveries of one publication to many subscribers: sorted by tick, played tick by tick.

use super::full::{Full, TICK};
use super::shared::{Delivery, Event, Shared};
use serde::{Deserialize, Serialize};

/// Deliveries of one publication to many subscribers, by tick.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Wave {
    deliveries: Vec<Delivery>,
    /// First delivery of each tick, and the end.
    first: Vec<u32>,
}

impl Full {
    /// Sorts due deliveries by tick and schedules the first.
    pub(crate) fn start_wave(&mut self, shared: &mut Shared) {
        let last = self.due.iter().map(|(tick, _)| *tick).max().unwrap_or(0) as usize;
        let mut first = vec![0_u32; last + 2];
        for (tick, _) in &self.due {
            first[*tick as usize + 1] += 1;
        }
        for tick in 0..=last {
            first[tick + 1] += first[tick];
        }
        let mut place = first.clone();
        let blank =
            Delivery { sub: 0, seq: 0, from: 0, session: 0, snapshot: false, corrupt: false };
        let mut deliveries = vec![blank; self.due.len()];
        for &(tick, delivery) in &self.due {
            let at = &mut place[tick as usize];
            deliveries[*at as usize] = delivery;
            *at += 1;
        }
        let slot = self.waves.put(Wave { deliveries, first });
        shared.push(shared.now() + TICK, Event::Wave { slot, tick: 1 });
    }

    /// One tick of a wave.
    pub(crate) fn on_wave(&mut self, shared: &mut Shared, slot: u32, tick: u32) {
        let Some(wave) = self.waves.get_mut(slot) else { return };
        let ticks = wave.first.len() as u32 - 1;
        let range = wave.first[tick as usize] as usize..wave.first[tick as usize + 1] as usize;
        let deliveries = std::mem::take(&mut wave.deliveries);
        // What they look at is fetched for all of them at once; see `World::fetch_ahead`.
        let due = &deliveries[range];
        for &delivery in due {
            self.fetch_sub(delivery);
        }
        for &delivery in due {
            self.fetch_proxy(delivery);
        }
        for &delivery in due {
            self.deliver(shared, delivery);
        }
        if let Some(wave) = self.waves.get_mut(slot) {
            wave.deliveries = deliveries;
        }
        if tick + 1 < ticks {
            shared.push(shared.now() + TICK, Event::Wave { slot, tick: tick + 1 });
        } else {
            self.waves.take(slot);
        }
    }
}
