//! The search of one episode: rules, dynamic programming, presses, local search, restarts.
//!
//! Stages follow each other in an order that does not depend on the budget, and each one ends with the
//! best schedule so far: a larger budget only adds stages, so it never makes a plan worse.

use crate::episode::{Episode, Schedule, Trace};
use crate::local::{Local, order_after_the_bill};
use crate::seeds::{self, Seed};
use crate::solve::solve;
use crate::table::Table;
use crate::{clairvoyant::Planned, presses};
use oncall_core::streams::Purpose;
use oncall_core::{EpisodeKey, Generator, Split, Stream};
use oncall_fleet::{FleetWorld, dials::index};
use oncall_heuristics::PolicyKey;
use std::ops::Range;

/// How long and from where to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Search {
    /// Minutes of the world that may be played; a stage that has begun is finished. About four million
    /// are a second.
    pub budget_min: u64,
    /// Seed of the restarts.
    pub seed: u64,
}

/// Passes of a stage before it gives up on getting better.
const PASSES: usize = 6;
/// Longest block of a restart, minutes.
const KICK_MIN: usize = 40;
/// Minutes around a restart's block that are searched again.
const AROUND_MIN: usize = 24;

/// The episode that is planned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task<'a> {
    pub(crate) world: &'a FleetWorld,
    pub(crate) scenario: &'a str,
    pub(crate) key: EpisodeKey,
    pub(crate) policy_key: PolicyKey,
}

struct Run<'e, 'p> {
    episode: &'e Episode<'p>,
    table: Table,
    current: Trace,
    /// The best schedule, orders after the bill included.
    best: Trace,
    relaxed_usd: f64,
}

/// What a search comes to.
pub(crate) struct Found {
    /// The best schedule with the floor alone, and the one in which the autoscaler orders as well.
    #[cfg_attr(not(test), expect(dead_code, reason = "a test holds it against brute force"))]
    pub(crate) exact: Trace,
    pub(crate) best: Trace,
    relaxed_usd: f64,
    stages: u64,
    played_min: u64,
}

/// Plans an episode.
pub(crate) fn plan(task: &Task<'_>, search: Search) -> Planned {
    let rules = seeds::play_all(task.world, task.scenario, task.key, task.policy_key);
    let best_rule = rules.iter().max_by(|a, b| a.return_.total_cmp(&b.return_));
    // `hold` is always among them.
    let best_rule = best_rule.expect("there are honest rules");
    finish(task, best_rule, find(task, search, &rules))
}

/// Searches from what the rules did on.
pub(crate) fn find(task: &Task<'_>, search: Search, rules: &[Seed]) -> Found {
    let episode = Episode::of_key(task.world, task.key);
    let schedules = rules.iter().map(|seed| seed.schedule.clone());
    find_from(&episode, task.key, search, schedules)
}

/// Searches the episode from the cheapest of some schedules on.
pub(crate) fn find_from(
    episode: &Episode<'_>,
    key: EpisodeKey,
    search: Search,
    schedules: impl Iterator<Item = Schedule>,
) -> Found {
    let traces = schedules.map(|schedule| Trace::new(episode, schedule));
    let cheapest = |a: &Trace, b: &Trace| a.usd(episode).total_cmp(&b.usd(episode));
    let start = traces.min_by(cheapest).expect("there are honest rules");
    let mut run = Run {
        episode,
        table: Table::new(1.0),
        current: start.clone(),
        best: start,
        relaxed_usd: f64::NEG_INFINITY,
    };
    let mut stages = 0;
    while stages == 0 || episode.played_min() < search.budget_min {
        run.stage(stages, search.seed, key);
        stages += 1;
    }
    let Run { current, best, relaxed_usd, .. } = run;
    Found { exact: current, best, relaxed_usd, stages, played_min: episode.played_min() }
}

/// Scores with the world itself: noise drawn, overdraft as it comes.
fn finish(task: &Task<'_>, rule: &Seed, found: Found) -> Planned {
    let Found { best, relaxed_usd, stages, played_min, .. } = found;
    let return_ = seeds::return_of(task.world, task.key, &best.actions);
    // The two sums differ in their last bits.
    let (schedule, return_) = if return_ >= rule.return_ {
        (best.actions, return_)
    } else {
        (rule.schedule.clone(), rule.return_)
    };
    Planned {
        seed: task.policy_key.seed,
        return_,
        schedule,
        rule: rule.policy,
        rule_return: rule.return_,
        stages,
        played_min,
        relaxed_return: -relaxed_usd,
    }
}

impl Run<'_, '_> {
    fn stage(&mut self, stage: u64, seed: u64, key: EpisodeKey) {
        match stage {
            0 => self.solve(),
            1 => self.press(),
            2 => self.solve_without_presses(),
            3 => self.sweep_all(),
            _ => self.restart(stage, &mut stream(seed, stage, key)),
        }
        let mut polished = self.current.clone();
        order_after_the_bill(self.episode, &mut polished);
        if polished.usd(self.episode) < self.best.usd(self.episode) {
            self.best = polished;
        }
    }

