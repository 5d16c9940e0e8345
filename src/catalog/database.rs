//! One face for SQLite and PostgreSQL: everything in which the two differ is in this file, and nothing else
//! in the room names either but `lookups` and `writing`, shorter ways to a few rows of SQLite and to its log.
//!
//! A `Database` lives as long as the process. SQLite has one connection that writes and a few that read, each
//! of these on a thread of its own; the pool hands them out. A `Session` is one transaction and rolls back
//! when it is dropped before `commit`. Knows no tables.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sqlx::pool::{PoolConnection, PoolOptions};
use sqlx::postgres::{PgConnectOptions, PgRow};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteRow, SqliteSynchronous};
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection as _, Decode, Encode, PgPool, Postgres, Row as _, Sqlite,
    SqlitePool, Transaction, Type,
};

use super::disturbance::{Disturbance, Ending, Held, broken};
use super::errors::CatalogError;
use super::lookups::{Found, Lookups};
pub(super) use super::value::Value;
use super::writing::{Limits, Writer, Writing};
use crate::model::clock::Clock;
use crate::model::time::Instant;

/// How long a statement waits for a lock that somebody else holds, and a caller for a connection.
const PATIENCE: Duration = Duration::from_secs(10);
/// A connection to a server that has not been used for so long is asked whether it still stands.
const RESTED: Duration = Duration::from_secs(1);
/// Statements kept prepared on a connection. A few dozen shapes exist, most in half a dozen lengths.
const PREPARED_STATEMENTS: usize = 512;
/// Serialises the migrations of nodes that start together; any number that is ours alone.
const MIGRATION_LOCK: i64 = 0x616c_6d61_6e61_6331;

/// Nobody, but in tests.
type Disturbed = Option<Arc<dyn Disturbance>>;

/// The catalogue's database.
#[derive(Clone, Debug)]
pub(super) enum Database {
    Sqlite {
        writer: Writer,
        readers: SqlitePool,
        lookups: Lookups,
        disturbed: Disturbed,
    },
    Postgres(PgPool),
}

/// One transaction.
pub(super) enum Session {
    Sqlite(SqliteSession),
    Postgres(Transaction<'static, Postgres>),
}

/// How placeholders of a long list are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marks {
    /// `?`
    Plain,
    /// `$1`
    Numbered,
}

/// One row of a result.
pub(super) enum Row {
    Sqlite(SqliteRow),
    LookedUp(Vec<Found>),
    Postgres(PgRow),
}

impl Database {
    /// Connects, creating an SQLite file that does not exist yet.
    pub(super) async fn open(address: &str) -> Result<Self, CatalogError> {
        if let Some(path) = address
            .strip_prefix("sqlite://")
            .or_else(|| address.strip_prefix("sqlite:"))
        {
            return open_sqlite(Path::new(path)).await;
        }
        if address.starts_with("postgres://") || address.starts_with("postgresql://") {
            return open_postgres(address).await;
        }
        Err(CatalogError::Address {
            given: without_password(address),
        })
    }

    /// A transaction that sees one moment of the catalogue and changes nothing.
    pub(super) async fn read(&self) -> Result<Session, CatalogError> {
        Ok(match self {
            Self::Sqlite {
                readers, disturbed, ..
            } => Session::Sqlite(SqliteSession::reading(readers, disturbed).await?),
            Self::Postgres(pool) => Session::Postgres(
                pool.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                    .await
                    .map_err(classify)?,
            ),
        })
    }

    /// A transaction that may change the catalogue. SQLite lets one in at a time; PostgreSQL relies on the
    /// locks that the caller takes.
    pub(super) async fn write(&self) -> Result<Session, CatalogError> {
        Ok(match self {
            Self::Sqlite {
                writer, disturbed, ..
            } => Session::Sqlite(SqliteSession::writing(writer, disturbed).await?),
            Self::Postgres(pool) => Session::Postgres(pool.begin().await.map_err(classify)?),
        })
    }

    /// One reading statement, which by itself sees one moment.
    pub(super) async fn fetch(&self, sql: String, values: Vec<Value>) -> Result<Vec<Row>, CatalogError> {
        match self {
            Self::Sqlite {
                readers, disturbed, ..
            } => {
                let _turn = turn(disturbed, false).await?;
                let _working = working(disturbed);
                let mut connection: PoolConnection<Sqlite> = readers.acquire().await.map_err(classify)?;
                fetch_sqlite(&mut connection, sql, values).await
            }
            Self::Postgres(pool) => {
                let mut connection: PoolConnection<Postgres> = pool.acquire().await.map_err(classify)?;
                fetch_postgres(&mut connection, sql, values).await
            }
        }
    }

