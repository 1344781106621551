//! Many services side by side: a column of numbers for each field of a [`Lane`].

use crate::budget::{LONG_MIN, Sum};
use crate::capacity::Capacity;
use crate::dials::Dials;
use crate::params::{
    BOOT_DELAY_MAX_MIN, Constants, Deploy, Flush, List, Numbers, Params, Record, Surge,
};
use crate::state::{Lane, RECENT_MIN, Recent, Seen};
use oncall_core::math::{from_whole, to_whole};
use oncall_core::{EpisodeKey, Generator};

/// Services of a block.
pub const LANES: usize = 32;

/// A number of each service.
pub(crate) type Column = [f64; LANES];

/// Numbers of the dashboard that are kept; see [`Seen`].
pub(crate) const SEEN: usize = Seen::COUNT;

/// An event that never happens, where another service of the block has one.
const NO_SURGE: Surge = Surge { start_min: 1e300, size: 0.0, rise_min: 1.0, decay_min: 1.0 };
const NO_DEPLOY: Deploy =
    Deploy { minute: 1e300, bad: 0.0, rollout_min: 1.0, error_rate: 0.0, extra_cpu: 0.0 };
const NO_FLUSH: Flush = Flush { minute: -1.0 };

/// Columns of one event, one for each of its fields.
pub(crate) type SurgeColumns = [Column; Surge::FIELDS.len()];
pub(crate) type DeployColumns = [Column; Deploy::FIELDS.len()];
pub(crate) type FlushColumns = [Column; Flush::FIELDS.len()];

/// The services of a block. Whole numbers are kept as doubles, which hold them exactly.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub struct Block {
    pub(crate) key: [u64; LANES],
    pub(crate) variant: [u32; LANES],
    pub(crate) minute: [u32; LANES],
    pub(crate) booting: [[u8; LANES]; BOOT_DELAY_MAX_MIN],
    pub(crate) booting_seen: [[u8; LANES]; BOOT_DELAY_MAX_MIN],
    pub(crate) rollback_of: [u32; LANES],
    pub(crate) retired: [u32; LANES],
    pub(crate) recovery: Column,
    pub(crate) serving: Column,
    pub(crate) quiet_min: Column,
    pub(crate) warmth: Column,
    pub(crate) warm_up_left_min: Column,
    pub(crate) rollback_left_min: Column,
    pub(crate) budget_left: Column,
    pub(crate) cost_usd: Column,
    pub(crate) admitted_requests: Column,
    pub(crate) recommended_requests: Column,
    /// Floor, autoscaler, target, TTL, shed share, feature; switches are 0 or 1.
    pub(crate) min_instances: Column,
    pub(crate) autoscale: Column,
    pub(crate) target_utilization: Column,
    pub(crate) cache_ttl_s: Column,
    pub(crate) shed_share: Column,
    pub(crate) feature: Column,
    /// Sums of the error rates of the last hour and of the last five minutes.
    pub(crate) long: [Column; 2],
    pub(crate) short: [Column; 2],
    pub(crate) seen: [Column; SEEN],
    /// By minute of the ring: demand, utilisation, errors.
    pub(crate) recent: [[Column; 3]; RECENT_MIN],
    pub(crate) rates: [Column; LONG_MIN],
    pub(crate) surges: Box<[SurgeColumns]>,
    pub(crate) deploys: Box<[DeployColumns]>,
    pub(crate) flushes: Box<[FlushColumns]>,
    /// Columns of all constants where services of the world differ in them.
    pub(crate) constants: Option<Box<[Column; Constants::COUNT]>>,
}

/// What the blocks of a world have room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) surges: usize,
    pub(crate) deploys: usize,
    pub(crate) flushes: usize,
    pub(crate) constants: bool,
}

/// Writes one service's event into its columns.
fn put_event<T: Record>(columns: &mut [Column], lane: usize, mut event: T) {
    for (field, column) in columns.iter_mut().enumerate() {
        column[lane] = *event.slot(field);
    }
}

/// A lane's number of each column. (`map` on the array would copy all lanes of all columns.)
fn row<const N: usize>(columns: &[Column; N], lane: usize) -> [f64; N] {
    std::array::from_fn(|k| columns[k][lane])
}

/// The first events of a service, in a list as long as the scenario's.
fn take_events<T: Record, const F: usize>(
    columns: &[[Column; F]],
    lane: usize,
    count: usize,
) -> List<T> {
    let mut list = List::new();
    columns[..count].iter().for_each(|event| list.push(T::gather(event, lane)));
    list
}

