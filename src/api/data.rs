//! Reading: `/data/v0`, `/data/v1` and `/data/v1alpha1`.

pub mod aggregates;
mod asking;
pub mod calendars;
pub mod catalog;
pub mod frames;
pub mod insight;
pub mod listings;
pub mod locations;
pub mod metrics_catalog;
pub mod names;
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
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::app::Shared;
use crate::api::docs::common::also_answering;
use crate::api::spellings::also_of_participants;

/// Every route that reads.
#[must_use]
pub fn routes() -> OpenApiRouter<Shared> {
    let pressure = [StatusCode::TOO_MANY_REQUESTS, StatusCode::GATEWAY_TIMEOUT];
    catalogues().merge(also_answering(questions(), &pressure))
}

/// Answers that are kept.
#[must_use]
pub fn frame_routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(frames::list, frames::create))
        .routes(routes!(frames::one, frames::remove))
}

/// What there is. Answered at once.
fn catalogues() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(metrics_catalog::metrics_catalog))
        .merge(also_of_participants(routes!(sleep::sleep_stage_metadata)))
        .routes(routes!(catalog::catalog))
        .routes(routes!(catalog::catalog_entry))
        .routes(routes!(catalog::catalog_schema))
        .routes(routes!(listings::updates))
        .routes(routes!(catalog::data_types))
        .routes(routes!(listings::data_available))
        .routes(routes!(listings::data_sources))
}

/// What it is. Each waits for its turn, and has a deadline.
#[expect(deprecated, reason = "the interface keeps its older routes")]
fn questions() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .merge(also_of_participants(routes!(samples::metric_samples)))
        .merge(also_of_participants(routes!(series::metric_time_series)))
        .merge(also_of_participants(routes!(series::time_series_grouped)))
        .merge(also_of_participants(routes!(
            locations::platform_location_updates
        )))
        .merge(also_of_participants(routes!(locations::platform_location_visits)))
        .merge(also_of_participants(routes!(locations::maps_location_updates)))
        .merge(also_of_participants(routes!(locations::maps_location_bounds)))
        .merge(also_of_participants(routes!(locations::location_updates)))
        .merge(also_of_participants(routes!(whereabouts::location_at_time)))
        .merge(also_of_participants(routes!(whereabouts::location_time_series)))
        .merge(also_of_participants(routes!(workouts::platform_workouts)))
        .routes(routes!(calendars::calendars))
        .routes(routes!(calendars::calendar_events))
        .merge(also_of_participants(routes!(sleep::sleep_stages)))
        .merge(also_of_participants(routes!(sleep::sleep_cycles)))
        .merge(also_of_participants(routes!(sleep::sleep_agg)))
        .merge(also_of_participants(routes!(
            sleep::extended::sleep_cycles_extended
        )))
        .routes(routes!(records::event))
        .routes(routes!(records::latest_event))
        .routes(routes!(records::event_summary))
        .routes(routes!(records::metric))
        .routes(routes!(selector::selected_records))
        .routes(routes!(sql::sql))
        .routes(routes!(aggregates::event_aggregate))
        .routes(routes!(aggregates::metric_aggregate))
        .routes(routes!(insight::insight))
}
