//! Converts answers for Arrow and Parquet: to plain types that every reader has, with the units as the only
//! metadata of ours.
//!
//! Ids become text, as in every other form; string views become strings; JSON text is a string. The caller
//! decides what becomes of dictionaries: Parquet takes them as they come, IPC needs one for the whole answer
//! ([`super::dictionaries`]).

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, GenericListArray, MapArray, OffsetSizeTrait, StructArray, new_empty_array,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};

use super::UNIT;
use super::dictionaries::Lexicon;
use crate::model::registry::{dictionary_text, is_uuid};
use crate::model::uuid_text;

/// Turns batches of a schema into portable ones.
#[derive(Debug)]
pub(super) struct Portable {
    schema: SchemaRef,
    /// The schema of what `apply` returns: with a lexicon, dictionary columns hold only their keys.
    applied: SchemaRef,
    shapes: Vec<Shape>,
}

/// What happens to dictionaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dictionaries {
    /// They stay.
    AsTheyCome,
    /// `apply` returns keys into one dictionary for all batches, in the order in which the values first
    /// appeared.
    AsKeys,
}

#[derive(Debug)]
enum Shape {
    Same,
    IdText,
    Converted(DataType),
    Dictionary(Box<Lexicon>),
    List(FieldRef, Box<Shape>),
    LongList(FieldRef, Box<Shape>),
    Structure(Fields, Vec<Shape>),
    /// The entries, which are structures, and whether they are sorted.
    Map(FieldRef, bool, Box<Shape>),
}

impl Portable {
    pub(super) fn new(schema: &Schema, dictionaries: Dictionaries) -> Self {
        let (fields, shapes): (Vec<Field>, Vec<Shape>) = schema
            .fields()
            .iter()
            .map(|field| reshape(field, dictionaries))
            .unzip();
        let applied = fields
            .iter()
            .zip(&shapes)
            .map(|(field, shape)| field.clone().with_data_type(shape.applied(field.data_type())))
            .collect::<Vec<_>>();
        Self {
            schema: Arc::new(Schema::new(fields)),
            applied: Arc::new(Schema::new(applied)),
            shapes,
        }
    }

    /// The schema that readers see.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(super) fn apply(&mut self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let columns = self
            .shapes
            .iter_mut()
            .zip(batch.columns())
            .map(|(shape, array)| shape.apply(array))
            .collect::<Result<_, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(self.applied.clone(), columns, &options)
    }

    /// How many values all dictionaries have together, or `None` if there is no dictionary.
    pub(super) fn dictionary_values(&self) -> Option<usize> {
        self.shapes
            .iter()
            .filter_map(Shape::dictionary_values)
            .reduce(|sum, count| sum + count)
    }

    /// A batch without rows in the readers' schema, with the current dictionaries.
    pub(super) fn dictionaries(&mut self) -> Result<RecordBatch, ArrowError> {
        let columns = self
            .shapes
            .iter_mut()
            .zip(self.schema.fields())
            .map(|(shape, field)| shape.empty(field.data_type()))
            .collect::<Result<_, _>>()?;
        RecordBatch::try_new_with_options(
            self.schema.clone(),
            columns,
            &RecordBatchOptions::new().with_row_count(Some(0)),
        )
    }
}

/// The field as readers see it, and how to convert to it.
fn reshape(field: &Field, dictionaries: Dictionaries) -> (Field, Shape) {
    let (data_type, shape) = match field.data_type() {
        DataType::FixedSizeBinary(_) if is_uuid(field) => (DataType::Utf8, Shape::IdText),
        DataType::Utf8View => (DataType::Utf8, Shape::Converted(DataType::Utf8)),
        DataType::BinaryView => (DataType::Binary, Shape::Converted(DataType::Binary)),
        DataType::Dictionary(_, value)
            if **value == DataType::Utf8 && dictionaries == Dictionaries::AsKeys =>
        {
            (dictionary_text(), Shape::Dictionary(Box::default()))
        }
        // Dictionaries of other types are rare and are replaced by their values.
        DataType::Dictionary(_, value) if dictionaries == Dictionaries::AsKeys => {
            let value = if **value == DataType::Utf8View {
                DataType::Utf8
            } else {
                value.as_ref().clone()
            };
            (value.clone(), Shape::Converted(value))
        }
        DataType::List(item) => {
            let (item, shape) = reshape(item, dictionaries);
            let applied = Arc::new(item.clone().with_data_type(shape.applied(item.data_type())));
            (
                DataType::List(Arc::new(item)),
                Shape::List(applied, Box::new(shape)),
            )
        }
        DataType::LargeList(item) => {
            let (item, shape) = reshape(item, dictionaries);
            let applied = Arc::new(item.clone().with_data_type(shape.applied(item.data_type())));
            (
                DataType::LargeList(Arc::new(item)),
                Shape::LongList(applied, Box::new(shape)),
            )
        }
        DataType::Struct(members) => {
            let (members, shapes): (Vec<Field>, Vec<Shape>) =
                members.iter().map(|member| reshape(member, dictionaries)).unzip();
            let applied = members
                .iter()
                .zip(&shapes)
                .map(|(member, shape)| member.clone().with_data_type(shape.applied(member.data_type())));
            let applied = applied.collect();
            (
                DataType::Struct(members.into()),
                Shape::Structure(applied, shapes),
            )
        }
        DataType::Map(entries, is_sorted) => {
            let (entries, shape) = reshape(entries, dictionaries);
            let applied = entries.clone().with_data_type(shape.applied(entries.data_type()));
            (
                DataType::Map(Arc::new(entries), *is_sorted),
                Shape::Map(Arc::new(applied), *is_sorted, Box::new(shape)),
            )
        }
        same => (same.clone(), Shape::Same),
    };
    (
        field
            .clone()
            .with_data_type(data_type)
            .with_metadata(unit_metadata(field.metadata())),
        shape,
    )
}

