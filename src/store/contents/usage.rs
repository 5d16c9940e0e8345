//! How much room a person's contents take: kept beside them and changed in the same transactions, so that
//! nobody has to count them and no limit can be passed by concurrent requests.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::content::Content;
use super::handle::Contents;
use crate::catalog::documents::{Change, Document, DocumentKind};
use crate::model::ids::PersonId;
use crate::model::stored_json;
use crate::model::time::Instant;
use crate::store::StoreError;

/// The room that was taken when this was read. A content takes its announced size from the first moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    person: PersonId,
    bytes: u64,
    created_at: Instant,
    version: i64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Body {
    bytes: u64,
}

impl Usage {
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    #[must_use]
    pub const fn with(mut self, bytes: u64) -> Self {
        self.bytes = self.bytes.saturating_add(bytes);
        self
    }

    #[must_use]
    pub const fn without(mut self, bytes: u64) -> Self {
        self.bytes = self.bytes.saturating_sub(bytes);
        self
    }

    /// The change that accompanies one of `content`.
    pub fn change(self, content: &Content) -> Result<Change, StoreError> {
        let body = serde_json::to_string(&Body { bytes: self.bytes }).map_err(StoreError::rows)?;
        let now = content.created_at;
        let document = Document {
            kind: DocumentKind::FileUsage,
            id: id_of(self.person),
            person: self.person,
            name: None,
            body,
            version: self.version + 1,
            created_at: if self.version == 0 { now } else { self.created_at },
            updated_at: now.max(self.created_at),
            deleted_at: None,
        };
        Ok(if self.version == 0 {
            Change::Insert {
                document,
                links: Vec::new(),
                // A second one is refused because its id is taken.
                limit: u64::MAX,
            }
        } else {
            Change::Update {
                document,
                expected: self.version,
                links: None,
            }
        })
    }
}

impl Contents {
    pub async fn usage(&self, person: PersonId) -> Result<Usage, StoreError> {
        let kind = DocumentKind::FileUsage;
        let Some(document) = self.catalog.document(kind, id_of(person)).await? else {
            return Ok(Usage {
                person,
                bytes: 0,
                created_at: Instant::MIN,
                version: 0,
            });
        };
        let body: Body = stored_json::read(&document.body)
            .map_err(|error| StoreError::corrupt(format!("file usage of {person}: {error}")))?;
        Ok(Usage {
            person,
            bytes: body.bytes,
            created_at: document.created_at,
            version: document.version,
        })
    }
}

/// Each person has one.
const fn id_of(person: PersonId) -> Uuid {
    person.0
}
