//! The structure of the command line. Flags for settings come from the table of settings.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Arg, ArgAction, Command, value_parser};
use serde_json::Value;
use uuid::Uuid;

use crate::auth::reach::Scope;
use crate::output::OutputMethod;

use super::settings::table::SETTINGS;

const SERVE: &str = "serve";
pub(super) const CONFIG: &str = "config";
pub(super) const DEMO: &str = "demo";
pub(super) const REPAIR: &str = "repair";
pub(super) const ACCEPT_LOSS: &str = "accept-loss";
pub(super) const ERASED: &str = "erased";
pub(super) const USER: &str = "user";
pub(super) const NAME: &str = "name";
pub(super) const DAYS: &str = "days";
pub(super) const SCOPE: &str = "scope";
pub(super) const TYPES: &str = "types";
pub(super) const TEXT: &str = "text";
pub(super) const PARAMETERS: &str = "parameters";
pub(super) const OUTPUT: &str = "output";
pub(super) const DIRECTORY: &str = "directory";
pub(super) const KEEP: &str = "keep";
pub(super) const ACTION: &str = "action";
pub(super) const ROTATE: &str = "rotate";
const LIST: &str = "list";
pub(super) const RETIRE: &str = "retire";
pub(super) const REWRAP: &str = "rewrap";
pub(super) const KEY: &str = "key";
pub(super) const ARCHIVE: &str = "archive";

pub(super) fn command() -> Command {
    Command::new("almanac")
        .about("One store per person for everything they measure")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(serve_command())
        .subcommand(configured("init", "Make an installation, if there is none"))
        .subcommand(configured("users", "List everybody who is stored here"))
        .subcommand(configured(
            "status",
            "Show what is stored, what waits, and what is damaged",
        ))
        .subcommand(token_command())
        .subcommand(query_command())
        .subcommand(configured(
            "config",
            "Print every setting, its value and where it came from",
        ))
        .subcommand(check_command())
        .subcommand(key_command())
        .subcommand(backup_command())
        .subcommand(export_command())
        .subcommand(import_command())
}

/// `almanac serve`.
fn serve_command() -> Command {
    configured(SERVE, "Start the service").arg(
        Arg::new(DEMO)
            .long(DEMO)
            .action(ArgAction::SetTrue)
            .help("Also load the sample person, once, and print a token and requests to try"),
    )
}

/// `almanac check`.
fn check_command() -> Command {
    configured("check", "Verify the catalogue and every object")
        .arg(
            Arg::new(REPAIR)
                .long(REPAIR)
                .action(ArgAction::SetTrue)
                .help("Rebuild what can be rebuilt"),
        )
        .arg(
            Arg::new(ACCEPT_LOSS)
                .long(ACCEPT_LOSS)
                .requires(REPAIR)
                .action(ArgAction::SetTrue)
                .help("Give up rows that the catalogue has lost: take what is there for all that there was"),
        )
        .arg(
            Arg::new(ERASED)
                .long(ERASED)
                .conflicts_with(REPAIR)
                .value_name("UUID")
                .value_parser(value_parser!(Uuid))
                .help("Only look for what is left of a person who was erased, everywhere"),
        )
}

/// `almanac key`.
pub(super) fn key_command() -> Command {
    configured(
        "key",
        "List or change the keys that sign tokens, or wrap the keys of people anew",
    )
    .arg(
        Arg::new(ACTION)
            .required(true)
            .value_name("rotate|list|retire|rewrap")
            .value_parser([ROTATE, LIST, RETIRE, REWRAP])
            .help(
                "rotate: sign tokens with a new key, and still accept those of earlier keys; retire: accept \
                 no tokens of a key any more; rewrap: wrap the keys of people with the present master key or \
                 key service",
            ),
    )
    .arg(
        Arg::new(KEY)
            .value_name("ID")
            .required_if_eq(ACTION, RETIRE)
            .help("The key to retire"),
    )
}

/// `almanac export`.
fn export_command() -> Command {
    configured(
        "export",
        "Write everything that a person has into one archive, while the service runs or not",
    )
    .arg(archive_file().help("The file to make, as `almanac import` reads it"))
    // Earlier builds took the nil id for somebody, whose data is to get out.
    .arg(
        user()
            .value_parser(value_parser!(Uuid))
            .required(true)
            .help("The person's id"),
    )
}

/// `almanac import`.
fn import_command() -> Command {
    configured(
        "import",
        "Bring back an archive of everything that a person has, while the service runs or not",
    )
    .arg(archive_file().help(
        "The archive, as `almanac export` wrote it or as it was fetched from \
         /user/v1alpha1/export/{id}/content",
    ))
    .arg(user().help("The person to import it for, if not the one whose archive it is"))
}

/// `almanac token`.
fn token_command() -> Command {
    configured(
        "token",
        "Print an access token for a person, who is created if new",
    )
    .arg(user().required(true).help("The person's id"))
    .arg(
        Arg::new(NAME)
            .long(NAME)
            .value_name("NAME")
            .help("What to call the session, and the person if they are new"),
    )
    .arg(
        Arg::new(DAYS)
            .long(DAYS)
            .value_name("N")
            .value_parser(value_parser!(u64).range(1..=36_500))
            .help("How long the token is accepted; if not given, 365, or as long as the settings allow"),
    )
    .arg(
        Arg::new(SCOPE)
            .long(SCOPE)
            .value_name("read|write")
            .value_parser([Scope::Read.name(), Scope::Write.name()])
            .help("Make a token that only reads, or only sends records and files"),
    )
    .arg(
        Arg::new(TYPES)
            .long(TYPES)
            .value_name("TYPE,…")
            .value_delimiter(',')
            .value_parser(NonEmptyStringValueParser::new())
            .help("Make a token for records of these types only"),
    )
}

