//! Where somebody was, and when they meant to be somewhere: locations, visits, calendars, workouts.
//!
//! Positions have two sources: the device (`mobile_os`), which also reports visits, and a maps provider
//! (`maps`). Raw reads return rows as they were recorded, in the shape that clients know; derived ones (where
//! at a time, a series of places, stays) use only plausible fixes. Everything is read through permits.
//! Nothing here knows of requests to Almanac; only [`geocoder`] speaks HTTP, with the service that it asks
//! for names.

mod as_of;
pub mod at_time;
pub mod bounds;
pub mod calendar;
pub mod completed;
mod fixes;
pub mod geocoder;
mod location_source;
pub mod named;
mod open_ends;
mod pinned;
pub mod raw;
pub mod series;
pub mod stays;
pub mod updates;
pub mod visits;
mod wider_range;
pub mod workouts;

pub use super::ground::events::{CALENDAR_EVENTS, PLATFORM_VISITS};
pub use location_source::{LocationSource, MAPS_UPDATES, PLATFORM_UPDATES};
pub use pinned::Granted;
pub use wider_range::widened;

pub const WORKOUTS: &str = "PlatformWorkout";
pub const CALENDARS: &str = "Calendar";
