//! `/ingest/v1`: what is accepted, what a record's identity means, and what bad input gets.

mod asking;
mod bodies;
mod counting;
mod identity;
mod legacy;
mod refused;
mod replaying;
mod shapes;
mod tombstones;
mod units;

use serde_json::{Value, json};

use crate::harness::{Call, Person, at, number};

/// Checks that every kind of read shows these heart rates at 10:00 and at 10:01, and no others. There is at
/// least one.
async fn every_read_shows(person: &Person, rates: [Option<f64>; 2]) {
    let ranged = |path: &str| {
        person
            .get(path)
            .with("start_time", &at("00:00"))
            .with("end_time", &at("23:00"))
    };
    let values = |rows: &[Value]| -> Vec<f64> { rows.iter().map(|row| number(row, "value")).collect() };
    let shown: Vec<f64> = rates.into_iter().flatten().collect();
    let last = *shown.last().unwrap();
    let least = shown.iter().copied().fold(f64::MAX, f64::min);
    let most = shown.iter().copied().fold(f64::MIN, f64::max);

    for raw in [
        person.read("metric", "HeartRate"),
        person.read("event", "HeartRate"),
        person.metric_samples("HeartRate", &at("00:00"), &at("23:00")),
        selected(person, "HeartRate[1h] @ 1714561200"),
    ] {
        let reply = raw.await.must_be(200);
        assert_eq!(values(&reply.rows()), shown, "{reply}");
    }
    for latest in [
        ranged("/data/v1alpha1/event/HeartRate/latest"),
        selected(person, "HeartRate @ 1714561200"),
    ] {
        let reply = latest.await.must_be(200);
        assert_eq!(values(&reply.rows()), [last], "{reply}");
    }

    let series = person
        .get(&format!("/data/v0/{}/metric_time_series", person.id))
        .with("metric", "HeartRate")
        .with("start_time", &at("10:00"))
        .with("end_time", &at("10:02"))
        .with("output", "jstable")
        .await
        .must_be(200);
    let bins: Vec<Option<f64>> = series
        .rows()
        .iter()
        .map(|row| row["heart_rate"].as_f64())
        .collect();
    assert_eq!(bins, rates, "{series}");

    let counted = ranged("/data/v1alpha1/event/HeartRate/agg/day")
        .await
        .must_be(200);
    let counts: Vec<f64> = counted.rows().iter().map(|row| number(row, "count")).collect();
    assert_eq!(counts, [shown.len() as f64], "{counted}");
    let aggregated = ranged("/data/v1alpha1/metric/HeartRate/agg/day")
        .with("function", "min,max")
        .await
        .must_be(200);
    let bounds: Vec<(f64, f64)> = aggregated
        .rows()
        .iter()
        .map(|row| (number(row, "min"), number(row, "max")))
        .collect();
    assert_eq!(bounds, [(least, most)], "{aggregated}");

    let moments = [at("10:00"), at("10:01")];
    let with_one: Vec<&String> = moments
        .iter()
        .zip(rates)
        .filter_map(|(moment, rate)| rate.map(|_| moment))
        .collect();
    let (count, start, end) = (shown.len(), with_one.first().unwrap(), with_one.last().unwrap());
    let summary = ranged("/data/v1alpha1/event/HeartRate/summary")
        .await
        .must_be(200);
    assert_eq!(
        summary.json(),
        json!({"data_type": "HeartRate", "count": count, "start_time": start, "end_time": end})
    );
    let available = ranged("/data/v1alpha1/data_available").await.must_be(200);
    assert_eq!(
        available.json(),
        json!([{"HeartRate": {"start_time": start, "end_time": end, "count": count}}])
    );

    let queried = crate::sql::rows(person, "SELECT value FROM heart_rate ORDER BY start_date").await;
    assert_eq!(values(&queried), shown, "{queried:?}");
}

/// What a selector selects, as rows. 1714561200 is 11:00.
fn selected(person: &Person, selector: &str) -> Call {
    person
        .get("/data/v1/records")
        .with("q", selector)
        .with("output", "jstable")
}
