//! Where somebody was: at one moment, and at regular moments.

use serde_json::{Value, json};

use super::{between, flushed, keys, own, rows, update, visit};
use crate::harness::{METHODS, Person, Setup, Table, at, id, number, person, texts};
use crate::sharing::{share, share_of};

/// A position of a maps provider.
fn mapped(n: u32, moment: &str, latitude: f64, longitude: f64, accuracy: f64) -> Value {
    update(id(n), moment, latitude, longitude, accuracy)
}

async fn at_time(person: &Person, time: &str, more: &[(&str, &str)]) -> Vec<Value> {
    let call = own(person, "location_at_time").with("time", time);
    rows(
        more.iter()
            .fold(call, |call, (name, value)| call.with(name, value)),
    )
    .await
}

async fn series(person: &Person, start: &str, end: &str, more: &[(&str, &str)]) -> Vec<Value> {
    let call = between(own(person, "location_time_series"), start, end);
    rows(
        more.iter()
            .fold(call, |call, (name, value)| call.with(name, value)),
    )
    .await
}

async fn golden_track() -> Person {
    let person = person();
    let records = [
        update(id(1), &at("09:50"), 40.0, -75.0, 10.0),
        update(id(2), &at("10:03"), 40.001, -75.0, 10.0),
        update(id(3), &at("10:20"), 40.0011, -75.0, 10.0),
        update(id(4), &at("10:29"), 0.0, 0.0, -1.0),
    ];
    person.records("PlatformLocationUpdate", &records).await;
    person
}

#[tokio::test]
async fn golden_l01_an_hour_with_data_is_four_rows() {
    let person = golden_track().await;
    let found = series(
        &person,
        &at("10:00"),
        &at("11:00"),
        &[("sample_rate", "900"), ("look_back", "14400")],
    )
    .await;
    let expected = [
        ("10:00", 40.0, "09:50", None),
        ("10:15", 40.001, "10:03", Some(111.195_08)),
        ("10:30", 40.0011, "10:20", Some(11.119_508)),
        ("10:45", 40.0011, "10:20", Some(0.0)),
    ];
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (row, (slice, latitude, time, distance)) in found.iter().zip(expected) {
        assert_eq!(
            keys(row),
            [
                "slice_time",
                "lat",
                "long",
                "time",
                "distance_change_m",
                "location_source"
            ]
        );
        assert_eq!(row["slice_time"], json!(at(slice)));
        assert_eq!((&row["lat"], &row["long"]), (&json!(latitude), &json!(-75.0)));
        assert_eq!(row["time"], json!(at(time)));
        assert_eq!(row["location_source"], json!("mobile_os"));
        match distance {
            None => assert!(row["distance_change_m"].is_null(), "{row}"),
            Some(distance) => assert!(
                (number(row, "distance_change_m") - distance).abs() < 1e-4,
                "{row}"
            ),
        }
    }
    assert_eq!(
        series(&person, &at("10:00"), &at("11:00"), &[]).await,
        found,
        "these are the defaults"
    );
}

#[tokio::test]
async fn golden_l02_rows_that_are_too_near_are_left_out_and_drift_shows_at_last() {
    let person = golden_track().await;
    let far = series(&person, &at("10:00"), &at("11:00"), &[("change_meters", "50")]).await;
    assert_eq!(texts(&far, "slice_time"), [at("10:00"), at("10:15")]);
    // Sixty metres, in steps of twenty: no step is far from the one before, the third is far from the first.
    let drifting = crate::harness::person();
    let drift: Vec<Value> = (0..8)
        .map(|n| {
            update(
                id(n),
                &at(&format!("10:{:02}", n * 5)),
                40.0 + f64::from(n) * 0.000_18,
                -75.0,
                5.0,
            )
        })
        .collect();
    drifting.records("PlatformLocationUpdate", &drift).await;
    let found = series(
        &drifting,
        &at("10:00"),
        &at("10:40"),
        &[("sample_rate", "300"), ("change_meters", "50")],
    )
    .await;
    assert_eq!(
        texts(&found, "slice_time"),
        [at("10:00"), at("10:15"), at("10:30")]
    );
    assert!(
        found
            .iter()
            .skip(1)
            .all(|row| number(row, "distance_change_m") >= 50.0),
        "{found:?}"
    );
    let same = series(
        &drifting,
        &at("10:00"),
        &at("10:40"),
        &[("sample_rate", "300"), ("change_meters", "0")],
    )
    .await;
    assert_eq!(same.len(), 8, "no distance is too small for none");
}

