//! What the hot paths cost. Ignored by default: they print, they do not judge.

use std::time::Instant as Moment;

use super::super::files::PieceFiles;
use super::super::find::Finder;
use super::super::piece::write_batch;
use super::super::snapshot::Snapshots;
use super::super::tail;
use super::*;
use crate::model::ids::SystemIds;

async fn each<F: Future>(what: &str, rounds: u32, mut work: impl FnMut() -> F) {
    work().await;
    let start = Moment::now();
    for _ in 0..rounds {
        work().await;
    }
    println!(
        "{what}: {:.1} us",
        start.elapsed().as_secs_f64() * 1e6 / f64::from(rounds)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn prints_what_tail_pieces_commits_and_snapshots_cost() {
    let bench = Bench::new().await;
    let person = person();
    let batch = many(1, NEW_YEAR_2024);
    each("encode a tail piece of one row", 1000, || async {
        tail::piece(piece_id(), &batch, 1).unwrap()
    })
    .await;
    let piece = tail::piece(piece_id(), &batch, 1).unwrap();
    println!("a tail piece of one row: {} bytes", piece.bytes);
    let (blob, checksum) = tail::encode(&batch).unwrap();
    each("decode it", 1000, || async {
        tail::decode(&blob, checksum).unwrap()
    })
    .await;

    each("commit one piece", 400, || async {
        let piece = tail::piece(piece_id(), &batch, 1).unwrap();
        bench.commit(change(person, vec![piece])).await;
    })
    .await;
    let people: Vec<PersonId> = (0..64).map(|_| super::person()).collect();
    each("commit 64 people with one piece each", 50, || async {
        let changes = people
            .iter()
            .map(|person| change(*person, vec![tail::piece(piece_id(), &batch, 1).unwrap()]))
            .collect();
        assert_eq!(
            bench
                .catalog
                .commit(Commit {
                    changes,
                    ..Commit::default()
                })
                .await
                .unwrap(),
            CommitOutcome::Done
        );
    })
    .await;
    each("versions of one type", 2000, || async {
        bench.catalog.stamps(person, &[heart_rate()]).await.unwrap()
    })
    .await;
    let five: Vec<TypeId> = ["HeartRate", "A", "B", "C", "D"]
        .map(|name| TypeId(name.into()))
        .into();
    each("versions of five types", 2000, || async {
        bench.catalog.stamps(person, &five).await.unwrap()
    })
    .await;
    each("partitions of a person", 1000, || async {
        bench.catalog.partitions_of(person).await.unwrap()
    })
    .await;
    let snapshots = Snapshots::new(bench.catalog.clone(), 64 << 20);
    each("snapshot from memory, 401 tail pieces", 1000, || async {
        snapshots.get(person, &[heart_rate()]).await.unwrap()
    })
    .await;
    each("snapshot from the catalogue, 401 tail pieces", 10, || async {
        Snapshots::new(bench.catalog.clone(), 64 << 20)
            .get(person, &[heart_rate()])
            .await
            .unwrap()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn prints_what_writing_an_object_and_finding_ids_in_it_costs() {
    let bench = Bench::new().await;
    let person = person();
    let rows = 64 * 131_072;
    let batch = many(rows, NEW_YEAR_2024);
    let start = Moment::now();
    let pieces = write_batch(&bench.objects, &SystemIds::default(), target(person), &batch)
        .await
        .unwrap();
    let seconds = start.elapsed().as_secs_f64();
    let bytes: i64 = pieces.iter().map(|piece| piece.bytes).sum();
    println!(
        "write {rows} rows: {:.2} M rows/s, {:.1} bytes a row, {} pieces",
        rows as f64 / seconds / 1e6,
        bytes as f64 / rows as f64,
        pieces.len()
    );
    bench.commit(change(person, pieces)).await;
    let files = PieceFiles::new(bench.objects.clone(), 32 << 20);
    let finder = Finder::new(files, 64 << 20);
    let snapshot = Snapshots::new(bench.catalog.clone(), 1 << 20)
        .get(person, &[heart_rate()])
        .await
        .unwrap()
        .remove(0);
    let fresh: Vec<RecordId> = (0..10_000).map(|_| RecordId(Uuid::new_v4())).collect();
    each("10,000 random ids against it, none there, first", 1, || async {
        finder.live_rows_of(&snapshot, &fresh).await.unwrap().len()
    })
    .await;
    each("10,000 random ids against it, none there", 20, || async {
        finder.live_rows_of(&snapshot, &fresh).await.unwrap().len()
    })
    .await;
    let ordered: Vec<RecordId> = (0..10_000).map(|_| RecordId(Uuid::now_v7())).collect();
    each("10,000 ids in order of time", 20, || async {
        finder.live_rows_of(&snapshot, &ordered).await.unwrap().len()
    })
    .await;
    let one = [fresh[0]];
    each("one id", 200, || async {
        finder.live_rows_of(&snapshot, &one).await.unwrap().len()
    })
    .await;
    let known: Vec<RecordId> = ids_of(&batch.slice(1_000_000, 10_000));
    each("10,000 ids that are there", 3, || async {
        finder.live_rows_of(&snapshot, &known).await.unwrap().len()
    })
    .await;
}
