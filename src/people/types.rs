//! Finds built-in types and a person's own by name, as if they were one list.
//!
//! Own types are in the catalogue and any node may change them, so the catalogue is asked each time they are
//! named: for the one, or whether all are still those that were read before. What is made from one version of
//! a definition is cached. Lives as long as the process. Knows definitions and layouts; knows nothing of the
//! rows stored under them.

mod changing;
mod own;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use uuid::Uuid;

use crate::catalog::records::StoredDefinition;
use crate::catalog::{Catalog, CatalogError, DefinitionsStamp, KindState};
use crate::model::cache::Cache;
use crate::model::clock::Clock;
use crate::model::excerpt::beginning;
use crate::model::faults::Fault;
use crate::model::ids::{IdSource, PersonId};
use crate::model::meters::CacheMeters;
use crate::model::nearest::{hint, nearest};
use crate::model::registry::{Base, DataType, Definition, LayoutError, Registry, TypeId};
use crate::model::stored_json;

use super::attempts::MayBeOvertaken;
use super::condition::Outdated;
use super::limits::counted;

pub use own::{OwnType, OwnTypes};

/// How many bytes of types, and of lists of types, are kept where nobody says how many.
const KEPT_BYTES: u64 = 4 << 20;
/// The size of a type with many properties.
const LARGE_BYTES: u64 = 256 << 10;

/// Why a type cannot be found or changed.
#[derive(Debug, thiserror::Error)]
pub enum TypesError {
    #[error("{} is not a data type{}", beginning(.name), hint(.nearest.as_deref()))]
    Unknown {
        name: String,
        /// The most similar known name.
        nearest: Option<String>,
    },
    #[error(
        "\"{}\" is the name of {}; name the one that is meant",
        beginning(.name),
        .candidates.join(" and of ")
    )]
    Ambiguous {
        name: String,
        /// The ids of all types of that name.
        candidates: Vec<String>,
    },
    #[error("the type was changed by another request; read it again and retry")]
    Overtaken,
    #[error(transparent)]
    Outdated(#[from] Outdated),
    #[error(
        "a person may have {} of their own, archived ones included; this is the operator's setting \
         ALMANAC_LIMIT_DEFINITIONS",
        counted(*.0, "data type")
    )]
    LimitReached(u64),
    #[error("the definition is not valid")]
    Invalid(Vec<Fault>),
    #[error("the stored definition {id} cannot be read: {reason}")]
    Damaged { id: Uuid, reason: String },
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

impl MayBeOvertaken for TypesError {
    fn is_overtaken(&self) -> bool {
        matches!(self, Self::Overtaken)
    }
}

/// All types that a person can name.
pub struct Types {
    registry: Arc<Registry>,
    catalog: Catalog,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    /// What was made of the last definition that was seen of each type.
    made: Cache<Uuid, Arc<OwnType>>,
    lists: Cache<PersonId, CachedList>,
    /// The most own types that one person may have.
    limit: u64,
}

/// All own types of a person.
#[derive(Clone)]
struct CachedList {
    /// As long as the state is this, nothing of the person's has changed;
    state: KindState,
    /// and as long as the stamp is this, none of their definitions has.
    stamp: DefinitionsStamp,
    types: Arc<OwnTypes>,
}

/// The type that a name resolves to.
#[derive(Clone, Debug)]
pub struct ResolvedType {
    pub data_type: Arc<DataType>,
    /// For `MomentAnnotation/<uuid>`, the definition: only records of the base that came from it are meant.
    pub annotation: Option<Uuid>,
}

impl ResolvedType {
    /// The id of what was named: of the annotation, if it is one.
    #[must_use]
    pub fn id(&self) -> TypeId {
        let base = &self.data_type.id;
        self.annotation
            .map_or_else(|| base.clone(), |id| TypeId::of_definition(base.as_str(), id))
    }
}

impl OwnType {
    /// The definition as its owner wrote it.
    pub fn said(&self) -> Result<Definition, TypesError> {
        definition_of(&self.definition)
    }
}

impl Types {
    #[must_use]
    pub fn new(
        registry: Arc<Registry>,
        catalog: Catalog,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
        limit: u64,
    ) -> Self {
        Self {
            registry,
            catalog,
            clock,
            ids,
            made: kept_types(KEPT_BYTES),
            lists: kept_lists(KEPT_BYTES),
            limit,
        }
    }

