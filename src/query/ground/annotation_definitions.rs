//! What records of an annotation show of its definition: its name and the definition itself, both in their
//! present state.
//!
//! Records store only a reference to their definition. The definitions of a person are looked up once for a
//! question and laid over the stored columns before conditions are evaluated. Knows plans and columns; knows
//! nothing of what a definition says.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef, Int32Type};
use datafusion::common::Result;
use datafusion::prelude::ident;
use uuid::Uuid;

use crate::model::registry::DataType;

use super::computed::{Computed, computed, with_replaced};
use super::operator::Plan;

/// The stored column that names a record's definition.
const SOURCE_ID: &str = "source_id";
/// The stored columns that the definition replaces.
const SOURCE_NAME: &str = "source_name";
const METADATA: &str = "metadata";

/// A definition, as records show it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ShownDefinition {
    pub name: String,
    /// JSON.
    pub definition: String,
}

/// All definitions of one person.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Definitions {
    /// The prefix of a source that is a definition; its id follows.
    prefix: String,
    known: BTreeMap<Uuid, ShownDefinition>,
}

impl Definitions {
    #[must_use]
    pub const fn new(prefix: String, known: BTreeMap<Uuid, ShownDefinition>) -> Self {
        Self { prefix, known }
    }

    /// A hash: equal for equal definitions.
    pub(in crate::query) fn state(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }

    /// The id of the definition that a source names, whether or not such a definition exists.
    fn named(&self, source: &str) -> Option<Uuid> {
        Uuid::try_parse(source.strip_prefix(&self.prefix)?).ok()
    }
}

/// The stored columns to read in order to show `columns`: ascending, each once.
pub(in crate::query) fn needed(
    definitions: Option<&Arc<Definitions>>,
    data_type: &DataType,
    mut columns: Vec<usize>,
) -> Vec<usize> {
    let storage = &data_type.layout.storage;
    let place = |name: &str| storage.index_of(name).ok();
    let is_theirs = |column: &usize| [place(SOURCE_NAME), place(METADATA)].contains(&Some(*column));
    if definitions.is_some() && columns.iter().any(is_theirs) {
        columns.extend(place(SOURCE_ID));
    }
    columns.sort_unstable();
    columns.dedup();
    columns
}

/// The rows of `plan`, which has the stored columns of [`needed`], with the definitions laid over.
pub(in crate::query) fn laid_over(plan: Plan, definitions: Option<&Arc<Definitions>>) -> Result<Plan> {
    let schema = plan.schema();
    let is_theirs = |name: &str| [SOURCE_NAME, METADATA].contains(&name);
    let Some(definitions) = definitions else {
        return Ok(plan);
    };
    if !schema.fields().iter().any(|field| is_theirs(field.name())) {
        return Ok(plan);
    }
    with_replaced(plan, |field| {
        let of_definition = OfDefinition {
            column: Arc::clone(field),
            definitions: Arc::clone(definitions),
        };
        let columns = [ident(field.name()), ident(SOURCE_ID)];
        is_theirs(field.name()).then(|| computed(of_definition, columns))
    })
}

/// `of_definition(column, source_id)`: the value from the record's definition, or the column where a record
/// has none.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OfDefinition {
    column: FieldRef,
    definitions: Arc<Definitions>,
}

impl OfDefinition {
    /// What records of the definition `id` show in this column. An unknown definition is shown as unknown.
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

impl Computed<2> for OfDefinition {
    const NAME: &'static str = "of_definition";

    fn column(&self) -> &FieldRef {
        &self.column
    }

    fn compute(&self, [stored, source_ids]: [ArrayRef; 2]) -> Result<ArrayRef> {
        self.evaluate(&stored, &source_ids)
    }
}
