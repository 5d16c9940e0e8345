//! Calendars, and the events in them.
//!
//! An event that lasts all day has no hours of its own: it covers whole days of the zone it was planned in
//! (UTC where it names none), and is selected by these. Its dates arrive in two spellings. Midnights in UTC
//! are dates: they mean these days, wherever the event takes place. Anything else are moments: the days they
//! fall on in the event's zone. The row shows the times as they were recorded.

use std::sync::Arc;

use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeZone as _, Utc};
use chrono_tz::Tz;
use datafusion::arrow::array::{
    Array, AsArray, BooleanArray, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use datafusion::arrow::compute::{cast, filter_record_batch};
use datafusion::arrow::datatypes::{DataType as ArrowType, TimestampMicrosecondType};
use datafusion::common::{DataFusionError, Result};
use datafusion::physical_plan::{ExecutionPlan, PlanProperties};
use futures::StreamExt as _;
use futures::stream::BoxStream;

use crate::model::time::{Instant, TimeRange};
use crate::query::operator::{Input, Operator, Plan, Step, Task, like, only};
use crate::query::records::{Archive, Prepared, QueryError};
use crate::query::shape::{self, Sees};
use crate::query::shared;

use super::raw::{RawSpec, columns};
use super::workouts::Otherwise;
use super::{Granted, overlap};

/// The columns of a calendar.
pub const CALENDAR_COLUMNS: &[&str] = &[
    "calendar_id",
    "calendar_identifier",
    "calendar_name",
    "calendar_color",
    "calendar_type",
    "calendar_source_id",
    "calendar_source_name",
    "source_type",
    "svc_source",
    "inserted_at",
    "is_immutable",
    "is_subscribed",
    "color",
];

/// Those that a calendar always has.
pub const CALENDAR_DEFAULTS: &[(&str, Otherwise)] = &[
    ("calendar_identifier", Otherwise::Text("")),
    ("calendar_name", Otherwise::Text("")),
    ("calendar_color", Otherwise::Text("")),
    ("calendar_type", Otherwise::Text("")),
    ("calendar_source_id", Otherwise::Text("")),
    ("calendar_source_name", Otherwise::Text("")),
    ("source_type", Otherwise::Text("")),
    ("svc_source", Otherwise::Text("")),
    ("is_immutable", Otherwise::False),
    ("is_subscribed", Otherwise::False),
];

/// The columns of an event.
pub const EVENT_COLUMNS: &[&str] = &[
    "calendar_event_id",
    "calendar_id",
    "start_date",
    "end_date",
    "allow_new_time_proposals",
    "availability",
    "calendar_item_external_identifier",
    "calendar_item_identifier",
    "event_identifier",
    "creation_date",
    "last_modified_date",
    "occurrence_date",
    "extras",
    "geolocation",
    "has_alarms",
    "has_attendees",
    "has_notes",
    "has_recurrence_rules",
    "is_all_day",
    "is_detached",
    "location",
    "notes",
    "title",
    "url",
    "time_zone",
    "organizer",
    "participants",
    "recurrence_rules",
    "status",
];

/// How far the days of an event can reach beyond its recorded times: a day on either side, and as far as two
/// zones are apart.
pub const DAY_MARGIN: i64 = 3 * 86_400 * 1_000_000;

impl<Authority> Archive<Authority> {
    /// The events that take place in `range`. The permit is asked for with `DAY_MARGIN` around it. Another
    /// person than the owner sees of an event the part inside the range, and events of whole days where they
    /// may see all of these days.
    pub async fn calendar_events(
        &self,
        granted: &Granted<Authority>,
        spec: &RawSpec,
        range: TimeRange,
    ) -> Result<Prepared, QueryError> {
        let pinned = self.pinned_one(granted).await?;
        let stored = self.chosen(&pinned, spec, &[], None)?;
        let stored = match granted.permit.shared_with() {
            None => stored,
            Some(shared) => shared::cut_again(
                stored,
                &granted.source.data_type,
                shared.edges.within(range),
                shared.edges.clone(),
            ),
        };
        let windows = pinned
            .windows(None)
            .into_iter()
            .filter_map(|window| overlap(window, range))
            .collect::<Vec<_>>();
        let step = TakingPlace {
            windows: windows.into(),
        };
        let chosen: Arc<dyn ExecutionPlan> = Arc::new(Operator::over(step, vec![stored]));
        let sees = Sees::through(&granted.permit);
        let shown = shape::project(
            chosen,
            &granted.source.data_type.layout,
            spec.ids,
            sees,
            shape::everything,
        )?;
        let plan = columns(shown, spec.columns)?;
        Ok(Prepared {
            schema: plan.schema(),
            plan,
            states: vec![pinned.state()],
            scope: pinned.scope(),
        })
    }
}

/// Lets the events through that take place in one of the windows.
#[derive(Clone, Debug)]
struct TakingPlace {
    windows: Arc<[TimeRange]>,
}

impl Step for TakingPlace {
    const NAME: &'static str = "TakingPlaceExec";
    const KEEPS_ORDER: bool = true;

    fn gives(&self, inputs: &[Plan]) -> PlanProperties {
        like(inputs)
    }

    fn run(self, inputs: Vec<Input>, _task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let rows = only(inputs)?.open()?;
        let chosen = rows.map(move |batch| {
            let batch = batch?;
            let keep = self.among(&batch)?;
            Ok(filter_record_batch(&batch, &keep)?)
        });
        Ok(chosen.boxed())
    }
}

impl TakingPlace {
    fn among(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let events = Events::of(batch)?;
        Ok((0..batch.num_rows())
            .map(|row| {
                let (start, end) = events.span(row);
                Some(self.windows.iter().any(|window| window.selects(start, end)))
            })
            .collect())
    }
}

/// What decides when events take place.
pub(in crate::query) struct Events {
    starts: TimestampMicrosecondArray,
    ends: TimestampMicrosecondArray,
    all_day: BooleanArray,
    zones: StringArray,
}

impl Events {
    pub(in crate::query) fn of(batch: &RecordBatch) -> Result<Self> {
        let column = |name: &str| {
            batch
                .column_by_name(name)
                .ok_or_else(|| DataFusionError::Internal(format!("events have no {name}")))
        };
        let times = |name: &str| {
            Ok::<_, DataFusionError>(column(name)?.as_primitive::<TimestampMicrosecondType>().clone())
        };
        Ok(Self {
            starts: times("start_time")?,
            ends: times("end_time")?,
            all_day: column("is_all_day")?.as_boolean().clone(),
            zones: cast(column("time_zone")?, &ArrowType::Utf8)?
                .as_string::<i32>()
                .clone(),
        })
    }

    fn span(&self, row: usize) -> (Instant, Instant) {
        let (start, end) = (
            Instant::from_micros(self.starts.value(row)),
            Instant::from_micros(self.ends.value(row)),
        );
        self.days(row).unwrap_or((start, end))
    }

    /// The days that an event lasts, if it lasts whole ones.
    pub(in crate::query) fn days(&self, row: usize) -> Option<(Instant, Instant)> {
        if !(self.all_day.is_valid(row) && self.all_day.value(row)) {
            return None;
        }
        let (start, end) = (
            Instant::from_micros(self.starts.value(row)),
            Instant::from_micros(self.ends.value(row)),
        );
        let zone = if self.zones.is_valid(row) {
            self.zones.value(row)
        } else {
            "UTC"
        };
        Some(days_of(start, end, zone.parse().unwrap_or(Tz::UTC)).unwrap_or((start, end)))
    }
}

/// The whole days in `zone` that an event from `start` to `end` covers; `None` beyond the calendar.
fn days_of(start: Instant, end: Instant, zone: Tz) -> Option<(Instant, Instant)> {
    let (from, to) = (utc(start)?, utc(end)?);
    let is_midnight = |moment: DateTime<Utc>| moment.time() == NaiveTime::MIN;
    // The end may be the last second or the last microsecond of the day as well as the midnight after it.
    let is_end_of_day = |moment: DateTime<Utc>| {
        is_midnight(moment) || moment.time() >= NaiveTime::from_hms_opt(23, 59, 0).unwrap_or_default()
    };
    let dates = is_midnight(from) && is_end_of_day(to);
    let local = |moment: DateTime<Utc>| {
        if dates {
            moment.naive_utc()
        } else {
            moment.with_timezone(&zone).naive_local()
        }
    };
    let (first, last) = (local(from), local(to));
    let after = if last.time() == NaiveTime::MIN && last.date() > first.date() {
        last.date()
    } else {
        last.date().checked_add_days(Days::new(1))?
    };
    Some((midnight(first.date(), zone)?, midnight(after, zone)?))
}

fn utc(instant: Instant) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_micros(instant.micros())
}

