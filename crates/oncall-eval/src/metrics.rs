//! What an episode says beside dollars: the incident, where a world has a pager, and the table of a
//! world's metrics.
//!
//! The incident: pages, and how long it took to mitigate.
//!
//! * A **page** is a rising edge of the signal `page`: a minute in which the pager rings and did not
//!   ring in the minute before. No pager rings before the first minute.
//! * An **incident** begins in the first minute with a burn above 1. It is mitigated by the first ten
//!   minutes in a row, after its beginning, with a burn of at most 1. **Minutes to mitigate** counts
//!   from its first minute to the last one before those ten, both included: an incident of a single
//!   bad minute took 1. Where the episode ends before ten quiet minutes are complete, it counts to the
//!   end of the episode and is marked unmitigated. What burns after the mitigation does not count.

use oncall_core::Spec;

/// Burn above which the error budget would not last its month.
const BURN_MAX: f64 = 1.0;

/// Quiet minutes in a row that end an incident.
pub const QUIET_MIN: u32 = 10;

/// Follows one episode, minute by minute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Incident {
    minutes: u32,
    pages: u32,
    pages_now: bool,
    /// Minute in which it began.
    began: Option<u32>,
    /// Quiet minutes in a row since the last burning one.
    quiet: u32,
    to_mitigate: Option<u32>,
}

/// How the incident of an episode went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Rising edges of the pager.
    pub pages: u32,
    /// Minutes to mitigate; `None` if the burn was never above 1.
    pub minutes_to_mitigate: Option<u32>,
    /// Whether the episode ended before ten quiet minutes in a row.
    pub unmitigated: bool,
}

impl Incident {
    /// Takes in a played minute.
    #[inline]
    pub fn minute(&mut self, page: bool, burn: f64) {
        self.pages += u32::from(page && !self.pages_now);
        self.pages_now = page;
        let burns = burn > BURN_MAX;
        if burns && self.began.is_none() {
            self.began = Some(self.minutes);
        }
        self.quiet = if burns { 0 } else { self.quiet + 1 };
        self.minutes += 1;
        if let (Some(began), None, QUIET_MIN..) = (self.began, self.to_mitigate, self.quiet) {
            self.to_mitigate = Some(self.minutes - self.quiet - began);
        }
    }

    /// The outcome if the episode ended now.
    pub fn outcome(&self) -> Outcome {
        let to_end = self.began.map(|began| self.minutes - began);
        Outcome {
            pages: self.pages,
            minutes_to_mitigate: self.to_mitigate.or(to_end),
            unmitigated: self.began.is_some() && self.to_mitigate.is_none(),
        }
    }
}

/// How a metric follows from an episode's steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// The signal's mean over the steps.
    Mean(&'static str),
    /// The signal's largest value.
    Max(&'static str),
    /// The signal's smallest value.
    Min(&'static str),
    /// The signal's value after the last step.
    Last(&'static str),
}

impl How {
    fn signal(self) -> &'static str {
        match self {
            How::Mean(name) | How::Max(name) | How::Min(name) | How::Last(name) => name,
        }
    }
}

/// A named number of an episode.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    /// Name, unit last: a column of the CSV, a key of the JSON.
    pub name: &'static str,
    /// Head of the table's column.
    pub label: &'static str,
    /// The table shows the value times this, with [`Metric::unit`] behind it.
    pub factor: f64,
    /// Unit in the table.
    pub unit: &'static str,
    /// Where it comes from.
    pub how: How,
}

/// World, and its metrics. The fleet's are those of its incident.
const TABLE: &[(&str, &[Metric])] = &[("discovery", DISCOVERY)];

const fn metric(name: &'static str, label: &'static str, how: How) -> Metric {
    Metric { name, label, factor: 1.0, unit: "", how }
}

const fn percent(name: &'static str, label: &'static str, how: How) -> Metric {
    Metric { name, label, factor: 100.0, unit: " %", how }
}

/// Shares of ten minutes, and clocks, at their worst; the rest over the episode.
const DISCOVERY: &[Metric] = &[
    percent("withdrawal_late_share_max", "w late", How::Max("withdrawal_late_share")),
    percent("removal_late_share_max", "r late", How::Max("removal_late_share")),
    metric("withdrawal_s_p99_max", "w p99 s", How::Max("withdrawal_s_p99")),
    metric("removal_s_p99_max", "r p99 s", How::Max("removal_s_p99")),
    metric("burn_5min_max", "burn 5 m", How::Max("burn_5min")),
    percent("no_backend_share_mean", "no backend", How::Mean("no_backend_share")),
    percent("stale_share_mean", "stale", How::Mean("stale_share")),
    percent("ready_share_worst5_min", "least READY", How::Min("ready_share_worst5")),
    metric("snapshot_age_s_max", "oldest s", How::Max("snapshot_age_s_max")),
];

/// The metrics of a world.
pub fn table(world: &str) -> &'static [Metric] {
    TABLE.iter().find(|(name, _)| *name == world).map_or(&[], |(_, metrics)| metrics)
}

/// Where the signals of a world's metrics stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measures {
    /// Signals `page` and `burn`.
    incident: Option<(usize, usize)>,
    metrics: Vec<(How, usize)>,
}

