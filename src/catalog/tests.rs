//! What the catalogue promises, shown on SQLite and, where `ALMANAC_TEST_POSTGRES_URL` names one, on a
//! PostgreSQL database.

mod bookkeeping;
mod copying;
mod documents;
mod erased_texts;
mod erasures;
mod estates;
mod locks;
mod orphans;
mod same_ids;
mod states;
mod updates;
mod witnesses;

use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

use super::records::{
    Bounds, Commit, CommitOutcome, Effect, Footer, GatheredTail, KeptUpload, NewPiece, NewPlace, Partition,
    PartitionChange, Place, Replace, SeenPartition, SeenSource, Stamp, UploadReceipt,
};
use super::{Catalog, CatalogError};
use crate::catalog::test_databases::{address_in, databases_at_hand};
use crate::model::clock::{Clock, ManualClock};
use crate::model::ids::{PersonId, PieceId, RecordId, UploadId};
use crate::model::registry::TypeId;
use crate::model::time::{Instant, TimeRange};

const MINUTE: i64 = 60_000_000;

/// A catalogue with everything that it lives in.
struct Bench {
    catalog: Catalog,
    clock: Arc<ManualClock>,
    address: String,
    directory: tempfile::TempDir,
}

impl Bench {
    async fn sqlite() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let address = address_in(directory.path());
        Self::open(directory, address).await
    }

    async fn open(directory: tempfile::TempDir, address: String) -> Self {
        let clock = Arc::new(ManualClock::at(Instant::from_micros(1_000 * MINUTE)));
        let catalog = Catalog::open(&address, clock.clone()).await.unwrap();
        Self {
            catalog,
            clock,
            address,
            directory,
        }
    }

    /// Every database that is at hand.
    async fn all() -> Vec<Self> {
        let mut benches = Vec::new();
        for (directory, address) in databases_at_hand() {
            benches.push(Self::open(directory, address).await);
        }
        benches
    }

    /// Lets so much of the database's time go by.
    async fn pass(&self, time: std::time::Duration) {
        if self.address.starts_with("postgres") {
            tokio::time::sleep(time).await;
        }
        let now = Clock::now(&*self.clock).micros();
        self.clock
            .set(Instant::from_micros(now + time.as_micros() as i64));
    }

    async fn partition(&self, person: PersonId, data_type: &TypeId) -> Partition {
        self.catalog
            .snapshot(person, std::slice::from_ref(data_type), &|_| false)
            .await
            .unwrap()
            .remove(0)
    }

    /// Of the person's heart rate.
    async fn stamp(&self, person: PersonId) -> Stamp {
        self.catalog.stamps(person, &[heart_rate()]).await.unwrap()[0]
    }
}

fn person() -> PersonId {
    PersonId(Uuid::now_v7())
}

fn record() -> RecordId {
    RecordId(Uuid::now_v7())
}

fn heart_rate() -> TypeId {
    TypeId("HeartRate".into())
}

fn bounds(from: i64, to: i64) -> Bounds {
    Bounds {
        min_start: Instant::from_micros(from),
        max_start: Instant::from_micros(to),
        max_end: Instant::from_micros(to + 1),
    }
}

fn tail(content: &'static [u8]) -> NewPiece {
    NewPiece {
        id: PieceId(Uuid::now_v7()),
        rows: 1,
        bounds: bounds(5, 7),
        layout_version: 1,
        checksum: crc32fast::hash(content),
        bytes: content.len() as i64,
        place: NewPlace::Tail {
            blob: Bytes::from_static(content),
            memory: 100,
        },
    }
}

fn object(path: &str) -> NewPiece {
    let footer = Footer {
        bytes: 10,
        checksum: 11,
    };
    NewPiece {
        place: NewPlace::Object {
            path: path.to_owned(),
            footer,
        },
        checksum: 9,
        ..tail(b"")
    }
}

/// Of a partition of which nothing was ever stored.
const NOTHING: Stamp = Stamp {
    version: 0,
    digest: 0,
};

fn change(person: PersonId, expected: Stamp, add: Vec<NewPiece>) -> PartitionChange {
    let records_delta = add.iter().map(|piece| piece.rows).sum();
    PartitionChange {
        person,
        data_type: heart_rate(),
        expected: Some(expected),
        updates: records_delta,
        records_delta,
        add,
        dead: Vec::new(),
    }
}

