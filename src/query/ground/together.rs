//! Gives the rows of several types one schema.
//!
//! A column that one type lacks is null there. Where types hold different kinds of values under one name, the
//! column is JSON text, which preserves every value. A person may have a thousand types with columns of their
//! own, so what is done for each of them must not depend on how many columns there are in all. Knows plans
//! and columns; knows nothing of types or of what is asked.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Schema, SchemaRef};
use datafusion::common::{Result, ScalarValue, internal_datafusion_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::ScalarUDF;
use datafusion::physical_expr::equivalence::ProjectionMapping;
use datafusion::physical_expr::expressions::{CastExpr, Column};
use datafusion::physical_expr::projection::ProjectionTargets;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::{Partitioning, PlanProperties};
use futures::StreamExt as _;
use futures::stream::BoxStream;

use crate::model::registry::{is_json_text, json_text};

use super::json_text::JsonText;
use super::operator::{Input, Needs, Operator, Plan, Step, Task, like, only};

/// The columns that several schemas have together, in the order in which they first appear.
#[derive(Debug)]
pub(in crate::query) struct Together {
    schema: SchemaRef,
    places: HashMap<String, usize>,
    kinds: Arc<Kinds>,
}

/// The kinds of values that there are, and which of them each column holds.
#[derive(Debug)]
struct Kinds {
    kinds: Vec<ArrowType>,
    of_columns: Vec<usize>,
}

/// A column of some of the schemas.
struct GatheredColumn {
    place: usize,
    field: Field,
    /// How many of the schemas of rows have it.
    held_by: usize,
    has_nulls: bool,
}

impl Together {
    /// The columns of `rows`, the schemas of rows, and those that only schemas `beside` them have, which also
    /// decide what a column can hold.
    pub(in crate::query) fn of(
        rows: impl IntoIterator<Item = SchemaRef>,
        beside: impl IntoIterator<Item = SchemaRef>,
    ) -> Self {
        let mut columns: HashMap<String, GatheredColumn> = HashMap::new();
        let mut schemas = 0;
        for schema in rows {
            schemas += 1;
            for field in schema.fields() {
                let column = gather(&mut columns, field);
                column.held_by += 1;
                column.has_nulls |= field.is_nullable();
            }
        }
        for schema in beside {
            for field in schema.fields() {
                gather(&mut columns, field).has_nulls |= field.is_nullable();
            }
        }
        let places = columns.iter().map(|(name, column)| (name.clone(), column.place));
        let places = places.collect();
        let mut columns: Vec<GatheredColumn> = columns.into_values().collect();
        columns.sort_unstable_by_key(|column| column.place);
        let fields = columns.into_iter().map(|column| {
            let is_everywhere = column.held_by > 0 && column.held_by == schemas;
            column.field.with_nullable(column.has_nulls || !is_everywhere)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Self {
            kinds: Arc::new(Kinds::of(&schema)),
            schema,
            places,
        }
    }

    pub(in crate::query) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// `plan`, which has some of the columns, with all of them.
    pub(in crate::query) fn align(&self, plan: Plan) -> Result<Plan> {
        let own = plan.schema();
        let mut held = Vec::with_capacity(own.fields().len());
        for (index, field) in own.fields().iter().enumerate() {
            let place = self.places.get(field.name());
            let column = place.and_then(|place| Some((*place, self.schema.fields().get(*place)?)));
            let (place, column) = column
                .ok_or_else(|| internal_datafusion_err!("{} is not among the columns", field.name()))?;
            held.push((place, Source::of(&own, index, column)?));
        }
        let step = Align {
            schema: Arc::clone(&self.schema),
            kinds: Arc::clone(&self.kinds),
            held: held.into(),
        };
        Ok(Arc::new(AlignExec::over(step, vec![plan])))
    }
}

/// Adds a column of one schema to those that were gathered.
fn gather<'c>(columns: &'c mut HashMap<String, GatheredColumn>, field: &Field) -> &'c mut GatheredColumn {
    let place = columns.len();
    let column = columns
        .entry(field.name().clone())
        .or_insert_with(|| GatheredColumn {
            place,
            field: field.clone(),
            held_by: 0,
            has_nulls: false,
        });
    if let Some(common) = common(&column.field, field) {
        // Not every number has a JSON text.
        column.has_nulls |= is_json_text(&common);
        column.field = common;
    } else if !field.metadata().is_empty() {
        let known = column.field.metadata().clone();
        let all = field.metadata().clone().into_iter().chain(known);
        column.field.set_metadata(all.collect());
    }
    column
}

impl Kinds {
    fn of(schema: &Schema) -> Self {
        let mut known: HashMap<&ArrowType, usize> = HashMap::new();
        let mut kinds = Vec::new();
        let mut of_columns = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            let kind = *known.entry(field.data_type()).or_insert_with(|| {
                kinds.push(field.data_type().clone());
                kinds.len() - 1
            });
            of_columns.push(kind);
        }
        Self { kinds, of_columns }
    }
}

/// A field that can hold the values of both, if `known` cannot.
fn common(known: &Field, field: &Field) -> Option<Field> {
    if holds(known, field) {
        None
    } else if is_plain_text(known) && is_plain_text(field) {
        Some(Field::new(known.name(), ArrowType::Utf8, known.is_nullable()))
    } else {
        Some(json_text(known.name()))
    }
}

