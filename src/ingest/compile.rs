//! Prepares data types for decoding, and caches them.
//!
//! A compiled type is immutable and holds for one version of the type's layout; it is built for the first
//! record and then shared. Knows schemas and layouts; knows nothing of records.

use std::sync::Arc;

use arrow::array::{ArrayRef, new_null_array};
use arrow::datatypes::DataType as ColumnType;
use jsonschema::{PatternOptions, Validator};
use uuid::Uuid;

use super::columns::{Column, UnfillableColumn, width};
use super::field_plan::{FieldPlan, FieldPlanError};
use crate::model::cache::Cache;
use crate::model::ids::PersonId;
use crate::model::registry::schema::cost::{TooCostly, checks_of_records};
use crate::model::registry::schema::{PATTERN_BYTES, linear_patterns};
use crate::model::registry::{DataType, ReadFrom, RecordClass, Registry, TypeId};
use crate::model::sources::SourceRules;
use crate::model::time::parse_instant;
use crate::model::units::Units;

/// About how many bytes of compiled types are kept: enough for every built-in type and the own types of the
/// people who are currently writing.
const KEPT_TYPES_BYTES: u64 = 64 << 20;
/// The size of a type with many columns.
const LARGE_TYPE_BYTES: u64 = 1 << 20;
/// A compiled type takes this many times the text of its schema, and more for each pattern.
const SCHEMA_FACTOR: usize = 8;
const PATTERN_WEIGHT: usize = 16 << 10;
/// How many ways a pattern that a linear engine cannot run may try before it counts as not matching.
const BACKTRACK_LIMIT: usize = 10_000;

/// All that decoding records of a type needs.
#[derive(Debug)]
pub struct CompiledType {
    pub(super) data_type: Arc<DataType>,
    pub(super) plan: FieldPlan,
    pub(super) validator: Validator,
    pub(super) registry: Arc<Registry>,
    /// How often one value of a record may be checked.
    pub(super) checks: u64,
    /// One row of the type's own columns, all null.
    pub(super) null_row: Vec<ArrayRef>,
    /// One row without extras.
    pub(super) null_extras: ArrayRef,
    /// How many bytes a row takes at least.
    pub(super) row_bytes: usize,
    /// About how many bytes all of this takes.
    weight: usize,
}

/// Why records of a type cannot be decoded. The type is at fault, never a record.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    #[error("the schema of {data_type} is not a JSON Schema: {reason}")]
    Schema { data_type: String, reason: String },
    /// The type was defined before there were limits.
    #[error("the schema of {data_type} costs too much to check: {reason}; change it, and record again")]
    TooCostly { data_type: String, reason: TooCostly },
    #[error(transparent)]
    Layout(#[from] FieldPlanError),
    #[error(transparent)]
    Column(#[from] UnfillableColumn),
}

impl CompiledType {
    /// # Errors
    /// If the type's schema or layout is not usable.
    pub fn new(data_type: Arc<DataType>, registry: Arc<Registry>) -> Result<Self, CompileError> {
        let checks = checks(&data_type)?;
        let plan = FieldPlan::new(&data_type)?;
        for column in &plan.columns {
            Column::new(column.data_type())?;
        }
        let validator = validator(&data_type)?;
        let weight = weight(&data_type);
        let columns = plan.columns.iter();
        let stored = data_type.layout.storage.fields().iter();
        Ok(Self {
            row_bytes: stored.map(|field| width(field.data_type())).sum(),
            data_type,
            null_row: columns
                .map(|column| new_null_array(column.data_type(), 1))
                .collect(),
            null_extras: new_null_array(&ColumnType::Utf8, 1),
            plan,
            validator,
            registry,
            checks,
            weight,
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

    pub(super) fn units(&self) -> &Units {
        self.registry.units()
    }

    pub(super) fn source_rules(&self) -> &SourceRules {
        self.registry.source_rules()
    }
}

fn weight(data_type: &DataType) -> usize {
    let text = data_type.schema.to_string();
    let patterns = text.matches("\"pattern").count();
    text.len() * SCHEMA_FACTOR + patterns * PATTERN_WEIGHT
}

/// How often one value may be checked. Built-in schemas are exempt; own types have limits.
fn checks(data_type: &DataType) -> Result<u64, CompileError> {
    if data_type.owner.is_none() {
        return Ok(1);
    }
    checks_of_records(&data_type.schema).map_err(|reason| CompileError::TooCostly {
        data_type: data_type.id.to_string(),
        reason,
    })
}

fn validator(data_type: &DataType) -> Result<Validator, CompileError> {
    let options = || {
        jsonschema::draft202012::options()
            .should_validate_formats(true)
            .should_ignore_unknown_formats(true)
            .with_format("date-time", |text| parse_instant(text).is_ok())
            .with_format("uuid", |text| Uuid::try_parse(text).is_ok())
    };
    // Own types contain patterns that people write, so an engine with bounded run time is tried first.
    let linear = options()
        .with_pattern_options(linear_patterns())
        .build(&data_type.schema);
    linear
        .or_else(|_| {
            let patterns = PatternOptions::fancy_regex()
                .backtrack_limit(BACKTRACK_LIMIT)
                .size_limit(PATTERN_BYTES)
                .dfa_size_limit(PATTERN_BYTES);
            options().with_pattern_options(patterns).build(&data_type.schema)
        })
        .map_err(|error| CompileError::Schema {
            data_type: data_type.id.0.to_string(),
            reason: error.to_string(),
        })
}

/// The cache of compiled types, by what they were compiled from.
#[derive(Debug)]
pub struct CompiledTypes {
    registry: Arc<Registry>,
    kept: Cache<(Option<PersonId>, TypeId, u32), Arc<CompiledType>>,
}

impl CompiledTypes {
    #[must_use]
    pub fn new(registry: Arc<Registry>) -> Self {
        Self {
            registry,
            kept: Cache::of_bytes(
                KEPT_TYPES_BYTES,
                LARGE_TYPE_BYTES,
                |_, compiled: &Arc<CompiledType>| compiled.weight,
            ),
        }
    }

    /// Empties the cache, whoever the types belong to.
    pub fn forget_all(&self) {
        self.kept.clear();
    }

    /// The compiled type, from the cache if possible.
    ///
    /// # Errors
    /// If the type's schema or layout is not usable.
    pub fn get(&self, data_type: &Arc<DataType>) -> Result<Arc<CompiledType>, CompileError> {
        let key = (data_type.owner, data_type.id.clone(), data_type.layout.version);
        let is_this = |compiled: &Arc<CompiledType>| {
            Arc::ptr_eq(&compiled.data_type, data_type) || compiled.data_type.schema == data_type.schema
        };
        if let Some(compiled) = self.kept.get(&key).filter(is_this) {
            return Ok(compiled);
        }
        let compiled = Arc::new(CompiledType::new(
            Arc::clone(data_type),
            Arc::clone(&self.registry),
        )?);
        self.kept.insert(key, Arc::clone(&compiled));
        Ok(compiled)
    }
}
