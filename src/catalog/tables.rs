//! The tables, and how their rows are written and read: always whole, and always with a checksum that every
//! read verifies.
//!
//! Statements are generated from these definitions, so that a checksum cannot miss a column. Knows nothing of
//! what the rows mean.

use std::fmt::Write as _;

use super::database::{Database, Marks, Row, Session, Value};
use super::errors::CatalogError;

/// How many rows one statement writes at most. Only powers of two up to here get prepared.
const LONGEST_INSERT: usize = 64;
/// How many rows one statement reads where a whole table is read.
const PAGE_ROWS: i64 = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Int,
    Text,
    Bytes,
    OptionalInt,
    OptionalText,
}

/// A table whose rows carry a checksum in a last column named `checksum`.
#[derive(Debug)]
pub(super) struct Table {
    pub name: &'static str,
    pub columns: &'static [(&'static str, Kind)],
    /// How many of the leading columns are the primary key.
    pub key: usize,
}

/// A row that was read and has the right checksum.
#[derive(Clone, Debug)]
pub(super) struct VerifiedRow {
    table: &'static str,
    values: Vec<Value>,
    pub checksum: u32,
}

/// What to do with a row whose key exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Existing {
    Refuse,
    Keep,
    Replace,
}

use Kind::{Bytes, Int, OptionalInt, OptionalText, Text};

pub(super) const PEOPLE: Table = Table {
    name: "people",
    columns: &[
        ("person", Bytes),
        ("name", OptionalText),
        ("preferences", OptionalText),
        ("created_at", Int),
    ],
    key: 1,
};

pub(super) const LEDGERS: Table = Table {
    name: "ledgers",
    columns: &[
        ("person", Bytes),
        ("sequence", Int),
        ("partitions", Int),
        ("digest", Int),
    ],
    key: 1,
};

pub(super) const PARTITIONS: Table = Table {
    name: "partitions",
    columns: &[
        ("person", Bytes),
        ("data_type", Text),
        ("version", Int),
        ("records", Int),
        ("pieces", Int),
        ("dead", Int),
        ("digest", Int),
        ("bytes", Int),
        ("min_start", Int),
        ("max_start", Int),
        ("max_end", Int),
        ("changed_at", Int),
        ("current_minute", Int),
        ("current_count", Int),
    ],
    key: 2,
};

pub(super) const PIECES: Table = Table {
    name: "pieces",
    columns: &[
        ("person", Bytes),
        ("data_type", Text),
        ("piece", Bytes),
        ("sequence", Int),
        ("row_count", Int),
        ("bytes", Int),
        ("min_start", Int),
        ("max_start", Int),
        ("max_end", Int),
        ("layout_version", Int),
        ("content_checksum", Int),
        ("path", OptionalText),
        ("footer_bytes", OptionalInt),
        ("footer_checksum", OptionalInt),
        ("created_at", Int),
    ],
    key: 3,
};

pub(super) const DEAD_ROWS: Table = Table {
    name: "dead_rows",
    columns: &[
        ("person", Bytes),
        ("data_type", Text),
        ("piece", Bytes),
        ("record", Bytes),
        ("sequence", Int),
    ],
    key: 4,
};

pub(super) const RETIRED_OBJECTS: Table = Table {
    name: "retired_objects",
    columns: &[("path", Text), ("retired_at", Int)],
    key: 1,
};

pub(super) const ORPHANS: Table = Table {
    name: "strays",
    columns: &[
        ("path", Text),
        ("noticed_at", Int),
        ("condemned_at", OptionalInt),
        ("removed_at", OptionalInt),
    ],
    key: 1,
};

pub(super) const MANIFESTS: Table = Table {
    name: "manifests",
    columns: &[
        ("person", Bytes),
        ("number", Int),
        ("state", Int),
        ("written_at", Int),
    ],
    key: 1,
};

pub(super) const UPLOADS: Table = Table {
    name: "uploads",
    columns: &[
        ("person", Bytes),
        ("idempotency_key", Text),
        ("upload", Bytes),
        ("fingerprint", Bytes),
        ("accepted_at", Int),
    ],
    key: 2,
};

pub(super) const UPDATES: Table = Table {
    name: "updates",
    columns: &[
        ("person", Bytes),
        ("minute", Int),
        ("data_type", Text),
        ("record_count", Int),
    ],
    key: 3,
};

pub(super) const SOURCES: Table = Table {
    name: "sources",
    columns: &[
        ("person", Bytes),
        ("source_key", Text),
        ("source", Bytes),
        ("name", OptionalText),
        ("added_at", Int),
    ],
    key: 2,
};

