//! The columns of a data type in a table: in the catalogue of all types, and in the list of a person's own.

use crate::output::{ColumnKind, ListedColumn};

/// The members of a catalogue entry.
pub const ENTRY: [ListedColumn; 15] = [
    ListedColumn::new("id", ColumnKind::Text),
    ListedColumn::new("name", ColumnKind::Text),
    ListedColumn::new("description", ColumnKind::Text),
    ListedColumn::new("class", ColumnKind::Text),
    ListedColumn::new("api_version", ColumnKind::Text),
    ListedColumn::new("categories", ColumnKind::Texts),
    ListedColumn::new("column_name", ColumnKind::Text),
    ListedColumn::new("deprecated", ColumnKind::Flag),
    ListedColumn::new("svc_userid", ColumnKind::Text),
    ListedColumn::new("icon", ColumnKind::Text),
    ListedColumn::new("metric_kind", ColumnKind::Text),
    ListedColumn::new("queryable", ColumnKind::Flag),
    ListedColumn::new("recordable", ColumnKind::Flag),
    ListedColumn::new("record_spec", ColumnKind::Json),
    ListedColumn::new("unit", ColumnKind::Text),
];
