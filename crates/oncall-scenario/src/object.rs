//! Fields of an object: unknown ones, duplicates, wrong kinds.

use crate::error::{Report, child, shorten};
use crate::node::Node;
use crate::suggest::nearest;
use std::collections::BTreeSet;

/// The fields of an object, in the order of the file; a duplicate is reported and left out.
/// Anything but an object is reported as not being `what`.
pub(crate) fn fields<'n>(
    report: &mut Report,
    node: &'n Node,
    path: &str,
    what: &str,
) -> Vec<(&'n str, &'n Node)> {
    let Node::Object(entries) = node else {
        report.add(path, node.shown(), format!("an object: {what}"));
        return Vec::new();
    };
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    for (key, value) in entries {
        if seen.insert(key.as_str()) {
            found.push((key.as_str(), value));
        } else {
            let text = format!("{} (a second `{}`)", value.shown(), shorten(key));
            report.add(child(path, key), text, "each field once");
        }
    }
    found
}

/// Reports a field that nobody knows, with the one that was probably meant. `elsewhere` says where
/// a field of this very name belongs.
pub(crate) fn unknown(
    report: &mut Report,
    path: &str,
    key: &str,
    known: &[&str],
    elsewhere: Option<String>,
) {
    let near = nearest(key, known.iter().copied());
    let expected = match (near, elsewhere) {
        (None, Some(place)) => format!("one of {}; it belongs to `{place}`", known.join(", ")),
        _ => one_of(key, known),
    };
    report.add(child(path, key), "an unknown field", expected);
}

/// What is expected in the place of an unknown name.
pub(crate) fn one_of(name: &str, known: &[&str]) -> String {
    let meant = nearest(name, known.iter().copied());
    let meant = meant.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    format!("one of {}{meant}", known.join(", "))
}

/// A text.
pub(crate) fn text<'n>(
    report: &mut Report,
    node: &'n Node,
    path: &str,
    what: &str,
) -> Option<&'n str> {
    if let Node::Text(text) = node {
        return Some(text);
    }
    report.add(path, node.shown(), what);
    None
}

/// `true` or `false`.
pub(crate) fn flag(report: &mut Report, node: &Node, path: &str) -> Option<bool> {
    if let Node::Bool(flag) = node {
        return Some(*flag);
    }
    report.add(path, node.shown(), "true or false");
    None
}

/// The items of an array of at most `max`.
pub(crate) fn items<'n>(
    report: &mut Report,
    node: &'n Node,
    path: &str,
    max: usize,
    what: &str,
) -> &'n [Node] {
    let Node::Array(items) = node else {
        report.add(path, node.shown(), format!("an array of {what}"));
        return &[];
    };
    if items.len() > max {
        report.add(path, format!("{} of them", items.len()), format!("at most {max} {what}"));
    }
    &items[..items.len().min(max)]
}
