//! Every route that reads a person's data, taken from the list of routes, asked by everybody who might ask.

use std::collections::BTreeMap;

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{DATASHARE, at as address, group, join, share, share_of};
use crate::harness::{Call, Person, Reply, at, heart_rate, id, person, shared};

const RANGE: (&str, &str) = ("2024-05-01T00:00:00Z", "2024-05-02T00:00:00Z");

/// A route that reads a person's data.
struct Route {
    path: String,
    /// The types without which it answers nothing.
    needs: &'static [&'static str],
}

/// What each route needs. A route that is missing here fails the test: say what it reads.
fn needs(path: &str) -> Option<&'static [&'static str]> {
    const V0: &str = "/data/v0/{svc_userid}/";
    Some(match path.strip_prefix(V0).unwrap_or(path) {
        "metric_samples" | "metric_time_series" | "/data/v0/time_series_grouped" | "/data/v1/records" => {
            &["HeartRate"]
        }
        "sleep_stages" | "sleep_cycles" | "sleep_agg" | "sleep_stage_metadata" => &["SleepStage"],
        "sleep_cycles_extended" => &["SleepStage", "HeartRate"],
        "platform_location_updates" | "location_updates" | "location_at_time" | "location_time_series" => {
            &["PlatformLocationUpdate", "MapsLocationUpdate"]
        }
        "platform_location_visits" => &["PlatformLocationVisit"],
        "maps_location_updates" | "maps_location_updates/bounds" => &["MapsLocationUpdate"],
        "platform_workouts" => &["PlatformWorkout"],
        "calendars" => &["Calendar"],
        "calendar_events" => &["CalendarEvent"],
        "/data/v1alpha1/event/{data_type}"
        | "/data/v1alpha1/event/{data_type}/latest"
        | "/data/v1alpha1/event/{data_type}/summary"
        | "/data/v1alpha1/event/{data_type}/agg/{resolution}"
        | "/data/v1alpha1/metric/{data_type}"
        | "/data/v1alpha1/metric/{data_type}/agg/{resolution}" => &["HeartRate"],
        _ => return None,
    })
}

/// Listings: what there is, not what it holds. They are looked at on their own.
const LISTINGS: [&str; 5] = [
    "/data/v1/catalog",
    "/data/v1/catalog/{data_type}/{api_version}",
    "/data/v1/catalog/{data_type}/{api_version}/schema",
    "/data/v1/updates",
    "/data/v1alpha1/data_available",
];

async fn routes() -> Vec<Route> {
    let document = shared().nobody().get("/openapi.json").await.must_be(200).json();
    let mut routes = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let parameters = item["get"]["parameters"].as_array().cloned().unwrap_or_default();
        let of_others = parameters
            .iter()
            .any(|parameter| parameter["name"] == "svc_userid");
        if !path.starts_with("/data/") || !of_others || LISTINGS.contains(&path.as_str()) {
            continue;
        }
        let needs =
            needs(path).unwrap_or_else(|| panic!("{path} reads data: say in this test of which types"));
        routes.push(Route {
            path: path.clone(),
            needs,
        });
    }
    assert!(routes.len() >= 20, "only {} routes", routes.len());
    routes
}

/// How a request names whose data it asks for.
#[derive(Clone)]
enum Whose {
    Person(Uuid),
    Participant(String, String),
}

impl Route {
    fn ask(&self, reader: &Person, whose: &Whose) -> Call {
        let in_path = self.path.contains("{svc_userid}");
        let path = match whose {
            Whose::Person(owner) => self.path.replace("{svc_userid}", &owner.to_string()),
            Whose::Participant(group, participant) => self.path.replace("{svc_userid}/", "").replace(
                "/data/v0/",
                &format!("/data/v0/pool/{group}/participant/{participant}/"),
            ),
        };
        let path = path
            .replace("{data_type}", "HeartRate")
            .replace("{resolution}", "60m");
        let mut call = reader.get(&path);
        match whose {
            Whose::Person(owner) if !in_path => call = call.with("svc_userid", &owner.to_string()),
            Whose::Participant(group, participant) if !self.path.starts_with("/data/v0/") => {
                call = call.with("pool_id", group).with("participant_id", participant);
            }
            _ => {}
        }
        let mut parameters: BTreeMap<&str, &str> = BTreeMap::from([
            ("start_time", RANGE.0),
            ("end_time", RANGE.1),
            ("output", "jstable"),
        ]);
        for (part, name, value) in [
            ("metric_samples", "metric", "HeartRate"),
            ("metric_time_series", "metric", "HeartRate"),
            ("time_series_grouped", "metrics", "HeartRate"),
            ("sleep_cycles_extended", "metrics", "HeartRate"),
            ("metric/{data_type}/agg", "function", "sum"),
            ("location_at_time", "time", "2024-05-01T12:00:00Z"),
            ("/data/v1/records", "q", "HeartRate[1d] @ 1714608000"),
        ] {
            if self.path.contains(part) {
                parameters.insert(name, value);
            }
        }
        for (name, value) in parameters {
            call = call.with(name, value);
        }
        call
    }

