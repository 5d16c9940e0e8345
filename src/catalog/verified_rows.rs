//! Reads whole rows, each verified against the checksum that it was written with.
//!
//! Whoever trusts a row has it from here, so that damage is an error and never a wrong answer. Knows nothing
//! of what the rows mean.

use std::fmt::Write as _;

use super::database::{Database, Row, Session, Value};
use super::errors::CatalogError;
use super::tables::{Kind, Table};

/// How many rows one statement reads where a whole table is read, or all that is known of a person.
pub(super) const PAGE_ROWS: i64 = 512;

/// A row that was read and has the right checksum.
#[derive(Clone, Debug)]
pub(super) struct VerifiedRow {
    table: &'static str,
    values: Vec<Value>,
    pub checksum: u32,
}

impl Table {
    /// `SELECT` of whole rows; `rest` continues after the table's name.
    pub(super) fn select(&self, rest: &str) -> String {
        let mut sql = String::with_capacity(256);
        sql.push_str("SELECT ");
        for (name, _) in self.columns {
            sql.push_str(name);
            sql.push_str(", ");
        }
        sql.push_str("checksum FROM ");
        sql.push_str(self.name);
        sql.push(' ');
        sql.push_str(rest);
        sql
    }

    /// The columns of a whole row, of the table under the name `alias`, for a join.
    pub(super) fn selected_as(&self, alias: &str) -> String {
        let mut sql = String::with_capacity(256);
        for (name, _) in self.columns {
            let _ = write!(sql, "{alias}.{name}, ");
        }
        let _ = write!(sql, "{alias}.checksum");
        sql
    }

    /// How many columns `selected_as` selects.
    pub(super) const fn width(&self) -> usize {
        self.columns.len() + 1
    }

    /// A row returned by `select`, unverified.
    pub(super) fn values(&self, row: &Row) -> Result<Vec<Value>, CatalogError> {
        self.values_from(row, 0)
    }

    fn values_from(&self, row: &Row, first: usize) -> Result<Vec<Value>, CatalogError> {
        let mut values = Vec::with_capacity(self.columns.len());
        for (index, (_, kind)) in self.columns.iter().enumerate() {
            let index = first + index;
            values.push(match kind {
                Kind::Int => Value::Int(row.int(index)?),
                Kind::Text => Value::Text(row.text(index)?),
                Kind::Bytes => Value::Bytes(row.bytes(index)?),
                Kind::OptionalInt => row.optional_int(index)?.map_or(Value::NullInt, Value::Int),
                Kind::OptionalText => row.optional_text(index)?.map_or(Value::NullText, Value::Text),
            });
        }
        Ok(values)
    }

    /// A row, verified to be what was written.
    pub(super) fn verify(&self, row: &Row) -> Result<VerifiedRow, CatalogError> {
        self.verify_from(row, 0)
    }

    /// Rows, each verified to be what was written.
    fn verify_all(&self, rows: &[Row]) -> Result<Vec<VerifiedRow>, CatalogError> {
        rows.iter().map(|row| self.verify(row)).collect()
    }

    /// The row whose columns begin at `first`, verified to be what was written.
    pub(super) fn verify_from(&self, row: &Row, first: usize) -> Result<VerifiedRow, CatalogError> {
        let values = self.values_from(row, first)?;
        let checksum = self.checksum(&values);
        if row.int(first + self.columns.len())? == i64::from(checksum) {
            Ok(VerifiedRow {
                table: self.name,
                values,
                checksum,
            })
        } else {
            Err(CatalogError::corrupt(self.row_differs()))
        }
    }

    /// A row that is about to be written.
    pub(super) fn row(&self, values: Vec<Value>) -> VerifiedRow {
        VerifiedRow {
            table: self.name,
            checksum: self.checksum(&values),
            values,
        }
    }

    /// What is said of a row that does not match its checksum.
    pub(super) fn row_differs(&self) -> String {
        format!("a row of table {} differs from what was written", self.name)
    }

    pub(super) fn checksum(&self, values: &[Value]) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(self.name.as_bytes());
        for value in values {
            match value {
                Value::Int(value) => {
                    hasher.update(&[1]);
                    hasher.update(&value.to_le_bytes());
                }
                Value::Text(value) => {
                    hasher.update(&[2]);
                    hasher.update(&(value.len() as u64).to_le_bytes());
                    hasher.update(value.as_bytes());
                }
                Value::Bytes(value) => {
                    hasher.update(&[3]);
                    hasher.update(&(value.len() as u64).to_le_bytes());
                    hasher.update(value);
                }
                Value::NullInt | Value::NullText => hasher.update(&[0]),
            }
        }
        hasher.finalize()
    }
}

impl VerifiedRow {
    pub(super) fn int(&self, column: usize) -> Result<i64, CatalogError> {
        match self.values.get(column) {
            Some(Value::Int(value)) => Ok(*value),
            _ => Err(self.unexpected(column)),
        }
    }

