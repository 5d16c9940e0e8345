//! The command line: what scripts rely on.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use sqlx::{Connection as _, Executor as _, SqliteConnection};
use tempfile::TempDir;
use uuid::Uuid;

use crate::harness::{Almanac, Backends, Setup, at, heart_rate, id, steps};

fn output(output: &Output) -> (String, String) {
    (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[test]
fn help_and_version_end_with_0() {
    let almanac = Setup::default().prepare();
    let help = almanac.run(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    for command in [
        "serve", "init", "token", "check", "backup", "config", "users", "status", "export", "import",
    ] {
        assert!(output(&help).0.contains(command), "{command} is not in the help");
    }
    let (token, _) = output(&almanac.run(&["token", "--help"]));
    assert!(
        token.contains("--days") && !token.contains("--flush-age"),
        "{token}"
    );
    let (serve, _) = output(&almanac.run(&["serve", "--help"]));
    assert!(serve.contains("--flush-age"), "{serve}");
    assert_eq!(almanac.run(&["--version"]).status.code(), Some(0));
}

#[test]
fn wrong_usage_ends_with_2() {
    let almanac = Setup::default().prepare();
    let user = Uuid::new_v4().to_string();
    for arguments in [
        &["no-such-command"][..],
        &["token"],
        &["token", "--user", "not-a-uuid"],
        &["serve", "--no-such-flag"],
        &["backup"],
        &["key", "rotate", "some"],
        &["key", "list", "some"],
        &["key", "rewrap", "some"],
        &["config", "--log", "almanac=loud"],
        &["config", "--cors-origins", "pages.example"],
        &["config", "--source-prefix", "com almanac"],
        &["config", "--query-deadline", "0"],
        &["config", "--algorithms", "none"],
        &["token", "--user", &Uuid::new_v4().to_string(), "--days", "many"],
        &["token", "--user", &user, "--name", ""],
        &["query", "SELECT 1", "--user", &user, "--output", "nonsense"],
        &["query", "SELECT 1", "--user", &user, "--parameters", "x"],
        &["query", "SELECT 1", "--user", &user, "--parameters", "1"],
    ] {
        let ended = almanac.run(arguments);
        assert_eq!(
            ended.status.code(),
            Some(2),
            "{arguments:?}: {:?}",
            output(&ended)
        );
        assert!(
            output(&ended).0.is_empty(),
            "{arguments:?} wrote to standard output"
        );
    }
}

#[test]
fn a_token_is_all_that_token_prints() {
    let almanac = Setup::default().prepare();
    assert!(almanac.run(&["init"]).status.success());
    let user = Uuid::new_v4().to_string();
    for arguments in [
        &["token", "--user", &user][..],
        &["token", "--user", &user, "--name", "Ada", "--days", "2"],
    ] {
        let ended = almanac.run(arguments);
        assert_eq!(ended.status.code(), Some(0), "{:?}", output(&ended));
        let (text, _) = output(&ended);
        let token = text.strip_suffix('\n').unwrap();
        assert_eq!(token.split('.').count(), 3, "{text}");
        assert!(!token.contains(char::is_whitespace), "{text}");
    }
}

#[test]
fn whoever_lost_the_signing_key_is_told_what_makes_another() {
    let almanac = Setup::default().prepare();
    assert!(almanac.run(&["init"]).status.success());
    let user = Uuid::new_v4().to_string();
    let token = || {
        let ended = almanac.run(&["token", "--user", &user]);
        (ended.status.code(), output(&ended).1)
    };
    let key = almanac.data_dir().join("signing.key");
    fs::write(&key, "no key").unwrap();
    let (status, told) = token();
    assert_eq!(status, Some(1));
    assert!(
        told.contains("delete it") && told.contains("almanac init"),
        "{told}"
    );
    fs::remove_file(&key).unwrap();
    let (status, told) = token();
    assert_eq!(status, Some(1));
    assert!(
        told.contains("there is no signing key in") && told.contains("almanac init"),
        "{told}"
    );
    assert!(!told.contains("there is no installation"), "{told}");
    assert!(almanac.run(&["init"]).status.success());
    assert_eq!(token().0, Some(0));
}

#[tokio::test]
async fn a_service_that_makes_another_signing_key_warns_that_tokens_are_refused() {
    let almanac = Almanac::start();
    let person = almanac.person();
    almanac.stop();
    assert!(
        !almanac.log().contains("tokens that were signed"),
        "{}",
        almanac.log()
    );
    fs::remove_file(almanac.data_dir().join("signing.key")).unwrap();
    almanac.launch();
    assert_eq!(person.get("/user/v1alpha1/session").await.status, 401);
    almanac.stop();
    let log = almanac.log();
    assert!(log.contains("tokens that were signed"), "{log}");
    assert!(log.contains("none of the keys that are trusted here"), "{log}");
}

/// How a command is tried where there is no installation, and whether it needs one.
fn tried<'a>(command: &str, user: &'a str, directory: &'a str) -> Option<Vec<Vec<&'a str>>> {
    Some(match command {
        "users" => vec![vec!["users"]],
        "status" => vec![vec!["status"]],
        "token" => vec![vec!["token", "--user", user]],
        "query" => vec![vec!["query", "SELECT 1", "--user", user]],
        "check" => vec![
            vec!["check"],
            vec!["check", "--erased", user],
            vec!["check", "--repair"],
        ],
        "key" => vec![
            vec!["key", "list"],
            vec!["key", "rotate"],
            vec!["key", "retire", "some"],
        ],
        "export" => vec![vec!["export", directory, "--user", user]],
        "backup" => vec![
            vec!["backup", directory],
            vec!["backup", directory, "--keep", "3"],
        ],
        // They make one, or tell of none.
        "serve" | "init" | "import" | "config" | "help" => return None,
        other => panic!("nobody says whether {other} needs an installation"),
    })
}

/// The commands that the program says it has.
fn commands(almanac: &Almanac) -> Vec<String> {
    let (help, _) = output(&almanac.run(&["--help"]));
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = listed.take_while(|line| !line.is_empty());
    commands
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .collect()
}

#[test]
fn no_command_makes_an_installation_by_mistake() {
    for backends in Backends::available() {
        let almanac = Setup::default().on(backends).prepare();
        let place = almanac.data_dir().display().to_string();
        let user = Uuid::new_v4().to_string();
        let target = TempDir::new().unwrap();
        let copies = target.path().join("copies");
        let commands = commands(&almanac);
        assert!(commands.len() > 10, "{commands:?}");
        // Twice: what the first try made would be found by the second.
        for command in commands.iter().chain(&commands) {
            for arguments in tried(command, &user, copies.to_str().unwrap())
                .into_iter()
                .flatten()
            {
                let ended = almanac.run(&arguments);
                assert_eq!(
                    ended.status.code(),
                    Some(1),
                    "{arguments:?}: {:?}",
                    output(&ended)
                );
                let (said, told) = output(&ended);
                assert!(
                    told.contains("there is no installation in") && told.contains(&place),
                    "{arguments:?}: {told}"
                );
                assert!(told.contains("catalogue"), "{arguments:?}: {told}");
                assert!(
                    !told.contains("postgres:postgres@"),
                    "{arguments:?} tells a password: {told}"
                );
                assert_eq!(said, "", "{arguments:?}");
                assert!(!almanac.data_dir().exists(), "{arguments:?} made a directory");
                assert!(!copies.exists(), "{arguments:?} made a directory of copies");
            }
        }
        assert!(almanac.run(&["init"]).status.success());
        for arguments in [
            &["users"][..],
            &["status"],
            &["check"],
            &["check", "--repair"],
            &["token", "--user", &user],
        ] {
            let ended = almanac.run(arguments);
            let (_, told) = output(&ended);
            assert_eq!(ended.status.code(), Some(0), "{arguments:?}: {told}");
            assert!(
                told.contains(&format!("almanac: using {place}")),
                "{arguments:?}: {told}"
            );
        }
    }
}

#[tokio::test]
async fn commands_beside_a_service_of_an_earlier_release_leave_its_catalogue_as_it_is() {
    let almanac = Setup::default().prepare();
    let user = almanac.person().id.to_string();
    let target = TempDir::new().unwrap();
    let copies = target.path().join("copies");
    let catalogue = format!("sqlite://{}", almanac.data_dir().join("catalogue.db").display());
    let mut connection = SqliteConnection::connect(&catalogue).await.unwrap();
    // As if the last migration were to come.
    for statement in [
        "DELETE FROM schema_versions WHERE version = 11",
        "DROP TABLE updated_days",
    ] {
        connection.execute(statement).await.unwrap();
    }
    connection.close().await.unwrap();
    for command in commands(&almanac).iter().filter(|command| *command != "key") {
        for arguments in tried(command, &user, copies.to_str().unwrap())
            .into_iter()
            .flatten()
        {
            if arguments.contains(&"--repair") {
                continue;
            }
            let ended = almanac.run(&arguments);
            let (_, told) = output(&ended);
            assert_eq!(ended.status.code(), Some(1), "{arguments:?}: {told}");
            assert!(told.contains("of an earlier release"), "{arguments:?}: {told}");
        }
    }
    assert!(almanac.run(&["init"]).status.success());
    assert!(almanac.run(&["status"]).status.success());
}

#[test]
fn a_repair_takes_no_other_directory_for_an_installation() {
    let target = TempDir::new().unwrap();
    let empty = target.path().join("empty");
    // As others would have it, with folders that are called like ours.
    let others = target.path().join("others");
    fs::create_dir(&empty).unwrap();
    fs::create_dir_all(others.join("objects/data")).unwrap();
    fs::write(others.join("objects/data/letter.txt"), "Dear Ada").unwrap();
    fs::set_permissions(&others, fs::Permissions::from_mode(0o755)).unwrap();
    for directory in [empty, others] {
        let listed = || -> Vec<_> {
            let entries = fs::read_dir(&directory).unwrap();
            entries.map(|entry| entry.unwrap().file_name()).collect()
        };
        let before = listed();
        let almanac = Setup::default().in_dir(&directory).prepare();
        // Twice: what the first try made would be found by the second.
        for _ in 0..2 {
            let ended = almanac.run(&["check", "--repair"]);
            let (said, told) = output(&ended);
            assert_eq!(ended.status.code(), Some(1), "{said}{told}");
            let place = directory.display().to_string();
            assert!(
                told.contains("there is no installation in") && told.contains(&place),
                "{told}"
            );
            assert_eq!((said.as_str(), listed()), ("", before.clone()));
        }
    }
}

#[test]
fn what_cannot_be_imported_makes_no_installation() {
    let almanac = Setup::default().prepare();
    let target = TempDir::new().unwrap();
    let foreign = target.path().join("foreign");
    fs::write(&foreign, "no archive").unwrap();
    for archive in [target.path().join("absent"), foreign] {
        let ended = almanac.run(&["import", archive.to_str().unwrap()]);
        assert_eq!(ended.status.code(), Some(1), "{:?}", output(&ended));
        assert!(
            !almanac.data_dir().exists(),
            "{} made a directory",
            archive.display()
        );
    }
}

#[tokio::test]
async fn an_id_that_an_order_does_not_take_changes_no_key() {
    let server = Almanac::start();
    let keys = || output(&server.run(&["key", "list"])).0;
    let before = keys();
    let ended = server.run(&["key", "rotate", "some"]);
    assert_eq!(ended.status.code(), Some(2), "{:?}", output(&ended));
    let complaint = output(&ended).1;
    assert!(
        complaint.contains("some") && complaint.contains("Usage: almanac key"),
        "{complaint}"
    );
    assert_eq!(keys(), before);
}

#[tokio::test]
async fn users_and_status_tell_what_is_stored() {
    let server = Almanac::start();
    let person = server.person();
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    let (users, _) = output(&server.run(&["users"]));
    assert_eq!(users, format!("{}\t1 types\t1 records\n", person.id));
    let (status, _) = output(&server.run(&["status"]));
    assert!(status.contains("people            1\n"), "{status}");
    assert!(
        status.contains(&server.data_dir().display().to_string()),
        "{status}"
    );
}

#[tokio::test]
async fn a_query_prints_its_rows_and_nothing_else_and_a_wrong_one_what_is_wrong() {
    for backends in Backends::available() {
        let server = Setup::default().on(backends).start();
        let person = server.person();
        person
            .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
            .await;
        let user = person.id.to_string();
        let ask = |text: &str, more: &[&str]| {
            let ended = server.run(&[&["query", text, "--user", &user], more].concat());
            (ended.status.code(), output(&ended))
        };
        let (status, (rows, told)) = ask(
            "SELECT value FROM heart_rate WHERE value > $1",
            &["--parameters", "[59]", "--output", "csv"],
        );
        assert_eq!((status, rows.trim()), (Some(0), "value\n60.0"), "{told}");
        let (status, (rows, told)) = ask("SELECT value FROM heartrate", &[]);
        assert_eq!((status, rows.as_str()), (Some(1), ""));
        assert!(
            told.contains("line 1, column 19") && told.contains("did you mean heart_rate?"),
            "{told}"
        );
        let nobody = Uuid::new_v4().to_string();
        let ended = server.run(&["query", "SELECT 1", "--user", &nobody]);
        assert_eq!(ended.status.code(), Some(1), "{:?}", output(&ended));
        let (users, _) = output(&server.run(&["users"]));
        assert!(!users.contains(&nobody), "{users}");
    }
}

#[test]
fn a_variable_that_is_no_setting_is_told() {
    let almanac = Setup::default().with("ALMANAC_FLUSH_AEG", "1s").prepare();
    let (_, told) = output(&almanac.run(&["config"]));
    assert!(
        told.contains("there is no setting ALMANAC_FLUSH_AEG; did you mean ALMANAC_FLUSH_AGE?"),
        "{told}"
    );
}

#[tokio::test]
async fn a_token_made_before_the_first_start_is_good_after_it() {
    let almanac = Setup::default().prepare();
    let user = Uuid::new_v4();
    let token = almanac.token(user);
    almanac.launch();
    almanac
        .nobody()
        .showing(token)
        .get("/data/v0/metrics_catalog")
        .await
        .must_be(200);
}

#[test]
fn the_data_directory_is_the_operators_alone() {
    let almanac = Almanac::start();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        mode(almanac.data_dir()),
        0o700,
        "nobody else gets further than this"
    );
    let entries = fs::read_dir(almanac.data_dir())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let keys: Vec<_> = entries
        .filter(|path| path.to_string_lossy().contains("key"))
        .collect();
    assert!(!keys.is_empty(), "no signing key");
    for key in keys {
        assert_eq!(mode(&key), 0o600, "{}", key.display());
    }
}

#[test]
fn config_prints_every_setting_its_value_and_where_it_came_from() {
    let almanac = Setup::default().with("ALMANAC_LOG_FORMAT", "json").prepare();
    let ended = almanac.run(&["config"]);
    assert_eq!(ended.status.code(), Some(0), "{:?}", output(&ended));
    let (text, _) = output(&ended);
    let line = |name: &str| {
        text.lines()
            .find(|line| line.to_lowercase().replace(['-', '.'], "_").contains(name))
            .unwrap_or_else(|| panic!("no {name} in\n{text}"))
    };
    assert!(
        line("log_format").contains("json") && line("log_format").to_lowercase().contains("environment"),
        "{}",
        line("log_format")
    );
    assert!(
        line("user_claim").contains("svc_userid") && line("user_claim").contains("default"),
        "{}",
        line("user_claim")
    );
    for name in [
        "listen",
        "data_dir",
        "public_url",
        "database_url",
        "object_store",
        "jwks_url",
        "issuer",
        "audience",
        "cors_origins",
        "memory_limit",
        "cache_memory",
        "source_prefix",
    ] {
        line(name);
    }
}

#[test]
fn flags_beat_the_environment_and_the_environment_beats_the_file() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("settings.toml");
    fs::write(
        &file,
        "log_format = \"json\"\nuser_claim = \"from_the_file\"\nsource_prefix = \"org.file\"\n",
    )
    .unwrap();
    let almanac = Setup::default()
        .with("ALMANAC_SOURCE_PREFIX", "org.environment")
        .prepare();
    let ended = almanac.run(&["config", "--config", file.to_str().unwrap()]);
    assert_eq!(ended.status.code(), Some(0), "{:?}", output(&ended));
    let (text, _) = output(&ended);
    assert!(text.contains("from_the_file"), "{text}");
    assert!(
        text.contains("org.environment") && !text.contains("org.file"),
        "{text}"
    );
}

#[test]
fn a_setting_that_cannot_be_is_refused_at_the_start() {
    for (name, value) in [
        ("ALMANAC_LISTEN", "nowhere"),
        ("ALMANAC_DATABASE_URL", "mysql://localhost/x"),
        ("ALMANAC_OBJECT_STORE", "ftp://x"),
        ("ALMANAC_MEMORY_LIMIT", "a lot"),
        ("ALMANAC_LOG", "almanac=loud"),
        ("ALMANAC_LOG", "warning"),
        ("ALMANAC_SOURCE_PREFIX", "com almanac"),
        ("ALMANAC_CORS_ORIGINS", "pages.example"),
    ] {
        // Given to the command itself: what it would serve on must not matter.
        let almanac = Setup::default().prepare();
        let mut started = almanac.command(&["serve"]);
        let started = started
            .env(name, value)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let ended = ends_soon(started.spawn().unwrap()).unwrap_or_else(|| panic!("{name}={value} is served"));
        assert_eq!(
            ended.status.code(),
            Some(2),
            "{name}={value}: {:?}",
            output(&ended)
        );
        assert!(
            output(&ended).1.contains(value),
            "{name}={value} is not named: {:?}",
            output(&ended)
        );
    }
}

#[test]
fn an_address_that_is_taken_is_named_at_the_start() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (name, flag) in [
        ("ALMANAC_LISTEN", "--listen"),
        ("ALMANAC_OPERATIONS_ADDRESS", "--operations-address"),
    ] {
        let almanac = Setup::default().prepare();
        let mut started = almanac.command(&["serve"]);
        let started = started
            .env("ALMANAC_LISTEN", "127.0.0.1:0")
            .env(name, &taken)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let ended = ends_soon(started.spawn().unwrap()).unwrap_or_else(|| panic!("{name} is served"));
        let (_, told) = output(&ended);
        assert_eq!(ended.status.code(), Some(1), "{told}");
        assert!(told.contains(&format!("cannot listen on {taken}")), "{told}");
        assert!(
            told.contains(&format!("choose another address with {flag}")),
            "{told}"
        );
    }
}