#[tokio::test]
async fn rule_4_3_a_place_is_known_for_as_long_as_the_look_back() {
    let person = golden_track().await;
    let short = series(&person, &at("10:00"), &at("11:00"), &[("look_back", "600")]).await;
    assert_eq!(
        texts(&short, "slice_time"),
        [at("10:00"), at("10:30")],
        "ten minutes and not a second more"
    );
    let shorter = series(&person, &at("10:00"), &at("11:00"), &[("look_back", "599")]).await;
    assert!(shorter.is_empty(), "{shorter:?}");
    let exact = series(
        &person,
        &at("10:03"),
        &at("10:04"),
        &[("look_back", "0"), ("sample_rate", "60")],
    )
    .await;
    assert_eq!(texts(&exact, "time"), [at("10:03")], "an exact hit counts");
    assert!(
        series(&person, &at("15:00"), &at("16:00"), &[]).await.is_empty(),
        "four hours later nothing is known"
    );
    assert!(
        series(&person, &at("09:00"), &at("09:50"), &[]).await.is_empty(),
        "nothing is known before it is told"
    );
    assert!(series(&person, &at("10:00"), &at("10:00"), &[]).await.is_empty());
}

#[tokio::test]
async fn golden_l04_the_nearest_update_wins_and_ties_go_to_the_past() {
    let person = person();
    let place = |n: u32, time: &str, accuracy: f64| update(id(n), &at(time), 1.0, 1.0, accuracy);
    person
        .records(
            "PlatformLocationUpdate",
            &[place(1, "09:50", 20.0), place(3, "10:10", 5.0)],
        )
        .await;
    person
        .records(
            "MapsLocationUpdate",
            &[
                mapped(2, &at("09:50"), 1.0, 1.0, 5.0),
                mapped(4, &at("11:00"), 1.0, 1.0, 50.0),
            ],
        )
        .await;
    let cases = [
        ("11:00", 60, false, Some(4)),
        ("10:00", 600, false, Some(2)),
        ("10:00", 599, false, None),
        ("10:00", 600, true, Some(2)),
        ("10:05", 3600, false, Some(2)),
        ("10:05", 3600, true, Some(3)),
        ("09:00", 3600, false, None),
        ("09:00", 3600, true, Some(2)),
        ("09:50", 0, false, Some(2)),
        ("11:00", 0, true, Some(4)),
    ];
    for (time, window, after, expected) in cases {
        let more = [
            ("window_size", window.to_string()),
            ("include_after", after.to_string()),
        ];
        let more: Vec<(&str, &str)> = more.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let found = at_time(&person, &at(time), &more).await;
        let expected: Vec<String> = expected.into_iter().map(|n| id(n).to_string()).collect();
        assert_eq!(texts(&found, "uuid"), expected, "{time} {window} {after}");
    }
    let found = at_time(&person, &at("11:00"), &[]).await;
    assert_eq!(keys(&found[0]).len(), 16);
    assert_eq!(found[0]["location_source"], json!("maps_location_update"));
    assert_eq!(
        at_time(&person, &at("15:00"), &[]).await.len(),
        1,
        "four hours are looked back"
    );
    assert!(at_time(&person, &at("15:00:01"), &[]).await.is_empty());
}

