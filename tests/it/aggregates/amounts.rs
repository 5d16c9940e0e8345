//! Sums of amounts by period: rule 5.3 with the resolution of rule 1.4, counted minute by minute for
//! comparison.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::by;
use crate::harness::{at, id, person, steps};

/// Steps of one of three sources, whose rank is their number, over whole minutes of a day in May.
#[derive(Clone, Debug)]
struct Walk {
    start: u32,
    minutes: u32,
    value: f64,
    source: usize,
    version: Option<u32>,
}

const SOURCES: [(&str, &str); 3] = [
    ("watch", "Watch6,2"),
    ("phone", "iPhone15,2"),
    ("web", "Server1,1"),
];

impl Walk {
    fn record(&self, n: u32) -> Value {
        let (name, product) = SOURCES[self.source];
        let moment = |minute: u32| crate::harness::instant(minute * 60);
        json!({
            "uuid": id(n), "start_date": moment(self.start), "end_date": moment(self.start + self.minutes),
            "value": self.value,
            "source_properties": {
                "name": name, "productType": product, "sourceBundleIdentifier": "com.example",
                "version": self.version.map(|version| version.to_string()),
            },
        })
    }

    fn covers(&self, minute: u32) -> bool {
        self.start <= minute && minute < self.start + self.minutes
    }
}

/// What counts of each walk in each hour, looked at minute by minute.
fn counted(walks: &[Walk], hours: std::ops::Range<u32>) -> Vec<(u32, &Walk, f64)> {
    let mut counted = Vec::new();
    for minute in hours.start * 60..hours.end * 60 {
        let best = walks
            .iter()
            .filter(|walk| walk.covers(minute))
            .map(|walk| walk.source)
            .min();
        let intervals = walks
            .iter()
            .filter(|walk| walk.covers(minute) && Some(walk.source) == best);
        counted.extend(intervals.map(|walk| (minute / 60, walk, walk.value / f64::from(walk.minutes))));
        let present = walks
            .iter()
            .filter(|walk| walk.covers(minute) || (walk.minutes == 0 && walk.start == minute));
        let best = present.map(|walk| walk.source).min();
        let instants = walks
            .iter()
            .filter(|walk| walk.minutes == 0 && walk.start == minute && Some(walk.source) == best);
        counted.extend(instants.map(|walk| (minute / 60, walk, walk.value)));
    }
    counted
}

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * one.abs().max(other.abs()).max(1.0)
}

