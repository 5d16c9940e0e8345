//! Calendars, and the events in them.
//!
//! An event that lasts all day has no hours of its own: it covers whole days of the zone it was planned in
//! (UTC where it names none), and is selected by these. Its dates arrive in two forms. Midnights in UTC are
//! dates: they mean these days, wherever the event takes place. All others are moments: they mean the days
//! they fall on in the event's zone. The row shows the times as they were recorded.

use std::sync::Arc;

use datafusion::arrow::array::{BooleanArray, RecordBatch};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::common::Result;
use datafusion::physical_plan::PlanProperties;
use futures::StreamExt as _;
use futures::stream::BoxStream;

use crate::model::time::{MICROS_PER_DAY, TimeRange};
use crate::query::for_others;
use crate::query::ground::events::Events;
use crate::query::operator::{Input, Operator, Plan, Step, Task, like, only};
use crate::query::paging::RowKey;
use crate::query::{Prepared, QueryError, Questions};

use super::completed::Otherwise;
use super::pinned::Granted;
use super::raw::{RawSpec, shown};

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

/// The columns that locate a row of calendars.
pub const CALENDAR_KEY: RowKey = RowKey {
    start: "inserted_at",
    end: None,
    id: Some("calendar_id"),
    kind: None,
};

/// Columns of a calendar that are never null, with their defaults.
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
    ("color", Otherwise::Text("")),
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

/// The columns that locate a row of events.
pub const EVENT_KEY: RowKey = RowKey {
    start: "start_date",
    end: Some("end_date"),
    id: Some("calendar_event_id"),
    kind: None,
};

/// How far the days of an event can reach beyond its recorded times: a day on either side, plus the greatest
/// difference between two zones.
pub const DAY_MARGIN: i64 = 3 * MICROS_PER_DAY;

impl<Authority> Questions<Authority> {
    /// The events that take place in `range`. The permit is requested with `DAY_MARGIN` around it. Somebody
    /// other than the owner sees the part of an event inside the range, and events of whole days only if all
    /// of these days are visible to them.
    pub async fn calendar_events(
        &self,
        granted: &Granted<Authority>,
        spec: &RawSpec,
        range: TimeRange,
    ) -> Result<Prepared, QueryError> {
        let pinned = self.pinned_one(granted).await?;
        let mut read = spec.clone();
        read.columns.extend(Events::COLUMNS);
        let stored = self.chosen(&pinned, &read, None)?;
        let stored = match granted.permit.shared_with() {
            None => stored,
            Some(shared) => for_others::cut_again(
                stored,
                &granted.partition.data_type,
                shared.edges.within(range),
                shared.edges.clone(),
            ),
        };
        let windows = pinned
            .windows(None)
            .into_iter()
            .filter_map(|window| window.overlap(range))
            .collect::<Vec<_>>();
        let step = TakingPlace {
            windows: windows.into(),
        };
        let chosen: Plan = Arc::new(Operator::over(step, vec![stored]));
        let plan = shown(chosen, &granted.permit, &granted.partition, spec)?;
        Ok(Prepared::of(plan, vec![pinned.state()], pinned.scope()))
    }
}

/// Passes on the events that take place in one of the windows.
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
