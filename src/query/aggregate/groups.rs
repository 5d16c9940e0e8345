//! Fields to group by, and how many groups an answer may have.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result, internal_datafusion_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, ScalarUDF, cast};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt as _;

use crate::query::filter::{FilterError, field_of, unknown_field};
use crate::query::records::Source;
use crate::query::shape::UuidText;

use super::{AggregateError, Excess};

/// More fields than this are refused.
pub const MAX_GROUP_FIELDS: usize = 5;
/// More groups than this are refused.
pub const MAX_GROUPS: usize = 10_000;

/// Checks the fields before anything is read: each exists in one of the sources, holds one value, and has a
/// name of its own in the answer.
pub(super) fn check(fields: &[String], sources: &[Source], taken: &[&str]) -> Result<(), AggregateError> {
    if fields.len() > MAX_GROUP_FIELDS {
        return Err(AggregateError::TooManyFields(fields.len()));
    }
    for (place, name) in fields.iter().enumerate() {
        if fields.iter().take(place).any(|earlier| earlier == name) {
            return Err(AggregateError::FieldTwice(name.clone()));
        }
        if taken.contains(&name.as_str()) {
            return Err(AggregateError::NameTaken(name.clone()));
        }
        let mut found = sources
            .iter()
            .filter_map(|source| field_of(name, &source.data_type))
            .peekable();
        if found.peek().is_none() {
            let Some(source) = sources.first() else { continue };
            return Err(AggregateError::UnknownField(unknown_field(
                name,
                &source.data_type,
            )));
        }
        if found
            .any(|field| field.is_json || matches!(field.holds, ArrowType::List(_) | ArrowType::Struct(_)))
        {
            return Err(AggregateError::NotScalar(name.clone()));
        }
    }
    Ok(())
}

/// The values of the group fields that a type has, in the form in which they are shown.
pub(super) fn values_of(fields: &[String], source: &Source) -> Vec<(String, Expr)> {
    let value = |name: &String| {
        let field = field_of(name, &source.data_type)?;
        let value = match field.holds {
            ArrowType::Dictionary(_, _) => cast(field.expression, ArrowType::Utf8),
            ArrowType::FixedSizeBinary(16) => {
                ScalarUDF::new_from_impl(UuidText::new()).call(vec![field.expression])
            }
            _ => field.expression,
        };
        Some((name.clone(), value))
    };
    fields.iter().filter_map(value).collect()
}

impl From<FilterError> for AggregateError {
    fn from(error: FilterError) -> Self {
        Self::UnknownField(error)
    }
}

/// The failure of a question that has too many groups.
pub(super) fn too_many() -> DataFusionError {
    DataFusionError::External(Box::new(Excess::Groups))
}

/// Passes rows on until there are more than [`MAX_GROUPS`] combinations of values in some columns; then it
/// fails with [`Excess`].
#[derive(Debug)]
pub(super) struct GroupLimitExec {
    input: Arc<dyn ExecutionPlan>,
    /// The columns that make a group.
    columns: Vec<usize>,
}

impl GroupLimitExec {
    pub(super) const fn new(input: Arc<dyn ExecutionPlan>, columns: Vec<usize>) -> Self {
        Self { input, columns }
    }
}

impl DisplayAs for GroupLimitExec {
    fn fmt_as(&self, _format: DisplayFormatType, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "GroupLimitExec: columns={:?}, limit={MAX_GROUPS}",
            self.columns
        )
    }
}

impl ExecutionPlan for GroupLimitExec {
    fn name(&self) -> &'static str {
        "GroupLimitExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn apply_expressions(
        &self,
        _visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children
            .pop()
            .ok_or_else(|| internal_datafusion_err!("GroupLimitExec has one input"))?;
        Ok(Arc::new(Self::new(input, self.columns.clone())))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        let schema = self.schema();
        let mut seen = Seen::new(self.columns.clone(), &self.input)?;
        let rows = input.map(move |batch| batch.and_then(|batch| seen.note(batch)));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

/// The groups that have come by.
struct Seen {
    columns: Vec<usize>,
    converter: RowConverter,
    groups: HashSet<OwnedRow>,
}

impl Seen {
    fn new(columns: Vec<usize>, input: &Arc<dyn ExecutionPlan>) -> Result<Self> {
        let schema = input.schema();
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
            if self.groups.len() > MAX_GROUPS {
                return Err(too_many());
            }
        }
        Ok(batch)
    }
}
