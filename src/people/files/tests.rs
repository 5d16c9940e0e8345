//! What becomes of files, shown on SQLite and, where `ALMANAC_TEST_POSTGRES_URL` names one, on PostgreSQL.

mod brought_back;
mod direct;
mod listed;
mod machine;
mod purged;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt as _;
use uuid::Uuid;

use super::{
    AnnouncedFile, File, FileSettings, FileState, Files, FilesError, Listing, ListingFilter, Received,
    ScanState, SentBytes, UploadError,
};
use crate::catalog::Catalog;
use crate::catalog::test_databases::{address_in, databases_at_hand, file_in};
use crate::model::clock::{Clock, ManualClock, SystemClock};
use crate::model::ids::{PersonId, SystemIds};
use crate::model::time::{Instant, TimeRange};
use crate::people::limits::PersonLimits;
use crate::store::StoreError;
use crate::store::contents::Contents;
use crate::store::folder_names::FILES_FOLDER;
use crate::store::objects::{ObjectStorage, ObjectStoreSettings};
use crate::upkeep::UpkeepStores;
use crate::upkeep::collect::{CONDEMNED_AGE, CONTENT_PATIENCE, ORPHAN_AGE, remove_orphans};

const LIMITS: PersonLimits = PersonLimits {
    files: 50,
    file_bytes: 1000,
    all_file_bytes: 2000,
    ..PersonLimits::GENEROUS
};
const LIFETIME: Duration = Duration::from_hours(24);
const LIST_MEMORY: u64 = 1 << 20;

/// The files of one person with everything that they live in.
struct Bench {
    files: Files,
    catalog: Catalog,
    objects: ObjectStorage,
    clock: Arc<ManualClock>,
    person: PersonId,
    directory: tempfile::TempDir,
}

