//! One damaged bit, in an object or in the catalogue, is an error that can be looked up, and never a wrong
//! answer.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use sqlx::{Connection as _, Executor as _, Row as _, SqliteConnection};

use crate::harness::{Almanac, Call, Person, Reply, Setup, Table, heart_rate, id, instant, until};

const ROWS: u32 = 3000;

async fn with_rows(server: &Almanac) -> Person {
    let person = server.person();
    let records: Vec<Value> = (0..ROWS)
        .map(|n| heart_rate(id(n), &instant(n), n % 97))
        .collect();
    person.records("HeartRate", &records).await;
    person
}

fn read(person: &Person) -> Call {
    person
        .metric_samples("HeartRate", "2024-05-01", "2024-06-01")
        .with("output", "ndjson")
}

/// Whether an answer holds all rows with their values.
fn is_right(reply: &Reply) -> bool {
    let table = Table::read("ndjson", &reply.body);
    table.rows.len() == ROWS as usize
        && table
            .rows
            .iter()
            .zip(0..)
            .all(|(row, n)| row["value"].as_f64() == Some(f64::from(n % 97)))
}

/// The object that all rows are in, once the catalogue says so: until then they are read from elsewhere.
async fn until_in_one_object(server: &Almanac) -> PathBuf {
    until(async || {
        let address = format!("sqlite://{}", catalogue_of(server).display());
        let mut connection = SqliteConnection::connect(&address).await.unwrap();
        let pieces = connection.fetch_all("SELECT path FROM pieces").await.unwrap();
        let paths: Vec<Option<String>> = pieces.iter().map(|piece| piece.get(0)).collect();
        if let [Some(path)] = paths.as_slice() {
            let named = server.objects().into_iter().find(|object| object.ends_with(path));
            return Ok(named.expect("the object that the catalogue names"));
        }
        Err(format!("not flushed: {paths:?}\n{}", server.log()))
    })
    .await
}

/// A clear refusal: a problem with an id, and nothing of the inside.
fn assert_clear(reply: Reply, server: &Almanac) {
    assert!((500..600).contains(&reply.status), "{reply}");
    let status = reply.status;
    let shown = reply.to_string();
    let named = reply.header("x-request-id").expect("a request id").to_owned();
    let problem = reply.problem(status);
    assert!(
        problem.to_string().contains(&named) || problem["instance"].is_string(),
        "nothing to look up: {shown}"
    );
    for inside in [
        "parquet",
        "sqlite",
        ".rs:",
        "panicked",
        &server.data_dir().display().to_string(),
    ] {
        assert!(
            !problem.to_string().to_lowercase().contains(inside),
            "{inside} is shown: {problem}"
        );
    }
}