/// When a day begins: at midnight, or at the first moment after it where midnight is skipped.
fn midnight(day: NaiveDate, zone: Tz) -> Option<Instant> {
    let wall = day.and_time(NaiveTime::MIN);
    let begins = (0..=4).find_map(|hours| {
        let later = wall + chrono::TimeDelta::minutes(hours * 30);
        zone.from_local_datetime(&later).earliest()
    });
    // A zone may have skipped a whole day, as one that crossed the date line did: the next day begins where
    // this one would have.
    let begins = begins.map_or_else(
        || {
            zone.from_local_datetime(&(wall + chrono::TimeDelta::days(1)))
                .earliest()
        },
        Some,
    );
    begins.map(|moment| Instant::from_micros(moment.timestamp_micros()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::parse_instant;

    fn days(start: &str, end: &str, zone: &str) -> (String, String) {
        let (from, to) = days_of(
            parse_instant(start).unwrap(),
            parse_instant(end).unwrap(),
            zone.parse().unwrap(),
        )
        .unwrap();
        (from.to_rfc3339(), to.to_rfc3339())
    }

    #[test]
    fn all_day_events_cover_the_days_of_their_own_zone() {
        let may_first_in_new_york = (
            "2024-05-01T04:00:00Z".to_owned(),
            "2024-05-02T04:00:00Z".to_owned(),
        );
        for (start, end) in [
            ("2024-05-01T04:00:00Z", "2024-05-02T04:00:00Z"),
            ("2024-05-01T04:00:00Z", "2024-05-02T03:59:59Z"),
            ("2024-05-01T12:00:00Z", "2024-05-01T12:00:00Z"),
            ("2024-05-01", "2024-05-02"),
            ("2024-05-01", "2024-05-01T23:59:59Z"),
            ("2024-05-01", "2024-05-01"),
        ] {
            assert_eq!(
                days(start, end, "America/New_York"),
                may_first_in_new_york,
                "{start} {end}"
            );
        }
        assert_eq!(
            days("2024-05-01", "2024-05-04", "UTC"),
            (
                "2024-05-01T00:00:00Z".to_owned(),
                "2024-05-04T00:00:00Z".to_owned()
            )
        );
    }

    #[test]
    fn a_day_without_midnight_begins_when_the_clock_jumps() {
        assert_eq!(
            days(
                "2018-11-04T12:00:00Z",
                "2018-11-04T12:00:00Z",
                "America/Sao_Paulo"
            ),
            (
                "2018-11-04T03:00:00Z".to_owned(),
                "2018-11-05T02:00:00Z".to_owned()
            )
        );
        let apia = days("2011-12-30", "2011-12-31", "Pacific/Apia");
        assert!(apia.0 <= apia.1, "the day that Samoa left out: {apia:?}");
    }
}
