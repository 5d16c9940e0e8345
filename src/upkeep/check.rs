//! Checks that everything stored is what was written. Looks at all of it now, beside a running service.

use std::collections::HashSet;

use super::collect::forbidden;
use super::identity;
use super::lost_manifests;
use super::object_check::{examine, examine_tail};
use super::older_catalogue::BeyondCatalogue;
use super::stores::{PartitionKey, UpkeepStores};
use crate::catalog::records::{Partition, Piece, Place};
use crate::catalog::{Catalog, CatalogError};
use crate::model::ids::PersonId;
use crate::store::StoreError;
use crate::store::objects::ObjectStorage;

/// How often a partition is checked that changes faster than it can be checked.
const ATTEMPTS: usize = 5;

/// What is reported during a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckProgress {
    /// About this many objects will be checked.
    Objects(u64),
    Object,
    Wrong(String),
}

/// What was checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckTotals {
    pub people: usize,
    pub partitions: usize,
    pub objects: usize,
    pub tail_pieces: usize,
    pub wrong: usize,
}

/// Checks the catalogue and everything that it names. An error means that the check could not be finished;
/// damage is not an error here.
pub async fn check(
    stores: &UpkeepStores,
    tell: &(dyn Fn(CheckProgress) + Sync),
) -> Result<CheckTotals, StoreError> {
    let mut check = Check {
        stores,
        tell,
        noted: HashSet::new(),
        told: HashSet::new(),
        checked: CheckTotals::default(),
    };
    if let Err(apart) = identity::compare(&stores.catalog, stores.objects()).await {
        check.wrong(apart.to_string());
    }
    if let Some(complaint) = unfinished_complaint(&stores.catalog).await? {
        check.wrong(complaint);
    }
    for complaint in stores.catalog.damaged_tables().await? {
        check.wrong(complaint);
    }
    if let Some(complaint) = stores.catalog.damaged_roster().await? {
        check.wrong(complaint);
    }
    check.noted = CatalogError::unless_corrupt(stores.catalog.damages().await)?
        .unwrap_or_default()
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    tell(CheckProgress::Objects(
        stores
            .catalog
            .object_totals()
            .await?
            .objects
            .max(0)
            .cast_unsigned(),
    ));
    check.strangers().await?;
    // A person whose own row is damaged, which was already reported, is checked all the same.
    for person in stores.catalog.people_ids().await? {
        check.person(person).await?;
    }
    Ok(check.checked)
}

/// Describes the damage within a catalogue: rows that differ from what was written, and missing rows, also
/// those that a rebuild has not brought back yet.
pub async fn catalogue_complaints(catalog: &Catalog) -> Result<Vec<String>, StoreError> {
    let mut complaints = catalog.complaints().await?;
    complaints.extend(unfinished_complaint(catalog).await?);
    complaints.extend(catalog.damaged_roster().await?);
    for person in catalog.people_ids().await? {
        complaints.extend(damage_of(catalog, person).await?);
    }
    complaints.sort_unstable();
    complaints.dedup();
    Ok(complaints)
}

/// Describes the damage to what a catalogue has of a person, besides rows that differ from what was written.
async fn damage_of(catalog: &Catalog, person: PersonId) -> Result<Vec<String>, CatalogError> {
    let mut complaints = catalog.damaged_partitions(person).await?;
    complaints.extend(catalog.damaged_documents(person).await?);
    complaints.extend(catalog.damaged_registers(person).await?);
    Ok(complaints)
}

/// Says that a catalogue is being made anew. Damage in what it says of that is a damaged row like others.
async fn unfinished_complaint(catalog: &Catalog) -> Result<Option<String>, StoreError> {
    let since = CatalogError::unless_corrupt(catalog.unfinished_rebuild().await)?.flatten();
    Ok(since.map(|since| {
        format!(
            "the catalogue is being made anew since {since}, and that is not finished: run `almanac check \
             --repair` again"
        )
    }))
}

/// Describes what a store has beyond its catalogue, where an older one was put back. One whose
/// rebuild was not finished counts as lost, not as older.
pub async fn older_complaints(catalog: &Catalog, objects: &ObjectStorage) -> Result<Vec<String>, StoreError> {
    if unfinished_complaint(catalog).await?.is_some() {
        return Ok(Vec::new());
    }
    Ok(BeyondCatalogue::find(catalog, objects)
        .await?
        .complaints()
        .collect())
}

struct Check<'a> {
    stores: &'a UpkeepStores,
    tell: &'a (dyn Fn(CheckProgress) + Sync),
    /// Objects that were found damaged before.
    noted: HashSet<String>,
    told: HashSet<String>,
    checked: CheckTotals,
}

