//! What records of an annotation show of its definition: its name and the definition itself, both in their
//! present state.
//!
//! Records store only a reference to their definition. The definitions of a person are looked up once for a
//! question and laid over the stored columns: before conditions that ask about them are evaluated, after all
//! others. Knows plans and columns; knows nothing of what a definition says.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, Int32Array, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef, Int32Type};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::Expr;
use datafusion::prelude::ident;

use crate::model::registry::{DataType, dictionary_text};
use crate::people::annotations::shown::ShownAnnotations;

use super::computed::{Computed, computed, with_replaced};
use super::operator::Plan;

/// The stored column that names a record's definition.
pub(in crate::query) const SOURCE_ID: &str = "source_id";
/// The stored columns that the definition replaces.
const SOURCE_NAME: &str = "source_name";
const METADATA: &str = "metadata";

/// The stored columns to read in order to show `columns`: ascending, each once.
pub(in crate::query) fn needed(
    definitions: Option<&Arc<ShownAnnotations>>,
    data_type: &DataType,
    mut columns: Vec<usize>,
) -> Vec<usize> {
    let storage = &data_type.layout.storage;
    let place = |name: &str| storage.index_of(name).ok();
    let shows_them = |column: &usize| [place(SOURCE_NAME), place(METADATA)].contains(&Some(*column));
    if definitions.is_some() && columns.iter().any(shows_them) {
        columns.extend(place(SOURCE_ID));
    }
    columns.sort_unstable();
    columns.dedup();
    columns
}

/// The rows of `plan`, which has the stored columns of [`needed`], with the definitions laid over.
pub(in crate::query) fn laid_over(plan: Plan, definitions: Option<&Arc<ShownAnnotations>>) -> Result<Plan> {
    let schema = plan.schema();
    let Some(definitions) = definitions else {
        return Ok(plan);
    };
    if !schema.fields().iter().any(|field| is_replaced(field.name())) {
        return Ok(plan);
    }
    with_replaced(plan, |field| {
        let of_definition = OfDefinition {
            column: Arc::clone(field),
            definitions: Arc::clone(definitions),
        };
        let columns = [ident(field.name()), ident(SOURCE_ID)];
        is_replaced(field.name()).then(|| computed(of_definition, columns))
    })
}

/// Whether a condition asks about what is laid over.
pub(in crate::query) fn are_asked_by(condition: &Expr) -> bool {
    let mut columns = condition.column_refs().into_iter();
    columns.any(|column| is_replaced(&column.name))
}

fn is_replaced(column: &str) -> bool {
    [SOURCE_NAME, METADATA].contains(&column)
}

/// `of_definition(column, source_id)`: the value from the record's definition, or the column where a record
/// has none.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OfDefinition {
    column: FieldRef,
    definitions: Arc<ShownAnnotations>,
}

/// What the records of one source show.
#[derive(Clone)]
enum Shown {
    /// What is stored with each of them, since the source is no definition.
    Stored,
    OfDefinition(Option<Arc<str>>),
}

impl OfDefinition {
    /// What records of the source at `place` among `sources` show in this column.
    fn shown(&self, sources: &StringArray, place: usize) -> Result<Shown> {
        let source = sources.is_valid(place).then(|| sources.value(place));
        let Some(id) = source.and_then(|source| self.definitions.named(source)) else {
            return Ok(Shown::Stored);
        };
        if self.column.name() == SOURCE_NAME {
            return Ok(Shown::OfDefinition(self.definitions.name(id).map(Arc::from)));
        }
        let text = self.definitions.text(id);
        let text = text.map_err(|error| DataFusionError::External(Box::new(error)))?;
        let unknown = || Arc::from(format!(r#"{{"id":"{id}","unknown":true}}"#));
        Ok(Shown::OfDefinition(Some(text.unwrap_or_else(unknown))))
    }

    fn evaluate(&self, stored: &ArrayRef, source_ids: &ArrayRef) -> Result<ArrayRef> {
        let source_ids = cast(source_ids, &dictionary_text())?;
        let dictionary = source_ids.as_dictionary::<Int32Type>();
        let sources = dictionary.values().as_string::<i32>();
        // Looked up once for each source that rows of the batch have; its dictionary may have many more.
        let mut shown: Vec<Option<Shown>> = vec![None; sources.len()];
        for place in dictionary.keys().iter().flatten().map(|key| key as usize) {
            if let Some(unknown) = shown.get_mut(place).filter(|shown| shown.is_none()) {
                *unknown = Some(self.shown(sources, place)?);
            }
        }
        if let Some(rows) = self.by_source(dictionary, &shown)? {
            return Ok(rows);
        }
        let stored = cast(stored, &ArrowType::Utf8)?;
        let stored = stored.as_string::<i32>();
        let rows = dictionary.keys().iter().enumerate().map(|(row, key)| {
            match key.and_then(|key| shown.get(key as usize)) {
                Some(Some(Shown::OfDefinition(shown))) => shown.as_deref(),
                _ => stored.is_valid(row).then(|| stored.value(row)),
            }
        });
        let rows: StringArray = rows.collect();
        Ok(cast(&rows, self.column.data_type())?)
    }

    /// The column where it is a dictionary and every row shows a definition: each has the key of what its
    /// source shows, so no text is written or compared by row.
    fn by_source(
        &self,
        sources: &DictionaryArray<Int32Type>,
        shown: &[Option<Shown>],
    ) -> Result<Option<ArrayRef>> {
        if *self.column.data_type() != dictionary_text() || sources.keys().null_count() > 0 {
            return Ok(None);
        }
        let mut texts: Vec<&str> = Vec::new();
        // Definitions may have the same name.
        let mut keys_of_texts: HashMap<&str, i32> = HashMap::new();
        let mut keys: Vec<Option<i32>> = Vec::with_capacity(shown.len());
        for shown in shown {
            keys.push(match shown {
                Some(Shown::Stored) => return Ok(None),
                Some(Shown::OfDefinition(Some(text))) => {
                    let next = texts.len() as i32;
                    let key = *keys_of_texts.entry(text).or_insert(next);
                    if key == next {
                        texts.push(text);
                    }
                    Some(key)
                }
                Some(Shown::OfDefinition(None)) | None => None,
            });
        }
        let of_source = |place: &i32| keys.get(*place as usize).copied().flatten();
        let rows: Int32Array = sources.keys().values().iter().map(of_source).collect();
        let texts = Arc::new(StringArray::from(texts));
        Ok(Some(Arc::new(DictionaryArray::try_new(rows, texts)?)))
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
