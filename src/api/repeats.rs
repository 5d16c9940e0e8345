//! Requests that were sent before, word for word, by the same person, of whose own nothing has changed since.
//!
//! Such a request has the answer that it had, so nothing about it has to be read, decided or planned again.
//! What is kept is how its answer began and which of the [`RecentAnswers`] it is; a reader who has the answer
//! already needs no more than that. Only answers that follow from the request and from what is the person's
//! own are noted here: whoever makes an answer says so by leaving [`Followed`] on it. Knows no rows.

use std::sync::Arc;
use std::time::Instant as Moment;

use axum::extract::Request;
use axum::http::header::{ACCEPT, ETAG};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::api::answer::{SERVER_TIMING, again, is_known};
use crate::api::extract::{Notes, PREFER};
use crate::api::recent_answers::{Question, RecentAnswers};
use crate::auth::reach::Reach;
use crate::auth::tokens::Reader;
use crate::catalog::PersonState;
use crate::model::cache::Cache;
use crate::model::ids::PersonId;
use crate::model::meters::CacheMeters;
use crate::model::time::TimeRange;

/// Bytes that one takes beside its texts.
const AROUND: usize = 512;
/// Bytes of one whose address is long.
const LARGE: u64 = 4096;
/// The headers of a request that shape its answer. What packs or checks the finished answer stands outside.
const SHAPING: [HeaderName; 2] = [ACCEPT, PREFER];

/// Left on an answer that follows from its request and from what is its reader's own, and from nothing else:
/// the question under which it is kept.
#[derive(Clone, Debug)]
pub struct Followed(pub Arc<Question>);

/// A request word for word, and who sends it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Wording {
    person: PersonId,
    reach: Reach,
    address: String,
    shaping: Vec<HeaderValue>,
}

impl Wording {
    /// Of a request that asks for an answer; it has been found out who sends it.
    #[must_use]
    pub fn of(request: &Request) -> Option<Self> {
        if request.method() != Method::GET {
            return None;
        }
        let reader = request.extensions().get::<Reader>()?;
        let headers = request.headers();
        let shaping = SHAPING.into_iter().flat_map(|name| headers.get_all(name));
        Some(Self {
            person: reader.person(),
            reach: reader.reach().clone(),
            address: request.uri().path_and_query()?.as_str().to_owned(),
            shaping: shaping.cloned().collect(),
        })
    }
}

/// How an answer began, and of which state it is.
#[derive(Debug)]
struct Beginning {
    state: PersonState,
    headers: Vec<(HeaderName, HeaderValue)>,
    range: Option<TimeRange>,
    ignored: Option<String>,
    question: Arc<Question>,
}

/// The requests that there is room for.
#[derive(Clone, Debug)]
pub struct Repeats {
    known: Cache<Wording, Arc<Beginning>>,
}

impl Repeats {
    /// `memory`: how many bytes to keep.
    #[must_use]
    pub fn new(memory: u64) -> Self {
        let weigh = |wording: &Wording, beginning: &Arc<Beginning>| {
            let asked: usize = wording.shaping.iter().map(HeaderValue::len).sum();
            let said: usize = beginning.headers.iter().map(|(_, value)| value.len()).sum();
            AROUND + wording.address.len() + asked + said
        };
        Self {
            known: Cache::of_bytes(memory, LARGE, weigh),
        }
    }

    /// Has `meters` tell how much is held.
    pub fn watched_by(&self, meters: &CacheMeters) {
        meters.watch("repeats", &self.known);
    }

    /// The answer to a request that was answered in this state of its person, if it is there still.
    #[must_use]
    pub fn answer(
        &self,
        wording: &Wording,
        state: PersonState,
        request: &Request,
        recent: &RecentAnswers,
        begun: Moment,
    ) -> Option<Response> {
        let known = self.known.get(wording)?;
        if known.state != state {
            return None;
        }
        let tag = known.headers.iter().find(|(name, _)| *name == ETAG)?.1.clone();
        let response = if is_known(request.headers(), tag.to_str().ok()?) {
            (StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response()
        } else {
            let found = recent.find(&known.question)?;
            let mut response = again(found, begun).ok()?;
            for (name, value) in &known.headers {
                response.headers_mut().append(name.clone(), value.clone());
            }
            response
        };
        if let Some(notes) = request.extensions().get::<Notes>() {
            if let Some(range) = known.range {
                notes.understood_range(range);
            }
            if let Some(ignored) = &known.ignored {
                notes.ignored_parameters(ignored.clone());
            }
        }
        Some(response)
    }

    /// Takes note of an answer that was given; `state`: of the person, from before anything was read for it.
    pub fn note(&self, wording: Wording, state: PersonState, response: &Response, notes: Option<&Notes>) {
        let Some(Followed(question)) = response.extensions().get::<Followed>() else {
            return;
        };
        let headers = response
            .headers()
            .iter()
            .filter(|(name, _)| **name != SERVER_TIMING);
        let beginning = Beginning {
            state,
            headers: headers
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            range: notes.and_then(Notes::range),
            ignored: notes.and_then(Notes::ignored).map(str::to_owned),
            question: Arc::clone(question),
        };
        self.known.insert(wording, Arc::new(beginning));
    }

    /// Holds nothing of anybody's any more.
    pub fn forget_all(&self) {
        self.known.clear();
    }
}
