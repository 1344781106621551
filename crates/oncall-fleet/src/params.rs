//! `Params`: a validated scenario. Every constant of the specification is a field.
//!
//! The records below are the single listing of the constants: names, units, ranges, defaults and
//! meanings. Scenario files, their JSON Schema and the documentation are made from it.

pub use oncall_core::Field;
use oncall_core::streams::Purpose;
use oncall_core::{Dist, EpisodeKey, Generator, Words};

/// Highest `boot_delay_min`; booting instances are counted by minutes left, 1 to this.
pub const BOOT_DELAY_MAX_MIN: usize = 15;
/// Highest number of surges, of deploys and of flushes in a scenario.
pub const EVENTS_MAX: usize = 4;

/// A group of numbers of a scenario file.
pub trait Record: Slots + Copy {
    /// Its numbers, in the order of the struct.
    const FIELDS: &'static [Field];
    /// Defaults; NaN where the file must say it.
    fn defaults() -> Self;
    /// The numbers of one lane, out of a column for each field.
    fn gather<const L: usize>(columns: &[[f64; L]], lane: usize) -> Self;
}

/// Access to the numbers of a record by index.
pub trait Slots {
    /// The number at an index of [`Record::FIELDS`].
    ///
    /// # Panics
    ///
    /// If the index is not one of them.
    fn slot(&mut self, index: usize) -> &mut f64;
}

/// At most [`EVENTS_MAX`] events, stored in place: an episode is copied without allocation.
#[derive(Debug, Clone, Copy)]
pub struct List<T> {
    items: [T; EVENTS_MAX],
    len: usize,
}

impl<T: Record> List<T> {
    /// No events.
    pub fn new() -> Self {
        Self { items: [T::defaults(); EVENTS_MAX], len: 0 }
    }

    /// Appends one.
    ///
    /// # Panics
    ///
    /// If there are [`EVENTS_MAX`] already.
    pub fn push(&mut self, item: T) {
        self.items[self.len] = item;
        self.len += 1;
    }

    /// Visits every number of every event.
    fn visit(&mut self, words: &mut impl Words) {
        for item in self.iter_mut() {
            (0..T::FIELDS.len()).for_each(|field| words.f64(item.slot(field)));
        }
    }
}

impl<T: Record> Default for List<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Places without an event do not count.
impl<T: PartialEq> PartialEq for List<T> {
    fn eq(&self, other: &Self) -> bool {
        self[..] == other[..]
    }
}

impl<T> std::ops::Deref for List<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.items[..self.len]
    }
}

impl<T> std::ops::DerefMut for List<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.items[..self.len]
    }
}

macro_rules! whole {
    () => {
        false
    };
    (whole) => {
        true
    };
}

macro_rules! record {
    ($(#[doc = $about:literal])* $Name:ident {
        $($field:ident: $default:expr, $low:literal ..= $high:literal, $unit:literal $(, $whole:ident)?; $doc:literal)*
    }) => {
        $(#[doc = $about])*
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct $Name {
            $(#[doc = $doc] pub $field: f64,)*
        }

        impl Record for $Name {
            const FIELDS: &'static [Field] = &[$(Field {
                name: stringify!($field),
                default: $default,
                low: $low as f64,
                high: $high as f64,
                unit: $unit,
                whole: whole!($($whole)?),
                doc: $doc,
            },)*];

            fn defaults() -> Self {
                Self { $($field: Option::<f64>::unwrap_or($default, f64::NAN),)* }
            }

            #[inline(always)]
            fn gather<const L: usize>(columns: &[[f64; L]], lane: usize) -> Self {
                let mut columns = columns.iter();
                Self { $($field: columns.next().map_or(f64::NAN, |column| column[lane]),)* }
            }
        }

        impl Slots for $Name {
            fn slot(&mut self, index: usize) -> &mut f64 {
                let slots = [$(&mut self.$field,)*];
                slots.into_iter().nth(index).expect("an index of FIELDS")
            }
        }
    };
}

