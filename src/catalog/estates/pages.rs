//! Which tables hold rows of a person, in which order they are read, and the form in which rows are written
//! down. Reads and writes nothing.

use serde_json::Value as Json;

use crate::catalog::database::Value;
use crate::catalog::errors::CatalogError;
use crate::catalog::tables::{
    ACCESS_LOG, DEAD_ROWS, DEFINITIONS, DOCUMENTS, FOLDERS, Kind, LEDGERS, LINKS, PARTITIONS, PEOPLE, PIECES,
    SOURCES, Table, UPDATED_DAYS, UPDATES,
};
use crate::model::hexadecimal::{from_hexadecimal, hexadecimal};

/// The tables with rows of a person, each after those that it refers to. Not `uploads`: idempotency keys mean
/// nothing once the effects of their requests may be lost.
pub(super) const TABLES: [&Table; 13] = [
    &PEOPLE,
    &LEDGERS,
    &PARTITIONS,
    &PIECES,
    &DEAD_ROWS,
    &UPDATES,
    &UPDATED_DAYS,
    &SOURCES,
    &DEFINITIONS,
    &DOCUMENTS,
    &LINKS,
    &FOLDERS,
    &ACCESS_LOG,
];

/// The bytes of the tail. Their table has no checksums.
pub(super) const BLOBS: &str = "blobs";

/// Some rows of one table. Bytes are hexadecimal text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EstatePage {
    pub table: String,
    pub rows: Vec<Vec<Json>>,
}

/// The columns by which a person's rows of a table are read page by page. Together they are unique, and after
/// the person they are the beginning of an index: so no page walks past the rows before it.
pub(super) fn order_of(table: &Table) -> Vec<&'static str> {
    if table.name == DOCUMENTS.name {
        // Their key begins with the kind, so it would lead through the documents of everybody.
        return vec!["kind", "created_at", "document"];
    }
    let key = table.columns.iter().take(table.key).map(|(name, _)| *name);
    key.filter(|name| *name != "person").collect()
}

/// The rest of the statement that reads a page of a table: of the person `$1`, at most `$2` rows, and unless
/// it is the first, those after the values from `$3` on.
pub(super) fn page_of(table: &Table, is_first: bool) -> String {
    let order = order_of(table);
    if order.is_empty() {
        return "WHERE person = $1 LIMIT $2".to_owned();
    }
    let columns = order.join(", ");
    if is_first {
        return format!("WHERE person = $1 ORDER BY {columns} LIMIT $2");
    }
    let marks: Vec<String> = (0..order.len()).map(|index| format!("${}", index + 3)).collect();
    let marks = marks.join(", ");
    format!("WHERE person = $1 AND ({columns}) > ({marks}) ORDER BY {columns} LIMIT $2")
}

pub(super) fn unreadable() -> CatalogError {
    CatalogError::corrupt("what was written down of a person is not what this release writes")
}

pub(super) fn json_of(value: Value) -> Json {
    match value {
        Value::Int(value) => Json::from(value),
        Value::Text(value) => Json::String(value),
        Value::Bytes(value) => Json::String(hexadecimal(&value)),
        Value::NullInt | Value::NullText => Json::Null,
    }
}

fn value_of(kind: Kind, value: Json) -> Option<Value> {
    match (kind, value) {
        (Kind::Int | Kind::OptionalInt, Json::Number(value)) => value.as_i64().map(Value::Int),
        (Kind::Text | Kind::OptionalText, Json::String(value)) => Some(Value::Text(value)),
        (Kind::Bytes, Json::String(value)) => from_hexadecimal(&value).map(Value::Bytes),
        (Kind::OptionalInt, Json::Null) => Some(Value::NullInt),
        (Kind::OptionalText, Json::Null) => Some(Value::NullText),
        _ => None,
    }
}

/// The table of this name, and the values of a row of it that was written down. `None`: there is none, or its
/// rows are others.
pub(in crate::catalog) fn parsed_row(table: &str, row: Vec<Json>) -> Option<(&'static Table, Vec<Value>)> {
    let table = TABLES.iter().copied().find(|known| known.name == table)?;
    if row.len() != table.columns.len() {
        return None;
    }
    let values = table.columns.iter().zip(row);
    let values = values.map(|((_, kind), value)| value_of(*kind, value));
    Some((table, values.collect::<Option<_>>()?))
}
