//! `almanac export`: writes everything that a person has into one file. Works beside a running service with
//! the same settings; what is deleted while it reads may or may not be in it.

use std::path::PathBuf;
use std::sync::Arc;

use crate::model::ids::PersonId;
use crate::people::takeout::{Exports, Saved};
use crate::upkeep::{UpkeepStores, identity};

use super::failed::Failed;
use super::progress::Progress;
use super::settings::Settings;
use super::standard_output::print;
use super::{installation, runtimes, stores};

/// Whose archive to write, and where.
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
    let stores = stores::to_go_through(settings).await?;
    let catalog = stores.catalog.clone();
    let written = written(settings, stores, order).await;
    catalog.close().await;
    written
}

async fn written(settings: &Settings, stores: UpkeepStores, order: &ExportOrder) -> Result<Saved, Failed> {
    identity::compare(&stores.catalog, stores.objects())
        .await
        .map_err(Failed::from_error)?;
    installation::knows(&stores.catalog, order.person).await?;
    let source_prefix = Arc::from(settings.interface.source_prefix.as_str());
    let exports = Exports::new(stores, settings.exports, source_prefix);
    let progress = Progress::new("files of the archive");
    let tell = |done, total| progress.stand_at(done, total);
    let saved = exports.save(order.person, &order.archive, &tell).await;
    progress.finish();
    saved.map_err(Failed::from_error)
}
