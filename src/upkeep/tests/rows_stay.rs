//! Whatever the order of puts, deletes, flushes and compactions, readers see what a plain map would hold.

use proptest::prelude::*;

use super::*;
use crate::model::meters::Meters;
use crate::upkeep::flush::flush;
use crate::upkeep::jobs::Upkeep;
use crate::upkeep::past_years::{MergeOutcome, compact_or_merge_past_year};
use crate::upkeep::settled_partitions::SettledPartitions;
use tokio_util::sync::CancellationToken;

#[derive(Clone, Debug)]
enum Step {
    Put {
        records: Vec<(u8, u8)>,
        as_object: bool,
    },
    Delete {
        records: Vec<u8>,
    },
    Flush,
    Compact,
    /// Nothing comes for a while, and years that are over are merged.
    Rest,
    /// A change that happens after a compaction or flush has read and before it commits.
    Collect,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let put = (
        prop::collection::btree_map(0..40u8, any::<u8>(), 1..12),
        any::<bool>(),
    )
        .prop_map(|(records, as_object)| Step::Put {
            records: records.into_iter().collect(),
            as_object,
        });
    let delete = prop::collection::btree_set(0..40u8, 1..8).prop_map(|records| Step::Delete {
        records: records.into_iter().collect(),
    });
    let step = prop_oneof![
        5 => put,
        2 => delete,
        2 => Just(Step::Flush),
        2 => Just(Step::Compact),
        1 => Just(Step::Rest),
        1 => Just(Step::Collect),
    ];
    prop::collection::vec(step, 1..30)
}

/// The start of a record depends on its value, so that a replacement may move it into another year.
fn row(number: u8, value: u8) -> (RecordId, i64, f64) {
    (
        record(u128::from(number)),
        LAST_DAY_OF_2023 + i64::from(value % 2) * DAY + i64::from(number),
        f64::from(value),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_order_of_changes_and_jobs_leaves_what_a_map_would_hold(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let bench = Bench::new().await;
            let limits = Limits {
                inputs: 6,
                ..Limits::default()
            };
            let mut model = Model::new();
            for step in steps {
                match step {
                    Step::Put { records, as_object } => {
                        let put: Vec<_> = records
                            .iter()
                            .map(|(number, value)| row(*number, *value))
                            .collect();
                        bench.put(&put, as_object).await;
                        model.extend(put.into_iter().map(|(id, start, value)| (id, (start, value))));
                    }
                    Step::Delete { records } => {
                        let ids: Vec<_> = records.iter().map(|number| record(u128::from(*number))).collect();
                        bench.delete(&ids).await;
                        model.retain(|id, _| !ids.contains(id));
                    }
                    Step::Flush => {
                        flush(&bench.stores, &bench.key).await.unwrap();
                    }
                    Step::Compact => {
                        compact(&bench.stores, &bench.key, &limits).await.unwrap();
                    }
                    Step::Rest => {
                        bench.pass(Duration::from_secs(5));
                        let merged = compact_or_merge_past_year(&bench.stores, &bench.key, &limits).await;
                        assert_ne!(merged.unwrap(), MergeOutcome::Later);
                    }
                    Step::Collect => {
                        remove_retired(&bench.stores, Duration::ZERO).await.unwrap();
                    }
                }
                assert_eq!(bench.visible().await, model);
            }
        });
    }
}

#[tokio::test]
async fn a_flush_empties_the_tail_into_one_object_for_each_year() {
    let bench = Bench::new().await;
    bench.put(&many(0, 100, LAST_DAY_OF_2023), false).await;
    bench.put(&many(100, 50, LAST_DAY_OF_2023 + DAY), false).await;
    bench.delete(&[record(3), record(120)]).await;
    let before = bench.visible().await;
    assert_eq!(flush(&bench.stores, &bench.key).await.unwrap(), 2);
    let after = bench.snapshot().await;
    let objects: Vec<_> = after
        .pieces
        .iter()
        .map(|piece| {
            (
                piece.rows,
                piece.dead.len(),
                matches!(piece.content, PieceContent::Object(_)),
            )
        })
        .collect();
    assert_eq!(objects, [(99, 0, true), (49, 0, true)]);
    assert_eq!(bench.visible().await, before);
    assert_eq!(flush(&bench.stores, &bench.key).await.unwrap(), 0);
}

