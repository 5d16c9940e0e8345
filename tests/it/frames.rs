//! `/data/v1/frames`: answers that are kept for tools that read addresses.

use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};

use crate::ground::clocks::mistaken;
use crate::harness::{
    ALL_TIME, AUDIENCE, Almanac, Backends, ISSUER, IdentityProvider, METHODS, Person, Reply, Setup, Table,
    at, claims, heart_rate, id, instant, person, shared, sign,
};
use crate::sharing::{at as address, group, join, share, share_of};

const FRAMES: &str = "/data/v1/frames";

fn question_about(owner: &Person) -> String {
    format!(
        "/data/v0/{}/metric_samples?metric=HeartRate&start_time={}&end_time={}",
        owner.id, ALL_TIME.0, ALL_TIME.1
    )
}

async fn with_samples(person: Person, count: u32) -> Person {
    let records: Vec<Value> = (0..count)
        .map(|n| heart_rate(id(n), &instant(n), 60 + n % 40))
        .collect();
    person.records("HeartRate", &records).await;
    person
}

async fn kept(reader: &Person, question: &str) -> Value {
    let body = json!({"question": question});
    reader.post(FRAMES, &body).await.must_be(201).json()
}

/// Asks at the address of a frame as somebody without a token does.
async fn fetched(server: &Almanac, method: Method, frame: &Value, range: Option<&str>) -> Reply {
    let url = frame["url"].as_str().expect("a url");
    let path = url.strip_prefix(&server.url()).expect("an address of the server");
    let call = server.nobody().call(method, path);
    match range {
        Some(range) => call.header("range", range).await,
        None => call.await,
    }
}

#[tokio::test]
async fn a_frame_is_read_on_if_it_is_the_one_that_was_seen() {
    let person = with_samples(person(), 5).await;
    let frame = kept(&person, &question_about(&person)).await;
    let tag = fetched(shared(), Method::GET, &frame, None).await.must_be(200);
    let tag = tag.header("etag").unwrap().to_owned();
    let asked = |method: Method, range: &str, condition: &str, known: &str| {
        let path = frame["url"]
            .as_str()
            .unwrap()
            .strip_prefix(&shared().url())
            .unwrap();
        let call = shared().nobody().call(method, path);
        let call = call.header("range", range).header("if-match", condition);
        call.header("if-none-match", known)
    };
    let several = format!("\"other\", {tag}");
    for (condition, range, status) in [
        (tag.as_str(), "bytes=0-3", 206),
        ("*", "bytes=0-3", 206),
        (several.as_str(), "bytes=0-3", 206),
        ("\"other\"", "bytes=0-3", 412),
        ("\"other\"", "bytes=9999999-", 412),
    ] {
        let reply = asked(Method::GET, range, condition, "\"other\"");
        assert_eq!(reply.await.status, status, "{condition} {range}");
    }
    asked(Method::HEAD, "bytes=0-3", &tag, "\"other\"")
        .await
        .must_be(200);
    for method in [Method::GET, Method::HEAD] {
        // The first condition is the one that counts.
        asked(method, "bytes=0-3", "\"other\"", &tag).await.must_be(412);
    }
    asked(Method::GET, "bytes=0-3", &tag, &tag).await.must_be(304);
}

async fn status(frame: &Value) -> u16 {
    fetched(shared(), Method::GET, frame, None).await.status
}

