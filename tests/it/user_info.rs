//! `/user/v1alpha1/info` and `/user/v1alpha1/totals`: who the caller is to the service, and how much they
//! have.

use serde_json::{Value, json};

use crate::files::{announce, file_path, put};
use crate::harness::{Backends, Setup, at, heart_rate, id, person, steps};
use crate::sharing::{group, share, share_of};

const INFO: &str = "/user/v1alpha1/info";
const TOTALS: &str = "/user/v1alpha1/totals";

#[tokio::test]
async fn a_person_is_told_who_they_are_and_on_which_terms() {
    let (one, other) = (person(), person());
    let preferences = json!({"timezone": "Asia/Kathmandu"});
    one.post("/user/v1alpha1/preferences", &preferences)
        .await
        .must_be(200);
    let reply = one.get(INFO).with("platform", "anything").await.must_be(200);
    assert_eq!(reply.header("x-ignored-parameters"), None);
    let info = reply.json();
    assert_eq!(info["userid"], json!(one.id));
    assert_eq!(
        (&info["status"], &info["tier"]),
        (&json!("active"), &json!("free"))
    );
    assert_eq!(info["preferences"], preferences);
    assert_eq!(
        info["service_status"],
        json!({
            "active_until": "9999-12-31T23:59:59Z",
            "grace_period_ends": "9999-12-31T23:59:59Z",
            "is_active": true,
            "manage_url": null,
            "service_type": "free_service",
        })
    );
    assert!(info["created"].as_str().unwrap().ends_with('Z'), "{info}");
    let support = info["support_token"].as_str().unwrap();
    assert!(
        !support.contains(&one.id.simple().to_string()),
        "it does not tell the id"
    );
    assert_eq!(one.get(INFO).await.must_be(200).json(), info, "it stays the same");
    assert_ne!(
        other.get(INFO).await.must_be(200).json()["support_token"],
        *support
    );
    assert_eq!(
        one.showing(support).get(INFO).await.status,
        401,
        "and opens nothing"
    );
}

#[tokio::test]
async fn limits_say_how_much_one_may_have_and_has() {
    let limits = [
        ("ALMANAC_LIMIT_FILES", "5"),
        ("ALMANAC_LIMIT_FILE_BYTES", "1KiB"),
        ("ALMANAC_LIMIT_ALL_FILE_BYTES", "2KiB"),
        ("ALMANAC_LIMIT_SHARES", "6"),
        ("ALMANAC_LIMIT_GROUPS", "7"),
    ];
    let server = limits
        .into_iter()
        .fold(Setup::default(), |setup, (name, value)| setup.with(name, value))
        .start();
    let (person, other) = (server.person(), server.person());
    let expected = |files: u64, bytes: u64, shares: u64, groups: u64| {
        json!({
            "files": {"limit": 5, "used": files},
            "file_bytes": {"limit": 1024},
            "all_file_bytes": {"limit": 2048, "used": bytes},
            "shares": {"limit": 6, "used": shares},
            "groups": {"limit": 7, "used": groups},
        })
    };
    let told = async |person: &crate::harness::Person| {
        let info = person.get(INFO).await.must_be(200).json();
        let names = ["files", "file_bytes", "all_file_bytes", "shares", "groups"];
        Value::from_iter(names.map(|name| (name, info["limits"][name].clone())))
    };
    assert_eq!(told(&person).await, expected(0, 0, 0, 0));

    let first = put(&person, "/", "a", b"one").await;
    put(&person, "/", "a", b"three").await;
    announce(&person, "/", "b", 100).await;
    person
        .call(reqwest::Method::DELETE, &file_path(&first))
        .await
        .must_be(204);
    share(&person, &share_of(&["HeartRate"], &other)).await;
    for title in ["One", "Two"] {
        group(&person, &json!({"title": title, "is_public": true})).await;
    }
    // Versions that are deleted keep their bytes, and what is announced has its room.
    assert_eq!(told(&person).await, expected(3, 108, 1, 2));
    assert_eq!(
        told(&other).await,
        expected(0, 0, 0, 0),
        "what one is given is no share of one's own"
    );
}

async fn totals(person: &crate::harness::Person) -> Value {
    person.get(TOTALS).await.must_be(200).json()
}

