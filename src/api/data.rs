//! Reading: `/data/v0`, `/data/v1` and `/data/v1alpha1`.

pub mod aggregates;
mod asked_page;
mod asking;
pub mod calendars;
pub mod catalog;
mod computed_metric;
pub mod frames;
pub mod insight;
mod listed_type;
pub mod listings;
pub mod locations;
pub mod metrics_catalog;
mod named_metrics;
pub mod names;
mod partitions;
mod permitted_records;
mod read_request;
pub mod records;
pub mod samples;
pub mod selector;
pub mod series;
mod shared_types;
pub mod sleep;
pub mod sql;
mod units;
pub mod whereabouts;
pub mod workouts;

use axum::http::StatusCode;

use crate::api::docs::common::also_answering;
use crate::api::endpoints::{Routes, endpoint};
use crate::api::spellings::also_of_participants;

/// Every route that reads.
pub fn routes() -> Routes {
    const PRESSURE: [StatusCode; 2] = [StatusCode::TOO_MANY_REQUESTS, StatusCode::GATEWAY_TIMEOUT];
    catalogues().merge(also_answering(questions(), &PRESSURE))
}

/// Answers that are kept.
pub fn frame_routes() -> Routes {
    Routes::new()
        .with(endpoint!(frames::list, frames::create))
        .with(endpoint!(frames::one, frames::remove))
}

/// Listings of what there is. Answered at once.
fn catalogues() -> Routes {
    Routes::new()
        .with(endpoint!(metrics_catalog::metrics_catalog))
        .merge(also_of_participants(endpoint!(sleep::sleep_stage_metadata)))
        .with(endpoint!(catalog::catalog))
        .with(endpoint!(catalog::catalog_entry))
        .with(endpoint!(catalog::catalog_schema))
        .with(endpoint!(listings::updates))
        .with(endpoint!(catalog::data_types))
        .with(endpoint!(listings::data_available))
        .with(endpoint!(listings::data_sources))
}

/// Questions about the data itself. Each waits for its turn, and has a deadline.
#[expect(deprecated, reason = "the interface keeps its older routes")]
fn questions() -> Routes {
    Routes::new()
        .merge(also_of_participants(endpoint!(samples::metric_samples)))
        .merge(also_of_participants(endpoint!(series::metric_time_series)))
        .merge(also_of_participants(endpoint!(series::time_series_grouped)))
        .merge(also_of_participants(endpoint!(
            locations::platform_location_updates
        )))
        .merge(also_of_participants(endpoint!(
            locations::platform_location_visits
        )))
        .merge(also_of_participants(endpoint!(locations::maps_location_updates)))
        .merge(also_of_participants(endpoint!(locations::maps_location_bounds)))
        .merge(also_of_participants(endpoint!(locations::location_updates)))
        .merge(also_of_participants(endpoint!(whereabouts::location_at_time)))
        .merge(also_of_participants(endpoint!(whereabouts::location_time_series)))
        .merge(also_of_participants(endpoint!(workouts::platform_workouts)))
        .with(endpoint!(calendars::calendars))
        .merge(also_of_participants(endpoint!(calendars::calendar_events)))
        .merge(also_of_participants(endpoint!(sleep::sleep_stages)))
        .merge(also_of_participants(endpoint!(sleep::sleep_cycles)))
        .merge(also_of_participants(endpoint!(sleep::sleep_agg)))
        .merge(also_of_participants(endpoint!(
            sleep::extended::sleep_cycles_extended
        )))
        .with(endpoint!(records::event))
        .with(endpoint!(records::latest_event))
        .with(endpoint!(records::event_summary))
        .with(endpoint!(records::metric))
        .with(endpoint!(selector::selected_records))
        .with(endpoint!(sql::sql))
        .with(endpoint!(aggregates::event_aggregate))
        .with(endpoint!(aggregates::metric_aggregate))
        .with(endpoint!(insight::insight))
}
