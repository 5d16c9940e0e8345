//! What becomes of orders. On a catalogue of their own: whoever looks for orders finds those of everybody.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt as _;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::catalog::Catalog;
use crate::catalog::test_databases::{address_in, file_in};
use crate::model::clock::{Clock, ManualClock, SystemClock};
use crate::model::ids::{PersonId, SystemIds};
use crate::model::meters::UpkeepMeters;
use crate::model::time::Instant;
use crate::people::condition::Condition;
use crate::people::takeout::export::Export;
use crate::people::takeout::outlet::StoredOutlet;
use crate::people::takeout::{Building, ExportError, ExportSettings, ExportState, Exports};
use crate::store::StoreError;
use crate::store::contents::PART_BYTES;
use crate::store::files::PieceFiles;
use crate::store::folder_names::EXPORTS_FOLDER;
use crate::store::objects::{ObjectStorage, ObjectStoreSettings};
use crate::store::snapshot::Snapshots;
use crate::upkeep::UpkeepStores;
use crate::upkeep::collect::{CONDEMNED_AGE, ORPHAN_AGE, remove_orphans};
use crate::upkeep::lease::Leases;

const SETTINGS: ExportSettings = ExportSettings {
    lifetime: Duration::from_hours(24),
    at_once: 2,
    limit: 3,
};

pub(super) struct Bench {
    pub(super) exports: Exports,
    pub(super) stores: UpkeepStores,
    clock: Arc<ManualClock>,
    pub(super) person: PersonId,
    pub(super) directory: tempfile::TempDir,
}

impl Bench {
    pub(super) async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let address = address_in(directory.path());
        // Close to the disk's time, by which orphans are told.
        let clock = Arc::new(ManualClock::at(SystemClock.now()));
        let catalog = Catalog::open(&address, clock.clone()).await.unwrap();
        let settings = ObjectStoreSettings::Local(directory.path().join("objects"));
        let objects = ObjectStorage::open(&settings).unwrap();
        let stores = UpkeepStores {
            snapshots: Snapshots::new(catalog.clone(), 1 << 20),
            files: PieceFiles::new(objects, 1 << 20),
            catalog,
            clock: clock.clone(),
            ids: Arc::new(SystemIds::default()),
        };
        Self {
            exports: Exports::new(stores.clone(), SETTINGS, "com.almanac".into()),
            stores,
            clock,
            person: PersonId(Uuid::now_v7()),
            directory,
        }
    }

    /// The exports as a node finds them whose own clock is ahead.
    fn ahead(&self, time: Duration) -> Exports {
        let stores = UpkeepStores {
            clock: Arc::new(ManualClock::at(self.clock.now().after(time))),
            ..self.stores.clone()
        };
        Exports::new(stores, SETTINGS, "com.almanac".into())
    }

    fn pass(&self, time: Duration) {
        let now = self.clock.now().micros() + time.as_micros() as i64;
        self.clock.set(Instant::from_micros(now));
    }

    /// Makes the person known.
    pub(super) async fn enrol(&self) {
        let known = self.stores.catalog.ensure_person(self.person, None).await;
        known.unwrap();
    }

    /// Begins an export, as a node does whose turn it is.
    async fn begin(&self, order: Export) -> StoredOutlet<'_> {
        let begun = StoredOutlet::begin(&self.exports, order).await;
        begun.unwrap().unwrap()
    }

    /// One look for work, by a node of its own.
    async fn round(&self) {
        let holder = Uuid::now_v7().to_string();
        let leases = Leases::new(self.stores.catalog.clone(), holder, UpkeepMeters::default());
        let building = Building::new(self.exports.clone(), leases);
        building.round(&CancellationToken::new()).await.unwrap();
    }

    /// The objects of the person's exports.
    async fn objects(&self) -> Vec<String> {
        let folder = format!("{EXPORTS_FOLDER}/{}", self.person);
        let listed: Vec<_> = self
            .stores
            .objects()
            .list(&folder)
            .unwrap()
            .try_collect()
            .await
            .unwrap();
        listed.into_iter().map(|object| object.path).collect()
    }

    /// An object that a crash left in the folder of an export.
    async fn leave(&self, export: Uuid) -> String {
        let path = format!("{EXPORTS_FOLDER}/{}/{export}/{}", self.person, Uuid::now_v7());
        let bytes = Bytes::from_static(b"remains");
        self.stores.objects().put(&path, bytes).await.unwrap();
        path
    }
}