#[tokio::test]
async fn rule_5_3_sums_of_amounts_are_resolved_and_told_apart_by_group() {
    let mut seed = 11_u64;
    let mut random = |below: u64| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((seed >> 33) % below) as u32
    };
    let person = person();
    let walks: Vec<Walk> = (0..400)
        .map(|_| Walk {
            start: random(3 * 1440),
            minutes: if random(4) == 0 { 0 } else { 1 + random(200) },
            value: f64::from(random(500)),
            source: random(3) as usize,
            version: Some(random(3)).filter(|version| *version > 0),
        })
        .collect();
    let records: Vec<Value> = (0..).zip(&walks).map(|(n, walk)| walk.record(n)).collect();
    person.records("StepCount", &records).await;

    // Ranges cut samples at both ends.
    let (hours, range) = (7..60, ("2024-05-01T07:00:00Z", "2024-05-03T12:00:00Z"));
    let mut expected: BTreeMap<(u32, usize, Option<u32>), f64> = BTreeMap::new();
    for (hour, walk, amount) in counted(&walks, hours) {
        *expected.entry((hour, walk.source, walk.version)).or_default() += amount;
    }
    let label = |hour: u32| crate::harness::instant(hour * 3600);
    let asked = || by(&person, "metric", "StepCount", "60m", range).with("function", "sum");
    let grouped = asked()
        .with("group", "source_properties.name")
        .with("group", "source_properties.version");
    let rows = grouped.await.must_be(200).rows();
    let mut found: BTreeMap<(String, String, String), f64> = BTreeMap::new();
    for row in &rows {
        let key = |name: &str| row[name].as_str().unwrap().to_owned();
        let version = row["source_properties.version"].to_string();
        found.insert(
            (key("time"), key("source_properties.name"), version),
            row["sum"].as_f64().unwrap(),
        );
    }
    assert_eq!((found.len(), rows.len()), (expected.len(), expected.len()));
    for ((hour, source, version), amount) in &expected {
        let version = version.map_or_else(|| "null".to_owned(), |version| format!("\"{version}\""));
        let told = found[&(label(*hour), SOURCES[*source].0.to_owned(), version.clone())];
        assert!(
            close(told, *amount),
            "{hour} {source} {version}: {told} instead of {amount}"
        );
    }

    // Without groups the sums are those of the series, also by day in a zone.
    for (resolution, rate, zone) in [
        ("60m", "1h", "UTC"),
        ("day", "1d", "America/New_York"),
        ("15m", "15m", "Asia/Kathmandu"),
    ] {
        let call = by(&person, "metric", "StepCount", resolution, range).with("time_zone", zone);
        let rows = call.with("function", "sum").await.must_be(200).rows();
        let series = person
            .get(&format!("/data/v0/{}/metric_time_series", person.id))
            .with("metric", "StepCount")
            .with("start_time", range.0)
            .with("end_time", range.1)
            .with("samprate", rate)
            .with("tz", zone)
            .with("drop_nulls", "1")
            .with("output", "jstable");
        let series = series.await.must_be(200).rows();
        assert_eq!(rows.len(), series.len(), "{resolution}");
        for (row, bin) in rows.iter().zip(&series) {
            let value = bin
                .as_object()
                .unwrap()
                .iter()
                .find(|(name, _)| *name != "time")
                .unwrap()
                .1;
            assert_eq!(row["time"], bin["time"]);
            assert!(
                close(row["sum"].as_f64().unwrap(), value.as_f64().unwrap()),
                "{row} {bin}"
            );
        }
        let all: f64 = rows.iter().map(|row| row["sum"].as_f64().unwrap()).sum();
        assert!(close(all, expected.values().sum()), "{resolution}: {all}");
    }

    // Beside the sums, averages take whole samples by their starts; each has rows where it has something to
    // tell.
    let both = asked().with("function", "max").await.must_be(200).rows();
    for hour in 7..60 {
        let row = both.iter().find(|row| row["time"] == json!(label(hour)));
        let sum: f64 = expected
            .iter()
            .filter(|((at, ..), _)| *at == hour)
            .map(|(_, amount)| amount)
            .sum();
        let most = walks
            .iter()
            .filter(|walk| walk.start / 60 == hour && walk.start < 60 * 60)
            .map(|walk| walk.value)
            .reduce(f64::max);
        assert_eq!(row.and_then(|row| row["max"].as_f64()), most, "{hour}");
        assert!(
            row.map_or(sum == 0.0, |row| close(
                row["sum"].as_f64().unwrap_or_default(),
                sum
            )),
            "{hour}: {row:?} {sum}"
        );
    }
}

#[tokio::test]
async fn rule_1_4e_sums_follow_the_persons_own_order_of_sources() {
    let person = person();
    let walk = |source, start, minutes| Walk {
        start,
        minutes,
        value: 100.0,
        source,
        version: None,
    };
    person
        .records(
            "StepCount",
            &[walk(0, 600, 10).record(1), walk(1, 605, 10).record(2)],
        )
        .await;
    let day = ("2024-05-01T00:00:00Z", "2024-05-02T00:00:00Z");
    let sums = || async {
        let call = by(&person, "metric", "StepCount", "day", day)
            .with("function", "sum")
            .with("group", "source_properties.name");
        let rows = call.await.must_be(200).rows();
        rows.iter()
            .map(|row| {
                (
                    row["source_properties.name"].clone(),
                    row["sum"].as_f64().unwrap(),
                )
            })
            .collect::<Vec<_>>()
    };
    // M04: the watch counts first.
    assert_eq!(sums().await, [(json!("phone"), 50.0), (json!("watch"), 100.0)]);
    let sources = person.sources().await;
    let phone = sources
        .iter()
        .find(|source| source["vendor_id"].as_str().unwrap().contains("iPhone"))
        .unwrap();
    let order = json!({"source_order": {"StepCount": [phone["id"]]}});
    person
        .post("/user/v1alpha1/preferences", &order)
        .await
        .must_be(200);
    assert_eq!(sums().await, [(json!("phone"), 100.0), (json!("watch"), 50.0)]);
    // Who asks for one source has all of it.
    let call = by(&person, "metric", "StepCount", "day", day)
        .with("function", "sum")
        .with("filter", "source_properties.name:watch");
    assert_eq!(call.await.must_be(200).rows()[0]["sum"], json!(100.0));
}

