//! OpenAPI, the browsable interface, health and metrics.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{ALL_TIME, Almanac, Setup, at, heart_rate, id, person, shared};

#[tokio::test]
async fn openapi_describes_every_route_of_the_interface() {
    let document = shared().nobody().get("/openapi.json").await.must_be(200).json();
    assert!(document["openapi"].as_str().unwrap().starts_with("3."));
    let paths: Vec<String> = document["paths"]
        .as_object()
        .unwrap()
        .keys()
        .map(|path| without_names(path))
        .collect();
    for path in [
        "/data/v0/metrics_catalog",
        "/data/v0/{}/metric_samples",
        "/data/v1/catalog",
        "/data/v1/catalog/{}/{}",
        "/data/v1/catalog/{}/{}/schema",
        "/data/v1/updates",
        "/data/v1alpha1/data_types",
        "/data/v1alpha1/data_available",
        "/data/v1alpha1/data_sources",
        "/data/v1alpha1/event/{}",
        "/data/v1alpha1/metric/{}",
        "/ingest/v1/record",
        "/ingest/v1/record/batch",
        "/ingest/v1/record/{}",
        "/input/v1/data_type/{}",
        "/input/v1/file",
        "/input/v1/file/recent_changes",
        "/input/v1/file/{}",
        "/input/v1/file/{}/download",
        "/input/v1/file/{}/restore",
        "/input/v1/file_upload",
        "/input/v1/file_upload/{}/download",
        "/input/v1/upload/{}",
        "/health/live",
        "/health/ready",
        "/metrics",
    ] {
        assert!(
            paths.iter().any(|listed| listed == path),
            "{path} is not in {paths:?}"
        );
    }
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods
            .as_object()
            .unwrap()
            .iter()
            .filter(|(name, _)| ["get", "post", "put", "delete", "patch"].contains(&name.as_str()))
        {
            assert!(
                operation["responses"]
                    .as_object()
                    .is_some_and(|responses| !responses.is_empty()),
                "{method} {path} has no responses"
            );
        }
    }
    assert_references_resolve(&document, &document);
}

#[tokio::test]
async fn openapi_tells_what_every_operation_may_answer_and_take() {
    let document = shared().nobody().get("/openapi.json").await.must_be(200).json();
    let mut seen = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        // Routes outside the wall say for themselves what they answer.
        let open = path == "/metrics" || path.ends_with("/.well-known/jwks.json");
        if open
            || path.starts_with("/health/")
            || path.starts_with("/input/v1/upload/")
            || path.starts_with("/data/v1/frame/")
        {
            continue;
        }
        for (method, operation) in methods.as_object().unwrap() {
            let answers = |status: &str| operation["responses"].get(status).is_some();
            for status in ["401", "403", "429", "503"] {
                assert!(answers(status), "{status} of {method} {path}");
            }
            assert_eq!(answers("304"), method == "get", "{method} {path}");
            assert!(method != "get" || answers("412"), "{method} {path}");
            let takes_body = operation.get("requestBody").is_some();
            assert_eq!(answers("408"), takes_body, "{method} {path}");
            assert!(answers("400") || !takes_body, "{method} {path}");
            for (status, response) in operation["responses"].as_object().unwrap() {
                assert!(
                    !response["description"].as_str().unwrap().is_empty(),
                    "{status} of {method} {path}"
                );
                let refusal = status.starts_with('4') || status.starts_with('5');
                assert!(
                    !refusal || response["content"].is_object(),
                    "{status} of {method} {path}"
                );
            }
            seen += 1;
        }
    }
    assert!(seen > 30, "{seen}");
    let operation = |path: &str| &document["paths"][path]["get"];
    for path in [
        "/data/v0/{svc_userid}/metric_samples",
        "/data/v1alpha1/event/{data_type}",
        "/data/v1/records",
    ] {
        let responses = &operation(path)["responses"];
        assert!(
            responses["429"].is_object() && responses["504"].is_object(),
            "{path}"
        );
    }
    assert!(operation("/data/v1/catalog")["responses"].get("504").is_none());
    for path in [
        "/data/v1alpha1/event/{data_type}",
        "/data/v1alpha1/event/{data_type}/summary",
        "/data/v1alpha1/metric/{data_type}/agg/{resolution}",
    ] {
        let parameters = operation(path)["parameters"].as_array().unwrap();
        for name in ["filter", "pool_id", "participant_id"] {
            assert!(
                parameters.iter().any(|parameter| parameter["name"] == name),
                "{name} of {path}"
            );
        }
    }
}