#[tokio::test]
async fn an_order_becomes_an_archive_and_ends_with_its_time() {
    let bench = Bench::new().await;
    bench.enrol().await;
    let order = bench.exports.create(bench.person).await.unwrap();
    assert_eq!(order.state, ExportState::Waiting);
    bench.round().await;
    let export = bench.exports.get(bench.person, order.id).await.unwrap();
    assert_eq!(export.state, ExportState::Ready);
    let content = bench.exports.content(&export).unwrap();
    assert_eq!(content.sha256, export.sha256);
    let bytes: Vec<Bytes> = bench
        .exports
        .contents()
        .read(&content, 0..content.length)
        .try_collect()
        .await
        .unwrap();
    assert_eq!(bytes.concat().len() as u64, export.bytes());
    assert_eq!(bench.objects().await.len(), 1);
    assert_eq!(bench.exports.remove_expired().await.unwrap(), 0);
    bench.pass(SETTINGS.lifetime);
    let gone = bench.exports.get(bench.person, order.id).await;
    assert!(matches!(gone, Err(ExportError::Unknown(_))), "its time is over");
    assert_eq!(bench.exports.remove_expired().await.unwrap(), 1);
    assert!(bench.objects().await.is_empty());
    let folder = content.folder();
    assert!(!bench.directory.path().join("objects").join(folder).exists());
}

#[tokio::test]
async fn a_damaged_export_keeps_nobody_elses_from_being_made_or_from_going() {
    for is_made in [false, true] {
        let mut bench = Bench::new().await;
        bench.enrol().await;
        let damaged = bench.exports.create(bench.person).await.unwrap();
        bench.person = PersonId(Uuid::now_v7());
        bench.enrol().await;
        let sound = bench.exports.create(bench.person).await.unwrap();
        if is_made {
            bench.round().await;
        }
        let catalogue = rusqlite::Connection::open(file_in(bench.directory.path())).unwrap();
        let sql = "UPDATE documents SET checksum = checksum + 1 WHERE document = ?1";
        assert_eq!(catalogue.execute(sql, [damaged.id.as_bytes()]).unwrap(), 1);
        bench.round().await;
        let export = bench.exports.get(bench.person, sound.id).await.unwrap();
        assert_eq!(export.state, ExportState::Ready);
        bench.pass(SETTINGS.lifetime);
        assert_eq!(bench.exports.remove_expired().await.unwrap(), 1);
    }
}

#[tokio::test]
async fn an_archive_that_is_deleted_while_it_is_read_is_missing_and_one_that_is_lost_is_damaged() {
    let bench = Bench::new().await;
    bench.enrol().await;
    let mut contents = Vec::new();
    for _ in 0..2 {
        let order = bench.exports.create(bench.person).await.unwrap();
        bench.round().await;
        let export = bench.exports.get(bench.person, order.id).await.unwrap();
        contents.push(bench.exports.content(&export).unwrap());
    }
    let (deleted, lost) = (&contents[0], &contents[1]);
    bench
        .exports
        .remove(bench.person, deleted.id, &Condition::NONE)
        .await
        .unwrap();
    let path = lost.path_of(&lost.parts[0]);
    bench.stores.objects().delete(&path).await.unwrap();
    let read = bench.exports.contents().examine(deleted).await;
    assert!(matches!(read, Err(StoreError::Missing { .. })), "{read:?}");
    let read = bench.exports.contents().examine(lost).await;
    assert!(matches!(read, Err(StoreError::Corrupt { .. })), "{read:?}");
}

#[tokio::test]
async fn an_archive_that_is_begun_anew_while_it_is_read_is_missing() {
    let bench = Bench::new().await;
    let order = bench.exports.create(bench.person).await.unwrap();
    let mut outlet = bench.begin(order.clone()).await;
    let half = Bytes::from(vec![7; PART_BYTES as usize]);
    outlet.write(half).await.unwrap();
    let content = outlet.export().content();
    assert_eq!(content.parts.len(), 1);
    let current = bench.exports.get(bench.person, order.id).await.unwrap();
    bench.begin(current).await;
    let read = bench.exports.contents().examine(&content).await;
    assert!(matches!(read, Err(StoreError::Missing { .. })), "{read:?}");
}