impl Bench {
    async fn sqlite() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let address = address_in(directory.path());
        Self::open(directory, &address).await
    }

    /// Every database that is at hand.
    async fn all() -> Vec<Self> {
        let mut benches = Vec::new();
        for (directory, address) in databases_at_hand() {
            benches.push(Self::open(directory, &address).await);
        }
        benches
    }

    async fn open(directory: tempfile::TempDir, address: &str) -> Self {
        // Close to the disk's time, by which orphans are told.
        let clock = Arc::new(ManualClock::at(SystemClock.now()));
        let catalog = Catalog::open(address, clock.clone()).await.unwrap();
        let objects = ObjectStorage::open(&ObjectStoreSettings::Local(directory.path().join("objects")));
        let objects = objects.unwrap();
        let ids = Arc::new(SystemIds::default());
        let contents = Contents::new(catalog.clone(), objects.clone(), clock.clone(), ids.clone());
        let settings = FileSettings {
            limits: LIMITS,
            upload_lifetime: LIFETIME,
            scanned: false,
        };
        Self {
            files: Files::new(catalog.clone(), contents, clock.clone(), ids, settings)
                .keeping_lists(LIST_MEMORY),
            catalog,
            objects,
            clock,
            person: PersonId(Uuid::now_v7()),
            directory,
        }
    }

    fn pass(&self, time: Duration) {
        self.clock.set(Instant::from_micros(
            self.clock.now().micros() + time.as_micros() as i64,
        ));
    }

    async fn create(&self, name: &str, size: u64) -> Result<Uuid, FilesError> {
        self.announce(announced(name, size)).await
    }

    async fn announce(&self, announced: AnnouncedFile) -> Result<Uuid, FilesError> {
        let new = self.files.create(self.person, announced).await?;
        Ok(new.file.id)
    }

    async fn upload(&self, id: Uuid, bytes: &[u8]) -> Result<Received, UploadError<()>> {
        self.send(id, SentBytes::All, bytes).await
    }

    async fn send(&self, id: Uuid, sent: SentBytes, bytes: &[u8]) -> Result<Received, UploadError<()>> {
        let pieces: Vec<_> = bytes
            .chunks(3)
            .map(|piece| Ok(Bytes::copy_from_slice(piece)))
            .collect();
        self.files.receive(id, sent, futures::stream::iter(pieces)).await
    }

    /// A new version with these bytes.
    async fn put(&self, name: &str, bytes: &[u8]) -> Uuid {
        let id = self.create(name, bytes.len() as u64).await.unwrap();
        assert!(matches!(self.upload(id, bytes).await, Ok(Received::Whole(_))));
        id
    }

    async fn get(&self, id: Uuid) -> File {
        self.files.get(self.person, id).await.unwrap()
    }

    async fn bytes(&self, id: Uuid) -> Result<Vec<u8>, FilesError> {
        let content = self.files.content(&self.get(id).await).await?;
        let pieces: Vec<Bytes> = self
            .files
            .contents()
            .read(&content, 0..content.length)
            .try_collect()
            .await?;
        Ok(pieces.concat())
    }

    async fn everything(&self) -> Listing {
        let filter = ListingFilter {
            path: None,
            name: None,
            states: FileState::ALL.to_vec(),
            include_archived: false,
            include_deleted: false,
            created_in: TimeRange::between(Instant::MIN, Instant::MAX),
        };
        self.files.list(self.person, &filter, |_| true).await.unwrap()
    }

    async fn usage(&self) -> u64 {
        self.files.contents().usage(self.person).await.unwrap().bytes()
    }

    /// How many objects there are for the person.
    async fn objects(&self) -> usize {
        let folder = format!("{FILES_FOLDER}/{}", self.person);
        let listed: Vec<_> = self.objects.list(&folder).unwrap().try_collect().await.unwrap();
        listed.len()
    }

    /// One round of collecting; how many objects it removed.
    async fn collect(&self) -> usize {
        self.files
            .contents()
            .forget_expired(CONTENT_PATIENCE)
            .await
            .unwrap();
        remove_orphans(&self.upkeep(), false).await.unwrap().removed
    }

    /// Lets so much time pass that what was noticed by now is gone; how many objects that were.
    async fn collect_noticed(&self) -> usize {
        self.pass(ORPHAN_AGE + Duration::from_mins(1));
        assert_eq!(self.collect().await, 0, "it is condemned before it is removed");
        self.pass(CONDEMNED_AGE + Duration::from_mins(1));
        self.collect().await
    }

    fn upkeep(&self) -> UpkeepStores {
        UpkeepStores {
            snapshots: crate::store::snapshot::Snapshots::new(self.catalog.clone(), 1 << 20),
            files: crate::store::files::PieceFiles::new(self.objects.clone(), 1 << 20),
            catalog: self.catalog.clone(),
            clock: self.clock.clone(),
            ids: Arc::new(SystemIds::default()),
        }
    }
}

fn announced(name: &str, size: u64) -> AnnouncedFile {
    AnnouncedFile {
        path: "/notes".to_owned(),
        name: name.to_owned(),
        content_type: "text/plain".to_owned(),
        size,
        source_id: None,
        source_name: None,
        must_be_first: false,
    }
}

const fn range(from: u64, until: u64, total: u64) -> SentBytes {
    SentBytes::Range {
        from,
        until,
        total: Some(total),
    }
}

fn received(outcome: Result<Received, UploadError<()>>) -> Option<u64> {
    match outcome.unwrap() {
        Received::Whole(_) => None,
        Received::Partly(bytes) => Some(bytes),
    }
}

#[tokio::test]
async fn a_new_upload_archives_the_version_before() {
    for bench in Bench::all().await {
        let first = bench.put("a", b"one").await;
        let second = bench.put("a", b"two!").await;
        let (first, second) = (bench.get(first).await, bench.get(second).await);
        assert_eq!(first.state, FileState::Archived);
        assert_eq!(first.archived_at, second.uploaded_at);
        assert_eq!(second.state, FileState::Uploaded);
        assert_eq!(bench.bytes(first.id).await.unwrap(), b"one");
        assert_eq!(bench.bytes(second.id).await.unwrap(), b"two!");
        assert_eq!(bench.usage().await, 7);
    }
}

