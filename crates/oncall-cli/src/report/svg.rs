//! Axes, panels and paths: numbers to SVG, nothing about scenarios.

use crate::output::short;
use std::fmt::Write as _;

/// Width of a drawing, in its own units.
pub(super) const WIDTH: f64 = 1000.0;
/// Room for the labels of the vertical axes.
pub(super) const LEFT: f64 = 62.0;
const RIGHT: f64 = 10.0;
/// Height of a panel's title line.
const TITLE: f64 = 24.0;
const GAP: f64 = 10.0;

/// Text with the characters of markup escaped.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            c => safe.push(c),
        }
    }
    safe
}

/// A vertical axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    log: bool,
}

impl Axis {
    /// A linear axis over all values, its ends on round numbers.
    pub(super) fn linear(values: impl IntoIterator<Item = f64>, low: Option<f64>) -> Self {
        let (mut min, mut max) = (low.unwrap_or(f64::INFINITY), f64::NEG_INFINITY);
        for value in values.into_iter().filter(|value| value.is_finite()) {
            (min, max) = (min.min(value), max.max(value));
        }
        if !min.is_finite() || !max.is_finite() {
            (min, max) = (0.0, 1.0);
        }
        if max - min < 1e-9 {
            max = min + 1.0;
        }
        let step = round_step((max - min) / 3.0);
        let low = if low == Some(min) { min } else { (min / step).floor() * step };
        Self { low, high: (max / step - 1e-9).ceil() * step, log: false }
    }

    /// An axis from `low` to `high`.
    pub(super) fn between(low: f64, high: f64) -> Self {
        Self { low, high, log: false }
    }

    /// A logarithmic axis from a power of ten to the next one above all values. Values below its
    /// lower end are drawn there.
    pub(super) fn log(values: impl IntoIterator<Item = f64>, low: f64, high_min: f64) -> Self {
        let max = values.into_iter().filter(|value| value.is_finite()).fold(high_min, f64::max);
        Self { low, high: 10_f64.powf((max.log10() - 1e-9).ceil()), log: true }
    }

    /// Share of the height at which a value lies, from below; outside values at the ends.
    pub(super) fn share(self, value: f64) -> f64 {
        let share = if self.log {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        share.clamp(0.0, 1.0)
    }

    pub(super) fn ticks(self) -> Vec<(f64, String)> {
        let mut ticks = Vec::new();
        if self.log {
            let mut value = self.low;
            while value <= self.high * 1.000_001 {
                ticks.push((value, short(value, 6)));
                value *= 10.0;
            }
            return ticks;
        }
        let step = round_step((self.high - self.low) / 3.0);
        let mut value = (self.low / step - 1e-9).ceil() * step;
        while value <= self.high + 1e-9 * step {
            ticks.push((value, short(value, 3)));
            value += step;
        }
        ticks
    }
}

/// The next of 1, 2, 2.5, 5, 10 times a power of ten that is at least `step`.
fn round_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    let round = [1.0, 2.0, 2.5, 5.0].into_iter().find(|round| round * power >= step * 0.999_999);
    round.unwrap_or(10.0) * power
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// A line through the middles of the minutes.
    Line,
    /// A value holds for its minute.
    Steps,
    /// The room between a line and the bottom.
    Area,
}

/// One series of a panel.
#[derive(Debug)]
pub(super) struct Series {
    /// Class of the style sheet, such as `p0`.
    pub(super) class: String,
    /// Shown when the pointer rests on it.
    pub(super) title: String,
    pub(super) shape: Shape,
    pub(super) values: Vec<f64>,
}

/// What is shown of each minute in the same way in every panel. Where a world is stepped faster, a
/// "minute" of this module is such a step.
#[derive(Debug, Clone)]
pub(super) struct Time {
    pub(super) minutes: usize,
    /// Steps of the world in a minute of the clock.
    pub(super) steps_a_min: usize,
    /// Clock at the start, hours; `None` where the world has no clock.
    pub(super) start_h: Option<f64>,
    /// Minutes and names of what happened.
    pub(super) events: Vec<(usize, String)>,
}

impl Time {
    fn x(&self, minute: f64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * minute / self.minutes.max(1) as f64
    }

    /// Minutes between the vertical lines.
    fn step(&self) -> usize {
        let steps = [5, 10, 15, 30, 60, 120, 240, 720, 1440];
        let minutes = self.minutes / self.steps_a_min;
        self.steps_a_min * steps.into_iter().find(|step| minutes / step <= 12).unwrap_or(2880)
    }

    fn marks(&self) -> impl Iterator<Item = usize> + use<> {
        (0..=self.minutes).step_by(self.step())
    }

