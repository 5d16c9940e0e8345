//! Jobs change how rows are stored and never which rows there are, shown on small partitions.

mod collecting;
mod damage;
mod erasing;
mod erasures_end;
mod kept;
mod large_manifests;
mod leases;
mod lost_catalogue;
mod newest_manifests;
mod overtaken;
mod pairs;
mod purge;
mod rows_stay;
mod scouring;
mod set_aside;
mod unreadable;
mod whole;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{
    Array, AsArray, FixedSizeBinaryArray, Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, Float64Type, Schema, SchemaRef, TimeUnit};
use futures::TryStreamExt as _;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, SqliteConnection};
use uuid::Uuid;

use super::choose_objects::Limits;
use super::collect;
use super::compact;
use super::settings::UpkeepSettings;
use super::sorted_rows::SortedRows;
use super::stores::{PartitionKey, UpkeepStores};
use crate::catalog::Catalog;
use crate::catalog::records::{Commit, CommitOutcome, NewPiece, PartitionChange};
use crate::catalog::test_databases::{address_in, file_in};
use crate::model::clock::{Clock, ManualClock, SystemClock};
use crate::model::ids::{PersonId, PieceId, RecordId, SystemIds};
use crate::model::registry::TypeId;
use crate::model::time::Instant;
use crate::store::StoreError;
use crate::store::arrange::KeyColumns;
use crate::store::files::PieceFiles;
use crate::store::find::Finder;
use crate::store::objects::{ObjectStorage, ObjectStoreSettings};
use crate::store::piece::{Target, write_batch};
use crate::store::snapshot::{PieceContent, Snapshot, Snapshots};
use crate::store::tail;

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;
/// 2023-12-31T00:00:00Z, so that records of a few days lie in two years.
const LAST_DAY_OF_2023: i64 = 1_703_980_800 * SECOND;

/// What a person stored, by id: start and value.
type Model = BTreeMap<RecordId, (i64, f64)>;

/// Changes the catalogue behind its back.
async fn tamper(bench: &Bench, sql: &str) {
    let file = file_in(bench.directory.path());
    let mut connection = SqliteConnection::connect(&format!("sqlite://{}", file.display()))
        .await
        .unwrap();
    let changed = connection.execute(AssertSqlSafe(sql.to_owned())).await.unwrap();
    assert!(changed.rows_affected() > 0, "{sql}");
}

fn schema() -> SchemaRef {
    let time = || DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    Arc::new(Schema::new(vec![
        Field::new("id", DataType::FixedSizeBinary(16), false),
        Field::new("start_time", time(), false),
        Field::new("end_time", time(), false),
        Field::new("value", DataType::Float64, true),
        Field::new("note", DataType::Utf8, true),
    ]))
}

/// Rows of (id, start, value). A note stands in those of even value, so that some pieces have the column and
/// some do not.
fn rows(rows: &[(RecordId, i64, f64)]) -> RecordBatch {
    let ids = FixedSizeBinaryArray::try_from_iter(rows.iter().map(|(id, ..)| id.as_bytes())).unwrap();
    let times = || {
        Arc::new(
            TimestampMicrosecondArray::from_iter_values(rows.iter().map(|row| row.1)).with_timezone("UTC"),
        )
    };
    let notes: StringArray = rows
        .iter()
        .map(|(.., value)| (value % 2.0 == 0.0).then(|| format!("note {value}")))
        .collect();
    let values = Float64Array::from_iter_values(rows.iter().map(|row| row.2));
    RecordBatch::try_new(
        schema(),
        vec![Arc::new(ids), times(), times(), Arc::new(values), Arc::new(notes)],
    )
    .unwrap()
}

fn record(number: u128) -> RecordId {
    RecordId(Uuid::from_u128(number))
}

/// `count` rows a second apart, numbered from `first`.
fn many(first: u128, count: usize, from: i64) -> Vec<(RecordId, i64, f64)> {
    (0..count)
        .map(|row| {
            (
                record(first + row as u128),
                from + row as i64 * SECOND,
                row as f64,
            )
        })
        .collect()
}

/// Compacts a partition as it is now; returns whether anything was merged.
async fn compact(stores: &UpkeepStores, key: &PartitionKey, limits: &Limits) -> Result<bool, StoreError> {
    let pieces = stores.catalog.pieces_of(key.person, &key.data_type).await?;
    let compacted = compact::compact(stores, key, &pieces, limits).await?;
    Ok(compacted == compact::RewriteOutcome::Done)
}

/// Removes what was retired at least `grace` ago. Nothing of it may have to stay.
async fn remove_retired(stores: &UpkeepStores, grace: Duration) -> Result<usize, StoreError> {
    let mut removed = 0;
    let judge = |_, of_person: Result<usize, StoreError>| {
        removed += of_person?;
        Ok(true)
    };
    collect::remove_retired(stores, grace, collect::PATHS_AT_ONCE, |_| false, judge).await?;
    Ok(removed)
}

/// One partition with everything that it lives in.
struct Bench {
    stores: UpkeepStores,
    finder: Finder,
    clock: Arc<ManualClock>,
    key: PartitionKey,
    directory: tempfile::TempDir,
}