/// Damages a file in one bit.
fn flip(path: &Path, place: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[place] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

#[tokio::test]
async fn one_flipped_bit_anywhere_in_an_object_is_never_a_wrong_answer() {
    let server = Setup::default().busy_upkeep().start();
    let person = with_rows(&server).await;
    let object = until_in_one_object(&server).await;
    server.stop();
    let server = Setup::default().no_upkeep().in_dir(server.data_dir()).start();
    let person = Person::new(&server.url(), person.id, server.token(person.id));
    assert!(is_right(&read(&person).await.must_be(200)));
    assert_eq!(server.run(&["check"]).status.code(), Some(0));
    let whole = fs::read(&object).unwrap();
    let length = whole.len();
    let mut refused = 0;
    let places: Vec<usize> = (0..24)
        .map(|n| length * n / 24)
        .chain([4, 5, length - 5, length - 8, length - 9, length - 100])
        .collect();
    for place in &places {
        server.stop();
        fs::write(&object, &whole).unwrap();
        flip(&object, *place);
        server.launch();
        match read(&person).attempt().await {
            // An answer that breaks off midway is no answer either.
            Err(_) => refused += 1,
            Ok(reply) if reply.status == 200 => {
                assert!(is_right(&reply), "byte {place} of {length}: a wrong answer");
            }
            Ok(reply) => {
                assert_clear(reply, &server);
                refused += 1;
            }
        }
    }
    assert!(
        refused * 2 > places.len(),
        "only {refused} of {} damages were noticed by a read",
        places.len()
    );

    server.stop();
    fs::write(&object, &whole).unwrap();
    flip(&object, length / 3);
    let checked = server.run(&["check"]);
    let report = format!(
        "{}{}",
        String::from_utf8_lossy(&checked.stdout),
        String::from_utf8_lossy(&checked.stderr)
    );
    assert_eq!(checked.status.code(), Some(1), "{report}");
    assert!(
        report.contains(object.file_stem().unwrap().to_str().unwrap()),
        "the object is not named: {report}"
    );

    server.launch();
    drop(read(&person).attempt().await);
    let metrics = server.metrics().await;
    assert!(metrics.sum(&["corrupt"]) > 0.0, "no metric tells of it");
    person
        .samples("RestingHeartRate", "2024-05-01", "2024-06-01")
        .await;
    person
        .records("RestingHeartRate", &[heart_rate(id(1), &instant(1), 50)])
        .await;

    server.stop();
    fs::write(&object, &whole).unwrap();
    server.launch();
    assert!(
        is_right(&read(&person).await.must_be(200)),
        "the mended object is read again"
    );
}

#[tokio::test]
async fn a_missing_or_truncated_object_is_an_error() {
    let server = Setup::default().busy_upkeep().start();
    let person = with_rows(&server).await;
    let object = until_in_one_object(&server).await;
    server.stop();
    let server = Setup::default().no_upkeep().in_dir(server.data_dir()).start();
    let person = Person::new(&server.url(), person.id, server.token(person.id));
    server.stop();
    let whole = fs::read(&object).unwrap();
    for left in [Some(whole.len() / 2), Some(0), None] {
        match left {
            Some(length) => fs::write(&object, &whole[..length]).unwrap(),
            None => fs::remove_file(&object).unwrap(),
        }
        assert_eq!(server.run(&["check"]).status.code(), Some(1));
        server.launch();
        match read(&person).attempt().await {
            Ok(reply) => assert_clear(reply, &server),
            Err(error) => assert!(error.is_body() || error.is_decode(), "{error:?}"),
        }
        server.stop();
    }
}

/// Every cell of the catalogue's tables that holds bytes, text or numbers of some person's data, as (table,
/// column, row).
async fn cells(catalogue: &Path) -> Vec<(String, String)> {
    let mut connection = SqliteConnection::connect(&format!("sqlite://{}", catalogue.display()))
        .await
        .unwrap();
    let tables = connection
        .fetch_all(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND \
                    name NOT LIKE '_sqlx%'",
        )
        .await
        .unwrap();
    let mut found = Vec::new();
    for table in tables {
        let table: String = table.get(0);
        let columns = connection
            .fetch_all(sqlx::AssertSqlSafe(format!(
                "SELECT name FROM pragma_table_info('{table}')"
            )))
            .await
            .unwrap();
        found.extend(
            columns
                .into_iter()
                .map(|column| (table.clone(), column.get::<String, _>(0))),
        );
    }
    found
}

fn catalogue_of(server: &Almanac) -> PathBuf {
    let is_database = |path: &Path| fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"SQLite format 3\0"));
    let files = fs::read_dir(server.data_dir())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    files
        .into_iter()
        .find(|path| path.is_file() && is_database(path))
        .expect("a catalogue")
}

