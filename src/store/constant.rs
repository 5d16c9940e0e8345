//! Finds columns of an object that hold the same value in every row, from the object's footer.
//!
//! Usually one device wrote all rows of a piece, and what is stored of the device is the same in each. Knows
//! footers; knows nothing of who reads them, nor of which rows are dead.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use arrow::array::{
    ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray, StructArray, new_null_array,
};
use arrow::datatypes::{DataType, Field, FieldRef, Int32Type, SchemaRef};
use arrow::error::ArrowError;
use parquet::arrow::ProjectionMask;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::statistics::Statistics;

use super::decoded::is_part;
use super::files::PieceFile;

/// The value that every row of a column holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Constant {
    Null,
    Text(String),
    /// A structure that is present, by its members.
    Members(Vec<Self>),
}

/// The columns of an object, divided by what its footer says about them.
#[derive(Clone, Debug)]
pub struct KnownColumns {
    schema: SchemaRef,
    /// For each column the value of all rows, where known.
    known: Vec<Option<Constant>>,
    others: ProjectionMask,
}

impl KnownColumns {
    #[must_use]
    pub fn of(file: &PieceFile) -> Self {
        let schema = Arc::clone(file.schema());
        let known = schema.fields().iter().map(|field| Constant::of(file, field));
        let known: Vec<Option<Constant>> = known.collect();
        let columns = known.iter().enumerate();
        let others = columns.filter_map(|(column, known)| known.is_none().then_some(column));
        let others = ProjectionMask::roots(file.metadata().file_metadata().schema_descr(), others);
        Self {
            schema,
            known,
            others,
        }
    }

    /// The columns that have to be read.
    #[must_use]
    pub fn others(&self) -> ProjectionMask {
        self.others.clone()
    }

    /// Rows of all columns, where `read` has those that had to be read.
    pub fn put_back(&self, read: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let mut columns = read.columns().iter();
        let all = self.schema.fields().iter().zip(&self.known);
        let all = all.map(|(field, known)| match known {
            Some(known) => known.rows(field.data_type(), read.num_rows()),
            None => columns
                .next()
                .cloned()
                .ok_or_else(|| ArrowError::SchemaError(format!("column {} was not read", field.name()))),
        });
        RecordBatch::try_new(Arc::clone(&self.schema), all.collect::<Result<_, _>>()?)
    }
}

impl Constant {
    /// Whether the footer can give the value of such a column: it can for texts, and structures of texts. For
    /// numbers it does not pay, and the bounds of floats leave out NaN.
    #[must_use]
    pub fn is_possible(data_type: &DataType) -> bool {
        match data_type {
            DataType::Utf8 => true,
            DataType::Dictionary(key, value) => **key == DataType::Int32 && **value == DataType::Utf8,
            DataType::Struct(members) => {
                !members.is_empty() && members.iter().all(|member| Self::is_possible(member.data_type()))
            }
            _ => false,
        }
    }

    /// The value that every row of an object holds in the column `wanted`. `None`: the rows may differ, or
    /// are stored in another form.
    #[must_use]
    pub fn of(file: &PieceFile, wanted: &Field) -> Option<Self> {
        let (_, stored) = file.schema().column_with_name(wanted.name())?;
        (Self::is_possible(wanted.data_type()) && is_part(wanted.data_type(), stored.data_type()))
            .then(|| Self::from_footer(file.metadata(), &mut Vec::new(), wanted))
            .flatten()
    }

    /// A column of `rows` rows.
    pub fn rows(&self, data_type: &DataType, rows: usize) -> Result<ArrayRef, ArrowError> {
        Ok(match (self, data_type) {
            (Self::Null, _) => new_null_array(data_type, rows),
            (Self::Text(text), DataType::Utf8) => {
                Arc::new(StringArray::from_iter_values(std::iter::repeat_n(text, rows)))
            }
            (Self::Text(text), DataType::Dictionary(..)) => {
                let keys = Int32Array::from_value(0, rows);
                let values = Arc::new(StringArray::from_iter_values([text]));
                Arc::new(DictionaryArray::<Int32Type>::try_new(keys, values)?)
            }
            (Self::Members(members), DataType::Struct(fields)) if members.len() == fields.len() => {
                let member = |(member, field): (&Self, &FieldRef)| member.rows(field.data_type(), rows);
                let columns = members.iter().zip(fields).map(member);
                let columns = columns.collect::<Result<Vec<_>, _>>()?;
                Arc::new(StructArray::try_new(fields.clone(), columns, None)?)
            }
            _ => {
                let error = format!("a column of {data_type} does not hold the same in every row");
                return Err(ArrowError::InvalidArgumentError(error));
            }
        })
    }

    /// `path`: the names of the structures around `field`.
    fn from_footer<'f>(parquet: &ParquetMetaData, path: &mut Vec<&'f str>, field: &'f Field) -> Option<Self> {
        path.push(field.name());
        let constant = match field.data_type() {
            DataType::Struct(members) => {
                let members = members
                    .iter()
                    .map(|member| Self::from_footer(parquet, path, member));
                let members = members.collect::<Option<Vec<_>>>();
                // Where no member has a value, the structure itself may be missing, in some rows or in all.
                members
                    .filter(|members| members.iter().any(|member| *member != Self::Null))
                    .map(Self::Members)
            }
            _ => Self::of_leaf(parquet, path),
        };
        path.pop();
        constant.filter(|constant| *constant != Self::Null || field.is_nullable())
    }

    fn of_leaf(parquet: &ParquetMetaData, path: &[&str]) -> Option<Self> {
        let columns = parquet.file_metadata().schema_descr().columns();
        let leaf = columns.iter().position(|column| {
            let parts = column.path().parts().iter();
            parts.map(String::as_str).eq(path.iter().copied())
        })?;
        let mut groups = parquet.row_groups().iter();
        let first = Self::of_group(groups.next()?, leaf)?;
        groups
            .all(|group| Self::of_group(group, leaf).as_ref() == Some(&first))
            .then_some(first)
    }

    fn of_group(group: &RowGroupMetaData, leaf: usize) -> Option<Self> {
        let statistics = group.columns().get(leaf)?.statistics()?;
        // A row whose structure is missing counts as a null of each member.
        match statistics.null_count_opt()? {
            0 => {}
            nulls if i64::try_from(nulls) == Ok(group.num_rows()) => return Some(Self::Null),
            _ => return None,
        }
        let Statistics::ByteArray(values) = statistics else {
            return None;
        };
        let (least, greatest) = (values.min_opt()?, values.max_opt()?);
        // The footer has only the beginning of a long text.
        let is_exact = values.min_is_exact() && values.max_is_exact() && !statistics.is_min_max_deprecated();
        let text = (is_exact && least == greatest).then(|| least.as_utf8().ok());
        text.flatten().map(|text| Self::Text(text.to_owned()))
    }
}
