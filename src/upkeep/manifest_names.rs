//! The names of manifests: whose each is, and which numbers are taken.

use futures::TryStreamExt as _;

use crate::catalog::estates::KnownManifest;
use crate::model::ids::PersonId;
use crate::store::StoreError;
use crate::store::folder_names::PEOPLE_FOLDER;
use crate::store::objects::ObjectStorage;

/// The path of a manifest.
#[must_use]
pub fn manifest_path(person: PersonId, number: i64) -> String {
    format!("{PEOPLE_FOLDER}/{person}/{number:012}.json.zst")
}

/// The person and number of a manifest. `None`: the path is not one of a manifest.
#[must_use]
pub fn parse_manifest_path(path: &str) -> Option<(PersonId, i64)> {
    let mut parts = path.strip_prefix(PEOPLE_FOLDER)?.strip_prefix('/')?.split('/');
    let person = parts.next()?.parse().ok()?;
    let number = parts.next()?.strip_suffix(".json.zst")?.parse().ok()?;
    (manifest_path(person, number) == path).then_some((person, number))
}

/// The numbers that are taken in a person's folder, newest first.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TakenNumbers {
    pub manifests: Vec<i64>,
    /// Claimed by somebody who is writing a manifest, or has stopped before its end.
    pub claims: Vec<i64>,
}

impl TakenNumbers {
    pub async fn of(objects: &ObjectStorage, person: PersonId) -> Result<Self, StoreError> {
        let mut listed = objects.list(&format!("{PEOPLE_FOLDER}/{person}"))?;
        let mut taken = Self::default();
        while let Some(object) = listed.try_next().await? {
            if let Some((_, number)) = parse_manifest_path(&object.path) {
                taken.add(number, object.is_claim());
            }
        }
        Ok(taken)
    }

    /// Adds a number that nobody else has.
    pub fn add(&mut self, number: i64, is_claim: bool) {
        let numbers = if is_claim {
            &mut self.claims
        } else {
            &mut self.manifests
        };
        numbers.insert(numbers.partition_point(|other| *other > number), number);
    }

    /// Why a catalogue that knows of the manifest `known` is older than the store. `None`: it is not.
    #[must_use]
    pub fn beyond(&self, known: i64) -> Option<String> {
        // Some may have been written, but not noted, when their processes ended, and numbers may have been
        // claimed in vain; but what is known stays until a later one is noted.
        let newest = *self.manifests.first()?;
        if known == KnownManifest::NONE.number {
            return Some(format!(
                "the store has manifests up to {newest}, and the catalogue wrote none: it is older than the \
                 store, and what was written since is lost"
            ));
        }
        let is_there = self.manifests.contains(&known) || self.claims.contains(&known);
        (newest.saturating_sub(known) > 1 && !is_there).then(|| {
            format!(
                "the store has manifests up to {newest}, the catalogue knows of {known}: it is older than \
                 the store, and what was written between them is lost"
            )
        })
    }

    /// The highest number.
    #[must_use]
    pub fn highest(&self) -> Option<i64> {
        self.manifests.first().max(self.claims.first()).copied()
    }

    /// All except the last `kept` manifests. Claims do not stay: whoever made one and is still writing
    /// removes what takes its place.
    pub fn except_newest(&self, kept: usize) -> impl Iterator<Item = i64> {
        self.manifests.iter().skip(kept).chain(&self.claims).copied()
    }
}

/// The numbers of a person's manifests, newest first.
pub async fn numbers(objects: &ObjectStorage, person: PersonId) -> Result<Vec<i64>, StoreError> {
    Ok(TakenNumbers::of(objects, person).await?.manifests)
}
