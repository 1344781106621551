//! The learning curve as a picture: returns above, how undecided the policy is about each dial below.

use oncall_env::Scenario;
use oncall_eval::score::{Anchors, anchors, reference};
use std::fmt::Write as _;

/// Sizes, pixels.
const WIDTH: f64 = 760.0;
const PANEL: f64 = 220.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 40.0;
const GAP: f64 = 44.0;

/// Of the dials, in order; told apart by people who see few colours as well.
const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#666666", "#000000"];

/// Means over this share of all updates make the line, over twenty at most; dots are single updates.
const SMOOTH_SHARE: usize = 20;
const SMOOTH_MAX: usize = 20;

/// Least distance between two labels, pixels.
const LABEL: f64 = 14.0;

/// Returns that a scenario's score is made of, dollars.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Score 0.
    pub zero: f64,
    /// Score 100.
    pub hundred: f64,
    /// Who gets them.
    pub names: [&'static str; 2],
}

impl Bounds {
    /// Those of a scenario, if they are known.
    pub fn of(scenario: &Scenario) -> Option<Self> {
        let hash = oncall_core::hex(scenario.hash);
        let known =
            |c: &&oncall_eval::score::Constants| c.scenario == scenario.name && c.hash == hash;
        let constants = reference().scenarios.iter().find(known)?;
        let Anchors { zero, hundred, .. } = anchors(scenario.world.spec().world);
        // On the drawing the last word does: the planner, the oracle.
        let names = [zero, hundred.rsplit(' ').next().unwrap_or(hundred)];
        let hundred = constants.hundred.as_ref()?.mean;
        Some(Self { zero: constants.zero.mean, hundred, names })
    }
}

/// What is drawn.
#[derive(Debug, Clone, Copy)]
pub struct Curve<'a> {
    /// Heading.
    pub title: &'a str,
    /// Names of the columns; see [`crate::log::columns`].
    pub columns: &'a [String],
    /// The log, one line an update.
    pub lines: &'a [Vec<f64>],
    /// Returns to compare with.
    pub bounds: Option<Bounds>,
    /// Name and mean return of the rule to beat, dollars.
    pub bar: Option<(&'a str, f64)>,
    /// Mean return of the finished policy, dollars.
    pub final_usd: Option<f64>,
}

/// A named line of a panel, with its colour.
struct Series<'a> {
    name: &'a str,
    colour: &'a str,
    /// Steps and values.
    points: Vec<(f64, f64)>,
}

/// Axes of a panel.
struct Axes {
    top: f64,
    /// Largest number of steps.
    steps: f64,
    low: f64,
    high: f64,
}

