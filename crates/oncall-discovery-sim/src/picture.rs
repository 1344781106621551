//! A timeline as a picture: panels of lines, one above the other, as SVG.

use crate::world::Row;
use std::fmt::Write as _;

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 70.0;
const HEIGHT: f64 = 110.0;
const GAP: f64 = 34.0;

/// A panel: title, lines (name, colour, value of a row).
type Line = (&'static str, &'static str, fn(&Row) -> f64);

const PANELS: &[(&str, &[Line])] = &[
    (
        "requests per second at endpoints that the catalog does not hold READY, and failing ones",
        &[
            ("stale", "#c60", |row| row.traffic.stale),
            ("connection failures", "#a0a", |row| row.traffic.failures),
            ("user-visible", "#c00", |row| row.traffic.user_visible()),
        ],
    ),
    (
        "deltas and snapshots per second",
        &[
            ("deltas", "#06c", |row| row.deltas as f64),
            ("snapshots", "#0a6", |row| row.snapshots as f64),
        ],
    ),
    (
        "streams that stand (%), connects per second",
        &[
            ("connected %", "#06c", |row| 100.0 * row.connected),
            ("connects", "#999", |row| row.connects as f64),
        ],
    ),
    ("subscriptions behind the head", &[("behind", "#c60", |row| row.behind as f64)]),
    (
        "oldest views (s), queue of the slowest relay (ms)",
        &[
            ("age s", "#06c", |row| row.snapshot_age_max_s),
            ("queue ms", "#c60", |row| row.relay_delay_max_ms),
        ],
    ),
    ("READY instances", &[("READY", "#0a6", |row| row.ready as f64)]),
];

/// Draws the rows of a run.
pub fn picture(title: &str, rows: &[Row]) -> String {
    let height = 40.0 + PANELS.len() as f64 * (HEIGHT + GAP);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" \
         fill=\"#fff\"/>\n<text x=\"{LEFT}\" y=\"20\" font-size=\"16\">{}</text>\n",
        escape(title)
    );
    let end = rows.last().map_or(1.0, |row| row.t_s).max(1.0);
    for (index, (name, lines)) in PANELS.iter().enumerate() {
        let top = 52.0 + index as f64 * (HEIGHT + GAP);
        panel(&mut svg, (name, lines), rows, (top, end));
    }
    svg + "</svg>\n"
}

fn panel(svg: &mut String, (name, lines): (&str, &[Line]), rows: &[Row], (top, end): (f64, f64)) {
    let values = |line: &Line| rows.iter().map(line.2).fold(0.0, f64::max);
    let most = lines.iter().map(values).fold(0.0, f64::max).max(1e-9);
    let least = if lines.len() == 1 && name.starts_with("READY") {
        rows.iter().map(lines[0].2).fold(f64::INFINITY, f64::min).min(most)
    } else {
        0.0
    };
    let span = (most - least).max(1e-9);
    let x = |t: f64| LEFT + t / end * (WIDTH - LEFT - 10.0);
    let y = |v: f64| top + HEIGHT - (v - least) / span * HEIGHT;
    let _ = writeln!(svg, "<text x=\"{LEFT}\" y=\"{:.0}\">{}</text>", top - 6.0, escape(name));
    let _ = writeln!(
        svg,
        "<path d=\"M{LEFT} {top}V{bottom}H{right}\" fill=\"none\" stroke=\"#999\"/>\n\
         <text x=\"{label}\" y=\"{high}\" text-anchor=\"end\">{most}</text>\n\
         <text x=\"{label}\" y=\"{bottom}\" text-anchor=\"end\">{least}</text>",
        bottom = top + HEIGHT,
        right = WIDTH - 10.0,
        label = LEFT - 5.0,
        high = top + 10.0,
        most = short(most),
        least = short(least),
    );
    for (at, (label, colour, value)) in lines.iter().enumerate() {
        let points: Vec<String> =
            rows.iter().map(|row| format!("{:.1},{:.1}", x(row.t_s), y(value(row)))).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.3\"/>\n\
             <text x=\"{:.0}\" y=\"{:.0}\" fill=\"{colour}\" text-anchor=\"end\">{label}</text>",
            points.join(" "),
            WIDTH - 14.0,
            top + 12.0 + 14.0 * at as f64,
        );
    }
}

fn short(value: f64) -> String {
    if value >= 100.0 || value == 0.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_panel_has_its_lines_and_nothing_is_not_a_number() {
        let rows: Vec<Row> =
            (0..50).map(|t| Row { t_s: f64::from(t), ready: 480, ..Row::default() }).collect();
        let svg = picture("a < b", &rows);
        let lines: usize = PANELS.iter().map(|panel| panel.1.len()).sum();
        assert_eq!(svg.matches("<polyline").count(), lines);
        assert!(svg.contains("a &lt; b") && !svg.contains("NaN") && !svg.contains("inf"));
        assert!(picture("empty", &[]).ends_with("</svg>\n"));
    }
}