    /// The same for a statement that finds a few rows by their keys: of SQLite, where the disk is near, they
    /// are read on this thread.
    pub(super) async fn look_up(&self, sql: String, values: Vec<Value>) -> Result<Vec<Row>, CatalogError> {
        if let Self::Sqlite {
            lookups,
            disturbed: None,
            ..
        } = self
            && let Some(rows) = lookups.look_up(&sql, &values)
        {
            return Ok(rows.into_iter().map(Row::LookedUp).collect());
        }
        self.fetch(sql, values).await
    }

    /// Overwrites what deleted rows left in the database's files. SQLite writes the database anew, and
    /// empties its log. What PostgreSQL keeps of dead rows is its own affair, and that of its operator.
    pub(super) async fn scour(&self) -> Result<(), CatalogError> {
        let Self::Sqlite { writer, .. } = self else {
            return Ok(());
        };
        let mut writing = writer.take().await?;
        for statement in [
            "PRAGMA wal_checkpoint(TRUNCATE)",
            "VACUUM",
            "PRAGMA wal_checkpoint(TRUNCATE)",
        ] {
            let rows = writing.fetch(statement, &[])?.into_iter().map(Row::LookedUp);
            let rows: Vec<Row> = rows.collect();
            // Somebody still reads what the log holds; without waiting for them it stays.
            let is_busy = rows.first().map_or(Ok(0), |row| row.int(0))? != 0;
            if is_busy {
                return Err(CatalogError::Contended {
                    detail: "somebody reads an earlier state of it".to_owned(),
                });
            }
        }
        writing.give_back();
        Ok(())
    }

    /// A write transaction in which nobody else migrates.
    pub(super) async fn migrating(&self) -> Result<Session, CatalogError> {
        let mut session = self.write().await?;
        if matches!(session, Session::Postgres(_)) {
            session
                .fetch(
                    "SELECT pg_advisory_xact_lock($1)".to_owned(),
                    vec![Value::Int(MIGRATION_LOCK)],
                )
                .await?;
        }
        Ok(session)
    }

    /// What the database itself has to say against its own structure. Empty when it is sound.
    pub(super) async fn self_check(&self) -> Result<Vec<String>, CatalogError> {
        match self {
            Self::Sqlite { .. } => {
                let rows = self
                    .fetch("PRAGMA integrity_check".to_owned(), Vec::new())
                    .await?;
                let mut complaints = Vec::new();
                for row in rows {
                    let text = row.text(0)?;
                    if text != "ok" {
                        complaints.push(text);
                    }
                }
                Ok(complaints)
            }
            Self::Postgres(_) => Ok(Vec::new()),
        }
    }

    pub(super) async fn close(&self) {
        match self {
            Self::Sqlite {
                writer,
                readers,
                lookups,
                ..
            } => {
                lookups.close();
                readers.close().await;
                writer.close().await;
            }
            Self::Postgres(pool) => pool.close().await,
        }
    }
}

impl Session {
    pub(super) async fn fetch(&mut self, sql: String, values: Vec<Value>) -> Result<Vec<Row>, CatalogError> {
        match self {
            Self::Sqlite(session) => {
                let _working = working(&session.disturbed);
                session.link()?.fetch(sql, values).await
            }
            Self::Postgres(transaction) => fetch_postgres(transaction, sql, values).await,
        }
    }

    /// Runs a statement; returns how many rows it changed.
    pub(super) async fn execute(&mut self, sql: String, values: Vec<Value>) -> Result<u64, CatalogError> {
        Ok(match self {
            Self::Sqlite(session) => {
                let _working = working(&session.disturbed);
                session.link()?.execute(sql, values).await?
            }
            Self::Postgres(transaction) => bound::<Postgres>(sql, values)
                .execute(&mut **transaction)
                .await
                .map_err(classify)?
                .rows_affected(),
        })
    }