impl Curve<'_> {
    /// The picture.
    pub fn svg(&self) -> String {
        let height = TOP + 2.0 * PANEL + 2.0 * GAP;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
             <text x=\"{LEFT}\" y=\"22\" font-size=\"15\">{}</text>\n",
            escaped(self.title)
        );
        self.returns(&mut out);
        self.entropies(&mut out);
        out.push_str("</svg>\n");
        out
    }

    /// Steps and values of a column, where it has a number.
    fn points(&self, name: &str) -> Vec<(f64, f64)> {
        let place = |name: &str| self.columns.iter().position(|column| column == name);
        let (Some(steps), Some(values)) = (place("steps"), place(name)) else {
            return Vec::new();
        };
        let points = self.lines.iter().map(|line| (line[steps], line[values]));
        points.filter(|(_, value)| value.is_finite()).collect()
    }

    fn steps(&self) -> f64 {
        self.points("steps").last().map_or(1.0, |(steps, _)| *steps)
    }

    fn returns(&self, out: &mut String) {
        let dots = self.points("return_usd");
        let [zero, hundred] = self.bounds.map_or([""; 2], |bounds| bounds.names);
        let marks = [
            (zero, self.bounds.map(|bounds| bounds.zero)),
            (hundred, self.bounds.map(|bounds| bounds.hundred)),
            ("finished policy", self.final_usd),
        ];
        let marks = marks.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let marks = marks.chain(self.bar);
        let mut marks: Vec<(&str, f64)> = marks.collect();
        let values = dots.iter().map(|dot| dot.1).chain(marks.iter().map(|mark| mark.1));
        // A policy that is worse than nobody at the dials lies on the lower edge: it may be so by far.
        let floor = self.bounds.map_or(f64::NEG_INFINITY, |bounds| bounds.zero);
        let axes = Axes::around(TOP, self.steps(), values.map(|value| value.max(floor)));
        axes.frame("mean return of ended episodes, dollars", out);
        for &(steps, value) in &dots {
            let (x, y) = axes.place(steps, value);
            let _ =
                writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"1.3\" fill=\"#9cc3dd\"/>");
        }
        axes.line(&Series { name: "", colour: COLOURS[0], points: smoothed(&dots) }, out);
        marks.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut label = f64::NEG_INFINITY;
        for (name, value) in marks {
            let (x, y) = axes.place(axes.steps, value);
            label = (y + 4.0).max(label + LABEL);
            let _ = writeln!(
                out,
                "<path d=\"M{LEFT} {y:.1}H{x:.1}\" stroke=\"#888\" stroke-dasharray=\"5 4\"/>\
                 <text x=\"{:.1}\" y=\"{label:.1}\">{name} {value:.1}</text>",
                x + 6.0
            );
        }
    }

    fn entropies(&self, out: &mut String) {
        let dials = self.columns.iter().filter_map(|column| column.strip_prefix("entropy_"));
        let series: Vec<Series<'_>> = dials
            .zip(COLOURS.iter().cycle())
            .map(|(name, &colour)| Series {
                name,
                colour,
                points: smoothed(&self.points(&format!("entropy_{name}"))),
            })
            .collect();
        let values = series.iter().flat_map(|series| series.points.iter().map(|point| point.1));
        let top = TOP + PANEL + GAP;
        let axes = Axes::around(top, self.steps(), values.chain([0.0]));
        axes.frame("entropy of each dial's choice, nats", out);
        for (row, series) in series.iter().enumerate() {
            axes.line(series, out);
            let (x, y) = (WIDTH - RIGHT + 6.0, top + 12.0 + 17.0 * row as f64);
            let _ = writeln!(
                out,
                "<path d=\"M{x} {:.1}h14\" stroke=\"{}\" stroke-width=\"2\"/>\
                 <text x=\"{}\" y=\"{y:.1}\">{}</text>",
                y - 4.0,
                series.colour,
                x + 20.0,
                escaped(series.name)
            );
        }
    }
}

impl Axes {
    /// Room for all values, and something to show if there is none.
    fn around(top: f64, steps: f64, values: impl Iterator<Item = f64>) -> Self {
        let (low, high) =
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
        let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
        let margin = 0.05 * (high - low).max(1e-3);
        Self { top, steps: steps.max(1.0), low: low - margin, high: high + margin }
    }

    fn place(&self, steps: f64, value: f64) -> (f64, f64) {
        let (right, value) = (WIDTH - RIGHT, value.clamp(self.low, self.high));
        let x = LEFT + (right - LEFT) * steps / self.steps;
        (x, self.top + PANEL * (self.high - value) / (self.high - self.low))
    }

    /// Border, ticks and heading.
    fn frame(&self, heading: &str, out: &mut String) {
        let (right, bottom) = (WIDTH - RIGHT, self.top + PANEL);
        let _ = writeln!(
            out,
            "<text x=\"{LEFT}\" y=\"{}\">{heading}</text>\
             <path d=\"M{LEFT} {}V{bottom}H{right}\" fill=\"none\" stroke=\"black\"/>",
            self.top - 5.0,
            self.top
        );
        for value in ticks(self.low, self.high) {
            let (_, y) = self.place(0.0, value);
            let _ = writeln!(
                out,
                "<path d=\"M{} {y:.1}h4\" stroke=\"black\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{value}</text>",
                LEFT - 4.0,
                LEFT - 7.0,
                y + 4.0
            );
        }
        for millions in ticks(0.0, self.steps / 1e6) {
            let (x, _) = self.place(millions * 1e6, 0.0);
            let _ = writeln!(
                out,
                "<path d=\"M{x:.1} {bottom}v4\" stroke=\"black\"/>\
                 <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{millions} M</text>",
                bottom + 17.0
            );
        }
    }