#[tokio::test]
async fn one_flipped_bit_in_any_column_of_the_catalogue_is_never_a_wrong_answer() {
    let server = Setup::default().no_upkeep().start();
    let person = with_rows(&server).await;
    person
        .records(
            "HeartRate",
            &[
                heart_rate(id(1), &instant(1), 1),
                heart_rate(id(1), &instant(1), 2),
                heart_rate(id(1), &instant(1), 1),
            ],
        )
        .await;
    server.stop();
    let catalogue = catalogue_of(&server);
    let whole = fs::read(&catalogue).unwrap();
    let columns = cells(&catalogue).await;
    assert!(
        columns.iter().any(|(table, _)| table.contains("blob")),
        "no blobs in {columns:?}"
    );
    let mut refused = Vec::new();
    for (table, column) in columns {
        restore(&catalogue, &whole);
        if !damage(&catalogue, &table, &column).await {
            continue;
        }
        // A server that refuses to start on a damaged catalogue says so too.
        if server.try_launch().is_err() {
            refused.push((table, column));
            continue;
        }
        match read(&person).attempt().await {
            Err(_) => refused.push((table, column)),
            Ok(reply) if reply.status == 200 => {
                // A key that no longer names the person's rows hides them: that too is a wrong answer.
                assert!(
                    is_right(&reply),
                    "{table}.{column}: a wrong answer of {} rows",
                    Table::read("ndjson", &reply.body).rows.len()
                );
            }
            Ok(reply) => {
                assert_clear(reply, &server);
                refused.push((table, column));
            }
        }
        server.stop();
    }
    assert!(
        refused
            .iter()
            .any(|(table, column)| table == "blobs" && column == "blob"),
        "a damaged tail was read: {refused:?}"
    );
    println!("{} columns whose damage a read refuses", refused.len());
    restore(&catalogue, &whole);
    assert!(damage(&catalogue, "blobs", "blob").await);
    let checked = server.run(&["check"]);
    assert_eq!(
        checked.status.code(),
        Some(1),
        "{}{}",
        String::from_utf8_lossy(&checked.stdout),
        String::from_utf8_lossy(&checked.stderr)
    );
    server.launch();
    drop(read(&person).attempt().await);
    assert!(
        server.metrics().await.sum(&["corrupt"]) > 0.0,
        "no metric tells of it"
    );
}

fn restore(catalogue: &Path, whole: &[u8]) {
    for beside in ["-wal", "-shm"] {
        let mut name = catalogue.as_os_str().to_owned();
        name.push(beside);
        drop(fs::remove_file(name));
    }
    fs::write(catalogue, whole).unwrap();
}

/// Changes one bit in a column of one row that belongs to the person; `false` when there is no such value.
async fn damage(catalogue: &Path, table: &str, column: &str) -> bool {
    let mut connection = SqliteConnection::connect(&format!("sqlite://{}", catalogue.display()))
        .await
        .unwrap();
    let row = connection
        .fetch_optional(sqlx::AssertSqlSafe(format!(
            "SELECT typeof({column}), {column} FROM {table} WHERE {column} IS NOT NULL LIMIT 1"
        )))
        .await
        .unwrap();
    let Some(row) = row else { return false };
    let changed = match row.get::<String, _>(0).as_str() {
        "integer" => (row.get::<i64, _>(1) ^ 1).to_string(),
        "text" => {
            let mut text = row.get::<String, _>(1).into_bytes();
            let Some(last) = text.last_mut() else { return false };
            *last ^= 1;
            format!("'{}'", String::from_utf8_lossy(&text).replace('\'', "''"))
        }
        "blob" => {
            let mut bytes = row.get::<Vec<u8>, _>(1);
            let middle = bytes.len() / 2;
            let Some(place) = bytes.get_mut(middle) else {
                return false;
            };
            *place ^= 1;
            let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("x'{}'", digits.concat())
        }
        _ => return false,
    };
    let statement = format!(
        "PRAGMA foreign_keys = OFF; UPDATE {table} SET {column} = {changed} WHERE {column} IS (SELECT \
         {column} FROM {table} WHERE {column} IS NOT NULL LIMIT 1)"
    );
    let done = connection.execute(sqlx::AssertSqlSafe(statement)).await.is_ok();
    connection.close().await.unwrap();
    done
}

#[tokio::test]
async fn a_page_of_the_catalogue_overwritten_is_an_error_and_not_less_data() {
    let server = Setup::default().no_upkeep().start();
    let person = with_rows(&server).await;
    server.stop();
    let catalogue = catalogue_of(&server);
    let whole = fs::read(&catalogue).unwrap();
    let pages = whole.len() / 4096;
    for page in 1..pages {
        let mut damaged = whole.clone();
        damaged[page * 4096..(page + 1) * 4096].fill(0);
        restore(&catalogue, &damaged);
        let mut started = server
            .command(&["serve"])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // A server may refuse to start on it; one that starts must not show less than there is.
        let outcome = answer_or_exit(&person, &mut started).await;
        drop(started.kill());
        drop(started.wait());
        if let Some(reply) = outcome {
            assert!(
                reply.status >= 500 || reply.status == 401 || is_right(&reply),
                "page {page} of {pages}: {reply}"
            );
        }
    }
}

