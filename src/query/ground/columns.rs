//! The columns of an answer that a caller selects by name; dots reach into structs.
//!
//! Other columns are not in the answer and, where rows are read from storage, are not read. Knows plans and
//! columns; knows nothing of types or of what is asked.

mod of_answers;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::Fields;
use datafusion::common::Result;

use crate::model::nearest::nearest;

pub use super::errors::ColumnError;

/// A column, or a member of one: `value`, `source_properties.name`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ColumnPath(String);

/// The columns of an answer, in order. There is at least one, and none twice.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Columns(Vec<ColumnPath>);

impl ColumnPath {
    /// The column in which it lies.
    fn column(&self) -> &str {
        self.0.split('.').next().unwrap_or_default()
    }

    fn members(&self) -> impl Iterator<Item = &str> {
        self.0.split('.').skip(1)
    }
}

impl fmt::Display for ColumnPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Columns {
    pub fn new(names: Vec<String>) -> Result<Self, ColumnError> {
        if names.is_empty() {
            return Err(ColumnError::None);
        }
        let mut seen = HashSet::with_capacity(names.len());
        if let Some(name) = names.iter().find(|name| !seen.insert(name.as_str())) {
            return Err(ColumnError::Twice(name.clone()));
        }
        Ok(Self(names.into_iter().map(ColumnPath).collect()))
    }

    /// Whether the column `name`, or a member of it, is selected.
    pub(in crate::query) fn touch(&self, name: &str) -> bool {
        self.0.iter().any(|path| path.0 == name || path.column() == name)
    }

    /// The fields of the struct column `name`, reduced to the selected members and those that are read along
    /// with them. `None` where the whole column is selected, or a member that does not exist.
    pub(in crate::query) fn members_of(
        &self,
        name: &str,
        held: &Fields,
        read_along: impl Fn(&str) -> bool,
    ) -> Option<Fields> {
        let mut wanted = Vec::new();
        for path in self.0.iter().filter(|path| path.column() == name) {
            let (member, _) = held.find(path.members().next()?)?;
            wanted.push(member);
        }
        if wanted.is_empty() || self.0.iter().any(|path| path.0 == name) {
            return None;
        }
        let kept = held
            .iter()
            .enumerate()
            .filter(|(place, member)| wanted.contains(place) || read_along(member.name()));
        Some(kept.map(|(_, member)| Arc::clone(member)).collect())
    }

    /// Checks that each of them lies in one of the columns `known`.
    pub(in crate::query) fn are_among<'a>(
        &self,
        known: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<(), ColumnError> {
        for path in &self.0 {
            if !known.clone().any(|name| name == path.0 || name == path.column()) {
                return Err(unknown(path, path.column(), known));
            }
        }
        Ok(())
    }
}

fn unknown<'a>(path: &ColumnPath, part: &str, known: impl Iterator<Item = &'a str>) -> ColumnError {
    ColumnError::Unknown {
        name: path.to_string(),
        nearest: nearest(part, known).map(str::to_owned),
    }
}