#[tokio::test]
async fn rule_4_2_equal_accuracy_goes_to_the_device_and_then_to_the_smaller_id() {
    let person = person();
    person
        .records("MapsLocationUpdate", &[mapped(1, &at("10:00"), 1.0, 1.0, 5.0)])
        .await;
    person
        .records(
            "PlatformLocationUpdate",
            &[
                update(id(3), &at("10:00"), 3.0, 1.0, 5.0),
                update(id(2), &at("10:00"), 2.0, 1.0, 5.0),
            ],
        )
        .await;
    assert_eq!(
        texts(&at_time(&person, &at("10:00"), &[]).await, "uuid"),
        [id(2).to_string()]
    );
    let told = series(&person, &at("10:00"), &at("10:10"), &[]).await;
    assert_eq!(
        (&told[0]["lat"], &told[0]["location_source"]),
        (&json!(2.0), &json!("mobile_os"))
    );
    let unsure =
        json!({"uuid": id(4), "timestamp": at("10:01"), "latitude_degrees": 4.0, "longitude_degrees": 1.0});
    person.records("PlatformLocationUpdate", &[unsure]).await;
    person
        .records("MapsLocationUpdate", &[mapped(5, &at("10:01"), 5.0, 1.0, 5000.0)])
        .await;
    assert_eq!(
        texts(&at_time(&person, &at("10:01"), &[]).await, "uuid"),
        [id(5).to_string()],
        "any accuracy is better than none"
    );
}

#[tokio::test]
async fn rule_4_1_what_cannot_be_believed_is_nowhere() {
    let person = person();
    let records = [
        update(id(1), &at("10:00"), 10.0, 10.0, 5.0),
        update(id(2), &at("10:01"), 20.0, 20.0, -1.0),
        json!({"uuid": id(3), "timestamp": at("10:02"), "latitude_degrees": 0, "longitude_degrees": 0}),
    ];
    person.records("PlatformLocationUpdate", &records).await;
    assert_eq!(
        texts(&at_time(&person, &at("10:05"), &[]).await, "uuid"),
        [id(1).to_string()]
    );
    let told = series(&person, &at("10:05"), &at("10:06"), &[]).await;
    assert_eq!(told[0]["lat"], json!(10.0));
    person
        .records(
            "PlatformLocationUpdate",
            &[update(id(4), &at("10:03"), 0.0, 0.0, 12.0)],
        )
        .await;
    assert_eq!(
        texts(&at_time(&person, &at("10:05"), &[]).await, "uuid"),
        [id(4).to_string()],
        "with an accuracy it is a place"
    );
}

#[tokio::test]
async fn the_antimeridian_and_the_poles_are_places_like_others() {
    let person = person();
    let records = [
        update(id(1), &at("10:00"), 0.0, 179.9995, 5.0),
        update(id(2), &at("10:15"), 0.0, -179.9995, 5.0),
        update(id(3), &at("10:30"), 0.0, 180.0, 5.0),
        update(id(4), &at("10:45"), 90.0, 0.0, 5.0),
        update(id(5), &at("11:00"), 90.0, 120.0, 5.0),
        update(id(6), &at("11:15"), -90.0, 0.0, 5.0),
    ];
    person.records("PlatformLocationUpdate", &records).await;
    let found = series(&person, &at("10:00"), &at("11:30"), &[]).await;
    let distances: Vec<f64> = found
        .iter()
        .skip(1)
        .map(|row| number(row, "distance_change_m"))
        .collect();
    let pole_to_pole = std::f64::consts::PI * 6_371_008.8;
    let expected = [111.195, 55.597, pole_to_pole / 2.0, 0.0, pole_to_pole];
    for (found, expected) in distances.iter().zip(expected) {
        assert!((found - expected).abs() < 0.01, "{distances:?}");
    }
}

