//! Updates are counted by the minute, however their minutes are kept.

use super::*;
use crate::catalog::database::Value;
use crate::catalog::inserting::Existing;
use crate::catalog::rows::{id, text};
use crate::catalog::tables::{UPDATED_DAYS, UPDATES};

const DAY: i64 = 24 * 60 * MINUTE;

#[tokio::test]
async fn rule_8_5_updates_count_by_minute_of_acceptance() {
    // The minutes are the database's, and only this one's clock can be set.
    let bench = Bench::sqlite().await;
    let person = person();
    for version in 0..3 {
        bench
            .clock
            .set(Instant::from_micros((1_000 + version / 2) * MINUTE + 30));
        let now = bench.stamp(person).await;
        bench
            .catalog
            .commit(one(change(person, now, vec![tail(b"row")])))
            .await
            .unwrap();
    }
    let between = async |from: i64, until: i64| {
        let range = TimeRange::new(Instant::from_micros(from), Instant::from_micros(until)).unwrap();
        bench.catalog.updates_between(person, range).await.unwrap()
    };
    let minute = |number: i64| number * MINUTE;
    assert_eq!(
        between(minute(1_000) + 59, minute(1_001)).await,
        [(heart_rate(), 2)]
    );
    assert_eq!(between(minute(1_001), minute(1_002)).await, [(heart_rate(), 1)]);
    assert_eq!(between(minute(999), minute(1_000)).await, []);
    // What is empty touches no minute, neither one that is over nor the current one.
    for moment in [minute(1_000), minute(1_000) + 59, minute(1_001) + 1] {
        assert_eq!(between(moment, moment).await, []);
    }
    // Whoever asks up to now is told of the minute that is not over.
    assert_eq!(
        between(minute(1_001) + 1, minute(1_001) + 2).await,
        [(heart_rate(), 1)]
    );
    assert_eq!(
        between(minute(1_000) + 59, minute(1_001) + 1).await,
        [(heart_rate(), 3)]
    );
}

#[tokio::test]
async fn updates_under_a_clock_that_was_ahead_count_as_of_when_it_was_put_right() {
    let bench = Bench::sqlite().await;
    let person = person();
    let update = async |minute: i64| {
        bench.clock.set(Instant::from_micros(minute * MINUTE));
        let now = bench.stamp(person).await;
        let commit = one(change(person, now, vec![tail(b"row")]));
        assert_eq!(bench.catalog.commit(commit).await.unwrap(), CommitOutcome::Done);
    };
    let between = async |from: i64, until: i64| {
        let moment = |minute: i64| Instant::from_micros(minute * MINUTE);
        let range = TimeRange::new(moment(from), moment(until)).unwrap();
        let counted = bench.catalog.updates_between(person, range).await.unwrap();
        counted.first().map_or(0, |(_, count)| *count)
    };
    for minute in [1_000, 2_000, 2_001, 1_001] {
        update(minute).await;
    }
    assert_eq!((between(1_000, 1_001).await, between(1_001, 1_002).await), (1, 3));
    assert_eq!(between(1_002, 3_000).await, 0);
    // These minutes come once more.
    for minute in [2_000, 2_001, 2_002] {
        update(minute).await;
    }
    assert_eq!((between(1_001, 1_002).await, between(2_000, 3_000).await), (3, 3));
}

#[tokio::test]
async fn updates_are_counted_by_the_time_that_all_nodes_share() {
    for bench in Bench::all().await {
        let person = person();
        let begin = bench.catalog.now().await.unwrap();
        for ahead in [60, -60, 0] {
            let wrong = begin.micros() + ahead * MINUTE;
            let clock = Arc::new(ManualClock::at(Instant::from_micros(wrong)));
            let node = Catalog::open(&bench.address, clock).await.unwrap();
            let node = node.keeping_time(bench.clock.clone());
            let now = bench.stamp(person).await;
            let commit = one(change(person, now, vec![tail(b"row")]));
            assert_eq!(node.commit(commit).await.unwrap(), CommitOutcome::Done);
            node.close().await;
        }
        let soon = Instant::from_micros(bench.catalog.now().await.unwrap().micros() + 1);
        let range = TimeRange::new(begin, soon).unwrap();
        let counted = bench.catalog.updates_between(person, range).await.unwrap();
        assert_eq!(counted, [(heart_rate(), 3)]);
    }
}

/// How many rows a table has of a person.
async fn rows_of(bench: &Bench, table: &str, person: PersonId) -> i64 {
    let sql = format!("SELECT COUNT(*) FROM {table} WHERE person = $1");
    let rows = bench.catalog.database.fetch(sql, vec![id(person.0)]).await;
    rows.unwrap()[0].int(0).unwrap()
}

/// Writes down ended minutes.
async fn ended(bench: &Bench, person: PersonId, minutes: &[(i64, &str, i64)]) {
    let rows = minutes.iter().map(|(minute, data_type, count)| {
        vec![
            id(person.0),
            Value::Int(*minute),
            text(data_type),
            Value::Int(*count),
        ]
    });
    let mut session = bench.catalog.database.write().await.unwrap();
    let written = session.insert(&UPDATES, rows.collect(), Existing::Refuse).await;
    assert_eq!(written.unwrap().rows as usize, minutes.len());
    session.commit().await.unwrap();
}