/// The metadata of a column that readers get: its unit.
fn unit_metadata(metadata: &HashMap<String, String>) -> HashMap<String, String> {
    let unit = metadata.get(UNIT).map(|unit| (UNIT.to_owned(), unit.clone()));
    unit.into_iter().collect()
}

impl Shape {
    /// The type of what `apply` returns, where readers see `shown`.
    fn applied(&self, shown: &DataType) -> DataType {
        match self {
            Self::Same | Self::IdText | Self::Converted(_) => shown.clone(),
            Self::Dictionary(_) => DataType::Int32,
            Self::List(item, _) => DataType::List(item.clone()),
            Self::LongList(item, _) => DataType::LargeList(item.clone()),
            Self::Structure(members, _) => DataType::Struct(members.clone()),
            Self::Map(entries, is_sorted, _) => DataType::Map(entries.clone(), *is_sorted),
        }
    }

    fn apply(&mut self, array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Self::Same => array.clone(),
            Self::IdText => Arc::new(uuid_text::texts(array.as_fixed_size_binary())?),
            Self::Converted(data_type) => cast(array, data_type)?,
            Self::Dictionary(lexicon) => Arc::new(lexicon.keys(array)?),
            Self::List(item, shape) => Arc::new(apply_to_list::<i32>(array, item, shape)?),
            Self::LongList(item, shape) => Arc::new(apply_to_list::<i64>(array, item, shape)?),
            Self::Structure(members, shapes) => {
                let structure = array.as_struct();
                let columns = shapes
                    .iter_mut()
                    .zip(structure.columns())
                    .map(|(shape, column)| shape.apply(column))
                    .collect::<Result<_, _>>()?;
                Arc::new(StructArray::try_new_with_length(
                    members.clone(),
                    columns,
                    structure.nulls().cloned(),
                    structure.len(),
                )?)
            }
            Self::Map(entries, is_sorted, shape) => {
                let map = array.as_map();
                let held: ArrayRef = Arc::new(map.entries().clone());
                Arc::new(MapArray::try_new(
                    entries.clone(),
                    map.offsets().clone(),
                    shape.apply(&held)?.as_struct().clone(),
                    map.nulls().cloned(),
                    *is_sorted,
                )?)
            }
        })
    }

    fn dictionary_values(&self) -> Option<usize> {
        match self {
            Self::Same | Self::IdText | Self::Converted(_) => None,
            Self::Dictionary(lexicon) => Some(lexicon.len()),
            Self::List(_, shape) | Self::LongList(_, shape) | Self::Map(_, _, shape) => {
                shape.dictionary_values()
            }
            Self::Structure(_, shapes) => shapes
                .iter()
                .filter_map(Self::dictionary_values)
                .reduce(|sum, count| sum + count),
        }
    }

    /// An array without rows of the type that readers see.
    fn empty(&mut self, shown: &DataType) -> Result<ArrayRef, ArrowError> {
        Ok(match (self, shown) {
            (Self::Dictionary(lexicon), _) => Arc::new(lexicon.empty()?),
            (Self::List(_, shape), DataType::List(item)) => Arc::new(empty_list::<i32>(item, shape)?),
            (Self::LongList(_, shape), DataType::LargeList(item)) => {
                Arc::new(empty_list::<i64>(item, shape)?)
            }
            (Self::Structure(_, shapes), DataType::Struct(members)) => {
                let columns = shapes
                    .iter_mut()
                    .zip(members)
                    .map(|(shape, member)| shape.empty(member.data_type()))
                    .collect::<Result<_, _>>()?;
                Arc::new(StructArray::try_new_with_length(
                    members.clone(),
                    columns,
                    None,
                    0,
                )?)
            }
            (Self::Map(_, is_sorted, shape), DataType::Map(entries, _)) => Arc::new(MapArray::try_new(
                entries.clone(),
                OffsetBuffer::new_empty(),
                shape.empty(entries.data_type())?.as_struct().clone(),
                None,
                *is_sorted,
            )?),
            (_, shown) => new_empty_array(shown),
        })
    }
}

fn apply_to_list<O: OffsetSizeTrait>(
    array: &ArrayRef,
    item: &FieldRef,
    shape: &mut Shape,
) -> Result<GenericListArray<O>, ArrowError> {
    let list = array.as_list::<O>();
    let values = shape.apply(list.values())?;
    GenericListArray::try_new(
        item.clone(),
        list.offsets().clone(),
        values,
        list.nulls().cloned(),
    )
}

fn empty_list<O: OffsetSizeTrait>(
    item: &FieldRef,
    shape: &mut Shape,
) -> Result<GenericListArray<O>, ArrowError> {
    GenericListArray::try_new(
        item.clone(),
        OffsetBuffer::new_empty(),
        shape.empty(item.data_type())?,
        None,
    )
}
