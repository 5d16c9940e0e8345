//! Fields to group by, and how many groups an answer may have.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{DataType as ArrowType, SchemaRef};
use datafusion::arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, ScalarUDF, cast};
use datafusion::physical_plan::PlanProperties;
use futures::StreamExt as _;
use futures::stream::BoxStream;

use crate::model::registry::DataType;
use crate::query::TypedPartition;
use crate::query::filter::{field_of, unknown_field};
use crate::query::ground::errors::{AggregateError, MOST_GROUP_FIELDS};
use crate::query::ground::uuid_text::UuidText;
use crate::query::operator::{Input, Needs, Operator, Plan, Step, Task, like, only};

/// The greatest number of groups in an answer.
pub const MOST_GROUPS: usize = 10_000;

/// A limit that was exceeded while a question ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Excess {
    #[error(
        "there are more than {MOST_GROUPS} groups; group by fewer fields, or by fields with fewer values"
    )]
    Groups,
    #[error("there are more cells than the limit of {limit}; ask for longer periods or a shorter range")]
    Cells { limit: u64 },
}

/// Checks the fields before anything is read: each exists in one of the partitions, holds one value, and
/// has a name of its own in the answer.
pub(super) fn check(
    fields: &[String],
    partitions: &[TypedPartition],
    taken: &[&str],
) -> Result<(), AggregateError> {
    if fields.len() > MOST_GROUP_FIELDS {
        return Err(AggregateError::TooManyFields(fields.len()));
    }
    let types: Vec<&DataType> = partitions
        .iter()
        .map(|partition| partition.data_type.as_ref())
        .collect();
    for (place, name) in fields.iter().enumerate() {
        if fields.iter().take(place).any(|earlier| earlier == name) {
            return Err(AggregateError::FieldTwice(name.clone()));
        }
        if taken.contains(&name.as_str()) {
            return Err(AggregateError::NameTaken(name.clone()));
        }
        let mut found = types
            .iter()
            .filter_map(|data_type| field_of(name, data_type))
            .peekable();
        if found.peek().is_none() && !types.is_empty() {
            return Err(AggregateError::UnknownField(unknown_field(name, &types)));
        }
        if found
            .any(|field| field.is_json || matches!(field.holds, ArrowType::List(_) | ArrowType::Struct(_)))
        {
            return Err(AggregateError::NotScalar(name.clone()));
        }
    }
    Ok(())
}

/// The group fields that a type has: their values, in the form in which they are shown, with their names.
pub(super) fn values_of(fields: &[String], partition: &TypedPartition) -> Vec<(Expr, String)> {
    let value = |name: &String| {
        let field = field_of(name, &partition.data_type)?;
        let value = match field.holds {
            ArrowType::Dictionary(_, _) => cast(field.expression, ArrowType::Utf8),
            ArrowType::FixedSizeBinary(16) => {
                ScalarUDF::new_from_impl(UuidText::new()).call(vec![field.expression])
            }
            _ => field.expression,
        };
        Some((value, name.clone()))
    };
    fields.iter().filter_map(value).collect()
}

/// The failure of a question that has too many groups.
pub(super) fn too_many() -> DataFusionError {
    DataFusionError::External(Box::new(Excess::Groups))
}

/// Passes rows on until there are more than [`MOST_GROUPS`] combinations of values in some columns; then it
/// fails with [`Excess`].
#[derive(Clone, Debug)]
pub(super) struct GroupLimit {
    /// The columns that make a group.
    columns: Vec<usize>,
}

pub(super) type GroupLimitExec = Operator<GroupLimit>;

impl GroupLimitExec {
    pub(super) fn new(input: Plan, columns: Vec<usize>) -> Self {
        Self::over(GroupLimit { columns }, vec![input])
    }
}

impl Step for GroupLimit {
    const NAME: &'static str = "GroupLimitExec";
    const KEEPS_ORDER: bool = true;

    fn detail(&self) -> String {
        format!("columns={:?}, limit={MOST_GROUPS}", self.columns)
    }

    fn needs(&self, inputs: &[Plan]) -> Vec<Needs> {
        vec![Needs::nothing(); inputs.len()]
    }

    fn gives(&self, inputs: &[Plan]) -> PlanProperties {
        like(inputs)
    }

    fn run(self, inputs: Vec<Input>, task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let mut seen = SeenGroups::new(self.columns, &task.schema())?;
        let rows = only(inputs)?.open()?;
        Ok(rows.map(move |batch| seen.note(batch?)).boxed())
    }
}

/// The groups seen so far.
struct SeenGroups {
    columns: Vec<usize>,
    converter: RowConverter,
    groups: HashSet<OwnedRow>,
}

impl SeenGroups {
    fn new(columns: Vec<usize>, schema: &SchemaRef) -> Result<Self> {
        let fields = columns
            .iter()
            .map(|column| SortField::new(schema.field(*column).data_type().clone()));
        Ok(Self {
            converter: RowConverter::new(fields.collect())?,
            columns,
            groups: HashSet::new(),
        })
    }

    fn note(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        let columns: Vec<ArrayRef> = self
            .columns
            .iter()
            .map(|column| Arc::clone(batch.column(*column)))
            .collect();
        for row in &self.converter.convert_columns(&columns)? {
            self.groups.insert(row.owned());
            if self.groups.len() > MOST_GROUPS {
                return Err(too_many());
            }
        }
        Ok(batch)
    }
}
