//! Demand from a CSV: one mean rate for every minute.

use crate::error::{Report, ScenarioErrors, shorten};
use crate::node::plain;
use crate::table::{Table, enough, number, shown};

/// Highest demand, as for `demand.base_rps`.
pub(crate) const RPS_MAX: f64 = 1_000_000.0;
/// Longest series: close to two years.
const MINUTES_MAX: f64 = 1_000_000.0;
/// The only column of a file of rates.
const RATES: &str = "requests_per_s";
/// Names of the first column of a file with times.
const TIMES: [&str; 8] =
    ["timestamp", "time", "datetime", "date", "time_s", "seconds", "second", "t"];

const MINUTE_S: f64 = 60.0;

/// What a series is scaled to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Scale {
    AsIs,
    Mean(f64),
    Peak(f64),
}

impl Scale {
    /// The scale of a field, `mean_rps` or `peak_rps`.
    pub(crate) fn of(key: &str, rps: f64) -> Self {
        if key == "peak_rps" { Scale::Peak(rps) } else { Scale::Mean(rps) }
    }
}

/// Reads demand in req/s, one number a minute.
///
/// Two kinds of file:
///
/// * one column `requests_per_s`: each row is a minute;
/// * a time (`timestamp`, `time`, ..; as `YYYY-MM-DD HH:MM:SS`, with `T` too, or in plain seconds)
///   and a count of requests, under any name. The times must be regularly spaced; counts are divided
///   by the spacing. A second column named `requests_per_s`, or ending in `_rps` or `per_s`, holds
///   rates and is not divided. Where the spacing is above a minute, the rate holds; below, it is
///   averaged.
///
/// # Errors
///
/// Every problem of the text, with its line; `name` stands in front of each.
pub fn demand_csv(name: &str, text: &str) -> Result<Vec<f64>, ScenarioErrors> {
    scaled(name, text, Scale::AsIs)
}

/// [`demand_csv`], scaled to a mean or a peak over the whole series.
pub(crate) fn scaled(name: &str, text: &str, scale: Scale) -> Result<Vec<f64>, ScenarioErrors> {
    let mut report = Report::new(Some(name));
    let Some(mut rates) = rates(&mut report, text).filter(|_| report.len() == 0) else {
        return Err(report.into_errors());
    };
    let peak = rates.iter().copied().fold(0.0, f64::max);
    // Divided by the peak first, so that the sum of huge numbers stays finite.
    let wanted = match scale {
        Scale::AsIs => None,
        Scale::Peak(rps) => Some(rps),
        Scale::Mean(rps) => {
            let mean_share = rates.iter().map(|rate| rate / peak).sum::<f64>() / rates.len() as f64;
            Some(rps / mean_share)
        }
    };
    if let Some(wanted) = wanted {
        if peak <= 0.0 {
            report.add("the whole file", "no requests", "at least one, to be scaled");
            return Err(report.into_errors());
        }
        for rate in &mut rates {
            *rate = *rate / peak * wanted;
        }
    }
    if let Some(minute) = rates.iter().position(|rate| *rate > RPS_MAX) {
        let found = format!("{} req/s", plain(rates[minute]));
        let after = if wanted.is_some() { " after scaling" } else { "" };
        let expected = format!("at most {} req/s{after}", plain(RPS_MAX));
        report.add(format!("minute {minute}"), found, expected);
    }
    report.finish(rates)
}

/// How a file is laid out.
enum Layout {
    Rates,
    Timed { is_rate: bool },
}

const HEADERS: &str =
    "a header: `requests_per_s` alone, or a time and a count, such as `timestamp,count`";

fn layout(report: &mut Report, header: &[String]) -> Option<Layout> {
    let names: Vec<String> = header.iter().map(|name| name.to_lowercase()).collect();
    match names.as_slice() {
        [only] if only == RATES => Some(Layout::Rates),
        [time, count]
            if TIMES.contains(&time.as_str())
                && !count.is_empty()
                && number(count).is_none()
                && seconds(count).is_none() =>
        {
            let is_rate = count == "rps" || count.ends_with("_rps") || count.ends_with("per_s");
            Some(Layout::Timed { is_rate })
        }
        _ => {
            report.add("line 1", format!("{:?}", shorten(&header.join(","))), HEADERS);
            None
        }
    }
}