    fn take_if_better(&mut self, trace: Trace) {
        if trace.usd(self.episode) < self.current.usd(self.episode) {
            self.current = trace;
        }
    }

    /// The whole fleet at a stroke; again with dearer errors if the budget does not last.
    fn solve(&mut self) {
        let (found, relaxed_usd) = solve(self.episode, &mut self.table, &self.current);
        self.relaxed_usd = relaxed_usd;
        self.take_if_better(found);
        if self.episode.overdraws(self.current.total) {
            let factor = self.episode.overdraft_factor();
            for factor in [factor, 0.5 * (1.0 + factor)] {
                let mut table = Table::new(factor);
                let (found, _) = solve(self.episode, &mut table, &self.current);
                if found.usd(self.episode) < self.current.usd(self.episode) {
                    (self.current, self.table) = (found, table);
                }
            }
        }
    }

    /// Presses and fleet in turns.
    fn press(&mut self) {
        for _ in 0..PASSES {
            if !presses::sweep(self.episode, &mut self.current) {
                break;
            }
            let (found, relaxed_usd) = solve(self.episode, &mut self.table, &self.current);
            self.relaxed_usd = relaxed_usd;
            self.take_if_better(found);
        }
    }

    /// The same from a schedule in which nothing is pressed: rules press what they must not know.
    fn solve_without_presses(&mut self) {
        let mut actions = self.current.actions.clone();
        if actions.iter().all(|a| a[index::WARM_UP] < 0.5 && a[index::ROLLBACK] < 0.5) {
            return;
        }
        for action in &mut actions {
            (action[index::WARM_UP], action[index::ROLLBACK]) = (0.0, 0.0);
        }
        let kept = (self.current.clone(), self.table.clone(), self.relaxed_usd);
        self.current = Trace::new(self.episode, actions);
        self.solve();
        self.press();
        if kept.0.usd(self.episode) <= self.current.usd(self.episode) {
            (self.current, self.table, self.relaxed_usd) = kept;
        }
    }

    fn local(&mut self, start: Trace, work: impl Fn(&mut Local<'_, '_>)) -> Trace {
        self.table.update(self.episode, &self.current);
        let mut local = Local { episode: self.episode, table: &self.table, trace: start };
        work(&mut local);
        local.trace
    }

    fn sweep_all(&mut self) {
        let whole = 0..self.current.len();
        let trace = self.local(self.current.clone(), |local| {
            local.levels_anywhere(whole.clone());
            for _ in 0..PASSES {
                if !local.sweep(&whole) {
                    break;
                }
            }
        });
        self.current = trace;
    }

    /// Changes something at random and searches around it; keeps what is better.
    fn restart(&mut self, stage: u64, stream: &mut Stream) {
        match stage % 4 {
            0 | 1 => self.restart_fleet(stream),
            2 => self.restart_levels(stream),
            _ => self.restart_presses(stream),
        }
    }

    fn block(&self, stream: &mut Stream) -> Range<usize> {
        let minutes = self.current.len();
        let length = (1 + stream.below(KICK_MIN)).min(minutes);
        let start = stream.below(minutes - length + 1);
        start..start + length
    }

    fn restart_fleet(&mut self, stream: &mut Stream) {
        let block = self.block(stream);
        let step = [-3, -2, -1, 1, 2, 3][stream.below(6)];
        let around = block.start.saturating_sub(AROUND_MIN)
            ..(block.end + AROUND_MIN).min(self.current.len());
        let trace = self.local(self.current.clone(), |local| {
            local.kick(block.clone(), step);
            for _ in 0..PASSES {
                if !local.sweep(&around) {
                    break;
                }
            }
        });
        self.take_if_better(trace);
    }

    /// Searches the levels of a block from scratch.
    fn restart_levels(&mut self, stream: &mut Stream) {
        let block = self.block(stream);
        let trace = self.local(self.current.clone(), |local| local.levels_anywhere(block.clone()));
        self.take_if_better(trace);
    }

    /// Presses or leaves a button somewhere, and solves for the rest.
    fn restart_presses(&mut self, stream: &mut Stream) {
        let places = presses::places(self.episode, &self.current);
        if places.is_empty() {
            return self.restart_fleet(stream);
        }
        let (dial, minute) = places[stream.below(places.len())];
        let mut trace = self.current.clone();
        presses::toggle(self.episode, &mut trace, dial, minute);
        presses::sweep(self.episode, &mut trace);
        let table = self.table.clone();
        let (found, relaxed_usd) = solve(self.episode, &mut self.table, &trace);
        if found.usd(self.episode) < self.current.usd(self.episode) {
            (self.current, self.relaxed_usd) = (found, relaxed_usd);
        } else {
            self.table = table;
        }
    }
}

/// The numbers of a restart; they depend on the episode, so that no two are searched alike.
fn stream(seed: u64, stage: u64, key: EpisodeKey) -> Stream {
    EpisodeKey::new(seed ^ key.bits().0, 0, Split::Train, Generator::Pcg)
        .stream(Purpose::Policy, stage)
}