/// What a command that has no reason to go on ended with; `None`, and it is killed, when it goes on.
fn ends_soon(mut child: Child) -> Option<Output> {
    let deadline = Instant::now() + Duration::from_secs(20);
    while Instant::now() < deadline {
        if child.try_wait().unwrap().is_some() {
            return child.wait_with_output().ok();
        }
        thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    None
}

#[tokio::test]
async fn check_finds_nothing_wrong_with_what_was_written() {
    for backends in Backends::available() {
        let almanac = Setup::default().busy_upkeep().on(backends).start();
        let person = almanac.person();
        for round in 0..5 {
            let records: Vec<_> = (0..50)
                .map(|n| heart_rate(id(round * 25 + n), &at("10:00"), f64::from(round)))
                .collect();
            person.records("HeartRate", &records).await;
        }
        person.delete("HeartRate", id(3)).await;
        let ended = almanac.run(&["check"]);
        assert_eq!(
            ended.status.code(),
            Some(0),
            "while it runs: {:?}",
            output(&ended)
        );
        almanac.stop();
        let ended = almanac.run(&["check"]);
        assert_eq!(ended.status.code(), Some(0), "at rest: {:?}", output(&ended));
    }
}

#[tokio::test]
async fn a_backup_made_while_people_write_can_be_served() {
    let almanac = Setup::default().busy_upkeep().start();
    let person = almanac.person();
    let records: Vec<_> = (0..2000)
        .map(|n| heart_rate(id(n), &crate::harness::instant(n), 60))
        .collect();
    person.records("HeartRate", &records).await;
    person
        .records("StepCount", &[steps(id(1), &at("10:00"), &at("10:05"), 100)])
        .await;
    person.delete("HeartRate", id(7)).await;
    almanac.until_objects(1).await;
    let own_type = person.define("Event", &serde_json::json!({"name": "Tea"})).await;
    person
        .records(
            &own_type,
            &[serde_json::json!({"id": id(1), "start_time": at("10:00")})],
        )
        .await;

    let home = TempDir::new().unwrap();
    let copy = home.path().join("copy");
    let ended = almanac.run(&["backup", copy.to_str().unwrap()]);
    assert_eq!(ended.status.code(), Some(0), "{:?}", output(&ended));
    person
        .records("HeartRate", &[heart_rate(id(9999), &at("23:00"), 99)])
        .await;

    let restored = Setup::default().in_dir(&copy).start();
    let there = restored.person_called(person.id);
    let samples = there.all_samples("HeartRate").await;
    assert_eq!(samples.len(), 1999);
    assert_eq!(there.all_samples("StepCount").await.len(), 1);
    assert_eq!(there.rows("event", &own_type).await.len(), 1);
    let old_token = there.showing(person.token());
    old_token.get("/data/v0/metrics_catalog").await.must_be(200);
    assert_eq!(restored.run(&["check"]).status.code(), Some(0));
}

#[tokio::test]
async fn a_backup_never_writes_into_what_is_there() {
    let almanac = Setup::default().start();
    let target = TempDir::new().unwrap();
    fs::write(target.path().join("mine"), "precious").unwrap();
    let ended = almanac.run(&["backup", target.path().to_str().unwrap()]);
    assert_ne!(ended.status.code(), Some(0), "{:?}", output(&ended));
    assert_eq!(
        fs::read_to_string(target.path().join("mine")).unwrap(),
        "precious"
    );
    assert_eq!(fs::read_dir(target.path()).unwrap().count(), 1);
}

#[test]
fn an_empty_variable_names_no_file_of_settings() {
    let almanac = Setup::default().with("ALMANAC_CONFIG", "").prepare();
    let ended = almanac.run(&["config"]);
    assert_eq!(ended.status.code(), Some(0), "{:?}", output(&ended));
}

#[tokio::test]
async fn backups_are_dated_and_the_newest_are_kept() {
    let server = Almanac::start();
    let person = server.person();
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    let home = TempDir::new().unwrap();
    let place = home.path().join("backups");
    let names = || {
        let entries = fs::read_dir(&place)
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.filter_map(|name| name.into_string().ok()).collect();
        names.retain(|name| !name.starts_with('.'));
        names.sort();
        names
    };
    let back_up = || output(&server.run(&["backup", place.to_str().unwrap(), "--keep", "2"]));
    fs::create_dir_all(place.join("almanac-2020-01-01T000000Z")).unwrap();
    fs::create_dir_all(place.join("almanac-2020-01-02T000000Z.unfinished")).unwrap();
    fs::create_dir_all(place.join("mine")).unwrap();
    let (told, complaint) = back_up();
    assert!(told.contains("kept, 0 older removed"), "{told}{complaint}");
    let copied = told
        .lines()
        .find_map(|line| line.strip_prefix("copied")?.split_once(" to "));
    let copied = copied.map(|(_, place)| place.to_owned());
    assert!(copied.is_some_and(|place| Path::new(&place).is_dir()), "{told}");
    let first = names();
    assert_eq!(first.len(), 3, "{first:?}");
    // Perhaps in the same second.
    let (told, complaint) = back_up();
    assert!(told.contains("kept, 1 older removed"), "{told}{complaint}");
    let second = names();
    assert_eq!(second.len(), 3, "{second:?}");
    assert!(
        second.contains(&first[1]) && second.contains(&"mine".to_owned()),
        "{second:?}"
    );
    let checked = server.run(&["check", "--data-dir", place.join(&second[1]).to_str().unwrap()]);
    assert!(checked.status.success(), "{:?}", output(&checked));
    // Where nobody can be told, older ones go all the same.
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut untold = server.command(&["backup", place.to_str().unwrap(), "--keep", "2"]);
    let untold = untold.stdout(full).output().unwrap();
    assert!(!untold.status.success(), "{:?}", output(&untold));
    let third = names();
    assert!(third.len() == 3 && third != second, "{third:?}");
}