/// That a document says what is answered is tried, not only looked for.
#[tokio::test]
async fn openapi_names_every_status_with_which_conditions_and_queries_are_refused() {
    let person = person();
    let document = person.get("/openapi.json").await.must_be(200).json();
    let mut seen = [0; 2];
    for (asked, operation) in operations(&document) {
        let (method, path) = asked.split_once(' ').unwrap();
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        let takes = |names: &[&str]| {
            parameters.iter().any(|parameter| {
                let name = parameter["name"].as_str().unwrap();
                parameter["in"] == "query" && (names.is_empty() || names.contains(&name))
            })
        };
        let says = |status: u16| operation["responses"].get(status.to_string()).is_some();
        assert!(!takes(&[]) || says(422), "{asked}");
        assert!(
            !takes(&["metric", "metrics", "data_type"]) || says(404),
            "{asked}"
        );
        if !["get", "delete"].contains(&method) {
            continue;
        }
        let mut place = path.to_owned();
        for parameter in parameters.iter().filter(|parameter| parameter["in"] == "path") {
            let (name, example) = (parameter["name"].as_str().unwrap(), &parameter["example"]);
            let example = example
                .as_str()
                .map_or_else(|| example.to_string(), str::to_owned);
            place = place.replace(&format!("{{{name}}}"), &example);
        }
        let method: Method = method.to_uppercase().parse().unwrap();
        let strict = format!("{place}?strict=true&no_such_parameter=1");
        let refused = person.call(method.clone(), &strict).await;
        assert!(says(refused.status), "{asked}: {refused}");
        seen[0] += usize::from(refused.status == 422);
        if method == Method::GET {
            let changed = person.get(&place).header("if-match", "\"never\"").await;
            assert!(says(changed.status), "{asked}: {changed}");
            seen[1] += usize::from(changed.status == 412);
        }
    }
    assert!(seen[0] > 40 && seen[1] > 5, "{seen:?}");
}

/// Every operation of the document with its address.
fn operations(document: &Value) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            found.push((format!("{method} {path}"), operation));
        }
    }
    found
}

#[tokio::test]
async fn openapi_explains_every_parameter_and_shows_one() {
    let document = shared().nobody().get("/openapi.json").await.must_be(200).json();
    let mut seen = 0;
    for (asked, operation) in operations(&document) {
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let name = parameter["name"].as_str().unwrap();
            // How long a body is says every client by itself. The interface names it once.
            let is_record = asked == "post /ingest/v1/record/{data_type}";
            assert!(name != "content-length" || is_record, "{asked}");
            let description = parameter["description"].as_str().unwrap_or_default();
            assert!(!description.is_empty(), "{name} of {asked} has no description");
            assert!(
                !parameter["example"].is_null(),
                "{name} of {asked} has no example"
            );
            let is_required = parameter["required"] == true;
            let default = &parameter["schema"]["default"];
            assert!(
                is_required || !default.is_null() || description.contains("Left out: "),
                "nobody knows what it means that {name} of {asked} is left out"
            );
            seen += 1;
        }
    }
    assert!(seen > 300, "{seen}");
}

#[tokio::test]
async fn openapi_says_that_the_length_of_records_is_required() {
    let document = shared().nobody().get("/openapi.json").await.must_be(200).json();
    let parameters = &document["paths"]["/ingest/v1/record/{data_type}"]["post"]["parameters"];
    let mut parameters = parameters.as_array().unwrap().iter();
    let length = parameters.find(|parameter| parameter["name"] == "content-length");
    let length = length.expect("the header");
    assert_eq!(
        (&length["in"], &length["required"]),
        (&json!("header"), &json!(true))
    );
    assert_eq!(length["schema"]["type"], "integer");
}

#[tokio::test]
async fn openapi_has_a_schema_for_every_answer_and_every_body() {
    let document = shared().nobody().get("/openapi.json").await.must_be(200).json();
    for (asked, operation) in operations(&document) {
        let has_schema = |content: &Value, what: &str| {
            let forms = content.as_object().unwrap();
            assert!(!forms.is_empty(), "{what} of {asked} has no form");
            for (media_type, form) in forms {
                assert!(form["schema"].is_object(), "{media_type}, {what} of {asked}");
            }
        };
        for (status, response) in operation["responses"].as_object().unwrap() {
            let is_empty =
                ["202", "204", "304", "308"].contains(&status.as_str()) && response.get("content").is_none();
            if !is_empty {
                has_schema(&response["content"], status);
            }
        }
        if let Some(body) = operation.get("requestBody") {
            has_schema(&body["content"], "the body");
        }
    }
}