impl Check<'_> {
    /// Says what is wrong, once, however many ways lead to it.
    fn wrong(&mut self, what: String) {
        if !self.told.insert(what.clone()) {
            return;
        }
        self.checked.wrong += 1;
        (self.tell)(CheckProgress::Wrong(what));
    }

    /// Reports people whom the store alone knows.
    async fn strangers(&mut self) -> Result<(), StoreError> {
        // One that knows nobody, or not everybody yet, is not older but lost.
        if forbidden(self.stores).await?.is_some() {
            return Ok(());
        }
        match BeyondCatalogue::find(&self.stores.catalog, self.stores.objects()).await {
            Err(error @ StoreError::Catalog(_)) => return Err(error),
            Err(error) => self.wrong(error.to_string()),
            Ok(beyond) => {
                for complaint in beyond.complaints_of_unknown() {
                    self.wrong(complaint);
                }
            }
        }
        Ok(())
    }

    async fn person(&mut self, person: PersonId) -> Result<(), StoreError> {
        self.checked.people += 1;
        let mut complaints = damage_of(&self.stores.catalog, person).await?;
        let of_manifests = match lost_manifests::complaints(self.stores, person).await {
            Err(error @ StoreError::Catalog(_)) => return Err(error),
            // One unreadable manifest does not keep the others from being checked.
            Err(error) => vec![error.to_string()],
            Ok(complaints) => complaints,
        };
        let told = |complaint: String| format!("person {person}: {complaint}");
        complaints.extend(of_manifests.into_iter().map(told));
        for complaint in complaints {
            self.wrong(complaint);
        }
        let partitions = self.stores.catalog.partitions_of(person).await;
        let Some(partitions) = CatalogError::unless_corrupt(partitions)? else {
            return Ok(());
        };
        for summary in partitions {
            self.partition(&PartitionKey {
                person,
                data_type: summary.data_type,
            })
            .await?;
        }
        self.files(person).await
    }

    /// Checks the bytes of a person's files.
    async fn files(&mut self, person: PersonId) -> Result<(), StoreError> {
        let contents = self.stores.contents();
        let known = match contents.of_person(person).await {
            // Already reported. The others may have damage of their own.
            Err(error) if error.is_damage() => contents.sound_of_person(person).await?,
            known => known?,
        };
        for content in known {
            self.checked.objects += content.parts.len();
            match contents.examine(&content).await {
                // It may have been removed meanwhile, and parts of an incomplete one given up.
                Ok(_) | Err(StoreError::Missing { .. }) => {}
                Err(StoreError::Corrupt { what }) => self.wrong(format!("person {person}, files: {what}")),
                Err(error @ StoreError::Catalog(_)) if !error.is_damage() => return Err(error),
                // One unreadable part does not keep the others from being checked.
                Err(error) => self.wrong(format!("person {person}, files: {error}")),
            }
        }
        Ok(())
    }

    async fn partition(&mut self, key: &PartitionKey) -> Result<(), StoreError> {
        self.checked.partitions += 1;
        for _ in 0..ATTEMPTS {
            let Some(partition) = self.read(key).await? else {
                return Ok(());
            };
            let mut living = Some(0);
            let mut complaints = Vec::new();
            for piece in &partition.pieces {
                match self.piece(key, piece).await {
                    Ok(rows) => living = living.map(|living| living + rows),
                    Err(StoreError::Corrupt { what }) => {
                        living = None;
                        complaints.push(what);
                    }
                    Err(error @ StoreError::Catalog(_)) => return Err(error),
                    // One unreadable object does not keep the others from being checked.
                    Err(error) => {
                        living = None;
                        complaints.push(error.to_string());
                    }
                }
            }
            if let Some(living) = living.filter(|living| *living != partition.records) {
                complaints.push(format!("{living} records are stored, not {}", partition.records));
            }
            // If it was replaced during the check, its objects may have been removed too.
            if complaints.is_empty() || self.is_current(&partition).await? {
                for complaint in complaints {
                    self.wrong(format!("person {}, {}: {complaint}", key.person, key.data_type));
                }
                return Ok(());
            }
        }
        self.wrong(format!(
            "person {}, {}: damage was seen, and what it was in kept changing",
            key.person, key.data_type
        ));
        Ok(())
    }

    /// The partition with the bytes of its tail; `None` where damage in the catalogue, which was already
    /// reported, prevents it.
    async fn read(&mut self, key: &PartitionKey) -> Result<Option<Partition>, StoreError> {
        match self
            .stores
            .catalog
            .snapshot(key.person, std::slice::from_ref(&key.data_type), &|_| false)
            .await
        {
            Ok(mut partitions) => Ok(partitions.pop()),
            Err(CatalogError::Corrupt { what }) => {
                self.wrong(format!("person {}, {}: {what}", key.person, key.data_type));
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Checks a piece; returns the number of its live rows.
    async fn piece(&mut self, key: &PartitionKey, piece: &Piece) -> Result<i64, StoreError> {
        match &piece.place {
            Place::Tail { blob } => {
                self.checked.tail_pieces += 1;
                let blob = blob.as_deref().unwrap_or_default();
                examine_tail(self.stores, key.person, piece, blob).await
            }
            Place::Object { path, footer } => {
                self.checked.objects += 1;
                (self.tell)(CheckProgress::Object);
                let living = examine(self.stores, key, piece, path, *footer).await?;
                if self.noted.remove(path) {
                    // It was restored from a copy, or the disk was at fault and no longer is.
                    self.stores.catalog.forget_damage(path).await?;
                }
                Ok(living)
            }
        }
    }

    async fn is_current(&self, partition: &Partition) -> Result<bool, StoreError> {
        let stamps = self
            .stores
            .catalog
            .stamps(partition.person, std::slice::from_ref(&partition.data_type))
            .await?;
        Ok(stamps == [partition.stamp])
    }
}
