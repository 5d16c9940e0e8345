//! Prepares data types for decoding, and caches them.
//!
//! A compiled type is immutable and holds for one version of the type's layout; it is built for the first
//! record and then shared. Built-in types stay once they are compiled; those that people define share a
//! limit. Knows schemas and layouts; knows nothing of records.

use std::sync::{Arc, OnceLock};

use ahash::HashMap;
use arrow::array::{Array, ArrayRef, new_null_array};
use arrow::datatypes::DataType as ColumnType;
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;
use uuid::Uuid;

use super::columns::{Column, UnfillableColumn, width};
use super::field_plan::{FieldPlan, FieldPlanError};
use crate::model::cache::Cache;
use crate::model::ids::PersonId;
use crate::model::meters::CacheMeters;
use crate::model::registry::schema::cost::{RefusedSchema, checks_of_records, patterns_of_records};
use crate::model::registry::schema::weighed::{PatternsOfNames, with_weighed_patterns};
use crate::model::registry::schema::{PATTERN_BYTES, linear_patterns, pattern_memory};
use crate::model::registry::{DataType, ReadFrom, RecordClass, Registry, TimeFields, TypeId};
use crate::model::sources::SourceRules;
use crate::model::time::parse_instant;
use crate::model::units::Units;

/// How many bytes of compiled own types are kept where nobody says how many.
const KEPT_BYTES: u64 = 4 << 20;
/// The size of a type with many columns.
const LARGE_TYPE_BYTES: u64 = 1 << 20;
/// A compiled type takes this many times the text of its schema, beside its patterns and its columns,
const SCHEMA_FACTOR: usize = 12;
/// this much for each column, and this much in any case.
const COLUMN_BYTES: usize = 512;
const TYPE_BYTES: usize = 2 << 10;
/// How many ways a pattern that a linear engine cannot run may try before it counts as not matching.
const BACKTRACK_LIMIT: usize = 10_000;

/// All that decoding records of a type needs.
#[derive(Debug)]
pub struct CompiledType {
    pub(super) data_type: Arc<DataType>,
    pub(super) plan: FieldPlan,
    /// Ask it within [`crate::model::registry::schema::weighed::weighing`].
    pub(super) validator: Validator,
    /// What the names of members are checked by.
    pub(super) names: PatternsOfNames,
    pub(super) registry: Arc<Registry>,
    /// How often one value of a record may be checked.
    pub(super) checks: u64,
    /// One row of the type's own columns, all null.
    pub(super) null_row: Vec<ArrayRef>,
    /// One row without extras.
    pub(super) null_extras: ArrayRef,
    /// How many bytes a row takes at least.
    pub(super) row_bytes: usize,
    /// About how many bytes all of this takes, with the type itself, which may be kept for this alone.
    weight: usize,
}