#[tokio::test]
async fn a_frame_is_the_answer_with_a_footer_at_an_address_that_needs_no_token() {
    for backends in Backends::available() {
        let server = Setup::default().on(backends).start();
        let person = with_samples(server.person(), 300).await;
        let asked = person
            .get(&question_about(&person))
            .with("output", "parquet")
            .await;
        let created = person
            .post(FRAMES, &json!({"question": question_about(&person)}))
            .await
            .must_be(201);
        let frame = created.json();
        let place = created.header("location").expect("a place");
        assert_eq!(place, format!("{FRAMES}/{}", frame["id"].as_str().unwrap()));
        assert_eq!(frame["format"], "parquet");
        assert!(
            frame["url"].as_str().unwrap().ends_with("/answer.parquet"),
            "{frame}"
        );

        let reply = fetched(&server, Method::GET, &frame, None).await.must_be(200);
        assert_eq!(frame["bytes"], reply.body.len());
        assert_eq!(reply.header("accept-ranges"), Some("bytes"));
        assert_eq!(reply.header("content-type"), asked.header("content-type"));
        assert_eq!(
            Table::read("parquet", &reply.body).rows,
            Table::read("parquet", &asked.body).rows
        );

        let head = fetched(&server, Method::HEAD, &frame, None).await.must_be(200);
        assert_eq!(
            head.header("content-length"),
            Some(reply.body.len().to_string().as_str())
        );
        for (range, expected) in [
            ("bytes=0-3", 0..4),
            ("bytes=-8", reply.body.len() - 8..reply.body.len()),
            ("bytes=100-199", 100..200),
        ] {
            let part = fetched(&server, Method::GET, &frame, Some(range))
                .await
                .must_be(206);
            assert!(part.body == reply.body[expected], "{range}");
        }
        let beyond = format!("bytes={}-", reply.body.len());
        let none = fetched(&server, Method::GET, &frame, Some(&beyond)).await;
        let total = format!("bytes */{}", reply.body.len());
        assert_eq!(
            (none.status, none.header("content-range")),
            (416, Some(total.as_str()))
        );
        // Several ranges at once are answered with everything, as the protocol allows.
        let all = fetched(&server, Method::GET, &frame, Some("bytes=0-1,4-5")).await;
        assert!(all.status == 200 && all.body == reply.body);
        let open = fetched(&server, Method::GET, &frame, Some("bytes=10-"))
            .await
            .must_be(206);
        assert!(open.body == reply.body[10..]);
        // What is kept is what there was.
        person
            .records("HeartRate", &[heart_rate(id(900), &at("10:00"), 200)])
            .await;
        let later = fetched(&server, Method::GET, &frame, None).await.must_be(200);
        assert!(later.body == reply.body);
    }
}

#[tokio::test]
async fn a_frame_comes_in_every_form() {
    let person = with_samples(person(), 5).await;
    for method in METHODS {
        let body = json!({"question": question_about(&person), "format": method});
        let frame = person.post(FRAMES, &body).await.must_be(201).json();
        let asked = person.get(&question_about(&person)).with("output", method).await;
        let reply = fetched(shared(), Method::GET, &frame, None).await.must_be(200);
        assert_eq!(
            reply.header("content-type"),
            asked.header("content-type"),
            "{method}"
        );
        if !matches!(method, "arrow" | "arrowraw" | "parquet") {
            assert_eq!(reply.body, asked.body, "{method}");
        }
    }
}

#[tokio::test]
async fn frames_are_listed_shown_and_removed_by_their_person_alone() {
    let (person, other) = (with_samples(person(), 3).await, person());
    let frame = kept(&person, &question_about(&person)).await;
    let path = format!("{FRAMES}/{}", frame["id"].as_str().unwrap());
    assert_eq!(
        person.get(FRAMES).await.must_be(200).rows(),
        std::slice::from_ref(&frame)
    );
    assert_eq!(person.get(&path).await.must_be(200).json(), frame);
    assert!(other.get(FRAMES).await.must_be(200).rows().is_empty());
    other.get(&path).await.problem(404);
    other.call(Method::DELETE, &path).await.problem(404);
    assert_eq!(status(&frame).await, 200);
    person.call(Method::DELETE, &path).await.must_be(204);
    assert_eq!(status(&frame).await, 403);
    person.get(&path).await.problem(404);
}

#[tokio::test]
async fn of_many_who_remove_a_frame_as_they_saw_it_one_does() {
    let person = with_samples(person(), 3).await;
    for _ in 0..5 {
        let frame = kept(&person, &question_about(&person)).await;
        let path = format!("{FRAMES}/{}", frame["id"].as_str().unwrap());
        let seen = person.get(&path).await.must_be(200);
        let tag = seen.header("etag").unwrap();
        let removals = (0..8).map(|_| async {
            let removal = person.call(Method::DELETE, &path).header("if-match", tag);
            removal.await.status
        });
        let mut statuses = futures::future::join_all(removals).await;
        statuses.sort_unstable();
        assert_eq!(statuses[0], 204, "{statuses:?}");
        let others = &statuses[1..];
        assert!(
            others.iter().all(|status| matches!(status, 404 | 412)),
            "{statuses:?}"
        );
    }
}

