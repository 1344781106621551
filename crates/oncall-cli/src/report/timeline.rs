//! Which readouts and dials an episode's drawing shows, and how.

use super::Recording;
use super::svg::{Axis, Drawing, Series, Shape, Time};
use crate::output::short;
use oncall_core::{DialKind, Spec};
use std::fmt::Write as _;

/// How the axis of a panel is chosen.
#[derive(Debug, Clone, Copy)]
enum Range {
    /// From zero to the highest value.
    FromZero,
    /// Over all values.
    Free,
    /// 0 to 1.
    Share,
    /// Logarithmic, from the first to at least the second.
    Log(f64, f64),
}

/// One panel of readouts.
struct Panel {
    title: &'static str,
    /// A signal that is the same for all policies, drawn behind them.
    backdrop: Option<&'static str>,
    signal: &'static str,
    /// A second signal, added to the first and drawn dotted.
    on_top: Option<&'static str>,
    shape: Shape,
    range: Range,
    lines: &'static [f64],
}

const fn panel(title: &'static str, signal: &'static str, range: Range) -> Panel {
    Panel { title, backdrop: None, signal, on_top: None, shape: Shape::Line, range, lines: &[] }
}

/// The panels of discovery, from cause to effect.
const DISCOVERY: &[Panel] = &[
    panel("READY instances of region 0, share of the target", "ready_share_r0", Range::Free),
    panel("Failed probes in region 0, share", "probe_failure_share_r0", Range::FromZero),
    panel("UNHEALTHY instances, share of the target", "unhealthy_share", Range::FromZero),
    panel(
        "Write latency p99 in region 0, ms (logarithmic)",
        "write_latency_ms_p99_r0",
        Range::Log(1.0, 100.0),
    ),
    panel("Connected proxies of region 0", "connected_share_r0", Range::Share),
    panel(
        "Delay in the queues of region 0's relays p99, ms (logarithmic)",
        "relay_queue_ms_p99_r0",
        Range::Log(1.0, 100.0),
    ),
    panel("Age of the oldest view, s (logarithmic)", "snapshot_age_s_max", Range::Log(1.0, 60.0)),
    Panel {
        lines: &[3.0],
        ..panel(
            "Withdrawals of ten minutes, p99 s to the last request (3 is the objective)",
            "withdrawal_s_p99",
            Range::FromZero,
        )
    },
    Panel {
        lines: &[15.0],
        ..panel(
            "Silent deaths of ten minutes, p99 s to the last route (15 is the objective)",
            "removal_s_p99",
            Range::FromZero,
        )
    },
    Panel {
        lines: &[1.0],
        ..panel(
            "Burn of five minutes: failed requests over the budget (logarithmic)",
            "burn_5min",
            Range::Log(0.01, 10.0),
        )
    },
    panel("Budget of failed requests left, share of the month's", "budget_left", Range::Free),
];

/// The panels of a world.
fn panels(spec: &Spec) -> &'static [Panel] {
    if spec.world == "discovery" { DISCOVERY } else { PANELS }
}

/// The panels of the fleet, from cause to effect.
const PANELS: &[Panel] = &[
    Panel {
        backdrop: Some("offered_rps"),
        ..panel("Requests per second: offered (grey) and admitted", "admitted_rps", Range::FromZero)
    },
    Panel {
        on_top: Some("booting"),
        shape: Shape::Steps,
        ..panel("Instances: serving, and with those that boot (dotted)", "serving", Range::FromZero)
    },
    panel("Utilisation of the fleet", "utilization", Range::Share),
    panel("Cache hits", "cache_hit", Range::Share),
    Panel {
        lines: &[1.0],
        ..panel(
            "Database load over capacity (1 is saturated; logarithmic)",
            "db_utilization",
            Range::Log(0.01, 1.0),
        )
    },
    panel("Latency p99, ms (logarithmic)", "p99_ms", Range::Log(100.0, 1000.0)),
    panel(
        "Errors, share of the admitted requests (logarithmic)",
        "error_rate",
        Range::Log(0.000_1, 0.01),
    ),
    Panel {
        lines: &[1.0],
        ..panel(
            "Burn: errors over what the budget allows (1 lasts the month; logarithmic)",
            "burn",
            Range::Log(0.1, 10.0),
        )
    },
    panel("Error budget left, share of the month's", "budget_left", Range::Free),
];

