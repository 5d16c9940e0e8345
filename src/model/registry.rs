//! The data types: what can be recorded, the columns that records are stored in, and the shape in which they
//! are read.
//!
//! Built-in types come from `schemas/`, embedded; a person's own types come from the catalogue and look
//! exactly the same from here on.

mod annotation;
mod builtin;
mod canonical;
mod category;
mod column;
mod column_units;
mod data_type;
mod definition;
mod entry;
mod error;
mod json_list;
mod layout;
mod memory;
mod own;
mod product_annotations;
pub mod schema;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use super::sleep::SleepStage;
use super::sources::SourceRules;
use super::units::Units;

pub use super::metric::{DefaultAggregate, MergePolicy, MetricKind, MetricTraits};
pub use annotation::{ANNOTATION_CATEGORIES, AnnotationTraits, ValueLimits};
pub use canonical::{Canonical, respelt};
pub use category::Category;
pub use column::{dictionary_text, is_json_text, is_uuid, json_text, timestamp, uuid_field};
pub use column_units::unit_of;
pub use data_type::{
    ApiVersion, DataType, Layout, OwnersName, ReadColumn, ReadFrom, RecordClass, TimeFields, TypeId,
    Undeclared,
};
pub use definition::{Base, Definition, Scale};
pub use entry::{CatalogEntry, ListEntry, RecordSpec};
pub use error::RegistryError;
pub use json_list::{JsonList, members_of};
pub use layout::LayoutError;
pub use schema::RecordSchema;

/// Every built-in type, and the tables that go with them. Read once at start, and never changed.
#[derive(Debug)]
pub struct Registry {
    types: Vec<Arc<DataType>>,
    by_name: HashMap<String, Arc<DataType>>,
    units: Units,
    source_rules: SourceRules,
    sleep_stages: Vec<SleepStage>,
}

impl Registry {
    /// The types that come with the product.
    pub fn builtin() -> Result<Self, RegistryError> {
        let types: Vec<Arc<DataType>> = builtin::types()?.into_iter().map(Arc::new).collect();
        let mut by_name = HashMap::new();
        for data_type in &types {
            for name in
                std::iter::once(data_type.id.as_str()).chain(data_type.aliases.iter().map(String::as_str))
            {
                if by_name.insert(name.to_owned(), Arc::clone(data_type)).is_some() {
                    return Err(RegistryError::SameName(name.to_owned()));
                }
            }
        }
        Ok(Self {
            types,
            by_name,
            units: Units::builtin()?,
            source_rules: SourceRules::builtin()?,
            sleep_stages: super::sleep::stages().map_err(RegistryError::SleepStages)?,
        })
    }

    /// The built-in type of that name, which may be one of its aliases.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<DataType>> {
        self.by_name.get(name)
    }

    /// All built-in types, in the order in which they are listed.
    #[must_use]
    pub fn types(&self) -> &[Arc<DataType>] {
        &self.types
    }

    #[must_use]
    pub const fn units(&self) -> &Units {
        &self.units
    }

    #[must_use]
    pub const fn source_rules(&self) -> &SourceRules {
        &self.source_rules
    }

    #[must_use]
    pub fn sleep_stages(&self) -> &[SleepStage] {
        &self.sleep_stages
    }
}
