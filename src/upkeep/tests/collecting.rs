//! Only what nobody can miss is removed.

use super::*;
use crate::catalog::CatalogError;
use crate::catalog::records::{Effect, UploadReceipt};
use crate::catalog::test_databases::file_in;
use crate::model::ids::UploadId;
use crate::store::orphans::delete_uncommitted;
use crate::store::piece::object_path;
use crate::upkeep::collect::{
    CONDEMNED_AGE, ORPHAN_AGE, RECEIPT_AGE, has_retired, remove_orphans, remove_remains,
};

async fn orphan(bench: &Bench) -> Vec<NewPiece> {
    let target = Target {
        person: bench.key.person,
        data_type: bench.key.data_type.clone(),
        layout_version: 1,
    };
    write_batch(
        bench.stores.objects(),
        bench.stores.ids.as_ref(),
        target,
        &rows(&many(0, 5, LAST_DAY_OF_2023)),
    )
    .await
    .unwrap()
}

#[tokio::test]
async fn replaced_objects_stay_for_the_grace_period_and_no_longer() {
    let bench = Bench::new().await;
    for piece in 0..4 {
        bench.put(&many(piece * 10, 10, LAST_DAY_OF_2023), true).await;
    }
    assert!(
        compact(&bench.stores, &bench.key, &Limits::default())
            .await
            .unwrap()
    );
    let grace = settings().grace_period;
    bench.pass(grace);
    assert!(!has_retired(&bench.stores, grace).await.unwrap());
    assert_eq!(remove_retired(&bench.stores, grace).await.unwrap(), 0);
    assert_eq!(bench.paths().await.1.len(), 5);
    bench.pass(Duration::from_micros(1));
    assert!(has_retired(&bench.stores, grace).await.unwrap());
    // A damaged row neither hides the others nor is work by itself.
    let one = "(SELECT path FROM retired_objects ORDER BY path LIMIT 1)";
    tamper(
        &bench,
        &format!("UPDATE retired_objects SET checksum = checksum + 1 WHERE path = {one}"),
    )
    .await;
    assert!(has_retired(&bench.stores, grace).await.unwrap());
    assert_eq!(remove_retired(&bench.stores, grace).await.unwrap(), 3);
    assert!(!has_retired(&bench.stores, grace).await.unwrap());
    tamper(&bench, "UPDATE retired_objects SET checksum = checksum - 1").await;
    assert_eq!(remove_retired(&bench.stores, grace).await.unwrap(), 1);
    let (live, all) = bench.paths().await;
    assert_eq!((live.len(), &live), (1, &all));
}