fn rates(report: &mut Report, text: &str) -> Option<Vec<f64>> {
    let table = Table::read(report, text, HEADERS)?;
    match layout(report, &table.header)? {
        Layout::Rates => {
            table.refuse_empty_lines(report);
            values(report, &table, 0)
        }
        Layout::Timed { is_rate } => timed(report, &table, is_rate),
    }
}

/// A column of numbers that are not negative.
fn values(report: &mut Report, table: &Table, column: usize) -> Option<Vec<f64>> {
    let mut values = Vec::with_capacity(table.rows.len());
    for (line, row) in &table.rows {
        if enough(report) {
            return None;
        }
        match number(&row[column]).filter(|x| *x >= 0.0) {
            Some(value) => values.push(value),
            None => report.add(
                table.place(*line, column),
                shown(&row[column]),
                "a finite number of at least 0",
            ),
        }
    }
    (values.len() == table.rows.len()).then_some(values)
}

/// A file with times: checks the spacing and resamples to minutes.
fn timed(report: &mut Report, table: &Table, is_rate: bool) -> Option<Vec<f64>> {
    let values = values(report, table, 1);
    let mut times = Vec::with_capacity(table.rows.len());
    for (line, row) in &table.rows {
        if enough(report) {
            return None;
        }
        match seconds(&row[0]) {
            Some(time) => times.push(time),
            None => report.add(
                table.place(*line, 0),
                shown(&row[0]),
                "a time, as `YYYY-MM-DD HH:MM:SS` or in seconds",
            ),
        }
    }
    if times.len() < table.rows.len() {
        return None;
    }
    let spacing_s = spacing(report, table, &times)?;
    let minutes = (times.len() as f64 * spacing_s / MINUTE_S).ceil();
    if minutes > MINUTES_MAX {
        let found = format!("{} rows every {} s", times.len(), plain(spacing_s));
        report.add("the whole file", found, format!("at most {} minutes", plain(MINUTES_MAX)));
    }
    let values = values.filter(|_| report.len() == 0)?;
    Some(by_minute(&values, spacing_s, is_rate))
}

/// The spacing of the times in seconds, if it is regular.
fn spacing(report: &mut Report, table: &Table, times: &[f64]) -> Option<f64> {
    let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mut sorted = gaps.clone();
    sorted.sort_by(f64::total_cmp);
    // The usual one, so that one gap is reported as one.
    let Some(&usual) = sorted.get(gaps.len() / 2) else {
        let place = format!("line {}", table.end);
        report.add(place, "nothing", "a second row, since counts are divided by the spacing");
        return None;
    };
    let before = report.len();
    let expected = if usual > 0.0 {
        format!("{} s, the usual spacing: times must be regular, without gaps", plain(usual))
    } else {
        "a later time than in the row before".to_owned()
    };
    // Times of this century in seconds have about seven digits behind the point.
    let tolerance = 1e-5 * usual.abs() + 1e-6;
    for (gap, (line, _)) in gaps.iter().zip(&table.rows[1..]) {
        if enough(report) {
            return None;
        }
        if usual <= 0.0 && *gap <= 0.0 || usual > 0.0 && (gap - usual).abs() > tolerance {
            let found = format!("{} s after the row before", plain(*gap));
            report.add(table.place(*line, 0), found, expected.as_str());
        }
    }
    (report.len() == before).then_some((times[times.len() - 1] - times[0]) / gaps.len() as f64)
}

/// Mean rate of every minute of rows that follow one another every `spacing_s`.
fn by_minute(values: &[f64], spacing_s: f64, is_rate: bool) -> Vec<f64> {
    let rate = |row: usize| if is_rate { values[row] } else { values[row] / spacing_s };
    let end_s = values.len() as f64 * spacing_s;
    let minutes = (end_s / MINUTE_S - 1e-9).ceil().max(1.0) as usize;
    let row_at = |time_s: f64| ((time_s / spacing_s + 1e-9) as usize).min(values.len() - 1);
    let mut rates = Vec::with_capacity(minutes);
    for minute in 0..minutes {
        let from_s = minute as f64 * MINUTE_S;
        let to_s = (from_s + MINUTE_S).min(end_s);
        let (first, last) = (row_at(from_s), row_at(to_s - 2e-9 * spacing_s));
        if first == last {
            // No arithmetic: the rate of the row, to the bit.
            rates.push(rate(first));
            continue;
        }
        let (mut requests, mut covered_s) = (0.0, 0.0);
        for row in first..=last {
            let start_s = (row as f64 * spacing_s).max(from_s);
            let share_s = (((row + 1) as f64 * spacing_s).min(to_s) - start_s).max(0.0);
            requests += rate(row) * share_s;
            covered_s += share_s;
        }
        rates.push(if covered_s > 0.0 { requests / covered_s } else { rate(first) });
    }
    rates
}

