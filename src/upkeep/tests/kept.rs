//! What is kept in memory of objects goes when others take their place, and what all rows of an object share
//! comes through.

use prometheus_client::registry::Registry;

use super::*;
use crate::model::meters::Meters;
use crate::store::decoded::{RowDecoder, stretches};

/// Bytes that caches hold, by kind.
fn held(registry: &Registry) -> BTreeMap<String, u64> {
    let mut told = String::new();
    prometheus_client::encoding::text::encode(&mut told, registry).unwrap();
    let told = told
        .lines()
        .filter_map(|line| line.strip_prefix("cache_bytes{kind=\""));
    told.map(|line| {
        let (kind, bytes) = line.split_once("\"} ").unwrap();
        (kind.to_owned(), bytes.parse().unwrap())
    })
    .collect()
}

#[tokio::test]
async fn nothing_is_kept_of_objects_in_whose_place_are_others() {
    let bench = Bench::new().await;
    let files = &bench.stores.files;
    let decoded = RowDecoder::new(files.clone(), 1 << 20);
    let mut registry = Registry::default();
    let meters = Meters::registered(&mut registry).caches;
    files.watched_by(&meters);
    bench.finder.watched_by(&meters);
    decoded.watched_by(&meters);

    for piece in 0..4 {
        let rows = many(piece * 10, 10, LAST_DAY_OF_2023 + piece as i64 * 10 * SECOND);
        bench.put(&rows, true).await;
    }
    let snapshot = bench.snapshot().await;
    let ids: Vec<RecordId> = (0..40).map(record).collect();
    let found = bench.finder.live_rows_of(&snapshot, &ids).await.unwrap();
    assert_eq!(found.iter().map(|part| part.ids.len()).sum::<usize>(), 40);
    for piece in &snapshot.pieces {
        let PieceContent::Object(place) = &piece.content else {
            panic!("objects were written");
        };
        let file = decoded.open(place).await.unwrap();
        let all = stretches(&file, i64::MIN, i64::MAX, 9).unwrap();
        decoded.read(&file, all[0], file.schema()).await.unwrap();
    }
    let before = held(&registry);
    for kind in ["footers", "outlines", "filters", "decoded"] {
        assert!(before[kind] > 0, "{before:?}");
    }

    assert!(
        compact(&bench.stores, &bench.key, &Limits::default())
            .await
            .unwrap()
    );
    let after = held(&registry);
    assert!(after.values().all(|bytes| *bytes == 0), "{after:?}");
    // Who still has the state of before finds it.
    let found = bench.finder.live_rows_of(&snapshot, &ids).await.unwrap();
    assert_eq!(found.iter().map(|part| part.ids.len()).sum::<usize>(), 40);
    assert_eq!(bench.visible().await.len(), 40);
}

#[tokio::test]
async fn what_all_rows_of_an_object_share_comes_through_a_merge() {
    let bench = Bench::new().await;
    // One note in all rows, another one, none, and several.
    let notes: [fn(usize) -> f64; 4] = [|_| 2.0, |_| 4.0, |_| 3.0, |row| row as f64];
    let mut expected = Model::new();
    for (piece, value) in (0_u128..).zip(notes) {
        let mut rows = many(piece * 10, 10, LAST_DAY_OF_2023 + piece as i64 * 5 * SECOND);
        for (number, row) in rows.iter_mut().enumerate() {
            row.2 = value(number);
        }
        expected.extend(rows.iter().map(|(id, start, value)| (*id, (*start, *value))));
        bench.put(&rows, true).await;
    }
    assert_eq!(bench.visible().await, expected);
    assert!(
        compact(&bench.stores, &bench.key, &Limits::default())
            .await
            .unwrap()
    );
    assert_eq!(bench.snapshot().await.pieces.len(), 1);
    assert_eq!(bench.visible().await, expected);
}