#[tokio::test]
async fn rule_4_5_sources_can_be_chosen_and_others_are_refused() {
    let person = person();
    person
        .records(
            "PlatformLocationUpdate",
            &[update(id(1), &at("10:00"), 1.0, 1.0, 5.0)],
        )
        .await;
    person
        .records("MapsLocationUpdate", &[mapped(2, &at("10:05"), 2.0, 2.0, 5.0)])
        .await;
    let latest = async |sources: &[(&str, &str)]| {
        series(&person, &at("10:10"), &at("10:11"), sources).await[0]["lat"].clone()
    };
    assert_eq!(latest(&[]).await, json!(2.0));
    assert_eq!(latest(&[("location_sources", "mobile_os")]).await, json!(1.0));
    assert_eq!(latest(&[("location_sources", "maps")]).await, json!(2.0));
    assert_eq!(
        latest(&[("location_sources", "mobile_os"), ("location_sources", "maps")]).await,
        json!(2.0)
    );
}

#[tokio::test]
async fn rule_4_5_a_visit_tells_where_no_update_does() {
    let person = person();
    let visits = [
        visit(id(1), &at("08:00"), &at("12:00"), 10.0, 10.0),
        visit(id(2), &at("13:00"), "4001-01-01T00:00:00Z", 20.0, 20.0),
        visit(id(3), "0001-01-01T00:00:00Z", "4001-01-01T00:00:00Z", 30.0, 30.0),
    ];
    person.records("PlatformLocationVisit", &visits).await;
    person
        .records(
            "PlatformLocationUpdate",
            &[update(id(9), &at("09:00"), 11.0, 11.0, 50.0)],
        )
        .await;
    let told = at_time(&person, &at("11:30"), &[("window_size", "3600")]).await;
    assert_eq!(
        (
            texts(&told, "uuid"),
            texts(&told, "timestamp"),
            texts(&told, "location_source")
        ),
        (
            vec![id(1).to_string()],
            vec![at("11:30")],
            vec!["platform_location_visit".to_owned()]
        )
    );
    assert_eq!(keys(&told[0]).len(), 16);
    assert_eq!(
        texts(
            &at_time(&person, &at("09:30"), &[("window_size", "3600")]).await,
            "uuid"
        ),
        [id(9).to_string()],
        "an update is better"
    );
    assert_eq!(
        texts(
            &at_time(&person, &at("12:30"), &[("window_size", "3600")]).await,
            "timestamp"
        ),
        [at("12:00")],
        "when they left"
    );
    assert_eq!(
        texts(
            &at_time(&person, &at("13:30"), &[("window_size", "3600")]).await,
            "timestamp"
        ),
        [at("13:00")],
        "nobody knows for how long they stayed"
    );
    assert!(
        at_time(&person, "2024-06-01T00:00:00Z", &[]).await.is_empty(),
        "a stay without an end does not go on for ever"
    );
    let found = series(
        &person,
        &at("08:00"),
        &at("15:00"),
        &[("sample_rate", "1800"), ("look_back", "3600")],
    )
    .await;
    let shown: Vec<(f64, String)> = found
        .iter()
        .map(|row| (number(row, "lat"), row["time"].as_str().unwrap().to_owned()))
        .collect();
    let expected = [
        (10.0, "08:00"),
        (10.0, "08:30"),
        (11.0, "09:00"),
        (11.0, "09:00"),
        (11.0, "09:00"),
        (10.0, "10:30"),
        (10.0, "11:00"),
        (10.0, "11:30"),
        (10.0, "12:00"),
        (10.0, "12:00"),
        (20.0, "13:00"),
        (20.0, "13:00"),
        (20.0, "13:00"),
    ];
    assert_eq!(shown, expected.map(|(latitude, time)| (latitude, at(time))));
    let maps_only = series(
        &person,
        &at("08:00"),
        &at("15:00"),
        &[("location_sources", "maps")],
    )
    .await;
    assert!(maps_only.is_empty(), "visits are the device's");
}

