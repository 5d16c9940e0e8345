//! What is kept of an object is what the object holds, whichever part of it is asked for.

use arrow::array::{AsArray as _, StructArray};
use arrow::datatypes::{Float64Type, TimestampMicrosecondType};
use proptest::prelude::*;

use super::super::arrange::{KeyColumns, present_columns, sort_rows};
use super::super::decoded::{RowDecoder, can_be_kept, stretches};
use super::super::files::{PieceFile, PieceFiles};
use super::super::outline::ObjectPlace;
use super::super::piece::write_batch;
use super::*;
use crate::catalog::records::NewPlace;
use crate::model::ids::SystemIds;

const EVERYTHING: usize = 100;

/// Rows of which some last long, with starts that several share.
fn lasting(count: usize, seed: u64) -> RecordBatch {
    let mut state = seed | 1;
    let mut next = |below: i64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as i64) % below
    };
    let starts: Vec<i64> = (0..count).map(|_| next(count as i64 / 2)).collect();
    let rows: Vec<_> = starts
        .iter()
        .enumerate()
        .map(|(row, start)| (RecordId(Uuid::new_v4()), *start, row as f64))
        .collect();
    let batch = super::rows(&rows);
    let ends = starts.iter().map(|start| match next(50) {
        0 => start + next(count as i64),
        1..20 => start + next(3),
        _ => *start,
    });
    let mut columns = batch.columns().to_vec();
    columns[2] = Arc::new(TimestampMicrosecondArray::from_iter_values(ends).with_timezone("UTC"));
    sort_rows(&RecordBatch::try_new(batch.schema(), columns).unwrap()).unwrap()
}

async fn written(bench: &Bench, batch: &RecordBatch) -> (RowDecoder, Arc<PieceFile>) {
    let piece = write_batch(&bench.objects, &SystemIds::default(), target(person()), batch)
        .await
        .unwrap()
        .remove(0);
    let NewPlace::Object { path, footer } = piece.place else {
        panic!("an object was written");
    };
    let decoded = RowDecoder::new(PieceFiles::new(bench.objects.clone(), 1 << 20), 8 << 20);
    let file = decoded
        .open(&ObjectPlace::new(&path, piece.bytes, footer))
        .await
        .unwrap();
    (decoded, file)
}

fn values(batch: &RecordBatch) -> Vec<f64> {
    let column = batch.column_by_name("value").unwrap();
    column.as_primitive::<Float64Type>().values().to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn the_stretches_hold_every_row_that_reaches_into_a_time(
        seed in any::<u64>(),
        count in 1_usize..40_000,
        times in prop::collection::vec((-10_i64..25_000, 0_i64..3_000), 1..12),
    ) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let bench = Bench::new().await;
            let batch = lasting(count, seed);
            let (decoded, file) = written(&bench, &batch).await;
            let stored = present_columns([&batch]);
            let keys = KeyColumns::of(&batch).unwrap();
            for (from, length) in times {
                let before = from + length;
                let reach = |row: &usize| keys.starts.value(*row) < before && keys.ends.value(*row) >= from;
                let all = values(&batch);
                let expected: Vec<f64> = (0..count).filter(reach).map(|row| all[row]).collect();
                let mut found = Vec::new();
                // The second time it is all kept.
                for _ in 0..2 {
                    found.clear();
                    for stretch in stretches(&file, from, before, EVERYTHING).unwrap() {
                        let rows = decoded.read(&file, stretch, &batch.schema()).await.unwrap();
                        prop_assert_eq!(&rows.schema().fields, &stored.fields);
                        let kept = KeyColumns::of(&rows).unwrap();
                        let reach =
                            |row: &usize| kept.starts.value(*row) < before && kept.ends.value(*row) >= from;
                        let all = values(&rows);
                        found.extend((0..rows.num_rows()).filter(reach).map(|row| all[row]));
                    }
                    prop_assert_eq!(&found, &expected);
                }
            }
            Ok(())
        })?;
    }
}

#[tokio::test]
async fn a_question_of_too_many_rows_is_for_other_readers() {
    let bench = Bench::new().await;
    let (_, file) = written(&bench, &many(30_000, NEW_YEAR_2024)).await;
    let of = |rows: i64, most| stretches(&file, NEW_YEAR_2024, NEW_YEAR_2024 + rows * SECOND, most);
    assert_eq!(of(8_000, 1).map(|found| found.len()), Some(1));
    assert_eq!(of(9_000, 1), None);
    assert_eq!(of(30_000, 4).map(|found| found.len()), Some(4));
    assert_eq!(of(0, 1).map(|found| found.len()), Some(0));
}

#[tokio::test]
async fn of_a_structure_only_the_members_are_decoded_that_are_wanted() {
    let bench = Bench::new().await;
    let batch = many(10, NEW_YEAR_2024);
    let members = ["first", "second", "third"].map(|name| Arc::new(Field::new(name, DataType::Utf8, true)));
    let texts = |text: &str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(
            (0..10).map(|row| format!("{text}{row}")),
        ))
    };
    let whole = StructArray::new(
        members.to_vec().into(),
        vec![texts("a"), texts("b"), texts("c")],
        None,
    );
    let about = |members: &[Arc<Field>]| Field::new("about", DataType::Struct(members.to_vec().into()), true);
    let mut fields = batch.schema().fields().to_vec();
    fields.push(Arc::new(about(&members)));
    let mut columns = batch.columns().to_vec();
    columns.push(Arc::new(whole.clone()));
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
    let (decoded, file) = written(&bench, &batch).await;
    let stretch = stretches(&file, i64::MIN, i64::MAX, 1).unwrap()[0];

    let some = |members: &[Arc<Field>]| Arc::new(Schema::new(vec![about(members)]));
    let [first, second, third] = members;
    let two = some(&[Arc::clone(&first), Arc::clone(&third)]);
    assert!(can_be_kept(&file, &two));
    for wanted in [two, some(&[first, second, Arc::clone(&third)])] {
        let rows = decoded.read(&file, stretch, &wanted).await.unwrap();
        assert_eq!(rows.schema(), wanted);
        let read = rows.column(0).as_struct();
        for field in read.fields() {
            assert_eq!(
                read.column_by_name(field.name()),
                whole.column_by_name(field.name())
            );
        }
    }
    let unknown = Arc::new(Field::new("fourth", DataType::Utf8, true));
    assert!(!can_be_kept(&file, &some(&[third, unknown])));
}

#[tokio::test]
async fn columns_that_changed_their_type_are_for_other_readers() {
    let bench = Bench::new().await;
    let batch = many(10, NEW_YEAR_2024);
    let (decoded, file) = written(&bench, &batch).await;
    let stored = present_columns([&batch]);
    assert!(can_be_kept(&file, &stored) && can_be_kept(&file, &batch.schema()));
    let other = Schema::new(vec![Field::new("value", DataType::Int64, true)]);
    assert!(!can_be_kept(&file, &other));
    let must = Schema::new(vec![Field::new("later", DataType::Int64, false)]);
    assert!(!can_be_kept(&file, &must));
    let whole = stretches(&file, i64::MIN, i64::MAX, 1).unwrap();
    let rows = decoded.read(&file, whole[0], &batch.schema()).await.unwrap();
    assert!(rows.column_by_name("extras").is_none(), "the object has none");
    let starts = rows.column_by_name("start_time").unwrap();
    assert_eq!(
        starts.as_primitive::<TimestampMicrosecondType>().value(1),
        NEW_YEAR_2024 + SECOND
    );
}