    fn label(&self, minute: usize) -> String {
        let minute = minute / self.steps_a_min;
        let Some(start_h) = self.start_h else { return minute.to_string() };
        let clock = (start_h * 60.0 + minute as f64).round() as u64 % 1440;
        format!("{:02}:{:02}", clock / 60, clock % 60)
    }
}

/// A drawing that grows downwards, panel by panel, all with the same time.
#[derive(Debug)]
pub(super) struct Drawing<'a> {
    time: &'a Time,
    body: String,
    height: f64,
}

impl<'a> Drawing<'a> {
    pub(super) fn new(time: &'a Time) -> Self {
        Self { time, body: String::new(), height: 0.0 }
    }

    /// The title line of a panel; returns where its plot begins.
    fn title(&mut self, title: &str) -> f64 {
        let y = self.height + TITLE - 8.0;
        let _ = writeln!(
            self.body,
            r#"<text class="title" x="{LEFT}" y="{y:.1}">{}</text>"#,
            escape(title)
        );
        self.height + TITLE
    }

    /// Frame, vertical lines and events of a plot.
    fn frame(&mut self, top: f64, height: f64) {
        let bottom = top + height;
        for minute in self.time.marks() {
            let x = self.time.x(minute as f64);
            let _ = writeln!(self.body, r#"<path class="grid" d="M{x:.1} {top:.1}V{bottom:.1}"/>"#);
        }
        for (minute, name) in &self.time.events {
            let x = self.time.x(*minute as f64);
            let _ = writeln!(
                self.body,
                r#"<path class="event" d="M{x:.1} {top:.1}V{bottom:.1}"><title>{}, minute {}</title></path>"#,
                escape(name),
                minute / self.time.steps_a_min
            );
        }
    }

    /// A panel of series over an axis, with horizontal lines at `lines`.
    pub(super) fn panel(
        &mut self,
        title: &str,
        height: f64,
        axis: Axis,
        series: &[Series],
        lines: &[f64],
    ) {
        let top = self.title(title);
        self.frame(top, height);
        let y = |value: f64| top + height * (1.0 - axis.share(value));
        let right = WIDTH - RIGHT;
        for (value, label) in axis.ticks() {
            let y = y(value);
            let _ = writeln!(
                self.body,
                r#"<path class="grid" d="M{LEFT} {y:.1}H{right}"/><text class="tick" x="{:.1}" y="{:.1}">{label}</text>"#,
                LEFT - 6.0,
                y + 4.0
            );
        }
        for &value in lines {
            let _ =
                writeln!(self.body, r#"<path class="line" d="M{LEFT} {:.1}H{right}"/>"#, y(value));
        }
        for series in series {
            let path = self.path(series, y, top + height);
            let _ = writeln!(
                self.body,
                r#"<path class="{}" d="{path}"><title>{}</title></path>"#,
                series.class,
                escape(&series.title)
            );
        }
        self.height = top + height + GAP;
    }

    fn path(&self, series: &Series, y: impl Fn(f64) -> f64, bottom: f64) -> String {
        let mut path = String::new();
        let values = &series.values;
        if series.shape == Shape::Steps {
            let mut last = None;
            for (minute, &value) in values.iter().enumerate() {
                let here = format!("{:.1}", y(value));
                if last.as_ref() == Some(&here) {
                    continue;
                }
                let x = self.time.x(minute as f64);
                let _ = match last {
                    None => write!(path, "M{x:.1} {here}"),
                    Some(_) => write!(path, "H{x:.1}V{here}"),
                };
                last = Some(here);
            }
            let _ = write!(path, "H{:.1}", self.time.x(values.len() as f64));
            return path;
        }
        for (minute, &value) in values.iter().enumerate() {
            let command = if minute == 0 { 'M' } else { 'L' };
            let x = self.time.x(minute as f64 + 0.5);
            let _ = write!(path, "{command}{x:.1} {:.1}", y(value));
        }
        if series.shape == Shape::Area && !values.is_empty() {
            let (first, last) = (self.time.x(0.5), self.time.x(values.len() as f64 - 0.5));
            let _ = write!(path, "L{last:.1} {bottom:.1}L{first:.1} {bottom:.1}Z");
        }
        path
    }

    /// A lane for each row of a group: bars where something was on.
    pub(super) fn lanes(&mut self, title: &str, rows: &[(String, String, Vec<bool>)]) {
        const LANE: f64 = 9.0;
        let top = self.title(title);
        let height = LANE * rows.len() as f64 + 3.0;
        self.frame(top, height);
        for (index, (class, name, on)) in rows.iter().enumerate() {
            let y = top + 2.0 + LANE * index as f64;
            let right = WIDTH - RIGHT;
            let mid = y + LANE / 2.0 - 1.0;
            let _ = writeln!(self.body, r#"<path class="grid" d="M{LEFT} {mid:.1}H{right}"/>"#);
            for (from, to) in runs(on) {
                let (x, end) = (self.time.x(from as f64), self.time.x(to as f64));
                let _ = writeln!(
                    self.body,
                    r#"<rect class="bar {class}" x="{x:.1}" y="{y:.1}" width="{:.1}" height="{:.1}"><title>{}: minutes {from} to {}</title></rect>"#,
                    (end - x).max(2.0),
                    LANE - 2.0,
                    escape(name),
                    to - 1
                );
            }
        }
        self.height = top + height + GAP;
    }

    /// The horizontal axis, with the names of the events above it if `events`.
    pub(super) fn clock(&mut self, events: bool) {
        if events && !self.time.events.is_empty() {
            let y = self.height + 16.0;
            let mut free = LEFT;
            for (minute, name) in &self.time.events {
                // About 6.5 units a letter; a label moves right rather than over another one.
                let width = 6.5 * name.chars().count() as f64;
                let x = self.time.x(*minute as f64).max(free).min(WIDTH - RIGHT - width);
                free = x + width + 12.0;
                let _ = writeln!(
                    self.body,
                    r#"<text class="happened" x="{x:.1}" y="{y:.1}">▾ {}</text>"#,
                    escape(name)
                );
            }
            self.height += 20.0;
        }
        let y = self.height + 14.0;
        for minute in self.time.marks() {
            let label = self.time.label(minute);
            let x = self.time.x(minute as f64).min(WIDTH - 18.0);
            let _ =
                writeln!(self.body, r#"<text class="clock" x="{x:.1}" y="{y:.1}">{label}</text>"#);
        }
        self.height += 22.0;
    }

    /// The finished drawing.
    pub(super) fn svg(self, label: &str) -> String {
        format!(
            "<svg viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" aria-label=\"{}\">\n{}</svg>\n",
            self.height,
            escape(label),
            self.body
        )
    }
}

/// Runs of true as (first, one beyond the last).
fn runs(on: &[bool]) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (index, _) in on.iter().enumerate().filter(|(_, on)| **on) {
        match runs.last_mut() {
            Some(run) if run.1 == index => run.1 += 1,
            _ => runs.push((index, index + 1)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_round_ends_and_few_ticks() {
        let axis = Axis::linear([3.0, 1153.0], Some(0.0));
        assert_eq!((axis.low, axis.high), (0.0, 1500.0));
        assert_eq!(
            axis.ticks().iter().map(|t| t.1.as_str()).collect::<Vec<_>>(),
            ["0", "500", "1000", "1500"]
        );
        let axis = Axis::linear([-0.5, 0.4], None);
        assert!(axis.low <= -0.5 && axis.high >= 0.4 && axis.ticks().len() <= 6);
        let axis = Axis::log([0.0, 340.0], 0.1, 10.0);
        assert_eq!(axis.ticks().len(), 5);
        let ticks: Vec<String> =
            Axis::log([0.1], 1e-4, 0.01).ticks().into_iter().map(|tick| tick.1).collect();
        assert_eq!(ticks, ["0.0001", "0.001", "0.01", "0.1"]);
        assert_eq!([0.0, 0.1, 10.0, 1000.0, 1e9].map(|x| axis.share(x)), [0.0, 0.0, 0.5, 1.0, 1.0]);
        // Nothing to draw is no reason to divide by zero.
        for axis in [
            Axis::linear([], None),
            Axis::linear([2.0, 2.0], None),
            Axis::linear([f64::NAN], Some(0.0)),
        ] {
            assert!(axis.high > axis.low && axis.ticks().len() > 1);
        }
    }

    #[test]
    fn runs_join_neighbours() {
        assert_eq!(runs(&[true, true, false, true]), [(0, 2), (3, 4)]);
        assert!(runs(&[false]).is_empty());
    }

    #[test]
    fn steps_skip_what_does_not_move() {
        let time = Time {
            minutes: 4,
            steps_a_min: 1,
            start_h: Some(23.5),
            events: vec![(1, "a < b".into())],
        };
        let mut drawing = Drawing::new(&time);
        let values = vec![1.0, 1.0, 1.0, 2.0];
        let series = Series { class: "p0".into(), title: "t".into(), shape: Shape::Steps, values };
        drawing.panel("x", 10.0, Axis::between(0.0, 2.0), &[series], &[]);
        drawing.clock(true);
        let text = drawing.svg("label");
        assert!(text.contains(r#"d="M62.0 29.0H758.0V24.0H990.0""#), "{text}");
        assert!(text.contains("a &lt; b"));
        assert_eq!([0, 40].map(|minute| time.label(minute)), ["23:30", "00:10"]);
        let fast = Time { minutes: 360, steps_a_min: 6, start_h: None, events: Vec::new() };
        assert_eq!((fast.step(), fast.label(90)), (30, "15".to_owned()));
    }
}
