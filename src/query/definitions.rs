//! What records show of the definition they belong to: its name, and the definition itself, both as they are
//! now.
//!
//! Records store only which definition is theirs. The definitions of a person are looked up once for a
//! question and laid over the stored columns, before conditions are held against them. Knows plans and
//! columns; knows nothing of what a definition says.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef, Int32Type};
use datafusion::common::{Result, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use uuid::Uuid;

use super::records::{ReadState, Source};
use crate::model::registry::TypeId;

/// The stored column that names a record's definition.
const SOURCE_ID: &str = "source_id";
/// The stored columns that the definition has a say in.
const SOURCE_NAME: &str = "source_name";
const METADATA: &str = "metadata";
/// Under which name the definitions stand among the states of what is read.
const VERSIONED: &str = "definitions";

/// A definition, as records show it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shown {
    pub name: String,
    /// JSON.
    pub definition: String,
}

/// All definitions of one person.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Definitions {
    /// What sources of definitions begin with, up to their ids.
    prefix: String,
    known: BTreeMap<Uuid, Shown>,
}

impl Definitions {
    #[must_use]
    pub const fn new(prefix: String, known: BTreeMap<Uuid, Shown>) -> Self {
        Self { prefix, known }
    }

    /// Equal for equal definitions.
    fn state(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }

    /// The definition that a source names, whether or not there is such a definition.
    fn named(&self, source: &str) -> Option<Uuid> {
        Uuid::try_parse(source.strip_prefix(&self.prefix)?).ok()
    }
}

/// What of the definitions goes into the states of what is read.
pub(super) fn states(sources: &[Source]) -> impl Iterator<Item = ReadState> {
    sources
        .iter()
        .filter_map(|source| source.definitions.as_ref())
        .map(|definitions| ReadState::beside_rows(TypeId::new(VERSIONED), definitions.state()))
}

/// The stored columns to read in order to show `columns`: ascending, each once.
pub(super) fn needed(source: &Source, mut columns: Vec<usize>) -> Vec<usize> {
    let storage = &source.data_type.layout.storage;
    let place = |name: &str| storage.index_of(name).ok();
    let is_theirs = |column: &usize| [place(SOURCE_NAME), place(METADATA)].contains(&Some(*column));
    if source.definitions.is_some() && columns.iter().any(is_theirs) {
        columns.extend(place(SOURCE_ID));
    }
    columns.sort_unstable();
    columns.dedup();
    columns
}

/// The rows of `plan`, which has the stored columns of [`needed`], with what the definitions say.
pub(super) fn laid_over(plan: Arc<dyn ExecutionPlan>, source: &Source) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = plan.schema();
    let is_theirs = |name: &str| [SOURCE_NAME, METADATA].contains(&name);
    let Some(definitions) = &source.definitions else {
        return Ok(plan);
    };
    if !schema.fields().iter().any(|field| is_theirs(field.name())) {
        return Ok(plan);
    }
    let source_id: Arc<dyn PhysicalExpr> = Arc::new(Column::new(SOURCE_ID, schema.index_of(SOURCE_ID)?));
    let mut expressions = Vec::with_capacity(schema.fields().len());
    for (index, field) in schema.fields().iter().enumerate() {
        let stored: Arc<dyn PhysicalExpr> = Arc::new(Column::new(field.name(), index));
        let expr = if is_theirs(field.name()) {
            let function = ScalarUDF::new_from_impl(OfDefinition::new(field, definitions));
            Arc::new(ScalarFunctionExpr::try_new(
                Arc::new(function),
                vec![stored, Arc::clone(&source_id)],
                &schema,
                Arc::new(ConfigOptions::default()),
            )?)
        } else {
            stored
        };
        expressions.push(ProjectionExpr {
            expr,
            alias: field.name().clone(),
        });
    }
    Ok(Arc::new(ProjectionExec::try_new(expressions, plan)?))
}

/// `of_definition(column, source_id)`: what the record's definition says, or the column where a record has
/// none.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OfDefinition {
    column: FieldRef,
    definitions: Arc<Definitions>,
    signature: Signature,
}

impl OfDefinition {
    fn new(column: &FieldRef, definitions: &Arc<Definitions>) -> Self {
        Self {
            column: Arc::clone(column),
            definitions: Arc::clone(definitions),
            signature: Signature::any(2, Volatility::Immutable),
        }
    }

    /// What records of the definition `id` show in this column. One that nobody has says so.
    fn shown(&self, id: Uuid) -> Option<String> {
        let known = self.definitions.known.get(&id);
        if self.column.name() == SOURCE_NAME {
            return known.map(|known| known.name.clone());
        }
        let unknown = || format!(r#"{{"id":"{id}","unknown":true}}"#);
        Some(known.map_or_else(unknown, |known| known.definition.clone()))
    }

    fn evaluate(&self, stored: &ArrayRef, source_ids: &ArrayRef) -> Result<ArrayRef> {
        let source_ids = cast(
            source_ids,
            &ArrowType::Dictionary(Box::new(ArrowType::Int32), Box::new(ArrowType::Utf8)),
        )?;
        let dictionary = source_ids.as_dictionary::<Int32Type>();
        let names = dictionary.values().as_string::<i32>();
        // Looked up once for each source of a batch, not for each row.
        let shown: Vec<Option<Option<String>>> = names
            .iter()
            .map(|source| self.definitions.named(source?).map(|id| self.shown(id)))
            .collect();
        let stored = cast(stored, &ArrowType::Utf8)?;
        let stored = stored.as_string::<i32>();
        let rows = dictionary.keys().iter().enumerate().map(|(row, key)| {
            match key.and_then(|key| shown.get(key as usize)) {
                Some(Some(shown)) => shown.as_deref(),
                _ => stored.is_valid(row).then(|| stored.value(row)),
            }
        });
        let rows: StringArray = rows.collect();
        Ok(cast(&rows, self.column.data_type())?)
    }
}

impl ScalarUDFImpl for OfDefinition {
    fn name(&self) -> &'static str {
        "of_definition"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[ArrowType]) -> Result<ArrowType> {
        Ok(self.column.data_type().clone())
    }

    fn return_field_from_args(&self, _arguments: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::clone(&self.column))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [stored, source_ids] = arguments.args.as_slice() else {
            return internal_err!("of_definition takes a column and source_id");
        };
        let rows = arguments.number_rows;
        let (stored, source_ids) = (stored.to_array(rows)?, source_ids.to_array(rows)?);
        Ok(ColumnarValue::Array(self.evaluate(&stored, &source_ids)?))
    }
}