#[tokio::test]
async fn bytes_come_in_ranges_that_may_overlap_and_leave_no_gap() {
    let bench = Bench::sqlite().await;
    let id = bench.create("a", 10).await.unwrap();
    let question = SentBytes::Question { total: Some(10) };
    assert_eq!(received(bench.send(id, question, b"").await), Some(0));
    assert_eq!(received(bench.send(id, range(0, 4, 10), b"0123").await), Some(4));
    assert_eq!(
        received(bench.send(id, range(6, 8, 10), b"67").await),
        Some(4),
        "a gap"
    );
    assert_eq!(received(bench.send(id, range(2, 7, 10), b"23456").await), Some(7));
    assert_eq!(received(bench.send(id, range(0, 3, 10), b"012").await), Some(7));
    assert_eq!(received(bench.send(id, question, b"").await), Some(7));
    assert_eq!(received(bench.send(id, range(7, 10, 10), b"789").await), None);
    assert_eq!(bench.bytes(id).await.unwrap(), b"0123456789");
    let whole = bench.get(id).await.sha256.unwrap();
    assert_eq!(
        whole,
        "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882"
    );
    assert!(matches!(
        bench.upload(id, b"0123456789").await,
        Err(UploadError::Closed)
    ));
    assert_eq!(received(bench.send(id, question, b"").await), None);
}

#[tokio::test]
async fn what_does_not_fit_the_announcement_leaves_the_version_as_it_was() {
    let bench = Bench::sqlite().await;
    let id = bench.create("a", 5).await.unwrap();
    let short = bench.upload(id, b"0123").await;
    assert!(matches!(
        short,
        Err(UploadError::TooShort {
            announced: 5,
            came: 4
        })
    ));
    assert!(matches!(
        bench.upload(id, b"012345").await,
        Err(UploadError::TooLong { .. })
    ));
    let other = bench.send(id, range(0, 3, 9), b"012").await;
    assert!(matches!(other, Err(UploadError::OtherTotal { said: 9, .. })));
    let outside = SentBytes::Range {
        from: 0,
        until: 6,
        total: None,
    };
    assert!(matches!(
        bench.send(id, outside, b"012345").await,
        Err(UploadError::Outside { .. })
    ));
    assert_eq!(bench.get(id).await.state, FileState::Created);
    assert!(matches!(bench.bytes(id).await, Err(FilesError::NotUploaded)));
    assert!(matches!(bench.upload(id, b"01234").await, Ok(Received::Whole(_))));
    assert_eq!(bench.bytes(id).await.unwrap(), b"01234");
    assert_eq!(bench.objects().await, 1, "what was sent before is removed");
}

#[tokio::test]
async fn a_connection_that_breaks_leaves_what_came() {
    let bench = Bench::sqlite().await;
    let id = bench.create("a", 6).await.unwrap();
    let pieces = vec![Ok(Bytes::from_static(b"012")), Err("broken")];
    let outcome = bench
        .files
        .receive(id, SentBytes::All, futures::stream::iter(pieces))
        .await;
    assert!(matches!(outcome, Err(UploadError::Body("broken"))));
    assert_eq!(
        received(bench.send(id, SentBytes::Question { total: None }, b"").await),
        Some(3)
    );
    assert_eq!(received(bench.send(id, range(3, 6, 6), b"345").await), None);
    assert_eq!(bench.bytes(id).await.unwrap(), b"012345");
}

#[tokio::test]
async fn an_upload_that_begins_anew_ends_the_one_that_still_runs() {
    let bench = Bench::sqlite().await;
    let id = bench.create("a", 4).await.unwrap();
    let (sender, receiver) = futures::channel::mpsc::unbounded::<Result<Bytes, ()>>();
    sender.unbounded_send(Ok(Bytes::from_static(b"old"))).unwrap();
    let slow = tokio::spawn({
        let files = bench.files.clone();
        async move { files.receive(id, SentBytes::All, receiver).await }
    });
    // Until the slow one has read what there is, it has not begun.
    while !sender.is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(matches!(bench.upload(id, b"new!").await, Ok(Received::Whole(_))));
    sender.unbounded_send(Ok(Bytes::from_static(b"!"))).unwrap();
    drop(sender);
    let outcome = slow.await.unwrap();
    assert!(
        matches!(outcome, Err(UploadError::Closed | UploadError::Overtaken)),
        "{outcome:?}"
    );
    assert_eq!(bench.bytes(id).await.unwrap(), b"new!");
    assert_eq!(bench.objects().await, 1);
}

