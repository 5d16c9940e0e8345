//! Snapshots are of one moment, and the same as long as nothing changes.

use super::super::piece::write_batch;
use super::super::snapshot::{PieceContent, Snapshots};
use super::super::tail;
use super::*;
use crate::catalog::records::Replace;
use crate::model::ids::SystemIds;

#[tokio::test]
async fn a_snapshot_is_given_out_again_until_something_changes() {
    let bench = Bench::new().await;
    let (person, snapshots) = (person(), Snapshots::new(bench.catalog.clone(), 1 << 20));
    let get = async || snapshots.get(person, &[heart_rate()]).await.unwrap().remove(0);
    assert_eq!(get().await.stamp.version, 0);
    bench
        .commit(change(
            person,
            vec![tail::piece(piece_id(), &many(3, NEW_YEAR_2024), 1).unwrap()],
        ))
        .await;
    let first = get().await;
    assert_eq!((first.stamp.version, first.records), (1, 3));
    assert!(Arc::ptr_eq(&first, &get().await));

    bench
        .commit(change(
            person,
            vec![tail::piece(piece_id(), &many(2, NEW_YEAR_2024), 1).unwrap()],
        ))
        .await;
    let second = get().await;
    assert_eq!(
        (second.stamp.version, second.records, second.pieces.len()),
        (2, 5, 2)
    );
    assert_eq!((first.stamp.version, first.pieces.len()), (1, 1));
    let rows_of = |content: &PieceContent| match content {
        PieceContent::Tail(rows) => Arc::clone(rows),
        PieceContent::Object(_) => panic!("an object"),
    };
    let kept = second
        .pieces
        .iter()
        .find(|piece| piece.id == first.pieces[0].id)
        .unwrap();
    assert!(Arc::ptr_eq(
        &rows_of(&first.pieces[0].content),
        &rows_of(&kept.content)
    ));
}

#[tokio::test]
async fn a_noted_commit_gives_the_snapshot_that_the_catalogue_would_give() {
    let bench = Bench::new().await;
    let (person, noted) = (person(), Snapshots::new(bench.catalog.clone(), 1 << 20));
    let mut previous = None;
    for version in 0..4 {
        noted.get(person, &[heart_rate()]).await.unwrap();
        let batch = many(3, NEW_YEAR_2024 - version * SECOND);
        let piece = tail::piece(piece_id(), &batch, 1).unwrap();
        let dead: Vec<_> = previous.into_iter().collect();
        previous = Some((piece.id, ids_of(&batch)[1]));
        let change = PartitionChange {
            records_delta: 3 - dead.len() as i64,
            dead,
            expected: Some(bench.stamp(person).await),
            ..change(person, vec![piece])
        };
        bench.commit(change.clone()).await;
        noted.committed(
            &change,
            vec![Some(super::super::arrange::without_null_columns(&batch).unwrap())],
            &[],
            bench.stamp(person).await,
        );
        let fresh = Snapshots::new(bench.catalog.clone(), 1 << 20)
            .get(person, &[heart_rate()])
            .await
            .unwrap();
        let (fresh, noted) = (&fresh[0], &noted.get(person, &[heart_rate()]).await.unwrap()[0]);
        assert_eq!(format!("{fresh:?}"), format!("{noted:?}"));
    }
}

#[tokio::test]
async fn a_flush_changes_the_pieces_and_not_the_rows() {
    let bench = Bench::new().await;
    let (person, snapshots) = (person(), Snapshots::new(bench.catalog.clone(), 1 << 20));
    let batch = many(50, NEW_YEAR_2024);
    let small = tail::piece(piece_id(), &batch, 1).unwrap();
    bench.commit(change(person, vec![small.clone()])).await;
    let before = snapshots.get(person, &[heart_rate()]).await.unwrap();
    let output = write_batch(&bench.objects, &SystemIds::default(), target(person), &batch)
        .await
        .unwrap();
    let replace = Replace {
        person,
        data_type: heart_rate(),
        inputs: vec![small.id],
        applied: Vec::new(),
        output,
    };
    assert_eq!(bench.catalog.replace(replace).await.unwrap(), CommitOutcome::Done);
    let after = snapshots.get(person, &[heart_rate()]).await.unwrap();
    assert_eq!(
        (before[0].stamp.version, after[0].stamp.version, after[0].records),
        (1, 2, 50)
    );
    assert!(matches!(before[0].pieces[0].content, PieceContent::Tail(_)));
    assert!(matches!(after[0].pieces[0].content, PieceContent::Object(_)));
}

#[tokio::test]
async fn a_piece_of_the_tail_is_dead_once_all_its_rows_are() {
    let bench = Bench::new().await;
    let (person, snapshots) = (person(), Snapshots::new(bench.catalog.clone(), 1 << 20));
    let batch = many(2, NEW_YEAR_2024);
    let piece = tail::piece(piece_id(), &batch, 1).unwrap();
    let id = piece.id;
    bench.commit(change(person, vec![piece])).await;
    for (dies, is_dead) in [(0, false), (1, true)] {
        let kills = PartitionChange {
            records_delta: -1,
            dead: vec![(id, ids_of(&batch)[dies])],
            expected: Some(bench.stamp(person).await),
            ..change(person, Vec::new())
        };
        bench.commit(kills).await;
        let now = snapshots.get(person, &[heart_rate()]).await.unwrap();
        assert_eq!(now[0].pieces[0].is_dead(), is_dead, "{dies}");
    }
}
