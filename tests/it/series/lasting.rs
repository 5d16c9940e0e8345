//! Levels that last over the ends of windows, months and years.

use serde_json::Value;

use super::{assert_close, column, rows, sample, series};
use crate::harness::{Setup, id};

/// The last hour of a year is all that is stored, and one of its levels lasts into the next.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_1_5a_rule_1_5b_a_level_over_new_year_is_one_point_of_each_hour() {
    let server = Setup::default().busy_upkeep().start();
    let person = server.person();
    let before = |n: u32| {
        let at = format!("2023-12-31T23:{n}0:00Z");
        sample(id(n), 0, &at, &at, 50.0)
    };
    let mut samples: Vec<Value> = (0..6).map(before).collect();
    samples.push(sample(
        id(6),
        0,
        "2023-12-31T23:30:00Z",
        "2024-01-01T03:00:00Z",
        100.0,
    ));
    person.records("HeartRate", &samples).await;
    let hours = async |start: &str, end: &str| {
        let call = series(&person, "HeartRate", start, end).with("samprate", "1h");
        let rows = rows(call.with("calculations", "count")).await;
        (column(&rows, "heart_rate"), column(&rows, "count_heart_rate"))
    };
    for is_in_an_object in [false, true] {
        if is_in_an_object {
            server.until_objects(1).await;
            server.restart();
        }
        let (levels, counts) = hours("2024-01-01T00:00:00Z", "2024-01-01T04:00:00Z").await;
        assert_close(&levels, &[Some(100.0), Some(100.0), Some(100.0), None]);
        assert_close(&counts, &[1.0, 1.0, 1.0, 0.0].map(Some));
        // The last hour is cut, so it is read from rows.
        let (levels, counts) = hours("2023-12-31T23:00:00Z", "2024-01-01T02:30:00Z").await;
        assert_close(&levels, &[400.0 / 7.0, 100.0, 100.0, 100.0].map(Some));
        assert_close(&counts, &[7.0, 1.0, 1.0, 1.0].map(Some));
    }
}