#[tokio::test]
async fn combined_days_count_as_their_minutes_do() {
    for bench in Bench::all().await {
        let person = person();
        bench.catalog.ensure_person(person, None).await.unwrap();
        // PostgreSQL has a clock of its own.
        bench.clock.set(Instant::from_micros(20_000 * DAY));
        let today = bench.catalog.now().await.unwrap().micros().div_euclid(DAY) * DAY;
        let mut stored: Vec<(i64, &str, i64)> = Vec::new();
        // Minutes of three days before today, of today, and of a day before 1970; some come when their day
        // has been combined already.
        for late in [0, 1] {
            let minutes: Vec<(i64, &str, i64)> = (0..120)
                .flat_map(|number| {
                    let minute = today - 3 * DAY + (number * 53 + late) * MINUTE;
                    let types = ["HeartRate", "StepCount"]
                        .into_iter()
                        .take(1 + number as usize % 2);
                    types.map(move |data_type| (minute, data_type, 1 + number % 7))
                })
                .chain([(-DAY - MINUTE * (1 + late), "HeartRate", 5)])
                .filter(|(minute, ..)| *minute < today + 60 * MINUTE)
                .collect();
            ended(&bench, person, &minutes).await;
            stored.extend(minutes);
            bench.catalog.combine_minutes(person).await.unwrap();
            for (from, until) in spans(today) {
                let mut expected = std::collections::BTreeMap::<TypeId, i64>::new();
                let first = from.div_euclid(MINUTE) * MINUTE;
                for (minute, data_type, count) in &stored {
                    if (first..until).contains(minute) {
                        *expected.entry(TypeId((*data_type).into())).or_default() += count;
                    }
                }
                let range = TimeRange::new(Instant::from_micros(from), Instant::from_micros(until)).unwrap();
                let counted = bench.catalog.updates_between(person, range).await.unwrap();
                let expected: Vec<_> = expected.into_iter().collect();
                assert_eq!(counted, expected, "{from}..{until} around {today}");
            }
        }
        // Three days of two types, and the one long ago.
        assert_eq!(rows_of(&bench, "updated_days", person).await, 7);
        let of_today = stored.iter().filter(|(minute, ..)| *minute >= today).count();
        assert_eq!(rows_of(&bench, "updates", person).await as usize, of_today);
    }
}

/// Ranges that begin and end at minutes and days, and just after.
fn spans(today: i64) -> Vec<(i64, i64)> {
    let mut edges = vec![-2 * DAY, -DAY, 0, today + DAY];
    for day in -3..=0 {
        let begin = today + day * DAY;
        for minute in [0, 1, 53, 720, 1_439] {
            let moment = begin + minute * MINUTE;
            edges.extend([moment, moment + 1]);
        }
    }
    edges.sort_unstable();
    let starts = edges.iter().enumerate();
    starts
        .flat_map(|(index, from)| edges[index + 1..].iter().map(|until| (*from, *until)))
        .collect()
}

#[tokio::test]
async fn a_day_with_a_damaged_minute_stays_as_it_is() {
    for bench in Bench::all().await {
        let person = person();
        bench.catalog.ensure_person(person, None).await.unwrap();
        let yesterday = bench.catalog.now().await.unwrap().micros().div_euclid(DAY) * DAY - DAY;
        let minutes = [
            (yesterday - DAY, "HeartRate", 1),
            (yesterday, "HeartRate", 2),
            (yesterday, "StepCount", 3),
        ];
        ended(&bench, person, &minutes).await;
        let mut session = bench.catalog.database.write().await.unwrap();
        let damage = "UPDATE updates SET record_count = 4 WHERE person = $1 AND record_count = 3";
        let damaged = session.execute(damage.to_owned(), vec![id(person.0)]).await;
        assert_eq!(damaged.unwrap(), 1);
        session.commit().await.unwrap();
        for _ in 0..2 {
            bench.catalog.combine_minutes(person).await.unwrap();
            assert_eq!(rows_of(&bench, "updated_days", person).await, 1);
            assert_eq!(rows_of(&bench, "updates", person).await, 2);
        }
    }
}

#[tokio::test]
async fn days_that_were_combined_under_a_clock_that_was_ahead_count_as_of_when_it_was_put_right() {
    let bench = Bench::sqlite().await;
    let person = person();
    let start = 10 * DAY + 720 * MINUTE;
    let update = async |moment: i64| {
        bench.clock.set(Instant::from_micros(moment));
        let now = bench.stamp(person).await;
        let commit = one(change(person, now, vec![tail(b"row")]));
        assert_eq!(bench.catalog.commit(commit).await.unwrap(), CommitOutcome::Done);
        bench.catalog.combine_minutes(person).await.unwrap();
    };
    // Twice today, on each of two days ahead, which are over when the third comes, and today again.
    let moments = [
        start - DAY,
        start,
        start + 5 * MINUTE,
        start + DAY,
        start + 2 * DAY,
        start + 3 * DAY,
    ];
    for moment in moments {
        update(moment).await;
    }
    assert_eq!(rows_of(&bench, "updated_days", person).await, 4);
    let right = start + 3 * MINUTE;
    update(right).await;
    let between = async |from: i64, until: i64| {
        let range = TimeRange::new(Instant::from_micros(from), Instant::from_micros(until)).unwrap();
        let counted = bench.catalog.updates_between(person, range).await.unwrap();
        counted.first().map_or(0, |(_, count)| *count)
    };
    assert_eq!(between(0, start).await, 1);
    assert_eq!(between(start, start + MINUTE).await, 1);
    assert_eq!(between(right, right + MINUTE).await, 5);
    assert_eq!(between(right + MINUTE, i64::MAX).await, 0);
    assert_eq!(rows_of(&bench, "updated_days", person).await, 2);
    let total: i64 = bench
        .catalog
        .database
        .fetch(UPDATED_DAYS.select("ORDER BY day"), Vec::new())
        .await
        .unwrap()
        .iter()
        .map(|row| row.int(3).unwrap())
        .sum();
    assert_eq!(total, 2);
}
