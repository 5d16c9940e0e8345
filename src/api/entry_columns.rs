//! The columns of a data type in a table: in the catalogue of all types, and in the list of a person's own.

use crate::output::{Holds, ListedColumn};

/// The members of a catalogue entry.
pub const ENTRY: [ListedColumn; 15] = [
    ListedColumn::new("id", Holds::Text),
    ListedColumn::new("name", Holds::Text),
    ListedColumn::new("description", Holds::Text),
    ListedColumn::new("class", Holds::Text),
    ListedColumn::new("api_version", Holds::Text),
    ListedColumn::new("categories", Holds::Texts),
    ListedColumn::new("column_name", Holds::Text),
    ListedColumn::new("deprecated", Holds::Flag),
    ListedColumn::new("svc_userid", Holds::Text),
    ListedColumn::new("icon", Holds::Text),
    ListedColumn::new("metric_kind", Holds::Text),
    ListedColumn::new("queryable", Holds::Flag),
    ListedColumn::new("recordable", Holds::Flag),
    ListedColumn::new("record_spec", Holds::Json),
    ListedColumn::new("unit", Holds::Text),
];