const HEIGHT: f64 = 96.0;
const DIAL_HEIGHT: f64 = 52.0;

/// Class of the policy at an index.
pub(super) fn class(index: usize) -> String {
    format!("p{index}")
}

/// The drawing of one episode, all policies over one another.
pub(super) fn draw(spec: &Spec, recordings: &[Recording], label: &str) -> String {
    let time = time(spec, recordings);
    let mut drawing = Drawing::new(&time);
    drawing.clock(true);
    for panel in panels(spec) {
        draw_panel(&mut drawing, spec, recordings, panel);
    }
    draw_dollars(&mut drawing, recordings);
    drawing.clock(false);
    draw_lanes(&mut drawing, spec, recordings);
    draw_dials(&mut drawing, spec, recordings);
    drawing.clock(false);
    drawing.svg(label)
}

fn time(spec: &Spec, recordings: &[Recording]) -> Time {
    let minutes = recordings.iter().map(|recording| recording.minutes).max().unwrap_or(0);
    // The readout is the clock at the end of the minute.
    let clock = recordings.first().and_then(|recording| recording.signal(spec, "time_of_day_h"));
    let start_h = clock.and_then(|clock| clock.first().map(|end| (end + 24.0 - 1.0 / 60.0) % 24.0));
    let events = recordings.first().map_or_else(Vec::new, |recording| events(spec, recording));
    Time { minutes, steps_a_min: (60 / spec.tick_s).max(1) as usize, start_h, events }
}

/// What happened to all policies alike, read off one recording.
fn events(spec: &Spec, recording: &Recording) -> Vec<(usize, String)> {
    let mut events = Vec::new();
    let mut find = |signal: &str, name: &str, happens: &dyn Fn(&[f64], usize) -> bool| {
        let values = recording.signal(spec, signal).unwrap_or_default();
        let minutes = (0..values.len()).filter(|&minute| happens(&values, minute));
        events.extend(minutes.map(|minute| (minute, name.to_owned())));
    };
    let rises = |values: &[f64], i: usize| i > 0 && values[i] > values[i - 1] + 1e-9;
    find("surge_factor", "surge", &|values, i| {
        rises(values, i) && !(i > 1 && rises(values, i - 1))
    });
    find("since_deploy_min", "new build", &|values, i| {
        if i == 0 { values[0] < 1.5 } else { values[i] < values[i - 1] }
    });
    find("cache_warmth", "cache flushed", &|values, i| {
        values[i] == 0.0 && (i == 0 || values[i - 1] > 0.0)
    });
    find("truth_to_onset_min", "onset", &|values, i| {
        values[i] <= 0.0 && i > 0 && values[i - 1] > 0.0
    });
    events.sort_by_key(|event| event.0);
    events
}

fn draw_panel(drawing: &mut Drawing<'_>, spec: &Spec, recordings: &[Recording], panel: &Panel) {
    let mut series = Vec::new();
    let backdrop = panel.backdrop.zip(recordings.first());
    if let Some(values) = backdrop.and_then(|(signal, first)| first.signal(spec, signal)) {
        series.push(Series {
            class: "backdrop".into(),
            title: String::new(),
            shape: Shape::Area,
            values,
        });
    }
    for (index, recording) in recordings.iter().enumerate() {
        let Some(values) = recording.signal(spec, panel.signal) else { return };
        let title = recording.policy.clone();
        if let Some(more) = panel.on_top.and_then(|signal| recording.signal(spec, signal)) {
            let values: Vec<f64> = values.iter().zip(&more).map(|(a, b)| a + b).collect();
            let class = format!("{} dotted", class(index));
            series.push(Series { class, title: title.clone(), shape: panel.shape, values });
        }
        series.push(Series { class: class(index), title, shape: panel.shape, values });
    }
    let values = series.iter().flat_map(|series| series.values.iter().copied());
    let axis = match panel.range {
        Range::FromZero => Axis::linear(values, Some(0.0)),
        Range::Free => Axis::linear(values, None),
        Range::Share => Axis::between(0.0, 1.0),
        Range::Log(low, high_min) => Axis::log(values, low, high_min),
    };
    drawing.panel(panel.title, HEIGHT, axis, &series, panel.lines);
}

