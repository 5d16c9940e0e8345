//! People who ask, what they ask, and the answers.

use std::future::{Future, IntoFuture};
use std::pin::Pin;

use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{ALL_TIME, at, heart_rate, id, jsonl};

/// Somebody with a token, talking to one server.
#[derive(Clone, Debug)]
pub(crate) struct Person {
    pub id: Uuid,
    url: String,
    token: Option<String>,
    client: Client,
}

impl Person {
    pub(crate) fn new(url: &str, id: Uuid, token: String) -> Self {
        Self {
            id,
            url: url.to_owned(),
            token: Some(token),
            client: client(),
        }
    }

    pub(crate) fn without_token(url: &str) -> Self {
        Self {
            id: Uuid::nil(),
            url: url.to_owned(),
            token: None,
            client: client(),
        }
    }

    /// This person, showing another token.
    pub(crate) fn showing(&self, token: impl Into<String>) -> Self {
        Self {
            token: Some(token.into()),
            ..self.clone()
        }
    }

    pub(crate) fn token(&self) -> &str {
        self.token.as_deref().expect("a token")
    }

    pub(crate) fn call(&self, method: Method, path: &str) -> Call {
        let asked = format!("{method} {path}");
        let mut request = self.client.request(method, format!("{}{path}", self.url));
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        Call { request, asked }
    }

    pub(crate) fn get(&self, path: &str) -> Call {
        self.call(Method::GET, path)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Call {
        self.call(Method::POST, path)
            .header("content-type", "application/json")
            .body(body.to_string())
    }

    pub(crate) fn put(&self, path: &str, body: &Value) -> Call {
        self.call(Method::PUT, path)
            .header("content-type", "application/json")
            .body(body.to_string())
    }

    /// An ingest request that has its type and token, and no body yet.
    pub(crate) fn ingest(&self, data_type: &str) -> Call {
        self.call(Method::POST, &format!("/ingest/v1/record/{data_type}"))
    }

    /// Records one record.
    pub(crate) fn record(&self, data_type: &str, record: &Value) -> Call {
        self.ingest(data_type)
            .header("content-type", "application/json")
            .body(record.to_string())
    }

    /// The sources of the person's records, as they are listed.
    pub(crate) async fn sources(&self) -> Vec<Value> {
        self.get("/data/v1alpha1/data_sources").await.must_be(200).rows()
    }

    /// Records many.
    pub(crate) fn lines(&self, data_type: &str, records: &[Value]) -> Call {
        self.ingest(data_type)
            .header("content-type", "application/x-jsonl")
            .body(jsonl(records))
    }

    /// Records many that must be accepted; the upload's id.
    pub(crate) async fn records(&self, data_type: &str, records: &[Value]) -> Uuid {
        self.lines(data_type, records).await.upload()
    }

    /// Records 60 at ten o'clock and 61 a minute later, with the first and the second id.
    pub(crate) async fn two_heart_rates(&self) -> Uuid {
        let rates = [
            heart_rate(id(1), &at("10:00"), 60),
            heart_rate(id(2), &at("10:01"), 61),
        ];
        self.records("HeartRate", &rates).await
    }

    pub(crate) async fn delete(&self, data_type: &str, record: Uuid) -> Uuid {
        self.record(
            "DeletedRecord",
            &json!({"deleted_id": record, "deleted_type": data_type}),
        )
        .await
        .upload()
    }

    pub(crate) fn metric_samples(&self, metric: &str, start: &str, end: &str) -> Call {
        let path = format!("/data/v0/{}/metric_samples", self.id);
        self.get(&path)
            .with("metric", metric)
            .with("start_time", start)
            .with("end_time", end)
    }

    /// The raw samples of a metric in a range.
    pub(crate) async fn samples(&self, metric: &str, start: &str, end: &str) -> Vec<Value> {
        self.metric_samples(metric, start, end).await.must_be(200).rows()
    }

    pub(crate) async fn all_samples(&self, metric: &str) -> Vec<Value> {
        self.samples(metric, ALL_TIME.0, ALL_TIME.1).await
    }

    /// `/data/v1alpha1/event/…` or `/metric/…` over all time.
    pub(crate) fn read(&self, class: &str, data_type: &str) -> Call {
        self.get(&format!("/data/v1alpha1/{class}/{data_type}"))
            .with("start_time", ALL_TIME.0)
            .with("end_time", ALL_TIME.1)
    }

    pub(crate) async fn rows(&self, class: &str, data_type: &str) -> Vec<Value> {
        self.read(class, data_type).await.must_be(200).rows()
    }

    /// How many changes `/data/v1/updates` counts for a type, today.
    pub(crate) async fn updates(&self, data_type: &str) -> i64 {
        let all = self.all_updates().await;
        all[data_type].as_i64().unwrap_or(0)
    }

    pub(crate) async fn all_updates(&self) -> Value {
        let reply = self
            .get("/data/v1/updates")
            .with("start_time", "2020-01-01T00:00:00Z")
            .with("end_time", ALL_TIME.1)
            .await
            .must_be(200);
        reply.json()["data_types"].clone()
    }

    /// Defines a type of one's own; its id, `Event/<uuid>` or `Metric/<uuid>`.
    pub(crate) async fn define(&self, base: &str, definition: &Value) -> String {
        let reply = self
            .post(&format!("/input/v1/data_type/{base}"), definition)
            .await;
        assert!(matches!(reply.status, 200 | 201), "{reply}");
        let body = reply.json();
        let id = body["id"].as_str().unwrap_or_else(|| panic!("no id: {reply}"));
        if id.contains('/') {
            id.to_owned()
        } else {
            format!("{base}/{id}")
        }
    }
}

/// A connection for each request: a kept one may be that of a server that was killed, and a failure must be
/// the failure of the request that it is told of.
fn client() -> Client {
    Client::builder()
        .no_proxy()
        .pool_max_idle_per_host(0)
        .build()
        .expect("an HTTP client")
}

/// A request being written; `.await` sends it.
#[derive(Debug)]
pub(crate) struct Call {
    request: RequestBuilder,
    asked: String,
}

impl Call {
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.asked = format!("{} {name}={value}", self.asked);
        self.request = self.request.query(&[(name, value)]);
        self
    }