record! {
    /// The shift.
    Shift {
        length_min: Some(240.0), 1 ..= 10080, "min", whole; "Minutes until the shift ends and the episode is truncated."
        clock_start_h: Some(8.0), 0 ..= 24, "h"; "Time of day at the start."
    }
}
record! {
    /// What the users ask for. A `series` replaces `base_rps` and the daily curve.
    Demand {
        base_rps: Some(1000.0), 0 ..= 1_000_000, "req/s"; "Mean demand over the day."
        daily_amplitude: Some(0.25), 0 ..= 1, ""; "Share by which the daily curve rises above its mean."
        daily_rise_h: Some(6.0), 0 ..= 24, "h"; "Time of day at which the daily curve crosses its mean upwards; the peak is six hours later."
        noise: Some(1.0), 0 ..= 1, "", whole; "1 draws each minute's count, 0 plays the mean rate exactly."
        noise_std: Some(0.02), 0 ..= 1, ""; "Standard deviation of the factor on top of the count's own."
    }
}
record! {
    /// The fleet and its autoscaler.
    Fleet {
        servers_per_instance: Some(16.0), 1 ..= 16, "", whole; "Requests that an instance works on at the same time."
        instances_max: Some(40.0), 1 ..= 40, "", whole; "Serving and booting instances never exceed it."
        boot_delay_min: Some(3.0), 0 ..= 15, "min", whole; "An instance ordered in minute t serves from minute t + this (0 counts as 1)."
        low_priority_share: Some(0.30), 0 ..= 1, ""; "Share of the traffic that the load balancer may refuse."
        scale_in_quiet_min: Some(10.0), 1 ..= 120, "min", whole; "Quiet minutes in a row before the autoscaler removes instances."
        scale_in_share_max: Some(0.20), 0 ..= 1, ""; "Largest share of the fleet that the autoscaler removes at once."
    }
}
record! {
    /// The cache in front of the database.
    Cache {
        objects: Some(20000.0), 1 ..= 1_000_000_000, ""; "Objects over which the requests spread evenly."
        recovery_min: Some(30.0), 0.1 ..= 10080, "min"; "Time constant of the warming by ordinary traffic."
        warm_up_min: Some(6.0), 1 ..= 60, "min", whole; "Minutes that a warm-up runs."
        warm_up_share: Some(0.12), 0 ..= 1, ""; "Share of the cache that a warm-up loads in a minute."
        warm_up_qps: Some(600.0), 0 ..= 1_000_000, "queries/s"; "Database load of a warm-up."
    }
}
record! {
    /// The database.
    Database {
        capacity_qps: Some(4000.0), 1 ..= 1_000_000_000, "queries/s"; "Load at which it is saturated."
        query_ms: Some(5.0), 0 ..= 10000, "ms"; "Time of a query without load."
        query_ms_max: Some(250.0), 0 ..= 10000, "ms"; "Time of a query at saturation."
    }
}
record! {
    /// The service itself.
    Service {
        cpu_ms: Some(50.0), 0.001 ..= 10000, "ms"; "CPU time of a request."
        feature_cpu_ms: Some(20.0), 0 ..= 10000, "ms"; "CPU time of the recommendations."
        queries: Some(2.0), 0 ..= 100, ""; "Queries of a request."
        feature_queries: Some(1.0), 0 ..= 100, ""; "Queries of the recommendations."
        timeout_s: Some(2.0), 0.001 ..= 600, "s"; "A request that waits longer for a server fails."
        rollback_min: Some(5.0), 1 ..= 60, "min", whole; "Minutes until a rollback switches the traffic."
    }
}
record! {
    /// The objective.
    Slo {
        error_budget: Some(0.001), 0.000_001 ..= 1, ""; "Share of requests that may fail: 1 minus the objective."
        window_min: Some(43200.0), 1 ..= 1_000_000, "min", whole; "Minutes over which the budget is counted: 30 days."
        page_burn: Some(14.4), 0 ..= 1000, ""; "The pager rings while the burn over 1 h and over 5 min both reach it."
    }
}
record! {
    /// What things cost.
    Prices {
        budget_usd: Some(1000.0), 0 ..= 1_000_000_000, "usd"; "A whole month's error budget."
        overdraft_factor: Some(3.0), 0 ..= 1000, ""; "Factor on the part burned beyond an empty budget."
        instance_usd_h: Some(0.40), 0 ..= 1000, "usd/h"; "An instance, serving or booting."
        shed_usd_per_million: Some(6.0), 0 ..= 1_000_000, "usd"; "A million requests refused."
        recommendations_usd_per_million: Some(3.0), 0 ..= 1_000_000, "usd"; "A million admitted requests without recommendations."
        latency_usd_per_million_s: Some(10.0), 0 ..= 1_000_000, "usd/s"; "A million admitted requests, per second of p99 above the free part."
        latency_free_s: Some(1.0), 0 ..= 600, "s"; "p99 that costs nothing."
        staleness_usd_per_million_s: Some(0.002), 0 ..= 1_000_000, "usd/s"; "A million answers from the cache, per second of mean age."
    }
}
record! {
    /// How the shift begins.
    Opening {
        serving: Some(10.0), 1 ..= 40, "", whole; "Instances that serve."
        cache_warmth: Some(1.0), 0 ..= 1, ""; "Warmth of the cache."
        budget_left: Some(1.0), -10 ..= 1, ""; "Share of the month's error budget that is left."
        min_instances: Some(10.0), 1 ..= 40, "", whole; "Where this dial stands."
        autoscale: Some(1.0), 0 ..= 1, "", whole; "Where this dial stands."
        target_utilization: Some(0.60), 0.30 ..= 0.95, ""; "Where this dial stands."
        cache_ttl_s: Some(60.0), 0 ..= 600, "s"; "Where this dial stands."
        shed_share: Some(0.0), 0 ..= 1, ""; "Where this dial stands."
        feature: Some(1.0), 0 ..= 1, "", whole; "Where this dial stands."
    }
}
record! {
    /// A link goes viral: demand times 1 + size, rising linearly, then decaying.
    Surge {
        start_min: None, 0 ..= 100_000, "min"; "Minute at which it begins."
        size: None, 0 ..= 100, ""; "Extra demand at the top, as a multiple of the usual."
        rise_min: Some(5.0), 0 ..= 10080, "min"; "Minutes from the start to the top; 0 jumps."
        decay_min: Some(45.0), 0.1 ..= 100_000, "min"; "Time constant of the decay."
    }
}
record! {
    /// A new build is released.
    Deploy {
        minute: None, 0 ..= 100_000, "min", whole; "Minute in which it begins."
        bad: Some(1.0), 0 ..= 1, "", whole; "1 if the build is bad, 0 if it is good; a choice of both hides the truth."
        rollout_min: Some(5.0), 1 ..= 10080, "min"; "Minutes of the linear rollout."
        error_rate: Some(0.05), 0 ..= 1, ""; "Errors of a bad build."
        extra_cpu: Some(0.25), 0 ..= 100, ""; "Extra CPU time of a bad build, as a share."
    }
}
record! {
    /// A script empties the cache.
    Flush {
        minute: None, 0 ..= 100_000, "min", whole; "Minute in which it happens."
    }
}

