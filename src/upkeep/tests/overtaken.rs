//! What jobs do with a tail that is written meanwhile: writes put its small pieces together, so that what was
//! read is gone.

use std::collections::HashSet;
use std::convert::Infallible;

use super::*;
use crate::catalog::NoticedDeletion;
use crate::catalog::records::GatheredTail;
use crate::upkeep::flush::flush;
use crate::upkeep::purge::purge_deleted;

/// Adds record after record, and takes the piece with those before along.
async fn keep_writing(bench: &Bench) -> Infallible {
    let mut before = None;
    let (mut first, mut next) = (1_000_u128, 1_000_u128);
    loop {
        let snapshot = bench.snapshot().await;
        let ids = snapshot.pieces.iter().map(|piece| piece.id);
        let taken: Vec<PieceId> = ids
            .filter(|piece| Some(*piece) == before && next - first < 100)
            .collect();
        if taken.is_empty() {
            first = next;
        }
        let count = usize::try_from(next - first).unwrap() + 1;
        let batch = rows(&many(first, count, LAST_DAY_OF_2023));
        let piece = tail::piece(PieceId(Uuid::now_v7()), &batch, 1).unwrap();
        let into = piece.id;
        let PartitionKey { person, data_type } = bench.key.clone();
        let gathered = GatheredTail {
            person,
            data_type: data_type.clone(),
            pieces: taken,
            into,
        };
        let change = PartitionChange {
            person,
            data_type,
            expected: Some(snapshot.stamp),
            add: vec![piece],
            dead: Vec::new(),
            records_delta: 1,
            updates: 1,
        };
        let commit = Commit {
            changes: vec![change],
            gathered: vec![gathered],
            ..Commit::default()
        };
        if bench.stores.catalog.commit(commit).await.unwrap() == CommitOutcome::Done {
            before = Some(into);
            next += 1;
        }
        tokio::task::yield_now().await;
    }
}

/// Puts records into a piece of the tail each.
async fn put_apart(bench: &Bench, numbers: std::ops::Range<u128>) {
    for number in numbers {
        bench.put(&many(number, 1, LAST_DAY_OF_2023), false).await;
    }
}

async fn tail_of(bench: &Bench) -> HashSet<PieceId> {
    let snapshot = bench.snapshot().await;
    let pieces = snapshot.pieces.iter();
    let of_tail = pieces.filter(|piece| matches!(piece.content, PieceContent::Tail(_)));
    of_tail.map(|piece| piece.id).collect()
}

async fn noticed(bench: &Bench) -> Vec<NoticedDeletion> {
    let end_of_time = Instant::from_micros(i64::MAX);
    let noticed = bench.stores.catalog.deletions_before(end_of_time).await;
    noticed.unwrap().sound
}

#[tokio::test]
async fn what_has_waited_is_flushed_however_others_are_put_together() {
    let bench = Bench::new().await;
    put_apart(&bench, 0..30).await;
    bench.pass(Duration::from_secs(10));
    let waiting = tail_of(&bench).await;
    tokio::select! {
        flushed = flush(&bench.stores, &bench.key) => assert_ne!(flushed.unwrap(), 0),
        never = keep_writing(&bench) => match never {},
    }
    assert!(tail_of(&bench).await.is_disjoint(&waiting));
}

#[tokio::test]
async fn a_deletion_is_noticed_for_as_long_as_its_rows_are_in_the_tail() {
    let bench = Bench::new().await;
    put_apart(&bench, 0..30).await;
    let ids: Vec<RecordId> = (0..30).map(record).collect();
    bench.delete(&ids).await;
    bench.stores.catalog.notice_deletions().await.unwrap();
    let (with_dead_rows, due) = (tail_of(&bench).await, noticed(&bench).await);
    assert_eq!(due.len(), 1);
    tokio::select! {
        purged = Box::pin(purge_deleted(&bench.stores, &due)) => purged.unwrap(),
        never = keep_writing(&bench) => match never {},
    }
    let are_gone = tail_of(&bench).await.is_disjoint(&with_dead_rows);
    assert!(are_gone || noticed(&bench).await == due);
    // Once nobody writes, both are gone.
    Box::pin(purge_deleted(&bench.stores, &due)).await.unwrap();
    assert!(tail_of(&bench).await.is_disjoint(&with_dead_rows));
    assert!(noticed(&bench).await.is_empty());
}
