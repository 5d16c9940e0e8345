//! The ground: what was acknowledged stays, whatever happens to clocks, catalogues, stores, neighbours and
//! disks.

mod backup;
mod bounds;
pub(crate) mod clocks;
mod commits;
mod containers;
mod fairness;
mod lost_catalogue;
mod refused_bodies;
mod slowly;
mod tags;
mod whose_store;

use std::path::Path;

use sqlx::{Connection as _, Executor as _, SqliteConnection};

use crate::harness::{Almanac, Backends, Person, Setup};

/// Changes an embedded catalogue behind its back.
async fn tamper(server: &Almanac, sql: &str) {
    let file = server.data_dir().join("catalogue.db");
    let mut connection = SqliteConnection::connect(&format!("sqlite://{}", file.display()))
        .await
        .unwrap();
    let changed = connection
        .execute(sqlx::AssertSqlSafe(sql.to_owned()))
        .await
        .unwrap();
    assert!(changed.rows_affected() > 0, "{sql}");
    connection.close().await.unwrap();
}

/// A catalogue in PostgreSQL and objects in a directory where a test can look, for several servers.
fn shared_directory(directory: &Path) -> Option<Backends> {
    let objects = directory.join("objects").display().to_string();
    Some(Backends::networked()?.with("ALMANAC_OBJECT_STORE", &objects))
}

/// Removes a catalogue of a server that does not run, as an accident would.
pub(crate) fn lose_catalogue(directory: &Path) {
    for beside in ["", "-wal", "-shm"] {
        drop(std::fs::remove_file(
            directory.join(format!("catalogue.db{beside}")),
        ));
    }
}

/// The same person on another server, or on one that forgot their token.
fn on(server: &Almanac, person: &Person) -> Person {
    server.person_called(person.id)
}

/// What a command said, and its status.
pub(crate) fn said(server: &Almanac, arguments: &[&str]) -> (String, Option<i32>) {
    let ended = server.run(arguments);
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&ended.stdout),
        String::from_utf8_lossy(&ended.stderr)
    );
    (text, ended.status.code())
}

/// A server whose tail becomes objects at once, and is written down.
fn flushing() -> Setup {
    Setup::default().busy_upkeep()
}