fn one(change: PartitionChange) -> Commit {
    Commit {
        changes: vec![change],
        ..Commit::default()
    }
}

fn ids(partition: &Partition) -> Vec<PieceId> {
    partition.pieces.iter().map(|piece| piece.id).collect()
}

#[tokio::test]
async fn what_was_committed_is_read_back() {
    for bench in Bench::all().await {
        let person = person();
        let (blob, file) = (tail(b"some rows"), object("data/x.parquet"));
        let commit = one(change(person, NOTHING, vec![blob.clone(), file.clone()]));
        assert_eq!(bench.catalog.commit(commit).await.unwrap(), CommitOutcome::Done);

        let partition = bench.partition(person, &heart_rate()).await;
        assert_eq!((partition.stamp.version, partition.records), (1, 2));
        let read = partition.pieces.iter().find(|piece| piece.id == blob.id).unwrap();
        assert!(matches!(&read.place, Place::Tail { blob: Some(blob) } if **blob == *b"some rows"));
        assert_eq!((read.rows, read.bounds, read.sequence), (1, blob.bounds, 1));
        let read = partition.pieces.iter().find(|piece| piece.id == file.id).unwrap();
        let footer = Footer {
            bytes: 10,
            checksum: 11,
        };
        assert!(matches!(
            &read.place,
            Place::Object { path, footer: read } if path == "data/x.parquet" && *read == footer
        ));
        assert_eq!(
            bench
                .catalog
                .stamps(person, &[TypeId("Steps".into()), heart_rate()])
                .await
                .unwrap()
                .iter()
                .map(|stamp| stamp.version)
                .collect::<Vec<_>>(),
            [0, 1]
        );
    }
}

#[tokio::test]
async fn a_commit_on_an_old_version_changes_nothing() {
    for bench in Bench::all().await {
        let (one_person, other_person) = (person(), person());
        bench
            .catalog
            .commit(one(change(one_person, NOTHING, vec![tail(b"first")])))
            .await
            .unwrap();
        let both = Commit {
            changes: vec![
                change(other_person, NOTHING, vec![tail(b"fresh")]),
                change(one_person, NOTHING, vec![tail(b"late")]),
            ],
            ..Commit::default()
        };
        assert_eq!(bench.catalog.commit(both).await.unwrap(), CommitOutcome::Stale);
        assert_eq!(bench.partition(one_person, &heart_rate()).await.records, 1);
        assert_eq!(
            bench.partition(other_person, &heart_rate()).await.stamp.version,
            0
        );
        assert!(!bench.catalog.person_exists(other_person).await.unwrap());
    }
}

#[tokio::test]
async fn pieces_put_together_go_with_their_bytes_and_their_rows_are_as_old_as_they_were() {
    for bench in Bench::all().await {
        let person = person();
        let (first, second) = (tail(b"first"), tail(b"second"));
        bench
            .catalog
            .commit(one(change(person, NOTHING, vec![first.clone()])))
            .await
            .unwrap();
        bench.pass(std::time::Duration::from_millis(20)).await;
        let early = bench.stamp(person).await;
        bench
            .catalog
            .commit(one(change(person, early, vec![second.clone()])))
            .await
            .unwrap();
        let before = bench.partition(person, &heart_rate()).await;
        let oldest = before.pieces.iter().map(|piece| piece.created_at).min().unwrap();
        bench.pass(std::time::Duration::from_millis(20)).await;
        let all = NewPiece {
            rows: 3,
            ..tail(b"first, second, third")
        };
        let gathered = GatheredTail {
            person,
            data_type: heart_rate(),
            pieces: vec![first.id, second.id],
            into: all.id,
        };
        let third = PartitionChange {
            records_delta: 1,
            ..change(person, before.stamp, vec![all.clone()])
        };
        let commit = |third: PartitionChange| Commit {
            gathered: vec![gathered.clone()],
            ..one(third)
        };
        let dying = PartitionChange {
            dead: vec![(first.id, record())],
            ..third.clone()
        };
        for refused in [
            commit(dying),
            commit(PartitionChange {
                add: Vec::new(),
                ..third.clone()
            }),
        ] {
            let outcome = bench.catalog.commit(refused).await;
            assert!(
                matches!(outcome, Err(CatalogError::Refused { .. })),
                "{outcome:?}"
            );
        }
        let late = PartitionChange {
            expected: Some(early),
            ..third.clone()
        };
        assert_eq!(
            bench.catalog.commit(commit(late)).await.unwrap(),
            CommitOutcome::Stale
        );
        assert_eq!(
            bench.catalog.commit(commit(third)).await.unwrap(),
            CommitOutcome::Done
        );

        let after = bench.partition(person, &heart_rate()).await;
        assert_eq!((ids(&after), after.records), (vec![all.id], 3));
        assert_eq!(after.pieces[0].created_at, oldest);
        assert!(bench.catalog.tail_blob(first.id).await.unwrap().is_none());
        assert_eq!(bench.catalog.complaints().await.unwrap(), Vec::<String>::new());
        assert_eq!(
            bench.catalog.damaged_partitions(person).await.unwrap(),
            Vec::<String>::new()
        );
    }
}

