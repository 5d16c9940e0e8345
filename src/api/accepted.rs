//! Remembers which tokens were accepted, and in which state of their person. As long as that state lasts,
//! neither the session nor a possible erasure has to be checked again, so one catalogue read answers both
//! whether the reader may enter and whether anything of theirs has changed.
//!
//! Nothing is remembered for long: a database that was put back under a service that runs may count up to the
//! same state again, with a session that was revoked since.
//!
//! Knows nothing of tokens except what identifies them.

use std::time::Duration;

use uuid::Uuid;

use crate::auth::tokens::Reader;
use crate::catalog::PersonState;
use crate::model::cache::ShortLived;
use crate::model::ids::PersonId;
use crate::model::time::Instant;

/// How many tokens are remembered; each takes a few hundred bytes.
const REMEMBERED_TOKENS: u64 = 20_000;
/// After this a token is checked again, whatever its person's state.
const REMEMBERED_FOR: Duration = Duration::from_mins(1);

/// The parts of a token that decide whether it is accepted.
type Token = (PersonId, Option<Uuid>, Option<Instant>);

/// Tokens that were accepted recently.
#[derive(Clone, Debug)]
pub struct AcceptedTokens {
    seen: ShortLived<Token, PersonState>,
}

impl Default for AcceptedTokens {
    fn default() -> Self {
        Self::lasting(REMEMBERED_FOR)
    }
}

impl AcceptedTokens {
    fn lasting(lasts: Duration) -> Self {
        Self {
            seen: ShortLived::of(REMEMBERED_TOKENS, lasts),
        }
    }

    /// Whether the reader was accepted a short while ago, while their person was in this state.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::catalog::Catalog;
    use crate::catalog::test_databases::address_in;
    use crate::model::clock::SystemClock;

    #[tokio::test]
    async fn a_token_is_checked_again_after_a_while_though_its_person_has_not_changed() {
        let directory = tempfile::tempdir().unwrap();
        let address = address_in(directory.path());
        let catalog = Catalog::open(&address, Arc::new(SystemClock)).await.unwrap();
        let person = PersonId(Uuid::from_u128(1));
        catalog.ensure_person(person, None).await.unwrap();
        assert!(catalog.swap_preferences(person, None, "{}").await.unwrap());
        let state = catalog.person_state(person).await.unwrap().expect("a state");
        let reader = Reader::for_tests(person);
        for (lasts, is_accepted) in [(REMEMBERED_FOR, true), (Duration::ZERO, false)] {
            let accepted = AcceptedTokens::lasting(lasts);
            accepted.note(&reader, state);
            assert_eq!(accepted.in_state(&reader, state), is_accepted);
        }
    }
}
