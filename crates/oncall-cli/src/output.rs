//! How text reaches the user: streams that may close early, numbers, hashes, tables.

use anyhow::Context as _;
pub(crate) use oncall_core::hex;
use serde::Serialize;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Columns of a terminal that tables fill; fixed, so that output does not depend on the window.
const WIDTH: usize = 110;

/// Prints to standard output. A reader that has left is an error of kind `BrokenPipe`, unlike the
/// panic of `print!`.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Prints a line to standard error; nothing can be done where that fails.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Prints JSON, indented, with a line break at the end.
pub(crate) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print(&(serde_json::to_string_pretty(value)? + "\n"))
}

/// A file, or standard output for `-`.
pub(crate) fn create(path: &Path) -> anyhow::Result<Box<dyn Write>> {
    if path == Path::new("-") {
        return Ok(Box::new(BufWriter::new(io::stdout())));
    }
    let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(Box::new(BufWriter::new(file)))
}

/// The shortest text that reads back as the same number.
pub(crate) fn exact(value: f64) -> String {
    // Adding zero makes -0 a plain 0; the debug form has an exponent where it is shorter.
    let text = format!("{:?}", value + 0.0);
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

/// A number for people: `digits` after the point, without trailing zeros.
pub(crate) fn short(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    let has_point = text.contains('.');
    let text = if has_point { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Counts as `1.25 M`, `830 k`.
pub(crate) fn count(value: f64) -> String {
    match value.abs() {
        size if size >= 1e6 => format!("{:.2} M", value / 1e6),
        size if size >= 1e4 => format!("{:.0} k", value / 1e3),
        size if size >= 1e3 => format!("{:.1} k", value / 1e3),
        _ => format!("{value:.0}"),
    }
}

/// A table of plain text. Its last column wraps, numbers align to the right.
#[derive(Debug)]
pub(crate) struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
    right: Vec<bool>,
}

impl Table {
    /// An empty table; a head that begins with `>` aligns its column to the right.
    pub(crate) fn new(head: &[&str]) -> Self {
        Self {
            head: head.iter().map(|name| name.trim_start_matches('>').to_owned()).collect(),
            rows: Vec::new(),
            right: head.iter().map(|name| name.starts_with('>')).collect(),
        }
    }

    /// Appends a row; missing cells are empty.
    pub(crate) fn row(&mut self, mut cells: Vec<String>) {
        cells.resize(self.head.len(), String::new());
        self.rows.push(cells);
    }

    /// The table, each line indented by two blanks.
    pub(crate) fn text(&self) -> String {
        let width_of = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.chain([self.head[column].chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width_of).collect();
        let mut text = String::new();
        self.line(&mut text, &self.head, &widths);
        let last = widths.len() - 1;
        let rule = |(column, &width): (usize, &usize)| {
            // The last column wraps, so its longest cell says nothing about its width.
            "-".repeat(if column == last { width.min(40) } else { width })
        };
        let rule: Vec<String> = widths.iter().enumerate().map(rule).collect();
        self.line(&mut text, &rule, &widths);
        self.rows.iter().for_each(|row| self.line(&mut text, row, &widths));
        text
    }

    fn line(&self, text: &mut String, cells: &[impl AsRef<str>], widths: &[usize]) {
        let last = widths.len() - 1;
        let indent: usize = 2 + widths[..last].iter().map(|width| width + 2).sum::<usize>();
        let mut line = String::from("  ");
        for (column, cell) in cells[..last].iter().enumerate() {
            let (cell, width) = (cell.as_ref(), widths[column]);
            let _ = if self.right[column] {
                write!(line, "{cell:>width$}  ")
            } else {
                write!(line, "{cell:<width$}  ")
            };
        }
        let (cell, width) = (cells[last].as_ref(), widths[last]);
        if self.right[last] {
            let _ = write!(line, "{cell:>width$}");
        } else {
            let room = WIDTH.saturating_sub(indent).max(30);
            line.push_str(&wrap(cell, room).join(&format!("\n{}", " ".repeat(indent))));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

/// Breaks text at blanks into lines of at most `width` characters; longer words stay whole.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_back() {
        for value in [0.0, 10.0, 0.1, 1e-7, 1e300, -2.5, 1.0 / 3.0, 123_456_789.0] {
            assert_eq!(exact(value).parse::<f64>().unwrap().to_bits(), value.to_bits());
        }
        assert_eq!([-0.0, 10.0, 1e-7].map(exact), ["0", "10", "1e-7"]);
    }

    #[test]
    fn people_get_few_digits() {
        assert_eq!(short(1.250, 3), "1.25");
        assert_eq!(short(100.0, 0), "100");
        assert_eq!(short(-0.000_1, 2), "0");
        assert_eq!(
            [999.0, 1500.0, 25_000.0, 1.234e6].map(count),
            ["999", "1.5 k", "25 k", "1.23 M"]
        );
    }

    #[test]
    fn tables_align_and_wrap() {
        let mut table = Table::new(&["name", ">n", "text"]);
        table.row(vec!["a".into(), "1".into(), "one".into()]);
        table.row(vec!["long".into(), "10".into(), "word ".repeat(40)]);
        let text = table.text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "  name   n  text");
        assert_eq!(lines[2], "  a      1  one");
        assert!(lines[4].starts_with("            word"));
        assert!(lines.iter().all(|line| line.len() <= WIDTH));
    }
}
