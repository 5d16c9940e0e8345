//! OpenAPI, the browsable interface, health and metrics.

use serde_json::Value;

use crate::harness::{ALL_TIME, Almanac, at, heart_rate, id, person, shared};

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
        if path.starts_with("/health/") || path == "/metrics" || path.starts_with("/input/v1/upload/") {
            continue;
        }
        for (method, operation) in methods.as_object().unwrap() {
            let answers = |status: &str| operation["responses"].get(status).is_some();
            assert!(answers("401") && answers("503"), "{method} {path}");
            assert_eq!(answers("304"), method == "get", "{method} {path}");
            assert_eq!(
                answers("408"),
                operation.get("requestBody").is_some(),
                "{method} {path}"
            );
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
            .any(|prefix| path.starts_with(prefix));
        let real: String = path
            .split('/')
            .map(|part| if part.starts_with('{') { "x" } else { part })
            .collect::<Vec<_>>()
            .join("/");
        for method in methods.as_object().unwrap().keys() {
            let Ok(method) = method.to_uppercase().parse::<reqwest::Method>() else {
                continue;
            };
            if !["GET", "POST", "PUT", "DELETE", "PATCH"].contains(&method.as_str()) {
                continue;
            }
            let reply = nobody.call(method, &real).await;
            let expected = match path.as_str() {
                _ if open => 200,
                "/input/v1/upload/{ticket}" => 403,
                _ => 401,
            };
            assert_eq!(reply.status, expected, "{reply}");
        }
    }
}

#[tokio::test]
async fn docs_are_browsable_without_the_network() {
    let nobody = shared().nobody();
    let page = nobody.get("/docs").await;
    let page = if (300..400).contains(&page.status) {
        nobody.get(page.header("location").unwrap()).await
    } else {
        page
    };
    let page = page.must_be(200);
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
    for subject in ["queue", "commit", "tail", "memory"] {
        assert!(
            scrape.text().contains(subject),
            "nothing about {subject}: {scrape}"
        );
    }
}

#[tokio::test]
async fn logs_are_structured_and_carry_the_request_id() {
    let server = crate::harness::Setup::default()
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