#[tokio::test]
async fn the_front_door_says_what_this_is_and_where_to_go() {
    let nobody = shared().nobody();
    let text = nobody.get("/").await.must_be(200);
    assert!(
        text.header("content-type").unwrap().starts_with("text/plain"),
        "{text}"
    );
    let page = nobody
        .get("/")
        .header("accept", "text/html,*/*;q=0.8")
        .await
        .must_be(200);
    assert!(
        page.header("content-type").unwrap().starts_with("text/html"),
        "{page}"
    );
    for place in ["docs/", "openapi.json", "health/ready"] {
        assert!(text.text().contains(place), "{place}: {text}");
        // From where it stands, so that it is right below any path.
        assert!(
            page.text().contains(&format!("href=\"{place}\"")),
            "{place}: {page}"
        );
        nobody.get(&format!("/{place}")).await.must_be(200);
    }
    shared().nobody().post("/", &json!({})).await.must_be(405);
}

#[tokio::test]
async fn below_a_path_every_address_that_is_handed_out_has_it() {
    let outside = "https://home.example/almanac";
    let server = Setup::default().with("ALMANAC_PUBLIC_URL", outside).start();
    let person = server.person();
    let document = person.get("/openapi.json").await.must_be(200).json();
    assert_eq!(document["servers"], json!([{"url": outside}]));
    // The pages name what they need from where they stand.
    let client = reqwest::Client::builder().no_proxy();
    let client = client
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    let pages = client.get(format!("{}/docs", server.url())).send().await.unwrap();
    assert_eq!(pages.status().as_u16(), 303);
    assert_eq!(pages.headers()["location"], "docs/");
    let script = person.get("/docs/swagger-initializer.js").await.must_be(200);
    assert!(script.text().contains("\"../openapi.json\""), "{script}");
    assert!(script.text().contains("sessionStorage"), "{script}");
    assert!(!script.text().contains("localStorage"), "{script}");
    let html = person.get("/docs/").await.must_be(200);
    assert!(!html.text().contains("=\"/"), "{html}");

    let below = format!("{outside}/");
    let file = json!({"path": "/", "name": "a", "content_type": "text/plain", "content_length": 1});
    let announced = person.post("/input/v1/file", &file).await.must_be(200).json();
    assert!(
        announced["url"].as_str().unwrap().starts_with(&below),
        "{announced}"
    );
    let export = person
        .call(Method::POST, "/user/v1alpha1/export")
        .await
        .must_be(202);
    let place = export.header("location").unwrap();
    assert!(place.starts_with("/almanac/user/v1alpha1/export/"), "{place}");
    let question = "/data/v0/metrics_catalog";
    for asked in [question.to_owned(), format!("{outside}{question}")] {
        let frame = person
            .post("/data/v1/frames", &json!({"question": asked}))
            .await
            .must_be(201);
        let place = frame.header("location").unwrap();
        assert!(place.starts_with("/almanac/data/v1/frames/"), "{place}");
        let url = frame.json()["url"].as_str().unwrap().to_owned();
        let path = url.strip_prefix(outside).unwrap_or_else(|| panic!("{url}"));
        server.nobody().get(path).await.must_be(200);
    }
    let own = person.define("Event", &json!({"name": "Tea"})).await;
    let entry = person
        .get(&format!("/input/v1/data_type/{own}"))
        .await
        .must_be(200)
        .json();
    assert!(entry["url"].as_str().unwrap().starts_with(&below), "{entry}");
}

fn without_names(path: &str) -> String {
    let mut plain = String::new();
    let mut inside = false;
    for letter in path.chars() {
        inside = (inside || letter == '{') && letter != '}';
        if letter == '}' {
            plain.push_str("{}");
        } else if !inside {
            plain.push(letter);
        }
    }
    plain
}

fn assert_references_resolve(document: &Value, part: &Value) {
    match part {
        Value::Object(members) => {
            if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
                let pointer = reference
                    .strip_prefix('#')
                    .unwrap_or_else(|| panic!("{reference} leads outside"));
                assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
            }
            members
                .values()
                .for_each(|member| assert_references_resolve(document, member));
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| assert_references_resolve(document, item)),
        _ => {}
    }
}