pub(super) const DEFINITIONS: Table = Table {
    name: "definitions",
    columns: &[
        ("definition", Bytes),
        ("person", Bytes),
        ("base", Text),
        ("body", Text),
        ("version", Int),
        ("deprecated", Int),
        ("created_at", Int),
        ("updated_at", Int),
    ],
    key: 1,
};

pub(super) const DOCUMENTS: Table = Table {
    name: "documents",
    columns: &[
        ("kind", Text),
        ("document", Bytes),
        ("person", Bytes),
        ("name", OptionalText),
        ("body", Text),
        ("version", Int),
        ("created_at", Int),
        ("updated_at", Int),
        ("deleted_at", OptionalInt),
    ],
    key: 2,
};

pub(super) const LINKS: Table = Table {
    name: "links",
    columns: &[
        ("kind", Text),
        ("target", Bytes),
        ("document", Bytes),
        ("person", Bytes),
    ],
    key: 3,
};

pub(super) const FOLDERS: Table = Table {
    name: "folders",
    columns: &[
        ("person", Bytes),
        ("kind", Text),
        ("documents", Int),
        ("digest", Int),
    ],
    key: 2,
};

pub(super) const ACCESS_LOG: Table = Table {
    name: "access_log",
    columns: &[
        ("person", Bytes),
        ("entry", Bytes),
        ("at", Int),
        ("actor", Bytes),
        ("body", Text),
        ("row_count", OptionalInt),
        ("outcome", Text),
    ],
    key: 2,
};

pub(super) const ERASURES: Table = Table {
    name: "erasures",
    columns: &[
        ("mark", Bytes),
        ("person", Bytes),
        ("begun_at", Int),
        ("purged_at", OptionalInt),
        ("ended_at", OptionalInt),
    ],
    key: 1,
};

pub(super) const DELETIONS: Table = Table {
    name: "deletions",
    columns: &[("person", Bytes), ("data_type", Text), ("noticed_at", Int)],
    key: 2,
};

pub(super) const LEASES: Table = Table {
    name: "leases",
    columns: &[("name", Text), ("holder", Text), ("held_until", Int)],
    key: 1,
};

pub(super) const META: Table = Table {
    name: "meta",
    columns: &[("name", Text), ("value", Text)],
    key: 1,
};

/// Every table but `blobs`, each after those that it refers to.
pub(super) const ALL: &[&Table] = &[
    &PEOPLE,
    &LEDGERS,
    &PARTITIONS,
    &PIECES,
    &DEAD_ROWS,
    &RETIRED_OBJECTS,
    &ORPHANS,
    &MANIFESTS,
    &UPLOADS,
    &UPDATES,
    &SOURCES,
    &DEFINITIONS,
    &DOCUMENTS,
    &LINKS,
    &FOLDERS,
    &ACCESS_LOG,
    &ERASURES,
    &DELETIONS,
    &LEASES,
    &META,
];

