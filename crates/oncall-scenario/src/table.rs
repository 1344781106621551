//! Rows of a CSV, with their lines.

use crate::error::{Report, shorten};

/// Problems after which the rest of a CSV is not looked at: one slip often repeats in every row.
const PROBLEMS_MAX: usize = 20;

/// A CSV with a header.
#[derive(Debug)]
pub(crate) struct Table {
    /// Names of the columns, trimmed.
    pub(crate) header: Vec<String>,
    /// Line and cells of each row; as many cells as the header has.
    pub(crate) rows: Vec<(u64, csv::StringRecord)>,
    /// Line after the last row.
    pub(crate) end: u64,
    /// Empty lines between rows.
    empty_lines: Vec<u64>,
}

/// Whether to stop looking.
pub(crate) fn enough(report: &Report) -> bool {
    report.len() >= PROBLEMS_MAX
}

impl Table {
    /// Splits a text into rows. `None` if it has no header or no row at all; rows of a wrong length
    /// are reported and left out.
    pub(crate) fn read(report: &mut Report, text: &str, what: &str) -> Option<Self> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .trim(csv::Trim::All)
            .from_reader(text.as_bytes());
        let mut table =
            Table { header: Vec::new(), rows: Vec::new(), end: 1, empty_lines: Vec::new() };
        for record in reader.records() {
            let Ok(record) = record else {
                // The text is UTF-8 and rows may have any length: nothing else can go wrong.
                report.add(format!("line {}", table.end), "a row that cannot be read", what);
                return None;
            };
            let line = line_of(text, &record).unwrap_or(table.end);
            let expected_line = std::mem::replace(&mut table.end, line + 1);
            if table.header.is_empty() {
                table.header = record.iter().map(str::to_owned).collect();
                continue;
            }
            if expected_line < line {
                table.empty_lines.push(line - 1);
            }
            if record.len() != table.header.len() {
                let columns = table.header.len();
                let found = format!("{} columns", record.len());
                report.add(format!("line {line}"), found, format!("{columns}, as the header has"));
                if enough(report) {
                    return None;
                }
                continue;
            }
            table.rows.push((line, record));
        }
        if table.header.is_empty() {
            report.add("line 1", "an empty file", what);
            return None;
        }
        if table.rows.is_empty() {
            report.add(
                format!("line {}", table.end),
                "nothing",
                "at least one row below the header",
            );
            return None;
        }
        Some(table)
    }

    /// Reports empty lines between rows: where a row is a minute, they are gaps.
    pub(crate) fn refuse_empty_lines(&self, report: &mut Report) {
        for line in &self.empty_lines {
            if !enough(report) {
                report.add(format!("line {line}"), "an empty line", "a row for every minute");
            }
        }
    }

    /// Where a cell stands.
    pub(crate) fn place(&self, line: u64, column: usize) -> String {
        format!("line {line}, column {}", shorten(&self.header[column]))
    }
}

/// The line of a row. The reader counts the empty lines in front of a row to it.
fn line_of(text: &str, record: &csv::StringRecord) -> Option<u64> {
    let position = record.position()?;
    let rest = text.as_bytes().get(position.byte() as usize..)?;
    let skipped = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
    Some(position.line() + skipped.filter(|byte| **byte == b'\n').count() as u64)
}

/// A finite number; infinities, NaN and everything else are none.
pub(crate) fn number(cell: &str) -> Option<f64> {
    let number: Option<f64> = cell.parse().ok();
    number.filter(|x| x.is_finite()).map(oncall_core::math::canonical_zero)
}

/// A cell as it is shown.
pub(crate) fn shown(cell: &str) -> String {
    if cell.is_empty() { "nothing".to_owned() } else { format!("{:?}", shorten(cell)) }
}
