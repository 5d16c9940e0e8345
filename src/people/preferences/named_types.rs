//! Finds the types that preferences name: those that are built in, the person's own, and those that others
//! share with them, as the catalogue lists them. Knows types, annotations and shares; knows nothing of what a
//! preference says of a type.

use std::collections::{BTreeMap, HashMap};

use super::errors::PreferencesError;
use crate::model::faults::{Fault, LocPart};
use crate::model::ids::PersonId;
use crate::model::registry::{Base, RecordClass, TypeId};
use crate::people::annotations::Annotations;
use crate::people::sharing::Sharing;
use crate::people::sharing::received::OpenedBySharer;
use crate::people::types::{ResolvedType, Types, TypesError};

/// Where types are looked up, whoever has them.
#[derive(Clone, Copy)]
pub struct KnownTypes<'k> {
    pub types: &'k Types,
    pub annotations: &'k Annotations,
    pub sharing: &'k Sharing,
}

/// The types that preferences name. Each is looked up once, however often and in whatever case it is named:
/// of the same few, preferences have room for thousands of names.
pub(super) struct NamedTypes<'k> {
    known: KnownTypes<'k>,
    person: PersonId,
    found: HashMap<TypeId, (TypeId, RecordClass)>,
    /// What others share with the person, once something is named that the person does not have.
    opened: Option<BTreeMap<PersonId, OpenedBySharer>>,
}

impl<'k> NamedTypes<'k> {
    /// Those of `person`, to whom the `kept` metrics are known: they were there once, and whoever shared one
    /// and no longer does is not to make preferences wrong that nobody changes.
    pub(super) fn of(known: KnownTypes<'k>, person: PersonId, kept: Vec<TypeId>) -> Self {
        let kept = kept.into_iter().map(|id| (id.clone(), (id, RecordClass::Metric)));
        Self {
            known,
            person,
            found: kept.collect(),
            opened: None,
        }
    }

    /// The type called `name`, or the fault at `loc` if there is none.
    pub(super) async fn find(
        &mut self,
        name: &str,
        loc: Vec<LocPart>,
    ) -> Result<Result<(TypeId, RecordClass), Fault>, PreferencesError> {
        let spelt = TypeId::parse(name);
        if let Some(known) = spelt.as_ref().and_then(|id| self.found.get(id)) {
            return Ok(Ok(known.clone()));
        }
        let own = match self.known.types.find(self.person, name).await {
            Ok(resolved) if self.known.has(self.person, &resolved).await? => {
                Ok((resolved.id(), resolved.data_type.class))
            }
            Ok(_) => Err(TypesError::Unknown {
                name: name.to_owned(),
                nearest: None,
            }),
            Err(error @ TypesError::Unknown { .. }) => Err(error),
            Err(other) => return Err(other.into()),
        };
        let found = match (own, &spelt) {
            (Err(unknown), Some(id)) if id.definition().is_some() => self.shared(id).await?.ok_or(unknown),
            (own, _) => own,
        };
        match found {
            Ok(found) => {
                self.found.extend(spelt.map(|id| (id, found.clone())));
                Ok(Ok(found))
            }
            Err(unknown) => {
                let message = format!("{unknown}; /data/v1/catalog lists those that there are");
                Ok(Err(Fault::new(loc, "value_error", message)))
            }
        }
    }

    /// The type `id`, if somebody made it and shares it with the person.
    async fn shared(&mut self, id: &TypeId) -> Result<Option<(TypeId, RecordClass)>, PreferencesError> {
        let Some(owner) = self.known.owner_of(id).await? else {
            return Ok(None);
        };
        let opened = match self.opened.take() {
            Some(opened) => opened,
            None => self.known.sharing.openings_for(self.person).await?,
        };
        let of_owner = self.opened.insert(opened).get(&owner);
        if !of_owner.is_some_and(|opened| opened.openings.iter().any(|opening| opening.shows(id))) {
            return Ok(None);
        }
        let Some(resolved) = self.known.types.look_up(owner, id.as_str()).await? else {
            return Ok(None);
        };
        let is_there = self.known.has(owner, &resolved).await?;
        Ok(is_there.then(|| (resolved.id(), resolved.data_type.class)))
    }
}

