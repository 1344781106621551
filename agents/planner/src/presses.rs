//! The minutes of the presses: warm-ups and rollbacks are added, removed and moved while it pays.

use crate::episode::{Action, Bill, Episode, Trace, same_future};
use crate::level::{GAIN_MIN_USD, Level, Steps, cheapest};
use oncall_fleet::dials::index;

const STEPS: Steps = Steps { first: 0.16, halvings: 3 };
/// A cache that is warmer than this needs no warm-up.
const WARM: f64 = 0.995;
/// Minutes by which a press is moved.
const MOVES_MIN: [isize; 6] = [-1, 1, -2, 2, -4, 4];
/// Minutes after the begin of a deploy in which a rollback is tried.
const ROLLBACK_TRIES_MIN: usize = 8;

/// One pass over all presses; whether it helped.
pub(crate) fn sweep(episode: &Episode<'_>, trace: &mut Trace) -> bool {
    let warm_up = sweep_dial(episode, trace, index::WARM_UP);
    let rollback = sweep_dial(episode, trace, index::ROLLBACK);
    warm_up || rollback
}

fn sweep_dial(episode: &Episode<'_>, trace: &mut Trace, dial: usize) -> bool {
    let mut improved = false;
    for t in 0..trace.len() {
        if trace.actions[t][dial] > 0.5 {
            improved |= take_if_better(episode, trace, dial, &[(t, false)]);
            for by in MOVES_MIN {
                let Some(to) = t.checked_add_signed(by).filter(|&to| to < trace.len()) else {
                    continue;
                };
                if trace.actions[t][dial] > 0.5 && trace.actions[to][dial] < 0.5 {
                    improved |= take_if_better(episode, trace, dial, &[(t, false), (to, true)]);
                }
                improved |= shift_later_ones(episode, trace, dial, t, by);
            }
        } else if worth_a_try(episode, trace, dial, t) {
            improved |= take_if_better(episode, trace, dial, &[(t, true)]);
        }
    }
    improved
}

/// Moves this press and all later ones of the dial together: warm-ups come in chains.
fn shift_later_ones(
    episode: &Episode<'_>,
    trace: &mut Trace,
    dial: usize,
    from: usize,
    by: isize,
) -> bool {
    let pressed = (from..trace.len()).filter(|&t| trace.actions[t][dial] > 0.5);
    let pressed: Vec<usize> = pressed.collect();
    if pressed.first() != Some(&from) || pressed.len() < 2 {
        return false;
    }
    let moved = pressed.iter().filter_map(|t| t.checked_add_signed(by));
    let moved = moved.filter(|&t| t < trace.len()).map(|t| (t, true));
    let changes: Vec<(usize, bool)> = pressed.iter().map(|&t| (t, false)).chain(moved).collect();
    take_if_better(episode, trace, dial, &changes)
}

/// Where a button is pressed or might be: (dial, minute).
pub(crate) fn places(episode: &Episode<'_>, trace: &Trace) -> Vec<(usize, usize)> {
    let both = [index::WARM_UP, index::ROLLBACK].into_iter();
    both.flat_map(|dial| (0..trace.len()).map(move |t| (dial, t)))
        .filter(|&(dial, t)| trace.actions[t][dial] > 0.5 || worth_a_try(episode, trace, dial, t))
        .collect()
}

/// Presses what was not pressed in a minute, or the reverse, whatever it costs.
pub(crate) fn toggle(episode: &Episode<'_>, trace: &mut Trace, dial: usize, minute: usize) {
    let on = trace.actions[minute][dial] < 0.5;
    let (from, actions, _) = pressed(episode, trace, dial, &[(minute, on)]);
    trace.change(episode, from, &actions);
}

fn worth_a_try(episode: &Episode<'_>, trace: &Trace, dial: usize, t: usize) -> bool {
    if dial == index::WARM_UP {
        return trace.lanes[t].warm_up_left_min == 0 && trace.lanes[t + 1].warmth < WARM;
    }
    let minute = episode.opening.minute as usize + t;
    let numbers = &episode.opening.numbers;
    let just_begun = numbers.deploys.iter().any(|deploy| {
        let begin = deploy.minute as usize;
        (begin..begin + ROLLBACK_TRIES_MIN).contains(&minute)
    });
    let live = trace.lanes[t + 1].seen.bad_build_truth > 0.0;
    (just_begun || live && t.is_multiple_of(4)) && trace.lanes[t].rollback_left_min == 0
}

fn take_if_better(
    episode: &Episode<'_>,
    trace: &mut Trace,
    dial: usize,
    changes: &[(usize, bool)],
) -> bool {
    let (from, actions, total) = pressed(episode, trace, dial, changes);
    let better = episode.total_usd(total) < trace.usd(episode) - GAIN_MIN_USD;
    if better {
        trace.change(episode, from, &actions);
    }
    better
}

/// The schedule with other presses: from the first of them on, every minute gets the level that is
/// cheapest in it, until nothing differs any more. A later change of the same minute wins.
fn pressed(
    episode: &Episode<'_>,
    trace: &Trace,
    dial: usize,
    changes: &[(usize, bool)],
) -> (usize, Vec<Action>, Bill) {
    let from = changes.iter().map(|(t, _)| *t).min().unwrap_or(0);
    let last = changes.iter().map(|(t, _)| *t).max().unwrap_or(0);
    let mut lane = trace.lanes[from];
    let mut total = trace.total;
    let mut actions = Vec::new();
    for t in from..trace.len() {
        let mut action = trace.actions[t];
        for (_, on) in changes.iter().filter(|(minute, _)| *minute == t) {
            action[dial] = f64::from(u8::from(*on));
        }
        let differs = action != trace.actions[t] || !same_future(&lane, &trace.lanes[t]);
        if differs {
            let mut cost = |level: &Level| {
                let (mut lane, mut action) = (lane, action);
                level.set(&mut action);
                episode.play(&mut lane, &action).usd
            };
            cheapest(Level::of(&action), STEPS, &mut cost).0.set(&mut action);
        }
        let bill = episode.play(&mut lane, &action);
        let before = trace.bill(t);
        total.add(Bill { usd: bill.usd - before.usd, burned: bill.burned - before.burned });
        actions.push(action);
        if t >= last && same_future(&lane, &trace.lanes[t + 1]) {
            break;
        }
    }
    (from, actions, total)
}