impl Bench {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let objects =
            ObjectStorage::open(&ObjectStoreSettings::Local(directory.path().join("objects"))).unwrap();
        Self::over(directory, objects).await
    }

    async fn over(directory: tempfile::TempDir, objects: ObjectStorage) -> Self {
        let clock = Arc::new(ManualClock::at(SystemClock.now()));
        let address = address_in(directory.path());
        let catalog = Catalog::open(&address, clock.clone()).await.unwrap();
        let files = PieceFiles::new(objects, 1 << 20);
        let stores = UpkeepStores {
            snapshots: Snapshots::new(catalog.clone(), 1 << 20),
            catalog,
            files: files.clone(),
            clock: clock.clone(),
            ids: Arc::new(SystemIds::default()),
        };
        let key = PartitionKey {
            person: PersonId(Uuid::now_v7()),
            data_type: TypeId::new("HeartRate"),
        };
        Self {
            stores,
            finder: Finder::new(files, 1 << 20),
            clock,
            key,
            directory,
        }
    }

    /// This store with a catalogue that is new.
    async fn without_catalogue(self) -> Self {
        self.stores.catalog.close().await;
        let objects = self.stores.objects().clone();
        let file = self.directory.path().join(format!("{}.sqlite", Uuid::new_v4()));
        let address = format!("sqlite://{}", file.display());
        let catalog = Catalog::open(&address, self.clock.clone()).await.unwrap();
        let files = PieceFiles::new(objects, 1 << 20);
        Self {
            stores: UpkeepStores {
                snapshots: Snapshots::new(catalog.clone(), 1 << 20),
                catalog,
                files: files.clone(),
                ..self.stores
            },
            finder: Finder::new(files, 1 << 20),
            ..self
        }
    }

    fn pass(&self, time: Duration) {
        self.clock.set(Instant::from_micros(
            self.clock.now().micros() + time.as_micros() as i64,
        ));
    }

    async fn snapshot(&self) -> Arc<Snapshot> {
        self.stores
            .snapshots
            .get(self.key.person, std::slice::from_ref(&self.key.data_type))
            .await
            .unwrap()
            .remove(0)
    }

    /// Puts rows into the tail, or straight into objects; rows with the same ids die.
    async fn put(&self, put: &[(RecordId, i64, f64)], as_object: bool) {
        let batch = rows(put);
        let add = if as_object {
            let target = Target {
                person: self.key.person,
                data_type: self.key.data_type.clone(),
                layout_version: 1,
            };
            write_batch(self.stores.objects(), self.stores.ids.as_ref(), target, &batch)
                .await
                .unwrap()
        } else {
            vec![tail::piece(PieceId(Uuid::now_v7()), &batch, 1).unwrap()]
        };
        let ids: Vec<RecordId> = put.iter().map(|row| row.0).collect();
        self.change(add, &ids).await;
    }

    async fn delete(&self, ids: &[RecordId]) {
        self.change(Vec::new(), ids).await;
    }

    /// Adds pieces; rows stored before under `ids` die.
    async fn change(&self, add: Vec<NewPiece>, ids: &[RecordId]) {
        let snapshot = self.snapshot().await;
        let stored = self.finder.live_rows_of(&snapshot, ids).await.unwrap();
        let dead: Vec<_> = stored
            .into_iter()
            .flat_map(|part| part.ids.into_iter().map(move |id| (part.piece, id)))
            .collect();
        let records_delta = add.iter().map(|piece| piece.rows).sum::<i64>() - dead.len() as i64;
        let PartitionKey { person, data_type } = self.key.clone();
        let change = PartitionChange {
            person,
            data_type,
            expected: Some(snapshot.stamp),
            add,
            dead,
            records_delta,
            updates: 1,
        };
        assert_eq!(
            self.stores
                .catalog
                .commit(Commit {
                    changes: vec![change],
                    ..Commit::default()
                })
                .await
                .unwrap(),
            CommitOutcome::Done
        );
    }

    /// Everything that a reader sees now. Rows that appear twice fail the test.
    async fn visible(&self) -> Model {
        let snapshot = self.snapshot().await;
        let mut model = Model::new();
        for piece in &snapshot.pieces {
            let batches = match &piece.content {
                PieceContent::Tail(rows) => vec![rows.batch().clone()],
                PieceContent::Object(place) => {
                    let sorted = SortedRows::of_object(&self.stores.files, place, Vec::new().into())
                        .await
                        .unwrap();
                    sorted.batches.try_collect().await.unwrap()
                }
            };
            for batch in batches {
                let batch = crate::store::arrange::with_columns(&batch, &schema()).unwrap();
                let keys = KeyColumns::of(&batch).unwrap();
                let values = batch.column(3).as_primitive::<Float64Type>();
                let notes = batch.column(4).as_string::<i32>();
                for row in (0..keys.len()).filter(|row| piece.dead.binary_search(&keys.id(*row)).is_err()) {
                    let value = values.value(row);
                    let note = notes.is_valid(row).then(|| notes.value(row).to_owned());
                    assert_eq!(note, (value % 2.0 == 0.0).then(|| format!("note {value}")));
                    let twice = model.insert(keys.id(row), (keys.starts.value(row), value));
                    assert_eq!(twice, None, "{} is stored twice", keys.id(row));
                }
            }
        }
        assert_eq!(snapshot.records, model.len() as i64);
        model
    }

    /// Paths of objects that pieces point to, and of all that are there.
    async fn paths(&self) -> (Vec<String>, Vec<String>) {
        let live = self
            .stores
            .catalog
            .object_paths(None)
            .await
            .unwrap()
            .into_iter()
            .map(|cursor| cursor.path);
        let listed = self
            .stores
            .objects()
            .list("data")
            .unwrap()
            .map_ok(|object| object.path);
        let mut all: Vec<String> = listed.try_collect().await.unwrap();
        all.sort();
        let mut live: Vec<String> = live.collect();
        live.sort();
        (live, all)
    }
}

fn settings() -> UpkeepSettings {
    UpkeepSettings {
        enabled: true,
        interval: Duration::from_millis(20),
        flush_age: Duration::from_mins(1),
        flush_size: 1 << 20,
        grace_period: Duration::from_mins(10),
        search_interval: Duration::from_hours(1),
        purge_deleted_after: Duration::from_hours(30 * 24),
        collect_anyway: false,
    }
}
