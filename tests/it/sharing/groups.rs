//! Groups: who sees them, who joins them, and what their owners learn (rules 9.1, 9.2h).

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{GROUP, group, join, share, share_of};
use crate::harness::{Call, METHODS, Person, at, heart_rate, id, person, shared, steps};

fn whole() -> Value {
    json!({
        "title": "Sleep study", "responsible_entity": "University", "description": "How we sleep",
        "svc_data_types": ["SleepStage", "HeartRate"], "time_start": "2024-01-01T00:00:00Z", "time_end": null,
        "is_public": true, "group_url": "https://example.org", "detail_markdown": "# Detail",
        "agreement_markdown": "I agree", "withdraw_markdown": "Leave",
        "header_image_url": "https://example.org/a.png",
        "preview_image_url": "https://example.org/b.png", "friendly_id": "sleep",
        "view_description": "weekly",
    })
}

async fn ids_for(person: &Person, path: &str) -> Vec<String> {
    let rows = person.get(path).await.must_be(200).rows();
    rows.iter()
        .map(|row| row["group_id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn a_group_is_what_was_said_of_it_and_only_what_nobody_agreed_to_changes() {
    let (owner, member) = (person(), person());
    let made = owner.post(GROUP, &whole()).await.must_be(201).json()["group"].clone();
    let path = format!("{GROUP}/{}", made["group_id"].as_str().unwrap());
    for (name, value) in whole().as_object().unwrap() {
        assert_eq!(&made[name], value, "{name}");
    }
    assert_eq!(owner.get(&path).await.must_be(200).json()["group"], made);
    let older = path.replace("/v1/", "/v1alpha1/");
    assert_eq!(owner.get(&older).await.must_be(200).json()["group"], made);
    let seen = member.get(&path).await.must_be(200);
    assert!(!seen.text().contains(&owner.id.to_string()), "{seen}");
    assert!(
        seen.json()["group"].get("invited_svc_userids").is_none(),
        "{seen}"
    );

    let change = json!({"description": "New", "view_description": null, "title": "Sleep study"});
    let changed = owner.put(&path, &change).await.must_be(200).json()["group"].clone();
    let mut expected = made.clone();
    expected["description"] = json!("New");
    expected["view_description"] = Value::Null;
    assert_eq!(changed, expected);
    for (name, value) in [
        ("title", json!("Other")),
        ("svc_data_types", json!(["HeartRate", "StepCount"])),
        ("time_start", json!("2020-01-01T00:00:00Z")),
        ("is_public", json!(false)),
        ("agreement_markdown", json!("I agree to more")),
    ] {
        let change = json!({(name): value, "description": "Sneaked in"});
        assert_eq!(owner.put(&path, &change).await.faults(), [format!("body.{name}")]);
    }
    assert_eq!(owner.get(&path).await.json()["group"], expected);
    member
        .put(&path, &json!({"description": "Mine"}))
        .await
        .problem(403);
    member.call(Method::DELETE, &path).await.problem(403);
    member.get(&format!("{path}/participants")).await.problem(403);
    owner.call(Method::DELETE, &path).await.must_be(204);
    owner.get(&path).await.problem(404);
}

#[tokio::test]
async fn what_members_agreed_to_may_be_sent_again_however_it_is_spelt() {
    let owner = person();
    let mut body = json!({
        "title": "Cafe\u{301}", "svc_data_types": ["StepCount", "HeartRate", "StepCount"], "is_public": null,
        "time_start": "2026-01-01T00:00:00+01:00", "time_end": "2026-06-01T00:00:00Z",
    });
    let path = format!("{GROUP}/{}", group(&owner, &body).await);
    let made = owner.get(&path).await.must_be(200).json()["group"].clone();
    assert_eq!(owner.put(&path, &body).await.must_be(200).json()["group"], made);
    for (name, value) in [
        ("time_end", json!("2026-06-01T00:00:00.000Z")),
        ("time_end", json!("2026-06-01 02:00:00+0200")),
        ("svc_data_types", json!(["HeartRate", "StepCount"])),
        ("title", json!("Caf\u{e9}")),
        ("is_public", json!(false)),
        (
            "created_at",
            json!(made["created_at"].as_str().unwrap().replace('Z', "+00:00")),
        ),
        (
            "group_id",
            json!(made["group_id"].as_str().unwrap().to_uppercase()),
        ),
    ] {
        body[name] = value;
        assert_eq!(
            owner.put(&path, &body).await.must_be(200).json()["group"],
            made,
            "{body}"
        );
    }
    for (name, value) in [
        ("time_end", json!("2026-06-01T00:00:00.001Z")),
        ("time_end", json!("2026-06-01T00:00:00")),
        ("time_end", json!(null)),
        ("svc_data_types", json!(["HeartRate"])),
        ("svc_data_types", json!(["HeartRate", "StepCount", "Nothing"])),
        ("svc_data_types", json!(null)),
        ("is_public", json!(true)),
        ("created_at", json!("2026-06-01T00:00:00Z")),
        ("group_id", json!(id(1))),
    ] {
        let faults = owner.put(&path, &json!({(name): value})).await.faults();
        assert_eq!(faults, [format!("body.{name}")]);
    }
}

#[tokio::test]
async fn what_a_group_cannot_be_is_refused_with_its_place() {
    let owner = person();
    let own = owner.define("Event", &json!({"name": "Tea"})).await;
    for (name, value, place) in [
        ("title", json!(""), "body.title"),
        ("title", json!("a\u{0}"), "body.title"),
        (
            "svc_data_types",
            json!(["HeartRate", own]),
            "body.svc_data_types.1",
        ),
        ("svc_data_types", json!(["file:/"]), "body.svc_data_types.0"),
        ("time_start", json!("2024-01-01T00:00:00"), "body.time_start"),
        ("time_end", json!("2024-01-01T00:00:00Z"), "body.time_end"),
        ("is_public", json!("yes"), "body.is_public"),
        ("description", json!("a\u{0}"), "body.description"),
        ("invited_svc_userids", json!(["me"]), "body.invited_svc_userids.0"),
    ] {
        let mut body = whole();
        body[name] = value;
        assert_eq!(owner.post(GROUP, &body).await.faults(), [place], "{body}");
    }
    assert_eq!(owner.post(GROUP, &json!({})).await.faults(), ["body.title"]);
}

#[tokio::test]
async fn private_groups_are_seen_by_owner_members_and_those_invited() {
    let (owner, friend, stranger) = (person(), person(), person());
    let body = json!({"title": "Family", "invited_svc_userids": [friend.id]});
    let family = group(&owner, &body).await;
    let path = format!("{GROUP}/{family}");
    assert!(ids_for(&friend, GROUP).await.contains(&family));
    assert!(!ids_for(&stranger, GROUP).await.contains(&family));
    assert_eq!(
        ids_for(&friend, &format!("{GROUP}?subscribed_only=true")).await,
        [""; 0]
    );
    let hidden = stranger.get(&path).await.must_be(404);
    let missing = stranger
        .get(&format!("{GROUP}/{}", Uuid::new_v4()))
        .await
        .must_be(404);
    assert_eq!(hidden.body, missing.body);
    stranger
        .call(Method::POST, &format!("{path}/membership"))
        .await
        .problem(404);
    stranger.call(Method::DELETE, &path).await.problem(404);
    let participant = join(&friend, &family).await;
    assert_eq!(
        join(&friend, &family).await,
        participant,
        "joining twice changes nothing"
    );
    assert_eq!(
        ids_for(&friend, &format!("{GROUP}?subscribed_only=1")).await,
        std::slice::from_ref(&family)
    );
    // Who is a member stays one when the invitation is taken back.
    owner
        .put(&path, &json!({"invited_svc_userids": []}))
        .await
        .must_be(200);
    friend.get(&path).await.must_be(200);
    friend
        .call(Method::DELETE, &format!("{path}/membership"))
        .await
        .must_be(200);
    friend.get(&path).await.problem(404);
    friend
        .call(Method::DELETE, &format!("{path}/membership"))
        .await
        .problem(404);
    friend.get(&format!("{GROUP}/nothing")).await.problem(404);
}

#[tokio::test]
async fn the_owner_knows_participants_by_ids_that_say_nothing_and_notes_what_they_like() {
    let (owner, member, stranger) = (person(), person(), person());
    let study = group(&owner, &whole()).await;
    let participant = join(&member, &study).await;
    let list = format!("{GROUP}/{study}/participants");
    let listed = owner.get(&list).await.must_be(200);
    assert!(!listed.text().contains(&member.id.to_string()), "{listed}");
    assert_eq!(listed.rows().len(), 1);
    assert_eq!(listed.rows()[0]["participant_id"], json!(participant));
    assert!(listed.rows()[0]["joined_at"].is_string());

    let notes = format!("{list}/{participant}/metadata");
    assert_eq!(owner.get(&notes).await.must_be(200).json(), json!({}));
    let first = json!({"arm": "A", "visits": {"first": 1, "second": 2}});
    assert_eq!(owner.put(&notes, &first).await.must_be(200).json(), first);
    let patch = json!({"visits": {"second": null, "third": 3}, "arm": "B"});
    let patched = owner
        .call(Method::PATCH, &notes)
        .header("content-type", "application/json")
        .body(patch.to_string())
        .await
        .must_be(200)
        .json();
    assert_eq!(patched, json!({"arm": "B", "visits": {"first": 1, "third": 3}}));
    assert_eq!(owner.get(&notes).await.json(), patched);
    let merged = |method: Method| {
        owner
            .call(method, &notes)
            .header("content-type", "application/merge-patch+json; charset=utf-8")
            .body(json!({"arm": "C"}).to_string())
    };
    assert_eq!(merged(Method::PATCH).await.must_be(200).json()["arm"], "C");
    merged(Method::PUT).await.problem(415);
    for other in [&member, &stranger] {
        other.get(&notes).await.problem(403);
        other.put(&notes, &json!({})).await.problem(403);
    }
    owner.put(&notes, &json!([1])).await.must_be(422);
    owner.put(&notes, &json!({"a": "\u{0}"})).await.must_be(422);
    // How that character is written is a text like any other.
    let written = json!({"a": "\\u0000", "\\u0000": 1});
    assert_eq!(owner.put(&notes, &written).await.must_be(200).json(), written);
    assert_eq!(owner.get(&notes).await.must_be(200).json(), written);
    owner
        .put(&notes, &json!({"a": "x".repeat(70_000)}))
        .await
        .must_be(422);
    owner
        .get(&format!("{list}/{}/metadata", Uuid::new_v4()))
        .await
        .problem(404);
    owner.get(&format!("{list}/somebody/metadata")).await.problem(404);
}

#[tokio::test]
async fn the_owner_reads_only_the_groups_types_inside_its_time() {
    let (owner, member) = (person(), person());
    member
        .records("HeartRate", &[heart_rate(id(1), &at("10:30"), 61)])
        .await;
    let body = json!({
        "title": "May", "is_public": true, "svc_data_types": ["HeartRate"],
        "time_start": "2024-05-01T00:00:00Z", "time_end": "2024-06-01T00:00:00Z",
    });
    let study = group(&owner, &body).await;
    let participant = join(&member, &study).await;
    let samples = |metric: &str, start: &str, end: &str| {
        owner
            .get(&format!(
                "/data/v0/pool/{study}/participant/{participant}/metric_samples"
            ))
            .with("metric", metric)
            .with("start_time", start)
            .with("end_time", end)
    };
    let inside = ("2024-05-01T00:00:00Z", "2024-06-01T00:00:00Z");
    assert_eq!(
        samples("HeartRate", inside.0, inside.1)
            .await
            .must_be(200)
            .rows()
            .len(),
        1
    );
    samples("StepCount", inside.0, inside.1).await.problem(403);
    samples("HeartRate", "2024-04-30T00:00:00Z", inside.1)
        .await
        .problem(403);
    samples("HeartRate", inside.0, "2024-06-01T00:00:01Z")
        .await
        .problem(403);
    let by_query = |pool: &str, participant: Option<&str>| {
        let mut call = owner
            .get("/data/v1alpha1/event/HeartRate")
            .with("start_time", inside.0)
            .with("end_time", inside.1)
            .with("pool_id", pool);
        if let Some(participant) = participant {
            call = call.with("participant_id", participant);
        }
        call
    };
    let rows = by_query(&study, Some(&participant)).await.must_be(200).rows();
    assert_eq!(rows.len(), 1);
    assert_eq!(by_query(&study, None).await.faults(), ["query.participant_id"]);
    assert_eq!(
        by_query("study", Some(&participant)).await.faults(),
        ["query.pool_id"]
    );
    let both = by_query(&study, Some(&participant)).with("svc_userid", &member.id.to_string());
    assert_eq!(both.await.faults(), ["query.svc_userid"]);
    for path in [
        "/data/v1alpha1/event/HeartRate",
        "/data/v1alpha1/event/HeartRate/latest",
        "/data/v1alpha1/event/HeartRate/summary",
        "/data/v1alpha1/metric/HeartRate",
        "/data/v1alpha1/event/HeartRate/agg/day",
    ] {
        let alone = owner.get(path).with("participant_id", &participant);
        let alone = alone.with("start_time", "long ago").with("end_time", inside.1);
        let mut faults = alone.with("filter", "rubbish").await.faults();
        faults.sort_unstable();
        let expected = ["query.filter", "query.pool_id", "query.start_time"];
        assert_eq!(faults, expected, "{path}");
    }
    owner
        .get("/data/v0/pool/study/participant/one/metric_samples")
        .await
        .must_be(422);
    for unreadable in [
        format!("%ff/participant/{participant}"),
        format!("{study}/participant/%ff"),
    ] {
        let path = format!("/data/v0/pool/{unreadable}/time_series_grouped");
        let series = owner
            .get(&path)
            .with("metrics", "HeartRate")
            .with("samprate", "3600");
        let series = series.with("start_time", inside.0).with("end_time", inside.1);
        series.await.must_be(422);
    }
    owner
        .call(Method::DELETE, &format!("{GROUP}/{study}"))
        .await
        .must_be(204);
    samples("HeartRate", inside.0, inside.1).await.problem(403);
}

#[tokio::test]
async fn only_moments_that_the_route_knows_must_lie_inside_a_groups_time() {
    let (owner, member) = (person(), person());
    let body = json!({
        "title": "May", "is_public": true,
        "svc_data_types": ["PlatformLocationUpdate", "MapsLocationUpdate", "SleepStage"],
        "time_start": "2024-05-01T00:00:00Z", "time_end": "2024-06-01T00:00:00Z",
    });
    let study = group(&owner, &body).await;
    let participant = join(&member, &study).await;
    let ask = |route: &str| {
        owner
            .get(&format!(
                "/data/v0/pool/{study}/participant/{participant}/{route}"
            ))
            .with("output", "jstable")
    };
    let before = "2024-01-01T00:00:00Z";
    let here = |time: &str| ask("location_at_time").with("time", time);
    here(before).await.problem(403);
    let beside = here(&at("10:00")).with("start_time", before).with("end", before);
    let beside = beside.await.must_be(200);
    assert_eq!(beside.header("x-ignored-parameters"), Some("end, start_time"));
    let stages = ask("sleep_stage_metadata")
        .with("start", before)
        .await
        .must_be(200);
    assert_eq!(stages.header("x-ignored-parameters"), Some("start"));
    let cycles = |start: &str| {
        ask("sleep_cycles")
            .with("start", start)
            .with("end_time", &at("10:00"))
            .with("time", before)
    };
    cycles(before).await.problem(403);
    let ignored = cycles(&at("00:00")).await.must_be(200);
    assert_eq!(ignored.header("x-ignored-parameters"), Some("time"));
}

#[tokio::test]
async fn days_of_a_zone_lie_inside_a_groups_time_where_they_begin_and_end_there() {
    let (owner, member) = (person(), person());
    member
        .records("HeartRate", &[heart_rate(id(1), &at("10:30"), 61)])
        .await;
    let body = json!({
        "title": "May in Auckland", "is_public": true, "svc_data_types": ["HeartRate"],
        "time_start": "2024-05-01T00:00:00+12:00", "time_end": "2024-06-01T00:00:00+12:00",
    });
    let study = group(&owner, &body).await;
    let participant = join(&member, &study).await;
    let asked = |zone: &str, start: &str, end: &str| {
        owner
            .get("/data/v1alpha1/event/HeartRate")
            .with("pool_id", &study)
            .with("participant_id", &participant)
            .with("start_time", start)
            .with("end_time", end)
            .with("dates", "local")
            .with("tz", zone)
    };
    let (first, last) = ("2024-05-01", "2024-06-01");
    let rows = asked("Pacific/Auckland", first, last).await.must_be(200).rows();
    assert_eq!(rows.len(), 1);
    asked("UTC", first, last).await.problem(403);
    asked("Pacific/Auckland", "2024-04-30", last).await.problem(403);
    asked("Asia/Tokyo", first, last).await.problem(403);
    asked("Pacific/Kiritimati", first, last).await.problem(403);
}

#[tokio::test]
async fn a_method_that_a_route_lacks_is_refused_whatever_group_is_named() {
    let (owner, participant) = (person(), Uuid::new_v4());
    for group in [Uuid::new_v4().to_string(), "study".to_owned()] {
        let path = format!("/data/v0/pool/{group}/participant/{participant}/metric_samples");
        let reply = owner.call(Method::POST, &path).await;
        let allowed = reply.header("allow").unwrap_or_default().to_owned();
        assert!(allowed.contains("GET"), "{reply}");
        reply.problem(405);
        owner
            .get(&path)
            .await
            .must_be(if group == "study" { 422 } else { 403 });
    }
    let path = format!(
        "/data/v1alpha1/event/HeartRate?pool_id={}&participant_id={participant}",
        Uuid::new_v4()
    );
    owner.call(Method::POST, &path).await.problem(405);
}

#[tokio::test]
async fn whoever_names_a_participant_names_no_person_beside() {
    let (owner, member) = (person(), person());
    let body = json!({
        "title": "May", "is_public": true, "svc_data_types": ["HeartRate"],
        "time_start": "2024-05-01T00:00:00Z", "time_end": "2024-06-01T00:00:00Z",
    });
    let study = group(&owner, &body).await;
    let participant = join(&member, &study).await;
    for (route, name) in [
        ("metric_time_series", "metric"),
        ("time_series_grouped", "metrics"),
    ] {
        let ask = |person: &str| {
            owner
                .get(&format!(
                    "/data/v0/pool/{study}/participant/{participant}/{route}"
                ))
                .with(name, "HeartRate")
                .with("output", "csv")
                .with("start_time", &at("10:00"))
                .with("end_time", &at("11:00"))
                .with("svc_userid", person)
        };
        for person in [owner.id.to_string(), "junk".to_owned()] {
            let reply = ask(&person).await.must_be(200);
            assert_eq!(
                reply.header("x-ignored-parameters"),
                Some("svc_userid"),
                "{route}"
            );
            let strictly = ask(&person).with("strict", "true").await;
            assert_eq!(strictly.faults(), ["query.svc_userid"], "{route}");
        }
    }
}

#[tokio::test]
async fn participants_have_events_where_the_group_says_so_and_never_calendars() {
    let (owner, member) = (person(), person());
    let (calendar, other) = (id(1), id(2));
    let event = |n: u32, calendar: Uuid, day: &str| {
        json!({
            "calendar_event_id": id(n), "calendar_id": calendar, "title": format!("Meeting {n}"),
            "start_date": format!("{day}T10:00:00Z"), "end_date": format!("{day}T11:00:00Z"),
        })
    };
    let events = [
        event(3, calendar, "2024-05-02"),
        event(4, other, "2024-05-03"),
        event(5, calendar, "2024-06-02"),
    ];
    member.records("CalendarEvent", &events).await;
    let named = json!({"calendar_id": calendar, "calendar_identifier": "d", "calendar_name": "Doctor"});
    member.records("Calendar", &[named]).await;
    let group_of = async |types: &[&str]| {
        let body = json!({
            "title": "May", "is_public": true, "svc_data_types": types,
            "time_start": "2024-05-01T00:00:00Z", "time_end": "2024-06-01T00:00:00Z",
        });
        let study = group(&owner, &body).await;
        let participant = join(&member, &study).await;
        format!("/data/v0/pool/{study}/participant/{participant}")
    };
    let ask = |pool: &str, end: &str| {
        owner
            .get(&format!("{pool}/calendar_events"))
            .with("start_time", "2024-05-01T00:00:00Z")
            .with("end_time", end)
    };
    let whole = "2024-06-01T00:00:00Z";
    let pool = group_of(&["CalendarEvent", "Calendar"]).await;
    let answer = ask(&pool, whole).await.must_be(200);
    let titles: Vec<Value> = answer.rows().iter().map(|row| row["title"].clone()).collect();
    assert_eq!(titles, [json!("Meeting 3"), json!("Meeting 4")]);
    assert!(!answer.text().contains("Doctor"), "{answer}");
    let of_one = ask(&pool, whole).with("calendar_ids", &other.to_string());
    assert_eq!(of_one.await.must_be(200).rows().len(), 1);
    ask(&pool, "2024-06-03T00:00:00Z").await.problem(403);
    // What calendars somebody has is asked of no participant, whatever the group gives.
    owner.get(&format!("{pool}/calendars")).await.must_be(404);
    let without = group_of(&["HeartRate"]).await;
    ask(&without, whole).await.problem(403);
}

#[tokio::test]
async fn participants_are_named_neither_by_their_calendars_nor_among_those_invited() {
    let (owner, member) = (person(), person());
    let somebody = |name: &str, is_current_user: bool| {
        json!({
            "name": name, "url": format!("mailto:{name}@example.org"), "participant_role": "chair",
            "is_current_user": is_current_user,
        })
    };
    let event = |n: u32, organizer: &Value, participants: &[Value]| {
        json!({
            "calendar_event_id": id(n), "calendar_id": id(1), "title": "Meeting", "organizer": organizer,
            "participants": participants, "start_date": at(&format!("1{n}:00")),
            "end_date": at(&format!("1{n}:30")),
        })
    };
    let (bob, ada) = (somebody("Bob", true), somebody("Ada", false));
    let events = [event(2, &bob, &[bob.clone(), ada.clone()]), event(3, &ada, &[])];
    member.records("CalendarEvent", &events).await;
    let calendar = json!({
        "calendar_id": id(1), "calendar_identifier": "d", "calendar_name": "Bob", "calendar_color": "red",
        "calendar_source_name": "Bob@example.org", "svc_source": "Bob's phone", "inserted_at": at("09:00"),
    });
    member.records("Calendar", &[calendar]).await;
    let body = json!({
        "title": "May", "is_public": true, "svc_data_types": ["CalendarEvent", "Calendar"],
        "time_start": "2024-05-01T00:00:00Z", "time_end": "2024-06-01T00:00:00Z",
    });
    let study = group(&owner, &body).await;
    let participant = join(&member, &study).await;
    let within = |call: Call| {
        call.with("start_time", &at("00:00"))
            .with("end_time", &at("23:00"))
    };
    let of_type = |data_type: &str| {
        within(owner.get(&format!("/data/v1alpha1/event/{data_type}")))
            .with("pool_id", &study)
            .with("participant_id", &participant)
    };
    let pool = format!("/data/v0/pool/{study}/participant/{participant}/calendar_events");
    for output in METHODS {
        for call in [
            of_type("Calendar"),
            of_type("CalendarEvent"),
            within(owner.get(&pool)),
        ] {
            let reply = call.with("output", output).await.must_be(200);
            assert!(!reply.body.windows(3).any(|found| found == b"Bob"), "{reply}");
        }
    }
    let calendars = of_type("Calendar").await.must_be(200).rows();
    assert_eq!(calendars[0]["calendar_color"], "red");
    for name in ["calendar_name", "calendar_source_name", "svc_source"] {
        assert_eq!(calendars[0][name], Value::Null, "{name}");
    }
    for call in [of_type("CalendarEvent"), within(owner.get(&pool))] {
        let events = call.await.must_be(200).rows();
        assert_eq!(events.len(), 2);
        let names = ["/organizer/name", "/participants/0/name", "/participants/1/name"];
        let names = names.map(|place| events[0].pointer(place).cloned().unwrap_or_default());
        assert_eq!(names, [Value::Null, Value::Null, json!("Ada")]);
        assert_eq!(events[0]["organizer"]["participant_role"], "chair");
        assert_eq!(events[1]["organizer"]["url"], "mailto:Ada@example.org");
    }
    // Who somebody is decides, also where it is not asked for.
    let names = of_type("CalendarEvent").with("columns", "organizer.name").await;
    let names = names.must_be(200).rows();
    let names: Vec<&Value> = names.iter().map(|row| &row["organizer.name"]).collect();
    assert_eq!(names, [&Value::Null, &json!("Ada")]);
    for (data_type, condition) in [
        ("Calendar", "calendar_name=Bob"),
        ("Calendar", "svc_source~Bob"),
        ("CalendarEvent", "organizer.name=Bob"),
    ] {
        let found = of_type(data_type).with("filter", condition).await.must_be(200);
        assert!(found.rows().is_empty(), "{condition}: {found}");
    }
    // Whoever knows whose calendars they read sees them as they are.
    share(&member, &share_of(&["CalendarEvent", "Calendar"], &owner)).await;
    for data_type in ["CalendarEvent", "Calendar"] {
        let shared = within(owner.get(&format!("/data/v1alpha1/event/{data_type}")));
        let shared = shared
            .with("svc_userid", &member.id.to_string())
            .await
            .must_be(200);
        assert!(shared.text().contains("Bob@example.org"), "{shared}");
    }
}

/// A field that was declared later is filled from what records brought before.
#[tokio::test]
async fn participants_are_not_named_by_devices_that_their_types_declared_later() {
    let (owner, member) = (person(), person());
    let walk = |properties: Value| {
        let schema = json!({"properties": properties});
        json!({"name": "Walk", "description": "d", "record_spec": {"schema": schema}})
    };
    let note = json!({"type": "string"});
    let own = member.define("Event", &walk(json!({"note": note}))).await;
    let send = async |n: u32| {
        let record = json!({
            "id": id(n), "start_time": at(&format!("1{n}:00")), "end_time": at(&format!("1{n}:30")),
            "note": "around the lake", "device_properties": {"name": "Bob's phone"},
        });
        member.record(&own, &record).await.upload();
    };
    send(1).await;
    let device = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let grown = walk(json!({"note": note, "device_properties": device}));
    let changed = member.put(&format!("/input/v1/data_type/{own}"), &grown).await;
    changed.must_be(200);
    send(2).await;
    let body = json!({
        "title": "May", "is_public": true, "svc_data_types": ["Event"],
        "time_start": "2024-05-01T00:00:00Z", "time_end": "2024-06-01T00:00:00Z",
    });
    let study = group(&owner, &body).await;
    let participant = join(&member, &study).await;
    let read = || {
        owner
            .get(&format!("/data/v1alpha1/event/{own}"))
            .with("pool_id", &study)
            .with("participant_id", &participant)
            .with("start_time", &at("00:00"))
            .with("end_time", &at("23:00"))
    };
    for output in METHODS {
        let reply = read().with("output", output).await.must_be(200);
        assert!(!reply.body.windows(3).any(|found| found == b"Bob"), "{reply}");
    }
    let rows = read().await.must_be(200).rows();
    let notes: Vec<&Value> = rows.iter().map(|row| &row["note"]).collect();
    assert_eq!(notes, ["around the lake"; 2]);
    let found = read().with("filter", "device_properties.name~bob").await;
    assert!(found.must_be(200).rows().is_empty());
}

#[tokio::test]
async fn the_key_set_needs_no_token_and_is_true() {
    for path in [
        "/user/v1/group/.well-known/jwks.json",
        "/user/v1alpha1/group/.well-known/jwks.json",
    ] {
        let keys = shared().nobody().get(path).await.must_be(200).json();
        assert_eq!(keys, json!({"keys": []}));
    }
}

#[tokio::test]
async fn rule_9_2h_all_participants_together_are_told_of_where_five_of_them_have_records() {
    let owner = person();
    let body = json!({"title": "Five", "is_public": true, "svc_data_types": ["HeartRate"]});
    let study = group(&owner, &body).await;
    let ask = |class: &str, function: &str| {
        let call = owner
            .get(&format!("/data/v1alpha1/{class}/HeartRate/agg/60m"))
            .with("pool_id", &study)
            .with("start_time", "2024-05-01T00:00:00Z")
            .with("end_time", "2024-05-02T00:00:00Z");
        if function.is_empty() {
            call
        } else {
            call.with("function", function)
        }
    };
    let nothing = ask("event", "").await.must_be(200);
    assert_eq!(
        (nothing.rows().len(), nothing.header("x-svc-periods-left-out")),
        (0, Some("0"))
    );
    let mut members = Vec::new();
    for n in 0..5_u32 {
        let member = person();
        // Everybody at ten, the first four at eleven too.
        let mut rates = vec![heart_rate(id(1), &at("10:30"), f64::from(60 + n))];
        if n < 4 {
            rates.push(heart_rate(id(2), &at("11:30"), 70.0));
        }
        member.records("HeartRate", &rates).await;
        join(&member, &study).await;
        members.push(member);
    }
    let counted = ask("event", "").await.must_be(200);
    assert_eq!(counted.header("x-svc-periods-left-out"), Some("1"));
    let rows = counted.rows();
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(
        (&rows[0]["count"], &rows[0]["participants"]),
        (&json!(5), &json!(5))
    );
    let values = ask("metric", "min")
        .with("function", "max")
        .with("function", "avg")
        .await
        .must_be(200);
    let rows = values.rows();
    let numbers = ["min", "max", "avg"].map(|name| rows[0][name].as_f64().unwrap());
    assert_eq!(numbers, [60.0, 64.0, 62.0]);
    for member in &members {
        assert!(!values.text().contains(&member.id.to_string()));
    }
    // One leaves, and the rest cannot be told of any more.
    let membership = format!("{GROUP}/{study}/membership");
    members[0].call(Method::DELETE, &membership).await.must_be(200);
    assert_eq!(ask("event", "").await.must_be(200).rows().len(), 0);
    let stranger = person()
        .get("/data/v1alpha1/event/HeartRate/agg/60m")
        .with("pool_id", &study)
        .with("start_time", "2024-05-01T00:00:00Z")
        .with("end_time", "2024-05-02T00:00:00Z");
    stranger.await.problem(403);
}

#[tokio::test]
async fn rule_9_2h_a_period_needs_five_people_for_each_of_its_numbers() {
    let owner = person();
    let body = json!({"title": "Walks", "is_public": true, "svc_data_types": ["StepCount"]});
    let study = group(&owner, &body).await;
    let walk = |n: u32, from: &str, to: &str, count: u32| steps(id(n), &at(from), &at(to), count);
    for n in 0..5 {
        let member = person();
        // All walk at ten and at twelve; at ten, only one of them begins then.
        let first = if n < 4 {
            walk(1, "09:30", "10:30", 60)
        } else {
            walk(1, "10:10", "10:20", 777)
        };
        let second = walk(2, "12:00", "12:30", 10 * (n + 1));
        member.records("StepCount", &[first, second]).await;
        join(&member, &study).await;
    }
    for (functions, expected) in [
        (&["sum"][..], json!([[10, 897.0, 5], [12, 150.0, 5]])),
        (&["avg"], json!([[12, 30.0, 5]])),
        (&["sum", "avg"], json!([[12, 150.0, 30.0, 5]])),
        (&["sum", "min", "max"], json!([[12, 150.0, 10.0, 50.0, 5]])),
    ] {
        let call = owner
            .get("/data/v1alpha1/metric/StepCount/agg/60m")
            .with("pool_id", &study)
            .with("start_time", "2024-05-01T00:00:00Z")
            .with("end_time", "2024-05-02T00:00:00Z");
        let call = functions
            .iter()
            .fold(call, |call, name| call.with("function", name));
        let rows = call.await.must_be(200).rows();
        let told = rows.iter().map(|row| {
            let hour: u32 = row["time"].as_str().unwrap()[11..13].parse().unwrap();
            let numbers = functions.iter().map(|name| row[*name].clone());
            let numbers: Vec<Value> = numbers.chain([row["participants"].clone()]).collect();
            [vec![json!(hour)], numbers].concat()
        });
        assert_eq!(
            told.map(Value::from).collect::<Value>(),
            expected,
            "{functions:?}"
        );
    }
}

#[tokio::test]
async fn rule_8_8_titles_and_names_are_kept_composed_and_may_be_sent_either_way() {
    let (owner, reader) = (person(), person());
    let body = json!({"title": "Cafe\u{301}"});
    let made = group(&owner, &body).await;
    let path = format!("{GROUP}/{made}");
    let told = owner.get(&path).await.must_be(200).json()["group"]["title"].clone();
    assert_eq!(told, json!("Caf\u{e9}"));
    for title in ["Cafe\u{301}", "Caf\u{e9}"] {
        owner.put(&path, &json!({"title": title})).await.must_be(200);
    }
    let mut terms = share_of(&["HeartRate"], &reader);
    terms["datashare_name"] = body["title"].clone();
    assert_eq!(share(&owner, &terms).await["datashare_name"], told);
}
