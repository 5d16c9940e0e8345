//! A disk without room refuses writes and goes on reading. Needs a directory on a file system of a few
//! megabytes, which `ALMANAC_TEST_SMALL_DISK` names.

use bytes::Bytes;

use super::super::StoreError;
use super::*;
use crate::catalog::CatalogError;
use crate::catalog::records::{Bounds, NewPlace};
use crate::catalog::test_databases::address_in;
use crate::model::time::Instant;

fn noise(bytes: usize) -> Bytes {
    (0..bytes.div_ceil(16))
        .flat_map(|_| *Uuid::new_v4().as_bytes())
        .collect()
}

fn bulky() -> NewPiece {
    let blob = noise(64 << 10);
    let moment = Instant::from_micros(NEW_YEAR_2024);
    NewPiece {
        id: piece_id(),
        rows: 1,
        bounds: Bounds {
            min_start: moment,
            max_start: moment,
            max_end: moment,
        },
        layout_version: 1,
        checksum: crc32fast::hash(&blob),
        bytes: blob.len() as i64,
        place: NewPlace::Tail { blob, memory: 1 },
    }
}

#[tokio::test]
async fn a_full_disk_refuses_writes_and_goes_on_reading() {
    let Ok(small) = std::env::var("ALMANAC_TEST_SMALL_DISK") else {
        return;
    };
    let directory = tempfile::tempdir_in(small).unwrap();
    let address = address_in(directory.path());
    let catalog = Catalog::open(&address, Arc::new(SystemClock)).await.unwrap();
    let objects = ObjectStorage::open(&ObjectStoreSettings::Local(directory.path().join("objects"))).unwrap();
    let filler = directory.path().join("filler");
    std::fs::write(&filler, noise(1 << 20)).unwrap();

    let person = person();
    let commit = || Commit {
        changes: vec![change(person, vec![bulky()])],
        ..Commit::default()
    };
    let mut version = 0;
    let refused = loop {
        match catalog.commit(commit()).await {
            Ok(outcome) => assert_eq!(outcome, CommitOutcome::Done),
            Err(error) => break error,
        }
        version += 1;
    };
    assert!(matches!(refused, CatalogError::Full { .. }), "{refused}");
    let refused = objects.put("data/large", noise(1 << 20)).await;
    assert!(matches!(refused, Err(StoreError::Full { .. })), "{refused:?}");
    assert!(matches!(
        objects.get("data/large").await,
        Err(StoreError::Missing { .. })
    ));

    assert_eq!(
        catalog.stamps(person, &[heart_rate()]).await.unwrap()[0].version,
        version
    );
    std::fs::remove_file(&filler).unwrap();
    assert_eq!(catalog.commit(commit()).await.unwrap(), CommitOutcome::Done);
    objects.put("data/large", noise(256 << 10)).await.unwrap();
    assert_eq!(
        catalog
            .snapshot(person, &[heart_rate()], &|_| false)
            .await
            .unwrap()[0]
            .records,
        version + 1
    );
}
