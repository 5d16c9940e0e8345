//! A statement with its values, as either driver takes it, and the rows that come back.

use futures::StreamExt as _;
use futures::stream::BoxStream;
use sqlx::postgres::PgRow;
use sqlx::query::Query;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Decode, Encode, Postgres, Row as _, Sqlite, Type};

use super::failures::classify;
use crate::catalog::errors::CatalogError;
use crate::catalog::value::{StoredValue, Value};

/// One row of a result.
pub(in crate::catalog) enum Row {
    Sqlite(SqliteRow),
    LookedUp(Vec<StoredValue>),
    Postgres(PgRow),
}

/// Rows as they are read, one after the other.
pub(in crate::catalog) type Rows<'a> = BoxStream<'a, Result<Row, CatalogError>>;

impl Row {
    pub(in crate::catalog) fn int(&self, column: usize) -> Result<i64, CatalogError> {
        match self.looked_up(column) {
            None => self.get(column),
            Some(StoredValue::Integer(value)) => Ok(*value),
            Some(_) => Err(of_another_type(column)),
        }
    }

    pub(in crate::catalog) fn text(&self, column: usize) -> Result<String, CatalogError> {
        match self.looked_up(column) {
            None => self.get(column),
            Some(StoredValue::Text(value)) => Ok(value.clone()),
            Some(_) => Err(of_another_type(column)),
        }
    }

    pub(in crate::catalog) fn bytes(&self, column: usize) -> Result<Vec<u8>, CatalogError> {
        match self.looked_up(column) {
            None => self.get(column),
            Some(StoredValue::Blob(value)) => Ok(value.clone()),
            Some(_) => Err(of_another_type(column)),
        }
    }

    pub(in crate::catalog) fn optional_int(&self, column: usize) -> Result<Option<i64>, CatalogError> {
        match self.looked_up(column) {
            None => self.get(column),
            Some(StoredValue::Null) => Ok(None),
            Some(_) => self.int(column).map(Some),
        }
    }

    pub(in crate::catalog) fn optional_text(&self, column: usize) -> Result<Option<String>, CatalogError> {
        match self.looked_up(column) {
            None => self.get(column),
            Some(StoredValue::Null) => Ok(None),
            Some(_) => self.text(column).map(Some),
        }
    }

    /// The value there, if the row was looked up. A missing one counts as one of another type.
    fn looked_up(&self, column: usize) -> Option<&StoredValue> {
        match self {
            Self::LookedUp(values) => Some(values.get(column).unwrap_or(&StoredValue::Real(f64::NAN))),
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

pub(super) async fn fetch_sqlite(
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

pub(super) async fn fetch_postgres(
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

pub(super) fn stream_sqlite(connection: &mut sqlx::SqliteConnection, sql: String) -> Rows<'_> {
    let rows = bound::<Sqlite>(sql, Vec::new()).fetch(connection);
    rows.map(|row| row.map(Row::Sqlite).map_err(classify)).boxed()
}

pub(super) fn stream_postgres(connection: &mut sqlx::PgConnection, sql: String) -> Rows<'_> {
    let rows = bound::<Postgres>(sql, Vec::new()).fetch(connection);
    rows.map(|row| row.map(Row::Postgres).map_err(classify)).boxed()
}

pub(super) fn bound<DB>(sql: String, values: Vec<Value>) -> Query<'static, DB, DB::Arguments>
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