#[tokio::test]
async fn that_a_partition_needs_no_change_is_true_of_the_state_that_was_looked_at() {
    for bench in Bench::all().await {
        let person = person();
        let first = one(change(person, NOTHING, vec![tail(b"first")]));
        bench.catalog.commit(first).await.unwrap();
        let before = bench.stamp(person).await;
        let resting_on = |stamp: Stamp| {
            let steps = PartitionChange {
                data_type: TypeId("Steps".into()),
                expected: None,
                ..change(person, NOTHING, vec![tail(b"steps")])
            };
            Commit {
                unchanged: vec![SeenPartition {
                    person,
                    data_type: heart_rate(),
                    stamp,
                }],
                ..one(steps)
            }
        };
        for stale in [
            Stamp {
                version: before.version - 1,
                ..before
            },
            Stamp {
                digest: before.digest ^ 1,
                ..before
            },
        ] {
            let outcome = bench.catalog.commit(resting_on(stale)).await.unwrap();
            assert_eq!(outcome, CommitOutcome::Stale);
        }
        let done = bench.catalog.commit(resting_on(before)).await;
        assert_eq!(done.unwrap(), CommitOutcome::Done);
        assert_eq!(bench.stamp(person).await, before);
        assert_eq!(bench.partition(person, &TypeId("Steps".into())).await.records, 1);
    }
}

#[tokio::test]
async fn a_version_that_came_again_is_not_the_one_that_was_looked_at() {
    for bench in Bench::all().await {
        let (person, piece) = (person(), tail(b"first"));
        let first = one(change(person, NOTHING, vec![piece.clone()]));
        bench.catalog.commit(first).await.unwrap();
        let now = bench.stamp(person).await;
        let looked_at = |digest| change(person, Stamp { digest, ..now }, vec![tail(b"second")]);
        let of_another_history = one(looked_at(now.digest ^ 1));
        let stale = bench.catalog.commit(of_another_history).await.unwrap();
        assert_eq!(stale, CommitOutcome::Stale);
        // Nobody died in this history who was left out of the output.
        let replace = Replace {
            person,
            data_type: heart_rate(),
            inputs: vec![piece.id],
            applied: vec![(piece.id, record())],
            output: vec![object("data/new.parquet")],
        };
        let stale = bench.catalog.replace(replace).await.unwrap();
        assert_eq!(stale, CommitOutcome::Stale);
        let done = bench.catalog.commit(one(looked_at(now.digest))).await.unwrap();
        assert_eq!(done, CommitOutcome::Done);
    }
}

#[tokio::test]
async fn of_commits_at_the_same_version_exactly_one_wins() {
    for bench in Bench::all().await {
        let person = person();
        let attempts = (0..8).map(|_| {
            let catalog = bench.catalog.clone();
            tokio::spawn(async move {
                catalog
                    .commit(one(change(person, NOTHING, vec![tail(b"row")])))
                    .await
                    .unwrap()
            })
        });
        let outcomes = futures::future::join_all(attempts).await;
        let won = outcomes
            .into_iter()
            .filter(|outcome| *outcome.as_ref().unwrap() == CommitOutcome::Done)
            .count();
        assert_eq!(won, 1);
        assert_eq!(bench.partition(person, &heart_rate()).await.records, 1);
    }
}

