//! API sessions: the sessions behind tokens, which their person can see, name and end.
//!
//! A session is a document of the catalogue, and a token names the one that it belongs to. Whether a session
//! is still open is checked with every request and never cached, so that a revoked one is refused everywhere
//! from the next request on. Knows nothing of tokens, keys or HTTP.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::catalog::documents::{Change, Changed, Document, DocumentKind};
use crate::catalog::{Catalog, CatalogError};
use crate::model::clock::Clock;
use crate::model::ids::{IdSource, PersonId};
use crate::model::meters::CacheMeters;
use crate::model::stored_json;
use crate::model::time::Instant;

use super::attempts::{ATTEMPTS, MayBeOvertaken, repeat_while_overtaken};
use super::condition::{Condition, Outdated};
use super::kept::Kept;
use super::limits::LimitReached;
use super::text::Name;

/// Why a session cannot be found or changed.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error("you have no session {0}")]
    Unknown(Uuid),
    #[error("session {0} was revoked, which is final")]
    Revoked(Uuid),
    #[error("{0}; sessions that have ended make room by themselves, and open ones can be revoked")]
    LimitReached(LimitReached),
    #[error("the session was changed by another request; read it again and retry")]
    Overtaken,
    #[error(transparent)]
    Outdated(#[from] Outdated),
    #[error("the stored session {id} cannot be read: {reason}")]
    Damaged { id: Uuid, reason: String },
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

impl MayBeOvertaken for SessionError {
    fn is_overtaken(&self) -> bool {
        matches!(self, Self::Overtaken)
    }
}

/// One session of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    pub id: Uuid,
    pub person: PersonId,
    pub name: Name,
    pub created_at: Instant,
    /// When its token expires.
    pub expires_at: Instant,
    /// When it was revoked.
    pub revoked_at: Option<Instant>,
    version: i64,
}

/// The part of a session that is stored as text.
#[derive(Debug, Serialize, Deserialize)]
struct StoredSession {
    name: Name,
    expires_at: Instant,
}

impl Session {
    /// Whether its token may be accepted at `now`.
    #[must_use]
    pub fn is_open(&self, now: Instant) -> bool {
        self.revoked_at.is_none() && now < self.expires_at
    }

    fn read(document: &Document) -> Result<Self, SessionError> {
        let stored: StoredSession =
            stored_json::read(&document.body).map_err(|error| SessionError::Damaged {
                id: document.id,
                reason: error.to_string(),
            })?;
        Ok(Self {
            id: document.id,
            person: document.person,
            name: stored.name,
            created_at: document.created_at,
            expires_at: stored.expires_at,
            revoked_at: document.deleted_at,
            version: document.version,
        })
    }

    fn written(&self, updated_at: Instant) -> Result<Document, SessionError> {
        let stored = StoredSession {
            name: self.name.clone(),
            expires_at: self.expires_at,
        };
        let body = serde_json::to_string(&stored).map_err(|error| SessionError::Damaged {
            id: self.id,
            reason: error.to_string(),
        })?;
        Ok(Document {
            kind: DocumentKind::Session,
            id: self.id,
            person: self.person,
            // Two programs may have the same name.
            name: None,
            body,
            version: self.version,
            created_at: self.created_at,
            updated_at,
            deleted_at: self.revoked_at,
        })
    }

    fn removed(&self) -> Change {
        Change::remove(DocumentKind::Session, self.id, self.person, self.version)
    }
}

/// The sessions of all people. Lives as long as the process.
pub struct Sessions {
    catalog: Catalog,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    /// The most sessions that one person may have.
    limit: u64,
    /// When those end that were not revoked. Only to count them: nobody is let in by what is kept.
    ends: Kept<Vec<Instant>>,
}

impl Sessions {
    #[must_use]
    pub fn new(catalog: Catalog, clock: Arc<dyn Clock>, ids: Arc<dyn IdSource>, limit: u64) -> Self {
        Self {
            catalog,
            clock,
            ids,
            limit,
            ends: Kept::of(DocumentKind::Session, 0),
        }
    }

    /// These sessions, of which the ends are kept in `memory` bytes.
    #[must_use]
    pub fn keeping_ends(mut self, memory: u64) -> Self {
        self.ends = Kept::of(DocumentKind::Session, memory);
        self
    }

    pub fn watched_by(&self, meters: &CacheMeters) {
        self.ends.watched_by("session_ends", meters);
    }

    /// Drops everything from memory.
    pub fn forget_all(&self) {
        self.ends.forget_all();
    }