    /// What time it is for everybody who shares the database. SQLite has no other clock than that of the
    /// process that it is in.
    pub(super) async fn now(&mut self, clock: &dyn Clock) -> Result<Instant, CatalogError> {
        match self {
            Self::Sqlite(_) => Ok(clock.now()),
            Self::Postgres(_) => {
                let sql = "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)";
                let rows = self.fetch(sql.to_owned(), Vec::new()).await?;
                let row = rows
                    .first()
                    .ok_or_else(|| CatalogError::corrupt("the database does not say what time it is"))?;
                Ok(Instant::from_micros(row.int(0)?))
            }
        }
    }

    /// Until the transaction ends, keeps out whoever calls `lock_alone` for the table. SQLite's writers are
    /// alone anyway.
    pub(super) async fn lock_shared(&mut self, table: &str) -> Result<(), CatalogError> {
        self.lock(table, "SHARE").await
    }

    /// Waits for all that hold `lock_shared`, and keeps further ones out until the transaction ends.
    pub(super) async fn lock_alone(&mut self, table: &str) -> Result<(), CatalogError> {
        self.lock(table, "SHARE ROW EXCLUSIVE").await
    }

    async fn lock(&mut self, table: &str, mode: &str) -> Result<(), CatalogError> {
        if let Self::Postgres(_) = self {
            self.execute(format!("LOCK TABLE {table} IN {mode} MODE"), Vec::new())
                .await?;
        }
        Ok(())
    }

    /// Whether there is a table of this name.
    pub(super) async fn has_table(&mut self, name: &str) -> Result<bool, CatalogError> {
        let sql = match self {
            Self::Sqlite(_) => "SELECT name FROM sqlite_master WHERE type = 'table' AND name = $1",
            Self::Postgres(_) => {
                "SELECT table_name::text FROM information_schema.tables WHERE table_schema = \
                 current_schema() AND table_name = $1"
            }
        };
        let rows = self
            .fetch(sql.to_owned(), vec![Value::Text(name.to_owned())])
            .await?;
        Ok(!rows.is_empty())
    }

    /// Runs a script of definitions written for SQLite, in the words of this database.
    pub(super) async fn define(&mut self, script: &str) -> Result<(), CatalogError> {
        match self {
            Self::Sqlite(session) => {
                session.link()?.run(script).await?;
            }
            Self::Postgres(transaction) => {
                let script = postgres_definitions(script);
                sqlx::raw_sql(AssertSqlSafe(script))
                    .execute(&mut **transaction)
                    .await
                    .map_err(classify)?;
            }
        }
        Ok(())
    }

    /// Words that make a `SELECT` keep its rows locked until the transaction ends. SQLite's writers are alone
    /// anyway.
    pub(super) fn locking(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "",
            Self::Postgres(_) => " FOR UPDATE",
        }
    }

    /// The same, but whoever would have to wait for a lock fails.
    pub(super) fn locking_at_once(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "",
            Self::Postgres(_) => " FOR UPDATE NOWAIT",
        }
    }

    /// `$1` is understood everywhere, but SQLite takes it for a name and searches all names for each value:
    /// quadratic in long lists.
    pub(super) fn marks(&self) -> Marks {
        match self {
            Self::Sqlite(_) => Marks::Plain,
            Self::Postgres(_) => Marks::Numbered,
        }
    }

    /// When this returns `Ok`, what the transaction did survives a crash of this process and of the
    /// database's machine.
    pub(super) async fn commit(self) -> Result<(), CatalogError> {
        match self {
            Self::Sqlite(session) => session.commit().await,
            Self::Postgres(transaction) => transaction.commit().await.map_err(classify),
        }
    }

    /// Undoes what the transaction did. Dropping it does the same but costs SQLite the connection.
    pub(super) async fn rollback(self) -> Result<(), CatalogError> {
        match self {
            Self::Sqlite(session) => session.end("ROLLBACK").await,
            Self::Postgres(transaction) => transaction.rollback().await.map_err(classify),
        }
    }
}

/// A transaction of SQLite.
///
/// SQLite rolls back by itself when its disk is full, which the driver's own transactions do not notice: they
/// would leave a connection behind that can begin nothing any more. So a connection whose transaction did not
/// end well is closed.
pub(super) struct SqliteSession {
    /// Until the transaction has ended well.
    link: Option<Link>,
    disturbed: Disturbed,
    /// Let go after the connection.
    _turn: Option<Held>,
}

/// What a transaction speaks to SQLite by.
enum Link {
    Reads(PoolConnection<Sqlite>),
    Writes(Writing),
}