impl Measures {
    /// Of a world; its name and the name of a signal that the table has and the world has not, if so.
    pub fn of(spec: &Spec) -> Result<Self, (String, &'static str)> {
        let find = |metric: &Metric| {
            let name = metric.how.signal();
            let index = spec.signal(name).ok_or((spec.world.to_owned(), name))?;
            Ok((metric.how, index))
        };
        Ok(Self {
            incident: spec.signal("page").zip(spec.signal("burn")),
            metrics: table(spec.world).iter().map(find).collect::<Result<_, _>>()?,
        })
    }

    /// Whether episodes have an incident.
    pub fn has_incident(&self) -> bool {
        self.incident.is_some()
    }

    /// Before an episode.
    pub fn watch(&self) -> Watch {
        Watch {
            incident: Incident::default(),
            steps: 0,
            values: vec![f64::NAN; self.metrics.len()],
        }
    }
}

/// Follows one episode, step by step.
#[derive(Debug, Clone, PartialEq)]
pub struct Watch {
    incident: Incident,
    steps: u32,
    values: Vec<f64>,
}

impl Watch {
    /// Takes in a played step.
    #[inline]
    pub fn step(&mut self, measures: &Measures, signals: &[f64]) {
        if let Some((page, burn)) = measures.incident {
            self.incident.minute(signals[page] > 0.5, signals[burn]);
        }
        for (value, &(how, index)) in self.values.iter_mut().zip(&measures.metrics) {
            let new = signals[index];
            *value = match how {
                _ if self.steps == 0 => new,
                How::Mean(_) => *value + new,
                How::Max(_) => value.max(new),
                How::Min(_) => value.min(new),
                How::Last(_) => new,
            };
        }
        self.steps += 1;
    }

    /// How the incident went, if the episode ended now; `None` in a world without a pager.
    pub fn outcome(&self, measures: &Measures) -> Option<Outcome> {
        measures.incident.map(|_| self.incident.outcome())
    }

    /// The metrics, in the order of the table, if the episode ended now; NaN before the first step.
    pub fn metrics(&self, measures: &Measures) -> Vec<f64> {
        let of = |(value, (how, _)): (&f64, &(How, usize))| match how {
            How::Mean(_) => value / f64::from(self.steps),
            How::Max(_) | How::Min(_) | How::Last(_) => *value,
        };
        self.values.iter().zip(&measures.metrics).map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One character a minute: `.` quiet, `*` burning, `p` burning with the pager ringing, `q` quiet
    /// with the pager ringing.
    fn outcome(minutes: &str) -> (u32, Option<u32>, bool) {
        let mut incident = Incident::default();
        for minute in minutes.chars() {
            let burn = if "*p".contains(minute) { 1.000_001 } else { 1.0 };
            incident.minute("pq".contains(minute), burn);
        }
        let Outcome { pages, minutes_to_mitigate, unmitigated } = incident.outcome();
        (pages, minutes_to_mitigate, unmitigated)
    }

    #[test]
    fn no_burn_no_incident() {
        assert_eq!(outcome(""), (0, None, false));
        assert_eq!(outcome(&".".repeat(60)), (0, None, false));
    }

    #[test]
    fn counts_from_the_first_burn_to_the_last_before_ten_quiet_minutes() {
        assert_eq!(outcome("....*.........."), (0, Some(1), false));
        assert_eq!(outcome("....***.........."), (0, Some(3), false));
        // Nine quiet minutes are not ten.
        assert_eq!(outcome("..*.........*.........."), (0, Some(11), false));
        assert_eq!(outcome("..*..........*.........."), (0, Some(1), false));
        // Quiet minutes before the incident do not mitigate it.
        assert_eq!(outcome("............**.........."), (0, Some(2), false));
    }

    #[test]
    fn a_second_incident_does_not_count() {
        let text = format!("**{}*****", ".".repeat(10));
        assert_eq!(outcome(&text), (0, Some(2), false));
    }

    #[test]
    fn without_ten_quiet_minutes_it_counts_to_the_end() {
        assert_eq!(outcome("...**"), (0, Some(2), true));
        assert_eq!(outcome("...**........."), (0, Some(11), true));
        assert_eq!(outcome("...**.........."), (0, Some(2), false));
        assert_eq!(outcome("*"), (0, Some(1), true));
    }

    #[test]
    fn pages_are_rising_edges() {
        assert_eq!(outcome("ppp").0, 1);
        assert_eq!(outcome("qq.qq*p").0, 3);
        assert_eq!(outcome(".p.").0, 1);
    }

    #[test]
    fn metrics_follow_from_the_steps() {
        let hows = [How::Mean("x"), How::Max("x"), How::Min("x"), How::Last("x")];
        let measures = Measures { incident: None, metrics: hows.map(|how| (how, 1)).to_vec() };
        let mut watch = measures.watch();
        assert!(watch.metrics(&measures).iter().all(|value| value.is_nan()));
        for value in [4.0, -2.0, 10.0, 0.0] {
            watch.step(&measures, &[99.0, value]);
        }
        assert_eq!(watch.metrics(&measures), [3.0, 10.0, -2.0, 0.0]);
        assert_eq!(watch.outcome(&measures), None);
        assert!(!measures.has_incident());
    }

    #[test]
    fn the_table_has_signals_of_its_worlds() {
        for name in [oncall_env::shipped_names(), oncall_env::discovery_names()].concat() {
            let scenario = oncall_env::shipped(name).unwrap();
            let spec = scenario.world.spec();
            let measures = Measures::of(spec).unwrap();
            assert!(measures.has_incident() || !table(spec.world).is_empty(), "{name}");
            let mut names: Vec<&str> = table(spec.world).iter().map(|metric| metric.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), table(spec.world).len());
        }
    }
}
