//! Versions of software: texts such as `17.2`, kept as they were sent, and the numbers in them.

/// More numbers than any version has.
const MOST_NUMBERS: usize = 16;

/// The numbers of the version in `text`: its first run of numbers separated by points.
#[must_use]
pub fn numbers_of(text: &str) -> Option<Vec<i64>> {
    let first = text.find(|letter: char| letter.is_ascii_digit())?;
    let rest = text.get(first..)?;
    let end = rest
        .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .unwrap_or(rest.len());
    let numbers = rest.get(..end)?.trim_end_matches('.').split('.');
    let numbers: Option<Vec<i64>> = numbers.map(|number| number.parse().ok()).collect();
    numbers.filter(|numbers| numbers.len() <= MOST_NUMBERS)
}

/// The version with these numbers, as it is stored. `None`: they are not the numbers of a version.
#[must_use]
pub fn text_of(numbers: &[i64]) -> Option<String> {
    let is_version = (1..=MOST_NUMBERS).contains(&numbers.len()) && numbers.iter().all(|number| *number >= 0);
    let texts: Vec<String> = numbers.iter().map(i64::to_string).collect();
    is_version.then(|| texts.join("."))
}

/// Whether the version `later` is written as the numbers of `earlier`, and says nothing else.
#[must_use]
pub fn repeats(earlier: &str, later: &str) -> bool {
    let numbers = numbers_of(later);
    let written = numbers.as_deref().and_then(text_of);
    written.is_some_and(|written| written == later) && numbers == numbers_of(earlier)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_version_is_its_numbers() {
        assert_eq!(numbers_of("17.2"), Some(vec![17, 2]));
        assert_eq!(numbers_of("10.4.0"), Some(vec![10, 4, 0]));
        assert_eq!(numbers_of("Version 17.5.1 (Build 21F90)"), Some(vec![17, 5, 1]));
        assert_eq!(numbers_of("14."), Some(vec![14]));
        for text in ["", "beta", "1..2", "99999999999999999999"] {
            assert_eq!(numbers_of(text), None, "{text}");
        }
        assert_eq!(text_of(&[]), None);
        assert_eq!(text_of(&[1, -1]), None);
    }

    #[test]
    fn the_numbers_of_a_version_say_nothing_else() {
        for (earlier, later, expected) in [
            ("Version 17.5 (Build 21F90)", "17.5", true),
            ("17.5", "17.5", true),
            ("17.5", "Version 17.5 (Build 21F90)", false),
            ("Version 17.5 (Build 21F90)", "17.5.0", false),
            ("Version 17.5 (Build 21F90)", "Version 17.5", false),
            ("beta", "beta", false),
        ] {
            assert_eq!(repeats(earlier, later), expected, "{earlier}, {later}");
        }
    }

    proptest! {
        /// Numbers that are stored as text and read again are the same version.
        #[test]
        fn numbers_make_the_text_that_has_them(numbers in prop::collection::vec(0..10_000_i64, 1..5)) {
            prop_assert_eq!(numbers_of(&text_of(&numbers).unwrap()), Some(numbers));
        }
    }
}
