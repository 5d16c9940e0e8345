//! Chooses how the columns of an object are encoded and compressed, by what is known of its rows beforehand.
//!
//! Knows values and what readers pay for them; writes nothing.

use ahash::{HashSet, HashSetExt as _};
use arrow::array::{Array as _, ArrayRef, AsArray as _, FixedSizeBinaryArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Float64Type, Int32Type, Int64Type, Schema, SchemaRef};
use parquet::arrow::ArrowSchemaConverter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;

use super::{Ahead, DATA_TYPE_KEY, LAYOUT_KEY, PAGE_ROWS, PERSON_KEY, PIECE_KEY, ROW_GROUP_ROWS, Target};
use crate::model::columns::{END, ID, START};
use crate::store::arrange::KeyColumns;
use crate::store::errors::StoreError;

/// A dictionary does not pay if more than one in this many of the first rows has a new value.
const FEW_DIFFERENT: usize = 4;
/// As many ids tell whether all are random. Of fewer nothing is concluded.
const TELLING_IDS: usize = 64;
/// The bytes of an id that tell: in an id by time, by its maker or by a count at least one of them hardly
/// changes from one row to the next.
const TELLING_BYTES: [usize; 4] = [0, 5, 10, 15];

pub(super) fn properties(
    target: &Target,
    piece: &str,
    schema: &SchemaRef,
    ahead: Ahead<'_>,
) -> Result<WriterProperties, StoreError> {
    let (Ahead::Some(sample) | Ahead::All(sample)) = ahead;
    let level = ZstdLevel::try_new(1).map_err(StoreError::rows)?;
    let mut builder = WriterProperties::builder()
        .set_created_by("almanac".to_owned())
        .set_compression(Compression::ZSTD(level))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_write_batch_size(PAGE_ROWS)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_key_value_metadata(Some(facts(target, piece)))
        .set_sorting_columns(Some(sorting_columns(schema)?));
    for name in [START, END] {
        // Pages are only ever chosen by time; for other columns the bounds of a row group are enough.
        let column = ColumnPath::from(name);
        builder =
            delta(builder, column.clone()).set_column_statistics_enabled(column, EnabledStatistics::Page);
    }
    // Ids need no Parquet bloom filter: their index says more, in less space.
    builder = plain(builder, ColumnPath::from(ID));
    if are_random(&KeyColumns::of(sample)?.ids) {
        builder = builder.set_column_compression(ColumnPath::from(ID), Compression::UNCOMPRESSED);
    }
    if let Ahead::All(rows) = ahead {
        builder = with_constants_as_they_are(builder, rows);
    }
    for field in schema.fields() {
        if [ID, START, END].contains(&field.name().as_str()) {
            continue;
        }
        if let Some(values) = sample.column_by_name(field.name()) {
            builder = encoded_by_values(builder, field, values);
        }
    }
    Ok(builder.build())
}

/// What a file says of the piece in it.
fn facts(target: &Target, piece: &str) -> Vec<KeyValue> {
    let facts = [
        (PERSON_KEY, target.person.to_string()),
        (DATA_TYPE_KEY, target.data_type.0.to_string()),
        (LAYOUT_KEY, target.layout_version.to_string()),
        (PIECE_KEY, piece.to_owned()),
    ];
    let entry = |(key, value): (&str, String)| KeyValue::new(key.to_owned(), value);
    facts.into_iter().map(entry).collect()
}

/// Chooses the encoding of a column by some of its values. Others than numbers and times keep the usual one.
fn encoded_by_values(
    builder: WriterPropertiesBuilder,
    field: &Field,
    values: &ArrayRef,
) -> WriterPropertiesBuilder {
    let column = ColumnPath::from(field.name().as_str());
    if let Some(floats) = values.as_primitive_opt::<Float64Type>() {
        if many_different(floats.values().iter().map(|value| value.to_bits())) {
            return split(builder, column);
        }
    } else if let Some(integers) = values.as_primitive_opt::<Int64Type>() {
        if many_different(integers.values().iter().map(|value| value.cast_unsigned())) {
            return delta(builder, column);
        }
    } else if matches!(field.data_type(), DataType::Timestamp(..)) {
        return delta(builder, column);
    }
    builder
}

/// Whether compression would find nothing in these ids.
fn are_random(ids: &FixedSizeBinaryArray) -> bool {
    let (ids, _) = ids.value_data().as_chunks::<16>();
    ids.get(..TELLING_IDS).is_some_and(|ids| {
        let differ = |place: &usize| many_different(ids.iter().map(|id| u64::from(id[*place])));
        TELLING_BYTES.iter().all(differ)
    })
}