/// Both ends of the window are part of it, and a moment does not depend on where the series begins.
#[tokio::test]
async fn rule_4_3_the_moment_somebody_left_is_the_last_of_a_visit_wherever_the_range_begins() {
    let person = person();
    let visits = [
        visit(id(1), &at("08:00"), &at("09:00"), 1.0, 1.0),
        visit(id(2), "0001-01-01T00:00:00Z", &at("11:00"), 2.0, 2.0),
        visit(id(3), &at("13:00"), "4001-01-01T00:00:00Z", 3.0, 3.0),
    ];
    person.records("PlatformLocationVisit", &visits).await;
    for (time, window, left) in [
        ("09:00", "0", Some("09:00")),
        ("09:09:59", "600", Some("09:00")),
        ("09:10", "600", Some("09:00")),
        ("09:10:00.000001", "600", None),
        ("11:00", "0", Some("11:00")),
        ("11:10", "600", Some("11:00")),
        ("13:10", "600", Some("13:00")),
        ("13:10:00.000001", "600", None),
    ] {
        let found = at_time(&person, &at(time), &[("window_size", window)]).await;
        let expected: Vec<String> = left.into_iter().map(at).collect();
        assert_eq!(texts(&found, "timestamp"), expected, "{time} within {window} s");
    }
    let slices = async |start: &str, end: &str, rate: &str, look_back: &str| {
        let more = [("sample_rate", rate), ("look_back", look_back)];
        texts(&series(&person, &at(start), &at(end), &more).await, "slice_time")
    };
    let times = |times: &[&str]| times.iter().map(|time| at(time)).collect::<Vec<_>>();
    assert_eq!(
        slices("08:30", "09:31", "1800", "0").await,
        times(&["08:30", "09:00"])
    );
    assert_eq!(slices("09:00", "09:31", "1800", "0").await, times(&["09:00"]));
    assert_eq!(slices("09:10", "09:11", "60", "600").await, times(&["09:10"]));
    assert_eq!(slices("11:00", "12:00", "1800", "0").await, times(&["11:00"]));
    for minute in ["09:08", "09:09", "09:10", "09:11"] {
        let one = slices(minute, &format!("{minute}:01"), "60", "600").await;
        let all = slices("08:00", "09:20", "60", "600").await;
        assert_eq!(one.contains(&at(minute)), all.contains(&at(minute)), "{minute}");
    }
}

#[tokio::test]
async fn a_longer_track_is_the_same_in_the_tail_and_in_objects() {
    let almanac = Setup::default().busy_upkeep().start();
    let person = almanac.person();
    let record = |n: u32| {
        let minute = n * 7;
        let moment = format!(
            "2024-05-{:02}T{:02}:{:02}:00Z",
            1 + minute / 1440,
            minute / 60 % 24,
            minute % 60
        );
        update(
            id(n),
            &moment,
            40.0 + f64::from(n % 100) * 0.001,
            -75.0,
            f64::from(n % 7) - 1.0,
        )
    };
    let records: Vec<Value> = (0..4000).map(record).collect();
    person.records("PlatformLocationUpdate", &records).await;
    let ask = || {
        series(
            &person,
            "2024-05-02T00:00:00Z",
            "2024-05-18T00:00:00Z",
            &[("sample_rate", "600")],
        )
    };
    let (before, moment) = (ask().await, at_time(&person, "2024-05-10T12:34:56Z", &[]).await);
    assert_eq!(before.len(), 16 * 144);
    flushed(&almanac).await;
    assert_eq!(ask().await, before);
    assert_eq!(at_time(&person, "2024-05-10T12:34:56Z", &[]).await, moment);
    assert_eq!(moment.len(), 1);
    for method in METHODS {
        let call = between(
            own(&person, "location_time_series"),
            "2024-05-02T00:00:00Z",
            "2024-05-18T00:00:00Z",
        );
        let reply = call
            .with("sample_rate", "600")
            .with("output", method)
            .await
            .must_be(200);
        assert_eq!(
            Table::read(method, &reply.body).rows.len(),
            before.len(),
            "{method}"
        );
    }
}

