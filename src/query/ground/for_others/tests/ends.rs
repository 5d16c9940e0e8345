//! Which visits with an unknown end, and which events of whole days, are shown to others.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::arrow::compute::cast;
use uuid::Uuid;

use crate::model::ids::PersonId;
use crate::model::permit::{ReadPermit, Windows};
use crate::model::time::TimeRange;
use crate::query::Order;
use crate::query::for_others::reached_within;
use crate::query::places::calendar::{DAY_MARGIN, EVENT_COLUMNS};
use crate::query::places::raw::RawSpec;
use crate::query::places::widened;
use crate::query::records::RecordsSpec;
use crate::query::shape::IdForm;

use super::bench::{Anybody, Bench, View, range};
use super::given::{BEGIN, CALENDAR, DAY, FAR_OFF, GivenRow, HOUR, LONG_AGO, VISITS};
use super::rules::{all, given, starts_and_ends};

#[tokio::test(flavor = "multi_thread")]
async fn rule_9_2c_a_visit_of_which_neither_end_is_known_is_seen_where_all_time_is() {
    let bench = Bench::new().await;
    let visits = vec![
        given(LONG_AGO, FAR_OFF, 1.0),
        given(BEGIN, BEGIN + HOUR, 1.0),
        given(BEGIN + 2 * HOUR, FAR_OFF, 1.0),
    ];
    let owner = bench.person(&[(VISITS, vec![visits])]).await;
    let always = TimeRange::ALWAYS;
    let shared = |granted: TimeRange| View::Shared(owner, Windows::new([granted]));
    for (view, expected) in [
        (View::Own(owner), 3),
        (shared(always), 3),
        // The last of them ends where this ends, so that others may follow.
        (shared(range(LONG_AGO, FAR_OFF)), 3),
        (
            shared(TimeRange::between(range(BEGIN, FAR_OFF).start(), always.end())),
            2,
        ),
        (shared(range(LONG_AGO, FAR_OFF - 1)), 2),
    ] {
        let (permit, partitions) = (view.permit(VISITS, always), [bench.partition(VISITS)]);
        let prepared = bench.questions.records(&permit, &partitions, &all(&[])).await;
        let rows = bench.run(prepared.unwrap().plan).await;
        let available = bench.questions.available(&view.listing(always), always).await;
        let counts: Vec<i64> = available.unwrap().iter().map(|found| found.records).collect();
        assert_eq!(
            (rows.num_rows(), counts),
            (expected, vec![expected as i64]),
            "{view:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_9_2c_an_event_of_whole_days_is_seen_where_all_of_its_days_are() {
    let bench = Bench::new().await;
    // Midnights in UTC are dates; in Berlin the 30th begins an hour earlier.
    let event = GivenRow {
        all_day: true,
        ..given(BEGIN, BEGIN + DAY, 1.0)
    };
    let owner = bench.person(&[(CALENDAR, vec![vec![event]])]).await;
    let asked = range(BEGIN + 9 * HOUR, BEGIN + 10 * HOUR);
    let seen = async |from: i64, to: i64| {
        let view = View::Shared(owner, Windows::new([range(BEGIN + from, BEGIN + to)]));
        let granted = bench.granted(&view, CALENDAR, widened(asked, DAY_MARGIN, DAY_MARGIN));
        let spec = RawSpec {
            columns: EVENT_COLUMNS.to_vec(),
            only: None,
            ids: IdForm::Text,
        };
        let prepared = bench
            .questions
            .calendar_events(&granted, &spec, asked)
            .await
            .unwrap();
        starts_and_ends(&bench.run(prepared.plan).await)
    };
    assert_eq!(seen(-HOUR, 23 * HOUR).await, [(BEGIN, BEGIN + DAY)]);
    assert_eq!(seen(0, 23 * HOUR).await, []);
    assert_eq!(seen(-HOUR, 23 * HOUR - 1).await, []);
    assert_eq!(seen(8 * HOUR, 11 * HOUR).await, []);
}

/// Pages of one record are together what is answered without pages: so many records.
async fn assert_paged(bench: &Bench, permit: &ReadPermit<Anybody>, name: &str, expected: usize) {
    let partitions = [bench.partition(name)];
    for order in [Order::Ascending, Order::Descending] {
        let whole = RecordsSpec { order, ..all(&[]) };
        let prepared = bench.questions.records(permit, &partitions, &whole).await;
        let together = bench.told(prepared.unwrap()).await;
        assert_eq!(together.len(), expected, "{name} {order:?}");
        let mut spec = RecordsSpec {
            limit: Some(1),
            ..whole
        };
        let mut paged = Vec::new();
        loop {
            let page = bench.questions.page_of_records(permit, &partitions, &spec).await;
            let (prepared, next) = page.unwrap();
            paged.extend(bench.told(prepared).await);
            match next.find_start(&bench.questions.engine).await.unwrap() {
                Some(place) => spec.after = Some(place),
                None => break,
            }
        }
        assert_eq!(paged, together, "{name} {order:?}");
    }
}

/// A visit whose arrival is unknown begins in the year 1, and is seen where its departure is.
#[tokio::test(flavor = "multi_thread")]
async fn every_visit_of_unknown_arrival_is_on_a_page_from_either_end() {
    let bench = Bench::new().await;
    let visits = (1..=3_i64).map(|hour| GivenRow {
        id: hour.unsigned_abs().into(),
        ..given(LONG_AGO, BEGIN + hour * HOUR, 1.0)
    });
    let known = given(BEGIN + 4 * HOUR, BEGIN + 5 * HOUR, 1.0);
    let visits = visits.chain([known]).collect();
    let owner = bench.person(&[(VISITS, vec![visits])]).await;
    let day = range(BEGIN, BEGIN + DAY);
    let permit = View::Shared(owner, Windows::new([day])).permit(VISITS, day);
    assert_paged(&bench, &permit, VISITS, 4).await;
}

/// A reader who names what is recorded of an unknown end finds the visits that are seen at the other one.
#[tokio::test(flavor = "multi_thread")]
async fn rule_9_2c_a_visit_of_an_unknown_end_is_found_by_either_of_its_recorded_times() {
    let bench = Bench::new().await;
    let visits = [(LONG_AGO, BEGIN + HOUR), (BEGIN + 2 * HOUR, FAR_OFF)];
    let visits = visits.map(|(start, end)| given(start, end, 1.0)).to_vec();
    let owner = bench.person(&[(VISITS, vec![visits])]).await;
    let day = range(BEGIN, BEGIN + DAY);
    let permit = View::Shared(owner, Windows::new([day])).permit(VISITS, day);
    for recorded in [
        range(LONG_AGO, LONG_AGO + 1),
        range(FAR_OFF - 1, FAR_OFF + 1),
        day,
    ] {
        let permit = permit.within(reached_within(permit.data_type(), recorded));
        assert_paged(&bench, &permit, VISITS, 2).await;
    }
}

/// Events where days begin four hours after the midnights in UTC.
fn in_new_york(events: &[GivenRow]) -> RecordBatch {
    let rows = super::given::batch(CALENDAR, events);
    let zone = rows.schema().index_of("time_zone").unwrap();
    let mut columns = rows.columns().to_vec();
    let name: ArrayRef = Arc::new(StringArray::from(vec!["America/New_York"; events.len()]));
    columns[zone] = cast(&name, columns[zone].data_type()).unwrap();
    RecordBatch::try_new(rows.schema(), columns).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_9_2c_an_event_of_one_day_is_seen_where_the_day_is_however_short_it_was_recorded() {
    let bench = Bench::new().await;
    let midnight = BEGIN + 3 * DAY;
    let ends = [midnight, midnight + DAY - 1_000_000, midnight + DAY];
    let events = [1, 2, 3].into_iter().zip(ends).map(|(id, end)| GivenRow {
        id,
        all_day: true,
        ..given(midnight, end, 1.0)
    });
    let owner = PersonId(Uuid::now_v7());
    bench
        .store(owner, CALENDAR, &[in_new_york(&events.collect::<Vec<_>>())])
        .await;
    let (morning, night) = (midnight + 4 * HOUR, midnight + 28 * HOUR);
    let around = range(BEGIN, BEGIN + 9 * DAY);
    for (granted, expected) in [
        (range(morning, night), 3),
        (range(BEGIN, night), 3),
        (range(morning + 1, night), 0),
        (range(morning, night - 1), 0),
        (range(BEGIN, morning), 0),
    ] {
        let view = View::Shared(owner, Windows::new([granted]));
        assert_paged(&bench, &view.permit(CALENDAR, around), CALENDAR, expected).await;
        let available = bench.questions.available(&view.listing(around), around).await;
        let counts: Vec<i64> = available.unwrap().iter().map(|found| found.records).collect();
        assert_eq!(counts.iter().sum::<i64>(), expected as i64, "{granted:?}");
        let asked = range(morning + HOUR, morning + 2 * HOUR);
        let calendar = bench.granted(&view, CALENDAR, widened(asked, DAY_MARGIN, DAY_MARGIN));
        let spec = RawSpec {
            columns: EVENT_COLUMNS.to_vec(),
            only: None,
            ids: IdForm::Text,
        };
        let prepared = bench.questions.calendar_events(&calendar, &spec, asked).await;
        let told = bench.told(prepared.unwrap()).await;
        assert_eq!(told.len(), expected, "{granted:?}");
    }
}

/// An event of whole days is shown by its days in its zone, and sorted by its recorded start.
#[tokio::test(flavor = "multi_thread")]
async fn events_that_are_recorded_before_a_window_come_from_the_end_too() {
    let bench = Bench::new().await;
    let midnight = BEGIN + 3 * DAY;
    let all_day = GivenRow {
        all_day: true,
        ..given(midnight, midnight + DAY, 1.0)
    };
    let other = given(midnight + HOUR, midnight + 4 * HOUR, 2.0);
    let owner = PersonId(Uuid::now_v7());
    bench
        .store(owner, CALENDAR, &[in_new_york(&[all_day]), in_new_york(&[other])])
        .await;
    let window = midnight + 2 * HOUR;
    let granted = Windows::new([range(BEGIN, BEGIN + DAY), range(window, midnight + 2 * DAY)]);
    let permit = View::Shared(owner, granted).permit(CALENDAR, range(BEGIN, midnight + 9 * DAY));
    let expected = [(midnight, midnight + DAY), (window, midnight + 4 * HOUR)];
    for order in [Order::Ascending, Order::Descending] {
        let spec = RecordsSpec { order, ..all(&[]) };
        let partitions = [bench.partition(CALENDAR)];
        let prepared = bench
            .questions
            .records(&permit, &partitions, &spec)
            .await
            .unwrap();
        let mut found = starts_and_ends(&bench.run(prepared.plan).await);
        if order == Order::Descending {
            found.reverse();
        }
        assert_eq!(found, expected, "{order:?}");
    }
}