impl Link {
    async fn fetch(&mut self, sql: String, values: Vec<Value>) -> Result<Vec<Row>, CatalogError> {
        match self {
            Self::Reads(connection) => fetch_sqlite(connection, sql, values).await,
            Self::Writes(writing) => {
                let rows = writing.fetch(&sql, &values)?;
                Ok(rows.into_iter().map(Row::LookedUp).collect())
            }
        }
    }

    async fn execute(&mut self, sql: String, values: Vec<Value>) -> Result<u64, CatalogError> {
        match self {
            Self::Reads(connection) => {
                let executed = bound::<Sqlite>(sql, values).execute(&mut **connection);
                Ok(executed.await.map_err(classify)?.rows_affected())
            }
            Self::Writes(writing) => writing.execute(&sql, &values),
        }
    }

    /// Begins or ends a transaction.
    async fn turn(&mut self, statement: &'static str) -> Result<(), CatalogError> {
        match self {
            Self::Reads(_) => self.run(statement).await,
            // It is kept prepared, unlike a script.
            Self::Writes(writing) => writing.execute(statement, &[]).map(drop),
        }
    }

    async fn run(&mut self, script: &str) -> Result<(), CatalogError> {
        match self {
            Self::Reads(connection) => {
                let script = sqlx::raw_sql(AssertSqlSafe(script.to_owned()));
                script
                    .execute(&mut **connection)
                    .await
                    .map(drop)
                    .map_err(classify)
            }
            Self::Writes(writing) => writing.run(script),
        }
    }
}

impl SqliteSession {
    async fn reading(pool: &SqlitePool, disturbed: &Disturbed) -> Result<Self, CatalogError> {
        let turn = turn(disturbed, false).await?;
        let _working = working(disturbed);
        let link = Link::Reads(pool.acquire().await.map_err(classify)?);
        Self::begin(link, "BEGIN", disturbed, turn).await
    }

    async fn writing(writer: &Writer, disturbed: &Disturbed) -> Result<Self, CatalogError> {
        let turn = turn(disturbed, true).await?;
        let link = Link::Writes(writer.take().await?);
        Self::begin(link, "BEGIN IMMEDIATE", disturbed, turn).await
    }

    async fn begin(
        link: Link,
        statement: &'static str,
        disturbed: &Disturbed,
        turn: Option<Held>,
    ) -> Result<Self, CatalogError> {
        let mut session = Self {
            link: Some(link),
            disturbed: disturbed.clone(),
            _turn: turn,
        };
        session.link()?.turn(statement).await?;
        Ok(session)
    }

    fn link(&mut self) -> Result<&mut Link, CatalogError> {
        self.link.as_mut().ok_or_else(broken)
    }

    async fn commit(self) -> Result<(), CatalogError> {
        let Some(disturbance) = self.disturbed.clone().filter(|_| self.writes()) else {
            return self.end("COMMIT").await;
        };
        match disturbance.ends().await {
            Ending::Commits => return self.end("COMMIT").await,
            Ending::Breaks => self.end("ROLLBACK").await?,
            Ending::Unheard => self.end("COMMIT").await?,
            Ending::Later(moment) => {
                tokio::spawn(async move {
                    let statement = if moment.await { "COMMIT" } else { "ROLLBACK" };
                    self.end(statement).await
                });
            }
        }
        Err(broken())
    }

    const fn writes(&self) -> bool {
        matches!(self.link, Some(Link::Writes(_)))
    }

    async fn end(mut self, statement: &'static str) -> Result<(), CatalogError> {
        let _working = working(&self.disturbed);
        self.link()?.turn(statement).await?;
        if let Some(Link::Writes(writing)) = self.link.take() {
            writing.give_back();
        }
        Ok(())
    }
}

async fn turn(disturbed: &Disturbed, writes: bool) -> Result<Option<Held>, CatalogError> {
    match disturbed {
        None => Ok(None),
        Some(disturbance) => disturbance.begins(writes).await.map(Some).ok_or_else(broken),
    }
}

fn working(disturbed: &Disturbed) -> Option<Held> {
    disturbed.as_ref().map(|disturbance| disturbance.works())
}

impl Drop for SqliteSession {
    fn drop(&mut self) {
        if let Some(Link::Reads(connection)) = &mut self.link {
            connection.close_on_drop();
        }
    }
}