#[tokio::test]
async fn what_dies_or_comes_while_a_compaction_runs_is_dead_or_there_afterwards() {
    let bench = Bench::new().await;
    for piece in 0..5 {
        bench
            .put(&many(piece * 100, 100, LAST_DAY_OF_2023 + piece as i64 * 7), true)
            .await;
    }
    // Reads the pieces as a compaction would, changes them, and only then commits.
    let snapshot = bench.snapshot().await;
    let rows: Vec<_> = bench
        .visible()
        .await
        .into_iter()
        .map(|(id, (start, value))| (id, start, value))
        .collect();
    let target = Target {
        person: bench.key.person,
        data_type: bench.key.data_type.clone(),
        layout_version: 1,
    };
    let output = write_batch(
        bench.stores.objects(),
        bench.stores.ids.as_ref(),
        target,
        &super::rows(&rows),
    )
    .await
    .unwrap();
    bench.delete(&[record(7), record(301)]).await;
    bench
        .put(
            &[
                (record(8), LAST_DAY_OF_2023, 1000.0),
                (record(900), LAST_DAY_OF_2023, 1001.0),
            ],
            false,
        )
        .await;
    let expected = bench.visible().await;
    let inputs: Vec<_> = snapshot
        .pieces
        .iter()
        .map(|piece| crate::upkeep::stores::Input {
            piece: piece.id,
            dead: Arc::clone(&piece.dead),
        })
        .collect();
    assert_eq!(
        bench
            .stores
            .replace(&bench.key, &inputs, output.clone())
            .await
            .unwrap(),
        CommitOutcome::Done
    );
    assert_eq!(bench.visible().await, expected);
    assert_eq!(expected.len(), 500 - 2 + 1);

    // The same inputs again are gone: nothing happens, and what was written for nothing is removed.
    let again = write_batch(
        bench.stores.objects(),
        bench.stores.ids.as_ref(),
        Target {
            person: bench.key.person,
            data_type: bench.key.data_type.clone(),
            layout_version: 1,
        },
        &super::rows(&rows),
    )
    .await
    .unwrap();
    assert_eq!(
        bench.stores.replace(&bench.key, &inputs, again).await.unwrap(),
        CommitOutcome::Stale
    );
    assert_eq!(bench.visible().await, expected);
    let (live, all) = bench.paths().await;
    assert_eq!((live.len(), all.len()), (1, 6));
}

#[tokio::test]
async fn a_compaction_of_long_overlapping_objects_keeps_order_and_leaves_the_dead_behind() {
    let bench = Bench::new().await;
    for piece in 0..4 {
        bench
            .put(
                &many(piece * 100_000, 20_000, LAST_DAY_OF_2023 + DAY + piece as i64),
                true,
            )
            .await;
    }
    bench
        .put(
            &many(900_000, 24_000, LAST_DAY_OF_2023 + DAY + 100_000 * SECOND),
            true,
        )
        .await;
    let gone: Vec<_> = (0..20_000)
        .step_by(3)
        .map(|number| record(100_000 + number))
        .collect();
    bench.delete(&gone).await;
    let before = bench.visible().await;
    while compact(&bench.stores, &bench.key, &Limits::default())
        .await
        .unwrap()
    {}
    let after = bench.snapshot().await;
    assert_eq!(after.pieces.len(), 1);
    assert_eq!(
        (after.pieces[0].rows, after.pieces[0].dead.len()),
        (before.len() as i64, 0)
    );
    assert_eq!(bench.visible().await, before);
}

#[tokio::test]
async fn an_object_with_many_dead_rows_is_rewritten_by_itself_and_one_of_nothing_else_disappears() {
    let bench = Bench::new().await;
    bench.put(&many(0, 100, LAST_DAY_OF_2023), true).await;
    let ids: Vec<_> = (0..20).map(record).collect();
    bench.delete(&ids).await;
    assert!(
        !compact(&bench.stores, &bench.key, &Limits::default())
            .await
            .unwrap()
    );
    bench.delete(&[record(20)]).await;
    assert!(
        compact(&bench.stores, &bench.key, &Limits::default())
            .await
            .unwrap()
    );
    assert_eq!(bench.snapshot().await.pieces[0].rows, 79);
    let rest: Vec<_> = (21..100).map(record).collect();
    bench.delete(&rest).await;
    assert!(
        compact(&bench.stores, &bench.key, &Limits::default())
            .await
            .unwrap()
    );
    assert_eq!(bench.snapshot().await.pieces.len(), 0);
    assert_eq!(bench.visible().await, Model::new());
}

