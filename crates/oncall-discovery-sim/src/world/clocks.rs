//! The two service-level clocks and their timelines (R27, R151, R168).

use crate::ledger::Stopped;
use crate::queue::{Micros, S};
use hdrhistogram::Histogram;
use oncall_consensus::Pages;
use oncall_discovery::types::Reason;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// Acceptance of a deliberate withdrawal to the last new request (D1): three seconds.
    Withdrawal,
    /// Crash to the last new route (D2): fifteen seconds.
    Crash,
    /// A removal of an instance that was fine; no objective, but a cost.
    False,
}

/// One endpoint's way out of the routable sets.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// Which clock.
    pub kind: Kind,
    /// Who.
    pub instance: u32,
    /// Cell.
    pub cell: u32,
    /// Why the catalog removed it.
    pub reason: Option<Reason>,
    /// When it withdrew, or died.
    pub began: Micros,
    /// When the decider knew; for a withdrawal, when the catalog was first asked.
    pub detected: Option<Micros>,
    /// When the catalog accepted.
    pub accepted: Option<Micros>,
    /// When the removal was published.
    pub published: Option<Micros>,
    /// When the last connected proxy applied it.
    pub last_apply: Option<Micros>,
    /// The last new request, drawn; the clock's start if there was none after it.
    pub last_request: Option<Micros>,
    /// When the process ended.
    pub exited: Option<Micros>,
    /// Long requests in flight at `last_apply`, expected.
    pub in_flight: f64,
    /// Of these, cut at the exit, expected.
    pub forced: f64,
}

impl Timeline {
    /// When its clock starts.
    pub fn start(&self) -> Micros {
        match self.kind {
            Kind::Withdrawal => self.accepted.unwrap_or(self.began),
            Kind::Crash | Kind::False => self.began,
        }
    }

    /// Seconds from the start to the last new request; `None` while the clock runs.
    pub fn seconds(&self) -> Option<f64> {
        let last = self.last_request?;
        Some(last.saturating_sub(self.start()) as f64 / S as f64)
    }
}

/// All timelines of a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Clocks {
    /// By number; empty while only running ones are kept.
    pub timelines: Pages<Timeline>,
    /// Those that run, if finished ones are not kept.
    open: Option<BTreeMap<u32, Timeline>>,
    begun: u32,
}

/// Percentiles of a clock, seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Clocks that stopped.
    pub count: u64,
    /// Clocks that still run.
    pub open: u64,
    /// Half are below.
    pub p50: f64,
    /// 99 % are below.
    pub p99: f64,
    /// Largest.
    pub max: f64,
}

impl Clocks {
    /// Starts a timeline and returns its number.
    pub fn begin(&mut self, kind: Kind, instance: u32, cell: u32, began: Micros) -> u32 {
        let number = self.begun;
        self.begun += 1;
        let line = Timeline {
            kind,
            instance,
            cell,
            reason: None,
            began,
            detected: None,
            accepted: None,
            published: None,
            last_apply: None,
            last_request: None,
            exited: None,
            in_flight: 0.0,
            forced: 0.0,
        };
        match &mut self.open {
            Some(open) => {
                open.insert(number, line);
            }
            None => self.timelines.push(line),
        }
        number
    }

    /// A timeline by number.
    pub fn get_mut(&mut self, number: u32) -> Option<&mut Timeline> {
        match &mut self.open {
            Some(open) => open.get_mut(&number),
            None => self.timelines.get_mut(number as usize),
        }
    }

    /// Notes what the ledger found. Returns the timeline, and what its process had cut if it ended before.
    pub fn stop(&mut self, stopped: &Stopped, long_mean_s: f64) -> Option<(Timeline, f64)> {
        let number = stopped.clock.key;
        let line = self.get_mut(number)?;
        line.published = Some(stopped.published);
        line.last_apply = Some(stopped.last_apply);
        line.last_request = Some(stopped.last_request.unwrap_or(line.start()).max(line.start()));
        line.in_flight = stopped.in_flight;
        if let Some(exited) = line.exited {
            line.forced = left(line, exited, long_mean_s);
        }
        let line = *line;
        let open = line.kind == Kind::Withdrawal && line.exited.is_none();
        if !open {
            self.forget(number);
        }
        Some((line, line.forced))
    }

    /// Notes the end of a process, and what it cut.
    pub fn exit(&mut self, number: u32, now: Micros, long_mean_s: f64) -> f64 {
        let Some(line) = self.get_mut(number) else { return 0.0 };
        line.exited = Some(now);
        if line.last_apply.is_some() {
            line.forced = left(line, now, long_mean_s);
        }
        let (forced, stopped) = (line.forced, line.last_apply.is_some());
        if stopped {
            self.forget(number);
        }
        forced
    }

    /// Keeps finished timelines no longer, and forgets those that there are: numbers go on alike.
    pub(crate) fn quiet(&mut self) {
        if self.open.is_none() {
            let finished = |line: &Timeline| {
                let stopped = line.last_apply.is_some();
                stopped && (line.kind != Kind::Withdrawal || line.exited.is_some())
            };
            let lines = std::mem::take(&mut self.timelines);
            let lines = lines.iter().copied().enumerate();
            let open = lines.filter(|(_, line)| !finished(line));
            self.open = Some(open.map(|(number, line)| (number as u32, line)).collect());
        }
    }

    /// Timelines begun so far.
    pub(crate) fn begun(&self) -> u32 {
        self.begun
    }

    fn forget(&mut self, number: u32) {
        if let Some(open) = &mut self.open {
            open.remove(&number);
        }
    }

    /// Percentiles of one clock, of what `measure` gives.
    pub fn percentiles(
        &self,
        kind: Kind,
        measure: impl Fn(&Timeline) -> Option<f64>,
    ) -> Percentiles {
        let mut histogram = histogram();
        let mut open = 0;
        for line in self.timelines.iter().filter(|line| line.kind == kind) {
            match measure(line) {
                Some(seconds) => histogram.saturating_record((seconds * 1e3).round() as u64),
                None => open += 1,
            }
        }
        summary(&histogram, open)
    }
}

/// Requests left at the exit of those in flight at the last apply: durations are exponential.
fn left(line: &Timeline, exited: Micros, long_mean_s: f64) -> f64 {
    let since = exited.saturating_sub(line.last_apply.unwrap_or(exited)) as f64 / S as f64;
    line.in_flight * oncall_core::math::exp(-since / long_mean_s)
}

/// Milliseconds up to an hour, three digits.
pub(crate) fn histogram() -> Histogram<u32> {
    Histogram::new_with_bounds(1, 3_600_000, 3).unwrap_or_else(|_| unreachable!("valid bounds"))
}

pub(crate) fn summary(histogram: &Histogram<u32>, open: u64) -> Percentiles {
    let at = |quantile: f64| histogram.value_at_quantile(quantile) as f64 / 1e3;
    if histogram.is_empty() {
        return Percentiles { open, ..Percentiles::default() };
    }
    Percentiles { count: histogram.len(), open, p50: at(0.5), p99: at(0.99), max: at(1.0) }
}
