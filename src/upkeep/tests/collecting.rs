//! Only what nobody can miss is removed.

use super::*;
use crate::catalog::CatalogError;
use crate::catalog::records::WRITE_LIMIT;
use crate::upkeep::collect::{ORPHAN_AGE, remove_orphans, remove_retired};
use crate::upkeep::compact::{Limits, compact};

async fn orphan(bench: &Bench) -> Vec<NewPiece> {
    let target = Target {
        person: bench.key.person,
        data_type: bench.key.data_type.clone(),
        layout_version: 1,
    };
    write_batch(
        bench.stores.objects(),
        &SystemIds,
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
    assert_eq!(remove_retired(&bench.stores, grace).await.unwrap(), 0);
    assert_eq!(bench.paths().await.1.len(), 5);
    bench.pass(Duration::from_micros(1));
    assert_eq!(remove_retired(&bench.stores, grace).await.unwrap(), 4);
    let (live, all) = bench.paths().await;
    assert_eq!((live.len(), &live), (1, &all));
}

#[tokio::test]
async fn an_object_of_a_write_under_way_is_never_taken_and_an_abandoned_one_is() {
    let bench = Bench::new().await;
    bench.put(&many(100, 10, LAST_DAY_OF_2023), true).await;
    let young = orphan(&bench).await;
    bench.pass(WRITE_LIMIT);
    assert_eq!(remove_orphans(&bench.stores).await.unwrap(), 0);
    assert_eq!(bench.paths().await.1.len(), 2);

    bench.pass(ORPHAN_AGE);
    assert_eq!(remove_orphans(&bench.stores).await.unwrap(), 1);
    let (live, all) = bench.paths().await;
    assert_eq!((live.len(), &live), (1, &all));

    // The write that comes back for it after all is refused, so nothing ever points to what is gone.
    let PartitionKey { person, data_type } = bench.key.clone();
    let change = PartitionChange {
        person,
        data_type,
        expected_version: None,
        add: young,
        dead: Vec::new(),
        records_delta: 5,
        updates: 5,
    };
    let late = bench
        .stores
        .catalog
        .commit(Commit {
            changes: vec![change],
            ..Commit::default()
        })
        .await;
    assert!(matches!(late, Err(CatalogError::Missing { .. })), "{late:?}");
}

#[tokio::test]
async fn files_that_are_no_objects_of_ours_are_left_alone() {
    let bench = Bench::new().await;
    bench
        .stores
        .objects()
        .put("data/readme.txt", "not ours".into())
        .await
        .unwrap();
    bench.pass(ORPHAN_AGE * 2);
    assert_eq!(remove_orphans(&bench.stores).await.unwrap(), 0);
    assert_eq!(bench.paths().await.1, ["data/readme.txt"]);
}
