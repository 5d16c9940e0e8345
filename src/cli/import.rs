//! `almanac import`: restores an archive of everything that a person has. Works beside a running service with
//! the same settings, and makes an installation if there is none.

use std::path::PathBuf;
use std::sync::Arc;

use crate::catalog::Catalog;
use crate::ingest::stores::IntakeStores;
use crate::model::clock::{Clock, SystemClock};
use crate::model::ids::{IdSource, PersonId, SystemIds};
use crate::model::meters::Meters;
use crate::model::registry::Registry;
use crate::people::documents::Documents;
use crate::people::takeout::archive::Archive;
use crate::people::takeout::import::{ImportProgress, Imported, Importer, Tally};
use crate::people::types::Types;
use crate::store::contents::Contents;
use crate::store::files::PieceFiles;
use crate::store::snapshot::Snapshots;

use super::assembly::{commit_queue, kept_files};
use super::failed::Failed;
use super::init::make_signing_key;
use super::progress::Progress;
use super::settings::Settings;
use super::standard_output::print;
use super::stores::{self, OpenedStore};
use super::{data_directory, installation, runtimes, standard_error};

/// Bytes of each cache: one person is read, once.
const CACHE_MEMORY: u64 = 16 << 20;

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportOrder {
    pub archive: PathBuf,
    /// If not the one whose archive it is.
    pub person: Option<PersonId>,
}

pub fn run(settings: &Settings, order: &ImportOrder) -> Result<(), Failed> {
    // Before anything is made: an unreadable archive must not leave an empty installation.
    let archive = Archive::open(&order.archive).map_err(Failed::from_error)?;
    installation::makeable(settings)?;
    data_directory::open(&settings.data_dir)?;
    make_signing_key(settings)?;
    let runtime = runtimes::many_threads()?;
    let imported = runtime.block_on(Box::pin(bring_in(settings, archive, order.person)))?;
    print(&report(&imported))
}

async fn bring_in(
    settings: &Settings,
    archive: Archive,
    person: Option<PersonId>,
) -> Result<Imported, Failed> {
    let catalog = stores::catalog_brought_up_to_date(settings).await?;
    let imported = Box::pin(bring_into(settings, &catalog, archive, person)).await;
    catalog.close().await;
    imported
}

async fn bring_into(
    settings: &Settings,
    catalog: &Catalog,
    archive: Archive,
    person: Option<PersonId>,
) -> Result<Imported, Failed> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let ids: Arc<dyn IdSource> = Arc::new(SystemIds::default());
    let OpenedStore { objects, keys } = stores::paired(settings, catalog, standard_error::tell).await?;
    let registry = Arc::new(Registry::builtin().map_err(Failed::from_error)?);
    let files = PieceFiles::new(objects.clone(), CACHE_MEMORY);
    let snapshots = Snapshots::new(catalog.clone(), CACHE_MEMORY).opening(keys);
    let intake = IntakeStores::new(snapshots, files, CACHE_MEMORY, Arc::clone(&ids));
    let (commits, committing) = commit_queue(settings, catalog, &intake, Meters::default().commits)?;
    let contents = Contents::new(catalog.clone(), objects, Arc::clone(&clock), Arc::clone(&ids));
    let importer = Importer {
        documents: Documents::new(catalog.clone(), Arc::clone(&clock), Arc::clone(&ids)),
        types: Types::new(
            registry,
            catalog.clone(),
            Arc::clone(&clock),
            Arc::clone(&ids),
            settings.limits.definitions,
        ),
        files: kept_files(settings, catalog, contents, &clock, &ids, None),
        catalog: catalog.clone(),
        intake,
        commits,
        source_prefix: Arc::from(settings.interface.source_prefix.as_str()),
    };
    let progress = Progress::new("files of the archive");
    let tell = |told| match told {
        ImportProgress::Members(total) => progress.expect(total),
        ImportProgress::Member => progress.advance(),
    };
    let imported = importer.import(archive, person, &tell).await;
    progress.finish();
    // The commit task ends when its queue has no senders left.
    drop(importer);
    let ended = committing.await;
    ended.map_err(Failed::from_error)?;
    imported.map_err(Failed::from_error)
}

/// The lines of the report.
fn report(imported: &Imported) -> String {
    let mut lines = vec![format!("person {}", imported.person)];
    lines.push(format!(
        "records: {} of {} types read; the person has {} more than before",
        imported.records, imported.types, imported.new_records
    ));
    lines.push(format!(
        "sources: {} read, {} new",
        imported.sources, imported.new_sources
    ));
    for (what, tally) in [
        ("data types", imported.data_types),
        ("annotations", imported.annotations),
        ("tags", imported.tags),
        ("reflections", imported.reflections),
        ("files", imported.files),
    ] {
        lines.push(format!("{what}: {}", tallied(tally)));
    }
    lines.push(format!("bytes of files: {} new", imported.new_bytes));
    lines.push(format!("preferences: {} new", imported.new_preferences));
    lines.extend(imported.notes.iter().map(|note| format!("note: {note}")));
    lines.join("\n") + "\n"
}

fn tallied(tally: Tally) -> String {
    let Tally {
        new,
        replaced,
        same,
        outdated,
    } = tally;
    let total = tally.total();
    format!(
        "{total} read, {new} new, {replaced} replaced, {same} here already, {outdated} changed here since"
    )
}
