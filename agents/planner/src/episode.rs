//! One shift that can be played again and again: the search's copy of the world.

use oncall_core::{EpisodeKey, World};
use oncall_fleet::dials::index;
use oncall_fleet::{FleetWorld, Lane, Params, step};
use std::cell::Cell;

/// The dials of one minute, settled; presses are 1.
pub(crate) type Action = [f64; index::COUNT];

/// A schedule: the dials of every minute.
pub type Schedule = Vec<[f64; index::COUNT]>;

/// A shift from some state on, with its demand known.
#[derive(Debug)]
pub(crate) struct Episode<'a> {
    params: &'a Params,
    /// The state before the first minute.
    pub(crate) opening: Lane,
    /// By minute of the shift, so that no search draws the same noise twice.
    demand_rps: Vec<f64>,
    /// Minutes to play.
    pub(crate) length_min: usize,
    /// Minutes played so far by everybody: the unit in which a search is paid.
    played_min: Cell<u64>,
}

/// What a minute costs, whatever came before it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Bill {
    /// Dollars, errors at the price of an unspent budget.
    pub(crate) usd: f64,
    /// Share of the month's error budget burned.
    pub(crate) burned: f64,
}

impl Bill {
    pub(crate) fn add(&mut self, other: Bill) {
        self.usd += other.usd;
        self.burned += other.burned;
    }
}

impl<'a> Episode<'a> {
    /// The shift of a key: its noise is a function of the key, so playing it once tells the demand.
    pub(crate) fn of_key(world: &'a FleetWorld, key: EpisodeKey) -> Self {
        let mut opening = world.new_block();
        world.reset(&mut opening, 0, key);
        let length_min = world.length_min(&opening, 0) as usize;
        Self::of_state(world, &opening, length_min)
    }

    /// The rest of a shift of `shift_min` minutes from a state on.
    pub(crate) fn of_state(world: &'a FleetWorld, opening: &Lane, shift_min: usize) -> Self {
        let mut lane = *opening;
        let past = lane.minute as usize;
        let keep = [f64::NAN; index::COUNT];
        // By minute of the shift; nobody asks for those that are over.
        let mut demand_rps = vec![0.0; past];
        demand_rps.extend((past..shift_min).map(|_| {
            world.step(&mut lane, &[true], &keep, &mut [0.0; 6], &mut [false]);
            lane.seen.offered_rps
        }));
        let params = &world.variants()[opening.variant as usize];
        let length_min = shift_min - past;
        Self {
            params,
            opening: *opening,
            demand_rps,
            length_min,
            played_min: Cell::new(length_min as u64),
        }
    }

    /// Plays one minute.
    #[inline]
    pub(crate) fn play(&self, lane: &mut Lane, action: &Action) -> Bill {
        self.played_min.set(self.played_min.get() + 1);
        let terms = step::play(self.params, lane, action, Some(&self.demand_rps));
        let constants = &lane.numbers.constants;
        let burned = lane.seen.burn / constants.slo.window_min;
        let [fleet, _, shed, recommendations, latency, staleness] = terms;
        let other = fleet + shed + recommendations + latency + staleness;
        Bill { usd: other + constants.prices.budget_usd * burned, burned }
    }

    /// Minutes played so far.
    pub(crate) fn played_min(&self) -> u64 {
        self.played_min.get()
    }

    /// Dollars of a whole bill. What an overdraft adds depends on the sum of what was burned only: the
    /// overdrawn parts of the minutes add up to how far the budget ends below zero.
    pub(crate) fn total_usd(&self, bill: Bill) -> f64 {
        let prices = &self.opening.numbers.constants.prices;
        let left = self.opening.budget_left;
        let overdrawn = (bill.burned - left).max(0.0) - (-left).max(0.0);
        bill.usd + prices.budget_usd * (prices.overdraft_factor - 1.0) * overdrawn.max(0.0)
    }

    /// Whether a bill overdraws the budget.
    pub(crate) fn overdraws(&self, bill: Bill) -> bool {
        bill.burned > self.opening.budget_left
    }

