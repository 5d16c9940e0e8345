//! What a record says of the definition that it belongs to, and the id that it has by that and its source.

use std::borrow::Cow;

use super::RecordDecoder;
use crate::ingest::columns::Cell;
use crate::ingest::naming::with_one_definition;
use crate::ingest::natural::{SourceAndTime, natural_id};
use crate::ingest::row::Row;
use crate::model::ids::RecordId;

impl RecordDecoder {
    /// The record with what says to which definition it belongs in one place. Only records of a base do.
    pub(super) fn with_one_definition<'a>(&self, json: &'a [u8]) -> Cow<'a, [u8]> {
        if self.column_of_definition().is_none() {
            return Cow::Borrowed(json);
        }
        with_one_definition(json, |source| self.context.definition_of(source))
    }

    /// The column that says to which definition a record belongs. In a person's own type, and in types that
    /// have no definitions, it is a text like any other.
    fn column_of_definition(&self) -> Option<usize> {
        self.compiled
            .plan
            .source_id
            .filter(|_| self.compiled.data_type.is_base)
    }

    /// Whether a record says something as its `source_id` that does not count there.
    pub(super) fn has_other_id(&self, row: &Row<'_>) -> bool {
        let Some(column) = self.column_of_definition() else {
            return false;
        };
        let said = row.cells.iter().find(|(given, _)| *given == column);
        let Some((_, Cell::Text(said))) = said else {
            return false;
        };
        let names_definition = |source: &str| self.context.definition_of(source).is_some();
        let named = row.source.source_id.as_deref();
        said.is_empty() || (named.is_some_and(names_definition) && !names_definition(said))
    }

    /// The id of a record that comes without one. A record without a time always counts as new.
    pub(super) fn natural_id(&self, row: &Row<'_>, json: &[u8]) -> Option<RecordId> {
        if !self.context.leave.natural_ids || row.undated {
            return None;
        }
        let key = self.sources.get(row.source.number)?.key.as_str();
        let in_sources = row.source.source_id.as_deref();
        let source_id = self.source_id_of(row);
        let is_defined = source_id
            .as_deref()
            .is_some_and(|id| self.definition_in(id).is_some());
        // Sent to the type of its definition, a record without other sources would come from that.
        let definition = source_id.as_deref().filter(|_| is_defined);
        let source = match definition {
            Some(definition) if key.is_empty() => Cow::Borrowed(definition),
            _ => self.definition_in(key).map_or(Cow::Borrowed(key), Cow::Owned),
        };
        let known = SourceAndTime {
            source: &source,
            in_sources: in_sources.or(definition),
            source_id: source_id.as_deref(),
            is_defined,
            start: row.start,
            end: row.end,
        };
        Some(natural_id(&self.compiled, known, json, &|source: &str| {
            self.definition_in(source)
        }))
    }

    /// What the row of a record will have as its `source_id`, if its type has that.
    fn source_id_of<'r>(&self, row: &'r Row<'_>) -> Option<Cow<'r, str>> {
        let column = self.compiled.plan.source_id?;
        let said = row.cells.iter().find(|(given, _)| *given == column);
        let stored: &str = match said {
            Some((_, Cell::Text(said))) => said.as_ref(),
            _ => row.source.source_id.as_deref()?,
        };
        let definition = self.definition_in(stored);
        Some(definition.map_or(Cow::Borrowed(stored), Cow::Owned))
    }

    /// Gives the definition that a record names itself the one spelling by which its records are found.
    pub(super) fn spell_definition(&self, said: &mut Cell<'_>) {
        let Cell::Text(source) = said else { return };
        if let Some(definition) = self.definition_in(source) {
            *said = Cell::Text(definition.into());
        }
    }

    /// The definition that a source of a record names, in its one spelling.
    fn definition_in(&self, source: &str) -> Option<String> {
        self.column_of_definition()?;
        let definition = self.context.definition_of(source)?;
        Some(self.context.source_of(definition))
    }

    /// Removes the fields that a record repeats from its definition: answers show the current definition, and
    /// records that were read can be written back.
    pub(super) fn leave_to_definition(&self, cells: &mut Vec<(usize, Cell<'_>)>) {
        let of_definition = self.compiled.plan.of_definition;
        if !cells
            .iter()
            .any(|(column, _)| of_definition.contains(&Some(*column)))
        {
            return;
        }
        let names_one = cells.iter().any(|(column, cell)| match cell {
            Cell::Text(source) if self.compiled.plan.source_id == Some(*column) => {
                self.context.definition_of(source).is_some()
            }
            _ => false,
        });
        if names_one {
            cells.retain(|(column, _)| !of_definition.contains(&Some(*column)));
        }
    }
}
