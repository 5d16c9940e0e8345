//! `/data/v1alpha1/insight`: every number of a finding is one that its evidence gives, asked for over HTTP.

use std::collections::BTreeMap;

use chrono::{DateTime, Duration, NaiveDate, TimeZone as _, Utc};
use chrono_tz::America::New_York;
use serde_json::{Value, json};

use crate::harness::{Person, id, number, person};

const PATH: &str = "/data/v1alpha1/insight";
/// Noon in New York on the day that is called 0; earlier days have greater numbers.
const AS_OF: &str = "2024-06-16T16:00:00Z";

/// A moment by the clock in New York, so many days before the report.
fn local(days_before: i64, hour: f64) -> DateTime<Utc> {
    let date = NaiveDate::from_ymd_opt(2024, 6, 16).unwrap() - Duration::days(days_before);
    let midnight = New_York
        .from_local_datetime(&date.and_hms_opt(0, 0, 0).unwrap())
        .single()
        .unwrap();
    midnight.with_timezone(&Utc) + Duration::seconds((hour * 3600.0) as i64)
}

fn text(moment: DateTime<Utc>) -> String {
    moment.to_rfc3339_opts(chrono::SecondsFormat::Micros, true)
}

fn sample(n: u32, from: DateTime<Utc>, to: DateTime<Utc>, value: f64) -> Value {
    json!({"uuid": id(n), "start_date": text(from), "end_date": text(to), "value": value})
}

async fn in_new_york() -> Person {
    let person = person();
    person
        .post(
            "/user/v1alpha1/preferences",
            &json!({"timezone": "America/New_York"}),
        )
        .await
        .must_be(200);
    person
}

async fn report(person: &Person) -> Value {
    let reply = person
        .get(PATH)
        .with("timestamp", AS_OF)
        .with("version", "v0")
        .await
        .must_be(200);
    let report = reply.json();
    assert_eq!(report["version"], "v0");
    assert_eq!(report["as_of"], AS_OF);
    report
}

/// The rows that an insight names as its evidence.
async fn evidence(person: &Person, insight: &Value) -> Vec<Value> {
    let [evidence] = insight["evidence"].as_array().unwrap().as_slice() else {
        panic!("one question is the evidence: {insight}")
    };
    let query = evidence["query"].as_object().unwrap();
    let mut call = person.get(evidence["path"].as_str().unwrap());
    for (name, value) in query {
        call = call.with(name, value.as_str().unwrap());
    }
    let reply = call.await.must_be(200);
    assert_eq!(reply.header("x-ignored-parameters"), None, "{reply}");
    reply.rows()
}

fn moment(value: &Value) -> DateTime<Utc> {
    let text = value.as_str().unwrap_or_else(|| panic!("no time: {value}"));
    DateTime::parse_from_rfc3339(text)
        .unwrap_or_else(|error| panic!("{text}: {error}"))
        .to_utc()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 {
        values[half]
    } else {
        f64::midpoint(values[half - 1], values[half])
    }
}

fn near(one: f64, other: f64) {
    assert!(
        (one - other).abs() <= 1e-9 * one.abs().max(1.0),
        "{one} is not {other}"
    );
}

fn inside(range: &Value, time: DateTime<Utc>) -> bool {
    moment(&range["start"]) <= time && time < moment(&range["end"])
}

/// Daily values of the evidence, those of the period and those of the baseline.
fn parted(insight: &Value, rows: &[Value]) -> (Vec<f64>, Vec<f64>) {
    let column = rows[0].as_object().unwrap().keys().nth(1).unwrap().clone();
    let values = |range: &Value| {
        rows.iter()
            .filter(|row| inside(range, moment(&row["time"])))
            .filter_map(|row| row[&column].as_f64())
            .collect::<Vec<f64>>()
    };
    let baseline = if insight["baseline"].is_null() {
        Vec::new()
    } else {
        values(&insight["baseline"])
    };
    (values(&insight["period"]), baseline)
}

