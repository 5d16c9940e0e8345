//! The units of the numbers in a type's columns: the metric's unit for its value, and for built-in columns
//! the units that their names give. What people declare themselves has the units that they mean.

use std::collections::BTreeMap;

use super::data_type::DataType;
use crate::model::columns::VALUE;

/// Endings of column names, and the units that they stand for.
const ENDINGS: [(&str, &str); 4] = [
    ("_degrees", "deg"),
    ("_meters", "m"),
    ("_seconds", "s"),
    ("_ms", "ms"),
];
/// Columns whose names do not give their unit, or give a wrong one.
const NAMES: [(&str, &str); 6] = [
    ("distance_change_m", "m"),
    ("duration", "s"),
    ("lat", "deg"),
    ("long", "deg"),
    ("speed", "m/s"),
    ("speed_accuracy_meters", "m/s"),
];

impl DataType {
    /// The units of those columns of its records that have one.
    #[must_use]
    pub fn column_units(&self) -> BTreeMap<String, String> {
        let of_value = self.metric.as_ref().and_then(|metric| metric.unit.clone());
        let columns = self.layout.read.iter();
        columns
            .filter_map(|column| {
                let unit = if column.name == VALUE && self.metric.is_some() {
                    of_value.clone()
                } else {
                    self.owner
                        .is_none()
                        .then(|| unit_of(&column.name))
                        .flatten()
                        .map(str::to_owned)
                };
                Some((column.name.clone(), unit?))
            })
            .collect()
    }
}

/// The unit that a column's name stands for, for built-in types and answers about sleep or places.
#[must_use]
pub fn unit_of(column: &str) -> Option<&'static str> {
    let named = NAMES.iter().find(|(name, _)| *name == column);
    let ending = ENDINGS.iter().find(|(ending, _)| column.ends_with(ending));
    named.or(ending).map(|(_, unit)| *unit)
}

#[cfg(test)]
mod tests {
    use crate::model::registry::Registry;

    #[test]
    fn a_metric_has_the_unit_of_its_value_and_places_have_those_of_their_names() {
        let registry = Registry::builtin().unwrap();
        let units = |name: &str| registry.get(name).unwrap().column_units();
        assert_eq!(units("HeartRate").get("value").unwrap(), "bpm");
        let places = units("PlatformLocationUpdate");
        for (column, unit) in [
            ("latitude_degrees", "deg"),
            ("horizontal_accuracy_meters", "m"),
            ("course_heading_degrees", "deg"),
            ("speed", "m/s"),
            ("speed_accuracy_meters", "m/s"),
        ] {
            assert_eq!(places.get(column).map(String::as_str), Some(unit), "{column}");
        }
        assert!(
            !places.contains_key("floor") && !places.contains_key("uuid"),
            "{places:?}"
        );
        assert_eq!(units("PlatformWorkout").get("duration").unwrap(), "s");
        assert!(units("CalendarEvent").is_empty());
    }
}