/// The answer of a read that came whole; `None` when the server refused to start or broke the answer off.
async fn answer_or_exit(person: &Person, server: &mut std::process::Child) -> Option<Reply> {
    for _ in 0..500 {
        if server.try_wait().unwrap().is_some() {
            return None;
        }
        match read(person).attempt().await {
            Ok(reply) => return Some(reply),
            Err(error) if error.is_connect() => tokio::time::sleep(Duration::from_millis(10)).await,
            Err(_) => return None,
        }
    }
    panic!("neither an answer nor an exit");
}

#[tokio::test]
async fn a_bit_in_the_log_of_the_catalogue_takes_back_nothing_in_silence() {
    let server = Setup::default().no_upkeep().start();
    let person = server.person();
    for n in 0..60 {
        person
            .records("HeartRate", &[heart_rate(id(n), &instant(n), 60)])
            .await;
    }
    server.kill();
    let log = server.data_dir().join("catalogue.db-wal");
    let written = fs::read(&log).unwrap();
    let mut damaged = written.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    fs::write(&log, &damaged).unwrap();
    assert!(server.try_launch().is_err(), "it started");
    assert!(server.log().contains("catalogue.db-wal"), "{}", server.log());
    for command in [
        &["check"][..],
        &["users"],
        &["token", "--user", &person.id.to_string()],
    ] {
        assert_eq!(server.run(command).status.code(), Some(1), "{command:?}");
    }
    assert_eq!(fs::read(&log).unwrap(), damaged, "nothing was touched");

    // Put right, everything is there.
    fs::write(&log, &written).unwrap();
    server.launch();
    assert_eq!(person.all_samples("HeartRate").await.len(), 60);
    server.kill();

    // Whoever asks for a repair is told what that costs, and keeps the bytes.
    let mut damaged = fs::read(&log).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    fs::write(&log, &damaged).unwrap();
    let repaired = server.run(&["check", "--repair"]);
    let said = String::from_utf8_lossy(&repaired.stdout).into_owned();
    assert!(said.contains("are given up"), "{said}");
    assert_eq!(fs::read(log.with_extension("db-wal.damaged")).unwrap(), damaged);
    server.launch();
    let left = person.all_samples("HeartRate").await.len();
    assert!(left < 60, "{left}");
}

#[tokio::test]
async fn a_part_of_a_file_that_was_cut_off_is_damage_and_hides_no_other() {
    let server = Setup::default().busy_upkeep().start();
    let (owner, other) = (server.person(), with_rows(&server).await);
    let file = crate::files::put(&owner, "/", "a", &vec![7; 100_000]).await;
    server.until_objects(1).await;
    server.stop();
    let server = Setup::default().no_upkeep().in_dir(server.data_dir()).start();
    let (owner, other) = (server.person_called(owner.id), server.person_called(other.id));
    let object = server.objects().pop().unwrap();
    let parts = files_below(&server.data_dir().join("objects/files"));
    let part = parts.first().expect("a part");
    fs::write(part, &fs::read(part).unwrap()[..1_000]).unwrap();
    let mut bytes = fs::read(&object).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&object, bytes).unwrap();
    let path = format!("{}/download", crate::files::file_path(&file));
    owner.get(&path).await.problem(500);
    let checked = server.run(&["check"]);
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert_eq!(checked.status.code(), Some(1), "{said}");
    for person in [&owner, &other] {
        assert!(said.contains(&person.id.to_string()), "{said}");
    }
}

#[tokio::test]
async fn one_damaged_row_of_a_file_leaves_the_others_in_a_backup_and_in_the_check() {
    let server = Setup::default().no_upkeep().start();
    let owner = server.person();
    for name in ["a", "b", "c"] {
        crate::files::put(&owner, "/", name, &vec![7; 100_000]).await;
    }
    server.stop();
    let address = format!("sqlite://{}", catalogue_of(&server).display());
    let mut connection = SqliteConnection::connect(&address).await.unwrap();
    let damaged = connection
        .execute(
            "UPDATE documents SET checksum = checksum - 1 WHERE document = \
             (SELECT max(document) FROM documents WHERE kind = 'file_content')",
        )
        .await
        .unwrap();
    assert_eq!(damaged.rows_affected(), 1);
    connection.close().await.unwrap();
    let parts = files_below(&server.data_dir().join("objects/files"));
    assert_eq!(parts.len(), 3);
    let home = tempfile::tempdir().unwrap();
    let copy = home.path().join("copy");
    let ended = server.run(&["backup", copy.to_str().unwrap()]);
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert_eq!(files_below(&copy.join("objects/files")).len(), 2, "{ended:?}");
    let said = String::from_utf8(server.run(&["check"]).stdout).unwrap();
    assert!(said.contains("2 objects"), "{said}");
}

