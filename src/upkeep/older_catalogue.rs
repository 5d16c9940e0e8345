//! People of whom the store has later manifests than the catalogue knows of, or manifests and a note of a
//! later erasure: an older catalogue was put back.
//!
//! Those manifests say what it lacks, so whatever belongs to these people is left as it is until an operator
//! has decided which of the two is right. Looks at names alone; must not know what a manifest says.

use std::collections::{BTreeMap, BTreeSet};

use futures::TryStreamExt as _;

use super::erasure_notes::{unheeded, unheeded_of};
use super::manifest_names::{TakenNumbers, parse_manifest_path};
use crate::catalog::{Catalog, CatalogError};
use crate::model::erasure::ErasureMark;
use crate::model::ids::PersonId;
use crate::store::StoreError;
use crate::store::folder_names::PEOPLE_FOLDER;
use crate::store::objects::ObjectStorage;

/// The people of whom the store knows more than the catalogue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BeyondCatalogue {
    /// Those of whom the catalogue knows an earlier state, and what says so.
    pub earlier: BTreeMap<PersonId, String>,
    /// Those whom it does not know at all.
    pub unknown: BTreeSet<PersonId>,
}

impl BeyondCatalogue {
    /// Looks at the numbers of all manifests: first at those of the store, so that none is taken for later
    /// that is noted meanwhile.
    pub async fn find(catalog: &Catalog, objects: &ObjectStorage) -> Result<Self, StoreError> {
        let mut taken: BTreeMap<PersonId, TakenNumbers> = BTreeMap::new();
        let mut listed = objects.list(PEOPLE_FOLDER)?;
        while let Some(object) = listed.try_next().await? {
            if let Some((person, number)) = parse_manifest_path(&object.path) {
                taken.entry(person).or_default().add(number, object.is_claim());
            }
        }
        let mut beyond = Self::default();
        for (person, reason) in people_with_unheeded_erasures(catalog, objects).await? {
            if taken
                .get(&person)
                .is_some_and(|taken| !taken.manifests.is_empty())
            {
                beyond.earlier.insert(person, reason);
            }
        }
        let mut after = None;
        loop {
            let known = catalog.known_manifests(after).await?;
            let Some((last, _)) = known.sound.last() else {
                break;
            };
            after = Some(*last);
            for (person, number) in known.sound {
                if let Some(reason) = taken.remove(&person).and_then(|taken| taken.beyond(number)) {
                    beyond.earlier.insert(person, reason);
                }
            }
        }
        // One that was made from manifests knows the people, and notes no manifest before it writes one.
        for person in catalog.people_ids().await? {
            taken.remove(&person);
        }
        taken.retain(|_, taken| !taken.manifests.is_empty());
        for person in taken.into_keys() {
            // What is left of somebody who is being erased is garbage. At the end nothing is: a manifest that
            // is there then is of somebody who began anew.
            if !is_being_erased(catalog, person).await? {
                beyond.unknown.insert(person);
            }
        }
        Ok(beyond)
    }

    /// Describes what the catalogue lacks of each of them.
    pub fn complaints(&self) -> impl Iterator<Item = String> {
        let earlier = self.earlier.iter();
        let earlier = earlier.map(|(person, reason)| format!("person {person}: {reason}"));
        earlier.chain(self.complaints_of_unknown())
    }

    /// Describes those whom the catalogue does not know.
    pub fn complaints_of_unknown(&self) -> impl Iterator<Item = String> {
        self.unknown.iter().map(|person| {
            format!(
                "person {person}: the store has manifests, and the catalogue does not know the person: it \
                 is older than the store"
            )
        })
    }

    pub fn people(&self) -> impl Iterator<Item = PersonId> {
        self.earlier.keys().chain(&self.unknown).copied()
    }

    /// Whether an object belongs to one of them. Objects lie in folders with the names of their owners.
    #[must_use]
    pub fn owns(&self, path: &str) -> bool {
        let owner = path.split('/').nth(1).and_then(|owner| owner.parse().ok());
        owner.is_some_and(|owner| self.earlier.contains_key(&owner) || self.unknown.contains(&owner))
    }
}

/// The people whom the catalogue knows, and of whom it does not know that they were erased, each with the
/// words for that.
async fn people_with_unheeded_erasures(
    catalog: &Catalog,
    objects: &ObjectStorage,
) -> Result<Vec<(PersonId, String)>, StoreError> {
    let unheeded = unheeded(catalog, objects).await?.sound;
    let marks: BTreeSet<ErasureMark> = unheeded.into_iter().map(|(mark, _)| mark).collect();
    let mut found = Vec::new();
    if marks.is_empty() {
        return Ok(found);
    }
    for person in catalog.people_ids().await? {
        if marks.contains(&ErasureMark::of(person)) {
            // Once more, since an erasure whose row is damaged is known all the same.
            let reason = unheeded_of(catalog, objects, person).await?;
            found.extend(reason.map(|reason| (person, reason)));
        }
    }
    Ok(found)
}

/// Whether the erasure of a person is under way, as far as that can be read.
async fn is_being_erased(catalog: &Catalog, person: PersonId) -> Result<bool, StoreError> {
    match catalog.is_being_erased(person).await {
        Err(CatalogError::Corrupt { .. }) => Ok(false),
        found => Ok(found?),
    }
}
