//! What the store promises, shown on small partitions.

mod damage;
mod decoded;
mod finding;
mod full;
mod measured;
mod objects;
mod pieces;
mod snapshots;

use std::sync::Arc;

use arrow::array::{
    ArrayRef, DictionaryArray, FixedSizeBinaryArray, Float64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, Int32Type, Schema, SchemaRef, TimeUnit};
use uuid::Uuid;

use super::objects::{ObjectStorage, ObjectStoreSettings};
use super::piece::Target;
use crate::catalog::Catalog;
use crate::catalog::records::{Commit, CommitOutcome, NewPiece, PartitionChange, Stamp};
use crate::catalog::test_databases::address_in;
use crate::model::clock::SystemClock;
use crate::model::ids::{PersonId, PieceId, RecordId};
use crate::model::registry::TypeId;

/// Milliseconds of 2024-01-01 UTC, in microseconds.
const NEW_YEAR_2024: i64 = 1_704_067_200_000_000;
const SECOND: i64 = 1_000_000;

fn schema() -> SchemaRef {
    let time = || DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    Arc::new(Schema::new(vec![
        Field::new("id", DataType::FixedSizeBinary(16), false),
        Field::new("start_time", time(), false),
        Field::new("end_time", time(), false),
        Field::new("value", DataType::Float64, true),
        Field::new(
            "source",
            DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            true,
        ),
        Field::new("extras", DataType::Utf8, true),
    ]))
}

/// One row each: id, start, value. No row has extras.
fn rows(rows: &[(RecordId, i64, f64)]) -> RecordBatch {
    let ids = FixedSizeBinaryArray::try_from_iter(rows.iter().map(|(id, ..)| id.as_bytes())).unwrap();
    let times = || {
        Arc::new(
            TimestampMicrosecondArray::from_iter_values(rows.iter().map(|(_, start, _)| *start))
                .with_timezone("UTC"),
        ) as ArrayRef
    };
    let values = Float64Array::from_iter_values(rows.iter().map(|(.., value)| *value));
    let sources: DictionaryArray<Int32Type> = rows.iter().map(|_| Some("watch")).collect();
    let extras = StringArray::new_null(rows.len());
    RecordBatch::try_new(
        schema(),
        vec![
            Arc::new(ids),
            times(),
            times(),
            Arc::new(values),
            Arc::new(sources),
            Arc::new(extras),
        ],
    )
    .unwrap()
}

/// `count` rows a second apart with random ids.
fn many(count: usize, from: i64) -> RecordBatch {
    let heart = |row: usize| 60.0 + ((row * 7) % 41) as f64;
    let all: Vec<_> = (0..count)
        .map(|row| (RecordId(Uuid::new_v4()), from + row as i64 * SECOND, heart(row)))
        .collect();
    rows(&all)
}

fn ids_of(batch: &RecordBatch) -> Vec<RecordId> {
    let keys = super::arrange::KeyColumns::of(batch).unwrap();
    (0..batch.num_rows()).map(|row| keys.id(row)).collect()
}

fn heart_rate() -> TypeId {
    TypeId("HeartRate".into())
}

fn target(person: PersonId) -> Target {
    Target {
        person,
        data_type: heart_rate(),
        layout_version: 1,
    }
}

fn piece_id() -> PieceId {
    PieceId(Uuid::now_v7())
}

fn person() -> PersonId {
    PersonId(Uuid::now_v7())
}

/// A catalogue and an object store in one directory.
struct Bench {
    catalog: Catalog,
    objects: ObjectStorage,
    directory: tempfile::TempDir,
}

impl Bench {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let address = address_in(directory.path());
        let catalog = Catalog::open(&address, Arc::new(SystemClock)).await.unwrap();
        let objects =
            ObjectStorage::open(&ObjectStoreSettings::Local(directory.path().join("objects"))).unwrap();
        Self {
            catalog,
            objects,
            directory,
        }
    }

    async fn commit(&self, change: PartitionChange) {
        let commit = Commit {
            changes: vec![change],
            ..Commit::default()
        };
        assert_eq!(self.catalog.commit(commit).await.unwrap(), CommitOutcome::Done);
    }

    /// Of the person's heart rate.
    async fn stamp(&self, person: PersonId) -> Stamp {
        self.catalog.stamps(person, &[heart_rate()]).await.unwrap()[0]
    }
}

/// Adds pieces, whatever is stored.
fn change(person: PersonId, add: Vec<NewPiece>) -> PartitionChange {
    let records = add.iter().map(|piece| piece.rows).sum();
    PartitionChange {
        person,
        data_type: heart_rate(),
        expected: None,
        add,
        dead: Vec::new(),
        records_delta: records,
        updates: records,
    }
}
