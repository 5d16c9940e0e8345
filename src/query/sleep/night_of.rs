//! Dates nights. A night lasts from noon to noon on the wall clock of a zone, and has the date on which it
//! begins, so that going to bed after midnight changes nothing.

use datafusion::arrow::datatypes::{DataType, Field};

use crate::model::time::MICROS_PER_DAY;
use crate::model::zone::Zone;

/// The column that names the night.
const NIGHT_OF: &str = "night_of";

pub(super) fn field() -> Field {
    Field::new(NIGHT_OF, DataType::Date32, false)
}

/// The night that contains a moment, in days since 1970.
pub(super) fn night_of(zone: &Zone, micros: i64) -> i32 {
    let days = zone
        .wall_clock(micros)
        .saturating_sub(MICROS_PER_DAY / 2)
        .div_euclid(MICROS_PER_DAY);
    i32::try_from(days).unwrap_or(if days < 0 { i32::MIN } else { i32::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::parse_instant;

    #[test]
    fn a_night_reaches_from_noon_to_noon_where_it_is() {
        let night = |zone: &str, moment: &str| {
            let days = night_of(
                &Zone::parse(zone).unwrap(),
                parse_instant(moment).unwrap().micros(),
            );
            let day = chrono::DateTime::UNIX_EPOCH + chrono::Duration::days(days.into());
            day.date_naive().to_string()
        };
        for (zone, moment, day) in [
            ("UTC", "2024-06-01T12:00:00Z", "2024-06-01"),
            ("UTC", "2024-06-02T11:59:59.999999Z", "2024-06-01"),
            ("Europe/Berlin", "2024-06-01T22:30:00Z", "2024-06-01"),
            ("Europe/Berlin", "2024-06-02T10:00:00Z", "2024-06-02"),
            ("America/Los_Angeles", "2024-06-02T13:00:00Z", "2024-06-01"),
            ("America/New_York", "2024-11-03T16:59:59Z", "2024-11-02"),
            ("America/New_York", "2024-11-03T17:00:00Z", "2024-11-03"),
            ("UTC", "1969-12-31T23:00:00Z", "1969-12-31"),
        ] {
            assert_eq!(night(zone, moment), day, "{moment} in {zone}");
        }
    }
}
