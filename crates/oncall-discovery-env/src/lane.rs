//! The state of one environment: the simulator, what has been scraped of it, and the accounts.

use crate::dials;
use crate::meter::{Meter, Spent};
use crate::own::{Own, Truth, array};
use crate::params::Params;
use crate::plan::{Plan, WARM_UP_S, Window, schedule};
use crate::scrape::Scrape;
use crate::signals::{self, Group};
use crate::{TICK_S, reward};
use oncall_core::EpisodeKey;
use oncall_core::streams::{Purpose, mix};
use oncall_discovery::dials::Dials;
use oncall_discovery_sim::noise::Draw;
use oncall_discovery_sim::topology::REGIONS;
use oncall_discovery_sim::world::{Setup, World};
use serde::{Deserialize, Serialize};

/// Scrapes kept: the newest and as many before it as the longest delay has.
const KEPT: usize = 4;

/// Longest delay of a scrape, ticks; the shortest is one.
const DELAY_MAX: u64 = 3;

/// Microseconds of a tick, as the simulator counts.
const TICK_US: u64 = TICK_S as u64 * 1_000_000;

/// What a minute is on the clock of ticks.
pub(crate) const TICKS_PER_MIN: f64 = 60.0 / TICK_S as f64;

/// One episode under way.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Episode {
    /// Which scenario of a mixture.
    pub(crate) variant: u32,
    /// The key's bits.
    pub(crate) key: (u64, u64),
    /// The numbers that were drawn, in the order of the scenario's distributions.
    pub(crate) drawn: Vec<f64>,
    pub(crate) world: World,
    /// The dials as wished.
    #[serde(with = "array")]
    pub(crate) wish: [f64; dials::COUNT],
    scrapes: [Scrape; KEPT],
    /// Place of the newest.
    newest: u8,
    /// Age of what each group shows, ticks.
    delays: [u8; Group::COUNT],
    meter: Meter,
    pub(crate) own: Own,
    windows: Vec<Window>,
    length_min: f64,
    /// Ticks on the simulator's clock, the opening minute included.
    ticks: u32,
}

impl Episode {
    /// A new episode: everything is drawn, and one calm minute is played, which costs nothing.
    ///
    /// # Errors
    ///
    /// What the simulator says about the setup; no validated scenario makes it say anything.
    pub(crate) fn open(
        params: &Params,
        variant: usize,
        key: EpisodeKey,
    ) -> Result<Self, oncall_discovery_sim::world::SetupError> {
        let mut shape = params.scale.env_shape();
        let numbers = params.draw(key);
        shape.loss = numbers.loss();
        let Plan { scenario, windows } = schedule(&numbers, &shape, key);
        let opening = numbers.opening();
        let setup = Setup {
            shape,
            scenario,
            dials: Dials::from_values(&opening)?,
            seed: 0,
            verify: params.verify,
        };
        let mut world = World::keyed(setup, key)?;
        let mut numbers = numbers;
        let drawn = params.draws.iter().map(|(target, _)| *numbers.slot(*target)).collect();
        world.quiet();
        let meter = Meter::new(&world);
        let mut episode = Self {
            variant: variant as u32,
            key: key.bits(),
            drawn,
            world,
            wish: opening,
            scrapes: [Scrape::default(); KEPT],
            newest: 0,
            delays: delays(key),
            meter,
            own: Own { dials: opening, ..Own::default() },
            windows,
            length_min: numbers.length_min(),
            ticks: 0,
        };
        for _ in 0..(WARM_UP_S / f64::from(TICK_S)) as u32 {
            episode.advance();
        }
        episode.meter.open();
        episode.own.truth.probe_loss = shape.loss.mean();
        episode.own.truth.scenario = variant as f64;
        episode.look();
        Ok(episode)
    }

    /// Plays a tick with the dials as wished; returns the terms in dollars.
    pub(crate) fn play(&mut self, wish: &[f64; dials::COUNT]) -> [f64; reward::TERMS] {
        if *wish != self.wish
            && let Ok(dials) = Dials::from_values(wish)
            && self.world.turn(dials).is_ok()
        {
            self.wish = *wish;
            self.own.dials = *wish;
        }
        let spent = self.advance();
        let terms = self.meter.terms(&spent, &mut self.own);
        self.look();
        terms
    }

    /// Plays a tick and scrapes.
    fn advance(&mut self) -> Spent {
        self.ticks += 1;
        self.world.run_until(u64::from(self.ticks) * TICK_US);
        let (mut scrape, spent) = self.meter.read(&self.world);
        let before = self.scrapes[usize::from(self.newest)];
        signals::freeze(&mut scrape, &before, self.up());
        self.newest = (self.newest + 1) % KEPT as u8;
        self.scrapes[usize::from(self.newest)] = scrape;
        spent
    }

    /// Minutes of the episode at the simulator's clock; negative in the opening minute.
    fn minute(&self) -> f64 {
        f64::from(self.ticks) / TICKS_PER_MIN - WARM_UP_S / 60.0
    }

    /// Regions whose control plane can be scraped now.
    fn up(&self) -> [bool; REGIONS] {
        let now = self.minute();
        let mut stopped = 0;
        for window in &self.windows {
            if window.from_min <= now && now < window.to_min {
                stopped |= window.stops;
            }
        }
        std::array::from_fn(|region| stopped >> region & 1 == 0)
    }

    /// What the console shows now.
    fn look(&mut self) {
        let now = self.minute();
        let own = &mut self.own;
        own.played_min = now;
        own.left_min = (self.length_min - own.played_min).max(0.0);
        let coming = self.windows.iter().filter(|window| window.from_min > now);
        let next = coming
            .filter_map(|window| Some((window.from_min, window.rollout?)))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        let (next_min, (share, services)) = next.unwrap_or((now + 60.0, (0.0, 0.0)));
        own.rollout_next_min = (next_min - now).min(60.0);
        (own.rollout_next_share, own.rollout_next_services) = (share, services);
        let running = |window: &&Window| window.from_min <= now && now < window.to_min;
        let onset = self.windows.iter().map(|window| window.from_min).min_by(f64::total_cmp);
        let truth = Truth {
            to_onset_min: onset.map_or(60.0, |onset| onset - now),
            faults: self.windows.iter().filter(running).count() as f64,
            ..own.truth
        };
        own.truth = truth;
        self.meter.look(&self.world, own);
    }

    /// Writes the signals.
    pub(crate) fn signals(&self, out: &mut [f64]) {
        let shown = self.delays.map(|delay| {
            &self.scrapes[(usize::from(self.newest) + KEPT - usize::from(delay)) % KEPT]
        });
        signals::write(shown, &self.own, out);
    }

    /// The faults of this episode.
    pub(crate) fn windows(&self) -> &[Window] {
        &self.windows
    }

    /// Minutes until the scenario ends.
    pub(crate) fn length_min(&self) -> f64 {
        self.length_min
    }

    /// Some of the noise of this episode, which no state changes.
    pub(crate) fn noise_bits(&self) -> u64 {
        self.world.noise().word(Draw::Topology, 0, 0)
    }

    /// Puts back what no saved state holds.
    pub(crate) fn revive(&mut self) {
        self.world.revive();
    }
}

/// How old what a group shows is: 10 to 30 s, for each group and episode.
fn delays(key: EpisodeKey) -> [u8; Group::COUNT] {
    let word = mix(key.bits().0, Purpose::Scrape as u64);
    std::array::from_fn(|group| 1 + (mix(word, group as u64) % DELAY_MAX) as u8)
}
