//! What every object store promises: one suite for a directory, memory, and S3 where `ALMANAC_TEST_S3_URL`
//! names a bucket.

use std::collections::BTreeSet;

use bytes::Bytes;
use futures::TryStreamExt as _;
use object_store::memory::InMemory;

use super::super::StoreError;
use super::super::faults::{Fault, Faults, FaultyStore, ForgetfulDisk, Operation};
use super::super::piece::write_batch;
use super::super::verify::verify_object;
use super::*;
use crate::model::ids::SystemIds;

/// Every object store that is at hand, with what keeps it alive.
fn all() -> Vec<(ObjectStorage, Option<tempfile::TempDir>)> {
    let directory = tempfile::tempdir().unwrap();
    let local = ObjectStorage::open(&ObjectStoreSettings::Local(directory.path().to_path_buf())).unwrap();
    let mut stores = vec![
        (local, Some(directory)),
        (ObjectStorage::over(Arc::new(InMemory::new())), None),
    ];
    if let Ok(url) = std::env::var("ALMANAC_TEST_S3_URL") {
        let options = std::env::vars()
            .filter(|(name, _)| name.starts_with("AWS_"))
            .collect();
        stores.push((
            ObjectStorage::open(&ObjectStoreSettings::S3 { url, options }).unwrap(),
            None,
        ));
    }
    stores
}

fn folder() -> String {
    format!("data/{}", Uuid::new_v4())
}

#[tokio::test]
async fn what_was_put_is_there_whole_and_in_parts() {
    for (store, _directory) in all() {
        let path = format!("{}/a.parquet", folder());
        store.put(&path, Bytes::from_static(b"0123456789")).await.unwrap();
        assert_eq!(store.get(&path).await.unwrap(), "0123456789");
        assert_eq!(store.get_range(&path, 2..5).await.unwrap(), "234");
        assert_eq!(
            store.get_ranges(&path, &[0..1, 8..10]).await.unwrap(),
            ["0", "89"]
        );
        assert_eq!(
            store.get_range(&path, 8..12).await.unwrap(),
            "89",
            "what there is"
        );
        assert!(store.get_range(&path, 10..12).await.is_err());
        let missing = store.get_range("data/none", 0..1).await;
        assert!(matches!(missing, Err(StoreError::Missing { .. })));
        assert_eq!(store.size(&path).await.unwrap(), 10);
    }
}

#[tokio::test]
async fn an_object_that_is_missing_is_called_by_its_name_in_every_store() {
    for (store, _directory) in all() {
        let path = format!("{}/lost.parquet", folder());
        let asked = [
            store.get(&path).await.map(drop),
            store.stream(&path).await.map(drop),
            store.get_range(&path, 0..1).await.map(drop),
            store
                .get_ranges(&path, std::slice::from_ref(&(0..1)))
                .await
                .map(drop),
            store.size(&path).await.map(drop),
        ];
        for answer in asked {
            assert!(
                matches!(&answer, Err(StoreError::Missing { path: named }) if *named == path),
                "{answer:?}"
            );
        }
        let damage = verify_object(&store, &path, 1, 0).await.unwrap_err();
        assert_eq!(
            damage.to_string(),
            StoreError::corrupt(format!("object {path} is lost")).to_string()
        );
    }
}

#[tokio::test]
async fn an_object_is_never_overwritten() {
    for (store, _directory) in all() {
        let path = format!("{}/a", folder());
        store.put(&path, Bytes::from_static(b"first")).await.unwrap();
        assert!(matches!(
            store.put(&path, Bytes::from_static(b"second")).await,
            Err(StoreError::Exists { .. })
        ));
        assert_eq!(store.get(&path).await.unwrap(), "first");
    }
}

#[tokio::test]
async fn a_large_upload_is_visible_when_it_is_finished_and_not_before() {
    for (store, _directory) in all() {
        let path = format!("{}/large", folder());
        let mut upload = store.upload(&path).unwrap();
        let mut expected = Vec::new();
        for part in 0..5_u8 {
            let content = vec![part; 5 << 20];
            expected.extend_from_slice(&content);
            upload.write(content.into()).await.unwrap();
        }
        assert!(matches!(store.get(&path).await, Err(StoreError::Missing { .. })));
        upload.finish().await.unwrap();
        assert!(store.get(&path).await.unwrap() == expected);

        let given_up = format!("{}/given-up", folder());
        let mut upload = store.upload(&given_up).unwrap();
        upload.write(vec![7; 20 << 20].into()).await.unwrap();
        upload.abort().await.unwrap();
        assert!(matches!(
            store.get(&given_up).await,
            Err(StoreError::Missing { .. })
        ));
    }
}

