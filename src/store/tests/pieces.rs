//! Pieces come back as they were written.

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use futures::TryStreamExt as _;
use parquet::arrow::ParquetRecordBatchStreamBuilder;
use parquet::file::metadata::RowGroupMetaData;

use super::super::arrange::{present_columns, sort_rows, with_columns, without_null_columns};
use super::super::files::PieceFiles;
use super::super::outline::ObjectPlace;
use super::super::piece::{PieceWriter, write_batch};
use super::super::{StoreError, tail};
use super::*;
use crate::catalog::records::NewPlace;
use crate::model::ids::SystemIds;

pub(super) async fn read_back(files: &PieceFiles, piece: &NewPiece) -> Result<RecordBatch, StoreError> {
    let NewPlace::Object { path, footer } = &piece.place else {
        panic!("a tail piece")
    };
    let place = ObjectPlace::new(path, piece.bytes, *footer);
    let file = files.open(&place).await?;
    let stream =
        ParquetRecordBatchStreamBuilder::new_with_metadata(files.reader(&place), file.parquet().clone());
    let stream = stream
        .build()
        .map_err(|error| StoreError::reading(path, &error))?;
    let batches: Vec<RecordBatch> = stream
        .try_collect()
        .await
        .map_err(|error| StoreError::reading(path, &error))?;
    Ok(concat_batches(file.schema(), &batches).unwrap())
}

#[test]
fn rows_are_sorted_by_start_end_and_id() {
    let (first, second) = (RecordId(Uuid::from_u128(1)), RecordId(Uuid::from_u128(2)));
    let sorted = sort_rows(&rows(&[(second, 5, 1.0), (second, 9, 2.0), (first, 5, 3.0)])).unwrap();
    assert_eq!(
        sorted,
        rows(&[(first, 5, 3.0), (second, 5, 1.0), (second, 9, 2.0)])
    );
}

#[test]
fn a_blob_of_the_tail_holds_what_was_put_in() {
    let batch = many(100, NEW_YEAR_2024);
    let (blob, checksum) = tail::encode(&batch).unwrap();
    let decoded = tail::decode(&blob, checksum).unwrap();
    assert_eq!(decoded, without_null_columns(&batch).unwrap());
    assert_eq!(decoded.column_by_name("extras"), None);
    assert_eq!(with_columns(&decoded, &schema()).unwrap(), batch);
}

#[tokio::test]
async fn an_object_holds_what_was_put_in_and_says_whose_it_is() {
    let bench = Bench::new().await;
    let person = person();
    let batch = many(300_000, NEW_YEAR_2024);
    let pieces = write_batch(&bench.objects, &SystemIds::default(), target(person), &batch)
        .await
        .unwrap();
    assert_eq!(pieces.len(), 1);
    let files = PieceFiles::new(bench.objects.clone(), 1 << 20);
    assert_eq!(
        read_back(&files, &pieces[0]).await.unwrap(),
        without_null_columns(&batch).unwrap()
    );

    let NewPlace::Object { path, footer } = &pieces[0].place else {
        panic!("a tail piece")
    };
    assert_eq!(
        *path,
        format!("data/{person}/HeartRate/2024/{}.parquet", pieces[0].id)
    );
    let file = files
        .open(&ObjectPlace::new(path, pieces[0].bytes, *footer))
        .await
        .unwrap();
    assert_eq!(file.metadata().num_row_groups(), 3);
    assert_eq!(file.fact("almanac.person"), Some(&*person.to_string()));
    assert_eq!(file.fact("almanac.data_type"), Some("HeartRate"));
    assert_eq!(file.fact("almanac.piece"), Some(&*pieces[0].id.to_string()));
    assert_eq!(file.fact("almanac.person "), None);
    let content = bench.objects.get(path).await.unwrap();
    assert_eq!(
        (content.len() as i64, crc32fast::hash(&content)),
        (pieces[0].bytes, pieces[0].checksum)
    );
}

#[tokio::test]
async fn row_groups_of_long_rows_are_small() {
    let bench = Bench::new().await;
    // Usual rows first, as many as fill a row group and some more; then those with a text of 64 KiB each.
    let usual = many(140_000, NEW_YEAR_2024);
    let long = many(300, NEW_YEAR_2024 + 200_000 * SECOND);
    let mut columns = long.columns().to_vec();
    columns[5] = Arc::new(StringArray::from(vec!["route ".repeat(10_923); 300]));
    let long = RecordBatch::try_new(schema(), columns).unwrap();
    let ids = SystemIds::default();
    let mut writer = PieceWriter::new(&bench.objects, &ids, target(person()), schema());
    for rows in [&usual, &long] {
        writer.push(rows).await.unwrap();
    }
    let pieces = writer.finish().await.unwrap();

    let files = PieceFiles::new(bench.objects.clone(), 1 << 20);
    let all = concat_batches(&schema(), [&usual, &long]).unwrap();
    assert_eq!(read_back(&files, &pieces[0]).await.unwrap(), all);
    let NewPlace::Object { path, footer } = &pieces[0].place else {
        panic!("a tail piece")
    };
    let place = ObjectPlace::new(path, pieces[0].bytes, *footer);
    let file = files.open(&place).await.unwrap();
    let groups = file.metadata().row_groups().iter();
    let groups: Vec<i64> = groups.map(RowGroupMetaData::num_rows).collect();
    assert_eq!(groups[0], 131_072);
    // The second has the other usual rows, and long ones as long as rows are short on average.
    let of_long_rows = &groups[2..];
    assert!(
        of_long_rows.len() > 1 && of_long_rows.iter().all(|rows| *rows <= 64),
        "{groups:?}"
    );
}

#[tokio::test]
async fn rows_of_two_years_become_two_objects() {
    let bench = Bench::new().await;
    let batch = many(10, NEW_YEAR_2024 - 4 * SECOND);
    let pieces = write_batch(&bench.objects, &SystemIds::default(), target(person()), &batch)
        .await
        .unwrap();
    assert_eq!(pieces.iter().map(|piece| piece.rows).collect::<Vec<_>>(), [4, 6]);
    assert_eq!(pieces[0].bounds.max_start.micros(), NEW_YEAR_2024 - SECOND);
    assert_eq!(pieces[1].bounds.min_start.micros(), NEW_YEAR_2024);
    let paths: Vec<bool> = pieces
        .iter()
        .zip(["/2023/", "/2024/"])
        .map(|(piece, year)| matches!(&piece.place, NewPlace::Object { path, .. } if path.contains(year)))
        .collect();
    assert_eq!(paths, [true, true]);
}

#[tokio::test]
async fn rows_that_are_not_in_order_are_refused() {
    let bench = Bench::new().await;
    let ids = SystemIds::default();
    let mut writer = PieceWriter::new(&bench.objects, &ids, target(person()), schema());
    writer.push(&many(5, NEW_YEAR_2024)).await.unwrap();
    assert!(matches!(
        writer.push(&many(5, NEW_YEAR_2024)).await,
        Err(StoreError::Rows { .. })
    ));
}

#[test]
fn a_column_that_one_of_several_batches_has_is_present() {
    let without = many(2, NEW_YEAR_2024);
    let mut columns = without.columns().to_vec();
    columns[5] = Arc::new(StringArray::from(vec![None, Some("{}")]));
    let with = RecordBatch::try_new(schema(), columns).unwrap();
    assert_eq!(present_columns([&without, &with]), schema());
    assert_eq!(present_columns([&without]).fields().len(), 5);
}