#[tokio::test]
async fn bad_parameters_are_named() {
    let person = person();
    let refused = async |what: &str, name: &str, value: &str| {
        let call = between(own(&person, what), &at("10:00"), &at("11:00")).with("time", &at("10:00"));
        let faults = call.with(name, value).await.faults();
        assert_eq!(faults, [format!("query.{name}")], "{what} {name}={value}");
    };
    for value in ["-1", "x", "1.5", "", "99999999999999999999", "9999999999999999"] {
        refused("location_at_time", "window_size", value).await;
        refused("location_time_series", "sample_rate", value).await;
        refused("location_time_series", "look_back", value).await;
    }
    refused("location_time_series", "sample_rate", "0").await;
    for value in ["-1", "NaN", "inf", "far"] {
        refused("location_time_series", "change_meters", value).await;
    }
    refused("location_time_series", "location_sources", "gps").await;
    refused("location_time_series", "location_sources", "maps,gps").await;
    refused("location_at_time", "include_after", "yes").await;
    assert_eq!(own(&person, "location_at_time").await.faults(), ["query.time"]);
    assert_eq!(
        own(&person, "location_at_time")
            .with("time", "1714557600")
            .await
            .faults(),
        ["query.time"]
    );
    let century =
        between(own(&person, "location_time_series"), "1900-01-01", "2000-01-01").with("sample_rate", "1");
    assert_eq!(
        century.await.faults(),
        ["query.sample_rate"],
        "more rows than the limit"
    );
    let zero = at_time(&person, &at("10:00"), &[("window_size", "0")]).await;
    assert!(zero.is_empty());
    for extreme in ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"] {
        let found = at_time(
            &person,
            extreme,
            &[("window_size", "9223372036854"), ("include_after", "1")],
        )
        .await;
        assert!(found.is_empty(), "{extreme}");
    }
    let stranger = crate::harness::person();
    for what in ["location_at_time", "location_time_series"] {
        let call = stranger.get(&format!("/data/v0/{}/{what}", person.id));
        between(call, &at("10:00"), &at("11:00"))
            .with("time", &at("10:00"))
            .await
            .problem(403);
    }
}

#[tokio::test]
async fn visits_are_worked_out_from_updates_for_those_who_ask_and_have_none() {
    let person = person();
    let minutes = (0..60).map(|minute| {
        let home = minute < 25;
        let metres = if home {
            0.000_2 * f64::from(minute % 3)
        } else {
            0.01 * f64::from(minute)
        };
        update(
            id(minute),
            &at(&format!("10:{minute:02}")),
            40.0 + metres,
            -75.0,
            10.0,
        )
    });
    person
        .records("PlatformLocationUpdate", &minutes.collect::<Vec<_>>())
        .await;
    let visits = || {
        between(
            own(&person, "platform_location_visits"),
            &at("10:20"),
            &at("11:00"),
        )
    };
    assert!(
        rows(visits()).await.is_empty(),
        "nothing is worked out for those who do not ask"
    );
    let derived = rows(visits().with("derive", "true")).await;
    assert_eq!(derived.len(), 1, "{derived:?}");
    assert_eq!(
        (&derived[0]["arrival_date"], &derived[0]["departure_date"]),
        (&json!(at("10:00")), &json!(at("10:25")))
    );
    assert_eq!(
        keys(&derived[0]),
        [
            "uuid",
            "latitude_degrees",
            "longitude_degrees",
            "horizontal_accuracy_meters",
            "arrival_date",
            "departure_date"
        ]
    );
    assert_eq!(
        rows(visits().with("derive", "true")).await,
        derived,
        "with the same id each time"
    );
    let touching = between(
        own(&person, "platform_location_visits"),
        &at("10:25"),
        &at("11:00"),
    );
    assert!(
        rows(touching.with("derive", "true")).await.is_empty(),
        "half-open"
    );
    for method in METHODS {
        let reply = visits()
            .with("derive", "true")
            .with("output", method)
            .await
            .must_be(200);
        assert_eq!(Table::read(method, &reply.body).rows.len(), 1, "{method}");
    }
    person
        .records(
            "PlatformLocationVisit",
            &[visit(id(100), &at("10:30"), &at("10:40"), 1.0, 1.0)],
        )
        .await;
    assert_eq!(
        texts(&rows(visits().with("derive", "true")).await, "uuid"),
        [id(100).to_string()],
        "what was told is better"
    );
    assert_eq!(visits().with("derive", "often").await.faults(), ["query.derive"]);
}