#[tokio::test]
async fn so_many_are_made_at_once_and_so_many_are_kept() {
    let bench = Bench::new().await;
    let create = || bench.exports.create(bench.person);
    let first = create().await.unwrap();
    create().await.unwrap();
    assert!(matches!(create().await, Err(ExportError::Busy(2))));
    bench
        .exports
        .remove(bench.person, first.id, &Condition::NONE)
        .await
        .unwrap();
    create().await.unwrap();
    bench.round().await;
    create().await.unwrap();
    assert!(matches!(create().await, Err(ExportError::LimitReached(_))));
    let other = PersonId(Uuid::now_v7());
    bench.exports.create(other).await.unwrap();
    assert_eq!(bench.exports.of_person(bench.person).await.unwrap().len(), 3);
    let foreign = bench.exports.remove(other, first.id, &Condition::NONE).await;
    assert!(matches!(foreign, Err(ExportError::Unknown(_))));
}

#[tokio::test]
async fn what_an_attempt_registered_is_gone_when_the_next_one_ends() {
    let bench = Bench::new().await;
    bench.enrol().await;
    let order = bench.exports.create(bench.person).await.unwrap();
    // Somebody began, registered a part, wrote some of the next one, and was never heard of again.
    let mut outlet = bench.begin(order.clone()).await;
    let whole = Bytes::from(vec![7; PART_BYTES as usize]);
    outlet.write(whole).await.unwrap();
    outlet.write(Bytes::from_static(b"half")).await.unwrap();
    assert_eq!(outlet.export().content().parts.len(), 1);
    bench.round().await;
    let export = bench.exports.get(bench.person, order.id).await.unwrap();
    assert_eq!(
        export.state,
        ExportState::Running,
        "whoever is at work is given some time"
    );
    bench.pass(Duration::from_secs(11));
    bench.round().await;
    let export = bench.exports.get(bench.person, order.id).await.unwrap();
    assert_eq!(export.state, ExportState::Ready);
    assert_eq!(bench.objects().await.len(), 1, "nothing but what is named");
    let late = outlet.finish().await;
    assert!(
        matches!(late, Err(ExportError::Overtaken)),
        "they come back too late"
    );
    assert_eq!(bench.objects().await.len(), 1);
}

#[tokio::test]
async fn whoever_begins_removes_nothing_that_the_attempt_before_had_not_registered() {
    let bench = Bench::new().await;
    let order = bench.exports.create(bench.person).await.unwrap();
    let mut outlet = bench.begin(order.clone()).await;
    let whole = Bytes::from(vec![7; PART_BYTES as usize]);
    outlet.write(whole).await.unwrap();
    let content = outlet.export().content();
    let registered = content.path_of(&content.parts[0]);
    // What another node stores that begins while this one stalls.
    let of_another = bench.leave(order.id).await;
    let mut both = bench.objects().await;
    both.sort();
    let mut expected = vec![registered, of_another.clone()];
    expected.sort();
    assert_eq!(both, expected);
    let current = bench.exports.get(bench.person, order.id).await.unwrap();
    bench.begin(current).await;
    assert_eq!(bench.objects().await, [of_another]);
}

#[tokio::test]
async fn an_archive_that_is_finished_has_all_of_its_bytes() {
    let bench = Bench::new().await;
    let order = bench.exports.create(bench.person).await.unwrap();
    let mut outlet = bench.begin(order).await;
    outlet.write(Bytes::from_static(b"half")).await.unwrap();
    assert_eq!(outlet.export().bytes(), 0, "no part is full");
    let export = outlet.finish().await.unwrap();
    assert_eq!((export.state, export.bytes()), (ExportState::Ready, 4));
}

#[tokio::test]
async fn a_node_whose_clock_is_ahead_removes_no_archive_before_its_time() {
    let bench = Bench::new().await;
    bench.enrol().await;
    let order = bench.exports.create(bench.person).await.unwrap();
    bench.round().await;
    let mistaken = bench.ahead(SETTINGS.lifetime * 3);
    assert_eq!(mistaken.remove_expired().await.unwrap(), 0);
    let export = mistaken.get(bench.person, order.id).await.unwrap();
    assert_eq!(export.state, ExportState::Ready);
    assert_eq!(mistaken.of_person(bench.person).await.unwrap().len(), 1);
    bench.pass(SETTINGS.lifetime);
    assert_eq!(mistaken.remove_expired().await.unwrap(), 1);
}

