//! The command line: what was asked for, with which settings, and how it ended.
//!
//! Arguments, environment and file are read here, once, and nowhere else in the program. Exit status: 0 done,
//! 1 failed, 2 wrong usage.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ArgMatches;

mod arguments;
mod assembly;
mod background;
pub mod backup;
mod backups;
mod broken_part;
mod caches;
pub mod check;
mod closing;
mod copies;
mod data_directory;
mod demo;
mod dependencies;
mod descriptors;
mod export;
pub mod failed;
mod forgetting;
mod hosts;
mod huge_pages;
pub mod import;
mod init;
mod installation;
mod key;
mod logging;
mod orders;
mod plaintext;
mod progress;
mod query;
mod runtimes;
pub mod serve;
pub mod settings;
mod spill;
mod standard_error;
mod standard_output;
mod status;
mod stores;
mod token;
mod token_keys;
mod wrong_clock;

use crate::model::clock::{Clock as _, SystemClock};
use crate::model::nearest::{hint, nearest};

use failed::Failed;
use settings::given::{GivenSettings, Sources};
use settings::{Settings, SettingsError};
use standard_output::print;

/// Read if no other file is named and it exists.
const USUAL_FILE: &str = "almanac.toml";

const FILE_VARIABLE: &str = "ALMANAC_CONFIG";

/// The only command that never connects to the catalogue.
const WITHOUT_CATALOGUE: &str = "config";

/// The prefix of the variables of all settings.
const PREFIX: &str = "ALMANAC_";
/// The prefix of variables for tests of the service.
const TEST_PREFIX: &str = "ALMANAC_TEST_";

enum Problem {
    Arguments(clap::Error),
    Usage(SettingsError),
    Failed(Failed),
}

/// Runs the command in `arguments`.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    huge_pages::decline();
    let matches = match arguments::command().try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) => return explain(&error),
    };
    match dispatch(&matches) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Problem::Arguments(error)) => explain(&error),
        Err(Problem::Failed(failed)) => complain(&failed, failed.status()),
        Err(Problem::Usage(error)) => complain(&error, ExitCode::from(2)),
    }
}

/// Help goes to standard output with status 0, complaints to standard error with status 2.
fn explain(error: &clap::Error) -> ExitCode {
    // If printing fails, there is nobody to tell.
    let _printed = error.print();
    u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}

fn dispatch(matches: &ArgMatches) -> Result<(), Problem> {
    let (name, given) = matches.subcommand().ok_or_else(no_such_command)?;
    wrong_clock::refuse(SystemClock.now()).map_err(Problem::Failed)?;
    let environment = environment();
    let gathered = gathered(given, &environment).map_err(Problem::Usage)?;
    tell_of_misspelt_variables(&environment);
    let settings = Settings::from_given(&gathered).map_err(Problem::Usage)?;
    copies::refuse_unfinished(&settings).map_err(Problem::Usage)?;
    copies::refuse_what_is_elsewhere(&gathered, &settings).map_err(Problem::Usage)?;
    if name != WITHOUT_CATALOGUE {
        plaintext::refuse_unsafe_database(&settings).map_err(Problem::Failed)?;
    }
    let done = match name {
        "serve" => serve::run(settings, orders::serve(given)),
        "init" => init::run(&settings),
        "users" => status::users(&settings),
        "status" => status::status(&settings),
        "query" => query::run(&settings, &orders::query(given).map_err(Problem::Arguments)?),
        "token" => token::run(&settings, &orders::token(given).map_err(Problem::Arguments)?),
        "config" => print(&gathered.completed(&settings).to_string()),
        "check" => match orders::erased(given) {
            Some(person) => check::run_erased(&settings, person),
            None => check::run(&settings, orders::repairs(given)),
        },
        "key" => key::run(&settings, &orders::key(given).map_err(Problem::Arguments)?),
        "export" => export::run(&settings, &orders::export(given).map_err(Problem::Arguments)?),
        "import" => import::run(&settings, &orders::import(given)),
        "backup" => backup::run(&settings, &orders::backup(given)),
        _ => return Err(no_such_command()),
    };
    done.map_err(Problem::Failed)
}

/// Only the compiler needs it: clap has refused whatever is none of the commands.
fn no_such_command() -> Problem {
    Problem::Failed(Failed::because("there is no such command"))
}

/// The variables of the process and their values.
#[expect(clippy::disallowed_methods, reason = "this is where settings are read")]
fn environment() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}

/// All settings, as the user gave them.
fn gathered(
    given: &ArgMatches,
    environment: &[(OsString, OsString)],
) -> Result<GivenSettings, SettingsError> {
    let flag = |name: &str| given.try_get_one::<String>(name).ok().flatten().cloned();
    let variable = |name: &str| {
        environment
            .iter()
            .find(|(known, _)| known == name)
            .and_then(|(_, value)| value.to_str())
            .map(str::to_owned)
    };
    let unreadable = |name: &str| {
        environment
            .iter()
            .any(|(known, value)| known == name && value.to_str().is_none())
    };
    if let Some(name) = known_variables().find(|name| unreadable(name)) {
        return Err(SettingsError::Variable(name.to_owned()));
    }
    let named = flag(arguments::CONFIG)
        .or_else(|| variable(FILE_VARIABLE).filter(|path| !path.is_empty()))
        .map(PathBuf::from);
    GivenSettings::gathered(&Sources {
        flag: &flag,
        variable: &variable,
        file: file(named)?,
    })
}

/// The names of the variables that have an effect.
fn known_variables() -> impl Iterator<Item = &'static str> {
    let entries = settings::table::SETTINGS.iter();
    entries.map(|entry| entry.variable).chain([FILE_VARIABLE])
}

/// Reports variables that no setting has: somebody believes that they take effect.
fn tell_of_misspelt_variables(environment: &[(OsString, OsString)]) {
    let names = environment.iter().filter_map(|(name, _)| name.to_str());
    for name in names.filter(|name| name.starts_with(PREFIX) && !name.starts_with(TEST_PREFIX)) {
        if known_variables().any(|known| known == name) {
            continue;
        }
        let hint = hint(nearest(name, known_variables()));
        standard_error::tell(&format!("there is no setting {name}{hint}"));
    }
}

/// The settings file: the named one, which must exist, or the default one, which need not.
fn file(named: Option<PathBuf>) -> Result<Option<(PathBuf, String)>, SettingsError> {
    if named.as_ref().is_some_and(|path| path.as_os_str().is_empty()) {
        return Err(SettingsError::File {
            path: format!("--{}", arguments::CONFIG).into(),
            reason: "it names no file".to_owned(),
        });
    }
    let optional = named.is_none();
    let path = named.unwrap_or_else(|| Path::new(USUAL_FILE).to_owned());
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Some((path, text))),
        Err(error) if optional && error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(SettingsError::File {
            path,
            reason: error.to_string(),
        }),
    }
}

fn complain(error: &dyn std::error::Error, status: ExitCode) -> ExitCode {
    standard_error::tell(&error.to_string());
    status
}
