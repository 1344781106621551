//! JSON that keeps the order of its keys and every duplicate, which serde's own values lose.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt::{self, Write as _};

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    Array(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl Node {
    /// Parses a text; a byte order mark in front is skipped. The error is a sentence with line and
    /// column.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    /// The value as JSON writes it, on one line, shortened.
    pub(crate) fn shown(&self) -> String {
        crate::error::shorten(&self.line())
    }

    /// The value on one line.
    fn line(&self) -> String {
        match self {
            Node::Null => "null".to_owned(),
            Node::Bool(flag) => flag.to_string(),
            Node::Number(number) => plain(*number),
            Node::Text(text) => quoted(text),
            Node::Array(items) => {
                let items: Vec<String> = items.iter().map(Node::line).collect();
                format!("[{}]", items.join(", "))
            }
            Node::Object(entries) => {
                let entries: Vec<String> = entries
                    .iter()
                    .map(|(key, node)| format!("{}: {}", quoted(key), node.line()))
                    .collect();
                format!("{{{}}}", entries.join(", "))
            }
        }
    }

    /// The value over several lines, each at most `width` wide where that is possible.
    pub(crate) fn pretty(&self, width: usize) -> String {
        let mut text = String::new();
        self.write_pretty(&mut text, 0, 0, width);
        text
    }

    /// `used` counts what stands on the line already.
    fn write_pretty(&self, text: &mut String, indent: usize, used: usize, width: usize) {
        let line = self.line();
        // One more for the comma behind it.
        if used + line.chars().count() < width {
            text.push_str(&line);
            return;
        }
        let inner = indent + 2;
        match self {
            Node::Array(items) if !items.is_empty() => {
                for (index, item) in items.iter().enumerate() {
                    let start = if index == 0 { '[' } else { ',' };
                    let _ = write!(text, "{start}\n{:inner$}", "");
                    item.write_pretty(text, inner, inner, width);
                }
                let _ = write!(text, "\n{:indent$}]", "");
            }
            Node::Object(entries) if !entries.is_empty() => {
                for (index, (key, node)) in entries.iter().enumerate() {
                    let start = if index == 0 { '{' } else { ',' };
                    let key = quoted(key);
                    let _ = write!(text, "{start}\n{:inner$}{key}: ", "");
                    node.write_pretty(text, inner, inner + key.chars().count() + 2, width);
                }
                let _ = write!(text, "\n{:indent$}}}", "");
            }
            _ => text.push_str(&line),
        }
    }
}

/// A number as people write it: 240, 0.25, 1e300.
pub(crate) fn plain(x: f64) -> String {
    if x.fract() == 0.0 && x.abs() < 1e15 { format!("{x:.0}") } else { format!("{x:?}") }
}

/// A text in quotes, escaped.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Node, E> {
        Ok(Node::Bool(flag))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Node, E> {
        Ok(Node::Number(number as f64))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Node, E> {
        Ok(Node::Number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Node, E> {
        // "-0" would differ from "0" in the bits of a state.
        Ok(Node::Number(oncall_core::math::canonical_zero(number)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Node::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Node::Object(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_duplicates_survive() {
        let text = r#"{"b": 1, "a": [true, null, "x\"y"], "b": -0.0, "c": 1e300}"#;
        let node = Node::parse(text).unwrap();
        assert_eq!(node.line(), r#"{"b": 1, "a": [true, null, "x\"y"], "b": 0, "c": 1e300}"#);
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        assert_eq!(Node::parse("\u{feff}[]"), Ok(Node::Array(vec![])));
    }

    #[test]
    fn syntax_errors_name_the_line() {
        for text in ["{\n  \"a\": 1,\n}", "{\n\"a\": 1\n\"b\": 2}", "[\n1,\nNaN]"] {
            let error = Node::parse(text).unwrap_err();
            assert!(error.contains("line 3 column"), "{error}");
        }
        assert!(Node::parse(&"[".repeat(100_000)).unwrap_err().contains("recursion"));
        assert!(Node::parse("1e999").unwrap_err().contains("out of range"));
    }

    #[test]
    fn pretty_text_says_the_same() {
        let text =
            r#"{"long": ["aaaaaaaaaaaaaa", "bbbbbbbbbbbbbbb"], "n": {}, "x": {"y": [1, 2]}}"#;
        let node = Node::parse(text).unwrap();
        let pretty = node.pretty(30);
        assert_eq!(Node::parse(&pretty), Ok(node));
        assert!(
            pretty.lines().count() > 4 && pretty.lines().all(|line| line.len() <= 30),
            "{pretty}"
        );
    }
}
