//! Annotations: definitions of what a person wants to record, how it is measured and how it is shown. Records
//! name their definition in their sources, as `<prefix>.annotation.<uuid>`.
//!
//! A deleted annotation is kept and can be restored. Knows the catalogue; knows nothing of stored rows.

mod annotation_set;
mod catalogued;
pub mod colour;
pub mod display;
pub mod measurement;
mod read;
mod row;
pub mod schema;
pub mod shown;
#[cfg(test)]
mod tests;
pub mod variants;

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use uuid::Uuid;

use crate::catalog::documents::{Document, DocumentKind};
use crate::model::faults::Fault;
use crate::model::ids::PersonId;
use crate::model::meters::CacheMeters;
use crate::model::registry::{MetricKind, ValueLimits};

use super::condition::Condition;
use super::documents::{DocumentError, Documents, read as stored, written};
use super::kept::Kept;
use annotation_set::AnnotationSet;
use shown::ShownAnnotations;

pub use row::AnnotationRow;
pub use variants::{AnnotationRoot, AnnotationType};

const KIND: DocumentKind = DocumentKind::Annotation;
/// The annotations that can restrict the values of their records.
const RESTRICTED_KINDS: [AnnotationType; 2] = [AnnotationType::Numeric, AnnotationType::Scale];

/// Everybody's annotations.
#[derive(Clone)]
pub struct Annotations {
    documents: Documents,
    limit: u64,
    source_prefix: Arc<str>,
    /// Any node may change them, so what is kept is compared with the catalogue whenever it is used.
    kept: Kept<AnnotationSet>,
}

impl Annotations {
    /// `memory`: how many bytes of annotations to keep.
    #[must_use]
    pub fn new(documents: Documents, limit: u64, source_prefix: Arc<str>, memory: u64) -> Self {
        Self {
            documents,
            limit,
            source_prefix,
            kept: Kept::of(KIND, memory),
        }
    }

    /// Makes `meters` report how much is held.
    pub fn watched_by(&self, meters: &CacheMeters) {
        self.kept.watched_by("annotations", meters);
    }

    /// Drops everything that is held in memory, for all people.
    pub fn forget_all(&self) {
        self.kept.forget_all();
    }

    /// The prefix of the sources of all annotations, up to their ids.
    #[must_use]
    pub fn source_prefix(&self) -> String {
        format!("{}.annotation.", self.source_prefix)
    }

    /// The source that records of the annotation `id` name.
    #[must_use]
    pub fn source_id(&self, id: Uuid) -> String {
        format!("{}{id}", self.source_prefix())
    }

    pub async fn create(&self, person: PersonId, body: &Value) -> Result<AnnotationRow, DocumentError> {
        let root = AnnotationRoot::read(body).map_err(DocumentError::Invalid)?;
        if let Some(fault) = root.fault_of_amounts() {
            return Err(DocumentError::Invalid(vec![fault]));
        }
        let text = written(KIND, Uuid::nil(), &root)?;
        let made = self
            .documents
            .create(KIND, person, None, text, self.limit)
            .await?;
        self.row(&made)
    }

    /// All of a person's annotations, deleted ones too, oldest first.
    pub async fn all(&self, person: PersonId) -> Result<Arc<[AnnotationRow]>, DocumentError> {
        Ok(Arc::clone(&self.present(person).await?.rows))
    }

    /// A person's annotations as their records show them: `to_owner`, or to somebody else.
    pub async fn shown(&self, person: PersonId, to_owner: bool) -> Result<ShownAnnotations, DocumentError> {
        let annotations = self.present(person).await?;
        Ok(ShownAnnotations::new(annotations, self.source_prefix(), to_owner))
    }

    async fn present(&self, person: PersonId) -> Result<Arc<AnnotationSet>, DocumentError> {
        let catalog = self.documents.catalog();
        if let Some(annotations) = self.kept.current(catalog, person).await? {
            return Ok(annotations);
        }
        // State and stamp are read before the documents: any later change yields others.
        let state = self.kept.state(catalog, person).await;
        let stamp = catalog.document_stamp(person, KIND).await?;
        let annotations = Arc::new(self.read_all(person).await?);
        let made = Arc::clone(&annotations);
        self.kept.keep(person, (state, stamp), made, annotations.bytes);
        Ok(annotations)
    }

    async fn read_all(&self, person: PersonId) -> Result<AnnotationSet, DocumentError> {
        let documents = self.documents.catalog().documents_of(person, KIND).await?;
        let rows: Result<Vec<_>, _> = documents.iter().map(|document| self.row(document)).collect();
        Ok(AnnotationSet::of(&documents, rows?))
    }