    /// Keeps this many bytes of types, and of lists of all types that a person has.
    #[must_use]
    pub fn keeping(mut self, types: u64, lists: u64) -> Self {
        self.made = kept_types(types);
        self.lists = kept_lists(lists);
        self
    }

    /// Makes `meters` show how much is held.
    pub fn watched_by(&self, meters: &CacheMeters) {
        meters.watch("types", &self.made);
        meters.watch("type_lists", &self.lists);
    }

    #[must_use]
    pub const fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Empties the caches, whoever the types belong to.
    pub fn forget_all(&self) {
        self.made.clear();
        self.lists.clear();
    }

    /// The type called `name` for `owner`: built in, or `owner`'s own.
    pub async fn find(&self, owner: PersonId, name: &str) -> Result<ResolvedType, TypesError> {
        let found = self.look_up(owner, name).await?;
        found.ok_or_else(|| TypesError::Unknown {
            name: name.to_owned(),
            nearest: self.nearest(name),
        })
    }

    /// The type called `name` for `owner`, or `None`. For callers who do not tell which type may be meant,
    /// since that takes a comparison with every built-in type.
    pub async fn look_up(&self, owner: PersonId, name: &str) -> Result<Option<ResolvedType>, TypesError> {
        if let Some(data_type) = self.registry.get(name) {
            return Ok(Some(ResolvedType {
                data_type: Arc::clone(data_type),
                annotation: None,
            }));
        }
        let id = TypeId::parse(name);
        let Some((id, definition)) = id.and_then(|id| id.definition().map(|definition| (id, definition)))
        else {
            return Ok(None);
        };
        let Some(base) = self.registry.get(id.base()).filter(|base| base.is_base) else {
            return Ok(None);
        };
        if Base::named(base.id.as_str()).is_none() {
            return Ok(Some(ResolvedType {
                data_type: Arc::clone(base),
                annotation: Some(definition),
            }));
        }
        let own = self.own(owner, definition).await?;
        let own = own.filter(|own| own.definition.base == base.id.as_str());
        Ok(own.map(|own| ResolvedType {
            data_type: own.data_type,
            annotation: None,
        }))
    }

    /// The id that `name` stands for: itself if it is an id, otherwise that of the one type of `owner` with
    /// this name. A name never hides a built-in type, archived types have no names, and an unknown text is
    /// returned unchanged, unless it resembles such a name.
    pub async fn resolve_name(&self, owner: PersonId, name: &str) -> Result<String, TypesError> {
        if self.stands_for_itself(name) {
            return Ok(name.to_owned());
        }
        let own = self.all_own(owner).await?;
        if let Some(id) = only_called(&own, name)? {
            return Ok(id.to_string());
        }
        let known = own.live().map(|own| own.data_type.name.as_str());
        match nearest(name, known) {
            Some(near) if self.nearest(name).is_none() => Err(TypesError::Unknown {
                name: name.to_owned(),
                nearest: Some(near.to_owned()),
            }),
            _ => Ok(name.to_owned()),
        }
    }

    /// The ids that several names stand for, for which the own types are read once. A text without a meaning
    /// is returned unchanged, whatever it resembles: what is wrong with a list is told of all of it at once.
    pub async fn resolve_names(&self, owner: PersonId, names: &[String]) -> Result<Vec<String>, TypesError> {
        if names.iter().all(|name| self.stands_for_itself(name)) {
            return Ok(names.to_vec());
        }
        let own = self.all_own(owner).await?;
        let meant = |name: &String| -> Result<String, TypesError> {
            let id = if self.stands_for_itself(name) {
                None
            } else {
                only_called(&own, name)?
            };
            Ok(id.map_or_else(|| name.clone(), ToString::to_string))
        };
        names.iter().map(meant).collect()
    }

    /// Whether `name` is the id of a type upon a base or the name of a built-in type: neither has another
    /// meaning.
    fn stands_for_itself(&self, name: &str) -> bool {
        TypeId::parse(name).is_some_and(|id| id.definition().is_some()) || self.registry.get(name).is_some()
    }