#[tokio::test]
async fn lost_rows_are_given_up_only_by_who_says_so() {
    let server = Setup::default().no_upkeep().start();
    let person = server.person();
    for name in ["tea", "rain"] {
        let tag = json!({"name": name});
        person.post("/user/v1alpha1/tag", &tag).await.must_be(201);
    }
    change_row(&server, "DELETE FROM documents WHERE name = 'tea'").await;
    let said = |arguments: &[&str]| {
        let output = server.run(arguments);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (text, output.status.code())
    };
    assert_eq!(server.run(&["check", "--accept-loss"]).status.code(), Some(2));
    for _ in 0..2 {
        let (text, status) = said(&["check", "--repair"]);
        assert_eq!(status, Some(1), "{text}");
        assert!(
            text.contains("--accept-loss") && !text.contains("given up:"),
            "{text}"
        );
    }
    let (text, status) = said(&["check", "--repair", "--accept-loss"]);
    assert_eq!(status, Some(0), "{text}");
    let given_up = format!("repair: person {}: given up: tag: there are 1, not 2", person.id);
    assert!(text.contains(&given_up), "{text}");
    let (text, status) = said(&["check"]);
    assert_eq!(status, Some(0), "{text}");
    let person = Person::new(&server.url(), person.id, server.token(person.id));
    assert_eq!(
        person.get("/user/v1alpha1/tag").await.must_be(200).rows().len(),
        1
    );
}

#[tokio::test]
async fn who_is_damaged_hides_nobody_else_from_the_list_of_users() {
    let server = Setup::default().no_upkeep().start();
    let [one, another, sound] = [server.person(), server.person(), server.person()];
    for person in [&one, &another, &sound] {
        person.two_heart_rates().await;
    }
    server.stop();
    let address = format!("sqlite://{}", catalogue_of(&server).display());
    let mut connection = SqliteConnection::connect(&address).await.unwrap();
    for (sql, person) in [
        (
            "UPDATE people SET checksum = checksum + 1 WHERE person = $1",
            &one,
        ),
        (
            "UPDATE ledgers SET checksum = checksum + 1 WHERE person = $1",
            &another,
        ),
    ] {
        let damage = sqlx::query(sql).bind(person.id.as_bytes().to_vec());
        assert_eq!(damage.execute(&mut connection).await.unwrap().rows_affected(), 1);
    }
    connection.close().await.unwrap();
    let ended = server.run(&["users"]);
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    let listed = String::from_utf8(ended.stdout).unwrap();
    let lines: Vec<&str> = listed.lines().collect();
    assert!(
        matches!(lines.as_slice(), [line] if line.starts_with(&sound.id.to_string())),
        "{listed}"
    );
    let told = String::from_utf8(ended.stderr).unwrap();
    for person in [&one, &another] {
        assert!(told.contains(&person.id.to_string()), "{told}");
    }
}

/// Runs one statement in the catalogue of a server, which changes one row, while it does not run.
async fn change_row(server: &Almanac, sql: &'static str) {
    server.stop();
    let address = format!("sqlite://{}", catalogue_of(server).display());
    let mut connection = SqliteConnection::connect(&address).await.unwrap();
    assert_eq!(connection.execute(sql).await.unwrap().rows_affected(), 1, "{sql}");
    connection.close().await.unwrap();
    server.launch();
}

fn tombstone(number: u32, data_type: &str) -> Value {
    json!({"deleted_id": id(number), "deleted_type": data_type})
}