    /// What restricts the values of the records of type `base`, by the ids of the person's annotations.
    /// Deleted annotations restrict nothing.
    pub async fn value_limits(
        &self,
        person: PersonId,
        base: &str,
    ) -> Result<HashMap<Uuid, ValueLimits>, DocumentError> {
        if !RESTRICTED_KINDS.iter().any(|kind| kind.base() == base) {
            return Ok(HashMap::new());
        }
        let annotations = self.all(person).await?;
        let live = annotations.iter().filter(|annotation| annotation.is_live());
        Ok(live
            .filter(|annotation| annotation.root.annotation_type().base() == base)
            .filter_map(|annotation| Some((annotation.id, annotation.root.value_limits()?)))
            .collect())
    }

    /// Whether the records of type `base` that belong to the annotation `id` are amounts or levels, if it is
    /// one of the person's and says so. Those of a deleted annotation are what they were.
    pub async fn metric_kind(
        &self,
        person: PersonId,
        base: &str,
        id: Uuid,
    ) -> Result<Option<MetricKind>, DocumentError> {
        let annotations = self.present(person).await?;
        let annotation = annotations.find(id).map(|annotation| &annotation.root);
        let annotation = annotation.filter(|root| root.annotation_type().base() == base);
        Ok(annotation.and_then(AnnotationRoot::metric_kind))
    }

    /// Who made the annotation with this id, if anybody did.
    pub async fn owner_of(&self, id: Uuid) -> Result<Option<PersonId>, DocumentError> {
        let document = self.documents.catalog().document(KIND, id).await?;
        Ok(document.map(|document| document.person))
    }

    /// A person's annotation, deleted or not.
    pub async fn one(&self, person: PersonId, id: Uuid) -> Result<AnnotationRow, DocumentError> {
        self.row(&self.documents.own(KIND, person, id).await?)
    }

    /// A person's annotation, deleted or not, if its records have the data type `base`.
    pub async fn of_type(
        &self,
        person: PersonId,
        base: &str,
        id: Uuid,
    ) -> Result<AnnotationRow, DocumentError> {
        let annotation = self.one(person, id).await?;
        if annotation.root.annotation_type().base() == base {
            Ok(annotation)
        } else {
            Err(DocumentError::Unknown(format!("{base}/{id}")))
        }
    }

    /// Replaces an annotation with what `body` describes. Its records remain its own, so it keeps its type,
    /// which `body` may omit, and levels do not become amounts; and if it is deleted, it stays deleted.
    pub async fn replace(
        &self,
        person: PersonId,
        id: Uuid,
        body: &Value,
        condition: &Condition,
    ) -> Result<AnnotationRow, DocumentError> {
        let replaced = |before: &Document| {
            let kept: AnnotationRoot = stored(before)?;
            let root = kept.read_over(body).map_err(DocumentError::Invalid)?;
            if root.annotation_type() != kept.annotation_type() {
                let message = format!(
                    "the annotation is of the type {}, and so are its records; make another one instead",
                    kept.annotation_type().name()
                );
                let fault = Fault::new(["body", "annotation_type"], "value_error", message);
                return Err(DocumentError::Invalid(vec![fault]));
            }
            let fault_of_amounts = root
                .fault_of_amounts()
                .filter(|_| kept.fault_of_amounts().is_none());
            let faults: Vec<Fault> = fault_of_amounts
                .into_iter()
                .chain(kept.fault_of_adding_up(&root))
                .collect();
            if !faults.is_empty() {
                return Err(DocumentError::Invalid(faults));
            }
            let after = Document {
                body: written(KIND, id, &root)?,
                ..before.clone()
            };
            Ok((after.body != before.body).then_some(after))
        };
        let changed = self.documents.change(KIND, person, id, condition, replaced);
        self.row(&changed.await?)
    }

    /// Marks an annotation as deleted, if it is not yet.
    pub async fn delete(
        &self,
        person: PersonId,
        id: Uuid,
        condition: &Condition,
    ) -> Result<AnnotationRow, DocumentError> {
        self.row(&self.documents.delete(KIND, person, id, condition).await?)
    }

    /// Restores a deleted annotation. An active one stays as it is.
    pub async fn cancel_deletion(&self, person: PersonId, id: Uuid) -> Result<AnnotationRow, DocumentError> {
        let restored = |before: &Document| {
            let active = || Document {
                deleted_at: None,
                ..before.clone()
            };
            Ok(before.deleted_at.is_some().then(active))
        };
        let changed = self
            .documents
            .change(KIND, person, id, &Condition::NONE, restored);
        self.row(&changed.await?)
    }

    fn row(&self, document: &Document) -> Result<AnnotationRow, DocumentError> {
        Ok(AnnotationRow {
            id: document.id,
            svc_userid: document.person,
            svc_source_id: self.source_id(document.id),
            root: stored(document)?,
            created_at: document.created_at,
            updated_at: document.updated_at,
            deleted_at: document.deleted_at,
        })
    }
}
