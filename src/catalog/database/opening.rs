//! Connects: sets up either database so that what is acknowledged is on disk, and limits how long anybody
//! waits for it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::pool::PoolOptions;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection as _, PgPool, Postgres, SqlitePool};

use super::ahead_log::{refuse_damaged, refuse_left_alone};
use super::failures::classify;
use crate::catalog::errors::CatalogError;
use crate::catalog::writing::{Limits, Writer};

/// How long a statement waits for a lock that somebody else holds, and a caller for a connection.
pub(in crate::catalog) const LOCK_PATIENCE: Duration = Duration::from_secs(10);
/// A connection to a server that has been idle for this long is checked before use.
const CHECK_AFTER_IDLE: Duration = Duration::from_secs(1);
/// How long that check may take.
const CHECK_LIMIT: Duration = Duration::from_secs(2);
/// A connection to a server that nobody used for this long is closed.
const IDLE_CONNECTION_LIFETIME: Duration = Duration::from_mins(1);
/// Prepared statements kept per connection. There are a few dozen shapes, most in half a dozen lengths.
const PREPARED_STATEMENTS: usize = 512;

/// Opens the connections that write and read, and creates the file if there is none.
pub(super) async fn open_sqlite(path: &Path) -> Result<(Writer, SqlitePool), CatalogError> {
    refuse_left_alone(path)?;
    create_private(path)?;
    refuse_damaged(path)?;
    let limits = Limits {
        patience: LOCK_PATIENCE,
        prepared_statements: PREPARED_STATEMENTS,
    };
    let writer = Writer::open(path, limits).map_err(|error| or_read_only(path, error))?;
    let options = SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(LOCK_PATIENCE)
        .statement_cache_capacity(PREPARED_STATEMENTS)
        .pragma("cell_size_check", "on")
        .pragma("cache_size", "-16384")
        .disable_statement_logging();
    let readers = pool(reader_count())
        .min_connections(1)
        .connect_with(options.pragma("query_only", "on"))
        .await
        .map_err(classify)?;
    Ok((writer, readers))
}

/// Opens at most `connections` to a server.
pub(super) async fn open_postgres(
    options: PgConnectOptions,
    connections: u32,
) -> Result<PgPool, CatalogError> {
    let lock_timeout = format!("{}s", LOCK_PATIENCE.as_secs());
    let options = options
        .application_name("almanac")
        .statement_cache_capacity(PREPARED_STATEMENTS)
        // An acknowledgement means that the change is on disk, whatever the server's default is.
        .options([
            ("synchronous_commit", "on"),
            ("lock_timeout", lock_timeout.as_str()),
            ("idle_in_transaction_session_timeout", "60s"),
        ])
        .disable_statement_logging();
    // The server has few, for all nodes and commands together.
    let pool = pool::<Postgres>(connections.max(1)).idle_timeout(IDLE_CONNECTION_LIFETIME);
    let pool = pool.before_acquire(|connection, usage| {
        Box::pin(async move {
            if usage.idle_for <= CHECK_AFTER_IDLE {
                return Ok(true);
            }
            match tokio::time::timeout(CHECK_LIMIT, connection.ping()).await {
                Ok(answered) => answered.map(|()| true),
                Err(_) => Err(sqlx::Error::Io(io::ErrorKind::TimedOut.into())),
            }
        })
    });
    match Box::pin(pool.connect_with(options.clone())).await {
        Err(sqlx::Error::PoolTimedOut) => Err(classify(Box::pin(why_timed_out(&options)).await)),
        opened => opened.map_err(classify),
    }
}

/// Why no connection was made in time. The pool tries again where a server refuses connections, and then says
/// only that time ran out.
async fn why_timed_out(options: &PgConnectOptions) -> sqlx::Error {
    match tokio::time::timeout(CHECK_LIMIT, options.connect()).await {
        Ok(Err(error)) => error,
        Ok(Ok(_)) | Err(_) => sqlx::Error::PoolTimedOut,
    }
}

fn pool<DB: sqlx::Database>(connections: u32) -> PoolOptions<DB> {
    PoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(LOCK_PATIENCE)
        // A check before every use would double the cost of the shortest reads.
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None)
}

fn reader_count() -> u32 {
    std::thread::available_parallelism()
        .map_or(4, |count| count.get() as u32 * 2)
        .clamp(2, 8)
}