    fn nearest(&self, name: &str) -> Option<String> {
        let known = self.registry.types();
        nearest(name, known.iter().map(|data_type| data_type.id.as_str())).map(str::to_owned)
    }

    /// `owner`'s own type, archived or not.
    pub async fn own(&self, owner: PersonId, id: Uuid) -> Result<Option<OwnType>, TypesError> {
        let stored = self
            .catalog
            .definition(id)
            .await?
            .filter(|stored| stored.person == owner);
        stored.map(|stored| self.made_from(stored)).transpose()
    }

    /// Who made the type with this id, if anybody did.
    pub async fn owner_of(&self, id: Uuid) -> Result<Option<PersonId>, TypesError> {
        let stored = self.catalog.definition(id).await?;
        Ok(stored.map(|stored| stored.person))
    }

    /// All of `owner`'s own types, archived ones too.
    pub async fn all_own(&self, owner: PersonId) -> Result<Arc<OwnTypes>, TypesError> {
        // Read before the stamp, and that before the definitions: whatever changes later changes them.
        let state = self.catalog.definitions_state(owner).await;
        let known = self.lists.get(&owner);
        if let Some(known) = &known
            && Some(known.state) == state
        {
            return Ok(Arc::clone(&known.types));
        }
        let stamp = self.catalog.definitions_stamp(owner).await?;
        let types = match known {
            Some(known) if known.stamp == stamp => known.types,
            _ => Arc::new(self.read_all(owner).await?),
        };
        if let Some(state) = state {
            let types = Arc::clone(&types);
            self.lists.insert(owner, CachedList { state, stamp, types });
        }
        Ok(types)
    }

    async fn read_all(&self, owner: PersonId) -> Result<OwnTypes, TypesError> {
        let stored = self.catalog.definitions_of(owner).await?.into_iter();
        let all = stored.map(|stored| self.made_from(stored));
        Ok(OwnTypes::new(all.collect::<Result<_, _>>()?))
    }

    fn made_from(&self, stored: StoredDefinition) -> Result<OwnType, TypesError> {
        // A restored older catalogue counts the same versions again, so more than the version is compared.
        let known = self.made.get(&stored.id);
        if let Some(made) = known.filter(|made| made.is_made_of(&stored)) {
            return Ok(OwnType {
                definition: stored,
                data_type: Arc::clone(&made.data_type),
                memory: made.memory,
            });
        }
        let damaged = |reason: String| TypesError::Damaged {
            id: stored.id,
            reason,
        };
        let base = self
            .registry
            .get(&stored.base)
            .ok_or_else(|| damaged(format!("{} is no base", stored.base)))?;
        let made: Result<DataType, LayoutError> = DataType::from_definition(
            stored.person,
            stored.id,
            base,
            &definition_of(&stored)?,
            stored.version as u32,
        );
        let data_type = made.map_err(|error| damaged(error.to_string()))?;
        let made = OwnType {
            memory: data_type.memory(),
            data_type: Arc::new(data_type),
            definition: stored,
        };
        self.made.insert(made.definition.id, Arc::new(made.clone()));
        Ok(made)
    }
}

fn kept_types(memory: u64) -> Cache<Uuid, Arc<OwnType>> {
    Cache::of_bytes(memory, LARGE_BYTES, |_, own: &Arc<OwnType>| own.bytes())
}

fn kept_lists(memory: u64) -> Cache<PersonId, CachedList> {
    // Lists may be large: if the memory were divided into parts, they would fit into none.
    Cache::of_bytes(memory, memory, |_, list: &CachedList| list.types.bytes())
}

/// The id of the one type called `name`, if there is any.
pub fn only_called<'o>(own: &'o OwnTypes, name: &str) -> Result<Option<&'o TypeId>, TypesError> {
    match own.called(name) {
        [] => Ok(None),
        [only] => Ok(Some(only)),
        several => Err(TypesError::Ambiguous {
            name: name.to_owned(),
            candidates: several.iter().map(ToString::to_string).collect(),
        }),
    }
}

fn definition_of(stored: &StoredDefinition) -> Result<Definition, TypesError> {
    stored_json::read(&stored.body).map_err(|error| TypesError::Damaged {
        id: stored.id,
        reason: error.to_string(),
    })
}
