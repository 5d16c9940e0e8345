//! Finds the name that somebody probably meant: one that differs from theirs by a typing mistake, or only in
//! how its words are joined.

/// Longer texts are not typing mistakes.
const LONGEST_WORD: usize = 64;
/// One slip is forgiven per this many letters.
const LETTERS_PER_SLIP: usize = 4;

/// The nearest of the `known` names, if it is near enough. The first of equally near ones.
#[must_use]
pub fn nearest<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = letters(text)?;
    let near = known.into_iter().filter_map(|name| {
        let letters = letters(name)?;
        let forgiven = (wanted.len().max(letters.len()) / LETTERS_PER_SLIP).max(1);
        // Each letter that one has more than the other is a slip, so most names need no comparison.
        if wanted.len().abs_diff(letters.len()) > forgiven {
            return None;
        }
        let slips = slips_between(&wanted, &letters);
        (slips <= forgiven && slips < letters.len()).then_some((slips, name))
    });
    near.min_by_key(|(slips, _)| *slips).map(|(_, name)| name)
}

/// The end of a message about an unknown name: a suggestion, if there is one.
#[must_use]
pub fn hint(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |nearest| format!("; did you mean {nearest}?"))
}

/// Only the letters and digits, in lower case. `None` if there are none, or too many.
fn letters(text: &str) -> Option<Vec<char>> {
    let letters: Vec<char> = text
        .chars()
        .filter(|letter| letter.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .take(LONGEST_WORD + 1)
        .collect();
    (1..=LONGEST_WORD).contains(&letters.len()).then_some(letters)
}

/// How many letters must be added, omitted, replaced, or swapped with their neighbour.
fn slips_between(one: &[char], other: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (row, letter) in one.iter().enumerate() {
        let mut next = Vec::with_capacity(last.len());
        next.push(row + 1);
        for (column, (against, window)) in other.iter().zip(last.windows(2)).enumerate() {
            let [replaced, left_out] = window else { continue };
            let added = next.last().copied().unwrap_or(usize::MAX - 1);
            let mut slips = (replaced + usize::from(letter != against))
                .min(left_out + 1)
                .min(added + 1);
            let exchanged = row > 0
                && column > 0
                && one.get(row - 1) == Some(against)
                && other.get(column - 1) == Some(letter);
            if exchanged && let Some(earlier) = before.get(column - 1) {
                slips = slips.min(earlier + 1);
            }
            next.push(slips);
        }
        before = std::mem::replace(&mut last, next);
    }
    last.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 6] = ["start_time", "window_size", "tz", "metric", "HeartRate", "strict"];

    #[test]
    fn a_slip_or_another_way_of_joining_words_is_recognised() {
        for (text, name) in [
            ("windowsize", "window_size"),
            ("window-size", "window_size"),
            ("startTime", "start_time"),
            ("strat_time", "start_time"),
            ("metrics", "metric"),
            ("metirc", "metric"),
            ("heart_rate", "HeartRate"),
            ("tx", "tz"),
        ] {
            assert_eq!(nearest(text, KNOWN), Some(name), "{text}");
        }
    }

    #[test]
    fn what_is_far_from_every_name_has_no_nearest() {
        let long = "metric".repeat(100);
        for text in ["colour", "limit", "", "_", "ab", "class", &long] {
            assert_eq!(nearest(text, KNOWN), None, "{text}");
        }
    }

    #[test]
    fn slips_are_counted() {
        let letters = |text: &str| text.chars().collect::<Vec<char>>();
        for (one, other, slips) in [
            ("", "", 0),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
            ("ab", "ba", 1),
            ("same", "same", 0),
        ] {
            assert_eq!(
                slips_between(&letters(one), &letters(other)),
                slips,
                "{one} {other}"
            );
            assert_eq!(
                slips_between(&letters(other), &letters(one)),
                slips,
                "{other} {one}"
            );
        }
    }
}