#[tokio::test]
async fn whoever_asks_for_an_empty_file_while_it_is_completed_hears_that_it_is_there() {
    for bench in Bench::all().await {
        let id = bench.create("a", 0).await.unwrap();
        let question = SentBytes::Question { total: Some(0) };
        let (sender, receiver) = futures::channel::mpsc::unbounded::<Result<Bytes, ()>>();
        sender.unbounded_send(Ok(Bytes::new())).unwrap();
        let slow = tokio::spawn({
            let files = bench.files.clone();
            async move { files.receive(id, question, receiver).await }
        });
        // When it has read what there is, it has found the file open.
        while !sender.is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(received(bench.send(id, question, b"").await), None);
        drop(sender);
        assert_eq!(received(slow.await.unwrap()), None);
        assert_eq!(received(bench.send(id, question, b"").await), None, "long after");
        let other = SentBytes::Question { total: Some(1) };
        assert!(matches!(
            bench.send(id, other, b"").await,
            Err(UploadError::OtherTotal {
                announced: 0,
                said: 1
            })
        ));
        bench.files.delete(bench.person, id, |_| true).await.unwrap();
        assert!(matches!(
            bench.send(id, question, b"").await,
            Err(UploadError::Closed)
        ));
    }
}

#[tokio::test]
async fn of_many_uploads_to_one_place_one_is_there_at_the_end_and_the_others_are_versions() {
    for bench in Bench::all().await {
        let bench = Arc::new(bench);
        let racing = (0..8_u8).map(|number| {
            let bench = Arc::clone(&bench);
            tokio::spawn(async move { bench.put("a", &[number; 10]).await })
        });
        let ids = futures::future::try_join_all(racing).await.unwrap();
        let versions = bench.everything().await.files;
        assert_eq!(versions.len(), 8);
        let uploaded = versions.iter().filter(|file| file.state == FileState::Uploaded);
        assert_eq!(uploaded.count(), 1);
        for (number, id) in ids.into_iter().enumerate() {
            assert_eq!(bench.bytes(id).await.unwrap(), [number as u8; 10]);
        }
        assert_eq!(bench.usage().await, 80);
    }
}

#[tokio::test]
async fn a_file_that_must_be_first_gives_way_to_one_that_was_faster() {
    for bench in Bench::all().await {
        let first = || AnnouncedFile {
            must_be_first: true,
            ..announced("a", 1)
        };
        let (one, other) = (
            bench.announce(first()).await.unwrap(),
            bench.announce(first()).await.unwrap(),
        );
        let (sent_one, sent_other) = futures::join!(bench.upload(one, b"1"), bench.upload(other, b"2"));
        let refused =
            |outcome: &Result<Received, _>| matches!(outcome, Err(UploadError::Files(FilesError::Exists(_))));
        assert!(
            refused(&sent_one) != refused(&sent_other),
            "{sent_one:?} {sent_other:?}"
        );
        assert!(matches!(
            bench.announce(first()).await,
            Err(FilesError::Exists(_))
        ));
        assert!(bench.announce(announced("a", 1)).await.is_ok());
    }
}

#[tokio::test]
async fn nobody_has_more_than_the_limits() {
    let bench = Bench::sqlite().await;
    assert!(matches!(
        bench.create("a", 1001).await,
        Err(FilesError::TooLarge(1000))
    ));
    let first = bench.create("a", 1000).await.unwrap();
    bench.create("b", 600).await.unwrap();
    let full = bench.create("c", 401).await;
    assert!(matches!(
        full,
        Err(FilesError::NoRoom {
            limit: 2000,
            taken: 1600
        })
    ));
    bench.files.delete(bench.person, first, |_| true).await.unwrap();
    assert_eq!(bench.usage().await, 600, "what never came takes no room");
    for number in 0..48 {
        bench.create(&number.to_string(), 0).await.unwrap();
    }
    assert!(matches!(bench.create("z", 0).await, Err(FilesError::TooMany(50))));
}

