//! The shape of workouts: their columns, and what stands where a record says nothing.
//!
//! Knows names of columns only.

use crate::query::paging::RowKey;

use super::completed::Otherwise;

/// The columns of a workout.
pub const WORKOUT_COLUMNS: &[&str] = &[
    "platform_workout_id",
    "all_statistics",
    "device",
    "duration",
    "start_date",
    "end_date",
    "extras",
    "has_undetermined_duration",
    "source_revision",
    "workout_activities",
    "workout_activity_type",
    "workout_events",
];

/// The columns that locate a row of workouts.
pub const WORKOUT_KEY: RowKey = RowKey {
    start: "start_date",
    end: Some("end_date"),
    id: Some("platform_workout_id"),
    kind: None,
};

/// Columns of a workout that are never null, with their defaults.
pub const WORKOUT_DEFAULTS: &[(&str, Otherwise)] = &[
    ("all_statistics", Otherwise::Text("{}")),
    ("duration", Otherwise::Length),
    ("has_undetermined_duration", Otherwise::False),
    ("source_revision", Otherwise::Text("{}")),
    ("workout_activities", Otherwise::NoItems),
    ("workout_activity_type", Otherwise::Text("")),
    ("workout_events", Otherwise::Text("[]")),
];