/// Why records of a type cannot be decoded. The type is at fault, never a record.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    #[error("the schema of {data_type} is not a JSON Schema: {reason}")]
    Schema { data_type: String, reason: String },
    /// The type was defined before there were limits.
    #[error("the schema of {data_type} costs too much to check: {reason}; change it, and record again")]
    TooCostly {
        data_type: String,
        reason: RefusedSchema,
    },
    #[error(transparent)]
    Layout(#[from] FieldPlanError),
    #[error(transparent)]
    Column(#[from] UnfillableColumn),
}

impl CompiledType {
    pub fn new(data_type: Arc<DataType>, registry: Arc<Registry>) -> Result<Self, CompileError> {
        let schema = data_type.schema.value();
        let checks = checks(&data_type, &schema)?;
        let plan = FieldPlan::new(&data_type)?;
        for column in &plan.columns {
            Column::new(column.data_type())?;
        }
        let validator = validator(&data_type, &schema)?;
        let names = if data_type.owner.is_some() {
            PatternsOfNames::of(&schema, checks)
        } else {
            PatternsOfNames::default()
        };
        let columns = plan.columns.iter();
        let null_row: Vec<ArrayRef> = columns
            .map(|column| new_null_array(column.data_type(), 1))
            .collect();
        let weight = weight(&data_type, &schema, &null_row);
        drop(schema);
        let stored = data_type.layout.storage.fields().iter();
        Ok(Self {
            row_bytes: stored.map(|field| width(field.data_type())).sum(),
            weight,
            data_type,
            null_row,
            null_extras: new_null_array(&ColumnType::Utf8, 1),
            plan,
            validator,
            names,
            registry,
            checks,
        })
    }

    #[must_use]
    pub fn data_type(&self) -> &Arc<DataType> {
        &self.data_type
    }

    /// Measurements and places must lie in the past; events and entries may be planned.
    pub(super) fn must_have_happened(&self) -> bool {
        matches!(self.data_type.class, RecordClass::Metric | RecordClass::Location)
    }

    /// Whether rows show their end: rows of moments show only their time.
    pub(super) fn shows_ends(&self) -> bool {
        let mut read = self.data_type.layout.read.iter();
        read.any(|column| matches!(column.from, ReadFrom::Span | ReadFrom::End))
    }

    /// Whether records are moments although an end may be sent. What rows show decides what a record is: sent
    /// as it was read, it must be the same record.
    pub(super) fn holds_moments(&self) -> bool {
        self.data_type.layout.times == TimeFields::RecordedAt && !self.shows_ends()
    }

    /// Whether it was compiled from this type, or from one with the same layout and schema.
    fn is_of(&self, data_type: &Arc<DataType>) -> bool {
        let from = &self.data_type;
        let is_same = || {
            from.layout.version == data_type.layout.version
                && from.layout.state == data_type.layout.state
                && from.schema == data_type.schema
        };
        Arc::ptr_eq(from, data_type) || is_same()
    }

    pub(super) fn units(&self) -> &Units {
        self.registry.units()
    }

    pub(super) fn source_rules(&self) -> &SourceRules {
        self.registry.source_rules()
    }
}

fn weight(data_type: &DataType, schema: &Value, null_row: &[ArrayRef]) -> usize {
    let columns = data_type.layout.storage.flattened_fields().len();
    let nulls: usize = null_row.iter().map(Array::get_array_memory_size).sum();
    TYPE_BYTES
        + columns * COLUMN_BYTES
        + nulls
        + schema.to_string().len() * SCHEMA_FACTOR
        + pattern_memory(schema)
        + data_type.memory()
}

/// How often one value may be checked. Built-in schemas are exempt; own types have limits.
fn checks(data_type: &DataType, schema: &Value) -> Result<u64, CompileError> {
    if data_type.owner.is_none() {
        return Ok(1);
    }
    checks_of_records(schema).map_err(|reason| too_costly(data_type, reason))
}

fn too_costly(data_type: &DataType, reason: RefusedSchema) -> CompileError {
    CompileError::TooCostly {
        data_type: data_type.id.to_string(),
        reason,
    }
}

fn validator(data_type: &DataType, schema: &Value) -> Result<Validator, CompileError> {
    let options = || {
        jsonschema::draft202012::options()
            .should_validate_formats(true)
            .should_ignore_unknown_formats(true)
            .with_format("date-time", |text| parse_instant(text).is_ok())
            .with_format("uuid", |text| Uuid::try_parse(text).is_ok())
    };
    // Own types contain patterns that people write, so an engine with bounded run time is tried first.
    let mut linear = options().with_pattern_options(linear_patterns());
    if data_type.owner.is_some() {
        let patterns = patterns_of_records(schema);
        linear = with_weighed_patterns(linear, patterns.map_err(|reason| too_costly(data_type, reason))?);
    }
    let linear = linear.build(schema);
    linear
        .or_else(|_| {
            let patterns = PatternOptions::fancy_regex()
                .backtrack_limit(BACKTRACK_LIMIT)
                .size_limit(PATTERN_BYTES)
                .dfa_size_limit(PATTERN_BYTES);
            options().with_pattern_options(patterns).build(schema)
        })
        .map_err(|error| CompileError::Schema {
            data_type: data_type.id.0.to_string(),
            reason: error.to_string(),
        })
}

/// The compiled types. Lives as long as the process.
#[derive(Debug)]
pub struct CompiledTypes {
    registry: Arc<Registry>,
    /// All built-in types, which are not many; each is compiled when it is first needed.
    builtin: HashMap<TypeId, Builtin>,
    /// All others, each as it was compiled last.
    kept: Cache<(Option<PersonId>, TypeId), Arc<CompiledType>>,
}

#[derive(Debug)]
struct Builtin {
    data_type: Arc<DataType>,
    compiled: OnceLock<Arc<CompiledType>>,
}

impl CompiledTypes {
    #[must_use]
    pub fn new(registry: Arc<Registry>) -> Self {
        let builtin = registry.types().iter().map(|data_type| {
            let builtin = Builtin {
                data_type: Arc::clone(data_type),
                compiled: OnceLock::new(),
            };
            (data_type.id.clone(), builtin)
        });
        Self {
            builtin: builtin.collect(),
            registry,
            kept: kept_types(KEPT_BYTES),
        }
    }

    /// Keeps this many bytes of compiled types that people defined.
    #[must_use]
    pub fn keeping(mut self, memory: u64) -> Self {
        self.kept = kept_types(memory);
        self
    }

    /// Makes `meters` show how much is held.
    pub fn watched_by(&self, meters: &CacheMeters) {
        meters.watch("compiled_types", &self.kept);
    }

    /// Drops all types that people defined, whoever they belong to.
    pub fn forget_all(&self) {
        self.kept.clear();
    }

    /// The compiled type, from the cache if possible.
    pub fn get(&self, data_type: &Arc<DataType>) -> Result<Arc<CompiledType>, CompileError> {
        let builtin = self.builtin.get(&data_type.id);
        if let Some(builtin) = builtin.filter(|builtin| Arc::ptr_eq(&builtin.data_type, data_type)) {
            if let Some(compiled) = builtin.compiled.get() {
                return Ok(Arc::clone(compiled));
            }
            let compiled = self.compile(data_type)?;
            return Ok(Arc::clone(builtin.compiled.get_or_init(|| compiled)));
        }
        let key = (data_type.owner, data_type.id.clone());
        if let Some(compiled) = self.kept.get(&key).filter(|compiled| compiled.is_of(data_type)) {
            return Ok(compiled);
        }
        let compiled = self.compile(data_type)?;
        self.kept.insert(key, Arc::clone(&compiled));
        Ok(compiled)
    }

    fn compile(&self, data_type: &Arc<DataType>) -> Result<Arc<CompiledType>, CompileError> {
        let (data_type, registry) = (Arc::clone(data_type), Arc::clone(&self.registry));
        CompiledType::new(data_type, registry).map(Arc::new)
    }
}

fn kept_types(memory: u64) -> Cache<(Option<PersonId>, TypeId), Arc<CompiledType>> {
    Cache::of_bytes(memory, LARGE_TYPE_BYTES, |_, compiled: &Arc<CompiledType>| {
        compiled.weight
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::registry::{Base, Definition};

    fn own(registry: &Registry, number: u128, version: u32, pattern: &str) -> Arc<DataType> {
        let schema = json!({"properties": {"leaf": {"type": "string", "pattern": pattern}}});
        let body = json!({"name": "tea", "record_spec": {"schema": schema}});
        let definition = Definition::read(Base::Event, &body).unwrap();
        let base = registry.get("Event").unwrap();
        let (person, id) = (PersonId(Uuid::from_u128(1)), Uuid::from_u128(number));
        Arc::new(DataType::from_definition(person, id, base, &definition, version).unwrap())
    }

    #[test]
    fn own_types_share_a_limit_and_built_in_ones_stay() {
        let registry = Arc::new(Registry::builtin().unwrap());
        let types = CompiledTypes::new(Arc::clone(&registry)).keeping(400_000);
        let heart_rate = registry.get("HeartRate").unwrap();
        let built_in = types.get(heart_rate).unwrap();
        for number in 0..50 {
            let data_type = own(&registry, number, 1, "^[a-z]+$");
            let compiled = types.get(&data_type).unwrap();
            assert!(compiled.weight > data_type.memory());
            assert!(types.kept.weight() <= 400_000);
        }
        assert!((1..25).contains(&types.kept.len()), "{:?}", types.kept);
        assert!(Arc::ptr_eq(&types.get(heart_rate).unwrap(), &built_in));
    }

    #[test]
    fn a_type_that_changed_is_compiled_again_and_takes_the_place_of_the_earlier_one() {
        let registry = Arc::new(Registry::builtin().unwrap());
        let types = CompiledTypes::new(Arc::clone(&registry)).keeping(1 << 20);
        for version in 1..10 {
            let compiled = types.get(&own(&registry, 1, version, "^[a-z]+$")).unwrap();
            assert_eq!(compiled.data_type.layout.version, version);
        }
        assert_eq!(types.kept.len(), 1);
        let last = types.get(&own(&registry, 1, 9, "^[a-z]+$")).unwrap();
        assert!(Arc::ptr_eq(
            &last,
            &types.get(&own(&registry, 1, 9, "^[a-z]+$")).unwrap()
        ));
        let other = types.get(&own(&registry, 1, 9, "^[a-z]*$")).unwrap();
        assert!(!Arc::ptr_eq(&last, &other));
    }

    #[test]
    fn what_may_take_more_than_there_is_room_for_is_not_kept() {
        let registry = Arc::new(Registry::builtin().unwrap());
        let types = CompiledTypes::new(Arc::clone(&registry)).keeping(400_000);
        let compiled = types.get(&own(&registry, 1, 1, "^[a-z]{2000}$")).unwrap();
        assert!(compiled.weight > 400_000);
        assert!(types.kept.is_empty());
    }
}
