//! The headers of answers, against those that OpenAPI names.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{ALL_TIME, Call, Person, Reply, Setup, at, heart_rate, id, person, shared};
use crate::sharing::{share, share_of};

/// Of the protocol itself, and those that tell caches and browsers how to treat whatever is answered.
const OF_ANY_ANSWER: [&str; 9] = [
    "cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "date",
    "transfer-encoding",
    "vary",
    "x-content-type-options",
];

/// What OpenAPI says of an operation.
struct Named {
    document: Value,
}

impl Named {
    async fn find() -> Self {
        let document = shared().nobody().get("/openapi.json").await.must_be(200).json();
        Self { document }
    }

    fn operation(&self, operation: &str) -> &Value {
        let (method, path) = operation.split_once(' ').unwrap();
        &self.document["paths"][path][method]
    }

    /// Checks that each header of the answer is named, and that it has these among them.
    #[track_caller]
    fn must_have(&self, operation: &str, reply: &Reply, expected: &[&str]) {
        let answers = &self.operation(operation)["responses"];
        let answer = answers.get(reply.status.to_string());
        let answer = answer.unwrap_or_else(|| panic!("{operation} names no status like that of {reply}"));
        let named = answer["headers"].as_object().unwrap();
        for (name, _) in &reply.headers {
            let name = name.as_str();
            assert!(
                OF_ANY_ANSWER.contains(&name) || named.contains_key(name),
                "{name} of {operation}: {reply}"
            );
        }
        for name in expected {
            assert!(reply.header(name).is_some(), "{name} of {operation}: {reply}");
        }
    }

    /// Asks a read for what its examples say.
    fn example(&self, person: &Person, path: &str) -> Call {
        let mut place = path.replace("{svc_userid}", &person.id.to_string());
        let mut query = Vec::new();
        for parameter in self.operation(&format!("get {path}"))["parameters"]
            .as_array()
            .unwrap()
        {
            let name = parameter["name"].as_str().unwrap();
            let example = match &parameter["example"] {
                Value::Array(items) => &items[0],
                other => other,
            };
            let example = example
                .as_str()
                .map_or_else(|| example.to_string(), str::to_owned);
            if parameter["in"] == "path" {
                place = place.replace(&format!("{{{name}}}"), &example);
            } else if parameter["in"] == "query" && parameter["required"] == true {
                query.push((name.to_owned(), example));
            }
        }
        query
            .iter()
            .fold(person.get(&place), |call, (name, value)| call.with(name, value))
    }
}

#[tokio::test]
async fn openapi_names_every_header_that_a_read_is_answered_with() {
    let named = Named::find().await;
    let person = person();
    person.two_heart_rates().await;
    let nobody = shared().nobody();
    let mut unchanged = 0;
    for (path, methods) in named.document["paths"].as_object().unwrap() {
        if methods["get"].is_null() || path.starts_with("/data/v1/frame/") {
            continue;
        }
        let operation = format!("get {path}");
        let ask = || named.example(&person, path);
        let answer = ask().await;
        named.must_have(&operation, &answer, &["x-request-id"]);
        let unknown = ask().with("no_such_parameter", "1").await;
        let is_told: &[&str] = if unknown.status == 200 {
            &["x-ignored-parameters"]
        } else {
            &[]
        };
        named.must_have(&operation, &unknown, is_told);
        if named.operation(&operation)["responses"].get("304").is_none() {
            continue;
        }
        let other = named.example(&nobody, path).await.must_be(401);
        named.must_have(&operation, &other, &["www-authenticate"]);
        if answer.status == 200 {
            let tag = answer
                .header("etag")
                .unwrap_or_else(|| panic!("no tag: {answer}"));
            let known = ask().header("if-none-match", tag).await;
            named.must_have(&operation, &known, &["etag"]);
            let changed = ask().header("if-match", "\"never\"").await.must_be(412);
            named.must_have(&operation, &changed, &[]);
            // What names the moment at which it was asked is never the same.
            unchanged += usize::from(known.status == 304);
        }
    }
    assert!(unchanged > 50, "{unchanged}");
}

