//! Bytes that somebody put into the store beside the service. The store is a directory here, into which the
//! tests put them as S3 would; that S3 does so is shown over HTTP.

use super::super::Arrivals;
use super::*;
use crate::model::meters::Meters;
use crate::store::contents::IncomingName;

impl Bench {
    pub(super) fn direct(mut self) -> Self {
        self.files = self.files.directly(Meters::default().upkeep);
        self
    }

    /// Puts bytes where those of the file `id` belong.
    pub(super) async fn put_directly(&self, id: Uuid, bytes: &[u8]) -> String {
        let file = self.files.find(id).await.unwrap().unwrap();
        let name = IncomingName {
            person: file.person,
            content: file.content,
            file: file.id,
        };
        let path = name.path();
        self.objects.delete(&path).await.unwrap();
        self.objects
            .put(&path, Bytes::copy_from_slice(bytes))
            .await
            .unwrap();
        path
    }

    async fn is_there(&self, path: &str) -> bool {
        self.objects.version(path).await.unwrap().is_some()
    }

    async fn state(&self, id: Uuid) -> FileState {
        self.files.find(id).await.unwrap().unwrap().state
    }
}

#[tokio::test]
async fn what_came_is_taken_in_by_whoever_looks_at_the_file() {
    for bench in Bench::all().await.into_iter().map(Bench::direct) {
        let older = bench.put("a", b"older").await;
        let id = bench.create("a", 5).await.unwrap();
        let path = bench.put_directly(id, b"bytes").await;
        let file = bench.get(id).await;
        assert_eq!(file.state, FileState::Uploaded);
        assert_eq!(
            file.sha256.as_deref(),
            Some("277089d91c0bdf4f2e6862ba7e4a07605119431f5d13f726dd352b06f1b206a9")
        );
        assert_eq!(bench.bytes(id).await.unwrap(), b"bytes");
        assert_eq!(bench.get(older).await.state, FileState::Archived);
        assert!(!bench.is_there(&path).await);
        assert_eq!(bench.usage().await, 10);
    }
}

#[tokio::test]
async fn what_came_is_taken_in_though_nobody_looks() {
    for bench in Bench::all().await.into_iter().map(Bench::direct) {
        let ids = [
            bench.create("a", 1).await.unwrap(),
            bench.create("b", 2).await.unwrap(),
        ];
        bench.put_directly(ids[0], b"1").await;
        bench.put_directly(ids[1], b"22").await;
        // Its time is over, and it was sent before that.
        bench.pass(LIFETIME);
        Arrivals::new(bench.files.clone()).round().await.unwrap();
        for id in ids {
            assert_eq!(bench.state(id).await, FileState::Uploaded);
        }
    }
}

#[tokio::test]
async fn a_listing_shows_what_came() {
    let bench = Bench::sqlite().await.direct();
    let (came, awaited) = (
        bench.create("a", 1).await.unwrap(),
        bench.create("b", 1).await.unwrap(),
    );
    bench.put_directly(came, b"1").await;
    let states: Vec<_> = bench
        .everything()
        .await
        .files
        .into_iter()
        .map(|file| (file.id, file.state))
        .collect();
    assert_eq!(
        states,
        [(came, FileState::Uploaded), (awaited, FileState::Created)]
    );
}

#[tokio::test]
async fn another_length_than_announced_is_not_taken_in() {
    let bench = Bench::sqlite().await.direct();
    let id = bench.create("a", 5).await.unwrap();
    for bytes in [&b"1234"[..], b"123456", b""] {
        bench.put_directly(id, bytes).await;
        assert_eq!(bench.get(id).await.state, FileState::Created);
    }
    bench.put_directly(id, b"12345").await;
    assert_eq!(bench.get(id).await.state, FileState::Uploaded);
}

#[tokio::test]
async fn bytes_that_are_sent_again_change_nothing_and_go_away() {
    let bench = Bench::sqlite().await.direct();
    let id = bench.create("a", 3).await.unwrap();
    bench.put_directly(id, b"one").await;
    let file = bench.get(id).await;
    let path = bench.put_directly(id, b"two").await;
    Arrivals::new(bench.files.clone()).round().await.unwrap();
    assert_eq!(bench.get(id).await, file);
    assert_eq!(bench.bytes(id).await.unwrap(), b"one");
    assert!(!bench.is_there(&path).await);
}

#[tokio::test]
async fn bytes_that_nobody_waits_for_are_collected_when_they_are_old() {
    let bench = Bench::sqlite().await.direct();
    let deleted = bench.create("deleted", 3).await.unwrap();
    let late = bench.put_directly(deleted, b"one").await;
    bench.files.delete(bench.person, deleted, |_| true).await.unwrap();
    // Looking at it took it in; deleting it leaves it as any other.
    assert!(!bench.is_there(&late).await);

    let closed = bench.create("closed", 3).await.unwrap();
    bench.files.delete(bench.person, closed, |_| true).await.unwrap();
    let path = bench.put_directly(closed, b"one").await;
    let wrong = bench.create("wrong", 3).await.unwrap();
    let kept = bench.put_directly(wrong, b"four").await;
    Arrivals::new(bench.files.clone()).round().await.unwrap();
    assert!(bench.is_there(&path).await, "nobody is certain yet");
    assert_eq!(bench.collect().await, 0);
    assert_eq!(bench.collect_noticed().await, 1);
    assert!(!bench.is_there(&path).await);
    assert!(bench.is_there(&kept).await, "it is awaited");
    bench.pass(LIFETIME + CONTENT_PATIENCE);
    bench.collect().await;
    assert_eq!(bench.collect_noticed().await, 1, "it is awaited no more");
    assert!(!bench.is_there(&kept).await);
}

#[tokio::test]
async fn a_file_that_must_be_first_is_not_taken_in_where_another_is() {
    let bench = Bench::sqlite().await.direct();
    let first = AnnouncedFile {
        must_be_first: true,
        ..announced("a", 3)
    };
    let id = bench.announce(first).await.unwrap();
    let live = bench.put("a", b"live").await;
    let path = bench.put_directly(id, b"new").await;
    assert_eq!(bench.get(id).await.state, FileState::Created);
    assert!(!bench.is_there(&path).await);
    assert_eq!(bench.get(live).await.state, FileState::Uploaded);
}

#[tokio::test]
async fn of_many_that_look_at_once_each_sees_the_whole_file_or_none() {
    for bench in Bench::all().await.into_iter().map(Bench::direct) {
        let id = bench.create("a", 1000).await.unwrap();
        let path = bench.put_directly(id, &[7; 1000]).await;
        let looks = (0..8).map(|_| bench.files.get(bench.person, id));
        let seen = futures::future::try_join_all(looks).await.unwrap();
        assert!(seen.iter().any(|file| file.state == FileState::Uploaded));
        for file in seen {
            assert!([FileState::Created, FileState::Uploaded].contains(&file.state));
        }
        Arrivals::new(bench.files.clone()).round().await.unwrap();
        assert_eq!(bench.bytes(id).await.unwrap(), [7; 1000]);
        assert!(!bench.is_there(&path).await);
        assert_eq!(bench.objects().await, 1);
    }
}