    /// Opens a new session of `person` for `lifetime`. Ended sessions make room for it.
    pub async fn open(
        &self,
        person: PersonId,
        name: Name,
        lifetime: Duration,
    ) -> Result<Session, SessionError> {
        let now = self.clock.now();
        let session = Session {
            id: self.ids.next(),
            person,
            name,
            created_at: now,
            expires_at: now.after(lifetime),
            revoked_at: None,
            version: 1,
        };
        let mut leaving: Vec<Change> = Vec::new();
        for _ in 0..ATTEMPTS {
            let mut changes = std::mem::take(&mut leaving);
            let makes_room = !changes.is_empty();
            changes.push(Change::Insert {
                document: session.written(now)?,
                links: Vec::new(),
                limit: self.limit,
            });
            match self.catalog.change_documents(changes).await? {
                Changed::Done => return Ok(session),
                // Even without those that have ended there are too many: the limit is lower than it was.
                Changed::LimitReached { kind, limit } if makes_room => {
                    return Err(SessionError::LimitReached(LimitReached { kind, limit }));
                }
                Changed::LimitReached { kind, limit } => {
                    let all = self.all(person).await?;
                    let over = all.iter().filter(|session| !session.is_open(now));
                    leaving.extend(over.map(Session::removed));
                    if leaving.is_empty() {
                        return Err(SessionError::LimitReached(LimitReached { kind, limit }));
                    }
                }
                // Another request made room; it may be enough.
                Changed::Overtaken | Changed::NameTaken { .. } => {}
            }
        }
        Err(SessionError::Overtaken)
    }

    /// The open sessions of `person`, oldest first.
    pub async fn open_of(&self, person: PersonId) -> Result<Vec<Session>, SessionError> {
        let now = self.clock.now();
        let mut sessions = self.all(person).await?;
        sessions.retain(|session| session.is_open(now));
        Ok(sessions)
    }

    /// How many open sessions `person` has.
    pub async fn count_open(&self, person: PersonId) -> Result<u64, SessionError> {
        let now = self.clock.now();
        let ends = match self.ends.current(&self.catalog, person).await? {
            Some(ends) => ends,
            None => self.read_ends(person).await?,
        };
        Ok(ends.iter().filter(|end| now < **end).count() as u64)
    }

    /// When the sessions of `person` end that were not revoked.
    async fn read_ends(&self, person: PersonId) -> Result<Arc<Vec<Instant>>, SessionError> {
        let state = self.ends.state(&self.catalog, person).await;
        let mut ends = Vec::new();
        let mut damaged = None;
        let look = |document: Document| match Session::read(&document) {
            Err(error) => {
                damaged.get_or_insert(error);
            }
            Ok(session) if session.revoked_at.is_some() => {}
            Ok(session) => ends.push(session.expires_at),
        };
        let stamp = self
            .catalog
            .each_document(person, DocumentKind::Session, look)
            .await?;
        if let Some(error) = damaged {
            return Err(error);
        }
        let bytes = ends.capacity() * size_of::<Instant>();
        let ends = Arc::new(ends);
        self.ends.keep(person, (state, stamp), Arc::clone(&ends), bytes);
        Ok(ends)
    }

    /// One session of `person`, open or not. Of ended sessions only the latest are still known.
    pub async fn get(&self, person: PersonId, id: Uuid) -> Result<Session, SessionError> {
        let found = self.catalog.document(DocumentKind::Session, id).await?;
        let own = found.filter(|document| document.person == person);
        own.map_or_else(
            || Err(SessionError::Unknown(id)),
            |document| Session::read(&document),
        )
    }

    /// Whether a token of `person` that names the session may be accepted. The token itself states when it
    /// expires.
    pub async fn accepts(&self, person: PersonId, id: Uuid) -> Result<bool, SessionError> {
        let accepts = |document: &Document| {
            document.id == id && document.person == person && document.deleted_at.is_none()
        };
        if let Some(found) = self.catalog.document(DocumentKind::Session, id).await? {
            return Ok(accepts(&found));
        }
        // A lost session is damage, and no reason to tell its owner that the token is wrong.
        let all = self.catalog.documents_of(person, DocumentKind::Session).await?;
        Ok(all.iter().any(accepts))
    }

    pub async fn rename(
        &self,
        person: PersonId,
        id: Uuid,
        name: &Name,
        condition: &Condition,
    ) -> Result<Session, SessionError> {
        repeat_while_overtaken(|| async {
            let before = self.get(person, id).await?;
            condition.hold().await?;
            if before.revoked_at.is_some() {
                return Err(SessionError::Revoked(id));
            }
            let after = Session {
                name: name.clone(),
                ..before
            };
            self.replace(after).await
        })
        .await
    }

    /// Ends a session for good. Ending it again changes nothing.
    pub async fn revoke(
        &self,
        person: PersonId,
        id: Uuid,
        condition: &Condition,
    ) -> Result<Session, SessionError> {
        repeat_while_overtaken(|| async {
            let before = self.get(person, id).await?;
            condition.hold().await?;
            if before.revoked_at.is_some() {
                return Ok(before);
            }
            let after = Session {
                revoked_at: Some(self.clock.now()),
                ..before
            };
            self.replace(after).await
        })
        .await
    }

    async fn all(&self, person: PersonId) -> Result<Vec<Session>, SessionError> {
        let documents = self.catalog.documents_of(person, DocumentKind::Session).await?;
        documents.iter().map(Session::read).collect()
    }

    /// Replaces the stored version with `session`.
    async fn replace(&self, mut session: Session) -> Result<Session, SessionError> {
        let expected = session.version;
        session.version += 1;
        let change = Change::Update {
            document: session.written(self.clock.now())?,
            expected,
            links: None,
        };
        match self.catalog.change_documents(vec![change]).await? {
            Changed::Done => Ok(session),
            _ => Err(SessionError::Overtaken),
        }
    }
}