impl Row {
    pub(super) fn int(&self, column: usize) -> Result<i64, CatalogError> {
        match self.looked_up(column) {
            None => self.get(column),
            Some(Found::Integer(value)) => Ok(*value),
            Some(_) => Err(of_another_type(column)),
        }
    }

    pub(super) fn text(&self, column: usize) -> Result<String, CatalogError> {
        match self.looked_up(column) {
            None => self.get(column),
            Some(Found::Text(value)) => Ok(value.clone()),
            Some(_) => Err(of_another_type(column)),
        }
    }

    pub(super) fn bytes(&self, column: usize) -> Result<Vec<u8>, CatalogError> {
        match self.looked_up(column) {
            None => self.get(column),
            Some(Found::Blob(value)) => Ok(value.clone()),
            Some(_) => Err(of_another_type(column)),
        }
    }

    pub(super) fn optional_int(&self, column: usize) -> Result<Option<i64>, CatalogError> {
        match self.looked_up(column) {
            None => self.get(column),
            Some(Found::Null) => Ok(None),
            Some(_) => self.int(column).map(Some),
        }
    }

    pub(super) fn optional_text(&self, column: usize) -> Result<Option<String>, CatalogError> {
        match self.looked_up(column) {
            None => self.get(column),
            Some(Found::Null) => Ok(None),
            Some(_) => self.text(column).map(Some),
        }
    }

    /// The value there if the row was looked up; one that is not there is as good as of another type.
    fn looked_up(&self, column: usize) -> Option<&Found> {
        match self {
            Self::LookedUp(values) => Some(values.get(column).unwrap_or(&Found::Real(f64::NAN))),
            Self::Sqlite(_) | Self::Postgres(_) => None,
        }
    }

    fn get<T>(&self, column: usize) -> Result<T, CatalogError>
    where
        T: for<'r> Decode<'r, Sqlite> + Type<Sqlite> + for<'r> Decode<'r, Postgres> + Type<Postgres>,
    {
        match self {
            Self::Sqlite(row) => row.try_get(column).map_err(classify),
            Self::Postgres(row) => row.try_get(column).map_err(classify),
            Self::LookedUp(_) => Err(of_another_type(column)),
        }
    }
}

fn of_another_type(column: usize) -> CatalogError {
    CatalogError::corrupt(format!("column {column} of a row holds a value of another type"))
}

async fn fetch_sqlite(
    connection: &mut sqlx::SqliteConnection,
    sql: String,
    values: Vec<Value>,
) -> Result<Vec<Row>, CatalogError> {
    let rows = bound::<Sqlite>(sql, values)
        .fetch_all(connection)
        .await
        .map_err(classify)?;
    Ok(rows.into_iter().map(Row::Sqlite).collect())
}

async fn fetch_postgres(
    connection: &mut sqlx::PgConnection,
    sql: String,
    values: Vec<Value>,
) -> Result<Vec<Row>, CatalogError> {
    let rows = bound::<Postgres>(sql, values)
        .fetch_all(connection)
        .await
        .map_err(classify)?;
    Ok(rows.into_iter().map(Row::Postgres).collect())
}

fn bound<DB>(sql: String, values: Vec<Value>) -> Query<'static, DB, DB::Arguments>
where
    DB: sqlx::Database,
    i64: Encode<'static, DB> + Type<DB>,
    String: Encode<'static, DB> + Type<DB>,
    Vec<u8>: Encode<'static, DB> + Type<DB>,
    Option<i64>: Encode<'static, DB> + Type<DB>,
    Option<String>: Encode<'static, DB> + Type<DB>,
{
    let mut query = sqlx::query::<DB>(AssertSqlSafe(sql));
    for value in values {
        query = match value {
            Value::Int(value) => query.bind(value),
            Value::Text(value) => query.bind(value),
            Value::Bytes(value) => query.bind(value),
            Value::NullInt => query.bind(None::<i64>),
            Value::NullText => query.bind(None::<String>),
        };
    }
    query
}