#[tokio::test]
async fn the_runner_flushes_what_is_due_and_compacts_what_is_many() {
    let bench = Bench::new().await;
    let (meters, stop) = (Meters::default(), CancellationToken::new());
    let upkeep = Upkeep::new(settings(), bench.stores.clone(), meters.clone(), stop.clone());
    for piece in 0..4 {
        bench.put(&many(piece * 10, 10, LAST_DAY_OF_2023), false).await;
        upkeep.flush_due().await.unwrap();
        assert_eq!(meters.upkeep.flushes.get(), piece as u64, "too young");
        assert_eq!(meters.store.tail_rows.get(), 10);
        bench.pass(Duration::from_mins(1));
        upkeep.flush_due().await.unwrap();
        assert_eq!(meters.upkeep.flushes.get(), piece as u64 + 1);
    }
    let before = bench.visible().await;
    let mut settled = SettledPartitions::default();
    upkeep.compact_due(&mut settled).await.unwrap();
    assert_eq!(
        (
            meters.upkeep.compactions.get(),
            bench.snapshot().await.pieces.len()
        ),
        (1, 1)
    );
    assert_eq!(bench.visible().await, before);

    let runtime = tokio::runtime::Handle::current();
    let running = Upkeep::start(settings(), bench.stores.clone(), meters, stop.clone(), &runtime);
    stop.cancel();
    running.await.unwrap();
}

#[tokio::test]
async fn the_runner_makes_one_object_of_a_year_that_is_over_once_nothing_comes() {
    let bench = Bench::new().await;
    let (meters, stop) = (Meters::default(), CancellationToken::new());
    let upkeep = Upkeep::new(settings(), bench.stores.clone(), meters, stop);
    // Three of one year, too few for compaction, and one of the next.
    for (number, start) in [(0, 0), (1, 100), (2, 200), (3, 86_400)] {
        let rows = many(number * 100, 100, LAST_DAY_OF_2023 + start * SECOND);
        bench.put(&rows, true).await;
    }
    let before = bench.visible().await;
    let mut settled = SettledPartitions::default();
    let mut objects = Vec::new();
    for _ in 0..3 {
        upkeep.compact_due(&mut settled).await.unwrap();
        objects.push(bench.snapshot().await.pieces.len());
        bench.pass(Duration::from_secs(5));
    }
    assert_eq!(objects, [4, 2, 2]);
    assert_eq!(bench.visible().await, before);
}

#[tokio::test]
async fn a_year_that_ends_while_the_runner_runs_becomes_one_object_too() {
    let bench = Bench::new().await;
    let noon = Duration::from_hours(12);
    bench
        .clock
        .set(Instant::from_micros(LAST_DAY_OF_2023).after(noon));
    let (meters, stop) = (Meters::default(), CancellationToken::new());
    let upkeep = Upkeep::new(settings(), bench.stores.clone(), meters, stop);
    // Three of the year that goes on, too few for compaction, and one of the next.
    for (number, start) in [(0, 0), (1, 100), (2, 200), (3, 86_400)] {
        let rows = many(number * 100, 100, LAST_DAY_OF_2023 + start * SECOND);
        bench.put(&rows, true).await;
    }
    let mut settled = SettledPartitions::default();
    let mut objects = Vec::new();
    for pause in [
        Duration::from_secs(5),
        Duration::from_secs(5),
        noon,
        Duration::from_secs(5),
    ] {
        bench.pass(pause);
        upkeep.compact_due(&mut settled).await.unwrap();
        objects.push(bench.snapshot().await.pieces.len());
    }
    assert_eq!(objects, [4, 4, 2, 2], "nothing came when the year was over");
}

#[tokio::test]
async fn objects_whose_rows_come_by_turns_become_one_in_order() {
    let bench = Bench::new().await;
    let mut expected = Model::new();
    // More rows than one batch of a reader has; of the last object, whose rows all lie apart, few.
    for (object, (count, apart)) in [(9_000, 1), (9_000, 1), (9_000, 2), (300, 60), (9_000, 1)]
        .into_iter()
        .enumerate()
    {
        let rows: Vec<_> = (0..count)
            .map(|row| {
                let start = LAST_DAY_OF_2023 + row * apart * SECOND + (object as i64 % 3) * SECOND / 7;
                let start = start.min(LAST_DAY_OF_2023 + DAY - 1);
                (record(object as u128 * 100_000 + row as u128), start, row as f64)
            })
            .collect();
        expected.extend(rows.iter().map(|(id, start, value)| (*id, (*start, *value))));
        bench.put(&rows, true).await;
    }
    bench.delete(&[record(17), record(300_005)]).await;
    expected.retain(|id, _| ![record(17), record(300_005)].contains(id));
    // Rows that are not in order would be refused by what writes them.
    assert!(
        compact(&bench.stores, &bench.key, &Limits::default())
            .await
            .unwrap()
    );
    let snapshot = bench.snapshot().await;
    assert_eq!(snapshot.pieces.len(), 1);
    assert_eq!(bench.visible().await, expected);
}
