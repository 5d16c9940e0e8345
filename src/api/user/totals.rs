//! How much the caller has: `/user/v1alpha1/totals`.

use std::collections::BTreeSet;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::app::AppState;
use crate::api::extract::Checked;
use crate::api::listed::{ListingQuery, one_as};
use crate::api::problem::ApiError;
use crate::auth::tokens::Reader;
use crate::model::sources::product_of;
use crate::model::time::{Instant, MICROS_PER_DAY, TimeRange};
use crate::output::{ColumnKind, ListedColumn};

/// 0002-01-01: starts from then on count. A stay with an unknown arrival begins in the year before.
const FIRST_COUNTED: Instant = Instant::from_micros(Instant::MIN.micros() + 365 * MICROS_PER_DAY);

/// Totals of the caller's records.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct UserTotals {
    pub averages: Averages,
    /// Days in UTC from the day on which the first record starts to the day on which the last one starts,
    /// both counted. Records in the future and records with an unknown start are left out.
    pub total_days: i64,
    /// Products that the sources name, such as a model of watch.
    pub total_devices: i64,
    pub total_records: i64,
    pub total_sources: i64,
}

/// Averages of all records over all days, rounded to whole numbers. A month is a twelfth of 365.2425 days.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Averages {
    pub records_per_day: i64,
    pub records_per_hour: i64,
    pub records_per_month: i64,
    pub records_per_week: i64,
}

const COLUMNS: [ListedColumn; 5] = [
    ListedColumn::new("averages", ColumnKind::Json),
    ListedColumn::new("total_days", ColumnKind::Whole),
    ListedColumn::new("total_devices", ColumnKind::Whole),
    ListedColumn::new("total_records", ColumnKind::Whole),
    ListedColumn::new("total_sources", ColumnKind::Whole),
];

/// How many records there are, from how many sources, over how many days.
#[utoipa::path(get, path = "/user/v1alpha1/totals", tag = "people",
    params(Checked<ListingQuery>),
    responses((status = 200, description = "Totals and averages", body = UserTotals)))]
pub async fn totals(
    State(app): State<AppState>,
    reader: Reader,
    Checked(query): Checked<ListingQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let person = reader.person();
    let all_time = TimeRange::ALWAYS;
    let permit = app.grants.readable_types(&reader, person, all_time).await?;
    let now = app.clock.now().max(FIRST_COUNTED);
    let until_now = TimeRange::new(FIRST_COUNTED, now).ok_or_else(|| ApiError::internal("no time"))?;
    let totals = app.questions.totals(&permit, until_now).await?;
    let sources = app.questions.sources_of(person).await?;
    let devices: BTreeSet<&str> = sources.keys().filter_map(product_of).collect();
    let days = totals
        .starts
        .map_or(0, |(first, last)| day(last) - day(first) + 1);
    let answer = UserTotals {
        averages: Averages::of(totals.records, days),
        total_days: days,
        total_devices: devices.len() as i64,
        total_records: totals.records,
        total_sources: sources.keys().len() as i64,
    };
    one_as(&app, &headers, query.form, &COLUMNS, &answer).await
}

const fn day(moment: Instant) -> i64 {
    moment.micros().div_euclid(MICROS_PER_DAY)
}

impl Averages {
    fn of(records: i64, days: i64) -> Self {
        let per = |length: f64| match days {
            0 => 0,
            days => (records as f64 * length / days as f64).round() as i64,
        };
        Self {
            records_per_day: per(1.0),
            records_per_hour: per(1.0 / 24.0),
            records_per_month: per(365.2425 / 12.0),
            records_per_week: per(7.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_are_rounded_and_nothing_where_there_are_no_days() {
        let averages = Averages {
            records_per_day: 33,
            records_per_hour: 1,
            records_per_month: 1015,
            records_per_week: 233,
        };
        assert_eq!(Averages::of(100, 3), averages);
        assert_eq!(Averages::of(0, 0).records_per_week, 0);
    }
}
