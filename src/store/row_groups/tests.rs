//! Row groups beside the writer of Parquet's library: the same files, and the same rows back.

use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, DictionaryArray, Float64Array, Int32Array, Int64Array, ListArray, RecordBatch,
    StringArray, StructArray,
};
use arrow::buffer::NullBuffer;
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Fields, Int32Type, Schema};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use proptest::prelude::*;

use super::*;
use crate::store::encoding::{PAGE_ROWS, ROW_GROUP_ROWS};

/// What a column of texts holds in one batch.
#[derive(Clone, Debug)]
enum Texts {
    One(String),
    /// One after the other, some of them missing.
    Several(Vec<Option<String>>),
}

impl Texts {
    fn rows(&self, rows: usize) -> ArrayRef {
        let (keys, words): (Vec<_>, Vec<_>) = match self {
            Self::One(word) => (vec![Some(0); rows], vec![word.clone()]),
            Self::Several(words) => {
                let key = |row: usize| {
                    let word = row % words.len();
                    words[word].as_ref().map(|_| word as i32)
                };
                let words = words.iter().map(|word| word.clone().unwrap_or_default());
                ((0..rows).map(key).collect(), words.collect())
            }
        };
        let words = Arc::new(StringArray::from(words));
        Arc::new(DictionaryArray::<Int32Type>::try_new(Int32Array::from(keys), words).unwrap())
    }
}

fn texts() -> impl Strategy<Value = Texts> {
    let word = "[a-zü]{0,3}|[a-c]{60,70}";
    prop_oneof![
        3 => prop::sample::select(vec!["watch", "phone"]).prop_map(|word| Texts::One(word.to_owned())),
        1 => word.prop_map(Texts::One),
        2 => prop::collection::vec(prop::option::of(word), 1..4).prop_map(Texts::Several),
    ]
}

/// A batch with texts beside numbers, in a structure, and in a structure that some rows do not have.
#[derive(Clone, Debug)]
struct Rows {
    count: usize,
    texts: [Texts; 4],
    is_missing: bool,
}

fn words() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

fn members() -> Fields {
    let list = Field::new(
        "sizes",
        DataType::List(Arc::new(Field::new_list_field(DataType::Int64, true))),
        true,
    );
    vec![
        Field::new("name", words(), true),
        list,
        Field::new("count", DataType::Int64, true),
        Field::new("model", words(), true),
    ]
    .into()
}

impl Rows {
    fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![
            Field::new("value", DataType::Float64, false),
            Field::new("unit", words(), false),
            Field::new("place", words(), true),
            Field::new("device", DataType::Struct(members()), true),
        ]))
    }

    fn batch(&self) -> RecordBatch {
        let rows = self.count;
        let value = Float64Array::from_iter_values((0..rows).map(|row| (row % 7) as f64));
        let unit = match &self.texts[0] {
            Texts::Several(words) => Texts::Several(
                words
                    .iter()
                    .map(|word| word.clone().or(Some("none".to_owned())))
                    .collect(),
            ),
            Texts::One(_) => self.texts[0].clone(),
        };
        let sizes = (0..rows).map(|row| (row % 3 > 0).then(|| vec![Some(row as i64); row % 3]));
        let sizes = ListArray::from_iter_primitive::<arrow::datatypes::Int64Type, _, _>(sizes);
        let columns: Vec<ArrayRef> = vec![
            self.texts[1].rows(rows),
            Arc::new(sizes),
            Arc::new(Int64Array::from_iter_values(0..rows as i64)),
            self.texts[2].rows(rows),
        ];
        let there = self
            .is_missing
            .then(|| (0..rows).map(|row| row % 5 > 0).collect::<NullBuffer>());
        let device = StructArray::new(members(), columns, there);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(value),
            unit.rows(rows),
            self.texts[3].rows(rows),
            Arc::new(device),
        ];
        RecordBatch::try_new(Self::schema(), columns).unwrap()
    }
}

fn rows(lengths: Vec<usize>) -> impl Strategy<Value = Rows> {
    let texts = [texts(), texts(), texts(), texts()];
    (prop::sample::select(lengths), texts, any::<bool>()).prop_map(|(count, texts, is_missing)| Rows {
        count,
        texts,
        is_missing,
    })
}

fn properties() -> WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_write_batch_size(PAGE_ROWS)
        .set_statistics_enabled(EnabledStatistics::Chunk)
}

fn ours(batches: &[RecordBatch], properties: WriterProperties) -> Vec<u8> {
    let mut groups = RowGroups::new(&Rows::schema(), properties).unwrap();
    for batch in batches {
        groups.write(batch).unwrap();
    }
    groups.finish().unwrap();
    std::mem::take(groups.bytes())
}

fn of_parquet(batches: &[RecordBatch], properties: WriterProperties) -> Vec<u8> {
    let mut writer = ArrowWriter::try_new(Vec::new(), Rows::schema(), Some(properties)).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.finish().unwrap();
    std::mem::take(writer.inner_mut())
}

