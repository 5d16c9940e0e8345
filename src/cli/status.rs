//! `almanac users` and `almanac status`: who is stored here, and the state of the store. Both only read,
//! beside a running service or without one.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::catalog::{Catalog, CatalogError};
use crate::model::clock::SystemClock;

use super::failed::Failed;
use super::settings::Settings;
use super::standard_output::print;
use super::{data_directory, installation, runtimes};

/// Prints everybody, one line each: id, types, records, name.
pub(super) fn users(settings: &Settings) -> Result<(), Failed> {
    print(&looked(settings, async |catalog| {
        let mut text = String::new();
        let erasures = catalog.erasures_under_way().await?;
        let is_being_erased = |person| erasures.iter().any(|erasure| erasure.person == Some(person));
        for person in catalog.people().await? {
            if is_being_erased(person.id) {
                continue;
            }
            let partitions = catalog.partitions_of(person.id).await?;
            let records: i64 = partitions.iter().map(|partition| partition.records).sum();
            let name = person.name.unwrap_or_default();
            let line = format!(
                "{}\t{} types\t{records} records\t{name}",
                person.id,
                partitions.len()
            );
            let _infallible = writeln!(text, "{}", line.trim_end());
        }
        Ok(text)
    })?)
}

/// Prints what an operator looks at first.
pub(super) fn status(settings: &Settings) -> Result<(), Failed> {
    let place = data_directory::shown(&settings.data_dir);
    print(&looked(settings, async |catalog| {
        let people = catalog.people_ids().await?.len();
        let objects = catalog.object_totals().await?;
        let tail = catalog.tail_backlog().await?;
        let waiting: i64 = tail.sound.iter().map(|tail| tail.rows).sum();
        let orphans = catalog.orphan_totals().await?;
        let damages = catalog.damages().await?;
        let mut text = format!(
            "data directory    {place}\n\
             people            {people}\n\
             objects           {} ({} bytes)\n\
             tail              {waiting} records in {} partitions\n\
             condemned objects {}\n\
             known damage      {}\n",
            objects.objects,
            objects.bytes,
            tail.sound.len(),
            orphans.condemned,
            damages.len() + tail.set_aside.len(),
        );
        let told = damages.iter().map(|(path, what)| format!("{path}: {what}"));
        for damage in told.chain(tail.set_aside.iter().cloned()) {
            let _infallible = writeln!(text, "damaged: {damage}");
        }
        Ok(text)
    })?)
}

fn looked(
    settings: &Settings,
    look: impl AsyncFnOnce(&Catalog) -> Result<String, CatalogError>,
) -> Result<String, Failed> {
    installation::needed(settings)?;
    let runtime = runtimes::one_thread()?;
    let text = runtime.block_on(async {
        let catalog = Catalog::open(&settings.database_url, Arc::new(SystemClock)).await?;
        let text = look(&catalog).await;
        catalog.close().await;
        text
    });
    text.map_err(Failed::from_error)
}