#[tokio::test]
async fn replacing_keeps_rows_dead_that_died_after_the_output_was_read() {
    for bench in Bench::all().await {
        let person = person();
        let (old, applied, late) = (tail(b"three rows"), record(), record());
        bench
            .catalog
            .commit(one(change(person, NOTHING, vec![old.clone()])))
            .await
            .unwrap();
        for dead in [applied, late] {
            let change = PartitionChange {
                dead: vec![(old.id, dead)],
                records_delta: -1,
                ..change(person, bench.stamp(person).await, Vec::new())
            };
            assert_eq!(
                bench.catalog.commit(one(change)).await.unwrap(),
                CommitOutcome::Done
            );
        }
        let new = object("data/new.parquet");
        let replace = Replace {
            person,
            data_type: heart_rate(),
            inputs: vec![old.id],
            applied: vec![(old.id, applied)],
            output: vec![new.clone()],
        };
        assert_eq!(
            bench.catalog.replace(replace.clone()).await.unwrap(),
            CommitOutcome::Done
        );
        let partition = bench.partition(person, &heart_rate()).await;
        assert_eq!((partition.stamp.version, ids(&partition)), (4, vec![new.id]));
        assert_eq!(*partition.pieces[0].dead, [late]);
        assert_eq!(
            bench.catalog.replace(replace).await.unwrap(),
            CommitOutcome::Stale
        );

        let away = Replace {
            person,
            data_type: heart_rate(),
            inputs: vec![new.id],
            applied: vec![(new.id, late)],
            output: Vec::new(),
        };
        assert_eq!(bench.catalog.replace(away).await.unwrap(), CommitOutcome::Done);
        assert_eq!(bench.partition(person, &heart_rate()).await.pieces.len(), 0);
        assert_eq!(bench.catalog.partitions_of(person).await.unwrap()[0].bounds, None);
        let ever = Instant::from_micros(i64::MAX);
        let retired = bench.catalog.retired_objects(ever, None, 1_000).await.unwrap();
        let paths: Vec<String> = retired.into_iter().map(|object| object.path).collect();
        assert!(paths.contains(&"data/new.parquet".to_owned()));
        bench.catalog.forget_objects(&paths).await.unwrap();
        let left = bench.catalog.retired_objects(ever, None, 1_000).await.unwrap();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[tokio::test]
async fn a_key_is_taken_once_per_person() {
    for bench in Bench::all().await {
        let person = person();
        let effect = Effect {
            stored: 1,
            replaced: 2,
            unchanged: u64::MAX,
            deleted: 0,
        };
        let receipt = |fingerprint: u8| UploadReceipt {
            person,
            upload: UploadId(Uuid::now_v7()),
            key: Some(("key".to_owned(), [fingerprint; 32])),
            effect,
        };
        let first = receipt(1);
        let commit = Commit {
            uploads: vec![first.clone()],
            ..Commit::default()
        };
        assert_eq!(bench.catalog.commit(commit).await.unwrap(), CommitOutcome::Done);
        let again = Commit {
            uploads: vec![receipt(2)],
            ..one(change(person, NOTHING, vec![tail(b"twice")]))
        };
        assert_eq!(bench.catalog.commit(again).await.unwrap(), CommitOutcome::Stale);
        assert_eq!(
            bench.catalog.upload_for_key(person, "key").await.unwrap(),
            Some(KeptUpload {
                upload: first.upload,
                fingerprint: [1; 32],
                effect: Some(effect),
            })
        );
        assert_eq!(bench.partition(person, &heart_rate()).await.stamp.version, 0);
    }
}

#[tokio::test]
async fn a_copy_has_everything() {
    for bench in Bench::all().await {
        let person = person();
        bench
            .catalog
            .commit(one(change(
                person,
                NOTHING,
                vec![tail(b"some rows"), object("data/y.parquet")],
            )))
            .await
            .unwrap();
        let path = bench.directory.path().join("copy.sqlite");
        bench.catalog.copy_to(&path).await.unwrap();
        let copy = Catalog::open(&format!("sqlite://{}", path.display()), bench.clock.clone())
            .await
            .unwrap();
        let (ours, theirs) = (
            bench.partition(person, &heart_rate()).await,
            copy.snapshot(person, &[heart_rate()], &|_| false).await.unwrap(),
        );
        assert_eq!(format!("{ours:?}"), format!("{:?}", theirs[0]));
        assert!(matches!(
            bench.catalog.copy_to(&path).await,
            Err(CatalogError::Exists { .. })
        ));
    }
}

#[tokio::test]
async fn it_opens_again_and_remembers() {
    let Bench {
        catalog,
        clock,
        address,
        directory: _directory,
    } = Bench::sqlite().await;
    let person = person();
    catalog
        .commit(one(change(person, NOTHING, vec![tail(b"some rows")])))
        .await
        .unwrap();
    catalog.close().await;
    let again = Catalog::open(&address, clock).await.unwrap();
    assert_eq!(again.stamps(person, &[heart_rate()]).await.unwrap()[0].version, 1);
}

#[tokio::test]
async fn a_sound_catalogue_has_no_complaints() {
    for bench in Bench::all().await {
        let person = person();
        let piece = tail(b"some rows");
        let dead = vec![(piece.id, record())];
        bench
            .catalog
            .commit(one(PartitionChange {
                dead,
                ..change(person, NOTHING, vec![piece, object("data/z.parquet")])
            }))
            .await
            .unwrap();
        assert_eq!(bench.catalog.complaints().await.unwrap(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn thousands_of_people_fit_into_one_commit() {
    for bench in Bench::all().await {
        let people: Vec<PersonId> = (0..1_500).map(|_| person()).collect();
        for _ in 0..2 {
            let mut changes = Vec::new();
            for person in &people {
                changes.push(change(*person, bench.stamp(*person).await, vec![tail(b"row")]));
            }
            assert_eq!(
                bench
                    .catalog
                    .commit(Commit {
                        changes,
                        ..Commit::default()
                    })
                    .await
                    .unwrap(),
                CommitOutcome::Done
            );
        }
        for person in [people[0], people[1_499]] {
            assert_eq!(bench.partition(person, &heart_rate()).await.records, 2);
        }
    }
}

#[tokio::test]
async fn a_newer_catalogue_is_refused() {
    let Bench {
        catalog,
        clock,
        address,
        directory: _directory,
    } = Bench::sqlite().await;
    let mut session = catalog.database.write().await.unwrap();
    session
        .execute(
            "INSERT INTO schema_versions (version, applied_at) VALUES (99, 0)".to_owned(),
            Vec::new(),
        )
        .await
        .unwrap();
    session.commit().await.unwrap();
    catalog.close().await;
    assert!(matches!(
        Catalog::open(&address, clock).await,
        Err(CatalogError::TooNew { found: 99, .. })
    ));
}

#[tokio::test]
async fn an_older_catalogue_stays_as_it_is_for_who_only_looks() {
    let Bench {
        catalog,
        clock,
        address,
        directory: _directory,
    } = Bench::sqlite().await;
    // As if the last migration were to come.
    let mut session = catalog.database.write().await.unwrap();
    for statement in [
        "DELETE FROM schema_versions WHERE version = 11",
        "DROP TABLE updated_days",
    ] {
        session.execute(statement.to_owned(), Vec::new()).await.unwrap();
    }
    session.commit().await.unwrap();
    catalog.close().await;
    for _ in 0..2 {
        assert!(matches!(
            Catalog::open_beside(&address, clock.clone()).await,
            Err(CatalogError::TooOld { found: 10, .. })
        ));
    }
    Catalog::open(&address, clock.clone())
        .await
        .unwrap()
        .close()
        .await;
    Catalog::open_beside(&address, clock).await.unwrap().close().await;
}

#[tokio::test]
async fn an_address_that_names_no_database_is_refused_without_its_password() {
    let refused = Catalog::open(
        "mysql://me:secret@host/db",
        Arc::new(ManualClock::at(Instant::from_micros(0))),
    )
    .await;
    let Err(error @ CatalogError::Address) = refused else {
        panic!("it was accepted")
    };
    assert!(!error.to_string().contains("secret"), "{error}");
}
