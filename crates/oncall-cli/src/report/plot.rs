//! A small plot over two axes: lines, bands, levels.

use super::svg::{Axis, escape};
use std::fmt::Write as _;

const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 236.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 10.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 40.0;

/// A plot that is drawn layer by layer.
#[derive(Debug)]
pub(super) struct Plot {
    x: Axis,
    y: Axis,
    body: String,
    /// Heights at which levels already have their names.
    named: Vec<f64>,
}

impl Plot {
    /// The frame. The title stands above, the names of the axes below and in front of the title.
    pub(super) fn new(title: &str, (x, x_name): (Axis, &str), y: Axis) -> Self {
        let mut plot = Self { x, y, body: String::new(), named: Vec::new() };
        plot.text("title", [LEFT, 16.0], title);
        for (value, label) in y.ticks() {
            let [_, at] = plot.place([0.0, value]);
            plot.path("grid", &format!("M{LEFT} {at:.1}H{:.1}", WIDTH - RIGHT), "");
            plot.text("tick", [LEFT - 6.0, at + 4.0], &label);
        }
        let bottom = HEIGHT - BOTTOM;
        for (value, label) in x.ticks() {
            let [at, _] = plot.place([value, 0.0]);
            plot.path("grid", &format!("M{at:.1} {TOP}V{bottom}"), "");
            plot.text("clock", [at, bottom + 15.0], &label);
        }
        plot.text("clock", [f64::midpoint(LEFT, WIDTH - RIGHT), HEIGHT - 8.0], x_name);
        plot
    }

    /// Where a point lies; outside of the axes on their edge.
    fn place(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        [
            LEFT + (WIDTH - LEFT - RIGHT) * self.x.share(x),
            TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - self.y.share(y)),
        ]
    }

    fn text(&mut self, class: &str, [x, y]: [f64; 2], text: &str) {
        let text = escape(text);
        let _ = writeln!(self.body, r#"<text class="{class}" x="{x:.1}" y="{y:.1}">{text}</text>"#);
    }

    fn path(&mut self, class: &str, d: &str, title: &str) {
        let title = if title.is_empty() {
            String::new()
        } else {
            format!("<title>{}</title>", escape(title))
        };
        let _ = writeln!(self.body, r#"<path class="{class}" d="{d}">{title}</path>"#);
    }

    /// The points as the text of a path. Of a run of points at the same height only the ends are kept.
    fn through(&self, points: &[[f64; 2]]) -> String {
        let places: Vec<[String; 2]> =
            points.iter().map(|&point| self.place(point).map(|at| format!("{at:.1}"))).collect();
        let mut path = String::new();
        for (i, [x, y]) in places.iter().enumerate() {
            let is_between = i > 0
                && places.get(i + 1).is_some_and(|next| next[1] == *y)
                && places[i - 1][1] == *y;
            if !is_between {
                let command = if i == 0 { 'M' } else { 'L' };
                let _ = write!(path, "{command}{x} {y}");
            }
        }
        path
    }

    /// A line through points.
    pub(super) fn line(&mut self, class: &str, title: &str, points: &[[f64; 2]]) {
        let path = self.through(points);
        self.path(class, &path, title);
    }

    /// The room between two ends at each x.
    pub(super) fn band(&mut self, class: &str, points: &[(f64, [f64; 2])]) {
        let low: Vec<[f64; 2]> = points.iter().map(|&(x, ends)| [x, ends[0]]).collect();
        let high: Vec<[f64; 2]> = points.iter().rev().map(|&(x, ends)| [x, ends[1]]).collect();
        let path = self.through(&[low, high].concat());
        self.path(&format!("band {class}"), &(path + "Z"), "");
    }

    /// A horizontal line with its name above it, or below it where another name stands.
    pub(super) fn level(&mut self, class: &str, name: &str, y: f64) {
        let [_, at] = self.place([0.0, y]);
        self.path(class, &format!("M{LEFT} {at:.1}H{:.1}", WIDTH - RIGHT), name);
        let is_free =
            |baseline: f64| self.named.iter().all(|named| (named - baseline).abs() > 11.0);
        let above = at - 4.0;
        let baseline = if is_free(above) && above > TOP + 8.0 { above } else { at + 13.0 };
        self.named.push(baseline);
        self.text("tick", [WIDTH - RIGHT - 2.0, baseline], name);
    }

    /// The finished drawing.
    pub(super) fn svg(self, label: &str) -> String {
        format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n{}</svg>\n",
            escape(label),
            self.body
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot() -> Plot {
        Plot::new("a < b", (Axis::between(0.0, 10.0), "steps"), Axis::between(0.0, 1.0))
    }

    #[test]
    fn points_lie_where_the_axes_say() {
        let plot = plot();
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        assert_eq!(plot.place([0.0, 0.0]), [LEFT, bottom]);
        assert_eq!(plot.place([10.0, 1.0]), [right, TOP]);
        assert_eq!(plot.place([5.0, -3.0]), [f64::midpoint(LEFT, right), bottom]);
        assert_eq!(
            plot.through(&[[0.0, 0.0], [2.0, 0.0], [4.0, 0.0], [10.0, 1.0], [10.0, 0.5]]),
            "M46.0 196.0L167.6 196.0L350.0 26.0L350.0 111.0"
        );
    }

    #[test]
    fn names_of_levels_do_not_cover_one_another() {
        let mut plot = plot();
        plot.level("line", "one", 0.5);
        plot.level("line", "two", 0.51);
        plot.level("line", "top", 1.0);
        let [a, b] = [plot.named[0], plot.named[1]];
        assert!((a - b).abs() > 11.0, "{a} {b}");
        assert!(plot.named[2] > TOP);
        assert!(plot.svg("x").contains("a &lt; b"));
    }

    #[test]
    fn a_band_closes() {
        let mut plot = plot();
        plot.band("p1", &[(0.0, [0.0, 0.5]), (10.0, [0.5, 1.0])]);
        assert!(
            plot.body.contains(
                r#"<path class="band p1" d="M46.0 196.0L350.0 111.0L350.0 26.0L46.0 111.0Z">"#
            ),
            "{}",
            plot.body
        );
    }
}