#[tokio::test]
async fn what_never_came_is_forgotten_and_what_came_is_kept() {
    let bench = Bench::sqlite().await;
    let kept = bench.put("kept", b"bytes").await;
    let lost = bench.create("lost", 100).await.unwrap();
    received(bench.send(lost, range(0, 3, 100), b"012").await);
    assert_eq!(bench.collect().await, 0);
    bench.pass(LIFETIME);
    assert!(matches!(
        bench.send(lost, range(3, 6, 100), b"345").await,
        Err(UploadError::Closed)
    ));
    bench.pass(CONTENT_PATIENCE + Duration::from_mins(1));
    assert_eq!((bench.objects().await, bench.usage().await), (2, 105));
    assert_eq!(bench.collect().await, 0);
    assert_eq!(bench.collect_noticed().await, 1);
    assert_eq!((bench.objects().await, bench.usage().await), (1, 5));
    assert_eq!(bench.bytes(kept).await.unwrap(), b"bytes");
    assert_eq!(bench.get(lost).await.state, FileState::Created);
    bench.files.delete(bench.person, lost, |_| true).await.unwrap();
    assert_eq!(bench.usage().await, 5);
}

#[tokio::test]
async fn a_part_that_no_content_names_is_removed_when_it_is_old() {
    let bench = Bench::sqlite().await;
    let id = bench.put("a", b"bytes").await;
    let content = bench.files.content(&bench.get(id).await).await.unwrap();
    let mut part = bench.files.contents().part(&content).unwrap();
    part.write(Bytes::from_static(b"more")).await.unwrap();
    part.finish().await.unwrap();
    assert_eq!(bench.collect().await, 0, "it may be about to be named");
    assert_eq!(bench.collect_noticed().await, 1);
    assert_eq!(bench.bytes(id).await.unwrap(), b"bytes");
}

#[tokio::test]
async fn a_part_that_is_condemned_is_named_by_no_content() {
    for bench in Bench::all().await {
        let id = bench.create("a", 10).await.unwrap();
        let contents = bench.files.contents();
        let content = contents.get(bench.get(id).await.content).await.unwrap().unwrap();
        let mut writer = contents.part(&content).unwrap();
        writer.write(Bytes::from_static(b"bytes")).await.unwrap();
        let part = writer.finish().await.unwrap();
        let paths = [content.path_of(&part)];
        bench.catalog.condemn(&paths).await.unwrap();
        let named = content.clone().with_part(part, content.digest());
        let change = named.update(bench.clock.now()).unwrap();
        let outcome = bench.files.attempt_naming(vec![change.clone()], &paths).await;
        let refused = matches!(outcome, Err(FilesError::Store(StoreError::Unavailable { .. })));
        assert!(refused, "{outcome:?}");
        assert_eq!(contents.get(content.id).await.unwrap().unwrap().received(), 0);
        bench.catalog.unmark_orphans(&paths).await.unwrap();
        assert!(bench.files.attempt_naming(vec![change], &paths).await.unwrap());
    }
}

#[tokio::test]
async fn one_flipped_bit_is_an_error_and_no_other_file() {
    let bench = Bench::sqlite().await;
    let bytes: Vec<u8> = (0..1000_u32).map(|number| number as u8).collect();
    let id = bench.put("a", &bytes).await;
    let content = bench.files.content(&bench.get(id).await).await.unwrap();
    let (path, _) = content.objects().next().unwrap();
    let whole = bench.objects.get(&path).await.unwrap();
    for at in [0, 500, 999, 1000, whole.len() - 1] {
        let mut damaged = whole.to_vec();
        damaged[at] ^= 1;
        bench.objects.delete(&path).await.unwrap();
        bench.objects.put(&path, damaged.into()).await.unwrap();
        let error = bench.bytes(id).await.unwrap_err();
        assert!(error.to_string().contains("damaged"), "{at}: {error}");
    }
    bench.objects.delete(&path).await.unwrap();
    let error = bench.bytes(id).await.unwrap_err();
    assert!(error.to_string().contains("damaged"), "{error}");
}

