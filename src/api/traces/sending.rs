//! What was told of requests, on its way to who gathers it: some at a time, over OTLP/HTTP.
//!
//! A receiver that does not answer is tried again after a while, with what is at hand; meanwhile whatever
//! finds no place is dropped. The log says so once, and once when it is over.

use std::time::Duration;

use axum::http::{HeaderName, HeaderValue};
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use tokio::sync::mpsc;

use super::{Trace, TraceMeters, otlp};

/// Traces that are sent together at most.
const TOGETHER: usize = 512;
/// How long the first of them waits for others.
const GATHERING: Duration = Duration::from_secs(1);
/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause after the first try that failed; each one after it is twice as long.
const FIRST_REST: Duration = Duration::from_secs(1);
/// After so many tries the next ones are tried instead.
const TRIES: u32 = 5;

/// Where traces are to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceSettings {
    /// Of the receiver; `/v1/traces` is behind it.
    pub endpoint: String,
    /// What it wants to hear beside them, such as who sends.
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

/// Why nothing can be sent.
#[derive(Debug, thiserror::Error)]
#[error("traces cannot be sent: {0}")]
pub struct SendingError(#[from] reqwest::Error);

/// What there is to send.
pub struct ToSend {
    taken: mpsc::Receiver<Trace>,
    meters: TraceMeters,
}

/// Sends it.
pub struct Sending {
    to_send: ToSend,
    client: reqwest::Client,
    url: String,
    is_failing: bool,
}

impl ToSend {
    pub(super) const fn new(taken: mpsc::Receiver<Trace>, meters: TraceMeters) -> Self {
        Self { taken, meters }
    }

    /// Has it sent where the settings say.
    pub fn sent_as(self, settings: &TraceSettings) -> Result<Sending, SendingError> {
        let mut headers: HeaderMap = settings.headers.iter().cloned().collect();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let client = reqwest::Client::builder()
            .timeout(PATIENCE)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .default_headers(headers)
            .build()?;
        Ok(Sending {
            to_send: self,
            client,
            url: format!("{}/v1/traces", settings.endpoint),
            is_failing: false,
        })
    }
}

impl Sending {
    /// Sends until there is nobody left who could tell of anything.
    pub async fn run(mut self) {
        let mut traces = Vec::with_capacity(TOGETHER);
        while self.gathered(&mut traces).await {
            self.send(&traces).await;
            traces.clear();
        }
    }

    /// Waits for a trace, and a little for more. `false`: there will be none.
    async fn gathered(&mut self, traces: &mut Vec<Trace>) -> bool {
        let taken = &mut self.to_send.taken;
        if taken.recv_many(traces, TOGETHER).await == 0 {
            return false;
        }
        let more = async {
            while traces.len() < TOGETHER {
                if taken.recv_many(traces, TOGETHER - traces.len()).await == 0 {
                    return;
                }
            }
        };
        // Whoever waits no longer has what there is.
        let _late = tokio::time::timeout(GATHERING, more).await;
        true
    }

    async fn send(&mut self, traces: &[Trace]) {
        let count = traces.len() as u64;
        let body = otlp::document(traces).to_string();
        let mut rest = FIRST_REST;
        for _ in 0..TRIES {
            let failure = match self.post(&body).await {
                Ok(()) => {
                    if std::mem::take(&mut self.is_failing) {
                        tracing::info!("traces are sent again");
                    }
                    self.to_send.meters.sent.inc_by(count);
                    return;
                }
                Err(failure) => failure,
            };
            if !std::mem::replace(&mut self.is_failing, true) {
                let reason = failure.reason;
                tracing::warn!(
                    reason,
                    "traces cannot be sent; those that find no place are dropped"
                );
            }
            // A service that stops does not wait for who gathers its traces.
            if !failure.may_pass || self.to_send.taken.is_closed() {
                break;
            }
            tokio::time::sleep(rest).await;
            rest *= 2;
        }
        self.to_send.meters.dropped.inc_by(count);
    }

    async fn post(&self, body: &str) -> Result<(), Failure> {
        let sent = self.client.post(&self.url).body(body.to_owned()).send().await;
        let answer = sent.map_err(|error| Failure {
            // Without its address, which may hold a secret.
            reason: error.without_url().to_string(),
            may_pass: true,
        })?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        Err(Failure {
            reason: format!("the receiver answered {status}"),
            may_pass: matches!(status.as_u16(), 429 | 502 | 503 | 504),
        })
    }
}

/// Why traces were not taken.
struct Failure {
    reason: String,
    /// Whether the same may be taken later.
    may_pass: bool,
}