impl Block {
    /// A block whose services are all alike.
    pub(crate) fn new(room: Room, lane: &Lane) -> Self {
        let zero = [0.0; LANES];
        let mut block = Self {
            key: [0; LANES],
            variant: [0; LANES],
            minute: [0; LANES],
            booting: [[0; LANES]; BOOT_DELAY_MAX_MIN],
            booting_seen: [[0; LANES]; BOOT_DELAY_MAX_MIN],
            rollback_of: [0; LANES],
            retired: [0; LANES],
            recovery: zero,
            serving: zero,
            quiet_min: zero,
            warmth: zero,
            warm_up_left_min: zero,
            rollback_left_min: zero,
            budget_left: zero,
            cost_usd: zero,
            admitted_requests: zero,
            recommended_requests: zero,
            min_instances: zero,
            autoscale: zero,
            target_utilization: zero,
            cache_ttl_s: zero,
            shed_share: zero,
            feature: zero,
            long: [zero; 2],
            short: [zero; 2],
            seen: [zero; SEEN],
            recent: [[zero; 3]; RECENT_MIN],
            rates: [zero; LONG_MIN],
            surges: vec![[zero; Surge::FIELDS.len()]; room.surges].into(),
            deploys: vec![[zero; Deploy::FIELDS.len()]; room.deploys].into(),
            flushes: vec![[zero; Flush::FIELDS.len()]; room.flushes].into(),
            constants: room.constants.then(|| Box::new([zero; Constants::COUNT])),
        };
        (0..LANES).for_each(|index| block.put(index, lane));
        block
    }

    /// Puts a service into a lane.
    pub(crate) fn put(&mut self, lane: usize, from: &Lane) {
        self.key[lane] = from.key.bits().0;
        self.variant[lane] = from.variant;
        self.minute[lane] = from.minute;
        self.rollback_of[lane] = from.rollback_of;
        self.retired[lane] = from.retired;
        for (column, value) in self.plain_mut().into_iter().zip(plain_values(from)) {
            column[lane] = value;
        }
        let counts = from.capacity.booting.iter().zip(&from.booting_seen);
        for (k, (&booting, &seen)) in counts.enumerate() {
            // At most 40 instances: see the invariants.
            (self.booting[k][lane], self.booting_seen[k][lane]) = (booting as u8, seen as u8);
        }
        for (column, rate) in self.rates.iter_mut().zip(from.errors.rates) {
            column[lane] = rate;
        }
        let long = from.errors.rates.iter().fold(Sum::ZERO, |sum, &x| sum.plus(Sum::of(x)));
        let short = from.errors.sum_short(from.minute_seen());
        for (columns, sum) in [(&mut self.long, long), (&mut self.short, short)] {
            (columns[0][lane], columns[1][lane]) = (sum.high, sum.low);
        }
        for (column, value) in self.seen.iter_mut().zip(from.seen.values()) {
            column[lane] = value;
        }
        for (columns, recent) in self.recent.iter_mut().zip(&from.recent) {
            for (column, value) in columns.iter_mut().zip(recent.values()) {
                column[lane] = value;
            }
        }
        self.put_numbers(lane, &from.numbers);
    }

    fn put_numbers(&mut self, lane: usize, numbers: &Numbers) {
        for (index, columns) in self.surges.iter_mut().enumerate() {
            put_event(columns, lane, numbers.surges.get(index).copied().unwrap_or(NO_SURGE));
        }
        for (index, columns) in self.deploys.iter_mut().enumerate() {
            put_event(columns, lane, numbers.deploys.get(index).copied().unwrap_or(NO_DEPLOY));
        }
        for (index, columns) in self.flushes.iter_mut().enumerate() {
            put_event(columns, lane, numbers.flushes.get(index).copied().unwrap_or(NO_FLUSH));
        }
        if let Some(columns) = &mut self.constants {
            let mut constants = numbers.constants;
            let mut columns = columns.iter_mut();
            for (section, (_, fields)) in Constants::SECTIONS.iter().enumerate() {
                for (field, column) in (0..fields.len()).zip(columns.by_ref()) {
                    column[lane] = *constants.slot(section, field);
                }
            }
        }
    }

    /// A service's numbers, under the scenario that it plays.
    pub(crate) fn numbers(&self, lane: usize, params: &Params) -> Numbers {
        let constants = self.constants.as_ref();
        let known = &params.numbers;
        Numbers {
            constants: constants.map_or(known.constants, |all| Constants::gather(&all[..], lane)),
            surges: take_events(&self.surges, lane, known.surges.len()),
            deploys: take_events(&self.deploys, lane, known.deploys.len()),
            flushes: take_events(&self.flushes, lane, known.flushes.len()),
        }
    }

    /// A service's key.
    pub(crate) fn key(&self, lane: usize, generator: Generator) -> EpisodeKey {
        EpisodeKey::from_bits((self.key[lane], generator as u64)).unwrap_or_default()
    }