impl KnownTypes<'_> {
    /// Whether the annotation that a type names, if any, is one of the person's whose records have that type.
    async fn has(&self, person: PersonId, resolved: &ResolvedType) -> Result<bool, PreferencesError> {
        let Some(id) = resolved.annotation else {
            return Ok(true);
        };
        let annotations = self.annotations.all(person).await?;
        let annotation = annotations.iter().find(|annotation| annotation.id == id);
        Ok(annotation.is_some_and(|annotation| annotation.type_id() == resolved.id()))
    }

    /// Who made the type `id`, or the annotation whose records have it.
    async fn owner_of(&self, id: &TypeId) -> Result<Option<PersonId>, PreferencesError> {
        let Some(definition) = id.definition() else {
            return Ok(None);
        };
        if Base::named(id.base()).is_some() {
            Ok(self.types.owner_of(definition).await?)
        } else {
            Ok(self.annotations.owner_of(definition).await?)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::catalog::Catalog;
    use crate::catalog::test_databases::address_in;
    use crate::model::clock::{Clock, SystemClock};
    use crate::model::ids::{IdSource, SystemIds};
    use crate::model::registry::Registry;
    use crate::people::documents::Documents;
    use crate::people::limits::PersonLimits;
    use crate::people::sharing::access_log::AccessLog;
    use crate::people::sharing::shares::ShareChange;

    struct Bench {
        catalog: Catalog,
        types: Types,
        annotations: Annotations,
        sharing: Sharing,
        _directory: tempfile::TempDir,
    }

    impl Bench {
        async fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let address = address_in(directory.path());
            let clock: Arc<dyn Clock> = Arc::new(SystemClock);
            let ids: Arc<dyn IdSource> = Arc::new(SystemIds::default());
            let catalog = Catalog::open(&address, Arc::clone(&clock)).await.unwrap();
            let registry = Arc::new(Registry::builtin().unwrap());
            let documents = Documents::new(catalog.clone(), Arc::clone(&clock), Arc::clone(&ids));
            let (log, _task) = AccessLog::start(catalog.clone(), Arc::clone(&clock), Arc::clone(&ids));
            Self {
                types: Types::new(
                    registry,
                    catalog.clone(),
                    Arc::clone(&clock),
                    Arc::clone(&ids),
                    10,
                ),
                annotations: Annotations::new(documents, 10, "com.almanac".into(), 1 << 20),
                sharing: Sharing::new(catalog.clone(), clock, ids, log, PersonLimits::GENEROUS),
                catalog,
                _directory: directory,
            }
        }

        fn named(&self, person: PersonId) -> NamedTypes<'_> {
            let known = KnownTypes {
                types: &self.types,
                annotations: &self.annotations,
                sharing: &self.sharing,
            };
            NamedTypes::of(known, person, Vec::new())
        }

        /// Somebody who has a metric of their own, and its id.
        async fn somebody_with_a_metric(&self, number: u128) -> (PersonId, TypeId) {
            let person = PersonId(Uuid::from_u128(number));
            self.catalog.ensure_person(person, None).await.unwrap();
            let body = json!({"name": "Cups", "record_spec": {"unit": "1"}});
            let own = self.types.create(person, Base::Metric, &body).await.unwrap();
            (person, own.data_type.id.clone())
        }
    }

    #[tokio::test]
    async fn a_type_that_is_named_again_is_not_looked_up_again() {
        let bench = Bench::new().await;
        let (person, id) = bench.somebody_with_a_metric(1).await;
        let mut named = bench.named(person);
        let found = named.find(id.as_str(), Vec::new()).await.unwrap();
        assert_eq!(found, Ok((id.clone(), RecordClass::Metric)));
        // From a catalogue that is closed nothing can be read.
        bench.catalog.close().await;
        let other_case = id.as_str().replace(id.base(), "").to_uppercase();
        for again in [id.to_string(), format!("{}{other_case}", id.base())] {
            let found = named.find(&again, Vec::new()).await.unwrap();
            assert_eq!(found, Ok((id.clone(), RecordClass::Metric)), "{again}");
        }
        let unread = bench.named(person).find(id.as_str(), Vec::new()).await;
        assert!(unread.is_err());
    }

    #[tokio::test]
    async fn what_others_share_is_known_and_a_definition_that_nobody_has_is_not() {
        let bench = Bench::new().await;
        let (owner, metric) = bench.somebody_with_a_metric(1).await;
        let (reader, _) = bench.somebody_with_a_metric(2).await;
        let body = json!({"annotation_type": "numeric", "name": "Tea", "description": "", "tags": []});
        let tea = bench.annotations.create(owner, &body).await.unwrap();
        let made = [metric, tea.type_id()];
        let is_known = async |person: PersonId, id: &str| {
            let found = bench.named(person).find(id, Vec::new()).await.unwrap();
            if let Ok((known, class)) = &found {
                assert_eq!((known.as_str(), *class), (id, RecordClass::Metric));
            }
            found.is_ok()
        };
        for id in &made {
            assert!(is_known(owner, id.as_str()).await, "{id}");
            assert!(!is_known(reader, id.as_str()).await, "{id}");
        }
        let share = ShareChange {
            name: Some("a share".to_owned()),
            data_types: Some(made.iter().map(ToString::to_string).collect()),
            people: Some(vec![reader]),
            ..ShareChange::default()
        };
        let shared = bench.sharing.create_share(&bench.types, owner, None, share);
        shared.await.unwrap();
        for id in &made {
            assert!(is_known(reader, id.as_str()).await, "{id}");
        }
        let (nobodys, other_base) = (Uuid::from_u128(7), format!("ScaleAnnotation/{}", tea.id));
        for person in [owner, reader] {
            for base in ["Metric", "NumericAnnotation"] {
                assert!(!is_known(person, &format!("{base}/{nobodys}")).await, "{base}");
            }
            assert!(!is_known(person, &other_base).await);
        }
    }
}