/// The reward, added up: the sooner a line bends down, the dearer was that minute.
fn draw_dollars(drawing: &mut Drawing<'_>, recordings: &[Recording]) {
    let series: Vec<Series> = (recordings.iter().enumerate())
        .map(|(index, recording)| {
            let mut sum = 0.0;
            let values = recording.rewards.iter().map(|reward| {
                sum += reward;
                sum
            });
            let values = values.collect();
            let title = recording.policy.clone();
            Series { class: class(index), title, shape: Shape::Line, values }
        })
        .collect();
    let values = series.iter().flat_map(|series| series.values.iter().copied());
    let axis = Axis::linear(values.chain([0.0]), None);
    drawing.panel("Dollars so far (the return)", 1.4 * HEIGHT, axis, &series, &[0.0]);
}

/// A lane for each policy of whatever was ever on: the pager, switches off their default, presses.
fn draw_lanes(drawing: &mut Drawing<'_>, spec: &Spec, recordings: &[Recording]) {
    let mut group = |title: &str, on: &dyn Fn(&Recording) -> Vec<bool>| {
        let rows: Vec<(String, String, Vec<bool>)> = (recordings.iter().enumerate())
            .map(|(index, recording)| (class(index), recording.policy.clone(), on(recording)))
            .collect();
        if rows.iter().any(|(_, _, on)| on.contains(&true)) {
            drawing.lanes(title, &rows);
        }
    };
    group("The pager rings", &|recording| {
        recording.signal(spec, "page").unwrap_or_default().iter().map(|&x| x > 0.5).collect()
    });
    for (index, dial) in spec.dials.iter().enumerate() {
        match dial.kind {
            DialKind::Switch => {
                let state = if dial.default > 0.5 { "off" } else { "on" };
                group(&format!("{}: {state}", dial.label), &|recording| {
                    let values = recording.dial(spec, index);
                    values.iter().map(|&x| (x > 0.5) != (dial.default > 0.5)).collect()
                });
            }
            DialKind::Press => group(&format!("{}: runs", dial.label), &|recording| {
                let pressed = recording.action(spec, index);
                let left = recording.signal(spec, &format!("{}_left_min", dial.name));
                let left = left.unwrap_or_else(|| vec![0.0; pressed.len()]);
                pressed.iter().zip(left).map(|(&press, left)| press > 0.5 || left > 0.0).collect()
            }),
            DialKind::Count | DialKind::Real | DialKind::Log => {}
        }
    }
}

/// Whether a dial ever moved, or stood differently for two policies.
fn has_moved(spec: &Spec, recordings: &[Recording], dial: usize) -> bool {
    let mut values = recordings.iter().flat_map(|recording| recording.dial(spec, dial));
    let first = values.next();
    values.any(|value| Some(value) != first)
}

fn is_numeric(kind: DialKind) -> bool {
    matches!(kind, DialKind::Count | DialKind::Real | DialKind::Log)
}

fn draw_dials(drawing: &mut Drawing<'_>, spec: &Spec, recordings: &[Recording]) {
    for (index, dial) in spec.dials.iter().enumerate() {
        if !is_numeric(dial.kind) || !has_moved(spec, recordings, index) {
            continue;
        }
        let series: Vec<Series> = (recordings.iter().enumerate())
            .map(|(policy, recording)| Series {
                class: class(policy),
                title: recording.policy.clone(),
                shape: Shape::Steps,
                values: recording.dial(spec, index),
            })
            .collect();
        let values = series.iter().flat_map(|series| series.values.iter().copied());
        let unit = if dial.unit.is_empty() { String::new() } else { format!(", {}", dial.unit) };
        let title = format!("Dial: {}{unit}", dial.label);
        drawing.panel(&title, DIAL_HEIGHT, Axis::linear(values, Some(0.0)), &series, &[]);
    }
}

/// A sentence about the dials that nobody moved; empty if all moved.
pub(super) fn resting_dials(spec: &Spec, recordings: &[Recording]) -> String {
    let mut text = String::new();
    for (index, dial) in spec.dials.iter().enumerate() {
        if is_numeric(dial.kind) && !has_moved(spec, recordings, index) {
            let value = recordings.first().and_then(|r| r.dial(spec, index).first().copied());
            let separator = if text.is_empty() { "Nobody moved: " } else { ", " };
            let value = short(value.unwrap_or(dial.default), 3);
            let _ = write!(text, "{separator}{} ({value} {})", dial.label, dial.unit);
        }
    }
    text.replace(" )", ")")
}