/// A time in seconds: a plain number, or a date and a time of day (counted from 1970).
fn seconds(cell: &str) -> Option<f64> {
    if let Some(plain) = number(cell) {
        return Some(plain);
    }
    let cell = cell.strip_suffix('Z').unwrap_or(cell);
    let (date, clock) = cell.split_once(['T', ' '])?;
    let whole = |text: &str, digits: usize| -> Option<i64> {
        let fits = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| fits)
    };
    let mut parts = date.split('-');
    let (year, month, day) =
        (whole(parts.next()?, 4)?, whole(parts.next()?, 2)?, whole(parts.next()?, 2)?);
    let mut clock_parts = clock.split(':');
    let (hour, minute) = (whole(clock_parts.next()?, 2)?, whole(clock_parts.next()?, 2)?);
    let second = match clock_parts.next() {
        None => 0.0,
        Some(text) if text.starts_with(|c: char| c.is_ascii_digit()) => number(text)?,
        Some(_) => return None,
    };
    let complete = parts.next().is_none() && clock_parts.next().is_none();
    let valid = (1..=12).contains(&month)
        && (1..=days_in(year, month)).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0.0..60.0).contains(&second);
    (complete && valid)
        .then(|| ((days(year, month, day) * 24 + hour) * 3600 + minute * 60) as f64 + second)
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let before =
        |year: i64| year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let in_year: i64 = (1..month).map(|month| days_in(year, month)).sum();
    before(year - 1) - before(1969) + in_year + day - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        assert_eq!(seconds("1970-01-01 00:00:00"), Some(0.0));
        assert_eq!(seconds("2000-03-01T00:00"), Some(951_868_800.0));
        assert_eq!(seconds("2024-02-29 23:59:59.5"), Some(1_709_251_199.5));
        assert_eq!(seconds("1969-12-31T23:59:00Z"), Some(-60.0));
        assert_eq!(seconds("12.5"), Some(12.5));
        for wrong in [
            "2023-02-29 00:00:00",
            "2024-13-01 00:00",
            "2024-1-01 00:00",
            "2024-01-01",
            "24:00",
            "2024-01-01 24:00:00",
            "2024-01-01 00:60",
            "2024-01-01 00:00:60",
            "2024-01-01 00:00:00:00",
            "2024-01-01 00:00:-1",
            "2024-01-01-01 00:00",
            "",
            "noon",
            "inf",
            "NaN",
            "+024-01-01 00:00",
        ] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn rows_become_minutes() {
        // Longer than a minute: the rate holds. Shorter: the mean.
        assert_eq!(by_minute(&[300.0, 600.0], 120.0, false), [2.5, 2.5, 5.0, 5.0]);
        assert_eq!(by_minute(&[60.0, 120.0, 240.0], 60.0, false), [1.0, 2.0, 4.0]);
        assert_eq!(by_minute(&[10.0, 20.0, 30.0, 40.0], 30.0, false), [0.5, 35.0 / 30.0]);
        assert_eq!(by_minute(&[1.0, 3.0, 8.0], 30.0, true), [2.0, 8.0]);
        // One and a half minutes: the second minute is half of each.
        assert_eq!(by_minute(&[1.0, 3.0], 90.0, true), [1.0, 2.0, 3.0]);
    }

    #[test]
    fn no_request_is_lost() {
        for spacing_s in [0.7, 1.0, 7.0, 59.0, 60.0, 61.0, 300.0, 1000.0] {
            let counts: Vec<f64> = (0..600).map(|i| f64::from(i * 37 % 101)).collect();
            let rates = by_minute(&counts, spacing_s, false);
            let end_s = 600.0 * spacing_s;
            assert_eq!(rates.len(), (end_s / 60.0).ceil() as usize, "{spacing_s}");
            let served: f64 = (rates.iter().enumerate())
                .map(|(minute, rate)| rate * (end_s - minute as f64 * 60.0).min(60.0))
                .sum();
            let sent: f64 = counts.iter().sum();
            assert!((served / sent - 1.0).abs() < 1e-9, "{spacing_s}: {served} of {sent}");
        }
    }
}