    /// A header, in place of an earlier one of that name.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.asked = if name == "content-type" {
            self.asked
        } else {
            format!("{} [{name}: {value}]", self.asked)
        };
        let mut headers = HeaderMap::new();
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a header name");
        headers.insert(name, HeaderValue::from_str(value).expect("a header value"));
        self.request = self.request.headers(headers);
        self
    }

    pub(crate) fn body(mut self, body: impl Into<reqwest::Body>) -> Self {
        self.request = self.request.body(body);
        self
    }

    /// Sends the request and hands over the answer while its body is still on the way.
    pub(crate) async fn open(self) -> reqwest::Result<reqwest::Response> {
        self.request.send().await
    }

    /// The answer, or what went wrong underway: for servers that are being killed.
    pub(crate) async fn attempt(self) -> reqwest::Result<Reply> {
        let asked = self.asked;
        let response = self.request.send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Ok(Reply {
            asked,
            status,
            headers,
            body: response.bytes().await?,
        })
    }
}

impl IntoFuture for Call {
    type Output = Reply;
    type IntoFuture = Pin<Box<dyn Future<Output = Reply> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let asked = self.asked.clone();
        Box::pin(async move {
            self.attempt()
                .await
                .unwrap_or_else(|error| panic!("{asked}: {error:?}"))
        })
    }
}

/// An answer with its whole body.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    asked: String,
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl std::fmt::Display for Reply {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let body = String::from_utf8_lossy(&self.body);
        let shown: String = body.chars().take(1500).collect();
        write!(formatter, "{} answered {}: {shown}", self.asked, self.status)
    }
}

impl Reply {
    #[track_caller]
    pub(crate) fn must_be(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self}");
        self
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("a body of text")
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("not JSON ({error}): {self}"))
    }

    /// The rows of a JSON array.
    #[track_caller]
    pub(crate) fn rows(&self) -> Vec<Value> {
        self.json()
            .as_array()
            .cloned()
            .unwrap_or_else(|| panic!("not an array: {self}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The upload's id of an accepted request.
    #[track_caller]
    pub(crate) fn upload(&self) -> Uuid {
        assert_eq!(self.status, 201, "{self}");
        self.json()["upload_id"]
            .as_str()
            .and_then(|id| Uuid::parse_str(id).ok())
            .unwrap_or_else(|| panic!("no upload id: {self}"))
    }

    /// How many records an accepted request stored, replaced, left unchanged and deleted.
    #[track_caller]
    pub(crate) fn counts(&self) -> [u64; 4] {
        assert_eq!(self.status, 201, "{self}");
        let body = self.json();
        ["stored", "replaced", "unchanged", "deleted"].map(|name| {
            body[name]
                .as_u64()
                .unwrap_or_else(|| panic!("{name} is not counted: {self}"))
        })
    }

    /// A refusal with places: `{detail: [{loc, msg, type}]}`; the places, joined by dots.
    #[track_caller]
    pub(crate) fn faults(&self) -> Vec<String> {
        assert_eq!(self.status, 422, "{self}");
        let body = self.json();
        let detail = body["detail"]
            .as_array()
            .unwrap_or_else(|| panic!("no list of faults: {self}"));
        assert!(!detail.is_empty(), "an empty list of faults: {self}");
        let fault = |fault: &Value| {
            assert!(
                fault["msg"].as_str().is_some_and(|text| !text.is_empty()),
                "a fault without a message: {self}"
            );
            assert!(fault["type"].is_string(), "a fault without a type: {self}");
            let places = fault["loc"]
                .as_array()
                .unwrap_or_else(|| panic!("a fault without a place: {self}"));
            let names: Vec<&str> = places
                .iter()
                .map(|part| {
                    part.as_str()
                        .unwrap_or_else(|| panic!("a place that is no text: {self}"))
                })
                .collect();
            names.join(".")
        };
        detail.iter().map(fault).collect()
    }

    /// Checks that this is a problem document of the status.
    #[track_caller]
    pub(crate) fn problem(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self}");
        let content_type = self.header("content-type").unwrap_or_default();
        assert!(
            content_type.starts_with("application/problem+json"),
            "{content_type}: {self}"
        );
        let body = self.json();
        assert_eq!(body["status"], json!(status), "{self}");
        assert!(body["title"].is_string(), "{self}");
        assert!(body["detail"].is_string(), "{self}");
        body
    }
}
