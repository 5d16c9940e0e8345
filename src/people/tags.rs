//! Tags: names that a person gives to what they record. A person has each name only once. Records store the
//! text of a tag, so removing a tag takes nothing from them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::catalog::documents::{Document, DocumentKind};
use crate::model::faults::Fault;
use crate::model::ids::PersonId;

use super::condition::Condition;
use super::documents::{DocumentError, Documents};
use super::text::Name;

const KIND: DocumentKind = DocumentKind::Tag;
/// The body of a tag, which has nothing but its name.
const NOTHING_ELSE: &str = "{}";

/// A tag as answers show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Tag {
    pub id: Uuid,
    pub name: String,
}

/// A tag to create.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, ToSchema)]
pub struct NewTag {
    /// Stored in Unicode's composed form (NFC).
    pub name: Name,
}

/// The tags of all people.
#[derive(Clone)]
pub struct Tags {
    documents: Documents,
    limit: u64,
}

impl Tags {
    #[must_use]
    pub const fn new(documents: Documents, limit: u64) -> Self {
        Self { documents, limit }
    }

    /// Creates a tag; refused if the person has one of that name, or as many tags as they may have.
    pub async fn create(&self, person: PersonId, wished: NewTag) -> Result<Tag, DocumentError> {
        let name = Some(wished.name.into());
        let made = self
            .documents
            .create(KIND, person, name, NOTHING_ELSE.to_owned(), self.limit)
            .await?;
        shown(made)
    }

    /// All of a person's tags, oldest first.
    pub async fn all(&self, person: PersonId) -> Result<Vec<Tag>, DocumentError> {
        let kept = self.documents.catalog().documents_of(person, KIND).await?;
        kept.into_iter().map(shown).collect()
    }

    pub async fn by_id(&self, person: PersonId, id: Uuid) -> Result<Tag, DocumentError> {
        shown(self.documents.own(KIND, person, id).await?)
    }

    /// The person's tag of this name, in whichever Unicode form it is given.
    pub async fn by_name(&self, person: PersonId, name: &str) -> Result<Tag, DocumentError> {
        let name = Name::try_from(name.to_owned()).map_err(|error| {
            DocumentError::Invalid(vec![Fault::new(
                ["path", "tag_name"],
                "value_error",
                error.to_string(),
            )])
        })?;
        let catalog = self.documents.catalog();
        let found = catalog.document_named(person, KIND, name.as_str()).await?;
        shown(found.ok_or_else(|| DocumentError::Unknown(format!("the tag {:?}", name.as_str())))?)
    }

    /// Removes a tag. Records that carry it keep it.
    pub async fn remove(
        &self,
        person: PersonId,
        id: Uuid,
        condition: &Condition,
    ) -> Result<(), DocumentError> {
        self.documents.remove(KIND, person, id, condition).await
    }
}

fn shown(document: Document) -> Result<Tag, DocumentError> {
    let Document { kind, id, name, .. } = document;
    let name = name.ok_or_else(|| DocumentError::Damaged {
        kind,
        id,
        reason: "it has no name".to_owned(),
    })?;
    Ok(Tag { id, name })
}