#[tokio::test]
async fn of_several_who_want_a_name_one_has_it_however_large_the_objects_are() {
    let large = |letter: u8| Bytes::from(vec![letter; 20 << 20]);
    for (store, _directory) in all() {
        let folder = folder();
        let listed = async || {
            let found: Vec<_> = store.list(&folder).unwrap().try_collect().await.unwrap();
            let found = found.into_iter();
            found.map(|object| object.is_claim()).collect::<Vec<_>>()
        };
        let exists = |outcome: Result<(), StoreError>| {
            assert!(matches!(outcome, Err(StoreError::Exists { .. })), "{outcome:?}");
        };
        let path = format!("{folder}/large");
        let mut one = store.upload_contested(&path).unwrap();
        one.write(large(1)).await.unwrap();
        let mut other = store.upload_contested(&path).unwrap();
        exists(other.write(large(2)).await);
        other.abort().await.unwrap();
        exists(store.put(&path, Bytes::from_static(b"small")).await);
        assert_eq!(listed().await, [true]);
        one.finish().await.unwrap();
        assert_eq!(listed().await, [false]);
        let mut late = store.upload_contested(&path).unwrap();
        exists(late.write(large(3)).await);
        assert!(store.get(&path).await.unwrap() == large(1));
        store.delete(&path).await.unwrap();

        let small = format!("{folder}/small");
        let mut one = store.upload_contested(&small).unwrap();
        let mut other = store.upload_contested(&small).unwrap();
        let mut late = store.upload_contested(&small).unwrap();
        one.write(Bytes::from_static(b"one")).await.unwrap();
        other.write(Bytes::from_static(b"other")).await.unwrap();
        one.finish().await.unwrap();
        exists(other.finish().await);
        exists(late.write(large(3)).await);
        assert_eq!(store.get(&small).await.unwrap(), "one");
        store.delete(&small).await.unwrap();

        let given_up = format!("{folder}/given-up");
        let mut upload = store.upload_contested(&given_up).unwrap();
        upload.write(large(7)).await.unwrap();
        assert_eq!(listed().await, [true]);
        upload.abort().await.unwrap();
        assert_eq!(listed().await, [false; 0]);
    }
}

#[tokio::test]
async fn a_listing_names_what_is_there_and_removal_may_be_repeated() {
    for (store, _directory) in all() {
        let folder = folder();
        for name in ["a", "b/c"] {
            store
                .put(&format!("{folder}/{name}"), Bytes::from_static(b"x"))
                .await
                .unwrap();
        }
        let listed = async || {
            let found: Vec<_> = store.list(&folder).unwrap().try_collect().await.unwrap();
            found
                .into_iter()
                .map(|object| object.path)
                .collect::<BTreeSet<_>>()
        };
        assert_eq!(
            listed().await,
            BTreeSet::from([format!("{folder}/a"), format!("{folder}/b/c")])
        );
        for _ in 0..2 {
            store.delete(&format!("{folder}/a")).await.unwrap();
        }
        assert_eq!(listed().await, BTreeSet::from([format!("{folder}/b/c")]));
    }
}

#[tokio::test]
async fn what_was_acknowledged_survives_a_power_cut() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(ForgetfulDisk::default());
    let store = ObjectStorage::directory(directory.path(), disk.clone()).unwrap();
    store
        .put("data/p/small", Bytes::from_static(b"small"))
        .await
        .unwrap();
    let mut upload = store.upload("data/q/large").unwrap();
    upload.write(vec![1; 20 << 20].into()).await.unwrap();
    upload.finish().await.unwrap();
    let mut unfinished = store.upload("data/q/unfinished").unwrap();
    unfinished.write(vec![2; 20 << 20].into()).await.unwrap();
    // Written behind the store's back: nobody synchronised it.
    std::fs::write(directory.path().join("data/p/unsynchronised"), b"gone").unwrap();

    disk.lose_power(directory.path()).unwrap();
    drop(unfinished);
    let store = ObjectStorage::directory(directory.path(), disk).unwrap();
    assert_eq!(store.get("data/p/small").await.unwrap(), "small");
    assert_eq!(store.get("data/q/large").await.unwrap(), vec![1; 20 << 20]);
    for lost in ["data/q/unfinished", "data/p/unsynchronised"] {
        assert!(
            matches!(store.get(lost).await, Err(StoreError::Missing { .. })),
            "{lost}"
        );
    }
    store
        .put("data/p/again", Bytes::from_static(b"again"))
        .await
        .unwrap();
}

#[tokio::test]
async fn faults_reach_the_caller_as_what_they_are() {
    let faults = Arc::new(Faults::default());
    let store = ObjectStorage::over(Arc::new(FaultyStore::new(
        Arc::new(InMemory::new()),
        faults.clone(),
    )));
    let content = || Bytes::from_static(b"x");
    faults.once(Operation::Put, Fault::Fail);
    assert!(matches!(
        store.put("a", content()).await,
        Err(StoreError::Unavailable { .. })
    ));
    assert!(matches!(store.get("a").await, Err(StoreError::Missing { .. })));
    faults.once(Operation::Put, Fault::NoRoom);
    assert!(matches!(
        store.put("a", content()).await,
        Err(StoreError::Full { .. })
    ));
    faults.once(Operation::Put, Fault::LoseAnswer);
    assert!(matches!(
        store.put("a", content()).await,
        Err(StoreError::Unavailable { .. })
    ));
    assert_eq!(store.get("a").await.unwrap(), "x");
    // Whoever asks once more meets their own.
    store.put("a", content()).await.unwrap();
    let other = store.put("a", Bytes::from_static(b"y")).await;
    assert!(matches!(other, Err(StoreError::Exists { .. })));
    faults.lasting(Operation::Get, Some(Fault::Fail));
    assert!(matches!(
        store.get("a").await,
        Err(StoreError::Unavailable { .. })
    ));
    faults.lasting(Operation::Get, None);
    assert_eq!(store.get("a").await.unwrap(), "x");
}

