//! `almanac export`: writes everything that a person has into one file. Works beside a running service with
//! the same settings; what is deleted while it reads may or may not be in it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::catalog::Catalog;
use crate::model::clock::{Clock, SystemClock};
use crate::model::ids::{PersonId, SystemIds};
use crate::people::takeout::{Exports, Saved};
use crate::store::files::PieceFiles;
use crate::store::snapshot::Snapshots;
use crate::upkeep::{UpkeepStores, identity};

use super::progress::Progress;
use super::settings::Settings;
use super::stores::{self, OpenedStore};
use super::{Failed, installation, print, runtimes};

/// Bytes of each cache: one person is looked at, once.
const MEMORY: u64 = 16 << 20;

/// Whose archive is to be written, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ExportOrder {
    pub archive: PathBuf,
    pub person: PersonId,
}

pub(super) fn run(settings: &Settings, order: &ExportOrder) -> Result<(), Failed> {
    installation::needed(settings)?;
    let runtime = runtimes::many_threads()?;
    let saved = runtime.block_on(Box::pin(saved(settings, order)))?;
    let place = order.archive.display();
    print(&format!(
        "{place}: {} bytes, SHA-256 {}\n",
        saved.bytes, saved.sha256
    ))
}

async fn saved(settings: &Settings, order: &ExportOrder) -> Result<Saved, Failed> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let catalog = Catalog::open(&settings.database_url, Arc::clone(&clock))
        .await
        .map_err(Failed::from_error)?;
    let saved = written(settings, &catalog, clock, order.person, &order.archive).await;
    catalog.close().await;
    saved
}

async fn written(
    settings: &Settings,
    catalog: &Catalog,
    clock: Arc<dyn Clock>,
    person: PersonId,
    path: &Path,
) -> Result<Saved, Failed> {
    let OpenedStore { objects, keys } = stores::open(settings).await?;
    identity::compare(catalog, &objects)
        .await
        .map_err(Failed::from_error)?;
    if !catalog.person_exists(person).await.map_err(Failed::from_error)? {
        return Err(Failed::because(format!("there is nobody with the id {person}")));
    }
    let stores = UpkeepStores {
        catalog: catalog.clone(),
        snapshots: Snapshots::new(catalog.clone(), MEMORY).opening(keys),
        files: PieceFiles::new(objects, MEMORY),
        clock,
        ids: Arc::new(SystemIds::default()),
    };
    let source_prefix = Arc::from(settings.interface.source_prefix.as_str());
    let progress = Progress::new("files of the archive");
    let exports = Exports::new(stores, settings.exports, source_prefix);
    let saved = exports
        .save(person, path, &|done, total| progress.stand_at(done, total))
        .await;
    progress.finish();
    saved.map_err(Failed::from_error)
}