macro_rules! sections {
    ($($(#[doc = $doc:literal])* $name:ident: $Type:ident,)*) => {
        /// The numbers of a scenario, by section.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct Constants {
            $($(#[doc = $doc])* pub $name: $Type,)*
        }

        impl Constants {
            /// Names and fields of the sections, in the order of the struct.
            pub const SECTIONS: &'static [(&'static str, &'static [Field])] =
                &[$((stringify!($name), $Type::FIELDS),)*];

            /// How many numbers there are.
            pub const COUNT: usize = 0 $(+ $Type::FIELDS.len())*;

            /// Every number at its default.
            pub fn defaults() -> Self {
                Self { $($name: $Type::defaults(),)* }
            }

            /// The numbers of one lane, out of a column for each of [`Constants::COUNT`].
            #[inline(always)]
            pub(crate) fn gather<const L: usize>(columns: &[[f64; L]], lane: usize) -> Self {
                let mut from = 0;
                let mut next = |count: usize| {
                    from += count;
                    &columns[from - count..from]
                };
                Self { $($name: $Type::gather(next($Type::FIELDS.len()), lane),)* }
            }

            /// A number, by indices into [`Constants::SECTIONS`].
            ///
            /// # Panics
            ///
            /// If an index is not one of them.
            pub fn slot(&mut self, section: usize, field: usize) -> &mut f64 {
                let sections: [&mut dyn Slots; Self::SECTIONS.len()] = [$(&mut self.$name,)*];
                sections.into_iter().nth(section).expect("an index of SECTIONS").slot(field)
            }
        }
    };
}

sections! {
    /// The shift.
    shift: Shift,
    /// Demand.
    demand: Demand,
    /// Fleet and autoscaler.
    fleet: Fleet,
    /// Cache.
    cache: Cache,
    /// Database.
    database: Database,
    /// Service.
    service: Service,
    /// Objective.
    slo: Slo,
    /// Prices.
    prices: Prices,
    /// How the shift begins.
    opening: Opening,
}

/// The numbers of one episode: what a scenario says, with every distribution drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Numbers {
    /// The sections.
    pub constants: Constants,
    /// Surges.
    pub surges: List<Surge>,
    /// Deploys; in an episode ordered by their minute.
    pub deploys: List<Deploy>,
    /// Flushes.
    pub flushes: List<Flush>,
}

impl Numbers {
    /// All defaults, no events.
    pub fn defaults() -> Self {
        Self {
            constants: Constants::defaults(),
            surges: List::new(),
            deploys: List::new(),
            flushes: List::new(),
        }
    }

    /// The number that a distribution draws.
    ///
    /// # Panics
    ///
    /// If there is no such number.
    pub fn slot(&mut self, target: Target) -> &mut f64 {
        match target {
            Target::Constant(section, field) => self.constants.slot(section, field),
            Target::Surge(index, field) => self.surges[index].slot(field),
            Target::Deploy(index, field) => self.deploys[index].slot(field),
            Target::Flush(index, field) => self.flushes[index].slot(field),
        }
    }

    /// Visits every number, for saving, loading and digests. The lengths of the lists are the
    /// scenario's and stay.
    pub fn visit(&mut self, words: &mut impl Words) {
        for (section, (_, fields)) in Constants::SECTIONS.iter().enumerate() {
            for field in 0..fields.len() {
                words.f64(self.constants.slot(section, field));
            }
        }
        self.surges.visit(words);
        self.deploys.visit(words);
        self.flushes.visit(words);
    }
}

/// Which number a distribution draws: indices into the lists of [`Numbers`] and their fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Section and field.
    Constant(usize, usize),
    /// Surge and field.
    Surge(usize, usize),
    /// Deploy and field.
    Deploy(usize, usize),
    /// Flush and field.
    Flush(usize, usize),
}

impl Target {
    /// The field that is drawn.
    pub fn field(self) -> &'static Field {
        match self {
            Target::Constant(section, field) => &Constants::SECTIONS[section].1[field],
            Target::Surge(_, field) => &Surge::FIELDS[field],
            Target::Deploy(_, field) => &Deploy::FIELDS[field],
            Target::Flush(_, field) => &Flush::FIELDS[field],
        }
    }

    /// Path of the number in the file, such as `demand.surges[0].size`.
    pub fn path(self) -> String {
        let name = self.field().name;
        match self {
            Target::Constant(section, _) => format!("{}.{name}", Constants::SECTIONS[section].0),
            Target::Surge(i, _) => format!("surges[{i}].{name}"),
            Target::Deploy(i, _) => format!("deploys[{i}].{name}"),
            Target::Flush(i, _) => format!("flushes[{i}].{name}"),
        }
    }
}