#[tokio::test]
async fn what_a_node_whose_clock_is_ahead_began_is_soon_begun_anew() {
    let bench = Bench::new().await;
    bench.enrol().await;
    let mistaken = bench.ahead(SETTINGS.lifetime * 3);
    let order = mistaken.create(bench.person).await.unwrap();
    assert_eq!(order.created_at, bench.clock.now());
    // It dies here.
    StoredOutlet::begin(&mistaken, order.clone())
        .await
        .unwrap()
        .unwrap();
    bench.pass(Duration::from_secs(11));
    bench.round().await;
    let export = bench.exports.get(bench.person, order.id).await.unwrap();
    assert_eq!(export.state, ExportState::Ready);
}

#[tokio::test]
async fn an_export_from_the_future_is_due_and_is_then_of_its_time() {
    let bench = Bench::new().await;
    bench.enrol().await;
    let now = bench.clock.now();
    bench.pass(SETTINGS.lifetime * 3);
    let order = bench.exports.create(bench.person).await.unwrap();
    bench.begin(order.clone()).await;
    // The clock is set right.
    bench.clock.set(now);
    bench.round().await;
    let export = bench.exports.get(bench.person, order.id).await.unwrap();
    assert_eq!(export.state, ExportState::Ready);
    assert_eq!(export.updated_at, now);
    assert_eq!(export.expires_at, Some(now.after(SETTINGS.lifetime)));
}

#[tokio::test]
async fn whoever_deletes_an_export_that_is_being_made_ends_it() {
    let bench = Bench::new().await;
    let order = bench.exports.create(bench.person).await.unwrap();
    let mut outlet = bench.begin(order.clone()).await;
    outlet.write(Bytes::from_static(b"half")).await.unwrap();
    bench
        .exports
        .remove(bench.person, order.id, &Condition::NONE)
        .await
        .unwrap();
    let late = outlet.finish().await;
    assert!(matches!(late, Err(ExportError::Overtaken)));
    assert!(bench.objects().await.is_empty());
    bench.round().await;
    assert!(bench.exports.of_person(bench.person).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_is_given_up_says_so_and_keeps_nothing() {
    let bench = Bench::new().await;
    let order = bench.exports.create(bench.person).await.unwrap();
    let mut outlet = bench.begin(order.clone()).await;
    outlet.write(Bytes::from_static(b"half")).await.unwrap();
    outlet.fail("because").await.unwrap();
    let export = bench.exports.get(bench.person, order.id).await.unwrap();
    assert_eq!(export.state, ExportState::Failed);
    assert_eq!(export.reason.as_deref(), Some("because"));
    assert!(matches!(bench.exports.content(&export), Err(ExportError::Failed)));
    assert!(bench.objects().await.is_empty());
    bench.exports.create(bench.person).await.unwrap();
}

#[tokio::test]
async fn what_is_begun_again_and_again_and_never_ends_is_given_up() {
    let bench = Bench::new().await;
    bench.enrol().await;
    let order = bench.exports.create(bench.person).await.unwrap();
    let current = || bench.exports.get(bench.person, order.id);
    for _ in 0..10 {
        // It dies each time.
        bench.begin(current().await.unwrap()).await;
    }
    bench.leave(order.id).await;
    assert_eq!(current().await.unwrap().state, ExportState::Running);
    bench.pass(Duration::from_secs(101));
    bench.round().await;
    let export = current().await.unwrap();
    assert_eq!(export.state, ExportState::Failed);
    assert!(export.reason.is_some());
    assert!(bench.objects().await.is_empty());
}

#[tokio::test]
async fn objects_of_exports_that_nothing_names_are_collected_and_no_others() {
    let bench = Bench::new().await;
    bench.enrol().await;
    let order = bench.exports.create(bench.person).await.unwrap();
    bench.round().await;
    let orphan = bench.leave(Uuid::now_v7()).await;
    let beside = bench.leave(order.id).await;
    assert_eq!(bench.objects().await.len(), 3);
    remove_orphans(&bench.stores, false).await.unwrap();
    bench.pass(ORPHAN_AGE + Duration::from_mins(1));
    remove_orphans(&bench.stores, false).await.unwrap();
    bench.pass(CONDEMNED_AGE + Duration::from_mins(1));
    remove_orphans(&bench.stores, false).await.unwrap();
    let left = bench.objects().await;
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(!left.contains(&orphan) && !left.contains(&beside));
    let export = bench.exports.get(bench.person, order.id).await.unwrap();
    let content = bench.exports.content(&export).unwrap();
    bench.exports.contents().examine(&content).await.unwrap();
}
