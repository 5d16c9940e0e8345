//! Every route and every body, with whatever comes to mind: no failure, no panic, little memory, and
//! everybody else is served meanwhile.
//!
//! What is asked is made from the document that the service shows of itself and from a seed, which is
//! printed. For `ALMANAC_FUZZ_SECONDS` (20 unless it is said), from the seed `ALMANAC_FUZZ_SEED`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use reqwest::Method;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::harness::{Almanac, Person, Setup, heart_rate, id, instant};

/// What the process may take, in MiB.
const MEMORY: u64 = 256;

/// Random numbers that a seed decides (splitmix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// A text that is meant, or one that nobody means.
    fn text(&mut self) -> String {
        const USUAL: [&str; 28] = [
            "HeartRate",
            "StepCount",
            "SleepStage",
            "Event",
            "MomentAnnotation",
            "NumericAnnotation",
            "DeletedRecord",
            "2024-05-01T00:00:00Z",
            "2024-06-01",
            "1717200000",
            "Europe/Berlin",
            "PT1H",
            "P1D",
            "1h",
            "csv",
            "jscolumns",
            "parquet",
            "arrow",
            "true",
            "0",
            "-1",
            "mean",
            "day",
            "HeartRate[1h] @ 1717200000",
            "value>10",
            "note~a.*",
            "0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d5e",
            "/notes/today.txt",
        ];
        const ODD: [&str; 20] = [
            "",
            " ",
            "\u{0}",
            "\u{feff}",
            "🦜",
            "../../etc/passwd",
            "%00",
            "'; DROP TABLE people; --",
            "=cmd|' /C calc'!A0",
            "99999999999999999999999999",
            "-9223372036854775808",
            "1e400",
            "NaN",
            "null",
            "((((((((((a{100}){100}){100}){100}",
            "{__name__=~\"((a{50}){50}){50}\"}",
            "9999-12-31T23:59:59.999999Z",
            "0000-00-00",
            "[[[[[[[[[[[[[[[[[[[[",
            "a,b,,c",
        ];
        match self.below(10) {
            0..=5 => (*self.of(&USUAL)).to_owned(),
            6..=8 => (*self.of(&ODD)).to_owned(),
            _ => {
                let length = 1 << self.below(12);
                (*self.of(&["x", "ä", "9", "[", "%25"])).repeat(length)
            }
        }
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 6 } else { 9 }) {
            0 => Value::Null,
            1 => json!(self.one_in(2)),
            2 => json!(self.next() as i64 % 1000),
            3 => json!(self.next() as f64 / 1e3),
            4 | 5 => json!(self.text()),
            6 => (0..self.below(5)).map(|_| self.value(depth - 1)).collect(),
            7 => vec![self.value(depth - 1); self.below(300)].into(),
            _ => {
                let members = (0..self.below(6)).map(|_| (self.text(), self.value(depth - 1)));
                members.collect::<Map<String, Value>>().into()
            }
        }
    }
}

/// What a schema of the document asks for, more or less.
fn meant(dice: &mut Dice, document: &Value, schema: &Value, depth: usize) -> Value {
    if depth == 0 || dice.one_in(8) {
        return dice.value(2);
    }
    if let Some(reference) = schema["$ref"].as_str() {
        let target = document
            .pointer(reference.trim_start_matches('#'))
            .unwrap_or(&Value::Null);
        return meant(dice, document, target, depth - 1);
    }
    for several in ["oneOf", "anyOf", "allOf"] {
        if let Some(choices) = schema[several].as_array()
            && !choices.is_empty()
        {
            let chosen = dice.of(choices).clone();
            return meant(dice, document, &chosen, depth - 1);
        }
    }
    if let Some(choices) = schema["enum"].as_array()
        && !choices.is_empty()
    {
        return dice.of(choices).clone();
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) if !kinds.is_empty() => dice.of(kinds).as_str().unwrap_or_default().to_owned(),
        kind => kind.as_str().unwrap_or_default().to_owned(),
    };
    match kind.as_str() {
        "object" => {
            let mut members = Map::new();
            for (name, member) in schema["properties"].as_object().into_iter().flatten() {
                if !dice.one_in(4) {
                    members.insert(name.clone(), meant(dice, document, member, depth - 1));
                }
            }
            if dice.one_in(4) {
                members.insert(dice.text(), dice.value(2));
            }
            members.into()
        }
        "array" => (0..dice.below(4))
            .map(|_| meant(dice, document, &schema["items"], depth - 1))
            .collect(),
        "string" if schema["format"] == "date-time" => json!("2024-05-01T10:00:00Z"),
        "string" if schema["format"] == "uuid" => json!(Uuid::from_u128(u128::from(dice.next()))),
        "string" => json!(dice.text()),
        "integer" => json!(dice.below(100)),
        "number" => json!(dice.below(100) as f64 / 3.0),
        "boolean" => json!(dice.one_in(2)),
        "null" => Value::Null,
        _ => dice.value(2),
    }
}

struct Route {
    method: Method,
    path: String,
    operation: Value,
}

fn routes(document: &Value) -> Vec<Route> {
    let mut routes = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if let Ok(method) = Method::from_bytes(method.to_ascii_uppercase().as_bytes())
                && operation.is_object()
            {
                routes.push(Route {
                    method,
                    path: path.clone(),
                    operation: operation.clone(),
                });
            }
        }
    }
    routes
}

fn percent(text: &str) -> String {
    text.bytes().fold(String::new(), |spelt, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.') {
            spelt + &char::from(byte).to_string()
        } else {
            spelt + &format!("%{byte:02X}")
        }
    })
}