    fn line(&self, series: &Series<'_>, out: &mut String) {
        let mut path = String::new();
        for &(steps, value) in &series.points {
            let (x, y) = self.place(steps, value);
            let _ = write!(path, "{}{x:.1} {y:.1}", if path.is_empty() { 'M' } else { 'L' });
        }
        let _ = writeln!(
            out,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\"/>",
            series.colour
        );
    }
}

/// Means over the last updates.
fn smoothed(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let window = (points.len() / SMOOTH_SHARE).clamp(1, SMOOTH_MAX);
    let mean = |end: usize| {
        let part = &points[(end + 1).saturating_sub(window)..=end];
        part.iter().map(|point| point.1).sum::<f64>() / part.len() as f64
    };
    points.iter().enumerate().map(|(end, &(steps, _))| (steps, mean(end))).collect()
}

/// Round numbers within a range, four to ten of them.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low).max(1e-9) / 5.0;
    let power = 10_f64.powi(rough.log10().floor() as i32);
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|x| x * power >= rough).unwrap_or(10.0);
    let (first, last) = ((low / step / power).ceil() as i64, (high / step / power).floor() as i64);
    // Rounded, so that 3 * 0.1 is written as 0.3.
    (first..=last).map(|tick| (tick as f64 * step * power * 1e6).round() / 1e6).collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve<'a>(columns: &'a [String], lines: &'a [Vec<f64>]) -> Curve<'a> {
        let bounds = Some(Bounds { zero: -150.0, hundred: -15.0, names: ["hold", "planner"] });
        let bar = Some(("runbook", -26.0));
        Curve { title: "a < b", columns, lines, bounds, bar, final_usd: Some(-25.0) }
    }

    #[test]
    fn points_lie_where_they_belong() {
        let columns = ["steps", "return_usd", "entropy_feature"].map(str::to_owned);
        let lines: Vec<Vec<f64>> = (1..=4)
            .map(f64::from)
            .map(|i| vec![1e6 * i, if i < 2.0 { f64::NAN } else { -160.0 + 35.0 * i }, 0.5])
            .collect();
        let svg = curve(&columns, &lines).svg();
        assert_eq!(svg.matches("<circle").count(), 3, "{svg}");
        // From -150 to -15: -82.5 is half way.
        let axes = Axes::around(0.0, 4e6, [-150.0, -15.0].into_iter());
        let (x, y) = axes.place(2e6, -82.5);
        assert!((x - (LEFT + WIDTH - RIGHT) / 2.0).abs() < 1e-9 && (y - PANEL / 2.0).abs() < 1e-9);
        assert!(svg.contains("a &lt; b") && svg.contains("hold -150.0"), "{svg}");
        assert!(svg.contains("runbook -26.0") && svg.contains("finished policy -25.0"), "{svg}");
        assert!(svg.contains(">feature<") && svg.contains(">4 M<"), "{svg}");
        assert!(!svg.contains("NaN"), "{svg}");
    }

    #[test]
    fn an_empty_log_is_drawn() {
        let columns = ["steps", "return_usd"].map(str::to_owned);
        let empty = Curve { bounds: None, bar: None, final_usd: None, ..curve(&columns, &[]) };
        let svg = empty.svg();
        assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks(0.0, 4.2), [0.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(ticks(-0.02, 0.71), [0.0, 0.2, 0.4, 0.6]);
        assert_eq!(ticks(-157.0, -8.0), [-150.0, -100.0, -50.0]);
    }

    #[test]
    fn means_are_of_the_last_updates() {
        let line = |count: i32| -> Vec<(f64, f64)> {
            smoothed(&(0..count).map(|i| (f64::from(i), f64::from(i))).collect::<Vec<_>>())
        };
        let few = line(19);
        assert_eq!((few[0].1, few[18].1), (0.0, 18.0));
        let many = line(1000);
        assert_eq!((many[0].1, many[3].1, many[999].1), (0.0, 1.5, 989.5));
    }
}
