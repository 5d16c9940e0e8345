//! Records that are held against what their process remembers, which another process has changed since.

use std::time::Duration;

use futures::TryStreamExt as _;

use crate::catalog::Catalog;
use crate::catalog::records::{Effect, NewPlace};
use crate::catalog::test_databases::address_in;
use crate::ingest::changes::Change;
use crate::ingest::intake::{Intake, Rows};
use crate::ingest::pressure::TailPressure;
use crate::ingest::queue::{CommitQueue, Committer, GroupOutcome, QueueSettings};
use crate::ingest::stores::IntakeStores;
use crate::ingest::submit::submit;
use crate::ingest::upload::{PartitionChanges, Upload, Work};
use crate::model::clock::SystemClock;
use crate::model::ids::{PersonId, SystemIds, UploadId};
use crate::store::files::PieceFiles;
use crate::store::objects::{ObjectStorage, ObjectStoreSettings};
use crate::store::snapshot::Snapshots;

use super::*;

const MEMORY: u64 = 1 << 20;
const PERSON: PersonId = PersonId(Uuid::from_u128(7));

/// A process, and how often somebody else came first.
pub(super) struct Process {
    pub catalog: Catalog,
    pub shared: IntakeStores,
    commits: CommitQueue,
    overtaken: Arc<AtomicU64>,
}

impl Process {
    pub(super) async fn over(directory: &std::path::Path) -> Self {
        let address = address_in(directory);
        let catalog = Catalog::open(&address, Arc::new(SystemClock)).await.unwrap();
        let objects = ObjectStoreSettings::Local(directory.join("objects"));
        let objects = ObjectStorage::open(&objects).unwrap();
        let overtaken = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&overtaken);
        let snapshots = Snapshots::new(catalog.clone(), MEMORY);
        let files = PieceFiles::new(objects, MEMORY);
        let shared = IntakeStores::new(snapshots, files, MEMORY, Arc::new(SystemIds::default()));
        let committer = Committer {
            catalog: catalog.clone(),
            shared: shared.clone(),
            tail: TailPressure::new(catalog.clone(), usize::MAX),
            report: Box::new(move |report| {
                let is_overtaken = matches!(report.outcome, GroupOutcome::Overtaken(_));
                counted.fetch_add(u64::from(is_overtaken), Ordering::SeqCst);
            }),
        };
        let settings = QueueSettings {
            waiting: 10,
            waiting_bytes: 1 << 20,
            group: 10,
            window: Duration::ZERO,
            size: 1 << 20,
            at_once: 1,
        };
        let (commits, _committing) = CommitQueue::start(settings, committer);
        Self {
            catalog,
            shared,
            commits,
            overtaken,
        }
    }

    /// What it does to send a heart rate under the id of that number.
    async fn send(&self, id: u128, value: f64) -> Effect {
        let decoded = heart_rate(id, value);
        let change = Change::put(decoded.rows, decoded.given.into(), decoded.undated.into());
        let work = Work::Small(vec![PartitionChanges {
            data_type: decoded.data_type.id.clone(),
            layout: Arc::clone(&decoded.data_type.layout),
            changes: vec![change],
        }]);
        self.commit(PERSON, work).await
    }

    pub(super) async fn commit(&self, person: PersonId, work: Work) -> Effect {
        let committed = self.commits.commit(upload(person, work)).await;
        committed.unwrap().effect.unwrap()
    }

    fn was_overtaken(&self) -> u64 {
        self.overtaken.load(Ordering::SeqCst)
    }
}

/// A heart rate under the id of that number.
fn heart_rate(id: u128, value: f64) -> DecodedRows {
    let id = Uuid::from_u128(id);
    let time = "2024-05-01T10:00:00Z";
    let line =
        format!(r#"{{"id":"{id}","start_date":"{time}","end_date":"{time}","value":{value},"unit":"bpm"}}"#);
    rows("HeartRate", &[&line])
}

fn upload(person: PersonId, work: Work) -> Upload {
    Upload {
        person,
        upload: UploadId(Uuid::now_v7()),
        key: None,
        work,
        sources: Vec::new(),
        memory: None,
        held: None,
    }
}

/// Records that were stored, replaced, and there already.
const fn told(effect: Effect) -> [u64; 3] {
    [effect.stored, effect.replaced, effect.unchanged]
}

#[tokio::test]
async fn what_another_process_stored_is_seen_although_something_older_is_remembered() {
    let directory = tempfile::tempdir().unwrap();
    let one = Process::over(directory.path()).await;
    let other = Process::over(directory.path()).await;

    assert_eq!(told(one.send(1, 70.0).await), [1, 0, 0]);
    assert_eq!(told(one.send(1, 70.0).await), [0, 0, 1]);
    assert_eq!(one.was_overtaken(), 0, "what it did itself it remembers");

    assert_eq!(told(other.send(2, 80.0).await), [1, 0, 0]);
    assert_eq!(told(other.send(1, 71.0).await), [0, 1, 0]);
    assert_eq!(told(one.send(2, 80.0).await), [0, 0, 1]);
    assert_eq!(one.was_overtaken(), 1);
    assert_eq!(told(one.send(1, 70.0).await), [0, 1, 0]);
    assert_eq!(one.was_overtaken(), 1, "it knows by now");
    // What changes nothing is true of one state as well.
    assert_eq!(told(other.send(1, 71.0).await), [0, 1, 0]);
    assert_eq!(told(one.send(1, 71.0).await), [0, 0, 1]);
    assert_eq!((one.was_overtaken(), other.was_overtaken()), (2, 1));
}

#[tokio::test]
async fn what_a_large_body_wrote_at_its_commit_goes_with_the_rest_when_it_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let process = Process::over(directory.path()).await;
    process.send(1, 70.0).await;
    let mut intake = Intake::new(process.shared.clone(), PERSON, data_type("HeartRate"));
    for (id, value) in [(1, 70.0), (2, 80.0)] {
        let decoded = heart_rate(id, value);
        let chunk = Rows {
            batch: decoded.rows,
            given: decoded.given,
            undated: decoded.undated,
        };
        intake.push(chunk).await.unwrap();
    }
    let Work::Written(written) = intake.finish().await.unwrap() else {
        panic!("a body of two chunks is written");
    };
    let paths = written
        .pieces
        .all()
        .into_iter()
        .filter_map(|piece| match piece.place {
            NewPlace::Object { path, .. } => Some(path),
            NewPlace::Tail { .. } => None,
        });
    let paths: Vec<String> = paths.collect();
    assert_eq!(paths.len(), 1, "the first was stored already");
    let there = async || {
        let listed = process.shared.objects.list("data").unwrap();
        let listed = listed.map_ok(|object| object.path).try_collect::<Vec<String>>();
        listed.await.unwrap()
    };
    assert_eq!(there().await, paths);

    // Now the first has to be written after all; and what a search took for orphans is refused.
    process.send(1, 71.0).await;
    process.catalog.condemn(&paths).await.unwrap();
    let work = Work::Written(written);
    let objects = &process.shared.objects;
    let refused = submit(&process.commits, &process.catalog, objects, upload(PERSON, work)).await;
    assert!(refused.is_err(), "{refused:?}");
    for _ in 0..500 {
        if there().await.is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("these stay: {:?}", there().await);
}
