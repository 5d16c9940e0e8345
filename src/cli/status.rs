//! `almanac users` and `almanac status`: who is stored here, and the state of the store. Both only read,
//! beside a running service or without one.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use crate::catalog::records::KnownPerson;
use crate::catalog::{Catalog, CatalogError, Sound, Subject};
use crate::model::clock::SystemClock;

use super::failed::Failed;
use super::settings::Settings;
use super::standard_output::print;
use super::{data_directory, installation, runtimes};

/// Prints everybody, one line each: id, types, records, name. Whose data is damaged is told apart from these.
pub(super) fn users(settings: &Settings) -> Result<(), Failed> {
    let (text, damaged) = looked(settings, listed)?;
    print(&text)?;
    if damaged.is_empty() {
        return Ok(());
    }
    let damaged: Vec<String> = damaged.iter().map(Subject::to_string).collect();
    let damaged = damaged.join("; ");
    Err(Failed::because(format!(
        "not listed, because something of theirs is damaged: {damaged}; run `almanac check`"
    )))
}

/// A line for each person, and who is not among them because of damage.
async fn listed(catalog: &Catalog) -> Result<(String, BTreeSet<Subject>), CatalogError> {
    let Sound {
        sound: people,
        set_aside: mut damaged,
    } = catalog.sound_people().await?;
    let mut text = String::new();
    for person in people {
        match line_of(catalog, &person).await {
            Ok(Some(line)) => {
                let _infallible = writeln!(text, "{line}");
            }
            Ok(None) => {}
            Err(CatalogError::Corrupt { .. }) => {
                damaged.insert(Subject::Person(person.id));
            }
            Err(error) => return Err(error),
        }
    }
    Ok((text, damaged))
}

/// What is said of a person; nothing of somebody who is being erased.
async fn line_of(catalog: &Catalog, person: &KnownPerson) -> Result<Option<String>, CatalogError> {
    if catalog.is_being_erased(person.id).await? {
        return Ok(None);
    }
    let partitions = catalog.partitions_of(person.id).await?;
    let records: i64 = partitions.iter().map(|partition| partition.records).sum();
    let name = person.name.as_deref().unwrap_or_default();
    let line = format!(
        "{}\t{} types\t{records} records\t{name}",
        person.id,
        partitions.len()
    );
    Ok(Some(line.trim_end().to_owned()))
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
        for damage in told.chain(tail.set_aside.iter().map(Subject::to_string)) {
            let _infallible = writeln!(text, "damaged: {damage}");
        }
        Ok(text)
    })?)
}

fn looked<T>(
    settings: &Settings,
    look: impl AsyncFnOnce(&Catalog) -> Result<T, CatalogError>,
) -> Result<T, Failed> {
    installation::needed(settings)?;
    let runtime = runtimes::one_thread()?;
    let found = runtime.block_on(async {
        let catalog = Catalog::open_beside(&settings.database_url, Arc::new(SystemClock)).await?;
        let found = look(&catalog).await;
        catalog.close().await;
        found
    });
    found.map_err(Failed::from_error)
}
