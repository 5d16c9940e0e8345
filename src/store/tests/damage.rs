//! One flipped bit is an error and never a wrong answer.

use std::fmt::Write as _;

use super::super::files::PieceFiles;
use super::super::piece::write_batch;
use super::super::snapshot::{PieceContent, Snapshot, Snapshots};
use super::super::verify::verify_object;
use super::super::{StoreError, tail};
use super::pieces::read_back;
use super::*;
use crate::catalog::records::NewPlace;
use crate::catalog::test_databases::file_in;
use crate::model::ids::SystemIds;

#[test]
fn every_flipped_bit_of_a_blob_is_noticed() {
    let (blob, checksum) = tail::encode(&many(3, NEW_YEAR_2024)).unwrap();
    for bit in 0..blob.len() * 8 {
        let mut damaged = blob.to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(
            matches!(tail::decode(&damaged, checksum), Err(StoreError::Corrupt { .. })),
            "bit {bit}"
        );
    }
}

#[tokio::test]
async fn a_flipped_bit_of_an_object_is_noticed_by_whoever_reads_it() {
    let bench = Bench::new().await;
    let batch = many(20_000, NEW_YEAR_2024);
    let piece = write_batch(&bench.objects, &SystemIds::default(), target(person()), &batch)
        .await
        .unwrap()
        .remove(0);
    let NewPlace::Object { path, .. } = &piece.place else {
        panic!("a tail piece")
    };
    let file = bench.directory.path().join("objects").join(path);
    let good = std::fs::read(&file).unwrap();
    let expected = read_back(&PieceFiles::new(bench.objects.clone(), 0), &piece)
        .await
        .unwrap();
    let mut noticed = 0;
    for bit in (0..good.len() * 8).step_by(good.len() * 8 / 997) {
        let mut damaged = good.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&file, &damaged).unwrap();
        match read_back(&PieceFiles::new(bench.objects.clone(), 0), &piece).await {
            Ok(rows) => assert_eq!(rows, expected, "bit {bit}"),
            Err(StoreError::Corrupt { .. }) => noticed += 1,
            Err(error) => panic!("bit {bit}: {error}"),
        }
    }
    // The index of ids is the only part that this reader does not look at.
    assert!(noticed > 500, "{noticed}");
}

#[tokio::test]
async fn an_object_that_was_cut_short_or_lost_is_noticed() {
    let bench = Bench::new().await;
    let piece = write_batch(
        &bench.objects,
        &SystemIds::default(),
        target(person()),
        &many(1_000, NEW_YEAR_2024),
    )
    .await
    .unwrap()
    .remove(0);
    let NewPlace::Object { path, .. } = &piece.place else {
        panic!("a tail piece")
    };
    let file = bench.directory.path().join("objects").join(path);
    let good = std::fs::read(&file).unwrap();
    for length in [0, 1, good.len() / 2, good.len() - 1] {
        std::fs::write(&file, &good[..length]).unwrap();
        let read = read_back(&PieceFiles::new(bench.objects.clone(), 0), &piece).await;
        assert!(
            matches!(read, Err(StoreError::Corrupt { .. })),
            "{length} bytes: {read:?}"
        );
    }
    std::fs::remove_file(&file).unwrap();
    assert!(matches!(
        read_back(&PieceFiles::new(bench.objects.clone(), 0), &piece).await,
        Err(StoreError::Corrupt { .. })
    ));
}

/// All that a reader can learn of a snapshot.
fn everything(snapshots: &[Arc<Snapshot>]) -> String {
    let mut all = format!("{snapshots:?}");
    for piece in snapshots.iter().flat_map(|snapshot| &snapshot.pieces) {
        if let PieceContent::Tail(rows) = &piece.content {
            write!(all, "{:?}", rows.batch()).unwrap();
        }
    }
    all
}

#[tokio::test]
async fn a_flipped_bit_of_the_catalogue_is_noticed_by_whoever_reads_it() {
    let bench = Bench::new().await;
    let people = [person(), person()];
    for person in people {
        for version in 0..4 {
            let piece = tail::piece(piece_id(), &many(20, NEW_YEAR_2024), 1).unwrap();
            let dead = if version == 3 {
                vec![(piece.id, RecordId(Uuid::new_v4()))]
            } else {
                Vec::new()
            };
            bench
                .commit(PartitionChange {
                    dead,
                    ..change(person, vec![piece])
                })
                .await;
        }
    }
    let types = [heart_rate(), TypeId("Steps".into())];
    let read = async |catalog: &Catalog| {
        let snapshots = Snapshots::new(catalog.clone(), 0);
        let mut all = String::new();
        for person in people {
            all.push_str(&everything(&snapshots.get(person, &types).await?));
            write!(all, "{:?}", catalog.partitions_of(person).await?).unwrap();
        }
        Ok::<_, StoreError>(all)
    };
    let expected = read(&bench.catalog).await.unwrap();
    bench.catalog.close().await;
    let good = std::fs::read(file_in(bench.directory.path())).unwrap();

    let elsewhere = tempfile::tempdir().unwrap();
    let mut noticed = 0;
    for (round, bit) in (0..good.len() * 8).step_by(good.len() * 8 / 499).enumerate() {
        let mut damaged = good.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let path = elsewhere.path().join(format!("{round}.sqlite"));
        std::fs::write(&path, &damaged).unwrap();
        let Ok(catalog) = Catalog::open(&format!("sqlite://{}", path.display()), Arc::new(SystemClock)).await
        else {
            noticed += 1;
            continue;
        };
        match read(&catalog).await {
            Ok(answer) => assert_eq!(answer, expected, "bit {bit}"),
            Err(_) => noticed += 1,
        }
        catalog.close().await;
        std::fs::remove_file(&path).unwrap();
    }
    assert!(noticed > 20, "{noticed}");
}

#[tokio::test]
async fn a_scrub_notices_an_object_that_is_not_what_was_written() {
    let bench = Bench::new().await;
    let piece = write_batch(
        &bench.objects,
        &SystemIds::default(),
        target(person()),
        &many(100, NEW_YEAR_2024),
    )
    .await
    .unwrap()
    .remove(0);
    let NewPlace::Object { path, .. } = &piece.place else {
        panic!("a tail piece")
    };
    verify_object(&bench.objects, path, piece.bytes, piece.checksum)
        .await
        .unwrap();
    let file = bench.directory.path().join("objects").join(path);
    let mut damaged = std::fs::read(&file).unwrap();
    damaged[1] ^= 1;
    std::fs::write(&file, &damaged).unwrap();
    assert!(matches!(
        verify_object(&bench.objects, path, piece.bytes, piece.checksum).await,
        Err(StoreError::Corrupt { .. })
    ));
    std::fs::remove_file(&file).unwrap();
    assert!(matches!(
        verify_object(&bench.objects, path, piece.bytes, piece.checksum).await,
        Err(StoreError::Corrupt { .. })
    ));
}