    /// Factor on the price of what is burned beyond an empty budget.
    pub(crate) fn overdraft_factor(&self) -> f64 {
        self.opening.numbers.constants.prices.overdraft_factor
    }

    /// Minutes from an order of instances to their first minute of service.
    pub(crate) fn boot_min(&self) -> usize {
        (self.opening.numbers.constants.fleet.boot_delay_min as usize).max(1)
    }

    /// Most instances.
    pub(crate) fn instances_max(&self) -> usize {
        self.opening.numbers.constants.fleet.instances_max as usize
    }

    /// Dollars of an instance in a minute.
    pub(crate) fn instance_usd(&self) -> f64 {
        self.opening.numbers.constants.prices.instance_usd_h / 60.0
    }
}

/// Whether two states of the same minute have the same future under dials that are all said: what was
/// seen, paid and burned before does not matter to it.
#[inline]
pub(crate) fn same_future(a: &Lane, b: &Lane) -> bool {
    a.capacity == b.capacity
        && a.warmth.to_bits() == b.warmth.to_bits()
        && a.warm_up_left_min == b.warm_up_left_min
        && a.rollback_left_min == b.rollback_left_min
        && a.rollback_of == b.rollback_of
        && a.retired == b.retired
}

/// A schedule as it was played, with the state before every minute.
#[derive(Debug, Clone)]
pub(crate) struct Trace {
    pub(crate) actions: Schedule,
    /// One more than minutes.
    pub(crate) lanes: Vec<Lane>,
    bills: Vec<Bill>,
    pub(crate) total: Bill,
}

impl Trace {
    /// Plays a schedule.
    pub(crate) fn new(episode: &Episode<'_>, actions: Schedule) -> Self {
        let mut trace = Self {
            lanes: vec![episode.opening; actions.len() + 1],
            bills: vec![Bill::default(); actions.len()],
            actions,
            total: Bill::default(),
        };
        trace.replay(episode, 0);
        trace
    }

    /// Minutes.
    pub(crate) fn len(&self) -> usize {
        self.actions.len()
    }

    /// Dollars of the whole shift.
    pub(crate) fn usd(&self, episode: &Episode<'_>) -> f64 {
        episode.total_usd(self.total)
    }

    /// Plays from a minute on, to the end or until nothing differs any more.
    fn replay(&mut self, episode: &Episode<'_>, from: usize) {
        self.replay_at_least(episode, from, self.len());
    }

    fn replay_at_least(&mut self, episode: &Episode<'_>, from: usize, until: usize) {
        let mut lane = self.lanes[from];
        for t in from..self.len() {
            self.bills[t] = episode.play(&mut lane, &self.actions[t]);
            let same = t + 1 >= until && same_future(&lane, &self.lanes[t + 1]);
            self.lanes[t + 1] = lane;
            if same {
                break;
            }
        }
        self.total = self.bills.iter().fold(Bill::default(), |mut sum, bill| {
            sum.add(*bill);
            sum
        });
    }

    /// What a minute cost.
    pub(crate) fn bill(&self, t: usize) -> Bill {
        self.bills[t]
    }

    /// The bill of the shift with other dials from minute `from` on: as many as given, then those
    /// that stand. Plays only until nothing differs any more.
    pub(crate) fn try_change(&self, episode: &Episode<'_>, from: usize, new: &[Action]) -> Bill {
        let mut lane = self.lanes[from];
        let mut total = self.total;
        for t in from..self.len() {
            let action = new.get(t - from).unwrap_or(&self.actions[t]);
            let bill = episode.play(&mut lane, action);
            total.usd += bill.usd - self.bills[t].usd;
            total.burned += bill.burned - self.bills[t].burned;
            if t + 1 >= from + new.len() && same_future(&lane, &self.lanes[t + 1]) {
                break;
            }
        }
        total
    }

    /// Takes a change.
    pub(crate) fn change(&mut self, episode: &Episode<'_>, from: usize, new: &[Action]) {
        self.actions[from..from + new.len()].copy_from_slice(new);
        self.replay_at_least(episode, from, from + new.len());
    }
}
