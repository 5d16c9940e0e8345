//! What becomes of frames, on a catalogue and a store of their own.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt as _;
use uuid::Uuid;

use super::{Described, Frame, FrameError, FrameSettings, Frames};
use crate::catalog::Catalog;
use crate::catalog::test_databases::{address_in, file_in};
use crate::model::clock::{Clock, ManualClock};
use crate::model::ids::{PersonId, SystemIds};
use crate::model::time::Instant;
use crate::store::StoreError;
use crate::store::folder_names::FRAMES_FOLDER;
use crate::store::objects::{ObjectStorage, ObjectStoreSettings};

const SETTINGS: FrameSettings = FrameSettings {
    lifetime: Duration::from_hours(1),
    limit: 2,
    most_bytes: 10,
};

struct Bench {
    frames: Frames,
    objects: ObjectStorage,
    clock: Arc<ManualClock>,
    person: PersonId,
    directory: tempfile::TempDir,
}

impl Bench {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let address = address_in(directory.path());
        let clock = Arc::new(ManualClock::at(Instant::from_micros(1_717_200_000_000_000)));
        let catalog = Catalog::open(&address, clock.clone()).await.unwrap();
        let settings = ObjectStoreSettings::Local(directory.path().join("objects"));
        let objects = ObjectStorage::open(&settings).unwrap();
        Self {
            frames: Frames::new(
                catalog,
                objects.clone(),
                clock.clone(),
                Arc::new(SystemIds::default()),
                SETTINGS,
            ),
            objects,
            clock,
            person: PersonId(Uuid::now_v7()),
            directory,
        }
    }

    async fn made(&self, until: Instant) -> Result<Frame, FrameError> {
        let mut writer = self.frames.begin(self.person).await?;
        writer.write(Bytes::from_static(b"rows ")).await?;
        writer.write(Bytes::from_static(b"here")).await?;
        writer.finish(described(until)).await
    }

    async fn objects(&self) -> usize {
        let folder = format!("{FRAMES_FOLDER}/{}", self.person);
        let listed = self.objects.list(&folder).unwrap();
        listed.try_collect::<Vec<_>>().await.unwrap().len()
    }

    fn pass(&self, time: Duration) {
        let now = self.clock.now().micros() + time.as_micros() as i64;
        self.clock.set(Instant::from_micros(now));
    }
}

fn described(until: Instant) -> Described {
    Described {
        question: "/data/v0/metrics_catalog".to_owned(),
        format: "csv".to_owned(),
        grounds: "{}".to_owned(),
        until,
    }
}

#[tokio::test]
async fn a_frame_is_there_until_its_hour_is_over_and_goes_with_its_bytes() {
    let bench = Bench::new().await;
    let frame = bench.made(Instant::MAX).await.unwrap();
    let (content, contents) = (frame.content(), bench.frames.contents());
    let parts: Vec<Bytes> = contents.read(&content, 5..9).try_collect().await.unwrap();
    assert_eq!(parts.concat(), b"here");
    assert_eq!(bench.objects().await, 1);

    bench.pass(SETTINGS.lifetime);
    assert!(bench.frames.find(frame.id).await.unwrap().is_none());
    assert!(bench.frames.of_person(bench.person).await.unwrap().is_empty());
    for (frame, is_over) in bench.frames.everybodys().await.unwrap() {
        assert!(is_over);
        bench.frames.discard(&frame).await.unwrap();
    }
    assert_eq!(bench.objects().await, 0);
    let folder = bench
        .directory
        .path()
        .join("objects/frames")
        .join(bench.person.to_string());
    assert_eq!(
        std::fs::read_dir(folder).unwrap().count(),
        0,
        "nor does its folder"
    );
    let late = contents.examine(&content).await;
    assert!(matches!(late, Err(StoreError::Missing { .. })), "{late:?}");
}