#[tokio::test]
async fn a_question_is_refused_as_it_would_be_when_it_is_asked() {
    let (owner, reader) = (with_samples(person(), 3).await, person());
    let ask = async |question: &str| reader.post(FRAMES, &json!({"question": question})).await;
    ask(&question_about(&owner)).await.problem(403);
    ask("/data/v0/nonsense").await.problem(404);
    let inverted = format!(
        "/data/v0/{}/metric_samples?metric=HeartRate&start_time=2024-05-02&end_time=2024-05-01",
        reader.id
    );
    assert_eq!(ask(&inverted).await.faults(), ["query.end_time"]);
    for question in [
        "",
        "HeartRate",
        "/user/v1alpha1/info",
        "https://elsewhere.example/data/v0/metrics_catalog",
        "/data/v1/sql",
    ] {
        let refused = ask(question).await;
        assert_eq!(refused.faults(), ["body.question"], "{question}");
        assert_eq!(refused.header("allow"), None, "{question}");
    }
    for format in [json!("xlsx"), json!(5), json!(["csv"])] {
        let body = json!({"question": question_about(&reader), "format": format});
        let wrong = reader.post(FRAMES, &body).await;
        assert_eq!(wrong.faults(), ["body.format"], "{format}");
    }
    shared()
        .nobody()
        .post(FRAMES, &json!({"question": "x"}))
        .await
        .must_be(401);
}

#[tokio::test]
async fn what_is_ignored_and_understood_is_said_of_a_frame_too() {
    let person = with_samples(person(), 3).await;
    let question = format!("{}&colour=red", question_about(&person));
    let reply = person
        .post(FRAMES, &json!({"question": question}))
        .await
        .must_be(201);
    assert_eq!(reply.header("x-ignored-parameters"), Some("colour"));
    assert!(reply.header("x-svc-range").is_some(), "{reply}");
    let strict = person
        .post(FRAMES, &json!({"question": question}))
        .header("prefer", "handling=strict")
        .await;
    assert_eq!(strict.faults(), ["query.colour"]);
}

#[tokio::test]
async fn a_frame_of_what_is_shared_ends_with_the_share_and_is_in_the_owners_log() {
    let (owner, reader) = (with_samples(person(), 3).await, person());
    let given = share(&owner, &share_of(&["HeartRate"], &reader)).await;
    let frame = kept(&reader, &question_about(&owner)).await;
    assert_eq!(status(&frame).await, 200);
    // The reader's own catalogue names what is shared with them.
    let catalogue = json!({"question": "/data/v1/catalog"});
    let refused = reader.post("/data/v1/frames", &catalogue).await;
    assert_eq!(refused.faults(), ["body.question"]);
    person().post("/data/v1/frames", &catalogue).await.must_be(201);
    let log = owner.get("/user/v1alpha1/access_log").await.must_be(200).json();
    assert!(log.to_string().contains("POST /data/v1/frames"), "{log}");
    owner.call(Method::DELETE, &address(&given)).await;
    assert_eq!(status(&frame).await, 403);
    // Shared anew, it is read anew: what counts is what may be read now.
    share(&owner, &share_of(&["HeartRate"], &reader)).await;
    assert_eq!(status(&frame).await, 200);
}

#[tokio::test]
async fn a_frame_about_a_participant_ends_when_they_leave_the_group() {
    let (owner, member) = (person(), with_samples(person(), 3).await);
    let body = json!({"title": "a group", "is_public": true, "svc_data_types": ["HeartRate"]});
    let group = group(&owner, &body).await;
    let participant = join(&member, &group).await;
    let question = format!(
        "/data/v0/pool/{group}/participant/{participant}/metric_samples?metric=HeartRate\
         &start_time={}&end_time={}",
        ALL_TIME.0, ALL_TIME.1
    );
    let frame = kept(&owner, &question).await;
    let reply = fetched(shared(), Method::GET, &frame, None).await.must_be(200);
    assert_eq!(Table::read("parquet", &reply.body).rows.len(), 3);
    assert!(!frame.to_string().contains(&member.id.to_string()), "{frame}");
    member
        .call(Method::DELETE, &format!("/user/v1/group/{group}/membership"))
        .await;
    assert_eq!(status(&frame).await, 403);
}