#[tokio::test]
async fn changes_are_told_by_when_they_happened() {
    for bench in Bench::all().await {
        let begin = bench.catalog.now().await.unwrap();
        let id = bench.put("a", b"one").await;
        bench.pass(Duration::from_mins(1));
        let changed = |from, until| {
            let (files, person) = (&bench.files, bench.person);
            async move {
                let found = files
                    .changes(person, TimeRange::between(from, until), |_| true)
                    .await;
                found.unwrap().iter().map(|file| file.id).collect::<Vec<_>>()
            }
        };
        let middle = bench.catalog.now().await.unwrap();
        assert_eq!(changed(begin, middle).await, [id]);
        assert!(changed(middle, Instant::MAX).await.is_empty());
        bench.files.delete(bench.person, id, |_| true).await.unwrap();
        assert_eq!(changed(middle, Instant::MAX).await, [id]);
        assert_eq!(
            changed(begin, middle).await,
            [id],
            "what happened then did not unhappen"
        );
        assert!(changed(Instant::MIN, begin).await.is_empty());
    }
}

#[tokio::test]
async fn changes_are_told_by_the_time_that_all_nodes_share() {
    for bench in Bench::all().await {
        // The clock of the node is wrong; that of the catalogue is not.
        let real: Arc<dyn Clock> = Arc::new(ManualClock::at(bench.clock.now()));
        let files = Files {
            catalog: bench.catalog.clone().keeping_time(real),
            ..bench.files.clone()
        };
        let (person, wrong) = (bench.person, Duration::from_mins(10).as_micros() as i64);
        for ahead in [wrong, -3 * wrong] {
            bench
                .clock
                .set(Instant::from_micros(bench.clock.now().micros() + ahead));
            let begin = files.catalog.now().await.unwrap();
            let created = files.create(person, announced("a", 3)).await.unwrap().file;
            let body = futures::stream::iter([Ok::<_, ()>(Bytes::from_static(b"one"))]);
            let received = files.receive(created.id, SentBytes::All, body).await;
            assert!(matches!(received, Ok(Received::Whole(_))));
            files.delete(person, created.id, |_| true).await.unwrap();
            let soon = Instant::from_micros(begin.micros() + wrong / 2);
            let range = TimeRange::between(begin, soon);
            let told = files.changes(person, range, |_| true).await.unwrap();
            let file = told.iter().find(|file| file.id == created.id).unwrap();
            let moments = [Some(file.created_at), file.uploaded_at, file.deleted_at].map(Option::unwrap);
            assert!(moments.iter().all(|moment| begin <= *moment && *moment < soon));
        }
    }
}

#[tokio::test]
async fn a_damaged_file_keeps_nobody_elses_from_being_scanned() {
    let mut bench = Bench::sqlite().await;
    bench.files.settings.scanned = true;
    let damaged = bench.put("a", b"one").await;
    bench.person = PersonId(Uuid::now_v7());
    let sound = bench.put("a", b"two").await;
    let catalogue = rusqlite::Connection::open(file_in(bench.directory.path())).unwrap();
    let sql = "UPDATE documents SET checksum = checksum + 1 WHERE document = ?1";
    assert_eq!(catalogue.execute(sql, [damaged.as_bytes()]).unwrap(), 1);
    let waiting = bench.files.to_scan().await.unwrap();
    assert_eq!(waiting.iter().map(|file| file.id).collect::<Vec<_>>(), [sound]);
}

#[test]
fn a_version_waits_to_be_scanned_until_somebody_spoke_or_it_is_deleted() {
    let now = Instant::from_micros(1);
    let file = File::created(
        Uuid::nil(),
        PersonId(Uuid::nil()),
        Uuid::nil(),
        announced("a", 1),
        now,
    );
    assert!(file.links().is_empty());
    let waiting = file.uploaded("00".to_owned(), ScanState::Pending, now);
    assert_eq!(waiting.links().len(), 1);
    assert_eq!(waiting.clone().archived(now).links().len(), 1);
    assert!(waiting.clone().deleted(now).links().is_empty());
    assert!(waiting.scanned(ScanState::Clean, now).links().is_empty());
}