    /// Whether a group's participants can be read here.
    fn of_participants(&self) -> bool {
        let is_calendars = self.path.ends_with("/calendars");
        (self.path.starts_with("/data/v0/") && !is_calendars) || self.path.starts_with("/data/v1alpha1/")
    }
}

fn unlike(reply: &Reply) -> BTreeMap<String, String> {
    let changing = ["x-request-id", "date", "server-timing"];
    let kept = reply
        .headers
        .iter()
        .filter(|(name, _)| !changing.contains(&name.as_str()));
    kept.map(|(name, value)| (name.to_string(), value.to_str().unwrap_or_default().to_owned()))
        .collect()
}

/// Types that can be shared, whatever the registry calls them today.
async fn known(types: &[&'static str]) -> Vec<&'static str> {
    let listed = person()
        .get("/data/v1alpha1/data_types")
        .await
        .must_be(200)
        .rows();
    let known = |name: &&str| listed.iter().any(|entry| entry["name"] == json!(name));
    let found: Vec<&str> = types.iter().copied().filter(known).collect();
    assert!(!found.is_empty(), "none of {types:?} is a type");
    found
}

#[tokio::test]
async fn rule_9_2b_every_data_route_answers_exactly_those_who_were_given_the_type() {
    let owner = person();
    owner
        .records("HeartRate", &[heart_rate(id(1), &at("10:30"), 61)])
        .await;
    let empty = person();
    for route in routes().await {
        let types = known(route.needs).await;
        let whose = Whose::Person(owner.id);
        let own = route.ask(&owner, &whose).await.must_be(200);
        assert_eq!(own.header("x-svc-effective-range"), None, "{own}");
        let nothing = route.ask(&empty, &Whose::Person(empty.id)).await.must_be(200);

        // A stranger learns nothing: the owner might as well not exist.
        let stranger = person();
        let refused = route.ask(&stranger, &whose).await.must_be(403);
        let unknown = route
            .ask(&stranger, &Whose::Person(Uuid::new_v4()))
            .await
            .must_be(403);
        assert_eq!(refused.body, unknown.body, "{refused}");
        assert_eq!(unlike(&refused), unlike(&unknown), "{refused}");

        let without = person();
        share(&owner, &share_of(&["Weight"], &without)).await;
        let other = route.ask(&without, &whose).await.must_be(403);
        assert_eq!(other.body, refused.body);

        let reader = person();
        let given = share(&owner, &share_of(&types, &reader)).await;
        let answered = route.ask(&reader, &whose).await.must_be(200);
        assert!(answered.header("x-svc-effective-range").is_some(), "{answered}");

        // Shared, but for another time: nothing to see, as if there were no data at all.
        for (start, end) in [
            (None, Some("2024-04-01T00:00:00Z")),
            (Some("2024-06-01T00:00:00Z"), None),
        ] {
            owner
                .put(&address(&given), &json!({"time_start": start, "time_end": end}))
                .await
                .must_be(200);
            let outside = route.ask(&reader, &whose).await.must_be(200);
            assert_eq!(outside.text(), nothing.text(), "{start:?} to {end:?}");
        }

        owner.call(Method::DELETE, &address(&given)).await.must_be(204);
        assert_eq!(route.ask(&reader, &whose).await.must_be(403).body, refused.body);

        // Through a group, for as long as one is a member.
        let member = person();
        let friends = group(&owner, &json!({"title": "Friends", "is_public": true})).await;
        let body = json!({
            "datashare_name": "g", "svc_data_types": types,
            "group_permissions": [{"allowed_group_id": friends}],
        });
        owner.post(DATASHARE, &body).await.must_be(201);
        route.ask(&member, &whose).await.must_be(403);
        join(&member, &friends).await;
        route.ask(&member, &whose).await.must_be(200);
        let membership = format!("{}/{friends}/membership", super::GROUP);
        member.call(Method::DELETE, &membership).await.must_be(200);
        assert_eq!(route.ask(&member, &whose).await.must_be(403).body, refused.body);

        if route.of_participants() {
            of_participants(&route, &owner, &types).await;
        }
    }
}

async fn of_participants(route: &Route, member: &Person, types: &[&str]) {
    let researcher = person();
    let body = json!({"title": "Study", "is_public": true, "svc_data_types": types});
    let study = group(&researcher, &body).await;
    let participant = join(member, &study).await;
    let whose = Whose::Participant(study.clone(), participant.clone());
    let answered = route.ask(&researcher, &whose).await.must_be(200);
    assert!(!answered.text().contains(&member.id.to_string()), "{answered}");
    for (name, value) in &answered.headers {
        let value = value.to_str().unwrap_or_default();
        assert!(!value.contains(&member.id.to_string()), "{name}: {value}");
    }
    // Nobody else, not even the participant, asks like that; and the owner of the group not by the person's
    // own id.
    for other in [member, &person()] {
        route.ask(other, &whose).await.must_be(403);
    }
    route
        .ask(&researcher, &Whose::Person(member.id))
        .await
        .must_be(403);
    let mistaken = Whose::Participant(study.clone(), Uuid::new_v4().to_string());
    route.ask(&researcher, &mistaken).await.must_be(403);
    let membership = format!("{}/{study}/membership", super::GROUP);
    member.call(Method::DELETE, &membership).await.must_be(200);
    route.ask(&researcher, &whose).await.must_be(403);
    let again = join(member, &study).await;
    assert_ne!(again, participant, "whoever joins again is somebody new");
}

#[tokio::test]
async fn listings_of_a_stranger_are_refused_and_those_of_a_sharer_show_what_is_shared() {
    let (owner, stranger, reader) = (person(), person(), person());
    owner
        .records("HeartRate", &[heart_rate(id(1), &at("10:30"), 61)])
        .await;
    let own = owner.define("Event", &json!({"name": "Tea"})).await;
    share(&owner, &share_of(&["HeartRate"], &reader)).await;
    let ask = |who: &Person, path: &str, whom: Uuid| {
        let path = path
            .replace("{data_type}", "HeartRate")
            .replace("{api_version}", "v0");
        who.get(&path)
            .with("svc_userid", &whom.to_string())
            .with("start_time", RANGE.0)
            .with("end_time", RANGE.1)
    };
    for path in LISTINGS {
        let refused = ask(&stranger, path, owner.id).await.must_be(403);
        let unknown = ask(&stranger, path, Uuid::new_v4()).await.must_be(403);
        assert_eq!(
            (&refused.body, unlike(&refused)),
            (&unknown.body, unlike(&unknown)),
            "{path}"
        );
        let shown = ask(&reader, path, owner.id).await.must_be(200);
        assert!(!shown.text().contains(&own), "{shown}");
    }
    let entries = ask(&reader, "/data/v1/catalog", owner.id).await.rows();
    assert_eq!(entries.len(), 1, "{entries:?}");
    let entry = &entries[0];
    assert_eq!(
        (&entry["id"], &entry["recordable"]),
        (&json!("HeartRate"), &json!(false))
    );
    assert_eq!(entry["svc_userid"], json!(owner.id));
    assert!(
        entry["categories"]
            .as_array()
            .unwrap()
            .contains(&json!("shared_type"))
    );
    // Beside the reader's own types, and by name and category.
    let all = reader.get("/data/v1/catalog").await.must_be(200).rows();
    let rates = |entries: &[Value]| {
        let here = entries.iter().filter(|entry| entry["id"] == "HeartRate");
        here.map(|entry| entry["svc_userid"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(rates(&all), [json!(reader.id), json!(owner.id)]);
    let shared = reader
        .get("/data/v1/catalog")
        .with("category", "shared_type")
        .await
        .rows();
    assert_eq!(shared, entries);
    // A type that is not shared cannot be told from one that is not there.
    for name in [own.as_str(), "Weight", "Nosuch"] {
        let path = "/data/v1/catalog";
        ask(&reader, path, owner.id)
            .with("data_type", name)
            .await
            .must_be(403);
    }
    let available = ask(&reader, "/data/v1alpha1/data_available", owner.id)
        .await
        .rows();
    assert_eq!(available.len(), 1, "{available:?}");
    let alone = async |end: &str| reader.get(&format!("/data/v1/catalog/{own}/v1{end}")).await;
    alone("").await.problem(404);
    let mut own_type = share_of(&[&own], &reader);
    own_type["datashare_name"] = json!("tea");
    share(&owner, &own_type).await;
    assert_eq!(alone("").await.must_be(200).json()["svc_userid"], json!(owner.id));
    alone("/schema").await.must_be(200);
    let entries = reader
        .get("/data/v1/catalog")
        .with("data_type", &own)
        .await
        .must_be(200)
        .rows();
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert_eq!(entries[0]["svc_userid"], json!(owner.id));
}

#[tokio::test]
async fn a_catalogue_that_is_written_while_it_is_sent_is_whole_in_every_form() {
    let reader = person();
    let catalogue = || reader.get("/data/v1/catalog");
    let own = catalogue().await.must_be(200).rows().len();
    // So many that there are more than 4,096 entries.
    let sharers = 4_096 / own + 1;
    for _sharer in 0..sharers {
        let mut all = share_of(&[], &reader);
        all["share_all_data"] = json!(true);
        share(&person(), &all).await;
    }
    let listed = catalogue().await.must_be(200);
    let entries = listed.rows();
    assert_eq!(entries.len(), own * (1 + sharers));
    let table = catalogue()
        .with("columns", "id,svc_userid")
        .await
        .must_be(200)
        .rows();
    let named = |rows: &[Value]| -> Vec<(Value, Value)> {
        rows.iter()
            .map(|row| (row["id"].clone(), row["svc_userid"].clone()))
            .collect()
    };
    assert!(named(&entries) == named(&table));
    let tag = listed.header("etag").unwrap();
    catalogue().header("if-none-match", tag).await.must_be(304);
}
