//! Lengths of time as messages name them.

use std::time::Duration;

/// The units, with their length in seconds, largest first.
const UNITS: [(&str, u64); 4] = [
    ("day", 24 * 60 * 60),
    ("hour", 60 * 60),
    ("minute", 60),
    ("second", 1),
];

/// A length of time in the largest unit of which it is a whole number: `1 day`, `36 hours`, `90 seconds`.
/// Parts of a second are left out.
#[must_use]
pub fn in_whole_units(length: Duration) -> String {
    let seconds = length.as_secs();
    let fits = |(_, unit): &(&str, u64)| seconds >= *unit && seconds.is_multiple_of(*unit);
    let (name, unit) = UNITS.into_iter().find(fits).unwrap_or(("second", 1));
    match seconds / unit {
        1 => format!("1 {name}"),
        many => format!("{many} {name}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_unit_that_fits_is_named() {
        for (seconds, named) in [
            (0, "0 seconds"),
            (1, "1 second"),
            (90, "90 seconds"),
            (120, "2 minutes"),
            (3_600, "1 hour"),
            (36 * 3_600, "36 hours"),
            (86_400, "1 day"),
            (365 * 86_400, "365 days"),
        ] {
            assert_eq!(in_whole_units(Duration::from_secs(seconds)), named);
        }
    }
}
