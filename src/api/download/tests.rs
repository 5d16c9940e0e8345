//! What is said of bytes that are not there any more: somebody removed them, or they are lost.

use std::sync::Arc;

use axum::body::to_bytes;
use bytes::Bytes;
use uuid::Uuid;

use super::*;
use crate::catalog::Catalog;
use crate::catalog::documents::Changed;
use crate::catalog::test_databases::address_in;
use crate::model::clock::SystemClock;
use crate::model::ids::{PersonId, SystemIds};
use crate::model::time::Instant;
use crate::store::objects::{ObjectStorage, ObjectStoreSettings};

/// More than are fetched ahead.
const PARTS: usize = 5;

struct Bench {
    catalog: Catalog,
    contents: Contents,
    content: Content,
    corrupt: Counter,
    _directory: tempfile::TempDir,
}

impl Bench {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let address = address_in(directory.path());
        let clock = Arc::new(SystemClock);
        let catalog = Catalog::open(&address, clock.clone()).await.unwrap();
        let settings = ObjectStoreSettings::Local(directory.path().join("objects"));
        let objects = ObjectStorage::open(&settings).unwrap();
        let ids = Arc::new(SystemIds::default());
        let contents = Contents::new(catalog.clone(), objects, clock, ids);
        let (id, person) = (Uuid::now_v7(), PersonId(Uuid::now_v7()));
        let now = Instant::from_micros(1_717_200_000_000_000);
        let mut content = Content::announced(id, person, PARTS as u64, now, Instant::MAX);
        for _ in 0..PARTS {
            let mut part = contents.part(&content).unwrap();
            part.write(Bytes::from_static(b"x")).await.unwrap();
            let digest = content.digest();
            content = content.with_part(part.finish().await.unwrap(), digest);
        }
        let content = content.finished();
        let insertion = content.restoration().unwrap();
        let inserted = catalog.change_documents(vec![insertion]).await.unwrap();
        assert_eq!(inserted, Changed::Done);
        Self {
            catalog,
            contents,
            content: content.stored(),
            corrupt: Counter::default(),
            _directory: directory,
        }
    }

    /// Removes the content as everybody does: first its document, then its objects.
    async fn remove(&self) {
        let removal = self.content.removal();
        let removed = self.catalog.change_documents(vec![removal]).await.unwrap();
        assert_eq!(removed, Changed::Done);
        self.lose().await;
    }

    /// Removes the objects alone.
    async fn lose(&self) {
        let parts = &self.content.parts;
        self.contents.remove_parts(&self.content, parts).await;
    }

    async fn asked(&self, content: &Content) -> Result<Body, ApiError> {
        let (corrupt, contents) = (self.corrupt.clone(), self.contents.clone());
        body(corrupt, contents, content.clone(), 0..content.length).await
    }
}

#[tokio::test]
async fn what_was_removed_before_the_first_byte_is_not_there_and_what_was_lost_is_damage() {
    let bench = Bench::new().await;
    bench.lose().await;
    let lost = bench.asked(&bench.content).await.unwrap_err();
    assert_eq!(lost.status(), StatusCode::INTERNAL_SERVER_ERROR);

    let bench = Bench::new().await;
    bench.remove().await;
    let gone = bench.asked(&bench.content).await.unwrap_err();
    assert_eq!(gone.status(), StatusCode::NOT_FOUND);
    let mut frame = bench.content.clone();
    frame.of = ContentKind::Frame;
    let gone = bench.asked(&frame).await.unwrap_err();
    assert_eq!(
        gone.status(),
        StatusCode::FORBIDDEN,
        "as for a frame that never was"
    );
}

#[tokio::test]
async fn what_is_removed_midway_breaks_off_and_only_what_is_lost_counts_as_damage() {
    for (is_removed, counted) in [(true, 0), (false, 1)] {
        let bench = Bench::new().await;
        let body = bench.asked(&bench.content).await.unwrap();
        if is_removed {
            bench.remove().await;
        } else {
            bench.lose().await;
        }
        assert!(to_bytes(body, usize::MAX).await.is_err());
        assert_eq!(bench.corrupt.get(), counted, "removed: {is_removed}");
    }
}
