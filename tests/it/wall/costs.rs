//! What a request may cost is bounded before it costs.

use std::io::Write as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{ALL_TIME, Almanac, Person, Setup, heart_rate, id, instant, person};

/// What the process may take, in MiB.
const MEMORY: u64 = 256;
/// 2024-05-01T00:00:00Z
const DAY: i64 = 1_714_521_600;

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// `[0,0,…]` of so many bytes.
fn zeros(bytes: usize) -> String {
    format!("[{}0]", "0,".repeat(bytes / 2))
}

/// Definitions that each refer twice to the next.
fn doubling(levels: usize) -> Value {
    let mut definitions = json!({});
    for level in 0..levels {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        definitions[format!("d{level}")] = json!({"allOf": [next.clone(), next]});
    }
    definitions[format!("d{levels}")] = json!({"type": "integer"});
    json!({"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions})
}

#[tokio::test]
async fn a_schema_that_would_be_checked_for_ever_is_refused_when_it_is_defined() {
    let person = person();
    let define = |schema: Value| {
        person.post(
            "/input/v1/data_type/Event",
            &json!({"name": "Doubling", "record_spec": {"schema": schema}}),
        )
    };
    for schema in [
        doubling(20),
        doubling(30),
        doubling(40),
        json!({"properties": {"a": {"$ref": "#"}}}),
        json!({"properties": {"a": {"pattern": "((a{100}){100}){100}"}}}),
    ] {
        let begun = Instant::now();
        let refused = define(schema).await;
        assert_eq!(refused.faults(), ["body.record_spec.schema"]);
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    }
    // Few references are as good as none.
    let name = person
        .define(
            "Event",
            &json!({"name": "Few", "record_spec": {"schema": doubling(4)}}),
        )
        .await;
    let record = json!({"start_time": instant(1), "end_time": instant(1), "a": 7});
    person.record(&name, &record).await.upload();
    let wrong = json!({"start_time": instant(1), "end_time": instant(1), "a": "seven"});
    person.record(&name, &wrong).await.faults();
}

#[tokio::test]
async fn values_are_checked_no_more_often_than_a_budget_allows() {
    let person = person();
    let mut branches = Vec::new();
    for number in 0..5000 {
        branches.push(json!({"not": {"const": format!("x{number}")}}));
    }
    let schema = json!({"properties": {"list": {"type": "array", "items": {"allOf": branches}}}});
    let refused = person
        .post(
            "/input/v1/data_type/Event",
            &json!({"name": "Wide", "record_spec": {"schema": schema}}),
        )
        .await;
    assert_eq!(refused.faults(), ["body.record_spec.schema"]);

    let schema = json!({"properties": {"list": {"type": "array", "items": {"allOf": &branches[..2000]}}}});
    let name = person
        .define(
            "Event",
            &json!({"name": "Wide", "record_spec": {"schema": schema}}),
        )
        .await;
    let record =
        |count: usize| json!({"start_time": instant(1), "end_time": instant(1), "list": vec![0; count]});
    person.record(&name, &record(100)).await.upload();
    let begun = Instant::now();
    let refused = person.record(&name, &record(400_000)).await;
    assert_eq!(refused.faults(), ["body"]);
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_kilobytes_do_not_become_gigabytes() {
    let server = Setup::default().no_upkeep().start();
    let (person, other) = (server.person(), server.person());
    let record = format!(
        "{{\"start_date\":{:?},\"value\":60,\"extra\":{}}}",
        instant(1),
        zeros(60 << 20)
    );
    let body = gzip(record.as_bytes());
    assert!(body.len() < 100 << 10, "{}", body.len());
    let mut sent = Vec::new();
    for _ in 0..4 {
        let call = person
            .ingest("HeartRate")
            .header("content-type", "application/json")
            .header("content-encoding", "gzip")
            .body(body.clone());
        sent.push(tokio::spawn(async move { call.await }));
    }
    let begun = Instant::now();
    other
        .record("HeartRate", &heart_rate(id(1), &instant(1), 60))
        .await
        .upload();
    let served = begun.elapsed();
    for reply in sent {
        let reply = reply.await.unwrap();
        // Some may be told to wait for the memory that another of them has.
        if reply.status != 429 {
            assert_eq!(reply.faults(), ["body"], "{reply}");
        }
    }
    let wrapped = format!(
        "{{\"data\":{:?},\"metadata\":{{\"data_type\":\"HeartRate\"}}}}",
        zeros(30 << 20)
    );
    let refused = person
        .call(reqwest::Method::POST, "/ingest/v1/record")
        .header("content-type", "application/json")
        .header("content-encoding", "gzip")
        .body(gzip(wrapped.as_bytes()))
        .await;
    assert!(matches!(refused.status, 422 | 429), "{refused}");
    let preferences = person
        .put("/user/v1alpha1/preferences", &json!({}))
        .header("content-encoding", "gzip")
        .body(gzip(format!("{{\"a\":{}}}", zeros(60 << 20)).as_bytes()))
        .await;
    assert!(matches!(preferences.status, 404 | 405 | 413), "{preferences}");
    let peak = server.peak_memory();
    assert!(peak < 2 * MEMORY, "bodies of zeros took {peak} MiB");
    assert!(
        served < Duration::from_secs(5),
        "another person's record took {served:?}"
    );
}

#[tokio::test]
async fn members_of_a_wrapper_are_counted_like_values() {
    let server = Setup::default().no_upkeep().start();
    let person = server.person();
    // One member, given again and again and wrong each time.
    let wrong = "\"recorded_at\":1,".repeat(300_000);
    let body = format!("{{\"data\":\"1\",\"metadata\":{{{wrong}\"data_type\":\"HeartRate\"}}}}");
    let begun = Instant::now();
    let refused = person
        .call(reqwest::Method::POST, "/ingest/v1/record")
        .header("content-type", "application/json")
        .body(body)
        .await;
    // The last says that there may be more.
    assert!(refused.faults().len() <= 101);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let peak = server.peak_memory();
    assert!(peak < MEMORY, "{peak} MiB");
}

fn selected(person: &Person, selector: &str) -> crate::harness::Call {
    person.get("/data/v1/records").with("q", selector)
}

#[tokio::test]
async fn patterns_are_compiled_within_our_own_limit() {
    let server = Almanac::start();
    let person = server.person();
    person
        .records(
            "NumericAnnotation",
            &[json!({"uuid": id(1), "recorded_at": instant(1), "value": 1, "note": "a"})],
        )
        .await;
    server.forget_peak();
    let labels: Vec<String> = (0..18)
        .map(|_| "note=~\"(((a{40}){40}){40})|\\\\pL{200}\"".to_owned())
        .collect();
    let begun = Instant::now();
    let refused = selected(
        &person,
        &format!("NumericAnnotation{{{}}}[1d] @ {DAY}", labels.join(",")),
    )
    .await;
    assert_eq!(refused.faults(), ["query.q"]);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let peak = server.peak_memory();
    assert!(peak < MEMORY, "eighteen patterns took {peak} MiB");
}

#[tokio::test]
async fn what_names_a_source_is_short_and_without_nul() {
    let person = person();
    let with = |name: &str, value: Value| {
        let mut record = heart_rate(id(1), &instant(1), 60);
        record[name] = value;
        record
    };
    let long = "x".repeat(4096);
    for (name, value, place) in [
        ("sources", json!(["com.example", long]), "body.sources.1"),
        ("sources", json!(["com.example\u{0}"]), "body.sources.0"),
        (
            "source_properties",
            json!({"name": long, "sourceBundleIdentifier": "com.example"}),
            "body.source_properties.name",
        ),
        (
            "source_properties",
            json!({"sourceBundleIdentifier": long}),
            "body.source_properties.sourceBundleIdentifier",
        ),
    ] {
        assert_eq!(
            person.record("HeartRate", &with(name, value)).await.faults(),
            [place]
        );
    }
    let usual = with("sources", json!(["x".repeat(2048)]));
    person.record("HeartRate", &usual).await.upload();
}

#[tokio::test]
async fn columns_wait_within_the_limit_of_the_disk_and_inside_the_data_directory() {
    let records: Vec<Value> = (0..30_000).map(|n| heart_rate(id(n), &instant(n), 60)).collect();
    let server = Setup::default()
        .no_upkeep()
        .with("ALMANAC_SPILL_LIMIT", "1MiB")
        .start();
    let person = server.person();
    person.records("HeartRate", &records).await;
    let columns = |person: &Person| {
        person
            .metric_samples("HeartRate", ALL_TIME.0, ALL_TIME.1)
            .with("output", "jscolumns")
    };
    columns(&person).await.problem(503);
    // What was refused gave its room back, and small answers need none.
    let short = person.metric_samples("HeartRate", &instant(0), &instant(100));
    short.with("output", "jscolumns").await.must_be(200);
    server.stop();

    let roomy = Setup::default().no_upkeep().in_dir(server.data_dir()).start();
    let person = roomy.person_called(person.id);
    let answer = columns(&person).await.must_be(200).json();
    assert_eq!(answer["value"].as_array().map(Vec::len), Some(30_000));
}

/// So many letters `a` and `b` without an order.
fn letters(count: usize) -> String {
    let mut number = 1_u32;
    let mut letter = || {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if number >> 31 == 0 { 'a' } else { 'b' }
    };
    (0..count).map(|_| letter()).collect()
}

#[tokio::test]
async fn a_pattern_that_is_too_costly_for_a_text_is_refused_where_the_text_is_in_an_object() {
    let almanac = Setup::default().busy_upkeep().start();
    let person = almanac.person();
    let annotation = json!({"recorded_at": instant(1), "value": 1, "note": letters(1_000_000)});
    person.records("NumericAnnotation", &[annotation]).await;
    almanac.until_objects(1).await;
    let costly = r#"NumericAnnotation{note=~"[ab]*a[ab]{2000}c"}"#;
    for refused in [costly.to_owned(), format!("{costly}[1h] @ {}", DAY + 60)] {
        assert_eq!(
            selected(&person, &refused).await.faults(),
            ["query.q"],
            "{refused}"
        );
    }
    let cheap = selected(&person, r#"NumericAnnotation{note=~"[ab]+"}"#).await;
    assert_eq!(cheap.must_be(200).text().lines().count(), 1);
}

#[tokio::test]
async fn a_pattern_that_is_too_costly_for_a_text_is_refused() {
    let person = person();
    let note = letters(1_000_000);
    person
        .records(
            "NumericAnnotation",
            &[json!({"uuid": id(1), "recorded_at": instant(1), "value": 1, "note": note})],
        )
        .await;
    let asked = |condition: &str| {
        let text = format!("SELECT count(*) AS kept FROM numeric_annotation WHERE {condition}");
        person.post("/data/v1/sql", &json!({"query": text}))
    };
    let many = |part: &str, end: &str| format!("'{}{end}'", part.repeat(1_000));
    let begun = Instant::now();
    for condition in [
        "regexp_like(note, 'a[ab]{4000}c')",
        "regexp_like(note, 'A[AB]{2000}C', 'i')",
        "note !~ '[ab]*a[ab]{2000}c'",
        "note ~* '[ab]*a[ab]{2000}c'",
        "note SIMILAR TO '%a[ab]{2000}c%'",
        "regexp_count(note, 'a[ab]{4000}c') > 0",
        "regexp_count(note, '.*[^a-z]|[a-z]') > 0",
        "regexp_instr(note, 'a[ab]{4000}c') > 0",
        "regexp_match(note, '(a)[ab]{4000}c') IS NOT NULL",
        "regexp_replace(note, 'a[ab]{4000}c', '') = ''",
        &format!("note LIKE {}", many("%a", "c")),
        &format!("note NOT ILIKE {}", many("a_", "c%")),
        &format!("{} LIKE {}", many(&"a".repeat(70), ""), many("%a", "b")),
    ] {
        assert_eq!(asked(condition).await.faults(), ["body.query"], "{condition}");
    }
    let latest = |pattern: &str| format!("NumericAnnotation{{note=~\"{pattern}\"}}");
    let selector = |pattern: &str| format!("{}[1h] @ {}", latest(pattern), DAY + 60);
    let costly = "[ab]*a[ab]{2000}c";
    for refused in [selector(costly), latest(costly)] {
        assert_eq!(
            selected(&person, &refused).await.faults(),
            ["query.q"],
            "{refused}"
        );
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    for (condition, kept) in [
        (r"note ~ '^[ab]+$'", 1),
        (r"note ~ '\w+@\w+'", 0),
        (r"note !~* '[^AB]'", 1),
        ("regexp_count(note, 'a+') > 1000", 1),
        (r"regexp_count(note || ' Wärme', '\w+', 5) = 2", 1),
        (r"regexp_count(note || ' Wärme', '\bWärme\b') = 1", 1),
        ("note LIKE '%ab%ba%'", 1),
        ("note ILIKE '%AB_B%'", 1),
    ] {
        let rows = asked(condition).await.must_be(200).rows();
        assert_eq!(rows, [json!({"kept": kept})], "{condition}");
    }
    let found = selected(&person, &selector("[ab]+")).await.must_be(200);
    assert_eq!(found.text().lines().count(), 1);
}

#[tokio::test]
async fn a_pattern_of_an_own_type_that_is_too_costly_for_a_text_refuses_the_record() {
    let person = person();
    let pattern = json!({"pattern": "[ab]*a[ab]{400}c"});
    let schema = json!({"properties": {"n": pattern, "never": {"not": pattern}, "free": {"type": "string"}}});
    let name = person
        .define(
            "Event",
            &json!({"name": "Costly", "record_spec": {"schema": schema}}),
        )
        .await;
    let record = |member: &str, text: String| {
        let mut record = json!({"start_time": instant(1), "end_time": instant(1)});
        record[member] = json!(text);
        record
    };
    let begun = Instant::now();
    for member in ["n", "never"] {
        let refused = person.record(&name, &record(member, letters(900_000))).await;
        assert_eq!(refused.faults(), ["body"], "{member}");
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let matching = format!("{}c", "ba".repeat(1_000));
    person.record(&name, &record("n", matching)).await.upload();
    person
        .record(&name, &record("never", letters(2_000)))
        .await
        .upload();
    person
        .record(&name, &record("free", letters(900_000)))
        .await
        .upload();
    let wrong = person.record(&name, &record("n", letters(2_000))).await;
    assert_eq!(wrong.faults(), ["body.n"]);
}