/// The texts themselves, whatever numbers stand for them.
fn plain(batch: &RecordBatch) -> Vec<ArrayRef> {
    let unpacked = |column: &ArrayRef, to: &DataType| arrow::compute::cast(column, to).unwrap();
    let device = batch.column(3).as_any().downcast_ref::<StructArray>().unwrap();
    let (_, members, nulls) = device.clone().into_parts();
    let members = members.iter().map(|member| match member.data_type() {
        DataType::Dictionary(..) => unpacked(member, &DataType::Utf8),
        _ => Arc::clone(member),
    });
    // A member of what is missing is not there, whatever stands in its place.
    let members = members.map(|member| {
        let hidden = nulls
            .as_ref()
            .map(|nulls| arrow::array::BooleanArray::new(!nulls.inner(), None));
        hidden.map_or_else(
            || Arc::clone(&member),
            |hidden| arrow::compute::nullif(&member, &hidden).unwrap(),
        )
    });
    let columns = [0, 1, 2].map(|column| match batch.column(column).data_type() {
        DataType::Dictionary(..) => unpacked(batch.column(column), &DataType::Utf8),
        _ => Arc::clone(batch.column(column)),
    });
    columns.into_iter().chain(members).collect()
}

fn read(file: Vec<u8>) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(file)).unwrap();
    let batches: Vec<_> = reader.build().unwrap().map(Result::unwrap).collect();
    concat_batches(&Rows::schema(), &batches).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// To the byte: pages, dictionaries, statistics and the footer.
    #[test]
    fn a_file_is_what_the_writer_of_parquet_makes(
        batches in prop_oneof![
            prop::collection::vec(rows(vec![1, 5, 7, 8, 9, 4_096, 10_000]), 1),
            prop::collection::vec(rows(vec![PAGE_ROWS, 2 * PAGE_ROWS]), 1..5),
        ]
    ) {
        let batches: Vec<_> = batches.iter().map(Rows::batch).collect();
        let properties = || properties().set_compression(Compression::UNCOMPRESSED).build();
        prop_assert!(ours(&batches, properties()) == of_parquet(&batches, properties()));
    }

    /// However rows are cut into batches, and where other columns are compressed.
    #[test]
    fn rows_come_back(batches in prop::collection::vec(rows(vec![1, 13, 3_000, 9_000, 70_000]), 1..5)) {
        let batches: Vec<_> = batches.iter().map(Rows::batch).collect();
        let level = ZstdLevel::try_new(1).unwrap();
        let file = ours(&batches, properties().set_compression(Compression::ZSTD(level)).build());
        let sent = concat_batches(&Rows::schema(), &batches).unwrap();
        prop_assert!(plain(&read(file)) == plain(&sent));
    }
}

#[test]
fn a_word_fills_a_row_group() {
    let rows = ROW_GROUP_ROWS + 1;
    let word = || Texts::One("watch".to_owned());
    let batch = Rows {
        count: rows,
        texts: [word(), word(), word(), word()],
        is_missing: false,
    }
    .batch();
    let properties = || properties().set_compression(Compression::UNCOMPRESSED).build();
    let words: Vec<_> = batch.columns().iter().flat_map(constant_text::words).collect();
    let word = Some("watch");
    assert_eq!(words, [None, word, word, word, None, None, word]);
    let batches = [batch];
    assert!(ours(&batches, properties()) == of_parquet(&batches, properties()));
}

#[test]
fn a_word_that_stands_twice_in_a_dictionary_is_one() {
    let column = |words: [Option<&str>; 2]| {
        let words = words.map(|word| word.map(str::to_owned));
        Texts::Several(words.to_vec()).rows(10)
    };
    let twice = column([Some("watch"), Some("watch")]);
    assert_eq!(constant_text::words(&twice), [Some("watch")]);
    for several in [[Some("watch"), Some("phone")], [Some("watch"), None]] {
        assert_eq!(constant_text::words(&column(several)), [None]);
    }
}

/// Random numbers, beside numbers that repeat.
#[test]
fn what_compression_hardly_shrinks_is_left_as_it_is_from_the_second_row_group_on() {
    let fields = ["random", "repeated"].map(|name| Field::new(name, DataType::Int64, false));
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let random = (0..3_000_u64).map(|row| row.wrapping_mul(0x9e37_79b9_7f4a_7c15).cast_signed());
    let repeated = (0..3_000).map(|row| row % 7);
    let columns: [ArrayRef; 2] = [
        Arc::new(Int64Array::from_iter_values(random)),
        Arc::new(Int64Array::from_iter_values(repeated)),
    ];
    let batch = RecordBatch::try_new(schema.clone(), columns.to_vec()).unwrap();
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(1_000))
        .set_dictionary_enabled(false)
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).unwrap()));
    let mut groups = RowGroups::new(&schema, properties.build()).unwrap();
    groups.write(&batch).unwrap();
    groups.finish().unwrap();
    let file = Bytes::from(std::mem::take(groups.bytes()));

    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let is_compressed = |column: &ColumnChunkMetaData| column.compression() != Compression::UNCOMPRESSED;
    let row_groups = reader.metadata().row_groups().iter();
    let row_groups = row_groups.map(|group| group.columns().iter().map(is_compressed).collect());
    let compressed: Vec<Vec<bool>> = row_groups.collect();
    assert_eq!(compressed, [[true, true], [false, true], [false, true]]);
    let batches: Vec<_> = reader.build().unwrap().map(Result::unwrap).collect();
    assert_eq!(concat_batches(&schema, &batches).unwrap(), batch);
}
