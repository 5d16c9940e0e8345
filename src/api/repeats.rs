//! Repeated requests: word for word the same, from the same person, whose data has not changed since.
//!
//! Such a request gets its previous answer, so nothing about it has to be read, decided or planned again.
//! What is kept is how its answer began and which of the [`RecentAnswers`] it is; a client that has the
//! answer already needs no more than that. Only answers that follow from the request and the person's own
//! data are noted here: the code that makes such an answer marks it with [`Followed`]. Knows no rows.

use std::sync::Arc;
use std::time::Instant as Moment;

use axum::extract::Request;
use axum::http::header::{ACCEPT, CONTENT_TYPE, ETAG, VARY};
use axum::http::{HeaderName, HeaderValue, Method};
use axum::response::Response;

use crate::api::answer_headers::{again, is_known, not_modified};
use crate::api::extract::Notes;
use crate::api::header_names::{PREFER, SERVER_TIMING};
use crate::api::recent_answers::{Question, RecentAnswers};
use crate::auth::reach::Reach;
use crate::auth::tokens::Reader;
use crate::catalog::PersonState;
use crate::model::cache::Cache;
use crate::model::ids::PersonId;
use crate::model::meters::CacheMeters;
use crate::model::time::TimeRange;

/// Bytes that an entry takes besides its texts.
const ENTRY_BYTES: usize = 512;
/// Bytes of an entry with a long address.
const LARGE_ENTRY_BYTES: u64 = 4096;
/// The headers of a request that shape its answer, except those that pack or check the finished answer.
const SHAPING: [HeaderName; 2] = [ACCEPT, PREFER];

/// Marks an answer that follows from its request and its reader's own data, and from nothing else: the
/// question under which it is kept.
#[derive(Clone, Debug)]
pub struct Followed(pub Arc<Question>);

/// A request, word for word, and its sender.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Wording {
    person: PersonId,
    reach: Reach,
    address: String,
    /// Copies: the headers of a request are parts of one buffer, which would stay for each of them.
    shaping: Vec<Box<[u8]>>,
}

impl Wording {
    /// Of a GET request whose reader is known.
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
            shaping: shaping.map(|value| value.as_bytes().into()).collect(),
        })
    }

    fn bytes(&self) -> usize {
        let shaping = self
            .shaping
            .iter()
            .map(|value| size_of::<Box<[u8]>>() + value.len());
        self.address.len() + self.reach.memory() + shaping.sum::<usize>()
    }
}

/// The beginning of an answer, and the state that it belongs to.
#[derive(Debug)]
struct Beginning {
    state: PersonState,
    headers: Vec<(HeaderName, HeaderValue)>,
    range: Option<TimeRange>,
    ignored: Option<String>,
    question: Arc<Question>,
}

impl Beginning {
    /// With the question, whose answer may not be kept any more.
    fn bytes(&self) -> usize {
        let header =
            |(_, value): &(HeaderName, HeaderValue)| size_of::<(HeaderName, HeaderValue)>() + value.len();
        let headers: usize = self.headers.iter().map(header).sum();
        headers + self.ignored.as_ref().map_or(0, String::len) + self.question.bytes()
    }
}

/// The repeatable requests, within a limit of memory.
#[derive(Clone, Debug)]
pub struct Repeats {
    known: Cache<Wording, Arc<Beginning>>,
}

impl Repeats {
    /// `memory`: how many bytes to keep.
    #[must_use]
    pub fn new(memory: u64) -> Self {
        let weigh =
            |wording: &Wording, beginning: &Arc<Beginning>| ENTRY_BYTES + wording.bytes() + beginning.bytes();
        Self {
            known: Cache::of_bytes(memory, LARGE_ENTRY_BYTES, weigh),
        }
    }

    /// Makes `meters` show how much is held.
    pub fn watched_by(&self, meters: &CacheMeters) {
        meters.watch("repeats", &self.known);
    }

    /// The answer to a request that was answered in this state of its person, if it is still kept.
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
        let header = |wanted: &HeaderName| known.headers.iter().find(|(name, _)| name == wanted);
        let tag = header(&ETAG)?.1.to_str().ok()?;
        let response = if is_known(request.headers(), tag) {
            let mut response = not_modified(tag, header(&CONTENT_TYPE)?.1.clone()).ok()?;
            for (name, value) in known.headers.iter().filter(|(name, _)| *name == VARY) {
                response.headers_mut().append(name.clone(), value.clone());
            }
            response
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

    /// Notes an answer that was given; `state` is the person's, read before anything was read for the answer.
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

    /// Drops all entries, of everybody.
    pub fn forget_all(&self) {
        self.known.clear();
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::auth::reach::Scope;
    use crate::catalog::Catalog;
    use crate::catalog::test_databases::address_in;
    use crate::model::clock::SystemClock;
    use crate::model::registry::TypeId;
    use crate::output::OutputMethod;

    const PERSON: PersonId = PersonId(Uuid::from_u128(1));

    fn beginning(state: PersonState, words: usize, headers: usize) -> Beginning {
        let header = (ETAG, HeaderValue::from_static("\"tag\""));
        Beginning {
            state,
            headers: vec![header; headers],
            range: None,
            ignored: None,
            question: Arc::new(Question {
                words: "x".repeat(words),
                states: Vec::new(),
                packing: OutputMethod::Jstable.into(),
            }),
        }
    }

    #[tokio::test]
    async fn an_entry_weighs_its_question_its_headers_and_what_narrows_its_token() {
        let directory = tempfile::tempdir().unwrap();
        let address = address_in(directory.path());
        let catalog = Catalog::open(&address, Arc::new(SystemClock)).await.unwrap();
        catalog.ensure_person(PERSON, None).await.unwrap();
        assert!(catalog.swap_preferences(PERSON, None, "{}").await.unwrap());
        let state = catalog.person_state(PERSON).await.unwrap().unwrap();
        let plain = beginning(state, 0, 0).bytes();
        assert!(beginning(state, 10_000, 0).bytes() >= plain + 10_000);
        let header = size_of::<(HeaderName, HeaderValue)>();
        assert!(beginning(state, 0, 20).bytes() >= plain + 20 * header);
        let wording = |types: usize| Wording {
            person: PERSON,
            reach: Reach {
                scope: Some(Scope::Read),
                types: Some(vec![TypeId::new("Event"); types].into()),
            },
            address: "/".to_owned(),
            shaping: vec![Box::from(&b"text/csv"[..])],
        };
        assert!(wording(1_000).bytes() > wording(0).bytes() + 20_000);
    }
}
