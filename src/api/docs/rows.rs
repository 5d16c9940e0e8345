//! The documentation's view of rows that are things of one kind: workouts, calendars and their events, as an
//! answer shows them where no columns are chosen. Tests check that they are so.

#![expect(dead_code, reason = "these say how JSON looks and are never made")]
#![expect(clippy::struct_field_names, reason = "the interface names them")]

use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

/// A workout.
#[derive(Debug, ToSchema)]
pub struct Workout {
    platform_workout_id: Uuid,
    /// Statistics by quantity: sum, or average, minimum and maximum, with unit and dates.
    #[schema(value_type = Object)]
    all_statistics: Value,
    /// The device that recorded it.
    #[schema(value_type = Option<Object>, required)]
    device: Option<Value>,
    /// Its length without pauses, in seconds.
    duration: f64,
    #[schema(format = DateTime)]
    start_date: String,
    #[schema(format = DateTime)]
    end_date: String,
    /// Everything else that came with it.
    #[schema(value_type = Option<Object>, required)]
    extras: Option<Value>,
    /// Whether it goes on.
    has_undetermined_duration: bool,
    /// The application and device that recorded it.
    #[schema(value_type = Object)]
    source_revision: Value,
    /// Its stretches, in order.
    #[schema(value_type = Vec<Object>)]
    workout_activities: Vec<Value>,
    /// Its kind.
    workout_activity_type: String,
    /// What happened during it, in order.
    #[schema(value_type = Vec<Object>)]
    workout_events: Vec<Value>,
}

/// A calendar.
#[derive(Debug, ToSchema)]
pub struct Calendar {
    calendar_id: Uuid,
    /// Its id on the device.
    calendar_identifier: String,
    calendar_name: String,
    calendar_color: String,
    calendar_type: String,
    /// The id of the account that it belongs to.
    calendar_source_id: String,
    calendar_source_name: String,
    source_type: String,
    /// The name of the source that it comes from.
    svc_source: String,
    /// When it was uploaded first.
    #[schema(format = DateTime)]
    inserted_at: String,
    is_immutable: bool,
    is_subscribed: bool,
    color: String,
}

/// An event in a calendar.
#[derive(Debug, ToSchema)]
pub struct CalendarEvent {
    calendar_event_id: Uuid,
    calendar_id: Uuid,
    #[schema(format = DateTime)]
    start_date: String,
    #[schema(format = DateTime)]
    end_date: String,
    #[schema(required)]
    allow_new_time_proposals: Option<bool>,
    #[schema(required)]
    availability: Option<String>,
    #[schema(required)]
    calendar_item_external_identifier: Option<String>,
    #[schema(required)]
    calendar_item_identifier: Option<String>,
    #[schema(required)]
    event_identifier: Option<String>,
    #[schema(format = DateTime, required)]
    creation_date: Option<String>,
    #[schema(format = DateTime, required)]
    last_modified_date: Option<String>,
    /// When this one of the events that repeat was planned.
    #[schema(format = DateTime, required)]
    occurrence_date: Option<String>,
    /// Everything else that came with it.
    #[schema(value_type = Option<Object>, required)]
    extras: Option<Value>,
    #[schema(required)]
    geolocation: Option<Geolocation>,
    #[schema(required)]
    has_alarms: Option<bool>,
    #[schema(required)]
    has_attendees: Option<bool>,
    #[schema(required)]
    has_notes: Option<bool>,
    #[schema(required)]
    has_recurrence_rules: Option<bool>,
    #[schema(required)]
    is_all_day: Option<bool>,
    /// Whether it was moved away from those with which it repeats.
    #[schema(required)]
    is_detached: Option<bool>,
    #[schema(required)]
    location: Option<String>,
    #[schema(required)]
    notes: Option<String>,
    #[schema(required)]
    title: Option<String>,
    #[schema(required)]
    url: Option<String>,
    #[schema(required)]
    time_zone: Option<String>,
    #[schema(required)]
    organizer: Option<Participant>,
    #[schema(required)]
    participants: Option<Vec<Participant>>,
    #[schema(required)]
    recurrence_rules: Option<Vec<RecurrenceRule>>,
    /// As its device says it, such as confirmed or cancelled.
    #[schema(required)]
    status: Option<String>,
}

/// Where an event takes place, on the map.
#[derive(Debug, ToSchema)]
pub struct Geolocation {
    #[schema(required)]
    altitude: Option<f64>,
    #[schema(required)]
    ellipsoidal_altitude: Option<f64>,
    #[schema(required)]
    floor: Option<f64>,
    #[schema(required)]
    horizontal_accuracy: Option<f64>,
    #[schema(required)]
    latitude: Option<f64>,
    #[schema(required)]
    longitude: Option<f64>,
    #[schema(required)]
    radius: Option<f64>,
    #[schema(required)]
    vertical_accuracy: Option<f64>,
    #[schema(required)]
    is_produced_by_accessory: Option<bool>,
    #[schema(required)]
    is_simulated_by_software: Option<bool>,
    #[schema(format = DateTime, required)]
    location_timestamp: Option<String>,
    #[schema(required)]
    title: Option<String>,
}

/// Somebody who takes part in an event.
#[derive(Debug, ToSchema)]
pub struct Participant {
    #[schema(required)]
    contact_id: Option<Uuid>,
    #[schema(required)]
    is_current_user: Option<bool>,
    #[schema(required)]
    name: Option<String>,
    #[schema(required)]
    participant_role: Option<String>,
    #[schema(required)]
    participant_status: Option<String>,
    #[schema(required)]
    participant_type: Option<String>,
    #[schema(required)]
    url: Option<String>,
}

/// How an event repeats.
#[derive(Debug, ToSchema)]
pub struct RecurrenceRule {
    #[schema(required)]
    calendar_id: Option<Uuid>,
    recurrence_rule_id: Uuid,
    #[schema(required)]
    days_of_the_month: Option<Vec<Value>>,
    #[schema(required)]
    days_of_the_week: Option<Vec<Value>>,
    #[schema(required)]
    days_of_the_year: Option<Vec<Value>>,
    #[schema(required)]
    months_of_the_year: Option<Vec<Value>>,
    #[schema(required)]
    set_positions: Option<Vec<Value>>,
    #[schema(required)]
    weeks_of_the_year: Option<Vec<Value>>,
    /// 1 is Sunday, 7 is Saturday.
    #[schema(required)]
    first_day_of_the_week: Option<i64>,
    #[schema(required, example = "weekly")]
    frequency: Option<String>,
    /// How many units of the frequency lie between two events.
    #[schema(required)]
    interval: Option<i64>,
}