#[tokio::test]
async fn a_frame_about_all_participants_ends_when_one_of_them_leaves() {
    let owner = person();
    let body = json!({"title": "all", "is_public": true, "svc_data_types": ["HeartRate"]});
    let group = group(&owner, &body).await;
    let mut members = Vec::new();
    for _ in 0..5 {
        let member = with_samples(person(), 3).await;
        join(&member, &group).await;
        members.push(member);
    }
    let question = format!(
        "/data/v1alpha1/event/HeartRate/agg/60m?pool_id={group}&start_time={}&end_time={}",
        ALL_TIME.0, ALL_TIME.1
    );
    let frame = kept(&owner, &question).await;
    let reply = fetched(shared(), Method::GET, &frame, None).await.must_be(200);
    assert_eq!(Table::read("parquet", &reply.body).rows.len(), 1);
    members[0]
        .call(Method::DELETE, &format!("/user/v1/group/{group}/membership"))
        .await;
    assert_eq!(status(&frame).await, 403);
}

#[tokio::test]
async fn a_frame_ends_with_the_session_that_asked_for_it() {
    let person = with_samples(person(), 3).await;
    let session = person
        .post("/user/v1alpha1/session", &json!({"name": "a notebook"}))
        .await
        .must_be(201)
        .json();
    let notebook = person.showing(session["token"].as_str().unwrap());
    let frame = kept(&notebook, &question_about(&person)).await;
    assert_eq!(status(&frame).await, 200);
    let path = format!("/user/v1alpha1/session/{}", session["id"].as_str().unwrap());
    person.call(Method::DELETE, &path).await.must_be(200);
    assert_eq!(status(&frame).await, 403);
}

/// The address with another last character of its ticket.
fn otherwise_signed(url: &str) -> String {
    let (ticket, name) = url.rsplit_once('/').expect("a ticket and a name");
    let (last, other) = (ticket.chars().next_back(), ["0", "1"]);
    let other = if last == Some('0') { other[1] } else { other[0] };
    format!("{}{other}/{name}", &ticket[..ticket.len() - 1])
}

/// Waits until nothing of anybody's frames is on the disk.
async fn until_no_bytes(server: &Almanac) {
    let folder = server.data_dir().join("objects/frames");
    server
        .until("some are left", async || files_below(&folder) == 0)
        .await;
}

fn files_below(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| {
            if entry.path().is_dir() {
                files_below(&entry.path())
            } else {
                1
            }
        })
        .sum()
}

#[tokio::test]
async fn a_frame_is_gone_an_hour_later_and_so_are_its_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let setup = || {
        Setup::default()
            .in_dir(directory.path())
            .with("ALMANAC_UPKEEP_INTERVAL", "50ms")
    };
    let server = setup().start();
    let person = with_samples(server.person(), 300).await;
    let mut frame = kept(&person, &question_about(&person)).await;
    assert_eq!(fetched(&server, Method::GET, &frame, None).await.status, 200);
    let place = frame["url"]
        .as_str()
        .unwrap()
        .strip_prefix(&server.url())
        .unwrap()
        .to_owned();
    server.stop();
    drop(server);
    assert!(files_below(&directory.path().join("objects/frames")) > 0);
    let soon = mistaken(setup(), "+50m").start();
    frame["url"] = json!(format!("{}{place}", soon.url()));
    assert_eq!(fetched(&soon, Method::GET, &frame, None).await.status, 200);
    soon.stop();
    drop(soon);
    let later = mistaken(setup(), "+61m").start();
    frame["url"] = json!(format!("{}{place}", later.url()));
    assert_eq!(fetched(&later, Method::GET, &frame, None).await.status, 403);
    until_no_bytes(&later).await;
}

