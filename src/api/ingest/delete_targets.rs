//! Where the records are that tombstones name.
//!
//! Knows a person's types and annotations; knows nothing of the tombstones' form, nor whether the records
//! exist.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use uuid::Uuid;

use crate::api::app::App;
use crate::api::problem::ApiError;
use crate::auth::reach::Beyond;
use crate::auth::tokens::Reader;
use crate::catalog::CatalogError;
use crate::ingest::tombstone::Target;
use crate::ingest::upload::PartitionChanges;
use crate::model::ids::PersonId;
use crate::model::registry::{Base, DataType, Registry, TypeId};
use crate::people::annotations::AnnotationRow;
use crate::people::documents::DocumentError;
use crate::people::types::{OwnTypes, TypesError, only_called};

/// The most definitions that are looked up one by one. Where more are named, all are read.
const FEW: usize = 16;

/// Finds the records that tombstones name.
pub(super) struct Deleter {
    registry: Arc<Registry>,
    /// All of the person's own types, where they are needed.
    all_own: Arc<OwnTypes>,
    /// Own types that were looked up by their ids.
    own: HashMap<TypeId, Arc<DataType>>,
    /// The annotations, deleted ones too, as types of their own, each with the source that names it: all, or
    /// those that were looked up.
    annotations: HashMap<TypeId, Arc<str>>,
}

impl Deleter {
    /// For tombstones that name any types.
    pub(super) async fn of_all(app: &App, person: PersonId) -> Result<Self, ApiError> {
        let mut deleter = Self::of_built_in(app);
        deleter.all_own = app.types.all_own(person).await?;
        deleter.annotations = all_annotations(app, person).await?;
        Ok(deleter)
    }

    /// For tombstones that name the types in `names`. Reads what these need: nothing for a built-in type, and
    /// all own types for a base or the name of one.
    pub(super) async fn of(app: &App, person: PersonId, names: &BTreeSet<String>) -> Result<Self, ApiError> {
        let mut deleter = Self::of_built_in(app);
        let (mut own, mut annotations) = (Vec::new(), Vec::new());
        let mut needs_all = false;
        for name in names {
            if let Some(known) = deleter.registry.get(name) {
                needs_all |= Base::named(known.id.as_str()).is_some();
            } else if let Some((id, definition)) = defined(name) {
                let of_kind = if Base::named(id.base()).is_some() {
                    &mut own
                } else {
                    &mut annotations
                };
                of_kind.push((id, definition));
            } else {
                needs_all = true;
            }
        }
        if needs_all {
            deleter.all_own = app.types.all_own(person).await?;
        } else {
            deleter.look_up_own(app, person, own).await?;
        }
        deleter.look_up_annotations(app, person, annotations).await?;
        Ok(deleter)
    }

    fn of_built_in(app: &App) -> Self {
        Self {
            registry: Arc::clone(app.types.registry()),
            all_own: Arc::default(),
            own: HashMap::new(),
            annotations: HashMap::new(),
        }
    }

    /// Looks up own types by their ids; all, where they are many or one is not found: that one may be lost,
    /// and the tombstone must not be lost with it. Reading all verifies that.
    async fn look_up_own(
        &mut self,
        app: &App,
        person: PersonId,
        ids: Vec<(TypeId, Uuid)>,
    ) -> Result<(), ApiError> {
        if ids.len() <= FEW && self.find_own(app, person, &ids).await? {
            return Ok(());
        }
        match app.types.all_own(person).await {
            Ok(all) => {
                self.all_own = all;
                Ok(())
            }
            Err(error) if is_damage(&error) => self.find_stored(app, person, ids, error).await,
            Err(error) => Err(error.into()),
        }
    }

