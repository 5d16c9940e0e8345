//! Sends traces to the collector, in batches, over OTLP/HTTP.
//!
//! If the receiver does not answer, sending is tried again after a pause; meanwhile traces that find no place
//! are dropped. The log says so once, and once when it is over.

use std::time::Duration;

use axum::http::{HeaderName, HeaderValue};
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use tokio::sync::mpsc;

use super::otlp;
use super::trace::{Trace, TraceMeters};

/// The most traces that are sent together.
const MOST_TOGETHER: usize = 512;
/// How long the first trace waits for others.
const GATHERING_TIME: Duration = Duration::from_secs(1);
/// The timeout for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause after the first attempt that failed; each further one is twice as long.
const FIRST_REST: Duration = Duration::from_secs(1);
/// How many attempts a batch gets before it is dropped.
const ATTEMPTS: u32 = 5;

/// The settings for sending traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceSettings {
    /// The address of the receiver, without `/v1/traces`.
    pub endpoint: String,
    /// Headers that it expects, such as one that names the sender.
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

/// Why traces cannot be sent.
#[derive(Debug, thiserror::Error)]
#[error("traces cannot be sent: {0}")]
pub struct SendingError(#[from] reqwest::Error);

/// The traces to send.
pub struct ToSend {
    taken: mpsc::Receiver<Trace>,
    meters: TraceMeters,
}

/// Sends traces to a receiver.
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

    /// A sender for the receiver in `settings`.
    pub fn sent_as(self, settings: &TraceSettings) -> Result<Sending, SendingError> {
        let mut headers: HeaderMap = settings.headers.iter().cloned().collect();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let client = reqwest::Client::builder()
            .timeout(ANSWER_TIMEOUT)
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
    /// Sends until no more traces can be collected.
    pub async fn run(mut self) {
        let mut traces = Vec::with_capacity(MOST_TOGETHER);
        while self.gathered(&mut traces).await {
            self.send(&traces).await;
            traces.clear();
        }
    }

    /// Waits for a trace, and briefly for more. `false`: there will be no more.
    async fn gathered(&mut self, traces: &mut Vec<Trace>) -> bool {
        let taken = &mut self.to_send.taken;
        if taken.recv_many(traces, MOST_TOGETHER).await == 0 {
            return false;
        }
        let more = async {
            while traces.len() < MOST_TOGETHER {
                if taken.recv_many(traces, MOST_TOGETHER - traces.len()).await == 0 {
                    return;
                }
            }
        };
        // After the timeout, the traces gathered so far are sent.
        let _late = tokio::time::timeout(GATHERING_TIME, more).await;
        true
    }

    async fn send(&mut self, traces: &[Trace]) {
        let count = traces.len() as u64;
        let body = otlp::document(traces).to_string();
        let mut rest = FIRST_REST;
        for _ in 0..ATTEMPTS {
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
            // A stopping service does not wait for its collector.
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
            // Without the address, which may contain a secret.
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

/// Why the receiver did not take traces.
struct Failure {
    reason: String,
    /// Whether it may take the same traces later.
    may_pass: bool,
}
