//! Remembers which tokens were accepted, and in which state of their person. As long as that state lasts,
//! neither the session nor a possible erasure has to be looked at again, so one look at the catalogue answers
//! both whether they may enter and whether anything of theirs has changed.
//!
//! Knows nothing of tokens but what names them.

use uuid::Uuid;

use crate::auth::tokens::Reader;
use crate::catalog::PersonState;
use crate::model::cache::Cache;
use crate::model::ids::PersonId;
use crate::model::time::Instant;

/// How many are remembered; each takes some hundred bytes.
const REMEMBERED: u64 = 20_000;

/// What of a token it depends on whether it is let in.
type Token = (PersonId, Option<Uuid>, Option<Instant>);

/// Those who were let in lately.
#[derive(Clone, Debug)]
pub struct Accepted {
    seen: Cache<Token, PersonState>,
}

impl Default for Accepted {
    fn default() -> Self {
        Self {
            seen: Cache::of(REMEMBERED),
        }
    }
}

impl Accepted {
    /// Whether the reader was let in while their person was in this state.
    #[must_use]
    pub fn in_state(&self, reader: &Reader, state: PersonState) -> bool {
        self.seen.get(&token(reader)) == Some(state)
    }

    /// The reader was let in; `state`: from before that was decided.
    pub fn note(&self, reader: &Reader, state: PersonState) {
        self.seen.insert(token(reader), state);
    }

    /// Holds nothing of anybody's any more.
    pub fn forget_all(&self) {
        self.seen.clear();
    }
}

const fn token(reader: &Reader) -> Token {
    (reader.person(), reader.session(), reader.issued())
}