fn holds(known: &Field, field: &Field) -> bool {
    known.data_type() == field.data_type() && is_json_text(known) == is_json_text(field)
}

/// Text, however it is encoded.
fn is_plain_text(field: &Field) -> bool {
    let is_text =
        |held: &ArrowType| matches!(held, ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View);
    let held = match field.data_type() {
        ArrowType::Dictionary(_, held) => held.as_ref(),
        held => held,
    };
    is_text(held) && !is_json_text(field)
}

/// Where the values of a column come from.
#[derive(Clone, Debug)]
enum Source {
    /// From the column at this index.
    Column(usize),
    /// From a column whose values have to be converted.
    Converted(Arc<dyn PhysicalExpr>),
}

impl Source {
    /// Of `column` in rows with the columns `own`, of which it is the one at `index`.
    fn of(own: &SchemaRef, index: usize, column: &Field) -> Result<Self> {
        let held = own.field(index);
        if holds(column, held) {
            return Ok(Self::Column(index));
        }
        let stored = Arc::new(Column::new(held.name(), index));
        Ok(Self::Converted(if is_json_text(column) {
            let encode = Arc::new(ScalarUDF::new_from_impl(JsonText::new()));
            let options = Arc::new(ConfigOptions::default());
            Arc::new(ScalarFunctionExpr::try_new(encode, vec![stored], own, options)?)
        } else {
            Arc::new(CastExpr::new(stored, column.data_type().clone(), None))
        }))
    }

    fn values(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        match self {
            Self::Column(index) => {
                let column = batch.columns().get(*index).cloned();
                column.ok_or_else(|| internal_datafusion_err!("a batch lacks a column"))
            }
            Self::Converted(expression) => expression.evaluate(batch)?.into_array(batch.num_rows()),
        }
    }
}

/// Puts the columns of its input into their places among those of several inputs.
#[derive(Clone, Debug)]
pub(in crate::query) struct Align {
    schema: SchemaRef,
    kinds: Arc<Kinds>,
    /// The columns that the input has, by their places.
    held: Arc<[(usize, Source)]>,
}

pub(in crate::query) type AlignExec = Operator<Align>;

impl Align {
    fn aligned(&self, batch: &RecordBatch, nulls: &mut Nulls) -> Result<RecordBatch> {
        let mut columns: Vec<Option<ArrayRef>> = vec![None; self.schema.fields().len()];
        for (place, source) in self.held.iter() {
            if let Some(column) = columns.get_mut(*place) {
                *column = Some(source.values(batch)?);
            }
        }
        nulls.set_length(batch.num_rows());
        let columns = columns.into_iter().zip(&self.kinds.of_columns);
        let columns = columns.map(|(column, kind)| match column {
            Some(column) => Ok(column),
            None => nulls.of(*kind, &self.kinds),
        });
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(
            Arc::clone(&self.schema),
            columns.collect::<Result<_>>()?,
            &options,
        )?)
    }
}

impl Step for Align {
    const NAME: &'static str = "AlignExec";
    // It passes on the rows of something that does.
    const YIELDS_BY_ITSELF: bool = true;
    const KEEPS_ORDER: bool = true;

    fn needs(&self, inputs: &[Plan]) -> Vec<Needs> {
        vec![Needs::nothing(); inputs.len()]
    }

    fn gives(&self, inputs: &[Plan]) -> PlanProperties {
        let known = like(inputs);
        let kept = self.held.iter().filter_map(|(place, source)| {
            let Source::Column(index) = source else {
                return None;
            };
            let name = self.schema.fields().get(*place)?.name();
            let target: Arc<dyn PhysicalExpr> = Arc::new(Column::new(name, *place));
            let source: Arc<dyn PhysicalExpr> = Arc::new(Column::new(name, *index));
            Some((source, ProjectionTargets::from(vec![(target, *place)])))
        });
        let kept: ProjectionMapping = kept.collect();
        let equal = known
            .equivalence_properties()
            .project(&kept, Arc::clone(&self.schema));
        let partitions = known.partitioning.partition_count();
        known
            .with_eq_properties(equal)
            .with_partitioning(Partitioning::UnknownPartitioning(partitions))
    }

    fn run(self, inputs: Vec<Input>, _task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let rows = only(inputs)?.open()?;
        let mut nulls = Nulls::default();
        Ok(rows.map(move |batch| self.aligned(&batch?, &mut nulls)).boxed())
    }
}

/// Columns of nulls of one length, shared by all columns of a kind.
#[derive(Debug, Default)]
struct Nulls {
    rows: usize,
    by_kind: HashMap<usize, ArrayRef>,
}

impl Nulls {
    fn set_length(&mut self, rows: usize) {
        if self.rows != rows {
            self.rows = rows;
            self.by_kind.clear();
        }
    }

    fn of(&mut self, kind: usize, kinds: &Kinds) -> Result<ArrayRef> {
        if let Some(known) = self.by_kind.get(&kind) {
            return Ok(Arc::clone(known));
        }
        let held = kinds.kinds.get(kind);
        let held = held.ok_or_else(|| internal_datafusion_err!("a column holds values of no kind"))?;
        let nulls = ScalarValue::try_from(held)?.to_array_of_size(self.rows)?;
        self.by_kind.insert(kind, Arc::clone(&nulls));
        Ok(nulls)
    }
}