/// One text in all rows is a few bytes, with nothing to compress. Setting up compression would take longer
/// than encoding them.
fn with_constants_as_they_are(
    mut builder: WriterPropertiesBuilder,
    rows: &RecordBatch,
) -> WriterPropertiesBuilder {
    let schema = rows.schema();
    let mut open: Vec<(Vec<String>, &ArrayRef)> = Vec::new();
    let named = schema.fields().iter().zip(rows.columns());
    open.extend(named.map(|(field, column)| (vec![field.name().clone()], column)));
    while let Some((path, column)) = open.pop() {
        if let Some(members) = column.as_struct_opt() {
            let named = members.fields().iter().zip(members.columns());
            open.extend(named.map(|(field, column)| {
                let path = path.iter().chain([field.name()]);
                (path.cloned().collect(), column)
            }));
        } else if has_one_distinct_key(column) {
            builder = builder.set_column_compression(ColumnPath::new(path), Compression::UNCOMPRESSED);
        }
    }
    builder
}

/// Whether all rows of a dictionary column that have a value refer to the same one.
fn has_one_distinct_key(column: &ArrayRef) -> bool {
    let Some(words) = column.as_dictionary_opt::<Int32Type>() else {
        return false;
    };
    let keys = words.keys();
    if keys.null_count() == 0 {
        return keys.values().windows(2).all(|pair| pair[0] == pair[1]);
    }
    let mut set = keys.iter().flatten();
    let first = set.next();
    set.all(|key| Some(key) == first)
}

fn delta(builder: WriterPropertiesBuilder, column: ColumnPath) -> WriterPropertiesBuilder {
    builder
        .set_column_dictionary_enabled(column.clone(), false)
        .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED)
}

fn split(builder: WriterPropertiesBuilder, column: ColumnPath) -> WriterPropertiesBuilder {
    builder
        .set_column_dictionary_enabled(column.clone(), false)
        .set_column_encoding(column, Encoding::BYTE_STREAM_SPLIT)
}

fn plain(builder: WriterPropertiesBuilder, column: ColumnPath) -> WriterPropertiesBuilder {
    builder
        .set_column_dictionary_enabled(column.clone(), false)
        .set_column_encoding(column, Encoding::PLAIN)
}

fn many_different(values: impl ExactSizeIterator<Item = u64>) -> bool {
    let sampled = values.len().min(PAGE_ROWS);
    let mut different = HashSet::new();
    let are_many = |value| different.insert(value) && different.len() * FEW_DIFFERENT > sampled;
    values.take(sampled).any(are_many)
}

/// The order of the rows as Parquet describes it: leaf columns by number.
fn sorting_columns(schema: &Schema) -> Result<Vec<SortingColumn>, StoreError> {
    let leaves = ArrowSchemaConverter::new()
        .convert(schema)
        .map_err(StoreError::rows)?;
    let leaf = |name: &str| {
        leaves
            .columns()
            .iter()
            .position(|column| column.path().parts().len() == 1 && column.name() == name)
    };
    let order = [START, END, ID].into_iter().filter_map(leaf);
    Ok(order
        .map(|leaf| SortingColumn {
            column_idx: leaf as i32,
            descending: false,
            nulls_first: false,
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use uuid::{Timestamp, Uuid};

    use super::*;

    /// Whether a hundred ids made one after the other count as random.
    fn are_random_if_made_by(id: impl Fn(u32) -> Uuid) -> bool {
        let ids: Vec<Uuid> = (0..100).map(id).collect();
        are_random(&FixedSizeBinaryArray::try_from_iter(ids.iter().map(Uuid::as_bytes)).unwrap())
    }

    #[test]
    fn random_ids_are_told_from_those_that_compression_shrinks() {
        let second = |number: u32| Timestamp::from_unix(uuid::NoContext, u64::from(number), 0);
        assert!(are_random_if_made_by(|_| Uuid::new_v4()));
        assert!(!are_random_if_made_by(|number| Uuid::from_u128(u128::from(
            number
        ))));
        assert!(!are_random_if_made_by(|number| Uuid::new_v7(second(number))));
        assert!(!are_random_if_made_by(|number| {
            let (ticks, made_by) = (number.wrapping_mul(0x9e37_79b9), [7; 8]);
            Uuid::from_fields(ticks, 1, 0x11ee, &made_by)
        }));
    }

    #[test]
    fn a_few_ids_tell_nothing() {
        let few = std::iter::repeat_with(|| Uuid::new_v4().into_bytes()).take(TELLING_IDS - 1);
        assert!(!are_random(&FixedSizeBinaryArray::try_from_iter(few).unwrap()));
    }
}
