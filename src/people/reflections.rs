//! Reflections: questions that a person wants to be asked from time to time about what they record.
//!
//! A reflection names annotations and data types and when it is due. It is kept when it is deleted. Nothing
//! here acts on the schedule; clients read it.

mod schedule;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::catalog::documents::{Document, DocumentKind};
use crate::model::faults::Fault;
use crate::model::ids::PersonId;
use crate::model::strict_json;
use crate::model::time::Instant;

use super::condition::Condition;
use super::documents::{DocumentError, Documents, read as stored, written};
use super::text::{Line, Name, Prose};

pub use schedule::Schedule;

const KIND: DocumentKind = DocumentKind::Reflection;
/// The most bytes of a reflection.
const MOST_BYTES: usize = 64 * 1024;

/// A data type that a reflection is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReflectionDataType {
    pub name: Name,
    #[serde(default)]
    pub resource_id: Option<Line>,
}

/// The content of a reflection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReflectionContent {
    pub name: Name,
    /// When it is due.
    pub schedule: Schedule,
    /// The annotations that it asks for.
    #[serde(default)]
    pub annotations: Option<Vec<Line>>,
    /// The data types that it is about.
    #[serde(default)]
    pub data_types: Option<Vec<ReflectionDataType>>,
    #[serde(default)]
    pub description: Option<Prose>,
    #[serde(default)]
    pub parent_template_id: Option<Line>,
}

/// A reflection as answers show it, with every member.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Reflection {
    pub id: Uuid,
    #[schema(value_type = Uuid)]
    pub svc_userid: PersonId,
    pub name: Name,
    /// When it is due.
    pub schedule: Schedule,
    /// The annotations that it asks for.
    #[schema(required)]
    pub annotations: Option<Vec<Line>>,
    /// The data types that it is about.
    #[schema(required)]
    pub data_types: Option<Vec<ReflectionDataType>>,
    #[schema(required)]
    pub description: Option<Prose>,
    #[schema(required)]
    pub parent_template_id: Option<Line>,
    #[schema(format = DateTime)]
    pub created_at: String,
    #[schema(format = DateTime)]
    pub updated_at: String,
    /// When it was deleted, if it was.
    #[schema(format = DateTime, required)]
    pub deleted_at: Option<String>,
}

/// The reflections of all people.
#[derive(Clone)]
pub struct Reflections {
    documents: Documents,
    limit: u64,
}

impl ReflectionContent {
    /// Refuses a document from elsewhere, `text` that holds `body`, that the interface would not accept as a
    /// reflection.
    pub fn judge(text: &str, body: &Value) -> Result<(), Vec<Fault>> {
        if text.len() > MOST_BYTES {
            return Err(vec![too_long(text.len())]);
        }
        let misread = |error: serde_path_to_error::Error<_>| {
            Fault::misread(vec!["body".into()], error.path(), error.inner())
        };
        strict_json::read(body)
            .map(|_: Self| ())
            .map_err(|error| vec![misread(error)])
    }
}

impl Reflections {
    #[must_use]
    pub const fn new(documents: Documents, limit: u64) -> Self {
        Self { documents, limit }
    }

    pub async fn create(
        &self,
        person: PersonId,
        content: &ReflectionContent,
    ) -> Result<Reflection, DocumentError> {
        let text = text_of(Uuid::nil(), content)?;
        must_be_due(content, self.documents.now())?;
        let made = self
            .documents
            .create(KIND, person, None, text, self.limit)
            .await?;
        shown(&made)
    }

    /// All of a person's reflections, deleted ones too, oldest first.
    pub async fn all(&self, person: PersonId) -> Result<Vec<Reflection>, DocumentError> {
        let kept = self.documents.catalog().documents_of(person, KIND).await?;
        kept.iter().map(shown).collect()
    }

    /// A person's reflection, deleted or not.
    pub async fn one(&self, person: PersonId, id: Uuid) -> Result<Reflection, DocumentError> {
        shown(&self.documents.own(KIND, person, id).await?)
    }

    /// Replaces the content of a reflection. If it is deleted, it stays deleted; if its pattern is over, the
    /// rest of it may be changed.
    pub async fn replace(
        &self,
        person: PersonId,
        id: Uuid,
        content: &ReflectionContent,
        condition: &Condition,
    ) -> Result<Reflection, DocumentError> {
        let body = text_of(id, content)?;
        let now = self.documents.now();
        let replaced = |before: &Document| -> Result<Option<Document>, DocumentError> {
            let was = stored::<ReflectionContent>(before).ok();
            if was.is_none_or(|was| was.schedule.cron != content.schedule.cron) {
                must_be_due(content, now)?;
            }
            let after = || Document {
                body: body.clone(),
                ..before.clone()
            };
            Ok((before.body != body).then(after))
        };
        let changed = self.documents.change(KIND, person, id, condition, replaced);
        shown(&changed.await?)
    }

    /// Marks a reflection as deleted, if it is not yet.
    pub async fn delete(
        &self,
        person: PersonId,
        id: Uuid,
        condition: &Condition,
    ) -> Result<Reflection, DocumentError> {
        shown(&self.documents.delete(KIND, person, id, condition).await?)
    }
}

fn text_of(id: Uuid, content: &ReflectionContent) -> Result<String, DocumentError> {
    let text = written(KIND, id, content)?;
    if text.len() > MOST_BYTES {
        return Err(DocumentError::Invalid(vec![too_long(text.len())]));
    }
    Ok(text)
}

fn must_be_due(content: &ReflectionContent, now: Instant) -> Result<(), DocumentError> {
    content.schedule.must_be_due_from(now).map_err(|error| {
        let loc = ["body", "schedule", "cron"];
        DocumentError::Invalid(vec![Fault::new(loc, "value_error", error.to_string())])
    })
}

fn too_long(length: usize) -> Fault {
    let message = format!("a reflection may be {MOST_BYTES} bytes of JSON long, this would be {length}");
    Fault::new(["body"], "too_long", message)
}

fn shown(document: &Document) -> Result<Reflection, DocumentError> {
    let content: ReflectionContent = stored(document)?;
    Ok(Reflection {
        id: document.id,
        svc_userid: document.person,
        name: content.name,
        schedule: content.schedule,
        annotations: content.annotations,
        data_types: content.data_types,
        description: content.description,
        parent_template_id: content.parent_template_id,
        created_at: document.created_at.to_rfc3339(),
        updated_at: document.updated_at.to_rfc3339(),
        deleted_at: document.deleted_at.map(Instant::to_rfc3339),
    })
}
