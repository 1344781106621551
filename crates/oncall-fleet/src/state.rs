//! The state of one service, and the dashboard of the minute that it played last.

use crate::budget::ErrorWindow;
use crate::capacity::Capacity;
use crate::dials::Dials;
use crate::events::DeploySet;
use crate::params::{BOOT_DELAY_MAX_MIN, Numbers};
use oncall_core::{EpisodeKey, Words};

/// Minutes of recent history for the changes over 1 and 5 minutes.
pub const RECENT_MIN: usize = 6;

macro_rules! words {
    ($(#[doc = $about:literal])* $Name:ident { $($(#[doc = $doc:literal])* $field:ident,)* }) => {
        $(#[doc = $about])*
        #[derive(Debug, Clone, Copy, PartialEq, Default)]
        pub struct $Name {
            $($(#[doc = $doc])* pub $field: f64,)*
        }

        impl $Name {
            /// How many numbers there are.
            pub const COUNT: usize = [$(stringify!($field),)*].len();

            /// Visits every number.
            pub fn visit(&mut self, words: &mut impl Words) {
                $(words.f64(&mut self.$field);)*
            }

            /// The numbers, in the order of the fields.
            pub fn values(&self) -> [f64; Self::COUNT] {
                [$(self.$field,)*]
            }

            /// The inverse of [`Self::values`].
            pub fn from_values([$($field,)*]: [f64; Self::COUNT]) -> Self {
                Self { $($field,)* }
            }
        }
    };
}

words! {
    /// What the dashboard showed in the minute as it was played; see [`crate::signals`] for units.
    Seen {
        /// Demand.
        offered_rps,
        /// Demand less what was shed.
        admitted_rps,
        /// Instances that served.
        serving,
        /// Share of the requests that the cache answered.
        cache_hit,
        /// Warmth of the cache in the minute.
        cache_warmth,
        /// Database load over capacity.
        db_utilization,
        /// Time of a query.
        query_ms,
        /// Service time.
        service_ms,
        /// 99 % quantile of the latency.
        p99_ms,
        /// Offered load, erlangs.
        offered_load,
        /// Probability of a wait.
        p_wait,
        /// Share of the servers that was busy.
        utilization,
        /// Share of the requests that failed in the queue.
        failed_share,
        /// Share of the admitted requests that failed.
        error_rate,
        /// Burn of the minute.
        burn,
        /// Burn of the last 5 minutes.
        burn_5min,
        /// Burn of the last 60 minutes.
        burn_1h,
        /// Whether the pager rang.
        page,
        /// Share of all traffic refused.
        shed_traffic,
        /// Mean age of an answer from the cache.
        cache_age_s,
        /// Share of the traffic on bad builds, or on new ones where the truth is hidden.
        bad_build_share,
        /// Share of the traffic on bad builds.
        bad_build_truth,
        /// Factor of all surges.
        surge_factor,
        /// Dollars of the fleet in an hour.
        fleet_usd_h,
    }
}

words! {
    /// What the changes over time are taken of.
    Recent {
        /// Demand.
        offered_rps,
        /// Share of the servers that was busy.
        utilization,
        /// Share of the admitted requests that failed.
        error_rate,
    }
}

/// One service.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lane {
    /// The episode's key.
    pub key: EpisodeKey,
    /// Which scenario of a mixture is played.
    pub variant: u32,
    /// The scenario's numbers, as drawn for this episode.
    pub numbers: Numbers,
    /// Share of what is cold that a minute's traffic warms; follows from `numbers`.
    pub recovery: f64,
    /// Minutes played; the index of the next one.
    pub minute: u32,
    /// The fleet.
    pub capacity: Capacity,
    /// Booting instances in the minute as it was played.
    pub booting_seen: [u32; BOOT_DELAY_MAX_MIN],
    /// Warmth of the cache, 0..1.
    pub warmth: f64,
    /// Minutes left of a warm-up.
    pub warm_up_left_min: u32,
    /// Minutes left of a rollback.
    pub rollback_left_min: u32,
    /// Deploys that the running rollback will retire.
    pub rollback_of: DeploySet,
    /// Deploys that are retired.
    pub retired: DeploySet,
    /// Error rates of the last hour.
    pub errors: ErrorWindow,
    /// Share of the month's error budget that is left.
    pub budget_left: f64,
    /// Dollars of the fleet so far.
    pub cost_usd: f64,
    /// Requests admitted so far.
    pub admitted_requests: f64,
    /// Of these, requests that got recommendations.
    pub recommended_requests: f64,
    /// The dials as they stand.
    pub dials: Dials,
    /// The dashboard.
    pub seen: Seen,
    /// Ring of the last minutes; minute t stands at `t % 6`.
    pub recent: [Recent; RECENT_MIN],
}

impl Lane {
    /// Visits every word of state that the future depends on: one listing for saving, loading and
    /// digests.
    pub fn visit(&mut self, words: &mut impl Words) {
        let (mut hash, mut generator) = self.key.bits();
        words.word(&mut hash);
        words.word(&mut generator);
        self.key = EpisodeKey::from_bits((hash, generator)).unwrap_or(self.key);
        words.u32(&mut self.variant);
        self.numbers.visit(words);
        words.f64(&mut self.recovery);
        words.u32(&mut self.minute);
        words.u32(&mut self.capacity.serving);
        words.u32(&mut self.capacity.quiet_min);
        self.capacity.booting.iter_mut().for_each(|count| words.u32(count));
        self.booting_seen.iter_mut().for_each(|count| words.u32(count));
        words.f64(&mut self.warmth);
        words.u32(&mut self.warm_up_left_min);
        words.u32(&mut self.rollback_left_min);
        words.u32(&mut self.rollback_of);
        words.u32(&mut self.retired);
        self.errors.rates.iter_mut().for_each(|rate| words.f64(rate));
        words.f64(&mut self.budget_left);
        words.f64(&mut self.cost_usd);
        words.f64(&mut self.admitted_requests);
        words.f64(&mut self.recommended_requests);
        self.dials.visit(words);
        self.seen.visit(words);
        self.recent.iter_mut().for_each(|recent| recent.visit(words));
    }

    /// Share of the admitted requests of the shift so far that got recommendations; 1 before any.
    pub fn recommendations(&self) -> f64 {
        if self.admitted_requests > 0.0 {
            self.recommended_requests / self.admitted_requests
        } else {
            1.0
        }
    }

    /// The index of the minute that the dashboard shows; 0 for the opening.
    pub fn minute_seen(&self) -> u32 {
        self.minute.saturating_sub(1)
    }

    /// What stood on the dashboard some minutes (1 to 5) before it.
    pub fn before(&self, minutes: usize) -> &Recent {
        &self.recent[(self.minute_seen() as usize + RECENT_MIN - minutes) % RECENT_MIN]
    }
}
