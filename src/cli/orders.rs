//! The orders that the command line gives, read from its arguments.

use std::path::PathBuf;

use clap::ArgMatches;
use clap::error::ErrorKind;
use serde_json::Value;
use uuid::Uuid;

use crate::auth::reach::Reach;
use crate::model::ids::PersonId;
use crate::model::registry::TypeId;

use super::arguments::{
    ACCEPT_LOSS, ACTION, ARCHIVE, DAYS, DEMO, DIRECTORY, ERASED, KEEP, KEY, NAME, OUTPUT, PARAMETERS, REPAIR,
    RETIRE, REWRAP, ROTATE, SCOPE, TEXT, TYPES, USER, key_command,
};
use super::backup::BackupOrder;
use super::check::Repairs;
use super::export::ExportOrder;
use super::import::ImportOrder;
use super::key::{KeyOrder, SigningOrder};
use super::query::QueryOrder;
use super::serve::ServeOrder;
use super::token::NewTokenOrder;

/// The order for `serve`.
pub(super) fn serve(given: &ArgMatches) -> ServeOrder {
    if given.get_flag(DEMO) {
        ServeOrder::WithSample
    } else {
        ServeOrder::Stored
    }
}

/// The order for `token`.
pub(super) fn token(given: &ArgMatches) -> Result<NewTokenOrder, clap::Error> {
    Ok(NewTokenOrder {
        person: required_person(given)?,
        name: given.get_one::<String>(NAME).cloned(),
        days: given.get_one::<u64>(DAYS).copied(),
        reach: Reach {
            scope: given.get_one::<String>(SCOPE).and_then(|name| name.parse().ok()),
            types: given
                .get_many::<String>(TYPES)
                .map(|types| types.map(|name| TypeId::new(name)).collect()),
        },
    })
}

/// The order for `query`.
pub(super) fn query(given: &ArgMatches) -> Result<QueryOrder, clap::Error> {
    let text = |name: &str| given.get_one::<String>(name).cloned();
    Ok(QueryOrder {
        person: required_person(given)?,
        text: text(TEXT).unwrap_or_default(),
        parameters: given.get_one::<Value>(PARAMETERS).cloned(),
        output: text(OUTPUT).unwrap_or_default(),
    })
}

/// The order for `key`. An id with an action that takes none is refused: whoever gives one believes that it
/// has an effect.
pub(super) fn key(given: &ArgMatches) -> Result<KeyOrder, clap::Error> {
    let key = given.get_one::<String>(KEY);
    let order = match given.get_one::<String>(ACTION).map(String::as_str) {
        Some(RETIRE) => {
            let key = key.cloned().unwrap_or_default();
            return Ok(KeyOrder::Signing(SigningOrder::Retire(key)));
        }
        Some(ROTATE) => KeyOrder::Signing(SigningOrder::Rotate),
        Some(REWRAP) => KeyOrder::Rewrap,
        _ => KeyOrder::Signing(SigningOrder::List),
    };
    match key {
        None => Ok(order),
        Some(key) => {
            let surplus =
                format!("only `almanac key {RETIRE}` takes the id of a key; {key:?} is one too many\n");
            let mut usage = key_command().bin_name("almanac key");
            Err(usage.error(ErrorKind::UnknownArgument, surplus))
        }
    }
}

/// What `check` repairs.
pub(super) fn repairs(given: &ArgMatches) -> Repairs {
    match (given.get_flag(REPAIR), given.get_flag(ACCEPT_LOSS)) {
        (false, _) => Repairs::Nothing,
        (true, false) => Repairs::WhatCanBeRebuilt,
        (true, true) => Repairs::AcceptingLoss,
    }
}

/// The person of whom `check` must find nothing.
pub(super) fn erased(given: &ArgMatches) -> Option<PersonId> {
    given.get_one::<Uuid>(ERASED).copied().map(PersonId)
}

/// Where `backup` writes, and how many backups are kept.
pub(super) fn backup(given: &ArgMatches) -> BackupOrder {
    let directory = given.get_one::<PathBuf>(DIRECTORY).cloned().unwrap_or_default();
    match given.get_one::<u64>(KEEP) {
        None => BackupOrder::Into(directory),
        Some(kept) => BackupOrder::Among {
            directory,
            kept: usize::try_from(*kept).unwrap_or(usize::MAX),
        },
    }
}

/// Whose archive `export` writes, and where.
pub(super) fn export(given: &ArgMatches) -> Result<ExportOrder, clap::Error> {
    Ok(ExportOrder {
        archive: given.get_one::<PathBuf>(ARCHIVE).cloned().unwrap_or_default(),
        person: required_person(given)?,
    })
}

/// Which archive `import` reads, and for whom.
pub(super) fn import(given: &ArgMatches) -> ImportOrder {
    ImportOrder {
        archive: given.get_one::<PathBuf>(ARCHIVE).cloned().unwrap_or_default(),
        person: person(given),
    }
}

/// The person whom a command is about, if one was named.
fn person(given: &ArgMatches) -> Option<PersonId> {
    given.get_one::<Uuid>(USER).copied().map(PersonId)
}

/// The same where one must be named. Without one, nothing may be done for the nil id instead.
fn required_person(given: &ArgMatches) -> Result<PersonId, clap::Error> {
    person(given).ok_or_else(|| {
        let missing = format!("--{USER} is missing\n");
        clap::Error::raw(ErrorKind::MissingRequiredArgument, missing)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::arguments::command;

    #[test]
    fn nobody_is_nobody_and_not_the_nil_id() {
        let given = command()
            .try_get_matches_from(["almanac", "import", "a.zip"])
            .unwrap();
        let (_, given) = given.subcommand().unwrap();
        assert_eq!(import(given).person, None);
        assert_eq!(required_person(given).unwrap_err().exit_code(), 2);
    }
}