    /// Finds own types by their ids; `false` if one is not there.
    async fn find_own(
        &mut self,
        app: &App,
        person: PersonId,
        ids: &[(TypeId, Uuid)],
    ) -> Result<bool, ApiError> {
        for (id, definition) in ids {
            match app.types.own(person, *definition).await? {
                Some(found) if found.data_type.id == *id => {
                    self.own.insert(id.clone(), found.data_type);
                }
                Some(_) => {}
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Finds those own types of which records are stored, where not all types can be read. One of these that
    /// is not there is lost, which is an error. Of the others there is nothing to delete, whether or not they
    /// ever were there.
    async fn find_stored(
        &mut self,
        app: &App,
        person: PersonId,
        mut ids: Vec<(TypeId, Uuid)>,
        damage: TypesError,
    ) -> Result<(), ApiError> {
        let partitions = app.catalog.partitions_of(person).await?;
        let stored: HashSet<&TypeId> = partitions.iter().map(|partition| &partition.data_type).collect();
        ids.retain(|(id, _)| stored.contains(id));
        if self.find_own(app, person, &ids).await? {
            return Ok(());
        }
        Err(damage.into())
    }

    /// Looks up annotations by their ids; all, where they are many or one is not found, as with own types.
    async fn look_up_annotations(
        &mut self,
        app: &App,
        person: PersonId,
        ids: Vec<(TypeId, Uuid)>,
    ) -> Result<(), ApiError> {
        if ids.len() <= FEW && self.find_annotations(app, person, &ids).await? {
            return Ok(());
        }
        match app.annotations.all(person).await {
            Ok(all) => self.annotations = all.iter().map(named).collect(),
            // Their records name them, and are found whether or not they are there themselves.
            Err(error) if is_damaged(&error) => {
                let is_base = |id: &TypeId| self.registry.get(id.base()).is_some_and(|base| base.is_base);
                let source = |definition| -> Arc<str> { app.annotations.source_id(definition).into() };
                let meant = ids.into_iter().filter(|(id, _)| is_base(id));
                self.annotations = meant.map(|(id, definition)| (id, source(definition))).collect();
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Finds annotations by their ids; `false` if one is not there, or is damaged.
    async fn find_annotations(
        &mut self,
        app: &App,
        person: PersonId,
        ids: &[(TypeId, Uuid)],
    ) -> Result<bool, ApiError> {
        for (_, definition) in ids {
            match app.annotations.one(person, *definition).await {
                Ok(found) => self.annotations.extend([named(&found)]),
                Err(DocumentError::Unknown(_)) => return Ok(false),
                Err(error) if is_damaged(&error) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    /// Where a tombstone for `name` deletes: nowhere, if it is unclear which type is meant. The first such
    /// case is noted; then nothing is done of what the body asks for.
    pub(super) fn targets_or_note(&self, name: &str, unclear: &mut Option<TypesError>) -> Vec<Target> {
        self.targets_of(name).unwrap_or_else(|error| {
            unclear.get_or_insert(error);
            Vec::new()
        })
    }

    /// Where a tombstone for `name` deletes. A name that means nothing deletes nothing; one that several
    /// types have is an error, since its sender means one of them.
    fn targets_of(&self, name: &str) -> Result<Vec<Target>, TypesError> {
        let target = self.target(name)?;
        Ok(target.map_or_else(Vec::new, |target| self.targets(&target)))
    }

    fn targets(&self, target: &TypeId) -> Vec<Target> {
        let base = self.registry.get(target.base()).map(|base| all_of(base));
        if target.definition().is_none() {
            let all = self.all_own.iter().map(|own| &own.data_type);
            let upon_it = all.filter(|data_type| data_type.id.base() == target.base());
            base.into_iter()
                .chain(upon_it.map(|data_type| all_of(data_type)))
                .collect()
        } else if let Some(source) = self.annotations.get(target) {
            // Records of annotations are stored under the base, beside those of other annotations.
            let of_one = |base: Target| Target {
                definition: Some(Arc::clone(source)),
                ..base
            };
            base.into_iter().map(of_one).collect()
        } else {
            let all = self.all_own.iter().map(|own| &own.data_type);
            let mut known = all.chain(self.own.get(target));
            let own = known.find(|data_type| data_type.id == *target);
            own.map(|data_type| all_of(data_type)).into_iter().collect()
        }
    }

    /// The type that `name` means: by its id, or, if it is one of the person's own, by its name.
    fn target(&self, name: &str) -> Result<Option<TypeId>, TypesError> {
        if let Some(data_type) = self.registry.get(name) {
            return Ok(Some(data_type.id.clone()));
        }
        if let Some((id, _)) = defined(name) {
            return Ok(Some(id));
        }
        Ok(only_called(&self.all_own, name)?.cloned())
    }
}

/// Refuses changes of types beyond the reader's reach. What tombstones delete from is known only once they
/// are resolved.
pub(super) fn refuse_beyond_reach(reader: &Reader, changes: &[PartitionChanges]) -> Result<(), ApiError> {
    let reach = reader.reach();
    if changes.iter().all(|change| reach.covers(&change.data_type)) {
        Ok(())
    } else {
        Err(ApiError::forbidden(Beyond::Types.to_string()))
    }
}

/// The id of a type that somebody defined, with the definition in it, if `name` is one.
fn defined(name: &str) -> Option<(TypeId, Uuid)> {
    let id = TypeId::parse(name)?;
    let definition = id.definition()?;
    Some((id, definition))
}

async fn all_annotations(app: &App, person: PersonId) -> Result<HashMap<TypeId, Arc<str>>, ApiError> {
    let annotations = app.annotations.all(person).await?;
    Ok(annotations.iter().map(named).collect())
}

/// An annotation as a type, with the source that names it.
fn named(annotation: &AnnotationRow) -> (TypeId, Arc<str>) {
    (annotation.type_id(), Arc::from(annotation.svc_source_id.as_str()))
}

/// Whether a definition could not be read because one is damaged or lost.
const fn is_damage(error: &TypesError) -> bool {
    matches!(
        error,
        TypesError::Damaged { .. } | TypesError::Catalog(CatalogError::Corrupt { .. })
    )
}

/// The same of annotations.
const fn is_damaged(error: &DocumentError) -> bool {
    matches!(
        error,
        DocumentError::Damaged { .. } | DocumentError::Catalog(CatalogError::Corrupt { .. })
    )
}

/// All records that are stored under a type.
fn all_of(data_type: &DataType) -> Target {
    Target {
        data_type: data_type.id.clone(),
        layout: Arc::clone(&data_type.layout),
        definition: None,
    }
}