#[tokio::test]
async fn every_route_that_openapi_lists_exists_and_asks_who_is_there() {
    let nobody = shared().nobody();
    let document = nobody.get("/openapi.json").await.must_be(200).json();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let open = ["/health/", "/metrics", "/openapi.json", "/docs"]
            .iter()
            .any(|prefix| path.starts_with(prefix))
            || path.ends_with("/.well-known/jwks.json");
        let real: String = path
            .split('/')
            .map(|part| if part.starts_with('{') { "x" } else { part })
            .collect::<Vec<_>>()
            .join("/");
        for method in methods.as_object().unwrap().keys() {
            let Ok(method) = method.to_uppercase().parse::<Method>() else {
                continue;
            };
            if !["GET", "POST", "PUT", "DELETE", "PATCH"].contains(&method.as_str()) {
                continue;
            }
            let reply = nobody.call(method, &real).await;
            let expected = match path.as_str() {
                _ if open => 200,
                "/input/v1/upload/{ticket}" | "/data/v1/frame/{ticket}/{answer}" => 403,
                _ => 401,
            };
            assert_eq!(reply.status, expected, "{reply}");
        }
    }
}

#[tokio::test]
async fn docs_are_browsable_without_the_network() {
    let nobody = shared().nobody();
    // Without the slash at its end it leads to the same page.
    let page = nobody.get("/docs").await.must_be(200);
    assert!(
        page.header("content-type")
            .unwrap_or_default()
            .starts_with("text/html"),
        "{page}"
    );
    let html = page.text().to_lowercase();
    for outside in ["src=\"http", "href=\"http", "src=\"//", "href=\"//", "@import"] {
        assert!(
            !html.contains(outside),
            "the page fetches something from the network: {outside}"
        );
    }
    nobody.get("/docs/no-such-page").await.problem(404);
}

#[tokio::test]
async fn metrics_count_requests_by_route_and_name_no_person() {
    let server = Almanac::start();
    let person = server.person();
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    for _ in 0..3 {
        person.all_samples("HeartRate").await;
    }
    person.get("/data/v0/somebody-else/metric_samples").await;
    let scrape = server.nobody().get("/metrics").await.must_be(200);
    assert!(
        scrape
            .header("content-type")
            .unwrap_or_default()
            .starts_with("application/openmetrics-text")
            || scrape
                .header("content-type")
                .unwrap_or_default()
                .starts_with("text/plain"),
        "{scrape}"
    );
    assert!(
        !scrape.text().contains(&person.id.to_string()),
        "a person's id is in the metrics"
    );
    assert!(
        !scrape.text().contains("somebody-else"),
        "a path is in the metrics as it was sent"
    );
    let metrics = server.metrics().await;
    assert!(
        metrics.has(&["metric_samples"]),
        "requests are not counted by route: {scrape}"
    );
    let kinds = [
        "snapshots",
        "footers",
        "outlines",
        "filters",
        "rollups",
        "decoded",
        "answers",
        "repeats",
        "annotations",
        "sources",
        "file_lists",
        "session_ends",
        "types",
        "type_lists",
        "compiled_types",
    ];
    for kind in kinds {
        let kind = format!("kind=\"{kind}\"");
        assert!(
            metrics.sum(&["almanac_cache_limit_bytes", &kind]) > 0.0,
            "{scrape}"
        );
        assert!(metrics.has(&["almanac_cache_bytes", &kind]), "{scrape}");
    }
    assert!(
        metrics.sum(&["almanac_cache_bytes", "kind=\"snapshots\""]) > 0.0,
        "{scrape}"
    );
    for subject in ["queue", "commit", "tail", "memory"] {
        assert!(
            scrape.text().contains(subject),
            "nothing about {subject}: {scrape}"
        );
    }
}

#[tokio::test]
async fn logs_are_structured_and_carry_the_request_id() {
    let server = Setup::default()
        .with("ALMANAC_LOG_FORMAT", "json")
        .with("ALMANAC_LOG", "info")
        .start();
    let person = server.person();
    person
        .metric_samples("HeartRate", ALL_TIME.0, ALL_TIME.1)
        .header("x-request-id", "find-me-in-the-log")
        .await
        .must_be(200);
    server.stop();
    let log = server.log();
    let line = log
        .lines()
        .find(|line| line.contains("find-me-in-the-log"))
        .unwrap_or_else(|| panic!("the request is not in the log:\n{log}"));
    let line: Value = serde_json::from_str(line).expect("a line of JSON");
    assert!(
        line["level"].is_string() && line["timestamp"].is_string(),
        "{line}"
    );
}

#[tokio::test]
async fn a_person_sees_nothing_of_another_in_any_listing() {
    let (one, other) = (person(), person());
    one.records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    for path in ["/data/v1alpha1/data_available", "/data/v1/updates"] {
        let reply = other
            .get(path)
            .with("start_time", ALL_TIME.0)
            .with("end_time", ALL_TIME.1)
            .await
            .must_be(200);
        assert!(!reply.text().contains("HeartRate"), "{reply}");
    }
}
