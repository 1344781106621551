//! The name that was probably meant.

/// Longest name that is compared; nobody mistypes a longer one.
const COMPARED_MAX: usize = 40;

/// The candidate that is nearest to a name, if any is near: at most a third of its letters changed.
pub(crate) fn nearest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    if name.chars().count() > COMPARED_MAX {
        return None;
    }
    let name = name.to_lowercase().replace(['-', ' '], "_");
    candidates
        .into_iter()
        .map(|candidate| (distance_to(&name, &candidate.replace('-', "_")), candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.len() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// A name without its unit is as near as one with a slip.
fn distance_to(name: &str, candidate: &str) -> usize {
    let cut = candidate.strip_prefix(name).is_some_and(|unit| unit.starts_with('_'));
    if cut { 1 } else { distance(name, candidate) }
}

/// Letters inserted, removed, replaced or swapped with their neighbour to get from one text to
/// another (optimal string alignment).
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    let mut previous = None;
    for (row, letter) in from.chars().enumerate() {
        let mut now = vec![row + 1];
        for (column, &other) in to.iter().enumerate() {
            let replaced = last[column] + usize::from(letter != other);
            let mut best = replaced.min(last[column + 1] + 1).min(now[column] + 1);
            if column > 0 && previous == Some(other) && letter == to[column - 1] {
                best = best.min(before_last[column - 1] + 1);
            }
            now.push(best);
        }
        before_last = std::mem::replace(&mut last, now);
        previous = Some(letter);
    }
    last[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (from, to, expected) in [
            ("", "abc", 3),
            ("abc", "", 3),
            ("ab", "ba", 1),
            ("kitten", "sitting", 3),
            ("x", "x", 0),
        ] {
            assert_eq!(distance(from, to), expected, "{from} {to}");
        }
    }

    #[test]
    fn near_names_are_found() {
        let names = ["base_rps", "noise", "noise_std", "cache-flush"];
        assert_eq!(nearest("bse_rps", names), Some("base_rps"));
        assert_eq!(nearest("Base RPS", names), Some("base_rps"));
        assert_eq!(nearest("noise_sdt", names), Some("noise_std"));
        assert_eq!(nearest("cache_flush", names), Some("cache-flush"));
        assert_eq!(nearest("base", names), Some("base_rps"));
        assert_eq!(nearest("colour", names), None);
        assert_eq!(nearest(&"a".repeat(10_000), names), None);
    }
}