/// One scenario, validated.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// Its name.
    pub name: String,
    /// Every number; those that are drawn hold any value of their range.
    pub numbers: Numbers,
    /// The distributions, in the order of the file.
    pub draws: Vec<(Target, Dist)>,
    /// Mean demand by minute in req/s instead of the daily curve; the last value holds.
    pub series_rps: Option<Vec<f64>>,
    /// The dashboard shows the share of the new build, good or bad, as `bad_build_share`.
    pub hide_build_truth: bool,
    /// Generator of the episodes.
    pub generator: Generator,
    /// Hash of the resolved scenario's text.
    pub hash: u64,
}

impl Params {
    /// All defaults: a steady day without events.
    pub fn defaults(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            numbers: Numbers::defaults(),
            draws: Vec::new(),
            series_rps: None,
            hide_build_truth: false,
            generator: Generator::Pcg,
            hash: 0,
        }
    }

    /// The numbers of an episode: the distributions are drawn in the order of the file, cut at the
    /// ends of their fields, and whole numbers rounded half to even. The lists keep the order of
    /// the file.
    pub fn draw_in_order(&self, key: EpisodeKey) -> Numbers {
        let mut numbers = self.numbers;
        let mut stream = key.stream(Purpose::Scenario, 0);
        for (target, dist) in &self.draws {
            let field = target.field();
            let drawn = dist.draw(&mut stream).clamp(field.low, field.high);
            *numbers.slot(*target) = if field.whole { drawn.round_ties_even() } else { drawn };
        }
        numbers
    }

    /// The numbers of an episode, with the deploys ordered by their minute.
    pub fn draw(&self, key: EpisodeKey) -> Numbers {
        let mut numbers = self.draw_in_order(key);
        numbers.deploys.sort_by(|a, b| a.minute.total_cmp(&b.minute));
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_lie_in_their_ranges() {
        let events =
            [("surge", Surge::FIELDS), ("deploy", Deploy::FIELDS), ("flush", Flush::FIELDS)];
        for (section, fields) in Constants::SECTIONS.iter().chain(&events) {
            for field in *fields {
                assert!(field.low < field.high, "{section}.{}", field.name);
                let Some(default) = field.default else { continue };
                assert!((field.low..=field.high).contains(&default), "{section}.{}", field.name);
                assert!(!field.whole || default.fract() == 0.0, "{section}.{}", field.name);
            }
        }
    }

    #[test]
    fn slots_follow_the_fields() {
        let mut constants = Constants::defaults();
        for (section, (name, fields)) in Constants::SECTIONS.iter().enumerate() {
            for (index, field) in fields.iter().enumerate() {
                assert_eq!(
                    Some(*constants.slot(section, index)),
                    field.default,
                    "{name}.{}",
                    field.name
                );
            }
        }
        *constants.slot(1, 0) = 7.0;
        assert_eq!(constants.demand.base_rps, 7.0);
    }

    #[test]
    fn draws_are_cut_rounded_and_repeatable() {
        let mut params = Params::defaults("test");
        params.numbers.flushes.push(Flush { minute: 0.0 });
        params.draws = vec![
            (Target::Flush(0, 0), Dist::Uniform { low: 10.0, high: 90.0 }),
            (Target::Constant(0, 1), Dist::Normal { mean: 23.9, std: 5.0 }),
        ];
        let key = |seed| EpisodeKey::new(seed, 0, oncall_core::Split::Train, Generator::Pcg);
        let drawn: Vec<Numbers> = (0..50).map(|seed| params.draw(key(seed))).collect();
        assert_eq!(drawn[7], params.draw(key(7)));
        assert!(drawn.iter().all(|n| n.flushes[0].minute.fract() == 0.0));
        assert!(drawn.iter().any(|n| n.constants.shift.clock_start_h == 24.0));
        assert!(drawn.windows(2).any(|pair| pair[0].flushes != pair[1].flushes));
        assert_eq!(Target::Flush(0, 0).path(), "flushes[0].minute");
    }
}
