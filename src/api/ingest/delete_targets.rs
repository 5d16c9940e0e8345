//! Where the records are that tombstones name.
//!
//! Knows a person's types and annotations; knows nothing of the tombstones' form, nor whether the records
//! exist.

use std::collections::HashMap;
use std::sync::Arc;

use crate::api::app::App;
use crate::api::problem::ApiError;
use crate::ingest::tombstone::Target;
use crate::model::ids::PersonId;
use crate::model::registry::{DataType, Registry, TypeId};
use crate::model::text::composed;
use crate::people::annotations::AnnotationRow;
use crate::people::types::OwnType;

/// Finds the records that tombstones name.
pub(super) struct Deleter {
    registry: Arc<Registry>,
    own: Vec<OwnType>,
    /// The annotations, deleted ones too, as types of their own, each with the source that names it.
    annotations: HashMap<TypeId, Arc<str>>,
}

impl Deleter {
    pub(super) async fn of(app: &App, person: PersonId) -> Result<Self, ApiError> {
        let annotations = app.annotations.all(person).await?;
        let named = |row: &AnnotationRow| (row.type_id(), Arc::from(row.svc_source_id.as_str()));
        Ok(Self {
            registry: Arc::clone(app.types.registry()),
            own: app.types.all_own(person).await?,
            annotations: annotations.iter().map(named).collect(),
        })
    }

    /// Where a tombstone for `name` deletes. A name that means nothing deletes nothing.
    pub(super) fn targets_of(&self, name: &str) -> Vec<Target> {
        let Some(target) = self.target(name) else {
            return Vec::new();
        };
        let own = |is_meant: &dyn Fn(&TypeId) -> bool| {
            let meant = self.own.iter().filter(|own| is_meant(&own.data_type.id));
            meant.map(|own| all_of(&own.data_type)).collect::<Vec<_>>()
        };
        let base = self.registry.get(target.base()).map(|base| all_of(base));
        if target.definition().is_none() {
            let all = own(&|id| id.base() == target.base());
            base.into_iter().chain(all).collect()
        } else if let Some(source) = self.annotations.get(&target) {
            // Records of annotations are stored under the base, beside those of other annotations.
            let of_one = |base: Target| Target {
                definition: Some(Arc::clone(source)),
                ..base
            };
            base.into_iter().map(of_one).collect()
        } else {
            own(&|id| *id == target)
        }
    }

    /// The type that `name` means: by its id, or, if it is one of the person's own, by its name.
    fn target(&self, name: &str) -> Option<TypeId> {
        if let Some(data_type) = self.registry.get(name) {
            return Some(data_type.id.clone());
        }
        if let Some(id) = TypeId::parse(name).filter(|id| id.definition().is_some()) {
            return Some(id);
        }
        let called = composed(name);
        let is_called =
            |own: &&OwnType| !own.definition.deprecated && composed(&own.data_type.name) == called;
        let mut own = self.own.iter().filter(is_called);
        let first = own.next()?;
        own.next().is_none().then(|| first.data_type.id.clone())
    }
}

/// All records that are stored under a type.
fn all_of(data_type: &DataType) -> Target {
    Target {
        data_type: data_type.id.clone(),
        layout: Arc::clone(&data_type.layout),
        definition: None,
    }
}
