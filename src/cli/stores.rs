//! Opens the object store of the settings, with the keys of people if stored data is encrypted.

use std::sync::Arc;
use std::time::Duration;

use crate::catalog::{Catalog, CatalogError};
use crate::model::clock::SystemClock;
use crate::model::ids::SystemIds;
use crate::store::StoreError;
use crate::store::files::PieceFiles;
use crate::store::objects::ObjectStorage;
use crate::store::sealing::{self, KeyService, MasterKeys, PersonKeys, Wrapping};
use crate::store::snapshot::Snapshots;
use crate::upkeep::{UpkeepStores, identity};

use super::failed::Failed;
use super::settings::{EncryptionSettings, Settings};

/// A small cache: what is read once is not worth keeping.
const CACHE_MEMORY: u64 = 8 << 20;
/// How long a catalogue that was opened in vain may take to close.
const CLOSE_LIMIT: Duration = Duration::from_secs(15);

/// The catalogue, for a command that makes an installation or goes on with one of an earlier release.
pub(super) async fn catalog_brought_up_to_date(settings: &Settings) -> Result<Catalog, Failed> {
    let catalog = Catalog::open(&settings.database_url, Arc::new(SystemClock)).await;
    catalog.map_err(Failed::from_error)
}

/// The catalogue, for any other command.
pub(super) async fn catalog(settings: &Settings) -> Result<Catalog, Failed> {
    let catalog = Catalog::open_beside(&settings.database_url, Arc::new(SystemClock)).await;
    catalog.map_err(Failed::from_error)
}

/// Catalogue and store for a command that goes through everything stored, once.
pub(super) async fn to_go_through(settings: &Settings) -> Result<UpkeepStores, Failed> {
    let catalog = Catalog::open_beside(&settings.database_url, Arc::new(SystemClock)).await;
    with_store(settings, catalog).await
}

/// The same for one that also repairs it, and therefore brings it up to date.
pub(super) async fn to_repair(settings: &Settings) -> Result<UpkeepStores, Failed> {
    let catalog = Catalog::open(&settings.database_url, Arc::new(SystemClock)).await;
    with_store(settings, catalog).await
}

async fn with_store(
    settings: &Settings,
    catalog: Result<Catalog, CatalogError>,
) -> Result<UpkeepStores, Failed> {
    let catalog = catalog.map_err(|error| not_gone_through(error.into()))?;
    let OpenedStore { objects, keys } = or_closed(&catalog, open(settings).await).await?;
    Ok(UpkeepStores {
        snapshots: Snapshots::new(catalog.clone(), CACHE_MEMORY).opening(keys),
        files: PieceFiles::new(objects, CACHE_MEMORY),
        catalog,
        clock: Arc::new(SystemClock),
        ids: Arc::new(SystemIds::default()),
    })
}

/// Closes a catalogue that was opened in vain. Only then SQLite removes its log, and what is left of it would
/// become part of any other file that is put in the place of the catalogue.
pub(super) async fn or_closed<T>(catalog: &Catalog, outcome: Result<T, Failed>) -> Result<T, Failed> {
    if outcome.is_err() {
        // If it does not close, the error is all the same what has to be told.
        let _closed = tokio::time::timeout(CLOSE_LIMIT, catalog.close()).await;
    }
    outcome
}

/// Why not everything could be gone through. Does not advise `almanac check`, which may be what failed.
pub(super) fn not_gone_through(error: StoreError) -> Failed {
    match error {
        StoreError::Catalog(CatalogError::Corrupt { what }) => Failed::because(format!(
            "the catalogue is too damaged to be read through: {what}; put a backup in its place, or move it \
             away and run `almanac check --repair`, which makes it anew from the object store"
        )),
        error => Failed::from_error(error),
    }
}

/// The store for code that reads and writes people's data.
pub(super) struct OpenedStore {
    pub objects: ObjectStorage,
    pub keys: Option<Arc<PersonKeys>>,
}

/// The store for a process that writes into it, as a pair with the catalogue. `warn` gets what an operator
/// who insists on that has to know.
pub(super) async fn paired(
    settings: &Settings,
    catalog: &Catalog,
    warn: impl Fn(&str),
) -> Result<OpenedStore, Failed> {
    let opened = open(settings).await?;
    let ids = SystemIds::default();
    let settled = identity::settle(catalog, &opened.objects, &ids, settings.adopt_store)
        .await
        .map_err(Failed::from_error)?;
    for what in &settled.given_up {
        warn(what);
    }
    mark(settings, &opened.objects, opened.keys.as_deref()).await?;
    Ok(opened)
}

/// Marks the store of a catalogue that is repaired, if the two are a pair: a repair writes what is sealed.
pub(super) async fn mark_if_paired(settings: &Settings, stores: &UpkeepStores) -> Result<(), Failed> {
    match identity::compare(&stores.catalog, stores.objects()).await {
        Ok(()) => {
            let keys = stores.keys();
            mark(settings, stores.objects(), keys.map(AsRef::as_ref)).await
        }
        // The repair tells of it.
        Err(_) => Ok(()),
    }
}

/// Marks a store as sealed, if it is.
async fn mark(settings: &Settings, objects: &ObjectStorage, keys: Option<&PersonKeys>) -> Result<(), Failed> {
    let Some(keys) = keys else {
        return Ok(());
    };
    sealing::mark(objects, keys, settings.adopt_store)
        .await
        .map_err(Failed::from_error)
}

/// The store, whosever it is: nothing in it is changed.
pub(super) async fn open(settings: &Settings) -> Result<OpenedStore, Failed> {
    let objects = ObjectStorage::open(&settings.objects).map_err(Failed::from_error)?;
    let Some(encryption) = &settings.encryption else {
        sealing::refuse_marked(&objects)
            .await
            .map_err(Failed::from_error)?;
        return Ok(OpenedStore { objects, keys: None });
    };
    let keys = Arc::new(person_keys(encryption)?);
    sealing::compare(&objects, &keys, settings.adopt_store)
        .await
        .map_err(Failed::from_error)?;
    Ok(OpenedStore {
        objects: sealing::over(objects, &keys),
        keys: Some(keys),
    })
}

/// The keys of people, stored and wrapped as the settings say.
pub(super) fn person_keys(encryption: &EncryptionSettings) -> Result<PersonKeys, Failed> {
    let file = encryption.master.as_deref().map(MasterKeys::read).transpose();
    let service = encryption.service.as_ref().map(KeyService::new).transpose();
    let wrapping = Wrapping::new(
        file.map_err(Failed::from_error)?,
        service.map_err(Failed::from_error)?,
    );
    let place = ObjectStorage::open(&encryption.keys).map_err(Failed::from_error)?;
    Ok(PersonKeys::new(place, wrapping))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_catalogue_that_was_opened_in_vain_leaves_no_log() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("catalogue.db");
        let address = format!("sqlite://{}", file.display());
        let catalog = Catalog::open(&address, Arc::new(SystemClock)).await.unwrap();
        let refused: Result<(), Failed> = Err(Failed::because("the store is another"));
        assert!(or_closed(&catalog, refused).await.is_err());
        assert!(file.exists() && !directory.path().join("catalogue.db-wal").exists());
    }

    #[test]
    fn a_check_that_cannot_go_on_does_not_advise_itself() {
        let what = "database disk image is malformed".to_owned();
        let damaged = CatalogError::Corrupt { what };
        let said = not_gone_through(damaged.into()).to_string();
        assert!(
            said.contains("--repair") && !said.contains("`almanac check`"),
            "{said}"
        );
    }
}
