//! Traces: what became of each request, sent to the collector of an operator's services. One span for a
//! request, from its head to the last byte of its answer, and one each for planning and running its question.
//!
//! A trace that the client began is continued (W3C Trace Context), unless it is marked as not sampled.
//! Tracing never holds up a request: if the collector does not keep up, traces are dropped and counted.
//! Routes appear as they are declared; never a query, a body, or a person. Knows requests from outside; knows
//! nothing of what they ask.

mod body;
mod context;
mod otlp;
pub mod sending;
mod trace;
mod trace_queue;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant as Moment};

use axum::body::Body;
use axum::http::Method;
use axum::response::Response;
use tokio::sync::mpsc;

use crate::model::clock::Clock;
use crate::model::ids::IdSource;

use body::TracedBody;
pub use context::Context;
pub use trace::TraceMeters;
use trace::{Phase, Trace};
use trace_queue::TraceQueue;

/// The most traces that may wait to be sent.
const MOST_WAITING: usize = 4096;

/// When an answer was planned and begun; travels beside the answer.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// When work on the question began.
    pub begun: Moment,
    pub planned: Duration,
    /// From the end of planning until the first rows were there.
    pub ran: Duration,
}

impl fmt::Display for Timing {
    /// As the value of the header `Server-Timing`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = |duration: Duration| duration.as_secs_f64() * 1e3;
        let (planned, ran) = (milliseconds(self.planned), milliseconds(self.ran));
        write!(formatter, "plan;dur={planned:.3}, run;dur={ran:.3}")
    }
}

/// Collects traces for sending. Cheap to clone.
#[derive(Clone)]
pub struct Traces {
    queue: TraceQueue,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
}

/// A request that is being answered.
pub struct Following {
    traces: Traces,
    context: Context,
    began_at: i64,
    stopwatch: Moment,
}

/// What is known of a request once its answer has a head.
pub struct Head<'a> {
    pub method: Method,
    pub route: &'a str,
    pub request: Arc<str>,
}

impl Traces {
    /// Creates the collecting side and the sending side.
    #[must_use]
    pub fn new(
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
        meters: TraceMeters,
    ) -> (Self, sending::ToSend) {
        let (waiting, taken) = mpsc::channel(MOST_WAITING);
        let to_send = sending::ToSend::new(taken, meters.clone());
        let queue = TraceQueue { waiting, meters };
        let traces = Self { queue, clock, ids };
        (traces, to_send)
    }

    /// Follows a request whose client sent `context`, if it did. `None`: the client does not want it traced.
    #[must_use]
    pub fn follow(&self, context: Option<Context>, stopwatch: Moment) -> Option<Following> {
        let context = context.unwrap_or_else(|| Context::begun(self.ids.next()));
        context.is_wanted().then(|| Following {
            traces: self.clone(),
            context,
            began_at: self.clock.now().micros(),
            stopwatch,
        })
    }

    fn span(&self) -> u64 {
        self.ids.next().as_u64_pair().1
    }
}

impl Following {
    /// `response` unchanged; its trace is collected when the last byte is sent.
    #[must_use]
    pub fn until_the_end(self, head: Head<'_>, response: Response) -> Response {
        let timing = response.extensions().get::<Timing>().copied();
        let trace = Trace {
            context: self.context,
            span: self.traces.span(),
            began_at: self.began_at,
            method: head.method,
            route: head.route.to_owned(),
            request: head.request,
            status: response.status(),
            took: Duration::ZERO,
            bytes: 0,
            broke_off: false,
            phases: timing.map(|timing| self.phases(timing)).unwrap_or_default(),
        };
        response.map(|body| {
            Body::new(TracedBody {
                body,
                trace: Some(trace),
                stopwatch: self.stopwatch,
                queue: self.traces.queue,
                bytes: 0,
                is_whole: false,
            })
        })
    }

    fn phases(&self, timing: Timing) -> Vec<Phase> {
        let phase = |name, from: Moment, took| Phase {
            name,
            span: self.traces.span(),
            after: from.saturating_duration_since(self.stopwatch),
            took,
        };
        vec![
            phase("plan", timing.begun, timing.planned),
            phase("run", timing.begun + timing.planned, timing.ran),
        ]
    }
}
