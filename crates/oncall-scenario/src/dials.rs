//! Dials by minute from a CSV.

use crate::error::{Report, ScenarioErrors, shorten};
use crate::node::plain;
use crate::object::one_of;
use crate::table::{Table, enough, number, shown};
use oncall_core::Spec;

/// Reads dials: the header holds names of dials, in any order and any number of them; each row is a
/// minute, in natural units. The result has a row for every minute and a column for every dial of
/// the `spec`; dials that are not in the header are NaN, which keeps them.
///
/// # Errors
///
/// Every problem of the text, with its line; `name` stands in front of each.
pub fn dials_csv(name: &str, text: &str, spec: &Spec) -> Result<Vec<Vec<f64>>, ScenarioErrors> {
    let mut report = Report::new(Some(name));
    let rows = rows(&mut report, text, spec);
    match rows {
        Some(rows) if report.len() == 0 => Ok(rows),
        _ => Err(report.into_errors()),
    }
}

fn rows(report: &mut Report, text: &str, spec: &Spec) -> Option<Vec<Vec<f64>>> {
    let names: Vec<&str> = spec.dials.iter().map(|dial| dial.name).collect();
    let what = format!("a header with names of dials: {}", names.join(", "));
    let table = Table::read(report, text, &what)?;
    let columns = columns(report, &table, spec, &names);
    table.refuse_empty_lines(report);
    let mut rows = Vec::with_capacity(table.rows.len());
    for (line, record) in &table.rows {
        let mut row = vec![f64::NAN; spec.dials.len()];
        for (column, dial) in columns.iter().enumerate() {
            let Some(dial) = *dial else { continue };
            let found = &spec.dials[dial];
            match number(&record[column]).filter(|x| found.accepts(*x)) {
                Some(value) => row[dial] = value,
                None if enough(report) => return None,
                None => {
                    let expected =
                        format!("a number from {} to {}", plain(found.low), plain(found.high));
                    report.add(table.place(*line, column), shown(&record[column]), expected);
                }
            }
        }
        rows.push(row);
    }
    Some(rows)
}

/// The dial of each column.
fn columns(report: &mut Report, table: &Table, spec: &Spec, names: &[&str]) -> Vec<Option<usize>> {
    let mut columns: Vec<Option<usize>> = Vec::with_capacity(table.header.len());
    for (index, name) in table.header.iter().enumerate() {
        let place = format!("line 1, column {}", index + 1);
        let dial = spec.dial(name);
        if dial.is_none() {
            report.add(place, shown(name), one_of(name, names));
        } else if columns.contains(&dial) {
            report.add(place, format!("a second `{}`", shorten(name)), "each dial once");
        }
        columns.push(dial);
    }
    columns
}