/// Asks one thing; what was asked, and the status.
async fn ask(dice: &mut Dice, document: &Value, route: &Route, person: &Person) -> (String, u16, String) {
    let mut path = route.path.clone();
    let mut query: Vec<(String, String)> = Vec::new();
    let mut headers: Vec<(String, String)> = Vec::new();
    for parameter in route.operation["parameters"].as_array().into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap_or_default().to_owned();
        let value = match meant(dice, document, &parameter["schema"], 3) {
            Value::String(text) => text,
            other => other.to_string(),
        };
        match parameter["in"].as_str() {
            Some("path") => {
                let value = if name == "svc_userid" && !dice.one_in(6) {
                    person.id.to_string()
                } else if value.is_empty() {
                    "x".to_owned()
                } else {
                    percent(&value)
                };
                path = path.replace(&format!("{{{name}}}"), &value);
            }
            Some("query") if parameter["required"] == json!(true) || dice.one_in(3) => {
                let value = match name.as_str() {
                    "start_time" if !dice.one_in(6) => "2024-01-01T00:00:00Z".to_owned(),
                    "end_time" if !dice.one_in(6) => "2025-01-01T00:00:00Z".to_owned(),
                    _ => value,
                };
                query.push((name, value));
            }
            // A wrong length ends the connection before anything is asked.
            Some("header") if name != "content-length" && dice.one_in(4) => {
                headers.push((
                    name,
                    value.chars().filter(char::is_ascii_graphic).take(300).collect(),
                ));
            }
            _ => {}
        }
    }
    if dice.one_in(20) {
        query.push((dice.text(), dice.text()));
    }
    let mut call = person.call(route.method.clone(), &path);
    for (name, value) in &query {
        call = call.with(name, value);
    }
    for (name, value) in &headers {
        call = call.header(name, value);
    }
    let content = &route.operation["requestBody"]["content"];
    let mut sent = String::new();
    if let Some(forms) = content.as_object().filter(|forms| !forms.is_empty()) {
        let names: Vec<&String> = forms.keys().collect();
        let form = *dice.of(&names);
        sent = match dice.below(12) {
            0 => dice.text(),
            1 => "[".repeat(1 + dice.below(5000)),
            _ => meant(dice, document, &content[form.as_str()]["schema"], 6).to_string(),
        };
        if dice.one_in(10) {
            let cut = dice.below(sent.len() + 1);
            sent = String::from_utf8_lossy(&sent.as_bytes()[..cut]).into_owned();
        }
        call = call.header("content-type", form).body(sent.clone());
    }
    let shown: String = sent.chars().take(2000).collect();
    let asked = format!("{} {path} {query:?} {headers:?} {shown}", route.method);
    match call.attempt().await {
        Ok(reply) => (asked, reply.status, reply.to_string()),
        // A body that is refused early may break off.
        Err(error) => (asked, 0, error.to_string()),
    }
}

fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(otherwise)
}

/// Asks a small question again and again, and says how long the longest took.
async fn bystander(server: &Almanac, over: Arc<AtomicBool>) -> tokio::task::JoinHandle<Duration> {
    let person = server.person();
    person
        .records("HeartRate", &[heart_rate(id(1), &instant(1), 60)])
        .await;
    tokio::spawn(async move {
        let mut longest = Duration::ZERO;
        while !over.load(Ordering::Relaxed) {
            let begun = Instant::now();
            assert_eq!(person.all_samples("HeartRate").await.len(), 1);
            longest = longest.max(begun.elapsed());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        longest
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_asked_nothing_fails_and_others_are_served() {
    let seconds = from_environment("ALMANAC_FUZZ_SECONDS", 20);
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let seed = from_environment("ALMANAC_FUZZ_SEED", clock);
    println!("ALMANAC_FUZZ_SEED={seed}");
    let server = Setup::default().start();
    let document = server.nobody().get("/openapi.json").await.must_be(200).json();
    let routes = routes(&document);
    assert!(routes.len() > 50, "{}", routes.len());
    let person = server.person();
    let records: Vec<Value> = (0..500).map(|n| heart_rate(id(n), &instant(n), n % 90)).collect();
    person.records("HeartRate", &records).await;
    let over = Arc::new(AtomicBool::new(false));
    let bystander = bystander(&server, Arc::clone(&over)).await;

    let mut dice = Dice(seed);
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut asked = 0_u64;
    let mut in_order = routes.iter().cycle();
    while Instant::now() < until {
        // Every route in turn, so that each is asked as often as any other.
        let route = in_order.next().unwrap();
        let (what, status, answer) = ask(&mut dice, &document, route, &person).await;
        assert!(
            status < 500 || status == 501,
            "seed {seed}, question {asked}: {what}\n{answer}"
        );
        asked += 1;
    }
    over.store(true, Ordering::Relaxed);
    let longest = bystander.await.unwrap();
    let metrics = server.metrics().await;
    assert_eq!(metrics.sum(&["almanac_http_panics_total"]), 0.0, "seed {seed}");
    let peak = server.peak_memory();
    println!("{asked} questions, at most {peak} MiB, others waited {longest:?} at most");
    assert!(peak < MEMORY, "seed {seed}: {peak} MiB");
    assert!(
        longest < Duration::from_secs(3),
        "seed {seed}: another person waited {longest:?}"
    );
    assert!(!server.log().contains("a panic"), "seed {seed}");
}
