//! Tags: names that a person gives to what they record. A name is a person's only once. Records carry
//! whatever text they were given as a tag, so a tag can go without taking anything from them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::catalog::documents::{Document, DocumentKind};
use crate::model::faults::Fault;
use crate::model::ids::PersonId;

use super::documents::{DocumentError, Documents};
use super::text::Name;

const KIND: DocumentKind = DocumentKind::Tag;
/// All that there is to a tag is its name.
const NOTHING_ELSE: &str = "{}";

/// A tag as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Tag {
    pub id: Uuid,
    pub name: String,
}

/// A tag as it is wished for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, ToSchema)]
pub struct NewTag {
    /// Kept in Unicode's composed form (NFC).
    pub name: Name,
}

/// Everybody's tags.
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

    /// Refused when the person has a tag of that name, or as many tags as they may have.
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

    /// The person's tag of this name, in whichever Unicode form it is asked for.
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

    /// Takes a tag away. What was recorded with it keeps it.
    pub async fn remove(&self, person: PersonId, id: Uuid) -> Result<(), DocumentError> {
        self.documents.remove(KIND, person, id).await
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