#[tokio::test]
async fn a_frame_goes_with_the_account_of_its_person() {
    let upkeep = [
        ("ALMANAC_UPKEEP_INTERVAL", "50ms"),
        ("ALMANAC_FLUSH_AGE", "100ms"),
        ("ALMANAC_GRACE_PERIOD", "1s"),
    ];
    let setup = upkeep
        .iter()
        .fold(Setup::default(), |setup, (name, value)| setup.with(name, value));
    let server = setup.start();
    let person = with_samples(server.person(), 300).await;
    let frame = kept(&person, &question_about(&person)).await;
    let erase = || person.call(Method::DELETE, "/user/v1alpha1/account");
    let asked = erase().await.must_be(202).json();
    erase()
        .with("confirm", asked["confirmation"].as_str().unwrap())
        .await
        .must_be(202);
    assert_eq!(
        fetched(&server, Method::GET, &frame, None).await.status,
        403,
        "at once"
    );
    until_no_bytes(&server).await;
}

#[tokio::test]
async fn a_frame_is_there_no_longer_than_the_token_that_asked_for_it() {
    let provider = IdentityProvider::start(&["one"]).await;
    let server = Setup::default()
        .with("ALMANAC_JWKS_URL", provider.url())
        .with("ALMANAC_ISSUER", ISSUER)
        .with("ALMANAC_AUDIENCE", AUDIENCE)
        .with("ALMANAC_TOKEN_LEEWAY", "0s")
        .start();
    let id = uuid::Uuid::new_v4();
    let long = Person::new(&server.url(), id, sign("one", &claims(id)));
    let long = with_samples(long, 3).await;
    let mut brief = claims(id);
    let ends = brief["iat"].as_u64().unwrap() + 4;
    brief["exp"] = json!(ends);
    let brief = long.showing(sign("one", &brief));
    let frame = kept(&brief, &question_about(&long)).await;
    let expires = frame["expires_at"].as_str().unwrap();
    let expires = chrono::DateTime::parse_from_rfc3339(expires).unwrap().timestamp();
    assert!(expires as u64 <= ends, "{frame}");
    server
        .until("it outlives its token", async || {
            fetched(&server, Method::GET, &frame, None).await.status != 200
        })
        .await;
    assert_eq!(fetched(&server, Method::GET, &frame, None).await.status, 403);
}

#[tokio::test]
async fn no_other_ticket_and_no_other_name_opens_a_frame() {
    let person = with_samples(person(), 3).await;
    let mut frame = kept(&person, &question_about(&person)).await;
    let url = frame["url"].as_str().unwrap().to_owned();
    for other in [
        url.replace("answer.parquet", "answer.csv"),
        url.replace("/data/v1/frame/", "/data/v1/frame/0"),
        url.replace("/data/v1/frame/", "/data/v1/frame/x."),
        otherwise_signed(&url),
    ] {
        frame["url"] = json!(other);
        assert_eq!(status(&frame).await, 403, "{other}");
    }
}

#[tokio::test]
async fn nobody_keeps_more_or_larger_frames_than_the_operator_says() {
    let server = Setup::default()
        .with("ALMANAC_LIMIT_FRAMES", "1")
        .with("ALMANAC_LIMIT_FRAME_BYTES", "20KiB")
        .start();
    let person = with_samples(server.person(), 3000).await;
    let large = json!({"question": question_about(&person), "format": "ndjson"});
    assert_eq!(person.post(FRAMES, &large).await.faults(), ["body.question"]);
    let small = format!("{}&columns=value&limit=2", question_about(&person));
    kept(&person, &small).await;
    let full = person.post(FRAMES, &json!({"question": small})).await;
    assert_eq!(full.faults(), ["body"]);
    let folder = server.data_dir().join(format!("objects/frames/{}", person.id));
    let frames = std::fs::read_dir(folder)
        .unwrap()
        .map(|frame| frame.unwrap().path());
    let parts = frames.flat_map(|frame| std::fs::read_dir(frame).unwrap());
    assert_eq!(parts.count(), 1);
}
