//! Finds the installation that the settings name. Commands that need one say where they look, and make none:
//! one made by mistake would be empty, and would be taken for the right one.

use std::thread;

use crate::auth::keys::{FILE_NAME, SigningKey};
use crate::auth::settings::Provider;
use crate::catalog::{Catalog, FoundAt};
use crate::model::ids::PersonId;
use crate::store::objects::ObjectStorage;
use crate::upkeep::{identity, rebuild};

use super::failed::Failed;
use super::settings::Settings;
use super::{data_directory, runtimes, standard_error};

/// Where the installation is according to the settings.
fn place(settings: &Settings) -> String {
    let directory = data_directory::shown(&settings.data_dir);
    format!("{directory} (catalogue {})", settings.shown_database())
}

fn nothing_in(settings: &Settings) -> Failed {
    Failed::because(format!(
        "there is no installation in {}: `almanac init` or `almanac serve` makes one there, and --data-dir \
         or ALMANAC_DATA_DIR names another place",
        place(settings)
    ))
}

/// Where an object store has lost its catalogue. A new one would take all of its objects for garbage.
fn without_catalogue(settings: &Settings) -> Failed {
    Failed::because(format!(
        "there is no catalogue of the object store, which holds data, in {}: if it is lost, run `almanac \
         check --repair`, which makes it anew from the store; if it is elsewhere, correct \
         ALMANAC_DATABASE_URL",
        place(settings)
    ))
}

/// Names the installation that a command uses; refuses if there is none. The name goes to standard error,
/// since standard output is for results that others read.
pub(super) fn needed(settings: &Settings) -> Result<(), Failed> {
    // Tables alone are left where a service refused to start with the object store that it found.
    named(settings, |found| found == FoundAt::Catalogue)
}

/// Names the installation that a command uses; refuses only if there was never one. For commands that tell
/// what is wrong, also where a catalogue was lost.
pub(super) fn begun(settings: &Settings) -> Result<(), Failed> {
    named(settings, |found| found != FoundAt::Nothing)
}

fn named(settings: &Settings, suffices: impl Fn(FoundAt) -> bool) -> Result<(), Failed> {
    if !suffices(found_at(&settings.database_url)?) {
        return Err(if on_another_thread(|| is_stored(settings))? {
            without_catalogue(settings)
        } else {
            nothing_in(settings)
        });
    }
    tell_of(settings);
    Ok(())
}

fn tell_of(settings: &Settings) {
    standard_error::tell(&format!("using {}", place(settings)));
}

/// Names the installation that a command uses, which must issue tokens; returns its signing key.
pub(super) fn signing_key(settings: &Settings) -> Result<SigningKey, Failed> {
    let key = SigningKey::open(&settings.data_dir).map_err(Failed::from_error)?;
    needed(settings)?;
    key.ok_or_else(|| {
        Failed::because(format!(
            "there is no signing key in {}: `almanac init` or `almanac serve` makes one there",
            data_directory::shown(&settings.data_dir)
        ))
    })
}

/// Warns before the first signing key is made where there must have been another: a copy may lack it, or a
/// node may not have been given it.
pub(super) async fn warn_of_lost_signing_key(settings: &Settings, catalog: &Catalog) {
    let is_lacking = settings.identity.provider == Provider::Embedded
        && matches!(SigningKey::open(&settings.data_dir), Ok(None));
    if is_lacking && catalog.people_ids().await.is_ok_and(|people| !people.is_empty()) {
        tracing::warn!(
            "there are people in the catalogue, and no {FILE_NAME} in the data directory: a new one is made, \
             and tokens that were signed with another one are refused until that is back in its place"
        );
    }
}

/// Refuses a person who does not exist here, or who is being erased.
pub(super) async fn knows(catalog: &Catalog, person: PersonId) -> Result<(), Failed> {
    let exists = catalog.person_exists(person).await.map_err(Failed::from_error)?;
    if exists
        && !catalog
            .is_being_erased(person)
            .await
            .map_err(Failed::from_error)?
    {
        return Ok(());
    }
    Err(Failed::because(format!("there is no person {person}")))
}

/// Names the installation that is repaired, whose catalogue may be lost and is then made from what is stored,
/// in a data directory that is ours alone. Where neither exists, nothing was lost, and the directory or the
/// database is a wrong one.
pub(super) async fn repairable(settings: &Settings) -> Result<(), Failed> {
    if found_at(&settings.database_url)? == FoundAt::Nothing && !is_stored(settings).await? {
        return Err(Failed::because(format!(
            "{}; nothing is stored from which a catalogue could be made",
            nothing_in(settings)
        )));
    }
    tell_of(settings);
    if is_file_made(settings)? {
        data_directory::open(&settings.data_dir)?;
    }
    Ok(())
}

/// Whether the catalogue is a file that is not there, so that whoever opens it makes it.
fn is_file_made(settings: &Settings) -> Result<bool, Failed> {
    let file = Catalog::file_at(&settings.database_url).map_err(Failed::from_error)?;
    // Of one that may not be looked for, whoever opens it tells why.
    Ok(file.is_some_and(|file| matches!(file.try_exists(), Ok(false))))
}

/// Refuses to make a catalogue for an object store that has one, before anything is made: where the catalogue
/// was only moved away, SQLite would take what is left of the log of another one for its own.
pub(super) fn makeable(settings: &Settings) -> Result<(), Failed> {
    if settings.adopt_store || !is_file_made(settings)? {
        return Ok(());
    }
    on_another_thread(|| async {
        match ObjectStorage::found(&settings.objects).map_err(Failed::from_error)? {
            Some(objects) => identity::refuse_taken(&objects).await.map_err(Failed::from_error),
            None => Ok(()),
        }
    })
}

/// Whether the object store is one of ours, with or without a catalogue. Makes nothing there.
async fn is_stored(settings: &Settings) -> Result<bool, Failed> {
    match ObjectStorage::found(&settings.objects).map_err(Failed::from_error)? {
        Some(objects) => rebuild::is_ours(&objects).await.map_err(Failed::from_error),
        None => Ok(false),
    }
}

fn found_at(database_url: &str) -> Result<FoundAt, Failed> {
    on_another_thread(|| async { Catalog::found_at(database_url).await.map_err(Failed::from_error) })
}

/// Looks on a separate thread: the caller may or may not be inside a runtime.
fn on_another_thread<T, Looking>(look: impl FnOnce() -> Looking + Send) -> Result<T, Failed>
where
    T: Send,
    Looking: Future<Output = Result<T, Failed>>,
{
    let asked = thread::scope(|scope| {
        let asking = scope.spawn(|| runtimes::one_thread()?.block_on(look()));
        asking.join()
    });
    match asked {
        Ok(found) => found,
        Err(_) => Err(Failed::because(
            "whether there is an installation could not be found out",
        )),
    }
}
