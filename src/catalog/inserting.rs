//! Writes whole rows, each with the checksum that every read verifies.
//!
//! Statements have few lengths, so that few are prepared. Knows nothing of what the rows mean.

use std::fmt::Write as _;

use super::database::{Marks, Session, Value};
use super::errors::CatalogError;
use super::tables::Table;

/// How many rows one statement writes at most. Only powers of two up to here get prepared.
const LONGEST_INSERT: usize = 64;

/// What to do with a row whose key exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Existing {
    Refuse,
    Keep,
    Replace,
}

impl Table {
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

impl Session {
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
