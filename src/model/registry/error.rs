//! Why the built-in types cannot be used. Must not know how they are read.

use super::layout::LayoutError;
use crate::model::sources::SourceRulesError;
use crate::model::units::UnitTableError;

/// Why the built-in types cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    #[error("the table of {table} cannot be read: {error}")]
    Table { table: &'static str, error: csv::Error },
    #[error("the schema of {name} cannot be read: {error}")]
    Schema { name: String, error: serde_json::Error },
    #[error("the schema of {name} has no layout: {error}")]
    Layout { name: String, error: LayoutError },
    #[error("there is no schema of records for {0}")]
    NoSchema(String),
    #[error("the codes of {name} are not a range of integers: {codes}")]
    Codes { name: String, codes: String },
    #[error("two types answer to the name {0}")]
    SameName(String),
    #[error(transparent)]
    Units(#[from] UnitTableError),
    #[error(transparent)]
    Sources(#[from] SourceRulesError),
    #[error("the table of sleep stages cannot be read: {0}")]
    SleepStages(serde_json::Error),
}