fn expected(records: i64, days: i64, sources: i64, devices: i64, averages: [i64; 4]) -> Value {
    let [hour, day, week, month] = averages;
    json!({
        "averages": {
            "records_per_day": day,
            "records_per_hour": hour,
            "records_per_month": month,
            "records_per_week": week,
        },
        "total_days": days,
        "total_devices": devices,
        "total_records": records,
        "total_sources": sources,
    })
}

#[tokio::test]
async fn totals_count_what_is_there_and_over_how_many_days() {
    for backends in Backends::available() {
        let server = Setup::default().no_upkeep().on(backends).start();
        let person = server.person();
        assert_eq!(totals(&person).await, expected(0, 0, 0, 0, [0; 4]));

        let mut walk = steps(id(1), &at("10:00"), &at("10:05"), 100);
        walk["source_properties"] =
            json!({"sourceBundleIdentifier": "com.example", "productType": "Watch7,1"});
        let mut ride = steps(id(2), "2024-05-04T23:59:59Z", "2024-05-05T00:10:00Z", 100);
        ride["source_properties"] = json!({"sourceBundleIdentifier": "com.other", "productType": "Watch7,1"});
        person.records("StepCount", &[walk, ride]).await;
        person
            .records("HeartRate", &[heart_rate(id(1), &at("11:00"), 60)])
            .await;
        // 3 records on 1 to 4 May, from two bundles on one watch and from nobody in particular.
        assert_eq!(totals(&person).await, expected(3, 4, 3, 1, [0, 1, 5, 23]));

        // An arrival that nobody knows is no day, and neither is one that is yet to come.
        let visit = json!({
            "id": id(3), "latitude_degrees": 1.0, "longitude_degrees": 2.0, "horizontal_accuracy_meters": 5.0,
            "arrival_date": "0001-01-01T00:00:00Z", "departure_date": at("12:00"),
        });
        person.records("PlatformLocationVisit", &[visit]).await;
        let meeting = json!({
            "calendar_event_id": id(4), "calendar_id": id(5),
            "start_date": "2300-01-01T00:00:00Z", "end_date": "2300-01-01T01:00:00Z",
        });
        person.records("CalendarEvent", &[meeting]).await;
        let now = totals(&person).await;
        assert_eq!(
            (&now["total_days"], &now["total_records"]),
            (&json!(4), &json!(5))
        );

        // What was moved or deleted does not count where it was.
        person
            .records(
                "StepCount",
                &[steps(id(1), "2024-05-03T10:00:00Z", "2024-05-03T10:05:00Z", 1)],
            )
            .await;
        person.delete("HeartRate", id(1)).await;
        let now = totals(&person).await;
        assert_eq!(
            (&now["total_days"], &now["total_records"]),
            (&json!(2), &json!(4))
        );
        person.delete("StepCount", id(2)).await;
        let now = totals(&person).await;
        assert_eq!(
            (&now["total_days"], &now["total_records"]),
            (&json!(1), &json!(3))
        );
    }
}

#[tokio::test]
async fn totals_are_those_of_the_rows_whatever_upkeep_does() {
    let server = Setup::default().busy_upkeep().start();
    let person = server.person();
    let moment = |n: u32| format!("2024-{:02}-{:02}T12:00:00Z", 1 + n % 5, 1 + n % 28);
    for round in 0..6_u32 {
        let records: Vec<Value> = (0..40)
            .map(|n| heart_rate(id(n), &moment(n * 7 + round), 60))
            .collect();
        person.records("HeartRate", &records).await;
        person.delete("HeartRate", id(round)).await;
        let days: Vec<String> = person
            .all_samples("HeartRate")
            .await
            .iter()
            .map(|row| row["start_date"].as_str().unwrap()[..10].to_owned())
            .collect();
        let day = |text: &String| text.parse::<chrono::NaiveDate>().unwrap();
        let (first, last) = (
            days.iter().map(day).min().unwrap(),
            days.iter().map(day).max().unwrap(),
        );
        let now = totals(&person).await;
        assert_eq!(now["total_days"], json!((last - first).num_days() + 1));
        assert_eq!(now["total_records"], json!(days.len()));
    }
}