/// The id of a new annotation of moments, as a type.
async fn annotation(owner: &Person, name: &str) -> String {
    let sent = json!({"annotation_type": "moment", "name": name, "description": "", "tags": []});
    let made = owner.post("/user/v1alpha1/annotation", &sent).await;
    let made = made.must_be(201).json();
    format!("MomentAnnotation/{}", made["id"].as_str().unwrap())
}

#[tokio::test]
async fn a_tombstone_for_a_type_that_was_lost_is_not_accepted_while_its_records_are_there() {
    let server = Setup::default().no_upkeep().start();
    let owner = server.person();
    let tea = owner.define("Event", &json!({"name": "Tea"})).await;
    let cup = json!({"id": id(1), "start_time": instant(1)});
    owner.records(&tea, &[cup]).await;
    owner
        .record("DeletedRecord", &tombstone(2, &tea))
        .await
        .must_be(201);
    change_row(&server, "DELETE FROM definitions").await;
    let reply = owner.record("DeletedRecord", &tombstone(1, &tea)).await;
    assert_clear(reply, &server);
    // Of any other nothing is stored.
    let unknown = format!("Event/{}", id(7));
    let reply = owner.record("DeletedRecord", &tombstone(1, &unknown)).await;
    assert_eq!(reply.must_be(201).json()["deleted"], 0);
}

#[tokio::test]
async fn tombstones_find_the_records_of_annotations_that_were_damaged_or_lost() {
    let server = Setup::default().no_upkeep().start();
    let owner = server.person();
    let (walk, swim) = (annotation(&owner, "Walk").await, annotation(&owner, "Swim").await);
    for (number, data_type) in [(1, &walk), (2, &walk), (3, &swim), (4, &swim)] {
        let record = json!({"id": id(number), "recorded_at": instant(number)});
        owner.records(data_type, &[record]).await;
    }
    let deleted = async |number: u32, data_type: &str| {
        let reply = owner.record("DeletedRecord", &tombstone(number, data_type)).await;
        reply.must_be(201).json()["deleted"].clone()
    };
    let unknown = format!("MomentAnnotation/{}", id(7));
    for (first, sql) in [
        (
            1,
            "UPDATE documents SET checksum = checksum + 1 WHERE document = \
             (SELECT min(document) FROM documents WHERE kind = 'annotation')",
        ),
        (
            2,
            "DELETE FROM documents WHERE document = \
             (SELECT min(document) FROM documents WHERE kind = 'annotation')",
        ),
    ] {
        change_row(&server, sql).await;
        assert_eq!(deleted(first, &unknown).await, 0, "{sql}");
        assert_eq!(deleted(first + 2, &walk).await, 0, "{sql}");
        assert_eq!(deleted(first, &walk).await, 1, "{sql}");
        assert_eq!(deleted(first + 2, &swim).await, 1, "{sql}");
    }
}

/// The newest manifest, once the catalogue knows of one.
async fn until_a_manifest_is_known(server: &Almanac) -> PathBuf {
    let address = format!("sqlite://{}", catalogue_of(server).display());
    until(async || {
        let mut connection = SqliteConnection::connect(&address).await.unwrap();
        let row = connection
            .fetch_one("SELECT count(*) FROM manifests WHERE number > 0")
            .await
            .unwrap();
        if row.get::<i64, _>(0) > 0 {
            let people = files_below(&server.data_dir().join("objects/people"));
            return Ok(people.into_iter().next_back().expect("the manifest"));
        }
        Err(format!("no manifest\n{}", server.log()))
    })
    .await
}

#[tokio::test]
async fn a_damaged_manifest_is_found_before_it_is_needed() {
    let server = Setup::default().busy_upkeep().start();
    let person = with_rows(&server).await;
    until_a_manifest_is_known(&server).await;
    server.stop();
    let checked = server.run(&["check"]);
    assert_eq!(checked.status.code(), Some(0), "{checked:?}");
    let newest = until_a_manifest_is_known(&server).await;
    let middle = fs::metadata(&newest).unwrap().len() as usize / 2;
    flip(&newest, middle);
    let checked = server.run(&["check"]);
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert_eq!(checked.status.code(), Some(1), "{said}");
    assert!(
        said.contains("manifest") && said.contains(&person.id.to_string()),
        "{said}"
    );
}

/// All files below a folder, by their names.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
        {
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