#[tokio::test]
async fn openapi_names_the_headers_of_pages_and_of_what_others_share() {
    let (named, owner, reader) = (Named::find().await, person(), person());
    owner.two_heart_rates().await;
    share(&owner, &share_of(&["HeartRate"], &reader)).await;
    let samples = "get /data/v0/{svc_userid}/metric_samples";
    let path = format!("/data/v0/{}/metric_samples", owner.id);
    let ask = || {
        reader
            .get(&path)
            .with("metric", "HeartRate")
            .with("start_time", ALL_TIME.0)
            .with("end_time", ALL_TIME.1)
    };
    let of_rows = [
        "content-disposition",
        "etag",
        "server-timing",
        "x-svc-effective-range",
        "x-svc-range",
    ];
    let page = ask().with("limit", "1").await.must_be(200);
    named.must_have(samples, &page, &of_rows);
    named.must_have(samples, &page, &["x-svc-next-cursor"]);
    let whole = ask().await.must_be(200);
    let known = ask()
        .header("if-none-match", whole.header("etag").unwrap())
        .await
        .must_be(304);
    named.must_have(samples, &known, &["x-svc-effective-range"]);
    let explained = ask().with("explain", "plan").await.must_be(200);
    named.must_have(samples, &explained, &["x-svc-effective-range"]);

    let counted = format!("SELECT count(*) AS n FROM \"{}\".heart_rate", owner.id);
    let answer = reader
        .post("/data/v1/sql", &json!({"query": counted}))
        .await
        .must_be(200);
    named.must_have(
        "post /data/v1/sql",
        &answer,
        &["server-timing", "x-svc-effective-range"],
    );
    let question = format!(
        "{path}?metric=HeartRate&start_time={}&end_time={}",
        ALL_TIME.0, ALL_TIME.1
    );
    let frame = reader
        .post("/data/v1/frames", &json!({"question": question}))
        .await
        .must_be(201);
    named.must_have(
        "post /data/v1/frames",
        &frame,
        &["location", "x-svc-effective-range"],
    );

    let read_frame = "get /data/v1/frame/{ticket}/{answer}";
    let url = frame.json()["url"].as_str().unwrap().to_owned();
    let place = url.strip_prefix(&shared().url()).unwrap().to_owned();
    let fetch = || shared().nobody().get(&place);
    let all = fetch().await.must_be(200);
    let of_bytes = ["accept-ranges", "content-disposition", "etag"];
    named.must_have(read_frame, &all, &of_bytes);
    let part = fetch().header("range", "bytes=0-3").await.must_be(206);
    named.must_have(read_frame, &part, &of_bytes);
    named.must_have(read_frame, &part, &["content-range"]);
    let beyond = fetch().header("range", "bytes=99999999-").await.must_be(416);
    named.must_have(read_frame, &beyond, &["content-range"]);
    let known = fetch().header("if-none-match", all.header("etag").unwrap());
    named.must_have(read_frame, &known.await.must_be(304), &["etag"]);
}

#[tokio::test]
async fn openapi_names_the_headers_of_changes() {
    let (named, person) = (Named::find().await, person());
    let sent = person
        .record("HeartRate", &heart_rate(id(1), &at("10:00"), 60))
        .await;
    named.must_have(
        "post /ingest/v1/record/{data_type}",
        &sent.must_be(201),
        &["x-request-id"],
    );
    let export = person
        .call(Method::POST, "/user/v1alpha1/export")
        .await
        .must_be(202);
    named.must_have("post /user/v1alpha1/export", &export, &["location"]);
    let preferred = person
        .post(
            "/user/v1alpha1/preferences",
            &json!({"timezone": "Europe/Berlin"}),
        )
        .await;
    named.must_have(
        "post /user/v1alpha1/preferences",
        &preferred.must_be(200),
        &["etag"],
    );

    let file = json!({"path": "/", "name": "a", "content_type": "text/plain", "content_length": 4});
    let announced = person.post("/input/v1/file", &file).await.must_be(200);
    named.must_have("post /input/v1/file", &announced, &["x-request-id"]);
    let url = announced.json()["url"].as_str().unwrap().to_owned();
    let place = url.strip_prefix(&shared().url()).unwrap().to_owned();
    let upload = "put /input/v1/upload/{ticket}";
    let nobody = shared().nobody();
    let send = |bytes: &'static str| nobody.call(Method::PUT, &place).body(bytes);
    let half = send("ab").header("content-range", "bytes 0-1/4").await;
    named.must_have(upload, &half.must_be(308), &["range"]);
    named.must_have(upload, &send("abcd").await.must_be(200), &["etag"]);
}

#[tokio::test]
async fn openapi_names_the_headers_of_limits() {
    let server = Setup::default().with("ALMANAC_RATE_READS", "2").start();
    let named = Named::find().await;
    let person = server.person();
    let ask = || person.get("/user/v1alpha1/info");
    let of_rates = ["ratelimit", "ratelimit-policy"];
    for _ in 0..2 {
        named.must_have("get /user/v1alpha1/info", &ask().await.must_be(200), &of_rates);
    }
    let refused = ask().await.must_be(429);
    named.must_have("get /user/v1alpha1/info", &refused, &of_rates);
    named.must_have("get /user/v1alpha1/info", &refused, &["retry-after"]);
}

/// What can be done on conditions says by which headers they are sent.
#[tokio::test]
async fn openapi_names_the_headers_of_conditions() {
    let named = Named::find().await;
    let mut seen = [0; 2];
    for (path, methods) in named.document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let parameters = operation["parameters"].as_array().unwrap();
            let takes = |name: &str| {
                parameters
                    .iter()
                    .any(|parameter| parameter["in"] == "header" && parameter["name"] == name)
            };
            let answers = |status: &str| operation["responses"].get(status).is_some();
            let is_sent_bytes = path.starts_with("/input/v1/upload/");
            assert_eq!(
                takes("if-match"),
                answers("412") && !is_sent_bytes,
                "{method} {path}"
            );
            assert!(takes("if-none-match") || !answers("304"), "{method} {path}");
            seen[0] += usize::from(takes("if-match"));
            seen[1] += usize::from(takes("if-none-match"));
        }
    }
    assert!(seen[0] > 100 && seen[1] > 100, "{seen:?}");
}
