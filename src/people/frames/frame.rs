//! One frame as its document stores it, and the errors about frames.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::catalog::CatalogError;
use crate::catalog::documents::{Change, Document, DocumentKind, Link};
use crate::model::ids::PersonId;
use crate::model::stored_json;
use crate::model::time::Instant;
use crate::people::limits::LimitReached;
use crate::store::StoreError;
use crate::store::contents::{Content, Part};

/// Links to all frames.
pub(super) const KEPT_LINK: &str = "kept_frame";
pub(super) const EVERY: Uuid = Uuid::nil();

/// Why an operation on a frame failed.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    #[error("{0} is not one of your frames")]
    Unknown(Uuid),
    #[error(transparent)]
    LimitReached(#[from] LimitReached),
    #[error(
        "the answer has more than {0} bytes; ask for less, or for fewer columns (this is the operator's \
         setting ALMANAC_LIMIT_FRAME_BYTES)"
    )]
    TooLarge(u64),
    #[error("the stored frame {id} cannot be read: {reason}")]
    Damaged { id: Uuid, reason: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<CatalogError> for FrameError {
    fn from(error: CatalogError) -> Self {
        Self::Store(error.into())
    }
}

/// The description of a frame besides its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// The question that it answers.
    pub question: String,
    /// The name of its output method.
    pub format: String,
    /// The grounds on which it may be read.
    pub grounds: String,
    /// The latest time at which it may be read. The operator's lifetime may end earlier.
    pub until: Instant,
}

/// A stored answer.
#[derive(Clone, Debug)]
pub struct Frame {
    pub id: Uuid,
    /// The person who asked.
    pub person: PersonId,
    /// The question that it answers.
    pub question: String,
    /// The name of its output method.
    pub format: String,
    /// The grounds on which it may be read.
    pub grounds: String,
    /// The digest of all its bytes, in hexadecimal digits.
    pub sha256: String,
    pub created_at: Instant,
    /// When it ceases to exist.
    pub expires_at: Instant,
    /// The parts in the order of their bytes.
    parts: Vec<Part>,
    version: i64,
}

/// What its document stores of it besides the document's own columns.
#[derive(Debug, Serialize, Deserialize)]
struct Body {
    question: String,
    format: String,
    grounds: String,
    parts: Vec<Part>,
    sha256: String,
    expires_at: Instant,
}

impl Frame {
    /// A new frame, all of whose parts are in `content`.
    pub(super) fn made(
        content: &Content,
        sha256: String,
        described: Described,
        now: Instant,
        expires_at: Instant,
    ) -> Self {
        Self {
            id: content.id,
            person: content.person,
            question: described.question,
            format: described.format,
            grounds: described.grounds,
            sha256,
            created_at: now,
            expires_at,
            parts: content.parts.clone(),
            version: 1,
        }
    }

    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }

    /// The content with its bytes.
    #[must_use]
    pub fn content(&self) -> Content {
        let sha256 = Some(self.sha256.clone());
        Content::of_frame(self.id, self.person, self.parts.clone(), sha256)
    }

    /// Whether its time is over.
    #[must_use]
    pub fn is_over(&self, now: Instant) -> bool {
        self.expires_at <= now
    }

    /// The change that inserts a new frame.
    pub(super) fn insertion(&self, limit: u64) -> Result<Change, FrameError> {
        let body = Body {
            question: self.question.clone(),
            format: self.format.clone(),
            grounds: self.grounds.clone(),
            parts: self.parts.clone(),
            sha256: self.sha256.clone(),
            expires_at: self.expires_at,
        };
        let document = Document {
            kind: DocumentKind::Frame,
            id: self.id,
            person: self.person,
            name: None,
            body: serde_json::to_string(&body).map_err(|error| damaged(self.id, &error))?,
            version: self.version,
            created_at: self.created_at,
            updated_at: self.created_at,
            deleted_at: None,
        };
        let links = vec![Link {
            kind: KEPT_LINK,
            target: EVERY,
        }];
        Ok(Change::Insert {
            document,
            links,
            limit,
        })
    }

    /// The change that removes the frame.
    pub(super) const fn removal(&self) -> Change {
        Change::remove(DocumentKind::Frame, self.id, self.person, self.version)
    }

    pub(super) fn of(document: &Document) -> Result<Self, FrameError> {
        let body: Body = stored_json::read(&document.body).map_err(|error| damaged(document.id, &error))?;
        Ok(Self {
            id: document.id,
            person: document.person,
            question: body.question,
            format: body.format,
            grounds: body.grounds,
            sha256: body.sha256,
            created_at: document.created_at,
            expires_at: body.expires_at,
            parts: body.parts,
            version: document.version,
        })
    }
}

fn damaged(id: Uuid, reason: &dyn std::fmt::Display) -> FrameError {
    FrameError::Damaged {
        id,
        reason: reason.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_frame_is_stored_as_microseconds() {
        let now = Instant::from_micros(1_700_000_000_000_000);
        let document = Document {
            kind: DocumentKind::Frame,
            id: Uuid::from_u128(1),
            person: PersonId(Uuid::from_u128(2)),
            name: None,
            body: concat!(
                r#"{"question":"/data/v0/metrics_catalog","format":"csv","grounds":"{}","parts":[],"#,
                r#""sha256":"00","expires_at":1700003600000000}"#,
            )
            .to_owned(),
            version: 1,
            created_at: now,
            updated_at: now,
            deleted_at: None,
        };
        let frame = Frame::of(&document).unwrap();
        assert_eq!(frame.expires_at, Instant::from_micros(1_700_003_600_000_000));
        let Change::Insert { document: again, .. } = frame.insertion(1).unwrap() else {
            panic!("a new frame is inserted");
        };
        assert_eq!(again, document);
    }
}
