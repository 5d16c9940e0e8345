//! Writes documents of every kind: assigns their ids, times and versions, and reports the common errors.
//! Knows the catalogue; knows nothing of what a document says.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::catalog::documents::{Change, Changed, Document, DocumentKind, Link};
use crate::catalog::{Catalog, CatalogError};
use crate::model::clock::Clock;
use crate::model::faults::Fault;
use crate::model::ids::{IdSource, PersonId};
use crate::model::stored_json;
use crate::model::time::Instant;

use super::attempts::{MayBeOvertaken, repeat_while_overtaken};
use super::condition::{Condition, Outdated};
use super::limits::LimitReached;

/// Why a document cannot be stored, changed or found.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    #[error("what was sent is not valid")]
    Invalid(Vec<Fault>),
    #[error("{0} is not yours, or does not exist")]
    Unknown(String),
    #[error("a {} called {name:?} already exists", kind.as_str())]
    NameTaken { kind: DocumentKind, name: String },
    #[error(transparent)]
    LimitReached(#[from] LimitReached),
    #[error("it was changed by another request; read it again and retry")]
    Overtaken,
    #[error(transparent)]
    Outdated(#[from] Outdated),
    #[error("the stored {} {id} cannot be read: {reason}", kind.as_str())]
    Damaged {
        kind: DocumentKind,
        id: Uuid,
        reason: String,
    },
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

impl MayBeOvertaken for DocumentError {
    fn is_overtaken(&self) -> bool {
        matches!(self, Self::Overtaken)
    }
}

/// The dependencies for writing documents.
#[derive(Clone)]
pub struct Documents {
    catalog: Catalog,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
}

impl Documents {
    #[must_use]
    pub const fn new(catalog: Catalog, clock: Arc<dyn Clock>, ids: Arc<dyn IdSource>) -> Self {
        Self { catalog, clock, ids }
    }

    #[must_use]
    pub const fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The time of what is changed now.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Stores a new document of `person`.
    pub async fn create(
        &self,
        kind: DocumentKind,
        person: PersonId,
        name: Option<String>,
        body: String,
        limit: u64,
    ) -> Result<Document, DocumentError> {
        let now = self.clock.now();
        let document = Document {
            kind,
            id: self.ids.next(),
            person,
            name,
            body,
            version: 1,
            created_at: now,
            updated_at: now,
            deleted_at: None,
        };
        let insert = Change::Insert {
            document: document.clone(),
            links: Vec::new(),
            limit,
        };
        self.commit(insert).await?;
        Ok(document)
    }

    /// `person`'s document with this id, deleted or not.
    pub async fn own(
        &self,
        kind: DocumentKind,
        person: PersonId,
        id: Uuid,
    ) -> Result<Document, DocumentError> {
        let found = self.catalog.document(kind, id).await?;
        found
            .filter(|document| document.person == person)
            .ok_or_else(|| DocumentError::Unknown(format!("the {} {id}", kind.as_str())))
    }

    /// Changes `person`'s document to what `changed` makes of its current state; `None` leaves it as it is.
    /// If others change it at the same time, `condition` and `changed` see the state that it replaces.
    pub async fn change(
        &self,
        kind: DocumentKind,
        person: PersonId,
        id: Uuid,
        condition: &Condition,
        changed: impl Fn(&Document) -> Result<Option<Document>, DocumentError>,
    ) -> Result<Document, DocumentError> {
        repeat_while_overtaken(|| async {
            let before = self.own(kind, person, id).await?;
            condition.hold().await?;
            let Some(after) = changed(&before)? else {
                return Ok(before);
            };
            let after = Document {
                version: before.version + 1,
                updated_at: self.clock.now().max(before.updated_at),
                ..after
            };
            let update = Change::Update {
                document: after.clone(),
                expected: before.version,
                links: None,
            };
            self.commit(update).await?;
            Ok(after)
        })
        .await
    }

    /// Marks `person`'s document as deleted. It is kept; marking it again is not an error.
    pub async fn delete(
        &self,
        kind: DocumentKind,
        person: PersonId,
        id: Uuid,
        condition: &Condition,
    ) -> Result<Document, DocumentError> {
        let now = self.clock.now();
        self.change(kind, person, id, condition, |before| {
            let deleted = || Document {
                deleted_at: Some(now),
                ..before.clone()
            };
            Ok(before.deleted_at.is_none().then(deleted))
        })
        .await
    }

    /// Removes `person`'s document so that no trace of it remains.
    pub async fn remove(
        &self,
        kind: DocumentKind,
        person: PersonId,
        id: Uuid,
        condition: &Condition,
    ) -> Result<(), DocumentError> {
        repeat_while_overtaken(|| async {
            let before = self.own(kind, person, id).await?;
            condition.hold().await?;
            self.commit(before.removal()).await
        })
        .await
    }

    async fn commit(&self, change: Change) -> Result<(), DocumentError> {
        match self.catalog.change_documents(vec![change]).await? {
            Changed::Done => Ok(()),
            Changed::Overtaken => Err(DocumentError::Overtaken),
            Changed::NameTaken { kind, name } => Err(DocumentError::NameTaken { kind, name }),
            Changed::LimitReached { kind, limit } => Err(LimitReached { kind, limit }.into()),
        }
    }
}

/// The outcome of bringing something back from an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BroughtBack {
    New,
    /// It replaced an older state.
    Replaced,
    /// The same state is here already.
    Same,
    /// A later state is here, and stays.
    Outdated,
}

/// The change that brings back `document`, as it was elsewhere, where the current state is `here`. The later
/// of two states counts; their versions come from two places and are not compared.
#[must_use]
pub fn brought_back(
    document: Document,
    here: Option<&Document>,
    links: Vec<Link>,
) -> (BroughtBack, Option<Change>) {
    let Some(here) = here else {
        let insert = Change::Insert {
            document,
            links,
            // The operator brings it back, so there is no limit.
            limit: u64::MAX,
        };
        return (BroughtBack::New, Some(insert));
    };
    let is_same = Document {
        version: here.version,
        ..document.clone()
    } == *here;
    if is_same {
        return (BroughtBack::Same, None);
    }
    if here.updated_at > document.updated_at {
        return (BroughtBack::Outdated, None);
    }
    let update = Change::Update {
        document: Document {
            version: here.version + 1,
            ..document
        },
        expected: here.version,
        links: Some(links),
    };
    (BroughtBack::Replaced, Some(update))
}

impl Documents {
    /// Brings back a document to which no links lead.
    pub async fn bring_back(&self, document: Document) -> Result<BroughtBack, DocumentError> {
        repeat_while_overtaken(|| async {
            let here = self.catalog.document(document.kind, document.id).await?;
            let (outcome, change) = brought_back(document.clone(), here.as_ref(), Vec::new());
            let Some(change) = change else {
                return Ok(outcome);
            };
            self.commit(change).await?;
            Ok(outcome)
        })
        .await
    }
}

/// The content of a stored document.
pub(super) fn read<T: DeserializeOwned>(document: &Document) -> Result<T, DocumentError> {
    stored_json::read(&document.body).map_err(|error| DocumentError::Damaged {
        kind: document.kind,
        id: document.id,
        reason: error.to_string(),
    })
}

/// The text that is stored for `value`.
pub(super) fn written<T: Serialize>(
    kind: DocumentKind,
    id: Uuid,
    value: &T,
) -> Result<String, DocumentError> {
    serde_json::to_string(value).map_err(|error| DocumentError::Damaged {
        kind,
        id,
        reason: error.to_string(),
    })
}