/// Works the numbers of an insight out of its evidence.
#[expect(
    clippy::too_many_lines,
    reason = "the kinds, each worked out anew, read best one after the other"
)]
async fn check(person: &Person, insight: &Value) {
    let rows = evidence(person, insight).await;
    let (value, comparison) = (number(insight, "value"), &insight["comparison"]);
    let z = |delta: f64, baseline: &[f64]| {
        let middle = median(baseline.to_vec());
        0.6745 * delta / median(baseline.iter().map(|value| (value - middle).abs()).collect())
    };
    let kind = insight["kind"].as_str().unwrap();
    let series = || parted(insight, &rows);
    match kind {
        "resting_hr_shift" | "activity_change" => {
            let (now, before) = series();
            near(value, median(now.clone()));
            near(number(comparison, "baseline_value"), median(before.clone()));
            let mut differences = Vec::new();
            for value in &now {
                differences.extend(before.iter().map(|usual| value - usual));
            }
            let delta = if kind == "activity_change" {
                median(differences)
            } else {
                median(now) - median(before.clone())
            };
            near(number(comparison, "delta"), delta);
            near(number(comparison, "score"), z(delta, &before));
        }
        "anomaly" => {
            let (now, before) = series();
            near(value, now[0]);
            near(
                number(comparison, "score"),
                z(now[0] - median(before.clone()), &before),
            );
        }
        "record" => {
            let (now, before) = series();
            near(value, now[0]);
            let most = before.iter().copied().fold(f64::MIN, f64::max);
            near(number(comparison, "baseline_value"), most);
            assert_eq!(insight["baseline"]["n"], json!(before.len()));
        }
        "step_streak" => {
            let (now, before) = series();
            let enough = number(comparison, "baseline_value");
            near(enough, median(before));
            assert!(now.iter().all(|steps| *steps >= enough));
            near(value, now.len() as f64);
        }
        "data_gap" => {
            let (now, before) = series();
            assert_eq!(now, Vec::<f64>::new());
            assert_eq!(insight["baseline"]["n"], json!(before.len()));
            let days = moment(&insight["period"]["end"]) - moment(&insight["period"]["start"]);
            near(value, days.num_days() as f64);
        }
        "sleep_debt" | "sleep_timing" => {
            let mut nights: BTreeMap<NaiveDate, (f64, f64)> = BTreeMap::new();
            for row in &rows {
                let (start, end) = (moment(&row["start_time"]), moment(&row["end_time"]));
                let day = (end - Duration::microseconds(1))
                    .with_timezone(&New_York)
                    .date_naive();
                let asleep = number(row, "total_time_asleep_ms") / 3.6e6;
                let middle = (start + (end - start) / 2).with_timezone(&New_York).naive_local();
                let clock = (middle - day.and_hms_opt(0, 0, 0).unwrap()).num_seconds() as f64 / 3600.0;
                let night = nights.entry(day).or_insert((asleep, clock));
                if night.0 < asleep {
                    *night = (asleep, clock);
                }
            }
            let of = |range: &Value| {
                let days = nights.iter().filter(|(day, _)| {
                    let noon = New_York.from_local_datetime(&day.and_hms_opt(0, 0, 0).unwrap());
                    inside(range, noon.single().unwrap().to_utc())
                });
                days.map(|(_, night)| *night).collect::<Vec<(f64, f64)>>()
            };
            let now = of(&insight["period"]);
            if kind == "sleep_debt" {
                near(value, now.iter().map(|(asleep, _)| (7.0 - asleep).max(0.0)).sum());
                near(
                    number(comparison, "delta"),
                    now.iter().map(|(asleep, _)| 7.0 - asleep).sum(),
                );
                assert_eq!(insight["coverage"]["observed"], json!(now.len()));
            } else {
                near(value, median(now.iter().map(|(_, clock)| *clock).collect()));
                let before = of(&insight["baseline"]);
                near(
                    number(comparison, "baseline_value"),
                    median(before.iter().map(|(_, clock)| *clock).collect()),
                );
            }
        }
        "new_place" => {
            let stays: Vec<(DateTime<Utc>, f64, f64)> = rows
                .iter()
                .map(|row| {
                    let (latitude, longitude) =
                        (number(row, "latitude_degrees"), number(row, "longitude_degrees"));
                    (
                        moment(&row["arrival_date"]),
                        latitude.to_radians(),
                        longitude.to_radians(),
                    )
                })
                .collect();
            let (new, earlier): (Vec<_>, Vec<_>) = stays
                .into_iter()
                .partition(|(arrival, latitude, _)| inside(&insight["period"], *arrival) && *latitude > 0.8);
            let (_, latitude, longitude) = new[0];
            let distance = |(_, other, there): &(DateTime<Utc>, f64, f64)| {
                let half = ((other - latitude) / 2.0).sin().powi(2)
                    + latitude.cos() * other.cos() * ((there - longitude) / 2.0).sin().powi(2);
                2.0 * 6371.0 * half.sqrt().asin()
            };
            let nearest = earlier.iter().map(distance).fold(f64::MAX, f64::min);
            assert!(
                (value - nearest).abs() < 0.001 * nearest,
                "{value} is not {nearest}"
            );
        }
        other => panic!("a kind that nothing is known of: {other}"),
    }
}