#[tokio::test]
async fn rule_9_2c_a_derived_visit_ends_where_what_is_shared_ends() {
    let (owner, reader) = (person(), person());
    let updates = (0..30).map(|number| {
        let moment = at(&format!("10:{:02}", 2 * number));
        update(id(number), &moment, 47.0, 8.0, 10.0)
    });
    owner
        .records("PlatformLocationUpdate", &updates.collect::<Vec<_>>())
        .await;
    for (start, end) in [("10:00", "10:30"), ("10:40", "11:00")] {
        let mut body = share_of(&["PlatformLocationUpdate", "PlatformLocationVisit"], &reader);
        body["time_start"] = json!(at(start));
        body["time_end"] = json!(at(end));
        share(&owner, &body).await;
    }
    let call = reader.get(&format!("/data/v0/{}/platform_location_visits", owner.id));
    let derived = rows(between(call, &at("10:00"), &at("11:00")).with("derive", "true")).await;
    assert_eq!(texts(&derived, "arrival_date"), [at("10:00"), at("10:40")]);
    assert_eq!(texts(&derived, "departure_date"), [at("10:28"), at("10:58")]);
}

#[tokio::test]
async fn a_visit_of_days_is_the_same_whichever_part_of_it_is_asked_for() {
    let person = person();
    // Every ten minutes at home, from Friday evening to Monday morning.
    let updates = (0..372).map(|number| {
        let minutes = 18 * 60 + 10 * number;
        let (day, hour, minute) = (3 + minutes / 1440, minutes / 60 % 24, minutes % 60);
        let moment = format!("2024-05-{day:02}T{hour:02}:{minute:02}:00Z");
        update(id(number), &moment, 47.0, 8.0, 10.0)
    });
    person
        .records("PlatformLocationUpdate", &updates.collect::<Vec<_>>())
        .await;
    let visits = async |start: &str, end: &str| {
        let visits = between(own(&person, "platform_location_visits"), start, end);
        rows(visits.with("derive", "true")).await
    };
    let whole = visits("2024-05-01T00:00:00Z", "2024-05-08T00:00:00Z").await;
    assert_eq!(whole.len(), 1, "{whole:?}");
    for (name, moment) in [
        ("arrival_date", "2024-05-03T18:00"),
        ("departure_date", "2024-05-06T07:50"),
    ] {
        let told = whole[0][name].as_str().unwrap();
        assert!(told.starts_with(moment), "{name}: {told}");
    }
    for (start, end) in [
        ("2024-05-03T00:00:00Z", "2024-05-04T00:00:00Z"),
        ("2024-05-03T18:00:00Z", "2024-05-03T18:30:00Z"),
        ("2024-05-05T00:00:00Z", "2024-05-06T00:00:00Z"),
        ("2024-05-05T12:00:00Z", "2024-05-05T12:01:00Z"),
        ("2024-05-06T07:00:00Z", "2024-05-07T00:00:00Z"),
    ] {
        assert_eq!(visits(start, end).await, whole, "from {start} to {end}");
    }
    assert!(
        visits("2024-05-06T07:50:00Z", "2024-05-07T00:00:00Z")
            .await
            .is_empty()
    );
}
