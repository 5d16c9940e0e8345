//! An annotation as answers show it.

use serde::{Serialize, Serializer};
use utoipa::ToSchema;
use uuid::Uuid;

use super::variants::AnnotationRoot;
use crate::model::ids::PersonId;
use crate::model::registry::TypeId;
use crate::model::time::Instant;

/// An annotation as answers show it.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct AnnotationRow {
    pub id: Uuid,
    #[schema(value_type = Uuid)]
    pub svc_userid: PersonId,
    /// The source that its records name.
    #[schema(read_only)]
    pub svc_source_id: String,
    #[serde(flatten)]
    pub root: AnnotationRoot,
    #[serde(serialize_with = "moment")]
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Instant,
    #[serde(serialize_with = "moment")]
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Instant,
    /// When it was deleted, if it was.
    #[serde(serialize_with = "optional_moment")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub deleted_at: Option<Instant>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn moment<S: Serializer>(moment: &Instant, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(moment)
}

#[expect(clippy::ref_option, reason = "serde passes references")]
fn optional_moment<S: Serializer>(moment: &Option<Instant>, serializer: S) -> Result<S::Ok, S::Error> {
    match moment {
        Some(moment) => serializer.collect_str(moment),
        None => serializer.serialize_none(),
    }
}

impl AnnotationRow {
    #[must_use]
    pub const fn is_live(&self) -> bool {
        self.deleted_at.is_none()
    }

    /// The data type under which its records are read.
    #[must_use]
    pub fn type_id(&self) -> TypeId {
        TypeId::of_definition(self.root.annotation_type().base(), self.id)
    }
}