/// Checks all insights; their kinds.
async fn checked(person: &Person) -> Vec<String> {
    let report = report(person).await;
    let insights = report["insights"].as_array().unwrap();
    for insight in insights {
        check(person, insight).await;
    }
    assert_eq!(self::report(person).await, report, "equal data, equal report");
    insights
        .iter()
        .map(|insight| insight["kind"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn rule_10_1_numbers_of_steps_and_the_heart_are_those_of_their_evidence() {
    let person = in_new_york().await;
    let walks = (0..130_u32).map(|day| {
        let steps = if day < 4 {
            9_000.0
        } else {
            4_000.0 + 250.0 * f64::from(day % 9)
        };
        // Over midnight, so that days share a walk.
        let before = i64::from(day);
        sample(day, local(before + 1, 23.5), local(before, 0.5), steps)
    });
    person.records("StepCount", &walks.collect::<Vec<Value>>()).await;
    let beats = (1..130_u32).map(|day| {
        let rate = if day <= 7 { 62.0 } else { f64::from(57 + day % 3) };
        let at = local(i64::from(day), 8.0);
        sample(day, at, at, rate)
    });
    person
        .records("RestingHeartRate", &beats.collect::<Vec<Value>>())
        .await;
    let rates = (1..130_u32).map(|day| {
        let at = local(i64::from(day), 15.0);
        sample(
            day,
            at,
            at,
            if day == 1 {
                140.0
            } else {
                70.0 + f64::from(day % 5)
            },
        )
    });
    person.records("HeartRate", &rates.collect::<Vec<Value>>()).await;
    let kinds = checked(&person).await;
    assert_eq!(kinds.len(), 5, "{kinds:?}");
    assert_eq!(kinds[0], "anomaly", "the most telling first");
    for kind in ["resting_hr_shift", "activity_change"] {
        assert!(kinds.iter().any(|found| found == kind), "{kinds:?}");
    }
    let report = report(&person).await;
    assert!(report["suppressed"].as_u64().unwrap() > 0);
    let skipped = report["skipped"].as_array().unwrap();
    assert!(
        skipped.iter().any(|skipped| skipped["kind"] == "sleep_debt"),
        "{skipped:?}"
    );
}

#[tokio::test]
async fn rule_10_1_numbers_of_nights_places_and_gaps_are_those_of_their_evidence() {
    let person = in_new_york().await;
    let mut stages = Vec::new();
    for night in 0..50_u32 {
        let day = i64::from(night);
        if night == 3 {
            continue;
        }
        let late = f64::from(night % 4) / 4.0;
        stages.push(sample(3 * night, local(day, late), local(day, 3.0 + late), 3.0));
        stages.push(sample(
            3 * night + 1,
            local(day, 3.0 + late),
            local(day, 6.25),
            4.0,
        ));
        if night != 2 {
            stages.push(sample(
                3 * night + 2,
                local(day + 1, 14.0),
                local(day + 1, 15.0),
                3.0,
            ));
        }
    }
    person.records("SleepStage", &stages).await;
    let visits = (0..80_u32).map(|day| {
        let before = i64::from(day);
        let latitude = if day == 2 { 47.5 } else { 40.7 };
        json!({
            "uuid": id(day), "latitude_degrees": latitude, "longitude_degrees": -74.0,
            "horizontal_accuracy_meters": 10.0,
            "arrival_date": text(local(before, 1.0)), "departure_date": text(local(before, 9.0)),
        })
    });
    person
        .records("PlatformLocationVisit", &visits.collect::<Vec<Value>>())
        .await;
    let rates = (5..40_u32).map(|day| {
        let at = local(i64::from(day), 15.0);
        sample(day, at, at, 60.0)
    });
    person.records("HeartRate", &rates.collect::<Vec<Value>>()).await;
    let mut kinds = checked(&person).await;
    kinds.sort();
    assert_eq!(kinds, ["data_gap", "new_place", "sleep_debt", "sleep_timing"]);
    let report = report(&person).await;
    let debt = report["insights"]
        .as_array()
        .unwrap()
        .iter()
        .find(|insight| insight["kind"] == "sleep_debt");
    assert_eq!(
        debt.unwrap()["caveats"],
        json!(["There is no night for 2024-06-13."])
    );
    assert_eq!(report["time_zone"], "America/New_York");
}

/// Findings are in the units that values are kept in, and the request of their evidence says so.
#[tokio::test]
async fn rule_10_1_numbers_are_those_of_their_evidence_whichever_units_are_preferred() {
    let person = in_new_york().await;
    let weights = (1..110_u32).map(|day| {
        let at = local(i64::from(day), 8.0);
        let pounds = if day == 1 { 190.0 } else { f64::from(165 + day % 5) };
        sample(day, at, at, pounds)
    });
    person.records("Weight", &weights.collect::<Vec<Value>>()).await;
    for units in ["metric", "us", "catalogue"] {
        person
            .post("/user/v1alpha1/preferences", &json!({"units": units}))
            .await
            .must_be(200);
        let mut kinds = checked(&person).await;
        kinds.sort();
        assert_eq!(kinds, ["anomaly", "record"], "{units}");
        for insight in report(&person).await["insights"].as_array().unwrap() {
            assert_eq!(
                (number(insight, "value"), &insight["unit"]),
                (190.0, &json!("lb"))
            );
            for row in evidence(&person, insight).await {
                assert_eq!(row["unit"], insight["unit"], "{units}: {row}");
            }
        }
    }
}

#[tokio::test]
async fn what_starts_after_the_moment_is_not_looked_at() {
    let person = in_new_york().await;
    let beats = |from: u32, rate: f64| -> Vec<Value> {
        (from..from + 7)
            .map(|day| {
                let at = local(i64::from(day), 8.0);
                sample(day, at, at, rate)
            })
            .collect()
    };
    let usual: Vec<Value> = (15..90_u32)
        .map(|day| {
            let at = local(i64::from(day), 8.0);
            sample(day, at, at, f64::from(57 + day % 3))
        })
        .collect();
    person.records("RestingHeartRate", &usual).await;
    person.records("RestingHeartRate", &beats(8, 62.0)).await;
    let ask = async |moment: String| {
        let reply = person.get(PATH).with("timestamp", &moment).await.must_be(200);
        reply.json()["insights"].clone()
    };
    let at_the_end = text(local(7, 0.0) - Duration::microseconds(1));
    let before = ask(at_the_end.clone()).await;
    assert!(before.to_string().contains("resting_hr_shift"), "{before}");
    person.records("RestingHeartRate", &beats(1, 90.0)).await;
    assert_eq!(ask(at_the_end).await, before);
}

#[tokio::test]
async fn rule_10_7_silence_is_a_report() {
    let person = person();
    let report = report(&person).await;
    assert_eq!(report["insights"], json!([]));
    assert_eq!(report["skipped"].as_array().unwrap().len(), 10);
    assert_eq!(report["time_zone"], "UTC");
    assert_eq!(report["suppressed"], json!(0));
}

#[tokio::test]
async fn another_version_and_no_moment_are_refused() {
    let person = person();
    person.get(PATH).await.must_be(200);
    for (name, value) in [
        ("version", "v1"),
        ("timestamp", "yesterday"),
        ("timestamp", "0001-01-01T00:00:00Z"),
        ("timestamp", "9999-12-31T00:00:00Z"),
    ] {
        let place = format!("query.{name}");
        assert_eq!(
            person.get(PATH).with(name, value).await.faults(),
            [place],
            "{value}"
        );
    }
}

#[tokio::test]
async fn a_place_is_told_by_what_had_been_recorded_until_the_moment_of_the_report() {
    let person = person();
    let mut updates = Vec::new();
    let mut update = |moment: String, latitude: f64| {
        updates.push(json!({
            "uuid": id(updates.len() as u32), "timestamp": moment, "latitude_degrees": latitude,
            "longitude_degrees": 20.0, "horizontal_accuracy_meters": 5.0,
        }));
    };
    for day in 1..=20 {
        for minute in 0..6 {
            update(format!("2024-05-{day:02}T08:{minute}0:00Z"), 10.0);
        }
    }
    for time in ["11:55", "12:05", "12:15", "12:25", "12:40", "12:50"] {
        update(format!("2024-05-21T{time}:00Z"), 11.0);
    }
    person.records("PlatformLocationUpdate", &updates).await;
    let new_place = async |time: &str| {
        let call = person.get(PATH).with("timestamp", time);
        let report = call.await.must_be(200).json();
        let insights = report["insights"].as_array().unwrap().clone();
        insights
            .into_iter()
            .find(|insight| insight["kind"] == "new_place")
    };
    assert_eq!(new_place("2024-05-21T12:00:00Z").await, None, "nobody had stayed");
    let insight = new_place("2024-05-21T12:40:00Z").await.unwrap();
    let summary = insight["summary"].as_str().unwrap();
    assert!(
        summary.starts_with("A stay of 45 minutes on 2024-05-21 was 111.2 km"),
        "{summary}"
    );
    let rows = evidence(&person, &insight).await;
    assert_eq!(rows.len(), 125, "all but the last update");
}