/// Whether there is a file at `path`. An error where that cannot be told, such as in a directory that this
/// process may not enter.
pub(in crate::catalog) fn is_file_there(path: &Path) -> Result<bool, CatalogError> {
    path.try_exists().map_err(|error| refused(path, &error))
}

fn refused(path: &Path, error: &io::Error) -> CatalogError {
    let detail = format!("{}: {error}", path.display());
    match error.kind() {
        io::ErrorKind::StorageFull => CatalogError::Full { detail },
        kind if is_read_only(kind) => CatalogError::ReadOnly { detail },
        _ => CatalogError::Unavailable { detail },
    }
}

/// Creates the file readable by its owner only, before SQLite creates it readable by all.
fn create_private(path: &Path) -> Result<(), CatalogError> {
    let unavailable = |error: io::Error| refused(path, &error);
    if let Some(parent) = path.parent().filter(|parent| *parent != PathBuf::new()) {
        std::fs::create_dir_all(parent).map_err(unavailable)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let is_new = !path.exists();
    options.open(path).map(drop).map_err(unavailable)?;
    if is_new {
        // SQLite syncs the contents of the file, not its name.
        std::fs::File::open(directory_of(path))
            .and_then(|directory| directory.sync_all())
            .map_err(unavailable)?;
    }
    Ok(())
}

/// SQLite reports the same error for a directory in which it may not create its log as for one that it cannot
/// reach, so this finds out which of the two it is.
fn or_read_only(path: &Path, error: CatalogError) -> CatalogError {
    if !matches!(error, CatalogError::Unavailable { .. }) {
        return error;
    }
    let directory = directory_of(path);
    let attempt = directory.join(format!(".almanac-attempt-{}", std::process::id()));
    let made = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&attempt);
    match made {
        Ok(_) => {
            // It is empty, and if it cannot be removed now, the caller gets a worse error.
            let _removed = std::fs::remove_file(&attempt);
            error
        }
        Err(refused) if is_read_only(refused.kind()) => CatalogError::ReadOnly {
            detail: format!("{}: {refused}", directory.display()),
        },
        Err(_) => error,
    }
}

fn is_read_only(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
    )
}

fn directory_of(path: &Path) -> &Path {
    let directory = path.parent().filter(|parent| *parent != PathBuf::new());
    directory.unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[tokio::test]
    async fn a_server_that_refuses_connections_is_called_that() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let options = PgConnectOptions::new().host("127.0.0.1").port(port);
        let told = classify(Box::pin(why_timed_out(&options)).await).to_string();
        assert!(told.contains("refused"), "{told}");
    }

    #[test]
    fn a_file_that_cannot_be_looked_for_is_not_called_missing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("catalogue.db");
        assert!(!is_file_there(&path).unwrap());
        std::fs::write(&path, "").unwrap();
        assert!(is_file_there(&path).unwrap());
        // Nobody can look below a file, whatever their rights.
        let told = is_file_there(&path.join("catalogue.db")).unwrap_err();
        assert!(matches!(told, CatalogError::Unavailable { .. }), "{told}");
        let denied = refused(&path, &io::ErrorKind::PermissionDenied.into());
        assert!(matches!(denied, CatalogError::ReadOnly { .. }), "{denied}");
    }

    #[tokio::test]
    async fn a_directory_that_cannot_be_written_is_not_called_busy() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("catalogue.db");
        let (writer, readers) = open_sqlite(&path).await.unwrap();
        readers.close().await;
        writer.close().await;
        std::fs::set_permissions(directory.path(), Permissions::from_mode(0o500)).unwrap();
        let opened = open_sqlite(&path).await;
        // A user with all rights can write all the same.
        if let Err(error) = opened {
            assert!(matches!(error, CatalogError::ReadOnly { .. }), "{error}");
        }
        std::fs::set_permissions(directory.path(), Permissions::from_mode(0o700)).unwrap();
        let refused = CatalogError::Unavailable {
            detail: "somebody holds it".to_owned(),
        };
        let told = or_read_only(&path, refused);
        assert!(matches!(told, CatalogError::Unavailable { .. }), "{told}");
        assert!(is_read_only(io::ErrorKind::ReadOnlyFilesystem));
    }
}