#[tokio::test]
async fn objects_that_have_to_stay_keep_nobody_elses_however_many_they_are() {
    let mut bench = Bench::new().await;
    let damaged = bench.key.clone();
    let neighbour = PartitionKey {
        person: PersonId(Uuid::now_v7()),
        ..damaged.clone()
    };
    for key in [&damaged, &neighbour] {
        bench.key = key.clone();
        for piece in 0..4 {
            bench.put(&many(piece * 10, 10, LAST_DAY_OF_2023), true).await;
        }
        assert!(compact(&bench.stores, key, &Limits::default()).await.unwrap());
        // Those of the neighbour were retired later.
        bench.pass(Duration::from_secs(1));
    }
    let rows = format!("WHERE person = x'{}'", damaged.person.0.simple());
    tamper(
        &bench,
        &format!("UPDATE pieces SET row_count = row_count + 1 {rows}"),
    )
    .await;
    let grace = settings().grace_period;
    bench.pass(grace);
    let (mut removed, mut failed) = (0, Vec::new());
    let judge = |person, outcome: Result<usize, StoreError>| {
        match outcome {
            Ok(count) => removed += count,
            Err(error) if error.is_damage() => {
                failed.push(person);
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
        Ok(true)
    };
    // The first two pages have nothing but objects that stay.
    collect::remove_retired(&bench.stores, grace, 2, |_| false, judge)
        .await
        .unwrap();
    assert_eq!((removed, failed), (4, vec![Some(damaged.person)]));
    assert_eq!(bench.paths().await.1.len(), 6);
    tamper(
        &bench,
        &format!("UPDATE pieces SET row_count = row_count - 1 {rows}"),
    )
    .await;
    assert_eq!(remove_retired(&bench.stores, grace).await.unwrap(), 4);
    let (live, all) = bench.paths().await;
    assert_eq!((live.len(), &live), (2, &all));
}

/// The commit of a write that took its time.
async fn commit_late(bench: &Bench, pieces: Vec<NewPiece>) -> Result<CommitOutcome, CatalogError> {
    let PartitionKey { person, data_type } = bench.key.clone();
    let records_delta = pieces.iter().map(|piece| piece.rows).sum();
    let change = PartitionChange {
        person,
        data_type,
        expected: None,
        add: pieces,
        dead: Vec::new(),
        records_delta,
        updates: 5,
    };
    let commit = Commit {
        changes: vec![change],
        ..Commit::default()
    };
    bench.stores.catalog.commit(commit).await
}

async fn round(bench: &Bench) -> usize {
    let searched = remove_orphans(&bench.stores, false).await.unwrap();
    assert_eq!(searched.refused, None);
    searched.removed
}

#[tokio::test]
async fn an_object_is_condemned_before_it_is_removed_and_from_then_on_nobody_can_name_it() {
    let bench = Bench::new().await;
    bench.put(&many(100, 10, LAST_DAY_OF_2023), true).await;
    let (in_time, late) = (orphan(&bench).await, orphan(&bench).await);
    assert_eq!(round(&bench).await, 0);
    bench.pass(ORPHAN_AGE.saturating_sub(Duration::from_mins(1)));
    assert_eq!(round(&bench).await, 0);
    // However long it took, a write that comes before the sentence is as good as any.
    assert_eq!(commit_late(&bench, in_time).await.unwrap(), CommitOutcome::Done);

    bench.pass(Duration::from_mins(2));
    assert_eq!(round(&bench).await, 0);
    assert_eq!(bench.paths().await.1.len(), 3, "it is condemned and still there");
    let refused = commit_late(&bench, late.clone()).await;
    assert!(
        matches!(refused, Err(CatalogError::Missing { .. })),
        "{refused:?}"
    );

    bench.pass(CONDEMNED_AGE + Duration::from_secs(1));
    assert_eq!(round(&bench).await, 1);
    let (live, all) = bench.paths().await;
    assert_eq!((live.len(), &live), (2, &all));
    // Nor when it is gone for long.
    bench.pass(Duration::from_hours(24));
    assert_eq!(round(&bench).await, 0);
    let refused = commit_late(&bench, late).await;
    assert!(
        matches!(refused, Err(CatalogError::Missing { .. })),
        "{refused:?}"
    );
    assert_eq!(bench.visible().await.len(), 15);
}

/// What another node works with, over the same catalogue and store.
async fn with_clock_ahead(bench: &Bench, ahead: Duration) -> UpkeepStores {
    let ahead = bench.clock.now().micros() + ahead.as_micros() as i64;
    let clock = Arc::new(ManualClock::at(Instant::from_micros(ahead)));
    let file = file_in(bench.directory.path());
    let catalog = Catalog::open(&format!("sqlite://{}", file.display()), clock.clone())
        .await
        .unwrap();
    UpkeepStores {
        catalog: catalog.keeping_time(bench.clock.clone()),
        clock,
        ..bench.stores.clone()
    }
}

#[tokio::test]
async fn a_node_whose_clock_is_hours_ahead_takes_nothing_from_a_write_under_way() {
    let bench = Bench::new().await;
    bench.put(&many(100, 10, LAST_DAY_OF_2023), true).await;
    let other = with_clock_ahead(&bench, Duration::from_hours(9)).await;
    let written = orphan(&bench).await;
    for _ in 0..3 {
        assert_eq!(remove_orphans(&other, false).await.unwrap().removed, 0);
        assert_eq!(remove_retired(&other, settings().grace_period).await.unwrap(), 0);
        bench.pass(Duration::from_mins(15));
    }
    assert_eq!(commit_late(&bench, written).await.unwrap(), CommitOutcome::Done);
    assert_eq!(bench.visible().await.len(), 15);
}

#[tokio::test]
async fn how_long_a_key_is_remembered_is_not_up_to_the_clock_of_a_node() {
    let bench = Bench::new().await;
    let other = with_clock_ahead(&bench, Duration::from_hours(24 * 365)).await;
    let person = bench.key.person;
    // Accepted by the one and by the other.
    for (catalog, key) in [(&bench.stores.catalog, "here"), (&other.catalog, "there")] {
        let receipt = UploadReceipt {
            person,
            upload: UploadId(Uuid::now_v7()),
            key: Some((key.to_owned(), [1; 32])),
            effect: Effect::default(),
        };
        let commit = Commit {
            uploads: vec![receipt],
            ..Commit::default()
        };
        assert_eq!(catalog.commit(commit).await.unwrap(), CommitOutcome::Done);
    }
    let remembered = async || {
        let catalog = &bench.stores.catalog;
        catalog.key_count(person).await.unwrap()
    };
    remove_remains(&other).await.unwrap();
    assert_eq!(remembered().await, 2);
    bench.pass(RECEIPT_AGE.saturating_sub(Duration::from_hours(1)));
    remove_remains(&other).await.unwrap();
    remove_remains(&bench.stores).await.unwrap();
    assert_eq!(remembered().await, 2);
    bench.pass(Duration::from_hours(2));
    remove_remains(&bench.stores).await.unwrap();
    assert_eq!(remembered().await, 0);
}

#[tokio::test]
async fn what_the_clock_of_the_database_condemned_too_early_is_refused_and_not_lost() {
    let bench = Bench::new().await;
    bench.put(&many(100, 10, LAST_DAY_OF_2023), true).await;
    let written = orphan(&bench).await;
    assert_eq!(round(&bench).await, 0);
    // The clock jumps ahead while the write is under way.
    bench.pass(Duration::from_hours(9));
    assert_eq!(round(&bench).await, 0);
    let refused = commit_late(&bench, written).await;
    assert!(
        matches!(refused, Err(CatalogError::Missing { .. })),
        "{refused:?}"
    );
    assert_eq!(bench.visible().await.len(), 10);
}

#[tokio::test]
async fn whoever_knows_nobody_collects_nothing() {
    let bench = Bench::new().await;
    orphan(&bench).await;
    for _ in 0..4 {
        assert_eq!(round(&bench).await, 0);
        bench.pass(ORPHAN_AGE + CONDEMNED_AGE);
    }
    assert_eq!(bench.paths().await.1.len(), 1);
}

#[tokio::test]
async fn nothing_is_collected_while_a_rebuild_is_unfinished() {
    let bench = Bench::new().await;
    bench.put(&many(100, 10, LAST_DAY_OF_2023), true).await;
    orphan(&bench).await;
    bench.stores.catalog.begin_rebuild().await.unwrap();
    for _ in 0..4 {
        assert_eq!(round(&bench).await, 0);
        bench.pass(ORPHAN_AGE + CONDEMNED_AGE);
    }
    bench.stores.catalog.finish_rebuild().await.unwrap();
    let mut removed = 0;
    for _ in 0..4 {
        removed += round(&bench).await;
        bench.pass(ORPHAN_AGE + CONDEMNED_AGE);
    }
    assert_eq!(removed, 1);
}

#[tokio::test]
async fn an_improbable_part_of_the_store_stays_unless_the_operator_insists() {
    let bench = Bench::new().await;
    bench.put(&many(100, 10, LAST_DAY_OF_2023), true).await;
    for _ in 0..101 {
        let PartitionKey { person, data_type } = &bench.key;
        let path = object_path(*person, data_type, 2023, PieceId(Uuid::now_v7()));
        bench
            .stores
            .objects()
            .put(&path, "somebody's".into())
            .await
            .unwrap();
    }
    for _ in 0..4 {
        let searched = remove_orphans(&bench.stores, false).await.unwrap();
        assert_eq!((searched.removed, searched.refused), (0, Some((101, 102))));
        bench.pass(ORPHAN_AGE + CONDEMNED_AGE);
    }
    let mut removed = 0;
    for _ in 0..3 {
        removed += remove_orphans(&bench.stores, true).await.unwrap().removed;
        bench.pass(ORPHAN_AGE + CONDEMNED_AGE);
    }
    assert_eq!(removed, 101);
}

#[tokio::test]
async fn objects_that_a_rebuild_kept_are_neither_orphans_nor_a_reason_to_collect_nothing() {
    let bench = Bench::new().await;
    bench.put(&many(100, 10, LAST_DAY_OF_2023), true).await;
    let PartitionKey { person, data_type } = &bench.key;
    let kept: Vec<String> = (0..101)
        .map(|_| object_path(*person, data_type, 2023, PieceId(Uuid::now_v7())))
        .collect();
    for path in &kept {
        let objects = bench.stores.objects();
        objects.put(path, "perhaps accepted".into()).await.unwrap();
    }
    bench.stores.catalog.keep_objects(&kept).await.unwrap();
    orphan(&bench).await;
    let mut removed = 0;
    for _ in 0..4 {
        removed += round(&bench).await;
        bench.pass(ORPHAN_AGE + CONDEMNED_AGE);
    }
    assert_eq!(removed, 1);
    assert_eq!(bench.paths().await.1.len(), 1 + kept.len());
}

#[tokio::test]
async fn objects_that_were_replaced_are_no_orphans() {
    let bench = Bench::new().await;
    for piece in 0..102 {
        bench.put(&many(piece, 1, LAST_DAY_OF_2023), true).await;
    }
    while compact(&bench.stores, &bench.key, &Limits::default())
        .await
        .unwrap()
    {}
    let (live, all) = bench.paths().await;
    assert!(all.len() - live.len() > 101, "{} of {}", live.len(), all.len());
    let orphan = orphan(&bench).await;
    let mut removed = 0;
    for _ in 0..4 {
        let searched = remove_orphans(&bench.stores, false).await.unwrap();
        assert_eq!(searched.refused, None);
        removed += searched.removed;
        bench.pass(ORPHAN_AGE + CONDEMNED_AGE);
    }
    assert_eq!((orphan.len(), removed), (1, 1));
    assert_eq!(bench.paths().await.1.len(), all.len());
}

#[tokio::test]
async fn the_objects_of_a_refused_write_go_at_once_and_those_of_a_write_that_happened_stay() {
    let bench = Bench::new().await;
    bench.put(&many(100, 10, LAST_DAY_OF_2023), true).await;
    let (refused, happened) = (orphan(&bench).await, orphan(&bench).await);
    assert_eq!(
        commit_late(&bench, happened.clone()).await.unwrap(),
        CommitOutcome::Done
    );
    for pieces in [&refused, &happened] {
        delete_uncommitted(&bench.stores.catalog, bench.stores.objects(), pieces)
            .await
            .unwrap();
    }
    let (live, all) = bench.paths().await;
    assert_eq!((live.len(), &live), (2, &all));
    let late = commit_late(&bench, refused).await;
    assert!(matches!(late, Err(CatalogError::Missing { .. })), "{late:?}");
    assert_eq!(bench.visible().await.len(), 15);
}

#[tokio::test]
async fn files_that_are_no_objects_of_ours_are_left_alone() {
    let bench = Bench::new().await;
    bench.put(&many(100, 10, LAST_DAY_OF_2023), false).await;
    bench
        .stores
        .objects()
        .put("data/readme.txt", "not ours".into())
        .await
        .unwrap();
    for _ in 0..3 {
        assert_eq!(round(&bench).await, 0);
        bench.pass(ORPHAN_AGE * 2);
    }
    assert_eq!(bench.paths().await.1, ["data/readme.txt"]);
}