    pub(super) fn optional_int(&self, column: usize) -> Option<i64> {
        match self.values.get(column) {
            Some(Value::Int(value)) => Some(*value),
            _ => None,
        }
    }

    pub(super) fn text(&self, column: usize) -> Result<&str, CatalogError> {
        self.optional_text(column).ok_or_else(|| self.unexpected(column))
    }

    pub(super) fn optional_text(&self, column: usize) -> Option<&str> {
        match self.values.get(column) {
            Some(Value::Text(value)) => Some(value),
            _ => None,
        }
    }

    pub(super) fn bytes(&self, column: usize) -> Result<&[u8], CatalogError> {
        match self.values.get(column) {
            Some(Value::Bytes(value)) => Ok(value),
            _ => Err(self.unexpected(column)),
        }
    }

    /// A column of 16 bytes as the id that `make` turns it into.
    pub(super) fn id<T>(&self, column: usize, make: impl Fn(&[u8]) -> Option<T>) -> Result<T, CatalogError> {
        make(self.bytes(column)?).ok_or_else(|| self.unexpected(column))
    }

    /// The first columns of the row, which are the key of `table`.
    pub(super) fn key(&self, table: &Table) -> Vec<Value> {
        self.values.iter().take(table.key).cloned().collect()
    }

    /// The values of some columns of the row, which is one of `table`.
    pub(super) fn values_of(&self, table: &Table, names: &[&str]) -> Vec<Value> {
        let place = |name: &&str| table.columns.iter().position(|(column, _)| column == name);
        let places = names.iter().filter_map(place);
        places
            .filter_map(|place| self.values.get(place))
            .cloned()
            .collect()
    }

    pub(super) fn into_values(self) -> Vec<Value> {
        self.values
    }

    fn unexpected(&self, column: usize) -> CatalogError {
        CatalogError::corrupt(format!(
            "column {column} of table {} holds something that cannot be there",
            self.table
        ))
    }
}

impl Database {
    /// Verified rows by one statement outside any transaction.
    pub(super) async fn select(
        &self,
        table: &Table,
        rest: &str,
        values: Vec<Value>,
    ) -> Result<Vec<VerifiedRow>, CatalogError> {
        let rows = self.fetch(table.select(rest), values).await?;
        table.verify_all(&rows)
    }

    /// A few verified rows by their keys.
    pub(super) async fn find(
        &self,
        table: &Table,
        rest: &str,
        values: Vec<Value>,
    ) -> Result<Vec<VerifiedRow>, CatalogError> {
        let rows = self.look_up(table.select(rest), values).await?;
        table.verify_all(&rows)
    }

    /// A few verified rows by their keys, which nobody is likely to ask for again soon.
    pub(super) async fn find_once(
        &self,
        table: &Table,
        rest: &str,
        values: Vec<Value>,
    ) -> Result<Vec<VerifiedRow>, CatalogError> {
        let rows = self.look_up_once(table.select(rest), values).await?;
        table.verify_all(&rows)
    }
}

impl Session {
    /// Verified rows as the transaction sees them.
    pub(super) async fn select(
        &mut self,
        table: &Table,
        rest: &str,
        values: Vec<Value>,
    ) -> Result<Vec<VerifiedRow>, CatalogError> {
        let rows = self.fetch(table.select(rest), values).await?;
        table.verify_all(&rows)
    }

    /// The verified rows after the one with the key `after` (from the first if there is none), in the order
    /// of their keys. An empty result is the end.
    pub(super) async fn page(
        &mut self,
        table: &Table,
        after: &[Value],
    ) -> Result<Vec<VerifiedRow>, CatalogError> {
        let key = table.key_columns();
        let mut values = vec![Value::Int(PAGE_ROWS)];
        values.extend_from_slice(after);
        let rest = if after.is_empty() {
            format!("ORDER BY {key} LIMIT $1")
        } else {
            let marks: Vec<String> = (0..after.len()).map(|index| format!("${}", index + 2)).collect();
            format!("WHERE ({key}) > ({}) ORDER BY {key} LIMIT $1", marks.join(", "))
        };
        self.select(table, &rest, values).await
    }
}

/// `($first, …)` with the next power of two of placeholders, and the values to bind, the last one repeated.
/// Few lengths mean few statements.
pub(super) fn one_of(first: usize, mut values: Vec<Value>) -> (String, Vec<Value>) {
    let length = values.len().next_power_of_two();
    if let Some(last) = values.last().cloned() {
        values.resize(length, last);
    }
    let mut sql = String::with_capacity(4 + length * 5);
    for index in 0..values.len() {
        let _ = write!(sql, "{}${}", if index == 0 { "(" } else { ", " }, first + index);
    }
    sql.push(')');
    (sql, values)
}