#[tokio::test]
async fn without_a_bucket_nothing_succeeds_and_nothing_counts_as_lost() {
    let faults = Arc::new(Faults::default());
    let store = ObjectStorage::over(Arc::new(FaultyStore::new(
        Arc::new(InMemory::new()),
        faults.clone(),
    )));
    let large = || Bytes::from(vec![1; 20 << 20]);
    for operation in [Operation::Put, Operation::Part] {
        faults.lasting(operation, Some(Fault::NoBucket));
        let mut upload = store.upload("large").unwrap();
        let written = upload.write(large()).await;
        let mut answers = vec![written.and(upload.finish().await)];
        if operation == Operation::Put {
            answers.push(store.put("a", Bytes::from_static(b"x")).await);
            answers.push(store.replace("a", Bytes::from_static(b"x")).await);
        }
        for answer in answers {
            let error = answer.unwrap_err();
            assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
            let said = error.to_string();
            assert!(said.contains("NoSuchBucket"), "{said}");
        }
        faults.lasting(operation, None);
    }
    store.put("a", Bytes::from_static(b"x")).await.unwrap();
    faults.lasting(Operation::Get, Some(Fault::NoBucket));
    faults.lasting(Operation::Delete, Some(Fault::NoBucket));
    let answers = [
        store.get("a").await.map(drop),
        store.version("a").await.map(drop),
        store.size("a").await.map(drop),
        store.delete("a").await,
        verify_object(&store, "a", 1, 0).await,
    ];
    for answer in answers {
        assert!(
            matches!(answer, Err(StoreError::Unavailable { .. })),
            "{answer:?}"
        );
    }
    faults.lasting(Operation::Get, None);
    assert_eq!(store.version("b").await.unwrap(), None);
    assert!(matches!(store.size("b").await, Err(StoreError::Missing { .. })));
}

#[tokio::test]
async fn a_piece_whose_write_failed_is_not_there_and_can_be_written_again() {
    let faults = Arc::new(Faults::default());
    let store = ObjectStorage::over(Arc::new(FaultyStore::new(
        Arc::new(InMemory::new()),
        faults.clone(),
    )));
    let (person, batch) = (person(), many(2_000, NEW_YEAR_2024));
    for (fault, left_behind) in [(Fault::Fail, 0), (Fault::NoRoom, 0), (Fault::LoseAnswer, 1)] {
        faults.once(Operation::Put, fault);
        let refused = write_batch(&store, &SystemIds::default(), target(person), &batch).await;
        assert!(
            matches!(
                refused,
                Err(StoreError::Unavailable { .. } | StoreError::Full { .. })
            ),
            "{refused:?}"
        );
        let objects: Vec<_> = store.list("data").unwrap().try_collect().await.unwrap();
        assert_eq!(objects.len(), left_behind);
    }
    faults.lasting(
        Operation::Put,
        Some(Fault::Delay(std::time::Duration::from_millis(5))),
    );
    assert_eq!(
        write_batch(&store, &SystemIds::default(), target(person), &batch)
            .await
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn two_processes_of_one_number_stage_beside_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let open = || ObjectStorage::open(&ObjectStoreSettings::Local(directory.path().to_path_buf())).unwrap();
    // Both are the same process here, as two containers are both process 1.
    let (one, other) = (open(), open());
    let bytes = |letter: u8| Bytes::from(vec![letter; 3 << 20]);
    let mut uploads = Vec::new();
    for (number, store) in [&one, &other, &one, &other].into_iter().enumerate() {
        let mut upload = store.upload(&format!("data/object-{number}")).unwrap();
        for _ in 0..4 {
            upload.write(bytes(number as u8)).await.unwrap();
        }
        uploads.push(upload);
    }
    // What a third one left there, by whatever name, is not theirs to remove.
    let left = directory.path().join(format!("staging/{}-0", std::process::id()));
    std::fs::write(&left, "somebody's").unwrap();
    let third = open();
    for upload in uploads {
        third
            .put(&format!("data/{}", Uuid::new_v4()), bytes(9))
            .await
            .unwrap();
        upload.finish().await.unwrap();
    }
    for number in 0..4_u8 {
        let content = third.get(&format!("data/object-{number}")).await.unwrap();
        assert!(content.len() == 12 << 20 && content.iter().all(|byte| *byte == number));
    }
    assert_eq!(std::fs::read(&left).unwrap(), b"somebody's");
}