async fn open_sqlite(path: &Path) -> Result<Database, CatalogError> {
    create_private(path)?;
    let limits = Limits {
        patience: PATIENCE,
        prepared_statements: PREPARED_STATEMENTS,
    };
    let writer = Writer::open(path, limits)?;
    let options = SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(PATIENCE)
        .statement_cache_capacity(PREPARED_STATEMENTS)
        .pragma("cell_size_check", "on")
        .pragma("cache_size", "-16384")
        .disable_statement_logging();
    let readers = pool(reader_count())
        .min_connections(1)
        .connect_with(options.pragma("query_only", "on"))
        .await
        .map_err(classify)?;
    Ok(Database::Sqlite {
        writer,
        readers,
        lookups: Lookups::new(path),
        disturbed: None,
    })
}

async fn open_postgres(address: &str) -> Result<Database, CatalogError> {
    let options = PgConnectOptions::from_str(address)
        .map_err(|_| CatalogError::Address {
            given: without_password(address),
        })?
        .application_name("almanac")
        .statement_cache_capacity(PREPARED_STATEMENTS)
        // An acknowledgement means that it is on disk, whatever the server's default is.
        .options([
            ("synchronous_commit", "on"),
            ("lock_timeout", "10s"),
            ("idle_in_transaction_session_timeout", "60s"),
        ])
        .disable_statement_logging();
    let pool = pool::<Postgres>(16).before_acquire(|connection, usage| {
        Box::pin(async move {
            if usage.idle_for > RESTED {
                connection.ping().await?;
            }
            Ok(true)
        })
    });
    Ok(Database::Postgres(
        pool.connect_with(options).await.map_err(classify)?,
    ))
}

fn pool<DB: sqlx::Database>(connections: u32) -> PoolOptions<DB> {
    PoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(PATIENCE)
        // Asking before every use would double the cost of the shortest reads.
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None)
}

fn reader_count() -> u32 {
    std::thread::available_parallelism()
        .map_or(4, |count| count.get() as u32 * 2)
        .clamp(2, 8)
}

/// Creates the file, readable by its owner only, before SQLite would create it readable by all.
fn create_private(path: &Path) -> Result<(), CatalogError> {
    let unavailable = |error: std::io::Error| {
        let detail = format!("{}: {error}", path.display());
        if error.kind() == std::io::ErrorKind::StorageFull {
            CatalogError::Full { detail }
        } else {
            CatalogError::Unavailable { detail }
        }
    };
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
        // SQLite synchronises what is in the file, not its name.
        let directory = path.parent().filter(|parent| *parent != PathBuf::new());
        std::fs::File::open(directory.unwrap_or(Path::new(".")))
            .and_then(|directory| directory.sync_all())
            .map_err(unavailable)?;
    }
    Ok(())
}

fn postgres_definitions(script: &str) -> String {
    script
        .replace(") STRICT, WITHOUT ROWID;", ");")
        .replace(") STRICT;", ");")
        .replace(" INTEGER", " BIGINT")
        .replace(" BLOB", " BYTEA")
}

fn without_password(address: &str) -> String {
    match (address.find("://"), address.find('@')) {
        (Some(scheme), Some(at)) if scheme < at => format!("{}://…{}", &address[..scheme], &address[at..]),
        _ => address.to_owned(),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
fn classify(error: sqlx::Error) -> CatalogError {
    let detail = error.to_string();
    match &error {
        sqlx::Error::Database(database) => match database.code().as_deref() {
            Some(code) if code.len() == 5 => classify_postgres(code, detail),
            Some(code) => CatalogError::of_sqlite(code.parse().unwrap_or(0), detail),
            None => CatalogError::Refused { detail },
        },
        sqlx::Error::Io(io) if io.kind() == std::io::ErrorKind::StorageFull => CatalogError::Full { detail },
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::BeginFailed => CatalogError::Unavailable { detail },
        // A value of another type than the column's.
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => CatalogError::Corrupt { what: detail },
        _ => CatalogError::Refused { detail },
    }
}

fn classify_postgres(code: &str, detail: String) -> CatalogError {
    match code {
        "53100" => CatalogError::Full { detail },
        "XX001" | "XX002" => CatalogError::Corrupt { what: detail },
        "23505" => CatalogError::Exists { what: detail },
        // Could not be put in an order; deadlock; a lock that somebody else has.
        "40001" | "40P01" | "55P03" => CatalogError::Contended { detail },
        "57P01" | "57P02" | "57P03" | "57014" | "25P03" | "58030" => CatalogError::Unavailable { detail },
        _ if code.starts_with("08") || code.starts_with("53") => CatalogError::Unavailable { detail },
        _ => CatalogError::Refused { detail },
    }
}