#[tokio::test]
async fn a_frame_that_many_remove_is_removed_by_one() {
    let bench = Bench::new().await;
    let frame = bench.made(Instant::MAX).await.unwrap();
    let discarded = futures::future::join_all((0..8).map(|_| bench.frames.discard(&frame))).await;
    let done = discarded.iter().filter(|discarded| matches!(discarded, Ok(true)));
    assert_eq!(done.count(), 1, "{discarded:?}");
    assert!(discarded.iter().all(Result::is_ok), "{discarded:?}");
    assert_eq!(bench.objects().await, 0);
}

#[tokio::test]
async fn a_damaged_frame_keeps_nobody_elses() {
    let mut bench = Bench::new().await;
    let damaged = bench.made(Instant::MAX).await.unwrap();
    bench.person = PersonId(Uuid::now_v7());
    let sound = bench.made(Instant::MAX).await.unwrap();
    let catalogue = rusqlite::Connection::open(file_in(bench.directory.path())).unwrap();
    let sql = "UPDATE documents SET checksum = checksum + 1 WHERE document = ?1";
    assert_eq!(catalogue.execute(sql, [damaged.id.as_bytes()]).unwrap(), 1);
    let found: Vec<Uuid> = bench
        .frames
        .everybodys()
        .await
        .unwrap()
        .iter()
        .map(|(frame, _)| frame.id)
        .collect();
    assert_eq!(found, [sound.id]);
}

#[tokio::test]
async fn a_frame_ends_with_the_token_that_asked_for_it() {
    let bench = Bench::new().await;
    let until = Instant::from_micros(bench.clock.now().micros() + 60_000_000);
    assert_eq!(bench.made(until).await.unwrap().expires_at, until);
}

#[tokio::test]
async fn nobody_has_more_frames_than_the_limit_and_those_that_are_over_make_room() {
    let bench = Bench::new().await;
    bench.made(Instant::MAX).await.unwrap();
    bench.made(Instant::MAX).await.unwrap();
    let refused = bench.made(Instant::MAX).await;
    assert!(matches!(refused, Err(FrameError::LimitReached(_))), "{refused:?}");
    bench.pass(SETTINGS.lifetime);
    bench.made(Instant::MAX).await.unwrap();
    assert_eq!(bench.objects().await, 1);
}

#[tokio::test]
async fn what_is_too_large_is_given_up_and_leaves_nothing() {
    let bench = Bench::new().await;
    let mut writer = bench.frames.begin(bench.person).await.unwrap();
    writer.write(Bytes::from_static(b"ten bytes.")).await.unwrap();
    let refused = writer.write(Bytes::from_static(b"!")).await;
    assert!(matches!(refused, Err(FrameError::TooLarge(10))), "{refused:?}");
    writer.abandon().await;
    assert_eq!(bench.objects().await, 0);
    assert!(bench.frames.everybodys().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_frame_whose_part_waited_for_too_long_is_to_be_asked_for_again_and_leaves_nothing() {
    let bench = Bench::new().await;
    let mut writer = bench.frames.begin(bench.person).await.unwrap();
    writer.write(Bytes::from_static(b"rows")).await.unwrap();
    writer.end_part().await.unwrap();
    let paths: Vec<String> = writer.content.objects().map(|(path, _)| path).collect();
    assert_eq!(bench.objects().await, 1);
    bench.frames.catalog.condemn(&paths).await.unwrap();
    let late = writer.finish(described(Instant::MAX)).await;
    assert!(
        matches!(late, Err(FrameError::Store(StoreError::Unavailable { .. }))),
        "{late:?}"
    );
    assert_eq!(bench.objects().await, 0);
    assert!(bench.frames.everybodys().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_frame_is_its_persons_alone() {
    let bench = Bench::new().await;
    let frame = bench.made(Instant::MAX).await.unwrap();
    let somebody = PersonId(Uuid::now_v7());
    let refused = bench.frames.get(somebody, frame.id).await;
    assert!(matches!(refused, Err(FrameError::Unknown(_))), "{refused:?}");
    let own = bench.frames.get(bench.person, frame.id).await.unwrap();
    bench.frames.discard(&own).await.unwrap();
    assert_eq!(bench.objects().await, 0);
}
