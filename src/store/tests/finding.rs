//! The search for rows with given ids agrees with a plain map.

use std::collections::HashMap;

use arrow::array::{AsArray as _, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::Float64Type;
use proptest::prelude::*;

use super::super::arrange::without_null_columns;
use super::super::files::{PieceFiles, footer_of};
use super::super::find::Finder;
use super::super::piece::write_batch;
use super::super::snapshot::Snapshots;
use super::super::{StoreError, tail};
use super::pieces::read_back;
use super::*;
use crate::catalog::records::NewPlace;
use crate::model::ids::SystemIds;

impl Bench {
    /// With that many rows of one person, which are one object.
    async fn with_rows(count: usize) -> (Self, PersonId, RecordBatch) {
        let bench = Self::new().await;
        let person = person();
        let batch = many(count, NEW_YEAR_2024);
        let pieces = write_batch(&bench.objects, &SystemIds::default(), target(person), &batch)
            .await
            .unwrap();
        assert_eq!(pieces.len(), 1, "all are of one year");
        bench.commit(change(person, pieces)).await;
        (bench, person, batch)
    }
}

fn finder(bench: &Bench) -> Finder {
    finder_with(bench, 1 << 22)
}

fn finder_with(bench: &Bench, memory: u64) -> Finder {
    Finder::new(PieceFiles::new(bench.objects.clone(), 1 << 20), memory)
}

/// The values of the rows found, by id.
async fn found(
    bench: &Bench,
    person: PersonId,
    ids: &[RecordId],
) -> Result<HashMap<RecordId, f64>, StoreError> {
    found_by(&finder(bench), bench, person, ids).await
}

async fn found_by(
    finder: &Finder,
    bench: &Bench,
    person: PersonId,
    ids: &[RecordId],
) -> Result<HashMap<RecordId, f64>, StoreError> {
    let snapshot = Snapshots::new(bench.catalog.clone(), 1 << 20)
        .get(person, &[heart_rate()])
        .await?
        .remove(0);
    let rows = finder.live_rows_of(&snapshot, ids).await?;
    let mut values = HashMap::new();
    for part in rows {
        assert_eq!(ids_of(&part.rows), part.ids);
        let column = part.rows.column_by_name("value").unwrap();
        for (id, value) in part
            .ids
            .into_iter()
            .zip(column.as_primitive::<Float64Type>().values())
        {
            assert_eq!(values.insert(id, *value), None, "a record has one live row");
        }
    }
    Ok(values)
}

fn known_id(number: u8) -> RecordId {
    RecordId(Uuid::new_v5(&Uuid::NAMESPACE_OID, &[number]))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// After any sequence of puts, replacements and deletions, in the tail and in objects, the search finds
    /// what a map would hold.
    #[test]
    fn the_search_agrees_with_a_map(
        steps in prop::collection::vec(
            (prop::collection::vec((0_u8..40, 0_u8..4), 1..12), any::<bool>()), 1..10,
        )
    ) {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(async {
                let bench = Bench::new().await;
                let person = person();
                let mut live: HashMap<RecordId, (PieceId, f64)> = HashMap::new();
                for (version, (records, small)) in steps.iter().enumerate() {
                    // An even action puts the record, an odd one deletes it; the last of a batch counts.
                    let actions: HashMap<RecordId, u8> = records
                        .iter()
                        .map(|(number, action)| (known_id(*number), *action))
                        .collect();
                    let dead: Vec<_> = actions
                        .keys()
                        .filter_map(|id| live.remove(id).map(|(piece, _)| (piece, *id)))
                        .collect();
                    let put: Vec<_> = actions
                        .iter()
                        .filter(|(_, action)| *action % 2 == 0)
                        .map(|(id, _)| (*id, NEW_YEAR_2024, version as f64))
                        .collect();
                    let pieces = if put.is_empty() {
                        Vec::new()
                    } else if *small {
                        vec![tail::piece(piece_id(), &rows(&put), 1).unwrap()]
                    } else {
                        let ids = SystemIds::default();
                        write_batch(&bench.objects, &ids, target(person), &rows(&put))
                            .await
                            .unwrap()
                    };
                    live.extend(put.iter().map(|(id, _, value)| (*id, (pieces[0].id, *value))));
                    let records_delta = put.len() as i64 - dead.len() as i64;
                    bench
                        .commit(PartitionChange {
                            dead,
                            records_delta,
                            expected: Some(bench.stamp(person).await),
                            ..change(person, pieces)
                        })
                        .await;
                }
                let ids: Vec<_> = (0..50).map(known_id).collect();
                let expected: HashMap<RecordId, f64> =
                    live.into_iter().map(|(id, (_, value))| (id, value)).collect();
                for memory in [0, 1 << 22] {
                    let finder = finder_with(&bench, memory);
                    assert_eq!(found_by(&finder, &bench, person, &ids).await.unwrap(), expected);
                }
            });
    }
}

#[tokio::test]
async fn rows_are_found_in_every_row_group() {
    let (bench, person, batch) = Bench::with_rows(300_000).await;
    let all = ids_of(&batch);
    let wanted: Vec<_> = [0, 1, 131_071, 131_072, 299_999]
        .into_iter()
        .map(|row| all[row])
        .chain([RecordId(Uuid::new_v4())])
        .collect();
    let found = found(&bench, person, &wanted).await.unwrap();
    let values = batch
        .column_by_name("value")
        .unwrap()
        .as_primitive::<Float64Type>();
    assert_eq!(found.len(), 5);
    for row in [0, 1, 131_071, 131_072, 299_999] {
        assert!((found[&all[row]] - values.value(row)).abs() < f64::EPSILON);
    }
}

#[tokio::test]
async fn found_rows_are_what_was_stored_in_every_column() {
    let (bench, person, batch) = Bench::with_rows(20_000).await;
    let snapshots = Snapshots::new(bench.catalog.clone(), 1 << 20);
    let snapshot = snapshots.get(person, &[heart_rate()]).await.unwrap().remove(0);
    let finder = finder(&bench);
    // Those that follow each other, some here and there, and the same once more, when their ids are known.
    for (from, step) in [(5_000, 1), (17, 191), (5_000, 1)] {
        let wanted: Vec<usize> = (from..20_000).step_by(step).take(4_000).collect();
        let numbers = UInt32Array::from_iter_values(wanted.iter().map(|row| *row as u32));
        let expected = take_record_batch(&batch, &numbers).unwrap();
        let found = finder.live_rows_of(&snapshot, &ids_of(&expected)).await.unwrap();
        let [part] = found.as_slice() else {
            panic!("they are in one piece: {found:?}");
        };
        assert_eq!(part.rows, without_null_columns(&expected).unwrap());
    }
}

#[tokio::test]
async fn ids_that_are_not_there_hide_none_that_are() {
    let (bench, person, batch) = Bench::with_rows(50_000).await;
    let snapshots = Snapshots::new(bench.catalog.clone(), 1 << 20);
    let snapshot = snapshots.get(person, &[heart_rate()]).await.unwrap().remove(0);
    // The filter takes hundreds of so many for ids of its own, and the table some of these.
    let spread = |number: u128| number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    let strangers: Vec<RecordId> = (1..=1_000_000)
        .map(|number| RecordId(Uuid::from_u128(spread(number))))
        .collect();
    for memory in [0, 1 << 22] {
        let finder = finder_with(&bench, memory);
        assert!(
            finder
                .live_rows_of(&snapshot, &strangers)
                .await
                .unwrap()
                .is_empty()
        );
        for some in ids_of(&batch).chunks(7_000) {
            let mixed: Vec<RecordId> = some.iter().chain(&strangers[..1_000]).copied().collect();
            let found = finder.live_rows_of(&snapshot, &mixed).await.unwrap();
            let found: Vec<RecordId> = found.into_iter().flat_map(|part| part.ids).collect();
            assert_eq!(found, some);
        }
        for few in ids_of(&batch).chunks(2).step_by(5_000) {
            let found = finder.live_rows_of(&snapshot, few).await.unwrap();
            let found: Vec<RecordId> = found.into_iter().flat_map(|part| part.ids).collect();
            assert_eq!(found, few);
        }
    }
}

/// An object as it was written before objects carried an index of their ids.
#[tokio::test]
async fn rows_of_an_object_without_index_are_found_by_its_bloom_filters() {
    const OBJECT: &[u8] = include_bytes!("without_index.parquet");
    let bench = Bench::new().await;
    let person = person();
    let mut piece = write_batch(
        &bench.objects,
        &SystemIds::default(),
        target(person),
        &many(1, NEW_YEAR_2024),
    )
    .await
    .unwrap()
    .remove(0);
    let NewPlace::Object { path, .. } = &piece.place else {
        panic!("a tail piece")
    };
    std::fs::write(bench.directory.path().join("objects").join(path), OBJECT).unwrap();
    let bytes = OBJECT.len() as u64;
    let footer = footer_of(&bench.objects, path, bytes).await.unwrap();
    let path = path.clone();
    piece.place = NewPlace::Object { path, footer };
    piece.bytes = bytes as i64;
    piece.rows = 600;
    let files = PieceFiles::new(bench.objects.clone(), 1 << 20);
    let ids = ids_of(&read_back(&files, &piece).await.unwrap());
    bench.commit(change(person, vec![piece])).await;
    assert_eq!(ids.len(), 600);
    let strangers = (0..50_000).map(|_| RecordId(Uuid::new_v4()));
    let asked: Vec<RecordId> = ids.iter().copied().chain(strangers).collect();
    let values = found(&bench, person, &asked).await.unwrap();
    assert_eq!(values.len(), 600);
    for (row, id) in ids.iter().enumerate() {
        assert!((values[id] - (60 + row % 41) as f64).abs() < f64::EPSILON);
    }
    assert_eq!(found(&bench, person, &ids[7..8]).await.unwrap().len(), 1);
}

#[tokio::test]
async fn rows_are_found_in_every_section_however_filters_are_read() {
    let (bench, person, batch) = Bench::with_rows(1_300_000).await;
    let snapshots = Snapshots::new(bench.catalog.clone(), 1 << 20);
    let snapshot = snapshots.get(person, &[heart_rate()]).await.unwrap().remove(0);
    let ids = ids_of(&batch);
    // The object has two sections, whose filters have 128 and 31 blocks that are read as a whole. With no
    // room in memory, as many ids are asked block by block, together or not, and more of them part by part;
    // with room for less than one object none is kept either.
    for memory in [0, 1 << 20, 1 << 22] {
        let finder = finder_with(&bench, memory);
        for count in [1, 12, 20, 30, 31, 100, 127, 128, 5_000] {
            let wanted = (0..count).map(|number| ids[number * 1_299_999 / count.max(2)]);
            let mut wanted: Vec<RecordId> = wanted.collect();
            let strangers = (0..count).map(|_| RecordId(Uuid::new_v4()));
            let asked: Vec<RecordId> = wanted.iter().copied().chain(strangers).collect();
            let found = finder.live_rows_of(&snapshot, &asked).await.unwrap();
            let mut found: Vec<RecordId> = found.into_iter().flat_map(|part| part.ids).collect();
            wanted.sort_unstable();
            found.sort_unstable();
            assert_eq!(found, wanted, "{count} with {memory} bytes");
        }
    }
}