/// `almanac backup`.
fn backup_command() -> Command {
    configured(
        "backup",
        "Copy everything into a directory, while the service runs",
    )
    .arg(
        Arg::new(DIRECTORY)
            .required(true)
            .value_name("DIR")
            .value_parser(value_parser!(PathBuf))
            .help("A new or empty directory; with --keep, the directory of all backups"),
    )
    .arg(
        Arg::new(KEEP)
            .long(KEEP)
            .value_name("N")
            .value_parser(value_parser!(u64).range(1..=10_000))
            .help("Copy into a directory of DIR named for the time, and remove all but the newest N"),
    )
}

/// `almanac query`.
fn query_command() -> Command {
    configured("query", "Answer one query in SQL about a person")
        .arg(
            Arg::new(TEXT)
                .required(true)
                .value_name("SQL")
                .help("One SELECT, EXPLAIN or EXPLAIN ANALYZE"),
        )
        .arg(user().required(true).help("The person who asks"))
        .arg(
            Arg::new(PARAMETERS)
                .long(PARAMETERS)
                .value_name("JSON")
                .value_parser(json)
                .help("Values: a list for $1, $2, or an object for $name"),
        )
        .arg(
            Arg::new(OUTPUT)
                .long(OUTPUT)
                .value_name("METHOD")
                .value_parser(OutputMethod::ALL.map(OutputMethod::name))
                .default_value("jstable")
                .help("The form of the rows, as in `output` of the interface"),
        )
}

/// JSON text with an array or an object.
fn json(text: &str) -> Result<Value, String> {
    match serde_json::from_str(text) {
        Ok(value @ (Value::Array(_) | Value::Object(_))) => Ok(value),
        Ok(_) => Err("expected a list or an object".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// `--user`.
fn user() -> Arg {
    Arg::new(USER)
        .long(USER)
        .value_name("UUID")
        .value_parser(somebody)
}

/// The id of somebody. The nil id stands for whoever was erased, so nobody has it.
fn somebody(text: &str) -> Result<Uuid, String> {
    match Uuid::parse_str(text) {
        Ok(id) if id.is_nil() => Err("this is the id of nobody".to_owned()),
        parsed => parsed.map_err(|error| error.to_string()),
    }
}

/// The file of an archive.
fn archive_file() -> Arg {
    Arg::new(ARCHIVE)
        .required(true)
        .value_name("ARCHIVE")
        .value_parser(value_parser!(PathBuf))
}

/// A command that takes the settings as flags.
fn configured(name: &'static str, about: &'static str) -> Command {
    let file = Arg::new(CONFIG)
        .long(CONFIG)
        .value_name("FILE")
        .help("Settings file instead of almanac.toml (ALMANAC_CONFIG)");
    let settings = SETTINGS.iter().filter(|entry| !entry.secret).map(|entry| {
        let default = if entry.default.is_empty() {
            String::new()
        } else {
            format!(" [{}]", entry.default)
        };
        // The help of a command does not list the settings; that of `serve` does.
        Arg::new(entry.name)
            .hide(name != SERVE)
            .long(entry.flag)
            .value_name("VALUE")
            .help(format!("{}{default} ({})", entry.help, entry.variable))
            .help_heading("Settings")
    });
    let command = Command::new(name).about(about).arg(file).args(settings);
    if name == SERVE {
        command
    } else {
        command.after_help("Every setting can be given as a flag; `almanac serve --help` lists them.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_holds_together() {
        command().debug_assert();
    }

    #[test]
    fn every_setting_but_secrets_is_a_flag() {
        let command = command();
        let serve = command.find_subcommand("serve").unwrap();
        for entry in SETTINGS {
            let flag = serve
                .get_arguments()
                .find(|argument| argument.get_id() == entry.name);
            assert_eq!(flag.is_none(), entry.secret, "{}", entry.name);
        }
    }

    #[test]
    fn a_value_may_begin_with_a_hyphen_after_an_equals_sign() {
        let given = command()
            .try_get_matches_from(["almanac", "config", "--object-store=-store"])
            .unwrap();
        let (_, given) = given.subcommand().unwrap();
        assert_eq!(given.get_one::<String>("object_store").unwrap(), "-store");
    }

    const SOMEBODY: &str = "0191f000-0000-7000-8000-000000000001";
    const NOBODY: &str = "00000000-0000-0000-0000-000000000000";

    #[test]
    fn wrong_usage_is_status_2() {
        for arguments in [
            vec!["almanac", "fly"],
            vec!["almanac", "token"],
            vec!["almanac", "token", "--user", "me"],
            vec!["almanac", "token", "--user", NOBODY],
            vec!["almanac", "token", "--user", SOMEBODY, "--types", ""],
            vec![
                "almanac",
                "token",
                "--user",
                SOMEBODY,
                "--types",
                "Weight,,HeartRate",
            ],
            // A flag is no value of the one before it.
            vec!["almanac", "serve", "--object-store", "--demo"],
            vec!["almanac", "config", "--object-store", "--config", "a.toml"],
            vec!["almanac", "import"],
            vec!["almanac", "export", "a.zip"],
            vec!["almanac", "import", "a.zip", "--user", "me"],
        ] {
            assert_eq!(
                command()
                    .try_get_matches_from(&arguments)
                    .unwrap_err()
                    .exit_code(),
                2,
                "{arguments:?}"
            );
        }
    }
}