#[tokio::test]
async fn rule_1_4b_everything_logged_counts_and_is_told_apart_by_group() {
    let person = person();
    let lunch = |n: u32, start: &str, end: &str, value: f64, name: &str| {
        json!({"uuid": id(n), "start_date": at(start), "end_date": at(end), "value": value,
            "source_properties": {"name": name, "sourceBundleIdentifier": name}})
    };
    let records = [
        lunch(1, "12:00", "12:00", 500.0, "one"),
        lunch(2, "12:00", "12:00", 50.0, "other"),
        lunch(3, "11:30", "12:30", 60.0, "other"),
    ];
    person.records("CaloriesConsumed", &records).await;
    let day = ("2024-05-01T00:00:00Z", "2024-05-01T12:15:00Z");
    let asked = || by(&person, "metric", "CaloriesConsumed", "60m", day).with("function", "sum");
    assert_eq!(
        asked()
            .with("group", "source_properties.name")
            .await
            .must_be(200)
            .rows(),
        [
            json!({"time": at("11:00"), "source_properties.name": "other", "sum": 30.0}),
            json!({"time": at("12:00"), "source_properties.name": "one", "sum": 500.0}),
            json!({"time": at("12:00"), "source_properties.name": "other", "sum": 65.0}),
        ]
    );
    assert_eq!(
        asked().await.must_be(200).rows(),
        [
            json!({"time": at("11:00"), "sum": 30.0}),
            json!({"time": at("12:00"), "sum": 565.0})
        ]
    );
}

#[tokio::test]
async fn rule_5_3_averages_of_amounts_take_whole_samples_by_their_start() {
    let person = person();
    let samples = [
        steps(id(1), &at("10:50"), &at("11:10"), 100),
        steps(id(2), &at("11:10"), &at("11:20"), 40),
    ];
    person.records("StepCount", &samples).await;
    let day = ("2024-05-01T00:00:00Z", "2024-05-02T00:00:00Z");
    let call = by(&person, "metric", "StepCount", "60m", day)
        .with("function", "avg")
        .with("function", "max");
    assert_eq!(
        call.await.must_be(200).rows(),
        [
            json!({"time": at("10:00"), "avg": 100.0, "max": 100.0}),
            json!({"time": at("11:00"), "avg": 40.0, "max": 40.0}),
        ]
    );
}

#[tokio::test]
async fn rule_5_2_a_group_has_a_row_where_a_function_has_something_to_compute() {
    let person = person();
    let walk = |(start, minutes, value, source): (u32, u32, f64, usize)| Walk {
        start,
        minutes,
        value,
        source,
        version: None,
    };
    // The watch covers the second walk of the phone; the first one begins before the range.
    let walks = [(600, 10, 5.0, 0), (602, 2, 7.0, 1), (530, 20, 20.0, 1)].map(walk);
    let records: Vec<Value> = (0..).zip(&walks).map(|(n, walk)| walk.record(n)).collect();
    person.records("StepCount", &records).await;
    let range = ("2024-05-01T09:00:00Z", "2024-05-01T12:00:00Z");
    for (functions, expected) in [
        (
            "sum",
            &[("09:00", "phone", Some(10.0)), ("10:00", "watch", Some(5.0))][..],
        ),
        (
            "sum,avg",
            &[
                ("08:00", "phone", None),
                ("09:00", "phone", Some(10.0)),
                ("10:00", "phone", None),
                ("10:00", "watch", Some(5.0)),
            ],
        ),
    ] {
        let call = by(&person, "metric", "StepCount", "60m", range).with("function", functions);
        let rows = call
            .with("group", "source_properties.name")
            .await
            .must_be(200)
            .rows();
        let expected: Vec<Value> = expected
            .iter()
            .map(|(time, name, sum)| json!([at(time), name, sum]))
            .collect();
        let found: Vec<Value> = rows
            .iter()
            .map(|row| json!([row["time"], row["source_properties.name"], row["sum"]]))
            .collect();
        assert_eq!(found, expected, "{functions}");
    }
}
