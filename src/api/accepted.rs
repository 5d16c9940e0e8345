//! Remembers which tokens were accepted, and in which state of their person. As long as that state lasts,
//! neither the session nor a possible erasure has to be checked again, so one catalogue read answers both
//! whether the reader may enter and whether anything of theirs has changed.
//!
//! Knows nothing of tokens except what identifies them.

use uuid::Uuid;

use crate::auth::tokens::Reader;
use crate::catalog::PersonState;
use crate::model::cache::Cache;
use crate::model::ids::PersonId;
use crate::model::time::Instant;

/// How many tokens are remembered; each takes a few hundred bytes.
const REMEMBERED_TOKENS: u64 = 20_000;

/// The parts of a token that decide whether it is accepted.
type Token = (PersonId, Option<Uuid>, Option<Instant>);

/// Tokens that were accepted recently.
#[derive(Clone, Debug)]
pub struct Accepted {
    seen: Cache<Token, PersonState>,
}

impl Default for Accepted {
    fn default() -> Self {
        Self {
            seen: Cache::of(REMEMBERED_TOKENS),
        }
    }
}

impl Accepted {
    /// Whether the reader was accepted while their person was in this state.
    #[must_use]
    pub fn in_state(&self, reader: &Reader, state: PersonState) -> bool {
        self.seen.get(&token(reader)) == Some(state)
    }

    /// Remembers that the reader was accepted; `state` was read before that was decided.
    pub fn note(&self, reader: &Reader, state: PersonState) {
        self.seen.insert(token(reader), state);
    }

    /// Drops everything that is remembered, for everybody.
    pub fn forget_all(&self) {
        self.seen.clear();
    }
}

const fn token(reader: &Reader) -> Token {
    (reader.person(), reader.session(), reader.issued())
}