    /// The service of a lane.
    pub(crate) fn take(&self, lane: usize, params: &Params) -> Lane {
        let count = |x: f64| to_whole(x) as u32;
        let counts = |of: &[[u8; LANES]; BOOT_DELAY_MAX_MIN]| {
            std::array::from_fn(|minute| u32::from(of[minute][lane]))
        };
        let recent = |of: &[Column; 3]| Recent::from_values(row(of, lane));
        Lane {
            key: self.key(lane, params.generator),
            variant: self.variant[lane],
            numbers: self.numbers(lane, params),
            recovery: self.recovery[lane],
            minute: self.minute[lane],
            capacity: Capacity {
                serving: count(self.serving[lane]),
                booting: counts(&self.booting),
                quiet_min: count(self.quiet_min[lane]),
            },
            booting_seen: counts(&self.booting_seen),
            warmth: self.warmth[lane],
            warm_up_left_min: count(self.warm_up_left_min[lane]),
            rollback_left_min: count(self.rollback_left_min[lane]),
            rollback_of: self.rollback_of[lane],
            retired: self.retired[lane],
            errors: crate::budget::ErrorWindow { rates: row(&self.rates, lane) },
            budget_left: self.budget_left[lane],
            cost_usd: self.cost_usd[lane],
            admitted_requests: self.admitted_requests[lane],
            recommended_requests: self.recommended_requests[lane],
            dials: Dials {
                min_instances: count(self.min_instances[lane]),
                autoscale: self.autoscale[lane] > 0.5,
                target_utilization: self.target_utilization[lane],
                cache_ttl_s: self.cache_ttl_s[lane],
                shed_share: self.shed_share[lane],
                feature: self.feature[lane] > 0.5,
            },
            seen: Seen::from_values(row(&self.seen, lane)),
            recent: std::array::from_fn(|minute| recent(&self.recent[minute])),
        }
    }

    /// Copies a service from another block of the same world.
    pub(crate) fn copy(&mut self, to: usize, other: &Self, from: usize) {
        self.key[to] = other.key[from];
        self.variant[to] = other.variant[from];
        self.minute[to] = other.minute[from];
        self.rollback_of[to] = other.rollback_of[from];
        self.retired[to] = other.retired[from];
        for (mine, theirs) in self.plain_mut().into_iter().zip(other.plain()) {
            mine[to] = theirs[from];
        }
        for k in 0..BOOT_DELAY_MAX_MIN {
            self.booting[k][to] = other.booting[k][from];
            self.booting_seen[k][to] = other.booting_seen[k][from];
        }
        let copy = |mine: &mut [Column], theirs: &[Column]| {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| mine[to] = theirs[from]);
        };
        copy(&mut self.long, &other.long);
        copy(&mut self.short, &other.short);
        copy(&mut self.seen, &other.seen);
        copy(&mut self.rates, &other.rates);
        copy(self.recent.as_flattened_mut(), other.recent.as_flattened());
        copy(self.surges.as_flattened_mut(), other.surges.as_flattened());
        copy(self.deploys.as_flattened_mut(), other.deploys.as_flattened());
        copy(self.flushes.as_flattened_mut(), other.flushes.as_flattened());
        if let (Some(mine), Some(theirs)) = (&mut self.constants, &other.constants) {
            copy(&mut mine[..], &theirs[..]);
        }
    }

    /// Columns that are one number of a service each, in the order of [`plain_values`].
    fn plain(&self) -> [&Column; PLAIN] {
        [
            &self.recovery,
            &self.serving,
            &self.quiet_min,
            &self.warmth,
            &self.warm_up_left_min,
            &self.rollback_left_min,
            &self.budget_left,
            &self.cost_usd,
            &self.admitted_requests,
            &self.recommended_requests,
            &self.min_instances,
            &self.autoscale,
            &self.target_utilization,
            &self.cache_ttl_s,
            &self.shed_share,
            &self.feature,
        ]
    }

    /// As [`Block::plain`].
    fn plain_mut(&mut self) -> [&mut Column; PLAIN] {
        [
            &mut self.recovery,
            &mut self.serving,
            &mut self.quiet_min,
            &mut self.warmth,
            &mut self.warm_up_left_min,
            &mut self.rollback_left_min,
            &mut self.budget_left,
            &mut self.cost_usd,
            &mut self.admitted_requests,
            &mut self.recommended_requests,
            &mut self.min_instances,
            &mut self.autoscale,
            &mut self.target_utilization,
            &mut self.cache_ttl_s,
            &mut self.shed_share,
            &mut self.feature,
        ]
    }
}

const PLAIN: usize = 16;

/// A service's numbers in the order of [`Block::plain`].
fn plain_values(lane: &Lane) -> [f64; PLAIN] {
    let whole = |n: u32| from_whole(u64::from(n));
    let switch = |on: bool| f64::from(u8::from(on));
    [
        lane.recovery,
        whole(lane.capacity.serving),
        whole(lane.capacity.quiet_min),
        lane.warmth,
        whole(lane.warm_up_left_min),
        whole(lane.rollback_left_min),
        lane.budget_left,
        lane.cost_usd,
        lane.admitted_requests,
        lane.recommended_requests,
        whole(lane.dials.min_instances),
        switch(lane.dials.autoscale),
        lane.dials.target_utilization,
        lane.dials.cache_ttl_s,
        lane.dials.shed_share,
        switch(lane.dials.feature),
    ]
}