/// What a catalogue knows of its own object store, and of the nodes that work on both. It means nothing in a
/// copy.
pub(super) const OF_THIS_STORE: &[&Table] = &[&ORPHANS, &MANIFESTS, &LEASES];

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

    /// The columns of the primary key, separated by commas.
    pub(super) fn key_columns(&self) -> String {
        let names: Vec<&str> = self
            .columns
            .iter()
            .take(self.key)
            .map(|(name, _)| *name)
            .collect();
        names.join(", ")
    }

    /// The reverse order of the keys, as the rest of a `select`.
    pub(super) fn backwards(&self) -> String {
        let names = self.columns.iter().take(self.key);
        let falling: Vec<String> = names.map(|(name, _)| format!("{name} DESC")).collect();
        format!("ORDER BY {}", falling.join(", "))
    }

    /// Whether each of its rows belongs to a person.
    pub(super) fn has_owner(&self) -> bool {
        self.columns.iter().any(|(name, _)| *name == "person")
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
                Int => Value::Int(row.int(index)?),
                Text => Value::Text(row.text(index)?),
                Bytes => Value::Bytes(row.bytes(index)?),
                OptionalInt => row.optional_int(index)?.map_or(Value::NullInt, Value::Int),
                OptionalText => row.optional_text(index)?.map_or(Value::NullText, Value::Text),
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

    /// An `INSERT` of `rows` rows, each with its checksum.
    pub(super) fn insert(&self, rows: usize, existing: Existing, marks: Marks) -> String {
        let width = self.columns.len() + 1;
        let mut sql = String::with_capacity(256 + rows * width * 5);
        sql.push_str("INSERT INTO ");
        sql.push_str(self.name);
        sql.push_str(" (");
        for (name, _) in self.columns {
            sql.push_str(name);
            sql.push_str(", ");
        }
        sql.push_str("checksum) VALUES ");
        push_tuples(&mut sql, rows, width, marks);
        match existing {
            Existing::Refuse => {}
            Existing::Keep => sql.push_str(" ON CONFLICT DO NOTHING"),
            Existing::Replace => {
                sql.push_str(" ON CONFLICT (");
                for (index, (name, _)) in self.columns.iter().take(self.key).enumerate() {
                    sql.push_str(if index == 0 { "" } else { ", " });
                    sql.push_str(name);
                }
                sql.push_str(") DO UPDATE SET checksum = excluded.checksum");
                for (name, _) in self.columns.iter().skip(self.key) {
                    let _ = write!(sql, ", {name} = excluded.{name}");
                }
            }
        }
        sql
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
        let key: Vec<&str> = table
            .columns
            .iter()
            .take(table.key)
            .map(|(name, _)| *name)
            .collect();
        let key = key.join(", ");
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

    /// Writes rows with their checksums; returns these in order, and how many rows were written.
    pub(super) async fn insert(
        &mut self,
        table: &Table,
        rows: Vec<Vec<Value>>,
        existing: Existing,
    ) -> Result<Written, CatalogError> {
        let mut written = Written::default();
        let mut rows = rows.into_iter();
        while rows.len() > 0 {
            let chunk = InsertChunk::next(table, &mut rows);
            let sql = table.insert(chunk.length, existing, self.marks());
            written.checksums.extend(chunk.checksums);
            written.rows += self.execute(sql, chunk.values).await?;
        }
        Ok(written)
    }

    /// Writes those of the rows whose keys are new; returns their checksums.
    pub(super) async fn insert_new(
        &mut self,
        table: &Table,
        rows: Vec<Vec<Value>>,
    ) -> Result<Vec<u32>, CatalogError> {
        let mut written = Vec::new();
        let mut rows = rows.into_iter();
        while rows.len() > 0 {
            let chunk = InsertChunk::next(table, &mut rows);
            let sql = table.insert(chunk.length, Existing::Keep, self.marks()) + " RETURNING checksum";
            for row in self.fetch(sql, chunk.values).await? {
                written.push(row.int(0)? as u32);
            }
        }
        Ok(written)
    }

    /// Writes the bytes of tail pieces.
    pub(super) async fn insert_blobs(&mut self, blobs: Vec<(Vec<u8>, Vec<u8>)>) -> Result<(), CatalogError> {
        let mut blobs = blobs.into_iter().peekable();
        while blobs.peek().is_some() {
            let length = insert_length(blobs.len());
            let mut sql = String::from("INSERT INTO blobs (piece, blob) VALUES ");
            push_tuples(&mut sql, length, 2, self.marks());
            let mut values = Vec::with_capacity(length * 2);
            for (piece, blob) in blobs.by_ref().take(length) {
                values.push(Value::Bytes(piece));
                values.push(Value::Bytes(blob));
            }
            self.execute(sql, values).await?;
        }
        Ok(())
    }
}

/// The rows that one statement inserts.
struct InsertChunk {
    length: usize,
    /// The values of all rows, each with its checksum behind it.
    values: Vec<Value>,
    checksums: Vec<u32>,
}

impl InsertChunk {
    fn next(table: &Table, rows: &mut impl ExactSizeIterator<Item = Vec<Value>>) -> Self {
        let length = insert_length(rows.len());
        let mut chunk = Self {
            length,
            values: Vec::with_capacity(length * (table.columns.len() + 1)),
            checksums: Vec::with_capacity(length),
        };
        for mut row in rows.take(length) {
            let checksum = table.checksum(&row);
            chunk.values.append(&mut row);
            chunk.values.push(Value::Int(i64::from(checksum)));
            chunk.checksums.push(checksum);
        }
        chunk
    }
}

#[derive(Debug, Default)]
pub(super) struct Written {
    pub rows: u64,
    pub checksums: Vec<u32>,
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

fn insert_length(remaining: usize) -> usize {
    if remaining >= LONGEST_INSERT {
        LONGEST_INSERT
    } else {
        1 << remaining.ilog2()
    }
}

fn push_tuples(sql: &mut String, rows: usize, width: usize, marks: Marks) {
    for row in 0..rows {
        sql.push_str(if row == 0 { "(" } else { ", (" });
        for column in 0..width {
            sql.push_str(if column == 0 { "" } else { ", " });
            match marks {
                Marks::Plain => sql.push('?'),
                Marks::Numbered => {
                    let _ = write!(sql, "${}", row * width + column + 1);
                }
            }
        }
        sql.push(')');
    }
}
